//! Learned elections: by the votes of a majority, for whoever was found to be the most reliable.
//!
//! The settings name the voters; their identities are learnt. Whoever is met first under a voter's name is that voter
//! from then on, on disk: two lists of voters that differ would have majorities that need not meet. Until all of them
//! were met once, nobody is elected. A voter that has lost its disk comes back under another identity and has no vote: it
//! would not know how it voted before.
//!
//! ```text
//! Unbound --a voter's name is met, alone--> Unbound   its identity is kept
//! Unbound --all voters were met-----------> Running   the machine starts
//! Running --a message of other voters-----> Running   refused: other-voters
//! any     --the disk refuses--------------> any       mute, and names nobody, until it has taken what it refused
//! ```
//!
//! Every message begins with a digest of the voters' identities. Whoever has another list is not heard.

use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec,
    vec::Vec,
};

use super::{Kept, Listed, Port, Score, packet, plan::VotersConfig};
use crate::{
    election::bandit::{self, Bandit, Durable, Feed},
    epoch::Epoch,
    id::{NodeId, Peer},
    leadership::{Election as _, Leadership, Mode, Why},
    machine::{Effect, Input, InputOf, Machine as _, Outbox, OutboxOf, Rejected},
    membership::medley::MembershipEvent,
    rng::{Seed, mix},
    time::{Duration, Time},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// What a voter must not forget: who votes, and how it voted.
#[derive(Clone, Debug, Default, Hash, PartialEq)]
pub struct KeptBallot {
    /// Who each voter is, as far as it was ever met.
    pub voters: BTreeMap<String, NodeId>,
    /// Term, vote and beliefs; none if it never voted nor heard of a term.
    pub durable: Option<Durable>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Voters {
    me: Peer,
    config: VotersConfig,
    seed: Seed,
    /// Who each voter is, as far as it was ever met.
    bound: BTreeMap<String, NodeId>,
    /// The machine and a digest of its voters, once all of them were met.
    running: Option<(Box<Bandit>, u32)>,
    out: OutboxOf<Bandit>,
    /// Everybody alive, and whether they take part.
    listed: BTreeMap<NodeId, Life>,
    /// What was handed out to be kept of the machine, and what should be by now.
    written: Option<Durable>,
    newest: Option<Durable>,
    written_at: Time,
    started: bool,
    observes: bool,
    since: Time,
    /// Who spoke last of other voters, and when.
    dissenter: Option<(NodeId, Time)>,
    /// Who has said so of the present leader, under the present token.
    agreed: (Option<Epoch>, BTreeSet<NodeId>),
}

#[derive(Clone, Debug)]
struct Life {
    peer: Peer,
    name: String,
    takes_part: bool,
}

impl Voters {
    pub(super) fn new(
        me: Peer,
        name: &str,
        config: VotersConfig,
        seed: Seed,
        kept: KeptBallot,
    ) -> Self {
        let KeptBallot { voters: mut bound, durable: written } = kept;
        bound.retain(|name, _| config.voters.contains(name));
        if config.voters.iter().any(|voter| voter == name) {
            bound.insert(name.to_owned(), me.id);
        }
        let mut voters = Self {
            me,
            config,
            seed,
            bound,
            running: None,
            out: Outbox::new(),
            listed: BTreeMap::new(),
            newest: written.clone(),
            written,
            written_at: Time::ZERO,
            started: false,
            observes: false,
            since: Time::ZERO,
            dissenter: None,
            agreed: (None, BTreeSet::new()),
        };
        voters.build();
        voters
    }

    /// The machine, once all voters were met.
    pub fn machine(&self) -> Option<&Bandit> {
        self.running.as_ref().map(|(machine, _)| &**machine)
    }

    /// Whether this node votes, or listens to those who do.
    pub(super) fn knows(&self, id: NodeId) -> bool {
        self.bound.values().any(|&voter| voter == id) || self.listed.contains_key(&id)
    }

    /// Makes the machine, if every voter is known.
    fn build(&mut self) {
        if self.running.is_some() || self.bound.len() < self.config.voters.len() {
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
        let machine = Bandit::new(self.me, members, self.config.config, self.seed, durable);
        self.running = Some((Box::new(machine), digest));
    }

    fn begin(&mut self, port: &mut Port<'_>) {
        if !self.started || self.running.is_none() {
            return;
        }
        self.tell(Input::Start, port);
        self.tell(Input::Command(bandit::Command::Observe(self.observes)), port);
        let lives: Vec<Peer> = self.listed.values().map(|life| life.peer).collect();
        lives.into_iter().for_each(|peer| self.tell(Input::Feed(Feed::Up(peer)), port));
    }

    fn input(&mut self, input: InputOf<'_, Bandit>, port: &mut Port<'_>) -> Result<(), Rejected> {
        let Some((machine, digest)) = &mut self.running else { return Ok(()) };
        let (result, digest) = (machine.handle(port.now, input, &mut self.out), *digest);
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { to, message } => self.send(&[to], digest, &message, port),
                Effect::Broadcast(message) | Effect::Multicast(message) => {
                    let everybody = self.everybody();
                    self.send(&everybody, digest, &message, port);
                }
                Effect::Persist(durable) => {
                    self.newest = Some(durable);
                    self.keep(port);
                }
                Effect::Emit(
                    bandit::Event::Started { .. } | bandit::Event::DuplicateIdentity { .. },
                ) => {}
            }
        }
        result
    }

    /// The same, of an input that cannot be refused.
    fn tell(&mut self, input: InputOf<'_, Bandit>, port: &mut Port<'_>) {
        let told = self.input(input, port);
        debug_assert!(matches!(told, Ok(()) | Err(Rejected::NotRunning)), "{told:?}");
    }

    /// Terms and votes are kept before anything else happens; what was learnt, now and then.
    fn keep(&mut self, port: &mut Port<'_>) {
        let ballot = |durable: &Option<Durable>| {
            durable.as_ref().map(|durable| (durable.term, durable.voted_for))
        };
        let stale = port.now.since(self.written_at) >= BELIEFS;
        if ballot(&self.newest) != ballot(&self.written) || stale {
            self.write(port);
        }
    }

    fn write(&mut self, port: &mut Port<'_>) {
        (self.written, self.written_at) = (self.newest.clone(), port.now);
        let (voters, durable) = (self.bound.clone(), self.newest.clone());
        port.keep(Kept::Learned(KeptBallot { voters, durable }));
    }

    /// The voters, whether or not they are thought to be alive, and whoever else takes part.
    fn everybody(&self) -> Vec<NodeId> {
        let guests = self.listed.values().filter(|life| life.takes_part).map(|life| life.peer.id);
        let all: BTreeSet<NodeId> = self.bound.values().copied().chain(guests).collect();
        all.into_iter().filter(|&id| id != self.me.id).collect()
    }

    fn send(&self, to: &[NodeId], digest: u32, message: &bandit::Message, port: &mut Port<'_>) {
        let elects = message.kind().elects();
        for &to in to {
            let said = Message { digest, body: message.clone() };
            port.send(to, packet::Message::Learned(port.group, said), elects);
        }
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
        self.config.voters.iter().filter(|name| !self.bound.contains_key(*name))
    }

    /// Whether a node that is alive goes by a voter's name and is not that voter.
    fn impostor(&self, name: &str) -> bool {
        let voter = self.bound.get(name);
        self.listed.values().any(|life| life.name == name && Some(&life.peer.id) != voter)
    }

    pub(super) fn start(&mut self, port: &mut Port<'_>) {
        (self.started, self.since, self.written_at) = (true, port.now, port.now);
        self.begin(port);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.machine().filter(|_| self.started)?.deadline().map(|(at, _)| at)
    }

    pub(super) fn due(&mut self, port: &mut Port<'_>) {
        self.tell(Input::Timeout, port);
    }

    pub(super) fn hear(
        &mut self,
        from: Peer,
        message: &Message,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        match &self.running {
            None => Err(Rejected::NotRunning),
            Some((_, ours)) if *ours != message.digest => {
                self.dissenter = Some((from.id, port.now));
                Err(Rejected::OtherVoters { from })
            }
            Some(_) => {
                let body = &message.body;
                self.input(Input::Message { from, via: from.id, message: body }, port)?;
                self.note_agreement(from, body);
                Ok(())
            }
        }
    }

    pub(super) fn leadership(&self) -> Leadership {
        match self.machine().filter(|_| self.started) {
            Some(machine) => machine.leadership(),
            None => Leadership::unknown(Mode::Learned, Why::Electing { since: self.since }),
        }
    }

    /// The process was stopped, or its disk has recovered.
    pub(super) fn stalled(&mut self, port: &mut Port<'_>) {
        self.tell(Input::Command(bandit::Command::Void), port);
    }

    pub(super) fn observe(&mut self, observes: bool, port: &mut Port<'_>) {
        self.observes = observes;
        if self.started {
            self.tell(Input::Command(bandit::Command::Observe(observes)), port);
        }
    }

    pub(super) fn resign(&mut self, port: &mut Port<'_>) {
        self.tell(Input::Command(bandit::Command::Resign), port);
    }

    pub(super) fn leave(&mut self, port: &mut Port<'_>) {
        self.tell(Input::Leave, port);
        self.write(port);
    }

    pub(super) fn on_membership(&mut self, event: MembershipEvent, port: &mut Port<'_>) {
        let Some(peer) = self.listed.get(&event.id()).map(|life| life.peer) else { return };
        let feed = match event {
            MembershipEvent::Suspected { .. } => Feed::Suspected(peer),
            MembershipEvent::Refuted(_) => Feed::Up(peer),
            MembershipEvent::Failed { .. } => Feed::Failed(peer),
            MembershipEvent::Left(_) => Feed::Left(peer),
            MembershipEvent::Joined(_) | MembershipEvent::Introduced(_) => return,
        };
        if matches!(feed, Feed::Failed(_) | Feed::Left(_)) {
            self.listed.remove(&peer.id);
        }
        self.tell(Input::Feed(feed), port);
    }

    pub(super) fn on_listed(&mut self, listed: &[Listed], port: &mut Port<'_>) {
        let before = core::mem::take(&mut self.listed);
        let life = |one: &Listed| {
            let takes_part = one.standing(port.group).is_some();
            (one.peer.id, Life { peer: one.peer, name: one.name.clone(), takes_part })
        };
        self.listed = listed.iter().map(life).collect();
        if self.running.is_none() {
            let known = self.bound.len();
            for Life { peer, name, takes_part } in self.listed.values() {
                let same = |other: &&Life| other.name == *name && other.takes_part;
                let alone = self.listed.values().filter(same).count() == 1;
                if *takes_part && alone && self.config.voters.contains(name) {
                    self.bound.entry(name.clone()).or_insert(peer.id);
                }
            }
            if self.bound.len() > known {
                // Who votes must not be forgotten either.
                self.write(port);
                self.build();
                self.begin(port);
            }
        }
        let newer = |peer: &Peer| before.get(&peer.id).is_none_or(|life| life.peer != *peer);
        let up: Vec<Peer> = listed.iter().map(|one| one.peer).filter(newer).collect();
        up.into_iter().for_each(|peer| self.tell(Input::Feed(Feed::Up(peer)), port));
    }

    pub(super) fn beliefs(&self) -> BTreeMap<NodeId, (NodeId, Epoch)> {
        let leader = self.machine().and_then(|machine| machine.leadership().leader);
        let (Some(leader), (Some(epoch), agreed)) = (leader, &self.agreed) else {
            return BTreeMap::new();
        };
        agreed.iter().map(|&id| (id, (leader, *epoch))).collect()
    }

    /// What is in the way of a leader, in words.
    pub(super) fn words(&self, now: Time) -> Option<String> {
        let missing: Vec<&str> = self.missing().map(String::as_str).collect();
        if !missing.is_empty() {
            let names = missing.join(", ");
            return Some(format!("waits to meet every voter once; not met yet: {names}"));
        }
        let (id, at) = self.dissenter?;
        let life = self.listed.get(&id).filter(|_| now.since(at) < RECENT)?;
        Some(format!("{} means other voters than this node, by name or identity", life.name))
    }

    pub(super) fn report(
        &mut self,
        of: NodeId,
        percent: u8,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        if !self.bound.values().any(|&id| id == of) {
            return Err(Rejected::Refused { why: "it is none of the voters" });
        }
        self.tell(Input::Feed(Feed::Reported { id: of, percent }), port);
        Ok(())
    }

    pub(super) fn scores(&self) -> Vec<Score> {
        let Some(machine) = self.machine() else { return vec![] };
        let named = |of: NodeId| {
            let found = self.bound.iter().find(|&(_, &id)| id == of);
            found.map(|(name, _)| name.clone()).unwrap_or_default()
        };
        let score = |opinion: bandit::Opinion| {
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
            Score {
                id: opinion.id,
                name,
                score: libm::round((1.0 - opinion.cost) * 1000.0) / 1000.0,
                samples: Some(opinion.samples),
                away: opinion.out,
                why,
            }
        };
        machine.opinions().into_iter().map(score).collect()
    }
}

/// A message of those who mean the same voters.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Message {
    /// Of the voters' identities.
    pub digest: u32,
    /// What the machine says.
    pub body: bandit::Message,
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u32(self.digest);
        self.body.encode(sink);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { digest: reader.u32("voters")?, body: bandit::Message::decode(reader)? })
    }
}

/// Of identities in order. One list in four thousand million passes for another.
fn digest(members: &[NodeId]) -> u32 {
    members.iter().fold(members.len() as u64, |hash, id| mix(mix(hash) ^ id.get())) as u32
}

/// How often what was learnt is written, at most, while nothing else is. Losing it costs what it took to learn.
const BELIEFS: Duration = Duration::from_secs(600);
/// How long it matters that somebody spoke of other voters.
const RECENT: Duration = Duration::from_secs(60);
