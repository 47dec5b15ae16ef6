use bellwether_proto::election::churn_tolerant::{Criterion, Form, Variant};

mod learned;

use super::*;
use crate::handle::Handle;

/// Nodes on a network without delay, loss or sockets.
struct World {
    now: Time,
    nodes: Vec<Option<(Core, Inbox, Handle)>>,
    make: fn(usize) -> Settings,
    /// Where each has a directory of its own, if they have disks.
    disks: Option<tempfile::TempDir>,
}

fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node as u8 + 1], 7738))
}

fn settings(node: usize, priority: u32) -> Settings {
    let ms = Duration::from_millis;
    let membership = medley::Config::new(medley::Strategy::Swim, medley::Form::Hardened)
        .with_times(ms(250), ms(80), ms(250))
        .unwrap();
    let config = churn_tolerant::Config::new(Variant::Optimistic, Form::Hardened)
        .with_bounds(1, 1)
        .and_then(|config| config.with_timeout(ms(100)))
        .and_then(|config| config.with_criterion(Criterion::Attribute, 0))
        .unwrap()
        .with_grace(Some(ms(1_000)));
    let standing = Standing { observer: false, attribute: priority };
    Settings {
        about: About { name: format!("node-{node}"), ..About::default() },
        cluster: "test".to_owned(),
        advertise: vec![address(node)],
        membership,
        elections: vec![Seat {
            name: "backup".to_owned(),
            protocol: Protocol::Eventual(config),
            standing,
            on_isolation: OnIsolation::default(),
            dirty: false,
            learns: false,
        }],
        survey: estimate::Config::of(10).unwrap(),
        timeout: ms(100),
        retry: Duration::from_secs(1),
        sample: Duration::from_secs(5),
    }
}

impl World {
    /// Every node knows of the first only.
    fn new(nodes: usize) -> Self {
        Self::of(nodes, |node| settings(node, 10 - node as u32), None)
    }

    fn of(nodes: usize, make: fn(usize) -> Settings, disks: Option<tempfile::TempDir>) -> Self {
        let mut world = Self { now: Time::from_micros(1), nodes: vec![], make, disks };
        for node in 0..nodes {
            world.nodes.push(None);
            world.start(node);
        }
        world
    }

    fn start(&mut self, node: usize) {
        let (handle, inbox) = Handle::connect();
        let disk = self.disks.as_ref().map(|disks| disks.path().join(node.to_string()));
        let store = Store::open(disk.as_deref()).unwrap();
        let seed = Seed::new(node as u64);
        let mut core = Core::new((self.make)(node), store, vec![address(0)], self.now, seed);
        core.start(self.now, &inbox);
        self.nodes[node] = Some((core, inbox, handle));
    }

    fn core(&self, node: usize) -> &Core {
        &self.nodes[node].as_ref().unwrap().0
    }

    fn with<T>(&mut self, node: usize, act: impl FnOnce(&mut Core, Time, &Inbox) -> T) -> T {
        let (core, inbox, _) = self.nodes[node].as_mut().unwrap();
        act(core, self.now, inbox)
    }

