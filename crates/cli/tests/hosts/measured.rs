//! What agents cost, and how times are spread.

use std::{fs, thread, time::Duration};

use crate::{agents::Agents, net::Net};

/// What a cluster takes while nothing happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// All hosts together, on the wire, each packet once.
    pub(crate) kbits: f64,
    /// A second, all hosts together.
    pub(crate) packets: f64,
    /// Of one core, for the mean node.
    pub(crate) cpu: f64,
    /// For the mean node, in MiB; code is shared by all of them.
    pub(crate) pss: f64,
    /// For the mean node, in MiB: what a single one would take at most.
    pub(crate) rss: f64,
}

impl Cost {
    /// During so long.
    pub(crate) fn of(net: &Net, agents: &Agents<'_>, span: Duration) -> Self {
        let count = agents.all().len() as f64;
        let run = || agents.all().map(|at| run_time(agents, at)).sum::<f64>();
        let (before, run_before) = (net.traffic(), run());
        thread::sleep(span);
        let (after, run_after) = (net.traffic(), run());
        let memory = |field: &str| agents.all().map(|at| mebibytes(agents, at, field)).sum::<f64>();
        let span = span.as_secs_f64();
        Self {
            kbits: (after.bytes - before.bytes) as f64 * 8.0 / 1_000.0 / span,
            packets: (after.packets - before.packets) as f64 / span,
            cpu: 100.0 * (run_after - run_before) / span / count,
            pss: memory("Pss:") / count,
            rss: memory("Rss:") / count,
        }
    }
}

/// Seconds on a core so far, all threads.
fn run_time(agents: &Agents<'_>, at: usize) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", agents.pid(at))).expect("it runs");
    let nanos = |task: std::io::Result<fs::DirEntry>| {
        // A thread may end while we look.
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    tasks.filter_map(nanos).sum::<f64>() / 1e9
}

fn mebibytes(agents: &Agents<'_>, at: usize, field: &str) -> f64 {
    let maps = fs::read_to_string(format!("/proc/{}/smaps_rollup", agents.pid(at)));
    let maps = maps.expect("it runs");
    let line = maps.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number");
    kibibytes / 1_024.0
}

/// Times, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn add(&mut self, time: f64) {
        self.0.push(time);
        self.0.sort_by(f64::total_cmp);
    }

    /// The smallest that this share does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }
}
