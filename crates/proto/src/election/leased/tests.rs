//! Who leads, from when on, and that it is never two.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::{
    id::{Boot, Incarnation},
    membership::ring::Points,
    rng::Seed,
    wire::{Reader, Wire},
};

fn id(number: u64) -> NodeId {
    NodeId::new(number)
}

fn peer(number: u64) -> Peer {
    Peer::new(id(number), Boot::new(1))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const FLAVOURS: [Flavour; 3] = [Flavour::Quorum, Flavour::Conservative, Flavour::Fast];

type Filter = Box<dyn Fn(u64, u64, Time) -> bool>;

/// Machines in a network of fixed delay, and who may act.
struct Net {
    now: Time,
    nodes: BTreeMap<u64, Leased>,
    queue: BTreeMap<(Time, u64), (u64, u64, Message)>,
    sent: u64,
    filter: Filter,
    /// Who may act, until when.
    acting: Option<(u64, Time)>,
    /// From the end of one leader's time to the beginning of the next one's.
    gaps: Vec<Duration>,
    elected: Vec<(Time, u64, Epoch)>,
}

impl Net {
    fn new() -> Self {
        Self {
            now: Time::ZERO,
            nodes: BTreeMap::new(),
            queue: BTreeMap::new(),
            sent: 0,
            filter: Box::new(|_, _, _| true),
            acting: None,
            gaps: Vec::new(),
            elected: Vec::new(),
        }
    }

    fn start(&mut self, node: Leased) {
        let key = node.me.id.get();
        self.nodes.insert(key, node);
        self.input(key, Input::Start);
    }

    fn input(&mut self, key: u64, input: InputOf<'_, Leased>) {
        let mut out = Outbox::new();
        let Some(node) = self.nodes.get_mut(&key) else { return };
        let _ = node.handle(self.now, input, &mut out);
        self.judge(key);
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Send { to, message } if (self.filter)(key, to.get(), self.now) => {
                    self.sent += 1;
                    let at = (self.now + ms(10), self.sent);
                    self.queue.insert(at, (key, to.get(), message));
                }
                Effect::Emit(Event::Elected { epoch }) => self.elected.push((self.now, key, epoch)),
                _ => {}
            }
        }
    }

    fn judge(&mut self, key: u64) {
        let authority = self.nodes[&key].authority();
        match (authority, self.acting) {
            (Some((_, until)), Some((holder, over))) if holder != key => {
                assert!(over <= self.now, "n{holder} to {over} and n{key} from {}", self.now);
                self.gaps.push(self.now.since(over));
                self.acting = Some((key, until));
            }
            (Some((_, until)), _) => self.acting = Some((key, until)),
            (None, Some((holder, over))) if holder == key => {
                self.acting = Some((key, over.min(self.now)));
            }
            _ => {}
        }
    }

    fn run(&mut self, length: Duration) {
        let until = self.now + length;
        loop {
            let message = self.queue.keys().next().map(|&(at, _)| at);
            let due = |(&key, node): (&u64, &Leased)| Some((node.deadline()?.0, key));
            let timer = self.nodes.iter().filter_map(due).min();
            let next = message.unwrap_or(Time::NEVER).min(timer.map_or(Time::NEVER, |(at, _)| at));
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            if message.is_some_and(|at| at <= self.now) {
                let (_, (from, to, message)) = self.queue.pop_first().unwrap();
                let from = peer(from);
                self.input(to, Input::Message { from, via: from.id, message: &message });
            } else if let Some((_, key)) = timer {
                self.input(key, Input::Timeout);
                let due = self.nodes[&key].deadline();
                assert!(due.is_none_or(|(at, _)| at > self.now), "n{key} at {}: {due:?}", self.now);
            }
        }
    }

    /// The one leader that all active nodes name.
    fn leader(&self) -> Option<u64> {
        let active = || self.nodes.values().filter(|node| node.ring.is_active());
        let names: Vec<Option<NodeId>> = active().map(|node| node.leadership().leader).collect();
        let first = names.first().copied().flatten()?;
        names.iter().all(|name| *name == Some(first)).then(|| first.get())
    }
}

