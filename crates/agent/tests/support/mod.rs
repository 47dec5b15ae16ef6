//! A stand-in for the agent behind a handle, and a client that speaks raw bytes.

#![allow(dead_code, reason = "each test uses some of it")]

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bellwether_agent::{
    Config, Error, Handle, Mode, NodeId, Request,
    internal::{
        Inbox, Requested,
        api::{Act, Actor, Api, Stage, Token, serve},
        hooks::HookView,
    },
    key::Rotation,
    status::{
        Agreement, CentralStatus, Counters, Differing, ElectionStatus, Event, EventKind, Identity,
        JoinTable, KeyStatus, KeyUser, LeaderStatus, MajorityStatus, MapNode, MapStatus,
        MemberState, MemberStatus, PeerTable, Position, Reach, Role, SameName, ScoreStatus,
        SourceStatus, Status, Verdict,
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

pub(crate) fn member(name: &str, state: MemberState, reach: Reach) -> MemberStatus {
    MemberStatus {
        id: NodeId::new(name.len() as u64),
        name: name.to_owned(),
        state,
        since_ms: 1_500,
        boot: 3,
        incarnation: 1,
        addresses: vec!["192.0.2.1:7738".parse().expect("an address")],
        heard_ms: (reach == Reach::Direct).then_some(120),
        reach,
        suspicions: 2,
        accusers: vec!["attic".to_owned()],
        convicted_in_ms: Some(400),
        position: Some(Position { x: 2.5, y: -10.0 }),
        tags: BTreeMap::from([("floor".to_owned(), "2".to_owned())]),
        verdicts: vec![Verdict { ago_ms: 70, what: EventKind::MemberSuspect, by: None }],
    }
}

pub(crate) fn election(name: &str, leader: Option<&str>, is_leader: bool) -> ElectionStatus {
    ElectionStatus {
        election: name.to_owned(),
        mode: Mode::Eventual,
        leader: leader.map(|name| LeaderStatus { id: NodeId::new(7), name: name.to_owned() }),
        epoch: leader.map(|_| "7.3.1.0".parse().expect("an epoch")),
        epoch_durable: true,
        settled: leader.is_some(),
        is_leader,
        since_ms: 12_000,
        valid_for_ms: None,
        valid_until_us: None,
        step_down_ms: None,
        silent_ms: Some(6_000),
        majority: Some(MajorityStatus {
            members: vec!["attic".to_owned(), "bedroom".to_owned(), "kitchen".to_owned()],
            needed: 2,
            heard: vec!["kitchen".to_owned()],
        }),
        role: Role::Candidate,
        priority: 100,
        why: "the best of five answers".to_owned(),
        agreement: Agreement {
            agree: 4,
            heard: 5,
            dissent: vec![("bedroom".to_owned(), "attic".to_owned())],
        },
        differing: vec![Differing {
            id: NodeId::new(9),
            name: "bedroom".to_owned(),
            settings: vec!["criterion", "margin"],
        }],
        changes: 2,
        leaderless_ms: 750,
        sent: 40,
        sent_electing: 12,
        scores: vec![ScoreStatus {
            rank: 1,
            id: NodeId::new(7),
            name: "kitchen".to_owned(),
            score: 0.975,
            samples: Some(40),
            away: false,
            why: "amiss in about 1.0 of 40 samples that still count".to_owned(),
        }],
        central: None,
    }
}

/// Three in a line, seen from its end.
fn map(election: String) -> Result<MapStatus, Error> {
    if election != "web" {
        return Err(Error::Impossible(format!(
            "{election} is not a central election, and has no map"
        )));
    }
    let node = |rank: u32, name: &str, score, degree, hops| MapNode {
        id: NodeId::new(u64::from(10 - rank)),
        name: name.to_owned(),
        rank,
        score,
        degree,
        hops,
    };
    Ok(MapStatus {
        election,
        leader: Some(NodeId::new(9)),
        own: NodeId::new(7),
        central: CentralStatus {
            criterion: "closeness",
            members: 3,
            unknown: 0,
            score: 2,
            map: "00c0ffee00c0ffee".to_owned(),
            neighbours: vec!["attic".to_owned()],
            problem: None,
        },
        nodes: vec![
            node(1, "attic", 2, 2, 1),
            node(2, "cellar", 3, 1, 2),
            node(3, "kitchen", 3, 1, 0),
        ],
        links: vec![(0, 1), (0, 2)],
    })
}

pub(crate) fn key_user(name: &str, key: Option<&str>) -> KeyUser {
    let id = NodeId::new(name.len() as u64);
    KeyUser { id, name: name.to_owned(), key: key.map(str::to_owned), heard_ms: key.map(|_| 120) }
}

pub(crate) fn status() -> Status {
    let node = Identity { id: NodeId::new(7), name: "kitchen".to_owned(), boot: 3 };
    let script = "<script>alert(1)</script>";
    Status {
        node,
        cluster: "garden".to_owned(),
        version: "0.1.0",
        uptime_ms: 60_000,
        index: 0,
        members: vec![
            member("kitchen", MemberState::Alive, Reach::Own),
            member("attic", MemberState::Alive, Reach::Direct),
            member("cellar", MemberState::Suspect, Reach::Through("attic".to_owned())),
            member(script, MemberState::Failed, Reach::Direct),
        ],
        elections: vec![
            election("web", Some("kitchen"), true),
            election("backup", Some("attic"), false),
            election("lost", None, false),
        ],
        same_names: vec![SameName {
            name: "attic".to_owned(),
            ids: vec![NodeId::new(5), NodeId::new(11)],
        }],
        sources: vec![
            SourceStatus {
                source: "cellar.example:7738".to_owned(),
                addresses: vec![],
                problem: Some("Temporary failure in name resolution".to_owned()),
                next_ms: Some(4_000),
            },
            SourceStatus {
                source: "/var/lib/bellwether/peers.json".to_owned(),
                addresses: vec![SocketAddr::from(([192, 0, 2, 7], 7738))],
                problem: None,
                next_ms: None,
            },
        ],
        to_join: JoinTable { tried: 800, most: 1_024 },
        peers: PeerTable { remembered: 13_000, most: 16_384 },
        disk: Some("node.json: No space left on device".to_owned()),
        counters: Counters { dropped: BTreeMap::from([("replay", 3)]), ..Counters::default() },
        keys: KeyStatus {
            stage: Rotation::Settled,
            sends: "0badcafe".to_owned(),
            accepts: vec!["0badcafe".to_owned()],
            members: vec![key_user("attic", Some("0badcafe")), key_user("cellar", None)],
        },
    }
}

/// What the stand-in answers and has been asked.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) status: Arc<Mutex<Status>>,
    pub(crate) asked: Arc<Mutex<Vec<Request>>>,
    pub(crate) inbox: Arc<Mutex<Option<Arc<History>>>>,
    pub(crate) handle: Handle,
}

/// Where events are recorded from outside the stand-in's task.
pub(crate) struct History(tokio::sync::mpsc::UnboundedSender<EventKind>);

impl Fake {
    /// Starts answering. Dropping every handle stops it.
    pub(crate) fn start() -> Self {
        let elections = status().elections.into_iter().map(|one| (one.election, one.mode));
        let (handle, inbox) = Handle::connect(elections);
        let (sender, events) = tokio::sync::mpsc::unbounded_channel();
        let fake = Self {
            status: Arc::new(Mutex::new(status())),
            asked: Arc::default(),
            inbox: Arc::new(Mutex::new(Some(Arc::new(History(sender))))),
            handle,
        };
        inbox.publish(status().elections);
        let (status, asked) = (Arc::clone(&fake.status), Arc::clone(&fake.asked));
        tokio::spawn(answer(inbox, events, status, asked));
        fake
    }

    /// Lets something happen in the election `web`.
    pub(crate) fn happens(&self, kind: EventKind) {
        let inbox = self.inbox.lock().expect("not poisoned");
        inbox.as_ref().expect("not stopped").0.send(kind).expect("answering");
    }

    /// Stops answering, as an agent that has left does.
    pub(crate) fn stop(&self) {
        self.inbox.lock().expect("not poisoned").take();
    }
}

async fn answer(
    mut inbox: Inbox,
    mut events: tokio::sync::mpsc::UnboundedReceiver<EventKind>,
    status: Arc<Mutex<Status>>,
    asked: Arc<Mutex<Vec<Request>>>,
) {
    // As a node does every second.
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                inbox.publish(status.lock().expect("not poisoned").elections.clone());
            }
            requested = inbox.requests.recv() => match requested {
                None => return,
                Some(
                    Requested::Dirty(_)
                    | Requested::Cut(_)
                    | Requested::Keys(_)
                    | Requested::Priority(..)
                    | Requested::Advertise(_)
                    | Requested::Sources(_)
                    | Requested::Found(_)
                    | Requested::Peers(_)
                    | Requested::Neighbours { .. },
                ) => {}
                Some(Requested::Map(election, reply)) => {
                    let _ = reply.send(map(election));
                }
                Some(Requested::Status(reply)) => {
                    let mut status = status.lock().expect("not poisoned").clone();
                    status.index = inbox.next_index() - 1;
                    let _ = reply.send(status.into());
                }
                Some(Requested::Do(request, reply)) => {
                    let answer = match &request {
                        Request::Resign(name) if name == "backup" => {
                            Err(Error::NotLeader("backup".to_owned(), "attic".to_owned()))
                        }
                        Request::Resign(name) if name != "web" => {
                            Err(Error::NoSuchElection(name.clone(), "web, backup".to_owned()))
                        }
                        Request::ForceLeave(name) if name != "cellar" => {
                            Err(Error::NoSuchMember(name.clone()))
                        }
                        _ => Ok(()),
                    };
                    asked.lock().expect("not poisoned").push(request);
                    let _ = reply.send(answer);
                }
            },
            kind = events.recv() => match kind {
                None => return,
                Some(kind) => inbox.record(Event {
                    index: inbox.next_index(),
                    unix_ms: 1_700_000_000_000,
                    event: kind,
                    election: Some("web".to_owned()),
                    node: Some(LeaderStatus { id: NodeId::new(7), name: "kitchen".to_owned() }),
                    epoch: Some("7.3.1.0".parse().expect("an epoch")),
                    valid_for_ms: None,
                    detail: None,
                }),
            },
        }
    }
}

