//! Rule by rule: exact effects, deadlines and views.

use super::*;
use crate::mechanism::pinged::Patience;

const FORMS: [Form; 2] = [Form::AsPublished, Form::Hardened];

fn is_ping(body: Body) -> bool {
    matches!(body, Body::Ping { .. })
}

/// V13 and P4.
#[test]
fn a_silent_target_is_helped_suspected_and_removed_on_time() {
    for form in FORMS {
        let mut node = Node::running(config(Strategy::Swim, form), 2);
        assert_eq!(node.machine.deadline(), Some((at(0), Timer::Period)));
        let target = receivers(&node.wakes(at(0)), is_ping)[0];
        let helper = if target == id(1) { id(2) } else { id(1) };

        assert_eq!(node.machine.deadline(), Some((at(5), Timer::Ack)));
        let asked = receivers(&node.wakes(at(5)), |body| body == Body::PingReq { target });
        assert_eq!(asked, [helper]);

        assert_eq!(node.machine.deadline(), Some((at(20), Timer::ProbeEnd)));
        let effects = node.wakes(at(20));
        let suspected = MembershipEvent::Suspected { id: target, by: id(0) };
        assert!(effects.contains(&Effect::Emit(suspected)));
        assert_eq!(node.machine.state_of(target), Some(State::Suspect));

        // Whoever is pinged from now on answers, but not the suspect.
        let mut effects = Effects::new();
        for now in (20..=180).step_by(20) {
            assert_eq!(node.machine.state_of(target), Some(State::Suspect), "at {now}");
            let sequence = node.machine.sequence;
            let ack = message(sequence, 0, Body::Ack { on_behalf: None }, &[]);
            node.hears(at(now), Peer::new(helper, Boot::new(1)), &ack).unwrap();
            effects = node.wakes(at(now));
        }
        let failed = effects.iter().find_map(|effect| match effect {
            Effect::Emit(MembershipEvent::Failed { id, accusers }) => {
                Some((*id, accusers.iter().collect::<Vec<_>>()))
            }
            _ => None,
        });
        assert_eq!(failed, Some((target, vec![id(0)])));
        assert_eq!(node.machine.state_of(target), Some(State::Failed));
        assert_eq!(node.machine.len(), 1);
    }
}

#[test]
fn an_answer_in_time_ends_the_probe_and_a_late_one_does_not_clear_the_accused() {
    let hasty = config(Strategy::Swim, Form::Hardened).with_caution(false).unwrap();
    let mut node = Node::running(hasty, 1);
    node.wakes(at(0));
    let ack = |sequence| message(sequence, 0, Body::Ack { on_behalf: None }, &[]);
    node.hears(at(1), peer(1, 1), &ack(9)).unwrap();
    assert_eq!(node.machine.deadline(), Some((at(5), Timer::Ack)), "another probe's");
    node.hears(at(2), peer(1, 1), &ack(1)).unwrap();
    assert_eq!(node.machine.deadline(), Some((at(20), Timer::Period)));
    node.wakes(at(20));
    node.wakes(at(40));
    assert_eq!(node.machine.state_of(id(1)), Some(State::Suspect));
    node.hears(at(41), peer(1, 1), &ack(2)).unwrap();
    assert_eq!(node.machine.state_of(id(1)), Some(State::Suspect), "M-26");
    let refuting = message(2, 1, Body::ReportAlive, &[]);
    let effects = node.hears(at(42), peer(1, 1), &refuting).unwrap();
    assert_eq!(effects, [Effect::Emit(MembershipEvent::Refuted(id(1)))]);
    assert_eq!(node.machine.state_of(id(1)), Some(State::Alive));
    assert_eq!(node.machine.timers.deadline(Timer::Suspicion), None);
}

