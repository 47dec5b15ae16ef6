use std::{vec, vec::Vec};

use super::*;
use crate::{
    id::Boot,
    machine::{Effect, Outbox},
};

mod contract;
mod counts;
mod hardened;
mod network;
mod theorem;
mod vectors;

fn id(id: u64) -> NodeId {
    NodeId::new(id)
}

fn peer(id: u64) -> Peer {
    Peer::new(NodeId::new(id), Boot::new(1))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn candidate(id: u64) -> Candidate {
    Candidate { peer: peer(id), incarnation: Incarnation::new(0), attribute: 0 }
}

/// By identity, by command alone, and everybody may object.
fn config(variant: Variant, form: Form, churn: u16, crashes: u16) -> Config {
    Config::new(variant, form)
        .with_bounds(churn, crashes)
        .and_then(|config| config.with_criterion(Criterion::Identity, 0))
        .unwrap()
        .with_grace(None)
        .with_preempt(true)
}

fn sized(config: Config, size: u16, threshold: u32, rule: ExcludeRule) -> Config {
    let health = Health::Exclude { candidates: size, excluded: size, threshold, rule };
    config.with_health(health).unwrap()
}

/// A message on its way.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Letter {
    from: u64,
    to: u64,
    message: Message,
}

/// Some nodes, what is on its way between them, and what they have said so far.
#[derive(Clone, Debug)]
struct World {
    now: Time,
    nodes: Vec<Option<ChurnTolerant>>,
    flying: Vec<Letter>,
    unicasts: usize,
    multicasts: usize,
    notified: Vec<u64>,
    events: Vec<Event>,
    /// Every token seen, and who led under it.
    tokens: Vec<(Epoch, NodeId)>,
}

impl World {
    /// Nodes with these lists, each entry a member and its unhealthiness; everybody lists itself.
    fn new(config: Config, seed: u64, lists: &[Vec<(u64, u32)>]) -> Self {
        let all: Vec<NodeId> = (0..lists.len() as u64).map(id).collect();
        let nodes = lists.iter().zip(0..).map(|(list, me)| {
            let mut node = ChurnTolerant::new(peer(me), config, Seed::new(seed).indexed(me), None);
            let mut out = Outbox::new();
            node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
            for &(other, unhealthiness) in list {
                let member = Member { unhealthiness, ..Member::new(peer(other)) };
                node.handle(Time::ZERO, Input::Feed(Feed::Up(member)), &mut out).unwrap();
            }
            let group = Feed::Group(all.clone());
            node.handle(Time::ZERO, Input::Feed(group), &mut out).unwrap();
            assert!(out.is_empty());
            Some(node)
        });
        Self {
            now: Time::ZERO,
            nodes: nodes.collect(),
            flying: vec![],
            unicasts: 0,
            multicasts: 0,
            notified: vec![],
            events: vec![],
            tokens: vec![],
        }
    }

    /// Everybody lists everybody.
    fn complete(config: Config, seed: u64, nodes: u64) -> Self {
        let list: Vec<(u64, u32)> = (0..nodes).map(|node| (node, 0)).collect();
        Self::new(config, seed, &vec![list; nodes as usize])
    }

    fn node(&self, node: u64) -> &ChurnTolerant {
        self.nodes[node as usize].as_ref().unwrap()
    }

    fn live(&self) -> impl Iterator<Item = &ChurnTolerant> {
        self.nodes.iter().flatten()
    }

    fn input(&mut self, node: u64, input: InputOf<'_, ChurnTolerant>) -> Result<(), Rejected> {
        let Some(machine) = &mut self.nodes[node as usize] else { return Ok(()) };
        let before = machine.leadership();
        let mut out = Outbox::new();
        machine.handle(self.now, input, &mut out)?;
        let after = machine.leadership();
        if let (Some(leader), Some(epoch)) = (after.leader, after.epoch) {
            if let Some(old) = before.epoch {
                assert!(old <= epoch, "{} went back from {old} to {epoch}", machine.me);
            }
            match self.tokens.iter().find(|(other, _)| *other == epoch) {
                Some(&(_, other)) => assert_eq!(other, leader, "two leaders under {epoch}"),
                None => self.tokens.push((epoch, leader)),
            }
        }
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Send { to, message } => {
                    self.unicasts += 1;
                    if matches!(message, Message::NotifyLeader { .. }) {
                        self.notified.push(to.get());
                    }
                    self.flying.push(Letter { from: node, to: to.get(), message });
                }
                Effect::Multicast(message) => {
                    self.multicasts += 1;
                    for to in (0..self.nodes.len() as u64).filter(|&to| to != node) {
                        self.flying.push(Letter { from: node, to, message: message.clone() });
                    }
                }
                Effect::Broadcast(_) => panic!("it has no radio"),
                Effect::Persist(_) => {}
                Effect::Emit(event) => self.events.push(event),
            }
        }
        Ok(())
    }

    fn elect(&mut self, node: u64) {
        self.input(node, Input::Command(Command::Elect)).unwrap();
    }

    fn feed(&mut self, node: u64, feed: Feed) {
        self.input(node, Input::Feed(feed)).unwrap();
    }

    /// Hands over the letter at this place; refusals are nobody's concern here.
    fn deliver(&mut self, at: usize) {
        let Letter { from, to, message } = self.flying.remove(at);
        let from = peer(from);
        let _ = self.input(to, Input::Message { from, via: from.id, message: &message });
    }

    /// Hands over the first letter of this description.
    fn deliver_where(&mut self, wanted: impl Fn(&Letter) -> bool) {
        let at = self.flying.iter().position(wanted).expect("no such letter");
        self.deliver(at);
    }

    /// Hands over everything, in the order it was sent, and what comes of it.
    fn settle(&mut self) {
        let mut left = 100_000;
        while !self.flying.is_empty() {
            self.deliver(0);
            left -= 1;
            assert!(left > 0, "they never fall silent");
        }
    }

    /// Lets time pass to the next deadline and wakes whoever is due; `false` if nobody ever is.
    fn wake(&mut self) -> bool {
        let due = self.live().filter_map(|node| node.deadline().map(|(at, _)| at)).min();
        let Some(due) = due else { return false };
        self.now = self.now.max(due);
        for node in 0..self.nodes.len() as u64 {
            self.input(node, Input::Timeout).unwrap();
        }
        true
    }

    /// Lets this much time pass on a network without delay.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        while self.live().filter_map(Machine::deadline).any(|(at, _)| at <= end) {
            self.wake();
            self.settle();
        }
        self.now = end;
    }

    /// The leader of each live node.
    fn leaders(&self) -> Vec<Option<u64>> {
        self.live().map(|node| node.leadership().leader.map(NodeId::get)).collect()
    }

    /// Whether all live nodes are sure of this leader.
    fn agreed(&self, leader: u64) -> bool {
        self.live().all(|node| {
            let answer = node.leadership();
            answer.leader == Some(id(leader)) && answer.settled
        })
    }

    fn crash(&mut self, node: u64) {
        self.nodes[node as usize] = None;
    }

    /// Tells a node that another has failed.
    fn fails(&mut self, node: u64, failed: u64) {
        let incarnation = Incarnation::new(0);
        self.feed(node, Feed::Failed { peer: peer(failed), incarnation });
    }
}
