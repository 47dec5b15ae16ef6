//! `wang-tab-5.1-trace`: the lists the election chapters are fed with. For every loss rate of the table a seed gives
//! the same bytes again, and whoever is played a trace has the same lists.
//!
//! Cells of the lab are runs with metrics; equal bytes are none. So this experiment is a test.

use std::{collections::BTreeMap, convert::Infallible};

use bellwether_proto::{
    Input, InputOf, Machine, NodeId, OutboxOf, Rejected, Seed, Time, membership::medley::Message,
};
use bellwether_sim::{
    engine::Sim,
    membership_trace::{Change, INTERVAL, Lister, MembershipTrace, Recorder, inject},
    network::{Network, place},
    run::record_membership,
    scenario::Scenario,
};

const LOSSES: [&str; 4] = ["0.05", "0.1", "0.15", "0.2"];

const FIELD: &str = r#"
    name = "table 5.1"
    duration = "300s"
    [network]
    nodes = 49
    placement = { kind = "random", side = 15.0, range = 4.0, robust = true }
    delay = { kind = "uniform", low = "0ms", high = "5ms" }
    loss = { kind = "independent", rate = 0.05 }
    routing = "length"
    [membership]
    kind = "medley"
    form = "as-published"
    phase = "sync"
    exponent = 3
    feedback = "both"
"#;

fn scenario(loss: &str) -> Scenario {
    let sets = [format!("network.loss.rate={loss}")];
    Scenario::parse("table 5.1", FIELD, &sets).unwrap_or_else(|error| panic!("{error}"))
}

fn record(scenario: &Scenario, seed: u64) -> Vec<u8> {
    let trace = record_membership(scenario, seed, INTERVAL).expect("the field can be drawn");
    trace.expect("members keep lists").to_bytes()
}

/// Keeps what it is told.
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

#[test]
fn a_seed_gives_the_same_trace_again_and_another_seed_another() {
    for loss in LOSSES {
        let scenario = scenario(loss);
        let bytes = record(&scenario, 7);
        assert_eq!(bytes, record(&scenario, 7), "loss {loss}");
        assert_ne!(bytes[32..], record(&scenario, 8)[32..], "loss {loss}, beyond digest and seed");
    }
}

#[test]
fn whoever_is_played_a_trace_has_the_same_lists() {
    let mut suspicions = Vec::new();
    for loss in LOSSES {
        let scenario = scenario(loss);
        let bytes = record(&scenario, 7);
        let trace = MembershipTrace::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}"));
        let seed = Seed::new(1);
        let placed = place(&scenario.network.placement, trace.nodes(), &mut seed.rng());
        let placed = placed.expect("the field can be drawn");
        let network = Network::new(&scenario.network, placed, trace.nodes(), seed.rng());
        let build = Box::new(|_, _, _| Listener::default());
        let mut sim = Sim::new(network, trace.nodes(), seed, build, ());
        let mut recorder = Recorder::new(trace.nodes(), trace.interval(), scenario.digest(), 7);
        inject(&mut sim, &trace, |member, change| (member, change), |sim| recorder.look(sim));
        assert_eq!(recorder.finish().to_bytes(), bytes, "loss {loss}");
        let suspected = trace.feeds().filter(|feed| matches!(feed.change, Change::Suspicions(1..)));
        suspicions.push(suspected.count());
    }
    assert!(
        suspicions[0] > 100 && suspicions.is_sorted(),
        "more loss, more to see: {suspicions:?}"
    );
}
