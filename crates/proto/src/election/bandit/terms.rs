//! Hardened: terms, one vote of each node in a term, and winners that were heard in it (`H1` to `H10`).

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use super::{
    Bandit, Belief, Durable, Event, Timer,
    common::{Common, Doubt},
    message::{Message, Request},
};
use crate::{
    id::{NodeId, Peer},
    leadership::Why,
    machine::{OutboxOf, Rejected},
    time::{Duration, Time},
};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Terms {
    /// The highest term voted in, confirmed or hinted at. Durable.
    term: u64,
    /// Our vote in it, if we have cast one. Durable.
    voted_for: Option<NodeId>,
    leader: Option<Led>,
    /// The leader of this term has said that it leads no longer: who has not heard that yet is not believed.
    resigned: u64,
    /// Since when there has been no leader.
    since: Time,
    stage: Stage,
    /// Lists of higher terms that came while the leader still lived, by sender.
    early: BTreeMap<usize, (u64, Vec<usize>)>,
    /// Votes for us, by term.
    votes: BTreeMap<u64, BTreeSet<usize>>,
    /// Winners that did not confirm, until somebody does: last on our lists.
    tabu: BTreeSet<usize>,
    /// The leader we have given up on: last on our lists too.
    suspected: Option<usize>,
    backoff: u64,
    /// While leading: when each was last heard.
    answered: Vec<Time>,
    /// While leading: who knows somebody clearly better, since we last took samples.
    objections: BTreeSet<usize>,
    /// Whether we vote and never lead.
    observes: bool,
}

/// The leader we know of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Led {
    peer: Peer,
    term: u64,
    since: Time,
    heard: Time,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// Following, leading, or waiting for the next try.
    Calm,
    /// Lists are shared (`H2`). Nothing is durable yet: it takes a majority to get any further.
    Collecting { term: u64, lists: BTreeMap<usize, Vec<usize>> },
    /// We have voted in `term` (`H4`).
    Voted { term: u64, winner: usize, own: Vec<usize> },
}

impl Terms {
    /// `boot` matters where nothing durable is left: votes cast before are forgotten, so the node begins above any
    /// term in which it can have cast one.
    pub(super) fn new(common: &mut Common, durable: Option<Durable>) -> Self {
        let lost = durable.is_none();
        let durable = durable.unwrap_or_default();
        let lived = !durable.beliefs.is_empty();
        for Belief { id, mean, weight } in durable.beliefs {
            if let Some(place) = common.place_of(id) {
                common.chooser.estimates.restore(place, mean, weight);
            }
        }
        if let (true, Some(seat)) = (lived, common.seat) {
            // Being back we have been away; for how long no clock of ours can tell (`H9`).
            common.chooser.estimates.sample(seat, 1.0);
        }
        // Who only listens has never voted.
        let forgot = lost && common.seat.is_some();
        let lives = common.me.boot.get().saturating_sub(1).min(MOST_LIVES);
        Self {
            term: if forgot { lives << LIFE_BITS } else { durable.term },
            voted_for: durable.voted_for,
            leader: None,
            resigned: 0,
            since: Time::ZERO,
            stage: Stage::Calm,
            early: BTreeMap::new(),
            votes: BTreeMap::new(),
            tabu: BTreeSet::new(),
            suspected: None,
            backoff: 1,
            answered: Vec::new(),
            objections: BTreeSet::new(),
            observes: false,
        }
    }

    pub(super) const fn term(&self) -> u64 {
        self.term
    }

    pub(super) const fn voted_for(&self) -> Option<NodeId> {
        self.voted_for
    }

    /// Who leads and since when, under which term, and when it was last heard.
    pub(super) fn leader(&self) -> Option<(Peer, u64, Time, Time)> {
        self.leader.map(|led| (led.peer, led.term, led.since, led.heard))
    }

    pub(super) fn why_unknown(&self) -> Why {
        Why::Electing { since: self.since }
    }

    fn leads(&self, common: &Common) -> Option<u64> {
        self.leader.filter(|led| led.peer == common.me).map(|led| led.term)
    }

    pub(super) fn on_start(&mut self, common: &mut Common, now: Time) {
        self.since = now;
        common.arm(now);
        // A leader there may be has this long to be heard.
        common.timers.set(Timer::Lease, now + common.config.lease());
    }

