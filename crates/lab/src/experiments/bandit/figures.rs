//! Table 1, Figures 2 to 8, Lemma 7.1.

use bellwether_proto::{Seed, election::bandit::Policy};
use bellwether_sim::world::environment::Machines;

use super::super::missed_at_full_size;
use super::{
    SIZES, at, between, bounded, by, difference, dle, eps, four, list, paired, ratio, reference,
    rle, runs, shown, ucb, variant,
};
use crate::{
    claim::{Claim, Estimate},
    computation::{Computation, Found, Value},
    experiment::{Cell, Experiment},
    figure::{Axis, Figure, Series},
    table::Table,
};

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
                    let cell = |kind: &str| {
                        let runs = runs(size, 100, if nodes == 23 { 4 } else { 8 });
                        paired(format!("{kind} N={nodes}"), four(), runs)
                            .set("network.nodes", nodes)
                    };
                    cells.push(cell("s40").set("election.environment.machines", machines));
                    cells.push(cell("fresh"));
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
            cells: |size| vec![eleven("s40", size, 200, 4)],
            claims: growth_claims,
            figures: growth_figure,
        },
        Experiment {
            id: "ble-fig-4",
            title: "Failed rounds in a row",
            source: "bandit report, Figure 4",
            cells: |size| vec![eleven("s40", size, 200, 4)],
            claims: streak_claims,
            figures: streak_figure,
        },
        Experiment {
            id: "ble-fig-5",
            title: "Who is elected when, and how often as time goes by",
            source: "bandit report, Figure 5 a to c",
            cells: |size| vec![eleven("s40", size, 200, 4)],
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
                    paired(name, variants(), runs(size, 100, 8))
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
            cells: |size| {
                let cell = paired("s40 N=5", vec![eps()], runs(size, 200, 40));
                vec![cell.set("election.environment.machines", SIZES[0].1)]
            },
            claims: |table| {
                let value = |metric| at(table, "s40 N=5", "eps", metric);
                vec![
                    bounded(
                        table,
                        "Good and bad machines are told apart: the least estimate of one with p >= 0.7 above the largest of one with p <= 0.2 by",
                        "0.66, of one observer",
                        value("separation"),
                        0.25,
                        1.0,
                    ),
                    bounded(
                        table,
                        "Estimates are in the order of the machines: Kendall's tau-b",
                        "0.95, of one observer",
                        value("tau"),
                        0.7,
                        1.0,
                    ),
                    Claim::holds(
                        "They are no estimates of the probability of failure (A-9): mean distance above 0.1",
                        "\"good estimates\"",
                        shown(value("error")),
                        between(table, value("error"), 0.1, 1.0),
                    ),
                ]
            },
            // Drawn there: one observer's estimates over time. Here: how good those of all are in the end.
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "ble-fig-8",
            title: "UCB tries everybody and settles for the reliable",
            source: "bandit report, Figure 8",
            cells: |size| {
                let cell = paired("s40 N=5", vec![ucb()], runs(size, 200, 40));
                vec![cell.set("election.environment.machines", SIZES[0].1)]
            },
            claims: |table| {
                let value = |metric| at(table, "s40 N=5", "UCB", metric);
                let (early, late) =
                    (value("reliable in first half"), value("reliable in second half"));
                vec![
                    bounded(
                        table,
                        "Leaders elected in the second half are on reliable machines: share",
                        "all of them, in one run",
                        late,
                        0.8,
                        1.0,
                    ),
                    Claim::holds(
                        "More so than those of the first half",
                        "nodes 1 to 4 first, then 1 and 2 alone",
                        format!("{} after {}", shown(late), shown(early)),
                        between(table, difference(late, early), 1e-9, 1.0),
                    ),
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
                let cell = |(nodes, machines): (u32, &str)| {
                    let runs = runs(size, 100, 2);
                    paired(format!("s40 N={nodes}"), vec![dle(), rle(), eps()], runs)
                        .set("network.nodes", nodes)
                        .set("election.environment.machines", machines)
                };
                SIZES.map(cell).into()
            },
            claims: lemma_claims,
            figures: |_| Vec::new(),
        },
    ]
}

fn eleven(name: &str, size: crate::experiment::Size, full: u64, quick: u64) -> Cell {
    let (nodes, machines) = SIZES[1];
    paired(name, four(), runs(size, full, quick))
        .set("network.nodes", nodes)
        .set("election.environment.machines", machines)
        .set("election.client.requests", REQUESTS)
}

