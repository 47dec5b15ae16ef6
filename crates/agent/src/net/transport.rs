//! The sockets: datagrams for everything that fits, a stream for what does not, one port for both.
//!
//! The task that owns the node waits for [`Transport::ready`], reads its clock, takes what arrived with
//! [`Transport::next`] until there is no more, and sends. Only `ready` waits; no peer can hold anything up.
//!
//! # Addresses
//!
//! A member has those it says it has, and is written to at the one it was last heard from, if that is one of them
//! or has answered a hello. Any other source address may be forged: to it goes no more than came from it, until
//! a hello sent there was answered. After three messages and two seconds without a sign of life the next address
//! is tried, with a hello beside the message in case the member has been restarted.
//!
//! # Streams
//!
//! A stream carries one message. Who sends it is known after its first 16 KiB, which is all that is allocated for
//! a stranger; strangers have two seconds for that, and there are [`INBOUND`] streams at a time, of them
//! [`INBOUND_EACH`] from one address.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time,
};

use bellwether_proto::{Duration, NodeId, Peer, Time, wire::MAX_DATAGRAM};
use rustix::net::sockopt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

pub(crate) use self::doubt::Misplaced;
use self::{
    doubt::{Asked, Doubt},
    group::Group,
    inbound::{StreamEvent, accept},
};
use tracing::{debug, trace};

use crate::{
    net::{
        refusal::Refusal,
        seal::{
            Answered, CHUNK, CHUNK_EXTRA, Content, MAX_HEADER, OpenStream, Sealer, chunk_prefix,
        },
    },
    status::Counters,
};

/// Both sockets of a node, and what is known of where its peers are. Must live in a tokio runtime.
#[derive(Debug)]
pub(crate) struct Transport {
    sealer: Sealer,
    udp: UdpSocket,
    group: Option<Group>,
    local: SocketAddr,
    routes: BTreeMap<NodeId, Route>,
    /// Hellos that have not been answered, by number, oldest first.
    asked: VecDeque<(u64, SocketAddr)>,
    /// Members found not to be where they say, that were not asked for yet.
    misplaced: Vec<Misplaced>,
    counters: Counters,
    dropped: [u64; Refusal::ALL.len()],
    /// Streams that were one too many, as far as there were also too many of them to report.
    untold: Arc<AtomicU64>,
    /// How much of this batch is left.
    batch: usize,
    packet: Box<[u8; MAX_DATAGRAM + 1]>,
    /// The body of the stream handed over last.
    streamed: Vec<u8>,
    out: Vec<u8>,
    events: mpsc::Receiver<StreamEvent>,
    arrived: Option<StreamEvent>,
    report: mpsc::Sender<StreamEvent>,
    outbound: Arc<Semaphore>,
    /// Whether the cable is pulled.
    cut: bool,
    /// Ends with the transport.
    tasks: JoinSet<()>,
}

/// What arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Received<'a> {
    /// Who sent it.
    pub from: Peer,
    /// From where. Of a stream, the port says nothing.
    pub address: SocketAddr,
    /// What it says; or nothing, if it answers a hello: from now on it can be sent to.
    pub body: Option<&'a [u8]>,
    /// Whether it was said to everybody.
    pub group: bool,
}

/// The sockets could not be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ({protocol}): {source}{}", hint(source))]
pub struct BindError {
    /// The address that was refused.
    pub address: SocketAddr,
    /// UDP or TCP.
    pub protocol: &'static str,
    /// What the system said.
    pub source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another agent runs there, or choose another port with --bind"
        }
        io::ErrorKind::AddrNotAvailable => "; this machine does not have that address, see --bind",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges, see --bind",
        _ => "",
    }
}

