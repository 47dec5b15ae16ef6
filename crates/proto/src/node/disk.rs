//! What must survive a restart, and what a node does while its disk writes it, refuses it or hangs.
//!
//! One rule for every mode: an election names nobody under an epoch that is not on disk, and says nothing that rests on
//! what is not. While its state is being written it holds back what it has to say; elections whose state is safe, and the
//! membership, go on. At most one write is under way; what changes meanwhile is in the next one, so the newest state wins.
//!
//! A disk that refuses, or takes longer than [others wait for a silent leader](super::Timing::given_up_after), bars the
//! elections whose state it does not have: what they held back is forgotten, and they name nobody until it is there. The
//! node asks a disk that refused again every [`RETRY`]. What an election said last may rest on what was never kept, so once
//! the disk has recovered it gives up what it holds, as one that was stopped does. So does an announced election that
//! could say nothing for longer than a stopped one may be and has heard another claim meanwhile: what it holds back is what
//! the others listen for, and said now it would depose its successor.
//!
//! ```text
//! Kept    --Persist, next input no word of it-> Kept      the host has written it at once
//! Kept    --Persist, then Writing-------------> Writing   those that are not as on disk hold back what they say
//! Writing --Kept------------------------------> Kept      they say it, unless it is too late for that; Persist again if
//!                                                         there is news
//! Writing --too long--------------------------> Barred    those that are not as on disk fall silent
//! any     --NotKept---------------------------> Barred    the same
//! Barred  --RETRY, unless a write is under way> Barred    Persist again
//! Barred  --all is on disk--------------------> Kept      they give up leading, and take part again
//! ```

use alloc::{collections::BTreeMap, vec::Vec};

use super::{Contest, Event, Fact, Node, founding, record::KeptRecord, voters::KeptBallot};
use crate::{
    election::{announce, churn_tolerant},
    epoch::Epoch,
    id::ElectionId,
    machine::{Effect, EffectOf, Input, InputOf, OutboxOf},
    time::{Duration, Time},
};

/// All that must survive a restart. A host writes it down whole, and gives it to the next life.
///
/// ```
/// use bellwether_proto::{node::Durable, wire::{Reader, Wire}};
///
/// let state = Durable::default();
/// let mut bytes = Vec::new();
/// state.encode(&mut bytes);
/// let next_life = Durable::decode(&mut Reader::new(&bytes));
/// assert_eq!(next_life, Ok(state));
/// ```
#[derive(Clone, Debug, Default, Hash, PartialEq)]
pub struct Durable {
    /// What each election must not forget.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub elections: BTreeMap<ElectionId, Kept>,
    /// What the node is good for, if that is kept.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub record: Option<KeptRecord>,
}

/// What one election must not forget.
#[derive(Clone, Debug, Hash, PartialEq)]
pub enum Kept {
    /// The tokens of an eventual one.
    Eventual(churn_tolerant::Durable),
    /// Of an announced one: no larger token was minted or vouched for.
    Announced(announce::Durable),
    /// Of a leased one: no larger epoch was promised to or known.
    Leased(Epoch),
    /// Of a learned one: who votes, and how this node voted.
    Learned(KeptBallot),
}

impl Kept {
    /// Whether a life that found `other` on disk could break a promise that one with `self` would keep.
    fn is_kept_by(&self, other: Option<&Self>) -> bool {
        match (self, other) {
            // What was learnt may be lost; who votes and how must not be.
            (Self::Learned(ours), Some(Self::Learned(theirs))) => {
                let vote = |kept: &KeptBallot| {
                    kept.durable.as_ref().map(|durable| (durable.term, durable.voted_for))
                };
                ours.voters == theirs.voters && vote(ours) == vote(theirs)
            }
            _ => Some(self) == other,
        }
    }

    /// Whether a life that finds this on disk knows that there was this epoch.
    fn covers(&self, epoch: Epoch) -> bool {
        match self {
            // That it was minted is not that we vouched for it: that could still be taken back.
            Self::Eventual(kept) => kept.vouched >= Some(epoch),
            Self::Announced(kept) => kept.max_epoch >= epoch.counter(),
            Self::Leased(kept) => *kept >= epoch,
            Self::Learned(kept) => {
                kept.durable.as_ref().is_some_and(|kept| kept.term >= epoch.counter())
            }
        }
    }
}

