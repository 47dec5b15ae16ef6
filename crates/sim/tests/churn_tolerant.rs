//! Churn-tolerant elections over a lossy membership on a field of radios.

use std::path::Path;

use bellwether_sim::{
    observe::Metric,
    run::{Report, run_many},
    scenario::Scenario,
};

fn field(runs: u64, sets: &[&str]) -> Report {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/churn-tolerant-field.toml");
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"));
    run_many(&scenario, 1, runs, || ()).expect("the field can be drawn")
}

/// The leader crashes; its successor is known to all once the membership has found out, and nobody else has
/// led but in between.
#[test]
fn every_variant_replaces_a_crashed_leader() {
    for variant in ["base", "optimistic", "preferred", "hybrid"] {
        let report = field(10, &[&format!("election.variant={variant}")]);
        for outcome in &report.outcomes {
            let value = |metric| outcome.value(metric).unwrap_or(f64::NAN);
            let seed = outcome.seed;
            assert_eq!(outcome.violations, [], "{variant} seed {seed}");
            assert_eq!(value(Metric::LeaderlessAtEnd), 0.0, "{variant} seed {seed}");
            assert!(value(Metric::LeaderChanges) >= 1.0, "{variant} seed {seed}");
            // A suspicion of 16 s, and what it takes to suspect, to ask, and to tell everybody.
            let recovery = value(Metric::RecoveryTime);
            assert!((16.0..60.0).contains(&recovery), "{variant} seed {seed}: {recovery}");
        }
    }
}

/// One message in five is lost on every hop, and `c` is as small as before.
#[test]
fn heavy_loss_breaks_no_promise() {
    for variant in ["base", "hybrid"] {
        let sets = [&format!("election.variant={variant}"), "network.loss.rate=0.2"];
        let report = field(10, &sets);
        for outcome in &report.outcomes {
            assert_eq!(outcome.violations, [], "{variant} seed {}", outcome.seed);
            assert_eq!(outcome.value(Metric::LeaderlessAtEnd), Some(0.0));
        }
    }
}

/// Attributes, observers and a survey, over a live membership on a lossy field: the worthiest that may lead does,
/// and its successor is the next.
#[test]
fn the_worthiest_that_may_lead_leads() {
    let attributes: Vec<u32> = (0..32).map(|node| node % 7).collect();
    // Of the four that are worth most, two.
    let sets = [
        "election.variant=base",
        "election.criterion=attribute",
        &format!("election.attributes={attributes:?}"),
        "election.observers=[6, 13]",
        "election.survey=true",
    ];
    let report = field(6, &sets);
    for outcome in &report.outcomes {
        assert_eq!(outcome.violations, [], "seed {}", outcome.seed);
        assert_eq!(outcome.value(Metric::LeaderlessAtEnd), Some(0.0));
        assert_eq!(outcome.value(Metric::WrongLeader), Some(0.0), "seed {}", outcome.seed);
    }
    let plain = field(6, &["election.variant=base"]);
    let traces = |report: &Report| report.outcomes.iter().map(|one| one.trace).collect::<Vec<_>>();
    assert_ne!(traces(&report), traces(&plain));
}
