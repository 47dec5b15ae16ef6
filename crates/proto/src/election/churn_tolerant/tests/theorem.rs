//! Theorem 1, for every list there can be in a small group.

use super::{super::choice, *};

/// Every way of missing from at most `churn` other lists, for one node: bit `j` is list `j`.
fn columns(nodes: u32, node: u32, churn: u32) -> Vec<u32> {
    let missing = |mask: &u32| mask & (1 << node) == 0 && mask.count_ones() <= churn;
    (0..1 << nodes).filter(missing).collect()
}

/// Calls `each` with every choice of lists in which every node is missing from at most `churn` others.
fn every_list(nodes: u32, churn: u32, mut each: impl FnMut(&[Vec<(u64, u32)>])) {
    let columns: Vec<Vec<u32>> = (0..nodes).map(|node| columns(nodes, node, churn)).collect();
    let total: usize = columns.iter().map(Vec::len).product();
    for mut number in 0..total {
        let mut lists = vec![vec![]; nodes as usize];
        for (node, column) in (0..).zip(&columns) {
            let missing = column[number % column.len()];
            number /= column.len();
            for (list, at) in lists.iter_mut().zip(0..) {
                if missing & (1 << at) == 0 {
                    list.push((node, 0));
                }
            }
        }
        each(&lists);
    }
}

/// Whether a node knows enough others to ask (C-21 is about those who do not).
fn can_ask(lists: &[Vec<(u64, u32)>], node: u64, churn: u32) -> bool {
    lists[node as usize].len() > churn as usize
}

#[test]
fn any_answers_of_one_more_than_the_churn_elect_the_lowest() {
    for (nodes, churn, expected) in [(3, 1, 81), (4, 1, 1_536), (4, 2, 9_604)] {
        let config = config(Variant::Base, Form::AsPublished, churn as u16, 0);
        let mut cases = 0;
        every_list(nodes, churn, |lists| {
            let world = World::new(config, 0, lists);
            let answer = |node: u32| {
                let view = &world.node(u64::from(node)).view;
                let (candidates, excluded) = view.answer(Criterion::Identity, (1, 0), 0, &[]);
                choice::Answer { from: id(u64::from(node)), candidates, excluded }
            };
            for subset in (0..1_u32 << nodes).filter(|set| set.count_ones() == churn + 1) {
                let members = (0..nodes).filter(|node| subset & (1 << node) != 0);
                let answers: Vec<_> = members.map(answer).collect();
                let elected = choice::elected(&config, &answers, 0, &[]);
                assert_eq!(elected.map(|one| one.peer.id), Some(id(0)), "{lists:?} {subset:b}");
                cases += 1;
            }
        });
        assert_eq!(cases, expected);
    }
}

/// Theorem 3: with one answer fewer there are lists for which it fails.
#[test]
fn fewer_answers_can_miss_the_lowest() {
    for nodes in 3..12_u64 {
        for churn in 1..nodes - 1 {
            let full: Vec<(u64, u32)> = (0..nodes).map(|node| (node, 0)).collect();
            let lists: Vec<_> = (0..nodes)
                .map(
                    |node| {
                        if node > 0 && node <= churn { full[1..].to_vec() } else { full.clone() }
                    },
                )
                .collect();
            let too_small = config(Variant::Base, Form::AsPublished, churn as u16 - 1, 0);
            let world = World::new(too_small, 0, &lists);
            let answers: Vec<_> = (1..=churn)
                .map(|node| {
                    let view = &world.node(node).view;
                    let (candidates, excluded) = view.answer(Criterion::Identity, (1, 0), 0, &[]);
                    choice::Answer { from: id(node), candidates, excluded }
                })
                .collect();
            let elected = choice::elected(&too_small, &answers, 0, &[]);
            assert_eq!(elected.map(|one| one.peer.id), Some(id(1)));
        }
    }
}

/// The machines themselves: every list, and for each another initiator and another order of delivery
/// with some letters lost and some delivered twice. Optimistic as published is not among them: whoever is
/// notified twice, once late, leads again in its own eyes.
#[test]
fn machines_elect_the_lowest_whatever_the_order_of_delivery() {
    for (variant, form) in [
        (Variant::Base, Form::AsPublished),
        (Variant::Base, Form::Hardened),
        (Variant::Optimistic, Form::Hardened),
    ] {
        for (nodes, churn) in [(3, 1), (4, 1), (4, 2)] {
            let multicast = match form {
                Form::AsPublished => Multicast::Oracle,
                Form::Hardened => Multicast::Gossip { spread: 1, refresh: ms(1_000) },
            };
            let config = config(variant, form, churn as u16, 0).with_multicast(multicast).unwrap();
            let mut number = 0;
            every_list(nodes, churn, |lists| {
                number += 1;
                // One initiator after the other, or there would be too many worlds.
                let initiators = if nodes == 4 { number % 4..number % 4 + 1 } else { 0..3 };
                for initiator in initiators.filter(|&node| can_ask(lists, node, churn)) {
                    let mut world = World::new(config, number, lists);
                    let mut rng = Seed::new(number).named("order").rng();
                    world.elect(initiator);
                    shaken(&mut world, &mut rng);
                    world.pass(ms(20_000));
                    assert!(
                        world.agreed(0),
                        "{variant:?} {form:?} {lists:?} by {initiator}: {:?}",
                        world.leaders()
                    );
                }
            });
        }
    }
}

/// Delivers in any order for a while, losing and repeating letters, waking whoever is due now and then.
fn shaken(world: &mut World, rng: &mut Rng) {
    for _ in 0..40 {
        if world.flying.is_empty() && !world.wake() {
            return;
        }
        if world.flying.is_empty() {
            continue;
        }
        let at = rng.below(world.flying.len() as u64) as usize;
        match rng.below(8) {
            0 => drop(world.flying.remove(at)),
            1 => {
                let copy = world.flying[at].clone();
                world.flying.push(copy);
                world.deliver(at);
            }
            2 => drop(world.wake()),
            _ => world.deliver(at),
        }
    }
}

/// Every order of delivery there is, for every list of three nodes.
#[test]
fn every_order_of_delivery_ends_with_the_lowest() {
    for (variant, form) in [
        (Variant::Base, Form::AsPublished),
        (Variant::Base, Form::Hardened),
        (Variant::Optimistic, Form::Hardened),
    ] {
        let config = config(variant, form, 1, 0).with_multicast(Multicast::Substrate).unwrap();
        let mut ends = 0;
        every_list(3, 1, |lists| {
            for initiator in (0..3).filter(|&node| can_ask(lists, node, 1)) {
                let mut world = World::new(config, 1, lists);
                world.elect(initiator);
                explore(&world, true, &mut ends);
            }
        });
        assert!(ends > 81, "there was only one order: {ends}");
    }
}

/// Tries every letter next, and once every letter twice.
fn explore(world: &World, may_repeat: bool, ends: &mut u32) {
    if world.flying.is_empty() {
        *ends += 1;
        assert_eq!(world.leaders(), vec![Some(0); world.nodes.len()]);
        return;
    }
    for at in 0..world.flying.len() {
        let mut next = world.clone();
        next.deliver(at);
        explore(&next, may_repeat, ends);
        if may_repeat {
            let mut next = world.clone();
            let copy = next.flying[at].clone();
            next.flying.push(copy);
            next.deliver(at);
            explore(&next, false, ends);
        }
    }
}