    /// Delivers until nothing is on its way.
    fn settle(&mut self) {
        loop {
            let mut flying = vec![];
            for (from, node) in self.nodes.iter_mut().enumerate() {
                if let Some((core, ..)) = node {
                    let me = core.me();
                    flying.extend(core.outgoing.drain(..).map(|packet| (from, me, packet)));
                }
            }
            if flying.is_empty() {
                return;
            }
            for (from, peer, packet) in flying {
                let to = match &packet {
                    // There is no multicast here.
                    Outgoing::Learn(..) | Outgoing::Group(_) => continue,
                    Outgoing::Hello(to) => (0..self.nodes.len()).find(|&node| address(node) == *to),
                    Outgoing::Message(to, _) => {
                        let is = |core: &Core| core.me().id == *to;
                        self.nodes
                            .iter()
                            .position(|node| node.as_ref().is_some_and(|(core, ..)| is(core)))
                    }
                };
                let Some(to) = to.filter(|&to| self.nodes[to].is_some()) else { continue };
                match packet {
                    Outgoing::Message(_, body) => {
                        self.with(to, |core, now, inbox| core.on_message(now, peer, &body, inbox));
                    }
                    _ => {
                        let there = self.core(to).me();
                        self.with(from, |core, now, inbox| {
                            core.on_met(now, there, address(to), inbox);
                        });
                    }
                }
            }
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        loop {
            let due = self.nodes.iter().flatten().filter_map(|(core, ..)| core.deadline()).min();
            let Some(due) = due.filter(|&due| due <= end) else { break };
            self.now = self.now.max(due);
            for (core, inbox, _) in self.nodes.iter_mut().flatten() {
                core.on_deadline(self.now, inbox);
            }
            self.settle();
        }
        self.now = end;
    }

    fn leaders(&self) -> Vec<Option<String>> {
        let status = |core: &Core| core.status(self.now, 0, Counters::default(), no_keys());
        let leader = |core: &Core| status(core).elections[0].leader.clone().map(|node| node.name);
        self.nodes.iter().flatten().map(|(core, ..)| leader(core)).collect()
    }

    fn all_name(&self, node: usize) -> bool {
        self.leaders().iter().all(|leader| *leader == Some(format!("node-{node}")))
    }
}

#[test]
fn nodes_that_know_one_address_find_each_other_and_agree() {
    let mut world = World::new(5);
    world.pass(Duration::from_secs(10));
    assert!(world.all_name(0), "{:?}", world.leaders());
    let status = world.core(3).status(world.now, 7, Counters::default(), no_keys());
    assert_eq!(status.members.len(), 5);
    let names: Vec<&str> = status.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["node-0", "node-1", "node-2", "node-3", "node-4"]);
    assert!(status.members.iter().all(|member| member.state == MemberState::Alive));
    assert_eq!(status.members[0].addresses, [address(0)]);
    assert_eq!(status.members[3].reach, Reach::Own);
    let election = &status.elections[0];
    assert!(election.settled && !election.is_leader, "{election:?}");
    assert_eq!(election.agreement.dissent, []);
    assert!(election.agreement.agree >= 2, "{election:?}");
}

#[test]
fn the_best_of_the_others_leads_when_the_leader_is_gone_and_it_all_is_in_the_history() {
    let mut world = World::new(5);
    world.pass(Duration::from_secs(10));
    world.nodes[0] = None;
    world.pass(Duration::from_secs(6));
    assert!(world.all_name(1), "{:?}", world.leaders());
    let (_, _, handle) = world.nodes[1].as_ref().unwrap();
    let (events, missed) = handle.events_after(0);
    assert!(!missed);
    let kinds: Vec<EventKind> = events
        .iter()
        .filter(|event| event.node.as_ref().is_some_and(|node| node.name == "node-0"))
        .map(|event| event.event)
        .collect();
    let order = [EventKind::LeaderConfirmed, EventKind::MemberSuspect, EventKind::MemberFailed];
    let mut left = kinds.iter();
    assert!(order.iter().all(|kind| left.any(|other| other == kind)), "{kinds:?}");
    assert!(events.iter().any(|event| event.event == EventKind::BecameLeader));
    let failed = &world.core(2).status(world.now, 0, Counters::default(), no_keys()).members[0];
    assert_eq!((failed.name.as_str(), failed.state), ("node-0", MemberState::Failed));
    assert!(!failed.verdicts.is_empty() && failed.verdicts.iter().any(|one| one.by.is_some()));
}

#[test]
fn a_restarted_node_is_welcome_again() {
    let mut world = World::new(4);
    world.pass(Duration::from_secs(10));
    world.nodes[2] = None;
    world.pass(Duration::from_secs(5));
    world.start(2);
    world.pass(Duration::from_secs(10));
    assert!(world.all_name(0), "{:?}", world.leaders());
    let alive = |status: Status| {
        status.members.iter().filter(|member| member.state == MemberState::Alive).count()
    };
    assert!((0..4).all(|node| alive(world.core(node).status(
        world.now,
        0,
        Counters::default(),
        no_keys()
    )) == 4));
}

