//! Bellwether beside ZooKeeper, etcd and Serf: the same hosts, the same faults, one after another.
//!
//! ```sh
//! cargo run --release -p bellwether-compare
//! ```
//!
//! What each comparison does and does not say is in `docs/comparison.md`; the figures are in `docs/results/`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this measures real processes in real time"
)]

mod client;
mod cluster;
mod interrupt;
mod measure;
mod msgpack;
mod packages;
mod plot;
mod report;
mod systems;
mod watch;
mod worlds;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use clap::{Parser, ValueEnum};

use crate::{
    measure::Plan,
    systems::{Bellwether, Etcd, Mode, Serf, System, ZooKeeper},
};

/// Bellwether beside ZooKeeper, etcd and Serf on hosts made of network namespaces.
///
/// Missing Debian packages are installed if this runs as root. Nothing leaves the namespaces.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Args {
    /// Which to measure, in this order
    #[arg(long, value_delimiter = ',', default_value = "zookeeper,etcd,serf,bellwether")]
    only: Vec<Which>,
    /// How long each is watched while nothing happens, in bins of 10 s
    #[arg(long, default_value = "120s", value_parser = span)]
    idle: Duration,
    /// How long each runs before that
    #[arg(long, default_value = "20s", value_parser = span)]
    settle: Duration,
    /// How often the leader's cable is cut
    #[arg(long, default_value_t = 5)]
    cuts: usize,
    /// How often the leader's process is killed
    #[arg(long, default_value_t = 5)]
    kills: usize,
    /// How many nodes of each, instead of 16 and, of etcd, 5
    #[arg(long, value_parser = clap::value_parser!(u8).range(2..=64))]
    nodes: Option<u8>,
    /// Instead of all that: how long nobody leads where links are cut, in so many runs of each world
    #[arg(long, value_name = "RUNS")]
    worlds: Option<usize>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Where comparison.csv, comparison.md and comparison.svg are written
    #[arg(long, default_value = "docs/results")]
    out: PathBuf,
    /// The `bellwether` to measure; if left out, this clone's, built for release
    #[arg(long)]
    binary: Option<PathBuf>,
}

#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
enum Which {
    #[value(name = "zookeeper")]
    ZooKeeper,
    Etcd,
    Serf,
    Bellwether,
}

/// Why there is no comparison, in words.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bellwether-compare: {failure}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    interrupt::listen()?;
    if let Some(runs) = args.worlds {
        return half_broken(args, runs);
    }
    let systems: Vec<Box<dyn System>> =
        args.only.iter().map(|&which| system(which, args)).collect::<Result<_, _>>()?;
    let mut needed = vec!["iproute2", "nftables", "util-linux"];
    needed.extend(systems.iter().flat_map(|system| system.packages()));
    if systems.iter().any(|system| !system.packages().is_empty()) {
        packages::ensure(&needed)?;
    }
    let plan = Plan {
        idle: args.idle,
        settle: args.settle,
        cuts: args.cuts,
        kills: args.kills,
        nodes: args.nodes.map(usize::from),
    };
    let folder = tempfile::tempdir().map_err(|error| Failure::new(error.to_string()))?;
    let mut all = Vec::new();
    for system in &systems {
        all.push(measure::measure(&**system, &plan, &folder.path().join(system.name()))?);
    }
    if args.json {
        println!("{:#}", report::json(&all));
    } else {
        println!("{}", report::table(&all));
        println!("{}", report::verdicts(&all));
    }
    write(&args.out, "comparison.csv", &report::csv(&all))?;
    write(&args.out, "comparison.md", &report::page(&all, &plan))?;
    write(&args.out, "comparison.svg", &plot::svg(&all))
}

/// Networks that half work: etcd, and the two modes that promise one leader at most.
fn half_broken(args: &Args, runs: usize) -> Result<(), Failure> {
    packages::ensure(&["iproute2", "nftables", "util-linux", "etcd-server"])?;
    let folder = tempfile::tempdir().map_err(|error| Failure::new(error.to_string()))?;
    let binary = binary(args)?;
    let leased = Bellwether { binary: binary.clone(), mode: Mode::Leased };
    let learned = Bellwether { binary, mode: Mode::Learned };
    let systems: [&dyn System; 3] = [&Etcd, &leased, &learned];
    let rows = worlds::measure(&systems, runs, folder.path())?;
    let page = worlds::page(&rows, runs)?;
    println!("{page}");
    write(&args.out, "worlds.md", &page)
}

fn system(which: Which, args: &Args) -> Result<Box<dyn System>, Failure> {
    Ok(match which {
        Which::ZooKeeper => Box::new(ZooKeeper),
        Which::Etcd => Box::new(Etcd),
        Which::Serf => Box::new(Serf),
        Which::Bellwether => Box::new(Bellwether { binary: binary(args)?, mode: Mode::Eventual }),
    })
}

fn binary(args: &Args) -> Result<PathBuf, Failure> {
    let binary = args.binary.clone().map_or_else(build, Ok)?;
    // It is started from other folders.
    let fail = |error| Failure::new(format!("{}: {error}", binary.display()));
    fs::canonicalize(&binary).map_err(fail)
}

/// This clone's `bellwether`, optimised.
fn build() -> Result<PathBuf, Failure> {
    eprintln!("building bellwether for release");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--package", "bellwether", "--message-format", "json"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("cargo: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let built = text.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let ours = message["target"]["name"] == "bellwether";
        message["executable"].as_str().filter(|_| ours).map(PathBuf::from)
    });
    built.ok_or_else(|| Failure::new("cargo build --release --package bellwether made no binary"))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    let fail = |error| Failure::new(format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(fail)?;
    fs::write(&path, text).map_err(fail)
}

/// `90s`, `2m`, `500ms`.
fn span(text: &str) -> Result<Duration, String> {
    let span: bellwether_proto::Duration = text.parse().map_err(|error| format!("{error}"))?;
    let span = Duration::from_micros(span.as_micros());
    (!span.is_zero()).then_some(span).ok_or_else(|| "more than nothing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_make_sense() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_span_is_a_number_with_a_unit_and_more_than_nothing() {
        assert_eq!(span("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(span("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "90", "0s", "-1s"] {
            assert!(span(wrong).is_err(), "{wrong:?}");
        }
    }
}
