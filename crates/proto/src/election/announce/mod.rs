//! Leader election by announce and listen over multicast: LE-A, LE-S, LE-M and their hardened form.
//!
//! Source: thesis chapter 5, §5.1, Program 5.1 (LE-A) and Program 5.2 (LE-S); rule numbers, `H-n` and
//! errata `A-n` are those of `docs/rules/announce.md`. `T_A`, `T_L`, `T_S` are the chapter's timers. LE-A is
//! LE-S that never waits ([`Suppression::None`]); LE-M is LE-S in which the earliest to wake is the
//! best ([`Criterion::Wake`]). What the chapter leaves to future work is chosen in the [`Config`]:
//! goodbyes ([`Bye`]), questions ([`Entry`]), and leaders that newcomers do not disturb ([`Tenure`]).
//! More than one leader is `several`; what to compare with is `baseline`; both need the feature `research`.
//!
//! ```text
//! Idle        --Start-----------------> Suppressing  arm Suppress; wait of zero: Leading (rules 1 and 4)
//! Suppressing --Suppress fires--------> Leading      mint, announce, arm Announce (rule 7)
//! Suppressing --better announcement---> Following    arm Listen (rule 5)
//! Leading     --Announce fires--------> Leading      announce, arm Announce (rules 3 and 7)
//! Leading     --better announcement---> Following    arm Listen (rules 2 and 5)
//! Following   --leader's or better one> Following    adopt it, re-arm Listen (rules 2 and 5, A-1)
//! Following   --Listen fires----------> Suppressing  as Start (rules 3 and 6)
//! any         --Leave-----------------> Idle
//!
//! Told to, whether leading or not:
//! Leading     --Void------------------> Watching     arm Return, one T_L on; Suppressing likewise
//! Following   --Void------------------> Following    re-arm Listen, one T_L on
//! Leading     --Resign----------------> Watching     arm Return
//! any         --Observe---------------> Watching     until told otherwise; Following stays so
//! Watching    --announcement----------> Following    arm Listen
//! Following   --Listen, not to stand--> Watching
//! Watching    --Return fires----------> Suppressing  as Start, unless it observes
//! Following   --Return fires----------> Following    re-arm Return while the leader is not established (sticky)
//!
//! With a Bye:
//! Leading     --Leave-----------------> Leaving      say goodbye, arm Bye; one copy: Idle (rule 8)
//! Leaving     --Bye fires-------------> Leaving      say goodbye, arm Bye (last copy: Idle)
//! Following   --Bye of the leader-----> Suppressing  as Start (rule 9)
//!
//! With an Entry that asks:
//! Idle        --Start, Query----------> Querying     ask, arm Query (rule 10)
//! Suppressing --Suppress, first time--> Querying     likewise, for SuppressThenQuery
//! Querying    --Query fires-----------> Leading      as Suppress fires (rule 12)
//! any         --better Query----------> Following    its sender stands: as if it announced (rule 11)
//! Leading     --other Query-----------> Leading      announce with its nonce; once per T_R, else
//!                                                    arm Reply (rule 11)
//! Leading     --Reply fires-----------> Leading      announce with the last nonce
//!
//! Hardened rules only:
//! Leading     --worse one, epoch >= own> Leading     mint, announce; once per T_R, else arm Answer (H-6)
//! Leading     --Hint, need > own------> Leading      likewise (H-6)
//! Leading     --Answer fires----------> Leading      mint, announce, re-arm Announce
//! Following   --epoch behind----------> Following    answer withheld; arm Hint (H-9)
//! Following   --Hint, need >= ours----> Following    disarm Hint: somebody else has asked
//! Following   --Hint fires------------> Following    ask the leader for a larger epoch
//! Following   --leader, now worse-----> Suppressing  as Start (H-8)
//! Following   --worse, supersedes it--> Suppressing  as its Bye; Following if better than us (H-10)
//! Following   --Query fires-----------> Following    ask again: no answer yet (H-13)
//! any         --own id, newer boot----> Idle         tell the application, say no more (H-1)
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
//! forged first announcement can therefore mislead it; keeping forgers out is the seal's task.
//!
//! Departure: H-8 makes a follower stand when its leader ranks below itself. It does so only if that
//! rank has changed; a leader that ranked below it all along (A-38) is given up after `T_L`, as in
//! rule 2. In LE-M a follower has no key of its own, since none was drawn for what it does: it
//! compares with its leader only (R-M2).
//!
//! Departure: H-10 has a successor carry the signed Bye. It carries the name of the departed life, in
//! its announcements of the first `T_L`; members are believed, strangers are the seal's task.
//!
//! Departure: H-11 applies only to a leader whose period is not ours, so that in a group of equals
//! `T_L = kT_A` keeps giving exactly `k` chances. The period counts up to 64 times ours.
//!
//! Departure: H-13 holds for those that ask ([`Entry`]). One that has heard a leader but no answer
//! asks again every `T_Q`, without standing, since the answer may have been lost.
//!
//! Departure: H-9 speaks of followers. A leader whose counter is exhausted at `u64::MAX` cannot mint
//! a token newer than the last one it vouched for, and so withholds its own leadership too.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Duration, Effect, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     election::announce::{Announce, Announcement, Config, Message, Rules, Suppression},
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
//! let Some(Effect::Multicast(message)) = out.pop() else { panic!("it must announce") };
//! assert!(message.is_announcement());
//!
//! let better = Announcement { sequence: 1, epoch: 2, period: second, ..Announcement::default() };
//! let message = Message::Announce(better);
//! let input = Input::Message { from: large, via: large.id, message: &message };
//! node.handle(Time::from_micros(100_000), input, &mut out).unwrap();
//! assert_eq!(node.leadership().leader, Some(large.id));
//! assert_eq!(node.leadership().epoch.unwrap().to_string(), "2.8.1.0");
//! ```

