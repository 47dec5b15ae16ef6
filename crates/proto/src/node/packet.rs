//! What nodes say to each other: the one table of packet kinds.
//!
//! The first byte says whose machine speaks; what follows is that machine's message. The host seals it and sends it.
//!
//! | kind | whose | then |
//! |---|---|---|
//! | 0 | [membership](crate::membership::medley) | its message |
//! | 1 | [eventual](crate::election::churn_tolerant) | number of the election (4), its message |
//! | 2 | [survey of `c`](crate::churn::survey) | its message |
//! | 16 | [announced](crate::election::announce) | number of the election (4), its message |
//! | 17 | [leased](super::founding) | number (4), digest of the settings (4), [body](founding::Body) |
//! | 18 | [learned](super::voters) | number (4), digest of the voters (4), its message |
//! | 19 | [central](super::names) | number (4), [body](names::Message) |
//! | 20 | a packet of kind 0, 1, 2, 17 or 18 that others [carry](Carried) | origin (8), its boot, to whom (8), number, whether that one is unheard, hops, who has it, the packet |
//!
//! Kinds from 16 on are filled up with zeros to [`LEAST`] bytes. They may come from a stranger, which the host asks who
//! it is; the question must not be longer than what provoked it.
//!
//! # What later versions may add
//!
//! Behind the message, and its filling, a packet may have a [`Tail`]: entries of a tag, a length and so many bytes, the tags
//! ascending, up to the end of the packet. Without entries there is no tail, and not a byte of it. A version that has more
//! to say with a message says it there, and one that does not know a tag skips the entry. So a field is added without a
//! new version: what is in a tail must be such that whoever does not read it does nothing wrong.
//!
//! A kind of packet or of message that a build does not know is an [`UnknownKind`](DecodeError::UnknownKind): hosts ignore the
//! packet and count it apart from those that are malformed. A new kind must be such that whoever ignores it does nothing wrong.
//!
//! There is one encoding for every value, and the tail is part of the value: a [`Packet`] that is read and written again is
//! the same bytes, whatever its tail holds. A [`Message`] alone has none, nor has one that is [carried](Carried): a tail belongs to
//! the packet around it. Nodes act on messages and pass no packet on, not even those that carry a message for others; so what
//! a node does not know of a tail ends with it, and so it does in a recording.

use alloc::{boxed::Box, vec::Vec};

use super::{founding, names, voters};
use crate::{
    election::announce,
    id::{Boot, ElectionId, NodeId, Peer},
    stack,
    wire::{DecodeError, Reader, SEALED_ROOM, Sink, Wire},
};

/// What nodes say to each other. A host sends it as a packet, and opens no message: who sent it, the host's seal says.
///
/// ```
/// use bellwether_proto::node::Message;
///
/// // The first byte says whose message it is, and nobody has this one.
/// let error = Message::from_packet(&[63]).unwrap_err();
/// assert_eq!(error.reason(), "unknown-kind", "of a later version, perhaps: hosts ignore it");
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// Of the membership, of an eventual election on it, or about `c`.
    Stack(stack::Message),
    /// Of an announced election.
    Announced(ElectionId, announce::Message),
    /// Of a leased election.
    Leased(ElectionId, founding::Message),
    /// Of a learned election.
    Learned(ElectionId, voters::Message),
    /// Of a central election.
    Central(ElectionId, names::Message),
    /// One of them on its way by others.
    Carried(Carried),
}

/// A packet on its way by others, as the link between the two concerned is in [doubt](crate::mechanism::paths).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Carried {
    /// Whose word it is.
    pub origin: Peer,
    /// The node that it is for.
    pub to: NodeId,
    /// Which of its words that others carry, from 1 on.
    pub number: u64,
    /// Whether its origin hears nothing from the receiver.
    pub unheard: bool,
    /// How often it may be handed on to somebody that knows no way either.
    pub hops: u8,
    /// Who has it by now.
    pub told: Vec<NodeId>,
    /// What it says.
    pub body: Box<Message>,
}

/// A message as it travels, with what a later version put behind it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Packet {
    /// What every version understands.
    pub message: Message,
    /// What some may not.
    pub tail: Tail,
}

/// What stands behind a message: entries that are skipped by whoever does not know their tag.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Tail {
    /// As they travel.
    bytes: Vec<u8>,
    last: Option<u64>,
}

impl Tail {
    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// [`TagOrder`] if there is one with this tag or a larger one.
    pub fn push(&mut self, tag: u64, value: &[u8]) -> Result<(), TagOrder> {
        if let Some(last) = self.last.filter(|&last| last >= tag) {
            return Err(TagOrder { tag, last });
        }
        self.bytes.varint(tag);
        self.bytes.varint(value.len() as u64);
        self.bytes.bytes(value);
        self.last = Some(tag);
        Ok(())
    }

