//! Elections by the votes of a majority, for whoever was found to be the most reliable.
//!
//! The settings name the voters; their identities are learnt. Whoever is met first under a voter's name is that voter from
//! then on, on disk: two lists of voters that differ would have majorities that need not meet. Until all of them were met
//! once, nobody is elected. A voter that has lost its disk comes back under another identity and has no vote: it would not know
//! how it voted before.
//!
//! Every message begins with a digest of the voters' identities. Whoever has another list is not heard.

use std::sync::Arc;

use bellwether_proto::{
    Input, Machine as _,
    election::bandit::{self, Bandit, Durable, Feed},
    machine::{Effect, InputOf, Outbox, OutboxOf},
    wire::{DecodeError, Reader, Sink, Wire},
};

use super::{
    beside::{Beside, Channel, Listed, Road},
    *,
};
use crate::status::ScoreStatus;

/// Who votes, by name in order, and how.
#[derive(Clone, Debug)]
pub(crate) struct Electorate {
    pub(crate) voters: Vec<String>,
    pub(crate) config: bandit::Config,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Learned {
    me: Peer,
    electorate: Electorate,
    seed: Seed,
    /// Who each voter is, as far as it was ever met.
    bound: BTreeMap<String, NodeId>,
    /// The machine and a digest of its voters, once all of them were met.
    running: Option<(Bandit, u32)>,
    out: OutboxOf<Bandit>,
    /// Everybody alive, and whether they take part.
    listed: BTreeMap<NodeId, Life>,
    /// What is on disk of the machine, and what should be by now.
    written: Option<Durable>,
    newest: Option<Durable>,
    written_at: Time,
    started: bool,
    observes: bool,
    /// The disk did not take a vote: one more and there might be two in one term.
    mute: bool,
    since: Time,
    /// Who spoke last of other voters, and when.
    dissenter: Option<(NodeId, Time)>,
    sent: Sent,
    /// Who has said so of the present leader, under the present token.
    agreed: (Option<Epoch>, BTreeSet<NodeId>),
}

#[derive(Clone, Debug)]
struct Life {
    peer: Peer,
    name: String,
    takes_part: bool,
}

impl Learned {
    pub(super) fn new(
        me: Peer,
        name: &str,
        group: Group,
        electorate: Electorate,
        store: &Store,
        now: Time,
        seed: Seed,
    ) -> Self {
        let mut bound = store.voters(group);
        bound.retain(|name, _| electorate.voters.contains(name));
        if electorate.voters.iter().any(|voter| voter == name) {
            bound.insert(name.to_owned(), me.id);
        }
        let written = store.learned(group);
        let mut learned = Self {
            me,
            electorate,
            seed,
            bound,
            running: None,
            out: Outbox::new(),
            listed: BTreeMap::new(),
            newest: written.clone(),
            written,
            written_at: now,
            started: false,
            observes: false,
            mute: false,
            since: now,
            dissenter: None,
            sent: Sent::default(),
            agreed: (None, BTreeSet::new()),
        };
        learned.build();
        learned
    }

    /// Makes the machine, if every voter is known.
    fn build(&mut self) {
        if self.running.is_some() || self.bound.len() < self.electorate.voters.len() {
            return;
        }
        let mut members: Vec<NodeId> = self.bound.values().copied().collect();
        members.sort_unstable();
        members.dedup();
        // Two names of one node: somebody was renamed, and has one vote all the same.
        if members.len() < self.bound.len() {
            return;
        }
        let digest = digest(&members);
        // A first life has never voted: it begins with the first term. A later one without a disk has another identity.
        let durable = Some(self.written.clone().unwrap_or_default());
        let members: Arc<[NodeId]> = members.into();
        let config = self.electorate.config;
        self.running = Some((Bandit::new(self.me, members, config, self.seed, durable), digest));
    }

    fn begin(&mut self, road: &mut Road<'_>) {
        if !self.started || self.running.is_none() {
            return;
        }
        self.input(Input::Start, road);
        self.input(Input::Command(bandit::Command::Observe(self.observes)), road);
        let lives: Vec<Peer> = self.listed.values().map(|life| life.peer).collect();
        lives.into_iter().for_each(|peer| self.input(Input::Feed(Feed::Up(peer)), road));
    }

