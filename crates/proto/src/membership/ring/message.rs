//! What members say to each other, and how it is written.

use alloc::vec::Vec;

use super::view::{Fact, Kind};
use crate::{
    id::{Boot, Incarnation, NodeId, Peer},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// One life of one member: a life that has ended never comes back (M3). The incarnation grows within a boot, with
/// every attempt to join.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Life {
    /// Which boot of whom.
    pub peer: Peer,
    /// Which incarnation of it.
    pub inc: Incarnation,
}

impl Life {
    /// The one life of a node outside the ring that only arbitrates, as lists of arbitrators name it.
    pub const fn outside(id: NodeId) -> Self {
        Self { peer: Peer::new(id, Boot::new(0)), inc: Incarnation::new(0) }
    }

    /// The node whose life it is.
    pub const fn id(&self) -> NodeId {
        self.peer.id
    }

    /// What decides which of two lives of one node is the later.
    pub const fn age(&self) -> (Boot, Incarnation) {
        (self.peer.boot, self.inc)
    }
}

/// Which group of a pair: one counter for each end as published, one for the pair (the first) in joint upgrades.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Version {
    /// Of the lower end, or of the pair.
    pub low: u32,
    /// Of the higher end.
    pub high: u32,
}

impl Version {
    /// Whether either counter is behind (E16).
    pub const fn is_behind(&self, other: Self) -> bool {
        self.low < other.low || self.high < other.high
    }
}

/// The arbitrators of a pair.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Group {
    /// Which lease of the pair: when its inviter opened it, on its own clock. A pair that was closed and comes
    /// together again has a new one.
    pub born: u64,
    /// Which group of it.
    pub version: Version,
    /// Who sits in it, ascending, the pair included.
    pub members: Vec<Life>,
}

impl Group {
    /// Whether this life sits in it.
    pub fn seats(&self, life: Life) -> bool {
        self.members.binary_search(&life).is_ok()
    }
}

/// A lease message: request or acknowledgement of one session.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Session {
    /// The number of the session.
    pub number: u64,
    /// For which life: a new one never answers for an old one (E25).
    pub to: (Boot, Incarnation),
    /// What the request is.
    pub stage: Stage,
    /// Whether the sender votes and never leads.
    pub witness: bool,
    /// Of all facts known to the sender.
    pub digest: u64,
    /// Facts the receiver may lack.
    pub facts: Vec<Fact>,
    /// The second phase of an upgrade, until it is acknowledged (R7.3); in an invitation, and in the answer to one
    /// of a joiner, the first group.
    pub group: Option<Group>,
    /// Of a joiner: its neighbourhood. As published, of whoever upgrades: its new one.
    pub neighbours: Vec<Life>,
}

/// What a lease request is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Stage {
    /// One of many.
    Keep,
    /// The first of a pair of members.
    Invite,
    /// The second: the pair arbitrates from now on.
    Confirm,
    /// The first of a joiner (R8.4).
    Join,
}

/// An arbitrator's answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Vote {
    /// The accuser stays.
    Accept,
    /// You are accused yourself, or too new a group, or I am.
    Reject(Reason),
    /// There is no such lease any more: nobody need leave (R8.10).
    Closed,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// Who asks was accused by the other, first.
    Conflict,
    /// The arbitrator is too new to know.
    Fresh,
    /// The group asked is an old one.
    Stale,
}

/// A message: which incarnation speaks, and what it says.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Message {
    /// Of the sender.
    pub inc: Incarnation,
    /// What is said.
    pub body: Body,
}

