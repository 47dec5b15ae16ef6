//! Words that members carry on for each other where links are broken: of the membership, and of leased and learned
//! elections, each with ways of its own, as only those who talk to each other know whether they hear each other.
//!
//! A carrier is believed about whose word it brings, as everybody who has the key of the cluster is. It adds nothing and
//! keeps nothing: a word that comes late is late, as it would be by a slow network, and elections reckon with that.

use alloc::{boxed::Box, vec::Vec};

use super::{Carried, Contest, Message, Node};
use crate::{
    id::{NodeId, Peer},
    machine::{OutboxOf, Rejected},
    mechanism::paths::{Brought, Detour, Paths},
    time::Time,
};

/// What others are to carry of a word that is sent directly as well, if the link is in doubt.
pub(super) fn detours(
    now: Time,
    me: Peer,
    to: NodeId,
    message: &Message,
    paths: &mut Paths,
) -> Vec<(NodeId, Message)> {
    let Detour { by, hops, told, unheard } = paths.send(now, to, message.awaits_answer());
    if by.is_empty() {
        return Vec::new();
    }
    let (number, body) = (paths.number(), Box::new(message.clone()));
    let carried = Carried { origin: me, to, number, unheard, hops, told, body };
    by.into_iter().map(|by| (by, Message::Carried(carried.clone()))).collect()
}

impl Node {
    /// The ways between those that such a message is between.
    pub(super) fn paths_for(&mut self, message: &Message) -> Option<&mut Paths> {
        match message {
            Message::Stack(_) => Some(&mut self.paths),
            Message::Leased(group, _) | Message::Learned(group, _) => {
                let at = self.position(*group).ok()?;
                self.seats[at].paths.as_mut()
            }
            Message::Carried(carried) => self.paths_for(&carried.body),
            Message::Announced(..) | Message::Central(..) => None,
        }
    }

    /// A packet of this node has come without a detour: whatever it says, the link from there is good.
    pub(super) fn heard_directly(&mut self, now: Time, from: Peer) {
        self.paths.met(from);
        self.paths.heard(now, from.id);
        for seat in &mut self.seats {
            if let Some(paths) = seat.paths.as_mut().filter(|_| seat.contest.names(from.id)) {
                paths.heard(now, from.id);
            }
        }
    }

    /// Whether we would say something to this node ourselves.
    fn knows(&self, to: NodeId, message: &Message) -> bool {
        let listed = || self.stack.membership().state_of(to).is_some();
        match message.election().map(|group| self.position(group)) {
            Some(Ok(at)) => match &self.seats[at].contest {
                Contest::Eventual => listed(),
                contest => contest.names(to),
            },
            Some(Err(_)) => false,
            None => listed(),
        }
    }

    pub(super) fn on_carried(
        &mut self,
        now: Time,
        from: Peer,
        carried: &Carried,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let Carried { origin, to, number, unheard, hops, .. } = *carried;
        if origin.id == self.me.id {
            return Err(Rejected::Loopback { from: origin });
        }
        let ours = to == self.me.id;
        if !ours && !self.knows(to, &carried.body) {
            return Err(Rejected::NotAMember { from });
        }
        let word = Brought { origin, number, ours, unheard };
        let me = self.me.id;
        let Some(paths) = self.paths_for(&carried.body) else {
            return Err(Rejected::Contradictory { from });
        };
        if !paths.brought(now, from.id, word) {
            // One of several copies.
            return Ok(());
        }
        if ours {
            return self.on_word(now, origin, from.id, &carried.body, out);
        }
        let mut told = carried.told.clone();
        told.extend([me, origin.id, from.id]);
        told.sort_unstable();
        told.dedup();
        let detour = paths.carry(now, to, &told, hops, carried.body.awaits_answer());
        told.extend(&detour.told);
        let carried = Carried { told, hops: detour.hops, ..carried.clone() };
        for by in detour.by.into_iter().chain([to]) {
            out.send(by, Message::Carried(carried.clone()));
        }
        Ok(())
    }
}

impl Contest {
    /// Whether the settings of the election name this node, or it takes part.
    fn names(&self, id: NodeId) -> bool {
        match self {
            Self::Leased(leased) => leased.knows(id),
            Self::Learned(learned) => learned.knows(id),
            Self::Eventual | Self::Announced(_) | Self::Central(_) => false,
        }
    }
}
