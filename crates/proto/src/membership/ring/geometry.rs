//! Ring geometry (R1): who is next to whom, and who owns a point.

use alloc::vec::Vec;

use crate::{id::NodeId, rng::mix};

/// Where a node stands on the ring. A function of its identity, so that no message carries it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Points {
    /// By a hash of the identity: evenly spread, whatever identities are.
    #[default]
    Hash,
    /// The identity itself: the ring is in the order of identities.
    Identity,
}

/// The points of a ring: the integers modulo `2^bits`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Space {
    points: Points,
    mask: u64,
}

impl Space {
    /// A ring of `2^bits` points, at most 64 bits.
    pub const fn new(points: Points, bits: u32) -> Self {
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        Self { points, mask }
    }

    /// Where a node stands.
    pub fn point(&self, id: NodeId) -> u64 {
        self.mask
            & match self.points {
                Points::Hash => mix(id.get()),
                Points::Identity => id.get(),
            }
    }

    /// How far it is clockwise from one point to another.
    pub const fn clockwise(&self, from: u64, to: u64) -> u64 {
        to.wrapping_sub(from) & self.mask
    }

    /// A key as a point.
    pub const fn wrap(&self, key: u64) -> u64 {
        key & self.mask
    }

    /// Puts nodes in the order of the ring. Two nodes on one point are ordered by identity.
    pub fn sort(&self, nodes: &mut [NodeId]) {
        nodes.sort_unstable_by_key(|&id| (self.point(id), id));
    }

    /// How far a node is from a key, and whether it lies behind it: smaller is closer, and of two equally close ones
    /// the predecessor is the closer.
    pub fn closeness(&self, node: NodeId, key: u64) -> (u64, bool, NodeId) {
        let (point, key) = (self.point(node), self.wrap(key));
        let (before, behind) = (self.clockwise(point, key), self.clockwise(key, point));
        (before.min(behind), behind < before, node)
    }

    /// The node that owns a key: the closest; on a tie the predecessor.
    pub fn owner(&self, nodes: impl IntoIterator<Item = NodeId>, key: u64) -> Option<NodeId> {
        nodes.into_iter().min_by_key(|&node| self.closeness(node, key))
    }
}

/// The `k` nearest on either side of position `at` in a ring of `len`, nearest first, each once, `at` not among
/// them.
pub fn around(len: usize, at: usize, k: usize) -> Vec<usize> {
    let mut found = Vec::with_capacity((2 * k).min(len));
    for step in 1..=k.min(len.saturating_sub(1)) {
        for other in [(at + step) % len, (at + len - step % len) % len] {
            if other != at && !found.contains(&other) {
                found.push(other);
            }
        }
    }
    found
}

/// The neighbourhood of a point where nobody of `ring` need stand, `ring` being in order: `N` of a joiner.
pub fn neighbourhood(space: &Space, ring: &[NodeId], me: NodeId, k: usize) -> Vec<NodeId> {
    let mut with: Vec<NodeId> = ring.iter().copied().filter(|&id| id != me).collect();
    with.push(me);
    space.sort(&mut with);
    let at = with.iter().position(|&id| id == me).expect("just put there");
    around(with.len(), at, k).into_iter().map(|at| with[at]).collect()
}

/// How many of `seats` are more than half of them.
pub const fn majority(seats: usize) -> usize {
    seats / 2 + 1
}
