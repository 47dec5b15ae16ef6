//! Runs of ping and acknowledge.

use bellwether_proto::{
    Peer,
    membership::ping::{Config, Ping},
};

use super::{Outcome, outcome, simulate};
use crate::{
    observe::{Log, Metric},
    scenario::{PingConfig, Scenario},
    world::Disconnected,
};

pub(super) fn run(
    scenario: &Scenario,
    settings: &PingConfig,
    seed: u64,
    log: Log<'_>,
) -> Result<Outcome, Disconnected> {
    let nodes = u64::from(scenario.capacity());
    let config = Config::new(settings.period, settings.timeout, nodes)
        .expect("a scenario that was read holds a valid configuration");
    let build = Box::new(move |me: Peer, seed, _| Ping::new(me.id, config, seed));
    let sim = simulate(scenario, seed, build, ((), log))?;
    let machines = || (0..sim.len()).filter_map(|node| sim.machine(node));
    let acked: u64 = machines().map(|ping| u64::from(ping.acked())).sum();
    let missed: u64 = machines().map(|ping| u64::from(ping.missed())).sum();
    let own = [(Metric::Acked, Some(acked as f64)), (Metric::Missed, Some(missed as f64))];
    Ok(outcome(&sim, seed, own))
}
