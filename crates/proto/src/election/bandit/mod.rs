//! Leader election by learnt reliability: bandit leader election (BLE), its baselines DLE and RLE, and a hardened form.
//!
//! Source: Tarte and Avlur, "Learning Node Characteristics for Reliable Leader Election", and the authors' program for
//! what the text leaves open. Rules (letter and number), errata `A-n` and properties `P-n` are those of
//! `docs/rules/bandit.md`. Every node keeps, for every node, a running estimate of how often it does not answer;
//! an election turns estimates into short lists of candidates, shares them, and takes whom most lists name. Three
//! profiles are one machine:
//!
//! ```text
//! as published, and as the program does it (profile Published, Reference)
//! no round  --client request, leader silent--> round      UP(leader); share a list               (Q5, E1)
//! no round  --ShareCandidate, Published------> round      share a list too                       (E2)
//! round     --f lists of others--------------> collecting arm Collect                            (E3)
//! collecting--Collect fires------------------> awaiting   tally; ConfirmElection if it is us     (E4, E5)
//! awaiting  --Confirm fires, Published-------> round      share again                            (E7)
//! awaiting  --same request again, Reference--> round      penalise the winner, share again       (E7, X1)
//! any       --ConfirmElection, newer clock---> no round                                          (E6)
//!
//! Hardened
//! Calm      --leader silent, Lease fires-----> Collecting ShareCandidate in term + 1             (H1, H2)
//! Calm      --ShareCandidate, no leader------> Collecting share a list too                       (H3)
//! Collecting--Collect fires, too few lists---> Collecting ShareCandidate again
//! Collecting--all lists, or Collect fires----> Voted      persist; Vote for one that sent a list (H4)
//! Voted     --Resend fires-------------------> Voted      Vote again
//! Voted     --Confirm fires------------------> Calm       not that one; arm Stand                (H7)
//! any       --votes of a majority------------> Calm       persist; lead; ConfirmElection         (H5)
//! any       --word of a leader, term not old-> Calm       persist; follow; arm Lease             (H6)
//! Leading   --Lease fires, no majority heard-> Calm       lead no longer
//! Leading   --word of a higher term----------> Calm       lead no longer                         (H8)
//! any       --word of an old term------------> any        TermHint                               (H8)
//! ```
//!
//! Promise, hardened: at most one leader to a term, whatever is lost, late, twice or out of order and whoever crashes,
//! as long as what was persisted is not lost; and a leader whenever a majority of the members is up and can talk. As
//! published nothing of the kind holds (A-1).
//!
//! The members are fixed: a majority of them decides, and two majorities of different lists need not meet (A-22).
//! Whoever is not a member may listen. What a membership below says of members is [evidence](Feed), not a vote.
//!
//! Departure: a leader that has not heard a majority for [a lease](Config::lease) stops leading (H8 lets it lead on
//! until it hears of a higher term), so that the smaller side of a split names nobody.
//!
//! Departure: whom a node has given up on stands last on its list; H4 takes them out of the tally. What one node alone
//! has seen must not decide how it counts: two that have given up on each other would vote for themselves for ever.
//!
//! Departure: lists of a higher term that come while the leader still lives are kept until it does not, not dropped
//! (H3): leases of different nodes run out by a message's delay apart, and tallies would differ by as much.
//!
//! Departure: a list of the term in which we have just voted is answered with our own, not with a hint (H3), by which
//! a slower node would forfeit its vote.
//!
//! Departure: a node whose durable state is lost begins above all terms of its past lives, told by its boot number,
//! since it cannot know in which of them it has voted. That is safe unless terms were raised so far by others before.
//!
//! Departure: nodes that keep too few lists rebroadcast with growing pauses (H3 has none).
//!
//! ```
//! use std::{collections::VecDeque, sync::Arc};
//! use bellwether_proto::{
//!     Boot, Effect, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     election::bandit::{Bandit, Config, Policy, Profile},
//! };
//!
//! let members: Arc<[NodeId]> = (0..3).map(NodeId::new).collect();
//! let config = Config::new(Profile::Hardened, Policy::EPSILON_GREEDY);
//! let peers = [0, 1, 2].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
//! let mut nodes =
//!     peers.map(|me| Bandit::new(me, members.clone(), config, Seed::new(me.id.get()), None));
//! let mut out = Outbox::new();
//! for node in &mut nodes {
//!     node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! }
//! // A network without delay; everybody is woken when the first is due.
//! let mut letters = VecDeque::new();
//! for _ in 0..4 {
//!     let now = nodes.iter().filter_map(|node| node.deadline()).map(|(at, _)| at).min().unwrap();
//!     let mut due: VecDeque<_> = (0..3).map(|node| (node, None)).collect();
//!     while let Some((to, letter)) = due.pop_front().or_else(|| letters.pop_front()) {
//!         let to: usize = to;
//!         let input = match &letter {
//!             None => Input::Timeout,
//!             Some((from, message)) => {
//!                 let from: Peer = *from;
//!                 Input::Message { from, via: from.id, message }
//!             }
//!         };
//!         nodes[to].handle(now, input, &mut out).unwrap();
//!         while let Some(effect) = out.pop() {
//!             match effect {
//!                 Effect::Send { to: other, message } => {
//!                     letters.push_back((other.get() as usize, Some((peers[to], message))));
//!                 }
//!                 Effect::Multicast(message) => letters.extend(
//!                     (0..3).filter(|&other| other != to)
//!                         .map(|other| (other, Some((peers[to], message.clone())))),
//!                 ),
//!                 _ => {}
//!             }
//!         }
//!     }
//! }
//! let leader = nodes[0].leadership().leader;
//! assert!(leader.is_some());
//! assert!(nodes.iter().all(|node| node.leadership().leader == leader));
//! ```

