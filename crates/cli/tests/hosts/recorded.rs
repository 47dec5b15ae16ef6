//! Agents that are cut off, killed and stopped while they record: what they recorded replays with equal effects.
//!
//! The short one runs with all others. The long one prints what it replayed:
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts -- --ignored --nocapture hour
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use bellwether_proto::{Rng, Seed};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    agents::{Agents, binary, until},
    hosts, seconds,
};

/// What is wrong, until when, and what must be done then.
enum Trouble {
    Cut,
    Unplugged(usize),
    Killed(usize),
    Stopped(usize),
}

impl Trouble {
    fn begin(agents: &mut Agents<'_>, net: &Net, rng: &mut Rng) -> Self {
        let at = rng.below(agents.all().len() as u64) as usize;
        match rng.below(4) {
            0 => {
                let (one, other) = agents.all().partition::<Vec<usize>, _>(|_| rng.chance(0.5));
                net.partition(&one, &other);
                Self::Cut
            }
            1 => {
                net.unplug(at);
                Self::Unplugged(at)
            }
            2 => {
                agents.kill(at);
                Self::Killed(at)
            }
            _ => {
                agents.signal(at, Signal::STOP);
                Self::Stopped(at)
            }
        }
    }

    fn end(self, agents: &mut Agents<'_>, net: &Net, kept: &mut Vec<PathBuf>) {
        match self {
            Self::Cut => net.mend(),
            Self::Unplugged(at) => net.plug(at),
            Self::Killed(at) => {
                kept.extend(put_aside(&recording(agents, at), kept.len()));
                agents.run(at);
            }
            Self::Stopped(at) => agents.signal(at, Signal::CONT),
        }
    }
}

fn recording(agents: &Agents<'_>, at: usize) -> PathBuf {
    agents.folder().join(format!("{}.record", agents.name(at)))
}

/// The last few lives are kept by the agent itself; here all of them are wanted. Who was killed as it began has none.
fn put_aside(file: &Path, number: usize) -> Option<PathBuf> {
    let aside = file.with_extension(format!("{number}.record"));
    fs::rename(file, &aside).is_ok().then_some(aside)
}

/// What the replays said.
#[derive(Debug, Default)]
struct Replays {
    files: usize,
    inputs: u64,
    reigns: usize,
}

fn replays_of_troubled(count: usize, span: Duration) -> Option<Replays> {
    let net = hosts(count)?;
    let all: Vec<usize> = (0..count).collect();
    let list = |names: &[usize]| {
        let names: Vec<String> = names.iter().map(|host| format!("\"host-{host}\"")).collect();
        format!("[{}]", names.join(", "))
    };
    // A leased election has fifteen members at most, and nobody else takes part.
    let leased = &all[..count.min(15)];
    let common = [
        "election.eventual.mode=eventual".to_owned(),
        "election.announced.mode=announced".to_owned(),
        "election.learned.mode=learned".to_owned(),
        format!("election.learned.voters={}", list(&all)),
    ];
    let own = [
        "election.leased.mode=leased".to_owned(),
        format!("election.leased.members={}", list(leased)),
    ];
    let mut agents =
        Agents::start_with(&net, "garden", &all, &["--record-limit", "4096"], |folder, host| {
            let file = folder.join(format!("host-{host}.record"));
            let mut flags = vec!["--record".to_owned(), file.display().to_string()];
            let sets = common.iter().chain(own.iter().filter(|_| leased.contains(&host)));
            flags.extend(sets.flat_map(|set| ["--set".to_owned(), set.clone()]));
            flags
        });
    until(seconds(60), "all are alive at all", || agents.are_complete(agents.all()).then_some(()));
    let mut rng = Seed::new(1).named("troubles").rng();
    let (begun, mut kept, mut kinds) = (Instant::now(), Vec::new(), [0; 4]);
    while begun.elapsed() < span {
        let trouble = Trouble::begin(&mut agents, &net, &mut rng);
        kinds[match trouble {
            Trouble::Cut => 0,
            Trouble::Unplugged(_) => 1,
            Trouble::Killed(_) => 2,
            Trouble::Stopped(_) => 3,
        }] += 1;
        thread::sleep(Duration::from_millis(200 + rng.below(5_000)));
        trouble.end(&mut agents, &net, &mut kept);
        thread::sleep(Duration::from_millis(rng.below(10_000)));
    }
    let [cut, unplugged, killed, stopped] = kinds;
    println!(
        "{count} agents for {:?}: {cut} partitions, {unplugged} cables pulled, {killed} killed, {stopped} stopped",
        begun.elapsed()
    );
    for at in agents.all() {
        agents.kill(at);
        kept.extend(put_aside(&recording(&agents, at), kept.len()));
    }
    let mut replays = Replays::default();
    for file in kept {
        let replayed = replay(&file);
        assert_eq!(replayed["equal"], true, "{replayed:#}");
        replays.files += 1;
        replays.inputs += replayed["inputs"].as_u64().expect("a number");
        let leaders = replayed["leaders"].as_object().expect("by election");
        replays.reigns +=
            leaders.values().map(|all| all.as_array().map_or(0, Vec::len)).sum::<usize>();
    }
    assert!(replays.files >= count, "{replays:?}");
    Some(replays)
}

fn replay(file: &Path) -> Value {
    let replay = Command::new(binary()).arg("replay").arg(file).arg("--json").output();
    let replay = replay.expect("the binary under test runs");
    let said = String::from_utf8_lossy(&replay.stdout);
    assert!(replay.status.success(), "{said}{}", String::from_utf8_lossy(&replay.stderr));
    serde_json::from_str(&said).expect("JSON")
}

#[test]
fn what_troubled_agents_recorded_replays_with_equal_effects() {
    let Some(replays) = replays_of_troubled(4, seconds(25)) else { return };
    assert!(replays.files >= 4 && replays.inputs > 1_000 && replays.reigns > 4, "{replays:?}");
}

#[test]
#[ignore = "an hour"]
fn a_recorded_hour_of_sixteen_agents_replays_with_equal_effects() {
    let span = std::env::var("HOSTS_SECONDS").map_or(3_600, |text| text.parse().expect("seconds"));
    let Some(replays) = replays_of_troubled(16, seconds(span)) else { return };
    println!("{replays:?}: all equal, from the first input to the last");
}
