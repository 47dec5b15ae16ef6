//! Keeping `c` current: who asks whom for what, over messages.
//!
//! Source: Algorithms 6 and 7 as a conversation. Whoever leads compares lists now and then, and after elections
//! whose initiators saw that lists differ; what comes of it everybody is told.
//!
//! ```text
//! leader   --Sample due, quiet---------> asking   Query to s members; arm the timeout            (Z1)
//! asking   --Lists, of all asked-------> quiet    Notice to everybody                    (Z2 to Z5)
//! asking   --timeout-------------------> quiet    likewise, of whoever answered
//! any      --Query---------------------> any      Lists, in as many parts as it takes
//! any      --an election of ours ended-> any      Report to whoever leads                        (F1)
//! leader   --Report--------------------> leader   Notice to everybody, if it is news             (F2)
//! leader   --somebody objects----------> leader   Notice to everybody; a sample is due          (RP4)
//! any      --Notice, newer-------------> any      `c` is what it says
//! ```
//!
//! Lists of more than [`MOST_LISTED`] members are not compared: they would cost more than elections do. Reports and
//! objections still count there.

use alloc::{collections::BTreeMap, vec::Vec};

use super::{
    estimate::{Churn, ChurnEstimate, Config, Method, Notice, Version},
    feedback::Report,
    zscore::Sample,
};
use crate::{
    id::NodeId,
    mechanism::sampling::one_of,
    rng::Rng,
    time::{Duration, Time},
    wire::{DecodeError, Reader, Sink, Wire},
};

/// What nodes say to each other about `c`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// SAMPLEQUERY: whom do you list?
    Query {
        /// Which question of its sender this is.
        sample: u32,
    },
    /// SAMPLERESPONSE: these, or some of them.
    Lists {
        /// As in the question.
        sample: u32,
        /// Which part, from zero, and how many there are.
        part: (u8, u8),
        /// The members that the asked node lists.
        members: Vec<NodeId>,
    },
    /// FEEDBACKVALUE: in an election of mine so many of so many answers named another than the best.
    Report {
        /// Answers that named another.
        missing: u32,
        /// How many answers there were in all.
        responses: u32,
    },
    /// CHURN: this is `c` now.
    Notice {
        /// The bound on `c` that is told.
        c: u32,
        /// How new it is.
        version: u64,
        /// The node that made this version.
        by: NodeId,
        /// What it rests on.
        method: u8,
    },
}

/// Longer lists are not compared.
pub const MOST_LISTED: usize = PART * 8;
/// Members in a part: what fits a datagram with room to spare for those who seal it.
const PART: usize = 128;
/// How often to see whether a sample is due.
const LOOK: Duration = Duration::from_secs(5);

/// What the survey sees of the membership: everybody else on our list, by identity.
pub type Listed<'a> = &'a [NodeId];

/// One node's part in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    me: NodeId,
    churn: Churn,
    rng: Rng,
    /// How long answers are waited for.
    timeout: Duration,
    number: u32,
    asking: Option<Asking>,
    next: Time,
}

#[derive(Clone, Debug, PartialEq)]
struct Asking {
    until: Time,
    waiting: Vec<NodeId>,
    sample: Sample,
    /// Parts of lists that are not complete.
    parts: BTreeMap<NodeId, Vec<Option<Vec<NodeId>>>>,
}

/// What to send: to one, or to everybody listed.
pub type Send = (Option<NodeId>, Message);

impl Survey {
    /// Nothing is known yet. Answers are waited for as long as `timeout`.
    pub fn new(me: NodeId, config: Config, timeout: Duration, rng: Rng, now: Time) -> Self {
        let churn = Churn::new(me, config, now);
        Self { me, churn, rng, timeout, number: 0, asking: None, next: now + LOOK }
    }

    /// What is known of `c` where so many are listed besides ourselves.
    pub fn estimate(&self, now: Time, others: usize) -> ChurnEstimate {
        self.churn.estimate(now, others as u32 + 1)
    }

    /// When it wants to be woken.
    pub fn deadline(&self) -> Time {
        self.asking.as_ref().map_or(self.next, |asking| asking.until)
    }

    /// It is time.
    pub fn on_timeout(&mut self, now: Time, leads: bool, listed: Listed<'_>, out: &mut Vec<Send>) {
        if now < self.deadline() {
            return;
        }
        if self.asking.is_some() {
            self.conclude(now, out);
        }
        self.next = now + LOOK + self.rng.up_to(LOOK.div(4));
        let due = self.churn.sample_due(now, listed.len() as u32 + 1).filter(|_| leads);
        if let Some(lists) = due.filter(|_| listed.len() < MOST_LISTED) {
            self.ask(now, lists as usize, listed, out);
        }
    }

