//! Bellwether beside the Rust libraries people would embed instead: foca and memberlist.
//!
//! ```sh
//! cargo run --release --manifest-path checks/libraries/Cargo.toml
//! ```
//!
//! Sixteen members in this process, each with a thread, a runtime and a socket of its own, on the loopback of a network
//! namespace that is otherwise silent, so that what the kernel counted there is what they said. All probe with the same
//! period, wait as long for an answer and suspect as long. A member stops by no longer being run: its
//! sockets stay open and it says nothing, as if its cable were cut.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this measures real sockets in real time"
)]

mod foca_member;
mod memberlist_member;
mod our_member;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bellwether_agent::KeyRing;
use bellwether_hosts::{Door, Net, Spread};
use tokio::sync::oneshot;

const MEMBERS: usize = 16;
const BINS: usize = 3;
const BIN: Duration = Duration::from_secs(10);
const STOPS: usize = 10;
const PATIENCE: Duration = Duration::from_secs(60);

/// The waits that all of them have.
#[derive(Clone, Copy)]
struct Waits {
    period: Duration,
    ack: Duration,
    suspicion: Duration,
}

/// Whom a member takes for alive, suspects included, by their places.
#[derive(Clone, Default)]
struct Alive(Arc<Mutex<BTreeSet<usize>>>);

impl Alive {
    fn set(&self, places: impl IntoIterator<Item = usize>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = places.into_iter().collect();
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn holds(&self, place: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&place)
    }
}

type Life = Pin<Box<dyn Future<Output = ()>>>;

/// How a member lives, given its place; it keeps telling whom it takes for alive.
type Member = Arc<dyn Fn(usize, Alive) -> Life + Send + Sync>;

struct Library {
    name: &'static str,
    settings: String,
    member: Member,
}

/// Members that run, each in a thread.
struct Group {
    alive: Vec<Alive>,
    stops: Vec<Option<oneshot::Sender<()>>>,
    threads: Vec<JoinHandle<()>>,
    over: Arc<Mutex<()>>,
}

