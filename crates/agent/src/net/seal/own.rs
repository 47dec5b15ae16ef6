//! Other lives of our own identity: a copied disk, one restored from a backup, or somebody that poses as us.

use bellwether_proto::{Boot, Time};

use super::{
    Answer, Sealer,
    packet::{Header, Kind, Welcome},
    table::is_plausible,
};
use crate::net::refusal::Refusal;

/// What is known of them.
impl Sealer {
    /// The newest life of our own identity, if it is a later one than ours: another node runs under it, or ours was
    /// started with a boot number smaller than one it had before. We heard it ourselves, or one of those that
    /// refuse us for it told us.
    pub const fn superseded(&self) -> Option<Boot> {
        self.superseded
    }

    /// Whether of two lives that run ours is the one that was started first: somebody took it for our newest one, or the
    /// later one came to greet us. Otherwise its boot number is one of the past.
    pub const fn was_first(&self) -> bool {
        self.accepted || self.greeted
    }
}

/// What they say.
impl Sealer {
    /// An earlier life of ours says something, or did: whether it still runs shows if it is told. That costs no more than it
    /// did.
    pub(super) fn tell_earlier(&mut self, now: Time, header: &Header, length: usize) {
        if length < Self::HELLO || !self.answers.spend(now) {
            return;
        }
        self.answer = match header.kind {
            Kind::Hello => {
                let (answers, newest) = (header.number, Some(self.me.boot));
                Some(Answer::Welcome { to: header.from, answers, newest })
            }
            Kind::Group => Some(Answer::Hello),
            Kind::Message | Kind::Welcome => None,
        };
    }

    /// A later life of ours greets us, or did: it may be a recording. Nobody has known ours yet, so it is not known which of
    /// the two was started last either; if it lives, it was there after us.
    pub(super) fn challenge(&mut self, now: Time, length: usize) {
        if length >= Self::HELLO && self.answers.spend(now) {
            self.answer = Some(Answer::Challenge);
        }
    }

    /// A later life of ours answers something that we said: if not that we asked whether it lives, then what we said first.
    pub(super) fn on_own_welcome(&mut self, from: Boot, body: &[u8]) -> Result<(), Refusal> {
        let Welcome { answers, .. } = Welcome::read(body, self.next)?;
        self.greeted |= self.challenged == Some(answers);
        self.supersede(from);
        Ok(())
    }

    pub(super) fn supersede(&mut self, by: Boot) {
        if by > self.me.boot && is_plausible(self.me.boot, by) {
            self.superseded = self.superseded.max(Some(by));
        }
    }
}
