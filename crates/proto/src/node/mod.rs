//! A node: everything that decides who leads, as one machine.
//!
//! A host makes [`Settings`], in an operator's words, a [`Plan`] of them ([`Settings::plan`]) and a [`Node`] of that. It
//! gives the node each [`Message`] that arrives, each [`Fact`] that it finds out and each [`Command`] that people give. It
//! makes [`Durable`] state durable, passes every [`Event`] on, and asks [`Node::leadership_of`] who leads. Simulator, agent
//! and model checker do just that.
//!
//! Inside lies the stack: a gossip membership, whose leaders are watched and whose lists are compared, and the eventual
//! elections on it. Beside it stand the elections of the other four modes.
//!
//! ```text
//! Message  --of a later life of ours------> stops: answers name nobody, DuplicateIdentity
//! Message  --of the membership or eventual> the stack
//! Message  --of another mode--------------> the election it names
//! Message  --for another node-------------> carried on: see `relay`
//! Timeout  --the stack first: who has failed is known before anybody is elected; then what is due
//! any      --so late after the deadline that
//!            others may have got over it--> gives up leading first: it was stopped
//! Fact     --Writing, Kept, NotKept-------> the disk's rule: see `disk`
//! Fact     --Superseded-------------------> stops
//! Command  --to the election it names
//! Leave    --hands over what it leads, then says goodbye, then has no deadline
//! ```

// | file | holds |
// |---|---|
// | `settings`, `timing` | what a node can be told to be |
// | `plan` | the table from that to configured machines |
// | `packet` | the table of packet kinds |
// | `profile` | what a node tells others of itself |
// | `founding` | leased elections: how rings come to be |
// | `voters` | learned elections: who votes |
// | `names` | central elections: what those on the map are called |
// | `relay` | leased and learned elections: words carried on for others |
// | `senses` | whether a leader hears and is heard |
// | `codec` | how settings, facts and commands are written down |
// | `announced`, `disk`, `record`, `near` | announced elections; what survives; what a node is worth; who is near |
// | `answer`, `request`, `life`, `below` | what it answers; what it is told and asked; how it starts and ends; the stack |
//
// Departure: the membership's own durable state is not kept. A host gives every life a larger boot number, so a life
// need not remember its incarnation.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec,
    vec::Vec,
};

