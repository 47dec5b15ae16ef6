//! The cluster's keys: how they look, where they are kept, how they are replaced.
//!
//! # Text
//!
//! `bw1-` and eight groups of ten hexadecimal digits: four bytes of the key and a checksum of the group and
//! its place. A mistyped digit, two swapped ones or two swapped groups are always noticed, and the message says
//! in which group to look without repeating the secret.
//!
//! # File
//!
//! One key a line, oldest first; `#` starts a comment. The key to send under is marked; a single key needs no
//! mark.
//!
//! ```text
//! # bellwether cluster keys: keep this file private
//! send   bw1-…
//! accept bw1-…
//! ```
//!
//! # Rotation
//!
//! Three stages, each visible as [`Rotation`], none of which needs the cluster to stop:
//!
//! 1. [`KeyRing::add`] the new key everywhere: both are accepted, the old one is sent.
//! 2. [`KeyRing::send_newest`] everywhere: both are accepted, the new one is sent.
//! 3. [`KeyRing::retire`] once nobody sends under the old one: it is refused.

pub use self::{
    file::{KeyError, KeyLineError},
    ring::KeyRing,
    text::{Fingerprint, Key, KeyTextError},
};
pub use crate::status::Rotation;

mod file;
mod ring;
mod text;

#[cfg(test)]
fn key(seed: u8) -> Key {
    Key::from_bytes(std::array::from_fn(|at| seed.wrapping_mul(31).wrapping_add(at as u8)))
}
