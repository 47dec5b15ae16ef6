//! Who may accuse, when, and of how many; who is reached through whom.

use super::*;

fn cautious(others: u64) -> Node {
    Node::running(config(Strategy::Swim, Form::Hardened), others)
}

fn pinged(effects: &Effects) -> Vec<NodeId> {
    receivers(effects, |body| matches!(body, Body::Ping { on_behalf: None }))
}

fn ack(node: &Node) -> Message {
    message(node.machine.sequence, 0, Body::Ack { on_behalf: None }, &[])
}

/// A host that delivers nothing: periods pass, everybody is silent.
fn pass(node: &mut Node, from: u64, periods: u64) -> Vec<NodeId> {
    let mut all = vec![];
    for unit in (from..from + 20 * periods).step_by(5) {
        all.extend(pinged(&node.wakes(at(unit))));
    }
    all
}

#[test]
fn without_helpers_a_few_silences_in_a_row_are_needed_at_first_and_one_later() {
    let silences = |answered: u64| {
        let mut node = cautious(1);
        let mut now = 0;
        for _ in 0..answered {
            node.wakes(at(now));
            let ack = ack(&node);
            node.hears(at(now + 1), peer(1, 1), &ack).unwrap();
            now += 20;
        }
        let start = now;
        while node.machine.state_of(id(1)) == Some(State::Alive) {
            node.wakes(at(now));
            now += 5;
        }
        (now - 5 - start) / 20
    };
    assert_eq!((silences(0), silences(40), silences(1_000)), (2, 2, 1));
}

#[test]
fn in_a_lossy_network_a_far_target_is_probed_until_its_silence_proves_something() {
    let mut node = cautious(4);
    // Links are 5 long, and every other ping to a neighbour is not answered.
    for round in 0..300 {
        if round % 2 == 0 {
            node.machine.doubt.unanswered(5.0);
        } else {
            node.machine.doubt.answered(5.0);
        }
    }
    // Everybody has answered before.
    (0..4).for_each(|at| node.machine.table.set_answered(at));
    let asked = pass(&mut node, 0, 2);
    assert_eq!(asked[0], asked[1], "the same again");
    let target = asked[0];
    assert_eq!(node.machine.state_of(target), Some(State::Alive));
    let mut expected = node.machine.doubt;
    node.wakes(at(40));
    let ack = ack(&node);
    node.hears(at(41), Peer::new(target, Boot::new(1)), &ack).unwrap();
    let distance = f64::from(1.0 + target.get() as f32);
    expected.unanswered(distance);
    expected.unanswered(distance);
    expected.answered(distance);
    assert_eq!(node.machine.doubt, expected, "it lives, so two pings were lost");
    let next = pass(&mut node, 60, 12);
    let suspects = |node: &Node| {
        node.machine.members().filter(|member| member.state == State::Suspect).count()
    };
    assert!(next.iter().any(|&id| id != target) && suspects(&node) > 0, "in the end it accuses");
}

#[test]
fn a_deaf_node_accuses_few_and_fewer_if_it_is_wrong() {
    let mut node = cautious(60);
    pass(&mut node, 0, 40);
    let nth = |nth| node.machine.cases.nth_accused_by(id(0), nth);
    let accused: Vec<NodeId> = (0..node.machine.accused()).filter_map(nth).collect();
    assert_eq!(accused.len(), node.machine.accused());
    assert!(accused.len() <= usize::from(CREDIT), "{accused:?}");
    // Most were removed by then; everybody still accused contradicts.
    for &wrong in &accused {
        let denial = message(0, 1, Body::ReportAlive, &[]);
        node.hears(at(800), Peer::new(wrong, Boot::new(1)), &denial).unwrap();
    }
    assert_eq!(node.machine.credit, 1);
    for unit in (800..1_000).step_by(5) {
        node.wakes(at(unit));
        assert!(node.machine.accused() <= 1);
    }
}

#[test]
fn of_one_accuser_only_so_many_accusations_are_believed() {
    let mut node = cautious(40);
    let mut accuse = |by: u64, of: u64| {
        let charge = news(peer(of, 1), 0, Status::Suspect { by: id(by) });
        let gossip = message(0, 0, Body::ReportAlive, &[charge]);
        node.hears(at(1), peer(40, 1), &gossip).unwrap();
        node.machine.state_of(id(of)) == Some(State::Suspect)
    };
    let believed = (1..=20).filter(|&of| accuse(39, of)).count();
    assert_eq!(believed, 2 * usize::from(CREDIT));
    assert!(accuse(38, 20), "another accuser is believed");
}

#[test]
fn the_accused_is_asked_again_and_told_what_it_is_accused_of() {
    let mut node = cautious(2);
    let target = pass(&mut node, 0, 1)[0];
    let effects = node.wakes(at(20));
    assert_eq!(node.machine.state_of(target), Some(State::Suspect));
    let charge = effects.iter().find_map(|effect| match effect {
        Effect::Send { to, message } if *to == target => message.updates.first().copied(),
        _ => None,
    });
    let subject = Peer::new(target, Boot::new(1));
    assert_eq!(charge, Some(news(subject, 0, Status::Suspect { by: id(0) })));
}

#[test]
fn a_denial_goes_to_the_accuser_as_well() {
    for (form, accusers) in [(Form::Hardened, vec![id(2)]), (Form::AsPublished, vec![])] {
        let mut node = Node::running(config(Strategy::Swim, form), 3);
        let charge = news(peer(0, 1), 0, Status::Suspect { by: id(2) });
        let gossip = message(0, 0, Body::ReportAlive, &[charge]);
        let effects = node.hears(at(1), peer(1, 1), &gossip).unwrap();
        assert_eq!(receivers(&effects, |body| body == Body::ReportAlive), accusers);
    }
}

/// A helper that has reached somebody is asked first, and without delay once it is the only way.
#[test]
fn whoever_answers_only_a_helper_is_reached_through_it() {
    let mut node = cautious(30);
    let mut through = BTreeMap::new();
    let (hub, mut now) = (id(7), 0);
    while now < 20 * 30 * 8 {
        let effects = node.wakes(at(now));
        let target = pinged(&effects)[0];
        let sequence = node.machine.sequence;
        let is_request = |body| matches!(body, Body::PingReq { .. });
        let mut asked = receivers(&effects, is_request);
        if target == hub {
            let ack = ack(&node);
            node.hears(at(now + 1), peer(7, 1), &ack).unwrap();
        } else if asked == [hub] {
            *through.entry(target).or_insert(0) += 1;
        } else {
            asked = receivers(&node.wakes(at(now + 5)), is_request);
            // The first time it is luck.
            if now == 0 || asked.contains(&hub) {
                asked = vec![hub];
            }
        }
        if target != hub && asked == [hub] {
            let answer =
                Body::IndirectAck { target: Peer::new(target, Boot::new(1)), incarnation: inc(0) };
            node.hears(at(now + 6), peer(7, 1), &message(sequence, 0, answer, &[])).unwrap();
        }
        now += 20;
    }
    assert_eq!(through.len(), 29, "all but the hub");
    let accused = node.machine.members().any(|member| member.state != State::Alive);
    assert!(!accused, "nobody but luck chose the hub, and still nobody was accused");
    for member in node.machine.members() {
        let expected = if member.id == hub { Reach::Direct } else { Reach::Through(hub) };
        assert_eq!(member.reach, expected);
    }
}
