//! What is watched and measured where a ring arbitrates, with or without a leased leader on it.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{
    Boot, Duration, Effect, EffectOf, Machine, NodeId, Peer, Seed, Time,
    election::leased::{self, Leased},
    membership::ring::{self, Body, Life, Ring, RingEvent},
};

use crate::{
    check::explore::{End, Judge, Step},
    engine::{Builder, Observer, Sim, clock::Clock},
    invariant::{NobodyBuriedAlive, OneOfTwoWins, OneValidLease, Violation},
    observe::{log::Log, metric::Metric, watch::Watch},
    run::{
        self, Outcome,
        faults::{self, Favourite, Word},
    },
    scenario::{Scenario, State},
    world::{
        self,
        network::{Disconnected, Travel},
    },
};

/// A machine that is, or stands on, a member of a ring.
pub trait RingMember: Machine {
    /// The member.
    fn ring(&self) -> &Ring;

    /// The ring's part of a message.
    fn ring_message(message: &Self::Message) -> Option<&ring::Message>;

    /// The ring's part of an event.
    fn ring_event(event: &Self::Event) -> Option<&RingEvent>;

    /// Up to when it may act as leader, by its own clock.
    fn authority(&self) -> Option<Time>;
}

impl RingMember for Ring {
    fn ring(&self) -> &Ring {
        self
    }

    fn ring_message(message: &ring::Message) -> Option<&ring::Message> {
        Some(message)
    }

    fn ring_event(event: &RingEvent) -> Option<&RingEvent> {
        Some(event)
    }

    fn authority(&self) -> Option<Time> {
        None
    }
}

impl RingMember for Leased {
    fn ring(&self) -> &Ring {
        self.ring()
    }

    fn ring_message(message: &leased::Message) -> Option<&ring::Message> {
        match &message.body {
            leased::Body::Ring(message) => Some(message),
            _ => None,
        }
    }

    fn ring_event(event: &leased::Event) -> Option<&RingEvent> {
        match event {
            leased::Event::Ring(event) => Some(event),
            _ => None,
        }
    }

    fn authority(&self) -> Option<Time> {
        self.authority().map(|(_, until)| until)
    }
}

/// What a ring promises, looked at in every step of a history: nobody is buried alive, of two that accuse each other
/// one wins at most, and two leaders are never valid at once.
#[derive(Clone, Debug, Default)]
pub struct RingJudge {
    alive: NobodyBuriedAlive,
    wins: OneOfTwoWins,
    lease: OneValidLease,
    won: u64,
    joined: bool,
}

/// What was counted in histories of a ring.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RingTally {
    /// Arbitrations won.
    pub won: u64,
    /// Histories in which one leader followed another.
    pub followed: u64,
    /// The least time from one leader to the next.
    pub smallest_gap: Option<Duration>,
    /// Histories at whose end all nodes that were up were members.
    pub joined: u64,
    /// Those at whose end some were not.
    pub apart: u64,
}

impl<M: RingMember> Judge<M> for RingJudge {
    type Tally = RingTally;