use alloc::{sync::Arc, vec::Vec};

#[cfg(feature = "research")]
use self::rounds::Rounds;
use self::{common::Common, terms::Terms};
pub use self::{
    config::{Config, ConfigError, Eligible, Pings, Policy, Prior, Profile, Waits},
    message::{Kind, MAX_MEMBERS, Message, Request},
    tally::{Tally, Ties},
};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    mechanism::timers::{TimerKind, timer_kinds},
    rng::Seed,
    time::Time,
};

#[cfg(feature = "research")]
pub mod client;
mod common;
mod config;
pub mod estimator;
mod message;
pub mod policy;
#[cfg(feature = "research")]
mod rounds;
mod tally;
mod terms;
#[cfg(test)]
#[cfg(feature = "research")]
mod tests;

/// What is said of members from outside.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Feed {
    /// A member is up, as far as a membership knows: what it was penalised for is over.
    Up(Peer),
    /// A member has not answered somebody, and may still contradict.
    Suspected(Peer),
    /// A member was removed as failed. If it led, it leads no longer; every interval it is away counts against it.
    Failed(Peer),
    /// A member has said goodbye.
    Left(Peer),
    /// The application says how a member does. What it says of this node all others are told. Hardened only.
    Reported {
        /// The member that does badly.
        id: NodeId,
        /// How badly, in hundredths: 0 is as it should be.
        percent: u8,
    },
    /// The machine below has failed: nothing is said or heard from now on, but memory survives. As published only;
    /// hardened nodes crash.
    Halted,
    /// It runs again.
    Restored,
}

/// What the application may ask for. Hardened only.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Command {
    /// Elect, whether or not there is a leader.
    Elect,
    /// Stop leading in favour of another.
    Resign,
    /// Stop leading at once and in silence: this node has not been running for a while, and somebody else may lead.
    Void,
    /// From now on vote, but do not lead; or stand again. Whoever does not stand shares an empty list.
    Observe(bool),
}

