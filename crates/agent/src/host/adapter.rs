//! The node between its machine and the world: inputs in, datagrams and answers out, and no socket.
//!
//! What decides who leads is [`Node`]. Here its effects are carried out in order, its disk is given work, and what it answers
//! is put into the shape that people and programs get. Whoever answers a hello at a seed's address is handed over as
//! [`Fact::Met`]; seeds are tried for life, so that groups that formed apart meet.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
};

use bellwether_proto::{
    Boot, Duration, Effect, ElectionId, Input, InputOf, Leadership, Machine as _, NodeId, Outbox,
    OutboxOf, Peer, Rng, Seed, Time,
    membership::medley::{MembershipEvent, State},
    node::{
        self, About, Command, Fact, Message, Node, Plan, SeatPlan, hex,
        packet::{Dialect, Packet},
    },
    wire::{Reader, Wire as _},
};
use tracing::debug;

use crate::{
    host::{
        clock,
        handle::{Error, Inbox},
        neighbours::Neighbour,
        record::Recorder,
        store::{Keeping, Store},
        terms,
    },
    net::{refusal::Refusal, seal::Versions},
    status::{ElectionStatus, Event, EventKind, LeaderStatus, MemberState, PeerTable},
};

mod map;
mod report;
mod request;
mod sources;
#[cfg(test)]
mod tests;

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

/// A node and what is known of it besides.
#[derive(Debug)]
pub(crate) struct Adapter {
    node: Node,
    out: OutboxOf<Node>,
    cluster: String,
    store: Store,
    dialect: Dialect,
    /// Writes down what the node is given, if that is wanted.
    recorder: Option<Recorder>,
    started: Time,
    records: BTreeMap<NodeId, Record>,
    tallies: Vec<Tally>,
    seeds: Vec<Place>,
    /// Who says where to try, besides what is fixed.
    sources: Vec<sources::Source>,
    /// Between two tries of a seed that nobody listed answers at.
    retry: Duration,
    rng: Rng,
    pub(crate) outgoing: Vec<Outgoing>,
    /// Who is in range, as routing daemons say, and why their tables cannot be read: for each election.
    in_range: BTreeMap<ElectionId, Vec<Neighbour>>,
    problems: BTreeMap<ElectionId, String>,
    /// Whether members may have come to have addresses that routing daemons name.
    listed_changed: bool,
    /// What was refused, by reason.
    refused: BTreeMap<&'static str, u64>,
    /// Accusations of members that we heard of.
    accusations: u64,
    /// Pairs of one name that were told of, the smaller identity first.
    named_alike: BTreeSet<(NodeId, NodeId)>,
    /// Whether it was said that the table of peers is filling up.
    filling: bool,
    /// The same of the addresses to join.
    crowded: bool,
}

/// What happened to a member.
#[derive(Debug)]
struct Record {
    /// As it last said; the identity stands in for it until then.
    name: String,
    state: MemberState,
    since: Time,
    /// When a message of its own reached us last.
    heard: Option<Time>,
    verdicts: VecDeque<(Time, EventKind, Option<NodeId>)>,
}

/// What an election has answered so far.
#[derive(Debug)]
struct Tally {
    group: ElectionId,
    answer: Leadership,
    since: Time,
    changes: u64,
    leaderless: Duration,
    /// Since when nobody is known to lead.
    leaderless_since: Option<Time>,
    /// Who has set it otherwise, and what.
    differing: BTreeMap<NodeId, Vec<&'static str>>,
}

/// An address to try.
#[derive(Debug)]
struct Place {
    address: SocketAddr,
    next: Time,
    /// Who answered there last.
    found: Option<NodeId>,
    /// Tries in a row that nobody answered.
    in_vain: u32,
    /// Whether it is there only as long as a source names it.
    named: bool,
}

impl Place {
    const fn new(address: SocketAddr, now: Time, named: bool) -> Self {
        Self { address, next: now, found: None, in_vain: 0, named }
    }
}

