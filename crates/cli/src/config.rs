//! `bellwether config`: settings looked at without running anything.

use std::io::{self, Write};

use bellwether_agent::{
    check_files,
    config::{Setting, explain},
};
use serde_json::json;

use crate::{
    agent::Settings,
    output::{Failure, plain_table},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Say whether an agent can start with the settings, and with the files they
    /// name
    Check {
        #[command(flatten)]
        common: Common,
        /// Do not look at key, token, data_dir and socket: for settings of another
        /// machine
        #[arg(long)]
        no_files: bool,
    },
    /// Show every setting and where it came from
    Show(Common),
    /// Say what the settings mean: time without a leader, and traffic
    Explain {
        #[command(flatten)]
        common: Common,
        /// For a cluster of so many members
        #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=100_000))]
        members: u32,
    },
}

#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    settings: Settings,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn json(&self) -> bool {
        match &self.verb {
            Verb::Check { common, .. } | Verb::Show(common) | Verb::Explain { common, .. } => {
                common.json
            }
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match &args.verb {
        Verb::Check { common: Common { settings, json }, no_files } => {
            let config = settings.load()?;
            if !no_files {
                check_files(&config).map_err(|error| {
                    let hint = "an agent of this user could not start; --no-files looks at the settings alone";
                    Failure::Other(format!("{error}\n  hint: {hint}"))
                })?;
            }
            let (name, cluster) = (&config.name, &config.cluster);
            if *json {
                writeln!(out, "{}", json!({ "ok": true, "name": name, "cluster": cluster }))?;
            } else {
                writeln!(out, "the settings of {name} in cluster {cluster} are right")?;
            }
        }
        Verb::Show(Common { settings, json }) => {
            let settings = settings.load()?.settings();
            if *json {
                writeln!(out, "{}", json!(settings))?;
            } else {
                let mut table = plain_table(["field", "value", "from"]);
                for Setting { field, value, source } in settings {
                    table.add_row([field, value, source]);
                }
                writeln!(out, "{table}")?;
            }
        }
        Verb::Explain { common: Common { settings, json }, members } => {
            let explained = explain(&settings.load()?, *members);
            if *json {
                writeln!(out, "{}", json!(explained))?;
                return Ok(true);
            }
            writeln!(
                out,
                "For {members} members. All of them together send {:.0} kbit/s when nothing happens.",
                explained.idle_kbit_per_s
            )?;
            writeln!(out, "{}", wrapped(&explained.probing))?;
            for election in explained.elections {
                writeln!(out, "\nelection {} ({})", election.election, election.mode)?;
                for line in election.words {
                    writeln!(out, "{}", wrapped(&line))?;
                }
            }
        }
    }
    Ok(true)
}

/// Indented, at most 78 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::from(" ")];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.len() + 1 + word.len() <= 78);
        match line {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(format!("  {word}")),
        }
    }
    lines.join("\n")
}