/// Of Figures 3 to 5.
const REQUESTS: u32 = 5000;

/// As the legends call them.
const FOUR: [&str; 4] = ["DLE", "RLE", "eps", "UCB"];

/// A dot for each algorithm in each group, a cell and a metric.
fn side_by_side(table: &Table, names: &[&str], groups: &[(&str, &str)]) -> Vec<Series> {
    let series = |(colour, name): (usize, &&str)| {
        let points = groups.iter().zip(1..).map(|(&(cell, metric), group)| {
            (beside(group, colour, names.len()), at(table, cell, name, metric))
        });
        Series::measured(*name, colour, points)
    };
    names.iter().enumerate().map(series).collect()
}

/// Where one of several stands around its group, so that their intervals can be told apart.
fn beside(group: u32, which: usize, of: usize) -> f64 {
    f64::from(group) + 0.1 * (which as f64 - (of - 1) as f64 / 2.0)
}

fn draw_machines(draws: &usize, seed: u64) -> Found {
    let drawn = Machines::table_1().draw(*draws, &mut Seed::new(seed).rng());
    let share = |(name, failure): (&str, f64)| {
        let found = drawn.iter().filter(|&&one| one == failure).count();
        Value::ratio(format!("type {name}"), found as f64 / *draws as f64)
    };
    Ok(TYPES.map(|(name, failure, _)| share((name, failure))).to_vec())
}

/// Name, probability of failure, share.
const TYPES: [(&str, f64, f64); 5] = [
    ("I", 0.95, 0.0903),
    ("II", 0.15, 0.3948),
    ("III", 0.7, 0.2172),
    ("IV", 0.2, 0.1398),
    ("V", 0.8, 0.1579),
];

fn table_claims(table: &Table) -> Vec<Claim> {
    let found = TYPES.map(|(name, _, share)| {
        (table.estimate("100000 machines", &format!("type {name}")), share)
    });
    let off = |(found, share): &(Option<Estimate>, f64)| {
        found.is_some_and(|found| (found.value - share).abs() < 0.01)
    };
    vec![Claim::holds(
        "Each type's share is that of its number, within 0.01",
        "0.0903, 0.3948, 0.2172, 0.1398, 0.1579",
        list(found.iter().map(|(found, _)| *found)),
        found.iter().all(off),
    )]
}

fn round_claims(table: &Table) -> Vec<Claim> {
    let fresh = |nodes: u32| format!("fresh N={nodes}");
    let s40 = |nodes: u32| format!("s40 N={nodes}");
    let rounds = |cell: &str, name: &str| at(table, cell, name, "rounds");
    let mut claims = Vec::new();
    for (nodes, published, most) in [(5, "0.42", 0.88), (11, "0.47", 0.78), (23, "0.77", 0.88)] {
        claims.push(bounded(
            table,
            format!("N = {nodes}, fresh machines: epsilon-greedy takes fewer rounds than DLE; by"),
            published,
            by(table, &fresh(nodes), "eps", "DLE", "rounds"),
            0.0,
            most,
        ));
    }
    for (nodes, published) in [(5, "0.31"), (11, "0.58"), (23, "0.49")] {
        claims.push(bounded(
            table,
            format!("N = {nodes}, fresh machines: and than RLE; by"),
            published,
            by(table, &fresh(nodes), "eps", "RLE", "rounds"),
            0.0,
            0.82,
        ));
    }
    for (nodes, published) in [(5, "0.78"), (11, "0.82"), (23, "0.77")] {
        claims.push(bounded(
            table,
            format!("N = {nodes}, fresh machines: no more than UCB; by"),
            published,
            by(table, &fresh(nodes), "eps", "UCB", "rounds"),
            0.0,
            1.05,
        ));
    }
    for (nodes, published) in [(5, "0.55"), (11, "0.57")] {
        claims.push(bounded(
            table,
            format!("N = {nodes}, fresh machines: UCB takes fewer than DLE; by"),
            published,
            by(table, &fresh(nodes), "UCB", "DLE", "rounds"),
            0.0,
            0.9,
        ));
    }
    let large = by(table, &fresh(23), "UCB", "DLE", "rounds");
    claims.push(Claim::holds(
        "N = 23: UCB gains nothing on DLE (\"irrespective of the number of nodes\" does not hold, A-14)",
        "1.00",
        shown(large),
        between(table, large, 0.9, f64::INFINITY),
    ));
    for name in ["eps", "UCB"] {
        let values = [5, 11, 23].map(|nodes| rounds(&s40(nodes), name));
        let grows =
            matches!(values, [Some(a), Some(b), Some(c)] if a.value < b.value && b.value < c.value);
        claims.push(Claim::holds(
            format!("s40: {name} takes more rounds in larger clusters"),
            if name == "eps" { "14, 28, 46" } else { "18, 34, 60" },
            list(values),
            grows,
        ));
    }
    // P-9 and P-10.
    for (nodes, bound, chain) in [(5, 14.3, 32.8), (11, 20.1, 48.2), (23, 24.0, 59.0)] {
        let of_dle = rounds(&s40(nodes), "DLE");
        claims.push(bounded(
            table,
            format!("s40, N = {nodes}: DLE takes what its Markov chain says, within 7%; by"),
            format!("{chain}"),
            of_dle
                .map(|of| Estimate { value: of.value / chain, half_width: of.half_width / chain }),
            0.93,
            1.07,
        ));
        let of_eps = rounds(&s40(nodes), "eps");
        claims.push(Claim::holds(
            format!("s40, N = {nodes}: nobody does better than the best single machine"),
            format!("at least {bound}"),
            shown(of_eps),
            between(table, of_eps, bound, f64::INFINITY),
        ));
    }
    claims
}

