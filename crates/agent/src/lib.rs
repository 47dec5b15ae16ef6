//! The agent: real nodes and real packets around the machines of [`bellwether_proto`].
//!
//! A program that embeds it needs three things: a [`Config`], an [`Agent`] that is started with it, and an [`Election`] of
//! that agent, which says whether this node leads and when that changes.
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
//! let mut election = agent.election("default").unwrap();
//! while election.current().lead.is_none() {
//!     election.changed().await.unwrap();
//! }
//! agent.leave().await;
//! # });
//! ```
//!
//! One task owns the machine, the sockets and the clock, and keeps the host's side of the contract in
//! [`bellwether_proto::machine`], like the simulator, of which it knows nothing. Everybody else, be it the HTTP
//! interface, a hook or the program this is embedded in, holds a [`Handle`] and asks.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is a host: it owns the clock, the sockets and the threads"
)]

pub use self::{
    agent::{Agent, Panicked, ReloadError, StartError},
    config::{Config, SettingsError},
    files::check_files,
    host::{
        election::{Election, Lead, Leader, Leadership},
        handle::{Error, Handle, Request},
    },
    net::key::{self, Key, KeyError, KeyRing},
};
pub use bellwether_proto::{Epoch, Mode, NodeId};

mod agent;
mod api;
pub mod config;
mod files;
mod host;
mod net;
pub mod status;
mod trust;

/// What the command line, tests and fuzzers of this workspace need besides. It may change with any version.
#[doc(hidden)]
pub mod internal {
    pub use crate::{
        agent::{Ended, run},
        host::{
            handle::{Inbox, Requested},
            store::rewritten,
        },
        net::{
            refusal::Refusal,
            seal::{Content, Sealer},
        },
    };

    pub mod api {
        pub use crate::api::{
            Act, Actor, Api, Order, Stage, Token, dashboard_file, serve, usual_sockets,
        };
    }
    pub mod hooks {
        pub use crate::host::hooks::{HookView, Hooks};
    }
    pub mod log {
        pub use crate::host::log::EVENTS;
    }
    pub mod neighbours {
        pub use crate::host::neighbours::parse;
    }
    pub mod record {
        pub use crate::host::record::*;
    }
}
