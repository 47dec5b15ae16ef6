//! A host that means harm: it forges, floods and plays recordings back.

use std::{
    io::Write as _,
    net::{SocketAddr, UdpSocket},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use bellwether_agent::{KeyRing, internal::Sealer};
use bellwether_hosts::{Datagram, Net};
use bellwether_proto::{Boot, NodeId, Peer, wire::Reader};

/// On the host behind those of the agents.
pub(crate) struct Attacker<'n> {
    net: &'n Net,
    host: usize,
    /// What is sent by one of these seems to come from the agent of that host.
    masks: Vec<UdpSocket>,
}

/// What a flood was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flood {
    pub(crate) sent: u64,
    /// A second.
    pub(crate) rate: f64,
}

const PORT: u16 = 7738;
/// Of the first mask, before the kernel rewrites it.
const FIRST_MASK: u16 = 40_000;

impl<'n> Attacker<'n> {
    /// Beside agents on the hosts before this one.
    pub(crate) fn on(net: &'n Net, host: usize) -> Self {
        let forged = (0..host).map(|at| {
            let (port, address) = (FIRST_MASK + at as u16, Net::address(at));
            format!("udp sport {port} ip saddr set {address} udp sport set {PORT}\n")
        });
        let rules = format!(
            "table ip forged {{\nchain out {{\ntype filter hook output priority 0; policy accept;\n{}}}\n}}\n",
            forged.collect::<String>()
        );
        let mut nft = net.host(host).command("nft");
        let mut nft = nft.args(["-f", "-"]).stdin(Stdio::piped()).spawn().expect("nft");
        let written = nft.stdin.take().expect("it is piped").write_all(rules.as_bytes());
        assert!(written.is_ok() && nft.wait().is_ok_and(|status| status.success()), "{rules}");
        let mask = |at: usize| (Net::address(host), FIRST_MASK + at as u16);
        let masks = net
            .host(host)
            .enter(|| (0..host).map(|at| UdpSocket::bind(mask(at)).expect("a socket")).collect());
        Self { net, host, masks }
    }

    /// Sends to the agent of one host, seemingly from that of another.
    pub(crate) fn send_as(&self, host: usize, to: usize, packet: &[u8]) {
        let to = (Net::address(to), PORT);
        assert_eq!(self.masks[host].send_to(packet, to).expect("sent"), packet.len());
    }

    /// Sends these over and over, so many a second, from its own address.
    pub(crate) fn flood(&self, to: usize, packets: &[Vec<u8>], rate: u32, span: Duration) -> Flood {
        const THREADS: u32 = 2;
        let rate = f64::from(rate / THREADS);
        let target = SocketAddr::from((Net::address(to), PORT));
        let door = || self.net.host(self.host).door();
        let one = |skip: u32| {
            let door = door();
            move || {
                door.enter();
                let socket = UdpSocket::bind((Net::address(self.host), 0)).expect("a socket");
                let mut packets = packets.iter().cycle().skip(skip as usize * packets.len() / 2);
                let (begun, mut sent) = (Instant::now(), 0_u64);
                while begun.elapsed() < span {
                    let due = (begun.elapsed().as_secs_f64() * rate) as u64;
                    for _ in 0..due.saturating_sub(sent).min(256) {
                        let packet = packets.next().expect("they go round");
                        // A full queue loses it, as any wire does.
                        sent += u64::from(socket.send_to(packet, target).is_ok());
                    }
                    if sent >= due {
                        thread::sleep(Duration::from_micros(500));
                    }
                }
                sent
            }
        };
        let begun = Instant::now();
        let sent = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|skip| scope.spawn(one(skip))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it did not panic")).sum()
        });
        Flood { sent, rate: sent as f64 / begun.elapsed().as_secs_f64() }
    }

    /// Sends what was recorded again, so many times as fast, to each of these hosts whoever it was for, and from where it
    /// came. Returns how many packets went to each.
    pub(crate) fn replay(
        &self,
        recorded: &[(Instant, Datagram)],
        speed: u32,
        to: &[usize],
    ) -> Vec<u64> {
        let mut sent = vec![0; to.len()];
        let Some(&(first, _)) = recorded.first() else { return sent };
        let begun = Instant::now();
        for (at, datagram) in recorded {
            let due = begun + (*at - first) / speed;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let Some(from) = (0..self.host).find(|&at| Net::address(at) == *datagram.from.ip())
            else {
                continue;
            };
            // No kernel takes a packet from its own address.
            for (sent, &host) in sent.iter_mut().zip(to).filter(|&(_, &host)| host != from) {
                self.send_as(from, host, &datagram.body);
                *sent += 1;
            }
        }
        sent
    }
}

