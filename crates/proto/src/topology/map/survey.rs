//! Finds who leads by a map.
//!
//! Answers are asked for after every input and maps change far less often, mostly between a few states while a link
//! flaps: a [`Survey`] remembers some answers by the hash of what they follow from.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Criterion, Edges, FEW, Map};
use crate::{
    id::NodeId,
    rng::mix,
    topology::{criterion::merits, graph::Graph, memo::Memo},
};

/// The answer a map gives.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Answer {
    /// The best member of our component.
    pub leader: NodeId,
    /// Its score by the criterion, see [`Merit`](crate::topology::criterion::Merit).
    pub score: u64,
    /// How many are in the component.
    pub members: u32,
    /// How many of those have told nothing yet.
    pub unknown: u32,
    /// A hash of what the members told, whatever the clocks: whoever holds the same gives the same answer. Lets a
    /// resource tell two leaders of one component apart (E27).
    pub map: u64,
}

/// One member of a component, and how it stands.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Rank {
    /// The member that stands there.
    pub id: NodeId,
    /// Its score, as in [`Answer`]; `None` if it is no candidate.
    pub score: Option<u64>,
    /// Hops from ourselves.
    pub hops: u32,
}

/// Finds leaders, reusing what it has allocated and what it has found before.
#[derive(Clone, Debug)]
pub struct Survey {
    edges: Edges,
    criterion: Criterion,
    /// Which topology the fields below describe.
    seen: Option<u64>,
    /// Members nearest first; ourselves at 0. Above the map's entries come those that have none.
    members: Vec<u32>,
    hops: Vec<u32>,
    /// Where in `members` each is, by place in the map; [`NOWHERE`] if it is not there.
    places: Vec<u32>,
    /// Named in the map, but without an entry.
    strangers: Vec<NodeId>,
    /// Whom each member leads to: from `starts[m]` to `starts[m + 1]`.
    starts: Vec<u32>,
    targets: Vec<u32>,
    scores: Vec<Option<u64>>,
    /// How many are better, where the criterion takes more than scores to tell.
    ranks: Vec<u32>,
    reach: Vec<u64>,
    next: Vec<u64>,
    answers: [Option<(u64, Answer)>; REMEMBERED],
    /// Who led by the last of them.
    last: Option<NodeId>,
    memo: Option<Memo>,
}

impl Survey {
    /// Nothing seen yet.
    pub fn new(edges: Edges, criterion: Criterion) -> Self {
        Self {
            edges,
            criterion,
            seen: None,
            members: Vec::new(),
            hops: Vec::new(),
            places: Vec::new(),
            strangers: Vec::new(),
            starts: Vec::new(),
            targets: Vec::new(),
            scores: Vec::new(),
            ranks: Vec::new(),
            reach: Vec::new(),
            next: Vec::new(),
            answers: [None; REMEMBERED],
            last: None,
            memo: None,
        }
    }

    /// The same, asking first whether somebody else has found the leader of a component.
    pub fn sharing(self, memo: Memo) -> Self {
        Self { memo: Some(memo), ..self }
    }

    /// Who leads the component that a map shows.
    pub fn answer(&mut self, map: &Map) -> Answer {
        let key = map.topology();
        let slot = (key % REMEMBERED as u64) as usize;
        if let Some((known, answer)) = self.answers[slot]
            && known == key
        {
            return answer;
        }
        if !self.criterion.needs_mutual_links()
            && let Some(rows) = map.rows()
        {
            let answer = self.answer_by_rows(map, rows);
            self.answers[slot] = Some((key, answer));
            return answer;
        }
        self.look(map);
        let hash = |&member: &u32| match map.digests.get(member as usize) {
            Some(digest) => *digest,
            // Not from the identity alone, since node 0 would be as if it were not there.
            None => mix(self.id(map, member).get() ^ u64::MAX),
        };
        let component = self.members.iter().map(hash).fold(0, |all, one| all ^ one);
        let unknown = self.members.iter().filter(|&&at| at as usize >= map.entries.len()).count();
        let (leader, score) = self.known(component).unwrap_or_else(|| {
            let (leader, score) = self.best(map);
            self.note(component, leader, score);
            (leader, score)
        });
        let answer = Answer {
            leader,
            score,
            members: self.members.len() as u32,
            unknown: unknown as u32,
            map: component,
        };
        self.answers[slot] = Some((key, answer));
        answer
    }

