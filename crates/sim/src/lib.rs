//! A deterministic discrete-event simulator for the protocols of [`bellwether_proto`].
//!
//! A run is a pure function of a [`scenario`](scenario::Scenario) and a seed: single-threaded, in a total
//! order of events, with every random choice drawn from a named branch of the seed. Runs are parallel.
//! The machines simulated are the very values an agent drives.
//!
//! ```
//! use bellwether_sim::{observe::Metric, run::run_many, scenario::Scenario};
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
//! A room imports only from those above it in this table (`crates/cli/tests/tidy/rooms.rs` sees to it).
//!
//! | room | holds |
//! |---|---|
//! | [`world`] | where nodes are, how they move and fail, how messages travel; the same as settings |
//! | [`engine`] | the event loop, which hosts the machines: queue, clocks, disks, the trace hash |
//! | [`invariant`] | what must hold at every instant, one property a file |
//! | [`observe`] | what is watched and measured: an observer for each protocol, the metrics, the event log |
//! | [`lists`] | lists of members: recorded, compared with each other, played to elections |
//! | [`scenario`] | a run described as data, and the files that describe it |
//! | [`run`] | one run, many runs, what they amount to: a file for each family of protocols; faults, carried out |
//! | [`picture`] | a field with moving nodes, drawn |
//! | [`play`] | a run that somebody plays with: a scenario, a seed, and what else is to go wrong; its film |
//! | [`check`] | the suite that every election passes, the model checker, links that flip |

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod check;
pub mod engine;
pub mod invariant;
pub mod lists;
pub mod observe;
pub mod picture;
pub mod play;
pub mod run;
pub mod scenario;
pub mod world;
