//! Whom to elect, and whom to ping: estimates turned into ranked lists.
//!
//! Estimates are costs, so candidates are those of the *smallest* score, optimism is subtracted, and pings, which
//! explore and nothing else, go where the bonus is *largest* (A-17). Both go through [`Score`].

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::{
    config::{Policy, Profile},
    estimator::Estimates,
};
use crate::rng::Rng;

/// How promising a node is; less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Whether it comes after all that are not, whatever its value (hardened).
    pub barred: bool,
    /// Estimate, penalty and bonus.
    pub value: f64,
}

impl Score {
    fn compare(&self, other: &Self) -> Ordering {
        self.barred.cmp(&other.barred).then(self.value.total_cmp(&other.value))
    }
}

/// The estimates of one node and how it makes candidates of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Chooser {
    policy: Policy,
    profile: Profile,
    epsilon: f64,
    /// What it believes.
    pub estimates: Estimates,
}

impl Chooser {
    /// Chooses by `policy` as `profile` does.
    pub const fn new(policy: Policy, profile: Profile, estimates: Estimates) -> Self {
        let epsilon = match policy {
            Policy::EpsilonGreedy { epsilon, .. } => epsilon,
            _ => 0.0,
        };
        Self { policy, profile, epsilon, estimates }
    }

    /// `ε` as it stands.
    pub const fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The candidate list (`B1` to `B4`): `length` nodes, best first. `failed` is the leader presumed failed.
    pub fn list(&mut self, length: usize, failed: Option<usize>, rng: &mut Rng) -> Vec<usize> {
        if self.profile.is_reference() {
            self.estimates.overwrite();
        }
        match self.policy {
            Policy::Random => self.explore(length, failed, rng),
            Policy::Next => self.following(length, failed),
            Policy::EpsilonGreedy { decay, .. } => {
                let explores = rng.chance(self.epsilon);
                self.epsilon *= decay;
                if explores {
                    return self.explore(length, failed, rng);
                }
                self.best(length, rng)
            }
            Policy::Ucb { .. }
            | Policy::DiscountedUcb { .. }
            | Policy::SlidingUcb { .. }
            | Policy::Thompson { .. } => self.best(length, rng),
        }
    }

    /// The score of every node.
    pub fn scores(&self, rng: &mut Rng) -> Vec<Score> {
        (0..self.estimates.len()).map(|node| self.score(node, rng)).collect()
    }

    fn score(&self, node: usize, rng: &mut Rng) -> Score {
        let arm = self.estimates.arm(node);
        let hardened = self.profile == Profile::Hardened;
        let barred = hardened && arm.penalty > 0.0;
        let penalty = if hardened { 0.0 } else { arm.penalty };
        let (cost, count) = arm.remembered();
        let value = match self.policy {
            Policy::Ucb { weight } => {
                let (total, seen) = self.counts(node);
                self.belief(node) - bonus(weight, total, seen)
            }
            Policy::SlidingUcb { weight, .. } => {
                let within = self.estimates.within_window() as f64;
                mean(cost, count) - bonus(weight, within, count)
            }
            Policy::DiscountedUcb { weight, .. } => {
                let counts = self.estimates.arms().iter().map(|arm| arm.remembered().1);
                mean(cost, count) - bonus(weight, counts.sum(), count)
            }
            Policy::Thompson { .. } => {
                let cost = cost.clamp(0.0, count.max(0.0));
                rng.beta(1.0 + cost, 1.0 + (count - cost).max(0.0))
            }
            Policy::EpsilonGreedy { .. } | Policy::Random | Policy::Next => self.belief(node),
        };
        Score { barred, value: value + penalty }
    }

    /// What a node is believed to cost: its score without luck and optimism.
    pub fn cost(&self, node: usize) -> f64 {
        let (cost, count) = self.estimates.arm(node).remembered();
        match self.policy {
            Policy::DiscountedUcb { .. } | Policy::SlidingUcb { .. } | Policy::Thompson { .. } => {
                // The mean of Thompson's distribution; of few samples the others would know too much.
                (1.0 + cost.max(0.0)) / (2.0 + count.max(cost).max(0.0))
            }
            Policy::EpsilonGreedy { .. } | Policy::Ucb { .. } | Policy::Random | Policy::Next => {
                self.belief(node)
            }
        }
    }

