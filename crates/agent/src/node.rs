//! The task that owns a node: its machine, its sockets, its clock.
//!
//! ```text
//! wait for a request, a packet or the next deadline
//! read the clock
//! was the process stopped? give up leading, and throw away what waited in the sockets meanwhile
//! apply what arrived, then what is due
//! send
//! ```
//!
//! The clock is read before the sockets and input is applied before timers: who was stopped for a minute must
//! neither renew anything with old mail nor accuse those whose answers wait in its own buffer.

use std::{net::SocketAddr, time::Duration as Wait};

use bellwether_proto::{Duration, Time};

use crate::{
    clock,
    core::{Core, Outgoing},
    handle::{Inbox, Request, Requested},
    notify::Watchdog,
    transport::Transport,
};

/// A running node.
pub(crate) struct Node {
    core: Core,
    transport: Transport,
    inbox: Inbox,
    /// The longest it may be late and still lead.
    guard: Duration,
    /// How long a successor gets before a leader leaves regardless.
    patience: Duration,
    leaving: Option<Leaving>,
    watchdog: Option<Watchdog>,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    until: Time,
    said: bool,
}

enum Woken {
    Asked(Requested),
    Abandoned,
    Ready,
    Due,
}

/// Packets thrown away at most after a stall.
const BACKLOG: usize = 4096;
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// After that long everybody has been told goodbye, or will not be.
const GOODBYE: Duration = Duration::from_secs(2);

impl Node {
    pub(crate) fn new(
        core: Core,
        transport: Transport,
        inbox: Inbox,
        guard: Duration,
        patience: Duration,
        watchdog: Option<Watchdog>,
    ) -> Self {
        Self { core, transport, inbox, guard, patience, leaving: None, watchdog }
    }

    /// Runs until it has left, or nobody holds a handle any more.
    pub(crate) async fn run(mut self) {
        self.core.start(clock::now(), &self.inbox);
        loop {
            let before = clock::now();
            self.flush(before);
            if let Some(watchdog) = &mut self.watchdog {
                watchdog.feed(before);
            }
            if self.is_done(before) {
                return;
            }
            let deadline = self.deadline();
            let woken = self.wait(before, deadline).await;
            let now = clock::now();
            let late = now.since(self.wake(before, deadline));
            if late > self.guard {
                self.core.on_stall(now, late, &self.inbox);
                self.discard(now);
            }
            match woken {
                Woken::Asked(requested) => self.answer(now, requested),
                Woken::Abandoned => self.leave(now),
                Woken::Ready => self.receive(now),
                Woken::Due => {}
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.core.on_deadline(now, &self.inbox);
            }
            self.go_on_leaving(now);
        }
    }

    fn deadline(&self) -> Option<Time> {
        let leaving = self.leaving.map(|leaving| leaving.until);
        self.core.deadline().into_iter().chain(leaving).min()
    }

    /// When to be awake at the latest. A runtime's timers stand still during suspend, so whoever would sleep for long
    /// looks at the clock in between.
    fn wake(&self, now: Time, deadline: Option<Time>) -> Time {
        let fed = self.watchdog.as_ref().map_or(Time::NEVER, Watchdog::due);
        let longest = (now + LONGEST_SLEEP).min(fed);
        deadline.map_or(longest, |deadline| deadline.max(now).min(longest))
    }

    async fn wait(&mut self, now: Time, deadline: Option<Time>) -> Woken {
        if self.transport.is_behind() {
            // A flood must not keep the HTTP interface and the streams, on the same thread, from their turns.
            tokio::task::yield_now().await;
        }
        let span = self.wake(now, deadline).since(now);
        tokio::select! {
            biased;
            requested = self.inbox.requests.recv() => {
                requested.map_or(Woken::Abandoned, Woken::Asked)
            }
            () = self.transport.ready() => Woken::Ready,
            () = tokio::time::sleep(Wait::from_micros(span.as_micros())) => Woken::Due,
        }
    }

