//! The spec's vectors and a hostile network, played on a scripted multicast segment.

use std::{boxed::Box, collections::BTreeMap};

use proptest::prelude::*;

use super::*;

/// The chapter's `Δ`.
const DELAY: Duration = Duration::from_millis(100);
/// Nodes are numbered from one to this.
const LARGEST: u64 = 9;

/// The delay of each copy that arrives, given sender, receiver and time sent.
type Link = Box<dyn FnMut(u64, u64, Time) -> [Option<Duration>; 2]>;

/// A multicast segment. Deliveries come before timers at one instant, and reach whoever is alive on
/// arrival.
pub(super) struct Segment {
    now: Time,
    nodes: Vec<(Peer, Node)>,
    /// Arrival, sender, receiver, message.
    in_flight: Vec<(Time, Peer, u64, Message)>,
    link: Link,
    loops_back: bool,
    /// What each node persisted last, and whether a reboot finds it again.
    disks: BTreeMap<NodeId, Durable>,
    keeps_disks: bool,
    /// When (ms) and who.
    sent: Vec<(u64, u64)>,
    /// When (ms) "all name the best live node" turned true or false.
    agreement: Vec<(u64, bool)>,
    /// The token each life exposed last.
    vouched: BTreeMap<Peer, Epoch>,
}

impl Segment {
    fn new() -> Self {
        Self {
            now: Time::ZERO,
            nodes: vec![],
            in_flight: vec![],
            link: Box::new(|_, _, _| [Some(DELAY), None]),
            loops_back: false,
            disks: BTreeMap::new(),
            keeps_disks: false,
            sent: vec![],
            agreement: vec![],
            vouched: BTreeMap::new(),
        }
    }

    fn cold(rules: Rules, waits: &[(u64, u64)]) -> Self {
        let mut segment = Self::new();
        for &(id, wait) in waits {
            segment.join(peer(id, 1), config(Suppression::Fixed(ms(wait)), rules));
        }
        segment
    }

    fn join(&mut self, me: Peer, config: Config) {
        let disk = self.disks.get(&me.id).filter(|_| self.keeps_disks).copied();
        let mut node = Node::with(me, config, disk);
        let effects = node.input_at(self.now, Input::Start).unwrap();
        self.nodes.push((me, node));
        self.carry_out(me, effects);
    }

    fn leave(&mut self, id: u64) {
        let (me, node) = self.nodes.iter_mut().find(|(peer, _)| peer.id.get() == id).unwrap();
        let (me, effects) = (*me, node.input_at(self.now, Input::Leave).unwrap());
        self.carry_out(me, effects);
    }

    fn node(&self, id: u64) -> &Announce {
        &self.nodes.iter().find(|(peer, _)| peer.id.get() == id).unwrap().1.machine
    }

    fn all_follow(&self, id: u64) -> bool {
        self.nodes.iter().all(|(_, node)| node.machine.follows() == Some(NodeId::new(id)))
    }

    fn crash(&mut self, id: u64) {
        self.nodes.retain(|(peer, _)| peer.id.get() != id);
    }

    fn carry_out(&mut self, from: Peer, effects: Effects) {
        for effect in effects {
            if let Effect::Persist(durable) = effect {
                self.disks.insert(from.id, durable);
            }
            let Effect::Multicast(message) = effect else { continue };
            self.sent.push((self.now.as_micros() / 1_000, from.id.get()));
            for to in 1..=LARGEST {
                for delay in (self.link)(from.id.get(), to, self.now).into_iter().flatten() {
                    self.in_flight.push((self.now + delay, from, to, message));
                }
            }
        }
    }

