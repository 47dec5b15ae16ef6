//! Faults as a timeline: what a scenario describes, carried out on a simulation.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{Duration, Machine, Rng, Seed, Time};

use crate::{
    engine::{Observer, Sim, Status},
    observe::Favourite,
    scenario::{Distances, Every, Fault, FaultKind, Lack, Scenario, State, Who},
    world::{ATTEMPTS, Disconnected, Network, Placed, Trouble, displace, parts, put},
};

/// Says, when nodes have moved, what each of them is to be told about it.
pub type MoveFeeds<M> = Box<dyn FnMut(&Placed) -> Vec<(u32, <M as Machine>::Feed)>>;

/// What the nodes of a simulation are told from outside when something happens to them.
pub struct ExternalInputs<M: Machine> {
    /// When some have moved.
    pub moved: MoveFeeds<M>,
    /// When they are to elect; `None` where nobody can be asked to.
    pub elect: Option<M::Command>,
    /// When a leader is to hand over; likewise.
    pub resign: Option<M::Command>,
}

impl<M: Machine> ExternalInputs<M> {
    /// Nodes are told nothing.
    pub fn none() -> Self {
        Self { moved: Box::new(|_| Vec::new()), elect: None, resign: None }
    }
}

/// Runs a simulation of `scenario` from its start to its end, with everything that goes wrong.
///
/// # Errors
///
/// [`Disconnected`] if a fault is to keep the network connected and cannot.
pub fn play<M: Machine, O: Observer<M> + Favourite>(
    sim: &mut Sim<M, O>,
    scenario: &Scenario,
    seed: Seed,
    inputs: ExternalInputs<M>,
) -> Result<(), Disconnected> {
    play_looking(sim, scenario, seed, inputs, scenario.duration, |_| ())
}

/// The same, and `look` is called at time zero and then whenever it said: before anything happens at that instant, but
/// for those that start at time zero.
///
/// # Errors
///
/// [`Disconnected`] if a fault is to keep the network connected and cannot.
pub fn play_at<M: Machine, O: Observer<M> + Favourite>(
    sim: &mut Sim<M, O>,
    scenario: &Scenario,
    seed: Seed,
    mut inputs: ExternalInputs<M>,
    mut look: impl FnMut(&mut Sim<M, O>) -> Time,
) -> Result<(), Disconnected> {
    let mut schedule = Schedule::new(scenario, seed);
    schedule.plan_starts(sim, seed)?;
    schedule.plan_faults(seed);
    let end = Time::ZERO + scenario.duration;
    let mut next = Time::ZERO;
    loop {
        let at = schedule.steps.keys().next().map_or(end, |&(at, _)| at);
        while next < at || (next == at && at > Time::ZERO && next < end) {
            if sim.advance(next) {
                return Ok(());
            }
            next = look(sim);
        }
        if sim.advance(at) {
            return Ok(());
        }
        let Some(((at, _), step)) = schedule.steps.pop_first() else { return Ok(()) };
        schedule.carry_out(sim, at, step, &mut inputs)?;
    }
}

/// The same, and `look` is called at time zero and `every` so often: before anything happens at that instant, but for
/// those that start at time zero.
///
/// # Errors
///
/// [`Disconnected`] if a fault is to keep the network connected and cannot.
pub fn play_looking<M: Machine, O: Observer<M> + Favourite>(
    sim: &mut Sim<M, O>,
    scenario: &Scenario,
    seed: Seed,
    inputs: ExternalInputs<M>,
    every: Duration,
    mut look: impl FnMut(&mut Sim<M, O>),
) -> Result<(), Disconnected> {
    play_at(sim, scenario, seed, inputs, |sim| {
        look(sim);
        sim.now() + every
    })
}

struct Schedule<'a> {
    scenario: &'a Scenario,
    /// By time, then by order of planning.
    steps: BTreeMap<(Time, u64), Step>,
    planned: u64,
    rng: Rng,
    /// For new places, apart from choices of nodes: how often places are drawn anew must not decide whom
    /// later faults hit.
    places: Rng,
    /// For where in their turns the starved begin.
    turns: Rng,
    /// For when faults are repeated that are so at random.
    arrivals: Rng,
    /// Faults on all links that are still going on.
    troubles: Vec<usize>,
    /// Directed pairs that are cut, by the number of the cut; 0 is all that have no end.
    cuts: BTreeMap<u64, BTreeSet<(u32, u32)>>,
    /// Until when disks fail or are slow.
    disks: BTreeMap<u32, Time>,
    joined: u32,
}

