//! The wire: one envelope around every message, and the codec inside it.
//!
//! # Datagram
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 2 | magic `BW` |
//! | 2 | 1 | version, now 1 |
//! | 3 | 8 | cluster |
//! | 11 | 8 | sender: node id |
//! | 19 | 8 | sender: boot number |
//! | 27 | 2 | group: which election or substrate of the node the body belongs to |
//! | 29 | 2 | body length |
//! | 31 | … | body |
//!
//! Integers are little-endian. Inside bodies, identities have fixed width and counters are varints
//! (seven bits a byte, least significant first, shortest form only).
//!
//! # Hostile bytes
//!
//! Decoding never panics and never allocates more than the input justifies: every count is checked
//! against the bytes that remain *before* anything is reserved ([`Reader::count`]). There is one
//! encoding for every value, so that bytes can be compared and signed; anything else is an error that
//! names the field, the offset and what was found.

use alloc::vec::Vec;

use crate::id::{Boot, NodeId, Peer};

/// A value with exactly one encoding.
///
/// One method writes it, to any [`Sink`]; the length is what the same method writes to a sink that
/// only counts. The two cannot disagree.
pub trait Wire: Sized {
    /// Writes the value.
    fn encode(&self, sink: &mut impl Sink);

    /// Reads the value back.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] naming the field and the offset. Nothing is returned in part.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// How many bytes [`Wire::encode`] writes, exactly.
    fn encoded_len(&self) -> usize {
        let mut length = Length(0);
        self.encode(&mut length);
        length.0
    }
}

/// Where encoded bytes go.
pub trait Sink {
    /// Appends raw bytes.
    fn bytes(&mut self, bytes: &[u8]);

