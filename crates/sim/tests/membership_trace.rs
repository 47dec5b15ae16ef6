//! Recorded lists: the same from the same seed, and the same again when played to somebody else.

use std::{collections::BTreeMap, convert::Infallible, path::Path};

use bellwether_proto::{
    Input, InputOf, Machine, NodeId, OutboxOf, Rejected, Seed, Time, membership::medley::Message,
};
use bellwether_sim::{
    engine::Sim,
    lists::membership_trace::{Change, INTERVAL, Lister, MembershipTrace, Recorder, inject},
    run::record_membership,
    scenario::Scenario,
    world::{Network, place},
};
use rayon::prelude::*;

/// The field of the thesis with loss and churn, so that there is something to see.
fn field() -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/medley-field.toml");
    let churn = r#"fault=[
        { at = "20s", kind = "crash", count = 3 },
        { at = "90s", kind = "recover", state = "lost" },
        { at = "150s", kind = "leave", count = 2 },
    ]"#;
    let sets = [churn, "network.loss.rate=0.1"].map(str::to_owned);
    Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"))
}

fn record(scenario: &Scenario, seed: u64) -> MembershipTrace {
    let trace = record_membership(scenario, seed, INTERVAL).expect("the field can be drawn");
    trace.expect("members keep lists")
}

/// Stands on a membership and only keeps what it is told.
#[derive(Default)]
struct Listener(BTreeMap<NodeId, u32>);

impl Machine for Listener {
    type Message = Message;
    type Timer = Infallible;
    type Feed = (NodeId, Change);
    type Command = Infallible;
    type Durable = ();
    type Event = ();

    fn handle(
        &mut self,
        _now: Time,
        input: InputOf<'_, Self>,
        _out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Feed((member, Change::Up { suspicions } | Change::Suspicions(suspicions))) => {
                self.0.insert(member, suspicions);
            }
            Input::Feed((member, Change::Down)) => {
                self.0.remove(&member);
            }
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, Infallible)> {
        None
    }
}

impl Lister for Listener {
    fn listed(&self, each: &mut dyn FnMut(NodeId, u32)) {
        self.0.iter().for_each(|(&id, &suspicions)| each(id, suspicions));
    }
}

/// Plays a trace of the scenario to listeners and records their lists.
fn played(scenario: &Scenario, trace: &MembershipTrace, seed: u64) -> Vec<u8> {
    let world = Seed::new(1);
    let placed = place(&scenario.network.placement, trace.nodes(), &mut world.rng());
    let placed = placed.expect("the field can be drawn");
    let network = Network::new(&scenario.network, placed, trace.nodes(), world.rng());
    let build = Box::new(|_, _, _| Listener::default());
    let mut sim = Sim::new(network, trace.nodes(), world, build, ());
    let mut recorder = Recorder::new(trace.nodes(), trace.interval(), scenario.digest(), seed);
    inject(&mut sim, trace, |member, change| (member, change), |sim| recorder.look(sim));
    recorder.finish().to_bytes()
}

/// Entries that say somebody is suspected.
fn suspicions(trace: &MembershipTrace) -> usize {
    trace.feeds().filter(|feed| matches!(feed.change, Change::Suspicions(1..))).count()
}

/// `wang-tab-5.1-trace`: the lists the election chapters are fed with. Cells of the lab are runs with metrics,
/// and equal bytes are none, so this experiment is a test.
#[test]
fn at_every_loss_of_table_5_1_a_seed_gives_one_trace_that_plays_back() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/medley-field.toml");
    let mut seen = Vec::new();
    for loss in ["0.05", "0.1", "0.15", "0.2"] {
        let loss = format!("network.loss.rate={loss}");
        let published = ["membership.form=as-published", "membership.phase=sync", "fault=[]"];
        let sets: Vec<String> = published.map(str::to_owned).into_iter().chain([loss]).collect();
        let scenario = Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"));
        let trace = record(&scenario, 7);
        let bytes = trace.to_bytes();
        assert_eq!(bytes, record(&scenario, 7).to_bytes(), "{sets:?}");
        let other = record(&scenario, 8).to_bytes();
        assert_ne!(bytes[32..], other[32..], "{sets:?}, beyond digest and seed");
        assert_eq!(played(&scenario, &trace, 7), bytes, "{sets:?}");
        seen.push(suspicions(&trace));
    }
    assert!(seen[0] > 100 && seen.is_sorted(), "more loss, more to see: {seen:?}");
}

#[test]
fn a_trace_that_is_played_and_recorded_again_is_the_same() {
    let scenario = field();
    let bytes = record(&scenario, 5).to_bytes();
    let trace = MembershipTrace::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(played(&scenario, &trace, 5), bytes);
    let downs =
        trace.feeds().filter(|feed| feed.change == Change::Down && feed.node == feed.member);
    assert_eq!(downs.count(), 5, "three crash, two leave");
    assert!(suspicions(&trace) > 100, "with loss the living are suspected");
}

#[test]
fn two_recordings_of_a_seed_are_the_same_on_any_number_of_threads() {
    let scenario = field();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let record = |seed| record(&scenario, seed).to_bytes();
        pool.install(|| (1..5_u64).into_par_iter().map(record).collect::<Vec<_>>())
    };
    let alone = on(1);
    assert_eq!(alone, on(2));
    assert_ne!(alone[0], alone[1]);
}

/// As expected: two bytes for each of 49 × 49 entries of the first look, and a byte for each quiet one.
#[test]
fn a_quiet_trace_is_small() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/medley-field.toml");
    let scenario = Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
    let trace = record(&scenario, 1);
    assert_eq!((trace.nodes(), trace.looks()), (49, 150));
    let bytes = trace.to_bytes().len();
    assert!((5_000..6_500).contains(&bytes), "{bytes}");
}
