//! A running cluster of one system.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use bellwether_hosts::{Memory, Net, memory, run_time};

use crate::{
    Failure, interrupt,
    systems::System,
    watch::{Agreed, Watch},
};

/// What does not come together within that never does.
const PATIENCE: Duration = Duration::from_secs(180);

/// One node of the system on every host.
pub(crate) struct Cluster<'n> {
    net: &'n Net,
    system: &'n dyn System,
    folder: PathBuf,
    nodes: Vec<Option<Child>>,
}

impl<'n> Cluster<'n> {
    pub(crate) fn start(
        net: &'n Net,
        system: &'n dyn System,
        folder: PathBuf,
        count: usize,
    ) -> Result<Self, Failure> {
        system.prepare(&folder, count)?;
        let nodes = (0..count).map(|_| None).collect();
        let mut cluster = Self { net, system, folder, nodes };
        cluster.all().try_for_each(|at| cluster.run(at))?;
        Ok(cluster)
    }

    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.nodes.len()
    }

    /// Starts this node with what it left on disk, if it ran before.
    pub(crate) fn run(&mut self, at: usize) -> Result<(), Failure> {
        let log = self.log(at);
        let fail = |error| Failure::new(format!("{}: {error}", log.display()));
        let file = fs::File::options().create(true).append(true).open(&log).map_err(fail)?;
        let mut command = self.system.command(self.net, &self.folder, at, self.nodes.len());
        let errors = file.try_clone().map_err(fail)?;
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let fail = |error| Failure::new(format!("{}: {error}", self.system.name()));
        self.nodes[at] = Some(command.spawn().map_err(fail)?);
        Ok(())
    }

    /// As the out-of-memory killer would.
    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(mut process) = self.nodes[at].take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn log(&self, at: usize) -> PathBuf {
        self.folder.join(format!("{at}.log"))
    }

    /// Waits until all nodes name one leader, and take all for alive; gives its place.
    pub(crate) fn form(&mut self) -> Result<usize, Failure> {
        let begun = Instant::now();
        let watch = Watch::over(self.net, self.system, self.all());
        while begun.elapsed() < PATIENCE {
            self.check()?;
            interrupt::sleep(Duration::from_millis(100))?;
            if let Some(Agreed { leader, .. }) = watch.agreed() {
                let complete = |at| {
                    let alive = self.net.host(at).enter(|| self.system.client(at).alive());
                    alive.is_none_or(|alive| alive == self.nodes.len())
                };
                if self.all().all(complete) {
                    return Ok(leader);
                }
            }
        }
        Err(Failure::new(format!(
            "{}: after {} s its {} nodes still do not name one leader; they say {}",
            self.system.name(),
            PATIENCE.as_secs(),
            self.nodes.len(),
            watch.said(),
        )))
    }

    /// A node that ended by itself is a failure, and its last words say which.
    fn check(&mut self) -> Result<(), Failure> {
        for at in self.all() {
            let node = self.nodes[at].as_mut();
            let ended = node.and_then(|node| node.try_wait().ok().flatten());
            if let Some(status) = ended {
                let words = fs::read_to_string(self.log(at)).unwrap_or_default();
                let last: Vec<&str> = words.lines().rev().take(5).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                return Err(Failure::new(format!(
                    "{} on host {at} ended ({status}):\n{}",
                    self.system.name(),
                    last.join("\n")
                )));
            }
        }
        Ok(())
    }

    fn pids(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().flatten().map(Child::id)
    }

    /// All nodes together, on a core, so far.
    pub(crate) fn run_time(&self) -> Result<Duration, Failure> {
        let times =
            self.pids().map(|pid| run_time(pid).map_err(|error| Failure::new(error.to_string())));
        times.sum()
    }

    /// What each node holds.
    pub(crate) fn memory(&self) -> Result<Vec<Memory>, Failure> {
        let held = |pid| memory(pid).map_err(|error| Failure::new(error.to_string()));
        self.pids().map(held).collect()
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        self.all().for_each(|at| self.kill(at));
    }
}
