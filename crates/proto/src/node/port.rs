//! What elections say and keep, by way of the node.

use alloc::vec::Vec;

use super::{Durable, Kept, Message, Node, Sent, disk::Disk, relay::detours};
use crate::{
    id::{ElectionId, NodeId, Peer},
    machine::{Effect, EffectOf, OutboxOf},
    mechanism::paths::Paths,
    time::Time,
};

/// What an election reaches of the node while it handles something.
pub(super) struct Port<'a> {
    pub(super) now: Time,
    pub(super) me: Peer,
    pub(super) group: ElectionId,
    pub(super) out: &'a mut OutboxOf<Node>,
    pub(super) durable: &'a mut Durable,
    pub(super) disk: &'a Disk,
    pub(super) sent: &'a mut Sent,
    /// What waits for the disk.
    pub(super) held: &'a mut Vec<EffectOf<Node>>,
    /// Whether the disk has refused what it has to keep, or nobody hears it, or it nobody.
    pub(super) mute: bool,
    /// The ways to its members, if they carry each other's words.
    pub(super) paths: Option<&'a mut Paths>,
}

impl Port<'_> {
    /// Says it, unless what it may rest on is not on disk: then once it is, or never.
    fn say(&mut self, effect: EffectOf<Node>, elects: bool) {
        if self.mute {
            return;
        }
        self.sent.all += 1;
        self.sent.electing += u64::from(elects);
        match self.disk.holds(self.durable, self.group) {
            true => self.held.push(effect),
            false => self.out.push(effect),
        }
    }

    /// To one member, and by way of others if the link to it is in doubt.
    pub(super) fn send(&mut self, to: NodeId, message: Message, elects: bool) {
        let paths = self.paths.as_mut().filter(|_| !self.mute);
        let detours = paths.map(|paths| detours(self.now, self.me, to, &message, paths));
        for (by, message) in detours.into_iter().flatten() {
            self.say(Effect::Send { to: by, message }, elects);
        }
        self.say(Effect::Send { to, message }, elects);
    }

    /// To whoever is in range.
    pub(super) fn broadcast(&mut self, message: Message, elects: bool) {
        self.say(Effect::Broadcast(message), elects);
    }

    /// To everybody on the segment.
    pub(super) fn multicast(&mut self, message: Message) {
        self.say(Effect::Multicast(message), true);
    }

    /// Keeps this before anything else is said.
    pub(super) fn keep(&mut self, kept: Kept) {
        let before = self.durable.elections.get(&self.group);
        if before != Some(&kept) {
            self.durable.elections.insert(self.group, kept);
            self.disk.persist(self.durable, self.out);
        }
    }
}
