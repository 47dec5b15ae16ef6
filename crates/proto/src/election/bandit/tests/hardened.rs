//! Terms and votes.

use super::*;

fn vote(term: u64) -> Message {
    Message::Vote { term }
}

fn votes(sent: &Sent) -> Vec<(usize, u64)> {
    let cast = |(to, message): &(Option<NodeId>, Message)| match message {
        Message::Vote { term } => Some((to.unwrap().get() as usize, *term)),
        _ => None,
    };
    sent.iter().filter_map(cast).collect()
}

/// Everybody's lease has run out: all share a list in term 1.
fn started(nodes: &mut Nodes) -> Time {
    let now = ms(2_000);
    for node in 0..nodes.nodes.len() {
        let sent = nodes.timeout(node, now);
        assert!(matches!(sent[..], [(None, Message::ShareCandidate { term: 1, .. })]), "{sent:?}");
    }
    now
}

#[test]
fn tv_22_three_lists_that_differ_elect_one() {
    let config = greedy(Profile::Hardened).with_candidates(1).unwrap();
    let means = [[0.1, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.1]];
    let mut nodes = Nodes::new(3, config).believing(&[&means[0], &means[1], &means[2]]);
    let now = started(&mut nodes);
    nodes.hear(0, now, 1, &share(1, &[1]));
    nodes.hear(1, now, 2, &share(1, &[2]));
    nodes.hear(2, now, 0, &share(1, &[0]));
    let later = now + Duration::from_millis(300);
    assert_eq!(votes(&nodes.timeout(0, later)), [], "its own");
    assert_eq!(votes(&nodes.timeout(1, later)), []);
    let sent = nodes.timeout(2, later);
    assert_eq!(votes(&sent), [(0, 1)]);
    assert_eq!(
        nodes.disks[2].as_ref().map(|disk| (disk.term, disk.voted_for)),
        Some((1, Some(id(0))))
    );
    let sent = nodes.hear(0, later, 2, &vote(1));
    assert_eq!(sent, [(None, Message::ConfirmElection { term: 1, voters: list(&[0, 2]) })]);
    assert!(nodes.leads(0) && !nodes.leads(1));
}

#[test]
fn tv_23_a_vote_is_on_disk_before_it_is_sent_and_is_not_cast_again() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    let now = started(&mut nodes);
    nodes.hear(2, now, 0, &share(1, &[0, 1]));
    let mut out = Outbox::new();
    let later = now + Duration::from_millis(300);
    nodes.nodes[2].handle(later, Input::Timeout, &mut out).unwrap();
    let effects: Vec<EffectOf<Bandit>> = core::iter::from_fn(|| out.pop()).collect();
    let persisted = effects.iter().position(|effect| matches!(effect, Effect::Persist(_)));
    let sent = effects.iter().position(|effect| matches!(effect, Effect::Send { .. }));
    assert!(persisted.unwrap() < sent.unwrap(), "{effects:?}");
    let Some(Effect::Persist(disk)) = effects.into_iter().nth(persisted.unwrap()) else { panic!() };
    // Back from a crash, it has a vote in term 1 and will not be talked into another.
    let reborn = Peer::new(id(2), Boot::new(2));
    let config = greedy(Profile::Hardened);
    let seed = Seed::new(1);
    nodes.nodes[2] = Bandit::new(reborn, members(3), config, seed, Some(disk));
    nodes.input(2, later, Input::Start);
    let sent = nodes.hear(2, later, 1, &share(1, &[1, 2]));
    assert!(
        matches!(sent[..], [(Some(_), Message::TermHint { term: 1, leader: None })]),
        "{sent:?}"
    );
    let sent = nodes.timeout(2, later + Duration::from_secs(2));
    assert!(matches!(sent[..], [(None, Message::ShareCandidate { term: 2, .. })]), "{sent:?}");
}

#[test]
fn without_its_disk_a_node_begins_above_its_past() {
    let config = greedy(Profile::Hardened);
    for (boot, term) in [(1, 0), (2, 1 << 32), (u64::MAX, ((1_u64 << 31) - 1) << 32)] {
        let me = Peer::new(id(1), Boot::new(boot));
        let node = Bandit::new(me, members(3), config, Seed::new(1), None);
        assert_eq!(node.ballot(), Some((term, None)));
    }
}

