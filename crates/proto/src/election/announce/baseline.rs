//! What announce-listen elections are compared with: SUP, AL, and both one after the other.
//!
//! Source: thesis chapter 5, §5.4 and §5.7; the programs are those of `docs/rules/announce.md`. None of these
//! is an election anybody should run. [`Sup`] finds one speaker and then says no more, [`Al`] has
//! everybody speak for ever, and [`SupAl`] is the composition that does not work.
//!
//! ```text
//! Sup:    Waiting   --Suppress fires----> Sent        say it once
//!         Waiting   --anything heard----> Suppressed
//! Al:     Running   --Announce fires----> Running     announce, arm Announce
//!         Running   --anything heard----> Running     remember its sender for T_L
//! SupAl:  Waiting   --Suppress fires----> Announcing  announce, arm Announce
//!         Waiting   --anything heard----> Following   arm Listen
//!         Announcing --Announce fires---> Announcing  announce, arm Announce
//!         Announcing --anything heard---> Following   arm Listen (Defer only)
//!         Following --the same sender---> Following   re-arm Listen
//!         Following --Listen fires------> Waiting     as Start
//! each:   Idle      --Start-------------> the first   (Al announces)
//!         any       --Leave-------------> Idle
//! ```
//!
//! Promise: none. Under `Defer` two nodes that wake within one delay of each other both follow the
//! other and nobody announces, without any loss (A-28, V14).

use alloc::vec::Vec;
use core::convert::Infallible;

use super::{ConfigError, Suppression, config};
use crate::{
    id::{NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    mechanism::timers::{Timers, timer_kinds},
    rng::{Rng, Seed},
    time::{Duration, Time},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// I am here. The chapter's messages carry some state too; an election needs none.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Data {
    /// Counts the sender's messages within its boot. Nothing depends on it but a reader of traces.
    pub sequence: u64,
}

impl Data {
    /// Always: there is nothing else to say.
    pub const fn is_announcement(&self) -> bool {
        true
    }
}

impl Wire for Data {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.sequence);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { sequence: reader.varint("sequence")? })
    }
}

/// The deadlines these machines keep; declaration order breaks ties at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When to repeat our announcement (`T_A`).
    Announce,
    /// When to forget whom we have not heard (`T_L`).
    Listen,
    /// When to speak unless another has (`T_S`).
    Suppress,
}

timer_kinds!(Timer: Announce, Listen, Suppress);

/// What the three have in common: who we are and what is due.
#[derive(Clone, Debug, PartialEq)]
struct Core {
    me: Peer,
    timers: Timers<Timer, 3>,
    started: bool,
    running: bool,
    sequence: u64,
}

impl Core {
    fn new(me: Peer) -> Self {
        Self { me, timers: Timers::new(), started: false, running: false, sequence: 0 }
    }

    fn start(&mut self) -> Result<(), Rejected> {
        if self.started {
            return Err(Rejected::StartedTwice);
        }
        self.started = true;
        self.running = true;
        Ok(())
    }

    fn leave(&mut self) {
        self.running = false;
        self.timers.clear_all();
    }

    fn admit(&self, from: Peer) -> Result<(), Rejected> {
        if !self.running {
            Err(Rejected::NotRunning)
        } else if from.id == self.me.id {
            Err(Rejected::Loopback { from })
        } else {
            Ok(())
        }
    }

    fn next(&mut self) -> Data {
        self.sequence = self.sequence.saturating_add(1);
        Data { sequence: self.sequence }
    }
}

fn answer(leader: NodeId, why: Why) -> Leadership {
    let unknown = Leadership::unknown(Mode::Announced, why);
    Leadership { leader: Some(leader), settled: true, ..unknown }
}

/// Implements [`Machine`] from `on_start`, `on_message` and `on_timer`.
macro_rules! machine {
    ($name:ident) => {
        impl Machine for $name {
            type Message = Data;
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
                    Input::Start => {
                        self.core.start()?;
                        self.on_start(now, out);
                    }
                    Input::Message { from, via: _, message: _ } => {
                        self.core.admit(from)?;
                        self.on_message(now, from.id);
                    }
                    Input::Timeout => {
                        while let Some(timer) = self.core.timers.take_due(now) {
                            self.on_timer(now, timer, out);
                        }
                    }
                    Input::Leave => self.core.leave(),
                    Input::Feed(never) | Input::Command(never) => match never {},
                }
                Ok(())
            }

            fn deadline(&self) -> Option<(Time, Timer)> {
                self.core.timers.next()
            }
        }
    };
}

/// How long SUP waits.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct SupConfig {
    suppression: Suppression,
}

impl SupConfig {
    /// Waits as told. Only goodness is not known here, and counts as zero.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the suppression is no distribution.
    pub const fn new(suppression: Suppression) -> Result<Self, ConfigError> {
        match suppression.check() {
            Ok(suppression) => Ok(Self { suppression }),
            Err(error) => Err(error),
        }
    }

