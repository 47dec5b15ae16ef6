//! One seed, one trace: twice, on one thread or many, in every build, on every machine.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use bellwether_sim::{
    observe::{Entry, Log},
    run::{Report, run, run_logged, run_many},
    scenario::{Loss, NetworkSettings, Protocol, Scenario, Until},
};

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = folder.read_dir().expect("the shipped scenarios");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() >= 7, "{files:?}");
    files
}

fn load(name: &str, sets: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_shipped_scenario_runs_and_gives_one_trace_for_one_seed() {
    for path in shipped() {
        let scenario = Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        let first = run(&scenario, 1).unwrap();
        assert_eq!(first, run(&scenario, 1).unwrap(), "{}", path.display());
        assert_ne!(first.trace, run(&scenario, 2).unwrap().trace, "{}", path.display());
        assert_eq!(first.violations, [], "{}", path.display());
        assert!(first.values.iter().any(|(_, value)| value.is_some_and(|value| value > 0.0)));
    }
}

/// A world in which most of what can happen does: messages are lost, doubled and reordered, nodes crash, start again with
/// and without their disk, freeze, drift, move, leave and join.
const TROUBLED: &str = r#"
name = "troubled"
duration = "40s"
network = { nodes = 9, start_spread = "1s", placement = { kind = "random", side = 12.0, range = 8.0 }, delay = { kind = "uniform", low = "1ms", high = "30ms" }, loss = { kind = "independent", rate = 0.05 } }
fault = [
    { at = "4s", kind = "drift", fraction = 0.3, ppm = 5000 },
    { at = "6s", kind = "crash", count = 2 },
    { at = "8s", kind = "duplicate", rate = 0.2, by = "200ms", for = "8s" },
    { at = "9s", kind = "reorder", rate = 0.2, by = "200ms", for = "8s" },
    { at = "12s", kind = "recover", count = 1, state = "kept" },
    { at = "14s", kind = "recover", state = "lost" },
    { at = "16s", kind = "pause", count = 1, for = "3s" },
    { at = "20s", kind = "isolate", count = 3 },
    { at = "25s", kind = "heal" },
    { at = "27s", kind = "leave", count = 1 },
    { at = "30s", kind = "join" },
]
"#;

/// A protocol's name, its section, what else it needs, and the trace of seed 1.
type Pin = (&'static str, &'static str, &'static [&'static str], &'static str);

const PINS: [Pin; 23] = [
    (
        "ping",
        r#"membership = { kind = "ping", period = "200ms", timeout = "50ms" }"#,
        &[],
        "7d5ed195eeff34fa",
    ),
    (
        "medley",
        r#"membership = { kind = "medley", lifeguard = "on", period = "1s" }"#,
        &["fault.3={ at = '22s', kind = 'move', count = 3, distance = 4.0 }"],
        "70b3d7eec55fc5d6",
    ),
    (
        "medley as published",
        r#"membership = { kind = "medley", form = "as-published", period = "1s" }"#,
        &[],
        "d4b5f13a54206033",
    ),
    (
        "announce",
        r#"election = { kind = "announce", variant = "le-s", announce = "1s", suppress = "1s", listen = "3s", criterion = "random", bye = { copies = 2, spacing = "50ms" } }"#,
        &[],
        "ec13a9cf81f963ef",
    ),
    (
        "announce as published",
        r#"election = { kind = "announce", variant = "le-m", form = "as-published", announce = "1s", suppress = "1s", listen = "3s" }"#,
        &[],
        "c8fc862f6ec2b236",
    ),
    (
        "announce-several",
        r#"election = { kind = "announce-several", leaders = 3, announce = "1s", suppress = "1s", listen = "3s" }"#,
        &[],
        "7abf72ad13af80d7",
    ),
    ("sup", r#"election = { kind = "sup", suppress = "20s" }"#, &[], "7696e2154d78b803"),
    (
        "al",
        r#"election = { kind = "al", announce = "1s", listen = "3s" }"#,
        &[],
        "34da42e4e22192b1",
    ),
    (
        "sup-al",
        r#"election = { kind = "sup-al", announce = "1s", suppress = "1s", listen = "3s", composition = "persist" }"#,
        &[],
        "c6c65e384956e795",
    ),
    ("bandit", r#"election = { kind = "bandit", policy = "thompson" }"#, &[], "9564e2821c8c9a4c"),
    (
        "bandit, its client and its environment",
        r#"election = { kind = "bandit", form = "reference", client = { requests = 100 }, environment = { kind = "block", machines = "table-1" } }"#,
        &["duration=300s", "network.placement={ kind = 'mesh' }", "fault=[]"],
        "56d6b150af6d7097",
    ),
    (
        "central, cel",
        r#"election = { kind = "central", profile = "cel", rho = 0.7 }"#,
        &[],
        "e840d763da730410",
    ),
    (
        "central, topology aware as published",
        r#"election = { kind = "central", profile = "topology-aware", form = "as-published" }"#,
        &[],
        "aecc39356a731c58",
    ),
    (
        "central, flooding",
        r#"election = { kind = "central", profile = "flooding" }"#,
        &[],
        "fa1b27e26f1cfa61",
    ),
    (
        "central, gomez",
        r#"election = { kind = "central", profile = "gomez" }"#,
        &[],
        "63c5eb8119d62a04",
    ),
    (
        "churn-tolerant",
        r#"membership = { kind = "medley", period = "1s" }
        election = { kind = "churn-tolerant", variant = "hybrid", c = 2, attributes = [3, 1, 4, 1, 5], observers = [2], criterion = "attribute" }"#,
        &["fault.3={ at = '18s', kind = 'elect', count = 2 }"],
        "1b63877f5f756dfc",
    ),
    (
        "churn-tolerant on lists",
        r#"membership = { kind = "lists", missing = [{ node = 0, from = 4 }, { node = 1, from = 2 }] }
        election = { kind = "churn-tolerant", form = "as-published", variant = "base", c = 2 }"#,
        &["fault=[{ at = '5s', kind = 'elect', count = 2 }]"],
        "757266ee801f6f12",
    ),
    (
        "churn-tolerant on recorded lists",
        r#"membership = { kind = "medley", period = "1s", elections = { count = 5 } }
        election = { kind = "churn-tolerant", variant = "preferred", c = 2 }"#,
        &["duration=60s"],
        "9b28c7ce51cc7edb",
    ),
    ("ring", r#"membership = { kind = "ring", neighbours = 2 }"#, &[], "63e955c5c8030c38"),
    (
        "leased",
        r#"membership = { kind = "ring", neighbours = 2, drift = 10000 }
        election = { kind = "leased", witnesses = [8] }"#,
        &["fault.3={ at = '18s', kind = 'elect', target = 'leader' }"],
        "93a00c69ab58aefd",
    ),
    (
        "keys",
        r#"membership = { kind = "ring", neighbours = 2, drift = 10000 }
        keys = { slots = 32, keepers = 2 }"#,
        &[],
        "575cb317c45d10ff",
    ),
    ("node", r#"node = { timing = { profile = "lan" } }"#, &[], "08f0a907d96a5185"),
    (
        "node, leased",
        r#"node = { election = { backup = { mode = "leased", members = ["node-0", "node-1", "node-2"] } } }"#,
        &[],
        "e6cf5832f0ba5e01",
    ),
];

fn pinned((name, section, sets, _): &Pin) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let text = format!("{TROUBLED}{section}");
    Scenario::parse(name, &text, &sets).unwrap_or_else(|error| panic!("{error}"))
}

/// Golden hashes: the same in debug and release builds and on every platform. A change here means
/// that every trace ever recorded is void, which wants a line in the changelog.
#[test]
fn traces_of_every_protocol_are_pinned() {
    let trace = |pin: &Pin| (pin.0, run(&pinned(pin), 1).unwrap().trace.to_string());
    let found: Vec<_> = PINS.iter().map(trace).collect();
    let wanted: Vec<_> = PINS.iter().map(|&(name, .., trace)| (name, trace.to_owned())).collect();
    assert_eq!(found, wanted, "{found:#?}");
}

/// A pin that holds whatever happens would be worth nothing.
#[test]
fn a_pinned_trace_depends_on_the_seed_and_on_the_world() {
    let mut traces = Vec::new();
    for pin in &PINS {
        let scenario = pinned(pin);
        let lossier = Loss::Independent { rate: 0.1 };
        let network = NetworkSettings { loss: lossier, ..scenario.network.clone() };
        let changed = Scenario { network, ..scenario.clone() };
        for outcome in [run(&scenario, 1), run(&scenario, 2), run(&changed, 1)] {
            traces.push(outcome.unwrap().trace);
        }
    }
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 3 * PINS.len());
}

/// Whoever adds a protocol is sent here by the compiler, to pin a trace of it.
#[test]
fn no_protocol_is_without_a_pin() {
    let number = |pin: &Pin| match pinned(pin).protocol {
        Protocol::Ping(_) => 0,
        Protocol::Medley(_) => 1,
        Protocol::Announce(_) => 2,
        Protocol::Several(_) => 3,
        Protocol::Sup(_) => 4,
        Protocol::Al(_) => 5,
        Protocol::SupAl(_) => 6,
        Protocol::Bandit(_) => 7,
        Protocol::Central(_) => 8,
        Protocol::ChurnTolerant { .. } => 9,
        Protocol::Ring(_) => 10,
        Protocol::Leased { .. } => 11,
        Protocol::OnLists { .. } => 12,
        Protocol::Node(_) => 13,
        Protocol::Keys { .. } => 14,
    };
    let pinned: BTreeSet<_> = PINS.iter().map(number).collect();
    assert!(pinned.into_iter().eq(0..15));
}

#[test]
fn traces_of_shipped_scenarios_are_pinned() {
    let traces = |name: &str, sets: &[&str]| run(&load(name, sets), 1).unwrap().trace.to_string();
    assert_eq!(traces("announce-chaos.toml", &[]), "bedacee484371632");
    assert_eq!(traces("announce-failover.toml", &[]), "1d669cc6fdb19f40");
    assert_eq!(traces("ping-field.toml", &["duration=5s"]), "b70007737bbaab3e");
}

#[test]
fn a_hundred_runs_do_not_depend_on_threads_or_on_being_watched() {
    let scenario = load("announce-chaos.toml", &[]);
    let on = |threads| -> Report {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run_many(&scenario, 1, 100, || ())).unwrap()
    };
    let report = on(1);
    assert_eq!(report, on(2));
    let mut hashes: Vec<_> = report.outcomes.iter().map(|outcome| outcome.trace).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 100);

    let mut steps = 0;
    let mut count = |_: Entry| steps += 1;
    let watched = run_logged(&scenario, 1, Log::to(&mut count)).unwrap();
    assert_eq!(watched, report.outcomes[0]);
    assert!(steps > 5_000, "{steps}");
}

#[test]
fn the_digest_tells_scenarios_apart_but_not_names() {
    let plain = load("announce-chaos.toml", &[]);
    let renamed = load("announce-chaos.toml", &["name=other"]);
    assert_eq!(plain.digest(), renamed.digest());
    let changes = [
        "network.loss.rate=0.11",
        "network.nodes=21",
        "network.start_spread=11s",
        "network.placement={ kind = 'ring' }",
        "network.placement={ kind = 'random', side = 12.0, range = 8.0 }",
        "network.placement={ kind = 'random', side = 8.0, range = 12.0 }",
        "network.delay.mean=21ms",
        "network.delay={ kind = 'uniform', low = '20ms', high = '20ms' }",
        "duration=181s",
        "until=agreement",
        "election.form=corrected",
        "election.suppress=2s",
        "election.criterion=random",
        "election={ kind = 'al', announce = '1s', listen = '5s' }",
        "fault.1.fraction=0.31",
        "fault.1.ppm=5001",
        "fault.2.kind=crash",
        "fault.2={ at = '20s', kind = 'leave', nodes = [3] }",
        "fault.2={ at = '20s', kind = 'leave', nodes = [1, 2] }",
        "fault.2={ at = '20s', kind = 'leave', nodes = [2, 1] }",
        "fault.2={ at = '20s', kind = 'partition', groups = [[1], [2, 3]] }",
        "fault.2={ at = '20s', kind = 'partition', groups = [[1, 2], [3]] }",
    ];
    let mut digests = vec![plain.digest()];
    digests.extend(changes.map(|change| load("announce-chaos.toml", &[change]).digest()));
    digests.extend(PINS.iter().map(|pin| pinned(pin).digest()));
    let count = digests.len();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), count);
}

