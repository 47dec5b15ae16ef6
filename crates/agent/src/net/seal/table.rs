//! The lives we know of: which one to seal for, which have proved themselves, and that some are forgotten.
//!
//! A life that has proved itself is known by a window over its numbers, so that nothing of it is believed twice. There are
//! [`MOST_PEERS`] places. From three quarters on, whoever has not been heard for [`FORGET_AFTER`] is forgotten. A recording of
//! it would then be new to us, so from the first time that happens no life is believed on a message any more: it has to
//! answer a hello that we sent later than that. See the addendum of ADR 7.

use std::collections::BTreeMap;

use bellwether_proto::{Boot, Duration, NodeId, Peer, Time, mechanism::replay::ReplayWindow};
use chacha20poly1305::ChaCha20Poly1305;

use super::packet::Versions;
use crate::net::key::Fingerprint;

/// How many peers are remembered at a time.
pub(super) const MOST_PEERS: usize = 16_384;
/// From here on those are forgotten that have not been heard for long, and it is said if there are none.
pub(super) const CROWDED: usize = MOST_PEERS / 4 * 3;
/// Whoever lives and means us has said something meanwhile, or is asked again.
pub(super) const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Between two times of looking whom to forget: answers to our hellos from before do not count afterwards.
const TIDY_EVERY: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Table {
    peers: BTreeMap<NodeId, Known>,
    /// The number that our next packet had when lives were last forgotten.
    forgot: Option<u64>,
    tidied: Option<Time>,
    /// The version in which to speak to everybody, unless somebody has come or speaks otherwise since.
    group: Option<u8>,
}

pub(super) struct Known {
    /// The one to seal for.
    pub(super) life: Boot,
    /// What that life says it speaks.
    pub(super) speaks: Option<Versions>,
    pub(super) proven: Option<Proven>,
}

/// A life that has sealed something for ours.
pub(super) struct Proven {
    pub(super) boot: Boot,
    pub(super) window: ReplayWindow,
    /// Streams share the numbers, but take longer to arrive than a busy sender's window.
    pub(super) streams: Option<Box<ReplayWindow>>,
    pub(super) under: Fingerprint,
    pub(super) cipher: ChaCha20Poly1305,
    pub(super) heard: Time,
    /// The version of what it sent last.
    pub(super) version: u8,
}

