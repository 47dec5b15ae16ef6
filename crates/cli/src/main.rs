//! `bellwether`: leader election and group membership for networks that will not hold still.
//!
//! Exit codes: 0 done, or yes; 1 no (another leads, an invariant did not hold, a recorded node behaves otherwise); 2 usage
//! or error; 3 agent unreachable; 4 no leader known; 5 another node runs under this agent's identity.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is a host: it owns the clock, the terminal and the threads"
)]

mod agent;
mod ask;
mod client;
mod command;
mod config;
#[cfg(feature = "sim")]
mod conform;
mod dev;
#[cfg(feature = "sim")]
mod field;
mod guarded;
mod http;
mod init;
mod keys;
#[cfg(feature = "lab")]
mod lab;
mod log;
#[cfg(feature = "manual")]
mod manual;
mod monitor;
mod output;
#[cfg(feature = "sim")]
mod play;
mod replay;
#[cfg(feature = "sim")]
mod runs;
#[cfg(feature = "sim")]
mod sim;
#[cfg(feature = "sim")]
mod sweep;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::output::{Exit, Failure};

/// Leader election and group membership for networks that will not hold still.
#[derive(Parser)]
#[command(name = "bellwether", version, after_help = EXIT_CODES, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A live cluster on this machine: kill its leader, and see
    Dev(dev::Args),
    /// Write settings, a key and a token for a first node
    Init(init::InitArgs),
    /// Run one node
    Agent(agent::Args),
    /// Look at settings: check, show, explain
    Config(config::Args),
    /// Make a cluster key
    Keygen(init::KeygenArgs),
    /// Replace the cluster's key without stopping it
    Keys(keys::Args),
    /// Who leads
    #[command(after_help = AGENT_CODES)]
    Leader(ask::About),
    /// Who leads, in all elections
    #[command(after_help = AGENT_CODES)]
    Leaders(ask::Plain),
    /// Whether this node leads: `bellwether is-leader backup && job`
    #[command(after_help = AGENT_CODES)]
    IsLeader(ask::IsLeader),
    /// Run a command while this node leads, and not otherwise
    #[command(after_help = RUN_HELP)]
    Run(guarded::Args),
    /// Who is there
    #[command(after_help = AGENT_CODES)]
    Members(ask::Plain),
    /// Why a member is taken for failed or alive, and who says so
    #[command(after_help = AGENT_CODES)]
    Why(ask::AboutMember),
    /// Why an election came out as it did, and who disagrees
    #[command(after_help = AGENT_CODES)]
    Explain(ask::About),
    /// Watch what happens
    #[command(after_help = AGENT_CODES)]
    Monitor(monitor::Args),
    /// Talk to other agents
    #[command(after_help = AGENT_CODES)]
    Join(command::Join),
    /// Hand over, say goodbye and stop
    #[command(after_help = AGENT_CODES)]
    Leave(command::Leave),
    /// Take a failed member off the lists
    #[command(after_help = AGENT_CODES)]
    ForceLeave(command::ForceLeave),
    /// Give up leading
    #[command(after_help = AGENT_CODES)]
    Resign(command::Resign),
    /// Give up leading to that member
    #[command(after_help = AGENT_CODES)]
    Transfer(command::Transfer),
    /// Say how well the leader, or another member, does
    #[command(after_help = AGENT_CODES)]
    Report(command::Report),
    /// Show or change what others read about this node
    #[command(after_help = AGENT_CODES)]
    Tags(ask::Tags),
    /// Simulate a scenario: a network, a protocol and what goes wrong
    #[cfg(feature = "sim")]
    Sim(sim::Args),
    /// Look at a scenario as it runs, and do things to it, in a browser
    #[cfg(feature = "sim")]
    Play(play::Args),
    /// Run the papers' experiments and judge their claims
    #[cfg(feature = "lab")]
    Lab(lab::Args),
    /// Try elections and memberships against the conformance suite
    #[cfg(feature = "sim")]
    Conform(conform::Args),
    /// Run a recorded node again, and compare what comes of it
    Replay(replay::Args),
    /// Print completions for a shell
    #[cfg(feature = "manual")]
    Completions(manual::CompletionsArgs),
    /// Print or write the manual
    #[cfg(feature = "manual")]
    Man(manual::ManArgs),
    /// How `run` becomes its command
    #[command(hide = true)]
    Become(guarded::BecomeArgs),
    /// What `run` leaves its command to
    #[command(hide = true)]
    Watchdog(guarded::watchdog::Args),
}

