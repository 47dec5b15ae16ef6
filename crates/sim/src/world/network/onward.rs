//! Shortest paths where everybody is up and nothing is cut: an address book of all nodes asks for those of all.
//!
//! A shortest path that has come to a node over some link goes on over few of its links: all others lead to where the
//! node before has a shorter way. Which ones those are is a matter of the surroundings alone, so it is found once, and
//! only they are tried. The paths found, and their lengths to the last bit, are those of a search over all links:
//!
//! * a link is left out only if the way around it is shorter by more than lengths can err when they are added up, so
//!   that no path that a search over all links finds, among equals too, has it;
//! * and none that it would not find has become shorter.
//!
//! In large fields each look into a list is a cache miss, so what is needed of a link is in one place.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::route::{Length, Links, NO_PATH, NOT_NEAR, Near, next_in_turn};

/// Where each path may go on.
#[derive(Clone, Debug)]
pub(super) struct Onward {
    /// The links of each node, by their place in [`Links`]; and for each of these, in the same order, those on which
    /// a path goes on.
    steps: Vec<Step>,
    /// Buckets to one unit of length.
    per_unit: f64,
    /// How many buckets there are: a power of two.
    buckets: usize,
}

/// A link at the end of a path. Sixteen bytes.
#[derive(Clone, Copy, Debug)]
struct Step {
    length: f64,
    /// Where it ends, and in the upper eight bits the number of its beginning among the neighbours there.
    to: u32,
    /// Where the steps are that follow, and in the upper four bits how many.
    next: u32,
}

/// How a node is reached.
#[derive(Clone, Copy, Debug)]
struct Reached {
    length: f64,
    /// The node before, and in the upper eight bits its number among the neighbours.
    parent: u32,
    next: u32,
}

impl Reached {
    const NEVER: Self = Self { length: f64::INFINITY, parent: NODE, next: 0 };
}

/// A search, in memory it keeps.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    reached: Vec<Reached>,
    hops: Vec<u32>,
    buckets: Vec<Vec<u32>>,
    occupied: Vec<u64>,
    /// Where paths go on has been looked at when they came, for it to be in the cache when their turn comes: what was
    /// seen there, so that nobody takes the look for idle.
    seen: u32,
}

impl Onward {
    /// `None` where a search over all links has to do: too many of them meet, or are too long for the shortest one.
    pub(super) fn new(links: &Links) -> Option<Self> {
        let width = links.bucket_width()?;
        let nodes = links.nodes();
        // Lengths err by less, whatever is added up.
        let slack = nodes as f64 * nodes as f64 * links.longest() * f64::EPSILON;
        let limit = 2.0 * links.longest() + slack;
        let mut steps: Vec<Step> = Vec::new();
        for from in 0..nodes as u32 {
            for link in links.of(from) {
                let to = links.end(link);
                let back = links.number_at_end(link).filter(|_| to < NODE)?;
                steps.push(Step {
                    length: links.length(link),
                    to: to | u32::from(back) << 24,
                    next: 0,
                });
            }
        }
        let mut around = Surroundings::new(nodes);
        for from in 0..nodes as u32 {
            around.measure(links, from, limit);
            for link in links.of(from) {
                let (first, to) = (steps.len(), links.end(link));
                for next in links.of(to).filter(|&next| links.end(next) != from) {
                    let way = links.length(link) + links.length(next);
                    if way <= around.length[links.end(next) as usize] + slack {
                        steps.push(Step { next: next as u32, ..steps[next] });
                    }
                }
                let count = steps.len() - first;
                if count >= 1 << 4 || steps.len() >= 1 << 28 {
                    return None;
                }
                steps[link].next = first as u32 | (count as u32) << 28;
            }
        }
        // What follows each step was not known of all when the step was copied.
        let own = links.count();
        let (links_of_nodes, others) = steps.split_at_mut(own);
        others.iter_mut().for_each(|step| step.next = links_of_nodes[step.next as usize].next);
        let buckets = ((links.longest() / width) as usize + 2).next_power_of_two();
        Some(Self { steps, per_unit: 1.0 / width, buckets })
    }

    /// How many are kept, of all links and all pairs of links.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.steps.len()
    }

    #[inline]
    fn following(&self, next: u32) -> &[Step] {
        let first = (next & STEPS) as usize;
        &self.steps[first..first + (next >> 28) as usize]
    }
}

