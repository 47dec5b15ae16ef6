//! The shipping machine of hardened bandit elections, model-checked: three nodes, every order of messages and timers,
//! loss, repetition and restarts, up to a bound on terms.
//!
//! Nodes are told apart by what their machines [say of themselves](Bandit::fingerprint), so that two histories that lead
//! to one state are searched once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bellwether_proto::{
    Boot, Duration, Effect, Election, Input, InputOf, Machine, NodeId, Outbox, OutboxOf, Peer,
    Rejected, Seed, Time,
    election::bandit::{
        Bandit, Command, Config, Durable, Event, Feed, Kind, Message, Policy, Profile, Timer,
    },
};
use bellwether_sim::check::explore::{
    AnyOrder, Digest, Explored, Judge, Model, Scripted, Step, explore_any_order,
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

/// A machine, and what is wrong with what is around it.
#[derive(Clone)]
struct Node {
    machine: Bandit,
    profile: Profile,
    mutant: Mutant,
    /// Persisted but not yet on disk.
    unwritten: Option<Durable>,
    /// Votes that were delivered.
    delivered: BTreeSet<(Peer, u64)>,
}

impl Machine for Node {
    type Message = Message;
    type Timer = Timer;
    type Feed = Feed;
    type Command = Command;
    type Durable = Durable;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        mut input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if let Some(durable) = self.unwritten.take() {
            out.persist(durable);
        }
        if let Input::Message { from, message: Message::Vote { term }, .. } = &mut input
            && self.mutant == Mutant::CountsMessages
            && !self.delivered.insert((*from, *term))
        {
            from.id = NodeId::new((from.id.get() + 1) % COUNT);
        }
        let mut asked = Outbox::new();
        let result = self.machine.handle(now, input, &mut asked);
        while let Some(effect) = asked.pop() {
            match (effect, self.mutant) {
                (Effect::Persist(_), Mutant::ForgetsVotes) => {}
                (Effect::Persist(durable), Mutant::WritesLate) => self.unwritten = Some(durable),
                (Effect::Persist(durable), _) => out.persist(durable),
                (Effect::Send { to, message }, _) => out.send(to, message),
                (Effect::Broadcast(message), _) => out.broadcast(message),
                (Effect::Multicast(message), _) => out.multicast(message),
                (Effect::Emit(event), _) => out.emit(event),
            }
        }
        result
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        self.machine.deadline()
    }
}

impl Node {
    fn new(config: Config, mutant: Mutant, me: Peer, disk: Option<Durable>) -> Self {
        let members: Arc<[NodeId]> = (0..COUNT).map(NodeId::new).collect();
        // Nothing durable is written before the first vote; that is not the same as having lost it.
        let disk = Some(disk.unwrap_or_default());
        let machine = Bandit::new(me, members, config, Seed::new(me.id.get() + 1), disk);
        let (profile, delivered) = (config.profile(), BTreeSet::new());
        Self { machine, profile, mutant, unwritten: None, delivered }
    }

    fn identify(&self, now: Time, hash: &mut Digest) {
        self.machine.fingerprint(now, hash);
        let unwritten = self.unwritten.as_ref().map(|durable| (durable.term, durable.voted_for));
        hash.fold_value(&(unwritten, &self.delivered));
        if self.profile != Profile::Hardened {
            hash.fold_value(&now);
        }
    }
}

/// Who has led and voted, ever.
#[derive(Clone, Default)]
struct Votes {
    hardened: bool,
    /// Nothing is explored beyond this term.
    terms: u64,
    /// Who led which terms, and who voted for whom in which.
    led: BTreeMap<u64, NodeId>,
    votes: BTreeMap<(NodeId, u64), NodeId>,
    beyond: bool,
    /// Who leads now, and who ever said that it was elected: as published the first node leads from the start.
    leading: BTreeSet<NodeId>,
    confirmed: BTreeSet<NodeId>,
}

impl Judge<Node> for Votes {
    /// Whether anybody was ever elected.
    type Tally = bool;

    fn step(&mut self, step: &Step<'_, Node>) -> Result<(), String> {
        let (me, machine) = (step.peer.id, &step.machine.machine);
        let leadership = machine.leadership();
        let leads = leadership.leader == Some(me);
        let said = |message: &Message| message.kind() == Kind::ConfirmElection;
        for effect in step.effects {
            match effect {
                Effect::Send { message, .. }
                | Effect::Multicast(message)
                | Effect::Broadcast(message)
                    if said(message) =>
                {
                    self.confirmed.insert(me);
                }
                Effect::Emit(Event::Started { term }) => self.beyond |= *term > self.terms,
                _ => {}
            }
        }
        if leads {
            self.leading.insert(me)
        } else {
            self.leading.remove(&me)
        };
        if self.hardened {
            if let Some(term) = leadership.epoch.filter(|_| leads).map(|epoch| epoch.counter()) {
                let first = *self.led.entry(term).or_insert(me);
                if first != me {
                    return Err(format!("nodes {first} and {me} both lead term {term}"));
                }
            }
            if let Some((term, Some(vote))) = machine.ballot() {
                let cast = *self.votes.entry((me, term)).or_insert(vote);
                if cast != vote {
                    return Err(format!("node {me} votes for {cast} and {vote} in term {term}"));
                }
            }
        } else if self.elected().count() > 1 {
            return Err(format!("{:?} lead at once", self.elected().collect::<Vec<_>>()));
        }
        Ok(())
    }

