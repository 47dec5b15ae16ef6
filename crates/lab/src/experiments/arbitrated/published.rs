//! Figures 7 to 11 and equation 2.

use bellwether_proto::{Duration, Time};
use bellwether_sim::{
    observe::Summary,
    scenario::{FaultKind, Scenario},
};

use super::{
    super::{bounded, is_ascending},
    RING, always, at, choose, crash, draws, fault, ms, run, shown, whether,
};
use crate::{
    claim::{Claim, Verdict, short},
    computation::{Computation, Found, Value},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "ahsan-fig-7",
            title: "Two nodes die at every event",
            source: "arbitration paper, figure 7",
            cells: |size| {
                let one = |name, form: Form| {
                    let work = Computation::over("ring events", RING, form, events);
                    let cell = Cell::computed(name, work, runs(size, 40, 3));
                    let central = form == Form::Central;
                    let cell = cell.set("network.nodes", if central { 37 } else { 32 });
                    match form {
                        Form::Central => {
                            cell.set("membership.arbiters", "central").set("membership.external", 5)
                        }
                        Form::Pairwise => cell,
                        Form::Hardened => {
                            cell.set("membership.form", "hardened").set("membership.rejoin", false)
                        }
                    }
                };
                vec![
                    one("central", Form::Central),
                    one("pairwise", Form::Pairwise),
                    one("hardened", Form::Hardened),
                ]
            },
            claims: event_claims,
            figures: event_figure,
        },
        Experiment {
            id: "ahsan-fig-8",
            title: "Many nodes die at once",
            source: "arbitration paper, figure 8",
            cells: |size| {
                let mut cells = Vec::new();
                for (name, far) in DEFENCES {
                    let dying: &[usize] = match size {
                        Size::Full => &DYING,
                        Size::Quick => &[1, 3, 6],
                    };
                    for &dying in dying {
                        let work = Computation::over("ring deaths", RING, dying, deaths);
                        let cell =
                            Cell::computed(format!("{name} f={dying}"), work, runs(size, 200, 4))
                                .set("network.nodes", MEMBERS)
                                .set("duration", "50s");
                        let cell = if far > 0 {
                            cell.set("membership.form", "hardened")
                                .set("membership.rejoin", false)
                                .set("membership.far", far)
                        } else {
                            cell
                        };
                        cells.push(cell);
                    }
                }
                cells
            },
            claims: death_claims,
            figures: death_figures,
        },
        Experiment {
            id: "ahsan-fig-9",
            title: "Arbitration requests per node",
            source: "arbitration paper, figure 9",
            cells: |size| {
                let (nodes, dying) = load_size(size);
                let one = |name, central| {
                    let work = Computation::over("ring load", RING, (nodes, dying, central), load);
                    let cell = Cell::computed(name, work, runs(size, 4, 2));
                    let cell = cell.set("duration", format!("{}s", 10 + 25 * BATCHES));
                    if central {
                        cell.set("network.nodes", nodes + 9)
                            .set("membership.arbiters", "central")
                            .set("membership.external", 9)
                    } else {
                        cell.set("network.nodes", nodes)
                    }
                };
                vec![one("central", true), one("pairwise", false)]
            },
            claims: load_claims,
            // Drawn there: a distribution. Here: its mean, its largest and its share below ten.
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "ahsan-fig-10",
            title: "How long joins take",
            source: "arbitration paper, figure 10",
            cells: |size| {
                let mut cells = Vec::new();
                for (n, k, j) in joins(size) {
                    let work = Computation::over("ring joins", RING, j, join_times);
                    let cell = Cell::computed(join_name(n, k, j), work, runs(size, 5, 2))
                        .set("network.nodes", n)
                        .set("membership.neighbours", k)
                        .set("membership.points", "hash")
                        .set("duration", "150s");
                    cells.push(cell);
                }
                cells
            },
            claims: join_claims,
            figures: join_figure,
        },
        Experiment {
            id: "ahsan-fig-11",
            title: "How soon a crash is noticed, for different sessions",
            source: "arbitration paper, figure 11",
            cells: |size| {
                let cell = |session: u64| {
                    let work = Computation::over("ring detection", RING, session, detection);
                    Cell::computed(format!("{session} ms"), work, runs(size, 60, 6))
                        .set("network.nodes", 64)
                        .set(
                            "network.delay",
                            "{ kind = \"uniform\", low = \"0ms\", high = \"3ms\" }",
                        )
                        .set("membership.lease", format!("{session}ms"))
                        .set("duration", format!("{}ms", session * 60))
                };
                SESSIONS.map(cell).into()
            },
            claims: detection_claims,
            figures: detection_figure,
        },
        Experiment {
            id: "ahsan-eq-2",
            title: "Lease messages do not depend on the size of the ring",
            source: "arbitration paper, equation 2",
            cells: |size| {
                let mut cells = Vec::new();
                for k in [2, 3] {
                    for n in [32, 128, 512, 1_000] {
                        let cell = Cell::new(format!("n={n} k={k}"), RING, runs(size, 4, 1))
                            .set("network.nodes", n)
                            .set("membership.neighbours", k)
                            .set("duration", if size == Size::Full { "110s" } else { "20s" });
                        cells.push(cell);
                    }
                }
                cells
            },
            claims: |table| {
                let mut worst = Some(0.0_f64);
                for k in [2, 3] {
                    for n in [32, 128, 512, 1_000] {
                        let found = at(table, &format!("n={n} k={k}"), "leases_per_session");
                        let off = found.map(|one| (one.value / f64::from(4 * k) - 1.0).abs());
                        worst = worst.zip(off).map(|(a, b)| a.max(b));
                    }
                }
                let measured =
                    worst.map_or("nothing".into(), |off| format!("off by {:.3}%", off * 100.0));
                vec![Claim::holds(
                    "A node sends 4k messages a session, in rings of 32 to 1,000",
                    "4k / T_l, within 1%",
                    measured,
                    worst.is_some_and(|off| off <= 0.01),
                )]
            },
            figures: |_| Vec::new(),
        },
    ]
}