    fn receive(&mut self, now: Time) {
        while let Some(received) = self.transport.next(now) {
            match received.body {
                Some(body) if received.group => {
                    self.core.on_group(now, received.from, body, &self.inbox)
                }
                Some(body) => self.core.on_message(now, received.from, body, &self.inbox),
                None => self.core.on_met(now, received.from, received.address, &self.inbox),
            }
        }
    }

    fn discard(&mut self, now: Time) {
        for _ in 0..self.transport.discard(now, BACKLOG) {
            self.core.refuse("stale");
        }
    }

    fn flush(&mut self, now: Time) {
        for packet in core::mem::take(&mut self.core.outgoing) {
            match packet {
                Outgoing::Hello(address) => self.transport.hello(address),
                Outgoing::Learn(peer, addresses) => self.transport.learn(now, peer, &addresses),
                // Counted by the transport, which knows why.
                Outgoing::Message(to, body) => drop(self.transport.send(now, to, &body)),
                Outgoing::Group(body) => drop(self.transport.send_group(&body)),
            }
        }
    }

    fn answer(&mut self, now: Time, requested: Requested) {
        match requested {
            Requested::Status(reply) => {
                // A lease may be over since the last input.
                self.core.look(now, &self.inbox);
                let index = self.inbox.next_index() - 1;
                let keys = self.transport.sealer().status();
                let status = self.core.status(now, index, self.transport.counters(), keys);
                // Whoever asked may have gone.
                let _ = reply.send(status);
            }
            Requested::Keys(ring) => self.transport.sealer_mut().set_ring(&ring),
            Requested::Priority(election, worth) => {
                self.core.set_priority(now, &election, worth, &self.inbox);
            }
            Requested::Map(election, reply) => {
                let _ = reply.send(self.core.map_status(&election));
            }
            Requested::Neighbours { election, neighbours, problem } => {
                self.core.set_neighbours(now, &election, neighbours, problem, &self.inbox);
            }
            Requested::Cut(cut) => self.transport.set_cut(cut),
            Requested::Dirty(elections) => self.core.set_dirty(now, &elections, &self.inbox),
            Requested::Do(Request::Leave, reply) => {
                self.leave(now);
                let _ = reply.send(Ok(()));
            }
            Requested::Do(request, reply) => {
                let _ = reply.send(self.core.on_request(now, request, &self.inbox));
            }
        }
    }

    /// Hands over, then says goodbye.
    fn leave(&mut self, now: Time) {
        if self.leaving.is_none() {
            self.core.resign_all(now, &self.inbox);
            self.leaving = Some(Leaving { until: now + self.patience, said: false });
        }
        self.go_on_leaving(now);
    }

    fn go_on_leaving(&mut self, now: Time) {
        let Some(leaving) = self.leaving.filter(|leaving| !leaving.said) else { return };
        if !self.core.leads() || now >= leaving.until || self.core.is_alone() {
            self.core.leave(now, &self.inbox);
            self.leaving = Some(Leaving { until: now + GOODBYE, said: true });
        }
    }

    fn is_done(&self, now: Time) -> bool {
        let left = |leaving: Leaving| {
            leaving.said && (self.core.deadline().is_none() || now >= leaving.until)
        };
        !self.core.is_running() || self.leaving.is_some_and(left)
    }
}

/// Where others can reach us if all we know is that we listen everywhere: the address from which we would reach the
/// first of these, or the rest of the world. Nothing is sent.
pub(crate) fn own_address(listening: SocketAddr, towards: &[SocketAddr]) -> SocketAddr {
    let documentation = SocketAddr::from(([192, 0, 2, 1], 9));
    let route = |to: &SocketAddr| {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = std::net::UdpSocket::bind(any).ok()?;
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    if !listening.ip().is_unspecified() {
        return listening;
    }
    let ip = towards.iter().chain([&documentation]).find_map(route);
    SocketAddr::new(ip.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into()), listening.port())
}
