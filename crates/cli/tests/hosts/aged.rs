//! Old groups and newcomers: agents that have elected a great many leaders meet others that had elected themselves.
//!
//! One trial runs with all others. Five at each of four ages:
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts -- --ignored --nocapture aged
//! ```
//!
//! How old a group is stands on its disks, in the form an agent writes. A minority cannot elect itself where a majority
//! decides: in those modes the newcomers are the ones that come late.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use bellwether_proto::{Boot, ElectionId, Epoch, NodeId, Peer};
use serde_json::{Value, json};

use crate::{
    agents::{Agents, until},
    hosts,
    measured::Spread,
    seconds,
    watch::one_leader,
};

/// Those that have terms.
const MODES: [&str; 4] = ["eventual", "announced", "leased", "learned"];
const OLD: [usize; 3] = [0, 1, 2];
const NEW: [usize; 2] = [3, 4];
const AGES: [u64; 4] = [1, 1 << 20, 1 << 40, 1 << 63];
/// After they can talk.
const WITHIN: Duration = Duration::from_secs(10);

/// The disk of an agent whose group has elected so many leaders.
fn disk(folder: &Path, host: usize, age: u64) {
    // Of the same size as what an agent would draw, and never the same.
    let id = |host: usize| NodeId::new(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(host as u64 + 1));
    let epoch = Epoch::mint(age, Peer::new(id(OLD[0]), Boot::new(3))).to_string();
    let kept = |mode: &str| match mode {
        "eventual" => json!({ "known": epoch, "vouched": epoch }),
        "announced" => json!({ "counter": age, "vouched": epoch }),
        "leased" => json!({ "leased": epoch }),
        _ => json!({ "ballot": { "voters": {}, "term": age } }),
    };
    let elections = MODES.map(|mode| (ElectionId::named(mode).to_string(), kept(mode)));
    let elections: serde_json::Map<String, Value> = elections.into_iter().collect();
    let file = json!({
        "id": format!("{:016x}", id(host).get()),
        "boot": 5,
        "elections": elections,
    });
    let directory = folder.join(format!("host-{host}"));
    DirBuilder::new().mode(0o700).create(&directory).expect("a folder");
    fs::write(directory.join("node.json"), file.to_string()).expect("there is room");
}

fn counter(answer: &Value) -> u64 {
    answer["epoch"].as_str().expect("it has one").parse::<Epoch>().expect("it is one").counter()
}

/// How soon after they could talk all had one leader for good, in each of these modes.
fn meet(net: &Net, age: u64, modes: &[&str]) -> Vec<Duration> {
    net.partition(&OLD, &NEW);
    let all: Vec<usize> = OLD.into_iter().chain(NEW).collect();
    let list: Vec<String> = all.iter().map(|host| format!("\"host-{host}\"")).collect();
    let list = list.join(", ");
    let lists = [("leased", "members"), ("learned", "voters")];
    let lists = lists.iter().filter(|(mode, _)| modes.contains(mode));
    let modes_set = modes.iter().map(|mode| format!("election.{mode}.mode={mode}"));
    let sets = modes_set.chain(lists.map(|(mode, key)| format!("election.{mode}.{key}=[{list}]")));
    let sets: Vec<String> = sets.collect();
    let flags: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let agents = Agents::start_with(net, "garden", &all, &flags, |folder, host| {
        if OLD.contains(&host) {
            disk(folder, host, age);
        }
        vec![]
    });
    // By a majority of five, three decide; voters must all have met once.
    let decided = |mode: &&&str| **mode != "learned";
    for mode in modes.iter().filter(decided) {
        let led = until(seconds(60), "the old group has a leader", || one_leader(net, &OLD, mode));
        assert!(counter(&led) >= age, "{mode} at {age}: {led}");
    }
    for mode in modes.iter().filter(|mode| ["eventual", "announced"].contains(mode)) {
        // They do not know of each other either: all addresses they were given are of the old group.
        for host in NEW {
            let led = || one_leader(net, &[host], mode).or_else(|| one_leader(net, &NEW, mode));
            let led = until(seconds(60), "newcomers have elected themselves", led);
            assert!(counter(&led) < 100, "{mode}: {led}");
        }
    }
    net.mend();
    let met = Instant::now();
    let mut since: Vec<Option<Duration>> = vec![None; modes.len()];
    // For long enough to see one that does not last.
    let lasts = |since: &[Option<Duration>]| {
        let last = since.iter().copied().collect::<Option<Vec<_>>>()?.into_iter().max()?;
        (met.elapsed() >= last + seconds(3)).then_some(())
    };
    while lasts(&since).is_none() && met.elapsed() < WITHIN * 4 {
        for (since, mode) in since.iter_mut().zip(modes) {
            match one_leader(net, &all, mode) {
                Some(led) => {
                    assert!(counter(&led) >= age, "{mode} at {age}: {led}");
                    since.get_or_insert_with(|| met.elapsed());
                }
                None => *since = None,
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
    drop(agents);
    since.into_iter().map(|since| since.unwrap_or(WITHIN * 4)).collect()
}

#[test]
fn aged_groups_are_joined_by_those_that_had_elected_themselves() {
    let Some(net) = hosts(OLD.len() + NEW.len()) else { return };
    let modes = ["eventual", "announced"];
    let took = meet(&net, 1 << 40, &modes);
    println!("{modes:?}: {took:.2?}");
    assert!(took.iter().all(|&took| took <= WITHIN), "{modes:?}: {took:?}");
}

#[test]
#[ignore = "20 trials with real agents"]
fn aged_groups_of_every_age_have_one_leader_soon_after_they_meet_newcomers() {
    let Some(net) = hosts(OLD.len() + NEW.len()) else { return };
    println!("one leader for good so long after old groups and newcomers could talk, of 5 trials:");
    println!("{:>20} {:>10} {:>8} {:>8}", "terms before", "mode", "p50 s", "max s");
    let mut late = Vec::new();
    for age in AGES {
        let mut times = MODES.map(|_| Spread::new());
        for _ in 0..5 {
            let took = meet(&net, age, &MODES);
            times.iter_mut().zip(took).for_each(|(times, took)| times.add(took.as_secs_f64()));
        }
        for (mode, times) in MODES.iter().zip(&times) {
            let (half, max) = (times.quantile(0.5), times.quantile(1.0));
            println!("{age:>20} {mode:>10} {half:>8.2} {max:>8.2}");
            if max > WITHIN.as_secs_f64() {
                late.push((age, mode, max));
            }
        }
    }
    assert!(late.is_empty(), "{late:?}");
}
