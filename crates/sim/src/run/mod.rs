//! Runs of scenarios, one or many, and what they amount to: a file for each family of protocols.

mod address_book;
mod announce;
pub mod bandit;
pub mod central;
mod eventual;
pub mod faults;
pub mod keys;
mod membership;
mod node;
mod on_lists;
mod ping;
pub mod promise;
mod report;
pub mod ring;
pub mod world;

use bellwether_proto::{
    Machine, Seed, Time,
    election::announce::{
        baseline::{Al, Sup, SupAl},
        several::Several,
    },
};

use self::{faults::ExternalInputs, world::world};
pub use self::{
    membership::{record_membership, record_memberships},
    report::{Report, each_seed, run_many},
};
use crate::{
    engine::{Builder, Observer, Sim, TraceHash},
    invariant::{OlderLifeStops, Violation},
    observe::{ElectionWatch, Favourite, Log, Metric, counted},
    scenario::{Protocol, Scenario},
    world::Disconnected,
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
        Protocol::Node(settings) => node::run(scenario, settings, seed, log),
        &Protocol::Announce(settings) => {
            announce::run(scenario, seed, log, announce::builder(settings))
        }
        &Protocol::Several(config) => {
            let build = move |me, seed, _| Several::new(me, config, seed);
            announce::run(scenario, seed, log, Box::new(build))
        }
        &Protocol::Sup(config) => {
            let build = move |me, seed, _| Sup::new(me, config, seed);
            announce::run(scenario, seed, log, Box::new(build))
        }
        &Protocol::Al(config) => {
            announce::run(scenario, seed, log, Box::new(move |me, _, _| Al::new(me, config)))
        }
        &Protocol::SupAl(config) => {
            let build = move |me, seed, _| SupAl::new(me, config, seed);
            announce::run(scenario, seed, log, Box::new(build))
        }
        &Protocol::Medley(config) => membership::run(scenario, seed, log, config),
        Protocol::ChurnTolerant { membership, election, roles } => {
            eventual::run(scenario, seed, log, (*membership, *election), roles)
        }
        Protocol::OnLists { lists, election } => {
            on_lists::run(scenario, seed, log, lists, *election)
        }
        Protocol::Ring(_) | Protocol::Leased { .. } => {
            let study = ring::study(scenario, seed, log)?;
            Ok(study.expect("these are what it studies").outcome)
        }
        &Protocol::Central(config) => {
            central::run(scenario, config, seed, log).map(|study| study.outcome)
        }
        Protocol::Bandit(settings) => bandit::run(scenario, settings, seed, log),
        Protocol::Ping(settings) => ping::run(scenario, settings, seed, log),
        &Protocol::Keys { membership, keys } => {
            keys::study(scenario, seed, log, membership, keys).map(|study| study.outcome)
        }
    }
}

/// Builds the world of a scenario and lets it run to its end.
pub(super) fn simulate<M: Machine, O: Observer<M> + Favourite>(
    scenario: &Scenario,
    seed: u64,
    build: Builder<M>,
    observer: O,
) -> Result<Sim<M, O>, Disconnected> {
    let seed = Seed::new(seed);
    let (network, nodes) = world(scenario, seed)?;
    let mut sim = Sim::new(network, nodes, seed, build, observer);
    faults::play(&mut sim, scenario, seed, ExternalInputs::none())?;
    Ok(sim)
}

/// What an election came to that was watched, by what every election is measured by and its `own` metrics.
fn election_outcome<M: Machine, O: Observer<M>>(
    sim: &Sim<M, O>,
    seed: u64,
    watch: &ElectionWatch,
    own: impl IntoIterator<Item = (Metric, Option<f64>)>,
) -> Outcome {
    Outcome {
        violations: watch.violations().to_vec(),
        sometimes: watch.sometimes(),
        disagreements: watch.agreement().disagreements().to_vec(),
        ..outcome(sim, seed, watch.values(sim.now()).into_iter().chain(own))
    }
}

/// What a run came to by its metrics: its `own` and what every protocol is measured by.
pub(super) fn outcome<M: Machine, O: Observer<M>>(
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
