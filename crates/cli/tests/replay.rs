//! `agent --record` and `replay`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

mod command;

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::{Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use command::command;
use serde_json::Value;

fn bellwether(args: &[&str]) -> Output {
    command(args).output().expect("the binary under test runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// One agent, killed without warning once it leads.
fn record(folder: &Path, file: &str) {
    let dir = folder.display().to_string();
    if !folder.join("bellwether.toml").exists() {
        let init = bellwether(&["init", &dir, "--cluster", "garden", "--name", "kitchen"]);
        assert_eq!(init.status.code(), Some(0), "{init:?}");
    }
    let config = folder.join("bellwether.toml").display().to_string();
    let (bind, api) = ("127.0.0.1:0", "127.0.0.1:0");
    let args = ["agent", "--config", &config, "--bind", bind, "--api", api, "--timing", "local"];
    let args = [&args[..], &["--name", "kitchen"]].concat();
    let data = folder.join("data").display().to_string();
    let more = ["--record", file, "--record-limit", "1", "--log", "none", "--data-dir", &data];
    let mut agent = command(&[&args[..], &more[..]].concat());
    let inode = || fs::metadata(file).map_or(0, |found| found.ino());
    let past = inode();
    let mut agent = agent.stdin(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    // The file of the past life is there until it is moved aside.
    while inode() == past || !text(&bellwether(&["replay", file]).stdout).contains(" leads, ") {
        assert!(begun.elapsed().as_secs() < 60, "nothing is recorded");
        assert!(agent.try_wait().unwrap().is_none(), "it has ended");
        thread::sleep(Duration::from_millis(100));
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn what_an_agent_was_given_is_replayed_in_words_steps_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kitchen.record");
    let file = path.display().to_string();
    record(folder.path(), &file);
    let output = bellwether(&["replay", &file]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(shown.ends_with("effects equal\n"), "{shown}");
    assert!(shown.contains("kitchen leads, epoch 1."), "{shown}");
    assert!(shown.contains("killed"), "{shown}");

    let output = bellwether(&["replay", &file, "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&all["equal"], &all["name"]), (&true.into(), &"kitchen".into()), "{all}");
    assert!(shown.contains(all["hash"].as_str().unwrap()), "{shown}");
    let leaders = all["leaders"].as_object().unwrap().values().next().unwrap();
    assert_eq!(leaders[0]["leader"], "kitchen", "{all}");

    let output = bellwether(&["replay", &file, "--step"]);
    let steps = text(&output.stdout);
    assert!(steps.starts_with("      0.000000        1 start\n"), "{steps}");
    assert!(steps.contains(": kitchen leads, epoch "), "{steps}");
    let until = ["replay", &file, "--step", "--from", "0.2", "--until", "0.4", "--json"];
    let output = text(&bellwether(&until).stdout);
    for line in output.lines() {
        let step: Value = serde_json::from_str(line).unwrap();
        let seconds = step["seconds"].as_f64().unwrap();
        assert!(seconds <= 0.4 && (seconds >= 0.2 || step["input"].is_null()), "{step}");
    }

    // The next life has a file of its own, and the limit is kept.
    record(folder.path(), &file);
    let boot = |file: &str| {
        let output = bellwether(&["replay", file, "--json"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["boot"].as_u64()
    };
    assert!(boot(&file) > boot(&format!("{file}.1")));
}

#[test]
fn a_wrong_file_is_named_with_the_place_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.record");
    let file = path.display().to_string();
    let told = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        let output = bellwether(&["replay", &file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        text(&output.stderr)
    };
    let not = format!("error: {file}: byte 0: this is no recording of an agent\n");
    assert_eq!(told(b"x = 1"), not);
    let newer = format!("error: {file}: byte 18: version 2 of the format; this program reads");
    assert!(told(b"bellwether record\n\x02").starts_with(&newer));
    let half = format!("error: {file}: byte 19: header: the file ends in it");
    assert!(told(b"bellwether record\n\x01").starts_with(&half));
    let damaged = format!("error: {file}: byte 19: header: checksum 04030201, but");
    let wrong = told(b"bellwether record\n\x01\x02ab\x01\x02\x03\x04");
    assert!(wrong.starts_with(&damaged), "{wrong}");
    fs::remove_file(&path).unwrap();
    let output = bellwether(&["replay", &file, "--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(error["error"]["problem"].as_str().unwrap().starts_with(&file), "{error}");
}

#[test]
fn help_says_what_the_exit_codes_mean_and_limits_are_checked() {
    let page = text(&bellwether(&["replay", "--help"]).stdout);
    assert!(page.contains("Exit codes") && page.contains("--until <SECONDS>"), "{page}");
    let output = bellwether(&["replay", "x", "--until", "-1"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let base = ["config", "show", "--cluster", "a", "--key-file", "k", "--name", "n"];
    let limit = |limit| bellwether(&[&base[..], &["--record-limit", limit]].concat());
    assert!(text(&limit("64").stdout).contains("record_limit"));
    for wrong in ["0", "many", "1048577"] {
        let output = limit(wrong);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let words = text(&output.stderr);
        assert!(words.contains("a whole number from 1 to 1048576"), "{words}");
    }
}