/// What is known of the disk.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// What is there, as far as we know.
    written: Durable,
    /// What was handed out to be kept since the last input, and what stood behind it.
    asked: Option<Durable>,
    behind: Vec<EffectOf<Node>>,
    /// What is being written, and since when.
    writing: Option<(Durable, Time)>,
    /// Since when it refuses or hangs, and when to ask again.
    refused: Option<(Time, Time)>,
}

impl Disk {
    pub(super) fn new(written: Durable) -> Self {
        Self { written, asked: None, behind: Vec::new(), writing: None, refused: None }
    }

    /// Hands everything out to be kept, unless a write is under way: then it is in the next one.
    pub(super) fn persist(&self, durable: &Durable, out: &mut OutboxOf<Node>) {
        if self.writing.is_none() {
            out.persist(durable.clone());
        }
    }

    /// Whether an election has to wait for the write that is under way, or for the next one.
    pub(super) fn holds(&self, durable: &Durable, group: ElectionId) -> bool {
        self.writing.is_some() && !self.has(durable, group)
    }

    /// Whether what an election must not forget is there.
    fn has(&self, durable: &Durable, group: ElectionId) -> bool {
        let kept = durable.elections.get(&group);
        kept.is_none_or(|kept| kept.is_kept_by(self.written.elections.get(&group)))
    }

    fn has_all(&self, durable: &Durable) -> bool {
        durable.elections.keys().all(|&group| self.has(durable, group))
    }
}

impl Node {
    /// What came of what was handed out to be kept.
    pub(super) fn learn_of_disk(
        &mut self,
        now: Time,
        input: &InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) {
        let fact = match input {
            Input::Feed(fact) => Some(fact),
            _ => None,
        };
        let asked = self.disk.asked.take();
        let behind = core::mem::take(&mut self.disk.behind);
        match (fact, asked) {
            (Some(Fact::Writing), Some(state)) => {
                self.disk.writing = Some((state, now));
                behind.into_iter().for_each(|effect| self.say_or_hold(effect, out));
            }
            (Some(Fact::Kept), _) => {
                if let Some((state, _)) = self.disk.writing.take() {
                    self.disk.written = state;
                    self.on_kept(now, out);
                }
            }
            (Some(Fact::NotKept), asked) => {
                if self.disk.writing.is_some() || asked.is_some() {
                    self.on_refused(now, now + RETRY, out);
                }
                self.disk.writing = None;
            }
            (_, Some(_)) => {
                // The newest of those that were handed out together.
                self.disk.written = self.durable.clone();
                self.on_kept(now, out);
            }
            (_, None) => {}
        }
    }

    /// Whatever this input handed out is asked for, and remembered until the next says what came of it.
    pub(super) fn ask_disk(&mut self, out: &OutboxOf<Self>) {
        if let Some((state, behind)) = out.behind_persist() {
            self.disk.asked = Some(state.clone());
            self.disk.behind.extend(behind.filter(|it| !matches!(it, Effect::Emit(_))).cloned());
        }
    }

    /// The host has not carried this out, as it stood behind what is now being written. Whatever does not rest on that is
    /// said after all.
    fn say_or_hold(&mut self, effect: EffectOf<Self>, out: &mut OutboxOf<Self>) {
        let (Effect::Send { message, .. }
        | Effect::Broadcast(message)
        | Effect::Multicast(message)) = &effect
        else {
            return;
        };
        let seat = message.election().and_then(|group| self.position(group).ok());
        match seat.filter(|&at| self.disk.holds(&self.durable, self.seats[at].group)) {
            Some(at) => self.seats[at].held.push(effect),
            None => out.push(effect),
        }
    }

    /// The disk has what it was given last.
    fn on_kept(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        for at in 0..self.seats.len() {
            let seat = &mut self.seats[at];
            if seat.barred.is_some() || !self.disk.has(&self.durable, seat.group) {
                continue;
            }
            let guard = self.plan.seats[at].guard;
            let late = seat.held_since.is_some_and(|since| now.since(since) > guard);
            match &seat.contest {
                Contest::Announced(it) if late && it.has_rival() => self.void(now, at, out),
                _ => seat.held.drain(..).for_each(|effect| out.push(effect)),
            }
        }
        let news = self.disk.written != self.durable;
        if self.disk.has_all(&self.durable) && self.disk.refused.take().is_some() {
            out.emit(Event::DiskRecovered);
            let barred: Vec<usize> =
                (0..self.seats.len()).filter(|&at| self.seats[at].barred.is_some()).collect();
            for &at in &barred {
                self.seats[at].barred = None;
                self.void(now, at, out);
            }
            self.tell_whether_barred(now, &barred);
        }
        if news {
            self.persist(out);
        }
    }

