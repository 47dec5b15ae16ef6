//! The local socket of a real agent, and a local user without a token who is in everybody's way.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

mod command;
mod lone;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::{fs::PermissionsExt as _, net::UnixStream, process::CommandExt as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{PoisonError, RwLock},
    thread,
    time::{Duration, Instant},
};

use command::command;
use lone::Lone;
use rustix::process::geteuid;

const NOBODY: u32 = 65_534;

/// How long things take is measured while no other test of this file runs.
static QUIET: RwLock<()> = RwLock::new(());

/// No test: what a local user does who means harm, without a token. Half requests, whole ones, streams, from several
/// addresses of this machine, and the socket itself, for as long as it lives.
#[test]
#[ignore = "run by others"]
fn hoard() {
    let Ok(at) = std::env::var("HOARD_AT") else { return };
    let at: SocketAddr = at.parse().unwrap();
    let half = |request: String, many: usize| {
        thread::spawn(move || {
            let mut held: Vec<TcpStream> = Vec::new();
            loop {
                held.retain(|mut stream| {
                    stream.set_nonblocking(true).is_ok()
                        && !matches!(stream.read(&mut [0; 4096]), Ok(0))
                        && stream.take_error().is_ok_and(|error| error.is_none())
                });
                while held.len() < many {
                    let Ok(mut stream) = TcpStream::connect(at) else { break };
                    let _ = stream.write_all(request.as_bytes());
                    held.push(stream);
                }
                thread::sleep(Duration::from_millis(5));
            }
        })
    };
    let whole = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n");
    half(format!("GET /v1/leader HTTP/1.1\r\nHost: {at}\r\nX: "), 300);
    half(whole("/v1/events"), 100);
    half(whole("/v1/events?index=999999&wait=10m"), 100);
    let path = std::env::var("HOARD_SOCKET").unwrap();
    loop {
        let _ = TcpStream::connect(at).map(|mut stream| {
            let _ = stream.write_all(whole("/v1/status").as_bytes());
            let _ = stream.read(&mut [0; 512]);
        });
        assert!(UnixStream::connect(&path).is_err(), "the socket is not for us");
        thread::sleep(Duration::from_millis(2));
    }
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn quantile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * part) as usize]
}

