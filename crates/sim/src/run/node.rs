//! Runs of whole nodes: what an agent runs, hosted as an agent hosts it.
//!
//! Every election of a node is watched for its own promise; what is measured is the first. Besides what every election
//! is held to, nobody leads on a token that its disk has not kept or before its claim is confirmed, and of a leased election at most one life may act at
//! any true instant: from the moment its answer names itself until `valid_until` by its own clock, whether it runs, is
//! frozen or has crashed meanwhile, and whether or not a later life of it runs elsewhere.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use bellwether_proto::{
    Boot, Duration, Effect, EffectOf, ElectionId, Epoch, InputOf, Mode, NodeId, Peer, Seed, Time,
    election::churn_tolerant::Variant,
    node::{
        Command, Durable, Fact, Message, ModeSettings, Node, OnIsolation, Position, Settings,
        packet::{Dialect, Packet},
    },
    wire::{DecodeError, Reader, Wire as _},
};

use super::{Outcome, agreed, outcome};
use crate::{
    clock::Clock,
    engine::{Carrier, HostFeeds, Observer, Sim},
    invariant::{ActsWhenConfirmed, LeadsOnWhatIsKept, OlderLifeStops, OneMayAct, Violation},
    log::Log,
    metric::Metric,
    network::{Disconnected, Network},
    scenario::{NodeSettings, Scenario, State},
    schedule::{self, Favourite, Word},
    watch::Watch,
    world::world,
};

/// Runs a scenario of nodes.
///
/// # Errors
///
/// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
pub(super) fn run(
    scenario: &Scenario,
    settings: &NodeSettings,
    seed: u64,
    log: Log<'_>,
) -> Result<Outcome, Disconnected> {
    let root = Seed::new(seed);
    let (network, nodes) = world(scenario, root)?;
    // Who moves has no position to rely on.
    let positions = match scenario.network.has_fixed_positions() {
        true => network.placed().positions.clone(),
        false => Vec::new(),
    };
    let seeds: Vec<NodeId> = (0..scenario.network.nodes).map(|n| NodeId::new(n.into())).collect();
    let all = settings.clone();
    let build = Box::new(move |me: Peer, seed, durable: Option<Durable>| {
        let index = me.id.get() as u32;
        let mut settings = all.of(index);
        let durable = durable.or_else(|| all.disk(me).filter(|_| me.boot == Boot::new(1)));
        settings.about.position =
            positions.get(index as usize).map(|&(x, y)| Position { x: x as f32, y: y as f32 });
        let plan = settings.plan().expect("settings that were read make a plan");
        Node::new(me, plan, seed, durable).with_seeds(seeds.clone())
    });
    let feeds = HostFeeds {
        not_kept: Some(Fact::NotKept),
        writing: Some((Fact::Writing, Fact::Kept)),
        superseded: Some(Fact::Superseded),
    };
    let observer = (Hosting::new(scenario, settings, &log), log);
    let heard = Rc::new(Cell::new(Heard::default()));
    let carrier = settings.upgrading.then(|| carrier(Rc::clone(&heard)));
    let sim = Sim::new(network, nodes, root, build, observer).with_host_feeds(feeds);
    let sim = sim.with_carrier(carrier);
    let mut sim = sim.with_oversleep(OVERSLEEP);
    schedule::play(&mut sim, scenario, root, word(settings))?;
    let end = sim.now();
    sim.observer_mut().0.finish(end);
    if let Heard { unreadable: Some(detail), .. } = heard.get() {
        sim.observer_mut().0.violate(end, UNDERSTOOD, detail.to_owned());
    }
    let hosting = &sim.observer().0;
    let values = hosting.values(end);
    let mut sometimes = hosting.sometimes();
    if settings.upgrading {
        let Heard { tails, asides, .. } = heard.get();
        sometimes.push((UNDERSTOOD, "a later version spoke", tails > 0 && asides > 0));
    }
    Ok(Outcome {
        violations: hosting.violations(),
        sometimes,
        disagreements: hosting.disagreements(),
        ghosts: hosting.ghosts.clone(),
        ..outcome(&sim, seed, values)
    })
}

/// What came of packets of a later version.
#[derive(Clone, Copy, Default)]
struct Heard {
    tails: u64,
    asides: u64,
    /// What is wrong with the first that was taken for another than it is.
    unreadable: Option<&'static str>,
}