#[test]
fn a_lone_node_raises_no_term() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    let mut now = started(&mut nodes);
    for _ in 0..20 {
        now = nodes.nodes[0].deadline().unwrap().0;
        for (to, message) in nodes.timeout(0, now) {
            assert!(to.is_none() && matches!(message, Message::ShareCandidate { term: 1, .. }));
        }
    }
    assert_eq!(nodes.nodes[0].ballot(), Some((0, None)));
    assert!(now > ms(10_000), "more and more patiently: {now}");
}

#[test]
fn whoever_led_and_fell_silent_is_not_elected_in_its_own_place() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened)).believing(&[[0.5, 0.1, 0.9]; 3]);
    nodes.hear(0, ms(10), 1, &Message::Heartbeat { term: 4 });
    assert_eq!(nodes.leader(0), Some(1));
    let late = ms(2_010);
    let sent = nodes.timeout(0, late);
    assert!(
        matches!(&sent[..], [(None, Message::ShareCandidate { term: 5, list })] if list[..] == list_of(&[0, 2])),
        "{sent:?}"
    );
    // If it was only slow and takes part, it has its own point of view, and the lower number breaks the tie.
    nodes.hear(0, late, 1, &share(5, &[1, 0]));
    let sent = nodes.hear(0, late, 2, &share(5, &[1, 0]));
    assert_eq!(votes(&sent), [], "itself, not 1");
    assert_eq!(nodes.nodes[0].ballot(), Some((5, Some(id(0)))));
}

fn list_of(names: &[usize]) -> Vec<NodeId> {
    list(names)
}

#[test]
fn while_the_leader_lives_nobody_is_joined_but_lists_are_kept() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    nodes.hear(0, ms(10), 1, &Message::Heartbeat { term: 1 });
    assert_eq!(nodes.hear(0, ms(2_000), 2, &share(2, &[2, 0])), [], "its lease runs on");
    let sent = nodes.timeout(0, ms(2_010));
    assert!(matches!(sent[..], [(None, Message::ShareCandidate { term: 2, .. })]));
    let sent = nodes.hear(0, ms(2_015), 1, &share(2, &[2, 0]));
    assert_eq!(votes(&sent), [(2, 2)], "all three lists are in");
}

#[test]
fn a_leader_without_a_majority_stops_leading() {
    let mut nodes = Nodes::new(5, greedy(Profile::Hardened));
    let now = ms(100);
    for from in [1, 2] {
        nodes.hear(0, now, from, &vote(3));
    }
    assert!(!nodes.leads(0));
    nodes.hear(0, now, 2, &vote(3));
    assert!(!nodes.leads(0), "the same vote again");
    nodes.hear(0, now, 3, &vote(3));
    assert!(nodes.leads(0));
    // Two answers a while keep it; one does not.
    for second in 1..6 {
        let at = now + Duration::from_secs(second);
        nodes.timeout(0, at);
        nodes.hear(0, at, 1, &Message::HeartbeatAck { term: 3 });
        nodes.hear(0, at, 4, &Message::HeartbeatAck { term: 3 });
    }
    assert!(nodes.leads(0));
    for second in 6..9 {
        let at = now + Duration::from_secs(second);
        nodes.timeout(0, at);
        nodes.hear(0, at, 1, &Message::HeartbeatAck { term: 3 });
    }
    assert_eq!(nodes.leader(0), None);
}

#[test]
fn word_of_a_higher_term_ends_a_leadership_and_of_a_lower_one_is_answered() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    for from in [1, 2] {
        nodes.hear(0, ms(100), from, &vote(3));
    }
    assert!(nodes.leads(0));
    let sent = nodes.hear(0, ms(101), 1, &Message::Heartbeat { term: 2 });
    assert_eq!(sent, [(Some(id(1)), Message::TermHint { term: 3, leader: Some(peer(0)) })]);
    assert!(nodes.leads(0));
    nodes.hear(0, ms(102), 1, &Message::TermHint { term: 7, leader: None });
    assert_eq!(nodes.leader(0), None);
    assert_eq!(nodes.nodes[0].ballot(), Some((7, None)));
    nodes.hear(0, ms(103), 1, &Message::ConfirmElection { term: 8, voters: list(&[1, 2]) });
    assert_eq!(nodes.leader(0), Some(1));
}

#[test]
fn a_confirmation_without_a_majority_is_refused() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    let message = &Message::ConfirmElection { term: 8, voters: list(&[1, 9, 1]) };
    let from = peer(1);
    let input = Input::Message { from, via: from.id, message };
    let refused = nodes.nodes[0].handle(ms(1), input, &mut Outbox::new());
    assert_eq!(refused, Err(Rejected::Unsolicited { from }));
    assert_eq!(nodes.leader(0), None);
}

