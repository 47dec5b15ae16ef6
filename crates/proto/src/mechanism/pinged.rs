//! How often a node is pinged, as the node itself sees it, and when that is too rarely.
//!
//! Source: Medley-F, §3.2.1 (active feedback, rules A1 to A4). The interval between pings is smoothed
//! by an exponentially weighted mean, so that one long gap among short ones raises no alarm.
//!
//! Departure: the published rule looks at the mean only when a ping arrives, so whoever is never
//! pinged never notices (M-5). [`Pinged::on_tick`] also weighs the silence so far, provisionally; and
//! since even that takes 500 time units after a busy past, a limit on silence alone can be set.

use core::hash::{Hash, Hasher};

use crate::{
    hash::Real,
    time::{Duration, Time},
};

/// When to call an interval too long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// `ACTIVE_TIMEOUT`: the longest mean interval that is no complaint, and the pause between two
    /// complaints. Raising it makes complaints later and rarer.
    pub interval: Duration,
    /// `α`: the weight of the newest interval, from 0 to 1. Raising it forgets faster.
    pub gain: f64,
    /// Complain after this much silence whatever the mean says (M-5).
    pub silence: Option<Duration>,
}

impl Hash for Patience {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { interval, gain, silence } = *self;
        (interval, Real(gain), silence).hash(state);
    }
}

/// The mean interval between pings received, and the last complaint about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pinged {
    start: Time,
    /// The mean in microseconds, and when the last ping came.
    seen: Option<(f64, Time)>,
    complained: Option<Time>,
}

impl Pinged {
    /// Not pinged yet, and listening since `start`.
    pub const fn new(start: Time) -> Self {
        Self { start, seen: None, complained: None }
    }

    /// The mean interval between pings; `None` before the first.
    pub fn interval(&self) -> Option<Duration> {
        self.seen.map(|(mean, _)| Duration::from_micros(libm::round(mean) as u64))
    }

    /// A2: a ping has come. Whether to complain that they come too rarely.
    pub fn on_ping(&mut self, now: Time, patience: &Patience) -> bool {
        let mean = match self.seen {
            None => now.since(self.start).as_micros() as f64,
            Some((mean, last)) => smooth(mean, now.since(last), patience.gain),
        };
        self.seen = Some((mean, now));
        mean > patience.interval.as_micros() as f64 && self.may_complain(now, patience)
    }

    /// A3: some time has passed. Whether to complain about it.
    pub fn on_tick(&mut self, now: Time, patience: &Patience) -> bool {
        self.is_silent(now, patience) && self.may_complain(now, patience)
    }

    /// Whether the mean would be too long were a ping to come at `now`.
    fn is_silent(&self, now: Time, patience: &Patience) -> bool {
        let last = self.seen.map_or(self.start, |(_, last)| last);
        if patience.silence.is_some_and(|silence| now.since(last) > silence) {
            return true;
        }
        match self.seen {
            None => now.since(self.start) >= patience.interval,
            Some((mean, last)) => {
                let provisional = smooth(mean, now.since(last), patience.gain);
                provisional > patience.interval.as_micros() as f64
            }
        }
    }

    /// A4: at most once per [`interval`](Patience::interval).
    fn may_complain(&mut self, now: Time, patience: &Patience) -> bool {
        let rested = self.complained.is_none_or(|last| now.since(last) >= patience.interval);
        if rested {
            self.complained = Some(now);
        }
        rested
    }
}

fn smooth(mean: f64, interval: Duration, gain: f64) -> f64 {
    (1.0 - gain) * mean + gain * interval.as_micros() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chapter's time unit: 100 ms.
    fn units(count: u64) -> Duration {
        Duration::from_millis(100 * count)
    }

    const fn patience() -> Patience {
        Patience { interval: Duration::from_secs(8), gain: 0.125, silence: None }
    }

    /// V6, where the sixth interval is the first to lift the mean above 80 units.
    #[test]
    fn the_mean_follows_the_intervals_and_the_sixth_is_too_long() {
        let mut now = Time::ZERO + units(20);
        let mut pinged = Pinged::new(Time::ZERO);
        pinged.on_ping(now, &patience());
        let intervals = [20, 100, 100, 200, 200, 200, 400];
        let means = [20.0, 30.0, 38.75, 58.906_25, 76.542_97, 91.975_10, 130.478_21];
        for (nth, (interval, mean)) in intervals.into_iter().zip(means).enumerate() {
            now += units(interval);
            let complains = pinged.on_ping(now, &patience());
            let found = pinged.interval().unwrap().as_secs_f64() * 10.0;
            assert!((found - mean).abs() < 1e-4, "{found} for {mean}");
            assert_eq!(complains, nth >= 5, "interval {nth}");
        }
    }

    /// V7, and M-5's remedy for it.
    #[test]
    fn silence_is_noticed_after_five_hundred_units_or_at_its_own_limit() {
        let mut pinged = Pinged::new(Time::ZERO);
        let last = Time::ZERO + units(20);
        pinged.on_ping(last, &patience());
        assert!(!pinged.is_silent(last + units(500), &patience()));
        assert!(pinged.is_silent(last + units(501), &patience()));
        let hardened = Patience { silence: Some(units(160)), ..patience() };
        assert!(!pinged.is_silent(last + units(160), &hardened));
        assert!(pinged.is_silent(last + units(161), &hardened));
    }

    #[test]
    fn whoever_was_never_pinged_complains_once_per_timeout() {
        let mut pinged = Pinged::new(Time::ZERO);
        let complaints = (0..40)
            .map(|tick| units(20 * tick))
            .filter(|&tick| pinged.on_tick(Time::ZERO + tick, &patience()));
        assert_eq!(complaints.take(3).last(), Some(units(240)), "at 80, 160 and 240");
    }
}
