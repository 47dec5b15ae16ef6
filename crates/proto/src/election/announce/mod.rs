//! Leader election by announce and listen over multicast: LE-A, LE-S and their hardened form.
//!
//! Source: thesis chapter 5, §5.1, Program 5.1 (LE-A) and Program 5.2 (LE-S); rule numbers `H-n` and
//! errata `A-n` are those of `docs/protocols/`. `T_A`, `T_L`, `T_S` are the chapter's timers. LE-A is
//! LE-S that never waits ([`Suppression::None`]).
//!
//! ```text
//! Idle        --Start-----------------> Suppressing  arm Suppress (wait of zero: Leading)
//! Suppressing --Suppress fires--------> Leading      mint, announce, arm Announce
//! Suppressing --better announcement---> Following    arm Listen
//! Leading     --Announce fires--------> Leading      announce, arm Announce
//! Leading     --better announcement---> Following    arm Listen
//! Following   --leader's or better one> Following    adopt it, re-arm Listen
//! Following   --Listen fires----------> Suppressing  as Start
//! any         --Leave-----------------> Idle
//!
//! Hardened rules only:
//! Leading     --worse one, epoch >= own> Leading     mint, announce; once per T_R, else arm Answer
//! Leading     --Hint, need > own------> Leading      likewise
//! Leading     --Answer fires----------> Leading      mint, announce, re-arm Announce
//! Following   --epoch behind----------> Following    answer withheld; arm Hint
//! Following   --Hint, need >= ours----> Following    disarm Hint: somebody else has asked
//! Following   --Hint fires------------> Following    ask the leader for a larger epoch
//! any         --own id, newer boot----> Idle         tell the application, say no more
//! ```
//!
//! Promise: once the segment is quiet, everyone on it follows the live node of highest rank, and in
//! the hardened form under a token that no observer saw go back. Nothing is promised while the
//! segment is split or loses `T_L/T_A` announcements in a row: two leaders are then normal, and only
//! their tokens tell them apart (A-31).
//!
//! Departure: ties on the address are broken by boot number in the hardened form (A-22), and the
//! twin that hears a newer life of itself stops, since H-2 makes everyone else ignore it anyway.
//!
//! Departure: H-3 bounds a jump of the epoch by `J` above the largest seen. A node that has seen none
//! takes the first it hears, or no newcomer could ever join a group older than `J` elections. A
//! forged first announcement can therefore mislead it; keeping forgers out is the envelope's task.
//!
//! Departure: H-9 speaks of followers. A leader whose counter is exhausted at `u64::MAX` cannot mint
//! a token newer than the last one it vouched for, and so withholds its own leadership too.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Duration, Effect, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     election::announce::{Announce, Config, Message, Rules, Suppression},
//! };
//!
//! let second = Duration::from_secs(1);
//! let config = Config::new(second, Some(second * 3), Suppression::None, Rules::Hardened).unwrap();
//! let [small, large] = [3, 8].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
//! let mut node = Announce::new(small, config, Seed::new(1), None);
//! let mut out = Outbox::new();
//!
//! node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! assert_eq!(node.leadership().leader, Some(small.id), "nobody better has spoken yet");
//! assert!(matches!(out.pop(), Some(Effect::Persist(_))), "the epoch, before anyone hears of it");
//! assert!(matches!(out.pop(), Some(Effect::Multicast(Message::Announce { epoch: 1, .. }))));
//!
//! let message = Message::Announce { sequence: 1, epoch: 2 };
//! let input = Input::Message { from: large, via: large.id, message: &message };
//! node.handle(Time::from_micros(100_000), input, &mut out).unwrap();
//! assert_eq!(node.leadership().leader, Some(large.id));
//! assert_eq!(node.leadership().epoch.unwrap().to_string(), "2.8.1.0");
//! ```

use core::convert::Infallible;

