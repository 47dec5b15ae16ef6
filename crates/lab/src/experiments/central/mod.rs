//! Elections of the most central node of a moving network: the thesis's two chapters, its appendix, and what it leaves
//! open.
//!
//! All protocols of a sweep meet the same movements, seed by seed. Of the figures only the numbers quoted in the text
//! survive; the criteria are those of `docs/rules/central.md`. A ratio over a sweep is one of means over its ranges.

mod air;
mod ours;
mod waypoints;

use bellwether_sim::{
    observe::{Log, Metric, Standing},
    run::central,
    scenario::Scenario,
};

use crate::{
    claim::{Claim, list},
    computation::{Computation, Found, Value},
    estimate::{Estimate, mean},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    measure::{measure, measures},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    [waypoints::all(), air::all(), ours::all()].into_iter().flatten().collect()
}

/// A protocol as a sweep runs it: its name in cells, and what it changes in the scenario.
type Rival = (&'static str, &'static [(&'static str, &'static str)]);

const FD_TICK: Rival = ("fd-tick", &[("profile", "flooding"), ("form", "as-published")]);
const FD_OPT: Rival =
    ("fd-opt", &[("profile", "flooding"), ("form", "as-published"), ("reading", "opt")]);
const TA_C: Rival = ("TA-C", &[("profile", "topology-aware"), ("form", "as-published")]);
const TA_D: Rival =
    ("TA-D", &[("profile", "topology-aware"), ("form", "as-published"), ("criterion", "degree")]);

fn set(cell: Cell, (_, settings): Rival) -> Cell {
    settings.iter().fold(cell, |cell, (key, value)| {
        cell.set(&format!("election.{key}"), format!("\"{value}\""))
    })
}

fn name(rival: &str, range: u32) -> String {
    format!("{rival} {range} m")
}

/// Five movements at full size, as `docs/rules/central.md` asks; two when quick.
fn runs(size: Size) -> u64 {
    size.pick(5, 2)
}

fn seconds(cell: Cell, seconds: u32) -> Cell {
    cell.set("duration", format!("{seconds}s"))
}

/// The mean of a measure over ranges; its error as if they were independent.
fn over(
    data: &Table,
    rival: &str,
    measure: impl crate::measure::Measure + Copy,
    ranges: impl Iterator<Item = u32>,
) -> Estimate {
    mean(ranges.map(|range| data.estimate(name(rival, range), measure)))
}

/// One metric of several rivals over all ranges.
fn figure(
    data: &Table,
    id: &str,
    (metric, label): (Metric, &str),
    rivals: &[&str],
    ranges: &[u32],
) -> Vec<Figure> {
    let series = rivals.iter().enumerate().map(|(colour, rival)| {
        let cells = ranges.iter().map(|&range| (f64::from(range), name(rival, range)));
        Series::cells(*rival, colour, data, metric, cells)
    });
    let axes = (Axis::linear("radio range, m"), Axis::linear(label));
    vec![Figure::new(id, label, axes, series)]
}

/// How a run went on the way: the running mean of the instability, and the components.
fn course(scenario: &Scenario, (): &(), seed: u64) -> Found {
    let study = central::study(scenario, seed, Log::none())?.ok_or("no central election")?;
    let standing =
        |one: &Standing| Value::ratio(Until(one.at.as_secs_f64() as u32), one.instability);
    let mut found: Vec<Value> = study.standings.iter().map(standing).collect();
    found.push(Value::count(Metric::Components, study.outcome.value(Metric::Components)));
    Ok(found)
}

measure!(
    /// The running mean of the instability.
    Until(seconds: u32) = "until {seconds} s"
);

/// The running mean of a rival at some time.
fn until(data: &Table, rival: &str, seconds: u32) -> Estimate {
    data.estimate(rival, Until(seconds))
}

/// The standings from one time to another.
fn moments(from: u32, to: u32) -> impl Iterator<Item = u32> {
    (from..=to).step_by(10)
}

fn course_figure(data: &Table, id: &str, title: &str, rivals: &[&str], end: u32) -> Vec<Figure> {
    let series = rivals.iter().enumerate().map(|(colour, rival)| {
        let points = moments(10, end).map(|at| (f64::from(at), until(data, rival, at)));
        Series::measured(*rival, colour, points)
    });
    let y = Axis::linear("share of time with the wrong leader so far");
    vec![Figure::new(id, title, (Axis::linear("time, s"), y), series)]
}

/// The least of some values; nothing if one is.
fn least(values: impl Iterator<Item = Estimate>) -> Estimate {
    let least = crate::estimate::least(values.map(|one| ((), one)));
    Estimate::exact(crate::estimate::value_of(least).value)
}

const BOTH: &[Size] = &[Size::Full, Size::Quick];
const FULL: &[Size] = &[Size::Full];
const WRONG: &str = "share of time with the wrong leader";
