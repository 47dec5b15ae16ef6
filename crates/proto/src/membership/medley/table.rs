//! The member table: who is listed, who is buried, and which news changes that.
//!
//! Everybody ever heard of has a position in one sorted book. What changes about a member takes twelve
//! bytes there; its identity and distance take another twelve. Life numbers other than the first are
//! rare and kept apart. What one message asks about a member lies in one cache line.
//!
//! The merge rule (R10) is the whole of the protocol's consistency, so it is a pure function of the
//! table and one [`Update`]. `i` is the life and incarnation it speaks of, `c` the one recorded;
//! lives are compared first (M-13).
//!
//! ```text
//! news \ record   unknown   Alive c          Suspect c                 Failed or Left c
//! Alive, Join i   listed    i > c: raised    i > c: refuted            i > c: listed again
//! Suspect i       -         i >= c: suspect  i > c: suspect again      raise c to i (M-14)
//!                                            i = c: confirmed
//! Failed i        buried    i >= c: removed  i >= c: removed           raise c to i
//! Left i          buried    i >= c: removed  i >= c: removed           raise c to i
//! ```

use alloc::{collections::VecDeque, vec::Vec};

use super::{
    Contact,
    ids::Ids,
    message::{Status, Update},
};
use crate::{
    id::{Boot, Incarnation, NodeId, Peer},
    time::{Duration, Time},
};

/// What is recorded of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// A member that nobody accuses.
    Alive,
    /// A member that is accused and has not contradicted yet.
    Suspect,
    /// No member: declared dead.
    Failed,
    /// No member: has said goodbye.
    Left,
}

/// What an update changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Merged {
    /// Nothing: old, known, or about nobody we know.
    Nothing,
    /// Became a member.
    Listed,
    /// Was a member, in an older incarnation.
    Raised,
    /// It was suspected until now.
    Refuted,
    /// Is now suspected, perhaps again.
    Suspected,
    /// Was suspected of the same already.
    Confirmed,
    /// Was a member and no longer is.
    Removed,
    /// Was no member; its tombstone is new or was raised.
    Buried,
}

/// Everybody but ourselves, by identity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    ids: Ids,
    records: Vec<Record>,
    /// The lives that are not [`FIRST`], by identity.
    boots: Vec<(NodeId, Boot)>,
    /// Tombstones, the oldest first.
    graves: VecDeque<Grave>,
    listed: usize,
    /// How often a record has changed or gone.
    changes: u32,
}

/// Sixteen bytes for each known node.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Record {
    /// `NaN` if unknown.
    distance: f32,
    incarnation: Incarnation,
    /// Last heard of, in units of 2^14 microseconds: 32 bits then last for two years.
    contact: u32,
    /// From the low end: three bits of state, the flags below, and in the upper 24 bits the number of
    /// suspicions in 256ths.
    bits: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Grave {
    id: NodeId,
    dug: Time,
}

impl Record {
    /// Of somebody of whom nothing is known.
    const BLANK: Self =
        Self { distance: f32::NAN, incarnation: Incarnation::new(0), contact: 0, bits: 0 };

    /// As configured.
    fn of(contact: &Contact) -> Self {
        let mut record = Self { distance: contact.distance, ..Self::BLANK };
        record.set_state(contact.member.then_some(State::Alive));
        record.flag(NEIGHBOUR, contact.neighbour);
        record.flag(CONTACT, true);
        record
    }

    #[inline]
    fn state(self) -> Option<State> {
        match self.bits & STATE {
            1 => Some(State::Alive),
            2 => Some(State::Suspect),
            3 => Some(State::Failed),
            4 => Some(State::Left),
            _ => None,
        }
    }

    fn set_state(&mut self, state: Option<State>) {
        let code = match state {
            None => 0,
            Some(State::Alive) => 1,
            Some(State::Suspect) => 2,
            Some(State::Failed) => 3,
            Some(State::Left) => 4,
        };
        self.bits = self.bits & !STATE | code;
    }

    fn has(self, flag: u32) -> bool {
        self.bits & flag != 0
    }

    fn flag(&mut self, flag: u32, on: bool) {
        self.bits = if on { self.bits | flag } else { self.bits & !flag };
    }
}

impl State {
    /// Whether this is a member.
    pub const fn is_listed(self) -> bool {
        matches!(self, Self::Alive | Self::Suspect)
    }
}

