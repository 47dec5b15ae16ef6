//! Runs of a ring, with or without a leased leader on it.

use std::collections::BTreeSet;

use bellwether_proto::{
    Boot, Duration, NodeId, Peer, Seed,
    election::leased::{self, Leased},
    membership::ring::{self, Ring},
};

use super::{
    Outcome,
    faults::{self, ExternalInputs},
    outcome, simulate,
    world::world,
};
use crate::{
    engine::{Builder, Observer, Sim},
    invariant::Violation,
    observe::{ElectionWatch, Findings, Log, Metric, RingMember, RingWatch},
    scenario::{Protocol, Scenario},
    world::Disconnected,
};

/// What a ring came to, with everything seen.
pub struct Study {
    /// What every run comes to.
    pub outcome: Outcome,
    /// What happened on the ring.
    pub findings: Findings,
    /// Members at the end.
    pub active: Vec<NodeId>,
    /// Of all pairs that should monitor each other, the share whose groups are not what they should be.
    pub stale: f64,
}

/// Runs a ring, with or without an election; `None` if the scenario is about something else.
///
/// # Errors
///
/// [`Disconnected`] if a random placement cannot be drawn.
pub fn study(scenario: &Scenario, seed: u64, log: Log<'_>) -> Result<Option<Study>, Disconnected> {
    match &scenario.protocol {
        &Protocol::Ring(config) => {
            let make = member(scenario, config);
            let build: Builder<Ring> = Box::new(move |me, seed, _| make(me, seed));
            let watch = RingWatch::new(scenario.capacity(), config.session());
            let mut sim = simulate(scenario, seed, build, (watch, log))?;
            let end = sim.now();
            sim.observer_mut().0.finish(end);
            let watch = &sim.observer().0;
            Ok(Some(conclude(&sim, seed, watch, Vec::new(), Vec::new())))
        }
        Protocol::Leased { membership, election, witnesses } => {
            let (config, election) = (*membership, *election);
            let witnesses: Vec<NodeId> =
                witnesses.iter().map(|&node| NodeId::new(u64::from(node))).collect();
            let make = member(scenario, config);
            let build: Builder<Leased> = Box::new(move |me, seed, durable| {
                Leased::new(make(me, seed).with_witnesses(&witnesses), election, durable)
            });
            let watch = ElectionWatch::new(scenario.capacity(), scenario.until).telling(&log);
            let ring_watch = RingWatch::new(scenario.capacity(), config.session());
            let root = Seed::new(seed);
            let (network, nodes) = world(scenario, root)?;
            let observer = ((watch, ring_watch), log);
            let mut sim = Sim::new(network, nodes, root, build, observer);
            let inputs =
                ExternalInputs { elect: Some(leased::Command::Resign), ..ExternalInputs::none() };
            faults::play(&mut sim, scenario, root, inputs)?;
            let end = sim.now();
            let ((watch, ring_watch), _) = sim.observer_mut();
            watch.finish(end);
            ring_watch.finish(end);
            let ((watch, ring_watch), _) = sim.observer();
            let mut values = watch.values(end).to_vec();
            let seconds = |d: Duration| d.as_secs_f64();
            let worst = ring_watch.findings().fail_overs.iter().max().copied();
            values.extend([
                (Metric::LeaseOverlap, Some(seconds(ring_watch.overlap()))),
                (Metric::SmallestGap, ring_watch.smallest_gap().map(seconds)),
                (Metric::FailOver, worst.map(seconds)),
                (Metric::LeaderlessTime, Some(seconds(ring_watch.findings().leaderless))),
            ]);
            let mut study = conclude(&sim, seed, ring_watch, values, watch.violations().to_vec());
            study.outcome.disagreements = watch.agreement().disagreements().to_vec();
            study.outcome.sometimes =
                watch.sometimes().into_iter().chain(ring_watch.sometimes(true)).collect();
            Ok(Some(study))
        }
        _ => Ok(None),
    }
}