impl Transport {
    /// Listens on `address`, for datagrams and for streams. Port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// [`BindError`].
    pub(crate) async fn bind(address: SocketAddr, sealer: Sealer) -> Result<Self, BindError> {
        let (udp, tcp, local) = listen(address).await?;
        // Until the socket has said once that it takes packets, they would be given up.
        let writable = udp.writable().await;
        writable.map_err(|source| BindError { address, protocol: "UDP", source })?;
        let (report, events) = mpsc::channel(INBOUND + OUTBOUND);
        let mut tasks = JoinSet::new();
        let untold = Arc::new(AtomicU64::new(0));
        tasks.spawn(accept(tcp, report.clone(), Arc::clone(&untold)));
        Ok(Self {
            sealer,
            udp,
            group: None,
            local,
            routes: BTreeMap::new(),
            asked: VecDeque::with_capacity(ASKED),
            misplaced: Vec::new(),
            counters: Counters::default(),
            dropped: [0; Refusal::ALL.len()],
            untold,
            batch: BATCH,
            packet: Box::new([0; MAX_DATAGRAM + 1]),
            streamed: Vec::new(),
            out: Vec::with_capacity(MAX_DATAGRAM),
            events,
            arrived: None,
            report,
            outbound: Arc::new(Semaphore::new(OUTBOUND)),
            cut: false,
            tasks,
        })
    }

    /// Where we listen.
    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// What seals and opens.
    pub(crate) const fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// What seals and opens; to give it other keys.
    pub(crate) const fn sealer_mut(&mut self) -> &mut Sealer {
        &mut self.sealer
    }

    /// As if the cable were pulled, or plugged in again: what would go out or come in meanwhile is lost without a trace,
    /// as it would be, and so is not counted.
    pub(crate) const fn set_cut(&mut self, cut: bool) {
        self.cut = cut;
    }

    /// Also hears, and [speaks to](Self::send_group), this multicast group, on these network interfaces; if there are
    /// none, on the network of the address we are bound to, or else of the default route. Others on this machine may do so
    /// too. What is said goes no farther than the link.
    ///
    /// # Errors
    ///
    /// [`BindError`].
    pub(crate) fn join_group(
        &mut self,
        group: SocketAddrV4,
        interfaces: &[String],
    ) -> Result<(), BindError> {
        self.group = Some(Group::join(&self.udp, self.local.ip(), group, interfaces)?);
        Ok(())
    }

    /// Takes a member's word for it that another one lives, in this life and at these addresses, the best first.
    /// Addresses that nobody can have are passed over.
    pub(crate) fn learn(&mut self, now: Time, peer: Peer, addresses: &[SocketAddr]) {
        self.sealer.learn(peer);
        if !self.sealer.knows(peer.id) || !self.make_room(peer.id) {
            return;
        }
        let local = self.local.ip();
        let near = local.is_loopback() || local.is_unspecified();
        let usable = |address: &SocketAddr| {
            let ip = address.ip();
            let nowhere = ip.is_unspecified()
                || ip.is_multicast()
                || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
                || address.port() == 0;
            !nowhere && (near || !ip.is_loopback())
        };
        let route = self.routes.entry(peer.id).or_default();
        route.doubt.on_said(addresses);
        let addresses = addresses.iter().copied().map(canonical).filter(usable).take(ADDRESSES);
        if !addresses.clone().eq(route.said.iter().copied()) {
            route.said = addresses.collect();
        }
        let confirmed = match route.current {
            None => route.said.first().copied(),
            Some(current) if !route.proven && route.said.contains(&current) => Some(current),
            Some(_) => None,
        };
        if let Some(address) = confirmed {
            self.settle(now, peer.id, address);
        }
    }

    /// Where this member is written to at present.
    #[cfg(test)]
    pub(crate) fn address(&self, id: NodeId) -> Option<SocketAddr> {
        self.routes.get(&id)?.current
    }

    /// The same, if it is one that it says, or has answered there.
    pub(crate) fn proven(&self, id: NodeId) -> Option<SocketAddr> {
        let route = self.routes.get(&id)?;
        route.current.filter(|_| route.proven)
    }

    /// Who was found not to be where it says, since this was last asked.
    pub(crate) fn take_misplaced(&mut self) -> Vec<Misplaced> {
        core::mem::take(&mut self.misplaced)
    }

    /// Says hello at an address of which nothing is known: whoever lives there answers, which
    /// [`next`](Self::next) tells.
    pub(crate) fn hello(&mut self, address: SocketAddr) {
        let address = canonical(address);
        self.out.clear();
        match self.sealer.hello(&mut self.out) {
            Ok(number) => {
                self.note_asked(number, address);
                self.transmit(address);
            }
            Err(reason) => self.count(reason),
        }
    }

    fn note_asked(&mut self, number: u64, address: SocketAddr) {
        if self.asked.len() >= ASKED {
            self.asked.pop_front();
        }
        self.asked.push_back((number, address));
    }

