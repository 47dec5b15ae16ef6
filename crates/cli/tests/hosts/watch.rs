//! Witnesses: every agent is asked all the time whether it leads, and every packet between them is heard.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bellwether_hosts::{Datagram, Net};
use bellwether_proto::{Epoch, Peer, wire::Reader};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::{
    agents::Question,
    attacker::{sender, spoken},
};

/// An agent said that it leads.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) by: Process,
    pub(crate) election: String,
    pub(crate) epoch: Option<Epoch>,
    /// It was so at some instant after this.
    pub(crate) asked: Instant,
    /// Of a lease: from when, and until before when, whoever asked would have acted, in microseconds of the clock that
    /// agents count leases by.
    lease: Option<(u64, u64)>,
}

/// A host, and which of the processes that were started there.
pub(crate) type Process = (usize, usize);

/// Asks the agents of some hosts, each of them fifty times a second.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    claims: Arc<Mutex<Vec<Claim>>>,
    /// How many processes were begun on each host.
    begun: Vec<Arc<AtomicUsize>>,
    askers: Vec<JoinHandle<u64>>,
}

impl Watch {
    pub(crate) fn start(net: &Net, hosts: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let claims: Arc<Mutex<Vec<Claim>>> = Arc::default();
        let begun: Vec<Arc<AtomicUsize>> = (0..hosts).map(|_| Arc::default()).collect();
        let asker = |host: usize| {
            let (door, process) = (net.host(host).door(), Arc::clone(&begun[host]));
            let (over, claims) = (Arc::clone(&over), Arc::clone(&claims));
            thread::spawn(move || {
                door.enter();
                let mut answers = 0;
                while !over.load(Ordering::Relaxed) {
                    let asked = Instant::now();
                    let by = (host, process.load(Ordering::SeqCst));
                    let said = ask(by, asked);
                    answers += u64::from(said.is_some());
                    claims.lock().expect("not poisoned").extend(said.unwrap_or_default());
                    thread::sleep(EVERY.saturating_sub(asked.elapsed()));
                }
                answers
            })
        };
        let askers = (0..hosts).map(asker).collect();
        Self { over, claims, begun, askers }
    }

