//! `bellwether lab`: the papers' experiments.

mod cells;

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

use bellwether_lab::{
    claim::Claim,
    experiment::{Experiment, Size, Work},
    experiments,
    report::{self, Section},
    runner::{self, LabError, Plan, Shard, Share},
    store::{Manifest, Store, StoreError},
};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::{
    output::{Failure, about},
    runs::{on_threads, progress, unknown_name, whole},
};

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Other(error.to_string())
    }
}

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the experiments
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the cells of experiments: id, digest, and about how long each takes
    Cells(cells::Args),
    /// Run experiments, or what is left of them, and judge their claims
    Run(Run),
    /// Print a cell of an experiment as a scenario that `bellwether sim` runs to the same numbers
    Show {
        /// Which experiment; `bellwether lab list` names them
        #[arg(value_name = "ID")]
        id: String,
        /// Which cell; without one, all are listed
        #[arg(value_name = "CELL")]
        cell: Option<String>,
        /// As `lab run --quick` runs it
        #[arg(long)]
        quick: bool,
        /// The seed all seeds are derived from
        #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole)]
        seed: u64,
    },
    /// Merge directories of results, such as those of several shards
    Merge {
        /// Where to put the results
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Where to take them from
        #[arg(required = true, value_name = "DIR")]
        from: Vec<PathBuf>,
    },
    /// Write one page with every claim and figure
    Report {
        /// Where the results are
        #[arg(long, value_name = "DIR", default_value = FULL)]
        out: PathBuf,
        /// The page to write; by default report.html beside the results
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Also write the table of claims as claims.md and every figure as SVG into this directory
        #[arg(long, value_name = "DIR")]
        docs: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
struct Run {
    /// The experiments to run, as `bellwether lab list` names them
    #[arg(value_name = "ID", required_unless_present_any = ["all", "cells"])]
    ids: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Run this cell alone, as `bellwether lab cells` names it; may be repeated. Merge the results afterwards
    #[arg(long = "cell", value_name = "ID", conflicts_with_all = ["ids", "all", "shard"])]
    cells: Vec<String>,
    /// Fewer runs of smaller worlds: the same claims, judged with wider intervals
    #[arg(long)]
    quick: bool,
    /// Print the claims as JSON
    #[arg(long)]
    json: bool,
    /// Where to keep results; by default lab-out/quick or lab-out/full
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The seed all seeds are derived from
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole)]
    seed: u64,
    /// Run only every n-th cell, from the i-th on; merge the shards afterwards
    #[arg(long, value_name = "I/N")]
    shard: Option<ShardArg>,
    /// Threads to use; the results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

#[derive(Clone, Copy)]
struct ShardArg(Shard);

impl FromStr for ShardArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(index, of)| {
            Some(Shard { index: index.parse().ok()?, of: of.parse().ok()? })
        });
        match parts {
            Some(shard) if (1..=shard.of).contains(&shard.index) => Ok(Self(shard)),
            _ => Err("write i/n, such as 1/2 and 2/2".into()),
        }
    }
}

impl Args {
    pub(crate) fn json(&self) -> bool {
        match &self.command {
            Command::List { json } => *json,
            Command::Cells(cells) => cells.json,
            Command::Run(run) => run.json,
            Command::Show { .. } | Command::Merge { .. } | Command::Report { .. } => false,
        }
    }
}

/// True if every claim has the verdict it is recorded with.
pub(crate) fn run(args: Args) -> Result<bool, Failure> {
    match args.command {
        Command::List { json } => list(json),
        Command::Cells(args) => cells::list(&args),
        Command::Run(run) => run_some(&run),
        Command::Show { id, cell, quick, seed } => show(&id, cell.as_deref(), quick, seed),
        Command::Merge { out, from } => merge(&out, &from),
        Command::Report { out, html, docs } => write_report(&out, html.as_deref(), docs.as_deref()),
    }
}