use self::{
    announced::Announced, disk::Disk, founding::Founding, names::Names, port::Port, record::Record,
    senses::Senses, voters::Voters,
};
pub use self::{
    disk::Durable,
    packet::Message,
    plan::{Plan, SettingsError},
    profile::{About, Position, check_name},
    settings::{
        AnnouncedSettings, CentralSettings, ElectionSettings, EventualSettings, Feedback, HIGHEST,
        Keeping, LearnedSettings, LeasedSettings, ModeSettings, Neighbours, OnIsolation, PRIORITY,
        Policy, Role, Settings, Spread,
    },
    timing::{Timing, TimingProfile},
};
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub use self::{
    disk::Kept,
    packet::Carried,
    plan::{FoundingConfig, Protocol, SeatPlan, VotersConfig},
    record::KeptRecord,
    settings::{LEARNED_MARGIN, TENURE},
    timing::Watched,
    voters::KeptBallot,
};
use crate::{
    election::{
        announce::{self, Announce},
        churn_tolerant,
    },
    epoch::Epoch,
    id::{Boot, ElectionId, NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{EffectOf, Input, InputOf, Machine, Outbox, OutboxOf, Rejected},
    mechanism::paths::Paths,
    membership::medley::ContactChange,
    rng::{Rng, Seed},
    stack::{self, Stack, Standing},
    time::{Duration, Time},
};
pub use crate::{
    election::{
        central::{Criterion, Hysteresis},
        churn_tolerant::Variant,
        leased::Flavour,
    },
    membership::medley::{Accusers, Addresses, DetailsTooLong, MembershipEvent},
};

mod announced;
mod answer;
mod below;
mod codec;
mod disk;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod founding;
mod life;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod names;
mod near;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod packet;
mod plan;
mod port;
mod profile;
mod record;
mod relay;
mod request;
mod senses;
mod settings;
#[cfg(test)]
mod tests;
mod timing;
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub mod voters;

/// What the host has found out.
///
/// ```
/// use bellwether_proto::{
///     Boot, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time, Why,
///     node::{Fact, Node, Settings, ElectionSettings, TimingProfile},
/// };
///
/// let settings = Settings::new("a", TimingProfile::Lan.timing(), vec![ElectionSettings::default()]);
/// let me = Peer::new(NodeId::new(1), Boot::new(1));
/// let mut node = Node::new(me, settings.plan().unwrap(), Seed::new(1), None);
/// let mut out = Outbox::new();
/// node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
/// // Somebody runs a copy of this machine, and started it later.
/// let copied = Input::Feed(Fact::Superseded(Boot::new(2)));
/// node.handle(Time::from_micros(9), copied, &mut out).unwrap();
/// assert_eq!(node.leadership().why, Why::Superseded { by: Boot::new(2) });
/// assert_eq!(node.deadline(), None, "it has stopped");
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Fact {
    /// This node answered at an address we were told to join.
    Met(NodeId),
    /// Just these are in range of a [central](Neighbours::Given) election.
    InRange(ElectionId, BTreeSet<NodeId>),
    /// A later life of our own identity speaks somewhere.
    Superseded(Boot),
    /// What was to be made durable since the last input is being written, and none of the sends that stood behind it were
    /// carried out. Always the next input after it. What comes of it is told once it is known; until then this node hands
    /// out nothing else to be kept.
    Writing,
    /// What was being written is durable.
    Kept,
    /// What was to be made durable since the last input could not be, or what was being written. The first is always the
    /// next input after it, and none of the sends that stood behind it were carried out.
    NotKept,
}

/// What may be asked of a node.
///
/// ```
/// use bellwether_proto::{ElectionId, Input, InputOf, NodeId, node::{Command, Node}};
///
/// let backup = ElectionId::named("backup");
/// let hand_over: InputOf<'_, Node> = Input::Command(Command::Transfer(backup, NodeId::new(3)));
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Hash, PartialEq)]
pub enum Command {
    /// Elect, whether or not there is a leader. Eventual elections only.
    Elect(ElectionId),
    /// Give up leading; somebody else is elected.
    Resign(ElectionId),
    /// Give up leading to this member.
    Transfer(ElectionId, NodeId),
    /// The application says how badly a member does, in hundredths: 0 is as it should be.
    Report {
        /// The election that goes by such reports.
        election: ElectionId,
        /// The member that the application speaks of.
        of: NodeId,
        /// How badly it does: 100 is as bad as if it were gone.
        percent: u8,
    },
    /// Be worth this from now on.
    Priority(ElectionId, u32),
    /// Do not lead just these until further notice: hooks have yet to undo what leading them before had set up.
    Bar(BTreeSet<ElectionId>),
    /// Tell others this from now on.
    Introduce(Box<About>),
    /// Tell others from now on that this is where we are reached.
    Advertise(Addresses),
}

/// What the application should be told.
///
/// ```
/// use bellwether_proto::{NodeId, node::{Event, MembershipEvent}};
///
/// let line = |event: &Event| match event {
///     Event::Membership(MembershipEvent::Left(id)) => format!("{id} said goodbye"),
///     other => format!("{other:?}"),
/// };
/// let event = Event::Membership(MembershipEvent::Left(NodeId::new(3)));
/// assert_eq!(line(&event), "n3 said goodbye");
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// Something happened to a member.
    Membership(MembershipEvent),
    /// A later life of our identity runs elsewhere, so this one has stopped.
    DuplicateIdentity {
        /// The later life, which goes on.
        other: Peer,
    },
    /// The node was stopped for so long that it gave up leading.
    Stalled {
        /// How long after its deadline it was woken.
        lasted: Duration,
    },
    /// The disk refuses what must be kept.
    DiskRefused,
    /// The disk takes again what must be kept.
    DiskRecovered,
}