/// V12.
#[test]
fn a_rumour_of_our_death_is_contradicted_in_the_next_incarnation() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 1);
    let by = id(1);
    for (status, said, incarnation, refutes) in [
        (Status::Failed { by }, 1, 2, true),
        (Status::Suspect { by }, 2, 3, true),
        (Status::Suspect { by }, 1, 3, false),
        (Status::Alive, 9, 3, false),
        (Status::Failed { by }, 7, 8, true),
        (Status::Failed { by }, u32::MAX, 8, false),
    ] {
        let rumour = message(1, 0, Body::ReportAlive, &[news(peer(0, 1), said, status)]);
        let effects = node.hears(at(1), peer(1, 1), &rumour).unwrap();
        assert_eq!(node.machine.incarnation(), inc(incarnation), "{status:?} {said}");
        assert_eq!(broadcasts(&effects).len(), usize::from(refutes), "{status:?} {said}");
        if refutes {
            let durable = Durable { boot: Boot::new(1), incarnation: inc(incarnation) };
            assert_eq!(effects[0], Effect::Persist(durable), "before anyone hears of it");
            let report = broadcasts(&effects)[0];
            assert_eq!((report.body, report.incarnation), (Body::ReportAlive, inc(incarnation)));
            assert_eq!(report.updates[0], news(peer(0, 1), incarnation, Status::Alive));
        }
    }
    for boot in [0, 2] {
        let rumour = news(peer(0, boot), 8, Status::Failed { by });
        let rumour = message(1, 0, Body::ReportAlive, &[rumour]);
        assert_eq!(node.hears(at(1), peer(1, 1), &rumour), Ok(vec![]), "another life: {boot}");
    }
}

/// V14: heads, the target is uniform over those silent for more than 400 units; tails, it is drawn as
/// ever.
#[test]
fn now_and_then_a_period_goes_to_somebody_not_heard_of_for_long() {
    for (chance, heads) in [(1.0, true), (0.0, false)] {
        let attention = Attention { timeout: units(400), chance };
        let config = config(Strategy::Passive, Form::Hardened).with_attention(attention).unwrap();
        let mut node = Node::running(config, 3);
        for (other, age) in [(1, 100), (2, 401), (3, 900)] {
            let ping = message(1, 0, Body::Ping { on_behalf: None }, &[]);
            node.hears(at(1_000 - age), peer(other, 1), &ping).unwrap();
        }
        let (mut seen, periods) = ([0_u32; 4], 20_000);
        for seed in 0..periods {
            let mut machine = node.machine.clone();
            machine.rng = Seed::new(seed).rng();
            let mut node = Node { machine, out: Outbox::new() };
            let target = receivers(&node.wakes(at(1_000)), is_ping)[0];
            seen[target.get() as usize] += 1;
        }
        if heads {
            let half = periods as f64 / 2.0;
            let error = libm::sqrt(half / 2.0);
            assert_eq!(seen[1], 0);
            assert!((f64::from(seen[2]) - half).abs() < 5.0 * error, "{seen:?}");
        } else {
            assert!(seen[1] > seen[2] && seen[2] > seen[3], "by distance: {seen:?}");
        }
    }
}

/// The targets of so many periods in which everybody answers.
fn targets(node: &mut Node, periods: u64) -> Vec<u64> {
    let mut targets = vec![];
    for tick in 0..periods {
        let target = receivers(&node.wakes(at(20 * tick)), is_ping)[0];
        let ack = message(node.machine.sequence, 0, Body::Ack { on_behalf: None }, &[]);
        node.hears(at(20 * tick + 1), Peer::new(target, Boot::new(1)), &ack).unwrap();
        targets.push(target.get());
    }
    targets
}

