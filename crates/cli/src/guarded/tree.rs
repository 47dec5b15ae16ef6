//! Everything a process has started, and its end.
//!
//! Whoever is a *subreaper* becomes the parent of all below it that lose theirs, in whatever session or group they are. So all
//! of them can be found by their parents, and nothing leaves. A cgroup says the same without looking for it, and its kernel
//! kills what is in it at once; where there is one, both are used.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, pidfd_open, pidfd_send_signal, wait,
};

/// A process, told from a later one of the same number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Process {
    number: i32,
    /// When it was started, in ticks of the machine's life.
    started: u64,
}

/// What the kernel says of one.
struct Seen {
    process: Process,
    parent: i32,
    group: i32,
    /// It has ended, and nobody has asked how.
    ended: bool,
}

impl Seen {
    fn read(number: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The name in front of it may have anything in it.
        let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
        let number_at = |at: usize| fields.get(at)?.parse::<i32>().ok();
        Some(Self {
            process: Process { number, started: fields.get(19)?.parse().ok()? },
            parent: number_at(1)?,
            group: number_at(2)?,
            ended: matches!(*fields.first()?, "Z" | "X"),
        })
    }
}

impl Process {
    fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.number) else { return };
        // From here on it is this one that is meant, or none.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Seen::read(self.number).is_some_and(|seen| seen.process == self) {
            // It may have ended by itself.
            let _ = pidfd_send_signal(&held, signal);
        }
    }
}

/// All that live below `root`, with their process groups.
fn below(root: Pid) -> BTreeMap<Process, i32> {
    let mut children: BTreeMap<i32, Vec<Seen>> = BTreeMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for seen in numbers.filter_map(Seen::read) {
        children.entry(seen.parent).or_default().push(seen);
    }
    let (mut found, mut left) = (BTreeMap::new(), vec![root.as_raw_nonzero().get()]);
    while let Some(parent) = left.pop() {
        for seen in children.remove(&parent).into_iter().flatten() {
            left.push(seen.process.number);
            if !seen.ended {
                found.insert(seen.process, seen.group);
            }
        }
    }
    found
}

/// Asks everything below `root` to end that is not in this process group, which has been asked.
pub(super) fn term_strays(root: Pid, group: Pid) {
    let group = group.as_raw_nonzero().get();
    for (process, _) in below(root).into_iter().filter(|(_, of)| *of != group) {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
}

/// Ends everything below `root`, and in the cgroup, and asks how our own children ended. False if something could not be ended.
pub(super) fn end(
    root: Pid,
    cgroup: Option<&Cgroup>,
    mut ended: impl FnMut(Pid, WaitStatus),
) -> bool {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(cgroup) = cgroup {
            cgroup.kill();
        }
        // What does not run starts nothing: first all are stopped, until nobody is new.
        let mut stopped = BTreeSet::new();
        for _ in 0..ROUNDS {
            let fresh: Vec<Process> =
                below(root).into_keys().filter(|one| !stopped.contains(one)).collect();
            if fresh.is_empty() {
                break;
            }
            fresh.iter().for_each(|one| one.signal(Signal::STOP));
            stopped.extend(fresh);
        }
        stopped.iter().for_each(|one| one.signal(Signal::KILL));
        reap(&mut ended);
        if stopped.is_empty() && cgroup.is_none_or(Cgroup::is_empty) {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        thread::sleep(MOMENT);
    }
}

/// Asks how those of our children ended that have.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        ended(pid, status);
    }
}

/// A cgroup of the second kind, for one command and all it starts.
#[derive(Debug)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// A new one below our own, if we may make one that can be killed as a whole.
    pub(super) fn create(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mounted = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let at = words.next()?;
            (words.next() == Some("cgroup2")).then_some(at)
        })?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let path = Path::new(mounted).join(own).join(name);
        fs::create_dir(&path).ok()?;
        let made = Self(path);
        if !made.0.join("cgroup.kill").exists() {
            made.remove();
            return None;
        }
        Some(made)
    }

    pub(super) fn known(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Puts this process into it.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    fn kill(&self) {
        // It may have been removed: then nothing was in it.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    fn is_empty(&self) -> bool {
        let events = fs::read_to_string(self.0.join("cgroup.events")).unwrap_or_default();
        !events.lines().any(|line| line == "populated 1")
    }

    /// Once it is empty. Whoever else has removed it has done what we would.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// For all to be gone that can be ended.
const PATIENCE: Duration = Duration::from_secs(5);
/// Times to look for processes that came up while others were stopped, before they are killed all the same.
const ROUNDS: usize = 16;
const MOMENT: Duration = Duration::from_millis(2);
