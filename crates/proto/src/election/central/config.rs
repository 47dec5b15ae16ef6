//! What an operator chooses: the protocol, and the thesis's parameters.

use core::{
    hash::{Hash, Hasher},
    mem,
};

use crate::{
    hash::Real,
    time::Duration,
    topology::{criterion::Criterion, detector::Detection},
};

/// Which protocol to speak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Profile {
    /// Topology Aware as published.
    #[cfg(feature = "research")]
    TopologyAware {
        /// How often changes are sent (`Δ`); see [`tick`].
        tick: Duration,
        /// What a neighbour that is known already is when it is heard again (E5).
        probes: Probes,
    },
    /// CEL as published.
    #[cfg(feature = "research")]
    Cel {
        /// With what probability somebody else's news is passed on (`ρ`).
        rho: f64,
    },
    /// The repaired core of both.
    LinkState(LinkState),
    /// Flooding Degree, the baseline of Topology Aware.
    #[cfg(feature = "research")]
    Flooding {
        /// Which of its readings.
        reading: Reading,
        /// How often a leader speaks (`α`).
        period: Duration,
        /// How long a silent leader is believed.
        timeout: Duration,
        /// Whether claims are numbered, so that an old one keeps nobody alive.
        numbered: bool,
    },
    /// Gómez-Calzado et al., the baseline of CEL.
    #[cfg(feature = "research")]
    Gomez {
        /// What makes one leader better than another.
        order: Order,
        /// How often to speak.
        period: Duration,
    },
}

impl Hash for Profile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match *self {
            #[cfg(feature = "research")]
            Self::TopologyAware { tick, probes } => (tick, probes).hash(state),
            #[cfg(feature = "research")]
            Self::Cel { rho } => Real(rho).hash(state),
            Self::LinkState(settings) => settings.hash(state),
            #[cfg(feature = "research")]
            Self::Flooding { reading, period, timeout, numbered } => {
                (reading, period, timeout, numbered).hash(state);
            }
            #[cfg(feature = "research")]
            Self::Gomez { order, period } => (order, period).hash(state),
        }
    }
}

/// What hearing a probe means.
#[cfg(feature = "research")]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Probes {
    /// A new link if there was none.
    #[default]
    Once,
    /// A new link every time: §4.3.2 to the letter.
    Every,
}

/// The settings of the hardened forms.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct LinkState {
    /// When changes are sent.
    pub spread: Spread,
    /// How often digests are sent while there is news (`T_ae`).
    pub digest: Duration,
    /// How often while there is none (`T_max`).
    pub quiet: Duration,
    /// How long entries are kept that nobody leads to (`T_gc`).
    pub memory: Duration,
    /// How far knowledge goes, in hops; everywhere if `None`. A leader is then the most central node of what its follower
    /// sees, and one component may have several.
    pub horizon: Option<u32>,
    /// Whether clocks begin with the host's boot number, so that a restarted node outranks its past at once. Costs a few
    /// bytes per entry; without it, the node's first contact tells it what to outbid (H4).
    pub boots: bool,
}

/// When the hardened forms send what is new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Together, every so often: hardened Topology Aware.
    Tick(Duration),
    /// At once, others' news with probability `rho` and not where a twin will do so: hardened CEL.
    AtOnce {
        /// The probability of passing on somebody else's news.
        rho: f64,
        /// Whether twins are relied on (C6).
        prune: bool,
    },
}

impl Hash for Spread {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match *self {
            Self::Tick(tick) => tick.hash(state),
            Self::AtOnce { rho, prune } => (Real(rho), prune).hash(state),
        }
    }
}

/// How Flooding Degree is read: the text fits several (E16).
#[cfg(feature = "research")]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Reading {
    /// The leader speaks every period and every node passes that on.
    #[default]
    Tick,
    /// Only what changed something is passed on: OptFloodMax.
    Opt,
    /// A new leader, or one whose degree has changed, speaks at once.
    Eager,
    /// Every node says every period whom it follows; nobody passes anything on.
    Relay,
}

