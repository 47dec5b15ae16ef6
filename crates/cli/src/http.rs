//! One connection to an agent, over its local socket or TCP, that can be asked again and again.
//!
//! What an agent answers has a length, and fits into memory; whatever does not is no agent's answer. Nothing here waits for
//! longer than it was told to.

use std::{
    io::{self, BufRead as _, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs as _},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt},
    time::Timespec,
};

/// Where an agent may be asked.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Its local socket.
    Socket(PathBuf),
    /// `HOST:PORT`.
    Http(String),
}

impl Way {
    /// Why nobody can be asked there now, if that is so for certain: nobody listens.
    pub(crate) fn is_deserted(error: &io::Error) -> bool {
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Http(base) => f.write_str(base),
        }
    }
}

/// A connection on which nothing is under way.
pub(crate) struct Connection {
    stream: BufReader<Stream>,
    host: String,
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether the connection may be asked again.
    pub(crate) keep: bool,
}

struct Stream {
    socket: Socket,
    until: Instant,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    pub(crate) fn open(way: &Way, until: Instant) -> io::Result<Self> {
        let (socket, host) = match way {
            Way::Socket(path) => (Socket::Unix(open_unix(path, until)?), "localhost"),
            Way::Http(base) => (Socket::Tcp(open_tcp(base, until)?), &**base),
        };
        let stream = BufReader::new(Stream { socket, until });
        Ok(Self { stream, host: host.to_owned() })
    }

    /// Sends one request and waits for its answer.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<&str>,
        until: Instant,
    ) -> io::Result<Reply> {
        self.stream.get_mut().until = until;
        let host = &self.host;
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
        if let Some(token) = token {
            request += &format!("Authorization: Bearer {token}\r\n");
        }
        if let Some(body) = body {
            let length = body.len();
            request += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        request += "\r\n";
        request += body.unwrap_or_default();
        match self.stream.get_mut().write_all(request.as_bytes()) {
            // Whoever is not wanted may be told so, and the connection closed, before it has asked.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.read().map_err(|_| error)
            }
            written => written.and_then(|()| self.read()),
        }
    }

    fn read(&mut self) -> io::Result<Reply> {
        let mut left = LONGEST_HEAD;
        let first = self.line(&mut left)?;
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| strange("it does not speak HTTP"))?;
        let (mut length, mut keep) = (None, true);
        loop {
            let line = self.line(&mut left)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| strange("a malformed head"))?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Some(value.parse::<usize>().map_err(strange)?),
                "transfer-encoding" => return Err(strange("an answer in chunks")),
                "connection" => keep = !value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        let length = length.ok_or_else(|| strange("an answer without a length"))?;
        if length > LONGEST_BODY {
            return Err(strange(format!("an answer of {length} bytes")));
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Reply { status, body, keep })
    }

    fn line(&mut self, left: &mut u64) -> io::Result<String> {
        let mut line = Vec::new();
        let read = (&mut self.stream).take(*left).read_until(b'\n', &mut line)?;
        *left -= read as u64;
        if line.pop() != Some(b'\n') {
            let ended = *left > 0;
            return Err(if ended {
                io::ErrorKind::UnexpectedEof.into()
            } else {
                strange("a long head")
            });
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map_err(strange)
    }

    /// Waits for so long, or until the other end has closed. Whether it has not.
    pub(crate) fn stays_open(&self, wait: Duration) -> bool {
        let mut ready = [PollFd::new(self.stream.get_ref(), PollFlags::IN)];
        let wait = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // Nothing was asked, so that whatever there is to read is its end, or nonsense.
        matches!(poll(&mut ready, Some(&wait)), Ok(0) | Err(_)) && self.stream.buffer().is_empty()
    }
}

fn strange(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A timeout of a socket reads as if it would block.
fn in_time(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

fn open_tcp(base: &str, until: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::NotConnected);
    for address in base.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(until)?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// An agent that hangs accepts nobody: connecting must have its end, too.
fn open_unix(path: &Path, until: Instant) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(left(until)?))?;
    connect(&socket, &address).map_err(|error| in_time(error.into()))?;
    Ok(UnixStream::from(socket))
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wait = Some(left(self.until)?);
        let read = match &mut self.socket {
            Socket::Tcp(stream) => stream.set_read_timeout(wait).and_then(|()| stream.read(buffer)),
            Socket::Unix(stream) => {
                stream.set_read_timeout(wait).and_then(|()| stream.read(buffer))
            }
        };
        read.map_err(in_time)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wait = Some(left(self.until)?);
        let written = match &mut self.socket {
            Socket::Tcp(stream) => {
                stream.set_write_timeout(wait).and_then(|()| stream.write(bytes))
            }
            Socket::Unix(stream) => {
                stream.set_write_timeout(wait).and_then(|()| stream.write(bytes))
            }
        };
        written.map_err(in_time)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Of an answer.
const LONGEST_HEAD: u64 = 64 << 10;
const LONGEST_BODY: usize = 64 << 20;
