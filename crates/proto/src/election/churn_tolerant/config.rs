//! What an operator chooses. Defaults are the chapter's.

use super::message::{MAX_CANDIDATES, MAX_EXCLUDED};
use crate::time::Duration;

/// Which form of the rules to follow; numbers are those of the errata.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Form {
    /// Algorithms 2 to 5 to the letter: messages carry no term, whatever LEADER comes last wins (the
    /// lowest for Optimistic), a dead lowest node is elected again and again (C-4).
    AsPublished,
    /// Terms and fencing tokens (C-11, C-12), several initiators (C-24), dead candidates (C-4), and
    /// repair where `c` was too small (C-10).
    #[default]
    Hardened,
}

/// The four protocols: two policies crossed.
///
/// ```
/// use bellwether_proto::node::{EventualSettings, Variant};
///
/// assert_eq!(EventualSettings::default().variant, Variant::Hybrid);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Variant {
    /// Algorithm 2: the lowest of `c + 1` answers.
    Base,
    /// Algorithm 3: Base that notifies on every improvement.
    Optimistic,
    /// Algorithm 4: the lowest that no answer calls unhealthy.
    Preferred,
    /// Algorithm 5: Preferred that notifies on every change.
    Hybrid,
}

/// When the would-be leader is told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Notify {
    /// Once `c + 1` answers are in.
    AtEnd,
    /// Whenever an answer changes who it would be. Sooner, but leaders may follow each other.
    Streaming,
}

/// Whether the unhealthy may lead.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Health {
    /// Nobody asks: Base and Optimistic.
    Ignore,
    /// Answers name the unhealthy, who are passed over: Preferred and Hybrid.
    Exclude {
        /// `x`: candidates in an answer. Raising it makes it likelier that somebody is left.
        candidates: u16,
        /// `y`: unhealthy ones in an answer. Raising it keeps more of them out, and elects a node of a
        /// worse key.
        excluded: u16,
        /// `θ`: nobody suspected fewer times is called unhealthy.
        threshold: u32,
        /// How the unhealthy of several answers count.
        rule: ExcludeRule,
    },
}

/// How the unhealthy of several answers count (C-7).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ExcludeRule {
    /// Whoever is named once is out: the pseudo-code and the worked example.
    #[default]
    Union,
    /// Only the `y` largest sums are out: the reference code.
    TopOfSum,
}

/// When answers are counted (C-17).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Decision {
    /// As each one arrives.
    #[default]
    Event,
    /// Every timeout, as the reference simulator does.
    Polled,
}

/// How LEADER reaches everybody (C-13).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Multicast {
    /// One multicast by the network below, whoever it reaches.
    Substrate,
    /// One by one to the whole group, which the host [tells](super::Feed::Group), with
    /// acknowledgements: the reference simulator's way.
    Oracle,
    /// One by one to the leader's own list, with acknowledgements. Misses whoever is not on it.
    OwnList,
    /// To the leader's own list, and whoever hears it first passes it on; now and then everybody tells
    /// somebody who leads, so that nobody is missed for long.
    Gossip {
        /// To how many it is passed on. Raising it reaches those missing from the leader's list sooner.
        spread: u16,
        /// How often to tell somebody. Raising it heals losses and partitions later.
        refresh: Duration,
    },
}

/// What makes one node a better leader than another. Everybody in a group must use the same.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Criterion {
    /// The lower hash of the identity, so that nobody leads because of its name.
    #[default]
    Hash,
    /// The lower identity itself: all of the chapter's experiments.
    Identity,
    /// The larger [attribute](super::Member::attribute), be it priority, health, battery or whatever the
    /// membership says of its members; among equals the lower hash.
    Attribute,
}

