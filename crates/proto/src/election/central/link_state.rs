//! The hardened core of Topology Aware and CEL: every entry is its owner's, and what got lost is found again.
//!
//! ```text
//! Start            --> begin to send digests, and to tick
//! Up(j), Down(j)   --> our entry has changed: count its clock up, spread it (H1); on Up send a digest too (H7)
//! ENTRIES          --> adopt whatever is greater than what we hold, and spread it (H2, H3); if it is about us and greater
//!                      than what we say, outbid it (H4)
//! DIGEST           --> spread what the sender lacks or holds differently (H6)
//! Tick fires       --> send what is to be spread (H5)
//! Digest fires     --> send what twins were left to send and nobody has shown since; send a digest (H6)
//! Sweep fires      --> forget what nobody has led to for long (H9)
//! Leave            --> our last entry: we hear nobody
//! ```
//!
//! To spread is to send on the next tick (hardened Topology Aware), or at once, somebody else's news only with probability
//! `ρ` and not if a twin of smaller identity will (hardened CEL). Answers to digests are always sent: they are asked for.
//!
//! Departure: H6 finds that we lack something only if whoever has it hears our digest. We therefore also send one soon
//! when a digest lists what we lack.
//!
//! Departure: a digest of many entries is sent in parts, each of which speaks of a range of identities only (E28).
//!
//! Departure: with a horizon of `k` hops, entries are passed on to `k` hops from their owner, and whatever is farther is
//! forgotten at once.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::ops::RangeInclusive;

use super::{Context, Mark, Message, Timer, config, first_number};
use crate::{
    id::{NodeId, Peer},
    rng::{Rng, mix},
    time::{Duration, Time},
    topology::map::{Entry, Map, View},
};

/// One node.
#[derive(Clone, Debug)]
pub(super) struct LinkState {
    pub(super) map: Map,
    settings: config::LinkState,
    /// To be sent.
    dirty: BTreeSet<NodeId>,
    /// Left to a twin to send.
    held: BTreeSet<NodeId>,
    /// Entries that nobody leads to, and since when.
    lost: BTreeMap<NodeId, Time>,
    /// When the first of them has been lost for long enough (H9).
    sweep: Time,
    /// The topology that `lost` follows from.
    swept: Option<u64>,
    /// The next tick, whether or not there will be anything to send.
    tick: Time,
    /// The next digest, and how long after it the one after it, if nothing happens.
    digest: Time,
    interval: Duration,
}

