//! `bellwether lab cells`: what there is to run, one by one, for engines that spread work over machines.

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

use bellwether_lab::{
    experiment::{Cell, Experiment, Size},
    runner::{self, LabError, Share},
};
use comfy_table::{Table, presets};
use rayon::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::chosen;
use crate::{
    output::Failure,
    runs::{on_threads, progress, unknown_name, whole},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The experiments whose cells to list, as `bellwether lab list` names them
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// As `lab run --quick` runs them
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The seed all seeds are derived from
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole)]
    seed: u64,
    /// Threads to use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

struct Listed {
    id: String,
    experiment: &'static str,
    file: &'static str,
    digest: String,
    runs: u64,
    /// Seconds of one thread.
    cost: f64,
}

/// Lists cells, those that take longest first. Each is tried once, to know.
pub(super) fn list(args: &Args) -> Result<bool, Failure> {
    let size = if args.quick { Size::Quick } else { Size::Full };
    let mut seen = BTreeSet::new();
    let mut cells = Vec::new();
    // Experiments that look at the same runs have the same cells.
    let experiments = chosen(&args.ids)?;
    for experiment in experiments.iter().filter(|one| seen.insert(one.kept_as(size))) {
        cells.extend((experiment.cells)(size).into_iter().map(|cell| (experiment, cell)));
    }
    let bar = progress(cells.len() as u64);
    let mut listed = on_threads(args.threads.map(usize::from), || {
        cells
            .into_par_iter()
            .map(|(experiment, cell)| {
                let listed = tried(experiment, &cell, size, args.seed);
                bar.inc(1);
                listed
            })
            .collect::<Result<Vec<_>, _>>()
    })??;
    bar.finish_and_clear();
    listed.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    print(&listed, args.json)
}

fn tried(experiment: &Experiment, cell: &Cell, size: Size, root: u64) -> Result<Listed, LabError> {
    let kept_as = experiment.kept_as(size);
    let digest = runner::digest(experiment, cell, size, root)?;
    let once = Cell { runs: 1, ..cell.clone() };
    // Of this thread alone: others run meanwhile, and perhaps other programs.
    let begun = clock_gettime(ClockId::ThreadCPUTime);
    runner::measure(experiment.id, &once, cell.seed(kept_as, root), || ())?;
    let took = clock_gettime(ClockId::ThreadCPUTime) - begun;
    let seconds = took.tv_sec as f64 + took.tv_nsec as f64 / 1e9;
    Ok(Listed {
        id: format!("{kept_as}/{}", cell.name),
        experiment: experiment.id,
        file: kept_as,
        digest,
        runs: cell.runs,
        cost: seconds * cell.runs as f64,
    })
}

fn print(listed: &[Listed], json: bool) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    if json {
        let one = |cell: &Listed| {
            json!({
                "id": cell.id,
                "experiment": cell.experiment,
                "file": format!("{}.csv", cell.file),
                "digest": cell.digest,
                "runs": cell.runs,
                "cost": cell.cost,
            })
        };
        writeln!(out, "{}", Value::Array(listed.iter().map(one).collect()))?;
        return Ok(true);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["cell", "runs", "about", "digest"]);
    for cell in listed {
        let cost = format!("{:.3} s", cell.cost);
        table.add_row([cell.id.clone(), cell.runs.to_string(), cost, cell.digest.clone()]);
    }
    writeln!(out, "{table}")?;
    Ok(true)
}

/// The experiments with cells of these ids, and which cells of each.
pub(super) fn named(ids: &[String], size: Size) -> Result<Vec<(Experiment, Share)>, Failure> {
    let mut left: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for experiment in chosen(&[])? {
        let kept_as = experiment.kept_as(size);
        if !seen.insert(kept_as) {
            continue;
        }
        let mut names = BTreeSet::new();
        for cell in (experiment.cells)(size) {
            let id = format!("{kept_as}/{}", cell.name);
            if left.remove(id.as_str()) {
                names.insert(cell.name);
            }
            all.push(id);
        }
        if !names.is_empty() {
            found.push((experiment, Share::Cells(names)));
        }
    }
    match left.first() {
        None => Ok(found),
        Some(unknown) => Err(unknown_name("cell", unknown, all.iter().map(String::as_str))),
    }
}
