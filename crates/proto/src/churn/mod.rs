//! How far lists of members disagree: estimators of `c`, the churn bound of the churn-tolerant elections.
//!
//! Source: thesis of 2023, chapter 7. `c` bounds how many lists of live nodes lack any one live node. An
//! election asks `c + 1` nodes: with `c` too small it may miss the best of them, with `c` too large it
//! wastes messages. Nobody knows `c`, so it is estimated, and the estimate says how sure it is.
//!
//! | module | holds |
//! |---|---|
//! | [`zscore`] | Algorithm 6: compare the lists of some nodes |
//! | [`sample_size`] | how many lists that takes, Table 7.1 |
//! | [`feedback`] | Algorithm 7: what elections saw by the way |
//! | [`window`] | Equation 7.1: the average that both are smoothed by |
//! | [`tail`] | what a count proves about the whole |
//! | [`estimate`] | all of these together, as an agent keeps them |
//! | [`survey`] | the conversation that keeps them current |
//!
//! Like a [`mechanism`](crate::mechanism), an estimator knows nothing of messages or sending: it takes
//! facts and `now`, and returns decisions. Only the survey knows what to send to whom. `C-n` is an erratum of the chapter.

pub mod estimate;
pub mod feedback;
pub mod sample_size;
pub mod survey;
pub mod tail;
pub mod window;
pub mod zscore;

/// The whole number of lists that `c` comes to among `nodes`: rounded up, for one list too few is one too
/// many missed, and never more than all others. What is no number comes to all others.
pub fn whole(c: f64, nodes: u32) -> u32 {
    let most = nodes.saturating_sub(1);
    // A quotient such as 2·6/3 must not be pushed up by its last bit.
    let up = libm::ceil(c - 1e-9 * c.abs().max(1.0));
    if up < f64::from(most) { up.max(0.0) as u32 } else { most }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_of_a_list_is_a_list_and_nobody_is_missing_from_its_own() {
        for (c, nodes, expected) in [
            (0.0, 9, 0),
            (0.01, 9, 1),
            (4.0, 9, 4),
            (0.1 + 0.2 + 3.7, 9, 4),
            (4.001, 9, 5),
            (9.0, 9, 8),
            (-3.0, 9, 0),
            (f64::NAN, 9, 8),
            (f64::INFINITY, 9, 8),
            (3.0, 1, 0),
            (3.0, 0, 0),
        ] {
            assert_eq!(whole(c, nodes), expected, "{c} of {nodes}");
        }
    }

    proptest! {
        #[test]
        fn more_is_never_less(one: f64, other: f64, nodes: u32) {
            let (less, more) = (one.min(other), one.max(other));
            prop_assert!(whole(less, nodes) <= whole(more, nodes));
            prop_assert!(whole(more, nodes) <= nodes.saturating_sub(1));
        }
    }
}
