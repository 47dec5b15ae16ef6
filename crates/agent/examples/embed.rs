//! A program that does something only while it leads: `cargo run -p bellwether-agent --example embed`.

#![allow(missing_docs, unreachable_pub, reason = "an example")]

use bellwether_agent::{Agent, Config, KeyRing, config::Profile};

#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A real one has a name, a cluster and a key file of its own, and somebody to join.
    let mut config = Config::new("kitchen", "home", "unused.key");
    (config.bind, config.api) = ("127.0.0.1:0".parse()?, "127.0.0.1:0".parse()?);
    config.timing = Profile::Local.timing();
    let agent = Agent::start_with(&config, &KeyRing::generate()?).await?;
    let mut handle = agent.handle().clone();
    while !handle.status().await?.elections[0].is_leader {
        handle.wait_after(handle.index()).await?;
    }
    println!("I lead, under {:?}", handle.status().await?.elections[0].epoch);
    agent.leave().await;
    Ok(())
}
