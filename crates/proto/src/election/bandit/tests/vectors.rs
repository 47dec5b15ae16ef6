//! The test vectors of the rules that need no network.

use super::{
    super::{
        estimator::{Arm, Estimates},
        policy::{Chooser, bonus},
    },
    *,
};
use proptest::prelude::*;

const UP: f64 = 1.0;
const DOWN: f64 = 0.0;

fn near(found: f64, expected: f64, digits: f64) -> bool {
    (found - expected).abs() < digits
}

/// Mean and weight after each of these samples.
fn after(mean: f64, weight: u64, costs: &[f64]) -> Vec<(f64, u64)> {
    let mut estimates = Estimates::of(vec![Arm::new(mean, weight)]);
    let step = |&cost: &f64| {
        estimates.sample(0, cost);
        (estimates.arm(0).mean, estimates.arm(0).weight)
    };
    costs.iter().map(step).collect()
}

#[test]
fn tv_1_to_4_the_estimate_is_a_running_mean() {
    type Row<'a> = (f64, u64, &'a [f64], &'a [(f64, u64)]);
    let rows: [Row<'_>; 4] = [
        (0.2, 1, &[UP, DOWN, DOWN], &[(0.6, 2), (0.4, 3), (0.3, 4)]),
        (0.2, 0, &[UP, DOWN], &[(1.0, 1), (0.5, 2)]),
        (0.01, 1999, &[UP], &[(0.010495, 2000)]),
        (0.1, 1, &[UP, UP, UP], &[(0.55, 2), (0.7, 3), (0.775, 4)]),
    ];
    for (mean, weight, costs, expected) in rows {
        let found = after(mean, weight, costs);
        for (&(mean, weight), &(m, w)) in found.iter().zip(expected) {
            assert!(near(mean, m, 1e-9) && weight == w, "{found:?}, not {expected:?}");
        }
        assert_eq!(found.len(), expected.len());
    }
}

/// The beliefs of TV-5 and TV-8, with as many samples as weight.
fn tv_5(policy: Policy, profile: Profile) -> Chooser {
    let means = [0.94, 0.01, 0.02, 0.93, 0.67];
    let counts = [40, 400, 300, 38, 45];
    // Fed so that both weight and samples come out as given: the first sample sets the mean of an arm of weight 0.
    let mut estimates = Estimates::of(vec![Arm::new(0.0, 0); 5]);
    for (node, (mean, count)) in means.into_iter().zip(counts).enumerate() {
        for _ in 0..count {
            estimates.sample(node, mean);
        }
    }
    assert_eq!(estimates.total(), 823);
    Chooser::new(policy, profile, estimates)
}

#[test]
fn tv_5_and_6_ucb_subtracts_its_bonus() {
    let rows = [
        (2.0, [0.1207, -0.2491, -0.2792, 0.0894, -0.1025], [2, 1, 4, 3, 0]),
        (0.1, [0.8990, -0.0030, 0.0050, 0.8880, 0.6314], [1, 2, 4, 3, 0]),
    ];
    let mut rng = Seed::new(1).rng();
    for (weight, scores, order) in rows {
        for profile in [Profile::Published, Profile::Reference] {
            let mut chooser = tv_5(Policy::Ucb { weight }, profile);
            for (found, expected) in chooser.scores(&mut rng).iter().zip(scores) {
                assert!(near(found.value, expected, 6e-5), "{found:?}, not {expected}");
            }
            assert_eq!(chooser.list(5, None, &mut rng), order);
            let mut two = chooser.list(2, None, &mut rng);
            two.sort_unstable();
            assert_eq!(two, [1, 2]);
        }
    }
}

