//! DNS service records (RFC 2782): which hosts offer a service, and on which ports.
//!
//! The machine's resolver library knows no such records, so the servers of `/etc/resolv.conf` are asked here, one after the
//! other, by UDP, and by TCP if an answer does not fit. Where the hosts are is left to the library. The name is taken as
//! it is written, without search domains.
//!
//! A server is believed as far as the library would: the answer must come from where the question went, bear its number
//! and repeat it. Everything in it is bounded, and nothing in it panics.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UdpSocket},
    time::timeout,
};

use super::resolve;
use crate::config::is_host_name;

/// Why a service names nobody.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    /// Who to ask is not known.
    #[error("{file}: {0}", file = RESOLVERS)]
    Resolvers(io::Error),
    /// No server answered, of which the last said why.
    #[error("{server}: {why}")]
    Server {
        /// Which was asked last.
        server: SocketAddr,
        /// What came of it.
        why: AnswerError,
    },
    /// Hosts are named, and none of them has an address.
    #[error("{host}: {source}")]
    Host {
        /// The last of them.
        host: String,
        /// Why.
        source: io::Error,
    },
}

/// What is wrong with an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    /// It could not be had.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It does not come.
    #[error("does not answer within {} s", PATIENCE.as_secs())]
    Silent,
    /// It ends too early, or points where it must not.
    #[error("its answer cannot be read at byte {0}")]
    Malformed(usize),
    /// It answers something else.
    #[error("answers another question")]
    Another,
    /// It says no.
    #[error("{}", refusal(.0))]
    Refused(u8),
    /// There are no such records.
    #[error("has no service records of that name")]
    None,
    /// There is one that says so (RFC 2782: a target of "." ).
    #[error("says that nobody offers this service")]
    NotOffered,
}

fn refusal(code: &u8) -> String {
    match code {
        2 => "cannot answer now (SERVFAIL)".to_owned(),
        3 => "knows no such name (NXDOMAIN)".to_owned(),
        5 => "does not answer us (REFUSED)".to_owned(),
        other => format!("refuses (code {other})"),
    }
}

/// A host that offers the service.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Target {
    /// Less is better.
    priority: u16,
    host: String,
    port: u16,
}

/// The addresses of all hosts that offer this service, the best first.
pub(super) async fn find(name: &str) -> Result<Vec<SocketAddr>, ServiceError> {
    let servers = servers(Path::new(RESOLVERS)).map_err(ServiceError::Resolvers)?;
    let (mut found, mut failed) = (Vec::new(), None);
    for Target { host, port, .. } in targets(name, &servers).await? {
        match resolve(&host, port).await {
            Ok(addresses) => found.extend(addresses),
            Err(source) => failed = Some(ServiceError::Host { host, source }),
        }
    }
    match failed {
        Some(failed) if found.is_empty() => Err(failed),
        _ => Ok(found),
    }
}

/// Asks each server in turn, twice, until one has records.
async fn targets(name: &str, servers: &[SocketAddr]) -> Result<Vec<Target>, ServiceError> {
    let mut failed = None;
    for &server in servers.iter().chain(servers) {
        match ask(name, server).await {
            Ok(targets) => return Ok(targets),
            // It has been asked and has answered: another of them knows no better.
            Err(why @ (AnswerError::None | AnswerError::NotOffered | AnswerError::Refused(3))) => {
                return Err(ServiceError::Server { server, why });
            }
            Err(why) => failed = Some(ServiceError::Server { server, why }),
        }
    }
    let nobody = || ServiceError::Resolvers(io::Error::other("names no server"));
    Err(failed.unwrap_or_else(nobody))
}

