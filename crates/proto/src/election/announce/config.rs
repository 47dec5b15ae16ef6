//! What an operator chooses: which rules, which waits, and the policies added to them.

use core::{
    hash::{Hash, Hasher},
    mem,
};

use crate::{hash::Real, rng::Rng, time::Duration};

/// Which form of the rules to follow.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Rules {
    /// Programs 5.1 and 5.2 to the letter: the heartbeats of the leader one already follows are
    /// ignored, so every follower deposes a healthy leader once per `T_L`.
    AsPublished,
    /// Rule 2 mended and nothing else: the form the closed-form analysis describes.
    Corrected,
    /// LE-H: lives told apart, replays dropped, and an epoch with every answer.
    Hardened,
}

/// How long to wait, once standing, before claiming leadership. A wait of zero claims at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Suppression {
    /// Not at all: LE-A. When a leader dies everybody claims together.
    None,
    /// Exactly this long: staggers nodes by priority, or scripts a test.
    Fixed(Duration),
    /// Uniform from zero to this (`T_S`): LE-S. Raising it saves messages and delays leadership.
    Uniform(Duration),
    /// Exponential, cut off and rising towards the end, so that few wake early.
    Exponential {
        /// `T_S`: the longest wait.
        longest: Duration,
        /// `λ`: positive. Raising it saves messages in large groups and delays leadership; `ln N + 1`
        /// suits a group of about `N`.
        lambda: f64,
    },
    /// The better, the sooner (R-M3): `T_S[(1-ω)(1-F) + ωU]`, where `F` is the node's
    /// [goodness](Criterion::Goodness), zero if it has none.
    Mapped {
        /// `T_S`: the longest wait.
        longest: Duration,
        /// `ω`, from 0 to 1: how much of the wait is chance. At 1 it is [`Suppression::Uniform`]; at 0
        /// nodes of equal goodness all speak at once.
        jitter: f64,
    },
}

impl Hash for Suppression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match *self {
            Self::None => {}
            Self::Fixed(wait) | Self::Uniform(wait) => wait.hash(state),
            Self::Exponential { longest, lambda } => (longest, Real(lambda)).hash(state),
            Self::Mapped { longest, jitter } => (longest, Real(jitter)).hash(state),
        }
    }
}

/// What makes one node a better leader than another. Everybody in a group must use the same kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Criterion {
    /// The larger identity.
    #[default]
    Identity,
    /// The earlier to wake: LE-M (R-M1). Each wait drawn is the key of the tenure it leads to; a node
    /// that follows has none.
    Wake,
    /// The larger of these, from 0 to 1: any criterion, mapped to the share of nodes that are worse.
    Goodness(f64),
}

impl Hash for Criterion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match *self {
            Self::Identity | Self::Wake => {}
            Self::Goodness(goodness) => Real(goodness).hash(state),
        }
    }
}

/// What a better newcomer may do to a leader in office (R-M4).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Tenure {
    /// A better newcomer takes over.
    #[default]
    Preemptive,
    /// Nothing, once the leader has led for the listen timeout (H-7).
    Sticky,
}

/// How a leader says goodbye (rule 8).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Bye {
    /// `b`: how many times, against loss.
    pub copies: u8,
    /// `τ`: the pause between two of them. Raising it outlasts longer bursts of loss.
    pub spacing: Duration,
}

/// What a node does first. Only on starting: who has lost its leader stands without asking.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Entry {
    /// Waits out the suppression and claims.
    #[default]
    Plain,
    /// Asks who leads instead of waiting (rules 10 to 12).
    Query {
        /// `T_Q`: how long to wait for the answer before claiming. At least two delays and `T_R`.
        timeout: Duration,
    },
    /// Waits out the suppression and then asks who leads.
    SuppressThenQuery {
        /// `T_Q`, as above.
        timeout: Duration,
    },
}

/// The chapter's waits, which rules to follow, and the policies added to them.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct Config {
    announce: Duration,
    listen: Option<Duration>,
    suppression: Suppression,
    rules: Rules,
    reply: Duration,
    criterion: Criterion,
    tenure: Tenure,
    bye: Option<Bye>,
    entry: Entry,
}

