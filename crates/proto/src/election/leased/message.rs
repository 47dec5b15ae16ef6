//! What a leader and its witnesses say to each other, and how it is written.

use alloc::vec::Vec;

use crate::{
    epoch::Epoch,
    id::{Boot, NodeId, Peer},
    membership::ring::{self, Life},
    time::Duration,
    wire::{DecodeError, Reader, Sink, Wire},
};

/// Who leads, as far as somebody knows. The larger epoch is the later; of one epoch, a hand-over.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Register {
    /// The fencing token.
    pub epoch: Epoch,
    /// Whose it is.
    pub holder: Life,
    /// To whom the holder, having stopped, has handed over.
    pub heir: Option<Life>,
}

impl Register {
    /// Who leads next, unless it is gone.
    pub fn effective(&self) -> Life {
        self.heir.unwrap_or(self.holder)
    }

    pub(super) fn is_later(&self, other: &Self) -> bool {
        (self.epoch, self.heir.is_some()) > (other.epoch, other.heir.is_some())
    }
}

/// Who must agree to a leader: a majority of `old`, and of `new` while one is replaced by the other (R7h.4).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Electorate {
    /// Under which leader, and which of its changes: the larger is the later.
    pub mark: (Option<Epoch>, u32),
    /// The witnesses in force, in ascending order.
    pub old: Vec<Life>,
    /// Those to come, ascending; empty if there is no change.
    pub new: Vec<Life>,
}

impl Electorate {
    pub(super) fn groups(&self) -> impl Iterator<Item = &[Life]> {
        let new = (!self.new.is_empty()).then_some(self.new.as_slice());
        [self.old.as_slice()].into_iter().chain(new)
    }

    pub(super) fn members(&self) -> Vec<Life> {
        let mut all = self.old.clone();
        all.extend(&self.new);
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether these are a majority of all that must agree.
    pub(super) fn is_won(&self, granted: impl Fn(Life) -> bool) -> bool {
        self.groups().all(|group| {
            let count = group.iter().filter(|&&life| granted(life)).count();
            count >= ring::geometry::majority(group.len())
        })
    }
}

/// What rides on every lease message.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Stamp {
    /// The latest the sender knows.
    pub register: Option<Register>,
    /// The leader the sender has promised itself to: acknowledgements keep it in office.
    pub backs: Option<Epoch>,
    /// The latest the sender knows.
    pub electorate: Option<Electorate>,
}

/// A message of a leased election, or of the ring below it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Message {
    /// What rides on it.
    pub stamp: Option<Stamp>,
    /// What it is.
    pub body: Body,
}

/// What is said.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Body {
    /// Of the membership below.
    Ring(ring::Message),
    /// Promise yourself to me under this epoch.
    Claim {
        /// The epoch claimed.
        epoch: Epoch,
        /// In which life.
        life: Life,
        /// The epoch whose holder has told us that it has stopped.
        after: Option<Epoch>,
        /// Which time of asking.
        round: u32,
    },
    /// Answers a claim with the promise.
    Grant {
        /// The epoch that it is about.
        epoch: Epoch,
        /// Whether nobody that has not stopped can count on us.
        free: bool,
        /// How long ago anybody else could last begin to count on us.
        since: Duration,
        /// Of the claim it answers.
        round: u32,
    },
    /// Not promised; the stamp says why.
    Refuse {
        /// The epoch that it is about.
        epoch: Epoch,
    },
    /// I lead, or have handed over: the stamp's register.
    Lead,
    /// Answers a leader that its epoch is known.
    LeadAck {
        /// The epoch that it is about.
        epoch: Epoch,
        /// Whether as handed over.
        handed: bool,
    },
    /// It is yours: I have stopped, and all that must know do.
    Take {
        /// The epoch that is over.
        epoch: Epoch,
    },
    /// I claimed this epoch, or earlier ones, in vain, and shall never lead under it.
    Forgo {
        /// The epoch that it is about.
        epoch: Epoch,
    },
    /// The stamp's electorate is in force.
    Install,
    /// Answers that the new witnesses are known.
    Installed {
        /// The change of witnesses that it answers.
        mark: (Option<Epoch>, u32),
    },
}

impl Body {
    /// Whether only a member that is in no ring, and looks for one, says so.
    pub fn looks_for_ring(&self) -> bool {
        matches!(self, Self::Ring(message) if matches!(message.body, ring::Body::Find))
    }

    /// Whether the receiver answers.
    pub fn awaits_answer(&self) -> bool {
        match self {
            Self::Ring(message) => message.body.awaits_answer(),
            Self::Claim { .. } | Self::Install => true,
            Self::Grant { .. }
            | Self::Refuse { .. }
            | Self::Lead
            | Self::LeadAck { .. }
            | Self::Take { .. }
            | Self::Forgo { .. }
            | Self::Installed { .. } => false,
        }
    }
}

fn put_epoch(sink: &mut impl Sink, epoch: Epoch) {
    sink.varint(epoch.counter());
    sink.u64(epoch.minter().id.get());
    sink.varint(epoch.minter().boot.get());
    sink.varint(epoch.sequence().into());
}

fn take_epoch(reader: &mut Reader<'_>) -> Result<Epoch, DecodeError> {
    let counter = reader.varint("epoch")?;
    let node = NodeId::new(reader.u64("epoch node")?);
    let boot = Boot::new(reader.varint("epoch boot")?);
    Ok(Epoch::nth(counter, Peer::new(node, boot), reader.varint32("epoch sequence")?))
}