/// What is said.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Body {
    /// A lease request.
    Request(Session),
    /// Acknowledges a request for a lease.
    Ack(Session),
    /// The lease on `accused` has run out: may I stay?
    Ask {
        /// The other one.
        accused: Life,
        /// The group that is asked, as the asker has it.
        group: Group,
    },
    /// The answer to an accusation.
    Answer {
        /// The life that was accused.
        accused: Life,
        /// The vote of this arbitrator.
        vote: Vote,
        /// Later groups of the pair, promised or installed: they must be won too.
        newer: Vec<Group>,
    },
    /// I leave: `accused` may have my votes (R12).
    Concede {
        /// The other one.
        accused: Life,
        /// When the lease began, which tells it from later ones.
        born: u64,
    },
    /// Let this be the group of ours from now on.
    Propose {
        /// The other end.
        peer: Life,
        /// The group that is asked.
        base: Group,
        /// The new one.
        next: Group,
    },
    /// The answer to a proposal.
    Proposed {
        /// The other end.
        peer: Life,
        /// The version proposed.
        version: Version,
        /// Whether it is accepted.
        granted: bool,
    },
    /// Forget that proposal.
    Retract {
        /// The other end.
        peer: Life,
        /// The version proposed.
        version: Version,
    },
    /// Our group has changed.
    Upgraded {
        /// The group of arbitrators that it has changed to.
        group: Group,
        /// As published: the sender's new neighbourhood.
        neighbours: Vec<Life>,
    },
    /// Let the lease of ours end without a loser (R8.10).
    CloseAsk {
        /// The other end.
        peer: Life,
        /// When the lease began, which tells it from later ones.
        born: u64,
    },
    /// The answer to a request to close.
    CloseAnswer {
        /// The other end.
        peer: Life,
        /// When the lease began, which tells it from later ones.
        born: u64,
        /// Whether it is closed here.
        granted: bool,
    },
    /// Our lease has been closed.
    Closed {
        /// When the lease began, which tells it from later ones.
        born: u64,
    },
    /// Who is around the place of mine?
    Find,
    /// Ask this one.
    Redirect {
        /// The owner of the place.
        owner: NodeId,
    },
    /// These; the sender is the owner.
    Neighbours {
        /// The owner's neighbourhood and itself.
        list: Vec<Fact>,
    },
    /// Not now: another one is joining.
    Busy,
    /// Keep your neighbourhood as it is while I join.
    Lock,
    /// The answer to a request to lock.
    LockAnswer {
        /// Whether it is locked.
        granted: bool,
    },
    /// I do not join after all.
    Unlock,
    /// News for everybody between the receiver and `end` (R9.2).
    Spread {
        /// The news that are passed on.
        facts: Vec<Fact>,
        /// Who began to tell.
        emitter: NodeId,
        /// The point up to which the receiver passes it on.
        end: u64,
    },
    /// News that must have arrived before I go on (R8.11).
    Tell {
        /// The news that is passed on.
        fact: Fact,
    },
    /// Answers that the news has arrived.
    Told {
        /// The news that has arrived.
        fact: Fact,
    },
    /// Says that the sender leaves the ring.
    Leave {
        /// Whether it lost an arbitration.
        forced: bool,
    },
    /// Answers that the goodbye was heard.
    LeaveAck,
}

impl Body {
    /// Whether the receiver answers, if it has nothing against the sender.
    pub const fn awaits_answer(&self) -> bool {
        matches!(
            self,
            Self::Request(_)
                | Self::Ask { .. }
                | Self::Propose { .. }
                | Self::CloseAsk { .. }
                | Self::Find
                | Self::Lock
                | Self::Tell { .. }
        )
    }
}

fn put_all<T: Wire>(sink: &mut impl Sink, all: &[T]) {
    sink.varint(all.len() as u64);
    all.iter().for_each(|one| one.encode(sink));
}

fn take_all<T: Wire>(
    reader: &mut Reader<'_>,
    field: &'static str,
    least: usize,
) -> Result<Vec<T>, DecodeError> {
    let count = reader.count(field, least)?;
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(T::decode(reader)?);
    }
    Ok(all)
}

fn take_flag(reader: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    Ok(reader.kind(field, 2)? == 1)
}

impl Wire for Life {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u64(self.peer.id.get());
        sink.varint(self.peer.boot.get());
        sink.varint(self.inc.get().into());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = NodeId::new(reader.u64("member")?);
        let boot = Boot::new(reader.varint("member boot")?);
        let inc = Incarnation::new(reader.varint32("member incarnation")?);
        Ok(Self { peer: Peer::new(id, boot), inc })
    }
}