    /// Whether there is room to note where one more is: whom the seal has forgotten nobody writes to.
    fn make_room(&mut self, id: NodeId) -> bool {
        if self.routes.len() >= Sealer::MOST_PEERS && !self.routes.contains_key(&id) {
            let sealer = &self.sealer;
            self.routes.retain(|&id, _| sealer.knows(id));
        }
        self.routes.len() < Sealer::MOST_PEERS || self.routes.contains_key(&id)
    }

    /// Sends to one member: by datagram, or by stream if it is too long for one. If the member has to be asked who
    /// it is first, the message waits for the answer; one does, and gives way to a later one.
    ///
    /// # Errors
    ///
    /// [`Refusal`], which is also counted. Datagrams get lost, so success promises nothing either.
    pub(crate) fn send(&mut self, now: Time, to: NodeId, body: &[u8]) -> Result<(), Refusal> {
        let sent = self.try_send(now, to, body);
        if let Err(reason) = sent {
            trace!(member = to.get(), bytes = body.len(), reason = reason.as_str(), "not sent");
            self.count(reason);
        }
        sent
    }

    /// Sends to everybody in our group.
    ///
    /// # Errors
    ///
    /// [`Refusal`], which is also counted.
    pub(crate) fn send_group(&mut self, body: &[u8]) -> Result<(), Refusal> {
        self.out.clear();
        let sealed = match self.group {
            Some(_) => self.sealer.seal_group(body, &mut self.out),
            None => Err(Refusal::NoAddress),
        };
        if let Err(reason) = sealed {
            self.count(reason);
            return Err(reason);
        }
        // Taken out: sending needs the rest of us.
        let Some(mut group) = self.group.take() else { return Ok(()) };
        let mut sent = Ok(());
        for way in 0..group.ways() {
            match group.choose(&self.udp, way) {
                Ok(()) => self.transmit(group.address()),
                Err(_) => {
                    self.count(Refusal::SocketError);
                    sent = Err(Refusal::SocketError);
                }
            }
        }
        self.group = Some(group);
        sent
    }

    /// Waits until something has arrived, and starts a new batch. May be dropped and called again.
    pub(crate) async fn ready(&mut self) {
        self.batch = BATCH;
        if self.arrived.is_some() {
            return;
        }
        tokio::select! {
            // An error shows itself, and is counted, when it is received from.
            _ = self.udp.readable() => {}
            _ = readable(self.group.as_ref()) => {}
            event = self.events.recv() => self.arrived = event,
        }
    }

