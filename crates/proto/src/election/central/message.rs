//! What nodes say to each other, and how it looks on the wire.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    id::NodeId,
    topology::map::{Entries, Entry, View},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// What nodes say to each other; all of it to whoever is in range. The seal names who sent it last, not who said it
/// first.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// I am here (N1): no message of the protocol proper, and not counted as one.
    Beacon,
    /// All I know: KNOWN and KNOWLEDGE of the thesis.
    Known(Entries),
    /// What has changed (Topology Aware).
    Updates(Arc<[Update]>),
    /// Some of what I know, whole (LS).
    Entries(Arc<[Entry]>),
    /// What I hold of everybody from `first` to `last`, in short (LS).
    Digest {
        /// The first node of which this speaks.
        first: NodeId,
        /// The last; it says of everybody between them who is not listed that the sender does not see it.
        last: NodeId,
        /// The marks, ordered by identity.
        marks: Arc<[Mark]>,
    },
    /// Follow this node (FD).
    Claim {
        /// The node that claims to lead.
        leader: NodeId,
        /// The degree of that node.
        value: u64,
        /// Counts its claims; zero as published.
        sequence: u64,
    },
    /// This node knows of nobody else (GC).
    Join {
        /// The node that is alone.
        id: NodeId,
        /// When it started, in microseconds of its clock.
        born: u64,
        /// Counts its messages.
        sequence: u64,
    },
    /// This node leads (GC).
    Lead {
        /// The node that leads.
        id: NodeId,
        /// When it started.
        born: u64,
        /// How many follow, itself included.
        size: u64,
        /// Counts its messages.
        sequence: u64,
    },
}

/// A change of one view (Topology Aware).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Update {
    /// The node whose view it changes.
    pub source: NodeId,
    /// Whom it hears now and did not before, ascending.
    pub add: Arc<[NodeId]>,
    /// Whom it no longer hears, ascending; never itself.
    pub remove: Arc<[NodeId]>,
    /// The clock before.
    pub old: u64,
    /// The clock after.
    pub new: u64,
}

/// An entry in short.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Mark {
    /// The node whose entry it is.
    pub id: NodeId,
    /// The clock of that entry.
    pub clock: u64,
    /// A hash of its content.
    pub hash: u32,
}

impl Message {
    /// Whether this only says that its sender is there.
    pub const fn is_beacon(&self) -> bool {
        matches!(self, Self::Beacon)
    }

    /// The payload by the sizes of `docs/rules/central.md`: 3 bytes an identity, 4 a clock, 1 a count; integers of 4 in
    /// the baselines, but 3 for an identity behind a type.
    pub fn model_len(&self) -> usize {
        let list = |ids: usize| 1 + 3 * ids;
        let entry = |entry: &Entry| 7 + list(entry.view.neighbours().len() - 1);
        match self {
            Self::Beacon => 4,
            Self::Known(entries) => entries.iter().map(entry).sum(),
            Self::Entries(entries) => entries.iter().map(entry).sum(),
            Self::Updates(updates) => {
                updates.iter().map(|it| 11 + list(it.add.len()) + list(it.remove.len())).sum()
            }
            Self::Digest { marks, .. } => 6 + 11 * marks.len(),
            Self::Claim { .. } | Self::Lead { .. } => 8,
            Self::Join { .. } => 4,
        }
    }
}

