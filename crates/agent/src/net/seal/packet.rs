//! The bytes of packets and streams: headers, keys, nonces, and the cipher around them.

use std::fmt;

use bellwether_proto::{
    Boot, NodeId, Peer,
    wire::{DecodeError, Reader},
};
use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit, Tag,
    aead::{AeadInOut, inout::InOutBuf},
};
use zeroize::Zeroize;

use crate::net::{
    key::{Fingerprint, Key, KeyRing},
    refusal::Refusal,
};

/// What one cluster key is in one cluster.
pub(super) struct Root {
    pub(super) fingerprint: Fingerprint,
    secret: [u8; 32],
}

impl Root {
    pub(super) fn cipher(&self, purpose: Purpose, from: Peer) -> ChaCha20Poly1305 {
        let mut context = [0; 17];
        context[0] = purpose as u8;
        context[1..9].copy_from_slice(&from.id.get().to_le_bytes());
        context[9..].copy_from_slice(&from.boot.get().to_le_bytes());
        let mut key = *blake3::keyed_hash(&self.secret, &context).as_bytes();
        let cipher = ChaCha20Poly1305::new(&key.into());
        key.zeroize();
        cipher
    }
}

impl std::ops::Drop for Root {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

pub(super) fn roots(ring: &KeyRing, cluster: &str) -> Vec<Root> {
    let root = |key: &Key| {
        let mut hasher = blake3::Hasher::new_derive_key("bellwether 2026-11 cluster root");
        hasher.update(key.secret()).update(cluster.as_bytes());
        let secret = *hasher.finalize().as_bytes();
        hasher.zeroize();
        Root { fingerprint: key.fingerprint(), secret }
    };
    ring.keys().iter().map(root).collect()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    Datagram = 1,
    Stream = 2,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Message = 0,
    Group = 1,
    Hello = 2,
    Welcome = 3,
}

/// The versions of packets that a node speaks: all from one to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Versions {
    oldest: u8,
    newest: u8,
}

impl Versions {
    /// What this build speaks.
    pub const OURS: Self = Self { oldest: VERSION, newest: VERSION };
    /// What a later version might speak, for tests of this one: the same, and one more that looks no different.
    pub const NEXT: Self = Self { oldest: VERSION, newest: VERSION + 1 };

    /// From the oldest to the newest, each from 1 to 15.
    pub const fn new(oldest: u8, newest: u8) -> Option<Self> {
        let possible = 0 < oldest && oldest <= newest && newest <= VERSION_BITS;
        if possible { Some(Self { oldest, newest }) } else { None }
    }

    /// The oldest of them.
    pub const fn oldest(self) -> u8 {
        self.oldest
    }

    /// The newest of them.
    pub const fn newest(self) -> u8 {
        self.newest
    }

    /// The newest that both speak.
    pub fn common(self, other: Self) -> Option<u8> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    const fn contains(self, version: u8) -> bool {
        self.oldest <= version && version <= self.newest
    }

    pub(super) const fn to_byte(self) -> u8 {
        self.oldest << 4 | self.newest
    }

    pub(super) fn from_byte(byte: u8) -> Result<Self, Refusal> {
        Self::new(byte >> 4, byte & VERSION_BITS).ok_or(Refusal::Malformed)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oldest, newest } = self;
        if oldest == newest { write!(f, "{oldest}") } else { write!(f, "{oldest} to {newest}") }
    }
}

/// What a hello says. Whatever a later version puts behind it is skipped.
pub(super) struct Hello {
    pub(super) speaks: Versions,
    /// Whether it asks somebody who spoke first, and so is always answered by a welcome.
    pub(super) asks_back: bool,
}

impl Hello {
    pub(super) fn write(&self) -> [u8; GREETING] {
        let mut body = [0; GREETING];
        body[0] = self.speaks.to_byte();
        body[1] = u8::from(self.asks_back);
        body
    }

    pub(super) fn read(body: &[u8]) -> Result<Self, Refusal> {
        let &[speaks, flags, ..] = body else { return Err(Refusal::Malformed) };
        Ok(Self { speaks: Versions::from_byte(speaks)?, asks_back: flags & 1 != 0 })
    }
}

