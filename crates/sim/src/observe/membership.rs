//! Who lists whom, as far as the invariants of membership need it.
//!
//! Every running node has a table of records; here is a copy of what was seen of it. A record changes only through
//! news, and news names its subject: so after an input that changed any record only those named in it, or in what it
//! led to, are looked at again, and the work follows the size of the message, not of the group. What was configured at
//! the start takes one bit a member.

use std::collections::BTreeMap;

use bellwether_proto::{
    Boot, Duration, Effect, EffectOf, Incarnation, Input, InputOf, NodeId, Time,
    membership::medley::{Body, Medley, MembershipEvent, State as Recorded},
};

use crate::{
    engine::{Observer, State},
    invariant::{
        Completeness, IncarnationMonotone, LiveNotDeadForLong, NoResurrection, Record,
        TimeBoundedDetection, Violation, Violations,
    },
    world::Network,
};

/// What a membership promises in a scenario, beyond what it promises always; `None` where it does not.
#[derive(Clone, Debug)]
pub struct Promise {
    /// From when on nothing new goes wrong.
    pub quiet: Time,
    /// A live, reachable member is missing for no longer than this.
    pub mending: Option<Duration>,
    /// Who is gone is listed for no longer than this.
    pub forgetting: Option<Duration>,
    /// How long a message takes at most, once it is quiet.
    pub(crate) way: Option<Duration>,
    /// P3 and P4 of `docs/rules/medley.md`.
    pub(crate) timely: Option<TimeBoundedDetection>,
}

/// Watches the lists of all nodes.
#[derive(Debug)]
pub struct MembershipWatch {
    /// What the present life of each node was seen to record; `None` before it has started.
    views: Vec<Option<View>>,
    /// Whether a node has begun a life that has not been looked at yet.
    fresh: Vec<bool>,
    /// Component of each node; `None` while it is down or leaving.
    component: Vec<Option<u32>>,
    /// How many running nodes list this one.
    listed_by: Vec<u32>,
    /// Whether a node has not yet said by when it convicts the crashed one.
    unasked: Vec<bool>,
    named: Vec<NodeId>,
    /// By what each node tells that none of its records has changed since it was looked at.
    changes: Vec<u32>,
    /// The incarnation in which each node was seen last, in its present life.
    incarnations: Vec<Incarnation>,
    no_resurrection: NoResurrection,
    monotone: IncarnationMonotone,
    missing: Option<LiveNotDeadForLong>,
    complete: Option<Completeness>,
    timely: Option<TimeBoundedDetection>,
    violations: Violations,
}

/// What one life of one node was seen to record.
#[derive(Debug)]
struct View {
    /// Those it began with in their first life and incarnation, and of whom nothing else was seen since: one
    /// bit each.
    founders: Vec<u64>,
    /// All others, by subject, [`PAGE`] on each page; a page is there once somebody on it is no founder, and any page
    /// once one is.
    pages: Vec<Option<Box<[Seen; PAGE]>>>,
}

/// A record, and whether it is still there. Sixteen bytes.
#[derive(Clone, Copy, Debug)]
struct Seen {
    boot: Boot,
    incarnation: Incarnation,
    /// Last seen in; `None` if never.
    state: Option<Recorded>,
    present: bool,
}

impl Seen {
    const NOTHING: Self =
        Self { boot: Boot::new(0), incarnation: Incarnation::new(0), state: None, present: false };

    fn record(self) -> Option<Record> {
        let Self { boot, incarnation, state, .. } = self;
        state.map(|state| Record { state, boot, incarnation })
    }

    fn is_listed(self) -> bool {
        self.present && self.state.is_some_and(Recorded::is_listed)
    }
}

impl From<Record> for Seen {
    fn from(Record { state, boot, incarnation }: Record) -> Self {
        Self { boot, incarnation, state: Some(state), present: true }
    }
}

impl View {
    fn new(nodes: usize) -> Self {
        Self { founders: vec![0; nodes.div_ceil(PAGE)], pages: Vec::new() }
    }

    #[inline]
    fn last(&self, subject: u32) -> Seen {
        let (page, at) = (subject as usize / PAGE, subject as usize % PAGE);
        if self.founders[page] >> at & 1 == 1 {
            return FOUNDER.into();
        }
        let page = self.pages.get(page).and_then(Option::as_ref);
        page.map_or(Seen::NOTHING, |page| page[at])
    }

