//! Closeness: the sum `S(x)` of hop distances from a node to all others of its component; smaller is more central.
//!
//! [`sums`] searches from 512 nodes at once, a bit for each, and takes nodes that are near each other together, so that
//! their searches pass any place at about the same time. [`Closeness`] keeps the sums of a graph whose links come and go:
//! a new link changes only the sums of nodes that are at least two hops nearer to one of its ends than to the other, a lost
//! one only of those for which it was the last way to one of its ends; where a link joins or parts two components, the new
//! sums follow from the old ones.

use alloc::vec::Vec;

use super::graph::{Graph, Search};

/// The closeness sums of all nodes, each within its component.
///
/// ```
/// use bellwether_proto::topology::{Graph, closeness};
///
/// let path = Graph::with_links(5, [(0, 1), (1, 2), (2, 3), (3, 4)]);
/// assert_eq!(closeness::sums(&path), [10, 7, 6, 7, 10]);
/// ```
pub fn sums(graph: &Graph) -> Vec<u64> {
    let mut sums = alloc::vec![0; graph.nodes()];
    Together::default().search(graph, &in_order_of_search(graph), &mut sums);
    sums
}

/// How many nodes are within so many hops, and the sum of their distances: what a node can say of itself and its
/// neighbours when it knows no more of the network than that. The more it reaches and then the less the sum, the more
/// central it is; `hops` at least the diameter ranks as [`sums`] does.
pub fn within(graph: &Graph, hops: u32) -> Vec<Local> {
    let mut search = Search::default();
    let local = |node| {
        search.from(graph, node);
        let distances = search.reached().iter().filter_map(|&other| search.distance(other));
        let near = distances.take_while(|&distance| distance <= hops);
        near.fold(Local::default(), |local, distance| Local {
            reached: local.reached + 1,
            sum: local.sum + u64::from(distance),
        })
    };
    (0..graph.nodes() as u32).map(local).collect()
}

/// Closeness within a few hops. The greater, the more central.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Local {
    /// Nodes within reach, itself included.
    pub reached: u32,
    /// The sum of their distances.
    pub sum: u64,
}

impl Ord for Local {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.reached.cmp(&other.reached).then(other.sum.cmp(&self.sum))
    }
}

impl PartialOrd for Local {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// All nodes, those of a component together and near each other.
fn in_order_of_search(graph: &Graph) -> Vec<u32> {
    let mut search = Search::default();
    let mut order = Vec::with_capacity(graph.nodes());
    let mut seen = alloc::vec![false; graph.nodes()];
    for root in 0..graph.nodes() as u32 {
        if !seen[root as usize] {
            search.from(graph, root);
            search.reached().iter().for_each(|&node| seen[node as usize] = true);
            order.extend_from_slice(search.reached());
        }
    }
    order
}

/// A graph whose links come and go, and the closeness sums of its nodes.
///
/// ```
/// use bellwether_proto::topology::{Closeness, Graph};
///
/// let mut ring = Closeness::new(Graph::with_links(4, [(0, 1), (1, 2), (2, 3)]));
/// ring.connect(3, 0);
/// assert_eq!(ring.sums(), [4, 4, 4, 4]);
/// ring.disconnect(1, 2);
/// assert_eq!(ring.sums(), [4, 6, 6, 4]);
/// ```
#[derive(Clone, Debug)]
pub struct Closeness {
    graph: Graph,
    sums: Vec<u64>,
    ends: [Search; 2],
    around: Vec<Search>,
    together: Together,
    stale: Vec<u32>,
}

impl Closeness {
    /// The sums of a graph, reckoned once from scratch.
    pub fn new(graph: Graph) -> Self {
        let sums = sums(&graph);
        Self {
            graph,
            sums,
            ends: Default::default(),
            around: Vec::new(),
            together: Together::default(),
            stale: Vec::new(),
        }
    }

    /// The graph as it is now.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The sums, by node.
    pub fn sums(&self) -> &[u64] {
        &self.sums
    }

    /// Links two nodes; how many sums had to be reckoned anew.
    pub fn connect(&mut self, a: u32, b: u32) -> usize {
        if a == b || self.graph.linked(a, b) {
            return 0;
        }
        self.search_ends(a, b);
        self.graph.connect(a, b);
        if self.ends[0].distance(b).is_none() {
            self.bridge(|sum, across| sum + across);
            return 0;
        }
        let [from_a, from_b] = &self.ends;
        let apart = |&node: &u32| match (from_a.distance(node), from_b.distance(node)) {
            (Some(a), Some(b)) => a.abs_diff(b) > 1,
            _ => false,
        };
        self.stale.clear();
        self.stale.extend(from_a.reached().iter().copied().filter(apart));
        self.renew()
    }

