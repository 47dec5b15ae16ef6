//! Keys owned by the members of a ring: at most one owner of a key at any instant, while clocks drift by no more than
//! configured.
//!
//! Source: rules `K1` to `K9` of `docs/rules/arbitrated.md`, on [`ring`]. Any string is a key; its hash names one of a
//! fixed number of slots, and slots are what is owned. Each slot has an owner and a few keepers, who know who the owner
//! is. The *desired* owner follows from the list of members. The *effective* owner is who may act now: all keepers that
//! live have promised themselves to it, what its predecessor told is over, and its leases on the ring last. The ring's
//! promise that nobody is buried alive does the rest: to follow an owner that is gone takes no vote.
//!
//! ```text
//! Keeper   --the owner is gone-------------> Claimant Keep, step 0, to all on the list that live          (K4)
//! Keeper   --Cede--------------------------> Claimant the same
//! Claimant --a larger epoch----------------> Keeper   Kept                                                (K4)
//! Claimant --Refuse------------------------> Claimant the same under a larger epoch, after a while
//! Claimant --Kept of all that live, waited-> Owner    Keep, trusted, to all on the list                   (K5)
//! Owner    --the list of members changed---> Owner    Keep with new keepers; trusted; without old ones    (K3)
//! Owner    --another is the desired owner--> Owner    answers with no later instant than the last told    (K6)
//! Owner    --that instant has come---------> Ceding   Cede to the desired owner
//! Ceding   --its claim---------------------> Keeper   Kept
//! Ceding   --it is gone--------------------> Claimant Keep, step 0
//! any      --Keep, later-------------------> Keeper   Kept; if we are not on its list, we forget the slot
//! any      --lost its place on the ring----> any      knows of no slot any more                           (K8)
//! any      --lacks a slot that is its own--> any      Seek to all members, twice                          (K9)
//! any      --Seek, knows the same members--> any      Sought: which of them it keeps; drops what it may not claim
//! any      --Sought of all members---------> Claimant with nobody to ask
//! ```
//!
//! Promise: no two lives may act for one slot at one instant, and every later owner's epoch is larger (K7). What it
//! rests on, and why, is in `docs/rules/arbitrated.md`.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     keys::{Config, Keys, Slot},
//!     membership::ring::{self, Ring},
//! };
//!
//! let peers = [1, 2, 3].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
//! let config = Config::new();
//! let ring = Ring::new(peers[0], ring::Config::hardened(), Seed::new(1), &peers, &[]);
//! let mut node = Keys::new(ring, config, None);
//! node.handle(Time::ZERO, Input::Start, &mut Outbox::new()).unwrap();
//! let slot = Slot::of("printers/3", &config);
//! assert!(node.desired(slot).is_some(), "the list of members says whose it should be");
//! assert_eq!(node.authority(slot), None, "but nobody has promised anything yet");
//! ```

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

pub use self::{
    config::{Config, ConfigError, MOST_KEEPERS, MOST_SLOTS},
    message::{Body, Deed, Mark, Message, What},
    place::Slot,
    survey::Seek,
};
use self::{message::SLOTS_A_MESSAGE, owner::Office, survey::Survey};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    machine::{Effect, Input, InputOf, Machine, Outbox, OutboxOf, Rejected},
    membership::ring::{self, Feed, Life, Ring, RingEvent},
    time::{Duration, Time},
};

mod config;
mod keeper;
mod message;
mod owner;
mod place;
mod survey;
#[cfg(test)]
mod tests;

/// What the application should be told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// Of the membership below.
    Ring(RingEvent),
    /// This node owns a slot from now on, and may act whenever its leases last.
    Gained {
        /// Which slot it is.
        slot: Slot,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// This node owns a slot no more.
    Lost {
        /// Which slot it is.
        slot: Slot,
        /// The epoch that is over for us.
        epoch: Epoch,
    },
}

/// Why it wants to be woken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// For the membership below.
    Ring(ring::Timer),
    /// For claims, keepers that have not answered, and what is handed over.
    Slots,
}

/// What a keeper, or the owner, knows of a slot.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Record {
    /// Under which epoch it is owned or claimed; `None` at the beginning of a ring.
    epoch: Option<Epoch>,
    step: u32,
    owner: Option<Life>,
    /// Owner and keepers.
    list: Vec<Life>,
    /// Whether we may succeed: all others on the list know us (K3).
    trusted: bool,
    /// Whether the owner is known to have begun to act.
    begun: bool,
}

