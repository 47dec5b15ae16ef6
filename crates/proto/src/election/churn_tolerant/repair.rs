//! Repair where `c` was too small: RP1 to RP6. Hardened, Base and Optimistic only: where the unhealthy are
//! passed over, a better key proves nothing.

use alloc::vec::Vec;

use super::{
    ChurnTolerant, Event, Timer,
    config::{Health, MAX_TOLERATED},
    message::{Candidate, Claim, Message},
};
use crate::{epoch::Epoch, id::NodeId, machine::OutboxOf, time::Time};

impl ChurnTolerant {
    /// RP1 and RP6: whether we ought to lead in place of the leader.
    pub(super) fn objects(&self) -> bool {
        let Some(record) = self.standing() else { return false };
        let Claim { leader, confirmed, appointed, epoch, .. } = record.claim;
        self.config.hardened()
            && self.config.health == Health::Ignore
            && confirmed
            && !appointed
            && !self.view.observes()
            && leader.peer != self.me
            && (self.config.preempt || epoch.counter() > self.abstains)
            && self.config.criterion.displaces(&self.view.me(), &leader, self.config.margin)
    }

    /// Objects, and goes on doing so, ever more rarely.
    pub(super) fn object(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.objects() {
            return;
        }
        let Some(record) = self.standing() else { return };
        let (epoch, leader) = (record.claim.epoch, record.claim.leader.peer.id);
        let Candidate { incarnation, attribute, .. } = self.view.me();
        out.send(leader, Message::Object { epoch, incarnation, attribute });
        let wait = self.config.timeout * (1 << self.objections.min(SLOWEST));
        self.objections = self.objections.saturating_add(1);
        self.timers.set(Timer::Object, now + wait);
    }

    /// RP2 and RP4.
    pub(super) fn on_object(
        &mut self,
        now: Time,
        epoch: Epoch,
        objector: Candidate,
        out: &mut OutboxOf<Self>,
    ) {
        let Some(claim) = self.standing().map(|record| record.claim) else { return };
        if claim.epoch > epoch {
            self.tell(objector.peer.id, out);
            return;
        }
        let (criterion, margin) = (self.config.criterion, self.config.margin);
        let Some(tenure) = self.tenure.as_mut().filter(|_| claim.leader.peer == self.me) else {
            return;
        };
        let ignored = now < tenure.ignored_until
            && tenure.ignored.iter().any(|dead| dead.buries(objector.life()));
        if claim.epoch != epoch
            || !claim.confirmed
            || claim.appointed
            || ignored
            || !self.config.hardened()
            || self.config.health != Health::Ignore
            || !criterion.displaces(&objector, &self.view.me(), margin)
        {
            return;
        }
        let better = |one: &Candidate| criterion.key(&objector) < criterion.key(one);
        if tenure.objector.as_ref().is_none_or(better) {
            tenure.objector = Some(objector);
        }
        if self.timers.deadline(Timer::HandOver).is_none() {
            self.churn = claim.churn.saturating_add(1).max(self.churn).min(MAX_TOLERATED);
            out.emit(Event::Objected { by: objector.peer.id, churn: self.churn });
            self.timers.set(Timer::HandOver, now + self.config.timeout.div(2));
        }
    }

    /// RP2 and RP3: stops leading, and notifies the best of those that objected.
    pub(super) fn hand_over(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let objector = self.tenure.as_mut().and_then(|tenure| tenure.objector.take());
        let Some(objector) = objector.filter(|_| self.leads()) else { return };
        self.yield_to(now, Vec::from([objector, self.view.me()]), false, out);
    }

    /// Stops leading of our own will. Who does not lead has nothing to resign.
    pub(super) fn resign(&mut self, now: Time, to: Option<NodeId>, out: &mut OutboxOf<Self>) {
        if !self.leads() || !self.config.hardened() {
            return;
        }
        let mut successors: Vec<Candidate> = self.view.candidates().collect();
        successors.retain(|one| one.peer.id != self.me.id && to.is_none_or(|to| one.peer.id == to));
        successors.sort_unstable_by_key(|one| self.config.criterion.key(one));
        successors.truncate(MOST_SUCCESSORS);
        if successors.is_empty() {
            return;
        }
        if !self.view.observes() {
            successors.push(self.view.me());
        }
        self.yield_to(now, successors, true, out);
    }

    /// Our own attribute has changed: say so if we lead, see whether we ought to if we do not.
    pub(super) fn reconsider(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.leads() && self.view.observes() {
            self.resign(now, None, out);
        } else if self.leads() {
            self.yield_to(now, Vec::from([self.view.me()]), false, out);
        } else if self.objects() && self.timers.deadline(Timer::Object).is_none() {
            self.objections = 0;
            self.object(now, out);
        }
    }

    fn yield_to(
        &mut self,
        now: Time,
        candidates: Vec<Candidate>,
        appoints: bool,
        out: &mut OutboxOf<Self>,
    ) {
        if let Some(record) = &mut self.record {
            record.gone = Some(now);
        }
        self.timers.clear(Timer::Resend);
        self.timers.clear(Timer::Refresh);
        self.hand_over_to(now, candidates, appoints, out);
    }
}

/// A leader that resigns tries so many others before it leads on.
const MOST_SUCCESSORS: usize = 3;
/// Objections are repeated after one timeout, two, four, up to sixteen.
const SLOWEST: u32 = 4;
