//! Real agents on hosts: started, stopped, asked, listened to.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::{Door, Net};
use bellwether_proto::Epoch;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// One cluster.
pub(crate) struct Agents<'n> {
    net: &'n Net,
    cluster: String,
    flags: Vec<String>,
    /// Whom to join, if not the first three by their addresses.
    join: Option<Vec<String>>,
    /// Stands in for `/etc/resolv.conf`.
    resolvers: Option<PathBuf>,
    folder: tempfile::TempDir,
    agents: Vec<Agent>,
}

/// The agent of one host.
struct Agent {
    host: usize,
    /// Besides those of all.
    flags: Vec<String>,
    /// What runs, if it is not the build under test.
    binary: Option<String>,
    process: Option<Child>,
    heard: Arc<Mutex<Vec<Heard>>>,
    over: Arc<AtomicBool>,
}

/// An event, and when it was heard here: one clock for all hosts.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Instant,
    pub(crate) kind: String,
    pub(crate) node: String,
    /// Its identity: names may not have come around yet.
    pub(crate) id: String,
    pub(crate) election: String,
    /// When it happened, by the clock that the agents of all hosts share here.
    pub(crate) unix_ms: u64,
    pub(crate) epoch: Option<Epoch>,
}

/// What an agent says of the leader.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) leader: Option<String>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) is_leader: bool,
}

impl<'n> Agents<'n> {
    /// Agents of this cluster on these hosts, with these flags besides what they cannot do without.
    pub(crate) fn start(net: &'n Net, cluster: &str, hosts: &[usize], flags: &[&str]) -> Self {
        Self::start_each(net, cluster, hosts, flags, |_| vec![])
    }

    /// The same, with flags for each host besides.
    pub(crate) fn start_each(
        net: &'n Net,
        cluster: &str,
        hosts: &[usize],
        flags: &[&str],
        own: impl Fn(usize) -> Vec<String>,
    ) -> Self {
        Self::start_with(net, cluster, hosts, flags, |_, host| own(host))
    }

    /// The same, where these flags name files in the cluster's folder.
    pub(crate) fn start_with(
        net: &'n Net,
        cluster: &str,
        hosts: &[usize],
        flags: &[&str],
        own: impl Fn(&Path, usize) -> Vec<String>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::start_in(folder, net, cluster, hosts, flags, own)
    }