/// Addresses tried at most. Beyond, a cluster is joined by fewer.
const PLACES: usize = 1_024;
/// A silent address is tried half as often each time, down to this part of the pace.
const RAREST: u32 = 32;
/// After so many tries it is said that nobody answers: the last of them came after some ten seconds by `lan`.
const UNANSWERED: u32 = 3;

/// Members of which it is known what happened to them. Those that are listed all are; beyond, those are forgotten that the
/// membership has forgotten.
const RECORDS: usize = 4_096;

/// Verdicts kept of a member.
const VERDICTS: usize = 16;

/// The message in these bytes, without what a later version may have put behind it.
pub(crate) fn decode(body: &[u8]) -> Result<Message, Refusal> {
    Ok(Packet::decode(&mut Reader::new(body))?.message)
}

impl Adapter {
    /// A node that has not started yet. All its randomness comes from `seed`.
    pub(crate) fn new(
        plan: Plan,
        cluster: &str,
        store: Store,
        seeds: Vec<SocketAddr>,
        now: Time,
        seed: Seed,
    ) -> Self {
        let retry = plan.timing.grace * 2;
        let node = Node::new(store.me(), plan, seed, Some(store.durable()));
        let tally = |group| Tally {
            group,
            answer: node.leadership_of(group, now),
            since: now,
            changes: 0,
            leaderless: Duration::ZERO,
            leaderless_since: Some(now),
            differing: BTreeMap::new(),
        };
        let seeds = seeds.into_iter().map(|address| Place::new(address, now, false));
        Self {
            tallies: node.elections().map(tally).collect(),
            node,
            out: Outbox::new(),
            cluster: cluster.to_owned(),
            store,
            dialect: Dialect::Present,
            recorder: None,
            started: now,
            records: BTreeMap::new(),
            seeds: seeds.collect(),
            sources: Vec::new(),
            retry,
            rng: seed.named("doors").rng(),
            outgoing: Vec::new(),
            in_range: BTreeMap::new(),
            problems: BTreeMap::new(),
            listed_changed: true,
            refused: BTreeMap::new(),
            accusations: 0,
            named_alike: BTreeSet::new(),
            filling: false,
            crowded: false,
        }
    }

    /// The same, with all that its node is given written down.
    pub(crate) fn with_recorder(mut self, recorder: Option<Recorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// The same, writing its packets so.
    pub(crate) fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    fn me(&self) -> Peer {
        self.node.me()
    }

    fn seat(&self, at: usize) -> &SeatPlan {
        &self.node.plan().seats[at]
    }

    pub(crate) fn start(&mut self, now: Time, inbox: &Inbox) {
        self.input(now, Input::Start, inbox);
        self.knock(now, inbox);
    }

    /// Whether it runs, or is still saying goodbye.
    pub(crate) fn is_running(&self) -> bool {
        self.node.is_running() && self.node.deadline().is_some()
    }

    /// Whether the node was stopped for longer than it may lead unseen.
    pub(crate) fn is_late(&self, now: Time) -> bool {
        self.node.is_late(now)
    }

    /// When it wants to be woken.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let seed = self.seeds.iter().map(|seed| seed.next).min();
        self.node.deadline().map(|(at, _)| at).into_iter().chain(seed).min()
    }

    pub(crate) fn on_deadline(&mut self, now: Time, inbox: &Inbox) {
        if self.node.deadline().is_some_and(|(at, _)| at <= now) {
            self.input(now, Input::Timeout, inbox);
        }
        self.knock(now, inbox);
    }

    /// Says hello where nobody listed is known to be.
    fn knock(&mut self, now: Time, inbox: &Inbox) {
        for at in 0..self.seeds.len() {
            if self.seeds[at].next > now {
                continue;
            }
            let Place { address, found, in_vain, .. } = self.seeds[at];
            let listed = found.is_some_and(|id| {
                id == self.me().id || self.node.membership().member(id).is_some()
            });
            let rarer = 1 << in_vain.min(RAREST.ilog2());
            let pace = self.retry * if listed { 1 } else { rarer };
            self.seeds[at].next = now + pace + self.rng.up_to(pace.div(4));
            self.seeds[at].in_vain = if listed { 0 } else { in_vain + 1 };
            if !listed {
                debug!(%address, in_vain, "asks who is there");
                self.outgoing.push(Outgoing::Hello(address));
            }
            // Said once, and only of a node that knows nobody: the others' silence is told elsewhere.
            let own = self.node.plan().addresses.iter().any(|known| known == address);
            if in_vain == UNANSWERED && self.records.is_empty() && !own {
                let words =
                    format!("{address}: nobody has answered there yet; it is tried for life");
                self.event(inbox, EventKind::JoinFailed, None, Some(words));
            }
        }
    }