/// P3, for the bags of both forms.
#[test]
fn nobody_waits_longer_than_the_bag_allows() {
    for (form, exponent) in
        [(Form::AsPublished, 0.0), (Form::AsPublished, 2.0), (Form::Hardened, 3.0)]
    {
        let config = config(Strategy::Medley, form).with_exponent(exponent).unwrap();
        let mut node = Node::running(config.with_sync(None).unwrap(), 5);
        let targets = targets(&mut node, 5_000);
        let distances = (1..=5).map(|id| 1.0 + f64::from(id));
        let p: Vec<f64> = distances.map(|r| libm::pow(r, -exponent)).collect();
        let cap = config.bag_cap.map(|cap| 5 * u64::from(cap));
        let instance = crate::mechanism::sampling::instance(&p, cap);
        let count = |p| crate::mechanism::sampling::instances(p, instance, cap.is_some());
        let total: u32 = p.iter().map(|&p| count(p)).sum();
        for (other, &p) in (1..).zip(&p) {
            let places = targets.iter().enumerate().filter(|(_, target)| **target == other);
            let places: Vec<usize> = places.map(|(at, _)| at).collect();
            let longest = places.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            let bound = 2 * (total - count(p)) + 1;
            assert!(longest as u32 <= bound, "{form:?} m = {exponent}: {longest} > {bound}");
        }
    }
}

#[test]
fn the_dead_are_neither_pinged_nor_asked_for_help() {
    for selection in [Selection::Independent, Selection::Bag] {
        let config = config(Strategy::Medley, Form::AsPublished).with_selection(selection);
        let mut node = Node::running(config, 5);
        node.wakes(at(0));
        node.wakes(at(5));
        let death = news(peer(1, 1), 0, Status::Failed { by: id(2) });
        node.hears(at(6), peer(2, 1), &message(0, 0, Body::ReportAlive, &[death])).unwrap();
        for tick in 1..100 {
            let mut effects = node.wakes(at(20 * tick));
            effects.extend(node.wakes(at(20 * tick + 5)));
            let sequence = node.machine.sequence;
            assert!(!receivers(&effects, |_| true).contains(&id(1)), "{selection:?}");
            for other in 2..=5 {
                let body = Body::IndirectAck { target: peer(other, 1), incarnation: inc(0) };
                node.hears(at(20 * tick + 6), peer(2, 1), &message(sequence, 0, body, &[]))
                    .unwrap();
            }
        }
    }
}

/// R12: hardened, a newcomer is in the running bag; as published it waits for the next.
#[test]
fn a_newcomer_is_pinged_from_the_next_bag_on_or_from_this_one() {
    for (form, instances) in [(Form::AsPublished, 0), (Form::Hardened, 1)] {
        let mut node = Node::running(config(Strategy::Swim, form).with_bag_cap(None).unwrap(), 9);
        node.wakes(at(0));
        node.hears(at(1), peer(20, 1), &message(0, 0, Body::ReportAlive, &[])).unwrap();
        let (table, targets) = (&node.machine.table, &mut node.machine.targets);
        assert_eq!(targets.instances(table.position(id(20)).unwrap()), instances, "{form:?}");
    }
}

#[test]
fn a_relayed_ping_comes_back_to_whoever_asked() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 3);
    let effects =
        node.hears(at(1), peer(1, 1), &message(9, 0, Body::PingReq { target: id(2) }, &[]));
    let ping = Body::Ping { on_behalf: Some(id(1)) };
    assert_eq!(receivers(&effects.unwrap(), |body| body == ping), [id(2)]);
    let ack = message(9, 4, Body::Ack { on_behalf: Some(id(1)) }, &[]);
    let effects = node.hears(at(2), peer(2, 1), &ack).unwrap();
    let body = Body::IndirectAck { target: peer(2, 1), incarnation: inc(4) };
    assert_eq!(receivers(&effects, |found| found == body), [id(1)]);

    let target = receivers(&node.wakes(at(2)), is_ping)[0];
    let target = Peer::new(target, Boot::new(1));
    let body = Body::IndirectAck { target, incarnation: inc(5) };
    node.hears(at(9), peer(3, 1), &message(node.machine.sequence, 0, body, &[])).unwrap();
    assert_eq!(node.machine.probe, None);
    let view = node.machine.members().find(|view| view.id == target.id).unwrap();
    assert_eq!(view.incarnation, inc(5));
}

