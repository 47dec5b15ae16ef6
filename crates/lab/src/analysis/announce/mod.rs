//! Announce-listen elections (thesis chapter 5, §5.3): closed forms, as published and as corrected.
//!
//! Notation: `N` processes, announce period `T_A`, listen timeout `T_L`, suppression interval
//! `T_S`, one-way delay `Δ`, loss rate `l`; `q_0` is the best process and `q_k` has `k` better
//! ones. Times are in seconds unless a function says "in units of". `A-n` is an erratum of
//! `docs/rules/announce.md`. At a rate of 1 what waits for a delivery is infinite.

pub mod delay;
pub mod inconsistent;
pub mod messages;
mod quadrature;
pub mod reestablish;
pub mod timers;
pub mod uncorrelated;

pub use delay::{Group, announcements_until_heard, leadership_delay};

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

/// `(1-x)^M` for `x` in `[0, 1]`, without losing the digits of a small `x`.
fn all_escape(x: f64, receivers: u32) -> f64 {
    if receivers == 0 { 1.0 } else { libm::exp(f64::from(receivers) * libm::log1p(-x)) }
}

/// `1-(1-x)^M`, likewise.
fn some_fall(x: f64, receivers: u32) -> f64 {
    if receivers == 0 { 0.0 } else { -libm::expm1(f64::from(receivers) * libm::log1p(-x)) }
}

/// `l^n`; libm's `pow` agrees that `0^0` is 1, which the lossless limits need.
fn power(rate: f64, exponent: u32) -> f64 {
    libm::pow(rate, f64::from(exponent))
}

#[cfg(test)]
use super::{close, simulates};

/// An erratum in numbers: beside what was measured, the published form fails and the corrected
/// passes.
#[cfg(test)]
#[track_caller]
fn corrects(what: &str, published: f64, corrected: f64, measured: f64, tolerance: f64) {
    close(what, corrected, measured, tolerance);
    let off = (published - measured).abs();
    assert!(off > tolerance, "{what}: published {published} passes beside {measured}");
}

#[cfg(test)]
mod tests {
    use super::reestablish::Timing;
    use super::*;

    fn all(n: u32, rate: f64) -> Vec<f64> {
        let timing = Timing { announce: 1.0, listen: 3.0, suppress: 0.9, delay: 0.1 };
        let mut values = vec![
            announcements_until_heard(n, rate),
            reestablish::departure_excess(n, rate),
            reestablish::departure_alone(&timing, rate),
            reestablish::false_departure_episode(n, rate, 3),
            reestablish::bye(&timing, 3, 0.2, rate),
            messages::first_round(n, 0.1, rate),
            messages::first_round_published(n, 0.1, rate),
            messages::total(n, 0.1, rate),
            messages::total_with_equal_periods(n, 0.1, rate),
            messages::suppression(n, 0.1, rate),
            messages::last_send(n, 0.1),
            uncorrelated::first_round_at_most(n, rate),
            uncorrelated::first_round_published(n, rate),
            timers::leaders_messages(n, 2, 0.1),
        ];
        values.extend(uncorrelated::first_round(n, rate));
        values.extend(uncorrelated::total(n, rate));
        for loss in [Loss::None, Loss::Correlated(rate), Loss::Uncorrelated(rate)] {
            values.extend([
                leadership_delay(&Group::le_m(n, 1.0, 1.0, 0.1, loss)),
                delay::leadership_delay_published(&Group::le_s(n, 1.0, 1.0, 0.1, loss)),
                reestablish::departure(&timing, n, loss),
                reestablish::better_joiner(&timing, n, loss),
                reestablish::worse_joiner(&timing, loss),
                inconsistent::false_departures(2.5, n, loss),
                messages::le_a(n, loss),
            ]);
        }
        values
    }

    #[test]
    fn limits_are_numbers_and_only_total_loss_takes_for_ever() {
        for n in [0, 1, 2, 3, 500] {
            for rate in [0.0, 1e-300, 1e-12, 0.4, 0.9, 1.0] {
                for (index, value) in all(n, rate).into_iter().enumerate() {
                    let finite = value.is_finite() || (value == f64::INFINITY && rate == 1.0);
                    assert!(finite, "value {index}, N = {n}, l = {rate}: {value}");
                    assert!(value >= 0.0, "value {index}, N = {n}, l = {rate}: {value}");
                }
            }
        }
    }
}
