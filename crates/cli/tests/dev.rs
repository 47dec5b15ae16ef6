//! `bellwether dev`, as a newcomer meets it: started, the leader killed, everybody revived, stopped.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

#[test]
fn a_newcomer_sees_a_leader_and_after_its_death_another() {
    let mut dev = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .args(["dev", "--nodes", "4", "--port", "17739"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = dev.stdin.take().unwrap();
    let output = BufReader::new(dev.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        output.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    let wait_for = |word: &str| {
        let start = Instant::now();
        loop {
            let line = lines.recv_timeout(Duration::from_secs(20)).unwrap_or_default();
            assert!(!line.is_empty() || start.elapsed() < Duration::from_secs(20), "no {word:?}");
            if line.contains(word) {
                return line;
            }
        }
    };
    let leader = |line: &str| line.split_whitespace().nth(2).unwrap().to_owned();
    let first = leader(&wait_for("all 4 agree"));
    keys.write_all(b"k\n").unwrap();
    let killed = Instant::now();
    assert_eq!(leader(&wait_for("killed")), first);
    let second = leader(&wait_for("all 3 agree"));
    assert_ne!(second, first);
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    keys.write_all(b"r\n").unwrap();
    assert_eq!(leader(&wait_for("revived")), first);
    assert_eq!(leader(&wait_for("all 4 agree")), second, "who comes back dethrones nobody");
    keys.write_all(b"c\n").unwrap();
    assert_eq!(leader(&wait_for("cut off")), second);
    let third = leader(&wait_for("all 3 agree"));
    assert_ne!(third, second);
    keys.write_all(b"h\n").unwrap();
    assert_eq!(leader(&wait_for("healed")), second);
    wait_for("all 4 agree");
    keys.write_all(b"q\n").unwrap();
    assert!(dev.wait().unwrap().success());
}
