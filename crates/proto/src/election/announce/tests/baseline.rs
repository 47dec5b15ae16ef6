use std::boxed::Box;

use proptest::prelude::*;

use super::{
    group::{Arrives, Group, nodes},
    *,
};
use crate::{
    election::announce::baseline::{
        Al, AlConfig, Composition, Data, Sup, SupAl, SupAlConfig, SupConfig,
    },
    wire::{Reader, Wire},
};

fn all() -> Arrives {
    Box::new(|_, _, _| true)
}

fn composed(waits: &[u64], composition: Composition, arrives: Arrives) -> Group<SupAl> {
    let make = |me, wait| {
        let config = SupAlConfig::new(ms(1_000), Some(ms(3_000)), wait, composition).unwrap();
        SupAl::new(me, config, Seed::new(1))
    };
    Group::new(nodes(waits, make), arrives)
}

fn announcers(group: &Group<SupAl>) -> usize {
    group.nodes.iter().filter(|(_, node)| node.announces()).count()
}

#[test]
fn whoever_wakes_first_suppresses_those_that_hear_it_in_time() {
    let make = |me, wait| Sup::new(me, SupConfig::new(wait).unwrap(), Seed::new(1));
    let mut group = Group::new(nodes(&[200, 250, 301, 900], make), all());
    group.run(200);
    assert_eq!(group.leader(1), None, "nobody has spoken");
    group.run(9_000);
    assert_eq!(group.sent, [(200, 1), (250, 2)], "once each, and no more");
    assert_eq!([1, 2, 3, 4].map(|id| group.leader(id)), [Some(1), Some(2), Some(1), Some(1)]);
    assert!(group.nodes.iter().all(|(_, node)| node.deadline().is_none()));
}

#[test]
fn everybody_announces_for_ever_and_the_largest_heard_leads() {
    let config = AlConfig::new(ms(1_000), Some(ms(3_000))).unwrap();
    // Node 3 falls silent, or rather nobody hears its later announcements.
    let arrives: Arrives = Box::new(|from, _, nth| from != 3 || nth <= 2);
    let mut group = Group::new(nodes(&[0; 3], |me, _| Al::new(me, config)), arrives);
    group.run(4_000);
    assert_eq!(group.sent.len(), 12);
    assert_eq!([1, 2, 3].map(|id| group.leader(id)), [Some(3); 3]);
    group.run(4_101);
    assert_eq!([1, 2, 3].map(|id| group.leader(id)), [Some(2), Some(2), Some(3)]);
    let heard: Vec<_> = group.nodes[0].1.heard().collect();
    assert_eq!(heard, [NodeId::new(2)]);
}

#[test]
fn v13_deferring_to_whoever_is_heard_can_go_round_in_a_ring() {
    // A loses C, B loses A, C loses B.
    let ring: Arrives =
        Box::new(|from, to, nth| nth > 1 || !matches!((from, to), (3, 1) | (1, 2) | (2, 3)));
    let mut group = composed(&[500, 530, 560], Composition::Defer, ring);
    group.run(661);
    assert_eq!(group.sent, [(500, 1), (530, 2), (560, 3)]);
    assert_eq!([1, 2, 3].map(|id| group.leader(id)), [Some(2), Some(3), Some(1)]);
    assert_eq!(announcers(&group), 0);
    group.run(3_600);
    assert_eq!(group.sent.len(), 3, "silence until the listen timeout");
    group.run(4_200);
    assert!(group.sent.len() > 3, "and then all over again");
}

#[test]
fn v14_two_that_wake_within_one_delay_defer_to_each_other_without_any_loss() {
    for (composition, left) in [(Composition::Defer, 0), (Composition::Persist, 2)] {
        let mut group = composed(&[500, 550], composition, all());
        group.run(700);
        assert_eq!(group.sent, [(500, 1), (550, 2)], "{composition:?}");
        assert_eq!(announcers(&group), left, "{composition:?}");
        group.run(3_500);
        let each = if left == 0 { 1 } else { 3 };
        assert_eq!(group.sent.len(), 2 * each, "{composition:?}");
    }
}