/// A5 and M-3: as published each complaint counts, hardened only the first.
#[test]
fn whoever_complains_is_pinged_more_often() {
    for (form, grows) in [(Form::AsPublished, true), (Form::Hardened, false)] {
        for selection in [Selection::Independent, Selection::Bag] {
            let config = config(Strategy::Active, form).with_selection(selection);
            let mut node = Node::running(config, 5);
            node.wakes(at(0));
            let share = |node: &Node| {
                let p = node.machine.targets.probabilities(&node.machine.table, &config);
                p[4] / p.iter().sum::<f64>()
            };
            let waiting = |node: &Node| match selection {
                Selection::Bag => node.machine.targets.instances(4),
                Selection::Independent => 0,
            };
            let before = waiting(&node);
            let shares: Vec<f64> = (0..3)
                .map(|_| {
                    let before = share(&node);
                    node.hears(at(1), peer(5, 1), &message(0, 0, Body::Unlucky, &[])).unwrap();
                    share(&node) - before
                })
                .collect();
            assert_eq!(waiting(&node) > before, selection == Selection::Bag, "{form:?}");
            assert!(shares[0] > 0.05, "{form:?} {shares:?}");
            assert_eq!(shares[1] > 1e-6, grows, "{form:?} {shares:?}");
        }
    }
}

/// M-4.
#[test]
fn a_complaint_is_forgotten_in_time_or_with_its_incarnation() {
    let config = config(Strategy::Active, Form::Hardened);
    let quiet = |node: &Node| {
        let p = node.machine.targets.probabilities(&node.machine.table, &config);
        p[4] < p[3]
    };
    let mut node = Node::running(config, 5);
    let unlucky = |incarnation| message(0, incarnation, Body::Unlucky, &[]);
    node.hears(at(1), peer(5, 1), &unlucky(0)).unwrap();
    assert!(!quiet(&node));
    node.hears(at(2), peer(5, 1), &message(0, 1, Body::ReportAlive, &[])).unwrap();
    node.wakes(at(60));
    assert!(quiet(&node), "of a past incarnation");
    node.hears(at(61), peer(5, 1), &unlucky(1)).unwrap();
    node.wakes(at(1_600));
    assert!(!quiet(&node));
    node.wakes(at(1_720));
    assert!(quiet(&node), "older than 20 timeouts");
}

/// A3 and A4, with M-5's limit.
#[test]
fn whoever_is_never_pinged_tells_its_neighbours() {
    let config = config(Strategy::Both, Form::Hardened);
    let mut node = Node::running(config, 1);
    let complaints: Vec<u64> = (0..20)
        .map(|tick| 20 * tick)
        .filter(|&now| {
            let effects = node.wakes(at(now));
            broadcasts(&effects).iter().any(|message| message.body == Body::Unlucky)
        })
        .collect();
    assert_eq!(complaints, [80, 160, 240, 320]);
    let patience = Patience { interval: units(80), gain: 2.0, silence: None };
    assert_eq!(config.with_patience(patience), Err(ConfigError::NoProbability { value: 2.0 }));
}

/// R2 (c) and M-26: an accusation finds its way to the accused.
#[test]
fn what_is_held_against_a_node_is_told_to_it_first() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 2);
    let ping = message(3, 0, Body::Ping { on_behalf: None }, &[]);
    for status in [Status::Suspect { by: id(2) }, Status::Failed { by: id(0) }, Status::Left] {
        let accusation = message(0, 0, Body::ReportAlive, &[news(peer(1, 1), 0, status)]);
        node.hears(at(1), peer(2, 1), &accusation).unwrap();
        node.machine.gossip = Gossip::new(GOSSIP);
        let effects = node.hears(at(1), peer(1, 1), &ping).unwrap();
        let Some(Effect::Send { to, message }) = effects.last() else { panic!("{effects:?}") };
        let told = message.updates.first().map(|update| (update.subject, update.status));
        let expected = if status == Status::Left { Status::Failed { by: id(0) } } else { status };
        assert_eq!((*to, told), (id(1), Some((peer(1, 1), expected))));
    }
}