/// One byte of kind. Lists of identities are ascending and written as differences: dense ones take a byte each.
/// [`Message::Entries`] begins with all identities it mentions, and refers to them by number, so that random ones are
/// written once.
impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::Beacon => sink.u8(0),
            Self::Known(entries) => {
                sink.u8(1);
                sink.varint(entries.len() as u64);
                let mut ids = Ascending::default();
                for entry in entries.iter() {
                    ids.put(entry.id.get(), sink);
                    sink.varint(entry.view.clock());
                    // Every view has its owner.
                    let count = entry.view.neighbours().len() - 1;
                    put_list(count, others(entry).map(NodeId::get), sink);
                }
            }
            Self::Updates(updates) => {
                sink.u8(2);
                sink.varint(updates.len() as u64);
                for update in updates.iter() {
                    sink.varint(update.source.get());
                    sink.varint(update.old);
                    sink.varint(update.new);
                    for ids in [&update.add, &update.remove] {
                        put_list(ids.len(), ids.iter().map(|id| id.get()), sink);
                    }
                }
            }
            Self::Entries(entries) => {
                sink.u8(3);
                let names = Names::of(entries);
                put_list(names.0.len(), names.0.iter().map(|id| id.get()), sink);
                sink.varint(entries.len() as u64);
                let mut ids = Ascending::default();
                for entry in entries.iter() {
                    ids.put(names.number(entry.id), sink);
                    sink.varint(entry.view.clock());
                    let count = entry.view.neighbours().len() - 1;
                    put_list(count, others(entry).map(|id| names.number(id)), sink);
                }
            }
            Self::Digest { first, last, marks } => {
                sink.u8(4);
                sink.varint(first.get());
                sink.varint(last.get());
                sink.varint(marks.len() as u64);
                let mut ids = Ascending::default();
                for mark in marks.iter() {
                    ids.put(mark.id.get(), sink);
                    sink.varint(mark.clock);
                    sink.u32(mark.hash);
                }
            }
            &Self::Claim { leader, value, sequence } => {
                sink.u8(5);
                [leader.get(), value, sequence].into_iter().for_each(|number| sink.varint(number));
            }
            &Self::Join { id, born, sequence } => {
                sink.u8(6);
                [id.get(), born, sequence].into_iter().for_each(|number| sink.varint(number));
            }
            &Self::Lead { id, born, size, sequence } => {
                sink.u8(7);
                [id.get(), born, size, sequence].into_iter().for_each(|number| sink.varint(number));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.kind("central message", 8)? {
            0 => Self::Beacon,
            1 => {
                let (count, mut ids) = (reader.count("entries", 3)?, Ascending::default());
                let mut entries = Vec::with_capacity(count);
                for _ in 0..count {
                    let id = NodeId::new(ids.take("entry id", reader)?);
                    let clock = reader.varint("entry clock")?;
                    let others = take_list("neighbours", reader, NodeId::new)?;
                    entries.push(entry(id, clock, others, reader)?);
                }
                Self::Known(entries.into())
            }
            2 => {
                let count = reader.count("updates", 5)?;
                let mut updates = Vec::with_capacity(count);
                for _ in 0..count {
                    updates.push(take_update(reader)?);
                }
                Self::Updates(updates.into())
            }
            3 => take_entries(reader)?,
            4 => {
                let first = NodeId::new(reader.varint("digest from")?);
                let last = NodeId::new(reader.varint("digest to")?);
                let (count, mut ids) = (reader.count("marks", 6)?, Ascending::default());
                let mut marks = Vec::with_capacity(count);
                for _ in 0..count {
                    let id = NodeId::new(ids.take("mark id", reader)?);
                    let clock = reader.varint("mark clock")?;
                    marks.push(Mark { id, clock, hash: reader.u32("mark hash")? });
                }
                Self::Digest { first, last, marks: marks.into() }
            }
            5 => Self::Claim {
                leader: NodeId::new(reader.varint("leader")?),
                value: reader.varint("value")?,
                sequence: reader.varint("sequence")?,
            },
            6 => Self::Join {
                id: NodeId::new(reader.varint("joiner")?),
                born: reader.varint("born")?,
                sequence: reader.varint("sequence")?,
            },
            _ => Self::Lead {
                id: NodeId::new(reader.varint("leader")?),
                born: reader.varint("born")?,
                size: reader.varint("size")?,
                sequence: reader.varint("sequence")?,
            },
        })
    }
}

fn take_update(reader: &mut Reader<'_>) -> Result<Update, DecodeError> {
    let source = NodeId::new(reader.varint("update source")?);
    let old = reader.varint("old clock")?;
    let new = reader.varint("new clock")?;
    let add = take_list("added", reader, NodeId::new)?;
    let at = reader.at();
    let remove = take_list("removed", reader, NodeId::new)?;
    if remove.contains(&source) {
        // A view without its owner has no encoding.
        return Err(DecodeError::OutOfRange {
            field: "removed",
            at,
            found: source.get(),
            limit: 0,
        });
    }
    Ok(Update { source, add: add.into(), remove: remove.into(), old, new })
}

