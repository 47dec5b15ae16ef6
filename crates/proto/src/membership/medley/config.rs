//! What an operator chooses. Defaults are the chapter's, with its time unit of 100 ms.

use core::hash::{Hash, Hasher};

use super::message::MAX_UPDATES;
use crate::{
    hash::Real,
    mechanism::{pinged::Patience, sampling::MOST_DISTINCT},
    time::Duration,
};

/// Which form of the rules to follow; numbers are those of the errata.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Form {
    /// The chapter and its reference code, mended only where they would not work at all.
    AsPublished,
    /// Complaints counted once and forgotten in time (M-3, M-4), silence noticed (M-5), bags bounded
    /// (M-9) and open to newcomers, partitions healed (M-15), absurd numbers ignored (M-28), old
    /// suspicions faded (M-29), lists compared now and then.
    #[default]
    Hardened,
}

/// How targets are weighed and who is favoured.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Strategy {
    /// All alike: SWIM.
    Swim,
    /// The near more often.
    Medley,
    /// And those that complain of being pinged too rarely.
    Active,
    /// And, now and then, those not heard of for long.
    Passive,
    /// Both kinds of feedback: Medley-F.
    Both,
}

/// How a target is drawn.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Selection {
    /// Each draw for itself.
    Independent,
    /// From a bag that holds everybody at least once and is emptied before it is filled again, so that
    /// the time between two pings is bounded.
    #[default]
    Bag,
}

/// When periods begin.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Phase {
    /// At multiples of the period, everywhere at once, as in the reference simulator.
    Sync,
    /// At random, and each up to a tenth longer than the period.
    #[default]
    Random,
}

/// Which messages carry news.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Carriers {
    /// All that probe or are broadcast, as SWIM does.
    #[default]
    PushPull,
    /// Only answers and what is broadcast by those accused, as the reference code does (M-11).
    PullOnly,
}

/// How much news a message carries.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Piggyback {
    /// The least often sent first.
    Bounded {
        /// `B`: updates in one message. Raising it spreads news sooner after many changes at once.
        most: usize,
        /// `λ`: each is sent `λ⌈log2(n+1)⌉` times. Raising it reaches the last node more surely.
        lambda: u32,
    },
    /// All that is recent, as far as the datagram holds it: the reference code's way.
    WholeTable {
        /// How long news is recent.
        lifetime: Duration,
    },
}

/// When to ping those not heard of for long (R4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// `PASSIVE_TIMEOUT`: how long is long.
    pub timeout: Duration,
    /// How likely a period is given to one of them. Raising it spreads news and costs hops.
    pub chance: f64,
}

impl Hash for Attention {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { timeout, chance } = *self;
        (timeout, Real(chance)).hash(state);
    }
}

/// The chapter's parameters, which rules to follow, and the policies added to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    pub(super) form: Form,
    pub(super) exponent: f64,
    pub(super) selection: Selection,
    pub(super) bag_cap: Option<u32>,
    pub(super) phase: Phase,
    pub(super) carriers: Carriers,
    pub(super) piggyback: Piggyback,
    pub(super) period: Duration,
    pub(super) ack: Duration,
    pub(super) suspicion: Duration,
    pub(super) helpers: usize,
    pub(super) active: Option<Patience>,
    pub(super) passive: Option<Attention>,
    pub(super) join_retry: Duration,
    pub(super) sync: Option<u32>,
    pub(super) caution: bool,
    pub(super) local_health: bool,
    pub(super) patient_suspicion: bool,
    pub(super) beat: Option<Duration>,
    pub(super) repeated_pings: bool,
}

impl Hash for Config {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Every field is named, so that a new one is not forgotten.
        let &Self {
            form,
            exponent,
            selection,
            bag_cap,
            phase,
            carriers,
            piggyback,
            period,
            ack,
            suspicion,
            helpers,
            active,
            passive,
            join_retry,
            sync,
            caution,
            local_health,
            patient_suspicion,
            beat,
            repeated_pings,
        } = self;
        (form, Real(exponent), selection, bag_cap, phase, carriers, piggyback).hash(state);
        (period, ack, suspicion, helpers, active, passive, join_retry, sync).hash(state);
        (caution, local_health, patient_suspicion, beat).hash(state);
        // What most do without leaves no trace in digests that are older than it.
        if repeated_pings {
            repeated_pings.hash(state);
        }
    }
}

