//! The agent: real nodes and real packets around the machines of [`bellwether_proto`].
//!
//! One task owns the machine, the sockets and the clock, and keeps the host's side of the contract in
//! [`bellwether_proto::machine`], like the simulator, of which it knows nothing. Everybody else, be it the HTTP
//! interface, a hook or the program this is embedded in, holds a [`Handle`] and asks.
//!
//! ```
//! use bellwether_agent::{Agent, Config, KeyRing, config::Profile};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let mut config = Config::new("kitchen", "home", "unused.key");
//! config.bind = "127.0.0.1:0".parse().unwrap();
//! config.api = "127.0.0.1:0".parse().unwrap();
//! config.timing = Profile::Local.timing();
//! let agent = Agent::start_with(&config, &KeyRing::generate().unwrap()).await.unwrap();
//! let mut handle = agent.handle().clone();
//! while !handle.status().await.unwrap().elections[0].is_leader {
//!     handle.wait_after(handle.index()).await.unwrap();
//! }
//! agent.leave().await;
//! # });
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is a host: it owns the clock, the sockets and the threads"
)]

pub use self::{
    agent::{Agent, Ended, Panicked, ReloadError, StartError, run},
    config::{Config, SettingsError},
    discovery::Found,
    drop::Drop,
    files::check_files,
    handle::{Answers, Handle, Inbox, Refused, Request, Requested, Stopped},
    key::{Fingerprint, Key, KeyError, KeyLineError, KeyRing, KeyTextError, Stage},
    peers::KnownPeer,
    seal::{Answered, CHUNK_EXTRA, Content, OpenStream, Opened, Sealer, Versions},
    status::{
        Agreement, CentralStatus, Counters, Differing, ElectionStatus, Event, EventKind, Identity,
        JoinTable, KeyStatus, KeyUser, LeaderStatus, MajorityStatus, MapNode, MapStatus,
        MemberState, MemberStatus, PeerTable, Position, Reach, Role, SameName, ScoreStatus,
        SourceStatus, Status, Verdict,
    },
    store::{StoreError, rewritten},
    transport::{BindError, INBOUND, INBOUND_EACH, Misplaced, Received, Transport},
    trust::Distrust,
};

mod adapter;
mod agent;
pub mod api;
mod clock;
pub mod config;
mod discovery;
mod driver;
mod drop;
mod files;
mod handle;
pub mod hooks;
mod key;
pub mod log;
pub mod neighbours;
mod notify;
mod peers;
pub mod record;
mod seal;
mod status;
mod store;
mod terms;
mod transport;
mod trust;