/// Why a node wants to be woken, for logs.
///
/// ```
/// use bellwether_proto::{
///     Boot, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
///     node::{Node, Settings, TimingProfile},
/// };
///
/// let plan = Settings::new("a", TimingProfile::Lan.timing(), vec![]).plan().unwrap();
/// let mut node = Node::new(Peer::new(NodeId::new(1), Boot::new(1)), plan, Seed::new(1), None);
/// node.handle(Time::ZERO, Input::Start, &mut Outbox::new()).unwrap();
/// let (at, why) = node.deadline().unwrap();
/// println!("sleeps until {at}: {why:?}");
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// The membership or an eventual election on it is due.
    Stack(stack::Timer),
    /// An election of another mode is due.
    Election(ElectionId),
    /// It is alone, and has held an election for as long as it may.
    Isolation(ElectionId),
    /// A sample of what this node is worth is due.
    Record,
    /// The disk is to be asked again, or given up.
    Disk,
    /// Those to join are to be asked again.
    Seek,
    /// A leader looks at the clock, lest it was stopped.
    Guard,
    /// A leader asks whether it is heard.
    Senses,
    /// It has had the time there is for leaving.
    Leaving,
}

/// How much an election has said: what [`Node::sent_of`] answers.
///
/// ```
/// let sent = bellwether_proto::node::Sent::default();
/// assert_eq!((sent.all, sent.electing), (0, 0));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sent {
    /// Messages, each receiver counted.
    pub all: u64,
    /// Those that elect, rather than keep a leader in office and say who it is.
    pub electing: u64,
}

/// What is known of a candidate of an election that goes by records: what [`Node::scores_of`] answers, the best first.
///
/// ```
/// use bellwether_proto::node::Score;
///
/// let line = |score: &Score| format!("{} {:.2}: {}", score.name, score.score, score.why);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The candidate's identity.
    pub id: NodeId,
    /// The candidate's name, empty if it has not introduced itself.
    pub name: String,
    /// From 0 to 1; more is better.
    pub score: f64,
    /// On how many samples that stands, if it stands on ours.
    pub samples: Option<u64>,
    /// Whether it cannot be elected now.
    pub away: bool,
    /// Where the score comes from, in words for people.
    pub why: String,
}

/// A node: a [`Machine`] that decides who leads. See the [module](self).
///
/// ```
/// use bellwether_proto::{
///     Boot, Duration, ElectionId, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
///     node::{ElectionSettings, ModeSettings, LeasedSettings, Node, Settings, TimingProfile},
/// };
///
/// // Leased, with three members, of which two are needed: alone it leads nothing.
/// let members = ["kitchen", "cellar", "attic"].map(String::from);
/// let backup = ElectionSettings::of("backup", ModeSettings::Leased(LeasedSettings::of(members)));
/// let plan = Settings::new("kitchen", TimingProfile::Lan.timing(), vec![backup]).plan().unwrap();
/// let me = Peer::new(NodeId::new(1), Boot::new(1));
/// let mut node = Node::new(me, plan, Seed::new(1), None);
///
/// let (mut out, mut now) = (Outbox::new(), Time::ZERO);
/// node.handle(now, Input::Start, &mut out).unwrap();
/// while now < Time::ZERO + Duration::from_secs(10) {
///     while out.pop().is_some() {}
///     now = node.deadline().expect("it always has something to do").0;
///     node.handle(now, Input::Timeout, &mut out).unwrap();
/// }
/// let backup = ElectionId::named("backup");
/// assert_eq!(node.leadership_of(backup, now).leader, None);
/// println!("{}", node.obstacle_of(backup, now).unwrap_or_default());
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    me: Peer,
    plan: Plan,
    seed: Seed,
    stack: Stack,
    below: OutboxOf<Stack>,
    /// The ways to the members, for the stack.
    paths: Paths,
    /// Whether anybody hears us, and we anybody.
    senses: Senses,
    seats: Vec<Seat>,
    /// What this node is worth, where that is learnt.
    record: Option<Record>,
    /// What should be on disk.
    durable: Durable,
    disk: Disk,
    phase: Phase,
    /// Of the last input.
    now: Time,
    /// When it wanted to be woken, as of the last input.
    due: Time,
    /// Since when nobody else is listed, if somebody was.
    alone: Option<Time>,
    met: bool,
    known: BTreeMap<NodeId, Known>,
    /// Whether somebody's position has changed since the membership was told distances.
    moved: bool,
    /// Whether the elections have yet to hear who is alive.
    listed_changed: bool,
    /// Whom to ask for their lists until they are listed, and when next.
    seeds: Vec<NodeId>,
    seek: Time,
    /// Whether it leads anything, as of the last input.
    leads: bool,
    rng: Rng,
    refuted: u64,
}

