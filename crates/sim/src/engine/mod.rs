//! The engine: many machines, one queue, one order.
//!
//! A run is single-threaded and a pure function of its scenario and seed. Events are ordered by time;
//! at one instant deliveries come before timers (the machines' fourth rule for hosts), and within that by
//! the order in which they were caused. Faults are applied from outside between two events, by the caller
//! that owns the fault schedule: see [`Sim::advance`].
//!
//! Timers belong to the machines; the engine keeps one wake-up per node. A deadline that moved later is
//! noticed when the wake-up comes and finds nothing due; one that moved earlier gets an earlier wake-up,
//! and the old one is recognised as stale. Neither counts as an event.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{
    Boot, Duration, Effect, EffectOf, Input, InputOf, Machine, NodeId, Outbox, OutboxOf, Peer,
    Rejected, Rng, Seed, Time, wire,
};

use self::{clock::Clock, queue::Queue};
pub use self::{disk::HostFeeds, observer::Observer};
use crate::world::{Arrival, Network, Travel};

/// Many machines of one kind in one network.
pub struct Sim<M: Machine, O = ()> {
    now: Time,
    queue: Queue<Event>,
    network: Network,
    nodes: Vec<Node<M>>,
    disks: Vec<Option<M::Durable>>,
    /// Whose disks keep nothing at present.
    failing: BTreeSet<u32>,
    /// Whose take how long at most, and what they are writing.
    slow: BTreeMap<u32, Duration>,
    writing: BTreeMap<u32, Write<M>>,
    /// How many failures in a row a machine has just been told of.
    unkept: u32,
    feeds: HostFeeds<M>,
    /// Empty until a clock drifts.
    clocks: Vec<Clock>,
    /// By how much hosts wake their nodes too late, at most, and what that is drawn from.
    oversleep: Option<(Duration, Seed)>,
    frozen: BTreeMap<u32, Frozen<M>>,
    /// Earlier lives that run on though their identities were cloned, by order; those that have ended stay.
    ghosts: Vec<Ghost<M>>,
    /// What ghosts are about to be told.
    notices: Vec<Notice>,
    /// Empty unless an identity was cloned.
    seals: Seals,
    parcels: Parcels<M::Message>,
    outbox: OutboxOf<M>,
    arrivals: Vec<Arrival>,
    /// Those that a frame has reached, and those that plan to send after it.
    receivers: Vec<u32>,
    plans: Vec<(u32, Time)>,
    seed: Seed,
    build: Builder<M>,
    /// Empty unless some messages are lost more often than others.
    selective_loss: Option<SelectiveLoss<M::Message>>,
    carrier: Option<Carrier<M::Message>>,
    hash: TraceHash,
    counters: Counters,
    rejected: BTreeMap<&'static str, u64>,
    observer: O,
}

/// Makes the machine of one life of one node, from what its last life persisted.
pub type Builder<M> = Box<dyn FnMut(Peer, Seed, Option<<M as Machine>::Durable>) -> M>;

/// Says of a message from a node to one other whether it is lost before anybody hears it, for what it is.
pub type SelectiveLoss<T> = Box<dyn FnMut(u32, &T) -> bool>;

/// What a node is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// Not there yet.
    Absent,
    /// It handles what comes in.
    Up,
    /// Running, but only to say goodbye.
    Leaving,
    /// Frozen: exists, handles nothing.
    Paused,
    /// Runs, but nothing it says gets out and nothing said to it gets in.
    Choked,
    /// It has crashed, and may start again.
    Down,
    /// Gone for good.
    Left,
}

/// What a node finds when it starts again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// All it had persisted.
    Kept,
    /// Nothing; only its boot number still grows.
    Lost,
}

struct Node<M> {
    machine: Option<M>,
    /// When its wake-up is due; [`Time::NEVER`] if it has none.
    wake: Time,
    boot: u32,
    status: Status,
}

