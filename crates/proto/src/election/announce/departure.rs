//! Goodbyes: rules 8 and 9, and what a goodbye heard by some means for the others (H-10).

use super::{Announce, Message, Role, Timer};
use crate::{id::Peer, machine::OutboxOf, time::Time};

impl Announce {
    /// Rule 8.
    pub(super) fn leave(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        match (self.role, self.config.bye()) {
            (Role::Leading { epoch, .. }, Some(bye)) => {
                self.become_leaving(epoch, bye.copies);
                self.say_bye(now, out);
            }
            // Asked again to leave. The goodbyes go on.
            (Role::Leaving { .. }, _) => {}
            (_, _) => self.become_idle(),
        }
    }

    fn become_leaving(&mut self, epoch: u64, copies: u8) {
        self.role = Role::Leaving { epoch, left: copies };
        self.timers.clear_all();
    }

    pub(super) fn say_bye(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let (Role::Leaving { epoch, left }, Some(bye)) = (self.role, self.config.bye()) else {
            unreachable!("only leave arms Bye")
        };
        let sequence = self.next_sequence();
        out.multicast(Message::Bye { sequence, epoch });
        if left > 1 {
            self.role = Role::Leaving { epoch, left: left - 1 };
            self.timers.set(Timer::Bye, now + bye.spacing);
        } else {
            self.become_idle();
        }
    }

    /// Rule 9.
    pub(super) fn on_bye(&mut self, now: Time, from: Peer, epoch: u64, out: &mut OutboxOf<Self>) {
        let led = matches!(self.role, Role::Following { leader, .. } if leader.id == from.id);
        if self.hardened() {
            self.learn(epoch);
            self.replay.bury(now, from, self.follows());
            if led {
                self.succeeds = Some(from);
            }
        }
        if led {
            self.stand(now, out);
        } else if self.hardened() {
            self.compare(now, epoch, out);
        }
    }

    /// H-10: somebody says it was elected because `dead` left. Returns it if we follow exactly that
    /// life, which is then as good as gone.
    pub(super) fn learn_departure(&mut self, now: Time, dead: Option<Peer>) -> Option<Peer> {
        let dead = dead?;
        let ours = matches!(self.role, Role::Following { leader, .. } if leader == dead);
        ours.then(|| {
            self.replay.bury(now, dead, Some(dead.id));
            dead
        })
    }
}
