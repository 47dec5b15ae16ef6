//! Chapter 4: 60 nodes on 900 by 900 m for half an hour, everybody heard within a disc, nothing lost.

use bellwether_proto::{
    Duration,
    topology::{Graph, criterion::leaders},
};
use bellwether_sim::{
    run::{run, world},
    scenario::{Fault, FaultKind, Protocol, Scenario, Who},
};

use super::*;
use crate::scenarios::CENTRAL_FIELD;

const RIVALS: [Rival; 4] = [FD_TICK, FD_OPT, TA_D, TA_C];
const NAMES: [&str; 4] = ["fd-tick", "fd-opt", "TA-D", "TA-C"];

fn ranges(size: Size) -> &'static [u32] {
    size.pick(
        &[
            10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180, 190,
            200,
        ],
        &[10, 30, 60, 90, 120, 150, 200],
    )
}

/// Everybody walks from place to place, or starts from rings around the middle, goes somewhere and comes back.
const WAYPOINTS: &str = "random-waypoint";
const GATHERINGS: &str = "point-of-interest";

fn moving(cell: Cell, how: &str) -> Cell {
    cell.set("network.mobility.kind", how)
}

/// Topology Aware sends changes the less often the farther its radio reaches.
fn at_range(cell: Cell, rival: Rival, range: u32) -> Cell {
    let cell = set(cell, rival).set("network.placement.range", range);
    if rival.0.starts_with("TA") { cell.set("election.range", range) } else { cell }
}

fn sweep(how: &str, series: &'static str, size: Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &range in ranges(size) {
        cells.extend(RIVALS.map(|rival| {
            let cell = Cell::new(name(rival.0, range), CENTRAL_FIELD, runs(size));
            let cell = moving(cell, how).of(series).in_world(format!("{range} m"));
            at_range(seconds(cell, size.pick(1_800, 240)), rival, range)
        }));
    }
    cells
}

fn waypoints(size: Size) -> Vec<Cell> {
    sweep(WAYPOINTS, "favier-s4-rwp", size)
}

fn gatherings(size: Size) -> Vec<Cell> {
    sweep(GATHERINGS, "favier-s4-poi", size)
}

/// One range, watched on the way.
fn courses(how: &str, size: Size) -> Vec<Cell> {
    let cell = |rival: Rival| {
        let work = Computation::over("course", CENTRAL_FIELD, (), course);
        let cell = moving(Cell::computed(rival.0, work, runs(size)), how).in_world("90 m");
        at_range(seconds(cell, size.pick(1_800, 600)), rival, 90)
    };
    RIVALS.map(cell).into()
}

/// The last moment of a course.
fn end(data: &Table) -> u32 {
    data.size().pick(1_790, 590)
}

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "favier-fig-4.14",
            title: "How long nodes name the wrong leader, random waypoints",
            source: "thesis, figure 4.14",
            cells: waypoints,
            claims: |data| unsteady(data, [1.03, 1.4], true),
            figures: |data| swept(data, "favier-fig-4.14", Metric::Instability, WRONG),
        },
        Experiment {
            id: "favier-fig-4.15",
            title: "How long nodes name the wrong leader, gatherings",
            source: "thesis, figure 4.15",
            cells: gatherings,
            claims: |data| unsteady(data, [1.03, 1.3], false),
            figures: |data| swept(data, "favier-fig-4.15", Metric::Instability, WRONG),
        },
        Experiment {
            id: "favier-fig-4.16",
            title: "The same as time goes by, random waypoints, 90 m",
            source: "thesis, figure 4.16",
            cells: |size| courses(WAYPOINTS, size),
            claims: waypoint_course,
            figures: |data| {
                course_figure(data, "favier-fig-4.16", "Random waypoints, 90 m", &NAMES, end(data))
            },
        },
        Experiment {
            id: "favier-fig-4.17",
            title: "The same as time goes by, gatherings, 90 m",
            source: "thesis, figure 4.17",
            cells: |size| courses(GATHERINGS, size),
            claims: gathering_course,
            figures: |data| {
                course_figure(data, "favier-fig-4.17", "Gatherings, 90 m", &NAMES, end(data))
            },
        },
        Experiment {
            id: "favier-fig-4.18",
            title: "Messages a second, random waypoints",
            source: "thesis, figure 4.18",
            cells: waypoints,
            claims: message_claims,
            figures: |data| {
                swept(data, "favier-fig-4.18", Metric::MessageRate, "messages a second, all nodes")
            },
        },
        Experiment {
            id: "favier-fig-4.19",
            title: "Messages a second, gatherings: silence while nobody moves",
            source: "thesis, figure 4.19",
            cells: standing_still,
            claims: silence_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "favier-tab-4.1",
            title: "Sizes of messages",
            source: "thesis, table 4.1",
            cells: waypoints,
            claims: size_claims,
            figures: |data| {
                swept(data, "favier-tab-4.1", Metric::MeanModelBytes, "bytes a message")
            },
        },
        Experiment {
            id: "favier-fig-4.20",
            title: "How far the leader is, random waypoints",
            source: "thesis, figure 4.20",
            cells: waypoints,
            claims: |data| path_claims(data, false),
            figures: |data| swept(data, "favier-fig-4.20", Metric::RelativePath, PATH),
        },
        Experiment {
            id: "favier-fig-4.21",
            title: "How far the leader is, gatherings",
            source: "thesis, figure 4.21",
            cells: gatherings,
            claims: |data| path_claims(data, true),
            figures: |data| swept(data, "favier-fig-4.21", Metric::RelativePath, PATH),
        },
        Experiment {
            id: "favier-tab-4.2",
            title: "How long it takes to replace a leader that crashes",
            source: "thesis, table 4.2",
            cells: crashes,
            claims: crash_claims,
            figures: |_| Vec::new(),
        },
    ]
}