    pub(super) fn on_message(
        &mut self,
        common: &mut Common,
        now: Time,
        from: Peer,
        message: &Message,
        out: &mut OutboxOf<Bandit>,
    ) -> Result<(), Rejected> {
        match message {
            Message::ClientRequest { number, attempt } => {
                let request = Request { client: from.id, number: *number };
                self.on_client_request(common, now, request, *attempt, out);
                return Ok(());
            }
            Message::Ping { nonce } => {
                out.send(from.id, Message::PingReply { nonce: *nonce });
            }
            _ => {}
        }
        let Some(place) = common.place_of(from.id) else {
            // Who only listens answers the leader, but nobody counts its answers.
            return match message {
                Message::Ping { .. }
                | Message::ReplyBroadcast { .. }
                | Message::HeartbeatAck { .. } => Ok(()),
                Message::TermHint { .. } => Ok(()),
                _ => Err(Rejected::Unsolicited { from }),
            };
        };
        match message {
            Message::Reply { .. } => return Err(Rejected::Unsolicited { from }),
            // Nobody leads by fewer votes than a majority, whoever says so.
            Message::ConfirmElection { voters, .. }
                if common.places(voters).len() < common.quorum() =>
            {
                return Err(Rejected::Unsolicited { from });
            }
            _ => {}
        }
        common.heard(place);
        match message {
            Message::ClientRequest { .. } | Message::Reply { .. } | Message::Ping { .. } => {}
            Message::PingReply { nonce } => common.on_ping_reply(Some(place), *nonce),
            Message::ShareCandidate { term, list } => {
                self.on_share(common, now, (from, place), *term, list, out);
            }
            Message::Vote { term } => self.on_vote(common, now, (from, place), *term, out),
            Message::ConfirmElection { term, .. } => {
                self.on_leader(common, now, from, *term, out);
            }
            Message::Heartbeat { term } => {
                if self.on_leader(common, now, from, *term, out) {
                    out.send(from.id, Message::HeartbeatAck { term: *term });
                }
            }
            Message::RequestBroadcast { request, term } => {
                if self.on_leader(common, now, from, *term, out) {
                    common.note_served(place, *request);
                    out.send(from.id, Message::ReplyBroadcast { request: *request, term: *term });
                }
            }
            Message::ReplyBroadcast { term, .. } | Message::HeartbeatAck { term } => {
                if self.leads(common) == Some(*term) {
                    self.answered[place] = now;
                }
            }
            Message::TermHint { term, leader } => {
                self.on_hint(common, now, *term, *leader, out);
            }
            Message::Resigned { term } => {
                if self.leader.is_some_and(|led| led.peer == from && led.term == *term) {
                    self.resigned = self.resigned.max(*term);
                    self.suspected = Some(place);
                    self.give_up_leader(now);
                    self.stand(common, now, out);
                }
            }
            Message::Objection { term } => {
                if self.leads(common) == Some(*term) {
                    self.objections.insert(place);
                }
            }
            Message::Admission { percent } => common.costs(place, f64::from(*percent) / 100.0),
        }
        Ok(())
    }

    pub(super) fn on_timer(
        &mut self,
        common: &mut Common,
        now: Time,
        timer: Timer,
        out: &mut OutboxOf<Bandit>,
    ) {
        match timer {
            Timer::Suspect => self.on_suspect(common, now, out),
            Timer::Collect => self.on_collect(common, now, out),
            Timer::Resend => self.resend_vote(common, out),
            Timer::Confirm => self.on_no_confirmation(common, now),
            Timer::Stand => self.stand(common, now, out),
            Timer::Lease => self.on_lease(common, now, out),
            Timer::Heartbeat => {
                if let Some(term) = self.leads(common) {
                    self.early.clear();
                    out.multicast(Message::Heartbeat { term });
                    common.timers.set(Timer::Heartbeat, now + common.config.heartbeat);
                }
            }
            Timer::PingNext => common.explore(now, out),
            Timer::PingReply => common.on_ping_over(now),
            Timer::Sample => {
                common.take_samples(now);
                self.persist(common, out);
                self.compare(common, now, out);
            }
            // As published only.
            Timer::Share => {}
        }
    }

    /// The membership says that somebody failed or left.
    pub(super) fn on_gone(
        &mut self,
        common: &mut Common,
        now: Time,
        peer: Peer,
        failed: bool,
        out: &mut OutboxOf<Bandit>,
    ) {
        let Some(place) = common.place_of(peer.id) else { return };
        let led = self.leader.filter(|led| led.peer == peer);
        // Our own ears are to be believed more than lists, which may lack whoever is hard to reach: unless its next
        // heartbeats stay away, it lives.
        let until = led.map_or(now, |led| led.heard + common.config.heartbeat() * 2);
        if failed && until > now {
            return common.timers.set(Timer::Lease, until);
        }
        common.gone(place, failed);
        if led.is_some() {
            self.suspected = Some(place);
            self.give_up_leader(now);
            self.stand(common, now, out);
        }
    }

