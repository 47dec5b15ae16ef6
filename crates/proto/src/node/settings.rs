//! What a node can be told to be, in the words an operator uses.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use core::fmt;

use super::{
    profile::About,
    timing::{Timing, TimingProfile},
};
use crate::{
    election::{
        central::{Criterion, Hysteresis},
        churn_tolerant::Variant,
        leased::Flavour,
    },
    leadership::Mode,
    membership::medley::Addresses,
    time::Duration,
};

/// Who is probed out of proportion.
///
/// ```
/// use bellwether_proto::node::{Feedback, Settings, TimingProfile};
///
/// let mut settings = Settings::new("a", TimingProfile::Mesh.timing(), vec![]);
/// settings.feedback = Some(Feedback::Passive);
/// assert_eq!(Feedback::Passive.name(), "passive");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Feedback {
    /// Nobody is: all are probed alike.
    None,
    /// Those that complain of being probed too rarely.
    Active,
    /// Now and then, those not heard of for long.
    Passive,
    /// Those of [`Feedback::Active`] and of [`Feedback::Passive`].
    Both,
}

impl Feedback {
    /// All of them, by their words in settings.
    pub const ALL: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("active", Self::Active),
        ("passive", Self::Passive),
        ("both", Self::Both),
    ];

    /// The word for it in settings.
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
///
/// ```
/// use bellwether_proto::node::{ElectionSettings, Role};
///
/// let watches = ElectionSettings { role: Role::Observer, ..ElectionSettings::default() };
/// assert_eq!(watches.role.name(), "observer");
/// ```
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

impl Role {
    /// The word for it in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Observer => "observer",
            Self::Witness => "witness",
        }
    }
}

/// One named election a node takes part in.
///
/// ```
/// use bellwether_proto::node::{ElectionSettings, LeasedSettings, ModeSettings};
///
/// let members = ["kitchen", "cellar", "attic"].map(String::from);
/// let backup = ElectionSettings::of("backup", ModeSettings::Leased(LeasedSettings::of(members)));
/// assert_eq!((backup.name.as_str(), backup.mode.name()), ("backup", "leased"));
/// ```
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
///
/// ```
/// use bellwether_proto::{Mode, node::{EventualSettings, ModeSettings}};
///
/// let mode = ModeSettings::Eventual(EventualSettings::default());
/// assert_eq!(mode.mode(), Mode::Eventual);
/// ```
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
///
/// ```
/// use bellwether_proto::node::{EventualSettings, OnIsolation};
///
/// // Whoever hears nobody stops leading.
/// let on_isolation = OnIsolation::StepDown;
/// let settings = EventualSettings { on_isolation, ..EventualSettings::default() };
/// ```
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
///
/// ```
/// use bellwether_proto::{Duration, node::OnIsolation};
///
/// let hold = OnIsolation::HoldFor(Duration::from_secs(30));
/// assert_eq!(hold.to_string(), "hold-for 30s");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum OnIsolation {
    /// It goes on leading if the others went one by one, or there was only one: then it is what is left. Whoever stops
    /// hearing two or more at once is itself cut off, or deaf, and stops (HB-10).
    #[default]
    Auto,
    /// It goes on leading: a network of one has a leader, and so has the other part.
    Hold,
    /// It goes on for so long.
    HoldFor(Duration),
    /// It stops leading once it has given up on all others.
    StepDown,
}

impl fmt::Display for OnIsolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Hold => f.write_str("hold"),
            Self::HoldFor(time) => write!(f, "hold-for {time}"),
            Self::StepDown => f.write_str("step-down"),
        }
    }
}

/// Settings of an announced election.
///
/// ```
/// use bellwether_proto::node::AnnouncedSettings;
///
/// let always_the_best = AnnouncedSettings { sticky: false };
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct AnnouncedSettings {
    /// Whether a better newcomer leaves a leader in office alone.
    pub sticky: bool,
}

/// Settings of a leased election; the same on every node.
///
/// ```
/// use bellwether_proto::node::{Flavour, LeasedSettings};
///
/// let settings = LeasedSettings::of(["c", "a", "b"].map(String::from));
/// assert_eq!(settings.members, ["a", "b", "c"]);
/// assert_eq!(settings.flavour, Flavour::Quorum);
/// ```
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
///
/// ```
/// use bellwether_proto::{Duration, node::{Keeping, LeasedSettings}};
///
/// let mut settings = LeasedSettings::of(["a", "b", "c"].map(String::from));
/// settings.learned = Some(Keeping { tenure: Duration::from_secs(60), margin: 100 });
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Keeping {
    /// For how long it is left in office, whoever is better.
    pub tenure: Duration,
    /// By how many thousandths the other must be worth more.
    pub margin: u32,
}

