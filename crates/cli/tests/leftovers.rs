//! What `bellwether run` leaves behind: nothing, whatever the command does and whoever is killed or stopped.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

mod command;
mod lone;

use std::{
    fs,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use lone::Lone;
use rustix::process::{Pid, Signal, kill_process};

/// Sessions of its own, double forks, forks at every level, one that forks all the time; none minds being asked to end.
const BREED: &str = r#"
trap '' TERM HUP INT
setsid sleep 600 &
(setsid sh -c 'trap "" TERM; (sleep 600 &); sleep 600 & wait' &)
sh -c 'sh -c "setsid sh -c \"sleep 600 & sleep 600\" & sleep 600" & sleep 600' &
setsid sh -c 'trap "" TERM; while :; do (sleep 0.05 &); sleep 0.02; done' &
echo up
wait; wait; wait; sleep 600
"#;

/// On a busy machine an agent may be silent for some of it.
const GUARD: Duration = Duration::from_secs(1);

/// What happens to a guarded command.
#[derive(Clone, Copy, Debug)]
enum Fate {
    KillRun,
    StopRun,
    KillWatchdog,
    /// Together with the agent: nobody but `run` itself can act.
    StopWatchdog,
    KillAgent,
    EndOfCommand,
}

const FATES: [Fate; 6] = [
    Fate::KillRun,
    Fate::StopRun,
    Fate::KillWatchdog,
    Fate::StopWatchdog,
    Fate::KillAgent,
    Fate::EndOfCommand,
];

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// All processes that live and were given this mark, and their cgroups.
fn marked(mark: &str) -> Vec<(u32, String)> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of = |number: u32| {
        let environment = fs::read(format!("/proc/{number}/environ")).ok()?;
        let has = environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes());
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let cgroup = fs::read_to_string(format!("/proc/{number}/cgroup")).ok()?;
        (has && !stat.contains(") Z ")).then_some((number, cgroup))
    };
    numbers.filter_map(of).collect()
}

fn child_of(parent: u32) -> u32 {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is = |number: &u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(1);
        fields.next() == Some(&parent.to_string())
    };
    numbers.find(is).expect("a child")
}

/// Killed at the end, so that a failure leaves nothing either.
struct Run(Child, String);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        for (number, _) in marked(&self.1) {
            signal(number, Signal::KILL);
        }
    }
}

/// Whether a cgroup was used.
fn trial(number: usize, fate: Fate, flags: &[&str]) -> bool {
    let mut lone = Lone::start(&["web=eventual"], "", &[]);
    let mark = format!("MARK_OF_TEST={}-{number}", std::process::id());
    // Where it does not matter, it is long; and what has ended does not come back.
    let guard = if matches!(fate, Fate::EndOfCommand) { 10 * GUARD } else { GUARD };
    let guard = format!("{}ms", guard.as_millis());
    let times = ["--once", "--guard", &guard, "--grace", "300ms"];
    let script = match fate {
        Fate::EndOfCommand => BREED.replace("wait; wait; wait; sleep 600", "sleep 0.5; exit 7"),
        _ => BREED.to_owned(),
    };
    let tail = ["web", "--", "env", &mark, "sh", "-c", &script];
    let mut run = lone.over_http(&[&["run"], &times[..], flags, &tail].concat());
    let run = run.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut run = Run(run, mark.clone());
    let deadline = Instant::now() + Duration::from_secs(30);
    while marked(&mark).len() < 10 {
        assert!(Instant::now() < deadline, "{fate:?} {flags:?}: {:?}", marked(&mark));
        thread::sleep(Duration::from_millis(5));
    }
    let in_cgroup = marked(&mark).iter().any(|(_, cgroup)| cgroup.contains("/bellwether-run-"));
    let mut exit = None;
    match fate {
        Fate::KillRun => run.0.kill().unwrap(),
        Fate::StopRun => signal(run.0.id(), Signal::STOP),
        Fate::KillWatchdog => {
            // With `--once` nothing is begun again, and `run` says that the command did not end of itself.
            signal(child_of(run.0.id()), Signal::KILL);
            exit = Some(1);
        }
        Fate::StopWatchdog => {
            signal(child_of(run.0.id()), Signal::STOP);
            lone.agent.kill().unwrap();
        }
        Fate::KillAgent => lone.agent.kill().unwrap(),
        Fate::EndOfCommand => exit = Some(7),
    }
    let begun = Instant::now();
    loop {
        let left = marked(&mark);
        if left.is_empty() {
            break;
        }
        let late = begun.elapsed() > GUARD + Duration::from_secs(1);
        assert!(!late, "{fate:?} {flags:?}: {} still live", left.len());
        thread::sleep(Duration::from_millis(5));
    }
    // And nothing comes back.
    thread::sleep(Duration::from_millis(100));
    assert_eq!(marked(&mark), [], "{fate:?} {flags:?}");
    if let Some(code) = exit {
        assert_eq!(run.0.wait().unwrap().code(), Some(code), "{fate:?} {flags:?}");
    }
    in_cgroup
}

/// Four at a time: each waits for most of its life.
fn trials(each: usize) {
    let numbers: Vec<usize> = (0..each * FATES.len() * 2).collect();
    let with_cgroup = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for part in numbers.chunks(numbers.len().div_ceil(4)) {
            let with_cgroup = &with_cgroup;
            scope.spawn(move || {
                for &number in part {
                    let flags: &[&str] = if number % 2 == 0 { &[] } else { &["--no-cgroup"] };
                    let used = trial(number, FATES[number / 2 % FATES.len()], flags);
                    assert!(!used || flags.is_empty(), "a cgroup that nobody wanted");
                    with_cgroup.fetch_add(used.into(), std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    println!("{} trials, {with_cgroup:?} of them in a cgroup", numbers.len());
}

#[test]
fn nothing_of_a_guarded_command_outlives_it() {
    trials(2);
}

#[test]
#[ignore = "108 trials take minutes"]
fn nothing_of_a_guarded_command_outlives_it_a_hundred_times() {
    trials(9);
}
