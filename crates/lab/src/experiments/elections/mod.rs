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

use bellwether_sim::observe::Metric;

use crate::{
    claim::{Claim, list, percent},
    estimate::{Estimate, mean, reduction},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    scenarios::CHURN_TOLERANT_FIELD,
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    [published::all(), guarantees::all()].into_iter().flatten().collect()
}

/// Several values in their order, with three digits behind the point.
fn thousandths(values: impl IntoIterator<Item = Estimate>) -> String {
    list(values.into_iter().map(|value| format!("{value:.3}")))
}
