//! What an operator chooses: the paper's parameters, and which of its rules to follow.

use super::geometry::{Points, Space};
use crate::{
    id::NodeId,
    time::{Duration, Time},
};

/// Who decides between two that accuse each other.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Arbiters {
    /// Every pair has its own group of members.
    #[default]
    Pairwise,
    /// The external nodes, for all pairs: the centralised baseline (R13).
    Central,
}

/// Whose answers count.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Votes {
    /// Every seat, the two concerned included.
    All,
    /// All but the two concerned (R12.1).
    Neutral,
}

/// When an arbitration is decided.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Decide {
    /// When all have answered, or the time is up.
    Wait,
    /// As soon as the answers left cannot change it (E7).
    Early,
}

/// What to do where neither of two gets a majority.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Tie {
    /// Both ends leave the ring.
    Leave,
    /// The one of larger identity leaves first and gives its votes to the other (R12).
    Concede,
}

/// How the two leases of a pair lie to each other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Phase {
    /// The second opens as the first is heard of: one delay apart for ever (E5).
    Locked,
    /// However they happen to lie.
    Random,
    /// Half a session apart (R12.5).
    Half,
}

/// Which arbitrators are too new to answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Fresh {
    /// Those up for less than `T_arb` (R5.3).
    Reject,
    /// Those not on the list that the request quotes (R14.5).
    Version,
}

/// How groups change with neighbourhoods.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Upgrade {
    /// Either end proposes; a proposal blocks the other's for `T_arb` (R7).
    Published,
    /// The lower end proposes; who is told of a change must win both groups (R7h).
    Joint,
}

/// Who else sits in every group.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Far {
    /// So many members from elsewhere on the ring, by rendezvous hash of the pair (R15).
    Members(u16),
    /// Everybody: only the side with a majority of the ring survives (R15).
    Everybody,
}

/// How a node goes that has lost an arbitration.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Departure {
    /// It goes without a word.
    Silent,
    /// Telling its neighbours, after it has stopped.
    Notify,
}

/// How the phases of a join end.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Pace {
    /// Each after one session's time.
    Slotted,
    /// With the last answer, but for the first session (R8.8).
    Fast,
}

/// The parameters of the protocol and which rules to follow.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Config {
    pub(super) space: Space,
    pub(super) k: usize,
    pub(super) session: Duration,
    pub(super) arbitration: Duration,
    pub(super) drift: u32,
    pub(super) arbiters: Arbiters,
    pub(super) external: (u64, u64),
    /// How late a joiner may wake.
    pub(super) slack: Duration,
    pub(super) votes: Votes,
    pub(super) decide: Decide,
    pub(super) tie: Tie,
    pub(super) phase: Phase,
    pub(super) fresh: Fresh,
    pub(super) upgrade: Upgrade,
    pub(super) retry: (Duration, Duration),
    pub(super) far: Far,
    pub(super) departure: Departure,
    pub(super) pace: Pace,
    pub(super) rejoin: bool,
    pub(super) memory: Duration,
    pub(super) promises: bool,
    pub(super) hints: bool,
    pub(super) repeats: u32,
}

/// Why a [`Config`] was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Nobody would monitor anybody, or more than a message can name.
    #[error("k = {k} must be from 1 to {MOST_NEIGHBOURS}")]
    Neighbours {
        /// The number asked for.
        k: usize,
    },
    /// No time at all, or so long that sums of it overflow.
    #[error(
        "session {session} must be from 1ms to 1h, and arbitration {arbitration} from 1us to that"
    )]
    Times {
        /// The session asked for.
        session: Duration,
        /// The time for an arbitration.
        arbitration: Duration,
    },
    /// A clock that may stand still bounds nothing.
    #[error("a drift of {ppm} ppm: at most {MOST_DRIFT}")]
    Drift {
        /// The bound asked for.
        ppm: u32,
    },
    /// Nobody to decide.
    #[error("central arbitration takes at least one external arbiter")]
    NoArbiters,
}

impl Config {
    /// The paper's protocol, read literally: `k = 3`, sessions of 1 s, `T_a = T_l / 2` (it names none).
    pub const fn as_published() -> Self {
        let session = Duration::from_secs(1);
        let t_arb = Duration::from_millis(2_500);
        Self {
            space: Space::new(Points::Hash, 64),
            k: 3,
            session,
            arbitration: Duration::from_millis(500),
            drift: 0,
            arbiters: Arbiters::Pairwise,
            external: (0, 0),
            slack: Duration::ZERO,
            votes: Votes::All,
            decide: Decide::Wait,
            tie: Tie::Leave,
            phase: Phase::Locked,
            fresh: Fresh::Reject,
            upgrade: Upgrade::Published,
            retry: (t_arb, Duration::from_secs(5)),
            far: Far::Members(0),
            departure: Departure::Silent,
            pace: Pace::Slotted,
            rejoin: false,
            memory: t_arb,
            promises: true,
            hints: true,
            repeats: 0,
        }
    }

