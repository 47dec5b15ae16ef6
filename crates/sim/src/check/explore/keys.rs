//! What is promised of keys, judged in every history of a few machines.

use bellwether_proto::{Duration, Peer, Time, keys::Keys, membership::ring::RingEvent};

use super::{End, Judge, Step};
use crate::{
    invariant::{NobodyBuriedAlive, OneOwnerPerKey},
    observe::RingMember,
};

/// What is promised of keys, looked at in every step of a history: a key never has two owners, every owner's epoch is
/// larger than its predecessor's, and nobody is buried alive.
#[derive(Clone, Debug, Default)]
pub struct KeyJudge {
    alive: NobodyBuriedAlive,
    owners: OneOwnerPerKey,
    owned: bool,
}

/// What was counted in histories of keys.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct KeyTally {
    /// Histories in which one owner of a key followed another.
    pub followed: u64,
    /// The least time from one owner to the next.
    pub smallest_gap: Option<Duration>,
    /// Histories at whose end every key that ever had an owner had one.
    pub owned: u64,
    /// Those at whose end some had none.
    pub unowned: u64,
}

impl Judge<Keys> for KeyJudge {
    type Tally = KeyTally;

    fn step(&mut self, step: &Step<'_, Keys>) -> Result<(), String> {
        let (ring, id) = (step.machine.ring(), step.peer.id);
        for (slot, epoch, until) in step.machine.owned() {
            let until = step.wall(until);
            if until > step.now {
                self.owners.owns(step.now, id, slot, (epoch, until))?;
            }
        }
        self.alive.is(id, ring.is_active().then_some(ring.life()));
        for event in step.events() {
            if let Some(RingEvent::Buried { life, .. }) = Keys::ring_event(event) {
                self.alive.buries(id, *life)?;
            }
        }
        Ok(())
    }

    fn crashed(&mut self, _now: Time, peer: Peer) {
        self.alive.is(peer.id, None);
    }

    fn ended(&mut self, end: &End<'_, Keys>) -> Result<(), String> {
        self.owned = self.owners.longest_unowned(end.now) < Duration::from_secs(5);
        Ok(())
    }

    fn tally(&self, tally: &mut KeyTally) {
        let gap = self.owners.smallest_gap();
        let (owned, followed) = (u64::from(self.owned), u64::from(self.owners.changes() > 0));
        let other = KeyTally { followed, smallest_gap: gap, owned, unowned: 1 - owned };
        <Self as Judge<Keys>>::merge(tally, other);
    }

    fn merge(tally: &mut KeyTally, other: KeyTally) {
        tally.followed += other.followed;
        let gaps = [tally.smallest_gap, other.smallest_gap];
        tally.smallest_gap = gaps.into_iter().flatten().min();
        tally.owned += other.owned;
        tally.unowned += other.unowned;
    }
}
