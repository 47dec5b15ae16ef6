//! The leased leader: at most one at any instant, while clocks drift by no more than configured.
//!
//! Source: rule `R11` of `docs/rules/arbitrated.md`, on [`ring`]. The owner of a key leads
//! while its leases last; whoever follows it waits until they have run out. Authority is a function of time: an answer
//! that names this node carries the instant up to which it may act.
//!
//! ```text
//! Follower --ours to lead, nobody leads----> Asking    Claim to the witnesses, or Lead to the neighbours   (R11.2)
//! Asking   --Grant of a majority, or all---> Office    acts after the wait                                 (R11.5)
//! Asking   --a larger epoch, or time up----> Follower
//! Office   --the wait is over--------------> Office    Lead to everybody
//! Asking   --in vain-----------------------> Follower  quorum: Forgo to the witnesses
//! Office   --leases run out----------------> Office    answers with nobody until they are renewed          (R11.4)
//! Office   --a larger epoch----------------> Follower
//! Office   --neighbourhood changed---------> Office    quorum: Install, old and new witnesses together     (R11.9)
//! Office   --Resign, Transfer, a better one> Ceding    Lead to the neighbours                              (R11.6)
//! Ceding   --LeadAck of all----------------> Follower  Take to the heir
//! any      --Claim-------------------------> any       Grant, if the leader we back is lost to us; or Refuse
//! any      --Forgo-------------------------> any       whom we backed will not lead, and is lost to us
//! any      --Lead--------------------------> any       LeadAck
//! any      --Install-----------------------> any       Installed
//! ```
//!
//! Promise: no two nodes may act at one instant (S3), and the epochs of successive leaders grow. The argument and what
//! it assumes are written out in `docs/protocols/arbitrated.md`.
//!
//! Departure: the register and the witnesses ride on lease messages as a [`Stamp`] around them, so that the ring knows
//! nothing of leaders.
//!
//! Departure: by quorum, members may be worth more or less to whoever hosts them ([`Command::Weigh`]); then those worth
//! clearly less than the best come behind the others. That is about who claims and when. What is granted, and how long
//! a leader waits before it acts, knows nothing of it, so that two never lead though members differ about each other's
//! worth.
//!
//! Departure: a joiner that owns the key is handed the office when it is a member, not in the acknowledgement that makes
//! it one; the incumbent stops before it says so, either way.
//!
//! Departure: by quorum a successor's wait counts from when its witnesses last backed anybody, not from when they promised
//! themselves to it (R11.11).
//!
//! Departure: where R11.9 has a witness promise after it has *itself* timed out, it also may once it has not
//! acknowledged the leader for two sessions, since a witness need not be a neighbour for ever.

use alloc::{collections::BTreeMap, vec::Vec};

pub use self::{
    config::{Config, Flavour, Preference},
    message::{Body, Electorate, Message, Register, Stamp},
};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Effect, Input, InputOf, Machine, Outbox, OutboxOf, Rejected},
    membership::ring::{self, Feed, Life, Ring, RingEvent},
    time::{Duration, Time},
};

mod config;
mod message;
mod office;
mod quorum;
#[cfg(test)]
mod tests;

/// What the application may ask for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Command {
    /// Stop leading, in favour of the neighbour that comes next.
    Resign,
    /// Stop leading, in favour of this neighbour.
    Transfer(NodeId),
    /// By quorum: from now on take this member to be worth so much; larger is better. Whoever was not weighed is worth
    /// nothing.
    Weigh(NodeId, u32),
}

/// What the application should be told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// Of the membership below.
    Ring(RingEvent),
    /// This node leads from now on.
    Elected {
        /// Under this epoch.
        epoch: Epoch,
    },
    /// We lead no more.
    Deposed {
        /// The epoch that is over.
        epoch: Epoch,
    },
}

/// Why it wants to be woken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// For the membership below.
    Ring(ring::Timer),
    /// For the leadership.
    Office,
}

/// Our own claim.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Bid {
    None,
    Asking(Asking),
    Office(Office),
    Ceding { register: Register, waiting: Vec<NodeId>, again: Time },
}

/// A claim that is not won yet.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Asking {
    epoch: Epoch,
    since: Time,
    /// Of the last round of questions, and when it was sent.
    round: u32,
    sent: Time,
    granted: BTreeMap<NodeId, Granted>,
    again: Time,
    /// Whether we lead because another wanted us to.
    chosen: bool,
}

