//! The engine beside a bare loop, on one workload, in one run.
//!
//! ```text
//! cargo bench -p bellwether-sim                 the whole table
//! cargo bench -p bellwether-sim -- 2048         one size
//! ```
//!
//! Workload: N nodes at random phases; every 20 ms each pings one uniformly random other node, 1 ms one
//! way, and checks for the answer after 5 ms. Four events per node and period. The bare loops are what
//! one would write by hand for exactly this and nothing else: no messages, no machines, no network, no
//! byte counts, no faults; one with `BinaryHeap`, one with a timing wheel tuned to the workload. They draw
//! from the same generators as the engine, so all three handle the same events (`events` is checked, and a
//! digest of the set of events). Times are processor time, best of several interleaved rounds; read the
//! ratios, the absolute figures move with the machine.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures real time"
)]

mod timed;

use std::{alloc::System, cmp::Reverse, collections::BinaryHeap, hint::black_box};

use bellwether_proto::{
    Duration, Input, InputOf, NodeId, Rng, Seed, Time,
    membership::ping::{Config, Message, Ping},
};
use bellwether_sim::{
    engine::{Observer, Sim, TraceHash},
    scenario::{self, Delay, DelayLaw, Loss, Per, Placement, Routing, State},
    world::{Network, place},
};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use timed::timed;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PERIOD: u64 = 20_000;
const DELAY: u64 = 1_000;
const TIMEOUT: u64 = 5_000;
const SEED: u64 = 1;
/// Size, and periods to simulate.
const SIZES: [(u32, u64); 4] = [(49, 20_000), (2_048, 1_000), (10_000, 200), (100_000, 30)];
const ROUNDS: usize = 5;

fn main() {
    let wanted: Vec<u32> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    println!(
        "{:>7} {:>8} {:>11}  {:>8} {:>8} {:>8}  {:>9} {:>9}  {:>10} {:>9}  {:<16} {:<16}",
        "N",
        "periods",
        "events",
        "heap",
        "wheel",
        "engine",
        "of heap",
        "of wheel",
        "allocs/ev",
        "bytes/N",
        "bare order",
        "engine trace",
    );
    for (nodes, periods) in SIZES {
        if wanted.is_empty() || wanted.contains(&nodes) {
            compare(nodes, periods);
        }
    }
    println!(
        "(heap, wheel, engine: million events per second of processor time, best of {ROUNDS})"
    );
}

fn compare(nodes: u32, periods: u64) {
    let end = periods * PERIOD;
    let mut best = [f64::INFINITY; 3];
    let mut outcomes = [Outcome::default(); 3];
    for _ in 0..ROUNDS {
        for (which, seconds) in best.iter_mut().enumerate() {
            let (took, outcome) = timed(|| match which {
                0 => bare(nodes, end, Heap::default()),
                1 => bare(nodes, end, Wheel::new(nodes)),
                _ => engine(nodes, end),
            });
            *seconds = seconds.min(took);
            assert!(
                outcomes[which] == Outcome::default() || outcomes[which] == outcome,
                "one seed, two orders"
            );
            outcomes[which] = outcome;
        }
    }
    let [heap, wheel, ours] = outcomes;
    assert_eq!(heap, wheel, "the bare loops disagree on the order");
    assert_eq!(heap.events, ours.events, "the engine handled other events");
    assert_eq!(event_set_bare(nodes, end / 10), event_set_engine(nodes, end / 10));
    let (allocations, bytes) = footprint(nodes, end);
    let rate = best.map(|seconds| heap.events as f64 / seconds / 1e6);
    println!(
        "{nodes:>7} {periods:>8} {:>11}  {:>8.1} {:>8.1} {:>8.1}  {:>8.2}x {:>8.2}x  {:>10.6} {:>9.0}  \
         {:016x} {:016x}",
        heap.events,
        rate[0],
        rate[1],
        rate[2],
        rate[2] / rate[0],
        rate[2] / rate[1],
        allocations,
        bytes,
        heap.order,
        ours.order,
    );
}

/// What one run did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Outcome {
    events: u64,
    order: u64,
}

// The engine.

