//! What is done with any bytes, by libFuzzer (`fuzz_targets`) and, for a few thousand of them, by every test run
//! (`crates/cli/tests/fuzz.rs`). A target panics if something is not as it is promised to be.

use std::{cell::RefCell, collections::VecDeque, fs, path::PathBuf};

use bellwether_agent::{
    Config, Key, KeyRing,
    config::{Format, Inputs},
    internal::{Content, Refusal, Sealer, neighbours, rewritten},
};
use bellwether_proto::{
    Boot, Duration, Effect, Input, InputOf, Machine as _, NodeId, Outbox, OutboxOf, Peer, Seed,
    Time,
    node::{
        About, AnnouncedSettings, CentralSettings, Command, Durable, ElectionSettings,
        EventualSettings, Fact, LearnedSettings, LeasedSettings, Message, ModeSettings, Node,
        Settings, TimingProfile,
        packet::{Dialect, Packet},
    },
    wire::{MAX_DATAGRAM, Reader, SEALED_ROOM, Wire},
};
use bellwether_sim::scenario::Scenario;

/// A target, and what to begin with.
pub struct Target {
    /// As its program is called.
    pub name: &'static str,
    /// What is done with bytes.
    pub run: fn(&[u8]),
    /// Bytes that get somewhere.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: [Target; 7] = [
    Target { name: "packets", run: packets, seeds: packet_seeds },
    Target { name: "nodes", run: nodes, seeds: node_seeds },
    Target { name: "seals", run: seals, seeds: seal_seeds },
    Target { name: "node_file", run: node_file, seeds: node_file_seeds },
    Target { name: "settings", run: settings, seeds: settings_seeds },
    Target { name: "scenarios", run: scenarios, seeds: scenario_seeds },
    Target { name: "tables", run: tables, seeds: table_seeds },
];

/// Every decoder: what is read encodes to what was read, and to nothing else. The first byte says of what.
pub fn packets(data: &[u8]) {
    let Some((&what, bytes)) = data.split_first() else { return };
    match what % 8 {
        0 | 1 => {
            let mut reader = Reader::new(bytes);
            if let Ok(packet) = Packet::decode(&mut reader) {
                assert!(reader.rest().is_empty(), "a packet ends where its bytes do");
                one_encoding::<Packet>(bytes);
                one_encoding::<Message>(bytes);
                // A later version may say more behind it, if there is room.
                let later = Dialect::Next.encode(&packet.message);
                let read = Packet::decode(&mut Reader::new(&later)).expect("with a tail");
                assert_eq!(read.message, packet.message);
            }
        }
        2 => one_encoding::<Message>(bytes),
        3 => one_encoding::<Fact>(bytes),
        4 => one_encoding::<Command>(bytes),
        5 => one_encoding::<Settings>(bytes),
        6 => one_encoding::<Durable>(bytes),
        _ => one_encoding::<About>(bytes),
    }
}

fn one_encoding<T: Wire>(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let Ok(value) = T::decode(&mut reader) else { return };
    let mut again = Vec::new();
    value.encode(&mut again);
    assert_eq!(again, bytes[..reader.at()], "another encoding of one value");
    assert_eq!(value.encoded_len(), again.len());
}

fn packet_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for mode in 0..MODES {
        let mut at = 0;
        run_cluster(mode, |_, heard| {
            if let Heard::Message(_, bytes) = heard {
                at += 1;
                if at % 5 == 0 {
                    seeds.push([&[0], bytes].concat());
                }
            }
        });
        let mut bytes = vec![5];
        settings_of(mode, "one").encode(&mut bytes);
        seeds.push(bytes);
    }
    seeds.truncate(400);
    seeds
}

const MODES: u8 = 5;
const NAMES: [&str; 3] = ["one", "two", "three"];

fn settings_of(mode: u8, name: &str) -> Settings {
    let members = NAMES.map(str::to_owned);
    let mode = match mode % MODES {
        0 => ModeSettings::Eventual(EventualSettings::default()),
        1 => ModeSettings::Announced(AnnouncedSettings::default()),
        2 => ModeSettings::Leased(LeasedSettings::of(members)),
        3 => ModeSettings::Learned(LearnedSettings::of(members)),
        _ => ModeSettings::Central(CentralSettings::default()),
    };
    Settings::new(name, TimingProfile::Lan.timing(), vec![ElectionSettings::of("e", mode)])
}

