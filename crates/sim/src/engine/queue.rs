//! The event queue: a calendar of slots, in exactly the order a heap would give.
//!
//! Events are ordered by `(key, sequence)`, where the key is the instant and the lane within it, and the
//! sequence counts pushes. A heap pays a cache miss and a misprediction per level for that order. Here
//! time is cut into slots of `2^shift` keys; a push links the event into its slot in constant time, and
//! only when a slot's turn comes are its few events sorted. Empty slots are skipped by a bitmap, and what
//! lies beyond the last slot waits in a heap until the window has moved near.
//!
//! Width and number of slots adapt to the traffic: too many events in a slot make sorting dear, too
//! many events in the heap make the calendar pointless. The order never depends on either, which the
//! tests check against a heap.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// Events by `(key, sequence)`.
#[derive(Debug)]
pub struct Queue<T> {
    /// First event of each slot, as an index into `slab`; slot numbers wrap around.
    heads: Vec<u32>,
    /// One bit per slot: whether it has a first event.
    occupied: Vec<u64>,
    slab: Vec<Linked<T>>,
    free: u32,
    /// The events of the current slot when its turn came, latest first.
    current: Vec<Pending<T>>,
    /// What was pushed into the current slot, or before it, since then.
    late: BinaryHeap<Pending<T>>,
    /// Number of the current slot, counted from key zero.
    slot: u64,
    shift: u32,
    /// Events in slots: neither in `current` nor in `beyond`.
    waiting: usize,
    beyond: BinaryHeap<Reverse<Beyond>>,
    sequence: u64,
    traffic: Traffic,
}

#[derive(Clone, Copy, Debug)]
struct Pending<T> {
    key: u64,
    sequence: u64,
    item: T,
}

/// The greater of two is the earlier one, so that a sorted vector gives it up last and a heap first.
impl<T> Ord for Pending<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (other.key, other.sequence).cmp(&(self.key, self.sequence))
    }
}

impl<T> PartialOrd for Pending<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Eq for Pending<T> {}

impl<T> PartialEq for Pending<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

#[derive(Clone, Copy, Debug)]
struct Linked<T> {
    pending: Pending<T>,
    next: u32,
}

/// An event in the heap: its order, and where in the slab it lies.
type Beyond = (u64, u64, u32);

/// What has happened since the calendar was last fitted.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    pops: u32,
    slots: u32,
    beyond: u32,
}