/// What a welcome says. Whatever a later version puts behind it is skipped.
pub(super) struct Welcome {
    /// The number of the hello, or message, it answers.
    pub(super) answers: u64,
    pub(super) speaks: Versions,
    /// The receiver's newest life, if that is not the one addressed.
    pub(super) newest: Option<Boot>,
}

impl Welcome {
    pub(super) fn write(&self) -> ([u8; WELCOME], usize) {
        let mut body = [0; WELCOME];
        body[..ECHO].copy_from_slice(&self.answers.to_le_bytes()[..ECHO]);
        body[ECHO] = self.speaks.to_byte();
        let Some(newest) = self.newest else { return (body, WELCOME - 8) };
        body[ECHO + 1..].copy_from_slice(&newest.get().to_le_bytes());
        (body, WELCOME)
    }

    /// `next` is the number of our next packet: what is answered has a smaller one.
    pub(super) fn read(body: &[u8], next: u64) -> Result<Self, Refusal> {
        let (echo, rest) = body.split_at_checked(ECHO).ok_or(Refusal::Malformed)?;
        let mut low = [0; 8];
        low[..ECHO].copy_from_slice(echo);
        let low = u64::from_le_bytes(low);
        let recent = next & !ECHO_BITS | low;
        let answers = if recent < next { recent } else { recent.saturating_sub(ECHO_BITS + 1) };
        let (&speaks, rest) = rest.split_first().ok_or(Refusal::Malformed)?;
        let newest = match rest.first_chunk() {
            Some(&newest) => Some(Boot::new(u64::from_le_bytes(newest))),
            None if rest.is_empty() => None,
            None => return Err(Refusal::Malformed),
        };
        let speaks = Versions::from_byte(speaks)?;
        Ok(Self { answers, speaks, newest })
    }
}

pub(super) struct Header {
    pub(super) version: u8,
    pub(super) kind: Kind,
    pub(super) cluster_hint: u8,
    pub(super) key_hint: u8,
    pub(super) from: Peer,
    pub(super) number: u64,
    pub(super) length: usize,
}

impl Header {
    /// Of a datagram, behind which there must be room for a tag.
    pub(super) fn read(packet: &[u8], ours: Versions) -> Result<Self, Refusal> {
        let (header, left) = Self::split(packet, ours)?;
        if left < TAG { Err(Refusal::Short) } else { Ok(header) }
    }

    /// Of a stream: nothing else.
    pub(super) fn read_exact(bytes: &[u8], ours: Versions) -> Result<Self, Refusal> {
        let (header, left) = Self::split(bytes, ours)?;
        if left == 0 { Ok(header) } else { Err(Refusal::Malformed) }
    }

    fn split(packet: &[u8], ours: Versions) -> Result<(Self, usize), Refusal> {
        let &[first, second, key_hint, ..] = packet else { return Err(Refusal::Short) };
        if first & !VERSION_BITS != MAGIC {
            return Err(Refusal::NotOurs);
        }
        let kind = match second >> 6 {
            0 => Kind::Message,
            1 => Kind::Group,
            2 => Kind::Hello,
            _ => Kind::Welcome,
        };
        // By greetings nodes find out what they have in common: they look the same in all versions.
        let version = first & VERSION_BITS;
        if !ours.contains(version) && matches!(kind, Kind::Message | Kind::Group) {
            return Err(Refusal::Version);
        }
        let mut reader = Reader::new(&packet[3..]);
        let (id, boot, number) = Self::sender(&mut reader).map_err(|error| match error {
            DecodeError::Short { .. } => Refusal::Short,
            _ => Refusal::Malformed,
        })?;
        let length = FIXED_HEADER + varint_len(boot) + varint_len(number);
        let from = Peer::new(NodeId::new(id), Boot::new(boot));
        let cluster_hint = second & HINT;
        let header = Self { version, kind, cluster_hint, key_hint, from, number, length };
        Ok((header, packet.len() - length))
    }

    fn sender(reader: &mut Reader<'_>) -> Result<(u64, u64, u64), DecodeError> {
        Ok((reader.u64("sender id")?, reader.varint("sender boot")?, reader.varint("number")?))
    }
}

/// What is authenticated beside the body: the header, and for whom it is.
pub(super) struct Aad {
    bytes: [u8; MAX_HEADER + 16],
    length: usize,
}

