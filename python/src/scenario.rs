//! A scenario, and one run of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use bellwether_sim::{
    observe::{Log, Naming, Namings},
    run::{run, run_logged},
    scenario,
};
use pyo3::{exceptions::PyOSError, prelude::*, types::PyDict};

use crate::{error, log, table::Table};

/// A world, what its nodes run, and what goes wrong.
#[pyclass(frozen, module = "bellwether._core")]
pub(crate) struct Scenario {
    pub(crate) read: Arc<scenario::Scenario>,
    source: Source,
    sets: Vec<String>,
}

/// What it was read from, to be read again with overrides.
#[derive(Clone)]
enum Source {
    Text { name: String, text: String },
    Settings { file: PathBuf, settings: PathBuf },
}

impl Scenario {
    fn of(source: Source, sets: Vec<String>) -> PyResult<Self> {
        let read = match &source {
            Source::Text { name, text } => scenario::Scenario::parse(name, text, &sets),
            Source::Settings { file, settings } => {
                scenario::Scenario::load_with(file, settings, &sets)
            }
        };
        Ok(Self { read: Arc::new(read.map_err(error::scenario)?), source, sets })
    }
}

#[pymethods]
impl Scenario {
    #[staticmethod]
    fn load(file: PathBuf, settings: Option<PathBuf>, sets: Vec<String>) -> PyResult<Self> {
        if let Some(settings) = settings {
            return Self::of(Source::Settings { file, settings }, sets);
        }
        // The simulator's reader says what is wrong with a file that it cannot read.
        scenario::Scenario::load(&file, &sets).map_err(error::scenario)?;
        let text = fs::read_to_string(&file)
            .map_err(|io| PyOSError::new_err(format!("{}: {io}", file.display())))?;
        Self::of(Source::Text { name: file.display().to_string(), text }, sets)
    }

    #[staticmethod]
    fn from_toml(text: String, name: String, sets: Vec<String>) -> PyResult<Self> {
        Self::of(Source::Text { name, text }, sets)
    }

    /// The same with more overrides.
    fn with_sets(&self, sets: Vec<String>) -> PyResult<Self> {
        Self::of(self.source.clone(), [self.sets.clone(), sets].concat())
    }

    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    #[getter]
    fn digest(&self) -> String {
        self.read.digest().to_string()
    }

    #[getter]
    fn duration(&self) -> f64 {
        self.read.duration.as_secs_f64()
    }

    #[getter]
    fn nodes(&self) -> u32 {
        self.read.network.nodes
    }

    #[getter]
    fn sets(&self) -> Vec<String> {
        self.sets.clone()
    }

    #[getter]
    fn file(&self) -> String {
        match &self.source {
            Source::Text { name, .. } => name.clone(),
            Source::Settings { file, .. } => file.display().to_string(),
        }
    }

    #[getter]
    fn settings(&self) -> Option<&Path> {
        match &self.source {
            Source::Text { .. } => None,
            Source::Settings { settings, .. } => Some(settings),
        }
    }

    /// One run.
    fn run(&self, py: Python<'_>, seed: u64) -> PyResult<Outcome> {
        let outcome = py.detach(|| run(&self.read, seed));
        Ok(Outcome(outcome.map_err(|error| error::disconnected(&error))?))
    }

    /// One run step by step, batch by batch.
    fn trace(&self, seed: u64, rows: usize) -> log::Trace {
        log::Trace::start(Arc::clone(&self.read), seed, rows.max(1))
    }

    /// Whom every node names from when on.
    fn leaders(&self, py: Python<'_>, seed: u64) -> PyResult<Table> {
        let namings = py.detach(|| {
            let namings = Namings::default();
            run_logged(&self.read, seed, Log::naming(&namings)).map(|_| namings.take())
        });
        leaders(namings.map_err(|error| error::disconnected(&error))?)
    }
}

/// Only changes: nodes are asked at every step and mostly say what they said before.
fn leaders(namings: Vec<Naming>) -> PyResult<Table> {
    let mut last = BTreeMap::new();
    let changes: Vec<Naming> = namings
        .into_iter()
        .filter(|one| {
            let said = (one.up, one.leader, one.epoch);
            last.insert(one.node, said) != Some(said)
        })
        .collect();
    let column = |of: fn(&Naming) -> Option<u64>| -> ArrayRef {
        Arc::new(changes.iter().map(of).collect::<UInt64Array>())
    };
    let up: BooleanArray = changes.iter().map(|one| Some(one.up)).collect();
    let epochs: StringArray =
        changes.iter().map(|one| one.epoch.map(|epoch| epoch.to_string())).collect();
    let schema = Arc::new(Schema::new(vec![
        Field::new("us", DataType::UInt64, false),
        Field::new("node", DataType::UInt64, false),
        Field::new("up", DataType::Boolean, false),
        Field::new("leader", DataType::UInt64, true),
        Field::new("epoch", DataType::Utf8, true),
    ]));
    let columns = vec![
        column(|one| Some(one.at.as_micros())),
        column(|one| Some(one.node.get())),
        Arc::new(up),
        column(|one| one.leader.map(|leader| leader.get())),
        Arc::new(epochs),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("as the schema says");
    Ok(Table::new(schema, vec![batch]))
}

/// What one run came to.
#[pyclass(frozen, module = "bellwether._core")]
pub(crate) struct Outcome(bellwether_sim::run::Outcome);

#[pymethods]
impl Outcome {
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    #[getter]
    fn trace_hash(&self) -> String {
        self.0.trace.to_string()
    }

    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = PyDict::new(py);
        for (metric, value) in &self.0.values {
            metrics.set_item(metric.name(), value)?;
        }
        Ok(metrics)
    }

    #[getter]
    fn units(&self) -> BTreeMap<&'static str, String> {
        self.0.values.iter().map(|(metric, _)| (metric.name(), metric.unit().to_string())).collect()
    }

    /// Invariant, when in seconds, particulars.
    #[getter]
    fn violations(&self) -> Vec<(&'static str, f64, &str)> {
        self.0
            .violations
            .iter()
            .map(|one| (one.invariant, one.at.as_secs_f64(), one.detail.as_str()))
            .collect()
    }

    /// When not all agreed, in seconds: from, to.
    #[getter]
    fn disagreements(&self) -> Vec<(f64, f64)> {
        self.0
            .disagreements
            .iter()
            .map(|(from, to)| (from.as_secs_f64(), to.as_secs_f64()))
            .collect()
    }
}
