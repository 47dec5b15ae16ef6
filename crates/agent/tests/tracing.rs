//! A program that embeds an agent and listens to `tracing` hears what the agent does.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real sockets"
)]

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex, OnceLock},
};

use bellwether_agent::{Agent, Config, Election, KeyRing, config::Profile};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Keeps all it hears, as level, target and fields; and what the election says at the moment in which it hears that this
/// node leads.
#[derive(Clone, Default)]
struct Ear {
    heard: Arc<Mutex<Vec<(Level, String, String)>>>,
    election: Arc<OnceLock<Election>>,
    leads: Arc<Mutex<Vec<bool>>>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("bellwether_agent")
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let (level, target) = (*event.metadata().level(), event.metadata().target().to_owned());
        if fields.0.contains("became-leader") {
            let says = self.election.get().unwrap().clone().current();
            self.leads.lock().unwrap().push(says.lead.is_some());
        }
        self.heard.lock().unwrap().push((level, target, fields.0));
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields(String::new());
        span.record(&mut fields);
        self.heard.lock().unwrap().push((Level::INFO, "span".to_owned(), fields.0));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn an_embedding_program_hears_of_leading_of_steps_and_of_packets() {
    let ear = Ear::default();
    let _listening = tracing::subscriber::set_default(ear.clone());
    let mut config = Config::new("kitchen", "garden", "unused");
    config.bind = "127.0.0.1:0".parse().unwrap();
    config.api = "127.0.0.1:0".parse().unwrap();
    config.timing = Profile::Local.timing();
    // Nobody is there.
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    config.join = vec![nobody.local_addr().unwrap().into()];
    let agent = Agent::start_with(&config, &KeyRing::generate().unwrap()).await.unwrap();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(b"GET / HTTP/1.1\r\n\r\n", agent.address()).unwrap();
    let mut election = agent.election("default").unwrap();
    ear.election.set(election.clone()).unwrap();
    while election.current().lead.is_none() {
        election.changed().await.unwrap();
    }
    agent.leave().await;
    let heard = ear.heard.lock().unwrap().clone();
    assert_eq!(*ear.leads.lock().unwrap(), [true], "whoever is told and asks gets the same answer");
    let told = |level, target: &str, words: &[&str]| {
        let fits = |one: &&(Level, String, String)| {
            one.0 == level && one.1 == target && words.iter().all(|word| one.2.contains(word))
        };
        assert!(heard.iter().any(|one| fits(&one)), "{level} {target} {words:?}: {heard:#?}");
    };
    told(Level::INFO, "span", &["name=\"kitchen\""]);
    let events = "bellwether_agent::events";
    told(Level::INFO, events, &["about=\"became-leader\"", "election=\"default\"", "epoch=1."]);
    told(Level::DEBUG, events, &["about=\"leader-confirmed\"", "member=\"kitchen\""]);
    told(Level::DEBUG, "bellwether_agent::host::adapter", &["asks who is there"]);
    told(Level::DEBUG, "bellwether_agent::host::adapter", &["another answer", "settled=true"]);
    told(Level::TRACE, "bellwether_agent::net::transport", &["packet sent"]);
    told(Level::TRACE, "bellwether_agent::net::transport", &["packet refused", "not-ours"]);
}
