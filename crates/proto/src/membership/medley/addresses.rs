//! Where members can be reached, and what else they say of themselves: told by each and passed on.
//!
//! The machine sends to identities; which of a member's addresses to use, and when to try another, is for
//! the host to decide, which alone sees where packets come from. But somebody has to tell a host about
//! members it has never heard: whoever passes on that one lives, introduces it. A node whose addresses
//! change says so in its next incarnation, so that of two introductions the newer is known.

use alloc::{boxed::Box, collections::BTreeMap, sync::Arc};
use core::{
    hash::{Hash, Hasher},
    net::{IpAddr, SocketAddr},
};

use crate::{
    id::{Boot, Incarnation, NodeId, Peer},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// Up to three addresses, the best first.
///
/// ```
/// use bellwether_proto::node::Addresses;
///
/// let addresses = Addresses::new(["192.0.2.7:7000".parse().unwrap()]);
/// assert_eq!(addresses.iter().count(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
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

    /// The addresses, the best first.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.0.iter().copied().flatten()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }
}

/// By octets: how the language hashes an address is its own affair, and may follow the machine's byte order.
impl Hash for Addresses {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.iter().count());
        for address in self.iter() {
            match address {
                SocketAddr::V4(it) => (4_u8, it.ip().octets(), it.port()).hash(state),
                SocketAddr::V6(it) => {
                    let (octets, port) = (it.ip().octets(), it.port());
                    (6_u8, octets, port, it.flowinfo(), it.scope_id()).hash(state);
                }
            }
        }
    }
}

/// What a member tells all others of itself besides where it is. Bytes to the membership; those above it agree
/// on their meaning.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Details(Option<Arc<[u8]>>);

/// Longer details are refused: every introduction carries them.
pub const MAX_DETAILS: usize = 255;

/// Details too long for an introduction.
///
/// ```
/// use bellwether_proto::node::{About, ElectionSettings, Settings, TimingProfile};
///
/// let mut settings = Settings::new("a", TimingProfile::Lan.timing(), vec![]);
/// settings.about.tags.insert("note".to_owned(), "x".repeat(300));
/// let error = settings.plan().unwrap_err();
/// assert!(error.to_string().contains("at most 255 fit"), "{error}");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{length} bytes of details: at most {MAX_DETAILS} fit an introduction")]
pub struct DetailsTooLong {
    /// How long they were.
    pub length: usize,
}

impl Details {
    /// These bytes.
    ///
    /// # Errors
    ///
    /// [`DetailsTooLong`] above [`MAX_DETAILS`].
    pub fn new(bytes: &[u8]) -> Result<Self, DetailsTooLong> {
        match bytes.len() {
            0 => Ok(Self(None)),
            1..=MAX_DETAILS => Ok(Self(Some(bytes.into()))),
            length => Err(DetailsTooLong { length }),
        }
    }

    /// The bytes that are passed on.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Who can be reached where, in which life and incarnation it said so.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Introduction {
    /// Who, in which life.
    pub subject: Peer,
    /// And which incarnation of it.
    pub incarnation: Incarnation,
    /// Where it is reached.
    pub addresses: Addresses,
    /// What else it says of itself.
    pub details: Details,
}

impl Introduction {
    fn life(&self) -> (Boot, Incarnation) {
        (self.subject.boot, self.incarnation)
    }
}

/// The smallest encoding: subject, boot, incarnation, count, length of the details.
pub(super) const MIN_INTRODUCTION: usize = 8 + 1 + 1 + 1 + 1;

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
        sink.u8(self.details.as_bytes().len() as u8);
        sink.bytes(self.details.as_bytes());
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
        let length = usize::from(reader.u8("details")?);
        let details = Details::new(reader.bytes("details", length)?).unwrap_or_default();
        Ok(Self { subject: Peer::new(id, boot), incarnation, addresses, details })
    }
}

/// What is known of others' addresses, and our own.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Directory {
    /// Apart, and only if it says anything: simulated nodes have neither.
    own: Option<Box<(Addresses, Details)>>,
    others: BTreeMap<NodeId, Introduction>,
}

impl Directory {
    /// What we have to say of ourselves, if anything.
    pub(super) fn own(&self) -> Option<&(Addresses, Details)> {
        self.own.as_deref()
    }

    /// Whether we have nothing to say of ourselves.
    pub(super) fn is_silent(&self) -> bool {
        self.own.is_none()
    }

    /// Whether there is nobody to introduce, as in every simulation.
    pub(super) fn is_empty(&self) -> bool {
        self.is_silent() && self.others.is_empty()
    }

    /// Whether this is news.
    pub(super) fn set_own(&mut self, addresses: Addresses, details: Details) -> bool {
        let silent = addresses.is_empty() && details.is_empty();
        let own = (!silent).then(|| Box::new((addresses, details)));
        let news = own != self.own;
        self.own = own;
        news
    }

    /// Somebody was introduced. Older news than ours is ignored. Whether it says anything new of itself.
    pub(super) fn learn(&mut self, introduction: &Introduction) -> bool {
        let id = introduction.subject.id;
        let known = self.others.get(&id);
        if known.is_some_and(|known| known.life() >= introduction.life()) {
            return false;
        }
        let said = |one: &Introduction| (one.subject, one.addresses, one.details.clone());
        let news = known.map(said) != Some(said(introduction));
        self.others.insert(id, introduction.clone());
        news
    }

    pub(super) fn of(&self, id: NodeId) -> Option<&Introduction> {
        self.others.get(&id)
    }

    /// Of what it last said of itself.
    pub(super) fn life_of(&self, id: NodeId) -> Option<(Boot, Incarnation)> {
        self.of(id).map(Introduction::life)
    }

    pub(super) fn forget(&mut self, id: NodeId) {
        self.others.remove(&id);
    }
}
