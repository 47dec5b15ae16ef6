//! What a node is told to be, in the words an operator uses, and the one table that makes machines of it.
//!
//! Agent, scenarios and conformance suite all come through [`Settings::plan`]. Whatever a mode ships with stands in this
//! file and nowhere else, so that what was proven of a [`Plan`] was proven of what runs.
//!
//! | mode | machine | what the plan adds to the machine's own defaults |
//! |---|---|---|
//! | (below all) | [`medley`] | local health, watched leaders (`beat`), feedback in the chapter's proportions |
//! | `eventual` | [`churn_tolerant`] | hardened, gossip of LEADER, worth by attribute, grace after the start |
//! | `announced` | [`announce`] | hardened, uniform suppression, goodness by priority, goodbye twice |
//! | `leased` | [`leased`] on a [`ring`] of all members, [founded](super::founding) | a majority of names backs, aftermath, sticky, slack for real clocks |
//! | `learned` | [`bandit`], [voters bound by name](super::voters) | hardened, no pings of its own, four heartbeats a lease |
//! | `central` | [`central`] with [names](super::names) | the hardened core |

use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use super::profile::About;
use crate::{
    churn::estimate,
    election::{
        announce, bandit,
        central::{self, Criterion, Detection, Hysteresis, LinkState},
        churn_tolerant::{self, Form, Multicast, Variant},
        leased::{self, Flavour},
    },
    leadership::Mode,
    mechanism::pinged::Patience,
    membership::{
        medley::{self, Addresses, Attention, Details, DetailsTooLong, Strategy},
        ring,
    },
    stack::{Group, Standing},
    time::Duration,
};

/// All waits of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Timing {
    /// Which set of values this began as.
    pub profile: TimingProfile,
    /// Between two probes. Raising it saves traffic and finds failures later.
    pub period: Duration,
    /// For the answer to a probe, before others are asked to try. Above the longest round trip.
    pub ack: Duration,
    /// For a suspect to contradict. Raising it gives up the slow less often, and the dead later.
    pub suspicion: Duration,
    /// Between two signs of life of a leader to those that watch it. Lowering it replaces a failed leader sooner.
    pub beat: Duration,
    /// For the answers of an election. At least two journeys across the network.
    pub election: Duration,
    /// After the start, before a node that knows no leader asks for one.
    pub grace: Duration,
    /// Between two times of telling somebody who leads, unasked.
    pub refresh: Duration,
    /// Between two announcements of a leader (announced elections).
    pub announce: Duration,
    /// For the leader's announcement, before it is given up (announced elections).
    pub listen: Duration,
    /// The longest wait before claiming to lead (announced elections).
    pub suppress: Duration,
    /// `T_l`: one session of a lease; a leader may act for at most two without being backed anew (leased elections).
    /// Above the longest round trip and any pause of a healthy process. Lowering it replaces a failed leader sooner.
    pub lease: Duration,
    /// `T_a`: for the verdict of those asked who of two is to go (leased elections). Above the longest round trip.
    pub arbitration: Duration,
    /// For what a leader has begun to end in, once its lease is over: every successor waits for it (leased elections).
    pub step_down: Duration,
    /// The longest the node may be stopped or starved and still lead when it wakes.
    pub guard: Duration,
}

/// A named set of waits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TimingProfile {
    /// One machine.
    Local,
    /// One building.
    #[default]
    Lan,
    /// Between sites.
    Wan,
    /// Radio, several hops, loss.
    Mesh,
}

impl TimingProfile {
    /// All of them, as they are written.
    pub const ALL: [(&'static str, Self); 4] =
        [("local", Self::Local), ("lan", Self::Lan), ("wan", Self::Wan), ("mesh", Self::Mesh)];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Lan => "lan",
            Self::Wan => "wan",
            Self::Mesh => "mesh",
        }
    }

