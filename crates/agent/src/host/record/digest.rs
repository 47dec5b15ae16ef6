//! The running digest of what a node says, answers and wants.

use std::hash::{Hash as _, Hasher};

use bellwether_proto::{
    Effect, EffectOf, Leadership, Machine as _, Rejected, Time,
    node::Node,
    wire::{Sink, Wire as _},
};

/// FNV-1a, of bytes however they are cut into pieces. It tells honest runs apart; it does not withstand a forger.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Digest(u64);

impl Digest {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) const fn get(self) -> u64 {
        self.0
    }

    /// What tells a damaged frame.
    pub(super) fn checksum(bytes: &[u8]) -> u32 {
        let mut digest = Self::new();
        Sink::bytes(&mut digest, bytes);
        (digest.0 ^ (digest.0 >> 32)) as u32
    }

    /// One effect, whether or not it could be carried out.
    pub(super) fn effect(&mut self, effect: &EffectOf<Node>) {
        match effect {
            Effect::Send { to, message } => {
                Sink::u8(self, 0);
                Sink::u64(self, to.get());
                message.encode(self);
            }
            Effect::Broadcast(message) => {
                Sink::u8(self, 1);
                message.encode(self);
            }
            Effect::Multicast(message) => {
                Sink::u8(self, 2);
                message.encode(self);
            }
            Effect::Persist(durable) => {
                Sink::u8(self, 3);
                durable.encode(self);
            }
            Effect::Emit(event) => {
                Sink::u8(self, 4);
                event.hash(self);
            }
        }
    }

    /// All effects have been digested: what else a host sees.
    pub(super) fn end(&mut self, node: &Node, now: Time, rejected: Option<&Rejected>) {
        let reason = rejected.map_or("", Rejected::reason);
        Sink::u8(self, 5);
        Sink::bytes(self, reason.as_bytes());
        for group in node.elections() {
            // The evidence is left out: it is for people, and in words of this build.
            let Leadership { leader, epoch, mode, settled, valid_until, .. } =
                node.leadership_of(group, now);
            (leader, epoch, mode, settled, valid_until).hash(self);
        }
        let deadline = node.deadline().map_or(Time::NEVER, |(at, _)| at);
        Sink::u64(self, deadline.as_micros());
    }
}

impl Sink for Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The same on every machine: what has the width of a pointer is widened first.
impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        Sink::bytes(self, bytes);
    }

    fn write_u16(&mut self, value: u16) {
        Sink::u16(self, value);
    }

    fn write_u32(&mut self, value: u32) {
        Sink::u32(self, value);
    }

    fn write_u64(&mut self, value: u64) {
        Sink::u64(self, value);
    }

    fn write_usize(&mut self, value: usize) {
        Sink::u64(self, value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        Sink::u64(self, value as i64 as u64);
    }
}
