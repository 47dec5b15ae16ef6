//! One identity in two places: directories that are copied, put back from a backup, copied from a running agent, or given
//! to two agents at once.
//!
//! One short trial of each runs with all others. Twenty of each, in which the leaders of all five modes take turns:
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts -- --ignored --nocapture identity
//! ```
//!
//! All agents are asked all the time who leads, and every packet between them is heard. There are never two leaders under
//! one epoch, nor two leases at once; of two lives of one node the older one is gone within five seconds; and no number
//! was used twice under one key.

use std::{
    fmt, fs,
    net::UdpSocket,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use bellwether_agent::{KeyRing, internal::Sealer};
use bellwether_hosts::Net;
use bellwether_proto::{Boot, NodeId, Peer};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    agents::{Agents, Question, until},
    hosts, seconds,
    watch::{Capture, Numbers, Watch, one_leader, shared_epochs, shared_leases},
};

const MODES: [&str; 5] = ["eventual", "announced", "central", "leased", "learned"];
/// Hosts that have an agent. The one behind them has none.
const AGENTS: usize = 3;
const SPARE: usize = AGENTS;
/// Of two lives the older one is gone by then.
const GONE: Duration = Duration::from_secs(5);

/// How a node comes to run twice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Two copies of a directory are started, one a while after the other.
    Cloned,
    /// What an earlier life left on disk is put back; every other time elsewhere, while the last life runs on.
    Restored,
    /// The directory of a running agent is copied, and started elsewhere; every other time while the first is stopped,
    /// to go on later.
    Resumed,
    /// Two agents are to run on one directory; every other time they are started at once.
    Twice,
}

/// A running agent beside those that are meant to be.
struct Copy {
    process: Child,
    folder: tempfile::TempDir,
    host: usize,
}

impl Copy {
    fn ended(&mut self) -> Option<Option<i32>> {
        self.process.try_wait().expect("it can be asked").map(|status| status.code())
    }

    fn words(&self) -> String {
        Agents::words_of_copy(self.folder.path())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A row of the table.
struct Outcome {
    kind: Kind,
    number: usize,
    /// Whose leader was hit.
    mode: &'static str,
    what: &'static str,
    /// Whether the two did not reach each other.
    apart: bool,
    /// How soon the older life was gone, or the second agent refused, or the restored one a member again.
    took: Duration,
    /// How soon there was one leader in every mode, of all that then ran.
    settled: Duration,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, number, mode, what, apart, took, settled } = self;
        let apart = if *apart { "apart" } else { "" };
        let kind = format!("{kind:?}").to_lowercase();
        write!(f, "{kind:>9} {number:>3} {mode:>10} {what:>42} {apart:>6} ")?;
        write!(f, "{:>8.2}", took.as_secs_f64())?;
        write!(f, " {:>8.2}", settled.as_secs_f64())
    }
}

/// A cluster with an election of every mode, and witnesses.
struct World<'n> {
    net: &'n Net,
    agents: Agents<'n>,
    watch: Watch,
    capture: Capture,
    /// How much the agent that is hit had written down before.
    said: usize,
    failures: Vec<String>,
}

impl<'n> World<'n> {
    fn new(net: &'n Net) -> Self {
        let all: Vec<usize> = (0..AGENTS).collect();
        let list: Vec<String> = all.iter().map(|host| format!("\"host-{host}\"")).collect();
        let list = list.join(", ");
        let mut sets: Vec<String> =
            MODES.iter().map(|mode| format!("election.{mode}.mode={mode}")).collect();
        sets.push(format!("election.leased.members=[{list}]"));
        sets.push(format!("election.learned.voters=[{list}]"));
        let mut flags: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        flags.extend(["--log", "json"]);
        let (watch, capture) = (Watch::start(net, AGENTS + 1), Capture::start(net));
        let agents = Agents::start(net, "garden", &all, &flags);
        let world = Self { net, agents, watch, capture, said: 0, failures: vec![] };
        world.settled(&all);
        world
    }

