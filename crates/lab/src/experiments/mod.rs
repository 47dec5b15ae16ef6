//! Every experiment there is.

mod announce;

use crate::experiment::Experiment;

/// All experiments, in the order of reports.
pub fn all() -> Vec<Experiment> {
    announce::all()
}
