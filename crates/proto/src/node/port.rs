//! What elections say and keep, by way of the node.

use super::{Durable, Kept, Message, Node, Sent, relay::dispatch};
use crate::{
    id::{NodeId, Peer},
    machine::OutboxOf,
    mechanism::paths::Paths,
    stack::Group,
    time::Time,
};

/// What an election reaches of the node while it handles something.
pub(super) struct Port<'a> {
    pub(super) now: Time,
    pub(super) me: Peer,
    pub(super) group: Group,
    pub(super) out: &'a mut OutboxOf<Node>,
    pub(super) durable: &'a mut Durable,
    pub(super) asked: &'a mut bool,
    pub(super) sent: &'a mut Sent,
    /// Whether the disk has refused what it has to keep.
    pub(super) mute: bool,
    /// The ways to its members, if they carry each other's words.
    pub(super) paths: Option<&'a mut Paths>,
}

impl Port<'_> {
    fn count(&mut self, elects: bool) {
        self.sent.all += 1;
        self.sent.electing += u64::from(elects);
    }

    /// To one member, and by way of others if the link to it is in doubt.
    pub(super) fn send(&mut self, to: NodeId, message: Message, elects: bool) {
        if self.mute {
            return;
        }
        self.count(elects);
        if let Some(paths) = self.paths.as_mut() {
            let copies = dispatch(self.now, self.me, to, &message, paths, self.out);
            (0..copies).for_each(|_| self.count(elects));
        }
        self.out.send(to, message);
    }

    /// To whoever is in range.
    pub(super) fn broadcast(&mut self, message: Message, elects: bool) {
        if !self.mute {
            self.count(elects);
            self.out.broadcast(message);
        }
    }

    /// To everybody on the segment.
    pub(super) fn multicast(&mut self, message: Message) {
        if !self.mute {
            self.count(true);
            self.out.multicast(message);
        }
    }

    /// Keeps this before anything else is said.
    pub(super) fn keep(&mut self, kept: Kept) {
        let before = self.durable.elections.get(&self.group);
        if before != Some(&kept) {
            self.durable.elections.insert(self.group, kept);
            *self.asked = true;
            self.out.persist(self.durable.clone());
        }
    }
}
