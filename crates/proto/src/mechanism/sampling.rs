//! Weighted choice among the positions of a list, with and without replacement.
//!
//! A binary indexed tree over whole-number weights: one draw, one change of weight and one lookup take
//! `O(log n)` steps in one flat array, and building takes `O(n)`. An alias table would draw in `O(1)`
//! but cannot change: members come and go, a bag loses an instance with every draw, and both would
//! mean a rebuild or a second array of what remains. At the sizes a full member list allows, the dozen
//! steps cost less than one cache miss of that second array.
//!
//! Weights are integers because sums of floats drift under repeated change, and a drifted tree draws
//! from the dead. [`instances`] and [`share`] turn probabilities into them.

use alloc::vec::Vec;

use crate::rng::Rng;

/// A number of instances or a share: four bytes suffice for the one, the other wants eight.
pub trait Weight: Copy + Default + Eq + Into<u64> + TryFrom<u64> {}

impl Weight for u32 {}
impl Weight for u64 {}

/// Weights of positions `0..len`, of which one can be drawn. The total must fit the type.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Weighted<W> {
    /// Position `i` holds the sum of the `lowest_bit(i + 1)` weights up to `i`.
    tree: Vec<W>,
    total: u64,
}

impl<W: Weight> Weighted<W> {
    /// No positions.
    pub const fn new() -> Self {
        Self { tree: Vec::new(), total: 0 }
    }

    /// Replaces all weights, without allocating if there was room for as many before.
    ///
    /// # Panics
    ///
    /// If the total does not fit `W`.
    pub fn fill(&mut self, weights: impl IntoIterator<Item = W>) {
        self.tree.clear();
        self.tree.extend(weights);
        self.total = self.tree.iter().map(|&weight| weight.into()).sum();
        for at in 0..self.tree.len() {
            let parent = at | (at + 1);
            if parent < self.tree.len() {
                self.tree[parent] = narrow(self.tree[parent].into() + self.tree[at].into());
            }
        }
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The weight of `at`.
    pub fn get(&self, at: usize) -> u64 {
        let mut weight = self.tree[at].into();
        let base = (at + 1) & at;
        let mut child = at;
        while child > base {
            weight -= self.tree[child - 1].into();
            child &= child - 1;
        }
        weight
    }

    /// Changes the weight of `at`.
    ///
    /// # Panics
    ///
    /// If the total then does not fit `W`.
    pub fn set(&mut self, at: usize, weight: u64) {
        let old = self.get(at);
        self.total = self.total - old + weight;
        let mut node = at;
        while node < self.tree.len() {
            self.tree[node] = narrow(self.tree[node].into() - old + weight);
            node |= node + 1;
        }
    }

    /// A position with probability proportional to its weight; `None` if all are zero.
    pub fn draw(&self, rng: &mut Rng) -> Option<usize> {
        (self.total > 0).then(|| self.locate(rng.below(self.total)))
    }

    /// The same, taking one instance out: a draw without replacement.
    pub fn take(&mut self, rng: &mut Rng) -> Option<usize> {
        let at = self.draw(rng)?;
        self.set(at, self.get(at) - 1);
        Some(at)
    }

    /// Up to `count` distinct positions, each drawn with probability proportional to its weight among
    /// those not drawn yet, never `except`. At most [`MOST_DISTINCT`].
    pub fn distinct(
        &mut self,
        count: usize,
        except: Option<usize>,
        rng: &mut Rng,
        mut each: impl FnMut(usize),
    ) {
        let mut aside = [(0, 0); MOST_DISTINCT + 1];
        let mut taken = 0;
        let mut set_aside = |tree: &mut Self, at| {
            aside[taken] = (at, tree.get(at));
            taken += 1;
            tree.set(at, 0);
        };
        if let Some(at) = except {
            set_aside(self, at);
        }
        for _ in 0..count.min(MOST_DISTINCT) {
            let Some(at) = self.draw(rng) else { break };
            set_aside(self, at);
            each(at);
        }
        for &(at, weight) in &aside[..taken] {
            self.set(at, weight);
        }
    }

    /// Makes room for a new position of weight zero before `at`. `O(n)`.
    pub fn insert(&mut self, at: usize) {
        self.change(|weights| weights.insert(at, W::default()));
    }

    /// Removes the position `at` and its weight. `O(n)`.
    pub fn remove(&mut self, at: usize) {
        self.change(|weights| {
            weights.remove(at);
        });
    }

    fn change(&mut self, edit: impl FnOnce(&mut Vec<W>)) {
        let mut weights: Vec<W> = (0..self.len()).map(|at| narrow(self.get(at))).collect();
        edit(&mut weights);
        self.fill(weights);
    }

    /// The first position at which the sum of weights exceeds `rank`, which is below the total.
    fn locate(&self, mut rank: u64) -> usize {
        let mut at = 0;
        let mut step = (self.tree.len() + 1).next_power_of_two() / 2;
        while step > 0 {
            if let Some(&sum) = self.tree.get(at + step - 1)
                && sum.into() <= rank
            {
                rank -= sum.into();
                at += step;
            }
            step /= 2;
        }
        at
    }
}

impl<W: Weight> Default for Weighted<W> {
    fn default() -> Self {
        Self::new()
    }
}

fn narrow<W: Weight>(weight: u64) -> W {
    W::try_from(weight).ok().expect("the caller keeps the total within the type")
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
    let count = if capped { libm::floor(ratio + slack) } else { libm::ceil(ratio - slack) };
    (count as u32).max(1)
}

/// A probability as the weight of a tree in which the `largest` weighs 2^40. None that is positive is
/// lost, and none weighs more.
pub fn share(p: f64, largest: f64) -> u64 {
    if p > 0.0 { ((p / largest).min(1.0) * FULL_SHARE).max(1.0) as u64 } else { 0 }
}

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

