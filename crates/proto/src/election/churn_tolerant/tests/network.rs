//! Elections that know their network: NP1 to NP5, MI6.

use super::*;

fn base(multicast: Multicast) -> Config {
    config(Variant::Base, Form::Hardened, 2, 0).with_multicast(multicast).unwrap()
}

/// Gossip that passes nothing on and hardly ever repeats itself.
const QUIET: Multicast = Multicast::Gossip { spread: 0, refresh: Duration::from_secs(600) };

#[test]
fn retries_follow_the_round_trips() {
    let timeout = ms(500);
    let mut pace = Pace::default();
    assert_eq!(pace.retry(timeout), timeout, "nothing was measured");
    pace.asked(40);
    pace.answered(None);
    assert_eq!(pace.retry(timeout), timeout, "of two questions nobody knows which was answered");
    (0..20).for_each(|_| pace.answered(Some(ms(20))));
    assert_eq!(pace.retry(timeout), ms(250), "no sooner than half a timeout");
    (0..40).for_each(|_| pace.answered(Some(ms(900))));
    assert!((ms(900)..ms(1_100)).contains(&pace.retry(timeout)), "{}", pace.retry(timeout));
    (0..40).for_each(|_| pace.answered(Some(ms(60_000))));
    assert_eq!(pace.retry(timeout), ms(4_000), "no later than eight timeouts");
}

#[test]
fn silence_means_the_less_the_more_is_lost() {
    let tries = |asked: usize, answered: u32| {
        let mut pace = Pace::default();
        pace.asked(asked);
        (0..answered).for_each(|_| pace.answered(None));
        pace.tries()
    };
    assert_eq!(tries(0, 0), 1);
    assert_eq!(tries(20, 20), 1);
    assert_eq!(tries(46, 24), 6, "22 of 48 to the sixth is one in 108");
    assert_eq!(tries(46, 10), 15);
    assert_eq!(tries(60, 0), 24, "however much is lost");
    assert_eq!(tries(100_000, 0), 24, "and however many were asked");
}

/// One multicast, which one node misses: it asks instead of electing anew.
#[test]
fn whoever_missed_the_outcome_asks_for_it() {
    let mut world = World::complete(base(Multicast::Substrate), 1, 6);
    world.elect(5);
    let query = Query { term: 1, candidates: 1, ..Query::default() };
    world.flying.push(Letter { from: 5, to: 3, message: Message::Query(query) });
    while !world.flying.is_empty() {
        match &world.flying[0] {
            Letter { to: 3, message: Message::Leader(_), .. } => drop(world.flying.remove(0)),
            _ => world.deliver(0),
        }
    }
    assert_eq!(world.node(3).leadership().leader, None);
    world.pass(ms(20_000));
    assert!(world.agreed(0), "{:?}", world.leaders());
    let terms = world.live().map(|node| node.leadership().epoch.unwrap().counter());
    assert!(terms.into_iter().all(|term| term == 1), "there was one election");
}

/// No answer reaches the initiator, and one of those that wait is never asked twice unless it asks.
#[test]
fn an_initiator_that_says_it_is_still_at_it_is_left_alone() {
    let mut world = World::complete(base(QUIET), 1, 7);
    world.elect(6);
    let mut inquired = true;
    while world.now < Time::ZERO + ms(15_000) {
        while !world.flying.is_empty() {
            let lost = match &world.flying[0] {
                Letter { message: Message::Response(_), .. } => true,
                Letter { to: 1, message: Message::Query(_), .. } => {
                    !std::mem::replace(&mut inquired, false)
                }
                Letter { from: 1, to: 6, message: Message::LeaderAck { .. } } => {
                    inquired = true;
                    false
                }
                _ => false,
            };
            match lost {
                true => drop(world.flying.remove(0)),
                false => world.deliver(0),
            }
        }
        world.wake();
        let initiators: Vec<_> = (0..7).filter(|&node| world.node(node).initiates()).collect();
        assert_eq!(initiators, [6], "at {}", world.now);
    }
    // It dies: somebody takes over.
    world.crash(6);
    world.flying.clear();
    (0..6).for_each(|node| world.fails(node, 6));
    world.pass(ms(15_000));
    assert!(world.agreed(0), "{:?}", world.leaders());
}

