//! What news does (R8 to R11) and how it is passed on (R14).

use alloc::vec::Vec;

use super::{
    Body, CREDIT, Carriers, Durable, Introduction, Medley, MembershipEvent, Message, Piggyback,
    Role, State, Status, Timer, Update,
    cases::Case,
    config::CONFIRMATIONS,
    message::{MAX_UPDATES, ROOM},
    table::{Merged, Table},
};
use crate::{
    id::{Incarnation, NodeId},
    machine::OutboxOf,
    time::Time,
    wire::Wire,
};

/// The first few that accused a member, in the order we heard of them.
///
/// ```
/// use bellwether_proto::node::Accusers;
///
/// assert_eq!(Accusers::default().iter().count(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Accusers {
    ids: [NodeId; 4],
    count: u8,
}

impl Accusers {
    /// The accusers, the first heard of first.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.ids.iter().copied().take(usize::from(self.count))
    }

    /// The first.
    pub(super) fn first(&self) -> Option<NodeId> {
        self.iter().next()
    }

    /// Whether there was room and `by` was not among them.
    pub(super) fn add(&mut self, by: NodeId) -> bool {
        let next = usize::from(self.count);
        let is_new = next < self.ids.len() && !self.iter().any(|known| known == by);
        if is_new {
            self.ids[next] = by;
            self.count += 1;
        }
        is_new
    }
}

/// Rules R8 to R11.
impl Medley {
    /// Who accuses a suspect, and when it will be removed unless it contradicts.
    pub fn accusation_of(&self, id: NodeId) -> Option<(Accusers, Time)> {
        self.cases.of(id).map(|case| (case.accusers, case.until))
    }

    /// R10 for what one message says, at most 64 updates at once. Hardly any of it is new, and each record is a cache
    /// miss in a large simulation: all are looked at before the first is merged, so that they are waited for together.
    pub(super) fn learn_new(&mut self, now: Time, updates: &[Update], out: &mut OutboxOf<Self>) {
        let mut old = 0_u64;
        for (nth, update) in updates.iter().enumerate() {
            old |= u64::from(self.table.is_old(update)) << nth;
        }
        let before = self.table.changes();
        for (nth, update) in updates.iter().enumerate() {
            // Somebody may be named twice: after a change nothing is known to be old.
            if old >> nth & 1 == 0 || self.table.changes() != before {
                self.learn(now, update, out);
            }
        }
    }

    /// R10, and what follows from it.
    pub(super) fn learn(&mut self, now: Time, update: &Update, out: &mut OutboxOf<Self>) {
        let id = update.subject.id;
        if id == self.me.id {
            self.on_rumour(now, update, out);
            return;
        }
        let at = match self.table.position(id) {
            None if Table::introduces(update.status) => self.admit(id),
            known => known,
        };
        let Some(at) = at else { return };
        if !self.is_plausible(at, update) || self.is_one_too_many(update) {
            return;
        }
        let (life, _) = self.table.life(at);
        let merged = self.table.merge(now, at, update);
        match merged {
            Merged::Nothing => return,
            Merged::Confirmed => return self.on_confirmation(now, update),
            Merged::Listed => {
                self.targets.joined(&self.table, &self.config, at);
                self.note_found();
                out.emit(MembershipEvent::Joined(id));
            }
            Merged::Buried => {}
            Merged::Raised | Merged::Refuted => {
                // Against whom nobody accuses there is no case to look for.
                if merged == Merged::Refuted && self.close(id).first() == Some(self.me.id) {
                    self.on_acquittal(id);
                }
                // It was restarted before anybody noticed that it was gone.
                if update.subject.boot > life {
                    out.emit(MembershipEvent::Joined(id));
                } else if merged == Merged::Refuted {
                    out.emit(MembershipEvent::Refuted(id));
                }
            }
            Merged::Suspected => self.become_suspect(now, id, update.status, out),
            Merged::Removed => {
                let mut accusers = self.close(id);
                if accusers.first() == Some(self.me.id) {
                    self.credit = (self.credit + 1).min(CREDIT);
                }
                self.targets.left(&self.table, &self.config, at);
                self.relays.gone(id);
                self.unwatch(id);
                if let Status::Failed { by } = update.status {
                    accusers.add(by);
                    out.emit(MembershipEvent::Failed { id, accusers });
                } else {
                    out.emit(MembershipEvent::Left(id));
                }
            }
        }
        self.arm_tomb();
        // A late suspicion only raises a tombstone: then that is the news.
        let raised = merged == Merged::Buried && !Table::introduces(update.status);
        let news = if raised { self.record(at).unwrap_or(*update) } else { *update };
        self.gossip.put(now, id, news);
    }