    fn on_refused(&mut self, now: Time, retry: Time, out: &mut OutboxOf<Self>) {
        let since = self.disk.refused.map_or(now, |(since, _)| since);
        if self.disk.refused.is_none() {
            out.emit(Event::DiskRefused);
        }
        self.disk.refused = Some((since, retry));
        self.bar_unkept(now, out);
    }

    /// A disk that hangs is not asked to keep anything else, so it cannot refuse it.
    pub(super) fn bar_the_waiting(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.disk.refused.is_some() && self.disk.writing.is_some() {
            self.bar_unkept(now, out);
        }
    }

    /// Since when each has something to say and cannot.
    pub(super) fn note_who_waits(&mut self, now: Time) {
        for seat in &mut self.seats {
            match seat.held.is_empty() {
                true => seat.held_since = None,
                false => _ = seat.held_since.get_or_insert(now),
            }
        }
    }

    /// Silences those whose state a disk that refuses or hangs does not have.
    fn bar_unkept(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let unkept =
            |seat: &super::Seat| seat.barred.is_none() && !self.disk.has(&self.durable, seat.group);
        let unkept: Vec<usize> =
            (0..self.seats.len()).filter(|&at| unkept(&self.seats[at])).collect();
        for &at in &unkept {
            self.seats[at].barred = Some(now);
            self.seats[at].held.clear();
            let group = self.seats[at].group;
            // Of what was refused at once, something may have been kept and said before.
            if let (Contest::Eventual, true) =
                (&self.seats[at].contest, self.disk.writing.is_some())
            {
                let vouched = match self.disk.written.elections.get(&group) {
                    Some(Kept::Eventual(kept)) => kept.vouched,
                    _ => None,
                };
                self.command_stack(now, group, churn_tolerant::Command::Unsay(vouched));
            }
            self.with(now, at, out, |contest, port| {
                if let Contest::Leased(leased) = contest {
                    founding::Founding::withdraw(leased, port);
                }
            });
        }
        self.tell_whether_barred(now, &unkept);
    }

    /// Eventual elections are led by whoever is alive: the others have to be told that this one is and does not lead.
    fn tell_whether_barred(&mut self, now: Time, seats: &[usize]) {
        if seats.iter().any(|&at| matches!(self.seats[at].contest, Contest::Eventual)) {
            self.introduce(now);
        }
    }

    /// When to look after the disk.
    pub(super) fn disk_due(&self) -> Option<Time> {
        match (&self.disk.writing, self.disk.refused) {
            (Some((_, since)), None) => Some(*since + self.plan.timing.given_up_after()),
            (Some(_), Some(_)) => None,
            (None, refused) => refused.map(|(_, retry)| retry),
        }
    }

    /// Asks the disk again, or gives it up, if it is time.
    pub(super) fn look_after_disk(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.disk_due().is_none_or(|due| due > now) {
            return;
        }
        match self.disk.writing.is_some() {
            // It is not asked anything else before it has answered.
            true => self.on_refused(now, Time::NEVER, out),
            false => {
                if let Some((_, retry)) = &mut self.disk.refused {
                    *retry = now + RETRY;
                }
                self.persist(out);
            }
        }
    }

    /// Hands everything out to be kept.
    pub(super) fn persist(&mut self, out: &mut OutboxOf<Self>) {
        self.disk.persist(&self.durable, out);
    }

    /// Since when what would have to be on disk for an election to name somebody under this epoch is being written.
    pub(super) fn unkept_since(&self, group: ElectionId, epoch: Option<Epoch>) -> Option<Time> {
        let (_, since) = self.disk.writing.as_ref()?;
        let epoch = epoch.filter(|_| self.disk.holds(&self.durable, group))?;
        let written = self.disk.written.elections.get(&group);
        (!written.is_some_and(|kept| kept.covers(epoch))).then_some(*since)
    }

    /// Since when the disk refuses what this node has to keep, or has not answered.
    pub fn disk_refuses_since(&self) -> Option<Time> {
        self.disk.refused.map(|(since, _)| since)
    }
}

/// Between two tries. Arbitrary: soon enough for people, and no burden on a disk in trouble.
const RETRY: Duration = Duration::from_secs(1);