/// What somebody's promise is worth to whom it was made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Granted {
    /// When it was asked.
    asked: Time,
    /// Whether nobody that has not stopped can count on it.
    free: bool,
    /// When all is over that anybody before us may do because it counted on it.
    over: Time,
}

/// A claim that is won.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Office {
    epoch: Epoch,
    /// When we may act.
    from: Time,
    /// Whether everybody was told.
    told: bool,
    /// Quorum: when the last exchange began by which each witness backs us.
    support: BTreeMap<NodeId, Time>,
    /// Quorum: the witnesses that have the present electorate, and whether enough do.
    installed: Vec<NodeId>,
    committed: bool,
    round: u32,
    sent: Time,
    again: Time,
    chosen: bool,
}

/// A member that elects.
#[derive(Clone, Debug)]
pub struct Leased {
    me: Peer,
    config: Config,
    ring: Ring,
    below: OutboxOf<Ring>,
    /// Of the last input.
    now: Time,
    register: Option<Register>,
    /// The largest epoch ever known, across restarts: no answer goes back behind it.
    floor: Option<Epoch>,
    /// The largest epoch handed out to be kept, promised or known.
    kept: Option<Epoch>,
    /// The largest counter heard of, elected or not: the next claim exceeds it.
    seen: u64,
    bid: Bid,
    /// Whom we have promised ourselves to, and by which epoch somebody can count on us.
    promised: Option<Epoch>,
    /// The same, if whoever it was has said that it will not lead.
    forgone: Option<Epoch>,
    /// The same, if whoever it was backs another by now.
    deserted: Option<Epoch>,
    /// Whether, as we did, nobody that had not stopped could count on us.
    free: bool,
    backed: Option<Epoch>,
    backed_at: Time,
    /// When anybody could last begin to count on us, ourselves included; at the latest when this life began, since nobody
    /// knows what an earlier one said. And the same just before our last promise.
    counted: Time,
    counted_before: Time,
    electorate: Option<Electorate>,
    /// The epoch that was handed over to us.
    taken: Option<Epoch>,
    /// Since when nobody leads as far as we know.
    lacking: Option<Time>,
    /// What members are worth.
    worths: BTreeMap<NodeId, u32>,
    alarm: Time,
}

impl Leased {
    /// A node that has not started yet. `durable` is the largest epoch its past lives knew, or
    /// promised themselves to. The founders' first
    /// electorate is the neighbourhood of whoever of them owns the key.
    pub fn new(ring: Ring, config: Config, durable: Option<Epoch>) -> Self {
        let me = ring.life();
        let mut node = Self {
            me: me.peer,
            config,
            below: Outbox::new(),
            now: Time::ZERO,
            register: None,
            floor: durable,
            kept: durable,
            seen: durable.map_or(0, Epoch::counter),
            bid: Bid::None,
            // No claim below what past lives knew is granted.
            promised: durable,
            forgone: None,
            deserted: None,
            free: true,
            backed: None,
            backed_at: Time::ZERO,
            counted: Time::ZERO,
            counted_before: Time::ZERO,
            electorate: None,
            taken: None,
            lacking: Some(Time::ZERO),
            worths: BTreeMap::new(),
            alarm: Time::NEVER,
            ring,
        };
        if config.flavour == Flavour::Quorum
            && let Some(owner) = node.candidates().min_by_key(|life| node.closeness(*life))
        {
            let mut old = node.ring.neighbours_of(owner.id());
            old.push(owner);
            old.sort_unstable();
            node.electorate = Some(Electorate { mark: (None, 0), old, new: Vec::new() });
        }
        node
    }

    /// The membership below.
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The latest register known.
    pub const fn register(&self) -> Option<&Register> {
        self.register.as_ref()
    }

    /// The latest electorate known.
    pub const fn electorate(&self) -> Option<&Electorate> {
        self.electorate.as_ref()
    }

    /// By quorum: whether so many of those that must back a leader have left this ring that the rest elect nobody. Only a
    /// leader could replace them (R11.9), so this is for good.
    pub fn is_barren(&self) -> bool {
        let electorate = self.electorate.as_ref();
        electorate.is_some_and(|electorate| !electorate.is_won(|life| self.ring.lists(life)))
    }

    /// The epoch we may act under at the last input's instant, and until when.
    pub fn authority(&self) -> Option<(Epoch, Time)> {
        let Bid::Office(office) = &self.bid else { return None };
        let until = match self.config.flavour {
            Flavour::Quorum => self.backed_until(office),
            Flavour::Conservative | Flavour::Fast => self.leased_until(),
        };
        let until = until.filter(|&until| self.now >= office.from && self.now < until)?;
        Some((office.epoch, until))
    }

