//! Elections of the most central on hosts that move: sixteen of them wander over a field, only those near each other hear
//! each other, nobody passes packets on, and every part of the field must be led by its most central host.
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts -- --ignored --nocapture sixteen_hosts_wander
//! ```
//!
//! What the agents say is held against an oracle (smallest sum of distances, highest identity among equals), and against
//! the same machines under the same links in simulated time.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use bellwether_proto::{
    Boot, Election as _, Input, Machine as _, NodeId, Peer, Seed, Time,
    election::central::{Central, Config, Detection, Message},
    machine::{Effect, InputOf, Outbox, OutboxOf},
    topology::Graph,
};

use crate::{
    agents::{Agents, until},
    hosts,
    measured::Spread,
    seconds,
};

/// Beacons and patience of the profile `lan`.
const BEACON: bellwether_proto::Duration = bellwether_proto::Duration::from_millis(300);
const SILENCE: bellwether_proto::Duration = bellwether_proto::Duration::from_millis(1_000);
/// Of a packet, in simulated time.
const LATENCY: bellwether_proto::Duration = bellwether_proto::Duration::from_millis(2);
/// Within which all must name the right one after a change.
const WANTED: Duration = Duration::from_secs(3);

/// Hosts that walk from one point of a square to another, as in the random waypoint model, and hear 30 m far.
fn field(hosts: usize, steps: usize, seed: u64) -> Vec<Graph> {
    const SIDE: f64 = 100.0;
    const RANGE: f64 = 30.0;
    const STRIDE: f64 = 12.0;
    let mut rng = Seed::new(seed).named("field").rng();
    let mut point = || [0, 1].map(|_| rng.below(1_000_001) as f64 / 1e6 * SIDE);
    let mut places: Vec<[f64; 2]> = (0..hosts).map(|_| point()).collect();
    let mut goals: Vec<[f64; 2]> = (0..hosts).map(|_| point()).collect();
    let mut graphs = Vec::new();
    for _ in 0..steps {
        let near = |a: u32, b: u32| {
            let ([ax, ay], [bx, by]) = (places[a as usize], places[b as usize]);
            (ax - bx).hypot(ay - by) <= RANGE
        };
        let pairs = (0..hosts as u32).flat_map(|b| (0..b).map(move |a| (a, b)));
        graphs.push(Graph::with_links(hosts, pairs.filter(|&(a, b)| near(a, b))));
        for (place, goal) in places.iter_mut().zip(&mut goals) {
            let way = (goal[0] - place[0]).hypot(goal[1] - place[1]);
            if way <= STRIDE {
                (*place, *goal) = (*goal, point());
            } else {
                for axis in 0..2 {
                    place[axis] += (goal[axis] - place[axis]) / way * STRIDE;
                }
            }
        }
    }
    graphs
}

/// Who should lead each host: of all in its part, the smallest sum of distances, then the highest identity.
fn oracle(graph: &Graph, ids: &[NodeId]) -> Vec<NodeId> {
    let part = graph.components();
    let sum = |host: u32| graph.distances(host).into_iter().flatten().map(u64::from).sum::<u64>();
    let mut best: BTreeMap<u32, (u64, Reverse<NodeId>)> = BTreeMap::new();
    for (host, &id) in ids.iter().enumerate() {
        let score = (sum(host as u32), Reverse(id));
        let known = best.entry(part[host]).or_insert(score);
        *known = score.min(*known);
    }
    part.iter().map(|part| best[part].1.0).collect()
}

/// The same machines under the same links, in simulated time.
struct Simulated<'a> {
    ids: &'a [NodeId],
    nodes: Vec<Central>,
    out: OutboxOf<Central>,
    /// By when they arrive, and in the order in which they were sent: to whom, from whom, what.
    flying: BTreeMap<(Time, u64), (usize, Peer, Message)>,
    sent: u64,
}

impl<'a> Simulated<'a> {
    fn new(ids: &'a [NodeId]) -> Self {
        let detection = Detection::Beacons { period: BEACON, timeout: SILENCE };
        let config = Config::hardened(detection).expect("right settings");
        let node = |(at, &id)| {
            Central::new(Peer::new(id, Boot::new(1)), config, Seed::new(7).indexed(at as u64))
        };
        let nodes = ids.iter().enumerate().map(node).collect();
        Self { ids, nodes, out: Outbox::new(), flying: BTreeMap::new(), sent: 0 }
    }

