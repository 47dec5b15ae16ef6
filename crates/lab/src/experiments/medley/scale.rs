//! Groups of 32 to 2048 at one density: figure 4.6.

use super::{
    FIELD, Form, STRATEGIES, between, bounded, dfdt, fit, ratio, smallest, strategic, time,
};
use crate::{
    claim::{Claim, Estimate, short},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![Experiment {
        id: "wang-fig-4.6",
        title: "The larger the group, the longer the news takes, but no longer the first detection",
        source: "Fig. 4.6",
        cells: |size| {
            let cell = |strategy, nodes| {
                let cell = Cell::new(size_name(strategy, nodes), FIELD, runs(size, nodes));
                let cell = cell.set("duration", "500s").set("fault.0.at", "100s");
                strategic(of_size(cell, nodes), Form::Published, strategy, 3)
            };
            let all = STRATEGIES.iter().flat_map(|(strategy, _)| {
                SIZES
                    .iter()
                    .filter(|&&nodes| nodes <= most(size))
                    .map(|&nodes| cell(strategy, nodes))
            });
            all.collect()
        },
        claims: figure_4_6_claims,
        figures: figure_4_6,
    }]
}

const SIZES: [u32; 7] = [32, 64, 128, 256, 512, 1_024, 2_048];

/// The largest group that is run.
fn most(size: Size) -> u32 {
    match size {
        Size::Full => 2_048,
        Size::Quick => 256,
    }
}

fn runs(size: Size, nodes: u32) -> u64 {
    match (size, nodes) {
        (Size::Full, ..=64) => 1_000,
        (Size::Full, _) => 200,
        (Size::Quick, ..=64) => 60,
        (Size::Quick, ..=128) => 30,
        (Size::Quick, _) => 15,
    }
}

fn size_name(strategy: &str, nodes: u32) -> String {
    format!("{strategy} n={nodes}")
}

/// A group at the density of the chapter: 49 nodes on 225 square metres.
pub(super) fn of_size(cell: Cell, nodes: u32) -> Cell {
    let side = libm::sqrt(f64::from(nodes) * 225.0 / 49.0);
    cell.set("network.nodes", nodes).set("network.placement.side", format!("{side:.3}"))
}

/// The sizes that were run.
fn sizes(table: &Table) -> impl Iterator<Item = u32> + Clone {
    let most = most(table.size());
    SIZES.into_iter().filter(move |&nodes| nodes <= most)
}

