//! Weakly consistent membership by probing and gossip: SWIM, Medley and Medley-F.
//!
//! Source: thesis of 2023, chapters 2 to 4. Rules `R1` to `R14` and `A1` to `A5`, errata `M-n`, test
//! vectors `V1` to `V15` and properties `P1` to `P11` are those of `docs/rules/medley.md`. SWIM is
//! Medley with exponent 0; Medley-F is Medley with both feedbacks. All five strategies are one machine
//! and a [`Config`].
//!
//! ```text
//! Idle     --Start------------------> Running  arm Period; Join to a contact unless members are given (R1, R13)
//! Running  --Period fires-----------> Running  Ping to a drawn target; arm Ack, ProbeEnd, Period;
//!                                              now and then Unlucky, Sync, Ping to somebody not listed;
//!                                              cautious: Ping and PingReq about suspects (R3, R4)
//! Running  --Ack fires--------------> Running  PingReq to helpers (R5)
//! Running  --ProbeEnd fires---------> Running  the target becomes suspect; cautious: or is probed again (R6, R8)
//! Running  --Ack, IndirectAck-------> Running  disarm Ack and ProbeEnd, if it answers the probe (R7)
//! Running  --Ping-------------------> Running  Ack to its sender; Unlucky, if these come too rarely (R7, A2)
//! Running  --Ack on behalf of o-----> Running  IndirectAck to o (R7)
//! Running  --PingReq----------------> Running  Ping to the target on behalf of the sender (R7)
//! Running  --Unlucky----------------> Running  its sender is pinged more often (A5, R12)
//! Running  --rumour of our death----> Running  ReportAlive in the next incarnation; cautious: also to the
//!                                              accuser (R11)
//! Running  --Suspicion fires--------> Running  the suspect is removed: Failed (R9)
//! Running  --Beat fires-------------> Running  Beat to those who watch us
//! Running  --Beat-------------------> Running  arm Silence
//! Running  --Silence fires----------> Running  Ping out of turn to whoever we watch and do not hear
//! Running  --Tomb fires-------------> Running  the oldest tombstone is forgotten, unless of a contact
//! Running  --Join-------------------> Running  JoinAck with a page of the list (R13)
//! Running  --JoinAck----------------> Running  Join for the next page; at the end disarm Join, or, if
//!                                              somebody was new, arm it to ask another (R13)
//! Running  --Join fires-------------> Running  Join to the next contact
//! Running  --Sync-------------------> Running  SyncAck with a page of the list
//! Running  --Leave------------------> Leaving  Leave to the neighbours; arm Bye (R13)
//! Leaving  --Bye fires--------------> Idle
//! Leaving  --anything else----------> Leaving  as Running, but no rumour is contradicted
//! ```
//!
//! Any message also proves that its sender lives and brings news; what news changes is the table of
//! rule R10 in `table.rs`. Members in a table are everybody but ourselves.
//!
//! Promise: whoever crashes is eventually removed everywhere, if the network stays connected and does
//! not lose everything (P2); nobody returns from the dead but by a larger life or incarnation of its
//! own (P7). No promise that nobody is removed falsely while delays are unbounded (P9).
//!
//! Departure: an update names the life it speaks of, and an accusation its accuser. The thesis has
//! neither; without the first a restarted node is dead in others' eyes until its incarnation catches
//! up, without the second nobody can tell who is broken.
//!
//! Departure: helpers keep no record of what they were asked (`relays` of the rules): the ping carries
//! the asker and its sequence number, and the answer repeats both.
//!
//! Departure: a joiner asks for the list page by page instead of getting it whole, since it may not fit
//! one datagram, and a lost page is asked for again.
//!
//! Departure: of Lifeguard's score the part for missed negative acks is absent, since helpers send none;
//! telling a suspect what it is accused of is always on (M-26).
//!
//! Departure: *cautious* (the hardened default), a node accuses only when a live target would hardly have
//! stayed silent so often, given what it has learnt of losses; holds few accusations at once; asks suspects
//! again before it removes them; and remembers who answers only through whom. As published, one lost
//! probe is an accusation, and in large lossy networks accusations outrun denials.
//!
//! Departure: hardened, suspicion lasts longer in groups above 49, by the logarithm of their size, as the
//! chapter's own timeout would (2 T ln 50); denials need that time to spread.
//!
//! Departure: a member on whom much depends may be *watched* (`watch.rs`).
//!
//! Departure: an incarnation has 32 bits, so M-28's limit on jumps is 2^16 within a life.
//!
//! Departure: a live node refutes `Left` of its own life as it refutes `Failed` (R10 ignores it), or it
//! could not come back within that life after all (R13).
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Effect, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     membership::medley::{Body, Config, Contact, Form, Medley, Phase, State, Strategy},
//! };
//!
//! let config = Config::new(Strategy::Swim, Form::Hardened).with_phase(Phase::Sync);
//! let [me, other] = [1, 2].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
//! let contact = Contact { id: other.id, distance: 4.0, neighbour: true, member: true };
//! let mut node = Medley::new(me, config, Seed::new(1), None, vec![contact]);
//! let mut out = Outbox::new();
//!
//! node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! node.handle(Time::ZERO, Input::Timeout, &mut out).unwrap();
//! let Some(Effect::Send { to, message }) = out.pop() else { panic!("it must ping") };
//! assert_eq!((to, message.body), (other.id, Body::Ping { on_behalf: None }));
//!
//! // Nobody answers, and there is no one to ask for help: after a few tries that is proof enough.
//! let mut end = Time::ZERO;
//! for _ in 0..2 {
//!     assert_eq!(node.state_of(other.id), Some(State::Alive));
//!     end = end + config.period();
//!     node.handle(end, Input::Timeout, &mut out).unwrap();
//! }
//! assert_eq!(node.state_of(other.id), Some(State::Suspect));
//! node.handle(end + config.suspicion(), Input::Timeout, &mut out).unwrap();
//! assert_eq!((node.state_of(other.id), node.len()), (Some(State::Failed), 0));
//! ```