    /// Everything before `end` (ms); the clock then stands at `end`.
    fn run(&mut self, end: u64) {
        loop {
            self.observe();
            let arrival = self.in_flight.iter().map(|flight| flight.0).min();
            let timer = self.nodes.iter().filter_map(|(_, node)| Some(node.due()?.0)).min();
            let next = arrival.unwrap_or(Time::NEVER).min(timer.unwrap_or(Time::NEVER));
            if next >= at(end) {
                self.now = at(end);
                return;
            }
            self.now = next;
            self.deliver();
            for index in 0..self.nodes.len() {
                let (me, node) = &mut self.nodes[index];
                let (me, effects) = (*me, node.input_at(next, Input::Timeout).unwrap());
                self.carry_out(me, effects);
            }
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        let due: Vec<_> = self.in_flight.extract_if(.., |flight| flight.0 <= now).collect();
        for (_, from, to, message) in due {
            for index in 0..self.nodes.len() {
                let (me, node) = &mut self.nodes[index];
                let me = *me;
                if me.id.get() != to || (me == from && !self.loops_back) {
                    continue;
                }
                let input = Input::Message { from, via: from.id, message: &message };
                let effects = node.input_at(now, input).unwrap_or_default();
                self.carry_out(me, effects);
            }
        }
    }

    fn observe(&mut self) {
        let best = self.nodes.iter().map(|(peer, _)| peer.id).max();
        let agreed = self.nodes.iter().all(|(_, node)| node.machine.follows() == best);
        if self.agreement.last().map(|last| last.1) != Some(agreed) {
            self.agreement.push((self.now.as_micros() / 1_000, agreed));
        }
        for (peer, node) in &self.nodes {
            let Some(token) = node.view().epoch else { continue };
            if let Some(last) = self.vouched.insert(*peer, token) {
                assert!(
                    token == last || token.counter() > last.counter(),
                    "epoch_went_back node={peer} from={last} to={token} at={}",
                    self.now
                );
            }
        }
    }

    fn sent_by(&self, id: u64) -> Vec<u64> {
        self.sent.iter().filter(|sent| sent.1 == id).map(|sent| sent.0).collect()
    }
}

#[test]
fn v1_everybody_announces_once_and_then_only_the_best() {
    let mut segment = Segment::cold(Rules::Corrected, &[(1, 0), (2, 0), (3, 0)]);
    segment.run(10_000);
    let mut expected = vec![(0, 1), (0, 2), (0, 3)];
    expected.extend((1..10).map(|beat| (beat * 1_000, 3)));
    assert_eq!(segment.sent, expected);
    assert_eq!(segment.agreement, [(0, false), (100, true)]);
}

#[test]
fn v2_published_rule_deposes_a_healthy_leader_and_the_fix_does_not() {
    let disputes = [(0, false), (100, true), (2_600, false), (3_100, true), (5_600, false)];
    for (rules, announced, agreement) in [
        (Rules::AsPublished, vec![0, 2_600, 5_600, 8_600], &disputes[..]),
        (Rules::Corrected, vec![0], &disputes[..2]),
    ] {
        let config = Config::new(ms(1_000), Some(ms(2_500)), Suppression::None, rules).unwrap();
        let mut segment = Segment::new();
        segment.join(peer(1, 1), config);
        segment.join(peer(2, 1), config);
        segment.run(9_000);
        assert_eq!(segment.sent_by(1), announced, "{rules:?}");
        assert!(segment.agreement.starts_with(agreement), "{:?}", segment.agreement);
        assert_eq!(segment.agreement.len() > 2, rules == Rules::AsPublished);
    }
}

#[test]
fn v3_v4_v5_suppression_silences_only_those_that_hear_a_better_one_in_time() {
    let (slow, slower) = (1_000, 1_100);
    for (name, period, waits, sent, agreed) in [
        ("V3", slow, vec![(3, 700), (2, 200), (1, 450)], vec![(200, 2), (700, 3)], 800),
        ("V4", slow, vec![(3, 700), (2, 650), (1, 600)], vec![(600, 1), (650, 2), (700, 3)], 800),
        ("V5", slow, vec![(2, 980), (1, 50)], vec![(50, 1), (980, 2), (1_050, 1)], 1_080),
        ("V5 under C2", slower, vec![(2, 980), (1, 50)], vec![(50, 1), (980, 2)], 1_080),
    ] {
        let mut segment = Segment::new();
        for (id, wait) in waits {
            let wait = Suppression::Fixed(ms(wait));
            let config = Config::new(ms(period), None, wait, Rules::Corrected).unwrap();
            segment.join(peer(id, 1), config);
        }
        segment.run(1_500);
        assert_eq!(segment.sent, sent, "{name}");
        assert_eq!(segment.agreement, [(0, false), (agreed, true)], "{name}");
    }
}

#[test]
fn v6_a_departure_is_repaired_after_the_listen_timeout_and_the_best_redraw() {
    for (name, waits, sent, agreed) in [
        ("V6", [(2, 300), (1, 600)], &[(8_400, 2)][..], 8_500),
        ("V6b", [(2, 600), (1, 300)], &[(8_400, 1), (8_700, 2)][..], 8_800),
    ] {
        let mut segment = Segment::cold(Rules::Corrected, &[(3, 0), waits[0], waits[1]]);
        segment.run(5_400);
        assert_eq!(segment.sent, [0, 1, 2, 3, 4, 5].map(|beat| (beat * 1_000, 3)));
        segment.sent.clear();
        segment.crash(3);
        segment.run(9_000);
        assert_eq!(segment.sent, sent, "{name}");
        assert_eq!(segment.agreement.last(), Some(&(agreed, true)), "{name}");
    }
}

#[test]
fn v7_v8_a_joiner_yields_at_the_next_heartbeat_or_leads_after_its_wait() {
    for (name, joiner, joins, wait, sent, agreed) in [
        ("V7", 1, 7_250, 990, vec![(8_000, 5)], 8_100),
        ("V7, message in flight", 1, 7_050, 990, vec![(8_000, 5)], 7_100),
        ("V8", 9, 7_250, 400, vec![(7_650, 9)], 7_750),
    ] {
        let mut segment = Segment::cold(Rules::Corrected, &[(5, 0)]);
        segment.run(joins);
        segment.sent.clear();
        segment.join(peer(joiner, 1), config(Suppression::Fixed(ms(wait)), Rules::Corrected));
        segment.run(8_500);
        assert_eq!(segment.sent, sent, "{name}");
        assert_eq!(segment.agreement, [(0, true), (joins, false), (agreed, true)], "{name}");
    }
}

#[test]
fn v9_a_published_heartbeat_at_the_deadline_does_not_save_the_leader() {
    let mut segment = Segment::cold(Rules::AsPublished, &[(1, 500), (2, 0)]);
    segment.run(12_000);
    let flips: Vec<_> = segment.agreement.iter().map(|flip| flip.0).collect();
    assert_eq!(flips, [0, 100, 3_100, 4_100, 7_100, 8_100, 11_100]);
}

#[test]
fn v10_a_lower_successor_is_ignored_until_the_dead_leader_times_out() {
    let mut segment = Segment::cold(Rules::Corrected, &[(3, 0), (2, 300), (1, 900)]);
    segment.link = Box::new(|from, to, sent| {
        let lost = from == 3 && to == 2 && sent >= at(9_000);
        [(!lost).then_some(DELAY), None]
    });
    segment.run(10_400);
    segment.sent.clear();
    segment.crash(3);
    segment.run(14_000);
    assert_eq!(segment.sent, [(11_400, 2), (12_400, 2), (13_400, 2)]);
    assert_eq!(segment.agreement.last(), Some(&(13_500, true)));
}

#[test]
fn v15_equal_addresses_both_lead_for_ever_unless_lives_are_told_apart() {
    for (rules, announcements) in
        [(Rules::AsPublished, 10), (Rules::Corrected, 10), (Rules::Hardened, 6)]
    {
        let mut segment = Segment::new();
        for boot in [1, 2] {
            segment.join(peer(5, boot), config(Suppression::None, rules));
        }
        segment.run(5_000);
        assert_eq!(segment.sent.len(), announcements, "{rules:?}");
        let survivor = if rules == Rules::Hardened { None } else { Some(NodeId::new(5)) };
        assert_eq!(segment.nodes[0].1.machine.follows(), survivor, "the smaller twin");
        assert_eq!(segment.nodes[1].1.machine.follows(), Some(NodeId::new(5)));
    }
}

#[test]
fn v16_a_leader_that_hears_itself_is_not_silenced() {
    for rules in ALL_RULES {
        let mut segment = Segment::cold(rules, &[(3, 0)]);
        segment.loops_back = true;
        segment.run(5_000);
        assert_eq!(segment.sent_by(3), [0, 1_000, 2_000, 3_000, 4_000], "{rules:?}");
    }
}

#[test]
fn a_leader_that_restarts_without_its_state_ends_with_a_larger_epoch_everywhere() {
    let mut segment = Segment::cold(Rules::Hardened, &[(3, 0), (2, 300), (1, 600)]);
    // A few elections, so that the lost epoch is well above what a newborn mints.
    for (boot, crash) in [(2, 5_400), (3, 20_400), (4, 35_400)] {
        segment.run(crash);
        segment.crash(3);
        segment.run(crash + 8_000);
        segment.join(peer(3, boot), config(Suppression::None, Rules::Hardened));
    }
    segment.run(50_000);
    let before = segment.nodes[0].1.view().epoch.unwrap();
    segment.crash(3);
    segment.join(peer(3, 9), config(Suppression::None, Rules::Hardened));
    segment.run(50_150);
    for (peer, node) in &segment.nodes[..2] {
        let behind = matches!(node.view().why, Why::EpochBehind { .. });
        assert!(behind, "{peer} must not vouch for a token that went back: {:?}", node.view());
    }
    segment.run(52_000);
    let after = segment.nodes[0].1.view().epoch.unwrap();
    assert!(after.counter() > before.counter(), "{before} then {after}");
    for (_, node) in &segment.nodes {
        assert_eq!((node.view().epoch, node.view().settled), (Some(after), true));
    }
}

/// The set-up under which `docs/rules/announce.md` says LE-H was tried: a quarter of all copies lost,
/// one in twenty doubled, delays up to most of a period, a split for a while, crashes, and reboots that
/// remember nothing or what was persisted.
fn hostile(seed: u64, keeps_disks: bool, config: Config) -> Segment {
    let mut rng = Seed::new(seed).named("faults").rng();
    let mut network = Seed::new(seed).named("network").rng();
    let nodes = 2 + rng.below(8);
    let mut segment = Segment::new();
    segment.keeps_disks = keeps_disks;
    segment.link = Box::new(move |from, to, sent| {
        if sent >= at(QUIET) {
            return [Some(DELAY), None];
        }
        let split = (at(8_000)..at(14_000)).contains(&sent) && from % 2 != to % 2;
        let lost = split || network.chance(0.25);
        let delay = ms(30) + network.up_to(ms(770));
        let again = network.chance(0.05).then(|| ms(30) + network.up_to(ms(770)));
        [(!lost).then_some(delay), again.filter(|_| !split)]
    });
    for id in 1..=nodes {
        segment.join(peer(id, 1), config);
    }
    for boot in 2..8 {
        segment.run(QUIET / 8 * boot - rng.below(2_000));
        // The best node more often than the others: its reboot is the hard case.
        let victim = if rng.chance(0.5) { nodes } else { 1 + rng.below(nodes) };
        if config.bye().is_some() {
            segment.leave(victim);
        }
        segment.crash(victim);
        segment.run(QUIET / 8 * boot + rng.below(2) * 1_500);
        segment.join(peer(victim, boot), config);
    }
    segment.run(QUIET);
    segment
}

/// When (ms) the hostile network turns into a perfect one.
const QUIET: u64 = 32_000;

fn exposed_to_hostility() -> Config {
    let wait = Suppression::Uniform(ms(800));
    Config::new(ms(1_000), Some(ms(4_000)), wait, Rules::Hardened).unwrap()
}

#[test]
fn after_any_disturbance_all_vouch_for_one_token_of_the_best_node() {
    for (seed, keeps_disks) in (0..300).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut segment = hostile(seed, keeps_disks, exposed_to_hostility());
        segment.run(QUIET + 6_250);
        let best = segment.nodes.iter().map(|(peer, _)| *peer).max().unwrap();
        let token = Some(segment.vouched[&best]);
        assert_eq!(token.map(Epoch::minter), Some(best), "seed {seed}");
        for (peer, node) in &segment.nodes {
            let view = node.view();
            assert_eq!((view.epoch, view.settled), (token, true), "seed {seed} {peer}");
        }
        if keeps_disks {
            let largest = segment.vouched.values().max().copied();
            assert_eq!(token, largest, "seed {seed}: nobody alive or dead vouched for more");
        }
    }
}