    /// The next message of this batch, or none if there is none or the batch is at its end: see to the deadlines
    /// then, and come back by [`ready`](Self::ready).
    pub(crate) fn next(&mut self, now: Time) -> Option<Received<'_>> {
        while self.batch > 0 {
            self.batch -= 1;
            let event = self.arrived.take().or_else(|| self.events.try_recv().ok());
            if let Some(event) = event {
                if let Some((from, address)) = self.on_stream(now, event) {
                    return Some(Received {
                        from,
                        address,
                        body: Some(&self.streamed),
                        group: false,
                    });
                }
                continue;
            }
            match self.receive() {
                Ok(_) if self.cut => {}
                Ok((length, address)) => {
                    let address = canonical(address);
                    if let Some((from, body, group)) = self.on_datagram(now, length, address) {
                        let body = body.map(|body| &self.packet[body]);
                        return Some(Received { from, address, body, group });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => self.count(Refusal::SocketError),
            }
        }
        None
    }

    /// From either socket, ours first: nobody who floods the group keeps us from hearing what is for us.
    fn receive(&mut self) -> io::Result<(usize, SocketAddr)> {
        let would_block = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        match (self.udp.try_recv_from(&mut self.packet[..]), &self.group) {
            (Err(error), Some(group)) if would_block(&error) => {
                group.socket().try_recv_from(&mut self.packet[..])
            }
            (received, _) => received,
        }
    }

    /// Whether the batch ended before what has arrived did. There is no waiting in [`ready`](Self::ready) then, and
    /// under a flood there never is: whoever shares its thread with others must let them in between two batches.
    pub(crate) const fn is_behind(&self) -> bool {
        self.batch == 0
    }

    /// Throws away up to so many datagrams and streams that have arrived, whatever is left of the batch. Returns how
    /// many of them would have been messages.
    pub(crate) fn discard(&mut self, now: Time, most: usize) -> u64 {
        self.batch = most;
        let mut messages = 0;
        while self.next(now).is_some() {
            messages += 1;
        }
        self.batch = 0;
        messages
    }

    /// What was sent, received and refused.
    pub(crate) fn counters(&self) -> Counters {
        let mut dropped = self.dropped;
        dropped[Refusal::StreamLimit as usize] += self.untold.load(Ordering::Relaxed);
        let dropped = Refusal::ALL.iter().zip(dropped);
        let dropped = dropped.map(|(reason, count)| (reason.as_str(), count)).collect();
        Counters { dropped, ..self.counters.clone() }
    }

    /// Counts what was refused further up: a message that makes no sense.
    pub(crate) fn count(&mut self, reason: Refusal) {
        self.dropped[reason as usize] += 1;
    }

    fn try_send(&mut self, now: Time, to: NodeId, body: &[u8]) -> Result<(), Refusal> {
        if body.len() > Sealer::STREAM_ROOM {
            return Err(Refusal::TooLargeToSend);
        }
        let route = self.routes.get_mut(&to).ok_or(Refusal::NoAddress)?;
        let silent = route.on_send(now);
        let address = route.current.ok_or(Refusal::NoAddress)?;
        if silent {
            self.hello(address);
        }
        let unmet = !self.sealer.knows(to);
        let is_datagram = body.len() <= Sealer::ROOM;
        let route = self.routes.get_mut(&to).ok_or(Refusal::NoAddress)?;
        let most = body.len() + MAX_DATAGRAM - Sealer::ROOM;
        if unmet && !is_datagram {
            return Err(Refusal::Unmet);
        }
        if unmet || is_datagram && !route.proven && route.credit < most {
            let replaced = route.held.replace(body.into()).is_some();
            if route.may_ask(now) && !silent {
                self.hello(address);
            }
            if replaced {
                self.count(if unmet { Refusal::Unmet } else { Refusal::UnprovenAddress });
            }
            return Ok(());
        }
        if !is_datagram {
            return self.send_stream(to, address, body);
        }
        self.out.clear();
        self.sealer.seal(to, body, &mut self.out)?;
        if !route.proven {
            route.credit -= self.out.len();
        }
        self.transmit(address);
        Ok(())
    }

    fn send_stream(&mut self, to: NodeId, address: SocketAddr, body: &[u8]) -> Result<(), Refusal> {
        if self.cut {
            return Ok(());
        }
        let permit = Arc::clone(&self.outbound).try_acquire_owned();
        let permit = permit.map_err(|_| Refusal::StreamLimit)?;
        let mut bytes = Vec::new();
        self.sealer.seal_stream(to, body, &mut bytes)?;
        self.counters.sent += 1;
        self.counters.sent_bytes += bytes.len() as u64;
        let report = self.report.clone();
        // Finished ones are forgotten here, where new ones come from.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            let sent = timeout(SEND_DEADLINE, async {
                let mut stream = TcpStream::connect(address).await?;
                stream.write_all(&bytes).await?;
                stream.shutdown().await
            })
            .await;
            let failed = match sent {
                Ok(Ok(())) => None,
                Ok(Err(_)) => Some(Refusal::StreamBroken),
                Err(_) => Some(Refusal::StreamTimeout),
            };
            drop(permit);
            if let Some(reason) = failed {
                // Nobody is left to tell if the transport is gone.
                let _ = report.send(StreamEvent::Failed(reason)).await;
            }
        });
        Ok(())
    }

    /// Sends what is in `out`.
    fn transmit(&mut self, address: SocketAddr) {
        if self.cut {
            return;
        }
        let address = if self.local.is_ipv6() { mapped(address) } else { address };
        match self.udp.try_send_to(&self.out, address) {
            Ok(length) => {
                self.counters.sent += 1;
                self.counters.sent_bytes += length as u64;
                trace!(to = %address, bytes = length, "packet sent");
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.count(Refusal::SocketFull)
            }
            Err(_) => self.count(Refusal::SocketError),
        }
    }

    fn on_datagram(
        &mut self,
        now: Time,
        length: usize,
        address: SocketAddr,
    ) -> Option<(Peer, Option<Range<usize>>, bool)> {
        self.counters.received_bytes += length as u64;
        let opened = self.sealer.open(now, &mut self.packet[..length]);
        self.out.clear();
        if let Some(answered) = self.sealer.answer(&mut self.out) {
            if let Answered::Hello(number) = answered {
                self.note_asked(number, address);
            }
            self.transmit(address);
        }
        let opened = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                trace!(from = %address, bytes = length, reason = reason.as_str(), "packet refused");
                self.count(reason);
                return None;
            }
        };
        self.counters.received += 1;
        let from = opened.from;
        trace!(from = %address, bytes = length, member = from.id.get(), "packet received");
        match opened.content {
            Content::Hello => None,
            Content::Welcome { answers } => {
                let asked = self.asked.iter().position(|&asked| asked == (answers, address));
                // One with several addresses may answer from another than it was asked at.
                let whom = self.asked.iter().find(|&&(number, _)| number == answers);
                if let (Some(&(_, whom)), Some(route)) = (whom, self.routes.get_mut(&from.id))
                    && route.said.contains(&whom)
                {
                    route.doubt.on_answer();
                }
                self.on_heard(now, from.id, address, length);
                if let Some(asked) = asked {
                    self.asked.remove(asked);
                    self.settle(now, from.id, address);
                }
                Some((from, None, false))
            }
            Content::Message | Content::Group => {
                self.on_heard(now, from.id, address, length);
                Some((from, Some(opened.body), opened.content == Content::Group))
            }
        }
    }

    /// A genuine datagram of this member came from there, or was sent on from there by somebody in between.
    fn on_heard(&mut self, now: Time, id: NodeId, address: SocketAddr, length: usize) {
        if !self.make_room(id) {
            return;
        }
        let route = self.routes.entry(id).or_default();
        route.unanswered = None;
        match route.doubt.on_heard(now, address, &route.said) {
            Asked::Nobody => {}
            Asked::At(said) => self.hello(said),
            Asked::InVain(said) => self.misplaced.push(Misplaced { id, heard: address, said }),
        }
        let route = self.routes.entry(id).or_default();
        if route.current == Some(address) {
            if !route.proven {
                route.credit += length;
                if route.held.is_some() && route.may_ask(now) {
                    self.hello(address);
                }
            }
        } else if route.said.contains(&address) {
            self.settle(now, id, address);
        } else if route.current.is_none() {
            (route.current, route.proven, route.credit) = (Some(address), false, length);
        } else {
            // Perhaps it has moved.
            if route.stray != Some(address) {
                (route.stray, route.stray_credit) = (Some(address), 0);
            }
            route.stray_credit += length;
            if route.stray_credit >= Sealer::HELLO && route.is_time_to_ask(now) {
                route.stray_credit -= Sealer::HELLO;
                self.hello(address);
            }
        }
    }

    /// This is where it is.
    fn settle(&mut self, now: Time, id: NodeId, address: SocketAddr) {
        let route = self.routes.entry(id).or_default();
        (route.current, route.proven, route.stray) = (Some(address), true, None);
        if let Some(held) = route.held.take() {
            // Counted if it fails.
            let _ = self.send(now, id, &held);
        }
    }

    fn on_stream(&mut self, now: Time, event: StreamEvent) -> Option<(Peer, SocketAddr)> {
        if self.cut {
            return None;
        }
        match event {
            StreamEvent::Begun { head, mut chunk, last, reply } => {
                match self.sealer.open_stream(now, &head, &mut chunk, last) {
                    // Whoever asked may have run out of time.
                    Ok(stream) => drop(reply.send((stream, chunk))),
                    Err(reason) => self.count(reason),
                }
                None
            }
            StreamEvent::Complete { from, address, body } => {
                self.counters.received += 1;
                if let Some(route) = self.routes.get_mut(&from.id) {
                    route.unanswered = None;
                }
                self.streamed = body;
                Some((from, canonical(address)))
            }
            StreamEvent::Failed(reason) => {
                debug!(reason = reason.as_str(), "a stream came to nothing");
                self.count(reason);
                None
            }
        }
    }
}

