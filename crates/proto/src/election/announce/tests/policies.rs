//! The policies one by one: criteria, tenure, goodbyes, questions, periods.

use super::*;

const HARD: Rules = Rules::Hardened;

fn claimed(message: Message, claim: Claim) -> Message {
    let Message::Announce(announcement) = message else { unreachable!("only announcements claim") };
    Message::Announce(Announcement { claim, ..announcement })
}

fn keyed(sequence: u64, epoch: u64, key: u64) -> Message {
    claimed(announce(sequence, epoch), Claim { established: false, key })
}

fn established(sequence: u64, epoch: u64, key: u64) -> Message {
    claimed(announce(sequence, epoch), Claim { established: true, key })
}

fn query(sequence: u64, nonce: u64, key: Option<u64>) -> Message {
    let claim = key.map(|key| Claim { established: false, key });
    Message::Query { sequence, nonce, claim }
}

fn answering(message: Message, nonce: u64) -> Message {
    let Message::Announce(announcement) = message else {
        unreachable!("only announcements answer")
    };
    Message::Announce(Announcement { answers: Some(nonce), ..announcement })
}

/// The key of a node that drew this wait.
fn woke(wait: u64) -> u64 {
    Criterion::Wake.key(Some(ms(wait)))
}

#[test]
fn keys_are_ordered_as_their_criteria() {
    let goodness = [0.0, f64::MIN_POSITIVE, 1e-9, 0.25, 0.5, 0.999, 1.0];
    let keys = goodness.map(|goodness| Criterion::Goodness(goodness).key(None));
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
    assert_eq!(Criterion::Goodness(-0.0).key(None), keys[0], "there is one zero");
    let keys = [900, 300, 1, 0].map(woke);
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
    assert!(Criterion::Wake.key(None) < keys[0], "nothing drawn is worse than any draw");
    assert_eq!(Criterion::Identity.key(Some(ms(5))), 0);
}

#[test]
fn unsound_policies_are_refused_with_their_values() {
    let new = |wait| Config::new(ms(10), Some(ms(30)), wait, HARD);
    let longest = ms(5);
    for lambda in [0.0, -1.0, f64::INFINITY] {
        let error = ConfigError::BadLambda { lambda };
        assert_eq!(new(Suppression::Exponential { longest, lambda }), Err(error));
    }
    for jitter in [-0.1, 1.1] {
        let error = ConfigError::BadJitter { jitter };
        assert_eq!(new(Suppression::Mapped { longest, jitter }), Err(error));
    }
    assert!(new(Suppression::Exponential { longest, lambda: f64::NAN }).is_err());
    assert!(new(Suppression::Mapped { longest, jitter: f64::NAN }).is_err());

    let sound = new(Suppression::None).unwrap();
    assert_eq!(sound.criterion(), Criterion::Identity);
    assert_eq!(sound.tenure(), Tenure::Preemptive);
    assert_eq!((sound.bye(), sound.entry()), (None, Entry::Plain));
    for goodness in [-0.1, 1.1] {
        let error = ConfigError::BadGoodness { goodness };
        assert_eq!(sound.with_criterion(Criterion::Goodness(goodness)), Err(error));
    }
    assert!(sound.with_criterion(Criterion::Goodness(f64::NAN)).is_err());
    for rules in [Rules::AsPublished, Rules::Corrected] {
        let error = ConfigError::StickyNeedsHardened { rules };
        assert_eq!(config(Suppression::None, rules).with_tenure(Tenure::Sticky), Err(error));
    }
    let endless = Config::new(ms(10), None, Suppression::None, HARD).unwrap();
    assert_eq!(endless.with_tenure(Tenure::Sticky), Err(ConfigError::StickyNeedsListen));
    let copies = 0;
    let error = ConfigError::NoByes { copies };
    assert_eq!(sound.with_bye(Bye { copies, spacing: ms(1) }), Err(error));
    let timeout = ms(0);
    for entry in [Entry::Query { timeout }, Entry::SuppressThenQuery { timeout }] {
        assert_eq!(sound.with_entry(entry), Err(ConfigError::QueryZero { timeout }));
    }
}

