//! Commands that run when something happens: in order, numbered, one at a time.
//!
//! A hook gets its event as JSON on standard input and as `BELLWETHER_EVENT`, `GROUP`, `EPOCH`, `SEQ`, `LEADER`,
//! `SELF` and `STATE` in its environment. No shell is involved, and nothing that a peer chose becomes an argument. A hook that runs
//! for too long is killed with its whole process group, so that it cannot hold up those after it.
//!
//! A *reconcile* hook is told what is wanted, leading or following, and asked again and again until it succeeds; only
//! the newest wish counts. It also runs once at the start: what a former life of the agent has set up is to be taken
//! down. A node whose hook has not succeeded in *following* is dirty, and must not lead again before it has.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use serde::Serialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStderr, Command},
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tracing::debug;

use crate::{
    config::{Hook, event_name, is_about_leading, quote},
    host::handle::{Handle, Request},
    status::{Event, EventKind, LeaderStatus},
    trust,
};

/// How the hooks are doing.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Hook))]
pub struct HookStatus {
    /// Its name, as configured.
    pub name: String,
    /// How often it was started.
    pub runs: u64,
    /// How often it failed or was killed.
    pub failures: u64,
    /// Whether it runs now.
    pub running: bool,
    /// The number of the last event it was run for.
    pub seq: u64,
    /// Elections in which this node no longer leads, but this hook has not yet succeeded in saying so.
    pub dirty: BTreeSet<String>,
    /// What went wrong last, unless it has succeeded since.
    pub error: Option<String>,
}

/// Where others read how the hooks are doing.
#[derive(Clone, Debug)]
pub struct HookView(watch::Receiver<Vec<HookStatus>>);

impl HookView {
    /// Of an agent without hooks.
    pub fn none() -> Self {
        Self(watch::channel(Vec::new()).1)
    }

    /// All of them, in the order of the configuration.
    pub fn all(&self) -> Vec<HookStatus> {
        self.0.borrow().clone()
    }

    /// Whether this node must not lead `election` yet.
    pub fn is_dirty(&self, election: &str) -> bool {
        self.0.borrow().iter().any(|hook| hook.dirty.contains(election))
    }

    /// Waits until something has changed. False if nothing will any more.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Runs the hooks.
#[derive(Debug)]
pub struct Hooks {
    hooks: Vec<Hook>,
    node: String,
    handle: Handle,
    door: Option<HookDoor>,
    seen: u64,
    retries: BTreeMap<(usize, String), Retry>,
    status: watch::Sender<Vec<HookStatus>>,
}

/// The agent's local socket, and who besides its own user and root may use it.
#[derive(Clone, Debug)]
pub(crate) struct HookDoor {
    pub(crate) path: PathBuf,
    pub(crate) group: Option<u32>,
}

impl HookDoor {
    /// A hook that runs as somebody who may not use it is not told of it: it asks where everybody does.
    fn is_for(&self, hook: &Hook) -> bool {
        let Some(user) = &hook.user else { return true };
        let own = user.id == 0 || user.id == geteuid().as_raw();
        own || self.group == Some(user.group)
    }
}

/// A reconcile hook that has not succeeded yet.
#[derive(Debug)]
struct Retry {
    due: Instant,
    call: Call,
}

/// What a hook is told.
#[derive(Clone, Debug, Serialize)]
struct Call {
    seq: u64,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<LeaderStatus>,
    #[serde(rename = "self")]
    node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Wanted>,
    attempt: u32,
    unix_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Leading,
    Following,
}

impl Wanted {
    const fn name(self) -> &'static str {
        match self {
            Self::Leading => "leading",
            Self::Following => "following",
        }
    }
}

impl Hooks {
    /// Hooks of the node of this name, for what happens from now on.
    pub fn new(hooks: Vec<Hook>, node: impl Into<String>, handle: Handle) -> (Self, HookView) {
        let fresh = |hook: &Hook| HookStatus { name: hook.name.clone(), ..HookStatus::default() };
        let (status, view) = watch::channel(hooks.iter().map(fresh).collect());
        let (node, seen) = (node.into(), handle.index());
        let hooks =
            Self { hooks, node, handle, door: None, seen, retries: BTreeMap::new(), status };
        (hooks, HookView(view))
    }

    /// Tells them where the agent can be asked.
    pub(crate) fn with_door(self, door: Option<HookDoor>) -> Self {
        Self { door, ..self }
    }

