//! Runs of a membership alone, and recordings of its lists.

use std::{cell::RefCell, rc::Rc};

use bellwether_proto::{
    Duration, Machine, Peer, Seed,
    membership::medley::{self, Body, Contact, ContactChange, Medley},
};

use super::{
    Outcome,
    address_book::{contacts, readings},
    faults::{self, ExternalInputs, MoveFeeds},
    outcome,
    promise::promise,
    world::world,
};
use crate::{
    engine::{Builder, SelectiveLoss, Sim},
    lists::membership_trace::{MembershipTrace, Recorder, Suspects},
    observe::{Detected, DetectionWatch, Hops, Log, MembershipWatch, Metric},
    scenario::{Lists, Loss, Protocol, Scenario},
    world::{Disconnected, Network, Placed},
};

pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    config: medley::Config,
) -> Result<Outcome, Disconnected> {
    let Members { world, build, moved } = members(scenario, seed, medley(config))?;
    let lists = MembershipWatch::new(scenario.capacity(), promise(scenario, &config));
    let watching = (DetectionWatch::default(), lists);
    let biased_acks = biased_acks(scenario, seed, acknowledges);
    let observer = (watching, (log.opinions(), log));
    let mut sim = Sim::new(world, scenario.capacity(), Seed::new(seed), build, observer)
        .with_selective_loss(biased_acks);
    faults::play(
        &mut sim,
        scenario,
        Seed::new(seed),
        ExternalInputs { moved, ..ExternalInputs::none() },
    )?;
    let end = sim.now();
    sim.observer_mut().0.1.finish(end);
    let (DetectionWatch(detection), lists) = &sim.observer().0;
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
        | Protocol::OnLists { lists: Lists::Recorded { membership: config, .. }, .. } => {
            record(scenario, seed, config, interval, readings)
        }
        _ => Ok(Vec::new()),
    }
}

pub(super) fn record(
    scenario: &Scenario,
    seed: u64,
    config: medley::Config,
    interval: Duration,
    readings: &[Suspects],
) -> Result<Vec<MembershipTrace>, Disconnected> {
    let Members { world, build, moved } = members(scenario, seed, medley(config))?;
    let interval = interval.max(Duration::from_micros(1));
    let recorder = Recorder::new(scenario.capacity(), interval, scenario.digest(), seed);
    let mut recorders = vec![recorder; readings.len()];
    let biased_acks = biased_acks(scenario, seed, acknowledges);
    let seed = Seed::new(seed);
    let mut sim =
        Sim::new(world, scenario.capacity(), seed, build, ()).with_selective_loss(biased_acks);
    let look = |sim: &mut Sim<Medley, ()>| {
        for (recorder, suspects) in recorders.iter_mut().zip(readings) {
            recorder.look_by(sim, |machine, each| suspects.listed(machine, each));
        }
    };
    let inputs = ExternalInputs { moved, ..ExternalInputs::none() };
    faults::play_looking(&mut sim, scenario, seed, inputs, interval, look)?;
    Ok(recorders.into_iter().map(Recorder::finish).collect())
}

/// A simulation of members: the world of the scenario, and who makes and surveys them.
pub(super) struct Members<M: Machine> {
    pub(super) world: Network,
    pub(super) build: Builder<M>,
    pub(super) moved: MoveFeeds<M>,
}

pub(super) fn members<M: Machine<Feed = ContactChange>>(
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
    let moved = Box::new(move |placed: &Placed| readings(&mut book.borrow_mut(), placed));
    Ok(Members { world, build, moved })
}

fn medley(
    config: medley::Config,
) -> impl Fn(Peer, Seed, Option<medley::Durable>, Vec<Contact>) -> Medley {
    move |me, seed, durable, contacts| Medley::new(me, config, seed, durable, contacts)
}

/// What loses acknowledgements, where the scenario says so.
pub(super) fn biased_acks<T>(
    scenario: &Scenario,
    seed: u64,
    acknowledges: impl Fn(&T) -> bool + 'static,
) -> Option<SelectiveLoss<T>> {
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
pub(super) fn acknowledges(message: &medley::Message) -> bool {
    matches!(message.body, Body::Ack { .. } | Body::IndirectAck { .. })
}
