//! The leader and its followers: B5 and B6, and how LEADER reaches everybody.

use alloc::vec::Vec;

use super::{
    ChurnTolerant, Record, Timer,
    config::{Multicast, Notify},
    message::{Candidate, Claim, Life, Message},
    round::Round,
};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    machine::OutboxOf,
    time::Time,
};

/// What a leader keeps.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Tenure {
    /// Who has yet to acknowledge LEADER, by identity.
    waiting: Vec<NodeId>,
    /// How often they were told again.
    resent: u8,
    /// The best of those that object, until it is handed over to.
    pub(super) objector: Option<Candidate>,
    /// Those handed over to in vain (RP3), and until when they are ignored.
    pub(super) ignored: Vec<Life>,
    pub(super) ignored_until: Time,
    /// Who led before.
    before: Option<NodeId>,
}

/// What whoever is to lead is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Notice {
    pub(super) epoch: Epoch,
    pub(super) confirmed: bool,
    pub(super) appointed: bool,
    pub(super) churn: u16,
}

impl ChurnTolerant {
    /// B5.
    pub(super) fn on_notify(
        &mut self,
        now: Time,
        from: Peer,
        notice: Notice,
        out: &mut OutboxOf<Self>,
    ) {
        let Notice { epoch, confirmed, appointed, churn } = notice;
        let churn = churn.max(self.churn);
        let claim = Claim { epoch, leader: self.view.me(), confirmed, appointed, churn };
        if !self.config.hardened() {
            self.become_leading(now, claim, out);
            return;
        }
        self.hear_of(now, epoch);
        if self.view.observes() {
            // Somebody has not heard that we never lead; it will soon think us dead.
            return;
        }
        let known = self.standing().map(|record| record.claim);
        if self.vouched.is_none_or(|vouched| epoch > vouched) {
            self.become_leading(now, claim, out);
        } else if let Some(known) = known.filter(|known| known.epoch >= epoch) {
            let ours = known.leader.peer == self.me && known.epoch == epoch;
            if ours && confirmed && !known.confirmed {
                self.become_leading(now, claim, out);
            } else if from != self.me {
                // It has not heard, or not of what came after.
                self.tell(from.id, out);
            }
        }
    }

    /// B6.
    pub(super) fn on_leader(
        &mut self,
        now: Time,
        from: Peer,
        claim: &Claim,
        out: &mut OutboxOf<Self>,
    ) {
        let hardened = self.config.hardened();
        let acknowledged = match self.config.multicast {
            Multicast::Substrate => false,
            Multicast::Oracle | Multicast::OwnList => true,
            // Whoever passes it on keeps no account.
            Multicast::Gossip { .. } => from.id == claim.leader.peer.id,
        };
        if acknowledged {
            let confirmed = claim.confirmed || !hardened;
            out.send(from.id, Message::LeaderAck { epoch: claim.epoch, confirmed });
        }
        if !hardened {
            self.on_any_leader(now, claim, out);
            return;
        }
        self.hear_of(now, claim.epoch);
        let vouched = self.vouched;
        match self.standing().map(|record| record.claim) {
            // Who asks us whether we still lead, or has not heard who does.
            Some(known) if known.leader.peer == self.me && known.epoch == claim.epoch => {
                self.tell(from.id, out);
            }
            Some(known) if known.epoch > claim.epoch => self.tell(from.id, out),
            _ if vouched.is_some_and(|vouched| vouched > claim.epoch) => {}
            known => self.on_current_leader(now, from, claim, known.is_some(), out),
        }
    }

    /// A claim not older than ours, and not our own.
    fn on_current_leader(
        &mut self,
        now: Time,
        from: Peer,
        claim: &Claim,
        standing: bool,
        out: &mut OutboxOf<Self>,
    ) {
        let known = self.record.filter(|record| record.claim.epoch == claim.epoch);
        if let Some(known) = known {
            if from.id == known.claim.leader.peer.id
                && let Some(record) = &mut self.record
            {
                record.heard = now;
            }
            if claim.confirmed && !known.claim.confirmed && standing {
                self.become_following(now, claim, out);
            }
            return;
        }
        // A recording of the dead, or of a past life of somebody, us included (C-12).
        let leader = claim.leader.peer;
        if leader.id == self.me.id || self.view.is_dead(claim.leader.life()) {
            if !standing && self.round.is_none() && self.timers.deadline(Timer::Initiate).is_none()
            {
                self.initiate_later(now, crate::time::Duration::ZERO);
            }
            return;
        }
        self.become_following(now, claim, out);
    }

