//! Z-score sampling: `c` from the lists of some nodes.
//!
//! Source: Algorithm 6 (§7.2.1). Of the nodes in some lists, find the one that most of them lack; what share
//! of the sample lacks it, that share of all lists will.
//!
//! Departure: line 15 counts `N - freq`, so that with less than `N` lists everybody seems missing: a perfect
//! system of 1,000 gets `c = 30250` from 32 lists (C-1). Corrected, a node is missed by as many of the answers
//! as do not list it, over all that any answer or the asker's own list names. Hardened, a node that is listed
//! by fewer than half, or held to be dead by more, is taken to be on its way in or out rather than falsely
//! missing: of such nothing is promised anyway (C-15). The largest of many counts is more than its share
//! (C-32): the estimate errs upwards.

use alloc::collections::{BTreeMap, BTreeSet};

use super::tail::{Count, Drawn};
use crate::id::NodeId;

/// How to read a sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rule {
    /// Line 15 as printed.
    Published {
        /// `N`, which the leader is taken to know.
        nodes: u32,
        /// `s`, how many lists were asked for.
        asked: u32,
    },
    /// Misses are counted among the answers.
    Corrected,
    /// Likewise, leaving out who is on its way in or out.
    Hardened,
}

/// The lists of some nodes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sample {
    from: BTreeSet<NodeId>,
    nodes: BTreeMap<NodeId, Tally>,
}

/// What the answers say of one node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Tally {
    listed: u32,
    failed: u32,
}

/// The node that most answers lack.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Worst {
    /// Who; of several, the first by identity.
    pub id: NodeId,
    /// `k`, by how many.
    pub missing: u32,
}

impl Sample {
    /// No answers yet. The asker's `own` list only tells whom to look for; to count, it has to answer too.
    pub fn new(own: impl IntoIterator<Item = NodeId>) -> Self {
        let nodes = own.into_iter().map(|id| (id, Tally::default())).collect();
        Self { from: BTreeSet::new(), nodes }
    }

    /// A node has answered with its list and the nodes it holds to be dead. A second answer of one node is
    /// ignored, and `false`: the network may have doubled it.
    pub fn on_answer(
        &mut self,
        from: NodeId,
        list: impl IntoIterator<Item = NodeId>,
        failed: impl IntoIterator<Item = NodeId>,
    ) -> bool {
        if !self.from.insert(from) {
            return false;
        }
        // Who answers is there, whatever its list says of itself (C-6).
        let mut list: BTreeSet<NodeId> = list.into_iter().collect();
        list.insert(from);
        for id in &list {
            self.nodes.entry(*id).or_default().listed += 1;
        }
        let failed: BTreeSet<NodeId> = failed.into_iter().collect();
        for id in failed.difference(&list) {
            // To hold somebody dead is no reason to look for it.
            if let Some(tally) = self.nodes.get_mut(id) {
                tally.failed += 1;
            }
        }
        true
    }

    /// `s'`, how many have answered.
    pub fn answers(&self) -> u32 {
        self.from.len() as u32
    }

