//! Messages on the wire.

use proptest::prelude::*;

use super::*;
use crate::wire::{Reader, Wire};

fn lives() -> impl Strategy<Value = Life> {
    (any::<u64>(), any::<u64>(), any::<u32>()).prop_map(|(node, boot, inc)| Life {
        peer: Peer::new(id(node), Boot::new(boot)),
        inc: Incarnation::new(inc),
    })
}

fn groups() -> impl Strategy<Value = Group> {
    let members = proptest::collection::btree_set(lives(), 0..12);
    (any::<u64>(), any::<u32>(), any::<u32>(), members).prop_map(|(born, low, high, members)| {
        Group { born, version: Version { low, high }, members: members.into_iter().collect() }
    })
}

fn facts() -> impl Strategy<Value = Vec<Fact>> {
    let kinds = prop_oneof![Just(Kind::Member), Just(Kind::Left), Just(Kind::Buried)];
    let fact = (lives(), kinds, any::<bool>());
    let fact = fact.prop_map(|(life, kind, witness)| Fact { life, kind, witness });
    proptest::collection::vec(fact, 0..5)
}

fn sessions() -> impl Strategy<Value = Session> {
    let stages = [Stage::Keep, Stage::Invite, Stage::Confirm, Stage::Join];
    let stage = proptest::sample::select(stages.to_vec());
    let near = proptest::collection::vec(lives(), 0..7);
    let parts = (any::<u64>(), lives(), stage, any::<bool>(), any::<u64>());
    (parts, facts(), proptest::option::of(groups()), near).prop_map(
        |((number, to, stage, witness, digest), facts, group, neighbours)| Session {
            number,
            to: to.age(),
            stage,
            witness,
            digest,
            facts,
            group,
            neighbours,
        },
    )
}

fn votes() -> impl Strategy<Value = Vote> {
    let reasons = [Reason::Conflict, Reason::Fresh, Reason::Stale].map(Vote::Reject);
    let all = [Vote::Accept, Vote::Closed].into_iter().chain(reasons).collect::<Vec<_>>();
    proptest::sample::select(all)
}

fn bodies() -> impl Strategy<Value = Body> {
    let one = prop_oneof![
        sessions().prop_map(Body::Request),
        sessions().prop_map(Body::Ack),
        (lives(), groups()).prop_map(|(accused, group)| Body::Ask { accused, group }),
        (lives(), votes(), proptest::collection::vec(groups(), 0..3))
            .prop_map(|(accused, vote, newer)| Body::Answer { accused, vote, newer }),
        (lives(), any::<u64>()).prop_map(|(accused, born)| Body::Concede { accused, born }),
        (lives(), groups(), groups()).prop_map(|(peer, base, next)| Body::Propose {
            peer,
            base,
            next
        }),
        (lives(), any::<u32>(), any::<bool>()).prop_map(|(peer, low, granted)| {
            Body::Proposed { peer, version: Version { low, high: 3 }, granted }
        }),
        (lives(), any::<u32>())
            .prop_map(|(peer, high)| Body::Retract { peer, version: Version { low: 1, high } }),
        (groups(), proptest::collection::vec(lives(), 0..4))
            .prop_map(|(group, neighbours)| Body::Upgraded { group, neighbours }),
    ];
    let other = prop_oneof![
        (lives(), any::<u64>()).prop_map(|(peer, born)| Body::CloseAsk { peer, born }),
        (lives(), any::<u64>(), any::<bool>())
            .prop_map(|(peer, born, granted)| Body::CloseAnswer { peer, born, granted }),
        any::<u64>().prop_map(|born| Body::Closed { born }),
        proptest::sample::select(vec![
            Body::Find,
            Body::Busy,
            Body::Lock,
            Body::Unlock,
            Body::LeaveAck,
            Body::Leave { forced: true },
            Body::Leave { forced: false },
            Body::LockAnswer { granted: true },
        ]),
        any::<u64>().prop_map(|owner| Body::Redirect { owner: id(owner) }),
        facts().prop_map(|list| Body::Neighbours { list }),
        (facts(), any::<u64>(), any::<u64>()).prop_map(|(facts, emitter, end)| Body::Spread {
            facts,
            emitter: id(emitter),
            end
        }),
        lives().prop_map(|life| Body::Tell { fact: Fact::member(life) }),
        lives().prop_map(|life| Body::Told { fact: Fact::member(life) }),
    ];
    prop_oneof![one, other]
}

proptest! {
    #[test]
    fn what_is_written_reads_back(inc in any::<u32>(), body in bodies()) {
        let message = Message { inc: Incarnation::new(inc), body };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), message.encoded_len());
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Message::decode(&mut reader), Ok(message));
        prop_assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::decode(&mut Reader::new(&bytes));
    }

    /// Any message at any time: no panic, and no deadline left behind.
    #[test]
    fn no_message_panics(
        steps in proptest::collection::vec((0_u64..6, 0_u64..3_000, 0_u32..2, bodies()), 1..40),
        as_published in any::<bool>(),
    ) {
        let config = if as_published { published(2) } else { hardened(2).with_rejoin(true) };
        let founders: Vec<Peer> = (0..6).map(peer).collect();
        let mut node = Ring::new(peer(0), config, Seed::new(1), &founders, &[id(1)]);
        let mut out = Outbox::new();
        node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
        let mut now = Time::ZERO;
        for (from, wait, inc, body) in steps {
            now += Duration::from_millis(wait);
            let _ = node.handle(now, Input::Timeout, &mut out);
            prop_assert!(node.deadline().is_none_or(|(at, _)| at > now));
            let message = Message { inc: Incarnation::new(inc), body };
            let input = Input::Message { from: peer(from), via: id(from), message: &message };
            while out.pop().is_some() {}
            if node.handle(now, input, &mut out).is_err() {
                prop_assert!(out.is_empty(), "a refused input had effects");
            }
        }
    }
}
