//! `bellwether sim`: runs of one scenario.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use bellwether_proto::{Duration, NodeId};
use bellwether_sim::{
    lists::membership_trace::INTERVAL,
    observe::{Entry, Log, Metric, Naming, Namings, Summary, Unit},
    run::{Report, record_membership, run_logged, run_many},
    scenario::Scenario,
};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;

use crate::{
    field,
    output::{Failure, about},
    play,
    runs::{at_least_one, entry_json, on_threads, print_step, progress, unknown_name, whole},
    sweep::{self, Sweep},
};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The scenario file
    pub(crate) file: PathBuf,
    /// The seed of the first run; the others follow it one by one
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole)]
    pub(crate) seed: u64,
    /// How many runs, each with its own seed
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) runs: u64,
    /// Let the nodes be agents with these settings: `timing`, `membership` and `election` of a settings file
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Override a field of the scenario; may be repeated. PATH=none removes a
    /// table: membership=none
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Run with each of these values; of several, with every combination
    #[arg(long = "sweep", value_name = "PATH=A,B,C", conflicts_with = "replay")]
    pub(crate) sweeps: Vec<Sweep>,
    /// Show only these metrics; may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    pub(crate) metrics: Vec<String>,
    /// Write a row for each run to a new file: seed, trace and every metric
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw each --metric over the first --sweep, a line for each combination of
    /// the others, to a new file; of several metrics to FILE-METRIC.svg
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "FILE.svg", requires_all = ["sweeps", "metrics"])]
    pub(crate) plot: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the event log of the run to a new file, one JSON object a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "replay"])]
    trace: Option<PathBuf>,
    /// Write what all nodes list every two seconds to a new file; needs a membership, and one run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "replay"])]
    record_membership: Option<PathBuf>,
    /// Write how the nodes move to a new file, in BonnMotion's format; compressed if its name ends in .gz
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "replay"])]
    movement: Option<PathBuf>,
    /// Write when links come and go to a new file: seconds, both nodes, 1 or 0
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "replay"])]
    links: Option<PathBuf>,
    /// Write a page that is one file and shows the run, as `play` does
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["runs", "replay"])]
    film: Option<PathBuf>,
    /// Write pictures of the field into a folder, an animation and a page to look at them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["runs", "replay"])]
    frames: Option<PathBuf>,
    /// Simulated time between two pictures
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "frames", value_parser = span)]
    every: Duration,
    /// Print one run step by step
    #[arg(long, value_name = "SEED", conflicts_with_all = ["runs", "seed"], value_parser = whole)]
    replay: Option<u64>,
    /// Of these steps, only those of this node; may be repeated
    #[arg(long = "node", value_name = "N", requires = "replay")]
    nodes: Vec<u64>,
    /// Instead of steps, only whom each node takes for the leader from when on
    #[arg(long, requires = "replay")]
    leaders: bool,
    /// Threads to use; the results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  bellwether sim scenarios/announce-failover.toml --seed 1
  bellwether sim scenarios/announce-delay.toml --runs 1000 --set network.loss.rate=0.2
  bellwether sim scenarios/announce-failover.toml --replay 7
  bellwether sim scenarios/announce-failover.toml --replay 7 --leaders
  bellwether sim scenarios/worlds/sixteen-hosts.toml --settings /etc/bellwether/bellwether.toml --runs 100
  bellwether sim scenarios/moving-field.toml --frames field --every 500ms
  bellwether sim scenarios/announce-delay.toml --runs 100 --csv runs.csv \
    --sweep network.loss.rate=0,0.1,0.2 --metric leadership_delay --plot delay.svg

Exit codes:
  0  done    1  an invariant did not hold    2  wrong usage or wrong scenario";

/// True if every invariant held.
pub(crate) fn run(args: Args) -> Result<bool, Failure> {
    if !args.sweeps.is_empty() {
        return sweep::run(&args);
    }
    let scenario = args.scenario(&args.sets)?;
    if let Some(seed) = args.replay {
        return match args.leaders {
            true => replay_leaders(&scenario, seed, &args),
            false => replay(&scenario, seed, &args),
        };
    }
    if let Some(path) = &args.trace {
        write_trace(&scenario, args.seed, path)?;
    }
    if let Some(path) = &args.record_membership {
        write_membership(&scenario, args.seed, path)?;
    }
    if let Some(path) = &args.movement {
        field::write_movement(&scenario, args.seed, path)?;
    }
    if let Some(path) = &args.links {
        field::write_links(&scenario, args.seed, path)?;
    }
    if let Some(path) = &args.film {
        play::write_film(&scenario, &args.file, args.seed, path)?;
    }
    if let Some(folder) = &args.frames {
        field::write_frames(&scenario, args.seed, folder, args.every)?;
    }
    let bar = progress(args.runs);
    let threads = args.threads.map(usize::from);
    let report = on_threads(threads, || run_many(&scenario, args.seed, args.runs, || bar.inc(1)))??;
    bar.finish_and_clear();
    if let Some(path) = &args.csv {
        sweep::write_csv(path, &args.sweeps, &[(Vec::new(), report.clone())])?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", report.to_json())?;
    } else {
        print(&mut out, &scenario, &report, &args)?;
    }
    Ok(report.violations().next().is_none())
}

