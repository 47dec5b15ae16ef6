//! What is watched and measured where a ring arbitrates, with or without a leased leader on it.

use std::collections::BTreeMap;

use bellwether_proto::{
    Duration, Effect, EffectOf, Machine, NodeId, Time,
    election::leased::{self, Leased},
    membership::ring::{self, Body, Life, Ring, RingEvent},
};

use super::Favourite;
use crate::{
    engine::{Observer, State, clock::Clock},
    invariant::{NobodyBuriedAlive, OneOfTwoWins, OneValidLease, Violation, Violations},
};

/// A machine that is, or stands on, a member of a ring.
pub trait RingMember: Machine {
    /// The member of the ring.
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

/// What happened on a ring.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// From a crash to each monitor's suspicion.
    pub suspected: Vec<Duration>,
    /// From a crash to the first suspicion of it.
    pub first_suspected: Vec<Duration>,
    /// From a crash to the last suspicion of it.
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
pub struct RingWatch {
    session: Duration,
    nodes: u32,
    clocks: Vec<Clock>,
    alive: NobodyBuriedAlive,
    wins: OneOfTwoWins,
    lease: OneValidLease,
    violations: Violations,
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

impl RingWatch {
    /// Nobody is there yet.
    pub fn new(nodes: u32, session: Duration) -> Self {
        Self {
            session,
            nodes,
            clocks: vec![Clock::true_time(); nodes as usize],
            alive: NobodyBuriedAlive::default(),
            wins: OneOfTwoWins::default(),
            lease: OneValidLease::default(),
            violations: Violations::default(),
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

    /// What happened on the ring.
    pub fn findings(&self) -> &Findings {
        &self.found
    }

    /// How long more than one could act.
    pub fn overlap(&self) -> Duration {
        self.lease.overlap()
    }

    /// Lease messages of all nodes in each session until `now`; `None` before they are counted.
    pub fn leases_per_session(&self, now: Time) -> Option<f64> {
        let counted = now.since(Time::ZERO + self.session * WARM);
        let sessions = counted.as_secs_f64() / self.session.as_secs_f64();
        (sessions > 0.0).then(|| self.found.leases as f64 / sessions)
    }

    /// The shortest time between two leaders.
    pub fn smallest_gap(&self) -> Option<Duration> {
        self.lease.smallest_gap()
    }

    /// The first violation of each invariant.
    pub fn violations(&self) -> &[Violation] {
        self.violations.all()
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
                    self.violations.add(now, OneOfTwoWins::NAME, detail);
                }
            }
            RingEvent::Buried { life, .. } => {
                if let Err(detail) = self.alive.buries(node, life) {
                    self.violations.add(now, NobodyBuriedAlive::NAME, detail);
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

impl<M: RingMember> Observer<M> for RingWatch {
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
            self.violations.add(now, OneValidLease::NAME, detail);
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
}

impl Favourite for RingWatch {
    fn favourite(&self) -> Option<u32> {
        None
    }
}

/// Sessions before lease messages are counted: founders have opened all leases by then.
const WARM: u64 = 10;
