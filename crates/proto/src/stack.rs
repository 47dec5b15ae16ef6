//! Elections and the membership they stand on, as one machine.
//!
//! Every host drives one machine to a node: the simulator, the agent and model checkers alike. This is
//! [`Medley`] below and any number of named [`ChurnTolerant`] elections above it; what the membership tells the
//! application it tells the elections too, as their [`Feed`], before the host sees another effect.
//!
//! ```text
//! Message    --to the layer, and the election, it is of
//! Timeout    --to all, the membership first: who has failed is known before anybody is elected
//! Feed       --to the membership
//! Command    --to the election it names
//! Leave      --to all, the elections first
//! ```
//!
//! Asked to, it keeps `c` current by itself: a [`Survey`] compares lists, listens to what elections report and who
//! objects, and what comes of it the elections are told.
//!
//! A message carries one byte more than its layer's, which says whose it is, and an election's four more.
//!
//! Who may lead what, and what it is worth there, each node says in a [`Profile`], which travels with its
//! introduction. Of whoever has not introduced itself yet, nothing is known but that it is there: it is asked and
//! told, and never elected. Where nobody introduces itself, as in most simulations, all stand for everything.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Duration, Election, ElectionId, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     election::churn_tolerant::{self, Form, Variant},
//!     membership::medley::{self, Strategy},
//!     stack::Stack,
//! };
//!
//! let membership = medley::Config::new(Strategy::Both, medley::Form::Hardened);
//! let election = churn_tolerant::Config::new(Variant::Hybrid, Form::Hardened);
//! let me = Peer::new(NodeId::new(1), Boot::new(1));
//! let elections = [(ElectionId::named("backup"), election), (ElectionId::named("gateway"), election)];
//! let mut node = Stack::new(me, membership, &elections, Seed::new(1), None, vec![]);
//! let mut out = Outbox::new();
//! node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! node.handle(Time::ZERO + Duration::from_secs(10), Input::Timeout, &mut out).unwrap();
//! let backup = node.election(ElectionId::named("backup")).unwrap();
//! assert_eq!(backup.leadership().leader, Some(me.id), "there is nobody else");
//! ```

use alloc::vec::Vec;

pub use crate::id::ElectionId as Group;
use crate::{
    churn::{
        estimate::{self, ChurnEstimate},
        feedback::Report,
        survey::{self, Survey},
    },
    election::churn_tolerant::{self, ChurnTolerant, Feed, Member, Multicast},
    id::{ElectionId, Incarnation, NodeId, Peer},
    leadership::{Election, Leadership},
    machine::{Effect, Input, InputOf, Machine, Outbox, OutboxOf, Rejected},
    membership::medley::{
        self, Contact, ContactChange, Details, DetailsTooLong, Medley, MembershipEvent,
    },
    rng::Seed,
    time::{Duration, Time},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// How a node takes part in an election.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Standing {
    /// Whether it never leads.
    pub observer: bool,
    /// What it is worth; larger is better, if the criterion asks.
    pub attribute: u32,
}

/// What a node tells all others of itself, in the [`Details`] of its introduction.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Profile {
    /// The elections it takes part in.
    pub standings: Vec<(ElectionId, Standing)>,
    /// What the host has to say.
    pub rest: Vec<u8>,
}

impl Profile {
    /// As it is passed on.
    ///
    /// # Errors
    ///
    /// [`DetailsTooLong`].
    pub fn to_details(&self) -> Result<Details, DetailsTooLong> {
        let mut bytes = Vec::new();
        bytes.varint(self.standings.len() as u64);
        for &(group, standing) in &self.standings {
            bytes.u32(group.number());
            bytes.varint(u64::from(standing.attribute) << 1 | u64::from(standing.observer));
        }
        bytes.bytes(&self.rest);
        Details::new(&bytes)
    }

    /// As it was passed on.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if these are no such details.
    pub fn from_details(details: &Details) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(details.as_bytes());
        Ok(Self { standings: standings(&mut reader)?, rest: reader.rest().to_vec() })
    }
}

fn standings(reader: &mut Reader<'_>) -> Result<Vec<(ElectionId, Standing)>, DecodeError> {
    let count = reader.count("elections", 4 + 1)?;
    let mut standings = Vec::with_capacity(count);
    for _ in 0..count {
        let group = ElectionId::from_number(reader.u32("election")?);
        let worth = reader.varint("standing")?;
        let attribute = u32::try_from(worth >> 1).unwrap_or(u32::MAX);
        standings.push((group, Standing { observer: worth & 1 == 1, attribute }));
    }
    Ok(standings)
}

