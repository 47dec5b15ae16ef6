//! An undirected graph of numbered nodes.

use alloc::vec::Vec;

/// An undirected graph without loops. Nodes are `0..nodes()`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Graph {
    /// Ascending, both ways.
    neighbours: Vec<Vec<u32>>,
    links: usize,
}

impl Graph {
    /// So many nodes, none of them linked.
    pub fn new(nodes: usize) -> Self {
        Self { neighbours: alloc::vec![Vec::new(); nodes], links: 0 }
    }

    /// So many nodes with these links; a link named twice is one, a loop is none.
    ///
    /// ```
    /// use bellwether_proto::topology::Graph;
    ///
    /// let path = Graph::with_links(4, [(0, 1), (1, 2), (2, 3)]);
    /// assert_eq!(path.distances(0), [Some(0), Some(1), Some(2), Some(3)]);
    /// ```
    pub fn with_links(nodes: usize, links: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut graph = Self::new(nodes);
        for (a, b) in links {
            graph.connect(a, b);
        }
        graph
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.neighbours.len()
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.links
    }

    /// Whom a node is linked to, ascending.
    pub fn neighbours(&self, node: u32) -> &[u32] {
        &self.neighbours[node as usize]
    }

    /// Whether two nodes are linked.
    pub fn linked(&self, a: u32, b: u32) -> bool {
        self.neighbours(a).binary_search(&b).is_ok()
    }

    /// Links two nodes; whether they were not linked before.
    pub fn connect(&mut self, a: u32, b: u32) -> bool {
        if a == b {
            return false;
        }
        let Err(at) = self.neighbours[a as usize].binary_search(&b) else { return false };
        self.neighbours[a as usize].insert(at, b);
        if let Err(at) = self.neighbours[b as usize].binary_search(&a) {
            self.neighbours[b as usize].insert(at, a);
        }
        self.links += 1;
        true
    }

    /// Parts two nodes; whether they were linked before.
    pub fn disconnect(&mut self, a: u32, b: u32) -> bool {
        let Ok(at) = self.neighbours[a as usize].binary_search(&b) else { return false };
        self.neighbours[a as usize].remove(at);
        if let Ok(at) = self.neighbours[b as usize].binary_search(&a) {
            self.neighbours[b as usize].remove(at);
        }
        self.links -= 1;
        true
    }

    /// Hops from a node to every other; `None` where there is no way.
    pub fn distances(&self, from: u32) -> Vec<Option<u32>> {
        let mut search = Search::default();
        search.from(self, from);
        (0..self.nodes() as u32).map(|node| search.distance(node)).collect()
    }

    /// For each node the smallest number in its component.
    pub fn components(&self) -> Vec<u32> {
        let mut search = Search::default();
        let mut component = alloc::vec![u32::MAX; self.nodes()];
        for root in 0..self.nodes() as u32 {
            if component[root as usize] == u32::MAX {
                search.from(self, root);
                search.reached().iter().for_each(|&node| component[node as usize] = root);
            }
        }
        component
    }

    /// One component by its number in [`components`](Self::components): its nodes, ascending, and a graph of these alone.
    pub fn part(&self, components: &[u32], component: u32) -> (Vec<u32>, Self) {
        let members =
            (0..self.nodes() as u32).filter(|&node| components[node as usize] == component);
        let members: Vec<u32> = members.collect();
        let number = |node: &u32| members.binary_search(node).ok().map(|at| at as u32);
        let near = |&node: &u32| self.neighbours(node).iter().filter_map(number).collect();
        let neighbours: Vec<Vec<u32>> = members.iter().map(near).collect();
        let links = neighbours.iter().map(Vec::len).sum::<usize>() / 2;
        (members, Self { neighbours, links })
    }
}

/// A breadth-first search whose buffers serve again.
#[derive(Clone, Debug, Default)]
pub struct Search {
    distance: Vec<u32>,
    order: Vec<u32>,
}

/// Not reached.
const FAR: u32 = u32::MAX;

impl Search {
    /// Searches from a node; afterwards the other methods speak of this search.
    pub fn from(&mut self, graph: &Graph, from: u32) {
        self.distance.clear();
        self.distance.resize(graph.nodes(), FAR);
        self.order.clear();
        self.order.push(from);
        self.distance[from as usize] = 0;
        let mut at = 0;
        while let Some(&node) = self.order.get(at) {
            at += 1;
            let next = self.distance[node as usize] + 1;
            for &other in graph.neighbours(node) {
                if self.distance[other as usize] == FAR {
                    self.distance[other as usize] = next;
                    self.order.push(other);
                }
            }
        }
    }

    /// How far a node is.
    pub fn distance(&self, node: u32) -> Option<u32> {
        Some(self.distance[node as usize]).filter(|&distance| distance != FAR)
    }

    /// All that were reached, nearest first.
    pub fn reached(&self) -> &[u32] {
        &self.order
    }

    /// The sum of the distances of all that were reached.
    pub fn sum(&self) -> u64 {
        self.order.iter().map(|&node| u64::from(self.distance[node as usize])).sum()
    }
}
