//! Wrong scenarios are refused with a message that helps, right ones are read, and nothing panics.
//!
//! Each `wrong/NAME.toml` has its full message in `wrong/NAME.stderr`; lines that start with
//! `# --set` are its overrides. `BLESS=1 cargo test` writes the messages anew, for review.

use std::fs;

use bellwether_proto::{Duration, election::announce::Suppression};
use bellwether_sim::scenario::{
    DelayLaw, Distances, Every, FaultKind, Lack, Loss, MoveLaw, NetworkSettings, Place, Placement,
    Protocol, Routing, Scenario, State, Until, Who,
};
use proptest::prelude::*;

const RIGHT: &str = r#"
name = "right"
duration = "60s"
[network]
nodes = 6
placement = { kind = "edges", edges = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]] }
delay = { kind = "uniform", low = "1ms", high = "20ms", per = "path" }
loss = { kind = "per-link", rate = 0.1, links = [{ from = 0, to = 1, rate = 1 }] }
[election]
kind = "announce"
variant = "le-s"
announce = "1s"
suppress = "1s"
listen = "never"
[[fault]]
at = "10s"
kind = "crash"
target = "leader"
[[fault]]
at = "20s"
every = "5s"
kind = "partition"
groups = [[0, 1], [2]]
[[fault]]
at = "30s"
kind = "recover"
state = "kept"
[[fault]]
at = "40s"
kind = "cut"
from = [3]
[[fault]]
at = "45s"
kind = "cut"
from = { count = 1 }
to = { fraction = 0.5 }
both = true
for = "2s"
[[fault]]
at = "50s"
kind = "starve"
nodes = [1, 4]
blocked = "2s"
running = "100ms"
for = "5s"
[[fault]]
at = "55s"
kind = "crash"
count = 2
keep = "connected"
"#;

fn parse(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    Scenario::parse("right.toml", text, &sets).map_err(|error| error.to_string())
}

fn toml_files(folder: &str) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension() == Some("toml".as_ref())).collect();
    files.sort();
    files
}

