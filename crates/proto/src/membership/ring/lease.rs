//! Leases: who is monitored, session by session (R2).

use alloc::{vec, vec::Vec};

use super::{
    Ring, Role,
    config::{Config, Phase, Upgrade},
    message::{Body, Group, Life, Session, Stage},
    upgrade::{Closing, Proposal, union},
    view::{Fact, Kind},
};
use crate::{
    id::{NodeId, Peer},
    machine::{OutboxOf, Rejected},
    time::{Duration, Time},
};

/// How far a lease has got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// Opened; if it runs out it is forgotten.
    Dormant,
    /// We have confirmed it, so that the other may hold us to it; we do not know.
    Confirming,
    /// Both are held to it.
    Active,
}

/// A lease as others see it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// The life at the other end.
    pub peer: Life,
    /// Whether both ends are held to it.
    pub active: bool,
    /// When the latest session began that was acknowledged, on our clock.
    pub acked: Option<Time>,
    /// When the session began that is not acknowledged yet.
    pub asked: Option<Time>,
    /// When it runs out unless another session is acknowledged: then at the latest we suspect.
    pub until: Time,
    /// Sessions begun so far.
    pub sessions: u64,
}

/// One end of the lease on one neighbour.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Lease {
    pub(super) peer: Life,
    pub(super) state: State,
    pub(super) group: Group,
    /// As published, the neighbourhoods the group is made of: ours, and the other's as it told us.
    pub(super) near: (Vec<Life>, Vec<Life>),
    /// The session running; 0 before the first. And its number in messages, which no other lease of ours ever had:
    /// an acknowledgement says of which session it is, and not of which lease.
    session: u64,
    number: u64,
    started: Time,
    acked: Option<Time>,
    /// When the other confirmed it: it may hold us to it from then on, acknowledged or not.
    held: Option<Time>,
    pending: bool,
    /// As what the session was begun, and when its request is said again.
    stage: Stage,
    pub(super) again: Time,
    /// When the session is over, or the first begins.
    pub(super) due: Time,
    /// Since when the other has to be told of a new group.
    untold: Option<Time>,
    /// The digest of the other's facts if it was not ours when it last spoke, and what of ours it gets next.
    differs: Option<u64>,
    page: NodeId,
    pub(super) proposal: Option<Proposal>,
    /// The last version we have proposed. None is proposed twice: an answer to one would be taken for one to another,
    /// and who is told of two groups by one name would ask the one it heard of first.
    pub(super) proposed: u32,
    /// A group of the other's proposing that we have consented to, and must win as well as our own from then on.
    pub(super) consented: Option<Group>,
    pub(super) closing: Option<Closing>,
    /// Not to propose or close again before this, and how often it was refused.
    pub(super) retry: (Time, u32),
    /// Whether the other joins, and we are to tell everybody when it has.
    announce: bool,
}

impl Lease {
    pub(super) fn new(peer: Life, group: Group, due: Time) -> Self {
        Self {
            peer,
            state: State::Dormant,
            group,
            near: (Vec::new(), Vec::new()),
            session: 0,
            number: 0,
            started: Time::ZERO,
            acked: None,
            held: None,
            pending: false,
            stage: Stage::Keep,
            again: Time::NEVER,
            due,
            untold: None,
            differs: None,
            page: NodeId::new(0),
            proposal: None,
            proposed: 0,
            consented: None,
            closing: None,
            retry: (Time::ZERO, 0),
            announce: false,
        }
    }

    /// Whether the other knew what we know when it last spoke, or knew then what we have learnt since.
    pub(super) fn is_synced(&self, digest: u64) -> bool {
        self.differs.is_none_or(|theirs| theirs == digest)
    }

    pub(super) fn standing(&self, length: Duration) -> Standing {
        let until = match (self.acked, self.session) {
            (Some(acked), _) => acked + length * 2,
            (None, 0) => self.due + length,
            (None, _) => self.due,
        };
        let active = matches!(self.state, State::Active);
        let asked = self.pending.then_some(self.started);
        let (peer, acked, sessions) = (self.peer, self.acked, self.session);
        Standing { peer, active, acked, asked, until, sessions }
    }

    pub(super) const fn group(&self) -> &Group {
        &self.group
    }

    /// When the last session that was acknowledged, or the other's confirmation, says nothing any more; never, if
    /// there was neither.
    fn over(&self, session: Duration) -> Time {
        self.acked.max(self.held).map_or(Time::NEVER, |last| last + session * 2)
    }

