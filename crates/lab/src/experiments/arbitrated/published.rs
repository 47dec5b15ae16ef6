//! Figures 7 to 11 and equation 2.

use bellwether_proto::{Duration, Time};
use bellwether_sim::{
    observe::{Metric, Summary},
    scenario::{FaultKind, Scenario},
};

use super::*;
use crate::estimate::{most, value_of};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "ahsan-fig-7",
            title: "Two nodes die at every event",
            source: "arbitration paper, figure 7",
            cells: |size| {
                let one = |name, form: Arbiters| {
                    let work = Computation::over("ring events", RING, form, events);
                    let cell = Cell::computed(name, work, size.pick(40, 3));
                    let central = form == Arbiters::Central;
                    let cell = cell.set("network.nodes", if central { 37 } else { 32 });
                    match form {
                        Arbiters::Central => {
                            cell.set("membership.arbiters", "central").set("membership.external", 5)
                        }
                        Arbiters::Pairwise => cell,
                        Arbiters::Hardened => hardened(cell),
                    }
                };
                vec![
                    one("central", Arbiters::Central),
                    one("pairwise", Arbiters::Pairwise),
                    one("hardened", Arbiters::Hardened),
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
                    for &dying in dying(size) {
                        let work = Computation::over("ring deaths", RING, dying, deaths);
                        let cell = Cell::computed(death_name(name, dying), work, size.pick(200, 4))
                            .set("network.nodes", MEMBERS)
                            .set("duration", "50s");
                        cells.push(match far {
                            0 => cell,
                            _ => hardened(cell).set("membership.far", far),
                        });
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
                    let cell = Cell::computed(name, work, size.pick(4, 2));
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
                    let cell = Cell::computed(join_name(n, k, j), work, size.pick(5, 2))
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
                    Cell::computed(session_name(session), work, size.pick(60, 6))
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
                        let cell = Cell::new(format!("n={n} k={k}"), RING, size.pick(4, 1))
                            .set("network.nodes", n)
                            .set("membership.neighbours", k)
                            .set("duration", if size == Size::Full { "110s" } else { "20s" });
                        cells.push(cell);
                    }
                }
                cells
            },
            claims: |data| {
                let off = |(k, n): (u32, u32)| {
                    let found = data.estimate(format!("n={n} k={k}"), Metric::LeasesPerSession);
                    Estimate::exact((found.value / f64::from(4 * k) - 1.0).abs() * 100.0)
                };
                let rings = [2, 3].into_iter().flat_map(|k| [32, 128, 512, 1_000].map(|n| (k, n)));
                let worst = value_of(most(rings.map(|ring| (ring, off(ring)))));
                vec![
                    data
                        .claim(
                            "By how many percent a node is off sending 4k messages a session, in rings of 32 to 1,000",
                            "4k / T_l",
                        )
                        .showing(format!("off by {worst:.3}%"))
                        .at_most(worst, 1.0),
                ]
            },
            figures: |_| Vec::new(),
        },
    ]
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Arbiters {
    Central,
    Pairwise,
    Hardened,
}

/// Longer than a removal takes to settle: 4 T_l + T_a + T_arb, and upgrades that collide wait up to 2 T_arb more.
const SETTLED: u64 = 25_000;
const EVENTS: usize = 14;

fn events(scenario: &Scenario, form: &Arbiters, seed: u64) -> Found {
    let mut rng = draws(seed);
    let events = if *form == Arbiters::Central { 3 } else { EVENTS };
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
        Arbiters::Central => crash(when(event), vec![order[event], 32 + event as u32]),
        _ => crash(when(event), vec![order[2 * event], order[2 * event + 1]]),
    });
    let faults = faults.collect();
    let scenario = Scenario { duration: when(events) + ms(30_000), ..scenario.clone() };
    let study = run(&scenario, faults, seed)?;
    let killed = if *form == Arbiters::Central { 1 } else { 2 };
    let mut values = Vec::new();
    for event in 1..=events {
        let end = Time::ZERO + if event == events { scenario.duration } else { when(event) };
        let departed = study.findings.departed.iter().filter(|one| one.0 < end).count();
        values.push(Value::count(
            After(event),
            (32 - killed * event - departed.min(32 - killed * event)) as f64,
        ));
    }
    values.push(Value::count(Ring::Forced, study.findings.departed.len() as f64));
    Ok(values)
}

