//! Wrong settings are refused with a message that helps, right ones are read, and nothing panics.
//!
//! Each `wrong_config/NAME.toml` has its full message in `wrong_config/NAME.stderr`; lines that start with `# flag` or
//! `# variable` are given besides. `BLESS=1 cargo test` writes the messages anew, for review.

use std::{ffi::OsString, fs, path::Path};

use bellwether_agent::{
    Config,
    config::{
        Announced, Feedback, Flag, Format, Inputs, Mode, Neighbours, OnIsolation, Place, Profile,
        Spread,
    },
    status::{Position, Role},
};
use bellwether_proto::{Duration, election::central::Criterion};
use proptest::prelude::*;

const FLAGS: [&str; 14] = [
    "--name",
    "--cluster",
    "--bind",
    "--advertise",
    "--join",
    "--api",
    "--api-name",
    "--api-token-file",
    "--data-dir",
    "--key-file",
    "--timing",
    "--tag",
    "--election",
    "--set",
];

fn flag(text: &str) -> Flag {
    let (name, value) = text.split_once(' ').expect("a flag and its value");
    let name = FLAGS.into_iter().find(|known| *known == name).expect("a known flag");
    Flag { name, value: value.to_owned() }
}

fn variable(text: &str) -> (OsString, OsString) {
    let (name, value) = text.split_once('=').expect("NAME=VALUE");
    (name.into(), value.into())
}

fn inputs(file: &Path) -> Inputs {
    let text = fs::read_to_string(file).unwrap_or_default();
    let given = |prefix| text.lines().filter_map(move |line| line.strip_prefix(prefix));
    Inputs {
        file: Some(file.to_owned()),
        directory: None,
        variables: given("# variable ").map(variable).collect(),
        flags: given("# flag ").map(flag).collect(),
    }
}

fn parse(text: &str, flags: &[&str]) -> Result<Config, String> {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("right.toml");
    fs::write(&file, text).expect("written");
    let flags = flags.iter().map(|text| flag(text)).collect();
    let inputs = Inputs { file: Some(file), flags, ..Inputs::default() };
    Config::load(&inputs).map_err(|error| error.to_string())
}

#[test]
fn all_wrong_settings_are_refused_with_their_message() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut seen = 0;
    for entry in fs::read_dir("tests/wrong_config").unwrap() {
        let path = entry.unwrap().path();
        if path.extension() != Some("toml".as_ref()) {
            continue;
        }
        seen += 1;
        let message = match Config::load(&inputs(&path)) {
            Ok(config) => panic!("{} was accepted: {config:?}", path.display()),
            Err(error) => {
                assert!(error.allowed().is_some(), "{error}\nsays not what is allowed");
                assert!(!error.to_string().chars().any(|c| c.is_control() && c != '\n'));
                format!("{error}\n")
            }
        };
        let golden = path.with_extension("stderr");
        if bless {
            fs::write(&golden, &message).unwrap();
        }
        assert_eq!(message, fs::read_to_string(&golden).unwrap(), "{}", golden.display());
    }
    assert!(seen >= 40, "{seen}");
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("binary"), b"name = \"\xff\"").unwrap();
    fs::write(folder.path().join("large"), vec![b'#'; (1 << 20) + 1]).unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    for (name, problem) in [
        ("none", "there is no such file"),
        ("", "is a directory"),
        ("binary", "is not UTF-8 text: byte 8 does not fit"),
        ("large", "is larger than 1 MiB"),
        ("empty", "is missing"),
    ] {
        let file = Some(folder.path().join(name));
        let error = Config::load(&Inputs { file, ..Inputs::default() }).unwrap_err();
        assert_eq!(error.problem(), problem, "{name}");
    }
    let directory = Some(folder.path().join("none"));
    let error = Config::load(&Inputs { directory, ..Inputs::default() }).unwrap_err();
    assert_eq!(error.problem(), "there is no such directory");
}