fn figure_4_6_claims(table: &Table) -> Vec<Claim> {
    let cell = size_name;
    let half = |strategy, nodes| time(table, &cell(strategy, nodes), "median_dissemination");
    let mut claims = Vec::new();
    let flat = STRATEGIES.map(|(strategy, _)| {
        let all = || sizes(table).map(|n| (n, time(table, &cell(strategy, n), "first_detection")));
        let least = smallest(all())?.1;
        let (_, most) = super::largest(all())?;
        Some((strategy, most.over(least)))
    });
    let worst = super::largest(
        flat.iter().map(|one| one.map_or(("", None), |(strategy, ratio)| (strategy, Some(ratio)))),
    );
    let all_there = flat.iter().all(Option::is_some);
    claims.push(Claim::holds(
        "The mean first detection does not depend on the group: largest over smallest at most 1.12, every strategy",
        "constant",
        worst.map_or_else(|| "nothing".into(), |(strategy, ratio)| format!("{ratio} ({strategy})")),
        all_there && between(table, worst.map(|(_, ratio)| ratio), 1.0, 1.12),
    ));
    let largest = most(table.size());
    for strategy in ["medley", "both"] {
        let growth = ratio(half(strategy, largest), half(strategy, 32));
        let published = if strategy == "medley" { "3.75 for 2048" } else { "3.70 for 2048" };
        let sentence = format!("msdm grows at most 8-fold from 32 to {largest} nodes ({strategy})");
        claims.push(bounded(table, sentence, published, growth, 0.0, 8.0));
        let points = |x: fn(f64) -> f64| {
            let point = |n: u32| Some((x(f64::from(n)), half(strategy, n)?.value));
            sizes(table).map(point).collect::<Option<Vec<_>>>()
        };
        let (log, root) = (points(libm::log2), points(libm::sqrt));
        let [log, root] = [log, root].map(|points| points.map(|points| fit(&points)));
        claims.push(Claim::holds(
            format!("msdm is a + b log2 N ({strategy})"),
            "R² at least 0.8",
            match (log, root) {
                (Some(log), Some(root)) => format!("R² = {log:.3}; {root:.3} for a + b √N"),
                _ => "nothing".into(),
            },
            log.is_some_and(|log| log >= 0.8),
        ));
    }
    let quotients = || {
        sizes(table).filter(|&n| n >= 64).map(|n| (n, ratio(half("both", n), half("medley", n))))
    };
    let worst = super::largest(quotients());
    claims.push(Claim::holds(
        "Both feedbacks bring msdm to 0.8 of Medley's at most, at every N from 64",
        "0.66 to 0.73",
        worst.map_or_else(|| "nothing".into(), |(n, ratio)| format!("at most {ratio} (N = {n})")),
        quotients().all(|(_, ratio)| between(table, ratio, 0.0, 0.8)),
    ));
    let missing =
        |strategy, n| table.estimate(&cell(strategy, n), "incomplete").map(|one| 100.0 * one.value);
    let pairs = || sizes(table).map(|n| (missing("both", n), missing("medley", n)));
    let fewer = pairs().all(|pair| matches!(pair, (Some(both), Some(medley)) if both <= medley));
    let shares = [missing("medley", largest), missing("both", largest)];
    claims.push(Claim::holds(
        format!("With both no more nodes never hear of the crash than with none, at every N (shown: Medley, both at {largest})"),
        "0.30 and about 0.01% at 2048",
        shares.map(|share| share.map_or("nothing".into(), |share| format!("{}%", short(share)))).join(", "),
        fewer,
    ));
    claims
}

fn figure_4_6(table: &Table) -> Vec<Figure> {
    /// The vector figure of the authors.
    const PUBLISHED: [(&str, [f64; 7]); 4] = [
        ("medley", [48.0, 64.0, 122.0, 137.0, 149.0, 151.0, 180.0]),
        ("active", [42.0, 59.0, 113.0, 131.0, 141.0, 150.0, 151.0]),
        ("passive", [35.0, 46.0, 82.0, 97.0, 108.0, 113.0, 116.0]),
        ("both", [33.0, 42.0, 80.0, 95.0, 103.0, 110.0, 122.0]),
    ];
    let points = |value: &dyn Fn(u32) -> Option<Estimate>| {
        sizes(table).map(|n| (f64::from(n), value(n))).collect::<Vec<_>>()
    };
    let (mut first, mut half) = (Vec::new(), Vec::new());
    for (colour, (strategy, published)) in PUBLISHED.into_iter().enumerate() {
        let cell = |n| size_name(strategy, n);
        first.push(Series::measured(strategy, colour, points(&|n| dfdt(table, &cell(n)))));
        let median = |n| time(table, &cell(n), "median_dissemination");
        half.push(Series::measured(strategy, colour, points(&median)));
        let line = sizes(table).map(f64::from).zip(published);
        half.push(Series::analytic(format!("{strategy}, published"), colour, line));
    }
    let figure = |name: &str, title: &str, series| Figure {
        name: name.into(),
        title: title.into(),
        x: Axis::log("nodes"),
        y: Axis::linear("time units of 100 ms"),
        series,
    };
    vec![
        figure("wang-fig-4.6-dfdt", "First detection less the 180 units it takes at least", first),
        figure("wang-fig-4.6-msdm", "From the first detection until half of the group knows", half),
    ]
}
