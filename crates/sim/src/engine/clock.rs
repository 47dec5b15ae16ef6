//! Clocks that run fast or slow.

use bellwether_proto::Time;

/// A node's clock: true time, until its rate is changed. It never goes back and never jumps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Clock {
    /// The true instant at which the rate last changed.
    since: Time,
    /// What the clock showed then.
    shown: Time,
    /// Local microseconds per million true ones.
    rate: u64,
}

impl Clock {
    pub(crate) const fn true_time() -> Self {
        Self { since: Time::ZERO, shown: Time::ZERO, rate: MILLION }
    }

    /// From `now` on, runs `ppm` parts per million fast (or slow, if negative).
    pub(crate) fn set_rate(&mut self, now: Time, ppm: i32) {
        self.shown = self.read(now);
        self.since = now;
        self.rate = MILLION.saturating_add_signed(i64::from(ppm)).max(1);
    }

    /// What it shows at the true instant `now`.
    pub(crate) fn read(&self, now: Time) -> Time {
        let elapsed = u128::from(now.since(self.since).as_micros());
        let local = elapsed * u128::from(self.rate) / u128::from(MILLION);
        Time::from_micros(self.shown.as_micros().saturating_add(clamp(local)))
    }

    /// The first true instant at which it shows `local` or more.
    pub(crate) fn when(&self, local: Time) -> Time {
        let ahead = u128::from(local.since(self.shown).as_micros());
        let elapsed = (ahead * u128::from(MILLION)).div_ceil(u128::from(self.rate));
        Time::from_micros(self.since.as_micros().saturating_add(clamp(elapsed)))
    }
}

fn clamp(micros: u128) -> u64 {
    u64::try_from(micros).unwrap_or(u64::MAX)
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_met_at_the_first_instant_the_clock_shows_it() {
        for ppm in [-100_000, -500, 0, 3, 500, 100_000] {
            let mut clock = Clock::true_time();
            clock.set_rate(Time::from_micros(1_000), ppm);
            for deadline in [1_000, 1_001, 5_003, 1_000_000, 77_777_777].map(Time::from_micros) {
                let at = clock.when(deadline);
                assert!(clock.read(at) >= deadline, "{ppm} ppm, {deadline}");
                let before = Time::from_micros(at.as_micros() - 1);
                assert!(at.as_micros() == 1_000 || clock.read(before) < deadline, "{ppm} ppm");
            }
        }
    }

    #[test]
    fn a_change_of_rate_does_not_move_the_hand() {
        let mut clock = Clock::true_time();
        clock.set_rate(Time::from_micros(500), 100_000);
        let change = Time::from_micros(1_000_500);
        let before = clock.read(change);
        assert_eq!(before, Time::from_micros(1_100_500));
        clock.set_rate(change, -100_000);
        assert_eq!(clock.read(change), before);
        assert_eq!(clock.read(Time::from_micros(2_000_500)), Time::from_micros(2_000_500));
    }
}