    fn step(&mut self, step: &Step<'_, M>) -> Result<(), String> {
        let ring = step.machine.ring();
        let (id, life) = (step.peer.id, ring.life());
        let until = step.machine.authority().map(|at| step.wall(at));
        self.lease.holds(step.now, id, until)?;
        self.alive.is(id, ring.is_active().then_some(life));
        for event in step.events() {
            match M::ring_event(event) {
                Some(RingEvent::Condemned(accused)) => {
                    self.won += 1;
                    self.wins.wins(life, *accused)?;
                }
                Some(RingEvent::Buried { life, .. }) => self.alive.buries(id, *life)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn crashed(&mut self, _now: Time, peer: Peer) {
        self.alive.is(peer.id, None);
    }

    fn ended(&mut self, end: &End<'_, M>) -> Result<(), String> {
        let active = |machine: Option<&M>| machine.is_none_or(|it| it.ring().is_active());
        self.joined = end.nodes.iter().all(|&(_, machine)| active(machine));
        Ok(())
    }

    fn tally(&self, tally: &mut RingTally) {
        let gap = self.lease.smallest_gap();
        let joined = u64::from(self.joined);
        let (won, followed) = (self.won, u64::from(gap.is_some()));
        let other = RingTally { won, followed, smallest_gap: gap, joined, apart: 1 - joined };
        <Self as Judge<M>>::merge(tally, other);
    }

    fn merge(tally: &mut RingTally, other: RingTally) {
        tally.won += other.won;
        tally.followed += other.followed;
        let gaps = [tally.smallest_gap, other.smallest_gap];
        tally.smallest_gap = gaps.into_iter().flatten().min();
        tally.joined += other.joined;
        tally.apart += other.apart;
    }
}

/// What happened on a ring.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// From a crash to each monitor's suspicion.
    pub suspected: Vec<Duration>,
    /// The first and the last of each crash.
    pub first_suspected: Vec<Duration>,
    /// See above.
    pub last_suspected: Vec<Duration>,
    /// From a crash to each member's burial.
    pub buried: Vec<Duration>,
    /// The same of its monitors alone.
    pub buried_by_monitors: Vec<Duration>,
    /// From the first to the last member's burial of one that crashed.
    pub disagreement: Vec<Duration>,
    /// From a suspicion to the verdict.
    pub decided: Vec<Duration>,
    /// Members that lost an arbitration, by when, and on whose account.
    pub departed: Vec<(Time, NodeId, Option<NodeId>)>,
    /// From the first question of a joiner to its membership, and its attempts.
    pub joined: Vec<(Duration, u32)>,
    /// From the first suspicion between two live nodes to the other's of the first.
    pub mutual: Vec<Duration>,
    /// From the suspicion of one that lives to its departure, where it was condemned.
    pub exits: Vec<Duration>,
    /// Arbitration requests addressed to each node, the asker's own copy included.
    pub requests: Vec<u64>,
    /// Proposals and their answers.
    pub upgrades: u64,
    /// Lease requests and acknowledgements, from the tenth session on.
    pub leases: u64,
    /// From the crash of a leader to the next one's first act.
    pub fail_overs: Vec<Duration>,
    /// How long nobody could act, from the first leader on.
    pub leaderless: Duration,
    /// How many members were locked for each joiner as it became one, and how many neighbours it then had.
    pub locked: Vec<(usize, usize)>,
    /// From an upgrade's installation to the other end's.
    pub followed: Vec<Duration>,
}

/// Watches a ring.
pub struct Arbitrating {
    session: Duration,
    nodes: u32,
    clocks: Vec<Clock>,
    alive: NobodyBuriedAlive,
    wins: OneOfTwoWins,
    lease: OneValidLease,
    violations: Vec<Violation>,
    found: Findings,
    crashed: BTreeMap<NodeId, (Time, Life)>,
    lives: BTreeMap<NodeId, Life>,
    suspicions: BTreeMap<(NodeId, NodeId), Time>,
    crash_suspicions: BTreeMap<NodeId, Vec<Duration>>,
    crash_burials: BTreeMap<NodeId, Vec<Duration>>,
    upgraded: BTreeMap<(NodeId, NodeId, u32, u32), Time>,
    locks: BTreeMap<NodeId, Life>,
    joiners: Vec<NodeId>,
    led: Option<Time>,
    fallen: Option<Time>,
    idle_since: Option<Time>,
}

impl Arbitrating {
    /// Nobody is there yet.
    pub fn new(nodes: u32, session: Duration) -> Self {
        Self {
            session,
            nodes,
            clocks: vec![Clock::true_time(); nodes as usize],
            alive: NobodyBuriedAlive::default(),
            wins: OneOfTwoWins::default(),
            lease: OneValidLease::default(),
            violations: Vec::new(),
            found: Findings { requests: vec![0; nodes as usize], ..Findings::default() },
            crashed: BTreeMap::new(),
            lives: BTreeMap::new(),
            suspicions: BTreeMap::new(),
            crash_suspicions: BTreeMap::new(),
            crash_burials: BTreeMap::new(),
            upgraded: BTreeMap::new(),
            locks: BTreeMap::new(),
            joiners: Vec::new(),
            led: None,
            fallen: None,
            idle_since: None,
        }
    }

    /// What happened.
    pub fn findings(&self) -> &Findings {
        &self.found
    }

    /// The shortest time between two leaders.
    pub fn smallest_gap(&self) -> Option<Duration> {
        self.lease.smallest_gap()
    }

    /// The first violation of each invariant.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// For each invariant its name, the situation it guards against, and whether that could have arisen.
    pub fn sometimes(&self, leads: bool) -> Vec<(&'static str, &'static str, bool)> {
        let mut all = Vec::new();
        let mut add = |name, (situation, arose)| all.push((name, situation, arose));
        add(NobodyBuriedAlive::NAME, self.alive.sometimes());
        add(OneOfTwoWins::NAME, self.wins.sometimes());
        if leads {
            add(OneValidLease::NAME, self.lease.sometimes());
        }
        all
    }

    /// The run is over.
    pub fn finish(&mut self, now: Time) {
        for all in self.crash_suspicions.values() {
            self.found.first_suspected.extend(all.iter().min());
            self.found.last_suspected.extend(all.iter().max());
        }
        for all in self.crash_burials.values() {
            if let (Some(&first), Some(&last)) = (all.iter().min(), all.iter().max()) {
                self.found.disagreement.push(last.saturating_sub(first));
            }
        }
        self.idle(now, false);
    }

    fn violate(&mut self, now: Time, invariant: &'static str, detail: String) {
        if self.violations.iter().all(|other| other.invariant != invariant) {
            self.violations.push(Violation { invariant, at: now, detail });
        }
    }

    /// Keeps count of the time without a leader.
    fn idle(&mut self, now: Time, leads: bool) {
        if let Some(since) = self.idle_since.take() {
            self.found.leaderless += now.since(since);
        }
        if self.led.is_some() && !leads {
            self.idle_since = Some(now);
        }
    }

    fn event(&mut self, now: Time, node: NodeId, event: &RingEvent) {
        match *event {
            RingEvent::Suspected(accused) => {
                self.found.requests[node.get() as usize] += 1;
                self.suspicions.insert((node, accused.id()), now);
                match self.crashed.get(&accused.id()) {
                    Some(&(at, life)) if life == accused => {
                        let after = now.since(at);
                        self.found.suspected.push(after);
                        self.crash_suspicions.entry(accused.id()).or_default().push(after);
                    }
                    _ => {
                        if let Some(&first) = self.suspicions.get(&(accused.id(), node)) {
                            self.found.mutual.push(now.since(first));
                        }
                    }
                }
            }
            RingEvent::Condemned(accused) => {
                if let Some(&asked) = self.suspicions.get(&(node, accused.id())) {
                    self.found.decided.push(now.since(asked));
                }
                if let Some(&life) = self.lives.get(&node)
                    && let Err(detail) = self.wins.wins(life, accused)
                {
                    self.violate(now, OneOfTwoWins::NAME, detail);
                }
            }
            RingEvent::Buried { life, .. } => {
                if let Err(detail) = self.alive.buries(node, life) {
                    self.violate(now, NobodyBuriedAlive::NAME, detail);
                }
                if let Some(&(at, dead)) = self.crashed.get(&life.id())
                    && dead == life
                {
                    self.found.buried.push(now.since(at));
                    if self.suspicions.get(&(node, life.id())).is_some_and(|&when| when >= at) {
                        self.found.buried_by_monitors.push(now.since(at));
                    }
                    self.crash_burials.entry(life.id()).or_default().push(now.since(at));
                }
            }
            RingEvent::Departed { over } => {
                self.found.departed.push((now, node, over));
                let first = over.and_then(|by| self.suspicions.get(&(by, node)));
                self.found.exits.extend(first.map(|&at| now.since(at)));
                self.alive.is(node, None);
                // Silent from now on, like one that crashed.
                if let Some(&life) = self.lives.get(&node) {
                    self.crashed.insert(node, (now, life));
                }
            }
            RingEvent::Activated { attempts, took } if attempts > 0 => {
                self.found.joined.push((took, attempts));
                self.joiners.push(node);
            }
            RingEvent::Upgraded { peer, version } => {
                let pair = (node.min(peer), node.max(peer), version.low, version.high);
                match self.upgraded.get(&pair) {
                    None => {
                        self.upgraded.insert(pair, now);
                    }
                    Some(&at) => self.found.followed.push(now.since(at)),
                }
            }
            RingEvent::Activated { .. }
            | RingEvent::Joined(_)
            | RingEvent::Left { .. }
            | RingEvent::Closed(_) => {}
        }
    }
}

impl<M: RingMember> Observer<M> for Arbitrating {
    fn started(&mut self, _now: Time, node: NodeId, _state: State) {
        self.crashed.remove(&node);
    }

    fn effect(&mut self, now: Time, node: NodeId, effect: &EffectOf<M>) {
        match effect {
            Effect::Emit(event) => {
                if let Some(event) = M::ring_event(event) {
                    self.event(now, node, event);
                }
            }
            Effect::Send { to, message } => {
                let Some(message) = M::ring_message(message) else { return };
                match message.body {
                    Body::Request(_) | Body::Ack(_) => {
                        let warm = now.since(Time::ZERO) >= self.session * WARM;
                        self.found.leases += u64::from(warm);
                    }
                    Body::Ask { .. } if to.get() < u64::from(self.nodes) => {
                        self.found.requests[to.get() as usize] += 1;
                    }
                    Body::Propose { .. } | Body::Proposed { .. } => self.found.upgrades += 1,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn handled(&mut self, now: Time, node: NodeId, machine: &M) {
        let ring = machine.ring();
        // Who has just woken reads its letters first, and then finds that its time was up.
        let local = self.clocks[node.get() as usize].read(now);
        let overslept = machine.deadline().is_some_and(|(at, _)| at < local);
        let life = (ring.is_active() && !overslept).then(|| ring.life());
        self.alive.is(node, life);
        if let Some(life) = life {
            self.lives.insert(node, life);
        }
        match ring.locked_for(local) {
            Some(holder) => self.locks.insert(node, holder),
            None => self.locks.remove(&node),
        };
        while let Some(joiner) = self.joiners.pop() {
            let locked = self.locks.values().filter(|holder| holder.id() == joiner).count();
            self.found.locked.push((locked, ring.leases().len()));
        }
        let until = machine.authority().map(|at| self.clocks[node.get() as usize].when(at));
        if until.is_none() && self.led.is_none() {
            return;
        }
        let before = self.lease.holder(now);
        if let Err(detail) = self.lease.holds(now, node, until) {
            self.violate(now, OneValidLease::NAME, detail);
        }
        let after = self.lease.holder(now);
        if after.is_some() {
            self.led = self.led.or(Some(now));
            if after != before
                && let Some(fallen) = self.fallen.take()
            {
                self.found.fail_overs.push(now.since(fallen));
            }
        }
        if before.is_some() != after.is_some() || self.idle_since.is_none() {
            self.idle(now, after.is_some());
        }
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        if let Some(&life) = self.lives.get(&node)
            && self.alive.active().any(|other| other == node)
        {
            self.crashed.insert(node, (now, life));
            if self.lease.holder(now) == Some(node) {
                self.fallen = Some(now);
            }
        }
        self.alive.is(node, None);
    }

    fn paused(&mut self, _now: Time, node: NodeId) {
        self.alive.is(node, None);
    }

    fn drifted(&mut self, now: Time, node: NodeId, ppm: i32) {
        self.clocks[node.get() as usize].set_rate(now, ppm);
    }

    fn sent(&mut self, _node: NodeId, _to: Option<NodeId>, _message: &M::Message, _way: &Travel) {}
}

impl Favourite for Arbitrating {
    fn favourite(&self) -> Option<u32> {
        None
    }
}

/// Those that begin as members, and those whom others may ask.
fn founders(scenario: &Scenario, config: &ring::Config) -> (Vec<Peer>, Vec<NodeId>) {
    let peers = (0..scenario.network.nodes)
        .map(|node| Peer::new(NodeId::new(u64::from(node)), Boot::new(1)))
        .filter(|peer| !config.is_external(peer.id));
    let founders: Vec<Peer> = peers.collect();
    let contacts = founders.iter().map(|peer| peer.id).collect();
    (founders, contacts)
}

/// Makes the members of a scenario.
fn member(scenario: &Scenario, config: ring::Config) -> impl Fn(Peer, Seed) -> Ring + use<> {
    let (founders, contacts) = founders(scenario, &config);
    move |me, seed| {
        let mut contacts = contacts.clone();
        if !contacts.is_empty() {
            let first = seed.named("contact").rng().below(contacts.len() as u64) as usize;
            contacts.rotate_left(first);
        }
        Ring::new(me, config, seed, &founders, &contacts)
    }
}

/// What a ring came to, with everything seen.
pub struct Study {
    /// What every run comes to.
    pub outcome: Outcome,
    /// What happened on the ring.
    pub findings: Findings,
    /// Members at the end.
    pub active: Vec<NodeId>,
    /// Of all pairs that should monitor each other, the share whose groups are not what they should be.
    pub stale: f64,
}

/// Runs a ring, with or without an election; `None` if the scenario is about something else.
///
/// # Errors
///
/// [`Disconnected`] if a random placement cannot be drawn.
pub fn study(scenario: &Scenario, seed: u64, log: Log<'_>) -> Result<Option<Study>, Disconnected> {
    use crate::scenario::Protocol;
    match &scenario.protocol {
        &Protocol::Ring(config) => {
            let make = member(scenario, config);
            let build: Builder<Ring> = Box::new(move |me, seed, _| make(me, seed));
            let watch = Arbitrating::new(scenario.capacity(), config.session());
            let mut sim = run::simulate(scenario, seed, build, (watch, log))?;
            let end = sim.now();
            sim.observer_mut().0.finish(end);
            let watch = &sim.observer().0;
            Ok(Some(conclude(&sim, seed, watch, Vec::new(), Vec::new())))
        }
        Protocol::Leased { membership, election, witnesses } => {
            let (config, election) = (*membership, *election);
            let witnesses: Vec<NodeId> =
                witnesses.iter().map(|&node| NodeId::new(u64::from(node))).collect();
            let make = member(scenario, config);
            let build: Builder<Leased> = Box::new(move |me, seed, durable| {
                Leased::new(make(me, seed).with_witnesses(&witnesses), election, durable)
            });
            let watch = Watch::new(scenario.capacity(), scenario.until).telling(&log);
            let arbitrating = Arbitrating::new(scenario.capacity(), config.session());
            let root = Seed::new(seed);
            let (network, nodes) = world::world(scenario, root)?;
            let observer = ((watch, arbitrating), log);
            let mut sim = Sim::new(network, nodes, root, build, observer);
            let word = Word { elect: Some(leased::Command::Resign), ..Word::none() };
            faults::play(&mut sim, scenario, root, word)?;
            let end = sim.now();
            let ((watch, arbitrating), _) = sim.observer_mut();
            watch.finish(end);
            arbitrating.finish(end);
            let ((watch, arbitrating), _) = sim.observer();
            let mut values = run::agreed(watch, end).to_vec();
            let seconds = |d: Duration| d.as_secs_f64();
            let worst = arbitrating.found.fail_overs.iter().max().copied();
            values.extend([
                (Metric::LeaseOverlap, Some(seconds(arbitrating.lease.overlap()))),
                (Metric::SmallestGap, arbitrating.smallest_gap().map(seconds)),
                (Metric::FailOver, worst.map(seconds)),
                (Metric::LeaderlessTime, Some(seconds(arbitrating.found.leaderless))),
            ]);
            let mut study = conclude(&sim, seed, arbitrating, values, watch.violations().to_vec());
            study.outcome.disagreements = watch.agreement().disagreements().to_vec();
            study.outcome.sometimes =
                watch.sometimes().into_iter().chain(arbitrating.sometimes(true)).collect();
            Ok(Some(study))
        }
        _ => Ok(None),
    }
}

fn conclude<M: RingMember, O: Observer<M>>(
    sim: &Sim<M, O>,
    seed: u64,
    watch: &Arbitrating,
    mut values: Vec<(Metric, Option<f64>)>,
    mut violations: Vec<Violation>,
) -> Study {
    let found = watch.findings().clone();
    let machines = || (0..sim.len()).filter_map(|node| sim.machine(node).map(RingMember::ring));
    let members: Vec<&Ring> = machines().filter(|ring| ring.is_active()).collect();
    let active: Vec<NodeId> = members.iter().map(|ring| ring.life().id()).collect();
    let (mut pairs, mut stale) = (0_u32, 0_u32);
    for ring in &members {
        for peer in ring.neighbours() {
            pairs += 1;
            stale += u32::from(!ring.is_upgraded(peer.id()));
        }
    }
    let stale = f64::from(stale) / f64::from(pairs.max(1));
    let mean = |all: &[Duration]| {
        let sum: f64 = all.iter().map(|d| d.as_secs_f64()).sum();
        (!all.is_empty()).then(|| sum / all.len() as f64)
    };
    let losers: BTreeSet<(NodeId, NodeId)> =
        found.departed.iter().filter_map(|&(_, node, over)| Some((node, over?))).collect();
    let mutual = losers.iter().filter(|&&(a, b)| a < b && losers.contains(&(b, a))).count();
    let warm = watch.session * WARM;
    let sessions = sim.now().since(Time::ZERO + warm).as_secs_f64() / watch.session.as_secs_f64();
    let nodes = members.len().max(1) as f64;
    let took: Vec<Duration> = found.joined.iter().map(|&(took, _)| took).collect();
    violations.extend(watch.violations().iter().cloned());
    values.retain(|(metric, _)| *metric != Metric::Violations);
    let number = |value: usize| Some(value as f64);
    values.extend([
        (Metric::ActiveAtEnd, number(members.len())),
        (Metric::ForcedDepartures, number(found.departed.len())),
        (Metric::MutualLosses, number(mutual)),
        (Metric::MonitorDetection, mean(&found.suspected)),
        (Metric::LatestBurial, found.buried.iter().max().map(|d| d.as_secs_f64())),
        (
            Metric::LeasesPerSession,
            (sessions > 0.0).then(|| found.leases as f64 / sessions / nodes),
        ),
        (Metric::ArbitrationRequests, Some(found.requests.iter().sum::<u64>() as f64)),
        (Metric::MostRequests, found.requests.iter().max().map(|&most| most as f64)),
        (Metric::UpgradeMessages, Some(found.upgrades as f64)),
        (Metric::JoinTime, mean(&took)),
        (Metric::StalePairs, Some(stale)),
        (Metric::Violations, number(violations.len())),
    ]);
    let outcome = Outcome {
        violations,
        sometimes: watch.sometimes(false),
        ..run::outcome(sim, seed, values)
    };
    Study { outcome, findings: found, active, stale }
}

/// Sessions before lease messages are counted: founders have opened all leases by then.
const WARM: u64 = 10;
