//! The results of one experiment, looked up by cell and metric.

use std::collections::BTreeMap;

use bellwether_sim::observe::Summary;

use crate::{
    claim::Estimate,
    experiment::{Measured, Size},
};

/// The results of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    size: Size,
    cells: BTreeMap<String, Vec<Measured>>,
}

impl Table {
    /// Results of the given size.
    pub fn new(size: Size, cells: BTreeMap<String, Vec<Measured>>) -> Self {
        Self { size, cells }
    }

    /// At which size it was run.
    pub fn size(&self) -> Size {
        self.size
    }

    /// A metric of a cell; `None` if it was not measured or had no value in any run.
    pub fn summary(&self, cell: &str, metric: &str) -> Option<Summary> {
        self.cells.get(cell)?.iter().find(|one| one.metric == metric)?.summary
    }

    /// Its mean with a 95% interval.
    pub fn estimate(&self, cell: &str, metric: &str) -> Option<Estimate> {
        self.summary(cell, metric).map(|summary| Estimate::of(&summary))
    }
}
