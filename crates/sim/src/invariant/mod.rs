//! Invariants: what must hold at every instant, whatever goes wrong.
//!
//! Each is one file with one property, a test in which it fires, and a paired *sometimes*: proof that
//! the situation it guards against could have arisen. A campaign in which a *sometimes* stayed false
//! has shown nothing.

mod acts_when_confirmed;
mod answers_are_honest;
mod completeness;
mod epoch_never_goes_back;
mod incarnation_monotone;
mod leads_on_what_is_kept;
mod live_not_dead_for_long;
mod no_resurrection;
mod nobody_buried_alive;
mod older_life_stops;
mod one_leader_per_epoch;
mod one_leader_per_term;
mod one_may_act;
mod one_of_two_wins;
mod one_valid_lease;
mod own_view;
mod settles;
mod spells;
mod time_bounded_detection;

use std::fmt;

use bellwether_proto::{Boot, Incarnation, Leadership, NodeId, Time, membership::medley};

pub use self::{
    acts_when_confirmed::ActsWhenConfirmed, answers_are_honest::AnswersAreHonest,
    completeness::Completeness, epoch_never_goes_back::EpochNeverGoesBack,
    incarnation_monotone::IncarnationMonotone, leads_on_what_is_kept::LeadsOnWhatIsKept,
    live_not_dead_for_long::LiveNotDeadForLong, no_resurrection::NoResurrection,
    nobody_buried_alive::NobodyBuriedAlive, older_life_stops::OlderLifeStops,
    one_leader_per_epoch::OneLeaderPerEpoch, one_leader_per_term::OneLeaderPerTerm,
    one_may_act::OneMayAct, one_of_two_wins::OneOfTwoWins, one_valid_lease::OneValidLease,
    own_view::OwnView, settles::Settles, time_bounded_detection::TimeBoundedDetection,
};

/// A node gave an answer other than its last.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// When.
    pub now: Time,
    /// Who answered.
    pub node: NodeId,
    /// What it answered.
    pub leadership: Leadership,
}

/// What one node records of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record {
    /// Listed or buried.
    pub state: medley::State,
    /// Of which life.
    pub boot: Boot,
    /// Of which incarnation.
    pub incarnation: Incarnation,
}

impl Record {
    /// A record.
    pub const fn new(state: medley::State, boot: u64, incarnation: u32) -> Self {
        Self { state, boot: Boot::new(boot), incarnation: Incarnation::new(incarnation) }
    }

    /// What is compared: the life first.
    pub fn life(&self) -> (Boot, Incarnation) {
        (self.boot, self.incarnation)
    }
}

/// `Suspect@1.4`: state, life and incarnation.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{}.{}", self.state, self.boot.get(), self.incarnation.get())
    }
}

/// A property of the answers of all nodes.
pub trait Invariant {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Judges one answer.
    ///
    /// # Errors
    ///
    /// The values that contradict the property.
    fn answer(&mut self, sighting: &Sighting) -> Result<(), String>;

    /// A node starts again without its durable state.
    fn forgot(&mut self, _node: NodeId) {}

    /// The situation this guards against, and whether it could have arisen so far.
    fn sometimes(&self) -> (&'static str, bool);
}

/// A property that did not hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// The property.
    pub invariant: &'static str,
    /// When.
    pub at: Time,
    /// The values that contradict it.
    pub detail: String,
}

/// `one_leader_per_epoch epoch=7.2.1.0 leaders=[n2, n4] at=12.340000s`
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at={}", self.invariant, self.detail, self.at)
    }
}

/// The safety properties every election is judged by.
pub fn safety() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(OneLeaderPerEpoch::default()),
        Box::new(EpochNeverGoesBack::default()),
        Box::new(AnswersAreHonest::default()),
    ]
}

#[cfg(test)]
pub(crate) fn sighting(seconds: u64, node: u64, leader: u64, counter: u64) -> Sighting {
    use bellwether_proto::{Boot, Epoch, Mode, Peer, Why};

    let now = Time::from_micros(seconds * 1_000_000);
    let leader = NodeId::new(leader);
    let mut leadership = Leadership::unknown(Mode::Announced, Why::Announced { heard: now });
    leadership.leader = Some(leader);
    leadership.epoch = Some(Epoch::mint(counter, Peer::new(leader, Boot::new(1))));
    leadership.settled = true;
    Sighting { now, node: NodeId::new(node), leadership }
}