/// Results are kept by the digest of their scenario: one that changes for no reason voids them.
#[test]
fn digests_are_pinned() {
    let pins = [
        ("announce-chaos.toml", "386cc60d4a405316"),
        ("churn-tolerant-recorded.toml", "173c0b26010499b4"),
        ("central-moving.toml", "b99897f2b3f4c9a4"),
    ];
    for (name, digest) in pins {
        assert_eq!(load(name, &[]).digest().to_string(), digest, "{name}");
    }
}

/// A crowd costs what it must: nothing in the run looks at all nodes for every event.
#[test]
fn a_thousand_nodes_elect_in_a_moment() {
    let mut scenario = load("announce-failover.toml", &["network.nodes=1000", "duration=61s"]);
    scenario.until = Until::Duration;
    let outcome = run(&scenario, 1).unwrap();
    assert_eq!(outcome.violations, []);
}

/// `Debug` text has the names of types and fields in it, which may change when no value does.
#[test]
fn no_hash_is_taken_of_formatted_text() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in ["proto", "sim", "lab"] {
        collect(&crates.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 100, "the sources were not found: {files:?}");
    for path in files {
        let source = fs::read_to_string(&path).unwrap();
        assert_eq!(formatted(&source), [] as [&str; 0], "{}", path.display());
    }
    let source =
        "let before = 1;\n hash.fold_value(&format!(\"{feed:?}\"));\n hash.fold_value(&feed);";
    assert_eq!(formatted(source).len(), 1);
}

/// Statements that fold text made on the spot.
fn formatted(source: &str) -> Vec<&str> {
    let folds = |it: &&str| ["fold_value(", ".hash("].iter().any(|fold| it.contains(fold));
    let made = |it: &&str| ["format!", "to_string()"].iter().any(|made| it.contains(made));
    source.split(';').filter(folds).filter(made).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
