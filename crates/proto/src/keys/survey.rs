//! Slots that nobody may claim: their owner and all of their keepers were lost at once (K9).

use alloc::{collections::BTreeSet, vec::Vec};

use super::{
    Entry, Keys, Record, Slot, What,
    owner::{Office, Round},
};
use crate::{epoch::Epoch, machine::OutboxOf, membership::ring::Life, time::Time};

/// What is asked of every member about some slots.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Seek {
    /// The epoch under which the sender is to own them.
    pub epoch: Epoch,
    /// Of all facts about members known to the sender: only who knows the same answers.
    pub digest: u64,
    /// Whether to take in nothing earlier from now on.
    pub binding: bool,
    /// The slots that are to be the sender's.
    pub slots: Vec<Slot>,
}

/// A survey of our own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Survey {
    seek: Seek,
    answered: BTreeSet<Life>,
    again: Time,
    /// Whether some have an owner, or are left for the next survey.
    more: bool,
}

impl Entry {
    /// Whether we own it, or may follow who does.
    fn is_held(&self) -> bool {
        self.office.is_some() || self.record.as_ref().is_some_and(|record| record.trusted)
    }
}

impl Keys {
    /// The list of members has changed: when it has not for a while, slots that should be ours and are nobody's are
    /// looked for.
    pub(super) fn look_later(&mut self, now: Time) {
        self.survey = None;
        self.audit = Some(now + self.session() * QUIET);
        self.changed = now;
    }

    /// Looks for slots that should be ours, and goes on with looking.
    pub(super) fn audit(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.audit.is_some_and(|at| now >= at) {
            self.audit = None;
            self.begin_survey(now, out);
        }
        self.go_on(now, out);
        let again = self.survey.as_ref().map(|survey| survey.again);
        for at in again.into_iter().chain(self.audit) {
            self.alarm = self.alarm.min(at);
        }
    }

    fn begin_survey(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.leaving.is_some() {
            return;
        }
        let held = |slot: &Slot| self.slots.get(slot).is_some_and(Entry::is_held);
        let lacking = (0..self.config.slots()).map(Slot::new).filter(|slot| !held(slot));
        let ours = lacking.filter(|&slot| self.desired(slot) == Some(self.life));
        let mut slots: Vec<Slot> = ours.take(MOST + 1).collect();
        if slots.is_empty() {
            return;
        }
        let more = slots.len() > MOST;
        slots.truncate(MOST);
        let (epoch, digest) = (self.mint(out), self.ring.digest());
        let seek = Seek { epoch, digest, binding: false, slots };
        self.survey = Some(Survey { seek, answered: BTreeSet::new(), again: now, more });
    }

    /// Asks those that have not answered; when all have, asks again and binds them; when all have again, nobody else
    /// can own what is left.
    fn go_on(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Some(mut survey) = self.survey.take() else { return };
        loop {
            if survey.seek.slots.is_empty() {
                break;
            }
            let asked = |life: &Life| *life != self.life && !survey.answered.contains(life);
            let awaited: Vec<Life> = self.ring.members().filter(asked).collect();
            if !awaited.is_empty() {
                if now >= survey.again {
                    survey.again = now + self.session();
                    let (by, seen) = (self.life.inc, self.seen);
                    for life in awaited {
                        let what = What::Seek(survey.seek.clone());
                        let body = super::Body::Keys { by, to: life.age(), what };
                        out.send(life.id(), super::Message { seen, body });
                    }
                }
                self.survey = Some(survey);
                return;
            }
            if survey.seek.binding {
                for slot in core::mem::take(&mut survey.seek.slots) {
                    self.adopt(now, slot, survey.seek.epoch, out);
                }
            } else {
                survey.seek.binding = true;
                survey.answered.clear();
                survey.again = now;
            }
        }
        if survey.more {
            self.audit = Some(now + self.session() * QUIET);
        }
    }

    /// Nobody else can own a slot: we do.
    fn adopt(&mut self, now: Time, slot: Slot, epoch: Epoch, out: &mut OutboxOf<Self>) {
        let mut entry = self.slots.remove(&slot).unwrap_or_default();
        let later = entry.known.is_some_and(|(known, _)| known > epoch);
        if !entry.is_held() && !later {
            entry.known = Some((epoch, 0));
            entry.vacant = None;
            entry.record = Some(Record {
                epoch: Some(epoch),
                step: 0,
                owner: Some(self.life),
                list: alloc::vec![self.life],
                trusted: true,
                begun: false,
            });
            // Whoever owned it was gone when the list last changed.
            entry.office = Some(Office::new(self.changed + self.wait(), Round::Claim, now));
            self.work(now, slot, &mut entry, out);
            self.alarm = entry.due.map_or(self.alarm, |due| self.alarm.min(due));
        }
        self.slots.insert(slot, entry);
    }

    /// Somebody wants slots that nobody owns as far as it knows: answers which of them somebody may own.
    pub(super) fn on_seek(&mut self, by: Life, seek: &Seek, out: &mut OutboxOf<Self>) {
        // With another list of members either of us may not know of who owns them.
        if seek.digest != self.ring.digest() || !self.ring.lists(by) {
            return;
        }
        let taken = |entry: &Entry| {
            entry.is_held() || entry.known.is_some_and(|(known, _)| known > seek.epoch)
        };
        let held: Vec<Slot> = seek
            .slots
            .iter()
            .copied()
            .filter(|slot| self.slots.get(slot).is_some_and(taken))
            .collect();
        if seek.binding {
            self.keep(seek.epoch.counter(), out);
            let free = seek.slots.iter().filter(|slot| !held.contains(slot));
            for &slot in free.filter(|slot| slot.number() < self.config.slots()) {
                let entry = self.slots.entry(slot).or_default();
                entry.known = entry.known.max(Some((seek.epoch, 0)));
                entry.record = None;
                (entry.vacant, entry.due) = (None, None);
            }
        }
        let (epoch, binding) = (seek.epoch, seek.binding);
        let what = What::Sought { epoch, binding, held };
        let (mine, to) = (self.life.inc, by.age());
        let body = super::Body::Keys { by: mine, to, what };
        out.send(by.id(), super::Message { seen: self.seen, body });
    }

    pub(super) fn on_sought(&mut self, by: Life, (epoch, binding): (Epoch, bool), held: &[Slot]) {
        let Some(survey) = &mut self.survey else { return };
        if survey.seek.epoch == epoch && survey.seek.binding == binding {
            survey.seek.slots.retain(|slot| !held.contains(slot));
            survey.more |= !held.is_empty();
            survey.answered.insert(by);
        }
    }
}

/// How many sessions a list of members must have stayed as it is before slots are looked for: longer than it takes an
/// owner to hand over, and than anything lasts that was told before.
const QUIET: u64 = 5;
/// The most slots looked for at once: so many fit a datagram.
const MOST: usize = 256;