/// Settings of a learned election.
///
/// ```
/// use bellwether_proto::{Duration, node::{LearnedSettings, TimingProfile}};
///
/// let settings = LearnedSettings::of(["a", "b", "c"].map(String::from));
/// assert_eq!(settings.lease(&TimingProfile::Lan.timing()), Duration::from_secs(1));
/// ```
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
///
/// ```
/// use bellwether_proto::node::{LearnedSettings, Policy};
///
/// let mut settings = LearnedSettings::of(["a", "b", "c"].map(String::from));
/// assert_eq!(settings.policy, Policy::Thompson);
/// settings.policy = Policy::Ucb;
/// assert_eq!(settings.policy.name(), "ucb");
/// ```
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
    /// All of them, by their words in settings.
    pub const ALL: [(&'static str, Self); 5] = [
        ("epsilon-greedy", Self::EpsilonGreedy),
        ("ucb", Self::Ucb),
        ("discounted", Self::Discounted),
        ("sliding", Self::Sliding),
        ("thompson", Self::Thompson),
    ];

    /// The word for it in settings.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("thompson", |&(name, _)| name)
    }
}

/// Settings of a central election.
///
/// ```
/// use bellwether_proto::node::{CentralSettings, Criterion};
///
/// let settings = CentralSettings { criterion: Criterion::Degree, ..CentralSettings::default() };
/// ```
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
///
/// ```
/// use bellwether_proto::{Duration, node::{CentralSettings, Spread}};
///
/// let mut settings = CentralSettings::default();
/// settings.spread = Spread::Tick(Duration::from_millis(200));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Spread {
    /// At once; others' with this probability, in thousandths, and not where a twin will.
    AtOnce(u32),
    /// Together, every so often.
    Tick(Duration),
}

/// How it is known who is in range.
///
/// ```
/// use bellwether_proto::{Duration, node::{CentralSettings, Neighbours, TimingProfile}};
///
/// let mut settings = CentralSettings::default();
/// let (period, silence) = settings.beacons(TimingProfile::Mesh).unwrap();
/// assert!(silence > period * 3, "three beacons may get lost");
/// settings.neighbours = Neighbours::Given;
/// assert_eq!(settings.beacons(TimingProfile::Mesh), None);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Neighbours {
    /// By beacons on the local link; what is `None` is as the profile says.
    Beacons {
        /// Time between two beacons.
        period: Option<Duration>,
        /// How long a silent neighbour is believed to be there.
        silence: Option<Duration>,
    },
    /// The host says so ([`Fact::InRange`](super::Fact::InRange)), by the table of a routing daemon.
    Given,
}

/// What a priority is unless something else is said: in the middle, so that some can be worth less without all having to
/// say so.
///
/// ```
/// use bellwether_proto::node::{ElectionSettings, PRIORITY};
///
/// let mut gateway = ElectionSettings::default();
/// gateway.priority = PRIORITY + 50;
/// ```
pub const PRIORITY: u32 = 100;
/// The highest priority.
///
/// ```
/// use bellwether_proto::node::{HIGHEST, PRIORITY};
///
/// assert!(PRIORITY < HIGHEST);
/// ```
pub const HIGHEST: u32 = 1_000_000;
/// A tenth of what a learned worth may be: nobody takes over from a leader for a hiccup.
pub const LEARNED_MARGIN: u32 = 100;
/// How long a leader chosen by record is left in office, unless something else is said.
pub const TENURE: Duration = Duration::from_secs(60);

impl ModeSettings {
    /// Which promise it is.
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Eventual(_) => Mode::Eventual,
            Self::Announced(_) => Mode::Announced,
            Self::Leased(_) => Mode::Leased,
            Self::Learned(_) => Mode::Learned,
            Self::Central(_) => Mode::Central,
        }
    }

    /// The word for it in settings.
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
        self.lease.unwrap_or(timing.beat * 5)
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
///
/// ```
/// use bellwether_proto::node::{Addresses, ElectionSettings, Settings, TimingProfile};
///
/// let elections = vec![ElectionSettings::default()];
/// let mut settings = Settings::new("kitchen", TimingProfile::Lan.timing(), elections);
/// settings.addresses = Addresses::new(["192.0.2.7:7000".parse().unwrap()]);
/// assert!(settings.plan().is_ok());
/// ```
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
}
