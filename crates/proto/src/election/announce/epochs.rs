//! Fencing tokens and who may be believed: H-2, H-3, H-5, H-6, H-9 and H-12. Hardened rules only.

use super::{Announce, Durable, Message, Role, Timer};
use crate::{
    epoch::Epoch,
    id::Peer,
    machine::{OutboxOf, Rejected},
    time::Time,
};

impl Announce {
    /// H-2 and H-3. The replay guard comes last because it remembers what it accepts, and a refusal
    /// must leave no trace.
    pub(super) fn admit(
        &mut self,
        now: Time,
        from: Peer,
        message: Message,
    ) -> Result<(), Rejected> {
        let (sequence, found) = (message.sequence(), message.counter());
        let limit = Epoch::believable(self.max_epoch);
        if self.has_baseline && found > limit {
            return Err(Rejected::ImplausibleEpoch { from, found, limit });
        }
        if self.replay.is_buried(from) {
            return Err(Rejected::Departed { from });
        }
        if !self.replay.accept(now, from, sequence, self.follows()) {
            return Err(Rejected::Replayed { from, sequence });
        }
        Ok(())
    }

    /// H-3, and what follows from a counter heard in anybody's claim.
    pub(super) fn learn(&mut self, epoch: u64) {
        self.max_epoch = self.max_epoch.max(epoch);
        self.has_baseline = true;
    }

    /// What a counter just [learnt](Self::learn) means for the token we lead or follow under.
    pub(super) fn compare(&mut self, now: Time, epoch: u64, out: &mut OutboxOf<Self>) {
        match self.role {
            // H-6. A worse claimant with a smaller epoch is no threat to ours: it yields to the next
            // heartbeat and everyone has a newer token than its.
            Role::Leading { epoch: own, .. } if epoch >= own => self.on_challenge(now, out),
            // H-9. Not only on the leader's own announcements: any that shows a larger epoch makes
            // the leader's token stale, and with it the answer given so far.
            Role::Following { .. } => self.review(now, out),
            Role::Idle
            | Role::Watching { .. }
            | Role::Suppressing { .. }
            | Role::Querying { .. }
            | Role::Leading { .. }
            | Role::Leaving { .. } => {}
        }
    }

    pub(super) fn on_hint(&mut self, now: Time, need: u64, out: &mut OutboxOf<Self>) {
        if !self.hardened() {
            return;
        }
        // Only a leader may raise its counter from a hint: were followers to, each lost announcement
        // would inflate it further (H-9).
        if let Role::Leading { epoch, .. } = self.role {
            if need > epoch {
                // One less, because the next mint adds one: `epoch := max(max_epoch + 1, need)`.
                self.max_epoch = self.max_epoch.max(need - 1);
                self.has_baseline = true;
                self.on_challenge(now, out);
            }
        } else if need >= self.need() {
            self.timers.clear(Timer::Hint);
        }
    }

    /// H-6: our token is not the largest around. At most one answer for each `T_R`, however many
    /// complain.
    fn on_challenge(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        match self.answered.map(|answered| answered + self.config.reply()) {
            Some(earliest) if now < earliest => self.timers.set(Timer::Answer, earliest),
            Some(_) | None => self.answer(now, out),
        }
    }
}

impl Announce {
    pub(super) fn answer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let minted = self.mint(out);
        if let Role::Leading { epoch, .. } = &mut self.role {
            *epoch = minted;
        }
        self.answered = Some(now);
        self.timers.clear(Timer::Answer);
        self.announce(now, None, out);
    }

    pub(super) fn hint(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let (sequence, need) = (self.next_sequence(), self.need());
        out.multicast(Message::Hint { sequence, need });
        self.hinted = Some(now);
    }

    /// H-5: the next counter, durable before anyone hears of it. The base forms have none.
    pub(super) fn mint(&mut self, out: &mut OutboxOf<Self>) -> u64 {
        if !self.hardened() {
            return 0;
        }
        self.max_epoch = self.max_epoch.saturating_add(1);
        let token = Epoch::mint(self.max_epoch, self.me);
        if self.vouchable(token) {
            self.vouched = Some(token);
        }
        self.persist(out);
        self.max_epoch
    }

    /// H-9: vouch for the leader's latest token, or ask for a larger one. What is vouched for is made
    /// durable, so that not even a restart lets this observer go back (H-12).
    pub(super) fn review(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Role::Following { leader, epoch, .. } = self.role else { return };
        if epoch == 0 {
            // It has only asked who leads, and owes no token yet.
            return;
        }
        if !self.verified {
            self.ask_again(now);
            return;
        }
        let token = Epoch::mint(epoch, leader);
        if !self.vouchable(token) {
            self.ask_later(now);
            return;
        }
        self.timers.clear(Timer::Hint);
        if self.vouched != Some(token) {
            self.vouched = Some(token);
            self.persist(out);
        }
    }

    fn persist(&self, out: &mut OutboxOf<Self>) {
        out.persist(Durable { max_epoch: self.max_epoch, vouched: self.vouched });
    }

    /// A random while, so that one of many confused followers speaks for all; and not within half an
    /// announce period of our last hint, so that the leader has had a chance to answer it.
    fn ask_later(&mut self, now: Time) {
        if self.timers.deadline(Timer::Hint).is_some() {
            return;
        }
        let soon = now + self.rng.up_to(self.config.reply());
        let earliest = self.hinted.map_or(now, |hinted| hinted + self.config.announce().div(2));
        self.timers.set(Timer::Hint, soon.max(earliest));
    }

    fn vouchable(&self, token: Epoch) -> bool {
        token.counter() >= self.max_epoch
            && self.vouched.is_none_or(|last| token == last || token.counter() > last.counter())
    }

    /// The counter to ask a leader for. Nothing vouched for was ever above `max_epoch`.
    pub(super) fn need(&self) -> u64 {
        self.max_epoch.saturating_add(1)
    }

    /// Whether the application may be told that `leader` leads under this token. A leader that owes
    /// an answer goes on under its old token for up to `T_R`; a follower tells of no token that it
    /// knows to be stale.
    pub(super) fn exposes(&self, leader: Peer, token: Epoch) -> bool {
        self.vouched == Some(token) && (leader == self.me || token.counter() >= self.max_epoch)
    }
}
