//! What an operator chooses. Defaults are the report's, or the program's where the report is silent.

use core::{
    hash::{Hash, Hasher},
    mem,
};

use super::{
    message::MAX_MEMBERS,
    tally::{Tally, Ties},
};
use crate::{hash::Real, time::Duration};

/// Which rules to follow; letters are those of `docs/rules/bandit.md`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Profile {
    /// The text to the letter. Two may lead at once.
    #[cfg(feature = "research")]
    Published,
    /// What the authors' program does, by which the figures were made.
    #[cfg(feature = "research")]
    Reference,
    /// Terms, one vote of each node in a term, candidates that live: at most one leader to a term.
    #[default]
    Hardened,
}

impl Profile {
    /// Whether it follows the text to the letter.
    const fn is_published(self) -> bool {
        match self {
            #[cfg(feature = "research")]
            Self::Published => true,
            #[cfg(feature = "research")]
            Self::Reference => false,
            Self::Hardened => false,
        }
    }

    /// Whether it does what the authors' program does.
    pub(super) const fn is_reference(self) -> bool {
        !self.is_published() && !matches!(self, Self::Hardened)
    }
}

/// How a node turns what it believes into candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The least cost, but with probability `ε` at random.
    EpsilonGreedy {
        /// `ε` at the start. Raising it elects more nodes it believes bad.
        epsilon: f64,
        /// What `ε` is multiplied by after every list.
        decay: f64,
    },
    /// The least cost minus a bonus for whoever is little known (formula 1).
    Ucb {
        /// `c`: how much the bonus weighs.
        weight: f64,
    },
    /// UCB on samples that count for less the older they are.
    DiscountedUcb {
        /// How much the bonus weighs (`c`).
        weight: f64,
        /// `γ`: what a sample is worth after one more [interval](Config::with_sample).
        discount: f64,
    },
    /// UCB on the last samples alone.
    SlidingUcb {
        /// How much the bonus weighs (`c`).
        weight: f64,
        /// `τ`: how many, of all nodes together.
        window: u32,
    },
    /// The least of costs drawn from what is believed (Thompson sampling).
    Thompson {
        /// What a sample is worth after one more interval (`γ`).
        discount: f64,
    },
    /// RLE: at random, whatever is believed.
    Random,
    /// DLE: the next numbers after the failed leader's.
    Next,
}

impl Hash for Policy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match *self {
            Self::EpsilonGreedy { epsilon, decay } => (Real(epsilon), Real(decay)).hash(state),
            Self::Ucb { weight } => Real(weight).hash(state),
            Self::DiscountedUcb { weight, discount } => (Real(weight), Real(discount)).hash(state),
            Self::SlidingUcb { weight, window } => (Real(weight), window).hash(state),
            Self::Thompson { discount } => Real(discount).hash(state),
            Self::Random | Self::Next => {}
        }
    }
}

impl Policy {
    /// The program's epsilon-greedy.
    pub const EPSILON_GREEDY: Self = Self::EpsilonGreedy { epsilon: 0.1, decay: 0.99 };
    /// The program's UCB.
    pub const UCB: Self = Self::Ucb { weight: 2.0 };

    const fn discounts(self) -> bool {
        matches!(self, Self::DiscountedUcb { .. } | Self::Thompson { .. })
    }
}

/// What is believed of somebody nothing is known of: a normal distribution, cut off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// The mean of the prior.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
    /// The least it may be.
    pub low: f64,
    /// The most it may be.
    pub high: f64,
}

impl Hash for Prior {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { mean, deviation, low, high } = *self;
        [mean, deviation, low, high].map(Real).hash(state);
    }
}

/// Who may win.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Eligible {
    /// Whoever is on a list, dead or alive.
    Anybody,
    /// Whoever has sent a list in this round and hence lives.
    Living,
}

/// How nodes explore by pinging.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Pings {
    /// How long after one the next is sent. Raising it learns later.
    pub pause: Duration,
    /// How long to wait for the answer.
    pub reply: Duration,
}

/// How long to wait for what in an election.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Waits {
    /// Between a client's request and the leader's word of it before the leader is presumed failed.
    pub suspect: Duration,
    /// For `f` lists, before asking again. As published only.
    pub share: Duration,
    /// For further lists. Hardened it is for all lists: at least two journeys across the network (P-5).
    pub collect: Duration,
    /// For the winner to confirm.
    pub confirm: Duration,
}

/// All of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    pub(super) profile: Profile,
    pub(super) policy: Policy,
    pub(super) buffer: Option<u16>,
    pub(super) candidates: Option<u16>,
    pub(super) tally: Tally,
    pub(super) eligible: Eligible,
    pub(super) penalty: f64,
    pub(super) prior: Prior,
    pub(super) pings: Option<Pings>,
    pub(super) waits: Waits,
    pub(super) gap: Duration,
    pub(super) heartbeat: Duration,
    pub(super) patience: u64,
    pub(super) sample: Duration,
    pub(super) tenure: Duration,
    pub(super) margin: Option<f64>,
}

