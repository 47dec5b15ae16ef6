//! Claiming slots, owning them, and handing them over (K3 to K6).

use alloc::vec::Vec;

use super::{Deed, Entry, Event, Keys, Mark, Slot};
use crate::{epoch::Epoch, machine::OutboxOf, membership::ring::Life, time::Time};

/// What the owner has others know, and waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Round {
    /// That it claims the slot: all on the list that live must promise.
    Claim,
    /// New keepers, who are not trusted before all know of them.
    Add,
    /// That all know the list.
    Trust,
    /// That these are on the list no more: they forget the slot before the others strike them off.
    Drop(Vec<Life>),
    /// Nothing more: the list is settled.
    Settled,
}

/// What we do about a slot that is ours, or is to be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Office {
    /// Not to act before this.
    from: Time,
    round: Round,
    acked: Vec<Life>,
    /// When what is not acknowledged is said again.
    again: Time,
    /// When to claim under a larger epoch, another having been promised a larger one than ours.
    refused: Option<Time>,
    /// Whether we have acted under this epoch.
    begun: bool,
    /// By which list of members, with so many of them about to leave, the keepers are right.
    fits: Option<(u64, usize)>,
    cession: Option<Cession>,
}

/// A slot that is to be another's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cession {
    to: Life,
    /// Up to when we may act.
    at: Time,
    done: bool,
}

impl Office {
    pub(super) const fn new(from: Time, round: Round, now: Time) -> Self {
        Self {
            from,
            round,
            acked: Vec::new(),
            again: now,
            refused: None,
            begun: false,
            fits: None,
            cession: None,
        }
    }

    pub(super) fn has_ceded(&self) -> bool {
        self.cession.is_some_and(|cession| cession.done)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun && !self.has_ceded()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.round == Round::Settled && self.cession.is_none()
    }

    fn next(&mut self, now: Time, round: Round) {
        self.round = round;
        self.acked.clear();
        self.again = now;
    }
}

impl Entry {
    /// The epoch we may act under, and up to when, if our leases last until `until`.
    pub(super) fn authority(&self, now: Time, until: Time) -> Option<(Epoch, Time)> {
        let office = self.office.as_ref().filter(|office| office.has_begun())?;
        let until = until.min(office.cession.map_or(Time::NEVER, |cession| cession.at));
        Some((self.record.as_ref()?.epoch?, until)).filter(|&(_, until)| now < until)
    }

    /// It is ours no more.
    pub(super) fn lost(&self, slot: Slot, out: &mut OutboxOf<Keys>) {
        let epoch = self.record.as_ref().and_then(|record| record.epoch);
        if self.office.as_ref().is_some_and(Office::has_begun)
            && let Some(epoch) = epoch
        {
            out.emit(Event::Lost { slot, epoch });
        }
    }

    /// What is to be acknowledged now.
    fn mark(&self, slot: Slot) -> Option<Mark> {
        let (record, office) = (self.record.as_ref()?, self.office.as_ref()?);
        let trusted = office.round == Round::Trust;
        Some(Mark { slot, epoch: record.epoch?, step: record.step, trusted, begun: record.begun })
    }
}

impl Keys {
    /// What a slot that is ours, or is to be, asks for now.
    pub(super) fn work(
        &mut self,
        now: Time,
        slot: Slot,
        entry: &mut Entry,
        out: &mut OutboxOf<Self>,
    ) {
        if self.refused(now, entry, out) {
            return;
        }
        while let Some(awaited) = self.awaited(entry) {
            if !awaited.is_empty() {
                return self.announce(now, slot, entry, &awaited);
            }
            if !self.advance(now, slot, entry, out) {
                break;
            }
        }
        self.hand_over(now, slot, entry, out);
    }

    /// Whether our claim was refused, and is not to be repeated yet.
    fn refused(&mut self, now: Time, entry: &mut Entry, out: &mut OutboxOf<Self>) -> bool {
        let Some(at) = entry.office.as_ref().and_then(|office| office.refused) else {
            return false;
        };
        if now < at {
            entry.due = Some(at);
            return true;
        }
        let epoch = self.mint(out);
        if let (Some(office), Some(record)) = (&mut entry.office, &mut entry.record) {
            office.refused = None;
            office.next(now, Round::Claim);
            record.epoch = Some(epoch);
            entry.known = Some((epoch, 0));
        }
        false
    }

    /// Those that have not acknowledged what they are to know; `None` if nothing is to be known.
    fn awaited(&self, entry: &Entry) -> Option<Vec<Life>> {
        let (record, office) = (entry.record.as_ref()?, entry.office.as_ref()?);
        let told = match &office.round {
            Round::Settled => return None,
            Round::Claim if !self.config.asks => return Some(Vec::new()),
            Round::Drop(dropped) => dropped,
            Round::Claim | Round::Add | Round::Trust => &record.list,
        };
        let awaits = |life: &&Life| {
            **life != self.life && !office.acked.contains(life) && !self.ring.is_gone(**life)
        };
        Some(told.iter().filter(awaits).copied().collect())
    }

    fn announce(&mut self, now: Time, slot: Slot, entry: &mut Entry, awaited: &[Life]) {
        let (Some(mark), Some(office)) = (entry.mark(slot), &entry.office) else { return };
        let Some(record) = &entry.record else { return };
        if now >= office.again {
            let mut list = record.list.clone();
            if let Round::Drop(dropped) = &office.round {
                list.retain(|life| !dropped.contains(life));
            }
            for &life in awaited {
                self.post(life).keep.push(Deed { mark, list: list.clone() });
            }
            let again = now + self.retry();
            if let Some(office) = &mut entry.office {
                office.again = again;
            }
        }
        entry.due = entry.office.as_ref().map(|office| office.again);
    }