    /// Its values.
    ///
    /// Leaders are watched, so probing may be slow: without beats, a failover within 1.35 s took a period of 250 ms, at
    /// 120 kbit/s for 16 hosts together.
    pub const fn timing(self) -> Timing {
        let [period, ack, suspicion, beat, election, grace, refresh] = match self {
            Self::Local => [500, 30, 500, 50, 50, 300, 2_000],
            Self::Lan => [2_000, 80, 2_000, 200, 100, 1_000, 5_000],
            Self::Wan => [3_000, 600, 6_000, 600, 750, 5_000, 10_000],
            Self::Mesh => [3_000, 500, 6_000, 1_000, 1_000, 6_000, 10_000],
        };
        let [announce, listen, suppress, guard] = match self {
            Self::Local => [100, 350, 100, 150],
            Self::Lan => [300, 1_000, 200, 400],
            Self::Wan => [2_000, 7_000, 2_000, 3_000],
            Self::Mesh => [2_000, 9_000, 2_000, 4_000],
        };
        let [lease, arbitration, step_down] = match self {
            Self::Local => [200, 100, 200],
            Self::Lan => [500, 250, 500],
            Self::Wan => [3_000, 1_500, 3_000],
            Self::Mesh => [4_000, 2_000, 4_000],
        };
        Timing {
            profile: self,
            period: Duration::from_millis(period),
            ack: Duration::from_millis(ack),
            suspicion: Duration::from_millis(suspicion),
            beat: Duration::from_millis(beat),
            election: Duration::from_millis(election),
            grace: Duration::from_millis(grace),
            refresh: Duration::from_millis(refresh),
            announce: Duration::from_millis(announce),
            listen: Duration::from_millis(listen),
            suppress: Duration::from_millis(suppress),
            lease: Duration::from_millis(lease),
            arbitration: Duration::from_millis(arbitration),
            step_down: Duration::from_millis(step_down),
            guard: Duration::from_millis(guard),
        }
    }

    /// How much near members are preferred, and who is probed out of proportion. Where all are as good as near nobody is.
    pub const fn probing(self) -> (f64, Feedback) {
        match self {
            Self::Local | Self::Lan | Self::Wan => (0.0, Feedback::None),
            Self::Mesh => (3.0, Feedback::Both),
        }
    }

    /// Between two beacons, and for how long a silent neighbour is believed to be there: three may get lost.
    pub const fn beacons(self) -> (Duration, Duration) {
        let (period, silence) = match self {
            Self::Local => (100, 350),
            Self::Lan => (300, 1_000),
            Self::Wan | Self::Mesh => (1_000, 3_500),
        };
        (Duration::from_millis(period), Duration::from_millis(silence))
    }
}

impl Timing {
    /// Every wait and its name.
    pub fn waits(&self) -> [(&'static str, Duration); 14] {
        let mut copy = *self;
        copy.waits_mut().map(|(name, wait)| (name, *wait))
    }

    /// The same, to be set.
    pub fn waits_mut(&mut self) -> [(&'static str, &mut Duration); 14] {
        [
            ("period", &mut self.period),
            ("ack", &mut self.ack),
            ("suspicion", &mut self.suspicion),
            ("beat", &mut self.beat),
            ("election", &mut self.election),
            ("grace", &mut self.grace),
            ("refresh", &mut self.refresh),
            ("announce", &mut self.announce),
            ("listen", &mut self.listen),
            ("suppress", &mut self.suppress),
            ("lease", &mut self.lease),
            ("arbitration", &mut self.arbitration),
            ("step_down", &mut self.step_down),
            ("guard", &mut self.guard),
        ]
    }

    /// The soonest that others may give up a leader that falls silent.
    pub fn given_up_after(&self) -> Duration {
        let Watched { silence, probe, suspicion } = self.watched();
        silence + probe + suspicion
    }

    /// How a leader that falls silent is given up.
    pub fn watched(&self) -> Watched {
        let silence = self.beat * 3;
        let suspicion = silence.div(2).max(self.ack * 2);
        Watched { silence, probe: self.ack * 3, suspicion }
    }
}

/// The parts of the time until a silent leader is given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Watched {
    /// Until somebody asks.
    pub silence: Duration,
    /// For an answer.
    pub probe: Duration,
    /// To contradict.
    pub suspicion: Duration,
}

/// Who is probed out of proportion.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Feedback {
    /// Nobody.
    None,
    /// Those that complain of being probed too rarely.
    Active,
    /// Now and then, those not heard of for long.
    Passive,
    /// Both.
    Both,
}

