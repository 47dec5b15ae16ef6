//! Who names whom, when all agree, and for how long they do not.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{Duration, NodeId, Time};

/// Watches the answers of all nodes.
///
/// *Agreed* means: in every component (live nodes that can talk to each other both ways) all name the
/// same leader, it is one of them, and it names itself. A spell is judged by its length: what begins
/// and ends at one instant, between two events of that instant, never was.
#[derive(Clone, Debug)]
pub struct Agreement {
    names: Vec<Option<NodeId>>,
    /// Component of each node; `None` while it is down.
    component: Vec<Option<u32>>,
    /// Live nodes of each component.
    sizes: BTreeMap<u32, u32>,
    /// How many nodes, the first ones, elect by majority; none if a majority is not asked for.
    voters: u32,
    /// Of those, live ones of each component.
    present: BTreeMap<u32, u32>,
    /// Whether nodes may give up leading when they are cut off, and which are.
    stops_when_cut_off: bool,
    cut_off: CutOff,
    /// How many nodes of a component name this leader.
    votes: BTreeMap<(u32, Option<NodeId>), u32>,
    /// Components that agree.
    agreeing: usize,
    leading: u32,
    most_leading: u32,
    spell: Spell,
    /// The agreed leader of the whole network, where there is one component.
    last_leader: Option<NodeId>,
    changes: u32,
    /// When the components last changed, and when all agreed again.
    disturbed: Time,
    recovered: Option<Time>,
    /// Since when nobody is there.
    deserted: Option<Time>,
}

/// Who has lost two others or more at about the same time, and is left alone.
#[derive(Clone, Debug, Default)]
struct CutOff {
    /// When a node, in the life it is in, was last in company of two others or more.
    company: BTreeMap<usize, Time>,
    alone: BTreeSet<usize>,
}

impl CutOff {
    /// Components before, with their sizes, and now.
    fn topology(
        &mut self,
        now: Time,
        before: (&[Option<u32>], &BTreeMap<u32, u32>),
        after: (&[Option<u32>], &BTreeMap<u32, u32>),
    ) {
        let size = |(of, sizes): (&[Option<u32>], &BTreeMap<u32, u32>), slot: usize| {
            of.get(slot).copied().flatten().map_or(0, |component| sizes[&component])
        };
        for slot in 0..after.0.len() {
            if size(before, slot) > 2 {
                self.company.insert(slot, now);
            }
            match size(after, slot) {
                0 => {
                    self.company.remove(&slot);
                    self.alone.remove(&slot);
                }
                1 => {
                    let recent = |&at: &Time| now.since(at) < AT_ONCE;
                    if self.company.get(&slot).is_some_and(recent) {
                        self.alone.insert(slot);
                    }
                }
                _ => drop(self.alone.remove(&slot)),
            }
        }
    }
}

/// Whoever loses several within this time may take itself for cut off: it does not know before that it has lost the first.
const AT_ONCE: Duration = Duration::from_secs(30);

/// The spell that is running, and those that are over.
#[derive(Clone, Debug)]
struct Spell {
    /// The state that has lasted longer than an instant, and since when.
    agreed: bool,
    since: Time,
    /// The state at the instant of the last change, which may still be taken back.
    latest: bool,
    latest_since: Time,
    first_agreed: Option<Time>,
    ended: u32,
    ended_time: Duration,
    agreed_time: Duration,
    disagreements: Vec<(Time, Time)>,
}

impl Agreement {
    /// Nobody is up yet.
    pub fn new(nodes: u32) -> Self {
        Self {
            names: vec![None; nodes as usize],
            component: vec![None; nodes as usize],
            sizes: BTreeMap::new(),
            voters: 0,
            present: BTreeMap::new(),
            stops_when_cut_off: false,
            cut_off: CutOff::default(),
            votes: BTreeMap::new(),
            agreeing: 0,
            leading: 0,
            most_leading: 0,
            spell: Spell {
                agreed: false,
                since: Time::ZERO,
                latest: false,
                latest_since: Time::ZERO,
                first_agreed: None,
                ended: 0,
                ended_time: Duration::ZERO,
                agreed_time: Duration::ZERO,
                disagreements: Vec::new(),
            },
            last_leader: None,
            changes: 0,
            disturbed: Time::ZERO,
            recovered: None,
            deserted: Some(Time::ZERO),
        }
    }

