//! What the announce family is measured by besides agreement: who announced, when, and how often in vain.

use bellwether_proto::{Effect, EffectOf, Input, InputOf, Machine, NodeId, Time};

use crate::{engine::Observer, observe::Until, world::Network};

/// A message that may be an announcement: a claim to lead, as opposed to a question or a farewell.
pub trait Announcement {
    /// Whether it is one.
    fn is_announcement(&self) -> bool;

    /// Which of its sender's messages it is.
    fn sequence(&self) -> u64;
}

impl Announcement for bellwether_proto::election::announce::Message {
    fn is_announcement(&self) -> bool {
        self.is_announcement()
    }

    fn sequence(&self) -> u64 {
        self.sequence()
    }
}

impl Announcement for bellwether_proto::election::announce::baseline::Data {
    fn is_announcement(&self) -> bool {
        self.is_announcement()
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// Watches who announces itself, and who hears it.
#[derive(Clone, Debug)]
pub struct AnnounceWatch {
    /// When each node announced, and the number of the message.
    sent: Vec<Vec<(Time, u64)>>,
    /// For each announcer, which of its announcements each node heard first, from 1; zero if none.
    /// Empty for those who were never heard.
    heard: Vec<Vec<u32>>,
    /// Live nodes, and the one with the largest number among them.
    live: Vec<bool>,
    best: usize,
    /// Live nodes that have yet to hear of it.
    waiting: usize,
    until: Until,
}

/// What the announcements of one run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Announced {
    /// How many announcements were sent.
    pub messages: u32,
    /// Nodes that announced at all.
    pub announcers: u32,
    /// When the first announcement was sent.
    pub first: Option<Time>,
    /// When the last node that announced at all did so for the first time.
    pub last_first: Option<Time>,
    /// When the last announcement was sent.
    pub last: Option<Time>,
    /// About the leader in question, once every other live node has heard it.
    pub converged: Option<Converged>,
}

/// How a leader became known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Converged {
    /// `t_max`: when the announcement was sent by which the last node heard of it.
    pub sent: Time,
    /// Which of its announcements that was, counted from one.
    pub rounds: u32,
    /// Which one a node heard first, on average.
    pub mean_rounds: f64,
}

impl AnnounceWatch {
    /// Watches `nodes` nodes, and is done when `until` says.
    pub fn new(nodes: u32, until: Until) -> Self {
        Self {
            sent: vec![Vec::new(); nodes as usize],
            heard: vec![Vec::new(); nodes as usize],
            live: vec![false; nodes as usize],
            best: 0,
            waiting: 0,
            until,
        }
    }

    /// Counts anew who has yet to hear of the best.
    fn recount(&mut self) {
        self.best = self.live.iter().rposition(|&live| live).unwrap_or(0);
        let deaf = |node: usize| self.heard[self.best].get(node).is_none_or(|&heard| heard == 0);
        let waits = |&node: &usize| node != self.best && self.live[node] && deaf(node);
        self.waiting = (0..self.live.len()).filter(waits).count();
    }

    /// Sums up; `leader` is the one to judge convergence by, among the live nodes.
    pub fn summary(&self, leader: Option<NodeId>, live: impl Fn(u32) -> bool) -> Announced {
        let times = || self.sent.iter().flatten().map(|(at, _)| at);
        let firsts = || self.sent.iter().filter_map(|times| times.first()).map(|(at, _)| at);
        Announced {
            messages: times().count() as u32,
            announcers: firsts().count() as u32,
            first: times().min().copied(),
            last_first: firsts().max().copied(),
            last: times().max().copied(),
            converged: leader.and_then(|leader| self.converged(leader, live)),
        }
    }

    fn converged(&self, leader: NodeId, live: impl Fn(u32) -> bool) -> Option<Converged> {
        let leader = leader.get() as usize;
        let others = (0..self.sent.len()).filter(|&node| node != leader && live(node as u32));
        let (mut rounds, mut sum, mut count) = (0, 0_u64, 0_u32);
        for node in others {
            let heard = *self.heard[leader].get(node).filter(|&&heard| heard > 0)?;
            rounds = rounds.max(heard);
            sum += u64::from(heard);
            count += 1;
        }
        let (sent, _) = *self.sent[leader].get(rounds.checked_sub(1)? as usize)?;
        Some(Converged { sent, rounds, mean_rounds: sum as f64 / f64::from(count) })
    }
}

impl<M: Machine<Message: Announcement>> Observer<M> for AnnounceWatch {
    fn topology(&mut self, _now: Time, network: &Network) {
        let live: Vec<bool> = (0..self.live.len()).map(|node| network.is_up(node as u32)).collect();
        if live != self.live {
            self.live = live;
            self.recount();
        }
    }

    fn done(&self) -> bool {
        self.until == Until::Heard && self.waiting == 0
    }

    fn effect(&mut self, now: Time, node: NodeId, effect: &EffectOf<M>) {
        if let Effect::Multicast(message) = effect
            && message.is_announcement()
        {
            self.sent[node.get() as usize].push((now, message.sequence()));
        }
    }

    fn input(&mut self, _now: Time, node: NodeId, input: &InputOf<'_, M>) {
        let Input::Message { from, message, .. } = input else { return };
        if !message.is_announcement() {
            return;
        }
        let from = from.id.get() as usize;
        let nodes = self.sent.len();
        let heard = &mut self.heard[from];
        if heard.is_empty() {
            heard.resize(nodes, 0);
        }
        let first = &mut heard[node.get() as usize];
        if *first == 0 {
            let sent = &self.sent[from];
            let number = message.sequence();
            // A node that restarted counts anew: the latest of that number is meant.
            let index = sent.iter().rposition(|(_, other)| *other == number);
            *first = index.map_or(0, |index| index as u32 + 1);
            let awaited = from == self.best && self.live[node.get() as usize];
            self.waiting -= usize::from(awaited);
        }
    }
}