    /// `N`, how many nodes any answer or the asker's own list names.
    pub fn nodes(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The node that most answers lack, and how many; `None` if nobody has answered or nobody is looked for.
    pub fn worst(&self, rule: Rule) -> Option<Worst> {
        let answers = self.answers();
        if answers == 0 {
            return None;
        }
        let counts = |tally: &Tally| match rule {
            // It knows of those only that it has seen.
            Rule::Published { .. } => tally.listed > 0,
            Rule::Corrected => true,
            Rule::Hardened => 2 * tally.listed >= answers && 2 * tally.failed <= answers,
        };
        let of = match rule {
            Rule::Published { nodes, .. } => nodes,
            Rule::Corrected | Rule::Hardened => answers,
        };
        let missed = |(&id, tally): (&NodeId, &Tally)| Worst {
            id,
            missing: of.saturating_sub(tally.listed),
        };
        let candidates = self.nodes.iter().filter(|(_, tally)| counts(tally)).map(missed);
        // Backwards, because of equals the last is taken.
        candidates.rev().max_by_key(|worst| worst.missing)
    }

    /// `k·N/s'`, not rounded; as published `k·N/s`. `None` as in [`worst`](Self::worst).
    pub fn c_hat(&self, rule: Rule) -> Option<f64> {
        let worst = self.worst(rule)?;
        let (nodes, of) = match rule {
            Rule::Published { nodes, asked } => (nodes, asked.max(1)),
            Rule::Corrected | Rule::Hardened => (self.nodes(), self.answers()),
        };
        Some(f64::from(worst.missing) * f64::from(nodes) / f64::from(of))
    }

    /// The estimate rounded up, and no more than all others.
    pub fn c(&self, rule: Rule) -> Option<u32> {
        Some(super::whole(self.c_hat(rule)?, self.nodes()))
    }

    /// What the sample proves, read by the hardened rule.
    pub fn proof(&self) -> Option<Count> {
        let worst = self.worst(Rule::Hardened)?;
        Some(Count::new(self.nodes(), self.answers(), worst.missing, Drawn::Apart))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    use super::*;
    use crate::rng::Seed;

    fn ids(ids: &[u64]) -> Vec<NodeId> {
        ids.iter().copied().map(NodeId::new).collect()
    }

    fn sample(own: &[u64], lists: &[(u64, &[u64])]) -> Sample {
        let mut sample = Sample::new(ids(own));
        for (from, list) in lists {
            assert!(sample.on_answer(NodeId::new(*from), ids(list), []));
        }
        sample
    }

    /// TV14.
    #[test]
    fn missing_is_counted_among_the_answers_and_by_whom_the_asker_knows() {
        let lists: [(u64, &[u64]); 3] =
            [(0, &[0, 1, 2, 3, 4]), (1, &[0, 1, 3, 4]), (4, &[0, 1, 4])];
        let k = |sample: &Sample, rule| sample.worst(rule).map(|w| (w.id.get(), w.missing));
        let (seen, known) = (sample(&[], &lists), sample(&[5], &lists));
        let published = Rule::Published { nodes: 6, asked: 3 };
        assert_eq!(k(&known, published), Some((2, 5)));
        assert_eq!(known.c_hat(published), Some(10.0), "of six nodes");
        assert_eq!((k(&seen, Rule::Corrected), seen.c(Rule::Corrected)), (Some((2, 2)), Some(4)));
        assert_eq!(k(&known, Rule::Corrected), Some((5, 3)));
        assert_eq!((known.c_hat(Rule::Corrected), known.c(Rule::Corrected)), (Some(6.0), Some(5)));
        assert_eq!(k(&known, Rule::Hardened), Some((3, 1)));
        assert_eq!(known.c(Rule::Hardened), Some(2));
    }

    /// TV15.
    #[test]
    fn complete_lists_are_no_churn() {
        let all: Vec<u64> = (0..1000).collect();
        let mut sample = Sample::new(ids(&all));
        (0..32).for_each(|from| assert!(sample.on_answer(NodeId::new(31 * from), ids(&all), [])));
        assert_eq!(sample.c_hat(Rule::Published { nodes: 1000, asked: 32 }), Some(30250.0));
        assert_eq!(sample.c_hat(Rule::Corrected), Some(0.0));
        assert_eq!(sample.c(Rule::Hardened), Some(0));
    }

    #[test]
    fn whoever_answers_twice_is_heard_once() {
        let mut sample = sample(&[0, 1], &[(0, &[0])]);
        assert!(!sample.on_answer(NodeId::new(0), ids(&[0, 1]), []));
        assert_eq!(sample.answers(), 1);
        assert_eq!(sample.worst(Rule::Corrected).map(|worst| worst.id), Some(NodeId::new(1)));
        assert!(sample.on_answer(NodeId::new(1), [], []), "and it is there");
        assert_eq!(sample.c(Rule::Corrected), Some(1));
    }

    #[test]
    fn the_dead_and_the_newly_come_are_not_missing() {
        let mut sample = Sample::new(ids(&[0, 1, 2, 3, 4]));
        // 3 is dead and half of them know; 4 has just come.
        for (from, list, failed) in [
            (0, vec![0, 1, 2, 3, 4], vec![]),
            (1, vec![0, 1, 2], vec![3]),
            (2, vec![0, 1, 2], vec![3]),
            (5, vec![0, 2, 3, 5], vec![]),
        ] {
            sample.on_answer(NodeId::new(from), ids(&list), ids(&failed));
        }
        let worst = |rule| sample.worst(rule).map(|worst| (worst.id.get(), worst.missing));
        assert_eq!(worst(Rule::Corrected), Some((4, 3)));
        assert_eq!(worst(Rule::Hardened), Some((3, 2)), "half is no majority");
        sample.on_answer(NodeId::new(6), ids(&[0, 1, 2, 5, 6]), ids(&[3]));
        let worst = sample.worst(Rule::Hardened);
        assert_eq!(worst.map(|worst| (worst.id.get(), worst.missing)), Some((1, 1)));
    }

    #[test]
    fn nobody_asked_is_no_estimate() {
        for rule in [Rule::Corrected, Rule::Hardened, Rule::Published { nodes: 9, asked: 0 }] {
            assert_eq!(Sample::new(ids(&[0, 1])).c_hat(rule), None);
        }
        assert_eq!(Sample::default().proof(), None);
    }

    /// Node 0 is missing from exactly `c` of `n` lists, nobody else from any.
    fn one_missing(n: u64, c: u64, asked: u64, seed: u64) -> Sample {
        let all: Vec<NodeId> = (0..n).map(NodeId::new).collect();
        let mut rng = Seed::new(seed).rng();
        let mut order: Vec<u64> = (0..n).collect();
        for at in 0..asked as usize {
            order.swap(at, at + rng.below(n - at as u64) as usize);
        }
        let mut sample = Sample::new(all.clone());
        for &from in &order[..asked as usize] {
            // Whose list lacks it does not matter, as askers do not choose by it; but its own never does.
            let list = if from >= 1 && from <= c { &all[1..] } else { &all[..] };
            sample.on_answer(NodeId::new(from), list.iter().copied(), []);
        }
        sample
    }

    /// With one node missing there is no maximum over many to be off by: the mean is `c`.
    #[test]
    fn the_estimate_is_right_on_average_and_exact_if_all_are_asked() {
        assert_eq!(one_missing(128, 13, 128, 1).c_hat(Rule::Corrected), Some(13.0));
        let runs = 2000;
        let hats: Vec<f64> = (0..runs)
            .map(|seed| one_missing(128, 13, 30, seed).c_hat(Rule::Corrected).unwrap())
            .collect();
        let mean = hats.iter().sum::<f64>() / runs as f64;
        let squares: f64 = hats.iter().map(|hat| (hat - mean) * (hat - mean)).sum();
        let error = libm::sqrt(squares) / runs as f64;
        assert!((mean - 13.0).abs() < 4.0 * error, "{mean} within four of {error}");
    }

    /// And the bound is below the truth no more often than promised, within four standard errors.
    #[test]
    fn the_proof_holds_as_often_as_it_says() {
        let runs = 2000;
        let below = (0..runs)
            .filter(|&seed| one_missing(128, 25, 30, seed).proof().unwrap().at_most(0.9) < 25)
            .count() as f64;
        let share = below / runs as f64;
        assert!(share < 0.1 + 4.0 * libm::sqrt(0.09 / runs as f64), "{share}");
        assert!(share > 0.0, "a bound that never fails is none");
    }

    proptest! {
        /// G7.
        #[test]
        fn estimates_are_in_range_and_hardening_only_lowers_them(
            own in prop::collection::vec(0..12_u64, 0..12),
            lists in prop::collection::vec((0..12_u64, prop::collection::vec(0..12_u64, 0..12),
                prop::collection::vec(0..12_u64, 0..4)), 1..12),
        ) {
            let mut sample = Sample::new(ids(&own));
            for (from, list, failed) in &lists {
                sample.on_answer(NodeId::new(*from), ids(list), ids(failed));
            }
            let nodes = f64::from(sample.nodes());
            let corrected = sample.c_hat(Rule::Corrected).unwrap();
            prop_assert!((0.0..=nodes).contains(&corrected));
            prop_assert!(sample.c(Rule::Corrected).unwrap() < sample.nodes());
            if let Some(hardened) = sample.c_hat(Rule::Hardened) {
                prop_assert!(hardened <= corrected);
                prop_assert!(2 * sample.worst(Rule::Hardened).unwrap().missing <= sample.answers());
            }
        }
    }
}
