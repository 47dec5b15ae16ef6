//! What is watched in runs of whole nodes.
//!
//! Every election of a node is watched for its own promise; what is measured is the first. Besides what every election
//! is held to, nobody leads on a token that its disk has not kept or before its claim is confirmed, and of a leased
//! election at most one life may act at any true instant: from the moment its answer names itself until `valid_until` by
//! its own clock, whether it runs, is frozen or has crashed meanwhile, and whether or not a later life of it runs
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{
    Effect, EffectOf, ElectionId, Epoch, InputOf, Mode, NodeId, Peer, Time,
    election::churn_tolerant::Variant,
    node::{Durable, ElectionSettings, ModeSettings, Node, OnIsolation, Settings},
};

use super::{
    Camera, Favourite,
    election::{ElectionWatch, Until},
    log::Log,
    metric::Metric,
};
use crate::{
    engine::{Observer, State, clock::Clock},
    invariant::{
        ActsWhenConfirmed, LeadsOnWhatIsKept, OlderLifeStops, OneMayAct, Violation, Violations,
    },
    world::Network,
};

/// Watches nodes.
pub(crate) struct NodeWatch {
    /// Of the nodes, and of earlier lives that run on.
    clocks: Vec<Clock>,
    ghost_clocks: BTreeMap<Peer, Clock>,
    elections: Vec<WatchedElection>,
    disks: LeadsOnWhatIsKept,
    /// What a node has just asked to be kept, and whether its disk has refused something since its last input.
    asked: Vec<(Option<Durable>, bool)>,
    ghosts: OlderLifeStops,
    violations: Violations,
    camera: Option<Camera>,
}

/// One election.
struct WatchedElection {
    group: ElectionId,
    watch: ElectionWatch,
    leased: bool,
    /// Whether it tells who leads before it is over.
    streams: bool,
    confirmed: ActsWhenConfirmed,
    acts: OneMayAct,
    /// Up to when, by their own clocks, those may act that named themselves last.
    until: BTreeMap<Peer, (Time, Epoch)>,
}

impl NodeWatch {
    /// Watches `nodes` nodes of these settings, whose `outsiders` take no part in an election or have other settings;
    /// `log` is told whom they name in the first one.
    pub(crate) fn new(
        nodes: u32,
        until: Until,
        settings: &Settings,
        outsiders: impl Fn(ElectionId) -> BTreeSet<NodeId>,
        log: &Log<'_>,
    ) -> Self {
        let election = |(index, election): (usize, &ElectionSettings)| {
            let group = ElectionId::named(&election.name);
            let mut watch = ElectionWatch::new(nodes, until).leaving_out(outsiders(group));
            if index == 0 {
                watch = watch.telling(log);
            }
            watch = match &election.mode {
                // What is promised is that tokens grow, not that their counters do.
                ModeSettings::Leased(leased) => {
                    watch.where_a_majority_of(leased.members.len() as u32)
                }
                ModeSettings::Learned(learned) => watch.by_majority_of(learned.voters.len() as u32),
                ModeSettings::Eventual(eventual) => match eventual.on_isolation {
                    OnIsolation::Auto => watch.stopping_when_cut_off(),
                    OnIsolation::Hold | OnIsolation::HoldFor(_) | OnIsolation::StepDown => watch,
                },
                ModeSettings::Announced(_) | ModeSettings::Central(_) => {
                    watch.stopping_when_cut_off()
                }
            };
            let streams = match &election.mode {
                ModeSettings::Eventual(eventual) => {
                    matches!(eventual.variant, Variant::Optimistic | Variant::Hybrid)
                }
                _ => false,
            };
            WatchedElection {
                group,
                watch,
                leased: election.mode.mode() == Mode::Leased,
                streams,
                confirmed: ActsWhenConfirmed::default(),
                acts: OneMayAct::with_aftermath(settings.timing.step_down),
                until: BTreeMap::new(),
            }
        };
        Self {
            clocks: vec![Clock::true_time(); nodes as usize],
            ghost_clocks: BTreeMap::new(),
            elections: settings.elections.iter().enumerate().map(election).collect(),
            disks: LeadsOnWhatIsKept::default(),
            asked: vec![(None, false); nodes as usize],
            ghosts: OlderLifeStops::default(),
            violations: Violations::default(),
            camera: log.camera(),
        }
    }

