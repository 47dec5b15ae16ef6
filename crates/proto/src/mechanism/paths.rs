//! How a member reaches another when the link between them is broken: by way of others.
//!
//! Source: rules `HB-1` to `HB-5` and `HB-13` of `docs/rules/half-broken.md`. A cut link is evidence about a link and not about a node. Members
//! of a short list carry each other's words on, so that whoever is connected to a member somehow can talk to it.
//!
//! ```text
//! Sound    --a question sent `doubt` ago, nothing heard since-----> Doubted
//! Sound    --it says, by way of another, that it does not hear us-> Doubted   for as long as `memory`
//! Doubted  --its word reaches us directly, and it hears us--------> Sound
//!
//! to send  --Sound------------------------------------------------> directly
//! to send  --Doubted, and a way is known that answers-------------> directly, and that way
//! to send  --Doubted----------------------------------------------> directly, and by everybody whose link is sound;
//!                                                                   the longer it was silent, the less often
//! to carry --not carried before, and not for us-------------------> as to send, but to nobody that was told already
//! ```
//!
//! Nothing is added to what members say to each other while all links work: a link is judged by the answers to what is
//! said anyway. The direct way is tried all the time, so a mended link is noticed by the first word that passes it.
//!
//! A way is learnt as a bridge learns it: whoever brought the last word of a member is the way to it. Words are numbered
//! by their origin, so that nobody carries one twice, and an older one that comes late shows no way.

use alloc::{collections::BTreeMap, vec::Vec};
use core::cmp::Reverse;

use super::replay::ReplayWindow;
use crate::{
    id::{Boot, NodeId, Peer},
    rng::mix,
    time::{Duration, Time},
};

/// How soon, for how long and by how many.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Manner {
    /// An answer to a question takes less than this, which is shorter than the time after which anybody is given up for
    /// not answering.
    pub doubt: Duration,
    /// How long a way that brought a word is taken to be one, and how long somebody is taken not to hear us that said so.
    pub memory: Duration,
    /// Those asked to carry a word at most, where no way is known.
    pub width: usize,
}

/// What a member knows of the ways to the others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Paths {
    me: NodeId,
    manner: Manner,
    links: BTreeMap<NodeId, Link>,
    numbered: u64,
    /// When somebody last answered.
    answered: Option<Time>,
    /// What was carried, or heard by way of others, by origin.
    carried: BTreeMap<NodeId, (Boot, ReplayWindow)>,
}

/// The ways to one member.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Link {
    /// Its life, as far as it was heard.
    boot: Option<Boot>,
    /// When it was last heard directly, if ever.
    heard: Option<Time>,
    /// The first word we sent it directly since then that is answered.
    waiting: Option<Time>,
    /// The same, since anybody last answered, whatever else it said.
    asked: Option<Time>,
    /// When it last told us, by way of another, that it does not hear us.
    unheard: Option<Time>,
    way: Option<Way>,
    /// The first question to it since a word of its own came, by any way.
    sought: Option<Time>,
    /// When others were last asked to carry a word to it by any way, and how often since one of its own came.
    flooded: Option<Time>,
    floods: u8,
}

/// Who brings its words, which was the last and when, and the first question that went to it by this way since.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Way {
    by: NodeId,
    word: (Boot, u64),
    brought: Time,
    waiting: Option<Time>,
}

/// A word that somebody brought.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Brought {
    /// Whose it is.
    pub origin: Peer,
    /// Which of those that others carry.
    pub number: u64,
    /// Whether it is for us, and nobody else.
    pub ours: bool,
    /// Whether its origin hears nothing from the one it is for.
    pub unheard: bool,
}

/// How a word is sent besides directly.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Detour {
    /// The nodes that carry it.
    pub by: Vec<NodeId>,
    /// How often it may be handed on to others that know no way either.
    pub hops: u8,
    /// Those of them that can be taken to have got it: nobody else need give it to them.
    pub told: Vec<NodeId>,
    /// Whether we hear nothing from the one it is for.
    pub unheard: bool,
}

impl Paths {
    /// Nobody heard yet.
    pub fn new(me: NodeId, manner: Manner) -> Self {
        let (links, carried) = (BTreeMap::new(), BTreeMap::new());
        Self { me, manner, links, numbered: 0, answered: None, carried }
    }

