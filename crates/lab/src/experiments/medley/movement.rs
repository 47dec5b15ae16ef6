//! Nodes change places once, and the others learn of it or not: figure 4.7.

use super::*;

pub(super) fn all() -> Vec<Experiment> {
    vec![Experiment {
        id: "wang-fig-4.7",
        title: "Distances may grow stale: only when many have moved far does it cost",
        source: "Fig. 4.7",
        cells: |size| {
            let runs = size.pick(1_000, 60);
            let mut cells = Vec::new();
            for distances in ["stale", "fresh"] {
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

/// How many move.
const PERCENT: [u32; 3] = [10, 20, 40];

/// How far at most, in metres.
fn ways(size: Size) -> &'static [u32] {
    size.pick(&[2, 4, 8, 16], &[4, 16])
}

fn moved_name(law: &str, percent: u32, far: u32, distances: &str) -> String {
    format!("{law} {percent}% x={far} {distances}")
}

/// Some move, later one crashes.
fn moved(law: &str, percent: u32, far: u32, distances: &str, runs: u64) -> Cell {
    let share = f64::from(percent) / 100.0;
    let faults = format!(
        r#"[{{ at = "50s", kind = "move", law = "{law}", fraction = {share}, distance = {far}.0,
               distances = "{distances}" }},
            {{ at = "100s", kind = "crash", count = 1, keep = "connected" }}]"#
    );
    let cell = Cell::new(moved_name(law, percent, far, distances), MEDLEY_FIELD, runs);
    cell.set("membership.feedback", "both").set("fault", faults)
}

/// Product cost with stale distances over that with fresh ones.
fn price(data: &Table, law: &str, percent: u32, far: u32) -> Estimate {
    let cost =
        |distances| data.estimate(moved_name(law, percent, far, distances), Metric::ProductCost);
    cost("stale") / cost("fresh")
}

fn figure_4_7_claims(data: &Table) -> Vec<Claim> {
    let polar = |percent, far| price(data, "polar", percent, far);
    let short_ways = ways(data.size()).iter().copied().filter(|&far| far <= 4);
    let near: Vec<_> = short_ways
        .flat_map(|far| PERCENT.map(|percent| ((percent, far), polar(percent, far))))
        .collect();
    let (worst, _) = extreme(most(near.iter().copied()), |(percent, far), price| {
        format!("at most {price} ({percent}% by {far} m)")
    });
    vec![
        data.claim("Stale distances by fresh ones up to 4 m, however many move", "no effect")
            .showing(worst)
            .at_most(near.iter().map(|(_, price)| *price).collect::<Vec<_>>(), 1.05),
        data.claim("10% moved by up to 16 m", "at most 1.071").at_most(polar(10, 16), 1.12),
        data.claim("40% moved by up to 16 m", "1.35").between(polar(40, 16), 1.1, 1.6),
        data.claim(
            "The more have moved by up to 16 m the more it costs (10, 20, 40%)",
            "1.07 to 1.35",
        )
        .rising(PERCENT.map(|percent| polar(percent, 16))),
        data.claim(
            "40% moved anywhere in the box of 16 m around them, as in the reference code (M-22)",
            "ours alone: 1.35 by one of the two laws",
        )
        .between(price(data, "box", 40, 16), 1.1, 1.6),
    ]
}

fn figure_4_7(data: &Table) -> Vec<Figure> {
    let row = |(colour, percent): (usize, u32)| {
        let price = |&far| (f64::from(far), price(data, "polar", percent, far));
        let points = ways(data.size()).iter().map(price);
        Series::measured(format!("{percent}% moved"), colour, points)
    };
    let title = "Product cost with stale distances, relative to fresh ones";
    let axes = (Axis::log("moved by up to, m"), Axis::linear("stale / fresh"));
    let series = PERCENT.into_iter().enumerate().map(row);
    vec![Figure::new("wang-fig-4.7", title, axes, series)]
}
