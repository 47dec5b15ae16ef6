use std::{vec, vec::Vec};

use super::*;
use crate::{
    election::churn_tolerant::{Form, Variant},
    id::Boot,
    membership::medley::{Body, Status, Strategy, Update},
    time::Duration,
};

const GROUP: ElectionId = ElectionId::from_number(7);

fn peer(id: u64) -> Peer {
    Peer::new(NodeId::new(id), Boot::new(1))
}

/// Node 0 with three members on its list.
fn started() -> Stack {
    let membership = medley::Config::new(Strategy::Both, medley::Form::Hardened);
    let election = churn_tolerant::Config::new(Variant::Base, Form::Hardened);
    let contact =
        |id| Contact { id: NodeId::new(id), distance: 1.0, neighbour: true, member: true };
    let contacts: Vec<Contact> = (1..4).map(contact).collect();
    let mut node =
        Stack::new(peer(0), membership, &[(GROUP, election)], Seed::new(1), None, contacts);
    node.handle(Time::ZERO, Input::Start, &mut Outbox::new()).unwrap();
    node
}

#[test]
fn what_the_membership_learns_the_election_knows_at_once() {
    let mut node = started();
    assert_eq!(node.election(GROUP).unwrap().listed(), 4, "those listed from the start");
    let news = |subject, incarnation, status| {
        let update = Update { subject, incarnation: Incarnation::new(incarnation), status };
        Message::Membership(medley::Message {
            sequence: 1,
            incarnation: Incarnation::default(),
            body: Body::ReportAlive,
            updates: vec![update],
            introductions: vec![],
        })
    };
    let by = NodeId::new(2);
    for (message, listed) in [
        (news(peer(7), 0, Status::Join), 5),
        (news(peer(3), 0, Status::Failed { by }), 4),
        (news(peer(3), 1, Status::Alive), 5),
        (news(peer(7), 0, Status::Left), 4),
    ] {
        let from = peer(1);
        let input = Input::Message { from, via: from.id, message: &message };
        node.handle(Time::ZERO, input, &mut Outbox::new()).unwrap();
        assert_eq!(node.election(GROUP).unwrap().listed(), listed, "{message:?}");
        assert_eq!(node.membership().len() + 1, listed);
    }
}

fn profile(standings: &[(ElectionId, u32, bool)]) -> Details {
    let standing = |&(group, attribute, observer)| (group, Standing { observer, attribute });
    let standings = standings.iter().map(standing).collect();
    Profile { standings, rest: b"name".to_vec() }.to_details().unwrap()
}

#[test]
fn a_profile_survives_the_wire_and_nonsense_is_refused() {
    let details = profile(&[(GROUP, u32::MAX, true), (ElectionId::named("backup"), 0, false)]);
    let read = Profile::from_details(&details).unwrap();
    assert_eq!(read.to_details(), Ok(details));
    assert_eq!((read.standings.len(), &read.rest[..]), (2, &b"name"[..]));
    let short = Details::new(&[9, 1, 2]).unwrap();
    assert!(Profile::from_details(&short).is_err());
    let long = Profile { rest: vec![0; 300], ..read };
    assert_eq!(long.to_details(), Err(DetailsTooLong { length: 300 + 1 + 9 + 5 }));
}

