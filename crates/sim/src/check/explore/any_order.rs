//! Every history of messages, timers and restarts, in any order.
//!
//! The network is a set that only grows: any message ever sent may be delivered at any time, any number of times, or
//! never. That is loss, delay, reordering and duplication at once. Every node has a clock of its own, which stands
//! still until its next timer fires. Nodes are told apart by what is said to [identify](AnyOrder::new) their machines.
//!
//! What a node does depends on nothing but itself and what it is given. So each of its states is made once, and what it
//! does with each input is tried once; a state of the whole is a number for each node and a set of messages.

use std::{collections::VecDeque, fmt};

use bellwether_proto::{Effect, EffectOf, Input, InputOf, Machine, Outbox, OutboxOf, Peer, Time};

use super::{
    Explorable, Explored, Judge, Model, Scripted, Step, Violation, give,
    identity::{ByDigest, Digest, Digests},
};
use crate::engine::clock::Clock;

/// What tells a machine at an instant from others, for a hash.
type Identify<'a, M> = Box<dyn Fn(&M, Time, &mut Digest) + 'a>;
/// Whether a message no longer changes what a machine does.
type Spent<'a, M> = Box<dyn Fn(&M, Peer, &<M as Machine>::Message) -> bool + 'a>;

/// What tells states apart, and how far histories go.
pub struct AnyOrder<'a, M: Machine> {
    timeouts: Option<u32>,
    restarts: u32,
    lost_disks: u32,
    most: u64,
    identify: Identify<'a, M>,
    spent: Option<Spent<'a, M>>,
}

impl<'a, M: Machine> AnyOrder<'a, M> {
    /// Nodes are the same if this says the same of their machines, at their own time, and they are of the same life and
    /// have the same on their disks. Nobody restarts, and nothing else is bounded.
    pub fn new(identify: impl Fn(&M, Time, &mut Digest) + 'a) -> Self {
        let (timeouts, restarts, lost_disks, most) = (None, 0, 0, u64::MAX);
        Self { timeouts, restarts, lost_disks, most, identify: Box::new(identify), spent: None }
    }

    /// At most so many timeouts in a history. Without this they are not counted, and states that differ in nothing but
    /// how many there were are one.
    pub const fn with_timeouts(mut self, most: u32) -> Self {
        self.timeouts = Some(most);
        self
    }

    /// At most so many restarts in a history.
    pub const fn with_restarts(mut self, most: u32) -> Self {
        self.restarts = most;
        self
    }

    /// At most so many more with an empty disk.
    pub const fn with_lost_disks(mut self, most: u32) -> Self {
        self.lost_disks = most;
        self
    }

    /// Not to look at more states than this.
    pub const fn with_most(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// Messages that will never again change what a machine does are as good as lost: fewer states.
    pub fn with_spent(mut self, spent: impl Fn(&M, Peer, &M::Message) -> bool + 'a) -> Self {
        self.spent = Some(Box::new(spent));
        self
    }
}

impl<M: Machine> fmt::Debug for AnyOrder<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyOrder")
            .field("timeouts", &self.timeouts)
            .field("restarts", &self.restarts)
            .field("lost_disks", &self.lost_disks)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

/// All there is to one node.
struct Node<M: Machine> {
    at: usize,
    peer: Peer,
    machine: M,
    clock: Time,
    disk: Option<M::Durable>,
}

impl<M: Machine + Clone> Clone for Node<M> {
    fn clone(&self) -> Self {
        Self { machine: self.machine.clone(), disk: self.disk.clone(), ..*self }
    }
}

/// Some of the messages, by number.
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
struct Set([u64; WORDS]);

impl Set {
    fn insert(&mut self, number: u16) {
        self.0[usize::from(number / 64)] |= 1 << (number % 64);
    }

    fn iter(self) -> impl Iterator<Item = u16> {
        let words = self.0.into_iter().zip(0_u16..);
        words.flat_map(|(mut word, at)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as u16)?;
                word &= word - 1;
                Some(at * 64 + bit)
            })
        })
    }

    fn with(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    fn both(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }
}

/// The whole: nodes and the judge by the numbers of their states.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
struct State {
    nodes: [u32; MOST_NODES],
    judge: u32,
    /// Messages that may arrive.
    sent: Set,
    /// What has happened of what is planned.
    planned: u32,
    timeouts: u32,
    restarts: u32,
    lost_disks: u32,
}