impl Hash for Config {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Every field is named, so that a new one is not forgotten.
        let &Self {
            profile,
            policy,
            buffer,
            candidates,
            tally,
            eligible,
            penalty,
            prior,
            pings,
            waits,
            gap,
            heartbeat,
            patience,
            sample,
            tenure,
            margin,
        } = self;
        (profile, policy, buffer, candidates, tally, eligible, Real(penalty), prior).hash(state);
        (pings, waits, gap, heartbeat, patience, sample, tenure, margin.map(Real)).hash(state);
    }
}

/// Why a [`Config`] was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Not a probability.
    #[error("{name} {value} must be from 0 to 1")]
    NotAShare {
        /// The setting that is wrong.
        name: &'static str,
        /// The value asked for.
        value: f64,
    },
    /// Not a number, or less than nothing.
    #[error("{name} {value} must be a number from 0 on")]
    Negative {
        /// The setting that is wrong.
        name: &'static str,
        /// The value asked for.
        value: f64,
    },
    /// Nothing would be remembered, or nobody named.
    #[error("{name} must be at least 1")]
    Zero {
        /// The setting that is wrong.
        name: &'static str,
    },
    /// More than there can be members.
    #[error("{value} candidates: at most {MAX_MEMBERS}")]
    TooMany {
        /// How many were asked for.
        value: u16,
    },
    /// It would act without pause.
    #[error("{name} must be longer than zero")]
    NoTime {
        /// The setting that is wrong.
        name: &'static str,
    },
    /// A buffer keeps what these policies forget by other means, or never use.
    #[error("a buffer needs epsilon-greedy or ucb, this is {policy:?}")]
    BufferNeedsMean {
        /// The policy that keeps no buffer.
        policy: Policy,
    },
    /// Terms rest on Borda counts and living candidates.
    #[error("hardened, only the living are counted, by rank")]
    HardenedCounts,
}

impl Config {
    /// The values of the report and of the program; hardened as fits links of up to 100 ms.
    pub const fn new(profile: Profile, policy: Policy) -> Self {
        let seconds = Duration::from_secs;
        let (published, reference) = (profile.is_published(), profile.is_reference());
        let (tally, eligible) = match (published, reference) {
            (true, _) => (Tally::Approval(Ties::Lowest), Eligible::Anybody),
            (_, true) => (Tally::Approval(Ties::Highest), Eligible::Anybody),
            _ => (Tally::Borda, Eligible::Living),
        };
        let (mean, deviation) = if published { (0.2, 0.1) } else { (0.1, 0.05) };
        let (low, high) = if published || reference { (0.0, 1.0) } else { (0.01, 0.99) };
        Self {
            profile,
            policy,
            buffer: None,
            candidates: if published && matches!(policy, Policy::Random) { Some(1) } else { None },
            tally,
            eligible,
            penalty: if reference { 0.5 } else { 1.0 },
            prior: Prior { mean, deviation, low, high },
            // Nobody learns from them where nothing is learnt.
            pings: match policy {
                Policy::Random | Policy::Next => None,
                _ => Some(Pings { pause: seconds(10), reply: seconds(2) }),
            },
            waits: Waits {
                suspect: if reference { Duration::ZERO } else { seconds(1) },
                share: seconds(3),
                collect: match (published, reference) {
                    (true, _) => seconds(1),
                    (_, true) => seconds(3),
                    _ => Duration::from_millis(300),
                },
                confirm: match published || reference {
                    true => seconds(2),
                    false => Duration::from_millis(400),
                },
            },
            gap: seconds(12),
            heartbeat: seconds(1),
            patience: 2,
            sample: seconds(30),
            tenure: Duration::ZERO,
            margin: None,
        }
    }

    /// Another policy with all else the same.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if a share is none or a weight negative.
    pub fn with_policy(self, policy: Policy) -> Result<Self, ConfigError> {
        match policy {
            Policy::EpsilonGreedy { epsilon, decay } => {
                share("epsilon", epsilon)?;
                share("decay", decay)?;
            }
            Policy::Ucb { weight } => positive("weight", weight)?,
            Policy::DiscountedUcb { weight, discount } => {
                positive("weight", weight)?;
                share("discount", discount)?;
            }
            Policy::SlidingUcb { weight, window } => {
                positive("weight", weight)?;
                if window == 0 {
                    return Err(ConfigError::Zero { name: "window" });
                }
            }
            Policy::Thompson { discount } => share("discount", discount)?,
            Policy::Random | Policy::Next => {}
        }
        Ok(Self { policy, ..self })
    }

    /// `W`: the estimate is the mean of the last outcomes of each node alone.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Zero`], or [`ConfigError::BufferNeedsMean`].
    pub const fn with_buffer(self, buffer: Option<u16>) -> Result<Self, ConfigError> {
        let means = matches!(self.policy, Policy::EpsilonGreedy { .. } | Policy::Ucb { .. });
        match buffer {
            Some(0) => Err(ConfigError::Zero { name: "buffer" }),
            Some(_) if !means => Err(ConfigError::BufferNeedsMean { policy: self.policy }),
            _ => Ok(Self { buffer, ..self }),
        }
    }