/// The spec's 1,600 runs and some more: who leads depends on the draws, but all must vouch for one.
#[test]
fn after_any_disturbance_all_vouch_for_one_token_whatever_the_criterion_and_tenure() {
    let base = exposed_to_hostility();
    let query = Entry::Query { timeout: ms(1_900) };
    let variants = [
        base.with_criterion(Criterion::Wake),
        base.with_criterion(Criterion::Wake).and_then(|it| it.with_tenure(Tenure::Sticky)),
        base.with_tenure(Tenure::Sticky),
        base.with_entry(query),
        base.with_bye(Bye { copies: 1, spacing: ms(200) }),
        base.with_criterion(Criterion::Wake)
            .and_then(|it| it.with_tenure(Tenure::Sticky))
            .and_then(|it| it.with_entry(query))
            .and_then(|it| it.with_bye(Bye { copies: 1, spacing: ms(200) })),
    ];
    for (index, config) in variants.into_iter().enumerate() {
        for (seed, keeps_disks) in (0..200).flat_map(|seed| [(seed, false), (seed, true)]) {
            let mut segment = hostile(seed, keeps_disks, config.unwrap());
            segment.run(QUIET + 6_250);
            let views: Vec<_> =
                segment.nodes.iter().map(|(peer, node)| (*peer, node.view())).collect();
            let token = views[0].1.epoch;
            let live =
                token.is_some_and(|token| views.iter().any(|(peer, _)| *peer == token.minter()));
            assert!(live, "variant {index} seed {seed} {keeps_disks}: {views:#?}");
            for (peer, view) in &views {
                let told = (view.epoch, view.settled);
                assert_eq!(told, (token, true), "variant {index} seed {seed} {peer}: {views:#?}");
            }
        }
    }
}