#[test]
fn tv_7_pings_go_to_the_least_known_and_never_to_oneself() {
    let counts = [5, 2, 7, 2, 9];
    let found = counts.map(|count| bonus(1.0, 25.0, f64::from(count)));
    for (found, expected) in found.into_iter().zip([0.8024, 1.2686, 0.6781, 1.2686, 0.5980]) {
        assert!(near(found, expected, 6e-5), "{found}, not {expected}");
    }
    let arms = counts.map(|count| Arm::new(0.5, count as u64)).to_vec();
    let chooser = Chooser::new(Policy::UCB, Profile::Published, Estimates::of(arms));
    let mut rng = Seed::new(1).rng();
    assert_eq!(chooser.ping_target(Some(4), 25, |_| false, &mut rng), Some(1), "a tie with 3");
    assert_eq!(chooser.ping_target(Some(1), 25, |_| false, &mut rng), Some(3));
}

#[test]
fn tv_8_the_program_pings_whom_it_believes_bad() {
    let mut rng = Seed::new(1).rng();
    let published = tv_5(Policy::UCB, Profile::Published);
    assert_eq!(published.ping_target(None, 823, |_| false, &mut rng), Some(3));
    assert!(near(bonus(1.0, 823.0, 38.0), 0.4203, 6e-5));
    let reference = tv_5(Policy::UCB, Profile::Reference);
    let expected = [1.7593, 0.2691, 0.3192, 1.7706, 1.4425];
    for (found, expected) in reference.reference_ping_values().into_iter().zip(expected) {
        assert!(near(found, expected, 6e-5), "{found}, not {expected}");
    }
    assert_eq!(reference.ping_target(Some(3), 823, |_| false, &mut rng), Some(3), "even itself");
}

#[test]
fn tv_9_epsilon_decays_with_every_list() {
    let mut chooser =
        Chooser::new(Policy::EPSILON_GREEDY, Profile::Reference, estimates(&[0.1; 5]));
    let mut rng = Seed::new(1).rng();
    for selection in 1..=100 {
        chooser.list(2, None, &mut rng);
        let expected = match selection {
            1 => 0.0990,
            28 => 0.0755,
            50 => 0.0605,
            100 => 0.0366,
            _ => continue,
        };
        assert!(near(chooser.epsilon(), expected, 6e-5), "{}", chooser.epsilon());
    }
}

#[test]
fn tv_10_buffers_forget_and_the_program_overwrites() {
    let outcomes = [UP, DOWN, DOWN, UP, UP];
    let fresh =
        || Estimates::of(vec![Arm::new(0.2, 1)]).with_memory(Policy::EPSILON_GREEDY, Some(3));
    let check = |found: f64, expected: f64| assert!(near(found, expected, 6e-5), "{found}");
    let mut text = fresh();
    check(text.estimate(0), 0.2);
    for (outcome, expected) in outcomes.into_iter().zip([1.0, 0.5, 0.3333, 0.3333, 0.6667]) {
        text.sample(0, outcome);
        check(text.estimate(0), expected);
    }
    let mut program = fresh();
    for (outcome, expected) in outcomes.into_iter().zip([0.6, 0.4, 0.3333, 0.3333, 0.6667]) {
        program.sample(0, outcome);
        program.overwrite();
        check(program.arm(0).mean, expected);
    }
    let running = after(0.2, 1, &outcomes);
    for ((found, _), expected) in running.into_iter().zip([0.6, 0.4, 0.3, 0.44, 0.5333]) {
        check(found, expected);
    }
}

fn winner(tally: Tally, lists: &[&[usize]], may: impl Fn(usize) -> bool) -> Option<usize> {
    tally.winner(5, lists.iter().copied(), may)
}

#[test]
fn tv_11_and_26_lists_are_counted_three_ways() {
    let lists: [&[usize]; 3] = [&[2, 1]; 3];
    assert_eq!(winner(Tally::Approval(Ties::Lowest), &lists, |_| true), Some(1));
    assert_eq!(winner(Tally::Approval(Ties::Highest), &lists, |_| true), Some(2));
    assert_eq!(winner(Tally::Borda, &lists, |_| true), Some(2));
    let lists: [&[usize]; 3] = [&[2, 1, 4], &[2, 4, 1], &[1, 2, 3]];
    assert_eq!(winner(Tally::Borda, &lists, |_| true), Some(2));
    let lists: [&[usize]; 3] = [&[2, 1, 4], &[2, 1, 4], &[1, 2, 4]];
    assert_eq!(winner(Tally::Borda, &lists, |node| node != 2), Some(1));
    assert_eq!(winner(Tally::Borda, &[], |_| true), None, "no list, no winner");
    assert_eq!(winner(Tally::Borda, &[&[7, 9]], |_| true), None, "strangers are on no ballot");
}