measure!(
    /// Members that are left after so many events.
    After(event: usize) = "after {event}"
);

fn event_claims(data: &Table) -> Vec<Claim> {
    let pairwise = |sentence: &str, published: &str, form| {
        let left = |event: usize| (form, After(event), 32.0 - 2.0 * event as f64);
        always(data, sentence, published, (1..=13).map(left))
    };
    vec![
        always(
            data,
            "The centre works with three of its five arbitrators, and then nobody is left",
            "32, 31, 30, 0",
            [(1, 31.0), (2, 30.0), (3, 0.0)].map(|(event, left)| ("central", After(event), left)),
        ),
        pairwise(
            "Pairwise, the ring shrinks by those that die, down to six",
            "32 - 2e",
            "pairwise",
        ),
        pairwise("And so it does hardened", "32 - 2e (project)", "hardened"),
    ]
}

fn event_figure(data: &Table) -> Vec<Figure> {
    let row = |(colour, cell): (usize, &'static str)| {
        let left = |event| (event as f64, data.estimate(cell, After(event)).value);
        Series::analytic(cell, colour, (1..=EVENTS).map(left))
    };
    let axes = (Axis::linear("events"), Axis::linear("members"));
    let series = ["central", "pairwise", "hardened"].into_iter().enumerate().map(row);
    vec![Figure::new("ahsan-fig-7", "Members after each event", axes, series)]
}

/// How many die at once.
fn dying(size: Size) -> &'static [usize] {
    size.pick(&[1, 2, 3, 4, 6, 8, 10, 12, 16], &[1, 3, 6])
}

fn death_name(defence: &str, dying: usize) -> String {
    format!("{defence} f={dying}")
}

const MEMBERS: u32 = 64;
/// Names, and how many far arbitrators they have.
const DEFENCES: [(&str, u32); 3] = [("as-published", 0), ("far(8)", 8), ("far(16)", 16)];

fn deaths(scenario: &Scenario, dying: &usize, seed: u64) -> Found {
    let victims = choose(&mut draws(seed), MEMBERS, *dying);
    let study = run(scenario, vec![crash(ms(6_000), victims)], seed)?;
    Ok(vec![
        Value::whether(Ring::Exact, study.active.len() + dying == MEMBERS as usize),
        Value::whether(Ring::Collapsed, study.active.is_empty()),
        Value::count(Ring::Active, study.active.len() as f64),
    ])
}

fn death_claims(data: &Table) -> Vec<Claim> {
    let exact = |dying: usize| data.estimate(death_name("as-published", dying), Ring::Exact);
    let whole = |sentence: &str, published: &str, forms: &[&str], upto: usize| {
        let dying = || dying(data.size()).iter().filter(|&&dying| dying <= upto);
        let cells = forms.iter().flat_map(|form| dying().map(|&dying| death_name(form, dying)));
        always(data, sentence, published, cells.map(|cell| (cell, Ring::Exact, 1.0)))
    };
    let mut claims = vec![whole(
        "The ring shrinks by exactly those that die, up to three at once",
        "every event reduces the size by the number killed",
        &["as-published"],
        3,
    )];
    let model = "model: 0% hurt";
    if data.size() == Size::Quick {
        let sentence = "Far arbitrators keep the ring whole with up to six at once";
        claims.push(whole(sentence, model, &["far(8)", "far(16)"], 6));
        return claims;
    }
    for (dying, low) in [(4, 0.98), (6, 0.93)] {
        let sentence = format!("And nearly always with {dying} at once, share of runs");
        claims.push(data.claim(sentence, "always").at_least(exact(dying), low));
    }
    let hurt = list([8, 10, 12, 16].map(|dying| format!("{dying}: {}", exact(dying))));
    claims.push(
        data.claim(
            "With more at once most rings dissolve, which the paper does not show",
            "model: exact in 87, 68, 47 and 7% of runs at 8, 10, 12 and 16",
        )
        .holds(hurt, exact(16).value < 0.5),
    );
    let sentence = "Eight far arbitrators keep the ring whole with up to eight at once";
    claims.push(whole(sentence, model, &["far(8)"], 8));
    claims.push(whole("Sixteen with up to twelve", model, &["far(16)"], 12));
    claims
}

