//! Betweenness: the share of shortest paths a node lies on, summed over all pairs of others.
//!
//! Shares are exact fractions, kept by denominator: a sum in floating point would break ties by the order of addition.
//! They are compared as integers and 64 bits behind the point; only where those are too close to tell are all
//! denominators multiplied out.

use alloc::{collections::BTreeMap, vec::Vec};
use core::cmp::Ordering;

use super::graph::Graph;

/// A sum of shares. The greater, the more central.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    whole: u64,
    /// By denominator, each less than one.
    parts: BTreeMap<u128, u128>,
    /// All of it, see [`settled`](Self::settled).
    rounded: u128,
}

/// The betweenness of all nodes; `None` if there are more shortest paths between two nodes than 128 bits can count.
///
/// ```
/// use bellwether_proto::topology::{Graph, betweenness};
///
/// let path = Graph::with_links(5, [(0, 1), (1, 2), (2, 3), (3, 4)]);
/// let shares = betweenness::shares(&path).unwrap();
/// assert_eq!(shares.iter().map(|share| share.to_f64()).collect::<Vec<_>>(), [0.0, 3.0, 4.0, 3.0, 0.0]);
/// ```
pub fn shares(graph: &Graph) -> Option<Vec<Shares>> {
    let mut shares = alloc::vec![Shares::default(); graph.nodes()];
    let mut paths = Paths::default();
    for from in 0..graph.nodes() as u32 {
        paths.search(graph, from)?;
        for at in 1..paths.order.len() {
            let to = paths.order[at];
            // Every pair once.
            if to > from {
                paths.share_out(graph, to, &mut shares);
            }
        }
    }
    Some(shares.into_iter().map(Shares::settled).collect())
}

impl Shares {
    fn add(&mut self, numerator: u128, denominator: u128) {
        if numerator == denominator {
            self.whole += 1;
            return;
        }
        let part = self.parts.entry(denominator).or_default();
        // Both are less than the denominator: what is missing from it tells of an overflow beforehand.
        let missing = denominator - *part;
        if numerator >= missing {
            self.whole += 1;
            *part = numerator - missing;
        } else {
            *part += numerator;
        }
        if *part == 0 {
            self.parts.remove(&denominator);
        }
    }

    /// In lowest terms, once for each denominator that occurred and not with every addition; and rounded down, with every
    /// addition, to 64 bits behind the point: at most a few units for each of the parts too little there.
    fn settled(self) -> Self {
        let mut settled = Self { whole: self.whole, ..Self::default() };
        for (denominator, numerator) in self.parts {
            let divisor = common_divisor(numerator, denominator);
            settled.add(numerator / divisor, denominator / divisor);
        }
        let part = |(&denominator, &numerator): (&u128, &u128)| {
            // Without the low bits that would not fit, of both.
            let excess = 64_u32.saturating_sub(numerator.leading_zeros());
            match denominator >> excess {
                0 => 0,
                denominator => ((numerator >> excess) << 64) / denominator,
            }
        };
        settled.rounded =
            (u128::from(settled.whole) << 64) + settled.parts.iter().map(part).sum::<u128>();
        settled
    }

    /// Nearest number, for people to read.
    pub fn to_f64(&self) -> f64 {
        let part =
            |(&denominator, &numerator): (&u128, &u128)| numerator as f64 / denominator as f64;
        self.whole as f64 + self.parts.iter().map(part).sum::<f64>()
    }

    /// To the nearest thousandth, or the one beside it where two are as near; the same wherever it is reckoned.
    pub fn thousandths(&self) -> u64 {
        ((self.rounded * 1_000 + (1 << 63)) >> 64) as u64
    }
}

impl Ord for Shares {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.whole == other.whole && self.parts == other.parts {
            return Ordering::Equal;
        }
        let (ours, theirs) = (self.rounded, other.rounded);
        // A fraction whose low bits were dropped is off by less than 2^-60.
        let doubt = (self.parts.len() + other.parts.len()) as u128 * 32;
        if ours.abs_diff(theirs) > doubt {
            return ours.cmp(&theirs);
        }
        let denominators: Vec<u128> =
            self.parts.keys().chain(other.parts.keys()).copied().collect();
        self.multiplied(&denominators).cmp(&other.multiplied(&denominators))
    }
}

impl PartialOrd for Shares {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Shares {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Shares {}

impl Shares {
    /// Times all of these.
    fn multiplied(&self, factors: &[u128]) -> Big {
        let mut product = Big::from(u128::from(self.whole));
        factors.iter().for_each(|&factor| product.multiply(factor));
        for (&denominator, &numerator) in &self.parts {
            let mut part = Big::from(numerator);
            let mut left_out = false;
            for &factor in factors {
                if factor == denominator && !left_out {
                    left_out = true;
                } else {
                    part.multiply(factor);
                }
            }
            product.add(&part);
        }
        product
    }
}

/// An integer of any size, lowest digits first, the last not zero.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Big(Vec<u32>);

impl From<u128> for Big {
    fn from(value: u128) -> Self {
        let digits = (0..4).map(|at| (value >> (32 * at)) as u32).collect();
        let mut big = Self(digits);
        big.trim();
        big
    }
}

impl Big {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn multiply(&mut self, factor: u128) {
        let mut product = alloc::vec![0_u32; self.0.len() + 4];
        for (i, &ours) in self.0.iter().enumerate() {
            let mut carry = 0;
            for j in 0..4 {
                let digit = u64::from((factor >> (32 * j)) as u32);
                let sum = u64::from(product[i + j]) + u64::from(ours) * digit + carry;
                (product[i + j], carry) = (sum as u32, sum >> 32);
            }
            product[i + 4] = carry as u32;
        }
        self.0 = product;
        self.trim();
    }

