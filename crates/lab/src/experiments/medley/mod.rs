//! The membership chapters: SWIM, Medley and Medley-F on a field of radios.
//!
//! Set-up of chapter 4: 49 nodes drawn on 15 m x 15 m with range 4 m, a field that stays connected whichever
//! node is lost; up to 5 ms a hop; one random crash after 180 s of 300 s; targets from a bag, periods in phase
//! (M-21), 1,000 runs a point. Times are in the chapter's units of 100 ms. What is claimed of the published
//! algorithm is judged by its published form; the hardened form stands beside it where it differs.

mod bound;
mod cost;
mod crashes;
mod detection;
mod movement;
mod scale;
mod trouble;

use super::{
    between, bounded, difference, fit, is_ascending, missed_at_full_size, percent, ratio,
    reduction, shown,
};
use crate::{
    claim::{Claim, Estimate},
    experiment::{Cell, Experiment},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    let chapter = [detection::all(), crashes::all(), cost::all(), scale::all(), movement::all()];
    let ours = [bound::all(), trouble::all()];
    chapter.into_iter().chain(ours).flatten().collect()
}

/// The set-up of chapter 4.
const FIELD: &str = r#"
    name = "chapter 4"
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
    feedback = "none"
    [[fault]]
    at = "180s"
    kind = "crash"
    count = 1
"#;

/// The same without the crash.
const QUIET: &str = r#"
    name = "chapter 4, nobody crashes"
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
    feedback = "none"
"#;

/// The chapter's strategies at an exponent above 0: their names in figures, and their feedback.
const STRATEGIES: [(&str, &str); 4] =
    [("medley", "none"), ("active", "active"), ("passive", "passive"), ("both", "both")];

/// The chapter's exponents.
const EXPONENTS: [u32; 6] = [0, 1, 2, 3, 4, 5];

/// A form of the rules.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Published,
    /// As published, but only answers carry news: the reference code's way (M-11).
    PullOnly,
    Hardened,
}

/// The name of the cell of a strategy.
fn name(form: Form, strategy: &str, exponent: u32) -> String {
    match form {
        Form::Published => format!("{strategy} m={exponent}"),
        Form::PullOnly => format!("pull-only {strategy} m={exponent}"),
        Form::Hardened => format!("hardened {strategy} m={exponent}"),
    }
}

/// A strategy of the chapter.
fn cell(form: Form, strategy: &str, exponent: u32, base: &'static str, runs: u64) -> Cell {
    strategic(Cell::new(name(form, strategy, exponent), base, runs), form, strategy, exponent)
}

fn strategic(cell: Cell, form: Form, strategy: &str, exponent: u32) -> Cell {
    let feedback = STRATEGIES.iter().find(|(name, _)| *name == strategy);
    let feedback = feedback.map_or("none", |(_, feedback)| feedback);
    let cell = cell.set("membership.exponent", exponent).set("membership.feedback", feedback);
    match form {
        Form::Published => cell,
        Form::PullOnly => cell.set("membership.carriers", "pull-only"),
        Form::Hardened => cell.set("membership.form", "hardened"),
    }
}

/// Every strategy at every exponent, as published.
fn sweep(runs: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (strategy, _) in STRATEGIES {
        let at = |exponent| cell(Form::Published, strategy, exponent, FIELD, runs);
        cells.extend(EXPONENTS.map(at));
    }
    cells
}

/// A time in the chapter's units.
fn units(seconds: Estimate) -> Estimate {
    Estimate { value: 10.0 * seconds.value, half_width: 10.0 * seconds.half_width }
}

/// A time of a cell in the chapter's units.
fn time(table: &Table, cell: &str, metric: &str) -> Option<Estimate> {
    table.estimate(cell, metric).map(units)
}

/// The ninety-fifth percentile of a time in the chapter's units. With an exponential tail its standard
/// error is that of the mean times √19.
fn p95(table: &Table, cell: &str, metric: &str) -> Option<Estimate> {
    let summary = table.summary(cell, metric)?;
    let error = libm::sqrt(19.0) * summary.standard_error();
    Some(units(Estimate { value: summary.p95, half_width: 1.96 * error }))
}

/// What a detection takes beyond the probe's period and the suspicion.
fn beyond_the_floor(first_detection: Option<Estimate>) -> Option<Estimate> {
    first_detection.map(|one| Estimate { value: one.value - FLOOR, ..one })
}

/// `dfdt`.
fn dfdt(table: &Table, cell: &str) -> Option<Estimate> {
    beyond_the_floor(time(table, cell, "first_detection"))
}

/// The largest of some values that have a name.
fn largest<T>(values: impl IntoIterator<Item = (T, Option<Estimate>)>) -> Option<(T, Estimate)> {
    let there = values.into_iter().filter_map(|(of, value)| Some((of, value?)));
    there.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
}

/// The smallest of some values that have a name; `None` if one is missing.
fn smallest<T>(values: impl IntoIterator<Item = (T, Option<Estimate>)>) -> Option<(T, Estimate)> {
    let all = values.into_iter().map(|(of, value)| Some((of, value?))).collect::<Option<Vec<_>>>();
    all?.into_iter().min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
}

/// Some value is at least `low` percent.
fn at_least_percent(
    table: &Table,
    sentence: impl Into<String>,
    published: impl Into<String>,
    value: Option<Estimate>,
    low: f64,
) -> Claim {
    let holds = between(table, value, low, f64::INFINITY);
    Claim::holds(sentence, published, percent(value), holds)
}

/// Several values in their order, each with one decimal.
fn listed(values: impl IntoIterator<Item = Option<Estimate>>) -> String {
    let one = |value: Option<Estimate>| {
        value.map_or_else(|| "nothing".into(), |value| format!("{:.1}", value.value))
    };
    values.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A row of points over the exponents.
fn over_exponents(
    label: impl Into<String>,
    colour: usize,
    value: impl Fn(u32) -> Option<Estimate>,
) -> Series {
    Series::measured(label, colour, EXPONENTS.map(|m| (f64::from(m), value(m))))
}

fn exponent_figure(name: &str, title: &str, y: &str, series: Vec<Series>) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        x: Axis::linear("exponent m"),
        y: Axis::linear(y),
        series,
    }
}

/// Period and suspicion: nobody is found sooner (P4).
const FLOOR: f64 = 180.0;