    /// Those that may lead, in the order of the ring.
    fn candidates(&self) -> impl Iterator<Item = Life> + '_ {
        self.ring.members_by_fact().filter(|fact| !fact.witness).map(|fact| fact.life)
    }

    fn closeness(&self, life: Life) -> impl Ord + use<> {
        self.ring.config().space().closeness(life.id(), self.config.key)
    }

    fn worth(&self, life: Life) -> u32 {
        self.worths.get(&life.id()).copied().unwrap_or_default()
    }

    /// What the best of the living is worth.
    fn best(&self) -> u32 {
        let living = self.candidates().filter(|life| self.ring.suspected(life.id()).is_none());
        living.map(|life| self.worth(life)).max().unwrap_or_default()
    }

    /// In which order they should lead: those worth clearly less than the best are behind, and in either half the key
    /// decides. Members seldom differ about who is in which.
    fn order(&self, life: Life, best: u32) -> impl Ord + use<> {
        (self.worth(life).saturating_add(self.config.margin) < best, self.closeness(life))
    }

    fn stamp(&self) -> Stamp {
        Stamp { register: self.register, backs: self.promised, electorate: self.electorate.clone() }
    }

    fn say(&self, out: &mut OutboxOf<Self>, to: NodeId, body: Body) {
        out.send(to, Message { stamp: Some(self.stamp()), body });
    }

    /// Takes in what another knows.
    fn absorb(&mut self, from: Peer, stamp: &Stamp, out: &mut OutboxOf<Self>) {
        if let Some(register) = stamp.register {
            self.learn(register, out);
        }
        self.seen = self.seen.max(stamp.backs.map_or(0, Epoch::counter));
        // Whoever leads backs itself. If whom we promised ourselves to backs a later one, it leads no more and never will
        // under that epoch; that it has a lease with us must not hold us for ever.
        if self.promised.is_some_and(|ours| ours.minter() == from && stamp.backs > Some(ours)) {
            self.deserted = self.promised;
        }
        if let Some(electorate) = &stamp.electorate
            && self.config.flavour == Flavour::Quorum
            && self.electorate.as_ref().is_none_or(|ours| electorate.mark > ours.mark)
        {
            self.electorate = Some(electorate.clone());
        }
        // Somebody has promised itself to a later one: we must exceed it to lead again.
        if let (Some(backs), Bid::Office(Office { epoch, .. })) = (stamp.backs, &self.bid)
            && backs > *epoch
        {
            let epoch = *epoch;
            self.bid = Bid::None;
            out.emit(Event::Deposed { epoch });
        }
    }

    fn learn(&mut self, register: Register, out: &mut OutboxOf<Self>) {
        if self.register.as_ref().is_some_and(|ours| !register.is_later(ours)) {
            return;
        }
        self.register = Some(register);
        self.seen = self.seen.max(register.epoch.counter());
        self.floor = self.floor.max(Some(register.epoch));
        self.keep(register.epoch, out);
        let ours = match &self.bid {
            Bid::Asking(asking) => Some(asking.epoch),
            Bid::Office(office) => Some(office.epoch),
            _ => None,
        };
        if let Some(epoch) = ours.filter(|&ours| ours < register.epoch) {
            match core::mem::replace(&mut self.bid, Bid::None) {
                Bid::Office(_) => out.emit(Event::Deposed { epoch }),
                _ => self.forgo(epoch, out),
            }
        }
    }

    fn keep(&mut self, epoch: Epoch, out: &mut OutboxOf<Self>) {
        if self.kept < Some(epoch) {
            self.kept = Some(epoch);
            out.persist(epoch);
        }
    }

    /// Hands on what the ring wants done, stamped where leases are concerned.
    fn drain(&mut self, out: &mut OutboxOf<Self>) {
        while let Some(effect) = self.below.pop() {
            match effect {
                Effect::Send { to, message } => {
                    let stamped = matches!(
                        message.body,
                        ring::Body::Request(_)
                            | ring::Body::Ack(_)
                            | ring::Body::Answer { .. }
                            | ring::Body::Spread { .. }
                    );
                    let mut stamp = stamped.then(|| self.stamp());
                    if matches!(message.body, ring::Body::Ack(_))
                        && self.promised.is_some_and(|epoch| epoch.minter().id == to)
                    {
                        if self.is_deaf_to_us(to) {
                            stamp = stamp.map(|stamp| Stamp { backs: None, ..stamp });
                        } else {
                            // Whatever we make of it, this is what the other may count on.
                            self.counted = self.now;
                            if self.deserted != self.promised {
                                self.backed = self.backed.max(self.promised);
                                self.backed_at = self.now;
                            }
                        }
                    }
                    out.send(to, Message { stamp, body: Body::Ring(message) });
                }
                Effect::Emit(event) => {
                    if matches!(event, RingEvent::Departed { .. }) {
                        self.resign_silently(out);
                    }
                    out.emit(Event::Ring(event));
                }
                Effect::Broadcast(_) | Effect::Multicast(_) => {
                    unreachable!("the ring talks to one at a time")
                }
                Effect::Persist(never) => match never {},
            }
        }
    }

    /// Who has left the ring leads nothing, and whatever it promised it promised in another life.
    fn resign_silently(&mut self, out: &mut OutboxOf<Self>) {
        if let Bid::Office(office) = &self.bid {
            out.emit(Event::Deposed { epoch: office.epoch });
        }
        self.bid = Bid::None;
        self.promised = None;
        self.taken = None;
    }

    fn on_message(
        &mut self,
        now: Time,
        from: Peer,
        via: NodeId,
        message: &Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match &message.body {
            Body::Ring(body) => {
                let acked = |ring: &Ring| ring.lease(from.id).and_then(|lease| lease.acked);
                let before = acked(&self.ring);
                let input = Input::Message { from, via, message: body };
                self.ring.handle(now, input, &mut self.below)?;
                if let Some(stamp) = &message.stamp {
                    self.absorb(from, stamp, out);
                    let after = acked(&self.ring).filter(|_| acked(&self.ring) != before);
                    if let (Bid::Office(office), Some(after)) = (&mut self.bid, after)
                        && stamp.backs == Some(office.epoch)
                    {
                        office.support.insert(from.id, after);
                    }
                }
                self.drain(out);
                return Ok(());
            }
            _ if from.id == self.me.id => return Err(Rejected::Loopback { from }),
            _ if self.ring.is_out() => return Err(Rejected::NotRunning),
            _ => {}
        }
        if let Some(stamp) = &message.stamp {
            self.absorb(from, stamp, out);
        }
        match message.body {
            Body::Ring(_) => unreachable!("handled above"),
            Body::Claim { epoch, life, after, round } => {
                self.on_claim(now, from, (epoch, life, after, round), message, out);
            }
            Body::Grant { epoch, free, since, round } => {
                self.on_grant(now, from, (epoch, free, since, round));
            }
            Body::Refuse { epoch } => self.on_refuse(now, epoch, message),
            Body::Lead => self.on_lead(from, message, out),
            Body::LeadAck { epoch, handed } => self.on_lead_ack(now, from, epoch, handed),
            Body::Take { epoch } => self.on_take(epoch),
            Body::Forgo { epoch } => {
                if self.promised.is_some_and(|ours| ours.minter() == from && ours <= epoch) {
                    self.forgone = self.promised;
                }
            }
            Body::Install => {
                let sent = message.stamp.as_ref().and_then(|stamp| stamp.electorate.as_ref());
                // Who has promised itself to a later leader helps no earlier one to change anything.
                if let (Some(ours), Some(sent)) = (&self.electorate, sent)
                    && ours.mark == sent.mark
                    && sent.mark.0 >= self.promised
                    && ours.members().contains(&self.ring.life())
                {
                    self.say(out, from.id, Body::Installed { mark: ours.mark });
                }
            }
            Body::Installed { mark } => self.on_installed(from, mark),
        }
        Ok(())
    }

    /// After every input: what our own claim asks for now.
    fn step(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.ring.is_active() {
            self.alarm = Time::NEVER;
            return;
        }
        let leads = self.register.is_some_and(|register| {
            let life = register.effective();
            life.peer != self.me
                && self.ring.lists(life)
                && self.ring.suspected(life.id()).is_none()
        });
        if leads || self.authority().is_some() {
            self.lacking = None;
        } else {
            self.lacking = self.lacking.or(Some(now));
        }
        if self.bid == Bid::None && self.may_stand(now) {
            self.stand(now, out);
        }
        match core::mem::replace(&mut self.bid, Bid::None) {
            Bid::None => {}
            Bid::Asking(asking) => self.ask(now, asking, out),
            Bid::Office(office) => {
                self.bid = Bid::Office(office);
                self.serve(now, out);
            }
            Bid::Ceding { register, waiting, again } => {
                self.cede(now, (register, waiting, again), out);
            }
        }
        self.alarm = self.next(now);
    }

    /// When to look again.
    fn next(&self, now: Time) -> Time {
        let later = |at: Time| if at > now { at } else { Time::NEVER };
        match &self.bid {
            Bid::None => match (self.lacking, self.rank()) {
                (Some(since), Some(rank)) => later(since + self.patience(rank)),
                _ => Time::NEVER,
            },
            Bid::Asking(asking) => later(asking.again),
            Bid::Office(office) => {
                let until = self.authority().map_or(Time::NEVER, |(_, until)| until);
                later(office.from).min(later(office.again)).min(later(until))
            }
            Bid::Ceding { again, .. } => later(*again),
        }
    }

    /// How long the one of this rank waits for those before it. Arbitrary beyond the first: longer than a fail-over.
    fn patience(&self, rank: u64) -> Duration {
        self.ring.config().session() * (6 * rank)
    }

    fn session(&self) -> Duration {
        self.ring.config().session()
    }

    /// How long leases of somebody else, and what it has begun, last at most from now, on our clock.
    fn lease_wait(&self) -> Duration {
        let wait = self.session() * 2 + self.config.aftermath.unwrap_or(Duration::ZERO);
        if self.config.waits { self.ring.config().waiting(wait) } else { Duration::ZERO }
    }

    /// The same, of one that has stopped.
    fn stopped_wait(&self) -> Duration {
        self.config.aftermath.map_or(Duration::ZERO, |_| self.lease_wait())
    }

    /// Whether somebody that leases from us has let us wait for so long that it may not hear us: `HB-12` of
    /// `docs/rules/half-broken.md`.
    fn is_deaf_to_us(&self, id: NodeId) -> bool {
        let asked = self.ring.lease(id).and_then(|lease| lease.asked);
        asked.is_some_and(|asked| self.now.since(asked) >= self.session().div(8) * 5)
    }
}

