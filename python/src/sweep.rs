//! Many runs on threads, handed out in the order of their seeds.
//!
//! Threads are never more than a window ahead of the reader, so that memory does not grow with the number of runs. The
//! first run of every cell comes first: it says which metrics there are, and Arrow wants the columns before the rows.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchReader, StringArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use bellwether_sim::{
    observe::Metric,
    run::{Outcome, run},
    scenario::Scenario as World,
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyCapsule};

use crate::{
    error,
    scenario::Scenario,
    table::{Table, stream},
};

/// What tells cells apart: a column of its own.
#[derive(Clone, FromPyObject)]
pub(crate) enum Label {
    #[pyo3(transparent)]
    Whole(Vec<i64>),
    #[pyo3(transparent)]
    Number(Vec<f64>),
    #[pyo3(transparent)]
    Text(Vec<String>),
}

impl Label {
    fn len(&self) -> usize {
        match self {
            Self::Whole(values) => values.len(),
            Self::Number(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Whole(_) => DataType::Int64,
            Self::Number(_) => DataType::Float64,
            Self::Text(_) => DataType::Utf8,
        }
    }

    fn column(&self, cells: impl Iterator<Item = usize>) -> ArrayRef {
        match self {
            Self::Whole(values) => {
                Arc::new(Int64Array::from_iter_values(cells.map(|cell| values[cell])))
            }
            Self::Number(values) => {
                Arc::new(Float64Array::from_iter_values(cells.map(|cell| values[cell])))
            }
            Self::Text(values) => {
                Arc::new(StringArray::from_iter_values(cells.map(|cell| &values[cell])))
            }
        }
    }
}

/// What is kept of a run.
struct Row {
    trace: String,
    values: Vec<(Metric, Option<f64>)>,
    violations: Vec<Broken>,
}

/// Cell, seed, invariant, when in seconds, particulars.
type Broken = (usize, u64, &'static str, f64, String);

impl Row {
    fn of(cell: usize, outcome: Outcome) -> Self {
        let broken = |one: bellwether_sim::invariant::Violation| {
            (cell, outcome.seed, one.invariant, one.at.as_secs_f64(), one.detail)
        };
        let violations = outcome.violations.into_iter().map(broken).collect();
        Self { trace: outcome.trace.to_string(), values: outcome.values, violations }
    }
}

/// What threads and reader share.
struct Shared {
    cells: Vec<Arc<World>>,
    labels: Vec<(String, Label)>,
    first: u64,
    step: i128,
    seeds: Option<Vec<u64>>,
    runs: u64,
    rows: usize,
    window: u64,
    state: Mutex<State>,
    changed: Condvar,
    finished: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Runs begun, in the order in which they are begun.
    begun: u64,
    /// Rows that were handed out, in the order of cells and seeds.
    handed: u64,
    ready: BTreeMap<u64, Row>,
    schema: Option<(SchemaRef, Vec<Metric>)>,
    violations: Vec<Broken>,
    failed: Option<String>,
    /// Nobody reads any more.
    over: bool,
}

impl Shared {
    fn total(&self) -> u64 {
        self.runs * self.cells.len() as u64
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seed(&self, run: u64) -> u64 {
        match &self.seeds {
            Some(seeds) => seeds[run as usize],
            None => (i128::from(self.first) + self.step * i128::from(run)) as u64,
        }
    }

    /// The place in the output of the run that is begun at this turn: first of every cell, then all others.
    fn place(&self, turn: u64) -> u64 {
        let cells = self.cells.len() as u64;
        match turn.checked_sub(cells) {
            None => turn * self.runs,
            Some(rest) => rest / (self.runs - 1) * self.runs + 1 + rest % (self.runs - 1),
        }
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let turn = state.begun;
            if state.over || state.failed.is_some() || turn == self.total() {
                return;
            }
            let place = self.place(turn);
            if turn >= self.cells.len() as u64 && place >= state.handed + self.window {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.begun += 1;
            drop(state);
            let cell = (place / self.runs) as usize;
            let outcome = run(&self.cells[cell], self.seed(place % self.runs));
            self.finished.fetch_add(1, Ordering::Relaxed);
            state = self.lock();
            match outcome {
                Ok(outcome) => drop(state.ready.insert(place, Row::of(cell, outcome))),
                Err(error) => state.failed = Some(error.to_string()),
            }
            self.changed.notify_all();
        }
    }

    /// The columns, once every cell has been run once.
    fn schema(&self, state: &mut State) -> Option<(SchemaRef, Vec<Metric>)> {
        if let Some(known) = &state.schema {
            return Some(known.clone());
        }
        let mut metrics = Vec::new();
        for cell in 0..self.cells.len() as u64 {
            for (metric, _) in &state.ready.get(&(cell * self.runs))?.values {
                if !metrics.contains(metric) {
                    metrics.push(*metric);
                }
            }
        }
        let labels =
            self.labels.iter().map(|(name, label)| Field::new(name, label.data_type(), false));
        let own = [("seed", DataType::UInt64), ("trace_hash", DataType::Utf8)]
            .map(|(name, kind)| Field::new(name, kind, false));
        let measured = metrics.iter().map(|metric| {
            let unit = HashMap::from([("unit".to_owned(), metric.unit().to_string())]);
            Field::new(metric.name(), DataType::Float64, true).with_metadata(unit)
        });
        let fields: Vec<Field> = labels.chain(own).chain(measured).collect();
        state.schema = Some((Arc::new(Schema::new(fields)), metrics));
        state.schema.clone()
    }

    /// The next rows if they are there; `wait` says for how long at most, if not for ever.
    fn next(&self, wait: Option<Duration>) -> Next {
        let mut state = self.lock();
        loop {
            if let Some(problem) = &state.failed {
                return Next::Failed(problem.clone());
            }
            if state.handed == self.total() {
                return Next::End;
            }
            let want = (self.total() - state.handed).min(self.rows as u64);
            let last = state.handed + want;
            let known = self.schema(&mut state);
            let there = state.ready.range(state.handed..last).count() as u64 == want;
            if let Some((schema, metrics)) = known.filter(|_| there) {
                let later = state.ready.split_off(&last);
                let rows = std::mem::replace(&mut state.ready, later);
                state.handed = last;
                let broken = rows.values().flat_map(|row| row.violations.iter().cloned());
                state.violations.extend(broken);
                self.changed.notify_all();
                drop(state);
                return Next::Rows(self.batch(&schema, &metrics, &rows));
            }
            state = match wait {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(wait) => {
                    let waited = self.changed.wait_timeout(state, wait);
                    let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out() {
                        return Next::Later;
                    }
                    state
                }
            };
        }
    }

    fn batch(
        &self,
        schema: &SchemaRef,
        metrics: &[Metric],
        rows: &BTreeMap<u64, Row>,
    ) -> RecordBatch {
        let cells = || rows.keys().map(|place| (place / self.runs) as usize);
        let mut columns: Vec<ArrayRef> =
            self.labels.iter().map(|(_, label)| label.column(cells())).collect();
        let seeds = rows.keys().map(|place| self.seed(place % self.runs));
        columns.push(Arc::new(UInt64Array::from_iter_values(seeds)));
        columns.push(Arc::new(StringArray::from_iter_values(rows.values().map(|row| &row.trace))));
        for metric in metrics {
            let value = |row: &Row| {
                row.values.iter().find(|(other, _)| other == metric).and_then(|(_, value)| *value)
            };
            columns.push(Arc::new(rows.values().map(value).collect::<Float64Array>()));
        }
        RecordBatch::try_new(Arc::clone(schema), columns).expect("as the schema says")
    }
}

enum Next {
    Rows(RecordBatch),
    End,
    Later,
    Failed(String),
}

/// Many runs, begun when this is made.
#[pyclass(frozen, module = "bellwether._core")]
pub(crate) struct Sweep(Arc<Running>);

/// The runs as those hold them who read; without any of these the threads end.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

#[pymethods]
impl Sweep {
    /// `cells` are run with the same seeds; `rows` are handed out at a time.
    #[new]
    #[pyo3(signature = (cells, labels, seeds, threads, rows))]
    fn new(
        cells: Vec<PyRef<'_, Scenario>>,
        labels: Vec<(String, Label)>,
        seeds: (u64, i64, u64, Option<Vec<u64>>),
        threads: Option<usize>,
        rows: usize,
    ) -> PyResult<Self> {
        let (first, step, runs, seeds) = seeds;
        let fits = labels.iter().all(|(_, label)| label.len() == cells.len());
        if cells.is_empty() || runs == 0 || rows == 0 || !fits {
            return Err(PyValueError::new_err("a sweep has cells, runs and rows"));
        }
        let threads = threads
            .unwrap_or_else(|| thread::available_parallelism().map_or(1, std::num::NonZero::get));
        let shared = Arc::new(Shared {
            cells: cells.iter().map(|cell| Arc::clone(&cell.read)).collect(),
            labels,
            first,
            step: i128::from(step),
            seeds,
            runs,
            rows,
            // One batch may be full while the threads are at the next.
            window: 2 * rows as u64 + threads as u64,
            state: Mutex::default(),
            changed: Condvar::new(),
            finished: AtomicU64::new(0),
        });
        for _ in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let failing = Arc::clone(&shared);
                let work = std::panic::AssertUnwindSafe(|| shared.work());
                if std::panic::catch_unwind(work).is_err() {
                    failing.lock().failed = Some("a run panicked".to_owned());
                    failing.changed.notify_all();
                }
            });
        }
        Ok(Self(Arc::new(Running(shared))))
    }

