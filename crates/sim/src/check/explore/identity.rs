//! Digests, and sets and maps of them.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::engine::trace::hash_by_folding;

/// A digest of what tells one state from another. The [trace hash](crate::engine::TraceHash) would not do: differences in
/// the high bits of one number stay few and may be undone by the next, and sets of messages are full of such.
///
/// Of ten million different states, two have the same digest once in three hundred thousand searches.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Digest(u64);

impl Digest {
    /// The digest of nothing.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Takes in one number.
    #[inline]
    pub fn fold(&mut self, value: u64) {
        // Every bit of a product of two words depends, in one half or the other, on every bit of both.
        let wide = u128::from(self.0.rotate_left(23) ^ value ^ 0xa076_1d64_78bd_642f)
            * u128::from(0xe703_7ed1_a0b4_28db_u64);
        self.0 = (wide as u64 ^ (wide >> 64) as u64).wrapping_add(value);
    }

    /// Takes in a value.
    #[inline]
    pub fn fold_value(&mut self, value: &impl Hash) {
        value.hash(self);
    }

    /// The digest so far.
    pub fn get(mut self) -> u64 {
        self.fold(0);
        self.0
    }
}

hash_by_folding!(Digest);

/// States that were seen.
#[expect(clippy::disallowed_types, reason = "only asked for members: no order shows")]
pub(super) type Digests = std::collections::HashSet<u64, BuildHasherDefault<Digested>>;

/// What is known by digests, or numbers of which there are few.
#[expect(clippy::disallowed_types, reason = "only asked for keys: no order shows")]
pub(super) type ByDigest<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Digested>>;

/// A hasher of one number, which may be a digest already: one multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digested(u64);

impl Hasher for Digested {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers with few bits set, as in sets: no two sequences of four are alike.
    #[test]
    fn few_bits_make_a_difference() {
        let mut seen = Digests::default();
        let mut count = 0;
        for one in 0..64 {
            for other in 0..64 {
                for (a, b) in [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)] {
                    let mut words = [0_u64; 4];
                    (words[a], words[b]) = (1 << one, 1 << other);
                    let mut digest = Digest::new();
                    words.iter().for_each(|&word| digest.fold(word));
                    seen.insert(digest.get());
                    count += 1;
                }
            }
        }
        assert_eq!(seen.len(), count);
    }
}
