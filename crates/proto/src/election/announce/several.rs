//! The `k` best nodes lead together: LE-K.
//!
//! Source: thesis chapter 5, §5.7, which names the problem; rules 13 to 15 are those of
//! `docs/rules/announce.md`. The larger identity is the better. Replicas of a registry, or successors agreed
//! on beforehand, are what it is for.
//!
//! ```text
//! Idle        --Start--------------------> Suppressing  arm Suppress (wait of zero: as it fires)
//! Suppressing --Suppress, < k better-----> Leading      announce, arm Announce
//! Suppressing --Suppress, k better-------> Listening
//! Leading     --Announce fires-----------> Leading      announce, arm Announce
//! Leading     --k better known-----------> Listening
//! Listening   --Listen fires, < k better-> Suppressing  as Start
//! any         --announcement-------------> same         remember its sender, re-arm its Listen
//! any         --Listen fires, or Bye-----> same         forget that sender
//! any         --Leave--------------------> Idle
//! ```
//!
//! Promise: once the segment is quiet, every view is the `k` best live nodes, or all if there are
//! fewer. Nothing is promised while it is split or loses `T_L/T_A` announcements in a row.
//!
//! Departure: the rules are the corrected ones, without epochs: an answer carries no fencing token,
//! replays are not told apart and a dead leader may be revived for `T_L` by one. Use it for hints,
//! not for mutual exclusion.
//!
//! Departure: rule 13 remembers better nodes only; the view of rule 15 needs the worse announcers
//! too, so all are remembered, the best [`Config::leaders`] and a few more.

use alloc::vec::Vec;
use core::convert::Infallible;

use super::{Announcement, Message, Suppression, config};
use crate::{
    id::{NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    mechanism::timers::{Timers, timer_kinds},
    rng::{Rng, Seed},
    time::{Duration, Time},
};

/// The chapter's waits, and how many lead.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct Config {
    announce: Duration,
    listen: Option<Duration>,
    suppression: Suppression,
    leaders: u32,
}

/// Why a [`Config`] was refused. Nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The waits are unsound, as for one leader.
    #[error(transparent)]
    Waits(#[from] super::ConfigError),
    /// Nobody would lead.
    #[error("{leaders} leaders: at least one must lead")]
    NoLeaders {
        /// The number asked for.
        leaders: u32,
    },
}

impl Config {
    /// The best `leaders` nodes announce every `announce`; one silent for `listen` is forgotten, or
    /// never if that is `None`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if nobody is to lead, or for the reasons of the
    /// [single leader](super::Config::new).
    pub const fn new(
        announce: Duration,
        listen: Option<Duration>,
        suppression: Suppression,
        leaders: u32,
    ) -> Result<Self, ConfigError> {
        if let Err(error) = config::check_periods(announce, listen) {
            return Err(ConfigError::Waits(error));
        }
        if let Err(error) = suppression.check() {
            return Err(ConfigError::Waits(error));
        }
        if leaders == 0 {
            return Err(ConfigError::NoLeaders { leaders });
        }
        Ok(Self { announce, listen, suppression, leaders })
    }

    /// `T_A`: how often each leader announces.
    pub const fn announce(&self) -> Duration {
        self.announce
    }

    /// `T_L`: how long a silent leader is believed.
    pub const fn listen(&self) -> Option<Duration> {
        self.listen
    }

    /// `d(T_S)`: how long to wait before claiming.
    pub const fn suppression(&self) -> Suppression {
        self.suppression
    }

    /// `k`: how many lead. Raising it costs as many messages per `T_A`.
    pub const fn leaders(&self) -> u32 {
        self.leaders
    }
}

/// The deadlines this machine keeps; declaration order breaks ties at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When to repeat our announcement (`T_A`). Armed only while leading.
    Announce,
    /// When to forget the sender heard longest ago (`T_L`).
    Listen,
    /// When to claim leadership unless `k` better ones are known by then (`T_S`). Armed only while
    /// suppressing.
    Suppress,
}

