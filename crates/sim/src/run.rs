//! Runs of scenarios, one or many, and what they amount to.

mod node;
mod report;

use std::{cell::RefCell, rc::Rc};

use bellwether_proto::{
    Boot, Duration, Election, ElectionId, Incarnation, Machine, NodeId, Peer, Seed, Time,
    churn::estimate,
    election::{
        announce::{
            Announce, Criterion,
            baseline::{Al, Sup, SupAl},
            several::Several,
        },
        churn_tolerant,
    },
    membership::{
        medley::{self, Addresses, Body, Contact, ContactChange, Introduction, Medley},
        ping::{self, Ping},
    },
    stack::{self, Profile, Stack, Standing},
};

pub use self::report::{Report, each_seed, run_many};
use crate::{
    announcing::{Announcement, Announcing},
    arbitrating, centring,
    detection::{Detected, Detecting},
    electing::{Electing, Electorate},
    engine::{Builder, Counters, Muffle, Observer, Sim},
    invariant::{OlderLifeStops, Violation},
    lists::{Lists, Promise},
    log::Log,
    membership_trace::{MembershipTrace, Recorder, Suspects},
    metric::{Hops, Metric},
    network::{Disconnected, Network, Placed, place},
    polls::{self, Poll, Polls},
    radio::{self, Usage},
    rolls::{Reel, Rolls},
    scenario::{
        AnnounceSettings, Initiator, Lists as ListSource, Loss, Missing, Protocol, Roles, Scenario,
        SharedTrace, Trials,
    },
    schedule::{self, Favourite, Survey, Word},
    serving,
    trace::TraceHash,
    watch::Watch,
    world::world,
};

/// What one run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The seed that, with the scenario, gives this run again.
    pub seed: u64,
    /// The digest of all that happened.
    pub trace: TraceHash,
    /// What was measured; `None` where there was nothing to measure.
    pub values: Vec<(Metric, Option<f64>)>,
    /// Invariants that did not hold.
    pub violations: Vec<Violation>,
    /// For each invariant its name, the situation it guards against, and whether that could have arisen.
    pub sometimes: Vec<(&'static str, &'static str, bool)>,
    /// When all did not agree: from, to. Empty without an election.
    pub disagreements: Vec<(Time, Time)>,
    /// Earlier lives of nodes that ran on beside later ones.
    pub ghosts: OlderLifeStops,
}

impl Outcome {
    /// The value of one metric.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values.iter().find(|(other, _)| *other == metric).and_then(|(_, value)| *value)
    }
}

/// Runs a scenario once.
///
/// # Errors
///
/// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Outcome, Disconnected> {
    run_logged(scenario, seed, Log::none())
}

