//! Leader election over weakly consistent membership: Base, Optimistic, Preferred and Hybrid.
//!
//! Source: thesis of 2023, §2.3, §2.5 and chapter 5. Rules `B1` to `B7`, `MI1` to `MI7`, `NP1` to `NP5`,
//! `DC1` to `DC4` and `RP1` to `RP6`, errata `C-n` and properties `G1` to `G8` are those of
//! `docs/rules/churn-tolerant.md`. An *initiator* asks `c + f + 1` nodes for the lowest key on their lists,
//! waits for `c + 1` answers and notifies the lowest of all, which tells everybody. If no live node is
//! missing from more than `c` lists, one of these answers names the live node of lowest key (Theorem 1).
//! The four protocols are one machine and two policies: *when* to notify ([`Notify`]) and *whether* the
//! unhealthy are passed over ([`Health`]).
//!
//! ```text
//! Idle       --Start-------------------> Running     arm Initiate at the grace time
//! no round   --Elect, Initiate fires---> Collecting  Query to c + f + 1; arm Response        (B1)
//! Collecting --Response----------------> Collecting  Streaming: NotifyLeader if it changes who leads
//! Collecting --Response, the c + 1st---> Awaiting    NotifyLeader; arm Leader            (B2, B4)
//! Collecting --Response fires----------> Collecting  Query to others, or to the silent again (B3)
//! Awaiting   --Leader, confirmed-------> no round
//! Awaiting   --Leader fires------------> Collecting  as published: from the start            (B7)
//! Awaiting   --Leader fires, 3 times---> Awaiting    NotifyLeader again, oftener if much is lost (NP3)
//! Awaiting   --Leader fires, 4th time--> Collecting  it is dead: Query to the same again     (DC3)
//! any round  --word of a better one----> no round    arm Initiate and Inquire                (MI2, MI4)
//! no round   --Inquire fires-----------> no round    LeaderAck to whoever may know more      (MI6)
//! any round  --LeaderAck of the past---> any round   Query, or Leader: still at it, or done  (MI6)
//!
//! any        --Query-------------------> any         Response; Leader, if there is one already
//! any        --NotifyLeader------------> Leading     Leader to everybody                     (B5)
//! any        --Leader, newer token-----> Following   pass it on; Object if we are better     (B6, RP1)
//! Leading    --Object------------------> Leading     arm HandOver                            (RP2)
//! Leading    --HandOver fires----------> Awaiting    NotifyLeader to the best that objected
//! Following  --leader failed or left---> no leader   arm Initiate (as published: at once)
//! Leading    --Resend fires------------> Leading     Leader to those that have not acknowledged
//! Following  --Object fires------------> Following   Object again
//! any        --Refresh fires-----------> any         Leader to somebody
//! any        --Leave-------------------> Idle
//! ```
//!
//! Promise: at most one leader to a token; at one node tokens never go back; and once nobody crashes,
//! joins or is cut off, all agree on one live leader. In Base and Optimistic it is the one of lowest key,
//! even where `c` was too small, unless that one joined after the election. As published none of this
//! holds beyond Theorem 1: see C-4, C-11, C-12, C-13 and C-24.
//!
//! # Tokens
//!
//! A fencing token is the [`Epoch`] (term, minter, sequence). The minter is the initiator, or a leader that
//! hands over; it alone numbers the tokens of its term and gives each to one node, so no two leaders share
//! one, whatever is lost or late. A minter takes a larger term than it ever heard of. LEADER is accepted in
//! the order of epochs and nothing else, so no late or racing one wins, and what a resource compares is what
//! nodes compare.
//!
//! Departure: MI2 gives way to the *lower* initiator of a term. Epochs of one counter are ordered by the
//! larger minter, and LEADER must be ordered as epochs are (RP5); so the larger initiator goes first.
//!
//! Departure: RP2 continues the initiator's sequence. A slow initiator may still number its own (DC3), and
//! two nodes would lead under one token; the leader takes a new term instead, and is its minter.
//!
//! Departure: a hand-over is a round with one answer, that names those who objected and the leader
//! itself. RP3 then is DC3.
//!
//! Departure: DC4 forgets the dead with the term. With several initiators terms are short, and each would
//! find out anew; who hears of the dead remembers them until a leader is confirmed. For the same reason
//! RESUME is six timeouts, not four: giving up on one takes four.
//!
//! Departure: RESUME is no fixed time. Where a round trip is lost more often than not, a living initiator takes longer
//! than any wait that is short elsewhere, and whoever took over would make it longer still (it was so: 46 of 49 nodes
//! initiated, and Hybrid never ended). Who waits asks (MI6), and takes over from the silent alone.
//!
//! Departure: DC3 looks at the same answers again and repeats only some questions. All are repeated, so that
//! those asked learn who is dead and that the initiator is still at it.
//!
//! Departure: RP3 ignores for the term whoever did not answer a hand-over. Whoever still objects after
//! sixteen timeouts lives, and is tried again.
//!
//! Departure: a suppressed initiator (MI2) forgets its round instead of collecting on.
//!
//! Departure: the confirmation of a streamed leader is told like LEADER itself, not carried by the
//! membership's gossip, which is not ours to use. CHURN rides on LEADER, whose token is its version (RP4).
//!
//! Departure: who leads and is not on our list is asked now and then, and given up after
//! [eight](Multicast::Gossip) silent refreshes: no membership would ever report it failed.
//!
//! Departure: whoever hears of a term within half the grace time of its start counts as having joined
//! after it (RP6); nothing tells it when the term began.
//!
//! # Any membership
//!
//! The machine stands on a [`Feed`] and on nothing else:
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Duration, Effect, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     election::churn_tolerant::{
//!         ChurnTolerant, Command, Config, Criterion, Feed, Form, Member, Message, Variant,
//!     },
//! };
//!
//! let config = Config::new(Variant::Base, Form::Hardened)
//!     .with_bounds(1, 0)
//!     .and_then(|config| config.with_criterion(Criterion::Identity, 0))
//!     .unwrap();
//! // Three nodes; what a registry, a file or a gossip says of them is told to each.
//! let peers = [0, 1, 2].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
//! let mut nodes = peers.map(|me| ChurnTolerant::new(me, config, Seed::new(me.id.get()), None));
//! let mut out = Outbox::new();
//! for node in &mut nodes {
//!     node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//!     for peer in peers {
//!         node.handle(Time::ZERO, Input::Feed(Feed::Up(Member::new(peer))), &mut out).unwrap();
//!     }
//! }
//! // A network without delay.
//! nodes[2].handle(Time::ZERO, Input::Command(Command::Elect), &mut out).unwrap();
//! let mut queue = std::collections::VecDeque::from([2]);
//! let mut letters = std::collections::VecDeque::new();
//! while let Some(from) = queue.pop_front() {
//!     while let Some(effect) = out.pop() {
//!         if let Effect::Send { to, message } = effect {
//!             letters.push_back((from, to.get() as usize, message));
//!         }
//!     }
//!     let Some((sender, to, message)) = letters.pop_front() else { break };
//!     let from: Peer = peers[sender];
//!     let input = Input::Message { from, via: from.id, message: &message };
//!     nodes[to].handle(Time::ZERO, input, &mut out).unwrap();
//!     queue.push_back(to);
//! }
//! for node in &nodes {
//!     let answer = node.leadership();
//!     assert_eq!((answer.leader, answer.settled), (Some(peers[0].id), true));
//!     assert_eq!(answer.epoch.unwrap().to_string(), "1.2.1.0", "minted by the initiator");
//! }
//! ```

use alloc::{sync::Arc, vec::Vec};

pub use self::{
    config::{
        Config, ConfigError, Criterion, Decision, ExcludeRule, Form, Health, Multicast, Notify,
        Variant,
    },
    message::{Candidate, Claim, Life, Message, Query, Response},
    view::{Feed, Member},
};
use self::{
    leading::{Notice, Tenure},
    pace::Pace,
    round::Round,
    view::View,
};
use crate::{
    epoch::Epoch,
    id::{Incarnation, NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    mechanism::timers::{Timers, timer_kinds},
    rng::{Rng, Seed},
    time::{Duration, Time},
};

mod choice;
mod config;
mod leading;
mod message;
mod pace;
mod repair;
mod round;
#[cfg(test)]
mod tests;
mod view;
mod waiting;

/// What the application may ask for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Command {
    /// Elect, whether or not there is a leader.
    Elect,
    /// Stop leading, in favour of the best of the others; if none of them answers, lead on. Hardened only.
    Resign,
    /// Stop leading, in favour of this one; if it does not answer, lead on. Hardened only.
    Transfer(NodeId),
    /// Stop leading at once: this node has not been running for a while, and somebody else may lead by now. A few others
    /// are asked whom they follow; if none of them knows anybody newer, that is found out by an election. Hardened only.
    Void,
    /// Stop leading at once, and forget whom this node has vouched for since this token: the disk has not kept it, and
    /// nobody was told. Hardened only.
    Unsay(Option<Epoch>),
}

/// What must survive a restart, or an observer could be told an older token than before.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Durable {
    /// The election of highest priority known when this was written.
    pub known: Option<Epoch>,
    /// The token last accepted.
    pub vouched: Option<Epoch>,
}