impl Feedback {
    /// All of them, as they are written.
    pub const ALL: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("active", Self::Active),
        ("passive", Self::Passive),
        ("both", Self::Both),
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Active => "active",
            Self::Passive => "passive",
            Self::Both => "both",
        }
    }
}

/// What a node is in an election.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Role {
    /// It may lead.
    #[default]
    Candidate,
    /// It never leads.
    Observer,
    /// It votes, and never leads.
    Witness,
}

/// One named election a node takes part in.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ElectionSettings {
    /// Its name, the same on every node.
    pub name: String,
    /// What is promised, and by which protocol; the same on every node.
    pub mode: ModeSettings,
    /// What this node is in it.
    pub role: Role,
    /// What this node is worth there; more is better.
    pub priority: u32,
}

/// A promise and the settings of the protocol that keeps it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ModeSettings {
    /// One leader per connected part, once it is quiet; no quorum.
    Eventual(EventualSettings),
    /// One leader per segment of local multicast; nothing to configure.
    Announced(AnnouncedSettings),
    /// At most one leader may act at any instant; a majority of the members.
    Leased(LeasedSettings),
    /// At most one leader to a term, by the votes of a majority, whoever was the most reliable.
    Learned(LearnedSettings),
    /// The most central node of each connected part of a mesh leads it.
    Central(CentralSettings),
}

/// Settings of an eventual election.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct EventualSettings {
    /// Which of the four protocols.
    pub variant: Variant,
    /// From how many other lists a live node may be missing. Raising it costs two messages an election.
    pub c: u16,
    /// How many may crash while an election runs. Raising it costs two messages an election.
    pub f: u16,
    /// By how much a challenger's priority must exceed the leader's.
    pub margin: u32,
    /// What a leader does that hears nobody any more.
    pub on_isolation: OnIsolation,
    /// Whether a node is worth what it has been found to be good for, and not what is configured.
    pub learned: bool,
}

/// What a leader does that hears nobody any more.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum OnIsolation {
    /// It goes on leading: a network of one has a leader, and so has the other part.
    #[default]
    Hold,
    /// It goes on for so long.
    HoldFor(Duration),
    /// It stops leading once it has given up on all others.
    StepDown,
}

impl fmt::Display for OnIsolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hold => f.write_str("hold"),
            Self::HoldFor(time) => write!(f, "hold-for {time}"),
            Self::StepDown => f.write_str("step-down"),
        }
    }
}

/// Settings of an announced election.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct AnnouncedSettings {
    /// Whether a better newcomer leaves a leader in office alone.
    pub sticky: bool,
}

/// Settings of a leased election; the same on every node.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LeasedSettings {
    /// All that can ever be members, by name, ascending. Whoever leads is backed by more than half of them.
    pub members: Vec<String>,
    /// On what a leader's authority rests.
    pub flavour: Flavour,
    /// By how many millionths a clock may be fast or slow.
    pub drift: u32,
    /// Whether those with the best record come first, and how hard it is to replace a leader; else a hash decides.
    pub learned: Option<Keeping>,
}

/// How hard it is to replace a leader by one with a better record.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Keeping {
    /// For how long it is left in office, whoever is better.
    pub tenure: Duration,
    /// By how many thousandths the other must be worth more.
    pub margin: u32,
}

/// Settings of a learned election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LearnedSettings {
    /// Whose majority decides, by name, in order; the same on every node.
    pub voters: Vec<String>,
    /// How estimates become candidates.
    pub policy: Policy,
    /// How long a leader is believed that is not heard; as the timing says if not set.
    pub lease: Option<Duration>,
    /// How often a member is sampled; as the timing says if not set.
    pub sample: Option<Duration>,
    /// How many samples of a member count. Raising it forgives later.
    pub memory: u16,
    /// For how long a leader is left in office, whoever is better.
    pub tenure: Duration,
    /// By how many hundredths a challenger must be more reliable.
    pub margin: u32,
}

/// How estimates become candidates; see `docs/protocols/bandit.md`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Policy {
    /// The most reliable; now and then, less and less, at random.
    EpsilonGreedy,
    /// The most reliable, with a bonus for whoever is little known.
    Ucb,
    /// The same, with old samples worth less and less.
    Discounted,
    /// The same, on the last samples alone.
    Sliding,
    /// The best of what is drawn from what is believed; old samples are worth less and less.
    #[default]
    Thompson,
}

