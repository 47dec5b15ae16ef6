//! The shipping machine of hardened bandit elections, model-checked: three nodes, every order of messages and timers,
//! loss, repetition and restarts, up to a bound on terms.
//!
//! The network is a set that only grows: any message ever sent may be delivered at any time, any number of times, or
//! never. That is loss, delay, reordering and duplication at once. Every node has a clock of its own, which stands
//! still until its next timer fires; no bound relates the clocks of two nodes. States are told apart by what the
//! machines [say of themselves](Bandit::fingerprint), so that two histories that lead to one state are searched once.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
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

#[derive(Clone)]
struct Node {
    machine: Rc<Bandit>,
    clock: Time,
    boot: u64,
    disk: Option<Rc<Durable>>,
    /// Persisted but not yet on disk, in one mutant.
    unwritten: Option<Rc<Durable>>,
}

#[derive(Clone)]
struct State {
    nodes: Vec<Node>,
    /// Messages sent so far, by number.
    sent: Rc<BTreeSet<u16>>,
    /// Delivered messages, in one mutant.
    delivered: Rc<BTreeSet<u16>>,
    restarts: u32,
    timeouts: u32,
    /// Who has ever led which term.
    led: Rc<BTreeMap<u64, usize>>,
    /// For whom each has ever voted in which term.
    votes: Rc<BTreeMap<(usize, u64), NodeId>>,
    highest: u64,
}

struct Checker {
    count: usize,
    config: Config,
    mutant: Mutant,
    bounds: Bounds,
    names: BTreeMap<String, u16>,
    messages: Vec<(Peer, usize, Message)>,
}

struct Found {
    states: usize,
    /// Whether the bound on states cut the search short.
    cut: bool,
    elected: bool,
    violation: Option<(String, Vec<String>)>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Deliver(u16),
    Timeout(usize),
    Restart(usize),
}

impl Checker {
    fn new(count: usize, config: Config, mutant: Mutant, bounds: Bounds) -> Self {
        Self { count, config, mutant, bounds, names: BTreeMap::new(), messages: Vec::new() }
    }

    fn machine(&self, node: usize, boot: u64, disk: Option<&Durable>) -> Bandit {
        let me = Peer::new(NodeId::new(node as u64), Boot::new(boot));
        let members: Arc<[NodeId]> = (0..self.count as u64).map(NodeId::new).collect();
        // Nothing durable is written before the first vote; that is not the same as having lost it.
        let disk = disk.cloned().unwrap_or_default();
        Bandit::new(me, members, self.config, Seed::new(node as u64 + 1), Some(disk))
    }

    fn intern(&mut self, from: Peer, to: usize, message: Message) -> u16 {
        let name = format!("{from} {to} {message:?}");
        let next = self.messages.len() as u16;
        *self.names.entry(name).or_insert_with(|| {
            self.messages.push((from, to, message));
            next
        })
    }

    fn start(&mut self) -> State {
        let mut state = State {
            nodes: Vec::new(),
            sent: Rc::default(),
            delivered: Rc::default(),
            restarts: 0,
            timeouts: 0,
            led: Rc::default(),
            votes: Rc::default(),
            highest: 0,
        };
        for node in 0..self.count {
            let machine = Rc::new(self.machine(node, 1, None));
            let clock = Time::from_micros(1);
            state.nodes.push(Node { machine, clock, boot: 1, disk: None, unwritten: None });
            self.input(&mut state, node, Input::Start);
        }
        state
    }