    /// All know what they are to know; whether there is more for them to know.
    fn advance(&self, now: Time, slot: Slot, entry: &mut Entry, out: &mut OutboxOf<Self>) -> bool {
        let (Some(record), Some(office)) = (&mut entry.record, &mut entry.office) else {
            return false;
        };
        match core::mem::replace(&mut office.round, Round::Settled) {
            Round::Claim if now < office.from => {
                office.round = Round::Claim;
                entry.due = Some(office.from);
                return false;
            }
            Round::Claim => {
                (office.begun, record.begun, record.trusted) = (true, true, true);
                if let Some(epoch) = record.epoch {
                    out.emit(Event::Gained { slot, epoch });
                }
                office.next(now, Round::Trust);
            }
            Round::Add => office.next(now, Round::Trust),
            Round::Drop(dropped) => {
                record.list.retain(|life| !dropped.contains(life));
                office.next(now, Round::Trust);
            }
            Round::Trust | Round::Settled => return false,
        }
        true
    }

    /// With keepers that all know the list: whether it is the right list, and we the right owner.
    fn hand_over(&mut self, now: Time, slot: Slot, entry: &mut Entry, out: &mut OutboxOf<Self>) {
        let Some(office) = entry.office.as_ref().filter(|office| office.round == Round::Settled)
        else {
            return;
        };
        if let Some(cession) = office.cession {
            return self.cede(now, slot, entry, cession, out);
        }
        let fits = (self.ring.digest(), self.leavers.len());
        if office.fits == Some(fits) && self.leaving.is_none() {
            return;
        }
        let goes = self.leaving.is_some();
        let stays = |life: &Life| !self.leavers.contains(life) && (*life != self.life || !goes);
        let goal = slot.first(self.owners().filter(stays), self.config.keepers() + 1);
        if self.change_list(now, entry, &goal) {
            return self.work(now, slot, entry, out);
        }
        let Some(office) = &mut entry.office else { return };
        office.fits = Some(fits);
        let Some(to) = goal.first().copied().filter(|&first| first != self.life) else { return };
        if self.ring.suspected(to.id()).is_some() {
            office.fits = None;
            entry.due = Some(now + self.session());
            return;
        }
        let at = if self.config.waits { self.told.max(now) } else { now };
        office.cession = Some(Cession { to, at, done: false });
        entry.due = Some(at);
    }

    /// One step towards a list of these and ourselves; whether there was one to take.
    fn change_list(&self, now: Time, entry: &mut Entry, goal: &[Life]) -> bool {
        let (Some(record), Some(office)) = (&mut entry.record, &mut entry.office) else {
            return false;
        };
        let lacking = goal.iter().copied().filter(|life| !record.list.contains(life));
        let added: Vec<Life> = lacking.collect();
        let unwanted = |life: &Life| *life != self.life && !goal.contains(life);
        let dropped: Vec<Life> = record.list.iter().copied().filter(unwanted).collect();
        if !added.is_empty() {
            record.list.extend(added);
            office.next(now, Round::Add);
        } else if !dropped.is_empty() {
            office.next(now, Round::Drop(dropped));
        } else {
            return false;
        }
        record.step += 1;
        entry.known = record.epoch.map(|epoch| (epoch, record.step));
        true
    }

    /// Goes on handing a slot over.
    fn cede(
        &mut self,
        now: Time,
        slot: Slot,
        entry: &mut Entry,
        Cession { to, at, done }: Cession,
        out: &mut OutboxOf<Self>,
    ) {
        let lost = self.ring.is_gone(to);
        if done && lost {
            // It never owned the slot: that would have taken our promise. What we told is over.
            return self.claim(now, slot, entry, now, out);
        }
        let again = now + self.retry();
        let epoch = entry.record.as_ref().and_then(|record| record.epoch);
        let (Some(office), Some(epoch)) = (&mut entry.office, epoch) else { return };
        let unwanted = lost || self.leavers.contains(&to) || self.ring.suspected(to.id()).is_some();
        if !done && unwanted {
            (office.cession, office.fits) = (None, None);
            return self.hand_over(now, slot, entry, out);
        }
        if now < at {
            entry.due = Some(at);
            return;
        }
        if !done {
            office.cession = Some(Cession { to, at, done: true });
            office.again = now;
            out.emit(Event::Lost { slot, epoch });
        }
        if now >= office.again {
            office.again = again;
            self.post.entry(to).or_default().cede.push((slot, epoch));
        }
        entry.due = Some(office.again);
    }

    /// Somebody knows what it is to know.
    pub(super) fn on_kept(&mut self, by: Life, mark: &Mark) {
        let Some(entry) = self.slots.get_mut(&mark.slot) else { return };
        let current = entry.mark(mark.slot).as_ref() == Some(mark);
        if let Some(office) = entry.office.as_mut().filter(|_| current)
            && !office.acked.contains(&by)
        {
            office.acked.push(by);
            self.touched.insert(mark.slot);
        }
    }

    /// A claim of ours was refused.
    pub(super) fn on_refuse(&mut self, now: Time, slot: Slot, epoch: Option<Epoch>) {
        let wait = self.session();
        let Some(entry) = self.slots.get_mut(&slot) else { return };
        let ours = entry.record.as_ref().and_then(|record| record.epoch);
        let Some(office) = entry.office.as_mut().filter(|office| office.round == Round::Claim)
        else {
            return;
        };
        // Below what another's earlier life knew: at once. Behind another claim: that one comes to us too.
        let at = match epoch {
            None => now,
            Some(epoch) if Some(epoch) > ours => now + wait,
            Some(_) => return,
        };
        office.refused = office.refused.or(Some(at));
        self.touched.insert(slot);
    }
}
