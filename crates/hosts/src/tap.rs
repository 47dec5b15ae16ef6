//! Listening at the switch.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

use crate::Net;

/// Hears all that passes the switch, from when it is made.
#[derive(Debug)]
pub struct Tap(OwnedFd);

/// What was sent from one host to another by UDP.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Datagram {
    /// Where it said it came from.
    pub from: SocketAddrV4,
    /// Where it went.
    pub to: SocketAddrV4,
    /// All of it.
    pub body: Vec<u8>,
}

impl Net {
    /// Listens at the switch.
    ///
    /// # Errors
    ///
    /// If that is not permitted here.
    pub fn tap(&self) -> io::Result<Tap> {
        let socket = self.switch().enter(|| {
            // Without the Ethernet header.
            let (family, kind) = (AddressFamily::PACKET, SocketType::DGRAM);
            socket_with(family, kind, SocketFlags::CLOEXEC, Some(eth::ALL))
        })?;
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_millis(50)))?;
        Ok(Tap(socket))
    }
}

impl Tap {
    /// Every datagram of so long a time, with when it was heard. A frame is heard at every port it passes, so of
    /// equal ones there is one.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn listen(&self, span: Duration) -> io::Result<Vec<(Instant, Datagram)>> {
        let begun = Instant::now();
        self.listen_while(|| begun.elapsed() < span)
    }

    /// The same, for as long as this holds: asked at every packet, and many times a second.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn listen_while(&self, lasts: impl Fn() -> bool) -> io::Result<Vec<(Instant, Datagram)>> {
        let (mut heard, mut known) = (Vec::new(), BTreeSet::new());
        let mut packet = [0; 2_048];
        while lasts() {
            let length = match recv(&self.0, &mut packet[..], RecvFlags::empty()) {
                Ok((length, _)) => length,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let datagram = Datagram::read(&packet[..length]);
            if let Some(datagram) = datagram.filter(|datagram| known.insert(datagram.clone())) {
                heard.push((Instant::now(), datagram));
            }
        }
        Ok(heard)
    }
}

impl Datagram {
    /// Of an IPv4 packet, if it is one, and whole.
    fn read(packet: &[u8]) -> Option<Self> {
        const UDP: u8 = 17;
        let (&first, &protocol) = (packet.first()?, packet.get(9)?);
        let fragment = u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?) & 0x3fff;
        if first >> 4 != 4 || protocol != UDP || fragment != 0 {
            return None;
        }
        let ip = |at| {
            packet.get(at..at + 4)?.first_chunk().map(|&octets: &[u8; 4]| Ipv4Addr::from(octets))
        };
        let datagram = packet.get(usize::from(first & 0xf) * 4..)?;
        let word =
            |at| datagram.get(at..at + 2)?.first_chunk().map(|&word| u16::from_be_bytes(word));
        let body = datagram.get(8..usize::from(word(4)?))?.to_vec();
        let (from, to) = ((ip(12)?, word(0)?), (ip(16)?, word(2)?));
        Some(Self {
            from: SocketAddrV4::new(from.0, from.1),
            to: SocketAddrV4::new(to.0, to.1),
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_one_host_sends_to_another_is_heard_once() {
        let Ok(net) = Net::of(2) else { return };
        let tap = net.tap().unwrap();
        let [one, other] = [0, 1]
            .map(|at| net.host(at).enter(|| UdpSocket::bind((Net::address(at), 7_000)).unwrap()));
        one.send_to(b"to the other", other.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 64];
        assert_eq!(other.recv(&mut buffer).unwrap(), 12);
        let heard = tap.listen(Duration::from_millis(200)).unwrap();
        let [from, to] = [0, 1].map(|at| SocketAddrV4::new(Net::address(at), 7_000));
        let expected = Datagram { from, to, body: b"to the other".to_vec() };
        assert_eq!(heard.into_iter().map(|(_, it)| it).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn bytes_that_are_no_datagram_are_passed_over() {
        let mut packet = [0; 60];
        for (at, byte) in [(0, 0x45), (9, 17), (25, 40)] {
            packet[at] = byte;
        }
        assert_eq!(Datagram::read(&packet).map(|it| it.body.len()), Some(32));
        for (at, byte) in [(0, 0x65), (0, 0x4f), (7, 1), (9, 6), (25, 41), (25, 7)] {
            let mut other = packet;
            other[at] = byte;
            assert_eq!(Datagram::read(&other), None, "{byte} at {at}");
        }
        assert!((0..60).all(|length| Datagram::read(&packet[..length]).is_none()));
    }
}
