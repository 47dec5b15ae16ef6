//! Our agent, in process. It answers HTTP too, but nobody asks.

use std::{sync::Arc, time::Duration};

use bellwether_agent::{
    Agent, Config, KeyRing,
    config::{Profile, Seed},
    status::MemberState,
};

use crate::{Alive, Library, MEMBERS, Waits, address};

pub(crate) fn library(waits: Waits, ring: KeyRing) -> Library {
    let member =
        move |place, alive| -> crate::Life { Box::pin(live(place, alive, waits, ring.clone())) };
    Library {
        name: "Bellwether",
        settings: "encrypted; one election runs besides, whose leader is watched".to_owned(),
        member: Arc::new(member),
    }
}

async fn live(place: usize, alive: Alive, waits: Waits, ring: KeyRing) {
    let mut config = Config::new(name(place), "garden", "unused.key");
    config.bind = address(place);
    config.api.set_port(0);
    config.timing = Profile::Lan.timing();
    let ours = |wait: Duration| bellwether_proto::Duration::from_micros(wait.as_micros() as u64);
    let Waits { period, ack, suspicion } = waits;
    (config.timing.period, config.timing.ack) = (ours(period), ours(ack));
    config.timing.suspicion = ours(suspicion);
    let seed = |place| Seed { host: address(place).ip().to_string(), port: address(place).port() };
    config.join = (0..3).map(seed).collect();
    let agent = Agent::start_with(&config, &ring).await.expect("its address is free");
    loop {
        let status = agent.handle().status().await.expect("it runs");
        let there = status
            .members
            .iter()
            .filter(|member| matches!(member.state, MemberState::Alive | MemberState::Suspect));
        let places = |member: &str| (0..MEMBERS).find(|&place| name(place) == member);
        alive.set(there.filter_map(|member| places(&member.name)));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn name(place: usize) -> String {
    format!("member-{place}")
}