fn node_of(mode: u8, at: usize) -> Node {
    let plan = settings_of(mode, NAMES[at]).plan().expect("defaults make a plan");
    let ids = (0..NAMES.len()).map(|at| peer(at).id).collect();
    Node::new(peer(at), plan, Seed::new(at as u64), None).with_seeds(ids)
}

fn peer(at: usize) -> Peer {
    Peer::new(NodeId::new(at as u64 + 1), Boot::new(2))
}

/// A whole node that is told anything that can be said. The first byte is the mode; then come steps.
pub fn nodes(data: &[u8]) {
    let Some((&mode, mut data)) = data.split_first() else { return };
    let mut host = Host {
        node: node_of(mode, 0),
        out: Outbox::new(),
        now: Time::from_micros(1_000_000),
        refuses: false,
    };
    host.input(Input::Start);
    while let Some((&step, rest)) = data.split_first() {
        data = rest;
        match step % 7 {
            0 => {
                if let Some((at, _)) = host.node.deadline() {
                    host.now = host.now.max(at);
                }
                host.input(Input::Timeout);
            }
            1 => {
                let (Some(from), Some(bytes)) = (take(&mut data, 1), taken(&mut data, 2)) else {
                    return;
                };
                let from = Peer::new(
                    NodeId::new(u64::from(from[0] & 15)),
                    Boot::new(u64::from(from[0] >> 4)),
                );
                if let Ok(packet) = Packet::decode(&mut Reader::new(bytes)) {
                    let message = &packet.message;
                    host.input(Input::Message { from, via: from.id, message });
                }
            }
            2 => {
                let Some(wait) = take(&mut data, 2) else { return };
                let wait = u16::from_le_bytes([wait[0], wait[1]]);
                host.now += Duration::from_millis(wait.into());
            }
            3 => {
                let Some(bytes) = taken(&mut data, 1) else { return };
                // What the host alone may say, at its time, is not anybody's to say.
                match Fact::decode(&mut Reader::new(bytes)) {
                    Ok(Fact::NotKept) | Err(_) => {}
                    Ok(fact) => host.input(Input::Feed(fact)),
                }
            }
            4 => {
                let Some(bytes) = taken(&mut data, 1) else { return };
                if let Ok(command) = Command::decode(&mut Reader::new(bytes)) {
                    host.input(Input::Command(command));
                }
            }
            5 => host.refuses = !host.refuses,
            _ => host.input(Input::Leave),
        }
    }
}

struct Host {
    node: Node,
    out: OutboxOf<Node>,
    now: Time,
    /// Whether its disk does.
    refuses: bool,
}

impl Host {
    fn input(&mut self, input: InputOf<'_, Node>) {
        let is_timeout = matches!(input, Input::Timeout);
        let result = self.node.handle(self.now, input, &mut self.out);
        assert!(result.is_ok() || self.out.is_empty(), "what is rejected has no effects");
        let mut kept = true;
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { message, .. }
                | Effect::Broadcast(message)
                | Effect::Multicast(message) => check_sent(&message),
                Effect::Persist(durable) => {
                    let mut bytes = Vec::new();
                    durable.encode(&mut bytes);
                    one_encoding::<Durable>(&bytes);
                    kept &= !self.refuses;
                }
                Effect::Emit(_) => {}
            }
        }
        if is_timeout {
            let due = self.node.deadline().map(|(at, _)| at);
            assert!(due.is_none_or(|due| due > self.now), "nothing is due after a timeout");
        }
        if !kept {
            self.refuses = false;
            self.input(Input::Feed(Fact::NotKept));
            self.refuses = true;
        }
        for group in self.node.elections().collect::<Vec<_>>() {
            let _ = self.node.leadership_of(group, self.now);
        }
    }
}

