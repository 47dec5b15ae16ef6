//! The one answer every election gives.

use core::fmt;

use crate::{
    epoch::Epoch,
    id::{Boot, NodeId},
    machine::Machine,
    time::Time,
    topology::criterion::Criterion,
};

/// Which promise an answer carries. The names are the ones users configure.
///
/// Exhaustive: whoever decides by the mode whether to act must look at every new one.
///
/// ```
/// use bellwether_proto::Mode;
///
/// let may_run_twice = |mode| match mode {
///     Mode::Leased => false,
///     Mode::Learned | Mode::Eventual | Mode::Announced | Mode::Central => true,
/// };
/// assert!(!may_run_twice(Mode::Leased));
/// assert_eq!(Mode::Leased.to_string(), "leased");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Mode {
    /// One leader per connected part once quiet; no quorum.
    Eventual,
    /// One leader per connected component, at its centre.
    Central,
    /// At most one valid lease at any instant, given a bound on clock drift.
    Leased,
    /// At most one leader per epoch, by majority, chosen by learned reliability.
    Learned,
    /// One leader per multicast segment, eventually; nothing to configure, nothing promised while
    /// the segment is split or lossy beyond the listen timeout.
    Announced,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Eventual => "eventual",
            Self::Central => "central",
            Self::Leased => "leased",
            Self::Learned => "learned",
            Self::Announced => "announced",
        })
    }
}

/// Who leads, as one node can honestly answer now.
///
/// ```
/// use bellwether_proto::{Leadership, Mode, NodeId, Time, Why};
///
/// let me = NodeId::new(3);
/// let may_act = |answer: &Leadership, now: Time| {
///     answer.leader == Some(me) && answer.valid_until.is_none_or(|end| now < end)
/// };
/// let nobody = Leadership::unknown(Mode::Leased, Why::Electing { since: Time::ZERO });
/// assert!(!may_act(&nobody, Time::ZERO));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Leadership {
    /// The leader, or none known. A node that names itself may act as leader.
    pub leader: Option<NodeId>,
    /// The fencing token under which it leads. `None` without a leader, and always in the
    /// as-published forms of protocols that have no such token.
    pub epoch: Option<Epoch>,
    /// Which promise this answer carries.
    pub mode: Mode,
    /// Whether the machine has no present reason to doubt the answer: no election running, no
    /// suspicion, no disagreement heard.
    pub settled: bool,
    /// Leased mode only: the instant after which the holder must not act.
    pub valid_until: Option<Time>,
    /// The evidence, for people.
    pub why: Why,
}

impl Leadership {
    /// No leader known, for this reason.
    pub const fn unknown(mode: Mode, why: Why) -> Self {
        Self { leader: None, epoch: None, mode, settled: false, valid_until: None, why }
    }

    /// Whether two answers tell an application the same thing. The evidence is left out: it moves
    /// with every heartbeat while the answer stands still.
    pub fn same_answer(&self, other: &Self) -> bool {
        (self.leader, self.epoch, self.mode, self.settled, self.valid_until)
            == (other.leader, other.epoch, other.mode, other.settled, other.valid_until)
    }
}

