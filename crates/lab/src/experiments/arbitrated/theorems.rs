//! The paper's theorems, in their exact forms.

use bellwether_proto::{Boot, Duration, NodeId, Peer, Seed, Time, membership::ring};
use bellwether_sim::{
    check::explore::{Kind, Model, Settings, explore, ring::RingJudge},
    scenario::{FaultKind, Scenario},
};

use super::{RING, always, at, crash, cut, draws, fault, ms, published, run, shown, whether};
use crate::{
    claim::{Claim, Verdict},
    computation::{Computation, Found, Value},
    experiment::{Cell, Experiment},
};

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
                    Cell::computed("told on leases", work, published::runs(size, 100, 5))
                        .set("network.nodes", 16)
                        .set("membership.hints", false),
                ]
            },
            |table| {
                vec![always(
                    table,
                    "Without a word but on leases, by T + T_l + d",
                    "T + 2 T_l",
                    [("told on leases".into(), "in time", 1.0)],
                )]
            },
        ),
        one(
            "ahsan-thm-2",
            "A crash is noticed within (T_l - d, 2 T_l]",
            |size| {
                let work = Computation::over("ring detection", RING, 1_000, published::detection);
                vec![
                    Cell::computed("crashes", work, published::runs(size, 100, 6))
                        .set("network.nodes", 64)
                        .set(
                            "network.delay",
                            "{ kind = \"uniform\", low = \"0ms\", high = \"50ms\" }",
                        )
                        .set("duration", "60s"),
                ]
            },
            |table| {
                let literal = at(table, "crashes", "literal");
                let most = at(table, "crashes", "most");
                vec![
                    Claim::holds(
                        "Nobody takes longer than two sessions",
                        "T_FD < 2 T_l",
                        shown(most),
                        most.is_some_and(|most| most.value <= 2.0),
                    ),
                    Claim::holds(
                        "Nobody is noticed before one session is over",
                        "T_l <= T_FD",
                        format!("in {} of the runs", shown(literal)),
                        literal.is_some_and(|one| one.value == 1.0),
                    )
                    .on_record(
                        Verdict::NotReproduced,
                        "E1: a request in flight as its receiver dies is not acknowledged, and its session is the one that ends",
                    ),
                ]
            },
        ),
        one(
            "ahsan-thm-3",
            "Who is suspected suspects within two sessions",
            |size| vec![pairs("cut links", size, 0)],
            |table| {
                let least = at(table, "cut links", "least lag");
                vec![
                    always(
                        table,
                        "The second suspicion follows within 2 T_l",
                        "T_LT < 2 T_l",
                        [("cut links".into(), "lag in time", 1.0)],
                    ),
                    Claim::holds(
                        "It comes a session later at the least",
                        "T_l <= T_LT",
                        shown(least),
                        least.is_some_and(|one| one.value >= 1.0),
                    )
                    .on_record(Verdict::NotReproduced, "E4: a cut link stops both leases at once"),
                ]
            },
        ),
        one(
            "ahsan-thm-4",
            "Who loses is out within 2 T_l + T_a of the first suspicion",
            |size| vec![pairs("cut links", size, 0)],
            |table| {
                vec![always(
                    table,
                    "Everybody condemned is out by then, and buried only afterwards",
                    "T + 2 T_l + T_a; Corollary 3",
                    [
                        ("cut links".into(), "exit in time", 1.0),
                        ("cut links".into(), "violations", 0.0),
                    ],
                )]
            },
        ),
        one(
            "ahsan-thm-5",
            "Within 4 T_l + T_a of a crash all monitors have buried it",
            |size| {
                let work = Computation::over("ring detection", RING, 1_000, published::detection);
                let crashes = Cell::computed("crashes", work, published::runs(size, 100, 6))
                    .set("network.nodes", 64)
                    .set("duration", "60s");
                vec![crashes, pairs("cut links", size, 0)]
            },
            |table| {
                vec![
                    always(
                        table,
                        "After a crash",
                        "T_a + 4 T_l",
                        [("crashes".into(), "buried in time", 1.0)],
                    ),
                    always(
                        table,
                        "And everybody else has heard of it, six hops later at most",
                        "(project, R9.5)",
                        [("crashes".into(), "told in time", 1.0)],
                    ),
                    always(
                        table,
                        "After a false suspicion, by six sessions and 2 T_a",
                        "(project, Theorem 5')",
                        [("cut links".into(), "buried in time", 1.0)],
                    ),
                ]
            },
        ),
        one(
            "ahsan-thm-6",
            "A join is whole or not at all",
            |size| {
                let states = published::runs(size, 300_000, 20_000);
                let cell = |(name, hardened): (&str, bool)| {
                    let work = Computation::new("ring join model", (hardened, states), join_model);
                    Cell::computed(name, work, 1)
                };
                [("as published", false), ("hardened", true)].map(cell).into()
            },
            |table| {
                let states = at(table, "hardened", "states");
                vec![always(
                    table,
                    format!(
                        "In every history of a join with two deviations ({} states)",
                        shown(states)
                    ),
                    "C is Active with all of N_C or with none",
                    ["as published", "hardened"].map(|cell| (cell.into(), "violations", 0.0)),
                )]
            },
        ),
        one(
            "ahsan-thm-7",
            "Joins proceed together only if they share nobody",
            |size| {
                let work = Computation::over("ring join locks", RING, 12_u32, join_locks);
                vec![
                    Cell::computed("twelve joiners", work, published::runs(size, 60, 4))
                        .set("network.nodes", 64)
                        .set("membership.points", "hash")
                        .set("duration", "60s"),
                ]
            },
            |table| {
                vec![always(
                    table,
                    "Whoever becomes a member has all its neighbours locked, each for it alone",
                    "N sets are disjoint",
                    [("twelve joiners".into(), "all locked", 1.0)],
                )]
            },
        ),
        one(
            "ahsan-thm-8",
            "A join alone takes four sessions exactly",
            |size| {
                let work = Computation::over("ring join locks", RING, 1_u32, join_locks);
                vec![
                    Cell::computed("one joiner", work, published::runs(size, 60, 5))
                        .set("network.nodes", 24)
                        .set("membership.points", "hash")
                        .set("duration", "20s"),
                ]
            },
            |table| {
                vec![always(
                    table,
                    "Three after discovery, four in all",
                    "4 T_l",
                    [("one joiner".into(), "mean", 4.0)],
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
        Value::count("most", most.map(|most| most.as_secs_f64())),
        whether("in time", most.is_some_and(|most| most <= ms(1_020))),
    ])
}

/// Links cut at random, one to a run.
fn pairs(name: &'static str, size: crate::experiment::Size, run: u64) -> Cell {
    let work = Computation::over("ring cut pair", RING, run, cut_pair);
    Cell::computed(name, work, published::runs(size, 400, 25))
        .set("network.nodes", 20)
        .set("network.delay", "{ kind = \"uniform\", low = \"0ms\", high = \"50ms\" }")
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
        Value::count("least lag", found.mutual.iter().min().map(|d| d.as_secs_f64())),
        whether("lag in time", most(&found.mutual, ms(2_000))),
        whether("exit in time", !found.exits.is_empty() && most(&found.exits, ms(2_500))),
        whether("buried in time", !found.buried.is_empty() && last <= ms(7_000)),
        Value::count("violations", study.outcome.violations.len() as f64),
        Value::count("departed", found.departed.len() as f64),
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
        Value::count("states", explored.states as f64),
        Value::count("violations", f64::from(u8::from(explored.violation.is_some()))),
        Value::count("joined", explored.tally.joined as f64),
    ])
}

fn join_locks(scenario: &Scenario, joiners: &u32, seed: u64) -> Found {
    let faults = vec![fault(ms(5_000), FaultKind::Join { count: *joiners })];
    let study = run(scenario, faults, seed)?;
    let joined = &study.findings.joined;
    let sum: f64 = joined.iter().map(|(took, _)| took.as_secs_f64()).sum();
    let locked = study.findings.locked.iter().all(|&(locked, near)| locked == near);
    Ok(vec![
        Value::count("mean", (!joined.is_empty()).then(|| sum / joined.len() as f64)),
        whether("all locked", locked && !joined.is_empty()),
        Value::count("joined", joined.len() as f64),
    ])
}
