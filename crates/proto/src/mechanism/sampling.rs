//! Weighted choice among the positions of a list, with and without replacement.
//!
//! Positions are summed up in blocks of [`BLOCK`], and the sums form a binary indexed tree: a draw finds its
//! block in a few steps of a small array and its position by adding up the weights of that block. The
//! weights themselves are the caller's: computed when needed, as probabilities are from distances, or
//! kept, as a [`Bag`] keeps its instances. A tree over all positions would take eight bytes for each and a
//! cache miss for each of its levels; an alias table would draw in `O(1)` but cannot change, and members
//! come and go.
//!
//! Weights are integers because sums of floats drift under repeated change, and a drifted tree draws
//! from the dead. [`instances`] and [`share`] turn probabilities into them.

use alloc::vec::Vec;

use crate::rng::Rng;

/// The sums of the weights of positions `0..len`, of which one can be drawn.
///
/// Every method that takes `weight` wants the weights these are the sums of.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Weighted {
    /// Entry `i` holds the sum of the `lowest_bit(i + 1)` blocks up to block `i`.
    tree: Vec<u64>,
    len: usize,
    total: u64,
}

impl Weighted {
    /// A sampler without positions.
    pub const fn new() -> Self {
        Self { tree: Vec::new(), len: 0, total: 0 }
    }

    /// Sums up anew, without allocating if there were as many positions before.
    pub fn fill(&mut self, len: usize, weight: impl Fn(usize) -> u64) {
        self.len = len;
        self.tree.clear();
        let sum = |first: usize| (first..len.min(first + BLOCK)).map(&weight).sum::<u64>();
        self.tree.extend((0..len).step_by(BLOCK).map(sum));
        self.total = self.tree.iter().sum();
        for at in 0..self.tree.len() {
            let parent = at | (at + 1);
            if parent < self.tree.len() {
                self.tree[parent] += self.tree[at];
            }
        }
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The weight of `at` was `old` and is `new` now.
    pub fn change(&mut self, at: usize, old: u64, new: u64) {
        self.total = self.total - old + new;
        let mut node = at / BLOCK;
        while node < self.tree.len() {
            self.tree[node] = self.tree[node] - old + new;
            node |= node + 1;
        }
    }

    /// A position with probability proportional to its weight; `None` if all are zero.
    pub fn draw(&self, rng: &mut Rng, weight: impl Fn(usize) -> u64) -> Option<usize> {
        (self.total > 0).then(|| self.locate(rng.below(self.total), weight))
    }

    /// Up to `count` distinct positions, each drawn with probability proportional to its weight among
    /// those not drawn yet, never `except`. At most [`MOST_DISTINCT`].
    pub fn distinct(
        &mut self,
        count: usize,
        except: Option<usize>,
        rng: &mut Rng,
        weight: impl Fn(usize) -> u64,
        mut each: impl FnMut(usize),
    ) {
        let mut aside = [(0, 0); MOST_DISTINCT + 1];
        let mut taken = 0;
        if let Some(at) = except {
            aside[0] = (at, weight(at));
            taken = 1;
            self.change(at, aside[0].1, 0);
        }
        for _ in 0..count.min(MOST_DISTINCT) {
            let gone = &aside[..taken];
            let left = |at| if gone.iter().any(|&(other, _)| other == at) { 0 } else { weight(at) };
            let Some(at) = self.draw(rng, left) else { break };
            aside[taken] = (at, weight(at));
            self.change(at, aside[taken].1, 0);
            taken += 1;
            each(at);
        }
        for &(at, weight) in &aside[..taken] {
            self.change(at, 0, weight);
        }
    }

    /// The first position at which the sum of weights exceeds `rank`, which is below the total.
    fn locate(&self, mut rank: u64, weight: impl Fn(usize) -> u64) -> usize {
        let mut block = 0;
        let mut step = (self.tree.len() + 1).next_power_of_two() / 2;
        while step > 0 {
            if let Some(&sum) = self.tree.get(block + step - 1)
                && sum <= rank
            {
                rank -= sum;
                block += step;
            }
            step /= 2;
        }
        let first = block * BLOCK;
        for at in first..self.len.min(first + BLOCK) {
            match rank.checked_sub(weight(at)) {
                Some(left) => rank = left,
                None => return at,
            }
        }
        unreachable!("the weights of block {block} are not those it was summed up from")
    }
}

/// How often each position is in a bag that is drawn from without replacement.
///
/// Two bytes a position: the few that are in it more often are kept apart.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bag {
    /// [`MANY`] for those in `many`.
    few: Vec<u16>,
    /// Weights, ordered by position.
    many: Vec<(usize, u32)>,
    sums: Weighted,
}