fn below() -> ring::Config {
    let config = ring::Config::hardened().with_points(Points::Identity, 64);
    config.with_neighbours(2).unwrap().with_rejoin(false)
}

fn config(flavour: Flavour) -> Config {
    Config::new(flavour).with_preference(Preference::Lowest)
}

fn node(number: u64, flavour: Flavour, founders: &[Peer], witnesses: &[NodeId]) -> Leased {
    let ring = Ring::new(peer(number), below(), Seed::new(number), founders, &[id(2)]);
    Leased::new(ring.with_witnesses(witnesses), config(flavour), None)
}

/// A settled ring of `n`, led by the lowest that is no witness.
fn ring_of(n: u64, flavour: Flavour, witnesses: &[NodeId]) -> Net {
    let mut net = Net::new();
    let founders: Vec<Peer> = (0..n).map(peer).collect();
    for one in 0..n {
        net.start(node(one, flavour, &founders, witnesses));
    }
    net.run(ms(10_000));
    net
}

#[test]
fn the_owner_of_the_key_leads_and_everybody_knows() {
    for flavour in FLAVOURS {
        let net = ring_of(9, flavour, &[]);
        assert_eq!(net.leader(), Some(0), "{flavour:?}");
        let answer = net.nodes[&0].leadership();
        assert!(
            answer.valid_until.is_some_and(|until| until > net.now && until <= net.now + ms(2_000))
        );
        assert_eq!(net.nodes[&5].leadership().valid_until, None, "only the holder knows");
    }
}

#[test]
fn a_witness_votes_and_never_leads() {
    for flavour in FLAVOURS {
        let mut net = ring_of(9, flavour, &[id(0), id(1)]);
        assert_eq!(net.leader(), Some(2), "{flavour:?}");
        net.nodes.remove(&2);
        net.run(ms(12_000));
        // By points 3 and 8 are as far from 0 as it gets: 8 is six behind, 3 is three ahead of it.
        let leader = net.leader().expect("somebody");
        assert!(leader > 2, "{flavour:?}: n{leader}");
    }
}

#[test]
fn after_a_crash_the_next_one_leads_in_time_and_not_too_soon() {
    for flavour in FLAVOURS {
        for after in (0..1_000).step_by(90) {
            let mut net = ring_of(9, flavour, &[]);
            net.run(ms(after));
            let crash = net.now;
            net.nodes.remove(&0);
            net.run(ms(8_000));
            let (at, leader, epoch) = *net.elected.last().unwrap();
            assert!(leader != 0 && at > crash, "{flavour:?} after {after}");
            assert!(epoch > net.elected[0].2);
            // 4 T_l + T_a and one round trip.
            let took = at.since(crash);
            assert!(took < ms(4_500 + 20 + 1), "{flavour:?} after {after}: {took}");
            assert!(net.gaps.iter().all(|gap| !gap.is_zero()), "{flavour:?}: {:?}", net.gaps);
        }
    }
}

/// Five, all of them neighbours, that wait for what a leader has begun.
fn five_with_aftermath(aftermath: Duration) -> Net {
    let mut net = Net::new();
    let founders: Vec<Peer> = (0..5).map(peer).collect();
    for one in 0..5 {
        let ring = below().with_repeats(3);
        let ring = Ring::new(peer(one), ring, Seed::new(one), &founders, &[]);
        let config = config(Flavour::Quorum).with_aftermath(aftermath).with_sticky(true);
        net.start(Leased::new(ring, config, None));
    }
    net.run(ms(12_000));
    assert_eq!(net.leader(), Some(0));
    net
}

/// R11.11: noticing and asking cost no time beyond what the old leader's last backing allowed it.
#[test]
fn a_successor_waits_from_when_its_witnesses_last_backed_anybody() {
    for after in (0..1_000).step_by(90) {
        let mut net = five_with_aftermath(ms(700));
        net.run(ms(after));
        let crash = net.now;
        net.nodes.remove(&0);
        net.run(ms(8_000));
        let (at, leader, _) = *net.elected.last().unwrap();
        assert_ne!(leader, 0);
        // Two sessions, the aftermath, and how far clocks may run apart.
        assert!(at.since(crash) <= ms(2_700 + 30), "after {after}: {}", at.since(crash));
        assert!(net.gaps.iter().all(|&gap| gap >= ms(700)), "after {after}: {:?}", net.gaps);
    }
}