fn put_maybe_epoch(sink: &mut impl Sink, epoch: Option<Epoch>) {
    sink.u8(epoch.is_some().into());
    if let Some(epoch) = epoch {
        put_epoch(sink, epoch);
    }
}

fn take_some<T>(
    reader: &mut Reader<'_>,
    field: &'static str,
    take: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    match reader.kind(field, 2)? {
        0 => Ok(None),
        _ => take(reader).map(Some),
    }
}

fn put_lives(sink: &mut impl Sink, lives: &[Life]) {
    sink.varint(lives.len() as u64);
    lives.iter().for_each(|life| life.encode(sink));
}

fn take_lives(reader: &mut Reader<'_>) -> Result<Vec<Life>, DecodeError> {
    let count = reader.count("witnesses", 10)?;
    let mut lives = Vec::with_capacity(count);
    for _ in 0..count {
        lives.push(Life::decode(reader)?);
    }
    if !lives.is_sorted_by(|a, b| a < b) {
        let (at, found) = (reader.at(), count as u64);
        return Err(DecodeError::OutOfRange { field: "order of witnesses", at, found, limit: 0 });
    }
    Ok(lives)
}

fn put_mark(sink: &mut impl Sink, (epoch, change): (Option<Epoch>, u32)) {
    put_maybe_epoch(sink, epoch);
    sink.varint(change.into());
}

fn take_mark(reader: &mut Reader<'_>) -> Result<(Option<Epoch>, u32), DecodeError> {
    Ok((take_some(reader, "mark", take_epoch)?, reader.varint32("change")?))
}

impl Wire for Stamp {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u8(self.register.is_some().into());
        if let Some(Register { epoch, holder, heir }) = &self.register {
            put_epoch(sink, *epoch);
            holder.encode(sink);
            sink.u8(heir.is_some().into());
            if let Some(heir) = heir {
                heir.encode(sink);
            }
        }
        put_maybe_epoch(sink, self.backs);
        sink.u8(self.electorate.is_some().into());
        if let Some(Electorate { mark, old, new }) = &self.electorate {
            put_mark(sink, *mark);
            put_lives(sink, old);
            put_lives(sink, new);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let register = take_some(reader, "register", |reader| {
            let epoch = take_epoch(reader)?;
            let holder = Life::decode(reader)?;
            Ok(Register { epoch, holder, heir: take_some(reader, "heir", Life::decode)? })
        })?;
        let backs = take_some(reader, "backs", take_epoch)?;
        let electorate = take_some(reader, "electorate", |reader| {
            let mark = take_mark(reader)?;
            Ok(Electorate { mark, old: take_lives(reader)?, new: take_lives(reader)? })
        })?;
        Ok(Self { register, backs, electorate })
    }
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u8(self.stamp.is_some().into());
        if let Some(stamp) = &self.stamp {
            stamp.encode(sink);
        }
        match &self.body {
            Body::Ring(message) => {
                sink.u8(0);
                message.encode(sink);
            }
            Body::Claim { epoch, life, after, round } => {
                sink.u8(1);
                put_epoch(sink, *epoch);
                life.encode(sink);
                put_maybe_epoch(sink, *after);
                sink.varint((*round).into());
            }
            Body::Grant { epoch, free, since, round } => {
                sink.u8(2);
                put_epoch(sink, *epoch);
                sink.u8((*free).into());
                sink.varint(since.as_micros());
                sink.varint((*round).into());
            }
            Body::Refuse { epoch } => {
                sink.u8(3);
                put_epoch(sink, *epoch);
            }
            Body::Lead => sink.u8(4),
            Body::LeadAck { epoch, handed } => {
                sink.u8(5);
                put_epoch(sink, *epoch);
                sink.u8((*handed).into());
            }
            Body::Take { epoch } => {
                sink.u8(6);
                put_epoch(sink, *epoch);
            }
            Body::Install => sink.u8(7),
            Body::Installed { mark } => {
                sink.u8(8);
                put_mark(sink, *mark);
            }
            Body::Forgo { epoch } => {
                sink.u8(9);
                put_epoch(sink, *epoch);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let stamp = take_some(reader, "stamp", Stamp::decode)?;
        let body = match reader.kind("leased message", 10)? {
            0 => Body::Ring(ring::Message::decode(reader)?),
            1 => Body::Claim {
                epoch: take_epoch(reader)?,
                life: Life::decode(reader)?,
                after: take_some(reader, "after", take_epoch)?,
                round: reader.varint32("round")?,
            },
            2 => {
                let epoch = take_epoch(reader)?;
                let free = reader.kind("free", 2)? == 1;
                let since = Duration::from_micros(reader.varint("since")?);
                Body::Grant { epoch, free, since, round: reader.varint32("round")? }
            }
            3 => Body::Refuse { epoch: take_epoch(reader)? },
            4 => Body::Lead,
            5 => {
                let epoch = take_epoch(reader)?;
                Body::LeadAck { epoch, handed: reader.kind("handed", 2)? == 1 }
            }
            6 => Body::Take { epoch: take_epoch(reader)? },
            7 => Body::Install,
            8 => Body::Installed { mark: take_mark(reader)? },
            _ => Body::Forgo { epoch: take_epoch(reader)? },
        };
        Ok(Self { stamp, body })
    }
}
