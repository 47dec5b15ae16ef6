//! Bandit leader election: the report's table, its figures, its lemma, and what it did not try.
//!
//! Set-up: the program's profile and its environment, one client, links of 1 to 10 ms. A run tries every algorithm on
//! the same machines and the same failures, so that they differ by nothing but themselves. `s40` are the machines of
//! the report's own seed, `fresh` are drawn for every run. Unlike the report, whose numbers are of one run each, all
//! are means over many, with intervals.

mod extras;
mod figures;
mod measures;
mod term;

use bellwether_proto::election::bandit::{Config, Policy, Profile};
use bellwether_sim::{
    observe::{Log, Served},
    run::bandit::serve,
    scenario::{Protocol, Scenario},
};

use self::measures::{Measured, Of};
use crate::{
    claim::{Claim, list},
    computation::{Computation, Found},
    estimate::Estimate,
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    scenarios::BANDIT_REPORT,
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    [figures::all(), extras::all(), term::all()].into_iter().flatten().collect()
}

/// Cluster sizes, and the machines of the program's seed 40.
const SIZES: [(u32, &str); 3] = [
    (5, "[0.95, 0.15, 0.15, 0.95, 0.7]"),
    (11, "[0.95, 0.15, 0.15, 0.95, 0.7, 0.2, 0.8, 0.15, 0.8, 0.8, 0.15]"),
    (
        23,
        "[0.95, 0.15, 0.15, 0.95, 0.7, 0.2, 0.8, 0.15, 0.8, 0.8, 0.15, 0.8, 0.8, 0.15, 0.15, 0.8, 0.2, 0.8, 0.7, 0.15, 0.15, 0.15, 0.7]",
    ),
];

/// An algorithm with a name.
#[derive(Clone, Debug, Hash)]
struct Variant {
    name: &'static str,
    config: Config,
}

fn variant(name: &'static str, config: Config) -> Variant {
    Variant { name, config }
}

/// The program's profile.
fn reference(policy: Policy) -> Config {
    Config::new(Profile::Reference, policy)
}

fn dle() -> Variant {
    variant("DLE", reference(Policy::Next))
}

fn rle() -> Variant {
    variant("RLE", reference(Policy::Random))
}

fn eps() -> Variant {
    variant("eps", reference(Policy::EPSILON_GREEDY))
}

fn ucb() -> Variant {
    variant("UCB", reference(Policy::UCB))
}

fn four() -> Vec<Variant> {
    vec![dle(), rle(), eps(), ucb()]
}

/// A cell that tries all of these on every seed.
fn paired(name: impl Into<String>, variants: Vec<Variant>, runs: u64) -> Cell {
    Cell::computed(
        name,
        Computation::over("bandit elections", BANDIT_REPORT, variants, try_all),
        runs,
    )
}

fn try_all(scenario: &Scenario, variants: &Vec<Variant>, seed: u64) -> Found {
    let mut values = Vec::new();
    for variant in variants {
        let served = try_one(scenario, variant.config, seed)?;
        values.extend(measures::of(variant.name, scenario, &served));
    }
    Ok(values)
}

fn try_one(
    scenario: &Scenario,
    config: Config,
    seed: u64,
) -> Result<Served, Box<dyn std::error::Error + Send + Sync>> {
    let Protocol::Bandit(settings) = &scenario.protocol else {
        return Err("not a bandit election".into());
    };
    let mut settings = settings.clone();
    if let Some(client) = &mut settings.client {
        *client = client.of_profile(config.profile());
    }
    settings.config = config;
    Ok(serve(scenario, &settings, seed, Log::none())?.served)
}

/// The same on the machines of the report's seed, of which there are so many.
fn s40((nodes, machines): (u32, &str), variants: Vec<Variant>, runs: u64) -> Cell {
    paired(s40_name(nodes), variants, runs)
        .set("network.nodes", nodes)
        .set("election.environment.machines", machines)
}

fn s40_name(nodes: u32) -> String {
    format!("s40 N={nodes}")
}

/// What a variant came to in a cell.
fn at(data: &Table, cell: &str, variant: &'static str, measure: Measured) -> Estimate {
    data.estimate(cell, Of(variant, measure))
}

/// One variant's rounds by another's.
fn by(data: &Table, cell: &str, one: &'static str, other: &'static str) -> Estimate {
    by_measure(data, cell, (one, other), Measured::Rounds)
}

/// One variant's measure by another's.
fn by_measure(
    data: &Table,
    cell: &str,
    (one, other): (&'static str, &'static str),
    measure: Measured,
) -> Estimate {
    at(data, cell, one, measure) / at(data, cell, other, measure)
}