impl Policy {
    /// All of them, as they are written.
    pub const ALL: [(&'static str, Self); 5] = [
        ("epsilon-greedy", Self::EpsilonGreedy),
        ("ucb", Self::Ucb),
        ("discounted", Self::Discounted),
        ("sliding", Self::Sliding),
        ("thompson", Self::Thompson),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("thompson", |&(name, _)| name)
    }
}

/// Settings of a central election.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CentralSettings {
    /// When changes of the map are passed on.
    pub spread: Spread,
    /// By what the leader is the best.
    pub criterion: Criterion,
    /// How much better another must be, or for how long.
    pub hysteresis: Option<Hysteresis>,
    /// How far the map goes, in hops; everywhere if `None`.
    pub horizon: Option<u32>,
    /// Who is in range.
    pub neighbours: Neighbours,
}

/// When changes of the map are passed on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Spread {
    /// At once; others' with this probability, in thousandths, and not where a twin will.
    AtOnce(u32),
    /// Together, every so often.
    Tick(Duration),
}

/// How it is known who is in range.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Neighbours {
    /// By beacons on the local link; what is `None` is as the profile says.
    Beacons {
        /// Between two beacons.
        period: Option<Duration>,
        /// How long a silent neighbour is believed to be there.
        silence: Option<Duration>,
    },
    /// The host says so ([`Fact::InRange`](super::Fact::InRange)), by the table of a routing daemon.
    Given,
}

/// What a priority is unless something else is said: in the middle, so that some can be worth less without all having to
/// say so.
pub const PRIORITY: u32 = 100;
/// The highest priority.
pub const HIGHEST: u32 = 1_000_000;
/// A tenth of what a learned worth may be: nobody takes over from a leader for a hiccup.
pub const LEARNED_MARGIN: u32 = 100;
/// How long a leader chosen by record is left in office, unless something else is said.
pub const TENURE: Duration = Duration::from_secs(60);

impl ModeSettings {
    /// Which promise.
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Eventual(_) => Mode::Eventual,
            Self::Announced(_) => Mode::Announced,
            Self::Leased(_) => Mode::Leased,
            Self::Learned(_) => Mode::Learned,
            Self::Central(_) => Mode::Central,
        }
    }

    /// As it is written.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Eventual(_) => "eventual",
            Self::Announced(_) => "announced",
            Self::Leased(_) => "leased",
            Self::Learned(_) => "learned",
            Self::Central(_) => "central",
        }
    }

    /// Whether it is decided by what is said to everybody on the local link.
    pub const fn is_multicast(&self) -> bool {
        match self {
            Self::Eventual(_) | Self::Leased(_) | Self::Learned(_) => false,
            Self::Announced(_) => true,
            Self::Central(central) => matches!(central.neighbours, Neighbours::Beacons { .. }),
        }
    }
}

impl Default for EventualSettings {
    fn default() -> Self {
        Self {
            variant: Variant::Hybrid,
            c: 4,
            f: 1,
            margin: 0,
            on_isolation: OnIsolation::default(),
            learned: false,
        }
    }
}

impl Default for AnnouncedSettings {
    fn default() -> Self {
        Self { sticky: true }
    }
}

impl LeasedSettings {
    /// These members, and the defaults.
    pub fn of(members: impl IntoIterator<Item = String>) -> Self {
        let mut members: Vec<String> = members.into_iter().collect();
        members.sort_unstable();
        Self { members, flavour: Flavour::Quorum, drift: 1_000, learned: None }
    }
}

impl LearnedSettings {
    /// These voters, and the defaults.
    pub fn of(voters: impl IntoIterator<Item = String>) -> Self {
        let mut voters: Vec<String> = voters.into_iter().collect();
        voters.sort_unstable();
        Self {
            voters,
            policy: Policy::default(),
            lease: None,
            sample: None,
            memory: 50,
            tenure: TENURE,
            margin: 20,
        }
    }

    /// How long a leader is believed that is not heard.
    pub fn lease(&self, timing: &Timing) -> Duration {
        self.lease.unwrap_or(timing.beat * 10)
    }

