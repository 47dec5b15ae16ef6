use bellwether_proto::{
    Incarnation,
    election::announce,
    membership::medley::{self, Body},
    node::{
        AnnouncedSettings, ElectionSettings, EventualSettings, ModeSettings, Settings,
        TimingProfile,
    },
    stack,
};

use super::*;
use crate::{
    host::{
        discovery::Found,
        handle::{Handle, Request},
    },
    status::{Counters, KeyStatus},
};

/// One adapter, its history and its disk.
struct Alone {
    adapter: Adapter,
    inbox: Inbox,
    handle: Handle,
    disk: tempfile::TempDir,
    now: Time,
}

impl Alone {
    fn new(mode: ModeSettings) -> Self {
        let disk = tempfile::tempdir().unwrap();
        let store = Store::open(Some(&disk.path().join("data")), None).unwrap();
        let elections = vec![ElectionSettings::of("backup", mode)];
        let plan = Settings::new("ada", TimingProfile::Lan.timing(), elections).plan().unwrap();
        let now = Time::from_micros(1);
        let adapter = Adapter::new(plan, "test", store, vec![], now, Seed::new(1));
        let (handle, inbox) = Handle::connect([]);
        let mut alone = Self { adapter, inbox, handle, disk, now };
        alone.adapter.start(now, &alone.inbox);
        alone.wait_for_disk();
        alone
    }

    /// With a disk that takes no time.
    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step(end) {
            self.wait_for_disk();
        }
    }

    fn step(&mut self, end: Time) -> bool {
        let due = self.adapter.deadline().filter(|&at| at <= end);
        self.now = due.unwrap_or(end).max(self.now);
        if due.is_some() {
            self.adapter.on_deadline(self.now, &self.inbox);
        }
        due.is_some()
    }

    fn wait_for_disk(&mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        while self.adapter.store.is_writing() {
            let kept = runtime.block_on(self.adapter.written());
            self.adapter.on_written(self.now, kept, &self.inbox);
        }
    }

    fn says(&self) -> ElectionStatus {
        self.adapter.election_status(self.now, 0)
    }

    fn status(&self) -> crate::status::Status {
        let keys = KeyStatus {
            stage: crate::net::key::Rotation::Settled,
            sends: String::new(),
            accepts: vec![],
            members: vec![],
        };
        let peers = PeerTable { remembered: 0, most: 1 };
        self.adapter.status(self.now, 0, Counters::default(), keys, peers)
    }

    fn events(&self) -> Vec<EventKind> {
        self.handle.events_after(0).0.iter().map(|event| event.event).collect()
    }

    fn peer(&self) -> Peer {
        self.adapter.me()
    }
}

fn announced() -> ModeSettings {
    ModeSettings::Announced(AnnouncedSettings::default())
}

#[test]
fn bytes_that_are_no_message_are_counted_and_answered_by_nothing() {
    let mut alone = Alone::new(ModeSettings::Eventual(EventualSettings::default()));
    alone.adapter.outgoing.clear();
    let from = Peer::new(NodeId::new(7), Boot::new(1));
    let mut long = vec![0; 40];
    long[0] = 21;
    for bytes in [&[][..], &[255], &long, &[16, 1, 2, 3]] {
        alone.adapter.on_message(alone.now, from, bytes, &alone.inbox);
    }
    let refused = &alone.adapter.refused;
    assert_eq!((refused.get("malformed"), refused.get("unknown-kind")), (Some(&2), Some(&2)));
    assert!(alone.adapter.outgoing.is_empty());
}

#[test]
fn what_the_disk_refuses_is_not_said_and_the_answer_says_why_until_it_is_taken() {
    let mut alone = Alone::new(announced());
    let (data, aside) = (alone.disk.path().join("data"), alone.disk.path().join("aside"));
    std::fs::rename(&data, &aside).unwrap();
    alone.adapter.outgoing.clear();
    alone.run(Duration::from_secs(10));
    assert!(alone.adapter.outgoing.is_empty(), "{:?}", alone.adapter.outgoing);
    let says = alone.says();
    assert!(!says.is_leader && says.why.contains("node.json"), "{}", says.why);
    assert!(alone.events().contains(&EventKind::DiskRefused));
    std::fs::rename(&aside, &data).unwrap();
    alone.run(Duration::from_secs(10));
    assert!(alone.says().is_leader, "{}", alone.says().why);
    assert!(alone.events().contains(&EventKind::DiskRecovered));
    assert_eq!(alone.status().disk, None);
    assert!(!alone.adapter.outgoing.is_empty());
    // And what was said is what is on disk.
    let epoch = alone.says().epoch.unwrap();
    drop(alone.adapter);
    let kept = Store::open(Some(&data), None).unwrap().durable();
    let kept = kept.elections.get(&ElectionId::named("backup")).cloned();
    let Some(node::Kept::Announced(announce::Durable { max_epoch, .. })) = kept else {
        panic!("{kept:?}")
    };
    assert!(max_epoch >= epoch.counter());
}