/// What the application should be told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// Another node was started under our identity after us. This one has stopped.
    DuplicateIdentity {
        /// The newer life.
        other: Peer,
    },
    /// An election was decided on fewer answers than `c + 1`, since the list holds no more: it may not
    /// have found the lowest key (C-21).
    Narrow {
        /// Answers it was decided on.
        answers: usize,
        /// Answers that would have been safe.
        needed: usize,
    },
    /// An election of ours is decided; what its answers say about `c` (F1). Base and Optimistic only.
    Decided {
        /// Who will lead.
        leader: NodeId,
        /// How many answers named another.
        missing: u32,
        /// How many there were.
        answers: u32,
    },
    /// We lead, and a better node says it was missed: `c` was too small (RP4).
    Objected {
        /// The better node.
        by: NodeId,
        /// `c` from now on.
        churn: u16,
    },
}

/// The deadlines this machine keeps; declaration order breaks ties at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When to ask others for an answer, or, polled, to count answers.
    Response,
    /// When to doubt that the one notified lives.
    Leader,
    /// When to hand over to the best of those that objected.
    HandOver,
    /// When to object again.
    Object,
    /// When to repeat LEADER to those that have not acknowledged it.
    Resend,
    /// When to tell somebody who leads.
    Refresh,
    /// When to ask after an election of somebody else.
    Inquire,
    /// When to start an election, unless there is a leader by then.
    Initiate,
}

