//! Hardened elections where the thesis held its own (chapter 6): 49 nodes drawn on 15 m x 15 m, up to 50 ms and a loss
//! of up to a fifth on every hop, lists of a lossy membership, `c` of Table 5.1. Elections know their network by what
//! they measure (NP1 to NP5 of `docs/rules/churn-tolerant.md`), so that few initiate, all end, and Optimistic and Hybrid
//! are what they were proposed for: sooner.

use bellwether_sim::{
    observe::Metric,
    run::{Report, run_many},
    scenario::Scenario,
};

const FIELD: &str = r#"
    name = "chapter 6, hardened"
    duration = "600s"
    [network]
    nodes = 49
    placement = { kind = "random", side = 15.0, range = 4.0, robust = true }
    delay = { kind = "uniform", low = "1us", high = "50ms", per = "hop" }
    loss = { kind = "biased-acks", rate = 0.05, nodes = 5 }
    routing = "length"
    [membership]
    kind = "medley"
    form = "as-published"
    exponent = 3
    feedback = "both"
    elections = { count = 10, from = "200s", limit = "300s" }
    [election]
    kind = "churn-tolerant"
    form = "hardened"
    variant = "base"
    c = 4
    criterion = "identity"
"#;

const VARIANTS: [&str; 4] = ["base", "optimistic", "preferred", "hybrid"];

/// Loss a hop, the `c` published for it (Table 5.1), and how many seconds each variant took on hops of up to 5 ms while
/// everybody started an election of its own after six timeouts (20 fields, 10 elections each).
const LOSSES: [(f64, u32, [f64; 4]); 4] = [
    (0.05, 4, [3.83, 3.26, 3.81, 3.03]),
    (0.1, 7, [14.53, 19.06, 7.37, 12.74]),
    (0.15, 10, [13.79, 49.84, 13.35, 74.57]),
    (0.2, 13, [38.07, 208.04, 30.55, 217.73]),
];

fn measured(variant: &str, loss: f64, c: u32, hop: &str, fields: u64) -> Report {
    let mut sets = vec![
        format!("election.variant={variant}"),
        format!("election.c={c}"),
        format!("network.loss.rate={loss}"),
        format!("network.delay.high={hop}"),
    ];
    if matches!(variant, "preferred" | "hybrid") {
        sets.push("election.exclude=top-of-sum".into());
    }
    let scenario = Scenario::parse("chapter 6", FIELD, &sets);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    run_many(&scenario, 1, fields, || ()).expect("the field can be drawn")
}

/// What all must show at one loss; the mean completion times. One field in thirty (seed 6, loss .2) takes Preferred 73 s and
/// Hybrid 98 s, and outweighs all others in a mean of six; why is not known, a change of the lists under way is likely. So of
/// few fields the median is compared, of many the mean as well.
fn at(loss: f64, c: u32, hop: &str, fields: u64) -> [f64; 4] {
    let times = VARIANTS.map(|variant| {
        let report = measured(variant, loss, c, hop, fields);
        let summary = |metric| report.summary(metric).expect("elections were held");
        let [time, undecided, initiators, changes] =
            [Metric::CompletionTime, Metric::Undecided, Metric::Initiators, Metric::ChangesPerNode]
                .map(summary);
        println!(
            "| {hop} | {loss} | {variant} | {:.2} | {:.2} | {:.3} | {:.1} | {:.2} |",
            time.mean, time.p50, undecided.mean, initiators.p50, changes.mean
        );
        assert_eq!(undecided.mean, 0.0, "{variant}, loss {loss}, hops of {hop}: undecided");
        assert!(
            initiators.p50 <= 3.0,
            "{variant}, loss {loss}, hops of {hop}: {} initiators",
            initiators.p50
        );
        [time.p50, time.mean]
    });
    let compared = if fields < MANY { &[0][..] } else { &[0, 1] };
    for &by in compared.iter().filter(|_| hop == "50ms") {
        let [base, optimistic, preferred, hybrid] = times.map(|time| time[by]);
        assert!(optimistic <= 0.75 * base, "loss {loss}: {optimistic} s against {base} s");
        assert!(hybrid <= 0.85 * preferred, "loss {loss}: {hybrid} s against {preferred} s");
    }
    times.map(|[_, mean]| mean)
}

/// Fields enough for a mean.
const MANY: u64 = 30;

#[test]
fn few_initiate_all_end_and_streaming_is_sooner() {
    for (loss, c, _) in [LOSSES[0], LOSSES[3]] {
        at(loss, c, "50ms", 6);
    }
}

#[test]
#[ignore = "minutes: all losses, on slow hops and on fast ones"]
fn at_every_loss_on_slow_hops_and_on_fast_ones() {
    for (loss, c, before) in LOSSES {
        at(loss, c, "50ms", MANY);
        let times = at(loss, c, "5ms", MANY);
        for ((variant, time), before) in VARIANTS.into_iter().zip(times).zip(before) {
            assert!(
                time <= before,
                "{variant}, loss {loss}, hops of 5 ms: {time} s, were {before} s"
            );
        }
    }
}
