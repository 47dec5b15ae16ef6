//! Hooks as real processes: order, environment, time limits, repetition.

mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use bellwether_agent::{
    Request,
    config::{Hook, User},
    internal::hooks::Hooks,
    status::EventKind,
};
use serde_json::Value;
use support::Fake;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// A hook that runs these lines of shell in its own file, in a folder of its own.
fn hook(folder: &TempDir, name: &str, script: &str) -> Hook {
    let path = folder.path().join(name);
    let text = format!("#!/bin/sh\ncd {}\n{script}\n", folder.path().display());
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("changed");
    Hook {
        name: name.to_owned(),
        events: Vec::new(),
        election: None,
        command: vec![path.display().to_string(), "$(touch injected)".to_owned()],
        timeout: bellwether_proto::Duration::from_secs(10),
        reconcile: false,
        user: None,
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(10)).await;
    }
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn lines(folder: &TempDir, file: &str) -> Vec<String> {
    read(folder.path().join(file)).lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn hooks_run_in_order_one_at_a_time_and_are_told_everything() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start();
    let say = "test -e running && echo overlap >> log; touch running; sleep 0.05; \
               echo $BELLWETHER_SEQ $BELLWETHER_EVENT $BELLWETHER_GROUP $BELLWETHER_EPOCH \
               $BELLWETHER_LEADER $BELLWETHER_SELF \"$1\" >> log; cat > $BELLWETHER_SEQ.json; \
               echo $BELLWETHER_TOKEN > token; rm running";
    let mut second = hook(&folder, "second", "echo second $BELLWETHER_SEQ >> log");
    second.events = vec![EventKind::StoppedLeading];
    let hooks = vec![hook(&folder, "first", say), second];
    let (hooks, view) = Hooks::new(hooks, "kitchen", fake.handle.clone());
    let running = tokio::spawn(hooks.run());
    for kind in [EventKind::BecameLeader, EventKind::StoppedLeading, EventKind::BecameLeader] {
        fake.happens(kind);
    }
    until("three runs", || lines(&folder, "log").len() == 4).await;
    assert_eq!(
        lines(&folder, "log"),
        [
            "1 became-leader web 7.3.1.0 kitchen kitchen $(touch injected)",
            "2 stopped-leading web 7.3.1.0 kitchen kitchen $(touch injected)",
            "second 2",
            "3 became-leader web 7.3.1.0 kitchen kitchen $(touch injected)",
        ]
    );
    assert!(!folder.path().join("injected").exists(), "a shell has read an argument");
    let told: Value = serde_json::from_str(&read(folder.path().join("2.json"))).unwrap();
    assert_eq!(told["seq"], 2);
    assert_eq!((&told["event"], &told["state"]), (&"stopped-leading".into(), &"following".into()));
    assert_eq!((&told["group"], &told["self"]), (&"web".into(), &"kitchen".into()));
    // What happens on the way out is dealt with before the runner ends.
    fake.happens(EventKind::StoppedLeading);
    until("the last event", || fake.handle.index() == 4).await;
    fake.stop();
    running.await.unwrap();
    assert_eq!(lines(&folder, "log").len(), 6);
    assert_eq!(view.all()[0].runs, 4);
    assert_eq!(view.all()[0].failures, 0);
}

fn is_running(pid: &str) -> bool {
    // A zombie has ended, whoever has yet to hear of it.
    let stat = read(Path::new("/proc").join(pid).join("stat"));
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test]
async fn a_hook_that_hangs_is_killed_with_all_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start();
    // Neither minds being asked to end, and the child holds the pipe.
    let hang = "trap '' TERM; (trap '' TERM; sleep 600) & echo $! > child; echo $$ > own; \
                echo stuck >&2; sleep 600";
    let mut hang = hook(&folder, "hang", hang);
    hang.timeout = bellwether_proto::Duration::from_millis(1_500);
    let next = hook(&folder, "next", "touch next-ran");
    let (hooks, view) = Hooks::new(vec![hang, next], "kitchen", fake.handle.clone());
    tokio::spawn(hooks.run());
    fake.happens(EventKind::BecameLeader);
    until("the one after it runs", || folder.path().join("next-ran").exists()).await;
    for file in ["child", "own"] {
        let pid = read(folder.path().join(file)).trim().to_owned();
        assert!(!pid.is_empty());
        until("the whole group is gone", || !is_running(&pid)).await;
    }
    let status = &view.all()[0];
    assert_eq!((status.runs, status.failures), (1, 1));
    let error = status.error.as_deref().unwrap();
    assert!(error.contains("did not end within 1500ms and was killed"), "{error}");
}