/// Quick runs are few: every one simulates a whole ring.
pub(super) fn runs(size: Size, full: u64, quick: u64) -> u64 {
    match size {
        Size::Full => full,
        Size::Quick => quick,
    }
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Form {
    Central,
    Pairwise,
    Hardened,
}

/// Longer than a removal takes to settle: 4 T_l + T_a + T_arb, and upgrades that collide wait up to 2 T_arb more.
const SETTLED: u64 = 25_000;
const EVENTS: usize = 14;

fn events(scenario: &Scenario, form: &Form, seed: u64) -> Found {
    let mut rng = draws(seed);
    let events = if *form == Form::Central { 3 } else { EVENTS };
    let order = {
        let mut left: Vec<u32> = (0..32).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            order.push(left.swap_remove(rng.below(left.len() as u64) as usize));
        }
        order
    };
    let when = |event: usize| ms(8_000 + SETTLED * event as u64);
    let faults = (0..events).map(|event| match form {
        Form::Central => crash(when(event), vec![order[event], 32 + event as u32]),
        _ => crash(when(event), vec![order[2 * event], order[2 * event + 1]]),
    });
    let faults = faults.collect();
    let scenario = Scenario { duration: when(events) + ms(30_000), ..scenario.clone() };
    let study = run(&scenario, faults, seed)?;
    let killed = if *form == Form::Central { 1 } else { 2 };
    let mut values = Vec::new();
    for event in 1..=events {
        let end = Time::ZERO + if event == events { scenario.duration } else { when(event) };
        let departed = study.findings.departed.iter().filter(|one| one.0 < end).count();
        values.push(Value::count(
            format!("after {event}"),
            (32 - killed * event - departed.min(32 - killed * event)) as f64,
        ));
    }
    values.push(Value::count("forced", study.findings.departed.len() as f64));
    Ok(values)
}