fn simulation<O: Observer<Ping>>(nodes: u32, observer: O) -> Sim<Ping, O> {
    let described = scenario::NetworkSettings {
        nodes,
        start_spread: Duration::ZERO,
        placement: Placement::Mesh,
        delay: Delay { law: DelayLaw::Fixed(Duration::from_micros(DELAY)), per: Per::Hop },
        loss: Loss::None,
        routing: Routing::Hops,
        mobility: Default::default(),
        radio: Default::default(),
    };
    let seed = Seed::new(SEED);
    let placed = place(&Placement::Mesh, nodes, &mut seed.rng()).expect("a mesh is connected");
    let network = Network::new(&described, placed, nodes, seed.named("network").rng());
    let config = Config::new(
        Duration::from_micros(PERIOD),
        Duration::from_micros(TIMEOUT),
        u64::from(nodes),
    )
    .expect("the timeout is within the period");
    let build =
        Box::new(move |peer: bellwether_proto::Peer, seed, _| Ping::new(peer.id, config, seed));
    let mut sim = Sim::new(network, nodes, seed, build, observer);
    sim.start_all(&(0..nodes).collect::<Vec<_>>(), State::Lost);
    sim
}

fn engine(nodes: u32, end: u64) -> Outcome {
    let mut sim = simulation(nodes, ());
    sim.advance(Time::from_micros(end));
    let started = u64::from(nodes);
    Outcome { events: sim.counters().events - started, order: sim.trace_hash().get() }
}

/// Allocations per event once running, and live bytes per node.
fn footprint(nodes: u32, end: u64) -> (f64, f64) {
    let whole = Region::new(ALLOCATOR);
    let mut sim = simulation(nodes, ());
    sim.advance(Time::from_micros(end / 2));
    let before = sim.counters().events;
    let steady = Region::new(ALLOCATOR);
    sim.advance(Time::from_micros(end));
    let change = steady.change();
    let events = sim.counters().events - before;
    let live = whole.change();
    let bytes = live.bytes_allocated as f64 - live.bytes_deallocated as f64;
    black_box(&sim);
    let allocations = (change.allocations + change.reallocations) as f64;
    (allocations / events as f64, bytes / f64::from(nodes))
}

/// Adds up a digest of every event, whatever their order.
#[derive(Default)]
struct EventSet(u64);

impl EventSet {
    fn add(&mut self, at: u64, node: u64, kind: u64) {
        let mut one = TraceHash::new();
        one.fold(at);
        one.fold(node << 8 | kind);
        self.0 = self.0.wrapping_add(one.get());
    }
}

impl Observer<Ping> for EventSet {
    fn input(&mut self, now: Time, node: NodeId, input: &InputOf<'_, Ping>) {
        let kind = match input {
            Input::Message { message: Message::Ping { .. }, .. } => 1,
            Input::Message { message: Message::Ack { .. }, .. } => 2,
            Input::Timeout => 3,
            _ => return,
        };
        self.add(now.as_micros(), node.get(), kind);
    }
}

fn event_set_engine(nodes: u32, end: u64) -> u64 {
    let mut sim = simulation(nodes, EventSet::default());
    sim.advance(Time::from_micros(end));
    sim.observer().0
}

// The bare loops.

#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Event {
    kind: u8,
    from: u32,
    to: u32,
    round: u32,
}

struct Node {
    rng: Rng,
    round: u32,
    acked: u32,
    pinged: u32,
}

trait Bare {
    fn push(&mut self, at: u64, event: Event);
    fn pop(&mut self) -> Option<(u64, Event)>;
}

fn bare(nodes: u32, end: u64, queue: impl Bare) -> Outcome {
    let mut order = 0_u64;
    let (events, missed) = bare_loop(nodes, end, queue, |at, event| {
        order = order.rotate_left(5) ^ at ^ u64::from(event.from) << 20 ^ u64::from(event.kind);
    });
    assert_eq!(missed, 0);
    Outcome { events, order }
}

fn event_set_bare(nodes: u32, end: u64) -> u64 {
    let mut set = EventSet::default();
    bare_loop(nodes, end, Heap::default(), |at, event| {
        let (node, kind) = match event.kind {
            1 => (event.to, 1),
            2 => (event.from, 2),
            _ => (event.from, 3),
        };
        set.add(at, u64::from(node), kind);
    });
    set.0
}

