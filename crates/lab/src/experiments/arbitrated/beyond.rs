//! What the paper does not show: runs of crashes, partitions, split votes, upgrades that collide, and the leader.

use bellwether_proto::{
    Boot, Duration, Incarnation, NodeId, Peer, Time,
    membership::ring::{
        self,
        arbiter::{Rules, Seat},
    },
};
use bellwether_sim::{
    run::run as run_scenario,
    scenario::{FaultKind, Scenario},
};

use super::{
    super::bounded, RING, always, at, crash, cut, draws, fault, ms, published::runs, run, shown,
    whether,
};
use crate::{
    claim::{Claim, Verdict, short},
    computation::{Computation, Found, Value},
    experiment::{Cell, Experiment, Size},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    let one = |id, title, cells, claims| Experiment {
        id,
        title,
        source: "project: what the arbitration paper leaves open",
        cells,
        claims,
        figures: |_| Vec::new(),
    };
    vec![
        one("ahsan-x-run", "Neighbours crash in a row", run_cells, run_claims),
        one("ahsan-x-part", "An arc of the ring is cut off", part_cells, part_claims),
        one("ahsan-x-split", "Two accuse each other at once", split_cells, split_claims),
        one(
            "ahsan-x-upgrade",
            "Both ends of a pair propose at once",
            upgrade_cells,
            upgrade_claims,
        ),
        one("ahsan-x-leader", "The leased leader under all faults", leader_cells, leader_claims),
    ]
}

fn hardened(cell: Cell) -> Cell {
    cell.set("membership.form", "hardened").set("membership.rejoin", false)
}

fn run_cells(size: Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for k in [2_u32, 3] {
        for (form, most) in [("as-published", k + 1), ("hardened", 2 * k + 1)] {
            for length in k..=most {
                let work = Computation::over("ring row", RING, length, row);
                let cell =
                    Cell::computed(format!("{form} k={k} run={length}"), work, runs(size, 10, 1))
                        .set("network.nodes", 48)
                        .set("membership.neighbours", k)
                        .set("duration", "60s");
                cells.push(if form == "hardened" {
                    hardened(cell).set("membership.neighbours", k)
                } else {
                    cell
                });
            }
        }
    }
    cells
}

fn row(scenario: &Scenario, length: &u32, seed: u64) -> Found {
    let first = draws(seed).below(48) as u32;
    let victims = (0..*length).map(|at| (first + at) % 48).collect();
    let study = run(scenario, vec![crash(ms(6_000), victims)], seed)?;
    let lost = 48 - *length as usize - study.active.len();
    Ok(vec![
        Value::count("survivors", study.active.len() as f64),
        Value::count("lost besides", lost as f64),
    ])
}

fn run_claims(table: &Table) -> Vec<Claim> {
    let cells = |form: &'static str, lengths: fn(u32) -> std::ops::RangeInclusive<u32>| {
        [2_u32, 3]
            .into_iter()
            .flat_map(move |k| lengths(k).map(move |run| format!("{form} k={k} run={run}")))
    };
    vec![
        always(
            table,
            "As published a row of k costs nobody else its place",
            "membership lists remain available under any number of failures",
            cells("as-published", |k| k..=k).map(|cell| (cell, "lost besides", 0.0)),
        ),
        always(
            table,
            "One more dissolves the whole ring, whatever the paper says",
            "the same; S5",
            cells("as-published", |k| k + 1..=k + 1).map(|cell| (cell, "survivors", 0.0)),
        ),
        always(
            table,
            "2k + 2 far arbitrators bear rows of up to 2k + 1",
            "(project, R15)",
            cells("hardened", |k| k..=2 * k + 1).map(|cell| (cell, "lost besides", 0.0)),
        ),
    ]
}

const ARCS: [u32; 6] = [1, 3, 4, 12, 20, 24];

fn part_cells(size: Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (form, far) in PARTS {
        for arc in ARCS {
            if size == Size::Quick && form != "as-published" && arc != 12 {
                continue;
            }
            let work = Computation::over("ring parted", RING, arc, parted);
            let cell = Cell::computed(format!("{form} arc={arc}"), work, runs(size, 10, 1))
                .set("network.nodes", 48)
                .set("duration", "80s");
            let cell =
                if far.is_empty() { cell } else { hardened(cell).set("membership.far", far) };
            cells.push(cell);
        }
    }
    cells
}

const PARTS: [(&str, &str); 4] =
    [("as-published", ""), ("far(8)", "8"), ("far(16)", "16"), ("everybody", "\"everybody\"")];

