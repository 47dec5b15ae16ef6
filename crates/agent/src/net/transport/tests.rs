use std::{future::Future, net::Ipv4Addr};

use bellwether_proto::Boot;

use super::{inbound::HEAD_DEADLINE, *};
use crate::net::key::{Key, KeyRing};

const NOW: Time = Time::from_micros(10_000_000);

fn peer(id: u64, boot: u64) -> Peer {
    Peer::new(NodeId::new(id), Boot::new(boot))
}

fn sealer(me: Peer) -> Sealer {
    Sealer::new(&KeyRing::new(Key::from_bytes([7; 32])), "farm", me)
}

/// Free a moment ago.
fn free_port() -> u16 {
    let socket = std::net::UdpSocket::bind(loopback(0)).unwrap();
    socket.local_addr().unwrap().port()
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)
}

async fn transport(me: Peer) -> Transport {
    Transport::bind(loopback(0), sealer(me)).await.unwrap()
}

async fn raw() -> UdpSocket {
    UdpSocket::bind(loopback(0)).await.unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(time::Duration::from_secs(20), future).await.expect("in twenty seconds")
}

/// What two transports have received: which of them, from whom, what.
type Log = Vec<(usize, Peer, Option<Vec<u8>>)>;

fn drain(which: usize, transport: &mut Transport, now: Time, log: &mut Log) {
    while let Some(received) = transport.next(now) {
        log.push((which, received.from, received.body.map(<[u8]>::to_vec)));
    }
}

/// Runs both until the condition holds.
async fn run_until(
    a: &mut Transport,
    b: &mut Transport,
    now: Time,
    done: impl Fn(&Log, &Transport, &Transport) -> bool,
) -> Log {
    let mut log = Log::new();
    within(async {
        loop {
            drain(0, a, now, &mut log);
            drain(1, b, now, &mut log);
            if done(&log, a, b) {
                break;
            }
            tokio::select! { () = a.ready() => {}, () = b.ready() => {} }
        }
    })
    .await;
    log
}

async fn introduce(a: &mut Transport, b: &mut Transport) {
    a.hello(b.local());
    run_until(a, b, NOW, |log, _, _| log.contains(&(0, peer(2, 1), None))).await;
    a.send(NOW, NodeId::new(2), &[0; 100]).unwrap();
    run_until(a, b, NOW, |log, _, _| log.iter().any(|entry| entry.0 == 1)).await;
}

async fn pair() -> (Transport, Transport) {
    (transport(peer(1, 1)).await, transport(peer(2, 1)).await)
}

fn dropped(transport: &Transport, reason: Refusal) -> u64 {
    transport.counters().dropped[reason.as_str()]
}

#[tokio::test]
async fn an_address_is_enough_to_start_talking() {
    let (mut a, mut b) = pair().await;
    introduce(&mut a, &mut b).await;
    // It came from an address nobody vouches for: the answer may not be longer, and waits.
    let answer = [5; 900];
    b.send(NOW, NodeId::new(1), &answer).unwrap();
    let log = run_until(&mut a, &mut b, NOW, |log, _, _| {
        log.iter().any(|(at, _, body)| *at == 0 && body.is_some())
    })
    .await;
    assert!(log.contains(&(1, peer(1, 1), None)), "asked, and answered: {log:?}");
    assert!(log.contains(&(0, peer(2, 1), Some(answer.to_vec()))));
    assert_eq!(
        (a.address(NodeId::new(2)), b.address(NodeId::new(1))),
        (Some(b.local()), Some(a.local()))
    );
    let counters = a.counters();
    assert_eq!(counters.dropped.len(), Refusal::ALL.len());
    assert_eq!(counters.dropped.values().sum::<u64>(), 0, "{counters:?}");
    // From here on a message is a packet and nothing else.
    let before = (a.counters().sent, b.counters().sent);
    for _ in 0..50 {
        a.send(NOW, NodeId::new(2), b"ping").unwrap();
        run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
        b.send(NOW, NodeId::new(1), b"ack").unwrap();
        run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
    }
    assert_eq!((a.counters().sent, b.counters().sent), (before.0 + 50, before.1 + 50));
}

