//! An election and the membership it stands on, as one machine.
//!
//! Every host drives one machine to a node: the simulator, the agent and model checkers alike. This is
//! [`Medley`] below and [`ChurnTolerant`] above it; what the membership tells the application it tells the
//! election too, as its [`Feed`](churn_tolerant::Feed), before the host sees another effect.
//!
//! ```text
//! Message    --to the layer it is of
//! Timeout    --to both, the membership first: who has failed is known before anybody is elected
//! Feed       --to the membership
//! Command    --to the election
//! Leave      --to both, the election first
//! ```
//!
//! A message carries one byte more than its layer's, which says whose it is.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Duration, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     election::churn_tolerant::{self, Form, Variant},
//!     membership::medley::{self, Strategy},
//!     stack::Stack,
//! };
//!
//! let membership = medley::Config::new(Strategy::Both, medley::Form::Hardened);
//! let election = churn_tolerant::Config::new(Variant::Hybrid, Form::Hardened);
//! let me = Peer::new(NodeId::new(1), Boot::new(1));
//! let mut node = Stack::new(me, membership, election, Seed::new(1), None, vec![]);
//! let mut out = Outbox::new();
//! node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! node.handle(Time::ZERO + Duration::from_secs(10), Input::Timeout, &mut out).unwrap();
//! assert_eq!(node.leadership().leader, Some(me.id), "there is nobody else");
//! ```

use alloc::vec::Vec;

use crate::{
    election::churn_tolerant::{self, ChurnTolerant, Feed, Member, Multicast},
    id::{Incarnation, NodeId, Peer},
    leadership::{Election, Leadership},
    machine::{Effect, Input, InputOf, Machine, Outbox, OutboxOf, Rejected},
    membership::medley::{self, Contact, ContactChange, Medley, MembershipEvent},
    rng::Seed,
    time::Time,
    wire::{DecodeError, Reader, Sink, Wire},
};

/// What nodes say to each other, on either layer.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// Between memberships.
    Membership(medley::Message),
    /// Between elections.
    Election(churn_tolerant::Message),
}

/// What must survive a restart, of both layers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Durable {
    /// Of the membership.
    pub membership: Option<medley::Durable>,
    /// Of the election.
    pub election: Option<churn_tolerant::Durable>,
}

/// What the application should be told, by either layer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// By the membership.
    Membership(MembershipEvent),
    /// By the election.
    Election(churn_tolerant::Event),
}

/// Why it wants to be woken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// The membership wants to.
    Membership(medley::Timer),
    /// The election wants to.
    Election(churn_tolerant::Timer),
}

/// One node: a member that elects.
#[derive(Clone, Debug)]
pub struct Stack {
    me: Peer,
    membership: Medley,
    election: ChurnTolerant,
    durable: Durable,
    /// Our incarnation, as the election knows it.
    incarnation: Incarnation,
    // Kept for their buffers; empty between inputs.
    below: OutboxOf<Medley>,
    above: OutboxOf<ChurnTolerant>,
    news: Vec<MembershipEvent>,
}

impl Stack {
    /// A node that has not started yet, with the address book it starts with. `durable` is what its past
    /// life persisted last.
    pub fn new(
        me: Peer,
        membership: medley::Config,
        election: churn_tolerant::Config,
        seed: Seed,
        durable: Option<Durable>,
        contacts: Vec<Contact>,
    ) -> Self {
        let durable = durable.unwrap_or_default();
        let mut above = ChurnTolerant::new(me, election, seed.named("election"), durable.election);
        if election.multicast() == Multicast::Oracle {
            let group = contacts.iter().map(|contact| contact.id).collect();
            let told =
                above.handle(Time::ZERO, Input::Feed(Feed::Group(group)), &mut Outbox::new());
            debug_assert_eq!(told, Ok(()), "a feed is never refused");
        }
        Self {
            me,
            membership: Medley::new(me, membership, seed, durable.membership, contacts),
            election: above,
            durable,
            incarnation: Incarnation::default(),
            below: Outbox::new(),
            above: Outbox::new(),
            news: Vec::new(),
        }
    }

    /// The membership.
    pub const fn membership(&self) -> &Medley {
        &self.membership
    }

    /// The election.
    pub const fn election(&self) -> &ChurnTolerant {
        &self.election
    }

    fn start(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        self.membership.handle(now, Input::Start, &mut self.below)?;
        self.election.handle(now, Input::Start, &mut self.above)?;
        // Those listed from the start were never told of.
        let listed: Vec<NodeId> = self.membership.members().map(|member| member.id).collect();
        self.news.extend(listed.into_iter().map(MembershipEvent::Joined));
        self.drain(now, out);
        Ok(())
    }

