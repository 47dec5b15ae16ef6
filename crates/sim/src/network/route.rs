//! Shortest paths, one source at a time, kept until the network changes.
//!
//! Where everybody is up and nothing is cut the paths are a property of the placement alone: those are kept
//! apart and shared by every copy of the network, and a row of them stays true for as long as nobody who
//! is down stands in the middle of one of its paths. A crash thus costs only the rows it has broken.
//!
//! Lengths are added up in one order only, from the source outwards, so that rows do not depend on how the
//! next node is found; where the shortest link allows it, that is by buckets instead of a heap.

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    rc::Rc,
};

/// The links of a placement in one array, with their lengths.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// Where the links of each node begin in the other two, and one more for the end.
    first: Vec<u32>,
    to: Vec<u32>,
    length: Vec<f64>,
    shortest: f64,
    longest: f64,
}

impl Links {
    /// Links to each of `neighbours`, as long as `length` says.
    pub(crate) fn new(neighbours: &[Vec<u32>], length: impl Fn(u32, u32) -> f64) -> Self {
        let mut links = Self {
            first: vec![0],
            to: Vec::new(),
            length: Vec::new(),
            shortest: f64::INFINITY,
            longest: 0.0,
        };
        for (from, near) in (0..).zip(neighbours) {
            for &to in near {
                let length = length(from, to);
                links.to.push(to);
                links.length.push(length);
                links.shortest = links.shortest.min(length);
                links.longest = links.longest.max(length);
            }
            links.first.push(links.to.len() as u32);
        }
        links
    }

    /// How many nodes there are.
    fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    #[inline]
    fn of(&self, from: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let range = self.first[from as usize] as usize..self.first[from as usize + 1] as usize;
        self.to[range.clone()].iter().copied().zip(self.length[range].iter().copied())
    }
}

/// Paths from every source that has been asked about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    /// As things are.
    rows: Vec<Option<Rc<Row>>>,
    /// With everybody up and nothing cut.
    whole: Rc<RefCell<Vec<Option<Rc<Row>>>>>,
    /// For those that have sent to all, in which order those are reached.
    orders: BTreeMap<u32, Rc<[u32]>>,
}

/// The shortest-path tree of one source: for each node the one before it on the path from the source.
///
/// There are as many of these as nodes, so that two bytes a node count where they suffice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Row {
    /// [`UNREACHABLE_NARROW`] if there is no path.
    Narrow(Box<[u16]>),
    /// [`UNREACHABLE`] if there is no path.
    Wide(Box<[u32]>),
}

impl Routes {
    /// Forgets the present paths: who is up, or what is cut, has changed.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.orders.clear();
    }

    /// Forgets all paths: the links are no longer the same.
    pub(crate) fn clear_whole(&mut self) {
        self.clear();
        self.whole = Rc::default();
    }

    /// Forgets the paths that `relay` stands in the middle of.
    pub(crate) fn clear_through(&mut self, relay: u32) {
        self.orders.clear();
        for (source, row) in (0..).zip(&mut self.rows) {
            // Whoever is down still sends for itself.
            if row
                .as_ref()
                .is_some_and(|row| source != relay && row.any_parent(|node| node == relay))
            {
                *row = None;
            }
        }
    }

    /// The tree of `source`, if it is known.
    #[inline]
    pub(crate) fn get(&self, source: u32) -> Option<&Rc<Row>> {
        self.rows.get(source as usize)?.as_ref()
    }

    /// Whom `source` reaches, every node after the one before it on its path, if that is known.
    pub(crate) fn order(&self, source: u32) -> Option<Rc<[u32]>> {
        self.orders.get(&source).cloned()
    }

    /// Keeps that order.
    pub(crate) fn keep_order(&mut self, source: u32, order: &Rc<[u32]>) {
        self.orders.insert(source, Rc::clone(order));
    }

    /// Keeps the tree of one of `nodes` sources.
    pub(crate) fn keep(&mut self, source: u32, nodes: usize, row: Rc<Row>) {
        if self.rows.is_empty() {
            self.rows.resize(nodes, None);
        }
        self.rows[source as usize] = Some(row);
    }

    /// The tree of `source` with everybody up and nothing cut, if it is known.
    pub(crate) fn whole(&self, source: u32) -> Option<Rc<Row>> {
        self.whole.borrow().get(source as usize)?.clone()
    }

    /// Keeps such a tree of one of `nodes` sources, here and in every copy.
    pub(crate) fn keep_whole(&self, source: u32, nodes: usize, row: &Rc<Row>) {
        let mut whole = self.whole.borrow_mut();
        if whole.is_empty() {
            whole.resize(nodes, None);
        }
        whole[source as usize] = Some(Rc::clone(row));
    }
}

impl Row {
    fn new(parents: &[u32]) -> Self {
        if parents.len() > usize::from(UNREACHABLE_NARROW) {
            return Self::Wide(parents.into());
        }
        let narrow = |&parent: &u32| u16::try_from(parent).unwrap_or(UNREACHABLE_NARROW);
        Self::Narrow(parents.iter().map(narrow).collect())
    }

