//! What an operator chooses.

use crate::{rng::mix, time::Duration};

/// On what a leader's authority rests (R11).
///
/// ```
/// use bellwether_proto::node::{Flavour, LeasedSettings};
///
/// let mut settings = LeasedSettings::of(["a", "b", "c"].map(String::from));
/// settings.flavour = Flavour::Conservative;
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Flavour {
    /// On a majority of its witnesses: independent of whether views agree (R11.9).
    #[default]
    Quorum,
    /// On leases with all its neighbours; a successor acts once the last leader is buried.
    Conservative,
    /// The same; a successor acts once the last leader is condemned, and its leases have run out.
    Fast,
}

/// Which member should lead.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Preference {
    /// The owner of a fixed key.
    #[default]
    Key,
    /// The one at the lowest point of the ring.
    Lowest,
}

/// How to elect.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Config {
    pub(super) flavour: Flavour,
    pub(super) key: u64,
    pub(super) min_members: usize,
    pub(super) waits: bool,
    pub(super) backers: usize,
    pub(super) aftermath: Option<Duration>,
    pub(super) sticky: bool,
    pub(super) margin: u32,
}

impl Config {
    /// The owner of the project's key leads, on its own if it must.
    pub const fn new(flavour: Flavour) -> Self {
        Self {
            flavour,
            key: mix(KEY),
            min_members: 1,
            waits: true,
            backers: 1,
            aftermath: None,
            sticky: false,
            margin: 0,
        }
    }

    /// Who should lead.
    pub const fn with_preference(self, preference: Preference) -> Self {
        let key = match preference {
            Preference::Key => mix(KEY),
            Preference::Lowest => 0,
        };
        Self { key, ..self }
    }

    /// Who should lead, by a key of one's own: several elections of the same members are spread over them.
    pub const fn with_key(self, key: u64) -> Self {
        Self { key: mix(key), ..self }
    }

    /// By quorum: how many must back a leader, itself included, whoever its witnesses are. More than half of all that can
    /// ever be members makes any two leaders share one of them, though rings were founded apart, as long as nobody
    /// backs anybody in a new life, or a new ring, before what it promised in the last is over.
    pub const fn with_backers(self, backers: usize) -> Self {
        Self { backers, ..self }
    }

    /// For hosts that tell others until when they may act: how long what a leader has begun may go on once its authority
    /// is over. Every successor waits as much longer, and waits for the whole lease also where the office is handed over,
    /// as what was told cannot be taken back.
    pub const fn with_aftermath(self, aftermath: Duration) -> Self {
        Self { aftermath: Some(aftermath), ..self }
    }

    /// By quorum: a leader stays though one closer to the key has joined. Saves a hand-over; who leads then depends on
    /// the past.
    pub const fn with_sticky(self, sticky: bool) -> Self {
        Self { sticky, ..self }
    }

    /// By quorum: by how much a member must be [worth less](super::Command::Weigh) than the best to come behind the others.
    /// Raising it makes the key decide more often, about which members cannot differ.
    pub const fn with_margin(self, margin: u32) -> Self {
        Self { margin, ..self }
    }

    /// How many members there must be, the leader included. Above one, nobody leads alone; raising it trades
    /// availability of small rings for fewer surprises.
    pub const fn with_min_members(self, min_members: usize) -> Self {
        Self { min_members, ..self }
    }

    /// For checkers that must find what goes wrong: whether a successor waits for its predecessor's leases to run out.
    pub const fn with_waits(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// On what authority rests.
    pub const fn flavour(&self) -> Flavour {
        self.flavour
    }
}

/// Arbitrary: what the leader's place on the ring is the hash of.
const KEY: u64 = 0x6c65_6164_6572;