    fn act(&mut self, graph: &Graph, node: usize, now: Time, input: InputOf<'_, Central>) {
        let handled = self.nodes[node].handle(now, input, &mut self.out);
        handled.expect("what nodes say to each other is right");
        let from = Peer::new(self.ids[node], Boot::new(1));
        while let Some(effect) = self.out.pop() {
            let Effect::Broadcast(message) = effect else { panic!("all is broadcast") };
            for &to in graph.neighbours(node as u32) {
                self.sent += 1;
                let arrives = (now + LATENCY, self.sent);
                self.flying.insert(arrives, (to as usize, from, message.clone()));
            }
        }
    }

    /// Until then, with these links.
    fn run(&mut self, graph: &Graph, end: Time) {
        loop {
            let due = |(node, one): (usize, &Central)| one.deadline().map(|(at, _)| (at, node));
            let due = self.nodes.iter().enumerate().filter_map(due).min();
            let arrives = self.flying.keys().next().copied();
            match (arrives, due) {
                (Some(first), due) if first.0 <= end && due.is_none_or(|(at, _)| first.0 <= at) => {
                    let (to, from, message) = self.flying.remove(&first).expect("it was sent");
                    let input = Input::Message { from, via: from.id, message: &message };
                    self.act(graph, to, first.0, input);
                }
                (_, Some((at, node))) if at <= end => self.act(graph, node, at, Input::Timeout),
                _ => return,
            }
        }
    }
}

/// Whom each of those machines names at the end of every step.
fn simulated(trace: &[Graph], ids: &[NodeId], step: Duration) -> Vec<Vec<NodeId>> {
    let mut world = Simulated::new(ids);
    (0..ids.len()).for_each(|node| world.act(&trace[0], node, Time::ZERO, Input::Start));
    let mut answers = Vec::new();
    for (at, graph) in (1..).zip(trace) {
        world.run(graph, Time::from_micros(step.as_micros() as u64 * at));
        let named = |node: &Central| node.leadership().leader.expect("nodes always name one");
        answers.push(world.nodes.iter().map(named).collect());
    }
    answers
}

/// Whom this agent named last, by identity.
fn named(agents: &Agents<'_>, at: usize) -> Option<NodeId> {
    agents.look(at, |heard| {
        let last = heard.iter().rfind(|one| one.kind == "leader-elected")?;
        Some(NodeId::new(u64::from_str_radix(&last.id, 16).ok()?))
    })
}

fn all_named(agents: &Agents<'_>) -> Vec<Option<NodeId>> {
    agents.all().map(|at| named(agents, at)).collect()
}

/// What wandering came to.
struct Wandered {
    settling: Spread,
    /// Steps that changed who should lead somebody.
    changed: usize,
}