    /// `d(T_S)`: how long to wait before speaking.
    pub const fn suppression(&self) -> Suppression {
        self.suppression
    }
}

/// SUP: one speaks, and whoever hears it in time never does. One round, then silence.
#[derive(Clone, Debug, PartialEq)]
pub struct Sup {
    core: Core,
    config: SupConfig,
    rng: Rng,
    progress: Progress,
}

/// How far SUP has got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Progress {
    Waiting { since: Time },
    Sent { at: Time },
    Suppressed { by: NodeId, at: Time },
}

impl Sup {
    /// A node that has not started yet.
    pub fn new(me: Peer, config: SupConfig, seed: Seed) -> Self {
        let progress = Progress::Waiting { since: Time::ZERO };
        Self { core: Core::new(me), config, rng: seed.rng(), progress }
    }

    fn on_start(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.progress = Progress::Waiting { since: now };
        let wait = self.config.suppression.draw(0.0, &mut self.rng);
        if wait.is_zero() {
            self.speak(now, out);
        } else {
            self.core.timers.set(Timer::Suppress, now + wait);
        }
    }

    fn on_message(&mut self, now: Time, from: NodeId) {
        if let Progress::Waiting { .. } = self.progress {
            self.progress = Progress::Suppressed { by: from, at: now };
            self.core.timers.clear(Timer::Suppress);
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match timer {
            Timer::Suppress => self.speak(now, out),
            Timer::Announce | Timer::Listen => unreachable!("SUP arms neither"),
        }
    }

    fn speak(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.progress = Progress::Sent { at: now };
        out.multicast(self.core.next());
    }
}

machine!(Sup);

impl Election for Sup {
    fn leadership(&self) -> Leadership {
        match self.progress {
            _ if !self.core.running => Leadership::unknown(Mode::Announced, Why::NotRunning),
            Progress::Waiting { since } => {
                Leadership::unknown(Mode::Announced, Why::Standing { since })
            }
            Progress::Sent { at } => answer(self.core.me.id, Why::Unchallenged { since: at }),
            Progress::Suppressed { by, at } => answer(by, Why::Announced { heard: at }),
        }
    }
}

/// How often AL speaks, and how long it remembers.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct AlConfig {
    announce: Duration,
    listen: Option<Duration>,
}

impl AlConfig {
    /// Everybody announces every `announce`; one silent for `listen` is forgotten, or never if that
    /// is `None`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the announce period is zero or the listen timeout shorter than it.
    pub const fn new(announce: Duration, listen: Option<Duration>) -> Result<Self, ConfigError> {
        match config::check_periods(announce, listen) {
            Ok(()) => Ok(Self { announce, listen }),
            Err(error) => Err(error),
        }
    }

    /// `T_A`: how often everybody announces.
    pub const fn announce(&self) -> Duration {
        self.announce
    }

    /// `T_L`: how long a silent node is remembered.
    pub const fn listen(&self) -> Option<Duration> {
        self.listen
    }
}

/// AL: everybody announces for ever, and the largest identity heard leads.
#[derive(Clone, Debug, PartialEq)]
pub struct Al {
    core: Core,
    config: AlConfig,
    started: Time,
    /// Sorted by sender, with when it was last heard. As large as the group, by design.
    table: Vec<(NodeId, Time)>,
}

impl Al {
    /// A node that has not started yet.
    pub fn new(me: Peer, config: AlConfig) -> Self {
        Self { core: Core::new(me), config, started: Time::ZERO, table: Vec::new() }
    }

    /// Who has been heard of late, ascending, without ourselves.
    pub fn heard(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.table.iter().map(|entry| entry.0)
    }

    fn on_start(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.started = now;
        self.announce(now, out);
    }

    fn on_message(&mut self, now: Time, from: NodeId) {
        match self.table.binary_search_by_key(&from, |entry| entry.0) {
            Ok(at) => self.table[at].1 = now,
            Err(_) if self.table.len() >= CAPACITY => return,
            Err(at) => self.table.insert(at, (from, now)),
        }
        // Lazily: the entry this was armed for may have been heard again, and is then looked at in
        // vain once. Searching for the earliest on every message would cost the table each time.
        if let Some(listen) = self.config.listen
            && self.core.timers.deadline(Timer::Listen).is_none()
        {
            self.core.timers.set(Timer::Listen, now + listen);
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match (timer, self.config.listen) {
            (Timer::Announce, _) => self.announce(now, out),
            (Timer::Listen, Some(listen)) => {
                self.table.retain(|entry| entry.1 + listen > now);
                if let Some(first) = self.table.iter().map(|entry| entry.1).min() {
                    self.core.timers.set(Timer::Listen, first + listen);
                }
            }
            (Timer::Listen, None) | (Timer::Suppress, _) => unreachable!("AL arms neither"),
        }
    }

    fn announce(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        out.multicast(self.core.next());
        self.core.timers.set(Timer::Announce, now + self.config.announce);
    }
}

machine!(Al);

impl Election for Al {
    fn leadership(&self) -> Leadership {
        match self.table.last() {
            _ if !self.core.running => Leadership::unknown(Mode::Announced, Why::NotRunning),
            Some(&(best, heard)) if best > self.core.me.id => {
                answer(best, Why::Announced { heard })
            }
            Some(_) | None => answer(self.core.me.id, Why::Unchallenged { since: self.started }),
        }
    }
}

/// What an announcer of [`SupAl`] does when it hears another.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Composition {
    /// Follows it: all may follow one another in a ring, or two each other.
    Defer,
    /// Goes on: as many leaders as SUP has senders.
    Persist,
}

