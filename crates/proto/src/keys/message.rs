//! What owners and keepers say to each other, and how it is written.

use alloc::vec::Vec;

use super::{place::Slot, survey::Seek};
use crate::{
    epoch::Epoch,
    id::{Boot, Incarnation, NodeId, Peer},
    membership::ring::{self, Life},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// What the owner of a slot, or a claimant, has others know of it. Its owner is who sends it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Deed {
    /// Which slot it is.
    pub mark: Mark,
    /// The owner and the keepers, in no order that matters.
    pub list: Vec<Life>,
}

/// Which announcement of a slot: what is acknowledged.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Mark {
    /// Which slot it is.
    pub slot: Slot,
    /// Under which epoch it is owned, or claimed.
    pub epoch: Epoch,
    /// Which list of keepers under this epoch; 0 is the claim itself.
    pub step: u32,
    /// Whether all on the list know it, so that all of them may succeed (K3).
    pub trusted: bool,
    /// Whether the owner acts under this epoch, or did, so that nobody acts under an earlier one (K5).
    pub begun: bool,
}

/// A message between members, of the keys or of the ring below them.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Message {
    /// The largest counter of an epoch that the sender has heard of.
    pub seen: u64,
    /// What is said.
    pub body: Body,
}

/// What is said.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Body {
    /// Of the membership below.
    Ring(ring::Message),
    /// About slots, from one life to another.
    Keys {
        /// Of the sender.
        by: Incarnation,
        /// For which life: a new one never answers for an old one.
        to: (Boot, Incarnation),
        /// What is said about them.
        what: What,
    },
}

/// What is said about slots.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum What {
    /// Keep this in mind: the receiver is on the list, or is no more.
    Keep(Vec<Deed>),
    /// Answers that it is kept. To a claim: and promised to nobody earlier.
    Kept(Vec<Mark>),
    /// Another was promised this one; or, where the epoch is missing, the claim is below what an earlier life knew.
    Refuse(Vec<(Slot, Option<Epoch>)>),
    /// These are yours, of which I was the owner under these epochs: I have stopped.
    Cede {
        /// Whether I am about to leave, and am to be handed nothing.
        leaves: bool,
        /// Which slots, and under which epochs.
        slots: Vec<(Slot, Epoch)>,
    },
    /// Does anybody own these, or may claim them?
    Seek(Seek),
    /// Answers that these of them somebody may own.
    Sought {
        /// Of the question.
        epoch: Epoch,
        /// Whether the question was to bind.
        binding: bool,
        /// Those that may have an owner.
        held: Vec<Slot>,
    },
}

/// The most slots in one message: what is said of so many fits a datagram.
pub(super) const SLOTS_A_MESSAGE: usize = 12;

fn put_epoch(sink: &mut impl Sink, epoch: Epoch) {
    sink.varint(epoch.counter());
    sink.u64(epoch.minter().id.get());
    sink.varint(epoch.minter().boot.get());
}

fn take_epoch(reader: &mut Reader<'_>) -> Result<Epoch, DecodeError> {
    let counter = reader.varint("epoch")?;
    let node = NodeId::new(reader.u64("epoch node")?);
    Ok(Epoch::mint(counter, Peer::new(node, Boot::new(reader.varint("epoch boot")?))))
}

fn put_slot(sink: &mut impl Sink, slot: Slot) {
    sink.varint(slot.number().into());
}

fn take_slot(reader: &mut Reader<'_>) -> Result<Slot, DecodeError> {
    Ok(Slot::new(reader.varint32("slot")?))
}

fn take_list<T>(
    reader: &mut Reader<'_>,
    (field, least): (&'static str, usize),
    take: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = reader.count(field, least)?;
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        list.push(take(reader)?);
    }
    Ok(list)
}

fn put_list<S: Sink, T>(sink: &mut S, list: &[T], put: impl Fn(&mut S, &T)) {
    sink.varint(list.len() as u64);
    list.iter().for_each(|item| put(sink, item));
}

