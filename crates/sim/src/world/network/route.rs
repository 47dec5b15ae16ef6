//! Shortest paths, one source at a time, kept until the network changes.
//!
//! Where everybody is up and nothing is cut the paths are a property of the placement alone: those are kept
//! apart and shared by every copy of the network, and a row of them stays true for as long as nobody who
//! is down stands in the middle of one of its paths. A crash thus costs only the rows it has broken, and of
//! those only the paths through it.
//!
//! Lengths are added up in one order only, from the source outwards, so that rows do not depend on how the
//! next node is found; where the shortest link allows it, that is by buckets instead of a heap.

use std::{
    cell::{Cell, OnceCell, RefCell},
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    rc::Rc,
};

use super::onward::{self, Onward};

/// The links of a placement in one array, with their lengths.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// Where the links of each node begin in the other two, and one more for the end.
    first: Vec<u32>,
    to: Vec<u32>,
    length: Vec<f64>,
    /// The number of the link's beginning among the neighbours of its end; [`NOT_NEAR`] if it is none of
    /// the first few.
    back: Vec<u8>,
    shortest: f64,
    longest: f64,
    /// The most links of any node.
    most: usize,
    /// How often paths among all were asked for.
    asked: Cell<u32>,
    /// Made when that was often; `None` where there is no such thing.
    onward: OnceCell<Option<Onward>>,
}

impl Links {
    /// Links to each of `neighbours`, as long as `length` says, which is the same both ways.
    pub(crate) fn new(neighbours: &[Vec<u32>], length: impl Fn(u32, u32) -> f64) -> Self {
        let mut links = Self {
            first: vec![0],
            to: Vec::new(),
            length: Vec::new(),
            back: Vec::new(),
            shortest: f64::INFINITY,
            longest: 0.0,
            most: 0,
            asked: Cell::new(0),
            onward: OnceCell::new(),
        };
        for (from, near) in (0..).zip(neighbours) {
            for &to in near {
                let length = length(from, to);
                links.to.push(to);
                links.length.push(length);
                let back = neighbours[to as usize].binary_search(&from).ok();
                links.back.push(back.and_then(|back| u8::try_from(back).ok()).unwrap_or(NOT_NEAR));
                links.shortest = links.shortest.min(length);
                links.longest = links.longest.max(length);
            }
            links.first.push(links.to.len() as u32);
            links.most = links.most.max(near.len());
        }
        links
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// How many links there are, each way counted.
    pub(super) fn count(&self) -> usize {
        self.to.len()
    }

    /// How long the longest is.
    pub(super) fn longest(&self) -> f64 {
        self.longest
    }

    /// Where a link ends.
    #[inline]
    pub(super) fn end(&self, link: usize) -> u32 {
        self.to[link]
    }

    /// The number of a link's beginning among the neighbours of its end, if it is among the first few.
    pub(super) fn number_at_end(&self, link: usize) -> Option<u8> {
        Some(self.back[link]).filter(|&back| back != NOT_NEAR)
    }

    /// How wide the buckets of a search may be; `None` if there would be too many.
    pub(super) fn bucket_width(&self) -> Option<f64> {
        // A hair narrower than the shortest link, so that rounding cannot put both its ends into one.
        let width = self.shortest * 0.999;
        (width > 0.0 && self.longest / width < MOST_BUCKETS).then_some(width)
    }

    /// The same link the other way, if it is among the first few there.
    fn back(&self, link: usize) -> Option<usize> {
        let back = self.back[link];
        (back != NOT_NEAR).then(|| self.first[self.to[link] as usize] as usize + usize::from(back))
    }

    /// How long a link is.
    #[inline]
    pub(crate) fn length(&self, link: usize) -> f64 {
        self.length[link]
    }

    /// The links of `from`, as positions in the arrays.
    #[inline]
    pub(super) fn of(&self, from: u32) -> std::ops::Range<usize> {
        self.first[from as usize] as usize..self.first[from as usize + 1] as usize
    }
}

/// Paths from every source that has been asked about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    /// As things are.
    rows: Vec<Option<Row>>,
    /// With everybody up and nothing cut.
    whole: Rc<RefCell<Vec<Option<Row>>>>,
    /// For those that have sent to all, in which order those are reached.
    orders: BTreeMap<u32, Rc<[u32]>>,
}

