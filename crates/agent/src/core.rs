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
    election::churn_tolerant,
    machine::{Effect, InputOf, Outbox, OutboxOf},
    membership::medley::{
        self, Addresses, ContactChange, Details, DetailsTooLong, MembershipEvent, Reach as Way,
        State,
    },
    stack::{Command, Event as StackEvent, Group, Message, Stack, Standing},
    wire::{Reader, Wire as _},
};

use crate::{
    clock,
    config::OnIsolation,
    handle::{Inbox, Refused, Request},
    profile::About,
    status::{
        Agreement, Counters, ElectionStatus, Event, EventKind, Identity, LeaderStatus, MemberState,
        MemberStatus, Reach, Role, Status, Verdict,
    },
    store::Store,
};

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
    pub(crate) config: churn_tolerant::Config,
    pub(crate) standing: Standing,
    pub(crate) on_isolation: OnIsolation,
    /// Whether hooks forbid it to lead.
    pub(crate) dirty: bool,
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
}

/// The node.
#[derive(Debug)]
pub(crate) struct Core {
    me: Peer,
    settings: Settings,
    stack: Stack,
    out: OutboxOf<Stack>,
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
    /// What the machine refused, by reason.
    refused: BTreeMap<&'static str, u64>,
}

/// What happened to a member.
#[derive(Debug)]
struct Record {
    name: String,
    state: MemberState,
    since: Time,
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
}

/// An address to try.
#[derive(Debug)]
struct Place {
    address: SocketAddr,
    next: Time,
    /// Who answered there last.
    found: Option<NodeId>,
}

/// Verdicts kept of a member.
const VERDICTS: usize = 16;
/// Members that something said to everybody in reach is told, where there is no radio: gossip does the rest.
const REACH: usize = 4;

impl Core {
    /// A node that has not started yet. All its randomness comes from `seed`.
    pub(crate) fn new(
        settings: Settings,
        store: Store,
        seeds: Vec<SocketAddr>,
        now: Time,
        seed: Seed,
    ) -> Self {
        let me = store.me();
        let groups: Vec<_> =
            settings.elections.iter().map(|seat| (Group::named(&seat.name), seat.config)).collect();
        let stack = Stack::new(me, settings.membership, &groups, seed, store.durable(), vec![])
            .with_survey(settings.survey, settings.timeout, seed, now);
        let tally = |&(group, _): &(Group, _)| Tally {
            group,
            answer: Leadership::unknown(Mode::Eventual, Why::NotRunning),
            since: now,
            changes: 0,
            leaderless: Duration::ZERO,
            leaderless_since: Some(now),
            beliefs: BTreeMap::new(),
        };
        let seeds = seeds.into_iter().map(|address| Place { address, next: now, found: None });
        Self {
            me,
            tallies: groups.iter().map(tally).collect(),
            stack,
            out: Outbox::new(),
            store,
            started: now,
            running: false,
            records: BTreeMap::new(),
            seeds: seeds.collect(),
            alone: None,
            met: false,
            rng: seed.named("host").rng(),
            outgoing: Vec::new(),
            refused: BTreeMap::new(),
            settings,
        }
    }

    #[cfg(test)]
    fn me(&self) -> Peer {
        self.me
    }

    pub(crate) fn start(&mut self, now: Time, inbox: &Inbox) {
        self.running = true;
        self.input(now, Input::Start, inbox);
        self.introduce(now, inbox);
        self.knock(now);
    }

    /// Tells the membership what to say of us.
    fn introduce(&mut self, now: Time, inbox: &Inbox) {
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
        self.stack.deadline().map(|(at, _)| at).into_iter().chain(seed).chain(isolated).min()
    }

    pub(crate) fn on_deadline(&mut self, now: Time, inbox: &Inbox) {
        if self.stack.deadline().is_some_and(|(at, _)| at <= now) {
            self.input(now, Input::Timeout, inbox);
        }
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
        self.event(inbox, EventKind::Stalled, None, None, None, Some(format!("for {lasted}")));
        for at in 0..self.tallies.len() {
            let group = self.tallies[at].group;
            let void = Command { group, command: churn_tolerant::Command::Void };
            self.input(now, Input::Command(void), inbox);
        }
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
        let mut reader = Reader::new(body);
        let message = Message::decode(&mut reader);
        let Some(message) = message.ok().filter(|_| reader.finish().is_ok()) else {
            self.refuse("malformed");
            return;
        };
        self.note_belief(from.id, &message);
        self.input(now, Input::Message { from, via: from.id, message: &message }, inbox);
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
                        self.event(inbox, EventKind::DuplicateIdentity, None, node, None, None);
                        self.running = false;
                    }
                }
            }
        }
        self.look(now, inbox);
        if let Err(rejected) = result {
            self.refuse(rejected.reason());
        }
    }
}

