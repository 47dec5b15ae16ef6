//! Runs of whole nodes: what an agent runs, hosted as an agent hosts it.

use std::{cell::Cell, collections::BTreeSet, rc::Rc};

use bellwether_proto::{
    Boot, Duration, ElectionId, NodeId, Peer, Seed,
    node::{
        Command, Durable, Fact, Message, ModeSettings, Node, Position,
        packet::{Dialect, Packet},
    },
    wire::{DecodeError, Reader, Wire as _},
};

use super::{
    Outcome,
    faults::{self, ExternalInputs},
    outcome,
    world::world,
};
use crate::{
    engine::{Carrier, HostFeeds, Sim},
    observe::{Log, NodeWatch},
    scenario::{NodeSettings, Scenario},
    world::Disconnected,
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
    let others = |group| outsiders(scenario.capacity(), settings, group);
    let watch = NodeWatch::new(scenario.capacity(), scenario.until, &settings.common, others, &log);
    let observer = (watch, (log.opinions(), log));
    let heard = Rc::new(Cell::new(Heard::default()));
    let carrier = settings.upgrading.then(|| carrier(Rc::clone(&heard)));
    let sim = Sim::new(network, nodes, root, build, observer).with_host_feeds(feeds);
    let sim = sim.with_carrier(carrier);
    let mut sim = sim.with_oversleep(OVERSLEEP);
    faults::play(&mut sim, scenario, root, inputs(settings))?;
    let end = sim.now();
    sim.observer_mut().0.finish(end);
    if let Heard { unreadable: Some(detail), .. } = heard.get() {
        sim.observer_mut().0.violate(end, UNDERSTOOD, detail.to_owned());
    }
    let watch = &sim.observer().0;
    let values = watch.values(end);
    let mut sometimes = watch.sometimes();
    if settings.upgrading {
        let Heard { tails, asides, .. } = heard.get();
        sometimes.push((UNDERSTOOD, "a later version spoke", tails > 0 && asides > 0));
    }
    Ok(Outcome {
        violations: watch.violations(),
        sometimes,
        disagreements: watch.disagreements(),
        ghosts: watch.ghosts().clone(),
        ..outcome(&sim, seed, values)
    })
}

/// Who takes no part in an election, or has other settings than the rest.
fn outsiders(nodes: u32, settings: &NodeSettings, group: ElectionId) -> BTreeSet<NodeId> {
    let takes_part = |node| {
        settings
            .of(node)
            .elections
            .iter()
            .any(|election| ElectionId::named(&election.name) == group)
    };
    (0..nodes)
        .filter(|node| settings.others.contains_key(node) || !takes_part(*node))
        .map(|node| NodeId::new(node.into()))
        .collect()
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
fn inputs(settings: &NodeSettings) -> ExternalInputs<Node> {
    let Some(election) = settings.common.elections.first() else { return ExternalInputs::none() };
    let group = ElectionId::named(&election.name);
    let elect = match election.mode {
        ModeSettings::Eventual(_) => Command::Elect(group),
        _ => Command::Resign(group),
    };
    ExternalInputs {
        elect: Some(elect),
        resign: Some(Command::Resign(group)),
        ..ExternalInputs::none()
    }
}

/// What a clock that ticks every millisecond, on a host that is not idle, adds to a wait.
const OVERSLEEP: Duration = Duration::from_millis(2);