fn event_claims(table: &Table) -> Vec<Claim> {
    let pairwise = |form: &'static str| {
        let metrics: Vec<(String, &'static str, f64)> = AFTER
            .iter()
            .enumerate()
            .take(13)
            .map(|(at, name)| (form.to_owned(), *name, 32.0 - 2.0 * (at + 1) as f64))
            .collect();
        metrics
    };
    vec![
        always(
            table,
            "The centre works with three of its five arbitrators, and then nobody is left",
            "32, 31, 30, 0",
            [("central", AFTER[0], 31.0), ("central", AFTER[1], 30.0), ("central", AFTER[2], 0.0)]
                .map(|(cell, metric, value)| (cell.to_owned(), metric, value)),
        ),
        always(
            table,
            "Pairwise, the ring shrinks by those that die, down to six",
            "32 - 2e",
            pairwise("pairwise"),
        ),
        always(table, "And so it does hardened", "32 - 2e (project)", pairwise("hardened")),
    ]
}

const AFTER: [&str; EVENTS] = [
    "after 1", "after 2", "after 3", "after 4", "after 5", "after 6", "after 7", "after 8",
    "after 9", "after 10", "after 11", "after 12", "after 13", "after 14",
];

fn event_figure(table: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, cell) in ["central", "pairwise", "hardened"].into_iter().enumerate() {
        let points = AFTER.iter().zip(1..).filter_map(|(metric, event)| {
            Some((f64::from(event), table.summary(cell, metric)?.mean))
        });
        series.push(Series::analytic(cell, colour, points));
    }
    vec![Figure {
        name: "ahsan-fig-7".into(),
        title: "Members after each event".into(),
        x: Axis::linear("events"),
        y: Axis::linear("members"),
        series,
    }]
}

const DYING: [usize; 9] = [1, 2, 3, 4, 6, 8, 10, 12, 16];
const MEMBERS: u32 = 64;
/// Names, and how many far arbitrators they have.
const DEFENCES: [(&str, u32); 3] = [("as-published", 0), ("far(8)", 8), ("far(16)", 16)];

fn deaths(scenario: &Scenario, dying: &usize, seed: u64) -> Found {
    let victims = choose(&mut draws(seed), MEMBERS, *dying);
    let study = run(scenario, vec![crash(ms(6_000), victims)], seed)?;
    Ok(vec![
        whether("exact", study.active.len() + dying == MEMBERS as usize),
        whether("collapsed", study.active.is_empty()),
        Value::count("active", study.active.len() as f64),
    ])
}

fn death_claims(table: &Table) -> Vec<Claim> {
    let exact = |form: &str, dying: usize| at(table, &format!("{form} f={dying}"), "exact");
    let few = match table.size() {
        Size::Full => vec![1, 2, 3],
        Size::Quick => vec![1, 3],
    };
    let every = |form: &'static str, few: &[usize]| {
        few.iter().map(|f| (format!("{form} f={f}"), "exact", 1.0)).collect::<Vec<_>>()
    };
    let mut claims = vec![always(
        table,
        "The ring shrinks by exactly those that die, up to three at once",
        "every event reduces the size by the number killed",
        every("as-published", &few),
    )];
    if table.size() == Size::Full {
        for (dying, least) in [(4, 0.98), (6, 0.93)] {
            let found = exact("as-published", dying);
            claims.push(bounded(
                table,
                format!("And nearly always with {dying} at once"),
                format!("at least {least}"),
                found,
                least,
                1.0,
            ));
        }
        let hurt: Vec<String> =
            [8, 10, 12, 16].map(|f| format!("{f}: {}", shown(exact("as-published", f)))).into();
        claims.push(Claim::holds(
            "With more at once most rings dissolve, which the paper does not show",
            "model: exact in 87, 68, 47 and 7% of runs at 8, 10, 12 and 16",
            hurt.join(", "),
            exact("as-published", 16).is_some_and(|one| one.value < 0.5),
        ));
        claims.push(always(
            table,
            "Eight far arbitrators keep the ring whole with up to eight at once",
            "model: 0% hurt",
            every("far(8)", &[1, 2, 3, 4, 6, 8]),
        ));
        claims.push(always(
            table,
            "Sixteen with up to twelve",
            "model: 0% hurt",
            every("far(16)", &[1, 2, 3, 4, 6, 8, 10, 12]),
        ));
    } else {
        claims.push(always(
            table,
            "Far arbitrators keep the ring whole with up to six at once",
            "model: 0% hurt",
            ["far(8)", "far(16)"].into_iter().flat_map(|form| every(form, &[1, 3, 6])),
        ));
    }
    claims
}

