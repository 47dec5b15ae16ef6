//! A program that is a node, and does something while it leads.

use std::time::Duration;

use bellwether_agent::{Agent, Config, KeyRing, config::Profile};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::new("kitchen", "home", "cluster.key");
    config.bind = "127.0.0.1:0".parse()?;
    config.api = "127.0.0.1:0".parse()?;
    config.timing = Profile::Local.timing();
    // A program of several would use `Agent::start`, which reads the key from its file.
    let agent = Agent::start_with(&config, &KeyRing::generate()?).await?;
    let mut handle = agent.handle().clone();
    for _ in 0..3 {
        let status = handle.status().await?;
        let election = &status.elections[0];
        match (&election.epoch, election.is_leader) {
            (Some(epoch), true) => println!("leading under {epoch}: work for a moment"),
            _ => println!("not leading: wait for news"),
        }
        // News, or a while without any.
        let news = handle.wait_after(handle.index());
        let _ = tokio::time::timeout(Duration::from_secs(1), news).await;
    }
    agent.leave().await;
    Ok(())
}
