//! Authority by a majority of witnesses (R11.9).

use alloc::vec::Vec;

use super::{Asking, Bid, Body, Electorate, Event, Granted, Leased, Message, Office};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    machine::OutboxOf,
    membership::ring::{Life, geometry},
    rng::mix,
    time::{Duration, Time},
};

impl Leased {
    /// Until when a majority of all witnesses backs us: each until two sessions after the exchange began.
    pub(super) fn backed_until(&self, office: &Office) -> Option<Time> {
        let electorate = self.electorate.as_ref()?;
        if self.ring.members().count() < self.config.min_members {
            return None;
        }
        let me = self.ring.life();
        let mut until = Time::NEVER;
        for group in electorate.groups() {
            let mut ends: Vec<Time> = group
                .iter()
                .filter_map(|life| match *life == me {
                    true => Some(Time::NEVER),
                    false => office.support.get(&life.id()).map(|&at| at + self.session() * 2),
                })
                .collect();
            ends.sort_unstable();
            let needed = geometry::majority(group.len());
            until = until.min(*ends.get(ends.len().checked_sub(needed)?)?);
        }
        // Besides ourselves, whoever the witnesses are.
        if let Some(others) = self.config.backers.checked_sub(1).filter(|&others| others > 0) {
            let support = office.support.iter().filter(|&(&id, _)| id != me.id());
            let mut ends: Vec<Time> = support.map(|(_, &at)| at + self.session() * 2).collect();
            ends.sort_unstable();
            until = until.min(*ends.get(ends.len().checked_sub(others)?)?);
        }
        Some(until)
    }

    /// Somebody wants us to back it.
    pub(super) fn on_claim(
        &mut self,
        now: Time,
        from: Peer,
        (epoch, life, after, round): (Epoch, Life, Option<Epoch>, u32),
        message: &Message,
        out: &mut OutboxOf<Self>,
    ) {
        let theirs = message.stamp.as_ref().and_then(|stamp| stamp.electorate.as_ref());
        let knows = match (&self.electorate, theirs) {
            (Some(ours), Some(theirs)) => theirs.mark >= ours.mark,
            _ => false,
        };
        if life.peer != from || !knows {
            return self.say(out, from.id, Body::Refuse { epoch });
        }
        match self.promise(now, epoch, life, after, out) {
            Some(free) => {
                let since = now.since(self.counted_before);
                self.say(out, from.id, Body::Grant { epoch, free, since, round });
            }
            None => self.say(out, from.id, Body::Refuse { epoch }),
        }
    }

    /// Promises ourselves to `life`, unless the leader we back is still ours to back; whether nobody else, not having
    /// stopped, can count on us.
    fn promise(
        &mut self,
        now: Time,
        epoch: Epoch,
        life: Life,
        after: Option<Epoch>,
        out: &mut OutboxOf<Self>,
    ) -> Option<bool> {
        let me = self.ring.life();
        let votes = self.electorate.as_ref().is_some_and(|e| e.members().contains(&me));
        if !votes || !self.ring.is_active() || self.ring.is_gone(life) {
            return None;
        }
        if self.promised == Some(epoch) {
            if self.is_deaf_to_us(life.id()) {
                return None;
            }
            // The first answer may have been lost: it is the same.
            self.backed_at = now;
            self.counted = now;
            return Some(self.free);
        }
        let lost = match self.promised {
            None => true,
            Some(promised) => {
                let leader = promised.minter();
                let listed = self.ring.members().any(|life| life.peer == leader);
                let heir = self.register.is_some_and(|register| register.heir == Some(life));
                // Nobody acknowledges itself: who may act backs itself.
                let ours = leader == self.me;
                let stale = now.since(self.backed_at) >= self.session() * 2;
                leader == life.peer
                    || self.forgone == self.promised
                    || after.is_some_and(|after| after >= promised)
                    || heir
                    || !listed
                    || self.ring.suspected(leader.id).is_some()
                    || if ours { self.authority().is_none() } else { stale }
            }
        };
        if self.promised.is_some_and(|promised| promised > epoch) || !lost {
            return None;
        }
        let free = self.backed.is_none_or(|backed| after.is_some_and(|after| after >= backed));
        // It counts on itself; from now on it must not.
        if let Bid::Office(Office { epoch: ours, .. }) = self.bid
            && ours != epoch
        {
            self.bid = Bid::None;
            out.emit(Event::Deposed { epoch: ours });
        }
        // A later life must not promise itself to an earlier one.
        self.keep(epoch, out);
        self.promised = Some(epoch);
        self.free = free;
        self.backed = self.backed.max(Some(epoch));
        self.backed_at = now;
        self.counted_before = self.counted;
        self.counted = now;
        Some(free)
    }

