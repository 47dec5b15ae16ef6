//! The text and the program: rounds ordered by clocks, and whoever tallies itself the winner leads.

use alloc::vec::Vec;

use super::{
    Bandit, Event, Timer,
    common::{Common, Doubt},
    config::{Eligible, Policy, Profile},
    message::{Message, Request},
};
use crate::{
    id::Peer,
    machine::{OutboxOf, Rejected},
    time::Time,
};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rounds {
    /// Who leads, and by which clock it was adopted.
    leader: usize,
    stamp: u64,
    since: Time,
    /// Whether the machine below has failed; memory survives.
    halted: bool,
    round: Option<Round>,
    lists: Vec<Received>,
    last_message: Time,
}

#[derive(Clone, Debug, PartialEq)]
struct Round {
    request: Option<Request>,
    attempt: u32,
    /// The leader presumed failed.
    failed: usize,
    own: Vec<usize>,
    /// Whether `f` lists are in.
    collecting: bool,
    winner: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
struct Received {
    from: usize,
    list: Vec<usize>,
}

impl Rounds {
    pub(super) fn new() -> Self {
        Self {
            leader: 0,
            stamp: 0,
            since: Time::ZERO,
            halted: false,
            round: None,
            lists: Vec::new(),
            last_message: Time::ZERO,
        }
    }

    pub(super) fn leader(&self) -> Option<(usize, bool, Time)> {
        (!self.halted).then_some((self.leader, self.round.is_none(), self.since))
    }

    pub(super) fn on_start(&mut self, common: &mut Common, now: Time) {
        (self.since, self.last_message) = (now, now);
        common.arm(now);
    }

    /// The machine below has failed (`K1`), or runs again (`K2`).
    pub(super) fn on_halt(&mut self, common: &mut Common, now: Time, halted: bool) {
        if self.halted == halted {
            return;
        }
        self.halted = halted;
        // The program's failed nodes keep their rounds and their clocks; they only say nothing.
        let reference = common.config.profile == Profile::Reference;
        match halted {
            _ if reference => {}
            true => {
                self.round = None;
                self.lists.clear();
                common.lose_volatile();
            }
            false => common.arm(now),
        }
        let gap = now.since(self.last_message) > common.config.gap;
        let counts = if reference { halted } else { !halted && gap };
        if let (true, Some(seat)) = (counts, common.seat) {
            common.missed(seat);
        }
    }

    pub(super) fn on_message(
        &mut self,
        common: &mut Common,
        now: Time,
        from: Peer,
        message: &Message,
        out: &mut OutboxOf<Bandit>,
    ) -> Result<(), Rejected> {
        let place = common.place_of(from.id);
        if self.halted {
            // The program's failed nodes go on hearing who leads.
            if common.config.profile == Profile::Reference
                && let Message::ConfirmElection { term, .. }
                | Message::RequestBroadcast { term, .. } = message
                && let Some(place) = place
            {
                self.adopt(now, place, *term);
            }
            return Ok(());
        }
        self.last_message = now;
        match message {
            Message::ClientRequest { number, attempt } => {
                let request = Request { client: from.id, number: *number };
                self.on_client_request(common, now, request, *attempt, out);
                return Ok(());
            }
            Message::Ping { nonce } => {
                if let (Profile::Reference, Some(place)) = (common.config.profile, place) {
                    common.heard(place);
                }
                out.send(from.id, Message::PingReply { nonce: *nonce });
                return Ok(());
            }
            _ => {}
        }
        let Some(place) = place else { return Err(Rejected::Unsolicited { from }) };
        match message {
            Message::RequestBroadcast { request, term } => {
                common.note_served(place, *request);
                if place != self.leader && *term > self.stamp {
                    self.adopt(now, place, *term);
                    self.end(common);
                }
                common.heard(place);
                out.send(from.id, Message::ReplyBroadcast { request: *request, term: *term });
            }
            Message::ReplyBroadcast { .. } => {
                // The program compares a record with a number here and never gets this far.
                if common.config.profile == Profile::Published && Some(self.leader) == common.seat {
                    common.heard(place);
                }
            }
            Message::ShareCandidate { term, list } => {
                common.heard(place);
                self.on_share(common, now, place, *term, list, out);
            }
            Message::ConfirmElection { term, .. } => {
                if *term > self.stamp {
                    self.adopt(now, place, *term);
                    common.heard(place);
                    self.end(common);
                }
            }
            Message::PingReply { nonce } => common.on_ping_reply(Some(place), *nonce),
            Message::ClientRequest { .. }
            | Message::Ping { .. }
            | Message::Reply { .. }
            | Message::Vote { .. }
            | Message::TermHint { .. }
            | Message::Heartbeat { .. }
            | Message::HeartbeatAck { .. }
            | Message::Resigned { .. }
            | Message::Objection { .. }
            | Message::Admission { .. } => return Err(Rejected::Unsolicited { from }),
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
            Timer::Share => {
                self.lists.clear();
                self.restart(common, now, out);
            }
            Timer::Collect => self.tally(common, now, out),
            Timer::Confirm => self.restart(common, now, out),
            Timer::PingNext if self.halted => common.rest(now),
            Timer::PingNext => common.explore(now, out),
            Timer::PingReply if self.halted => common.rest(now),
            Timer::PingReply => common.on_ping_over(now),
            Timer::Sample => common.take_samples(now),
            // Hardened only.
            Timer::Resend | Timer::Stand | Timer::Lease | Timer::Heartbeat => {}
        }
    }