/// What agents said to each other, of all that was heard.
pub(crate) fn spoken(heard: Vec<(Instant, Datagram)>) -> Vec<(Instant, Datagram)> {
    let spoken = |datagram: &Datagram| datagram.from.port() == PORT && datagram.to.port() == PORT;
    heard.into_iter().filter(|(_, datagram)| spoken(datagram)).collect()
}

/// Who sent it, and how long the header is up to the number.
pub(crate) fn sender(packet: &[u8]) -> (Peer, usize) {
    let mut reader = Reader::new(&packet[3..]);
    let id = reader.u64("id").expect("a genuine packet");
    let boot = reader.varint("boot").expect("a genuine packet");
    let length = 11 + packet[11..].iter().take_while(|&&byte| byte >= 0x80).count() + 1;
    (Peer::new(NodeId::new(id), Boot::new(boot)), length)
}

/// Whether it asks who is there.
pub(crate) fn is_hello(packet: &[u8]) -> bool {
    packet[1] >> 6 == 2
}

/// Packets that nobody sealed, of 0 to 1,400 bytes: in turn noise; the right version; cluster, key and version right; and
/// all that in the name of a member.
pub(crate) fn garbage(genuine: &[(Instant, Datagram)], count: usize) -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let packet = |at: usize| {
        let length = next() as usize % 1_401;
        let mut packet: Vec<u8> = (0..length).map(|_| next().to_le_bytes()[3]).collect();
        let (_, model) = &genuine[next() as usize % genuine.len()];
        let right = match at % 4 {
            0 => 0,
            1 => 1,
            2 => 3,
            _ => sender(&model.body).1,
        };
        let right = right.min(length);
        packet[..right].copy_from_slice(&model.body[..right]);
        packet
    };
    (0..count).map(packet).collect()
}

/// In the name of a member, as whoever has that key: half of them messages, half of them hellos, and numbered far above what
/// the member has used.
pub(crate) fn forged(
    ring: &KeyRing,
    cluster: &str,
    [from, to]: [Peer; 2],
    count: usize,
) -> Vec<Vec<u8>> {
    let mut sealer = Sealer::new(ring, cluster, from);
    sealer.learn(to);
    let mut packets = Vec::new();
    for at in 0..count + NUMBERS {
        let mut packet = Vec::new();
        if at % 2 == 0 {
            sealer.seal(to.id, &[0; 40], &mut packet).expect("it was met");
        } else {
            sealer.hello(&mut packet).expect("numbers are left");
        }
        if at >= NUMBERS {
            packets.push(packet);
        }
    }
    packets
}

/// More than a member uses during a test.
const NUMBERS: usize = 20_000;

/// Other keys: one that is told apart at a glance, and one that only arithmetic tells.
pub(crate) fn other_keys(ring: &KeyRing) -> [KeyRing; 2] {
    let hints = |ring: &KeyRing| ring.keys().iter().map(|key| key.fingerprint().hint()).collect();
    let ours: Vec<u8> = hints(ring);
    let find = |alike: bool| {
        let mut rings = std::iter::repeat_with(|| KeyRing::generate().expect("random bytes"));
        rings.find(|other| ours.contains(&hints(other)[0]) == alike).expect("one in 256")
    };
    [find(false), find(true)]
}

/// Names of clusters: one that is told apart at a glance, and one that is not.
pub(crate) fn other_clusters(ring: &KeyRing, cluster: &str) -> [String; 2] {
    let somebody = Peer::new(NodeId::new(1), Boot::new(1));
    let hint = |cluster: &str| {
        let mut packet = Vec::new();
        Sealer::new(ring, cluster, somebody).hello(&mut packet).expect("numbers are left");
        packet[1] & 0x3f
    };
    let find = |alike: bool| {
        let mut names = (0..).map(|at| format!("shed-{at}"));
        names.find(|name| (hint(name) == hint(cluster)) == alike).expect("one in 64")
    };
    [find(false), find(true)]
}
