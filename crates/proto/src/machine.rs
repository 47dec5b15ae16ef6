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
//! # Example: a host in forty lines
//!
//! Two nodes elect on a network without delay. A host that restarts nodes would keep what they persist.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use bellwether_proto::{
//!     Boot, Duration, Effect, ElectionId, Input, InputOf, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     node::{ElectionSettings, Message, Node, Settings, TimingProfile},
//! };
//!
//! type Mail = VecDeque<(Peer, NodeId, Message)>;
//!
//! /// Tells a node that something has happened, and carries out what it answers.
//! fn tell(node: &mut Node, now: Time, input: InputOf<'_, Node>, mail: &mut Mail) {
//!     let mut out = Outbox::new();
//!     if let Err(refused) = node.handle(now, input, &mut out) {
//!         println!("{}: {refused}", refused.reason());
//!     }
//!     while let Some(effect) = out.pop() {
//!         match effect {
//!             Effect::Send { to, message } => mail.push_back((node.me(), to, message)),
//!             Effect::Broadcast(_) | Effect::Multicast(_) => unreachable!("not in this mode"),
//!             Effect::Persist(_) | Effect::Emit(_) => {}
//!         }
//!     }
//! }
//!
//! let ids = vec![NodeId::new(0), NodeId::new(1)];
//! let mut nodes = ["kitchen", "cellar"].into_iter().zip(&ids).map(|(name, &id)| {
//!     let elections = vec![ElectionSettings::default()];
//!     let plan = Settings::new(name, TimingProfile::Lan.timing(), elections).plan().unwrap();
//!     Node::new(Peer::new(id, Boot::new(1)), plan, Seed::new(id.get()), None).with_seeds(ids.clone())
//! }).collect::<Vec<_>>();
//!
//! let (mut now, end, mut mail) = (Time::ZERO, Time::ZERO + Duration::from_secs(20), Mail::new());
//! nodes.iter_mut().for_each(|node| tell(node, now, Input::Start, &mut mail));
//! while now < end {
//!     // Input before timers: what has arrived is handed over first.
//!     while let Some((from, to, message)) = mail.pop_front() {
//!         let input = Input::Message { from, via: from.id, message: &message };
//!         tell(&mut nodes[to.get() as usize], now, input, &mut mail);
//!     }
//!     let due = nodes.iter_mut().min_by_key(|node| node.deadline().map(|(at, _)| at)).unwrap();
//!     now = due.deadline().unwrap().0;
//!     tell(due, now, Input::Timeout, &mut mail);
//! }
//! let leader = |node: &Node| node.leadership_of(ElectionId::named("default"), now).leader;
//! assert!(leader(&nodes[0]).is_some() && leader(&nodes[0]) == leader(&nodes[1]), "they agree");
//! ```

use alloc::collections::VecDeque;
use core::{fmt, hash::Hash};

use crate::{
    id::{ElectionId, NodeId, Peer},
    time::Time,
    wire::Wire,
};

/// A protocol as a value. The [module](crate::machine) states the contract on both sides.
///
/// ```
/// use std::convert::Infallible;
///
/// use bellwether_proto::{
///     Duration, Input, InputOf, Machine, Outbox, OutboxOf, Rejected, Time,
///     wire::{DecodeError, Reader, Sink, Wire},
/// };
///
/// /// Says that it lives once a second.
/// struct Beacon(Option<Time>);
///
/// #[derive(Clone, Debug, Eq, Hash, PartialEq)]
/// struct Alive;
///
/// impl Wire for Alive {
///     fn encode(&self, _: &mut impl Sink) {}
///     fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
///         Ok(Self)
///     }
/// }
///
/// impl Machine for Beacon {
///     type Message = Alive;
///     type Timer = ();
///     type Feed = Infallible;
///     type Command = Infallible;
///     type Durable = Infallible;
///     type Event = Infallible;
///
///     fn handle(
///         &mut self,
///         now: Time,
///         input: InputOf<'_, Self>,
///         out: &mut OutboxOf<Self>,
///     ) -> Result<(), Rejected> {
///         if matches!(input, Input::Start | Input::Timeout) {
///             out.broadcast(Alive);
///             self.0 = Some(now + Duration::from_secs(1));
///         }
///         Ok(())
///     }
///
///     fn deadline(&self) -> Option<(Time, ())> {
///         self.0.map(|at| (at, ()))
///     }
/// }
///
/// let (mut beacon, mut out) = (Beacon(None), Outbox::new());
/// beacon.handle(Time::ZERO, Input::Start, &mut out).unwrap();
/// assert_eq!(beacon.deadline(), Some((Time::from_micros(1_000_000), ())));
/// ```
pub trait Machine {
    /// What nodes say to each other.
    type Message: Wire + Clone + fmt::Debug + Eq + Hash;
    /// Why it wants to be woken.
    type Timer: Copy + fmt::Debug;
    /// What the substrate below tells it: membership changes, links going up and down.
    /// [`Infallible`](core::convert::Infallible) for a machine that stands on nothing.
    ///
    /// Hosts fold it into their traces, as they do messages and commands.
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
    #[must_use = "hosts count what was refused under its reason"]
    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected>;

    /// The earliest deadline and why, or `None` if only an input can move this machine.
    #[must_use = "it moves with every input"]
    fn deadline(&self) -> Option<(Time, Self::Timer)>;
}