impl State {
    fn digest(&self) -> u64 {
        let mut hash = Digest::new();
        self.nodes.chunks(2).for_each(|two| hash.fold(u64::from(two[0]) << 32 | u64::from(two[1])));
        hash.fold(u64::from(self.judge) << 32 | u64::from(self.planned));
        hash.fold(u64::from(self.timeouts) << 32 | u64::from(self.restarts));
        hash.fold(u64::from(self.lost_disks));
        self.sent.0.iter().for_each(|&word| hash.fold(word));
        hash.get()
    }
}

/// What becomes of a node that is given something.
#[derive(Clone, Copy)]
struct Move {
    to: u32,
    /// Among all moves: what it did is found there.
    number: u32,
    /// Whether nothing happened at all.
    nothing: bool,
    sends: Set,
}

/// What a node in some state does, as far as that was tried.
#[derive(Default)]
struct Moves {
    timeout: Option<Option<Move>>,
    restarts: [Option<Move>; 2],
    messages: Vec<Option<Move>>,
    planned: Vec<Option<Move>>,
    /// Messages that were looked at, and those of them that no longer matter.
    looked: Set,
    spent: Set,
}

/// What a node did in a move. Judges may ask.
struct Done<M: Machine> {
    effects: Vec<EffectOf<M>>,
    to: u32,
    /// Whether it was a restart, and whether with an empty disk.
    restart: Option<bool>,
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Start,
    Deliver(u16),
    Planned(u8),
    Timeout(u8),
    Restart(u8, bool),
}

struct Checker<'m, M: Machine, J> {
    model: &'m Model<'m, M>,
    bounds: &'m AnyOrder<'m, M>,
    range: Vec<Vec<usize>>,
    group: Vec<Vec<usize>>,
    messages: Vec<(Peer, usize, M::Message)>,
    /// By digest of sender, receiver and message.
    numbers: ByDigest<u128, u16>,
    /// To whom they go.
    mail: [Set; MOST_NODES],
    /// Every state of any node, by number.
    nodes: Vec<Node<M>>,
    node_numbers: ByDigest<u128, u32>,
    moves: Vec<Moves>,
    done: Vec<Done<M>>,
    judges: Vec<J>,
    judge_numbers: ByDigest<u128, u32>,
    /// By judge and move.
    verdicts: ByDigest<u64, u32>,
    out: OutboxOf<M>,
    /// Whether there were more messages than fit.
    full: bool,
}

/// Two digests that differ in where they begin.
fn digest(what: impl Fn(&mut Digest)) -> u128 {
    let one = |salt: u64| {
        let mut hash = Digest::new();
        hash.fold(salt);
        what(&mut hash);
        u128::from(hash.get())
    };
    one(1) << 64 | one(2)
}

impl<'m, M: Explorable, J: Judge<M>> Checker<'m, M, J> {
    fn new(model: &'m Model<'m, M>, bounds: &'m AnyOrder<'m, M>, judge: J) -> Self {
        let mut checker = Self {
            model,
            bounds,
            range: model.audiences(true),
            group: model.audiences(false),
            messages: Vec::new(),
            numbers: ByDigest::default(),
            mail: Default::default(),
            nodes: Vec::new(),
            node_numbers: ByDigest::default(),
            moves: Vec::new(),
            done: Vec::new(),
            judges: Vec::new(),
            judge_numbers: ByDigest::default(),
            verdicts: ByDigest::default(),
            out: Outbox::new(),
            full: false,
        };
        checker.judge_number(judge);
        checker
    }

    /// All nodes started, and what others say to them on its way.
    fn start(&mut self) -> Result<State, String> {
        let mut state = State {
            nodes: [0; MOST_NODES],
            judge: 0,
            sent: Set::default(),
            planned: 0,
            timeouts: 0,
            restarts: 0,
            lost_disks: 0,
        };
        for (at, (peer, machine)) in self.model.nodes.iter().enumerate() {
            let clock = Time::from_micros(1);
            let node = Node { at, peer: *peer, machine: machine.clone(), clock, disk: None };
            let found = self.begin(node, None);
            state.nodes[at] = found.to;
            state.sent = state.sent.with(&found.sends);
            state.judge = self.verdict(state.judge, &found)?;
        }
        for (number, (_, node, what)) in self.model.script.iter().enumerate() {
            if let (Scripted::Message(from, message), Some(to)) = (what, self.model.index(*node)) {
                self.send(&mut state.sent, *from, &[to], message.clone());
                state.planned |= 1 << number;
            }
        }
        Ok(state)
    }

