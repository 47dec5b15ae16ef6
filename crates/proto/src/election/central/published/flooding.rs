//! Flooding Degree, reconstructed: the node with the most neighbours says so, and all pass it on.
//!
//! ```text
//! Start           --> we lead, with no neighbours; begin to tick, somewhere within α (F1)
//! Up, Down        --> our degree has changed; lead if it is now the best we know (F2)
//! Tick fires      --> broadcast our claim, if we lead (F3)
//! claim           --> better than the leader's: follow it (F4a)
//!                     the leader's own: its degree may be another; lead if ours is better now (F4b)
//!                     otherwise: nothing (F4c)
//! Leader fires    --> the leader has been silent for too long: we lead (F5)
//! ```
//!
//! The better claim is the one of higher degree, then of higher identity. Which claims are passed on, and when leaders
//! speak, is the [`Reading`]: the text fits several (E16). In [`Reading::Eager`] too a claim is not passed on shortly after
//! another of its leader: unnumbered, an old one and a new one would otherwise chase each other round a cycle for ever.
//!
//! Numbered claims are the hardened form: only one newer than the last of its leader is believed or passed on, so that no
//! claim goes round for ever.

use alloc::collections::BTreeMap;

use super::{Context, Message, Reading, Timer, first_number};
use crate::{
    id::{NodeId, Peer},
    leadership::Why,
    time::{Duration, Time},
};

/// One node.
#[derive(Clone, Debug)]
pub(in super::super) struct Flooding {
    me: NodeId,
    reading: Reading,
    period: Duration,
    timeout: Duration,
    numbered: bool,
    /// How many neighbours we have.
    value: u64,
    leader: NodeId,
    /// The leader's degree, as last heard.
    leads_with: u64,
    /// The last claim we made.
    sequence: u64,
    /// The last claim heard of each node, where they are numbered.
    heard: BTreeMap<NodeId, u64>,
    /// When each node's claim was last passed on.
    passed_on: BTreeMap<NodeId, Time>,
    tick: Time,
    silence: Time,
    /// Since when we have led, or when the leader was last heard.
    since: Time,
}

impl Flooding {
    /// F1.
    pub(super) fn new(
        me: Peer,
        reading: Reading,
        period: Duration,
        timeout: Duration,
        numbered: bool,
    ) -> Self {
        Self {
            me: me.id,
            reading,
            period,
            timeout,
            numbered,
            value: 0,
            leader: me.id,
            leads_with: 0,
            // Claims of a past life must not outlive it.
            sequence: if numbered { first_number(me.boot) } else { 0 },
            heard: BTreeMap::new(),
            passed_on: BTreeMap::new(),
            tick: Time::NEVER,
            silence: Time::NEVER,
            since: Time::ZERO,
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_>) {
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
    }

    pub(super) fn due(&mut self, context: &mut Context<'_>) {
        if self.silence <= context.now {
            self.lead(context);
        }
        if self.tick <= context.now {
            self.tick = (self.tick + self.period).max(context.now + Duration::from_micros(1));
            if self.leader == self.me || self.reading == Reading::Relay {
                self.claim(context);
            }
        }
    }

    /// F2.
    pub(super) fn measure(&mut self, degree: u64, context: &mut Context<'_>) {
        self.value = degree;
        if self.leader == self.me {
            self.leads_with = degree;
            self.speak_at_once(context);
        } else if (degree, self.me) > (self.leads_with, self.leader) {
            self.lead(context);
        }
    }

    /// F4.
    pub(super) fn hear(
        &mut self,
        leader: NodeId,
        value: u64,
        number: u64,
        context: &mut Context<'_>,
    ) {
        if leader == self.me {
            return;
        }
        let followed = leader == self.leader;
        if !followed && (value, leader) <= (self.leads_with, self.leader) {
            return;
        }
        if self.numbered {
            let last = self.heard.entry(leader).or_insert(0);
            if number <= *last {
                return;
            }
            *last = number;
        }
        let changed = !followed || value != self.leads_with;
        self.leader = leader;
        self.leads_with = value;
        self.since = context.now;
        self.silence = context.now + self.timeout;
        if followed && (self.value, self.me) > (value, leader) {
            self.lead(context);
        } else if self.passes_on(leader, !followed, changed, context.now) {
            self.passed_on.insert(leader, context.now);
            context.out.broadcast(Message::Claim { leader, value, sequence: number });
        }
    }

    fn passes_on(&self, leader: NodeId, adopted: bool, changed: bool, now: Time) -> bool {
        let lately = self.passed_on.get(&leader).is_some_and(|&at| now < at + self.period.div(2));
        match self.reading {
            Reading::Relay => false,
            Reading::Opt => changed,
            // Numbers tell copies apart better than times do.
            _ if self.numbered => true,
            Reading::Tick | Reading::Eager => adopted || !lately,
        }
    }

    /// F2, F4b, F5.
    fn lead(&mut self, context: &mut Context<'_>) {
        self.leader = self.me;
        self.leads_with = self.value;
        self.since = context.now;
        self.silence = Time::NEVER;
        self.speak_at_once(context);
    }

    fn speak_at_once(&mut self, context: &mut Context<'_>) {
        if self.reading == Reading::Eager {
            self.claim(context);
        }
    }

    fn claim(&mut self, context: &mut Context<'_>) {
        let (leader, value) = (self.leader, self.leads_with);
        let sequence = match (self.numbered, leader == self.me) {
            (false, _) => 0,
            (true, true) => {
                self.sequence += 1;
                self.sequence
            }
            (true, false) => self.heard.get(&leader).copied().unwrap_or(0),
        };
        context.out.broadcast(Message::Claim { leader, value, sequence });
    }
}
