//! What elections of the most central node are measured by: how long nodes named another than the one at the centre of
//! their component, what that cost in messages, and how far they are from whom they name.
//!
//! The truth is the network's: who is up and who hears whom, both ways. It changes with every link, so the sums of
//! distances are kept up to date rather than reckoned anew, and everything else follows once per change, never per event.
//! Shares of time are exact; paths, which take a search from every node, are sampled.

use std::collections::BTreeSet;

use bellwether_proto::{
    Duration, Effect, EffectOf, Election, NodeId, Time,
    election::central::{Central, Config, Criterion, Message, Profile},
    topology::{Closeness, Graph, criterion::leaders, graph::Search},
    wire,
};

use super::metric::Metric;
use crate::{
    engine::{Counters, Observer, State},
    invariant::{OwnView, Violation},
    world::Network,
};

/// Whom a node should name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Oracle {
    /// The member of its component with the smallest sum of distances.
    Closeness,
    /// The one with the most neighbours.
    Degree,
    /// The best by a criterion that has to look at all of its component each time.
    Other(Criterion),
    /// The one that has been up for longest.
    Oldest,
}

impl Oracle {
    /// What a protocol strives for.
    pub fn of(config: &Config) -> Self {
        match (config.profile(), config.criterion()) {
            (Profile::Gomez { .. }, _) => Self::Oldest,
            (_, Criterion::Degree) => Self::Degree,
            (_, Criterion::Closeness) => Self::Closeness,
            (_, criterion) => Self::Other(criterion),
        }
    }
}

/// How things stood at one instant of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The instant in question.
    pub at: Time,
    /// The share of time of all nodes until then in which they named the wrong leader.
    pub instability: f64,
    /// How many components there are.
    pub components: u32,
}

/// Watches an election of the most central node.
#[derive(Clone, Debug)]
pub struct CentralWatch {
    oracle: Oracle,
    /// Who hears whom, of those that are up.
    truth: Closeness,
    up: Vec<bool>,
    born: Vec<Time>,
    named: Vec<Option<u32>>,
    /// The smallest number in each node's component, and whom it should name.
    component: Vec<u32>,
    right: Vec<u32>,
    now: Now,
    /// Since when that is so.
    since: Time,
    spent: Spent,
    paths: Paths,
    /// The next sample of paths, and the next standing.
    sample: Time,
    standing: Time,
    standings: Vec<Standing>,
    messages: u64,
    model_bytes: u64,
    /// Crashes after which somebody still names the wrong leader.
    unsettled: Vec<Time>,
    /// After how long nobody did.
    elections: Vec<f64>,
    own_view: OwnView,
    violation: Option<Violation>,
    search: Search,
    /// For all neighbours of one node.
    heard: Vec<u32>,
}

/// What holds at present.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    /// Nodes up.
    present: u32,
    /// Of those, that name another than they should.
    wrong: u32,
    /// That name one that is not in their component.
    stale: u32,
    components: u32,
    /// Components of two or more.
    crowds: u32,
    /// Of those, whose members do not all name the same.
    split: u32,
}

/// Seconds of each of those.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    whole: f64,
    present: f64,
    wrong: f64,
    stale: f64,
    components: f64,
    crowds: f64,
    split: f64,
}

/// Sums over samples and components of two or more.
#[derive(Clone, Copy, Debug, Default)]
struct Paths {
    crowds: u64,
    diameter: u64,
    /// Of those components in which anybody names a member.
    led: u64,
    relative: f64,
    median: f64,
}

impl CentralWatch {
    /// Watches `nodes` nodes.
    pub fn new(nodes: u32, oracle: Oracle) -> Self {
        let count = nodes as usize;
        Self {
            oracle,
            truth: Closeness::new(Graph::new(count)),
            up: vec![false; count],
            born: vec![Time::ZERO; count],
            named: vec![None; count],
            component: (0..nodes).collect(),
            right: (0..nodes).collect(),
            now: Now::default(),
            since: Time::ZERO,
            spent: Spent::default(),
            paths: Paths::default(),
            sample: Time::ZERO,
            standing: Time::ZERO,
            standings: Vec::new(),
            messages: 0,
            model_bytes: 0,
            unsettled: Vec::new(),
            elections: Vec::new(),
            own_view: OwnView::default(),
            violation: None,
            search: Search::default(),
            heard: Vec::new(),
        }
    }