/// What nodes say to each other, on either layer.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// What memberships say to each other.
    Membership(medley::Message),
    /// Between the nodes of one election.
    Election(ElectionId, churn_tolerant::Message),
    /// What is said about `c`.
    Churn(survey::Message),
}

impl Message {
    /// Whether its sender has heard us.
    pub const fn answers(&self) -> bool {
        match self {
            Self::Membership(message) => matches!(
                message.body,
                // On whose behalf it was asked makes no difference: it was we who asked it.
                medley::Body::Ack { .. }
                    | medley::Body::IndirectAck { .. }
                    | medley::Body::JoinAck { .. }
                    | medley::Body::SyncAck { .. }
            ),
            Self::Election(_, message) => {
                matches!(message, churn_tolerant::Message::Response(_))
            }
            Self::Churn(_) => false,
        }
    }

    /// Whether the receiver answers, if it has nothing against the sender.
    pub const fn awaits_answer(&self) -> bool {
        match self {
            Self::Membership(message) => matches!(
                message.body,
                medley::Body::Ping { .. } | medley::Body::Join { .. } | medley::Body::Sync { .. }
            ),
            Self::Election(_, message) => matches!(message, churn_tolerant::Message::Query(_)),
            Self::Churn(_) => false,
        }
    }
}

/// What must survive a restart, of all layers.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Durable {
    /// Of the membership.
    pub membership: Option<medley::Durable>,
    /// Of the elections.
    pub elections: Vec<(ElectionId, churn_tolerant::Durable)>,
}

/// What the application should be told, by either layer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// By the membership.
    Membership(MembershipEvent),
    /// By an election.
    Election(ElectionId, churn_tolerant::Event),
}

/// Why it wants to be woken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// The membership wants to.
    Membership(medley::Timer),
    /// An election wants to.
    Election(ElectionId, churn_tolerant::Timer),
    /// It is time to see about `c`.
    Survey,
}

/// What the application may ask of an election.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Command {
    /// The election that is asked.
    pub group: ElectionId,
    /// What is asked of it.
    pub command: churn_tolerant::Command,
}

