//! Experiments as data: what to run, what to expect, what to draw.

use std::fmt;

use bellwether_proto::Seed;
use bellwether_sim::{
    engine::TraceHash,
    observe::Summary,
    scenario::{Scenario, SettingsError},
};

use toml::Value;

use crate::{
    claim::Claim, computation::Computation, figure::Figure, runner::LabError, table::Table,
};

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

    /// A cell as a scenario file that `bellwether sim` runs to the same numbers, with the command for it; `root` is
    /// the seed that all seeds are derived from.
    ///
    /// # Errors
    ///
    /// [`LabError`] if it is no scenario.
    pub fn shown(&self, cell: &Cell, size: Size, root: u64) -> Result<String, LabError> {
        let Self { id, title, source, .. } = self;
        let seed = cell.seed(self.kept_as(size), root);
        let command = format!("bellwether sim FILE --seed {seed} --runs {}", cell.runs);
        let (setup, what) = match &cell.work {
            Work::Scenario(setup) => (setup, command),
            Work::Computation(one) => {
                let cell = cell.name.clone();
                let setup = one.setup().ok_or_else(|| LabError::NoScenario {
                    experiment: self.id,
                    cell,
                    computes: one.to_string(),
                })?;
                let what = format!(
                    "The lab computes {one} from this scenario, which is no metric of `bellwether sim`."
                );
                (setup, format!("{what}\n# {command}"))
            }
        };
        let wrong = |error| LabError::Scenario { experiment: self.id, error };
        let text = setup.written(&format!("{id}: {}", cell.name)).map_err(wrong)?;
        Ok(format!("# {title}. ({source})\n# {what}\n\n{text}"))
    }
}

/// How much to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Size {
    /// The paper's own size.
    Full,
    /// Fewer runs of smaller worlds: the same claims, judged with wider intervals.
    Quick,
}

impl Size {
    /// The name in manifests.
    pub fn name(self) -> &'static str {
        self.pick("full", "quick")
    }

    /// One or the other.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }

    /// `full` runs at the paper's size, a tenth of them (but at least 40) when quick.
    pub fn runs(self, full: u64) -> u64 {
        self.pick(full, (full / 10).clamp(40.min(full), full))
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
        let work = Work::Scenario(Setup::new(base));
        Self { name: name.into(), work, runs, series: None, world: None }
    }

    /// A cell of `runs` runs of a computation.
    pub fn computed(name: impl Into<String>, computation: Computation, runs: u64) -> Self {
        Self { work: Work::Computation(computation), ..Self::new(name, "", runs) }
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
        self.setup().map(|setup| setup.scenario(&self.name)).transpose()
    }

    /// How its scenario is written; `None` if it computes without one.
    pub fn setup(&self) -> Option<&Setup> {
        match &self.work {
            Work::Scenario(setup) => Some(setup),
            Work::Computation(computation) => computation.setup(),
        }
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

    /// The scenario as a file that says the same without overrides, under this name.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] if it is none.
    pub fn written(&self, name: &str) -> Result<String, SettingsError> {
        self.scenario(name)?;
        let mut root = Value::Table(self.base.parse().expect("the scenario's reader took it"));
        for set in &self.sets {
            let (path, text) = set.split_once('=').expect("the scenario's reader took it");
            let at = path.split('.').try_fold(&mut root, entry);
            // As on a command line: what is not TOML is a text without quotes.
            let value = text.parse().unwrap_or_else(|_| Value::String(text.trim().into()));
            *at.expect("the scenario's reader found it") = value;
        }
        *entry(&mut root, "name").expect("a file is a table") = Value::String(name.into());
        // What stood beside a kind or variant that was overridden has no meaning any more. The reader lets it be in a
        // file with overrides, and names it in one without.
        loop {
            let text = toml::to_string(&root).expect("what was TOML can be written as it");
            let Err(error) = Scenario::parse(name, &text, &[]) else { return Ok(text) };
            let (path, key) = error.field().rsplit_once('.').unwrap_or(("", error.field()));
            let keys = path.split('.').filter(|key| !key.is_empty());
            let removed = match keys.into_iter().try_fold(&mut root, entry) {
                Some(Value::Table(table)) => table.remove(key),
                _ => None,
            };
            if removed.is_none() {
                return Err(error);
            }
        }
    }
}

/// The entry of a table, new if there was none, or of a list.
fn entry<'a>(of: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match of {
        Value::Table(table) => {
            Some(table.entry(key).or_insert_with(|| Value::Table(toml::Table::new())))
        }
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
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
