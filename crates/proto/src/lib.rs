//! Leader election and group membership as values that a host drives.
//!
//! [`node::Node`] decides who leads: a gossip membership and any number of named elections, in five modes. It reads no
//! clock, opens no socket, starts no thread and asks the operating system for nothing. Its host tells it what has
//! happened ([`Input`]), carries out what it answers ([`Effect`]), and wakes it at its deadline. Simulator, agent and
//! model checker host the same value.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Duration, ElectionId, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     node::{ElectionSettings, Node, Settings, TimingProfile},
//! };
//!
//! let elections = vec![ElectionSettings::default()];
//! let plan = Settings::new("kitchen", TimingProfile::Lan.timing(), elections).plan().unwrap();
//! let me = Peer::new(NodeId::new(1), Boot::new(1));
//! let mut node = Node::new(me, plan, Seed::new(1), None);
//!
//! let (mut out, end) = (Outbox::new(), Time::ZERO + Duration::from_secs(10));
//! node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! while let Some((now, _why)) = node.deadline().filter(|&(at, _)| at < end) {
//!     while out.pop().is_some() {} // A host sends, persists and reports here.
//!     node.handle(now, Input::Timeout, &mut out).unwrap();
//! }
//! let answer = node.leadership_of(ElectionId::named("default"), end);
//! assert_eq!(answer.leader, Some(me.id), "there is nobody else");
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`machine`] | the contract between a machine and its host, with a host in forty lines |
//! | [`node`] | the node, its settings, what it is told and what it says |
//! | [`wire`] | how messages and durable state become bytes, and hostile bytes errors |
//!
//! `examples/by_hand.rs` is a host on threads and sockets of the standard library.
//!
//! The crate is `no_std` with `alloc`, contains no `unsafe`, and does the same for the same seed on every platform.
//!
//! # What semver covers
//!
//! Everything on these pages. Settings structs gain fields in minor releases: construct them with
//! `..Default::default()` or change the fields of a value. A new [`Mode`] or [`Effect`] is a breaking release on
//! purpose: a host that ignores one breaks a promise.
//!
//! The protocols inside the node are public too, for the simulator and the laboratory of this repository, but are not on
//! these pages and change in any release. The feature `research`, off by default, documents them and adds what no node
//! contains: baselines, and protocols as their papers have them, faults included.

#![no_std]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod churn;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod election;
mod epoch;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod hash;
mod id;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod keys;
mod leadership;
pub mod machine;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod mechanism;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod membership;
pub mod node;
mod rng;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod stack;
mod time;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod topology;
pub mod wire;

#[cfg_attr(not(feature = "research"), doc(hidden))]
pub use id::Incarnation;
pub use {
    epoch::{Epoch, ParseEpochError},
    id::{Boot, ElectionId, NodeId, ParseElectionIdError, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Effect, EffectOf, Input, InputOf, Machine, Outbox, OutboxOf, Rejected},
    rng::{Rng, Seed},
    time::{Duration, ParseDurationError, Time},
};
