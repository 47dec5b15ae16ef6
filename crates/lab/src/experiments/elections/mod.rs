//! The election chapters: Base, Optimistic, Preferred and Hybrid on the lists of a lossy membership.
//!
//! Set-up of chapter 6: 49 nodes drawn on 15 m x 15 m with range 4 m; up to 50 ms a hop; lists recorded from
//! Medley-F (m = 3) on the same field at the same loss, of which the first minutes are left alone, with nodes 0 to 4
//! losing more acknowledgements than others; `c` from Table 5.1, `f = 0`, `x = y = 5`, timeouts of 500 ms, of the
//! unhealthy only the `y` largest sums passed over (C-7); LEADER one by one to everybody there is, acknowledged,
//! up to ten times again. Each run is a field of its own and ten elections, each by a random node at a random time;
//! no run is left out of any mean. Elections are as published unless said otherwise.

mod guarantees;
mod published;

use super::{between, bounded, difference, fit, is_ascending, percent, ratio, reduction, shown};
use crate::{
    claim::Estimate,
    experiment::{Cell, Experiment},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    [published::all(), guarantees::all()].into_iter().flatten().collect()
}

/// The set-up of chapter 6.
const FIELD: &str = r#"
    name = "chapter 6"
    duration = "600s"
    [network]
    nodes = 49
    placement = { kind = "random", side = 15.0, range = 4.0, robust = true }
    delay = { kind = "uniform", low = "1us", high = "50ms", per = "hop" }
    loss = { kind = "biased-acks", rate = 0.05, nodes = 5 }
    routing = "length"
    [membership]
    kind = "medley"
    form = "as-published"
    exponent = 3
    feedback = "both"
    elections = { count = 10, from = "200s", limit = "300s" }
    [election]
    kind = "churn-tolerant"
    form = "as-published"
    variant = "base"
    c = 4
    criterion = "identity"
    multicast = "oracle"
"#;

/// The four protocols.
const VARIANTS: [&str; 4] = ["base", "optimistic", "preferred", "hybrid"];

/// Loss a hop and the `c` published for it (Table 5.1).
const LOSSES: [(f64, u32); 4] = [(0.05, 4), (0.1, 7), (0.15, 10), (0.2, 13)];

/// One of the four, as in chapter 6.
fn variant(cell: Cell, variant: &str) -> Cell {
    let cell = cell.set("election.variant", variant);
    match variant {
        "preferred" | "hybrid" => cell.set("election.exclude", "top-of-sum"),
        _ => cell,
    }
}

/// A value of a cell.
fn at(table: &Table, cell: &str, metric: &str) -> Option<Estimate> {
    table.estimate(cell, metric)
}

/// Several values in their order, with three digits behind the point.
fn list(values: impl IntoIterator<Item = Option<Estimate>>) -> String {
    let one = |value: Option<Estimate>| {
        value.map_or_else(|| "nothing".into(), |value| format!("{:.3}", value.value))
    };
    values.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The mean of some values, if all are there.
fn mean<const N: usize>(values: [Option<Estimate>; N]) -> Option<Estimate> {
    let mut sum = Estimate::exact(0.0);
    for value in values {
        let value = value?;
        sum.value += value.value;
        sum.half_width = libm::hypot(sum.half_width, value.half_width);
    }
    Some(Estimate { value: sum.value / N as f64, half_width: sum.half_width / N as f64 })
}