    /// The same, where disks are never slow: in memory.
    pub(crate) fn start_in_memory(
        net: &'n Net,
        cluster: &str,
        hosts: &[usize],
        flags: &[&str],
        own: impl Fn(&Path, usize) -> Vec<String>,
    ) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        Self::start_in(folder, net, cluster, hosts, flags, own)
    }

    fn start_in(
        folder: tempfile::TempDir,
        net: &'n Net,
        cluster: &str,
        hosts: &[usize],
        flags: &[&str],
        own: impl Fn(&Path, usize) -> Vec<String>,
    ) -> Self {
        let path = folder.path().to_owned();
        let mut keygen = Command::new(binary());
        keygen.arg("keygen").arg(folder.path().join("key")).stdout(Stdio::null());
        assert!(keygen.status().expect("the binary under test runs").success());
        Self::start_from(folder, net, cluster, hosts, flags, |host| own(&path, host))
    }

    /// Agents that join by these, which they look up at the servers that this file names.
    pub(crate) fn start_by(
        net: &'n Net,
        hosts: &[usize],
        join: &[&str],
        resolvers: Option<&Path>,
        flags: &[&str],
    ) -> Self {
        let mut all = Self::start(net, "garden", &[], flags);
        all.join = Some(join.iter().map(|&one| one.to_owned()).collect());
        all.resolvers = resolvers.map(Path::to_owned);
        let agent = |&host| Agent {
            binary: None,
            host,
            flags: vec![],
            process: None,
            heard: Arc::default(),
            over: Arc::new(AtomicBool::new(false)),
        };
        all.agents = hosts.iter().map(agent).collect();
        all.all().for_each(|at| all.run(at));
        all.agents.iter().for_each(|agent| agent.listen(net.host(agent.host).door()));
        all
    }

    /// Another cluster, with the same key.
    pub(crate) fn start_beside(&self, cluster: &str, hosts: &[usize], flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [ours, theirs] = [&self.folder, &folder].map(|folder| folder.path().join("key"));
        fs::copy(ours, theirs).expect("a key");
        Self::start_from(folder, self.net, cluster, hosts, flags, |_| vec![])
    }

    fn start_from(
        folder: tempfile::TempDir,
        net: &'n Net,
        cluster: &str,
        hosts: &[usize],
        flags: &[&str],
        own: impl Fn(usize) -> Vec<String>,
    ) -> Self {
        let agent = |&host| Agent {
            host,
            flags: own(host),
            binary: None,
            process: None,
            heard: Arc::default(),
            over: Arc::new(AtomicBool::new(false)),
        };
        let agents = hosts.iter().map(agent).collect();
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let (join, resolvers) = (None, None);
        let mut all =
            Self { net, cluster: cluster.to_owned(), flags, join, resolvers, folder, agents };
        all.all().for_each(|at| all.run(at));
        all.agents.iter().for_each(|agent| agent.listen(net.host(agent.host).door()));
        all
    }

    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.agents.len()
    }

    /// Starts the agent with what it left on disk, if it ran before.
    pub(crate) fn run(&mut self, at: usize) {
        let (host, folder) = (self.agents[at].host, self.data_dir(at));
        self.agents[at].process = Some(self.spawn(at, host, &folder, &self.log(at)));
    }

    /// Starts the agent again with other flags of its own, and from another binary if one is named.
    pub(crate) fn run_as(&mut self, at: usize, binary: Option<String>, flags: Vec<String>) {
        (self.agents[at].binary, self.agents[at].flags) = (binary, flags);
        self.run(at);
    }

    /// Starts the agent of one host on another host, with a copy of its disk. What it says is written into that folder.
    pub(crate) fn run_copy(&self, at: usize, host: usize, folder: &Path) -> Child {
        self.spawn(at, host, folder, &folder.join(COPY_LOG))
    }

    /// What a copy has written down.
    pub(crate) fn words_of_copy(folder: &Path) -> String {
        fs::read_to_string(folder.join(COPY_LOG)).unwrap_or_default()
    }

    fn spawn(&self, at: usize, host: usize, folder: &Path, log: &Path) -> Child {
        let program = self.agents[at].binary.clone().unwrap_or_else(binary);
        let mut command = match &self.resolvers {
            None => self.net.host(host).command(&program),
            // A file system of its own, so far.
            Some(file) => {
                let mut command = self.net.host(host).command("unshare");
                let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
                command.args(["--mount", "--", "sh", "-c", script]).arg(file).arg(&program);
                command
            }
        };
        command.args(["agent", "--name", &self.name(at), "--cluster", &self.cluster]);
        command.arg("--key-file").arg(self.key_file()).arg("--data-dir").arg(folder);
        command.args(["--bind", &format!("{}:7738", Net::address(host))]);
        let seeds = self.agents.iter().take(3);
        let seeds = || seeds.map(|agent| format!("{}:7738", Net::address(agent.host))).collect();
        command.arg("--join").args(self.join.clone().unwrap_or_else(seeds));
        command.args(&self.flags).args(&self.agents[at].flags);
        let log = fs::File::options().create(true).append(true).open(log);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("a log"));
        command.spawn().expect("the binary under test runs")
    }

    /// Of the whole cluster.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the agent keeps what it must not forget.
    pub(crate) fn data_dir(&self, at: usize) -> PathBuf {
        self.folder.path().join(self.name(at))
    }

    /// The exit code of an agent that has ended by itself.
    pub(crate) fn ended(&mut self, at: usize) -> Option<Option<i32>> {
        let process = self.agents[at].process.as_mut()?;
        process.try_wait().expect("it can be asked").map(|status| status.code())
    }

    /// What it has written down.
    pub(crate) fn words(&self, at: usize) -> String {
        fs::read_to_string(self.log(at)).unwrap_or_default()
    }

    pub(crate) fn name(&self, at: usize) -> String {
        format!("host-{}", self.agents[at].host)
    }

    /// The one all of them read when they start.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    fn log(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", self.name(at)))
    }

    pub(crate) fn pid(&self, at: usize) -> Pid {
        let process = self.agents[at].process.as_ref().expect("it runs");
        Pid::from_raw(i32::try_from(process.id()).expect("a number")).expect("not zero")
    }

    pub(crate) fn signal(&self, at: usize, signal: Signal) {
        kill_process(self.pid(at), signal).expect("it runs");
    }

    /// As the out-of-memory killer would.
    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(mut process) = self.agents[at].process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub(crate) fn host(&self, at: usize) -> usize {
        self.agents[at].host
    }

    /// `bellwether` on that host, to ask its agent.
    pub(crate) fn command(&self, at: usize, args: &[&str]) -> Command {
        let mut command = self.net.host(self.agents[at].host).command(&binary());
        command.args(args);
        command
    }

    /// What the agent answers there, if it does.
    pub(crate) fn ask(&self, at: usize, path: &str) -> Option<Value> {
        self.net.host(self.agents[at].host).enter(|| Question::put(path)?.answer())
    }

    /// Asks, and does not wait for the answer.
    pub(crate) fn put(&self, at: usize, path: &str) -> Option<Question> {
        self.net.host(self.agents[at].host).enter(|| Question::put(path))
    }

    pub(crate) fn leader(&self, at: usize) -> Option<Answer> {
        self.ask(at, "/v1/leader").map(|answer| Answer::of(&answer))
    }

    /// The leader, if all of these name it, it says so itself, and no other of them does.
    pub(crate) fn agreed(&self, among: impl IntoIterator<Item = usize>) -> Option<usize> {
        let among: Vec<usize> = among.into_iter().collect();
        let mut leader = None;
        let mut claims = Vec::new();
        for &at in &among {
            let answer = self.leader(at)?;
            let named = answer.leader?;
            if *leader.get_or_insert_with(|| named.clone()) != named {
                return None;
            }
            claims.extend(answer.is_leader.then_some(at));
        }
        let leader =
            leader.and_then(|named| among.iter().copied().find(|&at| self.name(at) == named));
        leader.filter(|&leader| claims == [leader])
    }

    /// Whether each of these takes exactly these for alive, in their present lives.
    pub(crate) fn are_complete(&self, among: impl IntoIterator<Item = usize>) -> bool {
        let statuses = among.into_iter().map(|at| self.ask(at, "/v1/status"));
        let Some(statuses) = statuses.collect::<Option<Vec<Value>>>() else { return false };
        let life = |of: &Value| (of["id"].to_string(), of["boot"].as_u64());
        let expected: BTreeSet<_> = statuses.iter().map(|status| life(&status["node"])).collect();
        statuses.iter().all(|status| {
            let members = status["members"].as_array().expect("the field is always there");
            let alive = members.iter().filter(|member| member["state"] == "alive");
            alive.map(life).collect::<BTreeSet<_>>() == expected
        })
    }

    /// The identity of this agent, which it keeps when it is started again.
    pub(crate) fn id(&self, at: usize) -> Option<String> {
        self.ask(at, "/v1/status")?["node"]["id"].as_str().map(str::to_owned)
    }

    /// How many this agent takes for alive, itself included.
    pub(crate) fn alive(&self, at: usize) -> usize {
        let status = self.ask(at, "/v1/status").unwrap_or_default();
        let members = status["members"].as_array().map(Vec::as_slice).unwrap_or_default();
        members.iter().filter(|member| member["state"] == "alive").count()
    }

    /// Everybody this agent has ever heard of, by name.
    pub(crate) fn known(&self, at: usize) -> Option<BTreeSet<String>> {
        let status = self.ask(at, "/v1/status")?;
        let names = status["members"].as_array()?.iter().map(|member| &member["name"]);
        Some(names.filter_map(|name| name.as_str().map(str::to_owned)).collect())
    }

    /// What this agent has said so far.
    pub(crate) fn heard(&self, at: usize) -> Vec<Heard> {
        self.agents[at].heard.lock().expect("not poisoned").clone()
    }

    /// What `look` finds in what this agent has said so far.
    pub(crate) fn look<T>(&self, at: usize, look: impl FnOnce(&[Heard]) -> T) -> T {
        look(&self.agents[at].heard.lock().expect("not poisoned"))
    }

    /// When this agent first said that of a member.
    pub(crate) fn said(&self, at: usize, kind: &str, of: &str, since: Instant) -> Option<Instant> {
        self.look(at, |heard| {
            let recent = heard.iter().rev().take_while(|heard| heard.at > since);
            recent.filter(|heard| heard.kind == kind && heard.node == of).last().map(|one| one.at)
        })
    }

    /// How often all of them together have said that so far.
    pub(crate) fn count(&self, kind: &str) -> usize {
        let count = |heard: &[Heard]| heard.iter().filter(|heard| heard.kind == kind).count();
        self.all().map(|at| self.look(at, count)).sum()
    }

    /// How often a leader was named to this agent under an epoch below one it knew.
    pub(crate) fn steps_back(&self, at: usize) -> usize {
        let heard = self.heard(at);
        let elected = heard.iter().filter(|heard| heard.kind == "leader-elected");
        let epochs: Vec<Epoch> = elected.filter_map(|heard| heard.epoch).collect();
        epochs.windows(2).filter(|pair| pair[1] < pair[0]).count()
    }

    /// When one of these first said that of a member.
    pub(crate) fn first(
        &self,
        among: impl IntoIterator<Item = usize>,
        kind: &str,
        of: &str,
        since: Instant,
    ) -> Option<Instant> {
        let said = |heard: &Heard| heard.kind == kind && heard.node == of && heard.at > since;
        let first = |at| self.heard(at).iter().find(|heard| said(heard)).map(|heard| heard.at);
        among.into_iter().filter_map(first).min()
    }

    /// When each of these last changed its mind, as far as it did after `since`.
    pub(crate) fn last_change(
        &self,
        among: impl IntoIterator<Item = usize>,
        since: Instant,
    ) -> Option<Instant> {
        let last = |at| {
            let heard = self.heard(at);
            let change = heard.iter().rfind(|heard| heard.kind == "leader-elected");
            change.map(|heard| heard.at).filter(|&at| at > since)
        };
        among.into_iter().filter_map(last).max()
    }
}

