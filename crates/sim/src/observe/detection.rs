//! How failures are found and how the news spreads: what a membership is measured by.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{
    Duration, Effect, EffectOf, Machine, NodeId, Time, membership::medley::MembershipEvent,
};

use crate::{
    engine::{Observer, State},
    observe::Favourite,
    world::Network,
};

/// Watches who takes whom off its list.
#[derive(Clone, Debug, Default)]
pub struct Detection {
    /// Nodes that are down, and since when.
    down: BTreeMap<NodeId, Time>,
    /// For each crashed node, when each live node took it off its list.
    removed: BTreeMap<NodeId, BTreeMap<NodeId, Time>>,
    /// Nodes that were frozen, or cut off from many, at any time.
    unwell: BTreeSet<NodeId>,
    false_suspicions: u32,
    false_removals: u32,
    healthy_removals: u32,
}

/// What the crash of one node came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detected {
    /// From the crash to the first live node that took it off its list.
    pub first: Duration,
    /// From then to the last live node that did.
    pub spread: Duration,
    /// From then to the median live node.
    pub median_spread: Duration,
    /// From the crash to a live node's removal, on average over those that did.
    pub mean: f64,
    /// Live nodes that never did, as a share of all live nodes.
    pub incomplete: f64,
}

impl Detection {
    /// Nobody is down yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node stopped without a word.
    pub fn crashed(&mut self, now: Time, node: NodeId) {
        self.down.insert(node, now);
        // What it has taken off its own list is of no interest any more.
        self.removed.values_mut().for_each(|by| {
            by.remove(&node);
        });
    }

    /// A node is running again; what was found out about its crash is history.
    pub fn started(&mut self, node: NodeId) {
        self.down.remove(&node);
        self.removed.remove(&node);
    }

    /// `observer` suspects `subject`.
    pub fn suspected(&mut self, subject: NodeId) {
        self.false_suspicions += u32::from(!self.down.contains_key(&subject));
    }

    /// `observer` took `subject` off its list.
    pub fn removed(&mut self, now: Time, observer: NodeId, subject: NodeId) {
        if self.down.contains_key(&subject) {
            self.removed.entry(subject).or_default().entry(observer).or_insert(now);
        } else {
            self.false_removals += 1;
            self.healthy_removals += u32::from(!self.unwell.contains(&subject));
        }
    }

    /// A node was frozen or cut off from many: who removes it from now on may have a point.
    pub fn unwell(&mut self, node: NodeId) {
        self.unwell.insert(node);
    }

    /// Removals of nodes that were up and had never been unwell.
    pub fn healthy_removals(&self) -> u32 {
        self.healthy_removals
    }

    /// Suspicions of nodes that were up.
    pub fn false_suspicions(&self) -> u32 {
        self.false_suspicions
    }

    /// Removals of nodes that were up.
    pub fn false_removals(&self) -> u32 {
        self.false_removals
    }

    /// Crashes that nobody has found.
    pub fn undetected(&self) -> u32 {
        let found = |subject| self.removed.get(subject).is_some_and(|by| !by.is_empty());
        self.down.keys().filter(|&subject| !found(subject)).count() as u32
    }

    /// What each crash came to that at least one of the `live` nodes found.
    pub fn detected(&self, live: u32) -> Vec<Detected> {
        let one = |(subject, &crash): (&NodeId, &Time)| {
            let mut times: Vec<Time> = self.removed.get(subject)?.values().copied().collect();
            times.sort_unstable();
            let (&first, &last) = (times.first()?, times.last()?);
            let sum: f64 = times.iter().map(|at| at.since(crash).as_secs_f64()).sum();
            let median = times.get(live.div_ceil(2) as usize - 1).unwrap_or(&last);
            Some(Detected {
                first: first.since(crash),
                spread: last.since(first),
                median_spread: median.since(first),
                mean: sum / times.len() as f64,
                incomplete: 1.0 - times.len() as f64 / f64::from(live),
            })
        };
        self.down.iter().filter_map(one).collect()
    }
}

/// Watches the events of a membership.
#[derive(Clone, Debug, Default)]
pub struct DetectionWatch(pub Detection);

impl<M: Machine<Event = MembershipEvent>> Observer<M> for DetectionWatch {
    fn started(&mut self, _now: Time, node: NodeId, _state: State) {
        self.0.started(node);
    }

    fn effect(&mut self, now: Time, node: NodeId, effect: &EffectOf<M>) {
        match effect {
            Effect::Emit(MembershipEvent::Suspected { id, .. }) => self.0.suspected(*id),
            Effect::Emit(MembershipEvent::Failed { id, .. } | MembershipEvent::Left(id)) => {
                self.0.removed(now, node, *id);
            }
            _ => {}
        }
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        self.0.crashed(now, node);
    }

    fn paused(&mut self, _now: Time, node: NodeId) {
        self.0.unwell(node);
    }

    fn topology(&mut self, _now: Time, network: &Network) {
        network.mostly_cut_off().for_each(|node| self.0.unwell(NodeId::new(u64::from(node))));
    }
}

impl Favourite for DetectionWatch {
    fn favourite(&self) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn id(node: u64) -> NodeId {
        NodeId::new(node)
    }

    #[test]
    fn a_crash_is_found_first_spread_and_sometimes_missed() {
        let mut detection = Detection::new();
        detection.crashed(at(10), id(4));
        for (seconds, observer) in [(28, 2), (30, 0), (35, 1), (31, 0)] {
            detection.removed(at(seconds), id(observer), id(4));
        }
        let found = detection.detected(4);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].first, Duration::from_secs(18));
        assert_eq!(found[0].spread, Duration::from_secs(7));
        assert_eq!(found[0].median_spread, Duration::from_secs(2), "the second of four");
        assert_eq!(found[0].mean, (18.0 + 20.0 + 25.0) / 3.0);
        assert_eq!(found[0].incomplete, 0.25);
        assert_eq!(detection.false_removals(), 0);
    }

    #[test]
    fn a_crash_that_nobody_found_is_counted() {
        let mut detection = Detection::new();
        for node in [4, 5, 6] {
            detection.crashed(at(10), id(node));
        }
        detection.removed(at(28), id(0), id(4));
        detection.removed(at(29), id(1), id(5));
        assert_eq!((detection.detected(4).len(), detection.undetected()), (2, 1));
        detection.crashed(at(30), id(1));
        assert_eq!(
            detection.undetected(),
            3,
            "whoever found it is gone too, and was not found itself"
        );
        detection.started(id(1));
        assert_eq!(detection.undetected(), 2);
    }

    #[test]
    fn accusing_the_living_is_counted_apart() {
        let mut detection = Detection::new();
        detection.suspected(id(3));
        detection.removed(at(5), id(1), id(3));
        detection.crashed(at(6), id(3));
        detection.suspected(id(3));
        assert_eq!((detection.false_suspicions(), detection.false_removals()), (1, 1));
        assert_eq!(detection.detected(4), [], "a removal before the crash is no detection");
        detection.removed(at(9), id(0), id(3));
        detection.started(id(3));
        assert_eq!(detection.detected(4), []);
    }
}