    /// How often a member is sampled.
    pub fn sample(&self, timing: &Timing) -> Duration {
        self.sample.unwrap_or(timing.period * 5)
    }
}

impl Default for CentralSettings {
    fn default() -> Self {
        Self {
            spread: Spread::AtOnce(1_000),
            criterion: Criterion::Closeness,
            hysteresis: None,
            horizon: None,
            neighbours: Neighbours::Beacons { period: None, silence: None },
        }
    }
}

impl CentralSettings {
    /// Period and silence; `None` if the host says who is in range.
    pub fn beacons(&self, profile: TimingProfile) -> Option<(Duration, Duration)> {
        let (default, patience) = profile.beacons();
        match self.neighbours {
            Neighbours::Beacons { period, silence } => {
                Some((period.unwrap_or(default), silence.unwrap_or(patience)))
            }
            Neighbours::Given => None,
        }
    }
}

impl Default for ElectionSettings {
    fn default() -> Self {
        Self::of("default", ModeSettings::Eventual(EventualSettings::default()))
    }
}

impl ElectionSettings {
    /// A candidate of ordinary worth.
    pub fn of(name: &str, mode: ModeSettings) -> Self {
        Self { name: name.to_owned(), mode, role: Role::Candidate, priority: PRIORITY }
    }

    /// Whether what a node is worth is configured.
    pub fn has_priority(&self) -> bool {
        match &self.mode {
            ModeSettings::Eventual(eventual) => !eventual.learned,
            ModeSettings::Announced(_) => true,
            ModeSettings::Leased(_) | ModeSettings::Learned(_) | ModeSettings::Central(_) => false,
        }
    }
}

/// What a node is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What others read about it.
    pub about: About,
    /// Where others reach it, best first.
    pub addresses: Addresses,
    /// How often and how long.
    pub timing: Timing,
    /// How much near members are preferred: 0 is not at all. As the profile says if `None`.
    pub exponent: Option<f64>,
    /// Who is probed out of proportion. As the profile says if `None`.
    pub feedback: Option<Feedback>,
    /// What it takes part in. The first is the one meant if none is named.
    pub elections: Vec<ElectionSettings>,
}

/// Settings that contradict each other, or what a protocol's bounds refuse.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

impl SettingsError {
    fn of(election: &str, problem: impl fmt::Display) -> Self {
        Self(format!("election {election:?}: {problem}"))
    }
}

/// A node's machines, configured: what [`Node::new`](super::Node::new) builds. Made by [`Settings::plan`].
#[derive(Clone, Debug)]
pub struct Plan {
    /// What others read about it.
    pub about: About,
    /// Where others reach it, best first.
    pub addresses: Addresses,
    /// Of the membership.
    pub gossip: medley::Config,
    /// How `c` is kept current.
    pub survey: estimate::Config,
    /// The elections, as configured.
    pub seats: Vec<SeatPlan>,
    /// How often and how long.
    pub timing: Timing,
    /// Between two samples of what the node is worth by its own record.
    pub sample: Duration,
}

/// One election, configured.
#[derive(Clone, Debug)]
pub struct SeatPlan {
    /// Its name.
    pub name: String,
    /// How it is decided.
    pub protocol: Protocol,
    /// Whether the node may lead, and what it is worth.
    pub standing: Standing,
    /// What it is in it, as others are told.
    pub role: Role,
    /// What a leader does that hears nobody any more.
    pub on_isolation: OnIsolation,
    /// Whether what the node is worth is learnt from its own record.
    pub learns: bool,
}

/// How an election is decided: the configuration of its machine.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// On the gossip membership.
    Eventual(churn_tolerant::Config),
    /// Over multicast.
    Announced(announce::Config),
    /// On a ring that is founded when enough members are there.
    Leased(FoundingConfig),
    /// By voters that are bound by name.
    Learned(VotersConfig),
    /// By a map of who hears whom.
    Central(central::Config),
}

/// Of a [leased](super::founding) election.
#[derive(Clone, Debug)]
pub struct FoundingConfig {
    /// Of the ring.
    pub ring: ring::Config,
    /// Of the election on it.
    pub election: leased::Config,
    /// By name, ascending: all that can ever be members.
    pub members: Vec<String>,
    /// Whether this node votes and never leads.
    pub witness: bool,
    /// How long what a leader has begun may go on once its authority is over.
    pub step_down: Duration,
    /// How long what it said may be counted on, after which it speaks again: see [`FoundingConfig::quiet`].
    pub quiet: Duration,
    /// Whether those with the best record come first. Nothing safety rests on: see [`leased::Command::Weigh`].
    pub learned: Option<Keeping>,
}