/// A leader that speaks and does not hear is not backed until it is given up, but until it is noticed not to answer (`HB-12` of
/// `docs/rules/half-broken.md`).
#[test]
fn a_leader_that_does_not_hear_is_not_backed_for_long() {
    for after in (0..1_000).step_by(90) {
        let mut net = five_with_aftermath(ms(700));
        net.run(ms(after));
        let deaf = net.now;
        net.filter = Box::new(move |_, to, _| to != 0);
        net.run(ms(8_000));
        let (at, leader, _) = *net.elected.last().unwrap();
        assert_ne!(leader, 0);
        // The rest of a session, 5/8 of one, two, and the aftermath.
        assert!(at.since(deaf) <= ms(4_325 + 50), "after {after}: {}", at.since(deaf));
        assert!(net.gaps.iter().all(|&gap| gap >= ms(700)), "after {after}: {:?}", net.gaps);
    }
}

#[test]
fn who_leads_resigns_or_hands_over_without_a_wait() {
    for flavour in FLAVOURS {
        let mut net = ring_of(9, flavour, &[]);
        net.input(0, Input::Command(Command::Transfer(id(2))));
        net.run(ms(200));
        assert_eq!(net.leader(), Some(2), "{flavour:?}");
        net.run(ms(5_000));
        assert_eq!(net.leader(), Some(2), "{flavour:?}: and it stays");
        net.input(2, Input::Command(Command::Resign));
        net.run(ms(200));
        assert_eq!(net.leader(), Some(0), "{flavour:?}");
        net.input(0, Input::Leave);
        net.run(ms(3_000));
        assert!(net.leader().is_some_and(|leader| leader != 0), "{flavour:?}: {:?}", net.leader());
    }
}

/// A settled ring of nine, all of them neighbours, in which a leader stays, and each has been told by `worth` what each is
/// worth. Who is no neighbour of the leader would notice later that it is gone.
fn weighed(flavour: Flavour, worth: impl Fn(u64, u64) -> u32) -> Net {
    let mut net = Net::new();
    let founders: Vec<Peer> = (0..9).map(peer).collect();
    for one in 0..9 {
        let below = below().with_neighbours(4).unwrap();
        let ring = Ring::new(peer(one), below, Seed::new(one), &founders, &[]);
        net.start(Leased::new(ring, config(flavour).with_sticky(true).with_margin(100), None));
    }
    net.run(ms(10_000));
    for (by, of) in (0..9).flat_map(|by| (0..9).map(move |of| (by, of))) {
        net.input(by, Input::Command(Command::Weigh(id(of), worth(by, of))));
    }
    net
}

#[test]
fn by_quorum_who_is_worth_most_comes_first_in_the_same_time() {
    for after in (0..1_000).step_by(90) {
        let mut net = weighed(Flavour::Quorum, |_, of| if of == 5 || of == 7 { 900 } else { 400 });
        net.run(ms(after));
        assert_eq!(net.leader(), Some(0), "nobody takes over from a leader in office");
        let crash = net.now;
        net.nodes.remove(&0);
        net.run(ms(8_000));
        let (at, leader, _) = *net.elected.last().unwrap();
        assert!(matches!(leader, 5 | 7), "n{leader} leads");
        let took = at.since(crash);
        assert!(took < ms(4_500 + 20 + 1), "after {after}: {took}");
        net.input(leader, Input::Command(Command::Resign));
        net.run(ms(500));
        assert_eq!(net.leader(), Some(if leader == 5 { 7 } else { 5 }));
        assert!(net.gaps.iter().all(|gap| !gap.is_zero()), "{:?}", net.gaps);
    }
}

