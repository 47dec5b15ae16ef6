//! The churn bound as an agent keeps it: current by itself, and saying how sure it is.
//!
//! | evidence | says | of | for |
//! |---|---|---|---|
//! | [sample](Churn::on_sample) | Sample-Window over hardened Z-scores (§7.2.1, §7.2.2) | every node | `memory`, then half of it |
//! | [feedback](Churn::on_feedback) | fractional Feedback (§7.2.2, C-5) | the best node (C-28) | `memory`, or until another leads |
//! | [objection](Churn::on_objection) | `c + 1` answers all lacked somebody, so `c` was too small (RP4) | one node | `memory` |
//! | [notice](Churn::on_notice) | what another has made of the same (CHURN) | as its method | until a sample of its own |
//!
//! The newest version is in force, whoever it is from. Whoever has new evidence makes a new version of it: the
//! largest of what there is evidence for, since each can only have overlooked somebody. Feedback and objections
//! are about one node, so what is known of the others counts beside them: the last sample, another's notice or
//! the assumption, by half once it is older than `memory` (C-28; an assumption is never young).
//!
//! **How sure.** [`ChurnEstimate::confidence`] is about `c` itself and [`ChurnEstimate::at_most`] about what it
//! might be at worst, both from the last sample, or else from the last feedback, as [`tail`](super::tail) has
//! it: exactly, without assuming how missing entries are distributed. A point estimate is too small about as often
//! as too large, so who would rather send more messages than elect the wrong node asks `at_most + 1` nodes.
//! Both speak of the moment of the sample; between two samples lists may change.
//!
//! ```
//! use bellwether_proto::{NodeId, Time, churn::{estimate::{Churn, Config}, zscore::Sample}};
//!
//! let ids = || (0..50).map(NodeId::new);
//! let mut churn = Churn::new(NodeId::new(7), Config::of(50)?, Time::ZERO);
//! let asked = churn.sample_due(Time::ZERO, 50).expect("nothing is known yet");
//! let mut sample = Sample::new(ids());
//! for from in ids().take(asked as usize) {
//!     sample.on_answer(from, ids(), []);
//! }
//! churn.on_sample(Time::ZERO, &sample);
//! let estimate = churn.estimate(Time::ZERO, 50);
//! // 21 complete lists of 50 do not prove that the other 29 are: were 5 not, all asked would be with 5.6%.
//! assert_eq!((asked, estimate.c, estimate.at_most), (21, 0, Some(5)));
//! # Ok::<(), bellwether_proto::churn::sample_size::PrecisionError>(())
//! ```

use super::{
    feedback::{self, Feedback, Report},
    sample_size::{Precision, PrecisionError},
    tail::{Count, Drawn},
    whole,
    window::Window,
    zscore::{Rule, Sample},
};
use crate::{
    id::NodeId,
    time::{Duration, Time},
};

/// How `c` is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// What to assume until there is evidence. Raising it costs the first election messages.
    pub start: u32,
    /// `α`, the weight of the newest round; see [`Window::new`].
    pub gain: f64,
    /// How far a sample may be off, as a fraction of all nodes (`E`), and how often not (`x`, also the
    /// confidence of [`ChurnEstimate::at_most`]). Smaller margins and more confidence take more lists.
    pub precision: Precision,
    /// Between two samples. Raising it costs less and follows changes later.
    pub period: Duration,
    /// How long evidence is believed. Below `period`, half of each sample is forgotten before the next.
    pub memory: Duration,
}

impl Config {
    /// A sample a minute within 10% of all nodes at 95%, believed for three; at first 10% of `nodes`, which
    /// Table 5.1 never exceeds where few messages are lost.
    ///
    /// # Errors
    ///
    /// None with these numbers; [`PrecisionError`] is that of [`Precision::new`].
    pub fn of(nodes: u32) -> Result<Self, PrecisionError> {
        Ok(Self {
            start: nodes.div_ceil(10),
            gain: 0.2,
            precision: Precision::new(ASSUMED, 0.1, 0.95)?,
            period: Duration::from_secs(60),
            memory: Duration::from_secs(180),
        })
    }
}

/// What an estimate rests on.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Method {
    /// Nothing: the configuration says so.
    Assumed,
    /// Lists that were compared.
    Sample,
    /// What elections saw.
    Feedback,
    /// Somebody that an election overlooked.
    Objection,
}

/// Which of two notices is newer: the one with the larger number, and of equals that of the larger node.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version {
    /// One more than the largest its author had seen.
    pub number: u64,
    /// The node that made this version.
    pub by: NodeId,
}

