//! Arbitrated membership on a ring: symmetric leases detect, arbitrators decide.
//!
//! Source: Ahsan and Gupta, "A New Fully-Distributed Arbitration-Based Membership Protocol". Rules `R1` to `R15`,
//! errata `E1` to `E37`, theorems and properties `S1` to `S5` are those of `docs/rules/arbitrated.md`. Each node leases
//! from its `k` nearest on either side. A lease that runs out only *suspects*; the suspecter asks a group of
//! arbitrators, stays if more than half agree, and leaves otherwise. Since the accused finds out within `2 T_l` and
//! cannot win either, it is gone `2 T_l + T_a` after the suspicion, and is buried then and not before.
//!
//! ```text
//! Idle     --Start, a founder----------> Active    Invite to higher neighbours
//! Idle     --Start---------------------> Joining   Find to a contact                         (R8.1)
//! Idle     --Start, external-----------> Arbiter
//! Joining  --Neighbours----------------> Joining   Lock to all of them                       (R8.3)
//! Joining  --all locked----------------> Joining   Request(1) to all                         (R8.4)
//! Joining  --all acknowledged----------> Joining   Request(2), Confirm, to all               (R8.6)
//! Joining  --all acknowledged----------> Active
//! Joining  --time up, Busy, refused----> Joining   Unlock; back off; a new incarnation       (R8.5)
//! Active   --session over, acked-------> Active    Request of the next session               (R2.3)
//! Active   --not acked for a while-----> Active    the same Request again
//! Active   --session over, not acked---> Active    Ask to the group; ignore the accused      (R3, R4.1)
//! Active   --Answer, majority----------> Active    the accused is condemned                  (R4.4)
//! Active   --no majority by T_a--------> Out       Leave, Concede; or Joining again          (R6)
//! Active   --T_arb after Ask-----------> Active    bury, tell everybody, mend leases         (R4.6, R9, R10)
//! Active   --neighbourhood changed-----> Active    Invite, CloseAsk, Propose                 (R7, R8.10, R10)
//! Active   --Leave---------------------> Leaving   Leave to the neighbours
//! Leaving  --all heard it, or T_l------> Out
//!
//! any      --Request, not ignored------> any       Ack                                       (R2.4)
//! any      --Ask-----------------------> any       Answer: first come, first served          (R5)
//! any      --Propose, CloseAsk---------> any       Proposed, CloseAnswer
//! any      --Concede-------------------> any       Answer to the one it concedes to          (R12)
//! ```
//!
//! Promise, while no clock drifts by more than configured: never do both of a pair win (S1), and nobody is buried
//! that is still active (S2). Up to `k` crashes at once cost nobody else its place (S4).
//!
//! Departure: groups travel as lists of lives, in requests and upgrades alike; the paper's requests carry a version
//! only. All views are complete (R9), so the lower end of a pair works out both neighbourhoods by itself.
//!
//! Departure: a pair is opened like a join without locks (R10.2), founders included. Who has confirmed and hears
//! nothing must not forget the lease, since the other may count on it: it closes it by arbitration, or leaves.
//!
//! Departure: everybody as arbitrator (R15) is a chain of groups for each pair, each committed by a majority of the
//! one before it, and needs no leader to put views in order.
//!
//! Departure: the word of a lease that is ignored (R2.4, Nack) is not sent; nothing rests on it.
//!
//! Departure: a request that is not acknowledged is repeated within its session, by rule `HB-6` of `docs/rules/half-broken.md`.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Effect, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     membership::ring::{Body, Config, Ring},
//! };
//!
//! let peers = [1, 2, 3].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
//! let mut node = Ring::new(peers[0], Config::hardened(), Seed::new(1), &peers, &[]);
//! let mut out = Outbox::new();
//! node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! assert_eq!(node.members().count(), 3);
//! let (at, _why) = node.deadline().unwrap();
//! node.handle(at, Input::Timeout, &mut out).unwrap();
//! let mut sent = std::iter::from_fn(|| out.pop()).filter_map(|effect| match effect {
//!     Effect::Send { message, .. } => Some(message.body),
//!     _ => None,
//! });
//! assert!(sent.any(|body| matches!(body, Body::Request(_))), "it must ask for a lease");
//! ```

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use core::convert::Infallible;

