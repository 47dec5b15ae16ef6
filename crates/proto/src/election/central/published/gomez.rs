//! Gómez-Calzado et al. 2013, reconstructed from the thesis's words: leaders announce themselves and the larger group wins.
//!
//! ```text
//! Start            --> we are our only member and lead; all timeouts 100 ms (G1)
//! Tick fires       --> broadcast JOIN if alone, LEADER if we lead, else nothing (G2)
//! any message      --> whoever sent it last is a member; start its time again (G3)
//! JOIN of j        --> j is a member; if we were alone, the better of us two leads (G4); pass it on
//! LEADER of l      --> our leader's: take its size. Of a larger group, or an equal one with a better leader: follow it
//!                      (G5); pass it on. Otherwise: nothing
//! Leader fires     --> wait 500 ms longer next time; the best other member leads (G6)
//! Member fires     --> wait 500 ms longer for it next time; it is no member unless it leads (G7)
//! ```
//!
//! The better of two is the older, then the one of higher identity. [`Order::Age`] compares nothing else in G5.
//!
//! Departure: messages carry a number, or they would go round for ever, and the time of birth that the order needs.

use alloc::collections::BTreeMap;
use core::cmp::Reverse;

use super::{Context, Message, Order, Timer, first_number};
use crate::{
    id::{NodeId, Peer},
    leadership::Why,
    time::{Duration, Time},
};

/// One node.
#[derive(Clone, Debug)]
pub(in super::super) struct Gomez {
    me: NodeId,
    order: Order,
    period: Duration,
    born: u64,
    /// Other members, and until when each is one without another word.
    members: BTreeMap<NodeId, Time>,
    /// When others were born, as far as they have told.
    births: BTreeMap<NodeId, u64>,
    leader: NodeId,
    size: u64,
    patience: Duration,
    patience_with: BTreeMap<NodeId, Duration>,
    sequence: u64,
    /// The last message passed on of each node.
    seen: BTreeMap<NodeId, u64>,
    tick: Time,
    silence: Time,
    /// Since when we have led, or when the leader was last heard.
    since: Time,
}

/// What a LEADER message says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) id: NodeId,
    pub(super) born: u64,
    pub(super) size: u64,
    pub(super) sequence: u64,
}

