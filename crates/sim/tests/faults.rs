//! Faults, seen from outside: what the nodes of a whole run live through.

use bellwether_proto::Time;
use bellwether_sim::{
    log::{Entry, Log},
    run::{Outcome, run_logged},
    scenario::Scenario,
};

fn told(text: &str, seed: u64) -> (Outcome, Vec<Entry>) {
    let scenario = Scenario::parse("faults.toml", text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let mut entries = Vec::new();
    let mut keep = |entry| entries.push(entry);
    let outcome = run_logged(&scenario, seed, Log::to(&mut keep)).unwrap_or_else(|e| panic!("{e}"));
    (outcome, entries)
}

fn seconds(seconds: u64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

const FIELD: &str = r#"
name = "field"
duration = "30s"
[network]
nodes = 25
placement = { kind = "random", side = 10.0, range = 4.0 }
routing = "length"
[membership]
kind = "medley"
"#;

/// Whoever is told learns it at the instant of the move; whoever is not goes on with what it knew, over the
/// same new links.
#[test]
fn those_who_move_are_measured_anew_only_if_distances_are_fresh() {
    let moved = |distances: &str, law: &str| {
        let fault = format!(
            "[[fault]]\nat = '10s'\nkind = 'move'\nfraction = 0.4\ndistance = 8.0\nlaw = '{law}'\n\
             distances = '{distances}'\n"
        );
        told(&format!("{FIELD}{fault}"), 3)
    };
    let feeds = |entries: &[Entry]| entries.iter().filter(|entry| entry.what == "feed").count();
    let (fresh, entries) = moved("fresh", "polar");
    assert!(feeds(&entries) > 25, "{}", feeds(&entries));
    let on_time = |entry: &Entry| entry.what != "feed" || entry.at == seconds(10);
    assert!(entries.iter().all(on_time));
    let (stale, entries) = moved("stale", "polar");
    assert_eq!(feeds(&entries), 0);
    assert_eq!(moved("stale", "polar").0, stale);
    let (still, _) = told(FIELD, 3);
    let boxed = moved("stale", "box").0;
    for (one, other) in [(&fresh, &stale), (&stale, &still), (&boxed, &stale)] {
        assert_ne!(one.trace, other.trace);
    }
}
