//! What crosses the network: keys, sealed packets, and the sockets they go through.

pub mod key;
pub(crate) mod refusal;
pub(crate) mod seal;
pub(crate) mod transport;