#[test]
fn the_mapped_wait_falls_with_goodness_and_jitter_blurs_it() {
    let longest = ms(1_000);
    let mut rng = Seed::new(3).rng();
    for (jitter, goodness, least, most) in [
        (0.0, 1.0, 0, 0),
        (0.0, 0.0, 1_000, 1_000),
        (0.0, 0.25, 750, 750),
        (0.2, 0.25, 600, 800),
        (1.0, 0.25, 0, 1_000),
    ] {
        let wait = Suppression::Mapped { longest, jitter };
        let draws: Vec<_> = (0..2_000).map(|_| wait.draw(goodness, &mut rng)).collect();
        assert!(draws.iter().all(|&draw| draw >= ms(least) && draw <= ms(most)), "{wait:?}");
        // Two thousand uniform draws miss a tenth of the range at one end once in 10^91.
        let tenth = ms(most - least).div(10);
        assert!(draws.iter().min().unwrap() <= &(ms(least) + tenth), "{wait:?}");
        assert!(*draws.iter().max().unwrap() + tenth >= ms(most), "{wait:?}");
    }
}

#[test]
fn the_exponential_wait_has_the_mean_of_the_closed_form() {
    let (longest, draws) = (Duration::from_secs(1), 40_000);
    for lambda in [1.0, libm::log(10.0) + 1.0, libm::log(500.0) + 1.0] {
        let wait = Suppression::Exponential { longest, lambda };
        let mut rng = Seed::new(4).rng();
        let drawn: Vec<_> = (0..draws).map(|_| wait.draw(0.0, &mut rng).as_secs_f64()).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(draws);
        let variance =
            drawn.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / f64::from(draws);
        let expected = 1.0 / (1.0 - libm::exp(-lambda)) - 1.0 / lambda;
        let error = libm::sqrt(variance / f64::from(draws));
        assert!((mean - expected).abs() <= 4.0 * error, "{lambda}: {mean} for {expected}");
        assert!(drawn.iter().all(|t| (0.0..=1.0).contains(t)));
    }
}

#[test]
fn the_better_key_leads_and_identity_breaks_ties() {
    for rules in ALL_RULES {
        for (key, id, yields) in [
            (woke(499), 1, true),
            (woke(501), 9, false),
            (woke(500), 9, true),
            (woke(500), 4, false),
        ] {
            let config = config(Suppression::Fixed(ms(500)), rules);
            let mut node =
                Node::with(peer(5, 1), config.with_criterion(Criterion::Wake).unwrap(), None);
            node.start(0);
            node.hears(1, peer(id, 1), keyed(1, 1, key)).unwrap();
            let follows = NodeId::new(if yields { id } else { 5 });
            assert_eq!(node.machine.follows(), Some(follows), "{rules:?} {key} {id}");
        }
    }
}

#[test]
fn a_tenure_keeps_its_key_and_the_next_draws_another() {
    let config =
        config(Suppression::Uniform(ms(900)), HARD).with_criterion(Criterion::Wake).unwrap();
    let mut node = Node::with(peer(5, 1), config, None);
    node.start(0);
    let mut keys = vec![];
    for _ in 0..2 {
        let (due, _) = node.due().unwrap();
        let now = due.as_micros() / 1_000 + 1;
        let sent = [now, now + 1_000].map(|now| match node.wakes(now).pop() {
            Some(Effect::Multicast(Message::Announce(it))) => it.claim.key,
            other => panic!("{other:?}"),
        });
        assert_eq!(sent[0], sent[1], "heartbeats of one tenure");
        keys.push(sent[0]);
        // A better one comes, is followed, and falls silent.
        node.hears(now + 1_500, peer(1, 1), keyed(now, 1_000, u64::MAX)).unwrap();
        assert_eq!(node.machine.key, 0, "a follower has drawn nothing");
        node.wakes(now + 4_500);
        assert!(matches!(node.machine.role(), Role::Suppressing { .. }));
    }
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn a_leader_is_established_after_the_listen_timeout_if_sticky() {
    for (tenure, from) in [(Tenure::Sticky, 3), (Tenure::Preemptive, 99)] {
        let config = config(Suppression::None, HARD).with_tenure(tenure).unwrap();
        let mut node = Node::with(peer(5, 1), config, None);
        node.start(0);
        for beat in 1..6 {
            let claim = Claim { established: beat >= from, key: 0 };
            let said_now = claimed(announce(beat + 1, 1), claim);
            assert_eq!(node.wakes(beat * 1_000), [said(said_now)], "{tenure:?} {beat}");
        }
        node.hears(5_100, peer(9, 1), announce(1, 0)).unwrap();
        let leader = if tenure == Tenure::Sticky { 5 } else { 9 };
        assert_eq!(node.machine.follows(), Some(NodeId::new(leader)));
        node.hears(5_200, peer(9, 1), established(2, 0, 0)).unwrap();
        assert_eq!(node.machine.follows(), Some(NodeId::new(9)), "between two established: rank");
    }
}

#[test]
fn a_follower_knows_its_leader_by_what_it_said_last() {
    let mut node = Node::following(7);
    node.hears(100, peer(8, 1), established(2, 7, 0)).unwrap();
    node.hears(200, peer(9, 1), announce(1, 8)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(8)), "established beats identity");
    node.hears(300, peer(8, 1), announce(3, 9)).unwrap();
    node.hears(400, peer(9, 1), announce(2, 10)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(9)), "no longer established");
}

