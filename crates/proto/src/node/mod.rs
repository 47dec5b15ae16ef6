//! A node: everything that decides who leads, as one machine.
//!
//! Simulator, agent and model checker host this value and nothing else. Below lies a gossip membership, whose leaders are
//! watched and whose lists are compared (the [`Stack`]); on it and beside it stand any number of named elections, each in
//! one of five modes. [`Settings`] say what a node is to be, in an operator's words; [`Settings::plan`] makes machines of
//! them. What a host tells it that is no message is a [`Fact`]; what people ask of it is a [`Command`].
//!
//! ```text
//! Message  --of a later life of ours------> stops: answers name nobody, DuplicateIdentity
//! Message  --of the membership or eventual> the stack
//! Message  --of another mode--------------> the election it names
//! Timeout  --the stack first: who has failed is known before anybody is elected; then what is due
//! any      --later than `guard` after the
//!            deadline---------------------> gives up leading first: it was stopped, and others may have got over it
//! Fact     --NotKept----------------------> the disk's rule: see `disk`
//! Fact     --Superseded-------------------> stops
//! Command  --to the election it names
//! Leave    --hands over what it leads, then says goodbye, then has no deadline
//! ```
//!
//! | file | holds |
//! |---|---|
//! | [`settings`] | what a node can be told to be, and the table from that to configured machines |
//! | [`packet`] | the table of packet kinds |
//! | [`profile`] | what a node tells others of itself |
//! | [`founding`] | leased elections: how rings come to be |
//! | [`voters`] | learned elections: who votes |
//! | [`names`] | central elections: what those on the map are called |
//! | `announced`, `disk`, `record`, `near` | announced elections; what survives; what a node is worth; who is near |
//!
//! Departure: the membership's own durable state is not kept. A host gives every life a larger boot number, so a life
//! need not remember its incarnation.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Duration, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     node::{ElectionSettings, Node, Settings, TimingProfile},
//!     stack::Group,
//! };
//!
//! let elections = vec![ElectionSettings::default()];
//! let plan = Settings::new("kitchen", TimingProfile::Lan.timing(), elections).plan().unwrap();
//! let me = Peer::new(NodeId::new(1), Boot::new(1));
//! let mut node = Node::new(me, plan, Seed::new(1), None);
//! let mut out = Outbox::new();
//! node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! while let Some((at, _)) = node.deadline().filter(|(at, _)| *at < Time::from_micros(10_000_000)) {
//!     node.handle(at, Input::Timeout, &mut out).unwrap();
//!     while out.pop().is_some() {}
//! }
//! let answer = node.leadership_of(Group::named("default"), Time::from_micros(10_000_000));
//! assert_eq!(answer.leader, Some(me.id), "there is nobody else");
//! ```

use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec,
    vec::Vec,
};

use self::{
    announced::Announced, disk::Disk, founding::Founding, names::Names, record::Record,
    voters::Voters,
};
pub use self::{
    disk::{Durable, Kept},
    packet::Message,
    profile::{About, Position, check_name},
    record::KeptRecord,
    settings::{
        AnnouncedSettings, CentralSettings, ElectionSettings, EventualSettings, Feedback, HIGHEST,
        Keeping, LEARNED_MARGIN, LearnedSettings, LeasedSettings, ModeSettings, Neighbours,
        OnIsolation, PRIORITY, Plan, Policy, Protocol, Role, SeatPlan, Settings, SettingsError,
        Spread, TENURE, Timing, TimingProfile, Watched,
    },
    voters::KeptBallot,
};
use crate::{
    churn::estimate::ChurnEstimate,
    election::{
        announce::{self, Announce},
        churn_tolerant,
    },
    epoch::Epoch,
    id::{Boot, NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Effect, Input, InputOf, Machine, Outbox, OutboxOf, Rejected},
    membership::medley::{ContactChange, DetailsTooLong, Medley, MembershipEvent},
    rng::{Rng, Seed},
    stack::{self, Group, Profile, Stack, Standing},
    time::{Duration, Time},
};

mod announced;
mod disk;
pub mod founding;
pub mod names;
mod near;
pub mod packet;
pub mod profile;
mod record;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod voters;

/// What the host has found out.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Fact {
    /// This node answered at an address we were told to join.
    Met(NodeId),
    /// Just these are in range of a [central](Neighbours::Given) election.
    InRange(Group, BTreeSet<NodeId>),
    /// A later life of our own identity speaks somewhere.
    Superseded(Boot),
    /// What was to be made durable since the last input could not be. Always the next input after it, and none of the
    /// sends that stood behind it were carried out.
    NotKept,
}

