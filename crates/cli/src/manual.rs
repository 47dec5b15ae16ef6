//! `bellwether man` and `bellwether completions`: what packages install beside the program, made from the command line itself.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{
    Cli,
    output::{Failure, about},
};

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands there [default: print that of `bellwether`]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn man(args: &ManArgs) -> Result<bool, Failure> {
    let command = shown(Cli::command());
    let Some(folder) = &args.out else {
        Man::new(command).render(&mut io::stdout().lock())?;
        return Ok(true);
    };
    fs::create_dir_all(folder).map_err(about(folder))?;
    clap_mangen::generate_to(command, folder).map_err(about(folder))?;
    Ok(true)
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<bool, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut shown(Cli::command()), "bellwether", &mut text);
    io::stdout().lock().write_all(&text)?;
    Ok(true)
}

/// Without what people are not to type: generators do not all leave it out. Nor with `help`, which has a page for each page.
fn shown(command: Command) -> Command {
    let mut kept = Command::new("bellwether")
        .version(env!("CARGO_PKG_VERSION"))
        .about(command.get_about().cloned().unwrap_or_default())
        .after_help(command.get_after_help().cloned().unwrap_or_default())
        .disable_help_subcommand(true);
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        kept = kept.subcommand(verb.clone().disable_help_subcommand(true));
    }
    kept
}
