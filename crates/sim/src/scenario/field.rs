//! Fields on which nodes move, and the air between them: how they are read.

use std::sync::Arc;

use bellwether_proto::Duration;

use bellwether_settings::{Field, Reader, Result, Section};

use super::{LevyProfile, Mobility, NetworkSettings, Placement, Radio, SharedMovement, Wifi};
use crate::world::mobility;

/// Reads `mobility`, for this many nodes.
pub(super) fn mobility(field: Field<'_>, placement: &Placement, nodes: u32) -> Result<Mobility> {
    if !matches!(placement, Placement::Field { .. }) {
        let error = field.error_unquoted("needs a field to move on");
        return Err(error.with_allowed("placement = { kind = \"field\", side, range }"));
    }
    let kinds: [(_, Reader<'_, u32, _>); 5] = [
        ("random-waypoint", |section, _| {
            let speed = speed(section, (5.0, 15.0))?;
            Ok(Mobility::RandomWaypoint { speed, pause: pause(section)? })
        }),
        ("point-of-interest", |section, _| {
            let speed = speed(section, (5.0, 15.0))?;
            let spacing = section.or("spacing", 9.0, Field::length)?;
            Ok(Mobility::PointOfInterest { speed, pause: pause(section)?, spacing })
        }),
        ("random-walk", |section, _| {
            let speed = speed(section, (0.1, 1.0))?;
            let leg = section.or("leg", Duration::from_secs(60), Field::span)?;
            Ok(Mobility::RandomWalk { speed, pause: pause(section)?, leg })
        }),
        ("levy-walk", |section, _| {
            let profiles = [("published", LevyProfile::Published), ("clean", LevyProfile::Clean)];
            let read = |field: &Field<'_>| field.choice(&profiles);
            Ok(Mobility::LevyWalk(section.or("profile", LevyProfile::Published, read)?))
        }),
        ("trace", trace),
    ];
    let mut section = field.section()?;
    let mut nodes = nodes;
    let mobility = section.kind(&mut nodes, &kinds)?;
    section.end()?;
    Ok(mobility)
}

fn trace(section: &mut Section<'_>, nodes: &mut u32) -> Result<Mobility> {
    let field = section.require("file", "\"walk.movements\"")?;
    let allowed = "a BonnMotion or ns-2 file, named from where the scenario is";
    let movement = mobility::read(&field.near(field.text()?))
        .map_err(|error| field.error(format!("is no movement: {error}")).with_allowed(allowed))?;
    if movement.nodes() < *nodes {
        let problem = format!("moves {} nodes, but the network has {nodes}", movement.nodes());
        return Err(field.error(problem).with_allowed("a line for each node, or fewer nodes"));
    }
    Ok(Mobility::Trace(SharedMovement(Arc::new(movement))))
}

fn speed(section: &mut Section<'_>, default: (f64, f64)) -> Result<(f64, f64)> {
    section.or("speed", default, |field| {
        let [low, high] = field.pair()?;
        let (low, high) = (low.length()?, high.length()?);
        if low > high {
            return Err(field.error("runs backwards").with_allowed("the smaller number first"));
        }
        Ok((low, high))
    })
}

fn pause(section: &mut Section<'_>) -> Result<Duration> {
    section.or("pause", Duration::from_secs(10), Field::duration)
}

/// Refuses a movement that memory would not hold, going by how long legs are on average.
pub(super) fn bounded(
    field: &Field<'_>,
    network: &NetworkSettings,
    duration: Duration,
    nodes: u64,
) -> Result<()> {
    let Placement::Field { side, .. } = network.placement else { return Ok(()) };
    let leg = match network.mobility {
        Mobility::Still | Mobility::Trace(_) => return Ok(()),
        Mobility::RandomWaypoint { speed, pause }
        | Mobility::PointOfInterest { speed, pause, .. } => {
            // Two points of a square are about half its side apart.
            side / (speed.0 + speed.1) + pause.as_secs_f64()
        }
        Mobility::RandomWalk { speed, pause, leg } => {
            let leg = leg.as_secs_f64();
            let bounces = leg * (speed.0 + speed.1) / 2.0 / side;
            (leg + pause.as_secs_f64()) / (1.0 + bounces)
        }
        // Five metres and ten seconds are the least of both.
        Mobility::LevyWalk(_) => 15.0 / (1.0 + 5.0 / side),
    };
    let legs = nodes as f64 * duration.as_secs_f64() / leg;
    if legs <= MOST_LEGS {
        return Ok(());
    }
    let problem = format!("goes some {legs:.0} legs: {nodes} nodes, {leg:.6} s each, {duration}");
    let error = field.error_unquoted(problem);
    Err(error.with_allowed("at most 20000000 legs: a shorter run, fewer nodes or longer legs"))
}

/// Most legs of all nodes together. Arbitrary: a gigabyte of waypoints.
const MOST_LEGS: f64 = 2e7;

/// Reads `radio`.
pub(super) fn radio(field: Field<'_>, placement: &Placement) -> Result<Radio> {
    let mut section = field.clone().section()?;
    let kinds: [(_, Reader<'_, (), _>); 2] = [
        ("ideal", |_, ()| Ok(Radio::Ideal)),
        ("wifi", |section, ()| {
            let default = Wifi::default();
            let interference =
                section.or("interference", default.interference, |field| {
                    match field.number()? {
                        factor if (1.0..=100.0).contains(&factor) => Ok(factor),
                        _ => Err(field
                            .error("is no factor of the range")
                            .with_allowed("a number from 1 to 100")),
                    }
                })?;
            let queue = section.or("queue", default.queue, |field| field.integer(1..=1_000_000))?;
            Ok(Radio::Wifi(Wifi { interference, queue }))
        }),
    ];
    let radio = section.kind(&mut (), &kinds)?;
    section.end()?;
    match radio {
        Radio::Wifi(_) if !placement.has_positions() => Err(field
            .error_unquoted("needs nodes with positions")
            .with_allowed("\"ideal\", or a placement of kind field, grid, random or cluster")),
        radio => Ok(radio),
    }
}
