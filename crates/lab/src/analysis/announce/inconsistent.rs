//! F4: inconsistent state (§5.3.4).

use super::{Loss, some_fall};

/// Room for the rounding of quotients.
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

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn table_of_f4() {
        for (ratio, corr, uc5, uc20, light20) in [
            (0.5, 0.7000, 0.9352, 1.0000, 0.9325),
            (1.0, 0.4000, 0.8704, 0.9999, 0.8649),
            (1.5, 0.2800, 0.6863, 0.9818, 0.5194),
            (2.0, 0.1600, 0.5021, 0.9636, 0.1738),
            (3.0, 0.0640, 0.2325, 0.7154, 0.0188),
        ] {
            let name = format!("T_L = {ratio}");
            let uc = |n: u32, rate| false_departures(ratio, n - 1, Loss::Uncorrelated(rate));
            close(&name, false_departures(ratio, 4, Loss::Correlated(0.4)), corr, 5e-5);
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
}