/// Every other life of a node speaks as a later version might. Whoever hears it is of this one.
fn carrier(heard: Rc<Cell<Heard>>) -> Carrier<Message> {
    Box::new(move |from, message| {
        let dialect = match (from.id.get() + from.boot.get()) % 2 {
            0 => Dialect::Present,
            _ => Dialect::Next,
        };
        let mut now = heard.get();
        if let Some(aside) = dialect.aside(message) {
            match Packet::decode(&mut Reader::new(&aside)) {
                Err(DecodeError::UnknownKind { .. }) => now.asides += 1,
                Err(error) => now.unreadable = now.unreadable.or(Some(error.reason())),
                Ok(_) => now.unreadable = now.unreadable.or(Some("an unknown kind was read")),
            }
        }
        let packet = Packet::decode(&mut Reader::new(&dialect.encode(message)));
        match &packet {
            Ok(packet) => now.tails += u64::from(!packet.tail.is_empty()),
            Err(error) => now.unreadable = now.unreadable.or(Some(error.reason())),
        }
        heard.set(now);
        packet.ok().map(|packet| packet.message)
    })
}

const UNDERSTOOD: &str = "later-versions-are-understood";

/// What nodes are told of the first election: to elect, or to hand over. Where nobody can be asked to elect, a leader hands
/// over.
fn word(settings: &NodeSettings) -> Word<Node> {
    let Some(election) = settings.common.elections.first() else { return Word::none() };
    let group = ElectionId::named(&election.name);
    let elect = match election.mode {
        ModeSettings::Eventual(_) => Command::Elect(group),
        _ => Command::Resign(group),
    };
    Word { elect: Some(elect), resign: Some(Command::Resign(group)), ..Word::none() }
}

/// Watches nodes.
struct Hosting {
    /// Of the nodes, and of earlier lives that run on.
    clocks: Vec<Clock>,
    ghost_clocks: BTreeMap<Peer, Clock>,
    seats: Vec<Seat>,
    disks: LeadsOnWhatIsKept,
    /// What a node has just asked to be kept, and whether its disk has refused something since its last input.
    asked: Vec<(Option<Durable>, bool)>,
    ghosts: OlderLifeStops,
    violations: Vec<Violation>,
}

/// One election.
struct Seat {
    group: ElectionId,
    watch: Watch,
    leased: bool,
    /// Whether it tells who leads before it is over.
    streams: bool,
    confirmed: ActsWhenConfirmed,
    acts: OneMayAct,
    /// Up to when, by their own clocks, those may act that named themselves last.
    until: BTreeMap<Peer, (Time, Epoch)>,
}

impl Hosting {
    fn new(scenario: &Scenario, settings: &NodeSettings, log: &Log<'_>) -> Self {
        let nodes = scenario.capacity();
        let takes_part = |node: u32, group: ElectionId| {
            settings
                .of(node)
                .elections
                .iter()
                .any(|election| ElectionId::named(&election.name) == group)
        };
        let seat = |(index, election): (usize, &bellwether_proto::node::ElectionSettings)| {
            let group = ElectionId::named(&election.name);
            let outsiders: BTreeSet<NodeId> = (0..nodes)
                .filter(|node| settings.others.contains_key(node) || !takes_part(*node, group))
                .map(|node| NodeId::new(node.into()))
                .collect();
            let mut watch = Watch::new(nodes, scenario.until).leaving_out(outsiders);
            if index == 0 {
                watch = watch.telling(log);
            }
            watch = match &election.mode {
                // What is promised is that tokens grow, not that their counters do.
                ModeSettings::Leased(leased) => {
                    watch.where_a_majority_of(leased.members.len() as u32)
                }
                ModeSettings::Learned(learned) => watch.by_majority_of(learned.voters.len() as u32),
                ModeSettings::Eventual(eventual) => match eventual.on_isolation {
                    OnIsolation::Auto => watch.stopping_when_cut_off(),
                    OnIsolation::Hold | OnIsolation::HoldFor(_) | OnIsolation::StepDown => watch,
                },
                ModeSettings::Announced(_) | ModeSettings::Central(_) => {
                    watch.stopping_when_cut_off()
                }
            };
            let streams = match &election.mode {
                ModeSettings::Eventual(eventual) => {
                    matches!(eventual.variant, Variant::Optimistic | Variant::Hybrid)
                }
                _ => false,
            };
            Seat {
                group,
                watch,
                leased: election.mode.mode() == Mode::Leased,
                streams,
                confirmed: ActsWhenConfirmed::default(),
                acts: OneMayAct::with_aftermath(settings.common.timing.step_down),
                until: BTreeMap::new(),
            }
        };
        let Settings { elections, .. } = &settings.common;
        Self {
            clocks: vec![Clock::true_time(); nodes as usize],
            ghost_clocks: BTreeMap::new(),
            seats: elections.iter().enumerate().map(seat).collect(),
            disks: LeadsOnWhatIsKept::default(),
            asked: vec![(None, false); nodes as usize],
            ghosts: OlderLifeStops::default(),
            violations: Vec::new(),
        }
    }

