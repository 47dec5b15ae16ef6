//! What every profile needs: who the members are, what is believed of them, pings, and who was heard of a request.

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};

use super::{
    Bandit, Timer,
    config::{Config, Pings},
    estimator::Estimates,
    message::{Message, Request},
    policy::Chooser,
};
use crate::{
    id::{Boot, NodeId, Peer},
    machine::OutboxOf,
    mechanism::timers::Timers,
    rng::{Rng, Seed},
    time::Time,
};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Common {
    pub(super) me: Peer,
    /// Our place among the members; `None` for somebody who only listens.
    pub(super) seat: Option<usize>,
    pub(super) members: Arc<[NodeId]>,
    pub(super) config: Config,
    pub(super) rng: Rng,
    pub(super) timers: Timers<Timer, { Timer::COUNT }>,
    pub(super) chooser: Chooser,
    /// The worst there was of each node since samples were last taken, hardened.
    pub(super) pending: Vec<Option<f64>>,
    /// What the membership says of each; every interval counts, hardened.
    listings: Vec<Listing>,
    /// The life of each that was seen last, unless it said goodbye.
    lives: Vec<Option<Boot>>,
    ping: Option<Ping>,
    pinged: u64,
    /// Who broadcast which request, the latest last.
    seen: VecDeque<(usize, Request)>,
    /// A request of which the leader has not spoken yet.
    pub(super) doubt: Option<Doubt>,
}

