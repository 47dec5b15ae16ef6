use std::{
    collections::VecDeque,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{Arc, Mutex},
};

use bellwether_proto::{
    Boot, Duration, ElectionId, Input, InputOf, Machine as _, NodeId, Outbox, Peer, Seed, Time,
    node::{
        Command, ElectionSettings, Fact, LeasedSettings, Message, ModeSettings, Node, Settings,
        TimingProfile,
    },
};

use super::{format::put_frame, *};

/// What a writer has written, for those that look on.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn header(me: u64) -> Header {
    let names = ["node-1", "node-2"].map(str::to_owned);
    let disk = ModeSettings::Leased(LeasedSettings::of(names));
    let elections = vec![ElectionSettings::default(), ElectionSettings::of("disk", disk)];
    Header {
        program: "0.1.0".to_owned(),
        unix_ms: 1_700_000_000_000,
        me: Peer::new(NodeId::new(me), Boot::new(3)),
        seed: 7 + me,
        settings: Settings::new(&format!("node-{me}"), TimingProfile::Local.timing(), elections),
        durable: bellwether_proto::node::Durable::default(),
    }
}

/// A recorded node, without the agent around it.
struct Recorded {
    node: Node,
    recorder: Option<Recorder>,
    ended: Option<String>,
}

impl Recorded {
    fn new(header: &Header, recorder: Recorder) -> Self {
        let plan = header.settings.plan().unwrap();
        let seed = Seed::new(header.seed);
        let node = Node::new(header.me, plan, seed, Some(header.durable.clone()));
        Self { node, recorder: Some(recorder), ended: None }
    }

    /// What it sends, to the other or to both.
    fn give(&mut self, now: Time, input: InputOf<'_, Node>) -> Vec<Message> {
        let (mut out, mut sent) = (Outbox::new(), vec![]);
        let recorder = self.recorder.as_mut().unwrap();
        recorder.given(now, &input);
        let result = self.node.handle(now, input, &mut out);
        while let Some(effect) = out.pop() {
            recorder.effect(&effect);
            if let bellwether_proto::Effect::Send { message, .. } = effect {
                sent.push(message);
            }
        }
        let ended = recorder.outcome(&self.node, now, result.as_ref().copied());
        self.ended = self.ended.take().or(ended);
        sent
    }
}

fn beginning(header: &Header) -> (Written, u64) {
    let written = Written::default();
    let bytes = format::beginning(header);
    let length = bytes.len() as u64;
    written.0.lock().unwrap().extend(bytes);
    (written, length)
}

/// Two nodes that meet and elect, for ten seconds; the first one's recording.
fn recorded(limit: u64) -> (Vec<u8>, Option<String>) {
    let mut files = vec![];
    let mut nodes: Vec<Recorded> = [1, 2]
        .iter()
        .map(|&me| {
            let header = header(me);
            let (written, length) = beginning(&header);
            files.push(written.clone());
            Recorded::new(&header, Recorder::start(written, limit, length).unwrap())
        })
        .collect();
    let begun = Time::from_micros(1_000_000);
    let peers = [header(1).me, header(2).me];
    let delay = Duration::from_millis(1);
    let mut waiting = VecDeque::new();
    let mut give = |now: Time, at: usize, input: InputOf<'_, Node>, waiting: &mut VecDeque<_>| {
        let sent = nodes[at].give(now, input);
        waiting.extend(sent.into_iter().map(|message| (now + delay, at, message)));
        [0, 1].map(|at: usize| nodes[at].node.deadline().map_or(Time::NEVER, |(due, _)| due))
    };
    give(begun, 0, Input::Start, &mut waiting);
    give(begun, 1, Input::Start, &mut waiting);
    let met = Input::Feed(Fact::Met(peers[1].id));
    let mut due = give(begun, 0, met, &mut waiting);
    let mut now = begun;
    while now < begun + Duration::from_secs(10) {
        let at = usize::from(due[1] < due[0]);
        // What has arrived comes before what is due.
        if waiting.front().is_some_and(|(arrives, ..)| *arrives <= due[at])
            && let Some((arrives, from, message)) = waiting.pop_front()
        {
            now = now.max(arrives);
            let (from, at) = (peers[from], 1 - from);
            let input = Input::Message { from, via: from.id, message: &message };
            due = give(now, at, input, &mut waiting);
        } else {
            now = now.max(due[at]);
            due = give(now, at, Input::Timeout, &mut waiting);
        }
    }
    let elect = Input::Command(Command::Elect(ElectionId::named("nonsense")));
    nodes[0].give(now, elect);
    nodes[0].give(now, Input::Leave);
    let ended = nodes[0].ended.take();
    drop(nodes);
    let bytes = files[0].0.lock().unwrap().clone();
    (bytes, ended)
}

