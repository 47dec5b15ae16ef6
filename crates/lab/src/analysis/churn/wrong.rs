//! What an underestimated `c` costs: how often the wrong node is elected (Theorem 1', §7.3, Figs. 7.1 and 7.2).
//!
//! The would-be leader is missing from `lacking` of `N` lists; an initiator takes the answers of `c_u + 1` nodes
//! drawn at random, itself among all. It misses the would-be leader if all of them lack it, and then all agree
//! on another: one leader, but the wrong one. From `c_u = lacking` on that cannot happen, which is Theorem 1.

use super::hypergeometric::all_marked;

/// Probability that one initiator elects the wrong node: `C(c_a, c_u+1)/C(N, c_u+1)`. Whoever asks more than
/// there are asks all.
///
/// ```
/// use bellwether_lab::analysis::churn::wrong::by_one;
///
/// // Fig. 7.1 at c = 1: one decision in 27 is wrong.
/// assert!((by_one(128, 25, 1) - 0.0369).abs() < 5e-5);
/// assert_eq!(by_one(128, 25, 25), 0.0);
/// ```
pub fn by_one(nodes: u32, lacking: u32, c_used: u32) -> f64 {
    all_marked(nodes, lacking, c_used.saturating_add(1).min(nodes))
}

/// Probability that any of some initiators, each drawing anew, elects the wrong node (C-31).
pub fn by_any(nodes: u32, lacking: u32, c_used: u32, initiators: u32) -> f64 {
    -libm::expm1(f64::from(initiators) * libm::log1p(-by_one(nodes, lacking, c_used)))
}

/// Mean hash rank of one initiator's leader, where the first `low` nodes are each missing from `lacking` lists,
/// drawn apart for each, and everybody else from none (Fig. 7.1; C-31).
///
/// A leader of rank `r` or more means that all answers lack each of the first `r`. Whom a list lacks is drawn
/// apart for each node, so over all ways to draw the chances multiply: the mean is `Σ_{r=1..low} P^r`.
pub fn mean_rank(nodes: u32, lacking: u32, c_used: u32, low: u32) -> f64 {
    let once = by_one(nodes, lacking, c_used);
    (1..=low).map(|rank| libm::pow(once, f64::from(rank))).sum()
}

#[cfg(test)]
mod tests {
    use bellwether_proto::{Rng, Seed};

    use super::super::{close, draw, simulates};
    use super::*;

    /// Theorem 1' for Fig. 7.1: one decision, any of five.
    #[test]
    fn figure_7_1() {
        // Each within half of its last digit.
        for (c, one, half, any, half_any) in [
            (1, 0.0369, 5e-5, 0.171, 5e-4),
            (2, 0.006_74, 5e-6, 0.033, 5e-4),
            (3, 0.001_19, 5e-6, 0.006, 5e-4),
            (4, 0.000_20, 5e-6, 0.001, 5e-4),
            (5, 0.000_033, 5e-7, 0.0002, 5e-5),
        ] {
            close(&format!("c = {c}"), by_one(128, 25, c), one, half);
            close(&format!("any of 5, c = {c}"), by_any(128, 25, c, 5), any, half_any);
        }
    }

    /// Theorem 1': every list matrix column with `lacking` entries missing, every set of responders.
    #[test]
    fn it_is_what_trying_all_responders_gives() {
        for nodes in 1..=9_u32 {
            for (lacking, c) in (0..nodes).flat_map(|l| (0..nodes).map(move |c| (l, c))) {
                let asked = (0..1_u32 << nodes).filter(|set| set.count_ones() == c + 1);
                let (all, wrong) = asked.fold((0, 0), |(all, wrong), set| {
                    (all + 1, wrong + u32::from(set >> lacking == 0))
                });
                let exact = f64::from(wrong) / f64::from(all);
                close(&format!("{nodes} {lacking} {c}"), by_one(nodes, lacking, c), exact, 1e-13);
                assert_eq!(by_one(nodes, lacking, c) == 0.0, c >= lacking, "Theorem 1");
            }
        }
    }

    /// One decision of Base: the first five nodes are each missing from 25 lists; whose, is drawn.
    fn rank(rng: &mut Rng, c: u32) -> u32 {
        let lacking: Vec<Vec<u32>> = (0..5).map(|_| draw(rng, 128, 25)).collect();
        let asked = draw(rng, 128, c + 1);
        let named = |node: &usize| asked.iter().any(|from| !lacking[*node].contains(from));
        (0..5).find(named).unwrap_or(5) as u32
    }

    #[test]
    fn the_mean_rank_simulates() {
        for c in [1, 2] {
            let mut rng = Seed::new(u64::from(c)).rng();
            simulates(&format!("c = {c}"), mean_rank(128, 25, c, 5), || rank(&mut rng, c).into());
        }
        assert!((0.037..0.042).contains(&mean_rank(128, 25, 1, 5)), "between .037 and .042");
    }

    #[test]
    fn any_of_several_simulates() {
        let mut rng = Seed::new(4).rng();
        let wrong = |rng: &mut Rng| draw(rng, 128, 3).iter().all(|&node| node < 25);
        simulates("c = 2, five", by_any(128, 25, 2, 5), || {
            f64::from(u8::from((0..5).filter(|_| wrong(&mut rng)).count() > 0))
        });
    }

    #[test]
    fn more_responders_are_never_worse_and_all_is_a_probability() {
        for (nodes, lacking) in [(1, 0), (2, 1), (49, 13), (128, 127), (1024, 102)] {
            for c in 0..nodes + 3 {
                let wrong = by_one(nodes, lacking, c);
                assert!((0.0..=1.0).contains(&wrong));
                assert!(by_one(nodes, lacking, c + 1) <= wrong);
                assert!(by_any(nodes, lacking, c, 9) >= wrong);
            }
        }
    }
}
