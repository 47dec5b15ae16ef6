//! Several crashes at once: figures 4.2 and 4.3.

use super::{
    EXPONENTS, FIELD, Form, STRATEGIES, at_least_percent, between, bounded, difference,
    exponent_figure, is_ascending, listed, name, over_exponents, percent, ratio, reduction,
    smallest, strategic, time,
};
use crate::{
    claim::{Claim, Estimate},
    experiment::{Cell, Experiment},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "wang-fig-4.2",
            title: "Half of the group may crash at once, and each crash is found about as soon",
            source: "Fig. 4.2",
            cells: |size| {
                let cell = |strategy, crashes| several(strategy, crashes, size.runs(1_000));
                let all = RIVALS.iter().flat_map(|&strategy| CRASHES.map(|f| cell(strategy, f)));
                all.collect()
            },
            claims: figure_4_2_claims,
            figures: figure_4_2,
        },
        Experiment {
            id: "wang-fig-4.3",
            title: "When a whole cluster crashes, only the far can tell: passive feedback asks them",
            source: "Fig. 4.3",
            cells: |size| {
                let mut cells = Vec::new();
                for (strategy, _) in STRATEGIES {
                    cells.extend(EXPONENTS.map(|m| cluster(strategy, m, size.runs(1_000))));
                }
                cells
            },
            claims: figure_4_3_claims,
            figures: figure_4_3,
        },
    ]
}

const CRASHES: [u32; 7] = [1, 4, 8, 12, 16, 20, 24];
const RIVALS: [(&str, &str, u32); 3] =
    [("SWIM", "medley", 0), ("medley", "medley", 3), ("both", "both", 3)];

fn several_name(label: &str, crashes: u32) -> String {
    format!("{label} f={crashes}")
}

fn several((label, strategy, exponent): (&str, &str, u32), crashes: u32, runs: u64) -> Cell {
    let cell = Cell::new(several_name(label, crashes), FIELD, runs);
    let cell = cell.set("fault.0.count", crashes).set("fault.0.keep", "connected");
    strategic(cell, Form::Published, strategy, exponent)
}

fn figure_4_2_claims(table: &Table) -> Vec<Claim> {
    let first = |label, crashes| time(table, &several_name(label, crashes), "first_detection");
    let gap = |label| {
        let ratio = ratio(first(label, 24), first(label, 1))?;
        Some(Estimate { value: 100.0 * (ratio.value - 1.0), half_width: 100.0 * ratio.half_width })
    };
    let [swim, medley, both] = ["SWIM", "medley", "both"].map(gap);
    let unfound = RIVALS.map(|(label, ..)| table.estimate(&several_name(label, 24), "undetected"));
    vec![
        Claim::holds(
            "With 24 crashes SWIM finds each 4 to 18% later than a single one",
            "12.3%",
            percent(swim),
            between(table, swim, 4.0, 18.0),
        ),
        Claim::holds(
            "Medley loses more than SWIM",
            "20.6%, not 12.3%",
            format!("{}, not {}", percent(medley), percent(swim)),
            between(table, difference(medley, swim), 0.0, f64::INFINITY),
        ),
        Claim::holds(
            "Both feedbacks lose no more than a point more than Medley",
            "15.8%",
            percent(both),
            between(table, difference(both, medley), f64::NEG_INFINITY, 1.0),
        ),
        Claim::holds(
            "Nobody loses 35%",
            "at most 20.6%",
            format!("{}%", listed([swim, medley, both])),
            [swim, medley, both]
                .into_iter()
                .all(|gap| between(table, gap, f64::NEG_INFINITY, 35.0)),
        ),
        Claim::holds(
            "All 24 are found before the run ends but for one in a hundred (SWIM, Medley, both)",
            "ours alone: else the means say little",
            format!("{} not found", listed(unfound)),
            unfound.into_iter().all(|unfound| between(table, unfound, 0.0, 0.24)),
        ),
    ]
}

fn figure_4_2(table: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, (label, ..)) in RIVALS.into_iter().enumerate() {
        let points =
            |metric| CRASHES.map(|f| (f64::from(f), time(table, &several_name(label, f), metric)));
        series.push(Series::measured(label, colour, points("first_detection")));
        for metric in ["earliest_detection", "latest_detection"] {
            let there = points(metric).into_iter().filter_map(|(f, value)| Some((f, value?.value)));
            let words = metric.replace("_detection", "");
            series.push(Series::analytic(format!("{label}, {words}"), colour, there));
        }
    }
    vec![Figure {
        name: "wang-fig-4.2".into(),
        title: "First detection of each of several crashes at once: mean, soonest and latest found"
            .into(),
        x: Axis::linear("crashes"),
        y: Axis::linear("time units of 100 ms"),
        series,
    }]
}

