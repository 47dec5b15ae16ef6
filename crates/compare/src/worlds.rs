//! Networks of which some links work: for how long nobody leads there that a majority follows.
//!
//! The worlds are those of Omni-Paxos (Ng, Haridi and Carbone, EuroSys 2023), and one link of the leader.

use std::{
    fmt::Write as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;

use crate::{Failure, cluster::Cluster, interrupt, measure::load, systems::System, watch::Watch};

/// In each cluster.
const NODES: usize = 5;
/// Of each system, side by side: what is measured are waits of seconds, while idle nodes and those who ask them need
/// little of two cores. More would be in each other's way.
const CLUSTERS: usize = 3;
/// Watched after the cut.
const SPAN: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Which links are left, of the hub (first), the others, and the leader (last).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum World {
    QuorumLoss,
    Constrained,
    Chained,
    Link,
}

impl World {
    const ALL: [Self; 4] = [Self::QuorumLoss, Self::Constrained, Self::Chained, Self::Link];

    const fn words(self) -> &'static str {
        match self {
            Self::QuorumLoss => "quorum loss: all reach one follower, and nobody else",
            Self::Constrained => "constrained: the same, and the leader reaches nobody",
            Self::Chained => "chained: the leader at one end",
            Self::Link => "one link of the leader cut",
        }
    }

    /// Whether the two at these places still hear each other, the first before the second.
    const fn linked(self, a: usize, b: usize) -> bool {
        let last = NODES - 1;
        match self {
            Self::QuorumLoss => a == 0,
            Self::Constrained => a == 0 && b != last,
            Self::Chained => b == a + 1,
            Self::Link => a != 0 || b != last,
        }
    }
}

/// What one system did: the seconds without a leader, run by run, in each world.
pub(crate) struct Row {
    system: &'static str,
    version: String,
    settings: String,
    seconds: Vec<Vec<f64>>,
}

/// All systems at the same time, so that whatever disturbs one disturbs the others too.
pub(crate) fn measure(
    systems: &[&dyn System],
    runs: usize,
    folder: &Path,
) -> Result<Vec<Row>, Failure> {
    let nets = Net::several(systems.len() * CLUSTERS, NODES).map_err(|error| {
        Failure::new(format!(
            "no hosts here: {error}\n  remedy: install iproute2 and nftables, and run as root or under \
             `unshare --map-root-user`"
        ))
    })?;
    let row = |system: &&dyn System| {
        let (system, version, settings) = (system.name(), system.version()?, system.settings());
        Ok(Row { system, version, settings, seconds: vec![Vec::new(); World::ALL.len()] })
    };
    let mut rows: Vec<Row> = systems.iter().map(row).collect::<Result<_, Failure>>()?;
    // If one fails the others need not go on.
    let failed = &AtomicBool::new(false);
    thread::scope(|scope| {
        let start = |(at, net): (usize, _)| {
            let (system, number) = (systems[at / CLUSTERS], at % CLUSTERS);
            let folder = folder.join(format!("{}-{number}", system.name()));
            scope.spawn(move || {
                let times = some_runs(system, net, &folder, number, runs, failed);
                times.inspect_err(|_| failed.store(true, Ordering::Relaxed))
            })
        };
        let started: Vec<_> = nets.iter().enumerate().map(start).collect();
        for (at, cluster) in started.into_iter().enumerate() {
            let times = cluster.join().map_err(|_| Failure::new("a cluster panicked"))??;
            let seconds = &mut rows[at / CLUSTERS].seconds;
            times.into_iter().for_each(|(world, time)| seconds[world].push(time));
        }
        Ok(rows)
    })
}

/// Every so many of the runs of all worlds, on one cluster: the place of the world, and the time.
fn some_runs(
    system: &dyn System,
    net: &Net,
    folder: &Path,
    number: usize,
    runs: usize,
    failed: &AtomicBool,
) -> Result<Vec<(usize, f64)>, Failure> {
    let mut cluster = Cluster::start(net, system, folder.to_owned(), NODES)?;
    let mut times = Vec::new();
    for at in (number..World::ALL.len() * runs).step_by(CLUSTERS) {
        if failed.load(Ordering::Relaxed) {
            break;
        }
        let (world, run) = (at / runs, at % runs);
        let leader = cluster.form()?;
        // Not in step with anybody's period.
        interrupt::sleep(Duration::from_millis(3_000 + 370 * (run as u64 % 5)))?;
        let kind = World::ALL[world];
        let time = without(net, system, kind, leader)?;
        eprintln!("{:>10}: {kind:?}, {} of {runs}: {time:.2} s", system.name(), run + 1);
        times.push((world, time));
    }
    Ok(times)
}

/// For how long of the span nobody leads that a majority follows and that reaches them.
fn without(net: &Net, system: &dyn System, world: World, leader: usize) -> Result<f64, Failure> {
    let mut order: Vec<usize> = (0..NODES).filter(|&at| at != leader).collect();
    order.push(leader);
    let watch = Watch::over(net, system, 0..NODES);
    interrupt::sleep(Duration::from_millis(500))?;
    let pairs = (0..NODES).flat_map(|b| (0..b).map(move |a| (a, b)));
    let cut = pairs.filter(|&(a, b)| !world.linked(a, b));
    let begun = Instant::now();
    net.cut(cut.flat_map(|(a, b)| [(order[a], order[b]), (order[b], order[a])]));
    let (mut none, mut last) = (Duration::ZERO, begun);
    while begun.elapsed() < SPAN {
        interrupt::sleep(LOOK)?;
        let now = Instant::now();
        // Others may still name one that they cannot hear any more.
        let may = |at: usize| world != World::Constrained || at != leader;
        if watch.followed(may).is_none() {
            none += now - last;
        }
        last = now;
    }
    net.mend();
    Ok(none.as_secs_f64())
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn page(rows: &[Row], runs: usize) -> Result<String, Failure> {
    let (load, cores) = load();
    let mut text = format!(
        "# Networks that half work\n\nMade by `bellwether-compare --worlds {runs}`: {NODES} hosts to a cluster, {CLUSTERS} \
         clusters of each system, all {} side by side on {cores} cores (load\n{load:.1}). Seconds of the {} after the cut \
         during which nobody led that a majority named, that said so itself and that was not\ncut off from all of them: \
         median (longest).\n\n| world | runs |",
        rows.len() * CLUSTERS,
        SPAN.as_secs()
    );
    let fail = |_| Failure::new("writing to a string");
    for row in rows {
        write!(text, " {} |", row.system).map_err(fail)?;
    }
    writeln!(text, "\n|---|---|{}", "---|".repeat(rows.len())).map_err(fail)?;
    for (at, world) in World::ALL.into_iter().enumerate() {
        write!(text, "| {} | {runs} |", world.words()).map_err(fail)?;
        for row in rows {
            let times = &row.seconds[at];
            let longest = times.iter().copied().fold(0.0, f64::max);
            write!(text, " {:.2} ({longest:.2}) |", median(times)).map_err(fail)?;
        }
        writeln!(text).map_err(fail)?;
    }
    writeln!(text).map_err(fail)?;
    for row in rows {
        writeln!(text, "- {} {}: {}", row.system, row.version, row.settings).map_err(fail)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_world_leaves_the_links_it_is_known_for() {
        let links = |world: World| {
            let pairs = (0..NODES).flat_map(|b| (0..b).map(move |a| (a, b)));
            pairs.filter(|&(a, b)| world.linked(a, b)).count()
        };
        assert_eq!(World::ALL.map(links), [4, 3, 4, 9]);
    }
}
