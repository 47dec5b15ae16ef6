use bellwether_proto::Seed;

use super::*;
use crate::world::{LinkLoss, NodeLoss, Placement};

fn network(placement: Placement, nodes: u32, loss: Loss) -> Network {
    routed(placement, nodes, loss, Routing::Hops)
}

fn routed(placement: Placement, nodes: u32, loss: Loss, routing: Routing) -> Network {
    let delay = Delay { law: DelayLaw::Fixed(MS), per: Per::Hop };
    let start_spread = Duration::ZERO;
    let (mobility, radio) = Default::default();
    let described =
        NetworkSettings { nodes, start_spread, placement, delay, loss, routing, mobility, radio };
    let placed = place(&described.placement, nodes, &mut Seed::new(1).rng()).unwrap();
    let mut network = Network::new(&described, placed, nodes, Seed::new(2).rng());
    (0..nodes).for_each(|node| network.set_up(node, true));
    network
}

fn chain(nodes: u32) -> Placement {
    Placement::Edges((1..nodes).map(|i| (i - 1, i)).collect())
}

fn sent(network: &mut Network, from: u32, to: u32) -> (Travel, Vec<Arrival>) {
    let mut arrivals = Vec::new();
    (network.unicast(from, to, &mut arrivals), arrivals)
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_message_takes_a_hop_and_a_delay_for_every_link() {
    let mut network = network(chain(5), 5, Loss::None);
    let (travel, arrivals) = sent(&mut network, 0, 4);
    assert_eq!(travel, Travel { transmissions: 4, ..Travel::default() });
    assert_eq!(arrivals, [Arrival { to: 4, after: MS * 4 }]);
    assert_eq!(network.via(0, 4), 3);
}

#[test]
fn a_multicast_costs_one_transmission_per_link_of_its_tree() {
    let mut network = network(chain(5), 5, Loss::None);
    let mut arrivals = Vec::new();
    let travel = network.multicast(1, &mut arrivals);
    assert_eq!(travel.transmissions, 4);
    arrivals.sort_by_key(|arrival| arrival.to);
    let after: Vec<_> = arrivals.iter().map(|a| (a.to, a.after)).collect();
    assert_eq!(after, [(0, MS), (2, MS), (3, MS * 2), (4, MS * 3)]);
}

#[test]
fn what_a_relay_lost_those_behind_it_never_get() {
    let loss = Loss::PerLink { rate: 0.0, links: vec![LinkLoss { from: 1, to: 2, rate: 1.0 }] };
    let mut network = network(chain(5), 5, loss);
    let mut arrivals = Vec::new();
    let travel = network.multicast(0, &mut arrivals);
    assert_eq!((travel.transmissions, travel.lost), (2, 3));
    assert_eq!(arrivals, [Arrival { to: 1, after: MS }]);
    assert_eq!(sent(&mut network, 4, 0).1.len(), 1, "the other direction works");
}

#[test]
fn a_broadcast_reaches_the_neighbours_in_one_transmission() {
    let mut network = network(Placement::Ring, 6, Loss::None);
    let mut arrivals = Vec::new();
    let travel = network.broadcast(0, &mut arrivals);
    assert_eq!(travel.transmissions, 1);
    assert_eq!(arrivals.iter().map(|a| a.to).collect::<Vec<_>>(), [1, 5]);
}

#[test]
fn correlated_loss_takes_all_receivers_or_none() {
    let mut network = network(Placement::Mesh, 10, Loss::Correlated { rate: 0.4 });
    let mut all = 0;
    for _ in 0..10_000 {
        let mut arrivals = Vec::new();
        network.multicast(3, &mut arrivals);
        assert!(arrivals.is_empty() || arrivals.len() == 9);
        all += u32::from(!arrivals.is_empty());
    }
    // Binomial(10000, 0.6): five standard deviations of 49.
    assert!((5_755..=6_245).contains(&all), "{all}");
}

#[test]
fn independent_and_per_node_losses_have_the_rates_asked_for() {
    let node = NodeLoss { node: 2, outbound: 0.0, inbound: 0.5 };
    for (loss, expected) in [
        (Loss::Independent { rate: 0.2 }, [0.2, 0.2]),
        (Loss::PerNode { rate: 0.2, nodes: vec![node] }, [0.2, 0.6]),
    ] {
        let mut network = network(Placement::Mesh, 3, loss);
        for (to, expected) in [(1, expected[0]), (2, expected[1])] {
            let lost = (0..10_000).filter(|_| sent(&mut network, 0, to).0.lost == 1).count();
            assert!((lost as f64 / 1e4 - expected).abs() < 0.025, "to {to}: {lost}");
        }
    }
}

#[test]
fn paths_go_around_the_dead_and_the_cut() {
    let mut network = network(Placement::Ring, 6, Loss::None);
    assert_eq!(sent(&mut network, 0, 2).0.transmissions, 2);
    network.set_up(1, false);
    assert_eq!(sent(&mut network, 0, 2).0.transmissions, 4);
    network.cut(4, 3);
    assert_eq!(sent(&mut network, 0, 2).0.unreachable, 1);
    assert_eq!(sent(&mut network, 2, 0).0.transmissions, 4, "the cut is one-way");
    network.mend(4, 3);
    assert_eq!(sent(&mut network, 0, 2).0.transmissions, 4);
    network.cut(4, 3);
    network.heal();
    assert_eq!(sent(&mut network, 0, 2).0.transmissions, 4);
}

#[test]
fn a_broadcast_does_not_pass_a_cut_link() {
    let mut network = network(Placement::Ring, 6, Loss::None);
    network.cut(0, 1);
    let mut arrivals = Vec::new();
    let travel = network.broadcast(0, &mut arrivals);
    assert_eq!(travel, Travel { transmissions: 1, lost: 0, unreachable: 1 });
    assert_eq!(arrivals, [Arrival { to: 5, after: MS }]);
}

#[test]
fn without_routing_a_message_reaches_the_neighbours_and_nobody_else() {
    let mut network = routed(Placement::Star, 6, Loss::None, Routing::None);
    let (direct, nowhere) = (
        Travel { transmissions: 1, ..Travel::default() },
        Travel { unreachable: 1, ..Travel::default() },
    );
    for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))) {
        if from != to {
            let expected = if from == 0 || to == 0 { direct } else { nowhere };
            assert_eq!(sent(&mut network, from, to).0, expected, "{from} to {to}");
        }
    }
    let mut arrivals = Vec::new();
    let travel = network.multicast(2, &mut arrivals);
    assert_eq!(travel, Travel { transmissions: 1, lost: 0, unreachable: 4 });
    assert_eq!(arrivals, [Arrival { to: 0, after: MS }]);
    assert_eq!(network.path_lengths(2), [Some(1.0), None, Some(0.0), None, None, None]);
    let mut relayed = self::network(Placement::Star, 6, Loss::None);
    assert_eq!(sent(&mut relayed, 1, 2).0.transmissions, 2);
    assert_eq!(relayed.neighbours(0), Some([1, 2, 3, 4, 5].as_slice()));
}

