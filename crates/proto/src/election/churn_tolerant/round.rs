//! The initiator, B1 to B4 and B7, and what is done about several of them (MI) and the dead (DC); and the
//! responder.

use alloc::vec::Vec;

use super::{
    ChurnTolerant, Event, Timer,
    choice::{Answer, elected},
    config::{Decision, Health, Notify},
    election_of,
    leading::Notice,
    message::{Candidate, Life, MAX_CANDIDATES, MAX_DEAD, Message, Query, Response},
};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    machine::{OutboxOf, Rejected},
    time::{Duration, Time},
};

/// One election, at its initiator.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Round {
    /// The first token of its term: names it, and is its priority.
    pub(super) election: Epoch,
    attempt: u32,
    /// `x` and `y` of this attempt.
    most: (u16, u16),
    /// Those that were asked, ordered by identity.
    asked: Vec<Asked>,
    /// The answers, ordered by sender.
    answers: Vec<Answer>,
    /// Who was notified last, and under which token.
    notified: Option<(Candidate, Epoch)>,
    /// Who said last that it leads. As published only.
    pub(super) claimed: Option<NodeId>,
    phase: Phase,
}

/// Somebody asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Asked {
    id: NodeId,
    /// When, if only once.
    once: Option<Time>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Collecting,
    /// Decided: the one notified has yet to tell everybody.
    Awaiting(Vain),
    /// Likewise, but there was nothing to collect: a leader hands over.
    HandingOver {
        vain: Vain,
        /// Of its own will, not because somebody objected.
        appoints: bool,
    },
}

/// How often, and since when, somebody was told in vain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Vain {
    tries: u64,
    since: Time,
}

impl Vain {
    const fn begun(since: Time) -> Self {
        Self { tries: 0, since }
    }
}

/// Whom to ask first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum First {
    Others,
    Asked,
}

impl Round {
    const fn new(election: Epoch, most: (u16, u16), phase: Phase) -> Self {
        Self {
            election,
            attempt: 0,
            most,
            asked: Vec::new(),
            answers: Vec::new(),
            notified: None,
            claimed: None,
            phase,
        }
    }

    pub(super) const fn attempt(&self) -> (Epoch, u32) {
        (self.election, self.attempt)
    }

    /// Whether this one is to tell everybody that it leads.
    pub(super) fn awaits(&self, id: NodeId) -> bool {
        self.notified.is_some_and(|(best, _)| best.peer.id == id)
    }

    fn asked(&self, id: NodeId) -> Result<usize, usize> {
        self.asked.binary_search_by_key(&id, |asked| asked.id)
    }

    /// Notes a question.
    fn note(&mut self, now: Time, id: NodeId) {
        match self.asked(id) {
            Ok(at) => self.asked[at].once = None,
            Err(at) => self.asked.insert(at, Asked { id, once: Some(now) }),
        }
    }

    fn answered(&self, id: NodeId) -> Result<usize, usize> {
        self.answers.binary_search_by_key(&id, |answer| answer.from)
    }

    /// No older one ends the round: a newer one is out.
    pub(super) fn last_token(&self) -> Epoch {
        self.notified.map_or(self.election, |(_, token)| token)
    }

    pub(super) fn hands_over(&self) -> bool {
        matches!(self.phase, Phase::HandingOver { .. })
    }

    fn appoints(&self) -> bool {
        matches!(self.phase, Phase::HandingOver { appoints: true, .. })
    }
}

/// The initiator.
impl ChurnTolerant {
    /// B1, MI1, DC1.
    pub(super) fn initiate(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.end_round();
        self.timers.clear(Timer::Initiate);
        if self.view.candidates().next().is_none() {
            // Nobody may lead: whom should an answer name?
            self.initiate_later(now, self.config.timeout * super::RESUME);
            return;
        }
        let Some(election) = self.mint(out) else { return };
        let most = match self.config.health {
            Health::Ignore => (1, 0),
            Health::Exclude { candidates, excluded, .. } => (candidates, excluded),
        };
        if self.config.hardened() {
            let gone = self.record.filter(|record| record.gone.is_some());
            let gone = gone.map(|record| record.claim.leader.life());
            let fallen: Vec<Life> = self.view.fallen().iter().copied().chain(gone).collect();
            self.bury(&fallen);
        }
        self.round = Some(Round::new(election, most, Phase::Collecting));
        self.ask(now, First::Others, out);
    }