timer_kinds!(Timer: Announce, Listen, Suppress);

/// What a node is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Not started, or left.
    Idle,
    /// Counts itself among the leaders, in silence, unless `k` better ones are known.
    Suppressing {
        /// When the wait began.
        since: Time,
    },
    /// Announces: fewer than `k` better ones are known.
    Leading {
        /// When leadership was claimed.
        since: Time,
    },
    /// Knows `k` better ones.
    Listening,
}

/// One who announces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Heard {
    id: NodeId,
    at: Time,
}

/// One node of an election of several leaders.
#[derive(Clone, Debug, PartialEq)]
pub struct Several {
    me: Peer,
    config: Config,
    rng: Rng,
    timers: Timers<Timer, 3>,
    role: Role,
    started: bool,
    sequence: u64,
    /// Those heard of, the best first.
    heard: Vec<Heard>,
}

impl Several {
    /// A node that has not started yet.
    pub fn new(me: Peer, config: Config, seed: Seed) -> Self {
        Self {
            me,
            config,
            rng: seed.rng(),
            timers: Timers::new(),
            role: Role::Idle,
            started: false,
            sequence: 0,
            heard: Vec::new(),
        }
    }

    /// What the node is doing.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Rule 15: the `k` best known, best first. Ourselves among them unless `k` better ones are known,
    /// whether or not we have claimed yet. Empty when not running.
    pub fn leaders(&self) -> Vec<NodeId> {
        if self.role == Role::Idle {
            return Vec::new();
        }
        let (better, worse) = self.heard.split_at(self.better());
        let ids = |heard: &'_ Heard| heard.id;
        let known = better.iter().map(ids).chain([self.me.id]).chain(worse.iter().map(ids));
        known.take(self.seats()).collect()
    }

    fn seats(&self) -> usize {
        usize::try_from(self.config.leaders).unwrap_or(usize::MAX)
    }

    /// `c`: how many better ones are known.
    fn better(&self) -> usize {
        self.heard.partition_point(|heard| heard.id > self.me.id)
    }

    fn has_seat(&self) -> bool {
        self.better() < self.seats()
    }
}

impl Several {
    fn on_start(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if self.started {
            return Err(Rejected::StartedTwice);
        }
        self.started = true;
        self.stand(now, out);
        Ok(())
    }

    fn on_message(
        &mut self,
        now: Time,
        from: Peer,
        message: Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if self.role == Role::Idle {
            return Err(Rejected::NotRunning);
        }
        if from.id == self.me.id {
            return Err(Rejected::Loopback { from });
        }
        match message {
            Message::Announce(_) => self.on_announce(now, from.id),
            Message::Bye { .. } => {
                self.heard.retain(|heard| heard.id != from.id);
                self.on_forgotten(now, out);
            }
            // Of the single-leader form. Nothing here has an epoch or asks.
            Message::Hint { .. } | Message::Query { .. } => {}
        }
        Ok(())
    }

    fn on_announce(&mut self, now: Time, from: NodeId) {
        match self.heard.binary_search_by(|heard| from.cmp(&heard.id)) {
            Ok(place) => self.heard[place].at = now,
            Err(place) => {
                // Senders are remote input: the table is bounded, and the worst are forgotten first.
                let room = self.seats().saturating_add(SPARE);
                if place >= room {
                    return;
                }
                self.heard.truncate(room - 1);
                self.heard.insert(place, Heard { id: from, at: now });
            }
        }
        self.arm_listen();
        if matches!(self.role, Role::Leading { .. }) && !self.has_seat() {
            self.become_listening();
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match timer {
            Timer::Announce => self.announce(now, out),
            Timer::Listen => {
                let listen = self.config.listen;
                self.heard.retain(|heard| listen.is_none_or(|listen| heard.at + listen > now));
                self.on_forgotten(now, out);
            }
            Timer::Suppress => self.claim(now, out),
        }
    }

    /// Rule 14, last part.
    fn on_forgotten(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.arm_listen();
        if self.role == Role::Listening && self.has_seat() {
            self.stand(now, out);
        }
    }
}

/// Transitions: the only places a role is entered.
impl Several {
    fn stand(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let wait = self.config.suppression.draw(0.0, &mut self.rng);
        self.role = Role::Suppressing { since: now };
        if wait.is_zero() {
            self.claim(now, out);
        } else {
            self.timers.set(Timer::Suppress, now + wait);
        }
    }