    /// The best of the members and its score.
    fn best(&mut self, map: &Map) -> (NodeId, u64) {
        self.score(map);
        let scored = (0..self.members.len()).filter_map(|at| Some((at, self.scores[at]?)));
        let id = |at: usize| self.id(map, self.members[at]);
        let (at, score) = match self.criterion {
            Criterion::Closeness => scored.min_by_key(|&(at, score)| (score, Reverse(id(at)))),
            Criterion::Degree => scored.max_by_key(|&(at, score)| (score, id(at))),
            _ => scored.min_by_key(|&(at, _)| (self.ranks[at], Reverse(id(at)))),
        }
        .expect("we are a candidate ourselves: we reach all that we reach");
        (id(at), score)
    }

    /// Who leads a component, if somebody has found out already.
    fn known(&self, component: u64) -> Option<(NodeId, u64)> {
        self.memo.as_ref()?.get(component ^ self.kind())
    }

    fn note(&self, component: u64, leader: NodeId, score: u64) {
        if let Some(memo) = &self.memo {
            memo.put(component ^ self.kind(), leader, score);
        }
    }

    /// Tells surveys of one table apart that look for something else.
    fn kind(&self) -> u64 {
        mix(1 + self.criterion as u64 + ((self.edges as u64) << 32))
    }

    /// The same for few entries, all of whom have told: a word is a set of them.
    fn answer_by_rows(&mut self, map: &Map, stored: &[u64]) -> Answer {
        let mut links = [0_u64; FEW];
        let links = &mut links[..stored.len()];
        links.copy_from_slice(stored);
        if self.edges == Edges::Mutual {
            for (at, link) in links.iter_mut().enumerate() {
                *link &= bits(stored[at])
                    .filter(|&other| stored[other] >> at & 1 == 1)
                    .fold(0, |both, other| both | 1 << other);
            }
        }
        let Ok(own) = map.find(map.me) else { unreachable!("a map has an own entry") };
        let (mut members, mut new) = (0_u64, 1_u64 << own);
        while new != 0 {
            members |= new;
            new = bits(new).fold(0, |all, at| all | links[at]) & !members;
        }
        let component = bits(members).fold(0, |all, at| all ^ map.digests[at]);
        let answer = |leader, score| Answer {
            leader,
            score,
            members: members.count_ones(),
            unknown: 0,
            map: component,
        };
        if let Some((leader, score)) = self.known(component) {
            return answer(leader, score);
        }
        let mut best: Option<(usize, u64)> = None;
        match self.criterion {
            Criterion::Closeness => {
                // Whoever led last is mostly not far from the best, and spares looking at the others for long.
                let last = self.last.and_then(|last| map.find(last).ok());
                let last = last.filter(|&at| members >> at & 1 == 1);
                let mut most = u64::MAX;
                if let Some(at) = last {
                    most = sum_by_rows(links, members, at, most).unwrap_or(most);
                }
                for at in bits(members) {
                    // Ascending, so that the higher of two equals comes last.
                    if let Some(sum) = sum_by_rows(links, members, at, most) {
                        most = sum;
                        best = Some((at, sum));
                    }
                }
            }
            Criterion::Degree => {
                // Whoever leads to us leads to all that we lead to.
                let (mut candidates, mut grew) = (1_u64 << own, true);
                while grew {
                    let leads = |&at: &usize| links[at] & candidates != 0;
                    let more =
                        bits(members & !candidates).filter(leads).fold(0, |all, at| all | 1 << at);
                    grew = more != 0;
                    candidates |= more;
                }
                for at in bits(candidates) {
                    let degree = u64::from((links[at] & !(1 << at)).count_ones());
                    if best.is_none_or(|(_, score)| degree >= score) {
                        best = Some((at, degree));
                    }
                }
            }
            _ => unreachable!("by these, answers are not found by rows"),
        }
        let (at, score) = best.expect("we are a candidate ourselves: we reach all that we reach");
        let leader = map.entries[at].id;
        self.last = Some(leader);
        self.note(component, leader, score);
        answer(leader, score)
    }

    /// The score of a member by the last answer; `None` if it is no candidate.
    pub fn score_of(&mut self, map: &Map, id: NodeId) -> Option<u64> {
        self.look(map);
        self.score(map);
        let at = self.place(map, id)?;
        self.scores[at as usize]
    }