    /// Whom not to elect until there is a leader: ourselves never, whatever others say.
    pub(super) fn bury(&mut self, lives: &[Life]) {
        for life in lives.iter().filter(|life| life.peer.id != self.me.id) {
            if self.dead.iter().any(|dead| dead.buries(*life)) {
                continue;
            }
            self.dead.retain(|dead| !life.buries(*dead));
            if self.dead.len() >= MAX_DEAD {
                self.dead.remove(0);
            }
            self.dead.push(*life);
        }
        if let Some(round) = &mut self.round {
            round.answers.retain(|answer| answer.names_living(&self.dead));
        }
    }

    /// A leader hands over to the first of `candidates` that lives, itself the last of them.
    pub(super) fn hand_over_to(
        &mut self,
        now: Time,
        candidates: Vec<Candidate>,
        appoints: bool,
        out: &mut OutboxOf<Self>,
    ) {
        self.end_round();
        let Some(election) = self.mint(out) else { return };
        let mut round =
            Round::new(election, (1, 0), Phase::HandingOver { vain: Vain::begun(now), appoints });
        round.answers.push(Answer { from: self.me.id, candidates, excluded: Vec::new() });
        self.round = Some(round);
        self.decide(now, out);
    }

    /// Whether a leader that resigned is still looking for somebody to take it.
    pub(super) fn hands_over(&self) -> bool {
        self.round.as_ref().is_some_and(Round::hands_over)
    }

    pub(super) fn end_round(&mut self) {
        self.round = None;
        self.timers.clear(Timer::Response);
        self.timers.clear(Timer::Leader);
    }

    /// How many answers decide: `c + 1`, or as many as there can be (C-21).
    fn need(&self) -> usize {
        let safe = usize::from(self.churn) + 1;
        match self.config.hardened() {
            true => safe.min(self.askable()),
            false => safe,
        }
    }

    fn askable(&self) -> usize {
        (self.view.len() - usize::from(!self.config.ask_self)).max(1)
    }

    /// B1 and B3: a question to as many as are missing to `c + f + 1`: first to those never asked, or, if
    /// their answers have become worthless, to those asked before (DC3).
    fn ask(&mut self, now: Time, first: First, out: &mut OutboxOf<Self>) {
        let asks_self = self.config.ask_self || self.view.len() == 1;
        let Some(round) = &mut self.round else { return };
        let fanout = usize::from(self.churn) + usize::from(self.config.crashes) + 1;
        let mut missing = fanout.saturating_sub(round.answers.len());
        let ask_self = asks_self && round.answered(self.me.id).is_err() && missing > 0;
        missing -= usize::from(ask_self);
        let mut pool: Vec<NodeId> =
            self.view.others().filter(|&id| round.answered(id).is_err()).collect();
        let later = |id: &NodeId| round.asked(*id).is_ok() != (first == First::Asked);
        pool.sort_by_key(later);
        let sooner = pool.iter().filter(|id| !later(id)).count();
        shuffle(&mut self.rng, &mut pool, sooner);
        pool.truncate(missing);
        let (candidates, excluded) = round.most;
        let attempt = if self.config.hardened() { round.attempt } else { 0 };
        let term = round.election.counter();
        for &id in &pool {
            let dead = self.dead.clone();
            let query = Query { term, attempt, candidates, excluded, dead };
            out.send(id, Message::Query(query));
            round.note(now, id);
        }
        self.pace.asked(pool.len());
        let again = self.again();
        self.timers.set(Timer::Response, now + again);
        let Some(round) = &mut self.round else { return };
        if ask_self {
            let dead = self.dead.clone();
            let most = round.most;
            let (candidates, excluded) =
                self.view.answer(self.config.criterion, most, self.threshold(), &dead);
            self.count(now, Answer { from: self.me.id, candidates, excluded }, out);
        }
    }

