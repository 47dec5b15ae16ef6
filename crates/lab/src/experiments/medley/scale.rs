//! Groups of 32 to 2048 at one density: figure 4.6.

use super::*;
use crate::estimate::fit;

pub(super) fn all() -> Vec<Experiment> {
    vec![Experiment {
        id: "wang-fig-4.6",
        title: "The larger the group, the longer the news takes, but no longer the first detection",
        source: "Fig. 4.6",
        cells: |size| {
            let cell = |strategy, nodes| {
                let cell = Cell::new(size_name(strategy, nodes), MEDLEY_FIELD, runs(size, nodes));
                let cell = cell.set("duration", "500s").set("fault.0.at", "100s");
                strategic(of_size(cell, nodes), Form::Published, strategy, 3)
            };
            let all = |strategy| sizes(size).map(move |nodes| cell(strategy, nodes));
            STRATEGIES.into_iter().flat_map(all).collect()
        },
        claims: figure_4_6_claims,
        figures: figure_4_6,
    }]
}

/// The largest group that is run.
fn largest(size: Size) -> u32 {
    size.pick(2_048, 256)
}

/// The sizes that are run.
fn sizes(size: Size) -> impl Iterator<Item = u32> + Clone {
    let all = [32, 64, 128, 256, 512, 1_024, 2_048];
    all.into_iter().filter(move |&nodes| nodes <= largest(size))
}

fn runs(size: Size, nodes: u32) -> u64 {
    match nodes {
        ..=64 => size.pick(1_000, 60),
        65..=128 => size.pick(200, 30),
        _ => size.pick(200, 15),
    }
}

fn size_name(strategy: &str, nodes: u32) -> String {
    format!("{strategy} n={nodes}")
}

/// `msdm`: until half of the group knows.
fn half(data: &Table, strategy: &str, nodes: u32) -> Estimate {
    time(data, size_name(strategy, nodes), Metric::MedianDissemination)
}

fn figure_4_6_claims(data: &Table) -> Vec<Claim> {
    let sizes = || sizes(data.size());
    let half = |strategy, nodes| half(data, strategy, nodes);
    let mut claims = Vec::new();
    let flat = STRATEGIES.map(|strategy| {
        let all = || sizes().map(|n| ((), first_detection(data, size_name(strategy, n))));
        (strategy, value_of(most(all())) / value_of(least(all())))
    });
    let (worst, ratio) = extreme(most(flat), |strategy, ratio| format!("{ratio} ({strategy})"));
    claims.push(
        data
            .claim("The mean first detection does not depend on the group, largest over smallest, every strategy", "constant")
            .showing(worst)
            .at_most(ratio, 1.12),
    );
    let end = largest(data.size());
    for (strategy, published) in [("medley", "3.75 for 2048"), ("both", "3.70 for 2048")] {
        claims.push(
            data.claim(
                format!("How many-fold msdm grows from 32 to {end} nodes ({strategy})"),
                published,
            )
            .at_most(half(strategy, end) / half(strategy, 32), 8.0),
        );
        let points = |x: fn(f64) -> f64| {
            sizes().map(|n| (x(f64::from(n)), half(strategy, n))).collect::<Vec<_>>()
        };
        let root: Vec<_> = points(libm::sqrt).into_iter().map(|(x, y)| (x, y.value)).collect();
        let log: Vec<_> = points(libm::log2).into_iter().map(|(x, y)| (x, y.value)).collect();
        claims.push(
            data.claim(format!("msdm is a + b log2 N ({strategy})"), "O(log N)")
                .showing(format!("R² = {:.3}; {:.3} for a + b √N", fit(&log), fit(&root)))
                .linear(&points(libm::log2), 0.8),
        );
    }
    let quotients: Vec<_> =
        sizes().filter(|&n| n >= 64).map(|n| (n, half("both", n) / half("medley", n))).collect();
    let (worst, _) =
        extreme(most(quotients.iter().copied()), |n, ratio| format!("at most {ratio} (N = {n})"));
    claims.push(
        data.claim("msdm of both feedbacks by Medley's, at every N from 64", "0.66 to 0.73")
            .showing(worst)
            .at_most(quotients.into_iter().map(|(_, ratio)| ratio).collect::<Vec<_>>(), 0.8),
    );
    let missing = |strategy, n| data.estimate(size_name(strategy, n), Metric::Incomplete) * 100.0;
    let fewer = sizes().all(|n| missing("both", n).value <= missing("medley", n).value);
    let shares = [missing("medley", end), missing("both", end)];
    claims.push(
        data
            .claim(
                format!("With both no more nodes never hear of the crash than with none, at every N (shown: Medley, both at {end})"),
                "0.30 and about 0.01% at 2048",
            )
            .holds(list(shares.map(percent)), fewer),
    );
    claims
}

fn figure_4_6(data: &Table) -> Vec<Figure> {
    /// The vector figure of the authors.
    const PUBLISHED: [[f64; 7]; 4] = [
        [48.0, 64.0, 122.0, 137.0, 149.0, 151.0, 180.0],
        [42.0, 59.0, 113.0, 131.0, 141.0, 150.0, 151.0],
        [35.0, 46.0, 82.0, 97.0, 108.0, 113.0, 116.0],
        [33.0, 42.0, 80.0, 95.0, 103.0, 110.0, 122.0],
    ];
    let sizes = || sizes(data.size());
    let (mut first, mut half_knows) = (Vec::new(), Vec::new());
    for (colour, (strategy, published)) in STRATEGIES.into_iter().zip(PUBLISHED).enumerate() {
        let dfdt = sizes().map(|n| (f64::from(n), dfdt(data, size_name(strategy, n))));
        first.push(Series::measured(strategy, colour, dfdt));
        let msdm = sizes().map(|n| (f64::from(n), half(data, strategy, n)));
        half_knows.push(Series::measured(strategy, colour, msdm));
        let line = sizes().map(f64::from).zip(published);
        half_knows.push(Series::analytic(format!("{strategy}, published"), colour, line));
    }
    let axes = || (Axis::log("nodes"), Axis::linear(UNITS));
    let (dfdt, msdm) = (BEYOND_FLOOR, "From the first detection until half of the group knows");
    vec![
        Figure::new("wang-fig-4.6-dfdt", dfdt, axes(), first),
        Figure::new("wang-fig-4.6-msdm", msdm, axes(), half_knows),
    ]
}
