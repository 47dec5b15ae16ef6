//! The shipping machine of hardened bandit elections, model-checked: three nodes, every order of messages and timers,
//! loss, repetition and restarts, up to a bound on terms.
//!
//! The network is a set that only grows: any message ever sent may be delivered at any time, any number of times, or
//! never. That is loss, delay, reordering and duplication at once. Every node has a clock of its own, which stands
//! still until its next timer fires; no bound relates the clocks of two nodes. Nodes are told apart by what their
//! machines [say of themselves](Bandit::fingerprint), so that two histories that lead to one state are searched once.
//!
//! What a node does depends on nothing but itself and what it is given. So each of its states is made once, and what it does
//! with each input is tried once; a state of the whole is three numbers and a set of messages.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use bellwether_proto::{
    Boot, Duration, Effect, Election, Input, InputOf, Machine, NodeId, Outbox, Peer, Seed, Time,
    election::bandit::{Bandit, Config, Durable, Event, Kind, Message, Policy, Profile},
};

/// What is wrong with the world, to see that the checker would notice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mutant {
    None,
    /// Disks keep nothing: a vote is forgotten in a restart (TV-23).
    ForgetsVotes,
    /// Disks are written only when the next input comes: a vote may be sent and then forgotten.
    WritesLate,
    /// A vote that is delivered again seems to be somebody else's.
    CountsMessages,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Nothing is explored beyond this term, or as published beyond so many timeouts.
    terms: u64,
    timeouts: u32,
    restarts: u32,
    states: usize,
}

/// All there is to one node, and what it has ever done.
#[derive(Clone)]
struct Node {
    at: usize,
    machine: Bandit,
    clock: Time,
    boot: u64,
    disk: Option<Durable>,
    /// Persisted but not yet on disk, in one mutant.
    unwritten: Option<Durable>,
    /// Which terms it has led, and for whom it has voted in which.
    led: BTreeSet<u64>,
    votes: BTreeMap<u64, NodeId>,
    /// The largest term it has begun.
    highest: u64,
    broken: Option<String>,
}

impl Node {
    fn peer(&self) -> Peer {
        Peer::new(NodeId::new(self.at as u64), Boot::new(self.boot))
    }

    fn leads(&self) -> bool {
        self.machine.leadership().leader == Some(self.peer().id)
    }

    /// Notes what it leads, and whether it votes otherwise than before.
    fn judge(&mut self) {
        let leadership = self.machine.leadership();
        if let Some(epoch) = leadership.epoch.filter(|_| self.leads()) {
            self.led.insert(epoch.counter());
        }
        if let Some((term, Some(vote))) = self.machine.ballot()
            && let Some(&cast) = self.votes.get(&term)
            && cast != vote
        {
            let node = self.at;
            self.broken = Some(format!("node {node} votes for {cast} and {vote} in term {term}"));
        }
    }
}

/// Some of the messages, by number.
#[derive(Clone, Copy, Default, Eq, Ord, PartialEq, PartialOrd)]
struct Set([u64; 8]);

impl Set {
    fn insert(&mut self, number: u16) -> bool {
        let (word, bit) = (usize::from(number / 64), 1 << (number % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
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

    fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }
}

/// The whole: nodes by the number of their state.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct State {
    nodes: [u32; COUNT],
    /// Messages sent so far.
    sent: Set,
    /// Delivered messages, in one mutant.
    delivered: Set,
    restarts: u32,
    timeouts: u32,
}

/// What becomes of a node that is given something.
#[derive(Clone, Copy)]
struct Move {
    to: u32,
    sends: Set,
}

struct Checker {
    config: Config,
    mutant: Mutant,
    bounds: Bounds,
    names: BTreeMap<String, u16>,
    messages: Vec<(Peer, usize, Message)>,
    /// Every state of any node, by number.
    nodes: Vec<Node>,
    numbers: BTreeMap<(u64, u64), u32>,
    /// By state of a node.
    moves: Vec<Moves>,
}

/// What a node does, as far as that was tried.
#[derive(Default)]
struct Moves {
    timeout: Option<Option<Move>>,
    restart: Option<Move>,
    messages: Vec<Option<Move>>,
}

struct Found {
    states: usize,
    /// Of single nodes.
    parts: usize,
    messages: usize,
    /// Whether the bound on states cut the search short.
    cut: bool,
    elected: bool,
    violation: Option<(String, Vec<String>)>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Deliver(u16),
    Timeout(u8),
    Restart(u8),
}

impl Checker {
    fn new(config: Config, mutant: Mutant, bounds: Bounds) -> Self {
        let (names, numbers) = (BTreeMap::new(), BTreeMap::new());
        let (messages, nodes, moves) = (Vec::new(), Vec::new(), Vec::new());
        Self { config, mutant, bounds, names, messages, nodes, numbers, moves }
    }

