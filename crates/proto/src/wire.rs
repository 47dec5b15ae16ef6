//! The codec: how messages become bytes and back.
//!
//! What a packet is, its first byte says. [`Message::to_packet`](crate::node::Message::to_packet) writes it, and the host
//! seals it: authenticates and numbers it, so that nobody else can speak for a node or say again what it said.
//!
//! Integers are little-endian. Identities have fixed width and counters are varints (seven bits a byte, least
//! significant first, shortest form only).
//!
//! # Hostile bytes
//!
//! Decoding never panics and never allocates more than the input justifies: every count is checked
//! against the bytes that remain *before* anything is reserved ([`Reader::count`]). There is one
//! encoding for every value, so that bytes can be compared and signed; anything else is an error that
//! names the field, the offset and what was found.

use alloc::vec::Vec;

/// A value with exactly one encoding.
///
/// One method writes it, to any [`Sink`]; the length is what the same method writes to a sink that
/// only counts. The two cannot disagree.
///
/// ```
/// use bellwether_proto::{node::Fact, wire::{Reader, Wire}};
///
/// let mut bytes = Vec::new();
/// Fact::Kept.encode(&mut bytes);
/// assert_eq!(bytes.len(), Fact::Kept.encoded_len());
/// assert_eq!(Fact::decode(&mut Reader::new(&bytes)), Ok(Fact::Kept));
/// ```
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

/// Where encoded bytes go: a `Vec<u8>`, or a host's own hasher or file.
///
/// ```
/// use bellwether_proto::wire::Sink;
///
/// let mut bytes = Vec::new();
/// bytes.u8(7);
/// bytes.varint(300);
/// assert_eq!(bytes, [7, 0xac, 2]);
/// ```
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
///
/// ```
/// use bellwether_proto::wire::{DecodeError, Reader};
///
/// let error = Reader::new(&[1, 2]).u32("epoch").unwrap_err();
/// assert_eq!(error, DecodeError::Short { field: "epoch", at: 0, needed: 4, left: 2 });
/// assert_eq!(error.to_string(), "epoch at byte 0: needs 4 bytes, 2 left");
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// The input ends inside a field.
    #[error("{field} at byte {at}: needs {needed} bytes, {left} left")]
    Short {
        /// The field being read.
        field: &'static str,
        /// The offset at which it begins.
        at: usize,
        /// Bytes it takes.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A message kind or enum value this build does not know.
    #[error("{field} at byte {at}: unknown value {found}")]
    UnknownKind {
        /// The field being read.
        field: &'static str,
        /// The offset at which it begins.
        at: usize,
        /// The value found.
        found: u64,
    },
    /// A varint longer than its value needs, or than 64 bits hold.
    #[error("{field} at byte {at}: not the shortest form of a 64-bit number")]
    BadVarint {
        /// The field being read.
        field: &'static str,
        /// The offset at which it begins.
        at: usize,
    },
    /// A count that the remaining bytes cannot possibly hold.
    #[error("{field} at byte {at}: {found} items announced, {left} bytes left")]
    BadCount {
        /// The field being read.
        field: &'static str,
        /// The offset at which it begins.
        at: usize,
        /// The count found.
        found: u64,
        /// Bytes that remain.
        left: usize,
    },
    /// Bytes that are no text.
    #[error("{field} at byte {at}: not UTF-8")]
    NotText {
        /// The field being read.
        field: &'static str,
        /// The offset at which it begins.
        at: usize,
    },
    /// A number outside the field's range.
    #[error("{field} at byte {at}: {found} is out of range, at most {limit}")]
    OutOfRange {
        /// The field being read.
        field: &'static str,
        /// The offset at which it begins.
        at: usize,
        /// The value found.
        found: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// A list that has to ascend and does not.
    #[error("{field} at byte {at}: {found} does not come behind {last}")]
    OutOfOrder {
        /// The field being read.
        field: &'static str,
        /// The offset at which it begins.
        at: usize,
        /// The value found.
        found: u64,
        /// The one before it.
        last: u64,
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
            Self::UnknownKind { .. } => "unknown-kind",
            Self::BadVarint { .. }
            | Self::BadCount { .. }
            | Self::NotText { .. }
            | Self::OutOfRange { .. }
            | Self::OutOfOrder { .. }
            | Self::Trailing { .. } => "malformed",
        }
    }
}

/// Bytes being decoded, with the offset for error messages.
///
/// ```
/// use bellwether_proto::wire::Reader;
///
/// let mut reader = Reader::new(&[7, 0xac, 2]);
/// assert_eq!((reader.u8("kind"), reader.varint("length")), (Ok(7), Ok(300)));
/// assert_eq!(reader.finish(), Ok(()));
/// ```
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

    /// The next byte.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`].
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// The next two bytes, as a number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`].
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// The next four bytes, as a number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`].
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// The next eight bytes, as a number.
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

/// The size of the sealed datagram that carries `body`: what a simulator counts.
#[cfg_attr(not(feature = "research"), doc(hidden))]
#[inline]
pub fn datagram_len(body: &impl Wire) -> usize {
    SEAL_LEN + body.encoded_len()
}

/// What an agent's seal adds to a packet: 11 bytes of fixed header, one of a boot number below 128, three of a packet
/// number below two million, and a tag of 16. Held against the seal itself by a test of the agent.
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub const SEAL_LEN: usize = 31;
/// How many bytes always fit into a sealed datagram, however large its numbers have become.
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub const SEALED_ROOM: usize = MAX_DATAGRAM - 47;
/// The longest datagram: what passes unfragmented through every common link and tunnel. Longer messages go over a stream.
///
/// ```
/// use bellwether_proto::wire::MAX_DATAGRAM;
///
/// let packet = [0; 40];
/// assert!(packet.len() <= MAX_DATAGRAM);
/// ```
pub const MAX_DATAGRAM: usize = 1_200;