    fn tree(weights: &[u32]) -> Weighted<u32> {
        let mut tree = Weighted::new();
        tree.fill(weights.iter().copied());
        tree
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
            let mut bag = tree(&bag(&p, None));
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
        let weights = [5, 0, 1, 30, 4, 20, 0, 40];
        let tree = tree(&weights);
        let mut rng = Seed::new(3).rng();
        let (mut seen, draws) = ([0_u32; 8], 100_000_u32);
        for _ in 0..draws {
            seen[tree.draw(&mut rng).unwrap()] += 1;
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
        let mut tree = tree(&[9, 1, 1, 0, 5]);
        let before = tree.clone();
        let mut rng = Seed::new(4).rng();
        for count in 0..6 {
            let mut drawn = vec![];
            tree.distinct(count, Some(0), &mut rng, |at| drawn.push(at));
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
        fn the_tree_agrees_with_a_plain_list(
            mut weights in prop::collection::vec(0..50_u32, 0..40),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, 0..90_u32), 0..20),
        ) {
            let mut tree = tree(&weights);
            for (pick, edit, weight) in edits {
                let at = pick.index(weights.len() + 1);
                if edit == 0 {
                    weights.insert(at, 0);
                    tree.insert(at);
                } else if let Some(old) = weights.get_mut(at) {
                    if edit == 1 {
                        weights.remove(at);
                        tree.remove(at);
                    } else {
                        *old = weight;
                        tree.set(at, u64::from(weight));
                    }
                }
            }
            prop_assert_eq!(tree.len(), weights.len());
            let mut sum = 0;
            for (at, &weight) in weights.iter().enumerate() {
                prop_assert_eq!(tree.get(at), u64::from(weight));
                for rank in sum..sum + u64::from(weight) {
                    prop_assert_eq!(tree.locate(rank), at);
                }
                sum += u64::from(weight);
            }
            prop_assert_eq!(tree.total(), sum);
        }
    }
}
