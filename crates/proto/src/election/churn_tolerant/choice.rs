//! What answers amount to: whom they elect.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{
    config::{Config, ExcludeRule, Health},
    message::{Candidate, Life},
    view::Key,
};
use crate::id::NodeId;

/// One answer, as it was given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) from: NodeId,
    pub(super) candidates: Vec<Candidate>,
    pub(super) excluded: Vec<(NodeId, u32)>,
}

impl Answer {
    /// Whether it names anybody who may be alive.
    pub(super) fn names_living(&self, dead: &[Life]) -> bool {
        self.candidates.iter().any(|candidate| !candidate.is_dead(dead))
    }
}

/// The lowest key that some answer names and none excludes. Depends on the set of answers alone, so that
/// deciding as they come in and deciding at the end are the same (G6).
pub(super) fn elected(
    config: &Config,
    answers: &[Answer],
    most_excluded: u16,
    dead: &[Life],
) -> Option<Candidate> {
    let excluded = excluded(config, answers, most_excluded);
    let mut named: Vec<Candidate> = Vec::new();
    for candidate in answers.iter().flat_map(|answer| &answer.candidates) {
        // Of several opinions on one node the newest, then the one that flatters it least.
        let newest = |one: &Candidate| (one.peer.boot, one.incarnation, Reverse(one.attribute));
        match named.iter_mut().find(|other| other.peer.id == candidate.peer.id) {
            Some(other) if newest(candidate) > newest(other) => *other = *candidate,
            Some(_) => {}
            None => named.push(*candidate),
        }
    }
    named.retain(|one| !one.is_dead(dead) && !excluded.contains(&one.peer.id));
    named.into_iter().min_by_key(|candidate| config.criterion.key(candidate))
}

/// Whom the answers keep out.
fn excluded(config: &Config, answers: &[Answer], most: u16) -> Vec<NodeId> {
    let Health::Exclude { threshold, rule, .. } = config.health else { return Vec::new() };
    let mut sums: Vec<(NodeId, u32)> = Vec::new();
    for &(id, times) in answers.iter().flat_map(|answer| &answer.excluded) {
        match sums.iter_mut().find(|(other, _)| *other == id) {
            Some((_, sum)) => *sum = sum.saturating_add(times),
            None => sums.push((id, times)),
        }
    }
    if rule == ExcludeRule::TopOfSum {
        sums.retain(|&(_, sum)| sum >= threshold);
        sums.sort_unstable_by_key(|&(id, sum)| Reverse((sum, known_key(config, answers, id))));
        sums.truncate(usize::from(most));
    }
    sums.into_iter().map(|(id, _)| id).collect()
}

/// The key of somebody named; whoever is no candidate has the key of a worthless one.
fn known_key(config: &Config, answers: &[Answer], id: NodeId) -> Key {
    let named = answers.iter().flat_map(|answer| &answer.candidates);
    let candidate = named.copied().find(|candidate| candidate.peer.id == id);
    config.criterion.key(&candidate.unwrap_or_else(|| Candidate::worthless(id)))
}