pub use self::config::{Config, ConfigError, Rules, Suppression};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    mechanism::{
        replay::ReplayGuard,
        timers::{TimerKind, Timers},
    },
    rng::{Rng, Seed},
    time::{Duration, Time},
    wire::{DecodeError, Reader, Sink, Wire},
};

mod config;
#[cfg(test)]
mod tests;

/// What nodes say to each other. The envelope names the sender, and with it the rank.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// I lead.
    Announce {
        /// Counts the sender's messages within its boot.
        sequence: u64,
        /// The counter of the sender's token; zero and ignored in the base forms.
        epoch: u64,
    },
    /// To whoever leads: your token is older than one I have seen.
    Hint {
        /// Counts the sender's messages within its boot.
        sequence: u64,
        /// The counter the sender would believe.
        need: u64,
    },
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        let (kind, sequence, counter) = match *self {
            Self::Announce { sequence, epoch } => (0, sequence, epoch),
            Self::Hint { sequence, need } => (1, sequence, need),
        };
        sink.u8(kind);
        sink.varint(sequence);
        sink.varint(counter);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = reader.kind("announce message", 2)?;
        let sequence = reader.varint("sequence")?;
        Ok(if kind == 0 {
            Self::Announce { sequence, epoch: reader.varint("epoch")? }
        } else {
            Self::Hint { sequence, need: reader.varint("need")? }
        })
    }
}

/// What must survive a restart (H-12). The boot number must too, but belongs to the host.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Durable {
    /// No counter larger than this was minted or vouched for.
    pub max_epoch: u64,
    /// The token last exposed: the counter alone would let a restarted observer step back from one
    /// minter's token to another's of the same counter.
    pub vouched: Option<Epoch>,
}

/// What the application should be told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// Another node was started under our identity after us. This one has stopped.
    DuplicateIdentity {
        /// The newer life.
        other: Peer,
    },
}

/// The deadlines this machine keeps; declaration order breaks ties at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When to repeat our announcement (`T_A`). Armed only while leading.
    Announce,
    /// When to stop believing a silent leader (`T_L`). Armed only while following.
    Listen,
    /// When to claim leadership if nobody better has spoken (`T_S`). Armed only while suppressing.
    Suppress,
    /// When to answer a challenge that came within `T_R` of the last answer. Armed only while
    /// leading.
    Answer,
    /// When to ask the leader for a larger epoch if nobody else has. Armed only while following.
    Hint,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] =
        &[Self::Announce, Self::Listen, Self::Suppress, Self::Answer, Self::Hint];

    fn index(self) -> usize {
        self as usize
    }
}

/// What a node is doing. The chapter's `leader == me` is both suppressing and leading; an application
/// may act only in the second (A-24, H-14).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Not started, left, or retired in favour of a newer life.
    Idle,
    /// Believes itself leader, in silence.
    Suppressing {
        /// When the wait began.
        since: Time,
    },
    /// Announces.
    Leading {
        /// When leadership was claimed.
        since: Time,
        /// The counter of the current token; zero in the base forms.
        epoch: u64,
    },
    /// Listens to somebody better.
    Following {
        /// Whom.
        leader: Peer,
        /// When it was last heard.
        heard: Time,
        /// The counter it last announced.
        epoch: u64,
    },
}

/// One node of an announce-listen election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Announce {
    me: Peer,
    config: Config,
    rng: Rng,
    timers: Timers<Timer, 5>,
    role: Role,
    started: bool,
    /// Of the last message sent, of either kind.
    sequence: u64,
    replay: ReplayGuard,
    /// The largest counter minted or accepted.
    max_epoch: u64,
    /// Whether `max_epoch` says anything about the group, not just about ourselves (H-3).
    has_baseline: bool,
    /// The token last exposed. Outlives every role, so that no answer ever goes back.
    vouched: Option<Epoch>,
    answered: Option<Time>,
    hinted: Option<Time>,
}

