//! What an agent keeps over a restart, and says when it keeps nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

mod command;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStderr, Stdio},
    thread,
    time::{Duration, Instant},
};

use bellwether_proto::Epoch;
use command::command as bellwether;
use serde_json::Value;

/// A running agent.
struct Agent {
    process: Child,
    lines: BufReader<ChildStderr>,
    /// Where others reach it.
    address: String,
    api: String,
}

impl Agent {
    fn start(args: &[&str]) -> Self {
        let own = ["agent", "--log", "json", "--bind", "127.0.0.1:0", "--api", "127.0.0.1:0"];
        let mut command = bellwether(&[&own[..], &["--timing", "local"], args].concat());
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap());
        let (address, api) = doors(&line(&mut lines));
        Self { process, lines, address, api }
    }

    /// Those it takes for alive: names and boot numbers.
    fn alive(&self) -> BTreeMap<String, u64> {
        let members = self.ask("members");
        let alive = members.as_array().into_iter().flatten().filter(|one| one["state"] == "alive");
        alive.map(|one| (one["name"].to_string(), one["boot"].as_u64().unwrap())).collect()
    }

    fn ask(&self, verb: &str) -> Value {
        let output = bellwether(&[verb, "--json", "--http-addr", &self.api]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// The epoch under which it leads.
    fn epoch(&self) -> Value {
        let begun = Instant::now();
        loop {
            let answer = self.ask("leader");
            if answer["is_leader"] == true {
                return answer["epoch"].clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{answer}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where the agent that says this listens, and where it answers.
fn doors(started: &Value) -> (String, String) {
    let words = started["message"].as_str().unwrap();
    let (_, rest) = words.split_once(" listens on ").unwrap_or_else(|| panic!("{words}"));
    let (address, api) = rest.split_once("; ask it at http://").unwrap();
    // The local socket stands behind it.
    (address.to_owned(), api.split(' ').next().unwrap_or(api).to_owned())
}

fn until(what: &str, mut look: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !look() {
        assert!(begun.elapsed() < Duration::from_secs(20), "still not: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn line(lines: &mut impl BufRead) -> Value {
    let mut text = String::new();
    lines.read_line(&mut text).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

fn counter(epoch: &Value) -> u64 {
    epoch.as_str().unwrap().split('.').next().unwrap().parse().unwrap()
}

fn init(folder: &Path) -> String {
    let dir = folder.display().to_string();
    let output = bellwether(&["init", &dir, "--cluster", "garden"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    folder.join("bellwether.toml").display().to_string()
}

#[test]
fn epochs_of_an_agent_as_init_makes_it_do_not_begin_anew() {
    let folder = tempfile::tempdir().unwrap();
    let config = init(folder.path());
    let agent = Agent::start(&["--config", &config, "--name", "kitchen"]);
    let before = agent.epoch();
    assert_eq!(agent.ask("leader")["epoch_durable"], true);
    drop(agent);
    let again = Agent::start(&["--config", &config, "--name", "kitchen"]);
    assert!(counter(&again.epoch()) > counter(&before), "{before}");
}

#[test]
fn an_agent_that_forgets_epochs_says_so() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path());
    let key = folder.path().join("cluster.key").display().to_string();
    let mut agent = Agent::start(&["--cluster", "garden", "--key-file", &key, "--name", "kitchen"]);
    let warning = line(&mut agent.lines);
    assert_eq!((&warning["about"], &warning["level"]), (&"not-durable".into(), &"warning".into()));
    agent.epoch();
    assert_eq!(agent.ask("leader")["epoch_durable"], false);
    assert_eq!(agent.ask("leaders")[0]["epoch_durable"], false);
    assert_eq!(agent.ask("is-leader")["epoch_durable"], false);
    assert_eq!(agent.ask("explain")["epoch_durable"], false);
}

/// As after a power cut: three nodes as `init` makes them, all killed at once, twice.
#[test]
fn epochs_do_not_go_back_when_all_are_killed_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("0");
    init(&first);
    for node in ["1", "2"] {
        // What the guide says to do on the other machines; there the paths would be the same.
        let copy = folder.path().join(node);
        fs::create_dir(&copy).unwrap();
        for file in ["cluster.key", "api.token"] {
            fs::copy(first.join(file), copy.join(file)).unwrap();
        }
        let settings = fs::read_to_string(first.join("bellwether.toml")).unwrap();
        let [here, there] = [&first, &copy].map(|path| path.display().to_string());
        fs::write(copy.join("bellwether.toml"), settings.replace(&here, &there)).unwrap();
    }
    let start = || {
        let mut agents: Vec<Agent> = vec![];
        for node in ["0", "1", "2"] {
            let config = folder.path().join(node).join("bellwether.toml").display().to_string();
            let mut args = vec!["--config", &config, "--name", node];
            let join: Vec<String> = agents.iter().map(|one| one.address.clone()).collect();
            args.extend(["--join"].into_iter().filter(|_| !join.is_empty()));
            args.extend(join.iter().map(String::as_str));
            let agent = Agent::start(&args);
            agents.push(agent);
        }
        agents
    };
    let mut last = None::<Epoch>;
    for _ in 0..3 {
        let agents = start();
        let mut epoch = None;
        until("all name one leader", || {
            let answers: Vec<Value> = agents.iter().map(|agent| agent.ask("leader")).collect();
            let durable = |answer: &Value| answer["epoch_durable"] == true;
            let one = answers.iter().filter(|answer| answer["is_leader"] == true).count() == 1;
            let alike = answers.iter().all(|it| it["epoch"] == answers[0]["epoch"] && durable(it));
            epoch = answers[0]["epoch"].as_str().map(|text| text.parse::<Epoch>().unwrap());
            one && alike && agents.iter().all(|agent| agent.alive().len() == 3)
        });
        assert!(epoch > last, "{epoch:?} after {last:?}");
        last = epoch;
    }
}

#[test]
fn a_second_agent_on_one_directory_is_told_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = init(folder.path());
    let first = Agent::start(&["--config", &config, "--name", "kitchen"]);
    let own = ["agent", "--bind", "127.0.0.1:0", "--api", "127.0.0.1:0", "--name", "attic"];
    let mut second = bellwether(&[&own[..], &["--config", &config]].concat());
    let mut second = second.stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(2));
    let mut said = String::new();
    second.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let holder = format!("the agent of process {} runs", first.process.id());
    assert!(said.contains(&holder) && said.contains("state"), "{said}");
}

/// As after a backup was restored: whoever met it knows a later life of it than the one it would begin.
#[test]
fn an_agent_whose_disk_is_an_old_copy_begins_a_life_above_those_others_know() {
    let folder = tempfile::tempdir().unwrap();
    let config = init(folder.path());
    let data = folder.path().join("attic");
    let (path, file) = (data.display().to_string(), data.join("node.json"));
    let attic = ["--config", &config, "--name", "attic", "--data-dir", &path];
    let set_boot = |boot: u64| {
        let mut kept: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        kept["boot"] = boot.into();
        fs::write(&file, kept.to_string()).unwrap();
    };
    drop(Agent::start(&attic));
    set_boot(1 << 40);
    let kitchen = Agent::start(&["--config", &config, "--name", "kitchen"]);
    let joins = [&attic[..], &["--join", &kitchen.address]].concat();
    let later = Agent::start(&joins);
    until("they know each other", || kitchen.alive().len() == 2 && later.alive().len() == 2);
    let last = kitchen.alive()["\"attic\""];
    assert!(last > 1 << 40);
    drop(later);
    set_boot(1);
    let mut restored = Agent::start(&joins);
    let said = line(&mut restored.lines);
    assert_eq!(said["about"], "boot-behind", "{said}");
    (_, restored.api) = doors(&line(&mut restored.lines));
    until("it is one of them again, in a later life", || {
        kitchen.alive().get("\"attic\"").is_some_and(|&boot| boot > last)
    });
}
