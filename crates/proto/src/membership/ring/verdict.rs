//! The suspecter's side of an arbitration (R3, R4, R6, R12).

use alloc::{collections::BTreeMap, vec, vec::Vec};

use super::{
    Ring, RingEvent, Role,
    arbiter::{self, Seat},
    config::{Arbiters, Config, Decide, Departure, Far, Fresh, Tie, Upgrade, Votes},
    geometry::majority,
    message::{Body, Group, Life, Reason, Version, Vote},
    view::{Fact, Kind},
};
use crate::{
    id::NodeId,
    machine::{OutboxOf, Rejected},
    time::Time,
};

/// An accusation of ours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Case {
    pub(super) accused: Life,
    pub(super) asked: Time,
    /// When the lease ran out, or, if we slept then, should have been noticed to: the accused counts on our verdict, or
    /// our leave, within `T_a` of it (E24).
    since: Time,
    /// All that must be won: the group of the lease, and later ones that were promised.
    groups: Vec<Group>,
    /// By life: a later one of the same node has forgotten what it promised (M3).
    votes: BTreeMap<Life, Vote>,
    pub(super) won: bool,
    /// Whether the time to concede has passed.
    halved: bool,
    /// When those are asked again that have not answered: the first question, or its answer, may have been lost.
    again: Time,
}

/// How a case stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tally {
    Won,
    Lost,
    Closed,
    Open,
}

impl Case {
    /// When it must be looked at again.
    pub(super) fn due(&self, config: &Config) -> Time {
        let due = match (self.won, config.tie) {
            (true, _) => return Time::NEVER,
            (false, Tie::Concede) if !self.halved => self.since + config.arbitration.div(2),
            (false, _) => self.since + config.arbitration,
        };
        due.min(self.again)
    }

    /// When the accused may be buried.
    pub(super) fn burial(&self, config: &Config) -> Time {
        if self.won { config.burial(self.asked) } else { Time::NEVER }
    }

    /// Whether it should have been decided by now.
    pub(super) fn is_late(&self, now: Time, config: &Config) -> bool {
        !self.won && now >= self.since + config.arbitration
    }

    fn tally(&self, config: &Config, me: Life) -> Tally {
        let (mut won, mut winnable) = (true, true);
        // Closed in the one group and not in the other, the other end may have a majority of the other.
        let (mut closed, mut closable) = (true, true);
        for group in &self.groups {
            let seats = seats(config, group, (me, self.accused));
            let needed = majority(seats.len());
            let count = |wanted: fn(Vote) -> bool| {
                let votes = seats.iter().filter_map(|life| self.votes.get(life));
                votes.filter(|&&vote| wanted(vote)).count()
            };
            closed &= count(|vote| vote == Vote::Closed) >= needed;
            closable &= count(|vote| vote != Vote::Closed) + needed <= seats.len();
            winnable &= count(|vote| vote != Vote::Accept) + needed <= seats.len();
            won &= count(|vote| vote == Vote::Accept) >= needed;
        }
        match (closed, won, winnable || closable) {
            (true, ..) => Tally::Closed,
            (_, true, _) => Tally::Won,
            (.., true) => Tally::Open,
            (.., false) => Tally::Lost,
        }
    }

    fn is_answered(&self, config: &Config, me: Life) -> bool {
        let mut seats =
            self.groups.iter().flat_map(|group| seats(config, group, (me, self.accused)));
        seats.all(|life| self.votes.contains_key(&life))
    }
}

/// Those whose votes count in a group of a pair.
pub(super) fn seats(config: &Config, group: &Group, (one, other): (Life, Life)) -> Vec<Life> {
    let neutral = config.votes == Votes::Neutral && config.arbiters == Arbiters::Pairwise;
    let counts = |life: &&Life| !neutral || (**life != one && **life != other);
    group.members.iter().filter(counts).copied().collect()
}

/// Whether this very life sits in a group: a later one has forgotten what it promised (M3).
pub(super) fn is_seated(config: &Config, group: &Group, life: Life) -> bool {
    group.seats(life) || config.is_external(life.id())
}