    /// A majority of the first `voters` nodes elects: a component with fewer of them agrees if all name nobody.
    pub fn by_majority_of(self, voters: u32) -> Self {
        Self { voters, ..self }
    }

    /// Whoever loses two others or more at once, and with them everybody, may name nobody. Whoever loses them one by one, or
    /// its only partner, may not.
    pub fn stopping_when_cut_off(self) -> Self {
        Self { stops_when_cut_off: true, ..self }
    }

    /// A node now names `leader`.
    pub fn answer(&mut self, now: Time, node: NodeId, leader: Option<NodeId>) {
        let slot = node.get() as usize;
        let before = self.names[slot];
        if before == leader {
            return;
        }
        self.leading -= u32::from(before == Some(node));
        self.leading += u32::from(leader == Some(node));
        self.most_leading = self.most_leading.max(self.leading);
        self.names[slot] = leader;
        if let Some(component) = self.component[slot] {
            self.agreeing -= usize::from(self.agrees_with(component, node, before));
            self.vote(component, before, -1);
            self.vote(component, leader, 1);
            self.agreeing += usize::from(self.agrees(component));
        }
        self.note(now);
    }

    /// Who can talk to whom has changed.
    pub fn topology(&mut self, now: Time, component: Vec<Option<u32>>) {
        if self.component == component {
            return;
        }
        let before = std::mem::replace(&mut self.component, component);
        let sizes = std::mem::take(&mut self.sizes);
        self.disturbed = now;
        self.recovered = None;
        self.present.clear();
        self.votes.clear();
        self.leading = 0;
        for slot in 0..self.component.len() {
            match self.component[slot] {
                Some(component) => {
                    *self.sizes.entry(component).or_insert(0) += 1;
                    let votes = u32::from(slot < self.voters as usize);
                    *self.present.entry(component).or_insert(0) += votes;
                    self.vote(component, self.names[slot], 1);
                    let me = NodeId::new(slot as u64);
                    self.leading += u32::from(self.names[slot] == Some(me));
                }
                None => self.names[slot] = None,
            }
        }
        self.cut_off.topology(now, (&before, &sizes), (&self.component, &self.sizes));
        self.most_leading = self.most_leading.max(self.leading);
        self.deserted = self.deserted.or(Some(now)).filter(|_| self.sizes.is_empty());
        self.agreeing = self.sizes.keys().filter(|&&component| self.agrees(component)).count();
        self.note(now);
    }

    /// Whether all agree at this moment.
    pub fn is_agreed(&self) -> bool {
        !self.sizes.is_empty() && self.agreeing == self.sizes.len()
    }

    /// The node that most live nodes name and that is live; the smallest of equals.
    pub fn favourite(&self) -> Option<NodeId> {
        let mut counts = BTreeMap::new();
        for (&(_, leader), &count) in &self.votes {
            if let Some(leader) = leader.filter(|leader| self.component_of(*leader).is_some()) {
                *counts.entry(leader).or_insert(0) += count;
            }
        }
        counts
            .into_iter()
            .max_by_key(|&(leader, count)| (count, std::cmp::Reverse(leader)))
            .map(|(leader, _)| leader)
    }

    /// The run is over: the spell that is running ends. A run that was to end with the first
    /// agreement ends at its very instant, so here an instant counts.
    pub fn finish(&mut self, now: Time) {
        self.spell.settle();
        self.spell.close(now);
    }

    /// When there was no agreement: from, to.
    pub fn disagreements(&self) -> &[(Time, Time)] {
        &self.spell.disagreements
    }

    /// Since when there has been nobody to agree.
    pub fn deserted(&self) -> Option<Time> {
        self.deserted
    }