    /// What the membership did, and what the election makes of it.
    fn drain(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        while let Some(effect) = self.below.pop() {
            match effect {
                Effect::Send { to, message } => out.send(to, Message::Membership(message)),
                Effect::Broadcast(message) => out.broadcast(Message::Membership(message)),
                Effect::Multicast(message) => out.multicast(Message::Membership(message)),
                Effect::Persist(durable) => {
                    self.durable.membership = Some(durable);
                    out.persist(self.durable);
                }
                Effect::Emit(event) => {
                    self.news.push(event);
                    out.emit(Event::Membership(event));
                }
            }
        }
        if self.membership.incarnation() != self.incarnation {
            self.incarnation = self.membership.incarnation();
            let incarnation = self.incarnation;
            self.feed(now, Feed::Up(Member { incarnation, ..Member::new(self.me) }));
        }
        let mut news = core::mem::take(&mut self.news);
        for event in news.drain(..) {
            if let Some(feed) = self.translate(event) {
                self.feed(now, feed);
            }
        }
        self.news = news;
        while let Some(effect) = self.above.pop() {
            match effect {
                Effect::Send { to, message } => out.send(to, Message::Election(message)),
                Effect::Broadcast(message) => out.broadcast(Message::Election(message)),
                Effect::Multicast(message) => out.multicast(Message::Election(message)),
                Effect::Persist(durable) => {
                    self.durable.election = Some(durable);
                    out.persist(self.durable);
                }
                Effect::Emit(event) => out.emit(Event::Election(event)),
            }
        }
    }

    fn feed(&mut self, now: Time, feed: Feed) {
        let told = self.election.handle(now, Input::Feed(feed), &mut self.above);
        debug_assert_eq!(told, Ok(()), "a feed is never refused");
    }

    /// What an event means to an election, by what is recorded now.
    fn translate(&self, event: MembershipEvent) -> Option<Feed> {
        let (MembershipEvent::Joined(id)
        | MembershipEvent::Suspected { id, .. }
        | MembershipEvent::Refuted(id)
        | MembershipEvent::Failed { id, .. }
        | MembershipEvent::Left(id)) = event;
        let (state, boot, incarnation) = self.membership.record_of(id)?;
        let peer = Peer::new(id, boot);
        if state.is_listed() {
            let unhealthiness = self.membership.member(id)?.suspicions;
            return Some(Feed::Up(Member { peer, incarnation, unhealthiness, attribute: 0 }));
        }
        Some(match event {
            MembershipEvent::Left(_) => Feed::Left(peer),
            _ => Feed::Failed { peer, incarnation },
        })
    }
}

impl Machine for Stack {
    type Message = Message;
    type Timer = Timer;
    type Feed = ContactChange;
    type Command = churn_tolerant::Command;
    type Durable = Durable;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => return self.start(now, out),
            Input::Message { from, via, message: Message::Membership(message) } => {
                let input = Input::Message { from, via, message };
                self.membership.handle(now, input, &mut self.below)?;
            }
            Input::Message { from, via, message: Message::Election(message) } => {
                let input = Input::Message { from, via, message };
                self.election.handle(now, input, &mut self.above)?;
            }
            Input::Timeout => {
                self.membership.handle(now, Input::Timeout, &mut self.below)?;
                self.drain(now, out);
                self.election.handle(now, Input::Timeout, &mut self.above)?;
            }
            Input::Feed(change) => {
                self.membership.handle(now, Input::Feed(change), &mut self.below)?;
            }
            Input::Command(command) => {
                self.election.handle(now, Input::Command(command), &mut self.above)?;
            }
            Input::Leave => {
                self.election.handle(now, Input::Leave, &mut self.above)?;
                self.membership.handle(now, Input::Leave, &mut self.below)?;
            }
        }
        self.drain(now, out);
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        let below = self.membership.deadline().map(|(at, timer)| (at, Timer::Membership(timer)));
        let above = self.election.deadline().map(|(at, timer)| (at, Timer::Election(timer)));
        match (below, above) {
            (Some(below), Some(above)) => Some(if above.0 < below.0 { above } else { below }),
            (below, above) => below.or(above),
        }
    }
}

impl Election for Stack {
    fn leadership(&self) -> Leadership {
        self.election.leadership()
    }
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::Membership(message) => {
                sink.u8(0);
                message.encode(sink);
            }
            Self::Election(message) => {
                sink.u8(1);
                message.encode(sink);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.kind("layer", 2)? {
            0 => Self::Membership(medley::Message::decode(reader)?),
            _ => Self::Election(churn_tolerant::Message::decode(reader)?),
        })
    }
}