impl Announce {
    /// A node that has not started yet. `durable` is what its past life persisted last.
    pub fn new(me: Peer, config: Config, seed: Seed, durable: Option<Durable>) -> Self {
        Self {
            me,
            config,
            rng: seed.rng(),
            timers: Timers::new(),
            role: Role::Idle,
            started: false,
            sequence: 0,
            replay: ReplayGuard::new(),
            max_epoch: durable.map_or(0, |durable| durable.max_epoch),
            has_baseline: durable.is_some(),
            vouched: durable.and_then(|durable| durable.vouched),
            answered: None,
            hinted: None,
        }
    }

    /// What the node is doing.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whom the machine itself believes to lead, whether or not it vouches for that: itself while
    /// suppressing or leading. The chapter's variable `leader`.
    pub fn follows(&self) -> Option<NodeId> {
        self.believed().map(|peer| peer.id)
    }

    fn believed(&self) -> Option<Peer> {
        match self.role {
            Role::Idle => None,
            Role::Suppressing { .. } | Role::Leading { .. } => Some(self.me),
            Role::Following { leader, .. } => Some(leader),
        }
    }

    fn hardened(&self) -> bool {
        self.config.rules() == Rules::Hardened
    }

    /// The one place that says who is better; larger wins. Epochs are no part of it, or a false
    /// suspect with a fresh epoch would depose a live leader (H-4).
    fn better(&self, a: Peer, b: Peer) -> bool {
        if self.hardened() { a > b } else { a.id > b.id }
    }

    /// Rule 2: whether to follow the sender of an announcement.
    fn yields_to(&self, from: Peer) -> bool {
        self.believed().is_some_and(|leader| match self.config.rules() {
            Rules::AsPublished => self.better(from, leader),
            // Without the test against `me`, a leader that ranks below us would hold us for ever
            // with its heartbeats (A-38).
            Rules::Corrected | Rules::Hardened => {
                self.better(from, self.me) && (self.better(from, leader) || from.id == leader.id)
            }
        })
    }
}

impl Announce {
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
        match self.config.rules() {
            Rules::AsPublished => {}
            Rules::Corrected if from.id == self.me.id => return Err(Rejected::Loopback { from }),
            Rules::Corrected => {}
            Rules::Hardened if from.id == self.me.id => return self.on_namesake(from, out),
            Rules::Hardened => self.admit(now, from, message)?,
        }
        match message {
            Message::Announce { sequence: _, epoch } => self.on_announce(now, from, epoch, out),
            Message::Hint { sequence: _, need } => self.on_hint(now, need, out),
        }
        Ok(())
    }

    /// H-1: a message under our own identity.
    fn on_namesake(&mut self, from: Peer, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if from.boot <= self.me.boot {
            return Err(Rejected::Loopback { from });
        }
        out.emit(Event::DuplicateIdentity { other: from });
        self.become_idle();
        Ok(())
    }

    /// H-2 and H-3. The replay guard comes last because it remembers what it accepts, and a refusal
    /// must leave no trace.
    fn admit(&mut self, now: Time, from: Peer, message: Message) -> Result<(), Rejected> {
        let (Message::Announce { sequence, epoch: found }
        | Message::Hint { sequence, need: found }) = message;
        let limit = self.max_epoch.saturating_add(MAX_JUMP);
        if self.has_baseline && found > limit {
            return Err(Rejected::ImplausibleEpoch { from, found, limit });
        }
        if !self.replay.accept(now, from, sequence, self.follows()) {
            return Err(Rejected::Replayed { from, sequence });
        }
        Ok(())
    }

    fn on_announce(&mut self, now: Time, from: Peer, epoch: u64, out: &mut OutboxOf<Self>) {
        if self.yields_to(from) {
            self.become_following(now, from, epoch);
        }
        if !self.hardened() {
            return;
        }
        self.max_epoch = self.max_epoch.max(epoch);
        self.has_baseline = true;
        match self.role {
            // H-6. A worse claimant with a smaller epoch is no threat to ours: it yields to the next
            // heartbeat and everyone has a newer token than its.
            Role::Leading { epoch: own, .. } if epoch >= own => self.on_challenge(now, out),
            // H-9. Not only on the leader's own announcements: any that shows a larger epoch makes
            // the leader's token stale, and with it the answer given so far.
            Role::Following { .. } => self.review(now, out),
            Role::Idle | Role::Suppressing { .. } | Role::Leading { .. } => {}
        }
    }

    fn on_hint(&mut self, now: Time, need: u64, out: &mut OutboxOf<Self>) {
        if !self.hardened() {
            return;
        }
        // Only a leader may raise its counter from a hint: were followers to, each lost announcement
        // would inflate it further (H-9).
        if let Role::Leading { epoch, .. } = self.role {
            if need > epoch {
                // One less, because the next mint adds one: `epoch := max(max_epoch + 1, need)`.
                self.max_epoch = self.max_epoch.max(need - 1);
                self.has_baseline = true;
                self.on_challenge(now, out);
            }
        } else if need >= self.need() {
            self.timers.clear(Timer::Hint);
        }
    }

    /// H-6: our token is not the largest around. At most one answer for each `T_R`, however many
    /// complain.
    fn on_challenge(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        match self.answered.map(|answered| answered + self.config.reply()) {
            Some(earliest) if now < earliest => self.timers.set(Timer::Answer, earliest),
            Some(_) | None => self.answer(now, out),
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match timer {
            Timer::Announce => self.announce(now, out),
            Timer::Listen => self.stand(now, out),
            Timer::Suppress => self.become_leading(now, out),
            Timer::Answer => self.answer(now, out),
            Timer::Hint => self.hint(now, out),
        }
    }
}

