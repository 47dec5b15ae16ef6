//! The machine contract: what every protocol is, and what every host promises it.
//!
//! A protocol is a *value* that implements [`Machine`]. It has no clock, socket, thread or global
//! generator. Something happens to it ([`Input`]), it answers with what the host must do
//! ([`Effect`]), and it says when it next wants to be woken and why ([`Machine::deadline`]). The
//! simulator, the agent and the model checker are three hosts of the same value.
//!
//! # The host's side
//!
//! 1. Build the machine with its identity, its configuration, a [`Seed`](crate::Seed) and whatever
//!    its past life persisted; then give it [`Input::Start`].
//! 2. **The drain rule.** After *every* input, carry out the effects in the outbox in order, then
//!    read the deadline again. Order matters: a [`Effect::Persist`] that stands before a send must be
//!    durable before the send leaves. If it cannot be made durable at once, nothing that follows in this drain is
//!    sent, and nothing that follows is persisted; what is emitted is told all the same. A machine whose
//!    [`Machine::Feed`] can say so is then told, as its very next input, that it is being written or was refused. It
//!    says again what need not wait, and is told what came of the write once that is known. Any other machine waits
//!    with its host for the write; if it was refused the machine is stopped at once, as if it had crashed, for that
//!    is a fault it is made for.
//! 3. When the deadline has come, give [`Input::Timeout`]. Late, early and repeated timeouts are
//!    harmless.
//! 4. **Input before timers.** When a message and a deadline fall on the same instant, or a host
//!    wakes late, everything that has already arrived is handed over before the timeout. Otherwise a
//!    late host accuses peers whose answer lies unread in its own buffer.
//! 5. `now` never goes back, and counts suspended time.
//! 6. After [`Input::Leave`] keep driving until there is no deadline; then drop the machine.
//!
//! # The machine's side
//!
//! 1. No input panics. A message that makes no sense is [`Rejected`], changes nothing, and is counted
//!    by the host under its reason.
//! 2. After [`Input::Timeout`] no deadline is at or before `now`.
//! 3. Once running, no allocation per input on the hot path.
//! 4. Equal machines given equal inputs give equal effects.
//! 5. Who is told that something was not kept may try to persist again, but not for ever at one instant: it
//!    waits for a deadline before it tries the same once more.
//!
//! # Example: a host in twenty lines
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Duration, Effect, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     membership::ping::{Config, Ping},
//! };
//!
//! let config = Config::new(Duration::from_millis(20), Duration::from_millis(5), 2).unwrap();
//! let peers = [0, 1].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
//! let mut nodes = peers.map(|peer| {
//!     Ping::new(peer.id, config, Seed::new(1).named("node").indexed(peer.id.get()))
//! });
//! let mut out = Outbox::new();
//! for node in &mut nodes {
//!     node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! }
//! // A network without delay: whoever is due first is woken, its messages arrive at once.
//! for _ in 0..100 {
//!     let due = if nodes[0].deadline() <= nodes[1].deadline() { 0 } else { 1 };
//!     let (now, _why) = nodes[due].deadline().unwrap();
//!     nodes[due].handle(now, Input::Timeout, &mut out).unwrap();
//!     let mut from = peers[due];
//!     while let Some(effect) = out.pop() {
//!         let Effect::Send { to, message } = effect else { unreachable!("ping only sends") };
//!         let input = Input::Message { from, via: from.id, message: &message };
//!         nodes[to.get() as usize].handle(now, input, &mut out).unwrap();
//!         from = peers[to.get() as usize];
//!     }
//! }
//! assert!(nodes[0].acked() > 0 && nodes[0].missed() == 0);
//! ```

use alloc::collections::VecDeque;
use core::{fmt, hash::Hash};

use crate::{
    id::{NodeId, Peer},
    time::Time,
    wire::Wire,
};

