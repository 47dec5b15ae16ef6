//! Who was heard last, in which life and at which sequence number.
//!
//! A network that duplicates and delays can hand over a dead leader's announcement long after its
//! death; whoever believes it revives a ghost. The guard keeps, for every sender, the largest
//! `(boot, sequence)` accepted, and accepts only larger ones. The table is bounded: senders are remote
//! input, so when it is full the one heard longest ago is forgotten.

use alloc::vec::Vec;

use crate::{
    id::{Boot, NodeId, Peer},
    time::Time,
};

/// The largest `(boot, sequence)` accepted from each of a bounded number of senders.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReplayGuard {
    /// Sorted by sender.
    last: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Entry {
    id: NodeId,
    boot: Boot,
    sequence: u64,
    heard: Time,
}

impl ReplayGuard {
    /// Nobody heard yet.
    pub const fn new() -> Self {
        Self { last: Vec::new() }
    }

    /// Whether a message of `from` with this sequence number is new; remembers it if so.
    ///
    /// `spare` is never forgotten to make room: the leader one follows.
    pub fn accept(&mut self, now: Time, from: Peer, sequence: u64, spare: Option<NodeId>) -> bool {
        match self.find(from.id) {
            Ok(at) => {
                let entry = &mut self.last[at];
                if (from.boot, sequence) <= (entry.boot, entry.sequence) {
                    return false;
                }
                *entry = Entry { id: from.id, boot: from.boot, sequence, heard: now };
            }
            Err(mut at) => {
                if self.last.len() >= CAPACITY {
                    let oldest = self.forget_oldest(spare);
                    at -= usize::from(oldest < at);
                }
                let entry = Entry { id: from.id, boot: from.boot, sequence, heard: now };
                self.last.insert(at, entry);
            }
        }
        true
    }

    /// Accepts nothing more from this life: it has said goodbye.
    pub fn bury(&mut self, now: Time, dead: Peer, spare: Option<NodeId>) {
        self.accept(now, dead, LAST, spare);
    }

    /// Whether this life has been buried and not been forgotten since.
    pub fn is_buried(&self, peer: Peer) -> bool {
        self.find(peer.id).is_ok_and(|at| {
            let entry = &self.last[at];
            entry.boot == peer.boot && entry.sequence == LAST
        })
    }

    fn find(&self, id: NodeId) -> Result<usize, usize> {
        self.last.binary_search_by_key(&id, |entry| entry.id)
    }

    /// How many senders are remembered.
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// Whether nobody has been heard.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    fn forget_oldest(&mut self, spare: Option<NodeId>) -> usize {
        let oldest = self
            .last
            .iter()
            .enumerate()
            .filter(|(_, entry)| Some(entry.id) != spare)
            .min_by_key(|(_, entry)| (entry.heard, entry.id))
            .map_or(0, |(index, _)| index);
        self.last.remove(oldest);
        oldest
    }
}

/// After this sequence number there is none: a tombstone.
const LAST: u64 = u64::MAX;

/// Senders remembered at most: 40 KiB. Arbitrary, but above any group one multicast segment carries.
const CAPACITY: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: u64, boot: u64) -> Peer {
        Peer::new(NodeId::new(id), Boot::new(boot))
    }

    #[test]
    fn only_a_newer_life_or_a_newer_message_is_accepted() {
        let mut guard = ReplayGuard::new();
        for (boot, sequence, fresh) in [
            (1, 5, true),
            (1, 5, false),
            (1, 4, false),
            (1, 6, true),
            (2, 0, true),
            (1, 99, false),
            (2, 0, false),
            (2, 1, true),
        ] {
            let accepted = guard.accept(Time::ZERO, peer(3, boot), sequence, None);
            assert_eq!(accepted, fresh, "boot {boot} sequence {sequence}");
        }
    }

    #[test]
    fn the_buried_are_not_heard_again_but_their_next_life_is() {
        let mut guard = ReplayGuard::new();
        for id in [3, 4] {
            if id == 3 {
                assert!(guard.accept(Time::ZERO, peer(id, 2), 7, None));
            }
            guard.bury(Time::ZERO, peer(id, 2), None);
            assert!(guard.is_buried(peer(id, 2)));
            assert!(!guard.accept(Time::ZERO, peer(id, 2), u64::MAX, None));
            guard.bury(Time::ZERO, peer(id, 1), None);
            assert!(guard.is_buried(peer(id, 2)), "an older grave does not open a newer one");
            assert!(guard.accept(Time::ZERO, peer(id, 3), 0, None));
            assert!(!guard.is_buried(peer(id, 3)));
        }
    }

    #[test]
    fn strangers_cannot_grow_the_table_nor_push_the_leader_out() {
        let mut guard = ReplayGuard::new();
        let leader = peer(500, 1);
        assert!(guard.accept(Time::ZERO, leader, 7, None));
        for stranger in 0..10 * CAPACITY as u64 {
            let now = Time::from_micros(1 + stranger);
            guard.accept(now, peer(1_000 + stranger, 1), 0, Some(leader.id));
        }
        assert_eq!(guard.len(), CAPACITY);
        assert!(guard.last.is_sorted_by_key(|entry| entry.id));
        assert!(!guard.accept(Time::NEVER, leader, 7, None), "the leader was forgotten");
    }
}
