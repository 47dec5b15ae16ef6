//! Whatever arrives in whatever order: nothing breaks, and everything survives the wire.

use proptest::{prelude::*, strategy::Strategy};

use super::{Strategy as Favour, *};
use crate::wire::{Reader, Wire};

fn any_peer() -> impl Strategy<Value = Peer> {
    (prop_oneof![6 => 0..6_u64, 1 => any::<u64>()], prop_oneof![4 => 0..3_u64, 1 => any::<u64>()])
        .prop_map(|(id, boot)| peer(id, boot))
}

fn any_incarnation() -> impl Strategy<Value = Incarnation> {
    prop_oneof![6 => 0..4_u32, 1 => Just(u32::MAX), 1 => any::<u32>()].prop_map(Incarnation::new)
}

fn any_update() -> impl Strategy<Value = Update> {
    let by = id(3);
    let status = prop::sample::select(vec![
        Status::Alive,
        Status::Join,
        Status::Suspect { by },
        Status::Failed { by },
        Status::Left,
    ]);
    (any_peer(), any_incarnation(), status).prop_map(|(subject, incarnation, status)| Update {
        subject,
        incarnation,
        status,
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let maybe = || prop::option::of(any_peer().prop_map(|peer| peer.id));
    let body = prop_oneof![
        maybe().prop_map(|on_behalf| Body::Ping { on_behalf }),
        maybe().prop_map(|on_behalf| Body::Ack { on_behalf }),
        any_peer().prop_map(|peer| Body::PingReq { target: peer.id }),
        (any_peer(), any_incarnation())
            .prop_map(|(target, incarnation)| Body::IndirectAck { target, incarnation }),
        maybe().prop_map(|after| Body::Join { after }),
        maybe().prop_map(|next| Body::JoinAck { next }),
        maybe().prop_map(|after| Body::Sync { after }),
        maybe().prop_map(|next| Body::SyncAck { next }),
        Just(Body::Leave),
        Just(Body::ReportAlive),
        Just(Body::Unlucky),
        (0..5_000_u64).prop_map(|ms| Body::Beat { every: Duration::from_millis(ms) }),
    ];
    let sequence = prop_oneof![6 => 0..6_u64, 1 => any::<u64>()];
    let updates = prop::collection::vec(any_update(), 0..5);
    let introductions = prop::collection::vec(any_introduction(), 0..3);
    (sequence, any_incarnation(), body, updates, introductions).prop_map(
        |(sequence, incarnation, body, updates, introductions)| Message {
            sequence,
            incarnation,
            body,
            updates,
            introductions,
        },
    )
}

fn any_introduction() -> impl Strategy<Value = Introduction> {
    let address = (any::<core::net::IpAddr>(), any::<u16>())
        .prop_map(|(ip, port)| core::net::SocketAddr::new(ip, port));
    let addresses = prop::collection::vec(address, 0..4).prop_map(Addresses::new);
    let details = prop::collection::vec(any::<u8>(), 0..=MAX_DETAILS);
    (any_update(), addresses, details).prop_map(|(update, addresses, details)| Introduction {
        subject: update.subject,
        incarnation: update.incarnation,
        addresses,
        details: Details::new(&details).unwrap(),
    })
}

fn any_config() -> impl Strategy<Value = Config> {
    let strategy = prop::sample::select(vec![
        Favour::Swim,
        Favour::Medley,
        Favour::Active,
        Favour::Passive,
        Favour::Both,
    ]);
    (strategy, any::<[bool; 6]>()).prop_map(
        |(strategy, [published, independent, sync, pull, whole, lifeguard])| {
            let form = if published { Form::AsPublished } else { Form::Hardened };
            let mut config = Config::new(strategy, form)
                .with_local_health(lifeguard)
                .with_patient_suspicion(lifeguard);
            if independent {
                config = config.with_selection(Selection::Independent);
            }
            if sync {
                config = config.with_phase(Phase::Sync);
            }
            if pull {
                config = config.with_carriers(Carriers::PullOnly);
            }
            if whole {
                let whole = Piggyback::WholeTable { lifetime: units(150) };
                config = config.with_piggyback(whole).unwrap();
            }
            config
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Hear(Peer, Message),
    Wake,
    Feed(ContactChange),
    Leave,
}

fn any_step() -> impl Strategy<Value = (u64, Step)> {
    let change = (any_peer(), 0.0..9.0_f32, any::<bool>(), any::<bool>());
    let change = change.prop_map(|(Peer { id, .. }, distance, neighbour, near)| {
        Step::Feed(if near {
            ContactChange::Near { id, distance, neighbour }
        } else {
            ContactChange::Gone { id }
        })
    });
    let step = prop_oneof![
        16 => (any_peer(), any_message()).prop_map(|(from, message)| Step::Hear(from, message)),
        16 => Just(Step::Wake),
        2 => change,
        1 => Just(Step::Leave),
    ];
    (prop_oneof![3 => 0..30_u64, 1 => 0..900_u64], step)
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
        members: bool,
        steps in prop::collection::vec(any_step(), 0..120),
    ) {
        let contacts = (1..4).map(|id| Contact { member: members, ..member(id) }).collect();
        let mut node = Node::with(config, contacts);
        node.input(at(0), Input::Start).unwrap();
        let mut now = 0;
        for (pause, step) in steps {
            now += pause;
            let before = std::format!("{:?}", node.machine);
            let outcome = match &step {
                Step::Hear(from, message) => node.hears(at(now), *from, message),
                Step::Wake => Ok(node.wakes(at(now))),
                Step::Feed(change) => node.input(at(now), Input::Feed(change.clone())),
                Step::Leave => node.input(at(now), Input::Leave),
            };
            match outcome {
                Err(_) => {
                    // As text, since an unknown distance is not equal to itself.
                    prop_assert_eq!(&std::format!("{:?}", node.machine), &before);
                    prop_assert!(node.out.is_empty());
                }
                Ok(effects) => {
                    for effect in effects {
                        if let Effect::Send { message, .. } | Effect::Broadcast(message) = effect {
                            prop_assert!(message.encoded_len() <= message::MAX_BODY);
                        }
                    }
                }
            }
            if matches!(step, Step::Wake) {
                prop_assert!(node.machine.deadline().is_none_or(|(due, _)| due > at(now)));
            }
            prop_assert_eq!(node.machine.members().count(), node.machine.len());
            let suspects = node.machine.members().filter(|view| view.state == State::Suspect);
            prop_assert_eq!(suspects.count(), node.machine.cases.until(Time::NEVER).count());
        }
    }
}