fn list(json: bool) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    let all = experiments::all();
    if json {
        let entry = |one: &Experiment| {
            let cells = (one.cells)(Size::Full);
            let runs: u64 = cells.iter().map(|cell| cell.runs).sum();
            json!({
                "id": one.id, "title": one.title, "source": one.source,
                "cells": cells.len(), "runs": runs,
            })
        };
        writeln!(out, "{}", Value::Array(all.iter().map(entry).collect()))?;
        return Ok(true);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["id", "cells", "runs", "what it shows"]);
    for experiment in &all {
        let cells = (experiment.cells)(Size::Full);
        let runs: u64 = cells.iter().map(|cell| cell.runs).sum();
        let (id, title) = (experiment.id.to_owned(), experiment.title.to_owned());
        table.add_row([id, cells.len().to_string(), runs.to_string(), title]);
    }
    writeln!(out, "{table}")?;
    Ok(true)
}

fn show(id: &str, cell: Option<&str>, quick: bool, seed: u64) -> Result<bool, Failure> {
    let size = if quick { Size::Quick } else { Size::Full };
    let mut out = io::stdout().lock();
    for experiment in chosen(&[id.to_owned()])? {
        let cells = (experiment.cells)(size);
        let Some(wanted) = cell else {
            let mut table = Table::new();
            table.load_preset(presets::NOTHING).set_header(["cell", "runs", "what is run"]);
            for cell in &cells {
                let what = match &cell.work {
                    Work::Scenario(_) => "a scenario".into(),
                    Work::Computation(one) => one.to_string(),
                };
                table.add_row([cell.name.clone(), cell.runs.to_string(), what]);
            }
            writeln!(out, "{table}")?;
            continue;
        };
        let Some(cell) = cells.iter().find(|cell| cell.name == wanted) else {
            let known = cells.iter().map(|cell| format!("{:?}", cell.name));
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(Failure::Other(format!("{id} has no cell {wanted:?}; there are {known}")));
        };
        write!(out, "{}", experiment.shown(cell, size, seed)?)?;
    }
    Ok(true)
}

fn run_some(args: &Run) -> Result<bool, Failure> {
    let size = if args.quick { Size::Quick } else { Size::Full };
    let shard = args.shard.map_or(Shard::WHOLE, |ShardArg(shard)| shard);
    let chosen = match args.cells.as_slice() {
        [] => chosen(&args.ids)?.into_iter().map(|one| (one, Share::Shard(shard))).collect(),
        named => cells::named(named, size)?,
    };
    let folder = args.out.clone().unwrap_or_else(|| if args.quick { QUICK } else { FULL }.into());
    let store = Store::create(&folder, Manifest::new(size, args.seed))?;
    let mut whole = Plan::default();
    let mut seen = BTreeSet::new();
    // Experiments that look at the same runs have them run once.
    for (experiment, share) in chosen.iter().filter(|(one, _)| seen.insert(one.kept_as(size))) {
        let plan = runner::plan(experiment, &store, share)?;
        whole.cells += plan.cells;
        whole.runs += plan.runs;
        whole.done += plan.done;
    }
    if !args.json {
        let Plan { cells, runs, done } = whole;
        eprintln!("{cells} cells to run, {runs} runs; {done} cells are in {}", folder.display());
    }
    let bar = progress(whole.runs);
    on_threads(args.threads.map(usize::from), || {
        let one =
            |(one, share): &(Experiment, Share)| runner::run(one, &store, share, || bar.inc(1));
        chosen.iter().try_for_each(one)
    })??;
    bar.finish_and_clear();
    let part = match args.cells.len() {
        0 if shard == Shard::WHOLE => None,
        0 => Some(format!("shard {}/{} is complete", shard.index, shard.of)),
        _ => Some("the cells are complete".to_owned()),
    };
    if let Some(part) = part {
        eprintln!("{part}; `bellwether lab merge` puts parts together");
        return Ok(true);
    }
    let mut judged = Vec::new();
    for (experiment, _) in &chosen {
        judged.push((experiment.id, runner::claims(experiment, &store)?));
    }
    print_claims(&judged, args.json)?;
    Ok(judged.iter().flat_map(|(_, claims)| claims).all(Claim::as_recorded))
}

