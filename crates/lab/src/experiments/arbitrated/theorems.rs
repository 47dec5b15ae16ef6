//! The paper's theorems, in their exact forms.

use bellwether_proto::{Boot, Duration, NodeId, Peer, Seed, Time, membership::ring};
use bellwether_sim::{
    check::explore::{Kind, Model, Settings, explore, ring::RingJudge},
    scenario::{FaultKind, Scenario},
};

use super::{published, *};

pub(super) fn all() -> Vec<Experiment> {
    let one = |id, title, cells, claims| Experiment {
        id,
        title,
        source: "arbitration paper, its theorems",
        cells,
        claims,
        figures: |_| Vec::new(),
    };
    vec![
        one(
            "ahsan-thm-1",
            "An upgrade is known to the other end within a session and a delay",
            |size| {
                let work = Computation::over("ring upgrade told", RING, (), upgrades_told);
                vec![
                    Cell::computed("told on leases", work, size.pick(100, 5))
                        .set("network.nodes", 16)
                        .set("membership.hints", false),
                ]
            },
            |data| {
                vec![always(
                    data,
                    "Without a word but on leases, by T + T_l + d",
                    "T + 2 T_l",
                    [("told on leases", Ring::InTime, 1.0)],
                )]
            },
        ),
        one(
            "ahsan-thm-2",
            "A crash is noticed within (T_l - d, 2 T_l]",
            |size| {
                let work = Computation::over("ring detection", RING, 1_000, published::detection);
                vec![
                    Cell::computed("crashes", work, size.pick(100, 6))
                        .set("network.nodes", 64)
                        .set("network.delay", UNSTEADY)
                        .set("duration", "60s"),
                ]
            },
            |data| {
                let literal = data.estimate("crashes", Ring::Literal);
                vec![
                    data
                        .claim("How many sessions the slowest takes", "T_FD < 2 T_l")
                        .at_most(data.estimate("crashes", Ring::Most), 2.0),
                    data
                        .claim("Nobody is noticed before one session is over", "T_l <= T_FD")
                        .holds(format!("in {literal} of the runs"), literal.value == 1.0)
                        .missed(
                            "E1: a request in flight as its receiver dies is not acknowledged, and its session is the one that ends",
                        ),
                ]
            },
        ),
        one(
            "ahsan-thm-3",
            "Who is suspected suspects within two sessions",
            |size| vec![pairs("cut links", size, 0)],
            |data| {
                let least = data.estimate("cut links", Ring::LeastLag);
                vec![
                    always(
                        data,
                        "The second suspicion follows within 2 T_l",
                        "T_LT < 2 T_l",
                        [("cut links", Ring::LagInTime, 1.0)],
                    ),
                    data.claim("It comes a session later at the least", "T_l <= T_LT")
                        .holds(least, least.value >= 1.0)
                        .missed("E4: a cut link stops both leases at once"),
                ]
            },
        ),
        one(
            "ahsan-thm-4",
            "Who loses is out within 2 T_l + T_a of the first suspicion",
            |size| vec![pairs("cut links", size, 0)],
            |data| {
                vec![always(
                    data,
                    "Everybody condemned is out by then, and buried only afterwards",
                    "T + 2 T_l + T_a; Corollary 3",
                    [("cut links", Ring::ExitInTime, 1.0), ("cut links", Ring::Violations, 0.0)],
                )]
            },
        ),
        one(
            "ahsan-thm-5",
            "Within 4 T_l + T_a of a crash all monitors have buried it",
            |size| {
                let work = Computation::over("ring detection", RING, 1_000, published::detection);
                let crashes = Cell::computed("crashes", work, size.pick(100, 6))
                    .set("network.nodes", 64)
                    .set("duration", "60s");
                vec![crashes, pairs("cut links", size, 0)]
            },
            |data| {
                vec![
                    always(
                        data,
                        "After a crash",
                        "T_a + 4 T_l",
                        [("crashes", Ring::BuriedInTime, 1.0)],
                    ),
                    always(
                        data,
                        "And everybody else has heard of it, six hops later at most",
                        "(project, R9.5)",
                        [("crashes", Ring::ToldInTime, 1.0)],
                    ),
                    always(
                        data,
                        "After a false suspicion, by six sessions and 2 T_a",
                        "(project, Theorem 5')",
                        [("cut links", Ring::BuriedInTime, 1.0)],
                    ),
                ]
            },
        ),
        one(
            "ahsan-thm-6",
            "A join is whole or not at all",
            |size| {
                let states = size.pick(300_000, 20_000);
                let cell = |(name, hardened): (&str, bool)| {
                    let work = Computation::new("ring join model", (hardened, states), join_model);
                    Cell::computed(name, work, 1)
                };
                [("as published", false), ("hardened", true)].map(cell).into()
            },
            |data| {
                let states = data.estimate("hardened", Ring::States);
                vec![always(
                    data,
                    format!("In every history of a join with two deviations ({states} states)"),
                    "C is Active with all of N_C or with none",
                    ["as published", "hardened"].map(|cell| (cell, Ring::Violations, 0.0)),
                )]
            },
        ),
        one(
            "ahsan-thm-7",
            "Joins proceed together only if they share nobody",
            |size| {
                let work = Computation::over("ring join locks", RING, 12_u32, join_locks);
                vec![
                    Cell::computed("twelve joiners", work, size.pick(60, 4))
                        .set("network.nodes", 64)
                        .set("membership.points", "hash")
                        .set("duration", "60s"),
                ]
            },
            |data| {
                vec![always(
                    data,
                    "Whoever becomes a member has all its neighbours locked, each for it alone",
                    "N sets are disjoint",
                    [("twelve joiners", Ring::AllLocked, 1.0)],
                )]
            },
        ),
        one(
            "ahsan-thm-8",
            "A join alone takes four sessions exactly",
            |size| {
                let work = Computation::over("ring join locks", RING, 1_u32, join_locks);
                vec![
                    Cell::computed("one joiner", work, size.pick(60, 5))
                        .set("network.nodes", 24)
                        .set("membership.points", "hash")
                        .set("duration", "20s"),
                ]
            },
            |data| {
                vec![always(
                    data,
                    "Three after discovery, four in all",
                    "4 T_l",
                    [("one joiner", Ring::Mean, 4.0)],
                )]
            },
        ),
    ]
}

