//! Whatever arrives in whatever order: nothing breaks, nothing grows, and everything survives the wire.

use proptest::{prelude::*, strategy::Strategy};

use super::*;
use crate::wire::{MAX_DATAGRAM, Reader, SEAL_LEN, Wire};

fn any_peer() -> impl Strategy<Value = Peer> {
    (prop_oneof![6 => 0..6_u64, 1 => any::<u64>()], prop_oneof![4 => 0..3_u64, 1 => any::<u64>()])
        .prop_map(|(id, boot)| Peer::new(NodeId::new(id), Boot::new(boot)))
}

fn any_life() -> impl Strategy<Value = Life> {
    let incarnation = prop_oneof![6 => 0..4_u32, 1 => any::<u32>()];
    (any_peer(), incarnation)
        .prop_map(|(peer, incarnation)| Life { peer, incarnation: Incarnation::new(incarnation) })
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    let attribute = prop_oneof![6 => 0..4_u32, 1 => any::<u32>()];
    (any_life(), attribute).prop_map(|(Life { peer, incarnation }, attribute)| Candidate {
        peer,
        incarnation,
        attribute,
    })
}

fn any_epoch() -> impl Strategy<Value = Epoch> {
    let counter = prop_oneof![12 => 0..5_u64, 1 => any::<u64>()];
    let sequence = prop_oneof![8 => 0..3_u32, 1 => Just(u32::MAX), 1 => any::<u32>()];
    (counter, any_peer(), sequence)
        .prop_map(|(counter, minter, sequence)| Epoch::nth(counter, minter, sequence))
}

fn any_message() -> impl Strategy<Value = Message> {
    let term = || prop_oneof![8 => 0..4_u64, 1 => any::<u64>()];
    let attempt = || prop_oneof![8 => 0..2_u32, 1 => any::<u32>()];
    let size = || prop_oneof![8 => 0..4_u16, 1 => any::<u16>()];
    let query = (term(), attempt(), size(), size(), prop::collection::vec(any_life(), 0..4));
    let query = query.prop_map(|(term, attempt, candidates, excluded, dead)| {
        Message::Query(Query { term, attempt, candidates, excluded, dead })
    });
    let named = prop::collection::vec(any_candidate(), 0..4);
    let unhealthy = prop::collection::vec((any_peer(), 0..9_u32), 0..4);
    let response = (term(), attempt(), prop::option::of(any_epoch()), named, unhealthy);
    let response = response.prop_map(|(term, attempt, heard, candidates, excluded)| {
        let excluded = excluded.into_iter().map(|(peer, times)| (peer.id, times)).collect();
        Message::Response(Response { term, attempt, heard, candidates, excluded })
    });
    prop_oneof![
        query,
        response,
        (any_epoch(), any::<[bool; 2]>(), size()).prop_map(
            |(epoch, [confirmed, appointed], churn)| {
                Message::NotifyLeader { epoch, confirmed, appointed, churn }
            }
        ),
        (any_epoch(), any_candidate(), any::<[bool; 2]>(), size()).prop_map(
            |(epoch, leader, [confirmed, appointed], churn)| {
                Message::Leader(Claim { epoch, leader, confirmed, appointed, churn })
            }
        ),
        (any_epoch(), any::<bool>())
            .prop_map(|(epoch, confirmed)| Message::LeaderAck { epoch, confirmed }),
        (any_epoch(), any_candidate()).prop_map(
            |(epoch, Candidate { incarnation, attribute, .. })| {
                Message::Object { epoch, incarnation, attribute }
            }
        ),
    ]
}

fn any_config() -> impl Strategy<Value = Config> {
    let variants = [Variant::Base, Variant::Optimistic, Variant::Preferred, Variant::Hybrid];
    let multicast = prop::sample::select(vec![
        Multicast::Substrate,
        Multicast::Oracle,
        Multicast::OwnList,
        Multicast::Gossip { spread: 2, refresh: ms(700) },
    ]);
    let variant = prop::sample::select(variants.to_vec());
    (variant, multicast, any::<[bool; 5]>(), 0..5_u16).prop_map(
        |(variant, multicast, [published, polled, own, attribute, sums], churn)| {
            let form = if published { Form::AsPublished } else { Form::Hardened };
            let mut config = Config::new(variant, form)
                .with_bounds(churn, 1)
                .unwrap()
                .with_ask_self(own)
                .with_decision(if polled { Decision::Polled } else { Decision::Event });
            if let Ok(reached) = config.with_multicast(multicast) {
                config = reached;
            }
            if attribute {
                config = config.with_criterion(Criterion::Attribute, 1).unwrap();
            }
            if let Health::Exclude { candidates, excluded, threshold, .. } = config.health
                && sums
            {
                let rule = ExcludeRule::TopOfSum;
                let health = Health::Exclude { candidates, excluded, threshold, rule };
                config = config.with_health(health).unwrap();
            }
            config
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Hear(Peer, Message),
    /// An answer to the very question asked last, if one was.
    Answer(Vec<Candidate>, Vec<(NodeId, u32)>),
    Wake,
    Feed(Feed),
    Command(Command),
    Leave,
}

fn any_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        2 => Just(Command::Elect),
        1 => Just(Command::Resign),
        1 => Just(Command::Void),
        1 => any_peer().prop_map(|peer| Command::Transfer(peer.id)),
    ]
}