    /// We lead no longer; whether the others are to know at once.
    pub(super) fn resign(
        &mut self,
        common: &mut Common,
        now: Time,
        tell: bool,
        out: &mut OutboxOf<Bandit>,
    ) {
        let Some(term) = self.leads(common) else { return };
        self.suspected = common.seat;
        self.step_down(common, now);
        if tell {
            out.multicast(Message::Resigned { term });
        }
    }

    pub(super) fn observe(
        &mut self,
        common: &mut Common,
        now: Time,
        observes: bool,
        out: &mut OutboxOf<Bandit>,
    ) {
        self.observes = observes;
        if observes {
            self.resign(common, now, true, out);
        }
    }

    /// Samples were taken: whoever knows somebody clearly better than the leader says so, and a leader to whom a majority
    /// says so makes way once its time is up.
    fn compare(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        let mut objections = core::mem::take(&mut self.objections);
        let (Some(seat), Some(led), Some(margin)) =
            (common.seat, self.leader, common.config.margin)
        else {
            return;
        };
        let Some(place) = common.place_of(led.peer.id) else { return };
        let objects = common.knows_better(place, margin);
        if led.peer != common.me {
            if objects {
                out.send(led.peer.id, Message::Objection { term: led.term });
            }
            return;
        }
        if objects {
            objections.insert(seat);
        }
        if objections.len() >= common.quorum() && now.since(led.since) >= common.config.tenure {
            self.resign(common, now, true, out);
        }
    }

    pub(super) fn elect(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        if self.leads(common).is_some() {
            self.resign(common, now, true, out);
        }
        self.stand(common, now, out);
    }

    fn on_client_request(
        &mut self,
        common: &mut Common,
        now: Time,
        request: Request,
        attempt: u32,
        out: &mut OutboxOf<Bandit>,
    ) {
        let Some(led) = self.leader else { return };
        if led.peer == common.me {
            out.send(request.client, Message::Reply { number: request.number, term: led.term });
            return out.multicast(Message::RequestBroadcast { request, term: led.term });
        }
        let Some(leader) = common.place_of(led.peer.id) else { return };
        if common.seat.is_some() && !common.has_served(leader, request) {
            common.wonder(now, Doubt { request, attempt, leader, term: led.term, since: now });
        }
    }

    /// `H1`: only if nothing has changed since, and the leader was not heard at all.
    fn on_suspect(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        let Some(doubt) = common.doubt.take() else { return };
        let silent = |led: &Led| led.term == doubt.term && led.heard <= doubt.since;
        if self.leader.as_ref().is_some_and(silent)
            && !common.has_served(doubt.leader, doubt.request)
        {
            self.suspect(common, now, out);
        }
    }

    /// The leader has not been heard for too long; or, leading, we have not heard a majority.
    fn on_lease(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        if self.leads(common).is_none() {
            return self.suspect(common, now, out);
        }
        let supported = self.supported_until(common);
        match supported > now {
            true => common.timers.set(Timer::Lease, supported),
            // Whoever still hears us need not wait for our lease to end.
            false => self.resign(common, now, true, out),
        }
    }

    /// Until when a majority, ourselves included, was heard recently enough.
    fn supported_until(&self, common: &Common) -> Time {
        let others = (0..self.answered.len()).filter(|&place| Some(place) != common.seat);
        let mut heard: Vec<Time> = others.map(|place| self.answered[place]).collect();
        heard.sort_unstable();
        let needed = common.quorum() - 1;
        match needed {
            0 => Time::NEVER,
            _ => heard[heard.len() - needed] + common.config.lease(),
        }
    }

    fn suspect(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        if let Some(led) = self.leader {
            self.suspected = common.place_of(led.peer.id);
            if let Some(place) = self.suspected {
                common.missed(place);
                common.penalise(place);
            }
            self.give_up_leader(now);
        }
        self.stand(common, now, out);
    }

    fn give_up_leader(&mut self, now: Time) {
        self.leader = None;
        self.since = now;
    }

