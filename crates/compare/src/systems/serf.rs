//! Serf, from Debian's package, with its defaults.
//!
//! Serf elects nobody. What its users do by hand is measured: the leader is the node whose name is the lowest of those
//! alive. Its members are asked over its own protocol, MessagePack over TCP, on one connection that is kept.

use std::{fs, io::Write as _, net::TcpStream, path::Path, process::Command};

use bellwether_hosts::Net;
use serde_json::Value;

use super::{Client, System, View, name, package_version};
use crate::{Failure, client, msgpack};

pub(crate) struct Serf;

const RPC: u16 = 7373;

impl System for Serf {
    fn name(&self) -> &'static str {
        "Serf"
    }

    fn settings(&self) -> String {
        "profile=lan (its default), not encrypted".to_owned()
    }

    fn naming(&self) -> &'static str {
        "no election: the leader is the lowest name among the members alive, over its RPC"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["serf"]
    }

    fn version(&self) -> Result<String, Failure> {
        package_version("serf")
    }

    fn prepare(&self, folder: &Path, _: usize) -> Result<(), Failure> {
        let fail = |error| Failure::new(format!("{}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(fail)
    }

    fn command(&self, net: &Net, folder: &Path, at: usize, count: usize) -> Command {
        let address = |at| format!("{}:7946", Net::address(at));
        let mut command = net.host(at).command("serf");
        command
            .args(["agent", "-node", &name(at), "-bind", &address(at)])
            .args(["-rpc-addr", &format!("127.0.0.1:{RPC}")])
            .args(
                (0..count.min(3))
                    .filter(|&seed| seed != at)
                    .map(|seed| format!("-retry-join={}", address(seed))),
            )
            .arg("-retry-interval=1s")
            .arg(format!("-snapshot={}", folder.join(name(at)).display()));
        command
    }

    fn client(&self, at: usize) -> Box<dyn Client> {
        Box::new(Asker { own: name(at), connection: None })
    }
}

struct Asker {
    own: String,
    connection: Option<TcpStream>,
}

impl Client for Asker {
    fn look(&mut self) -> Option<View> {
        let leader = alive(&self.members()?).min().map(str::to_owned);
        Some(View { own: self.own.clone(), leader })
    }

    fn alive(&mut self) -> Option<usize> {
        Some(alive(&self.members()?).count())
    }
}

impl Asker {
    /// Connects anew where there is no connection, or no longer.
    fn members(&mut self) -> Option<Value> {
        let answer = self.connection.take().or_else(greet).and_then(|mut connection| {
            connection.write_all(&MEMBERS).ok()?;
            refusal(&msgpack::read(&mut connection)?).is_none().then_some(())?;
            let members = msgpack::read(&mut connection)?;
            Some((connection, members))
        });
        let (connection, members) = answer?;
        self.connection = Some(connection);
        Some(members)
    }
}

fn greet() -> Option<TcpStream> {
    let mut connection = client::connect(RPC)?;
    connection.write_all(&HANDSHAKE).ok()?;
    let answer = msgpack::read(&mut connection)?;
    refusal(&answer).is_none().then_some(connection)
}

fn refusal(header: &Value) -> Option<&str> {
    header["Error"].as_str().filter(|why| !why.is_empty())
}

fn alive(members: &Value) -> impl Iterator<Item = &str> {
    let members = members["Members"].as_array().map(Vec::as_slice).unwrap_or_default();
    let alive = members.iter().filter(|member| member["Status"] == "alive");
    alive.filter_map(|member| member["Name"].as_str())
}

/// `{"Command": "handshake", "Seq": 0}` and `{"Version": 1}`.
const HANDSHAKE: [u8; 34] = *b"\x82\xa7Command\xa9handshake\xa3Seq\x00\x81\xa7Version\x01";

/// `{"Command": "members", "Seq": 1}`.
const MEMBERS: [u8; 22] = *b"\x82\xa7Command\xa7members\xa3Seq\x01";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_is_the_lowest_name_of_those_alive() {
        let mut answer = &include_bytes!("../../tests/answers/serf-members.bin")[..];
        assert_eq!(refusal(&msgpack::read(&mut answer).unwrap()), None);
        let members = msgpack::read(&mut answer).unwrap();
        assert_eq!(alive(&members).collect::<Vec<_>>().len(), 2, "{members}");
        assert_eq!(alive(&members).min(), Some("host-01"), "{members}");
        assert!(answer.is_empty());
    }

    #[test]
    fn requests_are_what_serf_reads() {
        let mut greeting = &HANDSHAKE[..];
        let header = msgpack::read(&mut greeting).unwrap();
        assert_eq!(header, serde_json::json!({"Command": "handshake", "Seq": 0}));
        assert_eq!(msgpack::read(&mut greeting).unwrap(), serde_json::json!({"Version": 1}));
        let header = msgpack::read(&mut &MEMBERS[..]).unwrap();
        assert_eq!(header, serde_json::json!({"Command": "members", "Seq": 1}));
    }

    #[test]
    fn a_refusal_is_no_answer() {
        let refused = serde_json::json!({"Seq": 1, "Error": "Handshake required"});
        assert_eq!(refusal(&refused), Some("Handshake required"));
    }
}