fn replay(scenario: &Scenario, seed: u64, args: &Args) -> Result<bool, Failure> {
    let json = args.json;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let mut print = |entry: Entry| {
        if written.is_ok() && args.shows(entry.node) {
            written = print_step(&mut out, json, &entry);
        }
    };
    let outcome = run_logged(scenario, seed, Log::to(&mut print))?;
    written?;
    if json {
        writeln!(out, "{}", json!({ "trace_hash": outcome.trace.to_string() }))?;
    } else {
        writeln!(out, "trace {}", outcome.trace)?;
    }
    for violation in &outcome.violations {
        eprintln!("violated: {violation}");
    }
    out.flush()?;
    Ok(outcome.violations.is_empty())
}

/// The same run, and only whom nodes take for the leader.
fn replay_leaders(scenario: &Scenario, seed: u64, args: &Args) -> Result<bool, Failure> {
    let namings = Namings::default();
    let outcome = run_logged(scenario, seed, Log::naming(&namings))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut named = BTreeMap::new();
    for Naming { at, node, up, leader, epoch } in namings.take() {
        let word = match (up, leader) {
            (false, _) => "is down".to_owned(),
            (true, None) => "knows no leader".to_owned(),
            (true, Some(leader)) if leader == node => "leads".to_owned(),
            (true, Some(leader)) => format!("follows {leader}"),
        };
        // Everybody begins without one.
        let before =
            named.insert(node, word.clone()).unwrap_or_else(|| "knows no leader".to_owned());
        if before == word || !args.shows(node) {
            continue;
        }
        let epoch = epoch.map(|epoch| epoch.to_string());
        if args.json {
            let leader = leader.map(NodeId::get);
            let (us, node) = (at.as_micros(), node.get());
            let line =
                json!({ "us": us, "node": node, "up": up, "leader": leader, "epoch": epoch });
            writeln!(out, "{line}")?;
        } else {
            let epoch = epoch.map_or(String::new(), |epoch| format!(", epoch {epoch}"));
            writeln!(out, "{at:>14} {:>6} {word}{epoch}", node.to_string())?;
        }
    }
    out.flush()?;
    Ok(outcome.violations.is_empty())
}

impl Args {
    /// The scenario with these overrides, and with the settings of agents if there are any.
    pub(crate) fn scenario(&self, sets: &[String]) -> Result<Scenario, Failure> {
        Ok(match &self.settings {
            Some(settings) => Scenario::load_with(&self.file, settings, sets)?,
            None => Scenario::load(&self.file, sets)?,
        })
    }

    fn shows(&self, node: NodeId) -> bool {
        self.nodes.is_empty() || self.nodes.contains(&node.get())
    }

    /// The metrics of `report` that were asked for, or all.
    pub(crate) fn shown(&self, report: &Report) -> Result<Vec<(Metric, Option<Summary>)>, Failure> {
        let all = report.metrics();
        if let Some(unknown) =
            self.metrics.iter().find(|name| all.iter().all(|(metric, _)| metric.name() != **name))
        {
            return Err(unknown_name(
                "metric",
                unknown,
                all.iter().map(|(metric, _)| metric.name()),
            ));
        }
        let wanted = |metric: Metric| self.metrics.iter().any(|name| *name == metric.name());
        Ok(all
            .into_iter()
            .filter(|(metric, _)| self.metrics.is_empty() || wanted(*metric))
            .collect())
    }
}

/// A header with what it is a trace of, a line for every step, and the hash that vouches for it.
fn write_trace(scenario: &Scenario, seed: u64, path: &Path) -> Result<(), Failure> {
    let file = create(path)?;
    let mut out = BufWriter::new(file);
    let header = json!({
        "scenario": scenario.name,
        "digest": scenario.digest().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
    });
    let mut written = writeln!(out, "{header}");
    let mut write = |entry: Entry| {
        if written.is_ok() {
            written = writeln!(out, "{}", entry_json(&entry));
        }
    };
    let outcome = run_logged(scenario, seed, Log::to(&mut write))?;
    written
        .and_then(|()| writeln!(out, "{}", json!({ "trace_hash": outcome.trace.to_string() })))
        .and_then(|()| out.flush())
        .map_err(about(path))
}

fn write_membership(scenario: &Scenario, seed: u64, path: &Path) -> Result<(), Failure> {
    let Some(trace) = record_membership(scenario, seed, INTERVAL)? else {
        let problem = "--record-membership: the nodes of this scenario keep no lists of members";
        return Err(Failure::Other(format!("{problem}; [membership] kind = \"medley\" does")));
    };
    let mut file = create(path)?;
    file.write_all(&trace.to_bytes()).map_err(about(path))
}

