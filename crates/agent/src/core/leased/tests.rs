use bellwether_proto::{Boot, membership::medley};

use super::*;
use crate::{handle::Handle, store};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Nodes that know each other, on a network of one millisecond.
struct World {
    now: Time,
    members: usize,
    nodes: Vec<Option<Node>>,
    boots: Vec<u64>,
    kept: Vec<Option<Epoch>>,
    records: Vec<Option<store::Worth>>,
    flying: Vec<(Time, usize, usize, Peer, Vec<u8>)>,
    /// Messages between these are lost.
    cut: Vec<(usize, usize)>,
    /// Stopped.
    asleep: Vec<usize>,
    flavour: leased::Flavour,
    learned: Option<Keeping>,
    /// Every act: when, who, under which epoch.
    acts: Vec<(Time, usize, Epoch)>,
}

struct Node {
    core: Core,
    inbox: Inbox,
    _handle: Handle,
}

fn config(members: usize, flavour: leased::Flavour, witness: bool) -> Config {
    let ring = ring::Config::hardened().with_neighbours((members / 2).max(1)).unwrap();
    let ring = ring.with_times(ms(200), ms(100)).unwrap().with_drift(1_000).unwrap();
    let ring = hosted(ring, flavour);
    let backers = majority(members);
    let election = leased::Config::new(flavour)
        .with_min_members(backers)
        .with_backers(backers)
        .with_aftermath(ms(100))
        .with_sticky(true);
    let members = NAMES[..members].iter().map(|&name| name.to_owned()).collect();
    Config { ring, election, members, witness, step_down: ms(100), learned: None }
}

impl World {
    fn new(members: usize, flavour: leased::Flavour) -> Self {
        Self {
            now: Time::from_micros(1),
            members,
            nodes: (0..members).map(|_| None).collect(),
            boots: vec![0; members],
            kept: vec![None; members],
            records: vec![None; members],
            flying: vec![],
            cut: vec![],
            asleep: vec![],
            flavour,
            learned: None,
            acts: vec![],
        }
    }

    fn by_record(members: usize, tenure: Duration, margin: u32) -> Self {
        let learned = Some(Keeping { tenure, margin });
        Self { learned, ..Self::new(members, leased::Flavour::Quorum) }
    }

    fn peer(&self, node: usize) -> Peer {
        Peer::new(NodeId::new(node as u64 + 1), Boot::new(self.boots[node]))
    }

    fn start(&mut self, node: usize) {
        self.boots[node] += 1;
        let me = self.peer(node);
        let mut config = config(self.members, self.flavour, false);
        config.learned = self.learned;
        config.election = config.election.with_margin(self.learned.map_or(0, |one| one.margin));
        let (handle, inbox) = Handle::connect();
        let seat = Seat {
            name: "disk".to_owned(),
            protocol: Protocol::Leased(config),
            standing: Standing { observer: false, attribute: 1 },
            on_isolation: OnIsolation::default(),
            dirty: false,
            learns: self.learned.is_some(),
        };
        let membership = medley::Config::new(medley::Strategy::Swim, medley::Form::Hardened);
        let settings = Settings {
            about: About { name: NAMES[node].to_owned(), ..About::default() },
            cluster: "test".to_owned(),
            advertise: vec![],
            membership,
            elections: vec![seat],
            survey: estimate::Config::of(10).unwrap(),
            timeout: ms(100),
            retry: ms(1_000),
            sample: ms(1_000),
        };
        let mut store = Store::fixed(me);
        if let Some(epoch) = self.kept[node] {
            store.keep_leased(Group::named("disk"), epoch).unwrap();
        }
        if let Some(record) = self.records[node] {
            store.keep_worth(record).unwrap();
        }
        let seed = Seed::new(node as u64 + 100 * self.boots[node]);
        let mut core = Core::new(settings, store, vec![], self.now, seed);
        core.start(self.now, &inbox);
        self.nodes[node] = Some(Node { core, inbox, _handle: handle });
        self.introduce();
    }

    /// Whoever runs is known to all that run, as the membership below would see to.
    fn introduce(&mut self) {
        self.introduce_as(|_, _, standing| standing);
    }