/// The five clusters of the thesis, of which the rest does without any.
fn cluster(strategy: &str, exponent: u32, runs: u64) -> Cell {
    let cell = Cell::new(name(Form::Published, strategy, exponent), CLUSTERS, runs);
    strategic(cell, Form::Published, strategy, exponent)
}

const CLUSTERS: &str = r#"
    name = "a whole cluster crashes"
    duration = "300s"
    [network]
    nodes = 49
    placement = { kind = "cluster", range = 4.0, robust = true }
    delay = { kind = "uniform", low = "0ms", high = "5ms", per = "hop" }
    routing = "length"
    [membership]
    kind = "medley"
    form = "as-published"
    phase = "sync"
    exponent = 3
    feedback = "none"
    [[fault]]
    at = "180s"
    kind = "crash"
    cluster = "random"
"#;

fn figure_4_3_claims(table: &Table) -> Vec<Claim> {
    let first = |strategy, m| time(table, &name(Form::Published, strategy, m), "first_detection");
    let saved = |strategy| reduction(first(strategy, 3), first("medley", 3));
    let active = smallest([0, 1, 2, 3].map(|m| {
        let off = ratio(first("active", m), first("medley", m));
        (m, off.map(|off| Estimate { value: -(off.value - 1.0).abs(), ..off }))
    }));
    let active = active.map(|(m, off)| {
        (m, Estimate { value: -100.0 * off.value, half_width: 100.0 * off.half_width })
    });
    let rising = [1, 2, 3, 4, 5].map(|m| first("medley", m));
    vec![
        bounded(
            table,
            "At m = 1 Medley is still flat: at most 1.15 of m = 0",
            "1.05",
            ratio(first("medley", 1), first("medley", 0)),
            0.0,
            1.15,
        ),
        bounded(
            table,
            "At m = 3 it takes at least 1.4 times as long as at m = 0",
            "1.94",
            ratio(first("medley", 3), first("medley", 0)),
            1.4,
            f64::INFINITY,
        ),
        Claim::holds(
            "It rises from there on",
            "228, 290, 422, 514, 528 for m = 1 to 5",
            listed(rising),
            is_ascending(&rising),
        ),
        at_least_percent(
            table,
            "Passive feedback is at least 15% sooner at m = 3",
            "27%",
            saved("passive"),
            15.0,
        ),
        at_least_percent(
            table,
            "Both are at least 15% sooner at m = 3",
            "28%",
            saved("both"),
            15.0,
        ),
        Claim::holds(
            "Active feedback is within 10% of Medley up to m = 3",
            "at most 1.7% off",
            active.map_or_else(
                || "nothing".into(),
                |(m, off)| format!("farthest at m = {m}: {}", percent(Some(off))),
            ),
            between(table, active.map(|(_, off)| off), 0.0, 10.0),
        ),
    ]
}

fn figure_4_3(table: &Table) -> Vec<Figure> {
    /// The vector figure of the authors.
    const PUBLISHED: [(&str, [f64; 6]); 4] = [
        ("medley", [217.0, 228.0, 290.0, 422.0, 514.0, 528.0]),
        ("active", [218.0, 228.0, 295.0, 424.0, 473.0, 460.0]),
        ("passive", [217.0, 226.0, 260.0, 308.0, 336.0, 352.0]),
        ("both", [217.0, 227.0, 261.0, 304.0, 330.0, 341.0]),
    ];
    let mut series = Vec::new();
    for (colour, (strategy, published)) in PUBLISHED.into_iter().enumerate() {
        let first = |m| time(table, &name(Form::Published, strategy, m), "first_detection");
        series.push(over_exponents(strategy, colour, first));
        let line = EXPONENTS.map(f64::from).into_iter().zip(published);
        series.push(Series::analytic(format!("{strategy}, published"), colour, line));
    }
    vec![exponent_figure(
        "wang-fig-4.3",
        "First detection of each crash when a whole cluster crashes",
        "time units of 100 ms",
        series,
    )]
}