impl Bag {
    /// A bag without positions.
    pub const fn new() -> Self {
        Self { few: Vec::new(), many: Vec::new(), sums: Weighted::new() }
    }

    /// Replaces all instances, without allocating if there was room for as many before.
    pub fn fill(&mut self, instances: impl IntoIterator<Item = u32>) {
        self.few.clear();
        self.many.clear();
        let instances = instances.into_iter();
        // Doubling would waste what two bytes a position save.
        self.few.reserve_exact(instances.size_hint().0);
        for (at, count) in instances.enumerate() {
            self.few.push(few(count));
            if few(count) == MANY {
                self.many.push((at, count));
            }
        }
        self.sum_up();
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        self.few.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.few.is_empty()
    }

    /// How many instances there are in all.
    pub fn total(&self) -> u64 {
        self.sums.total()
    }

    /// How often `at` is in it.
    pub fn get(&self, at: usize) -> u32 {
        count(&self.few, &self.many, at)
    }

    /// Puts `at` in it this often.
    pub fn set(&mut self, at: usize, instances: u32) {
        self.sums.change(at, self.get(at).into(), instances.into());
        match self.many.binary_search_by_key(&at, |&(at, _)| at) {
            Ok(found) if few(instances) == MANY => self.many[found].1 = instances,
            Ok(found) => drop(self.many.remove(found)),
            Err(place) if few(instances) == MANY => self.many.insert(place, (at, instances)),
            Err(_) => {}
        }
        self.few[at] = few(instances);
    }

    /// Takes one instance out, each as likely as the others; `None` if there is none.
    pub fn take(&mut self, rng: &mut Rng) -> Option<usize> {
        let at = self.sums.draw(rng, |at| count(&self.few, &self.many, at).into())?;
        self.set(at, self.get(at) - 1);
        Some(at)
    }

    /// Makes room for a new position without instances before `at`. `O(n)`.
    pub fn insert(&mut self, at: usize) {
        self.few.insert(at, 0);
        self.many.iter_mut().filter(|(other, _)| *other >= at).for_each(|(other, _)| *other += 1);
        self.sum_up();
    }

    /// Removes the position `at` and its instances. `O(n)`.
    pub fn remove(&mut self, at: usize) {
        self.set(at, 0);
        self.few.remove(at);
        self.many.iter_mut().filter(|(other, _)| *other > at).for_each(|(other, _)| *other -= 1);
        self.sum_up();
    }

    fn sum_up(&mut self) {
        self.sums.fill(self.few.len(), |at| count(&self.few, &self.many, at).into());
    }
}

#[inline]
fn count(few: &[u16], many: &[(usize, u32)], at: usize) -> u32 {
    if few[at] != MANY {
        return few[at].into();
    }
    let found = many.binary_search_by_key(&at, |&(at, _)| at);
    found.map_or(MANY.into(), |found| many[found].1)
}

fn few(count: u32) -> u16 {
    u16::try_from(count).unwrap_or(MANY)
}

/// One of the positions `0..len` for which `holds`, each as likely as the others; `None` if there is none.
///
/// Guesses first: where it holds for many, one is right soon, and only otherwise are all looked through.
pub fn one_of(len: usize, rng: &mut Rng, holds: impl Fn(usize) -> bool) -> Option<usize> {
    for _ in 0..GUESSES.min(len / 8) {
        let at = rng.below(len as u64) as usize;
        if holds(at) {
            return Some(at);
        }
    }
    let candidates = || (0..len).filter(|&at| holds(at));
    let nth = rng.below(candidates().count() as u64);
    candidates().nth(nth as usize)
}

/// How much probability one instance in a bag stands for, so that the bag holds every position as
/// often as it is likelier than the least likely, rounded up; or, with `cap`, about `cap` instances
/// (M-9), since the former can run to millions.
///
/// Either way a bag never exceeds [`LARGEST_BAG`].
pub fn instance(p: &[f64], cap: Option<u64>) -> f64 {
    let positive = || p.iter().copied().filter(|&p| p > 0.0);
    let total: f64 = positive().sum();
    let least = total / LARGEST_BAG as f64;
    match cap {
        Some(cap) => (total / cap.max(1) as f64).max(least),
        None => positive().fold(f64::INFINITY, f64::min).max(least),
    }
}

/// How many instances of a position of probability `p` there are in a bag, at least one if it is
/// positive. `capped` bags round down, the others up, as M-9 and R4 say.
pub fn instances(p: f64, instance: f64, capped: bool) -> u32 {
    if p <= 0.0 {
        return 0;
    }
    let ratio = p / instance;
    // A quotient that is whole but for rounding must not become the next whole number.
    let slack = ratio * 1e-9;
    let count = if capped { ratio + slack } else { libm::ceil(ratio - slack) };
    // Cutting off rounds down.
    (count as u32).max(1)
}

