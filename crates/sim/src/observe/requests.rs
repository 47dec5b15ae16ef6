//! What bandit elections are measured by: the rounds a client calls for, who wins them, and what is said on the way.

use std::collections::BTreeSet;

use bellwether_proto::{
    Duration, Effect, EffectOf, Election, Input, InputOf, Machine, NodeId, Time,
    election::bandit::{self, Feed, Kind, client},
};

use super::{Favourite, metric::Metric};
use crate::{
    engine::{Observer, State},
    invariant::{OneLeaderPerTerm, Safety, Violation},
    world::{
        Travel,
        client::{Event, NodeOrClient},
    },
};

/// A round of a client: from its broadcast to its look at who leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Round {
    /// When it began.
    pub began: Time,
    /// Which request called for it, from 0.
    pub request: u64,
    /// The new leader; `None` if there was none in time.
    pub leader: Option<NodeId>,
}

/// What became of the requests of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// Every round, in order.
    pub rounds: Vec<Round>,
    /// Requests answered, and forgotten.
    pub answered: u64,
    /// Requests the client has given up.
    pub abandoned: u64,
    /// Time from a request to its answer, over all that were answered.
    pub waited: Duration,
    /// From the failure of the leader the client believed in to the next answer.
    pub outages: Vec<Duration>,
    /// Messages sent, by [`Kind`]; one to all members counts for each of the others.
    pub sent: [u64; Kind::COUNT],
    /// Terms in which some node has shared a list; of the hardened profile alone.
    pub terms: u64,
    /// Most nodes that named themselves at once.
    pub most_leading: u32,
    /// For how long more than one node named itself.
    pub several: Duration,
    /// What each node believes of each in the end, and on how many samples; empty for one that is down.
    pub beliefs: Vec<Vec<(f64, u64)>>,
    /// How often the machine of each node fails in the end; empty without an environment.
    pub failures: Vec<f64>,
    /// When it ended.
    pub end: Time,
}

impl Served {
    /// Rounds without a new leader.
    pub fn failed(&self) -> u64 {
        self.rounds.iter().filter(|round| round.leader.is_none()).count() as u64
    }

    /// Lengths of the runs of consecutive failed rounds.
    pub fn streaks(&self) -> Vec<u64> {
        let failed: Vec<bool> = self.rounds.iter().map(|round| round.leader.is_none()).collect();
        let runs = failed.chunk_by(|a, b| a == b).filter(|run| run[0]);
        runs.map(|run| run.len() as u64).collect()
    }

    /// Messages of elections.
    pub fn election_messages(&self) -> u64 {
        let kinds = [
            Kind::ShareCandidate,
            Kind::ConfirmElection,
            Kind::Vote,
            Kind::TermHint,
            Kind::Resigned,
        ];
        kinds.into_iter().map(|kind| self.sent[kind as usize]).sum()
    }
}

/// Watches a client and the nodes that serve it.
pub struct RequestWatch {
    members: u32,
    served: Served,
    terms: BTreeSet<u64>,
    hardened: bool,
    names: Vec<Option<NodeId>>,
    leading: u32,
    since: Time,
    /// Whom the client believes in, and since when that one is down.
    believed: Option<NodeId>,
    outage: Option<Time>,
    finished: bool,
    safety: Safety,
}

impl RequestWatch {
    /// Watches `nodes` nodes, of which the first `members` elect; invariants are those of the hardened profile.
    pub fn new(nodes: u32, members: u32, hardened: bool) -> Self {
        let safety = match hardened {
            true => Safety::new(nodes).and(OneLeaderPerTerm::default()),
            false => Safety::without_properties(nodes),
        };
        Self {
            members,
            served: Served::default(),
            terms: BTreeSet::new(),
            hardened,
            names: vec![None; nodes as usize],
            leading: 0,
            since: Time::ZERO,
            believed: None,
            outage: None,
            finished: false,
            safety,
        }
    }

    /// What it came to; `asked` says whether there was a client.
    pub fn values(&self, asked: bool) -> Vec<(Metric, Option<f64>)> {
        let served = &self.served;
        let rounds = served.rounds.len() as f64;
        let of_client = |value: f64| asked.then_some(value);
        let mean =
            |sum: Duration, count: usize| (count > 0).then(|| sum.as_secs_f64() / count as f64);
        let outage = served.outages.iter().fold(Duration::ZERO, |sum, &one| sum + one);
        let pings = served.sent[Kind::Ping as usize] + served.sent[Kind::PingReply as usize];
        vec![
            (Metric::LeRounds, of_client(rounds)),
            (Metric::FailedRounds, of_client(served.failed() as f64)),
            (
                Metric::LongestStreak,
                of_client(served.streaks().into_iter().max().unwrap_or(0) as f64),
            ),
            (Metric::Terms, self.hardened.then_some(served.terms as f64)),
            (Metric::Answered, of_client(served.answered as f64)),
            (Metric::ResponseDelay, mean(served.waited, served.answered as usize)),
            (Metric::Outage, mean(outage, served.outages.len())),
            (Metric::LeadersAtOnce, Some(f64::from(served.most_leading))),
            (Metric::SeveralLeading, Some(served.several.as_secs_f64())),
            (Metric::ElectionMessages, Some(served.election_messages() as f64)),
            (Metric::PingMessages, Some(pings as f64)),
            (Metric::Violations, Some(self.violations().len() as f64)),
        ]
    }