struct Measured {
    name: &'static str,
    settings: String,
    kbit_s: Spread,
    packets_s: Spread,
    detected_s: Spread,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("libraries: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    // Short, so that ten stops take minutes.
    let [period, ack, suspicion] = [250, 80, 250].map(Duration::from_millis);
    let waits = Waits { period, ack, suspicion };
    let ring = KeyRing::generate().map_err(|error| error.to_string())?;
    let libraries = [
        our_member::library(waits, ring),
        foca_member::library(waits, foca_member::simple(), "Config::simple()"),
        foca_member::library(waits, foca_member::lan(), "Config::new_lan(16)"),
        memberlist_member::library(waits, false),
        memberlist_member::library(waits, true),
    ];
    let mut all = Vec::new();
    for library in libraries {
        all.push(measure(library)?);
    }
    let page = page(&all, waits);
    println!("{page}");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");
    let write = |name: &str, text: &str| {
        let path = format!("{folder}/{name}");
        fs::write(&path, text).map_err(|error| format!("{path}: {error}"))
    };
    write("libraries.md", &page)?;
    write("libraries.csv", &csv(&all))
}

fn measure(library: Library) -> Result<Measured, String> {
    let Library { name, settings, member } = library;
    let net = namespace()?;
    let group = Group::start(&net, &member);
    group.form(name)?;
    thread::sleep(Duration::from_secs(5));
    let [mut kbit_s, mut packets_s] = [const { Vec::new() }; 2];
    for bin in 0..BINS {
        eprintln!(
            "{name}: idle, {} of {} s",
            bin as u64 * BIN.as_secs(),
            BINS as u64 * BIN.as_secs()
        );
        let (begun, before) = (Instant::now(), loopback(&net)?);
        thread::sleep(BIN);
        let (seconds, after) = (begun.elapsed().as_secs_f64(), loopback(&net)?);
        kbit_s.push((after.0 - before.0) as f64 * 8.0 / 1_000.0 / seconds);
        packets_s.push((after.1 - before.1) as f64 / seconds);
    }
    group.end();
    drop(net);
    let mut detected_s = Vec::new();
    for stop in 0..STOPS {
        let net = namespace()?;
        let mut group = Group::start(&net, &member);
        group.form(name)?;
        // Not in step with the periods.
        thread::sleep(Duration::from_millis(3_000 + 70 * stop as u64));
        let place = (stop * 7 + 3) % MEMBERS;
        let begun = Instant::now();
        group.stop(place);
        let others = || (0..MEMBERS).filter(|&at| at != place);
        while others().any(|at| group.alive[at].holds(place)) {
            if begun.elapsed() > PATIENCE {
                return Err(format!("{name}: after {PATIENCE:?} not all have noticed"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        detected_s.push(begun.elapsed().as_secs_f64());
        eprintln!(
            "{name}: stopped, {} of {STOPS}: {:.2} s",
            stop + 1,
            begun.elapsed().as_secs_f64()
        );
        group.end();
    }
    let summary = |values: &[f64]| Spread::of(values).ok_or("nothing was measured");
    Ok(Measured {
        name,
        settings,
        kbit_s: summary(&kbit_s)?,
        packets_s: summary(&packets_s)?,
        detected_s: summary(&detected_s)?,
    })
}

/// A fresh one for each group: nothing of the one before is counted, and no address is still taken.
fn namespace() -> Result<Net, String> {
    Net::of(1).map_err(|error| error.to_string())
}

impl Group {
    fn start(net: &Net, member: &Member) -> Self {
        let (mut alive, mut stops, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        let over = Arc::new(Mutex::new(()));
        for place in 0..MEMBERS {
            let (stop, stopped) = oneshot::channel();
            let (seen, member, over) = (Alive::default(), Arc::clone(member), Arc::clone(&over));
            alive.push(seen.clone());
            stops.push(Some(stop));
            let door = net.host(0).door();
            threads.push(thread::spawn(move || live(&door, &member, place, seen, stopped, &over)));
        }
        Self { alive, stops, threads, over }
    }

    /// Waits until all take all for alive.
    fn form(&self, name: &str) -> Result<(), String> {
        let begun = Instant::now();
        while self.alive.iter().any(|alive| alive.len() < MEMBERS) {
            if begun.elapsed() > PATIENCE {
                let counts: Vec<usize> = self.alive.iter().map(Alive::len).collect();
                return Err(format!("{name}: after {PATIENCE:?} not complete: {counts:?}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Lets this one fall silent.
    fn stop(&mut self, place: usize) {
        if let Some(stop) = self.stops[place].take() {
            let _ = stop.send(());
        }
    }

    fn end(mut self) {
        (0..MEMBERS).for_each(|place| self.stop(place));
        drop(self.over);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// A member's thread. Once stopped it holds the runtime and does not run it, until all is over.
fn live(
    door: &Door,
    member: &Member,
    place: usize,
    alive: Alive,
    stopped: oneshot::Receiver<()>,
    over: &Arc<Mutex<()>>,
) {
    door.enter();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime takes nothing but file descriptors");
    let life = member(place, alive);
    runtime.block_on(async {
        tokio::select! {
            () = life => {}
            _ = stopped => {}
        }
    });
    while Arc::strong_count(over) > MEMBERS {
        thread::sleep(Duration::from_millis(20));
    }
    runtime.shutdown_background();
}

fn address(place: usize) -> SocketAddr {
    let port = u16::try_from(20_000 + place).expect("sixteen members");
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn place(of: SocketAddr) -> usize {
    usize::from(of.port()) - 20_000
}

/// Bytes, with all headers, and packets since the namespace was made.
fn loopback(net: &Net) -> Result<(u64, u64), String> {
    let table = net.host(0).enter(|| fs::read_to_string("/proc/thread-self/net/dev"));
    let table = table.map_err(|error| error.to_string())?;
    let line = table.lines().find_map(|line| line.trim().strip_prefix("lo:"));
    let mut numbers =
        line.into_iter().flat_map(str::split_whitespace).map_while(|word| word.parse().ok());
    numbers.next().zip(numbers.next()).ok_or_else(|| "no loopback in the namespace".to_owned())
}

fn page(all: &[Measured], waits: Waits) -> String {
    let ms = |wait: Duration| wait.as_millis();
    let mut page = format!(
        "# Libraries, as measured\n\nWritten by `cargo run --release --manifest-path checks/libraries/Cargo.toml`; see \
         [comparison.md](../comparison.md).\n\n{MEMBERS} members in one process over loopback, all with a period of {} ms, \
         {} ms for an answer and {} ms of suspicion. Bytes with all headers, as the kernel counts them, mean ± standard \
         deviation over {BINS} bins of {} s; detection is from one falling silent until every other has given it up, median \
         (least – most) of {STOPS}.\n\n| | settings besides | kbit/s, all | packets/s, all | detection, s |\n\
         |---|---|--:|--:|--:|\n",
        ms(waits.period),
        ms(waits.ack),
        ms(waits.suspicion),
        BIN.as_secs(),
    );
    for Measured { name, settings, kbit_s, packets_s, detected_s } in all {
        let _ = writeln!(
            page,
            "| {name} | {settings} | {:.1} ± {:.1} | {:.0} | {:.2} ({:.2} – {:.2}) |",
            kbit_s.mean(),
            kbit_s.deviation().unwrap_or_default(),
            packets_s.mean(),
            detected_s.median(),
            detected_s.least(),
            detected_s.most(),
        );
    }
    page
}

fn csv(all: &[Measured]) -> String {
    let mut text = "library,settings,measure,mean,median,least,most\n".to_owned();
    for Measured { name, settings, kbit_s, packets_s, detected_s } in all {
        for (measure, of) in
            [("kbit_s", kbit_s), ("packets_s", packets_s), ("detected_s", detected_s)]
        {
            let _ = writeln!(
                text,
                "{name},\"{settings}\",{measure},{:.4},{:.4},{:.4},{:.4}",
                of.mean(),
                of.median(),
                of.least(),
                of.most()
            );
        }
    }
    text
}
