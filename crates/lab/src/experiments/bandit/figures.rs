//! Table 1, Figures 2 to 8, Lemma 7.1.

use bellwether_proto::{Seed, election::bandit::Policy};
use bellwether_sim::world::environment::Machines;

use super::*;
use crate::{computation::Value, measure::measure};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "ble-tab-1",
            title: "Machines are drawn as Table 1 says",
            source: "bandit report, Table 1",
            cells: |_| {
                let draw = Computation::new("table 1", 100_000_usize, draw_machines);
                vec![Cell::computed("100000 machines", draw, 1)]
            },
            claims: table_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "ble-fig-2",
            title: "Rounds of election for 2,500 requests",
            source: "bandit report, Figure 2",
            cells: |size| {
                let mut cells = Vec::new();
                for (nodes, machines) in SIZES {
                    let runs = size.pick(100, if nodes == 23 { 4 } else { 8 });
                    cells.push(s40((nodes, machines), four(), runs));
                    cells.push(paired(fresh_name(nodes), four(), runs).set("network.nodes", nodes));
                }
                cells
            },
            claims: round_claims,
            figures: round_figure,
        },
        Experiment {
            id: "ble-fig-3",
            title: "Rounds of 5,000 requests by those of their first half",
            source: "bandit report, Figure 3; its caption says 5 nodes, its data are of 11",
            cells: |size| vec![eleven(size)],
            claims: growth_claims,
            figures: growth_figure,
        },
        Experiment {
            id: "ble-fig-4",
            title: "Failed rounds in a row",
            source: "bandit report, Figure 4",
            cells: |size| vec![eleven(size)],
            claims: streak_claims,
            figures: streak_figure,
        },
        Experiment {
            id: "ble-fig-5",
            title: "Who is elected when, and how often as time goes by",
            source: "bandit report, Figure 5 a to c",
            cells: |size| vec![eleven(size)],
            claims: trend_claims,
            figures: trend_figures,
        },
        Experiment {
            id: "ble-fig-6",
            title: "Nodes that move from machine to machine",
            source: "bandit report, Figure 6",
            cells: |size| {
                let variants = || {
                    let buffered = reference(Policy::EPSILON_GREEDY).with_buffer(Some(20));
                    let buffered = buffered.expect("a buffer fits epsilon-greedy");
                    vec![dle(), rle(), eps(), variant("buffered", buffered), ucb()]
                };
                let cell = |name: &str| {
                    paired(name, variants(), size.pick(100, 8))
                        .set("election.client.requests", 2000)
                };
                let moving = |name: &str, migration: &str| {
                    cell(name)
                        .set("election.environment.machines", "pool")
                        .set("election.environment.migration", migration)
                };
                vec![
                    cell("stationary"),
                    moving("redraw 180 s", "{ kind = \"redraw\", every = \"180s\" }"),
                    moving("rotate 180 s", "{ kind = \"rotate\", every = \"180s\" }"),
                    moving("rotate 1800 s", "{ kind = \"rotate\", every = \"1800s\" }"),
                ]
            },
            claims: migration_claims,
            figures: migration_figure,
        },
        Experiment {
            id: "ble-fig-7",
            title: "What nodes believe of each other in the end",
            source: "bandit report, Figure 7",
            cells: |size| vec![s40(SIZES[0], vec![eps()], size.pick(200, 40))],
            claims: |data| {
                let value = |measure| at(data, "s40 N=5", "eps", measure);
                vec![
                    data
                        .claim(
                            "Good and bad machines are told apart: by how much the least estimate of one with p >= 0.7 is above the largest of one with p <= 0.2",
                            "0.66, of one observer",
                        )
                        .at_least(value(Measured::Separation), 0.25),
                    data
                        .claim("Estimates are in the order of the machines: Kendall's tau-b", "0.95, of one observer")
                        .at_least(value(Measured::Tau), 0.7),
                    data
                        .claim("They are no estimates of the probability of failure (A-9): mean distance", "\"good estimates\"")
                        .at_least(value(Measured::Error), 0.1),
                ]
            },
            // Drawn there: one observer's estimates over time. Here: how good those of all are in the end.
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "ble-fig-8",
            title: "UCB tries everybody and settles for the reliable",
            source: "bandit report, Figure 8",
            cells: |size| vec![s40(SIZES[0], vec![ucb()], size.pick(200, 40))],
            claims: |data| {
                let value = |measure| at(data, "s40 N=5", "UCB", measure);
                let (early, late) =
                    (value(Measured::ReliableFirst), value(Measured::ReliableSecond));
                vec![
                    data
                        .claim(
                            "Share of the leaders elected in the second half that are on reliable machines",
                            "all of them, in one run",
                        )
                        .at_least(late, 0.8),
                    data
                        .claim("More so than those of the first half", "nodes 1 to 4 first, then 1 and 2 alone")
                        .holds(format!("{late} after {early}"), data.is_positive(late - early)),
                ]
            },
            // Drawn there: who leads at every moment of one run. Here: two shares.
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "ble-lemma-7.1",
            title: "Fewer rounds do not make fewer messages",
            source: "bandit report, Lemma 7.1",
            cells: |size| {
                SIZES.map(|of| s40(of, vec![dle(), rle(), eps()], size.pick(100, 2))).into()
            },
            claims: lemma_claims,
            figures: |_| Vec::new(),
        },
    ]
}