    /// Runs hooks until the agent has stopped and everything that happened before has been dealt with.
    pub async fn run(mut self) {
        if self.hooks.is_empty() {
            return;
        }
        self.reconcile().await;
        loop {
            self.catch_up().await;
            let due = self.retries.values().map(|retry| retry.due).min();
            let woken = tokio::select! {
                woken = self.handle.wait_after(self.seen) => woken,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Ok(()),
            };
            if woken.is_err() {
                // What happened on the way out counts too.
                self.catch_up().await;
                return;
            }
            self.retry().await;
        }
    }

    async fn catch_up(&mut self) {
        loop {
            let (events, missed) = self.handle.events_after(self.seen);
            if missed {
                // Edges are lost; what is wanted now is not.
                self.reconcile().await;
            }
            if events.is_empty() {
                return;
            }
            for event in events {
                self.seen = event.index;
                for index in 0..self.hooks.len() {
                    if self.hooks[index].wants(&event) {
                        let call = Call::of(&event, &self.node);
                        self.call(index, call).await;
                    }
                }
            }
        }
    }

    /// Tells every reconcile hook what is wanted of it now.
    async fn reconcile(&mut self) {
        if !self.hooks.iter().any(|hook| hook.reconcile) {
            return;
        }
        let Ok(status) = self.handle.status().await else { return };
        for index in 0..self.hooks.len() {
            for election in &status.elections {
                let hook = &self.hooks[index];
                let meant = hook.election.as_ref().is_none_or(|name| *name == election.election);
                if !hook.reconcile || !meant {
                    continue;
                }
                let wanted = if election.is_leader { Wanted::Leading } else { Wanted::Following };
                let call = Call {
                    seq: status.index,
                    event: "reconcile",
                    group: Some(election.election.clone()),
                    epoch: election.epoch.map(|epoch| epoch.to_string()),
                    leader: election.leader.clone(),
                    node: self.node.clone(),
                    state: Some(wanted),
                    attempt: 1,
                    unix_ms: 0,
                    detail: None,
                };
                self.call(index, call).await;
            }
        }
    }

    async fn retry(&mut self) {
        let now = Instant::now();
        let due = self.retries.iter().find(|(_, retry)| retry.due <= now);
        let Some(key) = due.map(|(key, _)| key.clone()) else { return };
        if let Some(Retry { mut call, .. }) = self.retries.remove(&key) {
            call.attempt = call.attempt.saturating_add(1);
            self.call(key.0, call).await;
        }
    }

    async fn call(&mut self, index: usize, call: Call) {
        let hook = self.hooks[index].clone();
        self.status.send_modify(|all| {
            let status = &mut all[index];
            status.runs += 1;
            status.running = true;
            status.seq = call.seq;
        });
        let door = self.door.as_ref().filter(|door| door.is_for(&hook));
        debug!(hook = hook.name, event = call.event, seq = call.seq, "a hook runs");
        let result = execute(&hook, &call, door).await;
        match &result {
            Ok(()) => debug!(hook = hook.name, seq = call.seq, "a hook has done its work"),
            Err(error) => debug!(hook = hook.name, seq = call.seq, error, "a hook failed"),
        }
        if let (Err(_), Some(Wanted::Leading), Some(election)) = (&result, call.state, &call.group)
        {
            // A leader that does not do what it should: where that is learnt, it counts; elsewhere nobody asked.
            let (election, of) = (election.clone(), Some(self.node.clone()));
            let _ = self.handle.request(Request::Report { election, of, cost: 100 }).await;
        }
        // Only what says whether this node leads can be wanted again.
        let group = call.group.clone().filter(|_| hook.reconcile && call.state.is_some());
        self.status.send_modify(|all| {
            let status = &mut all[index];
            status.running = false;
            status.failures += u64::from(result.is_err());
            status.error = result.as_ref().err().cloned();
            if let Some(group) = &group {
                if result.is_err() && call.state == Some(Wanted::Following) {
                    status.dirty.insert(group.clone());
                } else {
                    status.dirty.remove(group);
                }
            }
        });
        if let Some(group) = group {
            let key = (index, group);
            match result {
                Ok(()) => {
                    self.retries.remove(&key);
                }
                Err(_) => {
                    let due = Instant::now() + pause(call.attempt);
                    self.retries.insert(key, Retry { due, call });
                }
            }
        }
    }
}

impl Hook {
    fn wants(&self, event: &Event) -> bool {
        let kind = self.events.is_empty() || self.events.contains(&event.event);
        // Whoever asked for one election does not want to hear of members.
        let place = self.election.is_none() || self.election == event.election;
        kind && place
    }
}

