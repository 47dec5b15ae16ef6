use std::boxed::Box;

use proptest::prelude::*;

use super::{
    contract::{Step, any_step},
    group::{Group, nodes},
    *,
};
use crate::election::announce::several::{self, Several};

fn config(listen: Option<Duration>, wait: Suppression, leaders: u32) -> several::Config {
    several::Config::new(ms(1_000), listen, wait, leaders).unwrap()
}

fn group(waits: &[u64], leaders: u32) -> Group<Several> {
    let make = |me, wait| Several::new(me, config(Some(ms(3_000)), wait, leaders), Seed::new(1));
    Group::new(nodes(waits, make), Box::new(|_, _, _| true))
}

fn views(group: &Group<Several>) -> Vec<Vec<u64>> {
    let ids = |node: &Several| node.leaders().into_iter().map(NodeId::get).collect();
    group.nodes.iter().map(|(_, node)| ids(node)).collect()
}

#[test]
fn v17_the_two_best_lead_and_everybody_knows_both() {
    let mut group = group(&[100, 500, 900], 2);
    group.run(1_000);
    assert_eq!(group.sent, [(100, 1), (500, 2), (900, 3)]);
    assert_eq!(views(&group), [[2, 1], [2, 1], [3, 2]]);
    group.run(1_001);
    assert_eq!(views(&group), [[3, 2]; 3]);
    group.run(9_000);
    assert_eq!(group.sent_by(1), [100], "two better ones known: 1.1 is not announced");
    assert_eq!(group.sent_by(2).len(), 9);
    assert_eq!(group.sent_by(3).len(), 9);
    assert_eq!(views(&group), [[3, 2]; 3]);
    for (peer, node) in &group.nodes {
        let view = node.leadership();
        assert_eq!((view.leader, view.epoch), (Some(NodeId::new(3)), None), "{peer}");
        assert!(view.settled, "{peer}");
    }
}

#[test]
fn with_one_seat_it_is_the_single_election() {
    let waits = [450, 200, 700];
    let mut several = group(&waits, 1);
    several.run(5_000);
    let make =
        |me, wait| Announce::new(me, super::config(wait, Rules::Corrected), Seed::new(1), None);
    let mut single = Group::new(nodes(&waits, make), Box::new(|_, _, _| true));
    single.run(5_000);
    assert_eq!(several.sent, single.sent);
}

#[test]
fn more_seats_than_nodes_seats_everybody() {
    let mut group = group(&[100, 500, 900], 9);
    group.run(5_000);
    assert_eq!(views(&group), [[3, 2, 1]; 3]);
}

/// One machine by hand.
struct Hand(Several, OutboxOf<Several>);

impl Hand {
    fn new(id: u64, wait: Suppression, leaders: u32) -> Self {
        let node = Several::new(peer(id, 1), config(Some(ms(3_000)), wait, leaders), Seed::new(1));
        let mut hand = Self(node, Outbox::new());
        hand.input(0, Input::Start).unwrap();
        hand
    }

    fn input(&mut self, now: u64, input: InputOf<'_, Several>) -> Result<usize, Rejected> {
        self.0.handle(at(now), input, &mut self.1)?;
        Ok(core::iter::from_fn(|| self.1.pop()).count())
    }

    fn hears(&mut self, now: u64, from: u64, message: Message) -> Result<usize, Rejected> {
        let from = peer(from, 1);
        self.input(now, Input::Message { from, via: from.id, message: &message })
    }
}

#[test]
fn a_seat_left_by_silence_or_by_goodbye_is_taken_after_a_new_wait() {
    for goodbye in [false, true] {
        let mut node = Hand::new(5, Suppression::Fixed(ms(500)), 2);
        node.hears(100, 8, plain(1)).unwrap();
        node.hears(200, 9, plain(1)).unwrap();
        assert_eq!(node.input(500, Input::Timeout), Ok(0), "two better ones: not announced");
        assert_eq!(node.0.role(), several::Role::Listening);
        node.hears(1_100, 9, plain(2)).unwrap();
        let left = if goodbye { 2_000 } else { 3_100 };
        if goodbye {
            node.hears(left, 8, bye(2, 0)).unwrap();
        } else {
            assert_eq!(node.0.deadline(), Some((at(left), several::Timer::Listen)));
            node.input(left, Input::Timeout).unwrap();
        }
        assert_eq!(node.0.role(), several::Role::Suppressing { since: at(left) });
        assert_eq!(node.0.leaders(), [9, 5].map(NodeId::new));
        assert_eq!(node.input(left + 500, Input::Timeout), Ok(1));
        assert_eq!(node.0.role(), several::Role::Leading { since: at(left + 500) });
    }
}

#[test]
fn unsound_settings_and_inputs_are_refused() {
    let new =
        |announce, leaders| several::Config::new(ms(announce), None, Suppression::None, leaders);
    assert_eq!(new(10, 0), Err(several::ConfigError::NoLeaders { leaders: 0 }));
    let zero = ConfigError::AnnounceZero { announce: ms(0) };
    assert_eq!(new(0, 1), Err(several::ConfigError::Waits(zero)));
    let mut node = Hand::new(5, Suppression::None, 1);
    assert_eq!(node.input(0, Input::Start), Err(Rejected::StartedTwice));
    assert_eq!(node.hears(0, 5, plain(1)), Err(Rejected::Loopback { from: peer(5, 1) }));
    assert_eq!(node.input(1, Input::Leave), Ok(0));
    assert_eq!(node.hears(1, 8, plain(1)), Err(Rejected::NotRunning));
    assert_eq!((node.0.leaders(), node.0.deadline()), (vec![], None));
}

proptest! {
    #[test]
    fn no_order_of_inputs_breaks_the_contract(
        leaders in 1..4_u32, wait in 0..900_u64, steps in prop::collection::vec(any_step(), 0..120),
    ) {
        let mut node = Hand::new(5, Suppression::Fixed(ms(wait)), leaders);
        let mut now = 0;
        for (pause, step) in steps {
            now += pause;
            let before = node.0.clone();
            let outcome = match &step {
                Step::Hear(from, message) => {
                    node.input(now, Input::Message { from: *from, via: from.id, message })
                }
                Step::Wake => node.input(now, Input::Timeout),
                Step::Leave => node.input(now, Input::Leave),
            };
            if outcome.is_err() {
                prop_assert_eq!(&node.0, &before);
            }
            if matches!(step, Step::Wake) {
                prop_assert!(node.0.deadline().is_none_or(|(due, _)| due > at(now)));
            }
            prop_assert_eq!(node.0.leadership().leader, node.0.leaders().first().copied());
        }
    }
}
