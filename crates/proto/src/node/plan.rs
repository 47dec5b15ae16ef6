//! The one table that makes machines of settings.
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
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use super::{
    profile::About,
    settings::{
        AnnouncedSettings, CentralSettings, ElectionSettings, EventualSettings, Feedback, HIGHEST,
        Keeping, LearnedSettings, LeasedSettings, ModeSettings, OnIsolation, Policy, Role,
        Settings, Spread,
    },
    timing::Timing,
};
use crate::{
    churn::estimate,
    election::{
        announce, bandit,
        central::{self, Detection, LinkState},
        churn_tolerant::{self, Form, Multicast},
        leased::{self, Flavour},
    },
    id::ElectionId,
    leadership::Mode,
    mechanism::{paths::Manner, pinged::Patience},
    membership::{
        medley::{self, Addresses, Attention, Details, DetailsTooLong, Strategy},
        ring,
    },
    stack::Standing,
    time::Duration,
};

/// Settings that contradict each other, or what a protocol's bounds refuse.
///
/// ```
/// use bellwether_proto::{
///     Duration,
///     node::{ElectionSettings, LeasedSettings, ModeSettings, Settings, TimingProfile},
/// };
///
/// let mut timing = TimingProfile::Lan.timing();
/// timing.lease = Duration::ZERO;
/// let leased = ModeSettings::Leased(LeasedSettings::of(["a", "b", "c"].map(String::from)));
/// let settings = Settings::new("a", timing, vec![ElectionSettings::of("backup", leased)]);
/// let error = settings.plan().unwrap_err();
/// assert!(error.to_string().starts_with("election \"backup\": "), "{error}");
/// ```
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

impl SettingsError {
    fn of(election: &str, problem: impl fmt::Display) -> Self {
        Self(format!("election {election:?}: {problem}"))
    }
}

/// A node's machines, configured: what [`Node::new`](super::Node::new) builds. Made by [`Settings::plan`].
///
/// ```
/// use bellwether_proto::{Duration, node::{Settings, TimingProfile}};
///
/// let plan = Settings::new("a", TimingProfile::Lan.timing(), vec![]).plan().unwrap();
/// assert_eq!(plan.guard(), Duration::from_millis(850), "it may be late by so much");
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    /// What others read about it.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub about: About,
    /// Where others reach it, best first.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub addresses: Addresses,
    /// How the membership gossips and probes.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub gossip: medley::Config,
    /// How its members get around broken links.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub manner: Manner,
    /// How `c` is kept current.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub survey: estimate::Config,
    /// The elections, as configured.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub seats: Vec<SeatPlan>,
    /// How often and how long.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub timing: Timing,
    /// Between two samples of what the node is worth by its own record.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub sample: Duration,
}

/// One election, configured.
#[derive(Clone, Debug)]
pub struct SeatPlan {
    /// The election's name.
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
    /// How late the node may be woken and still lead.
    pub guard: Duration,
}

/// How an election is decided: the configuration of its machine.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// On the gossip membership.
    Eventual(churn_tolerant::Config),
    /// By announcements over multicast.
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
    /// How its ring is kept.
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
    /// How they vote.
    pub config: bandit::Config,
}

impl Protocol {
    /// How members look for a way around a broken link between them, before anybody is given up for it. `None` where
    /// nobody carries words for others.
    pub fn manner(&self) -> Option<Manner> {
        let doubt = match self {
            // A request is said again after a quarter and a half of its session: the latter goes all ways.
            Self::Leased(config) => config.ring.session().div(8) * 3,
            // The second heartbeat that is not answered goes all ways.
            Self::Learned(config) => config.config.heartbeat().div(4) * 3,
            Self::Eventual(_) | Self::Announced(_) | Self::Central(_) => return None,
        };
        Some(Manner { doubt, memory: doubt * 4, width: usize::MAX })
    }

    /// Which promise the election keeps.
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
    /// How late the node may be woken and still lead everything it leads.
    pub fn guard(&self) -> Duration {
        self.seats.iter().map(|seat| seat.guard).min().unwrap_or(self.timing.guard)
    }