/// The book: positions, distances, contacts.
impl Table {
    /// The book as configured. Of several contacts of one identity the last counts; `me` is none.
    pub(super) fn new(me: NodeId, mut contacts: Vec<Contact>) -> Self {
        contacts.retain(|contact| contact.id != me);
        contacts.sort_by_key(|contact| contact.id);
        contacts.dedup_by(|later, contact| {
            let same = later.id == contact.id;
            if same {
                *contact = Contact { member: contact.member || later.member, ..*later };
            }
            same
        });
        let ids = Ids::new(me, contacts.iter().map(|contact| contact.id), contacts.len());
        let listed = contacts.iter().filter(|contact| contact.member).count();
        let records = contacts.iter().map(Record::of).collect();
        Self { ids, records, boots: Vec::new(), graves: VecDeque::new(), listed, changes: 0 }
    }

    /// How many positions there are, members or not.
    pub(super) fn positions(&self) -> usize {
        self.ids.len()
    }

    /// How many members there are.
    pub(super) fn listed(&self) -> usize {
        self.listed
    }

    #[inline]
    pub(super) fn position(&self, id: NodeId) -> Option<usize> {
        self.ids.position(id)
    }

    /// The first position behind `id`, known or not.
    pub(super) fn behind(&self, id: NodeId) -> usize {
        self.ids.behind(id)
    }

    pub(super) fn id(&self, at: usize) -> NodeId {
        self.ids.get(at)
    }

    pub(super) fn distance(&self, at: usize) -> f32 {
        self.records[at].distance
    }

    /// How far the farthest neighbour is; zero if there is none of known distance.
    pub(super) fn farthest_neighbour(&self) -> f32 {
        let near = (0..self.positions()).filter(|&at| self.is_neighbour(at));
        near.map(|at| self.distance(at)).fold(0.0, f32::max)
    }

    /// It answered a ping of ours: there is a way to it and back.
    pub(super) fn set_answered(&mut self, at: usize) {
        self.records[at].flag(ANSWERED, true);
    }

    pub(super) fn has_answered(&self, at: usize) -> bool {
        self.records[at].has(ANSWERED)
    }

    pub(super) fn is_neighbour(&self, at: usize) -> bool {
        self.records[at].has(NEIGHBOUR)
    }

    #[inline]
    pub(super) fn state(&self, at: usize) -> Option<State> {
        self.records[at].state()
    }

    pub(super) fn is_listed(&self, at: usize) -> bool {
        self.state(at).is_some_and(State::is_listed)
    }

    /// The life and incarnation recorded.
    #[inline]
    pub(super) fn life(&self, at: usize) -> (Boot, Incarnation) {
        let record = self.records[at];
        let boot = if record.has(OTHER_LIFE) {
            let found = self.boots.binary_search_by_key(&self.ids.get(at), |&(id, _)| id);
            found.map_or(FIRST, |found| self.boots[found].1)
        } else {
            FIRST
        };
        (boot, record.incarnation)
    }

    pub(super) fn peer(&self, at: usize) -> Peer {
        Peer::new(self.ids.get(at), self.life(at).0)
    }

    /// How often it was suspected, as far as that has not faded.
    pub(super) fn suspicions(&self, at: usize) -> u32 {
        (self.records[at].bits / (SUSPICION / 2)).div_ceil(2)
    }

    /// Halves every count of suspicions (M-29).
    pub(super) fn fade_suspicions(&mut self) {
        for record in &mut self.records {
            let flags = record.bits & (SUSPICIONS_FROM - 1);
            record.bits = (record.bits >> 1) & !(SUSPICIONS_FROM - 1) | flags;
        }
    }

    pub(super) fn touch(&mut self, now: Time, at: usize) {
        self.records[at].contact = coarse(now);
    }

    pub(super) fn touch_all(&mut self, now: Time) {
        self.records.iter_mut().for_each(|record| record.contact = coarse(now));
    }

    /// For how long nothing was heard of it.
    pub(super) fn silence(&self, now: Time, at: usize) -> Duration {
        let units = coarse(now).saturating_sub(self.records[at].contact);
        Duration::from_micros(u64::from(units) << COARSE_BITS)
    }

    /// What the host says of a node. It stays in the book from now on.
    pub(super) fn set_near(&mut self, at: usize, distance: f32, neighbour: bool) {
        self.records[at].distance = distance;
        self.records[at].flag(NEIGHBOUR, neighbour);
        self.records[at].flag(CONTACT, true);
    }

    /// The position of `id`, and whether it is new. Whoever keeps something per position has to make
    /// room if so.
    pub(super) fn admit(&mut self, id: NodeId) -> (usize, bool) {
        let (at, new) = self.ids.admit(id);
        if new {
            self.records.insert(at, Record::BLANK);
        }
        (at, new)
    }