/// What is written to is a pipe that nobody reads: whoever opens it hangs.
#[test]
fn a_disk_that_hangs_holds_up_nobody_and_what_it_does_not_have_is_not_said() {
    let mut alone = Alone::new(announced());
    let draft = alone.disk.path().join(format!("data/node.json.{}.new", std::process::id()));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &draft, mode).unwrap();
    alone.adapter.outgoing.clear();
    let began = std::time::Instant::now();
    let end = alone.now + Duration::from_millis(900);
    while alone.step(end) {}
    assert!(alone.adapter.store.is_writing());
    let says = alone.says();
    assert!(!says.is_leader && says.why.contains("writing"), "{}", says.why);
    assert!(!alone.events().contains(&EventKind::DiskRefused), "it may be slow");
    let end = alone.now + Duration::from_secs(20);
    while alone.step(end) {}
    assert!(alone.says().why.contains("does not answer"), "{}", alone.says().why);
    assert!(alone.events().contains(&EventKind::DiskRefused));
    assert!(alone.adapter.outgoing.is_empty(), "{:?}", alone.adapter.outgoing);
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "nobody waited for it");
    let disk = alone.status().disk.unwrap();
    assert!(disk.contains("node.json") && disk.contains("does not answer"), "{disk}");
    // It comes back with an error, and then it works.
    drop(std::fs::File::open(&draft).unwrap());
    alone.wait_for_disk();
    std::fs::remove_file(&draft).unwrap();
    alone.run(Duration::from_secs(10));
    assert!(alone.says().is_leader, "{}", alone.says().why);
    assert!(alone.events().contains(&EventKind::DiskRecovered));
}

#[test]
fn a_later_life_of_ours_stops_this_one() {
    let mut alone = Alone::new(ModeSettings::Eventual(EventualSettings::default()));
    alone.run(Duration::from_secs(5));
    assert!(alone.says().is_leader);
    alone.adapter.on_superseded(alone.now, alone.peer().boot, &alone.inbox);
    assert!(alone.adapter.is_running(), "it is our own life");
    alone.adapter.on_superseded(alone.now, alone.peer().boot.next(), &alone.inbox);
    assert!(!alone.adapter.is_running() && !alone.says().is_leader);
    assert!(alone.events().ends_with(&[
        EventKind::DuplicateIdentity,
        EventKind::StoppedLeading,
        EventKind::LeaderLost
    ]));
}

#[test]
fn whoever_was_stopped_gives_up_leading_before_anything_else() {
    let mut alone = Alone::new(announced());
    alone.run(Duration::from_secs(5));
    assert!(alone.says().is_leader);
    alone.now += Duration::from_secs(60);
    assert!(alone.adapter.is_late(alone.now));
    alone.adapter.on_deadline(alone.now, &alone.inbox);
    assert!(!alone.says().is_leader);
    assert!(alone.events().contains(&EventKind::Stalled));
}

#[test]
fn answers_are_there_to_be_read_without_asking() {
    let mut alone = Alone::new(ModeSettings::Eventual(EventualSettings::default()));
    let before = alone.handle.answers().unwrap();
    assert!(before.elections.is_empty() && !before.are_fresh(), "before anything was answered");
    alone.run(Duration::from_secs(5));
    let answers = alone.handle.answers().unwrap();
    assert!(answers.elections[0].is_leader && answers.elections[0].election == "backup");
    assert!(answers.are_fresh());
}

#[test]
fn whoever_leaves_has_nothing_to_do_once_that_was_said() {
    let mut alone = Alone::new(ModeSettings::Eventual(EventualSettings::default()));
    alone.run(Duration::from_secs(5));
    alone.adapter.leave(alone.now, &alone.inbox);
    alone.run(Duration::from_secs(10));
    assert!(!alone.adapter.is_running());
}

fn addresses(range: std::ops::Range<u16>) -> Vec<SocketAddr> {
    range.map(|port| SocketAddr::from(([192, 0, 2, 1], port))).collect()
}

impl Alone {
    /// Where it said hello meanwhile.
    fn hellos(&mut self, span: Duration) -> Vec<SocketAddr> {
        self.adapter.outgoing.clear();
        self.run(span);
        let hello = |packet: &Outgoing| match packet {
            Outgoing::Hello(address) => Some(*address),
            _ => None,
        };
        self.adapter.outgoing.iter().filter_map(hello).collect()
    }