/// Four nodes, two elections by attribute; what they say of themselves decides both.
#[test]
fn every_election_has_its_own_candidates_and_its_own_leader() {
    let [backup, gateway] = ["backup", "gateway"].map(ElectionId::named);
    let election = churn_tolerant::Config::new(Variant::Base, Form::Hardened)
        .with_bounds(1, 0)
        .and_then(|config| config.with_criterion(churn_tolerant::Criterion::Attribute, 0))
        .unwrap();
    let membership = medley::Config::new(Strategy::Swim, medley::Form::Hardened);
    let says = [
        profile(&[(backup, 1, false), (gateway, 9, false)]),
        profile(&[(backup, 7, false), (gateway, 2, false)]),
        profile(&[(backup, 99, true), (gateway, 3, false)]),
        // Takes no part in one of them, and could not follow it.
        profile(&[(gateway, 1, false)]),
    ];
    let mut nodes: Vec<Stack> = (0..4)
        .map(|me| {
            let groups: Vec<_> = [(backup, election), (gateway, election)]
                .into_iter()
                .filter(|(group, _)| me != 3 || *group == gateway)
                .collect();
            let near = |id| NodeId::new((me + id) % 4);
            let contacts = (1..4).map(|id| Contact {
                id: near(id),
                distance: 1.0,
                neighbour: true,
                member: false,
            });
            let seed = Seed::new(me);
            Stack::new(peer(me), membership, &groups, seed, None, contacts.collect())
                .with_introduction(medley::Addresses::default(), says[me as usize].clone())
                .with_survey(
                    estimate::Config::of(40).unwrap(),
                    Duration::from_secs(1),
                    seed,
                    Time::ZERO,
                )
        })
        .collect();
    let mut now = Time::ZERO;
    let mut letters: Vec<(u64, u64, Message)> = vec![];
    let step = |now, node: u64, input: InputOf<'_, Stack>, nodes: &mut Vec<Stack>| {
        let mut out = Outbox::new();
        let _ = nodes[node as usize].handle(now, input, &mut out);
        let mut letters = vec![];
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Send { to, message } => letters.push((node, to.get(), message)),
                Effect::Broadcast(message) | Effect::Multicast(message) => letters
                    .extend((0..4).filter(|&to| to != node).map(|to| (node, to, message.clone()))),
                Effect::Persist(_) | Effect::Emit(_) => {}
            }
        }
        letters
    };
    for node in 0..4 {
        letters.extend(step(now, node, Input::Start, &mut nodes));
    }
    let end = Time::ZERO + Duration::from_secs(60);
    while now < end {
        while let Some((from, to, message)) = letters.pop() {
            let from = peer(from);
            let input = Input::Message { from, via: from.id, message: &message };
            letters.extend(step(now, to, input, &mut nodes));
        }
        now = nodes.iter().filter_map(|node| node.deadline()).map(|(at, _)| at).min().unwrap();
        for node in 0..4 {
            letters.extend(step(now, node, Input::Timeout, &mut nodes));
        }
    }
    let leader = |node: &Stack, group| {
        node.election(group).map(|election| election.leadership().leader.map(NodeId::get))
    };
    for node in &nodes {
        assert_eq!(leader(node, gateway), Some(Some(0)));
        let expected = (node.me.id.get() != 3).then_some(Some(1));
        assert_eq!(leader(node, backup), expected, "not the observer");
        let known = node.churn(now).unwrap();
        assert_eq!((known.c, known.method), (0, estimate::Method::Sample), "lists are alike");
        let c = node.election(gateway).unwrap().churn();
        assert_eq!(c, 0, "and the elections know");
    }
}

#[test]
fn each_layer_keeps_its_own_durable_state_when_the_other_persists() {
    let mut node = started();
    let mut out = Outbox::new();
    let persisted = |out: &mut OutboxOf<Stack>| {
        let mut last = None;
        while let Some(effect) = out.pop() {
            if let Effect::Persist(durable) = effect {
                last = Some(durable);
            }
        }
        last
    };
    let elect = Input::Command(Command { group: GROUP, command: churn_tolerant::Command::Elect });
    node.handle(Time::ZERO, elect, &mut out).unwrap();
    let term = persisted(&mut out).unwrap().elections;
    let status = Status::Suspect { by: NodeId::new(2) };
    let slander = Update { subject: peer(0), incarnation: Incarnation::default(), status };
    let message = Message::Membership(medley::Message {
        sequence: 1,
        incarnation: Incarnation::default(),
        body: Body::ReportAlive,
        updates: vec![slander],
        introductions: vec![],
    });
    let from = peer(1);
    let input = Input::Message { from, via: from.id, message: &message };
    node.handle(Time::ZERO, input, &mut out).unwrap();
    let both = persisted(&mut out).expect("it contradicts, durably");
    assert_eq!((both.membership.is_some(), both.elections), (true, term));
}