use core::convert::Infallible;

use self::role::Rank;
pub use self::{
    config::{Bye, Config, ConfigError, Criterion, Entry, Rules, Suppression, Tenure},
    message::{Announcement, Claim, Message},
    role::{Role, Timer},
};
use crate::{
    epoch::Epoch,
    id::{NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    mechanism::{replay::ReplayGuard, timers::Timers},
    rng::{Rng, Seed},
    time::{Duration, Time},
};

#[cfg(feature = "research")]
pub mod baseline;
mod config;
mod departure;
mod epochs;
mod message;
mod query;
mod role;
#[cfg(feature = "research")]
pub mod several;
#[cfg(test)]
#[cfg(feature = "research")]
mod tests;

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

/// What the application may ask of it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Command {
    /// Nobody knows for how long we were stopped: give up leading, and stand anew.
    Void,
    /// Lead no more, and let somebody else: others notice the silence, as they would a crash, and we do not stand for
    /// three times the listen timeout. A goodbye is for the end of a life.
    Resign,
    /// Never lead, or do so again.
    Observe(bool),
}

/// One node of an announce-listen election.
#[derive(Clone, Debug, PartialEq)]
pub struct Announce {
    me: Peer,
    config: Config,
    rng: Rng,
    timers: Timers<Timer, 9>,
    role: Role,
    started: bool,
    /// Has followed or led: no longer entering.
    entered: bool,
    /// The criterion's value for the present candidacy or tenure.
    key: u64,
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
    /// What our questions carry; drawn only if we ask.
    nonce: u64,
    /// Whether a leader we follow is known to be alive now, not only in a recording (H-13).
    verified: bool,
    /// The question that waits for Reply.
    asked: Option<u64>,
    replied: Option<Time>,
    /// Whose departure we stand or lead upon (H-10).
    succeeds: Option<Peer>,
    /// Whether we were told to stand for nothing, and take anybody's word that it leads. While Return is armed we do
    /// likewise.
    observes: bool,
}

impl Announce {
    /// A node that has not started yet. `durable` is what its past life persisted last.
    pub fn new(me: Peer, config: Config, seed: Seed, durable: Option<Durable>) -> Self {
        let asks = config.rules() == Rules::Hardened && config.query().is_some();
        Self {
            me,
            config,
            rng: seed.rng(),
            timers: Timers::new(),
            role: Role::Idle,
            started: false,
            entered: false,
            key: config.criterion().key(None),
            sequence: 0,
            replay: ReplayGuard::new(),
            max_epoch: durable.map_or(0, |durable| durable.max_epoch),
            has_baseline: durable.is_some(),
            vouched: durable.and_then(|durable| durable.vouched),
            answered: None,
            hinted: None,
            nonce: 0,
            verified: !asks || durable.is_some(),
            asked: None,
            replied: None,
            succeeds: None,
            observes: false,
        }
    }