/// How Gómez-Calzado et al. compare leaders (E18).
#[cfg(feature = "research")]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Order {
    /// The one of the larger group, then the older, then the one of higher identity.
    #[default]
    Size,
    /// The older, then the one of higher identity.
    Age,
}

/// How much better a new leader must be (beyond the thesis).
///
/// ```
/// use bellwether_proto::{Duration, node::{CentralSettings, Hysteresis}};
///
/// let mut settings = CentralSettings::default();
/// settings.hysteresis = Some(Hysteresis { percent: 10, dwell: Duration::from_secs(30) });
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Hysteresis {
    /// In percent of the score of the one there is.
    pub percent: u32,
    /// After so long it need only be better.
    pub dwell: Duration,
}

/// How to elect the most central node.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct Config {
    pub(super) profile: Profile,
    pub(super) detection: Detection,
    pub(super) criterion: Criterion,
    pub(super) hysteresis: Option<Hysteresis>,
}

/// Settings that do not go together.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A time that must pass was zero.
    #[error("{0} is zero")]
    Zero(&'static str),
    /// A probability was none.
    #[error("rho is {0}, not a probability")]
    Probability(f64),
    /// Neighbours would be lost between two of their beacons.
    #[error("neighbours are given up after {timeout}, before their next beacon ({period})")]
    Timeout {
        /// How long a silent neighbour is believed.
        timeout: Duration,
        /// The time between two beacons.
        period: Duration,
    },
    /// Digests would be rarer while there is news than while there is none.
    #[error(
        "digests come every {digest} while there is news, but every {quiet} while there is none"
    )]
    Digests {
        /// The period while there is news.
        digest: Duration,
        /// The period while there is none.
        quiet: Duration,
    },
    /// Nobody could know its neighbours' neighbours.
    #[error("a horizon of {0} hops shows no neighbour's neighbours: at least 2")]
    Horizon(u32),
    /// The protocol has no map to judge by.
    #[error("{0} has no map to take a criterion or hysteresis from")]
    NoMap(&'static str),
    /// What is published says nothing of it where links lead one way.
    #[error(
        "{0} is reckoned on links that both ends tell, and as published one is enough: hardened only"
    )]
    OneWay(&'static str),
    /// Its own messages are how it knows its neighbours.
    #[error("gomez finds its neighbours itself: detection must be given, by nobody")]
    NoBeacons,
    /// Changes nothing, and so is surely a mistake.
    #[error("hysteresis of zero percent changes nothing")]
    NoMargin,
}