    fn belief(&self, node: usize) -> f64 {
        match self.profile.is_reference() {
            // A buffer that is full has overwritten it, one that is not says nothing.
            true => self.estimates.arm(node).mean,
            false => self.estimates.estimate(node),
        }
    }

    /// `t` and `n`: the program counts samples alone, the text the prior as well.
    fn counts(&self, node: usize) -> (f64, f64) {
        let arm = self.estimates.arm(node);
        let seen = if self.profile.is_reference() { arm.samples } else { arm.weight };
        (self.estimates.total() as f64, seen as f64)
    }

    fn best(&self, length: usize, rng: &mut Rng) -> Vec<usize> {
        let scores = self.scores(rng);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[a].compare(&scores[b]).then(a.cmp(&b)));
        order.truncate(length);
        order
    }

    /// Distinct nodes at random. The program draws one more, lest the failed leader take a place.
    fn explore(&self, length: usize, failed: Option<usize>, rng: &mut Rng) -> Vec<usize> {
        let spare = usize::from(self.profile.is_reference());
        let mut drawn = distinct(self.estimates.len(), length + spare, rng);
        if spare == 1 {
            drawn.retain(|&node| Some(node) != failed);
        }
        drawn.truncate(length);
        drawn
    }

    /// The numbers after the failed leader's, round and round (`D1`).
    fn following(&self, length: usize, failed: Option<usize>) -> Vec<usize> {
        let nodes = self.estimates.len();
        let first = failed.map_or(0, |failed| failed + 1);
        (0..length.min(nodes)).map(|step| (first + step) % nodes).collect()
    }

    /// Whom to ping next (`G2`); `explored` pings were sent before, and of some nodes there are samples that are not
    /// counted yet. `None` if there is nobody.
    pub fn ping_target(
        &self,
        me: Option<usize>,
        explored: u64,
        uncounted: impl Fn(usize) -> bool,
        rng: &mut Rng,
    ) -> Option<usize> {
        let nodes = self.estimates.len();
        if self.profile.is_reference() && self.estimates.is_buffered() {
            return (nodes > 0).then(|| rng.below(nodes as u64) as usize);
        }
        let value = |node: usize| match self.profile.is_reference() {
            // It prefers those it believes bad, and may ping itself.
            true => {
                let (total, seen) = self.counts(node);
                self.estimates.arm(node).mean + bonus(PING_WEIGHT, total, seen)
            }
            false => {
                let seen = self.counts(node).1 + f64::from(u8::from(uncounted(node)));
                // Of one exploration the logarithm is nothing, and all would be alike.
                bonus(1.0, explored.max(2) as f64, seen)
            }
        };
        let may = |&node: &usize| self.profile.is_reference() || Some(node) != me;
        // The largest; the lowest number of equals, hence backwards.
        (0..nodes).filter(may).rev().max_by(|&a, &b| value(a).total_cmp(&value(b)))
    }

    /// The value of each node by which the program chooses whom to ping.
    #[cfg(test)]
    #[cfg(feature = "research")]
    pub(super) fn reference_ping_values(&self) -> Vec<f64> {
        let value = |node| {
            let (total, seen) = self.counts(node);
            self.estimates.arm(node).mean + bonus(PING_WEIGHT, total, seen)
        };
        (0..self.estimates.len()).map(value).collect()
    }
}

/// `c √(ln t / n)`: what trying is worth. Whoever was never tried must be (`B3`).
pub fn bonus(weight: f64, total: f64, seen: f64) -> f64 {
    if seen <= 0.0 {
        return f64::INFINITY;
    }
    weight * libm::sqrt(libm::log(total.max(1.0)) / seen)
}

fn mean(cost: f64, count: f64) -> f64 {
    if count > 0.0 { cost / count } else { 0.0 }
}

/// `count` of `nodes` numbers at random, in random order; all of them if there are no more.
fn distinct(nodes: usize, count: usize, rng: &mut Rng) -> Vec<usize> {
    let mut all: Vec<usize> = (0..nodes).collect();
    for place in 0..count.min(nodes) {
        let other = place + rng.below((nodes - place) as u64) as usize;
        all.swap(place, other);
    }
    all.truncate(count);
    all
}

/// `c` of the program's pings.
const PING_WEIGHT: f64 = 2.0;