    /// Waits until all agents of these hosts name one leader in every mode, and it alone says that it leads: who that is.
    fn settled(&self, hosts: &[usize]) -> Vec<String> {
        until(seconds(90), "one leader in every mode", || {
            let leader = |mode: &&str| {
                let answer = one_leader(self.net, hosts, mode)?;
                answer["name"].as_str().map(str::to_owned)
            };
            MODES.iter().map(leader).collect()
        })
    }

    fn run(&mut self, at: usize) {
        self.watch.begin(self.agents.host(at));
        self.agents.run(at);
    }

    /// Starts that node elsewhere too, on this folder.
    fn run_copy(&self, of: usize, host: usize, folder: tempfile::TempDir) -> Copy {
        self.watch.begin(host);
        Copy { process: self.agents.run_copy(of, host, folder.path()), folder, host }
    }

    /// Its directory, with all that is in it.
    fn copied(&self, of: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let from = self.agents.data_dir(of).join(".");
        let copied = Command::new("cp").arg("-a").arg(from).arg(folder.path()).status();
        assert!(copied.expect("cp").success());
        folder
    }

    fn note(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.failures.push(what());
        }
    }

    fn trial(&mut self, kind: Kind, number: usize) -> Outcome {
        let mode = MODES[number % MODES.len()];
        let all: Vec<usize> = self.agents.all().collect();
        let leaders = self.settled(&all);
        let leader = &leaders[number % MODES.len()];
        let victim = all.iter().copied().find(|&at| self.agents.name(at) == *leader);
        let victim = victim.expect("one of them leads");
        self.said = self.agents.words(victim).len();
        // Every mode is hit in both ways, and in each of them once where the two do not reach each other: others must tell.
        let (other, apart) = ((number / MODES.len()) % 2 == 1, number >= 2 * MODES.len());
        if apart {
            self.net.partition(&[self.agents.host(victim)], &[SPARE]);
        }
        let (what, took, runs) = match kind {
            Kind::Cloned => self.cloned(victim, number),
            Kind::Restored => self.restored(victim, other),
            Kind::Resumed => self.resumed(victim, other),
            Kind::Twice => self.twice(victim, other),
        };
        self.net.mend();
        let begun = Instant::now();
        let hosts: Vec<usize> = match &runs {
            Some(copy) => {
                let others = all.iter().map(|&at| self.agents.host(at));
                let others = others.filter(|&host| host != self.agents.host(victim));
                others.chain([copy.host]).collect()
            }
            None => all.clone(),
        };
        self.settled(&hosts);
        let settled = begun.elapsed();
        // As it was: the copy is gone, and the node back on the host and the directory that are its own.
        if let Some(copy) = runs {
            drop(copy);
            self.agents.kill(victim);
            self.run(victim);
        }
        Outcome { kind, number, mode, what, apart, took, settled }
    }

    fn cloned(&mut self, victim: usize, number: usize) -> (&'static str, Duration, Option<Copy>) {
        self.agents.kill(victim);
        let [one, other] = [self.copied(victim), self.copied(victim)];
        let mut first = self.run_copy(victim, self.agents.host(victim), one);
        thread::sleep(Duration::from_millis([0, 300, 1_000, 4_000][number % 4]));
        let begun = Instant::now();
        let mut second = self.run_copy(victim, SPARE, other);
        let (code, first_ended) = until(GONE * 2, "one of two copies has ended", || {
            let second = second.ended().map(|code| (code, false));
            first.ended().map(|code| (code, true)).or(second)
        });
        let took = begun.elapsed();
        let (what, gone, mut stays) = match first_ended {
            true => ("two copies: the first ended", first, second),
            false => ("two copies: the second ended", second, first),
        };
        self.judge_gone(what, took, code, &gone.words());
        self.note(stays.ended().is_none(), || format!("{what}: and so did the other"));
        (what, took, Some(stays))
    }

    fn restored(&mut self, victim: usize, runs_on: bool) -> (&'static str, Duration, Option<Copy>) {
        let file = self.agents.data_dir(victim).join("node.json");
        let backup = fs::read(&file).expect("it has started");
        for _ in 0..2 {
            self.agents.kill(victim);
            self.run(victim);
            self.listed(victim, 0);
        }
        let last = boot(&fs::read(&file).expect("it has started"));
        if runs_on {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join("node.json"), backup).expect("there is room");
            let (begun, copy) = (Instant::now(), self.run_copy(victim, SPARE, folder));
            let what = "backup elsewhere, the last life runs on";
            return self.older_gone(what, begun, victim, copy);
        }
        self.agents.kill(victim);
        fs::write(&file, backup).expect("there is room");
        let begun = Instant::now();
        self.run(victim);
        self.listed(victim, last);
        let took = begun.elapsed();
        let what = "backup put back: a member again";
        self.note(took <= GONE * 2, || format!("{what} after {took:?} only"));
        let runs = self.agents.ended(victim).is_none();
        self.note(runs, || format!("{what}: it ended"));
        (what, took, None)
    }

    fn resumed(&mut self, victim: usize, stopped: bool) -> (&'static str, Duration, Option<Copy>) {
        if stopped {
            self.agents.signal(victim, Signal::STOP);
        }
        let folder = self.copied(victim);
        let begun = Instant::now();
        let copy = self.run_copy(victim, SPARE, folder);
        if !stopped {
            let what = "copied from a running one, which runs on";
            return self.older_gone(what, begun, victim, copy);
        }
        thread::sleep(seconds(6));
        let begun = Instant::now();
        self.agents.signal(victim, Signal::CONT);
        self.older_gone("copied from a stopped one, which goes on", begun, victim, copy)
    }

    fn older_gone(
        &mut self,
        what: &'static str,
        begun: Instant,
        victim: usize,
        mut copy: Copy,
    ) -> (&'static str, Duration, Option<Copy>) {
        let code = until(GONE * 2, "the older life has ended", || self.agents.ended(victim));
        let took = begun.elapsed();
        let words = self.agents.words(victim).split_off(self.said);
        self.judge_gone(what, took, code, &words);
        self.note(copy.ended().is_none(), || format!("{what}: and so did the copy"));
        (what, took, Some(copy))
    }

    fn twice(&mut self, victim: usize, at_once: bool) -> (&'static str, Duration, Option<Copy>) {
        if at_once {
            self.agents.kill(victim);
            self.run(victim);
        }
        let directory = self.agents.data_dir(victim);
        let begun = Instant::now();
        self.watch.begin(SPARE);
        let mut second = self.agents.run_copy(victim, SPARE, &directory);
        // Which of the two is refused is up to the kernel if they are started at once.
        let (code, second_ended) = until(GONE, "one of the two has ended", || {
            let second = second.try_wait().expect("it can be asked");
            let second = second.map(|status| (status.code(), true));
            second.or_else(|| self.agents.ended(victim).map(|code| (code, false)))
        });
        let took = begun.elapsed();
        let first = self.agents.pid(victim).as_raw_nonzero().get();
        let (holder, words) = match second_ended {
            true => (first, Agents::words_of_copy(&directory)),
            false => (second.id() as i32, self.agents.words(victim).split_off(self.said)),
        };
        let what =
            if at_once { "one directory, started at once" } else { "one directory, the second" };
        self.note(code == Some(2), || format!("{what}: ended with {code:?}"));
        let named = format!("the agent of process {holder} runs on this directory");
        self.note(words.contains(&named), || format!("{what}: not {named:?}, but {words}"));
        if !second_ended {
            let _ = second.kill();
            let _ = second.wait();
            self.run(victim);
        }
        let _ = fs::remove_file(directory.join("copy.log"));
        (what, took, None)
    }

    fn judge_gone(&mut self, what: &str, took: Duration, code: Option<i32>, words: &str) {
        self.note(took <= GONE, || format!("{what}: after {took:?} only"));
        self.note(code == Some(5), || format!("{what}: with {code:?}"));
        self.note(words.contains("\"duplicate-identity\""), || format!("{what}: said {words}"));
    }

    /// Waits until all others list it in a life above this one.
    fn listed(&self, victim: usize, above: u64) {
        let id = |status: &Value| status["node"]["id"].clone();
        until(seconds(20), "all others list it in its present life", || {
            let own = self.agents.ask(victim, "/v1/status")?;
            let boot = own["node"]["boot"].as_u64().filter(|&boot| boot > above)?;
            let knows = |at: usize| {
                let status = self.agents.ask(at, "/v1/status")?;
                let member = status["members"].as_array()?.iter().find(|it| it["id"] == id(&own));
                member.filter(|it| it["state"] == "alive" && it["boot"] == boot).map(|_| ())
            };
            self.agents.all().filter(|&at| at != victim).try_for_each(knows)
        });
    }

    /// What the witnesses say, and what else did not hold.
    fn end(self) -> (String, Vec<String>) {
        let Self { agents, watch, capture, mut failures, .. } = self;
        drop(agents);
        let (claims, numbers) = (watch.claims(), Numbers::of(&capture.end()));
        failures.extend(shared_epochs(&claims).into_iter().map(|it| format!("two leaders: {it}")));
        failures.extend(shared_leases(&claims).into_iter().map(|it| format!("two leases: {it}")));
        let Numbers { lives, packets, repeated } = numbers;
        failures.extend(repeated.iter().map(|it| format!("used twice under one key: {it:?}")));
        let of = |mode: &&str| claims.iter().filter(|claim| claim.election == **mode).count();
        let words = format!(
            "{} answers, of them claims {:?} in {MODES:?}: {} epochs with two leaders, {} leases at once; \
             {packets} packets under the keys of {} lives: {} numbers used twice",
            watch.end(),
            MODES.each_ref().map(of),
            shared_epochs(&claims).len(),
            shared_leases(&claims).len(),
            lives.len(),
            repeated.len(),
        );
        // Who does not look does not find.
        if packets < 1_000 || MODES.iter().any(|mode| of(mode) < 10) {
            failures.push(format!("too little was seen: {words}"));
        }
        (words, failures)
    }
}