impl Ring {
    /// The lease on a member has run out: ask (Rule 2).
    pub(super) fn suspect(
        &mut self,
        now: Time,
        accused: Life,
        over: Time,
        out: &mut OutboxOf<Self>,
    ) {
        if now >= over + self.config.arbitration {
            return self.depart(now, Some(accused.id()), out);
        }
        if self.config.repeats > 0 && self.hears_nobody_but(now, accused) {
            return self.depart(now, Some(accused.id()), out);
        }
        let since = now.min(over);
        let Some(at) = self.leases.iter().position(|lease| lease.peer == accused) else { return };
        let lease = self.leases.remove(at);
        let mut groups = vec![match self.config.arbiters {
            Arbiters::Pairwise => lease.group,
            Arbiters::Central => self.central_group(),
        }];
        if self.config.upgrade == Upgrade::Joint {
            groups.extend(lease.proposal.map(|proposal| proposal.next));
            groups.extend(lease.consented);
        }
        out.emit(RingEvent::Suspected(accused));
        let votes = BTreeMap::new();
        // Late enough that a link over which nobody answered is in doubt by then, and soon enough for an answer.
        let again = match self.config.repeats {
            0 => Time::NEVER,
            _ => since + self.config.arbitration.div(4) * 3,
        };
        let mut case =
            Case { accused, asked: now, since, groups, votes, won: false, halved: false, again };
        for group in case.groups.clone() {
            self.ask(now, &mut case, &group, out);
        }
        self.cases.push(case);
        self.decide(now, accused, out);
    }

    /// Asks those of a group that have not answered.
    fn ask(&mut self, now: Time, case: &mut Case, group: &Group, out: &mut OutboxOf<Self>) {
        for seat in seats(&self.config, group, (self.life(), case.accused)) {
            if seat == self.life() {
                let vote = self.vote(now, seat, case.accused, group);
                case.votes.insert(seat, vote);
            } else if !case.votes.contains_key(&seat) {
                let body = Body::Ask { accused: case.accused, group: group.clone() };
                self.say(out, seat.id(), body);
            }
        }
    }

    fn central_group(&self) -> Group {
        Group {
            born: 0,
            version: Version::default(),
            members: self.config.external().map(Life::outside).collect(),
        }
    }

    fn suspects_life(&self, life: Life) -> bool {
        self.cases.iter().any(|case| case.accused == life)
    }

    /// Our vote as an arbitrator.
    fn vote(&mut self, now: Time, by: Life, accused: Life, group: &Group) -> Vote {
        if self.config.arbiters == Arbiters::Central {
            let memory = self.config.waiting(self.config.memory);
            return self.central.ask(now, (by, accused), self.up_since, memory);
        }
        let (pair, end) = arbiter::pair(by, accused);
        let (config, me) = (self.config, self.life());
        let rules = arbiter::Rules { config: &config, me, up_since: self.up_since };
        self.seat(pair).ask(now, end, group, rules)
    }

    pub(super) fn seat(&mut self, pair: arbiter::Pair) -> &mut Seat {
        if self.seats.len() >= SEATS {
            let view = &self.view;
            self.seats.retain(|(low, high), _| !view.is_gone(*low) && !view.is_gone(*high));
        }
        self.seats.entry(pair).or_default()
    }

    pub(super) fn on_ask(
        &mut self,
        now: Time,
        by: Life,
        accused: Life,
        group: &Group,
        out: &mut OutboxOf<Self>,
    ) {
        // Of two that do not hear each other, the one that hears nobody must not be the one that stays.
        if self.config.repeats > 0 && (self.keeps_us_waiting(now, by) || self.suspects_life(by)) {
            return;
        }
        let vote = self.vote(now, by, accused, group);
        let tells = self.config.upgrade == Upgrade::Joint && self.config.promises;
        let (pair, _) = arbiter::pair(by, accused);
        let newer = match self.seats.get(&pair).filter(|_| tells) {
            Some(seat) => seat.newer(group),
            None => Vec::new(),
        };
        self.say(out, by.id(), Body::Answer { accused, vote, newer });
    }

