//! The node between its machine and the world: inputs in, datagrams and answers out, and no socket.
//!
//! Whoever answers a hello at a seed's address is handed to the membership as *found*, which asks it for its list.
//! Seeds are tried for life, so that groups that formed apart meet.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
};

use bellwether_proto::{
    Duration, Election as _, Epoch, Input, Leadership, Machine as _, Mode, NodeId, Peer, Seed,
    Time, Why,
    churn::estimate,
    election::{
        announce::{self, Announce},
        churn_tolerant,
    },
    machine::{Effect, InputOf, Outbox, OutboxOf},
    membership::medley::{
        self, Addresses, ContactChange, Details, DetailsTooLong, MembershipEvent, Reach as Way,
        State,
    },
    stack::{Command, Event as StackEvent, Group, Message, Stack, Standing},
    wire::{Reader, Wire as _},
};

pub(crate) use self::learned::Electorate;
use self::{
    announced::Announced,
    beside::{Aside, Channel},
    central::Central,
    learned::Learned,
    worth::Worth,
};
use crate::{
    clock,
    config::OnIsolation,
    handle::{Inbox, Refused, Request},
    neighbours::Neighbour,
    profile::About,
    status::{
        Agreement, Counters, Differing, ElectionStatus, Event, EventKind, Identity, KeyStatus,
        LeaderStatus, MemberState, MemberStatus, Position, Reach, Role, Status, Verdict,
    },
    store::Store,
    terms,
};

mod announced;
mod asked;
mod beside;
mod central;
mod learned;
pub(crate) mod leased;
mod near;
mod report;
mod worth;

/// What a node is made of.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) about: About,
    pub(crate) cluster: String,
    pub(crate) advertise: Vec<SocketAddr>,
    pub(crate) membership: medley::Config,
    pub(crate) elections: Vec<Seat>,
    pub(crate) survey: estimate::Config,
    /// For answers.
    pub(crate) timeout: Duration,
    /// Between two tries of a seed that nobody listed answers at.
    pub(crate) retry: Duration,
    /// Between two samples of what this node is worth.
    pub(crate) sample: Duration,
}

impl Settings {
    /// What this node tells all others of itself.
    pub(crate) fn introduction(&self) -> Result<(Addresses, Details), DetailsTooLong> {
        let stands = self.elections.iter();
        let stands = stands.map(|seat| (Group::named(&seat.name), seat.stands())).collect();
        let details = self.about.to_details(stands)?;
        Ok((Addresses::new(self.advertise.iter().copied()), details))
    }
}

/// One election this node takes part in.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) standing: Standing,
    pub(crate) on_isolation: OnIsolation,
    /// Whether hooks forbid it to lead.
    pub(crate) dirty: bool,
    /// Whether what it is worth is learnt.
    pub(crate) learns: bool,
}

/// How it is decided.
#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    Eventual(churn_tolerant::Config),
    Announced(announce::Config),
    Learned(Electorate),
    Leased(leased::Config),
    Central(bellwether_proto::election::central::Config),
}

impl Protocol {
    pub(crate) fn mode(&self) -> Mode {
        match self {
            Self::Eventual(_) => Mode::Eventual,
            Self::Announced(_) => Mode::Announced,
            Self::Learned(_) => Mode::Learned,
            Self::Leased(_) => Mode::Leased,
            Self::Central(_) => Mode::Central,
        }
    }
}

impl Seat {
    /// As others are told.
    fn stands(&self) -> Standing {
        Standing { observer: self.standing.observer || self.dirty, ..self.standing }
    }
}

/// What the transport is to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outgoing {
    /// Ask who is there.
    Hello(SocketAddr),
    /// Take it that this life is there, at these addresses.
    Learn(Peer, Vec<SocketAddr>),
    /// Send this to a member.
    Message(NodeId, Vec<u8>),
    /// Send this to everybody.
    Group(Vec<u8>),
}