    fn saw(&mut self, subject: u32, seen: Seen) {
        let (page, at) = (subject as usize / PAGE, subject as usize % PAGE);
        self.founders[page] &= !(1 << at);
        if self.pages.is_empty() {
            self.pages.resize_with(self.founders.len(), || None);
        }
        self.pages[page].get_or_insert_with(|| Box::new([Seen::NOTHING; PAGE]))[at] = seen;
    }

    fn lists(&self, subject: u32) -> bool {
        self.last(subject).is_listed()
    }
}

impl MembershipWatch {
    /// Watches `nodes` nodes that are not up yet.
    pub fn new(nodes: u32, promise: Promise) -> Self {
        let Promise { quiet, mending, forgetting, way, timely } = promise;
        let nodes = nodes as usize;
        Self {
            views: std::iter::repeat_with(|| None).take(nodes).collect(),
            fresh: vec![false; nodes],
            component: vec![None; nodes],
            listed_by: vec![0; nodes],
            unasked: vec![false; nodes],
            named: Vec::new(),
            changes: vec![0; nodes],
            incarnations: vec![Incarnation::default(); nodes],
            no_resurrection: NoResurrection::new(way.map(|way| (quiet, way))),
            monotone: IncarnationMonotone::default(),
            missing: mending.map(|allowed| LiveNotDeadForLong::new(quiet, allowed)),
            complete: forgetting.map(|allowed| Completeness::new(quiet, allowed)),
            timely,
            violations: Violations::default(),
        }
    }

    /// The run is over.
    pub fn finish(&mut self, now: Time) {
        let missing = self.missing.as_ref().map_or(Ok(()), |missing| missing.finish(now));
        self.note(now, LiveNotDeadForLong::NAME, missing);
        let complete = self.complete.as_ref().map_or(Ok(()), |complete| complete.finish(now));
        self.note(now, Completeness::NAME, complete);
        let timely = self.timely.as_ref().map_or(Ok(()), |timely| timely.finish(now));
        self.note(now, TimeBoundedDetection::NAME, timely);
    }

    /// How many running nodes list this one.
    pub fn listed_by(&self, node: u32) -> u32 {
        self.listed_by[node as usize]
    }

    /// The first violation of each invariant.
    pub fn violations(&self) -> &[Violation] {
        self.violations.all()
    }

    /// For each invariant that was judged its name, the situation it guards against, and whether that arose.
    pub fn sometimes(&self) -> Vec<(&'static str, &'static str, bool)> {
        let always = [
            (NoResurrection::NAME, Some(self.no_resurrection.sometimes())),
            (IncarnationMonotone::NAME, Some(self.monotone.sometimes())),
            (LiveNotDeadForLong::NAME, self.missing.as_ref().map(LiveNotDeadForLong::sometimes)),
            (Completeness::NAME, self.complete.as_ref().map(Completeness::sometimes)),
            (TimeBoundedDetection::NAME, self.timely.as_ref().map(TimeBoundedDetection::sometimes)),
        ];
        let judged = |(name, sometimes): (_, Option<(_, _)>)| {
            sometimes.map(|(situation, arose)| (name, situation, arose))
        };
        always.into_iter().filter_map(judged).collect()
    }

    fn note(&mut self, now: Time, invariant: &'static str, result: Result<(), String>) {
        if let Err(detail) = result {
            self.violations.add(now, invariant, detail);
        }
    }

    /// Whether anything is promised of what is wrong between two nodes.
    fn judges(&self) -> bool {
        self.missing.is_some() || self.complete.is_some()
    }

    /// Judges what is wrong between two nodes, as of now.
    fn judge(&mut self, now: Time, observer: u32, subject: u32) {
        if observer == subject || !self.judges() {
            return;
        }
        let Some(view) = &self.views[observer as usize] else { return };
        let lists = view.lists(subject);
        let [from, to] = [observer, subject].map(|node| self.component[node as usize]);
        let [a, b] = [observer, subject].map(|node| NodeId::new(u64::from(node)));
        if let Some(missing) = &mut self.missing {
            let result = missing.missing(now, a, b, !lists && from.is_some() && from == to);
            self.note(now, LiveNotDeadForLong::NAME, result);
        }
        if let Some(complete) = &mut self.complete {
            let result = complete.listed(now, a, b, lists && from.is_some() && to.is_none());
            self.note(now, Completeness::NAME, result);
        }
    }

