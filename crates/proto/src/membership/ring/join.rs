//! Joining in four phases, with locks (R8).

use alloc::vec::Vec;

use super::{
    Ring, RingEvent, Role,
    config::{Departure, Pace, Upgrade},
    geometry,
    lease::{Lease, State},
    message::{Body, Group, Life, Stage},
    view::{Fact, Kind},
};
use crate::{
    id::{NodeId, Peer},
    machine::{OutboxOf, Rejected},
    time::{Duration, Time},
};

/// What a joiner is at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Joining {
    phase: Step,
    /// When the phase is over.
    pub(super) until: Time,
    /// When the first question was asked.
    since: Time,
    attempts: u32,
    /// Whether anybody has answered this attempt, and how many came to nothing though somebody had.
    answered: bool,
    crowded: u32,
    /// Our neighbourhood to be.
    pub(super) near: Vec<Life>,
    locked: Vec<NodeId>,
    /// Whether the phase has failed and only its slot is waited for.
    failed: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Waiting,
    Finding,
    Locking,
    Inviting,
    Wrapping,
}

impl Ring {
    /// Asks somebody where we belong, in a new incarnation if this is not the first time.
    pub(super) fn begin_join(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let again = matches!(self.role, Role::Out);
        let joining = Joining {
            phase: Step::Waiting,
            until: now,
            since: now,
            attempts: 0,
            answered: false,
            crowded: 0,
            near: Vec::new(),
            locked: Vec::new(),
            failed: false,
        };
        self.role = Role::Joining(joining);
        if again {
            self.inc = self.inc.next();
            self.back_off(now, out);
        } else {
            self.find(now, out);
        }
    }

    fn find(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let session = self.config.session;
        let Role::Joining(joining) = &mut self.role else { return };
        joining.phase = Step::Finding;
        joining.until = now + session;
        joining.failed = false;
        joining.answered = false;
        joining.near.clear();
        joining.locked.clear();
        let attempt = joining.attempts as usize;
        joining.attempts += 1;
        if !self.contacts.is_empty() {
            let contact = self.contacts[attempt % self.contacts.len()];
            self.say(out, contact, Body::Find);
        }
    }

    /// Gives this attempt up: after the i-th waits `U(0, min(16, 2^(i-1)))` sessions. Where requests are repeated, silence is
    /// not counted: whoever asks less and less often for want of an answer comes back late from a cut.
    fn back_off(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let me = self.life();
        let (session, notify) = (self.config.session, self.config.departure == Departure::Notify);
        let draw = self.rng.unit();
        let Role::Joining(joining) = &mut self.role else { return };
        if joining.attempts > 0 && (joining.answered || self.config.repeats == 0) {
            joining.crowded += 1;
        }
        let most = (1_u64 << joining.crowded.saturating_sub(1).min(4)).min(16);
        let wait = (session * most).scale(draw);
        let locked = core::mem::take(&mut joining.locked);
        let confirmed = joining.phase == Step::Wrapping;
        joining.phase = Step::Waiting;
        joining.until = now + wait.max(Duration::from_micros(1));
        joining.near.clear();
        self.leases.clear();
        for id in locked {
            // Some may hold us to their lease already; told, they need no arbitration (E15).
            if confirmed && notify {
                self.say(out, id, Body::Leave { forced: true });
            }
            self.say(out, id, Body::Unlock);
        }
        self.view.learn(Fact { life: me, kind: Kind::Left, witness: self.witness });
        self.inc = self.inc.next();
    }

    /// Gives up now, or, slotted, with the slot.
    fn fail(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        match self.config.pace {
            Pace::Fast => self.back_off(now, out),
            Pace::Slotted => {
                if let Role::Joining(joining) = &mut self.role {
                    joining.failed = true;
                }
            }
        }
    }

    pub(super) fn on_redirect(
        &mut self,
        _now: Time,
        from: Peer,
        owner: NodeId,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let finding = matches!(&self.role, Role::Joining(joining) if joining.phase == Step::Finding && joining.near.is_empty());
        if !finding || owner == self.me.id {
            return Err(Self::unsolicited(from));
        }
        self.say(out, owner, Body::Find);
        Ok(())
    }

    pub(super) fn on_busy(
        &mut self,
        now: Time,
        from: Peer,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match &mut self.role {
            Role::Joining(joining) if joining.phase == Step::Finding => {
                joining.answered = true;
                self.fail(now, out);
                Ok(())
            }
            _ => Err(Self::unsolicited(from)),
        }
    }

