//! Three nodes on threads, with sockets of the standard library and no runtime: `cargo run -p bellwether-proto --example
//! by_hand`. They hold a leased election, of which at most one leader may act at any instant.
//!
//! All there is to a host: tell the node the time, what has arrived and that it is due; do what it asks.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example of a host, which owns the clock and the sockets"
)]

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    thread,
    time::{Duration as Wait, Instant},
};

use bellwether_proto::{
    Boot, Duration, Effect, ElectionId, Input, InputOf, Leadership, Machine, NodeId, Outbox, Peer,
    Seed, Time,
    node::{
        ElectionSettings, LeasedSettings, Message, ModeSettings, Node, Settings, SettingsError,
        TimingProfile,
    },
};

const NAMES: [&str; 3] = ["kitchen", "cellar", "attic"];
/// Long enough to find each other, wait out what a past life may have promised, and elect.
const RUNS: Wait = Wait::from_secs(6);

pub fn main() -> io::Result<()> {
    let sockets = NAMES.map(|_| UdpSocket::bind("127.0.0.1:0"));
    let sockets = sockets.into_iter().collect::<io::Result<Vec<_>>>()?;
    let places = sockets.iter().map(UdpSocket::local_addr).collect::<io::Result<Vec<_>>>()?;
    let start = Instant::now();
    let hosts: Vec<_> = sockets
        .into_iter()
        .zip(0..)
        .map(|(socket, me)| {
            let places = places.clone();
            thread::spawn(move || host(me, &socket, &places, start))
        })
        .collect();
    let answers = hosts
        .into_iter()
        .map(|host| host.join().map_err(|_| io::Error::other("a host panicked"))?)
        .collect::<io::Result<Vec<Leadership>>>()?;
    for (name, answer) in NAMES.iter().zip(&answers) {
        println!("{name} follows {:?} under {:?}", answer.leader, answer.epoch);
    }
    let first = (answers[0].leader, answers[0].epoch);
    assert!(first.0.is_some(), "somebody leads");
    assert!(answers.iter().all(|answer| (answer.leader, answer.epoch) == first), "they agree");
    Ok(())
}

/// The node of one host. The others' names are in its settings, so that two of three can back a leader; their identities
/// it is told, so that it can ask them for their lists.
fn node(me: usize) -> Result<Node, SettingsError> {
    let backup = ModeSettings::Leased(LeasedSettings::of(NAMES.map(String::from)));
    let elections = vec![ElectionSettings::of("backup", backup)];
    let plan = Settings::new(NAMES[me], TimingProfile::Local.timing(), elections).plan()?;
    // A host that restarts counts its boot number up, and passes what the node persisted last instead of `None`.
    let node = Node::new(peer(me), plan, Seed::new(me as u64), None);
    Ok(node.with_seeds((0..NAMES.len()).map(|other| peer(other).id).collect()))
}

fn peer(number: usize) -> Peer {
    Peer::new(NodeId::new(number as u64), Boot::new(1))
}

/// Runs one node, and returns what it answers in the end.
fn host(
    me: usize,
    socket: &UdpSocket,
    places: &[SocketAddr],
    start: Instant,
) -> io::Result<Leadership> {
    let clock = || Time::from_micros(start.elapsed().as_micros() as u64);
    let mut node = node(me).map_err(io::Error::other)?;
    let mut out = Outbox::new();
    let mut refused = 0;
    let mut tell = |node: &mut Node, input: InputOf<'_, Node>| -> io::Result<()> {
        if node.handle(clock(), input, &mut out).is_err() {
            refused += 1;
        }
        while let Some(effect) = out.pop() {
            match effect {
                // What is sent begins with the sender's number, where a real host would seal it.
                Effect::Send { to, message } => {
                    let packet = [&[me as u8], &message.to_packet()[..]].concat();
                    socket.send_to(&packet, places[to.get() as usize])?;
                }
                Effect::Broadcast(_) | Effect::Multicast(_) => {
                    unreachable!("leased elections are held by word from node to node")
                }
                // A real host writes it down before it sends what follows. These nodes do not restart.
                Effect::Persist(_) => {}
                Effect::Emit(event) => println!("{}: {event:?}", NAMES[me]),
            }
        }
        Ok(())
    };
    tell(&mut node, Input::Start)?;
    while start.elapsed() < RUNS {
        let due = node.deadline().map_or(Duration::from_secs(1), |(at, _)| at.since(clock()));
        let wait = Wait::from_micros(due.as_micros().clamp(1_000, 50_000));
        socket.set_read_timeout(Some(wait))?;
        let mut packet = [0; 1_500];
        if let Ok((length, _)) = socket.recv_from(&mut packet)
            && let Some((&from, body)) = packet[..length].split_first()
            && let Ok(message) = Message::from_packet(body)
        {
            let from = peer(from.into());
            tell(&mut node, Input::Message { from, via: from.id, message: &message })?;
        }
        // Early timeouts are harmless.
        tell(&mut node, Input::Timeout)?;
    }
    println!("{} refused {refused} inputs", NAMES[me]);
    Ok(node.leadership_of(ElectionId::named("backup"), clock()))
}