    fn ask(&mut self, request: Request) -> Result<(), Error> {
        self.adapter.on_request(self.now, request, &self.inbox)
    }
}

#[test]
fn silent_addresses_are_tried_ever_more_rarely_and_there_is_an_end_to_them() {
    let mut alone = Alone::new(announced());
    let refused = alone.ask(Request::Join(addresses(0..1_025))).unwrap_err().to_string();
    assert!(
        refused.contains("1025 addresses more") && refused.contains("1024 at most"),
        "{refused}"
    );
    alone.ask(Request::Join(addresses(0..767))).unwrap();
    assert!(alone.told([EventKind::TableFilling; 2]).is_empty());
    alone.ask(Request::Join(addresses(767..1_000))).unwrap();
    let filling = alone.told([EventKind::TableFilling; 2]);
    assert!(filling.len() == 1 && filling[0].contains("1000 addresses"), "{filling:?}");
    assert!(alone.status().to_join.is_filling());
    let minute = Duration::from_secs(60);
    let first = alone.hellos(minute).len();
    assert!(first >= 4 * 1_000, "{first} in the first minute");
    alone.run(minute * 5);
    let later = alone.hellos(minute).len();
    assert!((1..=1_000).contains(&later), "{later} in the seventh");
    // Whoever asks anew means it.
    alone.ask(Request::Join(addresses(7..8))).unwrap();
    let again = alone.hellos(Duration::from_secs(10));
    assert!(again.iter().filter(|address| address.port() == 7).count() >= 2, "{again:?}");
}

impl Alone {
    fn find(&mut self, source: &str, addresses: Result<Vec<SocketAddr>, &str>) {
        let addresses = addresses.map_err(str::to_owned);
        let next = Some(self.now + Duration::from_secs(4));
        let found = Found { source: source.to_owned(), addresses, next };
        self.adapter.on_found(self.now, found, &self.inbox);
    }

    fn greeted(&mut self) -> BTreeSet<u16> {
        self.hellos(Duration::from_secs(120)).iter().map(SocketAddr::port).collect()
    }

    fn told(&self, kinds: [EventKind; 2]) -> Vec<String> {
        let (events, _) = self.handle.events_after(0);
        let told = events.into_iter().filter(|event| kinds.contains(&event.event));
        told.filter_map(|event| event.detail).collect()
    }
}

#[test]
fn addresses_that_no_source_names_any_more_are_let_go() {
    let mut alone = Alone::new(announced());
    alone.ask(Request::Join(addresses(1..2))).unwrap();
    alone.adapter.set_sources(["one", "two"].map(str::to_owned).to_vec());
    alone.find("one", Ok(addresses(1..5)));
    alone.find("two", Ok(addresses(4..6)));
    alone.find("nobody", Ok(addresses(9..10)));
    assert_eq!(alone.greeted(), (1..6).collect());
    alone.find("one", Err("no"));
    assert_eq!(alone.greeted(), (1..6).collect(), "what it named before may still be true");
    alone.find("one", Ok(addresses(7..8)));
    assert_eq!(alone.greeted(), [1, 4, 5, 7].into(), "the first was given as it is");
    alone.adapter.set_sources(vec!["one".to_owned()]);
    assert_eq!(alone.greeted(), [1, 7].into());
}

/// It used to be told of only by a counter, once there was no room.
#[test]
fn sources_that_name_too_many_are_told_of_before_there_is_no_room() {
    let mut alone = Alone::new(announced());
    alone.adapter.set_sources(vec!["one".to_owned()]);
    for (named, told, refused) in [(700, 0, None), (900, 1, None), (1_024, 1, None)] {
        alone.find("one", Ok(addresses(0..named)));
        assert_eq!(alone.told([EventKind::TableFilling; 2]).len(), told, "{named}");
        assert_eq!(alone.adapter.refused.get("too-many-addresses"), refused);
    }
    // What is tried already takes no more room.
    alone.find("one", Ok(addresses(0..1_030)));
    assert_eq!(alone.adapter.refused.get("too-many-addresses"), Some(&6));
}