timer_kinds!(Timer: Response, Leader, HandOver, Object, Resend, Refresh, Inquire, Initiate);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    /// Not started yet, or done.
    Idle {
        started: bool,
    },
    Running,
}

/// The leader last accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Record {
    claim: Claim,
    /// When it was accepted.
    since: Time,
    /// When the leader itself last told us.
    heard: Time,
    /// Since when it no longer leads as far as we know: it failed, left or, being us, hands over.
    gone: Option<Time>,
}

/// One node of a churn-tolerant election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChurnTolerant {
    me: Peer,
    config: Config,
    rng: Rng,
    timers: Timers<Timer, 8>,
    role: Role,
    started: Time,
    view: View,
    /// As the host told it; empty unless somebody needs it.
    group: Arc<[NodeId]>,
    /// The election of highest priority heard of: larger counter, then larger minter.
    known: Option<Epoch>,
    /// When we heard of it.
    heard_of: Time,
    /// The token last accepted. Outlives the record, so that no answer ever goes back.
    vouched: Option<Epoch>,
    record: Option<Record>,
    round: Option<Round>,
    /// Whom not to elect until there is a confirmed leader (DC1 to DC4).
    dead: Vec<Life>,
    /// While we lead.
    tenure: Option<Tenure>,
    /// `c` as configured, or as the membership told it last.
    bound: u16,
    /// `c`: that or as LEADER told it, whichever is larger.
    churn: u16,
    /// Terms up to this one began before we were a member, as far as we know (RP6).
    abstains: u64,
    /// Objections sent to the present leader.
    objections: u32,
    /// How long answers take here, and how many are lost.
    pace: Pace,
    /// Who was last told who leads, by turns.
    refreshed: Option<NodeId>,
}

impl ChurnTolerant {
    /// A node that has not started yet. `durable` is what its past life persisted last.
    pub fn new(me: Peer, config: Config, seed: Seed, durable: Option<Durable>) -> Self {
        Self {
            me,
            config,
            rng: seed.rng(),
            timers: Timers::new(),
            role: Role::Idle { started: false },
            started: Time::ZERO,
            view: View::new(me),
            group: Arc::from([]),
            known: durable.and_then(|durable| durable.known),
            heard_of: Time::ZERO,
            vouched: durable.and_then(|durable| durable.vouched),
            record: None,
            round: None,
            dead: Vec::new(),
            tenure: None,
            bound: config.churn,
            churn: config.churn,
            abstains: 0,
            objections: 0,
            pace: Pace::default(),
            refreshed: None,
        }
    }