    fn step_down(&mut self, common: &mut Common, now: Time) {
        self.give_up_leader(now);
        common.timers.clear(Timer::Heartbeat);
        // Somebody else may be found first.
        common.timers.set(Timer::Lease, now + common.config.lease());
    }

    /// Starts an election, unless one is going on (`H2`).
    fn stand(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        if common.seat.is_none() || self.leader.is_some() || self.stage != Stage::Calm {
            return;
        }
        let early = self.early.values().map(|(term, _)| *term).max().unwrap_or(0);
        if let Some(next) = self.term.checked_add(1) {
            self.start(common, now, next.max(early), out);
        }
    }

    fn start(&mut self, common: &mut Common, now: Time, term: u64, out: &mut OutboxOf<Bandit>) {
        let Some(seat) = common.seat else { return };
        for timer in [Timer::Confirm, Timer::Resend, Timer::Stand, Timer::Lease] {
            common.timers.clear(timer);
        }
        if self.leader.is_some() {
            self.give_up_leader(now);
        }
        common.dismiss();
        let (tabu, suspected) = (&self.tabu, self.suspected);
        let last = |node: usize| tabu.contains(&node) || Some(node) == suspected;
        let mut own = common.candidates_with_last(common.quorum(), suspected, last);
        if self.observes {
            own.clear();
        }
        let list = common.names(&own);
        let mut lists = BTreeMap::from([(seat, own)]);
        for (from, (of, list)) in core::mem::take(&mut self.early) {
            if of == term {
                lists.entry(from).or_insert(list);
            }
        }
        self.stage = Stage::Collecting { term, lists };
        out.emit(Event::Started { term });
        out.multicast(Message::ShareCandidate { term, list });
        common.timers.set(Timer::Collect, now + common.config.waits.collect);
        self.choose_if_complete(common, now, out);
    }

    /// `H3`.
    fn on_share(
        &mut self,
        common: &mut Common,
        now: Time,
        (from, place): (Peer, usize),
        term: u64,
        list: &[NodeId],
        out: &mut OutboxOf<Bandit>,
    ) {
        let Some(seat) = common.seat else { return };
        if term <= self.term {
            // A hint would make somebody a little slower than us forfeit its vote of this very term.
            let answer = match &self.stage {
                Stage::Voted { term: voted, own, .. } if term == *voted => {
                    Message::ShareCandidate { term, list: common.names(own) }
                }
                _ => self.hint(),
            };
            return out.send(from.id, answer);
        }
        let list = common.places(list);
        let known = match &mut self.stage {
            Stage::Collecting { term: own, lists } if term < *own => {
                let list = lists.get(&seat).map_or(&[][..], Vec::as_slice);
                let answer = Message::ShareCandidate { term: *own, list: common.names(list) };
                return out.send(from.id, answer);
            }
            Stage::Collecting { term: own, lists } if term == *own => {
                lists.entry(place).or_insert(list);
                return self.choose_if_complete(common, now, out);
            }
            Stage::Calm | Stage::Voted { .. } | Stage::Collecting { .. } => self.leader,
        };
        let lives = known.is_some_and(|led| match led.peer == common.me {
            true => self.supported_until(common) > now,
            false => now.since(led.heard) < common.config.lease(),
        });
        self.early.insert(place, (term, list));
        if !lives {
            if self.leader.is_some() {
                self.step_down(common, now);
            }
            self.start(common, now, term, out);
        }
    }

    fn choose_if_complete(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        if let Stage::Collecting { lists, .. } = &self.stage
            && lists.len() == common.members.len()
        {
            self.choose(common, now, out);
        }
    }

    fn on_collect(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        let (Stage::Collecting { term, lists }, Some(seat)) = (&self.stage, common.seat) else {
            return;
        };
        if lists.len() >= common.quorum() {
            return self.choose(common, now, out);
        }
        // Too few: the same again, but more and more patiently.
        let list = lists.get(&seat).map_or(&[][..], Vec::as_slice);
        out.multicast(Message::ShareCandidate { term: *term, list: common.names(list) });
        common.timers.set(Timer::Collect, now + common.config.waits.collect * self.backoff);
        self.backoff = (self.backoff * 2).min(MOST_BACKOFF);
    }

