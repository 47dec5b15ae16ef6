//! The event log of a run, batch by batch, so that a long one never lies in memory whole.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader, StringArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use bellwether_sim::{
    observe::{Entry, Log},
    run::run_logged,
    scenario::Scenario,
    world::Disconnected,
};
use pyo3::{prelude::*, types::PyCapsule};

use crate::{
    error,
    table::{Table, stream, texts},
};

/// A run that is told step by step, by a thread that waits while nobody reads.
#[pyclass(frozen, module = "bellwether._core")]
pub(crate) struct Trace {
    schema: SchemaRef,
    told: Arc<Mutex<Told>>,
}

struct Told {
    batches: Receiver<RecordBatch>,
    run: Option<thread::JoinHandle<Result<String, Disconnected>>>,
    hash: Option<String>,
}

impl Trace {
    pub(crate) fn start(scenario: Arc<Scenario>, seed: u64, rows: usize) -> Self {
        let schema = Arc::new(Schema::new(vec![
            Field::new("us", DataType::UInt64, false),
            Field::new("node", DataType::UInt64, false),
            Field::new("what", DataType::Utf8, false),
            Field::new("detail", DataType::Utf8, false),
        ]));
        let (sender, batches) = sync_channel(AHEAD);
        let own = Arc::clone(&schema);
        let run = thread::spawn(move || told(&scenario, seed, rows, &own, &sender));
        let told = Told { batches, run: Some(run), hash: None };
        Self { schema, told: Arc::new(Mutex::new(told)) }
    }
}

/// Runs to the end; a reader that is gone is told nothing more.
fn told(
    scenario: &Scenario,
    seed: u64,
    rows: usize,
    schema: &SchemaRef,
    sender: &SyncSender<RecordBatch>,
) -> Result<String, Disconnected> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut heard = true;
    let mut note = |entry| {
        if !heard {
            return;
        }
        entries.push(entry);
        if entries.len() == rows {
            heard = sender.send(batch(schema, &mut entries)).is_ok();
        }
    };
    let outcome = run_logged(scenario, seed, Log::to(&mut note))?;
    if heard && !entries.is_empty() {
        // A reader that has gone by now wants nothing.
        let _ = sender.send(batch(schema, &mut entries));
    }
    Ok(outcome.trace.to_string())
}

fn batch(schema: &SchemaRef, entries: &mut Vec<Entry>) -> RecordBatch {
    let times: UInt64Array = entries.iter().map(|entry| Some(entry.at.as_micros())).collect();
    let nodes: UInt64Array = entries.iter().map(|entry| Some(entry.node.get())).collect();
    let whats = StringArray::from_iter_values(entries.iter().map(|entry| entry.what));
    let details = texts(entries.drain(..).map(|entry| entry.detail));
    let columns: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(nodes), Arc::new(whats), details];
    RecordBatch::try_new(Arc::clone(schema), columns).expect("as the schema says")
}

impl Told {
    fn next(&mut self) -> Result<Option<RecordBatch>, Failed> {
        if let Ok(batch) = self.batches.recv() {
            return Ok(Some(batch));
        }
        if let Some(run) = self.run.take() {
            let hash = run.join().map_err(|_| Failed::Panicked)?;
            self.hash = Some(hash.map_err(Failed::Disconnected)?);
        }
        Ok(None)
    }
}

enum Failed {
    Panicked,
    Disconnected(Disconnected),
}

#[pymethods]
impl Trace {
    /// The next rows, or `None` after the last.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let told = Arc::clone(&self.told);
        let next = py.detach(|| told.lock().unwrap_or_else(PoisonError::into_inner).next());
        match next {
            Ok(batch) => Ok(batch.map(|batch| Table::new(Arc::clone(&self.schema), vec![batch]))),
            Err(Failed::Panicked) => Err(error::panicked("the run")),
            Err(Failed::Disconnected(error)) => Err(error::disconnected(&error)),
        }
    }

    /// A table without rows, to have the columns of a run without steps.
    fn empty(&self) -> Table {
        Table::new(Arc::clone(&self.schema), Vec::new())
    }

    /// What vouches for the steps; `None` before all are read.
    #[getter]
    fn trace_hash(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.told.lock().unwrap_or_else(PoisonError::into_inner).hash.clone())
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let (schema, told) = (Arc::clone(&self.schema), Arc::clone(&self.told));
        stream(py, Box::new(Reader { schema, told }))
    }
}

struct Reader {
    schema: SchemaRef,
    told: Arc<Mutex<Told>>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.told.lock().unwrap_or_else(PoisonError::into_inner).next();
        let words = |failed| match failed {
            Failed::Panicked => "the run panicked".to_owned(),
            Failed::Disconnected(error) => error.to_string(),
        };
        next.map_err(|failed| ArrowError::ExternalError(words(failed).into())).transpose()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Batches that wait for a reader.
const AHEAD: usize = 2;
