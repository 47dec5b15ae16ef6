//! What is watched and measured where members of a ring own keys.

use std::collections::BTreeMap;

use bellwether_proto::{
    Duration, Effect, EffectOf, Epoch, NodeId, Time,
    keys::{self, Body, Keys, Slot},
    membership::ring::{self, Ring, RingEvent},
};

use super::{Favourite, RingMember};
use crate::{
    engine::{Observer, clock::Clock},
    invariant::{OneOwnerPerKey, Violation, Violations},
};

impl RingMember for Keys {
    fn ring(&self) -> &Ring {
        self.ring()
    }

    fn ring_message(message: &keys::Message) -> Option<&ring::Message> {
        match &message.body {
            Body::Ring(message) => Some(message),
            Body::Keys { .. } => None,
        }
    }

    fn ring_event(event: &keys::Event) -> Option<&RingEvent> {
        match event {
            keys::Event::Ring(event) => Some(event),
            keys::Event::Gained { .. } | keys::Event::Lost { .. } => None,
        }
    }

    fn authority(&self) -> Option<Time> {
        None
    }
}

/// What happened to keys.
#[derive(Clone, Debug, Default)]
pub struct KeyFindings {
    /// Messages between owners and keepers.
    pub messages: u64,
    /// How often a slot got another node as its owner, by slot.
    pub moves: BTreeMap<Slot, u32>,
    /// The owner that each slot had last.
    pub owners: BTreeMap<Slot, (NodeId, Epoch)>,
}

/// Watches who owns what.
#[derive(Debug)]
pub struct KeyWatch {
    slots: u32,
    clocks: Vec<Clock>,
    owners: OneOwnerPerKey,
    violations: Violations,
    found: KeyFindings,
}

impl KeyWatch {
    /// Nobody owns anything yet.
    pub fn new(nodes: u32, slots: u32) -> Self {
        Self {
            slots,
            clocks: vec![Clock::true_time(); nodes as usize],
            owners: OneOwnerPerKey::default(),
            violations: Violations::default(),
            found: KeyFindings::default(),
        }
    }

    /// What happened to keys.
    pub fn findings(&self) -> &KeyFindings {
        &self.found
    }

    /// Who owned what, when.
    pub fn owners(&self) -> &OneOwnerPerKey {
        &self.owners
    }

    /// Share of the slots for which nobody may act at `now`.
    pub fn unowned(&self, now: Time) -> f64 {
        1.0 - self.owners.owned(now) as f64 / f64::from(self.slots)
    }

    /// The longest that nobody could act for a slot, from its first owner to `now`.
    pub fn longest_unowned(&self, now: Time) -> Duration {
        self.owners.longest_unowned(now)
    }

    /// The first violation of each invariant.
    pub fn violations(&self) -> &[Violation] {
        self.violations.all()
    }

    /// For each invariant its name, the situation it guards against, and whether that could have arisen.
    pub fn sometimes(&self) -> (&'static str, &'static str, bool) {
        let (situation, arose) = self.owners.sometimes();
        (OneOwnerPerKey::NAME, situation, arose)
    }
}

impl Observer<Keys> for KeyWatch {
    fn effect(&mut self, _now: Time, _node: NodeId, effect: &EffectOf<Keys>) {
        if let Effect::Send { message, .. } = effect {
            self.found.messages += u64::from(matches!(message.body, Body::Keys { .. }));
        }
    }

    fn handled(&mut self, now: Time, node: NodeId, machine: &Keys) {
        let clock = self.clocks[node.get() as usize];
        for (slot, epoch, until) in machine.owned() {
            let until = clock.when(until);
            // Who wakes late handles its input late: nobody is told anything of the past.
            if until <= now {
                continue;
            }
            if let Err(detail) = self.owners.owns(now, node, slot, (epoch, until)) {
                self.violations.add(now, OneOwnerPerKey::NAME, detail);
            }
            match self.found.owners.insert(slot, (node, epoch)) {
                Some((before, _)) if before != node => {
                    *self.found.moves.entry(slot).or_default() += 1;
                }
                _ => {}
            }
        }
    }

    fn drifted(&mut self, now: Time, node: NodeId, ppm: i32) {
        self.clocks[node.get() as usize].set_rate(now, ppm);
    }
}

impl Favourite for KeyWatch {
    fn favourite(&self) -> Option<u32> {
        None
    }
}
