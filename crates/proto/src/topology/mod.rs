//! Who hears whom, and who is in the middle of it.
//!
//! | module | holds |
//! |---|---|
//! | [`graph`] | an undirected graph of numbered nodes, and searches in it |
//! | [`closeness`] | sums of distances: of all nodes at once, after a change, within a few hops |
//! | [`betweenness`] | how many shortest paths a node lies on, exactly |
//! | [`criterion`] | by which of these, and how, the best of a component is found |
//! | [`detector`], [`map`] | who is in range; what a node knows of who hears whom, and who leads by it |
//! | [`memo`] | leaders that several nodes of one process need to find only once |
//! | [`tree`], [`walks`] | centrality in a spanning tree; by walks, which is eigenvector centrality |
//!
//! All scores are integers or exact fractions, so that two nodes with equal maps never name different leaders because
//! of a rounding.

pub mod betweenness;
pub mod closeness;
pub mod criterion;
pub mod detector;
pub mod graph;
pub mod map;
pub mod memo;
pub mod tree;
pub mod walks;

pub use self::{closeness::Closeness, graph::Graph};

#[cfg(test)]
mod tests;
