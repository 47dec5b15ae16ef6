//! What a history may have that the regular one has not.

use std::{collections::BTreeMap, fmt};

use bellwether_proto::{Duration, NodeId, Time};

use crate::check::explore::{DELAY, LATE};

/// What may go wrong. Each time it does is one deviation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// A message of the node takes [`Settings::late`].
    Delay,
    /// One does not arrive.
    Loss,
    /// One arrives in time and again after [`Settings::late`].
    Duplicate,
    /// One is the first that does not arrive: nothing passes between the two any more, either way.
    Cut,
    /// The node crashes before it is given something, or having written to its disk and done nothing else.
    Crash,
    /// A crashed node starts again from its disk, after one of [`Settings::down`]. A deviation of its own.
    Restart,
    /// The same with an empty disk.
    LostDisk,
    /// The node handles nothing for one of [`Settings::pauses`]; then what has arrived comes first.
    Pause,
    /// Its disk does not keep something: what the machine asked for after that is not done.
    Refusal,
}

pub(super) const KINDS: usize = 9;

/// How often something may go wrong in a history, and to whom.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Allowed {
    /// How often, at most.
    pub most: u32,
    /// To these; to anybody, if none is named.
    pub nodes: Vec<NodeId>,
}

/// What may go wrong, and when.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a message takes.
    pub delay: Duration,
    /// How long a delayed one takes instead.
    pub late: Duration,
    /// How many deviations a history has at most.
    pub deviations: u32,
    /// From when to when they happen.
    pub window: (Time, Time),
    /// When histories end.
    pub until: Time,
    /// From when on nothing passes between two nodes, either way.
    pub cut: Vec<(Time, NodeId, NodeId)>,
    /// How long a node may be down before it starts again.
    pub down: Vec<Duration>,
    /// How long a node may be paused.
    pub pauses: Vec<Duration>,
    /// Not to look at more states than this. Every first deviation gets a fair share.
    pub most: u64,
    /// Into how many parts first deviations are dealt. Parts are searched in parallel, each for itself; what is found
    /// does not depend on the number of threads, but it does on that of parts.
    pub parts: usize,
    /// What may go wrong at all.
    pub allowed: BTreeMap<Kind, Allowed>,
}

impl Settings {
    /// Ten milliseconds a message, or six hundred; two deviations between two instants, which delay and lose messages,
    /// and histories six seconds longer.
    pub fn new(from: Time, to: Time) -> Self {
        let settings = Self {
            delay: DELAY,
            late: LATE,
            deviations: 2,
            window: (from, to),
            until: to + Duration::from_secs(6),
            cut: Vec::new(),
            down: vec![Duration::from_secs(1)],
            pauses: vec![Duration::from_secs(1)],
            most: u64::MAX,
            parts: 16,
            allowed: BTreeMap::new(),
        };
        settings.allow(Kind::Delay, u32::MAX, []).allow(Kind::Loss, u32::MAX, [])
    }

    /// At most so many of this kind in a history, which happen to these nodes: to anybody, if none is named.
    pub fn allow(mut self, kind: Kind, most: u32, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        self.allowed.insert(kind, Allowed { most, nodes: nodes.into_iter().collect() });
        self
    }
}

/// A place where a history leaves the regular one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deviation {
    /// After how many steps of the history.
    pub step: u64,
    /// At what time.
    pub at: Time,
    /// What happens instead.
    pub what: What,
}

/// What happens in a deviation. Messages are numbered as they are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum What {
    /// A message is late: [`Kind::Delay`].
    Delay {
        /// The number of the message.
        number: u64,
    },
    /// A message is lost: [`Kind::Loss`].
    Loss {
        /// The number of the message.
        number: u64,
    },
    /// A message comes twice: [`Kind::Duplicate`].
    Duplicate {
        /// The number of the message.
        number: u64,
    },
    /// Messages are lost from now on: [`Kind::Cut`].
    Cut {
        /// The first message that does not arrive.
        number: u64,
    },
    /// A node crashes for good: [`Kind::Crash`].
    Crash {
        /// The node that crashes.
        node: NodeId,
        /// Whether it writes to its disk first, once.
        written: bool,
    },
    /// [`Kind::Restart`] or [`Kind::LostDisk`].
    Restart {
        /// The node that crashes and starts again.
        node: NodeId,
        /// How long after this.
        after: Duration,
        /// Whether its disk is empty then.
        lost: bool,
    },
    /// A node is frozen: [`Kind::Pause`].
    Pause {
        /// The node that is frozen.
        node: NodeId,
        /// For how long.
        length: Duration,
    },
    /// A disk refuses a write: [`Kind::Refusal`].
    Refusal {
        /// The node whose disk refuses.
        node: NodeId,
    },
}

impl What {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Delay { .. } => Kind::Delay,
            Self::Loss { .. } => Kind::Loss,
            Self::Duplicate { .. } => Kind::Duplicate,
            Self::Cut { .. } => Kind::Cut,
            Self::Crash { .. } => Kind::Crash,
            Self::Restart { lost: false, .. } => Kind::Restart,
            Self::Restart { lost: true, .. } => Kind::LostDisk,
            Self::Pause { .. } => Kind::Pause,
            Self::Refusal { .. } => Kind::Refusal,
        }
    }

    pub(super) fn message(self) -> Option<u64> {
        match self {
            Self::Delay { number }
            | Self::Loss { number }
            | Self::Duplicate { number }
            | Self::Cut { number } => Some(number),
            _ => None,
        }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after step {}: ", self.at, self.step)?;
        match self.what {
            What::Delay { number } => write!(f, "message {number} is late"),
            What::Loss { number } => write!(f, "message {number} is lost"),
            What::Duplicate { number } => write!(f, "message {number} comes twice"),
            What::Cut { number } => write!(f, "nothing passes any more, from message {number} on"),
            What::Crash { node, written: false } => write!(f, "{node} crashes"),
            What::Crash { node, written: true } => write!(f, "{node} writes and crashes"),
            What::Restart { node, after, lost: false } => {
                write!(f, "{node} is to start again in {after}")
            }
            What::Restart { node, after, lost: true } => {
                write!(f, "{node} is to start again in {after}, its disk lost")
            }
            What::Pause { node, length } => write!(f, "{node} pauses for {length}"),
            What::Refusal { node } => write!(f, "the disk of {node} refuses"),
        }
    }
}