/// A hook that asks the agent twenty times, and says what came of it and how long it took. As it fails, it is run again and
/// again for as long as this node leads.
fn hook(lone: &Path) -> String {
    let script = lone.join("ask");
    let (binary, out) = (env!("CARGO_BIN_EXE_bellwether"), lone.join("asked"));
    let text = format!(
        "#!/bin/sh\ncase $(cat) in *'\"state\":\"leading\"'*) ;; *) exit 0;; esac\n\
         for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\nbegun=$(date +%s%N)\n\
         {binary} is-leader side >/dev/null 2>&1\n\
         echo $? $(($(date +%s%N) - begun)) $BELLWETHER_SOCKET >> {}\ndone\nexit 1\n",
        out.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    format!(
        "[hook.ask]\nevents = [\"became-leader\"]\nelection = \"side\"\nreconcile = true\n\
         command = [{:?}]\n",
        script.display().to_string()
    )
}

fn besieged(lasting: Duration) {
    if !geteuid().is_root() {
        eprintln!("only root can be two users: skipped");
        return;
    }
    let _alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
    let aside = tempfile::tempdir().unwrap();
    fs::set_permissions(aside.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let socket = aside.path().join("agent.sock").display().to_string();
    let settings = hook(aside.path());
    let lone = Lone::start(&["web=eventual", "side=eventual"], &settings, &["--socket", &socket]);
    let ask = |args: &[&str]| {
        let mut command = command(args);
        command.env("BELLWETHER_SOCKET", &socket).stdin(Stdio::null());
        command
    };
    let mut run = ask(&["run", "web", "--", "sh", "-c", "echo up; exec sleep 600"]);
    let mut run = Ended(run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(run.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "up");
    let mut calm = Vec::new();
    let asked = |times: &mut Vec<Duration>| {
        let begun = Instant::now();
        let output = ask(&["is-leader", "web"]).output().unwrap();
        times.push(begun.elapsed());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    // One that begins now, and is answered as the one that runs is.
    let begun = |times: &mut Vec<Duration>| {
        let begun = Instant::now();
        let output = ask(&["run", "web", "--once", "--", "true"]).output().unwrap();
        times.push(begun.elapsed());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    (0..100).for_each(|_| asked(&mut calm));
    let (mut calm_runs, mut runs) = (Vec::new(), Vec::new());
    (0..20).for_each(|_| begun(&mut calm_runs));
    let mut hoard = Command::new(std::env::current_exe().unwrap());
    hoard.args(["hoard", "--exact", "--ignored"]).env("HOARD_AT", lone.at.to_string());
    hoard.env("HOARD_SOCKET", &socket).uid(NOBODY).gid(NOBODY).current_dir("/");
    hoard.stdout(Stdio::null()).stderr(Stdio::null());
    let mut hoard = Ended(hoard.spawn().unwrap());
    thread::sleep(Duration::from_secs(1));
    let (start, mut times) = (Instant::now(), Vec::new());
    let before = fs::read_to_string(aside.path().join("asked")).unwrap().lines().count();
    while start.elapsed() < lasting {
        asked(&mut times);
        if times.len().is_multiple_of(20) {
            begun(&mut runs);
        }
        if times.len().is_multiple_of(100) {
            // What needs a token elsewhere.
            assert!(ask(&["tags", "--set", "floor=3"]).status().unwrap().success());
        }
    }
    assert!(hoard.0.try_wait().unwrap().is_none(), "the siege is over before its time");
    let (median, rare) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    let calm = (quantile(&mut calm, 0.5), quantile(&mut calm, 0.99));
    println!("is-leader, {}: median {median:?}, p99 {rare:?}; calm {calm:?}", times.len());
    let hooks = fs::read_to_string(aside.path().join("asked")).unwrap();
    let mut asked: Vec<Duration> = Vec::new();
    for line in hooks.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!((words[0], words[2]), ("0", &*socket), "{line}");
        asked.push(Duration::from_nanos(words[1].parse().unwrap()));
    }
    let mut besieged = asked.split_off(before);
    assert!(besieged.len() >= 40, "{hooks}");
    let of_hooks = quantile(&mut besieged, 0.99);
    let calm = (asked.len(), quantile(&mut asked, 1.0));
    println!("is-leader in hooks, {}: p99 {of_hooks:?}; longest of {calm:?} calm", besieged.len());
    let calm = (quantile(&mut calm_runs, 0.5), quantile(&mut calm_runs, 1.0));
    let of_runs = (quantile(&mut runs, 0.5), quantile(&mut runs, 1.0));
    println!(
        "run, from its start to its end, {}: median and longest {of_runs:?}; calm {calm:?}",
        runs.len()
    );
    let metrics = ask_raw(&socket, "/metrics");
    let counted = |listener: &str, reason: &str| -> u64 {
        let start = format!("refused_total{{listener=\"{listener}\",reason=\"{reason}\"}} ");
        let at = metrics.split(&*start).nth(1).expect("such a counter");
        at.lines().next().unwrap().parse().unwrap()
    };
    println!(
        "closed for others {}, refused {}, streams refused {}",
        counted("http", "idle"),
        counted("http", "connections"),
        counted("http", "streams")
    );
    assert!(counted("http", "idle") + counted("http", "streams") > 100);
    assert!(run.0.try_wait().unwrap().is_none(), "run goes on");
    drop(run);
    assert!(lines.next().is_none(), "the command was started once");
    assert!(rare < Duration::from_millis(50), "p99 {rare:?}");
    assert!(of_hooks < Duration::from_millis(50), "p99 in hooks {of_hooks:?}");
    // It starts three programs.
    assert!(of_runs.1 < Duration::from_secs(1), "{of_runs:?}");
}

fn ask_raw(socket: &str, path: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_local_user_without_a_token_is_in_nobodys_way() {
    besieged(Duration::from_secs(20));
}

#[test]
#[ignore = "takes a minute"]
fn a_local_user_without_a_token_is_in_nobodys_way_for_a_minute() {
    besieged(Duration::from_secs(60));
}

#[test]
fn the_kernel_says_who_may_ask() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    if !geteuid().is_root() {
        eprintln!("only root can be two users: skipped");
        return;
    }
    let aside = tempfile::tempdir().unwrap();
    fs::set_permissions(aside.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let socket = aside.path().join("agent.sock");
    let path = socket.display().to_string();
    let lone = Lone::start(&["web=eventual"], "", &["--socket", &path]);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let as_nobody = |args: &[&str]| {
        let mut command = command(args);
        command.env("BELLWETHER_SOCKET", &path).uid(NOBODY).gid(NOBODY).current_dir("/");
        command.output().unwrap()
    };
    // Not so much as a connection.
    let output = as_nobody(&["is-leader", "web"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&path) && said.contains("Permission denied"), "{said}");
    // Whoever opened it to all has not made them the agent's own.
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    for args in [&["is-leader", "web"][..], &["resign", "web"]] {
        let output = as_nobody(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("not for your user") && said.contains("socket_group"), "{said}");
    }
    // Root needs no token here, and does elsewhere.
    let mut own = command(&["tags", "--set", "floor=3", "--socket", &path]);
    assert!(own.status().unwrap().success());
    let output = lone.over_http(&["tags", "--set", "floor=4"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // It goes with the agent, and what a killed one leaves is no obstacle.
    drop(lone);
    assert!(socket.exists(), "killed, it cannot have tidied up");
    let lone = Lone::start(&["web=eventual"], "", &["--socket", &path]);
    let output = command(&["leave", "--socket", &path]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let deadline = Instant::now() + Duration::from_secs(10);
    while socket.exists() {
        assert!(Instant::now() < deadline, "it stays behind");
        thread::sleep(Duration::from_millis(10));
    }
    drop(lone);
}

#[test]
fn a_group_may_be_let_in() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    if !geteuid().is_root() {
        eprintln!("only root can be two users: skipped");
        return;
    }
    let aside = tempfile::tempdir().unwrap();
    fs::set_permissions(aside.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = aside.path().join("agent.sock").display().to_string();
    let groups = fs::read_to_string("/etc/group").unwrap();
    let group = groups.lines().find(|line| line.split(':').nth(2) == Some("65534")).unwrap();
    let group = group.split(':').next().unwrap();
    let settings = format!("socket = {path:?}\nsocket_group = {group:?}\n");
    let _lone = Lone::start(&["web=eventual"], &settings, &[]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    for (group, code) in [(NOBODY, 0), (NOBODY - 1, 3)] {
        let mut asked = command(&["tags", "--set", "floor=3", "--socket", &path]);
        let output = asked.uid(NOBODY - 2).gid(group).current_dir("/").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
}

/// The cluster's key is in there. Of a process that may be dumped, its own user reads all, and a core dump has it.
#[test]
fn nobody_looks_into_an_agents_memory() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    if !geteuid().is_root() {
        eprintln!("only root can be two users: skipped");
        return;
    }
    let aside = tempfile::tempdir().unwrap();
    let key = aside.path().join("key");
    assert!(command(&["keygen", &key.display().to_string()]).output().unwrap().status.success());
    for path in [aside.path(), &key] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let key = key.display().to_string();
    let doors = ["--bind", "127.0.0.1:0", "--api", "127.0.0.1:0", "--socket", "none"];
    let whose = ["agent", "--name", "kitchen", "--cluster", "garden", "--key-file", &key];
    let mut agent = command(&[&whose[..], &doors].concat());
    agent.uid(NOBODY).gid(NOBODY).current_dir("/").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut agent = Ended(agent.spawn().unwrap());
    let mut lines = BufReader::new(agent.0.stderr.take().unwrap()).lines();
    let started = lines.next().unwrap().unwrap();
    assert!(started.contains("listens on"), "{started}");
    let of = |file: &str| format!("/proc/{}/{file}", agent.0.id());
    let limits = fs::read_to_string(of("limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let core: Vec<&str> = core.split_whitespace().skip(4).take(2).collect();
    assert_eq!(core, ["0", "0"]);
    let mut reader = Command::new("cat");
    let reader = reader.arg(of("environ")).uid(NOBODY).gid(NOBODY).current_dir("/");
    let output = reader.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("ermission denied"), "{output:?}");
}

/// Nobody says where it is: the command line looks where agents put it, by the port; and says where it looked.
#[test]
fn it_is_found_where_it_usually_is() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    let runtime = tempfile::tempdir().unwrap();
    let output = command(&["leader"]).env("XDG_RUNTIME_DIR", runtime.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(3) {
        assert!(said.contains(&runtime.path().display().to_string()), "{said}");
        assert!(
            said.contains("/run/bellwether/7739-") && said.contains("127.0.0.1:7739"),
            "{said}"
        );
    }
    let lone = Lone::start(&["web=eventual"], "", &[]);
    let usual = bellwether_agent::internal::api::usual_sockets(lone.at.port());
    let found = usual.iter().find(|path| path.exists());
    let found = found.unwrap_or_else(|| panic!("none of {usual:?}")).display().to_string();
    assert!(command(&["is-leader", "web", "--socket", &found]).status().unwrap().success());
    drop(lone);
    let _ = fs::remove_file(found);
}

/// The end of the connection is the end of leading: the guard is not waited for.
#[test]
fn run_takes_the_end_of_its_connection_as_loss() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    let mut lone = Lone::start(&["web=eventual"], "", &[]);
    let times = ["--guard", "20s", "--grace", "10s"];
    let tail = ["web", "--", "sh", "-c", "echo up; exec sleep 600"];
    let mut run = lone.over_http(&[&["run"], &times[..], &tail].concat());
    let mut run = Ended(run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(run.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "up");
    let at = format!("BELLWETHER_HTTP_ADDR={}", lone.at);
    let ended = || {
        let children = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line == b"sleep\x00600\x00"
                && fs::read(entry.path().join("environ")).is_ok_and(|environment| {
                    environment.split(|byte| *byte == 0).any(|one| one == at.as_bytes())
                })
        });
        children.count() == 0
    };
    // It has said so before it became what is looked for.
    while ended() {
        thread::sleep(Duration::from_millis(10));
    }
    lone.agent.kill().unwrap();
    let begun = Instant::now();
    while !ended() {
        assert!(begun.elapsed() < Duration::from_secs(3), "the guard is waited for");
        thread::sleep(Duration::from_millis(10));
    }
}