    /// The value behind a tag.
    pub fn get(&self, tag: u64) -> Option<&[u8]> {
        self.entries().find_map(|(found, value)| (found == tag).then_some(value))
    }

    /// All entries, by tag.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut reader = Reader::new(&self.bytes);
        core::iter::from_fn(move || take_entry(&mut reader).ok())
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.last.is_none()
    }
}

/// The tags of a tail ascend, so that there is one way to write it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("tag {tag} does not come behind tag {last}")]
pub struct TagOrder {
    /// The one that was to be added.
    pub tag: u64,
    /// The largest there is.
    pub last: u64,
}

fn take_entry<'a>(reader: &mut Reader<'a>) -> Result<(u64, &'a [u8]), DecodeError> {
    let tag = reader.varint("tag")?;
    let length = reader.count("tail", 1)?;
    Ok((tag, reader.bytes("tail", length)?))
}

impl Wire for Packet {
    fn encode(&self, sink: &mut impl Sink) {
        self.message.encode(sink);
        sink.bytes(&self.tail.bytes);
    }

    /// Takes everything there is: nothing comes behind a tail.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let message = Message::decode(reader)?;
        let mut tail = Tail::default();
        while !reader.rest().is_empty() {
            let at = reader.at();
            let (tag, value) = take_entry(reader)?;
            tail.push(tag, value).map_err(|TagOrder { tag, last }| DecodeError::OutOfOrder {
                field: "tag",
                at,
                found: tag,
                last,
            })?;
        }
        Ok(Self { message, tail })
    }
}

/// How a node writes its packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Dialect {
    /// As this version does.
    #[default]
    Present,
    /// As a later version might that this one has to live with: with entries behind every message that have room for them,
    /// and with kinds of packets besides that nobody knows. For tests of this version; it changes what is written, not
    /// what is understood.
    Next,
}

impl Dialect {
    /// A packet with this message.
    pub fn encode(self, message: &Message) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(message.encoded_len() + NEXT_TAIL);
        message.encode(&mut bytes);
        if self == Self::Next && bytes.len() + NEXT_TAIL <= SEALED_ROOM {
            for (tag, value) in NEXT_ENTRIES {
                bytes.varint(tag);
                bytes.varint(value.len() as u64);
                bytes.bytes(value);
            }
        }
        bytes
    }

    /// What is sent beside a message, if anything: a packet of a kind that nobody knows, or a message of one.
    pub fn aside(self, message: &Message) -> Option<Vec<u8>> {
        if self == Self::Present {
            return None;
        }
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        match message {
            // The membership's own kinds: the byte behind that of the packet.
            Message::Stack(stack::Message::Membership(_)) => bytes[1] = NEXT_BODY,
            _ => bytes[0] = NEXT_KIND,
        }
        Some(bytes)
    }
}

const NEXT_KIND: u8 = 63;
const NEXT_BODY: u8 = 63;
/// One that is empty, one with a byte that is no text, one with a tag and a length of two bytes each.
const NEXT_ENTRIES: [(u64, &[u8]); 3] = [(1, b""), (2, &[0xff]), (300, &[0; 130])];
const NEXT_TAIL: usize = 2 + 3 + 2 + 2 + 130;

/// The shortest packet of an election beside the stack.
pub const LEAST: usize = 32;

/// The number of the election, behind the kind.
pub(super) const PREFIX: usize = 1 + 4;

impl Message {
    /// The bytes of a packet that carries this message: what a host seals and sends.
    pub fn to_packet(&self) -> Vec<u8> {
        Dialect::Present.encode(self)
    }

    /// The message that a packet carries. What a later version has put behind it is skipped.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] names the field and the offset.
    pub fn from_packet(bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Packet::decode(&mut Reader::new(bytes))?.message)
    }

    /// The election it is of; `None` for the membership and the survey.
    pub fn election(&self) -> Option<ElectionId> {
        match self {
            Self::Stack(stack::Message::Election(group, _))
            | Self::Announced(group, _)
            | Self::Leased(group, _)
            | Self::Learned(group, _)
            | Self::Central(group, _) => Some(*group),
            Self::Carried(carried) => carried.body.election(),
            Self::Stack(_) => None,
        }
    }
}

impl Message {
    /// Whether the receiver says something in turn, if all is well: silence is evidence about the link then.
    pub(super) fn awaits_answer(&self) -> bool {
        match self {
            Self::Leased(_, message) => match &message.body {
                founding::Body::Machine(message) => message.body.awaits_answer(),
                founding::Body::Ready { .. } => true,
                founding::Body::Inside => false,
            },
            Self::Learned(_, message) => message.body.kind().awaits_answer(),
            Self::Stack(message) => message.awaits_answer(),
            Self::Announced(..) | Self::Central(..) | Self::Carried(_) => false,
        }
    }
}

