//! Where others are, and who is near, as far as positions are known.

use alloc::vec::Vec;

use super::Node;
use crate::{
    id::NodeId,
    machine::{Input, Machine as _, OutboxOf},
    membership::medley::ContactChange,
    stack,
    time::Time,
};

/// Members that something said to everybody in reach is told, where there is no radio: gossip does the rest.
const REACH: usize = 4;

impl Node {
    /// Tells the nearest, or any if nobody's place is known.
    pub(super) fn tell_some(
        &mut self,
        now: Time,
        message: &stack::Message,
        out: &mut OutboxOf<Self>,
    ) {
        let mut members: Vec<NodeId> =
            self.stack.membership().members().map(|member| member.id).collect();
        for at in 0..members.len().min(REACH) {
            let other = at + self.rng.below((members.len() - at) as u64) as usize;
            members.swap(at, other);
        }
        // Whose place is unknown keeps the order that was drawn, behind the others.
        members.sort_by(|&a, &b| self.metres_to(a).total_cmp(&self.metres_to(b)));
        members.truncate(REACH);
        members.into_iter().for_each(|id| self.send_stack(now, id, message.clone(), out));
    }

    pub(super) fn tell_all(
        &mut self,
        now: Time,
        message: &stack::Message,
        out: &mut OutboxOf<Self>,
    ) {
        let members: Vec<NodeId> =
            self.stack.membership().members().map(|member| member.id).collect();
        members.into_iter().for_each(|id| self.send_stack(now, id, message.clone(), out));
    }

    /// Tells the membership how far everybody is, in links: who is among the nearest is a neighbour, and the farthest of
    /// those is one link away. Told metres, it would believe that wide networks lose more.
    pub(super) fn measure(&mut self, now: Time) {
        let metres = |&id: &NodeId| (self.metres_to(id), id);
        let mut known: Vec<(f32, NodeId)> = self.known.keys().map(metres).collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut near = known.iter().take(REACH).map(|&(metres, _)| metres);
        let link = near.rfind(|metres| metres.is_finite() && *metres > 0.0).unwrap_or(1.0);
        for (rank, (metres, id)) in known.into_iter().enumerate() {
            let reading = metres.is_finite().then_some((metres / link, rank < REACH));
            let Some(known) = self.known.get_mut(&id) else { continue };
            if known.told != reading {
                known.told = reading;
                let (distance, neighbour) = reading.unwrap_or((f32::NAN, false));
                let change = ContactChange::Near { id, distance, neighbour };
                let told = self.stack.handle(now, Input::Feed(change), &mut self.below);
                debug_assert_eq!(told, Ok(()), "a feed is never refused");
            }
        }
    }

    /// Infinite if unknown.
    fn metres_to(&self, id: NodeId) -> f32 {
        let there = self.known.get(&id).and_then(|known| known.position);
        let between = self.plan.about.position.zip(there);
        between.map_or(f32::INFINITY, |(here, there)| here.distance(there))
    }
}