    /// A position for `id`, unless there are too many already.
    pub(super) fn admit(&mut self, id: NodeId) -> Option<usize> {
        if self.table.positions() >= MAX_POSITIONS {
            return None;
        }
        let (at, new) = self.table.admit(id);
        if new {
            self.targets.grown(at);
        }
        Some(at)
    }

    /// M-28. Of somebody new anything may be true.
    fn is_plausible(&self, at: usize, update: &Update) -> bool {
        if self.table.state(at).is_none() {
            return true;
        }
        let (boot, incarnation) = self.table.life(at);
        let jump = update.incarnation.get().saturating_sub(incarnation.get());
        !self.config.hardened() || boot != update.subject.boot || jump <= MAX_JUMP
    }

    /// Nobody is believed more accusations at once than it may hold, and news of denials may be late.
    fn is_one_too_many(&self, update: &Update) -> bool {
        let Status::Suspect { by } = update.status else { return false };
        if !self.config.caution || by == self.me.id {
            return false;
        }
        let open = self.cases.accused_by(by);
        let limit = 2 * usize::from(CREDIT);
        if open < limit {
            return false;
        }
        let known = self.cases.of(update.subject.id);
        open - usize::from(known.is_some_and(|case| case.accusers.first() == Some(by))) >= limit
    }

    /// How many we were the first to accuse.
    pub(super) fn accused(&self) -> usize {
        self.cases.accused_by(self.me.id)
    }

    /// R8.
    fn become_suspect(&mut self, now: Time, id: NodeId, status: Status, out: &mut OutboxOf<Self>) {
        // Accused again in a newer incarnation: a new case, with nothing carried over from the old.
        self.close(id);
        let mut accusers = Accusers::default();
        if let Status::Suspect { by } = status {
            accusers.add(by);
            out.emit(MembershipEvent::Suspected { id, by });
        }
        self.open(id, now, accusers);
    }

    /// A suspect is accused by somebody else as well. That is news only where it shortens its time.
    fn on_confirmation(&mut self, now: Time, update: &Update) {
        let id = update.subject.id;
        let Status::Suspect { by } = update.status else { return };
        let Some(Case { since, accusers, .. }) = self.cases.confirm(id, by) else { return };
        if self.config.patient_suspicion {
            self.close(id);
            self.open(id, since, accusers);
            if accusers.iter().count() <= 1 + CONFIRMATIONS {
                self.gossip.put(now, id, *update);
            }
        }
    }

    fn open(&mut self, id: NodeId, since: Time, accusers: Accusers) {
        let confirmations = accusers.iter().count().saturating_sub(1);
        let time = self
            .urgent_suspicion(id)
            .unwrap_or_else(|| self.config.suspicion_of(confirmations, self.table.listed() + 1));
        self.cases.open(id, since, since + time, accusers);
        self.arm_suspicion();
    }

    /// Somebody else accuses one that we watch and found silent as well: it has no longer than if it had been us.
    pub(super) fn hasten(&mut self, now: Time, id: NodeId) {
        let Some(time) = self.urgent_suspicion(id) else { return };
        let case = self.cases.of(id).filter(|case| case.until > now + time);
        if let Some(&Case { accusers, .. }) = case {
            self.close(id);
            self.open(id, now, accusers);
        }
    }

    /// The suspicion against `id`, if any, is settled; by whom it was accused.
    fn close(&mut self, id: NodeId) -> Accusers {
        let case = self.cases.close(id);
        self.arm_suspicion();
        case.map_or(Accusers::default(), |case| case.accusers)
    }

