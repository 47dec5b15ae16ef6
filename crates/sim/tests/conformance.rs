//! Every election mode passes one suite, with its own promise as the oracle.
//!
//! Failing here prints the command that replays the run step by step.

use std::collections::BTreeMap;

use bellwether_proto::Duration;
use bellwether_sim::check::conformance::{Case, Subject, subjects, sweep};

fn named(name: &str) -> Subject {
    subjects().into_iter().find(|subject| subject.name == name).expect("there is one")
}

/// Seeds for each mode and case; CI sweeps more through `bellwether conform`.
const SEEDS: u64 = 200;

#[test]
fn elections_keep_their_promise_in_every_case() {
    for subject in subjects().iter().filter(|subject| subject.known_to_break.is_none()) {
        let mut situations = BTreeMap::new();
        for case in subject.cases() {
            let verdict = sweep(subject, case, 1, SEEDS, || ());
            if let Some((seed, violation)) = verdict.failures.first() {
                panic!(
                    "{violation}\n{} of {} seeds failed; replay one with\n  bellwether conform \
                     --mode {} --case {case} --replay {seed}",
                    verdict.failures.len(),
                    verdict.seeds,
                    subject.name,
                );
            }
            for (situation, seeds) in verdict.situations {
                *situations.entry(situation).or_insert(0) += seeds;
            }
        }
        // Who has no tokens keeps none.
        let of_tokens = |name: &str| name.contains("epoch") || name.contains("kept");
        situations.retain(|(invariant, _), _| subject.fenced || !of_tokens(invariant));
        for (situation, seeds) in situations {
            assert!(seeds > 0, "{}: {situation:?} never arose: nothing was shown", subject.name);
        }
    }
}

/// Whatever a group's age, in a thousand histories of each mode in which that is so. In eventual elections one or two of a
/// thousand take up to 11 s, and where a majority decides the longest takes longer.
#[test]
fn old_groups_and_newcomers_have_one_leader_within_ten_seconds() {
    for subject in ["announced", "central"].map(named) {
        let verdict = sweep(&subject, Case::Aged, 1, 1_000 * subject.cost, || ());
        assert_eq!((verdict.seeds, verdict.failures), (1_000, vec![]), "{}", subject.name);
        let longest = verdict.settled_after.expect("it is promised");
        println!("{}: at most {longest}", subject.name);
        assert!(longest <= Duration::from_secs(10), "{}: {longest}", subject.name);
    }
}

/// Three of four witnesses fell out of their ring of seven and were let in again, as new lives: nobody could be elected in it, and
/// its members gave it up one by one, over half a minute.
#[test]
fn a_ring_in_which_nobody_can_be_elected_is_given_up_by_all_at_once() {
    let verdict = sweep(&named("leased"), Case::Reordering, 300, 1, || ());
    assert_eq!((verdict.seeds, verdict.failures), (1, vec![]));
    let settled = verdict.settled_after.expect("it is promised");
    assert!(settled <= Duration::from_secs(40), "{settled}");
}

#[test]
fn the_published_rule_deposes_healthy_leaders_with_no_fault_at_all() {
    for subject in subjects().iter().filter(|subject| subject.known_to_break.is_some()) {
        let verdict = sweep(subject, Case::Elect, 1, 20, || ());
        assert_eq!(verdict.failures.len(), 20, "{}", subject.name);
        for (seed, violation) in verdict.failures {
            assert_eq!(violation.invariant, "settles", "{} seed {seed}", subject.name);
        }
    }
}

/// The suite would notice a promise that is too good: half the time is not enough.
#[test]
fn a_mode_that_promises_too_much_is_caught() {
    let mut subject = named("le-s");
    subject.settles_within = subject.settles_within.map(|within| within.div(2));
    let caught = sweep(&subject, Case::Crash, 1, 50, || ());
    assert!(!caught.failures.is_empty());
}

#[test]
fn the_sweep_does_not_depend_on_the_number_of_threads() {
    let subject = &named("eventual");
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let one = alone.install(|| sweep(subject, Case::Swarm, 7, 40, || ()));
    let many = sweep(subject, Case::Swarm, 7, 40, || ());
    assert_eq!(one, many);
}
