//! Lists of members: recorded, compared with each other, and played to elections.

pub mod inconsistency;
pub mod membership_trace;
pub mod snapshot;
pub mod trials;
