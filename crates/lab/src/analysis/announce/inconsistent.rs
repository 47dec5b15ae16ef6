//! F4: inconsistent state (§5.3.4), and how long to listen so that it stays rare (C4).

use super::{Loss, all_escape, announcements_until_heard, power, some_fall};

/// Room for rates that sit exactly on the limit: `l = 0.1`, `k = 2`, `ε = 1%` must pass.
const TOLERANCE: f64 = 1e-12;

/// Fraction of time in which some follower believes a live leader gone (§5.3.4, corrected by A-15).
///
/// With `n = ⌊T_L/T_A⌋` and `f = T_L/T_A - n`: `l^n[1-f(1-l)]` under correlated loss,
/// `f[1-(1-l^{n+1})^M] + (1-f)[1-(1-l^n)^M]` under uncorrelated. Without loss this is `1-T_L/T_A`
/// below one period and 0 from there on. Deliveries precede timers of the same instant.
pub fn false_departures(listen_over_announce: f64, receivers: u32, loss: Loss) -> f64 {
    let (whole, part) = split(listen_over_announce);
    match loss {
        _ if receivers == 0 => 0.0,
        Loss::None => one_receiver(whole, part, 0.0),
        Loss::Correlated(rate) => one_receiver(whole, part, rate),
        Loss::Uncorrelated(rate) => {
            let after = some_fall(libm::pow(rate, whole + 1.0), receivers);
            let before = some_fall(libm::pow(rate, whole), receivers);
            part * after + (1.0 - part) * before
        }
    }
}

/// `1-T_L/(T_A·(E+1))` with `E` lost announcements on average, §5.3.4 as printed: `1-T_L(1-l)/T_A`
/// under correlated loss, `E = R_N` under uncorrelated. The case `T_L < T_A` only, and negative
/// beyond `E+1` periods.
pub fn false_departures_published(listen_over_announce: f64, processes: u32, loss: Loss) -> f64 {
    match loss {
        Loss::None => 1.0 - listen_over_announce,
        Loss::Correlated(rate) => 1.0 - listen_over_announce * (1.0 - rate),
        Loss::Uncorrelated(rate) => {
            1.0 - listen_over_announce / (announcements_until_heard(processes, rate) + 1.0)
        }
    }
}

/// `(n+1-T_L/T_A)/(n+1)`: the same fraction **without any loss** under programs 5.1 and 5.2 as
/// printed, which re-arm the listen timer only for a better leader and so ignore the heartbeat
///
pub fn heartbeat_ignored(listen_over_announce: f64) -> f64 {
    let (whole, part) = split(listen_over_announce);
    (1.0 - part) / (whole + 1.0)
}

/// `n` and `f`, taking a ratio within [`TOLERANCE`] below a whole number for that number.
fn split(ratio: f64) -> (f64, f64) {
    let whole = libm::floor(ratio + TOLERANCE);
    (whole, (ratio - whole).max(0.0))
}

fn one_receiver(whole: f64, part: f64, rate: f64) -> f64 {
    libm::pow(rate, whole) * (1.0 - part * (1.0 - rate))
}

/// What perturbs a group in steady state. All times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Churn {
    /// `N`, about constant.
    pub processes: u32,
    /// `T_d`, mean time between departures *of leaders* (A-17).
    pub between_departures: f64,
    /// `T_a`, mean time between joins.
    pub between_joins: f64,
    /// Expected delay to agree again after a departure.
    pub departure: f64,
    /// The same after a join of a process better than the leader.
    pub better_joiner: f64,
    /// The same after any other join.
    pub worse_joiner: f64,
    /// Fraction of time in false departures.
    pub false_departures: f64,
}

/// Fraction of time without agreement, to first order:
/// `E_dep/T_d + [E_better + N·E_worse]/(N+1)/T_a + F_false` (§5.3.4). Good while small:
/// perturbations that overlap are counted twice.
pub fn under_churn(churn: &Churn) -> f64 {
    let n = f64::from(churn.processes);
    let join = (churn.better_joiner + n * churn.worse_joiner) / (n + 1.0);
    churn.departure / churn.between_departures + join / churn.between_joins + churn.false_departures
}

/// P16: probability that all agree at an instant of steady state, `(1-l^k)^{N-1}`, under
/// uncorrelated loss with `T_L = kT_A`.
pub fn agreement(processes: u32, rate: f64, factor: u32) -> f64 {
    all_escape(power(rate, factor), processes.saturating_sub(1))
}

/// C4: the smallest `k ≥ 1` with `1-(1-l^k)^M ≤ ε`, so that `T_L = kT_A` keeps false departures
/// below `ε`. `None` if everything is lost. Compared with a tolerance of 1e-12, also for `ε`
/// 0.
pub fn listen_factor(rate: f64, receivers: u32, epsilon: f64) -> Option<u32> {
    if rate >= 1.0 {
        return (receivers == 0 || epsilon >= 1.0).then_some(1);
    }
    let enough = |k: &u32| some_fall(power(rate, *k), receivers) <= epsilon.max(0.0) + TOLERANCE;
    (1..).find(enough)
}

/// The factor §5.3.2.2 and §5.4.4 advise: the *mean* number of announcements until all have heard
/// one, rounded up. Leaves 15-28% of the time inconsistent. `None` if everything is lost.
pub fn listen_factor_published(rate: f64, receivers: u32) -> Option<u32> {
    let mean = announcements_until_heard(receivers, rate);
    mean.is_finite().then(|| libm::ceil(mean) as u32)
}

