//! Every experiment there is.

mod announce;
mod estimate;
mod medley;

use crate::{
    claim::{Claim, Estimate, Verdict},
    experiment::{Experiment, Size},
    table::Table,
};

/// All experiments, in the order of reports.
pub fn all() -> Vec<Experiment> {
    [announce::all(), medley::all(), estimate::all()].into_iter().flatten().collect()
}

/// Whether a value lies between two bounds: at full size itself, when quick with four standard errors' grace.
fn between(table: &Table, value: Option<Estimate>, low: f64, high: f64) -> bool {
    let grace = match table.size() {
        Size::Full => 0.0,
        Size::Quick => 4.0 / 1.96,
    };
    value.is_some_and(|one| {
        one.value + grace * one.half_width >= low && one.value - grace * one.half_width <= high
    })
}

fn shown(value: Option<Estimate>) -> String {
    value.map_or_else(|| "nothing".into(), |value| value.to_string())
}

/// A value between two bounds.
fn bounded(
    table: &Table,
    sentence: impl Into<String>,
    published: impl Into<String>,
    value: Option<Estimate>,
    low: f64,
    high: f64,
) -> Claim {
    Claim::holds(sentence, published, shown(value), between(table, value, low, high))
}

/// `a / b`.
fn ratio(a: Option<Estimate>, b: Option<Estimate>) -> Option<Estimate> {
    Some(a?.over(b?))
}

/// `a - b`.
fn difference(a: Option<Estimate>, b: Option<Estimate>) -> Option<Estimate> {
    Some(a?.minus(b?))
}

/// A claim that fails at full size, on record; quick runs are too few, or too small, to tell.
fn missed_at_full_size(table: &Table, claim: Claim, reason: &str) -> Claim {
    match table.size() {
        Size::Full => claim.on_record(Verdict::NotReproduced, reason),
        Size::Quick => claim,
    }
}