fn boot(file: &[u8]) -> u64 {
    let kept: Value = serde_json::from_slice(file).expect("it was written by an agent");
    kept["boot"].as_u64().expect("it was written by an agent")
}

fn trials(kinds: &[(Kind, usize)]) {
    let Some(net) = hosts(AGENTS + 1) else { return };
    println!(
        "{:>9} {:>3} {:>10} {:>42} {:>6} {:>8} {:>8}",
        "kind", "", "leader of", "", "", "gone s", "settled s"
    );
    let mut world = World::new(&net);
    for &(kind, number) in kinds {
        println!("{}", world.trial(kind, number));
    }
    let (words, failures) = world.end();
    println!("{words}");
    assert!(failures.is_empty(), "{failures:#?}");
}

fn twenty(kind: Kind) {
    trials(&(0..20).map(|number| (kind, number)).collect::<Vec<_>>());
}

#[test]
fn an_identity_in_two_places_never_leads_twice_under_one_epoch() {
    trials(&[(Kind::Twice, 0), (Kind::Resumed, 13), (Kind::Restored, 5), (Kind::Cloned, 2)]);
}

#[test]
#[ignore = "20 trials with real agents"]
fn identity_of_cloned_directories() {
    twenty(Kind::Cloned);
}

#[test]
#[ignore = "20 trials with real agents"]
fn identity_restored_from_a_backup() {
    twenty(Kind::Restored);
}