    /// Starts a node, and tells it what it is told then.
    fn begin(&mut self, mut node: Node<M>, restart: Option<bool>) -> Move {
        let mut effects = Vec::new();
        give(&mut node.machine, node.clock, Input::Start, &mut self.out, &mut effects);
        for feed in self.model.feeds.get(&node.peer.id).into_iter().flatten() {
            let feed = Input::Feed(feed.clone());
            give(&mut node.machine, node.clock, feed, &mut self.out, &mut effects);
        }
        self.carry_out(node, effects, None, restart)
    }

    fn input(&mut self, from: u32, mut node: Node<M>, input: InputOf<'_, M>) -> Move {
        let mut effects = Vec::new();
        give(&mut node.machine, node.clock, input, &mut self.out, &mut effects);
        self.carry_out(node, effects, Some(from), None)
    }

    fn carry_out(
        &mut self,
        mut node: Node<M>,
        effects: Vec<EffectOf<M>>,
        from: Option<u32>,
        restart: Option<bool>,
    ) -> Move {
        let (me, at, mut sends) = (node.peer, node.at, Set::default());
        for effect in &effects {
            match effect {
                Effect::Persist(durable) => node.disk = Some(durable.clone()),
                Effect::Send { to, message } => {
                    if let Some(to) = self.model.index(*to) {
                        self.send(&mut sends, me, &[to], message.clone());
                    }
                }
                Effect::Broadcast(message) => {
                    let range = self.range[at].clone();
                    self.send(&mut sends, me, &range, message.clone());
                }
                Effect::Multicast(message) => {
                    let group = self.group[at].clone();
                    self.send(&mut sends, me, &group, message.clone());
                }
                Effect::Emit(_) => {}
            }
        }
        let quiet = effects.is_empty();
        let to = self.node_number(node);
        let number = self.done.len() as u32;
        self.done.push(Done { effects, to, restart });
        Move { to, number, nothing: quiet && from == Some(to), sends }
    }

    fn send(&mut self, sent: &mut Set, from: Peer, to: &[usize], message: M::Message) {
        if !self.model.travels(&message) {
            return;
        }
        for &to in to {
            let name = digest(|hash| hash.fold_value(&(from, to, &message)));
            let next = self.messages.len();
            let number = match self.numbers.get(&name) {
                Some(&number) => number,
                None if next >= MOST_MESSAGES => {
                    self.full = true;
                    continue;
                }
                None => {
                    self.numbers.insert(name, next as u16);
                    self.messages.push((from, to, message.clone()));
                    self.mail[to].insert(next as u16);
                    next as u16
                }
            };
            sent.insert(number);
        }
    }

    /// The number of a node in this state.
    fn node_number(&mut self, node: Node<M>) -> u32 {
        let name = digest(|hash| {
            hash.fold_value(&node.peer);
            (self.bounds.identify)(&node.machine, node.clock, hash);
            hash.fold_value(&node.disk);
        });
        let next = self.nodes.len() as u32;
        *self.node_numbers.entry(name).or_insert_with(|| {
            self.nodes.push(node);
            self.moves.push(Moves::default());
            next
        })
    }

    fn judge_number(&mut self, judge: J) -> u32 {
        let name = digest(|hash| judge.identity(hash));
        let next = self.judges.len() as u32;
        *self.judge_numbers.entry(name).or_insert_with(|| {
            self.judges.push(judge);
            next
        })
    }

    /// What becomes of a judge that sees this.
    fn verdict(&mut self, judge: u32, found: &Move) -> Result<u32, String> {
        let key = u64::from(judge) << 32 | u64::from(found.number);
        if let Some(&known) = self.verdicts.get(&key) {
            return Ok(known);
        }
        let Done { effects, to, restart } = &self.done[found.number as usize];
        let Node { peer, clock, machine, .. } = &self.nodes[*to as usize];
        let mut next = self.judges[judge as usize].clone();
        if let Some(lost) = restart {
            next.crashed(*clock, *peer);
            next.restarted(*clock, *peer, *lost);
        }
        let (now, peer, clock) = (*clock, *peer, Clock::true_time());
        next.step(&Step { now, peer, machine, effects, clock })?;
        let next = self.judge_number(next);
        self.verdicts.insert(key, next);
        Ok(next)
    }

