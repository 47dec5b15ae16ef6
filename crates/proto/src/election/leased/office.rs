//! Standing, serving and handing over; authority by leases with all neighbours (R11.2 to R11.6).

use alloc::{collections::BTreeMap, vec::Vec};

use super::{Asking, Bid, Body, Command, Flavour, Granted, Leased, Message, Office, Register};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    machine::OutboxOf,
    membership::ring::Life,
    time::Time,
};

impl Leased {
    /// Until when every neighbour that could follow us is bound by a lease of ours (R11.3).
    pub(super) fn leased_until(&self) -> Option<Time> {
        let members = self.ring.members().count();
        let contested = self.ring.suspects().any(|(_, _, condemned)| !condemned);
        if members < self.config.min_members || contested || self.ring.is_uncertain() {
            return None;
        }
        let until = self.ring.leases().filter(|lease| lease.active).map(|lease| lease.until).min();
        match until {
            Some(until) => Some(until),
            // Alone there is nobody to be bound by, nor to be followed by.
            None => (members == 1).then_some(Time::NEVER),
        }
    }

    /// How many of those that may lead come before us; `None` if we never lead.
    pub(super) fn rank(&self) -> Option<u64> {
        let me = self.ring.life();
        let passed_over = |life: Life| match (self.config.flavour, self.ring.suspected(life.id())) {
            (Flavour::Quorum, suspected) => suspected.is_some(),
            (Flavour::Fast, Some((_, condemned))) => condemned,
            _ => false,
        };
        let best = self.best();
        let ours = self.order(me, best);
        let mut stands = false;
        let mut before = 0;
        for life in self.candidates() {
            stands |= life == me;
            before += u64::from(self.order(life, best) < ours && !passed_over(life));
        }
        stands.then_some(before)
    }

    /// Whether it is ours to lead now.
    pub(super) fn may_stand(&self, now: Time) -> bool {
        let Some(rank) = self.rank() else { return false };
        if self.ring.members().count() < self.config.min_members {
            return false;
        }
        let me = self.ring.life();
        let chosen = self.register.is_some_and(|register| {
            register.heir == Some(me) && self.taken == Some(register.epoch)
        });
        let quorum = self.config.flavour == Flavour::Quorum;
        if quorum && self.electorate.is_none() || !quorum && !self.is_well_leased(now) {
            return false;
        }
        if chosen {
            return true;
        }
        let vacant = self.register.is_none_or(|register| {
            let life = register.effective();
            let suspected = self.ring.suspected(life.id());
            life == me && register.heir.is_none()
                || !self.ring.lists(life)
                || match self.config.flavour {
                    Flavour::Quorum => suspected.is_some(),
                    Flavour::Fast => suspected.is_some_and(|(_, condemned)| condemned),
                    Flavour::Conservative => false,
                }
        });
        let patient = self.lacking.is_some_and(|since| now >= since + self.patience(rank));
        vacant && if quorum { patient } else { rank == 0 }
    }

    /// Whether every neighbour is leased, or condemned by us, or so new that it may not be yet; and all know what we
    /// know (R10.2, R11.10).
    fn is_well_leased(&self, now: Time) -> bool {
        let new = now < self.ring.changed() + self.session() * 2;
        let fine = |life: &Life| {
            new || self.ring.lease(life.id()).is_some_and(|lease| lease.active)
                || self.config.flavour == Flavour::Fast
                    && self.ring.suspected(life.id()).is_some_and(|(_, condemned)| condemned)
        };
        self.ring.neighbours().iter().all(fine) && self.ring.is_synced()
    }

    /// An epoch larger than any heard of.
    pub(super) fn mint(&mut self) -> Epoch {
        self.seen += 1;
        Epoch::mint(self.seen, self.me)
    }

    /// Claims the next epoch.
    pub(super) fn stand(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let me = self.ring.life();
        let epoch = self.mint();
        let chosen = self.register.is_some_and(|register| register.heir == Some(me));
        if self.config.flavour != Flavour::Quorum {
            self.learn(Register { epoch, holder: me, heir: None }, out);
        }
        self.bid = Bid::Asking(Asking {
            epoch,
            since: now,
            round: 0,
            sent: now,
            granted: BTreeMap::new(),
            again: now,
            chosen,
        });
    }

    pub(super) fn ask(&mut self, now: Time, asking: Asking, out: &mut OutboxOf<Self>) {
        match self.config.flavour {
            Flavour::Quorum => self.ask_quorum(now, asking, out),
            Flavour::Conservative | Flavour::Fast => self.ask_neighbours(now, asking, out),
        }
    }

    /// Every neighbour that we do not suspect must know.
    fn ask_neighbours(&mut self, now: Time, mut asking: Asking, out: &mut OutboxOf<Self>) {
        let unsuspected = |life: &Life| self.ring.suspected(life.id()).is_none();
        let waiting: Vec<NodeId> = self
            .ring
            .neighbours()
            .iter()
            .filter(|life| unsuspected(life))
            .map(Life::id)
            .filter(|id| !asking.granted.contains_key(id))
            .collect();
        let contested = self.ring.suspects().any(|(_, _, condemned)| !condemned);
        if waiting.is_empty() && !contested {
            // Everybody that might have led before us: those condemned that are closer, and the last leader.
            let suspected = self.ring.suspects().map(|(_, since, _)| since).max();
            let from = match (self.config.flavour, suspected) {
                (Flavour::Fast, Some(since)) if !asking.chosen => since + self.lease_wait(),
                _ => now + self.stopped_wait(),
            };
            self.bid = Bid::Office(Office {
                epoch: asking.epoch,
                from: from.max(now),
                told: false,
                support: BTreeMap::new(),
                installed: Vec::new(),
                committed: true,
                round: 0,
                sent: now,
                again: Time::NEVER,
                chosen: asking.chosen,
            });
            return self.serve(now, out);
        }
        if now >= asking.again {
            asking.again = now + self.ring.config().arbitration().div(2);
            for id in waiting {
                self.say(out, id, Body::Lead);
            }
        }
        self.bid = Bid::Asking(asking);
    }