    /// Somebody has answered a hello from this address.
    pub(crate) fn on_met(&mut self, now: Time, from: Peer, address: SocketAddr, inbox: &Inbox) {
        debug!(%address, member = from.id.get(), boot = from.boot.get(), "somebody is there");
        for seed in self.seeds.iter_mut().filter(|seed| seed.address == address) {
            (seed.found, seed.in_vain) = (Some(from.id), 0);
        }
        self.input(now, Input::Feed(Fact::Met(from.id)), inbox);
    }

    /// A later life of our identity was heard, or heard of.
    pub(crate) fn on_superseded(&mut self, now: Time, by: Boot, inbox: &Inbox) {
        self.input(now, Input::Feed(Fact::Superseded(by)), inbox);
    }

    /// An authenticated message, to us or to everybody.
    pub(crate) fn on_message(&mut self, now: Time, from: Peer, body: &[u8], inbox: &Inbox) {
        let message = match decode(body) {
            Ok(message) => message,
            Err(reason) => {
                self.refuse(reason.as_str());
                return;
            }
        };
        self.input(now, Input::Message { from, via: from.id, message: &message }, inbox);
        // After the input, which may be how it is met.
        if let Some(record) = self.records.get_mut(&from.id) {
            record.heard = Some(now);
        }
    }

    /// Says goodbye. It stops running once everybody was told.
    pub(crate) fn leave(&mut self, now: Time, inbox: &Inbox) {
        self.seeds.clear();
        self.input(now, Input::Leave, inbox);
    }

    fn command(&mut self, now: Time, command: Command, inbox: &Inbox) -> Result<(), Error> {
        match self.handle(now, Input::Command(command), inbox) {
            Ok(()) => Ok(()),
            Err(rejected) => Err(Error::Impossible(rejected.to_string())),
        }
    }

    fn input(&mut self, now: Time, input: InputOf<'_, Node>, inbox: &Inbox) {
        if let Err(rejected) = self.handle(now, input, inbox) {
            self.refuse(rejected.reason());
        }
    }

    /// Hands an input over and carries out what comes of it.
    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Node>,
        inbox: &Inbox,
    ) -> Result<(), bellwether_proto::Rejected> {
        let result = self.step(now, input, inbox);
        if core::mem::take(&mut self.listed_changed) {
            self.find_in_range(now, inbox);
        }
        self.look(now, inbox);
        result
    }

    fn step(
        &mut self,
        now: Time,
        input: InputOf<'_, Node>,
        inbox: &Inbox,
    ) -> Result<(), bellwether_proto::Rejected> {
        if let Some(recorder) = &mut self.recorder {
            recorder.given(now, &input);
        }
        let result = self.node.handle(now, input, &mut self.out);
        if let Err(rejected) = &result {
            debug!(reason = rejected.reason(), "the node takes no notice");
        }
        let mut keeping = Keeping::Done;
        while let Some(effect) = self.out.pop() {
            if let Some(recorder) = &mut self.recorder {
                recorder.effect(&effect);
            }
            match effect {
                // The node says again what need not wait for what is being written, and the rest once it is kept.
                Effect::Send { .. } | Effect::Broadcast(_) | Effect::Multicast(_)
                    if keeping == Keeping::UnderWay => {}
                Effect::Send { to, message } => {
                    let aside = self.dialect.aside(&message);
                    let bodies = [Some(self.dialect.encode(&message)), aside].into_iter().flatten();
                    self.outgoing.extend(bodies.map(|body| Outgoing::Message(to, body)));
                }
                Effect::Broadcast(message) | Effect::Multicast(message) => {
                    let aside = self.dialect.aside(&message);
                    let bodies = [Some(self.dialect.encode(&message)), aside].into_iter().flatten();
                    self.outgoing.extend(bodies.map(Outgoing::Group));
                }
                Effect::Persist(durable) => {
                    if keeping == Keeping::Done {
                        keeping = self.store.keep(&durable);
                        debug!(waits = keeping == Keeping::UnderWay, "has something to keep");
                    }
                }
                Effect::Emit(event) => self.on_event(now, event, inbox),
            }
        }
        let recorded = self.recorder.as_mut();
        let ended = recorded.and_then(|one| one.outcome(&self.node, now, result.as_ref().copied()));
        if ended.is_some() {
            self.recorder = None;
            self.event(inbox, EventKind::RecordEnded, None, ended);
        }
        match keeping {
            Keeping::Done => result,
            // That asks for nothing else to be kept: there is one write at a time.
            Keeping::UnderWay => self.step(now, Input::Feed(Fact::Writing), inbox),
        }
    }

    /// Waits until the disk has written what it was given. May be dropped at any time.
    pub(crate) async fn written(&mut self) -> bool {
        self.store.written().await
    }

    /// The disk has written what it was given, or has refused it.
    pub(crate) fn on_written(&mut self, now: Time, kept: bool, inbox: &Inbox) {
        debug!(kept, "the disk has answered");
        if !kept {
            self.refuse("disk");
        }
        self.input(now, Input::Feed(if kept { Fact::Kept } else { Fact::NotKept }), inbox);
    }

    pub(crate) fn refuse(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }
}

