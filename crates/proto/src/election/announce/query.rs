//! Questions: rules 10 to 12, and proof that an answer is no recording (H-13).

use super::{Announce, Announcement, Claim, Message, Rank, Role, Timer};
use crate::{id::Peer, machine::OutboxOf, time::Time};

impl Announce {
    /// Rule 10.
    pub(super) fn become_querying(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.role = Role::Querying { since: now };
        self.timers.clear_all();
        let claim = self.rank().claim;
        self.ask(now, Some(claim), out);
    }

    fn ask(&mut self, now: Time, claim: Option<Claim>, out: &mut OutboxOf<Self>) {
        let Some(timeout) = self.config.query() else {
            unreachable!("only an Entry that asks leads here, or arms Query")
        };
        let (sequence, nonce) = (self.next_sequence(), self.nonce);
        out.multicast(Message::Query { sequence, nonce, claim });
        self.timers.set(Timer::Query, now + timeout);
    }

    /// Rule 12, or the question of a follower got lost.
    pub(super) fn on_no_answer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if matches!(self.role, Role::Following { .. }) {
            // Without a claim: it does not stand, and nobody must wait for it to lead.
            self.ask(now, None, out);
        } else {
            self.become_leading(now, out);
        }
    }

    /// H-13: a leader heard but not proven alive. Whoever has a question out waits for that; others
    /// ask soon, not all at once.
    pub(super) fn ask_again(&mut self, now: Time) {
        if self.timers.deadline(Timer::Query).is_none() {
            let soon = now + self.rng.up_to(self.config.reply());
            self.timers.set(Timer::Query, soon);
        }
    }

    /// Rule 11.
    pub(super) fn on_query(
        &mut self,
        now: Time,
        from: Peer,
        nonce: u64,
        claim: Option<Claim>,
        out: &mut OutboxOf<Self>,
    ) {
        if let Some(claim) = claim
            && self.yields_to(Rank { claim, peer: from })
        {
            self.become_following(now, from, &Announcement { claim, ..Announcement::default() });
        } else if let Role::Leading { .. } = self.role {
            self.asked = Some(nonce);
            match self.replied.map(|replied| replied + self.config.reply()) {
                Some(earliest) if now < earliest => self.timers.set(Timer::Reply, earliest),
                Some(_) | None => self.reply(now, out),
            }
        }
    }

    pub(super) fn reply(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let nonce = self.asked.take();
        self.replied = Some(now);
        self.timers.clear(Timer::Reply);
        self.announce(now, nonce, out);
    }
}
