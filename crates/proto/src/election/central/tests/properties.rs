//! Properties P5, P6, P8, P9, P11, P13 and P14.

use std::{collections::BTreeMap, vec, vec::Vec};

use super::*;
use crate::{rng::Rng, topology::Graph};

/// Nodes whose links flip while messages are on their way, in any order. Told to machines at once.
struct World {
    nodes: Vec<Node>,
    links: Vec<(u64, u64)>,
    /// From, to, what.
    flying: Vec<(u64, u64, Message)>,
    said: Vec<(u64, Message)>,
    now: Time,
    rng: Rng,
    fifo: bool,
}

impl World {
    fn new(count: u64, config: Config, seed: u64) -> Self {
        Self {
            nodes: (0..count).map(|node| Node::new(node, config)).collect(),
            links: Vec::new(),
            flying: Vec::new(),
            said: Vec::new(),
            now: Time::ZERO,
            rng: Seed::new(seed).rng(),
            fifo: true,
        }
    }

    fn says(&mut self, from: u64, messages: Vec<Message>) {
        for message in messages {
            for &(a, b) in &self.links {
                for (x, y) in [(a, b), (b, a)] {
                    if x == from {
                        self.flying.push((from, y, message.clone()));
                    }
                }
            }
            self.said.push((from, message));
        }
    }

    fn flip(&mut self) {
        let count = self.nodes.len() as u64;
        let a = self.rng.below(count);
        let b = (a + 1 + self.rng.below(count - 1)) % count;
        let link = (a.min(b), a.max(b));
        let gone = self.links.iter().position(|&other| other == link);
        match gone {
            Some(at) => drop(self.links.remove(at)),
            None => self.links.push(link),
        }
        for (me, other) in [(a, b), (b, a)] {
            let feed = if gone.is_some() { Feed::Down(id(other)) } else { Feed::Up(id(other)) };
            let said = self.nodes[me as usize].input(self.now, Input::Feed(feed));
            self.says(me, said);
        }
    }

    /// So many, none of them much later.
    fn steps(&mut self, count: u32, within: Duration) {
        for _ in 0..count {
            self.step(self.now + within);
        }
    }

    /// One message arrives, or if there is none the next timer fires before `until`. Whether there was anything.
    fn step(&mut self, until: Time) -> bool {
        if !self.flying.is_empty() {
            let at = if self.fifo { 0 } else { self.rng.below(self.flying.len() as u64) as usize };
            let (from, to, message) = self.flying.remove(at);
            let said = self.nodes[to as usize].hear_at(self.now, from, &message);
            self.says(to, said);
            return true;
        }
        let due = self.nodes.iter().enumerate();
        let due = due.filter_map(|(at, node)| Some((node.0.deadline()?.0, at))).min();
        let Some((now, node)) = due.filter(|&(now, _)| now < until) else { return false };
        self.now = self.now.max(now);
        let said = self.nodes[node].input(self.now, Input::Timeout);
        self.says(node as u64, said);
        true
    }
}

/// Those with a map.
fn maps() -> Vec<Config> {
    let mut all: Vec<Config> = vec![topology_aware(), cel(1.0), cel(0.7)];
    all.extend(both());
    all
}

