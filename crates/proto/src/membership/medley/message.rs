//! What nodes say to each other, and how it looks on the wire.

use alloc::vec::Vec;

use super::addresses::{Introduction, MIN_INTRODUCTION};
use crate::{
    id::{Boot, Incarnation, NodeId, Peer},
    time::Duration,
    wire::{DecodeError, MAX_DATAGRAM, Reader, SEAL_LEN, Sink, Wire},
};

/// What nodes say to each other. The seal names the sender and its life.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Message {
    /// Names the probe a question belongs to; an answer repeats it.
    pub sequence: u64,
    /// The sender's incarnation: every message is evidence that it lives.
    pub incarnation: Incarnation,
    /// What it is about.
    pub body: Body,
    /// News passed on; in a [`Body::JoinAck`] or [`Body::SyncAck`] a page of the sender's list.
    pub updates: Vec<Update>,
    /// Where some of those that are said to live can be reached.
    pub introductions: Vec<Introduction>,
}

/// The kinds of message.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Body {
    /// Are you there?
    Ping {
        /// Who asked the sender to ask.
        on_behalf: Option<NodeId>,
    },
    /// Answers a ping: the sender is alive.
    Ack {
        /// As in the question.
        on_behalf: Option<NodeId>,
    },
    /// Ping this one for me.
    PingReq {
        /// The one that did not answer me.
        target: NodeId,
    },
    /// It answered me.
    IndirectAck {
        /// The one that answered.
        target: Peer,
        /// The incarnation in which it answered.
        incarnation: Incarnation,
    },
    /// Who is there? I am new.
    Join {
        /// Asks for the page behind this node: a long list takes several datagrams.
        after: Option<NodeId>,
    },
    /// Answers a join with the members there are.
    JoinAck {
        /// Ask again behind this node: there are more.
        next: Option<NodeId>,
    },
    /// Who is there? I have a list, but may have missed something.
    Sync {
        /// Asks for the page behind this node.
        after: Option<NodeId>,
    },
    /// Answers a sync with the members there are.
    SyncAck {
        /// Where the next page begins, if there is one.
        next: Option<NodeId>,
    },
    /// I go. To whoever is in range.
    Leave,
    /// I live, whatever you have heard. To whoever is in range.
    ReportAlive,
    /// I am pinged too rarely. To whoever is in range.
    Unlucky,
    /// I live, and will say so again.
    Beat {
        /// How soon the next one follows.
        every: Duration,
    },
}

/// One piece of news about one life of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Update {
    /// About which life of whom.
    pub subject: Peer,
    /// And which incarnation of it.
    pub incarnation: Incarnation,
    /// What is said of it.
    pub status: Status,
}

/// What is said of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Status {
    /// The member is alive.
    Alive,
    /// It has joined. Like [`Status::Alive`], kept apart for those who watch the traffic.
    Join,
    /// It did not answer.
    Suspect {
        /// To whom first. The thesis leaves the accuser unnamed, and then nobody can tell a broken node
        /// from a broken accuser.
        by: NodeId,
    },
    /// It did not answer and nobody contradicted.
    Failed {
        /// Its first accuser.
        by: NodeId,
    },
    /// It has said goodbye.
    Left,
}

impl Status {
    /// Whether it says that its subject lives.
    pub(super) const fn is_alive(self) -> bool {
        matches!(self, Self::Alive | Self::Join)
    }
}

/// Bytes a body may take: what the seal leaves of a datagram, less 64 for authentication.
pub(super) const MAX_BODY: usize = MAX_DATAGRAM - SEAL_LEN - 64;
/// Everything but updates and introductions, at its longest: kind, sequence, incarnation, peer and
/// incarnation of an indirect ack, counts.
const MAX_HEAD: usize = 1 + 10 + 5 + 8 + 10 + 5 + 2 + 2;
/// Bodies, those with and without an optional identity counted apart.
const KINDS: u8 = 18;
/// Set in the kind of a message that has introductions. There is room for other kinds below.
const INTRODUCES: u8 = 0x80;
/// The largest encoding of an [`Update`]: subject, status, boot, incarnation, accuser.
const MAX_UPDATE: usize = 8 + 1 + 10 + 5 + 8;
/// The smallest.
const MIN_UPDATE: usize = 8 + 1 + 1 + 1;
/// Bytes for updates and introductions in any message.
pub(super) const ROOM: usize = MAX_BODY - MAX_HEAD;
/// How many updates fit any message, however large their numbers.
pub(super) const MAX_UPDATES: usize = ROOM / MAX_UPDATE;