/// One node: a member that elects.
#[derive(Clone, Debug)]
pub struct Stack {
    me: Peer,
    membership: Medley,
    elections: Vec<(ElectionId, ChurnTolerant)>,
    survey: Option<Survey>,
    /// Whether it has left.
    left: bool,
    /// Who is to notice at once if we fail, and whether that may have changed.
    watchers: (Vec<NodeId>, bool),
    /// `c` and the leader of the first election, as the elections and the survey know them.
    told: (Option<u32>, Option<NodeId>),
    durable: Durable,
    /// Our incarnation, as the elections know it.
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
        elections: &[(ElectionId, churn_tolerant::Config)],
        seed: Seed,
        durable: Option<Durable>,
        contacts: Vec<Contact>,
    ) -> Self {
        let durable = durable.unwrap_or_default();
        let group: Vec<NodeId> = contacts.iter().map(|contact| contact.id).collect();
        let make = |&(name, config): &(ElectionId, churn_tolerant::Config)| {
            let past = durable.elections.iter().find(|(other, _)| *other == name);
            let past = past.map(|&(_, durable)| durable);
            let seed = seed.named("election").indexed(u64::from(name.number()));
            let mut election = ChurnTolerant::new(me, config, seed, past);
            if config.multicast() == Multicast::Oracle {
                let feed = Input::Feed(Feed::Group(group.clone()));
                let told = election.handle(Time::ZERO, feed, &mut Outbox::new());
                debug_assert_eq!(told, Ok(()), "a feed is never refused");
            }
            (name, election)
        };
        Self {
            me,
            elections: elections.iter().map(make).collect(),
            membership: Medley::new(me, membership, seed, durable.membership, contacts),
            survey: None,
            left: false,
            watchers: (Vec::new(), false),
            told: (None, None),
            durable,
            incarnation: Incarnation::default(),
            below: Outbox::new(),
            above: Outbox::new(),
            news: Vec::new(),
        }
    }

    /// The same, with this to say of itself from the start.
    pub fn with_introduction(mut self, addresses: medley::Addresses, details: Details) -> Self {
        self.membership = self.membership.with_introduction(addresses, details);
        self
    }

    /// The same, having heard these introduce themselves before.
    pub fn knowing(mut self, others: impl IntoIterator<Item = medley::Introduction>) -> Self {
        self.membership = self.membership.knowing(others);
        self
    }

    /// The same, keeping `c` current by itself; answers are waited for as long as `timeout`.
    pub fn with_survey(
        mut self,
        config: estimate::Config,
        timeout: Duration,
        seed: Seed,
        now: Time,
    ) -> Self {
        self.begin_survey(config, timeout, seed, now);
        self
    }

    /// From now on keeps `c` current by itself.
    pub(crate) fn begin_survey(
        &mut self,
        config: estimate::Config,
        timeout: Duration,
        seed: Seed,
        now: Time,
    ) {
        let rng = seed.named("survey").rng();
        self.survey = Some(Survey::new(self.me.id, config, timeout, rng, now));
    }

    /// What is known of `c`, if it is kept current.
    pub fn churn(&self, now: Time) -> Option<ChurnEstimate> {
        self.survey.as_ref().map(|survey| survey.estimate(now, self.membership.len()))
    }

    /// The membership that the elections stand on.
    pub const fn membership(&self) -> &Medley {
        &self.membership
    }

    /// The election of this name, if it takes part.
    pub fn election(&self, group: ElectionId) -> Option<&ChurnTolerant> {
        self.elections.iter().find(|(name, _)| *name == group).map(|(_, election)| election)
    }

    /// All elections it takes part in.
    pub fn elections(&self) -> impl Iterator<Item = (ElectionId, &ChurnTolerant)> {
        self.elections.iter().map(|(group, election)| (*group, election))
    }

    fn start(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        self.membership.handle(now, Input::Start, &mut self.below)?;
        for at in 0..self.elections.len() {
            self.elections[at].1.handle(now, Input::Start, &mut self.above)?;
            self.drain_election(now, at, out);
        }
        // Those listed from the start were never told of.
        let listed: Vec<NodeId> = self.membership.members().map(|member| member.id).collect();
        self.news.extend(listed.into_iter().map(MembershipEvent::Joined));
        self.drain(now, out);
        self.feed_ourselves(now, out);
        Ok(())
    }

    /// What the membership did, and what the elections make of it.
    fn drain(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        while let Some(effect) = self.below.pop() {
            match effect {
                Effect::Send { to, message } => out.send(to, Message::Membership(message)),
                Effect::Broadcast(message) => out.broadcast(Message::Membership(message)),
                Effect::Multicast(message) => out.multicast(Message::Membership(message)),
                Effect::Persist(durable) => {
                    self.durable.membership = Some(durable);
                    out.persist(self.durable.clone());
                }
                Effect::Emit(event) => {
                    self.news.push(event);
                    out.emit(Event::Membership(event));
                }
            }
        }
        if self.membership.incarnation() != self.incarnation {
            self.incarnation = self.membership.incarnation();
            self.feed_ourselves(now, out);
        }
        let mut news = core::mem::take(&mut self.news);
        self.watchers.1 |= !news.is_empty();
        for event in news.drain(..) {
            self.tell(now, event, out);
        }
        self.news = news;
    }

    /// Where we lead, those who would succeed us watch us.
    fn appoint_watchers(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let stale = core::mem::take(&mut self.watchers.1);
        if !stale || self.membership.config().beat().is_none() {
            return;
        }
        let mut watchers = Vec::new();
        for (_, election) in &self.elections {
            if !self.left && election.leadership().leader == Some(self.me.id) {
                watchers.extend(election.heirs(WATCHERS));
            }
        }
        watchers.sort_unstable();
        watchers.dedup();
        if watchers != self.watchers.0 {
            self.watchers.0.clone_from(&watchers);
            let feed = Input::Feed(ContactChange::Watchers(watchers));
            let told = self.membership.handle(now, feed, &mut self.below);
            debug_assert_eq!(told, Ok(()), "a feed is never refused");
            self.drain(now, out);
        }
    }

    /// What one election did.
    fn drain_election(&mut self, now: Time, at: usize, out: &mut OutboxOf<Self>) {
        let group = self.elections[at].0;
        let mut seen = Vec::new();
        while let Some(effect) = self.above.pop() {
            self.watchers.1 = true;
            match effect {
                Effect::Send { to, message } => out.send(to, Message::Election(group, message)),
                Effect::Broadcast(message) => out.broadcast(Message::Election(group, message)),
                Effect::Multicast(message) => out.multicast(Message::Election(group, message)),
                Effect::Persist(durable) => {
                    match self.durable.elections.iter_mut().find(|(other, _)| *other == group) {
                        Some((_, old)) => *old = durable,
                        None => self.durable.elections.push((group, durable)),
                    }
                    out.persist(self.durable.clone());
                }
                Effect::Emit(event) => {
                    out.emit(Event::Election(group, event));
                    if self.survey.is_some() {
                        seen.push(event);
                    }
                }
            }
        }
        for event in seen {
            self.surveyed(now, event, out);
        }
    }

    /// What the survey has to say, and what elections have to know of it.
    fn survey(
        &mut self,
        now: Time,
        out: &mut OutboxOf<Self>,
        act: impl FnOnce(&mut Survey, survey::Listed<'_>, &mut Vec<survey::Send>),
    ) {
        let Some(survey) = &mut self.survey else { return };
        let listed: Vec<NodeId> = self.membership.members().map(|member| member.id).collect();
        let mut said = Vec::new();
        act(survey, &listed, &mut said);
        for (to, message) in said {
            match to {
                Some(to) => out.send(to, Message::Churn(message)),
                None => listed.iter().for_each(|&to| out.send(to, Message::Churn(message.clone()))),
            }
        }
        let known = survey.estimate(now, listed.len());
        // What is only assumed is for the configuration to say.
        let c = (known.method != estimate::Method::Assumed).then_some(known.c);
        if let Some(c) = c.filter(|_| c != self.told.0) {
            self.told.0 = Some(c);
            let c = u16::try_from(c).unwrap_or(u16::MAX);
            (0..self.elections.len()).for_each(|at| self.feed(now, at, Feed::Churn(c), out));
        }
    }

    /// Elections tell the survey what they saw.
    fn surveyed(&mut self, now: Time, event: churn_tolerant::Event, out: &mut OutboxOf<Self>) {
        let others = self.membership.len();
        match event {
            churn_tolerant::Event::Decided { leader, missing, answers } => {
                let report = Report { missing, responses: answers };
                self.survey(now, out, |survey, _, said| {
                    survey.on_election(now, leader, report, others, said);
                });
            }
            churn_tolerant::Event::Objected { churn, .. } => {
                let before = churn.saturating_sub(1);
                self.survey(now, out, |survey, _, said| {
                    survey.on_objection(now, before, others, said);
                });
            }
            _ => {}
        }
    }

    fn feed(&mut self, now: Time, at: usize, feed: Feed, out: &mut OutboxOf<Self>) {
        let told = self.elections[at].1.handle(now, Input::Feed(feed), &mut self.above);
        debug_assert_eq!(told, Ok(()), "a feed is never refused");
        self.drain_election(now, at, out);
    }

    fn feed_ourselves(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let standings = self.standings_of(self.me.id);
        for at in 0..self.elections.len() {
            let Standing { observer, attribute } = standings.of(self.elections[at].0);
            let incarnation = self.membership.incarnation();
            let ourselves = Member { incarnation, observer, attribute, ..Member::new(self.me) };
            self.feed(now, at, Feed::Up(ourselves), out);
        }
    }

    /// Tells the elections of an event, by what is recorded now.
    fn tell(&mut self, now: Time, event: MembershipEvent, out: &mut OutboxOf<Self>) {
        let id = event.id();
        let Some((state, boot, incarnation)) = self.membership.record_of(id) else { return };
        let peer = Peer::new(id, boot);
        let member = self.membership.member(id).filter(|_| state.is_listed());
        let Some(member) = member else {
            let gone = match event {
                MembershipEvent::Left(_) => Feed::Left(peer),
                _ => Feed::Failed { peer, incarnation },
            };
            (0..self.elections.len()).for_each(|at| self.feed(now, at, gone.clone(), out));
            return;
        };
        let standings = self.standings_of(id);
        for at in 0..self.elections.len() {
            let Standing { observer, attribute } = standings.of(self.elections[at].0);
            let unhealthiness = member.suspicions;
            let up = Member { peer, incarnation, unhealthiness, attribute, observer };
            self.feed(now, at, Feed::Up(up), out);
        }
    }

    fn standings_of(&self, id: NodeId) -> Standings {
        let details = |id| self.membership.introduction_of(id).map(|known| known.details);
        match details(id).filter(|details| !details.is_empty()) {
            Some(details) => Standings::Known(
                standings(&mut Reader::new(details.as_bytes())).unwrap_or_default(),
            ),
            None if details(self.me.id).is_none_or(|ours| ours.is_empty()) => Standings::All,
            None => Standings::Known(Vec::new()),
        }
    }
}

