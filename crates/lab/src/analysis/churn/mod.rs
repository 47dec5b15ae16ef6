//! Churn-tolerant elections (thesis of 2023, chapters 5 and 7): closed forms, as published and as corrected.
//!
//! Notation: `N` nodes; `c` bounds how many lists of live nodes lack any one live node, `f` the crashes; an
//! election asks `c + f + 1` nodes and waits for `c + 1`. The *would-be leader* is the live node that comes
//! first. `C-n` is an erratum of `docs/rules/churn-tolerant.md`.

pub mod hypergeometric;
pub mod messages;
pub mod preference;
pub mod sample;
pub mod wrong;

#[cfg(test)]
use super::{close, simulates};

/// The nodes asked: `take` of `all`, nobody twice; all of them if there are no more.
pub fn draw(rng: &mut bellwether_proto::Rng, all: u32, take: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..all).collect();
    let take = take.min(all);
    for at in 0..take {
        order.swap(at as usize, (at + rng.below(u64::from(all - at)) as u32) as usize);
    }
    order.truncate(take as usize);
    order
}