pub(crate) const TOKEN: &str = "a-token-of-this-test-and-no-other";

/// A server on a free port of loopback.
pub(crate) async fn server(fake: &Fake, hooks: HookView) -> SocketAddr {
    serve_as(fake, hooks, None).await
}

/// The server of the first of two nodes on a stage, the second of which is dead; and what was done to them.
pub(crate) async fn staged(fake: &Fake) -> (SocketAddr, Arc<Mutex<Vec<(String, Act)>>>) {
    let config = Config::new("kitchen", "garden", "/none");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = listener.local_addr().expect("bound");
    let actor = |name: &str, handle| Actor { name: name.to_owned(), api: at, cut: false, handle };
    let (dead, _) = Handle::connect([]);
    let actors = vec![actor("kitchen", fake.handle.clone()), actor("attic", dead)];
    let (stage, list, mut orders) = Stage::new(actors);
    tokio::spawn(serve(listener, Api::staged(&config, at, Some(token()), stage, 0)));
    let done = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&done);
    tokio::spawn(async move {
        while let Some(order) = orders.recv().await {
            kept.lock().expect("not poisoned").push((order.node.clone(), order.act));
            let refused = order.act == Act::Revive && order.node == "kitchen";
            let answer = if refused { Err("kitchen is alive".to_owned()) } else { Ok(()) };
            let _ = order.done.send(answer);
        }
        drop(list);
    });
    (at, done)
}