impl Command {
    /// Whether errors are for programs.
    fn json(&self) -> bool {
        match self {
            #[cfg(feature = "sim")]
            Self::Sim(args) => args.json,
            #[cfg(feature = "lab")]
            Self::Lab(args) => args.json(),
            #[cfg(feature = "sim")]
            Self::Conform(args) => args.json,
            Self::Replay(args) => args.json,
            Self::Config(args) => args.json(),
            Self::Keys(args) => args.json(),
            Self::Leader(args) | Self::Explain(args) => args.json(),
            Self::Leaders(args) | Self::Members(args) => args.json,
            Self::IsLeader(args) => args.json(),
            Self::Why(args) => args.json(),
            Self::Monitor(args) => args.json,
            Self::Tags(args) => args.json(),
            Self::Init(_)
            | Self::Agent(_)
            | Self::Dev(_)
            | Self::Keygen(_)
            | Self::Run(_)
            | Self::Join(_)
            | Self::Leave(_)
            | Self::ForceLeave(_)
            | Self::Resign(_)
            | Self::Transfer(_)
            | Self::Report(_)
            | Self::Become(_)
            | Self::Watchdog(_) => false,
            #[cfg(feature = "sim")]
            Self::Play(_) => false,
            #[cfg(feature = "manual")]
            Self::Completions(_) | Self::Man(_) => false,
        }
    }

    fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Init(args) => init::init(&args).map(Exit::from),
            Self::Agent(args) => agent::run(&args),
            Self::Dev(args) => dev::run(&args).map(Exit::from),
            Self::Config(args) => config::run(&args).map(Exit::from),
            Self::Keygen(args) => init::keygen(&args).map(Exit::from),
            Self::Keys(args) => keys::run(&args).map(Exit::from),
            Self::Leader(args) => ask::leader(&args),
            Self::Leaders(args) => ask::leaders(&args),
            Self::IsLeader(args) => ask::is_leader(&args),
            Self::Run(args) => guarded::run(&args),
            Self::Members(args) => ask::members(&args),
            Self::Why(args) => ask::why(&args),
            Self::Explain(args) => ask::explain(&args),
            Self::Monitor(args) => monitor::run(&args),
            Self::Join(args) => command::join(&args),
            Self::Leave(args) => command::leave(&args),
            Self::ForceLeave(args) => command::force_leave(&args),
            Self::Resign(args) => command::resign(&args),
            Self::Transfer(args) => command::transfer(&args),
            Self::Report(args) => command::report(&args),
            Self::Tags(args) => ask::tags(&args),
            #[cfg(feature = "sim")]
            Self::Sim(args) => sim::run(args).map(Exit::from),
            #[cfg(feature = "sim")]
            Self::Play(args) => play::run(&args).map(Exit::from),
            #[cfg(feature = "lab")]
            Self::Lab(args) => lab::run(args).map(Exit::from),
            #[cfg(feature = "sim")]
            Self::Conform(args) => conform::run(args).map(Exit::from),
            Self::Replay(args) => replay::run(&args).map(Exit::from),
            #[cfg(feature = "manual")]
            Self::Completions(args) => manual::completions(&args).map(Exit::from),
            #[cfg(feature = "manual")]
            Self::Man(args) => manual::man(&args).map(Exit::from),
            Self::Become(args) => guarded::become_command(&args),
            Self::Watchdog(args) => guarded::watchdog::run(&args),
        }
    }
}

fn main() -> ExitCode {
    let command = Cli::try_parse().unwrap_or_else(|error| misused(error)).command;
    let json = command.json();
    match command.run() {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(json);
            ExitCode::from(failure.code())
        }
    }
}

/// Says what is wrong with the command line. That `-- --flag` passes a flag for a file's name helps nobody who mistyped one.
fn misused(mut error: clap::Error) -> ! {
    use clap::error::{ContextKind, ErrorKind};
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    error.exit()
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done, or yes
  1  no: another node leads, or an invariant or a promise did not hold
  2  wrong usage, wrong input, or an error
  3  no agent could be asked
  4  no leader is known";

const AGENT_CODES: &str = "\
Exit codes:
  0  done, or yes
  1  no: another node leads
  2  wrong usage, or the agent refused
  3  no agent could be asked
  4  no leader is known";

const RUN_HELP: &str = "\
The command is started when this node leads. It is asked to end (TERM) and
then killed (KILL), with everything it has started, when another node leads,
when the agent is gone, or when the agent has not confirmed for so long that
the command would otherwise outlive --guard. It finds BELLWETHER_GROUP and
BELLWETHER_EPOCH in its environment; pass the epoch on to whatever it changes,
and let that refuse older ones.

Exit codes: that of the command, 128 + n if signal n ended it, 127 or 126 if
it cannot be started, which is found out before anything is waited for; 1 with
--once if leadership was lost; 2 wrong usage, or the agent refused; 128 + n if
signal n ended this.

In a leased election the command has ended before another node leads. In any
other it goes on for up to --guard after the agent was lost, while another node
may lead already: if --guard is longer than the fail-over, both run.";