use alloc::vec::Vec;
use core::{
    convert::Infallible,
    hash::{Hash, Hasher},
    mem,
};

use self::{
    addresses::Directory,
    cases::Cases,
    join::{Joining, Question, Syncing},
    probe::{Doubted, Probe},
    reach::Relays,
    table::{FIRST, Table},
    targets::Targets,
    watch::Watch,
};
pub use self::{
    addresses::{Addresses, Details, DetailsTooLong, Introduction, MAX_DETAILS, MOST_ADDRESSES},
    config::{
        Attention, Carriers, Config, ConfigError, Form, Phase, Piggyback, Selection, Strategy,
    },
    message::{Body, Message, Status, Update},
    news::Accusers,
    reach::Reach,
    table::State,
};
use crate::{
    hash::Real,
    id::{Boot, Incarnation, NodeId, Peer},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    mechanism::{
        doubt::Doubt,
        gossip::Gossip,
        health::LocalHealth,
        pinged::Pinged,
        timers::{Timers, timer_kinds},
    },
    rng::{Rng, Seed},
    time::{Duration, Time},
};

mod addresses;
mod cases;
mod config;
mod ids;
mod join;
mod message;
mod news;
mod probe;
mod reach;
mod table;
mod targets;
#[cfg(test)]
mod tests;
mod watch;

/// An entry of the address book a node starts with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact {
    /// Who. Ourselves are skipped.
    pub id: NodeId,
    /// How far away, in metres or hops; `NaN` if unknown.
    pub distance: f32,
    /// Whether it is in radio range. Neighbours are the first to be asked for the list.
    pub neighbour: bool,
    /// Whether it is a member from the start. If nobody is, the node asks its contacts.
    pub member: bool,
}

/// What the network below says about a node.
#[derive(Clone, Debug, PartialEq)]
pub enum ContactChange {
    /// It is this far away.
    Near {
        /// The node that is meant.
        id: NodeId,
        /// How far away it is.
        distance: f32,
        /// Whether it is in radio range.
        neighbour: bool,
    },
    /// There is no way to it. This accuses nobody: probes do that.
    Gone {
        /// The node that is meant.
        id: NodeId,
    },
    /// It was found, by whatever means, and is to be asked for its list unless it is listed: how a host joins, and
    /// how groups that formed apart meet.
    Found {
        /// The node that is meant.
        id: NodeId,
    },
    /// These are to notice at once if we fail: they are told often that we live. Without effect unless the
    /// configuration says [how often](Config::with_beat).
    Watchers(Vec<NodeId>),
    /// It is to be pinged at once, listed or not, whatever comes of it: somebody wants to know who hears us.
    Asked {
        /// The node that is meant.
        id: NodeId,
    },
    /// We are heard again, or hear again: what became of our own probes meanwhile says nothing of how we are doing.
    Restored,
    /// This is what we ourselves have to say from now on.
    Ours {
        /// Where we can be reached.
        addresses: Addresses,
        /// And what else.
        details: Details,
    },
}