/// What waits for a paused node: its socket buffer, and what its host has to tell it.
struct Frozen<M: Machine> {
    parcels: Vec<u32>,
    feeds: Vec<M::Feed>,
    /// What a choked node wants to send.
    held: Vec<EffectOf<M>>,
    capacity: usize,
}

/// An event: a message for a node, or its wake-up.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// Of a ghost or a notice the index among its kind.
    node: u32,
    /// Index of the message, or one of the numbers below, from [`WAKE`] on.
    parcel: u32,
}

mod air;
mod carrier;
pub(crate) mod clock;
mod counters;
mod disk;
mod ghost;
mod life;
mod observer;
mod parcels;
pub mod queue;
mod sending;
pub(crate) mod trace;

pub use self::{
    carrier::Carrier,
    counters::{Counters, LONGEST_WAY},
    trace::{Each, TraceHash},
};
use self::{
    disk::Write,
    ghost::{Ghost, Notice, Seals},
    parcels::Parcels,
};

impl<M: Machine, O: Observer<M>> Sim<M, O> {
    /// A network of `nodes` absent nodes, whose machines `build` makes as they start.
    pub fn new(network: Network, nodes: u32, seed: Seed, build: Builder<M>, observer: O) -> Self {
        let absent = || Node { machine: None, wake: Time::NEVER, boot: 0, status: Status::Absent };
        Self {
            now: Time::ZERO,
            queue: Queue::new(),
            network,
            nodes: std::iter::repeat_with(absent).take(nodes as usize).collect(),
            disks: std::iter::repeat_with(|| None).take(nodes as usize).collect(),
            failing: BTreeSet::new(),
            slow: BTreeMap::new(),
            writing: BTreeMap::new(),
            unkept: 0,
            feeds: HostFeeds::default(),
            clocks: Vec::new(),
            oversleep: None,
            frozen: BTreeMap::new(),
            ghosts: Vec::new(),
            notices: Vec::new(),
            seals: Seals::default(),
            parcels: Parcels::new(),
            outbox: Outbox::new(),
            arrivals: Vec::new(),
            receivers: Vec::new(),
            plans: Vec::new(),
            seed: seed.named("node"),
            build,
            selective_loss: None,
            carrier: None,
            hash: TraceHash::new(),
            counters: Counters::default(),
            rejected: BTreeMap::new(),
            observer,
        }
    }

    /// Loses some messages for what they are, besides what the network does.
    pub fn with_selective_loss(
        mut self,
        selective_loss: Option<SelectiveLoss<M::Message>>,
    ) -> Self {
        self.selective_loss = selective_loss;
        self
    }

    /// Lets nobody be woken when it wants to be, but up to so much later, as on a real host.
    pub fn with_oversleep(mut self, most: Duration) -> Self {
        self.oversleep = Some((most, self.seed.named("oversleep")));
        self
    }

    /// When a node is woken that wants to be at `deadline`, of the true time `at`. The same whenever it is asked.
    fn waking(&self, index: u32, deadline: Time, at: Time) -> Time {
        let Some((most, seed)) = self.oversleep else { return at };
        at + seed.indexed(index.into()).indexed(deadline.as_micros()).rng().up_to(most)
    }

    /// Lets machines know what befalls their hosts; those that cannot be told are stopped instead.
    pub fn with_host_feeds(mut self, feeds: HostFeeds<M>) -> Self {
        self.feeds = feeds;
        self
    }

    /// Back to the beginning, with nobody there, and another seed. What was learnt of the network stays: paths
    /// are dear, and the same in every run on one placement.
    pub fn renew(&mut self, seed: Seed, network: Rng) {
        self.now = Time::ZERO;
        self.queue = Queue::new();
        self.network.renew(network);
        for node in &mut self.nodes {
            *node = Node { machine: None, wake: Time::NEVER, boot: 0, status: Status::Absent };
        }
        self.disks.fill(None);
        self.failing.clear();
        (self.slow, self.writing) = (BTreeMap::new(), BTreeMap::new());
        self.clocks.clear();
        self.frozen.clear();
        self.ghosts.clear();
        self.notices.clear();
        self.seals = Seals::default();
        self.parcels.clear();
        self.seed = seed.named("node");
        self.hash = TraceHash::new();
        self.counters = Counters::default();
        self.rejected.clear();
    }