#[tokio::test]
async fn hearsay_of_a_life_and_an_address_needs_no_hello() {
    let (mut a, mut b) = pair().await;
    a.learn(NOW, peer(2, 1), &[b.local()]);
    b.learn(NOW, peer(1, 1), &[a.local()]);
    a.send(NOW, NodeId::new(2), b"ping").unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| {
        log.contains(&(1, peer(1, 1), Some(b"ping".to_vec())))
    })
    .await;
    b.send(NOW, NodeId::new(1), &[1; 1_000]).unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| {
        log.contains(&(0, peer(2, 1), Some(vec![1; 1_000])))
    })
    .await;
    assert_eq!((a.counters().sent, b.counters().sent), (1, 1));
    assert_eq!(a.send(NOW, NodeId::new(9), b"x"), Err(Refusal::NoAddress));
    assert_eq!(dropped(&a, Refusal::NoAddress), 1);
}

#[tokio::test]
async fn what_does_not_fit_goes_by_stream_whole() {
    let (mut a, mut b) = pair().await;
    introduce(&mut a, &mut b).await;
    for length in [Sealer::ROOM + 1, 16_384, 50_000, Sealer::STREAM_ROOM] {
        let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        a.send(NOW, NodeId::new(2), &body).unwrap();
        let log = run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
        assert_eq!(log, [(1, peer(1, 1), Some(body))], "{length} bytes");
    }
    let more = vec![0; Sealer::STREAM_ROOM + 1];
    assert_eq!(a.send(NOW, NodeId::new(2), &more), Err(Refusal::TooLargeToSend));
    // Nobody there: counted, and nothing waits for it.
    a.learn(NOW, peer(3, 1), &[loopback(1)]);
    a.send(NOW, NodeId::new(3), &more[1..]).unwrap();
    run_until(&mut a, &mut b, NOW, |_, a, _| dropped(a, Refusal::StreamBroken) == 1).await;
}

#[tokio::test]
async fn a_pulled_cable_lets_nothing_through_either_way_until_it_is_back() {
    let (mut a, mut b) = pair().await;
    introduce(&mut a, &mut b).await;
    a.set_cut(true);
    let sent = a.counters().sent;
    a.send(NOW, NodeId::new(2), b"lost").unwrap();
    a.send(NOW, NodeId::new(2), &[0; 50_000]).unwrap();
    assert_eq!(a.counters().sent, sent, "nothing goes out");
    b.learn(NOW, peer(1, 1), &[a.local()]);
    b.send(NOW, NodeId::new(1), b"lost").unwrap();
    b.send(NOW, NodeId::new(1), &[0; 50_000]).unwrap();
    // The datagram, and the beginning of the stream.
    let mut log = Log::new();
    for _ in 0..2 {
        within(a.ready()).await;
        drain(0, &mut a, NOW, &mut log);
    }
    assert_eq!(log, [], "nothing comes in");
    a.set_cut(false);
    a.send(NOW, NodeId::new(2), b"there").unwrap();
    let log = run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
    assert_eq!(log, [(1, peer(1, 1), Some(b"there".to_vec()))]);
    b.send(NOW, NodeId::new(1), b"back").unwrap();
    let log = run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
    assert_eq!(log, [(0, peer(2, 1), Some(b"back".to_vec()))]);
}

