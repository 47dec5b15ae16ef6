//! Membership traces: what every node's list looked like, every so often, and nothing else of the run.
//!
//! An election can be tried on the lists of a recorded membership, over and over, without running the membership
//! again. A trace says for each node and each look whom it lists and how often it has suspected each of them (its
//! *unhealthiness*); that it lists itself means that it is running.
//!
//! The format, version 1. A number is LEB128, in as few bytes as it takes; fixed ones are little-endian.
//!
//! ```text
//! "BWMT"  version: 1 byte  nodes  interval in us  digest: 8 bytes  seed: 8 bytes  looks  look...
//! look    changed nodes, then for each: gap to the last one  changes  change...
//! change  gap to the last subject  0 if no longer listed, else 1 + suspicions
//! ```
//!
//! The first look is at time zero and compared with empty lists, each other with the one before; nothing is written
//! that did not change. A gap is the difference to the number before it, less one; the first is the number itself.
//! So there is one encoding for each trace, and what is read and written again is the same to the byte.

use std::{collections::BTreeMap, fmt};

use bellwether_proto::{
    Duration, Machine, NodeId, Time,
    membership::medley::{Medley, State as MemberState},
};

use crate::engine::{Observer, Sim, State, TraceHash};

/// Whoever keeps a list of members.
pub trait Lister {
    /// Calls `each` with every member but itself, and how often it was suspected.
    fn listed(&self, each: &mut dyn FnMut(NodeId, u32));
}

impl Lister for Medley {
    fn listed(&self, each: &mut dyn FnMut(NodeId, u32)) {
        Suspects::Listed.listed(self, each);
    }
}

/// Whether a suspect counts as listed (C-16 of `docs/rules/churn-tolerant.md`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Suspects {
    /// It does, until it is removed: our reading.
    #[default]
    Listed,
    /// It does not: what the reference code's elections see.
    Absent,
}

impl Suspects {
    /// The list of a member by this reading, as [`Lister::listed`].
    pub fn listed(self, medley: &Medley, each: &mut dyn FnMut(NodeId, u32)) {
        let counts = |state| self == Self::Listed || state == MemberState::Alive;
        let listed = medley.members().filter(|member| counts(member.state));
        listed.for_each(|member| each(member.id, member.suspicions));
    }
}

/// What happened on one node's list between two looks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Change {
    /// It is listed now, suspected so many times. The node itself: it is running.
    Up {
        /// How often it was suspected.
        suspicions: u32,
    },
    /// It is still listed, and has been suspected so many times.
    Suspicions(u32),
    /// It is no longer listed. The node itself: it is not running.
    Down,
}

/// One change of one list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Feed {
    /// When it was first seen.
    pub at: Time,
    /// On whose list.
    pub node: NodeId,
    /// The member that it is about.
    pub member: NodeId,
    /// What has changed.
    pub change: Change,
}

/// The lists of all nodes over a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MembershipTrace {
    nodes: u32,
    interval: Duration,
    /// The digest of the scenario, and the seed.
    origin: (u64, u64),
    /// For each look what changed: node, subject, 0 or 1 + suspicions; ascending.
    looks: Vec<Vec<(u32, u32, u32)>>,
}

/// Why bytes are no membership trace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceError {
    /// Where, in bytes from the beginning.
    pub offset: usize,
    /// What was found there, and what is wrong with it.
    pub problem: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "membership trace, byte {}: {}", self.offset, self.problem)
    }
}

impl std::error::Error for TraceError {}

impl MembershipTrace {
    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The time between two looks.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The digest of the scenario, as [`Scenario::digest`](crate::scenario::Scenario::digest) gives it, and the seed.
    pub fn origin(&self) -> (u64, u64) {
        self.origin
    }

    /// How many looks there were.
    pub fn looks(&self) -> usize {
        self.looks.len()
    }

    /// What changed at one look: node, subject, 0 or 1 + suspicions; ascending.
    pub(crate) fn look(&self, look: usize) -> &[(u32, u32, u32)] {
        &self.looks[look]
    }

    /// The first look at which a live node no longer lists somebody who has stopped, and that node: the smallest if
    /// there are several.
    pub fn first_detection(&self) -> Option<(usize, NodeId)> {
        let mut stopped = std::collections::BTreeSet::new();
        for (look, changes) in self.looks.iter().enumerate() {
            let downs = || changes.iter().filter(|&&(.., value)| value == 0);
            stopped.extend(downs().filter(|one| one.0 == one.1).map(|one| one.0));
            let detects =
                |one: &&(u32, u32, u32)| stopped.contains(&one.1) && !stopped.contains(&one.0);
            if let Some(&(node, ..)) = downs().find(detects) {
                return Some((look, NodeId::new(u64::from(node))));
            }
        }
        None
    }

