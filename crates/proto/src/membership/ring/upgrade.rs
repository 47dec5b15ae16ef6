//! Changing the group of a pair (R7, R7h), and ending a lease without a loser (R8.10).

use alloc::{collections::BTreeMap, vec::Vec};

use super::{
    Ring, RingEvent,
    arbiter::{self, Rules},
    config::{Arbiters, Far, Upgrade},
    geometry::majority,
    lease::{Lease, State},
    message::{Body, Group, Life, Version},
    verdict::{is_seated, seats},
};
use crate::{
    id::NodeId,
    machine::{OutboxOf, Rejected},
    rng::mix,
    time::Time,
};

/// A group we have proposed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Proposal {
    pub(super) next: Group,
    votes: BTreeMap<NodeId, bool>,
    until: Time,
}

/// A lease we want to close.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Closing {
    votes: BTreeMap<NodeId, bool>,
    until: Time,
    /// Whether there is no way back: closed, or left.
    must: bool,
}

impl Lease {
    /// Whether it is closed or we leave.
    pub(super) fn must_close(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.must)
    }

    /// When its proposal or close has had its time.
    pub(super) fn proposal_due(&self) -> Time {
        let proposal = self.proposal.as_ref().map_or(Time::NEVER, |proposal| proposal.until);
        let closing = self.closing.as_ref().map_or(Time::NEVER, |closing| closing.until);
        let waits = self.retry.1 > 0 && self.retry.0 > Time::ZERO;
        let retry = if waits { self.retry.0 } else { Time::NEVER };
        let idle = self.proposal.is_none() && self.closing.is_none();
        proposal.min(closing).min(if idle { retry } else { Time::NEVER })
    }
}