    fn input(&mut self, input: InputOf<'_, Bandit>, road: &mut Road<'_>) {
        let Some((machine, digest)) = &mut self.running else { return };
        if self.mute {
            return;
        }
        let (result, digest) = (machine.handle(road.now, input, &mut self.out), *digest);
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { to, message } => self.send(&[to], digest, message, road),
                Effect::Broadcast(message) | Effect::Multicast(message) => {
                    let everybody = self.everybody();
                    self.send(&everybody, digest, message, road);
                }
                Effect::Persist(durable) => {
                    self.newest = Some(durable);
                    if !self.keep(road) {
                        // Nothing that was to come after it must be said.
                        while self.out.pop().is_some() {}
                        self.mute = true;
                    }
                }
                Effect::Emit(bandit::Event::Started { .. }) => {}
                // The membership finds out too, and says so.
                Effect::Emit(bandit::Event::DuplicateIdentity { .. }) => road.stop_node(),
            }
        }
        if let Err(rejected) = result {
            road.refuse(rejected.reason());
        }
    }

    /// Terms and votes are written before anything else happens; what was learnt, now and then. Whether that went well.
    fn keep(&mut self, road: &mut Road<'_>) -> bool {
        let ballot = |durable: &Option<Durable>| {
            durable.as_ref().map(|durable| (durable.term, durable.voted_for))
        };
        let stale = road.now.since(self.written_at) >= BELIEFS;
        if ballot(&self.newest) == ballot(&self.written) && !stale {
            return true;
        }
        self.write(road)
    }

    fn write(&mut self, road: &mut Road<'_>) -> bool {
        let Some(newest) = self.newest.clone() else { return true };
        let kept = road.store.keep_learned(road.group, &newest);
        let well = kept.is_ok();
        if well {
            (self.written, self.written_at) = (Some(newest), road.now);
        }
        road.kept(kept);
        well
    }

    /// The voters, whether or not they are thought to be alive, and whoever else takes part.
    fn everybody(&self) -> Vec<NodeId> {
        let guests = self.listed.values().filter(|life| life.takes_part).map(|life| life.peer.id);
        let all: BTreeSet<NodeId> = self.bound.values().copied().chain(guests).collect();
        all.into_iter().filter(|&id| id != self.me.id).collect()
    }

    fn send(&mut self, to: &[NodeId], digest: u32, message: bandit::Message, road: &mut Road<'_>) {
        self.sent.count(to.len(), message.kind().elects());
        let said = Said { digest, message };
        to.iter().for_each(|&to| road.send(to, &said));
    }

    /// Whoever leads says so in heartbeats, and whoever follows in answering them.
    fn note_agreement(&mut self, from: Peer, message: &bandit::Message) {
        let Some((machine, _)) = &self.running else { return };
        let Leadership { leader, epoch, .. } = machine.leadership();
        if self.agreed.0 != epoch {
            self.agreed = (epoch, BTreeSet::new());
        }
        let (bandit::Message::Heartbeat { term } | bandit::Message::HeartbeatAck { term }) =
            message
        else {
            return;
        };
        let leads = matches!(message, bandit::Message::Heartbeat { .. });
        let ours = leader == Some(if leads { from.id } else { self.me.id });
        if ours && epoch.is_some_and(|epoch| epoch.counter() == *term) {
            self.agreed.1.insert(from.id);
        }
    }

    /// Voters that were never met.
    fn missing(&self) -> impl Iterator<Item = &String> {
        self.electorate.voters.iter().filter(|name| !self.bound.contains_key(*name))
    }

    /// Whether a node that is alive goes by a voter's name and is not that voter.
    fn impostor(&self, name: &str) -> bool {
        let voter = self.bound.get(name);
        self.listed.values().any(|life| life.name == name && Some(&life.peer.id) != voter)
    }
}

impl Beside for Learned {
    fn channel(&self) -> Channel {
        Channel::Learned
    }