const PATH: &str = "longest way to the leader, by diameter";

fn swept(data: &Table, id: &str, metric: Metric, label: &str) -> Vec<Figure> {
    figure(data, id, (metric, label), &NAMES, ranges(data.size()))
}

fn from(data: &Table, least: u32) -> impl Iterator<Item = u32> + use<> {
    ranges(data.size()).iter().copied().filter(move |&range| range >= least)
}

/// Figures 4.14 and 4.15.
fn unsteady(data: &Table, [tick, opt]: [f64; 2], waypoints: bool) -> Vec<Claim> {
    let mean = |rival| over(data, rival, Metric::Instability, from(data, 30));
    let [fd_tick, fd_opt, degree, closeness] = NAMES.map(mean);
    let published = if waypoints { "1.55" } else { "1.82" };
    let mut claims = vec![
        data.claim("Flooding on the leader's tick is wrong longer than TA-D, ratio", published)
            .at_least(fd_tick / degree, tick),
        data.claim("Flooding of changes only, ratio", published).at_least(fd_opt / degree, opt),
    ];
    if waypoints {
        claims.push(
            data.claim("TA-C is about as steady as TA-D, wrong longer, ratio", "slightly worse")
                .between(closeness / degree, 0.9, 1.45),
        );
        let at = |range| data.estimate(name("TA-D", range), Metric::Instability);
        claims.push(
            data.claim("How long TA-D is wrong at 30 m by 120 m", "rises, flattens from 120 m")
                .at_most(at(30) / at(120), 0.333),
        );
    }
    claims
}

/// From some time on a rival has been wrong longer than TA-D.
fn wrong_longer(data: &Table, rival: &str, from: u32, sentence: &str, published: &str) -> Claim {
    let each = moments(from, end(data)).map(|at| until(data, rival, at) / until(data, "TA-D", at));
    let least = least(each).value;
    data.claim(sentence, published).holds(format!("at least {least:.3} times as long"), least > 1.0)
}

fn waypoint_course(data: &Table) -> Vec<Claim> {
    let settled = end(data) / 3 + 3;
    let above = |rival: &str| {
        let sentence = format!("From 300 s on {rival} has been wrong longer than TA-D");
        wrong_longer(data, rival, 300, &sentence, "TA-D 62% more stable")
    };
    let flat = |rival| {
        let last = until(data, rival, end(data)).value;
        let off = moments(settled - settled % 10, end(data))
            .map(|at| Estimate::exact((until(data, rival, at).value / last - 1.0).abs() * -100.0));
        least(off) * -1.0
    };
    vec![
        above("fd-tick"),
        above("fd-opt"),
        data.claim("How far running means are off the last from a third of the run on", "flat")
            .percent()
            .at_most(NAMES.map(flat), 20.0),
        data.claim("Components", "18").between(
            data.estimate("TA-D", Metric::Components),
            15.0,
            21.0,
        ),
    ]
}

