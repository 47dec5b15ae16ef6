//! The real interface and the real page before a cluster of any size that does not exist: the answers are made up, all
//! else is what an agent serves.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use bellwether_agent::{
    Config, Error, Handle, Mode, NodeId,
    internal::{
        Inbox, Requested,
        api::{Api, Token, serve},
        hooks::HookView,
    },
    key::Rotation,
    status::{
        Agreement, Counters, Differing, ElectionStatus, Event, EventKind, Identity, JoinTable,
        KeyStatus, LeaderStatus, MapStatus, MemberState, MemberStatus, PeerTable, Reach, Role,
        ScoreStatus, Status, Verdict,
    },
};
use tokio::{net::TcpListener, time::Instant};

pub(crate) const TOKEN: &str = "a-token-of-this-test-and-no-other";
/// A name that would do harm if it were taken for markup.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// A server that runs until this is dropped.
pub(crate) struct Crowd {
    pub(crate) address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Crowd {
    /// `restless` ones change all the time; `strict` ones want their token.
    pub(crate) fn gather(members: usize, restless: bool, strict: bool) -> Self {
        Self::with(members, restless, strict, None)
    }

    /// One whose only election is decided by this map.
    pub(crate) fn on_map(map: MapStatus) -> Self {
        Self::with(map.nodes.len().min(8), false, false, Some(map))
    }

    fn with(members: usize, restless: bool, strict: bool, map: Option<MapStatus>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (sender, address) = std::sync::mpsc::channel();
        let ended = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let at = listener.local_addr().unwrap();
                let bound = if strict { "192.0.2.7:7739".parse().unwrap() } else { at };
                let (handle, inbox) = Handle::connect([]);
                let config = Config::new("barn-001", "farm", "/none");
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("token");
                write_secret(&file);
                let token = Some(Token::read(&file).unwrap());
                let api = Api::new(&config, bound, token, handle, HookView::none());
                tokio::spawn(serve(listener, api));
                sender.send(at).unwrap();
                answer(inbox, members, restless, map, &ended).await;
            });
        });
        Self { address: address.recv().unwrap(), over, thread: Some(thread) }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_secret(path: &std::path::Path) {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    writeln!(file.unwrap(), "{TOKEN}").unwrap();
}

async fn answer(
    mut inbox: Inbox,
    members: usize,
    restless: bool,
    map: Option<MapStatus>,
    over: &AtomicBool,
) {
    let began = Instant::now();
    for at in 0..members.min(12) {
        happen(&inbox, members, EventKind::MemberJoin, at);
    }
    happen(&inbox, members, EventKind::LeaderElected, members / 3);
    let mut round = 0;
    while !over.load(Ordering::Relaxed) {
        tokio::select! {
            requested = inbox.requests.recv() => match requested {
                None => return,
                Some(Requested::Status(reply)) => {
                    let index = inbox.next_index() - 1;
                    let mut status = status(members, round, began.elapsed(), index);
                    if let Some(map) = &map {
                        status.elections = vec![central(map, status.elections.remove(0))];
                    }
                    let _ = reply.send(status.into());
                }
                Some(Requested::Map(_, reply)) => {
                    let none = || Error::Impossible("there is no map".to_owned());
                    let _ = reply.send(map.clone().ok_or_else(none));
                }
                Some(_) => {}
            },
            () = tokio::time::sleep(Duration::from_millis(300)) => {
                if restless {
                    round += 1;
                    happen(&inbox, members, EventKind::MemberSuspect, (round * 37 + 5) % members);
                    happen(&inbox, members, EventKind::MemberAlive, (round * 37 - 32) % members);
                }
            }
        }
    }
}

/// The same election, decided by a map.
fn central(map: &MapStatus, election: ElectionStatus) -> ElectionStatus {
    let best = map.nodes.first().expect("a map has nodes");
    ElectionStatus {
        election: map.election.clone(),
        mode: Mode::Central,
        leader: Some(LeaderStatus { id: best.id, name: best.name.clone() }),
        epoch: None,
        why: format!(
            "most central of {} by closeness, with a score of {}",
            map.central.members, best.score
        ),
        central: Some(map.central.clone()),
        differing: vec![Differing {
            id: id(1),
            name: HOSTILE.to_owned(),
            settings: vec!["criterion", "beacon"],
        }],
        ..election
    }
}