/// What may be asked of a node.
#[derive(Clone, Debug, Hash, PartialEq)]
pub enum Command {
    /// Elect, whether or not there is a leader. Eventual elections only.
    Elect(Group),
    /// Give up leading; somebody else is elected.
    Resign(Group),
    /// Give up leading to this member.
    Transfer(Group, NodeId),
    /// The application says how badly a member does, in hundredths: 0 is as it should be.
    Report {
        /// The election.
        group: Group,
        /// Of whom.
        of: NodeId,
        /// How badly.
        percent: u8,
    },
    /// Be worth this from now on.
    Priority(Group, u32),
    /// Do not lead just these until further notice: hooks have yet to undo what leading them before had set up.
    Bar(BTreeSet<Group>),
    /// Tell others this from now on.
    Introduce(Box<About>),
}

/// What the application should be told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// Something happened to a member.
    Membership(MembershipEvent),
    /// A later life of our identity runs elsewhere, so this one has stopped.
    DuplicateIdentity {
        /// That life.
        other: Peer,
    },
    /// The node was stopped for so long that it gave up leading.
    Stalled {
        /// For how long.
        lasted: Duration,
    },
    /// The disk refuses what must be kept.
    DiskRefused,
    /// It takes it again.
    DiskRecovered,
}

/// Why it wants to be woken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// The stack wants to.
    Stack(stack::Timer),
    /// An election beside it wants to.
    Election(Group),
    /// It is alone, and has held an election for as long as it may.
    Isolation(Group),
    /// A sample of what this node is worth is due.
    Record,
    /// The disk is to be asked again.
    Disk,
    /// Those to join are to be asked again.
    Seek,
    /// A leader looks at the clock, lest it was stopped.
    Guard,
    /// It has had the time there is for leaving.
    Leaving,
}

/// How much an election has said.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sent {
    /// Messages, each receiver counted.
    pub all: u64,
    /// Those that elect, rather than keep a leader in office and say who it is.
    pub electing: u64,
}

/// What is known of a candidate of an election that goes by records.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Who.
    pub id: NodeId,
    /// What it is called.
    pub name: String,
    /// From 0 to 1; more is better.
    pub score: f64,
    /// On how many samples that stands, if it stands on ours.
    pub samples: Option<u64>,
    /// Whether it cannot be elected now.
    pub away: bool,
    /// Why, in words.
    pub why: String,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    me: Peer,
    plan: Plan,
    seed: Seed,
    stack: Stack,
    below: OutboxOf<Stack>,
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
    group: Group,
    contest: Contest,
    /// Whether hooks forbid it to lead.
    dirty: bool,
    /// Since when the disk has refused what it has to keep.
    barred: Option<Time>,
    sent: Sent,
    /// Whom others believe to lead, where the stack holds it.
    beliefs: BTreeMap<NodeId, (NodeId, Epoch)>,
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
    standings: Vec<(Group, Standing)>,
}

impl Listed {
    /// What it is in an election, if it takes part.
    fn standing(&self, group: Group) -> Option<Standing> {
        self.standings.iter().find(|(theirs, _)| *theirs == group).map(|&(_, standing)| standing)
    }
}

/// What an election reaches of the node while it handles something.
struct Port<'a> {
    now: Time,
    group: Group,
    out: &'a mut OutboxOf<Node>,
    durable: &'a mut Durable,
    asked: &'a mut bool,
    sent: &'a mut Sent,
    /// Whether the disk has refused what it has to keep.
    mute: bool,
}

