//! What is wrong, as an exception.

use bellwether_sim::{
    scenario::{Place, SettingsError},
    world::Disconnected,
};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

/// A wrong scenario, with the text of the command and its facts one by one.
pub(crate) fn scenario(error: SettingsError) -> PyErr {
    raised(|py| {
        let (file, line, column) = match error.place() {
            Place::Position { file, line, column } => {
                (Some(file.as_str()), Some(*line), Some(*column))
            }
            Place::File { file } => (Some(file.as_str()), None, None),
            Place::Settings | Place::Variable { .. } | Place::Flag { .. } => (None, None, None),
        };
        let arguments = (
            error.to_string(),
            error.place().to_string(),
            error.field(),
            error.found(),
            error.problem(),
            error.allowed(),
            (file, line, column),
        );
        exception(py, "ScenarioError")?.call1(arguments)
    })
}

/// A world that is right but cannot be drawn.
pub(crate) fn disconnected(error: &Disconnected) -> PyErr {
    placement(&error.to_string())
}

/// The same, where only its words are left.
pub(crate) fn placement(problem: &str) -> PyErr {
    raised(|py| exception(py, "PlacementError")?.call1((problem,)))
}

/// A thread of ours panicked: a bug here, not in the scenario.
pub(crate) fn panicked(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what} panicked; standard error says where"))
}

fn exception<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("bellwether._errors")?.getattr(name)
}

fn raised(make: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>) -> PyErr {
    Python::attach(|py| match make(py) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    })
}