    /// Appends one byte.
    #[inline]
    fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Appends two bytes.
    #[inline]
    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends four bytes.
    #[inline]
    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    #[inline]
    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends one to ten bytes, fewer for smaller numbers.
    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A sink that only counts.
struct Length(usize);

impl Sink for Length {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

/// Why bytes were not understood. Hosts drop the datagram, count it under [`DecodeError::reason`],
/// and answer nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// The input ends inside a field.
    #[error("{field} at byte {at}: needs {needed} bytes, {left} left")]
    Short {
        /// The field being read.
        field: &'static str,
        /// Its offset.
        at: usize,
        /// Bytes it takes.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// The first bytes are not our magic: some other protocol's packet.
    #[error("not a bellwether packet: it starts with {found:02x?}, ours with {MAGIC:02x?}")]
    NotOurs {
        /// The bytes found there.
        found: [u8; 2],
    },
    /// A version this build does not speak.
    #[error("version {found}, this build speaks {VERSION}")]
    Version {
        /// The version found.
        found: u8,
    },
    /// Another cluster's packet.
    #[error("packet for cluster {found}, this is {ours}")]
    OtherCluster {
        /// The cluster named in the packet.
        found: ClusterId,
        /// Ours.
        ours: ClusterId,
    },
    /// Longer than a datagram may be.
    #[error("{found} bytes, at most {limit} are allowed")]
    TooLarge {
        /// The length found.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A message kind or enum value this build does not know.
    #[error("{field} at byte {at}: unknown value {found}")]
    UnknownKind {
        /// The field being read.
        field: &'static str,
        /// Its offset.
        at: usize,
        /// The value found.
        found: u64,
    },
    /// A varint longer than its value needs, or than 64 bits hold.
    #[error("{field} at byte {at}: not the shortest form of a 64-bit number")]
    BadVarint {
        /// The field being read.
        field: &'static str,
        /// Its offset.
        at: usize,
    },
    /// A count that the remaining bytes cannot possibly hold.
    #[error("{field} at byte {at}: {found} items announced, {left} bytes left")]
    BadCount {
        /// The field being read.
        field: &'static str,
        /// Its offset.
        at: usize,
        /// The count found.
        found: u64,
        /// Bytes that remain.
        left: usize,
    },
    /// A number outside the field's range.
    #[error("{field} at byte {at}: {found} is out of range, at most {limit}")]
    OutOfRange {
        /// The field being read.
        field: &'static str,
        /// Its offset.
        at: usize,
        /// The value found.
        found: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// Bytes left over behind the message.
    #[error("{extra} bytes left over at byte {at}")]
    Trailing {
        /// Where the message ended.
        at: usize,
        /// How many more there are.
        extra: usize,
    },
}

impl DecodeError {
    /// A short stable name, for counters.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Short { .. } => "short",
            Self::NotOurs { .. } => "not-ours",
            Self::Version { .. } => "version",
            Self::OtherCluster { .. } => "other-cluster",
            Self::TooLarge { .. } => "too-large",
            Self::UnknownKind { .. } => "unknown-kind",
            Self::BadVarint { .. }
            | Self::BadCount { .. }
            | Self::OutOfRange { .. }
            | Self::Trailing { .. } => "malformed",
        }
    }
}

/// Bytes being decoded, with the offset for error messages.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from the beginning.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes, at: 0 }
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`].
    pub fn bytes(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], DecodeError> {
        let Some((head, tail)) = self.left.split_at_checked(count) else {
            let left = self.left.len();
            return Err(DecodeError::Short { field, at: self.at, needed: count, left });
        };
        self.left = tail;
        self.at += count;
        Ok(head)
    }

    /// The offset of what is read next.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Everything that has not been read.
    pub const fn rest(&self) -> &'a [u8] {
        self.left
    }

    /// One byte.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`].
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Two bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`].
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// Four bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`].
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Eight bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`].
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A variable-length number in its shortest form.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] or [`DecodeError::BadVarint`].
    pub fn varint(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let at = self.at;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8(field)?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits || (byte == 0 && shift > 0) {
                return Err(DecodeError::BadVarint { field, at });
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::BadVarint { field, at })
    }

    /// A variable-length number of at most 32 bits, in its shortest form.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`], [`DecodeError::BadVarint`] or [`DecodeError::OutOfRange`].
    pub fn varint32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let at = self.at;
        let found = self.varint(field)?;
        let limit = u64::from(u32::MAX);
        u32::try_from(found).map_err(|_| DecodeError::OutOfRange { field, at, found, limit })
    }

    /// A variable-length number of at most 16 bits, in its shortest form.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`], [`DecodeError::BadVarint`] or [`DecodeError::OutOfRange`].
    pub fn varint16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        let at = self.at;
        let found = self.varint(field)?;
        let limit = u64::from(u16::MAX);
        u16::try_from(found).map_err(|_| DecodeError::OutOfRange { field, at, found, limit })
    }

    /// A one-byte discriminant below `kinds`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] or [`DecodeError::UnknownKind`].
    pub fn kind(&mut self, field: &'static str, kinds: u8) -> Result<u8, DecodeError> {
        let at = self.at;
        let found = self.u8(field)?;
        if found >= kinds {
            return Err(DecodeError::UnknownKind { field, at, found: u64::from(found) });
        }
        Ok(found)
    }

    /// A count of items of at least `item_len` bytes each, checked against what remains, so that
    /// reserving room for it costs no more than the input did.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`], [`DecodeError::BadVarint`] or [`DecodeError::BadCount`].
    pub fn count(&mut self, field: &'static str, item_len: usize) -> Result<usize, DecodeError> {
        let at = self.at;
        let found = self.varint(field)?;
        let left = self.left.len();
        let room = left / item_len.max(1);
        if usize::try_from(found).is_ok_and(|count| count <= room) {
            Ok(found as usize)
        } else {
            Err(DecodeError::BadCount { field, at, found, left })
        }
    }

    /// The end, with nothing left over.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Trailing`].
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.left.len() {
            0 => Ok(()),
            extra => Err(DecodeError::Trailing { at: self.at, extra }),
        }
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let bytes = self.bytes(field, N)?;
        Ok(bytes.try_into().expect("bytes() returned the N bytes asked for"))
    }
}

/// Which cluster a packet belongs to: the hash of its configured name. Bound into authentication by
/// the host, so that two clusters never merge by accident.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClusterId(u64);