    /// `(True, rows)`, `(True, None)` after the last, `(False, None)` if there is nothing yet after so many seconds.
    fn next(&self, py: Python<'_>, wait: f64) -> PyResult<(bool, Option<Table>)> {
        let shared = Arc::clone(&self.0.0);
        let wait = Duration::from_secs_f64(wait.clamp(0.0, 3600.0));
        match py.detach(|| shared.next(Some(wait))) {
            Next::Rows(batch) => Ok((true, Some(Table::new(batch.schema(), vec![batch])))),
            Next::End => Ok((true, None)),
            Next::Later => Ok((false, None)),
            Next::Failed(problem) => Err(error::placement(&problem)),
        }
    }

    /// Runs that are done, handed out or not.
    #[getter]
    fn finished(&self) -> u64 {
        self.0.0.finished.load(Ordering::Relaxed)
    }

    #[getter]
    fn total(&self) -> u64 {
        self.0.0.total()
    }

    /// Of the rows handed out since this was last called: cell, seed, invariant, when in seconds, particulars.
    fn take_violations(&self, py: Python<'_>) -> Vec<Broken> {
        py.detach(|| std::mem::take(&mut self.0.0.lock().violations))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let running = Arc::clone(&self.0);
        let reader = py.detach(move || {
            let shared = &running.0;
            let mut state = shared.lock();
            loop {
                if let Some(problem) = &state.failed {
                    return Err(problem.clone());
                }
                if let Some((schema, _)) = shared.schema(&mut state) {
                    drop(state);
                    return Ok(Reader { schema, running: Arc::clone(&running) });
                }
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        });
        stream(py, Box::new(reader.map_err(|problem| error::placement(&problem))?))
    }
}

struct Reader {
    schema: SchemaRef,
    running: Arc<Running>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.running.0.next(None) {
            Next::Rows(batch) => Some(Ok(batch)),
            Next::Failed(problem) => Some(Err(ArrowError::ExternalError(problem.into()))),
            Next::End | Next::Later => None,
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
