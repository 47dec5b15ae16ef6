//! The rules one by one, on nodes whose network is in our hands.

use alloc::{vec, vec::Vec};

use super::{estimator::Arm, *};
use crate::{
    id::Boot,
    machine::{Effect, EffectOf, Outbox},
    time::Duration,
};

mod contract;
mod hardened;
mod published;
mod vectors;

pub(super) fn id(node: usize) -> NodeId {
    NodeId::new(node as u64)
}

pub(super) fn peer(node: usize) -> Peer {
    Peer::new(id(node), Boot::new(1))
}

pub(super) fn members(nodes: usize) -> Arc<[NodeId]> {
    (0..nodes).map(id).collect()
}

pub(super) fn ms(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

pub(super) fn estimates(means: &[f64]) -> estimator::Estimates {
    estimator::Estimates::of(means.iter().map(|&mean| Arm::new(mean, 1)).collect())
}

/// Greedy, without pings: lists are what the estimates say.
pub(super) fn greedy(profile: Profile) -> Config {
    let policy = Policy::EpsilonGreedy { epsilon: 0.0, decay: 1.0 };
    Config::new(profile, policy).with_pings(None).unwrap()
}

pub(super) type Sent = Vec<(Option<NodeId>, Message)>;

/// Nodes whose messages are delivered by hand.
pub(super) struct Nodes {
    pub(super) nodes: Vec<Bandit>,
    pub(super) disks: Vec<Option<Durable>>,
}

impl Nodes {
    pub(super) fn new(count: usize, config: Config) -> Self {
        Self::of(count, |_| config)
    }

    pub(super) fn of(count: usize, config: impl Fn(usize) -> Config) -> Self {
        let node = |place: usize| {
            let seed = Seed::new(7).indexed(place as u64);
            Bandit::new(peer(place), members(count), config(place), seed, None)
        };
        let mut nodes = Self { nodes: (0..count).map(node).collect(), disks: vec![None; count] };
        for place in 0..count {
            nodes.input(place, Time::ZERO, Input::Start);
        }
        nodes
    }

    /// What they believe, in the order of nodes.
    pub(super) fn believing(mut self, means: &[impl AsRef<[f64]>]) -> Self {
        for (node, means) in self.nodes.iter_mut().zip(means) {
            node.common.chooser.estimates = estimates(means.as_ref());
        }
        self
    }

    /// Hands over an input and returns what is sent, in order.
    pub(super) fn input(&mut self, node: usize, now: Time, input: InputOf<'_, Bandit>) -> Sent {
        let mut out = Outbox::new();
        self.nodes[node].handle(now, input, &mut out).unwrap();
        let mut sent = Vec::new();
        while let Some(effect) = out.pop() {
            let effect: EffectOf<Bandit> = effect;
            match effect {
                Effect::Send { to, message } => sent.push((Some(to), message)),
                Effect::Multicast(message) => sent.push((None, message)),
                Effect::Persist(durable) => self.disks[node] = Some(durable),
                Effect::Broadcast(_) | Effect::Emit(_) => {}
            }
        }
        sent
    }

    pub(super) fn hear(&mut self, node: usize, now: Time, from: usize, message: &Message) -> Sent {
        let from = peer(from);
        self.input(node, now, Input::Message { from, via: from.id, message })
    }

    pub(super) fn timeout(&mut self, node: usize, now: Time) -> Sent {
        self.input(node, now, Input::Timeout)
    }

    pub(super) fn leader(&self, node: usize) -> Option<usize> {
        self.nodes[node].leadership().leader.map(|leader| leader.get() as usize)
    }

    pub(super) fn leads(&self, node: usize) -> bool {
        self.leader(node) == Some(node)
    }
}

pub(super) fn request(number: u64, attempt: u32) -> Message {
    Message::ClientRequest { number, attempt }
}

pub(super) fn list(names: &[usize]) -> Vec<NodeId> {
    names.iter().map(|&name| id(name)).collect()
}

pub(super) fn share(term: u64, names: &[usize]) -> Message {
    Message::ShareCandidate { term, list: list(names) }
}

#[test]
fn a_wait_of_nothing_is_refused_by_name() {
    let config = greedy(Profile::Published);
    let waits = Waits { collect: Duration::ZERO, ..config.waits() };
    assert_eq!(config.with_waits(waits), Err(ConfigError::NoTime { name: "collect" }));
    assert_eq!(config.with_buffer(Some(0)), Err(ConfigError::Zero { name: "buffer" }));
    let thompson = config.with_policy(Policy::Thompson { discount: 0.9 }).unwrap();
    assert!(matches!(thompson.with_buffer(Some(3)), Err(ConfigError::BufferNeedsMean { .. })));
    let wrong = config.with_policy(Policy::EpsilonGreedy { epsilon: 1.5, decay: 1.0 });
    assert_eq!(wrong, Err(ConfigError::NotAShare { name: "epsilon", value: 1.5 }));
    let wrong = config.with_policy(Policy::Ucb { weight: f64::NAN });
    assert!(matches!(wrong, Err(ConfigError::Negative { name: "weight", .. })));
    let hardened = greedy(Profile::Hardened);
    let counted = hardened.with_count(Tally::Approval(Ties::Lowest), Eligible::Living);
    assert_eq!(counted, Err(ConfigError::HardenedCounts));
}