enum Step {
    Start(Vec<u32>),
    /// The fault of this index.
    Begin(usize),
    /// The end of trouble on all links that the fault of this index began.
    End(usize),
    Resume(u32),
    /// The end of a failure of a node's disk.
    MendDisk(u32),
    /// The end of the cut of this number.
    Mend(u64),
    /// The next turn of a node that the fault of this index starves until the given instant.
    Freeze {
        node: u32,
        fault: usize,
        end: Time,
    },
}

impl<'a> Schedule<'a> {
    fn new(scenario: &'a Scenario, seed: Seed) -> Self {
        Self {
            scenario,
            steps: BTreeMap::new(),
            planned: 0,
            rng: seed.named("fault").rng(),
            places: seed.named("move").rng(),
            turns: seed.named("starve").rng(),
            arrivals: seed.named("arrivals").rng(),
            troubles: Vec::new(),
            cuts: BTreeMap::new(),
            disks: BTreeMap::new(),
            joined: 0,
        }
    }

    fn plan_starts<M: Machine, O: Observer<M> + Favourite>(
        &mut self,
        sim: &Sim<M, O>,
        seed: Seed,
    ) -> Result<(), Disconnected> {
        let network = &self.scenario.network;
        let mut from = vec![Time::ZERO; network.nodes as usize];
        for fault in &self.scenario.faults {
            let FaultKind::Late { who, until } = &fault.kind else { continue };
            let punctual = (0..network.nodes).filter(|&node| from[node as usize] == Time::ZERO);
            for node in self.choose(sim, who, punctual.collect())? {
                from[node as usize] = Time::ZERO + *until;
            }
        }
        let mut starts = seed.named("start").rng();
        let mut starting = BTreeMap::<Time, Vec<u32>>::new();
        for (node, from) in (0..).zip(from) {
            let after = starts.up_to(network.start_spread);
            starting.entry(from + after).or_default().push(node);
        }
        for (at, nodes) in starting {
            self.plan(at, Step::Start(nodes));
        }
        Ok(())
    }

    fn plan_faults(&mut self, seed: Seed) {
        let mut spreads = seed.named("spread").rng();
        for (index, fault) in self.scenario.faults.iter().enumerate() {
            let at = fault.at + spreads.up_to(fault.spread);
            self.plan(Time::ZERO + at, Step::Begin(index));
        }
    }

    fn plan(&mut self, at: Time, step: Step) {
        // A run covers [0, duration).
        if at < Time::ZERO + self.scenario.duration {
            self.planned += 1;
            self.steps.insert((at, self.planned), step);
        }
    }

    fn carry_out<M: Machine, O: Observer<M> + Favourite>(
        &mut self,
        sim: &mut Sim<M, O>,
        now: Time,
        step: Step,
        inputs: &mut ExternalInputs<M>,
    ) -> Result<(), Disconnected> {
        match step {
            Step::Start(nodes) => sim.start_all(&nodes, State::Lost),
            Step::Resume(node) => sim.resume(node),
            // Unless another failure of it has begun meanwhile and lasts longer.
            Step::MendDisk(node) if self.disks.get(&node).is_some_and(|&end| end > now) => {}
            Step::MendDisk(node) => sim.mend_disk(node),
            Step::Mend(number) => self.mend(sim, number),
            Step::Freeze { node, fault, end } => self.freeze(sim, now, (node, fault, end)),
            Step::End(index) => {
                self.troubles.retain(|&other| other != index);
                self.set_trouble(sim);
            }
            Step::Begin(index) => {
                let fault = &self.scenario.faults[index];
                self.repeat(now, index, fault);
                self.begin(sim, now, index, inputs)?;
            }
        }
        Ok(())
    }

