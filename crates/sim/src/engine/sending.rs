//! What machines ask for is carried out: messages get on their way, and are counted.

use super::*;

impl<M: Machine, O: Observer<M>> Sim<M, O> {
    #[inline]
    pub(super) fn carry_out(&mut self, index: u32, effect: EffectOf<M>) {
        let stays = matches!(effect, Effect::Persist(_) | Effect::Emit(_));
        let Node { status, boot, .. } = self.nodes[index as usize];
        if !stays && status == Status::Choked {
            if let Some(frozen) = self.frozen.get_mut(&index) {
                frozen.held.push(effect);
            }
            return;
        }
        match effect {
            Effect::Persist(state) => self.disks[index as usize] = Some(state),
            effect => self.send(index, boot, effect),
        }
    }

    /// Sends what is to be sent, from a node's place and as this life of it.
    #[inline]
    pub(super) fn send(&mut self, index: u32, boot: u32, effect: EffectOf<M>) {
        let Some(effect) = self.carried(peer(index, boot), effect) else { return };
        match effect {
            Effect::Send { to, message } => {
                self.hash.fold(to.get());
                let lost = self.selective_loss.as_mut().is_some_and(|loses| loses(index, &message));
                if self.network.air().is_some() && !lost {
                    return self.transmit((index, boot), Some(to), message);
                }
                let travel = match u32::try_from(to.get()) {
                    Ok(to) if (to as usize) < self.nodes.len() && !lost => {
                        self.network.unicast(index, to, &mut self.arrivals)
                    }
                    _ if lost => Travel { transmissions: 1, lost: 1, unreachable: 0 },
                    _ => Travel { unreachable: 1, ..Travel::default() },
                };
                self.dispatch((index, boot), Some(to), message, travel);
            }
            Effect::Broadcast(message) => {
                self.hash.fold(Tag::Broadcast as u64);
                if self.network.air().is_some() {
                    return self.transmit((index, boot), None, message);
                }
                let travel = self.network.broadcast(index, &mut self.arrivals);
                self.dispatch((index, boot), None, message, travel);
            }
            Effect::Multicast(message) => {
                self.hash.fold(Tag::Multicast as u64);
                if self.network.air().is_some() {
                    return self.transmit((index, boot), None, message);
                }
                let travel = self.network.multicast(index, &mut self.arrivals);
                self.dispatch((index, boot), None, message, travel);
            }
            Effect::Persist(_) | Effect::Emit(_) => {}
        }
    }

    /// Puts the copies of a message on their way.
    #[inline]
    pub(super) fn dispatch(
        &mut self,
        (from, boot): (u32, u32),
        to: Option<NodeId>,
        message: M::Message,
        travel: Travel,
    ) {
        self.count(from, to, &message, travel);
        if self.arrivals.is_empty() {
            return;
        }
        for &Arrival { to, after } in &self.arrivals {
            self.observer.travels(self.now, node_id(from), node_id(to), after, &message);
        }
        let parcel = self.parcels.store(peer(from, boot), message, self.arrivals.len() as u32);
        for arrival in self.arrivals.drain(..) {
            let at = key(self.now + arrival.after, Lane::Delivery);
            self.queue.push(at, Event { node: arrival.to, parcel });
        }
    }

    /// Counts a message that is sent; returns its bytes.
    #[inline]
    pub(super) fn count(
        &mut self,
        from: u32,
        to: Option<NodeId>,
        message: &M::Message,
        travel: Travel,
    ) -> u64 {
        self.observer.sent(node_id(from), to, message, &travel);
        let bytes = wire::datagram_len(message) as u64;
        self.hash.fold_value(message);
        self.counters.messages += 1;
        self.counters.bytes += bytes;
        self.counters.transmissions += u64::from(travel.transmissions);
        self.counters.hop_bytes += bytes * u64::from(travel.transmissions);
        self.counters.by_hops[(travel.transmissions as usize).min(LONGEST_WAY + 1)] += 1;
        self.counters.lost += u64::from(travel.lost);
        self.counters.undeliverable += u64::from(travel.unreachable);
        bytes
    }
}