impl Wire for Mark {
    fn encode(&self, sink: &mut impl Sink) {
        put_slot(sink, self.slot);
        put_epoch(sink, self.epoch);
        sink.varint(self.step.into());
        sink.u8(u8::from(self.trusted) | u8::from(self.begun) << 1);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (slot, epoch) = (take_slot(reader)?, take_epoch(reader)?);
        let step = reader.varint32("step of a list of keepers")?;
        let flags = reader.kind("flags of a slot", 4)?;
        Ok(Self { slot, epoch, step, trusted: flags & 1 != 0, begun: flags & 2 != 0 })
    }
}

impl Wire for Deed {
    fn encode(&self, sink: &mut impl Sink) {
        self.mark.encode(sink);
        put_list(sink, &self.list, |sink, life| life.encode(sink));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mark = Mark::decode(reader)?;
        Ok(Self { mark, list: take_list(reader, ("keepers", 10), Life::decode)? })
    }
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.seen);
        let (by, to, what) = match &self.body {
            Body::Ring(message) => {
                sink.u8(0);
                return message.encode(sink);
            }
            Body::Keys { by, to, what } => (by, to, what),
        };
        sink.u8(match what {
            What::Keep(_) => 1,
            What::Kept(_) => 2,
            What::Refuse(_) => 3,
            What::Cede { .. } => 4,
            What::Seek(_) => 5,
            What::Sought { .. } => 6,
        });
        sink.varint(by.get().into());
        sink.varint(to.0.get());
        sink.varint(to.1.get().into());
        match what {
            What::Keep(deeds) => put_list(sink, deeds, |sink, deed| deed.encode(sink)),
            What::Kept(marks) => put_list(sink, marks, |sink, mark| mark.encode(sink)),
            What::Refuse(slots) => put_list(sink, slots, |sink, (slot, epoch)| {
                put_slot(sink, *slot);
                sink.u8(epoch.is_some().into());
                if let Some(epoch) = epoch {
                    put_epoch(sink, *epoch);
                }
            }),
            What::Cede { leaves, slots } => {
                sink.u8((*leaves).into());
                put_list(sink, slots, |sink, (slot, epoch)| {
                    put_slot(sink, *slot);
                    put_epoch(sink, *epoch);
                });
            }
            What::Seek(Seek { epoch, digest, binding, slots }) => {
                put_epoch(sink, *epoch);
                sink.u64(*digest);
                sink.u8((*binding).into());
                put_list(sink, slots, |sink, slot| put_slot(sink, *slot));
            }
            What::Sought { epoch, binding, held } => {
                put_epoch(sink, *epoch);
                sink.u8((*binding).into());
                put_list(sink, held, |sink, slot| put_slot(sink, *slot));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let seen = reader.varint("largest epoch")?;
        let kind = reader.kind("message about keys", 7)?;
        if kind == 0 {
            return Ok(Self { seen, body: Body::Ring(ring::Message::decode(reader)?) });
        }
        let by = Incarnation::new(reader.varint32("incarnation")?);
        let boot = Boot::new(reader.varint("receiver's boot")?);
        let to = (boot, Incarnation::new(reader.varint32("receiver's incarnation")?));
        let what = match kind {
            1 => What::Keep(take_list(reader, ("deeds", 13), Deed::decode)?),
            2 => What::Kept(take_list(reader, ("marks", 13), Mark::decode)?),
            3 => What::Refuse(take_list(reader, ("refused slots", 2), |reader| {
                let slot = take_slot(reader)?;
                Ok(match reader.kind("epoch of a refusal", 2)? {
                    0 => (slot, None),
                    _ => (slot, Some(take_epoch(reader)?)),
                })
            })?),
            4 => What::Cede {
                leaves: reader.kind("whether it leaves", 2)? == 1,
                slots: take_list(reader, ("ceded slots", 11), |reader| {
                    Ok((take_slot(reader)?, take_epoch(reader)?))
                })?,
            },
            5 => What::Seek(Seek {
                epoch: take_epoch(reader)?,
                digest: reader.u64("digest of members")?,
                binding: reader.kind("whether to bind", 2)? == 1,
                slots: take_list(reader, ("sought slots", 1), take_slot)?,
            }),
            _ => What::Sought {
                epoch: take_epoch(reader)?,
                binding: reader.kind("whether it binds", 2)? == 1,
                held: take_list(reader, ("held slots", 1), take_slot)?,
            },
        };
        Ok(Self { seen, body: Body::Keys { by, to, what } })
    }
}