/// The shortest-path tree of one source: for each node the one before it on the path from the source.
///
/// There are as many of these as nodes, and every message looks something up in one: bytes count. A clone is
/// the same row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Row {
    /// That node's number among the neighbours, and how many links the path has.
    Near(Rc<[Near]>),
    /// [`UNREACHABLE`] if there is no path. Where somebody has too many neighbours, or a path too many
    /// links, for a byte.
    Any(Rc<[u32]>),
}

/// One node of a [`Row`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Near {
    /// [`NOT_NEAR`] for the source itself, and for those to which there is no path.
    pub(super) neighbour: u8,
    /// [`NO_PATH`] for the latter.
    pub(super) hops: u8,
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

    /// Forgets the paths that `relay` stands in the middle of, on these links.
    pub(crate) fn clear_through(&mut self, relay: u32, links: &Links) {
        self.orders.clear();
        for (source, row) in (0..).zip(&mut self.rows) {
            if row.as_ref().is_some_and(|row| row.is_relay(links, source, relay)) {
                *row = None;
            }
        }
    }

    /// The tree of `source`, if it is known.
    #[inline]
    pub(crate) fn get(&self, source: u32) -> Option<&Row> {
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
    pub(crate) fn keep(&mut self, source: u32, nodes: usize, row: Row) {
        if self.rows.is_empty() {
            self.rows.resize(nodes, None);
        }
        self.rows[source as usize] = Some(row);
    }

    /// The tree of `source` with everybody up and nothing cut, if it is known.
    pub(crate) fn whole(&self, source: u32) -> Option<Row> {
        self.whole.borrow().get(source as usize)?.clone()
    }

    /// Keeps such a tree of one of `nodes` sources, here and in every copy.
    pub(crate) fn keep_whole(&self, source: u32, nodes: usize, row: &Row) {
        let mut whole = self.whole.borrow_mut();
        if whole.is_empty() {
            whole.resize(nodes, None);
        }
        whole[source as usize] = Some(row.clone());
    }
}

impl Row {
    /// The node before `node` on the path from the source, which is its own.
    #[inline]
    pub(crate) fn parent(&self, links: &Links, node: u32) -> Option<u32> {
        match self {
            Self::Near(row) => match row[node as usize] {
                Near { hops: NO_PATH, .. } => None,
                Near { neighbour: NOT_NEAR, .. } => Some(node),
                Near { neighbour, .. } => {
                    Some(links.to[links.first[node as usize] as usize + usize::from(neighbour)])
                }
            },
            Self::Any(parents) => {
                let parent = parents[node as usize];
                (parent != UNREACHABLE).then_some(parent)
            }
        }
    }

    /// How many links the path to `node` has, if there is one.
    #[inline]
    pub(crate) fn hops(&self, links: &Links, node: u32) -> Option<u32> {
        if let Self::Near(row) = self {
            let hops = row[node as usize].hops;
            return (hops != NO_PATH).then_some(u32::from(hops));
        }
        let (mut at, mut hops) = (node, 0);
        loop {
            let parent = self.parent(links, at)?;
            if parent == at {
                return Some(hops);
            }
            (at, hops) = (parent, hops + 1);
        }
    }

    /// Whether `node` passes anything on that `source`, whose row this is, has sent.
    pub(crate) fn is_relay(&self, links: &Links, source: u32, node: u32) -> bool {
        // Only to neighbours, and each of them knows.
        let behind = |&next: &u32| next != source && self.parent(links, next) == Some(node);
        node != source && links.to[links.of(node)].iter().any(behind)
    }

