//! How far recorded lists disagree about who is there: the true `c` of the churn-tolerant elections.
//!
//! Source: §5.2; errata `C-n` are those of `docs/rules/churn-tolerant.md`. `c_i` is how many *other* live nodes have a
//! list that lacks the live node `i`; `c` is the largest of them. An election that asks `c + 1` nodes is safe, so this
//! is what an estimator of churn is judged by, and what Table 5.1 tabulates. Entries of dead nodes are no matter of `c`
//! but of `f`.
//!
//! A suspect still counts as listed (C-16), unless the trace was recorded
//! [otherwise](crate::lists::membership_trace::Suspects).
//!
//! Departure: answers of one election are taken at different times, so a node can be missed by `c + 1` responders
//! although never more than `c` lists lacked it at once (C-14). [`over_time`] therefore takes a window: a list lacks a
//! node if it did at any look within it. A window of one look is the published definition.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
};

use bellwether_proto::{NodeId, Time};

use crate::{
    lists::membership_trace::{Change, Feed, MembershipTrace},
    observe::Summary,
};

/// How far the lists disagreed at one look.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Inconsistency {
    /// The instant of the look.
    pub at: Time,
    /// How many nodes were live.
    pub live: u32,
    /// `c_i` of every live node that some other live node's list lacks.
    pub missing: BTreeMap<NodeId, u32>,
}

impl Inconsistency {
    /// `c`, the largest `c_i`.
    pub fn c(&self) -> u32 {
        self.missing.values().copied().max().unwrap_or(0)
    }
}

/// What `c` came to over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// The largest `c` of all looks.
    pub max: u32,
    /// Its mean, deviation and percentiles over the looks.
    pub summary: Summary,
}

impl Course {
    /// Sums up some looks; `None` if there are none.
    pub fn of<'a>(looks: impl IntoIterator<Item = &'a Inconsistency>) -> Option<Self> {
        let c: Vec<u32> = looks.into_iter().map(Inconsistency::c).collect();
        let summary = Summary::of(c.iter().map(|&c| f64::from(c)))?;
        Some(Self { max: c.into_iter().max()?, summary })
    }
}

/// `c_i` at every look, where a list lacks a node that it lacked at any of the last `window` looks. Only those count
/// that are live now, and only looks at which both were.
pub fn over_time(
    trace: &MembershipTrace,
    window: NonZeroUsize,
) -> impl Iterator<Item = Inconsistency> + '_ {
    let mut feeds = trace.feeds().peekable();
    let mut lists = BTreeMap::new();
    // Who lacks whom, and at which look last: subject first.
    let mut lacked = BTreeMap::new();
    (0..trace.looks()).map(move |look| {
        let at = Time::ZERO + trace.interval() * look as u64;
        while let Some(feed) = feeds.next_if(|feed| feed.at == at) {
            apply(&mut lists, feed);
        }
        let live: BTreeSet<NodeId> = running(&lists).collect();
        for &observer in &live {
            for &subject in live.difference(&lists[&observer]) {
                lacked.insert((subject, observer), look);
            }
        }
        lacked.retain(|_, last| *last + window.get() > look);
        let mut missing = BTreeMap::new();
        let up = |node: &NodeId| live.contains(node);
        for (subject, _) in lacked.keys().filter(|(subject, observer)| up(subject) && up(observer))
        {
            *missing.entry(*subject).or_insert(0) += 1;
        }
        Inconsistency { at, live: live.len() as u32, missing }
    })
}

fn apply(lists: &mut BTreeMap<NodeId, BTreeSet<NodeId>>, feed: Feed) {
    let list = lists.entry(feed.node).or_default();
    match feed.change {
        Change::Up { .. } | Change::Suspicions(_) => list.insert(feed.member),
        Change::Down => list.remove(&feed.member),
    };
}

/// Who lists itself is running, see [`membership_trace`](crate::lists::membership_trace).
fn running(lists: &BTreeMap<NodeId, BTreeSet<NodeId>>) -> impl Iterator<Item = NodeId> + '_ {
    lists.iter().filter(|(node, list)| list.contains(*node)).map(|(&node, _)| node)
}

