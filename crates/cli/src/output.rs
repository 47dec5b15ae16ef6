//! What commands share in talking to people and programs.

use std::{
    io::{self, IsTerminal},
    path::Path,
    time::Duration,
};

use bellwether_agent::{SettingsError, config::Place, internal::Ended};
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

/// Why a command could not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads our output any more: not an error.
    ClosedPipe,
    /// The settings or the scenario are wrong.
    Settings(SettingsError),
    /// No agent could be asked.
    Unreachable(String),
    /// Anything else, with the place in the text.
    Other(String),
}

/// What a verb that asks an agent answers with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// Yes, or done.
    Yes,
    /// No.
    No,
    /// No leader is known.
    NoLeader,
    /// Another node runs under this one's identity.
    Duplicate,
    /// What runs an agent's protocol panicked.
    Panicked,
    /// That of the command that was run.
    Code(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::NoLeader => 4,
            Self::Duplicate => 5,
            Self::Panicked => 6,
            Self::Code(code) => code,
        }
    }
}

impl From<Ended> for Exit {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Left => Self::Yes,
            Ended::DuplicateIdentity => Self::Duplicate,
            Ended::Panicked => Self::Panicked,
        }
    }
}

impl From<bool> for Exit {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

impl Failure {
    /// What the process ends with.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Unreachable(_) => 3,
            _ => 2,
        }
    }

    /// Tells people, or programs, on standard error.
    pub(crate) fn report(&self, json: bool) {
        if json {
            eprintln!("{}", json!({ "error": self.facts() }));
        } else {
            eprintln!("error: {self}");
        }
    }

    fn facts(&self) -> Value {
        let Self::Settings(error) = self else { return json!({ "problem": self.to_string() }) };
        let place = match error.place() {
            Place::Settings => Value::Null,
            Place::File { file } => json!({ "file": file }),
            Place::Position { file, line, column } => {
                json!({ "file": file, "line": line, "column": column })
            }
            Place::Variable { name } => json!({ "variable": name }),
            Place::Flag { name } => json!({ "flag": name }),
        };
        json!({
            "place": place,
            "field": error.field(),
            "found": error.found(),
            "problem": error.problem(),
            "allowed": error.allowed(),
        })
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ClosedPipe => f.write_str("the output was closed"),
            Self::Settings(error) => error.fmt(f),
            Self::Unreachable(text) | Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

/// Writing to standard output, the only thing commands do with a bare `?`.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Other(format!("standard output: {error}")),
        }
    }
}

/// Columns without lines around them.
pub(crate) fn plain_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table
}

/// A bar with the time left, on standard error, for work of more than a moment; nothing without a
/// terminal.
pub(crate) fn progress_of(steps: u64, template: &str) -> ProgressBar {
    if steps < 2 || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(template).expect("the template is valid");
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Names the file in errors about it.
pub(crate) fn about(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::Other(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: &str = include_str!("../../../packaging/systemd/bellwether.service");

    #[test]
    fn an_agent_that_panicked_is_started_again_and_no_other_is() {
        assert!(UNIT.contains("\nRestart=on-failure\n"));
        let prevented =
            UNIT.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus="));
        let prevented: Vec<u8> =
            prevented.unwrap().split(' ').map(|code| code.parse().unwrap()).collect();
        let again = |ended| {
            let code = Exit::from(ended).code();
            code != 0 && !prevented.contains(&code)
        };
        assert!(again(Ended::Panicked));
        // Nor is one left alone after so many failures, which a disk or an address that is late would be enough for.
        assert!(UNIT.contains("\nStartLimitIntervalSec=0\n") && !UNIT.contains("StartLimitBurst"));
        assert!(!again(Ended::Left) && !again(Ended::DuplicateIdentity));
    }
}
