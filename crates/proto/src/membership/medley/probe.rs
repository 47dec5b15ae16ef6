//! Probing (R3 to R7) and the feedback that steers it (A2 to A5).

use super::{
    Body, Medley, Message, Phase, Reach, Role, State, Status, Timer, Update,
    config::{Attention, MAX_HELPERS},
};
use crate::{
    id::{Incarnation, NodeId, Peer},
    machine::OutboxOf,
    mechanism::doubt::Doubt,
    time::{Duration, Time},
};

/// The probe of this period, until it is answered or ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Probe {
    sequence: u64,
    target: NodeId,
    /// How many were asked to ping it as well.
    helpers: u32,
    /// Whether helpers were asked, and the ping repeated for the first time.
    repeated: bool,
    /// Whether it is out of turn, and to end sooner.
    pub(super) urgent: bool,
}

/// A target that is silent, in a network where that alone does not prove much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Doubted {
    target: NodeId,
    /// How likely a live target would have been silent so far.
    silence: f64,
    /// Pings of ours it did not answer.
    pings: u32,
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
            self.plead(now, out);
            self.sync(now, out);
            if self.table.listed() == 0 && self.joining.is_none() && self.role == Role::Running {
                self.join(now, out);
            }
        }
        if self.probe.is_some_and(|probe| probe.urgent) {
            return;
        }
        let doubted = self.doubted.and_then(|doubted| self.table.position(doubted.target));
        let again = doubted.filter(|&at| self.table.state(at) == Some(State::Alive));
        if again.is_none() {
            self.doubted = None;
        }
        if let Some(at) = again.or_else(|| self.select(now)) {
            self.probe(now, self.table.id(at), out);
        }
    }

    /// Out of turn, instead of the probe that is under way, and over as soon as helpers could have answered.
    pub(super) fn probe_urgently(&mut self, now: Time, target: NodeId, out: &mut OutboxOf<Self>) {
        self.probe(now, target, out);
        self.timers.set(Timer::ProbeEnd, now + self.config.ack * (3 * self.health.factor()));
        if let Some(probe) = &mut self.probe {
            probe.urgent = true;
        }
    }

    fn probe(&mut self, now: Time, target: NodeId, out: &mut OutboxOf<Self>) {
        self.sequence += 1;
        let factor = self.health.factor();
        self.timers.set(Timer::Ack, now + self.config.ack * factor);
        self.timers.set(Timer::ProbeEnd, now + self.config.period * factor);
        self.send(now, target, self.sequence, Body::Ping { on_behalf: None }, out);
        // Somebody who never answers us is asked through the one it answers, without waiting in vain.
        let mut helpers = 0;
        if let Reach::Through(relay) = self.relays.reach(target) {
            self.send(now, relay, self.sequence, Body::PingReq { target }, out);
            helpers = 1;
        }
        let (sequence, repeated) = (self.sequence, false);
        self.probe = Some(Probe { sequence, target, helpers, repeated, urgent: false });
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

    /// M-15: about once per period in the whole group, ping somebody who is no member. If a partition has
    /// healed, it learns of its death and contradicts; if two groups have formed that never met, they meet.
    fn knock(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let unlisted = self.table.unlisted();
        if unlisted == 0 || self.rng.below(self.table.listed() as u64 + 1) != 0 {
            return;
        }
        let nth = self.rng.below(unlisted as u64) as usize;
        if let Some(id) = self.table.nth_unlisted(nth) {
            self.sequence += 1;
            self.send(now, id, self.sequence, Body::Ping { on_behalf: None }, out);
        }
    }

    /// Asks suspects once more, ourselves and through another: one of those we accused, so that a denial
    /// follows the accusation on the same ways; and the first whose time is nearly up, for gossip may have
    /// brought us the accusation and not the denial.
    fn plead(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.config.caution || self.cases.is_empty() {
            return;
        }
        let nth = self.rng.below(self.accused() as u64) as usize;
        let ours = self.cases.nth_accused_by(self.me.id, nth);
        let soon = now + self.config.period * LAST_PERIODS;
        let mut suspects = [ours; 1 + LAST_CALLS];
        for (slot, id) in suspects[1..].iter_mut().zip(self.cases.until(soon)) {
            *slot = (ours != Some(id)).then_some(id);
        }
        suspects.into_iter().flatten().for_each(|id| self.ask_again(now, id, out));
    }

    fn ask_again(&mut self, now: Time, suspect: NodeId, out: &mut OutboxOf<Self>) {
        self.sequence += 1;
        self.send(now, suspect, self.sequence, Body::Ping { on_behalf: None }, out);
        if let Some(relay) = self.relays.guess(suspect) {
            self.send(now, relay, self.sequence, Body::PingReq { target: suspect }, out);
        }
    }

    /// R4.
    fn select(&mut self, now: Time) -> Option<usize> {
        let forgotten = self.config.passive.and_then(|attention| self.forgotten(now, attention));
        forgotten.or_else(|| self.targets.select(&self.table, &self.config, &mut self.rng))
    }

    /// R4.1.
    fn forgotten(&mut self, now: Time, attention: Attention) -> Option<usize> {
        if !self.rng.chance(attention.chance) {
            return None;
        }
        self.targets.silent(now, &self.table, attention, &mut self.rng)
    }

    /// R5. Cautious, whoever has reached it or anybody else lately is among the helpers.
    pub(super) fn on_no_ack(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Some(Probe { sequence, target, repeated, .. }) = self.probe else { return };
        if self.config.repeated_pings {
            self.send(now, target, sequence, Body::Ping { on_behalf: None }, out);
            if repeated {
                return;
            }
            self.timers.set(Timer::Ack, now + self.config.ack * self.health.factor());
        }
        let except = self.table.position(target);
        let mut helpers = [0; MAX_HELPERS];
        let mut count = 0;
        self.targets.helpers(&self.table, &self.config, except, &mut self.rng, |at| {
            helpers[count] = at;
            count += 1;
        });
        if let Some(relay) = self.relays.guess(target).and_then(|id| self.table.position(id))
            && self.table.is_listed(relay)
            && !helpers[..count].contains(&relay)
            && let Some(last) = helpers[..count].last_mut()
        {
            *last = relay;
        }
        for &at in &helpers[..count] {
            self.send(now, self.table.id(at), sequence, Body::PingReq { target }, out);
        }
        if let Some(probe) = &mut self.probe {
            probe.helpers += count as u32;
            probe.repeated = true;
        }
    }

    /// R6.
    pub(super) fn on_probe_end(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Some(Probe { target, helpers, urgent, .. }) = self.probe.take() else { return };
        self.timers.clear(Timer::Ack);
        if self.config.local_health {
            self.health.worsen();
        }
        let Some(at) = self.table.position(target) else { return };
        let state = self.table.state(at);
        // With patient suspicion every failed probe of a suspect is a confirmation.
        let confirms = self.config.patient_suspicion && state == Some(State::Suspect);
        let accuses = state == Some(State::Alive) && self.is_convinced(at, helpers);
        if accuses || confirms {
            let (subject, (_, incarnation)) = (self.table.peer(at), self.table.life(at));
            let status = Status::Suspect { by: self.me.id };
            self.learn(now, &Update { subject, incarnation, status }, out);
        }
        if !urgent {
            return;
        }
        // There is no time for the next period to ask again.
        if accuses {
            self.ask_again(now, target, out);
        } else if state == Some(State::Suspect) {
            self.hasten(now, target);
        } else if self.doubted.is_some() {
            self.probe_urgently(now, target, out);
        }
    }

    /// Whether the silence of the node at `at`, towards us and so many helpers, suffices to accuse it.
    fn is_convinced(&mut self, at: usize, helpers: u32) -> bool {
        if !self.config.caution {
            return true;
        }
        let target = self.table.id(at);
        let before = self.doubted.take().filter(|doubted| doubted.target == target);
        if self.accused() >= usize::from(self.credit) {
            return false;
        }
        let (silence, failed) = before.map_or((1.0, 0), |it| (it.silence, it.pings));
        let silence = silence * self.doubt.silence(f64::from(self.table.distance(at)), helpers);
        let convinced = silence <= PROOF || failed + 1 >= MOST_PROBES;
        if !convinced {
            self.doubted = Some(Doubted { target, silence, pings: failed + 1 });
        }
        convinced
    }

    /// This target is silent, and a live one would be only so likely.
    pub(super) fn doubt_again(&mut self, target: NodeId, silence: f64) {
        self.doubted = Some(Doubted { target, silence, pings: 0 });
    }

    /// How often the node at `at` is probed again at most before its silence suffices, where nothing is lost:
    /// whoever has seen no loss never doubts more than whoever has seen nothing yet.
    pub(super) fn probes_again(&self, at: usize) -> u64 {
        if !self.config.caution {
            return 0;
        }
        let distance = f64::from(self.table.distance(at));
        let helpers = self.config.helpers.min(self.table.listed().saturating_sub(1)) as u32;
        let nothing_seen = Doubt::new(f64::from(self.table.farthest_neighbour()));
        let [now, first] = [self.doubt, nothing_seen].map(|doubt| doubt.silence(distance, helpers));
        let silence = now.max(first);
        let mut odds = silence;
        let again = (1..u64::from(MOST_PROBES)).take_while(|_| {
            let convinced = odds <= PROOF;
            odds *= silence;
            !convinced
        });
        again.count() as u64
    }

    /// A silent target lives after all.
    pub(super) fn dispel(&mut self, id: NodeId) {
        if let Some(Doubted { pings, .. }) = self.doubted.take_if(|doubted| doubted.target == id) {
            (0..pings).for_each(|_| self.unanswered(id));
        }
    }

    /// A ping to a member that lives was not answered. Of one that never answers us, or only through
    /// another, that says nothing about losses: there is no way.
    fn unanswered(&mut self, id: NodeId) {
        if let Some(at) = self.table.position(id)
            && self.table.has_answered(at)
            && self.relays.reach(id) == Reach::Direct
        {
            self.doubt.unanswered(f64::from(self.table.distance(at)));
        }
    }

    /// Somebody we accused has contradicted. We should accuse less.
    pub(super) fn on_acquittal(&mut self, id: NodeId) {
        self.credit = (self.credit / 2).max(1);
        self.unanswered(id);
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
            None => self.on_answer(message.sequence, from.id, None),
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
        relay: NodeId,
        (sequence, target, incarnation): (u64, Peer, Incarnation),
        out: &mut OutboxOf<Self>,
    ) {
        self.learn(now, &Update { subject: target, incarnation, status: Status::Alive }, out);
        if let Some(at) = self.table.position(target.id) {
            self.table.touch(now, at);
        }
        self.on_answer(sequence, target.id, Some(relay));
    }

    /// The target answered us, or `relay`. Late answers to older probes change nothing here (M-26).
    fn on_answer(&mut self, sequence: u64, target: NodeId, relay: Option<NodeId>) {
        let answers = |probe: &mut Probe| (probe.sequence, probe.target) == (sequence, target);
        if self.probe.take_if(answers).is_none() {
            return;
        }
        self.health.improve();
        self.timers.clear(Timer::Ack);
        self.timers.clear(Timer::ProbeEnd);
        self.unwatch(target);
        if !self.config.caution {
            return;
        }
        let at = self.table.position(target);
        match (relay, at) {
            (None, Some(at)) => {
                self.relays.answered(target);
                self.dispel(target);
                // The first answer counts as little as the silences before it, or there would be a bias.
                if self.table.has_answered(at) {
                    self.doubt.answered(f64::from(self.table.distance(at)));
                }
                self.table.set_answered(at);
            }
            (Some(relay), Some(_)) => {
                self.dispel(target);
                self.unanswered(target);
                self.relays.relayed(target, relay);
            }
            (_, None) => {}
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
/// Accuse if a live target would be as silent as this one at most so often.
const PROOF: f64 = 0.001;
/// Beyond that many probes in a row accuse whatever the odds: completeness (P2) comes first. Arbitrary.
const MOST_PROBES: u32 = 32;
/// Nobody is removed without having been asked in its last few periods; not too many at once.
const LAST_PERIODS: u64 = 3;
const LAST_CALLS: usize = 3;
/// M-29: 3000 time units.
const HALF_LIFE: Duration = Duration::from_secs(300);
