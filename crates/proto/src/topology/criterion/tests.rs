use alloc::{vec, vec::Vec};

use super::{
    super::map::{Edges, Map, Survey, View},
    *,
};
use crate::{id::NodeId, rng::Seed};

/// The smallest graph found in which no two criteria agree.
const DISPUTED: [(u32, u32); 9] =
    [(0, 1), (1, 2), (1, 6), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5), (5, 6)];

#[test]
fn five_criteria_have_five_leaders_on_seven_nodes() {
    let graph = Graph::with_links(7, DISPUTED);
    // By another program, from the definitions.
    let expected: [(Criterion, u32, [u64; 7]); 5] = [
        (Criterion::Closeness, 2, [14, 9, 9, 10, 10, 10, 10]),
        (Criterion::Degree, 5, [1, 3, 3, 3, 3, 3, 2]),
        (Criterion::Betweenness, 1, [0, 6_000, 4_000, 500, 500, 2_000, 2_000]),
        (Criterion::Tree, 6, [16, 11, 16, 16, 16, 11, 10]),
        (Criterion::Eigenvector, 4, [208, 587, 918, 1_000, 1_000, 897, 527]),
    ];
    for (criterion, leader, scores) in expected {
        let found: Vec<u64> = merits(&graph, criterion).map(|merit| merit.score).collect();
        assert_eq!(found, scores, "{criterion:?}");
        assert_eq!(leaders(&graph, criterion), [leader; 7], "{criterion:?}");
    }
}

#[test]
fn names_and_criteria_are_the_same_list() {
    assert!(Criterion::NAMED.iter().all(|&(name, criterion)| criterion.name() == name));
}

#[test]
fn what_is_rounded_alike_is_still_told_apart() {
    // On a ring of 80 with one chord, scores of neighbours are closer than thousandths of the best.
    let links = (0..80).map(|node| (node, (node + 1) % 80)).chain([(0, 2)]);
    let merits: Vec<Merit> =
        merits(&Graph::with_links(80, links), Criterion::Eigenvector).collect();
    let twins = |&(a, b): &(usize, usize)| {
        merits[a].score == merits[b].score && merits[a].rank != merits[b].rank
    };
    let pairs = || (0..80).flat_map(|b| (0..b).map(move |a| (a, b)));
    assert!(pairs().any(|pair| twins(&pair)));
    assert!(
        (2..41).all(|at| merits[at].rank == merits[(82 - at) % 80].rank),
        "the ring looks the same both ways"
    );
}

#[test]
fn alone_and_uncountable_graphs_have_ranks_too() {
    for (_, criterion) in Criterion::NAMED {
        assert_eq!(leaders(&Graph::new(2), criterion), [0, 1]);
    }
    // Two nodes that both link to the next two, 130 times: 2^129 paths.
    let links = (0..130_u32).flat_map(|step| {
        let (here, next) = (2 * step, 2 * step + 2);
        [(here, next), (here, next + 1), (here + 1, next), (here + 1, next + 1)]
    });
    let graph = Graph::with_links(262, links);
    assert!(merits(&graph, Criterion::Betweenness).all(|merit| merit.rank == 0));
    assert_eq!(leaders(&graph, Criterion::Betweenness), [261; 262]);
}

fn random_graph(nodes: usize, links: u64, rng: &mut crate::rng::Rng) -> Graph {
    let mut node = || rng.below(nodes as u64) as u32;
    Graph::with_links(nodes, (0..links).map(|_| (node(), node())))
}

/// Whoever asks, wherever its map began, and whatever a component's neighbours in number are.
#[test]
fn all_members_of_a_component_see_the_same_ranks() {
    let mut rng = Seed::new(5).rng();
    for run in 0..60 {
        let graph = random_graph(18, 16 + run % 20, &mut rng);
        // In another order than numbers.
        let ids: Vec<NodeId> = (0..18).map(|_| NodeId::new(rng.below(u64::MAX))).collect();
        let mut order: Vec<u32> = (0..18).collect();
        order.sort_by_key(|&node| ids[node as usize]);
        let number = |node: u32| order.iter().position(|&at| at == node).unwrap() as u32;
        let pairs = (0..18).flat_map(|b| (0..b).map(move |a| (a, b)));
        let by_id = Graph::with_links(
            18,
            pairs.filter(|&(a, b)| graph.linked(a, b)).map(|(a, b)| (number(a), number(b))),
        );
        let component = graph.components();
        for (_, criterion) in Criterion::NAMED {
            let expected = leaders(&by_id, criterion);
            let mut tables = vec![None; 18];
            for me in 0..18 {
                let map = map_of(&graph, &ids, me);
                let mut survey = Survey::new(Edges::Mutual, criterion);
                let leader = order[expected[number(me) as usize] as usize];
                assert_eq!(survey.answer(&map).leader, ids[leader as usize], "{criterion:?}");
                let table = survey.table(&map);
                assert_eq!(table[0].id, ids[leader as usize], "{criterion:?}");
                let ranks = table.into_iter().map(|rank| (rank.id, rank.score));
                let table: Vec<(NodeId, Option<u64>)> = ranks.collect();
                let first = &mut tables[component[me as usize] as usize];
                assert_eq!(*first.get_or_insert_with(|| table.clone()), table);
            }
        }
    }
}

/// What everybody tells, in the map of one of them.
fn map_of(graph: &Graph, ids: &[NodeId], me: u32) -> Map {
    let view = |node: u32| {
        let near = graph.neighbours(node).iter().map(|&other| ids[other as usize]);
        View::new(ids[node as usize], 1, near)
    };
    let mut map = Map::new(ids[me as usize], view(me));
    (0..graph.nodes() as u32).for_each(|node| map.set(ids[node as usize], view(node)));
    map
}