#[test]
fn without_a_quorum_worth_is_nothing_to_go_by() {
    for flavour in [Flavour::Conservative, Flavour::Fast] {
        let mut net = weighed(flavour, |_, of| if of == 5 { 900 } else { 400 });
        net.nodes.remove(&0);
        net.run(ms(12_000));
        assert!(net.leader().is_some_and(|leader| leader != 5), "{flavour:?}: {:?}", net.leader());
    }
}

/// While news of a record is on its way, two may take each other to come first, and wait for each other once; or each itself,
/// and claim against each other.
#[test]
fn who_differ_about_a_record_never_both_lead() {
    for (ours, theirs) in [(700, 1_000), (1_000, 700)] {
        for after in (0..1_000).step_by(90) {
            let mut net = weighed(Flavour::Quorum, |by, of| match of {
                5 if by == 5 => ours,
                5 => theirs,
                7 => 850,
                _ => 400,
            });
            net.run(ms(after));
            let crash = net.now;
            net.nodes.remove(&0);
            net.run(ms(20_000));
            assert!(net.gaps.iter().all(|gap| !gap.is_zero()), "{:?}", net.gaps);
            let (at, leader, _) = *net.elected.last().unwrap();
            assert_eq!(net.leader(), Some(leader), "{ours}, after {after}");
            // The patience of one; or a claim in vain and a pause.
            let took = at.since(crash);
            assert!(took < ms(4_521 + 6_000), "{ours}, after {after}: {took}");
        }
    }
}

/// A record that has become a little worse is no reason to come behind.
#[test]
fn between_those_worth_about_the_same_the_key_decides() {
    for (worth, first) in [(400, true), (399, false)] {
        let mut net = weighed(Flavour::Quorum, |_, of| if of == 1 { worth } else { 500 });
        net.nodes.remove(&0);
        net.run(ms(8_000));
        assert_eq!(net.leader() == Some(1), first, "worth {worth}");
    }
}

#[test]
fn a_joiner_that_owns_the_key_is_handed_the_office() {
    for flavour in FLAVOURS {
        let mut net = Net::new();
        let founders: Vec<Peer> = (2..9).map(peer).collect();
        for one in 2..9 {
            net.start(node(one, flavour, &founders, &[]));
        }
        net.run(ms(10_000));
        assert_eq!(net.leader(), Some(2), "{flavour:?}");
        net.start(node(0, flavour, &[], &[]));
        net.run(ms(15_000));
        assert_eq!(net.leader(), Some(0), "{flavour:?}");
        assert!(net.nodes[&0].leadership().epoch > Some(net.elected[0].2));
    }
}

#[test]
fn the_crash_of_a_witness_suspends_a_leased_leader_but_not_a_backed_one() {
    for flavour in FLAVOURS {
        let mut net = ring_of(9, flavour, &[]);
        net.nodes.remove(&1);
        let mut idle = 0;
        for _ in 0..600 {
            net.run(ms(10));
            idle += u32::from(net.nodes[&0].authority().is_none());
        }
        assert_eq!(idle > 0, flavour != Flavour::Quorum, "{flavour:?}: {idle}");
        assert_eq!(net.leader(), Some(0), "{flavour:?}");
        net.run(ms(10_000));
        if let Some(electorate) = net.nodes[&0].electorate() {
            let names: Vec<u64> = electorate.old.iter().map(|life| life.id().get()).collect();
            assert_eq!((names, electorate.new.len()), ([0, 2, 3, 7, 8].to_vec(), 0), "{flavour:?}");
        }
    }
}

#[test]
fn a_ring_that_has_lost_most_of_its_witnesses_elects_nobody_and_its_members_know() {
    for (lost, barren) in [(&[0][..], false), (&[0, 2], false), (&[0, 2, 7], true)] {
        let mut net = ring_of(9, Flavour::Quorum, &[]);
        lost.iter().for_each(|of| drop(net.nodes.remove(of)));
        net.run(ms(20_000));
        assert_eq!(net.leader().is_none(), barren, "without {lost:?}");
        assert!(net.nodes.values().all(|node| node.is_barren() == barren), "without {lost:?}");
    }
}