impl Hash for ContactChange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Near { id, distance, neighbour } => {
                (id, Real(f64::from(*distance)), neighbour).hash(state);
            }
            Self::Gone { id } | Self::Found { id } | Self::Asked { id } => id.hash(state),
            Self::Watchers(watchers) => watchers.hash(state),
            Self::Restored => {}
            Self::Ours { addresses, details } => (addresses, details).hash(state),
        }
    }
}

/// What the application should be told of the members.
///
/// ```
/// use bellwether_proto::{NodeId, node::MembershipEvent};
///
/// let event = MembershipEvent::Suspected { id: NodeId::new(3), by: NodeId::new(1) };
/// assert_eq!(event.id(), NodeId::new(3));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum MembershipEvent {
    /// A node is a member now.
    Joined(NodeId),
    /// A member is accused.
    Suspected {
        /// The member that is accused.
        id: NodeId,
        /// The member that accuses it.
        by: NodeId,
    },
    /// An accused member has contradicted.
    Refuted(NodeId),
    /// A member was removed because it did not.
    Failed {
        /// The member that was removed.
        id: NodeId,
        /// Those known to have accused it.
        accusers: Accusers,
    },
    /// A member has said goodbye.
    Left(NodeId),
    /// A member says something new of itself.
    Introduced(NodeId),
}

impl MembershipEvent {
    /// The member that it is about.
    pub const fn id(self) -> NodeId {
        let (Self::Joined(id)
        | Self::Suspected { id, .. }
        | Self::Refuted(id)
        | Self::Failed { id, .. }
        | Self::Left(id)
        | Self::Introduced(id)) = self;
        id
    }
}

/// A member as elections see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemberView {
    /// The member's identity.
    pub id: NodeId,
    /// In which life.
    pub boot: Boot,
    /// [`State::Alive`] or [`State::Suspect`].
    pub state: State,
    /// The incarnation it is in.
    pub incarnation: Incarnation,
    /// How often it was suspected: its *unhealthiness*. Hardened, half is forgotten every 300 s.
    pub suspicions: u32,
    /// How far away; `NaN` if unknown.
    pub distance: f32,
    /// Whether it answers us itself.
    pub reach: Reach,
}

/// What must survive a restart within one life. A host that starts every life with a larger boot number
/// may lose it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Durable {
    /// Which life wrote it.
    pub boot: Boot,
    /// Its last incarnation.
    pub incarnation: Incarnation,
}

/// The deadlines this machine keeps; declaration order breaks ties at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When to ask helpers (`ACK_TIMEOUT`).
    Ack,
    /// When to suspect the target. Before Period, which begins the next probe.
    ProbeEnd,
    /// When to remove the suspect whose time is up first (`SUSPECT`).
    Suspicion,
    /// When to forget the oldest tombstone.
    Tomb,
    /// When to ask the next contact for the list (`JOIN_RETRY`).
    Join,
    /// When goodbye has been said long enough.
    Bye,
    /// When to ping the next target.
    Period,
    /// When to tell those who watch us that we live.
    Beat,
    /// When somebody we watch has been silent for too long.
    Silence,
}

timer_kinds!(Timer: Ack, ProbeEnd, Suspicion, Tomb, Join, Bye, Period, Beat, Silence);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    /// Not started yet, or done.
    Idle {
        started: bool,
    },
    Running,
    Leaving,
}