    fn judge_all_of(&mut self, now: Time, node: u32) {
        for other in 0..self.views.len() as u32 {
            self.judge(now, node, other);
            self.judge(now, other, node);
        }
    }

    /// Takes over the list a node begins its life with.
    fn begin(&mut self, now: Time, observer: u32, machine: &Medley) {
        let mut view = View::new(self.views.len());
        for subject in 0..self.views.len() as u32 {
            let id = NodeId::new(u64::from(subject));
            let Some((state, boot, incarnation)) = machine.record_of(id) else { continue };
            if !state.is_listed() {
                continue;
            }
            let record = Record { state, boot, incarnation };
            if record == FOUNDER {
                view.founders[subject as usize / PAGE] |= 1 << (subject as usize % PAGE);
            } else {
                view.saw(subject, record.into());
            }
            self.listed_by[subject as usize] += 1;
            self.no_resurrection.given(id);
        }
        self.views[observer as usize] = Some(view);
        if self.judges() {
            // What the others record is as it was.
            (0..self.views.len() as u32).for_each(|subject| self.judge(now, observer, subject));
        }
    }

    /// Looks again at all that may have changed.
    fn look_at_named(&mut self, now: Time, observer: u32, machine: &Medley) {
        self.changes[observer as usize] = machine.records_changed();
        let named = std::mem::take(&mut self.named);
        for &id in named.iter().filter(|id| id.get() != u64::from(observer)) {
            self.look(now, observer, id, machine);
        }
        self.named = named;
    }

    /// Looks at one record again.
    fn look(&mut self, now: Time, observer: u32, id: NodeId, machine: &Medley) {
        let subject = id.get() as u32;
        let Some(view) = &self.views[observer as usize] else { return };
        let before = view.last(subject);
        let seen = match machine.record_of(id) {
            Some((state, boot, incarnation)) => Record { state, boot, incarnation }.into(),
            // Forgotten: what was last recorded still binds.
            None => Seen { present: false, ..before },
        };
        if (before.record(), before.present) == (seen.record(), seen.present) {
            return;
        }
        let was_listed = before.is_listed();
        if let Some(view) = &mut self.views[observer as usize] {
            view.saw(subject, seen);
        }
        if let Some(record) = seen.record().filter(|_| seen.present) {
            let observer = NodeId::new(u64::from(observer));
            if let Some(before) = before.record() {
                let result = self.monotone.recorded(&before, &record);
                let result =
                    result.map_err(|detail| format!("observer={observer} subject={id} {detail}"));
                self.note(now, IncarnationMonotone::NAME, result);
            }
            let result = self.no_resurrection.recorded(now, observer, id, &record);
            self.note(now, NoResurrection::NAME, result);
        }
        let is_listed = seen.is_listed();
        if was_listed == is_listed {
            return;
        }
        if is_listed {
            self.listed_by[subject as usize] += 1;
        } else {
            self.unlisted(now, subject);
            if let Some(timely) = &mut self.timely {
                let result = timely.removed(now, id);
                self.note(now, TimeBoundedDetection::NAME, result);
            }
        }
        self.judge(now, observer, subject);
    }

    fn unlisted(&mut self, now: Time, subject: u32) {
        self.listed_by[subject as usize] -= 1;
        self.if_gone(now, subject);
    }

    fn if_gone(&mut self, now: Time, subject: u32) {
        let slot = subject as usize;
        if self.listed_by[slot] == 0 && self.component[slot].is_none() {
            self.no_resurrection.forgotten(now, NodeId::new(u64::from(subject)));
        }
    }
}

impl Observer<Medley> for MembershipWatch {
    fn started(&mut self, _now: Time, node: NodeId, _state: State) {
        self.fresh[node.get() as usize] = true;
        self.incarnations[node.get() as usize] = Incarnation::default();
        self.no_resurrection.born(node);
        self.timely.iter_mut().for_each(TimeBoundedDetection::started);
    }