    /// In office.
    pub(super) fn serve(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.config.flavour == Flavour::Quorum {
            self.keep_witnesses(now, out);
        }
        let acts = self.authority().is_some();
        let Bid::Office(office) = &mut self.bid else { return };
        if acts && !office.told {
            office.told = true;
            let epoch = office.epoch;
            self.announce(out, epoch);
        }
        let Bid::Office(office) = &self.bid else { return };
        let stays = self.config.sticky && self.config.flavour == Flavour::Quorum;
        if acts && !office.chosen && !stays {
            let best = self.best();
            let first = self.candidates().min_by_key(|&life| self.order(life, best));
            if let Some(heir) = first.filter(|&first| first != self.ring.life()) {
                self.hand_over(now, heir, out);
            }
        }
    }

    pub(super) fn on_command(&mut self, now: Time, command: Command, out: &mut OutboxOf<Self>) {
        let me = self.ring.life();
        let heir = match command {
            Command::Transfer(id) => self.candidates().find(|life| life.id() == id && *life != me),
            Command::Resign => {
                let others = self.candidates().filter(|&life| life != me && self.holds(life));
                let best = self.best();
                others.min_by_key(|&life| self.order(life, best))
            }
            Command::Weigh(id, worth) => {
                // Without a quorum the promise rests on members agreeing about who comes first.
                if self.config.flavour == Flavour::Quorum {
                    self.worths.insert(id, worth);
                }
                None
            }
        };
        if let Some(heir) = heir {
            self.hand_over(now, heir, out);
        }
    }

    fn holds(&self, life: Life) -> bool {
        self.ring.lease(life.id()).is_some_and(|lease| lease.active)
    }

    /// Stops, and then says to whom the office goes. Only to a neighbour: all others that might follow us must know.
    fn hand_over(&mut self, now: Time, heir: Life, out: &mut OutboxOf<Self>) {
        let all_know = self.ring.suspects().next().is_none()
            && self.ring.neighbours().iter().all(|&life| self.holds(life));
        let quorum = self.config.flavour == Flavour::Quorum;
        if !self.holds(heir) || self.authority().is_none() || !quorum && !all_know {
            return;
        }
        let Bid::Office(office) = &self.bid else { return };
        let epoch = office.epoch;
        let register = Register { epoch, holder: self.ring.life(), heir: Some(heir) };
        self.bid = Bid::None;
        out.emit(super::Event::Deposed { epoch });
        self.learn(register, out);
        let waiting = self.ring.neighbours().iter().map(Life::id).collect();
        self.cede(now, (register, waiting, now), out);
    }

    pub(super) fn cede(
        &mut self,
        now: Time,
        (register, mut waiting, mut again): (Register, Vec<NodeId>, Time),
        out: &mut OutboxOf<Self>,
    ) {
        waiting.retain(|&id| self.holds_any(id));
        let Some(heir) = register.heir else { return };
        if waiting.is_empty() {
            return self.say(out, heir.id(), Body::Take { epoch: register.epoch });
        }
        if now >= again {
            again = now + self.ring.config().arbitration().div(2);
            for &id in &waiting {
                self.say(out, id, Body::Lead);
            }
        }
        self.bid = Bid::Ceding { register, waiting, again };
    }

    /// We are about to leave the ring. By a quorum whoever comes next need not wait for us; by leases it is the owner of
    /// the key, once it has heard our goodbye.
    pub(super) fn leave_office(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.config.flavour == Flavour::Quorum {
            self.on_command(now, Command::Resign, out);
        }
        if let Bid::Ceding { register, .. } = &self.bid
            && let Some(heir) = register.heir
        {
            let epoch = register.epoch;
            self.say(out, heir.id(), Body::Take { epoch });
        }
        if let Bid::Office(office) = &self.bid {
            out.emit(super::Event::Deposed { epoch: office.epoch });
        }
        self.bid = Bid::None;
    }

    fn holds_any(&self, id: NodeId) -> bool {
        self.ring.lease(id).is_some_and(|lease| lease.active)
    }

    /// Somebody leads, or has handed over. If we know better, it is told.
    pub(super) fn on_lead(&self, from: Peer, message: &Message, out: &mut OutboxOf<Self>) {
        let Some(theirs) = message.stamp.as_ref().and_then(|stamp| stamp.register) else { return };
        let body = match self.register {
            Some(ours) if ours == theirs => {
                Body::LeadAck { epoch: theirs.epoch, handed: theirs.heir.is_some() }
            }
            _ if from.id == theirs.holder.id() => Body::Lead,
            _ => return,
        };
        self.say(out, from.id, body);
    }

    pub(super) fn on_lead_ack(&mut self, now: Time, from: Peer, epoch: Epoch, handed: bool) {
        match &mut self.bid {
            Bid::Asking(asking) if asking.epoch == epoch => {
                asking.granted.insert(from.id, Granted { asked: now, free: true, over: now });
            }
            Bid::Ceding { register, waiting, .. } if handed && register.epoch == epoch => {
                waiting.retain(|&id| id != from.id);
            }
            _ => {}
        }
    }

    pub(super) fn on_take(&mut self, epoch: Epoch) {
        let me = self.ring.life();
        let ours = |register: &Register| register.epoch == epoch && register.heir == Some(me);
        if self.register.as_ref().is_some_and(ours) {
            self.taken = Some(epoch);
        }
    }
}
