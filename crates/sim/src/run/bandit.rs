//! Runs of elections by learnt reliability, with or without a client and machines that fail.

use std::sync::Arc;

use bellwether_proto::{
    NodeId, Peer, Seed, Time,
    election::bandit::{Bandit, Feed, Profile, client::Client},
};

use super::{
    Outcome, election_outcome,
    faults::{self, ExternalInputs},
    simulate,
    world::world_of,
};
use crate::{
    engine::{Builder, Observer, Sim, State, Status, TraceHash},
    invariant::{OlderLifeStops, Violation},
    observe::{ElectionWatch, Log, Metric, RequestWatch, Served, counted},
    scenario::{BanditSettings, Scenario},
    world::{
        Disconnected,
        client::NodeOrClient,
        environment::{Change, FailureProcess},
    },
};

/// Runs a bandit election as the scenario says.
///
/// # Errors
///
/// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
pub(super) fn run(
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
    let mut watch = ElectionWatch::new(scenario.capacity(), scenario.until).telling(&log);
    if config.profile() == Profile::Hardened {
        watch = watch.by_majority_of(voters);
    }
    let mut sim = simulate(scenario, seed, Box::new(build), (watch, log))?;
    let end = sim.now();
    sim.observer_mut().0.finish(end);
    Ok(election_outcome(&sim, seed, &sim.observer().0, []))
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
    let observer = (RequestWatch::new(nodes, voters, hardened), log);
    let mut sim = Sim::new(network, nodes, root, build, observer);
    let process = settings.environment.as_ref();
    let mut process = process.map(|it| FailureProcess::new(it, voters, root.named("environment")));
    let client = settings.client.is_some();
    faults::play_at(&mut sim, scenario, root, ExternalInputs::none(), |sim| {
        if client && sim.now() == Time::ZERO {
            sim.start(place_of_client, State::Lost);
        }
        let Some(process) = &mut process else { return Time::NEVER };
        while process.next() <= sim.now() {
            let changes = process.step(sim.now());
            apply(sim, &changes, hardened);
        }
        process.next()
    })?;
    let end = sim.now();
    let beliefs = |node| match sim.machine(node).and_then(NodeOrClient::as_node) {
        Some(node) => node.estimates().arms().iter().map(|arm| (arm.mean, arm.weight)).collect(),
        None => Vec::new(),
    };
    let beliefs = (0..voters).map(beliefs).collect();
    let failures = process.map_or_else(Vec::new, |process| process.failures().to_vec());
    sim.observer_mut().0.finish(end, beliefs, failures);
    let requests = &sim.observer().0;
    Ok(Account {
        served: requests.served().clone(),
        trace: sim.trace_hash(),
        values: counted(&sim, requests.values(client)),
        violations: requests.violations().to_vec(),
        sometimes: requests.sometimes(),
    })
}

fn builder(settings: &BanditSettings, voters: u32, place_of_client: u32) -> Builder<NodeOrClient> {
    let members: Arc<[NodeId]> = (0..u64::from(voters)).map(NodeId::new).collect();
    let (config, client) = (settings.config, settings.client);
    Box::new(move |me: Peer, seed, durable| match client {
        Some(client) if me.id.get() == u64::from(place_of_client) => {
            NodeOrClient::client(Client::new(me, members.clone(), client))
        }
        _ => NodeOrClient::node(Bandit::new(me, members.clone(), config, seed, durable)),
    })
}

/// Hardened nodes crash and start again; the others fall silent and go on as they were.
fn apply<O: Observer<NodeOrClient>>(
    sim: &mut Sim<NodeOrClient, O>,
    changes: &[Change],
    hardened: bool,
) {
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
