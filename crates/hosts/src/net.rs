//! Hosts made of network namespaces, cabled to one bridge, and what can go wrong between them.
//!
//! The namespaces have no names. Each is held by a process that the kernel kills together with the thread that started
//! it, and ends with the last process in it: nothing is left behind, whatever happens to whoever made them.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::Ipv4Addr,
    os::fd::AsFd as _,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::Error;

/// Hosts, numbered from 0, and the switch between them.
pub struct Net {
    switch: Namespace,
    hosts: Vec<Namespace>,
    /// Held until the last network made at once with this one is gone.
    _alone: Arc<Alone>,
}

/// A network namespace, as long as this lives.
pub struct Namespace {
    holder: Child,
}

/// What went over the cables, each packet counted once, with its Ethernet header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Ethernet headers included.
    pub bytes: u64,
    /// How many frames passed.
    pub packets: u64,
}

/// Whoever holds this has the only networks of this process: times are measured on them. Networks are used by several
/// threads, to any of which the last one may be left; the guard of a mutex would have to stay with one.
struct Alone;

static TAKEN: Mutex<bool> = Mutex::new(false);
static LEFT: Condvar = Condvar::new();

impl Alone {
    /// Waits for whoever has networks.
    fn wait() -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken =
            LEFT.wait_while(taken, |taken| *taken).unwrap_or_else(PoisonError::into_inner);
        *taken = true;
        Self
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        LEFT.notify_one();
    }
}

/// Only IP is cut and lost: addresses are resolved by the kernels, whose patience is not what is tested.
const RULES: &str = "
    table bridge hosts {
        set cut { type ifname . ifname; }
        set apart { type ifname . ifname; }
        chain loss { }
        chain forward {
            type filter hook forward priority 0; policy accept;
            ether type ip iifname . oifname @cut drop
            ether type ip iifname . oifname @apart drop
            ether type ip jump loss
        }
    }";

const PASS_ON: &str = "
    cd /proc/sys/net/ipv4 && echo 1 > ip_forward &&
    for of in all eth0; do
        echo 0 > conf/$of/send_redirects && echo 0 > conf/$of/accept_redirects || exit 1
    done";

impl Net {
    /// That many hosts, every one of which reaches every other. Waits for whoever else in this process has hosts.
    ///
    /// # Errors
    ///
    /// What is missing, or not permitted here.
    ///
    /// # Panics
    ///
    /// With more than 254 hosts.
    pub fn of(count: usize) -> Result<Self, Error> {
        Self::beside(count, Arc::new(Alone::wait()))
    }

    /// That many networks of so many hosts each, none of which reaches another: all have the same addresses. Waits for
    /// whoever else in this process has hosts, and keeps others waiting until the last of them is gone.
    ///
    /// They share the machine's cores and disks. So this is fit for measuring waits of a tenth of a second and more, of
    /// a few dozen processes that are idle most of the time, and unfit for measuring what something costs.
    ///
    /// # Errors
    ///
    /// What is missing, or not permitted here.
    ///
    /// # Panics
    ///
    /// With more than 254 hosts in each.
    pub fn several(networks: usize, count: usize) -> Result<Vec<Self>, Error> {
        let alone = Arc::new(Alone::wait());
        (0..networks).map(|_| Self::beside(count, Arc::clone(&alone))).collect()
    }

    fn beside(count: usize, alone: Arc<Alone>) -> Result<Self, Error> {
        let switch = Namespace::new()?;
        let bridge = "link add name bridge type bridge forward_delay 0 mcast_snooping 0\n\
                      link set dev bridge addrgenmode none\nlink set dev bridge up\n";
        switch.tell("ip", &["-batch", "-"], bridge)?;
        switch.tell("nft", &["-f", "-"], RULES)?;
        let hosts = (0..count).map(|at| Self::cable(&switch, at)).collect::<Result<_, _>>()?;
        Ok(Self { switch, hosts, _alone: alone })
    }