#[cfg(test)]
mod tests {
    use bellwether_proto::Duration;

    use super::*;

    /// Writes a trace by hand: for each look, who has changed its list, and to what (the node itself included).
    fn trace(nodes: u32, looks: &[&[(u32, &[u32])]]) -> MembershipTrace {
        let mut lists: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut bytes = b"BWMT\x01".to_vec();
        // Every number is below 128 and so one byte: a second is not, and has three.
        bytes.extend([nodes as u8, 0xc0, 0x84, 0x3d]);
        bytes.extend([0; 16]);
        bytes.push(looks.len() as u8);
        for look in looks {
            bytes.push(look.len() as u8);
            let mut next = 0;
            for &(node, list) in *look {
                let list: BTreeSet<u32> = list.iter().copied().collect();
                let before = lists.insert(node, list.clone()).unwrap_or_default();
                let changes: Vec<u32> = before.symmetric_difference(&list).copied().collect();
                bytes.extend([(node - next) as u8, changes.len() as u8]);
                next = node + 1;
                let mut after = 0;
                for subject in changes {
                    bytes.extend([(subject - after) as u8, u8::from(list.contains(&subject))]);
                    after = subject + 1;
                }
            }
        }
        MembershipTrace::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}"))
    }

    /// `c_i` of all at each look.
    fn missing(trace: &MembershipTrace, window: usize) -> Vec<Vec<(u64, u32)>> {
        let pairs = |look: Inconsistency| {
            look.missing.into_iter().map(|(id, count)| (id.get(), count)).collect()
        };
        over_time(trace, NonZeroUsize::new(window).unwrap()).map(pairs).collect()
    }

    /// Node 0 flaps between the lists of 1 and 2; node 3 dies while everybody lists it.
    fn flapping() -> MembershipTrace {
        trace(
            4,
            &[
                &[(0, &[0, 1, 2, 3]), (1, &[0, 1, 2, 3]), (2, &[0, 1, 2, 3]), (3, &[0, 1, 3])],
                &[(1, &[1, 2, 3])],
                &[(1, &[0, 1, 2, 3]), (2, &[1, 2, 3])],
                &[(3, &[])],
                &[(2, &[0, 1, 2, 3])],
            ],
        )
    }

    #[test]
    fn lists_of_other_live_nodes_that_lack_a_live_node_are_counted() {
        let looks = missing(&flapping(), 1);
        assert_eq!(looks[0], [(2, 1)], "missing from node 3's list");
        assert_eq!(looks[1], [(0, 1), (2, 1)]);
        assert_eq!(looks[2], [(0, 1), (2, 1)]);
        assert_eq!(looks[3], [(0, 1)], "the dead lack nobody, and are no matter of c");
        assert_eq!(looks[4], []);
        let looks: Vec<_> = over_time(&flapping(), NonZeroUsize::MIN).collect();
        assert_eq!(looks.iter().map(|look| look.live).collect::<Vec<_>>(), [4, 4, 4, 3, 3]);
        assert_eq!(looks[3].at, Time::ZERO + Duration::from_secs(3));
        let course = Course::of(&looks).unwrap();
        assert_eq!((course.max, course.summary.mean), (1, 0.8));
        assert_eq!(Course::of([]), None);
    }

    /// C-14: never missing from two lists at once, and still two responders can both have lacked it.
    #[test]
    fn over_a_window_flapping_adds_up() {
        let looks = missing(&flapping(), 2);
        assert_eq!(looks[2], [(0, 2), (2, 1)]);
        assert_eq!(looks[3], [(0, 1)], "node 1 had it again, and node 3 is gone");
        assert_eq!(looks[4], [(0, 1)]);
    }

    #[test]
    fn complete_lists_and_no_lists_are_no_churn() {
        assert_eq!(
            missing(&trace(2, &[&[(0, &[0, 1]), (1, &[0, 1])], &[]]), 3),
            [[], []] as [[_; 0]; 2]
        );
        assert_eq!(missing(&trace(2, &[&[(0, &[1])]]), 1), [[]] as [[_; 0]; 1], "not running");
        assert_eq!(missing(&trace(1, &[]), 1).len(), 0);
    }
}
