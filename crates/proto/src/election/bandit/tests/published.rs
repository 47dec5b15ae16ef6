//! The text and the program, right and wrong as they are.

use super::*;

/// All lists shared at `now` by those who heard the client; what is sent is not delivered.
fn called(nodes: &mut Nodes, who: &[usize], now: Time) -> Vec<Sent> {
    let suspect = nodes.nodes[0].config().waits().suspect;
    let mut sent = Vec::new();
    for &node in who {
        let mut first = nodes.hear(node, now, CLIENT, &request(1, 1));
        first.extend(nodes.timeout(node, now + suspect));
        sent.push(first);
    }
    sent
}

const CLIENT: usize = 99;

fn shared(sent: &Sent) -> Vec<usize> {
    let list = sent.iter().find_map(|(to, message)| match message {
        Message::ShareCandidate { list, .. } if to.is_none() => Some(list),
        _ => None,
    });
    list.expect("a list").iter().map(|node| node.get() as usize).collect()
}

fn confirms(sent: &Sent) -> bool {
    sent.iter().any(|(_, message)| matches!(message, Message::ConfirmElection { .. }))
}

/// Each of `who` hears the lists of those named for it and counts them.
fn tallied(
    nodes: &mut Nodes,
    who: &[usize],
    lists: &[Vec<usize>],
    heard: &[&[usize]],
    now: Time,
) -> Vec<usize> {
    let mut confirmed = Vec::new();
    for (&node, others) in who.iter().zip(heard) {
        for &other in *others {
            let place = who.iter().position(|&one| one == other).unwrap();
            nodes.hear(node, now, other, &share(now.as_micros(), &lists[place]));
        }
        let collect = nodes.nodes[node].config().waits().collect;
        if confirms(&nodes.timeout(node, now + collect)) {
            confirmed.push(node);
        }
    }
    confirmed
}

#[test]
fn tv_20_two_lead_at_once_though_nobody_failed_but_the_leader() {
    for (length, beliefs) in [
        (1, [[0.9, 0.1, 0.5, 0.5, 0.5], [0.9, 0.5, 0.1, 0.5, 0.5]]),
        (2, [[0.9, 0.1, 0.9, 0.2, 0.9], [0.9, 0.9, 0.1, 0.9, 0.2]]),
    ] {
        let config = greedy(Profile::Published).with_candidates(length).unwrap();
        let [one, two] = beliefs;
        let mut nodes = Nodes::new(5, config).believing(&[&one, &one, &two, &one, &two]);
        let who = [1, 2, 3, 4];
        let lists: Vec<Vec<usize>> = called(&mut nodes, &who, ms(1)).iter().map(shared).collect();
        let heard: [&[usize]; 4] = [&[3, 4], &[3, 4], &[1, 2], &[1, 2]];
        let confirmed = tallied(&mut nodes, &who, &lists, &heard, ms(1_010));
        assert_eq!(confirmed, [1, 2], "both lead, lists of {length}");
    }
}

#[test]
fn tv_21_nobody_leads_though_all_are_alive() {
    let (one, two) = ([0.9, 0.1, 0.5, 0.5, 0.5], [0.9, 0.5, 0.1, 0.5, 0.5]);
    let config = greedy(Profile::Published).with_candidates(1).unwrap();
    let mut nodes = Nodes::new(5, config).believing(&[&one, &two, &one, &one, &two]);
    let who = [1, 2, 3, 4];
    let lists: Vec<Vec<usize>> = called(&mut nodes, &who, ms(1)).iter().map(shared).collect();
    assert_eq!(lists, [[2], [1], [1], [2]]);
    let heard: [&[usize]; 4] = [&[3, 4], &[3, 4], &[1, 2], &[1, 2]];
    assert_eq!(tallied(&mut nodes, &who, &lists, &heard, ms(1_010)), [] as [usize; 0]);
    // P-4: whoever waits in vain tries again.
    let again = nodes.timeout(1, ms(1_010) + Duration::from_secs(3));
    assert_eq!(shared(&again).len(), 1);
}

