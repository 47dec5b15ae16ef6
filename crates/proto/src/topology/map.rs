//! What one node knows of its network: who hears whom, as those concerned have told.
//!
//! A [`Map`] holds one [`View`] per node and answers `Leader()` (rules L1 to L3 of `docs/rules/central.md`): the
//! component is whoever can be reached from ourselves, the leader its best member by `(score, id)`. All scores are
//! integers, so that equal maps never name different leaders.
//!
//! The links of a map may contradict each other, since its two ends tell at different times. [`Edges`] says what then
//! counts. Stored links lead one way only, which is why this has a search of its own beside [`Graph`](super::Graph).
//!
//! A [`Survey`] finds the answer.

use alloc::{sync::Arc, vec::Vec};
use core::{
    cmp::Ordering,
    hash::{Hash, Hasher},
    ops::Deref,
};

pub use self::survey::{Answer, Rank, Survey};
pub use super::criterion::Criterion;
use crate::{id::NodeId, rng::mix};

/// What a node has told of itself: whom it hears, and how often that has changed.
///
/// Ordered by clock, then by content: a total order, so that even two contents under one clock have a larger one (H2).
#[derive(Clone, Debug, Eq)]
pub struct View {
    clock: u64,
    /// Of the neighbours.
    digest: u64,
    /// Ascending, itself included.
    neighbours: Arc<[NodeId]>,
}

impl Ord for View {
    fn cmp(&self, other: &Self) -> Ordering {
        self.clock.cmp(&other.clock).then_with(|| match self.is(other) {
            true => Ordering::Equal,
            false => self.neighbours.cmp(&other.neighbours),
        })
    }
}

impl PartialOrd for View {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.clock == other.clock && self.agrees(other)
    }
}

/// By the digest: equal views have equal ones.
impl Hash for View {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.clock);
        state.write_u64(self.digest);
    }
}

impl View {
    fn told(clock: u64, neighbours: Arc<[NodeId]>) -> Self {
        // Not from zero, which node 0 would leave as it is.
        let digest = neighbours.iter().fold(u64::MAX, |hash, id| mix(hash ^ id.get()));
        Self { clock, digest, neighbours }
    }

    /// What `owner` tells: it hears these, and is always counted among them.
    pub fn new(owner: NodeId, clock: u64, hears: impl IntoIterator<Item = NodeId>) -> Self {
        let mut neighbours: Vec<NodeId> = hears.into_iter().collect();
        neighbours.push(owner);
        neighbours.sort_unstable();
        neighbours.dedup();
        Self::told(clock, neighbours.into())
    }

    /// How often it has changed; what that means is the protocol's affair.
    pub const fn clock(&self) -> u64 {
        self.clock
    }

    /// Whom it hears and itself, ascending.
    pub fn neighbours(&self) -> &[NodeId] {
        &self.neighbours
    }

    /// Whether `id` is heard, or is the owner.
    pub fn contains(&self, id: NodeId) -> bool {
        match self.neighbours.len() {
            // Views are mostly this small, and then looking at all is quicker than deciding where to look.
            0..=16 => self.neighbours.contains(&id),
            _ => self.neighbours.binary_search(&id).is_ok(),
        }
    }

    /// Whether both are one copy of the same neighbours.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.neighbours, &other.neighbours)
    }

    /// Whether both tell the same neighbours, whatever the clocks.
    pub fn agrees(&self, other: &Self) -> bool {
        self.digest == other.digest && (self.is(other) || self.neighbours == other.neighbours)
    }

    /// The same under another clock.
    pub fn at(&self, clock: u64) -> Self {
        Self { clock, ..self.clone() }
    }

    /// These neighbours added, under another clock.
    pub fn with(&self, ids: &[NodeId], clock: u64) -> Self {
        if ids.iter().all(|&id| self.contains(id)) {
            return self.at(clock);
        }
        let mut all: Vec<NodeId> = self.neighbours.iter().chain(ids).copied().collect();
        all.sort_unstable();
        all.dedup();
        Self::told(clock, all.into())
    }

    /// These neighbours taken away, under another clock.
    pub fn without(&self, ids: &[NodeId], clock: u64) -> Self {
        if !ids.iter().any(|&id| self.contains(id)) {
            return self.at(clock);
        }
        let left = self.neighbours.iter().copied().filter(|id| !ids.contains(id));
        Self::told(clock, left.collect())
    }
}

/// A node and what it has told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Entry {
    /// The node whose view it is.
    pub id: NodeId,
    /// What it told.
    pub view: View,
}

/// Entries of several, and a hash of all of them, clocks included: those of a whole map are mostly what others know
/// already, and told by it to be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entries {
    all: Arc<[Entry]>,
    hash: u64,
}

impl Deref for Entries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.all
    }
}

impl From<Vec<Entry>> for Entries {
    fn from(all: Vec<Entry>) -> Self {
        let stamps = all.iter().map(|entry| stamp(digest(entry.id, &entry.view), &entry.view));
        let hash = stamps.fold(0, |all, one| all ^ one);
        Self { all: all.into(), hash }
    }
}

/// By the hash of all: equal ones have equal ones.
impl Hash for Entries {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Which links of a map count.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Edges {
    /// Those told by either end, in that direction: as published. Whoever cannot reach the whole component that way
    /// is no candidate; otherwise one with nobody to reach would be nearest to all (E12).
    AsStored,
    /// Those told by both ends, or by one about another that nothing is known of yet (H8).
    Mutual,
}

/// One node's map. Always has an entry of its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Map {
    me: NodeId,
    /// Entries, ordered by identity.
    entries: Vec<Entry>,
    /// The digest of each entry.
    digests: Vec<u64>,
    /// All of them together.
    topology: u64,
    /// The same with the clocks.
    hash: u64,
    /// Who tells whom, a bit for each entry: while there are few enough, and everybody who is told of has told.
    rows: Vec<u64>,
    /// How many of whom each tells have told nothing.
    strays: u32,
}

