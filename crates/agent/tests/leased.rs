//! A leased election of three real agents on loopback.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real sockets"
)]

use std::{net::SocketAddr, path::Path, time::Duration};

use bellwether_agent::{
    Agent, Config, Election, KeyRing,
    config::{self, Leased, Mode, Profile, Seed},
    status::ElectionStatus,
};
use bellwether_proto::{Duration as Wait, Epoch};
use tokio::time::{Instant, sleep};

fn config(node: usize, folder: &Path, addresses: &[SocketAddr]) -> Config {
    let mut config = Config::new(format!("node-{node}"), "test", "unused");
    config.bind = addresses[node];
    config.api = SocketAddr::from(([127, 0, 0, 1], 0));
    config.data_dir = Some(folder.join(&config.name));
    config.timing = Profile::Local.timing();
    config.timing.lease = Wait::from_millis(500);
    config.timing.arbitration = Wait::from_millis(250);
    config.join = addresses.iter().copied().map(Seed::from).collect();
    let members = (0..addresses.len()).map(|node| format!("node-{node}"));
    config.elections = vec![config::Election::of("disk", Mode::Leased(Leased::of(members)))];
    config
}

async fn ask(agent: &Agent) -> ElectionStatus {
    agent.handle().status().await.unwrap().elections[0].clone()
}

fn disk(agents: &[Option<Agent>], at: usize) -> Election {
    agents[at].as_ref().unwrap().election("disk").unwrap()
}

/// The one of them that all of them name.
async fn agreed(agents: &[Option<Agent>], within: u64) -> usize {
    let start = Instant::now();
    loop {
        let mut names = vec![];
        let mut whys = vec![];
        for agent in agents.iter().flatten() {
            let answer = ask(agent).await;
            names.push(answer.leader.map(|leader| leader.name));
            whys.push(answer.why);
        }
        if let Some(name) = names[0].as_ref().filter(|_| names.iter().all(|one| *one == names[0])) {
            let leader: usize = name.strip_prefix("node-").unwrap().parse().unwrap();
            // Not one that was killed.
            if agents[leader].is_some() {
                return leader;
            }
        }
        assert!(start.elapsed() < Duration::from_secs(within), "{names:?}: {whys:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn leaders_are_killed_and_come_back_and_hand_over() {
    let folder = tempfile::tempdir().unwrap();
    let ring = KeyRing::generate().unwrap();
    // Whoever comes back finds its port free: nobody is given one at such an address unless they ask.
    let [.., high, low] = std::process::id().to_be_bytes();
    let addresses = [1, 2, 3].map(|node| SocketAddr::from(([127, high, low, node], 7738)));
    let start = async |node| {
        Some(Agent::start_with(&config(node, folder.path(), &addresses), &ring).await.unwrap())
    };
    let mut agents = vec![start(0).await, start(1).await, start(2).await];
    let mut last: Option<Epoch> = None;
    for _ in 0..3 {
        let leader = agreed(&agents, 30).await;
        let answer = ask(agents[leader].as_ref().unwrap()).await;
        assert!(answer.is_leader && answer.valid_for_ms.is_some_and(|left| left <= 1_000));
        assert!(answer.valid_until_us.is_some() && answer.step_down_ms == Some(200));
        let lead = disk(&agents, leader).current().lead.unwrap();
        assert!(lead.epoch == answer.epoch && !lead.is_over());
        assert!(lead.left().is_some_and(|left| left <= Duration::from_secs(1)));
        let epoch = answer.epoch.unwrap();
        assert!(last <= Some(epoch), "{last:?} before {epoch}");
        last = Some(epoch);
        agents[leader].take().unwrap().kill().await;
        let next = agreed(&agents, 20).await;
        assert_ne!(next, leader);
        // The dead one is heard to dissent until the membership, which is slower than the election, gives it up.
        let begun = std::time::Instant::now();
        let answer = loop {
            let answer = ask(agents[next].as_ref().unwrap()).await;
            if answer.agreement.dissent.is_empty() {
                break answer;
            }
            assert!(begun.elapsed().as_secs() < 20, "{:?}", answer.agreement.dissent);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        let epoch = answer.epoch.unwrap();
        assert!(last < Some(epoch), "{last:?} before {epoch}");
        last = Some(epoch);
        agents[leader] = start(leader).await;
        agreed(&agents, 40).await;
    }
    let leader = agreed(&agents, 30).await;
    let mut election = disk(&agents, leader);
    assert!(election.current().lead.is_some());
    election.resign().await.unwrap();
    assert!(election.changed().await.unwrap().lead.is_none());
    let next = agreed(&agents, 20).await;
    assert_ne!(next, leader);
    disk(&agents, next).transfer(&format!("node-{leader}")).await.unwrap();
    assert_eq!(agreed(&agents, 20).await, leader);
    // Who is left alone says what it lacks.
    for node in [0, 1] {
        agents[node].take().unwrap().kill().await;
    }
    let begun = Instant::now();
    let last = agents[2].take().unwrap();
    let answer = loop {
        let answer = ask(&last).await;
        if answer.leader.is_none() && answer.why.starts_with("needs ") {
            break answer;
        }
        assert!(begun.elapsed().as_secs() < 20, "{answer:?}");
        sleep(Duration::from_millis(50)).await;
    };
    let said = "needs 2 of 3 members, hears only itself (node-0, node-1 silent for ";
    assert!(answer.why.starts_with(said), "{}", answer.why);
    assert_eq!(answer.majority.unwrap().heard, ["node-2"]);
    assert!(answer.silent_ms.is_some_and(|silent| silent >= 2_000), "{:?}", answer.silent_ms);
    last.leave().await;
}