/// One election this node takes part in.
#[derive(Clone, Debug)]
struct Seat {
    group: ElectionId,
    contest: Contest,
    /// Whether hooks forbid it to lead.
    dirty: bool,
    /// Since when the disk has refused what it has to keep.
    barred: Option<Time>,
    /// What it has to say once its state is on disk.
    held: Vec<EffectOf<Node>>,
    /// Since when there is something.
    held_since: Option<Time>,
    sent: Sent,
    /// Whom others believe to lead, where the stack holds it.
    beliefs: BTreeMap<NodeId, (NodeId, Epoch)>,
    /// The ways to those named, where they carry each other's words.
    paths: Option<Paths>,
}

#[derive(Clone, Debug)]
enum Contest {
    /// The stack holds it.
    Eventual,
    Announced(Box<Announced>),
    Leased(Box<Founding>),
    Learned(Box<Voters>),
    Central(Box<Names>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    New,
    Running,
    /// It hands over until then; or it has said goodbye, and is heard until then.
    Leaving {
        until: Time,
        said: bool,
    },
    Gone,
    /// A later life of ours runs elsewhere.
    Superseded(Peer),
}

/// What is known of a member besides what the membership knows.
#[derive(Clone, Debug, Default)]
struct Known {
    name: String,
    position: Option<Position>,
    /// How far the membership was told it is, and whether it is a neighbour.
    told: Option<(f32, bool)>,
}

/// A live member, as elections are told.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Listed {
    peer: Peer,
    /// Empty if it has not introduced itself.
    name: String,
    /// The elections it takes part in, and what it is there.
    standings: Vec<(ElectionId, Standing)>,
}

impl Listed {
    /// What it is in an election, if it takes part.
    fn standing(&self, group: ElectionId) -> Option<Standing> {
        self.standings.iter().find(|(theirs, _)| *theirs == group).map(|&(_, standing)| standing)
    }
}