/// One member of the group.
#[derive(Clone, Debug, PartialEq)]
pub struct Medley {
    me: Peer,
    config: Config,
    rng: Rng,
    timers: Timers<Timer, 9>,
    role: Role,
    incarnation: Incarnation,
    /// Of the last probe.
    sequence: u64,
    probe: Option<Probe>,
    joining: Option<Joining>,
    syncing: Syncing,
    table: Table,
    targets: Targets,
    gossip: Gossip<Update>,
    cases: Cases,
    pinged: Pinged,
    health: LocalHealth,
    doubt: Doubt,
    /// The target whose silence does not prove enough yet.
    doubted: Option<Doubted>,
    relays: Relays,
    directory: Directory,
    watch: Watch,
    /// How many accusations of our own may be open at once.
    credit: u8,
    /// When suspicions were halved last.
    faded: Time,
}

impl Medley {
    /// A node that has not started yet, with the address book it starts with. `durable` is what its
    /// past life persisted last.
    pub fn new(
        me: Peer,
        config: Config,
        seed: Seed,
        durable: Option<Durable>,
        contacts: Vec<Contact>,
    ) -> Self {
        let me = Peer::new(me.id, me.boot.max(FIRST));
        let past = durable.filter(|durable| durable.boot == me.boot);
        let capacity = match config.piggyback {
            Piggyback::Bounded { .. } => GOSSIP,
            Piggyback::WholeTable { .. } => WHOLE_TABLE,
        };
        Self {
            me,
            config,
            rng: seed.rng(),
            timers: Timers::new(),
            role: Role::Idle { started: false },
            incarnation: past.map_or(Incarnation::default(), |past| past.incarnation.next()),
            sequence: 0,
            probe: None,
            joining: None,
            syncing: Syncing::default(),
            table: Table::new(me.id, contacts),
            targets: Targets::new(),
            gossip: Gossip::new(capacity),
            cases: Cases::default(),
            pinged: Pinged::new(Time::ZERO),
            health: LocalHealth::default(),
            doubt: Doubt::new(f64::NAN),
            doubted: None,
            relays: Relays::default(),
            directory: Directory::default(),
            watch: Watch::default(),
            credit: CREDIT,
            faded: Time::ZERO,
        }
    }

    /// The same, to be reached at these addresses, with this to say. Simulated nodes need neither.
    pub fn with_introduction(mut self, addresses: Addresses, details: Details) -> Self {
        self.directory.set_own(addresses, details);
        self
    }

    /// The same, having heard these introduce themselves before.
    pub fn knowing(mut self, introductions: impl IntoIterator<Item = Introduction>) -> Self {
        for introduction in introductions {
            self.directory.learn(&introduction);
        }
        self
    }

    /// Where a node can be reached and what else it says of itself, as far as we were told. Ourselves
    /// included.
    pub fn introduction_of(&self, id: NodeId) -> Option<Introduction> {
        self.introduction(id)
    }

    /// What it was built with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Our own incarnation.
    pub const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Every member but ourselves, suspects included, by identity.
    pub fn members(&self) -> impl Iterator<Item = MemberView> + '_ {
        (0..self.table.positions()).filter_map(|at| self.view(at))
    }

    /// The member of this identity, if it is listed.
    pub fn member(&self, id: NodeId) -> Option<MemberView> {
        self.table.position(id).and_then(|at| self.view(at))
    }

    fn view(&self, at: usize) -> Option<MemberView> {
        let state = self.table.state(at).filter(|state| state.is_listed())?;
        let (boot, incarnation) = self.table.life(at);
        Some(MemberView {
            id: self.table.id(at),
            boot,
            state,
            incarnation,
            suspicions: self.table.suspicions(at),
            distance: self.table.distance(at),
            reach: self.relays.reach(self.table.id(at)),
        })
    }

    /// How many members there are besides ourselves.
    pub fn len(&self) -> usize {
        self.table.listed()
    }

    /// Whether we know of nobody else.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is recorded of a node; `None` if nothing is. Ourselves are alive.
    pub fn state_of(&self, id: NodeId) -> Option<State> {
        if id == self.me.id {
            return Some(State::Alive);
        }
        self.table.position(id).and_then(|at| self.table.state(at))
    }

    /// What is recorded of another node and of which life and incarnation, tombstones included.
    #[inline]
    pub fn record_of(&self, id: NodeId) -> Option<(State, Boot, Incarnation)> {
        let at = self.table.position(id)?;
        let (boot, incarnation) = self.table.life(at);
        self.table.state(at).map(|state| (state, boot, incarnation))
    }

    /// As long as this number stays the same, so does what is [recorded](Self::record_of) of everybody. For those who
    /// keep a copy.
    #[inline]
    pub fn records_changed(&self) -> u32 {
        self.table.changes()
    }

    /// P3: after at most so many periods the member `id` gets the ping whose failure convicts it, if the list
    /// stays as it is and no message is lost. `None` if there is no such bound: without a bag, or where
    /// feedback or ill health change the order.
    pub fn periods_until_convicted(&self, id: NodeId) -> Option<u64> {
        let Config { selection, active, passive, local_health, .. } = self.config;
        let steady = active.is_none() && passive.is_none() && !local_health;
        let at = self.table.position(id).filter(|&at| self.table.is_listed(at))?;
        (steady && selection == Selection::Bag).then(|| {
            self.targets.draws_until(&self.table, &self.config, at) + self.probes_again(at)
        })
    }

    /// Whether the list is still being fetched.
    pub fn is_joining(&self) -> bool {
        self.joining.is_some()
    }
}

