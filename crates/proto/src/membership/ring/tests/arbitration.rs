//! Decisions: who stays, who leaves, and that it is never both.

use super::*;

/// Survivors of a ring of `n` after these crash at once.
fn survivors(config: Config, n: u64, crashed: &[u64]) -> usize {
    let mut net = Net::ring(config, &ids(n));
    assert_eq!((net.active().len() as u64, net.forced()), (n, 0));
    crashed.iter().for_each(|&node| net.crash(node));
    net.run(ms(60_000));
    net.active().len()
}

#[test]
fn small_rings_after_one_crash() {
    for (n, left) in [(2, 0), (3, 2), (4, 3), (5, 4), (8, 7)] {
        assert_eq!(survivors(published(3), n, &[1]), left, "n {n}");
    }
    // A further crash at once: 5 and 6 tolerate one, 7 and 8 two.
    for (n, crashed, left) in [(4, 2, 0), (5, 2, 3), (6, 2, 4), (7, 3, 4), (8, 3, 5)] {
        let gone: Vec<u64> = (1..=crashed).collect();
        assert_eq!(survivors(published(3), n, &gone), left, "n {n}, {crashed} crashed");
    }
}

#[test]
fn two_members_need_a_witness_outside() {
    let config = hardened(3);
    assert_eq!(survivors(config, 2, &[1]), 0);
    let config = config.with_arbiters(Arbiters::Pairwise, id(90), 1).unwrap();
    let mut net = Net::new();
    let founders = [peer(0), peer(1)];
    for node in [0, 1, 90] {
        net.start(Ring::new(peer(node), config, Seed::new(node), &founders, &[]));
    }
    net.run(ms(10_000));
    net.crash(1);
    net.run(ms(30_000));
    assert_eq!(net.active(), [0]);
}

#[test]
fn any_k_crashes_at_once_cost_nobody_else_its_place() {
    // S4, every pattern of k for k = 1 and 2 in a ring of 20, up to rotation.
    assert_eq!(survivors(published(1), 20, &[3]), 19);
    for second in 4..=12 {
        assert_eq!(survivors(published(2), 20, &[3, second]), 18, "3 and {second}");
    }
}

#[test]
fn a_run_of_k_is_survived_and_one_more_dissolves_the_ring_as_published() {
    // S5.
    assert_eq!(survivors(published(3), 24, &[4, 5, 6]), 21);
    assert_eq!(survivors(published(3), 24, &[4, 5, 6, 7]), 0);
    assert_eq!(survivors(hardened(3), 24, &[4, 5, 6, 7]), 20);
}

/// Survivors on either side of a cut around the first `arc` nodes.
fn parted(config: Config, n: u64, arc: u64) -> (usize, usize) {
    let mut net = Net::ring(config, &ids(n));
    net.filter = Box::new(move |from, to, _, _| (from < arc) == (to < arc));
    net.run(ms(120_000));
    let inside = net.active().iter().filter(|&&node| node < arc).count();
    (inside, net.active().len() - inside)
}

#[test]
fn at_most_one_side_of_a_cut_survives() {
    assert_eq!(parted(published(3), 24, 2), (0, 22));
    assert_eq!(parted(published(3), 24, 4), (0, 0));
    let everybody = hardened(3).with_far(Far::Everybody);
    assert_eq!(parted(everybody, 24, 8), (0, 16));
    assert_eq!(parted(everybody, 24, 12), (0, 0));
}

#[test]
fn a_cut_link_costs_one_of_two() {
    for config in [published(3), hardened(3)] {
        for distance in 1..=3 {
            let mut net = Net::ring(config, &ids(16));
            net.filter = Box::new(move |from, to, _, _| {
                let pair = (from.min(to), from.max(to));
                pair != (5, 5 + distance)
            });
            net.run(ms(60_000));
            let left = net.active().len();
            match config.tie {
                Tie::Concede => assert_eq!(left, 15, "distance {distance}: L1"),
                Tie::Leave => assert!((14..=15).contains(&left), "distance {distance}: {left}"),
            }
        }
    }
}

