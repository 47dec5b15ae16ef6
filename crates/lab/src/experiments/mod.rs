//! Every experiment there is.

mod announce;
mod arbitrated;
mod bandit;
mod central;
mod elections;
mod estimate;
mod medley;

use crate::experiment::Experiment;

/// All experiments, in the order of reports.
pub fn all() -> Vec<Experiment> {
    let groups = [
        announce::all(),
        medley::all(),
        elections::all(),
        estimate::all(),
        arbitrated::all(),
        bandit::all(),
        central::all(),
    ];
    groups.into_iter().flatten().collect()
}