    /// As published: the last one wins, or in Optimistic the lowest, dead or alive (C-12).
    fn on_any_leader(&mut self, now: Time, claim: &Claim, out: &mut OutboxOf<Self>) {
        let optimistic =
            self.config.notify == Notify::Streaming && self.config.health == super::Health::Ignore;
        let key = |candidate: &Candidate| self.config.criterion.key(candidate);
        let lower = |record: &Record| key(&claim.leader) <= key(&record.claim.leader);
        if !optimistic || self.record.as_ref().is_none_or(lower) {
            self.become_following(now, claim, out);
        }
    }

    /// Who has heard, and who has heard less than we know.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        from: NodeId,
        epoch: Epoch,
        confirmed: bool,
        out: &mut OutboxOf<Self>,
    ) {
        let hardened = self.config.hardened();
        let ours = self.record.map(|record| record.claim).filter(|_| self.leads());
        let resends = self.timers.deadline(Timer::Resend).is_some();
        if let Some(claim) = ours
            && let Some(tenure) = self.tenure.as_mut()
            && let Ok(at) = tenure.waiting.binary_search(&from)
        {
            if claim.epoch == epoch && (confirmed || !claim.confirmed || !hardened) {
                tenure.waiting.remove(at);
                if tenure.waiting.is_empty() {
                    self.timers.clear(Timer::Resend);
                }
                return;
            }
            if resends {
                // It will be told again in its turn.
                return;
            }
        }
        if !hardened {
            return;
        }
        let newer =
            |known: &Record| (known.claim.epoch, known.claim.confirmed) > (epoch, confirmed);
        if self.standing().is_some_and(newer) {
            self.tell(from, out);
        } else {
            self.still_asking(now, from, out);
        }
    }
}

/// The only places a leader is taken on.
impl ChurnTolerant {
    fn become_leading(&mut self, now: Time, claim: Claim, out: &mut OutboxOf<Self>) {
        let in_vain = self.round.as_ref().is_some_and(Round::hands_over);
        let ignored = if in_vain { self.dead.clone() } else { Vec::new() };
        let ignored_until = now + self.config.timeout * IGNORED;
        // Under a streaming variant we lead twice, first tentatively; the second time our own record names ourselves.
        let before = match self.record.map(|record| record.claim.leader.peer.id) {
            Some(id) if id != self.me.id => Some(id),
            _ => self.tenure.as_ref().and_then(|tenure| tenure.before),
        };
        self.vouch(now, claim, out);
        self.tenure = Some(Tenure { ignored, ignored_until, before, ..Tenure::default() });
        self.announce(now, out);
        // Whoever led before may be mute and not dead: nobody lists it any more, but it should know.
        let gossips = matches!(self.config.multicast, Multicast::Gossip { .. });
        if let Some(before) = before.filter(|&id| gossips && self.view.get(id).is_none()) {
            self.tell(before, out);
        }
        self.after_leader(now, &claim);
    }

    fn become_following(&mut self, now: Time, claim: &Claim, out: &mut OutboxOf<Self>) {
        self.tenure = None;
        self.timers.clear(Timer::Resend);
        self.vouch(now, *claim, out);
        self.after_leader(now, claim);
        if let Multicast::Gossip { spread, .. } = self.config.multicast {
            self.pass_on(usize::from(spread), out);
        }
        if self.objects() {
            self.object(now, out);
        }
    }

    /// Takes on a leader, durably.
    fn vouch(&mut self, now: Time, claim: Claim, out: &mut OutboxOf<Self>) {
        let since = match self.record {
            Some(record) if record.claim.epoch == claim.epoch => record.since,
            _ => now,
        };
        self.record = Some(Record { claim, since, heard: now, gone: None });
        self.timers.clear(Timer::Object);
        self.timers.clear(Timer::HandOver);
        self.objections = 0;
        if self.config.hardened() {
            self.churn = self.bound.max(claim.churn);
            if self.vouched != Some(claim.epoch) {
                self.vouched = Some(claim.epoch);
                self.persist(out);
            }
            self.arm_refresh(now);
        }
    }

