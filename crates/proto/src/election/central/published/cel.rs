//! CEL as published (Algorithm 2): the whole map at once, whatever changed.
//!
//! ```text
//! Up(j)       --> add the link at both ends, count both clocks up, broadcast the map (C2)
//! Down(j)     --> take it away likewise (C3)
//! KNOWLEDGE   --> adopt newer views, unite views of one clock (C4); if that changed anything: silent if a neighbour of
//!                 smaller id has the same neighbours, else broadcast with probability ρ (C6, C7)
//! ```
//!
//! Two nodes write one view and its clock (E6), removals are undone by union (E7), nothing is ever sent again (E9) or
//! forgotten (E11): kept, to be measured. C5 is left out: the loop of C4 visits every node it would.
//!
//! Departure: "known was updated" is judged by value (E15), or two neighbours would answer each other for ever.

use super::{Context, Message, is_pruned};
use crate::{
    id::NodeId,
    topology::map::{Entries, Entry, Map, View},
};

/// One node.
#[derive(Clone, Debug)]
pub(in super::super) struct Cel {
    pub(in super::super) map: Map,
    rho: f64,
}

impl Cel {
    /// C1.
    pub(super) fn new(me: NodeId, rho: f64) -> Self {
        Self { map: Map::new(me, View::new(me, 0, [])), rho }
    }

    /// C2.
    pub(super) fn up(&mut self, id: NodeId, context: &mut Context<'_>) {
        let (me, own) = (self.map.me(), self.map.own());
        let own = own.with(&[id], own.clock().saturating_add(1));
        let theirs = match self.map.get(id) {
            None => View::new(id, 1, [me]),
            Some(view) => view.with(&[me], view.clock().saturating_add(1)),
        };
        self.map.set(me, own);
        self.map.set(id, theirs);
        self.broadcast(1.0, context);
    }

    /// C3.
    pub(super) fn down(&mut self, id: NodeId, context: &mut Context<'_>) {
        let (me, own) = (self.map.me(), self.map.own());
        let own = own.without(&[id], own.clock().saturating_add(1));
        self.map.set(me, own);
        if let Some(view) = self.map.get(id) {
            let theirs = view.without(&[me], view.clock().saturating_add(1));
            self.map.set(id, theirs);
        }
        self.broadcast(1.0, context);
    }

    /// C4.
    pub(super) fn learn(&mut self, entries: &Entries, context: &mut Context<'_>) {
        if self.map.is(entries) {
            return;
        }
        let (mut changed, mut at) = (false, 0);
        for Entry { id, view } in entries.iter() {
            // Both lists ascend.
            while self.map.entries().get(at).is_some_and(|mine| mine.id < *id) {
                at += 1;
            }
            match self.map.entries().get(at) {
                Some(mine) if mine.id == *id => {
                    if view.clock() > mine.view.clock() {
                        self.map.replace(at, view.clone());
                        changed = true;
                    } else if view.clock() == mine.view.clock() && !view.is(&mine.view) {
                        if view.agrees(&mine.view) {
                            // One copy of both: maps are mostly the same, and so compared the quicker.
                            self.map.share(at, view);
                            continue;
                        }
                        let union = mine.view.with(view.neighbours(), view.clock());
                        changed |= !union.agrees(&mine.view);
                        self.map.replace(at, union);
                    }
                }
                _ => {
                    self.map.insert(at, *id, view.clone());
                    changed = true;
                }
            }
        }
        if changed && !is_pruned(&self.map) {
            self.broadcast(self.rho, context);
        }
    }

    /// C7.
    fn broadcast(&self, chance: f64, context: &mut Context<'_>) {
        if chance >= 1.0 || context.rng.chance(chance) {
            context.out.broadcast(Message::Known(self.map.snapshot()));
        }
    }
}