/// The evidence behind a [`Leadership`], for people: it moves with every heartbeat.
///
/// ```
/// use bellwether_proto::{Time, Why};
///
/// let why = Why::Unchallenged { since: Time::from_micros(2_500_000) };
/// assert_eq!(why.to_string(), "unchallenged since 2.500000s");
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Why {
    /// The machine has not started, has left, or was told to stop.
    NotRunning,
    /// Waiting since `since` to claim leadership unless somebody better speaks first.
    Standing {
        /// When the wait began.
        since: Time,
    },
    /// Leading since `since`: nobody better has been heard.
    Unchallenged {
        /// When leadership was claimed.
        since: Time,
    },
    /// Following, on the strength of an announcement last heard at `heard`.
    Announced {
        /// When the leader was last heard.
        heard: Time,
    },
    /// Following `leader`, but its token is older than one already seen, so its leadership is not
    /// passed on to the application until it has minted a newer one.
    EpochBehind {
        /// The node followed.
        leader: NodeId,
        /// The smallest counter that would be believed.
        need: u64,
    },
    /// No leader is known, or the one there was has gone: somebody has to ask who is next.
    Electing {
        /// Since when there has been none.
        since: Time,
    },
    /// Following `leader`, which has not answered our question yet: what was heard of it may be a
    /// recording of somebody long dead.
    Unanswered {
        /// The node followed.
        leader: NodeId,
    },
    /// The disk refuses what this node must not forget, so it takes no part.
    NotKept {
        /// When that began.
        since: Time,
    },
    /// This node hears others, and nobody answers it: it would lead those that cannot hear it.
    NotHeard {
        /// When that began.
        since: Time,
    },
    /// This node has asked several, and hears nobody any more: others may have got over it.
    HearsNobody {
        /// When that began.
        since: Time,
    },
    /// What this node must not forget is on its way to the disk, and the answer waits for it.
    BeingKept {
        /// When that began.
        since: Time,
    },
    /// A later life of this node runs elsewhere: this one has stopped.
    Superseded {
        /// The later life's number.
        by: Boot,
    },
    /// Nobody among the `members` of our component has a better score, as far as our map of it goes.
    Central {
        /// How many they are, this node included.
        members: u32,
        /// By what it is the best.
        criterion: Criterion,
        /// The leader's score by that criterion: a sum of distances, a number of neighbours, or thousandths.
        score: u64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => f.write_str("not running"),
            Self::Standing { since } => write!(f, "standing since {since}"),
            Self::Unchallenged { since } => write!(f, "unchallenged since {since}"),
            Self::Announced { heard } => write!(f, "announced, last heard {heard}"),
            Self::EpochBehind { leader, need } => {
                write!(f, "following {leader}, waiting for epoch {need} or later")
            }
            Self::Electing { since } => write!(f, "no leader since {since}"),
            Self::Unanswered { leader } => {
                write!(f, "following {leader}, which has not answered yet")
            }
            Self::NotHeard { since } => {
                write!(f, "hears others since {since}, and nobody answers it")
            }
            Self::HearsNobody { since } => write!(f, "hears nobody any more since {since}"),
            Self::NotKept { since } => {
                write!(f, "the disk has refused what must be kept since {since}")
            }
            Self::BeingKept { since } => {
                write!(f, "the disk has been writing what must be kept since {since}")
            }
            Self::Superseded { by } => {
                write!(f, "another node runs under this identity, in its life {by}")
            }
            Self::Central { members, criterion, score } => {
                write!(f, "most central of {members} by {}, with a score of ", criterion.name())?;
                match criterion.in_thousandths() {
                    true => write!(f, "{}.{:03}", score / 1_000, score % 1_000),
                    false => write!(f, "{score}"),
                }
            }
        }
    }
}

/// A machine that elects. A [`Node`](crate::node::Node) answers for its first election;
/// [`Node::leadership_of`](crate::node::Node::leadership_of) answers for any, at any instant.
///
/// ```
/// use bellwether_proto::{
///     Boot, Election, NodeId, Peer, Seed, Why,
///     node::{ElectionSettings, Node, Settings, TimingProfile},
/// };
///
/// let elections = vec![ElectionSettings::default()];
/// let plan = Settings::new("a", TimingProfile::Lan.timing(), elections).plan().unwrap();
/// let node = Node::new(Peer::new(NodeId::new(1), Boot::new(1)), plan, Seed::new(1), None);
/// assert_eq!(node.leadership().why, Why::NotRunning, "it has not started");
/// ```
pub trait Election: Machine {
    /// The answer as of the last input.
    fn leadership(&self) -> Leadership;
}
