//! A model checker for any [`Machine`]: the machines themselves, in every history of a kind.
//!
//! A [`Model`] says which nodes there are and what is given to them; a [`Judge`] looks at every step of every history.
//! Which histories there are is said in one of two ways:
//!
//! - [`explore`]: *around the regular history*. Every message takes one delay, every clock runs as it does. A
//!   [`Deviation`] delays a message, loses it, or does something else that its [`Kind`] names; all histories with at
//!   most so many deviations are followed to the end. For protocols that rely on time.
//! - [`explore_any_order`]: *in any order*. Every message ever sent may arrive at any time, any number of times, or
//!   never, and no bound relates the clocks of two nodes. For protocols that must not rely on time.
//!
//! Both carry out every effect of the contract, and follow equal states once.

mod any_order;
mod identity;
pub mod keys;
pub mod nodes;
mod regular;
pub mod ring;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use bellwether_proto::{
    Duration, Effect, EffectOf, InputOf, Machine, NodeId, OutboxOf, Peer, Time,
};

pub use self::{
    any_order::{AnyOrder, explore_any_order},
    identity::Digest,
    regular::{Allowed, Deviation, Kind, Settings, Told, What, explore, replay},
};
use crate::engine::clock::Clock;

/// A machine that can be explored, by several threads: any whose parts are plain values.
pub trait Explorable:
    Machine<Message: Send + Sync, Feed: Send + Sync, Command: Send + Sync, Durable: Send + Sync>
    + Clone
    + Send
    + Sync
{
}

impl<M> Explorable for M where
    M: Machine<Message: Send + Sync, Feed: Send + Sync, Command: Send + Sync, Durable: Send + Sync>
        + Clone
        + Send
        + Sync
{
}

/// How a node is built again: who it is now, and what its disk holds, if anything.
type Build<'a, M> = Box<dyn Fn(Peer, Option<<M as Machine>::Durable>) -> M + Send + Sync + 'a>;

/// Which messages never travel.
type Silent<'a, M> = Box<dyn Fn(&<M as Machine>::Message) -> bool + Send + Sync + 'a>;

/// The nodes, and what is given to them in every history.
pub struct Model<'a, M: Machine> {
    /// In the order of identities.
    nodes: Vec<(Peer, M)>,
    build: Option<Build<'a, M>>,
    feeds: BTreeMap<NodeId, Vec<M::Feed>>,
    script: Vec<(Time, NodeId, Scripted<M>)>,
    drift: BTreeMap<NodeId, i32>,
    range: BTreeMap<NodeId, Vec<NodeId>>,
    group: Option<Vec<NodeId>>,
    not_kept: Option<M::Feed>,
    silent: Option<Silent<'a, M>>,
}

/// Something that happens to a node by plan.
#[derive(Debug)]
pub enum Scripted<M: Machine> {
    /// The substrate has something to say.
    Feed(M::Feed),
    /// The application asks for something.
    Command(M::Command),
    /// Somebody that is no node of the model says something.
    Message(Peer, M::Message),
    /// It is to leave.
    Leave,
    /// It crashes. Not in any order, where nodes restart at any time as it is; nor what follows.
    Crash,
    /// It crashes, and starts again from its disk after this long, if nodes [can](Model::with_restarts).
    Restart(Duration),
    /// It handles nothing for this long; then what has arrived comes first.
    Pause(Duration),
}

impl<'a, M: Machine> Model<'a, M> {
    /// These nodes, which have not started. They start at once.
    pub fn new(nodes: impl IntoIterator<Item = (Peer, M)>) -> Self {
        let mut nodes: Vec<(Peer, M)> = nodes.into_iter().collect();
        nodes.sort_by_key(|(peer, _)| peer.id);
        Self {
            nodes,
            build: None,
            feeds: BTreeMap::new(),
            script: Vec::new(),
            drift: BTreeMap::new(),
            range: BTreeMap::new(),
            group: None,
            not_kept: None,
            silent: None,
        }
    }

    /// How a node is built again after a crash, in a larger [`Boot`](bellwether_proto::Boot), with what its disk
    /// holds: nothing if it was lost or nothing was ever written. Without this nobody restarts.
    pub fn with_restarts(
        mut self,
        build: impl Fn(Peer, Option<M::Durable>) -> M + Send + Sync + 'a,
    ) -> Self {
        self.build = Some(Box::new(build));
        self
    }

