//! Ping and acknowledge: the shape of SWIM's probing with nothing around it.
//!
//! Once a period, at a random phase, a node pings one uniformly random other node and, a while later,
//! checks whether the acknowledgement came. It keeps no member list and draws no conclusion; its only
//! purpose is to be the common workload of the engine benchmark, four events per node and period:
//!
//! ```text
//! Running --Round fires---> Running   Ping to a random node; arm Check and Round
//! Running --Ping received-> Running   Ack to its sender
//! Running --Ack received--> Running   note it, if it answers the ping of this round
//! Running --Check fires---> Running   count a miss unless the ack was noted
//! ```

use core::convert::Infallible;

use crate::{
    id::{NodeId, Peer},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    mechanism::timers::{Timers, timer_kinds},
    rng::{Rng, Seed},
    time::{Duration, Time},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// How often to ping whom.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Config {
    period: Duration,
    timeout: Duration,
    nodes: u64,
}

/// Why a [`Config`] was refused. Nothing was built.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The check of one round would fall into the next.
    #[error("timeout {timeout} must be shorter than period {period}")]
    TimeoutTooLong {
        /// The timeout asked for.
        timeout: Duration,
        /// The period asked for.
        period: Duration,
    },
    /// Nobody to ping.
    #[error("{nodes} nodes: pinging takes at least 2")]
    TooFewNodes {
        /// The number asked for.
        nodes: u64,
    },
}

impl Config {
    /// Every `period` ping one of the nodes `0..nodes`, and check for its answer after `timeout`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the check would not fall within the period, or there is nobody to ping.
    pub const fn new(period: Duration, timeout: Duration, nodes: u64) -> Result<Self, ConfigError> {
        if timeout.as_micros() >= period.as_micros() {
            return Err(ConfigError::TimeoutTooLong { timeout, period });
        }
        if nodes < 2 {
            return Err(ConfigError::TooFewNodes { nodes });
        }
        Ok(Self { period, timeout, nodes })
    }
}

/// What nodes say to each other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// Are you there?
    Ping {
        /// The asker's round.
        round: u32,
    },
    /// Answers a ping: the sender is alive.
    Ack {
        /// The round of the ping it answers.
        round: u32,
    },
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        let (kind, round) = match *self {
            Self::Ping { round } => (0, round),
            Self::Ack { round } => (1, round),
        };
        sink.u8(kind);
        sink.u32(round);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = reader.kind("ping", 2)?;
        let round = reader.u32("round")?;
        Ok(if kind == 0 { Self::Ping { round } } else { Self::Ack { round } })
    }
}

/// The deadlines this machine keeps; declaration order breaks ties at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When to check for the answer to this round's ping.
    Check,
    /// When to ping the next node.
    Round,
}

timer_kinds!(Timer: Check, Round);

/// One pinging node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ping {
    rng: Rng,
    timers: Timers<Timer, 2>,
    config: Config,
    me: NodeId,
    round: u32,
    acked_round: u32,
    acked: u32,
    missed: u32,
}

impl Ping {
    /// A node that has not started yet.
    pub fn new(me: NodeId, config: Config, seed: Seed) -> Self {
        Self {
            rng: seed.rng(),
            timers: Timers::new(),
            config,
            me,
            round: 0,
            acked_round: 0,
            acked: 0,
            missed: 0,
        }
    }

    /// Pings answered so far.
    pub fn acked(&self) -> u32 {
        self.acked
    }

    /// Pings unanswered when they were checked.
    pub fn missed(&self) -> u32 {
        self.missed
    }

    fn on_round(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.round = self.round.wrapping_add(1);
        let other = self.rng.below(self.config.nodes - 1);
        let target = NodeId::new(other + u64::from(other >= self.me.get()));
        out.send(target, Message::Ping { round: self.round });
        self.timers.set(Timer::Check, now + self.config.timeout);
        self.timers.set(Timer::Round, now + self.config.period);
    }

    fn on_message(
        &mut self,
        from: Peer,
        message: Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match message {
            Message::Ping { round } => out.send(from.id, Message::Ack { round }),
            Message::Ack { round } => {
                if round != self.round || self.acked_round == round {
                    return Err(Rejected::Unsolicited { from });
                }
                self.acked_round = round;
                self.acked = self.acked.saturating_add(1);
            }
        }
        Ok(())
    }
}

impl Machine for Ping {
    type Message = Message;
    type Timer = Timer;
    type Feed = Infallible;
    type Command = Infallible;
    type Durable = Infallible;
    type Event = Infallible;

    #[inline]
    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => {
                let phase = self.rng.below(self.config.period.as_micros());
                self.timers.set(Timer::Round, now + Duration::from_micros(phase));
                Ok(())
            }
            Input::Message { from, via: _, message } => self.on_message(from, *message, out),
            Input::Timeout => {
                while let Some(timer) = self.timers.take_due(now) {
                    match timer {
                        Timer::Check => {
                            let missed = self.acked_round != self.round;
                            self.missed = self.missed.saturating_add(u32::from(missed));
                        }
                        Timer::Round => self.on_round(now, out),
                    }
                }
                Ok(())
            }
            Input::Leave => {
                self.timers.clear_all();
                Ok(())
            }
            Input::Feed(never) | Input::Command(never) => match never {},
        }
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        self.timers.next()
    }
}
