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
//!
//! Kinds from 16 on are filled up with zeros to [`LEAST`] bytes. They may come from a stranger, which the host asks who
//! it is; the question must not be longer than what provoked it.

use super::{founding, names, voters};
use crate::{
    election::announce,
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
}

/// The shortest packet of an election beside the stack.
pub const LEAST: usize = 32;

/// The number of the election, behind the kind.
pub(super) const PREFIX: usize = 1 + 4;

impl Message {
    /// The election it is of; `None` for the membership and the survey.
    pub const fn group(&self) -> Option<Group> {
        match self {
            Self::Stack(stack::Message::Election(group, _))
            | Self::Announced(group, _)
            | Self::Leased(group, _)
            | Self::Learned(group, _)
            | Self::Central(group, _) => Some(*group),
            Self::Stack(_) => None,
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
            found => {
                let found = u64::from(found);
                return Err(DecodeError::UnknownKind { field: "kind", at, found });
            }
        })
    }
}

const ANNOUNCED: u8 = 16;
const LEASED: u8 = 17;
const LEARNED: u8 = 18;
const CENTRAL: u8 = 19;

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::*;
    use crate::NodeId;

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
        assert!(Message::decode(&mut Reader::new(&[20; 40])).is_err());
        assert!(Message::decode(&mut Reader::new(&[])).is_err());
    }
}