    /// When all agreed for the first time.
    pub fn first(&self) -> Option<Time> {
        self.spell.first_agreed
    }

    /// The leader last agreed on by all, in one component.
    pub fn leader(&self) -> Option<NodeId> {
        self.last_leader
    }

    /// How many spells without agreement ended in one, and how long they were in all.
    pub fn ended(&self) -> (u32, Duration) {
        (self.spell.ended, self.spell.ended_time)
    }

    /// From the last change of the components to the first agreement after it.
    pub fn recovery(&self) -> Option<Duration> {
        self.recovered.map(|recovered| recovered.since(self.disturbed))
    }

    /// Live nodes that name themselves now.
    pub fn leading(&self) -> u32 {
        self.leading
    }

    /// Total time of agreement.
    pub fn agreed_time(&self) -> Duration {
        self.spell.agreed_time
    }

    /// How often the agreed leader was another than the one agreed on before.
    pub fn leader_changes(&self) -> u32 {
        self.changes
    }

    /// Most live nodes that named themselves at one instant.
    pub fn most_leading(&self) -> u32 {
        self.most_leading
    }

    fn component_of(&self, node: NodeId) -> Option<u32> {
        self.component.get(node.get() as usize).copied().flatten()
    }

    fn vote(&mut self, component: u32, leader: Option<NodeId>, change: i32) {
        let count = self.votes.entry((component, leader)).or_insert(0);
        *count = count.saturating_add_signed(change);
        if *count == 0 {
            self.votes.remove(&(component, leader));
        }
    }

    fn agrees(&self, component: u32) -> bool {
        if self.voters > 0 && self.present.get(&component).is_none_or(|&n| n <= self.voters / 2) {
            return self.votes.get(&(component, None)) == self.sizes.get(&component);
        }
        let alone =
            || self.cut_off.alone.iter().any(|&slot| self.component[slot] == Some(component));
        if self.stops_when_cut_off && self.votes.contains_key(&(component, None)) && alone() {
            return true;
        }
        let mut votes = self.votes.range((component, None)..=(component, Some(LAST_NODE)));
        let Some((&(_, Some(leader)), &count)) = votes.next() else { return false };
        Some(&count) == self.sizes.get(&component)
            && self.component_of(leader) == Some(component)
            && self.names[leader.get() as usize] == Some(leader)
    }

    /// Whether the component agreed while `node` still named `before`.
    fn agrees_with(&mut self, component: u32, node: NodeId, before: Option<NodeId>) -> bool {
        let now = std::mem::replace(&mut self.names[node.get() as usize], before);
        let agreed = self.agrees(component);
        self.names[node.get() as usize] = now;
        agreed
    }

    fn note(&mut self, now: Time) {
        let agreed = self.is_agreed();
        self.spell.note(now, agreed);
        if agreed {
            self.recovered.get_or_insert(now);
        }
        if agreed && self.sizes.len() == 1 {
            let leader = self.votes.keys().next().and_then(|&(_, leader)| leader);
            // By majority, too few may agree on nobody.
            let leader = leader.or(self.last_leader);
            self.changes += u32::from(self.last_leader.is_some() && self.last_leader != leader);
            self.last_leader = leader;
        }
    }
}

impl Spell {
    fn note(&mut self, now: Time, agreed: bool) {
        if now > self.latest_since {
            self.settle();
        }
        if agreed != self.latest {
            self.latest = agreed;
            self.latest_since = now;
        }
    }

    /// The latest change has outlasted its instant: it counts.
    fn settle(&mut self) {
        if self.latest != self.agreed {
            self.close(self.latest_since);
            self.agreed = self.latest;
            if self.agreed {
                self.first_agreed.get_or_insert(self.since);
            }
        }
    }

    fn close(&mut self, now: Time) {
        let length = now.since(self.since);
        if self.agreed {
            self.agreed_time += length;
        } else {
            self.disagreements.push((self.since, now));
            if self.latest {
                self.ended += 1;
                self.ended_time += length;
            }
        }
        self.since = now;
    }
}

