//! Probing (R3 to R7) and the feedback that steers it (A2 to A5).

use super::{Body, Medley, Message, Phase, Role, State, Status, Timer, Update, config::Attention};
use crate::{
    id::{Incarnation, NodeId, Peer},
    machine::OutboxOf,
    time::{Duration, Time},
};

/// The probe of this period, until it is answered or ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Probe {
    sequence: u64,
    target: NodeId,
}

impl Medley {
    /// R3.
    pub(super) fn on_period(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let next = self.next_period(now);
        self.timers.set(Timer::Period, next);
        if self.config.active.is_some_and(|patience| self.pinged.on_tick(now, &patience)) {
            self.broadcast(now, Body::Unlucky, out);
        }
        if self.config.hardened() {
            self.tidy(now);
            self.knock(now, out);
            self.sync(now, out);
            if self.table.listed() == 0 && self.joining.is_none() && self.role == Role::Running {
                self.join(now, out);
            }
        }
        if let Some(at) = self.select(now) {
            let target = self.table.id(at);
            self.sequence += 1;
            self.probe = Some(Probe { sequence: self.sequence, target });
            let factor = self.health.factor();
            self.timers.set(Timer::Ack, now + self.config.ack * factor);
            self.timers.set(Timer::ProbeEnd, now + self.config.period * factor);
            self.send(now, target, self.sequence, Body::Ping { on_behalf: None }, out);
        }
    }

    fn next_period(&mut self, now: Time) -> Time {
        let period = self.config.period * self.health.factor();
        match self.config.phase {
            // A host that wakes us late does not get a shorter period: the probe needs all of it.
            Phase::Sync => {
                let tick = self.config.period.as_micros();
                let ticks = (now + period).as_micros().div_ceil(tick);
                Time::from_micros(ticks.saturating_mul(tick))
            }
            Phase::Random => now + period + self.rng.up_to(period.div(10)),
        }
    }

    /// What fades with time (M-4, M-29).
    fn tidy(&mut self, now: Time) {
        if let Some(patience) = self.config.active {
            self.targets.forget(now, &self.table, patience.interval * REPORT_LIFETIME);
        }
        if now.since(self.faded) >= HALF_LIFE {
            self.faded = now;
            self.table.fade_suspicions();
        }
    }

    /// M-15: about once per period in the whole group, ping somebody believed dead. If a partition has
    /// healed, it learns of its death and contradicts.
    fn knock(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let graves = self.table.graves();
        if graves == 0 || self.rng.below(self.table.listed() as u64 + 1) != 0 {
            return;
        }
        let nth = self.rng.below(graves as u64) as usize;
        if let Some(id) = self.table.grave(nth) {
            self.sequence += 1;
            self.send(now, id, self.sequence, Body::Ping { on_behalf: None }, out);
        }
    }

    /// R4.
    fn select(&mut self, now: Time) -> Option<usize> {
        let forgotten = self.config.passive.and_then(|attention| self.forgotten(now, attention));
        forgotten.or_else(|| self.targets.select(&self.table, &self.config, &mut self.rng))
    }

    /// R4.1. Looks through the whole table, but only every tenth period.
    fn forgotten(&mut self, now: Time, attention: Attention) -> Option<usize> {
        if !self.rng.chance(attention.chance) {
            return None;
        }
        let table = &self.table;
        let is_forgotten =
            |&at: &usize| table.is_listed(at) && table.silence(now, at) > attention.timeout;
        let candidates = || (0..table.positions()).filter(is_forgotten);
        let nth = self.rng.below(candidates().count() as u64);
        candidates().nth(nth as usize)
    }

    /// R5.
    pub(super) fn on_no_ack(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Some(Probe { sequence, target }) = self.probe else { return };
        let except = self.table.position(target);
        let mut helpers = [0; super::config::MAX_HELPERS];
        let mut count = 0;
        self.targets.helpers(&self.table, &self.config, except, &mut self.rng, |at| {
            helpers[count] = at;
            count += 1;
        });
        for &at in &helpers[..count] {
            self.send(now, self.table.id(at), sequence, Body::PingReq { target }, out);
        }
    }