    fn repeat(&mut self, now: Time, index: usize, fault: &Fault) {
        let Some(every) = fault.every else { return };
        let next = match every {
            Every::Regular(every) => now + every,
            Every::Poisson(mean) => {
                let wait = -libm::log(1.0 - self.arrivals.unit()) * mean.as_micros() as f64;
                // Nothing happens twice at one instant.
                now + Duration::from_micros((wait as u64).max(1))
            }
        };
        if fault.until.is_none_or(|until| next < Time::ZERO + until) {
            self.plan(next, Step::Begin(index));
        }
    }

    fn begin<M: Machine, O: Observer<M> + Favourite>(
        &mut self,
        sim: &mut Sim<M, O>,
        now: Time,
        index: usize,
        inputs: &mut ExternalInputs<M>,
    ) -> Result<(), Disconnected> {
        match &self.scenario.faults[index].kind {
            FaultKind::Crash(who) => self.live(sim, who)?.into_iter().for_each(|n| sim.crash(n)),
            FaultKind::Leave(who) => self.live(sim, who)?.into_iter().for_each(|n| sim.leave(n)),
            FaultKind::Elect(who) | FaultKind::Resign(who) => {
                let command = match &self.scenario.faults[index].kind {
                    FaultKind::Resign(_) => &inputs.resign,
                    _ => &inputs.elect,
                };
                for node in self.live(sim, who)? {
                    if let Some(command) = command.clone() {
                        sim.command(node, command);
                    }
                }
            }
            FaultKind::Recover { who, state } => {
                let mut down = all(sim, Status::Down);
                if let Who::Nodes(_) = who {
                    // Whoever has left comes back only if it is meant.
                    down.extend(all(sim, Status::Left));
                }
                sim.start_all(&self.choose(sim, who, down)?, *state);
            }
            FaultKind::Join { count } => {
                let first = self.scenario.network.nodes + self.joined;
                // Of random arrivals there may be more than there was room made for, once in a billion runs.
                let count = (*count).min(self.scenario.capacity().saturating_sub(first));
                self.joined += count;
                sim.start_all(&(first..first + count).collect::<Vec<_>>(), State::Lost);
            }
            FaultKind::Pause { who, length, buffer } => {
                for node in self.live(sim, who)? {
                    sim.pause(node, *buffer);
                    self.plan(now + *length, Step::Resume(node));
                }
            }
            FaultKind::Disk { who, length } | FaultKind::SlowDisk { who, length, .. } => {
                let end = now + *length;
                for node in self.live(sim, who)? {
                    match &self.scenario.faults[index].kind {
                        FaultKind::SlowDisk { by, .. } => sim.slow_disk(node, *by),
                        _ => sim.fail_disk(node),
                    }
                    let last = self.disks.entry(node).or_insert(end);
                    *last = end.max(*last);
                    self.plan(end, Step::MendDisk(node));
                }
            }
            FaultKind::Clone { who } => {
                self.live(sim, who)?.into_iter().for_each(|node| sim.clone_identity(node));
            }
            // Their starts have been planned.
            FaultKind::Late { .. } => {}
            FaultKind::Starve { who, blocked, running, length, .. } => {
                for node in self.live(sim, who)? {
                    let first = now + self.turns.up_to(*blocked + *running);
                    self.plan_turn(first, (node, index, now + *length));
                }
            }
            FaultKind::Drift { who, ppm } => {
                self.live(sim, who)?.into_iter().for_each(|n| sim.drift(n, *ppm));
            }
            FaultKind::Move { who, distance, law, distances } => {
                let movers = self.live(sim, who)?;
                let network = sim.network();
                let placed = displace(
                    network.placed(),
                    &self.scenario.network.placement,
                    &movers,
                    (*law, *distance),
                    |node| network.is_up(node),
                    &mut self.places,
                )?;
                let news = match distances {
                    Distances::Stale => Vec::new(),
                    Distances::Fresh => (inputs.moved)(&placed),
                };
                sim.change_network(|network| network.rearrange(placed));
                news.into_iter().for_each(|(node, feed)| sim.feed(node, feed));
            }
            FaultKind::Partition(groups) => {
                let mut sides = vec![0; sim.len() as usize];
                for (group, side) in groups.iter().zip(1..) {
                    group.iter().for_each(|&node| sides[node as usize] = side);
                }
                sim.change_network(|network| network.partition(sides));
            }
            FaultKind::Isolate(who) => {
                let mut sides = vec![0; sim.len() as usize];
                self.live(sim, who)?.into_iter().for_each(|node| sides[node as usize] = 1);
                sim.change_network(|network| network.partition(sides));
            }
            FaultKind::Cut { from, to, both, length } => {
                let pairs = self.cut_pairs(sim, from.as_ref(), to.as_ref(), *both)?;
                sim.change_network(|network| pairs.iter().for_each(|&(a, b)| network.cut(a, b)));
                let number = length.map_or(0, |length| {
                    self.planned += 1;
                    let number = self.planned;
                    self.plan(now + length, Step::Mend(number));
                    number
                });
                self.cuts.entry(number).or_default().extend(pairs);
            }
            FaultKind::Heal => {
                self.cuts.clear();
                sim.change_network(Network::heal);
            }
            &FaultKind::Place { node, at } => {
                let network = sim.network();
                let placed = put(network.placed(), &self.scenario.network.placement, node, at);
                let news = (inputs.moved)(&placed);
                sim.change_network(|network| network.rearrange(placed));
                news.into_iter().for_each(|(node, feed)| sim.feed(node, feed));
            }
            FaultKind::Loss { length, .. }
            | FaultKind::Delay { length, .. }
            | FaultKind::Duplicate { length, .. }
            | FaultKind::Reorder { length, .. } => {
                self.plan(now + *length, Step::End(index));
                self.troubles.push(index);
                self.set_trouble(sim);
            }
        }
        Ok(())
    }

