//! What the application may ask: to lead no more, for a while or for good.

use super::*;

fn leading(rules: Rules) -> Node {
    let mut node = Node::new(5, Suppression::Fixed(ms(200)), rules);
    node.start(0);
    node.wakes(200);
    assert!(matches!(node.machine.role(), Role::Leading { .. }));
    node
}

#[test]
fn whoever_was_stopped_listens_then_stands_anew_and_leads_under_a_newer_token() {
    let mut node = leading(Rules::Hardened);
    let before = node.machine.leadership().epoch;
    node.input(9_000, Input::Command(Command::Void)).unwrap();
    assert_eq!(node.machine.leadership().leader, None);
    assert_eq!(node.machine.deadline(), Some((at(12_000), Timer::Return)), "one T_L");
    node.wakes(12_000);
    assert_eq!(node.machine.leadership().leader, None, "it stands");
    node.wakes(12_200);
    let after = node.machine.leadership();
    assert_eq!(after.leader, Some(NodeId::new(5)));
    assert!(after.epoch > before);
    // Who follows has nothing to give up.
    node.hears(12_300, peer(9, 1), announce(1, 7)).unwrap();
    node.input(12_400, Input::Command(Command::Void)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(9)));
}

#[test]
fn whoever_resigns_follows_a_worse_one_and_stands_again_later() {
    for rules in [Rules::Corrected, Rules::Hardened] {
        let mut node = leading(rules);
        node.input(1_000, Input::Command(Command::Resign)).unwrap();
        assert_eq!((node.machine.leadership().leader, node.machine.follows()), (None, None));
        assert_eq!(node.machine.deadline(), Some((at(10_000), Timer::Return)));
        node.hears(4_000, peer(2, 1), announce(1, 2)).unwrap();
        assert_eq!(node.machine.follows(), Some(NodeId::new(2)));
        // It falls silent too: we still do not stand.
        node.wakes(7_000);
        assert!(matches!(node.machine.role(), Role::Watching { .. }));
        node.wakes(10_000);
        assert!(matches!(node.machine.role(), Role::Suppressing { .. }));
    }
}

#[test]
fn an_observer_never_leads_and_follows_anybody() {
    let mut node = Node::new(5, Suppression::None, Rules::Hardened);
    node.input(0, Input::Command(Command::Observe(true))).unwrap();
    assert_eq!(node.start(0), []);
    assert_eq!((node.machine.follows(), node.machine.deadline()), (None, None));
    node.hears(100, peer(2, 1), announce(1, 1)).unwrap();
    assert_eq!(node.machine.leadership().leader, Some(NodeId::new(2)));
    node.hears(200, peer(1, 1), announce(1, 2)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(2)), "the better of two");
    node.wakes(20_000);
    assert_eq!(node.machine.leadership().leader, None);
    // Now it may.
    node.input(21_000, Input::Command(Command::Observe(false))).unwrap();
    assert_eq!(node.machine.leadership().leader, Some(NodeId::new(5)));
    node.input(22_000, Input::Command(Command::Observe(true))).unwrap();
    assert_eq!(node.machine.leadership().leader, None);
    assert_eq!(node.machine.deadline(), None, "it says no more");
}

/// It used to claim within `T_S`, which may be before it hears a successor that is worse by the rules and does well.
#[test]
fn whoever_was_stopped_follows_its_successor() {
    let mut node = leading(Rules::Hardened);
    node.input(9_000, Input::Command(Command::Void)).unwrap();
    node.hears(9_900, peer(2, 1), announce(7, 2)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(2)));
    assert_eq!(node.machine.leadership().leader, Some(NodeId::new(2)));
}

/// Who was stopped while it stood, or while it stayed away, claimed as soon as it woke, before it could hear anybody.
#[test]
fn whoever_was_stopped_in_any_role_listens_before_it_stands() {
    let mut node = Node::new(5, Suppression::Fixed(ms(200)), Rules::Hardened);
    node.start(0);
    node.input(9_000, Input::Command(Command::Void)).unwrap();
    node.wakes(9_000);
    assert_eq!(node.machine.deadline(), Some((at(12_000), Timer::Return)), "it stood");
    node.input(20_000, Input::Command(Command::Void)).unwrap();
    node.wakes(20_000);
    assert_eq!(node.machine.deadline(), Some((at(23_000), Timer::Return)), "it stayed away");
    node.hears(20_500, peer(2, 1), announce(1, 7)).unwrap();
    assert_eq!(node.machine.leadership().leader, Some(NodeId::new(2)));
    let mut node = Node::following(1);
    node.input(9_000, Input::Command(Command::Void)).unwrap();
    node.wakes(9_000);
    assert_eq!(node.machine.deadline(), Some((at(12_000), Timer::Listen)), "it followed");
}

fn sticky() -> Node {
    let wait = Suppression::Fixed(ms(200));
    let config = config(wait, Rules::Hardened).with_tenure(Tenure::Sticky).unwrap();
    let mut node = Node::with(peer(5, 1), config, None);
    node.start(0);
    node.wakes(200);
    node
}

fn as_established(message: Message) -> Message {
    let Message::Announce(mut it) = message else { panic!("{message:?}") };
    it.claim.established = true;
    Message::Announce(it)
}

/// It did not listen to one that ranks below it any more, and deposed it just before it was established.
#[test]
fn whoever_returns_while_somebody_has_just_begun_to_lead_lets_it_lead() {
    for command in [Command::Void, Command::Resign] {
        let mut node = sticky();
        node.input(1_000, Input::Command(command)).unwrap();
        let (back, _) = node.machine.deadline().unwrap();
        let back = back.since(Time::ZERO).as_micros() / 1_000;
        for (sequence, after) in [(1, 0), (2, 1_000), (3, 2_000)] {
            node.wakes(back - 500 + after);
            node.hears(back - 500 + after, peer(2, 1), announce(sequence, 7)).unwrap();
        }
        node.wakes(back + 2_499);
        node.hears(back + 2_500, peer(2, 1), as_established(announce(4, 7))).unwrap();
        node.wakes(back + 5_000);
        assert_eq!(node.machine.follows(), Some(NodeId::new(2)), "{command:?}");
        assert_eq!(node.machine.deadline(), Some((at(back + 5_500), Timer::Listen)), "it is back");
        // Should that one fall silent, it stands.
        node.wakes(back + 5_500);
        assert!(matches!(node.machine.role(), Role::Suppressing { .. }));
    }
}

/// Told again that it may lead, as all elections are when one of them is barred, a node stood at once after it had resigned;
/// and one that was barred meanwhile led all the same when it came back.
#[test]
fn staying_away_and_being_told_to_observe_are_two_things() {
    let mut node = sticky();
    node.input(1_000, Input::Command(Command::Resign)).unwrap();
    node.input(1_500, Input::Command(Command::Observe(false))).unwrap();
    assert_eq!(node.machine.deadline(), Some((at(10_000), Timer::Return)));
    node.input(2_000, Input::Command(Command::Observe(true))).unwrap();
    node.input(2_500, Input::Command(Command::Observe(false))).unwrap();
    assert_eq!(node.machine.deadline(), Some((at(10_000), Timer::Return)));
    node.input(3_000, Input::Command(Command::Observe(true))).unwrap();
    node.wakes(20_000);
    assert!(matches!(node.machine.role(), Role::Watching { .. }), "{:?}", node.machine.role());
    assert_eq!(node.machine.deadline(), None);
    node.input(21_000, Input::Command(Command::Observe(false))).unwrap();
    assert!(matches!(node.machine.role(), Role::Suppressing { .. }));
}