/// Of a [learned](super::voters) election.
#[derive(Clone, Debug)]
pub struct VotersConfig {
    /// Who votes, by name in order.
    pub voters: Vec<String>,
    /// And how.
    pub config: bandit::Config,
}

impl Protocol {
    /// Which promise.
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Eventual(_) => Mode::Eventual,
            Self::Announced(_) => Mode::Announced,
            Self::Leased(_) => Mode::Leased,
            Self::Learned(_) => Mode::Learned,
            Self::Central(_) => Mode::Central,
        }
    }
}

impl Plan {
    /// What this node tells all others of itself.
    ///
    /// # Errors
    ///
    /// [`DetailsTooLong`] if name, tags and elections together do not fit.
    pub fn introduction(&self) -> Result<(Addresses, Details), DetailsTooLong> {
        let standings =
            self.seats.iter().map(|seat| (Group::named(&seat.name), seat.standing)).collect();
        Ok((self.addresses.clone(), self.about.to_details(standings)?))
    }
}

impl Settings {
    /// A node of this name and timing, with nothing special about it.
    pub fn new(name: &str, timing: Timing, elections: Vec<ElectionSettings>) -> Self {
        Self {
            about: About { name: name.to_owned(), ..About::default() },
            addresses: Addresses::new([]),
            timing,
            exponent: None,
            feedback: None,
            elections,
        }
    }

    /// The machines of such a node.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] names the election and what is wrong with it.
    pub fn plan(&self) -> Result<Plan, SettingsError> {
        let failed = |error: &dyn fmt::Display| SettingsError(error.to_string());
        let seats = self.elections.iter().map(|election| self.seat(election));
        let c = self.elections.iter().filter_map(|election| match &election.mode {
            ModeSettings::Eventual(eventual) => Some(u32::from(eventual.c)),
            _ => None,
        });
        let survey = estimate::Config::of(10).map_err(|error| failed(&error))?;
        let plan = Plan {
            about: self.about.clone(),
            addresses: self.addresses.clone(),
            gossip: self.gossip().map_err(|error| failed(&error))?,
            survey: estimate::Config { start: c.max().unwrap_or(0), ..survey },
            seats: seats.collect::<Result<_, _>>()?,
            timing: self.timing,
            sample: self.timing.period * 5,
        };
        match plan.introduction() {
            Ok(_) => Ok(plan),
            Err(error) => Err(SettingsError(format!("name, tags and elections together: {error}"))),
        }
    }

    /// Feedback waits in the chapter's proportions to the period, as its times are not ours.
    fn gossip(&self) -> Result<medley::Config, medley::ConfigError> {
        let timing = &self.timing;
        let (exponent, feedback) = timing.profile.probing();
        let strategy = match self.feedback.unwrap_or(feedback) {
            Feedback::None => Strategy::Medley,
            Feedback::Active => Strategy::Active,
            Feedback::Passive => Strategy::Passive,
            Feedback::Both => Strategy::Both,
        };
        let interval = timing.suspicion.div(2).max(timing.period * 4);
        let patience = Patience { interval, gain: 0.125, silence: Some(interval * 2) };
        let attention = Attention { timeout: timing.period * 20, chance: 0.1 };
        let gossip = medley::Config::new(strategy, medley::Form::Hardened)
            .with_exponent(self.exponent.unwrap_or(exponent))?
            .with_times(timing.period, timing.ack, timing.suspicion)?
            .with_patience(patience)?
            .with_attention(attention)?
            .with_beat(Some(timing.beat))?;
        Ok(gossip.with_local_health(true))
    }

