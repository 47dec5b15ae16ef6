//! The membership as an election sees it, and what a responder makes of it.

use alloc::{sync::Arc, vec::Vec};
use core::cmp::Reverse;

use super::{
    config::Criterion,
    message::{Candidate, Life, MAX_DEAD},
};
use crate::{
    id::{Incarnation, NodeId, Peer},
    rng::mix,
};

/// What the membership below says; any membership that can say this much will do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Feed {
    /// A member is listed, or what is known of it has changed. Suspects are listed (C-16). Of ourselves
    /// it sets incarnation and attribute.
    Up(Member),
    /// A member has been suspected this often by now: its unhealthiness.
    Suspected {
        /// The member that was suspected.
        id: NodeId,
        /// How often it was suspected.
        unhealthiness: u32,
    },
    /// A member was removed as failed.
    Failed {
        /// Which life of whom.
        peer: Peer,
        /// As of which incarnation.
        incarnation: Incarnation,
    },
    /// A member has said goodbye.
    Left(Peer),
    /// This is `c` now. Counts from the next election on.
    Churn(u16),
    /// Everybody there is, whether listed or not. Only [`Multicast::Oracle`](super::Multicast::Oracle)
    /// asks.
    Group(Vec<NodeId>),
}

/// One member as an election knows it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Member {
    /// Which life of whom.
    pub peer: Peer,
    /// Which incarnation of it.
    pub incarnation: Incarnation,
    /// How often it was suspected, or any other count of trouble.
    pub unhealthiness: u32,
    /// What it is worth; larger is better. Means something to
    /// [`Criterion::Attribute`](super::Criterion::Attribute) only.
    pub attribute: u32,
    /// Whether it never leads, whatever it is worth. It is asked, and told, like everybody else.
    pub observer: bool,
}

impl Member {
    /// A member of which nothing else is known.
    pub const fn new(peer: Peer) -> Self {
        let incarnation = Incarnation::new(0);
        Self { peer, incarnation, unhealthiness: 0, attribute: 0, observer: false }
    }

    const fn candidate(&self) -> Candidate {
        Candidate { peer: self.peer, incarnation: self.incarnation, attribute: self.attribute }
    }

    const fn life(&self) -> Life {
        Life { peer: self.peer, incarnation: self.incarnation }
    }
}

/// What is compared: smaller is better.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Key {
    attribute: Reverse<u32>,
    hash: u64,
    id: NodeId,
}

impl Criterion {
    pub(super) fn key(self, candidate: &Candidate) -> Key {
        let id = candidate.peer.id;
        let (attribute, hash) = match self {
            Self::Hash => (0, mix(id.get())),
            Self::Identity => (0, id.get()),
            Self::Attribute => (candidate.attribute, mix(id.get())),
        };
        Key { attribute: Reverse(attribute), hash, id }
    }

    /// Whether the first of two nodes is the better one, their attributes being equal.
    pub fn prefers(self, one: NodeId, other: NodeId) -> bool {
        self.key(&Candidate::worthless(one)) < self.key(&Candidate::worthless(other))
    }

    /// Whether `challenger` is so much better that it should lead in place of `incumbent`.
    pub(super) fn displaces(
        self,
        challenger: &Candidate,
        incumbent: &Candidate,
        margin: u32,
    ) -> bool {
        if margin == 0 {
            return self.key(challenger) < self.key(incumbent);
        }
        challenger.attribute > incumbent.attribute.saturating_add(margin)
    }
}

/// What an [`Feed::Up`] changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Change {
    /// Somebody new, or a newer life of somebody.
    New,
    /// Nothing but numbers.
    Known,
    /// An older life than is known: ignored.
    Stale,
}

/// Who is there, ourselves included (C-6).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct View {
    me: NodeId,
    /// By identity. Shared until it changes: a host of many nodes may begin them all with one list.
    members: Arc<Vec<Member>>,
    /// Those last removed, oldest first (DC1).
    fallen: Vec<Life>,
}

impl View {
    pub(super) fn new(me: Peer) -> Self {
        let members = Arc::new(Vec::from([Member::new(me)]));
        Self { me: me.id, members, fallen: Vec::new() }
    }