impl Search {
    /// Finds the paths from `source` to all.
    pub(super) fn run(&mut self, links: &Links, onward: &Onward, source: u32) {
        self.reached.clear();
        self.reached.resize(links.nodes(), Reached::NEVER);
        self.hops.clear();
        self.hops.resize(links.nodes(), NOT_DONE);
        self.buckets.resize(self.buckets.len().max(onward.buckets), Vec::new());
        self.occupied.resize(self.buckets.len().div_ceil(64), 0);
        self.reached[source as usize] =
            Reached { length: 0.0, parent: source | u32::from(NOT_NEAR) << 24, next: 0 };
        self.hops[source as usize] = 0;
        self.go_on(onward, &onward.steps[links.of(source)], (source, 0.0));
        let mut bucket = 0;
        while let Some(next) = next_in_turn(&self.occupied, bucket) {
            bucket = next;
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
            let mut nodes = std::mem::take(&mut self.buckets[bucket]);
            for at in nodes.drain(..) {
                if self.hops[at as usize] != NOT_DONE {
                    continue;
                }
                let Reached { length, parent, next } = self.reached[at as usize];
                self.hops[at as usize] = self.hops[(parent & NODE) as usize] + 1;
                self.go_on(onward, onward.following(next), (at, length));
            }
            self.buckets[bucket] = nodes;
        }
    }

    /// A path of this length has come to `at`, and goes on over these steps.
    #[inline]
    fn go_on(&mut self, onward: &Onward, steps: &[Step], (at, so_far): (u32, f64)) {
        let (per_unit, mask) = (onward.per_unit, onward.buckets - 1);
        for &Step { length, to, next } in steps {
            let node = to & NODE;
            let reached = &mut self.reached[node as usize];
            let (length, known) = (so_far + length, reached.length);
            if length > known || (length == known && at >= reached.parent & NODE) {
                continue;
            }
            self.seen ^= onward.following(next).first().map_or(0, |step| step.to);
            *reached = Reached { length, parent: at | to & !NODE, next };
            // Nearer, but in the same bucket: there it is already.
            let place = (length * per_unit) as u32;
            if (known * per_unit) as u32 != place {
                let place = place as usize & mask;
                self.buckets[place].push(node);
                self.occupied[place / 64] |= 1 << (place % 64);
            }
        }
    }

    /// How far each node is from the source; infinite without a path.
    pub(super) fn lengths(&self) -> impl Iterator<Item = f64> + '_ {
        self.reached.iter().map(|reached| reached.length)
    }

    /// The path to each node, as rows keep it; `None` if one has too many links.
    pub(super) fn row<T: FromIterator<Near>>(&self) -> Option<T> {
        let near = |(reached, &hops): (&Reached, &u32)| {
            if hops == NOT_DONE {
                return Some(Near { neighbour: NOT_NEAR, hops: NO_PATH });
            }
            let hops = u8::try_from(hops).ok().filter(|&hops| hops != NO_PATH)?;
            Some(Near { neighbour: (reached.parent >> 24) as u8, hops })
        };
        self.reached.iter().zip(&self.hops).map(near).collect()
    }
}

/// How far nodes are from one of them, as far as they are near.
struct Surroundings {
    length: Vec<f64>,
    /// Those that are.
    near: Vec<u32>,
    frontier: BinaryHeap<Reverse<(Length, u32)>>,
}

impl Surroundings {
    fn new(nodes: usize) -> Self {
        let (near, frontier) = (Vec::new(), BinaryHeap::new());
        Self { length: vec![f64::INFINITY; nodes], near, frontier }
    }

    /// Measures up to `limit`.
    fn measure(&mut self, links: &Links, source: u32, limit: f64) {
        for node in self.near.drain(..) {
            self.length[node as usize] = f64::INFINITY;
        }
        self.length[source as usize] = 0.0;
        self.near.push(source);
        self.frontier.push(Reverse((Length(0.0), source)));
        while let Some(Reverse((Length(so_far), at))) = self.frontier.pop() {
            if so_far > self.length[at as usize] {
                continue;
            }
            for link in links.of(at) {
                let (to, length) = (links.end(link), so_far + links.length(link));
                let known = self.length[to as usize];
                if length < known && length <= limit {
                    if known == f64::INFINITY {
                        self.near.push(to);
                    }
                    self.length[to as usize] = length;
                    self.frontier.push(Reverse((Length(length), to)));
                }
            }
        }
    }
}

const NODE: u32 = (1 << 24) - 1;
const STEPS: u32 = (1 << 28) - 1;
const NOT_DONE: u32 = u32::MAX;