    fn machine(&self, node: usize, boot: u64, disk: Option<&Durable>) -> Bandit {
        let me = Peer::new(NodeId::new(node as u64), Boot::new(boot));
        let members: Arc<[NodeId]> = (0..COUNT as u64).map(NodeId::new).collect();
        // Nothing durable is written before the first vote; that is not the same as having lost it.
        let disk = disk.cloned().unwrap_or_default();
        Bandit::new(me, members, self.config, Seed::new(node as u64 + 1), Some(disk))
    }

    fn intern(&mut self, from: Peer, to: usize, message: Message) -> u16 {
        let name = format!("{from} {to} {message:?}");
        let next = self.messages.len() as u16;
        *self.names.entry(name).or_insert_with(|| {
            assert!(usize::from(next) < 64 * Set::default().0.len(), "more messages than fit");
            self.messages.push((from, to, message));
            next
        })
    }

    /// The number of a node in this state.
    fn number(&mut self, node: Node) -> u32 {
        let fingerprint = self.fingerprint(&node);
        let next = self.nodes.len() as u32;
        *self.numbers.entry(fingerprint).or_insert_with(|| {
            self.nodes.push(node);
            self.moves.push(Moves::default());
            next
        })
    }

    fn fingerprint(&self, node: &Node) -> (u64, u64) {
        let digest = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            (salt, node.at, node.boot).hash(&mut hasher);
            node.machine.fingerprint(node.clock, &mut hasher);
            let disk = |disk: &Option<Durable>| disk.as_ref().map(|it| (it.term, it.voted_for));
            (disk(&node.disk), disk(&node.unwritten)).hash(&mut hasher);
            (&node.led, &node.votes, node.highest > self.bounds.terms).hash(&mut hasher);
            if self.config.profile() != Profile::Hardened {
                node.clock.hash(&mut hasher);
            }
            hasher.finish()
        };
        (digest(1), digest(2))
    }

    fn start(&mut self) -> State {
        let (sent, delivered) = (Set::default(), Set::default());
        let mut state = State { nodes: [0; COUNT], sent, delivered, restarts: 0, timeouts: 0 };
        for at in 0..COUNT {
            let node = Node {
                at,
                machine: self.machine(at, 1, None),
                clock: Time::from_micros(1),
                boot: 1,
                disk: None,
                unwritten: None,
                led: BTreeSet::new(),
                votes: BTreeMap::new(),
                highest: 0,
                broken: None,
            };
            let Move { to, sends } = self.input(node, Input::Start);
            state.nodes[at] = to;
            state.sent = state.sent.or(sends);
        }
        state
    }