    fn seat(&self, election: &ElectionSettings) -> Result<SeatPlan, SettingsError> {
        let ElectionSettings { name, mode, role, priority } = election;
        // Whoever has no vote cannot be elected either.
        let listens = match mode {
            ModeSettings::Learned(learned) => !learned.voters.contains(&self.about.name),
            _ => false,
        };
        let observer = *role != Role::Candidate || listens;
        let on_isolation = match mode {
            ModeSettings::Eventual(eventual) => eventual.on_isolation,
            _ => OnIsolation::default(),
        };
        let learns = match mode {
            ModeSettings::Eventual(eventual) => eventual.learned,
            ModeSettings::Leased(leased) => leased.learned.is_some(),
            _ => false,
        };
        Ok(SeatPlan {
            name: name.clone(),
            protocol: self.protocol(election)?,
            standing: Standing { observer, attribute: *priority },
            role: *role,
            on_isolation,
            learns,
        })
    }

    fn protocol(&self, election: &ElectionSettings) -> Result<Protocol, SettingsError> {
        let name = &election.name;
        Ok(match &election.mode {
            ModeSettings::Eventual(eventual) => Protocol::Eventual(
                self.eventual(eventual).map_err(|error| SettingsError::of(name, error))?,
            ),
            ModeSettings::Announced(announced) => Protocol::Announced(
                self.announced(announced, election.priority)
                    .map_err(|error| SettingsError::of(name, error))?,
            ),
            ModeSettings::Leased(leased) => Protocol::Leased(
                self.leased(leased, election).map_err(|error| SettingsError::of(name, error))?,
            ),
            ModeSettings::Learned(learned) => Protocol::Learned(VotersConfig {
                voters: learned.voters.clone(),
                config: self.learned(learned).map_err(|error| SettingsError::of(name, error))?,
            }),
            ModeSettings::Central(central) => Protocol::Central(
                self.central(central).map_err(|error| SettingsError::of(name, error))?,
            ),
        })
    }

    fn eventual(
        &self,
        eventual: &EventualSettings,
    ) -> Result<churn_tolerant::Config, churn_tolerant::ConfigError> {
        let timing = &self.timing;
        let gossip = Multicast::Gossip { spread: 2, refresh: timing.refresh };
        let criterion = churn_tolerant::Criterion::Attribute;
        let machine = churn_tolerant::Config::new(eventual.variant, Form::Hardened)
            .with_bounds(eventual.c, eventual.f)?
            .with_timeout(timing.election)?
            .with_criterion(criterion, eventual.margin)?
            .with_multicast(gossip)?;
        Ok(machine.with_grace(Some(timing.grace)))
    }

    fn announced(
        &self,
        announced: &AnnouncedSettings,
        priority: u32,
    ) -> Result<announce::Config, announce::ConfigError> {
        let timing = &self.timing;
        let suppression = announce::Suppression::Uniform(timing.suppress);
        let goodness = f64::from(priority) / f64::from(HIGHEST);
        let tenure = match announced.sticky {
            true => announce::Tenure::Sticky,
            false => announce::Tenure::Preemptive,
        };
        let bye = announce::Bye { copies: 2, spacing: timing.announce.div(4) };
        let rules = announce::Rules::Hardened;
        announce::Config::new(timing.announce, Some(timing.listen), suppression, rules)?
            .with_criterion(announce::Criterion::Goodness(goodness))?
            .with_tenure(tenure)?
            .with_bye(bye)
    }

    /// Everybody leases from everybody: lists of members are short.
    fn leased(
        &self,
        settings: &LeasedSettings,
        election: &ElectionSettings,
    ) -> Result<FoundingConfig, ring::ConfigError> {
        let (timing, members) = (&self.timing, settings.members.len());
        let ring = ring::Config::hardened()
            .with_neighbours((members / 2).max(1))?
            .with_times(timing.lease, timing.arbitration)?
            .with_drift(settings.drift)?;
        // A ring on a real clock, which wakes nobody on the microsecond. With a quorum of names it decides over places
        // only, and joiners may be late; without, the promise rests on it, and it gets what the clock needs, no more.
        let slack = match settings.flavour {
            Flavour::Quorum => ring.arbitration().div(2),
            Flavour::Conservative | Flavour::Fast => ring.arbitration().div(10),
        };
        let ring = ring.with_slack(slack);
        let backers = ring::geometry::majority(members);
        let machine = leased::Config::new(settings.flavour)
            .with_key(u64::from(Group::named(&election.name).number()))
            .with_min_members(backers)
            .with_backers(backers)
            .with_aftermath(timing.step_down)
            .with_sticky(true)
            .with_margin(settings.learned.map_or(0, |keeping| keeping.margin));
        Ok(FoundingConfig {
            quiet: ring.waiting(ring.session() * 2 + timing.step_down),
            ring,
            election: machine,
            members: settings.members.clone(),
            witness: election.role == Role::Witness,
            step_down: timing.step_down,
            learned: settings.learned,
        })
    }

