//! What several protocols need, written once. A mechanism knows nothing of messages or sending: it
//! takes facts and `now`, and returns decisions.

pub mod replay;
pub mod timers;
