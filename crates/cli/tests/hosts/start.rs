//! Starts that nobody helps: before names can be looked up, and after a power cut with none of those to join.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bellwether_hosts::Net;

use crate::{
    agents::{Agents, until},
    formed, hosts,
    measured::Spread,
    seconds,
};

/// The router, where the DNS server is.
const ROUTER: usize = 3;
/// Without a route to anywhere else, an agent does not know at the start which of its addresses others reach.
const ANYWHERE: [&str; 2] = ["--set", "bind=0.0.0.0:7738"];
const CLUSTER: &str = "cluster.example";
const SERVICE: &str = "_bellwether._udp.cluster.example";

/// A DNS server that knows two names: the cluster's, with the addresses of the first three hosts, and its service, with
/// a name for each of them.
struct Dns {
    over: Arc<AtomicBool>,
    serving: Option<JoinHandle<u64>>,
}

impl Dns {
    /// On the router.
    fn start(net: &Net) -> Self {
        let (door, over) = (net.host(ROUTER).door(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&over);
        let serving = thread::spawn(move || {
            door.enter();
            let socket = UdpSocket::bind((Net::address(ROUTER), 53)).expect("the port");
            socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
            let (mut packet, mut answered) = ([0; 1_500], 0);
            while !stopped.load(Ordering::Relaxed) {
                match socket.recv_from(&mut packet) {
                    Ok((length, from)) => {
                        let answer = answer(&packet[..length]).expect("a question");
                        let _ = socket.send_to(&answer, from);
                        answered += 1;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => panic!("{error}"),
                }
            }
            answered
        });
        Self { over, serving: Some(serving) }
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let answered = self.serving.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(answered.is_some_and(|answered| answered.is_ok_and(|count| count > 0)));
        }
    }
}

/// To one question, as RFC 1035 has it.
fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let (mut name, mut at) = (String::new(), 12);
    while *question.get(at)? != 0 {
        let label = question.get(at + 1..at + 1 + usize::from(question[at]))?;
        name.push_str(&format!("{}.", String::from_utf8_lossy(label)));
        at += 1 + label.len();
    }
    let kind = u16::from_be_bytes([*question.get(at + 1)?, *question.get(at + 2)?]);
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let record = |kind: u16, data: &[u8]| {
        let head = [0xc00c, kind, 1, 0, 5, data.len() as u16];
        [head.map(u16::to_be_bytes).concat().as_slice(), data].concat()
    };
    let host = |of: usize| format!("n{of}.{CLUSTER}");
    let ours = 0..ROUTER;
    let service = |of: usize| {
        let host = host(of);
        let labels =
            host.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
        let target: Vec<u8> = labels.chain([0]).collect();
        record(33, &[[0_u16, 1, 7738].map(u16::to_be_bytes).concat(), target].concat())
    };
    let address = |of: usize| record(1, &Net::address(of).octets());
    let (known, records): (bool, Vec<Vec<u8>>) = match (name.as_str(), kind) {
        (CLUSTER, 1) => (true, ours.map(address).collect()),
        (SERVICE, 33) => (true, ours.map(service).collect()),
        (CLUSTER | SERVICE, _) => (true, vec![]),
        (other, kind) => {
            let of = ours.clone().find(|&of| host(of) == other);
            (of.is_some(), of.filter(|_| kind == 1).map(address).into_iter().collect())
        }
    };
    let flags = 0x8180 | if known { 0 } else { 3 };
    let id = u16::from_be_bytes([question[0], question[1]]);
    let head = [id, flags, 1, records.len() as u16, 0, 0].map(u16::to_be_bytes).concat();
    Some([&head, question.get(12..at + 5)?, &records.concat()].concat())
}

/// A file that names the router as the server of names.
fn resolvers(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("resolv.conf");
    let text = format!("nameserver {}\noptions timeout:1 attempts:2\n", Net::address(ROUTER));
    std::fs::write(&path, text).expect("a file");
    path
}

