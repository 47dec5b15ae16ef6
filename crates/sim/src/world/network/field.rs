//! Nodes that move and share the air: what a network does between two events besides carrying messages.

use std::sync::Arc;

use bellwether_proto::{Rng, Time};

use super::{Network, within};
use crate::world::{
    Wifi,
    mobility::{LinkChange, LinkChanges, Movement},
    radio::{Air, Frame, Full, Turn},
};

/// What changes by itself: links as nodes move, and who is in whose earshot if that is farther.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    links: LinkChanges,
    earshot: Option<LinkChanges>,
}

/// Who is in whose earshot, where that is farther than the range.
#[derive(Clone, Debug)]
pub(super) struct Earshot {
    radius: f64,
    sensed: Vec<Vec<u32>>,
}

impl Network {
    /// Lets the nodes move; they are placed as they are at the beginning.
    pub fn with_movement(mut self, movement: &Arc<Movement>, range: f64, end: Time) -> Self {
        let end = end.as_secs_f64();
        let links = movement.link_changes(range, end);
        let far = self.earshot.as_mut().map(|earshot| {
            earshot.sensed = movement.neighbours(earshot.radius, 0.0);
            movement.link_changes(earshot.radius, end)
        });
        self.moving = Some(Box::new(Moving { links, earshot: far }));
        self
    }

    /// Puts a radio of this range into every node; who moves must be [told](Self::with_movement) after.
    pub fn with_radio(mut self, wifi: &Wifi, range: f64, rng: Rng) -> Self {
        self.air = Some(Box::new(Air::new(wifi, self.up.len() as u32, rng)));
        if wifi.interference > 1.0 {
            let radius = range * wifi.interference;
            let sensed = within(&self.placed.positions, radius);
            self.earshot = Some(Earshot { radius, sensed });
        }
        self
    }

    /// What has been in the air, if nodes have radios.
    pub fn air(&self) -> Option<&Air> {
        self.air.as_deref()
    }

    /// When somebody next comes into somebody's range or leaves it.
    #[inline]
    pub(crate) fn next_change(&mut self) -> Option<Time> {
        let moving = self.moving.as_mut()?;
        let link = moving.links.peek().map(|change| change.at);
        let far = moving.earshot.as_mut().and_then(LinkChanges::peek).map(|change| change.at);
        match (link, far) {
            (Some(link), Some(far)) => Some(link.min(far)),
            (link, far) => link.or(far),
        }
    }

    /// Lets happen what happens until `now`; each change of a link is told to `each`.
    pub(crate) fn move_on(&mut self, now: Time, mut each: impl FnMut(LinkChange)) {
        let Some(mut moving) = self.moving.take() else { return };
        while let Some(change) = moving.links.next_if(now) {
            match change.up {
                true => self.link_up(change.a, change.b),
                false => self.link_down(change.a, change.b),
            }
            each(change);
        }
        if let (Some(far), Some(earshot)) = (&mut moving.earshot, &mut self.earshot) {
            while let Some(LinkChange { a, b, up, .. }) = far.next_if(now) {
                set_link(&mut earshot.sensed, a, b, up);
            }
        }
        self.moving = Some(moving);
    }

    /// Two nodes hear each other from now on. Does nothing where everybody hears everybody.
    pub fn link_up(&mut self, a: u32, b: u32) {
        self.set_link(a, b, true);
    }

    /// Two nodes no longer hear each other.
    pub fn link_down(&mut self, a: u32, b: u32) {
        self.set_link(a, b, false);
    }

    /// Costs as much as finding a place in two short lists; paths are found anew when somebody next asks for one.
    fn set_link(&mut self, a: u32, b: u32, up: bool) {
        if let Some(neighbours) = &mut self.placed.neighbours {
            set_link(neighbours, a, b, up);
            self.changed();
        }
    }

    /// Who hears whom after nodes have been put elsewhere.
    pub(super) fn rearranged(&mut self) {
        if let Some(Earshot { radius, sensed }) = &mut self.earshot {
            *sensed = within(&self.placed.positions, *radius);
        }
    }

    /// A node wants to send a frame; says when to ask it, if it must be asked.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        now: Time,
        from: u32,
        frame: Frame,
    ) -> Option<Result<Option<Time>, Full>> {
        self.air.as_mut().map(|air| air.offer(now, from, frame))
    }

    /// Asks a node whether it sends now.
    #[inline]
    pub(crate) fn ask(&mut self, now: Time, from: u32) -> Turn {
        let (Some(air), Some(neighbours)) = (&mut self.air, &self.placed.neighbours) else {
            return Turn::Waits;
        };
        let far = self.earshot.as_ref().map(|earshot| &*earshot.sensed[from as usize]);
        air.ask(now, from, &neighbours[from as usize], far)
    }

    /// A frame ends. Besides what the air has destroyed, receivers lose what `loss`, cuts and trouble take.
    #[inline]
    pub(crate) fn end_frame(
        &mut self,
        now: Time,
        from: u32,
        receivers: &mut Vec<u32>,
        plans: &mut Vec<(u32, Time)>,
    ) -> Option<(Frame, u32)> {
        let mut air = self.air.take()?;
        let before = air.usage().collisions;
        let frame = air.end(now, from, receivers, plans);
        debug_assert_eq!(before, air.usage().collisions, "what is spoilt is counted as it begins");
        self.air = Some(air);
        let heard = receivers.len();
        if !self.cuts.is_empty() {
            receivers.retain(|&to| !self.cuts.contains(&(from, to)));
        }
        if self.lost_to_all() {
            receivers.clear();
        } else {
            receivers.retain(|&to| !self.hop_loses(from, to));
        }
        Some((frame, (heard - receivers.len()) as u32))
    }

    /// A node stops: gives back what it has not begun to send.
    pub(crate) fn silence(&mut self, node: u32) -> impl Iterator<Item = Frame> + use<> {
        self.air.as_mut().map(|air| air.silence(node)).into_iter().flatten()
    }
}

fn set_link(lists: &mut [Vec<u32>], a: u32, b: u32, up: bool) {
    for (from, to) in [(a, b), (b, a)] {
        let list = &mut lists[from as usize];
        match list.binary_search(&to) {
            Ok(place) if !up => {
                list.remove(place);
            }
            Err(place) if up => list.insert(place, to),
            _ => {}
        }
    }
}