/// All that is known of one slot.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Entry {
    /// The latest announcement ever heard of, kept when the record is not: none before it counts any more.
    known: Option<(Epoch, u32)>,
    record: Option<Record>,
    /// What we do as its owner, or to become that.
    office: Option<Office>,
    /// Since when its owner is gone as far as we know.
    vacant: Option<Time>,
    /// When to look at it again.
    due: Option<Time>,
}

/// A member that owns keys.
#[derive(Clone, Debug)]
pub struct Keys {
    config: Config,
    ring: Ring,
    below: OutboxOf<Ring>,
    /// Of the last input.
    now: Time,
    /// In which life on the ring we know what we know.
    life: Life,
    slots: BTreeMap<Slot, Entry>,
    /// Slots that something has happened to in this input.
    touched: BTreeSet<Slot>,
    /// The list of members that all slots were last looked at with.
    digest: u64,
    /// The latest instant up to which anybody was ever told that we may act.
    told: Time,
    /// The largest counter of an epoch heard of.
    seen: u64,
    /// What earlier lives knew of it: no claim up to it is promised anything at the beginning of a ring.
    base: u64,
    /// The largest counter handed out to be kept.
    kept: u64,
    /// The counter minted in this input.
    minted: Option<u64>,
    /// What is to be said at the end of this input.
    post: BTreeMap<Life, Post>,
    /// Until when we hand over before we leave.
    leaving: Option<Time>,
    /// Members that are about to leave.
    leavers: BTreeSet<Life>,
    /// When the list of members last changed, and when to look for slots that nobody owns.
    changed: Time,
    audit: Option<Time>,
    survey: Option<Survey>,
    alarm: Time,
}

/// What is said to one life after one input.
#[derive(Clone, Debug, Default)]
struct Post {
    keep: Vec<Deed>,
    kept: Vec<Mark>,
    refuse: Vec<(Slot, Option<Epoch>)>,
    cede: Vec<(Slot, Epoch)>,
}

impl Keys {
    /// A node that has not started yet. `durable` is the largest counter of an epoch its past lives knew. Founders of the
    /// ring keep the slots that come to them first by the list of founders.
    pub fn new(ring: Ring, config: Config, durable: Option<u64>) -> Self {
        let life = ring.life();
        let base = durable.unwrap_or_default();
        let mut node = Self {
            config,
            below: Outbox::new(),
            now: Time::ZERO,
            life,
            slots: BTreeMap::new(),
            touched: BTreeSet::new(),
            digest: 0,
            told: Time::ZERO,
            seen: base,
            base,
            kept: base,
            minted: None,
            post: BTreeMap::new(),
            leaving: None,
            leavers: BTreeSet::new(),
            changed: Time::ZERO,
            audit: None,
            survey: None,
            alarm: Time::NEVER,
            ring,
        };
        if node.ring.lists(life) {
            node.found();
        }
        node
    }

    /// The beginning of a ring: nobody owns anything, and all founders agree about who keeps what (K2).
    fn found(&mut self) {
        for number in 0..self.config.slots() {
            let slot = Slot::new(number);
            let list = slot.first(self.owners(), self.config.keepers() + 1);
            if list.contains(&self.life) {
                let record =
                    Record { epoch: None, step: 0, owner: None, list, trusted: true, begun: false };
                self.slots.insert(slot, Entry { record: Some(record), ..Entry::default() });
            }
        }
    }

    /// The membership below.
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// What it was built with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The owner that a slot should have by our list of members (K1).
    pub fn desired(&self, slot: Slot) -> Option<Life> {
        slot.first(self.owners(), 1).first().copied()
    }

    /// The owner that a slot has as far as we know, if we keep it, and its epoch. It may act or not.
    pub fn known(&self, slot: Slot) -> Option<(Life, Epoch)> {
        let record = self.slots.get(&slot)?.record.as_ref()?;
        Some((record.owner?, record.epoch?))
    }

    /// Under which epoch, and up to when on our clock, we may act for a slot as of the last input (K5). Act only before
    /// that instant, compared when acting.
    pub fn authority(&self, slot: Slot) -> Option<(Epoch, Time)> {
        let until = self.until()?;
        self.slots.get(&slot)?.authority(self.now, until)
    }

