//! Five agents on loopback: real sockets, real keys, real time.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real sockets"
)]

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use bellwether_agent::{
    Agent, Config, KeyRing, Request,
    config::{Announced, Election, Eventual, Mode, Profile, Seed},
    status::{EventKind, Role, Status},
};
use tokio::time::{Instant, sleep};

fn config(node: usize, join: Option<SocketAddr>) -> Config {
    let mut config = Config::new(format!("node-{node}"), "test", "unused");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    (config.bind, config.api) = (any, any);
    config.timing = Profile::Local.timing();
    config.join = join.map(Seed::from).into_iter().collect();
    config.elections = vec![Election {
        name: "backup".to_owned(),
        priority: 100 - node as u32,
        ..Election::default()
    }];
    config
}

/// Two that would elect by different rules, and one that agrees with the first, are told of each other.
#[tokio::test]
async fn other_settings_are_told_and_named() {
    let ring = KeyRing::generate().unwrap();
    let first = Agent::start_with(&config(0, None), &ring).await.unwrap();
    let mut strange = config(1, Some(first.address()));
    strange.elections[0].mode =
        Mode::Eventual(Eventual { margin: 5, learned: true, ..Eventual::default() });
    let strange = Agent::start_with(&strange, &ring).await.unwrap();
    let alike = Agent::start_with(&config(2, Some(first.address())), &ring).await.unwrap();
    let start = Instant::now();
    loop {
        let statuses = [
            first.handle().status().await.unwrap(),
            strange.handle().status().await.unwrap(),
            alike.handle().status().await.unwrap(),
        ];
        let found = statuses.map(|status| {
            let differing = status.elections[0].differing.iter();
            let differing = differing.map(|one| (one.name.clone(), one.settings.join(" ")));
            differing.collect::<BTreeMap<String, String>>()
        });
        let of = |names: &[&str]| {
            let pairs =
                names.iter().map(|name| ((*name).to_owned(), "criterion margin".to_owned()));
            pairs.collect::<BTreeMap<String, String>>()
        };
        if found == [of(&["node-1"]), of(&["node-0", "node-2"]), of(&["node-1"])] {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{found:?}");
        sleep(Duration::from_millis(50)).await;
    }
    let (told, _) = first.handle().events_after(0);
    let told: Vec<_> = told.iter().filter(|one| one.event == EventKind::SettingsDiffer).collect();
    assert_eq!(told.len(), 1, "once: {told:?}");
    assert_eq!(told[0].election.as_deref(), Some("backup"));
    assert_eq!(told[0].detail.as_deref(), Some("criterion, margin"));
    // Who has gone differs no more.
    strange.leave().await;
    let start = Instant::now();
    while !first.handle().status().await.unwrap().elections[0].differing.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20));
        sleep(Duration::from_millis(50)).await;
    }
}

