//! The protocols as published and the baselines they were compared with: which of them a node speaks.

use super::{
    Context, Edges, Map, Message, Order, Probes, Profile, Reading, Timer, Update, first_number,
    link_state::is_pruned,
};
use crate::{
    id::{NodeId, Peer},
    leadership::Why,
    machine::Rejected,
    time::Time,
};

use self::{cel::Cel, flooding::Flooding, gomez::Gomez, topology_aware::TopologyAware};

mod cel;
mod flooding;
mod gomez;
mod topology_aware;

#[derive(Clone, Debug)]
pub(super) enum Published {
    TopologyAware(TopologyAware),
    Cel(Cel),
    Flooding(Flooding),
    Gomez(Gomez),
}

impl Published {
    /// A node that speaks this profile, which is not the link-state core's, and what counts as a link of its map.
    pub(super) fn new(me: Peer, profile: Profile) -> (Edges, Self) {
        match profile {
            Profile::TopologyAware { tick, probes } => {
                (Edges::AsStored, Self::TopologyAware(TopologyAware::new(me.id, tick, probes)))
            }
            Profile::Cel { rho } => (Edges::AsStored, Self::Cel(Cel::new(me.id, rho))),
            Profile::Flooding { reading, period, timeout, numbered } => {
                let flooding = Flooding::new(me, reading, period, timeout, numbered);
                (Edges::Mutual, Self::Flooding(flooding))
            }
            Profile::Gomez { order, period } => {
                (Edges::Mutual, Self::Gomez(Gomez::new(me, order, period)))
            }
            Profile::LinkState(_) => unreachable!("the caller has taken this one"),
        }
    }

    /// What it knows; `None` for the baselines, which have no map.
    pub(super) const fn map(&self) -> Option<&Map> {
        match self {
            Self::TopologyAware(it) => Some(&it.map),
            Self::Cel(it) => Some(&it.map),
            Self::Flooding(_) | Self::Gomez(_) => None,
        }
    }

    /// The map to find the leader on, or the leader itself.
    pub(super) fn followed(&self) -> Result<&Map, NodeId> {
        match self {
            Self::TopologyAware(it) => Ok(&it.map),
            Self::Cel(it) => Ok(&it.map),
            Self::Flooding(it) => Err(it.leader()),
            Self::Gomez(it) => Err(it.leader()),
        }
    }

    /// Why the leader leads, where no map says so.
    pub(super) fn why(&self) -> Option<Why> {
        match self {
            Self::TopologyAware(_) | Self::Cel(_) => None,
            Self::Flooding(it) => Some(it.why()),
            Self::Gomez(it) => Some(it.why()),
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_>) {
        match self {
            Self::TopologyAware(it) => it.start(context),
            Self::Cel(_) => {}
            Self::Flooding(it) => it.start(context),
            Self::Gomez(it) => it.start(context),
        }
    }

    pub(super) fn hear(
        &mut self,
        from: Peer,
        message: &Message,
        context: &mut Context<'_>,
    ) -> Result<(), Rejected> {
        match (self, message) {
            (Self::TopologyAware(it), Message::Known(entries)) => it.learn(entries),
            (Self::TopologyAware(it), Message::Updates(updates)) => it.apply(updates),
            (Self::Cel(it), Message::Known(entries)) => it.learn(entries, context),
            (Self::Flooding(it), &Message::Claim { leader, value, sequence }) => {
                it.hear(leader, value, sequence, context);
            }
            (Self::Gomez(it), &Message::Join { id, born, sequence }) => {
                it.on_join(from.id, id, born, sequence, context);
            }
            (Self::Gomez(it), &Message::Lead { id, born, size, sequence }) => {
                it.on_lead(from.id, gomez::Claim { id, born, size, sequence }, context);
            }
            _ => return Err(Rejected::Unsolicited { from }),
        }
        Ok(())
    }

    pub(super) fn due(&mut self, context: &mut Context<'_>) {
        match self {
            Self::TopologyAware(it) => it.due(context),
            Self::Cel(_) => {}
            Self::Flooding(it) => it.due(context),
            Self::Gomez(it) => it.due(context),
        }
    }

    /// A neighbour was heard, perhaps not for the first time.
    pub(super) fn up(&mut self, id: NodeId, new: bool, degree: u64, context: &mut Context<'_>) {
        match self {
            Self::TopologyAware(it) => it.up(id, new, context),
            Self::Cel(it) if new => it.up(id, context),
            Self::Flooding(it) if new => it.measure(degree, context),
            Self::Cel(_) | Self::Flooding(_) | Self::Gomez(_) => {}
        }
    }

    pub(super) fn down(&mut self, id: NodeId, degree: u64, context: &mut Context<'_>) {
        match self {
            Self::TopologyAware(it) => it.down(id),
            Self::Cel(it) => it.down(id, context),
            Self::Flooding(it) => it.measure(degree, context),
            Self::Gomez(_) => {}
        }
    }

    pub(super) fn deadlines(&self, mut consider: impl FnMut(Time, Timer)) {
        match self {
            Self::TopologyAware(it) => consider(it.tick(), Timer::Tick),
            Self::Cel(_) => {}
            Self::Flooding(it) => it.deadlines(consider),
            Self::Gomez(it) => it.deadlines(consider),
        }
    }
}
