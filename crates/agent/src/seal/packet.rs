//! The bytes of packets and streams: headers, keys, nonces, and the cipher around them.

use bellwether_proto::{
    Boot, NodeId, Peer,
    wire::{DecodeError, Reader},
};
use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit, Tag,
    aead::{AeadInOut, inout::InOutBuf},
};
use zeroize::Zeroize;

use crate::{
    drop::Drop,
    key::{Fingerprint, Key, KeyRing},
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

/// What it answers, and the receiver's newest life if that is not the one addressed.
pub(super) fn read_welcome(body: &[u8]) -> Result<(u32, Boot), Drop> {
    let (&answers, newest) = body.split_first_chunk().ok_or(Drop::Malformed)?;
    let newest = match newest.try_into() {
        Ok(newest) => u64::from_le_bytes(newest),
        Err(_) if newest.is_empty() => 0,
        Err(_) => return Err(Drop::Malformed),
    };
    Ok((u32::from_le_bytes(answers), Boot::new(newest)))
}

pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) cluster_hint: u8,
    pub(super) key_hint: u8,
    pub(super) from: Peer,
    pub(super) number: u64,
    pub(super) length: usize,
}

impl Header {
    /// Of a datagram, behind which there must be room for a tag.
    pub(super) fn read(packet: &[u8]) -> Result<Self, Drop> {
        let (header, left) = Self::split(packet)?;
        if left < TAG { Err(Drop::Short) } else { Ok(header) }
    }

    /// Of a stream: nothing else.
    pub(super) fn read_exact(bytes: &[u8]) -> Result<Self, Drop> {
        let (header, left) = Self::split(bytes)?;
        if left == 0 { Ok(header) } else { Err(Drop::Malformed) }
    }

    fn split(packet: &[u8]) -> Result<(Self, usize), Drop> {
        let &[first, second, key_hint, ..] = packet else { return Err(Drop::Short) };
        if first & !VERSION_BITS != MAGIC {
            return Err(Drop::NotOurs);
        }
        if first & VERSION_BITS != VERSION {
            return Err(Drop::Version);
        }
        let mut reader = Reader::new(&packet[3..]);
        let (id, boot, number) = Self::sender(&mut reader).map_err(|error| match error {
            DecodeError::Short { .. } => Drop::Short,
            _ => Drop::Malformed,
        })?;
        let kind = match second >> 6 {
            0 => Kind::Message,
            1 => Kind::Group,
            2 => Kind::Hello,
            _ => Kind::Welcome,
        };
        let length = FIXED_HEADER + varint_len(boot) + varint_len(number);
        let from = Peer::new(NodeId::new(id), Boot::new(boot));
        let header = Self { kind, cluster_hint: second & HINT, key_hint, from, number, length };
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
) -> Result<(), Drop> {
    let body = sealed.len().checked_sub(TAG).ok_or(Drop::Short)?;
    let (body, tag) = sealed.split_at_mut(body);
    let tag = Tag::try_from(&*tag).map_err(|_| Drop::Short)?;
    cipher
        .decrypt_inout_detached(nonce.into(), aad, InOutBuf::from(body), &tag)
        .map_err(|_| Drop::Auth)
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
pub(super) fn check_chunk(chunk: &[u8], last: bool) -> Result<(), Drop> {
    match chunk.len().checked_sub(TAG) {
        None => Err(Drop::Short),
        Some(CHUNK) => Ok(()),
        Some(length) if last && length < CHUNK => Ok(()),
        Some(_) => Err(Drop::Malformed),
    }
}

pub(super) const MAGIC: u8 = 0xB0;
const VERSION_BITS: u8 = 0x0F;
pub(super) const VERSION: u8 = 1;
/// The bits of the second byte that speak of the cluster.
pub(super) const HINT: u8 = 0x3F;
pub(super) const FIXED_HEADER: usize = 3 + 8;
/// With both varints at their longest.
pub(crate) const MAX_HEADER: usize = FIXED_HEADER + 20;
pub(super) const TAG: usize = 16;
pub(super) const ECHO: usize = 4;
/// The longest body of a welcome.
pub(super) const WELCOME: usize = ECHO + 8;
/// Plain bytes of a stream's chunk: what is read, and allocated, before its sender is known.
pub(crate) const CHUNK: usize = 16 * 1024;
/// What a chunk is longer by once it is sealed.
pub const CHUNK_EXTRA: usize = TAG;
pub(super) const LAST: u16 = 0x8000;
