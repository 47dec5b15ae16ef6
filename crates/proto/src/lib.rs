//! Leader election and group membership as pure state machines.
//!
//! Nothing here reads a clock, opens a socket, starts a thread or asks the operating system for
//! randomness. A protocol is a value: inputs go in, effects come out, time and randomness are passed
//! in. Read [`machine`] first; it states the contract between a machine and its host, with a host in
//! twenty lines.
//!
//! | module | holds |
//! |---|---|
//! | [`machine`] | the contract: inputs, effects, deadlines, the drain rule |
//! | [`time`], [`id`], [`epoch`], [`leadership`], [`rng`] | the words every protocol uses |
//! | [`hash`] | what a value is folded into a trace by |
//! | [`wire`] | the codec, safe on hostile bytes, exact about lengths |
//! | [`mechanism`] | what several protocols need, written once |
//! | [`membership`] | who is there |
//! | [`election`] | who leads |
//! | [`churn`] | how far lists disagree about who is there |
//! | [`topology`] | who hears whom, and who is in the middle |
//! | [`stack`] | an election on a membership, as one machine |
//! | [`node`] | everything that decides who leads, as one machine: what an agent runs |
//!
//! The crate is `no_std` with `alloc`, contains no `unsafe`, and gives the same trace for the same
//! seed on every platform.

#![no_std]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod churn;
pub mod election;
pub mod epoch;
pub mod hash;
pub mod id;
pub mod leadership;
pub mod machine;
pub mod mechanism;
pub mod membership;
pub mod node;
pub mod rng;
pub mod stack;
pub mod time;
pub mod topology;
pub mod wire;

pub use epoch::Epoch;
pub use id::{Boot, Incarnation, NodeId, Peer};
pub use leadership::{Election, Leadership, Mode, Why};
pub use machine::{Effect, EffectOf, Input, InputOf, Machine, Outbox, OutboxOf, Rejected};
pub use rng::{Rng, Seed};
pub use time::{Duration, Time};
