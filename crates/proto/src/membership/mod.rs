//! Membership: who is there.

pub mod medley;
#[cfg(feature = "research")]
pub mod ping;
pub mod ring;
