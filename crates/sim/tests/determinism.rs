//! One seed, one trace: twice, on one thread or many, in every build, on every machine.

use std::path::{Path, PathBuf};

use bellwether_sim::{
    log::{Entry, Log},
    run::{Report, run, run_logged, run_many},
    scenario::{Scenario, Until},
};

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = folder.read_dir().expect("the shipped scenarios");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() >= 7, "{files:?}");
    files
}

fn load(name: &str, sets: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_shipped_scenario_runs_and_gives_one_trace_for_one_seed() {
    for path in shipped() {
        let scenario = Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        let first = run(&scenario, 1).unwrap();
        assert_eq!(first, run(&scenario, 1).unwrap(), "{}", path.display());
        assert_ne!(first.trace, run(&scenario, 2).unwrap().trace, "{}", path.display());
        assert_eq!(first.violations, [], "{}", path.display());
        assert!(first.values.iter().any(|(_, value)| value.is_some_and(|value| value > 0.0)));
    }
}

/// Golden hashes: the same in debug and release builds and on every platform. A change here means
/// that every trace ever recorded is void, which wants a line in the changelog.
#[test]
fn traces_are_pinned() {
    let traces = |name: &str, sets: &[&str]| run(&load(name, sets), 1).unwrap().trace.to_string();
    assert_eq!(traces("announce-chaos.toml", &[]), "f0eb958aa836bfed");
    assert_eq!(traces("announce-failover.toml", &[]), "f6f705faec4121fc");
    assert_eq!(traces("ping-field.toml", &["duration=5s"]), "1a9d5f52343ceb92");
}

#[test]
fn a_hundred_runs_do_not_depend_on_threads_or_on_being_watched() {
    let scenario = load("announce-chaos.toml", &[]);
    let on = |threads| -> Report {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run_many(&scenario, 1, 100, || ())).unwrap()
    };
    let report = on(1);
    assert_eq!(report, on(2));
    let mut hashes: Vec<_> = report.outcomes.iter().map(|outcome| outcome.trace).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 100);

    let mut steps = 0;
    let mut count = |_: Entry| steps += 1;
    let watched = run_logged(&scenario, 1, Log::to(&mut count)).unwrap();
    assert_eq!(watched, report.outcomes[0]);
    assert!(steps > 5_000, "{steps}");
}

#[test]
fn the_digest_tells_scenarios_apart_but_not_names() {
    let plain = load("announce-chaos.toml", &[]);
    let renamed = load("announce-chaos.toml", &["name=other"]);
    let changed = load("announce-chaos.toml", &["network.loss.rate=0.11"]);
    assert_eq!(plain.digest(), renamed.digest());
    assert_ne!(plain.digest(), changed.digest());
}

/// A crowd costs what it must: nothing in the run looks at all nodes for every event.
#[test]
fn a_thousand_nodes_elect_in_a_moment() {
    let mut scenario = load("announce-failover.toml", &["network.nodes=1000", "duration=61s"]);
    scenario.until = Until::Duration;
    let outcome = run(&scenario, 1).unwrap();
    assert_eq!(outcome.violations, []);
}
