//! News waiting to be passed on, a few at a time, on messages that travel anyway.
//!
//! One entry per subject, the newest wins. Two ways to choose what a message carries: the least often
//! sent first, each for a bounded number of sends ([`Gossip::least_sent`], as SWIM does), or
//! everything of recent date ([`Gossip::recent`], as Medley's reference code does). Subjects are remote
//! input, so the buffer is bounded: when full, what was sent most often gives way.
//!
//! Choosing allocates nothing. The order in which news is passed on is kept apart from the news: every message asks
//! for the order, and in a large simulation a look at every piece of news is a cache miss each.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::{
    id::NodeId,
    time::{Duration, Time},
};

/// News about some subjects.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gossip<T> {
    /// One for each slot, those in use in front: by `(sent, Reverse(stamp))` if `ranked`.
    ranks: Vec<Rank>,
    slots: Vec<(Time, T)>,
    used: u32,
    capacity: u32,
    /// Counts news, to tell the newer from the older within one instant.
    stamp: u64,
    ranked: bool,
}

/// One subject, and how soon its turn comes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Rank {
    subject: NodeId,
    stamp: u64,
    sent: u32,
    slot: u32,
}

impl Rank {
    #[inline]
    fn key(&self) -> (u32, Reverse<u64>) {
        (self.sent, Reverse(self.stamp))
    }
}

impl<T: Copy> Gossip<T> {
    /// No news, and never about more than `capacity` subjects.
    pub const fn new(capacity: usize) -> Self {
        let capacity = if capacity < u32::MAX as usize { capacity as u32 } else { u32::MAX };
        Self { ranks: Vec::new(), slots: Vec::new(), used: 0, capacity, stamp: 0, ranked: true }
    }

    /// Passes `news` on from now on, instead of what was said about `subject` before.
    pub fn put(&mut self, now: Time, subject: NodeId, news: T) {
        self.stamp += 1;
        let known = self.used().iter().position(|rank| rank.subject == subject);
        let at = match known {
            Some(at) => at,
            None => self.spare(now, news),
        };
        let slot = self.ranks[at].slot;
        self.slots[slot as usize] = (now, news);
        // The newest of those that were never sent is the first in either order.
        self.ranks.copy_within(..at, 1);
        self.ranks[0] = Rank { subject, stamp: self.stamp, sent: 0, slot };
    }

    /// A place among the ranks whose slot is free, at their end or where the stalest news had its own.
    fn spare(&mut self, now: Time, news: T) -> usize {
        if self.used >= self.capacity {
            let stalest = match self.ranked {
                true => self.len().checked_sub(1),
                false => (0..self.len()).max_by_key(|&at| self.ranks[at].key()),
            };
            if let Some(stalest) = stalest {
                return stalest;
            }
        }
        let at = self.len();
        if at == self.ranks.len() {
            self.ranks.push(Rank { slot: self.slots.len() as u32, ..Rank::default() });
            self.slots.push((now, news));
        }
        self.used += 1;
        at
    }

    /// What is being said about `subject`.
    pub fn about(&self, subject: NodeId) -> Option<&T> {
        let rank = self.used().iter().find(|rank| rank.subject == subject)?;
        Some(&self.slots[rank.slot as usize].1)
    }

    /// On how many subjects there is news.
    pub fn len(&self) -> usize {
        self.used as usize
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    fn used(&self) -> &[Rank] {
        &self.ranks[..self.used as usize]
    }

    /// Hands `take` at most `most` entries, least often sent first and the newest of these first, and
    /// counts them as sent. `take` says whether there was room; at the first refusal it ends. Whatever
    /// has been sent `sends` times is dropped.
    pub fn least_sent(&mut self, most: usize, sends: u32, mut take: impl FnMut(T) -> bool) {
        let used = self.len();
        let ranks = &mut self.ranks[..used];
        if !self.ranked {
            ranks.sort_unstable_by_key(Rank::key);
            self.ranked = true;
        }
        let mut taken = [Rank::default(); AT_ONCE];
        let mut left = most.min(used);
        // Those taken at once are merged with the rest when all of them have been, or some would be taken twice.
        let many = left > AT_ONCE;
        let mut count = 0;
        while count < left {
            let rank = &mut ranks[count];
            if !take(self.slots[rank.slot as usize].1) {
                left = count;
                break;
            }
            rank.sent = rank.sent.saturating_add(1);
            if !many {
                taken[count] = *rank;
            }
            count += 1;
        }
        if many {
            ranks.sort_unstable_by_key(Rank::key);
        } else {
            merge(ranks, &taken[..left]);
        }
        let kept = ranks.iter().rev().skip_while(|rank| rank.sent >= sends).count();
        self.used = kept as u32;
    }

    /// Hands `take` every entry no older than `lifetime`, newest first, until it refuses one; older
    /// ones are dropped.
    pub fn recent(&mut self, now: Time, lifetime: Duration, mut take: impl FnMut(T) -> bool) {
        let mut kept = 0;
        for at in 0..self.len() {
            if now.since(self.slots[self.ranks[at].slot as usize].0) <= lifetime {
                self.ranks.swap(kept, at);
                kept += 1;
            }
        }
        self.used = kept as u32;
        self.ranked = false;
        let ranks = &mut self.ranks[..kept];
        ranks.sort_unstable_by_key(|rank| Reverse(rank.stamp));
        for rank in ranks {
            if !take(self.slots[rank.slot as usize].1) {
                break;
            }
            rank.sent = rank.sent.saturating_add(1);
        }
    }
}

/// Puts those in order that were first and have been `taken` and changed; both they and the rest are ordered.
fn merge(ranks: &mut [Rank], taken: &[Rank]) {
    let (mut next, mut place) = (taken.len(), 0);
    for rank in taken {
        while next < ranks.len() && ranks[next].key() < rank.key() {
            ranks[place] = ranks[next];
            (next, place) = (next + 1, place + 1);
        }
        ranks[place] = *rank;
        place += 1;
    }
}

/// So many are merged without being sorted: more than any message carries.
const AT_ONCE: usize = 36;

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    fn id(id: u64) -> NodeId {
        NodeId::new(id)
    }

