//! Through whom we reach whom.
//!
//! On partial networks (a star, a link that works one way only) two members may never hear each other and
//! both be well. That is no failure but a state: the member answers only through a helper. Such helpers
//! are remembered and asked at once, not after a timeout and not by luck.

use alloc::vec::Vec;

use crate::id::NodeId;

/// How a member answers us.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reach {
    /// Itself, or it has not been tried often enough to say anything else.
    Direct,
    /// Only when this one asks it for us.
    Through(NodeId),
}

/// Members that did not answer us themselves lately, and who reached them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Relays {
    /// By member. Few: whoever answers is struck out.
    entries: Vec<Entry>,
    /// The helper that succeeded last, for whomever.
    last: Option<NodeId>,
    /// Whoever spoke to us last. On a star that is always the hub.
    heard: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Entry {
    member: NodeId,
    relay: NodeId,
    /// How often in a row.
    times: u8,
}

impl Relays {
    /// `from` spoke to us.
    pub(super) fn heard(&mut self, from: NodeId) {
        self.heard = Some(from);
    }

    /// `member` answered a ping of ours.
    pub(super) fn answered(&mut self, member: NodeId) {
        if let Ok(at) = self.find(member) {
            self.entries.remove(at);
        }
    }

    /// `member` did not, but it answered `relay`.
    pub(super) fn relayed(&mut self, member: NodeId, relay: NodeId) {
        self.last = Some(relay);
        match self.find(member) {
            Ok(at) => {
                let entry = &mut self.entries[at];
                *entry = Entry { member, relay, times: entry.times.saturating_add(1) };
            }
            Err(at) if self.entries.len() < MOST => {
                self.entries.insert(at, Entry { member, relay, times: 1 });
            }
            Err(_) => {}
        }
    }

    /// A member is no more: neither to be reached nor to be asked.
    pub(super) fn gone(&mut self, id: NodeId) {
        self.entries.retain(|entry| entry.member != id && entry.relay != id);
        self.last = self.last.filter(|&last| last != id);
        self.heard = self.heard.filter(|&heard| heard != id);
    }

    /// How `member` is reached.
    pub(super) fn reach(&self, member: NodeId) -> Reach {
        match self.find(member) {
            Ok(at) if self.entries[at].times >= SURE => Reach::Through(self.entries[at].relay),
            _ => Reach::Direct,
        }
    }

    /// Whom to ask about `member` before anybody else: who reached it last, or else reached anybody, or
    /// at least reaches us.
    pub(super) fn guess(&self, member: NodeId) -> Option<NodeId> {
        let known = self.find(member).ok().map(|at| self.entries[at].relay);
        [known, self.last, self.heard].into_iter().flatten().find(|&relay| relay != member)
    }

    fn find(&self, member: NodeId) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&member, |entry| entry.member)
    }
}

/// One lost ping is no reason to speak of a partial network. Arbitrary.
const SURE: u8 = 3;
/// Beyond that helpers are drawn as ever. Arbitrary.
const MOST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_only_through_another_is_known_after_a_few_times() {
        let [member, hub, other] = [1, 2, 3].map(NodeId::new);
        let mut relays = Relays::default();
        assert_eq!((relays.reach(member), relays.guess(member)), (Reach::Direct, None));
        relays.heard(other);
        assert_eq!((relays.guess(member), relays.guess(other)), (Some(other), None));
        relays.relayed(member, hub);
        assert_eq!(relays.reach(member), Reach::Direct, "one ping may have been lost");
        assert_eq!(relays.guess(member), Some(hub));
        assert_eq!(relays.guess(other), Some(hub), "who reached one may reach another");
        assert_eq!(relays.guess(hub), Some(other), "nobody reaches itself for us");
        relays.relayed(member, other);
        relays.relayed(member, hub);
        assert_eq!(relays.reach(member), Reach::Through(hub));
        relays.answered(member);
        assert_eq!(relays.reach(member), Reach::Direct);
    }

    #[test]
    fn the_gone_are_forgotten_on_both_ends() {
        let [member, hub, other] = [1, 2, 3].map(NodeId::new);
        let mut relays = Relays::default();
        relays.relayed(other, member);
        relays.relayed(member, hub);
        relays.gone(hub);
        assert_eq!((relays.guess(member), relays.guess(other)), (None, Some(member)));
        relays.gone(member);
        assert_eq!(relays, Relays::default());
    }
}