    /// R6.
    pub(super) fn on_probe_end(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Some(Probe { target, .. }) = self.probe.take() else { return };
        if self.config.local_health {
            self.health.worsen();
        }
        let Some(at) = self.table.position(target) else { return };
        let state = self.table.state(at);
        // With patient suspicion every failed probe of a suspect is a confirmation.
        let confirms = self.config.patient_suspicion && state == Some(State::Suspect);
        if state == Some(State::Alive) || confirms {
            let (subject, (_, incarnation)) = (self.table.peer(at), self.table.life(at));
            let status = Status::Suspect { by: self.me.id };
            self.learn(now, &Update { subject, incarnation, status }, out);
        }
    }

    /// R7 and A2.
    pub(super) fn on_ping(
        &mut self,
        now: Time,
        from: Peer,
        sequence: u64,
        on_behalf: Option<NodeId>,
        out: &mut OutboxOf<Self>,
    ) {
        self.send(now, from.id, sequence, Body::Ack { on_behalf }, out);
        if self.config.active.is_some_and(|patience| self.pinged.on_ping(now, &patience)) {
            self.broadcast(now, Body::Unlucky, out);
        }
    }

    pub(super) fn on_ack(
        &mut self,
        now: Time,
        from: Peer,
        message: &Message,
        on_behalf: Option<NodeId>,
        out: &mut OutboxOf<Self>,
    ) {
        match on_behalf {
            None => self.on_answer(message.sequence, from.id),
            Some(asker) if asker == self.me.id => {}
            Some(asker) => {
                let body = Body::IndirectAck { target: from, incarnation: message.incarnation };
                self.send(now, asker, message.sequence, body, out);
            }
        }
    }

    /// Departure: whoever asks about ourselves is answered as if we had asked ourselves.
    pub(super) fn on_ping_req(
        &mut self,
        now: Time,
        from: Peer,
        sequence: u64,
        target: NodeId,
        out: &mut OutboxOf<Self>,
    ) {
        if target == self.me.id {
            let body = Body::IndirectAck { target: self.me, incarnation: self.incarnation };
            self.send(now, from.id, sequence, body, out);
        } else {
            self.send(now, target, sequence, Body::Ping { on_behalf: Some(from.id) }, out);
        }
    }

    pub(super) fn on_indirect_ack(
        &mut self,
        now: Time,
        sequence: u64,
        target: Peer,
        incarnation: Incarnation,
        out: &mut OutboxOf<Self>,
    ) {
        self.learn(now, &Update { subject: target, incarnation, status: Status::Alive }, out);
        if let Some(at) = self.table.position(target.id) {
            self.table.touch(now, at);
        }
        self.on_answer(sequence, target.id);
    }

    /// Late answers to older probes change nothing here (M-26).
    fn on_answer(&mut self, sequence: u64, target: NodeId) {
        if self.probe == Some(Probe { sequence, target }) {
            self.probe = None;
            self.health.improve();
            self.timers.clear(Timer::Ack);
            self.timers.clear(Timer::ProbeEnd);
        }
    }

    /// A5. Whoever is not listed even now has a tombstone that it has to contradict first (M-7).
    pub(super) fn on_unlucky(&mut self, now: Time, from: Peer) {
        if let Some(at) = self.table.position(from.id).filter(|&at| self.table.is_listed(at)) {
            self.targets.report(now, &self.table, &self.config, at);
        }
    }
}

/// M-4: complaints are forgotten after this many times the interval complained of.
const REPORT_LIFETIME: u64 = 20;
/// M-29: 3000 time units.
const HALF_LIFE: Duration = Duration::from_secs(300);