fn put(kind: u8, group: ElectionId, message: &impl Wire, sink: &mut impl Sink) {
    sink.u8(kind);
    sink.u32(group.number());
    message.encode(sink);
    const ZEROS: [u8; LEAST] = [0; LEAST];
    let length = PREFIX + message.encoded_len();
    sink.bytes(&ZEROS[..LEAST.saturating_sub(length)]);
}

fn rest<M: Wire>(start: usize, reader: &mut Reader<'_>) -> Result<(ElectionId, M), DecodeError> {
    let group = ElectionId::from_number(reader.u32("election")?);
    let message = M::decode(reader)?;
    let at = reader.at();
    let padding = LEAST.saturating_sub(at - start);
    match reader.bytes("padding", padding)?.iter().find(|&&byte| byte != 0) {
        Some(&found) => {
            Err(DecodeError::OutOfRange { field: "padding", at, found: u64::from(found), limit: 0 })
        }
        None => Ok((group, message)),
    }
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::Stack(message) => message.encode(sink),
            Self::Announced(group, message) => put(ANNOUNCED, *group, message, sink),
            Self::Leased(group, message) => put(LEASED, *group, message, sink),
            Self::Learned(group, message) => put(LEARNED, *group, message, sink),
            Self::Central(group, message) => put(CENTRAL, *group, message, sink),
            Self::Carried(carried) => {
                sink.u8(CARRIED);
                carried.encode(sink);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut ahead = reader.clone();
        let at = ahead.at();
        let kind = ahead.u8("kind")?;
        if kind < ANNOUNCED {
            return stack::Message::decode(reader).map(Self::Stack);
        }
        *reader = ahead;
        Ok(match kind {
            ANNOUNCED => {
                rest(at, reader).map(|(group, message)| Self::Announced(group, message))?
            }
            LEASED => rest(at, reader).map(|(group, message)| Self::Leased(group, message))?,
            LEARNED => rest(at, reader).map(|(group, message)| Self::Learned(group, message))?,
            CENTRAL => rest(at, reader).map(|(group, message)| Self::Central(group, message))?,
            CARRIED => Self::Carried(Carried::decode(reader)?),
            found => {
                let found = u64::from(found);
                return Err(DecodeError::UnknownKind { field: "kind", at, found });
            }
        })
    }
}

impl Wire for Carried {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u64(self.origin.id.get());
        sink.varint(self.origin.boot.get());
        sink.u64(self.to.get());
        sink.varint(self.number);
        sink.u8(self.unheard.into());
        sink.u8(self.hops);
        sink.varint(self.told.len() as u64);
        self.told.iter().for_each(|id| sink.u64(id.get()));
        self.body.encode(sink);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = NodeId::new(reader.u64("origin")?);
        let origin = Peer::new(id, Boot::new(reader.varint("boot of the origin")?));
        let to = NodeId::new(reader.u64("receiver")?);
        let number = reader.varint("number")?;
        let unheard = reader.kind("unheard", 2)? == 1;
        let hops = reader.u8("hops")?;
        let count = reader.count("carriers", 8)?;
        let told = (0..count).map(|_| reader.u64("carrier").map(NodeId::new));
        let told = told.collect::<Result<_, _>>()?;
        // What is for everybody on a segment, or in range, is not carried; nor what is carried already.
        let (at, kind) = (reader.at(), reader.clone().u8("kind")?);
        if kind >= ANNOUNCED && !matches!(kind, LEASED | LEARNED) {
            let found = u64::from(kind);
            return Err(DecodeError::UnknownKind { field: "carried kind", at, found });
        }
        let body = Box::new(Message::decode(reader)?);
        Ok(Self { origin, to, number, unheard, hops, told, body })
    }
}