/// The first notice is lost.
#[test]
fn a_tentative_leader_that_is_not_heard_is_notified_again() {
    for variant in [Variant::Optimistic, Variant::Hybrid] {
        let mut world = World::complete(config(variant, Form::Hardened, 2, 0), 1, 6);
        world.elect(5);
        assert_eq!(world.notified, [0]);
        world.flying.clear();
        world.wake();
        assert_eq!(world.notified, [0, 0], "{variant:?}");
        world.pass(ms(400));
        assert!(world.agreed(0), "{variant:?}: {:?}", world.leaders());
    }
}

/// Tentative or confirmed, what is lost is said again.
#[test]
fn a_gossiped_leader_is_repeated_until_it_is_acknowledged() {
    let mut world = World::complete(base(QUIET), 1, 6);
    world.elect(5);
    while !world.flying.is_empty() {
        match &world.flying[0] {
            Letter { to: 3, message: Message::Leader(_), .. } => drop(world.flying.remove(0)),
            _ => world.deliver(0),
        }
    }
    assert_eq!(world.node(3).leadership().leader, None);
    world.pass(ms(600));
    assert!(world.agreed(0), "{:?}", world.leaders());
    let said = world.unicasts;
    world.pass(ms(60_000));
    assert_eq!(world.unicasts, said, "all have acknowledged");
}

/// A late question of an election that is over names the leader dead; and whoever is named dead says that it is not.
#[test]
fn the_living_are_not_buried_for_ever() {
    let mut world = World::complete(base(QUIET), 1, 4);
    world.elect(3);
    world.pass(ms(1_000));
    assert!(world.agreed(0));
    let dead = vec![Life { peer: peer(0), incarnation: Incarnation::new(0) }];
    let late = Query { term: 1, candidates: 1, dead: dead.clone(), ..Query::default() };
    world.flying.push(Letter { from: 3, to: 1, message: Message::Query(late) });
    world.settle();
    assert!(world.node(1).dead.is_empty(), "that election is over");
    // One that was taken for dead in the middle of one.
    let query = Query { term: 9, candidates: 1, dead, ..Query::default() };
    world.flying.push(Letter { from: 3, to: 1, message: Message::Query(query) });
    world.settle();
    assert_eq!(world.node(1).dead.len(), 1);
    world.elect(1);
    world.pass(ms(3_000));
    assert!(world.agreed(0), "{:?}", world.leaders());
}

/// It remembers its last term, and nobody has noticed yet that it is back.
#[test]
fn whoever_comes_back_asks_before_it_elects() {
    for variant in [Variant::Base, Variant::Optimistic, Variant::Preferred, Variant::Hybrid] {
        let config = config(variant, Form::Hardened, 2, 0).with_multicast(QUIET).unwrap();
        let config = config.with_grace(Some(ms(4_000)));
        let mut world = World::complete(config, 1, 5);
        world.pass(ms(10_000));
        assert!(world.agreed(0));
        let before = world.node(0).leadership().epoch;
        let durable = Durable { known: before, vouched: before };
        let back = Peer::new(id(3), Boot::new(1));
        let mut node = ChurnTolerant::new(back, config, Seed::new(7), Some(durable));
        node.handle(world.now, Input::Start, &mut Outbox::new()).unwrap();
        world.nodes[3] = Some(node);
        (0..5).for_each(|other| world.feed(3, Feed::Up(Member::new(peer(other)))));
        world.pass(ms(10_000));
        assert!(world.agreed(0), "{variant:?}: {:?}", world.leaders());
        assert_eq!(world.node(3).leadership().epoch, before, "{variant:?}");
    }
}

/// Nobody is left out by chance.
#[test]
fn refreshes_reach_everybody_in_turn() {
    let gossip = Multicast::Gossip { spread: 0, refresh: ms(1_000) };
    let mut world = World::complete(base(gossip), 1, 9);
    world.elect(5);
    world.pass(ms(900));
    let mut told = std::collections::BTreeSet::new();
    while told.len() < 8 {
        assert!(world.now < Time::ZERO + ms(9_900), "in eight refreshes: {told:?}");
        world.wake();
        let refreshes = world.flying.iter().filter(|letter| letter.from == 7);
        told.extend(refreshes.map(|letter| letter.to));
        world.settle();
    }
}
