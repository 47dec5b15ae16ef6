//! Who a node is: an identity, and which of its lives is speaking.

use core::fmt;

/// A node's identity: 64 bits, unique in its cluster, ordered.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(u64);

impl NodeId {
    /// The identity with this number.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// Which life of a node this is. A host gives every start a larger number than any start before it,
/// from a persisted counter or from the clock, so that a restarted node is never taken for its past
/// self even if it lost everything else.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Boot(u64);

impl Boot {
    /// The boot with this number.
    pub const fn new(boot: u64) -> Self {
        Self(boot)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The life after this one.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// How often a node has contradicted a rumour of its own death within one [`Boot`]. Only the node
/// itself raises it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Incarnation(u32);

impl Incarnation {
    /// The incarnation with this number.
    pub const fn new(incarnation: u32) -> Self {
        Self(incarnation)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The next one, saturating: a node accused at the largest number can no longer refute within
    /// this boot and must restart under the next one.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One life of one node: what a seal names as its sender.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Peer {
    /// Who.
    pub id: NodeId,
    /// In which life.
    pub boot: Boot,
}

impl Peer {
    /// The life `boot` of the node `id`.
    pub const fn new(id: NodeId, boot: Boot) -> Self {
        Self { id, boot }
    }
}

/// `n3/2`: node 3 in its second life.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.id, self.boot)
    }
}