use self::{
    arbiter::{Central, Pair, Seat},
    join::Joining,
    lease::Lease,
    verdict::Case,
    view::View,
};
pub use self::{
    config::{
        Arbiters, Config, ConfigError, Decide, Departure, Far, Fresh, MOST_DRIFT, MOST_NEIGHBOURS,
        Pace, Phase, Tie, Upgrade, Votes,
    },
    geometry::{Points, Space},
    lease::Standing,
    message::{Body, Group, Life, Message, Reason, Session, Stage, Version, Vote},
    view::{Fact, Kind},
};
use crate::{
    id::{Incarnation, NodeId, Peer},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    rng::{Rng, Seed},
    time::{Duration, Time},
};

pub mod arbiter;
mod config;
pub mod geometry;
mod join;
mod lease;
mod message;
mod repair;
#[cfg(test)]
mod tests;
mod upgrade;
mod verdict;
mod view;

/// What the host knows of others.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Feed {
    /// A node that may know the ring: whom to ask when joining.
    Found(NodeId),
}

/// What the application should be told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RingEvent {
    /// We are a member, after so many attempts to join.
    Activated {
        /// Attempts, the successful one included; 0 for a founder.
        attempts: u32,
        /// From the first question to now.
        took: Duration,
    },
    /// A node is a member now.
    Joined(Life),
    /// Our lease on a member has run out.
    Suspected(Life),
    /// We may stay, and it may not.
    Condemned(Life),
    /// Its time is over: it is no member any more.
    Buried {
        /// The life that is meant.
        life: Life,
        /// Whether we waited for it ourselves, or were told.
        own: bool,
    },
    /// A member has said goodbye.
    Left {
        /// The life that is meant.
        life: Life,
        /// Whether it had lost an arbitration.
        forced: bool,
    },
    /// We had to leave.
    Departed {
        /// On whose account, if on anybody's.
        over: Option<NodeId>,
    },
    /// The group of a lease has changed.
    Upgraded {
        /// The other end.
        peer: NodeId,
        /// To this version.
        version: Version,
    },
    /// A lease was closed by arbitration, or dropped because it had been.
    Closed(NodeId),
}

/// Why it wants to be woken.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When an arbitration must be decided.
    Verdict,
    /// When a condemned member may be buried.
    Burial,
    /// When a session is over, or a lease opens.
    Session,
    /// When a request is said again.
    Again,
    /// When a proposal, or a request to close, has had its time, or is made again.
    Proposal,
    /// When a phase of a join is over.
    Join,
    /// When to tell everybody what nobody else has told.
    Emit,
    /// When goodbye has been said long enough.
    Bye,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Role {
    /// Not started yet.
    Idle,
    /// Outside the ring, arbitrating.
    Arbiter,
    Joining(Joining),
    Active,
    Leaving {
        until: Time,
        waiting: Vec<NodeId>,
    },
    /// Gone, by its own wish or by a lost arbitration.
    Out,
}

/// One member of the ring.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ring {
    me: Peer,
    inc: Incarnation,
    witness: bool,
    config: Config,
    rng: Rng,
    role: Role,
    up_since: Time,
    founder: bool,
    contacts: Vec<NodeId>,
    view: View,
    /// By identity of the other end.
    leases: Vec<Lease>,
    /// The number of the last session of any lease.
    numbered: u64,
    cases: Vec<Case>,
    seats: BTreeMap<Pair, Seat>,
    central: Central,
    /// For whom our neighbourhood is to stay as it is, and until when.
    lock: Option<(Life, Time)>,
    /// A joiner whose second acknowledgement is held back until these have heard of it (R8.11).
    telling: Option<(Life, u64, Vec<NodeId>)>,
    /// News passed on lately, and by whom it was begun.
    passed: VecDeque<(Fact, NodeId)>,
    /// News to tell unless somebody else does first.
    emits: Vec<(Time, Fact)>,
    /// Whether leases or groups may not fit the view any more.
    dirty: bool,
    /// When they last might not.
    changed: Time,
}

impl Ring {
    /// A node that has not started yet. If it is among the `founders` in this very life, it begins as a member with
    /// them; otherwise it joins by whoever of `contacts` answers.
    pub fn new(
        me: Peer,
        config: Config,
        seed: Seed,
        founders: &[Peer],
        contacts: &[NodeId],
    ) -> Self {
        let mut view = View::new(config.space);
        let founder = founders.contains(&me);
        if founder {
            let life = |peer| Life { peer, inc: Incarnation::default() };
            for &peer in founders.iter().filter(|peer| !config.is_external(peer.id)) {
                view.learn(Fact::member(life(peer)));
            }
        }
        let contacts = contacts.iter().copied().filter(|&id| id != me.id).collect();
        Self {
            me,
            inc: Incarnation::default(),
            witness: false,
            config,
            rng: seed.rng(),
            role: Role::Idle,
            up_since: Time::ZERO,
            founder,
            contacts,
            view,
            leases: Vec::new(),
            numbered: 0,
            cases: Vec::new(),
            seats: BTreeMap::new(),
            central: Central::default(),
            lock: None,
            telling: None,
            passed: VecDeque::new(),
            emits: Vec::new(),
            dirty: false,
            changed: Time::ZERO,
        }
    }