/// CHURN: what to tell the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Notice {
    /// The bound on `c` that it says.
    pub c: u32,
    /// How new it is.
    pub version: Version,
    /// What it rests on.
    pub method: Method,
}

/// What is known of `c`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChurnEstimate {
    /// The bound in force. An election asks `c + f + 1` nodes.
    pub c: u32,
    /// With what confidence no more than `c` lists lack any one node: 0 if there is no count to tell by.
    pub confidence: f64,
    /// With the confidence of the configuration, no more lists than this lack any one node; `None` if there is
    /// no count to tell by. At least `c`.
    pub at_most: Option<u32>,
    /// What `c` rests on.
    pub method: Method,
    /// The version in force; `None` if it is only assumed.
    pub version: Option<Version>,
    /// Lists or responses that the confidence rests on.
    pub samples: u32,
    /// How old the bound is; since the beginning if it is only assumed.
    pub age: Duration,
}

/// The churn bound of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Churn {
    me: NodeId,
    config: Config,
    since: Time,
    window: Window,
    feedback: Feedback,
    sampled: Option<Evidence>,
    fed: Option<Evidence>,
    objected: Option<(Time, u32)>,
    /// The newest notice of another, and when it came.
    heard: Option<(Notice, Time)>,
    /// The newest notice, its own or another's, and when it came.
    current: Option<(Notice, Time)>,
    /// Something happened after which the last sample will not do.
    unsettled: bool,
}

/// A count, and when it was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Evidence {
    at: Time,
    nodes: u32,
    count: Count,
}

impl Churn {
    /// Nothing is known yet.
    pub fn new(me: NodeId, config: Config, now: Time) -> Self {
        let start = f64::from(config.start);
        Self {
            me,
            config,
            since: now,
            window: Window::new(start, config.gain),
            feedback: Feedback::new(feedback::Rule::Fractional, start, config.gain),
            sampled: None,
            fed: None,
            objected: None,
            heard: None,
            current: None,
            unsettled: false,
        }
    }

    /// How many of `nodes` lists to ask for now, if it is time for that: `period` after the last sample, or at
    /// once if an election went wrong or another leads. The more are thought to be missing, the more.
    pub fn sample_due(&self, now: Time, nodes: u32) -> Option<u32> {
        let due = match self.sampled {
            _ if self.unsettled => true,
            None => true,
            Some(last) => now.since(last.at) >= self.config.period,
        };
        let share = f64::from(self.in_force(nodes).0) / f64::from(nodes.max(1));
        let precision = self.config.precision.at(share.clamp(ASSUMED, 0.5));
        (due && nodes > 1).then(|| precision.lists(nodes))
    }

    /// Lists have been compared. What to tell the others; `None` if nobody answered, or no node is on half
    /// of the lists, and nothing changes.
    ///
    /// The first sample replaces what was assumed; later ones move the average.
    pub fn on_sample(&mut self, now: Time, sample: &Sample) -> Option<Notice> {
        let (c1, count) = (sample.c_hat(Rule::Hardened)?, sample.proof()?);
        if self.sampled.is_none() {
            self.window.restart(c1);
        }
        self.window.on_round(c1);
        self.sampled = Some(Evidence { at: now, nodes: sample.nodes(), count });
        self.unsettled = false;
        Some(self.publish(now, sample.nodes()))
    }

    /// An election among `nodes` is over and its initiators have reported. What to tell the others; `None` if
    /// there was nothing in it.
    pub fn on_feedback(&mut self, now: Time, nodes: u32, reports: &[Report]) -> Option<Notice> {
        if self.fed.is_none() {
            self.feedback.restart(feedback::fractional(nodes, reports)?);
        }
        self.feedback.on_round(nodes, reports)?;
        let (missing, asked) = feedback::pooled(nodes, reports);
        let count = Count::new(nodes, asked, missing, Drawn::Anew);
        self.fed = Some(Evidence { at: now, nodes, count });
        Some(self.publish(now, nodes))
    }

    /// RP4: an election among `nodes` that reckoned with `c` overlooked somebody. What to tell the others;
    /// `None` if the bound in force is larger already.
    pub fn on_objection(&mut self, now: Time, nodes: u32, c: u32) -> Option<Notice> {
        let proven = c.saturating_add(1);
        let before = self.objected.filter(|&(at, _)| self.is_fresh(now, at));
        self.objected = Some((now, before.map_or(proven, |(_, c)| c.max(proven))));
        self.unsettled = true;
        (self.in_force(nodes).0 < proven.min(nodes.saturating_sub(1)))
            .then(|| self.publish(now, nodes))
    }

    /// Another leads: what elections saw was of the last best node, so it is time to look at all (C-28).
    pub fn on_leader_changed(&mut self) {
        self.fed = None;
        self.unsettled = true;
    }