/// What must survive a restart. Hardened only: without it a node may vote twice in one term.
#[derive(Clone, Debug, Default, Hash, PartialEq)]
pub struct Durable {
    /// The highest term voted in, confirmed or hinted at.
    pub term: u64,
    /// The vote in it.
    pub voted_for: Option<NodeId>,
    /// What was learnt so far. Losing it costs nothing but what it took to learn.
    pub beliefs: Vec<Belief>,
}

/// What was learnt of one member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// The member that it is about.
    pub id: NodeId,
    /// How often it does not answer.
    pub mean: f64,
    /// On how many samples that stands.
    pub weight: u64,
}

impl core::hash::Hash for Belief {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Self { id, mean, weight } = *self;
        (id, crate::hash::Real(mean), weight).hash(state);
    }
}

/// What a node makes of one member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Opinion {
    /// The member that it is about.
    pub id: NodeId,
    /// What it is believed to cost, from 0 to 1: how often it is not there or does badly.
    pub cost: f64,
    /// On how many samples that stands, as far as they still count.
    pub samples: u64,
    /// Whether it stands behind all others: the membership has given it up, or it failed its electors and was not
    /// heard of since.
    pub out: bool,
}

/// What the application should be told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// We share a list of candidates: a round, or an attempt at a term, has begun here.
    Started {
        /// The term, or as published our clock.
        term: u64,
    },
    /// Another node was started under our identity after us. This one has stopped.
    DuplicateIdentity {
        /// The newer life.
        other: Peer,
    },
}

/// The deadlines this machine keeps; declaration order breaks ties at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When to presume that a leader which has not spoken of a request failed.
    Suspect,
    /// When to share a list again for want of others. As published only.
    Share,
    /// When to count lists.
    Collect,
    /// When to repeat our vote.
    Resend,
    /// When to give up on the winner.
    Confirm,
    /// When to try again.
    Stand,
    /// When to stop believing in a silent leader or, leading, to look whether a majority is still there.
    Lease,
    /// When to say that we live. Armed only while leading.
    Heartbeat,
    /// When to give up on the answer to a ping.
    PingReply,
    /// When to ping somebody.
    PingNext,
    /// When to take samples, and let old ones fade.
    Sample,
}

impl Timer {
    const COUNT: usize = 11;
}

timer_kinds!(
    Timer: Suspect, Share, Collect, Resend, Confirm, Stand, Lease, Heartbeat, PingReply, PingNext, Sample
);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    /// Not started yet, or done.
    Idle {
        started: bool,
    },
    Running,
}

/// One node of a bandit election.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandit {
    common: Common,
    role: Role,
    contest: Contest,
}

/// How elections go.
#[derive(Clone, Debug, PartialEq)]
enum Contest {
    #[cfg(feature = "research")]
    Rounds(Rounds),
    Terms(Terms),
}

impl Bandit {
    /// A node that has not started yet, of these members in ascending order, itself perhaps one of them. `durable` is
    /// what its past life persisted last. Members beyond [`MAX_MEMBERS`] are left out.
    pub fn new(
        me: Peer,
        members: Arc<[NodeId]>,
        config: Config,
        seed: Seed,
        durable: Option<Durable>,
    ) -> Self {
        debug_assert!(members.is_sorted(), "members out of order");
        let members = match members.len() > MAX_MEMBERS {
            true => members[..MAX_MEMBERS].into(),
            false => members,
        };
        let mut common = Common::new(me, members, config, seed);
        let contest = match config.profile {
            Profile::Hardened => Contest::Terms(Terms::new(&mut common, durable)),
            #[cfg(feature = "research")]
            Profile::Published | Profile::Reference => Contest::Rounds(Rounds::new()),
        };
        Self { common, role: Role::Idle { started: false }, contest }
    }

    /// What it was built with.
    pub const fn config(&self) -> &Config {
        &self.common.config
    }

    /// The members, in ascending order.
    pub fn members(&self) -> &[NodeId] {
        &self.common.members
    }

    /// What it believes of each member, in their order.
    pub fn estimates(&self) -> &estimator::Estimates {
        &self.common.chooser.estimates
    }

