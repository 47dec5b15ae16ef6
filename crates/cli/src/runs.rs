//! What commands that simulate share: threads, progress, steps of a run, and what is wrong with numbers and names.

use std::io::{self, Write};

use bellwether_sim::{observe::Entry, world::Disconnected};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::output::{Failure, progress_of};

/// The scenario is right but cannot be drawn.
impl From<Disconnected> for Failure {
    fn from(error: Disconnected) -> Self {
        Self::Other(error.to_string())
    }
}

/// A whole number, from zero.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "it must be a whole number from 0 to 18446744073709551615".into())
}

/// How many.
pub(crate) fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err("it must be a whole number, and at least 1".into()),
    }
}

/// That there is no such thing: the one it was probably meant to be, or all there are.
pub(crate) fn unknown_name<'n>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> Failure {
    let near = known.clone().filter(|one| {
        one.contains(name) || strsim::damerau_levenshtein(name, one) <= one.len().div_ceil(4)
    });
    let mut near: Vec<&str> = near.collect();
    near.sort_by_key(|one| strsim::damerau_levenshtein(name, one));
    near.truncate(5);
    let help = match near.as_slice() {
        [] => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
        near => format!("did you mean {}?", near.join(", ")),
    };
    Failure::Other(format!("no {what} {name:?}; {help}"))
}

/// A bar that counts runs.
pub(crate) fn progress(steps: u64) -> ProgressBar {
    progress_of(steps, "{bar:40} {pos}/{len} runs, {elapsed} gone, about {eta} left")
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