/// What happened.
impl Adapter {
    fn on_event(&mut self, now: Time, event: node::Event, inbox: &Inbox) {
        match event {
            node::Event::Membership(event) => self.on_membership(now, event, inbox),
            node::Event::DuplicateIdentity { other } => {
                let detail = Some(format!("in its life {}", other.boot));
                let node = Some(self.named(other.id));
                self.event(inbox, EventKind::DuplicateIdentity, node, detail);
            }
            node::Event::Stalled { lasted } => {
                let detail = Some(format!("for {:.2} s", lasted.as_secs_f64()));
                self.event(inbox, EventKind::Stalled, None, detail);
            }
            node::Event::DiskRefused => {
                let detail = self.store.problem();
                self.event(inbox, EventKind::DiskRefused, None, detail);
            }
            node::Event::DiskRecovered => {
                self.event(inbox, EventKind::DiskRecovered, None, None);
            }
            _ => debug_assert!(false, "nobody is told of {event:?}"),
        }
    }

    fn on_membership(&mut self, now: Time, event: MembershipEvent, inbox: &Inbox) {
        self.listed_changed = true;
        let id = event.id();
        let (kind, state, by) = match event {
            MembershipEvent::Joined(_) => (EventKind::MemberJoin, MemberState::Alive, None),
            MembershipEvent::Suspected { by, .. } => {
                self.accusations += 1;
                (EventKind::MemberSuspect, MemberState::Suspect, Some(by))
            }
            MembershipEvent::Refuted(_) => (EventKind::MemberAlive, MemberState::Alive, None),
            MembershipEvent::Failed { accusers, .. } => {
                (EventKind::MemberFailed, MemberState::Failed, accusers.iter().next())
            }
            MembershipEvent::Left(_) => (EventKind::MemberLeave, MemberState::Left, None),
            MembershipEvent::Introduced(_) => {
                let state = self.state_of(id).unwrap_or(MemberState::Alive);
                (EventKind::MemberUpdate, state, None)
            }
        };
        if let MembershipEvent::Introduced(_) = event
            && let Some(known) = self.node.membership().introduction_of(id)
        {
            // Passes on to the transport where a member says it is.
            self.outgoing.push(Outgoing::Learn(known.subject, known.addresses.iter().collect()));
        }
        let name = self.named(id).name;
        let record = self.records.entry(id).or_insert_with(|| Record {
            name: String::new(),
            state,
            since: now,
            heard: None,
            verdicts: VecDeque::new(),
        });
        record.name = name;
        if record.state != state {
            (record.state, record.since) = (state, now);
        }
        if record.verdicts.len() >= VERDICTS {
            record.verdicts.pop_front();
        }
        record.verdicts.push_back((now, kind, by));
        let node = Some(self.named(id));
        let detail = by.map(|by| format!("says {}", self.named(by).name));
        self.event(inbox, kind, node, detail);
        if self.records.len() > RECORDS {
            self.forget_records();
        }
        if matches!(state, MemberState::Alive | MemberState::Suspect) {
            self.compare(id, inbox);
            // All are looked through, and with other events comes no name.
            if matches!(kind, EventKind::MemberJoin | EventKind::MemberUpdate) {
                self.tell_apart(id, inbox);
            }
        } else {
            self.tallies.iter_mut().for_each(|tally| {
                tally.differing.remove(&id);
            });
        }
    }