impl Ring {
    /// The members of the group that the pair of ours with `peer` should have by our view (R1, R15).
    pub(super) fn members_for(&self, peer: Life) -> Vec<Life> {
        let (me, k) = (self.life(), self.config.k);
        let mut members = alloc::vec![me, peer];
        match self.config.far {
            Far::Everybody => members.extend(self.members()),
            Far::Members(far) => {
                members.extend(self.view.neighbours(me.id(), k));
                members.extend(self.view.neighbours(peer.id(), k));
                members.sort_unstable();
                members.dedup();
                if far > 0 {
                    let ((low, high), _) = arbiter::pair(me, peer);
                    let salt = mix(mix(low.id().get()) ^ high.id().get());
                    let mut rest: Vec<Life> = self
                        .members()
                        .filter(|life| members.binary_search(life).is_err())
                        .collect();
                    let far = usize::from(far).min(rest.len());
                    let key = |life: &Life| (mix(salt ^ life.id().get()), life.id());
                    if far > 0 && far < rest.len() {
                        rest.select_nth_unstable_by_key(far - 1, key);
                    }
                    members.extend(&rest[..far]);
                }
            }
        }
        if self.view.len() < 3 && self.config.arbiters == Arbiters::Pairwise {
            members.extend(self.config.external().map(Life::outside));
        }
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Proposes what the view has changed, and closes what it has pushed apart, where that is ours to do.
    pub(super) fn bring_up_to_date(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let (me, near) = (self.life(), self.neighbours());
        let all: Vec<Life> = self.leases.iter().map(|lease| lease.peer).collect();
        for peer in all {
            let Some(lease) = self.lease_of(peer.id()) else { continue };
            let busy = lease.proposal.is_some() || lease.closing.is_some();
            if busy || lease.state != State::Active || now < lease.retry.0 {
                continue;
            }
            if me < peer && !near.contains(&peer) {
                self.close(now, peer, false, out);
            } else if self.config.arbiters == Arbiters::Pairwise {
                self.propose(now, peer, &near, out);
            }
        }
    }

    fn propose(&mut self, now: Time, peer: Life, near: &[Life], out: &mut OutboxOf<Self>) {
        let me = self.life();
        let (pair, end) = arbiter::pair(me, peer);
        let Some(lease) = self.lease_of(peer.id()) else { return };
        let mut version = lease.group.version;
        let members = match self.config.upgrade {
            Upgrade::Joint => {
                let members = self.members_for(peer);
                if end == 1 || members == lease.group.members {
                    return;
                }
                version.low = version.low.max(lease.proposed) + 1;
                members
            }
            Upgrade::Published => {
                if same(near, &lease.near.0) {
                    return;
                }
                *(if end == 0 { &mut version.low } else { &mut version.high }) += 1;
                union(me, near, peer, &lease.near.1)
            }
        };
        let base = lease.group.clone();
        let next = Group { born: base.born, version, members };
        let (config, up_since) = (self.config, self.up_since);
        let mut votes = BTreeMap::new();
        for id in seats(&config, &base, (me, peer)).iter().map(Life::id) {
            if id == me.id() {
                let rules = Rules { config: &config, me, up_since };
                votes.insert(id, self.seat(pair).propose(now, end, (&base, &next), rules));
            } else {
                let (base, next) = (base.clone(), next.clone());
                self.say(out, id, Body::Propose { peer, base, next });
            }
        }
        if config.asks_the_other() {
            let (base, next) = (base.clone(), next.clone());
            self.say(out, peer.id(), Body::Propose { peer, base, next });
        }
        let until = now + config.arbitration;
        if let Some(lease) = self.lease_mut(peer) {
            lease.proposed = version.low;
            lease.proposal = Some(Proposal { next, votes, until });
            if config.upgrade == Upgrade::Published {
                // What is proposed now is what the next change is measured by, granted or not.
                lease.retry = (Time::ZERO, lease.retry.1);
            }
        }
        self.count_proposal(now, peer, out);
    }

    pub(super) fn on_propose(
        &mut self,
        now: Time,
        by: Life,
        peer: Life,
        (base, next): (&Group, &Group),
        out: &mut OutboxOf<Self>,
    ) {
        let (pair, end) = arbiter::pair(by, peer);
        let (config, me, up_since) = (self.config, self.life(), self.up_since);
        let granted = if peer == me && config.asks_the_other() {
            end == 0 && self.consents(by, base, next)
        } else {
            let rules = Rules { config: &config, me, up_since };
            self.seat(pair).propose(now, end, (base, next), rules)
        };
        self.say(out, by.id(), Body::Proposed { peer, version: next.version, granted });
    }

    /// The other end wants another group. Consenting, we need that one too from now on; so it may count on it alone, and
    /// whatever became of the members of the present one, some group will have to decide between us.
    fn consents(&mut self, by: Life, base: &Group, next: &Group) -> bool {
        let Some(lease) = self.lease_mut(by) else { return false };
        let known = lease.consented.as_ref().map_or(0, |group| group.version.low);
        if lease.closing.is_some()
            || lease.group.born != base.born
            || lease.group.version.low > base.version.low
            || next.version.low <= known.max(base.version.low)
        {
            return false;
        }
        // It proposes changes of what it has.
        lease.group = base.clone();
        lease.consented = Some(next.clone());
        true
    }

    pub(super) fn on_proposed(
        &mut self,
        now: Time,
        by: Life,
        (peer, version, granted): (Life, Version, bool),
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let config = self.config;
        let lease = self.lease_mut(peer).filter(|lease| is_seated(&config, &lease.group, by));
        let proposal = lease.and_then(|lease| lease.proposal.as_mut());
        let Some(proposal) = proposal.filter(|proposal| proposal.next.version == version) else {
            return Err(Self::unsolicited(by.peer));
        };
        proposal.votes.entry(by.id()).or_insert(granted);
        self.count_proposal(now, peer, out);
        Ok(())
    }

    fn count_proposal(&mut self, now: Time, peer: Life, out: &mut OutboxOf<Self>) {
        let (config, me) = (self.config, self.life());
        let draw = self.rng.unit();
        let Some(lease) = self.lease_mut(peer) else { return };
        let Some(proposal) = &lease.proposal else { return };
        let seats: Vec<NodeId> =
            seats(&config, &lease.group, (me, peer)).iter().map(Life::id).collect();
        let needed = majority(seats.len());
        let count = |wanted| {
            seats.iter().filter(|id| proposal.votes.get(id).copied() == Some(wanted)).count()
        };
        let (granted, refused) = (count(true), count(false));
        let over = now >= proposal.until;
        let version = proposal.next.version;
        let other = match config.asks_the_other() {
            true => proposal.votes.get(&peer.id()).copied(),
            false => Some(false),
        };
        let refused_by_all = refused + needed > seats.len() && other == Some(false);
        if granted >= needed || other == Some(true) {
            let Some(proposal) = lease.proposal.take() else { return };
            lease.group = proposal.next;
            lease.retry = (Time::ZERO, 0);
            lease.tell_again(now);
            let group = lease.group.clone();
            let mut neighbours = Vec::new();
            if config.upgrade == Upgrade::Published {
                neighbours = self.neighbours();
                if let Some(lease) = self.lease_mut(peer) {
                    lease.near.0.clone_from(&neighbours);
                }
            }
            out.emit(RingEvent::Upgraded { peer: peer.id(), version });
            if config.hints {
                self.say(out, peer.id(), Body::Upgraded { group, neighbours });
            }
            self.dirty = true;
        } else if over || refused_by_all {
            let silent = seats.len() - granted - refused;
            lease.proposal = None;
            let tries = lease.retry.1;
            let (least, most) = config.retry;
            let most = match config.upgrade {
                Upgrade::Published => most,
                Upgrade::Joint => most * (1 << tries.min(6)),
            };
            let wait = least + most.saturating_sub(least).scale(draw);
            lease.retry = (now + wait, tries + 1);
            match config.upgrade {
                Upgrade::Published if over && silent >= needed => {
                    self.depart(now, Some(peer.id()), out);
                }
                Upgrade::Published => {}
                Upgrade::Joint => {
                    let (pair, _) = arbiter::pair(me, peer);
                    self.seat(pair).retract(version);
                    let other = config.asks_the_other().then(|| peer.id());
                    for id in seats.into_iter().chain(other).filter(|&id| id != me.id()) {
                        self.say(out, id, Body::Retract { peer, version });
                    }
                }
            }
        }
    }

    /// The other end says that the group of ours has changed; said again, nothing changes (R7.4).
    pub(super) fn on_upgraded(
        &mut self,
        by: Life,
        group: &Group,
        neighbours: &[Life],
        out: &mut OutboxOf<Self>,
    ) {
        let (config, me) = (self.config, self.life());
        let (_, end) = arbiter::pair(by, me);
        let Some(lease) = self.lease_mut(by).filter(|lease| lease.group.born == group.born) else {
            return;
        };
        match config.upgrade {
            Upgrade::Joint => {
                if end == 1 || group.version.low <= lease.group.version.low {
                    return;
                }
                lease.group = group.clone();
                let later = |other: &Group| other.version.low > group.version.low;
                lease.consented = lease.consented.take().filter(later);
            }
            Upgrade::Published => {
                let (theirs, ours) = match end {
                    0 => (group.version.low, &mut lease.group.version.low),
                    _ => (group.version.high, &mut lease.group.version.high),
                };
                if theirs <= *ours {
                    return;
                }
                *ours = theirs;
                lease.near.1 = neighbours.to_vec();
                let (mine, theirs) = (lease.near.0.clone(), lease.near.1.clone());
                lease.group.members = union(me, &mine, by, &theirs);
            }
        }
        let version = lease.group.version;
        out.emit(RingEvent::Upgraded { peer: by.id(), version });
    }

    pub(super) fn on_proposal_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let due: Vec<Life> = self
            .leases
            .iter()
            .filter(|lease| lease.proposal_due() <= now)
            .map(|lease| lease.peer)
            .collect();
        for peer in due {
            let Some(lease) = self.lease_mut(peer) else { continue };
            if lease.proposal.is_some() {
                self.count_proposal(now, peer, out);
            } else if lease.closing.is_some() {
                self.count_closing(now, peer, out);
            } else {
                lease.retry.0 = Time::ZERO;
                let tries = core::mem::take(&mut lease.retry.1);
                self.bring_up_to_date(now, out);
                if let Some(lease) = self.lease_mut(peer) {
                    let busy = lease.proposal.is_some() || lease.closing.is_some();
                    // How often it was refused is kept while it is tried again.
                    if busy || lease.retry.1 > 0 {
                        lease.retry.1 = lease.retry.1.max(tries);
                    }
                }
            }
        }
    }

