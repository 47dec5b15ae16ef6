//! The network of a scenario: placed, moving, on the air.

use std::sync::Arc;

use bellwether_proto::{Seed, Time};

use crate::{
    scenario::{Mobility, Placement, Radio, Scenario, SharedMovement},
    world::{
        Disconnected, Network, Placed,
        mobility::{self, Movement},
        place,
    },
};

/// How the nodes of a run move, joiners included; those with fixed positions stay there. `None` if they have no
/// positions at all.
///
/// # Errors
///
/// [`Disconnected`] if a random placement cannot be drawn.
pub fn movement(scenario: &Scenario, seed: u64) -> Result<Option<Arc<Movement>>, Disconnected> {
    let (nodes, seed) = (scenario.capacity(), Seed::new(seed));
    if !scenario.network.placement.has_positions() {
        return Ok(None);
    }
    if let Some(movement) = moving(scenario, nodes, seed) {
        return Ok(Some(movement));
    }
    let placed = placed(scenario, nodes, seed)?;
    Ok(Some(Arc::new(Movement::still(&placed.positions))))
}

/// The network of a scenario, with nobody up, and how many nodes it has room for.
///
/// # Errors
///
/// [`Disconnected`] if a random placement cannot be drawn.
pub fn world(scenario: &Scenario, seed: Seed) -> Result<(Network, u32), Disconnected> {
    let nodes = scenario.capacity();
    Ok((world_of(scenario, nodes, seed)?, nodes))
}

/// The same with room for so many nodes.
pub(crate) fn world_of(
    scenario: &Scenario,
    nodes: u32,
    seed: Seed,
) -> Result<Network, Disconnected> {
    let described = &scenario.network;
    let range = described.placement.range().unwrap_or(f64::INFINITY);
    let movement = moving(scenario, nodes, seed);
    let placed = match &movement {
        // Where they are at the beginning is nowhere to rely on.
        Some(movement) => Placed {
            positions: Vec::new(),
            neighbours: Some(movement.neighbours(range, 0.0)),
            clusters: Vec::new(),
        },
        None => placed(scenario, nodes, seed)?,
    };
    let mut network = Network::new(described, placed, nodes, seed.named("network").rng());
    if let Radio::Wifi(wifi) = &described.radio {
        network = network.with_radio(wifi, range, seed.named("radio").rng());
    }
    if let Some(movement) = &movement {
        network = network.with_movement(movement, range, Time::ZERO + scenario.duration);
    }
    Ok(network)
}

fn placed(scenario: &Scenario, nodes: u32, seed: Seed) -> Result<Placed, Disconnected> {
    place(&scenario.network.placement, nodes, &mut seed.named("placement").rng())
}

fn moving(scenario: &Scenario, nodes: u32, seed: Seed) -> Option<Arc<Movement>> {
    let Placement::Field { side, .. } = scenario.network.placement else { return None };
    match &scenario.network.mobility {
        Mobility::Still => None,
        Mobility::Trace(SharedMovement(movement)) if movement.nodes() == nodes => {
            Some(Arc::clone(movement))
        }
        Mobility::Trace(SharedMovement(movement)) => Some(Arc::new(movement.of_first(nodes))),
        mobility => {
            let seed = seed.named("movement");
            let movement = mobility::generate(mobility, side, nodes, scenario.duration, seed)?;
            Some(Arc::new(movement))
        }
    }
}