fn death_figures(data: &Table) -> Vec<Figure> {
    let dying = || dying(data.size()).iter().copied();
    let series = |measure| {
        DEFENCES.into_iter().enumerate().map(move |(colour, (name, _))| {
            let cells = dying().map(|dying| (dying as f64, death_name(name, dying)));
            Series::cells(name, colour, data, measure, cells)
        })
    };
    let living = dying().map(|dying| (dying as f64, f64::from(MEMBERS) - dying as f64));
    let left =
        [Series::analytic("all that live", 6, living)].into_iter().chain(series(Ring::Active));
    let axes = |y: &str| (Axis::linear("nodes that die at once"), Axis::linear(y));
    let title = "Members left of 64 after many die at once";
    // A mean near the line may be a ring that is whole or one that lost a single living member.
    let whole = "Runs in which nobody leaves but those that die";
    vec![
        Figure::new("ahsan-fig-8", title, axes("members left, mean"), left),
        Figure::new("ahsan-fig-8-whole", whole, axes("share of runs"), series(Ring::Exact)),
    ]
}

/// Members and crashes. Quick, a quarter of both: the mean is the same.
fn load_size(size: Size) -> (u32, u32) {
    size.pick((1_000, 100), (250, 25))
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
            Value::count(Ring::Most, most),
            Value::count(Ring::Least, least),
            Value::count(Ring::Forced, study.findings.departed.len() as f64),
            Value::count(Ring::Misfits, f64::from(misfits)),
        ]);
    }
    let count = requests.len() as f64;
    let total: u64 = requests.iter().sum();
    let below = requests.iter().filter(|&&one| one < 10).count() as f64;
    let most = requests.iter().max().copied().unwrap_or(0) as f64;
    Ok(vec![
        Value::count(Ring::Mean, total as f64 / count),
        Value::ratio(Ring::BelowTen, below / count),
        Value::count(Ring::Most, most),
        Value::count(Ring::Upgrades, study.findings.upgrades as f64 / f64::from(dying)),
        Value::count(Ring::Forced, study.findings.departed.len() as f64),
        Value::count(Ring::Misfits, f64::from(misfits)),
    ])
}

fn load_claims(data: &Table) -> Vec<Claim> {
    let (_, dying) = load_size(data.size());
    let requests = f64::from(6 * dying);
    let of = |measure| data.estimate("pairwise", measure);
    let mut claims = vec![
        always(
            data,
            "Every central arbitrator gets 2k requests for each crash",
            "600 at 100 crashes",
            [Ring::Most, Ring::Least].map(|measure| ("central", measure, requests)),
        ),
        always(
            data,
            "Pairwise the mean is 54 f / n, as the paper's 5.4 shows it counts",
            "5.4",
            [("pairwise", Ring::Mean, 5.4), ("pairwise", Ring::Misfits, 0.0)],
        ),
        data.claim("Share of the nodes that get fewer than ten", "80%").between(
            of(Ring::BelowTen),
            0.75,
            0.9,
        ),
        data.claim(
            "Upgrades, which the paper leaves out, cost more than arbitrations, 54",
            "270 proposals for each crash, and as many answers",
        )
        .holds(of(Ring::Upgrades), of(Ring::Upgrades).value > 54.0),
    ];
    if data.size() == Size::Full {
        let most = of(Ring::Most);
        claims.push(
            data.claim("What the worst node gets, on average", "24").between(most, 20.0, 32.0),
        );
        claims.push(
            data.claim(
                "By what factor the worst pairwise load is below the central one",
                "at least two orders of magnitude",
            )
            .digits(1)
            .at_least(Estimate::exact(requests / most.value), 13.0),
        );
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
            Ring::Mean,
            (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64),
        ),
        Value::count(Ring::Least, least),
        Value::whether(Ring::NeverSooner, least >= FASTEST),
        Value::whether(Ring::AllJoined, took.len() == *joiners as usize),
        Value::count(Ring::Forced, study.findings.departed.len() as f64),
    ])
}