    /// Asks for a lease to end without a loser.
    fn close(&mut self, now: Time, peer: Life, must: bool, out: &mut OutboxOf<Self>) {
        let (config, me) = (self.config, self.life());
        let Some(lease) = self.lease_of(peer.id()) else { return };
        let group = lease.group.clone();
        let from = lease.due.min(now);
        let (pair, _) = arbiter::pair(me, peer);
        let memory = config.waiting(config.memory);
        let mut votes = BTreeMap::new();
        for id in seats(&config, &group, (me, peer)).iter().map(Life::id) {
            if id == me.id() {
                votes.insert(id, self.seat(pair).close(now, group.born, memory));
            } else {
                self.say(out, id, Body::CloseAsk { peer, born: group.born });
            }
        }
        let until = from + config.arbitration;
        if let Some(lease) = self.lease_mut(peer) {
            lease.proposal = None;
            lease.closing = Some(Closing { votes, until, must });
            if must {
                lease.due = Time::NEVER;
            }
        }
        self.count_closing(now, peer, out);
    }

    /// The other may be held to a lease of which we do not know whether it is (R10.2): closed, or left.
    pub(super) fn close_or_leave(&mut self, now: Time, peer: Life, out: &mut OutboxOf<Self>) {
        self.close(now, peer, true, out);
    }

