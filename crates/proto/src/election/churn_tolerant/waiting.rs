//! Somebody else's election (MI4): how long it is left alone, how one asks after it, and whose turn it is once it
//! has been abandoned.

use alloc::vec::Vec;

use super::{ChurnTolerant, RESUME, Timer, message::Message};
use crate::{
    epoch::Epoch,
    id::NodeId,
    machine::OutboxOf,
    time::{Duration, Time},
};

impl ChurnTolerant {
    /// Another election, or word of one. Hardened only.
    pub(super) fn hear_of(&mut self, now: Time, epoch: Epoch) {
        let election = Epoch::mint(epoch.counter(), epoch.minter());
        if self.known.is_some_and(|known| known >= election) {
            return;
        }
        if now.since(self.started) < self.newcomer() {
            self.abstains = self.abstains.max(election.counter());
        }
        self.known = Some(election);
        self.heard_of = now;
        if self.round.as_ref().is_some_and(|round| round.election < election) {
            self.end_round();
        }
        // For everybody: whoever asks may die before it has an answer.
        self.await_outcome(now);
    }

    /// How long a node is new.
    fn newcomer(&self) -> Duration {
        self.config.grace.unwrap_or(self.config.timeout * RESUME).div(2)
    }

    /// Just started: others may know who leads, and will be asked. Whoever comes back and elects instead would depose a
    /// leader that does well, since by its own account its term is the newest.
    pub(super) fn await_others(&mut self, now: Time, grace: Duration) {
        self.initiate_later(now, grace);
        self.timers.set(Timer::Inquire, now + self.config.timeout);
    }

    /// Leaves it to others to elect, for as long as it takes to tell the slow and the unheard from the dead.
    pub(super) fn await_outcome(&mut self, now: Time) {
        let wait = self.config.timeout * RESUME.max(self.pace.tries());
        self.initiate_later(now, wait);
        if self.timers.deadline(Timer::Inquire).is_none() {
            self.timers.set(Timer::Inquire, now + self.config.timeout);
        }
    }

    /// The initiator has said that it is still at it: that is believed for a while.
    pub(super) fn await_longer(&mut self, now: Time) {
        let patience = self.config.timeout * (RESUME * PATIENCE);
        if now.since(self.heard_of) < patience && self.timers.deadline(Timer::Initiate).is_some() {
            self.await_outcome(now);
        }
    }

    /// Asks after an election that we wait for: its initiator, whoever is to lead, and somebody who may have heard
    /// by now. All we say is what we heard last; whoever knows better answers.
    pub(super) fn inquire(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let claim = self.standing().map(|record| record.claim);
        if self.round.is_some()
            || self.timers.deadline(Timer::Initiate).is_none()
            || claim.is_some_and(|claim| claim.confirmed)
        {
            return;
        }
        let heard = claim.map(|claim| claim.epoch).or(self.vouched);
        let epoch = heard.unwrap_or(Epoch::mint(0, self.me));
        let leader = claim.map(|claim| claim.leader.peer.id);
        let initiator = self.known.map(|known| known.minter().id);
        let mut whom: Vec<NodeId> = Vec::new();
        let others: Vec<NodeId> = self.view.others().collect();
        let anybody =
            (!others.is_empty()).then(|| others[self.rng.below(others.len() as u64) as usize]);
        for id in [initiator, leader, anybody].into_iter().flatten() {
            if id != self.me.id && !whom.contains(&id) {
                whom.push(id);
            }
        }
        for id in whom {
            out.send(id, Message::LeaderAck { epoch, confirmed: false });
        }
        self.timers.set(Timer::Inquire, now + self.pace.retry(self.config.timeout));
    }

    /// Not all at once: whoever is likelier to lead asks sooner, and most will hear of it before their
    /// turn comes. Those far down the order would all be last: they draw lots.
    pub(super) fn initiate_later(&mut self, now: Time, wait: Duration) {
        let rank = self.view.rank(self.config.criterion) as u64;
        let turn = match rank.checked_sub(LAST_TURN) {
            None => rank,
            Some(beyond) => LAST_TURN + self.rng.below(beyond + 1),
        };
        let stagger = self.config.timeout.div(4) * turn;
        let jitter = self.rng.up_to(self.config.timeout.div(8));
        self.timers.set(Timer::Initiate, now + wait + stagger + jitter);
    }
}

/// Later turns than this are drawn by lot.
const LAST_TURN: u64 = 7;
/// For so many times what an election is left alone at first, an initiator may say that it is still at it.
const PATIENCE: u64 = 16;
