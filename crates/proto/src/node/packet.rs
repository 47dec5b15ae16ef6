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

use alloc::{boxed::Box, vec::Vec};

use super::{founding, names, voters};
use crate::{
    election::announce,
    id::{Boot, NodeId, Peer},
    stack::{self, Group},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// A packet.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// Of the membership, of an eventual election on it, or about `c`.
    Stack(stack::Message),
    /// Of an announced election.
    Announced(Group, announce::Message),
    /// Of a leased election.
    Leased(Group, founding::Message),
    /// Of a learned election.
    Learned(Group, voters::Message),
    /// Of a central election.
    Central(Group, names::Message),
    /// One of them on its way by others.
    Carried(Carried),
}

/// A packet on its way by others, as the link between the two concerned is in [doubt](crate::mechanism::paths).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Carried {
    /// Whose word it is.
    pub origin: Peer,
    /// For whom.
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

/// The shortest packet of an election beside the stack.
pub const LEAST: usize = 32;

/// The number of the election, behind the kind.
pub(super) const PREFIX: usize = 1 + 4;

impl Message {
    /// The election it is of; `None` for the membership and the survey.
    pub fn group(&self) -> Option<Group> {
        match self {
            Self::Stack(stack::Message::Election(group, _))
            | Self::Announced(group, _)
            | Self::Leased(group, _)
            | Self::Learned(group, _)
            | Self::Central(group, _) => Some(*group),
            Self::Carried(carried) => carried.body.group(),
            Self::Stack(_) => None,
        }
    }
}

impl Message {
    /// Whether the receiver says something in turn, if all is well: silence is evidence about the link then.
    pub(super) fn awaits_answer(&self) -> bool {
        match self {
            Self::Leased(_, message) => match &message.body {
                founding::Body::Machine { message, .. } => message.body.awaits_answer(),
                founding::Body::Ready { .. } => true,
                founding::Body::Inside { .. } => false,
            },
            Self::Learned(_, message) => message.body.kind().awaits_answer(),
            Self::Stack(message) => message.awaits_answer(),
            Self::Announced(..) | Self::Central(..) | Self::Carried(_) => false,
        }
    }
}

fn put(kind: u8, group: Group, message: &impl Wire, sink: &mut impl Sink) {
    sink.u8(kind);
    sink.u32(group.number());
    message.encode(sink);
    const ZEROS: [u8; LEAST] = [0; LEAST];
    let length = PREFIX + message.encoded_len();
    sink.bytes(&ZEROS[..LEAST.saturating_sub(length)]);
}

fn rest<M: Wire>(start: usize, reader: &mut Reader<'_>) -> Result<(Group, M), DecodeError> {
    let group = Group::from_number(reader.u32("election")?);
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

    #[test]
    fn short_packets_are_filled_up_and_nothing_hides_in_the_filling() {
        let group = Group::named("door");
        for message in [
            Message::Announced(group, announce::Message::Bye { sequence: 1, epoch: 2 }),
            Message::Leased(
                group,
                founding::Message { digest: 7, body: founding::Body::Inside { founding: 9 } },
            ),
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
}
