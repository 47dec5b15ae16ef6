//! Joins.

use super::*;

fn joiner(net: &mut Net, config: Config, node: u64, contact: u64) -> Time {
    net.start(Ring::new(peer(node), config, Seed::new(node), &[], &[id(contact)]));
    net.now
}

fn activated(net: &Net, node: u64) -> Option<(Time, u32)> {
    net.events.iter().find_map(|e| match e.2 {
        RingEvent::Activated { attempts, .. } if e.1 == node => Some((e.0, attempts)),
        _ => None,
    })
}

#[test]
fn slotted_a_join_takes_four_sessions_exactly() {
    let config = published(2);
    let mut net = Net::ring(config, &[5, 11, 13, 17, 19, 23, 29]);
    let start = joiner(&mut net, config, 16, 5);
    net.run(start + Duration::from_millis(3_999));
    assert_eq!(activated(&net, 16), None);
    assert_eq!(net.nodes[&13].locked_for(net.now).map(|life| life.id()), Some(id(16)));
    net.run(start + Duration::from_millis(4_000));
    assert_eq!(activated(&net, 16), Some((start + Duration::from_millis(4_000), 1)), "Theorem 8");
    net.run(start + Duration::from_millis(4_030));
    assert_eq!(net.nodes[&13].locked_for(net.now), None);
}

#[test]
fn fast_a_join_takes_little_more_than_one_session() {
    let config = hardened(2);
    let mut net = Net::ring(config, &[5, 11, 13, 17, 19, 23, 29]);
    let start = joiner(&mut net, config, 16, 5);
    net.run(start + Duration::from_millis(1_200));
    let (at, attempts) = activated(&net, 16).expect("by then");
    assert_eq!(attempts, 1);
    // Redirected, found, locked; a session; confirmed and told.
    assert_eq!(at.since(start), Duration::from_millis(1_000 + 4 * 20 + 20));
}

#[test]
fn after_a_join_all_know_it_and_all_leases_fit() {
    for config in [published(2), hardened(2), hardened(3)] {
        let mut net = Net::ring(config, &[5, 11, 13, 17, 19, 23, 29, 31, 37]);
        joiner(&mut net, config, 16, 5);
        net.run(net.now + Duration::from_millis(60_000));
        assert_eq!((net.active().len(), net.forced()), (10, 0));
        for (key, node) in &net.nodes {
            assert_eq!(node.members().count(), 10, "n{key}");
            let near = node.neighbours();
            assert_eq!(node.leases().len(), near.len(), "n{key}: displaced pairs are closed");
            for other in near {
                assert!(node.lease(other.id()).is_some_and(|lease| lease.active));
                assert!(node.is_upgraded(other.id()), "n{key} on {}", other.id());
            }
        }
    }
}

#[test]
fn of_two_joiners_that_share_neighbours_one_waits() {
    for config in [published(2), hardened(2)] {
        let mut net = Net::ring(config, &[5, 11, 13, 17, 19, 23, 29]);
        joiner(&mut net, config, 16, 5);
        joiner(&mut net, config, 12, 29);
        let mut both = false;
        for _ in 0..6_000 {
            net.run(net.now + Duration::from_millis(10));
            let locked = |of: u64| {
                let by = |node: &&Ring| node.locked_for(net.now).is_some_and(|l| l.id() == id(of));
                net.nodes.values().filter(by).count()
            };
            both |= locked(16) >= 4 && locked(12) >= 4;
        }
        assert!(!both, "Theorem 7");
        let attempts = [16, 12].map(|node| activated(&net, node).expect("joined").1);
        assert!(attempts.iter().max() > Some(&1), "{attempts:?}");
        assert_eq!((net.active().len(), net.forced()), (9, 0));
    }
}

#[test]
fn a_joiner_that_dies_half_way_takes_nobody_along() {
    for after in (0..1_400).step_by(35) {
        let config = hardened(2);
        let mut net = Net::ring(config, &[5, 11, 13, 17, 19, 23, 29]);
        let start = joiner(&mut net, config, 16, 5);
        net.run(start + Duration::from_millis(after));
        net.crash(16);
        net.run(start + Duration::from_millis(30_000));
        assert_eq!((net.active().len(), net.forced()), (7, 0), "died after {after} ms");
        for (key, node) in &net.nodes {
            assert_eq!(node.members().count(), 7, "n{key}, died after {after} ms");
        }
    }
}

#[test]
fn a_ring_grows_from_one() {
    let config = hardened(3);
    let mut net = Net::ring(config, &[1]);
    for node in 2..=9 {
        joiner(&mut net, config, node, 1);
        net.run(net.now + Duration::from_millis(15_000));
        assert_eq!((net.active().len() as u64, net.forced()), (node, 0));
    }
    for node in net.nodes.values() {
        assert_eq!((node.members().count(), node.leases().len()), (9, 6));
    }
}

#[test]
fn a_displaced_end_that_missed_the_close_stays_all_the_same() {
    let config = hardened(2).with_hints(false);
    let mut net = Net::ring(config, &[5, 11, 13, 17, 19, 23, 29, 31]);
    joiner(&mut net, config, 16, 5);
    net.run(net.now + Duration::from_millis(20_000));
    assert!(net.events.iter().any(|e| matches!(e.2, RingEvent::Suspected(_))), "it did miss it");
    assert_eq!((net.active().len(), net.forced()), (9, 0));
}
