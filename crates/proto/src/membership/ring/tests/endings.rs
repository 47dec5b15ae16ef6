//! How leases and cases end, where that is not as it should be: each test is what is left of a simulated run.

use super::*;

/// Something that `from` says to `to` now.
fn tell(net: &mut Net, from: Life, to: u64, body: Body) {
    let message = Message { inc: from.inc, body };
    net.input(to, Input::Message { from: from.peer, via: from.id(), message: &message });
}

/// Whether node 4 still is a member, if it hears that all its neighbours have left so long after its leases began to
/// run out, and looks at the clock then.
fn absolved(after: u64) -> bool {
    let mut net = Net::ring(hardened(3), &ids(12));
    let until = net.nodes[&4].leases().map(|lease| lease.until).min().unwrap();
    let near: Vec<Life> = net.nodes[&4].leases().map(|lease| lease.peer).collect();
    net.now = until + Duration::from_millis(after);
    for neighbour in near {
        tell(&mut net, neighbour, 4, Body::Leave { forced: true });
    }
    net.input(4, Input::Timeout);
    net.nodes[&4].is_active()
}

#[test]
fn who_slept_through_its_own_end_is_not_absolved_by_those_who_have_left_since() {
    // Whoever suspected it before it left may have buried it 2 T_l + T_a later, and not sooner.
    assert!(absolved(0));
    assert!(absolved(499));
    assert!(!absolved(500));
    assert!(!absolved(5_000));
}

#[test]
fn nor_by_the_accused_where_the_verdict_was_slept_through() {
    for (after, stays) in [(499, true), (500, false)] {
        let mut net = Net::ring(hardened(3), &ids(12));
        let accused = net.nodes[&4].leases[0].peer;
        let mut out = Outbox::new();
        let now = net.now;
        net.nodes.get_mut(&4).unwrap().suspect(now, accused, now, &mut out);
        net.now = now + Duration::from_millis(after);
        tell(&mut net, accused, 4, Body::Leave { forced: true });
        net.nodes.get_mut(&4).unwrap().leases.clear();
        net.input(4, Input::Timeout);
        assert_eq!(net.nodes[&4].is_active(), stays, "{after} ms");
    }
}
