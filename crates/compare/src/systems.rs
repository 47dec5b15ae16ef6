//! What is compared: how each is started, and how a node of it is asked who leads.

mod bellwether;
mod etcd;
mod serf;
mod zookeeper;

use std::{path::Path, process::Command};

use bellwether_hosts::Net;

pub(crate) use self::{
    bellwether::{Bellwether, Mode},
    etcd::Etcd,
    serf::Serf,
    zookeeper::ZooKeeper,
};
use crate::Failure;

/// One of the systems compared.
pub(crate) trait System: Sync {
    fn name(&self) -> &'static str;

    /// How many nodes it is run with, unless told otherwise: as many as its users would.
    fn nodes(&self) -> usize {
        16
    }

    /// All that was set, by its own names. Figures are never quoted without them.
    fn settings(&self) -> String;

    /// How its answers are read: when a node counts as naming a leader.
    fn naming(&self) -> &'static str;

    /// The Debian packages it comes from.
    fn packages(&self) -> &'static [&'static str];

    fn version(&self) -> Result<String, Failure>;

    /// Writes what all `count` nodes need into the folder, before the first of them starts.
    fn prepare(&self, folder: &Path, count: usize) -> Result<(), Failure>;

    /// Starts this node, with what it left in the folder if it ran before.
    fn command(&self, net: &Net, folder: &Path, at: usize, count: usize) -> Command;

    /// Somebody on the node's host who asks it.
    fn client(&self, at: usize) -> Box<dyn Client>;
}

/// Asks one node, from its own host. It is used by one thread, which is on that host.
pub(crate) trait Client: Send {
    /// What the node says now, if it answers at all.
    fn look(&mut self) -> Option<View>;

    /// How many nodes it takes for alive; none where following the leader is all the membership there is.
    fn alive(&mut self) -> Option<usize> {
        None
    }
}

/// What a node says of itself and of the leader, in the system's own names of nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct View {
    pub(crate) own: String,
    pub(crate) leader: Option<String>,
}

/// A name for the node on a host; names sort like hosts.
fn name(at: usize) -> String {
    format!("host-{at:02}")
}

/// Of a Debian package, as installed.
fn package_version(package: &str) -> Result<String, Failure> {
    let output = Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]).output();
    let output = output.map_err(|error| Failure::new(format!("dpkg-query: {error}")))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let fail = |error| Failure::new(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    std::fs::write(path, text).map_err(fail)
}
