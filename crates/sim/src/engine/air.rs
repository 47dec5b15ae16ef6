//! Messages that go over the air: queued, sent when their turn comes, and delivered by the end of their frame.

use super::*;
use crate::world::{
    Travel,
    radio::{self, Frame, Turn},
};

impl<M: Machine, O: Observer<M>> Sim<M, O> {
    /// Hands a message to the radio of its sender, which is in this life.
    pub(super) fn transmit(
        &mut self,
        (from, boot): (u32, u32),
        to: Option<NodeId>,
        message: M::Message,
    ) {
        let receiver = match to.map(|to| u32::try_from(to.get())) {
            None => None,
            Some(Ok(to)) if (to as usize) < self.nodes.len() => Some(to),
            Some(_) => {
                let travel = Travel { unreachable: 1, ..Travel::default() };
                return self.dispatch((from, boot), to, message, travel);
            }
        };
        let once = Travel { transmissions: 1, ..Travel::default() };
        // The air carries the message and headers of its own, not the seal of datagrams.
        let bytes = self.count(from, to, &message, once) - wire::SEAL_LEN as u64;
        let parcel = self.parcels.store(peer(from, boot), message, 1);
        let frame = Frame { parcel, to: receiver, airtime: radio::airtime(bytes) };
        match self.network.offer(self.now, from, frame) {
            Some(Ok(Some(at))) => self.ask_at(at, from),
            Some(Ok(None)) => {}
            None | Some(Err(radio::Full)) => {
                self.counters.undeliverable += 1;
                self.parcels.release(parcel);
            }
        }
    }

    /// A node may send now.
    #[inline]
    pub(super) fn ask(&mut self, node: u32) {
        match self.network.ask(self.now, node) {
            Turn::Sends(until) => {
                self.queue.push(key(until, Lane::Delivery), Event { node, parcel: FRAME_ENDS });
            }
            Turn::Later(at) => self.ask_at(at, node),
            Turn::Waits => {}
        }
    }

    /// The frame that a node has been sending ends.
    #[inline]
    pub(super) fn frame_ends(&mut self, node: u32) {
        let mut receivers = std::mem::take(&mut self.receivers);
        let mut plans = std::mem::take(&mut self.plans);
        let ended = self.network.end_frame(self.now, node, &mut receivers, &mut plans);
        for (node, at) in plans.drain(..) {
            self.ask_at(at, node);
        }
        self.plans = plans;
        if let Some((frame, lost)) = ended {
            self.counters.lost += u64::from(lost);
            self.parcels.share(frame.parcel, receivers.len() as u32);
            for &to in &receivers {
                let message = self.parcels.message(frame.parcel);
                self.observer.travels(
                    self.now,
                    node_id(node),
                    node_id(to),
                    Duration::ZERO,
                    message,
                );
            }
            receivers.drain(..).for_each(|to| self.deliver(to, frame.parcel));
            self.parcels.release(frame.parcel);
        }
        self.receivers = receivers;
    }

    #[inline]
    fn ask_at(&mut self, at: Time, node: u32) {
        self.queue.push(key(at, Lane::Timer), Event { node, parcel: ASK });
    }

    /// Forgets what a node that stops has not begun to send.
    pub(super) fn silence(&mut self, node: u32) {
        for frame in self.network.silence(node) {
            self.parcels.release(frame.parcel);
        }
    }
}