    fn choices(&self, state: &State) -> impl Iterator<Item = Choice> + use<M, J> {
        let count = |may: bool| if may { self.model.nodes.len() as u8 } else { 0 };
        let timeouts = count(self.bounds.timeouts.is_none_or(|most| state.timeouts < most));
        let restarts = count(state.restarts < self.bounds.restarts && self.model.build.is_some());
        let lost = count(state.lost_disks < self.bounds.lost_disks && self.model.build.is_some());
        let (planned, script) = (state.planned, self.model.script.len() as u8);
        let planned = (0..script).filter(move |number| planned & 1 << number == 0);
        let timeouts = (0..timeouts).map(Choice::Timeout);
        let restarts = (0..restarts).map(|node| Choice::Restart(node, false));
        let lost = (0..lost).map(|node| Choice::Restart(node, true));
        let deliveries = state.sent.iter().map(Choice::Deliver);
        deliveries.chain(planned.map(Choice::Planned)).chain(timeouts).chain(restarts).chain(lost)
    }

    fn deliver(&mut self, number: u16, from: u32) -> Move {
        let at = usize::from(number);
        if let Some(&Some(found)) = self.moves[from as usize].messages.get(at) {
            return found;
        }
        let (peer, _, message) = self.messages[at].clone();
        let input = Input::Message { from: peer, via: peer.id, message: &message };
        let found = self.input(from, self.nodes[from as usize].clone(), input);
        let known = &mut self.moves[from as usize].messages;
        known.resize(known.len().max(at + 1), None);
        known[at] = Some(found);
        found
    }

    /// `None` if nobody is there to whom this could happen.
    fn plan(&mut self, number: u8, state: &State) -> Option<(usize, Move)> {
        let at = usize::from(number);
        let (_, node, what) = &self.model.script[at];
        let index = self.model.index(*node)?;
        let from = state.nodes[index];
        if let Some(&Some(found)) = self.moves[from as usize].planned.get(at) {
            return Some((index, found));
        }
        let input = match what {
            Scripted::Feed(feed) => Input::Feed(feed.clone()),
            Scripted::Command(command) => Input::Command(command.clone()),
            Scripted::Leave => Input::Leave,
            // Messages are on their way from the start; the rest is for histories around the regular one.
            Scripted::Message(..) | Scripted::Crash | Scripted::Restart(_) | Scripted::Pause(_) => {
                return None;
            }
        };
        let found = self.input(from, self.nodes[from as usize].clone(), input);
        let known = &mut self.moves[from as usize].planned;
        known.resize(known.len().max(at + 1), None);
        known[at] = Some(found);
        Some((index, found))
    }

    /// `None` if it waits for nothing.
    fn time_out(&mut self, from: u32) -> Option<Move> {
        if let Some(found) = self.moves[from as usize].timeout {
            return found;
        }
        let mut node = self.nodes[from as usize].clone();
        let found = node.machine.deadline().map(|(at, _)| {
            node.clock = node.clock.max(at);
            self.input(from, node, Input::Timeout)
        });
        self.moves[from as usize].timeout = Some(found);
        found
    }

    /// `None` if nobody knows how to build it.
    fn restart(&mut self, from: u32, lost: bool) -> Option<Move> {
        if let Some(found) = self.moves[from as usize].restarts[usize::from(lost)] {
            return Some(found);
        }
        let build = self.model.build.as_ref()?;
        let node = &self.nodes[from as usize];
        let disk = node.disk.clone().filter(|_| !lost);
        let peer = Peer::new(node.peer.id, node.peer.boot.next());
        let machine = build(peer, disk.clone());
        let node = Node { at: node.at, peer, machine, clock: node.clock, disk };
        let found = self.begin(node, Some(lost));
        self.moves[from as usize].restarts[usize::from(lost)] = Some(found);
        Some(found)
    }

    /// `None` if nothing happens.
    fn take(&mut self, state: &State, choice: Choice) -> Result<Option<State>, String> {
        let mut next = *state;
        let taken = match choice {
            Choice::Start => None,
            Choice::Deliver(number) => {
                let to = self.messages[usize::from(number)].1;
                Some((to, self.deliver(number, state.nodes[to])))
            }
            Choice::Planned(number) => {
                next.planned |= 1 << number;
                self.plan(number, state)
            }
            Choice::Timeout(node) => {
                next.timeouts += u32::from(self.bounds.timeouts.is_some());
                let node = usize::from(node);
                self.time_out(state.nodes[node]).map(|found| (node, found))
            }
            Choice::Restart(node, lost) => {
                *(if lost { &mut next.lost_disks } else { &mut next.restarts }) += 1;
                let node = usize::from(node);
                self.restart(state.nodes[node], lost).map(|found| (node, found))
            }
        };
        let Some((at, found)) = taken.filter(|(_, found)| !found.nothing) else { return Ok(None) };
        next.nodes[at] = found.to;
        next.sent = next.sent.with(&found.sends);
        next.judge = self.verdict(state.judge, &found)?;
        if next == *state {
            return Ok(None);
        }
        self.forget_spent(&mut next);
        Ok(Some(next))
    }