async fn ask(name: &str, server: SocketAddr) -> Result<Vec<Target>, AnswerError> {
    let id = getrandom::u32().map_err(|_| io::Error::other("no random number"))? as u16;
    let question = question(id, name);
    let by_datagram = async {
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).await?;
        // From nobody else, and told if nobody is there.
        socket.connect(server).await?;
        socket.send(&question).await?;
        let mut packet = vec![0; DATAGRAM];
        loop {
            let length = socket.recv(&mut packet).await?;
            match parse(&packet[..length], id, name) {
                // Late, or forged.
                Err(AnswerError::Another) => {}
                parsed => return parsed,
            }
        }
    };
    let Answer { targets, cut } = patiently(by_datagram).await?;
    if !cut {
        return Ok(targets);
    }
    let by_stream = async {
        let mut stream = TcpStream::connect(server).await?;
        let length = u16::try_from(question.len()).unwrap_or(u16::MAX);
        stream.write_all(&[&length.to_be_bytes()[..], &question].concat()).await?;
        let length = stream.read_u16().await?;
        let mut packet = vec![0; length.into()];
        stream.read_exact(&mut packet).await?;
        parse(&packet, id, name)
    };
    patiently(by_stream).await.map(|answer| answer.targets)
}

async fn patiently<T>(
    answer: impl Future<Output = Result<T, AnswerError>>,
) -> Result<T, AnswerError> {
    timeout(PATIENCE, answer).await.unwrap_or(Err(AnswerError::Silent))
}

/// The servers that this file names.
fn servers(path: &Path) -> io::Result<Vec<SocketAddr>> {
    let text = std::fs::read_to_string(path)?;
    let named = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse::<IpAddr>().ok())?
    });
    let mut found: Vec<SocketAddr> =
        named.take(SERVERS).map(|ip| SocketAddr::new(ip, PORT)).collect();
    if found.is_empty() {
        // As resolv.conf(5) has it.
        found.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
    }
    Ok(found)
}

/// Asks for recursion, and allows an answer of [`DATAGRAM`] bytes (RFC 6891).
fn question(id: u16, name: &str) -> Vec<u8> {
    let mut packet = Vec::with_capacity(64);
    let mut put = |number: u16| packet.extend(number.to_be_bytes());
    // One question, and one record besides.
    [id, RECURSE, 1, 0, 0, 1].into_iter().for_each(&mut put);
    for label in name.split('.') {
        // Settings are parsed: a label has 63 bytes at most.
        packet.push(label.len() as u8);
        packet.extend(label.bytes());
    }
    packet.push(0);
    let mut put = |number: u16| packet.extend(number.to_be_bytes());
    [SRV, INTERNET].into_iter().for_each(&mut put);
    packet.push(0);
    let mut put = |number: u16| packet.extend(number.to_be_bytes());
    [OPTIONS, DATAGRAM as u16, 0, 0, 0].into_iter().for_each(&mut put);
    packet
}

#[derive(Debug, Eq, PartialEq)]
struct Answer {
    /// Best first.
    targets: Vec<Target>,
    /// Whether there are more than fit.
    cut: bool,
}

/// What an answer says of `name`, if it is one.
fn parse(packet: &[u8], id: u16, name: &str) -> Result<Answer, AnswerError> {
    let mut reader = Reader { packet, at: 0 };
    let [number, flags, questions, answers, _, _] = reader.numbers()?;
    if number != id || flags & RESPONSE == 0 {
        return Err(AnswerError::Another);
    }
    let (code, cut) = ((flags & 0xf) as u8, flags & CUT != 0);
    // Who understands nothing of a question need not repeat it.
    match questions {
        1 => {
            let asked = reader.name()?;
            if reader.numbers()? != [SRV, INTERNET] || !asked.is(name) {
                return Err(AnswerError::Another);
            }
        }
        0 if code != 0 => {}
        _ => return Err(AnswerError::Another),
    }
    if code != 0 {
        return Err(AnswerError::Refused(code));
    }
    let (mut targets, mut offered, mut owner) = (Vec::new(), true, Name::of(name));
    for _ in 0..answers {
        let before = reader.at;
        let record = match reader.record() {
            Ok(record) => record,
            // What did not fit may be cut in the middle.
            Err(_) if cut => break,
            Err(error) => return Err(error),
        };
        debug_assert!(reader.at > before, "every record takes some bytes");
        if record.class != INTERNET || record.owner != owner {
            continue;
        }
        let mut data = Reader { packet: &packet[..record.end], at: record.data };
        match record.kind {
            // The records are another name's.
            ALIAS => owner = data.name()?,
            SRV if targets.len() < TARGETS => {
                let [priority, _weight, port] = data.numbers()?;
                let host = data.name()?.to_string();
                if host.is_empty() {
                    offered = false;
                } else if port != 0 && is_host_name(&host) {
                    targets.push(Target { priority, host, port });
                }
            }
            _ => {}
        }
    }
    targets.sort();
    targets.dedup();
    match targets.is_empty() {
        false => Ok(Answer { targets, cut }),
        true if cut => Ok(Answer { targets, cut }),
        true if offered => Err(AnswerError::None),
        true => Err(AnswerError::NotOffered),
    }
}

