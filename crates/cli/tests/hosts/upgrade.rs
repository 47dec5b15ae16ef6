//! A cluster that is upgraded while it runs, one agent after another, and back again, under a load of questions.
//!
//! The other version is this one as a later one might write: more behind every message, kinds of messages nobody knows, one
//! more version of packets, more keys on disk. Or it is another build, such as the last release:
//!
//! ```sh
//! HOSTS_OTHER_BINARY=/usr/bin/bellwether cargo test --release -p bellwether --test hosts upgrade -- --ignored --nocapture
//! ```

use std::{
    collections::BTreeMap,
    fs,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    agents::{Agents, Question, until},
    hosts, seconds,
};

const MODES: [&str; 5] = ["eventual", "leased", "announced", "learned", "central"];
/// Whoever leads these keeps leading while others come and go.
const STEADY: [&str; 2] = ["eventual", "leased"];

/// The flags and the binary of the other version.
fn other() -> (Option<String>, Vec<String>) {
    match std::env::var("HOSTS_OTHER_BINARY") {
        Ok(binary) => (Some(binary), vec![]),
        Err(_) => (None, vec!["--next-format".to_owned()]),
    }
}

/// What all of these say of an election, if it is the same: the leader and its epoch.
fn agreed(agents: &Agents<'_>, election: &str) -> Option<(String, String)> {
    let path = format!("/v1/elections/{election}");
    let said = agents.all().map(|at| {
        let answer = agents.ask(at, &path)?;
        Some((answer["name"].as_str()?.to_owned(), answer["epoch"].to_string()))
    });
    let said: Vec<(String, String)> = said.collect::<Option<_>>()?;
    said.iter().all(|one| *one == said[0]).then(|| said[0].clone())
}

type Leaders = BTreeMap<&'static str, (String, String)>;

fn leaders(agents: &Agents<'_>) -> Leaders {
    until(seconds(120), "all alive at all, and one leader in every mode", || {
        let leaders = MODES.iter().map(|&mode| Some((mode, agreed(agents, mode)?)));
        leaders.collect::<Option<Leaders>>().filter(|_| agents.are_complete(agents.all()))
    })
}

/// Counters of what was refused, of this life.
fn refused(agents: &Agents<'_>, at: usize) -> BTreeMap<String, u64> {
    let status = agents.ask(at, "/v1/status").expect("it answers");
    let dropped = status["counters"]["dropped"].as_object().expect("always there").clone();
    dropped.into_iter().map(|(name, count)| (name, count.as_u64().unwrap_or_default())).collect()
}

/// What came of it.
#[derive(Default)]
struct Rolled {
    /// Restarts of agents, and of those that led a steady election.
    restarts: usize,
    restarts_of_leaders: usize,
    /// Changes of leader or epoch there, without a restart of who led.
    changes: Vec<String>,
    unknown_kinds: u64,
    malformed: u64,
    /// Packets to all in a version that one did not speak of whom that was not known yet.
    versions: u64,
}

impl Rolled {
    /// Restarts each agent as the other version, or as this one again.
    fn roll(&mut self, agents: &mut Agents<'_>, to_other: bool) {
        for at in agents.all() {
            let before = leaders(agents);
            self.count(agents, at);
            agents.signal(at, Signal::TERM);
            until(seconds(15), "it ends", || agents.ended(at));
            let (binary, flags) = if to_other { other() } else { (None, vec![]) };
            agents.run_as(at, binary, flags);
            let after = leaders(agents);
            self.restarts += 1;
            for mode in STEADY {
                let led = before[mode].0 == agents.name(at);
                self.restarts_of_leaders += usize::from(led);
                if !led && before[mode] != after[mode] {
                    let restarted = agents.name(at);
                    let (was, is) = (&before[mode], &after[mode]);
                    self.changes.push(format!("{mode} {was:?} {is:?} as {restarted} restarted"));
                }
            }
        }
    }

    fn count(&mut self, agents: &Agents<'_>, at: usize) {
        let refused = refused(agents, at);
        let of = |name| refused.get(name).copied().unwrap_or_default();
        self.unknown_kinds += of("unknown-kind");
        self.malformed += of("malformed");
        self.versions += of("version");
    }
}

/// Rolls forth, and back if that is wanted, under load; says what came of it.
fn upgrade(net: &Net, count: usize, rounds: usize) -> Rolled {
    let list: Vec<String> = (0..count).map(|host| format!("\"host-{host}\"")).collect();
    let list = list.join(", ");
    let mut sets: Vec<String> =
        MODES.iter().map(|mode| format!("election.{mode}.mode={mode}")).collect();
    sets.push(format!("election.leased.members=[{list}]"));
    sets.push(format!("election.learned.voters=[{list}]"));
    let flags: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let every: Vec<usize> = (0..count).collect();
    let mut agents = Agents::start(net, "garden", &every, &flags);
    let (over, asked, answered) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut rolled = Rolled::default();
    thread::scope(|scope| {
        for host in 0..count {
            let door = net.host(host).door();
            let (over, asked, answered) = (&over, &asked, &answered);
            scope.spawn(move || {
                door.enter();
                while !over.load(Ordering::Relaxed) {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let answer = Question::put("/v1/leader").and_then(Question::answer);
                    answered.fetch_add(answer.is_some().into(), Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..rounds {
                rolled.roll(&mut agents, round % 2 == 0);
            }
            agents.all().for_each(|at| rolled.count(&agents, at));
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    println!(
        "{count} agents, {} restarts of which {} of leaders: {} other changes of leader, {} packets of unknown kinds, {} \
         of unknown versions, {} malformed; {} questions, {} answered",
        rolled.restarts,
        rolled.restarts_of_leaders,
        rolled.changes.len(),
        rolled.unknown_kinds,
        rolled.versions,
        rolled.malformed,
        asked.load(Ordering::Relaxed),
        answered.load(Ordering::Relaxed),
    );
    // What the other version has kept is still there.
    if rounds > 0 && std::env::var("HOSTS_OTHER_BINARY").is_err() {
        for at in agents.all() {
            let file = fs::read_to_string(agents.data_dir(at).join("node.json")).expect("a file");
            let file: Value = serde_json::from_str(&file).expect("JSON");
            assert!(file["format"] == 1 && file["later"]["than"] == 1, "{file}");
        }
    }
    rolled
}

fn judge(rolled: &Rolled) {
    assert_eq!(rolled.changes, Vec::<String>::new(), "beyond the restarts of leaders");
    assert_eq!(rolled.malformed, 0);
    if std::env::var("HOSTS_OTHER_BINARY").is_err() {
        assert!(rolled.unknown_kinds > 0, "the other version said nothing new");
    }
}

#[test]
fn agents_of_two_versions_are_one_cluster_and_are_upgraded_one_by_one() {
    let Some(net) = hosts(3) else { return };
    judge(&upgrade(&net, 3, 1));
}

#[test]
#[ignore = "five agents rolled forth and back three times under load, some minutes"]
fn five_agents_are_upgraded_and_downgraded_under_load() {
    let Some(net) = hosts(5) else { return };
    let begun = Instant::now();
    let rolled = upgrade(&net, 5, 6);
    println!("in {:.0} s", begun.elapsed().as_secs_f64());
    judge(&rolled);
}