    /// What this node tells all others of itself.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    ///
    /// # Errors
    ///
    /// [`DetailsTooLong`] if name, tags and elections together do not fit.
    pub fn introduction(&self) -> Result<(Addresses, Details), DetailsTooLong> {
        let standings =
            self.seats.iter().map(|seat| (ElectionId::named(&seat.name), seat.standing)).collect();
        Ok((self.addresses, self.about.to_details(standings)?))
    }
}

impl Settings {
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
            addresses: self.addresses,
            gossip: self.gossip().map_err(|error| failed(&error))?,
            manner: Manner {
                doubt: self.timing.ack,
                memory: self.timing.period * 64,
                width: CARRIERS,
            },
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
        Ok(gossip.with_local_health(true).with_repeated_pings(true))
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
            guard: self.guard(mode),
        })
    }

    /// How late a node may be woken and still lead: as long as nobody can have replaced it, given that its last sign of life
    /// was as old as it gets and the next takes as long as an answer. Sooner, and a busy host deposes a leader that nobody
    /// has missed; later, and it leads beside its successor. A leased leader is bound by its lease.
    fn guard(&self, mode: &ModeSettings) -> Duration {
        let timing = &self.timing;
        let (given_up, sign) = match mode {
            ModeSettings::Eventual(_) => (timing.given_up_after(), timing.beat),
            ModeSettings::Announced(_) => (timing.listen, timing.announce),
            ModeSettings::Leased(_) => return timing.guard,
            ModeSettings::Learned(learned) => {
                let lease = learned.lease(timing);
                (lease, lease.div(HEARTBEATS))
            }
            ModeSettings::Central(central) => match central.beacons(timing.profile) {
                Some((period, timeout)) => (timeout, period),
                None => return timing.guard,
            },
        };
        given_up.saturating_sub(sign).saturating_sub(timing.ack).min(timing.guard)
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
            .with_drift(settings.drift)?
            .with_repeats(REPEATS);
        // A ring on a real clock, which wakes nobody on the microsecond. With a quorum of names it decides over places
        // only, and joiners may be late; without, the promise rests on it, and it gets what the clock needs, no more.
        let slack = match settings.flavour {
            Flavour::Quorum => ring.arbitration().div(2),
            Flavour::Conservative | Flavour::Fast => ring.arbitration().div(10),
        };
        let ring = ring.with_slack(slack);
        let backers = ring::geometry::majority(members);
        let machine = leased::Config::new(settings.flavour)
            .with_key(u64::from(ElectionId::named(&election.name).number()))
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
            .with_heartbeat(learned.lease(timing).div(HEARTBEATS))?
            .with_patience(HEARTBEATS)?
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

/// Arbitrary: more than SWIM asks for help, as links may be broken and nobody have noticed yet.
const CARRIERS: usize = 6;
/// How often a request for a lease is said again within its session. With three the first to go all ways, in the middle of
/// the session, and its answer, may each take a quarter of it.
const REPEATS: u32 = 3;
/// Of a learned leader, in one lease.
const HEARTBEATS: u64 = 4;
/// `c` of UCB: a fraction of the difference between good and bad, where the program's 2 drowns it. Arbitrary.
const OPTIMISM: f64 = 0.1;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::node::TimingProfile;

    /// A leader that wakes just in time has its next sign of life at the others before any of them can have replaced it.
    #[test]
    fn whoever_still_leads_when_it_wakes_cannot_have_been_replaced() {
        for (_, profile) in TimingProfile::ALL {
            let timing = profile.timing();
            let mode = |mode| vec![ElectionSettings::of("a", mode)];
            let guard = |elections| Settings::new("a", timing, elections).plan().unwrap().guard();
            let eventual = guard(mode(ModeSettings::Eventual(EventualSettings::default())));
            assert_eq!(eventual, timing.guard, "{profile:?}: the profiles are made for it");
            assert!(eventual + timing.beat + timing.ack <= timing.given_up_after());
            assert!(eventual * 2 > timing.given_up_after(), "{profile:?}: no sooner than need be");
            let announced = guard(mode(ModeSettings::Announced(AnnouncedSettings::default())));
            assert!(announced + timing.announce + timing.ack <= timing.listen, "{profile:?}");
            assert!(announced * 2 >= timing.listen, "{profile:?}");
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