fn round_figure(table: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, name) in FOUR.into_iter().enumerate() {
        for (kind, suffix) in [("s40", ""), ("fresh", ", fresh")] {
            let points = SIZES.map(|(nodes, _)| {
                let cell = format!("{kind} N={nodes}");
                (f64::from(nodes), at(table, &cell, name, "rounds"))
            });
            let colour = colour + if kind == "s40" { 0 } else { 4 };
            series.push(Series::measured(format!("{name}{suffix}"), colour, points));
        }
    }
    vec![Figure {
        name: "ble-fig-2".into(),
        title: "Rounds of election for 2,500 requests".into(),
        x: Axis::linear("nodes"),
        y: Axis::linear("rounds"),
        series,
    }]
}

/// All rounds by those of the first half.
fn growth(table: &Table, name: &str) -> Option<Estimate> {
    let half = |metric| at(table, "s40", name, metric);
    let more = ratio(half("second half"), half("first half"))?;
    Some(Estimate { value: 1.0 + more.value, ..more })
}

fn growth_claims(table: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (name, published, low, high) in [
        ("DLE", "1.88", 1.9, 2.1),
        ("RLE", "1.69", 1.9, 2.1),
        ("eps", "1.72", 0.0, 1.97),
        ("UCB", "not drawn", 0.0, 1.85),
    ] {
        let of = growth(table, name);
        let sentence = format!("Rounds of {name} grow from 2,500 to 5,000 requests by");
        claims.push(bounded(table, sentence, published, of, low, high));
    }
    let less = difference(growth(table, "DLE"), growth(table, "eps"));
    claims.push(Claim::holds(
        "Those of epsilon-greedy grow less than those of DLE; by",
        "0.16",
        shown(less),
        between(table, less, 1e-9, f64::INFINITY),
    ));
    claims.push(bounded(
        table,
        "5,000 requests: epsilon-greedy takes fewer rounds than DLE; by",
        "0.44",
        by(table, "s40", "eps", "DLE", "rounds"),
        0.0,
        0.7,
    ));
    claims
}

fn growth_figure(table: &Table) -> Vec<Figure> {
    let (half, all) = (f64::from(REQUESTS / 2), f64::from(REQUESTS));
    let mut series = Vec::new();
    for (colour, name) in FOUR.into_iter().enumerate() {
        let first = at(table, "s40", name, "first half");
        let points = [(half, first), (all, at(table, "s40", name, "rounds"))];
        series.push(Series::measured(name, colour, points));
        // Where nothing is learnt.
        let ahead = first.map(|first| [(0.0, 0.0), (all, first.value * all / half)]);
        series.push(Series::analytic("", colour, ahead.into_iter().flatten()));
    }
    vec![Figure {
        name: "ble-fig-3".into(),
        title: "Rounds of 2,500 and of 5,000 requests; lines are in proportion to the former"
            .into(),
        x: Axis::linear("requests"),
        y: Axis::linear("rounds; lines: in proportion to the first half"),
        series,
    }]
}

