//! What nodes and clients say to each other, and how it looks on the wire.

use alloc::vec::Vec;

use crate::{
    id::{Boot, NodeId, Peer},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// What nodes and clients say to each other. The seal names the sender.
///
/// `term` orders what is said. As published there are no terms: the sender's clock, in microseconds, stands in for
/// them.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// A client wants something done.
    ClientRequest {
        /// Which of its requests.
        number: u64,
        /// How often it has been broadcast; 0 while it goes to the leader alone.
        attempt: u32,
    },
    /// It is done. The sender leads.
    Reply {
        /// The number of the request.
        number: u64,
        /// Since which term.
        term: u64,
    },
    /// The leader tells the others of a request.
    RequestBroadcast {
        /// The request that it is about.
        request: Request,
        /// Under which term.
        term: u64,
    },
    /// It was heard.
    ReplyBroadcast {
        /// The request that it is about.
        request: Request,
        /// Under which term.
        term: u64,
    },
    /// Whom the sender would elect, best first.
    ShareCandidate {
        /// In which term.
        term: u64,
        /// The candidates, the best first.
        list: Vec<NodeId>,
    },
    /// The sender leads.
    ConfirmElection {
        /// From which term on.
        term: u64,
        /// Whose votes it has; empty as published.
        voters: Vec<NodeId>,
    },
    /// The sender's one vote of a term is for the receiver. Hardened only.
    Vote {
        /// The term of the vote.
        term: u64,
    },
    /// What was said is out of date. Hardened only.
    TermHint {
        /// The term the sender is in.
        term: u64,
        /// Who leads it, if that is known.
        leader: Option<Peer>,
    },
    /// The leader lives. Hardened only.
    Heartbeat {
        /// The term of the sender.
        term: u64,
    },
    /// It was heard.
    HeartbeatAck {
        /// Of which term.
        term: u64,
    },
    /// The sender leads no longer, of its own accord. Hardened only.
    Resigned {
        /// The term of the sender.
        term: u64,
    },
    /// A clearly better leader than the receiver is there, as far as the sender knows. Hardened only.
    Objection {
        /// The term that the receiver leads.
        term: u64,
    },
    /// What the sender holds against itself: it is up, and does not do what it should. Hardened only.
    Admission {
        /// How badly it does, in hundredths.
        percent: u8,
    },
    /// Are you there?
    Ping {
        /// To tell answers apart.
        nonce: u64,
    },
    /// Answers a ping.
    PingReply {
        /// The number that the ping carried.
        nonce: u64,
    },
}

/// A request of a client.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Request {
    /// The client that made it.
    pub client: NodeId,
    /// Which of its requests.
    pub number: u64,
}

impl Message {
    /// A short stable name, for counters.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::ClientRequest { .. } => Kind::ClientRequest,
            Self::Reply { .. } => Kind::Reply,
            Self::RequestBroadcast { .. } => Kind::RequestBroadcast,
            Self::ReplyBroadcast { .. } => Kind::ReplyBroadcast,
            Self::ShareCandidate { .. } => Kind::ShareCandidate,
            Self::ConfirmElection { .. } => Kind::ConfirmElection,
            Self::Vote { .. } => Kind::Vote,
            Self::TermHint { .. } => Kind::TermHint,
            Self::Heartbeat { .. } => Kind::Heartbeat,
            Self::HeartbeatAck { .. } => Kind::HeartbeatAck,
            Self::Resigned { .. } => Kind::Resigned,
            Self::Ping { .. } => Kind::Ping,
            Self::PingReply { .. } => Kind::PingReply,
            Self::Objection { .. } => Kind::Objection,
            Self::Admission { .. } => Kind::Admission,
        }
    }
}

/// The kinds of [`Message`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// That of [`Message::ClientRequest`].
    ClientRequest,
    /// That of [`Message::Reply`].
    Reply,
    /// That of [`Message::RequestBroadcast`].
    RequestBroadcast,
    /// That of [`Message::ReplyBroadcast`].
    ReplyBroadcast,
    /// That of [`Message::ShareCandidate`].
    ShareCandidate,
    /// That of [`Message::ConfirmElection`].
    ConfirmElection,
    /// That of [`Message::Vote`].
    Vote,
    /// That of [`Message::TermHint`].
    TermHint,
    /// That of [`Message::Heartbeat`].
    Heartbeat,
    /// That of [`Message::HeartbeatAck`].
    HeartbeatAck,
    /// That of [`Message::Resigned`].
    Resigned,
    /// That of [`Message::Ping`].
    Ping,
    /// That of [`Message::PingReply`].
    PingReply,
    /// That of [`Message::Objection`].
    Objection,
    /// That of [`Message::Admission`].
    Admission,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 15;

    /// Whether the receiver says something in turn, if all is well.
    pub const fn awaits_answer(self) -> bool {
        matches!(self, Self::ShareCandidate | Self::Heartbeat)
    }

    /// Whether it belongs to an election, rather than to serving clients or watching nodes.
    pub const fn elects(self) -> bool {
        matches!(
            self,
            Self::ShareCandidate
                | Self::ConfirmElection
                | Self::Vote
                | Self::TermHint
                | Self::Resigned
                | Self::Objection
        )
    }
}