impl Gomez {
    /// G1.
    pub(super) fn new(me: Peer, order: Order, period: Duration) -> Self {
        Self {
            me: me.id,
            order,
            period,
            born: 0,
            members: BTreeMap::new(),
            births: BTreeMap::new(),
            leader: me.id,
            size: 1,
            patience: INITIAL,
            patience_with: BTreeMap::new(),
            // Numbers of a past life have been seen.
            sequence: first_number(me.boot),
            seen: BTreeMap::new(),
            tick: Time::NEVER,
            silence: Time::NEVER,
            since: Time::ZERO,
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_>) {
        self.born = context.now.as_micros();
        self.since = context.now;
        self.tick = context.now + context.rng.up_to(self.period);
    }

    pub(super) const fn leader(&self) -> NodeId {
        self.leader
    }

    pub(super) fn why(&self) -> Why {
        if self.leader == self.me {
            Why::Unchallenged { since: self.since }
        } else {
            Why::Announced { heard: self.since }
        }
    }

    pub(super) fn deadlines(&self, mut consider: impl FnMut(Time, Timer)) {
        consider(self.tick, Timer::Tick);
        consider(self.silence, Timer::Leader);
        consider(self.members.values().copied().min().unwrap_or(Time::NEVER), Timer::Member);
    }

    pub(super) fn due(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        if self.silence <= now {
            self.give_up_leader(now);
        }
        while let Some(id) = self.silent_member(now) {
            self.give_up(id, now);
        }
        if self.tick <= now {
            self.tick = (self.tick + self.period).max(now + Duration::from_micros(1));
            self.speak(context);
        }
    }

    /// G2.
    fn speak(&mut self, context: &mut Context<'_>) {
        self.sequence += 1;
        let (id, born, sequence) = (self.me, self.born, self.sequence);
        if self.members.is_empty() {
            self.follow(self.me, 1, context.now);
            context.out.broadcast(Message::Join { id, born, sequence });
        } else if self.leader == self.me {
            self.size = self.count();
            context.out.broadcast(Message::Lead { id, born, size: self.size, sequence });
        }
    }

    /// G4.
    pub(super) fn on_join(
        &mut self,
        from: NodeId,
        id: NodeId,
        born: u64,
        sequence: u64,
        context: &mut Context<'_>,
    ) {
        let alone = self.members.is_empty();
        let new = !self.members.contains_key(&id);
        self.live(from, context.now);
        if id == self.me {
            return;
        }
        self.births.insert(id, born);
        self.live(id, context.now);
        if alone {
            let better = if self.better(id, self.me) { id } else { self.me };
            self.follow(better, 2, context.now);
        } else if self.leader == self.me {
            self.size = self.count();
        }
        if (from == id || new) && self.first_seen(id, sequence) {
            context.out.broadcast(Message::Join { id, born, sequence });
        }
    }

    /// G5.
    pub(super) fn on_lead(&mut self, from: NodeId, claim: Claim, context: &mut Context<'_>) {
        let Claim { id, born, size, sequence } = claim;
        self.live(from, context.now);
        if id == self.me {
            return;
        }
        self.births.insert(id, born);
        let better = self.better(id, self.leader);
        let accepted = id == self.leader
            || match self.order {
                Order::Size => size > self.size || (size == self.size && better),
                Order::Age => better,
            };
        if !accepted {
            return;
        }
        self.live(id, context.now);
        self.follow(id, size, context.now);
        if self.first_seen(id, sequence) {
            context.out.broadcast(Message::Lead { id, born, size, sequence });
        }
    }

    /// G6.
    fn give_up_leader(&mut self, now: Time) {
        self.patience += INCREMENT;
        self.members.remove(&self.leader);
        let mut best = self.me;
        for &member in self.members.keys() {
            if self.better(member, best) {
                best = member;
            }
        }
        self.follow(best, self.count(), now);
    }

    fn silent_member(&self, now: Time) -> Option<NodeId> {
        self.members.iter().find(|&(_, &until)| until <= now).map(|(&id, _)| id)
    }

    /// G7.
    fn give_up(&mut self, id: NodeId, now: Time) {
        let patience = self.patience_with.entry(id).or_insert(INITIAL);
        *patience += INCREMENT;
        if id == self.leader {
            self.members.insert(id, now + *patience);
        } else {
            self.members.remove(&id);
        }
    }

    /// G3: `id` is there.
    fn live(&mut self, id: NodeId, now: Time) {
        let patience = self.patience_with.get(&id).copied().unwrap_or(INITIAL);
        self.members.insert(id, now + patience);
    }

    fn follow(&mut self, leader: NodeId, size: u64, now: Time) {
        if leader != self.me || leader != self.leader {
            self.since = now;
        }
        self.leader = leader;
        self.size = size;
        self.silence = if leader == self.me { Time::NEVER } else { now + self.patience };
    }

    /// Members, ourselves included.
    fn count(&self) -> u64 {
        1 + self.members.len() as u64
    }

    /// Whether the first is better. Whoever has not told its birth is taken to be the youngest.
    fn better(&self, a: NodeId, b: NodeId) -> bool {
        let born = |id: NodeId| match id == self.me {
            true => self.born,
            false => self.births.get(&id).copied().unwrap_or(u64::MAX),
        };
        (Reverse(born(a)), a) > (Reverse(born(b)), b)
    }

    fn first_seen(&mut self, id: NodeId, sequence: u64) -> bool {
        let last = self.seen.entry(id).or_insert(0);
        let first = sequence > *last;
        *last = (*last).max(sequence);
        first
    }

    #[cfg(test)]
    pub(in super::super) const fn state(&self) -> (NodeId, u64, Duration) {
        (self.leader, self.size, self.patience)
    }
}

/// Of all timeouts at first (§5.3.1).
const INITIAL: Duration = Duration::from_millis(100);
/// By how much a timeout that was too short grows.
const INCREMENT: Duration = Duration::from_millis(500);