/// The node.
#[derive(Debug)]
pub(crate) struct Core {
    me: Peer,
    settings: Settings,
    stack: Stack,
    out: OutboxOf<Stack>,
    beside: Vec<Aside>,
    /// What this node is worth, where that is learnt.
    worth: Option<Worth>,
    store: Store,
    started: Time,
    running: bool,
    records: BTreeMap<NodeId, Record>,
    tallies: Vec<Tally>,
    seeds: Vec<Place>,
    /// Since when nobody else is listed, if somebody was.
    alone: Option<Time>,
    met: bool,
    rng: bellwether_proto::Rng,
    pub(crate) outgoing: Vec<Outgoing>,
    /// Whether somebody's position has changed since the membership was told distances.
    moved: bool,
    /// Who is in range, as routing daemons say: for each election.
    in_range: BTreeMap<Group, Vec<Neighbour>>,
    /// Whether those beside the stack have yet to hear who is alive.
    listed_changed: bool,
    /// What the machine refused, by reason.
    refused: BTreeMap<&'static str, u64>,
    /// Accusations of members that we heard of, and of ourselves that we contradicted.
    accusations: u64,
    refuted: u64,
}

/// What happened to a member.
#[derive(Debug)]
struct Record {
    name: String,
    position: Option<Position>,
    /// How far the membership was told it is, and whether it is a neighbour.
    told: Option<(f32, bool)>,
    state: MemberState,
    since: Time,
    /// When a message of its own reached us last.
    heard: Option<Time>,
    verdicts: VecDeque<(Time, EventKind, Option<NodeId>)>,
}

/// What an election has answered so far, and what others say.
#[derive(Debug)]
struct Tally {
    group: Group,
    answer: Leadership,
    since: Time,
    changes: u64,
    leaderless: Duration,
    /// Since when nobody is known to lead.
    leaderless_since: Option<Time>,
    beliefs: BTreeMap<NodeId, (NodeId, Epoch)>,
    /// Who has set it otherwise, and what.
    differing: BTreeMap<NodeId, Vec<&'static str>>,
    /// Where it stands on the membership.
    sent: Sent,
}

/// How much an election has said.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Sent {
    all: u64,
    /// What elects, rather than keeps a leader in office and says who it is.
    electing: u64,
}

impl Sent {
    fn count(&mut self, receivers: usize, elects: bool) {
        self.all += receivers as u64;
        self.electing += if elects { receivers as u64 } else { 0 };
    }
}

/// An address to try.
#[derive(Debug)]
struct Place {
    address: SocketAddr,
    next: Time,
    /// Who answered there last.
    found: Option<NodeId>,
}

/// What it costs to have been accused and to have contradicted. Arbitrary.
const ACCUSED: f64 = 0.5;
/// Verdicts kept of a member.
const VERDICTS: usize = 16;

impl Core {
    /// A node that has not started yet. All its randomness comes from `seed`.
    pub(crate) fn new(
        settings: Settings,
        mut store: Store,
        seeds: Vec<SocketAddr>,
        now: Time,
        seed: Seed,
    ) -> Self {
        let me = store.me();
        let (mut groups, mut beside) = (Vec::new(), Vec::new());
        for seat in &settings.elections {
            let group = Group::named(&seat.name);
            match &seat.protocol {
                Protocol::Eventual(config) => groups.push((group, *config)),
                Protocol::Announced(config) => {
                    let seed = seed.named("announced").indexed(u64::from(group.number()));
                    let machine = Announce::new(me, *config, seed, store.announced(group));
                    beside.push(Aside { group, machine: Box::new(Announced::new(machine)) });
                }
                Protocol::Learned(electorate) => {
                    let seed = seed.named("learned").indexed(u64::from(group.number()));
                    let (name, electorate) = (&settings.about.name, electorate.clone());
                    let machine = Learned::new(me, name, group, electorate, &store, now, seed);
                    beside.push(Aside { group, machine: Box::new(machine) });
                }
                Protocol::Leased(config) => {
                    let seed = seed.named("leased").indexed(u64::from(group.number()));
                    let durable = store.leased(group);
                    let seat = leased::Leased::new(me, config.clone(), seed, durable, now);
                    beside.push(Aside { group, machine: Box::new(seat) });
                }
                Protocol::Central(config) => {
                    let seed = seed.named("central").indexed(u64::from(group.number()));
                    let machine = Central::new(me, *config, seed);
                    beside.push(Aside { group, machine: Box::new(machine) });
                }
            }
        }
        let stack = Stack::new(me, settings.membership, &groups, seed, store.durable(), vec![])
            .with_survey(settings.survey, settings.timeout, seed, now);
        let tally = |seat: &Seat| Tally {
            group: Group::named(&seat.name),
            answer: Leadership::unknown(seat.protocol.mode(), Why::NotRunning),
            since: now,
            changes: 0,
            leaderless: Duration::ZERO,
            leaderless_since: Some(now),
            beliefs: BTreeMap::new(),
            differing: BTreeMap::new(),
            sent: Sent::default(),
        };
        let seeds = seeds.into_iter().map(|address| Place { address, next: now, found: None });
        let learns = settings.elections.iter().any(|seat| seat.learns);
        let worth = learns.then(|| Worth::begin(settings.sample, now, &mut store));
        let mut core = Self {
            me,
            tallies: settings.elections.iter().map(tally).collect(),
            stack,
            out: Outbox::new(),
            beside,
            store,
            started: now,
            running: false,
            records: BTreeMap::new(),
            seeds: seeds.collect(),
            alone: None,
            met: false,
            rng: seed.named("host").rng(),
            outgoing: Vec::new(),
            moved: false,
            in_range: BTreeMap::new(),
            listed_changed: true,
            refused: BTreeMap::new(),
            accusations: 0,
            refuted: 0,
            worth,
            settings,
        };
        core.take_worth();
        core
    }