impl Medley {
    /// R1.
    fn on_start(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if self.role != (Role::Idle { started: false }) {
            return Err(Rejected::StartedTwice);
        }
        self.role = Role::Running;
        self.table.touch_all(now);
        self.pinged = Pinged::new(now);
        self.faded = now;
        self.doubt = Doubt::new(f64::from(self.table.farthest_neighbour()));
        let first = match self.config.phase {
            Phase::Sync => {
                let period = self.config.period.as_micros();
                Time::from_micros(now.as_micros().div_ceil(period).saturating_mul(period))
            }
            Phase::Random => {
                now + Duration::from_micros(self.rng.below(self.config.period.as_micros()))
            }
        };
        self.timers.set(Timer::Period, first);
        if self.table.listed() == 0 {
            self.join(now, out);
        }
        Ok(())
    }

    fn on_message(
        &mut self,
        now: Time,
        from: Peer,
        via: NodeId,
        message: &Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if matches!(self.role, Role::Idle { .. }) {
            return Err(Rejected::NotRunning);
        }
        if from.id == self.me.id {
            return Err(Rejected::Loopback { from });
        }
        let known = self.table.position(from.id).map(|at| self.table.life(at).0);
        if known.is_some_and(|boot| boot > from.boot.max(FIRST)) {
            return Err(Rejected::Replayed { from, sequence: message.sequence });
        }
        if !self.is_expected(from.id, message) {
            return Err(Rejected::Unsolicited { from });
        }
        // R2 (a) to (c). The sender last: what it passes on about itself is not newer than itself.
        for id in [from.id, via] {
            if let Some(at) = self.table.position(id) {
                self.table.touch(now, at);
            }
        }
        for updates in message.updates.chunks(u64::BITS as usize) {
            self.learn_new(now, updates, out);
        }
        let status = match message.body {
            Body::Join { .. } => Status::Join,
            Body::Leave => Status::Left,
            _ => Status::Alive,
        };
        self.learn(now, &Update { subject: from, incarnation: message.incarnation, status }, out);
        for introduction in &message.introductions {
            // Of those nobody has told us anything about we keep no addresses either.
            let id = introduction.subject.id;
            if self.table.position(id).is_some() && self.directory.learn(introduction) {
                out.emit(MembershipEvent::Introduced(id));
            }
        }
        self.note_stranger(from.id);
        if self.config.caution {
            self.dispel(from.id);
            self.relays.heard(from.id);
        }
        self.on_body(now, from, message, out);
        Ok(())
    }

    fn on_body(&mut self, now: Time, from: Peer, message: &Message, out: &mut OutboxOf<Self>) {
        match message.body {
            Body::Ping { on_behalf } => self.on_ping(now, from, message.sequence, on_behalf, out),
            Body::Ack { on_behalf } => self.on_ack(now, from, message, on_behalf, out),
            Body::PingReq { target } => self.on_ping_req(now, from, message.sequence, target, out),
            Body::IndirectAck { target, incarnation } => {
                let answer = (message.sequence, target, incarnation);
                self.on_indirect_ack(now, from.id, answer, out);
            }
            Body::Join { after } => {
                self.on_question(from, message.sequence, Question::Join { after }, out);
            }
            Body::JoinAck { next } => self.on_join_ack(now, next, out),
            Body::Sync { after } => {
                self.on_question(from, message.sequence, Question::Sync { after }, out);
            }
            Body::SyncAck { next } => self.on_sync_ack(next),
            Body::Unlucky => self.on_unlucky(now, from),
            Body::Beat { every } => self.on_beat(now, from.id, every),
            // All there is to them has been learnt from the sender's incarnation.
            Body::Leave | Body::ReportAlive => {}
        }
    }