    /// B2.
    pub(super) fn on_response(
        &mut self,
        now: Time,
        from: Peer,
        response: &Response,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let hardened = self.config.hardened();
        let ours = |round: &&Round| {
            let same =
                (round.election.counter(), round.attempt) == (response.term, response.attempt);
            (same || !hardened) && round.asked(from.id).is_ok()
        };
        let solicited = self.round.as_ref().filter(ours).is_some();
        let news =
            response.heard.filter(|&heard| hardened && Some(election_of(heard)) > self.known);
        if !solicited && news.is_none() {
            return Err(Rejected::Unsolicited { from });
        }
        if let Some(heard) = news {
            self.hear_of(now, heard);
        }
        let Some(round) = self.round.as_ref().filter(|_| solicited) else { return Ok(()) };
        if round.answered(from.id).is_err() {
            let once = round.asked(from.id).ok().and_then(|at| round.asked[at].once);
            self.pace.answered(once.map(|at| now.since(at)));
        }
        let (candidates, excluded) = round.most;
        if hardened && response.candidates.iter().any(|one| one.peer == from) {
            // It was asked, answers, and would lead: whoever took it for dead did not hear it.
            self.dead.retain(|dead| dead.peer != from);
        }
        let candidates =
            response.candidates.iter().take(usize::from(candidates)).copied().collect();
        let excluded = response.excluded.iter().take(usize::from(excluded)).copied().collect();
        self.count(now, Answer { from: from.id, candidates, excluded }, out);
        Ok(())
    }

    /// One more answer, unless there is one from there already; one that names only the dead is none
    /// (DC3).
    fn count(&mut self, now: Time, answer: Answer, out: &mut OutboxOf<Self>) {
        let hardened = self.config.hardened();
        let Some(round) = &mut self.round else { return };
        let Err(at) = round.answered(answer.from) else { return };
        let counts = if hardened { answer.names_living(&self.dead) } else { true };
        if round.phase != Phase::Collecting || !counts {
            return;
        }
        round.answers.insert(at, answer);
        if self.config.decision == Decision::Event {
            self.timers.set(Timer::Response, now + self.again());
        }
        let enough = self.round.as_ref().is_some_and(|round| round.answers.len() >= self.need());
        let decided = enough && self.config.decision == Decision::Event;
        // Hardened, the notice that decides is also the one that confirms.
        let streams = self.config.notify == Notify::Streaming && !(decided && hardened);
        if (!streams || self.stream(now, out)) && decided {
            self.decide(now, out);
        }
    }

    /// Tells whoever would lead by now. `false` if there is nobody and the round began anew.
    fn stream(&mut self, now: Time, out: &mut OutboxOf<Self>) -> bool {
        match self.elected() {
            Some(best) => {
                let notified = self.round.as_ref().and_then(|round| round.notified);
                if notified.is_none_or(|(last, _)| last.peer.id != best.peer.id) {
                    self.notify(now, best, false, out);
                }
                true
            }
            // Later answers may bring candidates; as published nobody waits for them (C-23).
            None if self.config.hardened() => true,
            None => {
                self.restart(now, out);
                false
            }
        }
    }

    fn elected(&self) -> Option<Candidate> {
        let round = self.round.as_ref()?;
        if round.hands_over() {
            let in_order = round.answers.iter().flat_map(|answer| &answer.candidates);
            return in_order.copied().find(|one| !one.is_dead(&self.dead));
        }
        let best = elected(&self.config, &round.answers, round.most.1, &self.dead)?;
        // A margin protects whoever leads and lives, unless it is to be passed over.
        let leader = self.standing().filter(|_| self.config.margin > 0);
        let incumbent = leader.and_then(|record| self.view.candidate(record.claim.leader.peer.id));
        let passed_over = |leader: &Candidate| {
            let mut named = round.answers.iter().flat_map(|answer| &answer.excluded);
            named.any(|&(id, _)| id == leader.peer.id)
                || self.dead.iter().any(|dead| dead.buries(leader.life()))
        };
        let stays = |leader: &Candidate| {
            !passed_over(leader)
                && !self.config.criterion.displaces(&best, leader, self.config.margin)
        };
        Some(incumbent.filter(stays).unwrap_or(best))
    }