    /// Begins with this list, ourselves on it, and in this group: what as many feeds would say, shared by all
    /// nodes that know the same. Both ascend; a list that lacks us is not taken.
    pub fn knowing(mut self, list: Arc<Vec<Member>>, group: Arc<[NodeId]>) -> Self {
        let taken = self.view.replace(list);
        debug_assert!(taken, "the list of somebody else");
        debug_assert!(group.is_sorted(), "a group out of order");
        self.group = group;
        self
    }

    /// What it was built with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// `c` as it stands; repair may have raised it.
    pub const fn churn(&self) -> u16 {
        self.churn
    }

    /// How many are listed, ourselves included.
    pub fn listed(&self) -> usize {
        self.view.len()
    }

    /// Those that would lead if we failed, the best first; if fewer may, others of lowest key after them.
    pub fn heirs(&self, most: usize) -> impl Iterator<Item = NodeId> + '_ {
        self.view.others_ranked(self.config.criterion()).into_iter().take(most)
    }

    /// Whether we are asking around.
    pub const fn initiates(&self) -> bool {
        self.round.is_some()
    }

    /// The election we ask around for, and which attempt at it this is, from 0.
    pub fn attempt(&self) -> Option<(Epoch, u32)> {
        self.round.as_ref().map(Round::attempt)
    }

    /// The leader we believe in, if it is not known to be gone.
    fn standing(&self) -> Option<&Record> {
        self.record.as_ref().filter(|record| record.gone.is_none())
    }

    /// Since when this node claims to lead and the round that would confirm it goes on, if so: others may still be better.
    pub fn tentative(&self) -> Option<Time> {
        let record = self.standing().filter(|record| record.claim.leader.peer == self.me)?;
        (self.config.hardened() && !record.claim.confirmed).then_some(record.since)
    }

    fn leads(&self) -> bool {
        self.standing().is_some_and(|record| record.claim.leader.peer == self.me)
    }

    fn persist(&self, out: &mut OutboxOf<Self>) {
        out.persist(Durable { known: self.known, vouched: self.vouched });
    }

    /// The first token of a new term of ours, durable before anyone hears of it. `None` after the last
    /// term there is.
    fn mint(&mut self, out: &mut OutboxOf<Self>) -> Option<Epoch> {
        if !self.config.hardened() {
            return Some(Epoch::mint(0, self.me));
        }
        let last = self.known.map_or(0, Epoch::counter);
        let last = last.max(self.vouched.map_or(0, Epoch::counter));
        let election = Epoch::mint(last.checked_add(1)?, self.me);
        self.known = Some(election);
        self.persist(out);
        Some(election)
    }
}