impl Machine for Leased {
    type Message = Message;
    type Timer = Timer;
    type Feed = Feed;
    type Command = Command;
    type Durable = Epoch;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        self.now = now;
        if matches!(self.bid, Bid::Office(_)) {
            // Whoever leads counts on itself up to the instant at which it stops.
            self.counted = now;
        }
        match input {
            Input::Start => {
                self.ring.handle(now, Input::Start, &mut self.below)?;
                self.lacking = Some(now);
                self.counted = now;
            }
            Input::Message { from, via, message } => {
                self.on_message(now, from, via, message, out)?;
            }
            Input::Timeout => self.ring.handle(now, Input::Timeout, &mut self.below)?,
            Input::Feed(feed) => self.ring.handle(now, Input::Feed(feed), &mut self.below)?,
            Input::Command(command) => {
                if self.ring.is_out() {
                    return Err(Rejected::NotRunning);
                }
                self.drain(out);
                self.on_command(now, command, out);
            }
            Input::Leave => {
                self.leave_office(now, out);
                self.ring.handle(now, Input::Leave, &mut self.below)?;
            }
        }
        self.drain(out);
        self.step(now, out);
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        let below = self.ring.deadline().map(|(at, timer)| (at, Timer::Ring(timer)));
        let office = (self.alarm != Time::NEVER).then_some((self.alarm, Timer::Office));
        below.into_iter().chain(office).min_by_key(|(at, _)| *at)
    }
}

impl Election for Leased {
    fn leadership(&self) -> Leadership {
        let mode = Mode::Leased;
        if let Some((epoch, until)) = self.authority() {
            return Leadership {
                leader: Some(self.me.id),
                epoch: Some(epoch),
                mode,
                settled: true,
                valid_until: Some(until),
                why: match &self.bid {
                    Bid::Office(office) => Why::Unchallenged { since: office.from },
                    _ => unreachable!("authority is of an office"),
                },
            };
        }
        let since = self.lacking.unwrap_or(self.now);
        let nobody = Leadership::unknown(mode, Why::Electing { since });
        if !self.ring.is_active() {
            return Leadership::unknown(mode, Why::NotRunning);
        }
        let Some(register) = self.register.filter(|register| {
            register.heir.is_none() && register.holder.peer != self.me && self.lacking.is_none()
        }) else {
            return nobody;
        };
        if Some(register.epoch) < self.floor {
            return nobody;
        }
        Leadership {
            leader: Some(register.holder.id()),
            epoch: Some(register.epoch),
            mode,
            settled: true,
            valid_until: None,
            why: Why::Announced { heard: self.now },
        }
    }
}
