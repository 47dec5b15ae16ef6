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

use bellwether_sim::observe::Metric;

use crate::{
    claim::{Claim, list, percent},
    estimate::{Estimate, is_ascending, least, most, reduction, value_of},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    scenarios::MEDLEY_FIELD,
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    let chapter = [detection::all(), crashes::all(), cost::all(), scale::all(), movement::all()];
    let ours = [bound::all(), trouble::all()];
    chapter.into_iter().chain(ours).flatten().collect()
}

/// The chapter's strategies at an exponent above 0: their names in figures, and their feedback.
const STRATEGIES: [&str; 4] = ["medley", "active", "passive", "both"];

/// The chapter's exponents.
const EXPONENTS: [u32; 6] = [0, 1, 2, 3, 4, 5];

/// A form of the rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    Published,
    /// As published, but only answers carry news: the reference code's way (M-11).
    PullOnly,
    Hardened,
}

impl Form {
    pub(super) const ALL: [Self; 3] = [Self::Published, Self::PullOnly, Self::Hardened];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::PullOnly => "pull-only",
            Self::Hardened => "hardened",
        }
    }

    pub(super) fn apply(self, cell: Cell) -> Cell {
        match self {
            Self::Published => cell,
            Self::PullOnly => cell.set("membership.carriers", "pull-only"),
            Self::Hardened => cell.set("membership.form", "hardened"),
        }
    }
}

/// The name of the cell of a strategy.
fn name(form: Form, strategy: &str, exponent: u32) -> String {
    match form {
        Form::Published => format!("{strategy} m={exponent}"),
        _ => format!("{} {strategy} m={exponent}", form.name()),
    }
}

/// A strategy of the chapter.
fn cell(form: Form, strategy: &str, exponent: u32, runs: u64) -> Cell {
    let cell = Cell::new(name(form, strategy, exponent), MEDLEY_FIELD, runs);
    strategic(cell, form, strategy, exponent)
}

fn strategic(cell: Cell, form: Form, strategy: &str, exponent: u32) -> Cell {
    let feedback = if STRATEGIES[1..].contains(&strategy) { strategy } else { "none" };
    let cell = cell.set("membership.exponent", exponent).set("membership.feedback", feedback);
    form.apply(cell)
}

/// Every strategy at every exponent, as published.
fn sweep(runs: u64) -> Vec<Cell> {
    let at = |strategy| EXPONENTS.map(|exponent| cell(Form::Published, strategy, exponent, runs));
    STRATEGIES.into_iter().flat_map(at).collect()
}

/// A group at the density of the chapter: 49 nodes on 225 square metres.
pub(super) fn of_size(cell: Cell, nodes: u32) -> Cell {
    let side = libm::sqrt(f64::from(nodes) * 225.0 / 49.0);
    cell.set("network.nodes", nodes).set("network.placement.side", format!("{side:.3}"))
}

/// On the chapter's grid instead.
pub(super) fn on_grid(cell: Cell) -> Cell {
    cell.set("network.placement.kind", "grid")
        .set("network.placement.side", "15.0")
        .set("network.placement.range", "4.0")
}

/// A time of a cell in the chapter's units.
fn time(data: &Table, cell: impl AsRef<str>, metric: Metric) -> Estimate {
    data.estimate(cell, metric) * 10.0
}

fn first_detection(data: &Table, cell: impl AsRef<str>) -> Estimate {
    time(data, cell, Metric::FirstDetection)
}

/// The ninety-fifth percentile of the first detection in the chapter's units. With an exponential tail its standard
/// error is that of the mean times √19.
fn p95(data: &Table, cell: impl AsRef<str>) -> Estimate {
    data.summary(cell, Metric::FirstDetection).map_or(Estimate::NOTHING, |summary| {
        Estimate::known(summary.p95, libm::sqrt(19.0) * summary.standard_error()) * 10.0
    })
}

/// What a detection takes beyond the probe's period and the suspicion: `dfdt`.
fn dfdt(data: &Table, cell: impl AsRef<str>) -> Estimate {
    first_detection(data, cell) - FLOOR
}

/// A row of points over the exponents.
fn over_exponents(
    label: impl Into<String>,
    colour: usize,
    value: impl Fn(u32) -> Estimate,
) -> Series {
    Series::measured(label, colour, EXPONENTS.map(|m| (f64::from(m), value(m))))
}

fn exponent_figure(name: &str, title: &str, y: &str, series: Vec<Series>) -> Figure {
    Figure::new(name, title, (Axis::linear("exponent m"), Axis::linear(y)), series)
}

/// What is said of an extreme value: which, and at what.
fn extreme<T>(
    of: Option<(T, Estimate)>,
    said: impl Fn(T, Estimate) -> String,
) -> (String, Estimate) {
    match of {
        Some((at, value)) => (said(at, value), value),
        None => ("nothing".into(), Estimate::NOTHING),
    }
}

const UNITS: &str = "time units of 100 ms";

/// Period and suspicion: nobody is found sooner (P4).
const FLOOR: f64 = 180.0;

const BEYOND_FLOOR: &str = "First detection less the 180 units it takes at least";