    /// When all is over that anybody may do because it counted, `since` ago, on the witness whose promise we hear of now.
    /// The wait allows for a clock as fast as ours may be; what the witness has measured of it, its clock was no faster.
    fn over(&self, now: Time, since: Duration) -> Time {
        now + self.lease_wait().saturating_sub(since)
    }

    pub(super) fn on_grant(
        &mut self,
        now: Time,
        from: Peer,
        (epoch, free, since, round): (Epoch, bool, Duration, u32),
    ) {
        let over = self.over(now, since);
        match &mut self.bid {
            Bid::Asking(asking) if asking.epoch == epoch && asking.round == round => {
                let granted = Granted { asked: asking.sent, free, over };
                asking.granted.entry(from.id).or_insert(granted);
            }
            Bid::Office(office) if office.epoch == epoch && office.round == round => {
                let at = office.support.entry(from.id).or_insert(office.sent);
                *at = office.sent.max(*at);
            }
            _ => {}
        }
    }

    /// A witness has promised itself to a later one: claim a later one still, after a while of our own.
    pub(super) fn on_refuse(&mut self, now: Time, epoch: Epoch, message: &Message) {
        let backs = message.stamp.as_ref().and_then(|stamp| stamp.backs);
        if !matches!(&self.bid, Bid::Asking(asking) if asking.epoch == epoch && backs > Some(epoch))
        {
            return;
        }
        let again = now + self.pause(epoch);
        let epoch = self.mint();
        if let Bid::Asking(asking) = &mut self.bid {
            asking.epoch = epoch;
            asking.granted.clear();
            asking.again = again;
        }
    }

    /// A while of our own, up to a session.
    fn pause(&self, epoch: Epoch) -> Duration {
        let length = self.session().as_micros().max(1);
        Duration::from_micros(mix(self.me.id.get() ^ epoch.counter()) % length)
    }

    /// Frees those that have promised themselves to us, to whom we would be as good as a leader for as long as we live.
    pub(super) fn forgo(&self, epoch: Epoch, out: &mut OutboxOf<Self>) {
        let witnesses = self.electorate.iter().flat_map(Electorate::members);
        for witness in witnesses.filter(|witness| witness.peer != self.me) {
            self.say(out, witness.id(), Body::Forgo { epoch });
        }
    }

    /// Asks all witnesses, ourselves included.
    pub(super) fn ask_quorum(&mut self, now: Time, mut asking: Asking, out: &mut OutboxOf<Self>) {
        let Some(electorate) = self.electorate.clone() else { return };
        let (me, epoch) = (self.ring.life(), asking.epoch);
        let after = self.taken.filter(|_| asking.chosen);
        if now >= asking.since + self.session() * 4 {
            // In vain; those before us may have been right. Whoever still asks has time to ask those that we free, and two
            // that gave up together do not begin together.
            self.forgo(epoch, out);
            self.lacking = Some(now + (self.session() + self.pause(epoch)) * 2);
            return;
        }
        if now >= asking.again {
            asking.round += 1;
            asking.sent = now;
            asking.again = now + self.ring.config().arbitration().div(2);
            let life = self.ring.life();
            let witnesses = electorate.members();
            // Ourselves first: who leads knows by what we say of it that its time is over.
            if witnesses.contains(&me)
                && let Some(free) = self.promise(now, epoch, life, after, out)
            {
                let over = self.over(now, now.since(self.counted_before));
                asking.granted.entry(me.id()).or_insert(Granted { asked: now, free, over });
            }
            for witness in witnesses.into_iter().filter(|&witness| witness != me) {
                if !asking.granted.contains_key(&witness.id()) {
                    let round = asking.round;
                    self.say(out, witness.id(), Body::Claim { epoch, life, after, round });
                }
            }
        }
        let granted = |life: Life| asking.granted.contains_key(&life.id());
        // Whoever leads backs itself: who has promised itself to a later one since it began to ask has lost.
        let yielded = self.promised > Some(epoch) || self.promised < Some(epoch) && granted(me);
        if yielded || !electorate.is_won(granted) {
            self.bid = Bid::Asking(asking);
            return;
        }
        // Whoever led before us counted on one of these. Where nothing is begun that could outlast it, those that have
        // stopped are not waited for.
        let waits = asking.granted.values().any(|granted| !granted.free);
        let waits = waits || !self.stopped_wait().is_zero();
        let over = asking.granted.values().map(|granted| granted.over).max();
        let from = over.filter(|_| waits).unwrap_or(now).max(now);
        let support = asking.granted.iter().map(|(&id, granted)| (id, granted.asked)).collect();
        self.electorate = Some(Electorate { mark: (Some(epoch), 0), ..electorate });
        self.bid = Bid::Office(Office {
            epoch,
            from,
            told: false,
            support,
            installed: Vec::new(),
            committed: false,
            round: asking.round,
            sent: asking.sent,
            again: now,
            chosen: asking.chosen,
        });
        self.serve(now, out);
    }