    fn start(&mut self, road: &mut Road<'_>) {
        (self.started, self.since) = (true, road.now);
        self.begin(road);
    }

    fn deadline(&self) -> Option<Time> {
        let (machine, _) = self.running.as_ref().filter(|_| !self.mute)?;
        machine.deadline().map(|(at, _)| at)
    }

    fn due(&mut self, road: &mut Road<'_>) {
        self.input(Input::Timeout, road);
    }

    fn hear(&mut self, from: Peer, message: &[u8], road: &mut Road<'_>) {
        let Some(Said { digest, message }) = road.read(message) else { return };
        match &self.running {
            None => road.refuse("not-running"),
            Some((_, ours)) if *ours != digest => {
                self.dissenter = Some((from.id, road.now));
                road.refuse("other-voters");
            }
            Some(_) => {
                self.input(Input::Message { from, via: from.id, message: &message }, road);
                self.note_agreement(from, &message);
            }
        }
    }

    fn leadership(&self, _now: Time) -> Leadership {
        match self.running.as_ref().filter(|_| !self.mute && self.started) {
            Some((machine, _)) => machine.leadership(),
            None => Leadership::unknown(Mode::Learned, Why::Electing { since: self.since }),
        }
    }

    fn stalled(&mut self, road: &mut Road<'_>) {
        self.input(Input::Command(bandit::Command::Void), road);
    }

    fn observe(&mut self, observes: bool, road: &mut Road<'_>) {
        self.observes = observes;
        if self.started {
            self.input(Input::Command(bandit::Command::Observe(observes)), road);
        }
    }

    fn resign(&mut self, road: &mut Road<'_>) -> Result<(), Refused> {
        self.input(Input::Command(bandit::Command::Resign), road);
        Ok(())
    }

    fn transfer(&mut self, _to: NodeId, _road: &mut Road<'_>) -> Result<(), Refused> {
        let reason = "it is learned: the voters choose; resign instead".to_owned();
        Err(Refused::Impossible(reason))
    }

    fn leave(&mut self, road: &mut Road<'_>) {
        self.input(Input::Leave, road);
        self.write(road);
    }

    fn on_membership(&mut self, event: MembershipEvent, road: &mut Road<'_>) {
        let (MembershipEvent::Joined(id)
        | MembershipEvent::Suspected { id, .. }
        | MembershipEvent::Refuted(id)
        | MembershipEvent::Failed { id, .. }
        | MembershipEvent::Left(id)
        | MembershipEvent::Introduced(id)) = event;
        let Some(peer) = self.listed.get(&id).map(|life| life.peer) else { return };
        let feed = match event {
            MembershipEvent::Suspected { .. } => Feed::Suspected(peer),
            MembershipEvent::Refuted(_) => Feed::Up(peer),
            MembershipEvent::Failed { .. } => Feed::Failed(peer),
            MembershipEvent::Left(_) => Feed::Left(peer),
            MembershipEvent::Joined(_) | MembershipEvent::Introduced(_) => return,
        };
        if matches!(feed, Feed::Failed(_) | Feed::Left(_)) {
            self.listed.remove(&id);
        }
        self.input(Input::Feed(feed), road);
    }

    fn on_listed(&mut self, listed: &[Listed], road: &mut Road<'_>) {
        let before = core::mem::take(&mut self.listed);
        let life = |one: &Listed| {
            let takes_part = one.standing(road.group).is_some();
            (one.peer.id, Life { peer: one.peer, name: one.name.clone(), takes_part })
        };
        self.listed = listed.iter().map(life).collect();
        if self.running.is_none() {
            let known = self.bound.len();
            for Life { peer, name, takes_part } in self.listed.values() {
                let same = |other: &&Life| other.name == *name && other.takes_part;
                let alone = self.listed.values().filter(same).count() == 1;
                if *takes_part && alone && self.electorate.voters.contains(name) {
                    self.bound.entry(name.clone()).or_insert(peer.id);
                }
            }
            if self.bound.len() > known {
                let kept = road.store.keep_voters(road.group, &self.bound);
                // Who votes must not be forgotten either.
                self.mute |= kept.is_err();
                road.kept(kept);
                self.build();
                self.begin(road);
            }
        }
        let newer = |peer: &Peer| before.get(&peer.id).is_none_or(|life| life.peer != *peer);
        let up: Vec<Peer> = listed.iter().map(|one| one.peer).filter(newer).collect();
        up.into_iter().for_each(|peer| self.input(Input::Feed(Feed::Up(peer)), road));
    }