    /// The directed pairs between two sides.
    fn cut_pairs<M: Machine, O: Observer<M> + Favourite>(
        &mut self,
        sim: &Sim<M, O>,
        from: Option<&Who>,
        to: Option<&Who>,
        both: bool,
    ) -> Result<BTreeSet<(u32, u32)>, Disconnected> {
        let senders = match from {
            None => (0..sim.len()).collect(),
            Some(who) => self.live(sim, who)?,
        };
        let receivers = match to {
            None => (0..sim.len()).collect(),
            Some(who) => {
                let mut others = all(sim, Status::Up);
                // Where anybody may send, nobody would be left.
                if from.is_some() {
                    others.retain(|node| senders.binary_search(node).is_err());
                }
                self.choose(sim, who, others)?
            }
        };
        let mut pairs = BTreeSet::new();
        for &a in &senders {
            for &b in receivers.iter().filter(|&&b| b != a) {
                pairs.insert((a, b));
                if both {
                    pairs.insert((b, a));
                }
            }
        }
        Ok(pairs)
    }

    /// Ends a cut, unless it has been healed; what another one cuts as well stays cut.
    fn mend<M: Machine, O: Observer<M>>(&mut self, sim: &mut Sim<M, O>, number: u64) {
        let Some(mut pairs) = self.cuts.remove(&number) else { return };
        pairs.retain(|pair| self.cuts.values().all(|other| !other.contains(pair)));
        sim.change_network(|network| pairs.iter().for_each(|&(a, b)| network.mend(a, b)));
    }

    fn plan_turn(&mut self, at: Time, (node, fault, end): (u32, usize, Time)) {
        if at < end {
            self.plan(at, Step::Freeze { node, fault, end });
        }
    }

    fn freeze<M: Machine, O: Observer<M>>(
        &mut self,
        sim: &mut Sim<M, O>,
        now: Time,
        (node, fault, end): (u32, usize, Time),
    ) {
        let FaultKind::Starve { of, blocked, running, buffer, .. } =
            self.scenario.faults[fault].kind
        else {
            unreachable!("only this fault starves")
        };
        match of {
            Lack::Processor => sim.pause(node, buffer),
            Lack::Network => sim.choke(node, buffer),
        }
        let wake = now + blocked;
        self.plan(wake.min(end), Step::Resume(node));
        self.plan_turn(wake + running, (node, fault, end));
    }