fn death_figures(table: &Table) -> Vec<Figure> {
    let series = |metric: &str| {
        let series = DEFENCES.into_iter().enumerate().map(|(colour, (name, _))| {
            let cells = DYING.map(|dying| (dying as f64, format!("{name} f={dying}")));
            Series::cells(name, colour, table, metric, cells)
        });
        series.collect::<Vec<_>>()
    };
    let living = DYING.map(|dying| (dying as f64, f64::from(MEMBERS) - dying as f64));
    let mut left = vec![Series::analytic("all that live", 6, living)];
    left.extend(series("active"));
    let figure = |name: &str, title: &str, y: &str, series| Figure {
        name: name.into(),
        title: title.into(),
        x: Axis::linear("nodes that die at once"),
        y: Axis::linear(y),
        series,
    };
    vec![
        figure(
            "ahsan-fig-8",
            "Members left of 64 after many die at once",
            "members left, mean",
            left,
        ),
        // A mean near the line may be a ring that is whole or one that lost a single living member.
        figure(
            "ahsan-fig-8-whole",
            "Runs in which nobody leaves but those that die",
            "share of runs",
            series("exact"),
        ),
    ]
}

/// Members and crashes. Quick, a quarter of both: the mean is the same.
fn load_size(size: Size) -> (u32, u32) {
    match size {
        Size::Full => (1_000, 100),
        Size::Quick => (250, 25),
    }
}

/// Crashes far apart do not meet, so that ten of them settle at once as one would; the sequence is that of the
/// batches.
const BATCHES: u64 = 10;

fn load(scenario: &Scenario, &(nodes, dying, central): &(u32, u32, bool), seed: u64) -> Found {
    let mut rng = draws(seed);
    let mut victims = choose(&mut rng, nodes, dying as usize);
    for at in (1..victims.len()).rev() {
        victims.swap(at, rng.below(at as u64 + 1) as usize);
    }
    let mut batches: Vec<Vec<u32>> = vec![Vec::new(); BATCHES as usize];
    let apart = |one: u32, other: u32| {
        let far = one.abs_diff(other);
        far.min(nodes - far) > 20
    };
    let mut misfits = 0;
    for (index, victim) in victims.into_iter().enumerate() {
        let order = (0..batches.len()).map(|step| (index + step) % batches.len());
        let fits =
            order.into_iter().find(|&b| batches[b].iter().all(|&other| apart(victim, other)));
        match fits {
            Some(batch) => batches[batch].push(victim),
            None => misfits += 1,
        }
    }
    let when = |batch: usize| ms(8_000 + SETTLED * batch as u64);
    let faults =
        batches.into_iter().enumerate().map(|(at, batch)| crash(when(at), batch)).collect();
    let study = run(scenario, faults, seed)?;
    let mut requests: Vec<u64> = study.findings.requests.clone();
    if central {
        // The asker has no copy of its own there.
        let arbiters: Vec<u64> = requests.split_off(nodes as usize);
        let most = arbiters.iter().max().copied().unwrap_or(0) as f64;
        let least = arbiters.iter().min().copied().unwrap_or(0) as f64;
        return Ok(vec![
            Value::count("most", most),
            Value::count("least", least),
            Value::count("forced", study.findings.departed.len() as f64),
            Value::count("misfits", f64::from(misfits)),
        ]);
    }
    let count = requests.len() as f64;
    let total: u64 = requests.iter().sum();
    let below = requests.iter().filter(|&&one| one < 10).count() as f64;
    let most = requests.iter().max().copied().unwrap_or(0) as f64;
    Ok(vec![
        Value::count("mean", total as f64 / count),
        Value::ratio("below ten", below / count),
        Value::count("most", most),
        Value::count("upgrades", study.findings.upgrades as f64 / f64::from(dying)),
        Value::count("forced", study.findings.departed.len() as f64),
        Value::count("misfits", f64::from(misfits)),
    ])
}