/// The chapter's parameters, which rules to follow, and the policies added to them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Config {
    pub(super) form: Form,
    pub(super) notify: Notify,
    pub(super) health: Health,
    pub(super) churn: u16,
    pub(super) crashes: u16,
    pub(super) timeout: Duration,
    pub(super) grace: Option<Duration>,
    pub(super) decision: Decision,
    pub(super) multicast: Multicast,
    pub(super) ask_self: bool,
    pub(super) criterion: Criterion,
    pub(super) margin: u32,
    pub(super) preempt: bool,
}

/// Why a [`Config`] was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Nobody could answer in time.
    #[error("timeout {timeout} must be longer than zero")]
    TimeoutZero {
        /// The timeout asked for.
        timeout: Duration,
    },
    /// More than anybody will ever ask.
    #[error("{value} tolerated: at most {MAX_TOLERATED}")]
    TooTolerant {
        /// The bound asked for.
        value: u16,
    },
    /// More than one datagram holds, or no candidate at all.
    #[error(
        "{candidates} candidates and {excluded} excluded: from 1 to {MAX_CANDIDATES} and at most {MAX_EXCLUDED}"
    )]
    AnswerSize {
        /// Candidates asked for.
        candidates: u16,
        /// Excluded asked for.
        excluded: u16,
    },
    /// As published, a LEADER passed on may come back for ever: there is no telling old from new.
    #[error("gossip needs the hardened form, this is {form:?}")]
    GossipNeedsHardened {
        /// The form asked for.
        form: Form,
    },
    /// It would be told without pause.
    #[error("refresh {refresh} must be longer than zero")]
    RefreshZero {
        /// The period asked for.
        refresh: Duration,
    },
    /// Hashes are not more or less, only before or after.
    #[error("a margin of {margin} needs the attribute criterion, this is {criterion:?}")]
    MarginNeedsAttribute {
        /// The margin asked for.
        margin: u32,
        /// The criterion that does not fit.
        criterion: Criterion,
    },
}

impl Config {
    /// The chapter's values (§5.2, §6.1): `f = 0`, timeout 500 ms, `x = y = 5`, `θ = 1`, and `c` as
    /// measured in a group of 49. Hardened, LEADER is gossiped; as published it is one multicast.
    pub const fn new(variant: Variant, form: Form) -> Self {
        let timeout = Duration::from_millis(500);
        let exclude =
            Health::Exclude { candidates: 5, excluded: 5, threshold: 1, rule: ExcludeRule::Union };
        Self {
            form,
            notify: match variant {
                Variant::Base | Variant::Preferred => Notify::AtEnd,
                Variant::Optimistic | Variant::Hybrid => Notify::Streaming,
            },
            health: match variant {
                Variant::Base | Variant::Optimistic => Health::Ignore,
                Variant::Preferred | Variant::Hybrid => exclude,
            },
            churn: 4,
            crashes: 0,
            timeout,
            grace: Some(Duration::from_secs(4)),
            decision: Decision::Event,
            multicast: match form {
                Form::AsPublished => Multicast::Substrate,
                Form::Hardened => Multicast::Gossip { spread: 2, refresh: Duration::from_secs(2) },
            },
            ask_self: true,
            criterion: Criterion::Hash,
            margin: 0,
            preempt: false,
        }
    }

    /// `c` and `f`: from how many other lists a live node may be missing, and how many may crash at
    /// once. Raising them costs two messages each; too small a `c` elects a wrong leader.
    ///
    /// # Errors
    ///
    /// [`ConfigError::TooTolerant`] above 4096.
    pub const fn with_bounds(self, churn: u16, crashes: u16) -> Result<Self, ConfigError> {
        let value = if churn > crashes { churn } else { crashes };
        if value > MAX_TOLERATED {
            return Err(ConfigError::TooTolerant { value });
        }
        Ok(Self { churn, crashes, ..self })
    }

    /// How long to wait for answers, and for LEADER. At least two journeys across the network (C-22).
    ///
    /// # Errors
    ///
    /// [`ConfigError::TimeoutZero`].
    pub const fn with_timeout(self, timeout: Duration) -> Result<Self, ConfigError> {
        if timeout.is_zero() {
            return Err(ConfigError::TimeoutZero { timeout });
        }
        Ok(Self { timeout, ..self })
    }