impl Config {
    /// This protocol, with neighbours found so.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it cannot work.
    pub fn new(profile: Profile, detection: Detection) -> Result<Self, ConfigError> {
        if let Detection::Beacons { period, timeout } = detection {
            positive("the period of beacons", period)?;
            if timeout <= period {
                return Err(ConfigError::Timeout { timeout, period });
            }
            #[cfg(feature = "research")]
            if matches!(profile, Profile::Gomez { .. }) {
                return Err(ConfigError::NoBeacons);
            }
        }
        #[cfg_attr(
            not(feature = "research"),
            expect(unused_mut, reason = "only flooding has another")
        )]
        let mut criterion = Criterion::Closeness;
        match profile {
            #[cfg(feature = "research")]
            Profile::TopologyAware { tick, .. } => positive("the tick", tick)?,
            #[cfg(feature = "research")]
            Profile::Cel { rho } => probability(rho)?,
            Profile::LinkState(settings) => settings.check()?,
            #[cfg(feature = "research")]
            Profile::Flooding { period, timeout, .. } => {
                criterion = Criterion::Degree;
                positive("the period", period)?;
                positive("the leader's timeout", timeout)?;
            }
            #[cfg(feature = "research")]
            Profile::Gomez { period, .. } => positive("the period", period)?,
        }
        Ok(Self { profile, detection, criterion, hysteresis: None })
    }

    /// The hardened form of CEL for a radio or a mesh: what to run unless there is a reason.
    pub fn hardened(detection: Detection) -> Result<Self, ConfigError> {
        Self::new(Profile::LinkState(LinkState::at_once(1.0)), detection)
    }

    /// Judges by this instead of closeness.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoMap`] for the baselines, whose criterion is their own; [`ConfigError::OneWay`] as published for
    /// what needs links both ways.
    pub fn with_criterion(self, criterion: Criterion) -> Result<Self, ConfigError> {
        self.has_map()?;
        if criterion.needs_mutual_links() && !matches!(self.profile, Profile::LinkState(_)) {
            return Err(ConfigError::OneWay(criterion.name()));
        }
        Ok(Self { criterion, ..self })
    }

    /// Keeps a leader unless another is better by so much, or for so long. All that hold equal maps then name the same
    /// leader only after the dwell.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoMap`] for the baselines; [`ConfigError::NoMargin`].
    pub fn with_hysteresis(self, hysteresis: Hysteresis) -> Result<Self, ConfigError> {
        self.has_map()?;
        if hysteresis.percent == 0 {
            return Err(ConfigError::NoMargin);
        }
        positive("the dwell", hysteresis.dwell)?;
        Ok(Self { hysteresis: Some(hysteresis), ..self })
    }

    /// Which protocol it speaks.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How neighbours are found.
    pub const fn detection(&self) -> Detection {
        self.detection
    }

    /// By what the leader is the best.
    pub const fn criterion(&self) -> Criterion {
        self.criterion
    }

    fn has_map(&self) -> Result<(), ConfigError> {
        match self.profile {
            #[cfg(feature = "research")]
            Profile::Flooding { .. } => Err(ConfigError::NoMap("flooding")),
            #[cfg(feature = "research")]
            Profile::Gomez { .. } => Err(ConfigError::NoMap("gomez")),
            _ => Ok(()),
        }
    }
}

impl LinkState {
    /// Hardened Topology Aware, with the proposed times.
    pub const fn ticking(tick: Duration) -> Self {
        Self {
            spread: Spread::Tick(tick),
            digest: Duration::from_secs(1),
            quiet: Duration::from_secs(16),
            memory: Duration::from_secs(60),
            horizon: None,
            boots: true,
        }
    }

    /// Hardened CEL, with the proposed times.
    pub const fn at_once(rho: f64) -> Self {
        Self { spread: Spread::AtOnce { rho, prune: true }, ..Self::ticking(Duration::ZERO) }
    }

    fn check(&self) -> Result<(), ConfigError> {
        match self.spread {
            Spread::Tick(tick) => positive("the tick", tick)?,
            Spread::AtOnce { rho, .. } => probability(rho)?,
        }
        positive("the period of digests", self.digest)?;
        positive("the memory", self.memory)?;
        if self.quiet < self.digest {
            return Err(ConfigError::Digests { digest: self.digest, quiet: self.quiet });
        }
        match self.horizon {
            Some(hops @ 0..2) => Err(ConfigError::Horizon(hops)),
            _ => Ok(()),
        }
    }
}

/// The thesis's `Δ` for a radio of this range in metres: `70 log10(range) - 60` ms (§4.3.2, fig 4.11), at least 1 ms.
///
/// ```
/// use bellwether_proto::election::central::tick;
///
/// assert_eq!(tick(10.0).as_micros(), 10_000);
/// ```
pub fn tick(range: f64) -> Duration {
    let millis = 70.0 * libm::log10(range) - 60.0;
    let micros = libm::round(millis * 1_000.0);
    // NaN and everything too small to make sense end up here as well.
    if micros >= 1_000.0 { Duration::from_micros(micros as u64) } else { Duration::from_millis(1) }
}

fn positive(what: &'static str, time: Duration) -> Result<(), ConfigError> {
    if time.is_zero() { Err(ConfigError::Zero(what)) } else { Ok(()) }
}

fn probability(rho: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&rho) { Ok(()) } else { Err(ConfigError::Probability(rho)) }
}
