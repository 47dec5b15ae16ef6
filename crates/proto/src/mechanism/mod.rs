//! What several protocols need, written once. A mechanism knows nothing of messages or sending: it
//! takes facts and `now`, and returns decisions.

pub mod doubt;
pub mod gossip;
pub mod health;
pub mod paths;
pub mod pinged;
pub mod replay;
pub mod sampling;
pub mod timers;
pub mod unlucky;