    pub(super) fn on_answer(
        &mut self,
        now: Time,
        by: Life,
        (accused, vote, newer): (Life, Vote, &[Group]),
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let Some(at) = self.cases.iter().position(|case| case.accused == accused) else {
            return Err(Self::unsolicited(by.peer));
        };
        let case = &self.cases[at];
        if !case.groups.iter().chain(newer).any(|group| is_seated(&self.config, group, by)) {
            return Err(Self::unsolicited(by.peer));
        }
        let mut case = self.cases.remove(at);
        // A vote changes only when its holder has conceded.
        let seat = if self.config.is_external(by.id()) { Life::outside(by.id()) } else { by };
        let before = case.votes.get(&seat).copied();
        // By lists, who is fresh was not on the one it was asked by: of another it may be.
        let astray = self.config.fresh == Fresh::Version && vote == Vote::Reject(Reason::Fresh);
        if !astray && before.is_none_or(|before| before == Vote::Reject(Reason::Conflict)) {
            case.votes.insert(seat, vote);
        }
        for group in newer {
            if !case.won && case.groups.iter().all(|known| known.version != group.version) {
                case.groups.push(group.clone());
                self.ask(now, &mut case, group, out);
            }
        }
        self.cases.push(case);
        self.decide(now, accused, out);
        Ok(())
    }

    /// Whether a case is decided by now.
    fn decide(&mut self, now: Time, accused: Life, out: &mut OutboxOf<Self>) {
        let (config, me) = (self.config, self.life());
        let Some(case) = self.cases.iter_mut().find(|case| case.accused == accused) else { return };
        if case.won {
            return;
        }
        let end = case.since + config.arbitration;
        if now > end {
            return self.depart(now, Some(accused.id()), out);
        }
        if config.decide == Decide::Wait && now < end && !case.is_answered(&config, me) {
            return;
        }
        let yields = config.tie == Tie::Concede && me.id() > accused.id();
        let contested = case.votes.values().any(|&vote| vote == Vote::Reject(Reason::Conflict));
        match case.tally(&config, me) {
            Tally::Won => {
                case.won = true;
                out.emit(RingEvent::Condemned(accused));
            }
            Tally::Closed => {
                self.cases.retain(|case| case.accused != accused);
                self.dirty = true;
                out.emit(RingEvent::Closed(accused.id()));
            }
            Tally::Lost if config.tie == Tie::Leave || yields => {
                self.depart(now, Some(accused.id()), out);
            }
            _ if now >= end => {
                self.depart(now, Some(accused.id()), out);
            }
            Tally::Open if yields && case.halved && contested => {
                self.depart(now, Some(accused.id()), out);
            }
            // A concession may still come.
            Tally::Lost | Tally::Open => {}
        }
    }

