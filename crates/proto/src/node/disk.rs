//! What must survive a restart, and what a node does when its disk refuses it.
//!
//! One rule for every mode. An election whose state the disk refused says nothing and names nobody until the disk has
//! taken it; elections whose state is safe go on. The node asks again every [`RETRY`]. What an election said last may rest
//! on what was never kept, so once the disk has recovered it gives up what it holds, as one that was stopped does.
//!
//! ```text
//! Kept    --Persist, then NotKept-----> Refused   those that are not as on disk fall silent
//! Refused --RETRY---------------------> Refused   Persist again
//! Refused --Persist, and no NotKept---> Kept      they give up leading, and take part again
//! ```

use alloc::collections::BTreeMap;

use super::{Event, Node, founding, record::KeptRecord, voters::KeptBallot};
use crate::{
    election::{announce, churn_tolerant},
    epoch::Epoch,
    machine::OutboxOf,
    stack::Group,
    time::{Duration, Time},
};

/// All that must survive a restart.
#[derive(Clone, Debug, Default, Hash, PartialEq)]
pub struct Durable {
    /// Of each election.
    pub elections: BTreeMap<Group, Kept>,
    /// What the node is good for, if that is kept.
    pub record: Option<KeptRecord>,
}

/// Of one election.
#[derive(Clone, Debug, Hash, PartialEq)]
pub enum Kept {
    /// The tokens of an eventual one.
    Eventual(churn_tolerant::Durable),
    /// Of an announced one: no larger token was minted or vouched for.
    Announced(announce::Durable),
    /// Of a leased one: no larger epoch was promised to or known.
    Leased(Epoch),
    /// Of a learned one: who votes, and how this node voted.
    Learned(KeptBallot),
}

impl Kept {
    /// Whether a life that found `other` on disk could break a promise that one with `self` would keep.
    fn is_kept_by(&self, other: Option<&Self>) -> bool {
        match (self, other) {
            // What was learnt may be lost; who votes and how must not be.
            (Self::Learned(ours), Some(Self::Learned(theirs))) => {
                let vote = |kept: &KeptBallot| {
                    kept.durable.as_ref().map(|durable| (durable.term, durable.voted_for))
                };
                ours.voters == theirs.voters && vote(ours) == vote(theirs)
            }
            _ => Some(self) == other,
        }
    }
}

/// What is known of the disk.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// What is there, as far as we know.
    written: Durable,
    /// Whether something was handed out to be kept since the last input.
    pub(super) asked: bool,
    /// Since when it refuses, and when to ask again.
    refused: Option<(Time, Time)>,
}

impl Disk {
    pub(super) fn new(written: Durable) -> Self {
        Self { written, asked: false, refused: None }
    }

    pub(super) fn retry(&self) -> Option<Time> {
        self.refused.map(|(_, retry)| retry)
    }
}

impl Node {
    /// What came of what was handed out to be kept.
    pub(super) fn learn_of_disk(&mut self, now: Time, failed: bool, out: &mut OutboxOf<Self>) {
        if !core::mem::take(&mut self.disk.asked) {
            return;
        }
        if failed {
            return self.on_refused(now, out);
        }
        self.disk.written = self.durable.clone();
        if self.disk.refused.take().is_some() {
            out.emit(Event::DiskRecovered);
            for at in 0..self.seats.len() {
                if self.seats[at].barred.take().is_some() {
                    self.void(now, at, out);
                }
            }
        }
    }

    fn on_refused(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let since = self.disk.refused.map_or(now, |(since, _)| since);
        if self.disk.refused.is_none() {
            out.emit(Event::DiskRefused);
        }
        self.disk.refused = Some((since, now + RETRY));
        for at in 0..self.seats.len() {
            let seat = &mut self.seats[at];
            let kept = self.durable.elections.get(&seat.group);
            let written = self.disk.written.elections.get(&seat.group);
            if kept.is_none_or(|kept| kept.is_kept_by(written)) || seat.barred.is_some() {
                continue;
            }
            seat.barred = Some(now);
            self.with(now, at, out, |contest, port| {
                if let super::Contest::Leased(leased) = contest {
                    founding::Founding::withdraw(leased, port);
                }
            });
        }
    }

    /// Asks the disk again, if it is time.
    pub(super) fn retry_disk(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if let Some((_, retry)) = &mut self.disk.refused
            && *retry <= now
        {
            *retry = now + RETRY;
            self.persist(out);
        }
    }

    /// Hands everything out to be kept.
    pub(super) fn persist(&mut self, out: &mut OutboxOf<Self>) {
        self.disk.asked = true;
        out.persist(self.durable.clone());
    }

    /// Since when the disk refuses what this node has to keep.
    pub fn disk_refuses_since(&self) -> Option<Time> {
        self.disk.refused.map(|(since, _)| since)
    }
}

/// Between two tries. Arbitrary: soon enough for people, and no burden on a disk in trouble.
const RETRY: Duration = Duration::from_secs(1);