    fn finish(&mut self, now: Time) {
        self.seats.iter_mut().for_each(|seat| seat.watch.finish(now));
    }

    fn violations(&self) -> Vec<Violation> {
        let watched = self.seats.iter().flat_map(|seat| seat.watch.violations());
        self.violations.iter().chain(watched).cloned().collect()
    }

    /// Whoever is alone, or left out, has nobody to agree with.
    fn disagreements(&self) -> Vec<(Time, Time)> {
        let of = |seat: &Seat| {
            let (agreement, end) = (seat.watch.agreement(), seat.watch.agreement().deserted());
            let until = |to: Time| end.map_or(to, |end| to.min(end));
            let spells = agreement.disagreements().iter().map(|&(from, to)| (from, until(to)));
            spells.filter(|(from, to)| from < to).collect::<Vec<_>>()
        };
        self.seats.iter().flat_map(of).collect()
    }

    fn sometimes(&self) -> Vec<(&'static str, &'static str, bool)> {
        let mut all: Vec<_> = self.seats.iter().flat_map(|seat| seat.watch.sometimes()).collect();
        let mut add = |name, (situation, arose)| all.push((name, situation, arose));
        for seat in self.seats.iter().filter(|seat| seat.leased) {
            add(OneMayAct::NAME, seat.acts.sometimes());
        }
        for seat in self.seats.iter().filter(|seat| seat.streams) {
            add(ActsWhenConfirmed::NAME, seat.confirmed.sometimes());
        }
        add(LeadsOnWhatIsKept::NAME, self.disks.sometimes());
        add(OlderLifeStops::NAME, self.ghosts.sometimes());
        all
    }

    /// What the first election is measured by.
    fn values(&self, end: Time) -> Vec<(Metric, Option<f64>)> {
        let Some(Seat { watch, leased, acts, .. }) = self.seats.first() else { return Vec::new() };
        let mut values = agreed(watch, end).to_vec();
        values.retain(|(metric, _)| *metric != Metric::Violations);
        values.push((Metric::Violations, Some(self.violations().len() as f64)));
        if *leased {
            let gap = acts.smallest_gap().map(|gap| gap.as_secs_f64());
            values.push((Metric::LeaseOverlap, Some(acts.overlap().as_secs_f64())));
            values.push((Metric::SmallestGap, gap));
        }
        values
    }

    fn violate(&mut self, at: Time, invariant: &'static str, detail: String) {
        if self.violations.iter().all(|other| other.invariant != invariant) {
            self.violations.push(Violation { invariant, at, detail });
        }
    }

    /// A life names itself, by this clock, or does not.
    fn acts_confirmed(&mut self, now: Time, clock: Clock, machine: &Node) {
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            let answer = machine.leadership_of(seat.group, clock.read(now));
            let tentative = machine.tentative_since(seat.group);
            if let Err(detail) = seat.confirmed.answer(machine.me().id, tentative, &answer) {
                self.violate(now, ActsWhenConfirmed::NAME, detail);
            }
        }
    }

    /// A life answers what it answers, by this clock.
    fn acts(&mut self, now: Time, clock: Clock, machine: &Node) {
        let (me, local) = (machine.me(), clock.read(now));
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            if !seat.leased {
                continue;
            }
            let answer = machine.leadership_of(seat.group, local);
            let until = answer.valid_until.zip(answer.epoch);
            let until = until.filter(|_| answer.leader == Some(me.id));
            match until {
                Some(until) => seat.until.insert(me, until),
                None => seat.until.remove(&me),
            };
            let until = until.map(|(until, epoch)| (clock.when(until), epoch));
            if let Err(detail) = seat.acts.acts(now, me, until) {
                self.violate(now, OneMayAct::NAME, detail);
            }
        }
    }
}

