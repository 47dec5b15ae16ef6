//! Experiments as data: what to run, what to expect, what to draw.

use bellwether_proto::Seed;
use bellwether_sim::{
    metric::Summary,
    scenario::{Scenario, ScenarioError},
};

use crate::{claim::Claim, figure::Figure, table::Table};

/// One experiment of a paper, or of our own.
pub struct Experiment {
    /// Its name, such as `announce-fig-5.6`.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The sweep.
    pub cells: fn(Size) -> Vec<Cell>,
    /// What the results say about what was published.
    pub claims: fn(&Table) -> Vec<Claim>,
    /// The results as pictures.
    pub figures: fn(&Table) -> Vec<Figure>,
}

/// How much to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Size {
    /// The paper's own size.
    Full,
    /// Small but honest: the same claims with wider intervals.
    Quick,
}

impl Size {
    /// The name in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
        }
    }

    /// `full` runs at the paper's size, a tenth of them (but at least 40) when quick.
    pub fn runs(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Quick => (full / 10).clamp(40.min(full), full),
        }
    }
}

/// One point of a sweep: a scenario, run many times.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its name, unique in its experiment.
    pub name: String,
    /// The scenario it starts from.
    pub base: &'static str,
    /// What it changes in it, as `--set` would.
    pub sets: Vec<String>,
    /// How often it is run.
    pub runs: u64,
}

impl Cell {
    /// A cell of `runs` runs.
    pub fn new(name: impl Into<String>, base: &'static str, runs: u64) -> Self {
        Self { name: name.into(), base, sets: Vec::new(), runs }
    }

    /// Changes a field.
    pub fn set(mut self, path: &str, value: impl std::fmt::Display) -> Self {
        self.sets.push(format!("{path}={value}"));
        self
    }

    /// The scenario.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if the experiment is wrong; a test reads every cell of every experiment.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&self.name, self.base, &self.sets)
    }

    /// The first seed of its runs: its own, whatever else is run.
    pub fn seed(&self, experiment: &str, root: u64) -> u64 {
        Seed::new(root).named(experiment).named(&self.name).rng().next() >> 16
    }
}

/// What a finished cell measured: metric name, unit, values over its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Over the runs in which it had a value; `None` if there was none.
    pub summary: Option<Summary>,
}