#[test]
fn a_mesh_takes_its_defaults_from_the_profile_and_its_neighbours_from_a_daemon() {
    let head = "cluster = \"garden\"\nkey_file = \"k\"\ntiming = \"mesh\"\ninterfaces = [\"wlan0\", \"wlan1\"]\nmulticast = \"239.1.2.3:4\"\n";
    let central = |rest: &str| {
        let config = parse(&format!("{head}[election.mesh]\nmode = \"central\"\n{rest}"), &[]);
        let config = config.unwrap_or_else(|error| panic!("{error}"));
        let Mode::Central(central) = config.elections[0].mode.clone() else { panic!("{config:?}") };
        (config, central)
    };
    let seconds = Duration::from_secs;
    let (config, plain) = central("");
    assert_eq!(config.interfaces, ["wlan0", "wlan1"]);
    assert_eq!(config.multicast.to_string(), "239.1.2.3:4");
    assert!(config.is_multicast());
    let ms = Duration::from_millis;
    assert_eq!(plain.beacons(Profile::Mesh), Some((ms(1_000), ms(3_500))));
    assert_eq!((plain.spread, plain.hysteresis), (Spread::AtOnce(1_000), None));
    let (_, tuned) = central(
        "spread = \"tick\"\ntick = \"50ms\"\ncriterion = \"degree\"\nhysteresis = 10\nhorizon = 4\nsilence = \"5s\"",
    );
    assert_eq!((tuned.spread, tuned.horizon), (Spread::Tick(ms(50)), Some(4)));
    for (name, criterion) in Criterion::NAMED {
        let (config, by) = central(&format!("criterion = {name:?}"));
        assert_eq!(by.criterion, criterion);
        let mut settings = config.settings().into_iter();
        let shown =
            settings.find(|one| one.field == "election.mesh.criterion").expect("it is shown");
        assert_eq!(shown.value, format!("{name:?}"));
    }
    let hysteresis = tuned.hysteresis.expect("it is set");
    assert_eq!((hysteresis.percent, hysteresis.dwell), (10, seconds(30)));
    assert_eq!(tuned.beacons(Profile::Mesh), Some((ms(1_000), seconds(5))));
    let (config, fed) = central(
        "rho = 0.75\nneighbours = { format = \"babel\", address = \"[::1]:33123\", every = \"2s\" }",
    );
    assert!(!config.is_multicast());
    assert_eq!(fed.spread, Spread::AtOnce(750));
    assert_eq!(fed.neighbours, Neighbours::Given);
    let table = &config.tables["mesh"];
    assert_eq!((table.format, table.every), (Format::Babel, seconds(2)));
    assert_eq!(table.source.to_string(), "[::1]:33123");
    let shown: Vec<String> = config.settings().into_iter().map(|one| one.field).collect();
    for field in ["interfaces", "election.mesh.rho", "election.mesh.neighbours.address"] {
        assert!(shown.contains(&field.to_owned()), "{field}: {shown:?}");
    }
    assert!(!shown.contains(&"election.mesh.priority".to_owned()));
}

const RIGHT: &str = r#"
name = "kitchen"
cluster = "garden"
key_file = "/etc/bellwether/cluster.key"
join = ["192.0.2.1", "[2001:db8::1]:9000", "cellar.example:7738"]
advertise = "192.0.2.7:7738"
position = [2.5, -10]
[timing]
profile = "wan"
grace = "2m"
[membership]
exponent = 2
[tags]
floor = "2"
[election.web]
priority = 7
c = 6
on_isolation = "hold-for 30s"
[election.backup]
mode = "announced"
role = "observer"
[hook.ip]
command = ["/bin/true", "$(reboot)"]
events = ["became-leader", "stopped-leading"]
election = "web"
reconcile = true
"#;