#[test]
fn a_long_list_is_fetched_page_by_page_and_nothing_is_lost() {
    let count = 300;
    let mut introducer = Node::running(config(Strategy::Swim, Form::Hardened), count);
    let dead = news(peer(9, 1), 0, Status::Failed { by: id(1) });
    introducer.hears(at(1), peer(1, 1), &message(0, 0, Body::ReportAlive, &[dead])).unwrap();
    let mut joiner = Node::with(
        config(Strategy::Swim, Form::Hardened),
        vec![Contact { member: false, ..member(0) }],
    );
    joiner.machine.me = peer(1_000, 1);
    joiner.machine.table = Table::new(id(1_000), vec![Contact { member: false, ..member(0) }]);
    let mut asks = joiner.input(at(2), Input::Start).unwrap();
    let mut pages = 0;
    while let Some(Effect::Send { to, message }) = asks.pop() {
        assert_eq!(to, id(0));
        let answer = introducer.hears(at(2), peer(1_000, 1), &message).unwrap();
        let Some(Effect::Send { message: page, .. }) = answer.last() else { panic!("no page") };
        assert!(crate::wire::Wire::encoded_len(page) <= message::MAX_BODY);
        asks = joiner.hears(at(2), peer(0, 1), page).unwrap();
        let twice = joiner.hears(at(2), peer(0, 1), page);
        assert_eq!(twice, Err(Rejected::Unsolicited { from: peer(0, 1) }));
        pages += 1;
    }
    assert!(pages > 2, "{pages}");
    assert!(!joiner.machine.is_joining());
    assert_eq!(joiner.machine.len() as u64, count, "its introducer, and all but the dead");
    assert_eq!(joiner.machine.state_of(id(9)), Some(State::Failed));
    assert_eq!(introducer.machine.state_of(id(1_000)), Some(State::Alive));
}

#[test]
fn a_silent_introducer_is_given_up_for_the_next() {
    let contact = |id: u64, distance, neighbour| Contact {
        id: NodeId::new(id),
        distance,
        neighbour,
        member: false,
    };
    let contacts = vec![contact(1, 9.0, true), contact(2, 1.0, false), contact(3, 2.0, true)];
    let mut node = Node::with(config(Strategy::Medley, Form::Hardened), contacts);
    let is_join = |body| body == Body::Join { after: None };
    assert_eq!(receivers(&node.input(at(0), Input::Start).unwrap(), is_join), [id(3)]);
    for (now, next) in [(30, 1), (60, 2), (90, 3)] {
        assert_eq!(receivers(&node.wakes(at(now)), is_join), [id(next)], "at {now}");
    }
}

#[test]
fn a_tombstone_outlives_the_news_and_then_goes() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 1);
    let dead = news(peer(8, 1), 3, Status::Left);
    node.hears(at(1), peer(1, 1), &message(0, 0, Body::ReportAlive, &[dead])).unwrap();
    let stale = message(0, 0, Body::ReportAlive, &[news(peer(8, 1), 3, Status::Alive)]);
    let end = at(1) + node.machine.config().tomb();
    node.hears(end - units(1), peer(1, 1), &stale).unwrap();
    assert_eq!(node.machine.state_of(id(8)), Some(State::Left));
    node.wakes(end);
    assert_eq!((node.machine.state_of(id(8)), node.machine.table.positions()), (None, 1));
}

#[test]
fn distances_follow_the_network_below() {
    let mut node = Node::running(config(Strategy::Medley, Form::Hardened), 2);
    let near = ContactChange::Near { id: id(2), distance: 0.5, neighbour: true };
    node.input(at(1), Input::Feed(near)).unwrap();
    let distance = |node: &Node| node.machine.members().last().unwrap().distance;
    assert!((distance(&node) - 0.5).abs() < 1e-6);
    node.input(at(1), Input::Feed(ContactChange::Gone { id: id(2) })).unwrap();
    assert!(distance(&node).is_nan(), "and still a member");
    let stranger = ContactChange::Near { id: id(7), distance: 3.0, neighbour: false };
    node.input(at(1), Input::Feed(stranger)).unwrap();
    assert_eq!(node.machine.len(), 2, "near is not yet a member");
    node.wakes(at(20));
}

