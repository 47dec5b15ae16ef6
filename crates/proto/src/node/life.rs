//! How a node's life begins and ends: it starts, hands over and leaves, is superseded by a later life, or finds that it was
//! stopped.

use super::{Contest, Event, Node, Phase, record::Record};
use crate::{
    election::churn_tolerant,
    id::{Boot, Peer},
    machine::{Input, Machine as _, OutboxOf, Rejected},
    time::{Duration, Time},
};

impl Node {
    pub(super) fn start(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if self.phase != Phase::New {
            return Err(Rejected::StartedTwice);
        }
        self.phase = Phase::Running;
        self.stack.begin_survey(self.plan.survey, self.plan.timing.election, self.seed, now);
        if self.plan.seats.iter().any(|seat| seat.learns) {
            let record = Record::begin(self.plan.sample, now, self.durable.record);
            self.durable.record = Some(record.kept(false));
            self.record = Some(record);
            self.take_worth();
            self.persist(out);
        }
        self.observe(now, out);
        self.each(now, out, |contest, port| match contest {
            Contest::Eventual => {}
            Contest::Announced(announced) => announced.tell(Input::Start, port),
            Contest::Leased(leased) => leased.start(port),
            Contest::Learned(learned) => learned.start(port),
            Contest::Central(central) => central.start(port),
        });
        self.stack.handle(now, Input::Start, &mut self.below)?;
        self.introduce(now);
        self.seek = if self.seeds.is_empty() { Time::NEVER } else { now };
        self.seek_seeds(now);
        Ok(())
    }

    /// Hands over, then says goodbye.
    pub(super) fn leave(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.phase != Phase::Running {
            return;
        }
        if let Some(record) = self.record.take() {
            self.durable.record = Some(record.kept(true));
            self.persist(out);
        }
        self.seeds.clear();
        self.seek = Time::NEVER;
        for at in 0..self.seats.len() {
            if self.leads_eventual(at, now) {
                let group = self.seats[at].group;
                self.command_stack(now, group, churn_tolerant::Command::Resign);
            }
        }
        let until = now + self.plan.timing.election * 12;
        self.phase = Phase::Leaving { until, said: false };
    }

    /// Those beside the stack hand over, or say goodbye, in leaving.
    fn leads_eventual(&self, at: usize, now: Time) -> bool {
        matches!(self.seats[at].contest, Contest::Eventual)
            && self.answer(at, now).leader == Some(self.me.id)
    }

    pub(super) fn go_on_leaving(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Phase::Leaving { until, said: false } = self.phase else { return };
        let leads = (0..self.seats.len()).any(|at| self.leads_eventual(at, now));
        if leads && now < until && !self.stack.membership().is_empty() {
            return;
        }
        self.phase = Phase::Leaving { until: now + GOODBYE, said: true };
        self.each(now, out, |contest, port| match contest {
            Contest::Eventual => {}
            Contest::Announced(announced) => announced.tell(Input::Leave, port),
            Contest::Leased(leased) => leased.leave(port),
            Contest::Learned(learned) => learned.leave(port),
            Contest::Central(central) => central.leave(port),
        });
        let left = self.stack.handle(now, Input::Leave, &mut self.below);
        debug_assert_eq!(left, Ok(()), "it runs");
    }

    /// A later life of ours runs elsewhere. It must not hear a goodbye in its own name.
    pub(super) fn supersede(&mut self, by: Boot, out: &mut OutboxOf<Self>) {
        if by > self.me.boot && self.is_running() {
            let other = Peer::new(self.me.id, by);
            self.phase = Phase::Superseded(other);
            out.emit(Event::DuplicateIdentity { other });
        }
    }

    /// Whoever was stopped for so long that others may have replaced it gives up leading before anything else.
    pub(super) fn notice_stall(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.is_late(now) {
            return;
        }
        let lasted = self.late_by(now);
        out.emit(Event::Stalled { lasted });
        self.doubt_ourselves(1.0);
        for at in 0..self.seats.len() {
            if lasted > self.plan.seats[at].guard {
                self.void(now, at, out);
            }
        }
        self.drain(now, out);
    }
}

/// After that long everybody has been told goodbye, or will not be.
const GOODBYE: Duration = Duration::from_secs(2);