fn id(at: usize) -> NodeId {
    NodeId::new((at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn name(at: usize, members: usize) -> String {
    const PLACES: [&str; 5] = ["barn", "creek", "field", "gate", "ridge"];
    if members > 20 && at == members - 1 {
        return HOSTILE.to_owned();
    }
    format!("{}-{:03}", PLACES[at % PLACES.len()], at / PLACES.len() + 1)
}

fn happen(inbox: &Inbox, members: usize, event: EventKind, at: usize) {
    let leads = event == EventKind::LeaderElected;
    inbox.record(Event {
        index: inbox.next_index(),
        unix_ms: 1_790_000_000_000 + inbox.next_index() * 1_700,
        event,
        election: leads.then(|| "gateway".to_owned()),
        node: Some(LeaderStatus { id: id(at), name: name(at, members) }),
        epoch: leads.then(|| "17.4.2.0".parse().expect("an epoch")),
        valid_for_ms: None,
        detail: (event == EventKind::MemberSuspect).then(|| "says gate-002".to_owned()),
    });
}

/// Most are well; a few are suspected, have failed, have left, or are reached only through another. In a restless crowd
/// one more is suspected, another one each round.
fn status(members: usize, round: usize, up: Duration, index: u64) -> Status {
    let up = up.as_millis() as u64;
    let unwell = round * 37 + 5;
    let member = |at: usize| {
        let state = match at {
            0 => MemberState::Alive,
            _ if round > 0 && at == unwell % members => MemberState::Suspect,
            at if members > 20 && at % 41 == 7 => MemberState::Suspect,
            at if members > 20 && at % 59 == 13 => MemberState::Failed,
            at if members > 20 && at % 173 == 31 => MemberState::Left,
            _ => MemberState::Alive,
        };
        let reach = match at {
            0 => Reach::Own,
            at if at % 9 == 4 => Reach::Through(name(at - 3, members)),
            _ => Reach::Direct,
        };
        let suspect = state == MemberState::Suspect;
        let left = 4_000 - (up + at as u64 * 531) % 4_000;
        MemberStatus {
            id: id(at),
            name: name(at, members),
            state,
            since_ms: up + 61_000 * (at as u64 % 97 + 1),
            boot: 2,
            incarnation: 1,
            addresses: vec![SocketAddr::from(([10, 20, (at / 250) as u8, (at % 250) as u8], 7738))],
            heard_ms: (reach == Reach::Direct).then_some(140 * (at as u64 % 80)),
            reach,
            suspicions: u32::from(at % 29 == 3) * 2,
            accusers: if suspect { vec![name(6, members), name(1, members)] } else { vec![] },
            convicted_in_ms: suspect.then_some(left),
            position: None,
            tags: BTreeMap::from([("site".to_owned(), format!("{}", at % 4))]),
            verdicts: vec![Verdict { ago_ms: up, what: EventKind::MemberJoin, by: None }],
        }
    };
    let election = |election: &str, leader: usize, counter: u64, dissent: Vec<(String, String)>| {
        let heard = members as u32 - members as u32 / 50;
        ElectionStatus {
            election: election.to_owned(),
            mode: Mode::Eventual,
            leader: Some(LeaderStatus { id: id(leader), name: name(leader, members) }),
            epoch: format!("{counter}.4.2.0").parse().ok(),
            settled: true,
            is_leader: leader == 0,
            since_ms: up + 725_000,
            valid_for_ms: None,
            valid_until_us: None,
            epoch_durable: true,
            step_down_ms: None,
            silent_ms: None,
            majority: None,
            role: Role::Candidate,
            priority: 100,
            why: "elected 725.0 s ago; nobody better objects".to_owned(),
            agreement: Agreement { agree: heard - dissent.len() as u32, heard, dissent },
            differing: vec![],
            changes: 3,
            leaderless_ms: 900,
            sent: 1_200,
            sent_electing: 45,
            scores: vec![],
            central: None,
        }
    };
    let learned = |mut election: ElectionStatus| {
        let voters = members.min(9);
        election.mode = Mode::Learned;
        election.scores = (0..voters)
            .map(|at| ScoreStatus {
                rank: at as u32 + 1,
                id: id(at),
                name: name(at, members),
                score: 0.985 - 0.1 * at as f64,
                samples: Some(50),
                away: at == 8,
                why: format!("amiss in about {at} of 50 samples that still count"),
            })
            .collect();
        election
    };
    let mut all: Vec<MemberStatus> = (0..members).map(member).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Status {
        node: Identity { id: id(0), name: name(0, members), boot: 2 },
        cluster: "farm".to_owned(),
        version: "0.1.0",
        uptime_ms: up + 3_600_000,
        index,
        members: all,
        elections: vec![
            election("gateway", members / 3, 17, vec![(name(3, members), name(4, members))]),
            learned(election("backup", 0, 4, vec![])),
        ],
        same_names: vec![],
        sources: vec![],
        to_join: JoinTable { tried: 3, most: 1_024 },
        peers: PeerTable { remembered: 3, most: 16_384 },
        disk: None,
        counters: Counters { sent: 40_213, received: 39_977, ..Counters::default() },
        keys: KeyStatus {
            stage: Rotation::Settled,
            sends: "0badcafe".to_owned(),
            accepts: vec!["0badcafe".to_owned()],
            members: vec![],
        },
    }
}