fn bare_loop(
    nodes: u32,
    end: u64,
    mut queue: impl Bare,
    mut see: impl FnMut(u64, Event),
) -> (u64, u64) {
    let (mut events, mut missed) = (0, 0);
    let mut all: Vec<Node> = (0..u64::from(nodes))
        .map(|id| {
            let seed = Seed::new(SEED).named("node").indexed(id).indexed(1);
            Node { rng: seed.rng(), round: 0, acked: 0, pinged: 0 }
        })
        .collect();
    for from in 0..nodes {
        let phase = all[from as usize].rng.below(PERIOD);
        queue.push(phase, Event { kind: 0, from, to: 0, round: 0 });
    }
    while let Some((at, event)) = queue.pop() {
        if at >= end {
            break;
        }
        events += 1;
        see(at, event);
        let Event { kind, from, to, round } = event;
        match kind {
            0 => {
                let node = &mut all[from as usize];
                node.round += 1;
                let round = node.round;
                let other = node.rng.below(u64::from(nodes) - 1) as u32;
                let to = other + u32::from(other >= from);
                queue.push(at + DELAY, Event { kind: 1, from, to, round });
                queue.push(at + TIMEOUT, Event { kind: 3, from, to, round });
                queue.push(at + PERIOD, Event { kind: 0, from, to: 0, round: 0 });
            }
            1 => {
                all[to as usize].pinged += 1;
                queue.push(at + DELAY, Event { kind: 2, from, to, round });
            }
            2 => all[from as usize].acked = round,
            _ => missed += u64::from(all[from as usize].acked != round),
        }
    }
    black_box(all.iter().map(|node| u64::from(node.pinged)).sum::<u64>());
    (events, missed)
}

#[derive(Default)]
struct Heap {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
}

impl Bare for Heap {
    fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, event)));
    }

    fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

/// One list per slot, kept sorted by insertion from the tail; wide enough for this workload's longest
/// timer, so that nothing needs to overflow.
struct Wheel {
    heads: Vec<u32>,
    tails: Vec<u32>,
    slab: Vec<(u64, Event, u32)>,
    free: u32,
    slot: u64,
    len: usize,
    shift: u32,
}

const NONE: u32 = u32::MAX;

impl Wheel {
    fn new(nodes: u32) -> Self {
        // One to four events share a slot.
        let shift = match nodes {
            8_192.. => 0,
            1_024.. => 2,
            _ => 5,
        };
        let slots = 1 << 15;
        Self {
            heads: vec![NONE; slots],
            tails: vec![NONE; slots],
            slab: Vec::with_capacity(4 * nodes as usize),
            free: NONE,
            slot: 0,
            len: 0,
            shift,
        }
    }
}

impl Bare for Wheel {
    fn push(&mut self, at: u64, event: Event) {
        let entry = (at, event, NONE);
        let index = if self.free == NONE {
            self.slab.push(entry);
            (self.slab.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.slab[index as usize].2;
            self.slab[index as usize] = entry;
            index
        };
        self.len += 1;
        let slot = (at >> self.shift) as usize & (self.heads.len() - 1);
        let tail = self.tails[slot];
        if tail == NONE {
            (self.heads[slot], self.tails[slot]) = (index, index);
        } else if self.slab[tail as usize].0 <= at {
            self.slab[tail as usize].2 = index;
            self.tails[slot] = index;
        } else {
            let (mut before, mut next) = (NONE, self.heads[slot]);
            while self.slab[next as usize].0 <= at {
                (before, next) = (next, self.slab[next as usize].2);
            }
            self.slab[index as usize].2 = next;
            match before {
                NONE => self.heads[slot] = index,
                before => self.slab[before as usize].2 = index,
            }
        }
    }

    fn pop(&mut self) -> Option<(u64, Event)> {
        if self.len == 0 {
            return None;
        }
        loop {
            let slot = self.slot as usize & (self.heads.len() - 1);
            let index = self.heads[slot];
            if index != NONE {
                let (at, event, next) = self.slab[index as usize];
                self.heads[slot] = next;
                if next == NONE {
                    self.tails[slot] = NONE;
                }
                self.slab[index as usize].2 = self.free;
                self.free = index;
                self.len -= 1;
                return Some((at, event));
            }
            self.slot += 1;
        }
    }
}