fn join_claims(data: &Table) -> Vec<Claim> {
    let mean = |n, k, j| data.estimate(join_name(n, k, j), Ring::Mean);
    let all = joins(data.size());
    let never = all.iter().map(|&(n, k, j)| (join_name(n, k, j), Ring::NeverSooner, 1.0));
    let alone = all.iter().filter(|&&(_, _, j)| j == 1);
    let alone = alone.map(|&(n, k, j)| (join_name(n, k, j), Ring::Least, FASTEST));
    let few = all.iter().filter(|&&(_, _, j)| j <= 32);
    let mut claims = vec![
        always(data, "The fastest join takes four sessions", "4 T_l", never.chain(alone)),
        always(
            data,
            "Everybody joins within 145 sessions, where at most 32 join at once",
            "(project)",
            few.map(|&(n, k, j)| (join_name(n, k, j), Ring::AllJoined, 1.0)),
        ),
    ];
    let rising = |sentence: String, published: &str, of: [(u32, usize, u32); 3]| {
        data.claim(sentence, published).rising(of.map(|(n, k, j)| mean(n, k, j)))
    };
    if data.size() == Size::Quick {
        claims.push(rising(
            "Larger rings make room, more joiners take it".into(),
            "falls with n, rises with j",
            [(256, 3, 8), (64, 3, 8), (64, 3, 32)],
        ));
        return claims;
    }
    for j in [8, 32, 128] {
        let claim = rising(
            format!("{j} joiners: the larger the ring the sooner"),
            "falls with ring size (4096 is not run: a view of everybody by everybody)",
            [(1_024, 3, j), (256, 3, j), (64, 3, j)],
        );
        claims.push(if j == 8 { claim.missed(SAME_PLACES) } else { claim });
    }
    for n in [64, 256, 1_024] {
        let sentence = format!("A ring of {n}: the more joiners the later");
        claims.push(rising(sentence, "rises with j", [8, 32, 128].map(|j| (n, 3, j))));
    }
    let neighbours = [2, 3, 5].map(|k| (256, k, 32));
    claims.push(rising("The more neighbours the later".into(), "rises with k", neighbours));
    claims.push(
        data.claim("Eight joiners hardly meet in 1,024", "at most 4.3")
            .between(mean(1_024, 3, 8), 4.0, 4.3)
            .missed(SAME_PLACES),
    );
    claims
}

fn join_figure(data: &Table) -> Vec<Figure> {
    let all = joins(data.size());
    let mut kinds: Vec<(usize, u32)> = all.iter().map(|&(_, k, j)| (k, j)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let fastest = all.iter().map(|&(n, ..)| n).collect::<std::collections::BTreeSet<u32>>();
    let fastest = fastest.into_iter().map(|n| (f64::from(n), FASTEST));
    let mut series = vec![Series::analytic("fastest", 6, fastest)];
    for (colour, (k, j)) in kinds.into_iter().enumerate() {
        let rings = all.iter().filter(|one| (one.1, one.2) == (k, j));
        let cells = rings.map(|&(n, k, j)| (f64::from(n), join_name(n, k, j)));
        series.push(Series::cells(format!("k = {k}, {j} join"), colour, data, Ring::Mean, cells));
    }
    let title = "How long those take that join within 145 sessions";
    let axes = (Axis::log("members of the ring"), Axis::log("time to join, sessions"));
    vec![Figure::new("ahsan-fig-10", title, axes, series)]
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
        Value::count(Ring::Mean, summary.map(|one| one.mean)),
        Value::count(Ring::Quarter, rank(0.25)),
        Value::count(Ring::Median, rank(0.5)),
        Value::count(Ring::ThreeQuarters, rank(0.75)),
        Value::count(Ring::Least, sorted.first().copied()),
        Value::count(Ring::Most, sorted.last().copied()),
        Value::whether(
            Ring::Exact,
            sorted.first().is_some_and(|&one| one > 1.0 - 3.0 / *session as f64)
                && sorted.last().is_some_and(|&one| one <= 2.0),
        ),
        Value::whether(Ring::Literal, sorted.first().is_some_and(|&one| one >= 1.0)),
        Value::count(Ring::First, mean(ratios(&study.findings.first_suspected))),
        Value::count(Ring::Last, mean(ratios(&study.findings.last_suspected))),
        Value::count(Ring::Buried, late),
        Value::whether(Ring::BuriedInTime, late.is_some_and(|late| late < 4.5)),
        Value::count(Ring::Told, told),
        // Six hops of at most 50 ms.
        Value::whether(Ring::ToldInTime, told.is_some_and(|told| told < 4.5 + 0.3 / unit)),
        Value::count(Ring::Forced, study.findings.departed.len() as f64),
    ])
}