fn any_step() -> impl Strategy<Value = (u64, Step)> {
    let feed = prop_oneof![
        6 => (any_candidate(), 0..5_u32, any::<bool>()).prop_map(|(candidate, unhealthiness, observer)| {
            let Candidate { peer, incarnation, attribute } = candidate;
            Feed::Up(Member { peer, incarnation, unhealthiness, attribute, observer })
        }),
        1 => (any_peer(), 0..5_u32).prop_map(|(peer, unhealthiness)| Feed::Suspected { id: peer.id, unhealthiness }),
        2 => any_life().prop_map(|Life { peer, incarnation }| Feed::Failed { peer, incarnation }),
        1 => any_peer().prop_map(Feed::Left),
        1 => prop::collection::vec(any_peer(), 0..5)
            .prop_map(|peers| Feed::Group(peers.into_iter().map(|peer| peer.id).collect())),
    ];
    let named = prop::collection::vec(any_candidate(), 0..4);
    let unhealthy = prop::collection::vec((0..6_u64, 0..9_u32), 0..3);
    let step = prop_oneof![
        8 => (any_peer(), any_message()).prop_map(|(from, message)| Step::Hear(from, message)),
        8 => (named, unhealthy).prop_map(|(named, unhealthy)| {
            Step::Answer(named, unhealthy.into_iter().map(|(node, times)| (id(node), times)).collect())
        }),
        8 => Just(Step::Wake),
        6 => feed.prop_map(Step::Feed),
        2 => any_command().prop_map(Step::Command),
        1 => Just(Step::Leave),
    ];
    (prop_oneof![3 => 0..300_u64, 1 => 0..9_000_u64], step)
}

proptest! {
    #[test]
    fn messages_survive_the_wire_at_their_exact_length(sent in any_message(), noise: Vec<u8>) {
        let mut bytes = vec![];
        sent.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), sent.encoded_len());
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Message::decode(&mut reader), Ok(sent));
        prop_assert_eq!(reader.finish(), Ok(()));
        for cut in 0..bytes.len() {
            prop_assert!(Message::decode(&mut Reader::new(&bytes[..cut])).is_err());
        }
        let mut reader = Reader::new(&noise);
        if let Ok(read) = Message::decode(&mut reader) {
            let mut again = vec![];
            read.encode(&mut again);
            prop_assert_eq!(&again[..], &noise[..again.len()], "one encoding for every value");
        }
    }

    #[test]
    fn no_order_of_inputs_breaks_the_contract(
        config in any_config(),
        steps in prop::collection::vec(any_step(), 0..120),
    ) {
        let mut node = ChurnTolerant::new(peer(2), config, Seed::new(7), None);
        let mut out = Outbox::new();
        node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
        let mut now = Time::ZERO;
        let mut question = None;
        let mut token = None;
        for (pause, step) in steps {
            now += ms(pause);
            let before = node.clone();
            let outcome = match step.clone() {
                Step::Hear(from, message) => {
                    node.handle(now, Input::Message { from, via: from.id, message: &message }, &mut out)
                }
                Step::Answer(candidates, excluded) => {
                    let Some((to, Query { term, attempt, .. })) = question.clone() else { continue };
                    let heard = None;
                    let response = Response { term, attempt, heard, candidates, excluded };
                    let message = Message::Response(response);
                    let from = Peer::new(to, Boot::new(1));
                    node.handle(now, Input::Message { from, via: to, message: &message }, &mut out)
                }
                Step::Wake => node.handle(now, Input::Timeout, &mut out),
                Step::Feed(feed) => node.handle(now, Input::Feed(feed), &mut out),
                Step::Command(command) => node.handle(now, Input::Command(command), &mut out),
                Step::Leave => node.handle(now, Input::Leave, &mut out),
            };
            if outcome.is_err() {
                prop_assert_eq!(&node, &before);
                prop_assert!(out.is_empty());
            }
            while let Some(effect) = out.pop() {
                if let Effect::Send { to, message } = &effect {
                    prop_assert_ne!(*to, node.me.id);
                    prop_assert!(message.encoded_len() <= MAX_DATAGRAM - SEAL_LEN - 64);
                    if let Message::Query(query) = message {
                        question = Some((*to, query.clone()));
                    }
                }
            }
            if matches!(step, Step::Wake) {
                prop_assert!(node.deadline().is_none_or(|(due, _)| due > now));
            }
            let answer = node.leadership();
            prop_assert!(answer.leader.is_some() || (answer.epoch.is_none() && !answer.settled));
            if answer.epoch.is_some() {
                prop_assert!(token <= answer.epoch, "{:?} after {:?}", answer.epoch, token);
                token = answer.epoch;
            }
        }
    }

    /// What strangers say is answered, and forgotten.
    #[test]
    fn remote_input_does_not_grow_the_node(
        config in any_config(),
        messages in prop::collection::vec((any::<u64>(), any_message()), 0..200),
    ) {
        let mut node = ChurnTolerant::new(peer(2), config, Seed::new(7), None);
        let mut out = Outbox::new();
        node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
        node.handle(Time::ZERO, Input::Feed(Feed::Up(Member::new(peer(1)))), &mut out).unwrap();
        node.handle(Time::ZERO, Input::Command(Command::Elect), &mut out).unwrap();
        for (from, message) in messages {
            let from = Peer::new(id(from), Boot::new(1));
            let input = Input::Message { from, via: from.id, message: &message };
            let _ = node.handle(Time::ZERO, input, &mut out);
            while out.pop().is_some() {}
            prop_assert_eq!(node.listed(), 2);
            prop_assert!(std::format!("{node:?}").len() < 6_000, "{node:?}");
        }
    }
}
