//! What churn-tolerant elections are measured by: from the call for an election to the last node that knows its
//! outcome, what was said on the way, and whether it was right.
//!
//! Sizes of messages are those of `docs/protocols/churn-tolerant.md`, which leave encodings out of the comparison;
//! real bytes are counted by the engine.

use bellwether_proto::{
    Duration, Election, ElectionId, Epoch, Input, InputOf, Leadership, NodeId, Time,
    election::churn_tolerant::{self, ChurnTolerant, Command, Criterion, Form, Health, Message},
    stack::{self, Stack},
};

use crate::{
    engine::{Observer, State},
    observe::{Favourite, Metric},
    world::Travel,
};

/// A node whose leader is found by a churn-tolerant election.
pub trait EventualNode: Election<Message: EventualMessage> {
    /// The election of it.
    fn election(&self) -> &ChurnTolerant;

    /// Whether this command calls for one.
    fn calls(command: &Self::Command) -> bool;
}

/// A message that may belong to such an election.
pub trait EventualMessage {
    /// The message of the election, if it is one.
    fn election_message(&self) -> Option<&Message>;
}

impl EventualNode for ChurnTolerant {
    fn election(&self) -> &ChurnTolerant {
        self
    }

    fn calls(command: &Command) -> bool {
        *command == Command::Elect
    }
}

impl EventualMessage for Message {
    fn election_message(&self) -> Option<&Message> {
        Some(self)
    }
}

impl EventualNode for Stack {
    fn election(&self) -> &ChurnTolerant {
        self.election(ElectionId::default()).expect("simulated nodes take part in this one")
    }

    fn calls(command: &stack::Command) -> bool {
        command.command == Command::Elect
    }
}

impl EventualMessage for stack::Message {
    fn election_message(&self) -> Option<&Message> {
        match self {
            Self::Election(_, message) => Some(message),
            Self::Membership(_) | Self::Churn(_) => None,
        }
    }
}

/// Watches elections; what it tells is about the last one that was asked for, or all there were if none was.
#[derive(Clone, Debug)]
pub struct EventualWatch {
    config: churn_tolerant::Config,
    /// What each node is worth, by number; nothing after the last.
    attributes: Vec<u32>,
    /// Who never leads.
    observers: Vec<u32>,
    nodes: Vec<Seen>,
    /// When the election began.
    began: Option<Time>,
    /// Nodes that ask around.
    asking: u32,
    counts: Counts,
    // Of the input being handled:
    timeout: bool,
    /// The last claim of its node to lead, if it made one.
    claim: Option<(Epoch, bool)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    live: bool,
    leader: Option<NodeId>,
    /// The token under which it leads, if there are tokens.
    token: Option<Epoch>,
    /// When it first named that one, under that token.
    since: Time,
    changes: u32,
    attempt: Option<(Epoch, u32)>,
    attempts: u32,
    /// What it last said of itself, and whether it told everybody since the election began.
    claim: Option<(Epoch, bool)>,
    announced: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    queries: u32,
    unicasts: u32,
    multicasts: u32,
    bytes: u64,
    hop_bytes: u64,
}

impl EventualWatch {
    /// Nobody is there yet.
    pub fn new(nodes: u32, config: churn_tolerant::Config) -> Self {
        Self {
            config,
            attributes: Vec::new(),
            observers: Vec::new(),
            nodes: vec![Seen::default(); nodes as usize],
            began: None,
            asking: 0,
            counts: Counts::default(),
            timeout: false,
            claim: None,
        }
    }

    /// The same, where nodes are worth different `attributes`, by number, and `observers` never lead.
    pub fn with_roles(self, attributes: Vec<u32>, observers: Vec<u32>) -> Self {
        Self { attributes, observers, ..self }
    }

    /// Back to that.
    pub fn renew(&mut self) {
        self.nodes.fill(Seen::default());
        (self.began, self.asking, self.counts) = (None, 0, Counts::default());
    }

    /// Whether anybody asks around.
    pub fn is_asking(&self) -> bool {
        self.asking > 0
    }

