//! Whatever arrives in whatever order: nothing breaks, and everything survives the wire.

use proptest::prelude::*;

use super::*;
use crate::wire::{Reader, Wire};

fn any_claim() -> impl Strategy<Value = Claim> {
    let key = prop_oneof![2 => Just(0), 2 => u64::MAX - 1_000_000..=u64::MAX, 1 => any::<u64>()];
    (prop::bool::weighted(0.2), key).prop_map(|(established, key)| Claim { established, key })
}

fn any_message() -> impl Strategy<Value = Message> {
    let counter = || prop_oneof![4 => 0..6_u64, 1 => Just(Epoch::believable(0)), 1 => any::<u64>()];
    let period = prop_oneof![4 => Just(1_000_000), 1 => Just(0), 1 => any::<u64>()];
    let dead = (0..9_u64, 0..3_u64).prop_map(|(id, boot)| peer(id, boot));
    let announcement = (counter(), any_claim(), period, prop::option::of(dead), any_nonce());
    let kind = prop_oneof![
        4 => announcement.prop_map(|(epoch, claim, period, supersedes, answers)| {
            let period = Duration::from_micros(period);
            Message::Announce(Announcement { sequence: 0, epoch, claim, period, supersedes, answers })
        }),
        2 => counter().prop_map(|need| hint(0, need)),
        1 => counter().prop_map(|epoch| bye(0, epoch)),
        2 => (any::<u64>(), prop::option::of(any_claim()))
            .prop_map(|(nonce, claim)| Message::Query { sequence: 0, nonce, claim }),
    ];
    (prop_oneof![6 => 0..40_u64, 1 => any::<u64>()], kind)
        .prop_map(|(sequence, message)| numbered(message, sequence))
}

fn any_nonce() -> impl Strategy<Value = Option<u64>> {
    // The nonce of node 5 below, which no other way would ever be hit.
    let ours = Seed::new(5).rng().next();
    prop::option::of(prop_oneof![Just(ours), any::<u64>()])
}

fn numbered(mut message: Message, number: u64) -> Message {
    let (Message::Announce(Announcement { sequence, .. })
    | Message::Hint { sequence, .. }
    | Message::Bye { sequence, .. }
    | Message::Query { sequence, .. }) = &mut message;
    *sequence = number;
    message
}

fn any_config() -> impl Strategy<Value = Config> {
    let second = ms(900);
    let wait = prop::sample::select(vec![
        Suppression::None,
        Suppression::Fixed(ms(300)),
        Suppression::Uniform(second),
        Suppression::Exponential { longest: second, lambda: 3.0 },
        Suppression::Mapped { longest: second, jitter: 0.5 },
    ]);
    let criterion =
        prop::sample::select(vec![Criterion::Identity, Criterion::Wake, Criterion::Goodness(0.7)]);
    let entry = prop::sample::select(vec![
        Entry::Plain,
        Entry::Query { timeout: ms(400) },
        Entry::SuppressThenQuery { timeout: ms(400) },
    ]);
    let rules = prop::sample::select(&ALL_RULES[..]);
    (rules, wait, criterion, entry, any::<bool>(), 0..4_u8).prop_map(
        |(rules, wait, criterion, entry, sticky, copies)| {
            let mut config = config(wait, rules).with_criterion(criterion).unwrap();
            config = config.with_entry(entry).unwrap();
            if sticky && rules == Rules::Hardened {
                config = config.with_tenure(Tenure::Sticky).unwrap();
            }
            if copies > 0 {
                config = config.with_bye(Bye { copies, spacing: ms(200) }).unwrap();
            }
            config
        },
    )
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Hear(Peer, Message),
    Wake,
    Leave,
}

pub(super) fn any_step() -> impl Strategy<Value = (u64, Step)> {
    let hear = (0..9_u64, 0..3_u64, any_message());
    let step = prop_oneof![
        12 => hear.prop_map(|(id, boot, message)| Step::Hear(peer(id, boot), message)),
        8 => Just(Step::Wake),
        1 => Just(Step::Leave),
    ];
    (prop_oneof![3 => 0..300_u64, 1 => 0..5_000_u64], step)
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
        let _either_way = Message::decode(&mut Reader::new(&noise));
    }

    #[test]
    fn no_order_of_inputs_breaks_the_contract(
        config in any_config(),
        durable in prop::option::of(prop_oneof![0..9_u64, Just(u64::MAX)]),
        steps in prop::collection::vec(any_step(), 0..120),
    ) {
        let durable = durable.map(self::durable);
        let mut node = Node::with(peer(5, 1), config, durable);
        node.start(0);
        let (mut now, mut last) = (0, None);
        for (pause, step) in steps {
            now += pause;
            let before = node.machine.clone();
            let outcome = match &step {
                Step::Hear(from, message) => node.hears(now, *from, *message),
                Step::Wake => Ok(node.wakes(now)),
                Step::Leave => node.input(now, Input::Leave),
            };
            if outcome.is_err() {
                prop_assert_eq!(&node.machine, &before);
                prop_assert!(node.out.is_empty());
            }
            if matches!(step, Step::Wake) {
                prop_assert!(node.due().is_none_or(|(due, _)| due > at(now)));
            }
            let view = node.view();
            let hardened = config.rules() == Rules::Hardened;
            prop_assert_eq!(view.epoch.is_some(), hardened && view.leader.is_some());
            if view.epoch.is_some() {
                prop_assert!(view.epoch >= last, "{:?} then {:?}", last, view.epoch);
                last = view.epoch;
            }
        }
    }
}
