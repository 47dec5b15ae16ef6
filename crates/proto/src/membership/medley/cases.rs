//! The members under suspicion, and who accuses them.
//!
//! Where messages get lost in a large group, hundreds are suspects at once and most news is about one of them. So
//! cases are found by the suspect, by when they end, and counted by who accused first, without looking through all.

use alloc::collections::BTreeMap;

use super::news::Accusers;
use crate::{id::NodeId, time::Time};

/// A member under suspicion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Case {
    pub(super) since: Time,
    pub(super) until: Time,
    pub(super) accusers: Accusers,
    /// Of cases that end at one instant the one opened first is the first to end.
    turn: u64,
}

/// All of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Cases {
    by_suspect: BTreeMap<NodeId, Case>,
    /// The suspects, each with its first accuser.
    by_end: BTreeMap<(Time, u64), (NodeId, Option<NodeId>)>,
    /// How many cases each first accuser has open.
    open: BTreeMap<NodeId, usize>,
    turn: u64,
}

impl Cases {
    pub(super) fn is_empty(&self) -> bool {
        self.by_suspect.is_empty()
    }

    pub(super) fn of(&self, suspect: NodeId) -> Option<&Case> {
        self.by_suspect.get(&suspect)
    }

    /// When the first of them ends, and whose case that is.
    pub(super) fn first(&self) -> Option<(Time, NodeId)> {
        self.by_end.first_key_value().map(|(&(until, _), &(suspect, _))| (until, suspect))
    }

    /// The suspects whose cases end until then, by the end.
    pub(super) fn until(&self, end: Time) -> impl Iterator<Item = NodeId> + '_ {
        self.by_end.range(..=(end, u64::MAX)).map(|(_, &(suspect, _))| suspect)
    }

    /// How many `accuser` was the first to accuse.
    pub(super) fn accused_by(&self, accuser: NodeId) -> usize {
        self.open.get(&accuser).copied().unwrap_or(0)
    }

    /// The `nth` of them, by the end.
    pub(super) fn nth_accused_by(&self, accuser: NodeId, nth: usize) -> Option<NodeId> {
        if nth >= self.accused_by(accuser) {
            return None;
        }
        let theirs = self.by_end.values().filter(|&&(_, first)| first == Some(accuser));
        { theirs }.nth(nth).map(|&(suspect, _)| suspect)
    }

    /// Opens a case, of which there is none.
    pub(super) fn open(&mut self, suspect: NodeId, since: Time, until: Time, accusers: Accusers) {
        self.turn += 1;
        let turn = self.turn;
        if let Some(first) = accusers.first() {
            *self.open.entry(first).or_insert(0) += 1;
        }
        self.by_end.insert((until, turn), (suspect, accusers.first()));
        self.by_suspect.insert(suspect, Case { since, until, accusers, turn });
    }

    /// The case against `suspect` is settled, if there is one.
    pub(super) fn close(&mut self, suspect: NodeId) -> Option<Case> {
        let case = self.by_suspect.remove(&suspect)?;
        let (_, first) = self.by_end.remove(&(case.until, case.turn))?;
        if let Some(first) = first
            && let Some(open) = self.open.get_mut(&first)
        {
            *open -= 1;
            if *open == 0 {
                self.open.remove(&first);
            }
        }
        Some(case)
    }

    /// `by` accuses `suspect` as well: the case, if that is not the first time and there is one.
    pub(super) fn confirm(&mut self, suspect: NodeId, by: NodeId) -> Option<Case> {
        let case = self.by_suspect.get_mut(&suspect)?;
        case.accusers.add(by).then_some(*case)
    }
}