#[test]
fn tv_12_half_a_point_does_not_bar_a_dead_favourite() {
    let mut chooser = Chooser::new(
        Policy::EpsilonGreedy { epsilon: 0.0, decay: 1.0 },
        Profile::Published,
        estimates(&[0.94, 0.01, 0.012, 0.93, 0.67]),
    );
    let mut rng = Seed::new(1).rng();
    let mut elected = |chooser: &mut Chooser| {
        let mut list = chooser.list(2, None, &mut rng);
        list.sort_unstable();
        let won = winner(Tally::Approval(Ties::Lowest), &[&list, &list, &list], |_| true);
        (list, won.unwrap())
    };
    assert_eq!(elected(&mut chooser), (vec![1, 2], 1));
    chooser.estimates.penalise(1, 0.5);
    assert_eq!(elected(&mut chooser), (vec![1, 2], 1), "still among the best two");
    chooser.estimates.penalise(1, 0.5);
    assert_eq!(elected(&mut chooser), (vec![2, 4], 2));
}

#[test]
fn tv_18_random_lists_do_not_elect_at_random() {
    let mut wins = [0; 5];
    for votes in 0..125_usize {
        let lists = [votes % 5, votes / 5 % 5, votes / 25].map(|vote| [vote]);
        let lists: Vec<&[usize]> = lists.iter().map(|list| &list[..]).collect();
        wins[winner(Tally::Approval(Ties::Lowest), &lists, |_| true).unwrap()] += 1;
    }
    assert_eq!(wins, [49, 31, 19, 13, 13]);
}

#[test]
fn whoever_was_never_tried_comes_first() {
    let mut estimates = Estimates::of(vec![Arm::new(0.9, 0), Arm::new(0.0, 0), Arm::new(0.9, 0)]);
    estimates.sample(1, 0.0);
    for policy in [
        Policy::UCB,
        Policy::DiscountedUcb { weight: 2.0, discount: 0.9 },
        Policy::SlidingUcb { weight: 2.0, window: 9 },
    ] {
        let estimates = estimates.clone().with_memory(policy, None);
        let mut chooser = Chooser::new(policy, Profile::Reference, estimates);
        assert_eq!(chooser.list(3, None, &mut Seed::new(1).rng()), [0, 2, 1], "{policy:?}");
    }
}

#[test]
fn a_window_and_a_discount_forget_what_a_mean_does_not() {
    let sliding = Policy::SlidingUcb { weight: 0.1, window: 10 };
    let discounted = Policy::DiscountedUcb { weight: 0.1, discount: 0.5 };
    let thompson = Policy::Thompson { discount: 0.5 };
    for policy in [sliding, discounted, thompson] {
        let mut estimates = estimates(&[0.5, 0.5]).with_memory(policy, None);
        for (good, bad) in [(0, 1), (1, 0)] {
            for _ in 0..20 {
                estimates.sample(good, DOWN);
                estimates.sample(bad, UP);
                estimates.age();
            }
        }
        let mut chooser = Chooser::new(policy, Profile::Hardened, estimates);
        let mut rng = Seed::new(3).rng();
        let firsts = (0..100).filter(|_| chooser.list(1, None, &mut rng) == [1]).count();
        // Discounted by half each time, some two samples count: Thompson is not sure of them.
        let least = if policy == thompson { 60 } else { 100 };
        assert!(firsts >= least, "{policy:?}: {firsts}");
    }
}