fn streak_claims(table: &Table) -> Vec<Claim> {
    let again = |name: &str| {
        ratio(at(table, "s40", name, "streaks of 2"), at(table, "s40", name, "streaks"))
    };
    let beyond = at(table, "s40", "DLE", "streak beyond f - 1");
    let less = difference(again("RLE"), again("eps"));
    vec![
        bounded(
            table,
            "Epsilon-greedy fails in fewer rounds than DLE; by",
            "0.21",
            by(table, "s40", "eps", "DLE", "failed"),
            0.0,
            0.4,
        ),
        bounded(
            table,
            "and than RLE; by",
            "0.32",
            by(table, "s40", "eps", "RLE", "failed"),
            0.0,
            0.35,
        ),
        bounded(
            table,
            "Epsilon-greedy seldom fails twice in a row: share of streaks",
            "0.125",
            again("eps"),
            0.0,
            0.25,
        ),
        Claim::holds(
            "Less often than RLE; by",
            "0.14",
            shown(less),
            between(table, less, 1e-9, f64::INFINITY),
        ),
        missed_at_full_size(
            table,
            Claim::holds(
                "DLE never fails more than f - 1 times in a row",
                "twice at most",
                format!("in {} of runs it does", shown(beyond)),
                beyond.is_some_and(|beyond| beyond.value == 0.0),
            ),
            "not within a period (P-11), but a streak may go on into the next, when others are down",
        ),
    ]
}

/// The first two lengths of the report's survival curves, which is all that is counted.
fn streak_figure(table: &Table) -> Vec<Figure> {
    vec![Figure {
        name: "ble-fig-4".into(),
        title: "How often rounds fail once, and at least twice, in a row".into(),
        x: Axis::named("failed rounds in a row, at least", ["1", "2"]),
        y: Axis::log("times in 5,000 requests"),
        series: side_by_side(table, &FOUR, &[("s40", "streaks"), ("s40", "streaks of 2")]),
    }]
}

fn trend_claims(table: &Table) -> Vec<Claim> {
    let value = |name: &str, metric: &str| at(table, "s40", name, metric);
    let halves = |name: &str| ratio(value(name, "second half"), value(name, "first half"));
    let mut claims = vec![bounded(
        table,
        "After 500 requests epsilon-greedy elects reliable machines: share",
        "1.00, in one run",
        value("eps", "reliable after 500"),
        0.9,
        1.0,
    )];
    for (name, published, low, high) in [
        ("UCB", "0.50 by its line", 0.0, 0.85),
        ("eps", "0.62 by its line", 0.0, 0.97),
        ("DLE", "0.88 by its line", 0.92, 1.08),
        ("RLE", "1.03 by its line", 0.92, 1.08),
    ] {
        let sentence = format!("{name}: rounds of the second half by those of the first");
        claims.push(bounded(table, sentence, published, halves(name), low, high));
    }
    for name in ["DLE", "RLE"] {
        claims.push(bounded(
            table,
            format!("Epsilon-greedy elects less often than {name}; by"),
            "about 0.65",
            by(table, "s40", "eps", name, "elected"),
            0.0,
            0.75,
        ));
        claims.push(bounded(
            table,
            format!("and fails less often per 1000 s than {name}; by"),
            "about 0.2",
            by(table, "s40", "eps", name, "failed per 1000 s"),
            0.0,
            0.4,
        ));
    }
    let slope = value("UCB", "slope of failed");
    let steep = |of: Estimate| of.value + 1.645 / 1.96 * of.half_width < 0.0;
    claims.push(Claim::holds(
        "UCB fails less and less often: slope per step of 100 s, below zero at 5%",
        "-0.0135",
        shown(slope),
        slope.is_some_and(steep),
    ));
    claims
}

fn trend_figures(table: &Table) -> Vec<Figure> {
    let halves = [("s40", "reliable in first half"), ("s40", "reliable in second half")];
    let trend = |name: &str, title: &str, y: &str, count: &str, slope: &str| {
        let lines = FOUR.into_iter().enumerate().filter_map(|(colour, name)| {
            let [first, last] = trend(table, name, count, slope)?;
            let place = |group: u32| beside(group, colour, FOUR.len());
            let points = [(place(1), Some(first)), (place(2), Some(last))];
            let line = [(place(1), first.value), (place(2), last.value)];
            Some([Series::measured(name, colour, points), Series::analytic("", colour, line)])
        });
        Figure {
            name: name.into(),
            title: title.into(),
            x: Axis::named("window of 1000 s", ["first", "last"]),
            y: Axis::linear(y),
            series: lines.flatten().collect(),
        }
    };
    vec![
        Figure {
            name: "ble-fig-5a".into(),
            title: "Who is elected: leaders on machines with p <= 0.2".into(),
            x: Axis::named("requests", ["first half", "second half"]),
            y: Axis::linear("share of elected leaders"),
            series: side_by_side(table, &FOUR, &halves),
        },
        trend(
            "ble-fig-5b",
            "Trend of the rounds that elect somebody",
            "elected per 1000 s",
            "elected",
            "slope of elected",
        ),
        trend(
            "ble-fig-5c",
            "Trend of the rounds that fail",
            "failed per 1000 s",
            "failed",
            "slope of failed",
        ),
    ]
}

