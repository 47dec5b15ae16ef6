//! The keys of a node, and how one takes over from another.

use super::{Fingerprint, Key, KeyError, Rotation};

/// The keys a node accepts, and the one it sends under.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRing {
    /// Oldest first, never empty, no two alike.
    pub(super) keys: Vec<Key>,
    pub(super) sending: usize,
}

impl KeyRing {
    /// How many keys a ring holds at most.
    pub const MOST: usize = 4;

    /// A ring of one.
    pub fn new(key: Key) -> Self {
        Self { keys: vec![key], sending: 0 }
    }

    /// A ring with a new key.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoEntropy`].
    pub fn generate() -> Result<Self, KeyError> {
        Key::generate().map(Self::new)
    }

    /// Stage one: accepts one more key.
    ///
    /// # Errors
    ///
    /// [`KeyError::TooMany`] or [`KeyError::Twice`]; the ring is as it was.
    pub fn add(&mut self, key: Key) -> Result<(), KeyError> {
        // By what tells keys apart everywhere else; two that differ only in secret are not to be had by chance.
        let fingerprint = key.fingerprint();
        if self.keys.iter().any(|known| known.fingerprint() == fingerprint) {
            return Err(KeyError::Twice(fingerprint));
        }
        if self.keys.len() >= Self::MOST {
            return Err(KeyError::TooMany);
        }
        self.keys.push(key);
        Ok(())
    }

    /// Stage two: sends under the newest key from now on.
    pub fn send_newest(&mut self) {
        self.sending = self.keys.len() - 1;
    }

    /// Stage three: accepts the key that is sent and newer ones only. Returns what is refused from now on.
    pub fn retire(&mut self) -> Vec<Fingerprint> {
        let retired = self.keys.drain(..self.sending).map(|key| key.fingerprint()).collect();
        self.sending = 0;
        retired
    }

    /// How far a rotation is.
    pub fn stage(&self) -> Rotation {
        Rotation::of(self.keys.len(), self.sending)
    }

    /// The keys, oldest first.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The key to send under.
    pub fn sending(&self) -> &Key {
        &self.keys[self.sending]
    }

    /// Which of [`keys`](Self::keys) is sent.
    pub(crate) const fn sending_index(&self) -> usize {
        self.sending
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::net::key::key;

    #[test]
    fn rotation_goes_through_three_stages_and_survives_the_file() {
        let through_file =
            |ring: &KeyRing| KeyRing::parse(Path::new("cluster.key"), &ring.to_text()).unwrap();
        let mut ring = KeyRing::new(key(1));
        assert_eq!(ring.stage(), Rotation::Settled);
        ring.add(key(2)).unwrap();
        ring = through_file(&ring);
        assert_eq!((ring.stage(), ring.sending()), (Rotation::AcceptBoth, &key(1)));
        ring.send_newest();
        ring = through_file(&ring);
        assert_eq!((ring.stage(), ring.sending()), (Rotation::SendNew, &key(2)));
        assert_eq!(ring.retire(), [key(1).fingerprint()]);
        ring = through_file(&ring);
        assert_eq!((ring.stage(), ring.keys()), (Rotation::Settled, &[key(2)][..]));
        assert_eq!(ring.retire(), [], "the key in use is never retired");
        assert!(matches!(ring.add(key(2)), Err(KeyError::Twice(_))));
    }
}