impl<T: Copy> Queue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            heads: vec![NONE; MIN_SLOTS],
            occupied: vec![0; MIN_SLOTS / 64],
            slab: Vec::new(),
            free: NONE,
            current: Vec::new(),
            late: BinaryHeap::new(),
            slot: 0,
            shift: FIRST_SHIFT,
            waiting: 0,
            beyond: BinaryHeap::new(),
            sequence: 0,
            traffic: Traffic::default(),
        }
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.current.len() + self.late.len() + self.waiting + self.beyond.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event. The key may lie before the last one popped: it is then next.
    #[inline]
    pub fn push(&mut self, key: u64, item: T) {
        self.sequence += 1;
        let pending = Pending { key, sequence: self.sequence, item };
        if key >> self.shift <= self.slot {
            self.late.push(pending);
        } else {
            let index = self.store(pending);
            self.place(index);
        }
    }

    /// Takes the first event and its key, if the key is below `limit`.
    #[inline]
    pub fn pop_before(&mut self, limit: u64) -> Option<(u64, T)> {
        if !self.late.is_empty() {
            return self.pop_late(limit);
        }
        if self.current.is_empty() && !self.turn() {
            return None;
        }
        let first = self.current.pop_if(|first| first.key < limit)?;
        self.traffic.pops += 1;
        Some((first.key, first.item))
    }

    fn pop_late(&mut self, limit: u64) -> Option<(u64, T)> {
        // The greater of two is the earlier: see the order of `Pending`.
        let in_time = self.current.last() > self.late.peek();
        let first = if in_time { self.current.last() } else { self.late.peek() };
        if first.is_none_or(|first| first.key >= limit) {
            return None;
        }
        self.traffic.pops += 1;
        let first = if in_time { self.current.pop() } else { self.late.pop() };
        first.map(|pending| (pending.key, pending.item))
    }

    fn store(&mut self, pending: Pending<T>) -> u32 {
        let index = self.free;
        if index == NONE {
            self.slab.push(Linked { pending, next: NONE });
            let index = self.slab.len() - 1;
            assert!(index < NONE as usize, "more than four thousand million events pending");
            index as u32
        } else {
            let linked = &mut self.slab[index as usize];
            self.free = linked.next;
            linked.pending = pending;
            index
        }
    }

    /// Links a stored event into its slot, or into the heap if it lies beyond the last one.
    #[inline]
    fn place(&mut self, index: u32) {
        let Pending { key, sequence, .. } = self.slab[index as usize].pending;
        let slot = key >> self.shift;
        if slot - self.slot >= self.heads.len() as u64 {
            self.traffic.beyond += 1;
            self.beyond.push(Reverse((key, sequence, index)));
            return;
        }
        let position = slot as usize & (self.heads.len() - 1);
        self.slab[index as usize].next = self.heads[position];
        self.heads[position] = index;
        self.occupied[position / 64] |= 1 << (position % 64);
        self.waiting += 1;
    }

    /// Moves on to the next slot with events and sorts them. False if there is none.
    #[inline]
    fn turn(&mut self) -> bool {
        if self.traffic.pops >= FIT_EVERY {
            self.fit();
            if !self.current.is_empty() {
                return true;
            }
        }
        if self.waiting > 0 {
            self.slot += self.distance();
        } else if let Some(Reverse((key, ..))) = self.beyond.peek() {
            self.slot = key >> self.shift;
        } else {
            return false;
        }
        self.take_slot();
        if !self.beyond.is_empty() {
            self.admit();
        }
        if self.current.len() > 1 {
            self.current.sort_unstable();
        }
        self.traffic.slots += 1;
        true
    }

    /// Moves the events of the current slot into `current`, unsorted.
    fn take_slot(&mut self) {
        let position = self.slot as usize & (self.heads.len() - 1);
        let mut index = std::mem::replace(&mut self.heads[position], NONE);
        self.occupied[position / 64] &= !(1 << (position % 64));
        while index != NONE {
            let linked = &mut self.slab[index as usize];
            self.current.push(linked.pending);
            let next = std::mem::replace(&mut linked.next, self.free);
            self.free = index;
            self.waiting -= 1;
            index = next;
        }
    }

    /// Moves what the window has reached from the heap into the calendar.
    fn admit(&mut self) {
        while let Some(&Reverse((key, _, index))) = self.beyond.peek() {
            let ahead = (key >> self.shift) - self.slot;
            if ahead >= self.heads.len() as u64 {
                break;
            }
            self.beyond.pop();
            if ahead == 0 {
                let linked = &mut self.slab[index as usize];
                self.current.push(linked.pending);
                linked.next = self.free;
                self.free = index;
            } else {
                self.place(index);
            }
        }
    }

    /// How many slots ahead the next occupied one is. There must be one.
    #[inline]
    fn distance(&self) -> u64 {
        let mask = self.heads.len() - 1;
        let start = (self.slot as usize + 1) & mask;
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (start % 64));
        while bits == 0 {
            word = (word + 1) & (self.occupied.len() - 1);
            bits = self.occupied[word];
        }
        let position = word * 64 + bits.trailing_zeros() as usize;
        ((position.wrapping_sub(start)) & mask) as u64 + 1
    }

    /// Chooses width and number of slots anew if the traffic since the last time asks for it.
    #[cold]
    fn fit(&mut self) {
        let Traffic { pops, slots, beyond } = std::mem::take(&mut self.traffic);
        let crowded = pops > slots.saturating_mul(CROWDED);
        let far = beyond > pops / 8;
        let (mut count, mut shift) = (self.heads.len(), self.shift);
        if crowded && shift > 0 && (count < MAX_SLOTS || !far) {
            shift -= 1;
            count = (count * 2).min(MAX_SLOTS);
        } else if far && !crowded {
            shift = (shift + 1).min(MAX_SHIFT);
        } else if far && count < MAX_SLOTS {
            count *= 2;
        }
        if (count, shift) != (self.heads.len(), self.shift) {
            self.rebuild(count, shift);
        }
    }

    fn rebuild(&mut self, count: usize, shift: u32) {
        let mut indices = Vec::with_capacity(self.waiting + self.beyond.len());
        indices.extend(self.beyond.drain().map(|Reverse((.., index))| index));
        for head in &mut self.heads {
            let mut index = std::mem::replace(head, NONE);
            while index != NONE {
                indices.push(index);
                index = self.slab[index as usize].next;
            }
        }
        // The current slot is empty here, so that nothing pending lies before the new one; the
        // place to start from is the end of the old current slot.
        self.slot = (((self.slot + 1) << self.shift) - 1) >> shift;
        self.shift = shift;
        self.waiting = 0;
        self.heads.clear();
        self.heads.resize(count, NONE);
        self.occupied.clear();
        self.occupied.resize(count / 64, 0);
        let before = self.slot;
        for index in indices {
            if self.slab[index as usize].pending.key >> shift <= before {
                let linked = &mut self.slab[index as usize];
                self.current.push(linked.pending);
                linked.next = self.free;
                self.free = index;
            } else {
                self.place(index);
            }
        }
        self.current.sort_unstable();
        self.traffic = Traffic::default();
    }
}

