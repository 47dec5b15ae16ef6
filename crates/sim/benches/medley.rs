//! Large memberships, beside a bare loop that does the same events and nothing else.
//!
//! Medley-F on a field of the thesis's density, all of it: news on messages, routing over hops, byte counts,
//! trace, one crash; some of the worlds lose messages. The bare loop pops as many events from a heap as the
//! simulation handled, draws for each a receiver and a delay, touches eight bytes of an N x N table as any
//! member list must, and pushes the next. Compare the ratios; the seconds move with the machine.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures real time"
)]

mod timed;

use std::{alloc::System, cmp::Reverse, collections::BinaryHeap, hint::black_box};

use bellwether_proto::{
    Boot, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
    membership::medley::{Config, Contact, Form, Medley, Strategy},
};
use bellwether_sim::{
    observe::{Entry, Log, Metric},
    run::{run, run_logged},
    scenario::Scenario,
};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use timed::timed;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One world: its size, the periods to simulate, and how many messages in a hundred a hop loses.
#[derive(Clone, Copy)]
struct Row {
    nodes: u32,
    periods: u64,
    loss: u32,
}

const ROWS: [Row; 12] = [
    Row { nodes: 49, periods: 15_000, loss: 0 },
    Row { nodes: 64, periods: 4_000, loss: 0 },
    Row { nodes: 256, periods: 1_000, loss: 0 },
    Row { nodes: 512, periods: 500, loss: 0 },
    Row { nodes: 1_024, periods: 250, loss: 0 },
    Row { nodes: 2_048, periods: 250, loss: 0 },
    Row { nodes: 4_096, periods: 125, loss: 0 },
    Row { nodes: 10_000, periods: 50, loss: 0 },
    // Members contradict each other, and every contradiction is news.
    Row { nodes: 512, periods: 500, loss: 5 },
    Row { nodes: 2_048, periods: 250, loss: 1 },
    Row { nodes: 2_048, periods: 250, loss: 5 },
    // Hardly more than the start.
    Row { nodes: 10_000, periods: 1, loss: 0 },
];

impl Row {
    fn kind(self) -> &'static str {
        match self {
            Self { periods: 1, .. } => "start",
            Self { loss: 0, .. } => "lossless",
            _ => "lossy",
        }
    }

    /// Arguments name sizes and kinds; without any, all are wanted but those that take gigabytes.
    fn is_wanted(self, args: &[String]) -> bool {
        let named = |words: &[String]| args.iter().any(|arg| words.contains(arg));
        let all = |of: fn(Self) -> String| ROWS.map(of);
        let (size, kind) = (|row: Self| row.nodes.to_string(), |row: Self| row.kind().to_owned());
        let (by_size, by_kind) = (named(&all(size)), named(&all(kind)));
        match by_size || by_kind {
            true => (!by_size || named(&[size(self)])) && (!by_kind || named(&[kind(self)])),
            false => self.nodes < 10_000,
        }
    }
}

const SEED: u64 = 1;
const ROUNDS: usize = 3;
/// Nodes per square metre of the thesis: 49 on 15 m x 15 m.
const DENSITY: f64 = 49.0 / 225.0;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "{:>6} {:>7} {:>5} {:>10}  {:>7} {:>7} {:>7}  {:>8} {:>8} {:>7}  {:>9} {:>9}  {:<16}",
        "N",
        "periods",
        "loss",
        "events",
        "start s",
        "whole s",
        "bare s",
        "Mev/s",
        "bare",
        "ratio",
        "B/member",
        "B/pair",
        "trace",
    );
    for row in ROWS.into_iter().filter(|row| row.is_wanted(&args)) {
        compare(row);
    }
    println!(
        "(seconds of processor time, best of {ROUNDS} without loss below 4,096, else one; start: a run of one period; \
         rates are those of the whole run, start included)"
    );
}

fn compare(row: Row) {
    let Row { nodes, periods, loss } = row;
    // Start and whole are two measurements, never subtracted: at the largest sizes the difference is
    // smaller than the noise of either.
    let mut best = [f64::INFINITY; 3];
    let (mut events, mut trace) = (0, String::new());
    for round in 0..if nodes < 4_096 && loss == 0 { ROUNDS } else { 1 } {
        let (start, _) = timed(|| simulate(Row { periods: 1, ..row }));
        let (whole, outcome) = timed(|| simulate(row));
        assert!(round == 0 || outcome == (events, trace), "one seed, two traces");
        (events, trace) = outcome;
        let (bare, handled) = timed(|| bare_loop(nodes, events));
        assert_eq!(handled, events, "the bare loop handled other events");
        for (best, took) in best.iter_mut().zip([start, whole, bare]) {
            *best = best.min(took);
        }
    }
    let [start, whole, bare] = best;
    let rate = [whole, bare].map(|seconds| events as f64 / seconds / 1e6);
    println!(
        "{nodes:>6} {periods:>7} {loss:>4}% {events:>10}  {start:>7.2} {whole:>7.2} {bare:>7.2}  {:>8.2} {:>8.2} \
         {:>6.3}x  {:>9.1} {:>9.1}  {trace}",
        rate[0],
        rate[1],
        rate[0] / rate[1],
        state_bytes(nodes) - ADDRESS_BOOK,
        live_bytes(nodes),
    );
}