/// Why a [`Config`] was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Far targets would be favoured, or the weights would not be numbers.
    #[error("exponent {exponent} must be from 0 to {MAX_EXPONENT}")]
    Exponent {
        /// The exponent asked for.
        exponent: f64,
    },
    /// Helpers would be asked after the verdict.
    #[error("ack timeout {ack} must be shorter than period {period} and longer than zero")]
    AckTimeout {
        /// The timeout asked for.
        ack: Duration,
        /// The period asked for.
        period: Duration,
    },
    /// Nobody could contradict in time.
    #[error("suspicion timeout {suspicion} must be at least the period {period}")]
    SuspicionTooShort {
        /// The timeout asked for.
        suspicion: Duration,
        /// The time between two probes.
        period: Duration,
    },
    /// More than one datagram holds, or none.
    #[error("{most} updates a message: must be from 1 to {MAX_UPDATES}, sent at least once")]
    Piggyback {
        /// The number asked for.
        most: usize,
    },
    /// A probability outside 0 to 1.
    #[error("{value} must be from 0 to 1")]
    NoProbability {
        /// The number found.
        value: f64,
    },
    /// More helpers than one message of each can be worth.
    #[error("{helpers} helpers: at most {MAX_HELPERS}")]
    TooManyHelpers {
        /// The number asked for.
        helpers: usize,
    },
    /// As published there is no cap.
    #[error("a bag is capped only in the hardened form, at one instance a member or more")]
    Cap,
    /// As published there is no comparing of lists.
    #[error("lists are compared only in the hardened form, once in one period or more")]
    Sync,
    /// As published nobody is watched.
    #[error(
        "beat {every} must be longer than zero and shorter than the period, in the hardened form"
    )]
    Beat {
        /// The time asked for.
        every: Duration,
    },
    /// As published whoever does not answer once is accused.
    #[error("caution exists only in the hardened form")]
    Caution,
}

impl Config {
    /// The chapter's values (§4.1.1) for a strategy: exponent 3, or 0 for SWIM; period 2 s, ack timeout
    /// 500 ms, suspicion 16 s, 3 helpers, 16 updates a message.
    pub const fn new(strategy: Strategy, form: Form) -> Self {
        let hardened = matches!(form, Form::Hardened);
        let interval = Duration::from_secs(8);
        let silence = if hardened { Some(Duration::from_secs(16)) } else { None };
        let patience = Patience { interval, gain: 0.125, silence };
        let attention = Attention { timeout: Duration::from_secs(40), chance: 0.1 };
        let active = matches!(strategy, Strategy::Active | Strategy::Both);
        let passive = matches!(strategy, Strategy::Passive | Strategy::Both);
        Self {
            form,
            exponent: if matches!(strategy, Strategy::Swim) { 0.0 } else { 3.0 },
            selection: Selection::Bag,
            bag_cap: if hardened { Some(BAG_CAP) } else { None },
            phase: Phase::Random,
            carriers: Carriers::PushPull,
            piggyback: Piggyback::Bounded { most: 16, lambda: 3 },
            period: Duration::from_secs(2),
            ack: Duration::from_millis(500),
            suspicion: Duration::from_secs(16),
            helpers: 3,
            active: if active { Some(patience) } else { None },
            passive: if passive { Some(attention) } else { None },
            join_retry: Duration::from_secs(3),
            sync: if hardened { Some(SYNC) } else { None },
            caution: hardened,
            local_health: false,
            patient_suspicion: false,
            beat: None,
            repeated_pings: false,
        }
    }

    /// `m`: raising it keeps pings nearer and leaves the far ones waiting longer.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Exponent`] unless from 0 to 16.
    pub fn with_exponent(self, exponent: f64) -> Result<Self, ConfigError> {
        if !(0.0..=MAX_EXPONENT).contains(&exponent) {
            return Err(ConfigError::Exponent { exponent });
        }
        Ok(Self { exponent, ..self })
    }