impl Call {
    fn of(event: &Event, node: &str) -> Self {
        Self {
            seq: event.index,
            event: event_name(event.event),
            group: event.election.clone(),
            epoch: event.epoch.map(|epoch| epoch.to_string()),
            leader: event.node.clone(),
            node: node.to_owned(),
            state: is_about_leading(event.event).then_some(match event.event {
                EventKind::BecameLeader => Wanted::Leading,
                _ => Wanted::Following,
            }),
            attempt: 1,
            unix_ms: event.unix_ms,
            detail: event.detail.clone(),
        }
    }

    fn environment(&self) -> [(&'static str, String); 7] {
        let leader = self.leader.as_ref().map(|leader| leader.name.as_str());
        [
            ("BELLWETHER_EVENT", self.event.to_owned()),
            ("BELLWETHER_GROUP", plain(self.group.as_deref())),
            ("BELLWETHER_EPOCH", plain(self.epoch.as_deref())),
            ("BELLWETHER_SEQ", self.seq.to_string()),
            ("BELLWETHER_LEADER", plain(leader)),
            ("BELLWETHER_SELF", plain(Some(&self.node))),
            ("BELLWETHER_STATE", self.state.map_or("", Wanted::name).to_owned()),
        ]
    }
}

/// Peers choose some of these: nothing that does not show, and not too much of it.
fn plain(text: Option<&str>) -> String {
    quote(text.unwrap_or_default())
}

fn pause(attempt: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    doubled.min(LONGEST_PAUSE)
}

async fn execute(hook: &Hook, call: &Call, door: Option<&HookDoor>) -> Result<(), String> {
    let (program, arguments) = hook.command.split_first().ok_or("there is no command")?;
    // Whose it was when the settings were read says nothing about now.
    trust::walk(Path::new(program)).map_err(|distrust| format!("was not started: {distrust}"))?;
    let mut command = Command::new(program);
    clean(&mut command);
    if let Some(user) = &hook.user {
        command.uid(user.id).gid(user.group).env("HOME", &user.home);
    }
    command
        .args(arguments)
        .envs(call.environment())
        .envs(door.map(|door| ("BELLWETHER_SOCKET", &door.path)))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let deadline = Instant::now() + Duration::from_micros(hook.timeout.as_micros());
    let mut group = Group::of(&child);
    let input = serde_json::to_vec(call).unwrap_or_default();
    let stdin = child.stdin.take();
    // Not waited for: a hook need not read, and one that does not read must not hold us up.
    let writer = tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(&input).await;
        }
    });
    let said = tokio::spawn(listen(child.stderr.take()));
    let ended = timeout_at(deadline, child.wait()).await;
    writer.abort();
    let result = match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(status.to_string()),
        Ok(Err(error)) => Err(format!("cannot be waited for: {error}")),
        Err(_) => {
            group.end(&mut child).await;
            Err(format!("did not end within {} and was killed", hook.timeout))
        }
    };
    // It has ended, and so has our interest in processes that it left behind.
    group.forget();
    let Err(problem) = result else {
        said.abort();
        return Ok(());
    };
    let said = timeout(LAST_WORDS, said).await.ok().and_then(Result::ok).unwrap_or_default();
    match quote(said.trim()).as_str() {
        "" => Err(problem),
        said => Err(format!("{problem}: {said}")),
    }
}

/// A program that asks the agent must not do so with our token, nor be told of another event; and nothing that was meant
/// for us alone is for it.
pub(crate) fn clean(command: &mut Command) {
    command.env_clear().env("PATH", PATH);
    for name in INHERITED {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
}

/// What it says on standard error, of which some is kept; the rest is read and dropped, lest it block.
async fn listen(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let (mut kept, mut part) = (Vec::new(), [0; 1024]);
    while let Ok(read @ 1..) = stderr.read(&mut part).await {
        kept.extend(&part[..read.min(KEPT - kept.len())]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// A process group that does not outlive this value.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// That of a child which is the first of its group.
    pub(crate) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }

    /// What is left of it may live on.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // It may have ended by itself.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Asks it to end, and kills what is left of it.
    pub(crate) async fn end(&mut self, child: &mut Child) {
        self.signal(Signal::TERM);
        // The first process is not waited for yet: as long as it is not, its number is not given to another group.
        sleep(GRACE).await;
        self.signal(Signal::KILL);
        let _ = child.wait().await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Where programs are looked for that a hook names without a path, if the agent does not know.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What a hook has of the agent's environment.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];
/// Between being asked to end and being killed.
const GRACE: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// For what is still in the pipe of a hook that has ended; a process it left behind may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Bytes kept of what a hook says.
const KEPT: usize = 8 << 10;