impl Aad {
    /// `header` is one that was written or read here, and so no longer than the longest.
    pub(super) fn new(header: &[u8], to: Option<Peer>) -> Self {
        let mut aad = Self { bytes: [0; MAX_HEADER + 16], length: header.len() };
        aad.bytes[..header.len()].copy_from_slice(header);
        if let Some(to) = to {
            let tail = &mut aad.bytes[header.len()..header.len() + 16];
            tail[..8].copy_from_slice(&to.id.get().to_le_bytes());
            tail[8..].copy_from_slice(&to.boot.get().to_le_bytes());
            aad.length += 16;
        }
        aad
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

pub(super) type Nonce = [u8; 12];

pub(super) fn nonce(number: u64, part: u32) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce[8..].copy_from_slice(&part.to_le_bytes());
    nonce
}

/// The place of a chunk and whether it is the last are bound in, so that none can be left out, moved or cut off.
pub(super) fn chunk_nonce(number: u64, index: u32, last: bool) -> Nonce {
    nonce(number, index << 1 | u32::from(last))
}

/// Appends ciphertext and tag.
pub(super) fn encrypt(
    cipher: &ChaCha20Poly1305,
    nonce: &Nonce,
    aad: &[u8],
    plain: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(plain);
    let tag = cipher
        .encrypt_inout_detached(nonce.into(), aad, InOutBuf::from(&mut out[start..]))
        .expect("shorter than 256 GiB");
    out.extend_from_slice(&tag);
}

/// Opens ciphertext and tag in place; the tag stays behind. Untouched if it is not genuine.
pub(super) fn decrypt(
    cipher: &ChaCha20Poly1305,
    nonce: &Nonce,
    aad: &[u8],
    sealed: &mut [u8],
) -> Result<(), Refusal> {
    let body = sealed.len().checked_sub(TAG).ok_or(Refusal::Short)?;
    let (body, tag) = sealed.split_at_mut(body);
    let tag = Tag::try_from(&*tag).map_err(|_| Refusal::Short)?;
    cipher
        .decrypt_inout_detached(nonce.into(), aad, InOutBuf::from(body), &tag)
        .map_err(|_| Refusal::Auth)
}

pub(super) const fn varint_len(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// The length of a chunk and whether it is the last, from the two bytes before it.
pub(crate) const fn chunk_prefix(bytes: [u8; 2]) -> (usize, bool) {
    let prefix = u16::from_le_bytes(bytes);
    ((prefix & !LAST) as usize, prefix & LAST != 0)
}

/// Every chunk but the last is full: there is one way to cut a message.
pub(super) fn check_chunk(chunk: &[u8], last: bool) -> Result<(), Refusal> {
    match chunk.len().checked_sub(TAG) {
        None => Err(Refusal::Short),
        Some(CHUNK) => Ok(()),
        Some(length) if last && length < CHUNK => Ok(()),
        Some(_) => Err(Refusal::Malformed),
    }
}

pub(super) const MAGIC: u8 = 0xB0;
const VERSION_BITS: u8 = 0x0F;
/// The form of packets described in the [module](super).
const VERSION: u8 = 1;
/// The bits of the second byte that speak of the cluster.
pub(super) const HINT: u8 = 0x3F;
pub(super) const FIXED_HEADER: usize = 3 + 8;
/// With both varints at their longest.
pub(crate) const MAX_HEADER: usize = FIXED_HEADER + 20;
pub(super) const TAG: usize = 16;
/// How much of a number is repeated: no two of the last 2^40 have it in common, which are 34 years of a thousand a second.
const ECHO: usize = 5;
const ECHO_BITS: u64 = (1 << (8 * ECHO)) - 1;
/// The longest body of a welcome. A hello is as long, and no longer than the shortest packet to a group.
pub(super) const WELCOME: usize = ECHO + 1 + 8;
/// What is said of a hello's body; the rest is zeros.
pub(super) const GREETING: usize = 2;
/// Plain bytes of a stream's chunk: what is read, and allocated, before its sender is known.
pub(crate) const CHUNK: usize = 16 * 1024;
/// What a chunk is longer by once it is sealed.
pub(crate) const CHUNK_EXTRA: usize = TAG;
pub(super) const LAST: u16 = 0x8000;