    /// Losses add up; of several duplications or delays the latest to begin holds.
    fn set_trouble<M: Machine, O: Observer<M>>(&self, sim: &mut Sim<M, O>) {
        let mut trouble = Trouble::default();
        for &index in &self.troubles {
            match self.scenario.faults[index].kind {
                FaultKind::Loss { rate, .. } => {
                    trouble.loss = 1.0 - (1.0 - trouble.loss) * (1.0 - rate);
                }
                FaultKind::Duplicate { rate, by, .. } => trouble.duplicate = (rate, by),
                FaultKind::Reorder { rate, by, .. } => trouble.reorder = (rate, by),
                FaultKind::Delay { by, .. } => trouble.delay = by,
                _ => unreachable!("only these are put on the list"),
            }
        }
        sim.change_network(|network| network.set_trouble(trouble));
    }

    fn live<M: Machine, O: Observer<M> + Favourite>(
        &mut self,
        sim: &Sim<M, O>,
        who: &Who,
    ) -> Result<Vec<u32>, Disconnected> {
        self.choose(sim, who, all(sim, Status::Up))
    }

    /// Those of `nodes`, which ascend, that `who` says.
    fn choose<M: Machine, O: Observer<M> + Favourite>(
        &mut self,
        sim: &Sim<M, O>,
        who: &Who,
        mut nodes: Vec<u32>,
    ) -> Result<Vec<u32>, Disconnected> {
        // A client is no node of the scenario.
        nodes.retain(|&node| node < self.scenario.capacity());
        match who {
            Who::All => {}
            Who::Nodes(named) => nodes.retain(|node| named.contains(node)),
            Who::Count(count) => self.sample(&mut nodes, *count as usize),
            Who::Fraction(fraction) => {
                let count = libm::round(fraction * nodes.len() as f64) as usize;
                self.sample(&mut nodes, count);
            }
            Who::Leader => {
                let leader = sim.observer().favourite();
                nodes.retain(|&node| Some(node) == leader);
            }
            Who::Cluster(index) => {
                let bounds = &sim.network().placed().clusters;
                let range = bounds[*index as usize]..bounds[*index as usize + 1];
                nodes.retain(|node| range.contains(node));
            }
            Who::AnyCluster => {
                let bounds = sim.network().placed().clusters.windows(2);
                let ranges = bounds.map(|bounds| bounds[0]..bounds[1]);
                let ranges: Vec<_> =
                    ranges.filter(|range| nodes.iter().any(|node| range.contains(node))).collect();
                if !ranges.is_empty() {
                    let range = &ranges[self.rng.below(ranges.len() as u64) as usize];
                    nodes.retain(|node| range.contains(node));
                }
            }
            Who::LeavingConnected(who) => return self.spare(sim, who, &nodes),
        }
        Ok(nodes)
    }

    /// Chooses until those who stay hang together as before.
    fn spare<M: Machine, O: Observer<M> + Favourite>(
        &mut self,
        sim: &Sim<M, O>,
        who: &Who,
        nodes: &[u32],
    ) -> Result<Vec<u32>, Disconnected> {
        let network = sim.network();
        let Some(neighbours) = &network.placed().neighbours else {
            return self.choose(sim, who, nodes.to_vec());
        };
        let before = parts(neighbours, |node| network.is_up(node));
        let mut lost = 0;
        for _ in 0..ATTEMPTS {
            let chosen = self.choose(sim, who, nodes.to_vec())?;
            let stays = |node| network.is_up(node) && chosen.binary_search(&node).is_err();
            if parts(neighbours, stays) <= before {
                return Ok(chosen);
            }
            lost = chosen.len() as u32;
        }
        let live = (0..sim.len()).filter(|&node| network.is_up(node)).count() as u32;
        Err(Disconnected::Rest { attempts: ATTEMPTS, lost, live })
    }

    /// Keeps `count` of `nodes`, chosen at random, in their order.
    fn sample(&mut self, nodes: &mut Vec<u32>, count: usize) {
        while nodes.len() > count {
            let drop = self.rng.below(nodes.len() as u64) as usize;
            nodes.remove(drop);
        }
    }
}

/// All nodes of this status, ascending.
fn all<M: Machine, O: Observer<M>>(sim: &Sim<M, O>, status: Status) -> Vec<u32> {
    (0..sim.len()).filter(|&node| sim.status(node) == status).collect()
}
