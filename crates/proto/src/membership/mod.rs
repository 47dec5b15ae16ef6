//! Membership: who is there.

pub mod medley;
pub mod ping;
pub mod ring;
