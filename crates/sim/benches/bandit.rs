//! Whole runs of bandit elections: a client's 2,500 requests in the report's environment, message by message.
//!
//! The first row is the claim that a thousand seeds of a cell are cheap: five nodes in a tenth of a second.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures real time"
)]

use std::time::Instant;

use bellwether_sim::{metric::Metric, run::run, scenario::Scenario};

fn main() {
    println!(
        "{:>3} {:<10} {:<15} {:>10} {:>12} {:>12} {:>8}",
        "N", "profile", "policy", "s a run", "events", "events/s", "rounds"
    );
    for (nodes, profile, policy) in [
        (5, "reference", "epsilon-greedy"),
        (5, "reference", "ucb"),
        (5, "reference", "next"),
        (5, "reference", "thompson"),
        (5, "published", "epsilon-greedy"),
        (5, "hardened", "epsilon-greedy"),
        (11, "reference", "epsilon-greedy"),
        (11, "hardened", "epsilon-greedy"),
        (23, "reference", "epsilon-greedy"),
        (23, "hardened", "epsilon-greedy"),
    ] {
        measure(nodes, profile, policy);
    }
    println!("(seconds of processor time)");
}

fn measure(nodes: u32, profile: &str, policy: &str) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bandit-report.toml");
    let sets = [
        format!("network.nodes={nodes}"),
        format!("election.form={profile}"),
        format!("election.policy={policy}"),
        "election.environment.machines=table-1".to_owned(),
    ];
    let scenario = Scenario::load(file.as_ref(), &sets).unwrap_or_else(|error| panic!("{error}"));
    let (mut events, mut rounds) = (0.0, 0.0);
    let (took, ()) = timed(|| {
        for seed in 0..RUNS {
            let outcome = run(&scenario, seed).expect("a mesh is connected");
            events += outcome.value(Metric::Events).unwrap_or(0.0);
            rounds += outcome.value(Metric::LeRounds).unwrap_or(0.0);
        }
    });
    let runs = RUNS as f64;
    println!(
        "{nodes:>3} {profile:<10} {policy:<15} {:>10.4} {:>12.0} {:>12.0} {:>8.1}",
        took / runs,
        events / runs,
        events / took,
        rounds / runs,
    );
}

/// Seconds of processor time where the system tells, else of wall time.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (wall, cpu) = (Instant::now(), processor_seconds());
    let result = work();
    let took = match (cpu, processor_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => wall.elapsed().as_secs_f64(),
    };
    (took, result)
}

fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(stat.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// Runs of each row.
const RUNS: u64 = 20;
