//! Elections of the most central node of a moving network: the thesis's two chapters, its appendix, and what it leaves
//! open.
//!
//! All protocols of a sweep meet the same movements, seed by seed. Of the figures only the numbers quoted in the text
//! survive; the criteria are those of `docs/rules/central.md`. A ratio over a sweep is one of means over its ranges.

mod air;
mod ours;
mod waypoints;

use bellwether_sim::{observe::Log, run::central, scenario::Scenario};

use super::{between, bounded, is_ascending, ratio, shown};
use crate::{
    claim::{Claim, Estimate, Verdict},
    computation::{Found, Value},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
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
    match size {
        Size::Full => 5,
        Size::Quick => 2,
    }
}

/// The mean of a metric over ranges; its interval as if they were independent.
fn over(
    table: &Table,
    rival: &str,
    metric: &str,
    ranges: impl Iterator<Item = u32>,
) -> Option<Estimate> {
    let (mut count, mut value, mut square) = (0.0, 0.0, 0.0);
    for range in ranges {
        let one = table.estimate(&name(rival, range), metric)?;
        count += 1.0;
        value += one.value;
        square += one.half_width * one.half_width;
    }
    (count > 0.0).then(|| Estimate { value: value / count, half_width: libm::sqrt(square) / count })
}

/// One metric of several rivals over all ranges.
fn figure(
    table: &Table,
    (id, title): (&str, &str),
    (metric, label): (&str, &str),
    rivals: &[&str],
    ranges: &[u32],
) -> Figure {
    let series = rivals.iter().enumerate().map(|(colour, rival)| {
        let cells = ranges.iter().map(|&range| (f64::from(range), name(rival, range)));
        Series::cells(*rival, colour, table, metric, cells)
    });
    Figure {
        name: id.into(),
        title: title.into(),
        x: Axis::linear("radio range, m"),
        y: Axis::linear(label),
        series: series.collect(),
    }
}

/// How a run went on the way: the running mean of the instability, and the components.
fn course(scenario: &Scenario, (): &(), seed: u64) -> Found {
    let study = central::study(scenario, seed, Log::none())?.ok_or("no central election")?;
    let mut found = Vec::new();
    for standing in &study.standings {
        let at = standing.at.as_secs_f64();
        found.push(Value::ratio(moment(at as u32), standing.instability));
    }
    let components = study.outcome.values.iter().find(|(metric, _)| metric.name() == "components");
    found.push(Value::count("components", components.and_then(|(_, value)| *value)));
    Ok(found)
}

fn moment(seconds: u32) -> String {
    format!("until {seconds} s")
}

/// The running mean of a rival at some time.
fn until(table: &Table, rival: &str, seconds: u32) -> Option<Estimate> {
    table.estimate(rival, &moment(seconds))
}

/// The standings from one time to another.
fn moments(from: u32, to: u32) -> impl Iterator<Item = u32> {
    (from..=to).step_by(10)
}

fn course_figure(table: &Table, id: &str, title: &str, rivals: &[&str], end: u32) -> Figure {
    let series = rivals.iter().enumerate().map(|(colour, rival)| {
        let points = moments(10, end).map(|at| (f64::from(at), until(table, rival, at)));
        Series::measured(*rival, colour, points)
    });
    Figure {
        name: id.into(),
        title: title.into(),
        x: Axis::linear("time, s"),
        y: Axis::linear("share of time with the wrong leader so far"),
        series: series.collect(),
    }
}

/// A claim that fails at these sizes, on record.
fn missed(table: &Table, claim: Claim, sizes: &[Size], reason: &str) -> Claim {
    match sizes.contains(&table.size()) {
        true => claim.on_record(Verdict::NotReproduced, reason),
        false => claim,
    }
}

const BOTH: &[Size] = &[Size::Full, Size::Quick];

/// Values joined for a claim.
fn listed<const N: usize>(values: [Option<Estimate>; N]) -> String {
    values.map(shown).join(", ")
}
