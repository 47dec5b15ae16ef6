//! Tree-based centrality (Kim and Wu): the sum of distances within one spanning tree, so that it takes one search instead
//! of one from every node; but who is central depends on where the search begins.

use alloc::vec::Vec;

use super::graph::{Graph, Search};

/// For each node in the component of `root`, the sum of its distances in a breadth-first tree in which the parent of a
/// node is its neighbour of the smallest number one level up.
///
/// ```
/// use bellwether_proto::topology::{Graph, tree};
///
/// let ring = Graph::with_links(4, [(0, 1), (1, 2), (2, 3), (3, 0)]);
/// assert_eq!(tree::sums(&ring, 0), [Some(4), Some(4), Some(6), Some(6)]);
/// ```
pub fn sums(graph: &Graph, root: u32) -> Vec<Option<u64>> {
    let mut search = Search::default();
    search.from(graph, root);
    let reached = search.reached();
    let parent = |node: u32| {
        let up = search.distance(node)?.checked_sub(1)?;
        graph.neighbours(node).iter().copied().find(|&other| search.distance(other) == Some(up))
    };
    let mut below = alloc::vec![1_u64; graph.nodes()];
    for &node in reached.iter().rev() {
        if let Some(parent) = parent(node) {
            below[parent as usize] += below[node as usize];
        }
    }
    let mut sums = alloc::vec![None; graph.nodes()];
    sums[root as usize] = Some(search.sum());
    let all = reached.len() as u64;
    for &node in reached {
        if let Some(parent) = parent(node) {
            // One step from the parent to it is one nearer to all below it and one farther from all others.
            let change = |sum: u64| sum + all - 2 * below[node as usize];
            sums[node as usize] = sums[parent as usize].map(change);
        }
    }
    sums
}