    fn set_life(&mut self, at: usize, (boot, incarnation): (Boot, Incarnation)) {
        let id = self.ids.get(at);
        let record = &mut self.records[at];
        record.incarnation = incarnation;
        if !record.has(OTHER_LIFE) && boot == FIRST {
            return;
        }
        record.flag(OTHER_LIFE, true);
        match self.boots.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(found) => self.boots[found].1 = boot,
            Err(found) => self.boots.insert(found, (id, boot)),
        }
    }
}

/// Rule R10 and what it leaves behind.
impl Table {
    /// Whether the update would change anything about a node without a position: then, and only then,
    /// it must be [admitted](Table::admit) first.
    pub(super) fn introduces(status: Status) -> bool {
        !matches!(status, Status::Suspect { .. })
    }

    /// R10 for the node at `at`, which is the subject of `update`: what it becomes; `None` if the update is old,
    /// known, or about nobody we know.
    #[inline]
    fn outcome(&self, at: usize, update: &Update) -> Option<(State, Merged)> {
        let news = (update.subject.boot.max(FIRST), update.incarnation);
        let known = self.life(at);
        let outcome = match (update.status, self.state(at)) {
            (Status::Alive | Status::Join, None) if news >= known => (State::Alive, Merged::Listed),
            (Status::Alive | Status::Join, Some(state)) if news > known => match state {
                State::Alive => (State::Alive, Merged::Raised),
                State::Suspect => (State::Alive, Merged::Refuted),
                State::Failed | State::Left => (State::Alive, Merged::Listed),
            },
            (Status::Suspect { .. }, Some(State::Alive)) if news >= known => {
                (State::Suspect, Merged::Suspected)
            }
            (Status::Suspect { .. }, Some(State::Suspect)) if news > known => {
                (State::Suspect, Merged::Suspected)
            }
            (Status::Suspect { .. }, Some(State::Suspect)) if news == known => {
                (State::Suspect, Merged::Confirmed)
            }
            (Status::Suspect { .. } | Status::Failed { .. } | Status::Left, Some(tomb))
                if !tomb.is_listed() && news > known =>
            {
                (tomb, Merged::Buried)
            }
            (Status::Failed { .. }, None) if news >= known => (State::Failed, Merged::Buried),
            (Status::Left, None) if news >= known => (State::Left, Merged::Buried),
            (Status::Failed { .. }, Some(state)) if state.is_listed() && news >= known => {
                (State::Failed, Merged::Removed)
            }
            (Status::Left, Some(state)) if state.is_listed() && news >= known => {
                (State::Left, Merged::Removed)
            }
            _ => return None,
        };
        Some(outcome)
    }

    /// As long as this stays the same, so do state, life and incarnation of everybody.
    #[inline]
    pub(super) fn changes(&self) -> u32 {
        self.changes
    }

    /// Whether the update would change nothing about a node that has a position. Cheaper than to merge it: of the
    /// news that comes in, hardly any is new.
    #[inline]
    pub(super) fn is_old(&self, update: &Update) -> bool {
        let at = self.position(update.subject.id);
        at.is_some_and(|at| self.outcome(at, update).is_none())
    }

    /// R10 for the node at `at`, which is the subject of `update`.
    pub(super) fn merge(&mut self, now: Time, at: usize, update: &Update) -> Merged {
        let Some((next, merged)) = self.outcome(at, update) else { return Merged::Nothing };
        if merged != Merged::Confirmed {
            self.changes = self.changes.wrapping_add(1);
        }
        self.become_state(now, at, next);
        self.set_life(at, (update.subject.boot.max(FIRST), update.incarnation));
        if merged == Merged::Suspected {
            let record = &mut self.records[at];
            record.bits = record.bits.checked_add(SUSPICION).unwrap_or(record.bits);
        }
        merged
    }

    /// The one place where a node changes its state.
    fn become_state(&mut self, now: Time, at: usize, next: State) {
        let id = self.ids.get(at);
        let before = self.state(at);
        self.records[at].set_state(Some(next));
        match (before.is_some_and(State::is_listed), next.is_listed()) {
            (false, true) => {
                self.listed += 1;
                self.touch(now, at);
            }
            (true, false) => self.listed -= 1,
            (true, true) | (false, false) => {}
        }
        if before.is_some_and(|before| !before.is_listed()) {
            self.graves.retain(|grave| grave.id != id);
        }
        if !next.is_listed() {
            self.graves.push_back(Grave { id, dug: now });
        }
    }

    /// When the oldest tombstone was set.
    pub(super) fn oldest_grave(&self) -> Option<Time> {
        self.graves.front().map(|grave| grave.dug)
    }