    /// What it was built with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What the node is doing.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whom the machine itself believes to lead, whether or not it vouches for that: itself while
    /// suppressing, querying or leading. The chapter's variable `leader`.
    pub fn follows(&self) -> Option<NodeId> {
        match self.role {
            Role::Watching { .. } => None,
            _ => self.believed().map(|rank| rank.peer.id),
        }
    }

    fn believed(&self) -> Option<Rank> {
        match self.role {
            Role::Idle | Role::Leaving { .. } => None,
            Role::Suppressing { .. }
            | Role::Querying { .. }
            | Role::Leading { .. }
            | Role::Watching { .. } => Some(self.rank()),
            Role::Following { leader, claim, .. } => Some(Rank { claim, peer: leader }),
        }
    }

    /// Whether we stand for nothing, until told otherwise or for a while.
    fn abstains(&self) -> bool {
        self.observes || self.timers.deadline(Timer::Return).is_some()
    }

    /// Ours. Whoever abstains is worse than everybody.
    fn rank(&self) -> Rank {
        if self.abstains() {
            return Rank { claim: Claim::default(), peer: Peer::default() };
        }
        let established = matches!(self.role, Role::Leading { established: true, .. });
        Rank { claim: Claim { established, key: self.key }, peer: self.me }
    }

    fn hardened(&self) -> bool {
        self.config.rules() == Rules::Hardened
    }

    /// The one place that says who is better; larger wins. Epochs are no part of it, or a false
    /// suspect with a fresh epoch would depose a live leader (H-4).
    fn better(&self, a: Rank, b: Rank) -> bool {
        if self.hardened() { a > b } else { (a.claim.key, a.peer.id) > (b.claim.key, b.peer.id) }
    }