fn load_claims(table: &Table) -> Vec<Claim> {
    let (_, dying) = load_size(table.size());
    let most = at(table, "pairwise", "most");
    let ratio = most.map(|most| f64::from(6 * dying) / most.value);
    let mut claims = vec![
        always(
            table,
            "Every central arbitrator gets 2k requests for each crash",
            "600 at 100 crashes",
            ["most", "least"].map(|metric| ("central".into(), metric, f64::from(6 * dying))),
        ),
        always(
            table,
            "Pairwise the mean is 54 f / n, as the paper's 5.4 shows it counts",
            "5.4",
            [("pairwise".into(), "mean", 5.4), ("pairwise".into(), "misfits", 0.0)],
        ),
        bounded(
            table,
            "Most nodes get fewer than ten",
            "80%; 0.75 to 0.90",
            at(table, "pairwise", "below ten"),
            0.75,
            0.90,
        ),
        Claim::holds(
            "Upgrades, which the paper leaves out, cost more than arbitrations",
            "270 proposals for each crash, and as many answers",
            shown(at(table, "pairwise", "upgrades")),
            at(table, "pairwise", "upgrades").is_some_and(|one| one.value > 54.0),
        ),
    ];
    if table.size() == Size::Full {
        claims.push(bounded(
            table,
            "The worst node gets about two dozen",
            "24; mean of the largest 20 to 32",
            most,
            20.0,
            32.0,
        ));
        claims.push(Claim::holds(
            "The worst pairwise load is an order of magnitude below the central one",
            "at least two orders; 13 or more is the criterion",
            ratio.map_or("nothing".into(), |ratio| format!("{ratio:.1} times")),
            ratio.is_some_and(|ratio| ratio >= 13.0),
        ));
    }
    claims
}

fn joins(size: Size) -> Vec<(u32, usize, u32)> {
    match size {
        Size::Full => {
            let mut all: Vec<(u32, usize, u32)> = Vec::new();
            for n in [64, 256, 1_024] {
                all.extend([8, 32, 128].map(|j| (n, 3, j)));
            }
            all.extend([(256, 2, 32), (256, 5, 32), (1_024, 3, 1)]);
            all
        }
        Size::Quick => vec![(64, 3, 1), (64, 3, 8), (256, 3, 8), (64, 3, 32)],
    }
}

fn join_name(n: u32, k: usize, j: u32) -> String {
    format!("n={n} k={k} j={j}")
}

fn join_times(scenario: &Scenario, joiners: &u32, seed: u64) -> Found {
    let faults = vec![fault(ms(5_000), FaultKind::Join { count: *joiners })];
    let study = run(scenario, faults, seed)?;
    let took: Vec<f64> = study.findings.joined.iter().map(|(took, _)| took.as_secs_f64()).collect();
    let least = took.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(vec![
        Value::count(
            "mean",
            (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64),
        ),
        Value::count("least", least),
        whether("never sooner", least >= FASTEST),
        whether("all joined", took.len() == *joiners as usize),
        Value::count("forced", study.findings.departed.len() as f64),
    ])
}