    /// Z1: our own list is one of those compared.
    fn ask(&mut self, now: Time, lists: usize, listed: Listed<'_>, out: &mut Vec<Send>) {
        self.number = self.number.wrapping_add(1);
        let everybody = || listed.iter().copied().chain([self.me]);
        let mut sample = Sample::new(everybody());
        sample.on_answer(self.me, everybody(), []);
        let mut waiting: Vec<NodeId> = Vec::new();
        while waiting.len() < lists.saturating_sub(1).min(listed.len()) {
            let fresh = |at: usize| !waiting.contains(&listed[at]);
            let Some(at) = one_of(listed.len(), &mut self.rng, fresh) else { break };
            waiting.push(listed[at]);
            out.push((Some(listed[at]), Message::Query { sample: self.number }));
        }
        let until = now + self.timeout;
        self.asking = Some(Asking { until, waiting, sample, parts: BTreeMap::new() });
    }

    /// Z3 to Z5.
    fn conclude(&mut self, now: Time, out: &mut Vec<Send>) {
        let Some(asking) = self.asking.take() else { return };
        // Our own list alone says nothing.
        let compared = asking.sample.answers() > 1;
        let notice = compared.then(|| self.churn.on_sample(now, &asking.sample)).flatten();
        out.extend(notice.map(told));
    }

    /// Another node leads from now on.
    pub fn on_leader_changed(&mut self) {
        self.churn.on_leader_changed();
    }

    /// RP4: we lead, and an election that reckoned with `c` had missed somebody.
    pub fn on_objection(&mut self, now: Time, c: u16, others: usize, out: &mut Vec<Send>) {
        let notice = self.churn.on_objection(now, others as u32 + 1, u32::from(c));
        out.extend(notice.map(told));
    }

    /// F1: an election of ours has ended, and this one leads.
    pub fn on_election(
        &mut self,
        now: Time,
        leader: NodeId,
        report: Report,
        others: usize,
        out: &mut Vec<Send>,
    ) {
        if leader == self.me {
            self.on_report(now, report, others, out);
        } else {
            let Report { missing, responses } = report;
            out.push((Some(leader), Message::Report { missing, responses }));
        }
    }

    /// F2.
    fn on_report(&mut self, now: Time, report: Report, others: usize, out: &mut Vec<Send>) {
        if report.responses == 0 || report.missing > report.responses {
            return;
        }
        let before = self.estimate(now, others).c;
        let notice = self.churn.on_feedback(now, others as u32 + 1, &[report]);
        out.extend(notice.filter(|notice| notice.c != before).map(told));
    }

    /// Somebody has something to say about it.
    pub fn on_message(
        &mut self,
        now: Time,
        from: NodeId,
        message: &Message,
        listed: Listed<'_>,
        out: &mut Vec<Send>,
    ) {
        match message {
            &Message::Query { sample } => self.answer(from, sample, listed, out),
            Message::Lists { sample, part, members } => {
                self.on_lists(now, from, *sample, *part, members, out);
            }
            &Message::Report { missing, responses } => {
                self.on_report(now, Report { missing, responses }, listed.len(), out);
            }
            &Message::Notice { c, version, by, method } => {
                let method = METHODS[usize::from(method).min(METHODS.len() - 1)];
                let version = Version { number: version, by };
                self.churn.on_notice(now, Notice { c, version, method });
            }
        }
    }

    fn answer(&self, to: NodeId, sample: u32, listed: Listed<'_>, out: &mut Vec<Send>) {
        if listed.len() >= MOST_LISTED {
            return;
        }
        let all: Vec<NodeId> = listed.iter().copied().chain([self.me]).collect();
        let parts = all.len().div_ceil(PART) as u8;
        for (number, members) in (0..).zip(all.chunks(PART)) {
            let (part, members) = ((number, parts), members.to_vec());
            out.push((Some(to), Message::Lists { sample, part, members }));
        }
    }