    /// `k`: nodes on a list; by default `f`, or one more hardened.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Zero`] or [`ConfigError::TooMany`].
    pub const fn with_candidates(self, candidates: u16) -> Result<Self, ConfigError> {
        if candidates == 0 {
            return Err(ConfigError::Zero { name: "candidates" });
        }
        if candidates as usize > MAX_MEMBERS {
            return Err(ConfigError::TooMany { value: candidates });
        }
        Ok(Self { candidates: Some(candidates), ..self })
    }

    /// How lists are counted, and who may win.
    ///
    /// # Errors
    ///
    /// [`ConfigError::HardenedCounts`] for anything but ranks and the living, hardened.
    pub fn with_count(self, tally: Tally, eligible: Eligible) -> Result<Self, ConfigError> {
        let hardened = self.profile == Profile::Hardened;
        if hardened && (tally, eligible) != (Tally::Borda, Eligible::Living) {
            return Err(ConfigError::HardenedCounts);
        }
        Ok(Self { tally, eligible, ..self })
    }

    /// `P`: what is added to the estimate of a node that has failed its electors, until it is heard of. Hardened it
    /// stands behind all others instead, whatever `P` is, unless that is zero.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Negative`].
    pub fn with_penalty(self, penalty: f64) -> Result<Self, ConfigError> {
        positive("penalty", penalty)?;
        Ok(Self { penalty, ..self })
    }

    /// Whether, and how, nodes ping each other.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoTime`].
    pub const fn with_pings(self, pings: Option<Pings>) -> Result<Self, ConfigError> {
        if let Some(Pings { pause, reply }) = pings
            && (pause.is_zero() || reply.is_zero())
        {
            return Err(ConfigError::NoTime { name: "ping" });
        }
        Ok(Self { pings, ..self })
    }

    /// How long to wait for what.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoTime`] unless all but the suspicion take some time.
    pub const fn with_waits(self, waits: Waits) -> Result<Self, ConfigError> {
        if waits.share.is_zero() {
            return Err(ConfigError::NoTime { name: "share" });
        }
        if waits.collect.is_zero() {
            return Err(ConfigError::NoTime { name: "collect" });
        }
        if waits.confirm.is_zero() {
            return Err(ConfigError::NoTime { name: "confirm" });
        }
        Ok(Self { waits, ..self })
    }

    /// How often a leader says that it lives. Followers believe it for twice as long, or as [patience](Self::with_patience)
    /// says. Hardened only.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoTime`].
    pub const fn with_heartbeat(self, heartbeat: Duration) -> Result<Self, ConfigError> {
        if heartbeat.is_zero() {
            return Err(ConfigError::NoTime { name: "heartbeat" });
        }
        Ok(Self { heartbeat, ..self })
    }

    /// How many heartbeats a [lease](Self::lease) is. Raising it forgives losses, and replaces a leader later.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Zero`].
    pub const fn with_patience(self, patience: u64) -> Result<Self, ConfigError> {
        if patience == 0 {
            return Err(ConfigError::Zero { name: "patience" });
        }
        Ok(Self { patience, ..self })
    }

    /// How often a node is sampled at most, hardened; and how often discounted samples lose worth.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoTime`].
    pub const fn with_sample(self, sample: Duration) -> Result<Self, ConfigError> {
        if sample.is_zero() {
            return Err(ConfigError::NoTime { name: "sample" });
        }
        Ok(Self { sample, ..self })
    }

    /// A healthy leader is left in office: it makes way, once it has led for `tenure`, to somebody whose cost a majority
    /// believes to be lower by more than `margin`; without a margin to nobody. Hardened only.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NotAShare`].
    pub fn with_tenure(self, tenure: Duration, margin: Option<f64>) -> Result<Self, ConfigError> {
        if let Some(margin) = margin {
            share("margin", margin)?;
        }
        Ok(Self { tenure, margin, ..self })
    }

    /// Which rules it follows.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// How candidates are chosen.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// How long to wait for what.
    pub const fn waits(&self) -> Waits {
        self.waits
    }

    /// How often a leader says that it lives.
    pub const fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// How often a node is sampled at most.
    pub const fn sample(&self) -> Duration {
        self.sample
    }

    /// How long the word of a leader is believed, and how long a leader leads without being answered.
    pub fn lease(&self) -> Duration {
        self.heartbeat * self.patience
    }

    pub(super) const fn hardened(&self) -> bool {
        matches!(self.profile, Profile::Hardened)
    }

    /// Whether time itself changes estimates.
    pub(super) const fn ages(&self) -> bool {
        self.hardened() || self.policy.discounts()
    }
}

fn share(name: &'static str, value: f64) -> Result<(), ConfigError> {
    match (0.0..=1.0).contains(&value) {
        true => Ok(()),
        false => Err(ConfigError::NotAShare { name, value }),
    }
}

fn positive(name: &'static str, value: f64) -> Result<(), ConfigError> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(()),
        false => Err(ConfigError::Negative { name, value }),
    }
}