    /// What it makes of them: the members, best first, luck and optimism left out.
    pub fn opinions(&self) -> Vec<Opinion> {
        let common = &self.common;
        let opinion = |(place, &id): (usize, &NodeId)| Opinion {
            id,
            cost: common.chooser.cost(place),
            samples: common.chooser.estimates.kept(place).1.saturating_sub(1),
            out: common.is_out(place),
        };
        let mut all: Vec<Opinion> = common.members.iter().enumerate().map(opinion).collect();
        all.sort_by(|a, b| a.out.cmp(&b.out).then(a.cost.total_cmp(&b.cost)));
        all
    }

    /// Hardened: the highest term voted in, confirmed or hinted at, and the vote in it.
    pub fn ballot(&self) -> Option<(u64, Option<NodeId>)> {
        match &self.contest {
            #[cfg(feature = "research")]
            Contest::Rounds(_) => None,
            Contest::Terms(terms) => Some((terms.term(), terms.voted_for())),
        }
    }

    /// Feeds what decides what an election does next to a hasher: what a model checker tells states by. Of times, it is
    /// the order of timers and what has run out by `now`; as published also clocks, which are compared there. Estimates
    /// and the generator are left out; penalties are in.
    pub fn fingerprint<H: core::hash::Hasher>(&self, now: Time, state: &mut H) {
        use core::hash::Hash;
        let arms = self.common.chooser.estimates.arms();
        arms.iter().for_each(|arm| (arm.penalty > 0.0).hash(state));
        let armed = |&timer: &Timer| Some((self.common.timers.deadline(timer)?, timer.index()));
        let mut order: Vec<(Time, usize)> = Timer::ALL.iter().filter_map(armed).collect();
        order.sort_unstable();
        order.iter().for_each(|(_, timer)| timer.hash(state));
        (self.role == Role::Running).hash(state);
        match &self.contest {
            #[cfg(feature = "research")]
            Contest::Rounds(rounds) => rounds.fingerprint(state),
            Contest::Terms(terms) => terms.fingerprint(&self.common, now, state),
        }
    }

    fn on_message(
        &mut self,
        now: Time,
        from: Peer,
        message: &Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if self.role != Role::Running {
            return Err(Rejected::NotRunning);
        }
        if from.id == self.common.me.id {
            if from.boot <= self.common.me.boot {
                return Err(Rejected::Loopback { from });
            }
            out.emit(Event::DuplicateIdentity { other: from });
            self.become_idle();
            return Ok(());
        }
        let common = &mut self.common;
        match &mut self.contest {
            #[cfg(feature = "research")]
            Contest::Rounds(rounds) => rounds.on_message(common, now, from, message, out),
            Contest::Terms(terms) => terms.on_message(common, now, from, message, out),
        }
    }

    fn on_feed(&mut self, now: Time, feed: Feed, out: &mut OutboxOf<Self>) {
        if self.role != Role::Running {
            return;
        }
        let common = &mut self.common;
        match (&mut self.contest, feed) {
            #[cfg(feature = "research")]
            (Contest::Rounds(rounds), feed) => match feed {
                Feed::Halted => rounds.on_halt(common, now, true),
                Feed::Restored => rounds.on_halt(common, now, false),
                // The text has no failure detector but its own.
                _ => {}
            },
            (Contest::Terms(_), Feed::Up(peer)) => {
                if let Some(place) = common.place_of(peer.id) {
                    common.present(place, peer.boot);
                }
            }
            (Contest::Terms(_), Feed::Suspected(peer)) => {
                if let Some(place) = common.place_of(peer.id) {
                    common.costs(place, DOUBTED);
                }
            }
            (Contest::Terms(_), Feed::Reported { id, percent }) => {
                let percent = percent.min(100);
                if let Some(place) = common.place_of(id) {
                    common.costs(place, f64::from(percent) / 100.0);
                }
                if id == common.me.id {
                    out.multicast(Message::Admission { percent });
                }
            }
            (Contest::Terms(terms), Feed::Failed(peer)) => {
                terms.on_gone(common, now, peer, true, out);
            }
            (Contest::Terms(terms), Feed::Left(peer)) => {
                terms.on_gone(common, now, peer, false, out);
            }
            (Contest::Terms(_), Feed::Halted | Feed::Restored) => {}
        }
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut OutboxOf<Self>) {
        let common = &mut self.common;
        match (&mut self.contest, command) {
            #[cfg(feature = "research")]
            (Contest::Rounds(_), _) => {}
            (Contest::Terms(terms), Command::Elect) => terms.elect(common, now, out),
            (Contest::Terms(terms), Command::Resign) => terms.resign(common, now, true, out),
            (Contest::Terms(terms), Command::Void) => terms.resign(common, now, false, out),
            (Contest::Terms(terms), Command::Observe(observes)) => {
                terms.observe(common, now, observes, out);
            }
        }
    }