    /// Every change in the order of time, then of nodes, then of subjects: what a machine is to be fed.
    pub fn feeds(&self) -> impl Iterator<Item = Feed> + '_ {
        let mut listed = BTreeMap::new();
        self.looks.iter().enumerate().flat_map(move |(look, changes)| {
            let at = Time::ZERO + self.interval * look as u64;
            let feeds: Vec<Feed> = changes
                .iter()
                .map(|&(node, subject, value)| {
                    let before = listed.insert((node, subject), value).unwrap_or(0);
                    let change = match (before, value) {
                        (_, 0) => Change::Down,
                        (0, value) => Change::Up { suspicions: value - 1 },
                        (_, value) => Change::Suspicions(value - 1),
                    };
                    let [node, member] = [node, subject].map(|id| NodeId::new(u64::from(id)));
                    Feed { at, node, member, change }
                })
                .collect();
            feeds
        })
    }

    /// The list of `node` at the last look before or at `at`, itself excepted, and the number of suspicions of each;
    /// `None` if it was not running.
    pub fn list(&self, node: NodeId, at: Time) -> Option<BTreeMap<NodeId, u32>> {
        let mut list = BTreeMap::new();
        for feed in self.feeds().take_while(|feed| feed.at <= at).filter(|feed| feed.node == node) {
            match feed.change {
                Change::Up { suspicions } | Change::Suspicions(suspicions) => {
                    list.insert(feed.member, suspicions);
                }
                Change::Down => {
                    list.remove(&feed.member);
                }
            }
        }
        list.remove(&node).map(|_| list)
    }

    /// The trace in the format of the module.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        put(&mut out, u64::from(self.nodes));
        put(&mut out, self.interval.as_micros());
        out.extend(self.origin.0.to_le_bytes());
        out.extend(self.origin.1.to_le_bytes());
        put(&mut out, self.looks.len() as u64);
        for look in &self.looks {
            let by_node = || look.chunk_by(|one, other| one.0 == other.0);
            put(&mut out, by_node().count() as u64);
            let mut next_node = 0;
            for changes in by_node() {
                put(&mut out, u64::from(changes[0].0 - next_node));
                next_node = changes[0].0 + 1;
                put(&mut out, changes.len() as u64);
                let mut next_subject = 0;
                for &(_, subject, value) in changes {
                    put(&mut out, u64::from(subject - next_subject));
                    next_subject = subject + 1;
                    put(&mut out, u64::from(value));
                }
            }
        }
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`TraceError`] with the place and the value, for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TraceError> {
        let mut reader = Reader { bytes, at: 0 };
        let magic = reader.fixed::<4>("the letters BWMT")?;
        if magic != *MAGIC {
            return Err(reader.error(0, format!("{magic:?} are not the letters BWMT")));
        }
        let version = reader.fixed::<1>("a version")?[0];
        if version != VERSION {
            return Err(reader.error(4, format!("version {version}, not {VERSION}")));
        }
        let nodes = reader.number("nodes", 1..=MOST_NODES)? as u32;
        let interval = reader.number("the interval", 1..=u64::MAX)?;
        let digest = u64::from_le_bytes(reader.fixed("the digest of the scenario")?);
        let seed = u64::from_le_bytes(reader.fixed("the seed")?);
        let looks = reader.number("looks", 0..=u64::MAX / interval)?;
        let mut trace = Self {
            nodes,
            interval: Duration::from_micros(interval),
            origin: (digest, seed),
            looks: Vec::new(),
        };
        let mut listed = BTreeMap::new();
        for _ in 0..looks {
            trace.looks.push(look(&mut reader, nodes, &mut listed)?);
        }
        if reader.at < bytes.len() {
            let left = bytes.len() - reader.at;
            return Err(reader.error(reader.at, format!("{left} bytes follow the last look")));
        }
        Ok(trace)
    }
}

fn look(
    reader: &mut Reader<'_>,
    nodes: u32,
    listed: &mut BTreeMap<(u32, u32), u32>,
) -> Result<Vec<(u32, u32, u32)>, TraceError> {
    let mut changes = Vec::new();
    let mut next_node = 0;
    for _ in 0..reader.number("changed nodes", 0..=u64::from(nodes))? {
        let node = reader.gap("a node", next_node, nodes)?;
        next_node = node + 1;
        let mut next_subject = 0;
        for _ in 0..reader.number("changes", 1..=u64::from(nodes))? {
            let subject = reader.gap("a subject", next_subject, nodes)?;
            next_subject = subject + 1;
            let at = reader.at;
            let value = reader.number("suspicions", 0..=u64::from(u32::MAX))? as u32;
            if listed.insert((node, subject), value).unwrap_or(0) == value {
                return Err(
                    reader.error(at, format!("{value} is no change of n{subject} at n{node}"))
                );
            }
            changes.push((node, subject, value));
        }
    }
    Ok(changes)
}