/// Lifeguard.
#[test]
fn whoever_gets_no_answers_asks_more_rarely_and_waits_longer() {
    let config = config(Strategy::Swim, Form::Hardened).with_local_health(true);
    let mut node = Node::running(config.with_sync(None).unwrap(), 3);
    node.wakes(at(0));
    node.wakes(at(20));
    assert_eq!(node.machine.timers.deadline(Timer::Ack), Some(at(30)));
    assert_eq!(node.machine.timers.deadline(Timer::Period), Some(at(60)));
    for other in 1..=3 {
        let body = Body::IndirectAck { target: peer(other, 1), incarnation: inc(0) };
        let answer = message(node.machine.sequence, 0, body, &[]);
        node.hears(at(21), peer(1, 1), &answer).unwrap();
    }
    node.wakes(at(60));
    assert_eq!(node.machine.timers.deadline(Timer::Period), Some(at(80)), "well again");
}

/// It was not the node that did badly, but its network, which is mended.
#[test]
fn whoever_is_heard_again_waits_no_longer_than_others() {
    let config = config(Strategy::Swim, Form::Hardened).with_local_health(true);
    let mut node = Node::running(config.with_sync(None).unwrap(), 3);
    (0..9).for_each(|_| node.machine.health.worsen());
    node.machine.probe_urgently(at(20), id(1), &mut Outbox::new());
    assert_eq!(node.machine.timers.deadline(Timer::ProbeEnd), Some(at(20 + 9 * 15)));
    node.input(at(21), Input::Feed(ContactChange::Restored)).unwrap();
    node.machine.probe_urgently(at(22), id(1), &mut Outbox::new());
    assert_eq!(node.machine.timers.deadline(Timer::ProbeEnd), Some(at(22 + 15)));
}

#[test]
fn a_late_host_shortens_no_probe() {
    let mut node = Node::running(config(Strategy::Swim, Form::AsPublished), 3);
    node.wakes(at(39));
    assert_eq!(node.machine.timers.deadline(Timer::ProbeEnd), Some(at(59)));
    assert_eq!(node.machine.timers.deadline(Timer::Period), Some(at(60)));
}

/// Lifeguard: with ten members between 8 and 48 s, by the number of accusers.
#[test]
fn more_accusers_leave_a_suspect_less_time() {
    let config = config(Strategy::Swim, Form::Hardened).with_patient_suspicion(true);
    let mut node = Node::running(config, 9);
    let deadline = |node: &Node| {
        let at = node.machine.timers.deadline(Timer::Suspicion).unwrap();
        at.since(Time::ZERO).as_secs_f64()
    };
    for (by, seconds) in [(2, 48.0), (2, 48.0), (3, 22.763), (4, 8.0), (5, 8.0)] {
        let suspicion = news(peer(1, 1), 0, Status::Suspect { by: id(by) });
        let rumour = message(0, 0, Body::ReportAlive, &[suspicion]);
        node.hears(at(0), peer(9, 1), &rumour).unwrap();
        let found = deadline(&node);
        assert!((found - seconds).abs() < 1e-3, "{found} s for accuser {by}");
    }
}

