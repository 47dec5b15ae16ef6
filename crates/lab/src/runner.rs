//! Running experiments: only what is not there yet, cell by cell, seeds in parallel.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
};

use bellwether_sim::{
    observe::Summary,
    run::{each_seed, run_many},
    scenario::SettingsError,
    world::Disconnected,
};

use crate::{
    claim::Claim,
    computation::Value,
    experiment::{Cell, Experiment, Measured, Size, Work},
    store::{Store, StoreError, Stored},
    table::Table,
};

/// Why an experiment could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Its results could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is wrong itself.
    #[error("{experiment}: {error}")]
    Scenario {
        /// Which.
        experiment: &'static str,
        /// What is wrong.
        error: SettingsError,
    },
    /// A placement could not be drawn.
    #[error("{experiment}: {error}")]
    Placement {
        /// Which.
        experiment: &'static str,
        /// What is wrong.
        error: Disconnected,
    },
    /// A computation failed.
    #[error("{experiment}: {cell}: {error}")]
    Computation {
        /// Which.
        experiment: &'static str,
        /// Of which cell.
        cell: String,
        /// Why.
        error: Box<dyn Error + Send + Sync>,
    },
    /// A cell cannot be shown as a scenario.
    #[error("{experiment}: {cell:?} is no scenario: it computes {computes}")]
    NoScenario {
        /// Which.
        experiment: &'static str,
        /// Of which cell.
        cell: String,
        /// What it computes instead.
        computes: String,
    },
    /// Some cells are missing, so that nothing can be said about its claims.
    #[error("{experiment}: {missing} of {cells} cells are missing; run it first")]
    Incomplete {
        /// Which.
        experiment: &'static str,
        /// How many are missing.
        missing: usize,
        /// How many there should be.
        cells: usize,
    },
}

/// Which share of the cells to run: one of `of`, counted from 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shard {
    /// Which.
    pub index: usize,
    /// Of how many.
    pub of: usize,
}

impl Shard {
    /// All cells.
    pub const WHOLE: Self = Self { index: 1, of: 1 };
}

/// Which cells of an experiment to run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Share {
    /// Every n-th cell, from some cell on.
    Shard(Shard),
    /// Those of these names.
    Cells(BTreeSet<String>),
}

impl Share {
    /// All cells there are.
    pub const WHOLE: Self = Self::Shard(Shard::WHOLE);

    fn takes(&self, index: usize, cell: &Cell) -> bool {
        match self {
            Self::Shard(shard) => index % shard.of == shard.index - 1,
            Self::Cells(names) => names.contains(&cell.name),
        }
    }
}

/// What running will take: cells to run and their runs, and cells already there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    /// Cells to run.
    pub cells: usize,
    /// Their runs.
    pub runs: u64,
    /// Cells that are there.
    pub done: usize,
}

/// The cells of an experiment with what is stored of each; a cell that was changed since counts as absent.
fn survey(
    experiment: &Experiment,
    store: &Store,
) -> Result<Vec<(Cell, String, Option<Stored>)>, LabError> {
    let manifest = store.manifest();
    let size = manifest.size().unwrap_or(Size::Full);
    let kept_as = experiment.kept_as(size);
    let mut stored = store.load(kept_as)?;
    let mut cells = Vec::new();
    for cell in (experiment.cells)(size) {
        let digest = digest(experiment, &cell, size, manifest.seed)?;
        let there = stored.remove(&cell.name).filter(|stored| stored.digest == digest);
        cells.push((cell, digest, there));
    }
    Ok(cells)
}

/// What a cell is known by where its results are kept: a digest of its scenario, its runs and its seed; `root` is the
/// seed that all seeds are derived from.
///
/// # Errors
///
/// [`LabError::Scenario`] if it is wrong.
pub fn digest(
    experiment: &Experiment,
    cell: &Cell,
    size: Size,
    root: u64,
) -> Result<String, LabError> {
    let digest = cell.digest();
    let digest = digest.map_err(|error| LabError::Scenario { experiment: experiment.id, error })?;
    Ok(format!("{digest}-{}-{}", cell.runs, cell.seed(experiment.kept_as(size), root)))
}

