//! Test vectors V2 to V14 and V17 of `docs/rules/central.md`.

use std::{vec, vec::Vec};

use super::*;

/// A difference as the vectors write it.
fn update(source: u64, add: &[u64], remove: &[u64], old: u64, new: u64) -> Update {
    let ids = |ids: &[u64]| ids.iter().copied().map(id).collect();
    Update { source: id(source), add: ids(add), remove: ids(remove), old, new }
}

/// What is sent on a tick, by source.
fn updates(messages: &[Message]) -> Vec<Update> {
    let [Message::Updates(updates)] = messages else { panic!("{messages:?}") };
    let mut updates = updates.to_vec();
    updates.sort_by_key(|update| update.source);
    updates
}

fn queued(node: &Node) -> Vec<Update> {
    let Protocol::Published(Published::TopologyAware(it)) = &node.0.protocol else {
        panic!("not TA")
    };
    let mut updates = it.updates.clone();
    updates.sort_by_key(|update| update.source);
    updates
}

fn pending(node: &Node) -> usize {
    let Protocol::Published(Published::TopologyAware(it)) = &node.0.protocol else {
        panic!("not TA")
    };
    it.pending.len()
}

#[test]
fn v2_the_tick_grows_with_the_logarithm_of_the_range() {
    let hundredths = |range: u32| (tick(f64::from(range)).as_micros() + 5) / 10;
    let expected =
        [(10, 1000), (30, 4340), (60, 6447), (80, 7322), (90, 7680), (130, 8798), (200, 10107)];
    for (range, millis) in expected {
        assert_eq!(hundredths(range), millis, "{range} m");
    }
    let mean = |from: u32, to: u32| {
        let all: u64 =
            (from..=to).step_by(10).map(|range| tick(f64::from(range)).as_micros()).sum();
        all as f64 / f64::from((to - from) / 10 + 1) / 1e3
    };
    assert!((mean(10, 100) - 55.9).abs() < 0.05, "{}", mean(10, 100));
    assert!((mean(110, 200) - 92.8).abs() < 0.05, "{}", mean(110, 200));
    assert_eq!([0.0, -1.0, f64::NAN, 7.0].map(tick), [millis(1); 4]);
}

