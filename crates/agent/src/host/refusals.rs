//! What the agent's own interfaces refused before the node could be asked. They count, and the log tells.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was refused, since the agent started.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// By the listener on an address.
    pub(crate) http: Refused,
    /// By the local socket.
    pub(crate) socket: Refused,
}

/// What one listener refused.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Connections for which there was no place.
    pub(crate) connections: AtomicU64,
    /// Connections that asked nothing and were closed for others.
    pub(crate) idle: AtomicU64,
    /// Streams for which there was no place.
    pub(crate) streams: AtomicU64,
    /// Connections of users who may not ask.
    users: AtomicU64,
}

impl Refusals {
    /// By listener and reason; all of them, from the start.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        [("http", &self.http), ("socket", &self.socket)].into_iter().flat_map(|(at, refused)| {
            [
                ("connections", &refused.connections),
                ("idle", &refused.idle),
                ("streams", &refused.streams),
                ("users", &refused.users),
            ]
            .map(|(reason, count)| (at, reason, count.load(Ordering::Relaxed)))
        })
    }
}

impl Refused {
    pub(crate) fn count_user(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }
}