/// Where one member is.
#[derive(Debug, Default)]
struct Route {
    /// Where it says it is, the best first.
    said: Vec<SocketAddr>,
    /// Where it is written to.
    current: Option<SocketAddr>,
    /// Whether `current` is one it says, or has answered there.
    proven: bool,
    /// If not: how much more came from there than went.
    credit: usize,
    /// Where it was heard besides, and how much came from there.
    stray: Option<SocketAddr>,
    stray_credit: usize,
    /// What waits for an answer.
    held: Option<Box<[u8]>>,
    /// Since when, and how often, it was sent to without a sign of life.
    unanswered: Option<(Time, u32)>,
    asked: Option<Time>,
    doubt: Doubt,
}

impl Route {
    /// Whether it has been silent for so long that it should be asked, at the next address.
    fn on_send(&mut self, now: Time) -> bool {
        let (since, count) = self.unanswered.unwrap_or((now, 0));
        self.unanswered = Some((since, count.saturating_add(1)));
        if count < SILENCE_COUNT || now.since(since) < SILENCE || !self.proven {
            return false;
        }
        self.unanswered = Some((now, 0));
        let at = self.said.iter().position(|&said| Some(said) == self.current);
        if let Some(&next) = self.said.get(at.map_or(0, |at| (at + 1) % self.said.len())) {
            self.current = Some(next);
        }
        true
    }