    /// The leader that all live nodes name, if it is one of them.
    pub fn agreed(&self) -> Option<NodeId> {
        let mut live = self.live();
        let leader = live.next()?.1.leader?;
        let same = live.all(|(_, seen)| seen.leader == Some(leader));
        (same && self.nodes.get(leader.get() as usize)?.live).then_some(leader)
    }

    /// What it came to; `unhealthiness` is each node's, over all lists.
    pub fn values(&self, unhealthiness: &[u64]) -> Vec<(Metric, Option<f64>)> {
        let agreed = self.agreed();
        let leader = self.favourite().map(|leader| NodeId::new(u64::from(leader)));
        let better = |leader| self.live().filter(|&(node, _)| self.is_better(node, leader)).count();
        let hash_rank = leader.map(better);
        let ignores = self.config.health() == Health::Ignore;
        let wrong = hash_rank.is_none() || (ignores && hash_rank != Some(0));
        let live = self.live().count() as f64;
        let last = self.live().map(|(_, seen)| seen.since).max();
        let completion = |began: Time| {
            Some(last?.since(began)).filter(|_| agreed.is_some()).map(Duration::as_secs_f64)
        };
        let announced = self.nodes.iter().filter(|seen| seen.announced).count();
        let changes: u32 = self.live().map(|(_, seen)| seen.changes).sum();
        let Counts { queries, unicasts, multicasts, bytes, hop_bytes } = self.counts;
        let attempts = self.nodes.iter().map(|seen| seen.attempts);
        let initiators = attempts.clone().filter(|&attempts| attempts > 0).count();
        let flag = |flag: bool| Some(f64::from(u8::from(flag)));
        vec![
            (Metric::CompletionTime, self.began.and_then(completion)),
            (Metric::Undecided, flag(agreed.is_none())),
            (Metric::WrongLeader, flag(wrong)),
            (Metric::HashRank, hash_rank.map(|rank| rank as f64)),
            (
                Metric::UnhealthyRank,
                leader.map(|leader| self.unhealthy_rank(leader, unhealthiness)),
            ),
            (Metric::AnnouncedLeaders, Some(announced as f64)),
            (Metric::ChangesPerNode, (live > 0.0).then(|| f64::from(changes) / live)),
            (Metric::Attempts, attempts.max().map(f64::from)),
            (Metric::Initiators, Some(initiators as f64)),
            (Metric::Queries, Some(f64::from(queries))),
            (Metric::Unicasts, Some(f64::from(unicasts))),
            (Metric::Multicasts, Some(f64::from(multicasts))),
            (Metric::ModelBytes, Some(bytes as f64)),
            (Metric::ModelHopBytes, Some(hop_bytes as f64)),
        ]
    }

    /// Whether this one ought to lead rather than the other.
    fn is_better(&self, node: NodeId, other: NodeId) -> bool {
        let criterion = self.config.criterion();
        let worth = |id: NodeId| match criterion {
            Criterion::Attribute => self.attributes.get(id.get() as usize).copied(),
            Criterion::Hash | Criterion::Identity => None,
        };
        let [ours, theirs] = [worth(node), worth(other)].map(Option::unwrap_or_default);
        !self.observers.contains(&(node.get() as u32))
            && (ours > theirs || (ours == theirs && criterion.prefers(node, other)))
    }

    /// How many live nodes are less healthy; who was never suspected is the healthiest.
    fn unhealthy_rank(&self, leader: NodeId, unhealthiness: &[u64]) -> f64 {
        let of = |node: NodeId| unhealthiness.get(node.get() as usize).copied().unwrap_or(0);
        let count = match of(leader) {
            0 => self.live().count() - 1,
            own => self.live().filter(|&(node, _)| of(node) > own).count(),
        };
        count as f64
    }

    fn live(&self) -> impl Iterator<Item = (NodeId, &Seen)> {
        let numbered = (0..).map(NodeId::new).zip(&self.nodes);
        numbered.filter(|(_, seen)| seen.live)
    }

    fn begin(&mut self, now: Time) {
        // Several may be asked at one instant: that is one election.
        if self.began == Some(now) {
            return;
        }
        self.began = Some(now);
        self.counts = Counts::default();
        for seen in &mut self.nodes {
            (seen.changes, seen.attempts, seen.announced) = (0, 0, false);
        }
    }
}

