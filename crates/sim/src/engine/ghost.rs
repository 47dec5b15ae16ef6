//! Cloned identities: two lives of one node at once.
//!
//! The later life, the copy, has the node's place and all that is sent to it, as the address tables of real agents
//! follow the newest life. The earlier one runs on as a *ghost*: it wakes up, and what it says leaves from the same
//! place under its own boot number, but it hears nothing. What it is told comes from the seal of its receivers, which
//! refuses an earlier life once a later one has been heard, and says so. That answer is the hosts' own: it travels and
//! is lost as a message is, but is not counted as one.

use super::*;

/// An earlier life that runs on.
pub(super) struct Ghost<M> {
    /// `None` once it has ended.
    machine: Option<M>,
    place: u32,
    boot: u32,
    wake: Time,
    /// It goes as the clock of its place did.
    clock: Option<Clock>,
    superseded: bool,
}

/// Somebody's answer to a ghost.
pub(super) struct Notice {
    ghost: u32,
    by: u32,
    /// The latest life heard there.
    boot: u32,
}

/// For each identity that was cloned, the latest life of it that each node has heard in this life of its own. Kept when
/// its ghosts have ended: what they said may still be on its way.
#[derive(Default)]
pub(super) struct Seals(BTreeMap<u32, Vec<u32>>);

impl Seals {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a node takes what a sender says: not if it has heard a later life of it.
    pub(super) fn hears(&mut self, node: u32, sender: Peer) -> bool {
        let Some(lives) = self.0.get_mut(&(sender.id.get() as u32)) else { return true };
        let (latest, boot) = (&mut lives[node as usize], sender.boot.get() as u32);
        *latest = boot.max(*latest);
        boot == *latest
    }

    /// A node begins a new life: it knows only itself.
    pub(super) fn renew(&mut self, node: u32, boot: u32) {
        for (&cloned, lives) in &mut self.0 {
            lives[node as usize] = if cloned == node { boot } else { 0 };
        }
    }
}

impl<M: Machine, O: Observer<M>> Sim<M, O> {
    /// Starts a copy of a node's disk as its next life, while the present one runs on as a ghost. Does nothing if the
    /// node is not up.
    ///
    /// A ghost ends when it has been told that it is one and its machine wants nothing more.
    pub fn clone_identity(&mut self, node: u32) {
        let slot = node as usize;
        let nodes = self.nodes.len();
        let Node { machine, wake, boot, status: Status::Up } = &mut self.nodes[slot] else {
            return;
        };
        let (machine, boot) = (machine.take(), *boot);
        *wake = Time::NEVER;
        self.interrupt_write(node);
        self.seals.0.entry(node).or_insert_with(|| vec![0; nodes]);
        self.mark(Tag::Clone, node);
        self.observer.stopped(self.now, node_id(node));
        if let Some(machine) = &machine {
            self.observer.ghost_handled(self.now, node_id(node), machine);
        }
        let clock = self.clocks.get(slot).copied();
        let wake = Time::NEVER;
        self.ghosts.push(Ghost { machine, place: node, boot, wake, clock, superseded: false });
        self.rearm_ghost(self.ghosts.len() as u32 - 1);
        self.boot(node, State::Kept);
        self.observer.topology(self.now, &self.network);
        self.input(node, Tag::Start, Input::Start);
    }

    /// The earlier lives that still run beside later ones.
    pub fn ghosts(&self) -> impl Iterator<Item = (Peer, &M)> {
        self.ghosts
            .iter()
            .filter_map(|ghost| Some((peer(ghost.place, ghost.boot), ghost.machine.as_ref()?)))
    }

    /// Does not hand over what an earlier life says, and tells it if it still runs.
    #[cold]
    pub(super) fn refuse(&mut self, by: u32, parcel: u32) {
        let sender = self.parcels.sender(parcel);
        self.parcels.release(parcel);
        self.counters.undeliverable += 1;
        self.mark(Tag::Refuse, by);
        self.hash.fold_value(&sender);
        let is_sender =
            |ghost: &Ghost<M>| ghost.machine.is_some() && peer(ghost.place, ghost.boot) == sender;
        let Some(ghost) = self.ghosts.iter().position(is_sender) else { return };
        let place = self.ghosts[ghost].place;
        let Some(boot) = self.seals.0.get(&place).map(|lives| lives[by as usize]) else { return };
        // Over the air too: an answer is not worth a frame of its own.
        self.network.unicast(by, place, &mut self.arrivals);
        for arrival in self.arrivals.drain(..) {
            let at = key(self.now + arrival.after, Lane::Delivery);
            self.queue.push(at, Event { node: self.notices.len() as u32, parcel: NOTICE });
            self.notices.push(Notice { ghost: ghost as u32, by, boot });
        }
    }

