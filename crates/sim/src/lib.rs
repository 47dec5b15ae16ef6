//! A deterministic discrete-event simulator for the protocols of [`bellwether_proto`].
//!
//! A run is a pure function of a [`scenario`](scenario::Scenario) and a seed: single-threaded, in a total
//! order of events, with every random choice drawn from a named branch of the seed. Runs are parallel.
//! The machines simulated are the very values an agent drives.
//!
//! ```
//! use bellwether_sim::{metric::Metric, run::run_many, scenario::Scenario};
//!
//! let scenario = Scenario::parse("example", r#"
//!     name = "LE-S on ten nodes"
//!     duration = "60s"
//!     until = "agreement"
//!     [network]
//!     nodes = 10
//!     delay = { kind = "fixed", value = "100ms" }
//!     [election]
//!     kind = "announce"
//!     variant = "le-s"
//!     announce = "1s"
//!     suppress = "1s"
//!     listen = "3s"
//!     form = "corrected"
//! "#, &[]).unwrap();
//! let report = run_many(&scenario, 1, 200, || ()).unwrap();
//! let delay = report.summary(Metric::LeadershipDelay).unwrap();
//! // Half the suppression interval and one delay, whatever the number of nodes.
//! assert!((delay.mean - 0.6).abs() < 4.0 * delay.standard_error());
//! assert_eq!(report, run_many(&scenario, 1, 200, || ()).unwrap());
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`scenario`] | a world described as data, and the files that describe it |
//! | [`run`] | one run, many runs, what they amount to |
//! | [`engine`] | the event loop: the host of the machines |
//! | [`network`], [`world`] | how messages travel, and in which world |
//! | [`mobility`], [`radio`], [`picture`] | nodes that move, the air between them, and what that looks like |
//! | [`schedule`] | faults, carried out |
//! | [`watch`], [`agreement`], [`announcing`], [`electing`], [`centring`], [`detection`], [`lists`], [`invariant`], [`metric`] | what is watched and measured |
//! | [`conformance`] | the suite every election passes |
//! | [`explore`] | the model checker: every history of a kind of a few machines |
//! | [`membership_trace`] | recorded lists of members, to be played to elections |
//! | [`environment`], [`party`], [`serving`] | machines that fail, nodes with a client, and what becomes of its requests |
//! | [`rolls`], [`polls`] | lists at one instant, and elections on them by the thousand |
//! | [`flips`] | links that flip, and how centrality elections end |
//! | [`inconsistency`] | how far recorded lists disagree: the true `c` |
//! | [`queue`], [`trace`], [`log`] | the event queue, the trace hash, the event log |

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod agreement;
pub mod announcing;
pub mod arbitrating;
pub mod centring;
mod clock;
pub mod conformance;
pub mod detection;
pub mod electing;
pub mod engine;
pub mod environment;
pub mod explore;
pub mod flips;
pub mod inconsistency;
pub mod invariant;
pub mod lists;
pub mod log;
pub mod membership_trace;
pub mod metric;
pub mod mobility;
pub mod network;
pub mod party;
pub mod picture;
pub mod polls;
pub mod queue;
pub mod radio;
pub mod rolls;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod serving;
pub mod trace;
pub mod watch;
pub mod world;
