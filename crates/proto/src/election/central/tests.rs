//! The machines of the centrality elections, alone and by the handful.

mod contract;
mod hardened;
mod properties;
mod vectors;
mod wire;

use std::vec::Vec;

use super::*;
use crate::{
    machine::{Effect, Outbox},
    time::Duration,
};

pub(super) fn id(id: u64) -> NodeId {
    NodeId::new(id)
}

pub(super) fn peer(node: u64) -> Peer {
    Peer::new(id(node), Boot::new(1))
}

pub(super) fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

pub(super) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A node under test, which keeps what it says until asked.
#[derive(Clone, Debug)]
pub(super) struct Node(pub(super) Central);

/// What a node told, as the vectors write it: `(id, clock, neighbours)`, itself among them or not.
pub(super) type Told<'a> = (u64, u64, &'a [u64]);

impl Node {
    pub(super) fn new(node: u64, config: Config) -> Self {
        let mut node = Self(Central::new(peer(node), config, Seed::new(node)));
        assert_eq!(node.input(Time::ZERO, Input::Start), []);
        node
    }

    /// A node that has come to know this, and hears whom it says it does.
    pub(super) fn knowing(node: u64, config: Config, told: &[Told<'_>]) -> Self {
        let mut node = Self::new(node, config);
        let Central { protocol, detector, me, .. } = &mut node.0;
        let map = match protocol {
            Protocol::Published(Published::TopologyAware(it)) => &mut it.map,
            Protocol::Published(Published::Cel(it)) => &mut it.map,
            Protocol::LinkState(it) => &mut it.map,
            _ => panic!("no map"),
        };
        for &(of, clock, hears) in told {
            map.set(id(of), View::new(id(of), clock, hears.iter().copied().map(id)));
            if of == me.id.get() {
                hears.iter().filter(|&&other| other != of).for_each(|&other| {
                    detector.hear(Time::ZERO, id(other));
                });
            }
        }
        node.0.conclude(Time::ZERO);
        node
    }

    pub(super) fn input(&mut self, now: Time, input: InputOf<'_, Central>) -> Vec<Message> {
        let mut out = Outbox::new();
        self.0.handle(now, input, &mut out).unwrap();
        let mut said = Vec::new();
        while let Some(effect) = out.pop() {
            let Effect::Broadcast(message) = effect else { panic!("{effect:?}") };
            said.push(message);
        }
        said
    }

    pub(super) fn up(&mut self, other: u64) -> Vec<Message> {
        self.input(Time::ZERO, Input::Feed(Feed::Up(id(other))))
    }

    pub(super) fn down(&mut self, other: u64) -> Vec<Message> {
        self.input(Time::ZERO, Input::Feed(Feed::Down(id(other))))
    }

    pub(super) fn hear(&mut self, from: u64, message: &Message) -> Vec<Message> {
        self.hear_at(Time::ZERO, from, message)
    }

    pub(super) fn hear_at(&mut self, now: Time, from: u64, message: &Message) -> Vec<Message> {
        self.input(now, Input::Message { from: peer(from), via: id(from), message })
    }

    pub(super) fn hear_all(&mut self, from: u64, messages: &[Message]) -> Vec<Message> {
        messages.iter().flat_map(|message| self.hear(from, message)).collect()
    }

    /// TA2, whenever it is due.
    pub(super) fn tick(&mut self) -> Vec<Message> {
        match self.0.deadline() {
            Some((now, Timer::Tick)) => self.input(now, Input::Timeout),
            _ => Vec::new(),
        }
    }

    pub(super) fn leader(&self) -> u64 {
        self.0.leadership().leader.unwrap().get()
    }

    pub(super) fn view(&self, of: u64) -> (u64, Vec<u64>) {
        let view = self.0.map().unwrap().get(id(of)).unwrap();
        (view.clock(), view.neighbours().iter().map(|id| id.get()).collect())
    }

    /// The whole map.
    pub(super) fn map(&self) -> Vec<(u64, u64, Vec<u64>)> {
        let entries = self.0.map().unwrap().entries().iter();
        entries
            .map(|entry| {
                let (clock, neighbours) = self.view(entry.id.get());
                (entry.id.get(), clock, neighbours)
            })
            .collect()
    }
}

pub(super) fn topology_aware() -> Config {
    let profile = Profile::TopologyAware { tick: millis(70), probes: Probes::Once };
    Config::new(profile, Detection::Given).unwrap()
}

pub(super) fn cel(rho: f64) -> Config {
    Config::new(Profile::Cel { rho }, Detection::Given).unwrap()
}

/// Without boot numbers, so that clocks are those of the vectors.
pub(super) fn hardened(settings: LinkState) -> Config {
    let settings = LinkState { boots: false, ..settings };
    Config::new(Profile::LinkState(settings), Detection::Given).unwrap()
}

/// Both hardened forms.
pub(super) fn both() -> [Config; 2] {
    [LinkState::ticking(millis(70)), LinkState::at_once(1.0)].map(hardened)
}