    /// Forgets what happened to half of those that the membership has forgotten, the longest gone first.
    fn forget_records(&mut self) {
        let membership = self.node.membership();
        let gone = self.records.iter().filter(|(id, _)| membership.state_of(**id).is_none());
        let mut gone: Vec<(Time, NodeId)> = gone.map(|(&id, record)| (record.since, id)).collect();
        gone.sort_unstable();
        let half = gone.len().div_ceil(2);
        gone.truncate(half);
        gone.iter().for_each(|(_, id)| drop(self.records.remove(id)));
        let own = self.me().id;
        let known = |id: &NodeId| *id == own || self.records.contains_key(id);
        self.named_alike.retain(|(one, other)| known(one) && known(other));
    }

    /// Somebody of our cluster speaks no version of ours.
    pub(crate) fn on_foreign(&self, who: Peer, theirs: Versions, ours: Versions, inbox: &Inbox) {
        let words = format!(
            "it speaks version {theirs} of packets and this node version {ours}; upgrade the older one"
        );
        self.event(inbox, EventKind::VersionsDiffer, Some(self.named(who.id)), Some(words));
    }

    /// The seal remembers so many peers.
    pub(crate) fn on_peers(&mut self, peers: PeerTable, inbox: &Inbox) {
        let before = core::mem::replace(&mut self.filling, peers.is_filling());
        if !before && self.filling {
            let PeerTable { remembered, most } = peers;
            let words = format!(
                "{remembered} nodes were heard in the last minutes; above {most} no other is taken in"
            );
            self.event(inbox, EventKind::TableFilling, None, Some(words));
        }
    }