    fn on_client_request(
        &mut self,
        common: &mut Common,
        now: Time,
        request: Request,
        attempt: u32,
        out: &mut OutboxOf<Bandit>,
    ) {
        if Some(self.leader) == common.seat {
            let term = now.as_micros();
            out.send(request.client, Message::Reply { number: request.number, term });
            out.multicast(Message::RequestBroadcast { request, term });
            return;
        }
        if common.seat.is_none() || common.has_served(self.leader, request) {
            return;
        }
        let (leader, term) = (self.leader, self.stamp);
        let doubt = Doubt { request, attempt, leader, term, since: now };
        match common.config.waits.suspect.is_zero() {
            true => self.presume_failed(common, now, doubt, out),
            false => common.wonder(now, doubt),
        }
    }

    fn on_suspect(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        let Some(doubt) = common.doubt.take() else { return };
        if !common.has_served(self.leader, doubt.request) && Some(self.leader) != common.seat {
            self.presume_failed(common, now, doubt, out);
        }
    }

    /// `Q5`.
    fn presume_failed(
        &mut self,
        common: &mut Common,
        now: Time,
        doubt: Doubt,
        out: &mut OutboxOf<Bandit>,
    ) {
        let Doubt { request, attempt, .. } = doubt;
        let reference = common.config.profile == Profile::Reference;
        if let Some(round) = &self.round {
            // Only the program starts over at the client's word, and only once for each.
            let again = reference && (round.request, round.attempt) != (Some(request), attempt);
            if !again {
                return;
            }
            if let (true, Some(winner)) = (round.request == Some(request), round.winner) {
                common.penalise(winner);
            }
        }
        common.missed(self.leader);
        if !reference {
            common.penalise(self.leader);
        }
        self.begin(common, now, Some((request, attempt)), out);
    }

    /// `E1`, or `D1` for DLE.
    fn begin(
        &mut self,
        common: &mut Common,
        now: Time,
        cause: Option<(Request, u32)>,
        out: &mut OutboxOf<Bandit>,
    ) {
        let term = now.as_micros();
        out.emit(Event::Started { term });
        let failed = self.leader;
        let (request, attempt) = cause.map_or((None, 0), |(one, attempt)| (Some(one), attempt));
        let mut round =
            Round { request, attempt, failed, own: Vec::new(), collecting: false, winner: None };
        if common.config.policy == Policy::Next {
            let step = match common.config.profile {
                // The client's count is the view that all share (`D3`).
                Profile::Reference => attempt.max(1) as usize,
                Profile::Published | Profile::Hardened => 1,
            };
            round.winner = Some((failed + step) % common.members.len());
            self.round = Some(round);
            return self.await_winner(common, now, out);
        }
        round.own = common.candidates(common.tolerated().max(1), Some(failed));
        let list = common.names(&round.own);
        self.round = Some(round);
        out.multicast(Message::ShareCandidate { term, list });
        common.timers.clear(Timer::Confirm);
        common.timers.clear(Timer::Collect);
        if common.config.profile == Profile::Published {
            common.timers.set(Timer::Share, now + common.config.waits.share);
        }
        self.collect(common, now);
    }