#[test]
fn a_path_is_as_long_as_its_links() {
    let network = network(Placement::Grid { side: 20.0, range: 10.5 }, 9, Loss::None);
    let lengths = network.path_lengths(0);
    assert_eq!(lengths[0], Some(0.0));
    assert_eq!((lengths[1], lengths[8]), (Some(10.0), Some(40.0)));
    let ring = self::network(Placement::Ring, 5, Loss::None);
    assert_eq!(ring.path_lengths(0), [0.0, 1.0, 2.0, 2.0, 1.0].map(Some));
}

#[test]
fn components_are_those_who_hear_each_other_both_ways() {
    let mut network = network(Placement::Mesh, 6, Loss::None);
    assert_eq!(network.components(), vec![Some(0); 6]);
    network.partition(vec![0, 0, 1, 1, 1, 0]);
    network.set_up(5, false);
    let split = [Some(0), Some(0), Some(2), Some(2), Some(2), None];
    assert_eq!(network.components(), split);
    network.heal();
    for other in 0..5 {
        network.cut(other, 3);
    }
    assert_eq!(network.components(), [Some(0), Some(0), Some(0), Some(3), Some(0), None]);
    assert!(!network.admits(0, 3) && network.admits(3, 0));
}

#[test]
fn poisson_delays_have_the_mean_and_variance_of_their_law() {
    let mut rng = Seed::new(5).rng();
    for mean in [0.5, 10.0, 70.0] {
        let draws: Vec<f64> = (0..20_000).map(|_| poisson(mean, &mut rng) as f64).collect();
        let average = draws.iter().sum::<f64>() / 2e4;
        let variance = draws.iter().map(|x| (x - average) * (x - average)).sum::<f64>() / 2e4;
        let error = 5.0 * libm::sqrt(mean / 2e4);
        assert!((average - mean).abs() < error, "mean {average} for {mean}");
        assert!((variance / mean - 1.0).abs() < 0.06, "variance {variance} for {mean}");
    }
}

#[test]
fn trouble_duplicates_and_holds_back() {
    let mut network = network(Placement::Mesh, 2, Loss::None);
    let (duplicate, reorder) = ((1.0, MS * 3), (1.0, MS * 5));
    network.set_trouble(Trouble { duplicate, reorder, ..Trouble::default() });
    let mut latest = Duration::ZERO;
    for _ in 0..1_000 {
        let (_, arrivals) = sent(&mut network, 0, 1);
        assert_eq!(arrivals.len(), 2);
        assert!(arrivals[0].after <= MS * 6 && arrivals[1].after <= MS * 9);
        latest = latest.max(arrivals[0].after);
    }
    assert!(latest > MS * 5, "something was held back for long");
}

/// What is kept over crashes, returns and partitions is what would be found anew.
#[test]
fn kept_paths_are_the_present_ones() {
    for routing in [Routing::Hops, Routing::Length] {
        let field = Placement::Random { side: 15.0, range: 4.0, robust: true };
        let mut kept = network(field, 49, Loss::None);
        kept.routing = routing;
        let mut rng = Seed::new(7).rng();
        for step in 0..40 {
            match step % 10 {
                8 => kept.partition((0..49).map(|node| node % 2).collect()),
                9 => kept.heal(),
                _ => {
                    let node = rng.below(49) as u32;
                    kept.set_up(node, !kept.is_up(node));
                }
            }
            let mut anew = kept.clone();
            anew.changed();
            for (from, to) in (0..49).flat_map(|from| (0..49).map(move |to| (from, to))) {
                assert_eq!(kept.via(from, to), anew.via(from, to), "{from} to {to}, step {step}");
            }
        }
    }
}