    /// To each as somebody else.
    fn introduce_as(&mut self, mut seen: impl FnMut(usize, usize, Standing) -> Standing) {
        let running = (0..self.members).filter_map(|at| Some((at, self.nodes[at].as_ref()?)));
        let stands = running.map(|(at, node)| (at, node.core.settings.elections[0].stands()));
        let stands: Vec<(usize, Standing)> = stands.collect();
        let peers: Vec<Peer> = (0..self.members).map(|node| self.peer(node)).collect();
        for (to, node) in self.nodes.iter_mut().enumerate() {
            let Some(node) = node else { continue };
            let listed: Vec<Listed> = stands
                .iter()
                .map(|&(of, standing)| Listed {
                    peer: peers[of],
                    name: NAMES[of].to_owned(),
                    standings: vec![(Group::named("disk"), seen(to, of, standing))],
                })
                .collect();
            node.core.each_aside(self.now, |machine, road| machine.on_listed(&listed, road));
        }
    }

    /// For a while, in which what nodes say of themselves gets about.
    fn gossip(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.pass(ms(200));
            self.introduce();
        }
    }

    fn stop(&mut self, node: usize) {
        if let Some(node_) = self.nodes[node].take() {
            self.kept[node] = node_.core.store.leased(Group::named("disk"));
            self.records[node] = node_.core.store.worth();
        }
    }

    fn collect(&mut self) {
        for from in 0..self.members {
            let peer = self.peer(from);
            let Some(node) = &mut self.nodes[from] else { continue };
            for packet in core::mem::take(&mut node.core.outgoing) {
                let Outgoing::Message(to, body) = packet else { continue };
                let to = to.get() as usize - 1;
                if body[0] >= Channel::FIRST && !self.cut.contains(&(from, to)) {
                    self.flying.push((self.now + ms(1), from, to, peer, body));
                }
            }
        }
    }

    /// For a while, a millisecond at a time; every node that may act does, whenever it may.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += ms(1);
            let (due, later) = core::mem::take(&mut self.flying)
                .into_iter()
                .partition(|(at, _, to, ..)| *at <= self.now && !self.asleep.contains(to));
            self.flying = later;
            for (_, _, to, peer, body) in due {
                if let Some(Node { core, inbox, .. }) = &mut self.nodes[to] {
                    core.on_message(self.now, peer, &body, inbox);
                }
            }
            for at in 0..self.members {
                if self.asleep.contains(&at) {
                    continue;
                }
                let Some(Node { core, inbox, .. }) = &mut self.nodes[at] else { continue };
                if core.deadline().is_some_and(|deadline| deadline <= self.now) {
                    core.on_deadline(self.now, inbox);
                }
                core.look(self.now, inbox);
                let answer = core.tallies[0].answer;
                if answer.leader == Some(core.me.id) {
                    self.acts.push((self.now, at, answer.epoch.unwrap()));
                }
            }
            self.collect();
        }
    }

    fn leader(&self) -> Option<usize> {
        let last = self.acts.last().filter(|(at, ..)| *at == self.now)?;
        Some(last.1)
    }

    /// Whoever leads, soon.
    fn settled(&mut self) -> usize {
        for _ in 0..200 {
            if let Some(leader) = self.leader() {
                return leader;
            }
            self.pass(ms(100));
        }
        panic!("nobody leads for 20 s");
    }

    /// Nobody acted under one epoch after anybody had acted under a later one, nor two at once.
    fn check(&self) {
        let mut last: Option<(Time, usize, Epoch)> = None;
        for &(at, node, epoch) in &self.acts {
            if let Some((before, other, largest)) = last {
                assert!(
                    node == other && epoch == largest || epoch > largest && at > before + ms(100),
                    "{node} under {epoch} at {at}, after {other} under {largest} at {before}"
                );
            }
            last = Some((at, node, epoch));
        }
    }
}

