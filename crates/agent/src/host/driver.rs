//! The task that owns a node: its machine, its sockets, its clock.
//!
//! ```text
//! wait for a request, a packet, the disk or the next deadline
//! read the clock
//! was the process stopped? throw away what waited in the sockets meanwhile; the machine gives up leading by itself
//! apply what arrived, then what is due
//! read the clock
//! was the process stopped meanwhile? throw away what is to be sent, too
//! send
//! ```
//!
//! The clock is read before the sockets and input is applied before timers: who was stopped for a minute must
//! neither renew anything with old mail nor accuse those whose answers wait in its own buffer. It is read again before
//! anything is sent: what was true before the stop need not be any more. The machine counts from its last input, so
//! nothing in the loop is too long to be noticed.

use std::{net::SocketAddr, sync::Arc, time::Duration as Wait};

use bellwether_proto::{Boot, Duration, Time};

use crate::{
    host::{
        adapter::{Adapter, Outgoing},
        clock,
        handle::{Error, Handle, Inbox, Request, Requested},
        notify::Watchdog,
    },
    net::transport::Transport,
    status::{KeyStatus, Status},
};

/// A running node.
pub(crate) struct Driver {
    node: Adapter,
    transport: Transport,
    inbox: Inbox,
    watchdog: Option<Watchdog>,
    /// When the answers were last put where whoever asks finds them.
    published: Time,
    /// The last whole status, and when it was made: a crowd of askers costs no more than one.
    status: Option<(Time, Arc<Status>)>,
}

enum Woken {
    Asked(Requested),
    Abandoned,
    Ready,
    Written(bool),
    Due,
}

/// Packets thrown away at most after a stall.
const BACKLOG: usize = 4096;
/// How often an agent without an address looks whether it has one. Arbitrary.
const LOOK_AGAIN: Wait = Wait::from_secs(5);
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How long a whole status is good enough for the next one who asks.
const FRESH: Duration = Duration::from_millis(50);

impl Driver {
    pub(crate) fn new(
        node: Adapter,
        transport: Transport,
        inbox: Inbox,
        watchdog: Option<Watchdog>,
    ) -> Self {
        Self { node, transport, inbox, watchdog, published: Time::ZERO, status: None }
    }