    /// What a node is told whenever it has started.
    pub fn with_feeds(mut self, node: NodeId, feeds: impl IntoIterator<Item = M::Feed>) -> Self {
        self.feeds.entry(node).or_default().extend(feeds);
        self
    }

    /// What happens to a node at an instant; in any order, once at any time or never. Lost if it is down then.
    pub fn with_script(mut self, at: Time, node: NodeId, what: Scripted<M>) -> Self {
        self.script.push((at, node, what));
        self.script.sort_by_key(|(at, ..)| *at);
        self
    }

    /// A clock that is fast by so many millionths, or slow.
    pub fn with_drift(mut self, node: NodeId, ppm: i32) -> Self {
        self.drift.insert(node, ppm);
        self
    }

    /// Who hears a node's broadcasts; else everybody does.
    pub fn with_range(mut self, node: NodeId, hearers: impl IntoIterator<Item = NodeId>) -> Self {
        self.range.insert(node, hearers.into_iter().collect());
        self
    }

    /// To whom multicasts go; else to everybody.
    pub fn with_group(mut self, group: impl IntoIterator<Item = NodeId>) -> Self {
        self.group = Some(group.into_iter().collect());
        self
    }

    /// What a machine is told if its disk has refused to keep something. Without this the node crashes.
    pub fn with_not_kept(mut self, feed: M::Feed) -> Self {
        self.not_kept = Some(feed);
        self
    }

    /// Messages that are not worth following: they never travel.
    pub fn without(mut self, silent: impl Fn(&M::Message) -> bool + Send + Sync + 'a) -> Self {
        self.silent = Some(Box::new(silent));
        self
    }

    fn index(&self, node: NodeId) -> Option<usize> {
        self.nodes.binary_search_by_key(&node, |(peer, _)| peer.id).ok()
    }

    /// Who hears the broadcasts (or, else, the multicasts) of each node.
    fn audiences(&self, broadcasts: bool) -> Vec<Vec<usize>> {
        let one = |(at, (peer, _)): (usize, &(Peer, M))| {
            let some = if broadcasts { self.range.get(&peer.id) } else { self.group.as_ref() };
            let all = 0..self.nodes.len();
            let heard = |other: &usize| {
                some.is_none_or(|some| some.contains(&self.nodes[*other].0.id)) && *other != at
            };
            all.filter(heard).collect()
        };
        self.nodes.iter().enumerate().map(one).collect()
    }

    fn travels(&self, message: &M::Message) -> bool {
        !self.silent.as_ref().is_some_and(|silent| silent(message))
    }
}

impl<M: Machine + fmt::Debug> fmt::Debug for Model<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nodes, script) = (&self.nodes, &self.script);
        let mut all = f.debug_struct("Model");
        all.field("nodes", nodes).field("script", script).finish_non_exhaustive()
    }
}

/// Hands an input to a machine and takes what it asks for. What it refuses changes nothing.
fn give<M: Machine>(
    machine: &mut M,
    local: Time,
    input: InputOf<'_, M>,
    out: &mut OutboxOf<M>,
    effects: &mut Vec<EffectOf<M>>,
) {
    let _refused = machine.handle(local, input, out);
    effects.extend(std::iter::from_fn(|| out.pop()));
}

/// A node has been given something and has answered.
#[derive(Debug)]
pub struct Step<'a, M: Machine> {
    /// When: by the clock on the wall, or, in any order, by the node's own.
    pub now: Time,
    /// The life of a node that was given something.
    pub peer: Peer,
    /// What has become of it.
    pub machine: &'a M,
    /// What is carried out, in order.
    pub effects: &'a [EffectOf<M>],
    clock: Clock,
}

impl<'a, M: Machine> Step<'a, M> {
    /// What the application is told.
    pub fn events(&self) -> impl Iterator<Item = &'a M::Event> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Emit(event) => Some(event),
            _ => None,
        })
    }

    /// What the node's clock shows.
    pub fn local(&self) -> Time {
        self.clock.read(self.now)
    }

    /// The time on the wall when the node's clock shows `local`.
    pub fn wall(&self, local: Time) -> Time {
        self.clock.when(local)
    }
}