#[tokio::test]
async fn strangers_get_no_answer_and_every_one_is_counted() {
    let (mut a, mut b) = pair().await;
    let stranger = raw().await;
    let genuine = {
        let mut other = Sealer::new(&KeyRing::new(Key::from_bytes([8; 32])), "farm", peer(3, 1));
        let mut packet = Vec::new();
        other.hello(&mut packet).unwrap();
        packet
    };
    for (bytes, times) in [(&[][..], 3), (&[0x17; 900], 5), (&[0xB1; 1_400], 7), (&genuine, 11)] {
        for _ in 0..times {
            stranger.send_to(bytes, a.local()).await.unwrap();
        }
    }
    run_until(&mut a, &mut b, NOW, |_, a, _| a.counters().dropped.values().sum::<u64>() == 26)
        .await;
    for (reason, count) in [
        (Refusal::Short, 3),
        (Refusal::NotOurs, 5),
        (Refusal::TooLarge, 7),
        (Refusal::UnknownKey, 11),
    ] {
        assert_eq!(dropped(&a, reason), count, "{reason}");
    }
    assert_eq!((a.counters().sent, a.counters().received), (0, 0));
    assert!(stranger.try_recv(&mut [0; 9]).is_err());
}

#[tokio::test]
async fn a_flood_does_not_keep_the_owner_from_its_deadlines() {
    let mut a = transport(peer(1, 1)).await;
    let stranger = raw().await;
    for _ in 0..100 {
        stranger.send_to(&[0; 50], a.local()).await.unwrap();
    }
    a.ready().await;
    assert_eq!(a.next(NOW), None);
    assert_eq!(dropped(&a, Refusal::NotOurs), BATCH as u64);
    assert_eq!(a.next(NOW), None, "the batch is over");
    within(a.ready()).await;
    assert_eq!(a.next(NOW), None);
    assert_eq!(dropped(&a, Refusal::NotOurs), 100);
}

#[tokio::test]
async fn what_waited_during_a_stall_is_thrown_away_however_much_it_is() {
    let (mut a, mut b) = pair().await;
    introduce(&mut a, &mut b).await;
    for _ in 0..150 {
        a.send(NOW, NodeId::new(2), b"old").unwrap();
    }
    within(b.ready()).await;
    assert_eq!(b.discard(NOW, 10), 10, "no more than it is told");
    assert!(b.is_behind());
    assert_eq!(b.discard(NOW, 4_096), 140);
    assert_eq!(b.next(NOW), None);
    a.send(NOW, NodeId::new(2), b"new").unwrap();
    let log = run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
    assert_eq!(log, [(1, peer(1, 1), Some(b"new".to_vec()))]);
}