impl<T: Copy> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

const NONE: u32 = u32::MAX;
/// Slots at first, and at least. A multiple of 64, a power of two.
const MIN_SLOTS: usize = 1_024;
/// 512 KiB of heads: as much as is worth keeping in a core's own cache.
const MAX_SLOTS: usize = 1 << 17;
/// Arbitrary: about a hundred microseconds with two bits of lane.
const FIRST_SHIFT: u32 = 8;
/// Wide enough for any run to fit into the calendar.
const MAX_SHIFT: u32 = 48;
/// Pops between two looks at the traffic: a rebuild costs about as much.
const FIT_EVERY: u32 = 16_384;
/// Events per slot above which slots are halved.
const CROWDED: u32 = 6;

#[cfg(test)]
mod tests {
    use bellwether_proto::Seed;
    use proptest::prelude::*;

    use super::*;

    /// The order a heap gives: the definition the calendar must match.
    #[derive(Default)]
    struct Reference {
        heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
        sequence: u64,
    }

    impl Reference {
        fn push(&mut self, key: u64, item: u32) {
            self.sequence += 1;
            self.heap.push(Reverse((key, self.sequence, item)));
        }

        fn pop(&mut self) -> Option<(u64, u32)> {
            self.heap.pop().map(|Reverse((key, _, item))| (key, item))
        }
    }

    #[test]
    fn a_million_events_of_every_spread_come_out_in_heap_order() {
        for (seed, spread_log2) in [(1, 4), (2, 12), (3, 20), (4, 30), (5, 45)] {
            let mut rng = Seed::new(seed).rng();
            let (mut queue, mut reference) = (Queue::new(), Reference::default());
            let mut now = 0;
            for item in 0..200_000 {
                for _ in 0..1 + rng.below(2) {
                    // Mostly near, sometimes far, often exactly now.
                    let width = rng.below(spread_log2);
                    let ahead = rng.below(1 << width);
                    queue.push(now + ahead, item);
                    reference.push(now + ahead, item);
                }
                if rng.chance(0.9) {
                    let popped = queue.pop_before(u64::MAX);
                    assert_eq!(popped, reference.pop());
                    now = popped.map_or(now, |(key, _)| key);
                }
            }
            assert_eq!(queue.len(), reference.heap.len());
            while let Some(popped) = reference.pop() {
                assert_eq!(queue.pop_before(popped.0), None, "not before its time");
                assert_eq!(queue.pop_before(popped.0 + 1), Some(popped));
            }
            assert!(queue.is_empty() && queue.pop_before(u64::MAX).is_none());
        }
    }

    proptest! {
        #[test]
        fn any_pushes_and_pops_match_the_heap(
            steps in prop::collection::vec(prop_oneof![
                (0_u64..64).prop_map(Some),
                (0_u64..1 << 20).prop_map(Some),
                (0_u64..u64::MAX / 2).prop_map(Some),
                Just(None),
            ], 0..400)
        ) {
            let (mut queue, mut reference) = (Queue::new(), Reference::default());
            for (item, step) in steps.into_iter().enumerate() {
                match step {
                    Some(key) => {
                        queue.push(key, item as u32);
                        reference.push(key, item as u32);
                    }
                    None => prop_assert_eq!(queue.pop_before(u64::MAX), reference.pop()),
                }
            }
            while let Some(popped) = reference.pop() {
                prop_assert_eq!(queue.pop_before(u64::MAX), Some(popped));
            }
        }
    }
}