impl Drop for Agents<'_> {
    fn drop(&mut self) {
        for at in self.all() {
            self.agents[at].over.store(true, Ordering::Relaxed);
            let process = self.agents[at].process.as_mut();
            let ended = process.is_some_and(|process| !matches!(process.try_wait(), Ok(None)));
            if ended && thread::panicking() {
                let words = fs::read_to_string(self.log(at)).unwrap_or_default();
                eprintln!("the agent of {} had ended: {words}", self.name(at));
            }
            self.kill(at);
        }
    }
}

impl Agent {
    /// Writes down all it says, in this life and the next ones.
    fn listen(&self, door: Door) {
        let (heard, over) = (Arc::clone(&self.heard), Arc::clone(&self.over));
        thread::spawn(move || {
            door.enter();
            while !over.load(Ordering::Relaxed) {
                // From the first event of every life on.
                if let Some(stream) =
                    Question::put("/v1/events?index=0\r\nAccept: text/event-stream")
                {
                    for line in BufReader::new(stream.0).lines().map_while(Result::ok) {
                        // An event is written at once: no chunk ends within a line.
                        let event = line.strip_prefix("data: ");
                        let event = event.and_then(|data| serde_json::from_str(data).ok());
                        let event = event.map(|event: Value| Heard::of(&event));
                        heard.lock().expect("not poisoned").extend(event);
                    }
                }
                thread::sleep(Duration::from_millis(50));
            }
        });
    }
}