    fn cable(switch: &Namespace, at: usize) -> Result<Namespace, Error> {
        let host = Namespace::new()?;
        let (port, pid) = (port(at), host.pid());
        let plugged = format!(
            "link add name {port} type veth peer name eth0 netns {pid}\n\
             link set dev {port} addrgenmode none\nlink set dev {port} master bridge up\n"
        );
        switch.tell("ip", &["-batch", "-"], &plugged)?;
        let address = Self::address(at);
        let configured = format!(
            "link set dev lo up\nlink set dev eth0 addrgenmode none\nlink set dev eth0 up\n\
             address add {address}/16 dev eth0\n"
        );
        host.tell("ip", &["-batch", "-"], &configured)?;
        Ok(host)
    }

    /// Where the others reach that host.
    ///
    /// # Panics
    ///
    /// With more than 254 hosts.
    #[must_use]
    pub fn address(at: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, u8::try_from(at + 1).expect("at most 254 hosts"))
    }

    /// To start something there, or to look around.
    #[must_use]
    pub fn host(&self, at: usize) -> &Namespace {
        &self.hosts[at]
    }

    pub(crate) fn switch(&self) -> &Namespace {
        &self.switch
    }

    /// Pulls the host's cable.
    pub fn unplug(&self, at: usize) {
        self.ip(&["link", "set", "dev", &port(at), "down"]);
    }

    /// Puts it back in.
    pub fn plug(&self, at: usize) {
        self.ip(&["link", "set", "dev", &port(at), "up"]);
    }

    /// Nothing gets from the first of each pair to the second any more.
    pub fn cut(&self, ways: impl IntoIterator<Item = (usize, usize)>) {
        self.add("cut", ways);
    }

    /// Nothing gets from one side to the other, both ways.
    pub fn partition(&self, one: &[usize], other: &[usize]) {
        let across = || one.iter().flat_map(|&a| other.iter().map(move |&b| (a, b)));
        self.cut(across().chain(across().map(|(a, b)| (b, a))));
    }

    /// Takes back every cut.
    pub fn mend(&self) {
        self.nft("flush set bridge hosts cut");
    }

    /// From now on only these pairs of neighbours hear each other.
    pub fn lay_out(&self, are_neighbours: impl Fn(usize, usize) -> bool) {
        let all = 0..self.hosts.len();
        let pairs = all.clone().flat_map(|a| all.clone().map(move |b| (a, b)));
        let apart = pairs.filter(|&(a, b)| a != b && !are_neighbours(a, b));
        // At once: nobody hears a neighbour that it has neither before nor after.
        self.nft(&format!("flush set bridge hosts apart\n{}", elements("apart", apart)));
    }

    /// From now on only these pairs of neighbours hear each other, and packets for others go from neighbour to neighbour
    /// over as few of them as possible, each host passing them on. Until hosts are laid out anew, which does not make
    /// them forget the ways.
    ///
    /// # Errors
    ///
    /// What is not permitted here.
    pub fn route(&self, are_neighbours: impl Fn(usize, usize) -> bool) -> Result<(), Error> {
        self.lay_out(&are_neighbours);
        let count = self.hosts.len();
        for (at, host) in self.hosts.iter().enumerate() {
            // All are in one subnet: the kernel would tell senders of a shorter way, which there is not.
            host.tell("sh", &["-s"], PASS_ON)?;
            let next = next_hops(count, at, &are_neighbours);
            let ways = next.into_iter().enumerate().filter_map(|(to, next)| Some((to, next?)));
            let way = |(to, next)| match next == to {
                true => format!("route replace {} dev eth0\n", Self::address(to)),
                false => {
                    let (to, next) = (Self::address(to), Self::address(next));
                    format!("route replace {to} via {next} dev eth0\n")
                }
            };
            host.tell("ip", &["-batch", "-"], &ways.map(way).collect::<String>())?;
        }
        Ok(())
    }

    /// Every packet is lost with this probability, in thousandths.
    pub fn lose(&self, thousandths: u32) {
        let drop = match thousandths {
            0 => String::new(),
            some => format!("add rule bridge hosts loss numgen random mod 1000 < {some} drop"),
        };
        self.nft(&format!("flush chain bridge hosts loss\n{drop}\n"));
    }

    /// Since the cables were laid.
    ///
    /// # Panics
    ///
    /// If the kernel has no counters.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let table = self.switch.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
        let mut all = Traffic::default();
        for line in table.expect("the kernel's counters").lines() {
            let Some((name, counters)) = line.split_once(':') else { continue };
            if name.trim().starts_with("port") {
                let mut numbers = counters.split_whitespace().map_while(|word| word.parse().ok());
                all.bytes += numbers.next().unwrap_or(0);
                all.packets += numbers.next().unwrap_or(0);
            }
        }
        all
    }

    fn add(&self, set: &str, ways: impl IntoIterator<Item = (usize, usize)>) {
        self.nft(&elements(set, ways));
    }

    fn nft(&self, rules: &str) {
        self.switch.tell("nft", &["-f", "-"], rules).expect("rules the kernel takes");
    }

    fn ip(&self, args: &[&str]) {
        self.switch.tell("ip", args, "").expect("a port");
    }
}