#[test]
fn a_leader_whose_key_falls_below_ours_is_given_up_at_once() {
    let good = |goodness| Criterion::Goodness(goodness).key(None);
    for (rules, stands) in [(Rules::Corrected, false), (HARD, true)] {
        let config = config(Suppression::Fixed(ms(500)), rules);
        let config = config.with_criterion(Criterion::Goodness(0.5)).unwrap();
        let mut node = Node::with(peer(5, 1), config, None);
        node.start(0);
        node.hears(0, peer(3, 1), keyed(1, 1, good(0.9))).unwrap();
        node.hears(1_000, peer(3, 1), keyed(2, 1, good(0.6))).unwrap();
        assert_eq!(node.due(), Some((at(4_000), Timer::Listen)), "still better than ours");
        node.hears(2_000, peer(4, 1), keyed(1, 1, good(0.7))).unwrap();
        assert_eq!(node.machine.follows(), Some(NodeId::new(4)), "better than its last");
        node.hears(3_000, peer(4, 1), keyed(2, 1, good(0.4))).unwrap();
        let due = if stands { (at(3_500), Timer::Suppress) } else { (at(5_000), Timer::Listen) };
        assert_eq!(node.due(), Some(due), "{rules:?}");
    }
}

fn with_byes(copies: u8, rules: Rules) -> Config {
    config(Suppression::Fixed(ms(500)), rules).with_bye(Bye { copies, spacing: ms(200) }).unwrap()
}

#[test]
fn a_leader_says_goodbye_as_often_as_told_and_others_leave_in_silence() {
    for (rules, epoch) in [(Rules::AsPublished, 0), (Rules::Corrected, 0), (HARD, 1)] {
        let mut node = Node::with(peer(5, 1), with_byes(3, rules), None);
        node.start(0);
        node.wakes(500);
        assert_eq!(node.input(600, Input::Leave), Ok(vec![said(bye(2, epoch))]));
        assert_eq!(node.machine.role(), Role::Leaving { epoch, left: 2 });
        assert_eq!(node.view().why, Why::NotRunning);
        assert_eq!(node.machine.follows(), None);
        assert_eq!(node.due(), Some((at(800), Timer::Bye)));
        assert_eq!(node.input(650, Input::Leave), Ok(vec![]), "already leaving");
        assert_eq!(node.hears(700, peer(8, 1), announce(1, 1)), Err(Rejected::NotRunning));
        assert_eq!(node.wakes(800), [said(bye(3, epoch))]);
        assert_eq!(node.wakes(1_000), [said(bye(4, epoch))]);
        assert_eq!((node.machine.role(), node.due()), (Role::Idle, None));

        let mut silent = Node::with(peer(5, 1), with_byes(3, rules), None);
        silent.start(0);
        assert_eq!(silent.input(1, Input::Leave), Ok(vec![]), "suppressing");
        let mut silent = Node::with(peer(5, 1), with_byes(3, rules), None);
        silent.start(0);
        silent.hears(0, peer(8, 1), announce(1, 1)).unwrap();
        assert_eq!(silent.input(1, Input::Leave), Ok(vec![]), "following");
        assert_eq!((silent.machine.role(), silent.due()), (Role::Idle, None));
    }
}

#[test]
fn only_the_goodbye_of_the_leader_followed_matters() {
    for rules in ALL_RULES {
        let mut node = Node::new(5, Suppression::Fixed(ms(500)), rules);
        node.start(0);
        node.hears(0, peer(8, 1), announce(1, 1)).unwrap();
        node.hears(100, peer(7, 1), bye(1, 1)).unwrap();
        assert_eq!(node.due(), Some((at(3_000), Timer::Listen)), "{rules:?}");
        node.hears(200, peer(8, 1), bye(2, 1)).unwrap();
        assert_eq!(node.due(), Some((at(700), Timer::Suppress)), "{rules:?}");

        let mut at_once = Node::new(5, Suppression::None, rules);
        at_once.start(0);
        at_once.hears(0, peer(8, 1), announce(1, 1)).unwrap();
        let effects = at_once.hears(200, peer(8, 1), bye(2, 1)).unwrap();
        assert!(effects.iter().any(|it| matches!(it, Effect::Multicast(m) if m.is_announcement())));
    }
}

