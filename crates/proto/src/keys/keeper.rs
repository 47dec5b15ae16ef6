//! Keeping slots: what is known of their owners, and following them (K2 to K5).

use super::{
    Deed, Entry, Keys, Mark, Record, Slot,
    owner::{Office, Round},
};
use crate::{epoch::Epoch, machine::OutboxOf, membership::ring::Life, time::Time};

impl Entry {
    /// How an announcement stands to what is known.
    fn is_news(&self, mark: &Mark) -> bool {
        self.known.is_none_or(|(epoch, _)| mark.epoch > epoch)
    }
}

impl Keys {
    /// Somebody owns a slot, or claims it.
    pub(super) fn on_keep(&mut self, by: Life, deed: &Deed, out: &mut OutboxOf<Self>) {
        let mark = deed.mark;
        let slot = mark.slot;
        self.touched.insert(slot);
        let mut entry = self.slots.remove(&slot).unwrap_or_default();
        if self.takes(by, &entry, &mark) {
            self.keep(mark.epoch.counter(), out);
            self.take(by, &mut entry, deed, out);
            self.post(by).kept.push(mark);
        } else if entry.record.is_none() && entry.known == Some((mark.epoch, mark.step)) {
            // Struck off the list before; the answer was lost.
            self.post(by).kept.push(mark);
        } else if entry.known.is_none_or(|(known, _)| known > mark.epoch) || entry.is_news(&mark) {
            let known = entry.known.map(|(epoch, _)| epoch).filter(|&epoch| epoch > mark.epoch);
            self.post(by).refuse.push((slot, known));
        }
        self.slots.insert(slot, entry);
    }

    /// Whether what is announced is later than all we know, and not of a slot that we act for.
    fn takes(&self, by: Life, entry: &Entry, mark: &Mark) -> bool {
        if entry.is_news(mark) {
            let acts = entry.office.as_ref().is_some_and(|office| {
                entry.record.as_ref().is_some_and(|record| record.begun) && !office.has_ceded()
            });
            // At the beginning of a ring, what earlier rings came to is known by who was there only.
            let first = entry.known.is_none() && mark.step == 0 && !mark.begun;
            let repeated = first && mark.epoch.counter() <= self.base;
            return !(acts || repeated);
        }
        let Some((epoch, step)) = entry.known else { return false };
        let ours = entry.record.as_ref().map(|record| record.owner);
        epoch == mark.epoch
            && match ours {
                // Struck off the list, we are on a later one or on none.
                None => mark.step > step,
                Some(owner) => owner == Some(by) && mark.step >= step,
            }
    }

    fn take(&mut self, by: Life, entry: &mut Entry, deed: &Deed, out: &mut OutboxOf<Self>) {
        let mark = deed.mark;
        entry.known = Some((mark.epoch, mark.step));
        entry.vacant = None;
        let trusted = entry.record.as_ref().is_some_and(|record| record.trusted);
        if entry.office.take().is_some_and(|office| office.has_begun())
            && let Some(epoch) = entry.record.as_ref().and_then(|record| record.epoch)
        {
            out.emit(super::Event::Lost { slot: mark.slot, epoch });
        }
        entry.record = deed.list.contains(&self.life).then(|| Record {
            epoch: Some(mark.epoch),
            step: mark.step,
            owner: Some(by),
            list: deed.list.clone(),
            trusted: trusted || mark.trusted,
            begun: mark.begun,
        });
    }

    /// A slot that we keep: if its owner is gone, one of us follows.
    pub(super) fn look(
        &mut self,
        now: Time,
        slot: Slot,
        entry: &mut Entry,
        out: &mut OutboxOf<Self>,
    ) {
        entry.due = None;
        if entry.office.is_some() {
            return self.work(now, slot, entry, out);
        }
        let Some(record) = &entry.record else { return };
        if record.owner.is_some_and(|owner| !self.ring.is_gone(owner)) {
            entry.vacant = None;
            return;
        }
        let since = *entry.vacant.get_or_insert(now);
        if !record.trusted {
            return;
        }
        // The desired owner among us at once, the others should it not.
        let living = || record.list.iter().copied().filter(|&life| !self.ring.is_gone(life));
        let order = slot.first(living(), record.list.len());
        let Some(rank) = order.iter().position(|&life| life == self.life) else { return };
        let at = since + self.session() * rank as u64;
        if now < at {
            entry.due = Some(at);
            return;
        }
        // Who is buried can have told nothing that is not over, nor can those before it if it had begun.
        let over = record.begun && record.owner.is_some_and(|owner| self.ring.is_buried(owner));
        let from = if over { now } else { since + self.wait() };
        self.claim(now, slot, entry, from, out);
    }

    /// The owner has stopped in our favour.
    pub(super) fn on_cede(
        &mut self,
        now: Time,
        by: Life,
        slot: Slot,
        epoch: Epoch,
        out: &mut OutboxOf<Self>,
    ) {
        let Some(mut entry) = self.slots.remove(&slot) else { return };
        let ours = entry.record.as_ref().is_some_and(|record| {
            record.owner == Some(by) && record.epoch == Some(epoch) && record.trusted
        });
        if ours && entry.office.is_none() {
            self.claim(now, slot, &mut entry, now, out);
            self.touched.insert(slot);
        }
        self.slots.insert(slot, entry);
    }

    /// Asks all on the list that live, which lack nothing but our claim.
    pub(super) fn claim(
        &mut self,
        now: Time,
        slot: Slot,
        entry: &mut Entry,
        from: Time,
        out: &mut OutboxOf<Self>,
    ) {
        let epoch = self.mint(out);
        let Some(record) = &mut entry.record else { return };
        record.list.retain(|&life| !self.ring.is_gone(life));
        record.epoch = Some(epoch);
        record.step = 0;
        record.owner = Some(self.life);
        record.begun = false;
        entry.known = Some((epoch, 0));
        entry.vacant = None;
        entry.office = Some(Office::new(from, Round::Claim, now));
        self.work(now, slot, entry, out);
    }
}