    /// Rule 14, first part.
    fn claim(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.has_seat() {
            self.role = Role::Leading { since: now };
            self.announce(now, out);
        } else {
            self.become_listening();
        }
    }

    fn become_listening(&mut self) {
        self.role = Role::Listening;
        self.timers.clear(Timer::Announce);
    }

    fn announce(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.sequence = self.sequence.saturating_add(1);
        let announcement = Announcement { sequence: self.sequence, ..Announcement::default() };
        out.multicast(Message::Announce(announcement));
        self.timers.set(Timer::Announce, now + self.config.announce);
    }

    fn arm_listen(&mut self) {
        let first = self.heard.iter().map(|heard| heard.at).min();
        match first.zip(self.config.listen) {
            Some((first, listen)) => self.timers.set(Timer::Listen, first + listen),
            None => self.timers.clear(Timer::Listen),
        }
    }
}

impl Machine for Several {
    type Message = Message;
    type Timer = Timer;
    type Feed = Infallible;
    type Command = Infallible;
    type Durable = Infallible;
    type Event = Infallible;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => self.on_start(now, out),
            Input::Message { from, via: _, message } => self.on_message(now, from, *message, out),
            Input::Timeout => {
                while let Some(timer) = self.timers.take_due(now) {
                    self.on_timer(now, timer, out);
                }
                Ok(())
            }
            Input::Leave => {
                self.role = Role::Idle;
                self.timers.clear_all();
                self.heard.clear();
                Ok(())
            }
            Input::Feed(never) | Input::Command(never) => match never {},
        }
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        self.timers.next()
    }
}

impl Election for Several {
    /// The best of the view. [`Several::leaders`] tells them all.
    fn leadership(&self) -> Leadership {
        let unknown = |why| Leadership::unknown(Mode::Announced, why);
        let best = self.heard.first().filter(|heard| heard.id > self.me.id);
        let (leader, settled, why) = match (self.role, best) {
            (Role::Idle, _) => return unknown(Why::NotRunning),
            (role, Some(best)) => {
                let settled = !matches!(role, Role::Suppressing { .. });
                (best.id, settled, Why::Announced { heard: best.at })
            }
            (Role::Suppressing { since }, None) => (self.me.id, false, Why::Standing { since }),
            (Role::Leading { since }, None) => (self.me.id, true, Why::Unchallenged { since }),
            (Role::Listening, None) => unreachable!("on_forgotten stands when nobody is better"),
        };
        Leadership { leader: Some(leader), settled, ..unknown(why) }
    }
}

/// Senders remembered beyond the `k` best, so that a gap is filled at once. Arbitrary.
const SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{id::Boot, machine::Outbox};

    #[test]
    fn strangers_cannot_grow_the_table_nor_hide_the_best() {
        let second = Duration::from_secs(1);
        let config = Config::new(second, Some(second), Suppression::None, 3).unwrap();
        let peer = |id| Peer::new(NodeId::new(id), Boot::new(1));
        let mut node = Several::new(peer(500), config, Seed::new(1));
        let mut out = Outbox::new();
        node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
        for (id, now) in (0..400).chain((600..9_000).rev()).zip(1..) {
            let from = peer(id);
            let message = &Message::Announce(Announcement::default());
            let input = Input::Message { from, via: from.id, message };
            node.handle(Time::from_micros(now), input, &mut out).unwrap();
            assert!(node.heard.len() <= 3 + SPARE);
            assert!(node.heard.is_sorted_by(|a, b| a.id > b.id));
        }
        assert_eq!(node.leaders(), [8_999, 8_998, 8_997].map(NodeId::new));
    }
}
