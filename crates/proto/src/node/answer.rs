//! What a node answers: who leads, and what it knows.

use alloc::{collections::BTreeMap, string::String, vec, vec::Vec};

use super::{
    About, Contest, Node, OnIsolation, Phase, Plan, Position, Score, Sent, founding::Founding,
    names::Names, voters::Voters,
};
use crate::{
    churn::estimate::ChurnEstimate,
    epoch::Epoch,
    id::{ElectionId, NodeId, Peer},
    leadership::{Election as _, Leadership, Mode, Why},
    membership::medley::{DetailsTooLong, Medley},
    time::{Duration, Time},
};

impl Node {
    /// Its identity, and which of its lives this is.
    pub const fn me(&self) -> Peer {
        self.me
    }

    /// What it was told to be, as it is now.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The membership below the elections.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub const fn membership(&self) -> &Medley {
        self.stack.membership()
    }

    /// What is known of `c`, the number of lists that a live node may be missing from.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub fn churn(&self, now: Time) -> Option<ChurnEstimate> {
        self.stack.churn(now)
    }

    /// Whether it has started, and neither left nor been superseded.
    pub const fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Leaving { .. })
    }

    /// Whether it was stopped for so long that it may have been replaced in some election: the next input makes it give up
    /// leading there. A host asks before it reads its sockets, and throws away what waited there meanwhile.
    pub fn is_late(&self, now: Time) -> bool {
        self.is_running() && self.late_by(now) > self.plan.guard()
    }

    /// By how much it is woken too late.
    pub(super) fn late_by(&self, now: Time) -> Duration {
        match self.due {
            Time::NEVER => Duration::ZERO,
            due => now.since(due),
        }
    }

    /// The other members, suspects included, by identity.
    pub fn members(&self) -> impl Iterator<Item = Peer> {
        self.membership().members().map(|member| Peer::new(member.id, member.boot))
    }

    /// How often it has contradicted an accusation.
    pub const fn refuted(&self) -> u64 {
        self.refuted
    }

    /// What somebody is called, if that is known.
    pub fn name_of(&self, id: NodeId) -> Option<&str> {
        if id == self.me.id {
            return Some(&self.plan.about.name);
        }
        match self.known.get(&id).map(|known| known.name.as_str()) {
            Some(name) if !name.is_empty() => Some(name),
            // Nobody whose word reaches us by gossip, but perhaps on a map.
            _ => self.seats.iter().find_map(|seat| match &seat.contest {
                Contest::Central(central) => central.name_of(id),
                _ => None,
            }),
        }
    }

    /// Where somebody says it is.
    pub fn position_of(&self, id: NodeId) -> Option<Position> {
        if id == self.me.id {
            return self.plan.about.position;
        }
        self.known.get(&id)?.position
    }

    /// The elections, in the order of the settings.
    pub fn elections(&self) -> impl Iterator<Item = ElectionId> {
        self.seats.iter().map(|seat| seat.group)
    }

    /// Who leads an election, as this node can honestly answer at `now`, which may be later than the last input.
    pub fn leadership_of(&self, group: ElectionId, now: Time) -> Leadership {
        match self.position(group) {
            Ok(at) => self.answer(at, now),
            Err(_) => Leadership::unknown(Mode::Eventual, Why::NotRunning),
        }
    }

    /// Since when this node has claimed to lead an election without its claim being confirmed, if so. It does not answer that
    /// it leads meanwhile.
    pub fn tentative_since(&self, group: ElectionId) -> Option<Time> {
        self.stack.election(group)?.tentative()
    }

    /// What others believe, as they last said: who leads, under which epoch.
    pub fn beliefs_of(&self, group: ElectionId) -> BTreeMap<NodeId, (NodeId, Epoch)> {
        let Ok(at) = self.position(group) else { return BTreeMap::new() };
        match &self.seats[at].contest {
            Contest::Eventual => self.seats[at].beliefs.clone(),
            Contest::Leased(leased) => leased.beliefs().clone(),
            Contest::Learned(learned) => learned.beliefs(),
            Contest::Announced(_) | Contest::Central(_) => BTreeMap::new(),
        }
    }

    /// Why nobody leads, in words, if the answer itself does not say.
    pub fn obstacle_of(&self, group: ElectionId, now: Time) -> Option<String> {
        let seat = &self.seats[self.position(group).ok()?];
        // The answer itself says that.
        if seat.barred.is_some() {
            return None;
        }
        match &seat.contest {
            Contest::Eventual | Contest::Announced(_) => None,
            Contest::Leased(leased) => leased.words(now),
            Contest::Learned(learned) => learned.words(now),
            Contest::Central(central) => central.words(now),
        }
    }

    /// What was learnt of those who may lead, the best first.
    pub fn scores_of(&self, group: ElectionId) -> Vec<Score> {
        match self.position(group).map(|at| &self.seats[at].contest) {
            Ok(Contest::Leased(leased)) => leased.scores(),
            Ok(Contest::Learned(learned)) => learned.scores(),
            _ => vec![],
        }
    }

    /// How much an election has said.
    pub fn sent_of(&self, group: ElectionId) -> Sent {
        self.position(group).map(|at| self.seats[at].sent).unwrap_or_default()
    }

    /// The machine of a leased election.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub fn leased(&self, group: ElectionId) -> Option<&Founding> {
        match &self.seats[self.position(group).ok()?].contest {
            Contest::Leased(leased) => Some(leased),
            _ => None,
        }
    }

    /// The machine of a learned election.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub fn learned(&self, group: ElectionId) -> Option<&Voters> {
        match &self.seats[self.position(group).ok()?].contest {
            Contest::Learned(learned) => Some(learned),
            _ => None,
        }
    }

    /// The machine of a central election.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub fn central(&self, group: ElectionId) -> Option<&Names> {
        match &self.seats[self.position(group).ok()?].contest {
            Contest::Central(central) => Some(central),
            _ => None,
        }
    }

    /// Whether hooks forbid this node to lead, or its role does.
    pub fn observes(&self, group: ElectionId) -> bool {
        self.position(group).is_ok_and(|at| self.stands(at).observer)
    }

    /// Whether this much can be told to others.
    ///
    /// # Errors
    ///
    /// [`DetailsTooLong`] says by how much.
    pub fn fits(&self, about: &About) -> Result<(), DetailsTooLong> {
        about.to_details(self.standings()).map(|_| ())
    }

    pub(super) fn answer(&self, at: usize, now: Time) -> Leadership {
        let seat = &self.seats[at];
        let mode = self.plan.seats[at].protocol.mode();
        match self.phase {
            Phase::New | Phase::Gone => return Leadership::unknown(mode, Why::NotRunning),
            Phase::Superseded(by) => {
                return Leadership::unknown(mode, Why::Superseded { by: by.boot });
            }
            Phase::Running | Phase::Leaving { .. } => {}
        }
        if let Some(since) = seat.barred {
            return Leadership::unknown(mode, Why::NotKept { since });
        }
        let answer = match &seat.contest {
            Contest::Eventual => match self.stack.election(seat.group) {
                // Whoever is told that this node leads acts on it.
                Some(election) => match election.tentative() {
                    Some(since) => Leadership::unknown(mode, Why::Electing { since }),
                    None => election.leadership(),
                },
                None => Leadership::unknown(mode, Why::NotRunning),
            },
            Contest::Announced(announced) => announced.leadership(),
            Contest::Leased(leased) => leased.leadership(now),
            Contest::Learned(learned) => learned.leadership(),
            Contest::Central(central) => central.leadership(now),
        };
        if answer.leader == Some(self.me.id)
            && let Some(why) = self.lacks_a_sense(at)
        {
            return Leadership::unknown(mode, why);
        }
        if let Some(since) = self.unkept_since(seat.group, answer.epoch) {
            return Leadership::unknown(mode, Why::BeingKept { since });
        }
        match self.alone.filter(|&since| self.gives_up(at, now, since)) {
            Some(since) => Leadership::unknown(mode, Why::Electing { since }),
            None => answer,
        }
    }

    /// Whether a node that has been alone since then names nobody, itself least of all.
    fn gives_up(&self, at: usize, now: Time, since: Time) -> bool {
        match self.plan.seats[at].on_isolation {
            // Whether it is cut off is for its senses to say.
            OnIsolation::Auto | OnIsolation::Hold => false,
            OnIsolation::HoldFor(span) => now >= since + span,
            OnIsolation::StepDown => true,
        }
    }
}
