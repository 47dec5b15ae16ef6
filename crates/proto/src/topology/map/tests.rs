//! Rules L, test vector V1 as far as maps go, and properties P3 and P4.

use std::{collections::BTreeSet, vec, vec::Vec};

use super::*;
use crate::{
    rng::{Rng, Seed},
    topology::memo::Memo,
};

fn ids(ids: &[u64]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId::new).collect()
}

/// The map of `me`, from what each node told.
pub(crate) fn map(me: u64, views: &[(u64, u64, &[u64])]) -> Map {
    let mut map = Map::new(NodeId::new(me), View::new(NodeId::new(me), 0, []));
    for &(id, clock, hears) in views {
        let id = NodeId::new(id);
        map.set(id, View::new(id, clock, ids(hears)));
    }
    map
}

/// The map of `me` of an undirected graph.
fn graph(me: u64, links: &[(u64, u64)]) -> Map {
    let nodes: BTreeSet<u64> = links.iter().flat_map(|&(a, b)| [a, b]).chain([me]).collect();
    let mut map = map(me, &[]);
    for node in nodes {
        let hears = links.iter().filter_map(|&(a, b)| match node {
            _ if node == a => Some(NodeId::new(b)),
            _ if node == b => Some(NodeId::new(a)),
            _ => None,
        });
        map.set(NodeId::new(node), View::new(NodeId::new(node), 1, hears));
    }
    map
}

fn leader(map: &Map, edges: Edges, criterion: Criterion) -> u64 {
    Survey::new(edges, criterion).answer(map).leader.get()
}

const KITE: [(u64, u64); 18] = [
    (0, 1),
    (0, 2),
    (0, 3),
    (0, 5),
    (1, 3),
    (1, 4),
    (1, 6),
    (2, 3),
    (2, 5),
    (3, 4),
    (3, 5),
    (3, 6),
    (4, 6),
    (5, 6),
    (5, 7),
    (6, 7),
    (7, 8),
    (8, 9),
];