impl ChurnTolerant {
    fn on_start(&mut self, now: Time) -> Result<(), Rejected> {
        if self.role != (Role::Idle { started: false }) {
            return Err(Rejected::StartedTwice);
        }
        self.role = Role::Running;
        self.started = now;
        if let Some(grace) = self.config.grace {
            match self.config.form {
                Form::AsPublished => self.timers.set(Timer::Initiate, now + grace),
                Form::Hardened => self.await_others(now, grace),
            }
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
        if self.role != Role::Running {
            return Err(Rejected::NotRunning);
        }
        if from.id == self.me.id {
            return self.on_namesake(from, out);
        }
        if self.config.hardened() {
            self.check_term(from, message)?;
        }
        match message {
            Message::Query(query) => self.on_query(now, from, query, out),
            Message::Response(response) => return self.on_response(now, from, response, out),
            &Message::NotifyLeader { epoch, confirmed, appointed, churn } => {
                self.on_notify(now, from, Notice { epoch, confirmed, appointed, churn }, out);
            }
            Message::Leader(claim) => self.on_leader(now, from, claim, out),
            &Message::LeaderAck { epoch, confirmed } => {
                self.on_ack(now, from.id, epoch, confirmed, out);
            }
            &Message::Object { epoch, incarnation, attribute } => {
                let objector = Candidate { peer: from, incarnation, attribute };
                self.on_object(now, epoch, objector, out);
            }
        }
        Ok(())
    }

    /// A message under our own identity.
    fn on_namesake(&mut self, from: Peer, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if from.boot <= self.me.boot || !self.config.hardened() {
            return Err(Rejected::Loopback { from });
        }
        out.emit(Event::DuplicateIdentity { other: from });
        self.become_idle();
        Ok(())
    }

    /// No history explains a term near the end of all terms. Who knows of none takes the first it hears.
    fn check_term(&self, from: Peer, message: &Message) -> Result<(), Rejected> {
        let found = match message {
            Message::Query(query) => query.term,
            Message::Response(response) => response.heard.map_or(0, Epoch::counter),
            Message::NotifyLeader { epoch, .. }
            | Message::LeaderAck { epoch, .. }
            | Message::Object { epoch, .. } => epoch.counter(),
            Message::Leader(claim) => claim.epoch.counter(),
        };
        let Some(known) = self.known else { return Ok(()) };
        let limit = Epoch::believable(known.counter());
        if found > limit {
            return Err(Rejected::ImplausibleEpoch { from, found, limit });
        }
        Ok(())
    }

    fn on_feed(&mut self, now: Time, feed: Feed, out: &mut OutboxOf<Self>) {
        match feed {
            Feed::Up(member) => self.on_up(now, member, out),
            Feed::Suspected { id, unhealthiness } => self.view.suspected(id, unhealthiness),
            Feed::Failed { peer, incarnation } => {
                self.on_gone(now, Life { peer, incarnation }, out);
            }
            Feed::Left(peer) => {
                let incarnation = Incarnation::new(u32::MAX);
                self.on_gone(now, Life { peer, incarnation }, out);
            }
            Feed::Churn(churn) => {
                self.bound = churn.min(config::MAX_TOLERATED);
                self.churn = self.bound;
            }
            Feed::Group(mut group) => {
                group.sort_unstable();
                group.dedup();
                self.group = group.into();
            }
        }
    }

    fn on_up(&mut self, now: Time, member: Member, out: &mut OutboxOf<Self>) {
        let before = (self.view.me().attribute, self.view.observes());
        let stood = self.view.get(member.peer.id).is_some_and(|known| !known.observer);
        let change = self.view.put(member);
        if self.role != Role::Running || !self.config.hardened() {
            return;
        }
        if member.peer.id == self.me.id {
            if before != (self.view.me().attribute, self.view.observes()) {
                self.reconsider(now, out);
            }
            return;
        }
        if self.leads() && self.view.observes() {
            // It led on for want of another.
            self.resign(now, None, out);
        } else if change == view::Change::New && self.leads() {
            self.tell(member.peer.id, out);
        }
        let Some(record) = &mut self.record else { return };
        let leader = record.claim.leader.peer;
        if leader.id != member.peer.id || change == view::Change::Stale {
            return;
        }
        if leader.boot < member.peer.boot {
            self.lose_leader(now, out);
        } else if stood && member.observer && self.view.candidates().next().is_some() {
            // It may be unable to hand over itself: its disk keeps nothing, and so it says nothing.
            self.lose_leader(now, out);
        } else if leader.boot == member.peer.boot && record.gone.take().is_some() {
            // It was not dead after all. If an election runs by now, its outcome will be newer.
            if self.round.is_none() && self.known <= Some(election_of(record.claim.epoch)) {
                self.timers.clear(Timer::Initiate);
            }
            self.arm_refresh(now);
        }
    }

    fn on_gone(&mut self, now: Time, life: Life, out: &mut OutboxOf<Self>) {
        if !self.view.bury(life) || self.role != Role::Running {
            return;
        }
        if self.record.is_some_and(|record| life.buries(record.claim.leader.life()))
            || self.record.is_some_and(|record| record.claim.leader.peer == life.peer)
        {
            self.lose_leader(now, out);
        }
        if self.config.hardened() {
            self.give_up_on(now, life, out);
        }
    }

    /// The leader is no more. As published everybody who notices initiates at once, and goes on naming
    /// it until there is another.
    fn lose_leader(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.config.hardened() {
            self.initiate(now, out);
            return;
        }
        let Some(record) = self.record.as_mut().filter(|record| record.gone.is_none()) else {
            return;
        };
        record.gone = Some(now);
        self.timers.clear(Timer::Object);
        self.timers.clear(Timer::Refresh);
        if self.round.is_none() && self.timers.deadline(Timer::Initiate).is_none() {
            self.initiate_later(now, Duration::ZERO);
        }
    }

    /// Follows nobody from now on, ourselves least of all.
    fn give_up(&mut self, now: Time) {
        // A round of ours may be about the very claim we give up.
        self.end_round();
        if let Some(record) = &mut self.record {
            record.gone.get_or_insert(now);
        }
        for timer in [Timer::Object, Timer::HandOver, Timer::Resend, Timer::Refresh] {
            self.timers.clear(timer);
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match timer {
            Timer::Response => self.on_no_response(now, out),
            Timer::Leader => self.on_no_leader(now, out),
            Timer::HandOver => self.hand_over(now, out),
            Timer::Object => self.object(now, out),
            Timer::Resend => self.resend(now, out),
            Timer::Refresh => self.refresh(now, out),
            Timer::Inquire => self.inquire(now, out),
            Timer::Initiate => {
                // A leader nobody has confirmed by now was left alone by its initiator.
                let hardened = self.config.hardened();
                if self.standing().is_none_or(|record| hardened && !record.claim.confirmed) {
                    self.initiate(now, out);
                }
            }
        }
    }

    fn become_idle(&mut self) {
        self.role = Role::Idle { started: true };
        self.round = None;
        self.tenure = None;
        self.timers.clear_all();
    }
}

impl Machine for ChurnTolerant {
    type Message = Message;
    type Timer = Timer;
    type Feed = Feed;
    type Command = Command;
    type Durable = Durable;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => self.on_start(now),
            Input::Message { from, via: _, message } => self.on_message(now, from, message, out),
            Input::Timeout => {
                while let Some(timer) = self.timers.take_due(now) {
                    self.on_timer(now, timer, out);
                }
                Ok(())
            }
            Input::Feed(feed) => {
                self.on_feed(now, feed, out);
                Ok(())
            }
            Input::Command(command) => {
                if self.role != Role::Running {
                    return Err(Rejected::NotRunning);
                }
                match command {
                    Command::Elect => self.initiate(now, out),
                    Command::Resign => self.resign(now, None, out),
                    Command::Transfer(to) => self.resign(now, Some(to), out),
                    Command::Void
                        if self.config.hardened() && (self.leads() || self.hands_over()) =>
                    {
                        // Who knows better than what we believed tells us. An election would depose a successor that
                        // does well: there is one only if none of them does.
                        self.pass_on(ASKED, out);
                        self.give_up(now);
                        self.initiate_later(now, self.config.timeout * RESUME);
                    }
                    Command::Void if self.config.hardened() => {
                        // What it asked for meanwhile, nobody was asked. Who has no leader to tell of asks who leads.
                        self.end_round();
                        if self.standing().is_none_or(|record| !record.claim.confirmed) {
                            self.initiate_later(now, self.config.timeout * RESUME);
                            self.inquire(now, out);
                        }
                    }
                    Command::Void => {}
                    Command::Unsay(kept) if self.config.hardened() => {
                        if self.leads() || self.hands_over() || self.vouched != kept {
                            let follows = self.standing().is_some() && !self.leads();
                            self.give_up(now);
                            if follows {
                                // Another leads all the same. It is heard of anew, and vouched for anew.
                                self.record = None;
                            }
                            self.initiate_later(now, self.config.timeout * RESUME);
                        }
                        self.vouched = self.vouched.min(kept);
                    }
                    Command::Unsay(_) => {}
                }
                Ok(())
            }
            Input::Leave => {
                self.become_idle();
                Ok(())
            }
        }
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        self.timers.next()
    }
}