fn scenario(Row { nodes, periods, loss }: Row) -> Scenario {
    let side = (f64::from(nodes) / DENSITY).sqrt();
    let end = 2 * periods;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/medley-field.toml");
    let sets = [
        format!("network.nodes={nodes}"),
        format!("network.placement.side={side}"),
        "network.placement.robust=false".to_owned(),
        format!("duration={end}s"),
        format!("fault.0.at={}s", end / 5),
        "fault.0.spread=0s".to_owned(),
        format!("network.loss.rate={:?}", f64::from(loss) / 100.0),
    ];
    Scenario::load(file.as_ref(), &sets).unwrap_or_else(|error| panic!("{error}"))
}

/// Events handled, and the trace.
fn simulate(row: Row) -> (u64, String) {
    let outcome = run(&scenario(row), SEED).expect("one field in some is connected");
    let events = outcome.value(Metric::Events).expect("always counted");
    (events as u64, outcome.trace.to_string())
}

/// The distance of a known node. Its identity follows from its position.
const ADDRESS_BOOK: f64 = 4.0;

/// What one member of a group keeps, in bytes for each other member, after a super-round has begun and
/// helpers have been drawn.
fn state_bytes(nodes: u32) -> f64 {
    let config = Config::new(Strategy::Both, Form::Hardened);
    let contact = |id: u32| Contact {
        id: NodeId::new(id.into()),
        distance: 1.0 + (id % 97) as f32,
        neighbour: id % 200 == 1,
        member: true,
    };
    let contacts: Vec<_> = (1..nodes).map(contact).collect();
    let contacts_bytes = contacts.capacity() * size_of::<Contact>();
    let region = Region::new(ALLOCATOR);
    let me = Peer::new(NodeId::new(0), Boot::new(1));
    let mut node = Medley::new(me, config, Seed::new(1), None, contacts);
    let mut out = Outbox::new();
    node.handle(Time::ZERO, Input::Start, &mut out).expect("it may start");
    for _ in 0..4 {
        let (at, _) = node.deadline().expect("there is always a next period");
        node.handle(at, Input::Timeout, &mut out).expect("a timeout is never refused");
        while out.pop().is_some() {}
    }
    let change = region.change();
    // The contacts were allocated before and are freed within.
    let live = change.bytes_allocated as f64 - change.bytes_deallocated as f64
        + contacts_bytes as f64
        + size_of::<Medley>() as f64;
    black_box(&node);
    live / f64::from(nodes - 1)
}

/// Everything a simulation of this size allocates and keeps, in bytes for each pair of nodes.
fn live_bytes(nodes: u32) -> f64 {
    let scenario = scenario(Row { nodes, periods: 1, loss: 0 });
    let mut most = 0.0_f64;
    let region = Region::new(ALLOCATOR);
    let mut look = |_: Entry| {
        let change = region.change();
        most = most.max(change.bytes_allocated as f64 - change.bytes_deallocated as f64);
    };
    run_logged(&scenario, SEED, Log::to(&mut look)).expect("one field in some is connected");
    most / f64::from(nodes).powi(2)
}

/// `events` events in a heap, each with a receiver, a delay and a look at one member of its list.
fn bare_loop(nodes: u32, events: u64) -> u64 {
    let mut rng = Seed::new(SEED).rng();
    let mut table = vec![0_u64; nodes as usize * nodes as usize];
    let mut heap: BinaryHeap<_> =
        (0..nodes).map(|node| Reverse((rng.below(2_000_000), u64::from(node), node))).collect();
    let (mut handled, mut sequence) = (0, u64::from(nodes));
    while handled < events {
        let Some(Reverse((at, _, node))) = heap.pop() else { break };
        handled += 1;
        sequence += 1;
        let other = rng.below(nodes.into()) as u32;
        table[node as usize * nodes as usize + other as usize] = at;
        heap.push(Reverse((at + rng.below(2_000_000), sequence, other)));
    }
    black_box(table.iter().fold(0_u64, |sum, &at| sum ^ at));
    handled
}