#[test]
fn p3_p5_and_p6_hold_after_every_input() {
    for config in maps() {
        for seed in 0..12 {
            let mut world = World::new(6, config, seed);
            world.fifo = seed % 2 == 0;
            let mut clocks: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            for step in 0..400_u64 {
                if step % 12 == 0 {
                    world.flip();
                } else {
                    world.step(world.now + millis(50));
                }
                for node in &world.nodes {
                    let (me, map) = (node.0.me.id.get(), node.0.map().unwrap());
                    let leader = node.0.leadership().leader.unwrap();
                    assert!(node.0.table().iter().any(|rank| rank.id == leader), "P3");
                    for entry in map.entries() {
                        let clock = clocks.entry((me, entry.id.get())).or_insert(0);
                        assert!(*clock <= entry.view.clock(), "P6");
                        *clock = entry.view.clock();
                        let closed = |other: &NodeId| map.get(*other).is_some();
                        if matches!(config.profile(), Profile::Cel { .. }) {
                            assert!(entry.view.neighbours().iter().all(closed), "P5");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn p8_the_criterion_changes_no_message() {
    for seed in 0..20 {
        let said = |config: Config, criterion| {
            let config = config.with_criterion(criterion).unwrap();
            let mut world = World::new(7, config, seed);
            for _ in 0..20 {
                world.flip();
                world.steps(9, millis(40));
            }
            while world.step(at(60_000)) {}
            (world.said, world.nodes.iter().map(Node::leader).collect::<Vec<_>>())
        };
        let by = |criterion| said(topology_aware(), criterion);
        let (closeness, degree) = (by(Criterion::Closeness), by(Criterion::Degree));
        assert_eq!(closeness.0, degree.0, "seed {seed}");
        let closeness = said(hardened(LinkState::at_once(1.0)), Criterion::Closeness);
        for (name, criterion) in Criterion::NAMED {
            assert_eq!(
                said(hardened(LinkState::at_once(1.0)), criterion).0,
                closeness.0,
                "{name}, seed {seed}"
            );
        }
    }
}

#[test]
fn p9_the_published_forms_fall_silent_and_the_hardened_nearly_so() {
    for config in maps() {
        let mut world = World::new(6, config, 1);
        (0..15).for_each(|_| world.flip());
        while world.step(at(10_000)) {}
        world.said.clear();
        while world.step(at(170_000)) {}
        match config.profile() {
            Profile::LinkState(_) => {
                let digests = world.said.iter().all(|(_, it)| matches!(it, Message::Digest { .. }));
                // One in 16 s, give or take a quarter, for each of six.
                assert!(digests && (48..=80).contains(&world.said.len()), "{}", world.said.len());
            }
            _ => assert_eq!(world.said, [], "{config:?}"),
        }
    }
}

#[test]
fn p9_the_baselines_never_fall_silent() {
    let flooding = |reading| {
        let (period, timeout) = (millis(250), millis(300));
        Profile::Flooding { reading, period, timeout, numbered: false }
    };
    let gomez = Profile::Gomez { order: Order::Size, period: millis(102) };
    for (profile, period) in
        [(flooding(Reading::Tick), 250), (flooding(Reading::Opt), 250), (gomez, 102)]
    {
        let mut world = World::new(2, Config::new(profile, Detection::Given).unwrap(), 1);
        world.flip();
        while world.step(at(5_000)) {}
        world.said.clear();
        while world.step(at(10_000)) {}
        assert!(world.said.len() as u64 >= 4_900 / period, "{profile:?}: {}", world.said.len());
    }
}

/// All 1099 labelled graphs of up to five nodes.
#[test]
fn p11_of_every_class_of_twins_exactly_the_smallest_speaks() {
    let mut graphs = 0;
    for nodes in 1..=5_u32 {
        let pairs: Vec<(u32, u32)> =
            (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))).collect();
        for chosen in 0..1_u32 << pairs.len() {
            graphs += 1;
            let links = pairs.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
            let graph = Graph::with_links(nodes as usize, links.map(|(_, &link)| link));
            let closed = |node: u32| {
                let hears = graph.neighbours(node).iter().map(|&other| id(u64::from(other)));
                View::new(id(u64::from(node)), 1, hears)
            };
            let silent = |me: u32| {
                let mut map = Map::new(id(u64::from(me)), closed(me));
                (0..nodes).for_each(|other| map.set(id(u64::from(other)), closed(other)));
                super::super::link_state::is_pruned(&map)
            };
            for node in 0..nodes {
                let twins = |&other: &u32| closed(other).neighbours() == closed(node).neighbours();
                let smallest = (0..nodes).find(twins);
                let clique = (0..nodes).filter(twins).all(|x| x == node || graph.linked(x, node));
                assert!(clique, "{graph:?}");
                assert_eq!(silent(node), smallest != Some(node), "{graph:?} at {node}");
            }
        }
    }
    assert_eq!(graphs, 1_099);
}

/// A path of `relays` between its ends, all of which know it; the first meets somebody new.
fn reaches_the_end(relays: u64, config: Config, seed: u64) -> bool {
    let last = relays + 1;
    let hears: Vec<Vec<u64>> = (0..=last)
        .map(|node| (0..=last).filter(|other| node.abs_diff(*other) == 1).collect())
        .collect();
    let told: Vec<Told<'_>> =
        (0..).zip(&hears).map(|(node, hears)| (node, 1, &hears[..])).collect();
    let mut nodes: Vec<Node> = (0..=last)
        .map(|node| {
            let mut it = Node::knowing(node, config, &told);
            it.0.rng = Seed::new(seed).indexed(node).rng();
            it
        })
        .collect();
    let mut said = nodes[0].up(99);
    for node in 1..=last {
        said = nodes[node as usize].hear_all(node - 1, &said);
    }
    nodes[last as usize].0.map().unwrap().get(id(99)).is_some()
}

#[test]
fn p13_gossip_reaches_the_end_of_a_path_as_often_as_all_relays_pass_it_on() {
    let runs = 4_000_u32;
    for relays in 2..=5 {
        let reached = (0..runs).filter(|&seed| reaches_the_end(relays, cel(0.7), u64::from(seed)));
        let share = reached.count() as f64 / f64::from(runs);
        let expected = libm::pow(0.7, relays as f64);
        let error = libm::sqrt(expected * (1.0 - expected) / f64::from(runs));
        assert!((share - expected).abs() < 4.0 * error, "{relays} relays: {share} for {expected}");
    }
    assert!(reaches_the_end(5, cel(1.0), 0));
}

/// What a world has said so far, to be heard by somebody from outside it.
fn heard(config: Config, seed: u64) -> Vec<Message> {
    let mut world = World::new(5, config, seed);
    for _ in 0..20 {
        world.flip();
        world.steps(6, millis(80));
    }
    world.said.into_iter().map(|(_, message)| message).collect()
}

#[test]
fn p14_a_second_copy_changes_nothing_and_joins_know_no_order() {
    for (config, joins) in
        [(topology_aware(), false), (cel(1.0), true), (both()[0], true), (both()[1], true)]
    {
        for seed in 0..10 {
            let messages = heard(config, seed);
            let mut node = Node::new(9, config);
            for message in &messages {
                node.hear(0, message);
                let (map, leader) = (node.map(), node.leader());
                node.hear(0, message);
                assert_eq!((node.map(), node.leader()), (map, leader), "{message:?}");
            }
            if joins {
                let mut other = Node::new(9, config);
                let mut shuffled = messages.clone();
                let mut rng = Seed::new(seed).rng();
                for at in (1..shuffled.len()).rev() {
                    shuffled.swap(at, rng.below(at as u64 + 1) as usize);
                }
                shuffled.iter().for_each(|message| drop(other.hear(0, message)));
                assert_eq!(other.map(), node.map(), "seed {seed}");
            }
        }
    }
}