/// Runs a scenario once and tells `log` every step.
///
/// # Errors
///
/// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
pub fn run_logged(scenario: &Scenario, seed: u64, log: Log<'_>) -> Result<Outcome, Disconnected> {
    match &scenario.protocol {
        Protocol::Announce(settings) => {
            let AnnounceSettings { config, random_goodness } = *settings;
            let build = move |me, seed: Seed, durable| {
                let goodness = || Criterion::Goodness(seed.named("goodness").rng().unit());
                let config = match random_goodness {
                    true => config.with_criterion(goodness()).expect("a goodness in [0, 1)"),
                    false => config,
                };
                Announce::new(me, config, seed, durable)
            };
            run_election(scenario, seed, log, Box::new(build))
        }
        &Protocol::Several(config) => {
            let build = move |me, seed, _| Several::new(me, config, seed);
            run_election(scenario, seed, log, Box::new(build))
        }
        &Protocol::Sup(config) => run_election(
            scenario,
            seed,
            log,
            Box::new(move |me, seed, _| Sup::new(me, config, seed)),
        ),
        &Protocol::Al(config) => {
            run_election(scenario, seed, log, Box::new(move |me, _, _| Al::new(me, config)))
        }
        &Protocol::SupAl(config) => {
            let build = move |me, seed, _| SupAl::new(me, config, seed);
            run_election(scenario, seed, log, Box::new(build))
        }
        &Protocol::Medley(config) => run_membership(scenario, seed, log, config),
        Protocol::ChurnTolerant { membership, election, roles } => {
            let members = members(scenario, seed, stacked(*membership, *election, roles.clone()))?;
            let electing = Electing::new(scenario.capacity(), *election).with_roles(roles.clone());
            run_stack(scenario, seed, log, electing, members)
        }
        Protocol::Ring(_) | Protocol::Leased { .. } => {
            let study = arbitrating::study(scenario, seed, log)?;
            Ok(study.expect("these are what it studies").outcome)
        }
        Protocol::Central(_) => {
            let study = centring::study(scenario, seed, log)?;
            Ok(study.expect("this is what it studies").outcome)
        }
        Protocol::Bandit(settings) => serving::run(scenario, settings, seed, log),
        Protocol::Node(settings) => node::run(scenario, settings, seed, log),
        Protocol::OnLists { lists, election } => {
            run_on_lists(scenario, seed, log, lists, *election)
        }
        Protocol::Ping(settings) => {
            let nodes = u64::from(scenario.capacity());
            let config = ping::Config::new(settings.period, settings.timeout, nodes)
                .expect("a scenario that was read holds a valid configuration");
            let build = Box::new(move |me: Peer, seed, _| Ping::new(me.id, config, seed));
            let sim = simulate(scenario, seed, build, ((), log))?;
            let machines = || (0..sim.len()).filter_map(|node| sim.machine(node));
            let acked: u64 = machines().map(|ping| u64::from(ping.acked())).sum();
            let missed: u64 = machines().map(|ping| u64::from(ping.missed())).sum();
            let own = [(Metric::Acked, Some(acked as f64)), (Metric::Missed, Some(missed as f64))];
            Ok(outcome(&sim, seed, own))
        }
    }
}

fn run_election<M: Election<Message: Announcement>>(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    build: Builder<M>,
) -> Result<Outcome, Disconnected> {
    let watch = Watch::new(scenario.capacity(), scenario.until).telling(&log);
    let announcing = Announcing::new(scenario.capacity(), scenario.until);
    let mut sim = simulate(scenario, seed, build, ((watch, announcing), log))?;
    let end = sim.now();
    sim.observer_mut().0.0.finish(end);
    let (watch, announcing) = &sim.observer().0;
    let agreement = watch.agreement();
    let announced = announcing.summary(agreement.leader(), |node| sim.machine(node).is_some());
    let values = [
        (Metric::TMax, announced.converged.map(|converged| converged.sent.as_secs_f64())),
        (Metric::NumMsgs, Some(f64::from(announced.messages))),
        (Metric::Rounds, announced.converged.map(|converged| f64::from(converged.rounds))),
        (Metric::AvgRounds, announced.converged.map(|converged| converged.mean_rounds)),
        (Metric::FirstRoundMsgs, Some(f64::from(announced.announcers))),
        (Metric::TFirst, announced.first.map(Time::as_secs_f64)),
        (Metric::TLastFirst, announced.last_first.map(Time::as_secs_f64)),
        (Metric::TLast, announced.last.map(Time::as_secs_f64)),
    ];
    let values = agreed(watch, end).into_iter().chain(values);
    Ok(Outcome {
        violations: watch.violations().to_vec(),
        sometimes: watch.sometimes(),
        disagreements: agreement.disagreements().to_vec(),
        ..outcome(&sim, seed, values)
    })
}