/// Transitions: the only places a role is entered.
impl Announce {
    /// Rules 1, 4 and 6: believe in ourselves, and say so after the wait.
    fn stand(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let wait = match self.config.suppression() {
            Suppression::None => Duration::ZERO,
            Suppression::Fixed(wait) => wait,
            Suppression::Uniform(longest) => self.rng.up_to(longest),
        };
        if wait.is_zero() {
            self.become_leading(now, out);
        } else {
            self.become_suppressing(now, wait);
        }
    }

    fn become_idle(&mut self) {
        self.role = Role::Idle;
        self.timers.clear_all();
    }

    fn become_suppressing(&mut self, now: Time, wait: Duration) {
        self.role = Role::Suppressing { since: now };
        self.timers.clear_all();
        self.timers.set(Timer::Suppress, now + wait);
    }

    fn become_leading(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.timers.clear_all();
        let epoch = self.mint(out);
        self.role = Role::Leading { since: now, epoch };
        self.announce(now, out);
    }

    /// Keeps a pending Hint: if the new leader is behind as well, it is still worth asking.
    fn become_following(&mut self, now: Time, leader: Peer, epoch: u64) {
        self.role = Role::Following { leader, heard: now, epoch };
        self.timers.clear(Timer::Announce);
        self.timers.clear(Timer::Suppress);
        self.timers.clear(Timer::Answer);
        if let Some(listen) = self.config.listen() {
            self.timers.set(Timer::Listen, now + listen);
        }
    }
}

impl Announce {
    fn announce(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Role::Leading { epoch, .. } = self.role else {
            unreachable!("become_following and become_suppressing disarm Announce")
        };
        let sequence = self.next_sequence();
        out.multicast(Message::Announce { sequence, epoch });
        self.timers.set(Timer::Announce, now + self.config.announce());
    }

