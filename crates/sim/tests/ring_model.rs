//! Small rings, checked: every history of the machines themselves that deviates from the regular one in a few places.

use bellwether_proto::{
    Boot, Duration, NodeId, Peer, Seed, Time,
    election::leased::{self, Flavour, Leased, Preference},
    membership::ring::{Config, Points, Ring},
};
use bellwether_sim::{
    check::explore::{
        self, Explorable, Kind, Model, Settings,
        ring::{RingJudge, RingTally},
    },
    observe::RingMember,
};

type Explored = explore::Explored<RingTally>;

fn explore<M: Explorable + RingMember>(nodes: Vec<(Peer, M)>, settings: &Settings) -> Explored {
    explore::explore(&Model::new(nodes), settings, RingJudge::default())
}

fn peer(node: u64) -> Peer {
    Peer::new(NodeId::new(node), Boot::new(1))
}

fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

fn config(config: Config, k: usize) -> Config {
    let config =
        config.with_points(Points::Identity, 64).with_neighbours(k).expect("within bounds");
    config.with_rejoin(false)
}

/// A ring of `n`, in the order of identities.
fn ring(n: u64, config: Config) -> Vec<(Peer, Ring)> {
    let founders: Vec<Peer> = (0..n).map(peer).collect();
    let make =
        |one: &Peer| (*one, Ring::new(*one, config, Seed::new(one.id.get()), &founders, &[]));
    founders.iter().map(make).collect()
}

/// The same with a leader, the lowest.
fn led(n: u64, flavour: Flavour, waits: bool, below: Config) -> Vec<(Peer, Leased)> {
    let config = leased::Config::new(flavour).with_preference(Preference::Lowest).with_waits(waits);
    let nodes = ring(n, below).into_iter();
    nodes.map(|(peer, ring)| (peer, Leased::new(ring, config, None))).collect()
}

fn cut() -> Vec<(Time, NodeId, NodeId)> {
    vec![(at(6_000), NodeId::new(0), NodeId::new(1))]
}

/// Nothing passes between 0 and 1 from 6 s on, and messages about it are late or lost.
fn accusing(deviations: u32, most: u64) -> Settings {
    Settings {
        deviations,
        cut: cut(),
        until: at(14_000),
        most,
        ..Settings::new(at(6_000), at(9_500))
    }
}

fn holds(explored: &Explored) {
    assert_eq!(explored.violation, None, "{explored:?}");
}

#[test]
fn of_two_that_accuse_each_other_never_both_stay() {
    let mut states = 0;
    for (n, k, form) in [
        (4, 1, Config::as_published()),
        (4, 1, Config::hardened()),
        (5, 2, Config::as_published()),
        (5, 2, Config::hardened()),
    ] {
        let explored = explore(ring(n, config(form, k)), &accusing(2, 150_000));
        holds(&explored);
        assert!(explored.tally.won > 0, "n {n}: {explored:?}");
        states += explored.states;
    }
    println!("accusations: {states} states");
}

#[test]
fn arbitrators_that_forget_too_soon_are_caught() {
    for form in [Config::as_published(), Config::hardened()] {
        let form = config(form, 1).with_memory(Duration::from_millis(1_250));
        let slow = Settings { late: Duration::from_millis(450), ..accusing(3, 400_000) };
        let explored = explore(ring(4, form), &slow);
        assert!(explored.violation.is_some(), "{explored:?}");
    }
}

/// A crash and a cut link at once: groups change while they are asked.
#[test]
fn groups_may_change_while_they_are_asked() {
    let mut states = 0;
    for form in [Config::as_published(), Config::hardened()] {
        let settings = Settings {
            deviations: 2,
            cut: cut(),
            until: at(16_000),
            most: 200_000,
            ..Settings::new(at(6_000), at(11_000))
        };
        let settings = settings.allow(Kind::Crash, u32::MAX, [2, 3].map(NodeId::new));
        let explored = explore(ring(6, config(form, 1)), &settings);
        holds(&explored);
        states += explored.states;
    }
    println!("upgrades: {states} states");
}

