//! What a simulated node costs. One test, because the allocator counts for the whole process.

use std::alloc::System;

use bellwether_proto::{
    Duration, Peer, Seed, Time,
    membership::ping::{Config, Ping},
};
use bellwether_sim::{
    engine::Sim,
    scenario::{self, Delay, DelayLaw, Loss, Per, Placement, Routing, State},
    world::{Network, place},
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_hundred_thousand_nodes_fit_in_256_bytes_each_and_no_event_allocates() {
    const NODES: u32 = 100_000;
    let all = Region::new(ALLOCATOR);
    let mut sim = pinging(NODES);
    sim.advance(Time::from_micros(60_000));
    let live = all.change();
    let bytes = (live.bytes_allocated - live.bytes_deallocated) / NODES as usize;
    assert!(bytes <= 256, "{bytes} bytes per node");
    drop(sim);

    // The queue goes on fitting itself for a while, the more slowly the smaller the network.
    let mut sim = pinging(2_048);
    sim.advance(Time::from_micros(2_000_000));
    let before = sim.counters().events;
    let steady = Region::new(ALLOCATOR);
    sim.advance(Time::from_micros(4_000_000));
    let change = steady.change();
    assert!(sim.counters().events - before > 800_000);
    assert_eq!((change.allocations, change.reallocations), (0, 0));
}

fn pinging(nodes: u32) -> Sim<Ping> {
    let ms = Duration::from_millis;
    let described = scenario::NetworkSettings {
        nodes,
        start_spread: Duration::ZERO,
        placement: Placement::Mesh,
        delay: Delay { law: DelayLaw::Fixed(ms(1)), per: Per::Hop },
        loss: Loss::None,
        routing: Routing::Hops,
        mobility: Default::default(),
        radio: Default::default(),
    };
    let seed = Seed::new(1);
    let placed = place(&Placement::Mesh, nodes, &mut seed.rng()).expect("a mesh is connected");
    let network = Network::new(&described, placed, nodes, seed.named("network").rng());
    let config = Config::new(ms(20), ms(5), u64::from(nodes)).expect("valid");
    let build = Box::new(move |peer: Peer, seed, _| Ping::new(peer.id, config, seed));
    let mut sim = Sim::new(network, nodes, seed, build, ());
    sim.start_all(&(0..nodes).collect::<Vec<_>>(), State::Lost);
    sim
}