    /// This life of a member speaks. What an earlier one was asked it cannot answer: that it does not says nothing of
    /// whether we are heard.
    pub fn met(&mut self, peer: Peer) {
        if peer.id == self.me {
            return;
        }
        let link = self.links.entry(peer.id).or_default();
        if link.boot.is_none_or(|boot| boot < peer.boot) {
            (link.boot, link.asked) = (Some(peer.boot), None);
        }
    }

    /// A packet of this member has reached us directly.
    pub fn heard(&mut self, now: Time, from: NodeId) {
        if from != self.me {
            let link = self.links.entry(from).or_default();
            (link.heard, link.waiting) = (Some(now), None);
            (link.sought, link.floods) = (None, 0);
        }
    }

    /// Somebody has answered us.
    pub fn answered(&mut self, now: Time) {
        self.answered = Some(now);
        self.links.values_mut().for_each(|link| link.asked = None);
    }

    /// Whether we hear somebody who does not answer, and for as long as `patience` nobody has answered, of two that were
    /// asked if there are two: then it is us that nobody hears (HB-9). One that speaks and does not answer may be deaf. Who
    /// hears nobody at all is alone, which is something else.
    pub fn is_unheard(&self, now: Time, patience: Duration, company: &[NodeId]) -> bool {
        let silent = |at: Time| now.since(at) >= patience;
        let speaks = |link: &Link| {
            let late = link.asked.filter(|&at| silent(at)).map(|at| at + self.manner.doubt * 3);
            let heard = link.heard.filter(|&at| now.since(at) < patience * RECENT);
            late.is_some_and(|late| heard >= Some(late))
        };
        self.answered.is_none_or(silent)
            && self.links.values().any(speaks)
            && self.late(now, company) >= company.len().clamp(1, 2)
    }

    /// Whether somebody spoke lately.
    pub fn hears_any(&self, now: Time, patience: Duration) -> bool {
        let heard = self.links.values().filter_map(|link| link.heard).max();
        heard.is_some_and(|at| now.since(at) < patience * RECENT)
    }

    /// How many of these should have answered by now, and nobody has.
    fn late(&self, now: Time, among: &[NodeId]) -> usize {
        let late = |at: Time| now.since(at) >= self.manner.doubt * 3;
        let asked = |id: &&NodeId| self.links.get(id).is_some_and(|l| l.asked.is_some_and(late));
        among.iter().filter(asked).count()
    }

