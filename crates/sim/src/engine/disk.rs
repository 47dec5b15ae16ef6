//! Disks that fail, are slow or hang, and recover, and what machines learn of their hosts.

use super::*;

/// What a host can tell its machines about itself. A machine that cannot be told is stopped instead.
pub struct HostFeeds<M: Machine> {
    /// What it last asked to persist has not been kept.
    pub not_kept: Option<M::Feed>,
    /// It is being written, and then it is kept. A machine that cannot be told waits with its host, for no time at all.
    pub writing: Option<(M::Feed, M::Feed)>,
    /// This later life of its identity exists.
    pub superseded: Option<fn(Boot) -> M::Feed>,
}

/// Nothing: all are stopped.
impl<M: Machine> Default for HostFeeds<M> {
    fn default() -> Self {
        Self { not_kept: None, writing: None, superseded: None }
    }
}

/// What a disk is writing.
pub(super) struct Write<M: Machine> {
    state: M::Durable,
    /// When it is there.
    at: Time,
}

impl<M: Machine, O: Observer<M>> Sim<M, O> {
    /// From now on every write to a node's disk takes up to so long, at most until it is mended.
    pub fn slow_disk(&mut self, node: u32, most: Duration) {
        self.slow.insert(node, most);
        self.mark(Tag::DiskSlows, node);
    }

    /// From now on a node's disk keeps nothing new; what it has kept stays. It is the node's own, whatever life
    /// the node is in.
    pub fn fail_disk(&mut self, node: u32) {
        if self.failing.insert(node) {
            self.mark(Tag::DiskFails, node);
        }
    }

    /// A node's disk works again, and what it was writing is there in a moment.
    pub fn mend_disk(&mut self, node: u32) {
        let slow = self.slow.remove(&node).is_some();
        if self.failing.remove(&node) || slow {
            self.mark(Tag::DiskWorks, node);
        }
        if let Some(write) = self.writing.get_mut(&node).filter(|write| write.at > self.now) {
            write.at = self.now;
            self.queue.push(key(self.now, Lane::Delivery), Event { node, parcel: WRITTEN });
        }
    }

    /// What has just been asked of a node's disk: whether the drain goes on.
    pub(super) fn keeps(&mut self, index: u32, state: &M::Durable) -> bool {
        if self.failing.contains(&index) {
            self.not_kept(index);
            return false;
        }
        let most = self.slow.get(&index).copied();
        match most.zip(self.feeds.writing.clone()) {
            Some((most, (feed, _))) => {
                self.being_written(index, state.clone(), most, feed);
                false
            }
            None => true,
        }
    }

    /// Ends the drain in which something takes its time: the machine says again what need not wait for it.
    fn being_written(&mut self, index: u32, state: M::Durable, most: Duration, feed: M::Feed) {
        let (id, boot) = (u64::from(index), u64::from(self.nodes[index as usize].boot));
        let seed = self.seed.named("disk").indexed(id).indexed(boot);
        let at = self.now + seed.indexed(self.now.as_micros()).rng().up_to(most);
        assert!(
            self.writing.insert(index, Write { state, at }).is_none(),
            "{} broke the contract: it has something else kept while its disk writes",
            node_id(index),
        );
        self.queue.push(key(at, Lane::Delivery), Event { node: index, parcel: WRITTEN });
        self.mark(Tag::Writing, index);
        self.observer.writing(self.now, node_id(index));
        self.tell_emitted(index);
        self.feed(index, feed);
    }

    /// A disk may have written what it was given.
    pub(super) fn written(&mut self, index: u32) {
        if self.writing.get(&index).is_some_and(|write| write.at == self.now) {
            self.land(index);
            if let Some((_, feed)) = self.feeds.writing.clone() {
                self.feed(index, feed);
            }
        }
    }

    /// A node stops while its disk writes: nobody knows whether that is still done.
    pub(super) fn interrupt_write(&mut self, index: u32) {
        let Some(write) = self.writing.get(&index) else { return };
        let seed = self.seed.named("torn").indexed(index.into());
        match seed.indexed(write.at.as_micros()).rng().chance(0.5) {
            true => self.land(index),
            false => drop(self.writing.remove(&index)),
        }
    }

    fn land(&mut self, index: u32) {
        let Some(Write { state, .. }) = self.writing.remove(&index) else { return };
        self.mark(Tag::Written, index);
        self.observer.kept(self.now, node_id(index), &state);
        self.disks[index as usize] = Some(state);
    }

    /// Of a drain that ended early: nothing more is sent or kept.
    fn tell_emitted(&mut self, index: u32) {
        while let Some(effect) = self.outbox.pop() {
            if matches!(effect, Effect::Emit(_) | Effect::Persist(_)) {
                self.observer.effect(self.now, node_id(index), &effect);
            }
        }
    }

    /// Ends the drain in which something was not kept: the rest is a promise that might not be remembered.
    #[cold]
    fn not_kept(&mut self, index: u32) {
        self.mark(Tag::NotKept, index);
        self.observer.not_kept(self.now, node_id(index));
        self.tell_emitted(index);
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