    fn add(&mut self, other: &Self) {
        let mut carry = 0;
        self.0.resize(self.0.len().max(other.0.len()) + 1, 0);
        for (at, ours) in self.0.iter_mut().enumerate() {
            let sum =
                u64::from(*ours) + other.0.get(at).map_or(0, |&digit| u64::from(digit)) + carry;
            (*ours, carry) = (sum as u32, sum >> 32);
        }
        self.trim();
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The shortest paths from one node.
#[derive(Debug, Default)]
struct Paths {
    distance: Vec<u32>,
    /// How many lead to each node.
    many: Vec<u128>,
    order: Vec<u32>,
    /// How many lead from each node to the one looked at; zero for all when none is.
    onward: Vec<u128>,
    between: Vec<u32>,
}

impl Paths {
    fn search(&mut self, graph: &Graph, from: u32) -> Option<()> {
        self.distance.clear();
        self.distance.resize(graph.nodes(), u32::MAX);
        self.many.clear();
        self.many.resize(graph.nodes(), 0);
        self.onward.resize(graph.nodes(), 0);
        self.order.clear();
        self.order.push(from);
        self.distance[from as usize] = 0;
        self.many[from as usize] = 1;
        let mut at = 0;
        while let Some(&node) = self.order.get(at) {
            at += 1;
            let (next, many) = (self.distance[node as usize] + 1, self.many[node as usize]);
            for &other in graph.neighbours(node) {
                let other_ = other as usize;
                if self.distance[other_] == u32::MAX {
                    self.distance[other_] = next;
                    self.order.push(other);
                }
                if self.distance[other_] == next {
                    self.many[other_] = self.many[other_].checked_add(many)?;
                }
            }
        }
        Some(())
    }

    /// Gives all nodes between the one searched from and `to` their share.
    fn share_out(&mut self, graph: &Graph, to: u32, shares: &mut [Shares]) {
        let all = self.many[to as usize];
        self.between.clear();
        self.between.push(to);
        self.onward[to as usize] = 1;
        let mut at = 0;
        while let Some(&node) = self.between.get(at) {
            at += 1;
            let (distance, onward) = (self.distance[node as usize], self.onward[node as usize]);
            if at > 1 && distance > 0 {
                shares[node as usize].add(self.many[node as usize] * onward, all);
            }
            for &other in graph.neighbours(node) {
                if self.distance[other as usize] + 1 == distance {
                    if self.onward[other as usize] == 0 {
                        self.between.push(other);
                    }
                    self.onward[other as usize] += onward;
                }
            }
        }
        self.between.iter().for_each(|&node| self.onward[node as usize] = 0);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn of(parts: &[(u128, u128)]) -> Shares {
        let mut shares = Shares::default();
        parts.iter().for_each(|&(numerator, denominator)| shares.add(numerator, denominator));
        shares.settled()
    }

    #[test]
    fn sums_of_different_fractions_are_compared_exactly() {
        assert_eq!(of(&[(1, 3), (1, 6)]), of(&[(1, 2)]));
        assert_eq!(of(&[(1, 3), (2, 3)]), of(&[(1, 1)]));
        assert_eq!(of(&[(5, 6), (5, 6), (1, 3)]), of(&[(2, 1)]));
        let tiny = 1 << 100;
        assert!(of(&[(1, 3), (1, 6), (1, tiny)]) > of(&[(1, 2)]));
        assert!(of(&[(1, 3), (1, 6)]) < of(&[(1, 2), (1, tiny)]));
        assert!(of(&[(tiny - 1, tiny)]) < of(&[(1, 1)]));
        assert!(of(&[(2, 7)]) < of(&[(3, 7)]));
    }

    /// Nodes that look alike score alike, whatever their numbers: a grid has such paths that no float could count them.
    #[test]
    fn a_square_grid_is_as_symmetric_as_it_looks() {
        let side = 9;
        let right = (0..side * side).filter(|node| node % side + 1 < side);
        let down = 0..side * (side - 1);
        let links = right.map(|node| (node, node + 1)).chain(down.map(|node| (node, node + side)));
        let shares = shares(&Graph::with_links(81, links)).unwrap();
        let at = |row: u32, column: u32| &shares[(row * side + column) as usize];
        for row in 0..side {
            for column in 0..side {
                let (up, left) = (side - 1 - row, side - 1 - column);
                for other in [(column, row), (up, column), (row, left), (up, left)] {
                    assert_eq!(at(row, column), at(other.0, other.1));
                }
            }
        }
        let best: Vec<usize> =
            (0..81).filter(|&node| shares.iter().all(|other| other <= &shares[node])).collect();
        assert_eq!(best, [40]);
    }

    #[test]
    fn more_paths_than_can_be_counted_are_not_counted() {
        // Two nodes that both link to the next two, 130 times: 2^129 paths.
        let links = (0..130_u32).flat_map(|step| {
            let (here, next) = (2 * step, 2 * step + 2);
            [(here, next), (here, next + 1), (here + 1, next), (here + 1, next + 1)]
        });
        assert!(shares(&Graph::with_links(262, links)).is_none());
    }
}
