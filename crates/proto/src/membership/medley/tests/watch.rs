//! Who is watched is found out sooner, and nobody is accused for a promise that ended.

use super::*;

const BEAT: Duration = Duration::from_millis(200);

/// Period 2 s, ack 500 ms, suspicion 16 s; periods begin at multiples of two seconds.
fn node(others: u64) -> Node {
    let config = config(Strategy::Swim, Form::Hardened).with_beat(Some(BEAT)).unwrap();
    Node::running(config, others)
}

fn ms(count: u64) -> Time {
    Time::ZERO + Duration::from_millis(count)
}

fn beat(incarnation: u32) -> Message {
    message(0, incarnation, Body::Beat { every: Duration::from_millis(500) }, &[])
}

fn pinged(effects: &Effects) -> Vec<NodeId> {
    receivers(effects, |body| matches!(body, Body::Ping { on_behalf: None }))
}

#[test]
fn watchers_are_told_until_there_are_none() {
    let mut node = node(5);
    let told = |effects: &Effects| receivers(effects, |body| body == Body::Beat { every: BEAT });
    let watchers = vec![id(3), id(5)];
    let feed = Input::Feed(ContactChange::Watchers(watchers.clone()));
    assert_eq!(told(&node.input(ms(2_100), feed).unwrap()), watchers, "at once");
    assert_eq!(told(&node.wakes(ms(2_299))), []);
    for beats in 1..5 {
        assert_eq!(told(&node.wakes(ms(2_100 + 200 * beats))), watchers);
    }
    node.input(ms(2_950), Input::Feed(ContactChange::Watchers(vec![]))).unwrap();
    assert_eq!(told(&node.wakes(ms(9_000))), []);
}

#[test]
fn whoever_leaves_promises_nothing() {
    let mut node = node(5);
    node.input(ms(100), Input::Feed(ContactChange::Watchers(vec![id(3)]))).unwrap();
    node.input(ms(150), Input::Leave).unwrap();
    let beats = receivers(&node.wakes(ms(400)), |body| matches!(body, Body::Beat { .. }));
    assert_eq!(beats, []);
}

/// Beats every 500 ms, so 1,500 ms of patience; a probe of three acks; 1,000 ms to contradict.
#[test]
fn a_silent_one_is_probed_accused_and_removed_within_a_few_waits() {
    let mut node = node(8);
    node.hears(ms(100), peer(3, 1), &beat(0)).unwrap();
    node.hears(ms(600), peer(3, 1), &beat(0)).unwrap();
    assert!(!pinged(&node.wakes(ms(2_000))).contains(&id(3)), "an ordinary probe, of another");
    assert_eq!(pinged(&node.wakes(ms(2_099))), []);
    assert_eq!(pinged(&node.wakes(ms(2_100))), [id(3)]);
    let helpers = receivers(&node.wakes(ms(2_600)), |body| body == Body::PingReq { target: id(3) });
    assert_eq!(helpers.len(), 3);
    assert_eq!(node.machine.state_of(id(3)), Some(State::Alive));
    let effects = node.wakes(ms(3_600));
    assert_eq!(node.machine.state_of(id(3)), Some(State::Suspect));
    assert_eq!(pinged(&effects), [id(3)], "told what it is accused of");
    node.wakes(ms(4_599));
    assert_eq!(node.machine.state_of(id(3)), Some(State::Suspect));
    node.wakes(ms(4_600));
    assert_eq!(node.machine.state_of(id(3)), Some(State::Failed));
}

#[test]
fn it_may_contradict_until_the_end_and_is_watched_again() {
    let mut node = node(8);
    node.hears(ms(100), peer(3, 1), &beat(0)).unwrap();
    node.wakes(ms(1_600));
    node.wakes(ms(2_100));
    node.wakes(ms(3_100));
    assert_eq!(node.machine.state_of(id(3)), Some(State::Suspect));
    node.hears(ms(3_500), peer(3, 1), &beat(1)).unwrap();
    assert_eq!(node.machine.state_of(id(3)), Some(State::Alive));
    assert!(pinged(&node.wakes(ms(5_000))).contains(&id(3)));
}

