//! What bandit elections are measured by: the rounds a client calls for, who wins them, and what is said on the way.

use std::{collections::BTreeSet, sync::Arc};

use bellwether_proto::{
    Duration, Effect, EffectOf, Election, Input, InputOf, NodeId, Peer, Seed, Time,
    election::bandit::{Bandit, Feed, Kind, Profile, client, client::Client},
};

use crate::{
    engine::{Builder, Observer, Sim, Status, trace::TraceHash},
    invariant::{self, Invariant, OlderLifeStops, OneLeaderPerTerm, Sighting, Violation},
    observe::{log::Log, metric::Metric, watch::Watch},
    run::{
        Outcome, agreed, counted,
        faults::{self, Favourite, Word},
        outcome, simulate,
    },
    scenario::{BanditSettings, Scenario, State},
    world::{
        client::{Event, Party},
        environment::{Change, Weather},
        network::{Disconnected, Travel},
        world_of,
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
    /// Most nodes that named themselves at once, and for how long more than one did.
    pub most_leading: u32,
    /// The latter.
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
pub struct Serving {
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
    invariants: Vec<Box<dyn Invariant>>,
    violations: Vec<Violation>,
    answers: Vec<Option<bellwether_proto::Leadership>>,
}

impl Serving {
    fn new(nodes: u32, members: u32, hardened: bool) -> Self {
        let mut invariants = invariant::safety();
        invariants.push(Box::new(OneLeaderPerTerm::default()));
        if !hardened {
            invariants.clear();
        }
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
            invariants,
            violations: Vec::new(),
            answers: vec![None; nodes as usize],
        }
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

    fn judge(&mut self, now: Time, node: NodeId, machine: &Party) {
        let leadership = machine.leadership();
        let last = &mut self.answers[node.get() as usize];
        if last.as_ref().is_some_and(|last| last.same_answer(&leadership)) {
            return;
        }
        *last = Some(leadership);
        let sighting = Sighting { now, node, leadership };
        for invariant in &mut self.invariants {
            let name = invariant.name();
            if let Err(detail) = invariant.answer(&sighting)
                && self.violations.iter().all(|other| other.invariant != name)
            {
                self.violations.push(Violation { invariant: name, at: now, detail });
            }
        }
        self.name(now, node, leadership.leader);
    }
}

impl Observer<Party> for Serving {
    fn started(&mut self, _now: Time, node: NodeId, state: State) {
        if state == State::Lost {
            self.invariants.iter_mut().for_each(|invariant| invariant.forgot(node));
        }
    }

    #[inline]
    fn input(&mut self, now: Time, node: NodeId, input: &InputOf<'_, Party>) {
        if matches!(input, Input::Feed(Feed::Halted)) {
            self.went_down(now, node);
        }
    }

    #[inline]
    fn effect(&mut self, now: Time, _node: NodeId, effect: &EffectOf<Party>) {
        let Effect::Emit(event) = effect else { return };
        match event {
            Event::Node(bellwether_proto::election::bandit::Event::Started { term }) => {
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
        message: &<Party as bellwether_proto::Machine>::Message,
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
    fn handled(&mut self, now: Time, node: NodeId, machine: &Party) {
        match machine {
            Party::Node { .. } => self.judge(now, node, machine),
            Party::Client { client, .. } => self.believed = Some(client.leader()),
        }
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        self.answers[node.get() as usize] = None;
        self.went_down(now, node);
        self.name(now, node, None);
    }

    fn done(&self) -> bool {
        self.finished
    }
}

impl Favourite for Serving {
    fn favourite(&self) -> Option<u32> {
        let mut named: Vec<u32> =
            self.names.iter().flatten().map(|leader| leader.get() as u32).collect();
        named.sort_unstable();
        let most =
            named.chunk_by(|a, b| a == b).max_by_key(|same| (same.len(), u32::MAX - same[0]));
        most.map(|same| same[0])
    }
}

/// Runs a bandit election as the scenario says.
///
/// # Errors
///
/// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
pub(crate) fn run(
    scenario: &Scenario,
    settings: &BanditSettings,
    seed: u64,
    log: Log<'_>,
) -> Result<Outcome, Disconnected> {
    if settings.client.is_some() || settings.environment.is_some() {
        let Account { trace, values, violations, sometimes, served: _ } =
            serve(scenario, settings, seed, log)?;
        let (disagreements, ghosts) = (Vec::new(), OlderLifeStops::default());
        return Ok(Outcome { seed, trace, values, violations, sometimes, disagreements, ghosts });
    }
    let voters = scenario.network.nodes;
    let members: Arc<[NodeId]> = (0..u64::from(voters)).map(NodeId::new).collect();
    let config = settings.config;
    let build = move |me, seed, durable| Bandit::new(me, members.clone(), config, seed, durable);
    let mut watch = Watch::new(scenario.capacity(), scenario.until).telling(&log);
    if config.profile() == Profile::Hardened {
        watch = watch.by_majority_of(voters);
    }
    let mut sim = simulate(scenario, seed, Box::new(build), (watch, log))?;
    let end = sim.now();
    sim.observer_mut().0.finish(end);
    let watch = &sim.observer().0;
    Ok(Outcome {
        violations: watch.violations().to_vec(),
        sometimes: watch.sometimes(),
        disagreements: watch.agreement().disagreements().to_vec(),
        ..outcome(&sim, seed, agreed(watch, end))
    })
}

/// One run with all there is to know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// What became of the requests.
    pub served: Served,
    /// The digest of all that happened.
    pub trace: TraceHash,
    /// What was measured.
    pub values: Vec<(Metric, Option<f64>)>,
    /// Invariants that did not hold; of the hardened profile alone.
    pub violations: Vec<Violation>,
    /// For each invariant its name, the situation it guards against, and whether that could have arisen.
    pub sometimes: Vec<(&'static str, &'static str, bool)>,
}

/// Runs a bandit election with a client, an environment or both.
///
/// # Errors
///
/// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
pub fn serve(
    scenario: &Scenario,
    settings: &BanditSettings,
    seed: u64,
    log: Log<'_>,
) -> Result<Account, Disconnected> {
    let root = Seed::new(seed);
    let voters = scenario.network.nodes;
    let place_of_client = scenario.capacity();
    let nodes = place_of_client + u32::from(settings.client.is_some());
    let network = world_of(scenario, nodes, root)?;
    let hardened = settings.config.profile() == Profile::Hardened;
    let build = builder(settings, voters, place_of_client);
    let observer = (Serving::new(nodes, voters, hardened), log);
    let mut sim = Sim::new(network, nodes, root, build, observer);
    let weather = settings.environment.as_ref();
    let mut weather = weather.map(|it| Weather::new(it, voters, root.named("environment")));
    let client = settings.client.is_some();
    faults::play_at(&mut sim, scenario, root, Word::none(), |sim| {
        if client && sim.now() == Time::ZERO {
            sim.start(place_of_client, State::Lost);
        }
        let Some(weather) = &mut weather else { return Time::NEVER };
        while weather.next() <= sim.now() {
            let changes = weather.step(sim.now());
            apply(sim, &changes, hardened);
        }
        weather.next()
    })?;
    let end = sim.now();
    let beliefs = |node| match sim.machine(node).and_then(Party::as_node) {
        Some(node) => node.estimates().arms().iter().map(|arm| (arm.mean, arm.weight)).collect(),
        None => Vec::new(),
    };
    let beliefs = (0..voters).map(beliefs).collect();
    let serving = &mut sim.observer_mut().0;
    serving.lead(end, 0);
    serving.served.terms = serving.terms.len() as u64;
    serving.served.end = end;
    serving.served.beliefs = beliefs;
    serving.served.failures = weather.map_or_else(Vec::new, |weather| weather.failures().to_vec());
    let serving = &sim.observer().0;
    let mut sometimes = Vec::new();
    for invariant in &serving.invariants {
        let (situation, arose) = invariant.sometimes();
        sometimes.push((invariant.name(), situation, arose));
    }
    let own = values(serving, settings);
    Ok(Account {
        served: serving.served.clone(),
        trace: sim.trace_hash(),
        values: counted(&sim, own),
        violations: serving.violations.clone(),
        sometimes,
    })
}

fn builder(settings: &BanditSettings, voters: u32, place_of_client: u32) -> Builder<Party> {
    let members: Arc<[NodeId]> = (0..u64::from(voters)).map(NodeId::new).collect();
    let (config, client) = (settings.config, settings.client);
    Box::new(move |me: Peer, seed, durable| match client {
        Some(client) if me.id.get() == u64::from(place_of_client) => {
            Party::client(Client::new(me, members.clone(), client))
        }
        _ => Party::node(Bandit::new(me, members.clone(), config, seed, durable)),
    })
}

/// Hardened nodes crash and start again; the others fall silent and go on as they were.
fn apply<O: Observer<Party>>(sim: &mut Sim<Party, O>, changes: &[Change], hardened: bool) {
    for &change in changes {
        match (change, hardened) {
            (Change::Down(node), false) => sim.feed(node, Feed::Halted),
            (Change::Up(node), false) => sim.feed(node, Feed::Restored),
            (Change::Down(node), true) => sim.crash(node),
            (Change::Up(node), true) if sim.status(node) == Status::Down => {
                sim.start(node, State::Kept);
            }
            (Change::Up(_), true) => {}
        }
    }
}

fn values(serving: &Serving, settings: &BanditSettings) -> Vec<(Metric, Option<f64>)> {
    let served = &serving.served;
    let rounds = served.rounds.len() as f64;
    let asked = settings.client.is_some();
    let of_client = |value: f64| asked.then_some(value);
    let mean = |sum: Duration, count: usize| (count > 0).then(|| sum.as_secs_f64() / count as f64);
    let outage = served.outages.iter().fold(Duration::ZERO, |sum, &one| sum + one);
    let pings = served.sent[Kind::Ping as usize] + served.sent[Kind::PingReply as usize];
    vec![
        (Metric::LeRounds, of_client(rounds)),
        (Metric::FailedRounds, of_client(served.failed() as f64)),
        (Metric::LongestStreak, of_client(served.streaks().into_iter().max().unwrap_or(0) as f64)),
        (Metric::Terms, serving.hardened.then_some(served.terms as f64)),
        (Metric::Answered, of_client(served.answered as f64)),
        (Metric::ResponseDelay, mean(served.waited, served.answered as usize)),
        (Metric::Outage, mean(outage, served.outages.len())),
        (Metric::LeadersAtOnce, Some(f64::from(served.most_leading))),
        (Metric::SeveralLeading, Some(served.several.as_secs_f64())),
        (Metric::ElectionMessages, Some(served.election_messages() as f64)),
        (Metric::PingMessages, Some(pings as f64)),
        (Metric::Violations, Some(serving.violations.len() as f64)),
    ]
}