    /// What became of the requests.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// The run is over: what each node then believes, and how often each machine fails.
    pub fn finish(&mut self, end: Time, beliefs: Vec<Vec<(f64, u64)>>, failures: Vec<f64>) {
        self.lead(end, 0);
        let terms = self.terms.len() as u64;
        self.served = Served { terms, end, beliefs, failures, ..std::mem::take(&mut self.served) };
    }

    /// The first violation of each invariant.
    pub fn violations(&self) -> &[Violation] {
        self.safety.violations()
    }

    /// For each invariant its name, the situation it guards against, and whether that could have arisen.
    pub fn sometimes(&self) -> Vec<(&'static str, &'static str, bool)> {
        self.safety.sometimes()
    }

    fn name(&mut self, now: Time, node: NodeId, leader: Option<NodeId>) {
        let slot = node.get() as usize;
        let before = self.names[slot];
        if before == leader {
            return;
        }
        self.names[slot] = leader;
        let leading =
            self.leading + u32::from(leader == Some(node)) - u32::from(before == Some(node));
        self.lead(now, leading);
    }

    fn lead(&mut self, now: Time, leading: u32) {
        if self.leading > 1 {
            self.served.several += now.since(self.since);
        }
        (self.leading, self.since) = (leading, now);
        self.served.most_leading = self.served.most_leading.max(leading);
    }

    fn went_down(&mut self, now: Time, node: NodeId) {
        if self.believed == Some(node) {
            self.outage.get_or_insert(now);
        }
    }
}

impl Observer<NodeOrClient> for RequestWatch {
    fn started(&mut self, _now: Time, node: NodeId, state: State) {
        if state == State::Lost {
            self.safety.forgot(node);
        }
    }

    #[inline]
    fn input(&mut self, now: Time, node: NodeId, input: &InputOf<'_, NodeOrClient>) {
        if matches!(input, Input::Feed(Feed::Halted)) {
            self.went_down(now, node);
        }
    }

    #[inline]
    fn effect(&mut self, now: Time, _node: NodeId, effect: &EffectOf<NodeOrClient>) {
        let Effect::Emit(event) = effect else { return };
        match event {
            Event::Node(bandit::Event::Started { term }) => {
                if self.hardened {
                    self.terms.insert(*term);
                }
            }
            Event::Node(_) => {}
            Event::Client(client::Event::Answered { after }) => {
                self.served.answered += 1;
                self.served.waited += *after;
                if let Some(since) = self.outage.take() {
                    self.served.outages.push(now.since(since));
                }
            }
            Event::Client(client::Event::Abandoned) => self.served.abandoned += 1,
            &Event::Client(client::Event::Round { began, request, leader }) => {
                self.served.rounds.push(Round { began, request, leader });
            }
            Event::Client(client::Event::Finished) => self.finished = true,
        }
    }

    #[inline]
    fn sent(
        &mut self,
        _node: NodeId,
        to: Option<NodeId>,
        message: &<NodeOrClient as Machine>::Message,
        _way: &Travel,
    ) {
        let kind = message.kind();
        let copies = match to {
            Some(_) => 1,
            // The client hears who leads as well.
            None => u64::from(self.members - 1) + u64::from(kind == Kind::ConfirmElection),
        };
        self.served.sent[kind as usize] += copies;
    }

    #[inline]
    fn handled(&mut self, now: Time, node: NodeId, machine: &NodeOrClient) {
        match machine {
            NodeOrClient::Node { .. } => {
                let leadership = machine.leadership();
                if self.safety.answered(now, node, leadership) {
                    self.name(now, node, leadership.leader);
                }
            }
            NodeOrClient::Client { client, .. } => self.believed = Some(client.leader()),
        }
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        self.safety.stopped(node);
        self.went_down(now, node);
        self.name(now, node, None);
    }

    fn done(&self) -> bool {
        self.finished
    }
}

impl Favourite for RequestWatch {
    fn favourite(&self) -> Option<u32> {
        let mut named: Vec<u32> =
            self.names.iter().flatten().map(|leader| leader.get() as u32).collect();
        named.sort_unstable();
        let most =
            named.chunk_by(|a, b| a == b).max_by_key(|same| (same.len(), u32::MAX - same[0]));
        most.map(|same| same[0])
    }
}