impl Heard {
    fn of(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            at: Instant::now(),
            kind: text(&event["event"]),
            node: text(&event["node"]["name"]),
            id: text(&event["node"]["id"]),
            election: text(&event["election"]),
            unix_ms: event["unix_ms"].as_u64().unwrap_or_default(),
            epoch: epoch(&event["epoch"]),
        }
    }
}

impl Answer {
    pub(crate) fn of(answer: &Value) -> Self {
        Self {
            leader: answer["name"].as_str().map(str::to_owned),
            epoch: epoch(&answer["epoch"]),
            is_leader: answer["is_leader"].as_bool().expect("the field is always there"),
        }
    }
}

/// A question that was put to an agent on the same host.
pub(crate) struct Question(TcpStream);

impl Question {
    pub(crate) fn put(request: &str) -> Option<Self> {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 7739));
        let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(1)).ok()?;
        let (path, headers) = request.split_once("\r\n").unwrap_or((request, "Accept: */*"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).ok()?;
        Some(Self(stream))
    }

    /// The answer, if it comes soon.
    pub(crate) fn answer(mut self) -> Option<Value> {
        self.0.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        let mut text = String::new();
        self.0.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| serde_json::from_str(body).ok())?
    }
}

/// Waits until there is something, and says what was missed if there never is.
pub(crate) fn until<T>(within: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < within, "after {within:?} still not: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn epoch(value: &Value) -> Option<Epoch> {
    value.as_str().map(|text| text.parse().expect("an epoch"))
}

const COPY_LOG: &str = "copy.log";

/// The build under test; `HOSTS_BINARY` names another one.
pub(crate) fn binary() -> String {
    let other = std::env::var("HOSTS_BINARY");
    other.unwrap_or_else(|_| env!("CARGO_BIN_EXE_bellwether").to_owned())
}