    #[cfg(test)]
    fn me(&self) -> Peer {
        self.me
    }

    pub(crate) fn start(&mut self, now: Time, inbox: &Inbox) {
        self.running = true;
        self.observe(now);
        self.each_aside(now, |machine, road| machine.start(road));
        self.input(now, Input::Start, inbox);
        self.introduce(now, inbox);
        self.knock(now);
    }

    /// Tells the membership what to say of us.
    fn introduce(&mut self, now: Time, inbox: &Inbox) {
        self.listed_changed = true;
        // Whoever set it has seen to it that it fits.
        if let Ok((addresses, details)) = self.settings.introduction() {
            self.input(now, Input::Feed(ContactChange::Ours { addresses, details }), inbox);
        }
    }

    /// When it wants to be woken.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let seed = self.seeds.iter().map(|seed| seed.next).min();
        let isolated = self.settings.elections.iter().zip(&self.tallies);
        let isolated = isolated.filter_map(|(seat, tally)| {
            let OnIsolation::HoldFor(span) = seat.on_isolation else { return None };
            tally.answer.leader.and(self.alone).map(|since| since + span)
        });
        let beside = self.beside.iter().filter_map(|one| one.machine.deadline());
        let stack = self.stack.deadline().map(|(at, _)| at);
        let worth = self.worth.as_ref().filter(|_| self.running).map(Worth::next);
        stack.into_iter().chain(beside).chain(seed).chain(isolated).chain(worth).min()
    }

    pub(crate) fn on_deadline(&mut self, now: Time, inbox: &Inbox) {
        if self.stack.deadline().is_some_and(|(at, _)| at <= now) {
            self.input(now, Input::Timeout, inbox);
        }
        self.asides_due(now);
        self.weigh(now, inbox);
        self.look(now, inbox);
        self.knock(now);
    }

    /// Says hello where nobody listed is known to be.
    fn knock(&mut self, now: Time) {
        let retry = self.settings.retry;
        for at in 0..self.seeds.len() {
            if self.seeds[at].next > now {
                continue;
            }
            self.seeds[at].next = now + retry + self.rng.up_to(retry.div(4));
            let Place { address, found, .. } = self.seeds[at];
            let listed = found
                .is_some_and(|id| id == self.me.id || self.stack.membership().member(id).is_some());
            if !listed {
                self.outgoing.push(Outgoing::Hello(address));
            }
        }
    }

    /// The process was stopped for longer than anybody may lead unseen.
    pub(crate) fn on_stall(&mut self, now: Time, lasted: Duration, inbox: &Inbox) {
        let detail = Some(format!("for {:.2} s", lasted.as_secs_f64()));
        self.event(inbox, EventKind::Stalled, None, detail);
        self.each_aside(now, |machine, road| machine.stalled(road));
        self.doubt_ourselves(1.0);
        for at in 0..self.tallies.len() {
            if self.is_eventual(at) {
                self.command(now, at, churn_tolerant::Command::Void, inbox);
            }
        }
        self.look(now, inbox);
    }

    /// Somebody has answered a hello from this address.
    pub(crate) fn on_met(&mut self, now: Time, from: Peer, address: SocketAddr, inbox: &Inbox) {
        for seed in self.seeds.iter_mut().filter(|seed| seed.address == address) {
            seed.found = Some(from.id);
        }
        self.input(now, Input::Feed(ContactChange::Found { id: from.id }), inbox);
    }

    /// An authenticated message.
    pub(crate) fn on_message(&mut self, now: Time, from: Peer, body: &[u8], inbox: &Inbox) {
        if body.first().is_some_and(|&channel| channel >= Channel::FIRST) {
            return self.hear_aside(now, from, body, inbox);
        }
        let mut reader = Reader::new(body);
        let message = Message::decode(&mut reader);
        let Some(message) = message.ok().filter(|_| reader.finish().is_ok()) else {
            self.refuse("malformed");
            return;
        };
        self.note_belief(from.id, &message);
        let before = self.stack.membership().incarnation();
        self.input(now, Input::Message { from, via: from.id, message: &message }, inbox);
        // What others say raises it only where we contradict them.
        if self.stack.membership().incarnation() > before {
            self.refuted += 1;
            self.doubt_ourselves(ACCUSED);
        }
        // After the input, which may be how it is met.
        if let Some(record) = self.records.get_mut(&from.id) {
            record.heard = Some(now);
        }
    }

    fn note_belief(&mut self, from: NodeId, message: &Message) {
        let Message::Election(group, churn_tolerant::Message::Leader(claim)) = message else {
            return;
        };
        if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.group == *group) {
            tally.beliefs.insert(from, (claim.leader.peer.id, claim.epoch));
        }
    }

    fn input(&mut self, now: Time, input: InputOf<'_, Stack>, inbox: &Inbox) {
        let result = self.stack.handle(now, input, &mut self.out);
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { to, message } => self.send(to, &message),
                Effect::Broadcast(message) => self.tell_some(&message),
                Effect::Multicast(message) => self.tell_all(&message),
                Effect::Persist(durable) => {
                    if self.store.keep(&durable).is_err() {
                        self.refuse("disk");
                    }
                }
                Effect::Emit(StackEvent::Membership(event)) => {
                    self.on_membership(now, event, inbox)
                }
                Effect::Emit(StackEvent::Election(_, event)) => {
                    if let churn_tolerant::Event::DuplicateIdentity { other } = event {
                        let node = Some(self.named(other.id));
                        self.event(inbox, EventKind::DuplicateIdentity, node, None);
                        self.running = false;
                    }
                }
            }
        }
        if core::mem::take(&mut self.listed_changed) {
            self.tell_listed(now);
        }
        self.look(now, inbox);
        if let Err(rejected) = result {
            self.refuse(rejected.reason());
        }
        if core::mem::take(&mut self.moved) {
            self.measure(now, inbox);
        }
    }
}