/// The most members there may be: half of them and one fit a datagram.
pub const MAX_MEMBERS: usize = 255;

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u8(self.kind() as u8);
        match self {
            Self::ClientRequest { number, attempt } => {
                sink.varint(*number);
                sink.varint(u64::from(*attempt));
            }
            Self::Reply { number, term } => {
                sink.varint(*number);
                sink.varint(*term);
            }
            Self::RequestBroadcast { request, term } | Self::ReplyBroadcast { request, term } => {
                sink.u64(request.client.get());
                sink.varint(request.number);
                sink.varint(*term);
            }
            Self::ShareCandidate { term, list: nodes }
            | Self::ConfirmElection { term, voters: nodes } => {
                sink.varint(*term);
                sink.varint(nodes.len() as u64);
                nodes.iter().for_each(|node| sink.u64(node.get()));
            }
            Self::TermHint { term, leader } => {
                sink.varint(*term);
                sink.u8(u8::from(leader.is_some()));
                if let Some(leader) = leader {
                    sink.u64(leader.id.get());
                    sink.varint(leader.boot.get());
                }
            }
            Self::Vote { term }
            | Self::Heartbeat { term }
            | Self::HeartbeatAck { term }
            | Self::Resigned { term }
            | Self::Objection { term } => sink.varint(*term),
            Self::Admission { percent } => sink.u8(*percent),
            Self::Ping { nonce } | Self::PingReply { nonce } => sink.varint(*nonce),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.kind("bandit message", Kind::COUNT as u8)? {
            0 => Self::ClientRequest {
                number: reader.varint("request")?,
                attempt: reader.varint32("attempt")?,
            },
            1 => Self::Reply { number: reader.varint("request")?, term: reader.varint("term")? },
            2 => Self::RequestBroadcast { request: request(reader)?, term: reader.varint("term")? },
            3 => Self::ReplyBroadcast { request: request(reader)?, term: reader.varint("term")? },
            4 => {
                Self::ShareCandidate { term: reader.varint("term")?, list: nodes(reader, "list")? }
            }
            5 => {
                let term = reader.varint("term")?;
                Self::ConfirmElection { term, voters: nodes(reader, "voters")? }
            }
            6 => Self::Vote { term: reader.varint("term")? },
            7 => {
                let term = reader.varint("term")?;
                let leader = match reader.kind("leader known", 2)? {
                    0 => None,
                    _ => {
                        let id = NodeId::new(reader.u64("leader")?);
                        Some(Peer::new(id, Boot::new(reader.varint("boot")?)))
                    }
                };
                Self::TermHint { term, leader }
            }
            8 => Self::Heartbeat { term: reader.varint("term")? },
            9 => Self::HeartbeatAck { term: reader.varint("term")? },
            10 => Self::Resigned { term: reader.varint("term")? },
            11 => Self::Ping { nonce: reader.varint("nonce")? },
            12 => Self::PingReply { nonce: reader.varint("nonce")? },
            13 => Self::Objection { term: reader.varint("term")? },
            _ => {
                let (field, at) = ("percent", reader.at());
                let percent = reader.u8(field)?;
                if percent > 100 {
                    let found = u64::from(percent);
                    return Err(DecodeError::OutOfRange { field, at, found, limit: 100 });
                }
                Self::Admission { percent }
            }
        })
    }
}

fn request(reader: &mut Reader<'_>) -> Result<Request, DecodeError> {
    let client = NodeId::new(reader.u64("client")?);
    Ok(Request { client, number: reader.varint("request")? })
}

fn nodes(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<NodeId>, DecodeError> {
    let count = reader.count(field, 8)?;
    let mut nodes = Vec::with_capacity(count);
    for _ in 0..count {
        nodes.push(NodeId::new(reader.u64(field)?));
    }
    Ok(nodes)
}
