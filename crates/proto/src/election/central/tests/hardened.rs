//! What the hardened core does besides: rules H, horizons, hysteresis, and frames that fit.

use std::{vec, vec::Vec};

use super::*;
use crate::{
    topology::map::Entry,
    wire::{MAX_DATAGRAM, datagram_len},
};

fn at_once() -> Config {
    hardened(LinkState::at_once(1.0))
}

fn entries(messages: &[Message]) -> Vec<u64> {
    let ids = |message: &Message| match message {
        Message::Entries(entries) => entries.iter().map(|entry| entry.id.get()).collect(),
        _ => Vec::new(),
    };
    messages.iter().flat_map(ids).collect()
}

fn told(of: u64, clock: u64, hears: &[u64]) -> Message {
    let view = View::new(id(of), clock, hears.iter().copied().map(id));
    Message::Entries([Entry { id: id(of), view }].into())
}

/// Wakes a node until something is due for this reason, and gives what it says then.
fn wait_for(node: &mut Node, timer: Timer) -> (Time, Vec<Message>) {
    for _ in 0..1_000 {
        let (now, why) = node.0.deadline().unwrap();
        let said = node.input(now, Input::Timeout);
        if why == timer {
            return (now, said);
        }
    }
    panic!("{timer:?} never comes")
}

#[test]
fn h2_two_contents_under_one_clock_have_a_larger_one() {
    let mut node = Node::new(1, at_once());
    node.hear(5, &told(7, 3, &[5, 6]));
    node.hear(5, &told(7, 3, &[5]));
    assert_eq!(node.view(7), (3, vec![5, 7]), "5, 7 is above 5, 6, 7");
    node.hear(5, &told(7, 3, &[5, 6]));
    assert_eq!(node.view(7), (3, vec![5, 7]));
}

