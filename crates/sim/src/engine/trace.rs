//! The trace hash: one number that two runs share only if they did the same things in the same order.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

/// A running 64-bit digest of everything a run did. Not cryptographic: it tells honest runs apart, it
/// does not withstand a forger.
///
/// It is also a [`Hasher`] that gives the same value on every platform: sizes and enum discriminants,
/// which have the width of a pointer, are widened to 64 bits first. What it takes in are values, never their `Debug`
/// text: a type, a field or a variant can be renamed and no digest changes. Variants that trade places do change it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TraceHash(u64);

impl TraceHash {
    /// The digest of nothing.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Takes in one number.
    #[inline]
    pub fn fold(&mut self, value: u64) {
        // Both halves of the product: of the low half alone the high bits of a number survive as a few bits only, which
        // the next number can cancel. The multiplier is the golden ratio's, odd and without short patterns; what is added
        // keeps a zero from wiping out what came before.
        let wide = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide as u64 ^ (wide >> 64) as u64).wrapping_add(0xd1b5_4a32_d192_ed03);
    }

    /// Takes in a value.
    #[inline]
    pub fn fold_value(&mut self, value: &impl Hash) {
        value.hash(self);
    }

    /// The digest so far.
    pub const fn get(self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Lets a type that folds numbers hash values alike on every platform: sizes and discriminants are as wide as the
/// widest number.
macro_rules! hash_by_folding {
    ($digest:ty) => {
        impl std::hash::Hasher for $digest {
            fn finish(&self) -> u64 {
                self.get()
            }

            fn write(&mut self, bytes: &[u8]) {
                for chunk in bytes.chunks(8) {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    self.fold(u64::from_le_bytes(word));
                }
                self.fold(bytes.len() as u64);
            }

            fn write_u8(&mut self, value: u8) {
                self.fold(u64::from(value));
            }

            fn write_u16(&mut self, value: u16) {
                self.fold(u64::from(value));
            }

            fn write_u32(&mut self, value: u32) {
                self.fold(u64::from(value));
            }

            fn write_u64(&mut self, value: u64) {
                self.fold(value);
            }

            fn write_u128(&mut self, value: u128) {
                self.fold(value as u64);
                self.fold((value >> 64) as u64);
            }

            fn write_usize(&mut self, value: usize) {
                self.fold(value as u64);
            }

            fn write_isize(&mut self, value: isize) {
                self.fold(value as i64 as u64);
            }
        }
    };
}
pub(crate) use hash_by_folding;

hash_by_folding!(TraceHash);

/// A list of numbers to be hashed one by one: the language hashes such a list as it lies in memory, in the byte order
/// of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Each<'a, T>(pub &'a [T]);

impl<T: Hash> Hash for Each<'_, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.0.len());
        self.0.iter().for_each(|one| one.hash(state));
    }
}

impl fmt::Display for TraceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_both_matter() {
        let digest = |values: &[u64]| {
            let mut hash = TraceHash::new();
            values.iter().for_each(|&value| hash.fold(value));
            hash.get()
        };
        let all = [digest(&[1, 2]), digest(&[2, 1]), digest(&[1]), digest(&[1, 2, 3]), digest(&[])];
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }

    #[test]
    fn the_digest_is_pinned() {
        let mut hash = TraceHash::new();
        hash.fold_value(&(7_u32, Some(9_u64), "bellwether"));
        assert_eq!(hash.to_string(), "c7ec94f89ca3d81a");
    }
}
