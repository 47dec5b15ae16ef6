//! Experiments as data: what to run, what to expect, what to draw.

use std::fmt;

use bellwether_proto::Seed;
use bellwether_sim::{
    metric::Summary,
    scenario::{Scenario, ScenarioError},
    trace::TraceHash,
};

use crate::{claim::Claim, computation::Computation, figure::Figure, table::Table};

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

/// One point of a sweep, run many times.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its name, unique in its experiment.
    pub name: String,
    /// What is run.
    pub work: Work,
    /// How often it is run.
    pub runs: u64,
}

/// What a run of a cell does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Runs a scenario, and takes its metrics.
    Scenario(Setup),
    /// Computes something else.
    Computation(Computation),
}

impl Cell {
    /// A cell of `runs` runs of a scenario.
    pub fn new(name: impl Into<String>, base: &'static str, runs: u64) -> Self {
        Self { name: name.into(), work: Work::Scenario(Setup::new(base)), runs }
    }

    /// A cell of `runs` runs of a computation.
    pub fn computed(name: impl Into<String>, computation: Computation, runs: u64) -> Self {
        Self { name: name.into(), work: Work::Computation(computation), runs }
    }

    /// Changes a field of its scenario, if it runs one.
    pub fn set(mut self, path: &str, value: impl fmt::Display) -> Self {
        if let Some(setup) = self.setup_mut() {
            setup.sets.push(format!("{path}={value}"));
        }
        self
    }

    /// Its scenario; `None` if it computes without one.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if the experiment is wrong; a test reads every cell of every experiment.
    pub fn scenario(&self) -> Result<Option<Scenario>, ScenarioError> {
        let setup = match &self.work {
            Work::Scenario(setup) => Some(setup),
            Work::Computation(computation) => computation.setup(),
        };
        setup.map(|setup| setup.scenario(&self.name)).transpose()
    }

    /// Digest of what a run does, its seed excepted.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`], as [`scenario`](Self::scenario).
    pub fn digest(&self) -> Result<TraceHash, ScenarioError> {
        match &self.work {
            Work::Scenario(setup) => Ok(setup.scenario(&self.name)?.digest()),
            Work::Computation(computation) => Ok(computation.digest(self.scenario()?.as_ref())),
        }
    }

    /// The first seed of its runs: its own, whatever else is run.
    pub fn seed(&self, experiment: &str, root: u64) -> u64 {
        Seed::new(root).named(experiment).named(&self.name).rng().next() >> 16
    }

    fn setup_mut(&mut self) -> Option<&mut Setup> {
        match &mut self.work {
            Work::Scenario(setup) => Some(setup),
            Work::Computation(computation) => computation.setup_mut(),
        }
    }
}

/// A scenario as an experiment writes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setup {
    /// The scenario it starts from.
    pub base: &'static str,
    /// What it changes in it, as `--set` would.
    pub sets: Vec<String>,
}

impl Setup {
    /// `base` as it is.
    pub const fn new(base: &'static str) -> Self {
        Self { base, sets: Vec::new() }
    }

    /// The scenario, under the name of its cell.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if it is none.
    pub fn scenario(&self, name: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse(name, self.base, &self.sets)
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