#[test]
fn right_settings_are_read_as_written() {
    let config = parse(RIGHT, &[]).unwrap();
    let seeds: Vec<String> = config.join.iter().map(ToString::to_string).collect();
    assert_eq!(seeds, ["192.0.2.1:7738", "[2001:db8::1]:9000", "cellar.example:7738"]);
    assert_eq!(config.advertise, ["192.0.2.7:7738".parse().unwrap()]);
    assert_eq!(config.bind, "0.0.0.0:7738".parse().unwrap());
    assert_eq!(config.api, "127.0.0.1:7739".parse().unwrap());
    assert_eq!(config.timing.profile, Profile::Wan);
    assert_eq!(config.timing.grace, Duration::from_secs(120));
    assert_eq!(config.timing.period, Profile::Wan.timing().period);
    assert_eq!(config.position, Some(Position { x: 2.5, y: -10.0 }));
    assert_eq!((config.exponent(), config.feedback()), (2.0, Feedback::None));
    assert_eq!(config.tags["floor"], "2");
    let [web, backup] = config.elections.as_slice() else { panic!("{:?}", config.elections) };
    let Mode::Eventual(eventual) = web.mode else { panic!("{web:?}") };
    assert_eq!((web.name.as_str(), web.priority, eventual.c), ("web", 7, 6));
    assert_eq!(eventual.on_isolation, OnIsolation::HoldFor(Duration::from_secs(30)));
    assert_eq!(
        (backup.mode.clone(), backup.role),
        (Mode::Announced(Announced { sticky: true }), Role::Observer)
    );
    assert_eq!(config.hooks[0].command, ["/bin/true", "$(reboot)"]);
    assert!(config.hooks[0].reconcile);
}

#[test]
fn whom_to_probe_follows_the_profile_unless_it_is_said() {
    let read = |flags: &[&str]| {
        let config = parse("cluster = 'a'\nkey_file = 'k'", flags).unwrap();
        (config.exponent(), config.feedback())
    };
    assert_eq!(read(&[]), (0.0, Feedback::None));
    assert_eq!(read(&["--timing mesh"]), (3.0, Feedback::Both));
    let flags = ["--set membership.feedback=active", "--set membership.exponent=4.5"];
    assert_eq!(read(&flags), (4.5, Feedback::Active));
    assert_eq!(read(&["--timing mesh", flags[0]]), (3.0, Feedback::Active));
}

#[test]
fn without_an_election_there_is_one_called_default() {
    let config = parse("cluster = 'a'\nkey_file = 'k'", &[]).unwrap();
    assert_eq!(config.elections[0].name, "default");
    assert_eq!(config.elections[0].mode.name(), "eventual");
}

