//! What a process costs, as the kernel counts it.

use std::{fs, time::Duration};

/// Why a process cannot be measured.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct ProcessError {
    path: String,
    why: String,
}

/// What a process holds, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Pages shared with others are divided among all of them.
    pub pss: u64,
    /// Shared pages included: what a single process would take at most.
    pub rss: u64,
}

/// How long it has been on a core, all its threads together, those that have ended included.
///
/// # Errors
///
/// If the process has ended.
pub fn run_time(pid: u32) -> Result<Duration, ProcessError> {
    let path = format!("/proc/{pid}/stat");
    let text = read(&path)?;
    let ticks = ticks(&text).ok_or_else(|| unread(path, &text))?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// What it holds now.
///
/// # Errors
///
/// If the process has ended.
pub fn memory(pid: u32) -> Result<Memory, ProcessError> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = read(&path)?;
    let field = |name| kibibytes(&text, name).map(|size| size * 1_024);
    let both = field("Pss:").zip(field("Rss:"));
    both.map(|(pss, rss)| Memory { pss, rss }).ok_or_else(|| unread(path, &text))
}

/// In user and in kernel mode; the name before them may hold spaces and parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

fn kibibytes(rollup: &str, field: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

fn read(path: &str) -> Result<String, ProcessError> {
    let fail = |error: std::io::Error| ProcessError { path: path.into(), why: error.to_string() };
    fs::read_to_string(path).map_err(fail)
}

fn unread(path: String, text: &str) -> ProcessError {
    ProcessError { path, why: format!("not understood: {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 31 11 7 7 20 0 1 0 500 1 1";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("42 (short) S 1"), None);
    }

    #[test]
    fn a_field_is_not_taken_for_another_that_begins_like_it() {
        let rollup = "Rss:      3168 kB\nPss_Anon:  92 kB\nPss:       265 kB\n";
        assert_eq!((kibibytes(rollup, "Pss:"), kibibytes(rollup, "Rss:")), (Some(265), Some(3168)));
        assert_eq!(kibibytes(rollup, "Swap:"), None);
    }

    #[test]
    fn this_process_has_run_and_holds_memory() {
        let pid = std::process::id();
        let begun = run_time(pid).unwrap();
        let mut sum = 0_u64;
        while run_time(pid).unwrap() == begun {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        let memory = memory(pid).unwrap();
        assert!(memory.pss > 0 && memory.rss >= memory.pss, "{memory:?} {sum}");
    }

    #[test]
    fn a_process_that_has_ended_is_named() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(run_time(pid).unwrap_err().to_string().starts_with(&format!("/proc/{pid}/stat: ")));
    }
}