/// Where somebody stands.
enum Standings {
    /// Nobody introduces itself here: everywhere.
    All,
    Known(Vec<(ElectionId, Standing)>),
}

impl Standings {
    fn of(&self, group: ElectionId) -> Standing {
        match self {
            Self::All => Standing::default(),
            Self::Known(known) => known
                .iter()
                .find(|(name, _)| *name == group)
                .map_or(Standing { observer: true, attribute: 0 }, |&(_, standing)| standing),
        }
    }
}

impl Machine for Stack {
    type Message = Message;
    type Timer = Timer;
    type Feed = ContactChange;
    type Command = Command;
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
            Input::Message { from, via, message: Message::Election(group, message) } => {
                let at = self.position(*group)?;
                let input = Input::Message { from, via, message };
                self.elections[at].1.handle(now, input, &mut self.above)?;
                self.drain_election(now, at, out);
            }
            Input::Message { from, message: Message::Churn(message), .. } => {
                if self.survey.is_none() {
                    return Err(Rejected::Unsolicited { from });
                }
                self.survey(now, out, |survey, listed, said| {
                    survey.on_message(now, from.id, message, listed, said);
                });
            }
            Input::Timeout => {
                self.membership.handle(now, Input::Timeout, &mut self.below)?;
                self.drain(now, out);
                self.look_around(now, out);
                for at in 0..self.elections.len() {
                    self.elections[at].1.handle(now, Input::Timeout, &mut self.above)?;
                    self.drain_election(now, at, out);
                }
            }
            Input::Feed(change) => {
                let ours = matches!(change, ContactChange::Ours { .. });
                self.membership.handle(now, Input::Feed(change), &mut self.below)?;
                self.drain(now, out);
                if ours {
                    self.feed_ourselves(now, out);
                }
            }
            Input::Command(Command { group, command }) => {
                let at = self.position(group)?;
                self.elections[at].1.handle(now, Input::Command(command), &mut self.above)?;
                self.drain_election(now, at, out);
                self.watchers.1 = true;
            }
            Input::Leave => {
                self.left = true;
                self.watchers.1 = true;
                for at in 0..self.elections.len() {
                    self.elections[at].1.handle(now, Input::Leave, &mut self.above)?;
                    self.drain_election(now, at, out);
                }
                self.membership.handle(now, Input::Leave, &mut self.below)?;
            }
        }
        self.drain(now, out);
        self.appoint_watchers(now, out);
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        let below = self.membership.deadline().map(|(at, timer)| (at, Timer::Membership(timer)));
        let above = self.elections.iter().filter_map(|(group, election)| {
            election.deadline().map(|(at, timer)| (at, Timer::Election(*group, timer)))
        });
        let survey = self.survey.as_ref().map(|survey| (survey.deadline(), Timer::Survey));
        below
            .into_iter()
            .chain(above)
            .chain(survey.filter(|_| !self.left))
            .min_by_key(|(at, _)| *at)
    }
}