    /// CHURN from another: the newest version wins. Whether it was news.
    pub fn on_notice(&mut self, now: Time, notice: Notice) -> bool {
        let news = self.current.is_none_or(|(current, _)| notice.version > current.version);
        if news {
            self.current = Some((notice, now));
            self.heard = self.current;
        }
        news
    }

    /// What is known, where there are `nodes`.
    pub fn estimate(&self, now: Time, nodes: u32) -> ChurnEstimate {
        let (c, method) = self.in_force(nodes);
        let at = self.current.map_or(self.since, |(_, at)| at);
        let fresh = |evidence: &Option<Evidence>| evidence.filter(|one| self.is_fresh(now, one.at));
        // A sample is about everybody, so feedback only stands in for it.
        let count = fresh(&self.sampled).or(fresh(&self.fed)).map(|evidence| evidence.count);
        ChurnEstimate {
            c,
            confidence: count.map_or(0.0, |count| count.confidence(c)),
            at_most: count.map(|count| count.at_most(self.config.precision.confidence()).max(c)),
            method,
            version: self.current.map(|(notice, _)| notice.version),
            samples: count.map_or(0, |count| count.asked()),
            age: now.since(at),
        }
    }

    fn in_force(&self, nodes: u32) -> (u32, Method) {
        let most = nodes.saturating_sub(1);
        match self.current {
            Some((notice, _)) => (notice.c.min(most), notice.method),
            None => (self.config.start.min(most), Method::Assumed),
        }
    }

    fn is_fresh(&self, now: Time, at: Time) -> bool {
        now.since(at) <= self.config.memory
    }

    /// The largest of what there is evidence for, as the newest version.
    fn publish(&mut self, now: Time, nodes: u32) -> Notice {
        let fed = self.fed.filter(|fed| self.is_fresh(now, fed.at));
        let objected = self.objected.filter(|&(at, _)| self.is_fresh(now, at));
        let of_one = [
            fed.map(|_| (self.feedback.c(), Method::Feedback)),
            objected.map(|(_, c)| (f64::from(c), Method::Objection)),
        ];
        let best = of_one
            .into_iter()
            .flatten()
            .fold(self.of_all(now, nodes), |best, one| if one.0 > best.0 { one } else { best });
        let number = self.current.map_or(0, |(notice, _)| notice.version.number).saturating_add(1);
        let version = Version { number, by: self.me };
        let notice = Notice { c: whole(best.0, nodes), method: best.1, version };
        self.current = Some((notice, now));
        notice
    }

    /// What is known of all nodes, by half if it is old.
    fn of_all(&self, now: Time, nodes: u32) -> (f64, Method) {
        let aged = |c: f64, at| if self.is_fresh(now, at) { c } else { c / 2.0 };
        let sampled = self.sampled.map(|sampled| {
            let share = self.window.c() / f64::from(sampled.nodes.max(1));
            (aged(share * f64::from(nodes), sampled.at), Method::Sample, sampled.at)
        });
        let heard =
            self.heard.map(|(notice, at)| (aged(f64::from(notice.c), at), notice.method, at));
        // Of two the later: a sample of its own makes up for what it heard before.
        let last = match (sampled, heard) {
            (Some(sampled), Some(heard)) if heard.2 > sampled.2 => Some(heard),
            (sampled, heard) => sampled.or(heard),
        };
        let (c, method) = last
            .map_or((f64::from(self.config.start) / 2.0, Method::Assumed), |(c, method, _)| {
                (c, method)
            });
        (c, method)
    }
}