/// As many entries as a row has bits.
const FEW: usize = 64;

impl Map {
    /// The map of a node that knows only what it tells itself.
    pub fn new(me: NodeId, own: View) -> Self {
        let digest = digest(me, &own);
        Self {
            me,
            hash: stamp(digest, &own),
            entries: [Entry { id: me, view: own }].into(),
            digests: [digest].into(),
            topology: digest,
            rows: Vec::new(),
            strays: 0,
        }
        .with_rows()
    }

    fn with_rows(mut self) -> Self {
        self.draw_rows();
        self
    }

    /// Draws all rows anew.
    fn draw_rows(&mut self) {
        self.rows.clear();
        self.strays = 0;
        if self.entries.len() <= FEW {
            for at in 0..self.entries.len() {
                let (row, strays) = self.row(&self.entries[at].view);
                self.rows.push(row);
                self.strays += strays;
            }
        }
    }

    /// Whom a view tells, itself included, and how many more.
    fn row(&self, view: &View) -> (u64, u32) {
        let (mut row, mut strays, mut at) = (0, 0, 0);
        for &id in view.neighbours() {
            match self.entries[at..].binary_search_by_key(&id, |entry| entry.id) {
                Ok(found) => {
                    at += found;
                    row |= 1 << at;
                }
                Err(before) => {
                    at += before;
                    strays += 1;
                }
            }
        }
        (row, strays)
    }

    /// Who tells whom, a bit for each entry in their order, itself included; `None` if there are too many, or some have
    /// not told.
    fn rows(&self) -> Option<&[u64]> {
        (self.strays == 0 && !self.rows.is_empty()).then_some(&self.rows)
    }

    /// Whose map it is.
    pub const fn me(&self) -> NodeId {
        self.me
    }

    /// What is known, by identity.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What `id` told.
    pub fn get(&self, id: NodeId) -> Option<&View> {
        self.find(id).ok().map(|at| &self.entries[at].view)
    }

    /// What we tell ourselves.
    pub fn own(&self) -> &View {
        let Ok(at) = self.find(self.me) else { unreachable!("remove() keeps the own entry") };
        &self.entries[at].view
    }

    /// Where `id` is among the entries, or would be.
    pub fn find(&self, id: NodeId) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&id, |entry| entry.id)
    }

    /// Notes what `id` told, in place of what it told before.
    pub fn set(&mut self, id: NodeId, view: View) {
        match self.find(id) {
            Ok(at) => self.replace(at, view),
            Err(at) => self.insert(at, id, view),
        }
    }

    /// The same where the place is known already.
    pub fn replace(&mut self, at: usize, view: View) {
        self.hash ^= stamp(self.digests[at], &self.entries[at].view);
        if !self.entries[at].view.agrees(&view) {
            let new = digest(self.entries[at].id, &view);
            self.topology ^= self.digests[at] ^ new;
            self.digests[at] = new;
            if !self.rows.is_empty() {
                let (row, strays) = self.row(&view);
                let (_, before) = match self.strays {
                    0 => (0, 0),
                    _ => self.row(&self.entries[at].view),
                };
                self.rows[at] = row;
                self.strays = self.strays + strays - before;
            }
        }
        self.hash ^= stamp(self.digests[at], &view);
        self.entries[at].view = view;
    }

    /// Keeps this copy of what is noted there already.
    #[cfg(feature = "research")]
    pub(crate) fn share(&mut self, at: usize, view: &View) {
        debug_assert!(self.entries[at].view.agrees(view));
        self.entries[at].view = view.clone();
    }

    /// Notes what `id` told first; `at` is where [`Map::find`] did not find it.
    pub fn insert(&mut self, at: usize, id: NodeId, view: View) {
        let digest = digest(id, &view);
        self.topology ^= digest;
        self.hash ^= stamp(digest, &view);
        self.digests.insert(at, digest);
        self.entries.insert(at, Entry { id, view });
        self.draw_rows();
    }

    /// Forgets what others told, but for those that `keep` says to keep. Whether there was anything to forget.
    pub fn retain(&mut self, mut keep: impl FnMut(NodeId) -> bool) -> bool {
        let before = self.entries.len();
        let me = self.me;
        let mut at = 0;
        let Self { digests, topology, hash, .. } = self;
        self.entries.retain(|entry| {
            let stays = entry.id == me || keep(entry.id);
            if stays {
                at += 1;
            } else {
                let digest = digests.remove(at);
                *topology ^= digest;
                *hash ^= stamp(digest, &entry.view);
            }
            stays
        });
        let some = self.entries.len() < before;
        if some {
            self.draw_rows();
        }
        some
    }

    /// A hash of who told whom, whatever the clocks.
    pub const fn topology(&self) -> u64 {
        self.topology
    }

    /// All of it, to be sent.
    pub fn snapshot(&self) -> Entries {
        Entries { all: self.entries.as_slice().into(), hash: self.hash }
    }

    /// Whether these are all of it.
    pub fn is(&self, entries: &Entries) -> bool {
        self.hash == entries.hash
    }
}

fn digest(id: NodeId, view: &View) -> u64 {
    // Another beginning than a view's, lest the two cancel out where it tells of its owner alone.
    mix(view.digest ^ mix(id.get() ^ 0x9e37_79b9_7f4a_7c15))
}

/// Of an entry with this digest.
fn stamp(digest: u64, view: &View) -> u64 {
    mix(digest ^ mix(view.clock))
}

mod survey;
#[cfg(test)]
mod tests;