const ANNOUNCED: u8 = 16;
const LEASED: u8 = 17;
const LEARNED: u8 = 18;
const CENTRAL: u8 = 19;
const CARRIED: u8 = 20;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{
        Epoch, Incarnation,
        churn::survey,
        election::{bandit, churn_tolerant},
        membership::medley,
    };

    #[test]
    fn short_packets_are_filled_up_and_nothing_hides_in_the_filling() {
        let group = ElectionId::named("door");
        for message in [
            Message::Announced(group, announce::Message::Bye { sequence: 1, epoch: 2 }),
            Message::Leased(group, founding::Message { digest: 7, body: founding::Body::Inside }),
            Message::Central(group, names::Message::Who(vec![NodeId::new(3); 9])),
        ] {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            assert!(bytes.len() >= LEAST);
            assert_eq!(bytes.len(), message.encoded_len());
            let mut reader = Reader::new(&bytes);
            assert_eq!(Message::decode(&mut reader).as_ref(), Ok(&message));
            assert_eq!(reader.finish(), Ok(()));
            *bytes.last_mut().unwrap() ^= 1;
            assert_ne!(Message::decode(&mut Reader::new(&bytes)).as_ref(), Ok(&message));
        }
        assert!(Message::decode(&mut Reader::new(&[21; 40])).is_err());
        assert!(Message::decode(&mut Reader::new(&[])).is_err());
    }

    fn one_of_each_kind() -> Vec<Message> {
        let group = ElectionId::named("door");
        let ping = medley::Message {
            sequence: 1,
            incarnation: Incarnation::default(),
            body: medley::Body::ReportAlive,
            updates: vec![],
            introductions: vec![],
        };
        let ack = churn_tolerant::Message::LeaderAck {
            epoch: Epoch::mint(3, Peer::new(NodeId::new(3), Boot::new(1))),
            confirmed: true,
        };
        let inside = founding::Body::Inside;
        let vote = bandit::Message::Vote { term: 7 };
        vec![
            Message::Stack(stack::Message::Membership(ping.clone())),
            Message::Stack(stack::Message::Election(group, ack)),
            Message::Stack(stack::Message::Churn(survey::Message::Query { sample: 5 })),
            Message::Announced(group, announce::Message::Bye { sequence: 1, epoch: 2 }),
            Message::Leased(group, founding::Message { digest: 7, body: inside.clone() }),
            Message::Learned(group, voters::Message { digest: 7, body: vote }),
            Message::Central(group, names::Message::Who(vec![NodeId::new(3); 9])),
            carried(Message::Stack(stack::Message::Membership(ping.clone()))),
            carried(Message::Leased(group, founding::Message { digest: 7, body: inside.clone() })),
        ]
    }

    fn carried(body: Message) -> Message {
        Message::Carried(Carried {
            origin: Peer::new(NodeId::new(3), Boot::new(1)),
            to: NodeId::new(4),
            number: 1,
            unheard: true,
            hops: 2,
            told: vec![NodeId::new(5)],
            body: Box::new(body),
        })
    }

    fn read(bytes: &[u8]) -> Result<Packet, DecodeError> {
        let mut reader = Reader::new(bytes);
        let packet = Packet::decode(&mut reader)?;
        reader.finish().map(|()| packet)
    }

    #[test]
    fn a_tail_is_skipped_behind_every_kind_kept_when_written_again_and_free_when_unused() {
        for message in one_of_each_kind() {
            let bare = Packet { message: message.clone(), tail: Tail::default() };
            let mut bytes = Vec::new();
            bare.encode(&mut bytes);
            assert_eq!(bytes.len(), message.encoded_len(), "not a byte");
            assert_eq!(read(&bytes).as_ref(), Ok(&bare));
            let later = Dialect::Next.encode(&message);
            assert!(later.len() > bytes.len());
            let packet = read(&later).unwrap();
            assert_eq!(packet.message, message);
            let tags: Vec<u64> = packet.tail.entries().map(|(tag, _)| tag).collect();
            assert_eq!((tags, packet.tail.get(2)), (vec![1, 2, 300], Some(&[0xff][..])));
            let mut again = Vec::new();
            packet.encode(&mut again);
            assert_eq!(again, later);
            assert_eq!(packet.encoded_len(), later.len());
            for cut in bytes.len() + 1..later.len() {
                // Between two entries there is a shorter tail.
                if ![bytes.len() + 2, bytes.len() + 5].contains(&cut) {
                    assert!(read(&later[..cut]).is_err(), "cut to {cut}");
                }
            }
        }
    }

    #[test]
    fn there_is_one_way_to_write_a_tail() {
        let message = one_of_each_kind().remove(0);
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        for (tail, reason) in [
            (&[2, 0, 1, 0][..], "malformed"),
            (&[1, 0, 1, 0], "malformed"),
            (&[0x81, 0], "malformed"),
            (&[1, 2, 0], "malformed"),
            (&[1], "short"),
        ] {
            let error = read(&[&bytes, tail].concat()).unwrap_err();
            assert_eq!(error.reason(), reason, "{tail:?}: {error}");
        }
        let mut tail = Tail::default();
        tail.push(4, b"x").unwrap();
        assert_eq!(tail.push(4, b"y"), Err(TagOrder { tag: 4, last: 4 }));
    }

    #[test]
    fn a_kind_nobody_knows_is_unknown_and_not_malformed() {
        for message in one_of_each_kind() {
            let aside = Dialect::Next.aside(&message).unwrap();
            assert_eq!(read(&aside).unwrap_err().reason(), "unknown-kind", "{message:?}");
            assert_eq!(Dialect::Present.aside(&message), None);
        }
    }
}
