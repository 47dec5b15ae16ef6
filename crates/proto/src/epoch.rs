//! The fencing token.

use core::{fmt, str::FromStr};

use crate::id::{Boot, NodeId, Peer};

/// A fencing token, the same opaque totally ordered type in every election mode.
///
/// Compared as counter, then minting node, then that node's boot number, then a sequence number. The
/// counter grows from one leader to the next; the minting life makes tokens of the two halves of a
/// split differ even where both counted to the same number. A resource that remembers the largest
/// epoch it has served and refuses smaller ones is safe from a deposed leader's late writes.
///
/// ```
/// use bellwether_proto::{Boot, Epoch, NodeId, Peer};
///
/// let west = Epoch::mint(7, Peer::new(NodeId::new(3), Boot::new(1)));
/// let east = Epoch::mint(7, Peer::new(NodeId::new(5), Boot::new(1)));
/// assert!(west < east, "same counter, different halves: still ordered, never equal");
/// assert_eq!(west.to_string().parse(), Ok(west));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Epoch {
    counter: u64,
    node: NodeId,
    boot: Boot,
    sequence: u32,
}

impl Epoch {
    /// The first epoch `minter` makes with this counter.
    pub const fn mint(counter: u64, minter: Peer) -> Self {
        Self { counter, node: minter.id, boot: minter.boot, sequence: 0 }
    }

    /// The next epoch of the same minter under the same counter, for modes that hand out several
    /// grants within one counter. `None` once the sequence is exhausted: mint a larger counter.
    pub const fn succeed(self) -> Option<Self> {
        match self.sequence.checked_add(1) {
            Some(sequence) => Some(Self { sequence, ..self }),
            None => None,
        }
    }

    /// The epoch with this sequence number, read back from where it was written.
    pub const fn nth(counter: u64, minter: Peer, sequence: u32) -> Self {
        Self { counter, node: minter.id, boot: minter.boot, sequence }
    }

    /// How many the minter made under this counter before.
    pub const fn sequence(self) -> u32 {
        self.sequence
    }

    /// How many leaders came before, as far as the minter knew.
    pub const fn counter(self) -> u64 {
        self.counter
    }

    /// The largest counter that who knows of `known` believes. Counters grow by one from leader to leader, so no honest one
    /// comes near the end of them, where nobody could mint a larger one. All below that is believed: whoever has led alone
    /// for a while knows small counters only, and must still find into a group that is old.
    pub const fn believable(known: u64) -> u64 {
        let near = known.saturating_add(MAX_JUMP);
        if near > OLDEST { near } else { OLDEST }
    }

    /// The life that minted it.
    pub const fn minter(self) -> Peer {
        Peer::new(self.node, self.boot)
    }
}

/// A counter that no history reaches: a million leaders a second, for 400,000 years.
const OLDEST: u64 = 3 << 62;
/// How far above the largest heard of one may be beyond that. Arbitrary.
const MAX_JUMP: u64 = 1 << 20;

/// `7.3.1.0`: counter, node, boot, sequence. Opaque to users, but sortable by eye.
impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.counter, self.node.get(), self.boot, self.sequence)
    }
}

/// The text is not four decimal numbers joined by dots.
///
/// ```
/// use bellwether_proto::{Epoch, ParseEpochError};
///
/// assert_eq!("7.3.1".parse::<Epoch>(), Err(ParseEpochError));
/// assert!("7.3.1.0".parse::<Epoch>().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an epoch is counter.node.boot.sequence, four decimal numbers such as 7.3.1.0")]
pub struct ParseEpochError;

impl FromStr for Epoch {
    type Err = ParseEpochError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('.');
        let mut next = || {
            let part = parts.next()?;
            part.bytes().all(|b| b.is_ascii_digit()).then_some(part)?.parse::<u64>().ok()
        };
        let (counter, node, boot, sequence) =
            (|| Some((next()?, next()?, next()?, next()?)))().ok_or(ParseEpochError)?;
        let sequence = u32::try_from(sequence).map_err(|_| ParseEpochError)?;
        if parts.next().is_some() {
            return Err(ParseEpochError);
        }
        Ok(Self { counter, node: NodeId::new(node), boot: Boot::new(boot), sequence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(counter: u64, node: u64, boot: u64) -> Epoch {
        Epoch::mint(counter, Peer::new(NodeId::new(node), Boot::new(boot)))
    }

    #[test]
    fn order_is_counter_then_node_then_boot_then_sequence() {
        let ascending = [
            epoch(1, 9, 9),
            epoch(2, 1, 1),
            epoch(2, 1, 2),
            epoch(2, 1, 2).succeed().unwrap(),
            epoch(2, 2, 0),
            epoch(3, 0, 0),
        ];
        assert!(ascending.is_sorted());
    }

    #[test]
    fn malformed_epochs_are_refused() {
        for text in ["", "1.2.3", "1.2.3.4.5", "1.2.3.-4", "a.2.3.4", "1..3.4", "1.2.3.4294967296"]
        {
            assert_eq!(text.parse::<Epoch>(), Err(ParseEpochError), "{text:?}");
        }
    }
}