/// LE-M: the wait is the rank.
fn waking(wait: u64, rules: Rules) -> Config {
    config(Suppression::Fixed(ms(wait)), rules).with_criterion(Criterion::Wake).unwrap()
}

#[test]
fn v11_the_earliest_to_wake_leads() {
    let [a, b, c] = [7, 2, 9];
    for rules in ALL_RULES {
        let mut segment = Segment::new();
        for (id, wait) in [(a, 310), (b, 300), (c, 720)] {
            segment.join(peer(id, 1), waking(wait, rules));
        }
        segment.run(399);
        assert!(segment.node(a).follows() == Some(NodeId::new(a)), "{rules:?}");
        segment.run(401);
        assert!(segment.all_follow(b), "{rules:?}: both a and c at .40");
        segment.run(1_299);
        assert_eq!(segment.sent[..2], [(300, b), (310, a)], "{rules:?}");
        if rules != Rules::Hardened {
            // There a's epoch equals b's, and b is asked for a larger one and mints it (H-6, H-9).
            assert_eq!(segment.sent.len(), 2, "{rules:?}");
        }
        assert!(segment.all_follow(b), "b ignores a, c is suppressed");
    }
}

#[test]
fn v12_only_a_preemptive_leader_yields_to_a_better_newcomer() {
    for (tenure, leader, settled) in [(Tenure::Sticky, 5, 8_300), (Tenure::Preemptive, 3, 7_550)] {
        let config = |wait| waking(wait, Rules::Hardened).with_tenure(tenure).unwrap();
        let mut segment = Segment::new();
        segment.keeps_disks = true;
        // An epoch above what a newcomer mints, or the leader would answer it before its heartbeat.
        segment.disks.insert(NodeId::new(5), durable(5));
        segment.join(peer(5, 1), config(200));
        segment.join(peer(4, 1), config(900));
        segment.run(7_350);
        segment.join(peer(3, 1), config(100));
        segment.run(settled);
        assert!(!segment.all_follow(leader), "{tenure:?}");
        segment.run(settled + 1);
        assert!(segment.all_follow(leader), "{tenure:?}");
        let newcomer = segment.sent_by(3);
        assert_eq!(newcomer[0], 7_450, "{tenure:?}: it does announce");
        segment.run(20_000);
        assert!(segment.all_follow(leader), "{tenure:?}");
        assert!(segment.nodes.iter().all(|(_, node)| node.view().settled), "{tenure:?}");
    }
}

