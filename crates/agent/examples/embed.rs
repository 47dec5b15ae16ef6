//! Three nodes that elect one of them to do the backup: at most one does, whatever the network does to them.
//!
//! They run in one process here, so that `cargo run --example embed` shows something. In earnest each is a program on a
//! machine of its own: `node` is all it needs, with its own addresses and `Agent::start`, which reads the cluster's key from
//! its file.

use std::{error::Error, net::SocketAddr, path::Path, time::Duration};

use bellwether_agent::{
    Agent, Config, KeyRing, Lead,
    config::{self, Leased, Mode, Profile},
};

const NAMES: [&str; 3] = ["pi-1", "pi-2", "pi-3"];

/// A node's settings, and the node.
async fn node(
    name: &str,
    join: Option<SocketAddr>,
    data: &Path,
    key: &KeyRing,
) -> Result<Agent, Box<dyn Error>> {
    let mut config = Config::new(name, "home", "cluster.key");
    config.bind = "127.0.0.1:0".parse()?;
    config.api = "127.0.0.1:0".parse()?;
    config.join = join.into_iter().map(Into::into).collect();
    // What a member of a leased election has promised must outlive it.
    config.data_dir = Some(data.join(name));
    config.timing = Profile::Local.timing();
    let members = NAMES.map(str::to_owned);
    config.elections = vec![config::Election::of("backup", Mode::Leased(Leased::of(members)))];
    Ok(Agent::start_with(&config, key).await?)
}

/// Works while this node leads, until there has been enough of it.
async fn work(name: &str, agent: &Agent) -> Result<(), Box<dyn Error>> {
    let mut backup = agent.election("backup")?;
    let mut pieces = 0;
    while pieces < 3 {
        match backup.current().lead {
            // Whoever keeps the backups is told the epoch, and refuses one below the highest that it has seen.
            Some(Lead { epoch: Some(epoch), .. }) => {
                println!("{name} does a piece of work under {epoch}");
                pieces += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            _ => {
                let leader = backup.changed().await?.leader;
                println!("{name} hears that {:?} leads", leader.map(|leader| leader.name));
            }
        }
    }
    println!("{name} has done its part and lets another one lead");
    Ok(backup.resign().await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = std::env::temp_dir().join(format!("embed-{}", std::process::id()));
    let key = KeyRing::generate()?;
    let first = node(NAMES[0], None, &data, &key).await?;
    let second = node(NAMES[1], Some(first.address()), &data, &key).await?;
    let third = node(NAMES[2], Some(first.address()), &data, &key).await?;
    // Whoever is elected first is done first.
    tokio::select! {
        done = work(NAMES[0], &first) => done?,
        done = work(NAMES[1], &second) => done?,
        done = work(NAMES[2], &third) => done?,
    }
    for agent in [first, second, third] {
        agent.leave().await;
    }
    std::fs::remove_dir_all(&data)?;
    Ok(())
}
