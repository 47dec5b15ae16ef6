//! What an agent keeps over a restart, and says when it keeps nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

use std::{
    io::{BufRead, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

fn bellwether(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BELLWETHER_") {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

/// A running agent.
struct Agent {
    process: Child,
    lines: BufReader<ChildStderr>,
    api: String,
}

impl Agent {
    fn start(args: &[&str]) -> Self {
        let own = ["agent", "--log", "json", "--bind", "127.0.0.1:0", "--api", "127.0.0.1:0"];
        let mut command = bellwether(&[&own[..], &["--timing", "local"], args].concat());
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap());
        let started = line(&mut lines);
        let (_, api) = started["message"].as_str().unwrap().split_once("http://").unwrap();
        let api = api.to_owned();
        Self { process, lines, api }
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
