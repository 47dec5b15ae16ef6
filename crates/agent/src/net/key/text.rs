//! One key, and how it is written.

use std::{fmt, str::FromStr};

use zeroize::Zeroize;

use super::KeyError;

/// A cluster key. Whoever has it is a member.
#[derive(Clone, Eq)]
pub struct Key([u8; Self::LEN]);

impl Key {
    /// Its length in bytes.
    pub const LEN: usize = 32;

    /// A new key from the operating system's generator.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoEntropy`]: there is no second-best source to fall back to.
    pub fn generate() -> Result<Self, KeyError> {
        let mut key = Self([0; Self::LEN]);
        getrandom::fill(&mut key.0).map_err(|error| KeyError::NoEntropy(error.to_string()))?;
        Ok(key)
    }

    /// The key with these bytes, which must be random ones.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn secret(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// What may be shown of it: tells keys apart and says nothing about them.
    pub fn fingerprint(&self) -> Fingerprint {
        let hash = blake3::derive_key("bellwether 2026-11 key fingerprint", &self.0);
        Fingerprint([hash[0], hash[1], hash[2], hash[3]])
    }

    /// The secret, as it is written to a key file. For nothing else: not for logs, not for arguments.
    pub fn to_text(&self) -> String {
        let mut text = String::from(PREFIX);
        for (group, bytes) in self.0.chunks(GROUP_BYTES).enumerate() {
            if group > 0 {
                text.push('-');
            }
            for byte in bytes.iter().copied().chain([checksum(group, bytes)]) {
                text.push(char::from(DIGITS[usize::from(byte >> 4)]));
                text.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
        text
    }
}

impl FromStr for Key {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        let digits = text.strip_prefix(PREFIX).ok_or(KeyTextError::NoPrefix)?;
        let found = digits.split('-').count();
        if found != GROUPS {
            return Err(KeyTextError::Groups { found });
        }
        let mut key = Self([0; Self::LEN]);
        for (group, (text, bytes)) in
            digits.split('-').zip(key.0.chunks_mut(GROUP_BYTES)).enumerate()
        {
            let number = group + 1;
            let found = text.chars().count();
            if found != GROUP_DIGITS {
                return Err(KeyTextError::GroupLength { group: number, found });
            }
            let mut nibbles = [0; GROUP_DIGITS];
            for (at, (digit, nibble)) in text.chars().zip(&mut nibbles).enumerate() {
                *nibble = digit
                    .to_digit(16)
                    .ok_or(KeyTextError::NotADigit { group: number, digit: at + 1 })?
                    as u8;
            }
            let mut pairs = nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]);
            for (byte, read) in bytes.iter_mut().zip(&mut pairs) {
                *byte = read;
            }
            if pairs.next() != Some(checksum(group, bytes)) {
                return Err(KeyTextError::Mistyped { group: number });
            }
        }
        Ok(key)
    }
}

/// In time that does not depend on where they differ.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        blake3::Hash::from_bytes(self.0) == blake3::Hash::from_bytes(other.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.fingerprint())
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Four bytes of a hash of a key, shown as eight hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fingerprint([u8; 4]);

impl Fingerprint {
    /// The one byte of it that travels in every packet.
    pub const fn hint(self) -> u8 {
        self.0[0]
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// Why a text is no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyTextError {
    /// It starts otherwise.
    #[error("a key starts with {PREFIX:?}")]
    NoPrefix,
    /// It is cut off, or two were joined.
    #[error("{found} groups of digits, a key has {GROUPS}")]
    Groups {
        /// How many there are.
        found: usize,
    },
    /// Digits are missing from a group, or too many.
    #[error("group {group} has {found} digits, each has {GROUP_DIGITS}")]
    GroupLength {
        /// Which, from one.
        group: usize,
        /// How many digits it has.
        found: usize,
    },
    /// A character that is no digit.
    #[error("group {group}, digit {digit}: not one of 0-9 and a-f")]
    NotADigit {
        /// Which, from one.
        group: usize,
        /// Which, from one.
        digit: usize,
    },
    /// The checksum of a group is wrong.
    #[error("group {group} is mistyped: its last two digits do not match the others")]
    Mistyped {
        /// Which, from one.
        group: usize,
    },
}

/// CRC-8 with the polynomial of ATM headers: every error of up to eight neighbouring bits is noticed. The start
/// value tells the groups apart.
fn checksum(group: usize, bytes: &[u8]) -> u8 {
    bytes.iter().fold(group as u8 + 1, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc, _| crc << 1 ^ if crc & 0x80 == 0 { 0 } else { 7 })
    })
}

const PREFIX: &str = "bw1-";
const DIGITS: [u8; 16] = *b"0123456789abcdef";
const GROUP_BYTES: usize = 4;
const GROUPS: usize = Key::LEN / GROUP_BYTES;
const GROUP_DIGITS: usize = 2 * (GROUP_BYTES + 1);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::net::key::key;

    #[test]
    fn a_key_reads_back() {
        let text = key(1).to_text();
        assert_eq!(text.len(), 91);
        assert!(text.starts_with("bw1-1f202122"), "{text}");
        assert_eq!(text.parse(), Ok(key(1)));
        assert_eq!(text.to_uppercase().replacen("BW1", "bw1", 1).parse(), Ok(key(1)));
        assert_ne!(Key::generate().unwrap(), Key::generate().unwrap());
    }

    #[test]
    fn every_mistyped_digit_and_every_swap_is_named_by_its_group() {
        let text = key(9).to_text();
        let digits: Vec<usize> =
            text.char_indices().skip(4).filter(|(_, c)| *c != '-').map(|(at, _)| at).collect();
        let mut tried = 0;
        for &at in &digits {
            let group = 1 + (at - 4) / 11;
            for digit in DIGITS.map(char::from) {
                let mut wrong = text.clone().into_bytes();
                wrong[at] = digit as u8;
                let wrong = String::from_utf8(wrong).unwrap();
                if wrong != text {
                    assert_eq!(wrong.parse::<Key>(), Err(KeyTextError::Mistyped { group }));
                    tried += 1;
                }
            }
            let mut wrong = text.clone().into_bytes();
            wrong[at] = b'x';
            let digit = 1 + (at - 4) % 11;
            assert_eq!(
                String::from_utf8(wrong).unwrap().parse::<Key>(),
                Err(KeyTextError::NotADigit { group, digit })
            );
        }
        assert_eq!(tried, 80 * 15);
        for pair in digits.windows(2).filter(|pair| pair[1] == pair[0] + 1) {
            let mut wrong = text.clone().into_bytes();
            wrong.swap(pair[0], pair[1]);
            let wrong = String::from_utf8(wrong).unwrap();
            assert!(wrong == text || wrong.parse::<Key>().is_err(), "swapped at {}", pair[0]);
        }
        let mut groups: Vec<&str> = text[4..].split('-').collect();
        groups.swap(2, 5);
        let swapped = format!("bw1-{}", groups.join("-"));
        assert_eq!(swapped.parse::<Key>(), Err(KeyTextError::Mistyped { group: 3 }));
    }

    proptest! {
        #[test]
        fn keys_read_back(bytes: [u8; 32]) {
            let key = Key::from_bytes(bytes);
            prop_assert_eq!(key.to_text().parse(), Ok(key));
        }
    }
}