/// The same, as if it were bound to this address.
pub(crate) async fn serve_as(fake: &Fake, hooks: HookView, bound: Option<&str>) -> SocketAddr {
    let mut config = Config::new("kitchen", "garden", "/none");
    config.api_names = vec!["kitchen.example".to_owned()];
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = listener.local_addr().expect("bound");
    let bound = bound.map_or(at, |bound| bound.parse().expect("an address"));
    let api = Api::new(&config, bound, Some(token()), fake.handle.clone(), hooks);
    tokio::spawn(serve(listener, api));
    at
}

pub(crate) fn token() -> Token {
    use std::os::unix::fs::PermissionsExt as _;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), TOKEN).expect("written");
    let owner_only = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file.path(), owner_only).expect("changed");
    Token::read(file.path()).expect("a token")
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends bytes as they are and reads until the server closes or the answer is complete.
pub(crate) async fn raw(to: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(to).await.expect("connected");
    // A server that has refused may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    read(&mut stream).await
}

pub(crate) async fn read(stream: &mut TcpStream) -> Reply {
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    let deadline = Duration::from_secs(15);
    while !complete(&answer) {
        match timeout(deadline, stream.read(&mut part)).await.expect("an answer in time") {
            Ok(read @ 1..) => answer.extend(&part[..read]),
            Ok(_) | Err(_) => break,
        }
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

fn complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| body.len() >= length.parse().expect("a length"))
}

pub(crate) async fn get(to: SocketAddr, path: &str) -> Reply {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    raw(to, request.as_bytes()).await
}

pub(crate) async fn post(to: SocketAddr, path: &str, body: &str) -> Reply {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {to}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    raw(to, request.as_bytes()).await
}
