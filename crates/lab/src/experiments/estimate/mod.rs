//! The churn bound `c` of the elections: what it is, what an election makes of one that is too small, and how it is
//! estimated (tables 5.1, 5.2 and 7.1, figures 5.1, 5.2 and 7.1 to 7.5).
//!
//! Lists come from recorded memberships where the chapter measured them, and are drawn where it drew them: complete
//! but for some nodes that are each missing from so many other lists. Decisions are made by the machine that ships,
//! and estimates by the estimators that ship, in the published form where that is what is judged.

mod decision;
mod drawn;
mod estimator;
mod example;
mod listed;
mod size;

use bellwether_sim::observe::Metric;

use crate::{
    claim::{Claim, list},
    computation::{Computation, Found, Value},
    estimate::{Estimate, short},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    measure::{measure, measures},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    let chapters = [listed::all(), example::all(), size::all(), decision::all(), estimator::all()];
    chapters.into_iter().flatten().collect()
}