#[tokio::test]
async fn a_reconcile_hook_is_repeated_until_it_succeeds_and_its_node_is_dirty_till_then() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start();
    fake.status.lock().unwrap().elections[0].is_leader = true;
    let script = "cat >> told; echo $BELLWETHER_EVENT >> log; \
                  test $BELLWETHER_EVENT != stopped-leading || test -e mended || { echo no >&2; exit 3; }";
    let mut reconcile = hook(&folder, "address", script);
    reconcile.events = vec![EventKind::BecameLeader, EventKind::StoppedLeading];
    reconcile.election = Some("web".to_owned());
    reconcile.reconcile = true;
    let (hooks, view) = Hooks::new(vec![reconcile], "kitchen", fake.handle.clone());
    tokio::spawn(hooks.run());
    until("what is wanted at the start", || lines(&folder, "log") == ["reconcile"]).await;
    assert!(!view.is_dirty("web"));
    fake.happens(EventKind::StoppedLeading);
    until("dirty", || view.is_dirty("web")).await;
    assert!(!view.is_dirty("backup"));
    assert_eq!(view.all()[0].error.as_deref(), Some("exit status: 3: no"));
    until("tried again", || lines(&folder, "log").len() >= 3).await;
    fs::write(folder.path().join("mended"), "").unwrap();
    until("clean", || !view.is_dirty("web")).await;
    assert_eq!(view.all()[0].error, None);
    let told = read(folder.path().join("told"));
    assert!(told.contains("\"attempt\":2") && told.contains("\"state\":\"following\""), "{told}");
}

#[tokio::test]
async fn a_newer_wish_replaces_one_that_is_still_to_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start();
    fake.status.lock().unwrap().elections[0].is_leader = false;
    let script = "echo $BELLWETHER_EVENT >> log; test $BELLWETHER_EVENT != stopped-leading";
    let mut reconcile = hook(&folder, "address", script);
    reconcile.events = vec![EventKind::BecameLeader, EventKind::StoppedLeading];
    reconcile.election = Some("web".to_owned());
    reconcile.reconcile = true;
    let (hooks, view) = Hooks::new(vec![reconcile], "kitchen", fake.handle.clone());
    tokio::spawn(hooks.run());
    fake.happens(EventKind::StoppedLeading);
    until("dirty", || view.is_dirty("web")).await;
    fake.happens(EventKind::BecameLeader);
    until("clean", || !view.is_dirty("web")).await;
    // Longer than the first pause: the old wish would have come back.
    sleep(Duration::from_millis(1_500)).await;
    let log = lines(&folder, "log");
    assert_eq!(log.last().map(String::as_str), Some("became-leader"), "{log:?}");
}

#[tokio::test]
async fn a_hook_that_fails_in_leading_is_held_against_the_node_and_no_other_is() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start();
    let fails = hook(&folder, "fails", "echo $BELLWETHER_SEQ >> log; exit 3");
    let (hooks, view) = Hooks::new(vec![fails], "kitchen", fake.handle.clone());
    tokio::spawn(hooks.run());
    for kind in [EventKind::StoppedLeading, EventKind::LeaderLost, EventKind::BecameLeader] {
        fake.happens(kind);
    }
    until("three failures", || view.all()[0].failures == 3).await;
    let (election, of) = ("web".to_owned(), Some("kitchen".to_owned()));
    let report = Request::Report { election, of, cost: 100 };
    until("a report", || !fake.asked.lock().unwrap().is_empty()).await;
    assert_eq!(*fake.asked.lock().unwrap(), [report]);
}

#[tokio::test]
async fn a_hook_has_an_environment_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start();
    // Cargo sets some for tests, none of which is a hook's business.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let says = hook(&folder, "says", "env > now; mv now env");
    let (hooks, _view) = Hooks::new(vec![says], "kitchen", fake.handle.clone());
    tokio::spawn(hooks.run());
    fake.happens(EventKind::BecameLeader);
    until("it has run", || folder.path().join("env").exists()).await;
    // The shell adds these.
    let by_shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    for line in lines(&folder, "env") {
        let (name, _) = line.split_once('=').unwrap();
        let known = ["PATH", "HOME", "LANG"].contains(&name) || name.starts_with("BELLWETHER_");
        assert!(known || by_shell.contains(&name), "{line}");
    }
    assert!(lines(&folder, "env").iter().any(|line| line.starts_with("PATH=")));
}

#[tokio::test]
async fn a_hook_that_others_could_have_exchanged_since_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let mut runs = hook(&folder, "runs", "touch ran");
    fs::rename(&runs.command[0], inner.join("runs")).unwrap();
    runs.command[0] = inner.join("runs").display().to_string();
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o777)).unwrap();
    let (hooks, view) = Hooks::new(vec![runs], "kitchen", fake.handle.clone());
    tokio::spawn(hooks.run());
    fake.happens(EventKind::BecameLeader);
    until("a failure", || view.all()[0].failures == 1).await;
    let error = view.all()[0].error.clone().unwrap();
    assert!(error.starts_with("was not started: ") && error.contains("mode is 0777"), "{error}");
    assert!(!folder.path().join("ran").exists());
}

#[tokio::test]
async fn a_hook_runs_as_the_user_it_is_to_run_as() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    std::os::unix::fs::chown(&out, Some(65_534), Some(65_534)).unwrap();
    let mut says =
        hook(&folder, "says", "echo $(id -u) $(id -G) $HOME > out/now; mv out/now out/id");
    for (path, mode) in [(folder.path(), 0o755), (Path::new(&says.command[0]), 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let (name, home) = ("nobody".to_owned(), PathBuf::from("/nowhere"));
    says.user = Some(User { name, id: 65_534, group: 65_534, home });
    let (hooks, _view) = Hooks::new(vec![says], "kitchen", fake.handle.clone());
    tokio::spawn(hooks.run());
    fake.happens(EventKind::BecameLeader);
    until("it has run", || out.join("id").exists()).await;
    assert_eq!(read(out.join("id")), "65534 65534 /nowhere\n");
}
