//! How long the commands of two nodes run at once under `run` with its defaults, when something happens to the agent of the
//! leader: in a leased election never, and in the others as long as `docs/agent.md` says.
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts overlap -- --ignored --nocapture
//! ```

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bellwether_hosts::Net;
use rustix::process::Signal;

use crate::{
    agents::{Agents, until},
    formed, hosts, seconds,
};

const MODES: [&str; 5] = ["eventual", "announced", "central", "learned", "leased"];
const LIST: &str = "[\"host-0\", \"host-1\", \"host-2\"]";

/// Writes down when it lives, whatever it is asked.
const STUBBORN: &str = "trap '' TERM; while :; do date +%s%N; sleep 0.02; done >> ";
/// The same, until it is asked to end.
const OBEDIENT: &str = "while :; do date +%s%N; sleep 0.02; done >> ";

fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos()
}

/// When it lived.
fn lived(path: &Path) -> Vec<u128> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Ended with the trial.
struct Runs(Vec<Child>);

impl Drop for Runs {
    fn drop(&mut self) {
        for run in &mut self.0 {
            let _ = run.kill();
            let _ = run.wait();
        }
    }
}

/// How long after it happened the old command lived, and the first other one began, in seconds.
fn trial(net: &Net, mode: &str, stops: bool, command: &str) -> (f64, f64) {
    let mut flags = vec![format!("election.default.mode={mode}")];
    match mode {
        "leased" => flags.push(format!("election.default.members={LIST}")),
        "learned" => flags.push(format!("election.default.voters={LIST}")),
        _ => {}
    }
    let flags: Vec<&str> = flags.iter().flat_map(|flag| ["--set", flag]).collect();
    let mut agents = Agents::start(net, "garden", &[0, 1, 2], &flags);
    formed(&agents, seconds(60));
    let folder = tempfile::tempdir().expect("a folder");
    let file = |at: usize| folder.path().join(at.to_string());
    let runs = agents.all().map(|at| {
        let script = format!("{command}{}", file(at).display());
        let mut run = agents.command(at, &["run", "default", "--", "sh", "-c", &script]);
        let run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        run.spawn().expect("run")
    });
    let _runs = Runs(runs.collect());
    // Central elections may think again while their maps are new.
    let leader = until(seconds(60), "the leader's command runs", || {
        let leader = agents.agreed(agents.all())?;
        let lived = lived(&file(leader));
        let lives = lived.last().is_some_and(|last| nanos() - last < 300_000_000);
        (lives && lived.len() > 20).then_some(leader)
    });
    let happened = nanos();
    match stops {
        true => agents.signal(leader, Signal::STOP),
        false => agents.kill(leader),
    }
    let others = || agents.all().filter(|&at| at != leader);
    let since_then = |at: usize| lived(&file(at)).into_iter().find(|time| *time > happened);
    let first = || others().filter_map(since_then).min();
    let begun = until(seconds(30), "another command runs", first);
    let since = Instant::now();
    // Longer than any guard.
    while since.elapsed() < seconds(7) {
        thread::sleep(Duration::from_millis(100));
    }
    let gone = *lived(&file(leader)).last().expect("it ran");
    let after = |time: u128| (time as f64 - happened as f64) / 1e9;
    (after(gone), after(begun))
}

fn measure(net: &Net, mode: &str, trials: usize) {
    for (stops, command) in
        [(false, OBEDIENT), (false, STUBBORN), (true, OBEDIENT), (true, STUBBORN)]
    {
        let what = if stops { "stopped" } else { "killed" };
        let how = if command == STUBBORN { ", TERM is ignored" } else { "" };
        let trials: Vec<(f64, f64)> =
            (0..trials).map(|_| trial(net, mode, stops, command)).collect();
        let both: Vec<f64> = trials.iter().map(|(gone, begun)| gone - begun).collect();
        let span = |of: &dyn Fn(&(f64, f64)) -> f64| {
            let times: Vec<f64> = trials.iter().map(of).collect();
            let [least, most] = [f64::min, f64::max].map(|pick| times.iter().copied().reduce(pick));
            format!("{:.2} to {:.2} s", least.unwrap_or(0.0), most.unwrap_or(0.0))
        };
        println!(
            "{mode}, agent {what}{how}: the old command was gone after {}, the new one began after {}, both at once {}",
            span(&|(gone, _)| *gone),
            span(&|(_, begun)| *begun),
            span(&|(gone, begun)| (gone - begun).max(0.0)),
        );
        assert!(mode != "leased" || both.iter().all(|&both| both < 0.0), "{trials:?}");
        // The guard, of 5 s, begins when the agent last answered. A busy machine ends things later.
        assert!(trials.iter().all(|(gone, _)| *gone < 6.0), "{mode}: {trials:?}");
    }
}

/// The default guard is 5 s, and leases are shorter: the command is dead before a successor's begins.
#[test]
fn overlap_of_leased_leaders_there_is_none() {
    let Some(net) = hosts(3) else { return };
    let (gone, begun) = trial(&net, "leased", true, STUBBORN);
    assert!(gone < begun, "gone after {gone} s, begun after {begun} s");
}

#[test]
#[ignore = "five modes, four ways, three times each: ten minutes"]
fn overlap_of_every_mode_with_the_defaults() {
    let Some(net) = hosts(3) else { return };
    let only = std::env::var("OVERLAP_MODE").ok();
    for mode in MODES.into_iter().filter(|mode| only.as_ref().is_none_or(|only| only == mode)) {
        measure(&net, mode, 3);
    }
}