    /// `H4`.
    fn choose(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        let Some(seat) = common.seat else { return };
        let stage = core::mem::replace(&mut self.stage, Stage::Calm);
        let Stage::Collecting { term, mut lists } = stage else { return };
        common.timers.clear(Timer::Collect);
        // Whoever has sent a list lives; whoever has sent an empty one does not stand.
        let may = |node: usize| lists.get(&node).is_some_and(|list| !list.is_empty());
        let ballots = lists.values().map(Vec::as_slice);
        let winner = common.config.tally.winner(common.members.len(), ballots, may);
        let winner = winner.or_else(|| lists.keys().copied().find(|&node| may(node)));
        let Some(winner) = winner else { return self.try_later(common, now) };
        let own = lists.remove(&seat).unwrap_or_default();
        debug_assert!(term > self.term, "one vote in a term");
        self.term = term;
        self.voted_for = Some(common.members[winner]);
        self.persist(common, out);
        self.stage = Stage::Voted { term, winner, own };
        let confirm = common.config.waits.confirm;
        common.timers.set(Timer::Confirm, now + confirm);
        common.timers.set(Timer::Resend, now + confirm.div(2));
        if winner == seat {
            self.count_vote(common, now, seat, term, out);
        } else {
            out.send(common.members[winner], Message::Vote { term });
        }
    }

    fn resend_vote(&mut self, common: &Common, out: &mut OutboxOf<Bandit>) {
        if let Stage::Voted { term, winner, .. } = self.stage
            && Some(winner) != common.seat
        {
            out.send(common.members[winner], Message::Vote { term });
        }
    }

    /// `H5`.
    fn on_vote(
        &mut self,
        common: &mut Common,
        now: Time,
        (from, place): (Peer, usize),
        term: u64,
        out: &mut OutboxOf<Bandit>,
    ) {
        if common.seat.is_none() {
            return;
        }
        if term < self.term {
            return out.send(from.id, self.hint());
        }
        if self.leads(common).is_some_and(|own| term > own) {
            self.step_down(common, now);
        }
        self.count_vote(common, now, place, term, out);
    }

    fn count_vote(
        &mut self,
        common: &mut Common,
        now: Time,
        place: usize,
        term: u64,
        out: &mut OutboxOf<Bandit>,
    ) {
        self.votes.retain(|&other, _| other >= self.term);
        if self.votes.len() == MOST_TERMS && !self.votes.contains_key(&term) {
            self.votes.pop_first();
        }
        let votes = self.votes.entry(term).or_default();
        votes.insert(place);
        let led = self.leader.is_some_and(|led| led.term >= term);
        if votes.len() >= common.quorum() && !led && !self.observes {
            let voters: Vec<usize> = votes.iter().copied().collect();
            self.become_leader(common, now, term, &voters, out);
        }
    }

    fn become_leader(
        &mut self,
        common: &mut Common,
        now: Time,
        term: u64,
        voters: &[usize],
        out: &mut OutboxOf<Bandit>,
    ) {
        self.raise(common, term, Some(common.me.id), out);
        self.leader = Some(Led { peer: common.me, term, since: now, heard: now });
        self.settle(common);
        self.answered = alloc::vec![Time::ZERO; common.members.len()];
        voters.iter().for_each(|&place| self.answered[place] = now);
        self.objections.clear();
        common.timers.set(Timer::Heartbeat, now + common.config.heartbeat);
        common.timers.set(Timer::Lease, now + common.config.lease());
        out.multicast(Message::ConfirmElection { term, voters: common.names(voters) });
    }

    /// `H6`: `from` leads `term`, as far as it knows. Whether it does as far as we know.
    fn on_leader(
        &mut self,
        common: &mut Common,
        now: Time,
        from: Peer,
        term: u64,
        out: &mut OutboxOf<Bandit>,
    ) -> bool {
        if term < self.term {
            out.send(from.id, self.hint());
            return false;
        }
        // Said before it resigned, and late.
        term > self.resigned && self.follow(common, now, from, term, out)
    }

    fn follow(
        &mut self,
        common: &mut Common,
        now: Time,
        peer: Peer,
        term: u64,
        out: &mut OutboxOf<Bandit>,
    ) -> bool {
        match &mut self.leader {
            Some(led) if led.term == term && led.peer == peer => {
                led.heard = now;
                self.early.clear();
            }
            // Two lead one term only if somebody has forgotten a vote: the first is believed.
            Some(led) if led.term >= term => return false,
            _ => {
                self.raise(common, term, Some(peer.id), out);
                self.leader = Some(Led { peer, term, since: now, heard: now });
                common.timers.clear(Timer::Heartbeat);
                self.settle(common);
            }
        }
        common.timers.set(Timer::Lease, now + common.config.lease());
        true
    }

