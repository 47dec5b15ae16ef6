//! Where nodes are, how they move and fail, and how messages travel between them.

pub mod client;
pub mod environment;
pub mod mobility;
pub mod network;
pub mod radio;
pub mod settings;