/// A protocol as a value. See the [module](self) for the contract on both sides.
pub trait Machine {
    /// What nodes say to each other.
    type Message: Wire + Clone + fmt::Debug + Eq + Hash;
    /// Why it wants to be woken.
    type Timer: Copy + fmt::Debug;
    /// What the substrate below tells it: membership changes, links going up and down.
    /// [`Infallible`](core::convert::Infallible) for a machine that stands on nothing.
    ///
    /// Hosts fold it into their traces, as they do messages and commands: see [`hash`](crate::hash).
    type Feed: Clone + fmt::Debug + Hash;
    /// What the application may ask of it besides leaving.
    type Command: Clone + fmt::Debug + Hash;
    /// What must survive a restart.
    type Durable: Clone + fmt::Debug + Hash;
    /// What the application should be told that a view does not show.
    type Event: Clone + fmt::Debug;

    /// Something happened at `now`. Effects are appended to `out`; drain it before the next input.
    ///
    /// # Errors
    ///
    /// [`Rejected`] if the input makes no sense here. Nothing changed and `out` is untouched.
    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected>;

    /// The earliest deadline and why, or `None` if only an input can move this machine.
    fn deadline(&self) -> Option<(Time, Self::Timer)>;
}

/// Something that happens to a machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Input<'a, Message, Feed, Command> {
    /// The node has been started. Exactly once, first.
    Start,
    /// A message has arrived.
    Message {
        /// Who said it: the authenticated sender, never a name inside the message.
        from: Peer,
        /// The neighbour that handed it over last; `from.id` itself on a direct link.
        via: NodeId,
        /// What was said.
        message: &'a Message,
    },
    /// The deadline has come, or the host believes so.
    Timeout,
    /// The substrate below has something to say.
    Feed(Feed),
    /// The application asks for something.
    Command(Command),
    /// The node is about to leave for good: say goodbye. See the host's rule 6.
    Leave,
}

/// The [`Input`] of a machine.
pub type InputOf<'a, M> =
    Input<'a, <M as Machine>::Message, <M as Machine>::Feed, <M as Machine>::Command>;

/// Something the host must do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect<Message, Durable, Event> {
    /// Send to one node, over as many hops as it takes.
    Send {
        /// The receiver.
        to: NodeId,
        /// What to say.
        message: Message,
    },
    /// Send to whoever is in radio range: one hop.
    Broadcast(Message),
    /// Send to the whole group. Unreliable, and not looped back to the sender.
    Multicast(Message),
    /// Make this durable before carrying out what follows.
    Persist(Durable),
    /// Tell the application.
    Emit(Event),
}

/// The [`Effect`] of a machine.
pub type EffectOf<M> =
    Effect<<M as Machine>::Message, <M as Machine>::Durable, <M as Machine>::Event>;

/// Where a machine leaves its effects, first in, first out.
///
/// The host owns one and reuses it for every machine, so that a hundred thousand simulated nodes do
/// not carry a buffer each and no input allocates once it has grown to its working size.
#[derive(Clone, Debug)]
pub struct Outbox<Message, Durable, Event> {
    effects: VecDeque<Effect<Message, Durable, Event>>,
}

/// The [`Outbox`] of a machine.
pub type OutboxOf<M> =
    Outbox<<M as Machine>::Message, <M as Machine>::Durable, <M as Machine>::Event>;

impl<Message, Durable, Event> Outbox<Message, Durable, Event> {
    /// An empty outbox.
    pub const fn new() -> Self {
        Self { effects: VecDeque::new() }
    }

    /// The oldest effect not yet carried out.
    #[inline]
    pub fn pop(&mut self) -> Option<Effect<Message, Durable, Event>> {
        self.effects.pop_front()
    }

    /// Whether everything has been carried out.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// What is to be made durable first, and all that stands behind it.
    pub(crate) fn behind_persist(
        &self,
    ) -> Option<(&Durable, impl Iterator<Item = &Effect<Message, Durable, Event>>)> {
        let persists = |(at, effect): (usize, &'_ Effect<Message, Durable, Event>)| {
            matches!(effect, Effect::Persist(_)).then_some(at)
        };
        let at = self.effects.iter().enumerate().find_map(persists)?;
        let Effect::Persist(state) = &self.effects[at] else { return None };
        Some((state, self.effects.range(at + 1..)))
    }

