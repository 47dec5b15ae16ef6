//! The average over rounds that Feedback and Sample-Window keep.
//!
//! Source: §7.2.2, Equation 7.1: `c2 := α·c1 + (1-α)·c2`. One round may be skewed; the average of many
//! follows slowly. Sample-Window is this over the [`Sample`](super::zscore::Sample) of each round.
//!
//! Departure: the author's code rounds `c2` after every round, so that it stops short of its goal by up to
//! `1/(2α)` (C-29). Here it is kept as it is and rounded where it is used.

/// A smoothed estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    c: f64,
    gain: f64,
}

impl Window {
    /// Starts from an assumption. `gain` is `α`, the weight of the newest round from 0 to 1: 0.1 in the
    /// text, 0.2 in the figures. Raising it forgets faster.
    pub fn new(start: f64, gain: f64) -> Self {
        let gain = if gain.is_nan() { 0.0 } else { gain.clamp(0.0, 1.0) };
        Self { c: if start.is_finite() { start.max(0.0) } else { 0.0 }, gain }
    }

    /// A round came to `c1`. What is no number is no round.
    pub fn on_round(&mut self, c1: f64) {
        if c1.is_finite() {
            self.c = self.gain * c1.max(0.0) + (1.0 - self.gain) * self.c;
        }
    }

    /// The estimate `c2`.
    pub fn c(&self) -> f64 {
        self.c
    }

    /// The same rounds from another start: when what was learnt no longer holds.
    pub fn restart(&mut self, start: f64) {
        *self = Self::new(start, self.gain);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// TV19: rounded each step, the published state stays at 10 for ever.
    #[test]
    fn small_steps_add_up() {
        let mut window = Window::new(10.0, 0.2);
        let mut rounded = 10.0;
        for _ in 0..60 {
            window.on_round(12.0);
            rounded = libm::round(0.2 * 12.0 + 0.8 * rounded);
        }
        assert_eq!(rounded, 10.0);
        assert!((window.c() - 12.0).abs() < 1e-4, "{window:?}");
        let step = |gain, c1| {
            let mut window = Window::new(10.0, gain);
            window.on_round(c1);
            libm::round(window.c()) != 10.0
        };
        assert_eq!(
            [step(0.2, 12.5), step(0.2, 12.51), step(0.1, 14.9), step(0.1, 15.1)],
            [
                // Two and a half is rounded away from zero: 10.5 just moves.
                true, true, false, true
            ]
        );
    }

    proptest! {
        #[test]
        fn it_stays_between_what_it_was_and_what_it_hears(
            start in 0.0..1e6_f64,
            gain: f64,
            rounds in prop::collection::vec(prop_oneof![0.0..1e6_f64, any::<f64>()], 0..20),
        ) {
            let mut window = Window::new(start, gain);
            for c1 in rounds {
                let before = window.c();
                window.on_round(c1);
                let (low, high) = (before.min(c1.max(0.0)), before.max(c1));
                let room = 1e-9 * high.abs().max(1.0);
                let inside = window.c() >= low - room && window.c() <= high + room;
                prop_assert!(window.c() == before || inside, "{before}, {c1}: {window:?}");
                prop_assert!(window.c().is_finite());
            }
        }
    }
}
