//! Lives of nodes: how they start, are frozen, leave and stop.

use super::*;

impl<M: Machine, O: Observer<M>> Sim<M, O> {
    /// Starts a node in a new life. Does nothing if it is running.
    pub fn start(&mut self, node: u32, state: State) {
        self.start_all(&[node], state);
    }

    /// Starts nodes together, each in a new life. Those that are running are left alone.
    pub fn start_all(&mut self, nodes: &[u32], state: State) {
        let running = |status| {
            matches!(status, Status::Up | Status::Leaving | Status::Paused | Status::Choked)
        };
        let mut started = nodes.to_vec();
        started.retain(|&node| !running(self.status(node)));
        started.iter().for_each(|&node| self.boot(node, state));
        self.observer.topology(self.now, &self.network);
        started.iter().for_each(|&node| self.input(node, Tag::Start, Input::Start));
    }

    pub(super) fn boot(&mut self, node: u32, state: State) {
        let slot = node as usize;
        if state == State::Lost {
            self.disks[slot] = None;
        }
        let boot = self.nodes[slot].boot + 1;
        let seed = self.seed.indexed(u64::from(node)).indexed(u64::from(boot));
        let machine = (self.build)(peer(node, boot), seed, self.disks[slot].clone());
        self.nodes[slot] =
            Node { machine: Some(machine), wake: Time::NEVER, boot, status: Status::Up };
        self.seals.renew(node, boot);
        self.network.set_up(node, true);
        self.observer.started(self.now, node_id(node), state);
    }

    /// Stops a node at once. Does nothing if it is not running.
    pub fn crash(&mut self, node: u32) {
        if !matches!(self.status(node), Status::Absent | Status::Down | Status::Left) {
            self.stop(node, Status::Down);
        }
    }

    /// Asks a node to leave in good order. Does nothing if it is not up.
    pub fn leave(&mut self, node: u32) {
        if self.status(node) == Status::Up {
            self.nodes[node as usize].status = Status::Leaving;
            // It may say goodbye for a while, but from now on nobody waits for it.
            self.network.set_up(node, false);
            self.observer.topology(self.now, &self.network);
            self.input(node, Tag::Leave, Input::Leave);
        }
    }

    /// Freezes a node, which from now on keeps at most `buffer` datagrams. Does nothing if not up.
    pub fn pause(&mut self, node: u32, buffer: u32) {
        self.hold(node, Status::Paused, Tag::Pause, buffer);
    }

    /// Stops a node's traffic both ways while it runs on; at most `buffer` datagrams are kept for it. Does
    /// nothing if not up.
    pub fn choke(&mut self, node: u32, buffer: u32) {
        self.hold(node, Status::Choked, Tag::Choke, buffer);
    }

    fn hold(&mut self, node: u32, status: Status, tag: Tag, buffer: u32) {
        if self.status(node) == Status::Up {
            self.nodes[node as usize].status = status;
            let (parcels, feeds, held) = (Vec::new(), Vec::new(), Vec::new());
            self.frozen.insert(node, Frozen { parcels, feeds, held, capacity: buffer as usize });
            self.mark(tag, node);
            self.observer.paused(self.now, node_id(node));
        }
    }

    /// Wakes a frozen node: it reads its buffer, then looks at its clock. What a choked one wanted to send
    /// goes out first.
    pub fn resume(&mut self, node: u32) {
        let before = self.status(node);
        if !matches!(before, Status::Paused | Status::Choked) {
            return;
        }
        self.nodes[node as usize].status = Status::Up;
        if before == Status::Paused {
            // A wake-up that came during the pause was let go.
            self.nodes[node as usize].wake = Time::NEVER;
        }
        self.mark(Tag::Resume, node);
        self.observer.resumed(self.now, node_id(node));
        if let Some(Frozen { parcels, feeds, held, .. }) = self.frozen.remove(&node) {
            held.into_iter().for_each(|effect| self.carry_out(node, effect));
            parcels.into_iter().for_each(|parcel| self.deliver(node, parcel));
            feeds.into_iter().for_each(|feed| self.feed(node, feed));
        }
        self.rearm(node);
    }

    pub(super) fn stop(&mut self, index: u32, status: Status) {
        self.interrupt_write(index);
        let node = &mut self.nodes[index as usize];
        node.machine = None;
        node.wake = Time::NEVER;
        node.status = status;
        for parcel in self.frozen.remove(&index).into_iter().flat_map(|frozen| frozen.parcels) {
            self.parcels.release(parcel);
        }
        self.silence(index);
        self.network.set_up(index, false);
        self.mark(Tag::Stop, index);
        self.observer.stopped(self.now, node_id(index));
        self.observer.topology(self.now, &self.network);
    }

    pub(super) fn buffer(&mut self, index: u32, parcel: u32) {
        let Some(frozen) = self.frozen.get_mut(&index) else {
            unreachable!("paused nodes have one")
        };
        if frozen.parcels.len() < frozen.capacity {
            frozen.parcels.push(parcel);
        } else {
            self.counters.undeliverable += 1;
            self.parcels.release(parcel);
        }
    }
}
