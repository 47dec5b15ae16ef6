//! Keys of small rings, checked: every history of the machines themselves that deviates from the regular one in a few
//! places.

use bellwether_proto::{
    Boot, NodeId, Peer, Seed, Time,
    keys::{self, Keys},
    membership::ring::{self, Points, Ring},
};
use bellwether_sim::check::explore::{
    self, Kind, Model, Scripted, Settings,
    keys::{KeyJudge, KeyTally},
};

type Explored = explore::Explored<KeyTally>;

/// By how much clocks are off, in millionths.
const DRIFT: i32 = 10_000;

fn peer(node: u64) -> Peer {
    Peer::new(NodeId::new(node), Boot::new(1))
}

fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

fn owned() -> keys::Config {
    keys::Config::new()
        .with_slots(2)
        .and_then(|config| config.with_keepers(1))
        .expect("within bounds")
}

fn below() -> ring::Config {
    let config = ring::Config::hardened().with_points(Points::Identity, 64).with_rejoin(false);
    config
        .with_neighbours(2)
        .and_then(|config| config.with_drift(DRIFT.unsigned_abs()))
        .expect("within bounds")
}

/// Members of a ring, and one that joins it if there is to be one.
fn members(count: u64, joiner: Option<u64>, config: keys::Config) -> Model<'static, Keys> {
    let founders: Vec<Peer> = (0..count).map(peer).collect();
    let make = |node: u64| {
        let contacts = [NodeId::new(0), NodeId::new(1)];
        let ring = Ring::new(peer(node), below(), Seed::new(node), &founders, &contacts);
        (peer(node), Keys::new(ring, config, None))
    };
    let model = Model::new((0..count).chain(joiner).map(make));
    // Owners' clocks are slow, followers' are fast, and the other way about.
    (0..count).fold(model, |model, node| {
        model.with_drift(NodeId::new(node), if node % 2 == 0 { -DRIFT } else { DRIFT })
    })
}

fn explore(model: &Model<'_, Keys>, settings: &Settings) -> Explored {
    explore::explore(model, settings, KeyJudge::default())
}

/// Anybody may crash, and messages are late or lost, between two instants in milliseconds.
fn trouble((from, to): (u64, u64), most: u64) -> Settings {
    let settings = Settings { until: at(to + 5_500), most, ..Settings::new(at(from), at(to)) };
    settings.allow(Kind::Crash, 1, [])
}

fn holds(name: &str, explored: &Explored) {
    println!("{name}: {} states, {:?}", explored.states, explored.tally);
    assert_eq!(explored.violation, None, "{name}: {explored:?}");
    assert!(explored.tally.followed > 0, "{name}: nobody followed anybody");
}

/// The owner of one of the two slots of four members.
const OWNER: NodeId = NodeId::new(3);

/// Crashes in a span so long, a join, and a leave.
fn all(span: u64, most: u64) {
    for count in [3, 4] {
        let explored =
            explore(&members(count, None, owned()), &trouble((7_000, 7_000 + span), most));
        holds(&format!("crashes of {count}"), &explored);
        assert!(explored.tally.owned > 0, "{explored:?}");
    }
    // The joiner is to own one of the two slots.
    let joining = members(3, Some(9), owned());
    holds("a join", &explore(&joining, &trouble((2_500, 4_500), most)));
    let leaving = members(4, None, owned()).with_script(at(7_000), OWNER, Scripted::Leave);
    holds("a leave", &explore(&leaving, &trouble((7_000, 9_400), most)));
}

#[test]
fn never_has_a_key_two_owners() {
    all(600, 120_000);
}

/// The same, deeper; a few minutes.
#[test]
#[ignore = "millions of states"]
fn never_has_a_key_two_owners_in_millions_of_states() {
    all(4_000, 2_000_000);
}

#[test]
fn an_owner_that_hands_over_what_it_has_told_is_caught() {
    let hasty = members(4, None, owned().with_waits(false));
    let hasty = hasty.with_script(at(7_000), OWNER, Scripted::Leave);
    let explored = explore(&hasty, &trouble((7_000, 7_600), 120_000));
    assert!(explored.violation.is_some(), "{explored:?}");
}
