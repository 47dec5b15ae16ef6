//! Many runs of one scenario, and the report on them.

use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::{Outcome, run};
use crate::{
    engine::TraceHash,
    invariant::Violation,
    observe::{Metric, Summary},
    scenario::Scenario,
    world::Disconnected,
};

/// What many runs of one scenario came to, in the order of their seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The scenario's name.
    pub name: String,
    /// The scenario's digest.
    pub digest: TraceHash,
    /// The first seed; the others follow it one by one.
    pub seed: u64,
    /// What each run came to.
    pub outcomes: Vec<Outcome>,
}

/// Runs a scenario with `runs` seeds from `seed` on, in parallel on the threads of the current pool.
/// The result does not depend on how many there are. `finished` is called after each run.
///
/// # Errors
///
/// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
pub fn run_many(
    scenario: &Scenario,
    seed: u64,
    runs: u64,
    finished: impl Fn() + Sync,
) -> Result<Report, Disconnected> {
    let outcomes = each_seed(seed, runs, finished, |seed| run(scenario, seed))?;
    Ok(Report { name: scenario.name.clone(), digest: scenario.digest(), seed, outcomes })
}

/// Calls `run` with `runs` seeds from `seed` on, in parallel; what it gives is in the order of the seeds. `finished`
/// is called after each.
///
/// # Errors
///
/// One of those of `run`.
pub fn each_seed<T: Send, E: Send>(
    seed: u64,
    runs: u64,
    finished: impl Fn() + Sync,
    run: impl Fn(u64) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let one = |index| {
        let outcome = run(seed.wrapping_add(index));
        finished();
        outcome
    };
    (0..runs).into_par_iter().map(one).collect()
}

impl Report {
    /// Every metric over all runs, in a fixed order.
    pub fn metrics(&self) -> Vec<(Metric, Option<Summary>)> {
        let Some(first) = self.outcomes.first() else { return Vec::new() };
        let summary =
            |metric| Summary::of(self.outcomes.iter().filter_map(|outcome| outcome.value(metric)));
        first.values.iter().map(|&(metric, _)| (metric, summary(metric))).collect()
    }

    /// One metric over all runs.
    pub fn summary(&self, metric: Metric) -> Option<Summary> {
        self.metrics().into_iter().find(|(other, _)| *other == metric).and_then(|(_, of)| of)
    }

    /// Everything, as one JSON object. Seeds and digests are strings where they may exceed what every
    /// JSON reader can hold.
    pub fn to_json(&self) -> Value {
        let number = |value: f64| json!(value);
        let metrics: Map<String, Value> = self
            .metrics()
            .into_iter()
            .map(|(metric, summary)| {
                let unit = metric.unit().to_string();
                let value = match summary {
                    Some(Summary { count, mean, sd, p50, p95, p99 }) => json!({
                        "unit": unit,
                        "count": count,
                        "mean": number(mean),
                        "sd": number(sd),
                        "p50": number(p50),
                        "p95": number(p95),
                        "p99": number(p99),
                    }),
                    None => json!({ "unit": unit, "count": 0 }),
                };
                (metric.name().to_owned(), value)
            })
            .collect();
        let traces: Vec<Value> =
            self.outcomes.iter().map(|outcome| json!(outcome.trace.to_string())).collect();
        let violations: Vec<Value> = self
            .violations()
            .map(|(seed, violation)| {
                json!({
                    "seed": seed,
                    "invariant": violation.invariant,
                    "at_us": violation.at.as_micros(),
                    "detail": violation.detail,
                })
            })
            .collect();
        json!({
            "scenario": self.name,
            "digest": self.digest.to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "seed": self.seed,
            "runs": self.outcomes.len(),
            "metrics": metrics,
            "trace_hashes": traces,
            "violations": violations,
        })
    }

    /// Every violation with the seed of its run.
    pub fn violations(&self) -> impl Iterator<Item = (u64, &Violation)> {
        self.outcomes.iter().flat_map(|outcome| {
            outcome.violations.iter().map(move |violation| (outcome.seed, violation))
        })
    }
}