#[test]
fn h1_nobody_else_changes_an_entry() {
    let known: &[Told<'_>] = &[(1, 5, &[2, 3]), (2, 5, &[1]), (3, 5, &[1])];
    let mut one = Node::knowing(1, at_once(), known);
    let said = one.down(3);
    assert_eq!(entries(&said), [1]);
    assert_eq!(one.view(3), (5, vec![1, 3]), "3 will say so itself");
    assert_eq!(one.0.answer().unwrap().members, 2, "and until then one end is enough (H8)");
}

#[test]
fn h4_what_others_remember_of_us_is_outbid_and_never_believed() {
    let mut one = Node::new(1, at_once());
    one.up(2);
    let said = one.hear(2, &told(1, 17, &[2, 3]));
    assert_eq!(one.view(1), (18, vec![1, 2]));
    assert_eq!(entries(&said), [1]);
    assert_eq!(one.hear(2, &told(1, u64::MAX, &[9])), [], "nothing is above that");
    assert_eq!(one.view(1), (18, vec![1, 2]));
    let digest = |clock| {
        let marks = [Mark { id: id(1), clock, hash: 0 }, Mark { id: id(2), clock: 1, hash: 0 }];
        Message::Digest { first: id(0), last: id(9), marks: marks.into() }
    };
    let said = one.hear(2, &digest(40));
    assert_eq!((one.view(1).0, entries(&said)), (41, vec![1]));
}

#[test]
fn boots_outbid_a_past_life_at_once() {
    let config = Config::hardened(Detection::Given).unwrap();
    let life = |boot| Central::new(Peer::new(id(1), Boot::new(boot)), config, Seed::new(1));
    let clock = |node: &Central| node.map().unwrap().own().clock();
    for boot in [1, 2, 1_700_000_000_000] {
        assert!(clock(&life(boot + 1)) > clock(&life(boot)) + 1_000_000, "{boot}");
    }
    assert!(clock(&life(u64::MAX)) < u64::MAX / 2, "there is room for changes");
}

#[test]
fn h6_a_digest_is_answered_with_what_its_sender_lacks() {
    let known: &[Told<'_>] =
        &[(1, 5, &[2, 3]), (2, 5, &[1, 4]), (3, 5, &[1]), (4, 5, &[2]), (8, 5, &[9]), (9, 5, &[8])];
    let mut one = Node::knowing(1, at_once(), known);
    let two = Node::knowing(2, at_once(), known);
    let digest = |node: &Node| {
        let (_, said) = wait_for(&mut node.clone(), Timer::Digest);
        let digest = said.iter().find(|it| matches!(it, Message::Digest { .. })).unwrap();
        digest.clone()
    };
    let Message::Digest { marks, .. } = digest(&two) else { unreachable!() };
    let listed: Vec<u64> = marks.iter().map(|mark| mark.id.get()).collect();
    assert_eq!(listed, [1, 2, 3, 4], "only what is reachable: 8 and 9 are not");
    assert_eq!(one.hear(2, &digest(&two)), [], "all is the same");
    // Two knows less of 3, more of 4, and nothing of 8 and 9; one says what it has more.
    let lacking: &[Told<'_>] = &[(1, 5, &[2, 3]), (2, 5, &[1, 4]), (3, 4, &[1]), (4, 6, &[2])];
    let lacking = Node::knowing(2, at_once(), lacking);
    let said = one.hear(2, &digest(&lacking));
    assert_eq!(entries(&said), [3]);
    // To somebody who has seen nobody: all that is reachable.
    let mut fresh = Node::new(2, at_once());
    fresh.up(1);
    assert_eq!(entries(&one.hear(2, &digest(&fresh))), [1, 2, 3, 4]);
}

#[test]
fn h7_a_new_neighbour_gets_a_digest() {
    let mut one = Node::new(1, at_once());
    let said = one.up(2);
    assert!(matches!(said[..], [Message::Entries(_), Message::Digest { .. }]));
}

#[test]
fn h8_a_one_way_link_is_no_link() {
    let mut one = Node::new(1, at_once());
    one.up(2);
    one.hear(2, &told(2, 4, &[3]));
    assert_eq!((one.leader(), one.0.answer().unwrap().members), (1, 1), "2 does not hear us");
    one.hear(2, &told(2, 5, &[1, 3]));
    assert_eq!((one.leader(), one.0.answer().unwrap().members), (2, 3));
}

#[test]
fn h9_what_nobody_leads_to_is_forgotten_after_a_while() {
    let known: &[Told<'_>] = &[(1, 5, &[2]), (2, 5, &[1, 3]), (3, 5, &[2])];
    let mut one = Node::knowing(1, at_once(), known);
    one.down(2);
    assert_eq!(one.map().len(), 3);
    let (now, _) = wait_for(&mut one, Timer::Sweep);
    assert_eq!((now, one.map().len()), (at(60_000), 1));
    let mut one = Node::knowing(1, at_once(), known);
    one.down(2);
    wait_for(&mut one, Timer::Digest);
    one.up(2);
    assert_eq!(one.0.answer().unwrap().members, 3, "back before it was forgotten");
    assert!((0..20).all(|_| wait_for(&mut one, Timer::Digest).0 > at(0)));
    assert_eq!(one.map().len(), 3);
}

#[test]
fn digests_are_rare_while_nothing_happens_and_soon_when_something_does() {
    let known: &[Told<'_>] = &[(1, 5, &[2]), (2, 5, &[1])];
    let mut one = Node::knowing(1, at_once(), known);
    let mut gaps = Vec::new();
    let mut last = Time::ZERO;
    for _ in 0..9 {
        let (now, said) = wait_for(&mut one, Timer::Digest);
        assert_eq!(said.len(), 1);
        gaps.push(now.since(last).as_secs_f64());
        last = now;
    }
    let expected = [1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0, 16.0, 16.0];
    for (gap, expected) in gaps.iter().zip(expected) {
        assert!((0.75 * expected..=1.25 * expected).contains(gap), "{gaps:?}");
    }
    one.hear_at(last, 2, &told(2, 6, &[1, 7]));
    let (now, _) = wait_for(&mut one, Timer::Digest);
    assert!(now.since(last) <= millis(1_250));
}

#[test]
fn e14_what_a_twin_should_have_said_is_said_with_the_next_digest_unless_it_was() {
    let known: &[Told<'_>] =
        &[(1, 3, &[2, 3, 4]), (2, 3, &[1, 3, 4]), (3, 2, &[1, 2]), (4, 2, &[1, 2])];
    let mut two = Node::knowing(2, at_once(), known);
    assert_eq!(two.hear(3, &told(3, 3, &[1, 2, 5])), [], "1 will say it");
    assert!(!two.0.leadership().settled);
    let mut shown = two.clone();
    let (_, said) = wait_for(&mut two, Timer::Digest);
    assert_eq!(entries(&said), [3]);
    // In the other world, 1 shows that it has it.
    let mut one = Node::knowing(1, at_once(), known);
    one.hear(3, &told(3, 3, &[1, 2, 5]));
    let (_, said) = wait_for(&mut one, Timer::Digest);
    shown.hear_all(1, &said);
    let (_, said) = wait_for(&mut shown, Timer::Digest);
    assert_eq!(entries(&said), []);
}

#[test]
fn everything_sent_fits_a_datagram_however_large_the_map() {
    let config = Config::hardened(Detection::Given).unwrap();
    let mut node = Node::new(1, config);
    let name = |node: u64| if node == 0 { 1 } else { crate::rng::mix(node) };
    node.up(name(1));
    let count = 300_u64;
    for of in 1..count {
        let hears: Vec<u64> = [of - 1, of + 1, of.saturating_sub(7), of + 7].map(name).into();
        node.hear(name(1), &told(name(of), 1 << 40, &hears));
    }
    let nobody = Message::Digest { first: id(0), last: id(u64::MAX), marks: [].into() };
    let said = node.hear(name(1), &nobody);
    assert!(entries(&said).len() >= count as usize, "{}", entries(&said).len());
    let sizes: Vec<usize> = said.iter().map(datagram_len).collect();
    assert!(sizes.iter().all(|&size| size <= MAX_DATAGRAM), "{sizes:?}");
    let mean = sizes.iter().sum::<usize>() / sizes.len();
    assert!(mean > MAX_DATAGRAM * 6 / 10, "frames are filled: {sizes:?}");
    let (_, said) = wait_for(&mut node, Timer::Digest);
    let mut next = Some(0);
    for message in &said {
        assert!(datagram_len(message) <= MAX_DATAGRAM);
        let Message::Digest { first, last, .. } = message else { panic!("{message:?}") };
        assert_eq!(Some(first.get()), next, "parts leave no gap");
        next = last.get().checked_add(1);
    }
    assert!(said.len() > 5 && next.is_none());
}

#[test]
fn a_horizon_keeps_what_is_near() {
    let settings = LinkState { horizon: Some(2), ..LinkState::at_once(1.0) };
    let known: &[Told<'_>] = &[(1, 5, &[2]), (2, 5, &[1, 3]), (3, 5, &[2, 4])];
    let mut one = Node::knowing(1, hardened(settings), known);
    let said = one.hear(2, &told(4, 1, &[3, 5]));
    assert_eq!((one.map().len(), said), (3, vec![]), "4 is three hops away");
    let said = one.hear(2, &told(3, 6, &[2, 4]));
    assert_eq!(said, [], "3 is two away: nobody behind us wants it");
    let said = one.hear(2, &told(2, 6, &[1, 3, 7]));
    assert_eq!(entries(&said), [2]);
}

#[test]
fn hysteresis_keeps_a_leader_that_is_nearly_as_good_for_a_while() {
    let slow = Hysteresis { percent: 20, dwell: millis(5_000) };
    let known: &[Told<'_>] = &[(1, 5, &[2]), (2, 5, &[1, 3]), (3, 5, &[2])];
    let config = at_once().with_hysteresis(slow).unwrap();
    let mut one = Node::knowing(1, config, known);
    assert_eq!(one.leader(), 2);
    // 1-2-3-4: 3 is as good as 2, and has the higher identity.
    one.hear_at(at(100), 2, &told(3, 6, &[2, 4]));
    one.hear_at(at(100), 2, &told(4, 1, &[3]));
    assert_eq!((one.0.answer().unwrap().leader, one.leader()), (id(3), 2), "not 20 % better");
    assert!(!one.0.leadership().settled);
    let (now, _) = wait_for(&mut one, Timer::Dwell);
    assert_eq!((now, one.leader()), (at(5_100), 3), "after a while it need only be better");
    // 1-2-3-4-5-6-7: sums 21, 16, 13, 12. 4 beats 3 by less than a fifth; 5 leaves would not.
    let mut one = Node::knowing(1, config, known);
    for (of, hears) in [(3, [2, 4, 5, 6]), (4, [3; 4]), (5, [3; 4]), (6, [3; 4])] {
        one.hear_at(at(100), 2, &told(of, 6, &hears));
    }
    assert_eq!(one.leader(), 3, "much better: at once");
}

#[test]
fn whoever_leaves_says_so() {
    let known: &[Told<'_>] = &[(1, 5, &[2]), (2, 5, &[1])];
    let mut one = Node::knowing(1, at_once(), known);
    let mut two = Node::knowing(2, at_once(), known);
    let said = one.input(at(9), Input::Leave);
    two.hear_all(1, &said);
    assert_eq!((two.view(1), two.leader()), ((6, vec![1]), 2));
    assert_eq!(two.0.answer().unwrap().members, 1, "before its beacons are missed");
}

#[test]
fn the_fence_tells_two_maps_apart() {
    let known: &[Told<'_>] = &[(1, 5, &[2]), (2, 5, &[1])];
    let one = Node::knowing(1, at_once(), known);
    let mut two = Node::knowing(2, at_once(), known);
    assert_eq!(one.0.fence(), two.0.fence());
    two.up(9);
    assert_ne!(one.0.fence(), two.0.fence());
}

#[test]
fn numbered_claims_do_not_keep_a_dead_leader_alive() {
    let config = |numbered| {
        let (reading, period, timeout) = (Reading::Relay, millis(250), millis(300));
        Config::new(Profile::Flooding { reading, period, timeout, numbered }, Detection::Given)
            .unwrap()
    };
    // Two followers of 9, which is gone, tell each other of it.
    let follows_the_dead = |numbered| {
        let mut nodes = [1, 2].map(|me| Node::new(me, config(numbered)));
        for node in &mut nodes {
            let sequence = if numbered { 5 } else { 0 };
            node.hear(9, &Message::Claim { leader: id(9), value: 4, sequence });
        }
        loop {
            let next = nodes.each_ref().map(|node| node.0.deadline().unwrap().0);
            let due = usize::from(next[1] < next[0]);
            if next[due] > at(20_000) {
                return nodes.each_ref().map(Node::leader) == [9, 9];
            }
            let said = nodes[due].input(next[due], Input::Timeout);
            for message in said {
                nodes[1 - due].hear_at(next[due], due as u64 + 1, &message);
            }
        }
    };
    assert!(follows_the_dead(false) && !follows_the_dead(true));
}

#[test]
fn clocks_at_their_end_are_survived() {
    for config in [topology_aware(), cel(1.0), at_once(), both()[0]] {
        let mut node = Node::new(1, config);
        node.up(2);
        let view = View::new(id(1), u64::MAX, [id(9)]);
        let entries = [Entry { id: id(1), view }];
        let message = match config.profile() {
            Profile::LinkState(_) => Message::Entries(entries.into()),
            _ => Message::Known(entries.to_vec().into()),
        };
        node.hear(2, &message);
        node.down(2);
        node.up(3);
        assert!(node.leader() <= 9);
    }
}
