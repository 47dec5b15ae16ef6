//! Nodes change places once, and the others learn of it or not: figure 4.7.

use super::{between, bounded, is_ascending, largest, ratio};
use crate::{
    claim::{Claim, Estimate},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![Experiment {
        id: "wang-fig-4.7",
        title: "Distances may grow stale: only when many have moved far does it cost",
        source: "Fig. 4.7",
        cells: |size| {
            let runs = match size {
                Size::Full => 1_000,
                Size::Quick => 60,
            };
            let mut cells = Vec::new();
            for distances in KNOWLEDGE {
                for percent in PERCENT {
                    let one = |&far| moved("polar", percent, far, distances, runs);
                    cells.extend(ways(size).iter().map(one));
                }
                cells.push(moved("box", 40, 16, distances, runs));
            }
            cells
        },
        claims: figure_4_7_claims,
        figures: figure_4_7,
    }]
}

const KNOWLEDGE: [&str; 2] = ["stale", "fresh"];
/// How many move.
const PERCENT: [u32; 3] = [10, 20, 40];
/// How far at most, in metres.
fn ways(size: Size) -> &'static [u32] {
    match size {
        Size::Full => &[2, 4, 8, 16],
        Size::Quick => &[4, 16],
    }
}

fn moved_name(law: &str, percent: u32, far: u32, distances: &str) -> String {
    format!("{law} {percent}% x={far} {distances}")
}

fn moved(law: &str, percent: u32, far: u32, distances: &str, runs: u64) -> Cell {
    Cell::new(moved_name(law, percent, far, distances), MOVED, runs)
        .set("fault.0.law", law)
        .set("fault.0.fraction", f64::from(percent) / 100.0)
        .set("fault.0.distance", format!("{far}.0"))
        .set("fault.0.distances", distances)
}

const MOVED: &str = r#"
    name = "some move, later one crashes"
    duration = "300s"
    [network]
    nodes = 49
    placement = { kind = "random", side = 15.0, range = 4.0, robust = true }
    delay = { kind = "uniform", low = "0ms", high = "5ms", per = "hop" }
    routing = "length"
    [membership]
    kind = "medley"
    form = "as-published"
    phase = "sync"
    exponent = 3
    feedback = "both"
    [[fault]]
    at = "50s"
    kind = "move"
    fraction = 0.1
    distance = 2.0
    [[fault]]
    at = "100s"
    kind = "crash"
    count = 1
    keep = "connected"
"#;

/// Product cost with stale distances over that with fresh ones.
fn price(table: &Table, law: &str, percent: u32, far: u32) -> Option<Estimate> {
    let cost =
        |distances| table.estimate(&moved_name(law, percent, far, distances), "product_cost");
    ratio(cost("stale"), cost("fresh"))
}

fn figure_4_7_claims(table: &Table) -> Vec<Claim> {
    let polar = |percent, far| price(table, "polar", percent, far);
    let short_ways = || ways(table.size()).iter().copied().filter(|&far| far <= 4);
    let near = || {
        PERCENT
            .into_iter()
            .flat_map(|percent| short_ways().map(move |far| ((percent, far), polar(percent, far))))
    };
    let worst = largest(near());
    let far = PERCENT.map(|percent| polar(percent, 16));
    vec![
        Claim::holds(
            "Up to 4 m stale distances cost at most 1.05 of fresh ones, however many move",
            "no effect",
            worst.map_or_else(
                || "nothing".into(),
                |((percent, far), price)| format!("at most {price} ({percent}% by {far} m)"),
            ),
            near().all(|(_, price)| between(table, price, 0.0, 1.05)),
        ),
        bounded(
            table,
            "10% moved by up to 16 m: at most 1.12",
            "at most 1.071",
            polar(10, 16),
            0.0,
            1.12,
        ),
        bounded(table, "40% moved by up to 16 m: 1.1 to 1.6", "1.35", polar(40, 16), 1.1, 1.6),
        Claim::holds(
            "The more have moved by up to 16 m the more it costs (10, 20, 40%)",
            "1.07 to 1.35",
            far.map(super::shown).join(", "),
            is_ascending(&far),
        ),
        bounded(
            table,
            "40% moved anywhere in the box of 16 m around them, as in the reference code: 1.1 to 1.6 too (M-22)",
            "ours alone: 1.35 by one of the two laws",
            price(table, "box", 40, 16),
            1.1,
            1.6,
        ),
    ]
}

fn figure_4_7(table: &Table) -> Vec<Figure> {
    let row = |(colour, percent): (usize, u32)| {
        let price = |&far| (f64::from(far), price(table, "polar", percent, far));
        let points = ways(table.size()).iter().map(price);
        Series::measured(format!("{percent}% moved"), colour, points)
    };
    vec![Figure {
        name: "wang-fig-4.7".into(),
        title: "Product cost with stale distances, relative to fresh ones".into(),
        x: Axis::log("moved by up to, m"),
        y: Axis::linear("stale / fresh"),
        series: PERCENT.into_iter().enumerate().map(row).collect(),
    }]
}