#[test]
fn a_source_that_fails_is_told_of_once_with_its_reason_and_its_next_try() {
    let mut alone = Alone::new(announced());
    alone.adapter.set_sources(vec!["cellar.example:7738".to_owned()]);
    for problem in ["no network", "no network", "no such name"] {
        alone.find("cellar.example:7738", Err(problem));
    }
    let status = alone.adapter.source_statuses(alone.now);
    assert_eq!(status[0].problem.as_deref(), Some("no such name"));
    assert_eq!((status[0].next_ms, status[0].addresses.len()), (Some(4_000), 0));
    alone.find("cellar.example:7738", Ok(addresses(1..3)));
    alone.find("cellar.example:7738", Ok(addresses(1..3)));
    let again = "next try in 4 s, then ever more rarely, once a minute at last";
    assert_eq!(
        alone.told([EventKind::JoinFailed, EventKind::JoinFound]),
        [
            format!("cellar.example:7738: no network; {again}"),
            format!("cellar.example:7738: no such name; {again}"),
            format!(
                "cellar.example:7738: stands for {}, {}",
                addresses(1..2)[0],
                addresses(2..3)[0]
            ),
        ]
    );
    let status = alone.adapter.source_statuses(alone.now);
    assert_eq!((status[0].problem.as_ref(), status[0].addresses.len()), (None, 2));
}

/// Members that come, go and are never seen again, more of them than are kept.
#[test]
fn what_happened_to_members_long_gone_is_forgotten() {
    let mut alone = Alone::new(ModeSettings::Eventual(EventualSettings::default()));
    let say = |body| {
        let message = medley::Message {
            sequence: 1,
            incarnation: Incarnation::default(),
            body,
            updates: vec![],
            introductions: vec![],
        };
        Dialect::Present.encode(&Message::Stack(stack::Message::Membership(message)))
    };
    let (join, leave) = (say(Body::Join { after: None }), say(Body::Leave));
    let mut most = 0;
    for id in 1..=3 * RECORDS as u64 {
        let from = Peer::new(NodeId::new(id), Boot::new(1));
        alone.adapter.on_message(alone.now, from, &join, &alone.inbox);
        alone.adapter.on_message(alone.now, from, &leave, &alone.inbox);
        alone.adapter.outgoing.clear();
        alone.run(Duration::from_secs(1));
        most = most.max(alone.adapter.records.len());
    }
    assert!(most >= RECORDS, "{most}: nobody was met");
    assert!(most <= RECORDS + 1, "{most}");
    let last = NodeId::new(3 * RECORDS as u64);
    assert!(alone.adapter.records.contains_key(&last), "the latest stay");
}

#[test]
fn whoever_speaks_another_version_and_a_table_that_fills_up_are_told_of_once() {
    let mut alone = Alone::new(announced());
    let theirs = Versions::new(2, 3).unwrap();
    alone.adapter.on_foreign(alone.peer(), theirs, Versions::OURS, &alone.inbox);
    let most = crate::net::seal::Sealer::MOST_PEERS;
    for remembered in [most / 2, most / 4 * 3, most - 1, most] {
        alone.adapter.on_peers(PeerTable { remembered, most }, &alone.inbox);
    }
    let events = alone.handle.events_after(0).0;
    let of = |kind| events.iter().filter(|event| event.event == kind).collect::<Vec<_>>();
    let detail = of(EventKind::VersionsDiffer)[0].detail.clone().unwrap();
    assert!(detail.contains("version 2 to 3 of packets and this node version 1"), "{detail}");
    let filling = of(EventKind::TableFilling);
    assert_eq!(filling.len(), 1);
    let detail = filling[0].detail.clone().unwrap();
    assert!(detail.contains("12288 nodes") && detail.contains("above 16384"), "{detail}");
}

#[test]
fn a_leader_that_hears_nobody_any_more_says_so_and_one_that_never_did_does_not() {
    let mut alone = Alone::new(ModeSettings::Eventual(EventualSettings::default()));
    alone.run(Duration::from_secs(30));
    let answer = alone.says();
    assert!(answer.is_leader && answer.silent_ms.is_none(), "{answer:?}");
    let heard = Record {
        name: "bob".to_owned(),
        state: MemberState::Failed,
        since: alone.now,
        heard: Some(alone.now),
        verdicts: VecDeque::new(),
    };
    alone.adapter.records.insert(NodeId::new(7), heard);
    assert_eq!(alone.says().silent_ms, None);
    alone.now += Duration::from_secs(6);
    let answer = alone.says();
    assert_eq!(answer.silent_ms, Some(6_000));
    assert!(answer.why.starts_with("nothing heard from anybody for 6 s; elected "), "{answer:?}");
    // Who has said goodbye is not waited for.
    alone.adapter.records.get_mut(&NodeId::new(7)).unwrap().state = MemberState::Left;
    assert_eq!(alone.says().silent_ms, None);
}

#[test]
fn that_nobody_answers_where_it_joins_is_said_once() {
    let mut alone = Alone::new(announced());
    let address = "192.0.2.7:7738".parse().unwrap();
    alone.adapter.seeds.push(Place::new(address, alone.now, false));
    alone.run(Duration::from_secs(120));
    let failed = alone.events().into_iter().filter(|&kind| kind == EventKind::JoinFailed);
    assert_eq!(failed.count(), 1);
}