    fn forget_spent(&mut self, state: &mut State) {
        let Some(spent) = &self.bounds.spent else { return };
        for (at, mail) in self.mail.iter().enumerate().take(self.model.nodes.len()) {
            let number = state.nodes[at] as usize;
            let moves = &mut self.moves[number];
            for letter in state.sent.both(mail).without(&moves.looked).iter() {
                let (from, _, message) = &self.messages[usize::from(letter)];
                moves.looked.insert(letter);
                if spent(&self.nodes[number].machine, *from, message) {
                    moves.spent.insert(letter);
                }
            }
            state.sent = state.sent.without(&moves.spent);
        }
    }

    fn told(&self, history: &[(u32, Choice)], last: (u32, Choice)) -> Vec<String> {
        let mut told = Vec::new();
        let (mut before, mut choice) = last;
        loop {
            let id = |node: u8| self.model.nodes[usize::from(node)].0.id;
            told.push(match choice {
                Choice::Start => break,
                Choice::Deliver(number) => {
                    let (from, to, message) = &self.messages[usize::from(number)];
                    format!("{from} -> {}: {message:?}", id(*to as u8))
                }
                Choice::Planned(number) => {
                    let (_, node, what) = &self.model.script[usize::from(number)];
                    match what {
                        Scripted::Feed(feed) => format!("{node}: {feed:?}"),
                        Scripted::Command(command) => format!("{node}: {command:?}"),
                        _ => format!("{node}: leave"),
                    }
                }
                Choice::Timeout(node) => format!("{}: timeout", id(node)),
                Choice::Restart(node, false) => format!("{}: restart", id(node)),
                Choice::Restart(node, true) => format!("{}: restart, its disk lost", id(node)),
            });
            (before, choice) = history[before as usize];
        }
        told.reverse();
        told
    }
}

/// Follows every history of messages, timers and restarts, breadth first, so that what is found is short.
///
/// Up to eight nodes, 512 different messages, and 32 things by plan; [`Explored::cut`] says if there were more messages.
///
/// # Panics
///
/// If there are more nodes or plans than that.
pub fn explore_any_order<M: Explorable, J: Judge<M>>(
    model: &Model<'_, M>,
    bounds: &AnyOrder<'_, M>,
    judge: J,
) -> Explored<J::Tally> {
    assert!(model.nodes.len() <= MOST_NODES, "at most {MOST_NODES} nodes");
    assert!(model.script.len() <= 32, "at most 32 things by plan");
    let mut checker = Checker::new(model, bounds, judge);
    let mut explored = Explored {
        states: 1,
        histories: 0,
        cut: false,
        violation: None,
        tally: J::Tally::default(),
    };
    let mut queue = VecDeque::new();
    let mut seen = Digests::default();
    // For every state the number of the one before it, and what happened then.
    let mut history = vec![(0, Choice::Start)];
    let violation = |problem, told| Some(Violation { problem, path: Vec::new(), told });
    match checker.start() {
        Ok(first) => {
            seen.insert(first.digest());
            queue.push_back((0, first));
        }
        Err(problem) => explored.violation = violation(problem, Vec::new()),
    }
    'search: while let Some((before, state)) = queue.pop_front() {
        for choice in checker.choices(&state) {
            let next = match checker.take(&state, choice) {
                Ok(Some(next)) => next,
                Ok(None) => continue,
                Err(problem) => {
                    let told = checker.told(&history, (before, choice));
                    explored.violation = violation(problem, told);
                    break 'search;
                }
            };
            if !seen.insert(next.digest()) {
                continue;
            }
            let number = history.len() as u32;
            history.push((before, choice));
            if history.len() as u64 >= bounds.most {
                explored.cut = true;
                break 'search;
            }
            if !checker.judges[next.judge as usize].enough() {
                queue.push_back((number, next));
            }
        }
    }
    explored.states = history.len() as u64;
    explored.cut |= checker.full;
    checker.judges.iter().for_each(|judge| judge.tally(&mut explored.tally));
    explored
}

const MOST_NODES: usize = 8;
const WORDS: usize = 8;
const MOST_MESSAGES: usize = 64 * WORDS;
