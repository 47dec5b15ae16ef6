//! One system, measured: what it costs while nothing happens, and how long nobody leads when the leader is gone.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bellwether_hosts::{Memory, Net};

use crate::{
    Failure,
    cluster::Cluster,
    interrupt,
    systems::System,
    watch::{Watch, others},
};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) idle: Duration,
    /// Before idle costs are measured: joining is over, and the JVM has compiled what it will.
    pub(crate) settle: Duration,
    pub(crate) cuts: usize,
    pub(crate) kills: usize,
    /// How many nodes, instead of what each system is run with.
    pub(crate) nodes: Option<usize>,
}

/// The idle span is cut into pieces this long.
pub(crate) const BIN: Duration = Duration::from_secs(10);

/// Whoever has no leader after that gets none.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What came out.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) system: &'static str,
    pub(crate) version: String,
    pub(crate) nodes: usize,
    pub(crate) settings: String,
    pub(crate) naming: &'static str,
    /// Of one core, for the mean node.
    pub(crate) cpu_percent: f64,
    /// For the mean node, which shares its code with the others on this machine.
    pub(crate) pss_mib: f64,
    /// For the mean node, as if it were alone.
    pub(crate) rss_mib: f64,
    /// All hosts together, each frame once with its Ethernet header; bin by bin.
    pub(crate) kbit_s: Vec<f64>,
    /// All hosts together; bin by bin.
    pub(crate) packets_s: Vec<f64>,
    /// From cutting the leader's cable until every survivor names the new one, in seconds; infinite if that never came.
    pub(crate) cut_s: Vec<f64>,
    /// The same from killing the leader's process.
    pub(crate) kill_s: Vec<f64>,
    /// How many processes wanted to run on this machine meanwhile, by the kernel's count, and its cores.
    pub(crate) load: (f64, usize),
}

#[derive(Clone, Copy)]
enum Fault {
    Cut,
    Kill,
}

pub(crate) fn measure(
    system: &dyn System,
    plan: &Plan,
    folder: &Path,
) -> Result<Measured, Failure> {
    let nodes = plan.nodes.unwrap_or_else(|| system.nodes());
    let fail = |error: bellwether_hosts::Error| {
        Failure::new(format!(
            "no hosts here: {error}\n  remedy: install iproute2 and nftables, and run as root or under \
             `unshare --map-root-user`"
        ))
    };
    let net = Net::of(nodes).map_err(fail)?;
    say(system, &format!("{nodes} nodes start"));
    let mut cluster = Cluster::start(&net, system, folder.to_owned(), nodes)?;
    cluster.form()?;
    say(system, "one leader; settling");
    interrupt::sleep(plan.settle)?;
    let mut measured = idle(system, &net, &cluster, plan.idle)?;
    for (fault, count) in [(Fault::Cut, plan.cuts), (Fault::Kill, plan.kills)] {
        for trial in 0..count {
            let took = fail_over(&net, system, &mut cluster, fault, trial)?;
            let (what, times) = match fault {
                Fault::Cut => ("cable cut", &mut measured.cut_s),
                Fault::Kill => ("process killed", &mut measured.kill_s),
            };
            times.push(took);
            say(system, &format!("{what}, {} of {count}: {took:.2} s", trial + 1));
        }
    }
    Ok(measured)
}

fn idle(
    system: &dyn System,
    net: &Net,
    cluster: &Cluster<'_>,
    span: Duration,
) -> Result<Measured, Failure> {
    let nodes = cluster.all().len();
    let [mut kbit_s, mut packets_s] = [const { Vec::new() }; 2];
    let (begun, run_before) = (Instant::now(), cluster.run_time()?);
    let (mut at, mut before) = (begun, net.traffic());
    while begun.elapsed() < span {
        say(system, &format!("idle, {} of {} s", begun.elapsed().as_secs(), span.as_secs()));
        interrupt::sleep(BIN.min(span))?;
        let (now, traffic) = (Instant::now(), net.traffic());
        let seconds = (now - at).as_secs_f64();
        kbit_s.push((traffic.bytes - before.bytes) as f64 * 8.0 / 1_000.0 / seconds);
        packets_s.push((traffic.packets - before.packets) as f64 / seconds);
        (at, before) = (now, traffic);
    }
    let run = cluster.run_time()?.saturating_sub(run_before);
    let memory = cluster.memory()?;
    let mebibytes = |of: fn(&Memory) -> u64| {
        memory.iter().map(of).sum::<u64>() as f64 / f64::from(1 << 20) / nodes as f64
    };
    Ok(Measured {
        system: system.name(),
        version: system.version()?,
        nodes,
        settings: system.settings(),
        naming: system.naming(),
        cpu_percent: 100.0 * run.as_secs_f64() / begun.elapsed().as_secs_f64() / nodes as f64,
        pss_mib: mebibytes(|memory| memory.pss),
        rss_mib: mebibytes(|memory| memory.rss),
        kbit_s,
        packets_s,
        cut_s: Vec::new(),
        kill_s: Vec::new(),
        load: load(),
    })
}

/// Takes the leader away, waits for the next one, and brings it back; gives how long the wait was.
fn fail_over(
    net: &Net,
    system: &dyn System,
    cluster: &mut Cluster<'_>,
    fault: Fault,
    trial: usize,
) -> Result<f64, Failure> {
    let leader = cluster.form()?;
    // Not in step with anybody's period.
    interrupt::sleep(Duration::from_millis(2_000 + 370 * (trial as u64 % 5)))?;
    let watch = Watch::over(net, system, others(cluster.all(), leader));
    interrupt::sleep(Duration::from_millis(500))?;
    let begun = Instant::now();
    match fault {
        Fault::Cut => net.unplug(leader),
        Fault::Kill => cluster.kill(leader),
    }
    let mut took = f64::INFINITY;
    while begun.elapsed() < PATIENCE {
        interrupt::sleep(Duration::from_millis(20))?;
        if let Some(agreed) = watch.agreed() {
            took = (agreed.since - begun).as_secs_f64();
            break;
        }
    }
    drop(watch);
    match fault {
        Fault::Cut => net.plug(leader),
        Fault::Kill => cluster.run(leader)?,
    }
    Ok(took)
}

/// How many processes wanted to run on this machine in the last minute, by the kernel's count, and its cores.
pub(crate) fn load() -> (f64, usize) {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = text.split(' ').next().and_then(|word| word.parse().ok());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (minute.unwrap_or(f64::NAN), cores)
}

fn say(system: &dyn System, what: &str) {
    eprintln!("{:>10}: {what}", system.name());
}
