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

use super::{between, bounded, difference, ratio, shown};
use crate::{
    claim::Estimate,
    computation::{Computation, Found},
    experiment::{Cell, Experiment, Size},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    [figures::all(), extras::all(), term::all()].into_iter().flatten().collect()
}

/// The report's experiments; cells set the rest.
const REPORT: &str = r#"
    name = "bandit election"
    duration = "40000s"
    [network]
    nodes = 5
    delay = { kind = "uniform", low = "1ms", high = "10ms" }
    [election]
    kind = "bandit"
    form = "reference"
    [election.client]
    requests = 2500
    [election.environment]
    kind = "block"
    machines = "table-1"
"#;

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

/// So many runs at full size, and so many when quick.
fn runs(size: Size, full: u64, quick: u64) -> u64 {
    match size {
        Size::Full => full,
        Size::Quick => quick,
    }
}

/// A cell that tries all of these on every seed.
fn paired(name: impl Into<String>, variants: Vec<Variant>, runs: u64) -> Cell {
    Cell::computed(name, Computation::over("bandit elections", REPORT, variants, try_all), runs)
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

/// What a variant came to in a cell.
fn at(table: &Table, cell: &str, variant: &str, metric: &str) -> Option<Estimate> {
    table.estimate(cell, &format!("{variant} {metric}"))
}

/// One variant's metric by another's.
fn by(table: &Table, cell: &str, one: &str, other: &str, metric: &str) -> Option<Estimate> {
    ratio(at(table, cell, one, metric), at(table, cell, other, metric))
}

/// Several values in their order.
fn list(values: impl IntoIterator<Item = Option<Estimate>>) -> String {
    values.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}