#[test]
fn a_majority_that_is_ready_founds_a_ring_and_elects() {
    let mut world = World::new(3, leased::Flavour::Quorum);
    world.start(0);
    world.pass(ms(10_000));
    assert_eq!(world.leader(), None, "one of three is no majority");
    let words = |world: &World| {
        let core = &world.nodes[0].as_ref().unwrap().core;
        core.beside[0].machine.words(world.now).unwrap()
    };
    assert_eq!(words(&world), "1 of 3 members are ready to begin, 2 are needed; not ready: b, c");
    world.start(1);
    world.pass(ms(5_000));
    assert!(world.leader().is_some());
    world.start(2);
    world.pass(ms(5_000));
    assert!(world.leader().is_some());
    for Node { core, .. } in world.nodes.iter().flatten() {
        let leader = core.tallies[0].answer.leader;
        assert_eq!(leader, world.leader().map(|node| NodeId::new(node as u64 + 1)));
    }
    world.check();
}

#[test]
fn by_leases_all_must_be_ready() {
    for flavour in [leased::Flavour::Conservative, leased::Flavour::Fast] {
        let mut world = World::new(3, flavour);
        world.start(0);
        world.start(1);
        world.pass(ms(10_000));
        assert_eq!(world.leader(), None);
        world.start(2);
        world.pass(ms(5_000));
        assert!(world.leader().is_some(), "{flavour:?}");
        world.check();
    }
}

#[test]
fn a_ring_that_all_left_is_founded_anew_and_epochs_grow() {
    let mut world = World::new(3, leased::Flavour::Quorum);
    (0..3).for_each(|node| world.start(node));
    world.pass(ms(3_000));
    assert!(world.leader().is_some());
    // A power cut; one of them does not come back.
    (0..3).for_each(|node| world.stop(node));
    world.pass(ms(50));
    world.start(1);
    world.start(2);
    world.pass(ms(6_000));
    assert!(matches!(world.leader(), Some(1 | 2)));
    // The last one standing leads nobody; with the other, they begin again.
    let leader = world.leader().unwrap();
    world.stop(leader);
    world.pass(ms(6_000));
    assert_eq!(world.leader(), None);
    world.start(0);
    world.pass(ms(15_000));
    assert!(world.leader().is_some());
    world.check();
}

#[test]
fn who_was_stopped_wakes_up_without_authority_and_joins_again() {
    let mut world = World::new(3, leased::Flavour::Quorum);
    (0..3).for_each(|node| world.start(node));
    world.pass(ms(3_000));
    for _ in 0..5 {
        let old = world.settled();
        world.asleep = vec![old];
        world.pass(ms(500));
        assert_ne!(world.settled(), old);
        // An answer asked for before anything else happens, and one after what waited has been read.
        let Some(Node { core, inbox, .. }) = &mut world.nodes[old] else { unreachable!() };
        core.look(world.now, inbox);
        assert_ne!(core.tallies[0].answer.leader, Some(core.me.id));
        world.asleep.clear();
        world.pass(ms(1_000));
    }
    world.check();
}

#[test]
fn whoever_has_other_settings_or_another_name_is_not_heard() {
    let mut world = World::new(3, leased::Flavour::Quorum);
    (0..3).for_each(|node| world.start(node));
    let strange = Config { step_down: ms(1), ..config(3, leased::Flavour::Quorum, false) };
    let said = Said { digest: strange.digest(), body: Body::Inside };
    let mut body = vec![Channel::Leased as u8];
    body.extend(Group::named("disk").number().to_le_bytes());
    said.encode(&mut body);
    let peer = world.peer(1);
    let Some(Node { core, inbox, .. }) = &mut world.nodes[0] else { unreachable!() };
    core.on_message(world.now, peer, &body, inbox);
    assert_eq!(core.refused["other-settings"], 1);
    body[5..9].copy_from_slice(&config(3, leased::Flavour::Quorum, false).digest().to_le_bytes());
    let stranger = Peer::new(NodeId::new(77), Boot::new(1));
    core.on_message(world.now, stranger, &body, inbox);
    assert_eq!(core.refused["not-a-member"], 1);
}