/// Sending.
impl Core {
    fn send(&mut self, to: NodeId, message: &Message) {
        if let Message::Election(group, said) = message
            && let Some(tally) = self.tallies.iter_mut().find(|tally| tally.group == *group)
        {
            tally.sent.count(1, !matches!(said, churn_tolerant::Message::Leader(_)));
        }
        let mut body = Vec::with_capacity(message.encoded_len());
        message.encode(&mut body);
        self.outgoing.push(Outgoing::Message(to, body));
    }

    pub(crate) fn refuse(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }

    /// Passes on to the transport where a member says it is.
    fn learn(&mut self, id: NodeId) {
        if let Some(known) = self.stack.membership().introduction_of(id) {
            self.outgoing.push(Outgoing::Learn(known.subject, known.addresses.iter().collect()));
        }
    }

    fn tell_all(&mut self, message: &Message) {
        let members: Vec<NodeId> =
            self.stack.membership().members().map(|member| member.id).collect();
        members.into_iter().for_each(|id| self.send(id, message));
    }
}

/// What happened.
impl Core {
    fn on_membership(&mut self, now: Time, event: MembershipEvent, inbox: &Inbox) {
        self.each_aside(now, |machine, road| machine.on_membership(event, road));
        self.listed_changed = true;
        let (id, kind, state, by) = match event {
            MembershipEvent::Joined(id) => (id, EventKind::MemberJoin, MemberState::Alive, None),
            MembershipEvent::Suspected { id, by } => {
                self.accusations += 1;
                (id, EventKind::MemberSuspect, MemberState::Suspect, Some(by))
            }
            MembershipEvent::Refuted(id) => (id, EventKind::MemberAlive, MemberState::Alive, None),
            MembershipEvent::Failed { id, accusers } => {
                (id, EventKind::MemberFailed, MemberState::Failed, accusers.iter().next())
            }
            MembershipEvent::Left(id) => (id, EventKind::MemberLeave, MemberState::Left, None),
            MembershipEvent::Introduced(id) => {
                self.learn(id);
                let state = self.state_of(id);
                (id, EventKind::MemberUpdate, state.unwrap_or(MemberState::Alive), None)
            }
        };
        let about = self.stack.membership().introduction_of(id);
        let about = about.and_then(|known| About::from_details(&known.details));
        let placed = self.settings.about.position.is_some();
        let record = self.records.entry(id).or_insert_with(|| Record {
            name: format!("{:016x}", id.get()),
            position: None,
            told: None,
            state,
            since: now,
            heard: None,
            verdicts: VecDeque::new(),
        });
        let mut told = BTreeMap::new();
        if let Some(about) = about {
            (record.name, told) = (about.name, about.terms);
            self.moved |= placed && record.position != about.position;
            record.position = about.position;
        }
        if record.state != state {
            (record.state, record.since) = (state, now);
        }
        if record.verdicts.len() >= VERDICTS {
            record.verdicts.pop_front();
        }
        record.verdicts.push_back((now, kind, by));
        if matches!(state, MemberState::Failed | MemberState::Left) {
            self.tallies.iter_mut().for_each(|tally| {
                tally.beliefs.remove(&id);
                tally.differing.remove(&id);
            });
        }
        let node = Some(self.named(id));
        let detail = by.map(|by| format!("says {}", self.named(by).name));
        self.event(inbox, kind, node, detail);
        if matches!(state, MemberState::Alive | MemberState::Suspect) {
            self.compare(id, &told, inbox);
        }
    }