impl Node {
    /// A node that has not started yet. `durable` is what its past life persisted last. All its randomness comes from
    /// `seed`.
    pub fn new(me: Peer, plan: Plan, seed: Seed, durable: Option<Durable>) -> Self {
        let durable = durable.unwrap_or_default();
        let mut groups = Vec::new();
        let mut kept = stack::Durable::default();
        let mut seats = Vec::with_capacity(plan.seats.len());
        for seat in &plan.seats {
            let group = ElectionId::named(&seat.name);
            let own = |name| seed.named(name).indexed(u64::from(group.number()));
            let past = durable.elections.get(&group);
            let contest = match &seat.protocol {
                Protocol::Eventual(config) => {
                    groups.push((group, *config));
                    if let Some(Kept::Eventual(past)) = past {
                        kept.elections.push((group, *past));
                    }
                    Contest::Eventual
                }
                Protocol::Announced(config) => {
                    let past = match past {
                        Some(Kept::Announced(past)) => Some(*past),
                        _ => None,
                    };
                    let machine = Announce::new(me, *config, own("announced"), past);
                    Contest::Announced(Box::new(Announced::new(machine)))
                }
                Protocol::Leased(config) => {
                    let past = match past {
                        Some(Kept::Leased(epoch)) => Some(*epoch),
                        _ => None,
                    };
                    let leased = Founding::new(me, config.clone(), own("leased"), past);
                    Contest::Leased(Box::new(leased))
                }
                Protocol::Learned(config) => {
                    let past = match past {
                        Some(Kept::Learned(ballot)) => ballot.clone(),
                        _ => KeptBallot::default(),
                    };
                    let name = &plan.about.name;
                    let voters = Voters::new(me, name, config.clone(), own("learned"), past);
                    Contest::Learned(Box::new(voters))
                }
                Protocol::Central(config) => {
                    Contest::Central(Box::new(Names::new(me, *config, own("central"))))
                }
            };
            let paths = seat.protocol.manner().map(|manner| Paths::new(me.id, manner));
            seats.push(Seat {
                group,
                contest,
                dirty: false,
                barred: None,
                held: Vec::new(),
                held_since: None,
                sent: Sent::default(),
                beliefs: BTreeMap::new(),
                paths,
            });
        }
        Self {
            me,
            paths: Paths::new(me.id, plan.manner),
            senses: Senses::default(),
            stack: Stack::new(me, plan.gossip, &groups, seed, Some(kept), vec![]),
            below: Outbox::new(),
            seats,
            record: None,
            disk: Disk::new(durable.clone()),
            durable,
            phase: Phase::New,
            now: Time::ZERO,
            due: Time::NEVER,
            alone: None,
            met: false,
            known: BTreeMap::new(),
            moved: false,
            listed_changed: true,
            seeds: Vec::new(),
            seek: Time::NEVER,
            leads: false,
            rng: seed.named("host").rng(),
            refuted: 0,
            seed,
            plan,
        }
    }

    /// The same, knowing whom to ask for their lists, again and again until they are listed: for hosts that know
    /// identities beforehand. Others say whom they [met](Fact::Met).
    pub fn with_seeds(mut self, seeds: Vec<NodeId>) -> Self {
        self.seeds = seeds;
        self
    }

    fn position(&self, group: ElectionId) -> Result<usize, Rejected> {
        let at = self.seats.iter().position(|seat| seat.group == group);
        at.ok_or(Rejected::NoSuchElection { election: group })
    }

    /// As others are told.
    fn stands(&self, at: usize) -> Standing {
        let standing = self.plan.seats[at].standing;
        let Seat { dirty, barred, contest, .. } = &self.seats[at];
        let eventual = matches!(contest, Contest::Eventual);
        let kept_off = eventual && barred.is_some() || self.lacks_a_sense(at).is_some();
        Standing { observer: standing.observer || *dirty || kept_off, ..standing }
    }

    fn standings(&self) -> Vec<(ElectionId, Standing)> {
        (0..self.seats.len()).map(|at| (self.seats[at].group, self.stands(at))).collect()
    }
}