/// A joiner, late and lost messages, and a neighbour that may crash at any time (Theorem 6).
#[test]
fn a_join_is_whole_or_not_at_all() {
    let mut states = 0;
    for (form, window) in [(Config::as_published(), 6_000), (Config::hardened(), 2_500)] {
        let form = config(form, 1);
        let mut nodes = ring(4, form);
        let joiner = Ring::new(peer(9), form, Seed::new(9), &[], &[NodeId::new(0)]);
        nodes.push((peer(9), joiner));
        let settings = Settings {
            deviations: 2,
            until: at(window + 9_000),
            most: 200_000,
            ..Settings::new(Time::ZERO, at(window))
        };
        let settings = settings.allow(Kind::Crash, u32::MAX, [NodeId::new(3)]);
        let explored = explore(nodes, &settings);
        holds(&explored);
        assert!(explored.tally.joined > 0 && explored.tally.apart > 0, "{explored:?}");
        states += explored.states;
    }
    println!("joins: {states} states");
}

/// A leader that may crash, under late and lost messages. One lost request is enough
/// for a successor to suspect a leader whose own leases are still renewed: no cut is as tight.
fn leaders(deviations: u32, most: u64) -> Settings {
    let settings =
        Settings { deviations, until: at(15_000), most, ..Settings::new(at(6_000), at(10_000)) };
    settings.allow(Kind::Crash, u32::MAX, [NodeId::new(0)])
}

/// The leader's clock is slow, others are fast.
fn explore_led(nodes: Vec<(Peer, Leased)>, ppm: i32, settings: &Settings) -> Explored {
    let drifting = |model: Model<'static, Leased>, node: u64| {
        model.with_drift(NodeId::new(node), if node == 0 { -ppm } else { ppm })
    };
    let count = nodes.len() as u64;
    explore::explore(&(0..count).fold(Model::new(nodes), drifting), settings, RingJudge::default())
}

#[test]
fn never_are_two_leaders_valid() {
    let mut states = 0;
    for flavour in [Flavour::Quorum, Flavour::Conservative, Flavour::Fast] {
        for n in [3, 4] {
            let below = config(Config::hardened(), 2).with_drift(10_000).unwrap();
            let explored = explore_led(led(n, flavour, true, below), 10_000, &leaders(2, 150_000));
            holds(&explored);
            assert!(explored.tally.followed > 0, "{flavour:?} of {n}: {explored:?}");
            let gap = explored.tally.smallest_gap.unwrap();
            println!("{flavour:?} of {n}: {} states, smallest gap {gap}", explored.states);
            assert!(!gap.is_zero());
            states += explored.states;
        }
    }
    println!("leaders: {states} states");
}

#[test]
fn a_successor_that_does_not_wait_is_caught() {
    for flavour in [Flavour::Quorum, Flavour::Fast] {
        let below = config(Config::hardened(), 2).with_drift(10_000).unwrap();
        let explored = explore_led(led(4, flavour, false, below), 10_000, &leaders(2, 150_000));
        assert!(explored.violation.is_some(), "{flavour:?}: {explored:?}");
    }
}

/// The leader's clock is slow, its successor's is fast, and neither allows for it.
#[test]
fn clocks_worse_than_allowed_for_are_caught() {
    let settings = leaders(1, 150_000).allow(Kind::Crash, 0, []);
    for (allowed, caught) in [(0, true), (100_000, false)] {
        let below = config(Config::hardened(), 2).with_drift(allowed).unwrap();
        let explored = explore_led(led(4, Flavour::Fast, true, below), 100_000, &settings);
        assert_eq!(explored.violation.is_some(), caught, "{allowed} ppm: {explored:?}");
    }
}

/// All of the above, deeper; a few minutes.
#[test]
#[ignore = "millions of states"]
fn millions_of_states_hold() {
    let mut states = 0;
    let mut count = |name: &str, explored: Explored| {
        println!("{name}: {explored:?}");
        holds(&explored);
        states += explored.states;
    };
    for form in [Config::as_published(), Config::hardened()] {
        let settings = accusing(3, 2_000_000);
        count("accusations", explore(ring(4, config(form, 1)), &settings));
        count("accusations of five", explore(ring(5, config(form, 2)), &settings));
    }
    for flavour in [Flavour::Quorum, Flavour::Conservative, Flavour::Fast] {
        let below = config(Config::hardened(), 2).with_drift(10_000).unwrap();
        count("leaders", explore_led(led(4, flavour, true, below), 10_000, &leaders(3, 2_000_000)));
    }
    println!("{states} states");
    assert!(states >= 5_000_000, "{states}");
}