fn join_claims(table: &Table) -> Vec<Claim> {
    let mean = |n, k, j| at(table, &join_name(n, k, j), "mean");
    let all = joins(table.size());
    let never = all.iter().map(|&(n, k, j)| (join_name(n, k, j), "never sooner", 1.0));
    let alone = all.iter().filter(|&&(_, _, j)| j == 1);
    let alone = alone.map(|&(n, k, j)| (join_name(n, k, j), "least", FASTEST));
    let mut claims = vec![
        always(table, "The fastest join takes four sessions", "4 T_l", never.chain(alone)),
        always(
            table,
            "Everybody joins within 145 sessions, where at most 32 join at once",
            "(project)",
            all.iter()
                .filter(|&&(_, _, j)| j <= 32)
                .map(|&(n, k, j)| (join_name(n, k, j), "all joined", 1.0)),
        ),
    ];
    if table.size() == Size::Quick {
        claims.push(Claim::holds(
            "Larger rings make room, more joiners take it",
            "falls with n, rises with j",
            format!(
                "{}, {}, {}",
                shown(mean(256, 3, 8)),
                shown(mean(64, 3, 8)),
                shown(mean(64, 3, 32))
            ),
            is_ascending(&[mean(256, 3, 8), mean(64, 3, 8), mean(64, 3, 32)])
                && mean(64, 3, 8).is_some(),
        ));
        return claims;
    }
    let show = |values: &[Option<crate::claim::Estimate>]| {
        values.iter().map(|one| shown(*one)).collect::<Vec<_>>().join(", ")
    };
    for j in [8, 32, 128] {
        let values = [mean(1_024, 3, j), mean(256, 3, j), mean(64, 3, j)];
        let claim = Claim::holds(
            format!("{j} joiners: the larger the ring the sooner"),
            "falls with ring size (4096 is not run: a view of everybody by everybody)",
            show(&values),
            is_ascending(&values),
        );
        claims.push(match j {
            8 => claim.on_record(Verdict::NotReproduced, SAME_PLACES),
            _ => claim,
        });
    }
    for n in [64, 256, 1_024] {
        let values = [mean(n, 3, 8), mean(n, 3, 32), mean(n, 3, 128)];
        claims.push(Claim::holds(
            format!("A ring of {n}: the more joiners the later"),
            "rises with j",
            show(&values),
            is_ascending(&values),
        ));
    }
    let values = [mean(256, 2, 32), mean(256, 3, 32), mean(256, 5, 32)];
    claims.push(Claim::holds(
        "The more neighbours the later",
        "rises with k",
        show(&values),
        is_ascending(&values),
    ));
    let claim = bounded(
        table,
        "Eight joiners hardly meet in 1,024",
        "at most 4.3",
        mean(1_024, 3, 8),
        4.0,
        4.3,
    );
    claims.push(claim.on_record(Verdict::NotReproduced, SAME_PLACES));
    claims
}