    /// Hands an input to a node and carries out what it asks for.
    fn input(&mut self, mut node: Node, input: InputOf<'_, Bandit>) -> Move {
        let (mut out, mut sends) = (Outbox::new(), Set::default());
        if let Some(durable) = node.unwritten.take() {
            node.disk = Some(durable);
        }
        // What it refuses changes nothing.
        let _refused = node.machine.handle(node.clock, input, &mut out);
        let me = node.peer();
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Persist(durable) => {
                    if let (term, Some(vote)) = (durable.term, durable.voted_for) {
                        node.votes.entry(term).or_insert(vote);
                    }
                    match self.mutant {
                        Mutant::ForgetsVotes => {}
                        Mutant::WritesLate => node.unwritten = Some(durable),
                        Mutant::None | Mutant::CountsMessages => node.disk = Some(durable),
                    }
                }
                Effect::Send { to, message } => {
                    self.send(&mut sends, me, to.get() as usize, message);
                }
                Effect::Multicast(message) | Effect::Broadcast(message) => {
                    for to in (0..COUNT).filter(|&to| to != node.at) {
                        self.send(&mut sends, me, to, message.clone());
                    }
                }
                Effect::Emit(Event::Started { term }) => node.highest = node.highest.max(term),
                Effect::Emit(_) => {}
            }
        }
        node.judge();
        Move { to: self.number(node), sends }
    }

    fn send(&mut self, sent: &mut Set, from: Peer, to: usize, message: Message) {
        // A heartbeat says no more than the confirmation before it, and its answer changes a lease, which no clock here
        // relates to anything.
        let idle = matches!(message.kind(), Kind::Heartbeat | Kind::HeartbeatAck);
        if to < COUNT && !idle {
            let number = self.intern(from, to, message);
            sent.insert(number);
        }
    }

    fn steps(&self, state: &State) -> impl Iterator<Item = Step> + use<> {
        let timeouts = if state.timeouts < self.bounds.timeouts { COUNT } else { 0 };
        let restarts = if state.restarts < self.bounds.restarts { COUNT } else { 0 };
        let timeouts = (0..timeouts as u8).map(Step::Timeout);
        let restarts = (0..restarts as u8).map(Step::Restart);
        state.sent.iter().map(Step::Deliver).chain(timeouts).chain(restarts)
    }

    fn deliver(&mut self, number: u16, from: u32) -> Move {
        let known = &self.moves[from as usize].messages;
        if let Some(&Some(found)) = known.get(usize::from(number)) {
            return found;
        }
        let (peer, _, message) = self.messages[usize::from(number)].clone();
        let node = self.nodes[from as usize].clone();
        let input = Input::Message { from: peer, via: peer.id, message: &message };
        let found = self.input(node, input);
        let known = &mut self.moves[from as usize].messages;
        known.resize(known.len().max(usize::from(number) + 1), None);
        known[usize::from(number)] = Some(found);
        found
    }

    /// `None` if it waits for nothing.
    fn time_out(&mut self, from: u32) -> Option<Move> {
        if let Some(found) = self.moves[from as usize].timeout {
            return found;
        }
        let mut node = self.nodes[from as usize].clone();
        let found = node.machine.deadline().map(|(at, _)| {
            node.clock = node.clock.max(at);
            self.input(node, Input::Timeout)
        });
        self.moves[from as usize].timeout = Some(found);
        found
    }

    fn restart(&mut self, from: u32) -> Move {
        if let Some(found) = self.moves[from as usize].restart {
            return found;
        }
        let mut node = self.nodes[from as usize].clone();
        node.boot += 1;
        node.machine = self.machine(node.at, node.boot, node.disk.as_ref());
        node.unwritten = None;
        let found = self.input(node, Input::Start);
        self.moves[from as usize].restart = Some(found);
        found
    }

    /// `None` if nothing happens.
    fn take(&mut self, state: &State, step: Step) -> Option<State> {
        let mut next = *state;
        let (at, Move { to, sends }) = match step {
            Step::Deliver(number) => {
                let (from, to, message) = &self.messages[usize::from(number)];
                let (mut from, to, mut number) = (*from, *to, number);
                if self.mutant == Mutant::CountsMessages
                    && message.kind() == Kind::Vote
                    && !next.delivered.insert(number)
                {
                    from.id = NodeId::new((from.id.get() + 1) % COUNT as u64);
                    number = self.intern(from, to, message.clone());
                }
                (to, self.deliver(number, state.nodes[to]))
            }
            Step::Timeout(node) => {
                if self.config.profile() != Profile::Hardened {
                    next.timeouts += 1;
                }
                (usize::from(node), self.time_out(state.nodes[usize::from(node)])?)
            }
            Step::Restart(node) => {
                next.restarts += 1;
                (usize::from(node), self.restart(state.nodes[usize::from(node)]))
            }
        };
        next.nodes[at] = to;
        next.sent = next.sent.or(sends);
        if next == *state {
            return None;
        }
        // Who has forgotten nothing learns nothing from word of a term it is past: such a hint is as good as lost.
        if self.mutant == Mutant::None {
            let mut stale = Set::default();
            for number in next.sent.iter() {
                if let (_, to, Message::TermHint { term, leader }) =
                    &self.messages[usize::from(number)]
                {
                    let node = &self.nodes[next.nodes[*to] as usize];
                    let own = node.machine.ballot().map_or(0, |(term, _)| term);
                    if own > *term || (own == *term && leader.is_none()) {
                        stale.insert(number);
                    }
                }
            }
            next.sent = next.sent.without(stale);
        }
        Some(next)
    }

    /// Whether anybody was elected; what is wrong, if anything is.
    fn judge(&self, state: &State) -> Result<bool, String> {
        let nodes = state.nodes.map(|number| &self.nodes[number as usize]);
        if let Some(problem) = nodes.iter().find_map(|node| node.broken.clone()) {
            return Err(problem);
        }
        for (a, b) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
            if a.at < b.at
                && let Some(term) = a.led.intersection(&b.led).next()
            {
                return Err(format!("nodes {} and {} both lead term {term}", a.at, b.at));
            }
        }
        // As published the first node leads from the start; what counts is who was elected.
        let confirmed = |node: &Node| {
            state.sent.iter().any(|number| {
                let (from, _, message) = &self.messages[usize::from(number)];
                from.id == node.peer().id && message.kind() == Kind::ConfirmElection
            })
        };
        let elected = nodes.iter().filter(|node| node.leads() && confirmed(node));
        let leading: Vec<usize> = elected.map(|node| node.at).collect();
        if self.config.profile() != Profile::Hardened && leading.len() > 1 {
            return Err(format!("{leading:?} lead at once"));
        }
        Ok(!leading.is_empty())
    }

    /// Breadth first, so that what is found is short.
    fn explore(mut self, begin: impl FnOnce(&mut Self, &mut State)) -> Found {
        let mut first = self.start();
        begin(&mut self, &mut first);
        let mut seen = BTreeSet::from([first]);
        let mut history: Vec<(u32, Option<Step>)> = vec![(0, None)];
        let mut queue = VecDeque::from([(0, first)]);
        let (mut cut, mut elected, mut violation) = (false, false, None);
        let hardened = self.config.profile() == Profile::Hardened;
        'search: while let Some((index, state)) = queue.pop_front() {
            for step in self.steps(&state) {
                let Some(next) = self.take(&state, step) else { continue };
                if !seen.insert(next) {
                    continue;
                }
                history.push((index, Some(step)));
                let number = history.len() - 1;
                match self.judge(&next) {
                    Ok(leads) => elected |= leads,
                    Err(problem) => {
                        violation = Some((problem, self.told(&history, number)));
                        break 'search;
                    }
                }
                cut = history.len() >= self.bounds.states;
                if cut {
                    break 'search;
                }
                let highest = next.nodes.map(|number| self.nodes[number as usize].highest);
                if !hardened || highest.into_iter().all(|term| term <= self.bounds.terms) {
                    queue.push_back((number as u32, next));
                }
            }
        }
        let (states, parts, messages) = (history.len(), self.nodes.len(), self.messages.len());
        Found { states, parts, messages, cut, elected, violation }
    }

    fn told(&self, history: &[(u32, Option<Step>)], mut at: usize) -> Vec<String> {
        let mut told = Vec::new();
        while let (before, Some(step)) = history[at] {
            told.push(match step {
                Step::Deliver(number) => {
                    let (from, to, message) = &self.messages[usize::from(number)];
                    format!("{from} -> n{to}: {message:?}")
                }
                Step::Timeout(node) => format!("n{node}: timeout"),
                Step::Restart(node) => format!("n{node}: restart"),
            });
            at = before as usize;
        }
        told.reverse();
        told
    }
}