#[test]
fn the_departed_are_not_heard_again_in_that_life() {
    let mut node = Node::following(1);
    node.hears(100, peer(8, 1), bye(2, 1)).unwrap();
    node.hears(100, peer(7, 4), bye(9, 1)).unwrap();
    for (from, sequence) in [(peer(8, 1), 3), (peer(8, 1), u64::MAX), (peer(7, 4), 10)] {
        let before = node.machine.clone();
        let refused = Err(Rejected::Departed { from });
        assert_eq!(node.hears(200, from, announce(sequence, 1)), refused);
        assert_eq!(node.hears(200, from, bye(sequence, 1)), refused);
        assert_eq!(node.machine, before);
    }
    assert_eq!(Rejected::Departed { from: peer(8, 1) }.reason(), "departed");
    node.hears(300, peer(8, 2), announce(1, 5)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(8)), "its next life is welcome");
}

#[test]
fn a_successor_names_whom_it_succeeds_for_as_long_as_anybody_may_wait() {
    let mut node = Node::following(1);
    node.hears(100, peer(8, 1), bye(2, 1)).unwrap();
    let superseding = |sequence, supersedes| {
        let Message::Announce(it) = announce(sequence, 2) else { unreachable!() };
        said(Message::Announce(Announcement { supersedes, ..it }))
    };
    assert_eq!(node.wakes(600), [persisted(2), superseding(1, Some(peer(8, 1)))]);
    for (beat, dead) in [(1, true), (2, true), (3, true), (4, false)] {
        let dead = dead.then_some(peer(8, 1));
        assert_eq!(node.wakes(600 + beat * 1_000), [superseding(1 + beat, dead)]);
    }
}

#[test]
fn a_successor_is_accepted_only_in_place_of_exactly_the_leader_followed() {
    let superseding = |dead| {
        let Message::Announce(it) = announce(1, 2) else { unreachable!() };
        Message::Announce(Announcement { supersedes: Some(dead), ..it })
    };
    for (dead, id, follows) in [
        (peer(8, 1), 6, 6),
        (peer(8, 2), 6, 8),
        (peer(9, 1), 6, 8),
        (peer(6, 1), 6, 8),
        (peer(5, 1), 6, 8),
        // Worse than ourselves: as good as a goodbye, but we stand.
        (peer(8, 1), 3, 5),
    ] {
        let mut node = Node::following(1);
        node.hears(100, peer(id, 1), superseding(dead)).unwrap();
        assert_eq!(node.machine.follows(), Some(NodeId::new(follows)), "{dead} {id}");
        let from = peer(8, 1);
        let late = node.hears(200, from, announce(2, 3));
        let buried = dead == from;
        assert_eq!(late.is_err(), buried, "{dead} {id}");
        let succeeds = (follows == 5).then_some(from);
        assert_eq!(node.machine.succeeds, succeeds, "{dead} {id}");
    }
}

#[test]
fn a_succession_ends_with_the_next_leader_followed() {
    let mut node = Node::following(1);
    node.hears(100, peer(8, 1), bye(2, 1)).unwrap();
    node.hears(200, peer(7, 1), announce(1, 2)).unwrap();
    assert_eq!(node.wakes(3_200), []);
    assert_eq!(node.wakes(3_700), [persisted(3), said(announce(1, 3))], "7 said no goodbye");
}

#[test]
fn a_goodbye_tells_of_its_epoch() {
    let mut successor = Node::following(1);
    successor.hears(100, peer(8, 1), bye(2, 9)).unwrap();
    assert_eq!(successor.wakes(600)[0], persisted(10));

    let mut follower = Node::following(1);
    follower.hears(100, peer(6, 1), bye(1, 9)).unwrap();
    let why = Why::EpochBehind { leader: NodeId::new(8), need: 10 };
    assert_eq!(follower.view(), Leadership::unknown(Mode::Announced, why));
    assert_eq!(follower.due().map(|(_, timer)| timer), Some(Timer::Hint));

    let mut leader = Node::leading(HARD);
    let answer = leader.hears(100, peer(3, 1), bye(1, 9)).unwrap();
    assert_eq!(answer, [persisted(10), said(announce(2, 10))], "outbids it all the same");

    let (from, limit) = (peer(6, 1), Epoch::believable(9));
    let refused = Err(Rejected::ImplausibleEpoch { from: peer(7, 1), found: limit + 1, limit });
    assert_eq!(follower.hears(200, peer(7, 1), bye(1, limit + 1)), refused);
    assert_eq!(follower.hears(200, from, bye(2, 9)), Err(Rejected::Departed { from }));
}