    pub(super) fn on_neighbours(
        &mut self,
        now: Time,
        by: Life,
        list: &[Fact],
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let me = self.me.id;
        let Role::Joining(joining) = &mut self.role else { return Err(Self::unsolicited(by.peer)) };
        if joining.phase != Step::Finding || !joining.near.is_empty() || joining.failed {
            return Err(Self::unsolicited(by.peer));
        }
        joining.answered = true;
        let members: Vec<Life> = list
            .iter()
            .filter(|fact| fact.kind == Kind::Member && fact.life.id() != me)
            .map(|fact| fact.life)
            .collect();
        let mut ring: Vec<NodeId> = members.iter().map(Life::id).collect();
        self.config.space.sort(&mut ring);
        ring.dedup();
        let near = geometry::neighbourhood(&self.config.space, &ring, me, self.config.k);
        joining.near = near
            .iter()
            .filter_map(|id| members.iter().find(|life| life.id() == *id))
            .copied()
            .collect();
        if joining.near.is_empty() {
            self.fail(now, out);
            return Ok(());
        }
        for &fact in list {
            self.learn(now, fact, out);
        }
        if self.config.pace == Pace::Fast {
            self.ask_for_locks(now, out);
        }
        Ok(())
    }

    fn ask_for_locks(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let session = self.config.session;
        let Role::Joining(joining) = &mut self.role else { return };
        joining.phase = Step::Locking;
        joining.until = now + session;
        for peer in joining.near.clone() {
            self.say(out, peer.id(), Body::Lock);
        }
    }

    pub(super) fn on_lock_answer(
        &mut self,
        now: Time,
        by: Life,
        granted: bool,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let pace = self.config.pace;
        let Role::Joining(joining) = &mut self.role else { return Err(Self::unsolicited(by.peer)) };
        if joining.phase != Step::Locking || !joining.near.contains(&by) {
            return Err(Self::unsolicited(by.peer));
        }
        if !granted {
            self.fail(now, out);
            return Ok(());
        }
        if !joining.locked.contains(&by.id()) {
            joining.locked.push(by.id());
        }
        if joining.locked.len() == joining.near.len() && pace == Pace::Fast {
            self.invite_all(now, out);
        }
        Ok(())
    }

    fn invite_all(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let session = self.config.session;
        let Role::Joining(joining) = &mut self.role else { return };
        joining.phase = Step::Inviting;
        joining.until = now + session;
        let near = joining.near.clone();
        self.leases = near.iter().map(|&peer| Lease::new(peer, Group::default(), now)).collect();
        self.leases.iter_mut().for_each(|lease| lease.near.0.clone_from(&near));
        self.leases.sort_unstable_by_key(|lease| lease.peer);
        self.request_all(now, &near, Stage::Join, out);
    }

    fn request_all(&mut self, now: Time, near: &[Life], stage: Stage, out: &mut OutboxOf<Self>) {
        for &peer in near {
            self.begin_session(now, peer, stage, out);
            // The phase's own timer looks at all of them.
            if let Some(lease) = self.lease_mut(peer) {
                lease.due = Time::NEVER;
            }
        }
    }

    /// A lease of ours was acknowledged.
    pub(super) fn on_join_ack(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let all = self.leases.iter().all(Lease::is_established);
        let Role::Joining(joining) = &self.role else { return };
        let timely = now <= joining.until;
        if all && timely && joining.phase == Step::Wrapping && self.config.pace == Pace::Fast {
            self.become_member(now, out);
        }
    }

