//! A model checker for small rings: the machines themselves, in every history that differs from the regular one in a
//! few places.
//!
//! A regular history delivers every message after one delay. A *deviation* delays a message, loses it, or crashes a
//! node that may crash. All histories with at most so many deviations are followed to the end, and S1, S2 and S3 of
//! `docs/rules/arbitrated.md` are looked at after every step. What a machine has become is a function of what it was
//! given and when, so two states are one if every machine was given the same, and the same messages are on their way;
//! such are followed once.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{Duration, Effect, Input, Outbox, Peer, Time};

use crate::{
    arbitrating::RingMember,
    clock::Clock,
    invariant::{NobodyBuriedAlive, OneOfTwoWins, OneValidLease},
    trace::TraceHash,
};

/// What may go wrong, and when.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a message takes.
    pub delay: Duration,
    /// How long a delayed one takes instead.
    pub late: Duration,
    /// How many deviations a history has at most.
    pub deviations: u32,
    /// From when to when they happen.
    pub window: (Time, Time),
    /// When histories end.
    pub until: Time,
    /// From the beginning of the window on nothing passes between these, either way.
    pub cut: Vec<(u64, u64)>,
    /// Who may crash.
    pub crashes: Vec<u64>,
    /// Whose clock is fast or slow, and by how many millionths.
    pub drift: Vec<(u64, i32)>,
    /// Not to look at more states than this.
    pub most: u64,
}