#[test]
fn tv_22_a_false_suspicion_makes_two_leaders_of_three() {
    let config = greedy(Profile::Published).with_candidates(1).unwrap();
    let means = [[0.1, 0.5, 0.5], [0.5, 0.1, 0.5], [0.5, 0.5, 0.1]];
    let mut nodes = Nodes::new(3, config).believing(&[&means[0], &means[1], &means[2]]);
    let started = called(&mut nodes, &[1, 2], ms(1));
    // Node 0, which leads, joins at the first list it hears.
    let joined = nodes.hear(0, ms(1_002), 1, &started[0].last().unwrap().1);
    let lists = vec![shared(&joined), shared(&started[0]), shared(&started[1])];
    assert_eq!(lists, [[0], [1], [2]]);
    let heard: [&[usize]; 3] = [&[], &[2], &[0]];
    assert_eq!(tallied(&mut nodes, &[0, 1, 2], &lists, &heard, ms(1_010)), [0, 1]);
}

#[test]
fn tv_24_a_fast_clock_blocks_all_later_elections() {
    let mut nodes = Nodes::new(5, greedy(Profile::Published));
    let confirm =
        |seconds: u64| Message::ConfirmElection { term: seconds * 1_000_000, voters: vec![] };
    nodes.hear(2, ms(100_000), 3, &confirm(160));
    assert_eq!(nodes.leader(2), Some(3));
    nodes.hear(2, ms(110_000), 1, &confirm(110));
    assert_eq!(nodes.leader(2), Some(3), "though that one is dead");
    nodes.hear(2, ms(160_001), 1, &confirm(161));
    assert_eq!(nodes.leader(2), Some(1));
}

#[test]
fn tv_19_dle_takes_the_next_number_round_and_round() {
    // Leader 0 and its successor are down; the others count on.
    let next = Config::new(Profile::Published, Policy::Next);
    let mut nodes = Nodes::new(5, next);
    for node in [2, 3, 4] {
        nodes.hear(node, ms(1), CLIENT, &request(1, 1));
        assert!(!confirms(&nodes.timeout(node, ms(1_001))), "1 would be next");
    }
    assert!(confirms(&nodes.timeout(2, ms(3_001))), "the second round");
    assert!(!confirms(&nodes.timeout(3, ms(3_001))));
    let mut nodes = Nodes::new(5, next);
    for node in 0..4 {
        nodes.hear(node, ms(1), 4, &Message::ConfirmElection { term: 1_000, voters: vec![] });
    }
    nodes.hear(0, ms(10), CLIENT, &request(1, 1));
    assert!(confirms(&nodes.timeout(0, ms(1_010))), "after the last comes the first");
}

#[test]
fn the_program_goes_by_the_clients_count() {
    let mut nodes = Nodes::new(5, Config::new(Profile::Reference, Policy::Next));
    assert!(!confirms(&nodes.hear(2, ms(1), CLIENT, &request(1, 1))));
    assert!(confirms(&nodes.hear(2, ms(2), CLIENT, &request(1, 2))), "0 + 2");
}

/// TV-25: `a(N - 1)` lists and `N - 1` confirmations.
#[test]
fn tv_25_messages_of_one_round() {
    for (count, participants, expected) in [(5, 3, 16), (11, 6, 70), (23, 12, 286)] {
        let mut nodes = Nodes::new(count, greedy(Profile::Published));
        let means: Vec<f64> =
            (0..count).map(|node| if node < 2 { 0.9 } else { 0.01 * node as f64 }).collect();
        nodes = nodes.believing(&vec![&means[..]; count]);
        let who: Vec<usize> = (2..2 + participants).collect();
        let lists: Vec<Vec<usize>> = called(&mut nodes, &who, ms(1)).iter().map(shared).collect();
        let mut messages = who.len() * (count - 1);
        let heard: Vec<Vec<usize>> = who
            .iter()
            .map(|&node| who.iter().copied().filter(|&other| other != node).collect())
            .collect();
        let heard: Vec<&[usize]> = heard.iter().map(Vec::as_slice).collect();
        let confirmed = tallied(&mut nodes, &who, &lists, &heard, ms(1_010));
        assert_eq!(confirmed, [2], "the best of those alive");
        messages += confirmed.len() * (count - 1);
        assert_eq!(messages, expected);
    }
}

