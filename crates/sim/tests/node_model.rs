//! The node as shipped, checked: leased, learned and eventual elections of small groups, made by the table of presets that
//! agents are made by, in every history that deviates from the regular one in a few places.
//!
//! `cargo run --release -p bellwether-sim --example explore_nodes` searches one case as far as one likes; `checks/mutants`
//! breaks rules of the node to see that these searches notice.

use bellwether_proto::{
    Duration, Time,
    node::{Plan, Protocol, TimingProfile},
};
use bellwether_sim::check::explore::{
    Explored, Told,
    nodes::{Case, Tally, cases},
    replay,
};

fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).expect("a case of this name")
}

fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

fn search(case: &Case, most: u64) -> Explored<Tally> {
    let explored = case.explore(most);
    let Explored { states, histories, cut, tally, .. } = &explored;
    let short = if *cut { ", cut short" } else { "" };
    println!("{}: {states} states, {histories} histories{short}, {tally:?}", case.name);
    if let Some(violation) = &explored.violation {
        panic!("{}: {violation}", case.name);
    }
    explored
}

/// Adds up what was seen.
#[derive(Default)]
struct Sum {
    states: u64,
    tally: Tally,
}

impl Sum {
    fn add(&mut self, explored: Explored<Tally>) {
        use bellwether_sim::check::explore::{Judge, nodes::Shipped};
        self.states += explored.states;
        Shipped::merge(&mut self.tally, explored.tally);
    }
}

/// One deviation at every place of a part of each window: which part is arbitrary, and as much as CI has time for.
#[test]
fn shipped_nodes_keep_their_promises() {
    let mut sum = Sum::default();
    for (name, from, to) in [
        ("leased-meeting", 0, 900),
        ("leased-founding", 2_000, 2_040),
        ("leased-leading", 6_000, 6_150),
        ("leased-crash", 6_600, 7_200),
        ("leased-restart", 5_900, 6_600),
        ("leased-pause", 8_000, 8_300),
        ("leased-restart-all", 6_000, 7_700),
        ("leased-conservative-crash", 6_600, 7_200),
        ("leased-fast-crash", 6_600, 7_200),
        ("leased-two-rings", 19_000, 19_600),
        ("learned-meeting", 0, 1_900),
        ("learned-founding", 1_800, 2_600),
        ("learned-crash", 4_900, 9_500),
        ("learned-restart", 4_900, 7_500),
        ("learned-pause", 8_000, 10_000),
        ("learned-restart-all", 4_900, 8_500),
        ("eventual-crash", 5_600, 7_500),
        ("eventual-pause", 5_600, 9_000),
        ("eventual-watch", 6_000, 8_000),
    ] {
        let mut case = case(name).with_deviations(1);
        case.search.window = (at(from), at(to));
        let explored = search(&case, u64::MAX);
        assert!(!explored.cut && explored.tally.led > 0, "{name}: nobody ever leads");
        sum.add(explored);
    }
    let Tally { followed, founded_in_window, two_rings, refused, restarted, .. } = sum.tally;
    println!("{} states, smallest gap {:?}", sum.states, sum.tally.smallest_gap);
    assert!(followed > 0 && founded_in_window > 0 && two_rings > 0 && refused > 0 && restarted > 0);
    // Nobody follows before what a leader has begun is over.
    assert!(sum.tally.smallest_gap >= Some(TimingProfile::Lan.timing().step_down));
}

/// What was said to found it is over.
#[test]
fn a_ring_that_stands_is_founded_no_more() {
    let case = case("leased-leading");
    let mut late = Vec::new();
    let judged = replay(&case.model(|_| ()), &case.search, case.judge(), &[], |line| {
        if let Told::Step(line) = line
            && line.contains("body: Ready")
        {
            late.extend(line.split_once('s').and_then(|(at, _)| at.parse::<f64>().ok()));
        }
    });
    assert_eq!(judged, Ok(()));
    assert!(late.iter().any(|&at| at < 4.0), "nobody was ever ready");
    assert!(late.iter().all(|&at| at < 4.0), "{late:?}");
}

/// Plans that are not what is shipped, each wrong in one place: the searches would notice.
#[test]
fn plans_that_are_wrong_are_caught() {
    let leased = |plan: &mut Plan, change: fn(&mut bellwether_proto::node::FoundingConfig)| {
        for seat in &mut plan.seats {
            if let Protocol::Leased(config) = &mut seat.protocol {
                change(config);
            }
        }
    };
    let caught = |name: &str, deviations: u32, wrong: &str, change: &(dyn Fn(&mut Plan) + Sync)| {
        let explored = case(name).with_deviations(deviations).explore_changed(400_000, change);
        let violation = explored.violation.unwrap_or_else(|| panic!("{wrong} is not noticed"));
        println!("{wrong}: after {} states, {}", explored.states, violation.problem);
    };
    caught("leased-two-rings", 0, "one backs a leader, itself", &|plan| {
        leased(plan, |config| {
            config.election = config.election.with_backers(1).with_min_members(1);
        });
    });
    caught("leased-crash", 1, "a successor that does not wait", &|plan| {
        leased(plan, |config| config.election = config.election.with_waits(false));
    });
    caught("learned-meeting", 0, "a voter that knows of no other", &|plan| {
        let name = plan.about.name.clone();
        for seat in &mut plan.seats {
            if let Protocol::Learned(config) = &mut seat.protocol {
                config.voters = vec![name.clone()];
            }
        }
    });
    caught("eventual-pause", 0, "a leader that does not look at the clock", &|plan| {
        plan.seats.iter_mut().for_each(|seat| seat.guard = Duration::from_secs(3_600));
    });
    caught("eventual-watch", 0, "a leader that nobody watches", &|plan| {
        plan.gossip = plan.gossip.with_beat(None).expect("no beat is a choice");
    });
}

/// All cases, deeper; a few minutes in a release build.
#[test]
#[ignore = "millions of states"]
fn millions_of_states_hold() {
    for mode in ["leased", "learned", "eventual"] {
        let mut sum = Sum::default();
        for case in cases().into_iter().filter(|case| case.name.starts_with(mode)) {
            sum.add(search(&case, 1_000_000));
        }
        let Sum { states, tally } = sum;
        println!("{mode}: {states} states, {tally:?}");
        assert!(mode == "eventual" || states >= 5_000_000, "{mode}: {states}");
    }
}
