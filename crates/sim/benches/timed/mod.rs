//! How long work takes.

use std::time::Instant;

/// Seconds of processor time where the system tells, else of wall time.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (wall, cpu) = (Instant::now(), processor_seconds());
    let result = work();
    let took = match (cpu, processor_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => wall.elapsed().as_secs_f64(),
    };
    (took, result)
}

fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(stat.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}
