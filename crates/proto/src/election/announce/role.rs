//! What a node is doing, what it waits for, and what it is compared by.

use super::Claim;
use crate::{id::Peer, mechanism::timers::timer_kinds, time::Time};

/// The deadlines this machine keeps; declaration order breaks ties at one instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Timer {
    /// When to repeat our announcement (`T_A`). Armed only while leading.
    Announce,
    /// When to stop believing a silent leader (`T_L`). Armed only while following.
    Listen,
    /// When to claim leadership if nobody better has spoken (`T_S`). Armed only while suppressing.
    Suppress,
    /// When to answer a challenge that came within `T_R` of the last answer. Armed only while
    /// leading.
    Answer,
    /// When to ask the leader for a larger epoch if nobody else has. Armed only while following.
    Hint,
    /// When to claim if nobody has answered our question (`T_Q`), or to ask again. Armed only while
    /// querying, or while following a leader that has yet to answer.
    Query,
    /// When to answer a question that came within `T_R` of the last answer. Armed only while leading.
    Reply,
    /// When to repeat our goodbye (`τ`). Armed only while leaving.
    Bye,
    /// When one that resigned may stand again.
    Return,
}

timer_kinds!(Timer: Announce, Listen, Suppress, Answer, Hint, Query, Reply, Bye, Return);

/// What a node is doing. The chapter's `leader == me` is both suppressing and leading; an application
/// may act only in the second (A-24, H-14).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Not started, left, or retired in favour of a newer life.
    Idle,
    /// Believes itself leader, in silence.
    Suppressing {
        /// When the wait began.
        since: Time,
    },
    /// Believes itself leader unless somebody better answers its question.
    Querying {
        /// When the question was asked.
        since: Time,
    },
    /// It leads, and announces that.
    Leading {
        /// When leadership was claimed.
        since: Time,
        /// The counter of the current token; zero in the base forms.
        epoch: u64,
        /// Whether a better newcomer must let it be. Sticky tenure only.
        established: bool,
    },
    /// Does not stand, and has heard nobody who leads.
    Watching {
        /// When it began to watch.
        since: Time,
    },
    /// Listens to somebody better.
    Following {
        /// The life that it follows.
        leader: Peer,
        /// When it was last heard.
        heard: Time,
        /// The counter it last announced; zero if it has only asked so far, and in the base forms.
        epoch: u64,
        /// What it last claimed.
        claim: Claim,
    },
    /// Led, and is saying goodbye.
    Leaving {
        /// The counter of the last token; zero in the base forms.
        epoch: u64,
        /// How many goodbyes are still to be said.
        left: u8,
    },
}

/// What is compared: larger is better, in the order of the fields (H-4).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Rank {
    pub(super) claim: Claim,
    pub(super) peer: Peer,
}