    /// All repairs: neutral votes, early decisions, concessions, half a session's offset, joint upgrades, far
    /// arbitrators, goodbyes, and coming back after a lost arbitration.
    pub const fn hardened() -> Self {
        Self {
            votes: Votes::Neutral,
            decide: Decide::Early,
            tie: Tie::Concede,
            phase: Phase::Half,
            fresh: Fresh::Version,
            upgrade: Upgrade::Joint,
            retry: (Duration::from_secs(1), Duration::from_secs(2)),
            far: Far::Members(8),
            departure: Departure::Notify,
            pace: Pace::Fast,
            rejoin: true,
            drift: 100,
            ..Self::as_published()
        }
    }

    /// `T_l` and `T_a`. Shorter sessions notice sooner and cost `4k / T_l` messages a node; a whole exchange must fit
    /// either, or live neighbours are suspected.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Times`].
    pub const fn with_times(
        self,
        session: Duration,
        arbitration: Duration,
    ) -> Result<Self, ConfigError> {
        let (s, a) = (session.as_micros(), arbitration.as_micros());
        if s < 1_000 || s > 3_600_000_000 || a == 0 || a > 3_600_000_000 {
            return Err(ConfigError::Times { session, arbitration });
        }
        let t_arb = Duration::from_micros(2 * s + a);
        let retry = match self.upgrade {
            Upgrade::Published => (t_arb, Duration::from_micros(4 * s + 2 * a)),
            Upgrade::Joint => (session, Duration::from_micros(2 * s)),
        };
        Ok(Self { session, arbitration, memory: t_arb, retry, ..self })
    }

    /// `k`: how many neighbours on either side. Raising it costs `4k / T_l` and tolerates `k` crashes at once. With
    /// [`Far::Members`] the default number of far arbitrators follows: `2k + 2`, unless there are none.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Neighbours`].
    pub const fn with_neighbours(self, k: usize) -> Result<Self, ConfigError> {
        if k == 0 || k > MOST_NEIGHBOURS {
            return Err(ConfigError::Neighbours { k });
        }
        let far = match self.far {
            Far::Members(0) | Far::Everybody => self.far,
            Far::Members(_) => Far::Members(2 * k as u16 + 2),
        };
        Ok(Self { k, far, ..self })
    }

    /// By how much a clock may be fast or slow, in millionths. All waits on which safety rests grow by
    /// `(1 + ρ) / (1 - ρ)`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Drift`].
    pub const fn with_drift(self, ppm: u32) -> Result<Self, ConfigError> {
        if ppm > MOST_DRIFT {
            return Err(ConfigError::Drift { ppm });
        }
        Ok(Self { drift: ppm, ..self })
    }

    /// How often a request that is not acknowledged is said again within its session, at equal distances. Raising it makes
    /// a lost packet cost less, and a dead neighbour so many packets more. When a session began does not depend on it.
    pub const fn with_repeats(self, repeats: u32) -> Self {
        Self { repeats, ..self }
    }