/// What every election is measured by.
pub(crate) fn agreed(watch: &Watch, end: Time) -> [(Metric, Option<f64>); 10] {
    let agreement = watch.agreement();
    let (ended, ended_time) = agreement.ended();
    let whole = end.as_secs_f64();
    let agreed = agreement.agreed_time().as_secs_f64();
    [
        (Metric::LeadershipDelay, agreement.first().map(Time::as_secs_f64)),
        (Metric::ElectionTime, (ended > 0).then(|| ended_time.as_secs_f64() / f64::from(ended))),
        (Metric::Elections, Some(f64::from(ended))),
        (Metric::Agreement, (whole > 0.0).then(|| agreed / whole)),
        (
            Metric::InconsistentTime,
            Some(end.since(Time::ZERO).saturating_sub(agreement.agreed_time()).as_secs_f64()),
        ),
        (Metric::LeaderChanges, Some(f64::from(agreement.leader_changes()))),
        (Metric::LeadersAtOnce, Some(f64::from(agreement.most_leading()))),
        (Metric::RecoveryTime, agreement.recovery().map(Duration::as_secs_f64)),
        (Metric::LeaderlessAtEnd, Some(f64::from(u8::from(agreement.leading() == 0)))),
        (Metric::Violations, Some(watch.violations().len() as f64)),
    ]
}

/// An election on a membership. Nobody announces itself again and again: besides agreement there is what elections
/// on lists are measured by.
fn run_stack(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    electing: Electing,
    members: Members<Stack>,
) -> Result<Outcome, Disconnected> {
    let Members { world, build, survey } = members;
    let watch = Watch::new(scenario.capacity(), scenario.until).telling(&log);
    let acknowledges = |message: &stack::Message| match message {
        stack::Message::Membership(message) => acknowledges(message),
        stack::Message::Election(..) | stack::Message::Churn(_) => false,
    };
    let observer = ((watch, electing), log);
    let mut sim = Sim::new(world, scenario.capacity(), Seed::new(seed), build, observer)
        .with_muffle(muffle(scenario, seed, acknowledges));
    let elect =
        stack::Command { group: ElectionId::default(), command: churn_tolerant::Command::Elect };
    let word = Word { survey, elect: Some(elect), resign: None };
    schedule::play(&mut sim, scenario, Seed::new(seed), word)?;
    let mut unhealthiness = vec![0; sim.len() as usize];
    for machine in (0..sim.len()).filter_map(|node| sim.machine(node)) {
        for member in machine.membership().members() {
            unhealthiness[member.id.get() as usize] += u64::from(member.suspicions);
        }
    }
    Ok(agreed_outcome(sim, seed, &unhealthiness))
}