/// Greedy, without pings, and sampled so seldom that estimates stay as they are drawn.
fn hardened() -> Config {
    Config::new(Profile::Hardened, Policy::EpsilonGreedy { epsilon: 0.0, decay: 1.0 })
        .with_pings(None)
        .and_then(|config| config.with_sample(Duration::from_secs(1 << 40)))
        .expect("these constants satisfy the constraints")
}

fn check(mutant: Mutant, bounds: Bounds) -> Found {
    Checker::new(hardened(), mutant, bounds).explore(|_, _| ())
}

fn assert_safe(bounds: Bounds) -> Found {
    let found = check(Mutant::None, bounds);
    let Found { states, parts, messages, cut, .. } = found;
    println!("{bounds:?}: {states} states of {parts} and {messages} messages, cut: {cut}");
    if let Some((problem, told)) = &found.violation {
        panic!("{problem}:\n  {}", told.join("\n  "));
    }
    assert!(found.elected, "nobody was ever elected: nothing was shown");
    found
}

/// P-2 and P-3, exhaustively: every history in which nobody crashes and nobody goes beyond the first term.
#[test]
fn no_history_of_three_nodes_gives_a_term_two_leaders() {
    let bounds = Bounds { terms: 1, timeouts: 1, restarts: 0, states: 4 * LIMIT };
    assert!(!assert_safe(bounds).cut);
}