/// The last state of a history.
#[derive(Debug)]
pub struct End<'a, M: Machine> {
    /// When the history ended.
    pub now: Time,
    /// All nodes; those that are down are no machine.
    pub nodes: Vec<(Peer, Option<&'a M>)>,
    /// Whether it was seen before, so that what follows was, too; then nothing that does not hold counts any more.
    pub seen: bool,
}

/// What looks at every step of a history. Every history has its own, a copy as of where it left another one.
pub trait Judge<M: Machine>: Clone + Send {
    /// What is counted over all histories.
    type Tally: Default + Send;

    /// A node has been given something.
    ///
    /// # Errors
    ///
    /// What does not hold.
    fn step(&mut self, step: &Step<'_, M>) -> Result<(), String>;

    /// A node's disk holds this from now on. Told after the step that asked for it, and alone if the node crashed right
    /// after it was written.
    fn kept(&mut self, _peer: Peer, _durable: &M::Durable) {}

    /// A node has crashed.
    fn crashed(&mut self, _now: Time, _peer: Peer) {}

    /// A node is about to start again; its disk may have been lost.
    fn restarted(&mut self, _now: Time, _peer: Peer, _lost: bool) {}

    /// A history is over. Not told of those in any order, which have no end.
    ///
    /// # Errors
    ///
    /// What does not hold in the end.
    fn ended(&mut self, _end: &End<'_, M>) -> Result<(), String> {
        Ok(())
    }

    /// Counts what it has seen, at the end of a history; in any order, once for every different judge.
    fn tally(&self, _tally: &mut Self::Tally) {}

    /// Adds what was counted elsewhere.
    fn merge(_tally: &mut Self::Tally, _other: Self::Tally) {}

    /// What tells it from other judges of the same nodes. Only asked for in any order: with time, what machines were
    /// given and when tells judges apart as well.
    fn identity(&self, _hash: &mut Digest) {}

    /// Whether what follows need not be looked at.
    fn enough(&self) -> bool {
        false
    }
}

/// Two judges at once.
impl<M: Machine, A: Judge<M>, B: Judge<M>> Judge<M> for (A, B) {
    type Tally = (A::Tally, B::Tally);

    fn step(&mut self, step: &Step<'_, M>) -> Result<(), String> {
        self.0.step(step)?;
        self.1.step(step)
    }

    fn kept(&mut self, peer: Peer, durable: &M::Durable) {
        self.0.kept(peer, durable);
        self.1.kept(peer, durable);
    }

    fn crashed(&mut self, now: Time, peer: Peer) {
        self.0.crashed(now, peer);
        self.1.crashed(now, peer);
    }

    fn restarted(&mut self, now: Time, peer: Peer, lost: bool) {
        self.0.restarted(now, peer, lost);
        self.1.restarted(now, peer, lost);
    }

    fn ended(&mut self, end: &End<'_, M>) -> Result<(), String> {
        self.0.ended(end)?;
        self.1.ended(end)
    }

    fn tally(&self, tally: &mut Self::Tally) {
        self.0.tally(&mut tally.0);
        self.1.tally(&mut tally.1);
    }

    fn merge(tally: &mut Self::Tally, other: Self::Tally) {
        A::merge(&mut tally.0, other.0);
        B::merge(&mut tally.1, other.1);
    }

    fn identity(&self, hash: &mut Digest) {
        self.0.identity(hash);
        self.1.identity(hash);
    }

    fn enough(&self) -> bool {
        self.0.enough() || self.1.enough()
    }
}

/// What was found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Explored<T> {
    /// Different states looked at.
    pub states: u64,
    /// Histories followed to their end, or to a state that had been seen; none in any order.
    pub histories: u64,
    /// Whether a bound on states or messages cut the search short.
    pub cut: bool,
    /// What did not hold, in the first history in which something did not.
    pub violation: Option<Violation>,
    /// What the judges counted.
    pub tally: T,
}

/// What did not hold, and how that came about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// In the judge's words.
    pub problem: String,
    /// Where the history left the regular one, for [`replay`]. Empty in any order.
    pub path: Vec<Deviation>,
    /// The same in words; in any order, the whole history.
    pub told: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.problem)?;
        self.told.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// As long as a message takes, if nothing else is said.
const DELAY: Duration = Duration::from_millis(10);
/// As long as a late one takes.
const LATE: Duration = Duration::from_millis(600);