impl Namespace {
    fn new() -> Result<Self, Error> {
        let mut holder = dying_with_us("unshare")
            .args(["--net", "--", "sh", "-c", "echo made; exec sleep infinity"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| missing("setpriv", &error))?;
        let mut line = String::new();
        let stdout = holder.stdout.take().expect("it is piped");
        let made = BufReader::new(stdout).read_line(&mut line).is_ok_and(|length| length > 0);
        if made {
            return Ok(Self { holder });
        }
        let mut why = String::new();
        let _ = holder.stderr.take().expect("it is piped").read_to_string(&mut why);
        let _ = holder.wait();
        Err(refused("unshare", &why))
    }

    /// Of the process that holds it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// A program to be started in here, that dies with the thread that starts it.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = dying_with_us("nsenter");
        command.args(["--target", &self.pid().to_string(), "--net", "--", program]);
        command
    }

    /// Does it in here, in a thread of its own.
    ///
    /// # Panics
    ///
    /// If what is done does.
    pub fn enter<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let door = self.door();
        let inside = move || {
            door.enter();
            act()
        };
        thread::scope(|scope| scope.spawn(inside).join()).expect("a thread that did not panic")
    }

    /// For a thread that is to do more than one thing in here.
    ///
    /// # Panics
    ///
    /// If somebody killed the holder.
    #[must_use]
    pub fn door(&self) -> Door {
        Door(File::open(format!("/proc/{}/ns/net", self.pid())).expect("a namespace"))
    }

    /// Runs a program in here and hands it this text.
    fn tell(&self, program: &str, args: &[&str], text: &str) -> Result<(), Error> {
        let mut command = self.command(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| missing("setpriv", &error))?;
        // Whoever does not listen has said why on the other stream.
        let _ = child.stdin.take().expect("it is piped").write_all(text.as_bytes());
        let output = child.wait_with_output().map_err(|error| missing(program, &error))?;
        let why = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(refused(program, &why)) }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Lets a thread into a namespace, for good.
pub struct Door(File);

impl Door {
    /// Takes the calling thread in.
    ///
    /// # Panics
    ///
    /// If whoever made the namespace may not enter it.
    pub fn enter(&self) {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("whoever made a namespace may enter it");
    }
}

/// Settings of whoever runs this are none of its business.
fn dying_with_us(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BELLWETHER_") {
            command.env_remove(name);
        }
    }
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

fn missing(program: &str, why: &std::io::Error) -> Error {
    let package = match program {
        "ip" => "iproute2",
        "nft" => "nftables",
        _ => "util-linux",
    };
    Error::Missing { program: program.to_owned(), package, why: why.to_string() }
}

/// `nsenter` and `setpriv` start other programs, and it is they who say what is not there.
fn refused(program: &str, why: &str) -> Error {
    let why = why.trim();
    if why.contains("No such file or directory") && why.contains(program) {
        return missing(program, &std::io::ErrorKind::NotFound.into());
    }
    Error::Refused { program: program.to_owned(), why: why.to_owned() }
}

/// The neighbour through which each host is reached on a shortest way from this one, if there is one; of several the one
/// with the lowest number.
fn next_hops(
    count: usize,
    from: usize,
    are_neighbours: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut next = vec![None; count];
    let mut reached = VecDeque::from([from]);
    while let Some(at) = reached.pop_front() {
        for to in 0..count {
            if to != from && next[to].is_none() && are_neighbours(at, to) {
                next[to] = if at == from { Some(to) } else { next[at] };
                reached.push_back(to);
            }
        }
    }
    next
}

