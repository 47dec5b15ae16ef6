//! Who has which position in the book.

use alloc::vec::Vec;

use crate::id::NodeId;

/// Identities in ascending order, ours not among them.
///
/// Simulated nodes are numbered without gaps but their own. Then positions and identities follow from each
/// other and there is no list: every message asks for some, and in a large simulation each look into a list is a
/// cache miss.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ids {
    me: NodeId,
    book: Book,
}

#[derive(Clone, Debug, PartialEq)]
enum Book {
    Run(Run),
    List(Vec<NodeId>),
}

/// Numbers that follow one another, but for our own.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    first: u64,
    /// How far behind the first we would be; if not within, as far as can be.
    gap: u64,
    len: usize,
}

impl Run {
    /// These, which ascend, if they are a run: the ends tell.
    fn of(me: NodeId, first: Option<NodeId>, last: Option<NodeId>, len: usize) -> Option<Self> {
        let [first, last, me] = [first?, last?, me].map(NodeId::get);
        let within = first < me && me < last;
        let apart = len as u64 - u64::from(!within);
        let gap = if within { me - first } else { u64::MAX };
        (last - first == apart).then_some(Self { first, gap, len })
    }

    #[inline]
    fn get(&self, at: usize) -> NodeId {
        let ahead = at as u64;
        NodeId::new(self.first + ahead + u64::from(ahead >= self.gap))
    }

    #[inline]
    fn position(&self, id: NodeId) -> Option<usize> {
        let ahead = id.get().checked_sub(self.first).filter(|&ahead| ahead != self.gap)?;
        let at = usize::try_from(ahead - u64::from(ahead > self.gap)).ok()?;
        (at < self.len).then_some(at)
    }

    fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.len).map(|at| self.get(at))
    }
}

impl Ids {
    /// So many, which ascend, each once.
    pub(super) fn new(
        me: NodeId,
        ids: impl DoubleEndedIterator<Item = NodeId> + Clone,
        len: usize,
    ) -> Self {
        let (first, last) = (ids.clone().next(), ids.clone().next_back());
        let book = match Run::of(me, first, last, len) {
            Some(run) => Book::Run(run),
            None => {
                let mut list = Vec::with_capacity(len);
                list.extend(ids);
                Book::List(list)
            }
        };
        Self { me, book }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match &self.book {
            Book::Run(run) => run.len,
            Book::List(list) => list.len(),
        }
    }

    /// The identity at this position, which there must be.
    #[inline]
    pub(super) fn get(&self, at: usize) -> NodeId {
        match &self.book {
            Book::Run(run) => run.get(at),
            Book::List(list) => list[at],
        }
    }

    #[inline]
    pub(super) fn position(&self, id: NodeId) -> Option<usize> {
        match &self.book {
            Book::Run(run) => run.position(id),
            Book::List(list) => list.binary_search(&id).ok(),
        }
    }

    /// The first position behind `id`, known or not.
    pub(super) fn behind(&self, id: NodeId) -> usize {
        match &self.book {
            Book::Run(Run { first, gap, len }) => {
                let Some(ahead) = id.get().checked_sub(*first) else { return 0 };
                let up_to = (ahead - u64::from(ahead >= *gap)).saturating_add(1);
                usize::try_from(up_to).map_or(*len, |up_to| up_to.min(*len))
            }
            Book::List(list) => list.partition_point(|&other| other <= id),
        }
    }

    /// The position of `id`, which is not ours, and whether it is new.
    pub(super) fn admit(&mut self, id: NodeId) -> (usize, bool) {
        if let Some(at) = self.position(id) {
            return (at, false);
        }
        let at = self.behind(id);
        self.change(|list| list.insert(at, id));
        (at, true)
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.change(|list| {
            list.remove(at);
        });
    }

    fn change(&mut self, change: impl FnOnce(&mut Vec<NodeId>)) {
        let mut list = match &mut self.book {
            Book::Run(run) => run.ids().collect(),
            Book::List(list) => core::mem::take(list),
        };
        change(&mut list);
        let run = Run::of(self.me, list.first().copied(), list.last().copied(), list.len());
        self.book = run.map_or(Book::List(list), Book::Run);
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
            let mut ids = Ids::new(NodeId::new(me), [].into_iter(), 0);
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
                    prop_assert_eq!(ids.behind(id), listed.partition_point(|&other| other <= id));
                }
                let at_once = Ids::new(NodeId::new(me), listed.iter().copied(), listed.len());
                prop_assert_eq!(&ids, &at_once);
                prop_assert_eq!((0..ids.len()).map(|at| ids.get(at)).collect::<Vec<_>>(), listed);
            }
        }
    }

    #[test]
    fn the_numbers_of_a_simulation_are_a_run() {
        for me in 0..5 {
            let others = (0..5).filter(|&id| id != me).map(NodeId::new);
            let mut ids = Ids::new(NodeId::new(me), others, 4);
            assert!(matches!(ids.book, Book::Run(_)), "{me}");
            ids.admit(NodeId::new(9));
            assert!(matches!(ids.book, Book::List(_)), "{me}");
            ids.remove(4);
            assert!(matches!(ids.book, Book::Run(_)), "{me}");
        }
    }
}