    /// What a leader means for an election of our own: it is done (MI3), or somebody must see to it
    /// that it gets done.
    fn after_leader(&mut self, now: Time, claim: &Claim) {
        if claim.confirmed {
            self.dead.clear();
        }
        let Some(round) = &mut self.round else {
            if claim.confirmed {
                self.timers.clear(Timer::Initiate);
            } else if self.config.hardened() {
                self.await_outcome(now);
            }
            return;
        };
        round.claimed = Some(claim.leader.peer.id);
        let done = match self.config.hardened() {
            true => claim.confirmed && claim.epoch >= round.last_token(),
            // The final one: a tentative leader does not end the round.
            false => {
                self.timers.deadline(Timer::Leader).is_some() && round.awaits(claim.leader.peer.id)
            }
        };
        if done {
            self.end_round();
            self.timers.clear(Timer::Initiate);
        }
    }
}

/// Telling others.
impl ChurnTolerant {
    pub(super) fn tell(&self, to: NodeId, out: &mut OutboxOf<Self>) {
        if let Some(record) = self.standing() {
            out.send(to, Message::Leader(record.claim));
        }
    }

    /// LEADER to everybody.
    fn announce(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let targets: Vec<NodeId> = match self.config.multicast {
            Multicast::Substrate => {
                if let Some(record) = &self.record {
                    out.multicast(Message::Leader(record.claim));
                }
                return;
            }
            Multicast::Oracle => {
                self.group.iter().copied().filter(|&id| id != self.me.id).collect()
            }
            Multicast::OwnList | Multicast::Gossip { .. } => self.view.others().collect(),
        };
        targets.iter().for_each(|&id| self.tell(id, out));
        if let Some(tenure) = self.tenure.as_mut().filter(|_| !targets.is_empty()) {
            tenure.waiting = targets;
            tenure.resent = 0;
            self.timers.set(Timer::Resend, now + self.again());
        }
    }

    pub(super) fn resend(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Some(mut tenure) = self.tenure.take() else { return };
        tenure.resent += 1;
        if matches!(self.config.multicast, Multicast::Gossip { .. }) {
            tenure.waiting.retain(|&id| self.view.get(id).is_some());
        }
        tenure.waiting.iter().for_each(|&id| self.tell(id, out));
        if tenure.resent < RESENDS {
            self.timers.set(Timer::Resend, now + self.again());
        }
        self.tenure = Some(tenure);
    }

    pub(super) fn pass_on(&mut self, count: usize, out: &mut OutboxOf<Self>) {
        let mut others: Vec<NodeId> = self.view.others().collect();
        for at in 0..count.min(others.len()) {
            let chosen = at + self.rng.below((others.len() - at) as u64) as usize;
            others.swap(at, chosen);
            self.tell(others[at], out);
        }
    }

    /// Tells one after the other, from somebody random on: by chance alone somebody who is on few lists, and hears from
    /// nobody else, might be left out for long.
    fn tell_next(&mut self, out: &mut OutboxOf<Self>) {
        let others: Vec<NodeId> = self.view.others().collect();
        if others.is_empty() {
            return;
        }
        let at = match self.refreshed {
            None => self.rng.below(others.len() as u64) as usize,
            Some(last) => others.partition_point(|&id| id <= last) % others.len(),
        };
        self.refreshed = Some(others[at]);
        self.tell(others[at], out);
    }

    pub(super) fn arm_refresh(&mut self, now: Time) {
        if let Multicast::Gossip { refresh, .. } = self.config.multicast {
            self.timers.set(Timer::Refresh, now + refresh);
        }
    }

    /// Tells somebody who leads. A leader that is not on our list is asked whether it still does.
    pub(super) fn refresh(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Multicast::Gossip { refresh, .. } = self.config.multicast else { return };
        let Some(record) = self.standing() else { return };
        let (leader, heard) = (record.claim.leader.peer.id, record.heard);
        self.arm_refresh(now);
        self.tell_next(out);
        if leader != self.me.id && self.view.get(leader).is_none() {
            if now.since(heard) > refresh * SILENT_REFRESHES {
                self.lose_leader(now, out);
            } else {
                self.tell(leader, out);
            }
        }
    }
}

/// How often LEADER is repeated to those that do not acknowledge it (MCAST_RESEND).
const RESENDS: u8 = 10;
/// For how many timeouts whoever did not answer a hand-over may not object: as long as the slowest pause
/// between two objections.
const IGNORED: u64 = 16;
/// After so many silent refreshes a leader that is on no list of ours is given up.
const SILENT_REFRESHES: u64 = 8;