    /// R9.
    pub(super) fn on_suspicion(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let due = self.cases.first().filter(|&(until, _)| until <= now);
        if let Some((_, id)) = due {
            let Some(at) = self.table.position(id) else {
                unreachable!("suspects are members, and members have positions")
            };
            let (subject, (_, incarnation)) = (self.table.peer(at), self.table.life(at));
            let first = self.cases.of(id).and_then(|case| case.accusers.first());
            let by = first.unwrap_or(self.me.id);
            self.learn(now, &Update { subject, incarnation, status: Status::Failed { by } }, out);
        }
        self.arm_suspicion();
    }

    fn arm_suspicion(&mut self) {
        match self.cases.first() {
            Some((until, _)) => self.timers.set(Timer::Suspicion, until),
            None => self.timers.clear(Timer::Suspicion),
        }
    }

    pub(super) fn on_tomb(&mut self, now: Time) {
        while self.table.oldest_grave().is_some_and(|dug| dug + self.config.tomb() <= now) {
            if let Some((at, id)) = self.table.exhume(now) {
                self.targets.shrunk(at);
                self.directory.forget(id);
            }
        }
        self.arm_tomb();
    }

    fn arm_tomb(&mut self) {
        match self.table.oldest_grave() {
            Some(dug) => self.timers.set(Timer::Tomb, dug + self.config.tomb()),
            None => self.timers.clear(Timer::Tomb),
        }
    }

    /// R11: we are not what is said of us.
    fn on_rumour(&mut self, now: Time, rumour: &Update, out: &mut OutboxOf<Self>) {
        let harmless = matches!(rumour.status, Status::Alive | Status::Join);
        // Of a past life our boot number tells; a later one is not ours to speak for.
        let ours = rumour.subject.boot == self.me.boot;
        let jump = rumour.incarnation.get().checked_sub(self.incarnation.get());
        let stale = jump.is_none_or(|jump| self.config.hardened() && jump > MAX_JUMP);
        if harmless || !ours || stale || self.role == Role::Leaving {
            return;
        }
        if self.config.local_health {
            self.health.worsen();
        }
        self.report_alive(now, rumour.incarnation.next(), out);
        // The denial starts from both ends.
        if let Status::Suspect { by } | Status::Failed { by } = rumour.status
            && self.config.caution
            && by != self.me.id
        {
            self.send(now, by, 0, Body::ReportAlive, out);
        }
    }
}

/// Rule R14.
impl Medley {
    /// We live, in this incarnation.
    pub(super) fn report_alive(
        &mut self,
        now: Time,
        incarnation: Incarnation,
        out: &mut OutboxOf<Self>,
    ) {
        self.incarnation = incarnation;
        out.persist(Durable { boot: self.me.boot, incarnation });
        let news = Update { subject: self.me, incarnation, status: Status::Alive };
        self.gossip.put(now, self.me.id, news);
        self.broadcast(now, Body::ReportAlive, out);
    }

    pub(super) fn send(
        &mut self,
        now: Time,
        to: NodeId,
        sequence: u64,
        body: Body,
        out: &mut OutboxOf<Self>,
    ) {
        let about = match body {
            Body::PingReq { target } => target,
            _ => to,
        };
        let updates = self.news(now, Some(about), self.carries(body));
        let introductions = self.introduce(&updates, matches!(body, Body::Join { .. }));
        let incarnation = self.incarnation;
        out.send(to, Message { sequence, incarnation, body, updates, introductions });
    }

    pub(super) fn broadcast(&mut self, now: Time, body: Body, out: &mut OutboxOf<Self>) {
        let updates = self.news(now, None, self.carries(body));
        let introductions = self.introduce(&updates, false);
        let incarnation = self.incarnation;
        out.broadcast(Message { sequence: 0, incarnation, body, updates, introductions });
    }

    fn carries(&self, body: Body) -> bool {
        match body {
            Body::Ack { .. } | Body::IndirectAck { .. } | Body::ReportAlive | Body::Beat { .. } => {
                true
            }
            Body::Ping { .. } | Body::PingReq { .. } | Body::Unlucky => {
                self.config.carriers == Carriers::PushPull
            }
            Body::Join { .. }
            | Body::JoinAck { .. }
            | Body::Sync { .. }
            | Body::SyncAck { .. }
            | Body::Leave => false,
        }
    }