impl Election for ChurnTolerant {
    fn leadership(&self) -> Leadership {
        let unknown = |why| Leadership::unknown(Mode::Eventual, why);
        if self.role != Role::Running {
            return unknown(Why::NotRunning);
        }
        let Some(record) = &self.record else {
            return unknown(Why::Electing { since: self.started });
        };
        if let Some(since) = record.gone {
            return unknown(Why::Electing { since });
        }
        let leader = record.claim.leader.peer;
        let why = match leader == self.me {
            true => Why::Unchallenged { since: record.since },
            false => Why::Announced { heard: record.heard },
        };
        let doubts = [Timer::Initiate, Timer::Object, Timer::HandOver];
        let doubted = self.config.hardened()
            && (!record.claim.confirmed
                || doubts.iter().any(|&timer| self.timers.deadline(timer).is_some()));
        Leadership {
            leader: Some(leader.id),
            epoch: self.config.hardened().then_some(record.claim.epoch),
            settled: self.round.is_none() && !doubted,
            ..unknown(why)
        }
    }
}

/// The election a token belongs to.
const fn election_of(epoch: Epoch) -> Epoch {
    Epoch::mint(epoch.counter(), epoch.minter())
}

/// How many timeouts to leave an election to somebody else (RESUME).
const RESUME: u64 = 6;
/// How many others are asked whom they follow.
const ASKED: usize = 3;