/// Both ends of the line of the mean slope through the mean level, over the windows of a run. Level and slope of a fit do
/// not depend on each other, so that the ends have the intervals of both.
fn trend(table: &Table, name: &str, count: &str, slope: &str) -> Option<[Estimate; 2]> {
    let of = |metric| at(table, "s40", name, metric);
    let thousands = ratio(of("failed"), of("failed per 1000 s"))?.value;
    let (count, slope) = (of(count)?, of(slope)?);
    // A window begins every 100 s, the last of them 1000 s before the end.
    let steps = 10.0 * (thousands - 1.0);
    let end = |steps: f64| Estimate {
        value: count.value / thousands + slope.value * steps,
        half_width: libm::hypot(count.half_width / thousands, slope.half_width * steps),
    };
    // Without any failure there is no telling how long it took.
    (steps > 0.0).then(|| [end(-steps / 2.0), end(steps / 2.0)])
}

fn migration_claims(table: &Table) -> Vec<Claim> {
    let relative = |cell: &str| by(table, cell, "eps", "DLE", "rounds");
    let redrawn = relative("redraw 180 s");
    let worse = difference(redrawn, relative("stationary"));
    let rle = by(table, "redraw 180 s", "eps", "RLE", "rounds");
    vec![
        bounded(
            table,
            "Machines drawn anew every 180 s: epsilon-greedy takes no more rounds than RLE; by",
            "0.83",
            rle,
            0.0,
            1.0,
        ),
        bounded(table, "but gains next to nothing on DLE; by", "0.85", redrawn, 0.8, 1.1),
        Claim::holds(
            "At least 0.1 worse than on machines that stay",
            "0.43 worse",
            shown(worse),
            between(table, worse, 0.1, f64::INFINITY),
        ),
        bounded(
            table,
            "A buffer of 20 changes little: within 8% of none; by",
            "1.05",
            by(table, "redraw 180 s", "buffered", "eps", "rounds"),
            0.92,
            1.08,
        ),
        bounded(
            table,
            "Nodes that move on every 1800 s can be learnt; by",
            "not tried",
            relative("rotate 1800 s"),
            0.0,
            0.95,
        ),
    ]
}

fn migration_figure(table: &Table) -> Vec<Figure> {
    let kinds = ["stationary", "redraw 180 s", "rotate 180 s", "rotate 1800 s"];
    let groups = kinds.map(|kind| (kind, "rounds"));
    vec![Figure {
        name: "ble-fig-6".into(),
        title: "Rounds of election for 2,000 requests, where nodes move".into(),
        x: Axis::named("machines", kinds),
        y: Axis::linear("rounds"),
        series: side_by_side(table, &["DLE", "RLE", "eps", "UCB", "buffered"], &groups),
    }]
}

fn lemma_claims(table: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (nodes, published) in [(5, "3.21"), (11, "2.14"), (23, "2.04")] {
        let cell = format!("s40 N={nodes}");
        let factor = |name: &str| by(table, &cell, name, "eps", "rounds");
        let [of_dle, of_rle] = ["DLE", "RLE"].map(factor);
        let short = |of: Option<Estimate>| {
            of.is_some_and(|of| of.value + of.half_width < f64::from(nodes) + 1.0)
        };
        claims.push(Claim::holds(
            format!(
                "N = {nodes}: k, rounds of the baseline by ours, is below N + 1 = {}, which the lemma needs",
                nodes + 1
            ),
            format!("{published} at best"),
            format!("{} (DLE), {} (RLE)", shown(of_dle), shown(of_rle)),
            short(of_dle) && short(of_rle),
        ));
        let messages = by(table, &cell, "eps", "DLE", "election messages");
        claims.push(Claim::holds(
            format!("N = {nodes}: so it sends more election messages than DLE, not fewer; by"),
            "fewer, if k >= N + 1",
            shown(messages),
            between(table, messages, 1.0 + 1e-9, f64::INFINITY),
        ));
    }
    claims
}
