//! What commands share in talking to people and programs.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    time::Duration,
};

use bellwether_lab::{runner::LabError, store::StoreError};
use bellwether_sim::{
    log::Entry,
    network::Disconnected,
    scenario::{Place, ScenarioError},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

/// Why a command could not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads our output any more: not an error.
    ClosedPipe,
    /// The scenario is wrong.
    Scenario(ScenarioError),
    /// The scenario is right but cannot be drawn.
    Placement(Disconnected),
    /// Anything else, with the place in the text.
    Other(String),
}

impl Failure {
    /// Tells people, or programs, on standard error.
    pub(crate) fn report(&self, json: bool) {
        if json {
            eprintln!("{}", json!({ "error": self.facts() }));
        } else {
            eprintln!("error: {self}");
        }
    }

    fn facts(&self) -> Value {
        let Self::Scenario(error) = self else { return json!({ "problem": self.to_string() }) };
        let place = match error.place() {
            Place::File { file } => json!({ "file": file }),
            Place::Position { file, line, column } => {
                json!({ "file": file, "line": line, "column": column })
            }
            Place::Set { text } => json!({ "set": text }),
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
            Self::Scenario(error) => error.fmt(f),
            Self::Placement(error) => error.fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(error)
    }
}

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

impl From<Disconnected> for Failure {
    fn from(error: Disconnected) -> Self {
        Self::Placement(error)
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

/// A bar with the time left, on standard error, for work of more than a moment; nothing without a
/// terminal.
pub(crate) fn progress(steps: u64) -> ProgressBar {
    if steps < 2 || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
    let style =
        ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed} gone, about {eta} left")
            .expect("the template is valid");
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Runs `work` on so many threads, or on as many as there are cores.
pub(crate) fn on_threads<T: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|error| Failure::Other(format!("cannot start threads: {error}")))?;
    Ok(pool.install(work))
}

/// One step of a run as one line: time, node, what, particulars.
pub(crate) fn print_step(out: &mut impl Write, json: bool, entry: &Entry) -> io::Result<()> {
    let Entry { at, node, what, detail } = entry;
    if json {
        return writeln!(out, "{}", entry_json(entry));
    }
    let line = format!("{at:>14} {:>6} {what:<9} {detail}", node.to_string());
    writeln!(out, "{}", line.trim_end())
}

/// One step of a run for programs.
pub(crate) fn entry_json(entry: &Entry) -> Value {
    let Entry { at, node, what, detail } = entry;
    json!({ "us": at.as_micros(), "node": node.get(), "what": what, "detail": detail })
}

/// Names the file in errors about it.
pub(crate) fn about(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::Other(format!("{}: {error}", path.display()))
}
