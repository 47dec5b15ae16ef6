//! Whether a leader hears and is heard: rules HB-9 and HB-10 of `docs/rules/half-broken.md`.
//!
//! Nobody else can tell a leader that hears nobody, and nobody can tell others that it does not hear them but itself. So
//! whoever leads asks now and then, unless it was answered anyway, and asks more of them if no answer comes:
//!
//! ```text
//! Sound --leads, and nobody has answered for `interval`--> Asking   Ping to one
//! Asking --no answer within `ack`------------------------> Asking   Ping to twice as many
//! Asking --an answer-------------------------------------> Sound
//! Asking --`patience` over, others are heard-------------> Mute     gives up what it leads, stands for nothing
//! Asking --`patience` over, nobody is heard, of several--> Deaf     the same; says so, as it may be heard
//! Mute, Deaf --an answer---------------------------------> Sound
//! Mute       --there was one other, and it has fallen silent> Sound   what is left of a pair leads
//! ```

use alloc::vec::Vec;

use super::{Contest, Node, OnIsolation};
use crate::{
    id::NodeId,
    leadership::Why,
    machine::OutboxOf,
    membership::medley::{ContactChange, MembershipEvent},
    time::{Duration, Time},
};

/// What a node knows of its own ears and mouth.
#[derive(Clone, Debug, Default)]
pub(super) struct Senses {
    /// Since when nobody hears us, though we hear others.
    unheard: Option<Time>,
    /// Whether there was one other only when that began.
    paired: bool,
    /// Since when we hear nobody, though there were several.
    deaf: Option<Time>,
    /// Whether eventual and learned elections are not to say anything: nobody answers, and who still hears us would be
    /// deposed by what we make of that.
    pub(super) hushed: bool,
    /// Who was there when somebody was last heard. Of those who went one by one only the last is left.
    company: Vec<NodeId>,
    /// Whether somebody was heard by this input, and whether the membership has changed since `company` was written down.
    pub(super) heard: bool,
    changed: bool,
    /// When we last asked, and whom to ask next.
    asked: Option<Time>,
    turn: usize,
    /// How many rounds of questions have not been answered.
    rounds: u32,
    next: Option<Time>,
}

impl Senses {
    pub(super) fn next(&self) -> Time {
        self.next.unwrap_or(Time::NEVER)
    }
}

impl Node {
    /// Somebody is listed, or no longer.
    pub(super) fn note_company(&mut self, event: MembershipEvent) {
        match event {
            MembershipEvent::Joined(id) => {
                self.paths.forget_question(id);
                self.senses.changed = true;
            }
            MembershipEvent::Failed { .. } | MembershipEvent::Left(_) => self.senses.changed = true,
            MembershipEvent::Suspected { .. }
            | MembershipEvent::Refuted(_)
            | MembershipEvent::Introduced(_) => {}
        }
    }

    /// Why this node must not lead here, if it is one that nobody hears or that hears nobody. Leased and learned elections
    /// need no such rule: their leaders are backed by answers.
    pub(super) fn lacks_a_sense(&self, at: usize) -> Option<Why> {
        if matches!(self.seats[at].contest, Contest::Leased(_) | Contest::Learned(_)) {
            return None;
        }
        let mute = self.senses.unheard.map(|since| Why::NotHeard { since });
        let judges = self.plan.seats[at].on_isolation == OnIsolation::Auto;
        let deaf = self.senses.deaf.filter(|_| judges);
        mute.or(deaf.map(|since| Why::HearsNobody { since }))
    }

    /// Between two questions of a leader that nobody has answered meanwhile.
    fn interval(&self) -> Duration {
        self.plan.timing.beat * BEATS
    }

    /// How long nobody may answer. A leader has to know before others have got over it; others have time for the next probe.
    fn patience(&self) -> Duration {
        let timing = &self.plan.timing;
        match self.leads || self.senses.asked.is_some() {
            true => (timing.beat * 3).max(timing.ack * 5),
            false => timing.period + timing.ack * 4,
        }
    }