#[cfg(test)]
mod tests {
    use super::super::{close, corrects};
    use super::*;

    #[test]
    fn table_of_c4() {
        let line = |rate, receivers| {
            [0.05, 0.01, 0.001].map(|epsilon| listen_factor(rate, receivers, epsilon).unwrap())
        };
        for (receivers, light, heavy) in [
            (1, [2, 2, 3], [4, 6, 8]),
            (9, [3, 3, 4], [6, 8, 10]),
            (99, [4, 4, 5], [9, 11, 13]),
            (499, [4, 5, 6], [11, 12, 15]),
        ] {
            assert_eq!(line(0.1, receivers), light, "l = 0.1, M = {receivers}");
            assert_eq!(line(0.4, receivers), heavy, "l = 0.4, M = {receivers}");
        }
        assert_eq!(listen_factor(0.0, 499, 0.01), Some(1));
        assert_eq!(listen_factor(1.0, 1, 0.01), None);
    }

    #[test]
    fn table_of_f4() {
        for (ratio, corr, published, uc5, uc20, light20) in [
            (0.5, 0.7000, 0.70, 0.9352, 1.0000, 0.9325),
            (1.0, 0.4000, 0.40, 0.8704, 0.9999, 0.8649),
            (1.5, 0.2800, 0.10, 0.6863, 0.9818, 0.5194),
            (2.0, 0.1600, -0.20, 0.5021, 0.9636, 0.1738),
            (3.0, 0.0640, -0.80, 0.2325, 0.7154, 0.0188),
        ] {
            let name = format!("T_L = {ratio}");
            let uc = |n: u32, rate| false_departures(ratio, n - 1, Loss::Uncorrelated(rate));
            close(&name, false_departures(ratio, 4, Loss::Correlated(0.4)), corr, 5e-5);
            close(
                &name,
                false_departures_published(ratio, 5, Loss::Correlated(0.4)),
                published,
                5e-3,
            );
            close(&name, uc(5, 0.4), uc5, 5e-5);
            close(&name, uc(20, 0.4), uc20, 5e-5);
            close(&name, uc(20, 0.1), light20, 5e-5);
        }
        for (ratio, expected) in [(0.25, 0.75), (0.999, 0.001), (1.0, 0.0), (7.5, 0.0)] {
            close("lossless", false_departures(ratio, 9, Loss::None), expected, 1e-12);
        }
        assert_eq!(false_departures(3.0, 0, Loss::Correlated(1.0)), 0.0);
        assert_eq!(false_departures(3.0, 9, Loss::Uncorrelated(1.0)), 1.0);
    }

    /// F4, and V2, V9.
    #[test]
    fn programs_as_printed_depose_a_live_leader() {
        for (ratio, expected) in
            [(1.0, 0.5), (2.0, 0.333), (2.5, 1.0 / 6.0), (3.0, 0.25), (3.5, 0.125)]
        {
            close(&format!("T_L = {ratio}"), heartbeat_ignored(ratio), expected, 5e-4);
        }
    }

    #[test]
    fn churn_of_f4() {
        let churn = Churn {
            processes: 10,
            between_departures: 100.0,
            between_joins: 50.0,
            departure: 3.15,
            better_joiner: 0.55,
            worse_joiner: 0.5,
            false_departures: 0.0,
        };
        close("N = 10", under_churn(&churn), 0.0416, 5e-5);
    }

    /// A-20 quotes 5e-15 for all agreeing at `N = 500`.
    #[test]
    fn agreement_at_an_instant() {
        close("A-20", agreement(500, 0.4, 3), 4.6e-15, 1e-15);
        let inconsistent = false_departures(3.0, 19, Loss::Uncorrelated(0.4));
        close("F4", agreement(20, 0.4, 3), 1.0 - inconsistent, 1e-12);
        assert_eq!(
            [agreement(1, 1.0, 3), agreement(2, 1.0, 3), agreement(2, 0.0, 1)],
            [1.0, 0.0, 1.0]
        );
    }

    /// The mean says that listening this long is enough; A-14's figures say how often it is
    /// not.
    #[test]
    fn a_14_a_mean_is_no_quantile() {
        for (n, inconsistent) in [(10, 0.21), (100, 0.15), (500, 0.28)] {
            let fraction = |factor: Option<u32>| {
                let ratio = f64::from(factor.unwrap());
                false_departures(ratio, n - 1, Loss::Uncorrelated(0.4))
            };
            let published = fraction(listen_factor_published(0.4, n - 1));
            close(&format!("N = {n}"), published, inconsistent, 5e-3);
            assert!(published > 0.05);
            assert!(fraction(listen_factor(0.4, n - 1, 0.05)) <= 0.05);
        }
    }

    /// Measured values from the table of F4, whose criterion is 5% relative.
    #[test]
    fn a_15_a_fraction_is_not_negative() {
        for (ratio, measured) in [(1.5, 0.2763), (2.0, 0.1572), (3.0, 0.0641)] {
            let corrected = false_departures(ratio, 4, Loss::Correlated(0.4));
            let published = false_departures_published(ratio, 5, Loss::Correlated(0.4));
            corrects(&format!("T_L = {ratio}"), published, corrected, measured, 0.05 * measured);
        }
        assert!(false_departures_published(2.0, 5, Loss::Correlated(0.4)) < 0.0);
        assert!(false_departures_published(6.0, 20, Loss::Uncorrelated(0.4)) < 0.0);
    }
}