/// Lets elections do things.
impl Node {
    fn with<T>(
        &mut self,
        now: Time,
        at: usize,
        out: &mut OutboxOf<Self>,
        act: impl FnOnce(&mut Contest, &mut Port<'_>) -> T,
    ) -> T {
        let Self { seats, durable, disk, me, senses, .. } = self;
        let Seat { group, contest, sent, barred, held, paths, .. } = &mut seats[at];
        let hushed = senses.hushed && matches!(contest, Contest::Learned(_));
        let mute = barred.is_some() || hushed;
        let (me, group, paths) = (*me, *group, paths.as_mut());
        act(contest, &mut Port { now, me, group, out, durable, disk, sent, held, mute, paths })
    }

    fn each(
        &mut self,
        now: Time,
        out: &mut OutboxOf<Self>,
        mut act: impl FnMut(&mut Contest, &mut Port<'_>),
    ) {
        (0..self.seats.len()).for_each(|at| self.with(now, at, out, &mut act));
    }

    fn command_stack(&mut self, now: Time, group: ElectionId, command: churn_tolerant::Command) {
        let command = Input::Command(stack::Command { group, command });
        let told = self.stack.handle(now, command, &mut self.below);
        debug_assert!(matches!(told, Ok(()) | Err(Rejected::NotRunning)), "{told:?}");
    }

    /// Gives up what it leads: it was stopped, or may not remember what it has said.
    fn void(&mut self, now: Time, at: usize, out: &mut OutboxOf<Self>) {
        self.seats[at].held.clear();
        if let Contest::Eventual = self.seats[at].contest {
            self.command_stack(now, self.seats[at].group, churn_tolerant::Command::Void);
        }
        self.with(now, at, out, |contest, port| match contest {
            Contest::Eventual => {}
            Contest::Announced(announced) => announced.command(announce::Command::Void, port),
            Contest::Leased(leased) => leased.stalled(port),
            Contest::Learned(learned) => learned.stalled(port),
            Contest::Central(central) => central.stalled(port),
        });
    }

    /// Tells the membership what to say of us.
    fn introduce(&mut self, now: Time) {
        self.listed_changed = true;
        // Whoever set it has seen to it that it fits.
        if let Ok(details) = self.plan.about.to_details(self.standings()) {
            let addresses = self.plan.addresses;
            self.feed_stack(now, ContactChange::Ours { addresses, details });
        }
    }

    fn feed_stack(&mut self, now: Time, change: ContactChange) {
        let told = self.stack.handle(now, Input::Feed(change), &mut self.below);
        debug_assert!(matches!(told, Ok(()) | Err(Rejected::NotRunning)), "{told:?}");
    }

    /// Asks those for their lists that are not on ours.
    fn seek_seeds(&mut self, now: Time) {
        if self.seek > now || self.seeds.is_empty() {
            return;
        }
        let retry = self.plan.timing.grace * 2;
        self.seek = now + retry + self.rng.up_to(retry.div(4));
        for at in 0..self.seeds.len() {
            let id = self.seeds[at];
            if id != self.me.id && self.stack.membership().member(id).is_none() {
                self.feed_stack(now, ContactChange::Found { id });
            }
        }
    }

    /// Puts what this node is worth by its record where priorities are.
    fn take_worth(&mut self) {
        let Some(worth) = self.record.as_ref().map(Record::announced) else { return };
        for seat in self.plan.seats.iter_mut().filter(|seat| seat.learns) {
            seat.standing.attribute = worth;
        }
    }

    /// Something was amiss with this node.
    fn doubt_ourselves(&mut self, cost: f64) {
        if let Some(record) = &mut self.record {
            record.doubt(cost);
        }
    }

    /// Hooks, or its role, may forbid it to lead.
    fn observe(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        for at in 0..self.seats.len() {
            let observes = self.stands(at).observer;
            self.with(now, at, out, |contest, port| match contest {
                Contest::Eventual => {}
                Contest::Announced(announced) => {
                    announced.command(announce::Command::Observe(observes), port);
                }
                Contest::Leased(leased) => leased.observe(observes, port),
                Contest::Learned(learned) => learned.observe(observes, port),
                Contest::Central(central) => central.observe(observes),
            });
        }
    }

    fn on_timeout(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if self.stack.deadline().is_some_and(|(at, _)| at <= now) {
            self.stack.handle(now, Input::Timeout, &mut self.below)?;
            self.drain(now, out);
        }
        self.each(now, out, |contest, port| {
            if contest.deadline().is_some_and(|at| at <= now) {
                contest.due(port);
            }
        });
        if let Some(record) = &mut self.record
            && record.sample(now)
        {
            self.durable.record = Some(record.kept(false));
            self.persist(out);
            self.take_worth();
            self.introduce(now);
        }
        self.seek_seeds(now);
        self.ask_around(now);
        self.look_after_disk(now, out);
        if let Phase::Leaving { until, said: true } = self.phase
            && now >= until
        {
            self.phase = Phase::Gone;
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
        self.heard_directly(now, from);
        self.senses.heard = true;
        if let Message::Carried(carried) = message {
            return self.on_carried(now, from, carried, out);
        }
        self.on_word(now, from, via, message, out)
    }

    /// The same, whichever way it came.
    fn on_word(
        &mut self,
        now: Time,
        from: Peer,
        via: NodeId,
        message: &Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let wrong = |group: ElectionId| Err(Rejected::NoSuchElection { election: group });
        match message {
            Message::Carried(_) => Err(Rejected::Contradictory { from }),
            Message::Stack(message) => {
                if message.answers() {
                    self.paths.answered(now);
                }
                let before = self.stack.membership().incarnation();
                let input = Input::Message { from, via, message };
                self.stack.handle(now, input, &mut self.below)?;
                self.note_belief(from.id, message);
                // What others say raises it only where we contradict them.
                if self.stack.membership().incarnation() > before {
                    self.refuted += 1;
                    self.doubt_ourselves(ACCUSED);
                }
                Ok(())
            }
            Message::Announced(group, message) => {
                let at = self.position(*group)?;
                self.with(now, at, out, |contest, port| match contest {
                    Contest::Announced(announced) => announced.hear(from, message, port),
                    _ => wrong(*group),
                })
            }
            Message::Leased(group, message) => {
                let at = self.position(*group)?;
                self.with(now, at, out, |contest, port| match contest {
                    Contest::Leased(leased) => leased.hear(from, message, port),
                    _ => wrong(*group),
                })
            }
            Message::Learned(group, message) => {
                let at = self.position(*group)?;
                self.with(now, at, out, |contest, port| match contest {
                    Contest::Learned(learned) => learned.hear(from, message, port),
                    _ => wrong(*group),
                })
            }
            Message::Central(group, message) => {
                let at = self.position(*group)?;
                self.with(now, at, out, |contest, port| match contest {
                    Contest::Central(central) => central.hear(from, message, port),
                    _ => wrong(*group),
                })
            }
        }
    }

    fn note_belief(&mut self, from: NodeId, message: &stack::Message) {
        let stack::Message::Election(group, churn_tolerant::Message::Leader(claim)) = message
        else {
            return;
        };
        if let Ok(at) = self.position(*group) {
            self.seats[at].beliefs.insert(from, (claim.leader.peer.id, claim.epoch));
        }
    }
}

impl Contest {
    /// When it wants to be woken, if the stack does not see to that.
    fn deadline(&self) -> Option<Time> {
        match self {
            Self::Eventual => None,
            Self::Announced(announced) => announced.deadline(),
            Self::Leased(leased) => leased.deadline(),
            Self::Learned(learned) => learned.deadline(),
            Self::Central(central) => central.deadline(),
        }
    }

    fn due(&mut self, port: &mut Port<'_>) {
        match self {
            Self::Eventual => {}
            Self::Announced(announced) => announced.tell(Input::Timeout, port),
            Self::Leased(leased) => leased.due(port),
            Self::Learned(learned) => learned.due(port),
            Self::Central(central) => central.due(port),
        }
    }
}

impl Machine for Node {
    type Message = Message;
    type Timer = Timer;
    type Feed = Fact;
    type Command = Command;
    type Durable = Durable;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        let start = matches!(input, Input::Start);
        if !start && !self.is_running() {
            return Err(Rejected::NotRunning);
        }
        if let Input::Message { from, .. } = &input
            && from.id == self.me.id
        {
            if from.boot <= self.me.boot {
                return Err(Rejected::Loopback { from: *from });
            }
            self.supersede(from.boot, out);
        }
        if let Input::Feed(Fact::Superseded(by)) = &input {
            self.supersede(*by, out);
        }
        if let Phase::Superseded(_) = self.phase {
            self.due = Time::NEVER;
            return Ok(());
        }
        self.learn_of_disk(now, &input, out);
        self.notice_stall(now, out);
        let acted = !out.is_empty();
        let result = match input {
            Input::Start => self.start(now, out),
            Input::Message { from, via, message } => self.on_message(now, from, via, message, out),
            Input::Timeout => self.on_timeout(now, out),
            Input::Feed(fact) => self.on_fact(now, fact, out),
            Input::Command(command) => self.on_command(now, command, out),
            Input::Leave => {
                self.leave(now, out);
                Ok(())
            }
        };
        if result.is_err() && !acted {
            // Nothing has changed, so nothing else has to be looked at.
            return result;
        }
        self.look_who_hears_us(now, out);
        self.drain(now, out);
        self.go_on_leaving(now, out);
        self.bar_the_waiting(now, out);
        self.note_who_waits(now);
        self.drain(now, out);
        if !self.stack.membership().is_empty() {
            (self.alone, self.met) = (None, true);
        } else if self.met && self.alone.is_none() {
            self.alone = Some(now);
        }
        self.now = now;
        let ours = |at| self.answer(at, now).leader == Some(self.me.id);
        self.leads = (0..self.seats.len()).any(ours);
        self.plan_to_ask(now);
        self.due = self.deadline().map_or(Time::NEVER, |(at, _)| at);
        self.ask_disk(out);
        // What was refused was refused after something else had happened, which must not be taken for nothing.
        if acted { Ok(()) } else { result }
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        if !self.is_running() {
            return None;
        }
        let at = |at: Time, timer: Timer| (at != Time::NEVER).then_some((at, timer));
        let stack = self.stack.deadline().map(|(at, timer)| (at, Timer::Stack(timer)));
        let seats = self
            .seats
            .iter()
            .filter_map(|seat| seat.contest.deadline().map(|at| (at, Timer::Election(seat.group))));
        let isolated = self.seats.iter().zip(&self.plan.seats).filter_map(|(seat, plan)| {
            let (OnIsolation::HoldFor(span), Some(since)) = (plan.on_isolation, self.alone) else {
                return None;
            };
            let end = since + span;
            (end > self.now).then_some((end, Timer::Isolation(seat.group)))
        });
        let record = self.record.as_ref().map(|record| (record.next(), Timer::Record));
        let disk = self.disk_due().map(|due| (due, Timer::Disk));
        let guard = self.leads.then(|| (self.now + LOOK, Timer::Guard));
        let leaving = match self.phase {
            Phase::Leaving { until, .. } => Some((until, Timer::Leaving)),
            _ => None,
        };
        let soonest = stack
            .into_iter()
            .chain(seats)
            .chain(isolated)
            .chain(record)
            .chain(disk)
            .chain(at(self.seek, Timer::Seek))
            .chain(at(self.senses.next(), Timer::Senses));
        // Once it has said goodbye it only waits for what is still to be said.
        let said = matches!(self.phase, Phase::Leaving { said: true, .. });
        let soonest = soonest.min_by_key(|(at, _)| *at);
        if said && soonest.is_none() {
            return None;
        }
        soonest.into_iter().chain(guard).chain(leaving).min_by_key(|(at, _)| *at)
    }
}

/// Of the first election, as of the last input.
impl Election for Node {
    fn leadership(&self) -> Leadership {
        match self.seats.is_empty() {
            true => Leadership::unknown(Mode::Eventual, Why::NotRunning),
            false => self.answer(0, self.now),
        }
    }
}

/// An identity as the agent shows it: sixteen hexadecimal digits.
#[cfg_attr(not(feature = "research"), doc(hidden))]
pub fn hex(id: NodeId) -> String {
    format!("{:016x}", id.get())
}

/// What it costs to have been accused and to have contradicted. Arbitrary.
const ACCUSED: f64 = 0.5;
/// How often a leader looks at the clock, whatever else it has to do.
const LOOK: Duration = Duration::from_secs(1);
