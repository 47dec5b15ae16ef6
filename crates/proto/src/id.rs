//! Who a node is: an identity, and which of its lives is speaking.

use core::{fmt, str::FromStr};

use crate::rng::mix;

/// A node's identity: 64 bits, unique in its cluster, ordered.
///
/// ```
/// use bellwether_proto::NodeId;
///
/// let kitchen = NodeId::new(3);
/// assert_eq!((kitchen.get(), kitchen.to_string()), (3, "n3".to_owned()));
/// assert!(kitchen < NodeId::new(8));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(u64);

impl NodeId {
    /// The identity with this number.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number that [`NodeId::new`] was given.
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
///
/// ```
/// use bellwether_proto::Boot;
///
/// let before_the_crash = Boot::new(7);
/// assert!(before_the_crash.next() > before_the_crash);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Boot(u64);

impl Boot {
    /// The boot with this number.
    pub const fn new(boot: u64) -> Self {
        Self(boot)
    }

    /// The number that [`Boot::new`] was given.
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
///
/// ```
/// use bellwether_proto::Incarnation;
///
/// assert_eq!(Incarnation::default().next(), Incarnation::new(1));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Incarnation(u32);

impl Incarnation {
    /// The incarnation with this number.
    pub const fn new(incarnation: u32) -> Self {
        Self(incarnation)
    }

    /// The number that [`Incarnation::new`] was given.
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

/// One life of one node. A host authenticates every message and names the sender's life with it.
///
/// ```
/// use bellwether_proto::{Boot, NodeId, Peer};
///
/// let second_life = Peer::new(NodeId::new(3), Boot::new(2));
/// assert_eq!(second_life.to_string(), "n3/2");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Peer {
    /// The node's identity, the same in every life.
    pub id: NodeId,
    /// Which of its lives this is.
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

/// A named election, as messages call it: 32 bits of a hash of its name.
///
/// ```
/// use bellwether_proto::ElectionId;
///
/// let backup = ElectionId::named("backup");
/// assert_eq!(backup.to_string().parse(), Ok(backup), "eight hexadecimal digits");
/// assert_ne!(backup, ElectionId::named("gateway"));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ElectionId(u32);

impl ElectionId {
    /// The election of this name. One name in four thousand million stands for another as well.
    pub fn named(name: &str) -> Self {
        let hash =
            name.bytes().fold(mix(name.len() as u64), |hash, byte| mix(hash ^ u64::from(byte)));
        Self(hash as u32)
    }

    /// The number that messages carry.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The election whose number a message carried.
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

impl fmt::Display for ElectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// The text is not the eight hexadecimal digits that an [`ElectionId`] is shown as.
///
/// ```
/// use bellwether_proto::{ElectionId, ParseElectionIdError};
///
/// assert_eq!("backup".parse::<ElectionId>(), Err(ParseElectionIdError));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an election's number is eight hexadecimal digits")]
pub struct ParseElectionIdError;

impl FromStr for ElectionId {
    type Err = ParseElectionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u32::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or(ParseElectionIdError)
    }
}
