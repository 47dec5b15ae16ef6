use std::collections::BTreeMap;

use bellwether_proto::{Duration, Epoch, NodeId, Time, keys::Slot};

/// At no instant may two own a key, and every owner's epoch is larger than its predecessor's. An owner has told up to
/// when it may act, and that stands: though it has crashed, sleeps, or has given the key away since, another may act only
/// after. Two lives of one node are two owners.
#[derive(Clone, Debug, Default)]
pub struct OneOwnerPerKey {
    slots: BTreeMap<Slot, Tenure>,
    gap: Option<Duration>,
    changes: u64,
    longest_unowned: Duration,
    overlap: Duration,
}

/// The last owner of a slot.
#[derive(Clone, Copy, Debug)]
struct Tenure {
    owner: NodeId,
    epoch: Epoch,
    /// The latest instant up to which it told that it may act.
    until: Time,
}

impl OneOwnerPerKey {
    /// Its name in reports.
    pub const NAME: &'static str = "one_owner_per_key";

    /// `owner` tells that it may act for a slot, under an epoch, up to an instant of the wall's clock.
    ///
    /// # Errors
    ///
    /// The two owners, or the two epochs.
    pub fn owns(
        &mut self,
        now: Time,
        owner: NodeId,
        slot: Slot,
        (epoch, until): (Epoch, Time),
    ) -> Result<(), String> {
        let next = Tenure { owner, epoch, until };
        let Some(last) = self.slots.insert(slot, next) else { return Ok(()) };
        if last.until < now {
            self.longest_unowned = self.longest_unowned.max(now.since(last.until));
        }
        if (last.owner, last.epoch) == (owner, epoch) {
            self.slots.insert(slot, Tenure { until: until.max(last.until), ..next });
            return Ok(());
        }
        self.changes += 1;
        let (slot, before) = (slot.number(), last.owner);
        if epoch <= last.epoch {
            let old = last.epoch;
            return Err(format!("slot={slot} epoch={old} ({before}) then={epoch} ({owner})"));
        }
        let gap = now.since(last.until.min(now));
        self.gap = Some(self.gap.map_or(gap, |least| least.min(gap)));
        if last.until > now {
            self.overlap += last.until.min(until).since(now);
            let over = last.until;
            return Err(format!(
                "slot={slot} owner={before} epoch={} until={over} other={owner} epoch={epoch}",
                last.epoch
            ));
        }
        Ok(())
    }

    /// How many slots have an owner that may act at `now`, as far as told.
    pub fn owned(&self, now: Time) -> usize {
        self.slots.values().filter(|tenure| tenure.until > now).count()
    }

    /// The shortest time from the last instant at which one owner could act to the first at which the next could.
    pub fn smallest_gap(&self) -> Option<Duration> {
        self.gap
    }

    /// How often an owner followed another.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// How long two could act for one slot, over all slots.
    pub fn overlap(&self) -> Duration {
        self.overlap
    }

    /// The longest that nobody could act for a slot, from its first owner to `now`.
    pub fn longest_unowned(&self, now: Time) -> Duration {
        let open = self.slots.values().filter(|tenure| tenure.until < now);
        let open = open.map(|tenure| now.since(tenure.until)).max();
        self.longest_unowned.max(open.unwrap_or(Duration::ZERO))
    }

    /// The situation this guards against, and whether it could have arisen so far.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("one owner of a key followed another", self.changes > 0)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::{Boot, Peer};

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn epoch(counter: u64, node: u64) -> Epoch {
        Epoch::mint(counter, Peer::new(NodeId::new(node), Boot::new(1)))
    }

    #[test]
    fn fires_when_the_next_owner_does_not_wait_for_what_was_told() {
        let [one, other] = [1, 2].map(NodeId::new);
        let slot = Slot::new(7);
        let mut invariant = OneOwnerPerKey::default();
        assert_eq!(invariant.owns(at(1), one, slot, (epoch(1, 1), at(4))), Ok(()));
        assert_eq!(invariant.owns(at(2), one, slot, (epoch(1, 1), at(3))), Ok(()), "less is told");
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.owns(at(3), other, Slot::new(8), (epoch(1, 2), at(9))), Ok(()));
        let double = invariant.owns(at(3), other, slot, (epoch(2, 2), at(9)));
        let told = "slot=7 owner=n1 epoch=1.1.1.0 until=4.000000s other=n2 epoch=2.2.1.0";
        assert_eq!(double, Err(told.into()), "what was told first stands");
        assert!(invariant.sometimes().1);
        assert_eq!(invariant.overlap(), Duration::from_secs(1));
        assert_eq!(invariant.smallest_gap(), Some(Duration::ZERO));
    }

    #[test]
    fn fires_when_an_epoch_does_not_grow_though_the_last_owner_is_gone() {
        let [one, other] = [1, 2].map(NodeId::new);
        let slot = Slot::new(7);
        let mut invariant = OneOwnerPerKey::default();
        assert_eq!(invariant.owns(at(1), one, slot, (epoch(5, 1), at(2))), Ok(()));
        let back = invariant.owns(at(6), other, slot, (epoch(4, 2), at(7)));
        assert_eq!(back, Err("slot=7 epoch=5.1.1.0 (n1) then=4.2.1.0 (n2)".into()));
        assert_eq!(invariant.longest_unowned(at(6)), Duration::from_secs(4));
        assert_eq!((invariant.owned(at(6)), invariant.owned(at(8))), (1, 0));
    }
}