#[test]
fn v18_a_goodbye_spares_the_listen_timeout() {
    for rules in [Rules::Corrected, Rules::Hardened] {
        let goodbye = Bye { copies: 1, spacing: ms(200) };
        let mut segment = Segment::new();
        for (id, wait) in [(3, 0), (2, 300), (1, 600)] {
            let config = config(Suppression::Fixed(ms(wait)), rules).with_bye(goodbye).unwrap();
            segment.join(peer(id, 1), config);
        }
        segment.run(5_400);
        segment.sent.clear();
        segment.leave(3);
        assert_eq!(segment.nodes[0].1.due(), None, "nothing left to say");
        segment.crash(3);
        segment.run(5_500);
        assert!(segment.all_follow(3));
        segment.run(6_500);
        assert_eq!(segment.sent, [(5_400, 3), (5_800, 2)], "{rules:?}");
        assert_eq!(segment.agreement.last(), Some(&(5_900, true)), "{rules:?}");
    }
}

#[test]
fn h10_who_lost_the_goodbye_accepts_the_successor_at_once() {
    let goodbye = Bye { copies: 2, spacing: ms(200) };
    let mut segment = Segment::new();
    for (id, wait) in [(4, 0), (3, 700), (2, 300), (1, 600)] {
        let wait = Suppression::Fixed(ms(wait));
        segment.join(peer(id, 1), config(wait, Rules::Hardened).with_bye(goodbye).unwrap());
    }
    // Nodes 1 and 3 hear no goodbye. 3 ranks above the successor.
    segment.link = Box::new(|from, to, sent| {
        let lost = from == 4 && to != 2 && sent >= at(5_400);
        [(!lost).then_some(DELAY), None]
    });
    segment.run(5_400);
    segment.sent.clear();
    segment.leave(4);
    segment.run(5_650);
    assert_eq!(segment.sent, [(5_400, 4), (5_600, 4)]);
    segment.crash(4);
    segment.run(5_901);
    assert_eq!(segment.node(1).follows(), Some(NodeId::new(2)), "2 claimed at 5.8");
    assert_eq!(segment.node(3).role(), Role::Suppressing { since: at(5_900) });
    segment.run(6_701);
    assert!(segment.all_follow(3), "its own claim at 6.6 is of the same succession");
    assert_eq!(segment.sent_by(3), [6_600]);
}