#[test]
fn wrong_settings_are_refused_with_what_was_wrong() {
    let config = config(Strategy::Medley, Form::AsPublished);
    assert!(config.with_exponent(f64::NAN).is_err() && config.with_exponent(-1.0).is_err());
    assert!(config.with_times(units(20), units(20), units(160)).is_err());
    assert!(config.with_times(units(20), units(5), units(19)).is_err());
    assert!(config.with_helpers(17).is_err());
    assert_eq!(config.with_bag_cap(Some(4)), Err(ConfigError::Cap));
    let many = Piggyback::Bounded { most: message::MAX_UPDATES + 1, lambda: 3 };
    assert!(config.with_piggyback(many).is_err());
    assert_eq!(message::MAX_UPDATES, 33, "the chapter's 16 fit");
    assert_eq!(config.with_sync(Some(9)), Err(ConfigError::Sync));
}

/// Or it would be listed again by those who had removed it before, and stay a ghost there.
#[test]
fn whatever_a_leaver_says_begins_with_goodbye() {
    let mut node = Node::running(config(Strategy::Swim, Form::Hardened), 3);
    node.input(at(1), Input::Leave).unwrap();
    let goodbye = news(peer(0, 1), 0, Status::Left);
    for round in 0..40 {
        let ping = message(round, 0, Body::Ping { on_behalf: None }, &[]);
        let effects = node.hears(at(2), peer(1, 1), &ping).unwrap();
        let [Effect::Send { message, .. }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(message.updates.first(), Some(&goodbye), "however often it was said");
    }
    let question = message(1, 0, Body::Sync { after: None }, &[]);
    assert_eq!(node.hears(at(3), peer(1, 1), &question), Ok(vec![]));
}

/// Where many join at once, an introducer may be as new as the joiner.
#[test]
fn a_joiner_asks_again_until_nobody_can_name_it_another() {
    for (form, again) in [(Form::Hardened, true), (Form::AsPublished, false)] {
        let contacts = vec![Contact { member: false, ..member(1) }];
        let mut node = Node::with(config(Strategy::Swim, form), contacts);
        node.input(at(0), Input::Start).unwrap();
        let answer = |node: &Node, named: u64| {
            let listed = news(peer(named, 1), 0, Status::Alive);
            message(node.machine.sequence, 0, Body::JoinAck { next: None }, &[listed])
        };
        node.hears(at(1), peer(1, 1), &answer(&node, 2)).unwrap();
        assert!(!node.machine.is_joining());
        let deadline = node.machine.timers.deadline(Timer::Join);
        assert_eq!(deadline.is_some(), again);
        let Some(deadline) = deadline else { continue };
        let asked = receivers(&node.wakes(deadline), |body| body == Body::Join { after: None });
        let [introducer] = asked[..] else { panic!("{asked:?}") };
        let page = answer(&node, 3 - introducer.get());
        node.hears(deadline, Peer::new(introducer, Boot::new(1)), &page).unwrap();
        assert_eq!(node.machine.timers.deadline(Timer::Join), None, "nobody new: that is all");
    }
}

/// All news of a message is looked at before any of it is merged.
#[test]
fn news_that_was_old_until_other_news_of_the_same_message_came_is_merged() {
    let stranger = Contact { member: false, ..member(2) };
    let mut node = Node::with(config(Strategy::Swim, Form::Hardened), vec![member(1), stranger]);
    node.input(Time::ZERO, Input::Start).unwrap();
    // Nobody who is not listed can be suspected.
    let [joins, suspected] =
        [Status::Join, Status::Suspect { by: id(1) }].map(|status| news(peer(2, 1), 0, status));
    let ack = |updates: &[Update]| message(9, 0, Body::Ack { on_behalf: None }, updates);
    node.hears(at(1), peer(1, 1), &ack(&[suspected])).unwrap();
    assert_eq!((node.machine.state_of(id(2)), node.machine.records_changed()), (None, 0));
    node.hears(at(2), peer(1, 1), &ack(&[joins, suspected])).unwrap();
    assert_eq!(node.machine.state_of(id(2)), Some(State::Suspect));
    assert_eq!(node.machine.records_changed(), 2);
    node.hears(at(3), peer(1, 1), &ack(&[joins, suspected])).unwrap();
    assert_eq!(node.machine.records_changed(), 2, "all of it is known");
}
