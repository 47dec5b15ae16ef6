//! What was heard before, and must not be heard again.
//!
//! A network that duplicates and delays can hand over a dead leader's announcement long after its
//! death; whoever believes it revives a ghost. Two mechanisms, for two kinds of numbering:
//!
//! [`ReplayWindow`] is for a sender that numbers all it sends. Packets overtake each other, so a
//! smaller number than the largest is no proof of a replay: the window remembers, of the last 1,024
//! numbers, each one it accepted.
//!
//! [`ReplayGuard`] is for statements of which only the newest counts. It keeps, for every sender, the largest
//! `(boot, sequence)` accepted, and accepts only larger ones. The table is bounded: senders are remote
//! input, so when it is full the one heard longest ago is forgotten.

use alloc::vec::Vec;

use crate::{
    id::{Boot, NodeId, Peer},
    time::Time,
};

/// Which of the last [`WINDOW`](Self::WINDOW) numbers of one sender's life were accepted.
///
/// Ask [`is_fresh`](Self::is_fresh) before spending anything on a packet, and call
/// [`accept`](Self::accept) only once it is known to be genuine: a forged number must not move the
/// window.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReplayWindow {
    newest: u64,
    /// The number `n` has bit `n % WINDOW`.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// How far a packet may be overtaken: numbers this much below the newest are refused.
    pub const WINDOW: u64 = 64 * WORDS as u64;

    /// A window that accepts only numbers above `newest`: whoever starts to listen in the middle
    /// cannot know which of the earlier ones are recordings.
    pub const fn above(newest: u64) -> Self {
        Self { newest, seen: [u64::MAX; WORDS] }
    }

    /// The largest number accepted.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Whether this number has not been accepted and is not too old to tell.
    pub const fn is_fresh(&self, number: u64) -> bool {
        if number > self.newest {
            return true;
        }
        let (word, bit) = Self::place(number);
        self.newest - number < Self::WINDOW && self.seen[word] & bit == 0
    }

    /// Accepts the number, unless it is not fresh.
    pub fn accept(&mut self, number: u64) -> bool {
        if !self.is_fresh(number) {
            return false;
        }
        if number > self.newest {
            self.clear_up_to(number);
            self.newest = number;
        }
        let (word, bit) = Self::place(number);
        self.seen[word] |= bit;
        true
    }

    /// The numbers between the newest and this one have not been heard: their bits still say what
    /// numbers one window earlier were.
    fn clear_up_to(&mut self, number: u64) {
        if number - self.newest >= Self::WINDOW {
            self.seen = [0; WORDS];
            return;
        }
        let mut from = self.newest + 1;
        while from <= number {
            let (word, first) = Self::place(from);
            // To the end of the word, or to `number` if that comes first; in this order, because the
            // end of the last word of all is the largest number there is.
            let last = number.min(from | 63);
            let count = last - from + 1;
            let bits = if count == 64 { u64::MAX } else { ((1 << count) - 1) * first };
            self.seen[word] &= !bits;
            if last == number {
                return;
            }
            from = last + 1;
        }
    }

    const fn place(number: u64) -> (usize, u64) {
        ((number / 64) as usize % WORDS, 1 << (number % 64))
    }
}

/// Of a [`ReplayWindow`]: 128 bytes a sender, four times what a busy gossip's packets overtake each
/// other by at 1,000 packets a second and 250 ms of jitter.
const WORDS: usize = 16;

/// The largest `(boot, sequence)` accepted from each of a bounded number of senders.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReplayGuard {
    /// Sorted by sender.
    last: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Entry {
    id: NodeId,
    boot: Boot,
    sequence: u64,
    heard: Time,
}

impl ReplayGuard {
    /// Nobody heard yet.
    pub const fn new() -> Self {
        Self { last: Vec::new() }
    }

    /// Whether a message of `from` with this sequence number is new; remembers it if so.
    ///
    /// `spare` is never forgotten to make room: the leader one follows.
    pub fn accept(&mut self, now: Time, from: Peer, sequence: u64, spare: Option<NodeId>) -> bool {
        match self.find(from.id) {
            Ok(at) => {
                let entry = &mut self.last[at];
                if (from.boot, sequence) <= (entry.boot, entry.sequence) {
                    return false;
                }
                *entry = Entry { id: from.id, boot: from.boot, sequence, heard: now };
            }
            Err(mut at) => {
                if self.last.len() >= CAPACITY {
                    let oldest = self.forget_oldest(spare);
                    at -= usize::from(oldest < at);
                }
                let entry = Entry { id: from.id, boot: from.boot, sequence, heard: now };
                self.last.insert(at, entry);
            }
        }
        true
    }

    /// Accepts nothing more from this life: it has said goodbye.
    pub fn bury(&mut self, now: Time, dead: Peer, spare: Option<NodeId>) {
        self.accept(now, dead, LAST, spare);
    }

    /// Whether this life has been buried and not been forgotten since.
    pub fn is_buried(&self, peer: Peer) -> bool {
        self.find(peer.id).is_ok_and(|at| {
            let entry = &self.last[at];
            entry.boot == peer.boot && entry.sequence == LAST
        })
    }

    fn find(&self, id: NodeId) -> Result<usize, usize> {
        self.last.binary_search_by_key(&id, |entry| entry.id)
    }

    /// How many senders are remembered.
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// Whether nobody has been heard.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    fn forget_oldest(&mut self, spare: Option<NodeId>) -> usize {
        let oldest = self
            .last
            .iter()
            .enumerate()
            .filter(|(_, entry)| Some(entry.id) != spare)
            .min_by_key(|(_, entry)| (entry.heard, entry.id))
            .map_or(0, |(index, _)| index);
        self.last.remove(oldest);
        oldest
    }
}