    /// Whether nothing will happen any more unless from outside.
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty()
    }

    /// The present instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How often machines refused an input, by reason.
    pub fn rejections(&self) -> &BTreeMap<&'static str, u64> {
        &self.rejected
    }

    /// The digest of everything so far.
    pub fn trace_hash(&self) -> TraceHash {
        self.hash
    }

    /// The observer of the run.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Who watches, to ask it to conclude.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// How many nodes there are or will be.
    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What a node is doing.
    pub fn status(&self, node: u32) -> Status {
        self.nodes[node as usize].status
    }

    /// A node's machine, if it has one now.
    pub fn machine(&self, node: u32) -> Option<&M> {
        self.nodes[node as usize].machine.as_ref()
    }

    /// Handles every event before `to`, then makes `to` the present. Stops early, at the event in
    /// question, if the observer is done; returns whether it did.
    ///
    /// Links change as nodes move: before anything else that happens at the same instant.
    pub fn advance(&mut self, to: Time) -> bool {
        while let Some(at) = self.network.next_change().filter(|&at| at < to) {
            if self.handle_until(at) {
                return true;
            }
            self.relink();
            if self.observer.done() {
                return true;
            }
        }
        self.handle_until(to)
    }

    fn handle_until(&mut self, to: Time) -> bool {
        let limit = key(to, Lane::Delivery);
        while let Some((key, event)) = self.queue.pop_before(limit) {
            let at = Time::from_micros(key >> 1);
            debug_assert!(at >= self.now, "time went back");
            self.now = at;
            match event.parcel {
                WAKE => self.wake(event.node),
                ASK => self.ask(event.node),
                FRAME_ENDS => self.frame_ends(event.node),
                GHOST_WAKES => self.wake_ghost(event.node),
                NOTICE => self.notice(event.node),
                WRITTEN => self.written(event.node),
                parcel => self.deliver(event.node, parcel),
            }
            if self.observer.done() {
                return true;
            }
        }
        self.now = to;
        false
    }

    /// Tells a node something from outside the protocol; a frozen one hears it when it wakes. Does nothing if
    /// it is not running.
    pub fn feed(&mut self, node: u32, feed: M::Feed) {
        match self.status(node) {
            Status::Up | Status::Leaving | Status::Choked => {
                self.hash.fold_value(&feed);
                self.input(node, Tag::Feed, Input::Feed(feed));
            }
            Status::Paused => {
                if let Some(frozen) = self.frozen.get_mut(&node) {
                    frozen.feeds.push(feed);
                }
            }
            Status::Absent | Status::Down | Status::Left => {}
        }
    }

    /// Asks a node for something. Does nothing if it is not up, and a frozen one never hears of it.
    pub fn command(&mut self, node: u32, command: M::Command) {
        if matches!(self.status(node), Status::Up | Status::Choked) {
            self.hash.fold_value(&command);
            self.input(node, Tag::Command, Input::Command(command));
        }
    }

    /// Changes the rate of a node's clock from now on.
    pub fn drift(&mut self, node: u32, ppm: i32) {
        if self.clocks.is_empty() {
            self.clocks = vec![Clock::true_time(); self.nodes.len()];
        }
        self.clocks[node as usize].set_rate(self.now, ppm);
        self.observer.drifted(self.now, node_id(node), ppm);
        self.mark(Tag::Drift, node);
        // Deadlines now lie elsewhere in true time: the wake-up on its way is no longer the right one.
        self.nodes[node as usize].wake = Time::NEVER;
        self.rearm(node);
    }

    /// Changes the network: partitions, cuts, trouble.
    pub fn change_network(&mut self, change: impl FnOnce(&mut Network)) {
        change(&mut self.network);
        self.mark(Tag::Network, 0);
        self.observer.topology(self.now, &self.network);
    }

    /// Nodes that move come into each other's range and leave it.
    fn relink(&mut self) {
        let Self { network, hash, now, .. } = self;
        let mut relinked = false;
        network.move_on(*now, |change| {
            hash.fold(now.as_micros() << 1 | u64::from(change.up));
            hash.fold(u64::from(change.a) << 32 | u64::from(change.b));
            relinked = true;
        });
        // Who only comes into earshot can talk to nobody new.
        if relinked {
            self.observer.topology(self.now, &self.network);
        }
    }

    /// The network as it is.
    pub fn network(&self) -> &Network {
        &self.network
    }

    #[inline]
    fn deliver(&mut self, to: u32, parcel: u32) {
        let node = &mut self.nodes[to as usize];
        let sender = self.parcels.sender(parcel);
        let from = sender.id.get() as u32;
        match node.status {
            Status::Up | Status::Leaving if self.network.admits(from, to) => {}
            Status::Paused | Status::Choked if self.network.admits(from, to) => {
                return self.buffer(to, parcel);
            }
            _ => {
                self.counters.undeliverable += 1;
                self.observer.missed(self.now, sender.id, node_id(to));
                return self.parcels.release(parcel);
            }
        }
        if !self.seals.is_empty() && !self.seals.hears(to, sender) {
            return self.refuse(to, parcel);
        }
        let via = NodeId::new(u64::from(self.network.via(from, to)));
        let input = Input::Message { from: sender, via, message: self.parcels.message(parcel) };
        let local = local(&self.clocks, to, self.now);
        self.hash.fold(self.now.as_micros());
        self.hash.fold(u64::from(to) << 32 | u64::from(from));
        self.observer.input(self.now, node_id(to), &input);
        let Some(machine) = &mut node.machine else { unreachable!("a running node has a machine") };
        let result = machine.handle(local, input, &mut self.outbox);
        self.parcels.release(parcel);
        self.counters.events += 1;
        self.counters.deliveries += 1;
        self.settle(to, result);
    }

    #[inline]
    fn wake(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let runs = matches!(node.status, Status::Up | Status::Leaving | Status::Choked);
        if node.wake != self.now || !runs {
            return;
        }
        node.wake = Time::NEVER;
        let local = local(&self.clocks, index, self.now);
        let Some(machine) = &mut node.machine else { unreachable!("a running node has a machine") };
        if machine.deadline().is_none_or(|(at, _)| at > local) {
            return self.rearm(index);
        }
        self.hash.fold(self.now.as_micros());
        self.hash.fold(u64::from(index) << 32 | u64::from(WAKE));
        self.observer.input(self.now, node_id(index), &Input::Timeout);
        let result = machine.handle(local, Input::Timeout, &mut self.outbox);
        assert!(
            machine.deadline().is_none_or(|(at, _)| at > local),
            "{} broke the contract: {:?} is still due after the timeout at {local}",
            node_id(index),
            machine.deadline(),
        );
        self.counters.events += 1;
        self.settle(index, result);
    }

    /// Hands a rare input over: all but messages and timeouts.
    fn input(&mut self, index: u32, tag: Tag, input: InputOf<'_, M>) {
        self.mark(tag, index);
        self.observer.input(self.now, node_id(index), &input);
        let local = local(&self.clocks, index, self.now);
        let Some(machine) = &mut self.nodes[index as usize].machine else { return };
        let result = machine.handle(local, input, &mut self.outbox);
        self.counters.events += 1;
        self.settle(index, result);
    }

    /// The drain rule: carries out the effects, then reads the deadline again.
    #[inline]
    fn settle(&mut self, index: u32, result: Result<(), Rejected>) {
        if let Err(why) = result {
            debug_assert!(self.outbox.is_empty(), "a refused input had effects");
            self.counters.rejected += 1;
            *self.rejected.entry(why.reason()).or_insert(0) += 1;
            self.observer.rejected(self.now, node_id(index), &why);
        }
        while let Some(effect) = self.outbox.pop() {
            self.observer.effect(self.now, node_id(index), &effect);
            if let Effect::Persist(state) = &effect
                && !self.keeps(index, state)
            {
                return;
            }
            self.carry_out(index, effect);
        }
        self.settled(index);
    }

    /// All effects of an input have been carried out.
    #[inline]
    fn settled(&mut self, index: u32) {
        if let Some(machine) = &self.nodes[index as usize].machine {
            self.observer.handled(self.now, node_id(index), machine);
        }
        self.rearm(index);
    }

    /// Makes sure the node is woken at its deadline; a leaving node without one is gone.
    #[inline]
    fn rearm(&mut self, index: u32) {
        let node = &self.nodes[index as usize];
        let Some(machine) = &node.machine else { return };
        let Some((deadline, _)) = machine.deadline() else {
            if node.status == Status::Leaving {
                self.stop(index, Status::Left);
            }
            return;
        };
        let at = match self.clocks.get(index as usize) {
            Some(clock) => clock.when(deadline),
            None => deadline,
        };
        let at = self.waking(index, deadline, at.max(self.now));
        let node = &mut self.nodes[index as usize];
        if at < node.wake && at < LAST {
            node.wake = at;
            self.queue.push(key(at, Lane::Timer), Event { node: index, parcel: WAKE });
        }
    }

    fn mark(&mut self, tag: Tag, index: u32) {
        self.hash.fold(self.now.as_micros());
        self.hash.fold(u64::from(index) << 32 | tag as u64);
    }
}

