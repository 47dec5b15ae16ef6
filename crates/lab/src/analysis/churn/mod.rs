//! Churn-tolerant elections (thesis of 2023, chapters 5 and 7): closed forms, as published and as corrected.
//!
//! Notation: `N` nodes; `c` bounds how many lists of live nodes lack any one live node, `f` the crashes; an
//! election asks `c + f + 1` nodes and waits for `c + 1`. The *would-be leader* is the live node that comes
//! first. `C-n` is an erratum of `docs/rules/churn-tolerant.md`.

pub mod hypergeometric;
pub mod messages;
pub mod preference;
pub mod sample;
pub mod wrong;

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

/// The nodes asked: `take` of `all`, nobody twice; all of them if there are no more.
pub fn draw(rng: &mut bellwether_proto::Rng, all: u32, take: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..all).collect();
    let take = take.min(all);
    for at in 0..take {
        order.swap(at as usize, (at + rng.below(u64::from(all - at)) as u32) as usize);
    }
    order.truncate(take as usize);
    order
}
