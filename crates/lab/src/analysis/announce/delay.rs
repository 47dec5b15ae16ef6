//! F1: leadership delay (§5.3.1), from a cold start until every process has heard the best one.
//!
//! Nobody stops believing in a leader (`T_L = ∞`, which the chapter leaves unsaid: A-20).

use super::{Loss, some_fall};

/// A group at its cold start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// `N`. A single process agrees with itself at once: no rounds in vain.
    pub processes: u32,
    /// `T_A`.
    pub announce: f64,
    /// `E[t]`, the mean wait of the best process before its first announcement: 0 for LE-A, `T_S/2`
    /// for LE-S with uniform timers.
    pub mean_wait: f64,
    /// `Δ`.
    pub delay: f64,
    /// `l` and its kind.
    pub loss: Loss,
}

impl Group {
    /// LE-A: the best process announces at once.
    pub fn le_a(processes: u32, announce: f64, delay: f64, loss: Loss) -> Self {
        Self { processes, announce, mean_wait: 0.0, delay, loss }
    }

    /// LE-S with uniform timers: the best process waits `T_S/2` on average, whatever `N`.
    pub fn le_s(processes: u32, announce: f64, suppress: f64, delay: f64, loss: Loss) -> Self {
        Self { processes, announce, mean_wait: suppress / 2.0, delay, loss }
    }

    /// LE-M with uniform timers: the best process is the one that wakes first, after `T_S/(N+1)`.
    pub fn le_m(processes: u32, announce: f64, suppress: f64, delay: f64, loss: Loss) -> Self {
        let mean_wait = suppress / (f64::from(processes) + 1.0);
        Self { processes, announce, mean_wait, delay, loss }
    }
}

/// Expected leadership delay, from the cold start until every process has heard the best one
/// (§5.3.1, corrected by A-3). Seconds.
///
/// `E[t] + Δ + T_A·X`, where `X` is the expected number of announcements of the best process that
/// are lost on at least one receiver before all have heard one: the wait for its first
/// announcement, the flight, and a period for every announcement in vain. Infinite if everything is
/// lost.
///
/// ```
/// use bellwether_lab::analysis::announce::{Group, Loss, leadership_delay};
///
/// let group = Group {
///     processes: 10, announce: 1.0, mean_wait: 0.5, delay: 0.1, loss: Loss::Correlated(0.4),
/// };
/// assert!((leadership_delay(&group) - 1.2667).abs() < 1e-4);
/// ```
pub fn leadership_delay(group: &Group) -> f64 {
    last_send(group) + group.delay
}

/// `E[t_max]`: the same less the flight `Δ`, the time of the *send* that completes agreement. The
/// chapter's figures plot this. Seconds.
pub fn last_send(group: &Group) -> f64 {
    let receivers = group.processes.saturating_sub(1);
    group.mean_wait + group.announce * rounds_in_vain(receivers, group.loss)
}

/// `E[t] + Δ + T_A·R_N` under uncorrelated loss: §5.3.1.3 as printed, which counts the first
/// announcement as a round in vain and the sender as a receiver (A-3). The other two kinds of loss
/// were printed right. Seconds.
pub fn leadership_delay_published(group: &Group) -> f64 {
    match group.loss {
        Loss::Uncorrelated(rate) => {
            let rounds = announcements_until_heard(group.processes, rate);
            group.mean_wait + group.delay + group.announce * rounds
        }
        Loss::None | Loss::Correlated(_) => leadership_delay(group),
    }
}

/// `X`: expected announcements of one sender in vain before each of `receivers` has heard one. 0
/// without loss, `l/(1-l)` under correlated loss, `R_M - 1` under uncorrelated.
pub fn rounds_in_vain(receivers: u32, loss: Loss) -> f64 {
    match loss {
        _ if receivers == 0 => 0.0,
        Loss::None => 0.0,
        Loss::Correlated(rate) => rate / (1.0 - rate),
        Loss::Uncorrelated(rate) => announcements_until_heard(receivers, rate) - 1.0,
    }
}

