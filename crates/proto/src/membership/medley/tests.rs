use std::{collections::BTreeMap, vec, vec::Vec};

use super::*;
use crate::machine::{Effect, Outbox};

mod addresses;
mod caution;
mod contract;
mod network;
mod rules;
mod watch;

type Effects = Vec<Effect<Message, Durable, MembershipEvent>>;

fn id(id: u64) -> NodeId {
    NodeId::new(id)
}

fn peer(id: u64, boot: u64) -> Peer {
    Peer::new(NodeId::new(id), Boot::new(boot))
}

/// The chapter's time unit.
fn units(count: u64) -> Duration {
    Duration::from_millis(100 * count)
}

fn at(count: u64) -> Time {
    Time::ZERO + units(count)
}

fn inc(incarnation: u32) -> Incarnation {
    Incarnation::new(incarnation)
}

fn config(strategy: Strategy, form: Form) -> Config {
    Config::new(strategy, form).with_phase(Phase::Sync)
}

fn member(id: u64) -> Contact {
    Contact { id: NodeId::new(id), distance: 1.0 + id as f32, neighbour: true, member: true }
}

fn message(sequence: u64, incarnation: u32, body: Body, updates: &[Update]) -> Message {
    let (updates, introductions) = (updates.to_vec(), vec![]);
    Message { sequence, incarnation: inc(incarnation), body, updates, introductions }
}

fn news(subject: Peer, incarnation: u32, status: Status) -> Update {
    Update { subject, incarnation: inc(incarnation), status }
}

/// A machine and its outbox.
struct Node {
    machine: Medley,
    out: OutboxOf<Medley>,
}

impl Node {
    /// Node 0 among members `1..=others`, started at zero.
    fn running(config: Config, others: u64) -> Self {
        let mut node = Self::with(config, (1..=others).map(member).collect());
        node.input(Time::ZERO, Input::Start).unwrap();
        node
    }

    fn with(config: Config, contacts: Vec<Contact>) -> Self {
        let machine = Medley::new(peer(0, 1), config, Seed::new(7), None, contacts);
        Self { machine, out: Outbox::new() }
    }

    fn input(&mut self, now: Time, input: InputOf<'_, Medley>) -> Result<Effects, Rejected> {
        self.machine.handle(now, input, &mut self.out)?;
        Ok(core::iter::from_fn(|| self.out.pop()).collect())
    }

    fn hears(&mut self, now: Time, from: Peer, message: &Message) -> Result<Effects, Rejected> {
        self.input(now, Input::Message { from, via: from.id, message })
    }

    fn wakes(&mut self, now: Time) -> Effects {
        self.input(now, Input::Timeout).unwrap()
    }
}

/// Where messages of this kind were sent.
fn receivers(effects: &Effects, wanted: impl Fn(Body) -> bool) -> Vec<NodeId> {
    let sent = effects.iter().filter_map(|effect| match effect {
        Effect::Send { to, message } if wanted(message.body) => Some(*to),
        _ => None,
    });
    sent.collect()
}

fn broadcasts(effects: &Effects) -> Vec<&Message> {
    let sent = effects.iter().filter_map(|effect| match effect {
        Effect::Broadcast(message) => Some(message),
        _ => None,
    });
    sent.collect()
}