#[test]
fn two_of_one_name_are_nobody() {
    let mut world = World::new(2, leased::Flavour::Quorum);
    (0..2).for_each(|node| world.start(node));
    let twins = [1, 2, 9].map(|id| Listed {
        peer: Peer::new(NodeId::new(id), Boot::new(1)),
        name: NAMES[if id == 1 { 0 } else { 1 }].to_owned(),
        standings: vec![],
    });
    let Some(Node { core, .. }) = &mut world.nodes[0] else { unreachable!() };
    core.each_aside(world.now, |machine, road| machine.on_listed(&twins, road));
    world.pass(ms(1_500));
    assert_eq!(world.leader(), None);
    world.introduce();
    world.pass(ms(5_000));
    assert!(world.leader().is_some());
}

/// Crashes, restarts, pauses and cuts at random; whoever may act acts all the time.
#[test]
fn no_two_act_whatever_happens() {
    for seed in 0..16 {
        let members = [3, 5][seed as usize % 2];
        let mut rng = Seed::new(seed).named("chaos").rng();
        let mut pick = |below: usize| (rng.unit() * below as f64) as usize % below.max(1);
        let mut world = World::new(members, leased::Flavour::Quorum);
        if seed >= 10 {
            // As many hand-overs as can be, to whomever each takes for the best.
            world.learned = Some(Keeping { tenure: ms(500), margin: 0 });
        }
        (0..members).for_each(|node| world.start(node));
        for _ in 0..25 {
            if world.learned.is_some() {
                let mut seen =
                    || Standing { observer: pick(10) == 0, attribute: pick(1_000) as u32 };
                world.introduce_as(|_, _, _| seen());
            }
            let node = pick(members);
            match pick(6) {
                0 => world.stop(node),
                1 | 2 => {
                    for node in 0..members {
                        if world.nodes[node].is_none() && pick(2) == 0 {
                            world.start(node);
                        }
                    }
                }
                3 => world.asleep = vec![world.leader().unwrap_or(node)],
                4 => {
                    let all = (0..members).filter(|&other| other != node);
                    world.cut = all.flat_map(|other| [(node, other), (other, node)]).collect();
                }
                _ => {
                    let half = 1 + pick(members - 1);
                    let other = |(a, b): &(usize, usize)| (*a < half) != (*b < half);
                    let pairs = (0..members).flat_map(|a| (0..members).map(move |b| (a, b)));
                    world.cut = pairs.filter(other).collect();
                }
            }
            world.pass(ms(50 + pick(2_500) as u64));
            if pick(2) == 0 {
                world.asleep.clear();
            }
            if pick(2) == 0 {
                world.cut.clear();
            }
        }
        world.asleep.clear();
        world.cut.clear();
        for node in 0..members {
            if world.nodes[node].is_none() {
                world.start(node);
            }
        }
        world.gossip(ms(40_000));
        let state = || -> Vec<String> {
            let cores = world.nodes.iter().flatten().map(|node| &node.core);
            cores.map(|core| format!("{:#?}", core.beside[0].machine)).collect()
        };
        assert!(world.leader().is_some(), "seed {seed}: nobody leads: {}", state().join("\n"));
        world.check();
    }
}