    /// To be said before a process is started on that host, and after the last one there has ended.
    pub(crate) fn begin(&self, host: usize) -> Process {
        (host, self.begun[host].fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// All that was claimed so far.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.claims.lock().expect("not poisoned").clone()
    }

    /// How many answers there were.
    pub(crate) fn end(mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.askers.drain(..).map(|asker| asker.join().expect("it asks")).sum()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

const EVERY: Duration = Duration::from_millis(20);

/// What the agent of this host claims, if it answers.
fn ask(by: Process, asked: Instant) -> Option<Vec<Claim>> {
    let answer = Question::put("/v1/elections").and_then(Question::answer)?;
    let now = boot_time();
    let ours = answer.as_array()?.iter().filter(|election| election["is_leader"] == true);
    let claim = |election: &Value| Claim {
        by,
        election: election["election"].as_str().expect("always there").to_owned(),
        epoch: election["epoch"].as_str().map(|epoch| epoch.parse().expect("an epoch")),
        asked,
        lease: election["valid_until_us"].as_u64().map(|until| (now, until)),
    };
    Some(ours.map(claim).collect())
}

/// Microseconds of the clock that agents count leases by.
fn boot_time() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let count = |of: i64| u64::try_from(of).expect("since the start");
    count(time.tv_sec) * 1_000_000 + count(time.tv_nsec) / 1_000
}

/// Epochs under which more than one process said that it leads; of elections by majority, terms.
pub(crate) fn shared_epochs(claims: &[Claim]) -> Vec<String> {
    let mut by: BTreeMap<(&str, String), BTreeSet<Process>> = BTreeMap::new();
    for claim in claims {
        let Some(epoch) = claim.epoch else { continue };
        let mut note = |token| by.entry((&claim.election, token)).or_default().insert(claim.by);
        note(format!("epoch {epoch}"));
        if claim.election == "learned" {
            note(format!("term {}", epoch.counter()));
        }
    }
    let shared = by.into_iter().filter(|(_, by)| by.len() > 1);
    shared.map(|((election, token), by)| format!("{election} {token}: {by:?}")).collect()
}

/// Leases of two processes that overlap, each taken at its word.
pub(crate) fn shared_leases(claims: &[Claim]) -> Vec<String> {
    let leases = claims.iter().filter_map(|claim| Some((claim.lease?, claim)));
    let mut leases: Vec<_> = leases.filter(|((from, until), _)| from < until).collect();
    leases.sort_by_key(|&((from, _), _)| from);
    let (mut shared, mut last) = (BTreeSet::new(), None::<(u64, &Claim)>);
    for ((from, until), claim) in leases {
        if let Some((end, other)) = last.filter(|(end, other)| *end > from && other.by != claim.by)
        {
            let [first, second] = [other, claim].map(|one| (one.by, one.epoch));
            shared.insert(format!("{first:?} until {end}, {second:?} from {from}"));
        }
        if last.is_none_or(|(end, _)| until > end) {
            last = Some((until, claim));
        }
    }
    shared.into_iter().collect()
}

/// What the leader of an election answers, if all agents of these hosts name it, it says so itself, and no other of them
/// does.
pub(crate) fn one_leader(net: &Net, hosts: &[usize], election: &str) -> Option<Value> {
    let path = format!("/v1/elections/{election}");
    let ask = |&host: &usize| net.host(host).enter(|| Question::put(&path)?.answer());
    let answers: Vec<Value> = hosts.iter().map(ask).collect::<Option<_>>()?;
    let name = answers[0]["name"].as_str()?.to_owned();
    let agreed = answers.iter().all(|answer| answer["name"] == name);
    let mut claims = answers.into_iter().filter(|answer| answer["is_leader"] == true);
    let leader = claims.next().filter(|leader| agreed && leader["name"] == name);
    leader.filter(|_| claims.next().is_none())
}

/// Hears every datagram between agents.
pub(crate) struct Capture {
    over: Arc<AtomicBool>,
    heard: Option<JoinHandle<Vec<(Instant, Datagram)>>>,
}

impl Capture {
    pub(crate) fn start(net: &Net) -> Self {
        let tap = net.tap().expect("whoever made the switch may listen at it");
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let heard = thread::spawn(move || {
            spoken(tap.listen_while(|| !until.load(Ordering::Relaxed)).expect("packets"))
        });
        Self { over, heard: Some(heard) }
    }

    pub(crate) fn end(mut self) -> Vec<(Instant, Datagram)> {
        self.over.store(true, Ordering::Relaxed);
        self.heard.take().expect("it listens").join().expect("it listens")
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// What a capture shows of keys and numbers.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Each has a key of its own.
    pub(crate) lives: BTreeSet<Peer>,
    pub(crate) packets: usize,
    /// What was sealed in more than one way: by this life, under this number.
    pub(crate) repeated: Vec<(Peer, u64)>,
}

impl Numbers {
    /// One packet that goes to several, or is sent on, is one packet: its bytes are the same.
    pub(crate) fn of(heard: &[(Instant, Datagram)]) -> Self {
        let mut numbers = Self::default();
        let mut known: BTreeMap<(u8, Peer, u64), BTreeSet<&[u8]>> = BTreeMap::new();
        for (_, datagram) in heard {
            let (from, length) = sender(&datagram.body);
            let number = Reader::new(&datagram.body[length..]).varint("number");
            // The third byte tells keys of a ring apart.
            let key = (datagram.body[2], from, number.expect("a genuine packet"));
            known.entry(key).or_default().insert(&datagram.body);
        }
        for ((_, from, number), bodies) in known {
            numbers.lives.insert(from);
            numbers.packets += bodies.len();
            if bodies.len() > 1 {
                numbers.repeated.push((from, number));
            }
        }
        numbers
    }
}
