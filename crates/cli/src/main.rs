//! `bellwether`: leader election and group membership for networks that will not hold still.
//!
//! Exit codes: 0 done, or yes; 1 no (an invariant did not hold); 2 usage or error.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is a host: it owns the clock, the terminal and the threads"
)]

mod conform;
mod lab;
mod output;
mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::output::Failure;

/// Leader election and group membership for networks that will not hold still.
#[derive(Parser)]
#[command(name = "bellwether", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a scenario: a network, a protocol and what goes wrong
    Sim(sim::Args),
    /// Run the papers' experiments and judge their claims
    Lab(lab::Args),
    /// Try elections and memberships against the conformance suite, over many seeds
    Conform(conform::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (result, json) = match cli.command {
        Command::Sim(args) => {
            let json = args.json;
            (sim::run(args), json)
        }
        Command::Lab(args) => {
            let json = args.json();
            (lab::run(args), json)
        }
        Command::Conform(args) => {
            let json = args.json;
            (conform::run(args), json)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(json);
            ExitCode::from(2)
        }
    }
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done, or yes
  1  no: an invariant or a promise did not hold
  2  wrong usage, wrong input, or an error";
