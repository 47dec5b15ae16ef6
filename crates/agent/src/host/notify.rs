//! What a service manager is told: ready, alive, reloading, stopping.
//!
//! The protocol of `sd_notify(3)`: datagrams of text to the socket that `NOTIFY_SOCKET` names. Without that variable nothing is
//! said. The watchdog is fed by the loop that owns the node and by nothing else, so that a loop that is stuck is noticed,
//! whatever else still runs.

use std::{
    env, io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::Arc,
};

use bellwether_proto::{Duration, Time};
use rustix::time::{ClockId, clock_gettime};

/// Whoever started this process, if it wants to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manager {
    socket: Option<Arc<UnixDatagram>>,
    every: Option<Duration>,
}

impl Manager {
    /// As the environment names it.
    pub(crate) fn of_environment() -> Result<Self, String> {
        let read = |name| env::var(name).ok();
        let Some(socket) = read("NOTIFY_SOCKET") else { return Ok(Self::default()) };
        let own = read("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let limit = read("WATCHDOG_USEC").filter(|_| own);
        Self::connect(&socket, limit.as_deref())
    }

    fn connect(name: &str, limit: Option<&str>) -> Result<Self, String> {
        let refused = |error: io::Error| format!("NOTIFY_SOCKET={name}: {error}");
        let address = match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(name),
        };
        let socket = UnixDatagram::unbound().map_err(refused)?;
        socket.connect_addr(&address.map_err(refused)?).map_err(refused)?;
        // Whoever does not read must not stop us.
        socket.set_nonblocking(true).map_err(refused)?;
        let every = limit.map(|limit| match limit.parse() {
            Ok(limit) if limit > 1 => Ok(Duration::from_micros(limit).div(2)),
            _ => Err(format!("WATCHDOG_USEC={limit} is not a number of microseconds above 1")),
        });
        Ok(Self { socket: Some(Arc::new(socket)), every: every.transpose()? })
    }

    pub(crate) fn ready(&self) {
        self.say("READY=1");
    }

    /// Settings are read again; [`Self::ready`] ends it, whatever came of it.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    pub(crate) fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// What the node's loop has to feed, if anything.
    pub(crate) fn watchdog(&self) -> Option<Watchdog> {
        self.every.map(|every| Watchdog { manager: self.clone(), every, due: Time::ZERO })
    }

    fn say(&self, text: &str) {
        if let Some(socket) = &self.socket {
            // A manager that has gone cannot be told, and restarts nothing either.
            let _ = socket.send(text.as_bytes());
        }
    }
}

/// A promise to be heard from, twice as often as necessary.
#[derive(Debug)]
pub(crate) struct Watchdog {
    manager: Manager,
    every: Duration,
    due: Time,
}

impl Watchdog {
    /// Says so if it is time to.
    pub(crate) fn feed(&mut self, now: Time) {
        if now >= self.due {
            self.manager.say("WATCHDOG=1");
            self.due = now + self.every;
        }
    }

    /// By when to be fed again.
    pub(crate) fn due(&self) -> Time {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut text = [0; 256];
        let length = socket.recv(&mut text).expect("a datagram");
        String::from_utf8_lossy(&text[..length]).into_owned()
    }

    #[test]
    fn a_manager_behind_an_abstract_name_is_told_everything() {
        let name = format!("bellwether-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("an address");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        let manager = Manager::connect(&format!("@{name}"), Some("600000")).expect("a manager");
        manager.ready();
        assert_eq!(heard(&socket), "READY=1");
        manager.reloading();
        assert!(heard(&socket).starts_with("RELOADING=1\nMONOTONIC_USEC="));
        manager.stopping();
        assert_eq!(heard(&socket), "STOPPING=1");
        let mut watchdog = manager.watchdog().expect("a watchdog");
        let start = Time::ZERO + Duration::from_secs(5);
        for millis in [0, 100, 299, 300, 599] {
            watchdog.feed(start + Duration::from_millis(millis));
        }
        assert_eq!(watchdog.due(), start + Duration::from_millis(600));
        manager.ready();
        let all: Vec<String> = (0..3).map(|_| heard(&socket)).collect();
        assert_eq!(all, ["WATCHDOG=1", "WATCHDOG=1", "READY=1"]);
    }

    #[test]
    fn a_manager_that_cannot_be_told_is_an_error_with_its_name() {
        let error = Manager::connect("/nowhere/notify", None).expect_err("no such socket");
        assert!(error.starts_with("NOTIFY_SOCKET=/nowhere/notify: "), "{error}");
    }
}
