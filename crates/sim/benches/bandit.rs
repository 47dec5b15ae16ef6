//! Whole runs of bandit elections: a client's 2,500 requests in the report's environment, message by message.
//!
//! The first row is the claim that a thousand seeds of a cell are cheap: five nodes in a tenth of a second.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures real time"
)]

mod timed;

use bellwether_sim::{observe::Metric, run::run, scenario::Scenario};

use timed::timed;

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

/// Runs of each row.
const RUNS: u64 = 20;