    /// The same, with these founders voting but never leading.
    pub fn with_witnesses(mut self, witnesses: &[NodeId]) -> Self {
        self.witness = witnesses.contains(&self.me.id);
        let facts: Vec<Fact> = self.members_by_fact().collect();
        self.view = View::new(self.config.space);
        for fact in facts {
            let witness = witnesses.contains(&fact.life.id());
            self.view.learn(Fact { witness, ..fact });
        }
        self
    }

    /// The same, founded by these lives, ours among them, whatever the ones before them came to: for hosts by which all
    /// of them have agreed that they are in no ring.
    pub fn with_founders(mut self, founders: &[Fact]) -> Self {
        self.view = View::new(self.config.space);
        for &fact in founders {
            self.view.learn(fact);
        }
        if let Some(ours) = self.view.fact(self.me.id).filter(|fact| fact.life.peer == self.me) {
            (self.founder, self.inc, self.witness) = (true, ours.life.inc, ours.witness);
        }
        self
    }

    /// The same, in this incarnation: larger than any in which this life has been in a ring.
    pub const fn with_incarnation(mut self, inc: Incarnation) -> Self {
        self.inc = inc;
        self
    }

    /// Who we are, in which life.
    pub const fn life(&self) -> Life {
        Life { peer: self.me, inc: self.inc }
    }

    /// What it was built with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Whether we are a member, and not about to go.
    pub const fn is_active(&self) -> bool {
        matches!(self.role, Role::Active)
    }

    /// Whether we have left, and do not come back by ourselves.
    pub const fn is_out(&self) -> bool {
        matches!(self.role, Role::Out)
    }