/// Why a [`Config`] was refused. Nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A leader would announce without pause.
    #[error("announce period {announce} must be longer than zero")]
    AnnounceZero {
        /// The period asked for.
        announce: Duration,
    },
    /// Followers would abandon a live leader between two of its announcements (C1).
    #[error("listen timeout {listen} must be at least the announce period {announce}")]
    ListenTooShort {
        /// The timeout asked for.
        listen: Duration,
        /// The announce period it must cover.
        announce: Duration,
    },
    /// Nothing would limit how often a leader answers.
    #[error("reply interval {reply} must be longer than zero")]
    ReplyZero {
        /// The interval asked for.
        reply: Duration,
    },
    /// The distribution of waits is undefined.
    #[error("lambda {lambda} must be finite and above zero")]
    BadLambda {
        /// The rate asked for.
        lambda: f64,
    },
    /// The wait would leave its bounds.
    #[error("jitter {jitter} must be from 0 to 1")]
    BadJitter {
        /// The share asked for.
        jitter: f64,
    },
    /// Not a share of the group.
    #[error("goodness {goodness} must be from 0 to 1")]
    BadGoodness {
        /// The value asked for.
        goodness: f64,
    },
    /// The base forms have no word for an established leader.
    #[error("a sticky tenure needs hardened rules, these are {rules:?}")]
    StickyNeedsHardened {
        /// The rules asked for.
        rules: Rules,
    },
    /// A leader is established after the listen timeout.
    #[error("a sticky tenure needs a listen timeout")]
    StickyNeedsListen,
    /// A goodbye that is never said.
    #[error("{copies} goodbyes: say at least one, or configure none")]
    NoByes {
        /// The number asked for.
        copies: u8,
    },
    /// Nobody could answer in time.
    #[error("query timeout {timeout} must be longer than zero")]
    QueryZero {
        /// The timeout asked for.
        timeout: Duration,
    },
}

impl Suppression {
    /// # Errors
    ///
    /// [`ConfigError`] if the parameters define no distribution.
    pub(super) const fn check(self) -> Result<Self, ConfigError> {
        match self {
            Self::Exponential { lambda, .. } if !(lambda.is_finite() && lambda > 0.0) => {
                Err(ConfigError::BadLambda { lambda })
            }
            Self::Mapped { jitter, .. } if !(jitter >= 0.0 && jitter <= 1.0) => {
                Err(ConfigError::BadJitter { jitter })
            }
            _ => Ok(self),
        }
    }

    /// A wait for a node of this goodness.
    pub(super) fn draw(self, goodness: f64, rng: &mut Rng) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed(wait) => wait,
            Self::Uniform(longest) => rng.up_to(longest),
            Self::Exponential { longest, lambda } => longest.scale(rng.rising(lambda)),
            Self::Mapped { longest, jitter } => {
                longest.scale((1.0 - jitter) * (1.0 - goodness) + jitter * rng.unit())
            }
        }
    }
}

impl Criterion {
    /// `F`, as far as it is known without a wait.
    pub(super) const fn goodness(self) -> f64 {
        match self {
            Self::Identity | Self::Wake => 0.0,
            Self::Goodness(goodness) => goodness,
        }
    }

    /// The key of a node that has drawn this wait, or none. See [`Claim::key`](super::Claim::key).
    pub(super) fn key(self, wait: Option<Duration>) -> u64 {
        match (self, wait) {
            (Self::Identity, _) | (Self::Wake, None) => 0,
            (Self::Wake, Some(wait)) => u64::MAX - wait.as_micros(),
            // Adding zero turns the negative zero, whose bits are large, into the positive one.
            (Self::Goodness(goodness), _) => (goodness + 0.0).to_bits(),
        }
    }
}

/// Checks what every announce-listen protocol needs of its two periods.
///
/// # Errors
///
/// [`ConfigError`] if the announce period is zero or the listen timeout shorter than it.
pub(super) const fn check_periods(
    announce: Duration,
    listen: Option<Duration>,
) -> Result<(), ConfigError> {
    if announce.is_zero() {
        return Err(ConfigError::AnnounceZero { announce });
    }
    if let Some(listen) = listen
        && listen.as_micros() < announce.as_micros()
    {
        return Err(ConfigError::ListenTooShort { listen, announce });
    }
    Ok(())
}