    /// Keeps the witnesses, and their list, up to date.
    pub(super) fn keep_witnesses(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let me = self.ring.life();
        self.advance_electorate();
        let Some(electorate) = self.electorate.clone() else { return };
        let half = self.session().div(2);
        let Bid::Office(office) = &mut self.bid else { return };
        if now < office.again {
            return;
        }
        office.again = now + half;
        office.round += 1;
        office.sent = now;
        let (epoch, round, installed) = (office.epoch, office.round, office.installed.clone());
        let (support, length) = (office.support.clone(), half * 2);
        for witness in electorate.members().into_iter().filter(|&life| life != me) {
            if !installed.contains(&witness.id()) {
                self.say(out, witness.id(), Body::Install);
            }
            // Whose acknowledgements do not back us, or who has no lease with us, is asked.
            let last = support.get(&witness.id());
            if last.is_none_or(|&at| now.since(at) > length) {
                let claim = Body::Claim { epoch, life: me, after: None, round };
                self.say(out, witness.id(), claim);
            }
        }
    }

    pub(super) fn on_installed(&mut self, from: Peer, mark: (Option<Epoch>, u32)) {
        let ours = self.electorate.as_ref().map(|electorate| electorate.mark);
        if let Bid::Office(office) = &mut self.bid
            && Some(mark) == ours
            && !office.installed.contains(&from.id)
        {
            office.installed.push(from.id);
        }
    }

    /// One step of a change of witnesses, if the last one is known to a majority of all concerned.
    fn advance_electorate(&mut self) {
        let me = self.ring.life();
        let Some(electorate) = &self.electorate else { return };
        let Bid::Office(office) = &self.bid else { return };
        // Who is not backed by enough must not end up with a list of too few.
        if self.backed_until(office).is_none_or(|until| self.now >= until) {
            return;
        }
        // And backs us: or we would change to those that do not.
        let has = |life: Life| {
            let backs = office.support.get(&life.id());
            let backs = backs.is_some_and(|&at| self.now < at + self.session() * 2);
            life == me || office.installed.contains(&life.id()) && backs
        };
        if !electorate.is_won(has) {
            return;
        }
        let mut wanted: Vec<Life> = self
            .ring
            .neighbours()
            .into_iter()
            .filter(|life| self.ring.lease(life.id()).is_some_and(|lease| lease.active))
            .collect();
        wanted.push(me);
        wanted.sort_unstable();
        let (epoch, change) = electorate.mark;
        let next = if !electorate.new.is_empty() {
            Electorate { mark: (epoch, change + 1), old: electorate.new.clone(), new: Vec::new() }
        } else if wanted != electorate.old && self.outlives(office, &electorate.old, &wanted) {
            let old = electorate.old.clone();
            Electorate { mark: (epoch, change + 1), old, new: wanted }
        } else {
            return;
        };
        self.electorate = Some(next);
        if let Bid::Office(office) = &mut self.bid {
            office.installed.clear();
            office.again = Time::ZERO;
        }
    }

    /// Whether a majority of the list, ourselves included, have backed us clearly after whoever is to go last did. A leader that hears nobody
    /// loses all at once, one a little sooner than another: it would leave those who hear it with a list on which nobody can
    /// lead without it: `HB-11` of `docs/rules/half-broken.md`.
    fn outlives(&self, office: &Office, old: &[Life], wanted: &[Life]) -> bool {
        let support = |life: &Life| office.support.get(&life.id()).copied();
        let gone = old.iter().filter(|life| !wanted.contains(life));
        let Some(last) = gone.filter_map(support).max() else { return true };
        let later = |life: &&Life| support(life).is_some_and(|at| at > last + self.session());
        let stay =
            1 + wanted.iter().filter(|&&life| life != self.ring.life()).filter(later).count();
        stay >= geometry::majority(old.len())
    }

    pub(super) fn told(&self) -> Vec<NodeId> {
        self.ring.members().map(|life| life.id()).filter(|&id| id != self.me.id).collect()
    }

    pub(super) fn announce(&mut self, out: &mut OutboxOf<Self>, epoch: Epoch) {
        let register = super::Register { epoch, holder: self.ring.life(), heir: None };
        self.learn(register, out);
        out.emit(Event::Elected { epoch });
        for id in self.told() {
            self.say(out, id, Body::Lead);
        }
    }
}