    /// An answer arrives at a ghost.
    pub(super) fn notice(&mut self, index: u32) {
        let Notice { ghost: index, by, boot } = self.notices[index as usize];
        let ghost = &mut self.ghosts[index as usize];
        if ghost.machine.is_none() || !self.network.admits(by, ghost.place) {
            return;
        }
        ghost.superseded = true;
        self.mark_ghost(Tag::Superseded, index);
        self.hash.fold(u64::from(boot));
        match self.feeds.superseded {
            Some(feed) => self.input_ghost(index, Input::Feed(feed(Boot::new(boot.into())))),
            None => self.end_ghost(index),
        }
    }

    pub(super) fn wake_ghost(&mut self, index: u32) {
        let now = self.now;
        let ghost = &mut self.ghosts[index as usize];
        let Some(machine) = ghost.machine.as_ref().filter(|_| ghost.wake == now) else { return };
        ghost.wake = Time::NEVER;
        let local = ghost.clock.map_or(now, |clock| clock.read(now));
        if machine.deadline().is_none_or(|(at, _)| at > local) {
            return self.rearm_ghost(index);
        }
        self.mark_ghost(Tag::GhostWakes, index);
        self.input_ghost(index, Input::Timeout);
        let due = self.ghosts[index as usize].machine.as_ref().and_then(M::deadline);
        assert!(
            due.is_none_or(|(at, _)| at > local),
            "{} broke the contract: {due:?} is still due after the timeout at {local}",
            node_id(self.ghosts[index as usize].place),
        );
    }

    /// The drain rule holds for ghosts too. What they persist goes to a disk of their own, which nobody will read.
    fn input_ghost(&mut self, index: u32, input: InputOf<'_, M>) {
        let Ghost { machine, place, boot, clock, .. } = &mut self.ghosts[index as usize];
        let (place, boot) = (*place, *boot);
        let local = clock.map_or(self.now, |clock| clock.read(self.now));
        let Some(machine) = machine else { return };
        let result = machine.handle(local, input, &mut self.outbox);
        self.counters.events += 1;
        if let Err(why) = result {
            self.counters.rejected += 1;
            *self.rejected.entry(why.reason()).or_insert(0) += 1;
        }
        while let Some(effect) = self.outbox.pop() {
            self.send(place, boot, effect);
        }
        if let Some(machine) = &self.ghosts[index as usize].machine {
            self.observer.ghost_handled(self.now, node_id(place), machine);
        }
        self.rearm_ghost(index);
    }

    fn rearm_ghost(&mut self, index: u32) {
        let ghost = &self.ghosts[index as usize];
        let place = ghost.place;
        let Some(machine) = &ghost.machine else { return };
        let Some((deadline, _)) = machine.deadline() else {
            if ghost.superseded {
                self.end_ghost(index);
            }
            return;
        };
        let at = ghost.clock.map_or(deadline, |clock| clock.when(deadline)).max(self.now);
        let at = self.waking(place, deadline, at);
        let ghost = &mut self.ghosts[index as usize];
        if at < ghost.wake && at < LAST {
            ghost.wake = at;
            self.queue.push(key(at, Lane::Timer), Event { node: index, parcel: GHOST_WAKES });
        }
    }

    fn end_ghost(&mut self, index: u32) {
        let ghost = &mut self.ghosts[index as usize];
        ghost.machine = None;
        let place = ghost.place;
        self.mark_ghost(Tag::GhostGone, index);
        self.observer.ghost_gone(self.now, node_id(place));
    }

    fn mark_ghost(&mut self, tag: Tag, index: u32) {
        let Ghost { place, boot, .. } = self.ghosts[index as usize];
        self.mark(tag, place);
        self.hash.fold(u64::from(boot));
    }
}