#[test]
fn requests_are_granted_or_refused_with_a_reason() {
    let mut world = World::new(4);
    world.pass(Duration::from_secs(10));
    let ask = |world: &mut World, node, request| {
        world.with(node, |core, now, inbox| core.on_request(now, request, inbox))
    };
    let resign = |election: &str| Request::Resign(election.to_owned());
    let refused = ask(&mut world, 1, resign("backup")).unwrap_err();
    assert_eq!(refused.to_string(), "this node does not lead \"backup\", node-0 does");
    let refused = ask(&mut world, 0, resign("back-up")).unwrap_err();
    assert!(refused.to_string().contains("backup"), "{refused}");
    ask(&mut world, 0, resign("backup")).unwrap();
    world.pass(Duration::from_secs(5));
    assert!(world.all_name(1), "{:?}", world.leaders());
    let transfer =
        |to: &str| Request::Transfer { election: "backup".to_owned(), to: to.to_owned() };
    assert_eq!(
        ask(&mut world, 1, transfer("nobody")),
        Err(Refused::NoSuchMember("nobody".to_owned()))
    );
    ask(&mut world, 1, transfer("node-3")).unwrap();
    world.pass(Duration::from_secs(5));
    assert!(world.all_name(3), "{:?}", world.leaders());
    let tag = |value: String| Request::Tags([("rack".to_owned(), Some(value))].into());
    ask(&mut world, 2, tag("b2".to_owned())).unwrap();
    world.pass(Duration::from_secs(5));
    assert_eq!(
        world.core(0).status(world.now, 0, Counters::default(), no_keys()).members[2].tags["rack"],
        "b2"
    );
    let refused = ask(&mut world, 2, tag("x".repeat(300))).unwrap_err();
    assert!(refused.to_string().contains("255"), "{refused}");
    assert_eq!(
        world.core(2).status(world.now, 0, Counters::default(), no_keys()).members[2].tags["rack"],
        "b2",
        "as it was"
    );
    let alive = Request::ForceLeave("node-1".to_owned());
    assert!(ask(&mut world, 0, alive).unwrap_err().to_string().contains("still answers"));
}

#[test]
fn who_was_stopped_does_not_wake_up_leading() {
    let mut world = World::new(3);
    world.pass(Duration::from_secs(10));
    assert!(world.core(0).leads());
    world.with(0, |core, now, inbox| core.on_stall(now, Duration::from_secs(3), inbox));
    assert!(!world.core(0).leads());
    world.pass(Duration::from_secs(5));
    assert!(world.all_name(0), "{:?}", world.leaders());
}

#[test]
fn nonsense_is_refused_and_changes_nothing() {
    let mut world = World::new(2);
    world.pass(Duration::from_secs(5));
    let before = format!(
        "{:?}",
        world.core(0).status(world.now, 0, Counters::default(), no_keys()).elections
    );
    let peer = world.core(1).me();
    for body in [&[][..], &[2], &[0, 9], &[9], &[0, 255, 255], &[1, 0, 0, 0, 0, 0]] {
        world.with(0, |core, now, inbox| core.on_message(now, peer, body, inbox));
    }
    let after = world.core(0).status(world.now, 0, Counters::default(), no_keys());
    assert_eq!(format!("{:?}", after.elections), before);
    assert_eq!(after.counters.dropped["malformed"], 6);
}

#[test]
fn a_dirty_node_hands_over_and_stands_again_when_it_is_clean() {
    let mut world = World::new(3);
    world.pass(Duration::from_secs(10));
    let backup: BTreeSet<String> = ["backup".to_owned()].into();
    world.with(0, |core, now, inbox| core.set_dirty(now, &backup, inbox));
    world.pass(Duration::from_secs(5));
    assert!(world.all_name(1), "{:?}", world.leaders());
    let status = world.core(0).status(world.now, 0, Counters::default(), no_keys());
    assert_eq!(status.elections[0].role, Role::Observer);
    world.with(0, |core, now, inbox| core.set_dirty(now, &BTreeSet::new(), inbox));
    world.nodes[1] = None;
    world.pass(Duration::from_secs(10));
    assert!(world.all_name(0), "{:?}", world.leaders());
}