    /// R12 for distances.
    fn on_contact(&mut self, now: Time, change: ContactChange, out: &mut OutboxOf<Self>) {
        let gone = matches!(change, ContactChange::Gone { .. });
        let (id, distance, neighbour) = match change {
            ContactChange::Near { id, distance, neighbour } => (id, distance, neighbour),
            ContactChange::Gone { id } => (id, f32::NAN, false),
            ContactChange::Found { id } => return self.on_found(now, id, out),
            ContactChange::Asked { id } => {
                if id != self.me.id && self.role == Role::Running {
                    self.sequence += 1;
                    self.send(now, id, self.sequence, Body::Ping { on_behalf: None }, out);
                }
                return;
            }
            ContactChange::Watchers(watchers) => return self.set_watchers(now, watchers, out),
            ContactChange::Restored => {
                self.health = LocalHealth::default();
                return;
            }
            ContactChange::Ours { addresses, details } => {
                if self.directory.set_own(addresses, details) && self.role == Role::Running {
                    self.report_alive(now, self.incarnation.next(), out);
                }
                return;
            }
        };
        if id == self.me.id {
            return;
        }
        let known = self.table.position(id);
        if known.is_none() && gone {
            return;
        }
        if let Some(at) = known.or_else(|| self.admit(id)) {
            self.table.set_near(at, distance, neighbour);
            self.targets.moved(&self.table, &self.config, at);
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer, out: &mut OutboxOf<Self>) {
        match timer {
            Timer::Ack => self.on_no_ack(now, out),
            Timer::ProbeEnd => self.on_probe_end(now, out),
            Timer::Suspicion => self.on_suspicion(now, out),
            Timer::Tomb => self.on_tomb(now),
            Timer::Join => self.on_join_timer(now, out),
            Timer::Bye => self.become_idle(),
            Timer::Period => self.on_period(now, out),
            Timer::Beat => self.on_beat_timer(now, out),
            Timer::Silence => self.on_silence(now, out),
        }
    }

    /// R13.
    fn on_leave(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        match self.role {
            Role::Idle { .. } => self.become_idle(),
            Role::Running => self.become_leaving(now, out),
            Role::Leaving => {}
        }
    }

    fn become_leaving(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.role = Role::Leaving;
        self.joining = None;
        self.timers.clear(Timer::Join);
        self.timers.set(Timer::Bye, now + self.config.period * GOODBYE_PERIODS);
        let status = Status::Left;
        let goodbye = Update { subject: self.me, incarnation: self.incarnation, status };
        self.gossip.put(now, self.me.id, goodbye);
        self.broadcast(now, Body::Leave, out);
    }

    fn become_idle(&mut self) {
        self.role = Role::Idle { started: true };
        self.probe = None;
        self.timers.clear_all();
    }
}

impl Machine for Medley {
    type Message = Message;
    type Timer = Timer;
    type Feed = ContactChange;
    type Command = Infallible;
    type Durable = Durable;
    type Event = MembershipEvent;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => self.on_start(now, out),
            Input::Message { from, via, message } => self.on_message(now, from, via, message, out),
            Input::Timeout => {
                while let Some(timer) = self.timers.take_due(now) {
                    self.on_timer(now, timer, out);
                }
                Ok(())
            }
            Input::Feed(change) => {
                self.on_contact(now, change, out);
                Ok(())
            }
            Input::Command(never) => match never {},
            Input::Leave => {
                self.on_leave(now, out);
                Ok(())
            }
        }
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        self.timers.next()
    }
}

/// Subjects there can be news about at once: some twelve kilobytes at most. Arbitrary.
const GOSSIP: usize = 256;
/// The same in the reference code.
const WHOLE_TABLE: usize = 128;
/// Accusations of our own open at once: at the chapter's timing as many as fit into the time of suspicion.
const CREDIT: u8 = 8;
/// How long goodbye is said (R13).
const GOODBYE_PERIODS: u64 = 3;