fn parted(scenario: &Scenario, arc: &u32, seed: u64) -> Found {
    let inside: Vec<u32> = (0..*arc).collect();
    let faults = vec![fault(ms(6_000), FaultKind::Partition(vec![inside]))];
    let study = run(scenario, faults, seed)?;
    let within = study.active.iter().filter(|id| id.get() < u64::from(*arc)).count();
    let outside = study.active.len() - within;
    Ok(vec![
        Value::count("within", within as f64),
        Value::count("outside", outside as f64),
        whether("majority whole", outside == 48 - *arc as usize),
        Value::count("violations", study.outcome.violations.len() as f64),
    ])
}

fn part_claims(table: &Table) -> Vec<Claim> {
    let published = |arc: u32, outside: f64| {
        let cell = format!("as-published arc={arc}");
        [(cell.clone(), "within", 0.0), (cell, "outside", outside)]
    };
    let mut claims = vec![
        always(
            table,
            "As published an arc of up to k goes, and the rest stays",
            "(prose only)",
            [published(1, 47.0), published(3, 45.0)].concat(),
        ),
        always(
            table,
            "A longer one takes everybody along",
            "eventually everyone leaves",
            [published(4, 0.0), published(12, 0.0), published(24, 0.0)].concat(),
        ),
    ];
    if table.size() == Size::Full {
        let everybody = |arc: u32, outside: f64| {
            let cell = format!("everybody arc={arc}");
            [(cell.clone(), "within", 0.0), (cell, "outside", outside)]
        };
        claims.push(always(
            table,
            "Where everybody arbitrates the majority stays whole, and nobody of the minority",
            "(project, R15)",
            [everybody(4, 44.0), everybody(12, 36.0), everybody(20, 28.0), everybody(24, 0.0)]
                .concat(),
        ));
        let whole = |cell: &str| shown(at(table, cell, "majority whole"));
        let kept =
            |cell: &str| at(table, cell, "majority whole").is_some_and(|one| one.value == 1.0);
        claims.push(Claim::holds(
            "Eight far arbitrators bear an arc of 12 and not one of 20",
            "model, two seeds a cell: 12 but not 20",
            format!(
                "12 in {}, 20 in {} of the runs",
                whole("far(8) arc=12"),
                whole("far(8) arc=20")
            ),
            kept("far(8) arc=12") && !kept("far(8) arc=20"),
        ));
        claims.push(
            Claim::holds(
                "Sixteen bear one of 20",
                "model, two seeds: yes",
                format!("in {} of the runs", whole("far(16) arc=20")),
                kept("far(16) arc=20"),
            )
            .on_record(
                Verdict::NotReproduced,
                "for some pair too many of those drawn sit on the other side, and one forced departure begins a row; the model had two seeds and groups that changed at once",
            ),
        );
    } else {
        claims.push(always(
            table,
            "Where everybody arbitrates the majority stays whole",
            "(project, R15)",
            [
                ("everybody arc=12".into(), "within", 0.0),
                ("everybody arc=12".into(), "outside", 36.0),
            ],
        ));
    }
    claims
}

const PHASES: [&str; 3] = ["locked", "random", "half"];

fn split_cells(size: Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for distance in 1..=3_u32 {
        for phase in PHASES {
            cells.push(
                split(size, &format!("{phase} d={distance}"), distance)
                    .set("membership.phase", phase),
            );
        }
        let cell = split(size, &format!("concede d={distance}"), distance);
        cells.push(hardened(cell).set("membership.phase", "locked").set("membership.far", 0));
    }
    cells
}

fn split(size: Size, name: &str, distance: u32) -> Cell {
    let work = Computation::over("ring split vote", RING, distance, split_vote);
    Cell::computed(name, work, runs(size, 800, 40))
        .set("network.nodes", 20)
        .set("network.delay", "{ kind = \"uniform\", low = \"0ms\", high = \"50ms\" }")
        .set("duration", "12s")
}

fn split_vote(scenario: &Scenario, distance: &u32, seed: u64) -> Found {
    let mut rng = draws(seed);
    let one = rng.below(20) as u32;
    let when = ms(6_000) + Duration::from_micros(rng.below(1_000_000));
    let study = run(scenario, vec![cut(when, one, (one + distance) % 20)], seed)?;
    let lost = |node: u32| study.findings.departed.iter().any(|one| one.1.get() == u64::from(node));
    let other = (one + distance) % 20;
    Ok(vec![
        whether("both lost", lost(one) && lost(other)),
        whether("one lost", lost(one) != lost(other)),
        Value::count("violations", study.outcome.violations.len() as f64),
    ])
}