    /// The node before `node` on the path from the source, which is its own.
    #[inline]
    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        match self {
            Self::Narrow(parents) => {
                let parent = parents[node as usize];
                (parent != UNREACHABLE_NARROW).then_some(u32::from(parent))
            }
            Self::Wide(parents) => {
                let parent = parents[node as usize];
                (parent != UNREACHABLE).then_some(parent)
            }
        }
    }

    /// Whether `is` holds of any node that passes messages on, or of the source.
    pub(crate) fn any_parent(&self, is: impl Fn(u32) -> bool) -> bool {
        match self {
            Self::Narrow(parents) => {
                parents.iter().any(|&parent| parent != UNREACHABLE_NARROW && is(u32::from(parent)))
            }
            Self::Wide(parents) => {
                parents.iter().any(|&parent| parent != UNREACHABLE && is(parent))
            }
        }
    }

    /// Writes the path from the source to `to` into `path`, both ends included. False if there is none.
    #[inline]
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
}

/// Finds paths, one source after the other, in memory it keeps.
///
/// `works(a, b)` says whether a link is open; only nodes for which `relays` holds pass messages on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    parent: Vec<u32>,
    /// How far each node is; infinite if there is no path.
    length: Vec<f64>,
    done: Vec<bool>,
    order: Vec<u32>,
    frontier: BinaryHeap<Reverse<(Length, u32)>>,
    buckets: Vec<Vec<u32>>,
}

impl Search {
    /// Paths of fewest links. Among equals, the one whose last relay has the smaller number.
    pub(crate) fn fewest(
        &mut self,
        links: &Links,
        source: u32,
        relays: impl Fn(u32) -> bool,
        works: impl Fn(u32, u32) -> bool,
    ) -> Row {
        self.begin(links, source);
        self.order.push(source);
        let mut next = 0;
        while let Some(&at) = self.order.get(next) {
            next += 1;
            if at != source && !relays(at) {
                continue;
            }
            let here = self.length[at as usize] + 1.0;
            for (to, _) in links.of(at) {
                let slot = to as usize;
                if here > self.length[slot] || !works(at, to) {
                    continue;
                }
                if self.length[slot] == f64::INFINITY {
                    self.length[slot] = here;
                    self.parent[slot] = at;
                    self.order.push(to);
                } else if self.length[slot] == here && at < self.parent[slot] {
                    self.parent[slot] = at;
                }
            }
        }
        Row::new(&self.parent)
    }

    /// Paths of least total length. Among equals, the one whose last relay has the smaller number.
    pub(crate) fn shortest(
        &mut self,
        links: &Links,
        source: u32,
        relays: impl Fn(u32) -> bool,
        works: impl Fn(u32, u32) -> bool,
    ) -> Row {
        // A hair narrower than the shortest link, so that rounding cannot put both its ends into one.
        let width = links.shortest * 0.999;
        if width > 0.0 && links.longest / width < MOST_BUCKETS {
            self.by_buckets(links, source, width, relays, works);
        } else {
            self.by_heap(links, source, relays, works);
        }
        let reached = |&node: &u32| self.length[node as usize] < f64::INFINITY;
        self.order.extend((0..links.nodes() as u32).filter(reached));
        Row::new(&self.parent)
    }

    /// How far each node was from the source of the last search; infinite without a path.
    pub(crate) fn lengths(&self) -> &[f64] {
        &self.length
    }

    /// Whom the source of the last search reaches, the nearest first.
    pub(crate) fn order(&mut self) -> &[u32] {
        let length = |&node: &u32| Length(self.length[node as usize]);
        // In the order of discovery among equals, and by number where that is none.
        self.order.sort_by_key(length);
        &self.order
    }

    fn begin(&mut self, links: &Links, source: u32) {
        let nodes = links.nodes();
        self.order.clear();
        self.parent.clear();
        self.parent.resize(nodes, UNREACHABLE);
        self.length.clear();
        self.length.resize(nodes, f64::INFINITY);
        self.done.clear();
        self.done.resize(nodes, false);
        self.length[source as usize] = 0.0;
        self.parent[source as usize] = source;
    }

