//! Agents that are told to read their settings again: keys are replaced while all talk.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

mod command;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use command::command as bellwether;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A running agent with a key file of its own, and what it says.
struct Agent {
    process: Child,
    said: mpsc::Receiver<String>,
    api: String,
    address: String,
    config: PathBuf,
    key: PathBuf,
}

impl Agent {
    fn start(folder: &Path, name: &str, key: &str, join: Option<&str>) -> Self {
        let [config, own] = ["toml", "key"].map(|ending| folder.join(format!("{name}.{ending}")));
        fs::copy(folder.join(key), &own).unwrap();
        let join = join.map_or("[]".to_owned(), |join| format!("[{join:?}]"));
        let text = format!(
            "name = {name:?}\ncluster = \"garden\"\nkey_file = {:?}\nbind = \"127.0.0.1:0\"\n\
             api = \"127.0.0.1:0\"\njoin = {join}\ntiming = \"local\"\n",
            own.display().to_string()
        );
        fs::write(&config, text).unwrap();
        let mut command =
            bellwether(&["agent", "--log", "json", "--config", &config.display().to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let (sender, said) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).unwrap();
                let message = line["message"].as_str().unwrap().to_owned();
                if ["started", "reload"].contains(&line["about"].as_str().unwrap()) {
                    let _ = sender.send(message);
                }
            }
        });
        let started: String = said.recv_timeout(Duration::from_secs(10)).unwrap();
        let after = |mark: &str| started.split(mark).nth(1).unwrap().to_owned();
        let address = after("listens on ").split(';').next().unwrap().to_owned();
        // The local socket stands behind it.
        let api = after("http://").split(' ').next().unwrap().to_owned();
        Self { process, said, api, address, config, key: own }
    }

    /// Tells it to read again, and waits for what it says to that.
    fn hup(&self) -> String {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
        self.said.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    fn ask(&self, verb: &[&str]) -> Value {
        let mut command = bellwether(verb);
        let output = command.args(["--http-addr", &self.api, "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    fn alive(&self) -> Vec<String> {
        let members = self.ask(&["members"]);
        let members = members.as_array().cloned().unwrap_or_default();
        let alive = members.iter().filter(|member| member["state"] == "alive");
        alive.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
    }

    fn keys(&self, verb: &str) {
        let file = self.key.display().to_string();
        let mut command = bellwether(&["keys", verb, "--key-file", &file]);
        let output = command.env("BELLWETHER_HTTP_ADDR", &self.api).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "after 20 s still not: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_key_is_replaced_in_three_steps_while_the_cluster_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    assert!(
        bellwether(&["keygen", &path("key")]).stdout(Stdio::null()).status().unwrap().success()
    );
    let first = Agent::start(folder.path(), "attic", "key", None);
    let join = Some(first.address.clone());
    let mut agents = vec![first];
    for name in ["cellar", "kitchen"] {
        agents.push(Agent::start(folder.path(), name, "key", join.as_deref()));
    }
    let names = ["attic", "cellar", "kitchen"];
    until("all know all", || agents.iter().all(|agent| agent.alive() == names));
    until("a leader", || agents.iter().all(|agent| agent.ask(&["leader"])["settled"] == true));
    let epoch = agents[0].ask(&["leader"])["epoch"].clone();
    for (verb, stage) in [("add", "accept-both"), ("send", "send-new"), ("retire", "settled")] {
        agents[0].keys(verb);
        for at in 0..agents.len() {
            if at > 0 {
                fs::copy(&agents[0].key, &agents[at].key).unwrap();
            }
            assert_eq!(agents[at].hup(), "read again: the keys; no setting has changed");
            // In the middle of a step some have the new file and some the old.
            thread::sleep(Duration::from_millis(300));
            assert_eq!(agents[at].ask(&["keys", "status"])["stage"], stage);
        }
        thread::sleep(Duration::from_secs(1));
        for agent in &agents {
            assert_eq!(agent.alive(), names, "after {verb}");
            assert_eq!(agent.ask(&["leader"])["epoch"], epoch, "after {verb}");
            let all_send_what_is_sent = || {
                let said = agent.ask(&["keys", "status"]);
                let keys = said["keys"].as_array().unwrap();
                let sent = keys.iter().find(|key| key["sent"] == true).unwrap();
                let members = said["members"].as_array().unwrap();
                members.len() == 2 && members.iter().all(|one| one["key"] == sent["fingerprint"])
            };
            until("every member is known to send under that key", all_send_what_is_sent);
        }
    }
    // Whoever comes with the old key is nobody.
    let late = Agent::start(folder.path(), "late", "key", join.as_deref());
    thread::sleep(Duration::from_secs(1));
    assert_eq!(late.alive(), ["late"]);
    assert_eq!(agents[0].alive(), names);
}

#[test]
fn settings_are_read_again_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    assert!(
        bellwether(&["keygen", &path("key")]).stdout(Stdio::null()).status().unwrap().success()
    );
    let agent = Agent::start(folder.path(), "attic", "key", None);
    let text = fs::read_to_string(&agent.config).unwrap();
    let write = |more: &str| fs::write(&agent.config, format!("{text}{more}")).unwrap();
    let tags = || agent.ask(&["members"])[0]["tags"].clone();
    write("[tags]\nfloor = \"3\"\n");
    assert_eq!(agent.hup(), "read again: the keys, and tags.floor");
    assert_eq!(tags()["floor"], "3");
    write("[tags]\nfloor = \"4\"\n[hook.page]\ncommand = [\"/bin/true\"]\n");
    let said = agent.hup();
    assert!(said.starts_with("not read again: hook.page.command, "), "{said}");
    write("[tags]\nfloor = 5\n");
    let said = agent.hup();
    assert!(said.contains("attic.toml:9:9: tags.floor = 5"), "{said}");
    assert_eq!(tags()["floor"], "3", "as it was");
    write("");
    agent.hup();
    assert_eq!(tags()["floor"], Value::Null);
}
