//! Rows as Arrow's columns, handed over without a copy by the C data interface.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray, UInt64Array, ffi_stream::FFI_ArrowArrayStream,
};
use arrow_schema::{DataType, SchemaRef};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyTypeError,
    prelude::*,
    types::{PyCapsule, PyDict, PyList},
};

/// Columns of equal length, kept as Arrow has them.
#[pyclass(frozen, module = "bellwether._core")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// All rows of a column, `None` where there is no value.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let index = self.schema.index_of(name).map_err(|_| {
            let names = self.names().join(", ");
            pyo3::exceptions::PyKeyError::new_err(format!("no column {name:?}; there are {names}"))
        })?;
        let list = PyList::empty(py);
        for batch in &self.batches {
            each_value(py, batch.column(index), |value| list.append(value))?;
        }
        Ok(list)
    }

    /// All columns.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for name in self.names() {
            columns.set_item(&name, self.column(py, &name)?)?;
        }
        Ok(columns)
    }

    /// The rows of these tables one after the other.
    #[staticmethod]
    fn concat(tables: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let Some(first) = tables.first() else {
            return Err(PyTypeError::new_err("at least one table"));
        };
        let schema = first.schema.clone();
        if tables.iter().any(|table| table.schema != schema) {
            return Err(PyTypeError::new_err("tables of the same columns only"));
        }
        let batches = tables.iter().flat_map(|table| table.batches.iter().cloned());
        Ok(Self { schema, batches: batches.collect() })
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Arrow's C stream interface: `pyarrow.table(this)`, `polars.from_arrow(this)` and others take it.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore what was asked for.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        stream(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }
}

/// A reader as a capsule that others read from; they call it without the interpreter's lock.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// A column of texts, none of them missing.
pub(crate) fn texts(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn each_value<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    mut each: impl FnMut(Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    macro_rules! values {
        ($kind:ty) => {{
            let array: &$kind = array.as_any().downcast_ref().expect("its type says so");
            array.iter().try_for_each(|value| each(value.into_bound_py_any(py)?))
        }};
    }
    match array.data_type() {
        DataType::UInt64 => values!(UInt64Array),
        DataType::Int64 => values!(Int64Array),
        DataType::Float64 => values!(Float64Array),
        DataType::Boolean => values!(BooleanArray),
        DataType::Utf8 => values!(StringArray),
        other => Err(PyTypeError::new_err(format!("no column of ours is {other}"))),
    }
}