impl LinkState {
    pub(super) fn new(me: Peer, settings: config::LinkState) -> Self {
        let clock = if settings.boots { first_number(me.boot) } else { 0 };
        Self {
            map: Map::new(me.id, View::new(me.id, clock, [])),
            settings,
            dirty: BTreeSet::new(),
            held: BTreeSet::new(),
            lost: BTreeMap::new(),
            sweep: Time::NEVER,
            swept: None,
            tick: Time::NEVER,
            digest: Time::NEVER,
            interval: settings.digest,
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_>) {
        if let config::Spread::Tick(period) = self.settings.spread {
            self.tick = context.now + context.rng.up_to(period);
        }
        self.digest = context.now + around(self.interval, context.rng);
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_quiet(&self) -> bool {
        self.dirty.is_empty() && self.held.is_empty()
    }

    /// Whether our view is that we hear just these.
    pub(super) fn hears(&self, neighbours: impl Iterator<Item = NodeId>) -> bool {
        let own = self.map.own().neighbours().iter().copied();
        own.filter(|&id| id != self.map.me()).eq(neighbours)
    }

    pub(super) fn deadlines(&self, mut consider: impl FnMut(Time, Timer)) {
        if !self.dirty.is_empty() {
            consider(self.tick, Timer::Tick);
        }
        consider(self.digest, Timer::Digest);
        consider(self.sweep, Timer::Sweep);
    }

    pub(super) fn due(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        if self.tick <= now
            && let config::Spread::Tick(period) = self.settings.spread
        {
            self.send(context);
            let behind = now.since(self.tick).as_micros() / period.as_micros();
            self.tick += period * (behind + 1);
        }
        if self.digest <= now {
            self.dirty.append(&mut self.held);
            self.spread(Urgency::Asked, context);
            self.send_digest(context);
            self.interval = (self.interval * 2).min(self.settings.quiet);
            self.digest = now + around(self.interval, context.rng);
        }
        if self.sweep <= now {
            let (lost, memory) = (&mut self.lost, self.settings.memory);
            self.map.retain(|id| lost.get(&id).is_none_or(|&since| since + memory > now));
            lost.retain(|_, since| *since + memory > now);
            self.swept = None;
            self.take_stock(context);
        }
    }

    pub(super) fn up(&mut self, id: NodeId, context: &mut Context<'_>) {
        let own = self.map.own();
        self.tell(own.with(&[id], own.clock().saturating_add(1)), context);
        self.send_digest(context);
    }

    pub(super) fn down(&mut self, id: NodeId, context: &mut Context<'_>) {
        let own = self.map.own();
        self.tell(own.without(&[id], own.clock().saturating_add(1)), context);
    }

    pub(super) fn leave(&mut self, context: &mut Context<'_>) {
        let (me, clock) = (self.map.me(), self.map.own().clock());
        self.dirty = BTreeSet::from([me]);
        self.map.set(me, View::new(me, clock.saturating_add(1), []));
        self.send(context);
    }

    /// H1: our view is another.
    fn tell(&mut self, view: View, context: &mut Context<'_>) {
        let me = self.map.me();
        self.map.set(me, view);
        self.dirty.insert(me);
        self.wake_up(context);
        self.take_stock(context);
        self.spread(Urgency::News, context);
    }

    /// H3 and H4.
    pub(super) fn learn(&mut self, entries: &[Entry], context: &mut Context<'_>) {
        let mut news = false;
        for Entry { id, view } in entries {
            if *id == self.map.me() {
                news |= *view > *self.map.own() && self.outbid(view.clock());
                continue;
            }
            let known = self.map.find(*id);
            match known {
                Ok(at) if *view > self.map.entries()[at].view => self.map.replace(at, view.clone()),
                Ok(_) => continue,
                Err(at) => self.map.insert(at, *id, view.clone()),
            }
            self.dirty.insert(*id);
            self.held.remove(id);
            news = true;
        }
        if news {
            self.wake_up(context);
            self.take_stock(context);
            self.spread(Urgency::News, context);
        }
    }

    /// H4: somebody remembers more of us than we have said. Whether there is a larger clock to say it with.
    fn outbid(&mut self, clock: u64) -> bool {
        let Some(clock) = clock.checked_add(1) else { return false };
        let me = self.map.me();
        self.map.set(me, self.map.own().at(clock));
        self.dirty.insert(me);
        true
    }

    /// H6, the receiver's side.
    pub(super) fn compare(
        &mut self,
        range: RangeInclusive<NodeId>,
        marks: &[Mark],
        context: &mut Context<'_>,
    ) {
        let mut behind = false;
        for mark in marks {
            let Some(mine) = self.map.get(mark.id) else {
                behind = true;
                continue;
            };
            let same_clock = mine.clock() == mark.clock;
            if mine.clock() > mark.clock || (same_clock && short(mark.id, mine) != mark.hash) {
                self.dirty.insert(mark.id);
            } else if mark.id == self.map.me() && !same_clock {
                self.outbid(mark.clock);
            } else {
                behind |= !same_clock;
                self.held.remove(&mark.id);
            }
        }
        let horizon = self.settings.horizon;
        for (at, hops) in context.survey.reached(&self.map) {
            let id = self.map.entries()[at].id;
            let passes = hops.is_some_and(|hops| horizon.is_none_or(|horizon| hops < horizon));
            let listed = || marks.binary_search_by_key(&id, |mark| mark.id).is_ok();
            if passes && range.contains(&id) && !listed() {
                self.dirty.insert(id);
            }
        }
        if behind || !self.dirty.is_empty() {
            self.wake_up(context);
            self.spread(Urgency::Asked, context);
        }
    }

    /// H5, but for the tick.
    fn spread(&mut self, urgency: Urgency, context: &mut Context<'_>) {
        let config::Spread::AtOnce { rho, prune } = self.settings.spread else { return };
        let own = self.dirty.contains(&self.map.me());
        if urgency == Urgency::Asked || own {
            self.send(context);
        } else if prune && is_pruned(&self.map) {
            // E14: unless somebody shows that it has them, they are sent with the next digest.
            self.held.append(&mut self.dirty);
        } else if rho >= 1.0 || context.rng.chance(rho) {
            self.send(context);
        } else {
            self.dirty.clear();
        }
    }

    fn send(&mut self, context: &mut Context<'_>) {
        let dirty = core::mem::take(&mut self.dirty);
        let horizon = self.settings.horizon;
        let mut frame = Frame::default();
        for id in dirty {
            let Some(view) = self.map.get(id) else { continue };
            let near =
                |hops: Option<u32>| hops.is_some_and(|hops| hops < horizon.unwrap_or(u32::MAX));
            if horizon.is_some() && !near(context.survey.hops(&self.map, id)) {
                continue;
            }
            let entry = Entry { id, view: view.clone() };
            if let Some(full) = frame.add(entry) {
                context.out.broadcast(Message::Entries(full.into()));
            }
        }
        if !frame.entries.is_empty() {
            context.out.broadcast(Message::Entries(frame.entries.into()));
        }
    }

    /// H6, the sender's side. Nobody hears us if we hear nobody, as far as we know.
    fn send_digest(&mut self, context: &mut Context<'_>) {
        if self.map.own().neighbours().len() < 2 {
            return;
        }
        let mut marks = Vec::new();
        for (at, hops) in context.survey.reached(&self.map) {
            if hops.is_some() {
                let Entry { id, view } = &self.map.entries()[at];
                marks.push(Mark { id: *id, clock: view.clock(), hash: short(*id, view) });
            }
        }
        let mut first = NodeId::new(0);
        let mut left = marks.as_slice();
        loop {
            let (part, rest) = left.split_at(left.len().min(MARKS));
            let last = match (part.last(), rest.is_empty()) {
                (Some(mark), false) => mark.id,
                _ => NodeId::new(u64::MAX),
            };
            context.out.broadcast(Message::Digest { first, last, marks: part.into() });
            if rest.is_empty() {
                return;
            }
            first = NodeId::new(last.get().saturating_add(1));
            left = rest;
        }
    }

    /// There is news: the next digest is not far.
    fn wake_up(&mut self, context: &mut Context<'_>) {
        self.interval = self.settings.digest;
        if self.digest > context.now + (self.interval * 5).div(4) {
            self.digest = context.now + around(self.interval, context.rng);
        }
    }

    /// Notes since when nobody has led to which entries, and forgets what is beyond the horizon.
    fn take_stock(&mut self, context: &mut Context<'_>) {
        if self.swept == Some(self.map.topology()) {
            return;
        }
        if let Some(horizon) = self.settings.horizon {
            let far = |(at, hops): (usize, Option<u32>)| {
                hops.is_some_and(|hops| hops > horizon).then_some(at)
            };
            let far: Vec<NodeId> = context
                .survey
                .reached(&self.map)
                .filter_map(far)
                .map(|at| self.map.entries()[at].id)
                .collect();
            if !far.is_empty() {
                self.map.retain(|id| far.binary_search(&id).is_err());
                self.dirty.retain(|id| far.binary_search(id).is_err());
            }
        }
        for (at, hops) in context.survey.reached(&self.map) {
            let id = self.map.entries()[at].id;
            match hops {
                Some(_) if self.lost.is_empty() => {}
                Some(_) => {
                    self.lost.remove(&id);
                }
                None => {
                    self.lost.entry(id).or_insert(context.now);
                }
            }
        }
        let oldest = self.lost.values().copied().min();
        self.sweep = oldest.map_or(Time::NEVER, |since| since + self.settings.memory);
        self.swept = Some(self.map.topology());
    }
}

/// Why something is spread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Urgency {
    /// It is new to us.
    News,
    /// Somebody lacks it.
    Asked,
}

/// Entries that fit into one datagram together.
#[derive(Default)]
struct Frame {
    entries: Vec<Entry>,
    names: BTreeSet<NodeId>,
    bytes: usize,
}

impl Frame {
    /// Adds an entry; gives back those before it if there is no room for all. An entry too large for any frame has one
    /// of its own.
    fn add(&mut self, entry: Entry) -> Option<Vec<Entry>> {
        let new = |names: &BTreeSet<NodeId>| {
            let neighbours = entry.view.neighbours().iter();
            neighbours.filter(|&id| !names.contains(id)).map(|id| varint(id.get())).sum::<usize>()
        };
        // Numbers of names, the count of them, and the clock.
        let own = 2 * entry.view.neighbours().len() + 2 + varint(entry.view.clock());
        let mut full = None;
        if !self.entries.is_empty() && self.bytes + own + new(&self.names) > ROOM {
            full = Some(core::mem::take(self).entries);
        }
        self.bytes += own + new(&self.names);
        self.names.extend(entry.view.neighbours());
        self.entries.push(entry);
        full
    }
}

/// How many bytes a number takes.
const fn varint(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// An entry's content in 32 bits.
fn short(id: NodeId, view: &View) -> u32 {
    let hash = view.neighbours().iter().fold(mix(id.get()), |hash, id| mix(hash ^ id.get()));
    (hash >> 32) as u32
}

/// A span within a quarter of this one.
fn around(span: Duration, rng: &mut Rng) -> Duration {
    (span * 3).div(4) + rng.up_to(span.div(2))
}

/// What a datagram has left for entries, behind its header, its kind and two counts.
const ROOM: usize = crate::wire::MAX_DATAGRAM - crate::wire::SEAL_LEN - 6;
/// Marks to a datagram: up to 24 bytes each, and 21 for the range.
const MARKS: usize = (ROOM - 21) / 24;

/// C6: whether a neighbour of smaller id hears just whom we hear, and so reaches whomever we would.
pub(super) fn is_pruned(map: &Map) -> bool {
    let own = map.own();
    let smaller = own.neighbours().iter().take_while(|&&id| id < map.me());
    smaller.filter_map(|&id| map.get(id)).any(|view| view.agrees(own))
}