#[test]
fn a_leader_cut_off_stops_before_the_next_one_begins() {
    for flavour in FLAVOURS {
        let mut net = ring_of(9, flavour, &[]);
        net.filter = Box::new(|from, to, _| from != 0 && to != 0);
        net.run(ms(12_000));
        assert!(net.leader().is_some_and(|leader| leader != 0), "{flavour:?}");
        assert!(
            !net.gaps.is_empty() && net.gaps.iter().all(|gap| !gap.is_zero()),
            "{:?}",
            net.gaps
        );
        assert!(net.nodes[&0].authority().is_none());
    }
}

#[test]
fn a_leader_that_slept_may_not_act_on_what_it_knew() {
    for flavour in FLAVOURS {
        let mut net = ring_of(9, flavour, &[]);
        let sleeper = net.nodes.remove(&0).unwrap();
        let (_, until) = sleeper.authority().unwrap();
        net.run(ms(8_000));
        assert!(until < net.now && net.leader().is_some());
        net.nodes.insert(0, sleeper);
        net.input(0, Input::Timeout);
        assert!(net.nodes[&0].authority().is_none(), "{flavour:?}");
        net.run(ms(8_000));
        assert!(net.nodes[&0].authority().is_none(), "{flavour:?}");
    }
}

#[test]
fn nobody_leads_fewer_than_it_must() {
    for flavour in FLAVOURS {
        for (least, leads) in [(1, true), (2, false)] {
            let mut net = Net::new();
            let ring = Ring::new(peer(4), below(), Seed::new(1), &[peer(4)], &[]);
            net.start(Leased::new(ring, config(flavour).with_min_members(least), None));
            net.run(ms(5_000));
            assert_eq!(net.leader().is_some(), leads, "{flavour:?}, at least {least}");
        }
    }
}

/// Whoever the witnesses are: a ring that has shrunk to three still has a leader, unless more must back it.
#[test]
fn who_needs_more_backers_than_there_are_does_not_lead() {
    for (backers, leads) in [(1, true), (3, true), (4, false)] {
        let mut net = Net::new();
        let founders: Vec<Peer> = (0..5).map(peer).collect();
        for &one in &founders {
            let ring = Ring::new(one, below(), Seed::new(one.id.get()), &founders, &[]);
            net.start(Leased::new(ring, config(Flavour::Quorum).with_backers(backers), None));
        }
        net.run(ms(10_000));
        assert_eq!(net.leader(), Some(0), "{backers}");
        for gone in [3, 4] {
            net.nodes.remove(&gone);
            net.run(ms(10_000));
        }
        let acts = net.nodes.values().any(|node| node.authority().is_some());
        assert_eq!(acts, leads, "{backers}");
    }
}

#[test]
fn what_a_leader_has_begun_is_waited_for_also_if_it_hands_over() {
    for flavour in FLAVOURS {
        let mut net = Net::new();
        let founders: Vec<Peer> = (0..5).map(peer).collect();
        for &one in &founders {
            let ring = Ring::new(one, below(), Seed::new(one.id.get()), &founders, &[]);
            let config = config(flavour).with_aftermath(ms(700)).with_sticky(true);
            net.start(Leased::new(ring, config, None));
        }
        net.run(ms(10_000));
        let (_, told) = net.nodes[&0].authority().expect("it leads");
        net.input(0, Input::Command(Command::Resign));
        net.run(ms(10_000));
        let &(from, leader, _) = net.elected.last().unwrap();
        assert!(leader != 0, "{flavour:?}");
        assert!(from >= told + ms(700), "{flavour:?}: told {told}, led from {from}");
    }
}

