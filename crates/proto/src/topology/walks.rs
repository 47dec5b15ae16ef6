//! Eigenvector centrality, as integers: how many walks of a given length begin at a node, staying put counted as a step,
//! so that two-coloured graphs settle too. The longer the walks, the nearer the ratios come to those of the eigenvector.

use alloc::vec::Vec;

use super::graph::Graph;

/// For each node the number of walks of so many steps that begin there. In a graph with too many for 64 bits all numbers
/// lose as many of their low bits, again after every step: ratios keep, and nodes that look alike stay equal.
///
/// ```
/// use bellwether_proto::topology::{Graph, walks};
///
/// let path = Graph::with_links(3, [(0, 1), (1, 2)]);
/// assert_eq!(walks::count(&path, 2), [5, 7, 5]);
/// ```
pub fn count(graph: &Graph, steps: u32) -> Vec<u64> {
    let mut walks = alloc::vec![1_u64; graph.nodes()];
    let mut longer: Vec<u128> = Vec::with_capacity(graph.nodes());
    for _ in 0..steps {
        let of = |&node: &u32| u128::from(walks[node as usize]);
        longer.clear();
        longer.extend(
            (0..graph.nodes() as u32)
                .map(|node| of(&node) + graph.neighbours(node).iter().map(of).sum::<u128>()),
        );
        let most = longer.iter().copied().max().unwrap_or(0);
        let excess = 64_u32.saturating_sub(most.leading_zeros());
        walks
            .iter_mut()
            .zip(&longer)
            .for_each(|(walks, &longer)| *walks = (longer >> excess) as u64);
    }
    walks
}

/// The same with walks so long that each can go anywhere and back, twice as many steps as there are nodes, and at least 64:
/// in small graphs that is the eigenvector as far as 64 bits tell, in large ones what all agree to take for it.
pub fn settled(graph: &Graph) -> Vec<u64> {
    count(graph, u32::try_from(2 * graph.nodes()).map_or(u32::MAX, |steps| steps.max(64)))
}
