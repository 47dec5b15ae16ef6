//! What is watched and measured while a run goes on.

pub mod agreement;
pub mod announce;
pub mod central;
pub mod detection;
pub mod eventual;
pub mod log;
pub mod membership;
pub mod metric;
pub mod requests;
pub mod ring;
pub mod watch;