    /// Every member, ourselves included, in the order of the ring.
    pub fn members(&self) -> impl Iterator<Item = Life> + '_ {
        self.members_by_fact().map(|fact| fact.life)
    }

    /// The same, and who of them never leads.
    pub fn members_by_fact(&self) -> impl Iterator<Item = Fact> + '_ {
        self.view.ring().iter().filter_map(|&id| self.view.fact(id))
    }

    /// Whether this life is a member as far as we know.
    pub fn lists(&self, life: Life) -> bool {
        self.view.lists(life)
    }

    /// Whether this life is over as far as we know.
    pub fn is_gone(&self, life: Life) -> bool {
        self.view.is_gone(life)
    }

    /// Whether this life was condemned, and its time is over, as far as we know.
    pub fn is_buried(&self, life: Life) -> bool {
        let fact = self.view.fact(life.id()).filter(|fact| fact.life == life);
        fact.is_some_and(|fact| fact.kind == Kind::Buried)
    }

    /// Our neighbourhood by our view.
    pub fn neighbours(&self) -> Vec<Life> {
        self.view.neighbours(self.me.id, self.config.k)
    }

    /// The neighbourhood of any member by our view.
    pub fn neighbours_of(&self, id: NodeId) -> Vec<Life> {
        self.view.neighbours(id, self.config.k)
    }

    /// The lease on a neighbour, if there is one.
    pub fn lease(&self, id: NodeId) -> Option<Standing> {
        self.lease_of(id).map(|lease| lease.standing(self.config.session))
    }

    /// All leases, by identity of the other end.
    pub fn leases(&self) -> impl ExactSizeIterator<Item = Standing> + '_ {
        self.leases.iter().map(|lease| lease.standing(self.config.session))
    }

    /// Those we suspect, since when, and whether they are condemned.
    pub fn suspects(&self) -> impl Iterator<Item = (Life, Time, bool)> + '_ {
        self.cases.iter().map(|case| (case.accused, case.asked, case.won))
    }

    /// Whether the other end of a lease may hold us to it, and has not answered: closed, or left.
    pub fn is_uncertain(&self) -> bool {
        self.leases.iter().any(Lease::must_close)
    }

    /// Until when, on our clock, we may count ourselves a member whatever others make of us: whoever could bury us has
    /// a lease of ours that lasts as long, and waits until it is over. `None` while somebody may have stopped waiting.
    pub fn held_until(&self) -> Option<Time> {
        let contested = self.cases.iter().any(|case| !case.won);
        if !self.is_active() || contested || self.is_uncertain() {
            return None;
        }
        // One that we have confirmed counts from then on, acknowledged or not: the other may hold us to it.
        let held = self.leases.iter().filter(|lease| lease.state != lease::State::Dormant);
        match held.map(|lease| lease.standing(self.config.session).until).min() {
            Some(until) => Some(until),
            // Alone there is nobody to be bound by.
            None => (self.view.len() == 1).then_some(Time::NEVER),
        }
    }

    /// Of all facts known, to tell whether there were new ones.
    pub const fn digest(&self) -> u64 {
        self.view.digest()
    }

    /// The group of a neighbour's lease.
    pub fn group(&self, id: NodeId) -> Option<&Group> {
        self.lease_of(id).map(Lease::group)
    }

    /// Whether every lease is with the group that it should be with by our view.
    pub fn is_upgraded(&self, id: NodeId) -> bool {
        self.lease_of(id).is_some_and(|lease| lease.group().members == self.members_for(lease.peer))
    }

    /// Since when we suspect a member, and whether it is condemned.
    pub fn suspected(&self, id: NodeId) -> Option<(Time, bool)> {
        let case = self.cases.iter().find(|case| case.accused.id() == id)?;
        Some((case.asked, case.won))
    }

    /// Whether every neighbour knows what we know, as far as they have told.
    pub fn is_synced(&self) -> bool {
        self.leases.iter().all(|lease| lease.is_synced(self.view.digest()))
    }

    /// When our neighbourhood last changed, or might have: leases with those new in it take two sessions from then.
    pub const fn changed(&self) -> Time {
        self.changed
    }

    /// Whom our neighbourhood is locked for at `now`.
    pub fn locked_for(&self, now: Time) -> Option<Life> {
        self.lock.filter(|&(_, until)| now < until).map(|(holder, _)| holder)
    }

    fn lease_of(&self, id: NodeId) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.peer.id() == id)
    }

    fn lease_mut(&mut self, life: Life) -> Option<&mut Lease> {
        self.leases.iter_mut().find(|lease| lease.peer == life)
    }

    /// Whose requests are dropped (R2.5): those of who is suspected, or over.
    fn ignores(&self, life: Life) -> bool {
        self.cases.iter().any(|case| case.accused == life) || self.view.is_gone(life)
    }

    fn say(&self, out: &mut OutboxOf<Self>, to: NodeId, body: Body) {
        out.send(to, Message { inc: self.inc, body });
    }

    fn start(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if self.role != Role::Idle {
            return Err(Rejected::StartedTwice);
        }
        self.up_since = now;
        self.changed = now;
        if self.config.is_external(self.me.id) {
            self.role = Role::Arbiter;
        } else if self.founder {
            self.role = Role::Active;
            out.emit(RingEvent::Activated { attempts: 0, took: Duration::ZERO });
            self.found(now);
        } else {
            self.begin_join(now, out);
        }
        Ok(())
    }

    fn on_message(
        &mut self,
        now: Time,
        from: Peer,
        message: &Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if from.id == self.me.id {
            return Err(Rejected::Loopback { from });
        }
        let by = Life { peer: from, inc: message.inc };
        match &message.body {
            Body::Request(session) => return self.on_request(now, by, session, out),
            Body::Ack(session) => return self.on_ack(now, by, session, out),
            Body::Ask { accused, group } => self.on_ask(now, by, *accused, group, out),
            Body::Answer { accused, vote, newer } => {
                return self.on_answer(now, by, (*accused, *vote, newer), out);
            }
            Body::Concede { accused, born } => self.on_concede(now, by, *accused, *born, out),
            Body::Propose { peer, base, next } => {
                self.on_propose(now, by, *peer, (base, next), out);
            }
            Body::Proposed { peer, version, granted } => {
                return self.on_proposed(now, by, (*peer, *version, *granted), out);
            }
            Body::Retract { peer, version } => {
                let (pair, _) = arbiter::pair(by, *peer);
                if let Some(seat) = self.seats.get_mut(&pair) {
                    seat.retract(*version);
                }
                let ours = *peer == self.life();
                if let Some(lease) = self.lease_mut(by).filter(|_| ours) {
                    let other = |group: &Group| group.version != *version;
                    lease.consented = lease.consented.take().filter(other);
                }
            }
            Body::Upgraded { group, neighbours } => self.on_upgraded(by, group, neighbours, out),
            Body::CloseAsk { peer, born } => self.on_close_ask(now, by, *peer, *born, out),
            Body::CloseAnswer { peer, born, granted } => {
                return self.on_close_answer(now, by, (*peer, *born, *granted), out);
            }
            Body::Closed { born } => self.on_closed(by, *born, out),
            Body::Find => self.on_find(now, by, out),
            Body::Redirect { owner } => self.on_redirect(now, from, *owner, out)?,
            Body::Neighbours { list } => return self.on_neighbours(now, by, list, out),
            Body::Busy => return self.on_busy(now, from, out),
            Body::Lock => self.on_lock(now, by, out),
            Body::LockAnswer { granted } => return self.on_lock_answer(now, by, *granted, out),
            Body::Unlock => self.lock = self.lock.filter(|&(holder, _)| holder != by),
            Body::Spread { facts, emitter, end } => {
                self.on_spread(now, facts, (*emitter, *end), out);
            }
            Body::Tell { fact } => {
                self.learn(now, *fact, out);
                self.say(out, by.id(), Body::Told { fact: *fact });
            }
            Body::Told { fact } => self.on_told(by, *fact, out),
            Body::Leave { forced } => self.on_leave(now, by, *forced, out),
            Body::LeaveAck => {
                if let Role::Leaving { waiting, .. } = &mut self.role {
                    waiting.retain(|&id| id != from.id);
                }
            }
        }
        Ok(())
    }

    fn fire(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match timer {
            Timer::Verdict => self.on_verdict_timer(now, out),
            Timer::Burial => self.on_burial_timer(now, out),
            Timer::Session => self.on_session_timer(now, out),
            Timer::Again => self.on_again_timer(now, out),
            Timer::Proposal => self.on_proposal_timer(now, out),
            Timer::Join => self.on_join_timer(now, out),
            Timer::Emit => self.on_emit_timer(now, out),
            Timer::Bye => self.become_out(),
        }
    }

    /// Stops for good: nothing is sent, held or answered any more.
    fn become_out(&mut self) {
        self.role = Role::Out;
        self.leases.clear();
        self.cases.clear();
        self.seats.clear();
        self.emits.clear();
        self.lock = None;
        self.telling = None;
        self.dirty = false;
    }
}