/// The same with a crash of any one of them, at any time.
#[test]
fn nor_does_a_restart() {
    let bounds = Bounds { terms: 1, timeouts: 1, restarts: 1, states: 100 * LIMIT };
    assert!(!assert_safe(bounds).cut);
}

/// Two terms and two crashes, millions of states: some minutes.
#[test]
#[ignore = "takes minutes"]
fn nor_do_two_terms_and_two_restarts() {
    assert_safe(Bounds { terms: 2, timeouts: 1, restarts: 2, states: 10 * LIMIT });
}

/// The checker would notice.
#[test]
fn every_mutant_is_caught() {
    for mutant in [Mutant::ForgetsVotes, Mutant::WritesLate, Mutant::CountsMessages] {
        let bounds = Bounds { terms: 1, timeouts: 1, restarts: 1, states: LIMIT };
        let found = check(mutant, bounds);
        let Some((problem, told)) = found.violation else {
            panic!("{mutant:?} survived {} states", found.states)
        };
        println!("{mutant:?} after {} states: {problem}\n  {}", found.states, told.join("\n  "));
    }
}

/// P-1: as published, delay and reordering alone make two leaders of three nodes (TV-22).
#[test]
fn as_published_two_lead_at_once() {
    let policy = Policy::EpsilonGreedy { epsilon: 0.0, decay: 1.0 };
    let config = Config::new(Profile::Published, policy)
        .with_pings(None)
        .and_then(|config| config.with_candidates(1))
        .unwrap();
    let bounds = Bounds { terms: 0, timeouts: 5, restarts: 0, states: LIMIT };
    let client = Peer::new(NodeId::new(99), Boot::new(1));
    let found = Checker::new(config, Mutant::None, bounds).explore(|checker, state| {
        for node in [1, 2] {
            let request = Message::ClientRequest { number: 1, attempt: 1 };
            checker.send(&mut state.sent, client, node, request);
        }
    });
    let (problem, told) = found.violation.expect("two leaders at once");
    println!("after {} states: {problem}\n  {}", found.states, told.join("\n  "));
}

const COUNT: usize = 3;
const LIMIT: usize = 400_000;