/// The rule that adds these ways to a set, if there are any.
fn elements(set: &str, ways: impl IntoIterator<Item = (usize, usize)>) -> String {
    let way = |(from, to)| format!("\"{}\" . \"{}\"", port(from), port(to));
    let ways: Vec<String> = ways.into_iter().map(way).collect();
    match ways.is_empty() {
        true => String::new(),
        false => format!("add element bridge hosts {set} {{ {} }}\n", ways.join(", ")),
    }
}

fn port(at: usize) -> String {
    format!("port{at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_lead_over_as_few_neighbours_as_possible() {
        // A ring of five, and one that nobody hears.
        let ring = |a: usize, b: usize| a < 5 && b < 5 && matches!(a.abs_diff(b), 1 | 4);
        assert_eq!(next_hops(6, 0, ring), [None, Some(1), Some(1), Some(4), Some(4), None]);
        assert_eq!(next_hops(6, 5, ring), [None; 6]);
        // On a grid each step of a way brings it nearer.
        let distance = |a: usize, b: usize| (a / 4).abs_diff(b / 4) + (a % 4).abs_diff(b % 4);
        for from in 0..16 {
            let next = next_hops(16, from, |a, b| distance(a, b) == 1);
            for to in (0..16).filter(|&to| to != from) {
                let next = next[to].expect("a way");
                assert_eq!((distance(from, next), distance(next, to) + 1), (1, distance(from, to)));
            }
        }
    }

    #[test]
    fn others_wait_until_the_last_of_several_networks_is_gone() {
        let [first, last] = {
            let alone = Arc::new(Alone::wait());
            [Arc::clone(&alone), alone]
        };
        let (tell, told) = std::sync::mpsc::channel();
        let other = thread::spawn(move || {
            let _alone = Alone::wait();
            tell.send(()).unwrap();
        });
        drop(first);
        let wait = std::time::Duration::from_millis(100);
        assert!(told.recv_timeout(wait).is_err(), "one is still there");
        drop(last);
        other.join().unwrap();
        told.recv().unwrap();
    }

    #[test]
    fn networks_side_by_side_do_not_hear_each_other() {
        let Ok(nets) = Net::several(2, 2) else { return };
        let wait = std::time::Duration::from_millis(500);
        let bind = |net: &Net| {
            let socket = net.host(1).enter(|| std::net::UdpSocket::bind("0.0.0.0:9")).unwrap();
            socket.set_read_timeout(Some(wait)).unwrap();
            socket
        };
        let sockets = [bind(&nets[0]), bind(&nets[1])];
        nets[0].unplug(0);
        let say = || std::net::UdpSocket::bind("0.0.0.0:0")?.send_to(b"!", (Net::address(1), 9));
        nets[1].host(0).enter(say).unwrap();
        let heard = sockets.map(|socket| socket.recv_from(&mut [0; 1]).is_ok());
        assert_eq!(heard, [false, true]);
    }

    #[test]
    fn packets_for_the_other_end_of_a_line_are_passed_on() {
        let Ok(net) = Net::of(4) else { return };
        let reaches = |to: usize| {
            let socket = net.host(to).enter(|| std::net::UdpSocket::bind("0.0.0.0:9")).unwrap();
            let wait = std::time::Duration::from_millis(500);
            socket.set_read_timeout(Some(wait)).unwrap();
            let ask =
                || std::net::UdpSocket::bind("0.0.0.0:0")?.send_to(b"?", (Net::address(to), 9));
            // No way at all is no error of the test.
            let _ = net.host(0).enter(ask);
            let heard = socket.recv_from(&mut [0; 1]);
            heard.is_ok_and(|(_, from)| from.ip() == Net::address(0))
        };
        let line = |a: usize, b: usize| a.abs_diff(b) == 1;
        net.lay_out(line);
        assert!(reaches(1) && !reaches(3), "no routes yet");
        net.route(line).unwrap();
        let before = net.traffic().packets;
        assert!(reaches(1) && reaches(3));
        assert!(net.traffic().packets >= before + 4, "one and three hops");
    }
}
