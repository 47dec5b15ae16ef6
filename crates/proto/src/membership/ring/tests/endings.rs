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

/// A ring in which 3 has crashed and 2 is about to invite 4, its new neighbour. What 4 acknowledges is lost while `lost`
/// says so of the stage last asked for.
fn parted_pair(lost: fn(Stage) -> bool) -> Net {
    let mut net = Net::ring(hardened(1), &ids(8));
    net.crash(3);
    let mut asked = Stage::Keep;
    net.filter = Box::new(move |from, to, _, message| match &message.body {
        Body::Request(session) if (from, to) == (2, 4) => {
            asked = session.stage;
            true
        }
        Body::Ack(_) => (from, to) != (4, 2) || !lost(asked),
        _ => true,
    });
    net.log.clear();
    net
}

/// Runs until something is so, a millisecond at a time.
fn run_until(net: &mut Net, so: impl Fn(&Net) -> bool) {
    for _ in 0..20_000 {
        if so(net) {
            return;
        }
        net.run(net.now + Duration::from_millis(1));
    }
    panic!("not within 20 s");
}

/// What `from` has sent to `to` lately that is of this kind.
fn sent(net: &Net, from: u64, to: u64, kind: fn(&Body) -> bool) -> Vec<Body> {
    let fits = |m: &&(Time, u64, u64, Message)| (m.1, m.2) == (from, to) && kind(&m.3.body);
    net.log.iter().filter(fits).map(|m| m.3.body.clone()).collect()
}

fn is_ack(body: &Body) -> bool {
    matches!(body, Body::Ack(_))
}

fn is_invite(body: &Body) -> bool {
    matches!(body, Body::Request(session) if session.stage == Stage::Invite)
}

#[test]
fn a_late_acknowledgement_does_not_save_a_lease_that_is_being_closed() {
    let mut net = parted_pair(|stage| stage == Stage::Confirm);
    run_until(&mut net, |net| net.nodes[&2].is_uncertain());
    let late = sent(&net, 4, 2, is_ack).pop().expect("4 has confirmed");
    tell(&mut net, life(4), 2, late);
    // Otherwise it would be held to a lease of which it never begins a session again.
    assert!(net.nodes[&2].is_uncertain());
    net.filter = Box::new(|_, _, _, _| true);
    net.run(net.now + Duration::from_millis(10_000));
    assert_eq!((net.active().len(), net.forced()), (7, 0));
    assert!(net.nodes[&2].lease(id(4)).is_some_and(|lease| lease.active && lease.sessions > 2));
}

#[test]
fn an_acknowledgement_of_one_lease_is_none_of_the_next() {
    let mut net = parted_pair(|_| true);
    run_until(&mut net, |net| sent(net, 2, 4, is_invite).len() == 2);
    let late = sent(&net, 4, 2, is_ack);
    let first = late.first().expect("4 has acknowledged the first invitation").clone();
    tell(&mut net, life(4), 2, first);
    assert_eq!(net.nodes[&2].lease(id(4)).expect("invited again").acked, None);
}

#[test]
fn a_lease_is_confirmed_by_its_own_confirmation() {
    let mut net = parted_pair(|_| false);
    run_until(&mut net, |net| net.nodes[&4].lease(id(2)).is_some());
    let Some(Body::Request(invited)) = sent(&net, 2, 4, is_invite).pop() else { panic!("invited") };
    let group = invited.group.clone().expect("an invitation names its group");
    for (born, active) in [(group.born - 1, false), (group.born, true)] {
        let group = Some(Group { born, ..group.clone() });
        let confirm = Session { number: 1_000, stage: Stage::Confirm, group, ..invited.clone() };
        tell(&mut net, life(2), 4, Body::Request(confirm));
        assert_eq!(net.nodes[&4].lease(id(2)).is_some_and(|lease| lease.active), active);
    }
    // It sleeps before its own first session: whoever counts on it has been counting since it confirmed.
    net.nodes.get_mut(&4).unwrap().leases.retain(|lease| lease.peer == life(2));
    net.now += Duration::from_millis(2_500);
    net.input(4, Input::Timeout);
    assert!(!net.nodes[&4].is_active());
}