fn chosen(ids: &[String]) -> Result<Vec<Experiment>, Failure> {
    let all = experiments::all();
    if let Some(unknown) = ids.iter().find(|id| all.iter().all(|one| one.id != **id)) {
        return Err(unknown_name("experiment", unknown, all.iter().map(|one| one.id)));
    }
    let wanted = |one: &Experiment| ids.is_empty() || ids.iter().any(|id| id == one.id);
    Ok(all.into_iter().filter(wanted).collect())
}

fn print_claims(judged: &[(&str, Vec<Claim>)], json: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let claims = || judged.iter().flat_map(|(id, claims)| claims.iter().map(move |c| (*id, c)));
    if json {
        let claim = |(id, claim): (&str, &Claim)| {
            json!({
                "experiment": id,
                "claim": claim.sentence,
                "published": claim.published,
                "measured": claim.measured,
                "verdict": claim.verdict.name(),
                "recorded": claim.recorded.name(),
                "reason": claim.reason,
            })
        };
        let all: Vec<Value> = claims().map(claim).collect();
        writeln!(out, "{}", json!({ "claims": all }))?;
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(160);
    }
    table.set_header(["experiment", "claim", "published", "measured", "verdict"]);
    for (id, claim) in claims() {
        let verdict = if claim.as_recorded() {
            claim.verdict.to_string()
        } else {
            format!("{} (on record: {})", claim.verdict, claim.recorded)
        };
        table.add_row([id, &claim.sentence, &claim.published, &claim.measured, &verdict]);
    }
    writeln!(out, "{table}")?;
    let surprises = claims().filter(|(_, claim)| !claim.as_recorded()).count();
    writeln!(out, "{} claims, {surprises} not as recorded", claims().count())?;
    Ok(())
}

fn merge(out: &Path, from: &[PathBuf]) -> Result<bool, Failure> {
    let stores: Vec<Store> =
        from.iter().map(|folder| Store::open(folder)).collect::<Result<_, _>>()?;
    let store = Store::create(out, stores[0].manifest().clone())?;
    let all = experiments::all();
    let mut added = 0;
    for other in &stores {
        added += store.merge(other, &all)?;
    }
    eprintln!("{added} cells added to {}", out.display());
    Ok(true)
}

/// Everything that is complete, drawn; what is not is named.
fn write_report(folder: &Path, html: Option<&Path>, docs: Option<&Path>) -> Result<bool, Failure> {
    let store = Store::open(folder)?;
    let all = experiments::all();
    let mut sections = Vec::new();
    for experiment in &all {
        match runner::results(experiment, &store) {
            Ok(table) => sections.push(Section {
                experiment,
                claims: (experiment.claims)(&table),
                figures: (experiment.figures)(&table),
            }),
            Err(runner::LabError::Incomplete { .. }) => {
                eprintln!("{} is not complete and left out", experiment.id);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let page = html.map_or_else(|| folder.join("report.html"), Path::to_path_buf);
    fs::write(&page, report::html(store.manifest(), &sections)).map_err(about(&page))?;
    eprintln!("wrote {}", page.display());
    if let Some(docs) = docs {
        fs::create_dir_all(docs).map_err(about(docs))?;
        let claims = docs.join("claims.md");
        fs::write(&claims, report::markdown(store.manifest(), &sections))
            .map_err(about(&claims))?;
        for figure in sections.iter().flat_map(|section| &section.figures) {
            let path = docs.join(format!("{}.svg", figure.name));
            fs::write(&path, figure.svg()).map_err(about(&path))?;
        }
        eprintln!("wrote {} and the figures beside it", claims.display());
    }
    Ok(sections.iter().flat_map(|section| &section.claims).all(Claim::as_recorded))
}

const FULL: &str = "lab-out/full";
const QUICK: &str = "lab-out/quick";