impl Wire for Update {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u64(self.subject.id.get());
        let (status, by) = match self.status {
            Status::Alive => (0, None),
            Status::Join => (1, None),
            Status::Suspect { by } => (2, Some(by)),
            Status::Failed { by } => (3, Some(by)),
            Status::Left => (4, None),
        };
        sink.u8(status);
        sink.varint(self.subject.boot.get());
        sink.varint(u64::from(self.incarnation.get()));
        if let Some(by) = by {
            sink.u64(by.get());
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = node(reader, "subject")?;
        let kind = reader.kind("status", 5)?;
        let boot = Boot::new(reader.varint("subject boot")?);
        let incarnation = Incarnation::new(reader.varint32("subject incarnation")?);
        let status = match kind {
            0 => Status::Alive,
            1 => Status::Join,
            2 => Status::Suspect { by: node(reader, "accuser")? },
            3 => Status::Failed { by: node(reader, "accuser")? },
            _ => Status::Left,
        };
        Ok(Self { subject: Peer::new(id, boot), incarnation, status })
    }
}

/// One byte of kind, which also says whether an optional identity follows, and whether introductions do.
impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        let (kind, id) = match self.body {
            Body::Ping { on_behalf } => (u8::from(on_behalf.is_some()), on_behalf),
            Body::Ack { on_behalf } => (2 + u8::from(on_behalf.is_some()), on_behalf),
            Body::Join { after } => (4 + u8::from(after.is_some()), after),
            Body::JoinAck { next } => (6 + u8::from(next.is_some()), next),
            Body::Sync { after } => (8 + u8::from(after.is_some()), after),
            Body::SyncAck { next } => (10 + u8::from(next.is_some()), next),
            Body::PingReq { target } => (12, Some(target)),
            Body::IndirectAck { target, .. } => (13, Some(target.id)),
            Body::Leave => (14, None),
            Body::ReportAlive => (15, None),
            Body::Unlucky => (16, None),
            Body::Beat { .. } => (17, None),
        };
        let introduces = !self.introductions.is_empty();
        sink.u8(kind | if introduces { INTRODUCES } else { 0 });
        sink.varint(self.sequence);
        sink.varint(u64::from(self.incarnation.get()));
        if let Some(id) = id {
            sink.u64(id.get());
        }
        if let Body::IndirectAck { target, incarnation } = self.body {
            sink.varint(target.boot.get());
            sink.varint(u64::from(incarnation.get()));
        }
        if let Body::Beat { every } = self.body {
            sink.varint(every.as_micros());
        }
        sink.varint(self.updates.len() as u64);
        self.updates.iter().for_each(|update| update.encode(sink));
        if introduces {
            sink.varint(self.introductions.len() as u64);
            self.introductions.iter().for_each(|introduction| introduction.encode(sink));
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.at();
        let kind = reader.u8("medley message")?;
        let (introduces, kind) = (kind & INTRODUCES != 0, kind & !INTRODUCES);
        if kind >= KINDS {
            let found = u64::from(kind);
            return Err(DecodeError::UnknownKind { field: "medley message", at, found });
        }
        let sequence = reader.varint("sequence")?;
        let incarnation = Incarnation::new(reader.varint32("incarnation")?);
        let body = match kind {
            0 => Body::Ping { on_behalf: None },
            1 => Body::Ping { on_behalf: Some(node(reader, "asker")?) },
            2 => Body::Ack { on_behalf: None },
            3 => Body::Ack { on_behalf: Some(node(reader, "asker")?) },
            4 => Body::Join { after: None },
            5 => Body::Join { after: Some(node(reader, "page")?) },
            6 => Body::JoinAck { next: None },
            7 => Body::JoinAck { next: Some(node(reader, "page")?) },
            8 => Body::Sync { after: None },
            9 => Body::Sync { after: Some(node(reader, "page")?) },
            10 => Body::SyncAck { next: None },
            11 => Body::SyncAck { next: Some(node(reader, "page")?) },
            12 => Body::PingReq { target: node(reader, "target")? },
            13 => {
                let id = node(reader, "target")?;
                let target = Peer::new(id, Boot::new(reader.varint("target boot")?));
                let incarnation = Incarnation::new(reader.varint32("target incarnation")?);
                Body::IndirectAck { target, incarnation }
            }
            14 => Body::Leave,
            15 => Body::ReportAlive,
            16 => Body::Unlucky,
            _ => Body::Beat { every: Duration::from_micros(reader.varint("interval")?) },
        };
        let count = reader.count("updates", MIN_UPDATE)?;
        let mut updates = Vec::with_capacity(count);
        for _ in 0..count {
            updates.push(Update::decode(reader)?);
        }
        let at = reader.at();
        let count = if introduces { reader.count("introductions", MIN_INTRODUCTION)? } else { 0 };
        if introduces && count == 0 {
            // One encoding for every value: without introductions none are announced.
            return Err(DecodeError::BadCount {
                field: "introductions",
                at,
                found: 0,
                left: reader.rest().len(),
            });
        }
        let mut introductions = Vec::with_capacity(count);
        for _ in 0..count {
            introductions.push(Introduction::decode(reader)?);
        }
        Ok(Self { sequence, incarnation, body, updates, introductions })
    }
}

fn node(reader: &mut Reader<'_>, field: &'static str) -> Result<NodeId, DecodeError> {
    Ok(NodeId::new(reader.u64(field)?))
}
