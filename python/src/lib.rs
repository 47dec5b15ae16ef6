//! The simulator for Python: what `bellwether/__init__.py` stands on.
//!
//! | file | holds |
//! |---|---|
//! | `scenario.rs` | a scenario, and one run of it |
//! | `sweep.rs` | many runs on threads, in the order of their seeds, with bounded memory |
//! | `table.rs` | rows as Arrow's columns |
//! | `log.rs` | the event log of a run, batch by batch |
//! | `error.rs` | what is wrong, as an exception |
//!
//! Whatever takes time releases the interpreter's lock.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is a host: it owns the threads, and Arrow's metadata are a hash map"
)]

mod error;
mod log;
mod scenario;
mod sweep;
mod table;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
#[pyo3(name = "_core")]
fn core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<scenario::Outcome>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<log::Trace>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