    fn become_idle(&mut self) {
        self.role = Role::Idle { started: true };
        self.common.timers.clear_all();
    }
}

impl Machine for Bandit {
    type Message = Message;
    type Timer = Timer;
    type Feed = Feed;
    type Command = Command;
    type Durable = Durable;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => {
                if self.role != (Role::Idle { started: false }) {
                    return Err(Rejected::StartedTwice);
                }
                self.role = Role::Running;
                match &mut self.contest {
                    #[cfg(feature = "research")]
                    Contest::Rounds(rounds) => rounds.on_start(&mut self.common, now),
                    Contest::Terms(terms) => terms.on_start(&mut self.common, now),
                }
            }
            Input::Message { from, via: _, message } => {
                return self.on_message(now, from, message, out);
            }
            Input::Timeout => {
                while let Some(timer) = self.common.timers.take_due(now) {
                    let common = &mut self.common;
                    match &mut self.contest {
                        #[cfg(feature = "research")]
                        Contest::Rounds(rounds) => rounds.on_timer(common, now, timer, out),
                        Contest::Terms(terms) => terms.on_timer(common, now, timer, out),
                    }
                }
            }
            Input::Feed(feed) => self.on_feed(now, feed, out),
            Input::Command(command) => {
                if self.role != Role::Running {
                    return Err(Rejected::NotRunning);
                }
                self.on_command(now, command, out);
            }
            Input::Leave => {
                if self.role == Role::Running {
                    self.on_command(now, Command::Resign, out);
                }
                self.become_idle();
            }
        }
        Ok(())
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        self.common.timers.next()
    }
}

impl Election for Bandit {
    fn leadership(&self) -> Leadership {
        let unknown = |why| Leadership::unknown(Mode::Learned, why);
        if self.role != Role::Running {
            return unknown(Why::NotRunning);
        }
        let common = &self.common;
        let doubted = common.doubt.is_some();
        match &self.contest {
            #[cfg(feature = "research")]
            Contest::Rounds(rounds) => {
                let Some((leader, settled, since)) = rounds.leader() else {
                    return unknown(Why::NotRunning);
                };
                let why = match Some(leader) == common.seat {
                    true => Why::Unchallenged { since },
                    false => Why::Announced { heard: since },
                };
                let leader = common.members.get(leader).copied();
                Leadership { leader, settled: settled && !doubted, ..unknown(why) }
            }
            Contest::Terms(terms) => {
                let Some((peer, term, since, heard)) = terms.leader() else {
                    return unknown(terms.why_unknown());
                };
                let why = match peer == common.me {
                    true => Why::Unchallenged { since },
                    false => Why::Announced { heard },
                };
                Leadership {
                    leader: Some(peer.id),
                    epoch: Some(Epoch::mint(term, peer)),
                    settled: !doubted,
                    ..unknown(why)
                }
            }
        }
    }
}

/// What it costs to be suspected: less than to be gone, since most that are suspected contradict. Arbitrary.
const DOUBTED: f64 = 0.5;