const LAST_NODE: NodeId = NodeId::new(u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn id(node: u64) -> NodeId {
        NodeId::new(node)
    }

    fn three() -> Agreement {
        let mut agreement = Agreement::new(3);
        agreement.topology(at(0), vec![Some(0); 3]);
        agreement
    }

    #[test]
    fn all_must_name_one_who_names_itself() {
        let mut agreement = three();
        for (node, leader, agreed) in
            [(0, 2, false), (1, 2, false), (2, 2, true), (2, 1, false), (1, 1, false), (0, 1, true)]
        {
            agreement.answer(at(1), id(node), Some(id(leader)));
            assert_eq!(agreement.is_agreed(), agreed, "n{node} names n{leader}");
        }
        assert_eq!(agreement.most_leading(), 1);
        agreement.answer(at(2), id(0), Some(id(0)));
        assert_eq!(agreement.most_leading(), 2);
    }

    #[test]
    fn a_dead_leader_ends_agreement_and_each_side_needs_its_own() {
        let mut agreement = three();
        (0..3).for_each(|node| agreement.answer(at(2), id(node), Some(id(2))));
        assert_eq!(agreement.favourite(), Some(id(2)));
        agreement.topology(at(5), vec![Some(0), Some(0), None]);
        assert!(!agreement.is_agreed());
        assert_eq!(agreement.favourite(), None);
        agreement.topology(at(6), vec![Some(0), Some(1), Some(2)]);
        (0..3).for_each(|node| agreement.answer(at(9), id(node), Some(id(node))));
        assert!(agreement.is_agreed());
        agreement.topology(at(10), vec![Some(0); 3]);
        assert!(!agreement.is_agreed());
    }

    #[test]
    fn whoever_loses_two_at_once_may_name_nobody_and_the_last_of_a_pair_may_not() {
        let cut = |alone: Vec<Option<u32>>, when: u64, before: Option<Vec<Option<u32>>>| {
            let mut agreement = three().stopping_when_cut_off();
            (0..3).for_each(|node| agreement.answer(at(1), id(node), Some(id(2))));
            if let Some(before) = before {
                agreement.topology(at(2), before);
            }
            agreement.topology(at(when), alone);
            agreement.answer(at(when + 2), id(2), None);
            agreement.is_agreed()
        };
        let last = vec![None, None, Some(0)];
        assert!(cut(last.clone(), 5, None), "both at once");
        assert!(
            cut(last.clone(), 5, Some(vec![Some(0), None, Some(0)])),
            "one soon after the other"
        );
        assert!(!cut(last, 60, Some(vec![Some(0), None, Some(0)])), "one by one");
        assert!(!cut(vec![Some(0), Some(0), Some(1)], 5, None), "the others have to agree");
    }

    #[test]
    fn times_and_changes_add_up() {
        let mut agreement = three();
        (0..3).for_each(|node| agreement.answer(at(2), id(node), Some(id(2))));
        agreement.answer(at(7), id(0), Some(id(0)));
        agreement.answer(at(8), id(0), Some(id(2)));
        // Within one instant the leader changes without a moment of doubt that lasts.
        (0..3).for_each(|node| agreement.answer(at(9), id(node), Some(id(1))));
        agreement.finish(at(12));
        assert_eq!(agreement.first(), Some(at(2)));
        assert_eq!(agreement.ended(), (2, Duration::from_secs(3)));
        assert_eq!(agreement.agreed_time(), Duration::from_secs(9));
        assert_eq!(agreement.leader_changes(), 1);
    }

    #[test]
    fn an_agreement_that_ends_at_its_own_instant_never_was() {
        let mut agreement = three();
        (0..3).for_each(|node| agreement.answer(at(2), id(node), Some(id(2))));
        agreement.answer(at(2), id(0), Some(id(0)));
        agreement.answer(at(4), id(0), Some(id(2)));
        agreement.finish(at(5));
        assert_eq!(agreement.first(), Some(at(4)));
        assert_eq!(agreement.ended(), (1, Duration::from_secs(4)));
    }
}