#[test]
fn a_winner_that_does_not_confirm_is_not_tried_again_at_once() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened)).believing(&[[0.5, 0.1, 0.9]; 3]);
    let now = started(&mut nodes);
    nodes.hear(0, now, 2, &share(1, &[1, 0]));
    let sent = nodes.hear(0, now, 1, &share(1, &[1, 0]));
    assert_eq!(votes(&sent), [(1, 1)]);
    let half = now + Duration::from_millis(200);
    assert_eq!(votes(&nodes.timeout(0, half)), [(1, 1)], "once more, should it be lost");
    nodes.timeout(0, now + Duration::from_millis(400));
    let (stand, why) = nodes.nodes[0].deadline().unwrap();
    assert_eq!(why, Timer::Stand);
    let sent = nodes.timeout(0, stand);
    assert!(
        matches!(&sent[..], [(None, Message::ShareCandidate { term: 2, list })] if list[..] == list_of(&[0, 2])),
        "{sent:?}"
    );
    nodes.hear(0, stand, 1, &share(2, &[1, 0]));
    nodes.hear(0, stand, 2, &share(2, &[1, 0]));
    assert_eq!(
        nodes.nodes[0].ballot(),
        Some((2, Some(id(0)))),
        "as many points as 1, and the lower number"
    );
}

#[test]
fn a_hint_takes_a_vote_of_an_older_term_off_the_table() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened)).believing(&[[0.5, 0.1, 0.9]; 3]);
    let now = started(&mut nodes);
    nodes.hear(0, now, 2, &share(1, &[1, 0]));
    nodes.hear(0, now, 1, &share(1, &[1, 0]));
    nodes.hear(0, now, 2, &Message::TermHint { term: 5, leader: None });
    let sent = nodes.timeout(0, now + Duration::from_millis(200));
    assert_eq!(votes(&sent), [], "no vote of term 1 is sent as one of term 5");
}

#[test]
fn a_node_is_sampled_once_an_interval_and_at_its_worst() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened)).believing(&[[0.5, 0.5, 0.5]; 3]);
    for at in 1..50 {
        nodes.hear(0, ms(at), 1, &Message::HeartbeatAck { term: 0 });
    }
    assert_eq!(nodes.nodes[0].estimates().total(), 0);
    nodes.nodes[0].common.missed(1);
    nodes.nodes[0].common.heard(1);
    nodes.timeout(0, Time::ZERO + Duration::from_secs(30));
    let means: Vec<f64> = nodes.nodes[0].estimates().arms().iter().map(|arm| arm.mean).collect();
    assert_eq!(means, [0.25, 0.75, 0.5], "itself up, node 1 down once, nothing of node 2");
}

#[test]
fn what_was_learnt_survives_and_being_away_counts() {
    let config = greedy(Profile::Hardened);
    let beliefs = vec![
        Belief { id: id(0), mean: 0.5, weight: 3 },
        Belief { id: id(1), mean: 0.2, weight: 9 },
    ];
    let disk = Durable { term: 4, voted_for: None, beliefs };
    let node = Bandit::new(peer(0), members(3), config, Seed::new(1), Some(disk));
    let arm = |place| (node.estimates().arm(place).mean, node.estimates().arm(place).weight);
    assert_eq!((arm(0), arm(1)), ((0.625, 4), (0.2, 9)));
}

#[test]
fn whoever_resigns_says_so_and_another_is_elected_at_once() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    for from in [1, 2] {
        nodes.hear(0, ms(100), from, &vote(3));
    }
    nodes.hear(1, ms(101), 0, &Message::Heartbeat { term: 3 });
    let sent = nodes.input(0, ms(200), Input::Command(Command::Resign));
    assert_eq!(sent, [(None, Message::Resigned { term: 3 })]);
    assert_eq!(nodes.leader(0), None);
    let sent = nodes.hear(1, ms(201), 0, &sent[0].1);
    assert!(matches!(sent[..], [(None, Message::ShareCandidate { term: 4, .. })]), "{sent:?}");
}

