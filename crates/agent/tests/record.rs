//! Three real agents on loopback, killed and started again, every life of them recorded and run again.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real sockets"
)]

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use bellwether_agent::{
    Agent, Config, KeyRing, Request,
    config::{Election, Leased, Mode, Profile, Seed},
    internal::record::{Cause, End, Recording, Replayed, replay},
};
use tokio::time::{Instant, sleep};

fn config(node: usize, folder: &Path, addresses: &[SocketAddr]) -> Config {
    let mut config = Config::new(format!("node-{node}"), "test", "unused");
    config.bind = addresses[node];
    config.api = SocketAddr::from(([127, 0, 0, 1], 0));
    config.data_dir = Some(folder.join(&config.name));
    config.record = Some(folder.join(format!("{}.record", config.name)));
    config.timing = Profile::Local.timing();
    config.timing.lease = bellwether_proto::Duration::from_millis(500);
    config.timing.arbitration = bellwether_proto::Duration::from_millis(250);
    config.tags = [("rack".to_owned(), "b2".to_owned())].into();
    config.join = addresses.iter().copied().map(Seed::from).collect();
    let members = (0..addresses.len()).map(|node| format!("node-{node}"));
    config.elections =
        vec![Election::default(), Election::of("disk", Mode::Leased(Leased::of(members)))];
    config
}

/// The one that all of them name in an election.
async fn agreed(agents: &[Option<Agent>], election: usize) -> usize {
    let begun = Instant::now();
    loop {
        let mut names = vec![];
        for agent in agents.iter().flatten() {
            let answer = agent.handle().status().await.unwrap().elections[election].clone();
            names.push(answer.leader.map(|leader| leader.name));
        }
        if let Some(name) = names[0].as_ref().filter(|_| names.iter().all(|one| *one == names[0])) {
            let leader: usize = name.strip_prefix("node-").unwrap().parse().unwrap();
            if agents[leader].is_some() {
                return leader;
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{names:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn run(path: &Path) -> Replayed {
    let replayed = replay(Recording::open(path).unwrap()).unwrap();
    assert!(replayed.divergence.is_none(), "{}: {:?}", path.display(), replayed.divergence);
    replayed
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn every_life_replays_with_equal_effects() {
    let folder = tempfile::tempdir().unwrap();
    let ring = KeyRing::generate().unwrap();
    let [.., high, low] = std::process::id().to_be_bytes();
    let addresses = [11, 12, 13].map(|node| SocketAddr::from(([127, high, low, node], 7738)));
    let start = async |node| {
        Some(Agent::start_with(&config(node, folder.path(), &addresses), &ring).await.unwrap())
    };
    let begun = Instant::now();
    let mut agents = vec![start(0).await, start(1).await, start(2).await];
    let leader = agreed(&agents, 1).await;
    agreed(&agents, 0).await;
    // A file that still grows can be run as far as it goes.
    sleep(Duration::from_millis(1_200)).await;
    let growing = run(&folder.path().join("node-0.record"));
    assert!(matches!(growing.end, Some(End::Open | End::Cut(_))), "{:?}", growing.end);

    // While it is killed, the disk of another refuses to keep what it must.
    agents[leader].take().unwrap().kill().await;
    let other = (leader + 1) % 3;
    let data = folder.path().join(format!("node-{other}"));
    fs::rename(&data, folder.path().join("aside")).unwrap();
    sleep(Duration::from_secs(3)).await;
    fs::rename(folder.path().join("aside"), &data).unwrap();
    agreed(&agents, 1).await;
    agents[leader] = start(leader).await;
    let led = agreed(&agents, 1).await;
    let handle = agents[led].as_ref().unwrap().handle().clone();
    handle.request(Request::Resign("disk".to_owned())).await.unwrap();
    let tags = [("rack".to_owned(), Some("c3".to_owned()))].into();
    handle.request(Request::Tags(tags)).await.unwrap();
    agreed(&agents, 1).await;
    agreed(&agents, 0).await;
    for agent in agents.into_iter().flatten() {
        agent.leave().await;
    }
    let lasted = begun.elapsed();

    let files = |number: usize| -> Vec<PathBuf> {
        let path = folder.path().join(format!("node-{number}.record"));
        let past = path.with_extension("record.1");
        [path, past].into_iter().filter(|path| path.exists()).collect()
    };
    let (mut bytes, mut inputs) = (0, 0);
    for number in 0..3 {
        assert_eq!(files(number).len(), 1 + usize::from(number == leader));
        for path in files(number) {
            let replayed = run(&path);
            assert_eq!(replayed.header.settings.about.name, format!("node-{number}"));
            assert_eq!(replayed.end, Some(End::Marked(Cause::Stopped)));
            assert!(replayed.inputs > 50, "{}: {}", path.display(), replayed.inputs);
            let file = fs::read(&path).unwrap();
            assert!(contains(&file, b"rack"), "what is no secret is in it");
            (bytes, inputs) = (bytes + file.len(), inputs + replayed.inputs);
        }
    }
    // For `--nocapture`.
    println!("{bytes} bytes, {inputs} inputs of 3 agents in {:.1} s", lasted.as_secs_f64());
}

#[tokio::test]
async fn a_file_that_cannot_be_made_keeps_the_agent_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(0, folder.path(), &[SocketAddr::from(([127, 0, 0, 1], 0))]);
    config.join.clear();
    config.elections.truncate(1);
    config.record = Some(folder.path().join("settings.toml"));
    fs::write(folder.path().join("settings.toml"), "x = 1").unwrap();
    let ring = KeyRing::generate().unwrap();
    let error = Agent::start_with(&config, &ring).await.unwrap_err().to_string();
    assert!(error.starts_with("record: ") && error.contains("settings.toml"), "{error}");
}