/// Noise, forged members, forged strangers, hellos recorded of a member and of somebody long gone: 20,000 each, every
/// packet from an address of its own and nearly every one under an identity of its own.
#[tokio::test]
async fn a_hundred_thousand_forged_sources_leave_nothing_behind() {
    const FORGED: u64 = 1 << 40;
    let (mut a, mut b) = pair().await;
    introduce(&mut a, &mut b).await;
    let sealed = |from: Peer, hello: bool| {
        let (mut sealer, mut packet) = (sealer(from), Vec::new());
        sealer.learn(peer(2, 1));
        match hello {
            true => drop(sealer.hello(&mut packet).unwrap()),
            false => sealer.seal(NodeId::new(2), &[0; 40], &mut packet).unwrap(),
        }
        packet
    };
    let recorded = [sealed(peer(1, 1), true), sealed(peer(9, 9), true)];
    let mut forged = [sealed(peer(1, 1), false), sealed(peer(FORGED, 1), false)];
    // Far ahead of all that was heard of the member.
    forged[0][12] = 100;
    let before = b.counters();
    let mut taken = 0;
    for at in 0..100_000_u32 {
        let [_, high, middle, low] = at.to_be_bytes();
        let source = Ipv4Addr::new(127, 1 + high, middle, low);
        let source = std::net::UdpSocket::bind((source, 0)).unwrap();
        let packet = match at % 5 {
            0 => &[0x17; 60][..],
            kind @ (1 | 2) => {
                let packet = &mut forged[kind as usize - 1];
                if kind == 2 {
                    packet[3..11].copy_from_slice(&(FORGED + u64::from(at)).to_le_bytes());
                }
                *packet.last_mut().unwrap() = at.to_le_bytes()[1];
                packet
            }
            kind => &recorded[kind as usize - 3],
        };
        source.send_to(packet, b.local()).unwrap();
        within(async {
            let heard = before.received_bytes;
            while b.counters.received_bytes - heard != taken + packet.len() as u64 {
                b.ready().await;
                while b.next(NOW).is_some() {}
            }
        })
        .await;
        taken += packet.len() as u64;
    }
    let grown = |reason: Refusal| dropped(&b, reason) - before.dropped[reason.as_str()];
    assert_eq!((grown(Refusal::NotOurs), grown(Refusal::Replay)), (20_000, 20_000));
    // A forged tag is right once in 2^128.
    assert_eq!(grown(Refusal::Auth), 40_000);
    // 2,000 a second are answered, and the clock stands still here.
    let answered = b.counters().sent - before.sent;
    assert_eq!(grown(Refusal::HelloLimit) + answered, 20_000);
    assert!(answered <= 2_000, "{answered}");
    assert_eq!(b.counters().received - before.received, answered, "they change nothing");
    assert_eq!(b.routes.keys().copied().collect::<Vec<_>>(), [NodeId::new(1)]);
    assert_eq!(b.address(NodeId::new(1)), Some(a.local()));
    let peers: Vec<Peer> = b.sealer.keys_in_use().map(|(peer, _, _)| peer).collect();
    assert_eq!(peers, [peer(1, 1)]);
    assert!((0..100_000).all(|at| !b.sealer.knows(NodeId::new(FORGED + at))));
    assert!(b.asked.len() <= ASKED && b.asked.capacity() < 2 * ASKED);
    // And it still talks to its member.
    a.send(NOW, NodeId::new(2), b"ping").unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
}

#[tokio::test]
async fn half_open_streams_from_everywhere_take_no_more_than_their_places() {
    let (mut a, mut b) = pair().await;
    let mut held = Vec::new();
    for low in 1..=200 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(Ipv4Addr::new(127, 9, 0, low).into(), 0)).unwrap();
        held.push(within(socket.connect(a.local())).await.unwrap());
    }
    let turned_away = 200 - INBOUND as u64;
    run_until(&mut a, &mut b, NOW, |_, a, _| dropped(a, Refusal::StreamLimit) == turned_away).await;
    let mut open = 0;
    for stream in &mut held {
        let mut byte = [0];
        let read = timeout(time::Duration::from_millis(2), stream.read(&mut byte)).await;
        open += usize::from(read.is_err());
    }
    assert!(open <= INBOUND, "{open}");
    // They dawdle, and their places come free.
    run_until(&mut a, &mut b, NOW, |_, a, _| dropped(a, Refusal::StreamTimeout) == INBOUND as u64)
        .await;
    assert_eq!(dropped(&a, Refusal::StreamLimit), turned_away, "all are counted, and once");
    introduce(&mut a, &mut b).await;
    b.learn(NOW, peer(1, 1), &[a.local()]);
    b.send(NOW, NodeId::new(1), &[4; 9_000]).unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| log.iter().any(|heard| heard.0 == 0)).await;
}

#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the one thing measured here is real time"
)]
async fn floods_are_read_as_fast_as_the_socket_gives_them() {
    let mut a = transport(peer(1, 1)).await;
    let stranger = raw().await;
    let mut forged = Vec::new();
    let mut ada = sealer(peer(3, 1));
    ada.learn(peer(1, 1));
    ada.seal(NodeId::new(1), &[0; 400], &mut forged).unwrap();
    *forged.last_mut().unwrap() ^= 1;
    for (name, bytes, reason) in
        [("noise", vec![0; 400], Refusal::NotOurs), ("forged", forged, Refusal::Auth)]
    {
        let mut spent = time::Duration::ZERO;
        let rounds = 300;
        for round in 1..=rounds {
            for _ in 0..BATCH {
                stranger.send_to(&bytes, a.local()).await.unwrap();
            }
            let start = time::Instant::now();
            within(async {
                while dropped(&a, reason) < round * BATCH as u64 {
                    a.ready().await;
                    assert_eq!(a.next(NOW), None);
                }
            })
            .await;
            spent += start.elapsed();
        }
        // Printed and not judged: how long it takes is the machine's business.
        let each = spent / (rounds as u32 * BATCH as u32);
        println!("{name}, {} bytes: {each:?} each, from the socket to the counter", bytes.len());
    }
    assert_eq!(a.counters().sent, 0);
}

