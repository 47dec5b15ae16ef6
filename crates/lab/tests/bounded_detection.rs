//! A bound that is never judged is never broken: every cell of `bw-medley-bound` must judge it.

use bellwether_lab::{experiment::Size, experiments};
use bellwether_sim::run::run;

#[test]
fn every_cell_of_the_bound_judges_it() {
    let experiments = experiments::all();
    let bound = experiments.iter().find(|experiment| experiment.id == "bw-medley-bound");
    for cell in (bound.expect("it is an experiment").cells)(Size::Quick) {
        let scenario = cell.scenario().unwrap_or_else(|error| panic!("{error}"));
        let scenario = scenario.expect("it runs one");
        let outcome = run(&scenario, 1).expect("the field can be drawn");
        let judged = |(invariant, _, arose): &(&str, &str, bool)| {
            *invariant == "time_bounded_detection" && *arose
        };
        assert!(outcome.sometimes.iter().any(judged), "{}: {:?}", cell.name, outcome.sometimes);
        assert_eq!(outcome.violations, [], "{}", cell.name);
    }
}