    /// B4: there are answers enough.
    fn decide(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Some(best) = self.elected() else {
            self.restart(now, out);
            return;
        };
        let safe = usize::from(self.churn) + 1;
        let again = self.again().max(self.config.timeout);
        let Some(round) = &mut self.round else { return };
        if round.phase == Phase::Collecting {
            let answers = round.answers.len();
            if answers < safe {
                out.emit(Event::Narrow { answers, needed: safe });
            }
            if self.config.health == Health::Ignore && self.config.hardened() {
                let other = |answer: &&Answer| {
                    answer.candidates.first().is_none_or(|named| named.peer.id != best.peer.id)
                };
                let missing = round.answers.iter().filter(other).count() as u32;
                let (leader, answers) = (best.peer.id, answers as u32);
                out.emit(Event::Decided { leader, missing, answers });
            }
            round.phase = Phase::Awaiting(Vain::begun(now));
        }
        let told = round.notified.is_some_and(|(last, _)| last.peer.id == best.peer.id);
        self.timers.clear(Timer::Response);
        self.timers.set(Timer::Leader, now + again);
        // As published, whoever was told while answers came in is not told again; but if it has said
        // so already there is nothing to wait for.
        if self.config.hardened() || !told {
            self.notify(now, best, true, out);
        } else if round.claimed == Some(best.peer.id) {
            self.end_round();
        }
    }

    /// A new token for somebody new; the same one again for the same.
    fn notify(&mut self, now: Time, best: Candidate, confirmed: bool, out: &mut OutboxOf<Self>) {
        let Some(round) = &mut self.round else { return };
        let token = match round.notified {
            None => Some(round.election),
            Some((last, token)) if last.peer.id == best.peer.id => Some(token),
            Some((_, token)) => token.succeed(),
        };
        let Some(token) = token else {
            // Four thousand million leaders in one term: take another.
            self.initiate(now, out);
            return;
        };
        round.notified = Some((best, token));
        let appointed = round.appoints();
        let churn = self.churn;
        if best.peer.id == self.me.id {
            let notice = Notice { epoch: token, confirmed, appointed: false, churn };
            self.on_notify(now, self.me, notice, out);
        } else {
            let notice = Message::NotifyLeader { epoch: token, confirmed, appointed, churn };
            out.send(best.peer.id, notice);
        }
    }

    /// Algorithm 4's retry: more candidates, fewer excluded; and B7.
    fn restart(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.view.candidates().next().is_none() {
            // Whoever might lead observes by now: our own answer would be empty, and the next attempt's as well.
            self.initiate(now, out);
            return;
        }
        let listed = u16::try_from(self.view.len()).unwrap_or(u16::MAX).min(MAX_CANDIDATES);
        let exhausted = self.elected().is_none();
        let Some(round) = &mut self.round else { return };
        if exhausted && self.config.health != Health::Ignore {
            let (candidates, excluded) = round.most;
            round.most = next_sizes(round.most, listed.max(candidates));
            debug_assert!(round.most.1 <= excluded);
        }
        round.attempt = round.attempt.saturating_add(1);
        round.asked.clear();
        round.answers.clear();
        round.phase = Phase::Collecting;
        if !self.config.hardened() {
            // As published an attempt knows nothing of the one before.
            (round.notified, round.claimed) = (None, None);
        }
        self.timers.clear(Timer::Leader);
        self.ask(now, First::Others, out);
    }

    /// B3, or the polled count.
    pub(super) fn on_no_response(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let enough = self.round.as_ref().is_some_and(|round| round.answers.len() >= self.need());
        if enough {
            self.decide(now, out);
            return;
        }
        self.stream_again(now, out);
        self.ask(now, First::Others, out);
    }

    /// Whoever was told while answers come in, and has not been heard to lead since, is told again: what makes a
    /// leader known sooner must not hang on one message. Hardened only.
    fn stream_again(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let streams = self.config.notify == Notify::Streaming && self.config.hardened();
        let notified = self.round.as_ref().and_then(|round| round.notified);
        let Some((best, token)) = notified.filter(|_| streams) else { return };
        if self.vouched < Some(token) && !best.is_dead(&self.dead) {
            self.notify(now, best, false, out);
        }
    }

    /// Somebody asks after our election, and has not heard more of it than we know: we are still at it.
    pub(super) fn still_asking(&mut self, now: Time, whom: NodeId, out: &mut OutboxOf<Self>) {
        let Some(round) = self.round.as_mut().filter(|round| !round.hands_over()) else { return };
        let (candidates, excluded) = round.most;
        let (term, attempt) = (round.election.counter(), round.attempt);
        let dead = self.dead.clone();
        out.send(whom, Message::Query(Query { term, attempt, candidates, excluded, dead }));
        if round.answered(whom).is_err() {
            round.note(now, whom);
            self.pace.asked(1);
        }
    }