    pub(super) fn on_verdict_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let due: Vec<Life> = self
            .cases
            .iter_mut()
            .filter(|case| case.due(&self.config) <= now)
            .map(|case| {
                case.halved = true;
                case.accused
            })
            .collect();
        for accused in due {
            self.ask_again(now, accused, out);
            self.decide(now, accused, out);
        }
    }

    fn ask_again(&mut self, now: Time, accused: Life, out: &mut OutboxOf<Self>) {
        let again = |case: &Case| case.accused == accused && case.again <= now;
        let Some(at) = self.cases.iter().position(again) else { return };
        let mut case = self.cases.remove(at);
        case.again = Time::NEVER;
        for group in case.groups.clone() {
            self.ask(now, &mut case, &group, out);
        }
        self.cases.insert(at, case);
    }

    pub(super) fn on_burial_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let due = self.cases.iter().find(|case| case.burial(&self.config) <= now);
        let Some(life) = due.map(|case| case.accused) else { return };
        self.cases.retain(|case| case.accused != life);
        let witness = self.view.fact(life.id()).is_some_and(|fact| fact.witness);
        let fact = Fact { life, kind: Kind::Buried, witness };
        // Not by way of learning: it is we who know.
        if self.view.learn(fact) {
            self.forget(now, life);
            out.emit(RingEvent::Buried { life, own: true });
            self.tell_everybody(now, fact, out);
        }
    }

    /// Who asked has left: its votes go to the one it accused (R12.3).
    pub(super) fn on_concede(
        &mut self,
        now: Time,
        by: Life,
        accused: Life,
        born: u64,
        out: &mut OutboxOf<Self>,
    ) {
        let (pair, end) = arbiter::pair(by, accused);
        let granted = self.seats.get_mut(&pair).and_then(|seat| seat.concede(now, end, born));
        if let Some(vote) = granted {
            if accused == self.life() {
                return;
            }
            let body = Body::Answer { accused: by, vote, newer: Vec::new() };
            self.say(out, accused.id(), body);
        }
    }

    /// Leaves because an arbitration, or an upgrade, was lost (R6): stops first, then says so.
    pub(super) fn depart(&mut self, now: Time, over: Option<NodeId>, out: &mut OutboxOf<Self>) {
        let me = self.life();
        let mut told: Vec<NodeId> = self.leases.iter().map(|lease| lease.peer.id()).collect();
        let cases = core::mem::take(&mut self.cases);
        out.emit(RingEvent::Departed { over });
        // Where everybody arbitrates, what stays behind is to find out for itself whether it has a majority.
        if self.config.departure == Departure::Notify && self.config.far != Far::Everybody {
            told.extend(self.neighbours().iter().map(Life::id));
            told.sort_unstable();
            told.dedup();
            for id in told {
                self.say(out, id, Body::Leave { forced: true });
            }
        }
        if self.config.tie == Tie::Concede {
            for case in cases.iter().filter(|case| !case.won) {
                for group in &case.groups {
                    for seat in seats(&self.config, group, (me, case.accused)) {
                        let body = Body::Concede { accused: case.accused, born: group.born };
                        self.say(out, seat.id(), body);
                    }
                }
            }
        }
        let known: Vec<NodeId> = self.view.ring().to_vec();
        self.become_out();
        if self.config.rejoin {
            self.view.learn(Fact { life: me, kind: Kind::Left, witness: self.witness });
            for id in known {
                if id != self.me.id && !self.contacts.contains(&id) {
                    self.contacts.push(id);
                }
            }
            self.begin_join(now, out);
        }
    }

    /// Goodbye, of our own accord (R6).
    pub(super) fn leave(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.is_active() {
            return self.become_out();
        }
        let waiting: Vec<NodeId> = self.leases.iter().map(|lease| lease.peer.id()).collect();
        for &id in &waiting {
            self.say(out, id, Body::Leave { forced: false });
        }
        self.cases.clear();
        self.emits.clear();
        for lease in &mut self.leases {
            lease.due = Time::NEVER;
            lease.proposal = None;
            lease.closing = None;
            lease.retry = (Time::NEVER, 0);
        }
        self.role = Role::Leaving { until: now + self.config.session, waiting };
    }

    pub(super) fn on_leave(&mut self, now: Time, by: Life, forced: bool, out: &mut OutboxOf<Self>) {
        self.say(out, by.id(), Body::LeaveAck);
        // A joiner that withdraws was never listed; its lease goes all the same (E15).
        let config = self.config;
        self.leases.retain(|lease| lease.peer != by || lease.is_late(now, &config));
        let fact = Fact { life: by, kind: Kind::Left, witness: false };
        if self.view.learn(fact) {
            self.forget(now, by);
            out.emit(RingEvent::Left { life: by, forced });
            self.tell_everybody(now, fact, out);
        }
    }
}

/// Pairs held before those that are over are looked for. Arbitrary, above what a node of a quiet ring holds.
const SEATS: usize = 256;
