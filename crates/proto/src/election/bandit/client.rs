//! A client: it sends requests to whom it believes to lead and calls for an election by broadcasting one (`C1` to `C6`).
//!
//! ```text
//! Asking    --Wait fires, answered------> Asking     the next request                      (C6)
//! Asking    --Wait fires, not answered--> Calling    ClientRequest to all; one round      (C4)
//! Calling   --Wait fires, a new leader--> Asking     the next request; Published, Hardened:
//!                                                    the same one again                    (C5)
//! Calling   --Wait fires, no new leader-> Resting                                          (C5)
//! Resting   --Wait fires----------------> Calling    ClientRequest to all; one round      (C4)
//! any       --Reply, ConfirmElection----> any        adopt whoever leads by a newer term   (C2, C3)
//! ```

use alloc::sync::Arc;

use super::{
    config::Profile,
    message::{Message, Request},
};
use crate::{
    id::{NodeId, Peer},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    time::{Duration, Time},
};

/// What a client does.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Config {
    profile: Profile,
    requests: u64,
    timeout: Duration,
    round: Duration,
}

/// Why a [`Config`] was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// It would ask without pause.
    #[error("{name} must be longer than zero")]
    NoTime {
        /// The setting that is wrong.
        name: &'static str,
    },
}

impl Config {
    /// So many requests, one every `timeout` while all goes well; `round` is how long an election may take.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoTime`].
    pub const fn new(
        profile: Profile,
        requests: u64,
        timeout: Duration,
        round: Duration,
    ) -> Result<Self, ConfigError> {
        if timeout.is_zero() {
            return Err(ConfigError::NoTime { name: "timeout" });
        }
        if round.is_zero() {
            return Err(ConfigError::NoTime { name: "round" });
        }
        Ok(Self { profile, requests, timeout, round })
    }

    /// The same client of nodes of another profile.
    pub const fn of_profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// How many requests.
    pub const fn requests(&self) -> u64 {
        self.requests
    }
}

/// What a client has seen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// A request was answered for the first time.
    Answered {
        /// How long after it was first sent.
        after: Duration,
    },
    /// A request will never be answered: the program forgets those that an election interrupted.
    Abandoned,
    /// A round, counted from the client's broadcast, is over.
    Round {
        /// When it began.
        began: Time,
        /// Which request called for it.
        request: u64,
        /// The new leader; `None` if there was none in time.
        leader: Option<NodeId>,
    },
    /// All requests are settled.
    Finished,
}

/// The one deadline a client keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// When to look for an answer, or for a leader.
    Wait,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Idle,
    Asking,
    Calling { began: Time, before: NodeId },
    Resting,
    Finished,
}

/// A client that sends requests to whomever it takes for the leader.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    me: Peer,
    members: Arc<[NodeId]>,
    config: Config,
    stage: Stage,
    wait: Option<Time>,
    /// The request under way, from 0.
    number: u64,
    first_sent: Time,
    answered: bool,
    attempt: u32,
    leader: NodeId,
    term: u64,
}

impl Client {
    /// A client of these members, of which it believes the first to lead.
    pub fn new(me: Peer, members: Arc<[NodeId]>, config: Config) -> Self {
        let leader = members.first().copied().unwrap_or_default();
        Self {
            me,
            members,
            config,
            stage: Stage::Idle,
            wait: None,
            number: 0,
            first_sent: Time::ZERO,
            answered: false,
            attempt: 0,
            leader,
            term: 0,
        }
    }

    /// Requests settled so far.
    pub const fn settled(&self) -> u64 {
        self.number
    }

    /// Whether there is nothing left to do.
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Finished
    }

    /// Whom it believes to lead.
    pub const fn leader(&self) -> NodeId {
        self.leader
    }

    fn ask(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.number >= self.config.requests {
            self.stage = Stage::Finished;
            self.wait = None;
            return out.emit(Event::Finished);
        }
        self.stage = Stage::Asking;
        self.wait = Some(now + self.config.timeout);
        out.send(self.leader, Message::ClientRequest { number: self.number, attempt: 0 });
    }

    fn next(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.number += 1;
        (self.answered, self.attempt, self.first_sent) = (false, 0, now);
        self.ask(now, out);
    }

    /// `C4`.
    fn call(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.attempt = self.attempt.saturating_add(1);
        self.stage = Stage::Calling { began: now, before: self.leader };
        self.wait = Some(now + self.config.round);
        let message = Message::ClientRequest { number: self.number, attempt: self.attempt };
        for &member in self.members.iter() {
            // A lost reply then costs an election (A-20).
            let spared = self.config.profile == Profile::Reference && member == self.leader;
            if !spared {
                out.send(member, message.clone());
            }
        }
    }

    fn on_wait(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        match self.stage {
            Stage::Idle | Stage::Finished => self.wait = None,
            Stage::Asking if self.answered => self.next(now, out),
            Stage::Asking | Stage::Resting => self.call(now, out),
            Stage::Calling { began, before } => {
                let changed = self.leader != before;
                let over = changed || self.answered;
                let leader = over.then_some(self.leader);
                out.emit(Event::Round { began, request: self.number, leader });
                match (over, self.config.profile) {
                    (false, _) => {
                        self.stage = Stage::Resting;
                        self.wait = Some(now + self.config.timeout);
                    }
                    (true, Profile::Reference) => {
                        if !self.answered {
                            out.emit(Event::Abandoned);
                        }
                        self.next(now, out);
                    }
                    (true, Profile::Published | Profile::Hardened) => match self.answered {
                        true => self.next(now, out),
                        false => self.ask(now, out),
                    },
                }
            }
        }
    }

    fn on_message(&mut self, now: Time, from: Peer, message: &Message, out: &mut OutboxOf<Self>) {
        match message {
            Message::Reply { number, term } => {
                if *number == self.number && !self.answered && self.stage != Stage::Finished {
                    self.answered = true;
                    out.emit(Event::Answered { after: now.since(self.first_sent) });
                }
                if from.id != self.leader {
                    self.adopt(from, *term);
                }
            }
            Message::ConfirmElection { term, .. } => self.adopt(from, *term),
            // Talk among nodes that a multicast brought here.
            _ => {}
        }
    }

    fn adopt(&mut self, from: Peer, term: u64) {
        if term > self.term {
            (self.leader, self.term) = (from.id, term);
        }
    }

    /// The request under way.
    pub const fn request(&self) -> Request {
        Request { client: self.me.id, number: self.number }
    }
}

impl Machine for Client {
    type Message = Message;
    type Timer = Timer;
    type Feed = core::convert::Infallible;
    type Command = core::convert::Infallible;
    type Durable = core::convert::Infallible;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => {
                if self.stage != Stage::Idle {
                    return Err(Rejected::StartedTwice);
                }
                self.first_sent = now;
                self.ask(now, out);
            }
            Input::Message { from, via: _, message } => self.on_message(now, from, message, out),
            Input::Timeout => {
                if self.wait.is_some_and(|at| at <= now) {
                    self.on_wait(now, out);
                }
            }
            Input::Feed(never) | Input::Command(never) => match never {},
            Input::Leave => {
                self.stage = Stage::Finished;
                self.wait = None;
            }
        }
        Ok(())
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        self.wait.map(|at| (at, Timer::Wait))
    }
}