impl Machine for Ring {
    type Message = Message;
    type Timer = Timer;
    type Feed = Feed;
    type Command = Infallible;
    type Durable = Infallible;
    type Event = RingEvent;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if matches!(input, Input::Start) {
            self.start(now, out)?;
            self.settle(now, out);
            return Ok(());
        }
        if matches!(self.role, Role::Idle | Role::Out) {
            return Err(Rejected::NotRunning);
        }
        match input {
            Input::Start => unreachable!("handled above"),
            Input::Message { from, via: _, message } => self.on_message(now, from, message, out)?,
            Input::Timeout => {
                while let Some((_, timer)) = self.deadline().filter(|&(at, _)| at <= now) {
                    self.fire(now, timer, out);
                    self.settle(now, out);
                }
            }
            Input::Feed(Feed::Found(id)) => {
                if id != self.me.id && !self.contacts.contains(&id) {
                    self.contacts.push(id);
                }
            }
            Input::Command(never) => match never {},
            Input::Leave => self.leave(now, out),
        }
        self.settle(now, out);
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        let mut first = (Time::NEVER, Timer::Bye);
        let mut at = |time: Time, timer| {
            if (time, timer) < first {
                first = (time, timer);
            }
        };
        match &self.role {
            Role::Idle | Role::Out => return None,
            Role::Leaving { until, waiting } => {
                at(if waiting.is_empty() { Time::ZERO } else { *until }, Timer::Bye);
            }
            Role::Joining(joining) => at(joining.until, Timer::Join),
            Role::Arbiter | Role::Active => {}
        }
        for case in &self.cases {
            at(case.due(&self.config), Timer::Verdict);
            at(case.burial(&self.config), Timer::Burial);
        }
        for lease in &self.leases {
            at(lease.due, Timer::Session);
            at(lease.again, Timer::Again);
            at(lease.proposal_due(), Timer::Proposal);
        }
        for &(time, _) in &self.emits {
            at(time, Timer::Emit);
        }
        (first.0 != Time::NEVER).then_some(first)
    }
}