fn split_claims(table: &Table) -> Vec<Claim> {
    let both = |cell: String| at(table, &cell, "both lost");
    let show = |names: &[String]| {
        let one =
            |cell: &String| both(cell.clone()).map_or("nothing".into(), |one| short(one.value));
        names.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let mut claims = vec![
        always(
            table,
            "Half a session apart, and at distance 2, nobody loses for nothing",
            "0",
            [1, 2, 3]
                .into_iter()
                .map(|d| (format!("half d={d}"), "both lost", 0.0))
                .chain(PHASES.map(|phase| (format!("{phase} d=2"), "both lost", 0.0))),
        ),
        always(
            table,
            "With concessions exactly one of the two stays, whatever the phase",
            "(project, L1)",
            [1, 2, 3].map(|d| (format!("concede d={d}"), "one lost", 1.0)),
        ),
    ];
    if table.size() == Size::Full {
        for d in [1, 3] {
            let names = [format!("locked d={d}"), format!("random d={d}")];
            let values = names.clone().map(&both);
            claims.push(Claim::holds(
                format!("At distance {d} leases born together lose both three times as often as any others"),
                "model: 8.75 and 0.25% at distance 1, 4.75 and 0.75% at 3",
                show(&names),
                matches!(values, [Some(locked), Some(random)]
                    if locked.value > 0.0 && locked.value >= 3.0 * random.value),
            ));
        }
    }
    claims
}

fn upgrade_cells(size: Size) -> Vec<Cell> {
    let cell = |(name, short, joint): (&str, bool, bool)| {
        let work = Computation::over("ring removal", RING, (), removal);
        let cell = Cell::computed(name, work, runs(size, 60, 5)).set("duration", "110s");
        let cell = if short {
            cell.set("membership.retry", "{ least = \"500ms\", most = \"1s\" }")
        } else {
            cell
        };
        if joint { cell.set("membership.upgrade", "joint") } else { cell }
    };
    let work = Computation::new("ring proposals at seats", 8_usize, collide);
    let seats = Cell::computed("seats", work, runs(size, 1_000, 200));
    vec![
        cell(("short", true, false)),
        cell(("long", false, false)),
        cell(("joint", false, true)),
        seats,
    ]
}

/// Both ends of a pair propose at the same instant to the arbitrators that ship, and again after 0.5 to 1 s while they
/// are refused: whether both have succeeded after 80 `T_arb`.
fn collide(seats: &usize, seed: u64) -> Found {
    let config = ring::Config::as_published();
    let life = |node| ring::Life {
        peer: Peer::new(NodeId::new(node), Boot::new(1)),
        inc: Incarnation::default(),
    };
    let rules = Rules { config: &config, me: life(7), up_since: Time::ZERO };
    let mut rng = draws(seed);
    let mut arbiters = vec![Seat::default(); *seats];
    let members: Vec<ring::Life> = (0..*seats as u64).map(life).collect();
    let mut version = [0_u32; 2];
    let mut next = [ms(10_000); 2];
    let mut done = [false; 2];
    let end = ms(10_000) + config.t_arb() * 80;
    while !(done[0] && done[1]) && next.iter().any(|&at| at < end) {
        // Proposals of one instant arrive in any order; others one after the other.
        let first = next[0].min(next[1]);
        let both: Vec<usize> =
            (0..2).filter(|&side| !done[side] && next[side] < first + ms(20)).collect();
        let mut granted = [0; 2];
        for seat in &mut arbiters {
            let mut arrivals: Vec<(Duration, usize)> =
                both.iter().map(|&side| (next[side] + ms(5) + rng.up_to(ms(15)), side)).collect();
            arrivals.sort_unstable();
            for (when, side) in arrivals {
                let group = |low, high| ring::Group {
                    born: 0,
                    version: ring::Version { low, high },
                    members: members.clone(),
                };
                let base = group(version[0], version[1]);
                let raised = |of: usize| version[of] + u32::from(of == side);
                let proposed = group(raised(0), raised(1));
                let accepted = seat.propose(Time::ZERO + when, side, (&base, &proposed), rules);
                granted[side] += usize::from(accepted);
            }
        }
        for side in both {
            if granted[side] > *seats / 2 {
                version[side] += 1;
                done[side] = true;
                next[side] = Duration::MAX;
            } else {
                next[side] = next[side] + ms(500) + rng.up_to(ms(500));
            }
        }
    }
    Ok(vec![whether("never", !(done[0] && done[1]))])
}

/// One member dies: `3k(k - 1)/2 = 9` pairs have two that propose.
fn removal(scenario: &Scenario, (): &(), seed: u64) -> Found {
    let victim = draws(seed).below(32) as u32;
    let study = run(scenario, vec![crash(ms(6_000), vec![victim])], seed)?;
    let members = study.active.len() as f64;
    let stale = study.stale * members * 6.0 / 2.0;
    Ok(vec![
        Value::count("stale pairs", stale),
        Value::ratio("stale", stale / 9.0),
        Value::count("upgrade messages", study.findings.upgrades as f64),
        Value::count("survivors", members),
    ])
}

fn upgrade_claims(table: &Table) -> Vec<Claim> {
    let stale = |cell: &str| at(table, cell, "stale");
    let never = at(table, "seats", "never");
    vec![
        bounded(
            table,
            "Proposals of one instant, made again within T_arb, may block each other for good",
            "20% or more of the pairs; model 23 to 31%",
            never,
            0.2,
            0.4,
        ),
        Claim::holds(
            "In a ring that removes a member they are hardly ever of one instant",
            "(project)",
            format!(
                "unfinished {}; with back-off of T_arb or more {}",
                shown(stale("short")),
                shown(stale("long"))
            ),
            stale("short").is_some_and(|one| one.value < 0.2),
        ),
        always(
            table,
            "With one proposer to a pair all finish",
            "(project, R7h)",
            [("joint".into(), "stale pairs", 0.0), ("joint".into(), "survivors", 31.0)],
        ),
    ]
}

/// A ring of nine under everything at once, within the bound on drift.
const HOSTILE: &str = r#"
    name = "leased leader, hostile"
    duration = "36s"
    [network]
    nodes = 9
    start_spread = "1s"
    delay = { kind = "uniform", low = "1ms", high = "60ms" }
    [membership]
    kind = "ring"
    neighbours = 2
    drift = 10000
    [election]
    kind = "leased"
"#;

const FLAVOURS: [&str; 3] = ["quorum", "conservative", "fast"];

fn leader_cells(size: Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for flavour in FLAVOURS {
        let hostile = |name: &str, trouble: Trouble, count: u64| {
            let work = Computation::over("leased leader", HOSTILE, trouble, lead);
            Cell::computed(format!("{name} {flavour}"), work, count)
                .set("election.flavour", flavour)
        };
        cells.push(hostile("hostile", Trouble::Everything, runs(size, 3_400, 40)));
        // The bound is for clocks that need no allowance.
        let crash = hostile("crash", Trouble::Crash, runs(size, 400, 15));
        cells.push(crash.set("membership.drift", 0));
        if flavour != "conservative" {
            cells.push(
                hostile("no wait", Trouble::Everything, runs(size, 200, 20))
                    .set("election.waits", false),
            );
        }
    }
    for (name, allowed) in [("slow clock allowed for", 200_000), ("slow clock", 0)] {
        let work = Computation::over("leased leader", HOSTILE, Trouble::SlowLeader, lead);
        let cell = Cell::computed(name, work, runs(size, 600, 60));
        cells.push(cell.set("election.flavour", "fast").set("membership.drift", allowed));
    }
    cells
}

#[derive(Clone, Copy, Debug, Hash)]
enum Trouble {
    Everything,
    Crash,
    SlowLeader,
}

fn lead(scenario: &Scenario, trouble: &Trouble, seed: u64) -> Found {
    use bellwether_sim::scenario::{State, Who};
    let mut rng = draws(seed);
    let mut when =
        |from: u64, spread: u64| ms(from) + Duration::from_micros(rng.below(spread * 1_000));
    let mut faults = Vec::new();
    match trouble {
        Trouble::Crash => faults.push(fault(when(8_000, 3_000), FaultKind::Crash(Who::Leader))),
        Trouble::SlowLeader => {
            let fast = FaultKind::Drift { who: Who::All, ppm: 200_000 };
            faults.push(fault(ms(7_000), fast));
            faults.push(fault(ms(7_001), FaultKind::Drift { who: Who::Leader, ppm: -200_000 }));
            // Now and then a request of a neighbour is lost while the leader's own leases are renewed.
            let loss = FaultKind::Loss { rate: 0.01, length: ms(20_000) };
            faults.push(fault(when(8_000, 1_000), loss));
        }
        Trouble::Everything => {
            let half = FaultKind::Drift { who: Who::Fraction(0.5), ppm: 10_000 };
            faults.push(fault(ms(2_000), half));
            let slow = FaultKind::Drift { who: Who::Fraction(0.3), ppm: -10_000 };
            faults.push(fault(ms(2_500), slow));
            let pause = |who, millis| FaultKind::Pause { who, length: ms(millis), buffer: 166 };
            let sever = |from, to, millis| FaultKind::Cut {
                from: Some(from),
                to: Some(to),
                both: true,
                length: Some(ms(millis)),
            };
            faults.push(fault(when(6_000, 4_000), pause(Who::Leader, 2_600)));
            faults.push(fault(when(10_000, 6_000), sever(Who::Leader, Who::Fraction(0.6), 5_000)));
            faults.push(fault(when(12_000, 8_000), sever(Who::Count(1), Who::Count(3), 4_000)));
            faults.push(fault(when(16_000, 6_000), FaultKind::Crash(Who::Leader)));
            let back = FaultKind::Recover { who: Who::All, state: State::Lost };
            faults.push(fault(when(23_000, 3_000), back));
            faults.push(fault(when(24_000, 6_000), pause(Who::Count(2), 3_000)));
            faults
                .push(fault(when(20_000, 4_000), FaultKind::Loss { rate: 0.1, length: ms(3_000) }));
        }
    }
    let scenario = Scenario { faults, ..scenario.clone() };
    let outcome = run_scenario(&scenario, seed)?;
    let value = |name: &str| {
        let found = outcome.values.iter().find(|(metric, _)| metric.name() == name);
        found.and_then(|(_, value)| *value)
    };
    let fail_over = value("fail_over");
    let gap = value("smallest_gap");
    Ok(vec![
        Value::count("violations", outcome.violations.len() as f64),
        whether("overlap", value("lease_overlap").is_some_and(|overlap| overlap > 0.0)),
        Value::count("gap", gap),
        // 4 T_l + T_a and one round trip of 120 ms.
        whether("in time", fail_over.is_some_and(|took| took < 4.62)),
        Value::count("fail-over", fail_over),
        whether("gap is positive", gap.is_some_and(|gap| gap > 0.0)),
        whether("followed", gap.is_some()),
    ])
}

fn leader_claims(table: &Table) -> Vec<Claim> {
    let each = |name: &'static str, metric: &'static str, value: f64| {
        FLAVOURS.map(move |flavour| (format!("{name} {flavour}"), metric, value))
    };
    let gaps = FLAVOURS.map(|flavour| at(table, &format!("hostile {flavour}"), "gap"));
    let fail_overs: Vec<String> = FLAVOURS
        .map(|flavour| {
            format!("{flavour} {}", shown(at(table, &format!("crash {flavour}"), "fail-over")))
        })
        .into();
    let overlap = |cell: &str| at(table, cell, "overlap");
    let caught = |cell: &str| overlap(cell).is_some_and(|one| one.value > 0.0);
    let broken = at(table, "slow clock", "violations");
    vec![
        always(
            table,
            "Never are two leaders valid at one instant",
            "0 (project, S3)",
            each("hostile", "overlap", 0.0),
        ),
        always(
            table,
            "Nor is anything else broken",
            "0 (project)",
            each("hostile", "violations", 0.0),
        ),
        Claim::holds(
            "From one leader's last act to the next one's first there is time",
            "positive in every run",
            format!("{} s on average", gaps.map(shown).join(", ")),
            FLAVOURS.iter().all(|flavour| {
                let share = |metric| at(table, &format!("hostile {flavour}"), metric);
                let (positive, followed) = (share("gap is positive"), share("followed"));
                positive.is_some() && positive == followed
            }),
        ),
        always(
            table,
            format!(
                "After a crash another leads within 4 T_l + T_a and a round trip ({} s)",
                fail_overs.join(", ")
            ),
            "below 4.62 s in every run (project)",
            each("crash", "in time", 1.0),
        ),
        Claim::holds(
            "Without the wait two are valid at once; with clocks worse than allowed for the living are buried",
            "found",
            format!(
                "overlaps without the wait in {} (quorum) and {} (fast) of the runs; with clocks 20% off broken in {}, overlaps in {}",
                shown(overlap("no wait quorum")),
                shown(overlap("no wait fast")),
                shown(broken),
                shown(overlap("slow clock"))
            ),
            caught("no wait quorum")
                && caught("no wait fast")
                && broken.is_some_and(|one| one.value > 0.0),
        ),
        always(
            table,
            "With the factor (1 + rho)/(1 - rho) the same clocks do no harm",
            "(project, R11.8)",
            [
                ("slow clock allowed for".into(), "overlap", 0.0),
                ("slow clock allowed for".into(), "violations", 0.0),
            ],
        ),
    ]
}
