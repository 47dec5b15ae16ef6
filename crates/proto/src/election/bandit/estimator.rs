//! What a node believes of every node: how often it does not answer when an answer is expected.
//!
//! An estimate is a *cost*: 1 for silence, 0 for an answer, less is better. Rules `M1`, `M2`, `W1`, `W2`, `X1`
//! and `X2` of `docs/rules/bandit.md`; any cost between 0 and 1 may be fed.

use alloc::{collections::VecDeque, vec::Vec};

use super::config::{Policy, Prior};
use crate::rng::Rng;

/// The belief about one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// `F`: the running mean, the prior included.
    pub mean: f64,
    /// `n`: how many samples it stands on, the prior counted as one.
    pub weight: u64,
    /// `a`: how many samples there were.
    pub samples: u64,
    /// What is added to it until it is heard of again.
    pub penalty: f64,
    /// The last outcomes, where the estimate is buffered.
    recent: VecDeque<f64>,
    /// Cost and number of samples as far as they still count, where the policy forgets.
    cost: f64,
    count: f64,
}

impl Arm {
    /// A belief `mean` of this weight, and nothing seen yet.
    pub const fn new(mean: f64, weight: u64) -> Self {
        let recent = VecDeque::new();
        Self { mean, weight, samples: 0, penalty: 0.0, recent, cost: 0.0, count: 0.0 }
    }

    /// The mean of the last outcomes; `None` while there are none.
    fn recent_mean(&self) -> Option<f64> {
        let sum: f64 = self.recent.iter().sum();
        (!self.recent.is_empty()).then(|| sum / self.recent.len() as f64)
    }

    /// Cost and number of the samples that still count. Equal to all of them unless the policy forgets.
    pub const fn remembered(&self) -> (f64, f64) {
        (self.cost, self.count)
    }
}

/// How estimates forget.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Memory {
    /// `W`: outcomes of each node that are kept.
    buffer: Option<usize>,
    /// `τ`: samples of all nodes together that are kept.
    window: Option<usize>,
    /// `γ`: what a sample is worth after one more interval.
    discount: Option<f64>,
}

/// The beliefs about all nodes, by their place among the members.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    arms: Vec<Arm>,
    /// `t`: samples of all nodes together.
    total: u64,
    memory: Memory,
    /// Which node and what cost, where a window is kept.
    window: VecDeque<(usize, f64)>,
}

impl Estimates {
    /// Beliefs about `nodes` nodes, drawn from the prior.
    pub fn draw(nodes: usize, prior: Prior, rng: &mut Rng) -> Self {
        let Prior { mean, deviation, low, high } = prior;
        let draw = |_| Arm::new((mean + deviation * rng.normal()).clamp(low, high), 1);
        Self::of((0..nodes).map(draw).collect())
    }

    /// The estimates with exactly these arms.
    pub fn of(arms: Vec<Arm>) -> Self {
        Self { arms, total: 0, memory: Memory::default(), window: VecDeque::new() }
    }

    /// Forgets as this policy, and a buffer of that length if there is one, say.
    pub fn with_memory(mut self, policy: Policy, buffer: Option<u16>) -> Self {
        let (window, discount) = match policy {
            Policy::SlidingUcb { window, .. } => (Some(window as usize), None),
            Policy::DiscountedUcb { discount, .. } | Policy::Thompson { discount } => {
                (None, Some(discount))
            }
            Policy::EpsilonGreedy { .. } | Policy::Ucb { .. } | Policy::Random | Policy::Next => {
                (None, None)
            }
        };
        self.memory = Memory { buffer: buffer.map(usize::from), window, discount };
        self
    }

    /// How many nodes they are about.
    pub fn len(&self) -> usize {
        self.arms.len()
    }

    /// Whether they are about nobody.
    pub fn is_empty(&self) -> bool {
        self.arms.is_empty()
    }

    /// Whether the last outcomes of each node are kept.
    pub const fn is_buffered(&self) -> bool {
        self.memory.buffer.is_some()
    }

    /// The belief about one node.
    pub fn arm(&self, node: usize) -> &Arm {
        &self.arms[node]
    }

    /// All of them.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// `t`: samples of all nodes together.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// How many of them the window holds at most; all of them without one.
    pub fn within_window(&self) -> u64 {
        self.memory.window.map_or(self.total, |window| self.total.min(window as u64))
    }

    /// Another sample of one node (`M1` for a cost of 1, `M2` for 0).
    pub fn sample(&mut self, node: usize, cost: f64) {
        self.total += 1;
        let Memory { buffer, window, discount: _ } = self.memory;
        let arm = &mut self.arms[node];
        let weight = arm.weight as f64;
        arm.mean = (arm.mean * weight + cost) / (weight + 1.0);
        arm.weight += 1;
        arm.samples += 1;
        arm.cost += cost;
        arm.count += 1.0;
        if let Some(length) = buffer {
            if arm.recent.len() == length {
                arm.recent.pop_front();
            }
            arm.recent.push_back(cost);
        }
        if let Some(length) = window {
            if self.window.len() == length
                && let Some((old, cost)) = self.window.pop_front()
            {
                self.arms[old].cost -= cost;
                self.arms[old].count -= 1.0;
            }
            self.window.push_back((node, cost));
        }
    }

    /// One more interval has passed: old samples count for less, where the policy says so.
    pub fn age(&mut self) {
        let Some(discount) = self.memory.discount else { return };
        for arm in &mut self.arms {
            arm.cost *= discount;
            arm.count *= discount;
        }
    }

    /// `est`: the buffered mean (`W1`), or the running one without a buffer or while it is empty.
    pub fn estimate(&self, node: usize) -> f64 {
        let arm = &self.arms[node];
        match self.memory.buffer {
            Some(_) => arm.recent_mean().unwrap_or(arm.mean),
            None => arm.mean,
        }
    }

    /// `W2`, the program's way: what is full overwrites the running mean, which then goes on from there.
    pub fn overwrite(&mut self) {
        let Some(length) = self.memory.buffer else { return };
        for arm in self.arms.iter_mut().filter(|arm| arm.recent.len() == length) {
            arm.mean = arm.recent_mean().unwrap_or(arm.mean);
        }
    }

    /// Adds to the penalty of one node.
    pub fn penalise(&mut self, node: usize, by: f64) {
        self.arms[node].penalty += by;
    }

    /// The node has been heard of.
    pub fn pardon(&mut self, node: usize) {
        self.arms[node].penalty = 0.0;
    }

    /// Whether old samples count for less.
    pub(super) const fn forgets(&self) -> bool {
        self.memory.discount.is_some() || self.memory.window.is_some()
    }

    /// What a next life is to believe, and on how many samples: what is forgotten by now is not among them.
    pub(super) fn kept(&self, node: usize) -> (f64, u64) {
        let arm = &self.arms[node];
        match self.forgets() && arm.count > 0.0 {
            true => {
                let mean = (arm.cost / arm.count).clamp(0.0, 1.0);
                (mean, libm::round(arm.count) as u64 + 1)
            }
            false => (arm.mean, arm.weight),
        }
    }

    /// What a past life believed.
    pub(super) fn restore(&mut self, node: usize, mean: f64, weight: u64) {
        let arm = &mut self.arms[node];
        (arm.mean, arm.weight) = (mean.clamp(0.0, 1.0), weight.max(1));
        arm.samples = arm.weight - 1;
        (arm.count, arm.cost) = (arm.samples as f64, arm.mean * arm.samples as f64);
    }
}