fn session_name(session: u64) -> String {
    format!("{session} ms")
}

fn detection_claims(data: &Table) -> Vec<Claim> {
    let of = |measure| SESSIONS.map(|session| data.estimate(session_name(session), measure).value);
    let within =
        |measure, low: f64, high: f64| of(measure).iter().all(|one| (low..=high).contains(one));
    let show = |measure| list(of(measure).map(short));
    let grace = data.size().pick(1.0, 4.0);
    let near = |measure, middle| within(measure, middle - 0.13 * grace, middle + 0.08 * grace);
    let means = of(Ring::Mean);
    let spread = means.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        - means.iter().copied().fold(f64::INFINITY, f64::min);
    vec![
        always(
            data,
            "Every monitor notices within (T_l - d, 2 T_l]",
            "[T_l, 2 T_l) as published, corrected by E1",
            SESSIONS.map(|session| (session_name(session), Ring::Exact, 1.0)),
        ),
        data.claim(
            "A monitor notices after one and a half sessions on average, whatever their length",
            "1.5",
        )
        .holds(
            show(Ring::Mean),
            within(Ring::Mean, 1.4 - 0.05 * grace, 1.5 + 0.05 * grace) && spread < 0.1 * grace,
        ),
        data.claim("Quartiles are near 1.25, 1.5 and 1.75", "± 0.08").holds(
            format!(
                "{}; {}; {}",
                show(Ring::Quarter),
                show(Ring::Median),
                show(Ring::ThreeQuarters)
            ),
            near(Ring::Quarter, 1.25) && near(Ring::Median, 1.5) && near(Ring::ThreeQuarters, 1.75),
        ),
        data.claim(
            "The first of six notices sooner, the last later, than the figure's mean",
            "about 1.14 and 1.86 (E3)",
        )
        .holds(
            format!("{}; {}", show(Ring::First), show(Ring::Last)),
            within(Ring::First, 0.9, 1.35) && within(Ring::Last, 1.65, 2.0),
        ),
    ]
}

fn detection_figure(data: &Table) -> Vec<Figure> {
    let ends = |sessions: f64| {
        [SESSIONS[0], SESSIONS[SESSIONS.len() - 1]].map(|session| (session as f64, sessions))
    };
    let drawn =
        [Ring::Most, Ring::ThreeQuarters, Ring::Median, Ring::Mean, Ring::Quarter, Ring::Least];
    let row = |(colour, measure): (usize, Ring)| {
        let cells = SESSIONS.map(|session| (session as f64, session_name(session)));
        Series::cells(measure.to_string(), colour, data, measure, cells)
    };
    let bounds = [("one and two sessions", 1.0), ("", 2.0)];
    let bounds = bounds.map(|(name, sessions)| Series::analytic(name, 6, ends(sessions)));
    let title = "How soon a monitor notices: quartiles, mean and extremes of a run";
    let axes = (Axis::log("session, ms"), Axis::linear("sessions from crash to suspicion"));
    let series = drawn.into_iter().enumerate().map(row).chain(bounds);
    vec![Figure::new("ahsan-fig-11", title, axes, series)]
}