#[tokio::test]
async fn a_restarted_receiver_is_found_again_and_takes_nothing_recorded() {
    let (mut a, mut b) = pair().await;
    a.learn(NOW, peer(2, 1), &[b.local()]);
    b.learn(NOW, peer(1, 1), &[a.local()]);
    a.send(NOW, NodeId::new(2), b"ping").unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
    let address = b.local();
    drop(b);
    let mut b = within(async {
        loop {
            // The listener's task ends a moment after its owner.
            match Transport::bind(address, sealer(peer(2, 2))).await {
                Ok(transport) => break transport,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    for step in 0..5 {
        let now = NOW + Duration::from_secs(step);
        a.send(now, NodeId::new(2), b"are you there").unwrap();
    }
    let log =
        run_until(&mut a, &mut b, NOW, |log, _, _| log.contains(&(0, peer(2, 2), None))).await;
    assert_eq!(log.len(), 1, "what was sealed for the earlier life is not opened: {log:?}");
    assert!(dropped(&b, Refusal::Auth) >= 3);
    a.send(NOW + Duration::from_secs(5), NodeId::new(2), b"welcome back").unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| {
        log.contains(&(1, peer(1, 1), Some(b"welcome back".to_vec())))
    })
    .await;
}

#[tokio::test]
async fn a_silent_address_gives_way_to_the_next() {
    let (mut a, mut b) = pair().await;
    let dead = raw().await;
    a.learn(NOW, peer(2, 1), &[dead.local_addr().unwrap(), b.local()]);
    for step in 0..5 {
        assert_eq!(a.address(NodeId::new(2)), dead.local_addr().ok(), "step {step}");
        a.send(NOW + Duration::from_millis(600 * step), NodeId::new(2), b"ping").unwrap();
    }
    assert_eq!(a.address(NodeId::new(2)), Some(b.local()));
    let log = run_until(&mut a, &mut b, NOW, |log, _, _| log.len() == 2).await;
    assert!(log.contains(&(1, peer(1, 1), Some(b"ping".to_vec()))), "{log:?}");
    assert!(log.contains(&(0, peer(2, 1), None)), "{log:?}");
    // As long as it is heard it stays.
    for step in 10..30 {
        a.send(NOW + Duration::from_secs(step), NodeId::new(2), b"ping").unwrap();
        b.learn(NOW, peer(1, 1), &[a.local()]);
        b.send(NOW + Duration::from_secs(step), NodeId::new(1), b"ack").unwrap();
        run_until(&mut a, &mut b, NOW, |log, _, _| log.len() == 2).await;
    }
    assert_eq!(a.address(NodeId::new(2)), Some(b.local()));
}

#[tokio::test]
async fn a_packet_sent_on_from_elsewhere_turns_no_traffic_there() {
    let mut b = transport(peer(2, 1)).await;
    let (home, middle) = (raw().await, raw().await);
    b.learn(NOW, peer(1, 1), &[home.local_addr().unwrap()]);
    let mut ada = sealer(peer(1, 1));
    ada.learn(peer(2, 1));
    let mut there = 0;
    for step in 0..20 {
        let mut packet = Vec::new();
        ada.seal(NodeId::new(2), &[0; 40], &mut packet).unwrap();
        there += middle.send_to(&packet, b.local()).await.unwrap();
        within(async {
            while b.counters().received < step + 1 {
                b.ready().await;
                while b.next(NOW).is_some() {}
            }
        })
        .await;
        b.send(NOW, NodeId::new(1), &[0; 1_000]).unwrap();
    }
    assert_eq!(b.address(NodeId::new(1)), home.local_addr().ok());
    let received = |socket: &UdpSocket| {
        let mut lengths = Vec::new();
        while let Ok(length) = socket.try_recv(&mut [0; 1_300]) {
            lengths.push(length);
        }
        lengths
    };
    home.readable().await.unwrap();
    assert_eq!(received(&home).len(), 20);
    // Only a question whether Ada has moved there, once a second.
    middle.readable().await.unwrap();
    assert_eq!(received(&middle), [Sealer::HELLO]);
    assert!(Sealer::HELLO <= there);
}

#[tokio::test]
async fn to_an_address_that_may_be_forged_goes_no_more_than_came_from_it() {
    let mut b = transport(peer(2, 1)).await;
    let forger = raw().await;
    let mut ada = sealer(peer(1, 1));
    ada.learn(peer(2, 1));
    let (mut there, mut back) = (0, 0);
    let mut buffer = [0; 1_300];
    for step in 0..60 {
        let now = NOW + Duration::from_millis(300 * step);
        let mut packet = Vec::new();
        ada.seal(NodeId::new(2), &[0; 20], &mut packet).unwrap();
        there += forger.send_to(&packet, b.local()).await.unwrap();
        within(async {
            while b.counters().received < step + 1 {
                b.ready().await;
                while b.next(now).is_some() {}
            }
        })
        .await;
        for _ in 0..3 {
            b.send(now, NodeId::new(1), &[0; 30]).unwrap();
            b.send(now, NodeId::new(1), &[0; 600]).unwrap();
        }
        while let Ok(length) = forger.try_recv(&mut buffer) {
            back += length;
        }
        assert!(back <= there, "step {step}: {back} bytes for {there}");
    }
    assert!(back > 0 && b.counters().dropped[Refusal::UnprovenAddress.as_str()] > 0);
}

#[tokio::test]
async fn a_welcome_from_elsewhere_proves_no_address() {
    let mut b = transport(peer(2, 1)).await;
    let (home, middle) = (raw().await, raw().await);
    let mut ada = sealer(peer(1, 1));
    b.hello(home.local_addr().unwrap());
    let mut greeting = [0; Sealer::HELLO];
    within(home.recv(&mut greeting)).await.unwrap();
    ada.open(NOW, &mut greeting).unwrap();
    let mut welcome = Vec::new();
    assert!(ada.answer(&mut welcome).is_some());
    middle.send_to(&welcome, b.local()).await.unwrap();
    within(b.ready()).await;
    assert!(b.next(NOW).is_some_and(|received| received.from == peer(1, 1)));
    assert!(!b.routes[&NodeId::new(1)].proven);
    b.send(NOW, NodeId::new(1), &[0; 1_000]).unwrap();
    assert_eq!(b.counters().sent, 1, "it waits");
}

#[tokio::test]
async fn what_is_for_everybody_is_heard_once_its_sender_is_known_to_live() {
    let (mut a, mut b) = pair().await;
    assert_eq!(a.send_group(&[0]), Err(Refusal::NoAddress));
    let group = SocketAddrV4::new(Ipv4Addr::new(239, 192, 77, 38), free_port());
    if let Err(error) = a.join_group(group, &[]).and_then(|()| b.join_group(group, &[])) {
        return eprintln!("SKIPPED: no multicast here: {error}");
    }
    a.send_group(&[1; 60]).unwrap();
    // B does not believe it, and asks.
    run_until(&mut a, &mut b, NOW, |log, _, _| log.contains(&(1, peer(1, 1), None))).await;
    assert_eq!(dropped(&b, Refusal::Unproven), 1);
    a.send_group(&[2; 60]).unwrap();
    let heard = (1, peer(1, 1), Some(vec![2; 60]));
    run_until(&mut a, &mut b, NOW, |log, _, _| log.contains(&heard)).await;
}

#[tokio::test]
async fn what_is_for_everybody_is_said_on_every_interface_named() {
    let (mut a, mut b) = pair().await;
    let group = SocketAddrV4::new(Ipv4Addr::new(239, 192, 77, 38), free_port());
    let loopback = ["lo".to_owned()];
    if let Err(error) = a.join_group(group, &loopback).and_then(|()| b.join_group(group, &loopback))
    {
        return eprintln!("SKIPPED: no multicast here: {error}");
    }
    a.send_group(&[1; 60]).unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| log.contains(&(1, peer(1, 1), None))).await;
    a.send_group(&[2; 60]).unwrap();
    let heard = (1, peer(1, 1), Some(vec![2; 60]));
    run_until(&mut a, &mut b, NOW, |log, _, _| log.contains(&heard)).await;
    let error = a.join_group(group, &["no-such-if".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("(multicast): interface \"no-such-if\": "), "{error}");
}

#[tokio::test]
async fn a_socket_for_both_versions_knows_the_older_by_its_own_name() {
    let any = SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), 0);
    let Ok(mut a) = Transport::bind(any, sealer(peer(1, 1))).await else {
        return; // A machine without IPv6 has nothing to show here.
    };
    let mut b = transport(peer(2, 1)).await;
    a.hello(b.local());
    run_until(&mut a, &mut b, NOW, |log, _, _| log.contains(&(0, peer(2, 1), None))).await;
    assert_eq!(a.address(NodeId::new(2)), Some(b.local()));
    a.send(NOW, NodeId::new(2), &[1; 5_000]).unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
}

#[tokio::test]
async fn a_member_that_moves_is_followed_once_it_answers_there() {
    let (mut a, mut b) = pair().await;
    a.learn(NOW, peer(2, 1), &[b.local()]);
    b.learn(NOW, peer(1, 1), &[loopback(1)]);
    a.send(NOW, NodeId::new(2), &[0; 100]).unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, b| {
        log.contains(&(1, peer(1, 1), None)) && b.address(NodeId::new(1)) != Some(loopback(1))
    })
    .await;
    assert_eq!(b.address(NodeId::new(1)), Some(a.local()));
}

