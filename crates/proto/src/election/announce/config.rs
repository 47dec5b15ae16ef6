//! What an operator chooses: which rules, which waits.

use crate::time::Duration;

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
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Suppression {
    /// Not at all: LE-A. When a leader dies everybody claims together.
    None,
    /// Exactly this long: staggers nodes by priority, or scripts a test.
    Fixed(Duration),
    /// Uniform from zero to this (`T_S`): LE-S. Raising it saves messages and delays leadership.
    Uniform(Duration),
}

/// The chapter's waits and which rules to follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Config {
    announce: Duration,
    listen: Option<Duration>,
    suppression: Suppression,
    rules: Rules,
    reply: Duration,
}

/// Why a [`Config`] was refused. Nothing was built.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
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
}

impl Config {
    /// A leader announces every `announce`, a follower gives it up after `listen` of silence, or
    /// never if that is `None`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the announce period is zero or the listen timeout shorter than it.
    pub const fn new(
        announce: Duration,
        listen: Option<Duration>,
        suppression: Suppression,
        rules: Rules,
    ) -> Result<Self, ConfigError> {
        if announce.is_zero() {
            return Err(ConfigError::AnnounceZero { announce });
        }
        if let Some(listen) = listen
            && listen.as_micros() < announce.as_micros()
        {
            return Err(ConfigError::ListenTooShort { listen, announce });
        }
        let fifth = announce.div(5);
        let reply = if fifth.is_zero() { Duration::from_micros(1) } else { fifth };
        Ok(Self { announce, listen, suppression, rules, reply })
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
}