impl Stack {
    /// Lets the survey do what is due.
    fn look_around(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.left || self.survey.as_ref().is_none_or(|survey| survey.deadline() > now) {
            return;
        }
        let leader = self.leadership().leader;
        let changed = core::mem::replace(&mut self.told.1, leader) != leader;
        let leads = leader == Some(self.me.id);
        self.survey(now, out, |survey, listed, said| {
            if changed {
                survey.on_leader_changed();
            }
            survey.on_timeout(now, leads, listed, said);
        });
    }

    fn position(&self, group: ElectionId) -> Result<usize, Rejected> {
        let at = self.elections.iter().position(|(name, _)| *name == group);
        at.ok_or(Rejected::NoSuchElection { election: group })
    }
}

/// If one of them fails together with the leader, or has a bad link to it, there is the other.
const WATCHERS: usize = 2;

/// Of the first election.
impl Election for Stack {
    fn leadership(&self) -> Leadership {
        self.elections.first().map_or(
            Leadership::unknown(crate::Mode::Eventual, crate::Why::NotRunning),
            |(_, election)| election.leadership(),
        )
    }
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::Membership(message) => {
                sink.u8(0);
                message.encode(sink);
            }
            Self::Election(group, message) => {
                sink.u8(1);
                sink.u32(group.number());
                message.encode(sink);
            }
            Self::Churn(message) => {
                sink.u8(2);
                message.encode(sink);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.kind("layer", 3)? {
            0 => Self::Membership(medley::Message::decode(reader)?),
            1 => {
                let group = ElectionId::from_number(reader.u32("election")?);
                Self::Election(group, churn_tolerant::Message::decode(reader)?)
            }
            _ => Self::Churn(survey::Message::decode(reader)?),
        })
    }
}

#[cfg(test)]
mod tests;