    /// `E7`, or `D2` for DLE.
    fn restart(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        let Some(round) = &mut self.round else { return };
        if common.config.policy == Policy::Next {
            round.winner = round.winner.map(|last| (last + 1) % common.members.len());
            return self.await_winner(common, now, out);
        }
        let cause = round.request.map(|request| (request, round.attempt));
        self.begin(common, now, cause, out);
    }

    fn on_share(
        &mut self,
        common: &mut Common,
        now: Time,
        from: usize,
        term: u64,
        list: &[crate::id::NodeId],
        out: &mut OutboxOf<Bandit>,
    ) {
        let list = common.places(list);
        let published = common.config.profile == Profile::Published;
        if published {
            self.lists.retain(|other| other.from != from);
        }
        // The program keeps every list, whoever sent it and when; it need not keep them for ever.
        if self.lists.len() < 2 * common.members.len() {
            self.lists.push(Received { from, list });
        }
        if published && self.round.is_none() && term > self.stamp && common.seat.is_some() {
            return self.begin(common, now, None, out);
        }
        self.collect(common, now);
    }

    /// `E3`.
    fn collect(&mut self, common: &mut Common, now: Time) {
        let Some(round) = &mut self.round else { return };
        let waits = !round.collecting && round.winner.is_none() && !round.own.is_empty();
        if waits && self.lists.len() >= common.tolerated() {
            round.collecting = true;
            common.timers.clear(Timer::Share);
            common.timers.set(Timer::Collect, now + common.config.waits.collect);
        }
    }

    /// `E4`.
    fn tally(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        let Some(round) = &mut self.round else { return };
        let living = common.config.eligible == Eligible::Living;
        let sent = |node| {
            Some(node) == common.seat || self.lists.iter().any(|received| received.from == node)
        };
        // The text lets the failed leader win again.
        let spares = living || common.config.profile == Profile::Reference;
        let may = |node| (!living || sent(node)) && !(spares && node == round.failed);
        let others = self.lists.iter().map(|received| received.list.as_slice());
        let lists = others.chain(core::iter::once(round.own.as_slice()));
        let nodes = common.members.len();
        let winner = common.config.tally.winner(nodes, lists, may);
        round.winner = match living {
            true => winner.or_else(|| (0..nodes).find(|&node| may(node))),
            false => winner,
        };
        round.collecting = false;
        self.lists.clear();
        self.await_winner(common, now, out);
    }

    /// `E5`.
    fn await_winner(&mut self, common: &mut Common, now: Time, out: &mut OutboxOf<Bandit>) {
        let winner = self.round.as_ref().and_then(|round| round.winner);
        if let Some(winner) = winner.filter(|&winner| Some(winner) == common.seat) {
            if self.halted {
                return;
            }
            // By our own clock, be it behind the one that elected the last.
            let term = now.as_micros();
            (self.leader, self.stamp, self.since) = (winner, term, now);
            self.end(common);
            out.multicast(Message::ConfirmElection { term, voters: Vec::new() });
        } else if common.config.profile == Profile::Published {
            common.timers.set(Timer::Confirm, now + common.config.waits.confirm);
        }
    }

    fn adopt(&mut self, now: Time, leader: usize, stamp: u64) {
        if stamp > self.stamp {
            (self.leader, self.stamp, self.since) = (leader, stamp, now);
        }
    }

    fn end(&mut self, common: &mut Common) {
        self.round = None;
        self.lists.clear();
        common.dismiss();
        for timer in [Timer::Share, Timer::Collect, Timer::Confirm] {
            common.timers.clear(timer);
        }
    }

    /// What decides what it does next.
    pub(super) fn fingerprint<H: core::hash::Hasher>(&self, state: &mut H) {
        use core::hash::Hash;
        (self.leader, self.stamp, self.halted).hash(state);
        if let Some(Round { request, attempt, failed, own, collecting, winner }) = &self.round {
            (request, attempt, failed, own, collecting, winner).hash(state);
        }
        self.lists.iter().for_each(|received| (received.from, &received.list).hash(state));
    }
}
