//! Questions over plain TCP to a node on the same host.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Whoever does not answer within that does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection to that port of this host.
pub(crate) fn connect(port: u16) -> Option<TcpStream> {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&at, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.set_nodelay(true).ok()?;
    Some(stream)
}

/// Says this, and hears everything until the other side hangs up.
pub(crate) fn exchange(port: u16, question: &[u8]) -> Option<String> {
    let mut stream = connect(port)?;
    stream.write_all(question).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

pub(crate) fn get(port: u16, path: &str) -> Option<Value> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    body(&exchange(port, request.as_bytes())?)
}

/// What an HTTP server answered, if it is a yes and JSON.
pub(crate) fn body(answer: &str) -> Option<Value> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let is_yes = head.split(' ').nth(1) == Some("200");
    is_yes.then(|| serde_json::from_str(body).ok())?
}
