//! What this node is good for, by its own record: the worth it announces in eventual elections with `criterion =
//! "learned"`.
//!
//! What others have against a node they say: they accuse it of having failed, and it hears that and contradicts. A crash it
//! finds out itself, at its next start, and a stall when it wakes. So a node can keep the books of what others have learnt
//! of it, and announce the balance like a configured priority. All others compare what it announces: how they
//! agree does not change.
//!
//! One sample an interval, the worst; every interval old ones count for a fiftieth less. It is announced in steps, so that it
//! is not news all the time, and written when it is announced.

use super::*;
use crate::store::Worth as Record;

/// The record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Worth {
    every: Duration,
    next: Time,
    /// Costs and number of samples, as far as they still count.
    cost: f64,
    count: f64,
    /// The worst since the last sample.
    pending: f64,
    announced: u32,
}

impl Worth {
    /// Goes on from the record of the last life, which ended well if it says so.
    pub(super) fn begin(every: Duration, now: Time, store: &mut Store) -> Self {
        let (mut cost, mut count) = (0.0, 0.0);
        if let Some(record) = store.worth() {
            (cost, count) = (record.cost, record.count);
            if !record.ended_well {
                (cost, count) = (cost + 1.0, count + 1.0);
            }
        }
        let next = now + every;
        let mut worth = Self { every, next, cost, count, pending: 0.0, announced: 0 };
        worth.announced = worth.balance();
        worth.keep(false, store);
        worth
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
        steps.round() as u32 * STEP
    }

    pub(super) fn keep(&self, ended_well: bool, store: &mut Store) {
        let record = Record { cost: self.cost, count: self.count, ended_well };
        // A record that cannot be written makes this node look as good as it was; its tokens are another matter.
        let _ = store.keep_worth(record);
    }
}

impl Core {
    /// Something was amiss with this node.
    pub(super) fn doubt_ourselves(&mut self, cost: f64) {
        if let Some(worth) = &mut self.worth {
            worth.doubt(cost);
        }
    }

    /// Announces what we are worth by now.
    pub(super) fn weigh(&mut self, now: Time, inbox: &Inbox) {
        let Some(worth) = self.worth.as_mut() else { return };
        if worth.sample(now) {
            worth.keep(false, &mut self.store);
            self.take_worth();
            self.introduce(now, inbox);
        }
    }

    /// Puts it where priorities are.
    pub(super) fn take_worth(&mut self) {
        let Some(worth) = self.worth.as_ref().map(Worth::announced) else { return };
        for seat in self.settings.elections.iter_mut().filter(|seat| seat.learns) {
            seat.standing.attribute = worth;
        }
    }
}

/// What a sample is worth after another.
const KEPT: f64 = 0.98;
/// Of a node without a record, with the weight of one sample.
const PRIOR: f64 = 0.1;
const MOST: u32 = 1000;
const STEP: u32 = 25;

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn live(store: &mut Store, now: &mut Time, samples: u32) -> Worth {
        let mut worth = Worth::begin(EVERY, *now, store);
        for _ in 0..samples {
            *now += EVERY;
            if worth.sample(*now) {
                worth.keep(false, store);
            }
        }
        worth
    }

    #[test]
    fn crashes_cost_and_good_behaviour_makes_up_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut now = Time::from_micros(1);
        let open = || Store::open(Some(folder.path())).unwrap();
        assert_eq!(live(&mut open(), &mut now, 0).announced(), 900);
        assert_eq!(live(&mut open(), &mut now, 0).announced(), 450, "the last life just ended");
        // Up for two samples at a time.
        for _ in 0..10 {
            live(&mut open(), &mut now, 2);
        }
        let flapper = live(&mut open(), &mut now, 0).announced();
        assert!((200..700).contains(&flapper), "{flapper}");
        let reformed = live(&mut open(), &mut now, 150);
        assert!(reformed.announced() >= 950, "{reformed:?}");
        let mut store = open();
        let steady = live(&mut store, &mut now, 0);
        assert!(steady.announced() >= 925, "one crash after a long good life: {steady:?}");
        steady.keep(true, &mut store);
        let again = live(&mut open(), &mut now, 0);
        assert_eq!(again.announced(), steady.announced(), "who leaves properly has not crashed");
    }

    #[test]
    fn what_is_amiss_counts_once_an_interval_and_small_changes_are_not_news() {
        let folder = tempfile::tempdir().unwrap();
        let mut now = Time::from_micros(1);
        let mut worth = live(&mut Store::open(Some(folder.path())).unwrap(), &mut now, 40);
        let before = worth.announced();
        worth.doubt(0.5);
        worth.doubt(0.5);
        now += EVERY;
        worth.sample(now);
        assert!(before - worth.announced() <= STEP, "{worth:?}");
        let changes = (0..40).filter(|_| {
            now += EVERY;
            worth.sample(now)
        });
        assert!(changes.count() <= 1);
    }
}