/// A probability as the weight of a tree in which the `largest` weighs 2^40. None that is positive is
/// lost, and none weighs more.
pub fn share(p: f64, largest: f64) -> u64 {
    if p > 0.0 { ((p / largest).min(1.0) * FULL_SHARE).max(1.0) as u64 } else { 0 }
}

/// How many positions are summed up together: with counts of two bytes, two cache lines.
pub const BLOCK: usize = 64;
/// Marks a count that does not fit two bytes.
const MANY: u16 = u16::MAX;
/// Guesses at most, and one for every eighth position: fewer than looking would cost. Arbitrary.
const GUESSES: usize = 64;
/// How many distinct positions can be drawn at once. Arbitrary, but small enough for the stack.
pub const MOST_DISTINCT: usize = 16;
/// A bag of this many instances outlives any run; a larger one need not be exact.
pub const LARGEST_BAG: u64 = 1 << 30;
/// 2^40 leaves room for 16 million positions in a 64-bit total, and for ratios of 10^12.
const FULL_SHARE: f64 = (1_u64 << 40) as f64;

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use proptest::prelude::*;

    use super::*;
    use crate::rng::Seed;

    fn spatial(distances: &[f64], m: f64) -> Vec<f64> {
        distances.iter().map(|&r| libm::pow(r, -m)).collect()
    }

    fn bag(p: &[f64], cap: Option<u64>) -> Vec<u32> {
        let instance = instance(p, cap);
        p.iter().map(|&p| instances(p, instance, cap.is_some())).collect()
    }

    fn filled(instances: &[u32]) -> Bag {
        let mut bag = Bag::new();
        bag.fill(instances.iter().copied());
        bag
    }

    /// V8.
    #[test]
    fn near_positions_are_likelier_and_fill_the_bag() {
        let p = spatial(&[1.0, 2.0, 4.0], 2.0);
        let total: f64 = p.iter().sum();
        for (p, expected) in p.iter().zip([0.761_90, 0.190_48, 0.047_62]) {
            assert!((p / total - expected).abs() < 5e-6);
        }
        assert_eq!(bag(&p, None), [16, 4, 1]);
    }

    /// V10.
    #[test]
    fn the_bag_grows_as_the_power_of_the_distance_unless_capped() {
        let distances: Vec<f64> = (1..=15).map(f64::from).collect();
        for (m, length) in [(1.0, 56), (2.0, 362), (3.0, 4_054), (4.0, 54_795), (5.0, 787_420)] {
            let p = spatial(&distances, m);
            assert_eq!(bag(&p, None).iter().sum::<u32>(), length, "m = {m}");
            let capped = bag(&p, Some(100));
            assert!(capped.iter().all(|&count| count >= 1));
            assert!(capped.iter().sum::<u32>() <= 115, "M-9: at most Lmax + N");
        }
        let absurd = spatial(&[0.1, 20.0, 1e6], 5.0);
        let total: u64 = bag(&absurd, None).iter().map(|&count| u64::from(count)).sum();
        assert!(total <= LARGEST_BAG + 3);
    }

    /// V9: every target once per four draws.
    #[test]
    fn equal_weights_make_a_shuffled_round_robin() {
        let p = spatial(&[1.0, 7.0, 3.0, 5.0], 0.0);
        assert_eq!(bag(&p, None), [1; 4]);
        let mut rng = Seed::new(9).rng();
        for _ in 0..50 {
            let mut bag = filled(&bag(&p, None));
            let mut drawn: Vec<_> = (0..4).filter_map(|_| bag.take(&mut rng)).collect();
            assert_eq!(bag.take(&mut rng), None);
            drawn.sort_unstable();
            assert_eq!(drawn, [0, 1, 2, 3]);
        }
    }

    /// P3: between two draws of `j` lie at most `2(L - n_j)` others, in every order two bags in a row
    /// can come out; and the bound is met.
    #[test]
    fn no_gap_is_longer_than_two_bags_without_the_position() {
        fn orders(left: &mut [u32], sequence: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
            if left.iter().all(|&count| count == 0) {
                all.push(sequence.clone());
            }
            for j in 0..left.len() {
                if left[j] > 0 {
                    left[j] -= 1;
                    sequence.push(j);
                    orders(left, sequence, all);
                    sequence.pop();
                    left[j] += 1;
                }
            }
        }
        for counts in [vec![1, 1, 1], vec![2, 1, 1], vec![3, 2], vec![4, 1, 1]] {
            let mut all = vec![];
            orders(&mut counts.clone(), &mut vec![], &mut all);
            let total: u32 = counts.iter().sum();
            for (j, &count) in counts.iter().enumerate() {
                let mut longest = 0;
                for (first, second) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
                    let both = first.iter().chain(second).enumerate();
                    let places: Vec<_> = both.filter(|(_, p)| **p == j).map(|(at, _)| at).collect();
                    longest = longest.max(places.windows(2).map(|w| w[1] - w[0]).max().unwrap());
                }
                assert_eq!(longest as u32, 2 * (total - count) + 1, "{counts:?}, position {j}");
            }
        }
    }

    #[test]
    fn draws_are_as_frequent_as_their_weights() {
        let weights = [5_u32, 0, 1, 30, 4, 20, 0, 40];
        let mut tree = Weighted::new();
        tree.fill(8, |at| u64::from(weights[at]));
        let mut rng = Seed::new(3).rng();
        let (mut seen, draws) = ([0_u32; 8], 100_000_u32);
        for _ in 0..draws {
            seen[tree.draw(&mut rng, |at| u64::from(weights[at])).unwrap()] += 1;
        }
        for (at, (&seen, &weight)) in seen.iter().zip(&weights).enumerate() {
            let p = f64::from(weight) / tree.total() as f64;
            let error = libm::sqrt(f64::from(draws) * p * (1.0 - p));
            let off = (f64::from(seen) - f64::from(draws) * p).abs();
            assert!(off <= 5.0 * error, "{at}: {seen} of {draws}, p = {p}");
        }
    }

    #[test]
    fn distinct_draws_never_repeat_and_leave_the_weights_alone() {
        let weight = |at: usize| [9, 1, 1, 0, 5][at];
        let mut tree = Weighted::new();
        tree.fill(5, weight);
        let before = tree.clone();
        let mut rng = Seed::new(4).rng();
        for count in 0..6 {
            let mut drawn = vec![];
            tree.distinct(count, Some(0), &mut rng, weight, |at| drawn.push(at));
            assert_eq!(drawn.len(), count.min(3), "0 is excluded and 3 weighs nothing");
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len(), count.min(3));
            assert!(!drawn.contains(&0) && !drawn.contains(&3));
            assert_eq!(tree, before);
        }
    }

    proptest! {
        #[test]
        fn the_bag_agrees_with_a_plain_list(
            mut list in prop::collection::vec(counts(), 0..200),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, counts()), 0..20),
        ) {
            let mut bag = filled(&list);
            for (pick, edit, count) in edits {
                let at = pick.index(list.len() + 1);
                if edit == 0 {
                    list.insert(at, 0);
                    bag.insert(at);
                } else if let Some(old) = list.get_mut(at) {
                    if edit == 1 {
                        list.remove(at);
                        bag.remove(at);
                    } else {
                        *old = count;
                        bag.set(at, count);
                    }
                }
            }
            prop_assert_eq!(&bag, &filled(&list));
            let mut sum = 0;
            for (at, &count) in list.iter().enumerate() {
                prop_assert_eq!(bag.get(at), count);
                let weight = |at: usize| u64::from(list[at]);
                for rank in [0, count / 2, count.saturating_sub(1)] {
                    if rank < count {
                        prop_assert_eq!(bag.sums.locate(sum + u64::from(rank), weight), at);
                    }
                }
                sum += u64::from(count);
            }
            prop_assert_eq!(bag.total(), sum);
        }

        /// Whether guesses find one or a search has to.
        #[test]
        fn any_that_holds_may_be_the_one(len in 1..300_usize, every in 1..300_usize, seed: u64) {
            let mut rng = Seed::new(seed).rng();
            let holds = |at: usize| at % every == every - 1;
            let wanted = (0..len).filter(|&at| holds(at)).count();
            let mut seen = vec![0_u32; len];
            for _ in 0..40 * wanted.max(1) {
                match one_of(len, &mut rng, holds) {
                    Some(at) => seen[at] += 1,
                    None => prop_assert_eq!(wanted, 0),
                }
            }
            for (at, &times) in seen.iter().enumerate() {
                // Forty on average: below five or above ninety once in a hundred million.
                let fair = if holds(at) { (5..90).contains(&times) } else { times == 0 };
                prop_assert!(fair, "{} of {}: {} times", at, len, times);
            }
        }
    }

    /// Few or none, and around what two bytes hold.
    fn counts() -> impl Strategy<Value = u32> {
        prop_oneof![0..50_u32, 65_530..65_540_u32, Just(1 << 30)]
    }
}
