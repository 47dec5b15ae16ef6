//! What every run is measured by, whatever its nodes run: messages, bytes, and the use of the air.

use bellwether_proto::{Duration, Machine, Time};

use super::metric::Metric;
use crate::{
    engine::{Counters, Observer, Sim},
    world::radio::{self, Usage},
};

/// What every protocol is measured by, behind its `own` metrics.
pub(crate) fn counted<M: Machine, O: Observer<M>>(
    sim: &Sim<M, O>,
    own: impl IntoIterator<Item = (Metric, Option<f64>)>,
) -> Vec<(Metric, Option<f64>)> {
    let Counters {
        events,
        messages,
        deliveries,
        lost,
        undeliverable,
        rejected,
        bytes,
        transmissions,
        hop_bytes,
        by_hops: _,
    } = *sim.counters();
    let counted = [
        (Metric::Messages, messages),
        (Metric::Deliveries, deliveries),
        (Metric::Lost, lost),
        (Metric::Undeliverable, undeliverable),
        (Metric::Rejected, rejected),
        (Metric::Bytes, bytes),
        (Metric::Transmissions, transmissions),
        (Metric::HopBytes, hop_bytes),
        (Metric::Events, events),
    ];
    let counted = counted.into_iter().map(|(metric, count)| (metric, Some(count as f64)));
    own.into_iter().chain(counted).chain(aired(sim)).collect()
}

/// What nodes with radios are measured by.
fn aired<M: Machine, O: Observer<M>>(sim: &Sim<M, O>) -> Vec<(Metric, Option<f64>)> {
    let Some(air) = sim.network().air() else { return Vec::new() };
    let Usage { frames, collisions, dropped } = air.usage();
    let whole = sim.now().since(Time::ZERO);
    let (mut busy, mut total, mut dynamic) = (Duration::ZERO, 0.0, 0.0);
    for (sent, received) in (0..sim.len()).map(|node| air.times(node)) {
        let energy = radio::energy(whole, sent, received);
        busy += sent + received;
        (total, dynamic) = (total + energy.0, dynamic + energy.1);
    }
    let nodes = f64::from(sim.len());
    let radios = whole.as_secs_f64() * nodes;
    vec![
        (Metric::Frames, Some(frames as f64)),
        (Metric::Collisions, Some(collisions as f64)),
        (Metric::QueueDrops, Some(dropped as f64)),
        (Metric::AirShare, (radios > 0.0).then(|| busy.as_secs_f64() / radios)),
        (Metric::Energy, Some(total / nodes)),
        (Metric::DynamicEnergy, Some(dynamic / nodes)),
    ]
}