#[test]
fn every_wrong_scenario_is_refused_with_its_message() {
    let bless = std::env::var_os("BLESS").is_some();
    let files = toml_files("tests/wrong");
    assert!(files.len() >= 20);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let sets: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("# --set ")).map(Into::into).collect();
        let message = match Scenario::load(&path, &sets) {
            Ok(scenario) => panic!("{} was accepted: {scenario:?}", path.display()),
            Err(error) => {
                assert!(error.allowed().is_some(), "{error}\nsays not what is allowed");
                format!("{error}\n")
            }
        };
        let golden = path.with_extension("stderr");
        if bless {
            fs::write(&golden, &message).unwrap();
        }
        assert_eq!(message, fs::read_to_string(&golden).unwrap(), "{}", golden.display());
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let folder = std::env::temp_dir().join(format!("bellwether-wrong-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("binary"), b"name = \"\xff\"").unwrap();
    fs::write(folder.join("large"), vec![b'#'; (1 << 20) + 1]).unwrap();
    fs::write(folder.join("largest"), vec![b'#'; 1 << 20]).unwrap();
    for (name, problem) in [
        ("none", "there is no such file"),
        ("", "is a directory"),
        ("binary", "is not UTF-8 text: byte 8 does not fit"),
        ("large", "is larger than 1 MiB"),
        ("largest", "is missing"),
    ] {
        let error = Scenario::load(&folder.join(name), &[]).unwrap_err();
        assert_eq!(error.problem(), problem, "{name}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn errors_give_their_facts_one_by_one() {
    let text = RIGHT.replace("rate = 1 }", "rate = 7 }");
    let error = Scenario::parse("x.toml", &text, &[]).unwrap_err();
    let place = Place::Position { file: "x.toml".to_owned(), line: 8, column: 77 };
    assert_eq!(error.place(), &place);
    assert_eq!(error.field(), "network.loss.links.0.rate");
    assert_eq!(error.found(), Some("7"));
    assert_eq!(error.problem(), "is not a probability");
    assert_eq!(error.allowed(), Some("a number from 0 to 1; for 7% write 0.07"));
}

/// Sweeping over kinds from the command line must not need a second file.
#[test]
fn an_overridden_kind_takes_the_settings_of_the_old_one_with_it() {
    let sets = ["election.variant=le-a", "network.delay.kind=poisson", "network.delay.mean=5ms"];
    let scenario = parse(SWEPT, &sets).unwrap();
    let Protocol::Announce(settings) = scenario.protocol else { panic!("{scenario:?}") };
    assert_eq!(settings.config.suppression(), Suppression::None);
    assert!(matches!(scenario.network.delay.law, DelayLaw::Poisson { .. }));
}

const SWEPT: &str = r#"
    name = "swept"
    duration = "60s"
    network = { nodes = 5, delay = { kind = "fixed", value = "1ms" } }
    election = { kind = "announce", variant = "le-s", announce = "1s", suppress = "1s", listen = "3s" }
"#;

#[test]
fn a_right_scenario_is_read_as_written() {
    let scenario = parse(RIGHT, &[]).unwrap();
    assert_eq!(scenario.name, "right");
    assert_eq!(scenario.duration, Duration::from_secs(60));
    assert_eq!(scenario.until, Until::Duration);
    assert!(matches!(scenario.protocol, Protocol::Announce(_)));
    let kinds: Vec<FaultKind> = scenario.faults.iter().map(|fault| fault.kind.clone()).collect();
    assert_eq!(
        kinds,
        [
            FaultKind::Crash(Who::Leader),
            FaultKind::Partition(vec![vec![0, 1], vec![2]]),
            FaultKind::Recover { who: Who::All, state: State::Kept },
            FaultKind::Cut { from: Some(Who::Nodes(vec![3])), to: None, both: false, length: None },
            FaultKind::Cut {
                from: Some(Who::Count(1)),
                to: Some(Who::Fraction(0.5)),
                both: true,
                length: Some(Duration::from_secs(2))
            },
            FaultKind::Starve {
                who: Who::Nodes(vec![1, 4]),
                of: Lack::Processor,
                blocked: Duration::from_secs(2),
                running: Duration::from_millis(100),
                length: Duration::from_secs(5),
                buffer: 166
            },
            FaultKind::Crash(Who::LeavingConnected(Box::new(Who::Count(2)))),
        ]
    );
    assert_eq!(scenario.faults[1].every, Some(Every::Regular(Duration::from_secs(5))));
}

#[test]
fn faults_of_hosts_are_read_as_written() {
    let faults = "[[fault]]\nat = '3s'\nkind = 'disk'\ntarget = 'leader'\nfor = '5s'\n\
                  [[fault]]\nat = '4s'\nspread = '1s'\nkind = 'clone'\nnode = 2\n\
                  [[fault]]\nkind = 'late'\nfraction = 0.5\nuntil = '20s'\n";
    let scenario = parse(&format!("{SWEPT}{faults}"), &[]).unwrap();
    let seconds = Duration::from_secs;
    let kinds: Vec<FaultKind> = scenario.faults.iter().map(|fault| fault.kind.clone()).collect();
    assert_eq!(
        kinds,
        [
            FaultKind::Disk { who: Who::Leader, length: seconds(5) },
            FaultKind::Clone { who: Who::Nodes(vec![2]) },
            FaultKind::Late { who: Who::Fraction(0.5), until: seconds(20) },
        ]
    );
    assert_eq!((scenario.faults[2].at, scenario.faults[2].until), (Duration::ZERO, None));
    assert_eq!(scenario.quiet_from(), None, "a ghost may run on");
    let quiet = |faults: &str| parse(&format!("{SWEPT}{faults}"), &[]).unwrap().quiet_from();
    let (disk, rest) = faults.split_at(faults[1..].find("[[fault]]").unwrap() + 1);
    let (_, late) = rest.split_at(rest[1..].find("[[fault]]").unwrap() + 1);
    assert_eq!((quiet(disk), quiet(late)), (Some(seconds(8)), Some(seconds(20))));
}

#[test]
fn what_is_left_out_has_its_default() {
    let text = "name = 'd'\nduration = '1s'\n[network]\nnodes = 2\n\
                [membership]\nkind = 'ping'\nperiod = '20ms'\ntimeout = '5ms'";
    let NetworkSettings { start_spread, placement, delay, loss, routing, .. } =
        parse(text, &[]).unwrap().network;
    assert_eq!(start_spread, Duration::ZERO);
    assert_eq!(placement, Placement::Mesh);
    assert_eq!(delay.law, DelayLaw::Fixed(Duration::from_millis(1)));
    assert_eq!(loss, Loss::None);
    assert_eq!(routing, Routing::Hops);
    let sets = ["network.nodes=49", "network.placement.kind=cluster", "network.placement.range=4"];
    let Placement::Cluster { clusters, .. } = parse(text, &sets).unwrap().network.placement else {
        panic!("not clustered");
    };
    assert_eq!(clusters.len(), 5);
    let sets = [
        "network.nodes=9",
        "network.placement={ kind = 'grid', side = 4.0, range = 4.0 }",
        "fault=[{ at = '0s', kind = 'move', all = true, distance = 3 }]",
    ];
    let moved = FaultKind::Move {
        who: Who::All,
        distance: 3.0,
        law: MoveLaw::Polar,
        distances: Distances::Fresh,
    };
    assert_eq!(parse(text, &sets).unwrap().faults[0].kind, moved);
}

#[test]
fn overrides_replace_and_create_values() {
    let sets = [
        "network.delay.high=70ms",
        "network.placement={ kind = 'mesh' }",
        "election.form=as-published",
        "fault.0.at=5s",
        "fault.2.count=2",
        "until=agreement",
    ];
    let scenario = parse(RIGHT, &sets).unwrap();
    let high = Duration::from_millis(70);
    assert_eq!(
        scenario.network.delay.law,
        DelayLaw::Uniform { low: Duration::from_millis(1), high }
    );
    assert_eq!(scenario.network.placement, Placement::Mesh);
    assert_eq!(scenario.faults[0].at, Duration::from_secs(5));
    let recover = FaultKind::Recover { who: Who::Count(2), state: State::Kept };
    assert_eq!(scenario.faults[2].kind, recover);
    assert_eq!(scenario.until, Until::Agreement);
}

#[test]
fn places_links_and_churn_are_read_from_files() {
    let links = "network.placement={ kind = 'edges', file = 'tests/right/line.edges' }";
    assert_eq!(parse(RIGHT, &[links]), parse(RIGHT, &[]), "the same links, written elsewhere");
    let places =
        "network.placement={ kind = 'positions', file = 'tests/right/line.positions', range = 4 }";
    let Placement::Positions { at, range } = parse(RIGHT, &[places]).unwrap().network.placement
    else {
        panic!("no positions");
    };
    assert_eq!((at.len(), at[5], range), (6, (15.0, 0.0), 4.0));
    let churn = "fault=[{ kind = 'trace', file = 'tests/right/some.churn', state = 'kept' }]";
    let faults = parse(RIGHT, &[churn]).unwrap().faults;
    let node = |node| Who::Nodes(vec![node]);
    let expected = [
        (Duration::from_secs(5), FaultKind::Crash(node(1))),
        (Duration::from_millis(7250), FaultKind::Recover { who: node(1), state: State::Kept }),
        (Duration::ZERO, FaultKind::Late { who: node(3), until: Duration::from_secs(10) }),
    ];
    let found: Vec<_> = faults.into_iter().map(|fault| (fault.at, fault.kind)).collect();
    assert_eq!(found, expected, "what comes after the end is left out");
}

#[test]
fn tables_are_removed_by_none() {
    let text = "name = 'd'\nduration = '60s'\n[network]\nnodes = 2\n\
                [membership]\nkind = 'medley'\n[election]\nkind = 'churn-tolerant'\nvariant = 'base'\nchurn = 1\n\
                [[fault]]\nat = '5s'\nkind = 'crash'\ncount = 1\n";
    let announce = [
        "election={ kind = 'announce', variant = 'le-s', announce = '1s', suppress = '1s', listen = '3s' }",
        "membership=none",
        "fault=none",
        "node=none",
    ];
    let error = parse(text, &announce[..1]).unwrap_err();
    assert!(error.contains("--set membership=none"), "{error}");
    let scenario = parse(text, &announce).unwrap();
    assert!(matches!(scenario.protocol, Protocol::Announce(_)), "{:?}", scenario.protocol);
    assert!(scenario.faults.is_empty());
}

/// With mean 2 s in 2,000 s there are 1,000 crashes and starts, give or take 32: seven standard deviations are allowed.
#[test]
fn random_repetitions_come_as_often_as_they_should() {
    let text = "name = 'p'\nduration = '2000s'\n[network]\nnodes = 2\n\
                [membership]\nkind = 'ping'\nperiod = '500s'\ntimeout = '5ms'\n\
                [[fault]]\nat = '0s'\nevery = { poisson = '2s' }\nkind = 'join'\n";
    let scenario = parse(text, &[]).unwrap();
    assert_eq!(scenario.faults[0].every, Some(Every::Poisson(Duration::from_secs(2))));
    let starts = |seed| {
        let mut starts = 0;
        let mut count =
            |entry: bellwether_sim::observe::Entry| starts += u32::from(entry.what == "boot");
        bellwether_sim::run::run_logged(
            &scenario,
            seed,
            bellwether_sim::observe::Log::to(&mut count),
        )
        .unwrap();
        starts - 2
    };
    let [one, other] = [starts(1), starts(2)];
    assert!((780..=1220).contains(&one) && (780..=1220).contains(&other), "{one}, {other}");
    assert_ne!(one, other, "every seed has its own");
}

#[test]
fn joiners_can_be_named_as_often_as_they_will_join() {
    let mesh = "network.placement={ kind = 'mesh' }";
    // At 10s, 20s and 30s: nodes 6 to 11.
    let join = "[[fault]]\nat = '10s'\nevery = '10s'\nuntil = '40s'\nkind = 'join'\ncount = 2\n";
    let crash = |node| format!("[[fault]]\nat = '50s'\nkind = 'crash'\nnode = {node}\n");
    parse(&format!("{RIGHT}{}{join}", crash(11)), &[mesh]).unwrap();
    parse(&format!("{RIGHT}{}{join}", crash(12)), &[mesh]).unwrap_err();
}

#[test]
fn line_ends_of_other_systems_are_read_alike() {
    let windows = format!("\u{feff}{}", RIGHT.replace('\n', "\r\n"));
    assert_eq!(parse(&windows, &[]), parse(RIGHT, &[]));
}

#[test]
fn every_shipped_scenario_is_right_and_so_are_its_suggestions() {
    let files = toml_files("../../scenarios");
    assert!(!files.is_empty());
    for path in files {
        if let Err(error) = Scenario::load(&path, &[]) {
            panic!("{error}");
        }
        let text = fs::read_to_string(&path).unwrap();
        for (_, hint) in text.lines().filter_map(|line| line.split_once("--set ")) {
            let (set, refused) = (hint.split(" (").next().unwrap(), hint.contains("(refused"));
            let result = Scenario::load(&path, &[set.trim_matches('\'').to_owned()]);
            assert_eq!(result.is_err(), refused, "{}: --set {hint}: {result:?}", path.display());
        }
    }
}

#[test]
fn the_shipped_worlds_take_the_shipped_settings() {
    let settings = toml_files("../../packaging/examples");
    assert!(settings.len() >= 4);
    for world in toml_files("../../scenarios/worlds") {
        for agents in &settings {
            let scenario = Scenario::load_with(&world, agents, &[]);
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
            assert!(matches!(scenario.protocol, Protocol::Node(_)));
        }
    }
}

const WORLD: &str = "name = 'w'\nduration = '60s'\nnetwork = { nodes = 4 }\n";

fn with_settings(world: &str, agents: &str, sets: &[&str]) -> Result<Scenario, String> {
    static FILES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = FILES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file = |name: &str| {
        let name = format!("bellwether-{}-{number}-{name}.toml", std::process::id());
        std::env::temp_dir().join(name)
    };
    let (world_file, agents_file) = (file("world"), file("agents"));
    fs::write(&world_file, world).expect("written");
    fs::write(&agents_file, agents).expect("written");
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let read = Scenario::load_with(&world_file, &agents_file, &sets);
    for file in [world_file, agents_file] {
        fs::remove_file(file).expect("removed");
    }
    read.map_err(|error| error.to_string())
}

#[test]
fn the_nodes_of_a_world_are_agents_with_the_settings() {
    let agents = "cluster = 'c'\nkey_file = '/k'\njoin = ['a:1']\ntiming = 'wan'\n\
                  membership = { exponent = 2.0 }\n[election.disk]\nmode = 'leased'\n\
                  members = ['roof', 'cellar', 'kitchen']\n[hook.h]\ncommand = ['/no/such']\n";
    let scenario = with_settings(WORLD, agents, &["node.timing.beat=650ms"]).unwrap();
    let Protocol::Node(nodes) = &scenario.protocol else { panic!("{scenario:?}") };
    let named = [0, 1, 2, 3].map(|node| nodes.name_of(node));
    assert_eq!(named, ["cellar", "kitchen", "roof", "node-3"]);
    assert_eq!([0, 1, 2, 3].map(|node| nodes.of(node).elections.len()), [1, 1, 1, 0]);
    assert_eq!(nodes.common.timing.profile.name(), "wan");
    assert_eq!(nodes.common.timing.beat, Duration::from_millis(650));
    assert_eq!(nodes.common.exponent, Some(2.0));
    let written = format!(
        "{WORLD}[node]\ntiming = {{ profile = 'wan', beat = '650ms' }}\nmembership.exponent = 2\n\
         [node.election.disk]\nmode = 'leased'\nmembers = ['cellar', 'kitchen', 'roof']\n"
    );
    assert_eq!(parse(&written, &[]).unwrap(), scenario, "what an operator writes a scenario says");
}

#[test]
fn worlds_and_settings_that_contradict_each_other_are_refused() {
    let members = "[election.e]\nmode = 'leased'\nmembers = ['a', 'b', 'c', 'd', 'e']\n";
    for (world, agents, problem) in [
        ("[node]\n", "", "node says what the nodes run, and so does --settings"),
        ("[election]\nkind = 'al'\n", "", "election says what the nodes run, and so does"),
        ("", members, "node names 5 members and voters, and there are 4 nodes"),
        ("", "[election.e]\nrole = 'observer'\n", "are of a node that never leads \"e\""),
        ("", "tming = 'wan'\n", "tming is not a key here; did you mean timing?"),
        ("", "[timing]\nbeat = '3s'\n", "node.timing.beat = '3s' must be shorter than period"),
        ("", "timing = \n", "not TOML"),
    ] {
        let error = with_settings(&format!("{WORLD}{world}"), agents, &[]).unwrap_err();
        assert!(error.contains(problem) && error.contains("allowed: "), "{error}");
    }
}

/// What mutations put in, and the overrides: mostly what gets past the first checks.
const INSERT: &str = r#"\PC{0,3}|[0-9."{}\[\]=,\n-]{0,3}"#;
const PATH: &str =
    r"name|duration|network(\.(nodes|loss|placement\.edges\.0))?|fault\.[0-9]\.(at|kind)|";
const VALUE: &str =
    r"-?[0-9]{1,20}|[0-9]{1,20}(us|s|h)|nan|inf|\[\]|\[\[[0-9]\]\]|\{\}|true|\PC{0,9}";

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&String::from_utf8_lossy(&bytes), &[]);
    }

    #[test]
    fn mutations_do_not_panic(
        cuts in proptest::collection::vec((0..RIGHT.len(), 0..20_usize, INSERT), 1..4),
    ) {
        let mut text = RIGHT.to_owned();
        for (start, length, insert) in cuts {
            let floor = |i: usize| {
                (0..=i.min(text.len())).rev().find(|&i| text.is_char_boundary(i))
            };
            let range = floor(start).unwrap()..floor(start + length).unwrap();
            text.replace_range(range, &insert);
        }
        if let Err(error) = parse(&text, &[]) {
            prop_assert!(error.starts_with("right.toml"));
        }
    }

    #[test]
    fn random_overrides_do_not_panic(path in PATH, rest in "(\\.\\PC{0,2})?", value in VALUE) {
        let _ = parse(RIGHT, &[&format!("{path}{rest}={value}")]);
    }
}