#[tokio::test]
async fn addresses_nobody_can_have_are_passed_over() {
    let mut a = transport(peer(1, 1)).await;
    let bad = ["0.0.0.0:7738", "224.0.0.9:7738", "255.255.255.255:1", "127.0.0.1:0", "[::]:1"];
    let mut addresses: Vec<SocketAddr> = bad.iter().map(|text| text.parse().unwrap()).collect();
    a.learn(NOW, peer(2, 1), &addresses);
    assert_eq!(a.address(NodeId::new(2)), None);
    addresses.push("[::ffff:10.0.0.3]:7738".parse().unwrap());
    a.learn(NOW, peer(2, 1), &addresses);
    assert_eq!(a.address(NodeId::new(2)), "10.0.0.3:7738".parse().ok());
}

#[tokio::test]
async fn one_port_for_both_and_a_taken_one_is_said() {
    let a = transport(peer(1, 1)).await;
    let error = Transport::bind(a.local(), sealer(peer(2, 1))).await.unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with(&format!("cannot listen on {} (UDP): ", a.local())), "{message}");
    assert!(message.ends_with("another agent runs there, or choose another port with --bind"));
    let both = SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), 0);
    if let Ok(mut six) = Transport::bind(both, sealer(peer(3, 1))).await {
        let mut other = Transport::bind(both, sealer(peer(4, 1))).await.unwrap();
        six.hello(other.local());
        run_until(&mut six, &mut other, NOW, |log, _, _| log.contains(&(0, peer(4, 1), None)))
            .await;
    }
}

