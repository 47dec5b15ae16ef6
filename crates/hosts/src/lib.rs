//! Hosts made of network namespaces, for tests and measurements of real processes.
//!
//! ```no_run
//! use bellwether_hosts::Net;
//!
//! let net = Net::of(3)?;
//! let mut server = net.host(0).command("python3").args(["-m", "http.server"]).spawn()?;
//! net.unplug(0);
//! # server.kill()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It takes `ip`, `nft`, `nsenter`, `unshare` and `setpriv`, and root; `unshare --map-root-user` makes a root good
//! enough. Nothing leaves the namespaces: they have no cable to the machine they are on.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "hosts run real processes in real time"
)]

mod net;
mod process;
mod spread;
mod tap;

pub use net::{Door, Namespace, Net, Traffic};
pub use process::{Memory, ProcessError, memory, run_time};
pub use spread::Spread;
pub use tap::{Datagram, Tap};

/// Why there are no hosts here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program this is built on could not be started.
    #[error("`{program}` cannot be started ({why}); Debian has it in the package {package}")]
    Missing {
        /// The program that was called.
        program: String,
        /// The Debian package it is in.
        package: &'static str,
        /// What the system said.
        why: String,
    },
    /// A program this is built on said no, most likely for want of permission.
    #[error("`{program}` failed: {why}")]
    Refused {
        /// The program that was called.
        program: String,
        /// What it said.
        why: String,
    },
}