fn join_figure(table: &Table) -> Vec<Figure> {
    let all = joins(table.size());
    let mut kinds: Vec<(usize, u32)> = all.iter().map(|&(_, k, j)| (k, j)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let fastest = all.iter().map(|&(n, ..)| n).collect::<std::collections::BTreeSet<u32>>();
    let fastest = fastest.into_iter().map(|n| (f64::from(n), FASTEST));
    let mut series = vec![Series::analytic("fastest", 6, fastest)];
    for (colour, (k, j)) in kinds.into_iter().enumerate() {
        let rings = all.iter().filter(|one| (one.1, one.2) == (k, j));
        let cells = rings.map(|&(n, k, j)| (f64::from(n), join_name(n, k, j)));
        series.push(Series::cells(format!("k = {k}, {j} join"), colour, table, "mean", cells));
    }
    vec![Figure {
        name: "ahsan-fig-10".into(),
        title: "How long those take that join within 145 sessions".into(),
        x: Axis::log("members of the ring"),
        y: Axis::log("time to join, sessions"),
        series,
    }]
}

/// Sessions of one join, the rule being one for each of its four phases.
const FASTEST: f64 = 4.0;

/// Why few joiners are not as soon as they might be.
const SAME_PLACES: &str = "a node's place is the hash of its number, so that the same eight join in every run; in the ring of 1,024 two of them share neighbours, in that of 256 none";

const SESSIONS: [u64; 6] = [32, 64, 128, 256, 512, 1_024];

pub(super) fn detection(scenario: &Scenario, session: &u64, seed: u64) -> Found {
    let mut rng = draws(seed);
    let victims = choose(&mut rng, 4, 4);
    let mut faults = Vec::new();
    for (at, one) in victims.iter().enumerate() {
        let phase = Duration::from_micros(rng.below(session * 1_000));
        let when = ms(session * (8 + 12 * at as u64)) + phase;
        faults.push(crash(when, vec![one * 16 + rng.below(16) as u32]));
    }
    let study = run(scenario, faults, seed)?;
    let unit = *session as f64 / 1_000.0;
    let ratios = |all: &[Duration]| all.iter().map(|d| d.as_secs_f64() / unit).collect::<Vec<_>>();
    let all = ratios(&study.findings.suspected);
    let summary = Summary::of(all.iter().copied());
    let mut sorted = all.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |share: f64| sorted.get((share * sorted.len() as f64) as usize).copied();
    let mean = |all: Vec<f64>| Summary::of(all).map(|one| one.mean);
    let worst = |all: &[Duration]| all.iter().max().map(|d| d.as_secs_f64() / unit);
    let (late, told) = (worst(&study.findings.buried_by_monitors), worst(&study.findings.buried));
    Ok(vec![
        Value::count("mean", summary.map(|one| one.mean)),
        Value::count("quarter", rank(0.25)),
        Value::count("median", rank(0.5)),
        Value::count("three quarters", rank(0.75)),
        Value::count("least", sorted.first().copied()),
        Value::count("most", sorted.last().copied()),
        whether(
            "exact",
            sorted.first().is_some_and(|&one| one > 1.0 - 3.0 / *session as f64)
                && sorted.last().is_some_and(|&one| one <= 2.0),
        ),
        whether("literal", sorted.first().is_some_and(|&one| one >= 1.0)),
        Value::count("first", mean(ratios(&study.findings.first_suspected))),
        Value::count("last", mean(ratios(&study.findings.last_suspected))),
        Value::count("buried", late),
        whether("buried in time", late.is_some_and(|late| late < 4.5)),
        Value::count("told", told),
        // Six hops of at most 50 ms.
        whether("told in time", told.is_some_and(|told| told < 4.5 + 0.3 / unit)),
        Value::count("forced", study.findings.departed.len() as f64),
    ])
}

fn detection_claims(table: &Table) -> Vec<Claim> {
    let cells = || SESSIONS.map(|session| format!("{session} ms"));
    let of = |metric: &str| cells().map(|cell| at(table, &cell, metric));
    let within = |metric: &str, low: f64, high: f64| {
        of(metric).into_iter().all(|one| one.is_some_and(|one| (low..=high).contains(&one.value)))
    };
    let show = |metric: &str| {
        of(metric).map(|one| one.map_or("nothing".into(), |one| short(one.value))).join(", ")
    };
    let grace = if table.size() == Size::Full { 1.0 } else { 4.0 };
    let means: Vec<f64> = of("mean").into_iter().flatten().map(|one| one.value).collect();
    let spread = means.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        - means.iter().copied().fold(f64::INFINITY, f64::min);
    vec![
        always(
            table,
            "Every monitor notices within (T_l - d, 2 T_l]",
            "[T_l, 2 T_l) as published, corrected by E1",
            cells().map(|cell| (cell, "exact", 1.0)),
        ),
        Claim::holds(
            "A monitor notices after one and a half sessions on average, whatever their length",
            "1.5",
            show("mean"),
            within("mean", 1.4 - 0.05 * grace, 1.5 + 0.05 * grace) && spread < 0.1 * grace,
        ),
        Claim::holds(
            "Quartiles are near 1.25, 1.5 and 1.75",
            "± 0.08",
            format!("{}; {}; {}", show("quarter"), show("median"), show("three quarters")),
            within("quarter", 1.25 - 0.13 * grace, 1.25 + 0.08 * grace)
                && within("median", 1.5 - 0.13 * grace, 1.5 + 0.08 * grace)
                && within("three quarters", 1.75 - 0.13 * grace, 1.75 + 0.08 * grace),
        ),
        Claim::holds(
            "The first of six notices sooner, the last later, than the figure's mean",
            "about 1.14 and 1.86 (E3)",
            format!("{}; {}", show("first"), show("last")),
            within("first", 0.9, 1.35) && within("last", 1.65, 2.0),
        ),
    ]
}

fn detection_figure(table: &Table) -> Vec<Figure> {
    let ends = |sessions: f64| {
        [SESSIONS[0], SESSIONS[SESSIONS.len() - 1]].map(|session| (session as f64, sessions))
    };
    let mut series: Vec<Series> = ["most", "three quarters", "median", "mean", "quarter", "least"]
        .into_iter()
        .enumerate()
        .map(|(colour, metric)| {
            let cells = SESSIONS.map(|session| (session as f64, format!("{session} ms")));
            Series::cells(metric, colour, table, metric, cells)
        })
        .collect();
    series.push(Series::analytic("one and two sessions", 6, ends(1.0)));
    series.push(Series::analytic("", 6, ends(2.0)));
    vec![Figure {
        name: "ahsan-fig-11".into(),
        title: "How soon a monitor notices: quartiles, mean and extremes of a run".into(),
        x: Axis::log("session, ms"),
        y: Axis::linear("sessions from crash to suspicion"),
        series,
    }]
}