/// What an agent says of its sources.
fn problems(agents: &Agents<'_>, at: usize, path: &str, list: &str) -> Vec<(String, bool)> {
    let answer = agents.ask(at, path).unwrap_or_default();
    let sources = answer[list].as_array().cloned().unwrap_or_default();
    let failing = sources.iter().filter(|source| source["problem"].is_string());
    let name = |of: &serde_json::Value| of["source"].as_str().unwrap_or_default().to_owned();
    failing.map(|source| (name(source), source["next_ms"].is_u64())).collect()
}

/// Three agents that are up before the network's DNS is, in the way that `dark` says, for so long. How long after that
/// they have formed the cluster.
fn boot_before_dns(net: &Net, dark: Dark, join: &str, wait: Duration) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    if dark == Dark::Unplugged {
        net.unplug(ROUTER);
    }
    let agents =
        Agents::start_by(net, &[0, 1, 2], &[join], Some(&resolvers(folder.path())), &ANYWHERE);
    let source = if join.contains(':') { join.to_owned() } else { format!("{join}:7738") };
    let expected = vec![(source.clone(), true)];
    for at in agents.all() {
        until(seconds(20), "it says in status and health which name, why and when again", || {
            let said = [("/v1/status", "sources"), ("/healthz", "failing_sources")];
            let said = said.map(|(path, list)| problems(&agents, at, path, list));
            said.iter().all(|said| *said == expected).then_some(())
        });
        let words = format!("cannot join by {source}: ");
        until(seconds(5), "it says so in its log", || {
            let log = agents.words(at);
            (log.contains(&words) && log.contains("; next try in ")).then_some(())
        });
    }
    thread::sleep(wait);
    assert!(agents.all().all(|at| agents.alive(at) == 1), "nobody knows where the others are");
    net.plug(ROUTER);
    let _dns = Dns::start(net);
    let begun = Instant::now();
    formed(&agents, seconds(90));
    let took = begun.elapsed();
    for at in agents.all() {
        until(seconds(5), "all is well again", || {
            problems(&agents, at, "/healthz", "failing_sources").is_empty().then_some(())
        });
        assert!(agents.words(at).contains(&format!("{source}: stands for ")));
        until(seconds(20), "it knows where everybody is reached, and so do they", || {
            let status = agents.ask(at, "/v1/status")?;
            let members = status["members"].as_array()?;
            let reached = |of: usize| {
                let place = serde_json::json!([format!("{}:7738", Net::address(of))]);
                members
                    .iter()
                    .any(|one| one["name"] == agents.name(of) && one["addresses"] == place)
            };
            agents.all().all(reached).then_some(())
        });
    }
    took
}

/// How there is no DNS yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Dark {
    /// The router is up, and its server is not.
    Refused,
    /// The router is not up.
    Unplugged,
}

#[test]
fn agents_that_start_before_their_dns_form_their_cluster_once_it_is_there() {
    let Some(net) = hosts(4) else { return };
    boot_before_dns(&net, Dark::Refused, CLUSTER, seconds(1));
}

#[test]
#[ignore = "20 boots of three agents before their DNS"]
fn twenty_boots_before_dns_form_twenty_clusters() {
    let Some(net) = hosts(4) else { return };
    let service = format!("srv:{SERVICE}");
    let mut times = Spread::new();
    for trial in 0..20_u64 {
        let dark = if trial % 2 == 0 { Dark::Unplugged } else { Dark::Refused };
        let join = if trial % 4 < 2 { CLUSTER } else { &service };
        let took = boot_before_dns(&net, dark, join, seconds(trial % 5 * 3)).as_secs_f64();
        println!(
            "boot {trial}, {dark:?}, {join}, {} s dark: formed after {took:.1} s",
            trial % 5 * 3
        );
        times.add(took);
    }
    println!(
        "20 boots of three agents before their DNS: all formed, {:.1} s (p50), {:.1} s (max) after it was there",
        times.quantile(0.5),
        times.quantile(1.0)
    );
}

/// Whether an agent's file names so many others.
fn remembers(agents: &Agents<'_>, at: usize, others: usize) -> bool {
    let text = std::fs::read(agents.data_dir(at).join("peers.json")).unwrap_or_default();
    let file: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let places = |peer: &serde_json::Value| peer["addresses"].as_array().map_or(0, Vec::len);
    let peers = file["peers"].as_array().map(Vec::as_slice).unwrap_or_default();
    peers.iter().filter(|peer| places(peer) > 0).count() == others
}