    /// What to tell somebody. First of all what is held against itself, or whom it shall ask for us, so that
    /// the accused can contradict (R2, M-26).
    fn news(&mut self, now: Time, about: Option<NodeId>, carries: bool) -> Vec<Update> {
        let charge = about.and_then(|id| self.charge(id));
        // Whatever else a leaver says would be taken for a sign of life.
        let goodbye = (self.role == Role::Leaving).then_some(Update {
            subject: self.me,
            incarnation: self.incarnation,
            status: Status::Left,
        });
        let first = goodbye.into_iter().chain(charge);
        let offered = if carries { self.gossip.len().min(MAX_UPDATES) } else { 0 };
        let mut updates = Vec::with_capacity(offered + first.clone().count());
        updates.extend(first);
        if offered == 0 {
            return updates;
        }
        let said = updates.len();
        let mut room = ROOM - updates.iter().map(Wire::encoded_len).sum::<usize>();
        let mut take = |update: Update| {
            if updates[..said].iter().any(|first| first.subject.id == update.subject.id) {
                return true;
            }
            let Some(left) = room.checked_sub(update.encoded_len()) else { return false };
            room = left;
            updates.push(update);
            true
        };
        match self.config.piggyback {
            Piggyback::Bounded { most, lambda } => {
                // ceil(log2(n + 1)) is the number of binary digits of n, ourselves included.
                let digits = usize::BITS - (self.table.listed() + 1).leading_zeros();
                let most = most.saturating_sub(said);
                self.gossip.least_sent(most, lambda.saturating_mul(digits), &mut take);
            }
            Piggyback::WholeTable { lifetime } => self.gossip.recent(now, lifetime, &mut take),
        }
        updates
    }

    /// Introduces those that the updates say live, and perhaps ourselves, as far as there is room.
    fn introduce(&self, updates: &[Update], ourselves: bool) -> Vec<Introduction> {
        let mut introductions = Vec::new();
        if self.directory.is_empty() {
            return introductions;
        }
        let mut room = ROOM - updates.iter().map(Wire::encoded_len).sum::<usize>();
        let alive = updates.iter().filter(|update| update.status.is_alive());
        let ours = ourselves.then_some(self.me.id);
        for id in ours.into_iter().chain(alive.map(|update| update.subject.id)) {
            let Some(introduction) = self.introduction(id) else { continue };
            let Some(left) = room.checked_sub(introduction.encoded_len()) else { break };
            room = left;
            introductions.push(introduction);
        }
        introductions
    }

    /// What to say if `id` is introduced; `None` if we know nothing of it.
    pub(super) fn introduction(&self, id: NodeId) -> Option<Introduction> {
        if id != self.me.id {
            return self.directory.of(id).cloned();
        }
        let (addresses, details) = self.directory.own()?.clone();
        let (subject, incarnation) = (self.me, self.incarnation);
        Some(Introduction { subject, incarnation, addresses, details })
    }

    /// The suspicion or tombstone of `id`, if there is one.
    fn charge(&self, id: NodeId) -> Option<Update> {
        let at = self.table.position(id)?;
        self.table.state(at).filter(|&state| state != State::Alive)?;
        self.record(at)
    }

    /// What we hold of the node at `at`, as news.
    pub(super) fn record(&self, at: usize) -> Option<Update> {
        let id = self.table.id(at);
        let status = match self.table.state(at)? {
            State::Alive => Status::Alive,
            State::Suspect => {
                let case = self.cases.of(id);
                let first = case.and_then(|case| case.accusers.first());
                Status::Suspect { by: first.unwrap_or(self.me.id) }
            }
            State::Failed => Status::Failed { by: self.me.id },
            State::Left => Status::Left,
        };
        let (_, incarnation) = self.table.life(at);
        Some(Update { subject: self.table.peer(at), incarnation, status })
    }
}

/// M-28: more refutations than this at once are no honest history. Arbitrary.
const MAX_JUMP: u32 = 1 << 16;
/// Nodes remembered at most, dead or alive: remote input must not fill the memory. Arbitrary.
const MAX_POSITIONS: usize = 1 << 16;
