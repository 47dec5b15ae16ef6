//! Runs of elections of the most central node.

use bellwether_proto::election::central::{Central, Config, Memo};

use super::{Outcome, election_outcome, simulate};
use crate::{
    observe::{CentralWatch, ElectionWatch, Log, Oracle, Standing},
    scenario::{Protocol, Scenario},
    world::Disconnected,
};

/// A run, and how it went on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// What it came to.
    pub outcome: Outcome,
    /// How things stood every ten seconds.
    pub standings: Vec<Standing>,
}

/// Runs an election of the most central node, and keeps how it went. `None` if the scenario has none.
///
/// # Errors
///
/// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
pub fn study(scenario: &Scenario, seed: u64, log: Log<'_>) -> Result<Option<Study>, Disconnected> {
    let Protocol::Central(config) = scenario.protocol else { return Ok(None) };
    run(scenario, config, seed, log).map(Some)
}

pub(super) fn run(
    scenario: &Scenario,
    config: Config,
    seed: u64,
    log: Log<'_>,
) -> Result<Study, Disconnected> {
    let watch = ElectionWatch::new(scenario.capacity(), scenario.until).telling(&log);
    let central = CentralWatch::new(scenario.capacity(), Oracle::of(&config));
    let observer = ((watch, central), log);
    let memo = Memo::default();
    let build = Box::new(move |me, seed, _| Central::new(me, config, seed).sharing(&memo));
    let mut sim = simulate(scenario, seed, build, observer)?;
    let end = sim.now();
    let (watch, central) = &mut sim.observer_mut().0;
    watch.finish(end);
    central.finish(end);
    let (watch, central) = &sim.observer().0;
    let mut outcome = election_outcome(&sim, seed, watch, central.values(sim.counters()));
    outcome.violations.extend(central.violations().cloned());
    outcome.sometimes.push(central.sometimes());
    Ok(Study { outcome, standings: central.standings().to_vec() })
}

#[cfg(test)]
mod tests;