/// Sending.
impl Core {
    fn send(&mut self, to: NodeId, message: &Message) {
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

    fn tell_some(&mut self, message: &Message) {
        let mut members: Vec<NodeId> =
            self.stack.membership().members().map(|member| member.id).collect();
        for at in 0..members.len().min(REACH) {
            let other = at + self.rng.below((members.len() - at) as u64) as usize;
            members.swap(at, other);
            self.send(members[at], message);
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
        let (id, kind, state, by) = match event {
            MembershipEvent::Joined(id) => (id, EventKind::MemberJoin, MemberState::Alive, None),
            MembershipEvent::Suspected { id, by } => {
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
        let record = self.records.entry(id).or_insert_with(|| Record {
            name: format!("{:016x}", id.get()),
            state,
            since: now,
            verdicts: VecDeque::new(),
        });
        if let Some(about) = about {
            record.name = about.name;
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
            });
        }
        let node = Some(self.named(id));
        let detail = by.map(|by| format!("says {}", self.named(by).name));
        self.event(inbox, kind, None, node, None, detail);
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
    fn look(&mut self, now: Time, inbox: &Inbox) {
        if !self.stack.membership().is_empty() {
            (self.alone, self.met) = (None, true);
        } else if self.met && self.alone.is_none() {
            self.alone = Some(now);
        }
        for at in 0..self.tallies.len() {
            let Some(election) = self.stack.election(self.tallies[at].group) else { continue };
            let mut answer = election.leadership();
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
            self.tell_leadership(at, &before, &answer, inbox);
        }
    }

    fn tell_leadership(&self, at: usize, before: &Leadership, answer: &Leadership, inbox: &Inbox) {
        let election = || Some(self.settings.elections[at].name.clone());
        let epoch = |of: &Leadership| of.epoch.map(|epoch| epoch.to_string());
        let ours = |of: &Leadership| of.leader == Some(self.me.id);
        let node = |of: &Leadership| of.leader.map(|id| self.named(id));
        let say = |kind, of: &Leadership| {
            self.event(inbox, kind, election(), node(of), epoch(of), Some(of.why.to_string()));
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
            None => format!("{:016x}", id.get()),
        };
        LeaderStatus { id: format!("{:016x}", id.get()), name }
    }

    fn event(
        &self,
        inbox: &Inbox,
        event: EventKind,
        election: Option<String>,
        node: Option<LeaderStatus>,
        epoch: Option<String>,
        detail: Option<String>,
    ) {
        let (index, unix_ms) = (inbox.next_index(), clock::unix_ms());
        inbox.record(Event { index, unix_ms, event, election, node, epoch, detail });
    }
}

/// What is asked.
impl Core {
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// Whether this node leads anything.
    pub(crate) fn leads(&self) -> bool {
        self.tallies.iter().any(|tally| tally.answer.leader == Some(self.me.id))
    }

    /// Whether there is nobody else.
    pub(crate) fn is_alone(&self) -> bool {
        self.stack.membership().is_empty()
    }

    /// Which elections hooks forbid it to lead.
    pub(crate) fn set_dirty(&mut self, now: Time, elections: &BTreeSet<String>, inbox: &Inbox) {
        for seat in &mut self.settings.elections {
            seat.dirty = elections.contains(&seat.name);
        }
        self.introduce(now, inbox);
    }

    pub(crate) fn resign_all(&mut self, now: Time, inbox: &Inbox) {
        for at in 0..self.tallies.len() {
            self.command(now, at, churn_tolerant::Command::Resign, inbox);
        }
    }

    /// Says goodbye. Nothing is due any more once everybody was told.
    pub(crate) fn leave(&mut self, now: Time, inbox: &Inbox) {
        self.seeds.clear();
        self.input(now, Input::Leave, inbox);
    }

    fn command(&mut self, now: Time, at: usize, command: churn_tolerant::Command, inbox: &Inbox) {
        let group = self.tallies[at].group;
        self.input(now, Input::Command(Command { group, command }), inbox);
    }

    /// Everything but leaving, which the driver sees to.
    pub(crate) fn on_request(
        &mut self,
        now: Time,
        request: Request,
        inbox: &Inbox,
    ) -> Result<(), Refused> {
        match request {
            Request::Join(addresses) => {
                for address in addresses {
                    self.seeds.retain(|seed| seed.address != address);
                    self.seeds.push(Place { address, next: now, found: None });
                }
                self.knock(now);
            }
            Request::Leave => {}
            Request::ForceLeave(name) => {
                let id = self.find(&name)?;
                if self.stack.membership().member(id).is_some() {
                    let reason = format!("{name} still answers; only failed members are taken off");
                    return Err(Refused::Impossible(reason));
                }
                self.records.remove(&id);
            }
            Request::Resign(election) => {
                let at = self.led(&election)?;
                if self.stack.membership().is_empty() {
                    let reason = "there is nobody else to lead".to_owned();
                    return Err(Refused::Impossible(reason));
                }
                self.command(now, at, churn_tolerant::Command::Resign, inbox);
            }
            Request::Transfer { election, to } => {
                let at = self.led(&election)?;
                let id = self.find(&to)?;
                if self.stack.membership().member(id).is_none() {
                    return Err(Refused::Impossible(format!("{to} is not alive")));
                }
                self.command(now, at, churn_tolerant::Command::Transfer(id), inbox);
            }
            Request::Tags(changes) => self.set_tags(now, changes, inbox)?,
        }
        Ok(())
    }

    fn set_tags(
        &mut self,
        now: Time,
        changes: BTreeMap<String, Option<String>>,
        inbox: &Inbox,
    ) -> Result<(), Refused> {
        let before = self.settings.about.tags.clone();
        for (key, value) in changes {
            match value {
                Some(value) => self.settings.about.tags.insert(key, value),
                None => self.settings.about.tags.remove(&key),
            };
        }
        if let Err(error) = self.settings.introduction() {
            self.settings.about.tags = before;
            return Err(Refused::Impossible(format!("name, tags and elections together: {error}")));
        }
        self.introduce(now, inbox);
        Ok(())
    }

    fn led(&self, election: &str) -> Result<usize, Refused> {
        let names = || self.settings.elections.iter().map(|seat| seat.name.as_str());
        let Some(at) = names().position(|name| name == election) else {
            let all = names().collect::<Vec<_>>().join(", ");
            return Err(Refused::NoSuchElection(election.to_owned(), all));
        };
        match self.tallies[at].answer.leader {
            Some(leader) if leader == self.me.id => Ok(at),
            Some(leader) => Err(Refused::NotLeader(election.to_owned(), self.named(leader).name)),
            None => Err(Refused::NotLeader(election.to_owned(), "nobody".to_owned())),
        }
    }

    fn find(&self, name: &str) -> Result<NodeId, Refused> {
        let known = self
            .records
            .iter()
            .find(|(id, record)| record.name == name || format!("{:016x}", id.get()) == name);
        known.map(|(&id, _)| id).ok_or_else(|| Refused::NoSuchMember(name.to_owned()))
    }

    pub(crate) fn status(&self, now: Time, index: u64, mut counters: Counters) -> Status {
        for (&reason, &count) in &self.refused {
            *counters.dropped.entry(reason).or_default() += count;
        }
        let mut members: Vec<MemberStatus> =
            self.records.iter().map(|(&id, record)| self.member_status(now, id, record)).collect();
        members.push(self.own_status(now));
        members.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.id.cmp(&b.id)));
        let elections = (0..self.tallies.len()).map(|at| self.election_status(now, at)).collect();
        let LeaderStatus { id, name } = self.named(self.me.id);
        Status {
            node: Identity { id, name, boot: self.me.boot.get() },
            cluster: self.settings.cluster.clone(),
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: millis(now.since(self.started)),
            index,
            members,
            elections,
            counters,
        }
    }

    fn own_status(&self, now: Time) -> MemberStatus {
        let LeaderStatus { id, name } = self.named(self.me.id);
        MemberStatus {
            id,
            name,
            state: MemberState::Alive,
            since_ms: millis(now.since(self.started)),
            boot: self.me.boot.get(),
            incarnation: self.stack.membership().incarnation().get(),
            addresses: self.settings.advertise.clone(),
            reach: Reach::Own,
            suspicions: 0,
            accusers: vec![],
            convicted_in_ms: None,
            tags: self.settings.about.tags.clone(),
            verdicts: vec![],
        }
    }

    fn member_status(&self, now: Time, id: NodeId, record: &Record) -> MemberStatus {
        let membership = self.stack.membership();
        let known = membership.introduction_of(id);
        let about = known.as_ref().and_then(|known| About::from_details(&known.details));
        let life = membership.record_of(id);
        let (boot, incarnation) = life.map(|(_, boot, inc)| (boot, inc)).unwrap_or_default();
        let view = membership.member(id);
        let accusation = membership.accusation_of(id);
        let accusers = accusation.iter().flat_map(|(accusers, _)| accusers.iter());
        let verdict = |&(at, what, by): &(Time, EventKind, Option<NodeId>)| Verdict {
            ago_ms: millis(now.since(at)),
            what,
            by: by.map(|by| self.named(by).name),
        };
        MemberStatus {
            id: format!("{:016x}", id.get()),
            name: record.name.clone(),
            state: self.state_of(id).unwrap_or(record.state),
            since_ms: millis(now.since(record.since)),
            boot: boot.get(),
            incarnation: incarnation.get(),
            addresses: known.map(|known| known.addresses.iter().collect()).unwrap_or_default(),
            reach: match view.map(|view| view.reach) {
                Some(Way::Through(relay)) => Reach::Through(self.named(relay).name),
                _ => Reach::Direct,
            },
            suspicions: view.map_or(0, |view| view.suspicions),
            accusers: accusers.map(|by| self.named(by).name).collect(),
            convicted_in_ms: accusation.map(|(_, until)| millis(until.since(now))),
            tags: about.map(|about| about.tags).unwrap_or_default(),
            verdicts: record.verdicts.iter().map(verdict).collect(),
        }
    }

    fn election_status(&self, now: Time, at: usize) -> ElectionStatus {
        let (tally, seat) = (&self.tallies[at], &self.settings.elections[at]);
        let answer = &tally.answer;
        let mut agreement = Agreement::default();
        if let Some(leader) = answer.leader {
            let mut count = |name: String, believed: NodeId| {
                agreement.heard += 1;
                if believed == leader {
                    agreement.agree += 1;
                } else {
                    agreement.dissent.push((name, self.named(believed).name));
                }
            };
            count(self.settings.about.name.clone(), leader);
            for (&id, &(believed, _)) in &tally.beliefs {
                if self.stack.membership().member(id).is_some() {
                    count(self.named(id).name, believed);
                }
            }
        }
        let leaderless = tally.leaderless_since.map_or(Duration::ZERO, |since| now.since(since));
        ElectionStatus {
            election: seat.name.clone(),
            mode: answer.mode.to_string(),
            leader: answer.leader.map(|id| self.named(id)),
            epoch: answer.epoch.map(|epoch| epoch.to_string()),
            settled: answer.settled,
            is_leader: answer.leader == Some(self.me.id),
            since_ms: millis(now.since(tally.since)),
            valid_for_ms: answer.valid_until.map(|until| millis(until.since(now))),
            role: if seat.stands().observer { Role::Observer } else { Role::Candidate },
            priority: seat.standing.attribute,
            why: self.why(now, answer),
            agreement,
            changes: tally.changes,
            leaderless_ms: millis(tally.leaderless + leaderless),
        }
    }

    /// In words and ages, not instants: nobody knows the agent's zero.
    fn why(&self, now: Time, answer: &Leadership) -> String {
        let ago = |at: Time| format!("{:.1} s", now.since(at).as_secs_f64());
        match answer.why {
            Why::Electing { since } => format!("nobody has led for {}", ago(since)),
            Why::Unchallenged { since } => {
                format!("elected {} ago; nobody better objects", ago(since))
            }
            Why::Announced { heard } => format!("says so itself, last {} ago", ago(heard)),
            other => other.to_string(),
        }
    }
}

fn millis(span: Duration) -> u64 {
    span.as_micros() / 1_000
}

#[cfg(test)]
mod tests;
