//! What the machine contract asks of every profile.

use std::vec::Vec;

use super::*;

fn profiles() -> Vec<Config> {
    let tick = millis(70);
    let flooding = |reading, numbered| {
        let (period, timeout) = (millis(250), millis(300));
        Profile::Flooding { reading, period, timeout, numbered }
    };
    let detection = Detection::Beacons { period: millis(100), timeout: millis(320) };
    let mut configs = Vec::new();
    for profile in [
        Profile::TopologyAware { tick, probes: Probes::Once },
        Profile::TopologyAware { tick, probes: Probes::Every },
        Profile::Cel { rho: 0.7 },
        Profile::LinkState(LinkState::ticking(tick)),
        Profile::LinkState(LinkState { horizon: Some(2), ..LinkState::at_once(0.7) }),
        flooding(Reading::Tick, false),
        flooding(Reading::Opt, false),
        flooding(Reading::Eager, true),
        flooding(Reading::Relay, true),
    ] {
        configs.push(Config::new(profile, detection).unwrap());
    }
    for order in [Order::Size, Order::Age] {
        let profile = Profile::Gomez { order, period: millis(102) };
        configs.push(Config::new(profile, Detection::Given).unwrap());
    }
    configs
}

/// Runs `count` nodes that all hear each other for a while; what each of them said, and when.
fn run(config: Config, count: u64, until: Time) -> (Vec<Node>, Vec<(Time, u64, Message)>) {
    let mut nodes: Vec<Node> = (0..count).map(|node| Node::new(node, config)).collect();
    let mut said = Vec::new();
    while let Some((now, due)) = nodes
        .iter()
        .enumerate()
        .filter_map(|(at, node)| Some((node.0.deadline()?.0, at)))
        .min()
        .filter(|&(now, _)| now < until)
    {
        let messages = nodes[due].input(now, Input::Timeout);
        assert!(nodes[due].0.deadline().is_none_or(|(at, _)| at > now), "still due");
        let mut queue: Vec<(usize, Message)> =
            messages.into_iter().map(|message| (due, message)).collect();
        while let Some((from, message)) = queue.pop() {
            for to in (0..nodes.len()).filter(|&to| to != from) {
                let answers = nodes[to].hear_at(now, from as u64, &message);
                queue.extend(answers.into_iter().map(|answer| (to, answer)));
            }
            said.push((now, from as u64, message));
        }
    }
    (nodes, said)
}

#[test]
fn all_that_hear_each_other_soon_name_one_of_them() {
    for config in profiles() {
        let (nodes, said) = run(config, 5, at(5_000));
        assert!(said.len() > 10);
        for node in nodes {
            assert_eq!(node.leader(), 4, "{config:?}");
            assert_eq!(node.0.leadership().mode, Mode::Central);
        }
    }
}

#[test]
fn equal_machines_do_the_same() {
    for config in profiles() {
        assert_eq!(run(config, 4, at(2_000)).1, run(config, 4, at(2_000)).1, "{config:?}");
    }
}

#[test]
fn inputs_that_make_no_sense_are_refused_and_change_nothing() {
    for config in profiles() {
        let mut out = Outbox::new();
        let mut node = Central::new(peer(3), config, Seed::new(1));
        let feed = Input::Feed(Feed::Up(id(1)));
        assert_eq!(node.handle(at(0), feed.clone(), &mut out), Err(Rejected::NotRunning));
        assert_eq!(node.leadership().leader, None);
        node.handle(at(0), Input::Start, &mut out).unwrap();
        assert_eq!(node.leadership().leader, Some(id(3)), "P3: a fresh node names itself");
        assert_eq!(node.handle(at(0), Input::Start, &mut out), Err(Rejected::StartedTwice));
        let own = Input::Message { from: peer(3), via: id(3), message: &Message::Beacon };
        assert_eq!(node.handle(at(0), own, &mut out), Err(Rejected::Loopback { from: peer(3) }));
        let own = Input::Feed(Feed::Up(id(3)));
        assert_eq!(node.handle(at(0), own, &mut out), Err(Rejected::Loopback { from: peer(3) }));
        let other = match config.profile() {
            Profile::Gomez { .. } => Message::Claim { leader: id(9), value: 9, sequence: 9 },
            _ => Message::Join { id: id(9), born: 0, sequence: 9 },
        };
        let input = Input::Message { from: peer(9), via: id(9), message: &other };
        let refused = Err(Rejected::Unsolicited { from: peer(9) });
        assert_eq!(node.handle(at(0), input, &mut out), refused, "another protocol's");
        assert!(out.is_empty());
        node.handle(at(1), Input::Leave, &mut out).unwrap();
        assert_eq!((node.deadline(), node.leadership().leader), (None, None));
        assert_eq!(node.handle(at(2), feed, &mut out), Err(Rejected::NotRunning));
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let given = Detection::Given;
    let refused = |profile| Config::new(profile, given).unwrap_err();
    let zero = Profile::TopologyAware { tick: Duration::ZERO, probes: Probes::Once };
    assert_eq!(refused(zero), ConfigError::Zero("the tick"));
    assert_eq!(refused(Profile::Cel { rho: 1.5 }), ConfigError::Probability(1.5));
    assert!(matches!(refused(Profile::Cel { rho: f64::NAN }), ConfigError::Probability(_)));
    let blind = LinkState { horizon: Some(1), ..LinkState::at_once(1.0) };
    assert_eq!(refused(Profile::LinkState(blind)), ConfigError::Horizon(1));
    let rare = LinkState { quiet: millis(10), ..LinkState::at_once(1.0) };
    assert!(matches!(refused(Profile::LinkState(rare)), ConfigError::Digests { .. }));
    let beacons = Detection::Beacons { period: millis(100), timeout: millis(100) };
    let error = Config::new(Profile::Cel { rho: 1.0 }, beacons).unwrap_err();
    assert!(matches!(error, ConfigError::Timeout { .. }));
    let gomez = Profile::Gomez { order: Order::Size, period: millis(100) };
    let beacons = Detection::Beacons { period: millis(100), timeout: millis(300) };
    assert_eq!(Config::new(gomez, beacons), Err(ConfigError::NoBeacons));
    let gomez = Config::new(gomez, given).unwrap();
    assert_eq!(gomez.with_criterion(Criterion::Degree), Err(ConfigError::NoMap("gomez")));
    assert_eq!(cel(1.0).with_criterion(Criterion::Tree), Err(ConfigError::OneWay("tree")));
    let nothing = Hysteresis { percent: 0, dwell: millis(1) };
    assert_eq!(cel(1.0).with_hysteresis(nothing), Err(ConfigError::NoMargin));
}

#[test]
fn e5_every_probe_can_be_a_new_link() {
    let count = |probes| {
        let profile = Profile::TopologyAware { tick: millis(70), probes };
        let detection = Detection::Beacons { period: millis(100), timeout: millis(450) };
        let (_, said) = run(Config::new(profile, detection).unwrap(), 3, at(10_000));
        let maps = said.iter().filter(|(_, _, it)| matches!(it, Message::Known(_))).count();
        let beacons = said.iter().filter(|(_, _, it)| it.is_beacon()).count();
        (maps, beacons)
    };
    let (maps, beacons) = count(Probes::Once);
    assert_eq!(maps, 6, "each of three finds two others, once");
    assert!((297..=303).contains(&beacons), "{beacons}");
    let (maps, beacons) = count(Probes::Every);
    assert_eq!(maps, 2 * beacons, "two hear each");
}