fn check_sent(message: &Message) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    assert!(bytes.len() <= SEALED_ROOM, "{} bytes: {message:?}", bytes.len());
    let mut reader = Reader::new(&bytes);
    assert_eq!(Packet::decode(&mut reader).map(|packet| packet.message).as_ref(), Ok(message));
    assert!(reader.rest().is_empty());
}

fn take<'a>(data: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, tail) = data.split_at_checked(count)?;
    *data = tail;
    Some(head)
}

/// Bytes behind their length, which takes one byte or two.
fn taken<'a>(data: &mut &'a [u8], width: usize) -> Option<&'a [u8]> {
    let length = take(data, width)?.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    let length = length.min(data.len());
    take(data, length)
}

enum Heard<'a> {
    Due,
    Message(Peer, &'a [u8]),
}

/// Three nodes for a few seconds: what the first of them hears, and when.
fn run_cluster(mode: u8, mut hears: impl FnMut(Time, Heard<'_>)) {
    let mut nodes: Vec<Node> = (0..NAMES.len()).map(|at| node_of(mode, at)).collect();
    let mut out: OutboxOf<Node> = Outbox::new();
    let mut now = Time::from_micros(1_000_000);
    let mut flying: VecDeque<(Time, usize, usize, Message)> = VecDeque::new();
    let send = |now, from: usize, out: &mut OutboxOf<Node>, flying: &mut VecDeque<_>| {
        while let Some(effect) = out.pop() {
            let to: Vec<usize> = match &effect {
                Effect::Send { to, .. } => vec![to.get() as usize - 1],
                _ => (0..NAMES.len()).collect(),
            };
            if let Effect::Send { message, .. }
            | Effect::Broadcast(message)
            | Effect::Multicast(message) = effect
            {
                for to in to.into_iter().filter(|&to| to != from && to < NAMES.len()) {
                    flying.push_back((now + Duration::from_millis(1), from, to, message.clone()));
                }
            }
        }
    };
    for (at, node) in nodes.iter_mut().enumerate() {
        let _ = node.handle(now, Input::Start, &mut out);
        send(now, at, &mut out, &mut flying);
    }
    for _ in 0..600 {
        let due = |node: &Node| node.deadline().map_or(Time::NEVER, |(at, _)| at);
        let next = (0..nodes.len()).min_by_key(|&at| due(&nodes[at])).unwrap_or(0);
        let arrives = flying.front().map_or(Time::NEVER, |(at, ..)| *at);
        if arrives <= due(&nodes[next]) {
            let Some((at, from, to, message)) = flying.pop_front() else { break };
            now = now.max(at);
            if to == 0 {
                hears(now, Heard::Message(peer(from), &Dialect::Present.encode(&message)));
            }
            let via = peer(from).id;
            let input = Input::Message { from: peer(from), via, message: &message };
            let _ = nodes[to].handle(now, input, &mut out);
            send(now, to, &mut out, &mut flying);
        } else {
            now = now.max(due(&nodes[next]));
            if next == 0 {
                hears(now, Heard::Due);
            }
            let _ = nodes[next].handle(now, Input::Timeout, &mut out);
            send(now, next, &mut out, &mut flying);
        }
    }
}

fn node_seeds() -> Vec<Vec<u8>> {
    (0..MODES)
        .map(|mode| {
            let (mut steps, mut last) = (vec![mode], Time::from_micros(1_000_000));
            run_cluster(mode, |now, heard| match heard {
                Heard::Due => {
                    steps.push(0);
                    last = now;
                }
                Heard::Message(from, bytes) => {
                    let waited = now.since(last).as_micros() / 1_000;
                    if waited > 0 {
                        steps.push(2);
                        steps.extend((waited as u16).to_le_bytes());
                        last = now;
                    }
                    steps.extend([1, from.id.get() as u8 | (from.boot.get() as u8) << 4]);
                    steps.extend((bytes.len() as u16).to_le_bytes());
                    steps.extend(bytes);
                }
            });
            steps.truncate(8_192);
            steps
        })
        .collect()
}

/// Packets of those that have the key, and of those that have not, at a node that knows some of them.
pub fn seals(mut data: &[u8]) {
    let ring = KeyRing::new(Key::from_bytes([7; 32]));
    let me = Peer::new(NodeId::new(9), Boot::new(5));
    let sealer = |who| Sealer::new(&ring, "farm", who);
    let mut node = sealer(me).with_sense(|body| {
        let packet = Packet::decode(&mut Reader::new(body));
        packet.map(drop).map_err(Refusal::from)
    });
    let mut others: Vec<Sealer> =
        (0..4).map(|at| sealer(Peer::new(NodeId::new(1 + at % 3), Boot::new(1 + at)))).collect();
    let mut now = Time::from_micros(1_000_000);
    let (mut packet, mut answer) = (Vec::new(), Vec::new());
    while let Some((&step, rest)) = data.split_first() {
        data = rest;
        packet.clear();
        now += Duration::from_millis(10);
        match step % 3 {
            0 => {
                let Some(bytes) = taken(&mut data, 1) else { return };
                packet.extend_from_slice(bytes);
            }
            1 => {
                let (Some(how), Some(body)) = (take(&mut data, 2), taken(&mut data, 1)) else {
                    return;
                };
                let who = usize::from(how[0] & 3);
                let forged = others[who].forge(how[1], how[0] >> 2, me, body, &mut packet);
                forged.expect("there is room");
            }
            _ => {
                let Some(who) = take(&mut data, 1) else { return };
                others[usize::from(who[0] & 3)].hello(&mut packet).expect("numbers are left");
            }
        }
        let length = packet.len();
        if let Ok(opened) = node.open(now, &mut packet) {
            assert!(opened.body.end <= length && opened.body.start <= opened.body.end);
            assert_ne!(opened.from.id, me.id);
            assert!(opened.content == Content::Hello || node.is_proven(opened.from));
        } else {
            assert!(step % 3 != 0 || node.peers().remembered <= 3, "strangers are nobody");
        }
        answer.clear();
        if node.answer(&mut answer).is_some() {
            assert!(answer.len() <= length, "{} bytes for {length}", answer.len());
            for other in &mut others {
                let _ = other.open(now, &mut answer.clone());
                let mut back = Vec::new();
                if other.answer(&mut back).is_some() {
                    assert!(back.len() <= answer.len());
                    let _ = node.open(now, &mut back);
                }
            }
        }
        assert!(node.peers().remembered <= 3 && packet.len() <= MAX_DATAGRAM.max(length));
        while let Some((who, theirs)) = node.take_foreign() {
            assert!(who.id != me.id && !theirs.to_string().is_empty());
        }
    }
}

fn seal_seeds() -> Vec<Vec<u8>> {
    let forged = |who: u8, kind: u8, version: u8, body: &[u8]| {
        [&[1, who | kind << 2, version, body.len() as u8], body].concat()
    };
    let mut welcome = vec![1, 0, 0, 0, 0, 0x11];
    let plain = forged(1, 3, 1, &welcome);
    welcome.extend(9u64.to_le_bytes());
    let hello = [&[0x11, 0][..], &[0; 40]].concat();
    vec![
        [&[2, 0][..], &forged(0, 0, 1, &[0, 15, 1, 1, 0]), &forged(0, 1, 1, &[7; 40])].concat(),
        plain,
        forged(2, 3, 1, &welcome),
        forged(3, 2, 9, &hello),
        forged(1, 2, 1, &[&[0x23, 1][..], &[0; 40]].concat()),
        [&[0, 60][..], &[0xB1; 60]].concat(),
    ]
}

/// `node.json`: whatever is read is written so that the same is read again.
pub fn node_file(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(once) = rewritten(text) {
        assert_eq!(rewritten(&once).as_ref(), Ok(&once), "written again");
    }
}

fn node_file_seeds() -> Vec<Vec<u8>> {
    let whole = r#"{"format":1,"id":"62afb7f39fc49323","boot":1407540210,"elections":{"0000000a":{"other":{"of":1}},
        "0d9b4e77":{"vouched":"8.3.2.0","counter":8},"c0420f63":{"leased":"8.3.2.0"},"de57bc4d":{"known":"8.3.2.0",
        "vouched":"8.3.2.0","later":{"than":1}},"f8d15dfb":{"ballot":{"voters":{"roof":"0000000000000009"},"term":8,
        "vote":"0000000000000009","beliefs":{"0000000000000009":[250000,4]},"later":[1.5]}}},
        "worth":{"cost":1,"count":8,"ended_well":true,"later":null}}"#;
    vec![
        whole.into(),
        br#"{"id":"0000000000000001","boot":1}"#.to_vec(),
        br#"{"format":2}"#.to_vec(),
    ]
}