    /// Nodes outside the ring that only arbitrate: `count` of them from the identity `first` on. Pairwise, they sit
    /// in the groups of rings with fewer than three members (R14.4).
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoArbiters`] if they are to decide everything and there are none.
    pub const fn with_arbiters(
        self,
        arbiters: Arbiters,
        first: NodeId,
        count: u64,
    ) -> Result<Self, ConfigError> {
        if matches!(arbiters, Arbiters::Central) && count == 0 {
            return Err(ConfigError::NoArbiters);
        }
        Ok(Self { arbiters, external: (first.get(), count), ..self })
    }

    /// Where nodes stand.
    pub const fn with_points(self, points: Points, bits: u32) -> Self {
        Self { space: Space::new(points, bits), ..self }
    }

    /// Whose answers count.
    pub const fn with_votes(self, votes: Votes) -> Self {
        Self { votes, ..self }
    }

    /// When arbitrations are decided.
    pub const fn with_decide(self, decide: Decide) -> Self {
        Self { decide, ..self }
    }

    /// What becomes of a tie.
    pub const fn with_tie(self, tie: Tie) -> Self {
        Self { tie, ..self }
    }

    /// How the two leases of a pair lie to each other.
    pub const fn with_phase(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    /// Which arbitrators are too new.
    pub const fn with_fresh(self, fresh: Fresh) -> Self {
        Self { fresh, ..self }
    }

    /// How groups change.
    pub const fn with_upgrade(self, upgrade: Upgrade) -> Self {
        Self { upgrade, ..self }
    }

    /// Between which bounds a refused proposal waits before it is made again.
    pub const fn with_retry(self, least: Duration, most: Duration) -> Self {
        Self { retry: (least, most), ..self }
    }

    /// Who else sits in every group.
    pub const fn with_far(self, far: Far) -> Self {
        Self { far, ..self }
    }

    /// How a node goes that has lost.
    pub const fn with_departure(self, departure: Departure) -> Self {
        Self { departure, ..self }
    }

    /// How the phases of a join end.
    pub const fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Whether a node that had to leave joins again, as a new incarnation.
    pub const fn with_rejoin(self, rejoin: bool) -> Self {
        Self { rejoin, ..self }
    }

    /// For checkers that must find what goes wrong: how long arbitrators remember, where the rule says `T_arb`.
    pub const fn with_memory(self, memory: Duration) -> Self {
        Self { memory, ..self }
    }

    /// For checkers that must find what goes wrong: whether who asks is told of promised groups (R7h.4).
    pub const fn with_promises(self, promises: bool) -> Self {
        Self { promises, ..self }
    }

    /// For measurements of the second way: whether upgrades and closes are also told outright, besides on leases.
    pub const fn with_hints(self, hints: bool) -> Self {
        Self { hints, ..self }
    }

    /// The length of one session of a lease (`T_l`).
    pub const fn session(&self) -> Duration {
        self.session
    }

    /// How long a verdict is waited for (`T_a`).
    pub const fn arbitration(&self) -> Duration {
        self.arbitration
    }

    /// `T_arb = 2 T_l + T_a`, without drift.
    pub fn t_arb(&self) -> Duration {
        self.session * 2 + self.arbitration
    }

    /// How many neighbours a member has on either side (`k`).
    pub const fn neighbours(&self) -> usize {
        self.k
    }

    /// The bound on drift, in millionths.
    pub const fn drift(&self) -> u32 {
        self.drift
    }

    /// The ring's points.
    pub const fn space(&self) -> &Space {
        &self.space
    }

    /// Whose answers count.
    pub const fn votes(&self) -> Votes {
        self.votes
    }

    /// When arbitrations are decided.
    pub const fn decide(&self) -> Decide {
        self.decide
    }

    /// What becomes of a tie.
    pub const fn tie(&self) -> Tie {
        self.tie
    }

    /// How the two leases of a pair lie to each other.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Which arbitrators are too new.
    pub const fn fresh(&self) -> Fresh {
        self.fresh
    }

    /// How groups change.
    pub const fn upgrade(&self) -> Upgrade {
        self.upgrade
    }

    /// How a node goes that has lost.
    pub const fn departure(&self) -> Departure {
        self.departure
    }

    /// How the phases of a join end.
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Whether a node that had to leave joins again.
    pub const fn rejoins(&self) -> bool {
        self.rejoin
    }

    /// The same, where a joiner may wake so late and go on: for hosts that cannot wake anybody on the microsecond.
    pub const fn with_slack(self, slack: Duration) -> Self {
        Self { slack, ..self }
    }

    /// Whether the consent of the other end of a pair, which has no seat, suffices to change its group: when one of
    /// three dies, the two left have only the dead one to decide between them, and could never get another.
    pub(super) fn asks_the_other(&self) -> bool {
        self.upgrade == Upgrade::Joint && self.votes == Votes::Neutral
    }

    /// Whether a node is an external arbitrator.
    pub const fn is_external(&self, id: NodeId) -> bool {
        let (first, count) = self.external;
        id.get() >= first && id.get() - first < count
    }

    /// The external arbitrators.
    pub fn external(&self) -> impl Iterator<Item = NodeId> + use<> {
        let (first, count) = self.external;
        (first..first.saturating_add(count)).map(NodeId::new)
    }

    /// A wait on which safety rests, on a clock that may be fast, for something bounded by one that may be slow.
    pub const fn waiting(&self, wait: Duration) -> Duration {
        let (fast, slow) = (1_000_000 + self.drift as u128, 1_000_000 - self.drift as u128);
        let micros = (wait.as_micros() as u128 * fast).div_ceil(slow);
        Duration::from_micros(micros as u64)
    }

    /// When what was asked at `asked` may be buried.
    pub(super) fn burial(&self, asked: Time) -> Time {
        asked + self.waiting(self.t_arb())
    }
}

/// The largest `k`. Arbitrary; a list of so many neighbours still fits a datagram.
pub const MOST_NEIGHBOURS: usize = 32;
/// The largest drift: a clock half as fast again, or slow. Arbitrary, far beyond any oscillator.
pub const MOST_DRIFT: u32 = 500_000;