    /// How many are known but no members: buried, or never heard of.
    pub(super) fn unlisted(&self) -> usize {
        self.positions() - self.listed
    }

    /// The `nth` of them.
    pub(super) fn nth_unlisted(&self, nth: usize) -> Option<NodeId> {
        let at = (0..self.positions()).filter(|&at| !self.is_listed(at)).nth(nth)?;
        Some(self.ids.get(at))
    }

    /// Forgets the oldest tombstone: the position of its node goes with it and is returned. That of a contact of
    /// the host's is set anew instead, for as long as it is one: news of it may come from beyond any partition.
    pub(super) fn exhume(&mut self, now: Time) -> Option<(usize, NodeId)> {
        let id = self.graves.pop_front()?.id;
        let at = self.position(id)?;
        if self.records[at].has(CONTACT) {
            self.graves.push_back(Grave { id, dug: now });
            return None;
        }
        self.changes = self.changes.wrapping_add(1);
        self.ids.remove(at);
        self.records.remove(at);
        self.boots.retain(|&(other, _)| other != id);
        Some((at, id))
    }
}

/// Lives are counted from one. Whoever is listed without ever having spoken is taken to be in its first:
/// suspicions must name one, and of a larger one the suspect could not clear itself.
pub(super) const FIRST: Boot = Boot::new(1);

const STATE: u32 = 0b111;
const NEIGHBOUR: u32 = 1 << 3;
/// Stays in the book when its tombstone is forgotten: somebody to join by.
const CONTACT: u32 = 1 << 4;
const OTHER_LIFE: u32 = 1 << 5;
/// Has answered a ping of ours.
const ANSWERED: u32 = 1 << 6;
const SUSPICIONS_FROM: u32 = 1 << 8;
/// One suspicion.
const SUSPICION: u32 = 1 << 16;

const COARSE_BITS: u32 = 14;