fn asking(rules: Rules) -> Node {
    let config = config(Suppression::Fixed(ms(500)), rules);
    let entry = Entry::Query { timeout: ms(400) };
    Node::with(peer(5, 1), config.with_entry(entry).unwrap(), None)
}

/// The nonce of a node that has just asked.
fn asked(effects: &[Effect<Message, Durable, Event>]) -> u64 {
    match effects {
        [Effect::Multicast(Message::Query { nonce, .. })] => *nonce,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_newcomer_asks_and_claims_if_nobody_answers() {
    for rules in ALL_RULES {
        let mut node = asking(rules);
        let effects = node.start(0);
        assert_eq!(effects, [said(query(1, asked(&effects), Some(0)))], "{rules:?}");
        assert_eq!(node.machine.role(), Role::Querying { since: at(0) });
        assert_eq!(node.due(), Some((at(400), Timer::Query)));
        assert_eq!(node.view().leader.is_none(), rules == HARD);
        assert!(!node.view().settled);
        node.hears(100, peer(3, 1), query(1, 7, Some(0))).unwrap();
        assert_eq!(node.due(), Some((at(400), Timer::Query)), "a worse one that asks too");
        node.wakes(400);
        assert!(matches!(node.machine.role(), Role::Leading { .. }), "{rules:?}");
        assert_eq!(node.due(), Some((at(1_400), Timer::Announce)));
    }
}

#[test]
fn a_better_announcement_or_question_cancels_ours() {
    for rules in ALL_RULES {
        for message in [announce(1, 1), query(1, 7, Some(0))] {
            let mut node = asking(rules);
            node.start(0);
            node.hears(100, peer(8, 1), message).unwrap();
            assert_eq!(node.machine.follows(), Some(NodeId::new(8)));
            if rules != HARD {
                assert_eq!(node.due(), Some((at(3_100), Timer::Listen)), "{rules:?}");
            }
            assert_eq!(node.view().leader.is_none(), rules == HARD, "nobody is proven alive yet");
        }
    }
}

#[test]
fn suppress_then_query_waits_asks_and_then_claims_but_only_on_entering() {
    let entry = Entry::SuppressThenQuery { timeout: ms(400) };
    let config = config(Suppression::Fixed(ms(500)), Rules::Corrected).with_entry(entry).unwrap();
    let mut node = Node::with(peer(5, 1), config, None);
    assert_eq!(node.start(0), []);
    let effects = node.wakes(500);
    assert_eq!(effects, [said(query(1, asked(&effects), Some(0)))]);
    assert_eq!(node.due(), Some((at(900), Timer::Query)));
    assert_eq!(node.wakes(900), [said(plain(2))]);
    node.hears(1_000, peer(8, 1), plain(1)).unwrap();
    node.wakes(4_000);
    assert_eq!(node.wakes(4_500), [said(plain(3))], "no question: it has lost its leader");

    let mut suppressed = Node::with(peer(5, 1), config, None);
    suppressed.start(0);
    suppressed.hears(100, peer(8, 1), query(1, 7, Some(0))).unwrap();
    assert_eq!(suppressed.due(), Some((at(3_100), Timer::Listen)), "cancels everything");
}

#[test]
fn a_leader_answers_at_once_but_once_per_reply_interval() {
    for rules in ALL_RULES {
        let mut node = Node::leading(rules);
        let beat = |sequence| if rules == HARD { announce(sequence, 1) } else { plain(sequence) };
        let answer = node.hears(100, peer(3, 1), query(1, 41, Some(0))).unwrap();
        assert_eq!(answer, [said(answering(beat(2), 41))], "{rules:?}");
        assert_eq!(node.due(), Some((at(1_100), Timer::Announce)), "it was a heartbeat");
        for (now, nonce) in [(150, 42), (200, 43)] {
            let sequence = nonce - 40;
            assert_eq!(node.hears(now, peer(2, 1), query(sequence, nonce, None)), Ok(vec![]));
            assert_eq!(node.due(), Some((at(300), Timer::Reply)));
        }
        assert_eq!(node.wakes(300), [said(answering(beat(3), 43))], "one for both");
        assert_eq!(node.due(), Some((at(1_300), Timer::Announce)));
        let answer = node.hears(500, peer(3, 1), query(4, 44, None)).unwrap();
        assert_eq!(answer, [said(answering(beat(4), 44))], "an interval later");

        node.hears(550, peer(3, 1), query(5, 45, None)).unwrap();
        node.hears(600, peer(8, 1), query(1, 46, Some(0))).unwrap();
        assert_eq!(node.machine.follows(), Some(NodeId::new(8)), "it stands and is better");
        assert_eq!(node.due(), Some((at(3_600), Timer::Listen)), "and owes nobody an answer");
    }
}

#[test]
fn a_newcomer_vouches_for_no_leader_that_may_be_a_recording() {
    let mut node = asking(HARD);
    let nonce = asked(&node.start(0));
    node.hears(100, peer(8, 1), announce(1, 7)).unwrap();
    let unanswered =
        Leadership::unknown(Mode::Announced, Why::Unanswered { leader: NodeId::new(8) });
    assert_eq!(node.view(), unanswered);
    assert_eq!(node.due(), Some((at(400), Timer::Query)), "its question is still out");
    node.hears(200, peer(8, 1), answering(announce(2, 7), nonce ^ 1)).unwrap();
    assert_eq!(node.view(), unanswered, "an answer to another");
    assert_eq!(node.wakes(400), [said(query(2, nonce, None))], "asks again, without standing");
    assert_eq!(node.due(), Some((at(800), Timer::Query)));
    node.hears(450, peer(6, 1), answering(announce(1, 7), nonce)).unwrap();
    assert_eq!(node.view(), unanswered, "proves that 6 is alive, not 8");
    let heard = node.hears(500, peer(8, 1), answering(announce(3, 7), nonce));
    assert_eq!(heard, Ok(vec![persisted(7)]));
    assert_eq!(node.view().epoch, token(7, 8));
    assert_eq!(node.due(), Some((at(3_500), Timer::Listen)), "nothing left to ask");
    node.hears(600, peer(9, 1), announce(1, 8)).unwrap();
    assert_eq!(node.view().epoch, token(8, 9), "has a state by now");
}

#[test]
fn a_survivor_needs_no_answer_to_vouch() {
    let config = *asking(HARD).machine.config();
    let mut node = Node::with(peer(5, 1), config, Some(durable(3)));
    node.start(0);
    node.hears(100, peer(8, 1), announce(1, 7)).unwrap();
    assert_eq!(node.view().epoch, token(7, 8));
}

#[test]
fn one_that_only_asks_is_followed_but_not_vouched_for() {
    let mut node = Node::new(5, Suppression::Fixed(ms(500)), HARD);
    node.start(0);
    node.hears(100, peer(8, 1), query(1, 7, Some(0))).unwrap();
    node.hears(200, peer(3, 1), announce(1, 0)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(8)));
    assert_eq!(node.view().leader, None, "not even under epoch zero");
    assert_eq!(node.due(), Some((at(3_100), Timer::Listen)), "and it is not asked for a token");
    node.hears(500, peer(8, 1), announce(2, 1)).unwrap();
    assert_eq!(node.view().epoch, token(1, 8));
}

#[test]
fn a_leader_that_announces_more_rarely_is_listened_for_longer() {
    for (rules, period, listen) in [
        (HARD, 1_000, 3_000),
        (HARD, 500, 3_000),
        (HARD, 2_000, 6_060),
        (HARD, 0, 3_000),
        (HARD, 1_000_000_000, 3_000 * 64 * 101 / 100),
        (HARD, u64::MAX / 1_000, 3_000 * 64 * 101 / 100),
        (Rules::Corrected, 2_000, 3_000),
    ] {
        let mut node = Node::new(5, Suppression::Fixed(ms(500)), rules);
        node.start(0);
        let it = Announcement { sequence: 1, epoch: 1, period: ms(period), ..Default::default() };
        node.hears(0, peer(8, 1), Message::Announce(it)).unwrap();
        assert_eq!(node.due(), Some((at(listen), Timer::Listen)), "{rules:?} {period}");
    }
}

#[test]
fn only_announcements_count_as_such() {
    assert!(announce(1, 1).is_announcement() && answering(announce(1, 1), 7).is_announcement());
    for other in [hint(1, 1), bye(1, 1), query(1, 1, Some(1)), query(1, 1, None)] {
        assert!(!other.is_announcement(), "{other:?}");
    }
}
