//! Everything around the node of one machine: the task that drives it, its clock and its disk, what it is told from outside,
//! and how everybody else asks it.

pub(crate) mod adapter;
pub(crate) mod clock;
pub(crate) mod discovery;
pub(crate) mod driver;
pub(crate) mod election;
pub(crate) mod handle;
pub(crate) mod hooks;
pub(crate) mod log;
pub(crate) mod neighbours;
pub(crate) mod notify;
pub(crate) mod peers;
pub(crate) mod record;
pub(crate) mod refusals;
pub(crate) mod store;
pub(crate) mod terms;