#[test]
fn the_last_source_wins_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let directory = folder.path().join("conf.d");
    fs::create_dir(&directory).unwrap();
    fs::write(&file, RIGHT).unwrap();
    fs::write(directory.join("20-b.toml"), "name = 'late'\ncluster = 'late'").unwrap();
    fs::write(directory.join("10-a.toml"), "name = 'early'\n[election.web]\nc = 9").unwrap();
    fs::write(directory.join("30-c.toml.bak"), "name = 'ignored'").unwrap();
    let inputs = Inputs {
        file: Some(file.clone()),
        directory: Some(directory.clone()),
        variables: vec![
            variable("BELLWETHER_CLUSTER=of-variables"),
            variable("BELLWETHER_TAGS=floor=3,room=b"),
            variable("BELLWETHER_TOKEN=secret"),
            variable("HOME=/root"),
        ],
        flags: vec![
            flag("--join 192.0.2.9:1"),
            flag("--join 192.0.2.9:2"),
            flag("--timing lan"),
            flag("--election cron=eventual"),
            flag("--set election.web.f=2"),
        ],
    };
    let config = Config::load(&inputs).unwrap();
    assert_eq!(config.name, "late");
    assert_eq!(config.cluster, "of-variables");
    assert_eq!(config.join.len(), 2);
    assert_eq!(config.timing.profile, Profile::Lan);
    assert_eq!(config.timing.grace, Duration::from_secs(120), "tuned in the file, kept");
    let names: Vec<&str> = config.elections.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["web", "backup", "cron"], "in the order written");
    let settings = config.settings();
    let source = |field: &str| {
        let found = settings.iter().find(|setting| setting.field == field);
        found.unwrap_or_else(|| panic!("no {field} in {settings:?}")).source.clone()
    };
    assert_eq!(source("name"), format!("{}:1", directory.join("20-b.toml").display()));
    assert_eq!(source("cluster"), "variable BELLWETHER_CLUSTER");
    assert_eq!(source("tags.floor"), "variable BELLWETHER_TAGS");
    assert_eq!(source("join"), "--join");
    assert_eq!(source("timing.profile"), "--timing");
    assert_eq!(source("timing.period"), "profile lan");
    assert_eq!(source("membership.exponent"), format!("{}:12", file.display()));
    assert_eq!(source("membership.feedback"), "profile lan");
    assert_eq!(source("position"), format!("{}:7", file.display()));
    assert_eq!(source("timing.grace"), format!("{}:10", file.display()));
    assert_eq!(source("election.web.c"), format!("{}:3", directory.join("10-a.toml").display()));
    assert_eq!(source("election.web.f"), "--set election.web.f=2");
    assert_eq!(source("bind"), "default");
    let shown: String = settings.iter().map(|setting| setting.value.clone()).collect();
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn changes_that_need_a_restart_are_told_from_those_that_do_not() {
    let before = parse(RIGHT, &[]).unwrap();
    assert_eq!(before.changes(&before.clone()), []);
    let flags = ["--tag floor=3", "--join 192.0.2.9", "--set election.web.priority=9"];
    let after = parse(RIGHT, &flags).unwrap();
    let changes = before.changes(&after);
    let fields: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
    assert_eq!(fields, ["election.web.priority", "join", "tags.floor"]);
    assert!(changes.iter().all(|change| change.live));
    let after = parse(RIGHT, &["--bind 127.0.0.1:7738", "--election cron=eventual"]).unwrap();
    let changes = before.changes(&after);
    assert!(changes.iter().any(|change| change.field == "bind" && !change.live));
    assert!(changes.iter().any(|change| change.field == "election.cron.mode" && !change.live));
}

#[test]
fn errors_give_their_facts_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    fs::write(&file, RIGHT.replace("c = 6", "c = 6.5")).unwrap();
    let error =
        Config::load(&Inputs { file: Some(file.clone()), ..Inputs::default() }).unwrap_err();
    let file = file.display().to_string();
    assert_eq!(error.place(), &Place::Position { file, line: 17, column: 5 });
    assert_eq!(error.field(), "election.web.c");
    assert_eq!(error.found(), Some("6.5"));
    assert_eq!(error.problem(), "is a number with a fraction, not a whole number");
    assert_eq!(error.allowed(), Some("a whole number from 0 to 4096"));
}

#[test]
fn a_hook_that_others_may_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let hook = folder.path().join("hook");
    fs::write(&hook, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o777)).unwrap();
    let text = RIGHT.replace("/bin/true", hook.to_str().unwrap());
    let message = parse(&text, &[]).unwrap_err();
    assert!(message.contains("may be changed by others: its mode is 0777"), "{message}");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    parse(&text, &[]).unwrap();
}

proptest! {
    #[test]
    fn mutations_do_not_panic(
        start in 0..RIGHT.len(),
        length in 0..20_usize,
        insert in r#"\PC{0,3}|[0-9."{}\[\]=,\n-]{0,3}"#,
    ) {
        let mut text = RIGHT.to_owned();
        let end = (start + length).min(text.len());
        text.replace_range(start..end, &insert);
        let _ = parse(&text, &[]);
    }

    #[test]
    fn random_overrides_do_not_panic(path in "[a-z_.]{0,12}|timing|election\\.web", value in "\\PC{0,9}") {
        let _ = parse(RIGHT, &[&format!("--set {path}={value}")]);
    }
}