/// A period begins while the probe is under way: it does not end it.
#[test]
fn periods_do_not_interrupt_an_urgent_probe() {
    let mut node = node(8);
    node.hears(ms(1_900), peer(3, 1), &beat(0)).unwrap();
    node.wakes(ms(2_000));
    assert_eq!(pinged(&node.wakes(ms(3_400))), [id(3)]);
    node.wakes(ms(3_900));
    assert_eq!(pinged(&node.wakes(ms(4_000))), []);
    node.wakes(ms(4_900));
    assert_eq!(node.machine.state_of(id(3)), Some(State::Suspect));
}

#[test]
fn who_stops_promising_and_answers_is_let_go() {
    let mut node = node(8);
    node.wakes(ms(0));
    node.hears(ms(100), peer(3, 1), &beat(0)).unwrap();
    assert_eq!(pinged(&node.wakes(ms(1_600))), [id(3)]);
    let ack = message(node.machine.sequence, 0, Body::Ack { on_behalf: None }, &[]);
    node.hears(ms(1_610), peer(3, 1), &ack).unwrap();
    assert_eq!(node.machine.state_of(id(3)), Some(State::Alive));
    // Accused by another later, it has all the time there is.
    let charge = news(peer(3, 1), 0, Status::Suspect { by: id(5) });
    node.hears(ms(1_700), peer(5, 1), &message(0, 0, Body::ReportAlive, &[charge])).unwrap();
    let (_, until) = node.machine.accusation_of(id(3)).unwrap();
    assert_eq!(until, ms(1_700 + 16_000));
}

#[test]
fn an_accusation_by_another_does_not_give_a_silent_one_more_time() {
    let mut node = node(8);
    node.hears(ms(100), peer(3, 1), &beat(0)).unwrap();
    let charge = news(peer(3, 1), 0, Status::Suspect { by: id(5) });
    node.hears(ms(900), peer(5, 1), &message(0, 0, Body::ReportAlive, &[charge])).unwrap();
    node.wakes(ms(1_600));
    node.wakes(ms(2_100));
    node.wakes(ms(3_100));
    node.wakes(ms(4_100));
    assert_eq!(node.machine.state_of(id(3)), Some(State::Failed));
}

/// Where much is lost, three beats and a probe prove little: it is asked again at once, not in the next period.
#[test]
fn in_a_lossy_network_it_is_probed_again_and_again() {
    let mut node = node(3);
    for round in 0..400 {
        match round % 5 {
            0 => node.machine.doubt.answered(4.0),
            _ => node.machine.doubt.unanswered(4.0),
        }
    }
    node.hears(ms(100), peer(3, 1), &beat(0)).unwrap();
    let mut probes = vec![];
    for now in (1_600..60_000).step_by(100) {
        let asked = pinged(&node.wakes(ms(now)));
        probes.extend(asked.into_iter().filter(|&one| one == id(3)).map(|_| now));
        if node.machine.state_of(id(3)) == Some(State::Suspect) {
            break;
        }
    }
    assert!(probes.len() > 2 && probes[1] - probes[0] <= 1_500, "{probes:?}");
    assert_eq!(node.machine.state_of(id(3)), Some(State::Suspect));
}

#[test]
fn promises_beyond_reason_are_bounded() {
    let mut node = node(200);
    for sender in 1..=200 {
        for every in [Duration::ZERO, Duration::from_micros(u64::MAX)] {
            let beat = message(0, 0, Body::Beat { every }, &[]);
            node.hears(ms(10), peer(sender, 1), &beat).unwrap();
        }
    }
    let (next, timer) = node.machine.deadline().unwrap();
    assert!(next > ms(10) || timer == Timer::Period, "{timer:?} at {next}");
}

#[test]
fn beats_are_of_the_hardened_form_and_shorter_than_a_period() {
    let hardened = config(Strategy::Swim, Form::Hardened);
    for every in [Duration::ZERO, units(20)] {
        assert_eq!(hardened.with_beat(Some(every)), Err(ConfigError::Beat { every }));
    }
    let published = config(Strategy::Swim, Form::AsPublished);
    assert_eq!(published.with_beat(Some(BEAT)), Err(ConfigError::Beat { every: BEAT }));
    assert_eq!(published.with_beat(None), Ok(published));
}
