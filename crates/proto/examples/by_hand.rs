//! Three nodes on threads, with sockets of the standard library and no runtime: `cargo run -p bellwether-proto --example
//! by_hand`. All there is to a host: tell the machine the time, what arrived and that it is due; do what it asks.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example of a host, which owns the clock and the sockets"
)]

use std::{
    io,
    net::UdpSocket,
    thread,
    time::{Duration as Wait, Instant},
};

use bellwether_proto::{
    Boot, Duration, Effect, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
    election::churn_tolerant::{self, Form, Variant},
    membership::medley::{self, Contact, Strategy},
    stack::{Group, Message, Stack},
    wire::{Reader, Wire},
};

const NODES: u64 = 3;

pub fn main() -> io::Result<()> {
    let sockets: Vec<UdpSocket> =
        (0..NODES).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<io::Result<_>>()?;
    let places = sockets.iter().map(UdpSocket::local_addr).collect::<io::Result<Vec<_>>>()?;
    let nodes = sockets.into_iter().zip(0..).map(|(socket, me)| {
        let places = places.clone();
        thread::spawn(move || host(me, &socket, |id| places[id as usize]))
    });
    let nodes: Vec<_> = nodes.collect();
    let leaders: Vec<NodeId> = nodes
        .into_iter()
        .map(|node| node.join().map_err(|_| io::Error::other("a node panicked"))?)
        .collect::<io::Result<_>>()?;
    println!("they follow {leaders:?}");
    assert!(leaders.windows(2).all(|pair| pair[0] == pair[1]), "they agree");
    Ok(())
}

/// Runs one node for three seconds. What is sent begins with the sender's number, where a real host would seal it.
fn host(
    me: u64,
    socket: &UdpSocket,
    place: impl Fn(u64) -> std::net::SocketAddr,
) -> io::Result<NodeId> {
    let life = |id| Peer::new(NodeId::new(id), Boot::new(1));
    let membership = medley::Config::new(Strategy::Swim, medley::Form::Hardened);
    let election = churn_tolerant::Config::new(Variant::Hybrid, Form::Hardened)
        .with_grace(Some(Duration::from_millis(500)));
    let others = (0..NODES).filter(|&id| id != me).map(|id| Contact {
        id: NodeId::new(id),
        distance: 1.0,
        neighbour: true,
        member: true,
    });
    let elections = [(Group::named("backup"), election)];
    let contacts = others.collect();
    let mut node = Stack::new(life(me), membership, &elections, Seed::new(me), None, contacts);
    let mut out = Outbox::new();
    let start = Instant::now();
    let clock = || Time::from_micros(start.elapsed().as_micros() as u64);
    // What a machine refuses it has counted as a reason: nothing here can do anything about it.
    let _ = node.handle(clock(), Input::Start, &mut out);
    while start.elapsed() < Wait::from_secs(3) {
        while let Some(effect) = out.pop() {
            let (to, message) = match effect {
                Effect::Send { to, message } => (vec![to.get()], message),
                Effect::Multicast(message) | Effect::Broadcast(message) => {
                    ((0..NODES).filter(|&id| id != me).collect(), message)
                }
                Effect::Persist(_) | Effect::Emit(_) => continue,
            };
            let mut packet = me.to_le_bytes().to_vec();
            message.encode(&mut packet);
            for id in to {
                socket.send_to(&packet, place(id))?;
            }
        }
        let due = node.deadline().map_or(Duration::from_secs(1), |(at, _)| at.since(clock()));
        let wait = due.as_micros().clamp(1_000, 50_000);
        socket.set_read_timeout(Some(Wait::from_micros(wait)))?;
        let mut packet = [0; 1_500];
        if let Ok((length, _)) = socket.recv_from(&mut packet) {
            let (from, body) = packet[..length].split_at(8.min(length));
            let from = from.try_into().map(u64::from_le_bytes);
            let message = Message::decode(&mut Reader::new(body));
            if let (Ok(from), Ok(message)) = (from, message) {
                let from = life(from);
                let input = Input::Message { from, via: from.id, message: &message };
                let _ = node.handle(clock(), input, &mut out);
            }
        }
        let _ = node.handle(clock(), Input::Timeout, &mut out);
    }
    node.leadership().leader.ok_or_else(|| io::Error::other("nobody leads"))
}
