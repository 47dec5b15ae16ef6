//! Where others are, and who is near, as far as positions are known.

use bellwether_proto::{Input, NodeId, Time, membership::medley::ContactChange, stack::Message};

use super::Core;
use crate::handle::Inbox;

/// Members that something said to everybody in reach is told, where there is no radio: gossip does the rest.
const REACH: usize = 4;

impl Core {
    /// The nearest, or any if nobody's place is known.
    pub(super) fn tell_some(&mut self, message: &Message) {
        let mut members: Vec<NodeId> =
            self.stack.membership().members().map(|member| member.id).collect();
        for at in 0..members.len().min(REACH) {
            let other = at + self.rng.below((members.len() - at) as u64) as usize;
            members.swap(at, other);
        }
        // Whose place is unknown keeps the order that was drawn, behind the others.
        members.sort_by(|&a, &b| self.metres_to(a).total_cmp(&self.metres_to(b)));
        members.truncate(REACH);
        members.into_iter().for_each(|id| self.send(id, message));
    }

    /// Tells the membership how far everybody is, in links: who is among the nearest is a neighbour, and the farthest of
    /// those is one link away. Told metres, it would believe that wide networks lose more.
    pub(super) fn measure(&mut self, now: Time, inbox: &Inbox) {
        let metres = |&id: &NodeId| (self.metres_to(id), id);
        let mut known: Vec<(f32, NodeId)> = self.records.keys().map(metres).collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut near = known.iter().take(REACH).map(|&(metres, _)| metres);
        let link = near.rfind(|metres| metres.is_finite() && *metres > 0.0).unwrap_or(1.0);
        for (rank, (metres, id)) in known.into_iter().enumerate() {
            let reading = metres.is_finite().then_some((metres / link, rank < REACH));
            let Some(record) = self.records.get_mut(&id) else { continue };
            if record.told != reading {
                record.told = reading;
                let (distance, neighbour) = reading.unwrap_or((f32::NAN, false));
                let change = ContactChange::Near { id, distance, neighbour };
                self.input(now, Input::Feed(change), inbox);
            }
        }
    }

    /// Infinite if unknown.
    fn metres_to(&self, id: NodeId) -> f32 {
        let there = self.records.get(&id).and_then(|record| record.position);
        let between = self.settings.about.position.zip(there);
        between.map_or(f32::INFINITY, |(here, there)| here.distance(there))
    }
}
