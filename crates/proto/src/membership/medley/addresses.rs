//! Where members can be reached: several addresses each, told by themselves and passed on.
//!
//! The machine sends to identities; which of a member's addresses to use, and when to try another, is for
//! the host to decide, which alone sees where packets come from. But somebody has to tell a host about
//! members it has never heard: whoever passes on that one lives, introduces it. A node whose addresses
//! change says so in its next incarnation, so that of two introductions the newer is known.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, SocketAddr};

use crate::{
    id::{Boot, Incarnation, NodeId, Peer},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// Up to three addresses, the best first.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Addresses([Option<SocketAddr>; MOST_ADDRESSES]);

/// More than that many addresses are not passed on.
pub const MOST_ADDRESSES: usize = 3;

impl Addresses {
    /// The first three of these.
    pub fn new(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let mut all = [None; MOST_ADDRESSES];
        for (slot, address) in all.iter_mut().zip(addresses) {
            *slot = Some(address);
        }
        Self(all)
    }

    /// The best first.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.0.iter().copied().flatten()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }
}

/// Who can be reached where, in which life and incarnation it said so.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Introduction {
    /// Who, in which life.
    pub subject: Peer,
    /// And which incarnation of it.
    pub incarnation: Incarnation,
    /// Where.
    pub addresses: Addresses,
}

impl Introduction {
    fn life(&self) -> (Boot, Incarnation) {
        (self.subject.boot, self.incarnation)
    }
}

/// The smallest encoding: subject, boot, incarnation, count.
pub(super) const MIN_INTRODUCTION: usize = 8 + 1 + 1 + 1;

impl Wire for Introduction {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u64(self.subject.id.get());
        sink.varint(self.subject.boot.get());
        sink.varint(u64::from(self.incarnation.get()));
        sink.u8(self.addresses.iter().count() as u8);
        for address in self.addresses.iter() {
            match address.ip() {
                IpAddr::V4(ip) => {
                    sink.u8(0);
                    sink.bytes(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    sink.u8(1);
                    sink.bytes(&ip.octets());
                }
            }
            sink.u16(address.port());
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = NodeId::new(reader.u64("introduced")?);
        let boot = Boot::new(reader.varint("introduced boot")?);
        let incarnation = Incarnation::new(reader.varint32("introduced incarnation")?);
        let count = reader.kind("addresses", MOST_ADDRESSES as u8 + 1)?;
        let mut addresses = [None; MOST_ADDRESSES];
        for slot in &mut addresses[..usize::from(count)] {
            let ip = if reader.kind("address family", 2)? == 1 {
                let octets = reader.bytes("address", 16)?;
                IpAddr::from(<[u8; 16]>::try_from(octets).unwrap_or_default())
            } else {
                let octets = reader.bytes("address", 4)?;
                IpAddr::from(<[u8; 4]>::try_from(octets).unwrap_or_default())
            };
            *slot = Some(SocketAddr::new(ip, reader.u16("port")?));
        }
        let addresses = Addresses(addresses);
        Ok(Self { subject: Peer::new(id, boot), incarnation, addresses })
    }
}

/// What is known of others' addresses, and our own.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Directory {
    own: Addresses,
    others: BTreeMap<NodeId, Introduction>,
}

impl Directory {
    pub(super) fn own(&self) -> Addresses {
        self.own
    }

    /// Whether there is nobody to introduce, as in every simulation.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.others.is_empty()
    }

    /// Whether these are other addresses than before.
    pub(super) fn set_own(&mut self, addresses: Addresses) -> bool {
        core::mem::replace(&mut self.own, addresses) != addresses
    }

    /// Somebody was introduced. Older news than ours is ignored.
    pub(super) fn learn(&mut self, introduction: &Introduction) {
        let id = introduction.subject.id;
        let known = self.others.get(&id).map(Introduction::life);
        if known.is_none_or(|known| known < introduction.life()) {
            self.others.insert(id, *introduction);
        }
    }

    pub(super) fn of(&self, id: NodeId) -> Option<&Introduction> {
        self.others.get(&id)
    }

    pub(super) fn forget(&mut self, id: NodeId) {
        self.others.remove(&id);
    }
}