    /// All slots that we may act for, in order, as [`authority`](Self::authority) has them.
    pub fn owned(&self) -> impl Iterator<Item = (Slot, Epoch, Time)> + '_ {
        let until = self.until();
        self.slots.iter().filter_map(move |(&slot, entry)| {
            let (epoch, until) = entry.authority(self.now, until?)?;
            Some((slot, epoch, until))
        })
    }

    /// Whether no slot that we own or keep is being claimed, handed over or given other keepers.
    pub fn is_settled(&self) -> bool {
        self.slots.values().all(|entry| {
            entry.vacant.is_none() && entry.office.as_ref().is_none_or(Office::is_settled)
        })
    }

    /// Members that may own keys.
    fn owners(&self) -> impl Iterator<Item = Life> + '_ {
        self.ring.members_by_fact().filter(|fact| !fact.witness).map(|fact| fact.life)
    }

    /// Up to when we may act for anything. Two sessions at most, so that who follows knows how long to wait.
    fn until(&self) -> Option<Time> {
        let until = self.ring.held_until()?.min(self.now + self.session() * 2);
        (until > self.now).then_some(until)
    }

    fn session(&self) -> Duration {
        self.ring.config().session()
    }

    /// How long what another has told lasts at most from when it has stopped, on our clock.
    fn wait(&self) -> Duration {
        if self.config.waits {
            self.ring.config().waiting(self.session() * 2)
        } else {
            Duration::ZERO
        }
    }

    /// How long an answer is waited for before something is said again.
    fn retry(&self) -> Duration {
        self.session().div(4)
    }

    /// An epoch larger than any heard of; one for all slots that are claimed at once.
    fn mint(&mut self, out: &mut OutboxOf<Self>) -> Epoch {
        let counter = *self.minted.get_or_insert(self.seen.saturating_add(1));
        self.keep(counter, out);
        Epoch::mint(counter, self.life.peer)
    }

    /// Nothing is claimed or promised before the disk is asked to keep it.
    fn keep(&mut self, counter: u64, out: &mut OutboxOf<Self>) {
        self.seen = self.seen.max(counter);
        if self.kept < counter {
            self.kept = counter;
            out.persist(counter);
        }
    }

    fn on_message(
        &mut self,
        now: Time,
        from: Peer,
        via: NodeId,
        message: &Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let limit = Epoch::believable(self.seen);
        if message.seen > limit {
            return Err(Rejected::ImplausibleEpoch { from, found: message.seen, limit });
        }
        match &message.body {
            Body::Ring(message) => {
                let input = Input::Message { from, via, message };
                self.ring.handle(now, input, &mut self.below)?;
            }
            Body::Keys { .. } if from.id == self.life.id() => {
                return Err(Rejected::Loopback { from });
            }
            Body::Keys { by, to, what } => {
                let by = Life { peer: from, inc: *by };
                if *to != self.life.age() || !self.ring.is_active() || self.ring.is_gone(by) {
                    return Err(Rejected::Unsolicited { from });
                }
                self.seen = self.seen.max(message.seen);
                self.on_keys(now, by, what, out);
            }
        }
        self.seen = self.seen.max(message.seen);
        Ok(())
    }

    fn on_keys(&mut self, now: Time, by: Life, what: &What, out: &mut OutboxOf<Self>) {
        let (slots, seen) = (self.config.slots(), self.seen);
        match what {
            What::Keep(deeds) => {
                // Whoever speaks of an epoch has seen it.
                let sound = |deed: &&Deed| {
                    deed.mark.slot.number() < slots && deed.mark.epoch.counter() <= seen
                };
                deeds.iter().filter(sound).for_each(|deed| self.on_keep(by, deed, out));
            }
            What::Kept(marks) => marks.iter().for_each(|mark| self.on_kept(by, mark)),
            What::Refuse(refused) => {
                for &(slot, epoch) in refused {
                    self.on_refuse(now, slot, epoch);
                }
            }
            What::Seek(seek) if seek.epoch.counter() <= seen => self.on_seek(by, seek, out),
            What::Seek(_) => {}
            What::Sought { epoch, binding, held } => {
                self.on_sought(by, (*epoch, *binding), held);
            }
            What::Cede { leaves, slots } => {
                if *leaves && self.leavers.insert(by) {
                    // Nothing is to be handed to it any more.
                    self.digest = 0;
                }
                for &(slot, epoch) in slots {
                    self.on_cede(now, by, slot, epoch, out);
                }
            }
        }
    }

    /// Hands on what the ring wants done.
    fn drain(&mut self, out: &mut OutboxOf<Self>) {
        while let Some(effect) = self.below.pop() {
            match effect {
                Effect::Send { to, message } => {
                    out.send(to, Message { seen: self.seen, body: Body::Ring(message) });
                }
                Effect::Emit(event) => {
                    if matches!(event, RingEvent::Departed { .. }) {
                        self.forget(out);
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

    /// Our place on the ring is lost: what we owned and kept, others follow us in (K8).
    fn forget(&mut self, out: &mut OutboxOf<Self>) {
        for (slot, entry) in core::mem::take(&mut self.slots) {
            entry.lost(slot, out);
        }
        self.touched.clear();
        self.post.clear();
        self.leavers.clear();
        (self.audit, self.survey) = (None, None);
        self.alarm = Time::NEVER;
    }

    /// After every input: what slots ask for now.
    fn step(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.ring.is_active() || self.ring.life() != self.life {
            self.forget(out);
            self.life = self.ring.life();
            return;
        }
        let changed = self.ring.digest() != self.digest;
        self.digest = self.ring.digest();
        if changed {
            self.leavers.retain(|&life| !self.ring.is_gone(life));
            self.look_later(now);
        }
        let touched = core::mem::take(&mut self.touched);
        let due = |entry: &Entry| entry.due.is_some_and(|due| now >= due);
        let slots: Vec<Slot> = if changed || now >= self.alarm {
            let all = self.slots.iter();
            let called = all.filter(|(slot, entry)| {
                changed && entry.record.is_some() || due(entry) || touched.contains(slot)
            });
            called.map(|(&slot, _)| slot).collect()
        } else {
            touched.into_iter().collect()
        };
        for slot in slots {
            let Some(mut entry) = self.slots.remove(&slot) else { continue };
            self.look(now, slot, &mut entry, out);
            self.alarm = entry.due.map_or(self.alarm, |due| self.alarm.min(due));
            self.slots.insert(slot, entry);
        }
        if now >= self.alarm {
            let next = self.slots.values().filter_map(|entry| entry.due).min();
            self.alarm = next.unwrap_or(Time::NEVER);
        }
        self.audit(now, out);
        if let Some(until) = self.until() {
            self.told = self.told.max(until);
        }
        self.say_all(out);
    }

    /// Says what has gathered, a datagram's worth at a time.
    fn say_all(&mut self, out: &mut OutboxOf<Self>) {
        for (life, post) in core::mem::take(&mut self.post) {
            let (by, to) = (self.life.inc, life.age());
            let mut say = |what| {
                let body = Body::Keys { by, to, what };
                out.send(life.id(), Message { seen: self.seen, body });
            };
            // What is promised first, so that a claim that yields is not repeated to whom it yields.
            let Post { keep, kept, refuse, cede } = post;
            kept.chunks(SLOTS_A_MESSAGE * 2).for_each(|part| say(What::Kept(part.to_vec())));
            refuse.chunks(SLOTS_A_MESSAGE * 2).for_each(|part| say(What::Refuse(part.to_vec())));
            keep.chunks(SLOTS_A_MESSAGE).for_each(|part| say(What::Keep(part.to_vec())));
            for part in cede.chunks(SLOTS_A_MESSAGE * 2) {
                say(What::Cede { leaves: self.leaving.is_some(), slots: part.to_vec() });
            }
        }
    }

    fn post(&mut self, to: Life) -> &mut Post {
        self.post.entry(to).or_default()
    }

    /// Leaves when others own what we did, or have had time to.
    fn leave(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        let Some(until) = self.leaving else { return Ok(()) };
        let owns = self.slots.values().any(|entry| entry.office.is_some());
        let alone = self.owners().all(|life| life == self.life);
        if !owns || alone || now >= until || !self.ring.is_active() {
            self.leaving = None;
            self.forget(out);
            self.ring.handle(now, Input::Leave, &mut self.below)?;
            self.drain(out);
        } else {
            self.alarm = self.alarm.min(until);
        }
        Ok(())
    }
}

impl Machine for Keys {
    type Message = Message;
    type Timer = Timer;
    type Feed = Feed;
    type Command = core::convert::Infallible;
    type Durable = u64;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        self.minted = None;
        match input {
            Input::Start => self.ring.handle(now, Input::Start, &mut self.below)?,
            Input::Message { from, via, message } => {
                self.on_message(now, from, via, message, out)?;
            }
            Input::Timeout => self.ring.handle(now, Input::Timeout, &mut self.below)?,
            Input::Feed(feed) => self.ring.handle(now, Input::Feed(feed), &mut self.below)?,
            Input::Command(never) => match never {},
            Input::Leave => {
                if self.ring.is_out() {
                    return Err(Rejected::NotRunning);
                }
                // Every slot must be looked at without us.
                self.leaving = self.leaving.or(Some(now + self.session() * 6));
                self.digest = 0;
            }
        }
        // Not before, since of what is refused nothing is to be noticed: nobody may be told more than is remembered.
        self.now = now;
        self.drain(out);
        self.step(now, out);
        self.leave(now, out)
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        let below = self.ring.deadline().map(|(at, timer)| (at, Timer::Ring(timer)));
        let slots = (self.alarm != Time::NEVER).then_some((self.alarm, Timer::Slots));
        below.into_iter().chain(slots).min_by_key(|(at, _)| *at)
    }
}