impl Config {
    /// A leader announces every `announce`, a follower gives it up after `listen` of silence, or
    /// never if that is `None`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the announce period is zero, the listen timeout shorter than it, or the
    /// suppression no distribution.
    pub const fn new(
        announce: Duration,
        listen: Option<Duration>,
        suppression: Suppression,
        rules: Rules,
    ) -> Result<Self, ConfigError> {
        if let Err(error) = check_periods(announce, listen) {
            return Err(error);
        }
        if let Err(error) = suppression.check() {
            return Err(error);
        }
        let fifth = announce.div(5);
        Ok(Self {
            announce,
            listen,
            suppression,
            rules,
            reply: if fifth.is_zero() { Duration::from_micros(1) } else { fifth },
            criterion: Criterion::Identity,
            tenure: Tenure::Preemptive,
            bye: None,
            entry: Entry::Plain,
        })
    }

    /// The same with another [`reply`](Self::reply) interval.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ReplyZero`].
    pub const fn with_reply(self, reply: Duration) -> Result<Self, ConfigError> {
        if reply.is_zero() {
            return Err(ConfigError::ReplyZero { reply });
        }
        Ok(Self { reply, ..self })
    }

    /// The same with another [`criterion`](Self::criterion).
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadGoodness`].
    pub const fn with_criterion(self, criterion: Criterion) -> Result<Self, ConfigError> {
        match criterion {
            Criterion::Goodness(goodness) if !(goodness >= 0.0 && goodness <= 1.0) => {
                Err(ConfigError::BadGoodness { goodness })
            }
            _ => Ok(Self { criterion, ..self }),
        }
    }

    /// The same with another [`tenure`](Self::tenure).
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a sticky tenure without hardened rules or without a listen timeout.
    pub const fn with_tenure(self, tenure: Tenure) -> Result<Self, ConfigError> {
        if let Tenure::Sticky = tenure {
            if !matches!(self.rules, Rules::Hardened) {
                return Err(ConfigError::StickyNeedsHardened { rules: self.rules });
            }
            if self.listen.is_none() {
                return Err(ConfigError::StickyNeedsListen);
            }
        }
        Ok(Self { tenure, ..self })
    }

    /// The same with a [`bye`](Self::bye).
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoByes`].
    pub const fn with_bye(self, bye: Bye) -> Result<Self, ConfigError> {
        if bye.copies == 0 {
            return Err(ConfigError::NoByes { copies: bye.copies });
        }
        Ok(Self { bye: Some(bye), ..self })
    }

    /// The same with another [`entry`](Self::entry).
    ///
    /// # Errors
    ///
    /// [`ConfigError::QueryZero`].
    pub const fn with_entry(self, entry: Entry) -> Result<Self, ConfigError> {
        match entry {
            Entry::Query { timeout } | Entry::SuppressThenQuery { timeout }
                if timeout.is_zero() =>
            {
                Err(ConfigError::QueryZero { timeout })
            }
            _ => Ok(Self { entry, ..self }),
        }
    }

    /// `T_A`: how often a leader announces. Raising it saves messages and lets two leaders coexist
    /// for longer after a split heals.
    pub const fn announce(&self) -> Duration {
        self.announce
    }

    /// `T_L`: how long a silent leader is believed; `None` is for ever. Raising it makes losses
    /// harmless and real departures longer. A whole multiple `k` of `T_A` gives exactly `k` chances
    /// to hear the leader.
    pub const fn listen(&self) -> Option<Duration> {
        self.listen
    }

    /// `d(T_S)`: how long to wait before claiming.
    pub const fn suppression(&self) -> Suppression {
        self.suppression
    }

    /// Which form of the rules.
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// `T_R`: the least time between two answers of a leader, and the spread of hints. A fifth of
    /// `T_A` unless chosen, which is `2Δ` for the chapter's `Δ = T_A/10`. Raising it saves messages
    /// when many nodes are confused at once and leaves them confused for longer.
    pub const fn reply(&self) -> Duration {
        self.reply
    }

    /// What makes one node better than another. The larger identity unless chosen.
    pub const fn criterion(&self) -> Criterion {
        self.criterion
    }

    /// Whether a better newcomer takes over. It does unless chosen otherwise.
    pub const fn tenure(&self) -> Tenure {
        self.tenure
    }

    /// How a leader says goodbye. It leaves in silence unless chosen.
    pub const fn bye(&self) -> Option<Bye> {
        self.bye
    }

    /// What a node does first. It waits and claims unless chosen.
    pub const fn entry(&self) -> Entry {
        self.entry
    }

    /// `T_Q`, if this node asks at all.
    pub(super) const fn query(&self) -> Option<Duration> {
        match self.entry {
            Entry::Plain => None,
            Entry::Query { timeout } | Entry::SuppressThenQuery { timeout } => Some(timeout),
        }
    }
}
