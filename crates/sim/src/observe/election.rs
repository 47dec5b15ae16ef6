//! What is watched in every run of an election: agreement, and the invariants.

use std::collections::BTreeSet;

use bellwether_proto::{Duration, Election, Leadership, NodeId, Time};

use crate::{
    engine::{Observer, State},
    invariant::{Invariant, OneLeaderPerTerm, Safety, Violation},
    observe::{Agreement, Camera, Favourite, Log, Metric, Naming, Namings},
    world::Network,
};

/// When a run ends.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Until {
    /// When its duration is over.
    #[default]
    Duration,
    /// At the first instant at which all live nodes agree on their leader, or when the duration is
    /// over.
    Agreement,
    /// At the first instant at which all live nodes have heard an announcement of the one among them
    /// with the largest number, or when the duration is over.
    Heard,
}

/// Watches the answers of all nodes of an election.
pub struct ElectionWatch {
    safety: Safety,
    agreement: Agreement,
    until: Until,
    namings: Option<Namings>,
    camera: Option<Camera>,
    /// Whose answers need not agree with anybody's.
    outsiders: BTreeSet<NodeId>,
}

impl ElectionWatch {
    /// Watches `nodes` nodes, and is done when `until` says.
    pub fn new(nodes: u32, until: Until) -> Self {
        Self {
            safety: Safety::new(nodes),
            agreement: Agreement::new(nodes),
            until,
            namings: None,
            camera: None,
            outsiders: BTreeSet::new(),
        }
    }

    /// Leaves nodes out of what all agree on: those that take no part, and those that have other settings than the
    /// rest. What they answer is held to the invariants all the same.
    pub fn leaving_out(self, outsiders: BTreeSet<NodeId>) -> Self {
        Self { outsiders, ..self }
    }

    /// Keeps who names whom if the log is about that, and shows it to a camera.
    pub fn telling(self, log: &Log<'_>) -> Self {
        Self { namings: log.namings(), camera: log.camera(), ..self }
    }

    fn note(&self, at: Time, node: NodeId, up: bool, answer: Option<&Leadership>) {
        if let Some(namings) = &self.namings {
            let leader = answer.and_then(|answer| answer.leader);
            let epoch = answer.and_then(|answer| answer.epoch);
            namings.borrow_mut().push(Naming { at, node, up, leader, epoch });
        }
    }

    /// Watches an election by majority of the first `voters` nodes: there is one leader to a term, and where too few of
    /// them can talk to each other, all agree if they name nobody.
    pub fn by_majority_of(mut self, voters: u32) -> Self {
        self.safety = self.safety.and(OneLeaderPerTerm::default());
        self.where_a_majority_of(voters)
    }

    /// The same where counters of epochs do not count terms.
    pub fn where_a_majority_of(mut self, voters: u32) -> Self {
        self.agreement = self.agreement.by_majority_of(voters);
        self
    }

    /// Watches an election in which whoever takes itself for cut off stops.
    pub fn stopping_when_cut_off(mut self) -> Self {
        self.agreement = self.agreement.stopping_when_cut_off();
        self
    }

    /// Holds all answers to one more invariant, perhaps one of your own.
    pub fn holding_to(mut self, invariant: impl Invariant + 'static) -> Self {
        self.safety = self.safety.and(invariant);
        self
    }

    /// Who named whom, and for how long all agreed.
    pub fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    /// A node answers this from now on.
    #[inline]
    pub fn answered(&mut self, now: Time, node: NodeId, leadership: Leadership) {
        if !self.safety.answered(now, node, leadership) {
            return;
        }
        self.note(now, node, true, Some(&leadership));
        if let Some(camera) = &self.camera {
            camera.names(now, node, &leadership);
            camera.judged(self.safety.violations());
        }
        if !self.outsiders.contains(&node) {
            self.agreement.answer(now, node, leadership.leader);
        }
    }

    /// The run is over.
    pub fn finish(&mut self, now: Time) {
        self.agreement.finish(now);
    }

    /// What every election is measured by.
    pub fn values(&self, end: Time) -> [(Metric, Option<f64>); 10] {
        let agreement = &self.agreement;
        let (ended, ended_time) = agreement.ended();
        let whole = end.as_secs_f64();
        let agreed = agreement.agreed_time().as_secs_f64();
        [
            (Metric::LeadershipDelay, agreement.first().map(Time::as_secs_f64)),
            (
                Metric::ElectionTime,
                (ended > 0).then(|| ended_time.as_secs_f64() / f64::from(ended)),
            ),
            (Metric::Elections, Some(f64::from(ended))),
            (Metric::Agreement, (whole > 0.0).then(|| agreed / whole)),
            (
                Metric::InconsistentTime,
                Some(end.since(Time::ZERO).saturating_sub(agreement.agreed_time()).as_secs_f64()),
            ),
            (Metric::LeaderChanges, Some(f64::from(agreement.leader_changes()))),
            (Metric::LeadersAtOnce, Some(f64::from(agreement.most_leading()))),
            (Metric::RecoveryTime, agreement.recovery().map(Duration::as_secs_f64)),
            (Metric::LeaderlessAtEnd, Some(f64::from(u8::from(agreement.leading() == 0)))),
            (Metric::Violations, Some(self.violations().len() as f64)),
        ]
    }

    /// The first violation of each invariant.
    pub fn violations(&self) -> &[Violation] {
        self.safety.violations()
    }

    /// For each invariant its name, the situation it guards against, and whether that could have arisen.
    pub fn sometimes(&self) -> Vec<(&'static str, &'static str, bool)> {
        self.safety.sometimes()
    }
}

impl<M: Election> Observer<M> for ElectionWatch {
    fn started(&mut self, now: Time, node: NodeId, state: State) {
        self.note(now, node, true, None);
        if state == State::Lost {
            self.safety.forgot(node);
        }
    }

    #[inline]
    fn handled(&mut self, now: Time, node: NodeId, machine: &M) {
        self.answered(now, node, machine.leadership());
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        self.note(now, node, false, None);
        self.safety.stopped(node);
    }

    fn topology(&mut self, now: Time, network: &Network) {
        let mut components = network.components();
        for outsider in &self.outsiders {
            components[outsider.get() as usize] = None;
        }
        self.agreement.topology(now, components);
    }

    fn done(&self) -> bool {
        self.until == Until::Agreement && self.agreement.is_agreed()
    }
}

impl Favourite for ElectionWatch {
    fn favourite(&self) -> Option<u32> {
        self.agreement.favourite().map(|node| node.get() as u32)
    }
}