#[test]
fn a_membership_that_buries_the_leader_is_believed_once_its_heartbeats_stay_away() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    let (failed, heartbeat) = (Feed::Failed(peer(0)), Message::Heartbeat { term: 3 });
    nodes.hear(1, ms(101), 0, &heartbeat);
    nodes.input(1, ms(102), Input::Feed(Feed::Failed(Peer::new(id(0), Boot::new(9)))));
    assert_eq!(nodes.leader(1), Some(0), "another life");
    assert!(nodes.input(1, ms(103), Input::Feed(failed)).is_empty());
    nodes.hear(1, ms(1_101), 0, &heartbeat);
    nodes.input(1, ms(2_101), Input::Timeout);
    assert_eq!(nodes.leader(1), Some(0), "it was heard since");
    assert!(nodes.input(1, ms(2_102), Input::Feed(failed)).is_empty());
    let sent = nodes.input(1, ms(3_101), Input::Timeout);
    assert!(matches!(sent[..], [(None, Message::ShareCandidate { term: 4, .. })]), "{sent:?}");
    // Whoever was silent for as long by then is given up at once.
    nodes.hear(2, ms(101), 0, &heartbeat);
    let sent = nodes.input(2, ms(2_101), Input::Feed(failed));
    assert!(matches!(sent[..], [(None, Message::ShareCandidate { term: 4, .. })]), "{sent:?}");
}

#[test]
fn somebody_who_is_no_member_listens() {
    let config = greedy(Profile::Hardened);
    let mut guest = Bandit::new(peer(7), members(3), config, Seed::new(1), None);
    let mut out = Outbox::new();
    guest.handle(Time::ZERO, Input::Start, &mut out).unwrap();
    let from = peer(1);
    let message = &Message::Heartbeat { term: 2 };
    guest.handle(ms(1), Input::Message { from, via: from.id, message }, &mut out).unwrap();
    assert_eq!(guest.leadership().leader, Some(id(1)));
    guest.handle(ms(5_000), Input::Timeout, &mut out).unwrap();
    assert_eq!(guest.leadership().leader, None);
    let shared =
        core::iter::from_fn(|| out.pop()).any(|effect| matches!(effect, Effect::Multicast(_)));
    assert!(!shared, "it elects nobody");
}

#[test]
fn requests_are_served_once_led_and_silence_about_one_is_suspicious() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    for from in [1, 2] {
        nodes.hear(0, ms(100), from, &vote(3));
    }
    let client = 99;
    let sent = nodes.hear(0, ms(110), client, &request(4, 0));
    let of = Request { client: id(client), number: 4 };
    let broadcast = Message::RequestBroadcast { request: of, term: 3 };
    assert_eq!(
        sent,
        [(Some(id(client)), Message::Reply { number: 4, term: 3 }), (None, broadcast.clone())]
    );
    let sent = nodes.hear(1, ms(111), 0, &broadcast);
    assert_eq!(sent, [(Some(id(0)), Message::ReplyBroadcast { request: of, term: 3 })]);
    assert_eq!(nodes.hear(1, ms(112), client, &request(4, 1)), [], "seen");
    nodes.hear(1, ms(113), client, &request(5, 1));
    assert_eq!(nodes.nodes[1].deadline().unwrap().1, Timer::Suspect);
    assert!(!nodes.nodes[1].leadership().settled);
    let sent = nodes.timeout(1, ms(1_113));
    assert!(matches!(sent[..], [(None, Message::ShareCandidate { term: 4, .. })]), "{sent:?}");
}

/// Two that have given up on each other still count alike: lists decide, and nothing that only one of them knows.
#[test]
fn those_who_distrust_each_other_agree_on_a_winner() {
    let mut nodes = Nodes::new(2, greedy(Profile::Hardened));
    let now = ms(2_000);
    for (node, other) in [(0, 1), (1, 0)] {
        nodes.hear(node, ms(1), other, &Message::Heartbeat { term: node as u64 + 1 });
    }
    let lists: Vec<Sent> =
        (0..2).map(|node| nodes.timeout(node, now + Duration::from_millis(1))).collect();
    assert!(
        matches!(&lists[0][..], [(None, Message::ShareCandidate { list, .. })] if list[..] == list_of(&[0, 1]))
    );
    assert!(
        matches!(&lists[1][..], [(None, Message::ShareCandidate { list, .. })] if list[..] == list_of(&[1, 0]))
    );
    let now = now + Duration::from_millis(20);
    // Node 0 joins the higher term and both have both lists.
    let joined = nodes.hear(0, now, 1, &lists[1][0].1);
    let answer = joined.iter().find(|(to, _)| to.is_none()).unwrap();
    let sent = nodes.hear(1, now, 0, &answer.1);
    assert_eq!(votes(&sent), [(0, 3)]);
    assert_eq!(nodes.nodes[0].ballot(), Some((3, Some(id(0)))));
}

