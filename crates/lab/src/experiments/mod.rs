//! Every experiment there is.

mod announce;
mod arbitrated;
mod bandit;
mod central;
mod elections;
mod estimate;
mod medley;

use crate::{
    claim::{Claim, Estimate, Verdict},
    experiment::{Experiment, Size},
    table::Table,
};

/// All experiments, in the order of reports.
pub fn all() -> Vec<Experiment> {
    let groups = [
        announce::all(),
        medley::all(),
        elections::all(),
        estimate::all(),
        arbitrated::all(),
        bandit::all(),
        central::all(),
    ];
    groups.into_iter().flatten().collect()
}

/// Whether a value lies between two bounds: at full size itself, when quick with four standard errors' grace.
fn between(table: &Table, value: Option<Estimate>, low: f64, high: f64) -> bool {
    let grace = match table.size() {
        Size::Full => 0.0,
        Size::Quick => 4.0 / 1.96,
    };
    value.is_some_and(|one| {
        one.value + grace * one.half_width >= low && one.value - grace * one.half_width <= high
    })
}

fn shown(value: Option<Estimate>) -> String {
    value.map_or_else(|| "nothing".into(), |value| value.to_string())
}

/// A value between two bounds.
fn bounded(
    table: &Table,
    sentence: impl Into<String>,
    published: impl Into<String>,
    value: Option<Estimate>,
    low: f64,
    high: f64,
) -> Claim {
    Claim::holds(sentence, published, shown(value), between(table, value, low, high))
}

/// `a / b`.
fn ratio(a: Option<Estimate>, b: Option<Estimate>) -> Option<Estimate> {
    Some(a?.over(b?))
}

/// `a - b`.
fn difference(a: Option<Estimate>, b: Option<Estimate>) -> Option<Estimate> {
    Some(a?.minus(b?))
}

/// A claim that fails at full size, on record; quick runs are too few, or too small, to tell.
fn missed_at_full_size(table: &Table, claim: Claim, reason: &str) -> Claim {
    match table.size() {
        Size::Full => claim.on_record(Verdict::NotReproduced, reason),
        Size::Quick => claim,
    }
}

/// By how many percent `value` is below `of`.
fn reduction(value: Option<Estimate>, of: Option<Estimate>) -> Option<Estimate> {
    let ratio = ratio(value, of)?;
    Some(Estimate { value: 100.0 * (1.0 - ratio.value), half_width: 100.0 * ratio.half_width })
}

fn percent(value: Option<Estimate>) -> String {
    value.map_or_else(
        || "nothing".into(),
        |value| format!("{:.1} ± {:.1}%", value.value, value.half_width),
    )
}

/// Where two are close, the smaller may seem the larger by the width of their intervals.
fn is_ascending(values: &[Option<Estimate>]) -> bool {
    let step = |pair: &[Option<Estimate>]| matches!((pair[0], pair[1]), (Some(a), Some(b)) if a.value - a.half_width <= b.value + b.half_width);
    values.windows(2).all(step)
}

/// How well a straight line over `x` explains the values: `R²`.
fn fit(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
    let together = sum(&|x, y| x * y);
    together * together / (sum(&|x, _| x * x) * sum(&|_, y| y * y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_fitted_exactly_and_noise_is_not() {
        let line = [(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)];
        assert!((fit(&line) - 1.0).abs() < 1e-12);
        assert!(fit(&[(1.0, 0.0), (2.0, 1.0), (3.0, 0.0)]) < 1e-12);
    }
}