impl Wire for Fact {
    fn encode(&self, sink: &mut impl Sink) {
        self.life.encode(sink);
        sink.u8(self.kind as u8);
        sink.u8(self.witness.into());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let life = Life::decode(reader)?;
        let kind = match reader.kind("fact kind", 3)? {
            0 => Kind::Member,
            1 => Kind::Left,
            _ => Kind::Buried,
        };
        Ok(Self { life, kind, witness: take_flag(reader, "witness")? })
    }
}

impl Wire for Version {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.low.into());
        sink.varint(self.high.into());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let low = reader.varint32("version")?;
        Ok(Self { low, high: reader.varint32("version")? })
    }
}

impl Wire for Group {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.born);
        self.version.encode(sink);
        put_all(sink, &self.members);
    }

    /// Ascending, or two encodings would mean the same group.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let born = reader.varint("group born")?;
        let version = Version::decode(reader)?;
        let members: Vec<Life> = take_all(reader, "group", LIFE)?;
        if !members.is_sorted_by(|a, b| a < b) {
            let (at, found) = (reader.at(), members.len() as u64);
            return Err(DecodeError::OutOfRange { field: "order of group", at, found, limit: 0 });
        }
        Ok(Self { born, version, members })
    }
}

impl Wire for Session {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.number);
        sink.varint(self.to.0.get());
        sink.varint(self.to.1.get().into());
        let flags = u8::from(self.group.is_some()) << 2 | u8::from(self.witness) << 3;
        sink.u8(self.stage as u8 | flags);
        sink.u64(self.digest);
        put_all(sink, &self.facts);
        if let Some(group) = &self.group {
            group.encode(sink);
        }
        put_all(sink, &self.neighbours);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = reader.varint("session")?;
        let boot = Boot::new(reader.varint("session boot")?);
        let to = (boot, Incarnation::new(reader.varint32("session incarnation")?));
        let bits = reader.kind("session stage", 16)?;
        let stage = match bits & 3 {
            0 => Stage::Keep,
            1 => Stage::Invite,
            2 => Stage::Confirm,
            _ => Stage::Join,
        };
        let digest = reader.u64("digest")?;
        let facts = take_all(reader, "facts", LIFE + 2)?;
        let group = (bits & 4 != 0).then(|| Group::decode(reader)).transpose()?;
        let neighbours = take_all(reader, "neighbours", LIFE)?;
        let witness = bits & 8 != 0;
        Ok(Self { number, to, stage, witness, digest, facts, group, neighbours })
    }
}

impl Wire for Vote {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u8(match self {
            Self::Accept => 0,
            Self::Reject(Reason::Conflict) => 1,
            Self::Reject(Reason::Fresh) => 2,
            Self::Reject(Reason::Stale) => 3,
            Self::Closed => 4,
        });
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.kind("vote", 5)? {
            0 => Self::Accept,
            1 => Self::Reject(Reason::Conflict),
            2 => Self::Reject(Reason::Fresh),
            3 => Self::Reject(Reason::Stale),
            _ => Self::Closed,
        })
    }
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.inc.get().into());
        self.body.encode(sink);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let inc = Incarnation::new(reader.varint32("incarnation")?);
        Ok(Self { inc, body: Body::decode(reader)? })
    }
}