#[test]
#[ignore = "20 trials with real agents"]
fn identity_resumed_from_a_snapshot() {
    twenty(Kind::Resumed);
}

#[test]
#[ignore = "20 trials with real agents"]
fn identity_of_one_directory_for_two() {
    twenty(Kind::Twice);
}

/// Nobody else is there to tell them. The copy comes out below the life that its original lives, as one in two does of
/// those that begin from one copy.
#[test]
fn a_copy_that_reaches_its_original_alone_is_told_by_it() {
    let Some(net) = hosts(2) else { return };
    let mut agents = Agents::start(&net, "garden", &[0], &["--log", "json"]);
    let leads = |agents: &Agents<'_>| agents.leader(0).filter(|answer| answer.is_leader);
    until(seconds(20), "it leads, alone", || leads(&agents));
    agents.kill(0);
    let file = agents.data_dir(0).join("node.json");
    let copy = tempfile::tempdir().expect("a folder");
    fs::copy(&file, copy.path().join("node.json")).expect("there is room");
    let kept = fs::read(&file).expect("it has started");
    let mut later: Value = serde_json::from_slice(&kept).expect("it was written by an agent");
    later["boot"] = (boot(&kept) + (1 << 34)).into();
    fs::write(&file, later.to_string()).expect("there is room");
    agents.run(0);
    until(seconds(20), "it leads, alone", || leads(&agents));
    let begun = Instant::now();
    let process = agents.run_copy(0, 1, copy.path());
    let mut copy = Copy { process, folder: copy, host: 1 };
    let code = until(GONE * 2, "one of the two has ended", || agents.ended(0));
    println!("alone with its copy, it ended with {code:?} after {:.2?}", begun.elapsed());
    assert!(begun.elapsed() <= GONE && code == Some(5), "{code:?}");
    assert!(agents.words(0).contains("\"duplicate-identity\""), "{}", agents.words(0));
    assert!(copy.words().contains("\"boot-behind\""), "{}", copy.words());
    until(seconds(20), "whoever was started last leads", || {
        assert_eq!(copy.ended(), None);
        let answer = net.host(1).enter(|| Question::put("/v1/leader")?.answer())?;
        (answer["is_leader"] == true).then_some(())
    });
}

