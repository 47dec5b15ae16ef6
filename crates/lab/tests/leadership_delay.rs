//! The simulator beside the closed form F1: LE-A and LE-S, correlated and uncorrelated loss.

use std::path::Path;

use bellwether_lab::analysis::announce::{Group, Loss, leadership_delay};
use bellwether_proto::Seed;
use bellwether_sim::{observe::Metric, run::run_many, scenario::Scenario};

const RUNS: u64 = 2_000;

/// Overrides the shipped calibration scenario as a user would.
fn check(seed: u64, suppressing: bool, nodes: u32, kind: &str, rate: f64, delay_us: u64) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/announce-delay.toml");
    let sets = [
        format!("election.variant={}", if suppressing { "le-s" } else { "le-a" }),
        format!("network.nodes={nodes}"),
        format!("network.loss.kind={kind}"),
        format!("network.loss.rate={rate}"),
        format!("network.delay.value={delay_us}us"),
    ];
    let scenario = Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"));
    let report = run_many(&scenario, seed, RUNS, || ()).expect("a mesh is connected");
    let measured = report.summary(Metric::LeadershipDelay).expect("some run agreed");
    assert_eq!(measured.count as u64, RUNS, "some runs never agreed: {sets:?}");
    let expected = leadership_delay(&Group {
        processes: nodes,
        announce: 1.0,
        mean_wait: if suppressing { 0.5 } else { 0.0 },
        delay: delay_us as f64 / 1e6,
        loss: if kind == "correlated" { Loss::Correlated(rate) } else { Loss::Uncorrelated(rate) },
    });
    // Without loss LE-A does not vary at all; a microsecond is the clock's grain.
    let tolerance = 4.0 * measured.standard_error() + 1e-6;
    let error = measured.mean - expected;
    assert!(
        error.abs() <= tolerance,
        "{sets:?}: measured {:.4}, closed form {expected:.4}, off by {:.1} standard errors",
        measured.mean,
        error / measured.standard_error(),
    );
}

#[test]
fn correlated_loss_as_in_the_chapter() {
    for suppressing in [false, true] {
        for (nodes, rate, delay_us) in
            [(2, 0.0, 100_000), (5, 0.4, 100_000), (20, 0.4, 100_000), (50, 0.8, 100_000)]
        {
            check(1, suppressing, nodes, "correlated", rate, delay_us);
        }
    }
}

#[test]
fn correlated_loss_with_parameters_nobody_chose() {
    let mut rng = Seed::new(2026).named("parameters").rng();
    for round in 0..6 {
        let nodes = 2 + rng.below(40) as u32;
        let rate = rng.unit() * 0.85;
        // Below the announce period: beyond it a process would announce again before it is heard.
        let delay_us = rng.below(900_000);
        check(100 + round, round % 2 == 0, nodes, "correlated", rate, delay_us);
    }
}

#[test]
fn uncorrelated_loss_takes_the_slowest_receiver() {
    for (nodes, rate) in [(2, 0.4), (10, 0.4), (37, 0.25)] {
        check(7, true, nodes, "independent", rate, 70_000);
    }
}