    /// Parts two nodes; how many sums had to be reckoned anew.
    pub fn disconnect(&mut self, a: u32, b: u32) -> usize {
        if !self.graph.disconnect(a, b) {
            return 0;
        }
        self.search_ends(a, b);
        if self.ends[0].distance(b).is_none() {
            self.bridge(|sum, across| sum - across);
            return 0;
        }
        // Distances to a node's neighbours tell whether there is another way to it that is as short: with the link in
        // place, again, since it is part of the shortest ways to them too.
        self.graph.connect(a, b);
        self.search_ends(a, b);
        let (mut stale, mut around) =
            (core::mem::take(&mut self.stale), core::mem::take(&mut self.around));
        stale.clear();
        for (near, far) in [(0, 1), (1, 0)] {
            let end = [a, b][far];
            let others = self.graph.neighbours(end).iter().filter(|&&other| other != [a, b][near]);
            around.resize_with(self.graph.neighbours(end).len() - 1, Search::default);
            for (search, &other) in around.iter_mut().zip(others) {
                search.from(&self.graph, other);
            }
            let [near, far] = [&self.ends[near], &self.ends[far]];
            let lost = |&node: &u32| {
                let (to_near, to_far) = (near.distance(node), far.distance(node));
                to_near < to_far && around.iter().all(|search| search.distance(node) >= to_far)
            };
            stale.extend(far.reached().iter().copied().filter(lost));
        }
        self.graph.disconnect(a, b);
        (self.stale, self.around) = (stale, around);
        self.renew()
    }

    fn search_ends(&mut self, a: u32, b: u32) {
        self.ends[0].from(&self.graph, a);
        self.ends[1].from(&self.graph, b);
    }

    /// The only link between two components has come or gone: all on one side are one hop farther than its near end from
    /// the far end, and from there on as far as that is.
    fn bridge(&mut self, change: impl Fn(u64, u64) -> u64) {
        for (near, far) in [(0, 1), (1, 0)] {
            let (near, far) = (&self.ends[near], &self.ends[far]);
            let (many, beyond) = (far.reached().len() as u64, far.sum());
            for &node in near.reached() {
                let to_end = near.distance(node).map_or(0, u64::from);
                let sum = &mut self.sums[node as usize];
                *sum = change(*sum, many * (to_end + 1) + beyond);
            }
        }
    }

    fn renew(&mut self) -> usize {
        self.together.search(&self.graph, &self.stale, &mut self.sums);
        self.stale.len()
    }
}

/// A bit for each of the nodes searched from.
type Bits = [u64; 8];

const NONE: Bits = [0; 8];
const AT_ONCE: usize = 512;

/// Comparing with [`NONE`] would call a function for it.
fn is_none(bits: &Bits) -> bool {
    bits.iter().fold(0, |any, word| any | word) == 0
}

/// Searches from many nodes at once.
#[derive(Clone, Debug, Default)]
struct Together {
    /// From which searches each node was reached: ever, in the last step, in this one.
    seen: Vec<Bits>,
    last: Vec<Bits>,
    now: Vec<Bits>,
    front: Vec<u32>,
    touched: Vec<u32>,
}

impl Together {
    /// Reckons the sums of these nodes.
    fn search(&mut self, graph: &Graph, from: &[u32], sums: &mut [u64]) {
        for batch in from.chunks(AT_ONCE) {
            self.batch(graph, batch, sums);
        }
    }

    fn batch(&mut self, graph: &Graph, from: &[u32], sums: &mut [u64]) {
        for bits in [&mut self.seen, &mut self.last, &mut self.now] {
            bits.clear();
            bits.resize(graph.nodes(), NONE);
        }
        self.front.clear();
        for (at, &node) in from.iter().enumerate() {
            sums[node as usize] = 0;
            self.seen[node as usize][at / 64] |= 1 << (at % 64);
            self.last[node as usize] = self.seen[node as usize];
            self.front.push(node);
        }
        let mut step = 0;
        while !self.front.is_empty() {
            step += 1;
            self.spread(graph);
            let mut count = Count::default();
            self.front.clear();
            for &node in &self.touched {
                let node = node as usize;
                let mut new = core::mem::replace(&mut self.now[node], NONE);
                for (new, seen) in new.iter_mut().zip(&mut self.seen[node]) {
                    *new &= !*seen;
                    *seen |= *new;
                }
                if !is_none(&new) {
                    count.add(new);
                    self.last[node] = new;
                    self.front.push(node as u32);
                }
            }
            count.each(from.len(), |at, many| sums[from[at] as usize] += step * many);
        }
    }