    #[inline]
    fn input(&mut self, _now: Time, _node: NodeId, input: &InputOf<'_, Medley>) {
        self.named.clear();
        if let Input::Message { from, message, .. } = input {
            self.named.push(from.id);
            self.named.extend(message.updates.iter().map(|update| update.subject.id));
            if let Body::IndirectAck { target, .. } = message.body {
                self.named.push(target.id);
            }
        }
    }

    #[inline]
    fn effect(&mut self, _now: Time, _node: NodeId, effect: &EffectOf<Medley>) {
        if let Effect::Emit(
            MembershipEvent::Joined(id)
            | MembershipEvent::Suspected { id, .. }
            | MembershipEvent::Refuted(id)
            | MembershipEvent::Failed { id, .. }
            | MembershipEvent::Left(id),
        ) = effect
        {
            self.named.push(*id);
        }
    }

    #[inline]
    fn handled(&mut self, now: Time, node: NodeId, machine: &Medley) {
        let observer = node.get() as u32;
        let incarnation = &mut self.incarnations[observer as usize];
        if *incarnation != machine.incarnation() {
            *incarnation = machine.incarnation();
            self.no_resurrection.issued(node, *incarnation);
        }
        if std::mem::take(&mut self.fresh[observer as usize]) {
            self.begin(now, observer, machine);
            self.look_at_named(now, observer, machine);
        } else if self.changes[observer as usize] != machine.records_changed() {
            self.look_at_named(now, observer, machine);
        }
        if std::mem::take(&mut self.unasked[observer as usize])
            && let Some(timely) = &mut self.timely
            && let Some(sought) = timely.sought()
            && let Some(periods) = machine.periods_until_convicted(sought)
        {
            timely.promised(now, periods);
        }
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        let index = node.get() as u32;
        if let Some(timely) = &mut self.timely {
            timely.crashed(now, node);
            self.unasked.fill(true);
        }
        let Some(view) = self.views[index as usize].take() else { return };
        for subject in (0..self.views.len() as u32).filter(|&subject| view.lists(subject)) {
            self.unlisted(now, subject);
        }
        // Its own opinions are gone with it: nothing is wrong with them any more.
        for subject in (0..self.views.len() as u32).map(|subject| NodeId::new(subject.into())) {
            let missing = self
                .missing
                .as_mut()
                .map_or(Ok(()), |missing| missing.missing(now, node, subject, false));
            self.note(now, LiveNotDeadForLong::NAME, missing);
            let complete = self
                .complete
                .as_mut()
                .map_or(Ok(()), |complete| complete.listed(now, node, subject, false));
            self.note(now, Completeness::NAME, complete);
        }
    }

    fn topology(&mut self, now: Time, network: &Network) {
        let component = network.components();
        let before = std::mem::replace(&mut self.component, component);
        let nodes = 0..self.component.len() as u32;
        if !same_sides(&before, &self.component) {
            for observer in nodes.clone() {
                nodes.clone().for_each(|subject| self.judge(now, observer, subject));
            }
        }
        for node in nodes {
            let [was, is] = [&before, &self.component].map(|of| of[node as usize].is_some());
            if was != is {
                self.if_gone(now, node);
                self.judge_all_of(now, node);
            }
        }
    }
}

/// Whether those up before and after are together with the same others as before.
fn same_sides(before: &[Option<u32>], after: &[Option<u32>]) -> bool {
    let (mut to, mut from) = (BTreeMap::new(), BTreeMap::new());
    before.iter().zip(after).all(|(before, after)| match (before, after) {
        (Some(before), Some(after)) => {
            to.entry(before).or_insert(after) == &after
                && from.entry(after).or_insert(before) == &before
        }
        _ => true,
    })
}

/// Subjects of which the records are kept together: one word of bits.
const PAGE: usize = 64;
/// How founders are listed before they have spoken.
const FOUNDER: Record = Record::new(Recorded::Alive, 1, 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_compared_whatever_they_are_called() {
        let one = [Some(0), Some(0), Some(2), None, Some(2)];
        for (other, same) in [
            ([Some(0), Some(0), Some(2), Some(0), Some(2)], true),
            ([None, Some(1), Some(2), None, Some(2)], true),
            ([Some(0), Some(0), Some(0), None, Some(0)], false),
            ([Some(0), Some(1), Some(2), None, Some(2)], false),
        ] {
            assert_eq!(same_sides(&one, &other), same, "{other:?}");
        }
    }
}
