//! Runs of keys that members of a ring own.

use bellwether_proto::{
    Duration, NodeId,
    keys::{self, Keys},
    membership::ring,
};

use super::{
    Outcome,
    ring::{Study as RingStudy, conclude, member},
    simulate,
};
use crate::{
    engine::Builder,
    observe::{KeyFindings, KeyWatch, Log, Metric, RingWatch},
    scenario::Scenario,
    world::Disconnected,
};

/// What a run of owned keys came to, with everything seen.
pub struct Study {
    /// What every run comes to.
    pub outcome: Outcome,
    /// What happened to keys.
    pub findings: KeyFindings,
    /// Members at the end.
    pub active: Vec<NodeId>,
}

/// Runs a ring whose members own keys.
///
/// # Errors
///
/// [`Disconnected`] if a random placement cannot be drawn.
pub fn study(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    membership: ring::Config,
    owned: keys::Config,
) -> Result<Study, Disconnected> {
    let make = member(scenario, membership);
    let build: Builder<Keys> =
        Box::new(move |me, seed, durable| Keys::new(make(me, seed), owned, durable));
    let nodes = scenario.capacity();
    let watches =
        (RingWatch::new(nodes, membership.session()), KeyWatch::new(nodes, owned.slots()));
    let mut sim = simulate(scenario, seed, build, (watches, log))?;
    let end = sim.now();
    sim.observer_mut().0.0.finish(end);
    let (ring, keys) = &sim.observer().0;
    let owners = keys.owners();
    let seconds = |duration: Duration| Some(duration.as_secs_f64());
    let moved: u32 = keys.findings().moves.values().sum();
    let values = vec![
        (Metric::LeaseOverlap, seconds(owners.overlap())),
        (Metric::SmallestGap, owners.smallest_gap().and_then(seconds)),
        (Metric::UnownedSlots, Some(keys.unowned(end))),
        (Metric::LongestUnowned, seconds(keys.longest_unowned(end))),
        (Metric::MovedSlots, Some(f64::from(moved))),
        (Metric::KeyMessages, Some(keys.findings().messages as f64)),
    ];
    let violations = keys.violations().to_vec();
    let RingStudy { mut outcome, active, .. } = conclude(&sim, seed, ring, values, violations);
    outcome.sometimes.push(keys.sometimes());
    Ok(Study { outcome, findings: keys.findings().clone(), active })
}
