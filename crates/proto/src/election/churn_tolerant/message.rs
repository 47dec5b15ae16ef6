//! What nodes say to each other, and how it looks on the wire.

use alloc::vec::Vec;

use crate::{
    epoch::Epoch,
    id::{Boot, Incarnation, NodeId, Peer},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// What nodes say to each other. The seal names the sender and its life. As published, terms and
/// attempts are zero and mean nothing.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// Whom would you elect?
    Query(Query),
    /// Answers a query: whom the sender would elect.
    Response(Response),
    /// Tells the receiver that it leads.
    NotifyLeader {
        /// Under this token.
        epoch: Epoch,
        /// Whether `c + 1` answers support it; otherwise somebody else may soon lead instead (C-25).
        confirmed: bool,
        /// Whether a leader has named its successor: nobody objects then, however much better.
        appointed: bool,
        /// `c` as far as the notifier knows.
        churn: u16,
    },
    /// This one leads.
    Leader(Claim),
    /// This is the last LEADER I have heard. Whoever knows better says so.
    LeaderAck {
        /// The token of that leader.
        epoch: Epoch,
        /// Whether it was said to be supported by `c + 1` answers. As published it means nothing.
        confirmed: bool,
    },
    /// I should lead instead: you were elected because too many lists lacked me (RP1).
    Object {
        /// Under which token its receiver leads.
        epoch: Epoch,
        /// The sender's incarnation.
        incarnation: Incarnation,
        /// What the sender is worth.
        attribute: u32,
    },
}

/// The question of an initiator.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Query {
    /// The initiator's term.
    pub term: u64,
    /// Which of its attempts within the term.
    pub attempt: u32,
    /// `x`: how many to name; one in Base and Optimistic.
    pub candidates: u16,
    /// `y`: how many unhealthy ones to name; none in Base and Optimistic.
    pub excluded: u16,
    /// Whom not to name unless in a newer life or incarnation (DC1).
    pub dead: Vec<Life>,
}

/// The answer to a [`Query`].
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Response {
    /// As in the question.
    pub term: u64,
    /// As in the question.
    pub attempt: u32,
    /// The election of highest priority the sender knows (MI5).
    pub heard: Option<Epoch>,
    /// The lowest keys on the sender's list, itself included.
    pub candidates: Vec<Candidate>,
    /// The most unhealthy on the sender's list, and how often each was suspected.
    pub excluded: Vec<(NodeId, u32)>,
}

/// Who leads, and under which token.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Claim {
    /// The fencing token.
    pub epoch: Epoch,
    /// Who leads, and what it is worth.
    pub leader: Candidate,
    /// Whether `c + 1` answers support it.
    pub confirmed: bool,
    /// Whether the leader before it has named it: nobody objects then.
    pub appointed: bool,
    /// `c` as of this token: the newest wins (RP4).
    pub churn: u16,
}

/// One incarnation of one life of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Life {
    /// Which life of whom.
    pub peer: Peer,
    /// Which incarnation of it.
    pub incarnation: Incarnation,
}

impl Life {
    /// Whether somebody dead as of `self` is dead as of `other` too.
    pub(super) fn buries(&self, other: Self) -> bool {
        self.peer.id == other.peer.id
            && (other.peer.boot, other.incarnation) <= (self.peer.boot, self.incarnation)
    }
}

/// Somebody who may lead.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Candidate {
    /// Which life of whom.
    pub peer: Peer,
    /// Which incarnation of it.
    pub incarnation: Incarnation,
    /// What it is worth by the attribute criterion.
    pub attribute: u32,
}

impl Candidate {
    /// A node of which nothing but the name is known.
    pub(super) const fn worthless(id: NodeId) -> Self {
        let (boot, incarnation) = (Boot::new(0), Incarnation::new(0));
        Self { peer: Peer::new(id, boot), incarnation, attribute: 0 }
    }

    pub(super) const fn life(&self) -> Life {
        Life { peer: self.peer, incarnation: self.incarnation }
    }

    /// Whether it is one of these.
    pub(super) fn is_dead(&self, dead: &[Life]) -> bool {
        dead.iter().any(|dead| dead.buries(self.life()))
    }
}

