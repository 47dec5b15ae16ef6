//! News waiting to be passed on, a few at a time, on messages that travel anyway.
//!
//! One entry per subject, the newest wins. Two ways to choose what a message carries: the least often
//! sent first, each for a bounded number of sends ([`Gossip::least_sent`], as SWIM does), or
//! everything of recent date ([`Gossip::recent`], as Medley's reference code does). Subjects are remote
//! input, so the buffer is bounded: when full, what was sent most often gives way.
//!
//! Choosing reorders the buffer in place and allocates nothing.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::{
    id::NodeId,
    time::{Duration, Time},
};

/// News about some subjects.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gossip<T> {
    /// In no order that means anything.
    entries: Vec<Entry<T>>,
    capacity: usize,
    /// Counts news, to tell the newer from the older within one instant.
    stamp: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Entry<T> {
    subject: NodeId,
    sent: u32,
    stamp: u64,
    at: Time,
    news: T,
}

impl<T: Copy> Gossip<T> {
    /// No news, and never about more than `capacity` subjects.
    pub const fn new(capacity: usize) -> Self {
        Self { entries: Vec::new(), capacity, stamp: 0 }
    }

    /// Passes `news` on from now on, instead of what was said about `subject` before.
    pub fn put(&mut self, now: Time, subject: NodeId, news: T) {
        self.stamp += 1;
        let entry = Entry { subject, sent: 0, stamp: self.stamp, at: now, news };
        if let Some(old) = self.entries.iter_mut().find(|entry| entry.subject == subject) {
            *old = entry;
            return;
        }
        if self.entries.len() >= self.capacity {
            let stalest = (0..self.entries.len())
                .max_by_key(|&at| (self.entries[at].sent, Reverse(self.entries[at].stamp)));
            if let Some(stalest) = stalest {
                self.entries.swap_remove(stalest);
            }
        }
        self.entries.push(entry);
    }

    /// What is being said about `subject`.
    pub fn about(&self, subject: NodeId) -> Option<&T> {
        self.entries.iter().find(|entry| entry.subject == subject).map(|entry| &entry.news)
    }

    /// On how many subjects there is news.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Hands `take` at most `most` entries, least often sent first and the newest of these first, and
    /// counts them as sent. `take` says whether there was room; at the first refusal it ends. Whatever
    /// has been sent `sends` times is dropped.
    pub fn least_sent(&mut self, most: usize, sends: u32, mut take: impl FnMut(T) -> bool) {
        let key = |entry: &Entry<T>| (entry.sent, Reverse(entry.stamp));
        if most > 0 && most < self.entries.len() {
            self.entries.select_nth_unstable_by_key(most - 1, key);
        }
        let chosen = most.min(self.entries.len());
        self.entries[..chosen].sort_unstable_by_key(key);
        for entry in &mut self.entries[..chosen] {
            if !take(entry.news) {
                break;
            }
            entry.sent += 1;
        }
        self.entries.retain(|entry| entry.sent < sends);
    }

    /// Hands `take` every entry no older than `lifetime`, newest first, until it refuses one; older
    /// ones are dropped.
    pub fn recent(&mut self, now: Time, lifetime: Duration, mut take: impl FnMut(T) -> bool) {
        self.entries.retain(|entry| now.since(entry.at) <= lifetime);
        self.entries.sort_unstable_by_key(|entry| Reverse(entry.stamp));
        for entry in &mut self.entries {
            if !take(entry.news) {
                break;
            }
            entry.sent = entry.sent.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

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
}
