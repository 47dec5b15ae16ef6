//! Membership: who is there.

pub mod ping;