    /// One hop on.
    fn spread(&mut self, graph: &Graph) {
        self.touched.clear();
        for &node in &self.front {
            let bits = core::mem::replace(&mut self.last[node as usize], NONE);
            for &other in graph.neighbours(node) {
                let now = &mut self.now[other as usize];
                if is_none(now) {
                    self.touched.push(other);
                }
                now.iter_mut().zip(&bits).for_each(|(now, bits)| *now |= bits);
            }
        }
    }
}

/// How often each bit was set: digit `i` of all counts is plane `i`.
#[derive(Default)]
struct Count {
    planes: Vec<Bits>,
}

impl Count {
    fn add(&mut self, mut bits: Bits) {
        for plane in &mut self.planes {
            let mut carry = 0;
            for (plane, bit) in plane.iter_mut().zip(&mut bits) {
                (*plane, *bit) = (*plane ^ *bit, *plane & *bit);
                carry |= *bit;
            }
            if carry == 0 {
                return;
            }
        }
        self.planes.push(bits);
    }

    fn each(&self, bits: usize, mut each: impl FnMut(usize, u64)) {
        for at in 0..bits {
            let digit = |(i, plane): (usize, &Bits)| (plane[at / 64] >> (at % 64) & 1) << i;
            let many = self.planes.iter().enumerate().map(digit).sum();
            if many > 0 {
                each(at, many);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Seed;

    fn one_by_one(graph: &Graph) -> Vec<u64> {
        let mut search = Search::default();
        let sum = |node| {
            search.from(graph, node);
            search.sum()
        };
        (0..graph.nodes() as u32).map(sum).collect()
    }

    #[test]
    fn sums_of_many_searches_are_those_of_one_by_one() {
        for (round, nodes) in [1_u64, 2, 5, 40, 300, 600, 1_100].into_iter().enumerate() {
            let mut rng = Seed::new(round as u64).rng();
            let mut graph = Graph::new(nodes as usize);
            for _ in 0..nodes * 3 / 2 {
                graph.connect(rng.below(nodes) as u32, rng.below(nodes) as u32);
            }
            assert_eq!(sums(&graph), one_by_one(&graph), "{nodes} nodes");
        }
    }

    #[test]
    fn sums_follow_links_that_come_and_go() {
        for seed in 0..60 {
            let mut rng = Seed::new(seed).rng();
            let nodes = 2 + rng.below(40);
            let density = 1 + rng.below(3);
            let mut closeness = Closeness::new(Graph::new(nodes as usize));
            let (mut renewed, mut whole) = (0, 0);
            for _ in 0..300 {
                let (a, b) = (rng.below(nodes) as u32, rng.below(nodes) as u32);
                let full = closeness.graph().links() as u64 > density * nodes;
                renewed += if full || rng.chance(0.3) {
                    let links = closeness.graph().neighbours(a);
                    let other = links.get(b as usize % links.len().max(1)).copied();
                    other.map_or(0, |b| closeness.disconnect(a, b))
                } else {
                    closeness.connect(a, b)
                };
                whole += nodes as usize;
                assert_eq!(closeness.sums(), one_by_one(closeness.graph()), "seed {seed}");
            }
            assert!(
                renewed < whole / 2,
                "seed {seed}: {renewed} of {whole} sums were reckoned anew"
            );
        }
    }

    #[test]
    fn nearness_within_many_hops_ranks_as_sums_do() {
        let mut rng = Seed::new(1).rng();
        let mut graph = Graph::with_links(50, (1..50).map(|node| (node - 1, node)));
        for _ in 0..60 {
            graph.connect(rng.below(50) as u32, rng.below(50) as u32);
        }
        let near = within(&graph, 50);
        let sums = sums(&graph);
        for a in 0..50 {
            assert_eq!((near[a].reached, near[a].sum), (50, sums[a]));
            for b in 0..50 {
                assert_eq!(near[a].cmp(&near[b]), sums[b].cmp(&sums[a]));
            }
        }
        let close = within(&Graph::with_links(4, [(0, 1), (1, 2), (2, 3)]), 1);
        assert_eq!(close.iter().map(|local| local.reached).collect::<Vec<_>>(), [2, 3, 3, 2]);
    }
}