#[test]
fn the_program_passes_over_the_failed_leader_and_breaks_ties_upwards() {
    let config = greedy(Profile::Reference);
    let means = [0.01, 0.3, 0.02, 0.4, 0.5];
    let mut nodes = Nodes::new(5, config).believing(&[means; 5]);
    let who = [1, 2, 3];
    let lists: Vec<Vec<usize>> = called(&mut nodes, &who, ms(1)).iter().map(shared).collect();
    // The failed leader's estimate has risen to a half, so it is no longer among the best two.
    assert_eq!(lists, [[2, 1], [2, 1], [2, 1]]);
    let heard: [&[usize]; 3] = [&[2, 3], &[1, 3], &[1, 2]];
    assert_eq!(tallied(&mut nodes, &who, &lists, &heard, ms(10)), [2], "of 1 and 2");
    // With the leader still named by all it is the runner-up that wins.
    let mut nodes = Nodes::new(5, config).believing(&[means; 5]);
    called(&mut nodes, &[2], ms(1));
    nodes.hear(2, ms(2), 3, &share(2, &[0, 2]));
    nodes.hear(2, ms(2), 4, &share(2, &[0, 2]));
    assert!(confirms(&nodes.timeout(2, ms(3_002))));
}

#[test]
fn the_program_penalises_a_winner_that_was_silent_until_the_client_called_again() {
    let means = [0.5, 0.01, 0.02, 0.6, 0.7];
    let mut nodes = Nodes::new(5, greedy(Profile::Reference)).believing(&[means; 5]);
    let pen = |nodes: &Nodes, node: usize| nodes.nodes[3].estimates().arm(node).penalty;
    let leaders = |nodes: &Nodes| nodes.nodes[3].estimates().arm(0).weight;
    nodes.hear(3, ms(1), CLIENT, &request(1, 1));
    assert_eq!(leaders(&nodes), 2);
    nodes.hear(3, ms(1), CLIENT, &request(1, 1));
    assert_eq!(leaders(&nodes), 2, "the same call twice is one");
    nodes.hear(3, ms(2), 2, &share(2, &[1, 2]));
    nodes.hear(3, ms(2), 4, &share(2, &[1]));
    nodes.timeout(3, ms(3_002));
    assert_eq!(pen(&nodes, 1), 0.0);
    nodes.hear(3, ms(8_001), CLIENT, &request(1, 2));
    assert_eq!((pen(&nodes, 1), leaders(&nodes)), (0.5, 3));
}

#[test]
fn a_failed_node_of_the_program_still_hears_who_leads_and_nothing_else() {
    let mut nodes = Nodes::new(5, greedy(Profile::Reference));
    let before = nodes.nodes[1].estimates().arm(1).weight;
    nodes.input(1, ms(5), Input::Feed(Feed::Halted));
    assert_eq!(nodes.nodes[1].estimates().arm(1).weight, before + 1, "UP(self) at once");
    assert_eq!(nodes.leader(1), None);
    let total = nodes.nodes[1].estimates().total();
    assert_eq!(nodes.hear(1, ms(6), 2, &Message::Ping { nonce: 3 }), []);
    nodes.hear(1, ms(7), 2, &Message::ConfirmElection { term: 7_000, voters: vec![] });
    assert_eq!(nodes.nodes[1].estimates().total(), total, "nothing is learnt meanwhile");
    nodes.input(1, ms(8), Input::Feed(Feed::Restored));
    assert_eq!(nodes.leader(1), Some(2));
}