    /// `T`, the wait for a direct answer, and the wait for a contradiction. Raising any of them finds
    /// failures later and accuses the slow less often.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] unless zero < ack < period <= suspicion.
    pub fn with_times(
        self,
        period: Duration,
        ack: Duration,
        suspicion: Duration,
    ) -> Result<Self, ConfigError> {
        if ack >= period || ack.is_zero() {
            return Err(ConfigError::AckTimeout { ack, period });
        }
        if suspicion < period {
            return Err(ConfigError::SuspicionTooShort { suspicion, period });
        }
        Ok(Self { period, ack, suspicion, ..self })
    }

    /// `k`: how many are asked to ping a target that did not answer.
    ///
    /// # Errors
    ///
    /// [`ConfigError::TooManyHelpers`] above 16.
    pub const fn with_helpers(self, helpers: usize) -> Result<Self, ConfigError> {
        if helpers > MAX_HELPERS {
            return Err(ConfigError::TooManyHelpers { helpers });
        }
        Ok(Self { helpers, ..self })
    }

    /// How a target is drawn.
    pub const fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// `Lmax` for each member (M-9): about how many instances a bag holds on average. Raising it
    /// keeps pings nearer and lengthens the bound, `2(Lmax + 1)N + 1` periods. `None` is as published.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Cap`] for zero, and in the published form.
    pub fn with_bag_cap(self, cap: Option<u32>) -> Result<Self, ConfigError> {
        if cap.is_some() && (cap == Some(0) || self.form == Form::AsPublished) {
            return Err(ConfigError::Cap);
        }
        Ok(Self { bag_cap: cap, ..self })
    }