    /// There is a leader: the election is over.
    fn settle(&mut self, common: &mut Common) {
        self.stage = Stage::Calm;
        self.early.clear();
        self.tabu.clear();
        self.suspected = None;
        self.backoff = 1;
        common.dismiss();
        for timer in [Timer::Collect, Timer::Confirm, Timer::Resend, Timer::Stand] {
            common.timers.clear(timer);
        }
    }

    /// The term is at least this one from now on. Whoever has not voted in it never will.
    fn raise(
        &mut self,
        common: &mut Common,
        term: u64,
        leader: Option<NodeId>,
        out: &mut OutboxOf<Bandit>,
    ) {
        if term > self.term {
            (self.term, self.voted_for) = (term, leader);
            self.persist(common, out);
        }
    }

    /// `H7`.
    fn on_no_confirmation(&mut self, common: &mut Common, now: Time) {
        let Stage::Voted { winner, .. } = self.stage else { return };
        if Some(winner) != common.seat {
            common.missed(winner);
            common.penalise(winner);
            self.tabu.insert(winner);
        }
        self.try_later(common, now);
    }

    fn try_later(&mut self, common: &mut Common, now: Time) {
        self.stage = Stage::Calm;
        let wait = common.rng.up_to(common.config.waits.collect * self.backoff);
        self.backoff = (self.backoff * 2).min(MOST_BACKOFF);
        common.timers.set(Timer::Stand, now + wait.max(Duration::from_micros(1)));
    }

    fn hint(&self) -> Message {
        let leader = self.leader.filter(|led| led.term == self.term).map(|led| led.peer);
        Message::TermHint { term: self.term, leader }
    }

    /// `H8a`.
    fn on_hint(
        &mut self,
        common: &mut Common,
        now: Time,
        term: u64,
        leader: Option<Peer>,
        out: &mut OutboxOf<Bandit>,
    ) {
        // Of ourselves we know best.
        let leader =
            leader.filter(|peer| peer.id != common.me.id && common.place_of(peer.id).is_some());
        if let Some(peer) = leader.filter(|_| term >= self.term && term > self.resigned) {
            self.follow(common, now, peer, term, out);
            return;
        }
        if term <= self.term {
            return;
        }
        if self.leads(common).is_some() {
            self.step_down(common, now);
        }
        self.raise(common, term, None, out);
        if let Stage::Collecting { term: own, .. } | Stage::Voted { term: own, .. } = &self.stage
            && *own <= term
        {
            self.stage = Stage::Calm;
            self.stand(common, now, out);
        } else if self.leader.is_some_and(|led| led.term < term) {
            // Whoever led before does so no longer; somebody will say who does.
            self.give_up_leader(now);
            common.timers.set(Timer::Lease, now + common.config.lease());
        }
    }

    fn persist(&self, common: &Common, out: &mut OutboxOf<Bandit>) {
        let belief = |(place, &id): (usize, &NodeId)| {
            let (mean, weight) = common.chooser.estimates.kept(place);
            Belief { id, mean, weight }
        };
        out.persist(Durable {
            term: self.term,
            voted_for: self.voted_for,
            beliefs: common.members.iter().enumerate().map(belief).collect(),
        });
    }

    /// What decides what it does next; of times, only what has run out by `now`.
    pub(super) fn fingerprint<H: core::hash::Hasher>(
        &self,
        common: &Common,
        now: Time,
        state: &mut H,
    ) {
        use core::hash::Hash;
        (self.term, self.voted_for, self.suspected, self.observes).hash(state);
        self.leader.map(|led| (led.peer, led.term)).hash(state);
        if let Some(led) = self.leader {
            let lives = match led.peer == common.me {
                true => self.supported_until(common) > now,
                false => now.since(led.heard) < common.config.lease(),
            };
            lives.hash(state);
        }
        match &self.stage {
            Stage::Calm => 0_u8.hash(state),
            Stage::Collecting { term, lists } => (1_u8, term, lists).hash(state),
            Stage::Voted { term, winner, own } => (2_u8, term, winner, own).hash(state),
        }
        (&self.early, &self.votes, &self.tabu).hash(state);
    }
}

/// How often in a row backing off doubles, as a factor.
const MOST_BACKOFF: u64 = 8;
/// Terms of which votes are kept; only those from our own term on.
const MOST_TERMS: usize = 8;
/// A life without a memory begins this many doublings above the life before: far more terms than one life sees.
const LIFE_BITS: u32 = 32;
const MOST_LIVES: u64 = (1 << (63 - LIFE_BITS)) - 1;
