//! An election and the membership it stands on, as one machine.
//!
//! Every host drives one machine to a node: the simulator, the agent and model checkers alike. This is
//! [`Medley`] below and [`ChurnTolerant`] above it; what the membership tells the application it tells the
//! election too, as its [`Feed`], before the host sees another effect.
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
            return Some(Feed::Up(Member { incarnation, unhealthiness, ..Member::new(peer) }));
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

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use super::*;
    use crate::{
        election::churn_tolerant::{Form, Variant},
        id::Boot,
        membership::medley::{Body, Status, Strategy, Update},
        time::Duration,
    };

    fn peer(id: u64) -> Peer {
        Peer::new(NodeId::new(id), Boot::new(1))
    }

    /// Node 0 with three members on its list.
    fn started() -> Stack {
        let membership = medley::Config::new(Strategy::Both, medley::Form::Hardened);
        let election = churn_tolerant::Config::new(Variant::Base, Form::Hardened);
        let contact =
            |id| Contact { id: NodeId::new(id), distance: 1.0, neighbour: true, member: true };
        let contacts: Vec<Contact> = (1..4).map(contact).collect();
        let mut node = Stack::new(peer(0), membership, election, Seed::new(1), None, contacts);
        node.handle(Time::ZERO, Input::Start, &mut Outbox::new()).unwrap();
        node
    }

    #[test]
    fn what_the_membership_learns_the_election_knows_at_once() {
        let mut node = started();
        assert_eq!(node.election().listed(), 4, "those listed from the start");
        let news = |subject, incarnation, status| {
            let update = Update { subject, incarnation: Incarnation::new(incarnation), status };
            Message::Membership(medley::Message {
                sequence: 1,
                incarnation: Incarnation::default(),
                body: Body::ReportAlive,
                updates: vec![update],
                introductions: vec![],
            })
        };
        let by = NodeId::new(2);
        for (message, listed) in [
            (news(peer(7), 0, Status::Join), 5),
            (news(peer(3), 0, Status::Failed { by }), 4),
            (news(peer(3), 1, Status::Alive), 5),
            (news(peer(7), 0, Status::Left), 4),
        ] {
            let from = peer(1);
            let input = Input::Message { from, via: from.id, message: &message };
            node.handle(Time::ZERO, input, &mut Outbox::new()).unwrap();
            assert_eq!(node.election().listed(), listed, "{message:?}");
            assert_eq!(node.membership().len() + 1, listed);
        }
    }

    #[test]
    fn each_layer_keeps_its_own_durable_state_when_the_other_persists() {
        let mut node = started();
        let mut out = Outbox::new();
        let persisted = |out: &mut OutboxOf<Stack>| {
            let mut last = None;
            while let Some(effect) = out.pop() {
                if let Effect::Persist(durable) = effect {
                    last = Some(durable);
                }
            }
            last
        };
        let elect = Input::Command(churn_tolerant::Command::Elect);
        node.handle(Time::ZERO, elect, &mut out).unwrap();
        let term = persisted(&mut out).and_then(|durable| durable.election).unwrap();
        let status = Status::Suspect { by: NodeId::new(2) };
        let slander = Update { subject: peer(0), incarnation: Incarnation::default(), status };
        let message = Message::Membership(medley::Message {
            sequence: 1,
            incarnation: Incarnation::default(),
            body: Body::ReportAlive,
            updates: vec![slander],
            introductions: vec![],
        });
        let from = peer(1);
        let input = Input::Message { from, via: from.id, message: &message };
        node.handle(Time::ZERO, input, &mut out).unwrap();
        let both = persisted(&mut out).expect("it contradicts, durably");
        assert_eq!((both.membership.is_some(), both.election), (true, Some(term)));
    }

    #[test]
    fn nothing_is_due_after_a_timeout_and_messages_survive_the_wire() {
        let mut node = started();
        let mut out = Outbox::new();
        let mut layers = [0, 0];
        for _ in 0..300 {
            let (due, _) = node.deadline().unwrap();
            node.handle(due, Input::Timeout, &mut out).unwrap();
            assert!(node.deadline().is_none_or(|(next, _)| next > due));
            while let Some(effect) = out.pop() {
                let Effect::Send { message, .. } = effect else { continue };
                layers[usize::from(matches!(message, Message::Election(_)))] += 1;
                let mut bytes = Vec::new();
                message.encode(&mut bytes);
                let mut reader = Reader::new(&bytes);
                assert_eq!(Message::decode(&mut reader), Ok(message));
                assert_eq!(reader.finish(), Ok(()));
            }
        }
        assert!(layers[0] > 0 && layers[1] > 0, "{layers:?}");
        let end = node.deadline().unwrap().0;
        node.handle(end, Input::Leave, &mut out).unwrap();
        node.handle(end + Duration::from_secs(60), Input::Timeout, &mut out).unwrap();
        assert_eq!(node.deadline(), None, "it has left");
    }
}