/// Node 1 accuses node 0, having consented to a second group; what it is told by `answers` comes to these events.
fn verdict(first: &[Life], second: &[Life], answers: &[(Life, Vote)]) -> Vec<RingEvent> {
    let mut net = Net::ring(hardened(2), &ids(9));
    let node = net.nodes.get_mut(&1).unwrap();
    let lease = node.lease_mut(life(0)).unwrap();
    let members = |others: &[Life]| [&[life(0), life(1)], others].concat();
    lease.group.members = members(first);
    let version = Version { low: lease.group.version.low + 1, high: 0 };
    let next = Group { version, members: members(second), ..lease.group.clone() };
    lease.consented = Some(next);
    let mut out = Outbox::new();
    node.suspect(net.now, life(0), net.now, &mut out);
    net.events.clear();
    for &(by, vote) in answers {
        tell(&mut net, by, 1, Body::Answer { accused: life(0), vote, newer: Vec::new() });
    }
    net.events.iter().map(|e| e.2).collect()
}

#[test]
fn a_lease_is_closed_by_all_groups_that_may_condemn_or_by_none() {
    let (first, second) = ([2, 3, 4].map(life), [5, 6, 7].map(life));
    let closed = |by: &[u64]| by.iter().map(|&by| (life(by), Vote::Closed)).collect::<Vec<_>>();
    assert_eq!(verdict(&first, &second, &closed(&[2, 3, 4])), []);
    let both = closed(&[2, 3, 5, 6]);
    assert_eq!(verdict(&first, &second, &both), [RingEvent::Closed(id(0))]);
}

#[test]
fn a_later_life_votes_for_itself_alone() {
    let again = |number: u64| Life { inc: Incarnation::new(1), ..life(number) };
    let (first, second) = ([2, 3, 4].map(life), [2, 3, 4].map(again));
    let accept = |by: Life| (by, Vote::Accept);
    let later = [accept(again(2)), accept(again(3))];
    assert_eq!(verdict(&first, &second, &later), []);
    let both = [&later[..], &[accept(life(2)), accept(life(3))]].concat();
    assert_eq!(verdict(&first, &second, &both), [RingEvent::Condemned(life(0))]);
    // That it has no seat in the one group says nothing about the other.
    let fresh = (again(2), Vote::Reject(Reason::Fresh));
    let both = [&[fresh], &both[..]].concat();
    assert_eq!(verdict(&first, &second, &both), [RingEvent::Condemned(life(0))]);
}

#[test]
fn no_version_is_proposed_twice() {
    let mut net = Net::ring(hardened(2), &ids(8));
    net.crash(3);
    net.filter = Box::new(|_, _, _, message| !matches!(message.body, Body::Proposed { .. }));
    net.log.clear();
    net.run(net.now + Duration::from_millis(20_000));
    let mut proposed = Vec::new();
    for (_, from, to, message) in &net.log {
        if let Body::Propose { peer, next, .. } = &message.body {
            proposed.push((*from, *to, peer.id(), next.born, next.version.low));
        }
    }
    let all = proposed.len();
    proposed.sort_unstable();
    proposed.dedup();
    assert!(proposed.iter().any(|one| one.4 > 1), "some were proposed again");
    assert_eq!(proposed.len(), all);
}

#[test]
fn a_close_that_comes_late_is_none() {
    for (after, closed) in [(500, true), (501, false)] {
        let mut net = Net::ring(hardened(2), &ids(6));
        let node = net.nodes.get_mut(&0).unwrap();
        let group = node.lease_of(id(1)).unwrap().group().clone();
        let mut out = Outbox::new();
        node.close_or_leave(net.now, life(1), &mut out);
        net.events.clear();
        // Three of four: the third when it has slept.
        for (by, at) in [(2, 10), (3, 10), (4, after)] {
            net.now = ms(10_000 + at);
            let body = Body::CloseAnswer { peer: life(1), born: group.born, granted: true };
            tell(&mut net, life(by), 0, body);
        }
        let found = net.events.iter().any(|e| e.2 == RingEvent::Closed(id(1)));
        assert_eq!(found, closed, "after {after} ms");
    }
}
