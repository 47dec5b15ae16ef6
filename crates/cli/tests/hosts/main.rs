//! Real agents on real hosts: network namespaces on a bridge, with cables to pull.
//!
//! The short test runs with all others. The long ones measure, and print what they found:
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts -- --ignored --nocapture
//! ```
//!
//! They need `ip`, `nft` and root; `unshare --map-root-user` in front makes a root good enough. Where network namespaces
//! are not permitted every test here says so and does nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of a host wait for real processes"
)]

mod agents;
mod measured;
mod net;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use agents::{Agents, Answer, name, until};
use measured::{Cost, Spread};
use net::Net;
use rustix::process::Signal;

/// Hosts; or none, and a word about it that no test runner swallows.
fn hosts(count: usize) -> Option<Net> {
    let net = Net::of(count);
    if let Err(why) = &net {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED a test of real agents: no network namespaces here ({why})\n  \
             remedy: install iproute2 and nftables, and run as root or under `unshare --map-root-user`"
        );
    }
    net.ok()
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// All of them alive to all of them, and one leader.
fn formed(agents: &Agents<'_>, within: Duration) -> usize {
    until(within, "all alive at all, and one leader", || {
        agents.agreed(agents.all()).filter(|_| agents.are_complete(agents.all()))
    })
}

#[test]
fn when_the_leaders_cable_is_cut_the_others_agree_on_a_new_one_and_all_do_once_it_is_back() {
    let Some(net) = hosts(4) else { return };
    let agents = Agents::start(&net, "garden", &[0, 1, 2, 3], &[]);
    let leader = formed(&agents, seconds(10));
    net.unplug(agents.host(leader));
    let others = || agents.all().filter(|&at| at != leader);
    until(seconds(8), "the others agree on one of them", || agents.agreed(others()));
    net.plug(agents.host(leader));
    formed(&agents, seconds(10));
}

/// What the waits cost: how long nobody leads against how much is said meanwhile.
#[test]
#[ignore = "20 cuts of the leader's cable, with three timings"]
fn sixteen_hosts_lose_their_leader_twenty_times() {
    let Some(net) = hosts(16) else { return };
    let hosts: Vec<usize> = (0..16).collect();
    println!("16 hosts, cable of the leader cut 20 times: until every survivor names the new one");
    println!(
        "{:>8} {:>7} {:>7} {:>7} {:>8} {:>9} {:>8} {:>8} {:>8}",
        "period", "p50 s", "p95 s", "max s", "kbit/s", "packets/s", "CPU %", "PSS MiB", "RSS MiB"
    );
    for period in ["250ms", "500ms", "1s"] {
        let set = [format!("timing.period={period}"), format!("timing.suspicion={period}")];
        let flags = ["--timing", "lan", "--set", &set[0], "--set", &set[1]];
        let agents = Agents::start(&net, "garden", &hosts, &flags);
        let mut leader = formed(&agents, seconds(60));
        thread::sleep(seconds(5));
        let cost = Cost::of(&net, &agents, seconds(30));
        let mut times = Spread::default();
        for _ in 0..20 {
            let begun = Instant::now();
            net.unplug(agents.host(leader));
            let others = || agents.all().filter(|&at| at != leader);
            let agreed = || agents.agreed(others());
            until(seconds(60), "the survivors agree on one of them", || {
                let first = agreed()?;
                thread::sleep(Duration::from_millis(500));
                agreed().filter(|&second| first == second)
            });
            let last = agents.last_change(others(), begun).expect("they changed their minds");
            times.add((last - begun).as_secs_f64());
            net.plug(agents.host(leader));
            leader = formed(&agents, seconds(60));
            // Not in step with the periods.
            thread::sleep(Duration::from_millis(300 + (begun.elapsed().as_micros() % 700) as u64));
        }
        let Cost { kbits, packets, cpu, pss, rss } = cost;
        println!(
            "{period:>8} {:>7.2} {:>7.2} {:>7.2} {kbits:>8.1} {packets:>9.1} {cpu:>8.3} {pss:>8.2} {rss:>8.2}",
            times.quantile(0.5),
            times.quantile(0.95),
            times.quantile(1.0),
        );
    }
}