/// A restarted witness knows the epochs that it promised itself to, known or not to have been won.
#[test]
fn nothing_below_what_a_past_life_promised_is_promised_again() {
    let founders: Vec<Peer> = (0..3).map(peer).collect();
    let large = Epoch::mint(40, peer(2));
    let ring = Ring::new(peer(1), below(), Seed::new(1), &founders, &[]);
    let mut node = Leased::new(ring, config(Flavour::Quorum), Some(large));
    let mut out = Outbox::new();
    node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
    for (counter, granted) in [(39, false), (41, true)] {
        let life = Life { peer: peer(0), inc: Incarnation::default() };
        let epoch = Epoch::mint(counter, peer(0));
        let body = Body::Claim { epoch, life, after: None, round: 1 };
        let message = Message { stamp: Some(Stamp { backs: None, ..node.stamp() }), body };
        let input = Input::Message { from: peer(0), via: id(0), message: &message };
        while out.pop().is_some() {}
        node.handle(Time::ZERO + ms(5_000), input, &mut out).unwrap();
        let effects: Vec<_> = core::iter::from_fn(|| out.pop()).collect();
        let kept = effects.iter().position(|effect| matches!(effect, Effect::Persist(_)));
        let answered = effects.iter().position(|effect| match effect {
            Effect::Send { message, .. } => match message.body {
                Body::Grant { .. } => granted,
                Body::Refuse { .. } => {
                    !granted && message.stamp.as_ref().is_some_and(|it| it.backs == Some(large))
                }
                _ => false,
            },
            _ => false,
        });
        assert!(answered.is_some(), "{counter}: {effects:?}");
        assert!(!granted || kept.is_some() && kept < answered, "kept before it is promised");
    }
}

/// R11.11: whoever was promised something may count on it, also if it has not been acknowledged anything since.
#[test]
fn a_promise_says_when_the_one_before_it_was_made() {
    let founders: Vec<Peer> = (0..3).map(peer).collect();
    let ring = Ring::new(peer(1), below(), Seed::new(1), &founders, &[]);
    let mut node = Leased::new(ring, config(Flavour::Quorum), None);
    let mut out = Outbox::new();
    node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
    for (claimant, at, since) in [(0, 5_000, 5_000), (2, 5_500, 500)] {
        let (from, epoch) = (peer(claimant), Epoch::mint(40 + claimant, peer(claimant)));
        let life = Life { peer: from, inc: Incarnation::default() };
        let claim = Body::Claim { epoch, life, after: None, round: 1 };
        while out.pop().is_some() {}
        // The first one gives up, and frees the witness.
        for body in [claim, Body::Forgo { epoch }] {
            let stamp = Some(Stamp { backs: None, ..node.stamp() });
            let message = Message { stamp, body };
            let input = Input::Message { from, via: from.id, message: &message };
            node.handle(Time::ZERO + ms(at), input, &mut out).unwrap();
        }
        let granted = core::iter::from_fn(|| out.pop()).find_map(|effect| match effect {
            Effect::Send { message: Message { body: Body::Grant { since, .. }, .. }, .. } => {
                Some(since)
            }
            _ => None,
        });
        assert_eq!(granted, Some(ms(since)), "n{claimant}");
    }
}

/// A leader counts on itself and acknowledges nobody else; a claim that does not say what its sender promised must not
/// get both its promise and its office.
#[test]
fn a_leader_that_promises_itself_to_another_stops() {
    for lacks_authority in [false, true] {
        let mut net = ring_of(3, Flavour::Quorum, &[]);
        if lacks_authority {
            // Its sessions are over, and it has not been told.
            net.now += ms(2_200);
        }
        let (leader, other) = (&net.nodes[&0], net.nodes[&2].ring.life());
        let stamp = Stamp { backs: None, ..leader.stamp() };
        let epoch = Epoch::mint(100, other.peer);
        let body = Body::Claim { epoch, life: other, after: None, round: 1 };
        let message = Message { stamp: Some(stamp), body };
        let input = Input::Message { from: other.peer, via: other.id(), message: &message };
        let mut out = Outbox::new();
        let mut leader = leader.clone();
        leader.handle(net.now, input, &mut out).unwrap();
        let sent = core::iter::from_fn(|| out.pop()).filter_map(|effect| match effect {
            Effect::Send { message, .. } => Some(message.body),
            _ => None,
        });
        let mut granted = sent.into_iter().filter_map(|body| match body {
            Body::Grant { since, .. } => Some(since),
            _ => None,
        });
        // It counted on itself up to now (R11.11), and what it has begun may go on for the step-down time.
        let granted = granted.next();
        assert_eq!(granted, lacks_authority.then_some(Duration::ZERO));
        let granted = granted.is_some();
        assert_eq!(matches!(leader.bid, Bid::Office(_)), !granted, "it promised, and leads");
    }
}

