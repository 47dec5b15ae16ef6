//! Elections: who leads.

pub mod announce;