async fn stream_of(bytes: &[u8], to: &Transport) -> TcpStream {
    let mut stream = TcpStream::connect(to.local()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

#[tokio::test]
async fn hostile_streams_are_refused_by_reason() {
    let (mut a, mut b) = pair().await;
    let mut ada = sealer(peer(9, 1));
    ada.learn(peer(1, 1));
    let mut genuine = Vec::new();
    ada.seal_stream(NodeId::new(1), &[3; 40_000], &mut genuine).unwrap();
    let head = 1 + usize::from(genuine[0]);
    let mut forged = genuine.clone();
    forged[head + 9] ^= 1;
    let mut giant = genuine[..head].to_vec();
    giant.extend([0xff, 0x7f]);
    let trailing = {
        let mut bytes = Vec::new();
        ada.seal_stream(NodeId::new(1), b"short", &mut bytes).unwrap();
        bytes.push(0);
        bytes
    };
    for (name, bytes, reason) in [
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec(), Refusal::NotOurs),
        ("cut in the header", genuine[..5].to_vec(), Refusal::StreamBroken),
        ("forged", forged, Refusal::Auth),
        ("giant", giant, Refusal::TooLarge),
        ("something behind it", trailing, Refusal::Malformed),
        ("cut in a later chunk", genuine[..30_000].to_vec(), Refusal::StreamBroken),
        // Its beginning was opened just now, so it does not open again.
        ("replayed", genuine.clone(), Refusal::Replay),
    ] {
        let before = dropped(&a, reason);
        let stream = stream_of(&bytes, &a).await;
        drop(stream);
        let log = run_until(&mut a, &mut b, NOW, |_, a, _| dropped(a, reason) == before + 1).await;
        assert!(log.is_empty(), "{name}");
    }
    assert_eq!(a.counters().received, 0);
}

#[tokio::test]
async fn one_address_cannot_take_all_streams() {
    let (mut a, mut b) = pair().await;
    introduce(&mut a, &mut b).await;
    let mut idle = Vec::new();
    for _ in 0..INBOUND_EACH {
        idle.push(stream_of(&[20], &b).await);
    }
    let mut one_more = stream_of(&[20], &b).await;
    run_until(&mut a, &mut b, NOW, |_, _, b| dropped(b, Refusal::StreamLimit) == 1).await;
    assert!(one_more.read_u8().await.is_err(), "closed");
    // Datagrams go on meanwhile, and so do streams once there is room.
    a.send(NOW, NodeId::new(2), b"ping").unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
    drop(idle);
    run_until(&mut a, &mut b, NOW, |_, _, b| {
        dropped(b, Refusal::StreamBroken) == INBOUND_EACH as u64
    })
    .await;
    a.send(NOW, NodeId::new(2), &[4; 9_000]).unwrap();
    run_until(&mut a, &mut b, NOW, |log, _, _| !log.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn who_dawdles_is_cut_off() {
    let (mut a, mut b) = pair().await;
    let mut idle = stream_of(&[20, 1, 2, 3], &a).await;
    let start = tokio::time::Instant::now();
    while dropped(&a, Refusal::StreamTimeout) == 0 {
        let mut log = Log::new();
        drain(0, &mut a, NOW, &mut log);
        tokio::select! { () = a.ready() => {}, () = b.ready() => {} }
        drain(0, &mut a, NOW, &mut log);
    }
    assert!(start.elapsed() >= HEAD_DEADLINE && start.elapsed() < 2 * HEAD_DEADLINE);
    assert!(idle.read_u8().await.is_err(), "closed");
}

#[test]
fn a_peer_costs_little() {
    let each = crate::net::seal::PEER_BYTES + size_of::<(NodeId, Route)>();
    assert!(each <= 450, "{each} bytes");
    println!("{each} bytes a peer, {} of them for the seal", crate::net::seal::PEER_BYTES);
}