/// Lets agents wander along a trace, so long for each step.
fn wander(net: &Net, trace: &[Graph], step: Duration) -> Wandered {
    let count = trace[0].nodes();
    let lay_out = |graph: &Graph| net.lay_out(|a, b| graph.linked(a as u32, b as u32));
    lay_out(&trace[0]);
    let set = ["election.mesh.mode=central", "interfaces=[\"eth0\"]"];
    let mut flags: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    flags.extend(["--timing", "lan"]);
    let all: Vec<usize> = (0..count).collect();
    let agents = Agents::start(net, "field", &all, &flags);
    let ids = until(seconds(20), "all agents answer", || {
        agents.all().map(|at| agents.id(at)).collect::<Option<Vec<String>>>()
    });
    let id = |text: &String| NodeId::new(u64::from_str_radix(text, 16).expect("an identity"));
    let ids: Vec<NodeId> = ids.iter().map(id).collect();
    let expected: Vec<Vec<NodeId>> = trace.iter().map(|graph| oracle(graph, &ids)).collect();
    let answers = simulated(trace, &ids, step);
    let right = |wanted: &[NodeId]| {
        all_named(&agents).iter().zip(wanted).all(|(named, wanted)| *named == Some(*wanted))
    };
    until(seconds(30), "all know their first leaders", || right(&expected[0]).then_some(()));
    println!(
        "{count} hosts, a step every {step:?}, beacons every {BEACON}, given up after {SILENCE}"
    );
    println!("step parts links changed leaders settled, s");
    let (mut settling, mut changed) = (Spread::new(), 0);
    for (at, graph) in trace.iter().enumerate().skip(1) {
        let mut flips = 0;
        for (a, b) in (0..count as u32).flat_map(|b| (0..b).map(move |a| (a, b))) {
            flips += usize::from(graph.linked(a, b) != trace[at - 1].linked(a, b));
        }
        let begun = Instant::now();
        lay_out(graph);
        let mut since = None;
        while begun.elapsed() < step {
            let now = right(&expected[at]).then(Instant::now);
            since = now.and(since.or(now));
            thread::sleep(Duration::from_millis(10));
        }
        let parts = graph.components().into_iter().collect::<BTreeSet<_>>().len();
        let moved =
            expected[at].iter().zip(&expected[at - 1]).filter(|(new, old)| new != old).count();
        let settled = since.map(|since: Instant| (since - begun).as_secs_f64());
        let shown = settled.map_or("never".to_owned(), |settled| format!("{settled:.2}"));
        println!("{at:>4} {parts:>5} {:>5} {flips:>7} {moved:>7} {shown:>10}", graph.links());
        let settled = settled.unwrap_or_else(|| {
            let named = all_named(&agents);
            panic!("step {at}: {named:?} instead of {:?}", expected[at])
        });
        assert_eq!(answers[at], expected[at], "the machines in simulated time, step {at}");
        for host in agents.all() {
            let answer = agents.leader(host).expect("it answers");
            assert_eq!(answer.is_leader, ids[host] == expected[at][host], "host {host}, step {at}");
        }
        if moved > 0 {
            changed += 1;
            settling.add(settled);
        }
        assert!(settled <= WANTED.as_secs_f64(), "step {at} took {settled:.2} s");
    }
    println!(
        "{changed} of {} steps changed leaders: settled after {:.2} s (p50), {:.2} s (max); stalls: {}",
        trace.len() - 1,
        settling.quantile(0.5),
        settling.quantile(1.0),
        agents.count("stalled")
    );
    Wandered { settling, changed }
}

#[test]
fn six_hosts_wander_and_each_part_is_led_by_its_most_central() {
    let Some(net) = hosts(6) else { return };
    let wandered = wander(&net, &field(6, 4, 3), seconds(4));
    assert!(wandered.changed > 0, "a trace that changes nothing shows nothing");
}

#[test]
#[ignore = "twenty steps of five seconds"]
fn sixteen_hosts_wander_and_each_part_is_led_by_its_most_central() {
    let Some(net) = hosts(16) else { return };
    let begun = (Instant::now(), net.traffic());
    let wandered = wander(&net, &field(16, 21, 2022), seconds(5));
    let (span, traffic) = (begun.0.elapsed().as_secs_f64(), net.traffic());
    println!(
        "{:.1} kbit/s of all hosts together, membership included",
        (traffic.bytes - begun.1.bytes) as f64 * 8.0 / 1_000.0 / span
    );
    assert!(wandered.changed >= 10, "{}", wandered.changed);
    assert!(wandered.settling.quantile(1.0) <= WANTED.as_secs_f64());
}

/// The oracle and the machines in simulated time agree on many fields: what the hosts are held against is right.
#[test]
fn machines_in_simulated_time_end_every_step_as_the_oracle_says() {
    let mut changed = 0;
    for seed in 0..10 {
        let mut rng = Seed::new(seed).rng();
        let ids: Vec<NodeId> = (0..12).map(|_| NodeId::new(rng.below(u64::MAX))).collect();
        let trace = field(12, 10, seed);
        let expected: Vec<Vec<NodeId>> = trace.iter().map(|graph| oracle(graph, &ids)).collect();
        changed += expected.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(simulated(&trace, &ids, seconds(5)), expected, "seed {seed}");
    }
    assert!(changed > 50, "{changed}");
}
