//! Values that hash alike on every machine, whatever their types and fields are called.
//!
//! Hosts fold what machines say and are told into one number, to tell two runs apart. What is folded is the value, by
//! [`Hash`], never its `Debug` text: renaming something is free. Only moving the variants of an enum about is not,
//! since a derived `Hash` takes a variant by its place.

use core::hash::{Hash, Hasher};

/// A floating-point number to be hashed, which those of the language cannot be: by its bits, but both zeros alike,
/// since they are equal, and all that is no number alike, since how such bits come out depends on the machine.
#[derive(Clone, Copy, Debug)]
pub struct Real(pub f64);

impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // A negative zero and a positive one add up to the positive.
        state.write_u64(if self.0.is_nan() { u64::MAX } else { (self.0 + 0.0).to_bits() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Last(u64);

    impl Hasher for Last {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, _: &[u8]) {
            unreachable!("numbers are written whole")
        }

        fn write_u64(&mut self, value: u64) {
            self.0 = value;
        }
    }

    #[test]
    fn equal_numbers_hash_alike_and_others_do_not() {
        let hash = |value: f64| {
            let mut last = Last(0);
            Real(value).hash(&mut last);
            last.finish()
        };
        assert_eq!(hash(0.0), hash(-0.0));
        assert_eq!(hash(f64::NAN), hash(-f64::NAN));
        let all = [0.0, 0.1, -0.1, 0.1 + f64::EPSILON, 1.0, f64::INFINITY, f64::NAN].map(hash);
        for (i, a) in all.iter().enumerate() {
            assert!(!all[i + 1..].contains(a), "{i}");
        }
    }
}