fn open(bytes: &[u8]) -> Result<Recording<&[u8]>, RecordError> {
    Recording::read(Path::new("life.record"), bytes)
}

fn run(bytes: &[u8]) -> Result<Replayed, RecordError> {
    replay(open(bytes)?)
}

#[test]
fn a_recorded_life_replays_with_equal_effects() {
    let (bytes, ended) = recorded(u64::MAX);
    assert_eq!(ended, None);
    let replayed = run(&bytes).unwrap();
    assert!(replayed.divergence.is_none(), "{:?}", replayed.divergence);
    assert_eq!(replayed.header, header(1));
    assert_eq!(replayed.end, Some(End::Marked(Cause::Stopped)));
    assert!(replayed.inputs > 100 && replayed.span >= Duration::from_secs(10), "{replayed:?}");
    // Both elections have been decided, and the command that made no sense is among the inputs.
    let mut recording = open(&bytes).unwrap();
    let mut again = Replay::new(recording.path(), recording.header()).unwrap();
    let (mut led, mut rejected, mut last) = ([false; 2], 0, None);
    for entry in recording.by_ref() {
        let entry = entry.unwrap();
        let step = again.step(&entry);
        rejected += u32::from(step.rejected.is_some());
        for (led, answer) in led.iter_mut().zip(again.answers(entry.now)) {
            *led |= answer.leadership.leader.is_some();
            assert_eq!(answer.leader.is_some(), answer.leadership.leader.is_some());
        }
        last = entry.outcome;
    }
    assert_eq!((led, rejected > 0), ([true; 2], true));
    assert_eq!(last.map(|outcome| outcome.digest), Some(replayed.digest));
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_read_up_to_its_last_whole_entry() {
    let (bytes, _) = recorded(u64::MAX);
    let header = format::beginning(&header(1)).len();
    let all = run(&bytes).unwrap().inputs;
    let mut last = 0;
    for cut in 0..bytes.len().min(header + 2_000) {
        let replayed = run(&bytes[..cut]);
        if cut < header {
            let error = replayed.unwrap_err().to_string();
            assert!(error.starts_with("life.record: byte "), "{error}");
            continue;
        }
        let replayed = replayed.unwrap();
        assert!(replayed.divergence.is_none() && replayed.inputs < all);
        assert!(matches!(replayed.end, Some(End::Open | End::Cut(_))), "{:?}", replayed.end);
        assert!(replayed.inputs == last || replayed.inputs == last + 1);
        last = replayed.inputs;
        let zeros = [&bytes[..cut], &[0; 5_000]].concat();
        let zeros = run(&zeros);
        if replayed.end == Some(End::Open) {
            assert_eq!(zeros.unwrap().inputs, last, "a file longer than what was written");
        }
    }
    assert!(last > 5);
}

#[test]
fn whatever_byte_is_wrong_is_found() {
    let (bytes, _) = recorded(u64::MAX);
    let header = format::beginning(&header(1)).len();
    let all = run(&bytes).unwrap().inputs;
    for at in 0..bytes.len().min(header + 600) {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x10;
        match run(&wrong) {
            Err(error) => assert!(error.to_string().starts_with("life.record: byte "), "{error}"),
            // A length that reaches beyond the end.
            Ok(replayed) => {
                assert!(matches!(replayed.end, Some(End::Cut(_))), "{at}: {:?}", replayed.end);
                assert!(replayed.inputs < all);
            }
        }
    }
}

#[test]
fn a_node_that_behaves_otherwise_is_found_at_the_first_difference() {
    let (bytes, _) = recorded(u64::MAX);
    // Another seed is another behaviour, as another build might have.
    let other = Header { seed: 99, ..header(1) };
    let from = format::beginning(&header(1)).len();
    let bytes = [format::beginning(&other), bytes[from..].to_vec()].concat();
    let replayed = run(&bytes).unwrap();
    let Divergence { entry, step } = replayed.divergence.unwrap();
    let recorded = entry.outcome.unwrap();
    assert!(step.number <= 20 && step.number == replayed.inputs, "{step:?}");
    assert_ne!(recorded.digest, step.outcome.digest);
    assert_eq!(replayed.end, None, "nothing was given after it");
}

#[test]
fn other_files_and_other_versions_are_refused_with_a_reason() {
    let problem = |bytes: &[u8]| run(bytes).unwrap_err().to_string();
    assert_eq!(problem(b"[timing]"), "life.record: byte 0: this is no recording of an agent");
    assert_eq!(problem(b""), problem(b"[timing]"));
    let newer = [&format::MAGIC[..], &[9]].concat();
    let words = "life.record: byte 18: version 9 of the format; this program reads version 1";
    assert_eq!(problem(&newer), words);
    let mut unknown = format::beginning(&header(1));
    put_frame(&mut unknown, &[0, 9]);
    assert!(problem(&unknown).ends_with("input 1: kind at byte 1: unknown value 9"));
    let missing = Recording::open(Path::new("no/such/file")).unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file: "), "{missing}");
}

#[test]
fn a_recording_ends_at_its_limit_and_says_so() {
    let limit = 4_000;
    let (bytes, ended) = recorded(limit);
    assert_eq!(ended.as_deref(), Some("it has reached its limit of 4000 bytes"));
    assert!(bytes.len() as u64 <= limit && bytes.len() > 3_000, "{}", bytes.len());
    let replayed = run(&bytes).unwrap();
    assert_eq!(replayed.end, Some(End::Marked(Cause::Limit)));
    assert!(replayed.divergence.is_none() && replayed.inputs > 0);
}

/// A disk that is full, or one that hangs.
struct Disk(io::ErrorKind);

impl io::Write for Disk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {
            io::ErrorKind::TimedOut => loop {
                std::thread::park();
            },
            kind => Err(kind.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_node() {
    let header = header(1);
    let recorder = Recorder::start(Disk(io::ErrorKind::StorageFull), u64::MAX, 0).unwrap();
    let mut recorded = Recorded::new(&header, recorder);
    recorded.give(Time::ZERO, Input::Start);
    let begun = std::time::Instant::now();
    while recorded.ended.is_none() {
        assert!(begun.elapsed().as_secs() < 20);
        recorded.give(Time::ZERO, Input::Timeout);
    }
    assert_eq!(recorded.ended.as_deref(), Some("no storage space"));
    recorded.give(Time::ZERO, Input::Timeout);
}

#[test]
fn a_disk_that_hangs_ends_it_too_and_nobody_waits_for_it() {
    let header = header(1);
    let recorder = Recorder::start(Disk(io::ErrorKind::TimedOut), u64::MAX, 0).unwrap();
    let mut recorded = Recorded::new(&header, recorder);
    recorded.give(Time::ZERO, Input::Start);
    let tags = (0..15).map(|tag| (format!("{tag}"), "x".repeat(120))).collect();
    let about = bellwether_proto::node::About { tags, ..header.settings.about.clone() };
    let begun = std::time::Instant::now();
    while recorded.ended.is_none() {
        // Refused, as it is too long, but recorded.
        let introduce = Command::Introduce(Box::new(about.clone()));
        recorded.give(Time::ZERO, Input::Command(introduce));
    }
    assert_eq!(recorded.ended.as_deref(), Some("the disk cannot keep up"));
    drop(recorded);
    assert!(begun.elapsed().as_secs() < 30);
}

#[test]
fn an_input_that_its_node_did_not_survive_is_the_last_of_the_recording() {
    let header = header(1);
    let (written, length) = beginning(&header);
    let recorder = Recorder::start(written.clone(), u64::MAX, length).unwrap();
    let mut recorded = Recorded::new(&header, recorder);
    recorded.give(Time::from_micros(5), Input::Start);
    let recorder = recorded.recorder.as_mut().unwrap();
    recorder.given(Time::from_micros(9), &Input::Timeout);
    drop(recorded);
    let bytes = written.0.lock().unwrap().clone();
    let mut recording = open(&bytes).unwrap();
    let entries: Vec<Entry> = recording.by_ref().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 2);
    assert_eq!((&entries[1].given, entries[1].outcome), (&Given::Timeout, None));
    assert_eq!(entries[1].now, Time::from_micros(9));
    assert!(recording.end().unwrap().is_unfinished());
    assert!(run(&bytes).unwrap().divergence.is_none());
}

#[test]
fn lives_are_kept_apart_and_nothing_else_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.record");
    for boot in 1..=7 {
        let header = Header { me: Peer::new(NodeId::new(1), Boot::new(boot)), ..header(1) };
        drop(Recorder::create(&path, 1 << 20, &header).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let boot = |name: &str| {
        let recording = Recording::open(&folder.path().join(name)).unwrap();
        recording.header().me.boot.get()
    };
    let names = ["node.record", "node.record.1", "node.record.2", "node.record.3", "node.record.4"];
    assert_eq!(names.map(boot), [7, 6, 5, 4, 3]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);

    let settings = folder.path().join("agent.toml");
    fs::write(&settings, "name = \"a\"").unwrap();
    let error = Recorder::create(&settings, 1 << 20, &header(1)).unwrap_err().to_string();
    assert!(error.contains("agent.toml: another file is there, and no recording"), "{error}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "name = \"a\"");
    let error = Recorder::create(folder.path(), 1 << 20, &header(1)).unwrap_err().to_string();
    assert!(error.contains("a directory is there"), "{error}");
    let nowhere = folder.path().join("no").join("where");
    assert!(Recorder::create(&nowhere, 1 << 20, &header(1)).is_err());
}