impl ClusterId {
    /// The cluster with this number.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl core::fmt::Display for ClusterId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A message with its envelope.
///
/// ```
/// use bellwether_proto::{
///     Boot, NodeId, Peer,
///     membership::ping::Message,
///     wire::{ClusterId, DecodeError, Envelope},
/// };
///
/// let cluster = ClusterId::new(7);
/// let from = Peer::new(NodeId::new(3), Boot::new(1));
/// let sent = Envelope { cluster, from, group: 0, body: Message::Ping { round: 9 } };
/// let mut datagram = Vec::new();
/// sent.encode_into(&mut datagram).unwrap();
/// assert_eq!(datagram.len(), sent.encoded_len());
/// assert_eq!(Envelope::decode(&datagram, cluster), Ok(sent));
///
/// let cut: Result<Envelope<Message>, _> = Envelope::decode(&datagram[..20], cluster);
/// assert_eq!(
///     cut.unwrap_err().to_string(),
///     "sender boot at byte 19: needs 8 bytes, 1 left",
/// );
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Envelope<Body> {
    /// Which cluster.
    pub cluster: ClusterId,
    /// Which life of which node sent it.
    pub from: Peer,
    /// Which election or substrate of the receiver it is for.
    pub group: u16,
    /// The message.
    pub body: Body,
}

impl<Body: Wire> Envelope<Body> {
    /// How many bytes the datagram takes, exactly.
    pub fn encoded_len(&self) -> usize {
        datagram_len(&self.body)
    }

    /// Appends the datagram to `buffer`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::TooLarge`] if it would exceed [`MAX_DATAGRAM`]; `buffer` is as it was. Larger
    /// state is sent in parts or over a stream, never cut.
    pub fn encode_into(&self, buffer: &mut Vec<u8>) -> Result<(), DecodeError> {
        let found = self.encoded_len();
        if found > MAX_DATAGRAM {
            return Err(DecodeError::TooLarge { found, limit: MAX_DATAGRAM });
        }
        buffer.reserve(found);
        buffer.bytes(&MAGIC);
        buffer.u8(VERSION);
        buffer.u64(self.cluster.0);
        buffer.u64(self.from.id.get());
        buffer.u64(self.from.boot.get());
        buffer.u16(self.group);
        buffer.u16((found - HEADER_LEN) as u16);
        self.body.encode(buffer);
        Ok(())
    }

    /// Reads a datagram of the cluster `ours`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]; cheap checks come first, the body is read last.
    pub fn decode(datagram: &[u8], ours: ClusterId) -> Result<Self, DecodeError> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(DecodeError::TooLarge { found: datagram.len(), limit: MAX_DATAGRAM });
        }
        let mut reader = Reader::new(datagram);
        let magic = reader.array("magic")?;
        if magic != MAGIC {
            return Err(DecodeError::NotOurs { found: magic });
        }
        let version = reader.u8("version")?;
        if version != VERSION {
            return Err(DecodeError::Version { found: version });
        }
        let cluster = ClusterId(reader.u64("cluster")?);
        if cluster != ours {
            return Err(DecodeError::OtherCluster { found: cluster, ours });
        }
        let id = NodeId::new(reader.u64("sender id")?);
        let boot = Boot::new(reader.u64("sender boot")?);
        let group = reader.u16("group")?;
        let length = usize::from(reader.u16("body length")?);
        if length < reader.left.len() {
            let extra = reader.left.len() - length;
            return Err(DecodeError::Trailing { at: HEADER_LEN + length, extra });
        }
        if length > reader.left.len() {
            let left = reader.left.len();
            return Err(DecodeError::Short { field: "body", at: reader.at, needed: length, left });
        }
        let body = Body::decode(&mut reader)?;
        reader.finish()?;
        Ok(Self { cluster, from: Peer::new(id, boot), group, body })
    }
}

/// The size of the datagram that carries `body`: what a simulator counts.
#[inline]
pub fn datagram_len(body: &impl Wire) -> usize {
    HEADER_LEN + body.encoded_len()
}

/// The first bytes of every packet.
pub const MAGIC: [u8; 2] = *b"BW";
/// The version this build speaks.
pub const VERSION: u8 = 1;
/// Bytes before the body.
pub const HEADER_LEN: usize = 31;
/// The longest datagram: what passes unfragmented through every common link and tunnel.
pub const MAX_DATAGRAM: usize = 1_200;