/// The size of a message in the comparisons of the thesis.
fn model_bytes(message: &Message) -> u64 {
    match message {
        Message::Query(query) => {
            let sizes = if (query.candidates, query.excluded) == (1, 0) { 0 } else { 2 };
            24 + sizes + 12 * query.dead.len() as u64
        }
        Message::Response(response) => {
            24 + 8 * response.candidates.len() as u64 + 12 * response.excluded.len() as u64
        }
        Message::NotifyLeader { .. } => 32,
        Message::Leader(_) => 48,
        Message::LeaderAck { .. } => 24,
        Message::Object { .. } => 40,
    }
}

impl<M: EventualNode> Observer<M> for EventualWatch {
    fn started(&mut self, _now: Time, node: NodeId, _state: State) {
        self.nodes[node.get() as usize] = Seen { live: true, ..Seen::default() };
    }

    #[inline]
    fn input(&mut self, now: Time, _node: NodeId, input: &InputOf<'_, M>) {
        self.timeout = matches!(input, Input::Timeout);
        if matches!(input, Input::Command(command) if M::calls(command)) {
            self.begin(now);
        }
    }

    #[inline]
    fn sent(&mut self, node: NodeId, _to: Option<NodeId>, message: &M::Message, way: &Travel) {
        let Some(message) = message.election_message() else { return };
        let bytes = model_bytes(message);
        self.counts.bytes += bytes;
        self.counts.hop_bytes += bytes * u64::from(way.transmissions);
        match message {
            Message::Query(_) => {
                self.counts.queries += 1;
                self.counts.unicasts += 1;
            }
            Message::Response(_) | Message::NotifyLeader { .. } | Message::Object { .. } => {
                self.counts.unicasts += 1;
            }
            Message::Leader(claim) if claim.leader.peer.id == node => {
                self.claim = Some((claim.epoch, claim.confirmed));
            }
            Message::Leader(_) | Message::LeaderAck { .. } => {}
        }
    }

    #[inline]
    fn handled(&mut self, now: Time, node: NodeId, machine: &M) {
        let seen = &mut self.nodes[node.get() as usize];
        let attempt = machine.election().attempt();
        let attempts = attempt != seen.attempt;
        if attempts {
            self.asking += u32::from(attempt.is_some());
            self.asking -= u32::from(seen.attempt.is_some());
            seen.attempt = attempt;
            if attempt.is_some() {
                self.began.get_or_insert(now);
                seen.attempts += 1;
            }
        }
        let Leadership { leader, epoch: token, .. } = machine.leadership();
        let changes = leader != seen.leader;
        if changes || token != seen.token {
            (seen.leader, seen.token, seen.since) = (leader, token, now);
            seen.changes += u32::from(changes);
        }
        if let Some(claim) = self.claim.take() {
            // Telling everybody, as opposed to telling again those that did not acknowledge, or whoever asks.
            // Hardened, each token is told everybody once, and once more when it is confirmed. As published
            // tokens mean nothing, but a leader speaks only when it is notified, by another or by itself.
            let published = self.config.form() == Form::AsPublished;
            let notified = published && (!self.timeout || attempts || changes);
            if seen.claim != Some(claim) || notified {
                seen.claim = Some(claim);
                seen.announced = true;
                self.counts.multicasts += 1;
            }
        }
    }

    fn stopped(&mut self, _now: Time, node: NodeId) {
        let seen = &mut self.nodes[node.get() as usize];
        self.asking -= u32::from(seen.attempt.is_some());
        let Seen { attempts, announced, .. } = *seen;
        *seen = Seen { attempts, announced, ..Seen::default() };
    }
}

impl Favourite for EventualWatch {
    fn favourite(&self) -> Option<u32> {
        let mut named: Vec<u32> = self
            .live()
            .filter_map(|(_, seen)| Some(seen.leader?.get() as u32))
            .filter(|&leader| self.nodes.get(leader as usize).is_some_and(|seen| seen.live))
            .collect();
        named.sort_unstable();
        let most =
            named.chunk_by(|a, b| a == b).max_by_key(|same| (same.len(), u32::MAX - same[0]));
        most.map(|same| same[0])
    }
}