/// R11.5 and R11.8, by the numbers of V16.
#[test]
fn the_wait_outlasts_the_last_lease() {
    let zero = below().with_drift(0).unwrap();
    for (ppm, fast, conservative) in [(0, 2_000_000, 2_500_000), (10_000, 2_040_405, 2_550_506)] {
        let config = zero.with_drift(ppm).unwrap();
        assert_eq!(config.waiting(ms(2_000)).as_micros(), fast);
        assert_eq!(config.waiting(config.t_arb()).as_micros(), conservative);
    }
}

fn epochs() -> impl Strategy<Value = Epoch> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>()).prop_map(
        |(counter, node, boot, nth)| Epoch::nth(counter, Peer::new(id(node), Boot::new(boot)), nth),
    )
}

fn lives() -> impl Strategy<Value = Life> {
    (any::<u64>(), any::<u64>(), any::<u32>()).prop_map(|(node, boot, inc)| Life {
        peer: Peer::new(id(node), Boot::new(boot)),
        inc: Incarnation::new(inc),
    })
}

fn messages() -> impl Strategy<Value = Message> {
    let register = (epochs(), lives(), proptest::option::of(lives()))
        .prop_map(|(epoch, holder, heir)| Register { epoch, holder, heir });
    let witnesses = || proptest::collection::btree_set(lives(), 0..5);
    let mark = || (proptest::option::of(epochs()), any::<u32>());
    let electorate = (mark(), witnesses(), witnesses()).prop_map(|(mark, old, new)| Electorate {
        mark,
        old: old.into_iter().collect(),
        new: new.into_iter().collect(),
    });
    let stamp = (
        proptest::option::of(register),
        proptest::option::of(epochs()),
        proptest::option::of(electorate),
    );
    let stamp =
        stamp.prop_map(|(register, backs, electorate)| Stamp { register, backs, electorate });
    let body = prop_oneof![
        (epochs(), lives(), proptest::option::of(epochs()), any::<u32>())
            .prop_map(|(epoch, life, after, round)| Body::Claim { epoch, life, after, round }),
        (epochs(), any::<bool>(), any::<u64>(), any::<u32>()).prop_map(
            |(epoch, free, since, round)| {
                let since = Duration::from_micros(since);
                Body::Grant { epoch, free, since, round }
            }
        ),
        epochs().prop_map(|epoch| Body::Refuse { epoch }),
        Just(Body::Lead),
        (epochs(), any::<bool>()).prop_map(|(epoch, handed)| Body::LeadAck { epoch, handed }),
        epochs().prop_map(|epoch| Body::Take { epoch }),
        Just(Body::Install),
        mark().prop_map(|mark| Body::Installed { mark }),
        epochs().prop_map(|epoch| Body::Forgo { epoch }),
        Just(Body::Ring(ring::Message { inc: Incarnation::new(3), body: ring::Body::Find })),
    ];
    (proptest::option::of(stamp), body).prop_map(|(stamp, body)| Message { stamp, body })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(message in messages()) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), message.encoded_len());
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Message::decode(&mut reader), Ok(message));
        prop_assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::decode(&mut Reader::new(&bytes));
    }

    /// Any message at any time: no panic, and no deadline left behind.
    #[test]
    fn no_message_panics(
        steps in proptest::collection::vec((0_u64..6, 0_u64..3_000, messages()), 1..40),
        flavour in proptest::sample::select(FLAVOURS.to_vec()),
    ) {
        let founders: Vec<Peer> = (0..6).map(peer).collect();
        let mut node = node(0, flavour, &founders, &[]);
        let mut out = Outbox::new();
        node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
        let mut now = Time::ZERO;
        for (from, wait, message) in steps {
            now += ms(wait);
            let _ = node.handle(now, Input::Timeout, &mut out);
            prop_assert!(node.deadline().is_none_or(|(at, _)| at > now));
            let input = Input::Message { from: peer(from), via: id(from), message: &message };
            while out.pop().is_some() {}
            let _ = node.handle(now, input, &mut out);
            let _ = node.leadership();
        }
    }
}