fn gathering_course(data: &Table) -> Vec<Claim> {
    let falls = |rival, start: &str| {
        let (first, last) = (until(data, rival, 10), until(data, rival, end(data)));
        data.claim(format!("{rival} is wrong most in the beginning"), start)
            .holds(format!("{first} until 10 s, {last} in all"), first.value > last.value)
            .missed("nodes on their rings agree within half a second of their first beacons")
    };
    let rises = |rival| {
        let [still, away] = [10, 60].map(|at| until(data, rival, at));
        data.claim(
            format!("{rival} is wrong more once nodes disperse"),
            "rises after each dispersal",
        )
        .holds(format!("{still} until 10 s, {away} until 60 s"), away.value > still.value)
    };
    let better = |rival: &str| {
        let sentence =
            format!("After the second gathering {rival} has been wrong longer than TA-D");
        wrong_longer(data, rival, 400, &sentence, "TA 79% better")
    };
    vec![
        falls("TA-D", "41%"),
        falls("TA-C", "69%"),
        rises("fd-tick"),
        rises("fd-opt"),
        better("fd-tick"),
        better("fd-opt"),
    ]
}

fn message_claims(data: &Table) -> Vec<Claim> {
    let at = |rival: &str, range| data.estimate(name(rival, range), Metric::MessageRate);
    let ranges = || ranges(data.size()).iter().copied();
    let few = |fd: &str| {
        let near = ranges().filter(|&range| range <= 30);
        data.claim(
            format!("How many times as much as TA {fd} sends up to 30 m"),
            "high at low range",
        )
        .digits(1)
        .at_least(least(near.map(|range| at(fd, range) / at("TA-D", range))), 5.0)
    };
    let lowest = crate::estimate::least(ranges().map(|range| (range, at("fd-opt", range))));
    let (dip, rate) = lowest.unwrap_or((0, Estimate::NOTHING));
    let most = at("TA-D", 200) / at("fd-tick", 200);
    let sent = |rival: &str, range| data.estimate(name(rival, range), Metric::Messages);
    vec![
        few("fd-tick"),
        few("fd-opt"),
        data
            .claim("TA grows no more from 150 to 200 m, ratio", "flattens from 130 m")
            .between(at("TA-D", 200) / at("TA-D", 150), 0.8, 1.25),
        data
            .claim("fd-opt sends least between 50 and 110 m", "dips")
            .holds(format!("{rate:.0}/s at {dip} m"), rate.is_there() && (50..=110).contains(&dip)),
        data.claim("By what TA judges changes no message", "(P8)").holds(
            "equal at all ranges",
            ranges().all(|range| sent("TA-C", range) == sent("TA-D", range)),
        ),
        data
            .claim("Overall TA sends half as much as flooding", "\"half as many\"")
            .holds(
                format!("at 200 m TA sends {most} times as much as fd-tick"),
                most.value <= 0.5,
            )
            .missed("holds at short range only (E17): every change reaches everybody, and large components change often"),
    ]
}

fn still_name(rival: &str, seconds: u32) -> String {
    format!("{rival} {seconds} s")
}

/// All are back on their rings for the first ten seconds.
fn standing_still(size: Size) -> Vec<Cell> {
    let cell = |rival: Rival, length| {
        let cell = Cell::new(still_name(rival.0, length), CENTRAL_FIELD, runs(size));
        let cell = moving(cell, GATHERINGS).in_world("still");
        at_range(seconds(cell, length), rival, 90)
    };
    RIVALS.into_iter().flat_map(|rival| [5, 10].map(|length| cell(rival, length))).collect()
}

fn silence_claims(data: &Table) -> Vec<Claim> {
    let sent = |rival: &str, seconds| {
        data.estimate(still_name(rival, seconds), Metric::MessageRate).value * f64::from(seconds)
    };
    let claim = |rival: &'static str, sentence: &str, fits: fn(f64) -> bool| {
        let more = sent(rival, 10) - sent(rival, 5);
        data.claim(format!("{rival} {sentence}"), "silent when static")
            .holds(format!("{more:.1} messages"), fits(more))
    };
    let silent = "says nothing from 5 to 10 s, while nobody moves";
    vec![
        claim("TA-D", silent, |more| more.abs() < 1e-6),
        claim("TA-C", silent, |more| more.abs() < 1e-6),
        claim("fd-tick", "goes on", |more| more > 1.0),
        claim("fd-opt", "goes on", |more| more > 1.0),
    ]
}