fn fresh_name(nodes: u32) -> String {
    format!("fresh N={nodes}")
}

fn eleven(size: Size) -> Cell {
    let cell = s40(SIZES[1], four(), size.pick(200, 4));
    Cell { name: "s40".into(), ..cell }.set("election.client.requests", REQUESTS)
}

/// Of Figures 3 to 5.
const REQUESTS: u32 = 5000;

/// As the legends call them.
const FOUR: [&str; 4] = ["DLE", "RLE", "eps", "UCB"];

/// A dot for each algorithm in each group, a cell and a measure.
fn side_by_side(data: &Table, names: &[&'static str], groups: &[(&str, Measured)]) -> Vec<Series> {
    let series = |(colour, name): (usize, &&'static str)| {
        let points = groups.iter().zip(1..).map(|(&(cell, measure), group)| {
            (beside(group, colour, names.len()), at(data, cell, name, measure))
        });
        Series::measured(*name, colour, points)
    };
    names.iter().enumerate().map(series).collect()
}

/// Where one of several stands around its group, so that their intervals can be told apart.
fn beside(group: u32, which: usize, of: usize) -> f64 {
    f64::from(group) + 0.1 * (which as f64 - (of - 1) as f64 / 2.0)
}

measure!(
    /// The share of the machines of a type.
    Type(name: &'static str) = "type {name}"
);

fn draw_machines(draws: &usize, seed: u64) -> Found {
    let drawn = Machines::table_1().draw(*draws, &mut Seed::new(seed).rng());
    let share = |(name, failure, _)| {
        let found = drawn.iter().filter(|&&one| one == failure).count();
        Value::ratio(Type(name), found as f64 / *draws as f64)
    };
    Ok(TYPES.map(share).to_vec())
}

/// Name, probability of failure, share.
const TYPES: [(&str, f64, f64); 5] = [
    ("I", 0.95, 0.0903),
    ("II", 0.15, 0.3948),
    ("III", 0.7, 0.2172),
    ("IV", 0.2, 0.1398),
    ("V", 0.8, 0.1579),
];

fn table_claims(data: &Table) -> Vec<Claim> {
    let found = TYPES.map(|(name, ..)| data.estimate("100000 machines", Type(name)));
    let near =
        |(found, (_, _, share)): (&Estimate, &(&str, f64, f64))| (found.value - share).abs() < 0.01;
    vec![
        data.claim(
            "Each type's share is that of its number, within 0.01",
            "0.0903, 0.3948, 0.2172, 0.1398, 0.1579",
        )
        .holds(list(found), found.iter().zip(&TYPES).all(near)),
    ]
}

fn round_claims(data: &Table) -> Vec<Claim> {
    let rounds = |nodes, name| at(data, &s40_name(nodes), name, Measured::Rounds);
    let fresh = |nodes, one, other| by(data, &fresh_name(nodes), one, other);
    let mut claims = Vec::new();
    let mut by = |nodes: u32, words: &str, (one, other), published: &str, most| {
        let sentence = format!("N = {nodes}, fresh machines: {words}, ratio");
        claims.push(data.claim(sentence, published).at_most(fresh(nodes, one, other), most));
    };
    for (nodes, published, most) in [(5, "0.42", 0.88), (11, "0.47", 0.78), (23, "0.77", 0.88)] {
        by(nodes, "epsilon-greedy takes fewer rounds than DLE", ("eps", "DLE"), published, most);
    }
    for (nodes, published) in [(5, "0.31"), (11, "0.58"), (23, "0.49")] {
        by(nodes, "and than RLE", ("eps", "RLE"), published, 0.82);
    }
    for (nodes, published) in [(5, "0.78"), (11, "0.82"), (23, "0.77")] {
        by(nodes, "no more than UCB", ("eps", "UCB"), published, 1.05);
    }
    for (nodes, published) in [(5, "0.55"), (11, "0.57")] {
        by(nodes, "UCB takes fewer than DLE", ("UCB", "DLE"), published, 0.9);
    }
    claims.push(
        data
            .claim(
                "N = 23: UCB gains nothing on DLE (\"irrespective of the number of nodes\" does not hold, A-14), ratio",
                "1.00",
            )
            .at_least(fresh(23, "UCB", "DLE"), 0.9),
    );
    for (name, published) in [("eps", "14, 28, 46"), ("UCB", "18, 34, 60")] {
        let values = [5, 11, 23].map(|nodes| rounds(nodes, name));
        let grows = values.windows(2).all(|pair| pair[0].value < pair[1].value);
        claims.push(
            data.claim(format!("s40: {name} takes more rounds in larger clusters"), published)
                .holds(list(values), grows),
        );
    }
    // P-9 and P-10.
    for (nodes, bound, chain) in [(5, 14.3, 32.8), (11, 20.1, 48.2), (23, 24.0, 59.0)] {
        claims.push(
            data.claim(
                format!("s40, N = {nodes}: DLE by what its Markov chain says"),
                format!("{chain}"),
            )
            .between(rounds(nodes, "DLE") / chain, 0.93, 1.07),
        );
        claims.push(
            data.claim(
                format!("s40, N = {nodes}: nobody does better than the best single machine"),
                "its rounds",
            )
            .at_least(rounds(nodes, "eps"), bound),
        );
    }
    claims
}

fn round_figure(data: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, name) in FOUR.into_iter().enumerate() {
        let mut row = |cell: fn(u32) -> String, suffix, colour| {
            let rounds = |nodes| at(data, &cell(nodes), name, Measured::Rounds);
            let points = SIZES.map(|(nodes, _)| (f64::from(nodes), rounds(nodes)));
            series.push(Series::measured(format!("{name}{suffix}"), colour, points));
        };
        row(s40_name, "", colour);
        row(fresh_name, ", fresh", colour + 4);
    }
    let axes = (Axis::linear("nodes"), Axis::linear("rounds"));
    vec![Figure::new("ble-fig-2", "Rounds of election for 2,500 requests", axes, series)]
}

/// A measure of the eleven.
fn of_eleven(data: &Table, name: &'static str, measure: Measured) -> Estimate {
    at(data, "s40", name, measure)
}

/// Rounds of the second half by those of the first.
fn halves(data: &Table, name: &'static str) -> Estimate {
    by_halves(data, name, Measured::SecondHalf, Measured::FirstHalf)
}

fn by_halves(data: &Table, name: &'static str, one: Measured, other: Measured) -> Estimate {
    of_eleven(data, name, one) / of_eleven(data, name, other)
}

fn growth_claims(data: &Table) -> Vec<Claim> {
    let growth = |name| halves(data, name) + 1.0;
    let claim = |name| {
        let published = match name {
            "DLE" => "1.88",
            "RLE" => "1.69",
            "eps" => "1.72",
            _ => "not drawn",
        };
        data.claim(format!("Rounds of {name} grow from 2,500 to 5,000 requests, ratio"), published)
    };
    vec![
        claim("DLE").between(growth("DLE"), 1.9, 2.1),
        claim("RLE").between(growth("RLE"), 1.9, 2.1),
        claim("eps").at_most(growth("eps"), 1.97),
        claim("UCB").at_most(growth("UCB"), 1.85),
        data.claim("Those of epsilon-greedy grow less than those of DLE, difference", "0.16")
            .above_zero(growth("DLE") - growth("eps")),
        data.claim("5,000 requests: epsilon-greedy takes fewer rounds than DLE, ratio", "0.44")
            .at_most(by(data, "s40", "eps", "DLE"), 0.7),
    ]
}

fn growth_figure(data: &Table) -> Vec<Figure> {
    let (half, all) = (f64::from(REQUESTS / 2), f64::from(REQUESTS));
    let mut series = Vec::new();
    for (colour, name) in FOUR.into_iter().enumerate() {
        let of = |measure| of_eleven(data, name, measure);
        let first = of(Measured::FirstHalf);
        let points = [(half, first), (all, of(Measured::Rounds))];
        series.push(Series::measured(name, colour, points));
        // Where nothing is learnt.
        let ahead = [(0.0, 0.0), (all, first.value * all / half)];
        series.push(Series::analytic("", colour, ahead));
    }
    let title = "Rounds of 2,500 and of 5,000 requests; lines are in proportion to the former";
    let y = "rounds; lines: in proportion to the first half";
    vec![Figure::new("ble-fig-3", title, (Axis::linear("requests"), Axis::linear(y)), series)]
}

fn streak_claims(data: &Table) -> Vec<Claim> {
    let again = |name| by_halves(data, name, Measured::StreaksOf2, Measured::Streaks);
    let failed = |than| by_measure(data, "s40", ("eps", than), Measured::Failed);
    let beyond = of_eleven(data, "DLE", Measured::StreakBeyond);
    vec![
        data
            .claim("Epsilon-greedy fails in fewer rounds than DLE, ratio", "0.21")
            .at_most(failed("DLE"), 0.4),
        data.claim("and than RLE, ratio", "0.32").at_most(failed("RLE"), 0.35),
        data
            .claim("Epsilon-greedy seldom fails twice in a row, share of streaks", "0.125")
            .at_most(again("eps"), 0.25),
        data.claim("Less often than RLE, difference", "0.14").above_zero(again("RLE") - again("eps")),
        data
            .claim("DLE never fails more than f - 1 times in a row", "twice at most")
            .holds(format!("in {beyond} of runs it does"), beyond.value == 0.0)
            .missed_at_full_size(
                "not within a period (P-11), but a streak may go on into the next, when others are down",
            ),
    ]
}

/// The first two lengths of the report's survival curves, which is all that is counted.
fn streak_figure(data: &Table) -> Vec<Figure> {
    let axes = (
        Axis::named("failed rounds in a row, at least", ["1", "2"]),
        Axis::log("times in 5,000 requests"),
    );
    let lengths = [("s40", Measured::Streaks), ("s40", Measured::StreaksOf2)];
    let title = "How often rounds fail once, and at least twice, in a row";
    vec![Figure::new("ble-fig-4", title, axes, side_by_side(data, &FOUR, &lengths))]
}

fn trend_claims(data: &Table) -> Vec<Claim> {
    let halves = |name| halves(data, name);
    let claim = |name: &str, published: &str| {
        let sentence = format!("{name}: rounds of the second half by those of the first");
        data.claim(sentence, published)
    };
    let mut claims = vec![
        data
            .claim(
                "Share of the leaders epsilon-greedy elects after 500 requests that are on reliable machines",
                "1.00, in one run",
            )
            .at_least(of_eleven(data, "eps", Measured::ReliableAfter500), 0.9),
        claim("UCB", "0.50 by its line").at_most(halves("UCB"), 0.85),
        claim("eps", "0.62 by its line").at_most(halves("eps"), 0.97),
        claim("DLE", "0.88 by its line").between(halves("DLE"), 0.92, 1.08),
        claim("RLE", "1.03 by its line").between(halves("RLE"), 0.92, 1.08),
    ];
    for name in ["DLE", "RLE"] {
        let than = |measure| by_measure(data, "s40", ("eps", name), measure);
        claims.push(
            data.claim(
                format!("Epsilon-greedy elects less often than {name}, ratio"),
                "about 0.65",
            )
            .at_most(than(Measured::Elected), 0.75),
        );
        claims.push(
            data.claim(format!("and fails less often per 1000 s than {name}, ratio"), "about 0.2")
                .at_most(than(Measured::FailedPer1000), 0.4),
        );
    }
    let slope = of_eleven(data, "UCB", Measured::SlopeOfFailed);
    claims.push(
        data
            .claim(
                "UCB fails less and less often: slope per step of 100 s, below zero by two standard errors",
                "-0.0135",
            )
            .holds(slope, slope.is_clearly_below(0.0)),
    );
    claims
}

fn trend_figures(data: &Table) -> Vec<Figure> {
    let halves = [("s40", Measured::ReliableFirst), ("s40", Measured::ReliableSecond)];
    let trend = |name: &str, title: &str, y: &str, count, slope| {
        let lines = FOUR.into_iter().enumerate().filter_map(|(colour, name)| {
            let [first, last] = trend(data, name, count, slope)?;
            let place = |group: u32| beside(group, colour, FOUR.len());
            let line = [(place(1), first.value), (place(2), last.value)];
            let points = [(place(1), first), (place(2), last)];
            Some([Series::measured(name, colour, points), Series::analytic("", colour, line)])
        });
        let axes = (Axis::named("window of 1000 s", ["first", "last"]), Axis::linear(y));
        Figure::new(name, title, axes, lines.flatten())
    };
    let axes = (
        Axis::named("requests", ["first half", "second half"]),
        Axis::linear("share of elected leaders"),
    );
    let title = "Who is elected: leaders on machines with p <= 0.2";
    vec![
        Figure::new("ble-fig-5a", title, axes, side_by_side(data, &FOUR, &halves)),
        trend(
            "ble-fig-5b",
            "Trend of the rounds that elect somebody",
            "elected per 1000 s",
            Measured::Elected,
            Measured::SlopeOfElected,
        ),
        trend(
            "ble-fig-5c",
            "Trend of the rounds that fail",
            "failed per 1000 s",
            Measured::Failed,
            Measured::SlopeOfFailed,
        ),
    ]
}

/// Both ends of the line of the mean slope through the mean level, over the windows of a run. Level and slope of a fit do
/// not depend on each other, so that the ends have the intervals of both.
fn trend(
    data: &Table,
    name: &'static str,
    count: Measured,
    slope: Measured,
) -> Option<[Estimate; 2]> {
    let of = |measure| of_eleven(data, name, measure);
    let thousands = (of(Measured::Failed) / of(Measured::FailedPer1000)).value;
    // A window begins every 100 s, the last of them 1000 s before the end.
    let steps = 10.0 * (thousands - 1.0);
    let end = |steps: f64| of(count) / thousands + of(slope) * steps;
    // Without any failure there is no telling how long it took.
    (steps > 0.0).then(|| [end(-steps / 2.0), end(steps / 2.0)])
}

fn migration_claims(data: &Table) -> Vec<Claim> {
    let relative = |cell: &str| by(data, cell, "eps", "DLE");
    vec![
        data.claim(
            "Machines drawn anew every 180 s: epsilon-greedy takes no more rounds than RLE, ratio",
            "0.83",
        )
        .at_most(by(data, "redraw 180 s", "eps", "RLE"), 1.0),
        data.claim("but gains next to nothing on DLE, ratio", "0.85").between(
            relative("redraw 180 s"),
            0.8,
            1.1,
        ),
        data.claim("That is worse than on machines that stay, difference", "0.43")
            .at_least(relative("redraw 180 s") - relative("stationary"), 0.1),
        data.claim("A buffer of 20 changes little, ratio", "1.05").between(
            by(data, "redraw 180 s", "buffered", "eps"),
            0.92,
            1.08,
        ),
        data.claim("Nodes that move on every 1800 s can be learnt, ratio", "not tried")
            .at_most(relative("rotate 1800 s"), 0.95),
    ]
}

fn migration_figure(data: &Table) -> Vec<Figure> {
    let kinds = ["stationary", "redraw 180 s", "rotate 180 s", "rotate 1800 s"];
    let groups = kinds.map(|kind| (kind, Measured::Rounds));
    let title = "Rounds of election for 2,000 requests, where nodes move";
    let axes = (Axis::named("machines", kinds), Axis::linear("rounds"));
    let series = side_by_side(data, &["DLE", "RLE", "eps", "UCB", "buffered"], &groups);
    vec![Figure::new("ble-fig-6", title, axes, series)]
}

fn lemma_claims(data: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (nodes, published) in [(5, "3.21"), (11, "2.14"), (23, "2.04")] {
        let cell = s40_name(nodes);
        let [of_dle, of_rle] = ["DLE", "RLE"].map(|name| by(data, &cell, name, "eps"));
        let needed = nodes + 1;
        let short = |of: Estimate| of.is_clearly_below(f64::from(needed));
        claims.push(
            data
                .claim(
                    format!(
                        "N = {nodes}: k, rounds of the baseline by ours, is below N + 1 = {needed}, which the lemma needs"
                    ),
                    format!("{published} at best"),
                )
                .holds(format!("{of_dle} (DLE), {of_rle} (RLE)"), short(of_dle) && short(of_rle)),
        );
        let messages = by_measure(data, &cell, ("eps", "DLE"), Measured::ElectionMessages);
        claims.push(
            data.claim(
                format!(
                    "N = {nodes}: so it sends more election messages than DLE, not fewer, ratio"
                ),
                "fewer, if k >= N + 1",
            )
            .at_least(messages, 1.0),
        );
    }
    claims
}