impl Observer<Node> for Hosting {
    fn started(&mut self, now: Time, node: NodeId, state: State) {
        for seat in &mut self.seats {
            Observer::<Node>::started(&mut seat.watch, now, node, state);
        }
        if state == State::Lost {
            self.disks.forgot(node);
        }
    }

    fn input(&mut self, _now: Time, node: NodeId, _input: &InputOf<'_, Node>) {
        self.asked[node.get() as usize].1 = false;
    }

    fn effect(&mut self, _now: Time, node: NodeId, effect: &EffectOf<Node>) {
        let Effect::Persist(durable) = effect else { return };
        let (asked, refused) = &mut self.asked[node.get() as usize];
        let before = asked.take();
        if !*refused {
            *asked = Some(durable.clone());
        }
        if let Some(before) = before {
            self.disks.kept(node, before);
        }
    }

    fn not_kept(&mut self, _now: Time, node: NodeId) {
        self.asked[node.get() as usize] = (None, true);
        self.disks.refused();
    }

    fn writing(&mut self, _now: Time, node: NodeId) {
        self.asked[node.get() as usize] = (None, true);
        self.disks.refused();
    }

    fn kept(&mut self, _now: Time, node: NodeId, state: &Durable) {
        self.disks.kept(node, state.clone());
    }

    fn handled(&mut self, now: Time, node: NodeId, machine: &Node) {
        let slot = node.get() as usize;
        if let Some(kept) = self.asked[slot].0.take() {
            self.disks.kept(node, kept);
        }
        let local = self.clocks[slot].read(now);
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            let answer = machine.leadership_of(seat.group, local);
            seat.watch.answered(now, node, answer);
            if let Err(detail) = self.disks.answer(node, seat.group, &answer) {
                self.violate(now, LeadsOnWhatIsKept::NAME, detail);
            }
        }
        self.acts_confirmed(now, self.clocks[slot], machine);
        self.acts(now, self.clocks[slot], machine);
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        // What it asked for last was carried out, or refused, before it stopped.
        if let Some(kept) = self.asked[node.get() as usize].0.take() {
            self.disks.kept(node, kept);
        }
        for seat in &mut self.seats {
            Observer::<Node>::stopped(&mut seat.watch, now, node);
        }
    }

    fn ghost_handled(&mut self, now: Time, node: NodeId, machine: &Node) {
        // It keeps the clock of its place as that was.
        let clock = self.clocks[node.get() as usize];
        let clock = *self.ghost_clocks.entry(machine.me()).or_insert(clock);
        self.ghosts.ghost(now, machine.me(), machine.is_running());
        self.acts_confirmed(now, clock, machine);
        self.acts(now, clock, machine);
    }

    fn drifted(&mut self, now: Time, node: NodeId, ppm: i32) {
        let clock = &mut self.clocks[node.get() as usize];
        clock.set_rate(now, ppm);
        let clock = *clock;
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            let lives = seat
                .until
                .iter()
                .filter(|(who, _)| who.id == node && !self.ghost_clocks.contains_key(*who));
            let lives: Vec<_> = lives.map(|(&who, &until)| (who, until)).collect();
            for (who, (until, epoch)) in lives {
                let seat = &mut self.seats[index];
                let until = Some((clock.when(until), epoch));
                if let Err(detail) = seat.acts.acts(now, who, until) {
                    self.violate(now, OneMayAct::NAME, detail);
                }
            }
        }
    }

    fn topology(&mut self, now: Time, network: &Network) {
        for seat in &mut self.seats {
            Observer::<Node>::topology(&mut seat.watch, now, network);
        }
    }

    fn done(&self) -> bool {
        self.seats.first().is_some_and(|seat| Observer::<Node>::done(&seat.watch))
    }
}

impl Favourite for Hosting {
    fn favourite(&self) -> Option<u32> {
        self.seats.first().and_then(|seat| seat.watch.favourite())
    }
}

/// What a clock that ticks every millisecond, on a host that is not idle, adds to a wait.
const OVERSLEEP: Duration = Duration::from_millis(2);