#[test]
fn whoever_does_not_stand_votes_and_is_not_elected() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened)).believing(&[[0.9, 0.1, 0.5]; 3]);
    nodes.input(1, ms(1), Input::Command(Command::Observe(true)));
    let now = ms(2_000);
    let lists: Vec<Sent> = (0..3).map(|node| nodes.timeout(node, now)).collect();
    assert_eq!(lists[1], [(None, share(1, &[]))], "there, without a wish to lead");
    for (to, from) in [(0, 1), (0, 2), (1, 0), (1, 2)] {
        nodes.hear(to, now, from, &lists[from][0].1);
    }
    // All believe 1 to be the best.
    assert_eq!(nodes.nodes[0].ballot(), Some((1, Some(id(2)))));
    assert_eq!(nodes.nodes[1].ballot(), Some((1, Some(id(2)))));
    // Not even by mistake.
    for from in [0, 2] {
        nodes.hear(1, now, from, &vote(1));
    }
    assert_eq!(nodes.leader(1), None);
    nodes.hear(1, now, 2, &Message::Heartbeat { term: 1 });
    assert_eq!(nodes.leader(1), Some(2));
}

#[test]
fn where_nobody_stands_nobody_is_voted_for_and_no_term_is_used_up() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    nodes.input(0, ms(1), Input::Command(Command::Observe(true)));
    let now = ms(2_000);
    nodes.timeout(0, now);
    nodes.hear(0, now, 1, &share(1, &[]));
    nodes.hear(0, now, 2, &share(1, &[]));
    assert_eq!(nodes.nodes[0].ballot(), Some((0, None)));
    let (again, why) = nodes.nodes[0].deadline().unwrap();
    assert_eq!(why, Timer::Stand);
    assert_eq!(nodes.timeout(0, again), [(None, share(1, &[]))]);
}

#[test]
fn a_leader_that_is_told_not_to_stand_resigns() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened));
    for from in [1, 2] {
        nodes.hear(0, ms(100), from, &vote(3));
    }
    let sent = nodes.input(0, ms(200), Input::Command(Command::Observe(true)));
    assert_eq!(sent, [(None, Message::Resigned { term: 3 })]);
}

/// Of three, of which 0 leads: at `at` seconds all take samples.
fn objecting(tenure: u64, margin: f64, cost: f64) -> (Nodes, Time) {
    let config = greedy(Profile::Hardened);
    let config = config.with_tenure(Duration::from_secs(tenure), Some(margin)).unwrap();
    let mut nodes = Nodes::new(3, config).believing(&[[cost, 0.0, 0.9]; 3]);
    for node in 0..3 {
        // Somebody nothing was seen of is not better than anybody.
        nodes.nodes[node].common.chooser.estimates.sample(1, 0.0);
    }
    let now = ms(29_000);
    nodes.hear(0, now, 1, &vote(3));
    nodes.hear(0, now, 2, &vote(3));
    for node in [1, 2] {
        nodes.hear(node, now, 0, &Message::Heartbeat { term: 3 });
    }
    (nodes, ms(30_000))
}

fn objections(sent: &Sent) -> usize {
    sent.iter().filter(|(_, message)| matches!(message, Message::Objection { .. })).count()
}

#[test]
fn a_leader_makes_way_to_somebody_clearly_better_if_a_majority_says_so() {
    let (mut nodes, now) = objecting(0, 0.2, 0.8);
    assert_eq!(nodes.timeout(2, now), [(Some(id(0)), Message::Objection { term: 3 })]);
    nodes.hear(0, now, 2, &Message::Objection { term: 2 });
    let alone = nodes.timeout(0, now);
    assert!(alone.iter().all(|(_, message)| !matches!(message, Message::Resigned { .. })));
    assert!(nodes.leads(0), "its own doubt, and one of another term");
    for beat in 31..60 {
        let at = ms(beat * 1_000 - 1);
        nodes.hear(0, at, 1, &Message::HeartbeatAck { term: 3 });
        nodes.timeout(0, at);
    }
    nodes.nodes[0].common.costs(0, 1.0);
    nodes.hear(0, ms(59_900), 2, &Message::Objection { term: 3 });
    let sent = nodes.timeout(0, ms(60_000));
    assert!(sent.contains(&(None, Message::Resigned { term: 3 })), "{sent:?}");
}