#[test]
fn who_hears_nobody_any_more_leads_on_or_not_as_it_was_told() {
    let span = Duration::from_secs(5);
    for (told, after_gone, at_last) in [
        (OnIsolation::Hold, true, true),
        (OnIsolation::StepDown, false, false),
        (OnIsolation::HoldFor(span), true, false),
    ] {
        let mut world = World::new(2);
        world.with(0, |core, _, _| core.settings.elections[0].on_isolation = told);
        world.pass(Duration::from_secs(10));
        assert!(world.core(0).leads());
        world.nodes[1] = None;
        while !world.core(0).is_alone() {
            world.pass(Duration::from_millis(50));
        }
        world.pass(Duration::from_secs(1));
        assert_eq!(world.core(0).leads(), after_gone, "{told:?}");
        world.pass(span);
        assert_eq!(world.core(0).leads(), at_last, "{told:?}");
        world.start(1);
        world.pass(Duration::from_secs(10));
        assert!(world.all_name(0), "{told:?}: {:?}", world.leaders());
    }
}

fn no_keys() -> KeyStatus {
    KeyStatus { stage: "settled", sends: String::new(), accepts: vec![] }
}

#[test]
fn it_is_known_how_long_ago_each_member_was_heard_and_the_dead_fall_silent() {
    let mut world = World::new(3);
    world.pass(Duration::from_secs(5));
    let heard = |world: &World, name: &str| {
        let status = world.core(0).status(world.now, 0, Counters::default(), no_keys());
        status.members.into_iter().find(|member| member.name == name).unwrap().heard_ms
    };
    assert_eq!(heard(&world, "node-0"), None, "nobody hears itself");
    for name in ["node-1", "node-2"] {
        assert!(heard(&world, name).unwrap() <= 1_000, "{name}: {:?}", heard(&world, name));
    }
    world.nodes[2] = None;
    world.pass(Duration::from_secs(10));
    assert!(heard(&world, "node-1").unwrap() <= 1_000);
    assert!(heard(&world, "node-2").unwrap() >= 10_000, "{:?}", heard(&world, "node-2"));
}

#[test]
fn what_is_told_of_leaders_has_no_instants_of_a_clock_nobody_knows() {
    let mut world = World::new(2);
    world.pass(Duration::from_secs(5));
    let (_, _, handle) = world.nodes[0].as_ref().unwrap();
    let told = handle.events_after(0).0;
    let told: Vec<String> = told
        .into_iter()
        .filter(|event| event.event == EventKind::LeaderElected)
        .filter_map(|event| event.detail)
        .collect();
    assert!(!told.is_empty() && told.iter().all(|detail| detail.contains(" ago")), "{told:?}");
}

#[test]
fn whoever_says_where_it_is_is_known_to_be_near_or_far() {
    let mut world = World::new(7);
    // On a line, a hundred metres apart; the last does not say where.
    for node in 0..6 {
        let position = Some(Position { x: 100.0 * node as f32, y: 0.0 });
        world.with(node, |core, now, inbox| {
            core.settings.about.position = position;
            core.introduce(now, inbox);
        });
    }
    world.pass(Duration::from_secs(10));
    let ids: Vec<NodeId> = (0..7).map(|node| world.core(node).me().id).collect();
    let links = |from: usize, to: usize| {
        let view = world.core(from).stack.membership().member(ids[to]);
        view.map_or(f32::NAN, |view| view.distance)
    };
    // The fourth nearest is four hundred metres away from the first, and three hundred from the second.
    assert_eq!((links(0, 1), links(0, 4), links(0, 5)), (0.25, 1.0, 1.25));
    assert_eq!((links(1, 0), links(1, 4), links(1, 5)), (1.0 / 3.0, 1.0, 4.0 / 3.0));
    assert!(links(0, 6).is_nan() && links(6, 0).is_nan());
    let told = |to: usize| world.core(0).records[&ids[to]].told.map(|(_, neighbour)| neighbour);
    assert_eq!([1, 4, 5, 6].map(told), [Some(true), Some(true), Some(false), None]);
    let status = world.core(1).status(world.now, 0, Counters::default(), no_keys());
    let told = |name: &str| status.members.iter().find(|one| one.name == name).unwrap().position;
    assert_eq!(told("node-5"), Some(Position { x: 500.0, y: 0.0 }));
    assert_eq!((told("node-1"), told("node-6")), (Some(Position { x: 100.0, y: 0.0 }), None));
}
