//! By what the best of a component is the best, for each criterion that an election may go by.
//!
//! | criterion | the best has | exact because |
//! |---|---|---|
//! | closeness | the smallest sum of distances | sums are integers |
//! | degree | the most neighbours | so are these |
//! | betweenness | the most shortest paths through it | shares are fractions, compared as such |
//! | tree | the smallest sum of distances within one spanning tree | as closeness |
//! | eigenvector | the most long walks from it | walks are counted in integers, all rounded alike |
//!
//! Every node reckons by itself, so equal components must give equal ranks, to the last bit, whoever asks: nodes are
//! numbered in the order of their identities, nothing depends on who reckons, and there is no floating point. Where a
//! component has a node to begin with (the tree's root, its initiator), that is the one of highest identity, which would
//! also win if all were equal.

use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use super::{betweenness, closeness, graph::Graph, tree, walks};

/// By what the leader is the best of its component.
///
/// ```
/// use bellwether_proto::node::Criterion;
///
/// assert_eq!(Criterion::NAMED.len(), 5);
/// assert_eq!(Criterion::Betweenness.name(), "betweenness");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Criterion {
    /// The smallest sum of distances.
    Closeness,
    /// The most neighbours.
    Degree,
    /// The largest share of the shortest paths between others.
    Betweenness,
    /// The smallest sum of distances in a spanning tree, begun at the node of highest identity (Kim and Wu).
    Tree,
    /// The largest part in the eigenvector: the most walks.
    Eigenvector,
}

impl Criterion {
    /// All of them, by what settings call them.
    pub const NAMED: [(&'static str, Self); 5] = [
        ("closeness", Self::Closeness),
        ("degree", Self::Degree),
        ("betweenness", Self::Betweenness),
        ("tree", Self::Tree),
        ("eigenvector", Self::Eigenvector),
    ];

    /// What settings call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closeness => "closeness",
            Self::Degree => "degree",
            Self::Betweenness => "betweenness",
            Self::Tree => "tree",
            Self::Eigenvector => "eigenvector",
        }
    }

    /// Whether scores are thousandths.
    pub const fn in_thousandths(self) -> bool {
        matches!(self, Self::Betweenness | Self::Eigenvector)
    }

    /// Whether it needs links that lead both ways.
    pub const fn needs_mutual_links(self) -> bool {
        matches!(self, Self::Betweenness | Self::Tree | Self::Eigenvector)
    }
}

/// How a node stands in its component.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Merit {
    /// For people, and for margins: a sum of distances or a number of neighbours; of betweenness thousandths of a pair
    /// of nodes, of walks thousandths of those of the best. Two that differ may be rounded to the same.
    pub score: u64,
    /// How many are better. Those that are exactly equal have the same.
    pub rank: u32,
}

/// How all nodes of a connected graph stand.
///
/// Where there are more shortest paths than [`betweenness`] can count, all are equal by it.
///
/// ```
/// use bellwether_proto::topology::{Graph, criterion::{Criterion, merits}};
///
/// let path = Graph::with_links(3, [(0, 1), (1, 2)]);
/// let ranks = |criterion| merits(&path, criterion).map(|merit| merit.rank).collect::<Vec<_>>();
/// assert_eq!(ranks(Criterion::Betweenness), [1, 0, 1]);
/// ```
pub fn merits(graph: &Graph, criterion: Criterion) -> impl Iterator<Item = Merit> {
    let nodes = 0..graph.nodes() as u32;
    let degree = |node: u32| graph.neighbours(node).len() as u64;
    let (scores, ranks) = match criterion {
        Criterion::Closeness => least_first(closeness::sums(graph)),
        Criterion::Degree => most_first(nodes.map(degree).collect()),
        Criterion::Betweenness => match betweenness::shares(graph) {
            Some(shares) => {
                let ranks = ranked(&shares, |a, b| b.cmp(a));
                (shares.iter().map(betweenness::Shares::thousandths).collect(), ranks)
            }
            None => most_first(nodes.map(|_| 0).collect()),
        },
        Criterion::Tree => {
            let sums = nodes.last().map_or(Vec::new(), |root| tree::sums(graph, root));
            least_first(sums.into_iter().map(|sum| sum.unwrap_or(u64::MAX)).collect())
        }
        Criterion::Eigenvector => {
            let (walks, ranks) = most_first(walks::settled(graph));
            let most = walks.iter().copied().max().unwrap_or(1).max(1);
            let part = |walks: u64| (u128::from(walks) * 1_000 / u128::from(most)) as u64;
            (walks.into_iter().map(part).collect(), ranks)
        }
    };
    scores.into_iter().zip(ranks).map(|(score, rank)| Merit { score, rank })
}

/// For each node the best of its component, the highest number among equals.
pub fn leaders(graph: &Graph, criterion: Criterion) -> Vec<u32> {
    let component = graph.components();
    let mut leaders: Vec<u32> = (0..graph.nodes() as u32).collect();
    for first in 0..graph.nodes() as u32 {
        if component[first as usize] != first {
            continue;
        }
        let (members, part) = graph.part(&component, first);
        let best = (0..).zip(merits(&part, criterion));
        let best = best.min_by_key(|&(at, merit)| (merit.rank, Reverse::<u32>(at)));
        let leader = best.map_or(first, |(at, _)| members[at as usize]);
        members.iter().for_each(|&node| leaders[node as usize] = leader);
    }
    leaders
}

fn least_first(scores: Vec<u64>) -> (Vec<u64>, Vec<u32>) {
    let ranks = ranked(&scores, Ord::cmp);
    (scores, ranks)
}

fn most_first(scores: Vec<u64>) -> (Vec<u64>, Vec<u32>) {
    let ranks = ranked(&scores, |a, b| b.cmp(a));
    (scores, ranks)
}

/// How many come before each, in this order.
fn ranked<T>(scores: &[T], order: impl Fn(&T, &T) -> Ordering) -> Vec<u32> {
    let mut sorted: Vec<u32> = (0..scores.len() as u32).collect();
    let score = |node: u32| &scores[node as usize];
    sorted.sort_by(|&a, &b| order(score(a), score(b)));
    let mut ranks = alloc::vec![0; scores.len()];
    let mut first = 0;
    for (at, &node) in sorted.iter().enumerate() {
        if order(score(sorted[first]), score(node)) != Ordering::Equal {
            first = at;
        }
        ranks[node as usize] = first as u32;
    }
    ranks
}

#[cfg(test)]
mod tests;