    /// Hands an input to a node and carries out what it asks for.
    fn input(&mut self, state: &mut State, node: usize, input: InputOf<'_, Bandit>) {
        let mut out = Outbox::new();
        let it = &mut state.nodes[node];
        if let Some(durable) = it.unwritten.take() {
            it.disk = Some(durable);
        }
        let mut machine = (*it.machine).clone();
        // What it refuses changes nothing.
        let _refused = machine.handle(it.clock, input, &mut out);
        let me = Peer::new(NodeId::new(node as u64), Boot::new(it.boot));
        it.machine = Rc::new(machine);
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Persist(durable) => {
                    let it = &mut state.nodes[node];
                    if let (term, Some(vote)) = (durable.term, durable.voted_for) {
                        Rc::make_mut(&mut state.votes).entry((node, term)).or_insert(vote);
                    }
                    match self.mutant {
                        Mutant::ForgetsVotes => {}
                        Mutant::WritesLate => it.unwritten = Some(Rc::new(durable)),
                        Mutant::None | Mutant::CountsMessages => it.disk = Some(Rc::new(durable)),
                    }
                }
                Effect::Send { to, message } => {
                    self.send(state, me, to.get() as usize, message);
                }
                Effect::Multicast(message) | Effect::Broadcast(message) => {
                    for to in (0..self.count).filter(|&to| to != node) {
                        self.send(state, me, to, message.clone());
                    }
                }
                Effect::Emit(Event::Started { term }) => {
                    state.highest = state.highest.max(term);
                }
                Effect::Emit(_) => {}
            }
        }
    }

    fn send(&mut self, state: &mut State, from: Peer, to: usize, message: Message) {
        // A heartbeat says no more than the confirmation before it, and its answer changes a lease, which no clock here
        // relates to anything.
        let idle = matches!(message.kind(), Kind::Heartbeat | Kind::HeartbeatAck);
        if to < self.count && !idle {
            let number = self.intern(from, to, message);
            Rc::make_mut(&mut state.sent).insert(number);
        }
    }

    fn steps(&self, state: &State) -> Vec<Step> {
        let mut steps: Vec<Step> = state.sent.iter().map(|&number| Step::Deliver(number)).collect();
        if state.timeouts < self.bounds.timeouts {
            steps.extend((0..self.count).map(Step::Timeout));
        }
        if state.restarts < self.bounds.restarts {
            steps.extend((0..self.count).map(Step::Restart));
        }
        steps
    }

    /// `None` if nothing happens.
    fn take(&mut self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Deliver(number) => {
                let (mut from, to, message) = self.messages[number as usize].clone();
                if self.mutant == Mutant::CountsMessages && message.kind() == Kind::Vote {
                    let delivered = Rc::make_mut(&mut next.delivered);
                    if !delivered.insert(number) {
                        from.id = NodeId::new((from.id.get() + 1) % self.count as u64);
                    }
                }
                self.input(&mut next, to, Input::Message { from, via: from.id, message: &message });
            }
            Step::Timeout(node) => {
                let (at, _) = next.nodes[node].machine.deadline()?;
                next.nodes[node].clock = next.nodes[node].clock.max(at);
                if self.config.profile() != Profile::Hardened {
                    next.timeouts += 1;
                }
                self.input(&mut next, node, Input::Timeout);
            }
            Step::Restart(node) => {
                next.restarts += 1;
                let boot = next.nodes[node].boot + 1;
                let machine = self.machine(node, boot, next.nodes[node].disk.as_deref());
                let it = &mut next.nodes[node];
                (it.machine, it.boot, it.unwritten) = (Rc::new(machine), boot, None);
                self.input(&mut next, node, Input::Start);
            }
        }
        // Who has forgotten nothing learns nothing from word of a term it is past: such a hint is as good as lost.
        if self.mutant == Mutant::None {
            let stale = |number: &u16| match &self.messages[*number as usize] {
                (_, to, Message::TermHint { term, leader }) => {
                    let own = next.nodes[*to].machine.ballot().map_or(0, |(term, _)| term);
                    own > *term || (own == *term && leader.is_none())
                }
                _ => false,
            };
            if next.sent.iter().any(stale) {
                let kept = next.sent.iter().copied().filter(|number| !stale(number)).collect();
                next.sent = Rc::new(kept);
            }
        }
        Some(next)
    }

    fn fingerprint(&self, state: &State) -> (u64, u64) {
        let digest = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            for node in &state.nodes {
                node.machine.fingerprint(node.clock, &mut hasher);
                node.boot.hash(&mut hasher);
                let disk = |disk: &Option<Rc<Durable>>| {
                    disk.as_ref().map(|disk| (disk.term, disk.voted_for))
                };
                (disk(&node.disk), disk(&node.unwritten)).hash(&mut hasher);
                if self.config.profile() != Profile::Hardened {
                    node.clock.hash(&mut hasher);
                }
            }
            (&*state.sent, &*state.delivered, state.restarts, state.timeouts).hash(&mut hasher);
            (&*state.led, &*state.votes).hash(&mut hasher);
            hasher.finish()
        };
        (digest(1), digest(2))
    }

    /// Notes who leads; what is wrong, if anything is.
    fn judge(&self, state: &mut State) -> Result<bool, String> {
        let mut leading = Vec::new();
        for node in 0..self.count {
            let leadership = state.nodes[node].machine.leadership();
            if leadership.leader != Some(NodeId::new(node as u64)) {
                continue;
            }
            // As published the first node leads from the start; what counts is who was elected.
            let confirmed = |&number: &u16| {
                let (from, _, message) = &self.messages[number as usize];
                from.id.get() == node as u64 && message.kind() == Kind::ConfirmElection
            };
            if state.sent.iter().any(confirmed) {
                leading.push(node);
            }
            if let Some(epoch) = leadership.epoch {
                let term = epoch.counter();
                let first = *Rc::make_mut(&mut state.led).entry(term).or_insert(node);
                if first != node {
                    return Err(format!("nodes {first} and {node} both lead term {term}"));
                }
            }
        }
        if self.config.profile() != Profile::Hardened && leading.len() > 1 {
            return Err(format!("{leading:?} lead at once"));
        }
        for node in 0..self.count {
            let Some((term, Some(vote))) = state.nodes[node].machine.ballot() else { continue };
            if let Some(&cast) = state.votes.get(&(node, term))
                && cast != vote
            {
                return Err(format!("node {node} votes for {cast} and {vote} in term {term}"));
            }
        }
        Ok(!leading.is_empty())
    }

    /// Breadth first, so that what is found is short.
    fn explore(mut self, begin: impl FnOnce(&mut Self, &mut State)) -> Found {
        let mut first = self.start();
        begin(&mut self, &mut first);
        let mut seen = BTreeSet::from([self.fingerprint(&first)]);
        let mut history: Vec<(usize, Option<Step>)> = vec![(0, None)];
        let mut queue = VecDeque::from([(0, first)]);
        let mut found = Found { states: 1, cut: false, elected: false, violation: None };
        while let Some((index, state)) = queue.pop_front() {
            for step in self.steps(&state) {
                let Some(mut next) = self.take(&state, step) else { continue };
                let verdict = self.judge(&mut next);
                if !seen.insert(self.fingerprint(&next)) {
                    continue;
                }
                history.push((index, Some(step)));
                let number = history.len() - 1;
                found.states += 1;
                match verdict {
                    Ok(elected) => found.elected |= elected,
                    Err(problem) => {
                        found.violation = Some((problem, self.told(&history, number)));
                        return found;
                    }
                }
                if found.states >= self.bounds.states {
                    found.cut = true;
                    return found;
                }
                let hardened = self.config.profile() == Profile::Hardened;
                if !hardened || next.highest <= self.bounds.terms {
                    queue.push_back((number, next));
                }
            }
        }
        found
    }

    fn told(&self, history: &[(usize, Option<Step>)], mut at: usize) -> Vec<String> {
        let mut told = Vec::new();
        while let (before, Some(step)) = history[at] {
            told.push(match step {
                Step::Deliver(number) => {
                    let (from, to, message) = &self.messages[number as usize];
                    format!("{from} -> n{to}: {message:?}")
                }
                Step::Timeout(node) => format!("n{node}: timeout"),
                Step::Restart(node) => format!("n{node}: restart"),
            });
            at = before;
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
    Checker::new(3, hardened(), mutant, bounds).explore(|_, _| ())
}

fn assert_safe(bounds: Bounds) -> Found {
    let found = check(Mutant::None, bounds);
    println!("{bounds:?}: {} states, cut: {}", found.states, found.cut);
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

/// The same with a crash, as far as it goes: all short histories first.
#[test]
fn nor_does_a_restart() {
    assert_safe(Bounds { terms: 1, timeouts: 1, restarts: 1, states: LIMIT });
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
    let found = Checker::new(3, config, Mutant::None, bounds).explore(|checker, state| {
        for node in [1, 2] {
            let request = Message::ClientRequest { number: 1, attempt: 1 };
            checker.send(state, client, node, request);
        }
    });
    let (problem, told) = found.violation.expect("two leaders at once");
    println!("after {} states: {problem}\n  {}", found.states, told.join("\n  "));
}

const LIMIT: usize = 400_000;
