//! Arbitrated membership and the leased leader: the paper's figures, its theorems, and what it does not show.
//!
//! Unless said otherwise: sessions of 1 s, `T_a` = 0.5 s, `k` = 3, delays of 5 to 20 ms, and the order of the ring is
//! that of the nodes. The paper names neither times nor delays, nor how often its simulations were run.

mod beyond;
mod published;
mod theorems;

use bellwether_proto::{Duration, Rng, Seed};
use bellwether_sim::{
    observe::Log,
    run::ring::{self, Study},
    scenario::{Fault, FaultKind, Scenario, Who},
};

use super::shown;
use crate::{
    claim::{Claim, Estimate},
    computation::Value,
    experiment::Experiment,
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    [published::all(), theorems::all(), beyond::all()].into_iter().flatten().collect()
}

/// A ring as published, in the order of its nodes.
const RING: &str = r#"
    name = "ring"
    duration = "40s"
    [network]
    nodes = 32
    delay = { kind = "uniform", low = "5ms", high = "20ms" }
    [membership]
    kind = "ring"
    form = "as-published"
    points = "identity"
"#;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn fault(at: Duration, kind: FaultKind) -> Fault {
    Fault { at, spread: Duration::ZERO, every: None, until: None, kind }
}

fn crash(at: Duration, nodes: Vec<u32>) -> Fault {
    fault(at, FaultKind::Crash(Who::Nodes(nodes)))
}

/// Nothing passes between two nodes from then on.
fn cut(at: Duration, one: u32, other: u32) -> Fault {
    let (from, to) = (Some(Who::Nodes(vec![one])), Some(Who::Nodes(vec![other])));
    fault(at, FaultKind::Cut { from, to, both: true, length: None })
}

/// Runs a scenario with these faults instead of its own.
fn run(scenario: &Scenario, faults: Vec<Fault>, seed: u64) -> Result<Study, Failure> {
    let scenario = Scenario { faults, ..scenario.clone() };
    let study = ring::study(&scenario, seed, Log::none())?;
    study.ok_or_else(|| "not a ring".into())
}

fn draws(seed: u64) -> Rng {
    Seed::new(seed).named("victims").rng()
}

/// So many of the first `nodes` nodes, each once, ascending.
fn choose(rng: &mut Rng, nodes: u32, count: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..nodes).collect();
    for at in 0..count.min(all.len()) {
        let other = at + rng.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
    all.sort_unstable();
    all
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A share of runs: 0 or 1 in one of them.
fn whether(name: &str, holds: bool) -> Value {
    Value::ratio(name, f64::from(u8::from(holds)))
}

fn at(table: &Table, cell: &str, metric: &str) -> Option<Estimate> {
    table.estimate(cell, metric)
}

/// Every run of every one of these cells has this value.
fn always(
    table: &Table,
    sentence: impl Into<String>,
    published: impl Into<String>,
    values: impl IntoIterator<Item = (String, &'static str, f64)>,
) -> Claim {
    let mut shown = Vec::new();
    let (mut holds, mut count) = (true, 0);
    for (cell, metric, expected) in values {
        let found = table.summary(&cell, metric);
        count += 1;
        let fits = found.is_some_and(|one| one.sd < 1e-9 && (one.mean - expected).abs() < 1e-9);
        if !fits {
            holds = false;
            let found = found.map(|one| one.mean);
            shown.push(format!("{cell}: {found:?} on average, not {expected}"));
        }
    }
    let measured = if holds { format!("in all runs of {count} cells") } else { shown.join("; ") };
    Claim::holds(sentence, published, measured, holds && count > 0)
}
