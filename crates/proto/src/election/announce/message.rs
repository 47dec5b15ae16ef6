//! What nodes say to each other, and how it looks on the wire.

use crate::{
    id::{Boot, NodeId, Peer},
    time::Duration,
    wire::{DecodeError, Reader, Sink, Wire},
};

/// What nodes say to each other. The seal names the sender, the last part of its rank.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// I lead. Sent in answer to a question, it is the Reply of rule 11.
    Announce(Announcement),
    /// To whoever leads: your token is older than one I have seen.
    Hint {
        /// Counts the sender's messages within its boot.
        sequence: u64,
        /// The counter the sender would believe.
        need: u64,
    },
    /// I led and leave.
    Bye {
        /// Counts the sender's messages within its boot.
        sequence: u64,
        /// The counter of the sender's last token; zero and ignored in the base forms.
        epoch: u64,
    },
    /// Asks who leads.
    Query {
        /// Counts the sender's messages within its boot.
        sequence: u64,
        /// To be repeated in the answer, which thereby proves to be younger than the question.
        nonce: u64,
        /// The sender's rank if it stands itself and would lead were nobody to answer.
        claim: Option<Claim>,
    },
}

/// The sender leads.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Announcement {
    /// Counts the sender's messages within its boot.
    pub sequence: u64,
    /// The counter of the sender's token; zero and ignored in the base forms.
    pub epoch: u64,
    /// The sender's rank but for its identity.
    pub claim: Claim,
    /// When to expect the next announcement at the latest (H-11); zero and ignored in the base
    /// forms.
    pub period: Duration,
    /// Whose departure the sender was elected on (H-10).
    pub supersedes: Option<Peer>,
    /// The nonce of the question this answers.
    pub answers: Option<u64>,
}

/// What decides between two claimants before their identities do. Larger is better: compared in the
/// order of the fields.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Claim {
    /// Has led unchallenged for a while, and is not to be disturbed (H-7). Sticky tenure only.
    pub established: bool,
    /// The value of the criterion, mapped to whole numbers so that a better value is a larger number:
    /// zero where identity alone decides, `u64::MAX` less the microseconds drawn where the earliest
    /// to wake leads, and the bits of the floating-point number for a goodness. The bits of
    /// non-negative floats are ordered as the floats are.
    pub key: u64,
}

impl Message {
    /// Whether this claims leadership: what the chapter counts as a message. Answers to questions
    /// do; questions, hints and goodbyes do not.
    pub const fn is_announcement(&self) -> bool {
        matches!(self, Self::Announce(_))
    }

    /// Counts the sender's messages within its boot.
    pub const fn sequence(&self) -> u64 {
        match *self {
            Self::Announce(Announcement { sequence, .. })
            | Self::Hint { sequence, .. }
            | Self::Bye { sequence, .. }
            | Self::Query { sequence, .. } => sequence,
        }
    }

    /// The counter that would have to be believed.
    pub(super) const fn counter(&self) -> u64 {
        match *self {
            Self::Announce(Announcement { epoch, .. }) | Self::Bye { epoch, .. } => epoch,
            Self::Hint { need, .. } => need,
            Self::Query { .. } => 0,
        }
    }
}

/// One byte of kind, and for the two that carry options one of flags; all numbers as varints but
/// nonces and identities, which are not small.
impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        match *self {
            Self::Announce(it) => {
                sink.u8(0);
                sink.varint(it.sequence);
                sink.varint(it.epoch);
                let flag = |set, flag| if set { flag } else { 0 };
                sink.u8(flag(it.claim.established, ESTABLISHED)
                    | flag(it.supersedes.is_some(), SUPERSEDES)
                    | flag(it.answers.is_some(), ANSWERS));
                sink.varint(it.claim.key);
                sink.varint(it.period.as_micros());
                if let Some(dead) = it.supersedes {
                    sink.u64(dead.id.get());
                    sink.u64(dead.boot.get());
                }
                if let Some(nonce) = it.answers {
                    sink.u64(nonce);
                }
            }
            Self::Hint { sequence, need: counter } | Self::Bye { sequence, epoch: counter } => {
                sink.u8(if matches!(self, Self::Hint { .. }) { 1 } else { 2 });
                sink.varint(sequence);
                sink.varint(counter);
            }
            Self::Query { sequence, nonce, claim } => {
                sink.u8(3);
                sink.varint(sequence);
                sink.u64(nonce);
                // 0: does not stand. 1: stands. 2: stands and is established, which no honest node
                // says but every value must have an encoding.
                sink.u8(claim.map_or(0, |claim| 1 + u8::from(claim.established)));
                if let Some(claim) = claim {
                    sink.varint(claim.key);
                }
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = reader.kind("announce message", 4)?;
        let sequence = reader.varint("sequence")?;
        Ok(match kind {
            0 => {
                let epoch = reader.varint("epoch")?;
                let flags = reader.kind("announcement flags", 2 * ANSWERS)?;
                let key = reader.varint("key")?;
                let period = Duration::from_micros(reader.varint("period")?);
                let supersedes = if flags & SUPERSEDES != 0 {
                    let id = NodeId::new(reader.u64("superseded id")?);
                    Some(Peer::new(id, Boot::new(reader.u64("superseded boot")?)))
                } else {
                    None
                };
                let answers =
                    if flags & ANSWERS != 0 { Some(reader.u64("answered nonce")?) } else { None };
                let claim = Claim { established: flags & ESTABLISHED != 0, key };
                Self::Announce(Announcement { sequence, epoch, claim, period, supersedes, answers })
            }
            1 => Self::Hint { sequence, need: reader.varint("need")? },
            2 => Self::Bye { sequence, epoch: reader.varint("epoch")? },
            _ => {
                let nonce = reader.u64("nonce")?;
                let claim = match reader.kind("query claim", 3)? {
                    0 => None,
                    stands => Some(Claim { established: stands == 2, key: reader.varint("key")? }),
                };
                Self::Query { sequence, nonce, claim }
            }
        })
    }
}

/// Flags of an announcement.
const ESTABLISHED: u8 = 1;
const SUPERSEDES: u8 = 2;
const ANSWERS: u8 = 4;