    /// Whether a member has set our elections as we have.
    fn compare(&mut self, id: NodeId, told: &BTreeMap<Group, Vec<u8>>, inbox: &Inbox) {
        for at in 0..self.tallies.len() {
            let (seat, group) = (&self.settings.elections[at], self.tallies[at].group);
            let ours = self.settings.about.terms.get(&group);
            let differing = match (ours, told.get(&group)) {
                (Some(ours), Some(told)) => terms::differing(seat.protocol.mode(), ours, told),
                _ => vec![],
            };
            if differing.is_empty() {
                self.tallies[at].differing.remove(&id);
                continue;
            }
            let words = differing.join(", ");
            let before = self.tallies[at].differing.insert(id, differing.clone());
            if before.as_ref() != Some(&differing) {
                inbox.record(Event {
                    index: inbox.next_index(),
                    unix_ms: clock::unix_ms(),
                    event: EventKind::SettingsDiffer,
                    election: Some(self.settings.elections[at].name.clone()),
                    node: Some(self.named(id)),
                    epoch: None,
                    valid_for_ms: None,
                    detail: Some(words),
                });
            }
        }
    }

    fn state_of(&self, id: NodeId) -> Option<MemberState> {
        Some(match self.stack.membership().state_of(id)? {
            State::Alive => MemberState::Alive,
            State::Suspect => MemberState::Suspect,
            State::Failed => MemberState::Failed,
            State::Left => MemberState::Left,
        })
    }