fn size_claims(data: &Table) -> Vec<Claim> {
    let bytes = |rival: &str, range| data.estimate(name(rival, range), Metric::MeanModelBytes);
    let ranges = ranges(data.size());
    let flat = bytes("fd-tick", ranges[0]).value;
    // From where there are components to speak of; a lone node says next to nothing.
    let wide: Vec<u32> = from(data, 30).collect();
    let ends = [wide[0], wide[wide.len() - 1]].map(|range| bytes("TA-D", range));
    let times = wide.iter().map(|&range| bytes("TA-D", range) / bytes("fd-tick", range));
    vec![
        data.claim("Flooding's messages are all of one size", "196 B").holds(
            format!("{flat} B"),
            ranges.iter().all(|&range| bytes("fd-tick", range).value == flat),
        ),
        data
            .claim("TA's grow with the range", "705 to 1,284 B")
            .showing(format!("{} to {} B", ends[0], ends[1]))
            .rising(ends)
            .missed(
                "maps never forget (E11), so that after a while they are as long at short range; with the range the \
                 share of short updates grows",
            ),
        data
            .claim("How many times as long they are, from 30 m on", "3.6 to 6.6 times")
            .digits(2)
            .at_least(least(times), 3.0),
        data.claim("By what TA judges changes no size", "24 to 27 B apart, unexplained").holds(
            "equal at all ranges",
            ranges.iter().all(|&range| bytes("TA-C", range) == bytes("TA-D", range)),
        ),
    ]
}

fn path_claims(data: &Table, gathering: bool) -> Vec<Claim> {
    let least = if gathering { 30 } else { 90 };
    let mean = |rival| over(data, rival, Metric::RelativePath, from(data, least));
    let [fd, _, degree, closeness] = NAMES.map(mean);
    let (best, than, published) = match gathering {
        true => (closeness / fd, "flooding's", "11% better"),
        false => (closeness / degree, "TA-D's", "best as range grows"),
    };
    vec![
        data
            .claim(format!("TA-C's leaders are nearer than {than}, ratio"), published)
            .at_most(best, 0.98)
            .missed_at(
                if gathering { FULL } else { &[] },
                "a gathered crowd all hear each other, so that any leader is as near; what is left falls short of 2% by a \
                 tenth, and passes it if ranges below 30 m are counted (0.978)",
            ),
        data.claim("TA-D's are as far as flooding's, ratio", "alike").between(degree / fd, 0.95, 1.05),
    ]
}

/// Nobody moves.
fn crashes(size: Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &range in ranges(size) {
        cells.extend(RIVALS.map(|rival| {
            let work = Computation::over("central crash", CENTRAL_FIELD, range, crash);
            let cell = Cell::computed(name(rival.0, range), work, size.pick(20, 4));
            at_range(seconds(cell.in_world(format!("{range} m")), 12), rival, range)
        }));
    }
    cells
}

measure!(
    /// How long it took to replace the leader, in milliseconds.
    Replaced() = "ms"
);

/// The leader of the largest component crashes at six seconds.
fn crash(scenario: &Scenario, range: &u32, seed: u64) -> Found {
    let movement = world::movement(scenario, seed)?.ok_or("nobody stands anywhere")?;
    let near = movement.neighbours(f64::from(*range), 0.0);
    let links = near.iter().zip(0..).flat_map(|(near, a)| near.iter().map(move |&b| (a, b)));
    let graph = Graph::with_links(near.len(), links);
    let component = graph.components();
    let members = |root: u32| component.iter().filter(|&&one| one == root).count();
    let largest = component.iter().copied().max_by_key(|&root| (members(root), root));
    let Protocol::Central(config) = scenario.protocol else {
        return Err("no central election".into());
    };
    let leaders = leaders(&graph, config.criterion());
    let leader = largest.map(|root| leaders[root as usize]).ok_or("nobody")?;
    let fault = Fault {
        at: Duration::from_secs(6),
        spread: Duration::ZERO,
        every: None,
        until: None,
        kind: FaultKind::Crash(Who::Nodes(vec![leader])),
    };
    let scenario = Scenario { faults: vec![fault], ..scenario.clone() };
    let outcome = run(&scenario, seed)?;
    let took = outcome.value(Metric::CrashElectionTime);
    Ok(vec![Value::count(Replaced(), took.map(|seconds| 1e3 * seconds))])
}

fn crash_claims(data: &Table) -> Vec<Claim> {
    // Where hardly anybody has a neighbour, nobody survives to elect.
    let mean = |rival| over(data, rival, Replaced(), from(data, 60));
    let [fd, _, degree, closeness] = NAMES.map(mean);
    vec![
        data.claim("How many ms flooding takes", "422 ms").between(fd, 250.0, 600.0),
        data.claim("TA-D takes longer, ratio", "1.94").between(degree / fd, 1.1, 2.5),
        data.claim("How many ms TA takes (TA-D, TA-C)", "820 and 731 ms")
            .at_most([degree, closeness], 1_000.0),
        data.claim("TA-C takes about as long as TA-D, ratio", "0.89")
            .at_most(closeness / degree, 1.1),
    ]
}
