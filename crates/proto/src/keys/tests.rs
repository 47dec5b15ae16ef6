//! Members that own keys, in a small network.

use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};

use super::*;
use crate::{id::Boot, membership::ring::Points, rng::Seed, wire::Wire};

mod rules;

fn id(number: u64) -> NodeId {
    NodeId::new(number)
}

fn peer(number: u64) -> Peer {
    Peer::new(id(number), Boot::new(1))
}

fn life(number: u64) -> Life {
    Life { peer: peer(number), inc: crate::id::Incarnation::default() }
}

fn ms(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

fn config(slots: u32, keepers: usize) -> Config {
    Config::new().with_slots(slots).unwrap().with_keepers(keepers).unwrap()
}

fn below() -> ring::Config {
    let config = ring::Config::hardened().with_points(Points::Identity, 64);
    config.with_neighbours(2).unwrap().with_rejoin(false)
}

/// What passes a link: from, to, what.
type Filter = Box<dyn FnMut(u64, u64, &Message) -> bool>;

/// Machines in a network of fixed delay, at one instant deliveries first.
struct Net {
    now: Time,
    nodes: BTreeMap<u64, Keys>,
    queue: BTreeMap<(Time, u64), (Peer, u64, Message)>,
    sent: u64,
    /// Messages about slots.
    said: u64,
    filter: Filter,
    kept: BTreeMap<u64, u64>,
}

impl Net {
    /// Founders with identities from 0 on, settled.
    fn founded(count: u64, config: Config) -> Self {
        let mut net = Self {
            now: Time::ZERO,
            nodes: BTreeMap::new(),
            queue: BTreeMap::new(),
            sent: 0,
            said: 0,
            filter: Box::new(|_, _, _| true),
            kept: BTreeMap::new(),
        };
        let founders: Vec<Peer> = (0..count).map(peer).collect();
        for &one in &founders {
            let ring = Ring::new(one, below(), Seed::new(one.id.get()), &founders, &[]);
            net.start(Keys::new(ring, config, None));
        }
        net.run(ms(12_000));
        net
    }

    fn join(&mut self, number: u64, config: Config) {
        let contacts: Vec<NodeId> = self.nodes.keys().map(|&key| id(key)).collect();
        let ring = Ring::new(peer(number), below(), Seed::new(number), &[], &contacts);
        self.start(Keys::new(ring, config, None));
    }

    fn start(&mut self, node: Keys) {
        let key = node.life.id().get();
        self.nodes.insert(key, node);
        self.input(key, Input::Start);
    }

    fn input(&mut self, key: u64, input: InputOf<'_, Keys>) {
        let mut out = Outbox::new();
        let Some(node) = self.nodes.get_mut(&key) else { return };
        let from = node.life.peer;
        let _ = node.handle(self.now, input, &mut out);
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Send { to, message } => {
                    self.said += u64::from(matches!(message.body, Body::Keys { .. }));
                    if (self.filter)(key, to.get(), &message) {
                        self.sent += 1;
                        let at = (self.now + Duration::from_millis(10), self.sent);
                        self.queue.insert(at, (from, to.get(), message));
                    }
                }
                Effect::Persist(counter) => {
                    self.kept.insert(key, counter);
                }
                Effect::Emit(_) => {}
                other => panic!("{other:?}"),
            }
        }
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
                self.input(to, Input::Message { from, via: from.id, message: &message });
            } else if let Some((_, key)) = timer {
                self.input(key, Input::Timeout);
            }
        }
    }

    /// Until `until`, looking at every slot every ten milliseconds: the longest that any had no owner.
    fn watch(&mut self, until: Time, slots: u32) -> Duration {
        let mut since = vec![self.now; slots as usize];
        let mut longest = Duration::ZERO;
        while self.now < until {
            for (slot, since) in since.iter_mut().enumerate() {
                match self.owners(slot as u32).len() {
                    0 => longest = longest.max(self.now.since(*since)),
                    1 => *since = self.now,
                    _ => panic!("slot {slot} at {}: {:?}", self.now, self.owners(slot as u32)),
                }
            }
            self.run(self.now + Duration::from_millis(10));
        }
        longest
    }

    /// Those that may act for a slot now, and under which epochs.
    fn owners(&self, slot: u32) -> Vec<(u64, Epoch)> {
        let acts = |(&key, node): (&u64, &Keys)| {
            let (epoch, until) = node.authority(Slot::new(slot))?;
            (until > self.now).then_some((key, epoch))
        };
        self.nodes.iter().filter_map(acts).collect()
    }

    fn owner(&self, slot: u32) -> (u64, Epoch) {
        let owners = self.owners(slot);
        assert_eq!(owners.len(), 1, "slot {slot} at {}: {owners:?}", self.now);
        owners[0]
    }
}
