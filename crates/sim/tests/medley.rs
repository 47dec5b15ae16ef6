//! Gossip membership on a field of radios, beside what the thesis says of it.

use std::path::Path;

use bellwether_sim::{
    observe::Metric,
    run::{Outcome, Report, run, run_many},
    scenario::Scenario,
};

fn field(runs: u64, sets: &[&str]) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/medley-field.toml");
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"));
    run_many(&scenario, 1, runs, || ()).expect("the field of the thesis can be drawn")
}

fn mean(report: &Report, metric: Metric) -> f64 {
    report.summary(metric).map_or(f64::NAN, |summary| summary.mean)
}

/// Fig. 4.5: pinging mostly the near costs a third less than SWIM, measured by the product of detection time
/// and transmissions, with every kind of feedback.
#[test]
fn near_pings_cost_a_third_less_than_swim() {
    let swim = field(100, &["membership.exponent=0", "membership.feedback=none"]);
    for feedback in ["none", "active", "passive", "both"] {
        let feedback = format!("membership.feedback={feedback}");
        let medley = field(100, &[&feedback]);
        let saved = 1.0 - mean(&medley, Metric::ProductCost) / mean(&swim, Metric::ProductCost);
        assert!((0.22..=0.45).contains(&saved), "{feedback}: {saved:.3}");
        assert!(mean(&medley, Metric::MeanHops) < 1.6, "{feedback}");
    }
    assert!(mean(&swim, Metric::MeanHops) > 2.5);
}

/// Fig. 4.1: feedback spreads the news faster, and passive feedback faster than active.
#[test]
fn feedback_spreads_the_news_faster() {
    let spread = |feedback: &str| {
        let feedback = format!("membership.feedback={feedback}");
        mean(&field(200, &[&feedback, "membership.exponent=5"]), Metric::Dissemination)
    };
    let [none, active, passive, both] = ["none", "active", "passive", "both"].map(spread);
    assert!(
        both <= passive * 1.05 && passive < active && active < none,
        "{none} {active} {passive} {both}"
    );
}

/// P2, P4 and bw-medley-quiet: nobody is suspected without cause, the crash is found by all, and not before
/// a period and the suspicion have passed.
#[test]
fn without_loss_only_the_crashed_are_suspected_and_all_learn_of_it() {
    let report = field(100, &[]);
    for outcome in &report.outcomes {
        let value = |metric| outcome.value(metric).unwrap_or(f64::NAN);
        assert_eq!(value(Metric::FalseSuspicions), 0.0, "seed {}", outcome.seed);
        assert_eq!(value(Metric::Incomplete), 0.0, "seed {}", outcome.seed);
        assert!(value(Metric::FirstDetection) >= 16.0, "seed {}", outcome.seed);
    }
}

/// With one message in twenty lost at every hop the living are suspected now and then, and contradict.
#[test]
fn under_loss_suspicions_are_refuted() {
    let report = field(50, &["network.loss.rate=0.05"]);
    let suspected = mean(&report, Metric::FalseSuspicions);
    let removed = mean(&report, Metric::FalseRemovals);
    assert!(suspected > 1.0, "{suspected}: nothing to refute");
    assert!(removed < suspected / 20.0, "{removed} of {suspected}");
}

/// R13: who joins, and who comes back with nothing, is taken in by all: its crash is noticed by all.
#[test]
fn joiners_and_those_who_return_are_listed_by_everybody() {
    let join =
        r#"fault=[{ at = "60s", kind = "join" }, { at = "180s", kind = "crash", node = 49 }]"#;
    let back = r#"fault=[
        { at = "20s", kind = "crash", node = 7 },
        { at = "60s", kind = "recover", state = "lost" },
        { at = "180s", kind = "crash", node = 7 },
    ]"#;
    for faults in [join, back] {
        for outcome in &field(40, &[faults, "network.placement.range=5.0"]).outcomes {
            let value = |metric| outcome.value(metric);
            assert_eq!(value(Metric::Incomplete), Some(0.0), "seed {}: {faults}", outcome.seed);
            assert_eq!(value(Metric::FalseRemovals), Some(0.0), "seed {}: {faults}", outcome.seed);
        }
    }
}

#[test]
fn whoever_is_missing_from_a_list_at_the_end_is_counted() {
    let text = r#"
        name = "two halves"
        duration = "60s"
        [network]
        nodes = 4
        [membership]
        kind = "medley"
        exponent = 0
        feedback = "none"
        period = "1s"
        [[fault]]
        at = "10s"
        kind = "partition"
        groups = [[0, 1]]
    "#;
    let missing = |sets: &[String]| {
        let scenario = Scenario::parse("halves", text, sets).unwrap();
        run(&scenario, 1).unwrap().value(Metric::Unlisted)
    };
    // Each lists one of three others.
    assert!((missing(&[]).unwrap() - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(missing(&["duration=10500ms".into()]), Some(0.0), "not found out yet");
    // Of those left each lists the other.
    let gone = r#"fault=[{ at = "10s", kind = "crash", nodes = [2, 3] }]"#;
    assert_eq!(missing(&[gone.into()]), Some(0.0));
}

/// What convicts may take longer than one ping, and what a suspect has to contradict depends on the group and
/// on how many accuse: none of it is a breach of the bound.
#[test]
fn the_bound_holds_for_the_cautious_the_many_and_the_patient() {
    let text = r#"
        name = "one crash"
        duration = "90s"
        [network]
        nodes = 2
        delay = { kind = "uniform", low = "0ms", high = "5ms" }
        [membership]
        kind = "medley"
        exponent = 0
        feedback = "none"
        [[fault]]
        at = "20s"
        spread = "20s"
        kind = "crash"
        count = 1
    "#;
    for (sets, runs) in [
        (&[][..], 2_000),
        (&["network.nodes=100"], 20),
        (&["network.nodes=8", "membership.lifeguard=suspicion"], 50),
        (&["network.nodes=8", "membership.lifeguard=suspicion", "membership.caution=false"], 50),
    ] {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = Scenario::parse("one crash", text, &sets).unwrap();
        let report = run_many(&scenario, 1, runs, || ()).unwrap();
        assert_eq!(report.violations().next(), None, "{sets:?}");
        assert_eq!(mean(&report, Metric::Violations), 0.0);
        let judged = |outcome: &Outcome| {
            outcome.sometimes.iter().any(|one| one.0 == "time_bounded_detection" && one.2)
        };
        assert!(report.outcomes.iter().all(judged), "{sets:?}");
    }
}