    /// All members, best first.
    pub fn table(&mut self, map: &Map) -> Vec<Rank> {
        self.look(map);
        self.score(map);
        let rank = |at: usize| Rank {
            id: self.id(map, self.members[at]),
            score: self.scores[at],
            hops: self.hops[at],
        };
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|&at| {
            let score = self.scores[at].map(|score| match self.criterion {
                Criterion::Closeness => score,
                Criterion::Degree => u64::MAX - score,
                _ => u64::from(self.ranks[at]),
            });
            (score.is_none(), score, Reverse(self.id(map, self.members[at])))
        });
        order.into_iter().map(rank).collect()
    }

    /// Hops from ourselves to `id`; `None` if it is in no component of ours.
    pub fn hops(&mut self, map: &Map, id: NodeId) -> Option<u32> {
        self.look(map);
        self.place(map, id).map(|at| self.hops[at as usize])
    }

    /// Which entries of the map are of our component, by their place, and how far they are.
    pub fn reached(&mut self, map: &Map) -> impl Iterator<Item = (usize, Option<u32>)> {
        self.look(map);
        let places = self.places[..map.entries.len()].iter().enumerate();
        places.map(|(at, &place)| (at, (place != NOWHERE).then(|| self.hops[place as usize])))
    }

    /// Which member `id` is.
    fn place(&self, map: &Map, id: NodeId) -> Option<u32> {
        let at = match map.find(id) {
            Ok(at) => at,
            Err(_) => {
                map.entries.len() + self.strangers.iter().position(|&stranger| stranger == id)?
            }
        };
        Some(self.places[at]).filter(|&place| place != NOWHERE)
    }

    fn id(&self, map: &Map, node: u32) -> NodeId {
        match map.entries.get(node as usize) {
            Some(entry) => entry.id,
            None => self.strangers[node as usize - map.entries.len()],
        }
    }

    /// L1: finds the component, unless it is the one found last.
    fn look(&mut self, map: &Map) {
        if self.seen == Some(map.topology()) {
            return;
        }
        self.seen = Some(map.topology());
        self.scores.clear();
        self.strangers.clear();
        self.places.clear();
        self.places.resize(map.entries.len(), NOWHERE);
        self.members.clear();
        self.hops.clear();
        self.starts.clear();
        self.targets.clear();
        let Ok(own) = map.find(map.me) else { unreachable!("a map has an own entry") };
        self.join(own as u32, 0);
        let mut from = 0;
        while from < self.members.len() {
            self.starts.push(self.targets.len() as u32);
            self.lead_on(map, from);
            from += 1;
        }
        self.starts.push(self.targets.len() as u32);
    }

    /// Follows the links of one member.
    fn lead_on(&mut self, map: &Map, from: usize) {
        let (node, hops) = (self.members[from], self.hops[from] + 1);
        let id = self.id(map, node);
        let Some(entry) = map.entries.get(node as usize) else {
            if self.edges == Edges::Mutual {
                // Nothing contradicts those who hear it.
                for (other, entry) in map.entries.iter().enumerate() {
                    if entry.view.contains(id) {
                        self.link(other as u32, hops);
                    }
                }
            }
            return;
        };
        for &neighbour in entry.view.neighbours.iter().filter(|&&other| other != id) {
            match map.find(neighbour) {
                Ok(at) => {
                    if self.edges == Edges::AsStored || map.entries[at].view.contains(id) {
                        self.link(at as u32, hops);
                    }
                }
                Err(_) => {
                    let known = self.strangers.iter().position(|&stranger| stranger == neighbour);
                    let at = known.unwrap_or_else(|| {
                        self.strangers.push(neighbour);
                        self.places.push(NOWHERE);
                        self.strangers.len() - 1
                    });
                    self.link((map.entries.len() + at) as u32, hops);
                }
            }
        }
    }

    fn link(&mut self, to: u32, hops: u32) {
        if self.places[to as usize] == NOWHERE {
            self.join(to, hops);
        }
        self.targets.push(self.places[to as usize]);
    }

    fn join(&mut self, node: u32, hops: u32) {
        self.places[node as usize] = self.members.len() as u32;
        self.members.push(node);
        self.hops.push(hops);
    }

    /// L2, for all members, unless they have scores already.
    fn score(&mut self, map: &Map) {
        if self.scores.len() == self.members.len() {
            return;
        }
        self.scores.resize(self.members.len(), None);
        match self.criterion {
            Criterion::Closeness => self.score_by_distance(),
            Criterion::Degree => {
                self.find_candidates();
                for (at, score) in self.scores.iter_mut().enumerate() {
                    *score = score.map(|_| u64::from(self.starts[at + 1] - self.starts[at]));
                }
            }
            _ => self.score_by_merit(map),
        }
    }

    /// Whoever leads to us leads to all that we lead to.
    fn find_candidates(&mut self) {
        self.scores[0] = Some(0);
        let mut found = true;
        while found {
            found = false;
            for at in 1..self.members.len() {
                let leads = |&to: &u32| self.scores[to as usize].is_some();
                let to = self.starts[at] as usize..self.starts[at + 1] as usize;
                if self.scores[at].is_none() && self.targets[to].iter().any(leads) {
                    self.scores[at] = Some(0);
                    found = true;
                }
            }
        }
    }

    /// Sums of distances from all members at once: who reaches whom in one hop more is who its neighbours reached, a bit
    /// for each. Whoever is still missing is one hop farther.
    fn score_by_distance(&mut self) {
        let count = self.members.len();
        self.scores.fill(Some(0));
        let words = count.div_ceil(64);
        for rows in [&mut self.reach, &mut self.next] {
            rows.clear();
            rows.resize(count * words, 0);
        }
        for at in 0..count {
            self.reach[at * words + at / 64] |= 1 << (at % 64);
        }
        let mut grew = true;
        while grew {
            grew = false;
            for at in 0..count {
                let row = at * words..(at + 1) * words;
                let reached: u32 =
                    self.reach[row.clone()].iter().map(|word| word.count_ones()).sum();
                let missing = count as u32 - reached;
                self.next[row.clone()].copy_from_slice(&self.reach[row.clone()]);
                let Some(score) = &mut self.scores[at] else { continue };
                if missing == 0 {
                    continue;
                }
                *score += u64::from(missing);
                let to = self.starts[at] as usize..self.starts[at + 1] as usize;
                for &to in &self.targets[to] {
                    let theirs = &self.reach[to as usize * words..][..words];
                    for (mine, theirs) in self.next[row.clone()].iter_mut().zip(theirs) {
                        *mine |= theirs;
                    }
                }
                if self.next[row.clone()] == self.reach[row] {
                    // No farther, and yet not everywhere.
                    self.scores[at] = None;
                } else {
                    grew = true;
                }
            }
            core::mem::swap(&mut self.reach, &mut self.next);
        }
    }

    /// All links lead both ways: the component is a graph, numbered by identity so that it is the same for all members.
    fn score_by_merit(&mut self, map: &Map) {
        let mut order: Vec<u32> = (0..self.members.len() as u32).collect();
        order.sort_by_key(|&at| self.id(map, self.members[at as usize]));
        let mut numbers = alloc::vec![0; order.len()];
        (0..).zip(&order).for_each(|(number, &at)| numbers[at as usize] = number);
        let mut graph = Graph::new(order.len());
        for (at, ends) in self.starts.windows(2).enumerate() {
            for &to in &self.targets[ends[0] as usize..ends[1] as usize] {
                graph.connect(numbers[at], numbers[to as usize]);
            }
        }
        self.ranks.clear();
        self.ranks.resize(order.len(), 0);
        for (&at, merit) in order.iter().zip(merits(&graph, self.criterion)) {
            self.scores[at as usize] = Some(merit.score);
            self.ranks[at as usize] = merit.rank;
        }
    }
}

/// The places of the bits of a word, ascending.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        (word != 0).then(|| {
            let at = word.trailing_zeros() as usize;
            word &= word - 1;
            at
        })
    })
}

/// The sum of distances from one member to all of them; `None` if it does not reach all, or if the sum exceeds `most`.
fn sum_by_rows(links: &[u64], members: u64, from: usize, most: u64) -> Option<u64> {
    let (mut left, mut new) = (members & !(1 << from), 1_u64 << from);
    let mut missing = u64::from(left.count_ones());
    let (mut sum, mut hops) = (0, 0);
    while missing > 0 {
        hops += 1;
        new = bits(new).fold(0, |all, at| all | links[at]) & left;
        let near = u64::from(new.count_ones());
        left &= !new;
        missing -= near;
        sum += near * hops;
        // Whoever is not reached by now is farther.
        if near == 0 || sum + missing * (hops + 1) > most {
            return None;
        }
    }
    Some(sum)
}

const NOWHERE: u32 = u32::MAX;
/// How many answers are remembered. A link that flaps makes two; several do so at once in a crowd.
const REMEMBERED: usize = 16;