    fn filled(subjects: u64, capacity: usize) -> Gossip<u64> {
        let mut gossip = Gossip::new(capacity);
        (0..subjects)
            .for_each(|subject| gossip.put(Time::from_micros(subject), id(subject), subject));
        gossip
    }

    fn pick(gossip: &mut Gossip<u64>, most: usize, sends: u32) -> Vec<u64> {
        let mut picked = vec![];
        gossip.least_sent(most, sends, |news| {
            picked.push(news);
            true
        });
        picked
    }

    #[test]
    fn the_least_often_sent_go_first_and_the_newest_of_them() {
        let mut gossip = filled(5, 8);
        assert_eq!(pick(&mut gossip, 2, 9), [4, 3]);
        assert_eq!(pick(&mut gossip, 2, 9), [2, 1]);
        assert_eq!(pick(&mut gossip, 2, 9), [0, 4]);
        gossip.put(Time::ZERO, id(1), 71);
        assert_eq!(pick(&mut gossip, 8, 9), [71, 3, 2, 0, 4]);
        assert_eq!(pick(&mut gossip, 0, 9), [] as [u64; 0]);
    }

    #[test]
    fn everything_is_sent_equally_often_and_then_no_more() {
        let mut gossip = filled(7, 8);
        let mut sent = [0; 7];
        while !gossip.is_empty() {
            pick(&mut gossip, 3, 4).into_iter().for_each(|news| sent[news as usize] += 1);
        }
        assert_eq!(sent, [4; 7]);
    }

    #[test]
    fn newer_news_on_a_subject_replaces_older() {
        let mut gossip = filled(3, 8);
        gossip.put(Time::ZERO, id(1), 99);
        assert_eq!((gossip.len(), gossip.about(id(1))), (3, Some(&99)));
    }

    #[test]
    fn a_full_buffer_drops_what_was_told_most() {
        let mut gossip = filled(4, 4);
        pick(&mut gossip, 1, 9);
        gossip.put(Time::ZERO, id(9), 9);
        assert_eq!(gossip.len(), 4);
        assert_eq!(gossip.about(id(3)), None, "the only one sent");
        gossip.put(Time::ZERO, id(10), 10);
        assert_eq!(gossip.about(id(0)), None, "then the oldest");
    }

    #[test]
    fn a_refusal_ends_the_list_and_is_not_counted_as_sent() {
        let mut gossip = filled(3, 8);
        let mut seen = vec![];
        gossip.least_sent(3, 9, |news| {
            seen.push(news);
            seen.len() < 2
        });
        assert_eq!(seen, [2, 1]);
        assert_eq!(pick(&mut gossip, 3, 9), [1, 0, 2]);
    }

    #[test]
    fn the_recent_are_told_on_every_message_until_they_expire() {
        let mut gossip = filled(4, 8);
        let mut told = |now| {
            let mut told = vec![];
            gossip.recent(Time::from_micros(now), Duration::from_micros(5), |news| {
                told.push(news);
                true
            });
            told
        };
        assert_eq!(told(5), [3, 2, 1, 0]);
        assert_eq!(told(5), [3, 2, 1, 0]);
        assert_eq!(told(7), [3, 2]);
        assert_eq!(told(9), [] as [u64; 0]);
    }

    /// The definition: one list, looked through whenever anything is asked.
    #[derive(Default)]
    struct Reference {
        entries: Vec<(u32, Reverse<u64>, u64)>,
        stamp: u64,
    }

    impl Reference {
        fn put(&mut self, subject: u64, capacity: usize) {
            self.stamp += 1;
            self.entries.retain(|&(.., other)| other != subject);
            self.entries.sort_unstable();
            self.entries.truncate(capacity - 1);
            self.entries.push((0, Reverse(self.stamp), subject));
        }

        fn least_sent(&mut self, most: usize, sends: u32) -> Vec<u64> {
            self.entries.sort_unstable();
            let most = most.min(self.entries.len());
            self.entries[..most].iter_mut().for_each(|entry| entry.0 += 1);
            let picked = self.entries[..most].iter().map(|entry| entry.2).collect();
            self.entries.retain(|entry| entry.0 < sends);
            picked
        }
    }

    proptest! {
        #[test]
        fn what_is_said_in_which_order_is_that_of_a_list(
            capacity in 1..90_usize,
            steps in prop::collection::vec((0..120_u64, 0..60_usize, 1..6_u32), 0..300),
        ) {
            let (mut gossip, mut reference) = (Gossip::new(capacity), Reference::default());
            for (nth, (subject, most, sends)) in steps.into_iter().enumerate() {
                gossip.put(Time::ZERO, id(subject), subject);
                reference.put(subject, capacity);
                if nth % 3 == 0 {
                    prop_assert_eq!(pick(&mut gossip, most, sends), reference.least_sent(most, sends));
                }
                prop_assert_eq!(gossip.len(), reference.entries.len());
                let said = reference.entries.iter().any(|entry| entry.2 == subject);
                prop_assert_eq!(gossip.about(id(subject)), said.then_some(&subject));
            }
        }
    }
}
