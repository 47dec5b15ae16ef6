//! Who has which position in the book.

use alloc::vec::Vec;

use crate::id::NodeId;

/// Identities in ascending order, ours not among them.
///
/// Simulated nodes are numbered without gaps but their own. Then positions and identities follow from each
/// other: every message asks for some, and in a large simulation each look into the list is a cache miss.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ids {
    me: NodeId,
    list: Vec<NodeId>,
    run: Option<Run>,
}

/// Numbers that follow one another, but for our own.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    first: u64,
    /// How far behind the first we would be; if not within, as far as can be.
    gap: u64,
}

impl Ids {
    /// None, with room for some.
    pub(super) fn with_capacity(me: NodeId, capacity: usize) -> Self {
        Self { me, list: Vec::with_capacity(capacity), run: None }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The identity at this position, which there must be.
    #[inline]
    pub(super) fn get(&self, at: usize) -> NodeId {
        match self.run {
            Some(Run { first, gap }) => {
                let ahead = at as u64;
                NodeId::new(first + ahead + u64::from(ahead >= gap))
            }
            None => self.list[at],
        }
    }

    #[inline]
    pub(super) fn position(&self, id: NodeId) -> Option<usize> {
        let Some(Run { first, gap }) = self.run else { return self.list.binary_search(&id).ok() };
        let ahead = id.get().checked_sub(first).filter(|&ahead| ahead != gap)?;
        let at = usize::try_from(ahead - u64::from(ahead > gap)).ok()?;
        (at < self.list.len()).then_some(at)
    }

    /// The first position behind `id`, known or not.
    pub(super) fn behind(&self, id: NodeId) -> usize {
        self.list.partition_point(|&other| other <= id)
    }

    /// The position of `id`, which is not ours, and whether it is new.
    pub(super) fn admit(&mut self, id: NodeId) -> (usize, bool) {
        // Lists come in order.
        let last = self.list.last().is_none_or(|&last| last < id);
        match if last { Err(self.list.len()) } else { self.list.binary_search(&id) } {
            Ok(at) => (at, false),
            Err(at) => {
                self.list.insert(at, id);
                self.run = self.run();
                (at, true)
            }
        }
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.list.remove(at);
        self.run = self.run();
    }

    /// Whether they are a run: in ascending order, the ends tell.
    fn run(&self) -> Option<Run> {
        let [first, last] = [self.list.first()?, self.list.last()?].map(|id| id.get());
        let me = self.me.get();
        let within = first < me && me < last;
        let apart = self.list.len() as u64 - u64::from(!within);
        let gap = if within { me - first } else { u64::MAX };
        (last - first == apart).then_some(Run { first, gap })
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Runs, with and without ourselves within, and lists that are none.
        #[test]
        fn positions_are_those_of_an_ordered_list(
            me in 0..8_u64,
            changes in prop::collection::vec((0..8_u64, any::<bool>()), 0..40),
        ) {
            let mut ids = Ids::with_capacity(NodeId::new(me), 0);
            let mut expected = BTreeSet::new();
            for (number, come) in changes.into_iter().filter(|&(number, _)| number != me) {
                let id = NodeId::new(number);
                if come {
                    let (at, new) = ids.admit(id);
                    prop_assert_eq!(new, expected.insert(id));
                    prop_assert_eq!(ids.get(at), id);
                } else if let Some(at) = ids.position(id) {
                    ids.remove(at);
                    expected.remove(&id);
                }
                let listed: Vec<NodeId> = expected.iter().copied().collect();
                prop_assert_eq!(ids.len(), listed.len());
                for id in (0..10).chain([u64::MAX]).map(NodeId::new) {
                    prop_assert_eq!(ids.position(id), listed.binary_search(&id).ok());
                }
                prop_assert_eq!((0..ids.len()).map(|at| ids.get(at)).collect::<Vec<_>>(), listed);
            }
        }
    }

    #[test]
    fn the_numbers_of_a_simulation_are_a_run() {
        for me in 0..5 {
            let mut ids = Ids::with_capacity(NodeId::new(me), 4);
            for id in (0..5).filter(|&id| id != me) {
                assert!(ids.admit(NodeId::new(id)).1);
            }
            assert!(ids.run.is_some(), "{me}");
            ids.admit(NodeId::new(9));
            assert!(ids.run.is_none(), "{me}");
        }
    }
}