    /// Rule 2: whether to follow the sender of an announcement.
    fn yields_to(&self, from: Rank) -> bool {
        self.believed().is_some_and(|leader| match self.config.rules() {
            Rules::AsPublished => self.better(from, leader),
            // Without the test against ourselves, a leader that ranks below us would hold us for
            // ever with its heartbeats (A-38).
            Rules::Corrected | Rules::Hardened => {
                self.better(from, self.rank())
                    && (self.better(from, leader) || from.peer.id == leader.peer.id)
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
        match self.config.entry() {
            _ if self.abstains() => self.become_watching(now),
            Entry::Plain => self.stand(now, out),
            Entry::Query { .. } => {
                self.nonce = self.rng.next();
                self.draw();
                self.become_querying(now, out);
            }
            Entry::SuppressThenQuery { .. } => {
                self.nonce = self.rng.next();
                self.stand(now, out);
            }
        }
        Ok(())
    }

    fn on_message(
        &mut self,
        now: Time,
        from: Peer,
        message: Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if matches!(self.role, Role::Idle | Role::Leaving { .. }) {
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
            Message::Announce(announcement) => self.on_announce(now, from, &announcement, out),
            Message::Hint { sequence: _, need } => self.on_hint(now, need, out),
            Message::Bye { sequence: _, epoch } => self.on_bye(now, from, epoch, out),
            Message::Query { sequence: _, nonce, claim } => {
                self.on_query(now, from, nonce, claim, out);
            }
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

    fn on_announce(
        &mut self,
        now: Time,
        from: Peer,
        announcement: &Announcement,
        out: &mut OutboxOf<Self>,
    ) {
        let rank = Rank { claim: announcement.claim, peer: from };
        if !self.hardened() {
            if self.yields_to(rank) {
                self.become_following(now, from, announcement);
            }
            return;
        }
        self.learn(announcement.epoch);
        let dead = self.learn_departure(now, announcement.supersedes);
        let before = self.believed();
        if self.yields_to(rank) || (dead.is_some() && self.better(rank, self.rank())) {
            self.verified |= announcement.answers == Some(self.nonce);
            self.become_following(now, from, announcement);
        } else if dead.is_some() {
            self.succeeds = dead;
            self.stand(now, out);
        } else if before.is_some_and(|leader| leader.peer.id == from.id && leader != rank) {
            // H-8: our leader is no longer what it was, and now ranks below us.
            self.stand(now, out);
        }
        self.compare(now, announcement.epoch, out);
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match timer {
            Timer::Announce => self.announce(now, None, out),
            Timer::Listen => self.stand(now, out),
            Timer::Suppress => self.claim(now, out),
            Timer::Answer => self.answer(now, out),
            Timer::Hint => self.hint(now, out),
            Timer::Query => self.on_no_answer(now, out),
            Timer::Reply => self.reply(now, out),
            Timer::Bye => self.say_bye(now, out),
            Timer::Return => self.on_return(now, out),
        }
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut OutboxOf<Self>) {
        let leads = matches!(self.role, Role::Leading { .. });
        match command {
            Command::Void => self.void(now),
            Command::Resign if leads => self.abstain_for(now, self.patience() * ABSENCE),
            Command::Resign => {}
            Command::Observe(true) if leads && self.hardened() => {
                // Whoever still hears us need not wait for our silence: our rank is below everybody's now (H-8).
                self.observes = true;
                self.announce(now, None, out);
                self.become_watching(now);
            }
            Command::Observe(true) => {
                self.observes = true;
                self.watch(now);
            }
            Command::Observe(false) => {
                // Whoever resigned or was stopped stays away as long as that takes.
                if core::mem::take(&mut self.observes) && !self.abstains() {
                    self.on_return(now, out);
                }
            }
        }
    }

    /// We were stopped, or could say nothing. A successor announces itself within `T_L`; whoever claimed before it heard
    /// it would depose it, and what was not heard meanwhile is no silence.
    fn void(&mut self, now: Time) {
        match self.role {
            Role::Leading { .. } | Role::Suppressing { .. } | Role::Querying { .. } => {
                self.abstain_for(now, self.patience());
            }
            Role::Following { .. } => {
                let anew = now + self.patience();
                if self.timers.deadline(Timer::Listen).is_some_and(|listen| listen < anew) {
                    self.timers.set(Timer::Listen, anew);
                }
            }
            Role::Watching { .. } => {
                let anew = now + self.patience();
                if self.timers.deadline(Timer::Return).is_some_and(|back| back < anew) {
                    self.timers.set(Timer::Return, anew);
                }
            }
            Role::Idle | Role::Leaving { .. } => {}
        }
    }

    /// We may stand again. Whoever has led for less than `T_L` by then has done nothing to be deposed for, and with sticky
    /// tenure need not fear us once it has.
    fn on_return(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        match self.role {
            Role::Following { claim, .. }
                if self.config.tenure() == Tenure::Sticky && !claim.established =>
            {
                self.timers.set(Timer::Return, now + self.config.announce());
            }
            Role::Watching { .. } => self.stand(now, out),
            _ => {}
        }
    }

    /// `T_L`, or what comes closest to it.
    fn patience(&self) -> Duration {
        self.config.listen().unwrap_or(self.config.announce())
    }

    fn abstain_for(&mut self, now: Time, span: Duration) {
        self.watch(now);
        self.timers.set(Timer::Return, now + span);
    }

    /// Whoever runs and follows nobody.
    fn watch(&mut self, now: Time) {
        if !matches!(self.role, Role::Following { .. } | Role::Idle | Role::Leaving { .. }) {
            self.become_watching(now);
        }
    }
}

/// Transitions: the only places a role is entered, with those in `query` and `departure`.
impl Announce {
    /// Rules 1, 4 and 6: believe in ourselves, and say so after the wait.
    fn stand(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.abstains() {
            return self.become_watching(now);
        }
        let wait = self.draw();
        if wait.is_zero() {
            self.claim(now, out);
        } else {
            self.become_suppressing(now, wait);
        }
    }

    /// A wait, and with it our key (R-M1).
    fn draw(&mut self) -> Duration {
        let criterion = self.config.criterion();
        let wait = self.config.suppression().draw(criterion.goodness(), &mut self.rng);
        self.key = criterion.key(Some(wait));
        wait
    }

    /// The wait is over: lead, or ask once more if this is how to enter.
    fn claim(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.entered && matches!(self.config.entry(), Entry::SuppressThenQuery { .. }) {
            self.become_querying(now, out);
        } else {
            self.become_leading(now, out);
        }
    }

    fn become_idle(&mut self) {
        self.role = Role::Idle;
        self.timers.clear_all();
    }

    /// Return goes on.
    fn become_watching(&mut self, now: Time) {
        let back = self.timers.deadline(Timer::Return);
        self.role = Role::Watching { since: now };
        self.succeeds = None;
        self.timers.clear_all();
        if let Some(back) = back {
            self.timers.set(Timer::Return, back);
        }
    }

    fn become_suppressing(&mut self, now: Time, wait: Duration) {
        self.role = Role::Suppressing { since: now };
        self.timers.clear_all();
        self.timers.set(Timer::Suppress, now + wait);
    }

    fn become_leading(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.entered = true;
        self.timers.clear_all();
        let epoch = self.mint(out);
        self.role = Role::Leading { since: now, epoch, established: false };
        self.announce(now, None, out);
    }

    /// Keeps a pending Hint: if the new leader is behind as well, it is still worth asking. Likewise
    /// a pending Query, as long as nobody has answered it.
    fn become_following(&mut self, now: Time, leader: Peer, heard: &Announcement) {
        self.role = Role::Following { leader, heard: now, epoch: heard.epoch, claim: heard.claim };
        self.entered = true;
        self.key = self.config.criterion().key(None);
        self.asked = None;
        self.succeeds = None;
        self.timers.clear(Timer::Announce);
        self.timers.clear(Timer::Suppress);
        self.timers.clear(Timer::Answer);
        self.timers.clear(Timer::Reply);
        if self.verified {
            self.timers.clear(Timer::Query);
        }
        if let Some(listen) = self.listen(heard.period) {
            self.timers.set(Timer::Listen, now + listen);
        }
    }

    /// H-11: how long to believe a silent leader that announces every `period`. As long as `T_L` if
    /// that is our own period or unknown.
    fn listen(&self, period: Duration) -> Option<Duration> {
        let (listen, ours) = (self.config.listen()?, self.config.announce());
        if !self.hardened() || period == ours {
            return Some(listen);
        }
        let period = u128::from(period.min(ours * MAX_STRETCH).as_micros());
        let stretched = (u128::from(listen.as_micros()) * period)
            .saturating_mul(100 + DRIFT_PERCENT)
            / (u128::from(ours.as_micros()) * 100);
        Some(listen.max(Duration::from_micros(u64::try_from(stretched).unwrap_or(u64::MAX))))
    }
}

impl Announce {
    fn announce(&mut self, now: Time, answers: Option<u64>, out: &mut OutboxOf<Self>) {
        let (hardened, listen) = (self.hardened(), self.config.listen());
        let Role::Leading { since, epoch, established } = &mut self.role else {
            unreachable!("become_following and become_suppressing disarm Announce")
        };
        let (epoch, tenure) = (*epoch, now.since(*since));
        // H-7. Decided here, so that nobody ever holds us for more than we have told.
        *established |=
            self.config.tenure() == Tenure::Sticky && listen.is_some_and(|listen| tenure >= listen);
        // H-10. Later than this everybody has given up the one before us anyway.
        let supersedes = self.succeeds.filter(|_| listen.is_none_or(|listen| tenure <= listen));
        let period = if hardened { self.config.announce() } else { Duration::ZERO };
        let (claim, sequence) = (self.rank().claim, self.next_sequence());
        out.multicast(Message::Announce(Announcement {
            sequence,
            epoch,
            claim,
            period,
            supersedes,
            answers,
        }));
        self.timers.set(Timer::Announce, now + self.config.announce());
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence = self.sequence.saturating_add(1);
        self.sequence
    }
}

impl Machine for Announce {
    type Message = Message;
    type Timer = Timer;
    type Feed = Infallible;
    type Command = Command;
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
                self.leave(now, out);
                Ok(())
            }
            Input::Command(command) => {
                self.on_command(now, command, out);
                Ok(())
            }
            Input::Feed(never) => match never {},
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
            Role::Idle | Role::Leaving { .. } => return unknown(Why::NotRunning),
            Role::Watching { since } => return unknown(Why::Electing { since }),
            Role::Suppressing { since } | Role::Querying { since } if hardened => {
                return unknown(Why::Standing { since });
            }
            Role::Suppressing { since } | Role::Querying { since } => {
                (self.me, 0, false, Why::Standing { since })
            }
            Role::Leading { since, epoch, .. } => {
                let owes_answer = self.timers.deadline(Timer::Answer).is_some();
                (self.me, epoch, !owes_answer, Why::Unchallenged { since })
            }
            Role::Following { leader, .. } if !self.verified => {
                return unknown(Why::Unanswered { leader: leader.id });
            }
            Role::Following { leader, heard, epoch, .. } => {
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

/// Who resigned stands again after so many listen timeouts: somebody else has led for two of them by then, and with
/// sticky tenure is not disturbed.
const ABSENCE: u64 = 3;
/// `ρ` in percent: how much faster than its sender's a clock may run (H-11).
const DRIFT_PERCENT: u128 = 1;
/// How many times our own period a sender's may be and still stretch our patience. Arbitrary, but
/// without a limit one announcement could make us follow a silent leader for ever.
const MAX_STRETCH: u64 = 64;