pub(super) fn conclude<M: RingMember, O: Observer<M>>(
    sim: &Sim<M, O>,
    seed: u64,
    watch: &RingWatch,
    mut values: Vec<(Metric, Option<f64>)>,
    mut violations: Vec<Violation>,
) -> Study {
    let found = watch.findings().clone();
    let machines = || (0..sim.len()).filter_map(|node| sim.machine(node).map(RingMember::ring));
    let members: Vec<&Ring> = machines().filter(|ring| ring.is_active()).collect();
    let active: Vec<NodeId> = members.iter().map(|ring| ring.life().id()).collect();
    let (mut pairs, mut stale) = (0_u32, 0_u32);
    for ring in &members {
        for peer in ring.neighbours() {
            pairs += 1;
            stale += u32::from(!ring.is_upgraded(peer.id()));
        }
    }
    let stale = f64::from(stale) / f64::from(pairs.max(1));
    let mean = |all: &[Duration]| {
        let sum: f64 = all.iter().map(|d| d.as_secs_f64()).sum();
        (!all.is_empty()).then(|| sum / all.len() as f64)
    };
    let losers: BTreeSet<(NodeId, NodeId)> =
        found.departed.iter().filter_map(|&(_, node, over)| Some((node, over?))).collect();
    let mutual = losers.iter().filter(|&&(a, b)| a < b && losers.contains(&(b, a))).count();
    let nodes = members.len().max(1) as f64;
    let took: Vec<Duration> = found.joined.iter().map(|&(took, _)| took).collect();
    violations.extend(watch.violations().iter().cloned());
    values.retain(|(metric, _)| *metric != Metric::Violations);
    let number = |value: usize| Some(value as f64);
    values.extend([
        (Metric::ActiveAtEnd, number(members.len())),
        (Metric::ForcedDepartures, number(found.departed.len())),
        (Metric::MutualLosses, number(mutual)),
        (Metric::MonitorDetection, mean(&found.suspected)),
        (Metric::LatestBurial, found.buried.iter().max().map(|d| d.as_secs_f64())),
        (Metric::LeasesPerSession, watch.leases_per_session(sim.now()).map(|all| all / nodes)),
        (Metric::ArbitrationRequests, Some(found.requests.iter().sum::<u64>() as f64)),
        (Metric::MostRequests, found.requests.iter().max().map(|&most| most as f64)),
        (Metric::UpgradeMessages, Some(found.upgrades as f64)),
        (Metric::JoinTime, mean(&took)),
        (Metric::StalePairs, Some(stale)),
        (Metric::Violations, number(violations.len())),
    ]);
    let outcome =
        Outcome { violations, sometimes: watch.sometimes(false), ..outcome(sim, seed, values) };
    Study { outcome, findings: found, active, stale }
}

/// Those that begin as members, and those whom others may ask.
fn founders(scenario: &Scenario, config: &ring::Config) -> (Vec<Peer>, Vec<NodeId>) {
    let peers = (0..scenario.network.nodes)
        .map(|node| Peer::new(NodeId::new(u64::from(node)), Boot::new(1)))
        .filter(|peer| !config.is_external(peer.id));
    let founders: Vec<Peer> = peers.collect();
    let contacts = founders.iter().map(|peer| peer.id).collect();
    (founders, contacts)
}

/// Makes the members of a scenario.
pub(super) fn member(
    scenario: &Scenario,
    config: ring::Config,
) -> impl Fn(Peer, Seed) -> Ring + use<> {
    let (founders, contacts) = founders(scenario, &config);
    move |me, seed| {
        let mut contacts = contacts.clone();
        if !contacts.is_empty() {
            let first = seed.named("contact").rng().below(contacts.len() as u64) as usize;
            contacts.rotate_left(first);
        }
        Ring::new(me, config, seed, &founders, &contacts)
    }
}