/// The waits of both halves.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct SupAlConfig {
    announce: Duration,
    listen: Option<Duration>,
    suppression: Suppression,
    composition: Composition,
}

impl SupAlConfig {
    /// The senders of a round of SUP announce every `announce`; who hears none for `listen` starts
    /// over, or never if that is `None`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for the reasons of [`AlConfig::new`] and [`SupConfig::new`].
    pub const fn new(
        announce: Duration,
        listen: Option<Duration>,
        suppression: Suppression,
        composition: Composition,
    ) -> Result<Self, ConfigError> {
        if let Err(error) = config::check_periods(announce, listen) {
            return Err(error);
        }
        match suppression.check() {
            Ok(suppression) => Ok(Self { announce, listen, suppression, composition }),
            Err(error) => Err(error),
        }
    }

    /// `T_A`: how often a sender announces.
    pub const fn announce(&self) -> Duration {
        self.announce
    }

    /// `T_L`: how long a silent sender is followed.
    pub const fn listen(&self) -> Option<Duration> {
        self.listen
    }

    /// `d(T_S)`: how long to wait before speaking.
    pub const fn suppression(&self) -> Suppression {
        self.suppression
    }

    /// What an announcer does when it hears another.
    pub const fn composition(&self) -> Composition {
        self.composition
    }
}

/// SUP, whose senders then announce as in AL: the composition that does not elect.
#[derive(Clone, Debug, PartialEq)]
pub struct SupAl {
    core: Core,
    config: SupAlConfig,
    rng: Rng,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Waiting { since: Time },
    Announcing { since: Time },
    Following { leader: NodeId, heard: Time },
}

impl SupAl {
    /// A node that has not started yet.
    pub fn new(me: Peer, config: SupAlConfig, seed: Seed) -> Self {
        let stage = Stage::Waiting { since: Time::ZERO };
        Self { core: Core::new(me), config, rng: seed.rng(), stage }
    }

    /// Whether the node announces now.
    pub fn announces(&self) -> bool {
        self.core.running && matches!(self.stage, Stage::Announcing { .. })
    }

    fn on_start(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.stage = Stage::Waiting { since: now };
        let wait = self.config.suppression.draw(0.0, &mut self.rng);
        if wait.is_zero() {
            self.become_announcing(now, out);
        } else {
            self.core.timers.set(Timer::Suppress, now + wait);
        }
    }

    fn on_message(&mut self, now: Time, from: NodeId) {
        let follow = match self.stage {
            Stage::Waiting { .. } => true,
            Stage::Announcing { .. } => self.config.composition == Composition::Defer,
            Stage::Following { leader, .. } => leader == from,
        };
        if follow {
            self.stage = Stage::Following { leader: from, heard: now };
            self.core.timers.clear_all();
            if let Some(listen) = self.config.listen {
                self.core.timers.set(Timer::Listen, now + listen);
            }
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match timer {
            Timer::Announce => self.announce(now, out),
            Timer::Listen => self.on_start(now, out),
            Timer::Suppress => self.become_announcing(now, out),
        }
    }

    fn become_announcing(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.stage = Stage::Announcing { since: now };
        self.announce(now, out);
    }

    fn announce(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        out.multicast(self.core.next());
        self.core.timers.set(Timer::Announce, now + self.config.announce);
    }
}

machine!(SupAl);

impl Election for SupAl {
    fn leadership(&self) -> Leadership {
        match self.stage {
            _ if !self.core.running => Leadership::unknown(Mode::Announced, Why::NotRunning),
            Stage::Waiting { since } => {
                Leadership::unknown(Mode::Announced, Why::Standing { since })
            }
            Stage::Announcing { since } => answer(self.core.me.id, Why::Unchallenged { since }),
            Stage::Following { leader, heard } => answer(leader, Why::Announced { heard }),
        }
    }
}

/// Senders AL remembers at most; later strangers are not believed. Arbitrary, but above any group
/// one multicast segment carries.
const CAPACITY: usize = 1 << 16;