    /// Asks the host for this.
    #[inline]
    pub(crate) fn push(&mut self, effect: Effect<Message, Durable, Event>) {
        self.effects.push_back(effect);
    }

    /// Asks the host to send `message` to `to`.
    #[inline]
    pub fn send(&mut self, to: NodeId, message: Message) {
        self.effects.push_back(Effect::Send { to, message });
    }

    /// Asks the host to send `message` to all radio neighbours.
    #[inline]
    pub fn broadcast(&mut self, message: Message) {
        self.effects.push_back(Effect::Broadcast(message));
    }

    /// Asks the host to send `message` to the whole group.
    #[inline]
    pub fn multicast(&mut self, message: Message) {
        self.effects.push_back(Effect::Multicast(message));
    }

    /// Asks the host to make `state` durable before it carries out what follows.
    #[inline]
    pub fn persist(&mut self, state: Durable) {
        self.effects.push_back(Effect::Persist(state));
    }

    /// Tells the application.
    #[inline]
    pub fn emit(&mut self, event: Event) {
        self.effects.push_back(Effect::Emit(event));
    }
}

impl<Message, Durable, Event> Default for Outbox<Message, Durable, Event> {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a machine refused an input. Nothing changed; hosts count refusals by [`Rejected::reason`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Rejected {
    /// The machine has not been started, or has left.
    #[error("not running")]
    NotRunning,
    /// [`Input::Start`] a second time.
    #[error("started twice")]
    StartedTwice,
    /// Our own message, looped back by the network, or one of a past life of ours.
    #[error("our own message came back from {from}")]
    Loopback {
        /// The sender it names.
        from: Peer,
    },
    /// Already seen, or older than what was already seen from this sender.
    #[error("replayed: {from} sequence {sequence}")]
    Replayed {
        /// The sender.
        from: Peer,
        /// The sequence number it carried.
        sequence: u64,
    },
    /// Of a life that has said goodbye.
    #[error("{from} has left")]
    Departed {
        /// The sender.
        from: Peer,
    },
    /// An epoch further ahead than any honest history explains.
    #[error("implausible epoch {found} from {from}: at most {limit} is believable now")]
    ImplausibleEpoch {
        /// The sender.
        from: Peer,
        /// The counter it carried.
        found: u64,
        /// The largest that would have been accepted.
        limit: u64,
    },
    /// Of an election this node takes no part in.
    #[error("no election {group:08x} here")]
    NoSuchElection {
        /// Its number.
        group: u32,
    },
    /// Of somebody whose settings of this election are not ours, in something its promise rests on.
    #[error("{from} has other settings")]
    OtherSettings {
        /// The sender.
        from: Peer,
    },
    /// Of somebody who means other voters.
    #[error("{from} means other voters")]
    OtherVoters {
        /// The sender.
        from: Peer,
    },
    /// Of somebody who is not on the list of members.
    #[error("{from} is not a member")]
    NotAMember {
        /// The sender.
        from: Peer,
    },
    /// A message that contradicts itself, or who sent it.
    #[error("{from} contradicts itself")]
    Contradictory {
        /// The sender.
        from: Peer,
    },
    /// What people asked for cannot be done as things are.
    #[error("{why}")]
    Refused {
        /// Why, to be shown to them.
        why: &'static str,
    },
    /// An answer nobody asked for.
    #[error("unsolicited answer from {from}")]
    Unsolicited {
        /// The sender.
        from: Peer,
    },
}

impl Rejected {
    /// A short stable name, for counters.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NotRunning => "not-running",
            Self::StartedTwice => "started-twice",
            Self::Loopback { .. } => "loopback",
            Self::Replayed { .. } => "replay",
            Self::Departed { .. } => "departed",
            Self::ImplausibleEpoch { .. } => "implausible-epoch",
            Self::NoSuchElection { .. } => "no-such-election",
            Self::OtherSettings { .. } => "other-settings",
            Self::OtherVoters { .. } => "other-voters",
            Self::NotAMember { .. } => "not-a-member",
            Self::Contradictory { .. } => "malformed",
            Self::Refused { .. } => "refused",
            Self::Unsolicited { .. } => "unsolicited",
        }
    }
}