    fn is_time_to_ask(&mut self, now: Time) -> bool {
        let due = self.asked.is_none_or(|asked| now.since(asked) >= ASK_EVERY);
        if due {
            self.asked = Some(now);
        }
        due
    }

    /// Whether a hello may go to the current address now; pays for it.
    fn may_ask(&mut self, now: Time) -> bool {
        if !self.proven && self.credit < Sealer::HELLO || !self.is_time_to_ask(now) {
            return false;
        }
        if !self.proven {
            self.credit -= Sealer::HELLO;
        }
        true
    }
}

async fn listen(address: SocketAddr) -> Result<(UdpSocket, TcpListener, SocketAddr), BindError> {
    let failed = |protocol| move |source| BindError { address, protocol, source };
    let mut tries = 0;
    loop {
        let udp = UdpSocket::bind(address).await.map_err(failed("UDP"))?;
        // What is granted is good enough.
        let _ = sockopt::set_socket_recv_buffer_size(&udp, RECEIVE_BUFFER);
        let local = udp.local_addr().map_err(failed("UDP"))?;
        match TcpListener::bind(local).await {
            Ok(tcp) => return Ok((udp, tcp, local)),
            // The port that was free for the one need not be free for the other.
            Err(_) if address.port() == 0 && tries < 16 => tries += 1,
            Err(source) => return Err(failed("TCP")(source)),
        }
    }
}

async fn readable(group: Option<&Group>) {
    match group {
        // An error shows itself when it is received from.
        Some(group) => drop(group.socket().readable().await),
        None => std::future::pending().await,
    }
}

/// One form for one address: a socket for both versions shows those of the older one in the newer one's form.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        // With its zone, without which a link-local address means nothing.
        IpAddr::V6(_) => address,
    }
}

fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Datagrams and stream events taken between two looks at the deadlines: at 10 µs each, under a millisecond.
const BATCH: usize = 64;
/// What the kernel is asked to keep until it is read. Its own choice is full after 100 to 250 datagrams, which at 50,000 a
/// second is a few milliseconds of not being scheduled, and then what members say is lost among the rest.
const RECEIVE_BUFFER: usize = 1 << 20;
/// Hellos remembered until they are answered.
const ASKED: usize = 256;
/// Addresses kept of one member.
const ADDRESSES: usize = 8;
/// Messages to a member without a sign of life, and for how long, before the next address is tried.
const SILENCE_COUNT: u32 = 3;
const SILENCE: Duration = Duration::from_secs(2);
/// How often one member is asked at an address that may be forged.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Streams received at a time.
pub(crate) const INBOUND: usize = 32;
/// Of these, from one address.
pub(crate) const INBOUND_EACH: usize = 4;
/// Streams sent at a time.
const OUTBOUND: usize = 16;
/// For all of a stream that we send.
const SEND_DEADLINE: time::Duration = time::Duration::from_secs(15);

mod doubt;
mod group;
mod inbound;
#[cfg(test)]
mod tests;