    fn tally(&self, elected: &mut bool) {
        *elected |= self.elected().next().is_some();
    }

    fn identity(&self, hash: &mut Digest) {
        hash.fold_value(&(&self.led, &self.votes, self.beyond));
        hash.fold_value(&(&self.leading, &self.confirmed));
    }

    fn enough(&self) -> bool {
        self.hardened && self.beyond
    }
}

impl Votes {
    fn elected(&self) -> impl Iterator<Item = &NodeId> {
        self.leading.intersection(&self.confirmed)
    }
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Nothing is explored beyond this term.
    terms: u64,
    restarts: u32,
    states: u64,
}

fn model(config: Config, mutant: Mutant) -> Model<'static, Node> {
    let peers = (0..COUNT).map(|node| Peer::new(NodeId::new(node), Boot::new(1)));
    let build = move |peer, disk| Node::new(config, mutant, peer, disk);
    let nodes = peers.map(|peer| (peer, build(peer, None)));
    // A heartbeat says no more than the confirmation before it, and its answer changes a lease, which no clock here
    // relates to anything.
    let idle = |message: &Message| matches!(message.kind(), Kind::Heartbeat | Kind::HeartbeatAck);
    Model::new(nodes).with_restarts(build).without(idle)
}

/// Who has forgotten nothing learns nothing from word of a term it is past: such a hint is as good as lost.
fn stale(node: &Node, message: &Message) -> bool {
    let Message::TermHint { term, leader } = message else { return false };
    let own = node.machine.ballot().map_or(0, |(term, _)| term);
    node.mutant == Mutant::None && (own > *term || (own == *term && leader.is_none()))
}

fn any_order() -> AnyOrder<'static, Node> {
    AnyOrder::new(Node::identify).with_spent(|node, _, message| stale(node, message))
}

/// Greedy, without pings, and sampled so seldom that estimates stay as they are drawn.
fn hardened() -> Config {
    Config::new(Profile::Hardened, Policy::EpsilonGreedy { epsilon: 0.0, decay: 1.0 })
        .with_pings(None)
        .and_then(|config| config.with_sample(Duration::from_secs(1 << 40)))
        .expect("these constants satisfy the constraints")
}

fn check(mutant: Mutant, bounds: Bounds) -> Explored<bool> {
    let Bounds { terms, restarts, states } = bounds;
    let orders = any_order().with_restarts(restarts).with_most(states);
    let judge = Votes { hardened: true, terms, ..Votes::default() };
    explore_any_order(&model(hardened(), mutant), &orders, judge)
}

fn assert_safe(bounds: Bounds) -> Explored<bool> {
    let found = check(Mutant::None, bounds);
    println!("{bounds:?}: {} states, cut: {}", found.states, found.cut);
    if let Some(violation) = &found.violation {
        panic!("{violation}");
    }
    assert!(found.tally, "nobody was ever elected: nothing was shown");
    found
}

/// P-2 and P-3, exhaustively: every history in which nobody crashes and nobody goes beyond the first term.
#[test]
fn no_history_of_three_nodes_gives_a_term_two_leaders() {
    assert!(!assert_safe(Bounds { terms: 1, restarts: 0, states: 4 * LIMIT }).cut);
}

/// The same with a crash of any one of them, at any time.
#[test]
fn nor_does_a_restart() {
    assert!(!assert_safe(Bounds { terms: 1, restarts: 1, states: 100 * LIMIT }).cut);
}

/// Two terms and two crashes, millions of states: some minutes.
#[test]
#[ignore = "takes minutes"]
fn nor_do_two_terms_and_two_restarts() {
    assert_safe(Bounds { terms: 2, restarts: 2, states: 10 * LIMIT });
}

/// The checker would notice.
#[test]
fn every_mutant_is_caught() {
    for mutant in [Mutant::ForgetsVotes, Mutant::WritesLate, Mutant::CountsMessages] {
        let found = check(mutant, Bounds { terms: 1, restarts: 1, states: LIMIT });
        let Some(violation) = found.violation else {
            panic!("{mutant:?} survived {} states", found.states)
        };
        println!("{mutant:?} after {} states: {violation}", found.states);
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
    let client = Peer::new(NodeId::new(99), Boot::new(1));
    let model =
        [1, 2].map(NodeId::new).into_iter().fold(model(config, Mutant::None), |model, node| {
            let request = Message::ClientRequest { number: 1, attempt: 1 };
            model.with_script(Time::ZERO, node, Scripted::Message(client, request))
        });
    let orders = any_order().with_timeouts(5).with_most(LIMIT);
    let found = explore_any_order(&model, &orders, Votes::default());
    let violation = found.violation.expect("two leaders at once");
    println!("after {} states: {violation}", found.states);
}

const COUNT: u64 = 3;
const LIMIT: u64 = 400_000;