/// The largest [`Config`](super::Config) may ask for, and what a retry may grow to: at their longest
/// they fit a datagram together.
pub(super) const MAX_CANDIDATES: u16 = 16;
/// Likewise.
pub(super) const MAX_EXCLUDED: u16 = 16;
/// Dead ones in a question.
pub(super) const MAX_DEAD: usize = 16;

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::Query(query) => {
                sink.u8(0);
                sink.varint(query.term);
                sink.varint(u64::from(query.attempt));
                sink.varint(u64::from(query.candidates));
                sink.varint(u64::from(query.excluded));
                sink.varint(query.dead.len() as u64);
                query.dead.iter().for_each(|life| put_life(sink, *life));
            }
            Self::Response(response) => {
                sink.u8(1 + u8::from(response.heard.is_some()));
                sink.varint(response.term);
                sink.varint(u64::from(response.attempt));
                if let Some(heard) = response.heard {
                    put_epoch(sink, heard);
                }
                sink.varint(response.candidates.len() as u64);
                response.candidates.iter().for_each(|candidate| put_candidate(sink, candidate));
                sink.varint(response.excluded.len() as u64);
                for &(id, times) in &response.excluded {
                    sink.u64(id.get());
                    sink.varint(u64::from(times));
                }
            }
            Self::NotifyLeader { epoch, confirmed, appointed, churn } => {
                sink.u8(3 + u8::from(*confirmed) + 2 * u8::from(*appointed));
                put_epoch(sink, *epoch);
                sink.varint(u64::from(*churn));
            }
            Self::Leader(claim) => {
                sink.u8(7 + u8::from(claim.confirmed) + 2 * u8::from(claim.appointed));
                put_epoch(sink, claim.epoch);
                put_candidate(sink, &claim.leader);
                sink.varint(u64::from(claim.churn));
            }
            Self::LeaderAck { epoch, confirmed } => {
                sink.u8(if *confirmed { 11 } else { 13 });
                put_epoch(sink, *epoch);
            }
            Self::Object { epoch, incarnation, attribute } => {
                sink.u8(12);
                put_epoch(sink, *epoch);
                sink.varint(u64::from(incarnation.get()));
                sink.varint(u64::from(*attribute));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = reader.kind("churn-tolerant message", 14)?;
        Ok(match kind {
            0 => Self::Query(Query {
                term: reader.varint("term")?,
                attempt: reader.varint32("attempt")?,
                candidates: reader.varint16("candidates")?,
                excluded: reader.varint16("excluded")?,
                dead: items(reader, "dead", MIN_LIFE, life)?,
            }),
            1 | 2 => Self::Response(Response {
                term: reader.varint("term")?,
                attempt: reader.varint32("attempt")?,
                heard: if kind == 2 { Some(epoch(reader)?) } else { None },
                candidates: items(reader, "candidates", MIN_LIFE + 1, candidate)?,
                excluded: items(reader, "excluded", 9, |reader| {
                    Ok((node(reader, "excluded")?, reader.varint32("suspicions")?))
                })?,
            }),
            3..=6 => Self::NotifyLeader {
                epoch: epoch(reader)?,
                confirmed: (kind - 3) & 1 == 1,
                appointed: (kind - 3) & 2 == 2,
                churn: reader.varint16("churn")?,
            },
            7..=10 => Self::Leader(Claim {
                epoch: epoch(reader)?,
                leader: candidate(reader)?,
                confirmed: (kind - 7) & 1 == 1,
                appointed: (kind - 7) & 2 == 2,
                churn: reader.varint16("churn")?,
            }),
            11 | 13 => Self::LeaderAck { epoch: epoch(reader)?, confirmed: kind == 11 },
            _ => Self::Object {
                epoch: epoch(reader)?,
                incarnation: Incarnation::new(reader.varint32("incarnation")?),
                attribute: reader.varint32("attribute")?,
            },
        })
    }
}

/// The smallest encoding of a [`Life`].
const MIN_LIFE: usize = 8 + 1 + 1;

fn put_epoch(sink: &mut impl Sink, epoch: Epoch) {
    sink.varint(epoch.counter());
    sink.u64(epoch.minter().id.get());
    sink.varint(epoch.minter().boot.get());
    sink.varint(u64::from(epoch.sequence()));
}

fn put_life(sink: &mut impl Sink, life: Life) {
    sink.u64(life.peer.id.get());
    sink.varint(life.peer.boot.get());
    sink.varint(u64::from(life.incarnation.get()));
}

fn put_candidate(sink: &mut impl Sink, candidate: &Candidate) {
    put_life(sink, candidate.life());
    sink.varint(u64::from(candidate.attribute));
}

fn epoch(reader: &mut Reader<'_>) -> Result<Epoch, DecodeError> {
    let counter = reader.varint("term")?;
    let minter = peer(reader, "minter")?;
    Ok(Epoch::nth(counter, minter, reader.varint32("token sequence")?))
}

fn life(reader: &mut Reader<'_>) -> Result<Life, DecodeError> {
    let peer = peer(reader, "node")?;
    Ok(Life { peer, incarnation: Incarnation::new(reader.varint32("incarnation")?) })
}

fn candidate(reader: &mut Reader<'_>) -> Result<Candidate, DecodeError> {
    let Life { peer, incarnation } = life(reader)?;
    Ok(Candidate { peer, incarnation, attribute: reader.varint32("attribute")? })
}

fn peer(reader: &mut Reader<'_>, field: &'static str) -> Result<Peer, DecodeError> {
    let id = node(reader, field)?;
    Ok(Peer::new(id, Boot::new(reader.varint("boot")?)))
}

fn node(reader: &mut Reader<'_>, field: &'static str) -> Result<NodeId, DecodeError> {
    Ok(NodeId::new(reader.u64(field)?))
}

fn items<T>(
    reader: &mut Reader<'_>,
    field: &'static str,
    item_len: usize,
    mut item: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = reader.count(field, item_len)?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(item(reader)?);
    }
    Ok(items)
}
