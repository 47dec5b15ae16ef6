//! Probability migration: how a node that is pinged too rarely gets a larger share.
//!
//! Source: Medley-F, Algorithm 1. The reporter is raised to the mean `t` of itself and all that are
//! more probable; those above `t` pay for it in proportion to how far above they are. Nobody who pays
//! ends below `t`, so no sponsor becomes the next unlucky node, and the sum is kept.
//!
//! Departure: the published text divides by zero when the reporter already has the largest
//! probability (M-2). Nothing is migrated then.

/// What one report changes, for whoever has no room for all that it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Migration {
    reporter: usize,
    /// Where the reporter is raised to, and nobody falls below.
    target: f64,
    /// The part of what they are above it that the others pay.
    part: f64,
}

impl Migration {
    /// What a report of `reporter` changes in `p`, if anything. Nothing if `reporter` is no index.
    ///
    /// `p` need not be normalised: the rule is linear in it.
    pub fn of(p: &[f64], reporter: usize) -> Option<Self> {
        let &share = p.get(reporter)?;
        let above = p.iter().filter(|&&other| other > share);
        let (sum, count) = above.fold((0.0, 0.0), |(sum, count), other| (sum + other, count + 1.0));
        let target = (sum + share) / (count + 1.0);
        let excess: f64 = p.iter().map(|&other| (other - target).max(0.0)).sum();
        // Rounding may leave the mean of equals a hair off: then there is nobody to take from.
        let changes = excess > 0.0 && target > share;
        changes.then(|| Self { reporter, target, part: (target - share) / excess })
    }

    /// What becomes of the probability `p` of `at`.
    #[inline]
    pub fn apply(&self, at: usize, p: f64) -> f64 {
        if at == self.reporter {
            self.target
        } else if p > self.target {
            p - (p - self.target) * self.part
        } else {
            p
        }
    }
}

/// Raises `p[reporter]` at the expense of the most probable, and says what changed, if anything did.
pub fn migrate(p: &mut [f64], reporter: usize) -> Option<Migration> {
    let migration = Migration::of(p, reporter)?;
    p.iter_mut().enumerate().for_each(|(at, p)| *p = migration.apply(at, *p));
    Some(migration)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn close(found: &[f64], expected: &[f64], within: f64) {
        let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(found.len() == expected.len() && off <= within, "{found:?} for {expected:?}");
    }

    /// V1 and V3: the thesis's example, and what repeated reports make of it.
    #[test]
    fn the_published_example_and_its_repetitions() {
        let mut p = [0.43, 0.30, 0.17, 0.10];
        assert!(migrate(&mut p, 3).is_some());
        close(&p, &[0.312_608_7, 0.267_391_3, 0.17, 0.25], 5e-8);
        migrate(&mut p, 3);
        close(&p, &[0.285_94, 0.267_39, 0.17, 0.276_67], 5e-6);
        migrate(&mut p, 3);
        close(&p, &[0.281_30, 0.267_39, 0.17, 0.281_30], 5e-6);
        let fixed = p;
        migrate(&mut p, 3);
        close(&p, &fixed, 1e-12);
    }

    /// V2.
    #[test]
    fn the_example_of_the_reference_code() {
        let mut p = [0.43, 0.32, 0.15, 0.10];
        migrate(&mut p, 2);
        close(&p, &[0.30, 0.30, 0.30, 0.10], 1e-12);
    }

    /// V4 and V5, and an index that is none.
    #[test]
    fn whoever_already_has_the_most_gets_no_more() {
        for (mut p, reporter) in [([0.4, 0.3, 0.3], 0), ([0.25; 3], 1), ([0.4, 0.3, 0.3], 3)] {
            let before = p;
            assert_eq!(migrate(&mut p, reporter), None);
            assert_eq!(p, before);
        }
        assert_eq!(migrate(&mut [], 0), None);
    }

    proptest! {
        /// P1 and V15.
        #[test]
        fn shares_are_moved_and_never_made(
            weights in prop::collection::vec(1e-6..1.0_f64, 1..40),
            pick: prop::sample::Index,
        ) {
            let total: f64 = weights.iter().sum();
            let before: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
            let reporter = pick.index(before.len());
            let mut after = before.clone();
            migrate(&mut after, reporter);
            prop_assert!((after.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let target = after[reporter];
            prop_assert!(target >= before[reporter]);
            let excess: f64 = before.iter().map(|p| (p - target).max(0.0)).sum();
            prop_assert!(target - before[reporter] <= excess + 1e-12);
            for (k, (&old, &new)) in before.iter().zip(&after).enumerate() {
                prop_assert!(new > 0.0);
                if k != reporter && old <= target {
                    prop_assert_eq!(old, new);
                } else {
                    prop_assert!(new >= target - 1e-12, "sponsor {} fell to {}", k, new);
                }
            }
        }
    }
}
