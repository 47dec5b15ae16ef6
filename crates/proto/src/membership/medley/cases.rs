//! The members under suspicion, and who accuses them.
//!
//! Where messages get lost in a large group, hundreds are suspects at once and most news is about one of them. So
//! cases are found by the suspect, by when they end, and counted by who accused first, without looking through all.

use alloc::{collections::VecDeque, vec::Vec};

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
    /// Ordered by suspect, of whom each has one.
    all: Vec<(NodeId, Case)>,
    /// By end and turn.
    ends: VecDeque<End>,
    /// How many cases each first accuser has open, by accuser.
    open: Vec<(NodeId, usize)>,
    turn: u64,
}

/// When whose case ends, and who accused first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct End {
    at: (Time, u64),
    suspect: NodeId,
    first: Option<NodeId>,
}

impl Cases {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn of(&self, suspect: NodeId) -> Option<&Case> {
        self.find(suspect).ok().map(|at| &self.all[at].1)
    }

    fn find(&self, suspect: NodeId) -> Result<usize, usize> {
        self.all.binary_search_by_key(&suspect, |&(id, _)| id)
    }

    /// When the first of them ends, and whose case that is.
    pub(super) fn first(&self) -> Option<(Time, NodeId)> {
        self.ends.front().map(|end| (end.at.0, end.suspect))
    }

    /// The suspects whose cases end until then, by the end.
    pub(super) fn until(&self, end: Time) -> impl Iterator<Item = NodeId> + '_ {
        self.ends.iter().take_while(move |case| case.at.0 <= end).map(|case| case.suspect)
    }

    /// How many `accuser` was the first to accuse.
    pub(super) fn accused_by(&self, accuser: NodeId) -> usize {
        let found = self.open.binary_search_by_key(&accuser, |&(id, _)| id);
        found.map_or(0, |at| self.open[at].1)
    }

    /// The `nth` of them, by the end.
    pub(super) fn nth_accused_by(&self, accuser: NodeId, nth: usize) -> Option<NodeId> {
        if nth >= self.accused_by(accuser) {
            return None;
        }
        let mut theirs = self.ends.iter().filter(|end| end.first == Some(accuser));
        theirs.nth(nth).map(|end| end.suspect)
    }

    /// Opens a case, of which there is none.
    pub(super) fn open(&mut self, suspect: NodeId, since: Time, until: Time, accusers: Accusers) {
        let Err(place) = self.find(suspect) else { return };
        self.turn += 1;
        let (turn, first) = (self.turn, accusers.first());
        if let Some(first) = first {
            match self.open.binary_search_by_key(&first, |&(id, _)| id) {
                Ok(at) => self.open[at].1 += 1,
                Err(at) => self.open.insert(at, (first, 1)),
            }
        }
        let end = self.ends.partition_point(|end| end.at <= (until, turn));
        self.ends.insert(end, End { at: (until, turn), suspect, first });
        self.all.insert(place, (suspect, Case { since, until, accusers, turn }));
    }

    /// The case against `suspect` is settled, if there is one.
    pub(super) fn close(&mut self, suspect: NodeId) -> Option<Case> {
        let (_, case) = self.all.remove(self.find(suspect).ok()?);
        let end = self.ends.binary_search_by_key(&(case.until, case.turn), |end| end.at).ok()?;
        let End { first, .. } = self.ends.remove(end)?;
        if let Some(first) = first
            && let Ok(at) = self.open.binary_search_by_key(&first, |&(id, _)| id)
        {
            self.open[at].1 -= 1;
            if self.open[at].1 == 0 {
                self.open.remove(at);
            }
        }
        Some(case)
    }

    /// `by` accuses `suspect` as well: the case, if that is not the first time and there is one.
    pub(super) fn confirm(&mut self, suspect: NodeId, by: NodeId) -> Option<Case> {
        let at = self.find(suspect).ok()?;
        let case = &mut self.all[at].1;
        case.accusers.add(by).then_some(*case)
    }
}