    /// Buckets narrower than any link: whatever a node could still be reached through lies in an earlier
    /// one, so that those of one bucket can be taken in any order.
    fn by_buckets(
        &mut self,
        links: &Links,
        source: u32,
        width: f64,
        relays: impl Fn(u32) -> bool,
        works: impl Fn(u32, u32) -> bool,
    ) {
        self.begin(links, source);
        let count = (links.longest / width) as usize + 2;
        let per_unit = 1.0 / width;
        self.buckets.resize(self.buckets.len().max(count), Vec::new());
        self.buckets[0].push(source);
        let (mut waiting, mut bucket) = (1, 0);
        while waiting > 0 {
            let mut nodes = std::mem::take(&mut self.buckets[bucket % count]);
            waiting -= nodes.len();
            for at in nodes.drain(..) {
                let so_far = self.length[at as usize];
                let late = std::mem::replace(&mut self.done[at as usize], true);
                if late || (at != source && !relays(at)) {
                    continue;
                }
                for (next, step) in links.of(at) {
                    let via_here = so_far + step;
                    let slot = next as usize;
                    let known = self.length[slot];
                    if via_here > known || !works(at, next) {
                        continue;
                    }
                    if via_here < known {
                        self.length[slot] = via_here;
                        self.parent[slot] = at;
                        // Nearer, but in the same bucket: there it is already.
                        let place = (via_here * per_unit) as usize;
                        if known == f64::INFINITY || (known * per_unit) as usize != place {
                            self.buckets[place % count].push(next);
                            waiting += 1;
                        }
                    } else if at < self.parent[slot] {
                        self.parent[slot] = at;
                    }
                }
            }
            self.buckets[bucket % count] = nodes;
            bucket += 1;
        }
    }

    /// For links of any length, even none.
    fn by_heap(
        &mut self,
        links: &Links,
        source: u32,
        relays: impl Fn(u32) -> bool,
        works: impl Fn(u32, u32) -> bool,
    ) {
        self.begin(links, source);
        self.frontier.push(Reverse((Length(0.0), source)));
        while let Some(Reverse((Length(so_far), at))) = self.frontier.pop() {
            let late = std::mem::replace(&mut self.done[at as usize], true);
            if late || (at != source && !relays(at)) {
                continue;
            }
            for (next, step) in links.of(at) {
                let via_here = so_far + step;
                let slot = next as usize;
                let better = via_here < self.length[slot]
                    || (via_here == self.length[slot]
                        && !self.done[slot]
                        && at < self.parent[slot]);
                if better && works(at, next) {
                    self.length[slot] = via_here;
                    self.parent[slot] = at;
                    self.frontier.push(Reverse((Length(via_here), next)));
                }
            }
        }
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
const UNREACHABLE_NARROW: u16 = u16::MAX;
/// Above this, walking over empty buckets would take longer than a heap. Arbitrary.
const MOST_BUCKETS: f64 = 1e4;

#[cfg(test)]
mod tests {
    use bellwether_proto::Seed;

    use super::{super::placement::distance, *};

    const EDGES: [(u32, u32, f64); 5] =
        [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 3.0), (2, 3, 1.0), (0, 4, 9.0)];

    fn links(length: impl Fn(f64) -> f64) -> Links {
        let mut neighbours = vec![Vec::new(); 6];
        for (a, b, _) in EDGES {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        Links::new(&neighbours, |a, b| {
            let is = |&&(x, y, _): &&(u32, u32, f64)| (x, y) == (a, b) || (x, y) == (b, a);
            length(EDGES.iter().find(is).unwrap().2)
        })
    }

    fn shortest(source: u32, dead: Option<u32>) -> Row {
        let relays = |node| Some(node) != dead;
        Search::default().shortest(&links(|length| length), source, relays, |_, _| true)
    }

    fn fewest(source: u32, dead: Option<u32>) -> Row {
        let relays = |node| Some(node) != dead;
        Search::default().fewest(&links(|length| length), source, relays, |_, _| true)
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
            let equal = Search::default().shortest(&links(|_| 1.0), source, |_| true, |_, _| true);
            assert_eq!(equal, fewest(source, None));
        }
    }

    /// The buckets are only a faster heap: on fields with near and far neighbours, dead relays and closed
    /// links, and on a grid, where most paths have equals.
    #[test]
    fn buckets_find_what_a_heap_finds() {
        for (seed, grid) in (0..20).map(|seed| (seed, seed % 2 == 0)) {
            let mut rng = Seed::new(seed).rng();
            let scatter = |i: u32| match grid {
                true => (f64::from(i % 12), f64::from(i / 12)),
                false => (12.0 * rng.unit(), 12.0 * rng.unit()),
            };
            let places: Vec<(f64, f64)> = (0..144).map(scatter).collect();
            let length = |a: u32, b: u32| distance(places[a as usize], places[b as usize]);
            let near = |a| (0..144).filter(move |&b| a != b && length(a, b) <= 2.0).collect();
            let links = Links::new(&(0..144).map(near).collect::<Vec<_>>(), length);
            let relays = |node: u32| node % 7 != 3;
            let works = |a: u32, b: u32| !(a + 2 * b).is_multiple_of(11);
            let (mut heap, mut buckets) = (Search::default(), Search::default());
            for source in 0..144 {
                heap.by_heap(&links, source, relays, works);
                buckets.by_buckets(&links, source, links.shortest * 0.999, relays, works);
                assert_eq!(buckets.parent, heap.parent);
                assert_eq!(buckets.length, heap.length);
            }
        }
    }
}