    /// Writes the path from the source to `to` into `path`, both ends included. False if there is none.
    pub(crate) fn path(&self, links: &Links, to: u32, path: &mut Vec<u32>) -> bool {
        path.clear();
        path.push(to);
        let mut at = to;
        loop {
            match self.parent(links, at) {
                None => return false,
                Some(parent) if parent == at => break,
                Some(parent) => at = parent,
            }
            path.push(at);
        }
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
    /// The link by which each node is reached, if it is.
    link: Vec<u32>,
    /// How many links there are on the path to each node that is done.
    hops: Vec<u32>,
    /// How far each node is; infinite if there is no path.
    length: Vec<f64>,
    done: Vec<bool>,
    order: Vec<u32>,
    frontier: BinaryHeap<Reverse<(Length, u32)>>,
    buckets: Vec<Vec<u32>>,
    /// Which buckets are not empty, one bit each: in large fields few are.
    occupied: Vec<u64>,
    /// The links of one node that lead anywhere nearer: the end, the link, and how far it is that way.
    nearer: Vec<(u32, u32, f64)>,
    among_all: onward::Search,
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
            self.finish(at);
            if at != source && !relays(at) {
                continue;
            }
            let here = self.length[at as usize] + 1.0;
            for link in links.of(at) {
                let to = links.to[link];
                let slot = to as usize;
                if here > self.length[slot] || !works(at, to) {
                    continue;
                }
                if self.length[slot] == f64::INFINITY {
                    self.length[slot] = here;
                    self.reach(to, at, link);
                    self.order.push(to);
                } else if self.length[slot] == here && at < self.parent[slot] {
                    self.reach(to, at, link);
                }
            }
        }
        self.row(links, source)
    }

    /// Paths of least total length. Among equals, the one whose last relay has the smaller number.
    pub(crate) fn shortest(
        &mut self,
        links: &Links,
        source: u32,
        relays: impl Fn(u32) -> bool,
        works: impl Fn(u32, u32) -> bool,
    ) -> Row {
        match links.bucket_width() {
            Some(width) => self.by_buckets(links, source, width, relays, works),
            None => self.by_heap(links, source, relays, works),
        }
        let reached = |&node: &u32| self.length[node as usize] < f64::INFINITY;
        self.order.extend((0..links.nodes() as u32).filter(reached));
        self.row(links, source)
    }

    /// The same with everybody up and nothing cut.
    pub(crate) fn shortest_among_all(&mut self, links: &Links, source: u32) -> Row {
        let asked = links.asked.replace(links.asked.get().saturating_add(1));
        let onward = match asked >= OFTEN {
            true => links.onward.get_or_init(|| Onward::new(links)).as_ref(),
            false => None,
        };
        let row = onward.and_then(|onward| {
            self.among_all.run(links, onward, source);
            self.among_all.row()
        });
        let Some(row) = row else {
            return self.shortest(links, source, |_| true, |_, _| true);
        };
        self.length.clear();
        self.length.extend(self.among_all.lengths());
        let reached = |&node: &u32| self.length[node as usize] < f64::INFINITY;
        self.order.clear();
        self.order.extend((0..links.nodes() as u32).filter(reached));
        Row::Near(row)
    }

    fn row(&self, links: &Links, source: u32) -> Row {
        let row: Option<Rc<[Near]>> =
            (0..links.nodes()).map(|node| self.near(links, source, node)).collect();
        row.map_or_else(|| Row::Any(self.parent.as_slice().into()), Row::Near)
    }

    /// The entry of a node, if it fits.
    fn near(&self, links: &Links, source: u32, node: usize) -> Option<Near> {
        if self.parent[node] == UNREACHABLE {
            return Some(Near { neighbour: NOT_NEAR, hops: NO_PATH });
        }
        let hops = u8::try_from(self.hops[node]).ok().filter(|&hops| hops != NO_PATH)?;
        if node == source as usize {
            return Some(Near { neighbour: NOT_NEAR, hops });
        }
        let neighbour = links.back[self.link[node] as usize];
        (neighbour != NOT_NEAR).then_some(Near { neighbour, hops })
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
        self.link.resize(nodes, 0);
        self.hops.resize(nodes, 0);
        self.length.clear();
        self.length.resize(nodes, f64::INFINITY);
        self.done.clear();
        self.done.resize(nodes, false);
        self.length[source as usize] = 0.0;
        self.parent[source as usize] = source;
    }

    /// The path to `node` leads over `link` from `parent`, so far.
    #[inline]
    fn reach(&mut self, node: u32, parent: u32, link: usize) {
        self.parent[node as usize] = parent;
        self.link[node as usize] = link as u32;
    }

    /// The path to `node` is final. False if it was before.
    #[inline]
    fn finish(&mut self, node: u32) -> bool {
        let slot = node as usize;
        let first = !std::mem::replace(&mut self.done[slot], true);
        if first {
            let parent = self.parent[slot];
            self.hops[slot] = if parent == node { 0 } else { self.hops[parent as usize] + 1 };
        }
        first
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
        let count = ((links.longest / width) as usize + 2).next_power_of_two();
        let mask = count - 1;
        let per_unit = 1.0 / width;
        self.buckets.resize(self.buckets.len().max(count), Vec::new());
        self.occupied.resize(self.buckets.len().div_ceil(64), 0);
        self.buckets[0].push(source);
        self.occupied[0] = 1;
        self.nearer.resize(links.most + 1, (0, 0, 0.0));
        let mut bucket = 0;
        while let Some(next) = next_in_turn(&self.occupied, bucket) {
            bucket = next;
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
            let mut nodes = std::mem::take(&mut self.buckets[bucket]);
            for at in nodes.drain(..) {
                if !self.finish(at) || (at != source && !relays(at)) {
                    continue;
                }
                // Few links lead anywhere nearer, and which ones cannot be foretold: they are picked out
                // without a branch.
                let so_far = self.length[at as usize];
                let (range, lengths) = (links.of(at), &self.length[..]);
                let ends = links.to[range.clone()].iter().zip(&links.length[range.clone()]);
                let mut picked = 0;
                for (link, (&next, &length)) in range.zip(ends) {
                    let via_here = so_far + length;
                    self.nearer[picked] = (next, link as u32, via_here);
                    picked += usize::from(via_here <= lengths[next as usize]);
                }
                for &(next, link, via_here) in &self.nearer[..picked] {
                    let slot = next as usize;
                    let known = self.length[slot];
                    if !works(at, next) || (via_here == known && at >= self.parent[slot]) {
                        continue;
                    }
                    self.length[slot] = via_here;
                    (self.parent[slot], self.link[slot]) = (at, link);
                    // Nearer, but in the same bucket: there it is already.
                    let place = (via_here * per_unit) as u32;
                    if (known * per_unit) as u32 != place {
                        let place = place as usize & mask;
                        self.buckets[place].push(next);
                        self.occupied[place / 64] |= 1 << (place % 64);
                    }
                }
            }
            self.buckets[bucket] = nodes;
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
        self.spread(links, |link| links.length[link], |at| at == source || relays(at), works);
    }

    /// On from the frontier, to all that are not done.
    fn spread(
        &mut self,
        links: &Links,
        length: impl Fn(usize) -> f64,
        relays: impl Fn(u32) -> bool,
        works: impl Fn(u32, u32) -> bool,
    ) {
        while let Some(Reverse((Length(so_far), at))) = self.frontier.pop() {
            if !self.finish(at) || !relays(at) {
                continue;
            }
            for link in links.of(at) {
                let next = links.to[link];
                let via_here = so_far + length(link);
                let slot = next as usize;
                if !self.done[slot] && self.is_better(next, via_here, at) && works(at, next) {
                    self.length[slot] = via_here;
                    self.reach(next, at, link);
                    self.frontier.push(Reverse((Length(via_here), next)));
                }
            }
        }
    }

    /// Whether a path to `node` is better than the one known, if it is this long and its last relay is `via`.
    fn is_better(&self, node: u32, length: f64, via: u32) -> bool {
        let known = self.length[node as usize];
        length < known || (length == known && via < self.parent[node as usize])
    }

    /// The row of `source` where these nodes are `down`, from that with everybody up. Whoever is reached through
    /// none of them keeps its path: the others have not become shorter. `None` if so many are that a search is
    /// faster, or if two nodes are in one place, where equals are told apart by who was found first.
    pub(crate) fn around(
        &mut self,
        down: impl Iterator<Item = u32>,
        links: &Links,
        source: u32,
        whole: &Row,
        length: impl Fn(usize) -> f64,
        relays: impl Fn(u32) -> bool,
    ) -> Option<Row> {
        let Row::Near(before) = whole else { return None };
        if links.shortest <= 0.0 {
            return None;
        }
        self.begin(links, source);
        self.done.fill(true);
        self.order.extend(down.filter(|&node| node != source));
        let roots = self.order.len();
        let mut next = 0;
        while let Some(&at) = self.order.get(next) {
            next += 1;
            for &to in &links.to[links.of(at)] {
                if to != source && self.done[to as usize] && whole.parent(links, to) == Some(at) {
                    self.done[to as usize] = false;
                    self.order.push(to);
                }
            }
        }
        let behind = self.order.split_off(roots);
        if behind.is_empty() {
            return Some(whole.clone());
        }
        if behind.len() > links.nodes() / 4 {
            return None;
        }
        let relays = |node| node == source || relays(node);
        for &node in &behind {
            for link in links.of(node) {
                let from = links.to[link];
                if !self.done[from as usize] || !relays(from) {
                    continue;
                }
                let Some(so_far) = self.measure(links, before, from, &length) else { continue };
                let via = so_far + length(link);
                if self.is_better(node, via, from) {
                    self.length[node as usize] = via;
                    self.reach(node, from, links.back(link)?);
                }
            }
            if self.parent[node as usize] != UNREACHABLE {
                self.frontier.push(Reverse((Length(self.length[node as usize]), node)));
            }
        }
        self.spread(links, &length, relays, |_, _| true);
        let mut row = Rc::<[Near]>::from(&before[..]);
        let entries = Rc::make_mut(&mut row);
        for &node in &behind {
            entries[node as usize] = self.near(links, source, node as usize)?;
        }
        Some(Row::Near(row))
    }

    /// How far `node` is on its path in `row`, if there is one, and over how many links.
    fn measure(
        &mut self,
        links: &Links,
        row: &[Near],
        node: u32,
        length: &impl Fn(usize) -> f64,
    ) -> Option<f64> {
        let slot = node as usize;
        let Near { neighbour, hops } = row[slot];
        if self.length[slot] == f64::INFINITY && hops != NO_PATH {
            let link = links.first[slot] as usize + usize::from(neighbour);
            let so_far = self.measure(links, row, links.to[link], length)?;
            self.length[slot] = so_far + length(link);
            self.hops[slot] = hops.into();
        }
        (hops != NO_PATH).then_some(self.length[slot])
    }
}

/// The first bit that is set from `from` on, and around from the last to the first.
pub(super) fn next_in_turn(bits: &[u64], from: usize) -> Option<usize> {
    let word = from / 64;
    let ahead = bits[word] >> (from % 64);
    if ahead != 0 {
        return Some(from + ahead.trailing_zeros() as usize);
    }
    let others = (word + 1..bits.len()).chain(0..=word);
    let found = { others }.find(|&word| bits[word] != 0)?;
    Some(found * 64 + bits[found].trailing_zeros() as usize)
}

/// A path length: finite and never negative, hence totally ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Length(pub(super) f64);

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
pub(super) const NOT_NEAR: u8 = u8::MAX;
pub(super) const NO_PATH: u8 = u8::MAX;
/// To find out where paths may go on from everywhere takes as long as a hundred searches of all links, which a small
/// field never wins back; and the links may soon change again.
const OFTEN: u32 = 400;
/// Above this, walking over empty buckets would take longer than a heap. Arbitrary.
const MOST_BUCKETS: f64 = 1e4;

#[cfg(test)]
mod tests;