    pub(crate) fn finish(&mut self, now: Time) {
        self.elections.iter_mut().for_each(|election| election.watch.finish(now));
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        let watched = self.elections.iter().flat_map(|election| election.watch.violations());
        self.violations.all().iter().chain(watched).cloned().collect()
    }

    /// Whoever is alone, or left out, has nobody to agree with.
    pub(crate) fn disagreements(&self) -> Vec<(Time, Time)> {
        let of = |election: &WatchedElection| {
            let (agreement, end) =
                (election.watch.agreement(), election.watch.agreement().deserted());
            let until = |to: Time| end.map_or(to, |end| to.min(end));
            let spells = agreement.disagreements().iter().map(|&(from, to)| (from, until(to)));
            spells.filter(|(from, to)| from < to).collect::<Vec<_>>()
        };
        self.elections.iter().flat_map(of).collect()
    }

    pub(crate) fn sometimes(&self) -> Vec<(&'static str, &'static str, bool)> {
        let mut all: Vec<_> =
            self.elections.iter().flat_map(|election| election.watch.sometimes()).collect();
        let mut add = |name, (situation, arose)| all.push((name, situation, arose));
        for election in self.elections.iter().filter(|election| election.leased) {
            add(OneMayAct::NAME, election.acts.sometimes());
        }
        for election in self.elections.iter().filter(|election| election.streams) {
            add(ActsWhenConfirmed::NAME, election.confirmed.sometimes());
        }
        add(LeadsOnWhatIsKept::NAME, self.disks.sometimes());
        add(OlderLifeStops::NAME, self.ghosts.sometimes());
        all
    }

    /// What the first election is measured by.
    pub(crate) fn values(&self, end: Time) -> Vec<(Metric, Option<f64>)> {
        let Some(WatchedElection { watch, leased, acts, .. }) = self.elections.first() else {
            return Vec::new();
        };
        let mut values = watch.values(end).to_vec();
        values.retain(|(metric, _)| *metric != Metric::Violations);
        values.push((Metric::Violations, Some(self.violations().len() as f64)));
        if *leased {
            let gap = acts.smallest_gap().map(|gap| gap.as_secs_f64());
            values.push((Metric::LeaseOverlap, Some(acts.overlap().as_secs_f64())));
            values.push((Metric::SmallestGap, gap));
        }
        values
    }

    /// Earlier lives of nodes that ran on beside later ones.
    pub(crate) fn ghosts(&self) -> &OlderLifeStops {
        &self.ghosts
    }

    /// Something else does not hold.
    pub(crate) fn violate(&mut self, at: Time, invariant: &'static str, detail: String) {
        self.violations.add(at, invariant, detail);
    }

    /// A life names itself, by this clock, or does not.
    fn acts_confirmed(&mut self, now: Time, clock: Clock, machine: &Node) {
        for index in 0..self.elections.len() {
            let election = &mut self.elections[index];
            let answer = machine.leadership_of(election.group, clock.read(now));
            let tentative = machine.tentative_since(election.group);
            if let Err(detail) = election.confirmed.answer(machine.me().id, tentative, &answer) {
                self.violations.add(now, ActsWhenConfirmed::NAME, detail);
            }
        }
    }

    /// A life answers what it answers, by this clock.
    fn acts(&mut self, now: Time, clock: Clock, machine: &Node) {
        let (me, local) = (machine.me(), clock.read(now));
        for index in 0..self.elections.len() {
            let election = &mut self.elections[index];
            if !election.leased {
                continue;
            }
            let answer = machine.leadership_of(election.group, local);
            let until = answer.valid_until.zip(answer.epoch);
            let until = until.filter(|_| answer.leader == Some(me.id));
            match until {
                Some(until) => election.until.insert(me, until),
                None => election.until.remove(&me),
            };
            let until = until.map(|(until, epoch)| (clock.when(until), epoch));
            if let Err(detail) = election.acts.acts(now, me, until) {
                self.violations.add(now, OneMayAct::NAME, detail);
            }
        }
    }
}