/// Takes looks at a simulation, or at anything that has lists.
#[derive(Clone, Debug)]
pub struct Recorder {
    trace: MembershipTrace,
    /// By node, then by subject.
    listed: Vec<Vec<(u32, u32)>>,
    /// Kept for its memory.
    now: Vec<(u32, u32)>,
}

impl Recorder {
    /// Nothing has been seen yet. `interval` is at least a microsecond.
    pub fn new(nodes: u32, interval: Duration, digest: TraceHash, seed: u64) -> Self {
        let interval = interval.max(Duration::from_micros(1));
        let origin = (digest.get(), seed);
        let trace = MembershipTrace { nodes, interval, origin, looks: Vec::new() };
        Self { trace, listed: vec![Vec::new(); nodes as usize], now: Vec::new() }
    }

    /// Takes the next look at all nodes.
    pub fn look<M: Machine + Lister, O: Observer<M>>(&mut self, sim: &Sim<M, O>) {
        self.look_by(sim, Lister::listed);
    }

    /// Likewise, with the lists as `listed` has them: the other reading of who is listed.
    pub fn look_by<M: Machine, O: Observer<M>>(
        &mut self,
        sim: &Sim<M, O>,
        listed: impl Fn(&M, &mut dyn FnMut(NodeId, u32)),
    ) {
        let mut changes = Vec::new();
        for (node, before) in (0..sim.len()).zip(&mut self.listed) {
            let now = &mut self.now;
            now.clear();
            if let Some(machine) = sim.machine(node) {
                now.push((node, 1));
                listed(machine, &mut |id, suspicions| {
                    now.push((id.get() as u32, suspicions.saturating_add(1)));
                });
                now.sort_unstable();
            }
            if before != now {
                compare(node, before, now, &mut changes);
                std::mem::swap(before, now);
            }
        }
        self.trace.looks.push(changes);
    }

    /// What was seen.
    pub fn finish(self) -> MembershipTrace {
        self.trace
    }
}

/// Notes what is different in two lists of `node`, which ascend.
fn compare(
    node: u32,
    before: &[(u32, u32)],
    now: &[(u32, u32)],
    changes: &mut Vec<(u32, u32, u32)>,
) {
    let (mut before, mut now) = (before.iter().peekable(), now.iter().peekable());
    loop {
        let next = [before.peek(), now.peek()].into_iter().flatten().map(|entry| entry.0).min();
        let Some(subject) = next else { return };
        let old = before.next_if(|entry| entry.0 == subject).map_or(0, |entry| entry.1);
        let new = now.next_if(|entry| entry.0 == subject).map_or(0, |entry| entry.1);
        if old != new {
            changes.push((node, subject, new));
        }
    }
}

