//! Keys owned by the members of a ring, in random histories of crashes, cuts, pauses, losses, restarts, joins, leaves
//! and drifting clocks.

use bellwether_proto::{
    Boot, Duration, Epoch, Incarnation, NodeId, Peer, Rng, Seed,
    keys::{self, Slot},
    membership::ring::{Config, Life},
};
use bellwether_sim::{
    observe::{Log, Metric},
    run::{
        Outcome, each_seed,
        keys::{Study, study},
        run,
    },
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

fn fault(at: u64, kind: FaultKind) -> Fault {
    Fault { at: ms(at), spread: Duration::ZERO, every: None, until: None, kind }
}

fn drift(at: u64, who: Who, ppm: i32) -> Fault {
    fault(at, FaultKind::Drift { who, ppm })
}

fn world(nodes: u32, high: Duration) -> NetworkSettings {
    NetworkSettings {
        nodes,
        start_spread: ms(1_000),
        placement: Placement::Mesh,
        delay: Delay { law: DelayLaw::Uniform { low: ms(1), high }, per: Per::Path },
        loss: Loss::None,
        routing: Routing::Hops,
        mobility: Default::default(),
        radio: Default::default(),
    }
}

fn ring(drift: i32) -> Config {
    Config::hardened()
        .with_neighbours(2)
        .and_then(|config| config.with_drift(drift.unsigned_abs()))
        .expect("these constants satisfy the constraints")
}

fn owned(slots: u32, keepers: usize) -> keys::Config {
    keys::Config::new()
        .with_slots(slots)
        .and_then(|config| config.with_keepers(keepers))
        .expect("these constants satisfy the constraints")
}

/// A world that the seed draws, with so many faults in it.
fn hostile(seed: u64, keys: keys::Config) -> Scenario {
    let mut rng = Seed::new(seed).named("hostile keys").rng();
    let mut faults =
        vec![drift(500, Who::Fraction(0.5), DRIFT), drift(600, Who::Fraction(0.3), -DRIFT)];
    for _ in 0..3 + rng.below(7) {
        let at = 4_000 + rng.below(24_000);
        trouble(&mut rng, at, &mut faults);
    }
    let back = FaultKind::Recover { who: Who::All, state: State::Lost };
    faults.push(fault(15_000 + rng.below(10_000), back));
    let high = ms(5 + rng.below(100));
    Scenario {
        name: "hostile keys".into(),
        duration: ms(40_000),
        until: Until::Duration,
        network: world(3 + rng.below(8) as u32, high),
        protocol: Protocol::Keys { membership: ring(DRIFT), keys },
        faults,
    }
}

fn trouble(rng: &mut Rng, at: u64, faults: &mut Vec<Fault>) {
    let who = Who::Count(1 + rng.below(2) as u32);
    let length = ms(300 + rng.below(5_000));
    let state = if rng.chance(0.5) { State::Kept } else { State::Lost };
    let kind = match rng.below(10) {
        0 => FaultKind::Crash(who),
        1 => FaultKind::Pause { who, length, buffer: 166 },
        2 => {
            let (both, to) = (rng.chance(0.5), Some(Who::Fraction(0.3 + 0.5 * rng.unit())));
            FaultKind::Cut { from: Some(who), to, both, length: Some(length) }
        }
        3 => FaultKind::Cut { from: None, to: Some(who), both: false, length: Some(length) },
        4 => FaultKind::Loss { rate: 0.1 + 0.3 * rng.unit(), length: ms(200 + rng.below(1_500)) },
        5 => FaultKind::Duplicate { rate: 0.5, by: ms(700), length },
        6 => FaultKind::Reorder { rate: 0.5, by: ms(700), length },
        7 => FaultKind::Join { count: 1 + rng.below(3) as u32 },
        8 => {
            let back = FaultKind::Recover { who: Who::All, state };
            faults.push(fault(at + 100 + rng.below(2_000), back));
            FaultKind::Crash(who)
        }
        _ => FaultKind::Leave(who),
    };
    faults.push(fault(at, kind));
}

struct Tally {
    violations: Vec<(u64, String)>,
    gap: Option<f64>,
    followed: usize,
    moved: f64,
}

fn tally(runs: u64, keys: keys::Config) -> Tally {
    let outcomes = each_seed(1, runs, || (), |seed| run(&hostile(seed, keys), seed));
    let outcomes = outcomes.expect("everybody hears everybody");
    let first = |outcome: &Outcome| Some((outcome.seed, outcome.violations.first()?.to_string()));
    let gaps = || outcomes.iter().filter_map(|outcome| outcome.value(Metric::SmallestGap));
    Tally {
        violations: outcomes.iter().filter_map(first).collect(),
        gap: gaps().min_by(f64::total_cmp),
        followed: gaps().count(),
        moved: outcomes.iter().filter_map(|outcome| outcome.value(Metric::MovedSlots)).sum(),
    }
}

fn safe(runs: u64) {
    let found = tally(runs, owned(16, 2));
    println!(
        "{runs} runs, in {} an owner followed another, {} times in all, smallest gap {:?} s",
        found.followed, found.moved, found.gap
    );
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert!(found.gap.is_some_and(|gap| gap > 0.0) && found.followed as u64 > runs / 2);
}

#[test]
fn never_are_there_two_owners_of_a_key_at_one_instant() {
    safe(60);
}

/// Ten thousand; minutes.
#[test]
#[ignore = "minutes; the sixty above are its beginning"]
fn never_are_there_two_owners_of_a_key_in_ten_thousand_runs() {
    safe(10_000);
}

#[test]
fn owners_that_do_not_wait_or_ask_are_found_out() {
    for broken in [owned(16, 2).with_waits(false), owned(16, 2).with_promises(false)] {
        let found = tally(60, broken);
        assert!(!found.violations.is_empty(), "{broken:?}");
    }
}

/// Members that crash together with no more than two others, join, leave, or sleep for a while; then quiet.
fn mild(seed: u64) -> Scenario {
    let mut rng = Seed::new(seed).named("mild keys").rng();
    let nodes = 7 + rng.below(6) as u32;
    let at = 14_000 + rng.below(2_000);
    let one = Who::Count(1);
    let kind = match seed % 5 {
        0 => FaultKind::Crash(one),
        1 => FaultKind::Crash(Who::Count(2)),
        2 => FaultKind::Join { count: 1 + rng.below(3) as u32 },
        3 => FaultKind::Leave(Who::Count(1 + rng.below(2) as u32)),
        _ => FaultKind::Pause { who: one, length: ms(300 + rng.below(6_000)), buffer: 166 },
    };
    Scenario {
        name: "mild keys".into(),
        duration: ms(40_000),
        until: Until::Duration,
        network: world(nodes, ms(30)),
        protocol: Protocol::Keys { membership: ring(1_000), keys: owned(32, 2) },
        faults: vec![drift(500, Who::Fraction(0.5), 1_000), fault(at, kind)],
    }
}

/// `4 T_l + T_a` by slow clocks, five hops of news, two round trips, and what is lost because who follows sleeps when it
/// is its turn or was forced out (K5).
const BOUND: f64 = 4.7;

#[test]
fn every_key_has_an_owner_again_within_the_bound() {
    let outcomes = each_seed(1, 60, || (), |seed| run(&mild(seed), seed)).unwrap();
    let mut longest = [0.0_f64; 5];
    for outcome in outcomes {
        let value = |metric| outcome.value(metric).expect("it is measured");
        let kind = (outcome.seed % 5) as usize;
        longest[kind] = longest[kind].max(value(Metric::LongestUnowned));
        assert!(outcome.violations.is_empty(), "seed {}: {:?}", outcome.seed, outcome.violations);
        assert_eq!(value(Metric::UnownedSlots), 0.0, "seed {}", outcome.seed);
    }
    println!("at most without an owner after a crash, two, joins, leaves, a pause: {longest:?} s");
    assert!(longest[..2].iter().all(|&longest| longest > 1.0 && longest < BOUND), "{longest:?}");
    assert!(longest[2..4].iter().all(|&longest| longest < 0.5), "handed over: {longest:?}");
}

fn steady(seconds: u32, nodes: u32, slots: u32, extra: &str) -> Study {
    let text = format!(
        "name = \"keys\"\nduration = \"{seconds}s\"\n[network]\nnodes = {nodes}\n\
         delay = {{ kind = \"uniform\", low = \"5ms\", high = \"20ms\" }}\n\
         [membership]\nkind = \"ring\"\n[keys]\nslots = {slots}\n{extra}"
    );
    let scenario = Scenario::parse("keys", &text, &[]).expect("written above");
    let Protocol::Keys { membership, keys } = scenario.protocol else { panic!("{text}") };
    let found = study(&scenario, 1, Log::none(), membership, keys).expect("a mesh");
    assert!(found.outcome.violations.is_empty(), "{:?}", found.outcome.violations);
    found
}

/// Keys cost what changes. From 40 members to 100, and from one slot to 2,048: 4k lease messages a session.
#[test]
fn lease_traffic_depends_neither_on_keys_nor_on_the_size_of_the_ring() {
    for (nodes, slots) in [(40, 1), (40, 2_048), (100, 1_024)] {
        let sent = steady(20, nodes, slots, "").outcome.value(Metric::LeasesPerSession).unwrap();
        assert!((sent / 12.0 - 1.0).abs() < 0.01, "{nodes} members, {slots} slots: {sent}");
    }
}

/// A tenth of the members joins, and a tenth leaves: hardly anything moves but what has another owner in the end.
#[test]
fn few_slots_move_when_members_change() {
    let founder = |node| Life {
        peer: Peer::new(NodeId::new(node), Boot::new(1)),
        inc: Incarnation::default(),
    };
    for kind in ["join", "leave"] {
        let fault =
            format!("[[fault]]\nat = \"20s\"\nspread = \"2s\"\nkind = \"{kind}\"\ncount = 6\n");
        let found = steady(40, 60, 1_024, &fault);
        let value = |metric| found.outcome.value(metric).expect("it is measured");
        let elsewhere = |(slot, (owner, _)): &(&Slot, &(NodeId, Epoch))| {
            slot.first((0..60).map(founder), 1)[0].id() != *owner
        };
        let least = found.findings.owners.iter().filter(elsewhere).count() as f64;
        let moved = value(Metric::MovedSlots);
        println!("{kind}: {moved} slots moved, of {least} that had to");
        assert!(least > 60.0 && moved <= 1.2 * least, "{kind}: {moved} of {least}");
        assert_eq!(value(Metric::UnownedSlots), 0.0);
        assert!(value(Metric::LongestUnowned) < 0.5, "{kind}");
    }
}