/// After this sequence number there is none: a tombstone.
const LAST: u64 = u64::MAX;

/// Senders remembered at most: 40 KiB. Arbitrary, but above any group one multicast segment carries.
const CAPACITY: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: u64, boot: u64) -> Peer {
        Peer::new(NodeId::new(id), Boot::new(boot))
    }

    #[test]
    fn the_window_ends_where_it_says() {
        let newest = 5_000;
        let mut window = ReplayWindow::above(0);
        assert!(window.accept(newest));
        for (age, fresh) in [(0, false), (1, true), (1_023, true), (1_024, false), (1_025, false)] {
            assert_eq!(window.is_fresh(newest - age), fresh, "{age} behind the newest");
            assert_eq!(window.accept(newest - age), fresh, "{age} behind the newest");
            assert!(!window.accept(newest - age), "twice");
        }
        assert!(window.accept(u64::MAX - 1), "far ahead is accepted once, and the window moves");
        assert!(!window.accept(u64::MAX - 1));
        assert!(!window.accept(newest + 1));
        assert!(window.accept(u64::MAX));
        assert!(!window.accept(u64::MAX));
        assert_eq!(window.newest(), u64::MAX);
    }

    #[test]
    fn whoever_starts_in_the_middle_takes_nothing_from_before() {
        let mut window = ReplayWindow::above(777);
        for number in 0..=777 {
            assert!(!window.accept(number), "{number}");
        }
        assert!(window.accept(779) && window.accept(778));
    }

    #[test]
    fn of_a_million_replays_none_is_accepted() {
        let mut window = ReplayWindow::above(0);
        for number in 8..100_008 {
            assert!(window.accept(number ^ 7), "overtaken by seven at most");
        }
        let mut accepted = 0;
        for replay in 0..1_000_000_u64 {
            accepted += u32::from(window.accept(replay.wrapping_mul(2_654_435_761) % 100_008));
        }
        assert_eq!(accepted, 0);
    }

    /// Everything remembered, and the rule as it reads.
    #[derive(Default)]
    struct Naive {
        accepted: alloc::collections::BTreeSet<u64>,
    }

    impl Naive {
        fn accept(&mut self, number: u64) -> bool {
            let newest = self.accepted.last().copied().unwrap_or(0);
            number != 0
                && newest.saturating_sub(number) < ReplayWindow::WINDOW
                && self.accepted.insert(number)
        }
    }

    proptest::proptest! {
        #[test]
        fn the_window_is_the_naive_rule(
            start in proptest::prop_oneof![
                proptest::prelude::Just(0), 0..u64::MAX, proptest::prelude::Just(u64::MAX - 9_000)
            ],
            steps in proptest::collection::vec(
                proptest::prop_oneof![-3i64..3, -1_100i64..1_100, 0i64..130, -70i64..70], 1..400
            ),
        ) {
            let mut window = ReplayWindow::above(0);
            let mut naive = Naive::default();
            let mut number = start;
            for step in steps {
                number = number.saturating_add_signed(step);
                proptest::prop_assert_eq!(window.is_fresh(number), {
                    let mut copy = Naive { accepted: naive.accepted.clone() };
                    copy.accept(number)
                });
                proptest::prop_assert_eq!(window.accept(number), naive.accept(number), "{}", number);
            }
        }
    }

    #[test]
    fn only_a_newer_life_or_a_newer_message_is_accepted() {
        let mut guard = ReplayGuard::new();
        for (boot, sequence, fresh) in [
            (1, 5, true),
            (1, 5, false),
            (1, 4, false),
            (1, 6, true),
            (2, 0, true),
            (1, 99, false),
            (2, 0, false),
            (2, 1, true),
        ] {
            let accepted = guard.accept(Time::ZERO, peer(3, boot), sequence, None);
            assert_eq!(accepted, fresh, "boot {boot} sequence {sequence}");
        }
    }

    #[test]
    fn the_buried_are_not_heard_again_but_their_next_life_is() {
        let mut guard = ReplayGuard::new();
        for id in [3, 4] {
            if id == 3 {
                assert!(guard.accept(Time::ZERO, peer(id, 2), 7, None));
            }
            guard.bury(Time::ZERO, peer(id, 2), None);
            assert!(guard.is_buried(peer(id, 2)));
            assert!(!guard.accept(Time::ZERO, peer(id, 2), u64::MAX, None));
            guard.bury(Time::ZERO, peer(id, 1), None);
            assert!(guard.is_buried(peer(id, 2)), "an older grave does not open a newer one");
            assert!(guard.accept(Time::ZERO, peer(id, 3), 0, None));
            assert!(!guard.is_buried(peer(id, 3)));
        }
    }

    #[test]
    fn strangers_cannot_grow_the_table_nor_push_the_leader_out() {
        let mut guard = ReplayGuard::new();
        let leader = peer(500, 1);
        assert!(guard.accept(Time::ZERO, leader, 7, None));
        for stranger in 0..10 * CAPACITY as u64 {
            let now = Time::from_micros(1 + stranger);
            guard.accept(now, peer(1_000 + stranger, 1), 0, Some(leader.id));
        }
        assert_eq!(guard.len(), CAPACITY);
        assert!(guard.last.is_sorted_by_key(|entry| entry.id));
        assert!(!guard.accept(Time::NEVER, leader, 7, None), "the leader was forgotten");
    }
}
