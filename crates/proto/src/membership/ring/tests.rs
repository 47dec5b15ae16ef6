//! The test vectors of `docs/rules/arbitrated.md`, on machines in a small network.

use alloc::{collections::BTreeMap, vec, vec::Vec};

use super::*;
use crate::{
    id::Boot,
    machine::{Effect, Outbox},
};

mod arbitration;
mod endings;
mod joining;
mod leases;
mod vectors;
mod wire;

fn id(number: u64) -> NodeId {
    NodeId::new(number)
}

fn peer(number: u64) -> Peer {
    Peer::new(id(number), Boot::new(1))
}

fn life(number: u64) -> Life {
    Life { peer: peer(number), inc: Incarnation::default() }
}

fn ms(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

/// What passes a link: from, to, when, what.
type Filter = Box<dyn FnMut(u64, u64, Time, &Message) -> bool>;
use alloc::boxed::Box;

/// Machines in a network of fixed delay, at one instant deliveries first.
struct Net {
    now: Time,
    delay: Duration,
    nodes: BTreeMap<u64, Ring>,
    queue: BTreeMap<(Time, u64), (u64, u64, Message)>,
    sent: u64,
    filter: Filter,
    events: Vec<(Time, u64, RingEvent)>,
    log: Vec<(Time, u64, u64, Message)>,
}

impl Net {
    fn new() -> Self {
        Self {
            now: Time::ZERO,
            delay: Duration::from_millis(10),
            nodes: BTreeMap::new(),
            queue: BTreeMap::new(),
            sent: 0,
            filter: Box::new(|_, _, _, _| true),
            events: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Founders with these identities, in the order of the ring, settled: leases active, arbitrators not fresh.
    fn ring(config: Config, ids: &[u64]) -> Self {
        let mut net = Self::new();
        let founders: Vec<Peer> = ids.iter().map(|&id| peer(id)).collect();
        for &one in &founders {
            net.start(Ring::new(one, config, Seed::new(one.id.get()), &founders, &[]));
        }
        net.run(ms(10_000));
        net
    }

    fn start(&mut self, node: Ring) {
        let key = node.me.id.get();
        self.nodes.insert(key, node);
        self.input(key, Input::Start);
    }

    fn input(&mut self, key: u64, input: InputOf<'_, Ring>) {
        let mut out = Outbox::new();
        let Some(node) = self.nodes.get_mut(&key) else { return };
        let _ = node.handle(self.now, input, &mut out);
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Send { to, message } => {
                    self.log.push((self.now, key, to.get(), message.clone()));
                    if (self.filter)(key, to.get(), self.now, &message) {
                        self.sent += 1;
                        let at = (self.now + self.delay, self.sent);
                        self.queue.insert(at, (key, to.get(), message));
                    }
                }
                Effect::Emit(event) => self.events.push((self.now, key, event)),
                other => panic!("{other:?}"),
            }
        }
    }

    fn crash(&mut self, key: u64) {
        self.nodes.remove(&key);
    }

    fn run(&mut self, until: Time) {
        loop {
            let message = self.queue.keys().next().map(|&(at, _)| at);
            let timer =
                self.nodes.iter().filter_map(|(&key, node)| Some((node.deadline()?.0, key))).min();
            let next = message.unwrap_or(Time::NEVER).min(timer.map_or(Time::NEVER, |(at, _)| at));
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            if message.is_some_and(|at| at <= self.now) {
                let (_, (from, to, message)) = self.queue.pop_first().unwrap();
                let from = peer(from);
                self.input(to, Input::Message { from, via: from.id, message: &message });
            } else if let Some((_, key)) = timer {
                self.input(key, Input::Timeout);
                let due = self.nodes[&key].deadline();
                assert!(due.is_none_or(|(at, _)| at > self.now), "n{key} at {}: {due:?}", self.now);
            }
        }
    }

    fn active(&self) -> Vec<u64> {
        self.nodes.iter().filter(|(_, node)| node.is_active()).map(|(&key, _)| key).collect()
    }

    fn forced(&self) -> usize {
        self.events.iter().filter(|e| matches!(e.2, RingEvent::Departed { .. })).count()
    }
}

/// As published, in the order of identities, with this many neighbours.
fn published(k: usize) -> Config {
    Config::as_published().with_points(Points::Identity, 64).with_neighbours(k).unwrap()
}

fn hardened(k: usize) -> Config {
    let config = Config::hardened().with_points(Points::Identity, 64).with_neighbours(k).unwrap();
    config.with_rejoin(false)
}

fn ids(count: u64) -> Vec<u64> {
    (0..count).collect()
}
