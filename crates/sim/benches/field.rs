//! Fields of nodes that move and talk over the air: what movement costs by itself, and what a frame costs.
//!
//! The nodes broadcast at the rate of the busiest published runs (60 nodes on 500 m with a range of 80 m, beacons
//! and 25 other messages a second each) and do nothing with what they hear, so that what is left is the engine, the
//! movement and the air. Last, whole elections: half an hour of CEL at 80 m is to take five seconds at most, and two
//! thousand nodes are to move faster than real ones do.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures real time"
)]

use std::{convert::Infallible, sync::Arc, time::Instant};

use bellwether_proto::{
    Duration, Input, InputOf, Machine, OutboxOf, Peer, Rejected, Rng, Seed, Time,
    wire::{DecodeError, Reader, Sink, Wire},
};
use bellwether_sim::{
    engine::Sim,
    observe::Metric,
    run::{
        faults::{ExternalInputs, play},
        run,
        world::world,
    },
    scenario::Scenario,
    world::mobility::generate,
};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    println!("{:<34} {:>8} {:>9} {:>10}", "movement alone, 1800 s", "nodes", "changes", "ms");
    let fields = [
        ("random walk, 500 m, 80 m", 60, 500.0, 80.0, "random-walk"),
        ("random waypoint, 900 m, 90 m", 60, 900.0, 90.0, "random-waypoint"),
        ("random waypoint, 5196 m, 90 m", 2_000, 5_196.0, 90.0, "random-waypoint"),
        ("random walk, 2887 m, 80 m", 2_000, 2_887.0, 80.0, "random-walk"),
    ];
    for (name, nodes, side, range, kind) in fields {
        let scenario = scenario(nodes, side, range, kind, "ideal", 1_800);
        let begun = Instant::now();
        let mobility = &scenario.network.mobility;
        let seed = Seed::new(1).named("movement");
        let movement = generate(mobility, side, nodes, scenario.duration, seed).expect("it moves");
        let changes = Arc::new(movement).link_changes(range, 1_800.0).count();
        println!("{name:<34} {nodes:>8} {changes:>9} {:>10.1}", millis(begun));
    }
    println!();
    println!(
        "{:<34} {:>8} {:>9} {:>10} {:>10} {:>10}",
        "34.8 broadcasts/s/node", "nodes", "frames", "heard", "ns/frame", "sim s/s"
    );
    let air = [
        ("random walk, 80 m, ideal", 60, 500.0, 80.0, "ideal", 1_800),
        ("random walk, 80 m, wifi", 60, 500.0, 80.0, "wifi", 1_800),
        ("random walk, 20 m, wifi", 60, 500.0, 20.0, "wifi", 1_800),
        ("random walk, 80 m, wifi", 2_000, 2_887.0, 80.0, "wifi", 30),
        ("random walk, 80 m, ideal", 2_000, 2_887.0, 80.0, "ideal", 30),
    ];
    for (name, nodes, side, range, radio, seconds) in air {
        let scenario = scenario(nodes, side, range, "random-walk", radio, seconds);
        let (network, capacity) = world(&scenario, Seed::new(1)).expect("a field takes anybody");
        let build =
            Box::new(|_: Peer, seed: Seed, _| Chatter { rng: seed.rng(), next: Time::ZERO });
        let mut sim = Sim::new(network, capacity, Seed::new(1), build, ());
        let begun = Instant::now();
        play(&mut sim, &scenario, Seed::new(1), ExternalInputs::none())
            .expect("nothing to keep connected");
        let took = millis(begun);
        let (frames, heard) = (sim.counters().messages, sim.counters().deliveries);
        println!(
            "{name:<34} {nodes:>8} {frames:>9} {heard:>10} {:>10.0} {:>10.1}",
            took * 1e6 / frames as f64,
            seconds as f64 * 1e3 / took,
        );
    }
    println!();
    println!(
        "{:<34} {:>8} {:>9} {:>10} {:>10} {:>10}",
        "elections on the move", "nodes", "sent", "heard", "CPU s", "sim s/s"
    );
    let elections = [
        ("CEL as published, 80 m, wifi", 60, 500.0, 80.0, "wifi", 1_800, AS_PUBLISHED),
        ("hardened, 80 m, wifi", 60, 500.0, 80.0, "wifi", 1_800, HARDENED),
        ("hardened, three hops, 80 m, wifi", 2_000, 2_887.0, 80.0, "wifi", 30, NEAR),
    ];
    for (name, nodes, side, range, radio, seconds, protocol) in elections {
        let scenario = on_field(nodes, side, range, "random-walk", radio, seconds, protocol);
        let begun = cpu();
        let outcome = run(&scenario, 1).expect("a field takes anybody");
        let took = cpu() - begun;
        let count = |metric| outcome.value(metric).unwrap_or_default();
        let (sent, heard) = (count(Metric::Messages), count(Metric::Deliveries));
        println!(
            "{name:<34} {nodes:>8} {sent:>9} {heard:>10} {took:>10.2} {:>10.1}",
            seconds as f64 / took
        );
    }
}

const AS_PUBLISHED: &str = r#"
    [election]
    kind = "central"
    profile = "cel"
    form = "as-published"
"#;

const HARDENED: &str = r#"
    [election]
    kind = "central"
    profile = "cel"
"#;

/// Two thousand cannot all know all of a field that moves; who is central among those near is enough for them.
const NEAR: &str = r#"
    [election]
    kind = "central"
    profile = "cel"
    horizon = 3
"#;

/// Seconds this thread has worked: a busy machine does not make elections longer.
fn cpu() -> f64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn scenario(nodes: u32, side: f64, range: f64, kind: &str, radio: &str, secs: u64) -> Scenario {
    let silent = r#"
        routing = "none"
        [membership]
        kind = "ping"
        period = "1s"
        timeout = "500ms"
    "#;
    on_field(nodes, side, range, kind, radio, secs, silent)
}

fn on_field(
    nodes: u32,
    side: f64,
    range: f64,
    kind: &str,
    radio: &str,
    secs: u64,
    protocol: &str,
) -> Scenario {
    let text = format!(
        r#"
        name = "field"
        duration = "{secs}s"
        [network]
        nodes = {nodes}
        placement = {{ kind = "field", side = {side}, range = {range} }}
        mobility = {{ kind = "{kind}" }}
        radio = {{ kind = "{radio}" }}
        {protocol}
        "#
    );
    Scenario::parse("field", &text, &[]).expect("a right scenario")
}

/// Broadcasts every 28.7 ms on average and listens to nobody.
struct Chatter {
    rng: Rng,
    next: Time,
}

/// As long as the smallest published maps.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Chat;

impl Wire for Chat {
    fn encode(&self, sink: &mut impl Sink) {
        sink.bytes(&[0; 263]);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.bytes("chat", 263).map(|_| Self)
    }
}

impl Machine for Chatter {
    type Message = Chat;
    type Timer = ();
    type Feed = Infallible;
    type Command = Infallible;
    type Durable = Infallible;
    type Event = Infallible;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start | Input::Timeout => {
                if matches!(input, Input::Timeout) {
                    out.broadcast(Chat);
                }
                self.next = now + self.rng.up_to(Duration::from_micros(57_400));
                self.next = self.next.max(now + Duration::from_micros(1));
            }
            Input::Message { .. } | Input::Leave => {}
            Input::Feed(never) | Input::Command(never) => match never {},
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, ())> {
        Some((self.next, ()))
    }
}