/// Cuts the power of four agents that only know the first of them, which stays off. How long the other three take to
/// find each other.
fn power_cut(agents: &mut Agents<'_>) -> Duration {
    for at in agents.all() {
        until(seconds(30), "it remembers the others", || remembers(agents, at, 3).then_some(()));
    }
    agents.all().for_each(|at| agents.kill(at));
    (1..4).for_each(|at| agents.run(at));
    let begun = Instant::now();
    until(seconds(60), "the three have one leader and each other", || {
        agents.agreed(1..4).filter(|_| agents.are_complete(1..4))
    });
    begun.elapsed()
}

fn seed() -> String {
    format!("{}:7738", Net::address(0))
}

#[test]
fn after_a_power_cut_those_that_are_back_find_each_other_without_the_one_they_joined() {
    let Some(net) = hosts(4) else { return };
    let mut agents = Agents::start_by(&net, &[0, 1, 2, 3], &[&seed()], None, &[]);
    formed(&agents, seconds(20));
    power_cut(&mut agents);
    // What is wrong with the file is said, and keeps nobody from starting.
    agents.kill(1);
    std::fs::write(agents.data_dir(1).join("peers.json"), "{\"format\": 1, nonsense")
        .expect("a file");
    agents.run(1);
    until(seconds(20), "it says so in its log", || {
        let words = "peers.json: key must be a string at line 1 column 15; the file is ignored";
        agents.words(1).contains(words).then_some(())
    });
    until(seconds(60), "the others knock at its door", || {
        agents.agreed(1..4).filter(|_| agents.are_complete(1..4))
    });
}

#[test]
#[ignore = "20 power cuts of four agents"]
fn twenty_power_cuts_are_survived_without_a_seed() {
    let Some(net) = hosts(4) else { return };
    let mut times = Spread::new();
    for trial in 0..20 {
        let mut agents = Agents::start_by(&net, &[0, 1, 2, 3], &[&seed()], None, &[]);
        formed(&agents, seconds(30));
        let took = power_cut(&mut agents).as_secs_f64();
        println!("power cut {trial}: the three without their seed formed after {took:.1} s");
        times.add(took);
        if trial == 0 {
            // It is the file by which they find each other, and nothing else.
            agents.all().for_each(|at| agents.kill(at));
            let forget = |at| std::fs::remove_file(agents.data_dir(at).join("peers.json"));
            (1..4).for_each(|at| forget(at).expect("a file"));
            (1..4).for_each(|at| agents.run(at));
            thread::sleep(seconds(15));
            assert!((1..4).all(|at| agents.alive(at) == 1), "somebody was found without the file");
        }
    }
    println!(
        "20 power cuts of four agents, three of them back: all formed, {:.1} s (p50), {:.1} s (max)",
        times.quantile(0.5),
        times.quantile(1.0)
    );
}

#[test]
fn a_wrong_advertised_address_is_told_by_those_that_were_joined() {
    let Some(net) = hosts(3) else { return };
    let nowhere = SocketAddr::from((Ipv4Addr::new(10, 77, 200, 1), 7738));
    let agents = Agents::start_each(&net, "garden", &[0, 1, 2], &[], |host| match host {
        2 => vec!["--advertise".to_owned(), nowhere.to_string()],
        _ => vec![],
    });
    let heard = format!("{}:7738", Net::address(2));
    for at in [0, 1] {
        let words = format!(
            "host-2 is heard from {heard}, but nobody answers at {nowhere}, where it says it is reached; \
             set advertise = [\"{heard}\"] there"
        );
        until(seconds(20), "it is said with both addresses", || {
            agents.words(at).contains(&words).then_some(())
        });
        until(seconds(5), "there is an event", || {
            let heard = agents.heard(at);
            heard
                .iter()
                .any(|one| one.kind == "address-differs" && one.node == "host-2")
                .then_some(())
        });
    }
    let others = agents.words(0) + &agents.words(1) + &agents.words(2);
    assert!(!others.contains("host-0 is heard") && !others.contains("host-1 is heard"), "{others}");
}