    /// Runs until it has left, or nobody holds a handle any more; or until others tell of a later life of this node
    /// before any of them has known this one: that life.
    pub(crate) async fn run(mut self) -> Option<Boot> {
        self.node.start(clock::now(), &self.inbox);
        loop {
            let before = clock::now();
            if self.node.is_late(before) {
                self.node.outgoing.clear();
            }
            self.flush(before);
            self.publish(before);
            if let Some(watchdog) = &mut self.watchdog {
                watchdog.feed(before);
            }
            if !self.node.is_running() {
                return None;
            }
            let deadline = self.node.deadline();
            let woken = self.wait(before, deadline).await;
            let now = clock::now();
            if self.node.is_late(now) {
                self.discard(now);
            }
            match woken {
                Woken::Asked(requested) => self.answer(now, requested),
                Woken::Abandoned => self.node.leave(now, &self.inbox),
                Woken::Ready => {
                    if let Some(later) = self.receive(now) {
                        return Some(later);
                    }
                }
                Woken::Written(kept) => self.node.on_written(now, kept, &self.inbox),
                Woken::Due => {}
            }
            // The node's time does not go back: packets were handed over later than we woke.
            let now = clock::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.node.on_deadline(now, &self.inbox);
            }
        }
    }

    /// Ages and counts move though nobody leads another way.
    fn publish(&mut self, now: Time) {
        if now.since(self.published) >= LONGEST_SLEEP {
            self.published = now;
            self.node.publish(now, &self.inbox);
        }
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
            kept = self.node.written() => Woken::Written(kept),
            requested = self.inbox.requests.recv() => {
                requested.map_or(Woken::Abandoned, Woken::Asked)
            }
            () = self.transport.ready() => Woken::Ready,
            () = tokio::time::sleep(Wait::from_micros(span.as_micros())) => Woken::Due,
        }
    }

    /// Hands over what has arrived. If our life is one of the past and nobody has taken it for another yet, the later one.
    fn receive(&mut self, now: Time) -> Option<Boot> {
        while let Some(received) = self.transport.next(now) {
            // What is left was sent before we were stopped. The machine finds out by its next input.
            let now = clock::now();
            if self.node.is_late(now) {
                self.discard(now);
                break;
            }
            match received.body {
                Some(body) => self.node.on_message(now, received.from, body, &self.inbox),
                None => self.node.on_met(now, received.from, received.address, &self.inbox),
            }
        }
        for misplaced in self.transport.take_misplaced() {
            self.node.on_misplaced(misplaced, &self.inbox);
        }
        while let Some((who, theirs)) = self.transport.sealer_mut().take_foreign() {
            self.node.on_foreign(who, theirs, self.transport.sealer().speaks(), &self.inbox);
        }
        self.node.on_peers(self.transport.sealer().peers(), &self.inbox);
        let by = self.transport.sealer().superseded()?;
        if !self.transport.sealer().was_first() {
            return Some(by);
        }
        self.node.on_superseded(clock::now(), by, &self.inbox);
        None
    }

    fn discard(&mut self, now: Time) {
        for _ in 0..self.transport.discard(now, BACKLOG) {
            self.node.refuse("stale");
        }
    }

    fn flush(&mut self, now: Time) {
        for packet in core::mem::take(&mut self.node.outgoing) {
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
        if !matches!(requested, Requested::Status(_)) {
            // Whoever has asked for something sees what came of it.
            self.status = None;
        }
        match requested {
            Requested::Status(reply) => {
                // Whoever asked may have gone.
                let _ = reply.send(self.status(now));
            }
            Requested::Keys(ring) => self.transport.sealer_mut().set_ring(&ring),
            Requested::Priority(election, worth) => {
                self.node.set_priority(now, &election, worth, &self.inbox);
            }
            Requested::Map(election, reply) => {
                let _ = reply.send(self.node.map_status(&election));
            }
            Requested::Neighbours { election, neighbours, problem } => {
                self.node.set_neighbours(now, &election, neighbours, problem, &self.inbox);
            }
            Requested::Advertise(address) => self.node.advertise(now, address, &self.inbox),
            Requested::Sources(names) => self.node.set_sources(names),
            Requested::Found(found) => self.node.on_found(now, found, &self.inbox),
            Requested::Peers(reply) => {
                let _ = reply.send(self.node.peers(|id| self.transport.proven(id)));
            }
            Requested::Cut(cut) => self.transport.set_cut(cut),
            Requested::Dirty(elections) => self.node.set_dirty(now, &elections, &self.inbox),
            Requested::Do(Request::Leave, reply) => {
                self.node.leave(now, &self.inbox);
                let _ = reply.send(Ok(()));
            }
            Requested::Do(request, reply) => {
                let _ = reply.send(self.node.on_request(now, request, &self.inbox));
            }
        }
    }

    fn status(&mut self, now: Time) -> Arc<Status> {
        if let Some((made, status)) = &self.status
            && now.since(*made) < FRESH
        {
            return Arc::clone(status);
        }
        // A lease may be over since the last input.
        self.node.look(now, &self.inbox);
        let index = self.inbox.next_index() - 1;
        let (keys, used) =
            (self.transport.sealer().status(), self.transport.sealer().keys_in_use());
        let keys = KeyStatus { members: self.node.key_users(now, used), ..keys };
        let (counters, peers) = (self.transport.counters(), self.transport.sealer().peers());
        let status = Arc::new(self.node.status(now, index, counters, keys, peers));
        self.status = Some((now, Arc::clone(&status)));
        status
    }
}

/// Waits for a way to those that there are to join, which there is not yet, and says by which of our addresses it goes. A
/// node that starts before its network is up must not be known by hearsay alone for the rest of its life.
pub(crate) async fn find_own_address(local: SocketAddr, fixed: Vec<SocketAddr>, handle: Handle) {
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        // By now names may stand for addresses.
        let Ok(status) = handle.status().await else { return };
        let named = status.sources.iter().flat_map(|source| source.addresses.iter().copied());
        let towards: Vec<SocketAddr> = fixed.iter().copied().chain(named).collect();
        if let Some(own) = own_address(local, &towards) {
            // A node that has stopped needs no address.
            let _: Result<_, Error> = handle.advertise(own).await;
            return;
        }
    }
}

/// Where others can reach us if all we know is that we listen everywhere: the address from which we would reach the
/// first of these, or the rest of the world. None if there is no way anywhere yet, as before the network is up. Nothing is
/// sent.
pub(crate) fn own_address(listening: SocketAddr, towards: &[SocketAddr]) -> Option<SocketAddr> {
    let documentation = SocketAddr::from(([192, 0, 2, 1], 9));
    let route = |to: &SocketAddr| {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = std::net::UdpSocket::bind(any).ok()?;
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    if !listening.ip().is_unspecified() {
        return Some(listening);
    }
    let known = towards.iter().filter(|to| to.is_ipv4() || listening.is_ipv6());
    let ip = known.chain([&documentation]).find_map(route)?;
    Some(SocketAddr::new(ip, listening.port()))
}