#[test]
fn a_newcomer_that_asks_knows_its_leader_after_two_delays() {
    let timeout = ms(400);
    for rules in [Rules::Corrected, Rules::Hardened] {
        for (entry, wait, asked) in [
            (Entry::Query { timeout }, 990, 7_250),
            (Entry::SuppressThenQuery { timeout }, 150, 7_400),
        ] {
            let mut segment = Segment::cold(rules, &[(5, 0)]);
            segment.run(7_250);
            segment.sent.clear();
            let config = config(Suppression::Fixed(ms(wait)), rules).with_entry(entry).unwrap();
            segment.join(peer(1, 1), config);
            segment.run(asked + 501);
            assert_eq!(segment.sent, [(asked, 1), (asked + 100, 5)], "{rules:?} {entry:?}");
            assert_eq!(segment.agreement.last(), Some(&(asked + 200, true)));
            assert_eq!(segment.node(1).leadership().leader, Some(NodeId::new(5)));
        }
    }
}

#[test]
fn p14_newcomers_never_change_a_sticky_leader() {
    for seed in 0..50 {
        let mut rng = Seed::new(seed).rng();
        let mut segment = Segment::new();
        let wait = Suppression::Uniform(ms(800));
        let base = config(wait, Rules::Hardened).with_tenure(Tenure::Sticky).unwrap();
        for config in [base, base.with_criterion(Criterion::Wake).unwrap()] {
            segment = Segment::new();
            for id in 4..7 {
                segment.join(peer(id, seed), config);
            }
            segment.run(8_000);
            let leader = segment.node(4).follows().unwrap().get();
            assert!(segment.all_follow(leader), "seed {seed}");
            let mut now = 8_000;
            for id in [9, 1, 8, 2, 7, 3] {
                now += 1 + rng.below(3_000);
                segment.run(now);
                segment.join(peer(id, seed), config);
                for (peer, node) in &segment.nodes[..3] {
                    let follows = node.machine.follows();
                    assert_eq!(follows, Some(NodeId::new(leader)), "seed {seed} {peer}");
                }
            }
            segment.run(now + 3_000);
            assert!(segment.all_follow(leader), "seed {seed}");
        }
        assert!(segment.node(9).role() != Role::Idle);
    }
}

proptest! {
    /// P2: without loss the delay is the best node's draw and one `Δ`, whoever else draws what.
    /// P3: the best node never stops.
    #[test]
    fn p2_p3_the_best_node_decides_the_delay_and_never_stops(
        waits in prop::collection::vec(0..900_u64, 2..9),
    ) {
        let waits: Vec<_> = waits.into_iter().zip(1..).map(|(wait, id)| (id, wait)).collect();
        let &(best, wait) = waits.last().unwrap();
        let mut segment = Segment::cold(Rules::Corrected, &waits);
        segment.run(6_000);
        prop_assert_eq!(&segment.agreement, &[(0, false), (wait + 100, true)]);
        let beats: Vec<_> = (0..6).map(|beat| wait + beat * 1_000).collect();
        prop_assert_eq!(segment.sent_by(best), beats);
    }
}
