//! ZooKeeper, from Debian's package, with Debian's logging and the JVM's defaults.
//!
//! Its four-letter word `srvr` tells a server's own mode only. Whom a follower follows is seen from its connection to the
//! leader's port for followers: without that, a server that still follows the leader that is gone would pass for one
//! that follows the new one.

use std::{
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;

use super::{Client, System, View, package_version, write};
use crate::{Failure, client};

pub(crate) struct ZooKeeper;

/// Where followers connect to the leader.
const FOLLOWERS: u16 = 2888;

const CLIENTS: u16 = 2181;

impl System for ZooKeeper {
    fn name(&self) -> &'static str {
        "ZooKeeper"
    }

    fn settings(&self) -> String {
        "tickTime=2000, initLimit=5, syncLimit=2, no JVM options".to_owned()
    }

    fn naming(&self) -> &'static str {
        "`srvr` says that it leads, or that it follows and serves while it is connected to the leader's port 2888"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["zookeeper"]
    }

    fn version(&self) -> Result<String, Failure> {
        package_version("zookeeper")
    }

    fn prepare(&self, folder: &Path, count: usize) -> Result<(), Failure> {
        for at in 0..count {
            let home = folder.join(at.to_string());
            let mut settings = format!(
                "tickTime=2000\ninitLimit=5\nsyncLimit=2\ndataDir={}\nclientPort={CLIENTS}\n\
                 clientPortAddress=127.0.0.1\n",
                home.display()
            );
            for server in 0..count {
                let address = Net::address(server);
                let _ = writeln!(settings, "server.{}={address}:{FOLLOWERS}:3888", server + 1);
            }
            write(&home.join("zoo.cfg"), &settings)?;
            write(&home.join("myid"), &format!("{}\n", at + 1))?;
        }
        Ok(())
    }

    fn command(&self, net: &Net, folder: &Path, at: usize, _: usize) -> Command {
        let home = folder.join(at.to_string());
        let mut command = net.host(at).command("java");
        command
            .args(["-cp", "/etc/zookeeper/conf:/usr/share/java/zookeeper.jar"])
            .arg(format!("-Dzookeeper.log.dir={}", home.display()))
            .arg("-Dzookeeper.root.logger=INFO,ROLLINGFILE")
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(home.join("zoo.cfg"));
        command
    }

    fn client(&self, at: usize) -> Box<dyn Client> {
        Box::new(Asker { own: Net::address(at), following: None })
    }
}

struct Asker {
    own: Ipv4Addr,
    /// Whom it followed when that was last looked up, and when that was.
    following: Option<(Ipv4Addr, Instant)>,
}

/// Looking up a connection takes the kernel milliseconds. A server that changes sides does not serve for longer than a
/// question is apart from the next, so that it is looked up again at once; this is for the one that does not.
const LOOK_UP: Duration = Duration::from_secs(1);

impl Client for Asker {
    fn look(&mut self) -> Option<View> {
        let answer = client::exchange(CLIENTS, b"srvr")?;
        let following = self.following.take().filter(|(_, at)| at.elapsed() < LOOK_UP);
        let leader = match mode(&answer)? {
            "leader" => Some(self.own),
            "follower" => {
                let look_up = || {
                    let table = fs::read_to_string("/proc/thread-self/net/tcp6").ok()?;
                    Some((leader_of(&table)?, Instant::now()))
                };
                self.following = following.or_else(look_up);
                self.following.map(|(leader, _)| leader)
            }
            _ => None,
        };
        Some(View { own: self.own.to_string(), leader: leader.map(|leader| leader.to_string()) })
    }
}

/// Says nothing while the server is not serving.
fn mode(answer: &str) -> Option<&str> {
    answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::trim)
}

/// The other end of the established connection to a leader's port, from the kernel's table of connections. The JVM has
/// IPv4 addresses mapped into IPv6.
fn leader_of(table: &str) -> Option<Ipv4Addr> {
    const ESTABLISHED: &str = "01";
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        let (address, port) = fields.next()?.split_once(':')?;
        let follows = u16::from_str_radix(port, 16).ok()? == FOLLOWERS;
        // Four words of four bytes each, in the machine's order; the last is the IPv4 address.
        let address = u32::from_str_radix(address.get(24..)?, 16).ok()?;
        (follows && fields.next()? == ESTABLISHED).then(|| Ipv4Addr::from(address.to_ne_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_serves_has_a_mode_and_one_that_looks_for_a_leader_has_none() {
        let answers = [
            (include_str!("../../tests/answers/zookeeper-leader.txt"), Some("leader")),
            (include_str!("../../tests/answers/zookeeper-follower.txt"), Some("follower")),
            (include_str!("../../tests/answers/zookeeper-looking.txt"), None),
        ];
        for (answer, expected) in answers {
            assert_eq!(mode(answer), expected, "{answer}");
        }
    }

    #[test]
    fn a_follower_is_connected_to_its_leader_and_the_leader_to_nobody_like_that() {
        let table = include_str!("../../tests/answers/zookeeper-follower-tcp.txt");
        assert_eq!(leader_of(table), Some(Ipv4Addr::new(10, 77, 0, 3)));
        let table = include_str!("../../tests/answers/zookeeper-leader-tcp.txt");
        assert_eq!(leader_of(table), None);
    }
}
