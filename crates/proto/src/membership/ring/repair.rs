//! Telling everybody (R9) and mending leases when the view has changed (R10).

use alloc::vec::Vec;

use super::{
    Ring, RingEvent,
    lease::Lease,
    message::{Body, Group, Life, Version},
    view::{Fact, Kind},
};
use crate::{id::NodeId, machine::OutboxOf, time::Time};

impl Ring {
    /// Takes in a fact that somebody tells us; whether it was news.
    pub(super) fn learn(&mut self, now: Time, fact: Fact, out: &mut OutboxOf<Self>) -> bool {
        let life = fact.life;
        if life.id() == self.me.id {
            // Nobody says of us what we do not know; if rules were broken, the others are right by now.
            let over = life.age() > self.life().age()
                || (life == self.life() && fact.kind != Kind::Member && self.is_active());
            if over {
                out.emit(RingEvent::Departed { over: None });
                self.become_out();
            }
            return false;
        }
        let known = self.view.member(life.id());
        if !self.view.learn(fact) {
            return false;
        }
        self.dirty = true;
        if let Some(before) = known.filter(|before| self.view.is_gone(*before)) {
            self.forget(now, before);
            let event = match fact.kind {
                Kind::Left => RingEvent::Left { life: before, forced: false },
                _ => RingEvent::Buried { life: before, own: false },
            };
            out.emit(event);
        }
        if fact.kind == Kind::Member {
            out.emit(RingEvent::Joined(life));
        }
        true
    }

    /// Drops all that is held of a life that is over, unless we should have been out before: it may have buried us
    /// while it could, and that it is over does not excuse who slept through its own end (E24). The timers see to it.
    pub(super) fn forget(&mut self, now: Time, life: Life) {
        let config = self.config;
        self.leases.retain(|lease| lease.peer != life || lease.is_late(now, &config));
        self.cases.retain(|case| case.accused != life || case.is_late(now, &config));
        self.lock = self.lock.filter(|&(holder, _)| holder != life);
        if let Some((_, _, waiting)) = &mut self.telling {
            waiting.retain(|&id| id != life.id());
        }
        self.dirty = true;
    }

    /// Whether a point next to nobody's is ours.
    pub(super) fn owns_place_of(&self, id: NodeId) -> bool {
        let point = self.config.space.point(id);
        let others = self.view.ring().iter().copied().filter(|&other| other != id);
        self.config.space.owner(others, point) == Some(self.me.id)
    }

    /// Has everybody told: by us if we come next before the one concerned, otherwise by us only if nobody else does
    /// (R9.2).
    pub(super) fn tell_everybody(&mut self, now: Time, fact: Fact, out: &mut OutboxOf<Self>) {
        let space = self.config.space;
        let point = space.point(fact.life.id());
        let suspected = |id: NodeId| self.cases.iter().any(|case| case.accused.id() == id);
        let before = self
            .view
            .ring()
            .iter()
            .copied()
            .filter(|&id| id != fact.life.id() && !suspected(id))
            .min_by_key(|&id| space.clockwise(space.point(id), point));
        if before == Some(self.me.id) {
            self.spread(fact, out);
        } else {
            self.emits.push((now + self.config.session, fact));
        }
    }

    pub(super) fn on_emit_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let (due, later) = core::mem::take(&mut self.emits).into_iter().partition(|e| e.0 <= now);
        self.emits = later;
        let due: Vec<(Time, Fact)> = due;
        for (_, fact) in due {
            if self.passed.iter().all(|(other, _)| *other != fact) {
                self.spread(fact, out);
            }
        }
    }

    /// Tells the whole ring.
    pub(super) fn spread(&mut self, fact: Fact, out: &mut OutboxOf<Self>) {
        let end = self.config.space.point(self.me.id);
        self.pass_on(fact, self.me.id, end, out);
    }

    pub(super) fn on_spread(
        &mut self,
        now: Time,
        facts: &[Fact],
        (emitter, end): (NodeId, u64),
        out: &mut OutboxOf<Self>,
    ) {
        for &fact in facts {
            self.learn(now, fact, out);
            self.pass_on(fact, emitter, end, out);
        }
    }

    /// To those from us on to `end`, halving what is left with every hop; once for each that began it.
    fn pass_on(&mut self, fact: Fact, emitter: NodeId, end: u64, out: &mut OutboxOf<Self>) {
        if !self.is_active() || self.passed.contains(&(fact, emitter)) {
            return;
        }
        if self.passed.len() >= PASSED {
            self.passed.pop_front();
        }
        self.passed.push_back((fact, emitter));
        let space = self.config.space;
        let ring = self.view.ring();
        let Some(at) = self.view.place(self.me.id) else { return };
        let start = space.point(self.me.id);
        let span = match space.clockwise(start, end) {
            0 => u64::MAX,
            span => span,
        };
        let within = |step: usize| {
            let id = ring[(at + step) % ring.len()];
            let reach = space.clockwise(start, space.point(id));
            (step < ring.len() && reach < span).then_some((id, space.point(id)))
        };
        let mut sends = Vec::new();
        let mut step = 1;
        while let Some((id, _)) = within(step) {
            let end = within(step * 2).map_or(end, |(_, point)| point);
            sends.push((id, end));
            step *= 2;
        }
        for (id, end) in sends {
            if id != fact.life.id() {
                let facts = alloc::vec![fact];
                self.say(out, id, Body::Spread { facts, emitter, end });
            }
        }
    }

    /// A founder opens its leases, each at its own time.
    pub(super) fn found(&mut self, now: Time) {
        for peer in self.neighbours() {
            if self.me.id < peer.id() {
                let phase = self.rng.up_to(self.config.session);
                self.invite(now, peer, now + phase);
            }
        }
    }

    fn invite(&mut self, now: Time, peer: Life, at: Time) {
        let (born, version) = (now.as_micros(), Version::default());
        let group = Group { born, version, members: self.members_for(peer) };
        let mut lease = Lease::new(peer, group, at);
        lease.near = (self.neighbours(), self.view.neighbours(peer.id(), self.config.k));
        self.leases.push(lease);
        self.leases.sort_unstable_by_key(|lease| lease.peer);
    }

    /// An invitation was in vain, or a lease is over: once more after a session, if it is still wanted.
    pub(super) fn invite_later(&mut self, now: Time, peer: Life) {
        let wanted = self.me.id < peer.id()
            && self.is_active()
            && self.view.lists(peer)
            && self.neighbours().contains(&peer);
        if wanted && self.lease_of(peer.id()).is_none() {
            self.invite(now, peer, now + self.config.session);
        }
    }

    /// After every input: what the view has changed about leases and groups.
    pub(super) fn settle(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !core::mem::take(&mut self.dirty) || !self.is_active() {
            return;
        }
        self.changed = now;
        for peer in self.neighbours() {
            let suspected = self.cases.iter().any(|case| case.accused == peer);
            if self.me.id < peer.id() && self.lease_of(peer.id()).is_none() && !suspected {
                self.invite(now, peer, now);
            }
        }
        self.bring_up_to_date(now, out);
    }
}

/// News remembered as passed on. Arbitrary: far more than are on their way at once.
const PASSED: usize = 256;