#[test]
fn thompson_draws_from_what_is_believed() {
    let mut rng = Seed::new(4).rng();
    for (a, b) in [(1.0, 1.0), (3.0, 5.0), (21.0, 1.5)] {
        let draws = 20_000;
        let sum: f64 = (0..draws).map(|_| rng.beta(a, b)).sum();
        let (mean, whole) = (a / (a + b), a + b);
        let error = libm::sqrt(mean * (1.0 - mean) / (whole + 1.0) / f64::from(draws));
        // Four standard errors.
        assert!(near(sum / f64::from(draws), mean, 4.0 * error), "Beta({a}, {b})");
    }
}

proptest! {
    /// P-7.
    #[test]
    fn the_estimate_does_not_depend_on_the_order(
        prior in 0.0..=1.0_f64,
        outcomes in prop::collection::vec(any::<bool>(), 0..40),
    ) {
        let costs = |one: &bool| f64::from(u8::from(*one));
        let mut estimates = Estimates::of(vec![Arm::new(prior, 1)]);
        outcomes.iter().for_each(|one| estimates.sample(0, costs(one)));
        let mut turned = Estimates::of(vec![Arm::new(prior, 1)]);
        outcomes.iter().rev().for_each(|one| turned.sample(0, costs(one)));
        let ups = outcomes.iter().filter(|&&one| one).count() as f64;
        let closed = (prior + ups) / (1.0 + outcomes.len() as f64);
        let mean = estimates.arm(0).mean;
        prop_assert!(near(mean, closed, 1e-9) && near(turned.arm(0).mean, closed, 1e-9));
        prop_assert!((-1e-12..=1.0 + 1e-12).contains(&mean));
    }

    /// P-8.
    #[test]
    fn a_buffer_that_is_long_enough_is_the_mean_without_a_prior(
        prior in 0.0..=1.0_f64,
        outcomes in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let mut buffered =
            Estimates::of(vec![Arm::new(prior, 1)]).with_memory(Policy::UCB, Some(20));
        let mut plain = Estimates::of(vec![Arm::new(prior, 0)]);
        for one in outcomes {
            let cost = f64::from(u8::from(one));
            buffered.sample(0, cost);
            plain.sample(0, cost);
        }
        prop_assert!(near(buffered.estimate(0), plain.arm(0).mean, 1e-9));
    }

    /// P-13.
    #[test]
    fn the_penalised_come_after_all_others(
        means in prop::collection::vec(0.01..0.99_f64, 3..9),
        penalised in prop::collection::vec(any::<bool>(), 9),
    ) {
        let nodes = means.len();
        let barred: Vec<usize> = (0..nodes).filter(|&node| penalised[node]).collect();
        for profile in [Profile::Published, Profile::Hardened] {
            let mut chooser = Chooser::new(Policy::EPSILON_GREEDY, profile, estimates(&means));
            barred.iter().for_each(|&node| chooser.estimates.penalise(node, 1.0));
            let policy = Policy::EpsilonGreedy { epsilon: 0.0, decay: 1.0 };
            let mut chooser = Chooser::new(policy, profile, chooser.estimates.clone());
            let free = nodes - barred.len();
            let list = chooser.list(free, None, &mut Seed::new(1).rng());
            prop_assert!(list.iter().all(|node| !barred.contains(node)), "{list:?} {barred:?}");
        }
    }

    /// P-14.
    #[test]
    fn pings_reach_everybody_in_turn(nodes in 2..9_usize, me in 0..9_usize, cycles in 1..4_usize) {
        let me = me % nodes;
        let mut chooser =
            Chooser::new(Policy::EPSILON_GREEDY, Profile::Published, estimates(&vec![0.1; nodes]));
        let mut rng = Seed::new(1).rng();
        let mut pinged = vec![0; nodes];
        for sent in 0..cycles * (nodes - 1) {
            let target = chooser.ping_target(Some(me), sent as u64 + 2, |_| false, &mut rng);
            pinged[target.unwrap()] += 1;
            chooser.estimates.sample(target.unwrap(), DOWN);
        }
        for (node, &times) in pinged.iter().enumerate() {
            prop_assert_eq!(times, if node == me { 0 } else { cycles });
        }
    }
}
