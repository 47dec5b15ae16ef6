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
mod one_owner_per_key;
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
    one_may_act::OneMayAct, one_of_two_wins::OneOfTwoWins, one_owner_per_key::OneOwnerPerKey,
    one_valid_lease::OneValidLease, own_view::OwnView, settles::Settles,
    time_bounded_detection::TimeBoundedDetection,
};

/// A node gave an answer other than its last.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// When it answered.
    pub now: Time,
    /// The node that answered.
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
    /// A record of this state, life and incarnation.
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
    /// The name of the property.
    pub invariant: &'static str,
    /// When it did not hold.
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

/// What did not hold: the first violation of each property.
#[derive(Clone, Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Notes that a property did not hold, unless that is known of it.
    pub fn add(&mut self, at: Time, invariant: &'static str, detail: String) {
        if self.0.iter().all(|other| other.invariant != invariant) {
            self.0.push(Violation { invariant, at, detail });
        }
    }

    /// All of them, in the order in which they were noted.
    pub fn all(&self) -> &[Violation] {
        &self.0
    }
}

/// Judges the answers of the nodes of an election.
pub struct Safety {
    invariants: Vec<Box<dyn Invariant>>,
    /// The last answer of each node that is up.
    answers: Vec<Option<Leadership>>,
    violations: Violations,
}

impl Safety {
    /// Judges `nodes` nodes by the safety properties of every election.
    pub fn new(nodes: u32) -> Self {
        Self::without_properties(nodes)
            .and(OneLeaderPerEpoch::default())
            .and(EpochNeverGoesBack::default())
            .and(AnswersAreHonest::default())
    }

    /// Judges `nodes` nodes by nothing.
    pub fn without_properties(nodes: u32) -> Self {
        Self {
            invariants: Vec::new(),
            answers: vec![None; nodes as usize],
            violations: Violations::default(),
        }
    }

    /// The same, judged by one property more.
    pub fn and(mut self, invariant: impl Invariant + 'static) -> Self {
        self.invariants.push(Box::new(invariant));
        self
    }

    /// A node answers this from now on; returns whether it is another answer than its last.
    #[inline]
    pub fn answered(&mut self, now: Time, node: NodeId, leadership: Leadership) -> bool {
        let last = &mut self.answers[node.get() as usize];
        if last.as_ref().is_some_and(|last| last.same_answer(&leadership)) {
            return false;
        }
        *last = Some(leadership);
        let sighting = Sighting { now, node, leadership };
        for invariant in &mut self.invariants {
            if let Err(detail) = invariant.answer(&sighting) {
                self.violations.add(now, invariant.name(), detail);
            }
        }
        true
    }

    /// A node starts again without its durable state.
    pub fn forgot(&mut self, node: NodeId) {
        self.invariants.iter_mut().for_each(|invariant| invariant.forgot(node));
    }

    /// A node no longer answers.
    pub fn stopped(&mut self, node: NodeId) {
        self.answers[node.get() as usize] = None;
    }

    /// The first violation of each property.
    pub fn violations(&self) -> &[Violation] {
        self.violations.all()
    }

    /// For each property its name, the situation it guards against, and whether that could have arisen.
    pub fn sometimes(&self) -> Vec<(&'static str, &'static str, bool)> {
        let mut all = Vec::new();
        for invariant in &self.invariants {
            let (situation, arose) = invariant.sometimes();
            all.push((invariant.name(), situation, arose));
        }
        all
    }
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