    /// How things stood every ten seconds.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The first violation of each invariant.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        self.violation.iter()
    }

    /// The invariant's name, the situation it guards against, and whether that could have arisen.
    pub fn sometimes(&self) -> (&'static str, &'static str, bool) {
        let (situation, arose) = self.own_view.sometimes();
        (OwnView::NAME, situation, arose)
    }

    /// The run is over.
    pub fn finish(&mut self, now: Time) {
        self.advance(now);
    }

    /// What it came to, where so many bytes were sent in so many messages, beacons and envelopes included.
    pub fn values(&self, counters: &Counters) -> Vec<(Metric, Option<f64>)> {
        // Beacons are all of one size, and messages long: this saves measuring each a second time.
        let beacons = counters.messages - self.messages;
        let beacon = wire::datagram_len(&Message::Beacon) as u64;
        let envelopes = self.messages * wire::SEAL_LEN as u64;
        let bytes = counters.bytes - beacons * beacon - envelopes;
        let Spent { whole, present, wrong, stale, components, crowds, split } = self.spent;
        let share = |part: f64, all: f64| (all > 0.0).then(|| part / all);
        let Paths { crowds: sampled, diameter, led, relative, median } = self.paths;
        let messages = self.messages as f64;
        let elections = self.elections.len() as f64;
        vec![
            (Metric::Instability, share(wrong, present)),
            (Metric::StaleLeaders, share(stale, present)),
            (Metric::SplitComponents, share(split, crowds)),
            (Metric::MessageRate, share(messages, whole)),
            (Metric::NodeMessageRate, share(messages, present)),
            (Metric::MeanModelBytes, share(self.model_bytes as f64, messages)),
            (Metric::MeanPayload, share(bytes as f64, messages)),
            (Metric::RelativePath, share(relative, led as f64)),
            (Metric::MedianPath, share(median, led as f64)),
            (Metric::Components, share(components, whole)),
            (Metric::Diameter, share(diameter as f64, sampled as f64)),
            (Metric::CrashElectionTime, share(self.elections.iter().sum(), elections)),
        ]
    }

    /// Nothing has changed until `now`.
    fn advance(&mut self, now: Time) {
        while self.sample <= now {
            self.sample_paths();
            self.sample += SAMPLES;
        }
        while self.standing <= now {
            self.spend(self.standing);
            self.standings.push(Standing {
                at: self.standing,
                instability: self.spent.wrong / self.spent.present.max(f64::MIN_POSITIVE),
                components: self.now.components,
            });
            self.standing += STANDINGS;
        }
        self.spend(now);
    }

    fn spend(&mut self, now: Time) {
        let time = now.since(self.since).as_secs_f64();
        self.since = self.since.max(now);
        let Now { present, wrong, stale, components, crowds, split } = self.now;
        self.spent.whole += time;
        self.spent.present += time * f64::from(present);
        self.spent.wrong += time * f64::from(wrong);
        self.spent.stale += time * f64::from(stale);
        self.spent.components += time * f64::from(components);
        self.spent.crowds += time * f64::from(crowds);
        self.spent.split += time * f64::from(split);
    }

    /// Brings the truth up to date: who hears whom, and who is whose centre.
    fn relink(&mut self, network: &Network) {
        let count = self.up.len() as u32;
        for node in 0..count {
            self.up[node as usize] = network.is_up(node);
        }
        for node in 0..count {
            let mut heard = std::mem::take(&mut self.heard);
            heard.clear();
            if self.up[node as usize] {
                let hears = |&other: &u32| {
                    other != node && self.up[other as usize] && network.linked(node, other)
                };
                match network.neighbours(node) {
                    Some(near) => heard.extend(near.iter().copied().filter(hears)),
                    None => heard.extend((0..count).filter(hears)),
                }
            }
            if self.truth.graph().neighbours(node) != heard {
                let before = self.truth.graph().neighbours(node).to_vec();
                let gone = before.iter().filter(|other| heard.binary_search(other).is_err());
                for &other in gone {
                    self.truth.disconnect(node, other);
                }
                let new = heard.iter().filter(|other| before.binary_search(other).is_err());
                for &other in new {
                    self.truth.connect(node, other);
                }
            }
            self.heard = heard;
        }
        self.component = self.truth.graph().components();
        self.find_centres();
    }

    fn find_centres(&mut self) {
        let (graph, sums) = (self.truth.graph(), self.truth.sums());
        if let Oracle::Other(criterion) = self.oracle {
            self.right = leaders(graph, criterion);
            return;
        }
        // The larger the better.
        let rank = |node: u32| {
            let merit = match self.oracle {
                Oracle::Closeness => u64::MAX - sums[node as usize],
                Oracle::Degree => graph.neighbours(node).len() as u64,
                Oracle::Oldest | Oracle::Other(_) => {
                    u64::MAX - self.born[node as usize].as_micros()
                }
            };
            (merit, node)
        };
        let mut best: Vec<Option<u32>> = vec![None; self.up.len()];
        for node in (0..self.up.len() as u32).filter(|&node| self.up[node as usize]) {
            let best = &mut best[self.component[node as usize] as usize];
            if best.is_none_or(|best| rank(node) > rank(best)) {
                *best = Some(node);
            }
        }
        for (node, right) in self.right.iter_mut().enumerate() {
            *right = best[self.component[node] as usize].unwrap_or(node as u32);
        }
    }

    /// Counts what holds now.
    fn recount(&mut self) {
        let mut now = Now::default();
        // Whom the first of a component names, and whether it was seen to be a crowd, and split.
        let mut seen: Vec<Option<(Option<u32>, bool, bool)>> = vec![None; self.up.len()];
        for node in (0..self.up.len()).filter(|&node| self.up[node]) {
            let (named, component) = (self.named[node], self.component[node] as usize);
            now.present += 1;
            now.wrong += u32::from(named != Some(self.right[node]));
            let member = |leader: u32| {
                let leader = leader as usize;
                leader < self.up.len()
                    && self.up[leader]
                    && self.component[leader] as usize == component
            };
            now.stale += u32::from(named.is_some_and(|leader| !member(leader)));
            match &mut seen[component] {
                slot @ None => {
                    *slot = Some((named, false, false));
                    now.components += 1;
                }
                Some((first, crowd, split)) => {
                    now.crowds += u32::from(!*crowd);
                    *crowd = true;
                    if *first != named && !*split {
                        *split = true;
                        now.split += 1;
                    }
                }
            }
        }
        self.now = now;
    }

    /// Elections after crashes are over when nobody names the wrong leader.
    fn settle(&mut self, at: Time) {
        if self.now.wrong == 0 {
            for crash in self.unsettled.drain(..) {
                self.elections.push(at.since(crash).as_secs_f64());
            }
        }
    }

    /// Of each component of two or more: its diameter, and how far members are from whom they name.
    fn sample_paths(&mut self) {
        let mut done: BTreeSet<u32> = BTreeSet::new();
        for root in 0..self.up.len() as u32 {
            let component = self.component[root as usize];
            if !self.up[root as usize]
                || self.truth.graph().neighbours(root).is_empty()
                || !done.insert(component)
            {
                continue;
            }
            let mut diameter = 0;
            let mut ways = Vec::new();
            for node in root..self.up.len() as u32 {
                if self.component[node as usize] != component {
                    continue;
                }
                self.search.from(self.truth.graph(), node);
                let farthest = self.search.reached().last();
                let far = farthest.and_then(|&last| self.search.distance(last)).unwrap_or(0);
                diameter = diameter.max(far);
                let named =
                    self.named[node as usize].filter(|&leader| (leader as usize) < self.up.len());
                ways.extend(named.and_then(|leader| self.search.distance(leader)));
            }
            self.paths.crowds += 1;
            self.paths.diameter += u64::from(diameter);
            if let Some((longest, median)) = longest_and_median(&mut ways) {
                self.paths.led += 1;
                self.paths.relative += f64::from(longest) / f64::from(diameter.max(1));
                self.paths.median += median;
            }
        }
    }
}

