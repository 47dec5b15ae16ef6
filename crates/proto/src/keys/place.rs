//! Where keys belong: which slot a key hashes to, and which members come first for it (K1).

use alloc::vec::Vec;

use super::Config;
use crate::{membership::ring::Life, rng::mix};

/// One of the equal parts into which all keys are divided by their hash.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Slot(u32);

impl Slot {
    /// The slot of a key, which may be any string.
    pub fn of(key: &str, config: &Config) -> Self {
        let hash =
            key.bytes().fold(mix(key.len() as u64), |hash, byte| mix(hash ^ u64::from(byte)));
        Self((hash % u64::from(config.slots())) as u32)
    }

    /// The slot of this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Which one it is, counted from 0.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// What decides how early a member comes for this slot: the larger the earlier. Of the node, not of one life of it,
    /// so that a node that starts again gets back what it had.
    fn weight(self, life: Life) -> (u64, Life) {
        (mix(mix(u64::from(self.0) ^ SALT) ^ mix(life.id().get())), life)
    }

    /// The first `count` of some members for this slot, first of all its desired owner: by rendezvous hashing. When a
    /// member goes the slot moves to the next, and no other slot moves.
    pub fn first(self, members: impl Iterator<Item = Life>, count: usize) -> Vec<Life> {
        let mut first: Vec<(u64, Life)> = Vec::with_capacity(count + 1);
        for life in members {
            let weight = self.weight(life);
            let at = first.partition_point(|other| *other > weight);
            if at < count {
                first.insert(at, weight);
                first.truncate(count);
            }
        }
        first.into_iter().map(|(_, life)| life).collect()
    }
}

/// Arbitrary: keeps slots and nodes of one number apart.
const SALT: u64 = 0x736c_6f74;