#[test]
fn tenure_and_margin_keep_a_leader_in_office() {
    let (mut nodes, now) = objecting(0, 0.2, 0.15);
    assert_eq!(objections(&nodes.timeout(2, now)), 0, "not clearly better");
    let (mut nodes, now) = objecting(60, 0.2, 0.8);
    nodes.hear(0, now, 2, &Message::Objection { term: 3 });
    nodes.hear(0, now, 1, &Message::Objection { term: 3 });
    nodes.timeout(0, now);
    assert!(nodes.leads(0), "not yet");
}

#[test]
fn evidence_from_outside_is_sampled_like_silence() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened)).believing(&[[0.0; 3]; 3]);
    let mean = |nodes: &Nodes, of: usize| nodes.nodes[0].estimates().arm(of).mean;
    nodes.input(0, ms(1), Input::Feed(Feed::Suspected(peer(1))));
    let none = nodes.input(0, ms(1), Input::Feed(Feed::Reported { id: id(2), percent: 80 }));
    assert_eq!(none, [], "what we hold against others we tell nobody");
    nodes.timeout(0, ms(30_000));
    assert_eq!([mean(&nodes, 1), mean(&nodes, 2)], [0.25, 0.4]);
    let said = nodes.input(0, ms(30_001), Input::Feed(Feed::Reported { id: id(0), percent: 250 }));
    assert_eq!(said, [(None, Message::Admission { percent: 100 })]);
    nodes.hear(1, ms(30_001), 0, &said[0].1);
    nodes.timeout(1, ms(30_002));
    assert_eq!(nodes.nodes[1].estimates().arm(0).mean, 0.5, "one sample, and a prior of 0");
}

#[test]
fn being_away_costs_every_interval_and_a_crash_costs_one() {
    let mut nodes = Nodes::new(3, greedy(Profile::Hardened)).believing(&[[0.0; 3]; 3]);
    let arm = |nodes: &Nodes| {
        let arm = nodes.nodes[0].estimates().arm(1);
        (arm.mean * arm.weight as f64, arm.samples)
    };
    nodes.input(0, ms(1), Input::Feed(Feed::Up(peer(1))));
    nodes.input(0, ms(1), Input::Feed(Feed::Failed(peer(1))));
    for at in [30_000, 60_000, 90_000] {
        nodes.timeout(0, ms(at));
    }
    assert_eq!(arm(&nodes), (3.0, 3));
    assert!(nodes.nodes[0].opinions().last().is_some_and(|worst| worst.id == id(1) && worst.out));
    // Back, in a new life: the interval is marred. So is the next by one that nobody saw die.
    let life = |boot| Feed::Up(Peer::new(id(1), Boot::new(boot)));
    nodes.input(0, ms(90_001), Input::Feed(life(2)));
    assert!(nodes.nodes[0].opinions().iter().all(|opinion| !opinion.out));
    nodes.timeout(0, ms(120_000));
    nodes.input(0, ms(120_001), Input::Feed(life(3)));
    nodes.input(0, ms(120_002), Input::Feed(life(2)));
    nodes.timeout(0, ms(150_000));
    assert_eq!(arm(&nodes), (5.0, 5));
    // Who says goodbye has not crashed.
    let left = Feed::Left(Peer::new(id(1), Boot::new(3)));
    nodes.input(0, ms(150_001), Input::Feed(left));
    nodes.input(0, ms(150_002), Input::Feed(life(4)));
    nodes.timeout(0, ms(180_000));
    assert_eq!(arm(&nodes), (5.0, 6), "it was there, and nothing was wrong");
}

#[test]
fn what_was_forgotten_does_not_come_back_with_a_restart() {
    let config = Config::new(Profile::Hardened, Policy::Thompson { discount: 0.5 });
    let mut nodes = Nodes::new(3, config.with_pings(None).unwrap());
    for at in 1..=20 {
        if at <= 10 {
            nodes.nodes[0].common.missed(1);
        } else {
            nodes.nodes[0].common.heard(1);
        }
        nodes.timeout(0, ms(at * 30_000));
    }
    let belief = nodes.disks[0].as_ref().unwrap().beliefs[1];
    assert!(belief.mean < 0.01 && belief.weight <= 3, "{belief:?}");
    let disk = nodes.disks[0].clone();
    let again = Bandit::new(peer(0), members(3), config, Seed::new(1), disk);
    let cost = |node: &Bandit| node.common.chooser.cost(1);
    assert!((cost(&again) - cost(&nodes.nodes[0])).abs() < 0.01);
}
