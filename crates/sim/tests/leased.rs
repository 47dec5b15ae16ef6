//! The leased leader, in random histories of crashes, cuts, pauses, losses and drifting clocks.

use bellwether_proto::{
    Duration, Rng, Seed,
    election::leased::{self, Flavour},
    membership::ring::Config,
};
use bellwether_sim::{
    observe::Metric,
    run::{each_seed, run},
    scenario::{
        Delay, DelayLaw, Fault, FaultKind, Loss, NetworkSettings, Per, Placement, Protocol,
        Routing, Scenario, State, Until, Who,
    },
};

/// As far as a clock may be off, in millionths.
const DRIFT: i32 = 10_000;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A world that the seed draws, with so many faults in it.
fn hostile(seed: u64, flavour: Flavour, allowed: i32, waits: bool) -> Scenario {
    let mut rng = Seed::new(seed).named("hostile").rng();
    let mut faults =
        vec![drift(500, Who::Fraction(0.5), DRIFT), drift(600, Who::Fraction(0.3), -DRIFT)];
    for _ in 0..3 + rng.below(6) {
        let at = 4_000 + rng.below(20_000);
        faults.push(trouble(&mut rng, at));
    }
    let back = FaultKind::Recover { who: Who::All, state: State::Lost };
    faults.push(fault(15_000 + rng.below(10_000), back));
    let high = ms(5 + rng.below(100));
    let below = Config::hardened()
        .with_neighbours(2)
        .and_then(|config| config.with_drift(allowed.unsigned_abs()))
        .expect("these constants satisfy the constraints");
    Scenario {
        name: "hostile".into(),
        duration: ms(32_000),
        until: Until::Duration,
        network: NetworkSettings {
            nodes: 3 + rng.below(8) as u32,
            start_spread: ms(1_000),
            placement: Placement::Mesh,
            delay: Delay { law: DelayLaw::Uniform { low: ms(1), high }, per: Per::Path },
            loss: Loss::None,
            routing: Routing::Hops,
            mobility: Default::default(),
            radio: Default::default(),
        },
        protocol: Protocol::Leased {
            membership: below,
            election: leased::Config::new(flavour).with_waits(waits),
            witnesses: if rng.chance(0.3) { vec![0] } else { Vec::new() },
        },
        faults,
    }
}

fn fault(at: u64, kind: FaultKind) -> Fault {
    Fault { at: ms(at), spread: Duration::ZERO, every: None, until: None, kind }
}

fn drift(at: u64, who: Who, ppm: i32) -> Fault {
    fault(at, FaultKind::Drift { who, ppm })
}

fn trouble(rng: &mut Rng, at: u64) -> Fault {
    let who = if rng.chance(0.6) { Who::Leader } else { Who::Count(1 + rng.below(2) as u32) };
    let length = ms(300 + rng.below(5_000));
    let kind = match rng.below(7) {
        0 => FaultKind::Crash(who),
        1 => FaultKind::Pause { who, length, buffer: 166 },
        2 => {
            let (both, to) = (rng.chance(0.5), Some(Who::Fraction(0.3 + 0.5 * rng.unit())));
            FaultKind::Cut { from: Some(who), to, both, length: Some(length) }
        }
        3 => FaultKind::Cut { from: None, to: Some(who), both: false, length: Some(length) },
        4 => FaultKind::Loss { rate: 0.1 + 0.3 * rng.unit(), length: ms(200 + rng.below(1_500)) },
        5 => FaultKind::Elect(who),
        _ => FaultKind::Duplicate { rate: 0.5, by: ms(700), length },
    };
    fault(at, kind)
}

struct Tally {
    violations: Vec<(u64, String)>,
    overlaps: usize,
    gap: Option<f64>,
    changes: usize,
}

fn tally(runs: u64, flavour: Flavour, allowed: i32, waits: bool) -> Tally {
    let one = |seed| run(&hostile(seed, flavour, allowed, waits), seed);
    let outcomes = each_seed(1, runs, || (), one).expect("everybody hears everybody");
    let gaps = || outcomes.iter().filter_map(|outcome| outcome.value(Metric::SmallestGap));
    let first = |outcome: &bellwether_sim::run::Outcome| {
        let violation = outcome.violations.first()?;
        Some((outcome.seed, violation.to_string()))
    };
    Tally {
        violations: outcomes.iter().filter_map(first).collect(),
        overlaps: outcomes
            .iter()
            .filter(|outcome| outcome.value(Metric::LeaseOverlap).is_some_and(|time| time > 0.0))
            .count(),
        gap: gaps().min_by(f64::total_cmp),
        changes: gaps().count(),
    }
}

const FLAVOURS: [Flavour; 3] = [Flavour::Quorum, Flavour::Conservative, Flavour::Fast];

fn safe(runs: u64) {
    for flavour in FLAVOURS {
        let found = tally(runs, flavour, DRIFT, true);
        println!(
            "{flavour:?}: {runs} runs, in {} a leader followed another, smallest gap {:?} s, {} overlaps",
            found.changes, found.gap, found.overlaps
        );
        assert!(found.violations.is_empty(), "{flavour:?}: {:?}", found.violations);
        assert_eq!(found.overlaps, 0);
        assert!(found.gap.is_some_and(|gap| gap > 0.0) && found.changes as u64 > runs / 4);
    }
}

#[test]
fn never_are_two_leases_valid_at_one_instant() {
    safe(60);
}

/// Ten thousand; minutes.
#[test]
#[ignore = "minutes; the sixty above are its beginning"]
fn never_are_two_leases_valid_in_ten_thousand_runs() {
    safe(3_334);
}

#[test]
fn a_successor_that_does_not_wait_is_found_out() {
    for flavour in [Flavour::Quorum, Flavour::Fast] {
        let found = tally(60, flavour, DRIFT, false);
        assert!(found.overlaps > 0, "{flavour:?}");
    }
}

/// From 32 to 1,000 members: 4k lease messages a session, within 1%.
#[test]
fn lease_traffic_does_not_depend_on_the_size_of_the_ring() {
    let text = |nodes: u32| {
        format!(
            "name = \"ring\"\nduration = \"20s\"\n[network]\nnodes = {nodes}\n\
             delay = {{ kind = \"uniform\", low = \"5ms\", high = \"20ms\" }}\n\
             [membership]\nkind = \"ring\"\n"
        )
    };
    for nodes in [32, 1_000] {
        let scenario = Scenario::parse("ring", &text(nodes), &[]).unwrap();
        let outcome = run(&scenario, 1).unwrap();
        let sent = outcome.value(Metric::LeasesPerSession).unwrap();
        assert!((sent / 12.0 - 1.0).abs() < 0.01, "{nodes} members: {sent}");
        assert!(outcome.violations.is_empty());
    }
}