#[test]
fn followers_of_a_composition_stay_while_they_hear_their_own_leader() {
    let mut group = composed(&[100, 500, 900], Composition::Defer, all());
    group.run(20_000);
    assert_eq!([1, 2, 3].map(|id| group.leader(id)), [Some(1); 3]);
    assert_eq!(group.sent.len(), 20);

    let mut group = composed(&[500, 550, 900], Composition::Persist, all());
    group.run(20_000);
    let leaders = [1, 2, 3].map(|id| group.leader(id));
    assert_eq!(leaders, [Some(1), Some(2), Some(1)], "the first heard, though both announce");
}

#[test]
fn unsound_settings_are_refused() {
    let (zero, bad) = (ms(0), Suppression::Exponential { longest: ms(1), lambda: 0.0 });
    let announce = ConfigError::AnnounceZero { announce: zero };
    let lambda = ConfigError::BadLambda { lambda: 0.0 };
    assert_eq!(AlConfig::new(zero, None), Err(announce));
    assert_eq!(SupConfig::new(bad), Err(lambda));
    let new = |announce, wait| SupAlConfig::new(announce, None, wait, Composition::Defer);
    assert_eq!(new(zero, Suppression::None), Err(announce));
    assert_eq!(new(ms(1), bad), Err(lambda));
}

/// Starting, hearing oneself, leaving: the same for all three.
fn obeys_the_contract<M: Machine<Message = Data> + Election>(mut node: M) {
    let mut out = Outbox::new();
    let message = Data { sequence: 1 };
    let hear =
        |from| Input::Message { from: peer(from, 1), via: NodeId::new(from), message: &message };
    assert_eq!(node.handle(at(0), hear(8), &mut out), Err(Rejected::NotRunning));
    assert_eq!(node.leadership().why, Why::NotRunning);
    assert_eq!(node.handle(at(0), Input::Start, &mut out), Ok(()));
    assert_eq!(node.handle(at(0), Input::Start, &mut out), Err(Rejected::StartedTwice));
    let loopback = Err(Rejected::Loopback { from: peer(5, 1) });
    assert_eq!(node.handle(at(0), hear(5), &mut out), loopback);
    for now in 0..50 {
        assert_eq!(node.handle(at(now * 300), hear(now % 5), &mut out), Ok(()));
        assert_eq!(node.handle(at(now * 300), Input::Timeout, &mut out), Ok(()));
        assert!(node.deadline().is_none_or(|(due, _)| due > at(now * 300)));
        assert_eq!(node.leadership().epoch, None);
    }
    assert_eq!(node.handle(at(99_000), Input::Leave, &mut out), Ok(()));
    assert!(node.deadline().is_none());
    assert_eq!(node.leadership().leader, None);
}

#[test]
fn the_baselines_obey_the_contract() {
    let (me, seed) = (peer(5, 1), Seed::new(1));
    for wait in [Suppression::None, Suppression::Uniform(ms(700))] {
        obeys_the_contract(Sup::new(me, SupConfig::new(wait).unwrap(), seed));
        for composition in [Composition::Defer, Composition::Persist] {
            for listen in [None, Some(ms(1_000))] {
                let config = SupAlConfig::new(ms(1_000), listen, wait, composition).unwrap();
                obeys_the_contract(SupAl::new(me, config, seed));
            }
        }
    }
    for listen in [None, Some(ms(1_000))] {
        obeys_the_contract(Al::new(me, AlConfig::new(ms(1_000), listen).unwrap()));
    }
}

proptest! {
    #[test]
    fn data_survives_the_wire(sequence: u64) {
        let mut bytes = vec![];
        Data { sequence }.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), Data { sequence }.encoded_len());
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Data::decode(&mut reader), Ok(Data { sequence }));
        prop_assert_eq!(reader.finish(), Ok(()));
    }
}
