//! Shortest paths, one source at a time, kept until the network changes.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Paths from every source that has been asked about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    rows: Vec<Option<Row>>,
}

/// The shortest-path tree of one source.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The node before this one on the path from the source; [`UNREACHABLE`] if there is no path.
    parent: Vec<u32>,
    /// Reachable nodes, every node after its parent; the source first.
    order: Vec<u32>,
}

impl Routes {
    /// Forgets all paths: the network has changed.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// The tree of `source`, if it is known.
    pub(crate) fn get(&self, source: u32) -> Option<&Row> {
        self.rows.get(source as usize)?.as_ref()
    }

    /// Keeps the tree of one of `nodes` sources.
    pub(crate) fn keep(&mut self, source: u32, nodes: usize, row: Row) {
        if self.rows.is_empty() {
            self.rows.resize(nodes, None);
        }
        self.rows[source as usize] = Some(row);
    }
}

impl Row {
    /// The node before `node` on the path from the source.
    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        let parent = self.parent[node as usize];
        (parent != UNREACHABLE).then_some(parent)
    }

    /// Reachable nodes, every node after its parent; the source first.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Writes the path from the source to `to` into `path`, both ends included. False if there is none.
    pub(crate) fn path(&self, source: u32, to: u32, path: &mut Vec<u32>) -> bool {
        path.clear();
        let mut at = to;
        while at != source {
            path.push(at);
            match self.parent(at) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        path.push(source);
        path.reverse();
        true
    }

    /// Paths of fewest links. Among equals, the one whose last relay has the smaller number.
    ///
    /// `links(a, visit)` calls `visit(b)` for every link from `a` that works; only nodes for which `relays`
    /// holds pass messages on.
    pub(crate) fn fewest(
        source: u32,
        nodes: usize,
        relays: impl Fn(u32) -> bool,
        mut links: impl FnMut(u32, &mut dyn FnMut(u32)),
    ) -> Self {
        let mut parent = vec![UNREACHABLE; nodes];
        let mut hops = vec![u32::MAX; nodes];
        let mut order = vec![source];
        parent[source as usize] = source;
        hops[source as usize] = 0;
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            if at != source && !relays(at) {
                continue;
            }
            let here = hops[at as usize] + 1;
            links(at, &mut |to| {
                let slot = to as usize;
                if hops[slot] == u32::MAX {
                    hops[slot] = here;
                    parent[slot] = at;
                    order.push(to);
                } else if hops[slot] == here && at < parent[slot] {
                    parent[slot] = at;
                }
            });
        }
        Self { parent, order }
    }

    /// Paths of least total length. Among equals, the one whose last relay has the smaller number.
    ///
    /// `links(a, visit)` calls `visit(b, length)` for every link from `a` that works; only nodes for
    /// which `relays` holds pass messages on.
    pub(crate) fn shortest(
        source: u32,
        nodes: usize,
        relays: impl Fn(u32) -> bool,
        mut links: impl FnMut(u32, &mut dyn FnMut(u32, f64)),
    ) -> Self {
        let mut parent = vec![UNREACHABLE; nodes];
        let mut length = vec![f64::INFINITY; nodes];
        let mut done = vec![false; nodes];
        let mut order = Vec::new();
        let mut frontier = BinaryHeap::from([Reverse((Length(0.0), source))]);
        length[source as usize] = 0.0;
        parent[source as usize] = source;
        while let Some(Reverse((Length(so_far), at))) = frontier.pop() {
            if std::mem::replace(&mut done[at as usize], true) {
                continue;
            }
            order.push(at);
            if at != source && !relays(at) {
                continue;
            }
            links(at, &mut |next, step| {
                let via_here = so_far + step;
                let slot = next as usize;
                let better = via_here < length[slot]
                    || (via_here == length[slot] && !done[slot] && at < parent[slot]);
                if better {
                    length[slot] = via_here;
                    parent[slot] = at;
                    frontier.push(Reverse((Length(via_here), next)));
                }
            });
        }
        Self { parent, order }
    }
}

/// A path length: finite and never negative, hence totally ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Length(f64);

impl Eq for Length {}

impl Ord for Length {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Length {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

const UNREACHABLE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [(u32, u32, f64); 5] =
        [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 3.0), (2, 3, 1.0), (0, 4, 9.0)];

    fn neighbours(at: u32) -> impl Iterator<Item = (u32, f64)> {
        EDGES.into_iter().filter_map(move |(a, b, length)| match at {
            _ if a == at => Some((b, length)),
            _ if b == at => Some((a, length)),
            _ => None,
        })
    }

    fn shortest(source: u32, dead: Option<u32>) -> Row {
        Row::shortest(
            source,
            6,
            |node| Some(node) != dead,
            |at, visit| {
                neighbours(at).for_each(|(to, length)| visit(to, length));
            },
        )
    }

    fn fewest(source: u32, dead: Option<u32>) -> Row {
        Row::fewest(
            source,
            6,
            |node| Some(node) != dead,
            |at, visit| {
                neighbours(at).for_each(|(to, _)| visit(to));
            },
        )
    }

    fn path(row: &Row, source: u32, to: u32) -> Option<Vec<u32>> {
        let mut path = Vec::new();
        row.path(source, to, &mut path).then_some(path)
    }

    #[test]
    fn hops_and_lengths_choose_different_paths() {
        assert_eq!(path(&fewest(0, None), 0, 3), Some(vec![0, 2, 3]));
        assert_eq!(path(&shortest(0, None), 0, 3), Some(vec![0, 1, 2, 3]));
        for row in [fewest(0, None), shortest(0, None)] {
            assert_eq!(path(&row, 0, 5), None);
            assert_eq!(path(&row, 0, 0), Some(vec![0]));
        }
    }

    #[test]
    fn the_dead_relay_nothing_but_can_be_addressed() {
        for row in [fewest(0, Some(2)), shortest(0, Some(2))] {
            assert!(row.parent(2).is_some());
            assert_eq!(path(&row, 0, 3), None);
        }
    }

    /// Both rules break ties alike, so that equal lengths and hops give equal paths.
    #[test]
    fn where_all_links_are_equal_both_agree() {
        for source in 0..6 {
            let equal = Row::shortest(
                source,
                6,
                |_| true,
                |at, visit| {
                    neighbours(at).for_each(|(to, _)| visit(to, 1.0));
                },
            );
            let hops = fewest(source, None);
            assert_eq!(
                (0..6).map(|to| equal.parent(to)).collect::<Vec<_>>(),
                (0..6).map(|to| hops.parent(to)).collect::<Vec<_>>()
            );
        }
    }
}