impl Port<'_> {
    fn count(&mut self, elects: bool) {
        self.sent.all += 1;
        self.sent.electing += u64::from(elects);
    }

    fn send(&mut self, to: NodeId, message: Message, elects: bool) {
        if !self.mute {
            self.count(elects);
            self.out.send(to, message);
        }
    }

    /// To whoever is in range.
    fn broadcast(&mut self, message: Message, elects: bool) {
        if !self.mute {
            self.count(elects);
            self.out.broadcast(message);
        }
    }

    /// To everybody on the segment.
    fn multicast(&mut self, message: Message) {
        if !self.mute {
            self.count(true);
            self.out.multicast(message);
        }
    }

    /// Keeps this before anything else is said.
    fn keep(&mut self, kept: Kept) {
        let before = self.durable.elections.get(&self.group);
        if before != Some(&kept) {
            self.durable.elections.insert(self.group, kept);
            *self.asked = true;
            self.out.persist(self.durable.clone());
        }
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
            let group = Group::named(&seat.name);
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
            seats.push(Seat {
                group,
                contest,
                dirty: false,
                barred: None,
                sent: Sent::default(),
                beliefs: BTreeMap::new(),
            });
        }
        Self {
            me,
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

    /// Who it is.
    pub const fn me(&self) -> Peer {
        self.me
    }

    /// What it was told to be, as it is now.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The membership.
    pub const fn membership(&self) -> &Medley {
        self.stack.membership()
    }

    /// What is known of `c`.
    pub fn churn(&self, now: Time) -> Option<ChurnEstimate> {
        self.stack.churn(now)
    }

    /// Whether it has started, and neither left nor been superseded.
    pub const fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Leaving { .. })
    }

    /// Whether it was stopped for longer than it may lead unseen: the next input makes it give up leading. A host asks
    /// before it reads its sockets, and throws away what waited there meanwhile.
    pub fn is_late(&self, now: Time) -> bool {
        self.is_running() && self.due != Time::NEVER && now.since(self.due) > self.plan.timing.guard
    }

    /// How often it has contradicted an accusation.
    pub const fn refuted(&self) -> u64 {
        self.refuted
    }

    /// What somebody is called, if that is known.
    pub fn name_of(&self, id: NodeId) -> Option<&str> {
        if id == self.me.id {
            return Some(&self.plan.about.name);
        }
        match self.known.get(&id).map(|known| known.name.as_str()) {
            Some(name) if !name.is_empty() => Some(name),
            // Nobody whose word reaches us by gossip, but perhaps on a map.
            _ => self.seats.iter().find_map(|seat| match &seat.contest {
                Contest::Central(central) => central.name_of(id),
                _ => None,
            }),
        }
    }

    /// Where somebody says it is.
    pub fn position_of(&self, id: NodeId) -> Option<Position> {
        if id == self.me.id {
            return self.plan.about.position;
        }
        self.known.get(&id)?.position
    }

    /// The elections, in the order of the settings.
    pub fn groups(&self) -> impl Iterator<Item = Group> {
        self.seats.iter().map(|seat| seat.group)
    }

    /// Who leads an election, as this node can honestly answer at `now`, which may be later than the last input.
    pub fn leadership_of(&self, group: Group, now: Time) -> Leadership {
        match self.position(group) {
            Ok(at) => self.answer(at, now),
            Err(_) => Leadership::unknown(Mode::Eventual, Why::NotRunning),
        }
    }

    /// What others believe, as they last said: who leads, under which epoch.
    pub fn beliefs_of(&self, group: Group) -> BTreeMap<NodeId, (NodeId, Epoch)> {
        let Ok(at) = self.position(group) else { return BTreeMap::new() };
        match &self.seats[at].contest {
            Contest::Eventual => self.seats[at].beliefs.clone(),
            Contest::Leased(leased) => leased.beliefs().clone(),
            Contest::Learned(learned) => learned.beliefs(),
            Contest::Announced(_) | Contest::Central(_) => BTreeMap::new(),
        }
    }

    /// Why nobody leads, in words, if the answer itself does not say.
    pub fn obstacle_of(&self, group: Group, now: Time) -> Option<String> {
        let seat = &self.seats[self.position(group).ok()?];
        if seat.barred.is_some() {
            let words =
                "the disk refuses what must be kept; this node takes no part until it is taken";
            return Some(words.to_owned());
        }
        match &seat.contest {
            Contest::Eventual | Contest::Announced(_) => None,
            Contest::Leased(leased) => leased.words(now),
            Contest::Learned(learned) => learned.words(now),
            Contest::Central(central) => central.words(now),
        }
    }

    /// What was learnt of those who may lead, the best first.
    pub fn scores_of(&self, group: Group) -> Vec<Score> {
        match self.position(group).map(|at| &self.seats[at].contest) {
            Ok(Contest::Leased(leased)) => leased.scores(),
            Ok(Contest::Learned(learned)) => learned.scores(),
            _ => vec![],
        }
    }

    /// How much an election has said.
    pub fn sent_of(&self, group: Group) -> Sent {
        self.position(group).map(|at| self.seats[at].sent).unwrap_or_default()
    }

    /// A leased election.
    pub fn leased(&self, group: Group) -> Option<&Founding> {
        match &self.seats[self.position(group).ok()?].contest {
            Contest::Leased(leased) => Some(leased),
            _ => None,
        }
    }

    /// A learned election.
    pub fn learned(&self, group: Group) -> Option<&Voters> {
        match &self.seats[self.position(group).ok()?].contest {
            Contest::Learned(learned) => Some(learned),
            _ => None,
        }
    }

    /// A central election.
    pub fn central(&self, group: Group) -> Option<&Names> {
        match &self.seats[self.position(group).ok()?].contest {
            Contest::Central(central) => Some(central),
            _ => None,
        }
    }

    /// Whether hooks forbid this node to lead, or its role does.
    pub fn observes(&self, group: Group) -> bool {
        self.position(group).is_ok_and(|at| self.stands(at).observer)
    }

    /// Whether this much can be told to others.
    ///
    /// # Errors
    ///
    /// [`DetailsTooLong`].
    pub fn fits(&self, about: &About) -> Result<(), DetailsTooLong> {
        about.to_details(self.standings()).map(|_| ())
    }

    fn position(&self, group: Group) -> Result<usize, Rejected> {
        let at = self.seats.iter().position(|seat| seat.group == group);
        at.ok_or(Rejected::NoSuchElection { group: group.number() })
    }

    /// As others are told.
    fn stands(&self, at: usize) -> Standing {
        let standing = self.plan.seats[at].standing;
        Standing { observer: standing.observer || self.seats[at].dirty, ..standing }
    }

    fn standings(&self) -> Vec<(Group, Standing)> {
        (0..self.seats.len()).map(|at| (self.seats[at].group, self.stands(at))).collect()
    }

    fn answer(&self, at: usize, now: Time) -> Leadership {
        let seat = &self.seats[at];
        let mode = self.plan.seats[at].protocol.mode();
        match self.phase {
            Phase::New | Phase::Gone => return Leadership::unknown(mode, Why::NotRunning),
            Phase::Superseded(by) => {
                return Leadership::unknown(mode, Why::Superseded { by: by.boot });
            }
            Phase::Running | Phase::Leaving { .. } => {}
        }
        if let Some(since) = seat.barred {
            return Leadership::unknown(mode, Why::NotKept { since });
        }
        let answer = match &seat.contest {
            Contest::Eventual => match self.stack.election(seat.group) {
                Some(election) => election.leadership(),
                None => Leadership::unknown(mode, Why::NotRunning),
            },
            Contest::Announced(announced) => announced.leadership(),
            Contest::Leased(leased) => leased.leadership(now),
            Contest::Learned(learned) => learned.leadership(),
            Contest::Central(central) => central.leadership(now),
        };
        match self.alone.filter(|&since| self.gives_up(at, now, since)) {
            Some(since) => Leadership::unknown(mode, Why::Electing { since }),
            None => answer,
        }
    }

    /// Whether a node that has been alone since then names nobody, itself least of all.
    fn gives_up(&self, at: usize, now: Time, since: Time) -> bool {
        match self.plan.seats[at].on_isolation {
            OnIsolation::Hold => false,
            OnIsolation::HoldFor(span) => now >= since + span,
            OnIsolation::StepDown => true,
        }
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
        let Self { seats, durable, disk, .. } = self;
        let Seat { group, contest, sent, barred, .. } = &mut seats[at];
        let (group, mute) = (*group, barred.is_some());
        act(contest, &mut Port { now, group, out, durable, asked: &mut disk.asked, sent, mute })
    }

    fn each(
        &mut self,
        now: Time,
        out: &mut OutboxOf<Self>,
        mut act: impl FnMut(&mut Contest, &mut Port<'_>),
    ) {
        (0..self.seats.len()).for_each(|at| self.with(now, at, out, &mut act));
    }

    fn command_stack(&mut self, now: Time, group: Group, command: churn_tolerant::Command) {
        let command = Input::Command(stack::Command { group, command });
        let told = self.stack.handle(now, command, &mut self.below);
        debug_assert!(matches!(told, Ok(()) | Err(Rejected::NotRunning)), "{told:?}");
    }

    /// Gives up what it leads: it was stopped, or may not remember what it has said.
    fn void(&mut self, now: Time, at: usize, out: &mut OutboxOf<Self>) {
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

    fn start(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if self.phase != Phase::New {
            return Err(Rejected::StartedTwice);
        }
        self.phase = Phase::Running;
        self.stack.begin_survey(self.plan.survey, self.plan.timing.election, self.seed, now);
        if self.plan.seats.iter().any(|seat| seat.learns) {
            let record = Record::begin(self.plan.sample, now, self.durable.record);
            self.durable.record = Some(record.kept(false));
            self.record = Some(record);
            self.take_worth();
            self.persist(out);
        }
        self.observe(now, out);
        self.each(now, out, |contest, port| match contest {
            Contest::Eventual => {}
            Contest::Announced(announced) => announced.tell(Input::Start, port),
            Contest::Leased(leased) => leased.start(port),
            Contest::Learned(learned) => learned.start(port),
            Contest::Central(central) => central.start(port),
        });
        self.stack.handle(now, Input::Start, &mut self.below)?;
        self.introduce(now);
        self.seek = if self.seeds.is_empty() { Time::NEVER } else { now };
        self.seek_seeds(now);
        Ok(())
    }

    /// Tells the membership what to say of us.
    fn introduce(&mut self, now: Time) {
        self.listed_changed = true;
        // Whoever set it has seen to it that it fits.
        if let Ok(details) = self.plan.about.to_details(self.standings()) {
            let addresses = self.plan.addresses.clone();
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
        self.retry_disk(now, out);
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
        let wrong = |group: Group| Err(Rejected::NoSuchElection { group: group.number() });
        match message {
            Message::Stack(message) => {
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

    fn on_fact(&mut self, now: Time, fact: Fact, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        match fact {
            Fact::Met(id) => self.feed_stack(now, ContactChange::Found { id }),
            Fact::InRange(group, ids) => {
                let at = self.position(group)?;
                self.with(now, at, out, |contest, port| {
                    if let Contest::Central(central) = contest {
                        central.in_range(&ids, port);
                    }
                });
            }
            // Both were seen to before anything else.
            Fact::Superseded(_) | Fact::NotKept => {}
        }
        Ok(())
    }

    fn on_command(
        &mut self,
        now: Time,
        command: Command,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match command {
            Command::Elect(group) => match self.seats[self.position(group)?].contest {
                Contest::Eventual => {
                    self.command_stack(now, group, churn_tolerant::Command::Elect);
                }
                _ => return Err(Rejected::Refused { why: "only eventual elections are called" }),
            },
            Command::Resign(group) => {
                let at = self.position(group)?;
                if let Contest::Eventual = self.seats[at].contest {
                    if self.stack.membership().is_empty() {
                        return Err(Rejected::Refused { why: "there is nobody else to lead" });
                    }
                    self.command_stack(now, group, churn_tolerant::Command::Resign);
                }
                return self.with(now, at, out, |contest, port| match contest {
                    Contest::Eventual => Ok(()),
                    Contest::Announced(announced) => {
                        announced.command(announce::Command::Resign, port);
                        Ok(())
                    }
                    Contest::Leased(leased) => leased.resign(port),
                    Contest::Learned(learned) => {
                        learned.resign(port);
                        Ok(())
                    }
                    Contest::Central(_) => Err(Rejected::Refused { why: PLACE }),
                });
            }
            Command::Transfer(group, to) => {
                let at = self.position(group)?;
                if self.stack.membership().member(to).is_none() {
                    return Err(Rejected::Refused { why: "that member is not alive" });
                }
                if let Contest::Eventual = self.seats[at].contest {
                    self.command_stack(now, group, churn_tolerant::Command::Transfer(to));
                }
                return self.with(now, at, out, |contest, port| match contest {
                    Contest::Eventual => Ok(()),
                    Contest::Announced(_) => Err(Rejected::Refused {
                        why: "it is announced: the best of those that hear us leads; resign instead",
                    }),
                    Contest::Leased(leased) => leased.transfer(to, port),
                    Contest::Learned(_) => Err(Rejected::Refused {
                        why: "it is learned: the voters choose; resign instead",
                    }),
                    Contest::Central(_) => Err(Rejected::Refused { why: PLACE }),
                });
            }
            Command::Report { group, of, percent } => {
                let at = self.position(group)?;
                if self.plan.seats[at].learns {
                    if of != self.me.id {
                        return Err(Rejected::Refused {
                            why: "every node keeps its own record there; ask that node's agent",
                        });
                    }
                    self.doubt_ourselves(f64::from(percent.min(100)) / 100.0);
                    return Ok(());
                }
                return self.with(now, at, out, |contest, port| match contest {
                    Contest::Learned(learned) => learned.report(of, percent, port),
                    _ => Err(Rejected::Refused {
                        why: "how members do is learnt only where mode = \"learned\"",
                    }),
                });
            }
            Command::Priority(group, worth) => {
                let at = self.position(group)?;
                if !self.plan.seats[at].learns {
                    self.plan.seats[at].standing.attribute = worth;
                    self.introduce(now);
                }
            }
            Command::Bar(groups) => {
                for seat in &mut self.seats {
                    seat.dirty = groups.contains(&seat.group);
                }
                self.observe(now, out);
                self.introduce(now);
            }
            Command::Introduce(about) => {
                if self.fits(&about).is_err() {
                    return Err(Rejected::Refused { why: "name, tags and elections are too long" });
                }
                self.plan.about = *about;
                self.introduce(now);
            }
        }
        Ok(())
    }

    /// Hands over, then says goodbye.
    fn leave(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.phase != Phase::Running {
            return;
        }
        if let Some(record) = self.record.take() {
            self.durable.record = Some(record.kept(true));
            self.persist(out);
        }
        self.seeds.clear();
        self.seek = Time::NEVER;
        for at in 0..self.seats.len() {
            if self.leads_eventual(at, now) {
                let group = self.seats[at].group;
                self.command_stack(now, group, churn_tolerant::Command::Resign);
            }
        }
        let until = now + self.plan.timing.election * 12;
        self.phase = Phase::Leaving { until, said: false };
    }

    /// Those beside the stack hand over, or say goodbye, in leaving.
    fn leads_eventual(&self, at: usize, now: Time) -> bool {
        matches!(self.seats[at].contest, Contest::Eventual)
            && self.answer(at, now).leader == Some(self.me.id)
    }

    fn go_on_leaving(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Phase::Leaving { until, said: false } = self.phase else { return };
        let leads = (0..self.seats.len()).any(|at| self.leads_eventual(at, now));
        if leads && now < until && !self.stack.membership().is_empty() {
            return;
        }
        self.phase = Phase::Leaving { until: now + GOODBYE, said: true };
        self.each(now, out, |contest, port| match contest {
            Contest::Eventual => {}
            Contest::Announced(announced) => announced.tell(Input::Leave, port),
            Contest::Leased(leased) => leased.leave(port),
            Contest::Learned(learned) => learned.leave(port),
            Contest::Central(central) => central.leave(port),
        });
        let left = self.stack.handle(now, Input::Leave, &mut self.below);
        debug_assert_eq!(left, Ok(()), "it runs");
    }

    /// A later life of ours runs elsewhere. It must not hear a goodbye in its own name.
    fn supersede(&mut self, by: Boot, out: &mut OutboxOf<Self>) {
        if by > self.me.boot && self.is_running() {
            let other = Peer::new(self.me.id, by);
            self.phase = Phase::Superseded(other);
            out.emit(Event::DuplicateIdentity { other });
        }
    }

    /// Whoever was stopped for longer than it may lead unseen gives up leading before anything else.
    fn notice_stall(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if !self.is_late(now) {
            return;
        }
        out.emit(Event::Stalled { lasted: now.since(self.due) });
        self.doubt_ourselves(1.0);
        (0..self.seats.len()).for_each(|at| self.void(now, at, out));
        self.drain(now, out);
    }
}

/// What the stack did.
impl Node {
    fn send_stack(&mut self, to: NodeId, message: stack::Message, out: &mut OutboxOf<Self>) {
        if let stack::Message::Election(group, said) = &message
            && let Ok(at) = self.position(*group)
        {
            let seat = &mut self.seats[at];
            if seat.barred.is_some() {
                return;
            }
            seat.sent.all += 1;
            let elects = !matches!(said, churn_tolerant::Message::Leader(_));
            seat.sent.electing += u64::from(elects);
        }
        out.send(to, Message::Stack(message));
    }

    fn drain(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        loop {
            while let Some(effect) = self.below.pop() {
                match effect {
                    Effect::Send { to, message } => self.send_stack(to, message, out),
                    Effect::Broadcast(message) => self.tell_some(&message, out),
                    Effect::Multicast(message) => self.tell_all(&message, out),
                    Effect::Persist(durable) => self.keep_stack(&durable, out),
                    Effect::Emit(stack::Event::Membership(event)) => {
                        self.on_membership(now, event, out);
                        out.emit(Event::Membership(event));
                    }
                    Effect::Emit(stack::Event::Election(..)) => {}
                }
            }
            if core::mem::take(&mut self.listed_changed) {
                self.tell_listed(now, out);
            }
            if !core::mem::take(&mut self.moved) {
                return;
            }
            self.measure(now);
        }
    }

    fn keep_stack(&mut self, durable: &stack::Durable, out: &mut OutboxOf<Self>) {
        let mut news = false;
        for &(group, durable) in &durable.elections {
            let kept = Kept::Eventual(durable);
            if self.durable.elections.get(&group) != Some(&kept) {
                self.durable.elections.insert(group, kept);
                news = true;
            }
        }
        if news {
            self.persist(out);
        }
    }

    fn on_membership(&mut self, now: Time, event: MembershipEvent, out: &mut OutboxOf<Self>) {
        self.each(now, out, |contest, port| {
            if let Contest::Learned(learned) = contest {
                learned.on_membership(event, port);
            }
        });
        self.listed_changed = true;
        let id = event.id();
        let about = self.stack.membership().introduction_of(id);
        let about = about.and_then(|known| About::from_details(&known.details));
        let placed = self.plan.about.position.is_some();
        let known = self.known.entry(id).or_default();
        if let Some(about) = about {
            known.name = about.name;
            self.moved |= placed && known.position != about.position;
            known.position = about.position;
        }
        if matches!(event, MembershipEvent::Failed { .. } | MembershipEvent::Left(_)) {
            self.seats.iter_mut().for_each(|seat| {
                seat.beliefs.remove(&id);
            });
        }
    }

    /// Tells those beside the stack who is alive, after the membership has changed.
    fn tell_listed(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.seats.iter().all(|seat| matches!(seat.contest, Contest::Eventual)) {
            return;
        }
        let membership = self.stack.membership();
        self.known.retain(|&id, _| membership.record_of(id).is_some());
        let lives = membership.members().filter_map(|member| {
            let (_, boot, _) = membership.record_of(member.id)?;
            Some(Peer::new(member.id, boot))
        });
        let standings = |id| {
            let known = membership.introduction_of(id)?;
            Some(Profile::from_details(&known.details).ok()?.standings)
        };
        let mut listed: Vec<Listed> = lives
            .map(|peer| Listed {
                peer,
                name: self.known.get(&peer.id).map(|known| known.name.clone()).unwrap_or_default(),
                standings: standings(peer.id).unwrap_or_default(),
            })
            .collect();
        let name = self.plan.about.name.clone();
        listed.push(Listed { peer: self.me, name, standings: self.standings() });
        self.each(now, out, |contest, port| match contest {
            Contest::Eventual | Contest::Announced(_) => {}
            Contest::Leased(leased) => leased.on_listed(&listed, port),
            Contest::Learned(learned) => learned.on_listed(&listed, port),
            Contest::Central(central) => central.on_listed(&listed, port),
        });
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
        let failed = matches!(input, Input::Feed(Fact::NotKept));
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
        self.learn_of_disk(now, failed, out);
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
        self.drain(now, out);
        self.go_on_leaving(now, out);
        self.drain(now, out);
        if !self.stack.membership().is_empty() {
            (self.alone, self.met) = (None, true);
        } else if self.met && self.alone.is_none() {
            self.alone = Some(now);
        }
        self.now = now;
        let ours = |at| self.answer(at, now).leader == Some(self.me.id);
        self.leads = (0..self.seats.len()).any(ours);
        self.due = self.deadline().map_or(Time::NEVER, |(at, _)| at);
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
        let disk = self.disk.retry().map(|retry| (retry, Timer::Disk));
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
            .chain(at(self.seek, Timer::Seek));
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

/// In words, for people.
pub fn hex(id: NodeId) -> String {
    format!("{:016x}", id.get())
}

/// What it costs to have been accused and to have contradicted. Arbitrary.
const ACCUSED: f64 = 0.5;
/// How often a leader looks at the clock, whatever else it has to do.
const LOOK: Duration = Duration::from_secs(1);
/// After that long everybody has been told goodbye, or will not be.
const GOODBYE: Duration = Duration::from_secs(2);
const PLACE: &str =
    "it is central: whoever has the best place on the map leads, and this node has it";