    /// Whether it ran out so long ago that we should have asked, and stayed or left, by now.
    pub(super) fn is_late(&self, now: Time, config: &Config) -> bool {
        self.state != State::Dormant && now >= self.over(config.session) + config.arbitration
    }

    pub(super) fn is_established(&self) -> bool {
        self.session > 0 && !self.pending
    }

    pub(super) fn tell_again(&mut self, now: Time) {
        self.untold = Some(now);
    }

    fn is_active(&self) -> bool {
        self.state == State::Active
    }
}

impl Ring {
    /// Begins the next session of a lease.
    pub(super) fn begin_session(
        &mut self,
        now: Time,
        life: Life,
        stage: Stage,
        out: &mut OutboxOf<Self>,
    ) {
        let length = self.config.session;
        let number = self.numbered + 1;
        let again = self.again(now);
        let Some(lease) = self.lease_mut(life) else { return };
        (lease.stage, lease.again) = (stage, again);
        lease.session += 1;
        lease.number = number;
        lease.started = now;
        lease.pending = true;
        // Who was acknowledged last at `s` may be held to have found out by `s + 2 T_l`: who wakes late has less time.
        lease.due = (now + length).min(lease.over(length));
        self.numbered = number;
        let session = self.lease_message(life, number, stage);
        self.say(out, life.id(), Body::Request(session));
    }

    /// When a request said now is said again, if it is not acknowledged.
    fn again(&self, now: Time) -> Time {
        match self.config.repeats {
            0 => Time::NEVER,
            repeats => now + self.config.session.div(u64::from(repeats) + 1),
        }
    }

