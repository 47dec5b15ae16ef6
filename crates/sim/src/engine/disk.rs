//! Disks that fail and recover, and what machines learn of their hosts.

use super::*;

/// What a host can tell its machines about itself. A machine that cannot be told is stopped instead.
pub struct HostFeeds<M: Machine> {
    /// What it last asked to persist has not been kept.
    pub not_kept: Option<M::Feed>,
    /// This later life of its identity exists.
    pub superseded: Option<fn(Boot) -> M::Feed>,
}

/// Nothing: all are stopped.
impl<M: Machine> Default for HostFeeds<M> {
    fn default() -> Self {
        Self { not_kept: None, superseded: None }
    }
}

impl<M: Machine, O: Observer<M>> Sim<M, O> {
    /// From now on a node's disk keeps nothing new; what it has kept stays. It is the node's own, whatever life
    /// the node is in.
    pub fn fail_disk(&mut self, node: u32) {
        if self.failing.insert(node) {
            self.mark(Tag::DiskFails, node);
        }
    }

    /// A node's disk works again.
    pub fn mend_disk(&mut self, node: u32) {
        if self.failing.remove(&node) {
            self.mark(Tag::DiskWorks, node);
        }
    }

    /// Ends the drain in which something was not kept: the rest is a promise that might not be remembered.
    #[cold]
    pub(super) fn not_kept(&mut self, index: u32) {
        self.mark(Tag::NotKept, index);
        self.observer.not_kept(self.now, node_id(index));
        while let Some(effect) = self.outbox.pop() {
            if matches!(effect, Effect::Emit(_) | Effect::Persist(_)) {
                self.observer.effect(self.now, node_id(index), &effect);
            }
        }
        let Some(feed) = self.feeds.not_kept.clone() else { return self.stop(index, Status::Down) };
        // Nobody sees the machine before it knows: it may name itself on the strength of what is not kept.
        self.unkept += 1;
        assert!(
            self.unkept <= MOST_UNKEPT,
            "{} broke the contract: it goes on persisting at one instant though nothing is kept",
            node_id(index),
        );
        self.feed(index, feed);
        self.unkept -= 1;
    }
}

/// Failures in a row, at one instant, that no machine needs to give up what it has. Arbitrary: each of the elections
/// in one node may have something to put away.
const MOST_UNKEPT: u32 = 64;