    /// What this member was asked before it was there, it cannot answer.
    pub fn forget_question(&mut self, id: NodeId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.asked = None;
        }
    }

    /// Questions from before now do not count: who asks for a living asks often, and judges sooner.
    pub fn ask_anew(&mut self) {
        self.links.values_mut().for_each(|link| link.asked = None);
    }

    /// The first question since anybody last answered, if one is open.
    pub fn waits_since(&self) -> Option<Time> {
        self.links.values().filter_map(|link| link.asked).min()
    }

    /// When somebody last answered.
    pub const fn last_answer(&self) -> Option<Time> {
        self.answered
    }

    /// Whether we have asked two or more of those who were there, and nobody at all has spoken since the first question, which was `patience` ago:
    /// then it is us who hear nobody (HB-10).
    pub fn is_deaf(&self, now: Time, patience: Duration, company: &[NodeId]) -> bool {
        let speaks = |since: Time| self.links.values().any(|link| link.heard >= Some(since));
        let silent = |since: Time| now.since(since) >= patience && !speaks(since);
        self.late(now, company) >= 2 && self.waits_since().is_some_and(silent)
    }

    /// `by` has brought a word. Whether it is new; nothing is learnt from copies.
    pub fn brought(&mut self, now: Time, by: NodeId, word: Brought) -> bool {
        let Brought { origin, number, ours, unheard } = word;
        if origin.id == self.me || !self.is_new(origin, number) {
            return false;
        }
        if by != origin.id {
            let link = self.links.entry(origin.id).or_default();
            // An older word that comes late says nothing of who is nearer now. Whoever follows it may send words in a circle.
            let word = (origin.boot, number);
            if link.way.is_none_or(|way| way.word < word) {
                link.way = Some(Way { by, word, brought: now, waiting: None });
            }
            (link.sought, link.floods) = (None, 0);
            if ours && unheard {
                link.unheard = Some(now);
            }
        }
        true
    }

    fn is_new(&mut self, origin: Peer, number: u64) -> bool {
        if self.carried.len() >= MOST && !self.carried.contains_key(&origin.id) {
            return false;
        }
        let fresh = || (origin.boot, ReplayWindow::above(0));
        let (boot, window) = self.carried.entry(origin.id).or_insert_with(fresh);
        if origin.boot > *boot {
            (*boot, *window) = fresh();
        }
        origin.boot == *boot && window.accept(number)
    }

    /// The number of the next word that others are to carry.
    pub const fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }

    /// Whether words to this member and its answers seem to pass directly.
    pub fn is_sound(&self, now: Time, id: NodeId) -> bool {
        self.links.get(&id).is_some_and(|link| link.heard.is_some() && !self.doubted(now, link))
    }

    fn doubted(&self, now: Time, link: &Link) -> bool {
        self.is_late(now, link.waiting)
            || link.unheard.is_some_and(|at| now.since(at) < self.manner.memory)
    }

    fn is_late(&self, now: Time, since: Option<Time>) -> bool {
        since.is_some_and(|at| now.since(at) >= self.manner.doubt)
    }

    /// We send a word of our own to this member directly: how else it is sent. `awaits`: whether it is answered.
    pub fn send(&mut self, now: Time, to: NodeId, awaits: bool) -> Detour {
        let link = self.links.get(&to).copied().unwrap_or_default();
        let mut detour = Detour { unheard: self.is_late(now, link.waiting), ..Detour::default() };
        if self.doubted(now, &link) {
            let hops = if self.may_flood(now, &link) { self.hops(now, &link) } else { 0 };
            detour = Detour { unheard: detour.unheard, ..self.detour(now, to, &[], hops, awaits) };
        }
        if awaits {
            let link = self.links.entry(to).or_default();
            link.waiting = link.waiting.or(Some(now));
            link.asked = link.asked.or(Some(now));
            link.sought = link.sought.or(Some(now));
        }
        detour
    }

    /// We hand a word of another on to this member directly: how else it is sent. `told` have it already, and it may be
    /// handed to `hops` more where no way is known. `awaits`: whether it is answered. Whoever asks us to has no time left to find
    /// out that our link is broken as well.
    pub fn carry(
        &mut self,
        now: Time,
        to: NodeId,
        told: &[NodeId],
        hops: u8,
        awaits: bool,
    ) -> Detour {
        let link = self.links.get(&to).copied().unwrap_or_default();
        if self.heard_lately(now, &link) && !self.doubted(now, &link) {
            return Detour::default();
        }
        self.detour(now, to, told, hops, awaits)
    }

    /// Among few as often as it takes, and where many links are broken from the second time on, by a known way or by others;
    /// else a little farther each time.
    fn hops(&self, now: Time, link: &Link) -> u8 {
        let known =
            self.links.values().filter(|link| link.heard.is_some() || link.waiting.is_some());
        let (known, broken) = known.fold((0, 0), |(known, broken), link| {
            (known + 1, broken + usize::from(self.doubted(now, link)))
        });
        let tried = link.floods > 0 || link.way.is_some_and(|way| self.is_lost(now, &way));
        match known <= FEW || tried && broken * 4 >= known {
            true => FARTHEST,
            false => 1 << link.floods.min(FARTHEST.ilog2() as u8),
        }
    }

    /// Whether a question that went by this way was not answered.
    fn is_lost(&self, now: Time, way: &Way) -> bool {
        way.waiting.is_some_and(|at| now.since(at) >= self.manner.doubt.div(2))
    }

    fn heard_lately(&self, now: Time, link: &Link) -> bool {
        link.heard.is_some_and(|at| now.since(at) < self.manner.doubt)
    }

    /// Those that we have heard too lately for their links to be broken and us not to know.
    fn surely(&self, now: Time, ids: &[NodeId]) -> Vec<NodeId> {
        let lately = |id: &&NodeId| self.links.get(id).is_some_and(|l| self.heard_lately(now, l));
        ids.iter().filter(lately).copied().collect()
    }

    /// The way that is known, if it answers; else some that may know one.
    fn detour(&mut self, now: Time, to: NodeId, told: &[NodeId], hops: u8, awaits: bool) -> Detour {
        let mut next = self.links.get(&to).copied().unwrap_or_default();
        let mut by = Vec::new();
        let answers = |way: &Way| {
            let recent = now.since(way.brought) < self.manner.memory;
            recent && !self.is_lost(now, way) && !told.contains(&way.by)
        };
        if let Some(way) = next.way.filter(answers) {
            by.push(way.by);
            next.way = Some(Way { waiting: way.waiting.or(awaits.then_some(now)), ..way });
        } else if hops > 0 {
            by = self.carriers(now, to, told);
            (next.flooded, next.floods) = (Some(now), next.floods.saturating_add(1));
        }
        self.links.insert(to, next);
        Detour { told: self.surely(now, &by), by, hops: hops.saturating_sub(1), unheard: false }
    }

    /// Those whose links are sound, and if these are too few some whose links may be: an answer may just have been lost.
    /// Of many those heard last, whose links are the surest; of equals others each time, lest it is the wrong ones for
    /// ever.
    fn carriers(&self, now: Time, to: NodeId, told: &[NodeId]) -> Vec<NodeId> {
        let others = self.links.iter().filter(|&(id, _)| *id != to && !told.contains(id));
        let mut others: Vec<(bool, Reverse<Time>, u64, NodeId)> = others
            .filter_map(|(&id, link)| {
                let lot = mix(id.get() ^ mix(to.get() ^ now.as_micros()));
                Some((self.doubted(now, link), Reverse(link.heard?), lot, id))
            })
            .collect();
        others.sort_unstable();
        let sound = others.iter().filter(|(doubted, ..)| !doubted).count();
        let count = sound.max(FEWEST).min(self.manner.width);
        let mut by: Vec<NodeId> = others.into_iter().take(count).map(|(.., id)| id).collect();
        by.sort_unstable();
        by
    }

    /// Whoever has answered nothing for long is probably gone, and costs everybody a packet each time. Whoever has merely not
    /// been asked is not.
    fn may_flood(&self, now: Time, link: &Link) -> bool {
        let silent = link.sought.map_or(Duration::ZERO, |at| now.since(at));
        let pause = match silent < self.manner.doubt * 8 {
            true => Duration::ZERO,
            false => silent.div(8).min(self.manner.doubt * 16),
        };
        link.flooded.is_none_or(|at| now.since(at) >= pause)
    }
}