#[test]
fn v3_the_worked_example_of_topology_aware() {
    let [g, h, i, j, k] = [1, 2, 3, 4, 5];
    let left: &[Told<'_>] = &[(h, 7, &[h, k]), (i, 13, &[i, k]), (k, 9, &[h, i, k])];
    let right: &[Told<'_>] = &[(j, 22, &[g, j]), (g, 5, &[g, j])];
    let knowing = |me, told| Node::knowing(me, topology_aware(), told);
    let mut nodes =
        [g, h, i, j, k].map(|me| knowing(me, if me == g || me == j { right } else { left }));
    let [ng, nh, ni, nj, nk] = &mut nodes;
    // 4.1
    assert_eq!([&*nh, ni, nk, nj, ng].map(Node::leader), [k, k, k, j, j]);
    // 4.2
    let from_i = ni.up(j);
    assert_eq!(ni.view(i), (14, vec![i, j, k]));
    assert!(matches!(from_i[..], [Message::Known(_)]));
    assert_eq!(ni.leader(), k);
    // 4.3
    let from_j = nj.up(i);
    assert_eq!(nj.view(j), (23, vec![g, i, j]));
    // 4.4
    assert_eq!(nk.hear_all(i, &from_i), []);
    assert_eq!(queued(nk), [update(i, &[j], &[], 13, 14)]);
    assert_eq!(nk.leader(), k);
    nj.hear_all(i, &from_i);
    let learnt = [
        update(h, &[h, k], &[], 0, 7),
        update(i, &[i, j, k], &[], 0, 14),
        update(k, &[h, i, k], &[], 0, 9),
    ];
    assert_eq!(queued(nj), learnt);
    assert_eq!(nj.leader(), i);
    // 4.5
    ni.hear_all(j, &from_j);
    assert_eq!(queued(ni), [update(g, &[g, j], &[], 0, 5), update(j, &[g, i, j], &[], 0, 23)]);
    assert_eq!(ni.leader(), i);
    ng.hear_all(j, &from_j);
    assert_eq!(queued(ng), [update(j, &[i], &[], 22, 23)]);
    assert_eq!(ng.leader(), j, "the payload was read before i's map came (E8)");
    // 4.6 to 4.9: rounds of ticks.
    let links = [(g, j), (j, i), (i, k), (k, h)];
    let mut sent = Vec::new();
    for _ in 0..5 {
        let said: Vec<(u64, Vec<Message>)> =
            nodes.iter_mut().map(|node| (node.0.me.id.get(), node.tick())).collect();
        for &(a, b) in &links {
            for (from, to) in [(a, b), (b, a)] {
                let messages = &said.iter().find(|(id, _)| *id == from).unwrap().1;
                let to = nodes.iter_mut().find(|node| node.0.me.id.get() == to).unwrap();
                assert_eq!(to.hear_all(from, messages), [], "everything waits for a tick");
            }
        }
        sent.push(said.into_iter().filter(|(_, said)| !said.is_empty()).collect::<Vec<_>>());
    }
    let speakers = |round: usize| sent[round].iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let said = |round: usize, node: u64| {
        updates(&sent[round].iter().find(|(id, _)| *id == node).unwrap().1)
    };
    assert_eq!(speakers(0), [g, i, j, k]);
    assert_eq!(said(0, j), learnt);
    assert!(speakers(1).contains(&h), "h has applied i 13 to 14 and passes it on");
    assert!(said(1, k).contains(&update(j, &[g, i, j], &[], 0, 23)));
    assert!(said(1, k).contains(&update(g, &[g, j], &[], 0, 5)));
    assert!(speakers(2).contains(&h));
    assert_eq!(speakers(3), [], "then silence");
    let end = vec![
        (g, 5, vec![g, j]),
        (h, 7, vec![h, k]),
        (i, 14, vec![i, j, k]),
        (j, 23, vec![g, i, j]),
        (k, 9, vec![h, i, k]),
    ];
    for node in &nodes {
        assert_eq!(node.map(), end);
        assert_eq!((node.leader(), node.0.answer().unwrap().score), (i, 6));
    }
}

#[test]
fn v4_what_was_pending_is_not_passed_on() {
    let told: &[Told<'_>] =
        &[(1, 1, &[2]), (2, 2, &[1, 3]), (3, 4, &[2, 4, 5]), (4, 1, &[3]), (5, 1, &[3])];
    let [mut one, mut two, mut three] =
        [1, 2, 3].map(|me| Node::knowing(me, topology_aware(), told));
    let mut from_three = Vec::new();
    for lost in [4, 5] {
        three.down(lost);
        from_three.extend(three.tick());
    }
    assert_eq!(updates(&from_three[..1]), [update(3, &[], &[4], 4, 5)]);
    assert_eq!(updates(&from_three[1..]), [update(3, &[], &[5], 5, 6)]);
    from_three.reverse();
    two.hear_all(3, &from_three);
    assert_eq!(two.view(3), (6, vec![2, 3]));
    let from_two = two.tick();
    assert_eq!(updates(&from_two), [update(3, &[], &[4], 4, 5)]);
    one.hear_all(2, &from_two);
    assert_eq!(two.tick(), []);
    assert_eq!(one.view(3), (5, vec![2, 3, 5]));
    assert_eq!([one.leader(), two.leader(), three.leader()], [3, 2, 2]);
}

#[test]
fn v5_an_overlap_is_dropped_though_nothing_is_lost_or_overtaken() {
    let [x, e, i, d, y] = [1, 2, 3, 4, 5];
    let told: &[Told<'_>] = &[
        (x, 4, &[1, 2, 9]),
        (e, 6, &[1, 2, 4]),
        (d, 8, &[2, 3, 4]),
        (i, 5, &[3, 4]),
        (9, 1, &[1]),
    ];
    let mut nodes: Vec<Node> =
        [x, e, i, d].map(|me| Node::knowing(me, topology_aware(), told)).into();
    nodes.push(Node::new(y, topology_aware()));
    let mut links: Vec<(u64, u64)> = vec![(x, e), (e, d), (d, i)];
    let place = |node: u64| match node {
        1 => 0,
        2 => 1,
        3 => 2,
        4 => 3,
        _ => 4,
    };
    fn deliver(
        nodes: &mut [Node],
        links: &[(u64, u64)],
        from: u64,
        said: &[Message],
        place: impl Fn(u64) -> usize,
    ) {
        for &(a, b) in links {
            let to = match from {
                _ if from == a => b,
                _ if from == b => a,
                _ => continue,
            };
            assert_eq!(nodes[place(to)].hear_all(from, said), []);
        }
    }
    let tick = |nodes: &mut Vec<Node>, links: &[(u64, u64)], node: u64| {
        let said = nodes[place(node)].tick();
        deliver(nodes, links, node, &said, place);
    };
    // x loses 9; e and d learn of it, i does not yet.
    nodes[0].down(9);
    tick(&mut nodes, &links, x);
    tick(&mut nodes, &links, e);
    assert_eq!(nodes[place(d)].view(x), (5, vec![1, 2]));
    // x leaves e, meets i, then y. What e says of that waits for its tick, as does d's news of 4 to 5.
    links.retain(|&link| link != (x, e));
    nodes[0].down(e);
    nodes[place(e)].down(x);
    for (met, new) in [(i, (x, i)), (y, (x, y))] {
        links.push(new);
        // Both notice at once: what i sends to d with it is of before.
        let (said, back) = (nodes[0].up(met), nodes[place(met)].up(x));
        deliver(&mut nodes, &links, met, &back, place);
        deliver(&mut nodes, &links, x, &said, place);
        tick(&mut nodes, &links, i);
    }
    // All ticks run, until nobody has anything to say.
    for _ in 0..10 {
        for node in [d, e, i, x, y] {
            tick(&mut nodes, &links, node);
        }
    }
    assert!(nodes.iter_mut().all(|node| node.tick().is_empty()));
    for node in [x, i, y] {
        assert_eq!(nodes[place(node)].view(x), (8, vec![1, 3, 5]), "node {node}");
        assert_eq!(nodes[place(node)].leader(), 3, "node {node}");
    }
    for node in [e, d] {
        assert_eq!(nodes[place(node)].view(x), (5, vec![1, 2]), "node {node}");
        assert_eq!(nodes[place(node)].leader(), 4, "node {node}");
    }
    assert_eq!(pending(&nodes[place(d)]), 1);
}

#[test]
fn v6_a_restarted_node_believes_what_others_remember_of_it() {
    let told: &[Told<'_>] = &[(1, 17, &[1, 2, 3]), (2, 5, &[1, 2]), (3, 2, &[1, 3])];
    let mut one = Node::new(1, topology_aware());
    let mut two = Node::knowing(2, topology_aware(), told);
    two.down(1);
    let (from_one, from_two) = (one.up(2), two.up(1));
    assert_eq!(one.view(1), (1, vec![1, 2]));
    two.hear_all(1, &from_one);
    assert_eq!(two.view(1), (17, vec![1, 2, 3]), "ignored");
    one.hear_all(2, &from_two);
    assert_eq!(one.view(1), (17, vec![1, 2, 3]), "its own entry");
    for config in both() {
        let mut one = Node::new(1, config);
        let mut two = Node::knowing(2, config, told);
        two.down(1);
        let mut from_one = one.up(2);
        let mut from_two = two.up(1);
        for _ in 0..6 {
            from_one.extend(one.tick());
            from_two.extend(two.tick());
            let (heard_one, heard_two) =
                (core::mem::take(&mut from_one), core::mem::take(&mut from_two));
            from_one = one.hear_all(2, &heard_two);
            from_two = two.hear_all(1, &heard_one);
        }
        assert_eq!(one.view(1), (18, vec![1, 2]));
        assert_eq!(two.view(1), (18, vec![1, 2]));
    }
}

#[test]
fn v7_first_contact_in_cel() {
    let [mut one, mut two] = [1, 2].map(|me| Node::new(me, cel(1.0)));
    let (from_one, from_two) = (one.up(2), two.up(1));
    assert_eq!(one.hear_all(2, &from_two), []);
    assert_eq!(two.hear_all(1, &from_one), []);
    for node in [one, two] {
        assert_eq!(node.map(), [(1, 1, vec![1, 2]), (2, 1, vec![1, 2])]);
        assert_eq!(node.leader(), 2);
    }
}

#[test]
fn v8_one_lost_frame_splits_a_quiet_component_for_ever() {
    let told: &[Told<'_>] = &[(1, 1, &[3]), (3, 1, &[1])];
    let mut one = Node::knowing(1, cel(1.0), told);
    let three = Node::knowing(3, cel(1.0), told);
    let mut two = Node::new(2, cel(1.0));
    let (from_one, from_two) = (one.up(2), two.up(1));
    assert_eq!(two.hear_all(1, &from_one).len(), 1, "two passes it on, to one alone");
    assert_eq!(one.hear_all(2, &from_two), []);
    assert_eq!(one.map(), [(1, 2, vec![1, 2, 3]), (2, 1, vec![1, 2]), (3, 1, vec![1, 3])]);
    assert_eq!([one.leader(), two.leader(), three.leader()], [1, 1, 3]);
    assert!([one, two, three].iter().all(|node| node.0.deadline().is_none()), "P9: for ever");
}

#[test]
fn v9_a_link_that_is_gone_comes_back_by_union() {
    let told: &[Told<'_>] =
        &[(1, 5, &[1, 2, 3, 9]), (2, 4, &[1, 2, 3]), (3, 6, &[1, 2, 3]), (9, 1, &[1, 9])];
    let [mut i, mut h, mut j] = [1, 2, 3].map(|me| Node::knowing(me, cel(1.0), told));
    let from_i = i.down(3);
    assert_eq!((i.view(1), i.view(3)), ((6, vec![1, 2, 9]), (7, vec![2, 3])));
    let from_h = h.hear_all(1, &from_i);
    j.hear_all(2, &from_h);
    let from_j = j.down(1);
    assert_eq!((j.view(3), j.view(1)), ((8, vec![2, 3]), (7, vec![1, 2, 9])));
    let from_i = i.down(9);
    assert_eq!((i.view(1), i.view(9)), ((7, vec![1, 2]), (2, vec![9])));
    let back = h.hear_all(1, &from_i).into_iter().chain(h.hear_all(3, &from_j));
    for message in back.collect::<Vec<_>>() {
        for said in [i.hear(2, &message), j.hear(2, &message)].concat() {
            h.hear(1, &said);
        }
    }
    for node in [&i, &h, &j] {
        assert_eq!(node.view(1), (7, vec![1, 2, 9]), "{:?}", node.0.me);
    }
}

#[test]
fn v10_a_live_neighbour_is_erased_by_a_guess() {
    let told: &[Told<'_>] = &[(1, 5, &[1, 2, 3]), (2, 3, &[1, 2]), (3, 3, &[1, 3])];
    let mut one = Node::knowing(1, cel(1.0), told);
    let mut three = Node::knowing(3, cel(1.0), told);
    one.up(4);
    assert_eq!(one.view(1), (6, vec![1, 2, 3, 4]));
    three.down(1);
    let from_three = three.up(1);
    assert_eq!(three.view(1), (7, vec![1, 2, 3]));
    one.hear_all(3, &from_three);
    assert_eq!(one.view(1), (7, vec![1, 2, 3]));
    assert!(one.0.neighbours().any(|other| other == id(4)), "which is there all the same");
}

#[test]
fn v11_a_crash_is_forgotten_and_a_reboot_joins_what_is_apart() {
    let told: &[Told<'_>] = &[(1, 3, &[1, 2, 5]), (2, 3, &[1, 2, 5]), (5, 5, &[1, 2, 5])];
    let [mut one, mut two] = [1, 2].map(|me| Node::knowing(me, cel(1.0), told));
    let (from_one, from_two) = (one.down(5), two.down(5));
    assert_eq!((one.view(5), two.view(5)), ((6, vec![2, 5]), (6, vec![1, 5])));
    one.hear_all(2, &from_two);
    two.hear_all(1, &from_one);
    assert_eq!((one.view(5), two.view(5)), ((6, vec![1, 2, 5]), (6, vec![1, 2, 5])));
    // 3 and 4 know of it as all did before they were apart.
    let mut known = one.map();
    known.extend([(3, 1, vec![3, 4]), (4, 1, vec![3, 4])]);
    let told: Vec<Told<'_>> =
        known.iter().map(|(id, clock, all)| (*id, *clock, &all[..])).collect();
    let mut three = Node::knowing(3, cel(1.0), &told);
    let mut five = Node::new(5, cel(1.0));
    five.up(3);
    let from_three = three.up(5);
    assert_eq!(three.view(5), (7, vec![1, 2, 3, 5]));
    five.hear_all(3, &from_three);
    assert_eq!(five.view(5), (7, vec![1, 2, 3, 5]));
    assert_eq!(
        (five.0.answer().unwrap().members, five.leader()),
        (5, 5),
        "4-3-5 is the truth, and 3"
    );
}

/// Twins 1 and 2, who hear each other, 3 and 4; 3 meets 5.
fn twins(config: Config, one_loses_it: bool) -> [Node; 5] {
    let told: &[Told<'_>] =
        &[(1, 3, &[2, 3, 4]), (2, 3, &[1, 3, 4]), (3, 2, &[1, 2]), (4, 2, &[1, 2])];
    let mut nodes =
        [1, 2, 3, 4, 5].map(|me| Node::knowing(me, config, if me == 5 { &[] } else { told }));
    let from_three = nodes[2].up(5);
    let from_five = nodes[4].up(3);
    nodes[4].hear_all(3, &from_three);
    nodes[2].hear_all(5, &from_five);
    let from_two = nodes[1].hear_all(3, &from_three);
    assert_eq!(from_two, [], "a twin of smaller identity will say it");
    if !one_loses_it {
        let from_one = nodes[0].hear_all(3, &from_three);
        assert_eq!(from_one.len(), 1);
        for other in [1, 2, 3] {
            nodes[other].hear_all(1, &from_one);
        }
    }
    nodes
}

#[test]
fn v12_twins_rely_on_each_other() {
    let nodes = twins(cel(1.0), false);
    assert!(nodes.iter().all(|node| node.view(3) == (3, vec![1, 2, 3, 5])));
    let nodes = twins(cel(1.0), true);
    assert_eq!(nodes.each_ref().map(Node::leader), [2, 3, 3, 2, 3]);
    assert!(nodes.iter().all(|node| node.0.deadline().is_none()));
}

#[test]
fn v13_claims_of_flooding_degree() {
    let config = |reading| {
        let (period, timeout) = (millis(250), millis(300));
        let profile = Profile::Flooding { reading, period, timeout, numbered: false };
        Config::new(profile, Detection::Given).unwrap()
    };
    let claim = |leader, value| Message::Claim { leader: id(leader), value, sequence: 0 };
    for reading in [Reading::Tick, Reading::Opt, Reading::Eager, Reading::Relay] {
        let mut five = Node::new(5, config(reading));
        five.up(1);
        five.up(2);
        assert_eq!(five.leader(), 5);
        let said = five.hear(1, &claim(3, 4));
        assert_eq!(said.len(), usize::from(reading != Reading::Relay));
        assert_eq!(five.leader(), 3);
        five.hear(1, &claim(3, 1));
        assert_eq!(five.leader(), 5, "(2, 5) is better than (1, 3)");
        five.hear(1, &claim(9, 2));
        assert_eq!(five.leader(), 9, "the higher identity");
        five.hear(1, &claim(8, 2));
        assert_eq!(five.leader(), 9);
        let Some((silence, Timer::Leader)) =
            five.0.deadline().filter(|next| next.1 == Timer::Leader)
        else {
            // A tick comes first: let it pass.
            let (tick, _) = five.0.deadline().unwrap();
            five.input(tick, Input::Timeout);
            five.input(at(300), Input::Timeout);
            assert_eq!(five.leader(), 5, "F5");
            continue;
        };
        five.input(silence, Input::Timeout);
        assert_eq!((silence, five.leader()), (at(300), 5), "F5");
    }
}

fn gomez(order: Order) -> Config {
    let profile = Profile::Gomez { order, period: Duration::from_micros(102_400) };
    Config::new(profile, Detection::Given).unwrap()
}

fn state(node: &Node) -> (u64, u64, u64) {
    let Protocol::Published(Published::Gomez(it)) = &node.0.protocol else { panic!("not GC") };
    let (leader, size, patience) = it.state();
    (leader.get(), size, patience.as_micros() / 1_000)
}

#[test]
fn v14_two_fresh_nodes_and_two_groups_that_meet() {
    let mut nodes = [0, 1].map(|me| Node::new(me, gomez(Order::Size)));
    let mut now = Time::ZERO;
    while now < at(5_000) {
        let next = nodes.each_ref().map(|node| node.0.deadline().unwrap().0);
        let due = usize::from(next[1] < next[0]);
        now = next[due];
        let mut said = vec![(due, nodes[due].input(now, Input::Timeout))];
        while let Some((from, messages)) = said.pop() {
            for message in messages {
                said.push((1 - from, nodes[1 - from].hear_at(now, from as u64, &message)));
            }
        }
    }
    assert_eq!(nodes.each_ref().map(Node::leader), [1, 1]);
    assert_eq!(state(&nodes[0]), (1, 2, 600), "one expiry too early, then never again");
    // A node of a group of two led by 9 at the border of one of three led by 4.
    let border = |order| {
        let mut node = Node::new(7, gomez(order));
        let lead = |leader, size| Message::Lead { id: id(leader), born: 0, size, sequence: 1 };
        node.hear(9, &lead(9, 2));
        assert_eq!(node.leader(), 9);
        let said = node.hear(4, &lead(4, 3));
        (node.leader(), said.len())
    };
    assert_eq!(border(Order::Size), (4, 1), "the larger group wins, whatever the oracle says");
    assert_eq!(border(Order::Age), (9, 0));
}

#[test]
fn v17_the_arithmetic_of_the_tables() {
    let change = |from: f64, to: f64| libm::round((to / from - 1.0) * 1e4) / 100.0;
    assert_eq!(change(53.32, 14.97), -71.92);
    assert_eq!(change(21.75, 12.15), -44.14);
    assert_eq!(change(84.06, 30.74), -63.43);
    assert_eq!(change(3.50, 2.96), -15.43);
}
