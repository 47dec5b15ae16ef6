//! Searches the shipped node: `cargo run --release -p bellwether-sim --example explore_nodes -- [CASE [STATES]]`.
//!
//! Without a case all are searched; a case ends in `*` to mean all that begin so. With no states at all the regular
//! history is told instead. Leaves with 1 if something did not hold.

use std::{process::ExitCode, time::Instant};

use bellwether_sim::explore::{
    Told,
    nodes::{Case, cases},
    replay,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_else(|| "*".to_owned());
    let most = arguments.next().and_then(|most| most.parse().ok()).unwrap_or(1_000_000);
    let is_wanted = |case: &Case| match wanted.strip_suffix('*') {
        Some(start) => case.name.starts_with(start),
        None => case.name == wanted,
    };
    let all = cases();
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