/// An agent asks a program whom to join, again and again, and says meanwhile that it does not know.
#[tokio::test]
async fn whoever_a_program_names_is_joined_once_it_does() {
    use std::{fs, os::unix::fs::PermissionsExt as _};
    let ring = KeyRing::generate().unwrap();
    let first = Agent::start_with(&config(0, None), &ring).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [program, known] = ["peers", "known"].map(|name| folder.path().join(name));
    fs::write(&program, format!("#!/bin/sh\nexec cat {}\n", known.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut asking = config(1, None);
    asking.join = vec![Seed::Program(program.clone())];
    let asking = Agent::start_with(&asking, &ring).await.unwrap();
    let until = async |wanted: fn(&Status) -> bool| {
        let start = Instant::now();
        loop {
            let status = asking.handle().status().await.unwrap();
            if wanted(&status) {
                return status;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", status.sources);
            sleep(Duration::from_millis(20)).await;
        }
    };
    let status = until(|status| status.sources[0].problem.is_some()).await;
    let [source] = &*status.sources else { panic!("{:?}", status.sources) };
    assert_eq!(source.source, format!("exec:{}", program.display()));
    let problem = source.problem.as_ref().unwrap();
    assert!(
        problem.starts_with("failed: exit status: 1: ") && problem.contains("known"),
        "{problem}"
    );
    assert!(source.next_ms.is_some_and(|next| next <= 4_000), "{source:?}");
    fs::write(&known, first.address().to_string()).unwrap();
    let status = until(|status| status.members.len() == 2).await;
    assert_eq!(
        (&status.sources[0].problem, &*status.sources[0].addresses),
        (&None, &[first.address()][..])
    );
    let (told, _) = asking.handle().events_after(0);
    let told = |kind| told.iter().filter(|event| event.event == kind).count();
    assert_eq!((told(EventKind::JoinFailed), told(EventKind::JoinFound)), (1, 1));
}

async fn cluster(nodes: usize) -> (KeyRing, Vec<Agent>) {
    let ring = KeyRing::generate().unwrap();
    let mut agents: Vec<Agent> = vec![];
    for node in 0..nodes {
        let join = agents.first().map(Agent::address);
        agents.push(Agent::start_with(&config(node, join), &ring).await.unwrap());
    }
    (ring, agents)
}

fn leader(status: &Status) -> Option<&str> {
    status.elections[0].leader.as_ref().map(|leader| leader.name.as_str())
}

/// How long it takes until all of them name this leader, and are sure.
async fn until_all_name(agents: &[Agent], name: &str) -> Duration {
    let start = Instant::now();
    loop {
        let mut all = true;
        for agent in agents {
            let status = agent.handle().status().await.unwrap();
            all &= leader(&status) == Some(name) && status.elections[0].settled;
        }
        if all {
            return start.elapsed();
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{name} never led");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn five_agents_agree_lose_their_leader_and_agree_again() {
    let (_, mut agents) = cluster(5).await;
    until_all_name(&agents, "node-0").await;
    let before = agents[1].handle().status().await.unwrap();
    agents.remove(0).kill().await;
    let took = until_all_name(&agents, "node-1").await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    let after = agents[1].handle().status().await.unwrap();
    let epoch = |status: &Status| status.elections[0].epoch.unwrap();
    let counter = |status: &Status| epoch(status).counter();
    assert!(counter(&after) > counter(&before), "{} {}", epoch(&before), epoch(&after));
    let (events, _) = agents[0].handle().events_after(0);
    assert!(events.iter().any(|event| event.event == EventKind::BecameLeader));
    for agent in agents {
        agent.leave().await;
    }
}

#[tokio::test]
async fn whoever_leaves_hands_over_first() {
    let (_, mut agents) = cluster(3).await;
    until_all_name(&agents, "node-0").await;
    let leaving = agents.remove(0);
    let start = Instant::now();
    leaving.leave().await;
    let took = start.elapsed();
    until_all_name(&agents, "node-1").await;
    // Nobody had to find out: it was said.
    for agent in &agents {
        let (events, _) = agent.handle().events_after(0);
        let gone = events.iter().filter(|event| {
            event.node.as_ref().is_some_and(|node| node.name == "node-0")
                && matches!(event.event, EventKind::MemberLeave | EventKind::MemberFailed)
        });
        let kinds: Vec<EventKind> = gone.map(|event| event.event).collect();
        assert_eq!(kinds, [EventKind::MemberLeave]);
    }
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn a_leader_resigns_when_asked() {
    let (_, agents) = cluster(3).await;
    until_all_name(&agents, "node-0").await;
    let resign = Request::Resign("backup".to_owned());
    assert!(agents[1].handle().request(resign.clone()).await.is_err());
    agents[0].handle().request(resign).await.unwrap();
    until_all_name(&agents, "node-1").await;
}

#[tokio::test]
async fn another_cluster_on_the_same_network_is_not_there() {
    let (ring, agents) = cluster(2).await;
    until_all_name(&agents, "node-0").await;
    // The same key under another name, another key under the same name.
    let mut other = config(7, Some(agents[0].address()));
    other.cluster = "other".to_owned();
    let stranger = Agent::start_with(&other, &ring).await.unwrap();
    let other = config(8, Some(agents[0].address()));
    let thief = Agent::start_with(&other, &KeyRing::generate().unwrap()).await.unwrap();
    sleep(Duration::from_secs(3)).await;
    for (agent, members) in [(&agents[0], 2), (&agents[1], 2), (&stranger, 1), (&thief, 1)] {
        let status = agent.handle().status().await.unwrap();
        assert_eq!(status.members.len(), members, "{}", status.node.name);
    }
    let dropped: u64 = agents[0].handle().status().await.unwrap().counters.dropped.values().sum();
    assert!(dropped >= 2, "both were refused, and counted");
}

#[tokio::test]
async fn a_restarted_agent_is_the_same_node_and_tokens_do_not_go_back() {
    let directory = tempfile::tempdir().unwrap();
    let (ring, mut agents) = cluster(2).await;
    let mut third = config(3, Some(agents[0].address()));
    third.data_dir = Some(directory.path().to_owned());
    let agent = Agent::start_with(&third, &ring).await.unwrap();
    agents.push(agent);
    until_all_name(&agents, "node-0").await;
    let before = agents[2].handle().status().await.unwrap();
    agents.pop().unwrap().kill().await;
    let again = Agent::start_with(&third, &ring).await.unwrap();
    agents.push(again);
    until_all_name(&agents, "node-0").await;
    let after = agents[2].handle().status().await.unwrap();
    assert_eq!(before.node.id, after.node.id);
    assert!(before.node.boot < after.node.boot);
    let members = agents[0].handle().status().await.unwrap().members.clone();
    assert_eq!(members.len(), 3, "not a fourth");
}

/// Nobody is told of anybody: they hear each other.
#[tokio::test]
async fn an_announced_election_needs_nobody_to_join() {
    let ring = KeyRing::generate().unwrap();
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = |node: usize, role| {
        let mut config = config(node, None);
        config.multicast.set_port(port);
        config.elections[0].mode = Mode::Announced(Announced { sticky: true });
        config.elections[0].role = role;
        config
    };
    let mut agents = vec![];
    for (node, role) in [(1, Role::Candidate), (2, Role::Candidate), (3, Role::Observer)] {
        agents.push(Agent::start_with(&config(node, role), &ring).await.unwrap());
    }
    let led = async |agents: &[Agent], not: &str| {
        let start = Instant::now();
        loop {
            let mut names = vec![];
            for agent in agents {
                let status = agent.handle().status().await.unwrap();
                names.push(leader(&status).unwrap_or("nobody").to_owned());
            }
            let first = names[0].clone();
            let known = first.starts_with("node-") && first != not;
            if known && names.iter().all(|name| *name == first) {
                return (first, start.elapsed());
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{names:?}");
            sleep(Duration::from_millis(10)).await;
        }
    };
    // By name, so they have met besides.
    let (first, _) = led(&agents, "").await;
    assert_ne!(first, "node-3", "an observer");
    let epoch = async |agent: &Agent| {
        let status = agent.handle().status().await.unwrap();
        status.elections[0].epoch.unwrap()
    };
    let before = epoch(&agents[2]).await;
    // A better one comes and lets the leader be, which then resigns.
    sleep(Duration::from_millis(700)).await;
    agents.push(Agent::start_with(&config(0, Role::Candidate), &ring).await.unwrap());
    sleep(Duration::from_millis(700)).await;
    assert_eq!(led(&agents, "").await.0, first);
    let at = if first == "node-1" { 0 } else { 1 };
    agents[at].handle().request(Request::Resign("backup".to_owned())).await.unwrap();
    let (second, took) = led(&agents, &first).await;
    println!("{first} resigned; {second} led {took:?} later");
    assert!(epoch(&agents[2]).await > before);
    // And when that one falls silent, another.
    let transfer = Request::Transfer { election: "backup".to_owned(), to: first.clone() };
    let names = ["node-1", "node-2", "node-3", "node-0"];
    let at = names.iter().position(|&name| name == second).unwrap();
    assert!(agents[at].handle().request(transfer).await.is_err(), "nobody is appointed");
    agents.remove(at).kill().await;
    let (third, took) = led(&agents, &second).await;
    println!("{second} was killed; {third} led {took:?} later");
    for agent in agents {
        agent.leave().await;
    }
}

#[tokio::test]
async fn two_nodes_of_one_name_are_told_of_once() {
    let (ring, mut agents) = cluster(2).await;
    let same = config(1, Some(agents[0].address()));
    agents.push(Agent::start_with(&same, &ring).await.unwrap());
    for agent in &agents {
        let start = Instant::now();
        let same = loop {
            let status = agent.handle().status().await.unwrap();
            if let [same] = &*status.same_names {
                break same.clone();
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", status.same_names);
            sleep(Duration::from_millis(50)).await;
        };
        assert_eq!((&*same.name, same.ids.len()), ("node-1", 2));
    }
    sleep(Duration::from_secs(1)).await;
    for agent in &agents {
        let (events, _) = agent.handle().events_after(0);
        let told = events.iter().filter(|event| event.event == EventKind::SameName);
        assert_eq!(told.count(), 1);
    }
    // Who has gone is called nothing any more.
    agents.pop().unwrap().leave().await;
    let start = Instant::now();
    while !agents[0].handle().status().await.unwrap().same_names.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20));
        sleep(Duration::from_millis(50)).await;
    }
}
