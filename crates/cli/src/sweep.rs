//! `bellwether sim --sweep`: one scenario with every combination of some values; and its runs as rows.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Write},
    path::Path,
    str::FromStr,
};

use bellwether_sim::{
    observe::Metric,
    run::{Report, run_many},
    scenario::Scenario,
};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, json};

use crate::{
    output::{Failure, about},
    runs::{on_threads, progress},
    sim::{Args, create, number},
};

/// A field and the values it is to have.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    path: String,
    values: Vec<String>,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, values) =
            text.split_once('=').ok_or("write PATH=A,B,C: a field and its values")?;
        let (path, values) = (path.trim().to_owned(), separate(values));
        if path.is_empty() || values.iter().any(String::is_empty) {
            return Err("write PATH=A,B,C: a field and its values, none of them empty".into());
        }
        Ok(Self { path, values })
    }
}

/// At commas outside of quotes and brackets.
fn separate(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quoted) = (vec![String::new()], 0_u32, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is always one").push(c);
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

/// A value for each sweep, and what came of it.
pub(crate) type Cell = (Vec<String>, Report);

/// True if every invariant held in every cell.
pub(crate) fn run(args: &Args) -> Result<bool, Failure> {
    let combinations = combinations(&args.sweeps);
    let scenarios = combinations.into_iter().map(|values| {
        let of = args.sweeps.iter().zip(&values);
        let mut sets = args.sets.clone();
        sets.extend(of.map(|(sweep, value)| format!("{}={value}", sweep.path)));
        Ok((values, args.scenario(&sets)?))
    });
    // All are read before the first is run: a value that is wrong is known at once.
    let scenarios = scenarios.collect::<Result<Vec<_>, Failure>>()?;
    let bar = progress(args.runs * scenarios.len() as u64);
    let cells = on_threads(args.threads.map(usize::from), || {
        let cell = |(values, scenario): (Vec<String>, Scenario)| {
            Ok((values, run_many(&scenario, args.seed, args.runs, || bar.inc(1))?))
        };
        scenarios.into_iter().map(cell).collect::<Result<Vec<Cell>, Failure>>()
    })??;
    bar.finish_and_clear();
    if let Some(path) = &args.csv {
        write_csv(path, &args.sweeps, &cells)?;
    }
    #[cfg(feature = "lab")]
    if let Some(path) = &args.plot {
        plot(path, args, &cells)?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        let cells = cells.iter().map(|(values, report)| {
            let set = args.sweeps.iter().zip(values);
            let set: Map<_, _> =
                set.map(|(sweep, value)| (sweep.path.clone(), json!(value))).collect();
            json!({ "set": set, "report": report.to_json() })
        });
        writeln!(out, "{}", json!({ "cells": cells.collect::<Vec<_>>() }))?;
    } else {
        writeln!(out, "{}", table(args, &cells)?)?;
    }
    let mut violations = cells.iter().flat_map(|(_, report)| report.violations());
    Ok(violations.next().is_none())
}

/// Every combination, the last sweep changing fastest.
fn combinations(sweeps: &[Sweep]) -> Vec<Vec<String>> {
    sweeps.iter().fold(vec![Vec::new()], |all, sweep| {
        let with = |before: &Vec<String>| {
            let before = before.clone();
            sweep
                .values
                .iter()
                .map(move |value| [before.as_slice(), std::slice::from_ref(value)].concat())
        };
        all.iter().flat_map(with).collect()
    })
}

/// A row for each cell, a column for each metric: mean and standard error.
fn table(args: &Args, cells: &[Cell]) -> Result<Table, Failure> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let mut header: Vec<String> = args.sweeps.iter().map(|sweep| sweep.path.clone()).collect();
    for (at, (values, report)) in cells.iter().enumerate() {
        let metrics = args.shown(report)?;
        if at == 0 {
            header.extend(metrics.iter().map(|(metric, _)| metric.to_string()));
            table.set_header(header.clone());
        }
        let shown = metrics.into_iter().map(|(metric, summary)| match summary {
            Some(of) if of.count > 1 => {
                let show = |value| number(value, metric.unit());
                format!("{} ± {}", show(of.mean), show(of.standard_error()))
            }
            Some(of) => number(of.mean, metric.unit()),
            None => "–".to_owned(),
        });
        table.add_row(values.iter().cloned().chain(shown));
    }
    for column in table.column_iter_mut().skip(args.sweeps.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Ok(table)
}

/// A row for each run: the swept values, seed, trace and every metric that any cell has.
pub(crate) fn write_csv(path: &Path, sweeps: &[Sweep], cells: &[Cell]) -> Result<(), Failure> {
    let mut metrics: Vec<Metric> = Vec::new();
    for (metric, _) in cells.iter().flat_map(|(_, report)| report.metrics()) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let mut out = BufWriter::new(create(path)?);
    let mut line = |fields: Vec<String>| {
        let quoted: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        writeln!(out, "{}", quoted.join(","))
    };
    let names = sweeps.iter().map(|sweep| sweep.path.clone());
    let names = names.chain(["seed", "trace"].map(str::to_owned));
    let written = line(names.chain(metrics.iter().map(Metric::to_string)).collect());
    let rows = cells.iter().flat_map(|(values, report)| {
        report.outcomes.iter().map(|outcome| {
            let own = [outcome.seed.to_string(), outcome.trace.to_string()];
            let measured = metrics.iter().map(|&metric| {
                outcome.value(metric).map_or(String::new(), |value| value.to_string())
            });
            values.iter().cloned().chain(own).chain(measured).collect::<Vec<_>>()
        })
    });
    let mut rows = rows;
    let written = written.and_then(|()| rows.try_for_each(&mut line));
    written.and_then(|()| out.flush()).map_err(about(path))
}

/// As RFC 4180 has it.
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

/// Every metric over the first sweep, a figure for each.
#[cfg(feature = "lab")]
fn plot(path: &Path, args: &Args, cells: &[Cell]) -> Result<(), Failure> {
    let metrics = cells.first().map(|(_, report)| args.shown(report)).transpose()?;
    let metrics = metrics.unwrap_or_default();
    for (metric, _) in &metrics {
        let named = match metrics.len() {
            1 => path.to_owned(),
            _ => beside(path, metric.name()),
        };
        draw(&named, &args.sweeps, *metric, cells)?;
    }
    Ok(())
}

/// `figures/delay.svg` becomes `figures/delay-messages.svg`.
#[cfg(feature = "lab")]
fn beside(path: &Path, metric: &str) -> std::path::PathBuf {
    let part = |of: Option<&std::ffi::OsStr>| of.map(|of| of.to_string_lossy().into_owned());
    let stem = part(path.file_stem()).unwrap_or_default();
    let ending = part(path.extension()).map_or(String::new(), |ending| format!(".{ending}"));
    path.with_file_name(format!("{stem}-{metric}{ending}"))
}

/// The metric over the first sweep, a series for each combination of the others.
#[cfg(feature = "lab")]
fn draw(path: &Path, sweeps: &[Sweep], metric: Metric, cells: &[Cell]) -> Result<(), Failure> {
    use bellwether_lab::{
        estimate::Estimate,
        figure::{Axis, Figure, Series},
    };
    let [first, others @ ..] = sweeps else { return Ok(()) };
    // Values that are numbers, or times, have their places; others have names.
    let places: Option<Vec<f64>> = first.values.iter().map(|value| place(value)).collect();
    let x = match &places {
        Some(_) => Axis::linear(&first.path),
        None => Axis::named(&first.path, first.values.clone()),
    };
    let at = |value: &String| {
        let index = first.values.iter().position(|other| other == value).unwrap_or_default();
        places.as_ref().map_or(index as f64 + 1.0, |places| places[index])
    };
    let mut lines: BTreeMap<usize, (String, Vec<_>)> = BTreeMap::new();
    let kinds = combinations(others);
    for (values, report) in cells {
        let rest = &values[1..];
        let index = kinds.iter().position(|kind| kind == rest).unwrap_or_default();
        let name = || {
            let of = others.iter().zip(rest);
            let named = of.map(|(sweep, value)| format!("{}={value}", sweep.path));
            named.collect::<Vec<_>>().join(", ")
        };
        let estimate =
            report.summary(metric).map_or(Estimate::NOTHING, |summary| Estimate::of(&summary));
        let (_, points) = lines.entry(index).or_insert_with(|| (name(), Vec::new()));
        points.push((at(&values[0]), estimate));
    }
    let series = lines.into_iter().map(|(colour, (name, points))| {
        let name = if name.is_empty() { metric.to_string() } else { name };
        Series::measured(name, colour, points)
    });
    let title = cells.first().map_or(String::new(), |(_, report)| report.name.clone());
    let y = Axis::linear(format!("{metric} [{}]", metric.unit()));
    let figure = Figure { name: metric.to_string(), title, x, y, series: series.collect() };
    create(path)?.write_all(figure.svg().as_bytes()).map_err(about(path))
}

/// Where a value lies on an axis: a number, or a time in seconds.
#[cfg(feature = "lab")]
fn place(value: &str) -> Option<f64> {
    let number = value.parse().ok().filter(|number: &f64| number.is_finite());
    let time = || value.trim_matches('"').parse::<bellwether_proto::Duration>().ok();
    number.or_else(|| time().map(|time| time.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_outside_of_brackets_and_quotes() {
        assert_eq!(separate("1, 2,3"), ["1", "2", "3"]);
        assert_eq!(
            separate(r#"[1, 2],{ a = "x,y" },"p,q""#),
            ["[1, 2]", r#"{ a = "x,y" }"#, r#""p,q""#]
        );
        assert!("network.nodes".parse::<Sweep>().is_err());
        assert!("network.nodes=1,,2".parse::<Sweep>().is_err());
    }

    #[test]
    fn the_last_sweep_changes_fastest() {
        let sweeps = ["a=1,2", "b=x,y"].map(|text| text.parse().unwrap());
        assert_eq!(combinations(&sweeps), [["1", "x"], ["1", "y"], ["2", "x"], ["2", "y"]]);
    }

    #[cfg(feature = "lab")]
    #[test]
    fn each_of_several_metrics_has_a_figure_of_its_own() {
        let named = |path: &str| beside(Path::new(path), "messages").display().to_string();
        assert_eq!(named("figures/delay.svg"), "figures/delay-messages.svg");
        assert_eq!(named("delay"), "delay-messages");
    }

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(
            [quoted("1.5"), quoted("[1, 2]"), quoted("a\"b")],
            ["1.5", "\"[1, 2]\"", "\"a\"\"b\""]
        );
    }
}
