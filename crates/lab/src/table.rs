//! The results of one experiment, looked up by cell and measure.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use bellwether_sim::observe::Summary;

use crate::{
    claim::{self, Claim, Draft},
    estimate::Estimate,
    experiment::{Cell, Measured, Size},
    measure::Measure,
};

/// The results of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    size: Size,
    results: Results,
}

#[derive(Clone, Debug, PartialEq)]
enum Results {
    Found(BTreeMap<String, Vec<Measured>>),
    /// All measures of these cells came to the same.
    Alike(BTreeSet<String>, Option<Summary>),
}

impl Table {
    /// Results of the given size.
    pub fn new(size: Size, cells: BTreeMap<String, Vec<Measured>>) -> Self {
        Self { size, results: Results::Found(cells) }
    }

    /// Every measure of these cells is `summary`: for trying what claims and figures look up.
    pub fn alike(size: Size, cells: &[Cell], summary: Option<Summary>) -> Self {
        let names = cells.iter().map(|cell| cell.name.clone()).collect();
        Self { size, results: Results::Alike(names, summary) }
    }

    /// At which size it was run.
    pub fn size(&self) -> Size {
        self.size
    }

    /// What a cell measured; `None` if there was no value in any run.
    ///
    /// # Panics
    ///
    /// If the experiment has no such cell. A test looks up all that claims and figures do.
    pub fn summary(&self, cell: impl AsRef<str>, measure: impl Measure) -> Option<Summary> {
        let cell = cell.as_ref();
        match &self.results {
            Results::Alike(names, summary) if names.contains(cell) => *summary,
            Results::Found(cells) if cells.contains_key(cell) => {
                let name = measure.to_string();
                cells[cell].iter().find(|one| one.metric == name)?.summary
            }
            _ => panic!("the experiment has no cell {cell:?}, whose {measure} was looked up"),
        }
    }

    /// Its mean with its standard error.
    pub fn estimate(&self, cell: impl AsRef<str>, measure: impl Measure) -> Estimate {
        self.summary(cell, measure).map_or(Estimate::NOTHING, |summary| Estimate::of(&summary))
    }

    /// Whether a value lies between two bounds: at full size itself, when quick with four standard errors' grace.
    pub fn is_between(&self, value: Estimate, low: f64, high: f64) -> bool {
        claim::is_between(self.size, value, low, high)
    }

    /// Whether a value is above zero, likewise.
    pub fn is_positive(&self, value: Estimate) -> bool {
        self.is_between(value, f64::MIN_POSITIVE, f64::INFINITY)
    }

    /// A claim about these results, to be judged.
    pub fn claim(&self, sentence: impl Into<String>, published: impl Into<String>) -> Draft {
        Draft::new(self.size, sentence, published)
    }

    /// A claim that each of these values is what was expected of it, within four standard errors.
    pub fn agrees<Name: Display>(
        &self,
        sentence: impl Into<String>,
        values: impl IntoIterator<Item = (Name, Estimate, f64)>,
    ) -> Claim {
        self.claim(sentence, "").agrees(values)
    }
}
