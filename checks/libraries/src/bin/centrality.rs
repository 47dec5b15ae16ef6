//! Closeness of all nodes after one link has changed, beside the graph libraries people would use.
//!
//! Graphs are random fields of unit discs, about eight neighbours to a node. petgraph has no closeness: it searches from
//! every node. rustworkx-core has one, for one thread where the graph is small. Every round makes one change to a link and
//! asks everybody for the new scores; answers are compared. `cargo run --release --bin centrality`

use std::{hint::black_box, time::Instant};

use bellwether_proto::{
    Seed,
    topology::{Closeness, Graph, closeness},
};
use petgraph::{
    graph::{NodeIndex, UnGraph},
    visit::Bfs,
};

const NEIGHBOURS: f64 = 8.0;

fn main() {
    println!(
        "| nodes | links | ours, after a change | ours, from nothing | petgraph | rustworkx-core | petgraph / ours | rustworkx-core / ours |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (nodes, rounds) in [(100, 200), (1_000, 20), (10_000, 3)] {
        compare(nodes, rounds);
    }
}

fn compare(nodes: usize, rounds: usize) {
    let mut rng = Seed::new(nodes as u64).rng();
    let reach = (NEIGHBOURS / (nodes as f64 * std::f64::consts::PI)).sqrt();
    let places: Vec<(f64, f64)> = (0..nodes).map(|_| (rng.unit(), rng.unit())).collect();
    let mut graph = Graph::new(nodes);
    for (a, one) in places.iter().enumerate() {
        for (b, other) in places.iter().enumerate().skip(a + 1) {
            if (one.0 - other.0).hypot(one.1 - other.1) <= reach {
                graph.connect(a as u32, b as u32);
            }
        }
    }
    let mut kept = Closeness::new(graph);
    let [mut change, mut whole, mut petgraph, mut rustworkx] = [const { Vec::new() }; 4];
    for round in 0..rounds {
        // A link goes, then it comes back.
        let (a, b) = loop {
            let a = rng.below(nodes as u64) as u32;
            let links = kept.graph().neighbours(a);
            if !links.is_empty() {
                break (a, links[rng.below(links.len() as u64) as usize]);
            }
        };
        let began = Instant::now();
        kept.disconnect(a, b);
        change.push(began.elapsed());
        let began = Instant::now();
        let fresh = black_box(closeness::sums(kept.graph()));
        whole.push(began.elapsed());
        assert_eq!(kept.sums(), fresh);

        let edges = (0..nodes as u32).flat_map(|a| {
            kept.graph().neighbours(a).iter().filter(move |&&b| a < b).map(move |&b| (a, b))
        });
        let mut theirs: UnGraph<(), ()> = UnGraph::from_edges(edges);
        while theirs.node_count() < nodes {
            theirs.add_node(());
        }
        let began = Instant::now();
        let sums = black_box(searched(&theirs));
        petgraph.push(began.elapsed());
        assert_eq!(sums, fresh);
        if round < 2 {
            let began = Instant::now();
            // Never in parallel: one processor each.
            black_box(rustworkx_core::centrality::closeness_centrality(&theirs, false, usize::MAX));
            rustworkx.push(began.elapsed());
        }
        let began = Instant::now();
        kept.connect(a, b);
        change.push(began.elapsed());
    }
    let mean = |times: &[std::time::Duration]| {
        times.iter().map(|time| time.as_secs_f64() * 1e3).sum::<f64>() / times.len() as f64
    };
    let worst = change.iter().max().map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let [change, whole, petgraph, rustworkx] =
        [&change, &whole, &petgraph, &rustworkx].map(|times| mean(times));
    println!(
        "| {nodes} | {} | {change:.3} ms (worst {worst:.3}) | {whole:.3} ms | {petgraph:.2} ms | {rustworkx:.2} ms | {:.1} | {:.1} |",
        kept.graph().links(),
        petgraph / change,
        rustworkx / change,
    );
}

/// One search from every node, with what petgraph brings.
fn searched(graph: &UnGraph<(), ()>) -> Vec<u64> {
    let mut distance = vec![0_u64; graph.node_count()];
    let sum = |from: NodeIndex| {
        let mut search = Bfs::new(graph, from);
        distance.fill(u64::MAX);
        distance[from.index()] = 0;
        let mut sum = 0;
        while let Some(node) = search.next(graph) {
            sum += distance[node.index()];
            let next = distance[node.index()] + 1;
            for other in graph.neighbors(node) {
                distance[other.index()] = distance[other.index()].min(next);
            }
        }
        sum
    };
    graph.node_indices().map(sum).collect()
}