fn upgrades_told(scenario: &Scenario, (): &(), seed: u64) -> Found {
    let victim = draws(seed).below(16) as u32;
    let study = run(scenario, vec![crash(ms(8_000), vec![victim])], seed)?;
    let most = study.findings.followed.iter().max().copied();
    Ok(vec![
        Value::count(Ring::Most, most.map(|most| most.as_secs_f64())),
        Value::whether(Ring::InTime, most.is_some_and(|most| most <= ms(1_020))),
    ])
}

/// Links cut at random, one to a run.
fn pairs(name: &'static str, size: Size, run: u64) -> Cell {
    let work = Computation::over("ring cut pair", RING, run, cut_pair);
    Cell::computed(name, work, size.pick(400, 25))
        .set("network.nodes", 20)
        .set("network.delay", UNSTEADY)
        .set("duration", "22s")
}

fn cut_pair(scenario: &Scenario, _: &u64, seed: u64) -> Found {
    let mut rng = draws(seed);
    let (one, distance) = (rng.below(20) as u32, 1 + rng.below(3) as u32);
    let when = ms(6_000) + Duration::from_micros(rng.below(1_000_000));
    let study = run(scenario, vec![cut(when, one, (one + distance) % 20)], seed)?;
    let found = &study.findings;
    let most = |all: &[Duration], bound: Duration| all.iter().all(|&d| d <= bound);
    let last = found.buried.iter().max().copied().unwrap_or(Duration::ZERO)
        + found.exits.iter().max().copied().unwrap_or(Duration::ZERO);
    Ok(vec![
        Value::count(Ring::LeastLag, found.mutual.iter().min().map(|d| d.as_secs_f64())),
        Value::whether(Ring::LagInTime, most(&found.mutual, ms(2_000))),
        Value::whether(Ring::ExitInTime, !found.exits.is_empty() && most(&found.exits, ms(2_500))),
        Value::whether(Ring::BuriedInTime, !found.buried.is_empty() && last <= ms(7_000)),
        Value::count(Ring::Violations, study.outcome.violations.len() as f64),
        Value::count(Ring::Departed, found.departed.len() as f64),
    ])
}

fn join_model(&(hardened, most): &(bool, u64), _seed: u64) -> Found {
    let form = if hardened { ring::Config::hardened() } else { ring::Config::as_published() };
    let config =
        form.with_points(ring::Points::Identity, 64).with_rejoin(false).with_neighbours(1)?;
    let peer = |node| Peer::new(NodeId::new(node), Boot::new(1));
    let founders: Vec<Peer> = (0..4).map(peer).collect();
    let mut nodes: Vec<(Peer, ring::Ring)> = founders
        .iter()
        .map(|&one| (one, ring::Ring::new(one, config, Seed::new(one.id.get()), &founders, &[])))
        .collect();
    nodes.push((peer(9), ring::Ring::new(peer(9), config, Seed::new(9), &[], &[NodeId::new(0)])));
    let window = Time::ZERO + ms(if hardened { 2_500 } else { 6_000 });
    let settings = Settings { most, ..Settings::new(Time::ZERO, window) };
    let settings = settings.allow(Kind::Crash, u32::MAX, [NodeId::new(3)]);
    let explored = explore(&Model::new(nodes), &settings, RingJudge::default());
    Ok(vec![
        Value::count(Ring::States, explored.states as f64),
        Value::count(Ring::Violations, f64::from(u8::from(explored.violation.is_some()))),
        Value::count(Ring::Joined, explored.tally.joined as f64),
    ])
}

fn join_locks(scenario: &Scenario, joiners: &u32, seed: u64) -> Found {
    let faults = vec![fault(ms(5_000), FaultKind::Join { count: *joiners })];
    let study = run(scenario, faults, seed)?;
    let joined = &study.findings.joined;
    let sum: f64 = joined.iter().map(|(took, _)| took.as_secs_f64()).sum();
    let locked = study.findings.locked.iter().all(|&(locked, near)| locked == near);
    Ok(vec![
        Value::count(Ring::Mean, (!joined.is_empty()).then(|| sum / joined.len() as f64)),
        Value::whether(Ring::AllLocked, locked && !joined.is_empty()),
        Value::count(Ring::Joined, joined.len() as f64),
    ])
}
