//! What this node is good for, by its own record: the worth it announces in elections with `criterion = "learned"`.
//!
//! What others have against a node they say: they accuse it of having failed, and it hears that and contradicts. A crash
//! it finds out itself, at its next start, and a stall when it wakes. So a node can keep the books of what others have
//! learnt of it, and announce the balance like a configured priority. All others compare what it announces: how they
//! agree does not change.
//!
//! One sample an interval, the worst; every interval old ones count for a fiftieth less. It is announced in steps, so
//! that it is not news all the time, and written when it is announced.

use crate::time::{Duration, Time};

/// The record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    every: Duration,
    next: Time,
    /// Costs and number of samples, as far as they still count.
    cost: f64,
    count: f64,
    /// The worst since the last sample.
    pending: f64,
    announced: u32,
}

/// The record of a life, as it is kept: in millionths of samples.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct KeptRecord {
    /// What its samples cost, as far as they still count.
    pub cost: u64,
    /// How many they are.
    pub count: u64,
    /// Whether the life that wrote it said goodbye.
    pub ended_well: bool,
}

impl Record {
    /// Goes on from the record of the last life, which ended well if it says so.
    pub(super) fn begin(every: Duration, now: Time, past: Option<KeptRecord>) -> Self {
        let (mut cost, mut count) = (0.0, 0.0);
        if let Some(past) = past {
            (cost, count) = (past.cost as f64 / MILLION, past.count as f64 / MILLION);
            if !past.ended_well {
                (cost, count) = (cost + 1.0, count + 1.0);
            }
        }
        let mut record = Self { every, next: now + every, cost, count, pending: 0.0, announced: 0 };
        record.announced = record.balance();
        record
    }

    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Something was amiss.
    pub(super) fn doubt(&mut self, cost: f64) {
        self.pending = self.pending.max(cost);
    }

    /// If an interval is over: whether there is something new to announce.
    pub(super) fn sample(&mut self, now: Time) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + self.every;
        self.cost = self.cost * KEPT + core::mem::take(&mut self.pending);
        self.count = self.count * KEPT + 1.0;
        let balance = self.balance();
        core::mem::replace(&mut self.announced, balance) != balance
    }

    /// From 0 to 1000, more is better.
    pub(super) fn announced(&self) -> u32 {
        self.announced
    }

    fn balance(&self) -> u32 {
        let cost = (PRIOR + self.cost) / (1.0 + self.count);
        let steps = (1.0 - cost.clamp(0.0, 1.0)) * f64::from(MOST / STEP);
        libm::round(steps) as u32 * STEP
    }

    pub(super) fn kept(&self, ended_well: bool) -> KeptRecord {
        let millionths = |samples: f64| libm::round(samples.max(0.0) * MILLION) as u64;
        KeptRecord { cost: millionths(self.cost), count: millionths(self.count), ended_well }
    }
}

/// What a sample is worth after another.
const KEPT: f64 = 0.98;
/// Of a node without a record, with the weight of one sample.
const PRIOR: f64 = 0.1;
const MOST: u32 = 1000;
const STEP: u32 = 25;
const MILLION: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn live(disk: &mut Option<KeptRecord>, now: &mut Time, samples: u32) -> Record {
        let mut record = Record::begin(EVERY, *now, *disk);
        *disk = Some(record.kept(false));
        for _ in 0..samples {
            *now += EVERY;
            if record.sample(*now) {
                *disk = Some(record.kept(false));
            }
        }
        record
    }

    #[test]
    fn crashes_cost_and_good_behaviour_makes_up_for_them() {
        let mut disk = None;
        let mut now = Time::from_micros(1);
        assert_eq!(live(&mut disk, &mut now, 0).announced(), 900);
        assert_eq!(live(&mut disk, &mut now, 0).announced(), 450, "the last life just ended");
        // Up for two samples at a time.
        for _ in 0..10 {
            live(&mut disk, &mut now, 2);
        }
        let flapper = live(&mut disk, &mut now, 0).announced();
        assert!((200..700).contains(&flapper), "{flapper}");
        let reformed = live(&mut disk, &mut now, 150);
        assert!(reformed.announced() >= 950, "{reformed:?}");
        let steady = live(&mut disk, &mut now, 0);
        assert!(steady.announced() >= 925, "one crash after a long good life: {steady:?}");
        disk = Some(steady.kept(true));
        let again = live(&mut disk, &mut now, 0);
        assert_eq!(again.announced(), steady.announced(), "who leaves properly has not crashed");
    }

    #[test]
    fn what_is_amiss_counts_once_an_interval_and_small_changes_are_not_news() {
        let mut now = Time::from_micros(1);
        let mut record = live(&mut None, &mut now, 40);
        let before = record.announced();
        record.doubt(0.5);
        record.doubt(0.5);
        now += EVERY;
        record.sample(now);
        assert!(before - record.announced() <= STEP, "{record:?}");
        let changes = (0..40).filter(|_| {
            now += EVERY;
            record.sample(now)
        });
        assert!(changes.count() <= 1);
    }
}