#[test]
fn nothing_is_due_after_a_timeout_and_messages_survive_the_wire() {
    let mut node = started();
    let mut out = Outbox::new();
    let mut layers = [0, 0];
    for _ in 0..300 {
        let (due, _) = node.deadline().unwrap();
        node.handle(due, Input::Timeout, &mut out).unwrap();
        assert!(node.deadline().is_none_or(|(next, _)| next > due));
        while let Some(effect) = out.pop() {
            let Effect::Send { message, .. } = effect else { continue };
            layers[usize::from(matches!(message, Message::Election(..)))] += 1;
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(Message::decode(&mut reader), Ok(message));
            assert_eq!(reader.finish(), Ok(()));
        }
    }
    assert!(layers[0] > 0 && layers[1] > 0, "{layers:?}");
    let end = node.deadline().unwrap().0;
    node.handle(end, Input::Leave, &mut out).unwrap();
    node.handle(end + Duration::from_secs(60), Input::Timeout, &mut out).unwrap();
    assert_eq!(node.deadline(), None, "it has left");
}

/// Who leads is watched by those that would succeed it, and by nobody once it no longer does.
#[test]
fn a_leader_tells_its_heirs_that_it_lives() {
    let every = Duration::from_millis(200);
    let membership = medley::Config::new(Strategy::Swim, medley::Form::Hardened);
    let membership = membership.with_beat(Some(every)).unwrap();
    let election = churn_tolerant::Config::new(Variant::Base, Form::Hardened)
        .with_bounds(0, 0)
        .and_then(|config| config.with_criterion(churn_tolerant::Criterion::Identity, 0))
        .unwrap();
    let contact =
        |id| Contact { id: NodeId::new(id), distance: 1.0, neighbour: true, member: true };
    let contacts: Vec<Contact> = (1..5).map(contact).collect();
    let mut node =
        Stack::new(peer(0), membership, &[(GROUP, election)], Seed::new(1), None, contacts);
    let mut out = Outbox::new();
    let mut told = |node: &mut Stack, now, input: InputOf<'_, Stack>| {
        node.handle(now, input, &mut out).unwrap();
        let effects = core::iter::from_fn(|| out.pop());
        let beats = effects.filter_map(|effect| match effect {
            Effect::Send { to, message: Message::Membership(message) } => {
                (message.body == Body::Beat { every }).then_some(to.get())
            }
            _ => None,
        });
        beats.collect::<Vec<_>>()
    };
    assert_eq!(told(&mut node, Time::ZERO, Input::Start), []);
    let elect = Command { group: GROUP, command: churn_tolerant::Command::Elect };
    told(&mut node, Time::ZERO, Input::Command(elect));
    let late = Time::ZERO + Duration::from_millis(200);
    // With c = 0 and f = 0 its own answer suffices.
    assert_eq!(node.leadership().leader, Some(NodeId::new(0)));
    assert_eq!(told(&mut node, late, Input::Timeout), [1, 2]);
    // The first heir says goodbye.
    let goodbye = Message::Membership(medley::Message {
        sequence: 0,
        incarnation: Incarnation::default(),
        body: Body::Leave,
        updates: vec![],
        introductions: vec![],
    });
    let from = peer(1);
    let input = Input::Message { from, via: from.id, message: &goodbye };
    assert_eq!(told(&mut node, late, input), [2, 3]);
    let void = Command { group: GROUP, command: churn_tolerant::Command::Void };
    told(&mut node, late, Input::Command(void));
    assert_ne!(node.leadership().leader, Some(NodeId::new(0)));
    assert_eq!(node.watchers.0, []);
}
