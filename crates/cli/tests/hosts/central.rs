//! Elections of the most central on hosts that move: sixteen of them wander over a field, only those near each other hear
//! each other, nobody passes packets on, and every part of the field must be led by its most central host. A host on its own may
//! name nobody: it cannot tell whether it has wandered off or gone deaf.
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts -- --ignored --nocapture sixteen_hosts_wander
//! ```
//!
//! One movement is both the hosts' and that of a scenario. What the agents name at the end of every step is held against
//! what the simulator's nodes name then, and both against an oracle (smallest sum of distances, highest identity among
//! equals).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use bellwether_proto::{NodeId, Seed, Time, topology::Graph};
use bellwether_sim::{
    observe::{Log, Namings},
    run::{run_logged, world::movement},
    scenario::Scenario,
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
/// Of the square, and how far hosts hear, in metres.
const SIDE: f64 = 100.0;
const RANGE: f64 = 30.0;
/// Within which all must name the right one after a change.
const WANTED: Duration = Duration::from_secs(3);

/// Hosts that walk from one point of a square to another, as in the random waypoint model, a stride at every step.
struct Walk {
    /// At each step, of each host.
    places: Vec<Vec<[f64; 2]>>,
    step: Duration,
}

impl Walk {
    fn new(hosts: usize, steps: usize, step: Duration, seed: u64) -> Self {
        const STRIDE: f64 = 12.0;
        let mut rng = Seed::new(seed).named("field").rng();
        let mut point = || [0, 1].map(|_| rng.below(1_000_001) as f64 / 1e6 * SIDE);
        let mut places: Vec<[f64; 2]> = (0..hosts).map(|_| point()).collect();
        let mut goals: Vec<[f64; 2]> = (0..hosts).map(|_| point()).collect();
        let mut all = Vec::new();
        for _ in 0..steps {
            all.push(places.clone());
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
        Self { places: all, step }
    }

    fn hosts(&self) -> usize {
        self.places[0].len()
    }

    /// For the simulator, with these hosts as its nodes: a movement in jumps, and agents as [`wander`] sets them up.
    fn scenario(&self, nodes: &[usize]) -> Scenario {
        let mut movement = String::new();
        for &host in nodes {
            let mut last = self.places[0][host];
            for (places, at) in self.places.iter().zip(0..) {
                let (at, [x, y]) = (f64::from(at) * self.step.as_secs_f64(), last);
                movement.push_str(&format!("{at} {x} {y} "));
                last = places[host];
                movement.push_str(&format!("{at} {} {} ", last[0], last[1]));
            }
            movement.push('\n');
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("walk.movements");
        fs::write(&file, movement).expect("a file");
        let text = format!(
            r#"
            name = "hosts that wander"
            duration = "{}ms"
            [network]
            nodes = {}
            routing = "none"
            delay = {{ kind = "fixed", value = "2ms" }}
            placement = {{ kind = "field", side = {SIDE:?}, range = {RANGE:?} }}
            mobility = {{ kind = "trace", file = "{}" }}
            [election]
            kind = "central"
            profile = "cel"
            beacon = "{BEACON}"
            silence = "{SILENCE}"
            "#,
            self.step.as_millis() * self.places.len() as u128,
            nodes.len(),
            file.display(),
        );
        Scenario::parse("walk", &text, &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Who hears whom at each step, by the link changes that the simulator goes through.
    fn links(&self) -> Vec<Graph> {
        let hosts: Vec<usize> = (0..self.hosts()).collect();
        let scenario = self.scenario(&hosts);
        let movement = movement(&scenario, 1).expect("nothing is drawn").expect("a field");
        let pairs = |near: Vec<Vec<u32>>| {
            (0..).zip(near).flat_map(|(a, near)| near.into_iter().map(move |b| (a, b)))
        };
        let mut graph = Graph::with_links(self.hosts(), pairs(movement.neighbours(RANGE, 0.0)));
        let end = scenario.duration.as_secs_f64();
        let mut changes = movement.link_changes(RANGE, end).peekable();
        let mut graphs = Vec::new();
        for at in 0..self.places.len() as u32 {
            let ends = simulated_time(self.step * (at + 1));
            while let Some(change) = changes.next_if(|change| change.at < ends) {
                match change.up {
                    true => graph.connect(change.a, change.b),
                    false => graph.disconnect(change.a, change.b),
                };
            }
            graphs.push(graph.clone());
        }
        graphs
    }

    /// Whom each host of these identities names at the end of every step in the simulator. There nodes are told apart by
    /// number, so the hosts are its nodes in the order of their identities.
    fn simulated(&self, ids: &[NodeId]) -> Vec<Vec<NodeId>> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|&host| ids[host]);
        let namings: Namings = Rc::default();
        let log = Log::naming(&namings);
        let outcome = run_logged(&self.scenario(&order), 1, log).expect("nothing is drawn");
        assert_eq!(outcome.violations, []);
        let namings = namings.take();
        let mut namings = namings.iter().peekable();
        let host = |node: NodeId| order[node.get() as usize];
        let mut named: Vec<Option<NodeId>> = vec![None; ids.len()];
        let mut answers = Vec::new();
        for at in 0..self.places.len() as u32 {
            let ends = simulated_time(self.step * (at + 1));
            while let Some(naming) = namings.next_if(|naming| naming.at < ends) {
                named[host(naming.node)] = naming.leader.map(|leader| ids[host(leader)]);
            }
            let named = named.iter().map(|named| named.expect("nodes always name one"));
            answers.push(named.collect());
        }
        answers
    }
}

fn simulated_time(since: Duration) -> Time {
    Time::from_micros(since.as_micros() as u64)
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

/// Who has nobody in its part. Such a host leads itself or, if it has lost several at once, takes itself for deaf and names
/// nobody; it names nobody else in any case.
fn alone(graph: &Graph) -> Vec<bool> {
    let part = graph.components();
    let with = |one: &u32| part.iter().filter(|part| *part == one).count();
    part.iter().map(|part| with(part) == 1).collect()
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

/// Lets agents wander.
fn wander(net: &Net, walk: &Walk) -> Wandered {
    let (count, step, trace) = (walk.hosts(), walk.step, walk.links());
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
    let simulated = walk.simulated(&ids);
    let right = |at: usize| {
        let named = all_named(&agents);
        let lone = alone(&trace[at]);
        let mut answers = named.iter().zip(&expected[at]).zip(lone);
        answers.all(|((named, wanted), lone)| lone || *named == Some(*wanted))
    };
    until(seconds(30), "all know their first leaders", || right(0).then_some(()));
    println!(
        "{count} hosts, a step every {step:?}, beacons every {BEACON}, given up after {SILENCE}"
    );
    println!("step parts links changed leaders settled, s  parts as simulated");
    let (mut settling, mut changed) = (Spread::new(), 0);
    let (mut agreed, mut all_parts) = (0, 0);
    for (at, graph) in trace.iter().enumerate().skip(1) {
        let mut flips = 0;
        for (a, b) in (0..count as u32).flat_map(|b| (0..b).map(move |a| (a, b))) {
            flips += usize::from(graph.linked(a, b) != trace[at - 1].linked(a, b));
        }
        let begun = Instant::now();
        lay_out(graph);
        let mut since = None;
        while begun.elapsed() < step {
            let now = right(at).then(Instant::now);
            since = now.and(since.or(now));
            thread::sleep(Duration::from_millis(10));
        }
        let ends = all_named(&agents);
        let (component, lone) = (graph.components(), alone(graph));
        let parts: BTreeSet<u32> = component.iter().copied().collect();
        // A part agrees if each of its hosts names whom its node names in the simulator.
        let agrees = |part: &&u32| {
            let hosts = agents.all().filter(|&host| component[host] == **part);
            hosts.into_iter().all(|host| lone[host] || ends[host] == Some(simulated[at][host]))
        };
        let agreeing = parts.iter().filter(agrees).count();
        (agreed, all_parts) = (agreed + agreeing, all_parts + parts.len());
        let moved =
            expected[at].iter().zip(&expected[at - 1]).filter(|(new, old)| new != old).count();
        let settled = since.map(|since: Instant| (since - begun).as_secs_f64());
        let shown = settled.map_or("never".to_owned(), |settled| format!("{settled:.2}"));
        println!(
            "{at:>4} {:>5} {:>5} {flips:>7} {moved:>7} {shown:>10}  {agreeing} of {}",
            parts.len(),
            graph.links(),
            parts.len()
        );
        assert_eq!(simulated[at], expected[at], "the simulator, step {at}");
        for host in agents.all().filter(|&host| !lone[host]) {
            assert_eq!(ends[host], Some(simulated[at][host]), "host {host}, step {at}");
        }
        let settled = settled.unwrap_or(step.as_secs_f64());
        for host in agents.all() {
            let answer = agents.leader(host).expect("it answers");
            let leads = ids[host] == expected[at][host];
            assert!(answer.is_leader == leads || lone[host], "host {host}, step {at}: {answer:?}");
            if lone[host] {
                let own = agents.name(host);
                assert!(answer.leader.is_none_or(|leader| leader == own), "host {host}, step {at}");
            }
        }
        if moved > 0 {
            changed += 1;
            settling.add(settled);
        }
        assert!(settled <= WANTED.as_secs_f64(), "step {at} took {settled:.2} s");
    }
    println!(
        "{changed} of {} steps changed leaders: settled after {:.2} s (p50), {:.2} s (max); \
         {agreed} of {all_parts} parts as simulated at the end of their step; stalls: {}",
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
    let wandered = wander(&net, &Walk::new(6, 4, seconds(4), 3));
    assert!(wandered.changed > 0, "a trace that changes nothing shows nothing");
}

#[test]
#[ignore = "twenty steps of five seconds"]
fn sixteen_hosts_wander_and_each_part_is_led_by_its_most_central() {
    let Some(net) = hosts(16) else { return };
    let begun = (Instant::now(), net.traffic());
    let wandered = wander(&net, &Walk::new(16, 21, seconds(5), 2022));
    let (span, traffic) = (begun.0.elapsed().as_secs_f64(), net.traffic());
    println!(
        "{:.1} kbit/s of all hosts together, membership included",
        (traffic.bytes - begun.1.bytes) as f64 * 8.0 / 1_000.0 / span
    );
    assert!(wandered.changed >= 10, "{}", wandered.changed);
    assert!(wandered.settling.quantile(1.0) <= WANTED.as_secs_f64());
}

/// The oracle and the simulator agree on many fields: what the hosts are held against is right.
#[test]
fn the_simulator_ends_every_step_as_the_oracle_says() {
    let mut changed = 0;
    for seed in 0..10 {
        let mut rng = Seed::new(seed).rng();
        let ids: Vec<NodeId> = (0..12).map(|_| NodeId::new(rng.below(u64::MAX))).collect();
        let walk = Walk::new(12, 10, seconds(5), seed);
        let expected: Vec<Vec<NodeId>> =
            walk.links().iter().map(|graph| oracle(graph, &ids)).collect();
        changed += expected.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(walk.simulated(&ids), expected, "seed {seed}");
    }
    assert!(changed > 50, "{changed}");
}