#[test]
fn what_is_said_reads_back() {
    let life =
        |id| Life { peer: Peer::new(NodeId::new(id), Boot::new(3)), inc: Incarnation::new(2) };
    let fact = |id| Fact { life: life(id), kind: Kind::Member, witness: id == 2 };
    for body in [Body::Inside, Body::Ready { fact: fact(1), list: vec![fact(1), fact(2)] }] {
        let said = Said { digest: 7, body };
        let mut bytes = Vec::new();
        said.encode(&mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(Said::decode(&mut reader), Ok(said));
        assert_eq!(reader.finish(), Ok(()));
        for cut in 0..bytes.len() {
            assert!(Said::decode(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }
}

/// A member that was killed is back among the others soon, whoever it was.
#[test]
fn who_was_killed_joins_again() {
    for victim in 0..3 {
        for after in [10, 300, 1_000, 4_000] {
            let mut world = World::new(3, leased::Flavour::Quorum);
            (0..3).for_each(|node| world.start(node));
            world.pass(ms(4_000));
            let leader = world.leader().unwrap();
            let victim = (leader + victim) % 3;
            world.stop(victim);
            world.pass(ms(after));
            world.start(victim);
            world.pass(ms(10_000));
            let core = &world.nodes[victim].as_ref().unwrap().core;
            let state = &core.beside[0].machine;
            assert!(
                core.tallies[0].answer.leader.is_some(),
                "{victim} of {leader}, {after}: {state:#?} {:?}",
                core.refused
            );
        }
    }
}

/// Its record precedes it, however much the hash would like it to lead.
#[test]
fn who_keeps_crashing_is_not_elected_while_another_lives() {
    let terms_of_the_flapper = |learned: bool| {
        let mut world = World::new(5, leased::Flavour::Quorum);
        if learned {
            world = World::by_record(5, ms(60_000), 100);
        }
        (0..5).for_each(|node| world.start(node));
        // All are worth the same yet: the hash decides.
        world.gossip(ms(4_000));
        let flapper = world.leader().unwrap();
        let mut epochs = BTreeSet::new();
        for round in 0..4 {
            for _ in 0..3 {
                world.stop(flapper);
                world.gossip(ms(600));
                world.start(flapper);
                world.gossip(ms(2_400));
            }
            // Now somebody else fails, once, and all that live have to choose.
            let leader = world.settled();
            if leader != flapper && round > 0 {
                world.stop(leader);
                world.gossip(ms(4_000));
                world.start(leader);
                world.gossip(ms(6_000));
            }
            let all = world.acts.iter().filter(|&&(_, node, _)| node == flapper);
            epochs = all.map(|&(.., epoch)| epoch).collect();
        }
        assert!(world.leader().is_some());
        world.check();
        epochs.len()
    };
    assert_eq!(terms_of_the_flapper(true), 1, "the first, when nothing was known of it");
    assert!(terms_of_the_flapper(false) > 1, "or this shows nothing");
}

#[test]
fn a_leader_hands_over_to_whoever_is_clearly_better_once_its_tenure_is_over() {
    let mut world = World::by_record(3, ms(15_000), 100);
    (0..3).for_each(|node| world.start(node));
    world.gossip(ms(4_000));
    let first = world.leader().unwrap();
    let since = world.acts[0].0;
    for _ in 0..10 {
        let Some(Node { core, inbox, .. }) = &mut world.nodes[first] else { unreachable!() };
        let (election, of) = ("disk".to_owned(), Some(NAMES[first].to_owned()));
        core.on_request(world.now, Request::Report { election, of, cost: 100 }, inbox).unwrap();
        world.gossip(ms(1_000));
        assert_eq!(world.leader(), Some(first), "it is left in office at first");
    }
    world.gossip(ms(5_000));
    let second = world.leader().unwrap();
    assert_ne!(second, first);
    let last = world.acts.iter().filter(|&&(_, node, _)| node == first).map(|&(at, ..)| at).max();
    let led = last.unwrap().since(since);
    assert!(led >= ms(15_000) && led < ms(15_500), "{led}");
    let scores = |at: usize| world.nodes[at].as_ref().unwrap().core.beside[0].machine.scores();
    let worst = scores(second).pop().unwrap();
    assert_eq!((worst.name.as_str(), worst.away), (NAMES[first], false));
    assert!(worst.score < 0.6, "{worst:?}");
    // Fifty good samples are forgiven by then, and it does not come back for that.
    world.gossip(ms(60_000));
    assert_eq!(world.leader(), Some(second));
    world.check();
}

#[test]
fn a_margin_keeps_a_leader_that_is_hardly_worse() {
    let mut world = World::by_record(3, ms(1_000), 100);
    (0..3).for_each(|node| world.start(node));
    world.gossip(ms(4_000));
    let first = world.leader().unwrap();
    for (better, leads) in [(100, true), (101, false)] {
        let worth = |of| if of == first { 500 } else { 500 + better };
        for _ in 0..20 {
            world.pass(ms(200));
            world.introduce_as(|_, of, standing| Standing { attribute: worth(of), ..standing });
        }
        assert_eq!(world.leader() == Some(first), leads, "better by {better}");
    }
    world.check();
}