/// What an election came to that was watched for agreement too.
fn agreed_outcome<M: Electorate>(
    mut sim: Sim<M, ((Watch, Electing), Log<'_>)>,
    seed: u64,
    unhealthiness: &[u64],
) -> Outcome {
    let end = sim.now();
    sim.observer_mut().0.0.finish(end);
    let (watch, electing) = &sim.observer().0;
    let values = agreed(watch, end).into_iter().chain(electing.values(unhealthiness));
    Outcome {
        violations: watch.violations().to_vec(),
        sometimes: watch.sometimes(),
        disagreements: watch.agreement().disagreements().to_vec(),
        ..outcome(&sim, seed, values)
    }
}

/// An election on lists that no membership keeps up.
fn run_on_lists(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    lists: &ListSource,
    election: churn_tolerant::Config,
) -> Result<Outcome, Disconnected> {
    let nodes = scenario.capacity();
    let root = Seed::new(seed);
    let (rolls, trace) = match lists {
        ListSource::Recorded { membership, trials } => {
            return run_trials(scenario, seed, *membership, trials, election);
        }
        ListSource::Missing(missing) => {
            let mut rolls = Rolls::complete(nodes);
            let mut rng = root.named("lists").rng();
            missing.iter().for_each(|&Missing { node, from }| rolls.miss(node, from, &mut rng));
            (rolls, None)
        }
        ListSource::Trace { trace: SharedTrace(trace), from } => {
            let mut rolls = Rolls::empty(nodes);
            let look = (from.as_micros() / trace.interval().as_micros()) as usize;
            Reel::new(trace).seek(look + 1, &mut rolls);
            (rolls, Some((trace, look)))
        }
    };
    // The field on which the lists were recorded, if the scenario describes the same.
    let field = trace.map_or(root, |(trace, _)| Seed::new(trace.origin().1));
    let network = Network::new(
        &scenario.network,
        place(&scenario.network.placement, nodes, &mut field.named("placement").rng())?,
        nodes,
        root.named("network").rng(),
    );
    let rolls = Rc::new(RefCell::new(rolls));
    let watch = Watch::new(nodes, scenario.until).telling(&log);
    let observer = ((watch, Electing::new(nodes, election)), log);
    let build = polls::builder(Rc::clone(&rolls), election);
    let mut sim = Sim::new(network, nodes, root, build, observer);
    let word = Word { elect: Some(churn_tolerant::Command::Elect), ..Word::none() };
    let absent: Vec<u32> = {
        let rolls = rolls.borrow();
        let running: Vec<u32> = rolls.running().collect();
        (0..nodes).filter(|node| running.binary_search(node).is_err()).collect()
    };
    let mut seen = trace.map_or(0, |(_, look)| look + 1);
    schedule::play_looking(&mut sim, scenario, root, word, polls::REFRESH, |sim| {
        let Some((trace, look)) = trace else { return };
        if sim.now() == Time::ZERO {
            absent.iter().for_each(|&node| sim.crash(node));
        }
        let now = sim.now().since(Time::ZERO);
        while seen < trace.looks() && trace.interval() * (seen - look) as u64 <= now {
            polls::tell(sim, trace.look(seen));
            seen += 1;
        }
    })?;
    let unhealthiness = rolls.borrow().unhealthiness().to_vec();
    Ok(agreed_outcome(sim, seed, &unhealthiness))
}

/// Elections on the lists of a membership that has been recorded: the values are their means.
fn run_trials(
    scenario: &Scenario,
    seed: u64,
    membership: medley::Config,
    trials: &Trials,
    election: churn_tolerant::Config,
) -> Result<Outcome, Disconnected> {
    let traces = record(scenario, seed, membership, trials.every, &[Suspects::Listed])?;
    let [trace] = <[MembershipTrace; 1]>::try_from(traces).expect("one reading, one trace");
    let root = Seed::new(seed).named("trials");
    let mut polls = Polls::on_trace(world(scenario, Seed::new(seed))?.0, &trace, election);
    let mut draws = root.rng();
    let first = trials.from.as_micros().div_ceil(trace.interval().as_micros()) as usize;
    let mut held: Vec<(usize, Option<u32>)> = match trials.initiator {
        Initiator::Random => {
            let span = trace.looks().saturating_sub(first).max(1) as u64;
            let draw = |_| (first + draws.below(span) as usize, None);
            (0..trials.count).map(draw).collect()
        }
        Initiator::Detector => {
            let found = trace.first_detection();
            let found = found.map(|(look, node)| (look, Some(node.get() as u32)));
            found.into_iter().cycle().take(trials.count as usize).collect()
        }
    };
    held.sort_unstable();
    let mut hash = TraceHash::new();
    let mut sums: Vec<(Metric, f64, u32)> = Vec::new();
    for (index, (look, initiator)) in (0..).zip(held) {
        let seed = root.indexed(index).rng().next();
        let poll = Poll { look, initiator, limit: trials.limit, seed };
        let (values, trace) = polls.hold(&poll);
        hash.fold(trace.get());
        sums.resize(values.len(), (Metric::Events, 0.0, 0));
        for ((metric, value), sum) in values.into_iter().zip(&mut sums) {
            sum.0 = metric;
            sum.1 += value.unwrap_or(0.0);
            sum.2 += u32::from(value.is_some());
        }
    }
    let mean = |(metric, sum, count)| (metric, (count > 0).then(|| sum / f64::from(count)));
    Ok(Outcome {
        seed,
        trace: hash,
        values: sums.into_iter().map(mean).collect(),
        violations: Vec::new(),
        sometimes: Vec::new(),
        disagreements: Vec::new(),
        ghosts: OlderLifeStops::default(),
    })
}

/// Everybody's address book: who is how far away, and whom it hears directly. The first `members` nodes begin
/// their first life with each other on their lists; all others, and who starts again, must ask to join.
fn contacts(network: &Network, peer: Peer, members: u32) -> Vec<Contact> {
    let me = peer.id.get() as u32;
    let founding = me < members && peer.boot == Boot::new(1);
    let lengths = network.path_lengths(me);
    let near = network.neighbours(me);
    let mut contacts = Vec::with_capacity(lengths.len());
    // Beyond any known path, as far as the farthest and a little more.
    let farthest = lengths.iter().flatten().fold(0.0_f64, |far, &length| far.max(length));
    for (node, length) in (0..).zip(lengths) {
        if node != me {
            contacts.push(Contact {
                id: NodeId::new(u64::from(node)),
                distance: length.unwrap_or(farthest + 1.0).max(0.1) as f32,
                neighbour: near.is_none_or(|near| near.binary_search(&node).is_ok()),
                member: founding && node < members,
            });
        }
    }
    contacts
}

/// Puts the nodes elsewhere in the address book; returns whom it tells what is no longer as it was.
fn readings(book: &mut Network, placed: &Placed) -> Vec<(u32, ContactChange)> {
    let old = book.clone();
    book.rearrange(placed.clone());
    let entries = |network, node| contacts(network, Peer::new(node, Boot::new(1)), 0);
    let mut readings = Vec::new();
    for node in 0..placed.positions.len() as u32 {
        let id = NodeId::new(u64::from(node));
        for (before, after) in entries(&old, id).into_iter().zip(entries(book, id)) {
            if before != after {
                let Contact { id, distance, neighbour, .. } = after;
                readings.push((node, ContactChange::Near { id, distance, neighbour }));
            }
        }
    }
    readings
}

/// A simulation of members: the world of the scenario, and who makes and surveys them.
struct Members<M: Machine> {
    world: Network,
    build: Builder<M>,
    survey: Survey<M>,
}

fn members<M: Machine<Feed = ContactChange>>(
    scenario: &Scenario,
    seed: u64,
    make: impl Fn(Peer, Seed, Option<M::Durable>, Vec<Contact>) -> M + 'static,
) -> Result<Members<M>, Disconnected> {
    // Paths as they are when everybody is up; those that join later are known, but not yet listed.
    let (world, nodes) = world(scenario, Seed::new(seed))?;
    let mut network = world.clone();
    (0..nodes).for_each(|node| network.set_up(node, true));
    let book = Rc::new(RefCell::new(network));
    let members = scenario.network.nodes;
    let known = Rc::clone(&book);
    let build = Box::new(move |me: Peer, seed, durable| {
        let contacts = contacts(&known.borrow(), me, members);
        make(me, seed, durable, contacts)
    });
    let survey = Box::new(move |placed: &Placed| readings(&mut book.borrow_mut(), placed));
    Ok(Members { world, build, survey })
}

/// Members that elect. If they are not all the same, those that are there from the start have introduced themselves.
fn stacked(
    membership: medley::Config,
    election: churn_tolerant::Config,
    roles: Roles,
) -> impl Fn(Peer, Seed, Option<stack::Durable>, Vec<Contact>) -> Stack {
    let alike = roles.attributes.is_empty() && roles.observers.is_empty();
    let details = move |id: NodeId| {
        let node = id.get() as u32;
        let attribute = roles.attributes.get(node as usize).copied().unwrap_or(0);
        let standing = Standing { observer: roles.observers.contains(&node), attribute };
        let profile = Profile { standings: vec![(ElectionId::default(), standing)], rest: vec![] };
        profile.to_details().expect("one standing fits")
    };
    move |me, seed, durable, contacts| {
        let listed = contacts.iter().filter(|contact| contact.member && !alike);
        let introductions: Vec<Introduction> = listed
            .map(|contact| Introduction {
                subject: Peer::new(contact.id, Boot::new(1)),
                incarnation: Incarnation::default(),
                addresses: Addresses::default(),
                details: details(contact.id),
            })
            .collect();
        let elections = [(ElectionId::default(), election)];
        let mut node = Stack::new(me, membership, &elections, seed, durable, contacts);
        if !alike {
            node = node.with_introduction(Addresses::default(), details(me.id));
            node = node.knowing(introductions);
        }
        if roles.survey {
            let config = estimate::Config::of(10).expect("its own numbers are right");
            let config = estimate::Config { start: election.churn().into(), ..config };
            node = node.with_survey(config, election.timeout(), seed, Time::ZERO);
        }
        node
    }
}

fn medley(
    config: medley::Config,
) -> impl Fn(Peer, Seed, Option<medley::Durable>, Vec<Contact>) -> Medley {
    move |me, seed, durable, contacts| Medley::new(me, config, seed, durable, contacts)
}

/// Runs a scenario once and looks at all lists every `interval`; `None` if its nodes have no lists.
///
/// # Errors
///
/// [`Disconnected`] if a random placement cannot be drawn.
pub fn record_membership(
    scenario: &Scenario,
    seed: u64,
    interval: Duration,
) -> Result<Option<MembershipTrace>, Disconnected> {
    let traces = record_memberships(scenario, seed, interval, &[Suspects::Listed])?;
    Ok(traces.into_iter().next())
}

/// The same, with a trace of the one run for each of these readings; none if its nodes have no lists.
///
/// # Errors
///
/// [`Disconnected`] if a random placement cannot be drawn.
pub fn record_memberships(
    scenario: &Scenario,
    seed: u64,
    interval: Duration,
    readings: &[Suspects],
) -> Result<Vec<MembershipTrace>, Disconnected> {
    match scenario.protocol {
        Protocol::Medley(config)
        | Protocol::OnLists { lists: ListSource::Recorded { membership: config, .. }, .. } => {
            record(scenario, seed, config, interval, readings)
        }
        _ => Ok(Vec::new()),
    }
}

fn record(
    scenario: &Scenario,
    seed: u64,
    config: medley::Config,
    interval: Duration,
    readings: &[Suspects],
) -> Result<Vec<MembershipTrace>, Disconnected> {
    let Members { world, build, survey } = members(scenario, seed, medley(config))?;
    let interval = interval.max(Duration::from_micros(1));
    let recorder = Recorder::new(scenario.capacity(), interval, scenario.digest(), seed);
    let mut recorders = vec![recorder; readings.len()];
    let muffle = muffle(scenario, seed, acknowledges);
    let seed = Seed::new(seed);
    let mut sim = Sim::new(world, scenario.capacity(), seed, build, ()).with_muffle(muffle);
    let look = |sim: &mut Sim<Medley, ()>| {
        for (recorder, suspects) in recorders.iter_mut().zip(readings) {
            recorder.look_by(sim, |machine, each| suspects.listed(machine, each));
        }
    };
    let word = Word { survey, ..Word::none() };
    schedule::play_looking(&mut sim, scenario, seed, word, interval, look)?;
    Ok(recorders.into_iter().map(Recorder::finish).collect())
}

/// What loses acknowledgements, where the scenario says so.
fn muffle<T>(
    scenario: &Scenario,
    seed: u64,
    acknowledges: impl Fn(&T) -> bool + 'static,
) -> Option<Muffle<T>> {
    let Loss::BiasedAcks { rate, nodes } = scenario.network.loss else { return None };
    let mut rng = Seed::new(seed).named("biased acks").rng();
    Some(Box::new(move |from, message| {
        if from >= nodes || !acknowledges(message) {
            return false;
        }
        let wanted = (rate * (1.0 + f64::from(nodes - from) / 2.0)).min(1.0);
        // The network tosses its own coin for the first hop as well.
        rng.chance(if rate < 1.0 { 1.0 - (1.0 - wanted) / (1.0 - rate) } else { 1.0 })
    }))
}

/// Whether a message of a membership is the answer to a ping, direct or through a helper.
fn acknowledges(message: &medley::Message) -> bool {
    matches!(message.body, Body::Ack { .. } | Body::IndirectAck { .. })
}

fn run_membership(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    config: medley::Config,
) -> Result<Outcome, Disconnected> {
    let Members { world, build, survey } = members(scenario, seed, medley(config))?;
    let lists = Lists::new(scenario.capacity(), Promise::new(scenario, &config));
    let watching = (Detecting::default(), lists);
    let muffle = muffle(scenario, seed, acknowledges);
    let observer = (watching, log);
    let mut sim =
        Sim::new(world, scenario.capacity(), Seed::new(seed), build, observer).with_muffle(muffle);
    schedule::play(&mut sim, scenario, Seed::new(seed), Word { survey, ..Word::none() })?;
    let end = sim.now();
    sim.observer_mut().0.1.finish(end);
    let (Detecting(detection), lists) = &sim.observer().0;
    let running = || (0..sim.len()).filter(|&node| sim.machine(node).is_some());
    let live = running().count() as u32;
    let listed: f64 = running().map(|node| f64::from(lists.listed_by(node))).sum();
    let pairs = f64::from(live) * (f64::from(live) - 1.0);
    let found = detection.detected(live);
    let mean = |of: fn(&Detected) -> f64| {
        let sum: f64 = found.iter().map(of).sum();
        (!found.is_empty()).then(|| sum / found.len() as f64)
    };
    let first = || found.iter().map(|one| one.first);
    let counters = *sim.counters();
    let transmissions = counters.transmissions as f64;
    let own = [
        (Metric::FirstDetection, mean(|one| one.first.as_secs_f64())),
        (Metric::EarliestDetection, first().min().map(Duration::as_secs_f64)),
        (Metric::LatestDetection, first().max().map(Duration::as_secs_f64)),
        (Metric::Undetected, Some(f64::from(detection.undetected()))),
        (Metric::Dissemination, mean(|one| one.spread.as_secs_f64())),
        (Metric::MedianDissemination, mean(|one| one.median_spread.as_secs_f64())),
        (Metric::MeanDetection, mean(|one| one.mean)),
        (Metric::Incomplete, mean(|one| one.incomplete)),
        (Metric::FalseSuspicions, Some(f64::from(detection.false_suspicions()))),
        (Metric::FalseRemovals, Some(f64::from(detection.false_removals()))),
        (Metric::HealthyRemovals, Some(f64::from(detection.healthy_removals()))),
        (Metric::Unlisted, (pairs > 0.0).then(|| 1.0 - listed / pairs)),
        (Metric::Violations, Some(lists.violations().len() as f64)),
        (Metric::ProductCost, mean(|one| one.mean).map(|mean| libm::sqrt(mean * transmissions))),
        (Metric::MeanHops, Some(transmissions / counters.messages.max(1) as f64)),
    ];
    let hops = Hops::ALL.map(|hops| (Metric::WithinHops(hops), hops.share(&counters.by_hops)));
    Ok(Outcome {
        violations: lists.violations().to_vec(),
        sometimes: lists.sometimes(),
        ..outcome(&sim, seed, own.into_iter().chain(hops))
    })
}

/// Builds the world of a scenario and lets it run to its end.
pub(crate) fn simulate<M: Machine, O: Observer<M> + Favourite>(
    scenario: &Scenario,
    seed: u64,
    build: Builder<M>,
    observer: O,
) -> Result<Sim<M, O>, Disconnected> {
    let seed = Seed::new(seed);
    let (network, nodes) = world(scenario, seed)?;
    let mut sim = Sim::new(network, nodes, seed, build, observer);
    schedule::play(&mut sim, scenario, seed, Word::none())?;
    Ok(sim)
}

/// What a run came to by its metrics: its `own` and what every protocol is measured by.
pub(crate) fn outcome<M: Machine, O: Observer<M>>(
    sim: &Sim<M, O>,
    seed: u64,
    own: impl IntoIterator<Item = (Metric, Option<f64>)>,
) -> Outcome {
    Outcome {
        seed,
        trace: sim.trace_hash(),
        values: counted(sim, own),
        violations: Vec::new(),
        sometimes: Vec::new(),
        disagreements: Vec::new(),
        ghosts: OlderLifeStops::default(),
    }
}

/// What every protocol is measured by, behind its `own` metrics.
pub(crate) fn counted<M: Machine, O: Observer<M>>(
    sim: &Sim<M, O>,
    own: impl IntoIterator<Item = (Metric, Option<f64>)>,
) -> Vec<(Metric, Option<f64>)> {
    let Counters {
        events,
        messages,
        deliveries,
        lost,
        undeliverable,
        rejected,
        bytes,
        transmissions,
        hop_bytes,
        by_hops: _,
    } = *sim.counters();
    let counted = [
        (Metric::Messages, messages),
        (Metric::Deliveries, deliveries),
        (Metric::Lost, lost),
        (Metric::Undeliverable, undeliverable),
        (Metric::Rejected, rejected),
        (Metric::Bytes, bytes),
        (Metric::Transmissions, transmissions),
        (Metric::HopBytes, hop_bytes),
        (Metric::Events, events),
    ];
    let counted = counted.into_iter().map(|(metric, count)| (metric, Some(count as f64)));
    own.into_iter().chain(counted).chain(aired(sim)).collect()
}

/// What nodes with radios are measured by.
fn aired<M: Machine, O: Observer<M>>(sim: &Sim<M, O>) -> Vec<(Metric, Option<f64>)> {
    let Some(air) = sim.network().air() else { return Vec::new() };
    let Usage { frames, collisions, dropped } = air.usage();
    let whole = sim.now().since(Time::ZERO);
    let (mut busy, mut total, mut dynamic) = (Duration::ZERO, 0.0, 0.0);
    for (sent, received) in (0..sim.len()).map(|node| air.times(node)) {
        let energy = radio::energy(whole, sent, received);
        busy += sent + received;
        (total, dynamic) = (total + energy.0, dynamic + energy.1);
    }
    let nodes = f64::from(sim.len());
    let radios = whole.as_secs_f64() * nodes;
    vec![
        (Metric::Frames, Some(frames as f64)),
        (Metric::Collisions, Some(collisions as f64)),
        (Metric::QueueDrops, Some(dropped as f64)),
        (Metric::AirShare, (radios > 0.0).then(|| busy.as_secs_f64() / radios)),
        (Metric::Energy, Some(total / nodes)),
        (Metric::DynamicEnergy, Some(dynamic / nodes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        network::displace,
        scenario,
        scenario::{Delay, DelayLaw, Loss, MoveLaw, Per, Placement, Routing},
    };

    #[test]
    fn who_is_told_all_readings_has_the_address_book_of_the_new_places() {
        let placement = Placement::Random { side: 15.0, range: 4.0, robust: false };
        let delay = Delay { law: DelayLaw::Fixed(Duration::ZERO), per: Per::Hop };
        let described = scenario::Network {
            nodes: 49,
            start_spread: Duration::ZERO,
            placement: placement.clone(),
            delay,
            loss: Loss::None,
            routing: Routing::Length,
            mobility: Default::default(),
            radio: Default::default(),
        };
        let mut rng = Seed::new(1).rng();
        let placed = place(&placement, 49, &mut rng).unwrap();
        let mut book = Network::new(&described, placed, 49, Seed::new(2).rng());
        (0..49).for_each(|node| book.set_up(node, true));
        let all = |book: &Network| -> Vec<Vec<Contact>> {
            let peer = |node| Peer::new(NodeId::new(node), Boot::new(1));
            (0..49).map(|node| contacts(book, peer(node), 0)).collect()
        };
        let mut known = all(&book);
        let step = (MoveLaw::Polar, 8.0);
        let placed = displace(book.placed(), &placement, &[3, 40], step, |_| true, &mut rng);
        let readings = readings(&mut book, &placed.unwrap());
        // At least the movers learn of each other, and not everything has changed for everybody.
        assert!((2..49 * 48).contains(&readings.len()), "{}", readings.len());
        for (node, change) in readings {
            let ContactChange::Near { id, distance, neighbour } = change else { panic!() };
            let entry = known[node as usize].iter_mut().find(|entry| entry.id == id).unwrap();
            assert_ne!((entry.distance, entry.neighbour), (distance, neighbour));
            (entry.distance, entry.neighbour) = (distance, neighbour);
        }
        assert_eq!(known, all(&book));
    }
}