/// What a membership says of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Listing {
    /// Nothing, or it said goodbye.
    Unsaid,
    There,
    /// The membership has given it up.
    Away,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Ping {
    target: usize,
    nonce: u64,
    answered: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Doubt {
    pub(super) request: Request,
    pub(super) attempt: u32,
    pub(super) leader: usize,
    pub(super) term: u64,
    pub(super) since: Time,
}

impl Common {
    pub(super) fn new(me: Peer, members: Arc<[NodeId]>, config: Config, seed: Seed) -> Self {
        let nodes = members.len();
        let estimates = Estimates::draw(nodes, config.prior, &mut seed.named("prior").rng())
            .with_memory(config.policy, config.buffer);
        Self {
            me,
            seat: members.binary_search(&me.id).ok(),
            members,
            config,
            rng: seed.rng(),
            timers: Timers::new(),
            chooser: Chooser::new(config.policy, config.profile, estimates),
            pending: alloc::vec![None; nodes],
            listings: alloc::vec![Listing::Unsaid; nodes],
            lives: alloc::vec![None; nodes],
            ping: None,
            pinged: 0,
            seen: VecDeque::new(),
            doubt: None,
        }
    }

    /// `f`: how many may be down while a majority is up.
    #[cfg(feature = "research")]
    pub(super) fn tolerated(&self) -> usize {
        self.members.len().saturating_sub(1) / 2
    }

    /// How many are a majority.
    pub(super) fn quorum(&self) -> usize {
        self.members.len() / 2 + 1
    }

    pub(super) fn place_of(&self, id: NodeId) -> Option<usize> {
        self.members.binary_search(&id).ok()
    }

    /// Those of a list that are members, as places. Nobody counts twice on one list.
    pub(super) fn places(&self, list: &[NodeId]) -> Vec<usize> {
        let mut places = Vec::with_capacity(list.len().min(self.members.len()));
        for place in list.iter().filter_map(|&id| self.place_of(id)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    pub(super) fn names(&self, places: &[usize]) -> Vec<NodeId> {
        places.iter().map(|&place| self.members[place]).collect()
    }

    /// Our own candidates, best first.
    #[cfg(feature = "research")]
    pub(super) fn candidates(&mut self, length: usize, failed: Option<usize>) -> Vec<usize> {
        let length = self.config.candidates.map_or(length, usize::from);
        self.chooser.list(length, failed, &mut self.rng)
    }

    /// The same, with some of them behind all others.
    pub(super) fn candidates_with_last(
        &mut self,
        length: usize,
        failed: Option<usize>,
        last: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let length = self.config.candidates.map_or(length, usize::from);
        let mut list = self.chooser.list(self.members.len(), failed, &mut self.rng);
        list.sort_by_key(|&node| last(node));
        list.truncate(length);
        list
    }

    /// `UP`: it did not answer. Hardened it counts once an interval (`H10`).
    pub(super) fn missed(&mut self, node: usize) {
        self.costs(node, 1.0);
    }

    /// It answered badly, or was doubted: some cost.
    pub(super) fn costs(&mut self, node: usize, cost: f64) {
        match self.config.hardened() {
            true => self.pending[node] = Some(self.pending[node].unwrap_or(0.0).max(cost)),
            false => self.chooser.estimates.sample(node, cost),
        }
    }

    /// The membership lists a node. A life that is not the one seen last, which never said goodbye, has crashed in between.
    pub(super) fn present(&mut self, node: usize, boot: Boot) {
        self.listings[node] = Listing::There;
        self.chooser.estimates.pardon(node);
        if self.lives[node].is_some_and(|last| last < boot) {
            self.missed(node);
        }
        self.lives[node] = self.lives[node].max(Some(boot));
    }

    /// The membership has taken a node off its list.
    pub(super) fn gone(&mut self, node: usize, failed: bool) {
        match failed {
            true => {
                self.listings[node] = Listing::Away;
                self.missed(node);
                self.penalise(node);
            }
            false => (self.listings[node], self.lives[node]) = (Listing::Unsaid, None),
        }
    }

    /// Whether a node is away or has failed its electors, as far as we know.
    pub(super) fn is_out(&self, node: usize) -> bool {
        self.listings[node] == Listing::Away || self.chooser.estimates.arm(node).penalty > 0.0
    }

    /// Whether somebody who is there costs less than `node` by more than `margin`.
    pub(super) fn knows_better(&self, node: usize, margin: f64) -> bool {
        let cost = self.chooser.cost(node);
        let known = |other: &usize| self.chooser.estimates.arm(*other).samples > 0;
        (0..self.members.len())
            .filter(|&other| other != node && !self.is_out(other))
            .filter(known)
            .any(|other| self.chooser.cost(other) + margin < cost)
    }

    /// `DOWN`: it spoke.
    pub(super) fn heard(&mut self, node: usize) {
        if !self.config.hardened() {
            self.chooser.estimates.sample(node, 0.0);
            return;
        }
        self.pending[node].get_or_insert(0.0);
        if self.listings[node] == Listing::Away {
            self.listings[node] = Listing::There;
        }
        self.chooser.estimates.pardon(node);
    }

    pub(super) fn penalise(&mut self, node: usize) {
        self.chooser.estimates.penalise(node, self.config.penalty);
    }

    /// An interval is over: what happened in it is one sample of each node, and we were up ourselves (`H10`).
    pub(super) fn take_samples(&mut self, now: Time) {
        self.chooser.estimates.age();
        if self.config.hardened() {
            if let Some(seat) = self.seat {
                self.pending[seat].get_or_insert(0.0);
            }
            for node in 0..self.pending.len() {
                let happened = self.pending[node].take();
                let cost = match self.listings[node] {
                    Listing::Away => Some(1.0),
                    // Others have probed it all the while.
                    Listing::There => happened.or(Some(0.0)),
                    Listing::Unsaid => happened,
                };
                if let Some(cost) = cost {
                    self.chooser.estimates.sample(node, cost);
                }
            }
        }
        self.timers.set(Timer::Sample, now + self.config.sample);
    }

    pub(super) fn arm(&mut self, now: Time) {
        if self.config.ages() {
            self.timers.set(Timer::Sample, now + self.config.sample);
        }
        if let (Some(Pings { pause, .. }), Some(_)) = (self.config.pings, self.seat) {
            self.timers.set(Timer::PingNext, now + self.rng.up_to(pause));
        }
    }

    pub(super) fn explore(&mut self, now: Time, out: &mut OutboxOf<Bandit>) {
        let Some(Pings { pause, reply }) = self.config.pings else { return };
        let pending = &self.pending;
        let uncounted = |node: usize| pending[node].is_some();
        let target = self.chooser.ping_target(self.seat, self.pinged, uncounted, &mut self.rng);
        let Some(target) = target else {
            return self.timers.set(Timer::PingNext, now + pause);
        };
        self.pinged += 1;
        let nonce = self.pinged;
        let own = Some(target) == self.seat;
        self.ping = Some(Ping { target, nonce, answered: own });
        self.timers.set(Timer::PingReply, now + reply);
        if own {
            // The program's own answer counts twice: as a ping heard and as the answer to it.
            self.heard(target);
            self.heard(target);
            self.chooser.estimates.pardon(target);
            return;
        }
        out.send(self.members[target], Message::Ping { nonce });
    }

    pub(super) fn on_ping_reply(&mut self, from: Option<usize>, nonce: u64) {
        let Some(ping) = &mut self.ping else { return };
        if ping.answered || Some(ping.target) != from || ping.nonce != nonce {
            return;
        }
        ping.answered = true;
        let target = ping.target;
        self.heard(target);
        self.chooser.estimates.pardon(target);
    }

    pub(super) fn on_ping_over(&mut self, now: Time) {
        if let Some(ping) = self.ping.take().filter(|ping| !ping.answered) {
            self.missed(ping.target);
        }
        self.rest(now);
    }

    /// Neither pings nor waits for an answer for a while.
    pub(super) fn rest(&mut self, now: Time) {
        self.ping = None;
        if let Some(Pings { pause, .. }) = self.config.pings {
            self.timers.set(Timer::PingNext, now + pause);
        }
    }

    pub(super) fn note_served(&mut self, by: usize, request: Request) {
        if self.has_served(by, request) {
            return;
        }
        if self.seen.len() == SERVED {
            self.seen.pop_front();
        }
        self.seen.push_back((by, request));
        if self.doubt.is_some_and(|doubt| doubt.request == request && doubt.leader == by) {
            self.dismiss();
        }
    }

    pub(super) fn has_served(&self, by: usize, request: Request) -> bool {
        self.seen.iter().rev().any(|&seen| seen == (by, request))
    }

    /// Waits for the leader's word of a request. One doubt at a time: it speaks for all.
    pub(super) fn wonder(&mut self, now: Time, doubt: Doubt) {
        if self.doubt.is_none() {
            self.doubt = Some(doubt);
            self.timers.set(Timer::Suspect, now + self.config.waits.suspect);
        }
    }

    pub(super) fn dismiss(&mut self) {
        self.doubt = None;
        self.timers.clear(Timer::Suspect);
    }

    /// All that a crash takes away, estimates aside.
    #[cfg(feature = "research")]
    pub(super) fn lose_volatile(&mut self) {
        self.ping = None;
        self.doubt = None;
        self.timers.clear_all();
    }
}

/// Requests remembered: more than are under way at once. Arbitrary.
const SERVED: usize = 64;