    /// Z2.
    fn on_lists(
        &mut self,
        now: Time,
        from: NodeId,
        sample: u32,
        (part, parts): (u8, u8),
        members: &[NodeId],
        out: &mut Vec<Send>,
    ) {
        let Some(asking) = self.asking.as_mut().filter(|_| sample == self.number) else { return };
        let most = MOST_LISTED.div_ceil(PART);
        if part >= parts || usize::from(parts) > most || !asking.waiting.contains(&from) {
            return;
        }
        let known = asking.parts.entry(from).or_insert_with(|| alloc::vec![None; parts.into()]);
        let Some(slot) = known.get_mut(usize::from(part)) else { return };
        *slot = Some(members.to_vec());
        if known.iter().any(Option::is_none) {
            return;
        }
        let list = asking.parts.remove(&from).unwrap_or_default().into_iter().flatten().flatten();
        asking.sample.on_answer(from, list, []);
        asking.waiting.retain(|&id| id != from);
        if asking.waiting.is_empty() {
            self.conclude(now, out);
        }
    }
}

fn told(notice: Notice) -> Send {
    let Notice { c, version: Version { number, by }, method } = notice;
    (None, Message::Notice { c, version: number, by, method: method as u8 })
}

const METHODS: [Method; 4] = [Method::Assumed, Method::Sample, Method::Feedback, Method::Objection];

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::Query { sample } => {
                sink.u8(0);
                sink.varint(u64::from(*sample));
            }
            Self::Lists { sample, part, members } => {
                sink.u8(1);
                sink.varint(u64::from(*sample));
                sink.u8(part.0);
                sink.u8(part.1);
                sink.varint(members.len() as u64);
                members.iter().for_each(|id| sink.u64(id.get()));
            }
            Self::Report { missing, responses } => {
                sink.u8(2);
                sink.varint(u64::from(*missing));
                sink.varint(u64::from(*responses));
            }
            Self::Notice { c, version, by, method } => {
                sink.u8(3);
                sink.varint(u64::from(*c));
                sink.varint(*version);
                sink.u64(by.get());
                sink.u8(*method);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.kind("churn message", 4)? {
            0 => Self::Query { sample: reader.varint32("sample")? },
            1 => {
                let sample = reader.varint32("sample")?;
                let part = (reader.u8("part")?, reader.u8("parts")?);
                let count = reader.count("members", 8)?;
                let mut members = Vec::with_capacity(count);
                for _ in 0..count {
                    members.push(NodeId::new(reader.u64("member")?));
                }
                Self::Lists { sample, part, members }
            }
            2 => Self::Report {
                missing: reader.varint32("missing")?,
                responses: reader.varint32("responses")?,
            },
            _ => Self::Notice {
                c: reader.varint32("c")?,
                version: reader.varint("version")?,
                by: NodeId::new(reader.u64("author")?),
                method: reader.kind("method", METHODS.len() as u8)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use super::*;
    use crate::rng::Seed;

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    /// Everybody lists everybody but those named as missing: (member, lists that lack it).
    struct World {
        now: Time,
        nodes: Vec<(Survey, Vec<NodeId>)>,
        sent: usize,
    }

    impl World {
        fn new(nodes: u64, missing: &[(u64, u64)]) -> Self {
            let make = |me: u64| {
                let config = Config::of(nodes as u32).unwrap();
                let rng = Seed::new(me).rng();
                let timeout = Duration::from_secs(1);
                let survey = Survey::new(NodeId::new(me), config, timeout, rng, at(0));
                let lacks = |other| {
                    missing
                        .iter()
                        .any(|&(who, lists)| who == other && me > other && me <= other + lists)
                };
                let list = (0..nodes).filter(|&other| other != me && !lacks(other));
                (survey, list.map(NodeId::new).collect())
            };
            Self { now: at(0), nodes: (0..nodes).map(make).collect(), sent: 0 }
        }

        fn pass(&mut self, seconds: u64) {
            let end = self.now + Duration::from_secs(seconds);
            loop {
                let due = self.nodes.iter().map(|(survey, _)| survey.deadline()).min().unwrap();
                if due > end {
                    break;
                }
                self.now = self.now.max(due);
                for node in 0..self.nodes.len() {
                    let mut out = vec![];
                    let (survey, list) = &mut self.nodes[node];
                    survey.on_timeout(self.now, node == 0, list, &mut out);
                    self.deliver(node, out);
                }
            }
            self.now = end;
        }

        fn deliver(&mut self, from: usize, out: Vec<Send>) {
            for (to, message) in out {
                let mut bytes = vec![];
                message.encode(&mut bytes);
                assert!(bytes.len() <= 1_100, "it fits a datagram");
                assert_eq!(Message::decode(&mut Reader::new(&bytes)), Ok(message.clone()));
                let receivers: Vec<usize> = match to {
                    Some(to) => vec![to.get() as usize],
                    None => (0..self.nodes.len()).filter(|&to| to != from).collect(),
                };
                for to in receivers {
                    self.sent += 1;
                    let mut out = vec![];
                    let id = NodeId::new(from as u64);
                    let (survey, list) = &mut self.nodes[to];
                    survey.on_message(self.now, id, &message, list, &mut out);
                    self.deliver(to, out);
                }
            }
        }

        fn estimates(&self) -> Vec<ChurnEstimate> {
            let of = |(survey, list): &(Survey, Vec<NodeId>)| survey.estimate(self.now, list.len());
            self.nodes.iter().map(of).collect()
        }
    }

    #[test]
    fn the_leader_compares_lists_and_all_learn_what_comes_of_it() {
        for (nodes, lacking) in [(40, 0), (40, 10), (300, 60)] {
            let mut world = World::new(nodes, &[(3, lacking)]);
            assert_eq!(world.estimates()[1].method, Method::Assumed);
            world.pass(30);
            let estimates = world.estimates();
            let c = estimates[0].c;
            assert!(estimates.iter().all(|one| one.c == c), "{estimates:?}");
            assert_eq!(estimates[0].method, Method::Sample);
            assert!((c == 0) == (lacking == 0), "{nodes} {lacking}: {c}");
            let error = f64::from(c) - lacking as f64;
            assert!(error.abs() < 0.15 * nodes as f64, "{nodes} {lacking}: {c}");
            assert!(estimates[0].confidence > 0.0);
        }
    }

    #[test]
    fn it_asks_once_a_minute_and_then_only_who_leads() {
        let mut world = World::new(40, &[]);
        world.pass(30);
        let first = world.sent;
        assert!(first > 40);
        world.pass(20);
        assert_eq!(world.sent, first, "nothing is due");
        world.pass(60);
        assert!(world.sent > first);
    }

    #[test]
    fn elections_report_and_objections_raise_it() {
        let mut world = World::new(40, &[]);
        world.pass(30);
        let mut out = vec![];
        let report = Report { missing: 3, responses: 10 };
        world.nodes[5].0.on_election(world.now, NodeId::new(0), report, 39, &mut out);
        assert_eq!(out.len(), 1, "to the leader alone");
        world.deliver(5, out);
        assert!(world.estimates().iter().all(|one| one.c >= 10), "3 of 10 lists lacked the best");
        let mut out = vec![];
        world.nodes[0].0.on_objection(world.now, 20, 39, &mut out);
        world.deliver(0, out);
        let estimates = world.estimates();
        assert!(estimates.iter().all(|one| (one.c, one.method) == (21, Method::Objection)));
    }

    #[test]
    fn answers_nobody_asked_for_and_parts_that_do_not_fit_change_nothing() {
        let mut world = World::new(5, &[]);
        let (survey, list) = &mut world.nodes[0];
        survey.on_timeout(at(6), true, list, &mut vec![]);
        let before = survey.clone();
        let lists = |sample, part| Message::Lists { sample, part, members: vec![] };
        let [one, stranger] = [1, 77].map(NodeId::new);
        for (from, message) in [
            (stranger, lists(1, (0, 1))),
            (one, lists(2, (0, 1))),
            (one, lists(1, (1, 1))),
            (one, lists(1, (0, 200))),
            (one, Message::Report { missing: 2, responses: 1 }),
            (one, Message::Report { missing: 0, responses: 0 }),
        ] {
            survey.on_message(at(6), from, &message, list, &mut vec![]);
            assert_eq!(*survey, before, "{message:?}");
        }
    }

    #[test]
    fn whoever_answers_late_or_never_is_done_without() {
        let mut world = World::new(9, &[]);
        let (survey, list) = &mut world.nodes[0];
        let mut out = vec![];
        survey.on_timeout(at(6), true, list, &mut out);
        let asked = out.len();
        out.clear();
        let members: Vec<NodeId> = (0..9).map(NodeId::new).collect();
        let lists = Message::Lists { sample: 1, part: (0, 1), members };
        survey.on_message(at(6), list[0], &lists, list, &mut out);
        let answered = out.len();
        survey.on_timeout(at(8), true, list, &mut out);
        assert!(asked > 2 && answered == 0);
        // Either the one that answered was asked, and its list compared, or nobody's was.
        assert_eq!(out.len(), usize::from(survey.estimate(at(8), 8).method == Method::Sample));
    }
}
