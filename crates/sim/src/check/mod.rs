//! What is searched and judged by the thousand: the conformance suite, the model checker, links that flip.

pub mod conformance;
pub mod explore;
pub mod link_flips;
