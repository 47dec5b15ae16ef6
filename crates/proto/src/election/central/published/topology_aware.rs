//! Topology Aware as published (Algorithm 1): the map to a new neighbour, differences to everybody.
//!
//! ```text
//! Start       --> begin to tick, somewhere within Δ (TA1)
//! Up(j)       --> add j, count the clock up, broadcast the map (TA3)
//! Down(j)     --> take j away, count the clock up, note the difference (TA4)
//! KNOWN       --> adopt newer views and note their differences (TA5); look through the pending (TA7)
//! UPDATES     --> apply what fits our clock and note it; what is ahead of it is pending, what is behind is dropped
//!                 (TA6); look through the pending (TA7)
//! Tick fires  --> broadcast the differences noted, if any; forget them (TA2)
//! ```
//!
//! A difference that overlaps what is known is dropped (E1), one that was pending is not passed on (E2), and a node that
//! restarts believes what others remember of it (E4): kept, to be measured. Channels are taken to lose nothing.
//!
//! Departure: pending differences of a node that is not known are skipped (E3), where the algorithm reads what is not there.
//!
//! Departure: a node is in range once it is heard and not anew with every probe (E5), unless [`Probes::Every`].

use alloc::{sync::Arc, vec::Vec};

use super::{Context, Message, Probes, Update};
use crate::{
    id::NodeId,
    time::{Duration, Time},
    topology::map::{Entry, Map, View},
};

/// One node.
#[derive(Clone, Debug)]
pub(in super::super) struct TopologyAware {
    pub(in super::super) map: Map,
    pub(in super::super) updates: Vec<Update>,
    pub(in super::super) pending: Vec<Update>,
    period: Duration,
    probes: Probes,
    /// The next tick, whether or not there will be anything to send.
    tick: Time,
}

impl TopologyAware {
    /// TA1.
    pub(super) fn new(me: NodeId, period: Duration, probes: Probes) -> Self {
        Self {
            map: Map::new(me, View::new(me, 0, [])),
            updates: Vec::new(),
            pending: Vec::new(),
            period,
            probes,
            tick: Time::NEVER,
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_>) {
        self.tick = context.now + context.rng.up_to(self.period);
    }

    /// When the tick is that has something to send.
    pub(super) fn tick(&self) -> Time {
        if self.updates.is_empty() { Time::NEVER } else { self.tick }
    }

    pub(super) fn due(&mut self, context: &mut Context<'_>) {
        if self.tick > context.now {
            return;
        }
        self.send(context);
        // Ticks that had nothing to send went by unnoticed; the next keeps the rhythm.
        let behind = context.now.since(self.tick).as_micros() / self.period.as_micros();
        self.tick += self.period * (behind + 1);
    }

    /// TA2.
    pub(super) fn send(&mut self, context: &mut Context<'_>) {
        if !self.updates.is_empty() {
            context.out.broadcast(Message::Updates(self.updates.as_slice().into()));
            self.updates.clear();
        }
    }

    /// TA3.
    pub(super) fn up(&mut self, id: NodeId, new: bool, context: &mut Context<'_>) {
        if !new && self.probes == Probes::Once {
            return;
        }
        let own = self.map.own();
        let own = own.with(&[id], own.clock().saturating_add(1));
        self.map.set(self.map.me(), own);
        context.out.broadcast(Message::Known(self.map.snapshot()));
    }

    /// TA4.
    pub(super) fn down(&mut self, id: NodeId) {
        let (me, own) = (self.map.me(), self.map.own());
        let (old, new) = (own.clock(), own.clock().saturating_add(1));
        let own = own.without(&[id], new);
        self.note(Update { source: me, add: [].into(), remove: [id].into(), old, new });
        self.map.set(me, own);
    }

    /// TA5.
    pub(super) fn learn(&mut self, entries: &[Entry]) {
        for Entry { id, view } in entries {
            let (source, new) = (*id, view.clock());
            let update = match self.map.get(source) {
                None => {
                    Update { source, add: view.neighbours().into(), remove: [].into(), old: 0, new }
                }
                Some(mine) if new > mine.clock() => Update {
                    source,
                    add: beyond(view, mine),
                    remove: beyond(mine, view),
                    old: mine.clock(),
                    new,
                },
                Some(_) => continue,
            };
            self.note(update);
            self.map.set(source, view.clone());
        }
        self.look_through_pending();
    }

    /// TA6.
    pub(super) fn apply(&mut self, updates: &[Update]) {
        for update in updates {
            match self.map.get(update.source).map(View::clock) {
                None if update.old == 0 => {
                    self.store(update);
                    self.note(update.clone());
                }
                None => self.pending.push(update.clone()),
                Some(clock) if update.old == clock => {
                    self.store(update);
                    self.note(update.clone());
                }
                Some(clock) if update.old > clock => self.pending.push(update.clone()),
                Some(_) => {}
            }
        }
        self.look_through_pending();
    }

    /// TA7: once, in order; what one makes fit later ones see, earlier ones do not.
    fn look_through_pending(&mut self) {
        let mut pending = core::mem::take(&mut self.pending);
        pending.retain(|update| {
            let Some(view) = self.map.get(update.source) else { return true };
            if update.old == view.clock() {
                self.store(update);
                return false;
            }
            update.old > view.clock()
        });
        self.pending = pending;
    }

    fn store(&mut self, update: &Update) {
        let view = match self.map.get(update.source) {
            None => View::new(update.source, update.new, update.add.iter().copied()),
            Some(view) => view.with(&update.add, update.new).without(&update.remove, update.new),
        };
        self.map.set(update.source, view);
    }

    fn note(&mut self, update: Update) {
        self.updates.push(update);
    }
}

/// Whom the first hears and the second does not.
fn beyond(view: &View, other: &View) -> Arc<[NodeId]> {
    view.neighbours().iter().copied().filter(|&id| !other.contains(id)).collect()
}
