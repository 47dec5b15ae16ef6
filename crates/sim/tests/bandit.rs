//! Bandit elections with clients on failing machines, and the hardened form under every fault.

use bellwether_proto::Duration;
use bellwether_sim::{
    check::conformance::{Case, subjects, sweep},
    observe::{Log, Metric},
    run::{
        bandit::{Account, serve},
        run,
    },
    scenario::{Protocol, Scenario},
};

const PAPER: &str = r#"
name = "the report"
duration = "20000s"
[network]
nodes = 5
delay = { kind = "uniform", low = "1ms", high = "10ms" }
[election]
kind = "bandit"
form = "reference"
[election.client]
requests = 2500
[election.environment]
kind = "block"
machines = [0.95, 0.15, 0.15, 0.95, 0.7]
"#;

fn account(sets: &[&str], seed: u64) -> Account {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::parse("report", PAPER, &sets).expect("a right scenario");
    let Protocol::Bandit(settings) = &scenario.protocol else { panic!() };
    serve(&scenario, settings, seed, Log::none()).expect("a mesh is connected")
}

/// `C6`: what a run takes follows from its rounds, to the second.
#[test]
fn a_run_of_the_program_takes_as_long_as_its_rounds_say() {
    for policy in ["epsilon-greedy", "ucb", "random", "next"] {
        let served = account(&[&format!("election.policy={policy}")], 3).served;
        let failed = served.failed();
        let elected = served.rounds.len() as u64 - failed;
        let seconds = 2 * 2500 + 6 * elected + 8 * failed;
        assert_eq!(served.end.as_micros(), seconds * 1_000_000, "{policy}");
        assert_eq!(served.answered + served.abandoned, 2500, "{policy}");
        assert!(elected > 5 && served.rounds.len() < 80, "{policy}: {elected} and {failed}");
    }
}

/// P-10: DLE in the program's environment is a Markov chain of known mean. Within four standard errors and the 3% by
/// which elections that fall on the end of a period differ from the chain.
#[test]
fn p_10_dle_takes_as_many_rounds_as_the_chain_says() {
    let runs = 100;
    let rounds: Vec<f64> = (0..runs)
        .map(|seed| account(&["election.policy=next"], seed).served.rounds.len() as f64)
        .collect();
    let mean = rounds.iter().sum::<f64>() / f64::from(runs as u32);
    assert!((mean / 32.8 - 1.0).abs() < 0.07, "{mean} rounds, not 32.8");
    println!("DLE {mean}");
}

#[test]
fn learning_beats_both_baselines() {
    let mean = |policy: &str| {
        let of = |seed| account(&[&format!("election.policy={policy}")], seed).served.rounds.len();
        (0..40).map(of).sum::<usize>() as f64 / 40.0
    };
    let (eps, ucb, rle, dle) = (mean("epsilon-greedy"), mean("ucb"), mean("random"), mean("next"));
    println!("eps {eps} ucb {ucb} rle {rle} dle {dle}");
    // P-9: nobody can do better than the least often failing machine.
    assert!(eps >= 14.3 && eps < 0.75 * dle && eps < 0.75 * rle && ucb < 0.9 * dle);
}

#[test]
fn one_seed_is_one_run_and_every_policy_meets_the_same_failures() {
    assert_eq!(account(&[], 5), account(&[], 5));
    assert_ne!(account(&[], 5).trace, account(&[], 6).trace);
    let drawn = "election.environment.machines=table-1";
    let machines =
        |policy: &str| account(&[drawn, &format!("election.policy={policy}")], 9).served.failures;
    assert_eq!(machines("ucb"), machines("next"));
}

#[test]
fn hardened_every_request_is_answered_and_no_term_has_two_leaders() {
    for (nodes, machines) in [(5, "[0.95, 0.15, 0.15, 0.95, 0.7]"), (11, "table-1")] {
        let account = account(
            &[
                &format!("network.nodes={nodes}"),
                "election.form=hardened",
                &format!("election.environment.machines={machines}"),
                "election.client.requests=1000",
            ],
            2,
        );
        let served = &account.served;
        assert_eq!(account.violations, []);
        assert_eq!((served.answered, served.abandoned), (1000, 0));
        assert!(account.sometimes.iter().all(|&(_, _, arose)| arose), "{:?}", account.sometimes);
        println!(
            "{nodes}: {} rounds, {} failed, {} terms, several for {}, {:?}",
            served.rounds.len(),
            served.failed(),
            served.terms,
            served.several,
            served.sent,
        );
    }
}

/// As published two lead at once now and then; that is what terms are for.
#[test]
fn published_two_may_lead_at_once_under_loss() {
    let several = (0..20).filter(|&seed| {
        let account = account(
            &[
                "election.form=as-published",
                "network.loss={ kind = \"independent\", rate = 0.2 }",
                "election.client.requests=500",
            ],
            seed,
        );
        account.served.most_leading > 1
    });
    assert!(several.count() > 0);
}

/// A majority up is enough: after any of the suite's troubles there is a leader again, and never two in a term.
#[test]
fn hardened_swarms_are_safe_and_end() {
    let subjects = subjects();
    let subject = subjects.iter().find(|subject| subject.name == "bandit").unwrap();
    let verdict = sweep(subject, Case::Swarm, 1_000, 300, || ());
    assert_eq!(verdict.failures, []);
}

/// Every case of the suite, some six hundred seeds each. `bellwether conform --mode bandit --seeds 600` is the same.
#[test]
#[ignore = "takes a minute"]
fn ten_thousand_fault_seeds_and_no_term_with_two_leaders() {
    let subjects = subjects();
    let subject = subjects.iter().find(|subject| subject.name == "bandit").unwrap();
    let mut tried = 0;
    for case in Case::ALL {
        let verdict = sweep(subject, case, 50_000, 600, || ());
        assert_eq!(verdict.failures, [], "{case}");
        tried += verdict.seeds;
    }
    assert!(tried >= 10_000, "{tried}");
    println!("{tried} seeds");
}

/// P-5: delays are bounded, a majority stays up, leases have run out: one term suffices.
#[test]
fn p_5_one_term_elects_when_nobody_fails_meanwhile() {
    let scenario = r#"
        name = "the leader crashes"
        duration = "60s"
        [network]
        nodes = 7
        delay = { kind = "uniform", low = "1ms", high = "100ms" }
        [election]
        kind = "bandit"
        [[fault]]
        at = "20s"
        kind = "crash"
        target = "leader"
        [[fault]]
        at = "40s"
        kind = "crash"
        target = "leader"
    "#;
    let scenario = Scenario::parse("p-5", scenario, &[]).unwrap();
    for seed in 0..100 {
        let outcome = run(&scenario, seed).unwrap();
        assert_eq!(outcome.violations, []);
        let recovery = outcome.value(Metric::RecoveryTime).unwrap();
        // The lease, the lists, the votes and the word of it: no second term has time.
        let most = Duration::from_millis(2_000 + 300 + 100 * 4);
        assert!(recovery <= most.as_secs_f64(), "seed {seed}: {recovery}");
        assert_eq!(outcome.value(Metric::LeadersAtOnce), Some(1.0));
    }
}