    /// How long to wait before asking or telling again.
    pub(super) fn again(&self) -> Duration {
        match self.config.hardened() {
            true => self.pace.retry(self.config.timeout),
            false => self.config.timeout,
        }
    }

    /// B7 and DC3.
    pub(super) fn on_no_leader(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.config.hardened() {
            self.restart(now, out);
            return;
        }
        let again = self.again().max(self.config.timeout);
        let (shortest, tries) = (self.config.timeout * TRIES, self.pace.tries());
        let Some(round) = &mut self.round else { return };
        let Some((best, _)) = round.notified else { return };
        let vain = match &mut round.phase {
            Phase::Collecting => return,
            Phase::Awaiting(vain) | Phase::HandingOver { vain, .. } => vain,
        };
        vain.tries += 1;
        if now.since(vain.since) < shortest || vain.tries < tries {
            self.timers.set(Timer::Leader, now + again);
            self.notify(now, best, true, out);
        } else {
            self.give_up_on(now, best.life(), out);
        }
    }

    /// DC3: if it is the one we wait for, it is dead, and the others are asked again.
    pub(super) fn give_up_on(&mut self, now: Time, life: Life, out: &mut OutboxOf<Self>) {
        let Some(round) = &mut self.round else { return };
        let awaited = round.phase != Phase::Collecting
            && round.notified.is_some_and(|(best, _)| life.buries(best.life()));
        if !awaited {
            return;
        }
        self.bury(&[life]);
        self.timers.clear(Timer::Leader);
        let Some(round) = &mut self.round else { return };
        if let Phase::HandingOver { vain, .. } = &mut round.phase {
            *vain = Vain::begun(now);
            self.decide(now, out);
            return;
        }
        round.phase = Phase::Collecting;
        round.answers.clear();
        self.ask(now, First::Asked, out);
    }
}

/// The responder.
impl ChurnTolerant {
    pub(super) fn on_query(
        &mut self,
        now: Time,
        from: Peer,
        query: &Query,
        out: &mut OutboxOf<Self>,
    ) {
        let election = Epoch::mint(query.term, from);
        if self.config.hardened() {
            self.hear_of(now, election);
            let over = |record: &super::Record| {
                record.claim.confirmed && election_of(record.claim.epoch) >= election
            };
            if !self.standing().is_some_and(over) {
                // Of an election that is over, a late question would bury who leads by now, for ever (DC4).
                self.bury(&query.dead);
            }
            if self.known == Some(election) {
                // It is still at it.
                self.await_longer(now);
            }
        } else if self.round.is_some() && from.id < self.me.id {
            // Only the lowest initiator completes (§2.3). If it dies, nobody does (C-24).
            self.end_round();
        }
        let most = (query.candidates.min(MAX_CANDIDATES), query.excluded.min(MAX_CANDIDATES));
        let (candidates, excluded) =
            self.view.answer(self.config.criterion, most, self.threshold(), &query.dead);
        let heard = self.known.filter(|_| self.config.hardened());
        let (term, attempt) = (query.term, query.attempt);
        let response = Response { term, attempt, heard, candidates, excluded };
        out.send(from.id, Message::Response(response));
        // Whoever asks without having heard of the leader need not ask further.
        let newer = |record: &&super::Record| election_of(record.claim.epoch) > election;
        if self.config.hardened() && self.standing().filter(newer).is_some() {
            self.tell(from.id, out);
        }
    }

    fn threshold(&self) -> u32 {
        match self.config.health {
            Health::Ignore => 0,
            Health::Exclude { threshold, .. } => threshold,
        }
    }
}

/// GETNEXT: one candidate more, of `listed`, and one excluded less.
pub(super) const fn next_sizes((candidates, excluded): (u16, u16), listed: u16) -> (u16, u16) {
    let more = candidates.saturating_add(1);
    (if more < listed { more } else { listed }, excluded.saturating_sub(1))
}

/// Shuffles the first `sooner` among themselves and the rest among themselves.
fn shuffle(rng: &mut crate::rng::Rng, ids: &mut [NodeId], sooner: usize) {
    let (first, rest) = ids.split_at_mut(sooner);
    for part in [first, rest] {
        for at in (1..part.len()).rev() {
            part.swap(at, rng.below(at as u64 + 1) as usize);
        }
    }
}

/// For so many timeouts a silent would-be leader is notified again before it counts as dead (DC3).
const TRIES: u64 = 4;
