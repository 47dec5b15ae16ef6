//! Who is there: facts that only ever grow (R9.1), and the ring they make.

use alloc::{collections::BTreeMap, vec::Vec};

use super::{geometry, geometry::Space, message::Life};
use crate::{id::NodeId, rng::mix};

/// What became of a life.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// It is a member.
    Member,
    /// It has left, by its own word.
    Left,
    /// It was condemned, and its time is over.
    Buried,
}

/// What is known of one node: of its last life, the last thing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Fact {
    /// The life that it is about.
    pub life: Life,
    /// What became of it.
    pub kind: Kind,
    /// Whether it votes and never leads.
    pub witness: bool,
}

impl Fact {
    /// A member that may lead.
    pub const fn member(life: Life) -> Self {
        Self { life, kind: Kind::Member, witness: false }
    }

    fn rank(&self) -> impl Ord + use<> {
        (self.life.age(), self.kind)
    }

    fn hash(&self) -> u64 {
        let bits = u64::from(self.witness) << 8 | self.kind as u64;
        let age = mix(self.life.peer.boot.get() ^ u64::from(self.life.inc.get()) << 32);
        mix(mix(self.life.id().get()) ^ age ^ bits)
    }
}

/// All facts, and the ring of the members among them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct View {
    space: Space,
    facts: BTreeMap<NodeId, Fact>,
    /// Members in the order of the ring.
    ring: Vec<NodeId>,
    /// Of all facts, in any order.
    digest: u64,
    /// Those learnt last, latest last.
    recent: Vec<NodeId>,
}

impl View {
    pub(super) fn new(space: Space) -> Self {
        let (facts, ring, recent) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { space, facts, ring, digest: 0, recent }
    }

    /// Takes a fact in; whether it was news.
    pub(super) fn learn(&mut self, fact: Fact) -> bool {
        let id = fact.life.id();
        let before = self.facts.get(&id).copied();
        if before.is_some_and(|before| before.rank() >= fact.rank()) {
            return false;
        }
        self.digest ^= fact.hash() ^ before.map_or(0, |before| before.hash());
        self.facts.insert(id, fact);
        let was = before.is_some_and(|before| before.kind == Kind::Member);
        let key = (self.space.point(id), id);
        let place = self.ring.binary_search_by_key(&key, |&other| (self.space.point(other), other));
        match (was, fact.kind == Kind::Member, place) {
            (false, true, Err(at)) => self.ring.insert(at, id),
            (true, false, Ok(at)) => {
                self.ring.remove(at);
            }
            _ => {}
        }
        self.recent.retain(|&other| other != id);
        if self.recent.len() >= RECENT {
            self.recent.remove(0);
        }
        self.recent.push(id);
        true
    }

    pub(super) const fn digest(&self) -> u64 {
        self.digest
    }

    pub(super) fn fact(&self, id: NodeId) -> Option<Fact> {
        self.facts.get(&id).copied()
    }

    /// The life by which a node is a member.
    pub(super) fn member(&self, id: NodeId) -> Option<Life> {
        self.fact(id).filter(|fact| fact.kind == Kind::Member).map(|fact| fact.life)
    }

    /// Whether this life is a member.
    pub(super) fn lists(&self, life: Life) -> bool {
        self.member(life.id()) == Some(life)
    }

    /// Whether this life is known to be over.
    pub(super) fn is_gone(&self, life: Life) -> bool {
        self.fact(life.id()).is_some_and(|fact| {
            fact.life.age() > life.age() || (fact.life == life && fact.kind != Kind::Member)
        })
    }

    pub(super) fn ring(&self) -> &[NodeId] {
        &self.ring
    }

    pub(super) fn len(&self) -> usize {
        self.ring.len()
    }

    pub(super) fn place(&self, id: NodeId) -> Option<usize> {
        let key = (self.space.point(id), id);
        self.ring.binary_search_by_key(&key, |&other| (self.space.point(other), other)).ok()
    }

    /// `N` of a member.
    pub(super) fn neighbours(&self, id: NodeId, k: usize) -> Vec<Life> {
        let Some(at) = self.place(id) else { return Vec::new() };
        let around = geometry::around(self.ring.len(), at, k).into_iter();
        around.filter_map(|at| self.member(self.ring[at])).collect()
    }

    /// Facts for somebody whose digest is another: what is news to us, and a page of everything else.
    pub(super) fn page(&self, after: &mut NodeId) -> Vec<Fact> {
        let mut page: Vec<Fact> =
            self.recent.iter().rev().take(PAGE).filter_map(|id| self.fact(*id)).collect();
        let from = (core::ops::Bound::Excluded(*after), core::ops::Bound::Unbounded);
        let mut rest = self.facts.range(from).take(PAGE).map(|(_, fact)| *fact).peekable();
        if rest.peek().is_none() {
            *after = NodeId::new(0);
            page.extend(self.facts.values().take(PAGE));
        }
        page.extend(rest);
        if let Some(last) = page.last() {
            *after = last.life.id();
        }
        page
    }
}

/// Facts remembered as recent. Arbitrary: a few times what happens within one session.
const RECENT: usize = 32;
/// Facts of either kind in one message. Arbitrary; two pages are 700 bytes at most.
const PAGE: usize = 16;