fn take_entries(reader: &mut Reader<'_>) -> Result<Message, DecodeError> {
    let begin = reader.at();
    let names = Names(take_list("names", reader, NodeId::new)?);
    let name = |number: u64, at: usize| {
        let limit = names.0.len() as u64;
        let known = usize::try_from(number).ok().and_then(|number| names.0.get(number));
        known.copied().ok_or(DecodeError::OutOfRange { field: "name", at, found: number, limit })
    };
    let (count, mut ids) = (reader.count("entries", 3)?, Ascending::default());
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let at = reader.at();
        let id = name(ids.take("entry name", reader)?, at)?;
        let clock = reader.varint("entry clock")?;
        let at = reader.at();
        let numbers = take_list("neighbours", reader, |number| number)?;
        let mut others = Vec::with_capacity(numbers.len());
        for number in numbers {
            others.push(name(number, at)?);
        }
        entries.push(entry(id, clock, others, reader)?);
    }
    if Names::of(&entries) != names {
        // One encoding for every value: names that nobody mentions are another.
        let (found, limit) = (names.0.len() as u64, Names::of(&entries).0.len() as u64);
        return Err(DecodeError::OutOfRange { field: "names", at: begin, found, limit });
    }
    Ok(Message::Entries(entries.into()))
}

/// Everybody that some entries mention.
#[derive(Debug, Eq, PartialEq)]
struct Names(Vec<NodeId>);

impl Names {
    fn of(entries: &[Entry]) -> Self {
        let mentioned = entries.iter().flat_map(|entry| entry.view.neighbours().iter().copied());
        let mut names: Vec<NodeId> = mentioned.collect();
        names.sort_unstable();
        names.dedup();
        Self(names)
    }

    fn number(&self, id: NodeId) -> u64 {
        self.0.binary_search(&id).unwrap_or_else(|at| at) as u64
    }
}

/// The neighbours of an entry, without its owner: that it is among them goes without saying.
fn others(entry: &Entry) -> impl Iterator<Item = NodeId> {
    let neighbours = entry.view.neighbours().iter().copied();
    neighbours.filter(|&other| other != entry.id)
}

fn entry(
    id: NodeId,
    clock: u64,
    others: Vec<NodeId>,
    reader: &Reader<'_>,
) -> Result<Entry, DecodeError> {
    if others.contains(&id) {
        let (field, at) = ("neighbours", reader.at());
        return Err(DecodeError::OutOfRange { field, at, found: id.get(), limit: 0 });
    }
    Ok(Entry { id, view: View::new(id, clock, others) })
}

/// Numbers of an ascending list, each as how far it is beyond the least it could be.
#[derive(Default)]
struct Ascending {
    least: Option<u64>,
}

impl Ascending {
    fn put(&mut self, number: u64, sink: &mut impl Sink) {
        sink.varint(number.wrapping_sub(self.least.unwrap_or(0)));
        self.least = Some(number.wrapping_add(1));
    }

    fn take(&mut self, field: &'static str, reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
        let at = reader.at();
        let beyond = reader.varint(field)?;
        let least = self.least.unwrap_or(0);
        let full = least == 0 && self.least.is_some();
        let number = least.checked_add(beyond).filter(|_| !full);
        let limit = u64::MAX - least;
        let number = number.ok_or(DecodeError::OutOfRange { field, at, found: beyond, limit })?;
        self.least = Some(number.wrapping_add(1));
        Ok(number)
    }
}

fn put_list(count: usize, numbers: impl Iterator<Item = u64>, sink: &mut impl Sink) {
    sink.varint(count as u64);
    let mut ascending = Ascending::default();
    numbers.for_each(|number| ascending.put(number, sink));
}

fn take_list<T>(
    field: &'static str,
    reader: &mut Reader<'_>,
    make: impl Fn(u64) -> T,
) -> Result<Vec<T>, DecodeError> {
    let count = reader.count(field, 1)?;
    let mut ascending = Ascending::default();
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        list.push(make(ascending.take(field, reader)?));
    }
    Ok(list)
}
