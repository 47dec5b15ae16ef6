//! Leaders of components, found once for all nodes of one process.
//!
//! Nodes of a simulation come to know the same components one after the other, and each would reckon out the same
//! leader. The table is a cache of a function of the component alone: who finds something in it and who does not name the
//! same leader, so that machines behave alike with it and without.
//!
//! Entries are overwritten at will. One that two writers have mixed up fails its check, and counts as not found.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{id::NodeId, rng::mix};

/// Leaders and their scores, by the hash of a component. Copies are the same table.
#[derive(Clone, Debug)]
pub struct Memo(Arc<[Slot; SLOTS]>);

#[derive(Debug, Default)]
struct Slot {
    /// Mixes the hash with both others.
    check: AtomicU64,
    leader: AtomicU64,
    score: AtomicU64,
}

const SLOTS: usize = 512;

impl Default for Memo {
    fn default() -> Self {
        Self(Arc::new(core::array::from_fn(|_| Slot::default())))
    }
}

impl Memo {
    pub(super) fn get(&self, component: u64) -> Option<(NodeId, u64)> {
        let slot = self.slot(component);
        let (leader, score) = (slot.leader.load(Relaxed), slot.score.load(Relaxed));
        let found = slot.check.load(Relaxed) == check(component, leader, score);
        found.then_some((NodeId::new(leader), score))
    }

    pub(super) fn put(&self, component: u64, leader: NodeId, score: u64) {
        let slot = self.slot(component);
        slot.leader.store(leader.get(), Relaxed);
        slot.score.store(score, Relaxed);
        slot.check.store(check(component, leader.get(), score), Relaxed);
    }

    fn slot(&self, component: u64) -> &Slot {
        &self.0[component as usize % SLOTS]
    }
}

/// Never zero by accident alone: an empty slot holds the leader 0 with the score 0.
fn check(component: u64, leader: u64, score: u64) -> u64 {
    component ^ mix(leader ^ mix(score ^ u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_found_until_another_takes_its_place() {
        let memo = Memo::default();
        let of = |component| memo.get(component);
        assert_eq!((of(0), of(7)), (None, None), "nothing is known at first");
        memo.put(7, NodeId::new(3), 12);
        assert_eq!(of(7), Some((NodeId::new(3), 12)));
        assert_eq!(memo.clone().get(7), of(7), "copies are the same table");
        let other = 7 + SLOTS as u64;
        assert_eq!(of(other), None, "in the same place, but not the same");
        memo.put(other, NodeId::new(3), 12);
        assert_eq!((of(7), of(other)), (None, Some((NodeId::new(3), 12))));
    }

    #[test]
    fn an_entry_of_two_writers_is_none() {
        let memo = Memo::default();
        memo.put(7, NodeId::new(3), 12);
        memo.slot(7).score.store(11, Relaxed);
        assert_eq!(memo.get(7), None);
    }
}