    fn answer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let minted = self.mint(out);
        if let Role::Leading { epoch, .. } = &mut self.role {
            *epoch = minted;
        }
        self.answered = Some(now);
        self.timers.clear(Timer::Answer);
        self.announce(now, out);
    }

    fn hint(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let (sequence, need) = (self.next_sequence(), self.need());
        out.multicast(Message::Hint { sequence, need });
        self.hinted = Some(now);
    }

    /// H-5: the next counter, durable before anyone hears of it. The base forms have none.
    fn mint(&mut self, out: &mut OutboxOf<Self>) -> u64 {
        if !self.hardened() {
            return 0;
        }
        self.max_epoch = self.max_epoch.saturating_add(1);
        let token = Epoch::mint(self.max_epoch, self.me);
        if self.vouchable(token) {
            self.vouched = Some(token);
        }
        self.persist(out);
        self.max_epoch
    }

    /// H-9: vouch for the leader's latest token, or ask for a larger one. What is vouched for is made
    /// durable, so that not even a restart lets this observer go back (H-12).
    fn review(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Role::Following { leader, epoch, .. } = self.role else { return };
        let token = Epoch::mint(epoch, leader);
        if !self.vouchable(token) {
            self.ask_later(now);
            return;
        }
        self.timers.clear(Timer::Hint);
        if self.vouched != Some(token) {
            self.vouched = Some(token);
            self.persist(out);
        }
    }

    fn persist(&self, out: &mut OutboxOf<Self>) {
        out.persist(Durable { max_epoch: self.max_epoch, vouched: self.vouched });
    }

    /// A random while, so that one of many confused followers speaks for all; and not within half an
    /// announce period of our last hint, so that the leader has had a chance to answer it.
    fn ask_later(&mut self, now: Time) {
        if self.timers.deadline(Timer::Hint).is_some() {
            return;
        }
        let soon = now + self.rng.up_to(self.config.reply());
        let earliest = self.hinted.map_or(now, |hinted| hinted + self.config.announce().div(2));
        self.timers.set(Timer::Hint, soon.max(earliest));
    }

    fn vouchable(&self, token: Epoch) -> bool {
        token.counter() >= self.max_epoch
            && self.vouched.is_none_or(|last| token == last || token.counter() > last.counter())
    }

    /// The counter to ask a leader for. Nothing vouched for was ever above `max_epoch`.
    fn need(&self) -> u64 {
        self.max_epoch.saturating_add(1)
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence = self.sequence.saturating_add(1);
        self.sequence
    }

    /// Whether the application may be told that `leader` leads under this token. A leader that owes
    /// an answer goes on under its old token for up to `T_R`; a follower tells of no token that it
    /// knows to be stale.
    fn exposes(&self, leader: Peer, token: Epoch) -> bool {
        self.vouched == Some(token) && (leader == self.me || token.counter() >= self.max_epoch)
    }
}

impl Machine for Announce {
    type Message = Message;
    type Timer = Timer;
    type Feed = Infallible;
    type Command = Infallible;
    type Durable = Durable;
    type Event = Event;

    #[inline]
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
                self.become_idle();
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

impl Election for Announce {
    fn leadership(&self) -> Leadership {
        let unknown = |why| Leadership::unknown(Mode::Announced, why);
        let hardened = self.hardened();
        let (leader, counter, settled, why) = match self.role {
            Role::Idle => return unknown(Why::NotRunning),
            Role::Suppressing { since } if hardened => return unknown(Why::Standing { since }),
            Role::Suppressing { since } => (self.me, 0, false, Why::Standing { since }),
            Role::Leading { since, epoch } => {
                let owes_answer = self.timers.deadline(Timer::Answer).is_some();
                (self.me, epoch, !owes_answer, Why::Unchallenged { since })
            }
            Role::Following { leader, heard, epoch } => {
                (leader, epoch, true, Why::Announced { heard })
            }
        };
        let token = Epoch::mint(counter, leader);
        if hardened && !self.exposes(leader, token) {
            return unknown(Why::EpochBehind { leader: leader.id, need: self.need() });
        }
        let epoch = hardened.then_some(token);
        Leadership { leader: Some(leader.id), epoch, settled, ..unknown(why) }
    }
}

/// `J`: how far above the largest epoch seen an honest one may be (H-3, default of the spec).
const MAX_JUMP: u64 = 1 << 20;
