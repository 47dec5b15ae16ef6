//! The verbs that ask an agent, against one that says what the test wants.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

mod command;
#[path = "../../agent/tests/support/mod.rs"]
mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use bellwether_agent::{Request, internal::hooks::HookView, status::EventKind};
use command::command as bellwether;
use serde_json::Value;
use support::{Fake, TOKEN, election, server};

/// An agent in a thread of its own, so that the tests may block.
struct Agent {
    fake: Fake,
    at: SocketAddr,
    /// Dropped to end it.
    alive: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Agent {
    fn start() -> Self {
        let (alive, ended) = tokio::sync::oneshot::channel::<()>();
        let (sender, started) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let fake = Fake::start();
                let at = server(&fake, HookView::none()).await;
                sender.send((fake, at)).expect("a test that waits");
                let _ = ended.await;
            });
        });
        let (fake, at) = started.recv().expect("a server");
        Self { fake, at, alive: Some(alive), thread: Some(thread) }
    }

    fn lead(&self, leads: bool, epoch: &str) {
        let mut status = self.fake.status.lock().expect("not poisoned");
        let leader = if leads { "kitchen" } else { "attic" };
        status.elections[0] = election("web", Some(leader), leads);
        status.elections[0].epoch = Some(epoch.parse().unwrap());
        drop(status);
        // The stand-in says so every tenth of a second, and until then something else.
        thread::sleep(Duration::from_millis(150));
    }

    /// Ends it as a crash would.
    fn kill(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("an agent that did not panic");
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = bellwether(args);
        command.env("BELLWETHER_HTTP_ADDR", self.at.to_string()).env("BELLWETHER_TOKEN", TOKEN);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary under test runs")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

#[test]
fn exit_codes_are_what_scripts_rely_on() {
    let agent = Agent::start();
    for (args, expected) in [
        (&["is-leader", "web"][..], 0),
        (&["is-leader", "backup"], 1),
        (&["is-leader", "lost"], 4),
        (&["is-leader", "wep"], 2),
        (&["is-leader"], 0),
        (&["leader"], 0),
        (&["leader", "lost"], 4),
        (&["leaders"], 4),
        (&["members"], 0),
        (&["why", "attic"], 0),
        (&["why", "nobody"], 2),
        (&["explain", "backup"], 0),
        (&["tags"], 0),
        (&["resign", "web"], 0),
        (&["resign", "backup"], 2),
        (&["transfer", "web", "attic"], 0),
        (&["join", "127.0.0.1:9"], 0),
        (&["join", "no such host"], 2),
        (&["force-leave", "cellar"], 0),
        (&["force-leave", "nobody"], 2),
        (&["tags", "--set", "floor=3", "--delete", "old"], 0),
        (&["tags", "--set", "floor"], 2),
        (&["leave"], 0),
        (&["frobnicate"], 2),
        (&["run", "wep", "--", "true"], 2),
        (&["run", "web"], 2),
    ] {
        let output = agent.run(args);
        assert_eq!(code(&output), expected, "{args:?}: {output:?}");
    }
    let asked = agent.fake.asked.lock().unwrap();
    assert_eq!(asked.last(), Some(&Request::Leave));
    assert!(asked.contains(&Request::Transfer { election: "web".into(), to: "attic".into() }));
}

#[test]
fn nobody_there_is_another_answer_than_no() {
    let mut agent = Agent::start();
    agent.kill();
    for args in [&["is-leader", "web"][..], &["leader"], &["members"], &["resign", "web"]] {
        let output = agent.run(args);
        assert_eq!(code(&output), 3, "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(&agent.at.to_string()), "{output:?}");
    }
    let output = bellwether(&["leader", "--http-addr", "nonsense"]).output().unwrap();
    assert_eq!(code(&output), 2, "{output:?}");
    // Something else answers there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        use std::io::Write as _;
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    let output = bellwether(&["leader", "--http-addr", &at]).output().unwrap();
    assert_eq!(code(&output), 3, "{output:?}");
    assert!(text(&output.stderr).contains("no agent"), "{output:?}");
}

#[test]
fn commands_without_the_token_are_refused() {
    let agent = Agent::start();
    let output = agent.command(&["leave"]).env_remove("BELLWETHER_TOKEN").output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(text(&output.stderr).contains("BELLWETHER_TOKEN"), "{output:?}");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("{TOKEN}\n")).unwrap();
    let path = file.path().display().to_string();
    let mut command = agent.command(&["leave", "--token-file", &path]);
    assert_eq!(code(&command.env_remove("BELLWETHER_TOKEN").output().unwrap()), 0);
}

#[test]
fn every_read_verb_speaks_json_and_errors_do_too() {
    let agent = Agent::start();
    for args in [
        &["leader", "web"][..],
        &["leaders"],
        &["is-leader", "backup"],
        &["members"],
        &["why", "attic"],
        &["explain", "web"],
        &["tags"],
    ] {
        let output = agent.run(&[args, &["--json"]].concat());
        let parsed: Result<Value, _> = serde_json::from_slice(&output.stdout);
        assert!(parsed.is_ok(), "{args:?}: {output:?}");
        assert!(!text(&agent.run(args).stdout).contains('{'), "{args:?}");
    }
    let output = agent.run(&["why", "nobody", "--json"]);
    assert_eq!(code(&output), 2);
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(error["error"]["problem"].as_str().unwrap().contains("nobody"));
}

#[test]
fn names_of_others_cannot_paint_the_terminal() {
    let agent = Agent::start();
    agent.fake.status.lock().unwrap().members[1].name = "a\u{1b}[31m\nb".to_owned();
    let output = text(&agent.run(&["members"]).stdout);
    assert!(!output.contains('\u{1b}'), "{output:?}");
    assert!(output.contains("a\\u{1b}[31m\\nb"), "{output:?}");
}

#[test]
fn monitor_tells_what_happens() {
    let agent = Agent::start();
    agent.fake.happens(EventKind::BecameLeader);
    agent.fake.happens(EventKind::LeaderLost);
    let output = agent.run(&["monitor", "--after", "0", "--count", "2", "--json"]);
    assert_eq!(code(&output), 0, "{output:?}");
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"], "became-leader");
    assert_eq!((&lines[1]["event"], &lines[1]["index"]), (&"leader-lost".into(), &2.into()));
}

#[test]
fn an_old_key_is_not_retired_while_a_member_sends_under_it() {
    let agent = Agent::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let mut ring = bellwether_agent::KeyRing::create(&file).unwrap();
    let old = ring.sending().fingerprint().to_string();
    ring.add(bellwether_agent::Key::generate().unwrap()).unwrap();
    ring.send_newest();
    ring.write(&file).unwrap();
    let path = file.display().to_string();
    let retire = ["keys", "retire", "--key-file", &path];
    let key_of = |name: &str, key: &str| {
        let mut status = agent.fake.status.lock().unwrap();
        status.keys.members = vec![support::key_user(name, Some(key))];
    };
    key_of("attic", &old);
    let shown = text(&agent.run(&["keys", "status"]).stdout);
    assert!(shown.contains("attic") && shown.contains(&old), "{shown}");
    assert_eq!(
        serde_json::from_slice::<Value>(&agent.run(&["keys", "status", "--json"]).stdout).unwrap()
            ["members"][0]["key"],
        *old
    );
    let output = agent.run(&retire);
    assert_eq!(code(&output), 2, "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("attic still sent") && said.contains("--force"), "{said}");
    assert_eq!(bellwether_agent::KeyRing::read(&file).unwrap().keys().len(), 2);
    // So does the agent itself, as long as it was not told to read the file again.
    key_of("attic", "0badcafe");
    agent.fake.status.lock().unwrap().keys.sends.clone_from(&old);
    assert!(text(&agent.run(&retire).stderr).contains("kitchen still sent"));
    agent.fake.status.lock().unwrap().keys.sends = "0badcafe".to_owned();
    assert_eq!(code(&agent.run(&retire)), 0);
    assert_eq!(bellwether_agent::KeyRing::read(&file).unwrap().keys().len(), 1);
}

/// `run` and the lines its command prints.
struct Guarded {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Guarded {
    fn start(agent: &Agent, flags: &[&str], script: &str) -> Self {
        let tail = ["web", "--", "sh", "-c", script];
        let mut command = agent.command(&[&["run"], flags, &tail].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take().unwrap();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(20)).expect("the command says something")
    }

    fn code(&mut self) -> i32 {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().expect("an exit code");
            }
            assert!(Instant::now() < deadline, "run does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_running(pid: &str) -> bool {
    let mut stat = String::new();
    let file = fs::File::open(format!("/proc/{pid}/stat"));
    let read = file.and_then(|mut file| file.read_to_string(&mut stat));
    read.is_ok() && !stat.contains(") Z ")
}

fn gone_within(pid: &str, longest: Duration) -> Duration {
    let begun = Instant::now();
    while is_running(pid) {
        assert!(begun.elapsed() < longest, "{pid} still runs after {longest:?}");
        thread::sleep(Duration::from_millis(5));
    }
    begun.elapsed()
}

const TIMES: [&str; 4] = ["--guard", "1s", "--grace", "300ms"];
/// Says who it is and what it was told, and does not mind being asked to end; nor does its child.
const STUBBORN: &str = "trap '' TERM; (trap '' TERM; exec sleep 600) & \
                        echo $$ $! $BELLWETHER_GROUP $BELLWETHER_EPOCH ${BELLWETHER_TOKEN-none}; wait; wait";

fn pids(line: &str) -> [String; 2] {
    let mut words = line.split(' ').map(str::to_owned);
    [words.next().expect("a number"), words.next().expect("a number")]
}

#[test]
fn the_commands_exit_code_is_passed_on() {
    let agent = Agent::start();
    for (script, expected) in [("exit 7", 7), ("true", 0), ("kill -9 $$", 137)] {
        assert_eq!(Guarded::start(&agent, &[], script).code(), expected, "{script}");
    }
    let output = agent.run(&["run", "web", "--guard", "1s", "--grace", "1s", "--", "true"]);
    assert_eq!(code(&output), 2, "{output:?}");
}

/// Whoever mistypes it is not to learn so when it is needed.
#[test]
fn a_command_that_is_not_there_is_refused_before_anything_is_waited_for() {
    let agent = Agent::start();
    agent.lead(false, "1.1.1.0");
    for (program, words, code) in [
        ("/no/such/program", "there is no such program", 127),
        ("no-such-program", "there is no such program", 127),
        ("/etc/passwd", "is no program that may be run", 126),
        ("/etc", "is no program that may be run", 126),
    ] {
        let mut run = agent.command(&["run", "web", "--", program]);
        let mut run = run.stderr(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let status = loop {
            if let Some(status) = run.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                run.kill().unwrap();
                panic!("{program}: waited for");
            }
            thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(code), "{program}");
        let mut said = String::new();
        run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains(program) && said.contains(words), "{said}");
    }
}

#[test]
fn the_command_runs_only_while_this_node_leads() {
    let agent = Agent::start();
    agent.lead(false, "1.1.1.0");
    let run = Guarded::start(&agent, &TIMES, STUBBORN);
    assert!(run.lines.recv_timeout(Duration::from_millis(700)).is_err(), "it does not lead");
    agent.lead(true, "2.1.1.0");
    let line = run.line();
    assert!(line.ends_with("web 2.1.1.0 none"), "{line}");
    agent.lead(false, "3.1.1.0");
    for pid in pids(&line) {
        gone_within(&pid, Duration::from_secs(1));
    }
    agent.lead(true, "4.1.1.0");
    let again = run.line();
    assert!(again.contains("4.1.1.0"), "{again}");
    // Lost and regained between two questions: the old command must not go on under the old epoch.
    agent.lead(true, "6.1.1.0");
    assert!(run.line().contains("6.1.1.0"));
    for pid in pids(&again) {
        gone_within(&pid, Duration::from_millis(1));
    }
}

#[test]
fn the_command_does_not_outlive_the_guard_when_the_agent_is_killed() {
    let mut agent = Agent::start();
    let run = Guarded::start(&agent, &TIMES, STUBBORN);
    let line = run.line();
    agent.kill();
    for pid in pids(&line) {
        gone_within(&pid, Duration::from_millis(1_100));
    }
}

/// As SIGSTOP does it: connections are made, and nothing is answered.
#[test]
fn the_command_does_not_outlive_the_guard_when_the_agent_hangs() {
    let agent = Agent::start();
    let run = Guarded::start(&agent, &TIMES, STUBBORN);
    let line = run.line();
    let status = std::sync::Arc::clone(&agent.fake.status);
    let held = status.lock().unwrap();
    for pid in pids(&line) {
        gone_within(&pid, Duration::from_millis(1_100));
    }
    drop(held);
    assert!(run.line().starts_with(char::is_numeric), "it leads again once the agent says so");
}

#[test]
fn once_ends_with_no_and_term_ends_with_the_command() {
    let agent = Agent::start();
    let mut run = Guarded::start(&agent, &[&TIMES[..], &["--once"]].concat(), STUBBORN);
    let line = run.line();
    agent.lead(false, "3.1.1.0");
    assert_eq!(run.code(), 1);
    assert!(pids(&line).iter().all(|pid| !is_running(pid)));
    agent.lead(true, "4.1.1.0");
    let mut run = Guarded::start(&agent, &TIMES, STUBBORN);
    let line = run.line();
    let pid = rustix::process::Pid::from_raw(i32::try_from(run.child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(run.code(), 143);
    assert!(pids(&line).iter().all(|pid| !is_running(pid)));
}

#[test]
fn the_command_dies_with_a_run_that_is_killed() {
    let agent = Agent::start();
    let mut run = Guarded::start(&agent, &TIMES, "echo $$; exec sleep 600");
    let pid = run.line();
    run.child.kill().unwrap();
    gone_within(&pid, Duration::from_secs(2));
}