fn coarse(now: Time) -> u32 {
    u32::try_from(now.as_micros() >> COARSE_BITS).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::vec;

    use proptest::prelude::*;

    use super::*;

    fn table() -> Table {
        let contact =
            |id| Contact { id: NodeId::new(id), distance: 1.0, neighbour: true, member: true };
        Table::new(NodeId::new(0), vec![contact(1), contact(0), contact(7)])
    }

    fn news(status: Status, boot: u64, incarnation: u32) -> Update {
        let subject = Peer::new(NodeId::new(7), Boot::new(boot));
        Update { subject, incarnation: Incarnation::new(incarnation), status }
    }

    const BY: NodeId = NodeId::new(3);
    const SUSPECT: Status = Status::Suspect { by: BY };
    const FAILED: Status = Status::Failed { by: BY };

    fn apply(table: &mut Table, update: &Update) -> Merged {
        let at = table.position(NodeId::new(7)).unwrap();
        table.merge(Time::ZERO, at, update)
    }

    #[test]
    fn sixteen_bytes_a_member_with_its_distance() {
        assert_eq!(size_of::<Record>(), 16);
    }

    /// V11, and the same in a later life.
    #[test]
    fn news_is_merged_as_the_table_says() {
        for boot in [1, 9] {
            let mut table = table();
            apply(&mut table, &news(Status::Alive, boot, 3));
            let at = table.position(NodeId::new(7)).unwrap();
            for (status, incarnation, merged, state, recorded) in [
                (SUSPECT, 2, Merged::Nothing, State::Alive, 3),
                (SUSPECT, 3, Merged::Suspected, State::Suspect, 3),
                (Status::Alive, 3, Merged::Nothing, State::Suspect, 3),
                (SUSPECT, 3, Merged::Confirmed, State::Suspect, 3),
                (Status::Alive, 4, Merged::Refuted, State::Alive, 4),
                (FAILED, 3, Merged::Nothing, State::Alive, 4),
                (FAILED, 4, Merged::Removed, State::Failed, 4),
                (Status::Alive, 4, Merged::Nothing, State::Failed, 4),
                (Status::Alive, 5, Merged::Listed, State::Alive, 5),
                (Status::Left, 5, Merged::Removed, State::Left, 5),
                (SUSPECT, 8, Merged::Buried, State::Left, 8),
                (Status::Join, 8, Merged::Nothing, State::Left, 8),
                (Status::Join, 9, Merged::Listed, State::Alive, 9),
            ] {
                let found = apply(&mut table, &news(status, boot, incarnation));
                assert_eq!(found, merged, "{status:?} {incarnation}");
                assert_eq!(table.state(at), Some(state), "{status:?} {incarnation}");
                assert_eq!(table.life(at), (Boot::new(boot), Incarnation::new(recorded)));
                assert_eq!(table.listed(), 1 + usize::from(state.is_listed()));
                assert_eq!(table.graves.len(), usize::from(!state.is_listed()));
            }
            assert_eq!(table.suspicions(at), 1);
            table.fade_suspicions();
            table.fade_suspicions();
            assert_eq!(table.suspicions(at), 0, "faded to a quarter");
            assert!(table.is_listed(at) && table.is_neighbour(at));
        }
    }

    #[test]
    fn a_new_life_counts_more_than_any_incarnation() {
        let mut table = table();
        let at = table.position(NodeId::new(7)).unwrap();
        apply(&mut table, &news(FAILED, 1, 50));
        assert_eq!(apply(&mut table, &news(Status::Alive, 2, 0)), Merged::Listed);
        assert_eq!(apply(&mut table, &news(FAILED, 1, 99)), Merged::Nothing);
        assert_eq!(table.life(at), (Boot::new(2), Incarnation::new(0)));
    }

    #[test]
    fn forgotten_strangers_leave_the_book_and_contacts_stay_buried() {
        let mut table = table();
        let (stranger, new) = table.admit(NodeId::new(4));
        assert!(new);
        let update = Update { subject: Peer::new(NodeId::new(4), FIRST), ..news(FAILED, 1, 0) };
        assert_eq!(table.merge(Time::ZERO, stranger, &update), Merged::Buried);
        apply(&mut table, &news(FAILED, 5, 0));
        let later = Time::from_micros(1);
        assert_eq!((table.unlisted(), table.nth_unlisted(1)), (2, Some(NodeId::new(7))));
        assert_eq!(table.exhume(later), Some((stranger, NodeId::new(4))));
        assert_eq!((table.positions(), table.graves.len()), (2, 1));
        assert_eq!(table.exhume(later), None);
        assert_eq!((table.positions(), table.oldest_grave()), (2, Some(later)));
        assert_eq!(apply(&mut table, &news(Status::Alive, 5, 0)), Merged::Nothing);
        assert_eq!(apply(&mut table, &news(Status::Alive, 5, 1)), Merged::Listed);
    }

    #[test]
    fn silence_is_measured_in_coarse_units() {
        let mut table = table();
        let heard = Time::from_micros(5_000_000);
        table.touch(heard, 1);
        let silence = table.silence(heard + Duration::from_secs(40), 1).as_secs_f64();
        assert!((silence - 40.0).abs() < 0.017, "{silence}");
        assert_eq!(table.silence(Time::ZERO, 1), Duration::ZERO);
    }

    fn any_news(statuses: &'static [Status]) -> impl Strategy<Value = Update> {
        (prop::sample::select(statuses), 1..4_u64, 0..4_u32)
            .prop_map(|(status, boot, incarnation)| news(status, boot, incarnation))
    }

    proptest! {
        /// P7.
        #[test]
        fn lives_only_grow_and_the_dead_stay_dead(
            updates in prop::collection::vec(
                any_news(&[Status::Alive, Status::Join, SUSPECT, FAILED, Status::Left]), 0..40),
        ) {
            let mut table = table();
            let at = table.position(NodeId::new(7)).unwrap();
            for update in updates {
                let (life, listed) = (table.life(at), table.is_listed(at));
                let before = table.clone();
                let merged = apply(&mut table, &update);
                prop_assert!(table.life(at) >= life);
                prop_assert!(table.is_listed(at) <= listed || table.life(at) > life);
                if merged == Merged::Nothing {
                    prop_assert_eq!(&table, &before);
                }
                prop_assert!(matches!(apply(&mut table, &update), Merged::Nothing | Merged::Confirmed));
            }
        }

        /// Suspicion after a death raises the tombstone, before it does not: only without such pairs
        /// does the order not matter.
        #[test]
        fn the_order_of_news_does_not_matter(
            doubts in prop::collection::vec(any_news(&[Status::Alive, SUSPECT]), 0..12),
            deaths in prop::collection::vec(any_news(&[Status::Alive, FAILED]), 0..12),
            seed: u64,
        ) {
            for updates in [doubts, deaths] {
                let mut rng = crate::Seed::new(seed).rng();
                let mut shuffled = updates.clone();
                for last in (1..shuffled.len()).rev() {
                    shuffled.swap(last, rng.below(last as u64 + 1) as usize);
                }
                let [one, other] = [updates, shuffled].map(|updates| {
                    let mut table = table();
                    updates.iter().for_each(|update| { apply(&mut table, update); });
                    (table.state(1), table.life(1))
                });
                prop_assert_eq!(one, other);
            }
        }
    }
}
