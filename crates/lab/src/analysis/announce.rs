//! Announce-listen elections (thesis chapter 5, §5.3): how long until all agree.
//!
//! Notation: `N` processes, announce period `T_A`, suppression interval `T_S`, one-way delay `Δ`, loss
//! rate `l`. Times are in seconds. Cold start, and nobody stops believing in a leader (`T_L = ∞`).

/// How messages are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Never.
    None,
    /// One coin for each message: all receivers lose it, or none.
    Correlated(f64),
    /// One coin for each message and receiver.
    Uncorrelated(f64),
}

/// A group at its cold start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// `N`, at least 2.
    pub processes: u32,
    /// `T_A`.
    pub announce: f64,
    /// `E[t]`, the mean wait of the best process before its first announcement: 0 for LE-A, `T_S/2` for
    /// LE-S with uniform timers.
    pub mean_wait: f64,
    /// `Δ`.
    pub delay: f64,
    /// `l` and its kind.
    pub loss: Loss,
}

/// F1: expected leadership delay, from the cold start until every process has heard the best one.
///
/// `E[t] + Δ + T_A·X`, where `X` is the expected number of announcements of the best process that are
/// lost on at least one receiver before all have heard one: the wait for its first announcement, the
/// flight, and a period for every announcement in vain. Infinite if everything is lost.
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
    let in_vain = match group.loss {
        Loss::None => 0.0,
        Loss::Correlated(rate) => rate / (1.0 - rate),
        Loss::Uncorrelated(rate) => announcements_until_heard(group.processes - 1, rate) - 1.0,
    };
    group.mean_wait + group.delay + group.announce * in_vain
}

/// `R_M(l)`: expected number of announcements, counted from one, until each of `M` receivers with
/// independent losses has heard one.
///
/// Summed as survival probabilities, `Σ_j 1-(1-l^j)^M`: the alternating binomial sum of the chapter has
/// lost all its digits by `M = 60` (A-5).
pub fn announcements_until_heard(receivers: u32, rate: f64) -> f64 {
    if rate >= 1.0 {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    let mut all_lost = 1.0;
    loop {
        let someone_waits = -libm::expm1(f64::from(receivers) * libm::log1p(-all_lost));
        sum += someone_waits;
        all_lost *= rate;
        if someone_waits < 1e-17 {
            return sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V19 of the announce digest.
    #[test]
    fn receivers_with_independent_losses() {
        for (receivers, expected) in [(1, 1.66667), (2, 2.14286), (9, 3.58765), (499, 7.91117)] {
            let value = announcements_until_heard(receivers, 0.4);
            assert!((value - expected).abs() < 5e-6, "R_{receivers} = {value}");
        }
    }

    /// P9: one receiver makes no difference between the kinds of loss, and no loss is the limit of both.
    #[test]
    fn kinds_of_loss_meet_where_they_must() {
        let group =
            |processes, loss| Group { processes, announce: 1.0, mean_wait: 0.5, delay: 0.1, loss };
        for rate in [0.0, 0.1, 0.5, 0.9] {
            let correlated = leadership_delay(&group(2, Loss::Correlated(rate)));
            let uncorrelated = leadership_delay(&group(2, Loss::Uncorrelated(rate)));
            assert!((correlated - uncorrelated).abs() < 1e-12, "l = {rate}");
        }
        assert_eq!(leadership_delay(&group(9, Loss::None)), 0.6);
        assert_eq!(leadership_delay(&group(9, Loss::Uncorrelated(0.0))), 0.6);
        assert_eq!(leadership_delay(&group(9, Loss::Correlated(1.0))), f64::INFINITY);
        assert_eq!(leadership_delay(&group(9, Loss::Uncorrelated(1.0))), f64::INFINITY);
    }

    /// The table of F1 for uncorrelated loss 0.4, where the published form is off by a period.
    #[test]
    fn the_corrected_table() {
        for (processes, delay_less_flight) in
            [(2, 1.1667), (5, 2.2710), (10, 3.0877), (50, 4.8885), (100, 5.6503), (500, 7.4112)]
        {
            let loss = Loss::Uncorrelated(0.4);
            let group = Group { processes, announce: 1.0, mean_wait: 0.5, delay: 0.1, loss };
            let value = leadership_delay(&group) - 0.1;
            assert!((value - delay_less_flight).abs() < 5e-5, "N = {processes}: {value}");
        }
    }
}