/// Feeds a trace to the machines of a simulation: nodes start and crash as they did, and `feed` makes of every
/// change on a list what the machine takes. Between the looks the simulation runs on; `each` is called after each.
pub fn inject<M: Machine, O: Observer<M>>(
    sim: &mut Sim<M, O>,
    trace: &MembershipTrace,
    mut feed: impl FnMut(NodeId, Change) -> M::Feed,
    mut each: impl FnMut(&Sim<M, O>),
) {
    let mut feeds = trace.feeds().peekable();
    for look in 0..trace.looks() {
        let at = Time::ZERO + trace.interval() * look as u64;
        if sim.advance(at) {
            return;
        }
        let now: Vec<Feed> = std::iter::from_fn(|| feeds.next_if(|feed| feed.at == at)).collect();
        let own = || now.iter().filter(|feed| feed.node == feed.member);
        // Who starts has a list from then on, and who is gone needs none.
        for Feed { node, change, .. } in own() {
            match change {
                Change::Up { .. } => sim.start(node.get() as u32, State::Lost),
                Change::Down => sim.crash(node.get() as u32),
                Change::Suspicions(_) => {}
            }
        }
        for &Feed { node, member, change, .. } in now.iter().filter(|feed| feed.node != feed.member)
        {
            sim.feed(node.get() as u32, feed(member, change));
        }
        each(sim);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn error(&self, offset: usize, problem: String) -> TraceError {
        TraceError { offset, problem }
    }

    fn fixed<const N: usize>(&mut self, what: &str) -> Result<[u8; N], TraceError> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let Some(&found) = found else {
            return Err(self.error(self.bytes.len(), format!("the end, where {what} should be")));
        };
        self.at += N;
        Ok(found)
    }

    fn number(
        &mut self,
        what: &str,
        allowed: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, TraceError> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..).step_by(7) {
            let byte = self.fixed::<1>(what)?[0];
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || bits << shift >> shift != bits {
                return Err(self.error(start, format!("{what}: a number of more than 64 bits")));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    return Err(self.error(start, format!("{what}: {value} in too many bytes")));
                }
                break;
            }
        }
        if !allowed.contains(&value) {
            let (least, most) = (allowed.start(), allowed.end());
            return Err(self.error(start, format!("{what}: {value} is not from {least} to {most}")));
        }
        Ok(value)
    }

    /// A number below `nodes`, written as the distance from `next`.
    fn gap(&mut self, what: &str, next: u32, nodes: u32) -> Result<u32, TraceError> {
        let start = self.at;
        let gap = self.number(what, 0..=u64::from(u32::MAX))?;
        let found = u64::from(next) + gap;
        if found >= u64::from(nodes) {
            return Err(self.error(start, format!("{what}: {found} of {nodes} nodes")));
        }
        Ok(found as u32)
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

const MAGIC: &[u8; 4] = b"BWMT";
const VERSION: u8 = 1;
/// As many as a scenario may have.
const MOST_NODES: u64 = 1_000_000;

/// How often to look unless told otherwise: the thesis's traces.
pub const INTERVAL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace() -> MembershipTrace {
        let looks = vec![
            vec![(0, 0, 1), (0, 2, 1), (2, 0, 1), (2, 2, 1)],
            vec![],
            vec![(0, 2, 300), (1, 0, 1), (1, 1, 1), (1, 2, 2)],
            vec![(0, 0, 0), (0, 2, 0), (1, 0, 0)],
        ];
        let interval = Duration::from_secs(2);
        MembershipTrace { nodes: 3, interval, origin: (7, u64::MAX), looks }
    }

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_list_is_told_for_any_time() {
        let trace = trace();
        let list = |node, seconds| {
            let list = trace.list(NodeId::new(node), at(seconds));
            list.map(|list| list.into_iter().map(|(id, n)| (id.get(), n)).collect::<Vec<_>>())
        };
        assert_eq!(list(0, 3), Some(vec![(2, 0)]));
        assert_eq!(list(0, 4), Some(vec![(2, 299)]));
        assert_eq!(list(0, 6), None, "it is no longer running");
        assert_eq!((list(1, 3), list(1, 5)), (None, Some(vec![(0, 0), (2, 1)])));
        assert_eq!(list(1, 99), Some(vec![(2, 1)]), "as it was last seen");
        let changes: Vec<Change> = trace
            .feeds()
            .filter(|feed| feed.member == NodeId::new(2))
            .map(|feed| feed.change)
            .collect();
        let up = |suspicions| Change::Up { suspicions };
        assert_eq!(changes, [up(0), up(0), Change::Suspicions(299), up(1), Change::Down]);
    }

    #[test]
    fn bytes_are_read_as_written_and_errors_name_the_place() {
        let good = trace().to_bytes();
        assert_eq!(MembershipTrace::from_bytes(&good), Ok(trace()));
        let error = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            MembershipTrace::from_bytes(&bytes).unwrap_err().to_string()
        };
        for (found, expected) in [
            (error(&|bytes| bytes[0] = 0), "byte 0: [0, 87, 77, 84] are not the letters BWMT"),
            (error(&|bytes| bytes[4] = 9), "byte 4: version 9, not 1"),
            (error(&|bytes| bytes[5] = 0), "byte 5: nodes: 0 is not from 1 to 1000000"),
            (
                error(&|bytes| bytes.truncate(3)),
                "byte 3: the end, where the letters BWMT should be",
            ),
            (error(&|bytes| bytes.push(1)), "byte 65: 1 bytes follow the last look"),
            (error(&|bytes| bytes[27] = 8), "byte 27: a node: 8 of 3 nodes"),
            (error(&|bytes| bytes[30] = 0), "byte 30: 0 is no change of n0 at n0"),
        ] {
            assert_eq!(found, format!("membership trace, {expected}"));
        }
    }

    proptest! {
        /// Whatever is read is written again to the byte; nothing panics.
        #[test]
        fn mutated_bytes_are_refused_or_faithful(
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
            shorten: bool,
        ) {
            let mut bytes = trace().to_bytes();
            for (at, byte) in edits {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if shorten {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Ok(trace) = MembershipTrace::from_bytes(&bytes) {
                prop_assert_eq!(trace.to_bytes(), bytes);
                trace.feeds().for_each(|feed| {
                    trace.list(feed.node, feed.at);
                });
            }
        }

        #[test]
        fn any_bytes_are_refused_or_faithful(tail in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = trace().to_bytes()[..5].to_vec();
            bytes.extend(tail);
            if let Ok(trace) = MembershipTrace::from_bytes(&bytes) {
                prop_assert_eq!(trace.to_bytes(), bytes);
            }
        }
    }
}
