//! Messages that travel as bytes, where what they are written as matters.

use bellwether_proto::{Effect, EffectOf, Machine, Peer};

use super::Sim;

/// Writes what this life of a node says and reads it again, as those do that hear it; `None` if they cannot.
pub type Carrier<T> = Box<dyn FnMut(Peer, &T) -> Option<T>>;

impl<M: Machine, O> Sim<M, O> {
    /// Lets messages travel as bytes. Without, what is said is heard.
    pub fn with_carrier(mut self, carrier: Option<Carrier<M::Message>>) -> Self {
        self.carrier = carrier;
        self
    }

    pub(super) fn carried(&mut self, from: Peer, effect: EffectOf<M>) -> Option<EffectOf<M>> {
        let Some(carrier) = &mut self.carrier else { return Some(effect) };
        Some(match effect {
            Effect::Send { to, message } => Effect::Send { to, message: carrier(from, &message)? },
            Effect::Broadcast(message) => Effect::Broadcast(carrier(from, &message)?),
            Effect::Multicast(message) => Effect::Multicast(carrier(from, &message)?),
            Effect::Persist(_) | Effect::Emit(_) => effect,
        })
    }
}