/// A name as it stands in a packet: in small letters, as capitals mean nothing.
#[derive(Debug, Default, Eq, PartialEq)]
struct Name(Vec<Vec<u8>>);

impl Name {
    fn of(text: &str) -> Self {
        Self(text.split('.').map(|label| label.to_ascii_lowercase().into_bytes()).collect())
    }

    fn is(&self, text: &str) -> bool {
        *self == Self::of(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, label) in self.0.iter().enumerate() {
            let dot = if at > 0 { "." } else { "" };
            write!(f, "{dot}{}", String::from_utf8_lossy(label))?;
        }
        Ok(())
    }
}

struct Record {
    owner: Name,
    kind: u16,
    class: u16,
    /// Where its data begins and ends.
    data: usize,
    end: usize,
}

struct Reader<'a> {
    packet: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn bytes(&mut self, count: usize) -> Result<&[u8], AnswerError> {
        let bytes = self.packet.get(self.at..self.at + count);
        let bytes = bytes.ok_or(AnswerError::Malformed(self.at))?;
        self.at += count;
        Ok(bytes)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u16; N], AnswerError> {
        let bytes = self.bytes(2 * N)?;
        Ok(core::array::from_fn(|at| u16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]])))
    }

    fn record(&mut self) -> Result<Record, AnswerError> {
        let owner = self.name()?;
        let [kind, class, _, _, length] = self.numbers()?;
        let data = self.at;
        self.bytes(length.into())?;
        Ok(Record { owner, kind, class, data, end: self.at })
    }

    /// A name, of which the rest may stand further ahead. Every pointer leads further ahead than the one before, so that it
    /// comes to an end.
    fn name(&mut self) -> Result<Name, AnswerError> {
        let (mut labels, mut length) = (Vec::new(), 0);
        let (mut back, mut bound) = (None, self.at);
        loop {
            let begun = self.at;
            let &[first] = self.bytes(1)? else { return Err(AnswerError::Malformed(begun)) };
            match first {
                0 => break,
                1..=63 => {
                    length += 1 + usize::from(first);
                    if length >= NAME {
                        return Err(AnswerError::Malformed(begun));
                    }
                    labels.push(self.bytes(first.into())?.to_ascii_lowercase());
                }
                0xc0.. => {
                    let &[second] = self.bytes(1)? else {
                        return Err(AnswerError::Malformed(begun));
                    };
                    let to = usize::from(first & 0x3f) << 8 | usize::from(second);
                    if to >= bound {
                        return Err(AnswerError::Malformed(begun));
                    }
                    back.get_or_insert(self.at);
                    (self.at, bound) = (to, to);
                }
                // Kinds of labels that nobody uses.
                64..0xc0 => return Err(AnswerError::Malformed(begun)),
            }
        }
        self.at = back.unwrap_or(self.at);
        Ok(Name(labels))
    }
}

const RESOLVERS: &str = "/etc/resolv.conf";
/// Where servers listen.
const PORT: u16 = 53;
/// As many servers as the library asks.
const SERVERS: usize = 3;
/// For one server, once.
const PATIENCE: Duration = Duration::from_secs(2);
/// What gets through everywhere in one piece (DNS Flag Day 2020).
const DATAGRAM: usize = 1_232;
/// Hosts taken of one service.
const TARGETS: usize = 64;
/// Bytes of the longest name (RFC 1035).
const NAME: usize = 255;
const RESPONSE: u16 = 0x8000;
const CUT: u16 = 0x0200;
const RECURSE: u16 = 0x0100;
const SRV: u16 = 33;
const ALIAS: u16 = 5;
const OPTIONS: u16 = 41;
const INTERNET: u16 = 1;

#[cfg(test)]
mod tests;