    /// How long after its start a node that knows no leader asks for one; `None` leaves that to
    /// [`Command::Elect`](super::Command::Elect). Long enough for the membership to fill its list.
    pub const fn with_grace(self, grace: Option<Duration>) -> Self {
        Self { grace, ..self }
    }

    /// Whether, and how, the unhealthy are passed over.
    ///
    /// # Errors
    ///
    /// [`ConfigError::AnswerSize`] unless 1 to 16 candidates and at most 16 excluded.
    pub const fn with_health(self, health: Health) -> Result<Self, ConfigError> {
        if let Health::Exclude { candidates, excluded, .. } = health
            && (candidates == 0 || candidates > MAX_CANDIDATES || excluded > MAX_EXCLUDED)
        {
            return Err(ConfigError::AnswerSize { candidates, excluded });
        }
        Ok(Self { health, ..self })
    }

    /// When the would-be leader is told.
    pub const fn with_notify(self, notify: Notify) -> Self {
        Self { notify, ..self }
    }

    /// When answers are counted.
    pub const fn with_decision(self, decision: Decision) -> Self {
        Self { decision, ..self }
    }

    /// How LEADER reaches everybody.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for gossip as published, or without a pause.
    pub const fn with_multicast(self, multicast: Multicast) -> Result<Self, ConfigError> {
        if let Multicast::Gossip { refresh, .. } = multicast {
            if matches!(self.form, Form::AsPublished) {
                return Err(ConfigError::GossipNeedsHardened { form: self.form });
            }
            if refresh.is_zero() {
                return Err(ConfigError::RefreshZero { refresh });
            }
        }
        Ok(Self { multicast, ..self })
    }

    /// Whether an initiator counts its own list as one answer, which saves two messages (C-8).
    pub const fn with_ask_self(self, ask_self: bool) -> Self {
        Self { ask_self, ..self }
    }

    /// What makes a node a better leader, and by how much its attribute must exceed that of a living
    /// leader to replace it. At zero a lower key suffices; raising it spares the group hand-overs when
    /// attributes waver.
    ///
    /// # Errors
    ///
    /// [`ConfigError::MarginNeedsAttribute`].
    pub const fn with_criterion(
        self,
        criterion: Criterion,
        margin: u32,
    ) -> Result<Self, ConfigError> {
        if margin > 0 && !matches!(criterion, Criterion::Attribute) {
            return Err(ConfigError::MarginNeedsAttribute { margin, criterion });
        }
        Ok(Self { criterion, margin, ..self })
    }

    /// Whether a better node that joined after the election replaces the leader (RP6). If not, joins
    /// dethrone nobody.
    pub const fn with_preempt(self, preempt: bool) -> Self {
        Self { preempt, ..self }
    }

    /// Which form of the rules it follows.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Whether the unhealthy may lead.
    pub const fn health(&self) -> Health {
        self.health
    }

    /// What makes a node a better leader.
    pub const fn criterion(&self) -> Criterion {
        self.criterion
    }

    /// When the would-be leader is told.
    pub const fn notify(&self) -> Notify {
        self.notify
    }

    /// `c`, as configured; repair may have raised it since.
    pub const fn churn(&self) -> u16 {
        self.churn
    }

    /// How many may crash while an election runs (`f`).
    pub const fn crashes(&self) -> u16 {
        self.crashes
    }

    /// How LEADER reaches everybody.
    pub const fn multicast(&self) -> Multicast {
        self.multicast
    }

    /// How long to wait for answers, and for LEADER.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) const fn hardened(&self) -> bool {
        matches!(self.form, Form::Hardened)
    }
}

/// The largest `c` or `f`. Arbitrary, but above any group that asks so many.
pub(super) const MAX_TOLERATED: u16 = 4096;