/// Something that happens to a machine.
///
/// ```
/// use bellwether_proto::{Boot, Input, InputOf, NodeId, Peer, node::{Message, Node}, wire::DecodeError};
///
/// /// What a host hands over when a packet has arrived and its seal has told who sent it.
/// fn hear(from: Peer, packet: &[u8], tell: impl FnOnce(InputOf<'_, Node>)) -> Result<(), DecodeError> {
///     let message = Message::from_packet(packet)?;
///     tell(Input::Message { from, via: from.id, message: &message });
///     Ok(())
/// }
///
/// let from = Peer::new(NodeId::new(3), Boot::new(1));
/// assert!(hear(from, b"noise", |_| panic!("it is no message")).is_err());
/// ```
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
///
/// ```
/// use bellwether_proto::{Input, InputOf, node::{Fact, Node}};
///
/// let kept: InputOf<'_, Node> = Input::Feed(Fact::Kept);
/// ```
pub type InputOf<'a, M> =
    Input<'a, <M as Machine>::Message, <M as Machine>::Feed, <M as Machine>::Command>;

/// Something the host must do.
///
/// Exhaustive: a host that leaves one undone breaks the contract.
///
/// ```
/// use bellwether_proto::{EffectOf, Effect, node::Node, wire::Wire};
///
/// /// To whom, and what; `None` for what is not sent.
/// fn packet(effect: EffectOf<Node>) -> Option<(Option<u64>, Vec<u8>)> {
///     match effect {
///         Effect::Send { to, message } => Some((Some(to.get()), message.to_packet())),
///         Effect::Broadcast(message) | Effect::Multicast(message) => Some((None, message.to_packet())),
///         Effect::Persist(state) => {
///             let mut bytes = Vec::new();
///             state.encode(&mut bytes); // A host writes these down before it goes on.
///             None
///         }
///         Effect::Emit(event) => {
///             println!("{event:?}");
///             None
///         }
///     }
/// }
/// assert_eq!(packet(Effect::Persist(Default::default())), None);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect<Message, Durable, Event> {
    /// Send to one node, over as many hops as it takes.
    Send {
        /// The node that receives it.
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
///
/// ```
/// use bellwether_proto::{Effect, EffectOf, node::Node};
///
/// let is_sent = |effect: &EffectOf<Node>| !matches!(effect, Effect::Persist(_) | Effect::Emit(_));
/// assert!(!is_sent(&Effect::Persist(Default::default())));
/// ```
pub type EffectOf<M> =
    Effect<<M as Machine>::Message, <M as Machine>::Durable, <M as Machine>::Event>;

/// Where a machine leaves its effects, first in, first out.
///
/// The host owns one and reuses it for every machine, so that a hundred thousand simulated nodes do
/// not carry a buffer each and no input allocates once it has grown to its working size.
///
/// ```
/// use bellwether_proto::{Effect, NodeId, Outbox};
///
/// let mut out: Outbox<&str, (), ()> = Outbox::new();
/// out.persist(());
/// out.send(NodeId::new(3), "I vote for you");
/// assert_eq!(out.pop(), Some(Effect::Persist(())), "durable before it is said");
/// assert!(matches!(out.pop(), Some(Effect::Send { .. })));
/// assert!(out.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Outbox<Message, Durable, Event> {
    effects: VecDeque<Effect<Message, Durable, Event>>,
}

/// The [`Outbox`] of a machine.
///
/// ```
/// use bellwether_proto::{OutboxOf, node::Node};
///
/// let out = OutboxOf::<Node>::new();
/// assert!(out.is_empty());
/// ```
pub type OutboxOf<M> =
    Outbox<<M as Machine>::Message, <M as Machine>::Durable, <M as Machine>::Event>;

impl<Message, Durable, Event> Outbox<Message, Durable, Event> {
    /// An empty outbox.
    pub const fn new() -> Self {
        Self { effects: VecDeque::new() }
    }

    /// The oldest effect not yet carried out.
    #[inline]
    #[must_use = "an effect that is dropped is not carried out"]
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
///
/// ```
/// use bellwether_proto::{Boot, NodeId, Peer, Rejected};
///
/// let refused = Rejected::Departed { from: Peer::new(NodeId::new(3), Boot::new(2)) };
/// assert_eq!((refused.reason(), refused.to_string()), ("departed", "n3/2 has left".to_owned()));
/// ```
#[non_exhaustive]
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
        /// The life that sent it.
        from: Peer,
        /// The sequence number it carried.
        sequence: u64,
    },
    /// Of a life that has said goodbye.
    #[error("{from} has left")]
    Departed {
        /// The life that sent it.
        from: Peer,
    },
    /// An epoch further ahead than any honest history explains.
    #[error("implausible epoch {found} from {from}: at most {limit} is believable now")]
    ImplausibleEpoch {
        /// The life that sent it.
        from: Peer,
        /// The counter it carried.
        found: u64,
        /// The largest that would have been accepted.
        limit: u64,
    },
    /// Of an election this node takes no part in.
    #[error("no election {election} here")]
    NoSuchElection {
        /// The election that the input named.
        election: ElectionId,
    },
    /// Of somebody whose settings of this election are not ours, in something its promise rests on.
    #[error("{from} has other settings")]
    OtherSettings {
        /// The life that sent it.
        from: Peer,
    },
    /// Of somebody who means other voters.
    #[error("{from} means other voters")]
    OtherVoters {
        /// The life that sent it.
        from: Peer,
    },
    /// Of somebody who is not on the list of members.
    #[error("{from} is not a member")]
    NotAMember {
        /// The life that sent it.
        from: Peer,
    },
    /// A message that contradicts itself, or who sent it.
    #[error("{from} contradicts itself")]
    Contradictory {
        /// The life that sent it.
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
        /// The life that sent it.
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