/// What is left to do of an experiment.
///
/// # Errors
///
/// [`LabError`].
pub fn plan(experiment: &Experiment, store: &Store, share: &Share) -> Result<Plan, LabError> {
    let mut plan = Plan::default();
    for (index, (cell, _, there)) in survey(experiment, store)?.into_iter().enumerate() {
        if there.is_some() {
            plan.done += 1;
        } else if share.takes(index, &cell) {
            plan.cells += 1;
            plan.runs += cell.runs;
        }
    }
    Ok(plan)
}

/// Runs what is left to do of an experiment; `finished` is called after each run.
///
/// # Errors
///
/// [`LabError`]; cells finished before are kept.
pub fn run(
    experiment: &Experiment,
    store: &Store,
    share: &Share,
    finished: impl Fn() + Sync,
) -> Result<(), LabError> {
    let mut complete = BTreeMap::new();
    let mut rest = Vec::new();
    for (index, (cell, digest, there)) in survey(experiment, store)?.into_iter().enumerate() {
        match there {
            Some(stored) => {
                complete.insert(cell.name, stored);
            }
            None if share.takes(index, &cell) => rest.push((cell, digest)),
            None => {}
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    // Clears away what was cut short or belongs to an older form of the experiment.
    store.rewrite(experiment, &complete)?;
    let kept_as = experiment.kept_as(store.manifest().size().unwrap_or(Size::Full));
    for (cell, digest) in rest {
        let seed = cell.seed(kept_as, store.manifest().seed);
        let measured = measure(experiment.id, &cell, seed, &finished)?;
        let stored = Stored { digest, measured };
        store.append(kept_as, &cell.name, &stored)?;
        complete.insert(cell.name, stored);
    }
    Ok(store.rewrite(experiment, &complete)?)
}

/// All runs of a cell.
///
/// # Errors
///
/// [`LabError`].
pub fn measure(
    experiment: &'static str,
    cell: &Cell,
    seed: u64,
    finished: impl Fn() + Sync,
) -> Result<Vec<Measured>, LabError> {
    let wrong = |error| LabError::Scenario { experiment, error };
    match &cell.work {
        Work::Scenario(setup) => {
            let scenario = setup.scenario(&cell.name).map_err(wrong)?;
            let report = run_many(&scenario, seed, cell.runs, finished)
                .map_err(|error| LabError::Placement { experiment, error })?;
            let measured = report.metrics().into_iter().map(|(metric, summary)| Measured {
                metric: metric.to_string(),
                unit: metric.unit().to_string(),
                summary,
            });
            Ok(measured.collect())
        }
        Work::Computation(computation) => {
            let scenario = cell.scenario().map_err(wrong)?;
            let name = &cell.name;
            let failed = |error| LabError::Computation { experiment, cell: name.clone(), error };
            let found = each_seed(seed, cell.runs, finished, |seed| {
                computation.run(scenario.as_ref(), seed).map_err(failed)
            })?;
            Ok(summed_up(&found))
        }
    }
}

/// Every value over all runs, in the order of the first.
fn summed_up(found: &[Vec<Value>]) -> Vec<Measured> {
    let first = found.first().map_or(&[][..], Vec::as_slice);
    let summed = |(place, one): (usize, &Value)| {
        let at =
            |run: &Vec<Value>| run.get(place).filter(|other| other.metric == one.metric)?.value;
        Measured {
            metric: one.metric.clone(),
            unit: one.unit.to_string(),
            summary: Summary::of(found.iter().filter_map(at)),
        }
    };
    first.iter().enumerate().map(summed).collect()
}

/// The results of an experiment that has been run completely.
///
/// # Errors
///
/// [`LabError::Incomplete`] if it has not.
pub fn results(experiment: &Experiment, store: &Store) -> Result<Table, LabError> {
    let cells = survey(experiment, store)?;
    let missing = cells.iter().filter(|(.., there)| there.is_none()).count();
    if missing > 0 {
        let cells = cells.len();
        return Err(LabError::Incomplete { experiment: experiment.id, missing, cells });
    }
    let size = store.manifest().size().unwrap_or(Size::Full);
    let there = cells.into_iter().filter_map(|(cell, _, there)| Some((cell.name, there?.measured)));
    Ok(Table::new(size, there.collect()))
}

/// The claims of an experiment that has been run completely.
///
/// # Errors
///
/// [`LabError::Incomplete`] if it has not.
pub fn claims(experiment: &Experiment, store: &Store) -> Result<Vec<Claim>, LabError> {
    Ok((experiment.claims)(&results(experiment, store)?))
}
