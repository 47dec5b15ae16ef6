//! etcd, from Debian's package, with its defaults.

use std::{fs, path::Path, process::Command};

use bellwether_hosts::Net;
use serde_json::Value;

use super::{Client, System, View, name, package_version};
use crate::{Failure, client};

pub(crate) struct Etcd;

const CLIENTS: u16 = 2379;

impl System for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    /// More than that vote in no etcd that anybody runs.
    fn nodes(&self) -> usize {
        5
    }

    fn settings(&self) -> String {
        "heartbeat-interval=100, election-timeout=1000 (its defaults), no TLS".to_owned()
    }

    fn naming(&self) -> &'static str {
        "`/v3/maintenance/status` holds the leader's member id"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["etcd-server"]
    }

    fn version(&self) -> Result<String, Failure> {
        package_version("etcd-server")
    }

    fn prepare(&self, folder: &Path, _: usize) -> Result<(), Failure> {
        let fail = |error| Failure::new(format!("{}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(fail)
    }

    fn command(&self, net: &Net, folder: &Path, at: usize, count: usize) -> Command {
        let peers = |at| format!("http://{}:2380", Net::address(at));
        let clients = format!("http://127.0.0.1:{CLIENTS}");
        let cluster: Vec<String> =
            (0..count).map(|at| format!("{}={}", name(at), peers(at))).collect();
        let mut command = net.host(at).command("etcd");
        command
            .args(["--name", &name(at), "--data-dir"])
            .arg(folder.join(name(at)))
            .args(["--listen-peer-urls", &peers(at), "--initial-advertise-peer-urls", &peers(at)])
            .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
            .args(["--initial-cluster", &cluster.join(","), "--initial-cluster-state", "new"]);
        command
    }

    fn client(&self, _: usize) -> Box<dyn Client> {
        Box::new(Asker)
    }
}

struct Asker;

impl Client for Asker {
    fn look(&mut self) -> Option<View> {
        let request = "POST /v3/maintenance/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                       Content-Length: 2\r\n\r\n{}";
        view(&client::body(&client::exchange(CLIENTS, request.as_bytes())?)?)
    }
}

/// Numbers come as text, and those that are zero do not come.
fn view(status: &Value) -> Option<View> {
    let own = status["header"]["member_id"].as_str()?.to_owned();
    let leader = status["leader"].as_str().filter(|&id| id != "0").map(str::to_owned);
    Some(View { own, leader })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_names_itself_and_its_leader_or_none_while_it_votes() {
        let follower = include_str!("../../tests/answers/etcd-follower.txt");
        let leaderless = include_str!("../../tests/answers/etcd-leaderless.txt");
        let answers = [
            (follower, "7626997973664697199", Some("8774413978203203114")),
            (leaderless, "8774413978203203114", None),
        ];
        for (answer, own, leader) in answers {
            let leader = leader.map(str::to_owned);
            let expected = View { own: own.to_owned(), leader };
            assert_eq!(view(&client::body(answer).unwrap()), Some(expected), "{answer}");
        }
        assert_eq!(view(&serde_json::json!({"error": "etcdserver: request timed out"})), None);
    }
}