/// What comes first at one instant.
#[derive(Clone, Copy)]
enum Lane {
    Delivery = 0,
    Timer = 1,
}

/// What the trace hash calls the rarer things that happen.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Tag {
    Start = 0xffff_ff00,
    Leave,
    Stop,
    Pause,
    Resume,
    Drift,
    Network,
    Broadcast,
    Multicast,
    Feed,
    Choke,
    Command,
    DiskFails,
    DiskWorks,
    NotKept,
    Clone,
    Refuse,
    GhostWakes,
    Superseded,
    GhostGone,
    DiskSlows,
    Writing,
    Written,
}

#[inline]
fn key(at: Time, lane: Lane) -> u64 {
    at.min(LAST).as_micros() << 1 | lane as u64
}

#[inline]
fn local(clocks: &[Clock], node: u32, now: Time) -> Time {
    match clocks.get(node as usize) {
        Some(clock) => clock.read(now),
        None => now,
    }
}

#[inline]
fn node_id(index: u32) -> NodeId {
    NodeId::new(u64::from(index))
}

#[inline]
fn peer(index: u32, boot: u32) -> Peer {
    Peer::new(node_id(index), Boot::new(u64::from(boot)))
}

const WAKE: u32 = u32::MAX;
/// Instead of a message: whether the node's radio sends now, and the end of what it sends.
const ASK: u32 = u32::MAX - 1;
const FRAME_ENDS: u32 = u32::MAX - 2;
/// Instead of a message: the wake-up of a ghost, a notice that it is one, and that the node's disk has written something.
const GHOST_WAKES: u32 = u32::MAX - 3;
const NOTICE: u32 = u32::MAX - 4;
const WRITTEN: u32 = u32::MAX - 5;
/// Half the range of [`Time`], so that a key holds an instant and a lane: 292,000 years.
const LAST: Time = Time::from_micros(u64::MAX >> 1);

/// The length of a run cannot reach [`LAST`]; scenarios are limited to ten years.
const _: () = assert!(Duration::from_secs(3_650 * 86_400).as_micros() < LAST.as_micros());

#[cfg(test)]
mod tests;