/// `R_M(l)`: expected number of announcements, counted from one, until each of `M` receivers with
/// independent losses has heard one.
///
/// Summed as survival probabilities, `Σ_j 1-(1-l^j)^M`: the alternating binomial sum of the chapter
/// has lost all its digits by `M = 60` (A-5).
pub fn announcements_until_heard(receivers: u32, rate: f64) -> f64 {
    if rate >= 1.0 {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    let mut all_lost = 1.0;
    loop {
        let someone_waits = some_fall(all_lost, receivers);
        sum += someone_waits;
        all_lost *= rate;
        if someone_waits < 1e-17 {
            return sum;
        }
    }
}

/// Loss rate when `together` messages arrive at once: a second, independent coin of rate
/// `e = 3.515e-4·max(0, n-70)`, so `1-(1-l)(1-e)`.
///
/// Departure: §5.4.2 shows AL degrading from `N = 70` and losing to LE-S from 200, which its own
/// model cannot do (A-21). This is the congestion of A-21, its slope chosen to put the crossover
/// at 200.
pub fn congested_rate(rate: f64, together: u32) -> f64 {
    let congestion = (3.515e-4 * f64::from(together.saturating_sub(70))).min(1.0);
    rate + congestion * (1.0 - rate)
}

#[cfg(test)]
mod tests {
    use bellwether_proto::Seed;

    use super::super::{close, corrects, simulates};
    use super::*;

    fn le_s(processes: u32, loss: Loss) -> Group {
        Group::le_s(processes, 1.0, 1.0, 0.1, loss)
    }

    /// V19.
    #[test]
    fn receivers_with_independent_losses() {
        for (receivers, expected) in [(1, 1.66667), (2, 2.14286), (9, 3.58765), (499, 7.91117)] {
            close(
                &format!("R_{receivers}"),
                announcements_until_heard(receivers, 0.4),
                expected,
                5e-6,
            );
        }
    }

    #[test]
    fn receivers_with_independent_losses_by_simulation() {
        let mut rng = Seed::new(5).named("heard").rng();
        for (receivers, rate) in [(1, 0.4), (4, 0.4), (30, 0.25)] {
            let expected = announcements_until_heard(receivers, rate);
            simulates(&format!("R_{receivers}({rate})"), expected, || {
                let (mut announcements, mut waiting) = (0.0, receivers);
                while waiting > 0 {
                    announcements += 1.0;
                    waiting = (0..waiting).filter(|_| rng.chance(rate)).count() as u32;
                }
                announcements
            });
        }
    }

    /// P9: one receiver makes no difference between the kinds of loss, and no loss is the limit of
    /// both.
    #[test]
    fn kinds_of_loss_meet_where_they_must() {
        for rate in [0.0, 0.1, 0.5, 0.9] {
            let correlated = leadership_delay(&le_s(2, Loss::Correlated(rate)));
            let uncorrelated = leadership_delay(&le_s(2, Loss::Uncorrelated(rate)));
            close(&format!("l = {rate}"), correlated, uncorrelated, 1e-12);
        }
        assert_eq!(leadership_delay(&le_s(9, Loss::None)), 0.6);
        assert_eq!(leadership_delay(&le_s(9, Loss::Uncorrelated(0.0))), 0.6);
        assert_eq!(leadership_delay(&le_s(9, Loss::Correlated(1.0))), f64::INFINITY);
        assert_eq!(leadership_delay(&le_s(9, Loss::Uncorrelated(1.0))), f64::INFINITY);
        assert_eq!(leadership_delay(&le_s(1, Loss::Uncorrelated(1.0))), 0.6);
    }

    /// Table of F1: `N`, uncorrelated 0.4 corrected, published, LE-M.
    const UNCORRELATED: [(u32, f64, f64, f64); 7] = [
        (2, 1.1667, 2.643, 1.0000),
        (5, 2.2710, 3.491, 1.9377),
        (10, 3.0877, 4.197, 2.6786),
        (50, 4.8885, 5.910, 4.4081),
        (100, 5.6503, 6.661, 5.1602),
        (200, 6.4095, 7.415, 5.9145),
        (500, 7.4112, 8.413, 6.9132),
    ];

    #[test]
    fn table_of_f1() {
        for (n, corrected, published, mapped) in UNCORRELATED {
            let (group, name) = (le_s(n, Loss::Uncorrelated(0.4)), format!("N = {n}"));
            close(&name, last_send(&group), corrected, 5e-5);
            close(&name, leadership_delay_published(&group) - 0.1, published, 5e-4);
            let le_m = Group::le_m(n, 1.0, 1.0, 0.1, Loss::Uncorrelated(0.4));
            close(&name, last_send(&le_m), mapped, 5e-5);
            close(&name, last_send(&le_s(n, Loss::None)), 0.5, 0.0);
            close(&name, last_send(&le_s(n, Loss::Correlated(0.4))), 1.1667, 5e-5);
        }
    }

    #[test]
    fn other_losses_of_f1() {
        for (rate, expected) in [(0.1, 2.235), (0.2, 3.217), (0.6, 10.135), (0.8, 23.202)] {
            close("uc", last_send(&le_s(100, Loss::Uncorrelated(rate))), expected, 5e-4);
        }
        let expected = [0.5, 0.6111, 0.75, 0.9286, 1.1667, 1.5, 2.0, 2.8333, 4.5, 9.5];
        for (tenths, expected) in expected.into_iter().enumerate() {
            let rate = tenths as f64 / 10.0;
            close("corr", last_send(&le_s(50, Loss::Correlated(rate))), expected, 5e-5);
        }
        for (n, expected) in [(10, 0.0909), (100, 0.0099)] {
            let le_m = Group::le_m(n, 1.0, 1.0, 0.1, Loss::None);
            close("LE-M", last_send(&le_m), expected, 5e-5);
        }
    }

    /// Measured values and standard errors from the table of F1.
    #[test]
    fn a_3_the_first_announcement_is_not_in_vain_and_the_leader_no_receiver() {
        for (n, measured, error) in [
            (2, 1.169, 0.008),
            (5, 2.275, 0.010),
            (10, 3.080, 0.010),
            (50, 4.902, 0.023),
            (100, 5.610, 0.023),
            (200, 6.435, 0.036),
            (500, 7.440, 0.072),
        ] {
            let group = le_s(n, Loss::Uncorrelated(0.4));
            let published = leadership_delay_published(&group) - 0.1;
            corrects(&format!("N = {n}"), published, last_send(&group), measured, 4.0 * error);
            assert!(published - last_send(&group) >= 0.9, "announce-5.3-delay, N = {n}");
        }
        let two = le_s(2, Loss::Uncorrelated(0.4));
        close("N = 2", leadership_delay_published(&two) - leadership_delay(&two), 1.476, 5e-4);
        let lossless = le_s(7, Loss::Uncorrelated(0.0));
        assert_eq!(leadership_delay_published(&lossless) - leadership_delay(&lossless), 1.0);
    }

    /// A-21 and announce-fig-5.11: all `N` of AL announce together, one of LE-S does.
    /// More digits than the page prints: 5.882 is 5.88248, and 6.409 is 6.40948.
    #[test]
    fn congestion_alone_makes_the_lines_of_figure_5_11_cross() {
        for (n, al, le_s_send) in
            [(100, 5.249, 5.650), (150, 5.8825, 6.095), (200, 6.4095, 6.4095), (300, 7.331, 6.853)]
        {
            let congested = Loss::Uncorrelated(congested_rate(0.4, n));
            let name = format!("N = {n}");
            close(&name, last_send(&Group::le_a(n, 1.0, 0.1, congested)), al, 5e-4);
            close(&name, last_send(&le_s(n, Loss::Uncorrelated(0.4))), le_s_send, 5e-4);
        }
    }
}