    /// Instead of what was known. It must ascend by identity; `false`, and nothing changes, unless it names us.
    pub(super) fn replace(&mut self, members: Arc<Vec<Member>>) -> bool {
        debug_assert!(members.is_sorted_by_key(|one| one.peer.id), "a list out of order");
        let fits = members.binary_search_by_key(&self.me, |one| one.peer.id).is_ok();
        if fits {
            self.members = members;
        }
        fits
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&Member> {
        self.find(id).ok().map(|at| &self.members[at])
    }

    pub(super) fn me(&self) -> Candidate {
        self.get(self.me).expect("nobody removes ourselves").candidate()
    }

    pub(super) fn candidate(&self, id: NodeId) -> Option<Candidate> {
        self.get(id).map(Member::candidate)
    }

    /// Everybody else.
    pub(super) fn others(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.members.iter().map(|member| member.peer.id).filter(|&id| id != self.me)
    }

    /// Everybody else, those that may lead first, the best of them in front.
    pub(super) fn others_ranked(&self, criterion: Criterion) -> Vec<NodeId> {
        let others = self.members.iter().filter(|member| member.peer.id != self.me);
        let mut ranked: Vec<_> =
            others.map(|member| (member.observer, criterion.key(&member.candidate()))).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, key)| key.id).collect()
    }

    pub(super) fn fallen(&self) -> &[Life] {
        &self.fallen
    }

    /// Whether the membership has buried this life, or knows of a later one.
    pub(super) fn is_dead(&self, life: Life) -> bool {
        self.fallen.iter().any(|fallen| fallen.buries(life))
            || self.get(life.peer.id).is_some_and(|member| member.peer.boot > life.peer.boot)
    }

    /// Whether we never lead.
    pub(super) fn observes(&self) -> bool {
        self.get(self.me).is_some_and(|me| me.observer)
    }

    /// Those that may lead.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate> + '_ {
        self.members.iter().filter(|member| !member.observer).map(Member::candidate)
    }

    /// How many that may lead have a smaller key than ourselves; after all of them if we may not.
    pub(super) fn rank(&self, criterion: Criterion) -> usize {
        let ours = criterion.key(&self.me());
        let observes = self.observes();
        let before = |one: &Candidate| observes || criterion.key(one) < ours;
        self.candidates().filter(before).count()
    }

    pub(super) fn put(&mut self, member: Member) -> Change {
        match self.find(member.peer.id) {
            Ok(at) => {
                let old = &mut Arc::make_mut(&mut self.members)[at];
                if old.peer.id == self.me {
                    *old = Member { peer: old.peer, ..member };
                    return Change::Known;
                }
                if member.peer.boot < old.peer.boot {
                    return Change::Stale;
                }
                let newer = member.peer.boot > old.peer.boot;
                *old = member;
                if newer { Change::New } else { Change::Known }
            }
            Err(at) => {
                self.fallen.retain(|fallen| fallen.peer.id != member.peer.id);
                Arc::make_mut(&mut self.members).insert(at, member);
                Change::New
            }
        }
    }

    pub(super) fn suspected(&mut self, id: NodeId, unhealthiness: u32) {
        if let Ok(at) = self.find(id) {
            Arc::make_mut(&mut self.members)[at].unhealthiness = unhealthiness;
        }
    }

    /// Removes a member, unless a later life of it is listed. Whether anything changed.
    pub(super) fn bury(&mut self, life: Life) -> bool {
        if life.peer.id == self.me {
            return false;
        }
        if let Ok(at) = self.find(life.peer.id) {
            if self.members[at].peer.boot > life.peer.boot {
                return false;
            }
            Arc::make_mut(&mut self.members).remove(at);
        }
        self.fallen.retain(|fallen| fallen.peer.id != life.peer.id);
        if self.fallen.len() >= MAX_DEAD {
            self.fallen.remove(0);
        }
        self.fallen.push(life);
        true
    }

    /// The responder's rule (Algorithm 4, lines 26 to 31): the `most_excluded` most unhealthy, ourselves
    /// never among them, and of the others the `most_candidates` of lowest key. Ties spare low keys.
    pub(super) fn answer(
        &self,
        criterion: Criterion,
        (most_candidates, most_excluded): (u16, u16),
        threshold: u32,
        dead: &[Life],
    ) -> (Vec<Candidate>, Vec<(NodeId, u32)>) {
        let listed = || {
            // We live, whatever others say.
            let alive = |member: &&Member| {
                member.peer.id == self.me || !dead.iter().any(|dead| dead.buries(member.life()))
            };
            self.members.iter().filter(alive)
        };
        let mut excluded: Vec<(u32, Key)> = Vec::new();
        if most_excluded > 0 {
            let named =
                |member: &&Member| member.peer.id != self.me && member.unhealthiness >= threshold;
            excluded.extend(
                listed()
                    .filter(named)
                    .map(|member| (member.unhealthiness, criterion.key(&member.candidate()))),
            );
            excluded.sort_unstable_by_key(|&entry| Reverse(entry));
            excluded.truncate(usize::from(most_excluded));
        }
        let stands = |member: &&Member| !member.observer;
        let spared = |member: &&Member| !excluded.iter().any(|(_, key)| key.id == member.peer.id);
        let mut candidates: Vec<Candidate> =
            listed().filter(stands).filter(spared).map(Member::candidate).collect();
        let key = |candidate: &Candidate| criterion.key(candidate);
        let most = usize::from(most_candidates);
        if most < candidates.len() {
            // Few of many: not worth sorting all.
            candidates.select_nth_unstable_by_key(most, key);
            candidates.truncate(most);
        }
        candidates.sort_unstable_by_key(key);
        (candidates, excluded.into_iter().map(|(times, key)| (key.id, times)).collect())
    }

    fn find(&self, id: NodeId) -> Result<usize, usize> {
        self.members.binary_search_by_key(&id, |member| member.peer.id)
    }
}