#[test]
fn the_centre_fails_with_its_majority() {
    let config = published(3).with_arbiters(Arbiters::Central, id(90), 5).unwrap();
    let mut net = Net::new();
    let founders: Vec<Peer> = (0..12).map(peer).collect();
    for &one in &founders {
        net.start(Ring::new(one, config, Seed::new(one.id.get()), &founders, &[]));
    }
    for arbiter in 90..95 {
        net.start(Ring::new(peer(arbiter), config, Seed::new(arbiter), &[], &[]));
    }
    net.run(ms(10_000));
    for (event, left) in [(0, 11), (1, 10), (2, 0)] {
        net.crash(90 + event);
        net.crash(3 * event);
        net.run(net.now + Duration::from_millis(20_000));
        let members = net.active().iter().filter(|&&node| node < 90).count();
        assert_eq!(members, left, "event {event}");
    }
}

#[test]
fn everybody_hears_of_a_crash_and_all_groups_follow() {
    for config in [published(3), hardened(3)] {
        let mut net = Net::ring(config, &ids(32));
        let crash = net.now;
        net.crash(7);
        net.run(crash + Duration::from_millis(4_500 + 5 * 10 + 1_000));
        for (key, node) in &net.nodes {
            assert_eq!(node.members().count(), 31, "n{key}");
        }
        net.run(crash + Duration::from_millis(40_000));
        assert_eq!((net.active().len(), net.forced()), (31, 0));
        for (key, node) in &net.nodes {
            let near = node.neighbours();
            assert_eq!(near.len(), 6);
            for other in near {
                let lease = node.lease(other.id()).expect("every neighbour is leased");
                assert!(lease.active, "n{key} on {}", other.id());
                assert!(node.is_upgraded(other.id()), "n{key} on {}", other.id());
            }
        }
    }
}

#[test]
fn a_goodbye_needs_no_arbitration() {
    let mut net = Net::ring(hardened(3), &ids(16));
    net.log.clear();
    net.input(3, Input::Leave);
    net.run(net.now + Duration::from_millis(5_000));
    assert!(net.nodes[&3].is_out() && net.nodes[&3].deadline().is_none());
    assert!(net.log.iter().all(|m| !matches!(m.3.body, Body::Ask { .. })));
    assert_eq!(net.active().len(), 15);
    assert!(net.nodes[&9].members().all(|life| life.id() != id(3)));
}

#[test]
fn who_had_to_leave_comes_back_as_another_incarnation() {
    let mut net = Net::ring(hardened(3).with_rejoin(true), &ids(16));
    let cut_until = net.now + Duration::from_millis(8_000);
    net.filter = Box::new(move |from, to, now, _| now > cut_until || (from != 5 && to != 5));
    net.run(cut_until);
    assert!(net.forced() > 0 && !net.nodes[&5].is_active());
    net.run(cut_until + Duration::from_millis(60_000));
    assert_eq!(net.active().len(), 16);
    assert!(net.nodes[&5].life().inc > Incarnation::default());
    for node in net.nodes.values() {
        assert_eq!(node.members().count(), 16);
    }
}

/// Found by a simulated run: an arbitrator that had to leave came back empty-handed and voted once more, as itself.
#[test]
fn a_new_incarnation_has_no_seat() {
    let mut net = Net::ring(hardened(2), &ids(6));
    let mut out = Outbox::new();
    let node = net.nodes.get_mut(&0).unwrap();
    let lease = node.leases[0].clone();
    node.leases[0].proposal = None;
    node.leases[0].closing = None;
    let group = lease.group.clone();
    let voter = group.members.iter().find(|one| one.id() != id(0) && **one != lease.peer).unwrap();
    let again = Life { inc: voter.inc.next(), ..*voter };
    assert!(super::super::verdict::is_seated(&node.config, &group, *voter));
    assert!(!super::super::verdict::is_seated(&node.config, &group, again));
    node.suspect(net.now, lease.peer, Time::NEVER, &mut out);
    let answer = Message {
        inc: again.inc,
        body: Body::Answer { accused: lease.peer, vote: Vote::Accept, newer: Vec::new() },
    };
    let input = Input::Message { from: again.peer, via: again.id(), message: &answer };
    let refused = Err(Rejected::Unsolicited { from: again.peer });
    assert_eq!(node.handle(net.now, input, &mut out), refused);
}