impl Observer<Node> for NodeWatch {
    fn started(&mut self, now: Time, node: NodeId, state: State) {
        for election in &mut self.elections {
            Observer::<Node>::started(&mut election.watch, now, node, state);
        }
        if state == State::Lost {
            self.disks.forgot(node);
        }
    }

    fn input(&mut self, _now: Time, node: NodeId, _input: &InputOf<'_, Node>) {
        self.asked[node.get() as usize].1 = false;
    }

    fn effect(&mut self, _now: Time, node: NodeId, effect: &EffectOf<Node>) {
        let Effect::Persist(durable) = effect else { return };
        let (asked, refused) = &mut self.asked[node.get() as usize];
        let before = asked.take();
        if !*refused {
            *asked = Some(durable.clone());
        }
        if let Some(before) = before {
            self.disks.kept(node, before);
        }
    }

    fn not_kept(&mut self, _now: Time, node: NodeId) {
        self.asked[node.get() as usize] = (None, true);
        self.disks.refused();
    }

    fn writing(&mut self, _now: Time, node: NodeId) {
        self.asked[node.get() as usize] = (None, true);
        self.disks.refused();
    }

    fn kept(&mut self, _now: Time, node: NodeId, state: &Durable) {
        self.disks.kept(node, state.clone());
    }

    fn handled(&mut self, now: Time, node: NodeId, machine: &Node) {
        let slot = node.get() as usize;
        if let Some(kept) = self.asked[slot].0.take() {
            self.disks.kept(node, kept);
        }
        let local = self.clocks[slot].read(now);
        for index in 0..self.elections.len() {
            let election = &mut self.elections[index];
            let answer = machine.leadership_of(election.group, local);
            election.watch.answered(now, node, answer);
            if let Err(detail) = self.disks.answer(node, election.group, &answer) {
                self.violations.add(now, LeadsOnWhatIsKept::NAME, detail);
            }
        }
        self.acts_confirmed(now, self.clocks[slot], machine);
        self.acts(now, self.clocks[slot], machine);
        if let Some(camera) = &self.camera {
            camera.judged(self.violations.all());
        }
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        // What it asked for last was carried out, or refused, before it stopped.
        if let Some(kept) = self.asked[node.get() as usize].0.take() {
            self.disks.kept(node, kept);
        }
        for election in &mut self.elections {
            Observer::<Node>::stopped(&mut election.watch, now, node);
        }
    }

    fn ghost_handled(&mut self, now: Time, node: NodeId, machine: &Node) {
        // It keeps the clock of its place as that was.
        let clock = self.clocks[node.get() as usize];
        let clock = *self.ghost_clocks.entry(machine.me()).or_insert(clock);
        self.ghosts.ghost(now, machine.me(), machine.is_running());
        self.acts_confirmed(now, clock, machine);
        self.acts(now, clock, machine);
    }

    fn drifted(&mut self, now: Time, node: NodeId, ppm: i32) {
        let clock = &mut self.clocks[node.get() as usize];
        clock.set_rate(now, ppm);
        let clock = *clock;
        for index in 0..self.elections.len() {
            let election = &mut self.elections[index];
            let lives = election
                .until
                .iter()
                .filter(|(who, _)| who.id == node && !self.ghost_clocks.contains_key(*who));
            let lives: Vec<_> = lives.map(|(&who, &until)| (who, until)).collect();
            for (who, (until, epoch)) in lives {
                let election = &mut self.elections[index];
                let until = Some((clock.when(until), epoch));
                if let Err(detail) = election.acts.acts(now, who, until) {
                    self.violations.add(now, OneMayAct::NAME, detail);
                }
            }
        }
    }

    fn topology(&mut self, now: Time, network: &Network) {
        for election in &mut self.elections {
            Observer::<Node>::topology(&mut election.watch, now, network);
        }
    }

    fn done(&self) -> bool {
        self.elections.first().is_some_and(|election| Observer::<Node>::done(&election.watch))
    }
}

impl Favourite for NodeWatch {
    fn favourite(&self) -> Option<u32> {
        self.elections.first().and_then(|election| election.watch.favourite())
    }
}