#[test]
fn the_text_counts_its_own_absence_when_it_was_long() {
    for (back, counts) in [(5_000, 0), (13_000, 1)] {
        let mut nodes = Nodes::new(5, greedy(Profile::Published));
        let before = nodes.nodes[1].estimates().arm(1).weight;
        nodes.input(1, ms(10), Input::Feed(Feed::Halted));
        nodes.input(1, ms(back), Input::Feed(Feed::Restored));
        assert_eq!(nodes.nodes[1].estimates().arm(1).weight, before + counts);
    }
}

#[test]
fn pings_teach_and_pardon() {
    let pings = Pings { pause: Duration::from_secs(10), reply: Duration::from_secs(2) };
    let config = greedy(Profile::Published).with_pings(Some(pings)).unwrap();
    let mut nodes = Nodes::new(3, config);
    let due = |nodes: &Nodes| nodes.nodes[0].deadline().unwrap();
    let (at, why) = due(&nodes);
    assert_eq!(why, Timer::PingNext);
    nodes.nodes[0].common.penalise(1);
    let sent = nodes.timeout(0, at);
    assert_eq!(sent, [(Some(id(1)), Message::Ping { nonce: 1 })]);
    nodes.hear(0, at, 2, &Message::PingReply { nonce: 1 });
    assert_eq!(nodes.nodes[0].estimates().total(), 0, "not the one asked");
    nodes.hear(0, at, 1, &Message::PingReply { nonce: 1 });
    let arm = nodes.nodes[0].estimates().arm(1);
    assert_eq!((arm.weight, arm.penalty), (2, 0.0));
    let (at, why) = due(&nodes);
    assert_eq!(why, Timer::PingReply);
    nodes.timeout(0, at);
    assert_eq!(nodes.nodes[0].estimates().arm(1).weight, 2, "answered");
    let (at, _) = due(&nodes);
    let sent = nodes.timeout(0, at);
    assert_eq!(sent, [(Some(id(2)), Message::Ping { nonce: 2 })]);
    let (at, _) = due(&nodes);
    nodes.timeout(0, at);
    let arm = nodes.nodes[0].estimates().arm(2);
    assert!(arm.weight == 2 && arm.mean > 0.5, "{arm:?}");
    nodes.hear(0, at, 2, &Message::PingReply { nonce: 2 });
    assert_eq!(nodes.nodes[0].estimates().arm(2).weight, 2, "too late to count");
}

#[test]
fn lists_that_win_for_the_living_alone_elect_nobody_dead() {
    let count = (Tally::Approval(Ties::Highest), Eligible::Living);
    let config = greedy(Profile::Reference).with_count(count.0, count.1).unwrap();
    let mut nodes = Nodes::new(5, config).believing(&[[0.9, 0.1, 0.9, 0.9, 0.1]; 5]);
    called(&mut nodes, &[2], ms(1));
    nodes.hear(2, ms(2), 3, &share(2, &[1, 4]));
    nodes.hear(2, ms(2), 3, &share(2, &[1, 4]));
    // Everybody names the dead; node 2 is the lowest of those that spoke.
    assert!(confirms(&nodes.timeout(2, ms(3_002))));
}

/// The leader told everybody of a request, its answer was lost, and it crashed: the client may repeat that request for
/// ever, nobody suspects the leader for it (Q4).
#[test]
fn a_request_that_was_heard_of_never_makes_its_leader_suspect() {
    let mut nodes = Nodes::new(5, greedy(Profile::Published));
    let of = Request { client: id(CLIENT), number: 1 };
    nodes.hear(1, ms(1), 0, &Message::RequestBroadcast { request: of, term: 1_000 });
    for attempt in 1..9 {
        nodes.hear(1, ms(u64::from(attempt) * 8_000), CLIENT, &request(1, attempt));
        assert_eq!(nodes.nodes[1].deadline(), None);
    }
    nodes.hear(1, ms(90_000), CLIENT, &request(2, 1));
    assert_eq!(nodes.nodes[1].deadline().unwrap().1, Timer::Suspect, "another one does");
}
