use std::collections::BTreeSet;

use bellwether_proto::election::central::{Config, Criterion, Detection, Mark, View};
use bellwether_proto::topology::map::Entry;

use super::*;
use crate::{
    handle::Handle,
    neighbours::{Format, parse},
};

/// Nodes of which only some hear each other, and nobody passes packets on.
struct Mesh {
    now: Time,
    nodes: Vec<(Core, Inbox, Handle)>,
    links: BTreeSet<(usize, usize)>,
}

fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, node as u8 + 1], 7738))
}

fn settings(node: usize, config: Config) -> Settings {
    let ms = Duration::from_millis;
    let membership = medley::Config::new(medley::Strategy::Swim, medley::Form::Hardened)
        .with_times(ms(250), ms(80), ms(250))
        .unwrap();
    let tags = [(MAC.to_owned(), format!("02:00:5e:00:53:{node:02x}, 02:00:5e:00:54:{node:02x}"))];
    let protocol = Protocol::Central(config);
    let seat = |name: &str, protocol: Protocol| Seat {
        name: name.to_owned(),
        protocol,
        standing: Standing { observer: false, attribute: 100 },
        on_isolation: OnIsolation::default(),
        dirty: false,
        learns: false,
    };
    Settings {
        about: About { name: format!("node-{node}"), tags: tags.into(), ..About::default() },
        cluster: "test".to_owned(),
        advertise: vec![address(node)],
        membership,
        elections: vec![seat("mesh", protocol)],
        survey: estimate::Config::of(10).unwrap(),
        timeout: ms(100),
        retry: Duration::from_secs(1),
        sample: Duration::from_secs(10),
    }
}

fn beacons() -> Detection {
    let ms = Duration::from_millis;
    Detection::Beacons { period: ms(100), timeout: ms(350) }
}

impl Mesh {
    fn new(nodes: usize, detection: Detection, seeds: &[SocketAddr]) -> Self {
        Self::of(nodes, Config::hardened(detection).unwrap(), seeds)
    }

    fn of(nodes: usize, config: Config, seeds: &[SocketAddr]) -> Self {
        let now = Time::from_micros(1);
        let start = |node: usize| {
            let (handle, inbox) = Handle::connect();
            let (store, seed) = (Store::open(None).unwrap(), Seed::new(node as u64));
            let settings = settings(node, config);
            let mut core = Core::new(settings, store, seeds.to_vec(), now, seed);
            core.start(now, &inbox);
            (core, inbox, handle)
        };
        Self { now, nodes: (0..nodes).map(start).collect(), links: BTreeSet::new() }
    }

    /// From now on just these hear each other.
    fn link(&mut self, links: &[(usize, usize)]) {
        self.links = links.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
    }

    fn id(&self, node: usize) -> NodeId {
        self.nodes[node].0.me().id
    }

