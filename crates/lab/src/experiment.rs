//! Experiments as data: what to run, what to expect, what to draw.

use std::fmt;

use bellwether_proto::Seed;
use bellwether_sim::{
    engine::TraceHash,
    observe::Summary,
    scenario::{Scenario, SettingsError},
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

impl Experiment {
    /// Under which name its results are kept: its own, or that of the series it looks at.
    pub fn kept_as(&self, size: Size) -> &'static str {
        (self.cells)(size).first().and_then(|cell| cell.series).unwrap_or(self.id)
    }
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
    /// Whose it is, if several experiments look at the same runs: all of them have the same cells then.
    pub series: Option<&'static str>,
    /// What its seeds are named after, if not itself: cells that share a name share the worlds they are run in.
    pub world: Option<String>,
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
        Self {
            name: name.into(),
            work: Work::Scenario(Setup::new(base)),
            runs,
            series: None,
            world: None,
        }
    }

    /// A cell of `runs` runs of a computation.
    pub fn computed(name: impl Into<String>, computation: Computation, runs: u64) -> Self {
        Self {
            name: name.into(),
            work: Work::Computation(computation),
            runs,
            series: None,
            world: None,
        }
    }

    /// One of a series at which several experiments look.
    pub fn of(self, series: &'static str) -> Self {
        Self { series: Some(series), ..self }
    }

    /// In the same worlds as all other cells that say so: what they measure is then compared pair by pair.
    pub fn in_world(self, world: impl Into<String>) -> Self {
        Self { world: Some(world.into()), ..self }
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
    /// [`SettingsError`] if the experiment is wrong; a test reads every cell of every experiment.
    pub fn scenario(&self) -> Result<Option<Scenario>, SettingsError> {
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
    /// [`SettingsError`], as [`scenario`](Self::scenario).
    pub fn digest(&self) -> Result<TraceHash, SettingsError> {
        match &self.work {
            Work::Scenario(setup) => Ok(setup.scenario(&self.name)?.digest()),
            Work::Computation(computation) => Ok(computation.digest(self.scenario()?.as_ref())),
        }
    }

    /// The first seed of its runs: its own, whatever else is run. `kept_as` is where its results go.
    pub fn seed(&self, kept_as: &str, root: u64) -> u64 {
        Seed::new(root).named(kept_as).named(self.world.as_ref().unwrap_or(&self.name)).rng().next()
            >> 16
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
    /// [`SettingsError`] if it is none.
    pub fn scenario(&self, name: &str) -> Result<Scenario, SettingsError> {
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