/// Of several lengths the longest and the median; between the two in the middle if they are even in number.
fn longest_and_median(ways: &mut [u32]) -> Option<(u32, f64)> {
    ways.sort_unstable();
    let longest = *ways.last()?;
    let (low, high) = (ways[(ways.len() - 1) / 2], ways[ways.len() / 2]);
    Some((longest, (f64::from(low) + f64::from(high)) / 2.0))
}

impl Observer<Central> for CentralWatch {
    fn started(&mut self, now: Time, node: NodeId, _state: State) {
        self.advance(now);
        self.born[node.get() as usize] = now;
    }

    fn effect(&mut self, _now: Time, _node: NodeId, effect: &EffectOf<Central>) {
        if let Effect::Broadcast(message) = effect
            && !message.is_beacon()
        {
            self.messages += 1;
            self.model_bytes += message.model_len() as u64;
        }
    }

    fn handled(&mut self, now: Time, node: NodeId, machine: &Central) {
        let slot = node.get() as usize;
        let named = machine.leadership().leader.map(|leader| leader.get() as u32);
        if self.named[slot] != named {
            self.advance(now);
            self.named[slot] = named;
            self.recount();
            self.settle(now);
        }
        if matches!(machine.config().profile(), Profile::LinkState(_))
            && self.violation.is_none()
            && let Some(map) = machine.map()
            && let Err(detail) = self.own_view.judge(node, map.own(), machine.neighbours())
        {
            self.violation = Some(Violation { invariant: OwnView::NAME, at: now, detail });
        }
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        self.advance(now);
        self.named[node.get() as usize] = None;
        self.unsettled.push(now);
    }

    fn topology(&mut self, now: Time, network: &Network) {
        self.advance(now);
        self.relink(network);
        self.recount();
        if self.now.wrong == 0 {
            // A crash that made nobody wrong was no reason to elect anybody.
            self.unsettled.retain(|&crash| crash < now);
        }
        self.settle(now);
    }
}

/// How often paths are looked at.
const SAMPLES: Duration = Duration::from_millis(500);
/// How often it is noted how things stand.
const STANDINGS: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