    pub(super) fn look_who_hears_us(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        // Whoever has lost a sense buries all others meanwhile; they are still the ones to ask.
        let sound = self.senses.unheard.or(self.senses.deaf).is_none();
        if core::mem::take(&mut self.senses.heard) && self.senses.changed && sound {
            let members = self.stack.membership().members();
            self.senses.company.clear();
            self.senses.company.extend(members.map(|member| member.id));
            self.senses.changed = false;
        }
        let patience = self.patience();
        let Senses { unheard, deaf, .. } = self.senses;
        let answered = |since: Time| self.paths.last_answer() >= Some(since);
        // Whoever has lost one of both keeps it until somebody answers.
        let mute = match unheard {
            // If it was one that spoke and did not answer, and it has fallen silent, nobody knows which of both was broken.
            Some(since) => {
                !answered(since) && (!self.senses.paired || self.paths.hears_any(now, patience))
            }
            None => self.paths.is_unheard(now, patience, &self.senses.company),
        };
        let numb = match deaf {
            Some(since) => !answered(since),
            None => self.paths.is_deaf(now, patience, &self.senses.company),
        };
        if (mute, numb) == (unheard.is_some(), deaf.is_some()) {
            return;
        }
        if unheard.is_none() {
            self.senses.paired = self.senses.company.len() == 1;
        }
        self.senses.unheard = mute.then(|| unheard.unwrap_or(now));
        self.senses.deaf = numb.then(|| deaf.unwrap_or(now));
        let loses = mute && unheard.is_none() || numb && deaf.is_none();
        if !sound && !mute && !numb {
            // It would wait nine times as long as others for a leader's answer, for minutes.
            self.feed_stack(now, ContactChange::Restored);
        }
        for at in 0..self.seats.len() {
            match &self.seats[at].contest {
                // Whoever can still hear it need not wait for its lease to end.
                Contest::Learned(_) if loses => {
                    self.with(now, at, out, |contest, port| {
                        if let Contest::Learned(learned) = contest {
                            learned.resign(port);
                        }
                    });
                }
                _ => {}
            }
        }
        self.observe(now, out);
        self.introduce(now);
        self.drain(now, out);
        // By saying that it does not lead it has handed over, and it will never hear whether anybody took it: asking one
        // after another would depose whoever did.
        self.senses.hushed = mute || numb;
        for at in 0..self.seats.len() {
            if matches!(self.seats[at].contest, Contest::Eventual) {
                self.void(now, at, out);
            }
        }
        self.drain(now, out);
    }

    /// Asks those that should be there, if it is time to.
    pub(super) fn ask_around(&mut self, now: Time) {
        if self.senses.next() > now {
            return;
        }
        let senses = &mut self.senses;
        let count = (1usize << senses.rounds.min(8)).min(MOST).min(senses.company.len());
        (senses.asked, senses.rounds) = (Some(now), senses.rounds.saturating_add(1));
        for _ in 0..count {
            let senses = &mut self.senses;
            senses.turn = (senses.turn + 1) % senses.company.len();
            let id = senses.company[senses.turn];
            self.feed_stack(now, ContactChange::Asked { id });
        }
    }

    /// When to ask next, after whatever has happened.
    pub(super) fn plan_to_ask(&mut self, now: Time) {
        let lost = self.senses.unheard.or(self.senses.deaf).is_some();
        // Whoever has begun to ask wants to know, though its lease has ended meanwhile.
        let open = self.paths.waits_since().is_some_and(|at| now.since(at) < self.patience() * 2);
        let asks = lost || self.leads || self.senses.asked.is_some() && open;
        if !asks || self.senses.company.is_empty() {
            (self.senses.next, self.senses.asked) = (None, None);
            return;
        }
        if self.senses.asked.is_none() && !lost {
            self.paths.ask_anew();
        }
        let last = *self.senses.asked.get_or_insert(now);
        self.senses.next = Some(match self.paths.waits_since() {
            // Who is still silent then is gone, and there were not several.
            Some(since) if !lost && now.since(since) < self.patience() * 2 => {
                last.max(since) + self.plan.timing.ack
            }
            open => {
                if open.is_none() {
                    self.senses.rounds = 0;
                }
                let answer = self.paths.last_answer().unwrap_or(last);
                last.max(answer) + self.interval()
            }
        });
    }
}

/// Beats to a question. With fewer questions it takes longer to notice, and others have to wait for it.
const BEATS: u64 = 4;
/// Asked at once at most. Arbitrary.
const MOST: usize = 6;