    pub(super) fn on_close_ask(
        &mut self,
        now: Time,
        by: Life,
        peer: Life,
        born: u64,
        out: &mut OutboxOf<Self>,
    ) {
        let memory = self.config.waiting(self.config.memory);
        let (pair, _) = arbiter::pair(by, peer);
        let granted = self.seat(pair).close(now, born, memory);
        self.say(out, by.id(), Body::CloseAnswer { peer, born, granted });
    }

    pub(super) fn on_close_answer(
        &mut self,
        now: Time,
        by: Life,
        (peer, born, granted): (Life, u64, bool),
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let config = self.config;
        let lease = self
            .lease_mut(peer)
            .filter(|lease| lease.group.born == born && is_seated(&config, &lease.group, by));
        let Some(closing) = lease.and_then(|lease| lease.closing.as_mut()) else {
            return Err(Self::unsolicited(by.peer));
        };
        closing.votes.entry(by.id()).or_insert(granted);
        self.count_closing(now, peer, out);
        Ok(())
    }

    fn count_closing(&mut self, now: Time, peer: Life, out: &mut OutboxOf<Self>) {
        let (config, me) = (self.config, self.life());
        let Some(lease) = self.lease_mut(peer) else { return };
        let Some(closing) = &lease.closing else { return };
        let seats: Vec<NodeId> =
            seats(&config, &lease.group, (me, peer)).iter().map(Life::id).collect();
        let needed = majority(seats.len());
        let granted = seats.iter().filter(|id| closing.votes.get(id) == Some(&true)).count();
        let refused = seats.iter().filter(|id| closing.votes.get(id) == Some(&false)).count();
        let (must, over) = (closing.must, now >= closing.until);
        // Later, arbitrators may have closed what they had been asked about and forgotten.
        if granted >= needed && now <= closing.until {
            let born = lease.group.born;
            self.drop_lease(peer);
            out.emit(RingEvent::Closed(peer.id()));
            if config.hints {
                self.say(out, peer.id(), Body::Closed { born });
            }
            self.invite_later(now, peer);
        } else if over && must {
            self.depart(now, Some(peer.id()), out);
        } else if (over || refused + needed > seats.len()) && !must {
            lease.closing = None;
            lease.retry = (now + config.session, lease.retry.1 + 1);
        }
    }

    /// The other end has had the lease of ours closed.
    pub(super) fn on_closed(&mut self, by: Life, born: u64, out: &mut OutboxOf<Self>) {
        let fits = |lease: &Lease| lease.peer == by && lease.group.born == born;
        if self.leases.iter().any(fits) {
            self.drop_lease(by);
            out.emit(RingEvent::Closed(by.id()));
        }
    }
}

/// `P ∪ N_P ∪ Q ∪ N_Q`.
pub(super) fn union(one: Life, near: &[Life], other: Life, far: &[Life]) -> Vec<Life> {
    let mut members = alloc::vec![one, other];
    members.extend(near.iter().chain(far));
    members.sort_unstable();
    members.dedup();
    members
}

fn same(one: &[Life], other: &[Life]) -> bool {
    one.len() == other.len() && one.iter().all(|life| other.contains(life))
}