#[test]
fn v1_the_leader_function() {
    let kite = graph(4, &KITE);
    let cases: [(Map, Criterion, u64); 7] = [
        (graph(7, &[]), Criterion::Closeness, 7),
        (graph(7, &[]), Criterion::Degree, 7),
        (graph(1, &[(1, 2)]), Criterion::Closeness, 2),
        (graph(2, &[(1, 2), (2, 3), (3, 4), (4, 1)]), Criterion::Closeness, 4),
        (graph(5, &[(1, 2), (2, 3), (3, 4), (4, 5)]), Criterion::Closeness, 3),
        (kite.clone(), Criterion::Degree, 3),
        (kite.clone(), Criterion::Closeness, 6),
    ];
    for (map, criterion, expected) in cases {
        for edges in [Edges::AsStored, Edges::Mutual] {
            assert_eq!(leader(&map, edges, criterion), expected, "{map:?}");
        }
    }
    let scores = |criterion| {
        let mut table = Survey::new(Edges::Mutual, criterion).table(&kite);
        table.sort_by_key(|rank| rank.id);
        table.iter().map(|rank| rank.score.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(scores(Criterion::Closeness), [17, 17, 18, 15, 18, 14, 14, 15, 21, 29]);
    assert_eq!(scores(Criterion::Degree), [4, 4, 3, 6, 3, 5, 5, 3, 2, 1]);
}

#[test]
fn v1_a_node_that_reaches_nobody_is_not_nearest_to_all() {
    let contradictory = map(1, &[(1, 1, &[9]), (9, 1, &[])]);
    for edges in [Edges::AsStored, Edges::Mutual] {
        assert_eq!(leader(&contradictory, edges, Criterion::Closeness), 1);
        assert_eq!(leader(&contradictory, edges, Criterion::Degree), 1);
    }
    let answer = Survey::new(Edges::AsStored, Criterion::Closeness).answer(&contradictory);
    assert_eq!(answer.members, 2, "stored links lead there");
    let answer = Survey::new(Edges::Mutual, Criterion::Closeness).answer(&contradictory);
    assert_eq!(answer.members, 1, "but 9 does not hear us");
}

#[test]
fn a_neighbour_that_has_told_nothing_counts_by_our_word() {
    let half = map(1, &[(1, 1, &[9])]);
    let answer = Survey::new(Edges::Mutual, Criterion::Closeness).answer(&half);
    assert_eq!((answer.leader.get(), answer.members, answer.unknown), (9, 2, 1));
    // As published it is in the component, but leads nowhere.
    assert_eq!(leader(&half, Edges::AsStored, Criterion::Closeness), 1);
    let shared = map(1, &[(1, 1, &[9]), (5, 1, &[9])]);
    let answer = Survey::new(Edges::Mutual, Criterion::Closeness).answer(&shared);
    assert_eq!((answer.leader.get(), answer.members), (9, 3), "both who hear it are next to it");
}

#[test]
fn the_table_is_ordered_as_leaders_would_follow_each_other() {
    let table = Survey::new(Edges::Mutual, Criterion::Closeness).table(&graph(0, &KITE));
    let order: Vec<(u64, u64, u32)> =
        table.iter().map(|rank| (rank.id.get(), rank.score.unwrap(), rank.hops)).collect();
    assert_eq!(order[..4], [(6, 14, 2), (5, 14, 1), (7, 15, 2), (3, 15, 1)]);
    assert_eq!(order[9], (9, 29, 4));
}

/// Stored views of up to `nodes` nodes, one-sided links and strangers included.
fn random(rng: &mut Rng, nodes: u64) -> Map {
    let mut map = map(rng.below(nodes), &[]);
    for id in (0..nodes).map(NodeId::new) {
        if rng.chance(0.8) || id == map.me() {
            let hears = (0..nodes).filter(|_| rng.chance(2.0 / nodes as f64)).map(NodeId::new);
            let hears: Vec<NodeId> = hears.collect();
            map.set(id, View::new(id, rng.below(9), hears));
        }
    }
    map
}

/// `Leader()` as the rules say it, by searches from every node.
fn by_the_rules(map: &Map, edges: Edges, criterion: Criterion) -> (NodeId, BTreeSet<NodeId>) {
    let mut all: BTreeSet<NodeId> = map.entries().iter().map(|entry| entry.id).collect();
    all.extend(map.entries().iter().flat_map(|entry| entry.view.neighbours()));
    let tells = |x: NodeId, y: NodeId| map.get(x).is_some_and(|view| view.contains(y));
    let link = |x: NodeId, y: NodeId| {
        x != y
            && match edges {
                Edges::AsStored => tells(x, y),
                Edges::Mutual => {
                    (tells(x, y) && (tells(y, x) || map.get(y).is_none()))
                        || (tells(y, x) && map.get(x).is_none())
                }
            }
    };
    let search = |from: NodeId| {
        let mut hops = std::collections::BTreeMap::from([(from, 0_u64)]);
        let mut queue = vec![from];
        while !queue.is_empty() {
            let mut next = Vec::new();
            for &x in &queue {
                for &y in all.iter().filter(|&&y| link(x, y)) {
                    if !hops.contains_key(&y) {
                        hops.insert(y, hops[&x] + 1);
                        next.push(y);
                    }
                }
            }
            queue = next;
        }
        hops
    };
    let component: BTreeSet<NodeId> = search(map.me()).into_keys().collect();
    let candidate = |&x: &NodeId| component.iter().all(|y| search(x).contains_key(y));
    let best = component.iter().copied().filter(candidate).max_by_key(|&x| match criterion {
        Criterion::Closeness => (u64::MAX - component.iter().map(|y| search(x)[y]).sum::<u64>(), x),
        Criterion::Degree => (all.iter().filter(|&&y| link(x, y)).count() as u64, x),
        _ => unreachable!("those have tests of their own, beside the criteria"),
    });
    (best.unwrap(), component)
}

#[test]
fn p3_and_p4_random_maps_answer_as_the_rules_say() {
    let mut rng = Seed::new(3).rng();
    let memo = Memo::default();
    for run in 0..400 {
        let nodes = 1 + rng.below(12);
        let map = random(&mut rng, nodes);
        for edges in [Edges::AsStored, Edges::Mutual] {
            for criterion in [Criterion::Closeness, Criterion::Degree] {
                let mut survey = Survey::new(edges, criterion);
                let answer = survey.answer(&map);
                let (expected, component) = by_the_rules(&map, edges, criterion);
                assert_eq!(answer.leader, expected, "run {run}: {edges:?} {criterion:?} {map:?}");
                assert_eq!(answer.members as usize, component.len(), "run {run}");
                assert!(component.contains(&answer.leader), "P3, run {run}");
                assert_eq!(survey.answer(&map), answer, "remembered, run {run}");
                let mut sharing = Survey::new(edges, criterion).sharing(memo.clone());
                assert_eq!(sharing.answer(&map), answer, "as others have found, run {run}");
            }
        }
    }
}

#[test]
fn p4_members_of_one_component_with_equal_maps_give_one_answer() {
    let mut rng = Seed::new(4).rng();
    for run in 0..200 {
        let nodes = 2 + rng.below(80);
        let links: Vec<(u64, u64)> = (0..2 * nodes)
            .map(|_| (rng.below(nodes), rng.below(nodes)))
            .filter(|(a, b)| a != b)
            .collect();
        let own = graph(0, &links);
        let memo = Memo::default();
        let first = Survey::new(Edges::Mutual, Criterion::Closeness).answer(&own);
        let table = Survey::new(Edges::Mutual, Criterion::Closeness).table(&own);
        assert_eq!(table.len(), first.members as usize);
        for rank in table {
            let other = graph(rank.id.get(), &links);
            let answer = Survey::new(Edges::Mutual, Criterion::Closeness).answer(&other);
            assert_eq!(answer, first, "run {run}: {} differs, links {links:?}", rank.id);
            let mut sharing =
                Survey::new(Edges::Mutual, Criterion::Closeness).sharing(memo.clone());
            assert_eq!(sharing.answer(&other), first, "run {run}: {} shares another", rank.id);
        }
    }
}

#[test]
fn the_topology_hash_follows_every_change_and_knows_no_order() {
    let mut rng = Seed::new(5).rng();
    let mut grown = map(0, &[]);
    for _ in 0..500 {
        let id = NodeId::new(rng.below(20));
        if rng.chance(0.2) {
            grown.retain(|other| other != id);
        } else {
            let hears: Vec<NodeId> = (0..3).map(|_| NodeId::new(rng.below(20))).collect();
            grown.set(id, View::new(id, rng.below(5), hears));
        }
        let mut anew = map(0, &[]);
        for entry in grown.entries().iter().rev() {
            anew.set(entry.id, entry.view.clone());
        }
        assert_eq!(anew.topology(), grown.topology());
        assert_eq!(anew, grown);
        let told = Entries::from(grown.entries().to_vec());
        assert!(grown.is(&told) && told == grown.snapshot());
        grown.set(id, View::new(id, 5 + rng.below(5), []));
        assert!(!grown.is(&told), "another clock is another map");
    }
}

/// Answers are remembered by it.
#[test]
fn the_topology_hash_tells_all_small_maps_apart() {
    let views = |id: u64| {
        let others: Vec<u64> = (0..4).filter(|&other| other != id).collect();
        (0..8_u32).map(move |set| {
            let hears = others.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            View::new(NodeId::new(id), 1, hears.map(|(_, &other)| NodeId::new(other)))
        })
    };
    let mut seen = std::collections::BTreeSet::new();
    for own in views(0) {
        for choice in 0..729_u32 {
            let mut map = Map::new(NodeId::new(0), own.clone());
            for (id, place) in [(1, 1), (2, 9), (3, 81)] {
                // The last of nine is none.
                if let Some(view) = views(id).nth((choice / place % 9) as usize) {
                    map.set(NodeId::new(id), view);
                }
            }
            assert!(seen.insert(map.topology()), "{map:?}");
        }
    }
    assert_eq!(seen.len(), 8 * 729);
}
