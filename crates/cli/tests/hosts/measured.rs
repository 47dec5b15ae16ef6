//! What agents cost, and how times are spread.

use std::{thread, time::Duration};

pub(crate) use bellwether_hosts::Spread;
use bellwether_hosts::{Memory, Net, memory, run_time};

use crate::agents::Agents;

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
        let pid = |at| agents.pid(at).as_raw_nonzero().get().unsigned_abs();
        let run_time = |at| run_time(pid(at)).expect("it runs").as_secs_f64();
        let run = || agents.all().map(run_time).sum::<f64>();
        let (before, run_before) = (net.traffic(), run());
        thread::sleep(span);
        let (after, run_after) = (net.traffic(), run());
        let held: Vec<Memory> = agents.all().map(|at| memory(pid(at)).expect("it runs")).collect();
        let mean = |of: fn(&Memory) -> u64| mebibytes(held.iter().map(of).sum()) / count;
        let span = span.as_secs_f64();
        Self {
            kbits: (after.bytes - before.bytes) as f64 * 8.0 / 1_000.0 / span,
            packets: (after.packets - before.packets) as f64 / span,
            cpu: 100.0 * (run_after - run_before) / span / count,
            pss: mean(|memory| memory.pss),
            rss: mean(|memory| memory.rss),
        }
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