    pub(super) fn on_join_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let established = !self.leases.is_empty() && self.leases.iter().all(Lease::is_established);
        let Role::Joining(joining) = &mut self.role else { return };
        let locked = joining.locked.len() == joining.near.len();
        // Who wakes late may be given up by those it asked; but a session that was acknowledged holds for another one, and
        // no clock wakes anybody on the microsecond.
        joining.failed |= now > joining.until + self.config.slack;
        match joining.phase {
            Step::Waiting => self.find(now, out),
            _ if joining.failed => self.back_off(now, out),
            Step::Finding if !joining.near.is_empty() => self.ask_for_locks(now, out),
            Step::Locking if locked => self.invite_all(now, out),
            Step::Inviting if established => {
                joining.phase = Step::Wrapping;
                joining.until = now + self.config.session;
                let near = joining.near.clone();
                self.request_all(now, &near, Stage::Confirm, out);
            }
            Step::Wrapping if established => self.become_member(now, out),
            _ => self.back_off(now, out),
        }
    }

    fn become_member(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Role::Joining(joining) = &self.role else { return };
        let (attempts, took) = (joining.attempts, now.since(joining.since));
        let (locked, until) = (joining.locked.clone(), joining.until);
        self.role = Role::Active;
        let (life, witness) = (self.life(), self.witness);
        self.view.learn(Fact { life, kind: Kind::Member, witness });
        let near = self.neighbours();
        for lease in &mut self.leases {
            lease.state = State::Active;
            lease.due = until;
            lease.near.0.clone_from(&near);
        }
        if self.config.pace == Pace::Fast {
            for id in locked {
                self.say(out, id, Body::Unlock);
            }
        }
        self.dirty = true;
        out.emit(RingEvent::Activated { attempts, took });
    }

    /// Whether something of ours is going on that a join must not come between (R8.11).
    fn is_unsettled(&self) -> bool {
        let changing = |lease: &Lease| lease.proposal.is_some() || lease.closing.is_some();
        self.config.upgrade == Upgrade::Joint
            && (!self.cases.is_empty() || self.leases.iter().any(changing))
    }

    pub(super) fn on_find(&mut self, now: Time, by: Life, out: &mut OutboxOf<Self>) {
        if !self.is_active() {
            return;
        }
        let (space, id) = (self.config.space, by.id());
        // Who asks in a new life says that the one before is over. It may have ended before it answered anybody, and then
        // there is no lease on it that would run out.
        let before = self.view.member(id).filter(|before| before.age() < by.age());
        if let Some(before) = before.filter(|_| self.config.departure == Departure::Notify) {
            self.on_leave(now, before, true, out);
        }
        let others = self.view.ring().iter().copied().filter(|&other| other != id);
        let Some(owner) = space.owner(others, space.point(id)) else { return };
        if owner != self.me.id {
            return self.say(out, id, Body::Redirect { owner });
        }
        let taken = self.locked_for(now).is_some_and(|holder| holder.id() != id);
        // Its last life is still listed: it must be over for all before the next begins.
        if taken || self.is_unsettled() || self.view.member(id).is_some_and(|life| life != by) {
            return self.say(out, id, Body::Busy);
        }
        self.lock = Some((by, now + self.config.session));
        let mut list = Vec::from_iter(self.view.fact(self.me.id));
        list.extend(self.neighbours().iter().filter_map(|life| self.view.fact(life.id())));
        self.say(out, id, Body::Neighbours { list });
    }

    pub(super) fn on_lock(&mut self, now: Time, by: Life, out: &mut OutboxOf<Self>) {
        let other = self.locked_for(now).is_some_and(|holder| holder.id() != by.id());
        let granted = self.is_active() && !other && !self.is_unsettled();
        if granted {
            self.lock = Some((by, now + self.config.session * 3));
        }
        self.say(out, by.id(), Body::LockAnswer { granted });
    }

    /// A joiner has confirmed: it is listed from now on. Whether its acknowledgement has to wait until all our
    /// neighbours have heard of it.
    pub(super) fn on_newcomer(
        &mut self,
        now: Time,
        fact: Fact,
        number: u64,
        out: &mut OutboxOf<Self>,
    ) -> bool {
        let life = fact.life;
        let owner = self.owns_place_of(life.id());
        self.learn(now, fact, out);
        if !owner || self.config.upgrade == Upgrade::Published {
            return false;
        }
        let waiting: Vec<NodeId> = self
            .leases
            .iter()
            .filter(|lease| lease.state == State::Active && lease.peer != life)
            .map(|lease| lease.peer.id())
            .collect();
        for &id in &waiting {
            self.say(out, id, Body::Tell { fact });
        }
        self.telling = Some((life, number, waiting));
        self.acknowledge_newcomer(out);
        true
    }

    pub(super) fn on_told(&mut self, by: Life, fact: Fact, out: &mut OutboxOf<Self>) {
        if let Some((life, _, waiting)) = &mut self.telling
            && *life == fact.life
        {
            waiting.retain(|&id| id != by.id());
            self.acknowledge_newcomer(out);
        }
    }

    fn acknowledge_newcomer(&mut self, out: &mut OutboxOf<Self>) {
        if self.telling.as_ref().is_some_and(|(_, _, waiting)| waiting.is_empty())
            && let Some((life, number, _)) = self.telling.take()
        {
            self.acknowledge(life, number, out);
        }
    }
}
