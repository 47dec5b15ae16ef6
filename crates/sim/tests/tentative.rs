//! Elections that tell who leads before they are over: whoever claims so far is not told to act.
//!
//! That no node names itself meanwhile is an invariant of every run of nodes (`acts_when_confirmed`). Here it is counted
//! what programs would see of a fail-over.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use bellwether_proto::NodeId;
use bellwether_sim::{
    check::conformance::{Case, Subject, Trial, subjects},
    invariant::ActsWhenConfirmed,
    observe::{Log, Namings},
    run::run_logged,
};

fn named(name: &str) -> Subject {
    subjects().into_iter().find(|subject| subject.name == name).expect("there is one")
}

const SEEDS: u64 = 1_000;

/// The leader crashes and nothing else happens: exactly one node says from then on that it leads, though in most
/// elections somebody else had claimed to before all had answered.
#[test]
fn a_fail_over_shows_one_leader() {
    for subject in ["eventual", "eventual-optimistic"].map(named) {
        let mut tentative = 0;
        for seed in 1..=SEEDS {
            let trial = Trial::new(&subject, Case::Crash, seed);
            let namings: Namings = Rc::new(RefCell::new(vec![]));
            let outcome = run_logged(&trial.scenario, seed, Log::naming(&namings));
            let outcome = outcome.expect("everybody hears everybody");
            assert!(outcome.violations.is_empty(), "seed {seed}: {:?}", outcome.violations);
            let after = |at| at > trial.quiet_from;
            let namings = namings.borrow();
            let claims = namings.iter().filter(|naming| naming.up && after(naming.at));
            let claims = claims.filter(|naming| naming.leader == Some(naming.node));
            let leaders: BTreeSet<NodeId> = claims.map(|naming| naming.node).collect();
            assert_eq!(leaders.len(), 1, "{} seed {seed}: {leaders:?}", subject.name);
            let arose = |&&(invariant, _, arose): &&(&str, &str, bool)| {
                invariant == ActsWhenConfirmed::NAME && arose
            };
            tentative += outcome.sometimes.iter().filter(arose).count();
        }
        println!("{}: {tentative} of {SEEDS} runs had tentative claims", subject.name);
        assert!(tentative as u64 > SEEDS / 2, "{}: nothing was shown", subject.name);
    }
}