    /// Whether a node that has been alone since then names nobody, itself least of all.
    fn gives_up(&self, now: Time, at: usize, since: Time) -> bool {
        match self.settings.elections[at].on_isolation {
            OnIsolation::Hold => false,
            OnIsolation::HoldFor(span) => now >= since + span,
            OnIsolation::StepDown => true,
        }
    }

    /// Whether elections answer otherwise than before.
    pub(crate) fn look(&mut self, now: Time, inbox: &Inbox) {
        if !self.stack.membership().is_empty() {
            (self.alone, self.met) = (None, true);
        } else if self.met && self.alone.is_none() {
            self.alone = Some(now);
        }
        for at in 0..self.tallies.len() {
            let group = self.tallies[at].group;
            let mut answer = match (self.stack.election(group), self.aside(group)) {
                (Some(election), _) => election.leadership(),
                (None, Some(at)) => self.beside[at].machine.leadership(now),
                (None, None) => continue,
            };
            if let Some(since) = self.alone.filter(|&since| self.gives_up(now, at, since)) {
                answer = Leadership::unknown(answer.mode, Why::Electing { since });
            }
            let tally = &mut self.tallies[at];
            let before = core::mem::replace(&mut tally.answer, answer);
            if before.same_answer(&answer) {
                continue;
            }
            let moved = (before.leader, before.epoch) != (answer.leader, answer.epoch);
            if moved {
                tally.since = now;
            }
            match (answer.leader, tally.leaderless_since) {
                (Some(_), Some(since)) => {
                    tally.leaderless += now.since(since);
                    tally.leaderless_since = None;
                }
                (None, None) => tally.leaderless_since = Some(now),
                _ => {}
            }
            if moved && answer.leader.is_some() {
                tally.changes += 1;
            }
            self.tell_leadership(now, at, &before, &answer, inbox);
        }
    }

    fn tell_leadership(
        &self,
        now: Time,
        at: usize,
        before: &Leadership,
        answer: &Leadership,
        inbox: &Inbox,
    ) {
        let ours = |of: &Leadership| of.leader == Some(self.me.id);
        let say = |event, of: &Leadership| {
            inbox.record(Event {
                index: inbox.next_index(),
                unix_ms: clock::unix_ms(),
                event,
                election: Some(self.settings.elections[at].name.clone()),
                node: of.leader.map(|id| self.named(id)),
                epoch: of.epoch.map(|epoch| epoch.to_string()),
                valid_for_ms: of.valid_until.map(|until| report::millis(until.since(now))),
                detail: Some(self.why(now, of)),
            });
        };
        let moved = (before.leader, before.epoch) != (answer.leader, answer.epoch);
        if moved && ours(before) && !ours(answer) {
            say(EventKind::StoppedLeading, before);
        }
        if moved && answer.leader.is_some() {
            say(EventKind::LeaderElected, answer);
            if ours(answer) && !(ours(before) && before.epoch == answer.epoch) {
                say(EventKind::BecameLeader, answer);
            }
        } else if moved {
            say(EventKind::LeaderLost, before);
        }
        if answer.settled && answer.leader.is_some() && (moved || !before.settled) {
            say(EventKind::LeaderConfirmed, answer);
        }
    }

    fn named(&self, id: NodeId) -> LeaderStatus {
        let name = match self.records.get(&id) {
            _ if id == self.me.id => self.settings.about.name.clone(),
            Some(record) => record.name.clone(),
            // Nobody whose word reaches us by gossip, but perhaps on a map.
            None => {
                let told = self.beside.iter().find_map(|one| one.machine.name_of(id));
                told.map_or_else(|| format!("{:016x}", id.get()), str::to_owned)
            }
        };
        LeaderStatus { id: format!("{:016x}", id.get()), name }
    }

    fn event(
        &self,
        inbox: &Inbox,
        event: EventKind,
        node: Option<LeaderStatus>,
        detail: Option<String>,
    ) {
        let (index, unix_ms) = (inbox.next_index(), clock::unix_ms());
        let (election, epoch, valid_for_ms) = (None, None, None);
        inbox.record(Event { index, unix_ms, event, election, node, epoch, valid_for_ms, detail });
    }
}

#[cfg(test)]
mod tests;
