//! Whoever is held up: by a disk that hangs, or by a host that has no time.
//!
//! The short test runs with all others. The long ones, which print what they measured:
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts -- --ignored --nocapture stalls
//! ```
//!
//! `strace` holds up `fsync` of a running agent (Debian's package of that name). Where it is missing the tests of disks say
//! so and do nothing.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use bellwether_proto::Seed;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    agents::{Agents, Answer, until},
    formed,
    half_broken::started,
    hosts,
    measured::Spread,
    networks, seconds,
};

/// A running agent whose next `fsync` takes so long. Those after it are as quick as ever.
struct HungDisk {
    strace: Child,
    calls: PathBuf,
}

impl HungDisk {
    /// None, and a word about it, if that cannot be done here.
    fn of(agents: &Agents<'_>, at: usize, span: Duration) -> Option<Self> {
        let mut strace = Command::new("strace");
        let inject = format!("inject=fsync:delay_enter={}us:when=1", span.as_micros());
        strace.args(["-f", "-q", "-e", "trace=fsync", "-e", &inject, "-p"]);
        let calls = agents.folder().join("fsync");
        strace.arg(agents.pid(at).as_raw_nonzero().to_string()).arg("-o").arg(&calls);
        // It says that it has attached, in a line for each thread.
        strace.args(["-v"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let spawned = strace.spawn();
        let child = match spawned {
            Ok(child) => child,
            Err(error) => {
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED a test of hung disks: strace does not run here ({error})\n  \
                     remedy: install strace, and run as root"
                );
                return None;
            }
        };
        let tasks = format!("/proc/{}/task", agents.pid(at).as_raw_nonzero());
        let traced = || {
            let mut tasks = std::fs::read_dir(&tasks).expect("it runs").flatten();
            tasks.all(|task| {
                let status = std::fs::read_to_string(task.path().join("status"));
                status.is_ok_and(|status| !status.contains("TracerPid:\t0\n"))
            })
        };
        let hung = Self { strace: child, calls };
        until(seconds(5), "strace has attached", || traced().then_some(()));
        Some(hung)
    }

    /// Ends it, and says whether there was such a call at all.
    fn end(self) -> bool {
        let calls = self.calls.clone();
        drop(self);
        std::fs::read_to_string(calls).is_ok_and(|calls| calls.contains("fsync("))
    }
}

impl Drop for HungDisk {
    fn drop(&mut self) {
        // Asked to end it lets go of the agent; killed it would take it along.
        let pid = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        let _ = self.strace.wait();
    }
}

/// What came of one disk that hung.
#[derive(Debug, Default)]
struct Trial {
    /// Whether it wrote at all: not every mode has to at every change of leader.
    hung: bool,
    /// Until the others agreed on somebody else, if they had to.
    replaced: Option<f64>,
    /// Answers in which it claimed to lead while another did.
    claims: usize,
    /// Whether the successor was deposed after it came back.
    deposed: bool,
    /// How often others said that it had failed.
    buried: usize,
}

/// The leader is to hand over, and the first thing it writes from then on takes long. In `eventual` it has to write before
/// it hands over; others may be replaced before their disk hangs.
fn leaders_disk_hangs(agents: &Agents<'_>, span: Duration) -> Option<Trial> {
    let leader = formed(agents, seconds(60));
    let hung = HungDisk::of(agents, leader, span)?;
    let begun = Instant::now();
    let mut resigning = resign(agents, leader);
    let mut trial = Trial::default();
    let others = || agents.all().filter(|&at| at != leader);
    let mut successor = None;
    let watch = |trial: &mut Trial, successor: &mut Option<usize>| {
        let now = agents.agreed(others());
        if successor.is_none() && now.is_some() {
            trial.replaced = Some(begun.elapsed().as_secs_f64());
            *successor = now;
        }
        let ours = agents.leader(leader);
        let claims = |answer: Answer| answer.is_leader && now.is_some();
        trial.claims += usize::from(ours.is_some_and(claims));
    };
    while begun.elapsed() < span {
        watch(&mut trial, &mut successor);
        thread::sleep(Duration::from_millis(20));
    }
    trial.hung = hung.end();
    let back = Instant::now();
    while back.elapsed() < seconds(3) {
        watch(&mut trial, &mut successor);
        thread::sleep(Duration::from_millis(20));
    }
    let _ = resigning.wait();
    let after = formed(agents, seconds(20));
    trial.deposed = successor.is_some_and(|successor| successor != after);
    trial.buried = buried(agents, leader, begun);
    Some(trial)
}

/// A follower has to write who leads now, and its disk hangs.
fn followers_disk_hangs(agents: &Agents<'_>, span: Duration) -> Option<Trial> {
    let leader = formed(agents, seconds(60));
    let follower = agents.all().find(|&at| at != leader).expect("there are several");
    let hung = HungDisk::of(agents, follower, span)?;
    let begun = Instant::now();
    let mut resigning = resign(agents, leader);
    let mut trial = Trial::default();
    let others = || agents.all().filter(|&at| at != follower);
    while begun.elapsed() < span {
        // It may be the one that was handed over to.
        if trial.replaced.is_none() && agents.agreed(others()).is_some() {
            trial.replaced = Some(begun.elapsed().as_secs_f64());
        }
        thread::sleep(Duration::from_millis(20));
    }
    trial.hung = hung.end();
    let _ = resigning.wait();
    formed(agents, seconds(20));
    trial.buried = buried(agents, follower, begun);
    Some(trial)
}

/// The answer may take as long as the disk, so nobody waits for it before they look.
fn resign(agents: &Agents<'_>, leader: usize) -> Child {
    let mut resign = agents.command(leader, &["resign", "default"]);
    let resign = resign.stdout(Stdio::null()).stderr(Stdio::null());
    resign.spawn().expect("the binary under test runs")
}

fn buried(agents: &Agents<'_>, at: usize, since: Instant) -> usize {
    let name = agents.name(at);
    let others = agents.all().filter(|&other| other != at);
    others.filter(|&other| agents.said(other, "member-failed", &name, since).is_some()).count()
}

#[test]
fn a_leader_whose_disk_hangs_is_replaced_and_lives() {
    let Some(net) = hosts(3) else { return };
    let agents = Agents::start(&net, "garden", &[0, 1, 2], &[]);
    let Some(trial) = leaders_disk_hangs(&agents, seconds(6)) else { return };
    assert!(trial.replaced.is_some_and(|after| after < BOUND), "{trial:?}");
    assert!(trial.claims == 0 && !trial.deposed && trial.buried == 0, "{trial:?}");
}

/// As many leaders' disks and followers' disks; what was wrong, line by line.
fn disks_hang(net: &Net, mode: &str, trials: usize) -> Option<String> {
    let mut rng = Seed::new(1).named("hangs").named(mode).rng();
    let agents = started(net, mode, &[0, 1, 2, 3, 4]);
    let (mut leaders, mut followers) = (Vec::new(), Vec::new());
    for _ in 0..trials {
        let span = Duration::from_secs_f64(20.0_f64.powf(rng.unit()));
        leaders.push((span, leaders_disk_hangs(&agents, span)?));
        let span = Duration::from_secs_f64(20.0_f64.powf(rng.unit()));
        followers.push((span, followers_disk_hangs(&agents, span)?));
    }
    let mut times = Spread::new();
    leaders.iter().filter_map(|(_, trial)| trial.replaced).for_each(|time| times.add(time));
    let sum = |of: fn(&Trial) -> usize, trials: &[(Duration, Trial)]| {
        trials.iter().map(|(_, trial)| of(trial)).sum::<usize>()
    };
    println!(
        "{mode}, fsync hung {trials} times at the leader, {trials} times at a follower, for 1 to 20 s ({} and {} wrote \
         meanwhile): the leader was replaced after {:.2} s (p50), {:.2} s (max); {} claims beside the successor, {} \
         successors deposed; {} leaders and {} followers declared dead",
        sum(|trial| usize::from(trial.hung), &leaders),
        sum(|trial| usize::from(trial.hung), &followers),
        times.quantile(0.5),
        times.quantile(1.0),
        sum(|trial| trial.claims, &leaders),
        sum(|trial| usize::from(trial.deposed), &leaders),
        sum(|trial| trial.buried, &leaders),
        sum(|trial| trial.buried, &followers),
    );
    let replaced_late = |&(span, ref trial): &(Duration, Trial)| {
        let long = span.as_secs_f64() > BOUND;
        trial.replaced.map_or(long, |after| after >= BOUND)
    };
    let bad = |trial: &Trial| trial.claims > 0 || trial.deposed || trial.buried > 0;
    let leaders = leaders.iter().filter(|hung| replaced_late(hung) || bad(&hung.1));
    let followers = followers.iter().filter(|(_, trial)| bad(trial));
    let line = |(span, trial): &(Duration, Trial)| format!("{mode}, {span:.1?}: {trial:?}\n");
    Some(leaders.chain(followers).map(line).collect())
}

#[test]
#[ignore = "160 disks that hang for 1 to 20 s, or 8 times HANGS: 20 take eight minutes"]
fn whoevers_disk_hangs_is_replaced_if_it_leads_and_buried_never() {
    let trials = std::env::var("HANGS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let Some(nets) = networks(MODES.len(), 5) else { return };
    let wrong: Vec<_> = thread::scope(|scope| {
        let start = |(net, mode)| scope.spawn(move || disks_hang(net, mode, trials));
        let started: Vec<_> = nets.iter().zip(MODES).map(start).collect();
        started.into_iter().map(|trials| trials.join()).collect()
    });
    let ended = wrong.iter().filter(|wrong| wrong.is_err()).count();
    let wrong: String = wrong.into_iter().flatten().flatten().collect();
    assert!(ended == 0 && wrong.is_empty(), "{ended} modes came to no end;\n{wrong}");
}

/// As many as it takes to keep all cores busy.
pub(crate) struct Busy(Vec<Child>);

impl Busy {
    pub(crate) fn of(count: usize) -> Self {
        // Ends with the test, should that be killed.
        let hog = "while kill -0 $PPID; do :; done";
        let hog = || Command::new("sh").args(["-c", hog]).spawn();
        Self((0..count).map(|_| hog().expect("a shell")).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

fn minutes() -> Duration {
    let minutes = std::env::var("BUSY_MINUTES").ok().and_then(|text| text.parse().ok());
    seconds(60 * minutes.unwrap_or(10))
}

#[test]
#[ignore = "all cores busy for ten minutes, or BUSY_MINUTES"]
fn a_leader_on_a_busy_host_is_not_deposed_if_nobody_misses_it() {
    let Some(net) = hosts(3) else { return };
    let agents = Agents::start(&net, "garden", &[0, 1, 2], &[]);
    let before = formed(&agents, seconds(30));
    let counts = || ["leader-elected", "stopped-leading", "stalled"].map(|kind| agents.count(kind));
    let (quiet, busy) = (counts(), Busy::of(12));
    let (span, begun) = (minutes(), Instant::now());
    while begun.elapsed() < span {
        thread::sleep(seconds(1));
    }
    let after = counts();
    drop(busy);
    let [elected, stopped, stalled] = [0, 1, 2].map(|at| after[at] - quiet[at]);
    println!(
        "eventual, {span:?} with 12 busy processes on {} cores: {elected} changes of leader told, {stopped} of a \
         leader that stopped, {stalled} stalls; the same leader: {}",
        thread::available_parallelism().map_or(0, usize::from),
        formed(&agents, seconds(30)) == before,
    );
    assert_eq!((elected, stopped), (0, 0));
}

/// Until the others agree on somebody else: the disk is given up after 1.14 s, word of it goes round, and they elect. Where
/// there is no such word its lease runs out, and another leads after 2.6 s (`leased`) or 3.8 s (`learned`).
const BOUND: f64 = 5.0;
const MODES: [&str; 4] = ["eventual", "announced", "leased", "learned"];
