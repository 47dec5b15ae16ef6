//! What an embedding program is told of an election: nothing twice, nothing too late, and nothing that is over.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real sockets"
)]

mod support;

use std::time::Duration;

use bellwether_agent::{
    Agent, Config, Error, Handle, KeyRing, Mode,
    config::{self, Profile},
    internal::Inbox,
    status::{ElectionStatus, EventKind},
};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{sleep, timeout};

/// An agent that takes part in two elections and has said nothing yet.
fn connected() -> (Handle, Inbox) {
    Handle::connect(["web", "backup"].map(|name| (name.to_owned(), Mode::Eventual)))
}

/// What the node says of both; of `backup` always the same.
fn say(inbox: &Inbox, web: ElectionStatus) {
    inbox.publish(vec![web, support::election("backup", Some("attic"), false)]);
}

fn led() -> ElectionStatus {
    support::election("web", Some("kitchen"), true)
}

fn leased_for(left: Duration) -> ElectionStatus {
    let now = clock_gettime(ClockId::Boottime);
    let micros = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000;
    let valid_until_us = Some(micros + left.as_micros() as u64);
    ElectionStatus { mode: Mode::Leased, valid_until_us, ..led() }
}

/// So long nothing happens, as far as a test can tell.
const QUIET: Duration = Duration::from_millis(50);

#[tokio::test]
async fn who_leads_is_a_value_with_an_epoch() {
    let (handle, inbox) = connected();
    let mut web = handle.election("web").unwrap();
    assert_eq!(web.current().why, "the agent has not started");
    say(&inbox, led());
    let now = web.current();
    assert_eq!(now.lead.unwrap().epoch, "7.3.1.0".parse().ok());
    assert_eq!(now.leader.unwrap().name, "kitchen");
    let backup = handle.election("backup").unwrap().current();
    assert!(backup.lead.is_none() && backup.leader.is_some_and(|one| one.name == "attic"));
    let error = handle.election("bakup").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no election is called \"bakup\"; this agent takes part in web, backup"
    );
}

#[tokio::test]
async fn news_between_reading_and_waiting_is_not_missed() {
    let (handle, inbox) = connected();
    let mut web = handle.election("web").unwrap();
    say(&inbox, support::election("web", None, false));
    assert!(web.current().lead.is_none());
    say(&inbox, led());
    assert!(timeout(QUIET, web.changed()).await.unwrap().unwrap().lead.is_some());
    // There and back again: whoever acted on the first must hear that it was not so all the time.
    say(&inbox, support::election("web", None, false));
    say(&inbox, led());
    assert!(timeout(QUIET, web.changed()).await.unwrap().unwrap().lead.is_some());
    // A wait that is given up takes nothing with it.
    assert!(timeout(QUIET, web.changed()).await.is_err());
    say(&inbox, support::election("web", None, false));
    assert!(timeout(QUIET, web.changed()).await.unwrap().unwrap().lead.is_none());
}

#[tokio::test]
async fn nobody_is_woken_for_what_is_not_another_answer() {
    let (handle, inbox) = connected();
    let mut web = handle.election("web").unwrap();
    say(&inbox, leased_for(Duration::from_secs(1)));
    let first = web.current().lead.unwrap();
    // The lease is renewed, counters move, the reason is worded anew, another election is decided.
    let more = ElectionStatus { sent: 99, why: "still".to_owned(), ..leased_for(2 * QUIET * 20) };
    inbox.publish(vec![more, support::election("backup", None, false)]);
    assert!(timeout(QUIET, web.changed()).await.is_err());
    let renewed = web.current().lead.unwrap();
    assert!(renewed.valid_until > first.valid_until, "and yet whoever asks sees it");
}

#[tokio::test]
async fn a_lease_ends_though_the_node_says_nothing() {
    let (handle, inbox) = connected();
    let mut web = handle.election("web").unwrap();
    say(&inbox, leased_for(QUIET));
    let lead = web.current().lead.unwrap();
    assert!(!lead.is_over() && lead.left().is_some_and(|left| left <= QUIET));
    let after = timeout(20 * QUIET, web.changed()).await.unwrap().unwrap();
    assert_eq!((after.lead, after.leader, &*after.why), (None, None, "the lease is over"));
    assert!(lead.is_over() && lead.left() == Some(Duration::ZERO));
}

#[tokio::test]
async fn a_node_that_hangs_leads_nothing() {
    let (handle, inbox) = connected();
    let mut web = handle.election("web").unwrap();
    say(&inbox, led());
    assert!(web.current().lead.is_some());
    let after = timeout(Duration::from_secs(5), web.changed()).await.unwrap().unwrap();
    assert_eq!((after.lead, &*after.why), (None, "the node does not answer"));
    drop(inbox);
    assert_eq!(web.changed().await, Err(Error::Stopped));
    assert_eq!(web.current().why, "the agent has stopped");
}

/// The reader of settings refuses that too, but a program may have written them itself.
#[tokio::test]
async fn a_leased_election_wants_a_disk() {
    let mut config = Config::new("attic", "garden", "unused");
    config.api = "127.0.0.1:0".parse().unwrap();
    let leased = config::Mode::Leased(config::Leased::of(["attic".to_owned()]));
    config.elections = vec![config::Election::of("web", leased)];
    let error = Agent::start_with(&config, &KeyRing::generate().unwrap()).await.unwrap_err();
    let words = "web is a leased election, and this node, without a data_dir, would forget";
    assert!(error.to_string().starts_with(words), "{error}");
}

#[tokio::test]
async fn a_dropped_agent_says_goodbye() {
    let ring = KeyRing::generate().unwrap();
    let config = |name: &str| {
        let mut config = Config::new(name, "garden", "unused");
        config.bind = "127.0.0.1:0".parse().unwrap();
        config.api = "127.0.0.1:0".parse().unwrap();
        config.timing = Profile::Local.timing();
        config
    };
    let stays = Agent::start_with(&config("attic"), &ring).await.unwrap();
    let mut goes = config("kitchen");
    goes.join = vec![stays.address().into()];
    let goes = Agent::start_with(&goes, &ring).await.unwrap();
    let (handle, api) = (goes.handle().clone(), goes.api());
    let happened = async |kind: EventKind| {
        let told = || stays.handle().events_after(0).0;
        while !told().iter().any(|event| event.event == kind) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let within = Duration::from_secs(20);
    timeout(within, happened(EventKind::MemberUpdate)).await.unwrap();
    drop(goes);
    timeout(within, handle.stopped()).await.unwrap();
    timeout(within, happened(EventKind::MemberLeave)).await.unwrap();
    // Its port is free once its interface has noticed.
    let freed = async {
        while tokio::net::TcpListener::bind(api).await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(within, freed).await.unwrap();
    stays.leave().await;
}