    /// Whether a member has set our elections as we have.
    fn compare(&mut self, id: NodeId, inbox: &Inbox) {
        let known = self.node.membership().introduction_of(id);
        let about = known.and_then(|known| About::from_details(&known.details));
        let told = about.map(|about| about.terms).unwrap_or_default();
        for at in 0..self.tallies.len() {
            let (mode, group) = (self.seat(at).protocol.mode(), self.tallies[at].group);
            let ours = self.node.plan().about.terms.get(&group);
            let differing = match (ours, told.get(&group)) {
                (Some(ours), Some(told)) => terms::differing(mode, ours, told),
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
                    election: Some(self.seat(at).name.clone()),
                    node: Some(self.named(id)),
                    epoch: None,
                    valid_for_ms: None,
                    detail: Some(words),
                });
            }
        }
    }

    /// Whether it is listed, suspect or not.
    fn lives(&self, id: NodeId) -> bool {
        matches!(self.state_of(id), Some(MemberState::Alive | MemberState::Suspect))
    }

    /// Who bears this name and lives, ourselves first.
    fn bearers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        let own = (self.node.plan().about.name == name).then_some(self.me().id);
        let others = self.records.keys().copied();
        own.into_iter()
            .chain(others.filter(move |&id| self.lives(id) && self.node.name_of(id) == Some(name)))
    }

    /// Whether a member bears another's name: said once of the two, though one of them may come again.
    fn tell_apart(&mut self, id: NodeId, inbox: &Inbox) {
        let Some(name) = self.node.name_of(id).map(str::to_owned) else { return };
        let Some(other) = self.bearers(&name).find(|&other| other != id) else { return };
        if self.named_alike.insert((other.min(id), other.max(id))) {
            let words = format!(
                "two nodes are called {name:?}, {} and {}: give each a name of its own",
                hex(other),
                hex(id)
            );
            self.event(inbox, EventKind::SameName, Some(self.named(id)), Some(words));
        }
    }

    fn state_of(&self, id: NodeId) -> Option<MemberState> {
        Some(match self.node.membership().state_of(id)? {
            State::Alive => MemberState::Alive,
            State::Suspect => MemberState::Suspect,
            State::Failed => MemberState::Failed,
            State::Left => MemberState::Left,
        })
    }

    /// Whether elections answer otherwise than before. The answers are put where whoever asks finds them before anybody is
    /// told: a hook that runs because this node leads, and asks, gets the answer that it was told of.
    pub(crate) fn look(&mut self, now: Time, inbox: &Inbox) {
        let mut moves: Vec<(usize, Leadership)> = Vec::new();
        for at in 0..self.tallies.len() {
            let answer = self.node.leadership_of(self.tallies[at].group, now);
            let tally = &mut self.tallies[at];
            let before = core::mem::replace(&mut tally.answer, answer);
            if before.same_answer(&answer) {
                continue;
            }
            debug!(
                election = self.node.plan().seats[at].name,
                leader = answer.leader.map(NodeId::get),
                epoch = answer.epoch.map(tracing::field::display),
                settled = answer.settled,
                why = %answer.why,
                "another answer"
            );
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
            moves.push((at, before));
        }
        if moves.is_empty() {
            return;
        }
        self.publish(now, inbox);
        for (at, before) in moves {
            self.tell_leadership(now, at, &before, &self.tallies[at].answer, inbox);
        }
    }

    /// Puts the answers where whoever asks finds them, without asking the node.
    pub(crate) fn publish(&self, now: Time, inbox: &Inbox) {
        let all = (0..self.tallies.len()).map(|at| self.election_status(now, at));
        inbox.publish(all.collect::<Vec<ElectionStatus>>());
    }

    fn tell_leadership(
        &self,
        now: Time,
        at: usize,
        before: &Leadership,
        answer: &Leadership,
        inbox: &Inbox,
    ) {
        let ours = |of: &Leadership| of.leader == Some(self.me().id);
        let say = |event, of: &Leadership| {
            inbox.record(Event {
                index: inbox.next_index(),
                unix_ms: clock::unix_ms(),
                event,
                election: Some(self.seat(at).name.clone()),
                node: of.leader.map(|id| self.named(id)),
                epoch: of.epoch,
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
        // The membership forgets those that are long gone, and people ask about them.
        let past = || self.records.get(&id).map(|record| record.name.as_str());
        let name = self.node.name_of(id).or_else(past).map_or_else(|| hex(id), str::to_owned);
        LeaderStatus { id, name }
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

/// Who is in range, by what routing daemons say.
impl Adapter {
    /// What a routing daemon says, or why it cannot be asked.
    pub(crate) fn set_neighbours(
        &mut self,
        now: Time,
        election: &str,
        neighbours: Option<Vec<Neighbour>>,
        problem: Option<String>,
        inbox: &Inbox,
    ) {
        let group = ElectionId::named(election);
        match problem {
            Some(problem) => self.problems.insert(group, problem),
            None => self.problems.remove(&group),
        };
        if let Some(neighbours) = neighbours {
            self.in_range.insert(group, neighbours);
            self.tell_in_range(now, group, inbox);
        }
    }

    /// The same again, as others may have come to have these addresses.
    fn find_in_range(&mut self, now: Time, inbox: &Inbox) {
        let groups: Vec<ElectionId> = self.in_range.keys().copied().collect();
        groups.into_iter().for_each(|group| self.tell_in_range(now, group, inbox));
    }

    fn tell_in_range(&mut self, now: Time, group: ElectionId, inbox: &Inbox) {
        let Some(neighbours) = self.in_range.get(&group) else { return };
        let ids = map::found(self.node.membership(), neighbours);
        if let Err(rejected) = self.step(now, Input::Feed(Fact::InRange(group, ids)), inbox) {
            self.refuse(rejected.reason());
        }
    }
}
