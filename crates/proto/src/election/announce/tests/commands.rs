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
