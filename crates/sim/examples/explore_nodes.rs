//! Searches the shipped node: `cargo run --release -p bellwether-sim --example explore_nodes -- [CASE [STATES [DEVIATIONS [live]]]]`.
//!
//! Without a case all are searched; a case ends in `*` to mean all that begin so. With no states at all the regular
//! history is told instead. `conform SUBJECT CASE SEEDS` sweeps a case of the conformance suite. Leaves with 1 if something did not hold.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it says how long it took")]

use std::{process::ExitCode, time::Instant};

use bellwether_sim::check::{
    conformance::{self, subjects, sweep},
    explore::{
        Told,
        nodes::{Case, cases},
        replay,
    },
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_else(|| "*".to_owned());
    if wanted == "conform" {
        return conform(&arguments.collect::<Vec<_>>());
    }
    let most = arguments.next().and_then(|most| most.parse().ok()).unwrap_or(1_000_000);
    let is_wanted = |case: &Case| match wanted.strip_suffix('*') {
        Some(start) => case.name.starts_with(start),
        None => case.name == wanted,
    };
    let deviations = arguments.next().and_then(|deviations| deviations.parse().ok());
    let live = arguments.next().is_some();
    let judged = |case: Case| Case { live: case.live || live, ..case };
    let with = |case: Case| match deviations {
        Some(deviations) => judged(case).with_deviations(deviations),
        None => judged(case),
    };
    let all: Vec<Case> = cases().into_iter().map(with).collect();
    let (mut held, mut states) = (true, 0);
    for case in all.iter().filter(|case| is_wanted(case)) {
        if most == 0 {
            tell(case);
            continue;
        }
        #[expect(clippy::disallowed_methods, reason = "how fast the search is does not change it")]
        let begun = Instant::now();
        let explored = case.explore(most);
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "{}: {} states, {} histories{}, {seconds:.1} s, {:?}",
            case.name,
            explored.states,
            explored.histories,
            if explored.cut { ", cut short" } else { "" },
            explored.tally,
        );
        states += explored.states;
        if let Some(violation) = explored.violation {
            println!("{}: caught after {} states: {violation}", case.name, explored.states);
            held = false;
        }
    }
    println!("{states} states");
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The regular history.
fn tell(case: &Case) {
    let judged = replay(&case.model(|_| ()), &case.search, case.judge(), &[], |line| {
        if let Told::Step(line) = line {
            println!("{line}");
        }
    });
    println!("{}: {judged:?}", case.name);
}

/// Seeds one after another, so that it is known which is the first that fails.
fn conform(arguments: &[String]) -> ExitCode {
    let [subject, case, seeds] = arguments else { return ExitCode::from(2) };
    let found = subjects().into_iter().find(|one| one.name == subject);
    let (Some(subject), Ok(case), Ok(seeds)) =
        (found, case.parse::<conformance::Case>(), seeds.parse::<u64>())
    else {
        return ExitCode::from(2);
    };
    let mut first = 1;
    while first <= seeds {
        let verdict = sweep(&subject, case, first, BATCH * subject.cost, || ());
        if let Some((seed, violation)) = verdict.failures.first() {
            println!("{} {case}: caught after {seed} seeds: {violation}", subject.name);
            return ExitCode::FAILURE;
        }
        first += BATCH;
    }
    println!("{} {case}: {seeds} seeds held", subject.name);
    ExitCode::SUCCESS
}

/// Seeds swept together.
const BATCH: u64 = 4;
