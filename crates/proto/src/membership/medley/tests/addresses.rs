//! Who learns where whom can be reached.

use core::net::SocketAddr;

use super::*;

fn address(id: u64, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, id as u8], port))
}

fn introduces(id: u64, boot: u64, incarnation: u32, ports: &[u16]) -> Introduction {
    let addresses = Addresses::new(ports.iter().map(|&port| address(id, port)));
    let details = Details::default();
    Introduction { subject: peer(id, boot), incarnation: inc(incarnation), addresses, details }
}

fn ports(node: &Node, id: u64) -> Vec<u16> {
    let known = node.machine.introduction_of(super::id(id));
    let addresses = known.map(|known| known.addresses).unwrap_or_default();
    addresses.iter().map(|address| address.port()).collect()
}

fn hear(node: &mut Node, updates: &[Update], introductions: &[Introduction]) {
    let mut gossip = message(0, 0, Body::ReportAlive, updates);
    gossip.introductions = introductions.to_vec();
    node.hears(at(1), peer(1, 1), &gossip).unwrap();
}

#[test]
fn the_newest_introduction_counts_and_that_of_a_stranger_does_not() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 3);
    hear(&mut node, &[], &[introduces(2, 1, 4, &[70, 71])]);
    assert_eq!(ports(&node, 2), [70, 71]);
    hear(&mut node, &[], &[introduces(2, 1, 3, &[60]), introduces(9, 1, 0, &[90])]);
    assert_eq!((ports(&node, 2), ports(&node, 9)), (vec![70, 71], vec![]));
    let joined = news(peer(9, 1), 0, Status::Join);
    hear(&mut node, &[joined], &[introduces(2, 2, 0, &[80]), introduces(9, 1, 0, &[90])]);
    assert_eq!((ports(&node, 2), ports(&node, 9)), (vec![80], vec![90]), "a new life, a new one");
}

#[test]
fn whoever_passes_on_that_somebody_lives_says_where() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 3);
    let joined = news(peer(9, 1), 0, Status::Join);
    hear(&mut node, &[joined], &[introduces(9, 1, 0, &[90])]);
    let effects = node.wakes(at(0));
    let told = effects.iter().find_map(|effect| match effect {
        Effect::Send { message, .. } if message.updates.contains(&joined) => {
            Some(message.introductions.clone())
        }
        _ => None,
    });
    assert_eq!(told, Some(vec![introduces(9, 1, 0, &[90])]));
}

#[test]
fn a_joiner_says_where_it_is_and_is_told_where_the_others_are() {
    let contacts = vec![Contact { member: false, ..member(1) }];
    let addresses = Addresses::new([address(0, 50), address(0, 51)]);
    let mut joiner = Node::with(config(Strategy::Swim, Form::Hardened), contacts);
    joiner.machine = joiner.machine.with_introduction(addresses, Details::default());
    let effects = joiner.input(at(0), Input::Start).unwrap();
    let Some(Effect::Send { message: join, .. }) = effects.first() else { panic!("{effects:?}") };
    assert_eq!(join.introductions, [introduces(0, 1, 0, &[50, 51])]);

    let mut introducer = Medley::new(
        peer(1, 1),
        config(Strategy::Swim, Form::Hardened),
        Seed::new(3),
        None,
        (2..200).map(member).collect(),
    )
    .with_introduction(Addresses::new([address(1, 10)]), Details::default());
    let mut out = Outbox::new();
    introducer.handle(at(0), Input::Start, &mut out).unwrap();
    for known in 2..200 {
        introducer.directory.learn(&introduces(known, 1, 0, &[1, 2, 3]));
    }
    let from = peer(0, 1);
    introducer
        .handle(at(0), Input::Message { from, via: from.id, message: join }, &mut out)
        .unwrap();
    let mut introduced = 0;
    while let Some(effect) = out.pop() {
        if let Effect::Send { message, .. } = effect {
            let length = crate::wire::datagram_len(&message);
            assert!(length + 64 <= crate::wire::MAX_DATAGRAM, "{length}");
            let alive = message.updates.iter().filter(|update| update.subject.id != id(0)).count();
            assert!(message.introductions.len() > alive, "the introducer itself and all it names");
            introduced += message.introductions.len();
            joiner.hears(at(1), peer(1, 1), &message).unwrap();
        }
    }
    assert!(introduced > 10);
    assert_eq!(ports(&joiner, 1), [10]);
    assert_eq!(ports(&joiner, 2), [1, 2, 3]);
    assert_eq!(introducer.introduction_of(id(0)).map(|known| known.addresses), Some(addresses));
}

#[test]
fn whose_addresses_change_tells_everybody_in_the_next_incarnation() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 2);
    let moved = Addresses::new([address(0, 99)]);
    let details = Details::new(b"a name").unwrap();
    let ours = || Input::Feed(ContactChange::Ours { addresses: moved, details: details.clone() });
    let effects = node.input(at(1), ours()).unwrap();
    let report = broadcasts(&effects)[0];
    assert_eq!((report.body, report.incarnation), (Body::ReportAlive, inc(1)));
    let expected = Introduction { details: details.clone(), ..introduces(0, 1, 1, &[99]) };
    assert_eq!(report.introductions, [expected]);
    let again = node.input(at(1), ours()).unwrap();
    assert_eq!(again, [], "no change, no news");
}

#[test]
fn only_news_of_a_member_is_an_event() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 3);
    let told = |incarnation, details: &[u8]| {
        let mut gossip = message(0, 0, Body::ReportAlive, &[]);
        let details = Details::new(details).unwrap();
        gossip.introductions =
            vec![Introduction { details, ..introduces(2, 1, incarnation, &[70]) }];
        gossip
    };
    for (incarnation, details, news) in [
        (1, &b"here"[..], true),
        (1, b"there", false),
        (2, b"here", false),
        (3, b"there", true),
        (2, b"here", false),
    ] {
        let effects = node.hears(at(1), peer(1, 1), &told(incarnation, details)).unwrap();
        let emitted = effects.contains(&Effect::Emit(MembershipEvent::Introduced(id(2))));
        assert_eq!(emitted, news, "{incarnation} {details:?}");
    }
    assert_eq!(node.machine.introduction_of(id(2)).unwrap().details.as_bytes(), b"there");
    assert_eq!(Details::new(&[0; 256]), Err(DetailsTooLong { length: 256 }));
}

#[test]
fn whoever_is_found_is_asked_for_its_list() {
    let mut node = Node::with(config(Strategy::Swim, Form::Hardened), vec![]);
    node.input(at(0), Input::Start).unwrap();
    let found = |id| Input::Feed(ContactChange::Found { id: super::id(id) });
    let asks = |effects: &[Effect<Message, Durable, MembershipEvent>]| -> Vec<NodeId> {
        let asked = effects.iter().filter_map(|effect| match effect {
            Effect::Send { to, message } if matches!(message.body, Body::Join { .. }) => Some(*to),
            _ => None,
        });
        asked.collect()
    };
    assert_eq!(asks(&node.input(at(1), found(5)).unwrap()), [id(5)]);
    assert_eq!(asks(&node.input(at(1), found(6)).unwrap()), [], "one at a time");
    assert_eq!(asks(&node.input(at(1), found(0)).unwrap()), [], "ourselves");
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 3);
    assert_eq!(asks(&node.input(at(1), found(2)).unwrap()), [], "listed already");
    assert_eq!(asks(&node.input(at(1), found(9)).unwrap()), [id(9)]);
}
