//! Closed forms from the papers, corrected where they were wrong.

pub mod announce;
pub mod churn;

/// Asserts with the value, so that a failing table line says what came out instead.
#[cfg(test)]
#[track_caller]
fn close(what: &str, value: f64, expected: f64, tolerance: f64) {
    let same = value == expected || (value - expected).abs() <= tolerance;
    assert!(same, "{what}: {value}, expected {expected} within {tolerance}");
}

/// Asserts that the mean of many samples is `expected`, within four of their own standard errors.
#[cfg(test)]
#[track_caller]
fn simulates(what: &str, expected: f64, mut sample: impl FnMut() -> f64) {
    const RUNS: u32 = 40_000;
    let samples: Vec<f64> = (0..RUNS).map(|_| sample()).collect();
    let mean = samples.iter().sum::<f64>() / f64::from(RUNS);
    let squares: f64 = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
    assert!(squares > 0.0, "{what}: nothing varies, so nothing is tested");
    close(what, mean, expected, 4.0 * libm::sqrt(squares) / f64::from(RUNS));
}
