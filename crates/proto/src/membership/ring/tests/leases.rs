//! Detection and its times.

use super::*;

/// A pair of two with a third that arbitrates nothing here: when P suspects Q, if Q crashes `after` the start of a
/// session of P.
fn suspected_after(after: u64) -> u64 {
    let mut net = Net::ring(published(3), &ids(12));
    let started = session_start(&net, 0, 1);
    net.run(started + Duration::from_millis(1_000 + after));
    net.crash(1);
    let crash = net.now;
    net.run(crash + Duration::from_millis(4_000));
    let suspects = |e: &&(Time, u64, RingEvent)| {
        e.1 == 0 && matches!(e.2, RingEvent::Suspected(accused) if accused.id() == id(1))
    };
    let (at, ..) = net.events.iter().find(suspects).expect("somebody is suspected");
    at.since(crash).as_micros() / 1_000
}

/// When the session of `p` on `q` began that is running now.
fn session_start(net: &Net, p: u64, q: u64) -> Time {
    let lease = net.nodes[&p].lease(id(q)).expect("a neighbour");
    lease.acked.expect("acknowledged long ago")
}

#[test]
fn a_crash_is_suspected_between_one_and_two_sessions_later_but_for_a_request_in_flight() {
    // (crash after the session's start, T_FD): 1500, 1010 and 1005 of V3.
    for (after, t_fd) in [(500, 1_500), (10, 1_990), (5, 995)] {
        assert_eq!(suspected_after(after), t_fd, "crash {after} ms into a session");
    }
}

#[test]
fn who_is_ignored_suspects_within_two_sessions() {
    // Nothing of 1 reaches 0 any more: 0 suspects first, and then ignores.
    let mut net = Net::ring(published(3), &ids(12));
    net.filter = Box::new(|from, to, _, message| {
        !((from, to) == (1, 0) && matches!(message.body, Body::Ack(_)))
    });
    net.run(ms(20_000));
    let at = |by: u64, of: u64| {
        let found = net.events.iter().find(|e| {
            e.1 == by && matches!(e.2, RingEvent::Suspected(accused) if accused.id() == id(of))
        });
        found.map(|e| e.0)
    };
    let (first, second) = (at(0, 1).unwrap(), at(1, 0).unwrap());
    let lag = second.since(first);
    assert!(lag <= Duration::from_millis(1_990), "{lag}");
    assert_eq!(net.active().len(), 11, "one of the two had to go");
    assert!(!net.active().contains(&1), "and it was the accused");
}

#[test]
fn the_time_line_of_a_crash() {
    for (decide, decided) in [(Decide::Wait, 500), (Decide::Early, 20)] {
        let mut net = Net::ring(published(3).with_decide(decide), &ids(12));
        let start = session_start(&net, 0, 1);
        net.run(start + Duration::from_millis(1_500));
        net.crash(1);
        let crash = net.now;
        net.run(crash + Duration::from_millis(7_000));
        let of = |wanted: fn(&RingEvent) -> bool| {
            let found = net.events.iter().find(|e| e.0 > crash && e.1 == 0 && wanted(&e.2));
            found.unwrap().0
        };
        let suspected = of(|e| matches!(e, RingEvent::Suspected(_)));
        let condemned = of(|e| matches!(e, RingEvent::Condemned(_)));
        assert_eq!(suspected.since(crash), Duration::from_millis(1_500));
        assert_eq!(condemned.since(suspected), Duration::from_millis(decided));
        // As early as another monitor's obituary arrives, and not later than its own burial.
        let buried = of(|e| matches!(e, RingEvent::Buried { .. }));
        assert!(buried.since(crash) <= Duration::from_millis(4_500), "Theorem 5");
        let first = net.events.iter().filter(|e| matches!(e.2, RingEvent::Suspected(_)));
        let first = first.map(|e| e.0).min().unwrap();
        assert!(buried.since(first) >= Duration::from_millis(2_500), "nobody is buried early");
        assert_eq!(net.active().len(), 11);
    }
}

#[test]
fn leases_cost_4k_messages_a_session() {
    for k in [2, 3] {
        let mut net = Net::ring(published(k), &ids(32));
        net.log.clear();
        let from = net.now;
        net.run(from + Duration::from_millis(10_000));
        let lease =
            |m: &&(Time, u64, u64, Message)| matches!(m.3.body, Body::Request(_) | Body::Ack(_));
        let sent = net.log.iter().filter(lease).count();
        assert_eq!(sent, 32 * 4 * k * 10, "k {k}");
        assert_eq!(net.log.len(), sent, "and nothing else");
    }
}

#[test]
fn who_wakes_from_a_long_sleep_leaves_and_takes_nobody_along() {
    let mut net = Net::ring(hardened(3), &ids(12));
    let sleeper = net.nodes.remove(&4).unwrap();
    net.run(ms(30_000));
    assert_eq!(net.active().len(), 11);
    net.nodes.insert(4, sleeper);
    net.input(4, Input::Timeout);
    net.run(ms(40_000));
    assert!(net.nodes[&4].is_out());
    assert_eq!(net.active().len(), 11);
}