/// Origins whose words are told apart at once. Arbitrary: many more than are hard to reach at one time.
const MOST: usize = 1_024;
/// How many times its patience ago somebody must have spoken for a node not to be alone.
const RECENT: u64 = 8;
/// With fewer carriers than that a lost answer would cut somebody off.
const FEWEST: usize = 3;
/// Among so many a word may as well reach all. Arbitrary.
const FEW: usize = 24;
/// Beyond that many no network is connected in earnest.
const FARTHEST: u8 = 16;

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::*;

    const DOUBT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1_000)
    }

    fn id(number: u64) -> NodeId {
        NodeId::new(number)
    }

    fn paths(width: usize) -> Paths {
        Paths::new(id(0), Manner { doubt: DOUBT, memory: DOUBT * 4, width })
    }

    /// A word of `origin` for us, or not.
    fn word(origin: u64, number: u64, ours: bool, unheard: bool) -> Brought {
        Brought { origin: Peer::new(id(origin), Boot::new(1)), number, ours, unheard }
    }

    /// It was asked, died, and is back before anybody else was asked.
    #[test]
    fn a_new_life_need_not_answer_what_the_last_one_was_asked() {
        for reborn in [false, true] {
            let mut paths = paths(9);
            let life = |boot| Peer::new(id(1), Boot::new(boot));
            paths.met(life(1));
            paths.heard(at(0), id(1));
            paths.answered(at(0));
            paths.send(at(10), id(1), true);
            paths.met(life(if reborn { 2 } else { 1 }));
            paths.heard(at(500), id(1));
            assert_eq!(paths.is_unheard(at(1_100), DOUBT * 10, &[id(1)]), !reborn);
        }
    }

    #[test]
    fn a_link_whose_questions_are_answered_is_never_in_doubt() {
        let mut paths = paths(9);
        paths.heard(at(0), id(2));
        for step in 0..100 {
            let now = at(step * 90);
            assert_eq!(paths.send(now, id(1), true), Detour::default());
            paths.heard(now, id(1));
            // Nobody answers an answer.
            assert_eq!(paths.send(at(step * 90 + 80), id(1), false), Detour::default());
        }
        assert!(paths.is_sound(at(9_000), id(1)));
    }

    #[test]
    fn a_question_without_an_answer_sends_the_next_word_all_ways_and_one_word_ends_it() {
        let mut paths = paths(9);
        [2, 3].into_iter().for_each(|other| paths.heard(at(0), id(other)));
        assert!(paths.send(at(0), id(1), true).by.is_empty());
        assert!(paths.send(at(99), id(1), true).by.is_empty());
        let detour = paths.send(at(100), id(1), false);
        assert_eq!((detour.by, detour.unheard), (vec![id(2), id(3)], true));
        assert_eq!(detour.told, [], "nobody was heard lately enough to be sure");
        paths.heard(at(101), id(1));
        assert!(paths.send(at(300), id(1), true).by.is_empty());
    }

    #[test]
    fn a_way_that_answers_is_taken_alone_and_all_are_taken_again_once_it_does_not() {
        let mut paths = paths(9);
        [2, 3].into_iter().for_each(|other| paths.heard(at(90), id(other)));
        paths.send(at(0), id(1), true);
        assert_eq!(paths.send(at(100), id(1), true).by, [id(2), id(3)]);
        assert!(paths.brought(at(110), id(3), word(1, 1, true, true)));
        assert!(!paths.brought(at(111), id(2), word(1, 1, true, true)), "a copy");
        assert_eq!(paths.send(at(120), id(1), true).by, [id(3)]);
        assert_eq!(paths.send(at(169), id(1), true).by, [id(3)]);
        assert_eq!(paths.send(at(170), id(1), true).by, [id(2), id(3)], "half of `doubt` later");
    }

    #[test]
    fn whoever_is_told_that_it_is_not_heard_answers_all_ways_though_it_hears() {
        let mut paths = paths(9);
        [1, 2].into_iter().for_each(|other| paths.heard(at(0), id(other)));
        assert!(paths.brought(at(10), id(2), word(1, 7, true, true)));
        let detour = paths.send(at(20), id(1), false);
        assert_eq!((detour.by, detour.unheard), (vec![id(2)], false), "it is heard itself");
        // What is carried because the other asked for it asks for nothing in turn: it comes to an end.
        assert!(paths.brought(at(30), id(2), word(1, 8, true, false)));
        assert!(paths.send(at(410), id(1), false).by.is_empty());
    }

    #[test]
    fn carriers_hand_on_once_and_to_nobody_that_surely_has_it() {
        let mut paths = paths(9);
        [2, 3, 4].into_iter().for_each(|other| paths.heard(at(0), id(other)));
        assert!(paths.brought(at(50), id(2), word(9, 1, false, true)));
        let detour = paths.carry(at(50), id(1), &[id(2), id(3)], 3, true);
        assert_eq!((detour.by, detour.told, detour.hops), (vec![id(4)], vec![id(4)], 2));
        assert!(!paths.brought(at(51), id(3), word(9, 1, false, true)));
        // Who has just heard the receiver needs nobody.
        paths.heard(at(60), id(1));
        assert_eq!(paths.carry(at(61), id(1), &[], 3, true), Detour::default());
        // And the way back is known.
        paths.send(at(70), id(9), true);
        assert_eq!(paths.send(at(170), id(9), true).by, [id(2)]);
        assert_eq!(
            paths.carry(at(171), id(5), &[], 0, true).by,
            [],
            "it was handed on often enough"
        );
    }

    #[test]
    fn the_dead_are_sought_ever_less_and_a_new_life_is_numbered_anew() {
        let mut paths = paths(9);
        paths.heard(at(0), id(2));
        paths.heard(at(0), id(1));
        let sought: Vec<u64> = (0..600u64)
            .map(|step| step * 100)
            .filter(|&now| !paths.send(at(now), id(1), true).by.is_empty())
            .collect();
        assert_eq!(sought[..3], [100, 200, 300], "at first each time");
        assert!(sought.len() < 60, "{}", sought.len());
        let later = |number| Brought {
            origin: Peer::new(id(1), Boot::new(2)),
            ..word(1, number, true, true)
        };
        assert!(paths.brought(at(60_000), id(2), word(1, 5, true, true)));
        assert!(paths.brought(at(60_001), id(2), later(1)));
        assert!(
            !paths.brought(at(60_002), id(2), word(1, 6, true, true)),
            "of a life that is over"
        );
    }

    #[test]
    fn whoever_was_not_asked_for_long_is_sought_as_often_as_anybody() {
        let mut paths = paths(9);
        [1, 2].into_iter().for_each(|other| paths.heard(at(0), id(other)));
        paths.send(at(60_000), id(1), true);
        for now in [60_100, 60_150, 60_200] {
            assert_eq!(paths.send(at(now), id(1), true).by, [id(2)], "{now}");
        }
    }

    /// HB-13: beats and answers are not answered, and a way that carried one is as good as before.
    #[test]
    fn a_way_is_given_up_for_a_question_that_was_not_answered_and_for_nothing_else() {
        for awaits in [false, true] {
            let mut paths = paths(9);
            [2, 3].into_iter().for_each(|other| paths.heard(at(90), id(other)));
            paths.send(at(0), id(1), true);
            assert!(paths.brought(at(110), id(3), word(1, 1, true, true)));
            assert_eq!(paths.send(at(120), id(1), awaits).by, [id(3)]);
            let all = [id(2), id(3)];
            let ways = if awaits { &all[..] } else { &all[1..] };
            assert_eq!(paths.send(at(300), id(1), false).by, ways);
            // The same for what is carried on.
            assert!(paths.brought(at(310), id(3), word(1, 2, false, false)));
            assert_eq!(paths.carry(at(320), id(1), &[], 9, awaits).by, [id(3)]);
            assert_eq!(paths.carry(at(400), id(1), &[], 9, false).by, ways);
        }
    }

    /// HB-13: two carriers that got two words of one origin in different order would else send its answers to each other.
    #[test]
    fn an_older_word_that_comes_late_shows_no_way() {
        let mut paths = paths(9);
        paths.send(at(0), id(1), true);
        assert!(paths.brought(at(110), id(3), word(1, 7, false, false)));
        assert!(paths.brought(at(111), id(2), word(1, 6, false, false)), "it is handed on");
        assert_eq!(paths.send(at(120), id(1), false).by, [id(3)]);
        let reborn = Peer::new(id(1), Boot::new(2));
        assert!(paths.brought(
            at(130),
            id(2),
            Brought { origin: reborn, ..word(1, 1, true, true) }
        ));
        assert_eq!(paths.send(at(140), id(1), false).by, [id(2)], "a new life counts anew");
    }

    #[test]
    fn among_many_few_are_asked_and_a_little_farther_each_time() {
        let mut paths = paths(3);
        (2..=40).for_each(|other| paths.heard(at(other), id(other)));
        paths.send(at(50), id(1), true);
        let detours = [150, 160, 170, 180].map(|now| paths.send(at(now), id(1), true));
        assert!(detours.iter().all(|detour| detour.by == [id(38), id(39), id(40)]));
        assert_eq!(detours.map(|detour| detour.hops), [0, 1, 3, 7]);
        // Where a quarter of the links are broken there is no use in taking small steps.
        (2..=14).for_each(|other| drop(paths.send(at(200), id(other), true)));
        paths.send(at(200), id(90), true);
        let detours = [300, 310].map(|now| paths.send(at(now), id(90), true).hops);
        assert_eq!(detours, [0, FARTHEST - 1], "once those that should know were asked");
        // Nor once a way was tried in vain (HB-13).
        assert!(paths.brought(at(320), id(40), word(90, 1, true, true)));
        let detours = [330, 380].map(|now| paths.send(at(now), id(90), true));
        assert_eq!(
            detours.map(|detour| (detour.by.len(), detour.hops)),
            [(1, 0), (3, FARTHEST - 1)]
        );
    }
}