impl Wire for Body {
    fn encode(&self, sink: &mut impl Sink) {
        let kind = |sink: &mut _, kind| Sink::u8(sink, kind);
        match self {
            Self::Request(session) | Self::Ack(session) => {
                kind(sink, u8::from(matches!(self, Self::Ack(_))));
                session.encode(sink);
            }
            Self::Ask { accused, group } => {
                kind(sink, 2);
                accused.encode(sink);
                group.encode(sink);
            }
            Self::Answer { accused, vote, newer } => {
                kind(sink, 3);
                accused.encode(sink);
                vote.encode(sink);
                put_all(sink, newer);
            }
            Self::Concede { accused: life, born } | Self::CloseAsk { peer: life, born } => {
                kind(sink, if matches!(self, Self::Concede { .. }) { 4 } else { 9 });
                life.encode(sink);
                sink.varint(*born);
            }
            Self::Propose { peer, base, next } => {
                kind(sink, 5);
                peer.encode(sink);
                base.encode(sink);
                next.encode(sink);
            }
            Self::Proposed { peer, version, granted } => {
                kind(sink, 6);
                peer.encode(sink);
                version.encode(sink);
                sink.u8((*granted).into());
            }
            Self::Retract { peer, version } => {
                kind(sink, 7);
                peer.encode(sink);
                version.encode(sink);
            }
            Self::Upgraded { group, neighbours } => {
                kind(sink, 8);
                group.encode(sink);
                put_all(sink, neighbours);
            }
            Self::CloseAnswer { peer, born, granted } => {
                kind(sink, 10);
                peer.encode(sink);
                sink.varint(*born);
                sink.u8((*granted).into());
            }
            Self::Closed { born } => {
                kind(sink, 11);
                sink.varint(*born);
            }
            Self::Find => kind(sink, 12),
            Self::Redirect { owner } => {
                kind(sink, 13);
                sink.u64(owner.get());
            }
            Self::Neighbours { list } => {
                kind(sink, 14);
                put_all(sink, list);
            }
            Self::Busy => kind(sink, 15),
            Self::Lock => kind(sink, 16),
            Self::LockAnswer { granted } => {
                kind(sink, 17);
                sink.u8((*granted).into());
            }
            Self::Unlock => kind(sink, 18),
            Self::Spread { facts, emitter, end } => {
                kind(sink, 19);
                put_all(sink, facts);
                sink.u64(emitter.get());
                sink.u64(*end);
            }
            Self::Tell { fact } | Self::Told { fact } => {
                kind(sink, if matches!(self, Self::Tell { .. }) { 20 } else { 21 });
                fact.encode(sink);
            }
            Self::Leave { forced } => {
                kind(sink, 22);
                sink.u8((*forced).into());
            }
            Self::LeaveAck => kind(sink, 23),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.kind("ring message", 24)? {
            0 => Self::Request(Session::decode(reader)?),
            1 => Self::Ack(Session::decode(reader)?),
            2 => Self::Ask { accused: Life::decode(reader)?, group: Group::decode(reader)? },
            3 => Self::Answer {
                accused: Life::decode(reader)?,
                vote: Vote::decode(reader)?,
                newer: take_all(reader, "newer groups", 4)?,
            },
            4 => Self::Concede { accused: Life::decode(reader)?, born: reader.varint("born")? },
            5 => Self::Propose {
                peer: Life::decode(reader)?,
                base: Group::decode(reader)?,
                next: Group::decode(reader)?,
            },
            6 => Self::Proposed {
                peer: Life::decode(reader)?,
                version: Version::decode(reader)?,
                granted: take_flag(reader, "granted")?,
            },
            7 => Self::Retract { peer: Life::decode(reader)?, version: Version::decode(reader)? },
            8 => Self::Upgraded {
                group: Group::decode(reader)?,
                neighbours: take_all(reader, "neighbours", LIFE)?,
            },
            9 => Self::CloseAsk { peer: Life::decode(reader)?, born: reader.varint("born")? },
            10 => Self::CloseAnswer {
                peer: Life::decode(reader)?,
                born: reader.varint("born")?,
                granted: take_flag(reader, "granted")?,
            },
            11 => Self::Closed { born: reader.varint("born")? },
            12 => Self::Find,
            13 => Self::Redirect { owner: NodeId::new(reader.u64("owner")?) },
            14 => Self::Neighbours { list: take_all(reader, "neighbours", LIFE + 2)? },
            15 => Self::Busy,
            16 => Self::Lock,
            17 => Self::LockAnswer { granted: take_flag(reader, "granted")? },
            18 => Self::Unlock,
            19 => Self::Spread {
                facts: take_all(reader, "facts", LIFE + 2)?,
                emitter: NodeId::new(reader.u64("emitter")?),
                end: reader.u64("end")?,
            },
            20 => Self::Tell { fact: Fact::decode(reader)? },
            21 => Self::Told { fact: Fact::decode(reader)? },
            22 => Self::Leave { forced: take_flag(reader, "forced")? },
            _ => Self::LeaveAck,
        })
    }
}

/// A life takes at least this many bytes.
const LIFE: usize = 10;