impl Table {
    pub(super) fn get(&self, id: NodeId) -> Option<&Known> {
        self.peers.get(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (NodeId, &Proven)> {
        self.peers.iter().filter_map(|(&id, known)| Some((id, known.proven.as_ref()?)))
    }

    /// A member's word that this life is there.
    pub(super) fn learn(&mut self, peer: Peer, next: u64) {
        if let Some(known) = self.peers.get_mut(&peer.id) {
            let proven = known.proven.as_ref().map(|proven| proven.boot);
            if peer.boot > known.life && proven.is_none_or(|proven| is_plausible(proven, peer.boot))
            {
                // Another life may speak other versions.
                (known.life, known.speaks, self.group) = (peer.boot, None, None);
            }
        } else if self.make_room(None, next) {
            let known = Known { life: peer.boot, speaks: None, proven: None };
            self.peers.insert(peer.id, known);
            self.group = None;
        }
    }

    /// What a life says in answer to us: it is the one to seal for, and speaks these versions.
    pub(super) fn welcomed(&mut self, peer: Peer, speaks: Versions) {
        if let Some(known) = self.peers.get_mut(&peer.id) {
            (known.life, known.speaks, self.group) = (peer.boot, Some(speaks), None);
        }
    }

    /// A life has proved itself. Whether there was room for it.
    pub(super) fn prove(&mut self, now: Time, id: NodeId, proven: Proven, next: u64) -> bool {
        if !self.peers.contains_key(&id) && !self.make_room(Some(now), next) {
            return false;
        }
        self.group = None;
        let known = Known { life: proven.boot, speaks: None, proven: Some(proven) };
        self.peers.insert(id, known);
        true
    }

    pub(super) fn newest_life(&self, id: NodeId) -> Option<Boot> {
        Some(self.peers.get(&id)?.proven.as_ref()?.boot)
    }

    pub(super) fn proven(&self, peer: Peer) -> Option<&Proven> {
        let proven = self.peers.get(&peer.id)?.proven.as_ref()?;
        (proven.boot == peer.boot).then_some(proven)
    }

    pub(super) fn proven_mut(&mut self, peer: Peer) -> Option<&mut Proven> {
        let proven = self.peers.get_mut(&peer.id)?.proven.as_mut()?;
        (proven.boot == peer.boot).then_some(proven)
    }

    /// Whether a life that we do not know may be one that we knew, so that its packets may be recordings.
    pub(super) const fn has_forgotten(&self) -> bool {
        self.forgot.is_some()
    }

    /// Whether the hello of this number is later than the last time that a life was forgotten.
    pub(super) fn is_since_forgetting(&self, hello: u64) -> bool {
        self.forgot.is_none_or(|number| hello >= number)
    }

    /// The version in which to speak to one: the newest that both say they speak, or that it spoke, or else our oldest.
    /// None if there is none in common.
    pub(super) fn version_for(&self, id: NodeId, ours: Versions) -> Option<u8> {
        let known = self.peers.get(&id);
        if let Some(speaks) = known.and_then(|known| known.speaks) {
            return ours.common(speaks);
        }
        let spoke = known.and_then(|known| {
            let proven = known.proven.as_ref()?;
            (proven.boot == known.life).then_some(proven.version)
        });
        Some(spoke.unwrap_or(ours.oldest()))
    }

    /// The version in which to speak to everybody: the oldest of those in which to speak to each.
    pub(super) fn version_for_group(&mut self, ours: Versions) -> u8 {
        if let Some(version) = self.group {
            return version;
        }
        let each = self.peers.keys().filter_map(|&id| self.version_for(id, ours));
        let version = each.min().unwrap_or(ours.newest());
        self.group = Some(version);
        version
    }

    /// What a life that has proved itself says it speaks.
    pub(super) fn speaks(&mut self, peer: Peer, speaks: Versions) {
        if let Some(known) = self.peers.get_mut(&peer.id).filter(|known| known.life == peer.boot) {
            (known.speaks, self.group) = (Some(speaks), None);
        }
    }

    /// The version in which a life has just spoken.
    pub(super) fn spoke(&mut self, peer: Peer, version: u8) {
        if let Some(proven) = self.proven_mut(peer).filter(|proven| proven.version != version) {
            proven.version = version;
            self.group = None;
        }
    }

    /// Hearsay makes room for others; what has proved itself only if it was not heard for long. `next` is the number of our
    /// next packet.
    fn make_room(&mut self, now: Option<Time>, next: u64) -> bool {
        if let Some(now) = now {
            self.tidy(now, next);
        }
        if self.peers.len() < MOST_PEERS {
            return true;
        }
        let hearsay = self.peers.iter().find(|(_, known)| known.proven.is_none());
        let hearsay = hearsay.map(|(&id, _)| id);
        hearsay.is_some_and(|id| self.peers.remove(&id).is_some())
    }

    fn tidy(&mut self, now: Time, next: u64) {
        let early = self.tidied.is_some_and(|tidied| now.since(tidied) < TIDY_EVERY);
        if self.peers.len() < CROWDED || early {
            return;
        }
        let before = self.peers.len();
        self.peers.retain(|_, known| {
            let heard = known.proven.as_ref().map(|proven| proven.heard);
            heard.is_none_or(|heard| now.since(heard) < FORGET_AFTER)
        });
        if self.peers.len() < before {
            (self.tidied, self.forgot, self.group) = (Some(now), Some(next), None);
        }
    }
}

/// Whether a node whose boot number was this may have restarted so often since. Who holds the key can claim any life; it must not
/// be one that the node itself can never exceed.
pub(super) fn is_plausible(known: Boot, claimed: Boot) -> bool {
    claimed.get().saturating_sub(known.get()) <= MOST_RESTARTS
}

/// Between two packets that one node hears of another. Each start takes a random step of up to 2^32.
pub(super) const MOST_RESTARTS: u64 = 1 << 48;

#[cfg(test)]
impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    pub(super) fn forget_all(&mut self, next: u64) {
        self.peers.clear();
        self.forgot = Some(next);
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Known> {
        self.peers.values_mut()
    }
}