/// A duration above zero.
fn span(text: &str) -> Result<Duration, String> {
    match text.parse::<Duration>() {
        Ok(Duration::ZERO) => Err("it must be longer than nothing".into()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Never overwrites.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let path = path.display();
            Failure::Other(format!("{path} exists already; remove it or name another file"))
        }
        _ => about(path)(error),
    })
}

fn print(
    out: &mut impl Write,
    scenario: &Scenario,
    report: &Report,
    args: &Args,
) -> Result<(), Failure> {
    let metrics = args.shown(report)?;
    let runs = report.outcomes.len();
    let last = report.seed.wrapping_add(runs as u64 - 1);
    let seeds = if runs == 1 { "seed".into() } else { format!("{runs} runs, seeds") };
    writeln!(out, "{}", report.name)?;
    writeln!(
        out,
        "{} nodes, up to {} simulated, {seeds} {}{}, scenario {}",
        scenario.network.nodes,
        scenario.duration,
        report.seed,
        if runs == 1 { String::new() } else { format!(" to {last}") },
        report.digest,
    )?;
    writeln!(out, "{}", table(&metrics, runs > 1))?;
    for (metric, summary) in &metrics {
        if let Some(note) = metric.note().filter(|_| summary.is_some()) {
            writeln!(out, "{metric}: {note}")?;
        }
    }
    if args.settings.is_some() {
        writeln!(out, "{}", meaning(scenario, report))?;
    }
    for outcome in report.outcomes.iter().take(SHOWN) {
        writeln!(out, "trace {} (seed {})", outcome.trace, outcome.seed)?;
    }
    if runs > SHOWN {
        writeln!(out, "… and {} more; --json lists them all", runs - SHOWN)?;
    }
    let settings = args.settings.iter().map(|file| format!(" --settings {}", file.display()));
    let sets: String =
        settings.chain(args.sets.iter().map(|set| format!(" --set {set}"))).collect();
    for (seed, violation) in report.violations().take(SHOWN) {
        writeln!(out, "violated: {violation}")?;
        let file = args.file.display();
        writeln!(out, "  replay: bellwether sim {file}{sets} --replay {seed}")?;
    }
    Ok(())
}

/// What an operator wants to know of settings, in words.
fn meaning(scenario: &Scenario, report: &Report) -> String {
    let mean = |metric| report.summary(metric).map_or(0.0, |of| of.mean);
    let rate = |bytes: f64| bytes * 8.0 / 1000.0 / scenario.duration.as_secs_f64();
    let (bytes, messages) = (mean(Metric::Bytes), mean(Metric::Messages));
    let recovery = match report.summary(Metric::RecoveryTime) {
        Some(of) => format!(
            "After the last fault nobody led, or not all agreed, for {:.2} s as a rule, {:.2} s in one case of twenty.",
            of.p50, of.p95
        ),
        None => "After the last fault they never agreed.".to_owned(),
    };
    format!(
        "{recovery}\nAll nodes together sent {:.1} kbit/s of sealed datagrams, {:.1} with UDP and IP headers.",
        rate(bytes),
        rate(bytes + messages * HEADERS)
    )
}

fn table(metrics: &[(Metric, Option<Summary>)], several: bool) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if several {
        table.set_header(["metric", "mean", "± s.e.", "s.d.", "p50", "p95", "p99", "runs", ""]);
    } else {
        table.set_header(["metric", "value", ""]);
    }
    for &(metric, summary) in metrics {
        table.add_row(row(metric, summary, several));
    }
    let numbers = if several { 1..8 } else { 1..2 };
    for column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn row(metric: Metric, summary: Option<Summary>, several: bool) -> Vec<String> {
    let unit = metric.unit();
    let show = |value: f64| number(value, unit);
    let mut row = vec![metric.to_string()];
    match summary {
        Some(of) if several => row.extend([
            show(of.mean),
            show(of.standard_error()),
            show(of.sd),
            show(of.p50),
            show(of.p95),
            show(of.p99),
            of.count.to_string(),
        ]),
        Some(of) => row.push(show(of.mean)),
        None if several => row.extend(["–", "–", "–", "–", "–", "–", "0"].map(String::from)),
        None => row.push("–".into()),
    }
    row.push(unit.to_string());
    row
}

pub(crate) fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds | Unit::Ratio | Unit::Joules => format!("{value:.4}"),
        Unit::Count | Unit::Bytes if value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Count | Unit::Bytes => format!("{value:.2}"),
    }
}

/// Bytes of the headers of UDP and IPv4.
const HEADERS: f64 = 28.0;
/// Runs listed one by one.
const SHOWN: usize = 5;