/// The probability that a list lacks a node, §7.2.1: no more than this in most configurations.
const ASSUMED: f64 = 0.1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;
    use crate::rng::{Rng, Seed};

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn churn(me: u64, nodes: u32) -> Churn {
        Churn::new(NodeId::new(me), Config::of(nodes).unwrap(), Time::ZERO)
    }

    /// Of `nodes`, the first five are missing from `c` lists each, drawn anew; so many are asked.
    fn sample(rng: &mut Rng, nodes: u32, c: u32, asked: u32) -> Sample {
        let draw = |rng: &mut Rng, take: u32| {
            let mut order: Vec<u32> = (0..nodes).collect();
            for at in 0..take {
                let other = at + rng.below(u64::from(nodes - at)) as u32;
                order.swap(at as usize, other as usize);
            }
            order.truncate(take as usize);
            order
        };
        // Who is drawn to lack itself does not.
        let lacking: Vec<Vec<u32>> = (0..5).map(|_| draw(rng, c)).collect();
        let lacks = |from, id: u32| lacking.get(id as usize).is_some_and(|by| by.contains(&from));
        let id = |node: u32| NodeId::new(u64::from(node));
        let mut sample = Sample::new((0..nodes).map(id));
        for from in draw(rng, asked) {
            let list = (0..nodes).filter(|&node| node == from || !lacks(from, node)).map(id);
            sample.on_answer(id(from), list, []);
        }
        sample
    }

    fn reports(missing: u32, responses: u32) -> [Report; 1] {
        [Report { missing, responses }]
    }

    #[test]
    fn without_evidence_it_says_that_it_only_assumes() {
        let estimate = churn(1, 128).estimate(at(7), 128);
        let expected = ChurnEstimate {
            c: 13,
            confidence: 0.0,
            at_most: None,
            method: Method::Assumed,
            version: None,
            samples: 0,
            age: Duration::from_secs(7),
        };
        assert_eq!(estimate, expected);
        assert_eq!(churn(1, 128).estimate(at(7), 3).c, 2, "no more than all others");
        assert_eq!(churn(1, 128).estimate(at(7), 0).c, 0);
    }

    #[test]
    fn a_sample_gives_an_estimate_a_bound_and_a_confidence() {
        let mut churn = churn(1, 128);
        let due = churn.sample_due(at(0), 128);
        assert_eq!(due, Some(28), "TV13: p = 0.1, 10% at 95%, of 128");
        let sample = sample(&mut Seed::new(3).rng(), 128, 13, 28);
        let notice = churn.on_sample(at(5), &sample).unwrap();
        let estimate = churn.estimate(at(9), 128);
        assert_eq!((estimate.c, estimate.method), (notice.c, Method::Sample));
        assert_eq!(estimate.version, Some(Version { number: 1, by: NodeId::new(1) }));
        assert_eq!((estimate.samples, estimate.age), (28, Duration::from_secs(4)));
        let bound = estimate.at_most.unwrap();
        assert!(bound > estimate.c && bound >= 13, "{estimate:?}");
        assert!((0.2..0.95).contains(&estimate.confidence), "{estimate:?}");
        assert_eq!(churn.sample_due(at(64), 128), None);
        assert!(churn.sample_due(at(65), 128).is_some());
    }

    /// One round of asking everybody is the truth; and what is asked for by itself finds it on average.
    #[test]
    fn a_known_truth_is_found_and_bounded_as_often_as_promised() {
        let mut all = churn(1, 64);
        all.on_sample(at(0), &sample(&mut Seed::new(1).rng(), 64, 6, 64));
        let estimate = all.estimate(at(0), 64);
        assert!(
            (5..=6).contains(&estimate.c),
            "who draws its own list still has itself: {estimate:?}"
        );
        assert_eq!((estimate.confidence, estimate.at_most), (1.0, Some(estimate.c)));

        let runs = 300;
        let (mut sum, mut bounded) = (0, 0);
        for seed in 0..runs {
            let mut rng = Seed::new(seed).rng();
            let mut churn = churn(1, 128);
            for minute in 0..20 {
                let now = at(60 * minute);
                let asked = churn.sample_due(now, 128).expect("a sample a minute");
                churn.on_sample(now, &sample(&mut rng, 128, 13, asked));
            }
            let estimate = churn.estimate(at(1200), 128);
            sum += estimate.c;
            // One of the five may have been drawn to lack itself.
            bounded += u32::from(estimate.at_most.unwrap() >= 12);
        }
        // The largest of five counts, so upwards (C-32): by 4 to 9 with samples of 28 to 40.
        let mean = f64::from(sum) / runs as f64;
        assert!((13.0..=24.0).contains(&mean), "{mean}");
        let share = f64::from(bounded) / runs as f64;
        assert!(share > 0.95 - 4.0 * libm::sqrt(0.05 * 0.95 / runs as f64), "{share}");
    }

    #[test]
    fn feedback_speaks_for_one_node_and_the_sample_for_the_rest() {
        let mut churn = churn(1, 100);
        // 20 of 100 lists lack somebody.
        let all = sample(&mut Seed::new(8).rng(), 100, 20, 100);
        let sampled = churn.on_sample(at(0), &all).unwrap();
        assert!(sampled.c >= 19);
        let notice = churn.on_feedback(at(10), 100, &reports(1, 20)).unwrap();
        assert_eq!((notice.c, notice.method), (sampled.c, Method::Sample), "5 is of one node");
        let notice = churn.on_feedback(at(200), 100, &reports(1, 20)).unwrap();
        assert_eq!((notice.c, notice.method), (sampled.c.div_ceil(2), Method::Sample), "C-28");
        let notice = churn.on_feedback(at(210), 100, &reports(19, 20)).unwrap();
        assert_eq!((notice.c, notice.method), (23, Method::Feedback), "0.2 of 95 and 0.8 of 5");
        churn.on_leader_changed();
        assert!(churn.sample_due(at(211), 100).is_some(), "another leads");
        let estimate = churn.estimate(at(211), 100);
        assert_eq!((estimate.c, estimate.at_most), (23, None), "in force, but nothing to tell by");
    }

    #[test]
    fn an_objection_raises_it_at_once_and_asks_for_a_sample() {
        let mut churn = churn(1, 50);
        let perfect = sample(&mut Seed::new(2).rng(), 50, 0, 30);
        assert_eq!(churn.on_sample(at(0), &perfect).unwrap().c, 0);
        assert_eq!(churn.sample_due(at(1), 50), None);
        let notice = churn.on_objection(at(1), 50, 3).unwrap();
        assert_eq!((notice.c, notice.method, notice.version.number), (4, Method::Objection, 2));
        assert_eq!(churn.on_objection(at(2), 50, 1), None, "no news");
        assert!(churn.sample_due(at(2), 50).is_some());
        assert_eq!(churn.on_sample(at(3), &perfect).unwrap().c, 4, "a sample may overlook it too");
        assert_eq!(churn.on_sample(at(400), &perfect).unwrap().c, 0, "it is long ago");
    }

    #[test]
    fn the_newest_version_wins_whoever_it_is_from() {
        let notice = |c, number, by| Notice {
            c,
            version: Version { number, by: NodeId::new(by) },
            method: Method::Sample,
        };
        let all = [notice(5, 1, 9), notice(9, 2, 3), notice(7, 2, 4)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2]] {
            let mut churn = churn(1, 50);
            order.into_iter().for_each(|nth| {
                churn.on_notice(at(1), all[nth]);
            });
            assert_eq!(churn.estimate(at(1), 50).c, 7, "{order:?}");
            assert!(!churn.on_notice(at(2), all[2]), "heard before");
            let objected = churn.on_objection(at(3), 50, 20).unwrap();
            assert_eq!((objected.c, objected.version.number), (21, 3));
            let fed = churn.on_feedback(at(4), 50, &reports(0, 10)).unwrap();
            assert_eq!((fed.c, fed.version.number), (21, 4));
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Sample(u64, u32, u32),
        Feedback(u32, u32),
        Objection(u32),
        Leader,
        Notice(u32, u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (any::<u64>(), 0..30_u32, 0..=40_u32).prop_map(|(s, c, n)| Step::Sample(s, c, n)),
            (0..60_u32, 0..60_u32).prop_map(|(missing, of)| Step::Feedback(missing, of)),
            any::<u32>().prop_map(Step::Objection),
            Just(Step::Leader),
            (any::<u32>(), 0..9_u64, 0..9_u64).prop_map(|(c, n, by)| Step::Notice(c, n, by)),
        ]
    }

    proptest! {
        #[test]
        fn whatever_comes_the_estimate_is_in_range_and_versions_only_rise(
            steps in prop::collection::vec((step(), 0..300_u64, 0..60_u32), 0..20),
        ) {
            let mut churn = churn(1, 40);
            let mut now = Time::ZERO;
            let mut version = None;
            for (step, wait, nodes) in steps {
                now += Duration::from_secs(wait);
                let told = match step {
                    Step::Sample(seed, c, asked) => {
                        churn.on_sample(now, &sample(&mut Seed::new(seed).rng(), 40, c, asked))
                    }
                    Step::Feedback(missing, of) => churn.on_feedback(now, nodes, &reports(missing, of)),
                    Step::Objection(c) => churn.on_objection(now, nodes, c),
                    Step::Leader => { churn.on_leader_changed(); None }
                    Step::Notice(c, number, by) => {
                        let version = Version { number, by: NodeId::new(by) };
                        churn.on_notice(now, Notice { c, version, method: Method::Feedback });
                        None
                    }
                };
                let estimate = churn.estimate(now, nodes);
                prop_assert!(estimate.c <= nodes.saturating_sub(1));
                prop_assert!((0.0..=1.0).contains(&estimate.confidence), "{estimate:?}");
                prop_assert!(estimate.at_most.is_none_or(|bound| bound >= estimate.c));
                prop_assert!(estimate.version >= version);
                prop_assert!(told.is_none_or(|told| Some(told.version) > version));
                version = estimate.version;
                if let Some(due) = churn.sample_due(now, nodes) {
                    prop_assert!((1..=nodes).contains(&due));
                }
            }
        }
    }
}