    /// Says a request again that was not acknowledged yet: it, or its acknowledgement, may have been lost. An
    /// acknowledgement counts from when the session began, however often it was asked for.
    pub(super) fn on_again_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let again = self.again(now);
        let Some(lease) = self.leases.iter_mut().find(|lease| lease.again <= now) else { return };
        let within = lease.pending && again < lease.started + self.config.session;
        lease.again = if within { again } else { Time::NEVER };
        let (life, number, stage, pending) = (lease.peer, lease.number, lease.stage, lease.pending);
        if pending && !self.ignores(life) {
            let session = self.lease_message(life, number, stage);
            self.say(out, life.id(), Body::Request(session));
        }
    }

    /// A request or acknowledgement with all that rides on it.
    fn lease_message(&mut self, life: Life, number: u64, stage: Stage) -> Session {
        let digest = self.view.digest();
        let published = self.config.upgrade == Upgrade::Published;
        let joining = match &self.role {
            Role::Joining(joining) if stage == Stage::Join => joining.near.clone(),
            _ => Vec::new(),
        };
        let view = &self.view;
        let lease = self.leases.iter_mut().find(|lease| lease.peer == life);
        let (mut facts, mut group, mut neighbours) = (Vec::new(), None, joining);
        if let Some(lease) = lease {
            if !lease.is_synced(digest) {
                facts = view.page(&mut lease.page);
            }
            if matches!(stage, Stage::Invite | Stage::Confirm) || lease.untold.is_some() {
                group = Some(lease.group.clone());
                if published {
                    neighbours = lease.near.0.clone();
                }
            }
        }
        let witness = self.witness;
        Session { number, to: life.age(), stage, witness, digest, facts, group, neighbours }
    }

    /// All that rides on a lease message, whichever way it goes.
    fn take_in(&mut self, now: Time, by: Life, session: &Session, out: &mut OutboxOf<Self>) {
        for &fact in &session.facts {
            let ours = self.lease_of(fact.life.id()).is_some_and(|lease| lease.peer == fact.life)
                || self.cases.iter().any(|case| case.accused == fact.life);
            // Of whom we monitored, everybody is to hear from somebody.
            if self.learn(now, fact, out) && ours && fact.kind != Kind::Member {
                self.tell_everybody(now, fact, out);
            }
        }
        let differs = Some(session.digest).filter(|&digest| digest != self.view.digest());
        if let Some(lease) = self.lease_mut(by) {
            lease.differs = differs;
        }
        if session.stage == Stage::Keep
            && let Some(group) = &session.group
        {
            self.on_upgraded(by, group, &session.neighbours, out);
        }
    }

    pub(super) fn on_request(
        &mut self,
        now: Time,
        by: Life,
        session: &Session,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if session.to != self.life().age() {
            return Err(Rejected::Unsolicited { from: by.peer });
        }
        if self.ignores(by) {
            return Ok(());
        }
        self.take_in(now, by, session, out);
        match session.stage {
            Stage::Join => return self.on_join_request(now, by, session, out),
            Stage::Invite => {
                self.on_invite(now, by, session);
                if !self.has_lease(by, session) {
                    return Ok(());
                }
            }
            Stage::Confirm => {
                if !self.has_lease(by, session) {
                    return Ok(());
                }
                let Some(lease) = self.lease_mut(by) else { return Ok(()) };
                let first = lease.state == State::Dormant;
                lease.state = State::Active;
                lease.held = lease.held.or(Some(now));
                if first && !self.view.lists(by) {
                    let fact = Fact { witness: session.witness, ..Fact::member(by) };
                    if self.on_newcomer(now, fact, session.number, out) {
                        // Acknowledged when those that must know of it do.
                        return Ok(());
                    }
                }
            }
            Stage::Keep => {
                if let Some(lease) = self.lease_mut(by)
                    && core::mem::take(&mut lease.announce)
                    && lease.is_active()
                    && let Some(fact) = self.view.fact(by.id())
                {
                    self.spread(fact, out);
                }
            }
        }
        self.acknowledge(by, session.number, out);
        Ok(())
    }

    pub(super) fn acknowledge(&mut self, by: Life, number: u64, out: &mut OutboxOf<Self>) {
        if self.lease_mut(by).is_some() {
            let ack = self.lease_message(by, number, Stage::Keep);
            self.say(out, by.id(), Body::Ack(ack));
        }
    }

    /// Whether a request of ours, said at least twice, is not acknowledged: the other may not hear us (`HB-12` of
    /// `docs/rules/half-broken.md`).
    pub(super) fn keeps_us_waiting(&self, now: Time, life: Life) -> bool {
        let lease = self.lease_of(life.id()).filter(|lease| lease.peer == life && lease.pending);
        lease.is_some_and(|lease| now.since(lease.started) >= self.config.session.div(8) * 3)
    }

    /// Whether all others keep us waiting too: then it is we who hear nobody, or whom nobody hears, and those who hear us must
    /// not be asked to choose us (`HB-14` of `docs/rules/half-broken.md`).
    pub(super) fn hears_nobody_but(&self, now: Time, accused: Life) -> bool {
        let mut others = self.leases.iter().filter(|lease| lease.peer != accused).peekable();
        others.peek().is_some() && others.all(|lease| self.keeps_us_waiting(now, lease.peer))
    }

    /// Whether the lease that a message names is the one we have with its sender.
    fn has_lease(&self, by: Life, session: &Session) -> bool {
        let born = session.group.as_ref().map(|group| group.born);
        let ours = self.lease_of(by.id()).filter(|lease| lease.peer == by);
        ours.is_some_and(|lease| Some(lease.group.born) == born)
    }

    /// Whether a lease with any life of a node ran out so long ago that we should have been out by now.
    fn is_late_with(&self, now: Time, id: NodeId) -> bool {
        self.lease_of(id).is_some_and(|lease| lease.is_late(now, &self.config))
    }

    /// A lower member wants a lease with us.
    fn on_invite(&mut self, now: Time, by: Life, session: &Session) {
        let Some(group) = &session.group else { return };
        if !self.view.lists(by) || !self.is_active() {
            return;
        }
        if self.lease_mut(by).is_some_and(|lease| lease.group.born >= group.born)
            || self.is_late_with(now, by.id())
        {
            return;
        }
        let due = now + self.offset();
        // If the group is not made of our neighbourhood, it is to be proposed.
        let mut ours = self.neighbours();
        if union(self.life(), &ours, by, &session.neighbours) != group.members {
            ours.clear();
        }
        let near = (ours, session.neighbours.clone());
        self.leases.retain(|lease| lease.peer.id() != by.id());
        self.leases.push(Lease { near, ..Lease::new(by, group.clone(), due) });
        self.leases.sort_unstable_by_key(|lease| lease.peer);
    }

    /// When to open the second lease of a pair, after the first was heard of.
    pub(super) fn offset(&mut self) -> Duration {
        match self.config.phase {
            Phase::Locked => Duration::ZERO,
            Phase::Random => self.rng.up_to(self.config.session),
            Phase::Half => self.config.session.div(2),
        }
    }

    /// The first request of a joiner: we must be locked for it (R8.4).
    fn on_join_request(
        &mut self,
        now: Time,
        by: Life,
        session: &Session,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if self.locked_for(now) != Some(by) || !self.is_active() || self.is_late_with(now, by.id())
        {
            return Err(Rejected::Unsolicited { from: by.peer });
        }
        if self.lease_mut(by).is_none() {
            let ours = self.neighbours();
            let mut members = vec![self.life(), by];
            members.extend(ours.iter().chain(&session.neighbours));
            members.sort_unstable();
            members.dedup();
            let group = Group { members, ..Group::default() };
            let due = now + self.offset();
            let near = (ours, session.neighbours.clone());
            let announce = self.owns_place_of(by.id());
            self.leases.retain(|lease| lease.peer.id() != by.id());
            self.leases.push(Lease { near, announce, ..Lease::new(by, group, due) });
            self.leases.sort_unstable_by_key(|lease| lease.peer);
        }
        let mut ack = self.lease_message(by, session.number, Stage::Keep);
        let lease = self.lease_of(by.id());
        ack.group = lease.map(|lease| lease.group.clone());
        ack.neighbours = lease.map(|lease| lease.near.0.clone()).unwrap_or_default();
        ack.stage = Stage::Join;
        self.say(out, by.id(), Body::Ack(ack));
        Ok(())
    }

    pub(super) fn on_ack(
        &mut self,
        now: Time,
        by: Life,
        session: &Session,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let ours = session.to == self.life().age();
        // Of a lease that is closed or left there is no way back: it begins no session any more.
        let open =
            |lease: &&Lease| lease.pending && lease.number == session.number && !lease.must_close();
        if !ours || self.lease_of(by.id()).filter(open).is_none_or(|lease| lease.peer != by) {
            return Err(Rejected::Unsolicited { from: by.peer });
        }
        self.take_in(now, by, session, out);
        let Some(lease) = self.lease_mut(by) else { return Ok(()) };
        (lease.pending, lease.again) = (false, Time::NEVER);
        lease.acked = Some(lease.started);
        lease.untold = lease.untold.filter(|&since| since > lease.started);
        if lease.state == State::Confirming {
            lease.state = State::Active;
            lease.closing = None;
            self.dirty = true;
        }
        if session.stage == Stage::Join
            && let Some(group) = &session.group
            && let Some(lease) = self.lease_mut(by)
        {
            lease.group = group.clone();
            lease.near.1.clone_from(&session.neighbours);
        }
        if matches!(self.role, Role::Joining(_)) {
            self.on_join_ack(now, out);
        }
        Ok(())
    }

    /// A session is over, or a lease opens. One lease at a time.
    pub(super) fn on_session_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let due = self.leases.iter().min_by_key(|lease| lease.due);
        let Some(lease) = due.filter(|lease| lease.due <= now) else { return };
        let (life, state) = (lease.peer, lease.state);
        let over = lease.over(self.config.session);
        let inviter = self.me.id < life.id() && self.view.lists(life);
        if lease.session == 0 && !(state == State::Active && now >= over) {
            let stage = if inviter { Stage::Invite } else { Stage::Keep };
            self.begin_session(now, life, stage, out);
        } else if lease.is_established() && now < over {
            let confirms = inviter && state == State::Dormant;
            if confirms && let Some(lease) = self.lease_mut(life) {
                lease.state = State::Confirming;
            }
            let stage = if confirms { Stage::Confirm } else { Stage::Keep };
            self.begin_session(now, life, stage, out);
        } else {
            match state {
                State::Dormant => {
                    self.leases.retain(|lease| lease.peer != life);
                    self.invite_later(now, life);
                }
                State::Confirming => self.close_or_leave(now, life, out),
                State::Active => self.suspect(now, life, over, out),
            }
        }
    }

    /// The other end of a lease that was never acknowledged may not know of it: what is forgotten here it forgets.
    pub(super) fn drop_lease(&mut self, life: Life) {
        self.leases.retain(|lease| lease.peer != life);
        self.dirty = true;
    }

    /// The sender of an unexpected answer.
    pub(super) const fn unsolicited(from: Peer) -> Rejected {
        Rejected::Unsolicited { from }
    }
}