    /// The membership probes everybody already, so no pings of its own; four heartbeats a lease, so that losing one or
    /// two deposes nobody.
    fn learned(&self, learned: &LearnedSettings) -> Result<bandit::Config, bandit::ConfigError> {
        let timing = &self.timing;
        let memory = f64::from(learned.memory);
        // The mean age of what counts is as long as the buffer of those that have one.
        let discount = 1.0 - 1.0 / memory.max(1.0);
        let policy = match learned.policy {
            Policy::EpsilonGreedy => bandit::Policy::EPSILON_GREEDY,
            Policy::Ucb => bandit::Policy::Ucb { weight: OPTIMISM },
            Policy::Discounted => bandit::Policy::DiscountedUcb { weight: OPTIMISM, discount },
            Policy::Sliding => {
                let voters = u32::try_from(learned.voters.len()).unwrap_or(1);
                bandit::Policy::SlidingUcb {
                    weight: OPTIMISM,
                    window: u32::from(learned.memory) * voters,
                }
            }
            Policy::Thompson => bandit::Policy::Thompson { discount },
        };
        let buffer = matches!(learned.policy, Policy::EpsilonGreedy | Policy::Ucb);
        let config = bandit::Config::new(bandit::Profile::Hardened, policy);
        let waits = bandit::Waits {
            collect: timing.election * 3,
            confirm: timing.election * 4,
            ..config.waits()
        };
        config
            .with_policy(policy)?
            .with_buffer(buffer.then_some(learned.memory))?
            .with_pings(None)?
            .with_waits(waits)?
            .with_heartbeat(learned.lease(timing).div(4))?
            .with_patience(4)?
            .with_sample(learned.sample(timing))?
            .with_tenure(learned.tenure, Some(f64::from(learned.margin) / 100.0))
    }

    /// Hardened: nodes have no use for the forms that end wrong.
    fn central(&self, settings: &CentralSettings) -> Result<central::Config, central::ConfigError> {
        let detection = match settings.beacons(self.timing.profile) {
            Some((period, timeout)) => Detection::Beacons { period, timeout },
            None => Detection::Given,
        };
        let core = match settings.spread {
            Spread::AtOnce(rho) => LinkState::at_once(f64::from(rho) / 1_000.0),
            Spread::Tick(tick) => LinkState::ticking(tick),
        };
        let core = LinkState { horizon: settings.horizon, ..core };
        let machine = central::Config::new(central::Profile::LinkState(core), detection)?
            .with_criterion(settings.criterion)?;
        settings.hysteresis.map_or(Ok(machine), |hysteresis| machine.with_hysteresis(hysteresis))
    }
}

/// `c` of UCB: a fraction of the difference between good and bad, where the program's 2 drowns it. Arbitrary.
const OPTIMISM: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_keeps_its_own_rules() {
        for (_, profile) in TimingProfile::ALL {
            let timing = profile.timing();
            let Timing { period, ack, beat, suspicion, .. } = timing;
            let Timing { election, refresh, announce, listen, guard, .. } = timing;
            assert!(ack <= beat && beat < period && period <= suspicion, "{profile:?}");
            assert!(listen >= announce + announce, "{profile:?}");
            assert!(guard < timing.given_up_after(), "{profile:?}");
            assert!(refresh >= election, "{profile:?}");
        }
    }

    /// `config explain` reckons with it; a protocol that makes up its own wait would belie both.
    #[test]
    fn a_suspect_has_as_long_as_is_configured() {
        for (_, profile) in TimingProfile::ALL {
            let timing = profile.timing();
            let plan = Settings::new("a", timing, vec![]).plan().unwrap();
            assert_eq!(plan.gossip.suspicion_bounds(16), (timing.suspicion, timing.suspicion));
        }
    }
}
