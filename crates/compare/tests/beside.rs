//! The whole command, with nobody to compare: three nodes, one cut, one kill.
//!
//! Where network namespaces are not permitted every test here says so and does nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of a command that measures real processes"
)]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use serde_json::Value;

/// A word about it that no test runner swallows.
fn permitted() -> bool {
    let net = Net::of(1);
    if let Err(why) = &net {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED a test of the comparison: no network namespaces here ({why})\n  \
             remedy: install iproute2 and nftables, and run as root or under `unshare --map-root-user`"
        );
    }
    net.is_ok()
}

/// The `bellwether` beside the command under test, which other tests have built, or which is built now.
fn bellwether() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_bellwether-compare")).with_file_name("bellwether");
    if !beside.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--package", "bellwether", "--profile"]);
        let is_release = beside.parent().is_some_and(|folder| folder.ends_with("release"));
        build.arg(if is_release { "release" } else { "test" });
        assert!(build.status().expect("cargo").success());
    }
    beside
}

fn compare(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether-compare"));
    command.args(["--only", "bellwether", "--nodes", "3", "--settle", "500ms", "--out"]);
    command.arg(folder.join("out")).arg("--binary").arg(bellwether()).args(args);
    fs::create_dir(folder.join("tmp")).expect("a folder");
    command.env("TMPDIR", folder.join("tmp"));
    command
}

#[test]
fn three_nodes_are_measured_and_all_files_are_written() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        compare(folder.path(), &["--idle", "2s", "--cuts", "1", "--kills", "1", "--json"]);
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |field: &str| all[0][field][0].as_f64().unwrap_or(f64::NAN);
    assert_eq!((&all[0]["system"], &all[0]["nodes"]), (&"Bellwether".into(), &3.into()));
    for field in ["cut_s", "kill_s"] {
        assert!((0.05..20.0).contains(&number(field)), "{field}: {all:#}");
    }
    for field in ["pss_mib", "rss_mib", "kbit_s", "packets_s"] {
        assert!(number(field) > 0.1, "{field}: {all:#}");
    }
    let read = |name| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert_eq!(read("comparison.csv").lines().count(), 8);
    assert!(read("comparison.md").contains("| Bellwether |"));
    assert!(read("comparison.svg").ends_with("</svg>\n"));
    assert_nothing_is_left(folder.path());
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        compare(folder.path(), &["--idle", "10m"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("idle, ")), "it never came to the measurement");
    let asked = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(lines.any(|line| line.contains("interrupted")), "it ended without a word");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_nothing_is_left(folder.path());
}

/// No file of the cluster, and no process that was told of one.
fn assert_nothing_is_left(folder: &Path) {
    assert_eq!(fs::read_dir(folder.join("tmp")).expect("a folder").count(), 0);
    let told = folder.to_string_lossy().into_owned();
    for process in fs::read_dir("/proc").expect("a folder").flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        assert!(!line.contains(&told), "still there: {line}");
    }
}