    fn beliefs(&self) -> BTreeMap<NodeId, (NodeId, Epoch)> {
        let leader = self.running.as_ref().and_then(|(machine, _)| machine.leadership().leader);
        let (Some(leader), (Some(epoch), agreed)) = (leader, &self.agreed) else {
            return BTreeMap::new();
        };
        agreed.iter().map(|&id| (id, (leader, *epoch))).collect()
    }

    fn words(&self, now: Time) -> Option<String> {
        if self.mute {
            let words =
                "the disk did not take a vote; this node takes no part until it is restarted";
            return Some(words.to_owned());
        }
        let missing: Vec<&str> = self.missing().map(String::as_str).collect();
        if !missing.is_empty() {
            let names = missing.join(", ");
            return Some(format!("waits to meet every voter once; not met yet: {names}"));
        }
        let (id, at) = self.dissenter?;
        let life = self.listed.get(&id).filter(|_| now.since(at) < RECENT)?;
        Some(format!("{} means other voters than this node, by name or identity", life.name))
    }

    fn report(&mut self, of: NodeId, percent: u8, road: &mut Road<'_>) -> Result<(), Refused> {
        if !self.bound.values().any(|&id| id == of) {
            return Err(Refused::Impossible("it is none of the voters".to_owned()));
        }
        self.input(Input::Feed(Feed::Reported { id: of, percent }), road);
        Ok(())
    }

    fn scores(&self) -> Vec<ScoreStatus> {
        let Some((machine, _)) = &self.running else { return vec![] };
        let named = |of: NodeId| {
            let found = self.bound.iter().find(|&(_, &id)| id == of);
            found.map(|(name, _)| name.clone()).unwrap_or_default()
        };
        let score = |(place, opinion): (usize, bandit::Opinion)| {
            let name = named(opinion.id);
            let why = match (opinion.out, opinion.samples) {
                _ if self.impostor(&name) => {
                    "another node goes by this name, and has no vote".to_owned()
                }
                (true, _) => "away, or failed its electors and was not heard of since".to_owned(),
                (false, 0) => "nothing is known of it yet".to_owned(),
                (false, samples) => {
                    let failed = opinion.cost * samples as f64;
                    format!("amiss in about {failed:.1} of {samples} samples that still count")
                }
            };
            ScoreStatus {
                rank: u32::try_from(place + 1).unwrap_or(u32::MAX),
                id: format!("{:016x}", opinion.id.get()),
                name,
                score: ((1.0 - opinion.cost) * 1000.0).round() / 1000.0,
                samples: Some(opinion.samples),
                away: opinion.out,
                why,
            }
        };
        machine.opinions().into_iter().enumerate().map(score).collect()
    }

    fn sent(&self) -> Sent {
        self.sent
    }
}

/// A message of those who mean the same voters.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Said {
    digest: u32,
    message: bandit::Message,
}

impl Wire for Said {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u32(self.digest);
        self.message.encode(sink);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { digest: reader.u32("voters")?, message: bandit::Message::decode(reader)? })
    }
}

/// Of identities in order. One list in four thousand million passes for another.
fn digest(members: &[NodeId]) -> u32 {
    let text: Vec<String> = members.iter().map(|id| format!("{:016x}", id.get())).collect();
    Group::named(&text.join(",")).number()
}

/// How often what was learnt is written, at most, while nothing else is. Losing it costs what it took to learn.
const BELIEFS: Duration = Duration::from_secs(600);
/// How long it matters that somebody spoke of other voters.
const RECENT: Duration = Duration::from_secs(60);