/// Two that live one life, which no agent does any more: the check sees it, and nothing in what is merely sent twice.
#[test]
fn a_number_used_twice_under_one_key_is_found_in_a_capture() {
    let Some(net) = hosts(3) else { return };
    let capture = Capture::start(&net);
    let ring = KeyRing::generate().expect("random bytes");
    let [me, to] = [1, 2].map(|id| Peer::new(NodeId::new(id), Boot::new(7)));
    let sockets = [0, 1].map(|host| {
        net.host(host).enter(|| UdpSocket::bind((Net::address(host), 7738)).expect("a socket"))
    });
    let listener = net.host(2).enter(|| UdpSocket::bind((Net::address(2), 7738)).expect("one"));
    let mut sealed = Vec::new();
    for (socket, word) in sockets.iter().zip([b"one".as_slice(), b"other".as_slice()]) {
        let mut sealer = Sealer::new(&ring, "garden", me);
        sealer.learn(to);
        for copies in [1, 2] {
            let mut packet = Vec::new();
            // The second is the same for both.
            let word = if copies == 2 { b"same" } else { word };
            sealer.seal(to.id, word, &mut packet).expect("it was met");
            for _ in 0..copies {
                socket.send_to(&packet, (Net::address(2), 7738)).expect("sent");
                sealed.push(packet.clone());
            }
        }
    }
    let mut buffer = [0; 256];
    for _ in &sealed {
        listener.recv(&mut buffer).expect("they arrive");
    }
    thread::sleep(Duration::from_millis(200));
    let numbers = Numbers::of(&capture.end());
    assert_eq!((numbers.packets, numbers.repeated), (3, vec![(me, 1)]));
}