impl Settings {
    /// Ten milliseconds a message, or six hundred; two deviations between two instants, and histories six seconds
    /// longer.
    pub fn new(from: Time, to: Time) -> Self {
        Self {
            delay: Duration::from_millis(10),
            late: Duration::from_millis(600),
            deviations: 2,
            window: (from, to),
            until: to + Duration::from_secs(6),
            cut: Vec::new(),
            crashes: Vec::new(),
            drift: Vec::new(),
            most: u64::MAX,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Explored {
    /// Different states looked at.
    pub states: u64,
    /// Histories followed to their end, or to a state that had been seen.
    pub histories: u64,
    /// What did not hold, in the first history in which something did not.
    pub violation: Option<String>,
    /// Arbitrations won.
    pub won: u64,
    /// Leaders that followed another one, and the least time between two.
    pub followed: u64,
    /// See above.
    pub smallest_gap: Option<Duration>,
    /// Histories at whose end a joiner was a member, and those at whose end it was not.
    pub joined: (u64, u64),
}

struct World<M: RingMember> {
    now: Time,
    nodes: BTreeMap<u64, M>,
    peers: BTreeMap<u64, Peer>,
    clocks: BTreeMap<u64, Clock>,
    queue: BTreeMap<(Time, u64), (u64, u64, M::Message)>,
    given: BTreeMap<u64, TraceHash>,
    sent: u64,
    left: u32,
    alive: NobodyBuriedAlive,
    wins: OneOfTwoWins,
    lease: OneValidLease,
}

impl<M: RingMember + Clone> Clone for World<M> {
    fn clone(&self) -> Self {
        Self {
            now: self.now,
            nodes: self.nodes.clone(),
            peers: self.peers.clone(),
            clocks: self.clocks.clone(),
            queue: self.queue.clone(),
            given: self.given.clone(),
            sent: self.sent,
            left: self.left,
            alive: self.alive.clone(),
            wins: self.wins.clone(),
            lease: self.lease.clone(),
        }
    }
}

/// Follows every history of these nodes, which have not started.
pub fn explore<M: RingMember + Clone>(
    nodes: impl IntoIterator<Item = (Peer, M)>,
    settings: &Settings,
) -> Explored {
    let mut found = Explored::default();
    let mut world = World {
        now: Time::ZERO,
        nodes: BTreeMap::new(),
        peers: BTreeMap::new(),
        clocks: BTreeMap::new(),
        queue: BTreeMap::new(),
        given: BTreeMap::new(),
        sent: 0,
        left: settings.deviations,
        alive: NobodyBuriedAlive::default(),
        wins: OneOfTwoWins::default(),
        lease: OneValidLease::default(),
    };
    for (peer, machine) in nodes {
        let key = peer.id.get();
        let mut clock = Clock::true_time();
        let ppm = settings.drift.iter().find(|(node, _)| *node == key);
        clock.set_rate(Time::ZERO, ppm.map_or(0, |&(_, ppm)| ppm));
        world.clocks.insert(key, clock);
        world.peers.insert(key, peer);
        world.nodes.insert(key, machine);
        world.given.insert(key, TraceHash::new());
    }
    let keys: Vec<u64> = world.nodes.keys().copied().collect();
    for key in keys {
        let _ = world.step(key, None, settings, &mut found);
    }
    let mut seen = BTreeSet::new();
    let mut stack = vec![world];
    while let Some(mut world) = stack.pop() {
        loop {
            if found.states >= settings.most || found.violation.is_some() {
                return found;
            }
            let Some((key, message)) = world.next(settings.until) else { break };
            let (from, to) = settings.window;
            if world.left > 0 && world.now >= from && world.now < to {
                // Before it is woken it may be dead.
                if message.is_none() && settings.crashes.contains(&key) {
                    let mut other = world.clone();
                    other.left -= 1;
                    other.nodes.remove(&key);
                    other.alive.is(other.peers[&key].id, None);
                    stack.push(other);
                }
            }
            let before = world.sent;
            if let Err(violation) = world.step(key, message, settings, &mut found) {
                found.violation = Some(violation);
                return found;
            }
            if world.left > 0 && world.now >= from && world.now < to {
                let fresh: Vec<(Time, u64)> =
                    world.queue.keys().copied().filter(|&(_, number)| number > before).collect();
                for at in fresh {
                    for late in [false, true] {
                        let mut other = world.clone();
                        other.left -= 1;
                        if let Some(message) = other.queue.remove(&at)
                            && late
                        {
                            other.queue.insert((other.now + settings.late, at.1), message);
                        }
                        stack.push(other);
                    }
                }
            }
            if !seen.insert(world.identity()) {
                break;
            }
            found.states += 1;
        }
        found.histories += 1;
        let active = |machine: &M| machine.ring().is_active();
        if world.nodes.values().all(active) {
            found.joined.0 += 1;
        } else {
            found.joined.1 += 1;
        }
    }
    found
}

impl<M: RingMember + Clone> World<M> {
    /// What happens next, and to whom: deliveries before timers.
    #[expect(clippy::type_complexity, reason = "a sender and what it said")]
    fn next(&mut self, until: Time) -> Option<(u64, Option<(u64, M::Message)>)> {
        let delivery = self.queue.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        let due = |(key, machine): (&u64, &M)| {
            Some((self.clocks[key].when(machine.deadline()?.0).max(self.now), *key))
        };
        let timer = self.nodes.iter().filter_map(due).min();
        let at = delivery.min(timer.map_or(Time::NEVER, |(at, _)| at));
        if at > until {
            return None;
        }
        self.now = at;
        if delivery <= at {
            let (_, (from, to, message)) = self.queue.pop_first()?;
            return Some((to, Some((from, message))));
        }
        timer.map(|(_, key)| (key, None))
    }

    /// Gives a node what is next for it: its start, a message, or a wake-up.
    fn step(
        &mut self,
        key: u64,
        message: Option<(u64, M::Message)>,
        settings: &Settings,
        found: &mut Explored,
    ) -> Result<(), String> {
        let local = self.clocks[&key].read(self.now);
        let Some(machine) = self.nodes.get_mut(&key) else { return Ok(()) };
        let mut out = Outbox::new();
        let hash = self.given.entry(key).or_default();
        hash.fold(self.now.as_micros());
        let started = hash.get() != TraceHash::new().get() && machine.deadline().is_some();
        match &message {
            Some((from, message)) => {
                hash.fold(*from);
                hash.fold_value(message);
                let from = self.peers[from];
                let input = Input::Message { from, via: from.id, message };
                // A refusal is an answer too.
                let _ = machine.handle(local, input, &mut out);
            }
            None => {
                let input = if started { Input::Timeout } else { Input::Start };
                let _ = machine.handle(local, input, &mut out);
            }
        }
        let ring = machine.ring();
        let (id, life) = (self.peers[&key].id, ring.life());
        let active = ring.is_active().then_some(life);
        let until = machine.authority().map(|at| self.clocks[&key].when(at));
        let held = self.lease.smallest_gap();
        self.lease.holds(self.now, id, until)?;
        if self.lease.smallest_gap() != held {
            found.followed += 1;
            let gap = self.lease.smallest_gap();
            found.smallest_gap = match (found.smallest_gap, gap) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        self.alive.is(id, active);
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Send { to, message } => {
                    let pair = (key.min(to.get()), key.max(to.get()));
                    let cut = self.now >= settings.window.0 && settings.cut.contains(&pair);
                    if !cut && self.peers.contains_key(&to.get()) {
                        self.sent += 1;
                        let at = (self.now + settings.delay, self.sent);
                        self.queue.insert(at, (key, to.get(), message));
                    }
                }
                Effect::Emit(event) => {
                    use bellwether_proto::membership::ring::RingEvent;
                    match M::ring_event(&event) {
                        Some(RingEvent::Condemned(accused)) => {
                            found.won += 1;
                            self.wins.wins(life, *accused)?;
                        }
                        Some(RingEvent::Buried { life, .. }) => {
                            self.alive.buries(id, *life)?;
                        }
                        _ => {}
                    }
                }
                Effect::Broadcast(_) | Effect::Multicast(_) | Effect::Persist(_) => {}
            }
        }
        Ok(())
    }

    fn identity(&self) -> u64 {
        let mut hash = TraceHash::new();
        hash.fold(self.now.as_micros());
        hash.fold(u64::from(self.left));
        for (key, given) in &self.given {
            hash.fold(*key);
            hash.fold(given.get());
            hash.fold(u64::from(self.nodes.contains_key(key)));
        }
        for ((at, _), (from, to, message)) in &self.queue {
            hash.fold(at.as_micros());
            hash.fold(from << 32 | to);
            hash.fold_value(message);
        }
        hash.get()
    }
}