    fn settle(&mut self) {
        loop {
            let mut flying = vec![];
            for (from, (core, ..)) in self.nodes.iter_mut().enumerate() {
                let me = core.me();
                flying.extend(core.outgoing.drain(..).map(|packet| (from, me, packet)));
            }
            if flying.is_empty() {
                return;
            }
            for (from, peer, packet) in flying {
                for to in (0..self.nodes.len()).filter(|&to| self.links.contains(&(from, to))) {
                    let there = self.nodes[to].0.me();
                    let [a, b] = [from, to];
                    match &packet {
                        Outgoing::Group(body) => {
                            assert!(body.len() <= Sealer::ROOM);
                            let (core, inbox, _) = &mut self.nodes[b];
                            core.on_group(self.now, peer, body, inbox);
                        }
                        Outgoing::Message(id, body) if *id == there.id => {
                            let (core, inbox, _) = &mut self.nodes[b];
                            core.on_message(self.now, peer, body, inbox);
                        }
                        Outgoing::Hello(place) if *place == address(to) => {
                            let (core, inbox, _) = &mut self.nodes[a];
                            core.on_met(self.now, there, address(to), inbox);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        loop {
            let due = self.nodes.iter().filter_map(|(core, ..)| core.deadline()).min();
            let Some(due) = due.filter(|&due| due <= end) else { break };
            self.now = self.now.max(due);
            for (core, inbox, _) in &mut self.nodes {
                core.on_deadline(self.now, inbox);
            }
            self.settle();
        }
        self.now = end;
    }

    /// Whom each of these names, by its name as that node knows it.
    fn leaders(&self, nodes: &[usize]) -> Vec<String> {
        let named = |&node: &usize| {
            let core = &self.nodes[node].0;
            core.named(core.tallies[0].answer.leader.expect("central nodes always name one")).name
        };
        nodes.iter().map(named).collect()
    }
}

#[test]
fn the_middle_of_a_line_leads_and_far_nodes_know_its_name_though_no_packet_reaches_them() {
    let mut mesh = Mesh::new(7, beacons(), &[]);
    mesh.link(&[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
    mesh.pass(Duration::from_secs(8));
    assert_eq!(mesh.leaders(&[0, 1, 2, 3, 4, 5, 6]), ["node-3"; 7]);
    let map = mesh.nodes[6].0.map_status("mesh").unwrap();
    let best = &map.nodes[0];
    assert_eq!((best.name.as_str(), best.score, best.degree, best.hops), ("node-3", 12, 2, 3));
    assert_eq!(best.id, map.leader.clone().unwrap());
    let names: BTreeSet<&str> = map.nodes.iter().map(|node| node.name.as_str()).collect();
    let all: Vec<String> = (0..7).map(|node| format!("node-{node}")).collect();
    assert_eq!(names, all.iter().map(String::as_str).collect());
    assert_eq!((map.central.members, map.links.len()), (7, 6));
    assert_eq!(map.central.neighbours, ["node-5"]);
    let other = mesh.nodes[0].0.map_status("mesh").unwrap();
    assert_eq!(other.central.map, map.central.map, "equal maps have equal hashes");

    // Once cut in two, each part has its own.
    mesh.link(&[(0, 1), (1, 2), (4, 5), (5, 6)]);
    mesh.pass(Duration::from_secs(2));
    assert_eq!(mesh.leaders(&[0, 1, 2]), ["node-1"; 3]);
    assert_eq!(mesh.leaders(&[4, 5, 6]), ["node-5"; 3]);
    assert_eq!(mesh.leaders(&[3]), ["node-3"]);
    let why = mesh.nodes[3].0.status(mesh.now, 0, Counters::default(), no_keys());
    assert_eq!(why.elections[0].why, "nobody else is in range");
    assert_eq!(why.elections[0].central.as_ref().unwrap().members, 1);
}

#[test]
fn the_criterion_decides_and_is_named() {
    let links = [(0, 1), (1, 2), (1, 6), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5), (5, 6)];
    let config = Config::hardened(beacons()).unwrap();
    // By the others identities, which are drawn, would have to decide between equals.
    let config = config.with_criterion(Criterion::Betweenness).unwrap();
    let mut mesh = Mesh::of(7, config, &[]);
    mesh.link(&links);
    mesh.pass(Duration::from_secs(8));
    assert_eq!(mesh.leaders(&[0, 1, 2, 3, 4, 5, 6]), ["node-1"; 7]);
    let map = mesh.nodes[4].0.map_status("mesh").unwrap();
    assert_eq!((map.central.criterion, map.central.score), ("betweenness", 6_000));
    let scores: Vec<u64> = map.nodes.iter().map(|node| node.score).collect();
    assert_eq!(scores, [6_000, 4_000, 2_000, 2_000, 500, 500, 0]);
    let status = mesh.nodes[4].0.status(mesh.now, 0, Counters::default(), no_keys());
    let why = &status.elections[0].why;
    assert_eq!(why, "most central of 7 by betweenness, with a score of 6.000");
}

#[test]
fn a_daemons_table_says_who_is_in_range_by_addresses_or_by_a_tag() {
    let mut mesh = Mesh::new(4, Detection::Given, &[address(0)]);
    // All know each other, as IP is routed, and yet only some are near.
    mesh.link(&[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    mesh.pass(Duration::from_secs(3));
    assert_eq!(mesh.nodes[3].0.stack.membership().members().count(), 3);
    let leading = |mesh: &Mesh| -> Vec<String> { mesh.leaders(&[0, 1, 2, 3]) };
    assert_eq!(leading(&mesh), ["node-0", "node-1", "node-2", "node-3"], "nobody is near yet");
    // A star around node 2: half of them by OLSR's table, the rest by batman-adv's.
    let olsr = |nodes: &[usize]| {
        let row = |&node: &usize| format!("192.0.2.9\t{}\t1.000\n", address(node).ip());
        let rows: String = nodes.iter().map(row).collect();
        let table = format!("Table: Links\nLocal IP\tRemote IP\tCost\n{rows}\n");
        parse(Format::Olsr, &table).unwrap()
    };
    let batman = |node: usize| {
        let row = format!("IF Neighbor last-seen\n wlan0 02:00:5e:00:54:{node:02x} 0.1s\n");
        parse(Format::Batman, &row).unwrap()
    };
    let tables = [olsr(&[2]), batman(2), olsr(&[0, 1, 3]), batman(2)];
    for (node, table) in tables.into_iter().enumerate() {
        let (core, inbox, _) = &mut mesh.nodes[node];
        core.set_neighbours(mesh.now, "mesh", Some(table), None, inbox);
    }
    mesh.pass(Duration::from_secs(1));
    assert_eq!(leading(&mesh), ["node-2"; 4]);

    // A table that cannot be read is told, and changes nothing.
    let (core, inbox, _) = &mut mesh.nodes[2];
    core.set_neighbours(mesh.now, "mesh", None, Some("babeld: gone".to_owned()), inbox);
    mesh.pass(Duration::from_secs(1));
    assert_eq!(leading(&mesh), ["node-2"; 4]);
    let status = mesh.nodes[2].0.map_status("mesh").unwrap().central;
    assert_eq!(status.problem.as_deref(), Some("babeld: gone"));
    assert_eq!(status.neighbours.len(), 3);

    // An empty one says that nobody is there.
    let (core, inbox, _) = &mut mesh.nodes[2];
    core.set_neighbours(mesh.now, "mesh", Some(vec![]), None, inbox);
    mesh.pass(Duration::from_secs(1));
    assert_eq!(leading(&mesh), ["node-0", "node-1", "node-2", "node-3"]);
}

#[test]
fn places_on_the_map_are_not_given_away_and_a_dirty_node_names_nobody() {
    let mut mesh = Mesh::new(1, beacons(), &[]);
    let now = mesh.now;
    let (core, inbox, _) = &mut mesh.nodes[0];
    let refused = core.on_request(now, Request::Resign("mesh".to_owned()), inbox).unwrap_err();
    assert_eq!(refused.to_string(), PLACE);
    core.set_dirty(now, &BTreeSet::from(["mesh".to_owned()]), inbox);
    assert_eq!(core.tallies[0].answer.leader, None);
    assert_eq!(core.map_status("mesh").unwrap().leader, None);
    core.set_dirty(now, &BTreeSet::new(), inbox);
    assert_eq!(core.tallies[0].answer.leader, Some(core.me().id));
    let unknown = core.map_status("door").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "no election is called \"door\"; this agent takes part in mesh"
    );
}

#[test]
fn who_was_stopped_does_not_lead_before_it_could_hear_others() {
    let mut mesh = Mesh::new(2, beacons(), &[]);
    let now = mesh.now;
    let (core, inbox, _) = &mut mesh.nodes[0];
    assert_eq!(core.tallies[0].answer.leader, Some(core.me().id));
    core.on_stall(now, Duration::from_secs(5), inbox);
    assert_eq!(core.tallies[0].answer.leader, None);
    mesh.pass(Duration::from_millis(340));
    assert_eq!(mesh.nodes[0].0.tallies[0].answer.leader, None);
    mesh.pass(Duration::from_millis(20));
    assert_eq!(mesh.leaders(&[0]), ["node-0"], "there is nobody else");
}

#[test]
fn what_is_too_long_for_a_sealed_datagram_is_said_in_parts() {
    let ids = |from: u64, count: u64| (from..from + count).map(|id| NodeId::new(id << 40));
    let entry = |id: NodeId| Entry { id, view: View::new(id, u64::MAX, ids(1, 60)) };
    let entries = Message::Entries(ids(1, 40).map(entry).collect());
    let mark = |id| Mark { id, clock: u64::MAX, hash: 7 };
    let (first, last) = (NodeId::new(0), NodeId::new(u64::MAX));
    let digest = Message::Digest { first, last, marks: ids(1, 200).map(mark).collect() };
    for message in [entries, digest] {
        let (mut parts, mut whole) = (vec![message], vec![]);
        while let Some(part) = parts.pop() {
            match halves(&part).filter(|_| Said::Machine(part.clone()).encoded_len() > ROOM) {
                Some([front, back]) => parts.extend([back, front]),
                None => whole.push(part),
            }
        }
        assert!(whole.len() > 1);
        let mut next = Some(0);
        let (mut told, mut marked) = (0, 0);
        for part in whole {
            assert!(Said::Machine(part.clone()).encoded_len() <= ROOM);
            match part {
                Message::Entries(entries) => told += entries.len(),
                Message::Digest { first, last, marks } => {
                    assert_eq!(Some(first.get()), next, "ranges have no gaps");
                    next = last.get().checked_add(1);
                    marked += marks.len();
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(told == 40 || (marked == 200 && next.is_none()), "{told} {marked} {next:?}");
    }
}

#[test]
fn what_is_said_is_read_back_and_nonsense_is_not_believed() {
    let name = |id, name: &str| (NodeId::new(id), name.to_owned());
    for said in [
        Said::Machine(Message::Beacon),
        Said::Who(vec![NodeId::new(1), NodeId::new(u64::MAX)]),
        Said::Names(vec![name(3, "kitchen"), name(4, &"x".repeat(63))]),
    ] {
        let mut bytes = vec![];
        said.encode(&mut bytes);
        assert_eq!(bytes.len(), said.encoded_len());
        let mut reader = Reader::new(&bytes);
        assert_eq!(Said::decode(&mut reader).unwrap(), said);
        reader.finish().unwrap();
        for cut in 0..bytes.len() {
            assert!(Said::decode(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }
    let mut mesh = Mesh::new(2, beacons(), &[]);
    mesh.link(&[(0, 1)]);
    mesh.pass(Duration::from_secs(2));
    let (own, other) = (mesh.id(0), mesh.id(1));
    let names = [(own, "thief"), (other, "liar"), (NodeId::new(9), "nobody")];
    let names = names.map(|(id, name)| (id, name.to_owned())).to_vec();
    let mut road = vec![16 + 3];
    road.extend(Group::named("mesh").number().to_le_bytes());
    Said::Names(names).encode(&mut road);
    road.resize(road.len().max(32), 0);
    let from = mesh.nodes[1].0.me();
    let now = mesh.now;
    let (core, inbox, _) = &mut mesh.nodes[0];
    core.on_group(now, from, &road, inbox);
    assert_eq!(core.refused.values().sum::<u64>(), 0, "{:?}", core.refused);
    let called = [own, other, NodeId::new(9)].map(|id| core.named(id).name);
    assert_eq!(called, ["node-0", "node-1", "0000000000000009"]);
}

fn no_keys() -> KeyStatus {
    KeyStatus { stage: "settled", sends: String::new(), accepts: vec![] }
}