    /// When periods begin.
    pub const fn with_phase(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    /// Which messages carry news.
    pub const fn with_carriers(self, carriers: Carriers) -> Self {
        Self { carriers, ..self }
    }

    /// How much news a message carries.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Piggyback`] if that is none, or might not fit a datagram.
    pub const fn with_piggyback(self, piggyback: Piggyback) -> Result<Self, ConfigError> {
        if let Piggyback::Bounded { most, lambda } = piggyback
            && (most == 0 || most > MAX_UPDATES || lambda == 0)
        {
            return Err(ConfigError::Piggyback { most });
        }
        Ok(Self { piggyback, ..self })
    }

    /// When to complain, for the strategies with active feedback; without effect on the others.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoProbability`] for a gain that is none.
    pub fn with_patience(self, patience: Patience) -> Result<Self, ConfigError> {
        if !(0.0..=1.0).contains(&patience.gain) {
            return Err(ConfigError::NoProbability { value: patience.gain });
        }
        Ok(Self { active: self.active.map(|_| patience), ..self })
    }

    /// Whom to ping out of turn, for the strategies with passive feedback; without effect on the
    /// others.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoProbability`] for a chance that is none.
    pub fn with_attention(self, attention: Attention) -> Result<Self, ConfigError> {
        if !(0.0..=1.0).contains(&attention.chance) {
            return Err(ConfigError::NoProbability { value: attention.chance });
        }
        Ok(Self { passive: self.passive.map(|_| attention), ..self })
    }

    /// Compare a page of the list with somebody once in so many periods on average, or never. Raising it
    /// saves messages and leaves what gossip has missed unrepaired for longer.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Sync`] for zero, and in the published form, which has no such thing.
    pub fn with_sync(self, periods: Option<u32>) -> Result<Self, ConfigError> {
        if periods.is_some() && (periods == Some(0) || self.form == Form::AsPublished) {
            return Err(ConfigError::Sync);
        }
        Ok(Self { sync: periods, ..self })
    }

    /// Accuse only when silence proves something: a node probes a silent target again until a live one would
    /// hardly have stayed silent so long, holds few accusations at once, fewer if they turn out wrong, keeps
    /// asking those it accuses, and remembers through whom it reaches whom. Where no message is lost it
    /// changes next to nothing.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Caution`] if switched on in the published form.
    pub fn with_caution(self, on: bool) -> Result<Self, ConfigError> {
        if on && self.form == Form::AsPublished {
            return Err(ConfigError::Caution);
        }
        Ok(Self { caution: on, ..self })
    }

    /// Lifeguard's local health: a node whose probes fail asks more rarely and waits longer, up to nine
    /// times. Fewer false accusations by the overloaded; slower detection by them.
    pub const fn with_local_health(self, on: bool) -> Self {
        Self { local_health: on, ..self }
    }

    /// Lifeguard's dynamic suspicion: a single accuser is believed only after `24 T log10 n`, three
    /// after `4 T log10 n`, instead of all after the suspicion timeout.
    pub const fn with_patient_suspicion(self, on: bool) -> Self {
        Self { patient_suspicion: on, ..self }
    }

    /// How often whoever is [watched](super::ContactChange::Watchers) says that it lives. Three times as long
    /// a silence, and it is probed out of turn; lowering it finds the failures of leaders sooner, and costs two
    /// datagrams each time. `None` watches nobody.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Beat`] for zero, a period or more, and in the published form.
    pub fn with_beat(self, every: Option<Duration>) -> Result<Self, ConfigError> {
        let bad = |every: &Duration| every.is_zero() || *every >= self.period;
        if let Some(every) = every.filter(|every| bad(every) || self.form == Form::AsPublished) {
            return Err(ConfigError::Beat { every });
        }
        Ok(Self { beat: every, ..self })
    }

    /// Whether a target that does not answer in time is pinged twice more, besides asking helpers: for hosts that find
    /// other ways for a word that was not answered.
    pub const fn with_repeated_pings(self, repeated_pings: bool) -> Self {
        Self { repeated_pings, ..self }
    }

    /// How often whoever is watched says that it lives.
    pub const fn beat(&self) -> Option<Duration> {
        self.beat
    }

    /// `T`: the time between two pings.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// How long a suspect has to contradict.
    pub const fn suspicion(&self) -> Duration {
        self.suspicion
    }

    /// Which form of the rules it follows.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// How targets are drawn.
    pub const fn selection(&self) -> Selection {
        self.selection
    }

    /// When periods begin.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// `Lmax` for each member, if bags are bounded.
    pub const fn bag_cap(&self) -> Option<u32> {
        self.bag_cap
    }

    /// Once in how many periods a page of the list is compared, if ever.
    pub const fn sync(&self) -> Option<u32> {
        self.sync
    }

    pub(super) fn hardened(&self) -> bool {
        self.form == Form::Hardened
    }

    /// How long a suspect has to contradict if `confirmations` others join its accuser, in a group of
    /// `members`.
    pub(super) fn suspicion_of(&self, confirmations: usize, members: usize) -> Duration {
        if !self.patient_suspicion {
            // The chapter's timeout is 2 T ln 50: news takes longer where there are more to hear it.
            let growth = libm::log(members as f64 + 1.0) / libm::log(50.0);
            let factor = if self.hardened() { growth.max(1.0) } else { 1.0 };
            return self.suspicion.scale(factor);
        }
        let shortest = (4.0 * libm::log10(members as f64)).max(1.0);
        let doubt = libm::log(confirmations as f64 + 1.0) / libm::log(CONFIRMATIONS as f64 + 1.0);
        let factor = 6.0 * shortest - 5.0 * shortest * doubt;
        self.period.scale(factor.max(shortest))
    }

    /// The shortest and the longest a suspect may have to contradict in a group of `members`.
    pub fn suspicion_bounds(&self, members: usize) -> (Duration, Duration) {
        (self.suspicion_of(CONFIRMATIONS, members), self.suspicion_of(0, members))
    }

    /// How long a tombstone stands: far longer than any news of the dead travels (M-14).
    pub(super) fn tomb(&self) -> Duration {
        self.suspicion_of(0, MOST_MEMBERS).max(self.suspicion) * 10
    }
}

/// With this many instances a member, about one ping in seventeen goes to the far at any exponent.
/// Arbitrary within what M-9 leaves open.
const BAG_CAP: u32 = 16;
/// `K` of dynamic suspicion: so many confirmations leave no doubt.
pub(super) const CONFIRMATIONS: usize = 2;
/// Tombstones outlive suspicions in groups of up to this size. Arbitrary.
const MOST_MEMBERS: usize = 1_000;
/// Spec, "Beyond".
const SYNC: u32 = 50;
/// Distances from 0.1 to 10^6 raised to it stay within a double. Arbitrary otherwise.
const MAX_EXPONENT: f64 = 16.0;
/// The chapter uses 3.
pub(super) const MAX_HELPERS: usize = MOST_DISTINCT;