thread_local! {
    /// Where settings are read from: they come from files.
    static FILE: RefCell<Option<(tempfile::TempDir, PathBuf)>> = const { RefCell::new(None) };
}

/// The settings of an agent.
pub fn settings(data: &[u8]) {
    let file = FILE.with_borrow_mut(|file| {
        let (_, path) = file.get_or_insert_with(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("bellwether.toml");
            (folder, path)
        });
        path.clone()
    });
    fs::write(&file, data).expect("there is room");
    match Config::load(&Inputs { file: Some(file), ..Inputs::default() }) {
        Ok(config) => assert!(!config.elections.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn settings_seeds() -> Vec<Vec<u8>> {
    let heads = "name = \"pi-1\"\ncluster = \"farm\"\nkey_file = \"key\"\n";
    let rest = [
        "join = [\"10.0.0.7:7738\", \"seed.example\"]\ntags = { rack = \"3\" }\n",
        "data_dir = \"/var/lib/bellwether\"\n[timing]\nprofile = \"wan\"\nperiod = \"200ms\"\n",
        "[election.backup]\nmode = \"eventual\"\nvariant = \"base\"\npriority = 7\n",
        "[election.disk]\nmode = \"leased\"\nmembers = [\"pi-1\", \"pi-2\", \"pi-3\"]\ndrift = 100\n",
        "[election.vote]\nmode = \"learned\"\nvoters = [\"pi-1\", \"pi-2\", \"pi-3\"]\n",
        "[election.map]\nmode = \"central\"\ncriterion = \"degree\"\nneighbours = \"babel:[::1]:33123\"\n",
        "position = [1.0, 2.0]\n[[hook]]\non = [\"became-leader\"]\nrun = [\"/bin/true\"]\n",
    ];
    rest.iter().map(|rest| format!("{heads}{rest}").into_bytes()).collect()
}

/// Scenarios.
pub fn scenarios(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Err(error) = Scenario::parse("scenario.toml", text, &[]) {
        assert!(!error.to_string().is_empty());
    }
}

fn scenario_seeds() -> Vec<Vec<u8>> {
    // Of this crate, or of the one whose tests include it.
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = ["../scenarios", "../../scenarios"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut seeds: Vec<Vec<u8>> = files.filter_map(|file| fs::read(file.path()).ok()).collect();
    seeds.sort_unstable();
    seeds
}

/// The tables of routing daemons. The first byte says of which.
pub fn tables(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    let format = [Format::Babel, Format::Olsr, Format::Batman][usize::from(which % 3)];
    // Whatever a daemon sends is text to us.
    let text = String::from_utf8_lossy(data);
    match neighbours::parse(format, &text) {
        Ok(found) => assert!(found.len() <= text.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn table_seeds() -> Vec<Vec<u8>> {
    [
        "\u{0}BABEL 1.0\nversion babeld-1.13\nok\nadd neighbour 5581e7b0 address fe80::1 if wlan0 reach ffff ureach 0000 rxcost 256 txcost 256 cost 256\nok\n",
        "\u{1}{\"links\":[{\"localIP\":\"10.0.0.1\",\"remoteIP\":\"10.0.0.2\",\"linkQuality\":1.0,\"neighborLinkQuality\":0.9}]}",
        "\u{1}Table: Links\nLocal IP\tRemote IP\tHyst.\tLQ\tNLQ\tCost\n10.0.0.1\t10.0.0.2\t0.00\t1.000\t0.897\t1.114\n",
        "\u{2}[B.A.T.M.A.N. adv 2023.1, MainIF/MAC: wlan0/02:00:00:00:00:01]\nIF Neighbor last-seen\nwlan0 02:00:00:00:00:02 0.420s\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
