//! Agents and the simulator take equally long to find a failed member.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use bellwether_sim::{run::run_many, scenario::Scenario};

use crate::{agents::Agents, formed, hosts, kills::Kills, measured::Spread, seconds};

const PERIOD: Duration = Duration::from_millis(300);

/// The waits of both.
const WAITS: [(&str, &str); 3] = [("period", "300ms"), ("ack", "80ms"), ("suspicion", "600ms")];

/// Besides, for agents only: what elections need.
const FLAGS: [&str; 3] = ["timing.beat=150ms", "timing.guard=400ms", "election.default.f=0"];

/// Means of the simulated first detection and spread of the news, in seconds.
pub(crate) fn simulated(network: &str, membership: &str, runs: u64) -> (f64, f64) {
    let text = format!(
        r#"
        name = "sixteen hosts"
        duration = "60s"
        [network]
        nodes = 16
        delay = {{ kind = "fixed", value = "100us" }}
        {network}
        [membership]
        kind = "medley"
        lifeguard = "health"
        {membership}
        [[fault]]
        at = "30s"
        spread = "2s"
        kind = "crash"
        count = 1
        "#
    );
    let scenario = Scenario::parse("sixteen hosts", &text, &[]).expect("a scenario");
    let report = run_many(&scenario, 1, runs, || {}).expect("a connected network").to_json();
    let mean = |metric: &str| report["metrics"][metric]["mean"].as_f64().expect("a time");
    (mean("first_detection"), mean("dissemination"))
}

#[test]
#[ignore = "45 kills of members, three minutes"]
fn agents_and_the_simulator_find_a_failed_member_equally_soon() {
    let Some(net) = hosts(16) else { return };
    let set = WAITS.map(|(wait, value)| format!("timing.{wait}={value}"));
    let set = set.iter().map(String::as_str).chain(FLAGS).flat_map(|set| ["--set", set]);
    let flags: Vec<&str> = set.collect();
    let kills = found_by_agents(&net, &flags);
    let waits = WAITS.map(|(wait, value)| format!("{wait} = \"{value}\"\n")).concat();
    let waits = format!("exponent = 0.0\nfeedback = \"none\"\n{waits}");
    let (first, spread) = simulated("", &waits, 1_000);
    let off = kills.first.mean() / first - 1.0;
    println!(
        "until the first survivor gave it up: agents {:.3} s (standard error {:.3}), simulator {first:.3} s: {:+.1} %; \
         until the last one, from then: agents {:.3} s, simulator {spread:.3} s",
        kills.first.mean(),
        kills.first.error(),
        100.0 * off,
        kills.spread.mean(),
    );
    assert!(kills.first.count() >= 30 && kills.missed == 0, "{kills:?}");
    assert!(off.abs() <= 0.15, "{:+.1} %", 100.0 * off);
}

fn found_by_agents(net: &Net, flags: &[&str]) -> Kills {
    let mut agents = Agents::start(net, "garden", &(0..16).collect::<Vec<_>>(), flags);
    formed(&agents, seconds(30));
    std::thread::sleep(PERIOD * 20);
    let accused = agents.count("member-suspect");
    let mut kills = Kills::new();
    while kills.first.count() + kills.missed < 45 {
        kills.one_more(&mut agents, PERIOD);
    }
    println!(
        "16 hosts, everybody in reach, {} kills of members that do not lead, {WAITS:?}: suspected after {:.3} s, given up \
         after {:.3} s, by all {:.3} s later (means); {} survivors missed one; {} suspicions said in all, {} stalls",
        kills.first.count(),
        kills.suspected.mean(),
        kills.first.mean(),
        kills.spread.mean(),
        kills.missed,
        agents.count("member-suspect") - accused,
        agents.count("stalled"),
    );
    kills
}

/// Before the leader is killed, and after it, on hosts and in the simulator.
const CALM: Duration = Duration::from_secs(30);
const AFTER: Duration = Duration::from_secs(15);

/// What crosses a wire besides what the agent seals: the headers of UDP, IPv4 and Ethernet.
const HEADERS: f64 = 8.0 + 20.0 + 14.0;

/// `sim --settings` of the shipped example settings, and sixteen agents with the same file: how soon a killed leader is
/// replaced, and what all of them send from their start to the end.
#[test]
#[ignore = "twelve clusters of sixteen hosts, eleven minutes"]
fn settings_tell_the_simulator_what_sixteen_agents_will_do() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let settings = repository.join("packaging/examples/three-nodes.toml");
    let sets = [
        format!("duration={}s", (CALM + AFTER).as_secs()),
        format!("fault.0.at={}s", CALM.as_secs()),
        "fault.0.spread=0s".to_owned(),
    ];
    let world = repository.join("scenarios/worlds/sixteen-hosts.toml");
    let scenario = Scenario::load_with(&world, &settings, &sets).expect("a scenario");
    let report = run_many(&scenario, 1, 200, || {}).expect("a connected network").to_json();
    let mean = |metric: &str| report["metrics"][metric]["mean"].as_f64().expect("a number");
    let span = (CALM + AFTER).as_secs_f64();
    let kbits = |bytes: f64| bytes * 8.0 / 1_000.0 / span;
    let simulated = kbits(mean("bytes") + HEADERS * mean("messages"));

    let Some(net) = hosts(16) else { return };
    let example = settings.display().to_string();
    let (mut replaced, mut sent) = (Spread::new(), Spread::new());
    for _ in 0..12 {
        let before = net.traffic();
        let begun = Instant::now();
        // Flags overrule the file where it is about one host.
        let token = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(token.path(), "f".repeat(64)).expect("a token");
        let token = token.path().display().to_string();
        let flags = ["--config", &example, "--api-token-file", &token];
        let mut agents = Agents::start(&net, "garden", &(0..16).collect::<Vec<_>>(), &flags);
        let leader = formed(&agents, CALM);
        thread::sleep(CALM.saturating_sub(begun.elapsed()));
        let killed = Instant::now();
        agents.kill(leader);
        thread::sleep(AFTER);
        let survivors = || agents.all().filter(|&at| at != leader);
        let last = agents.last_change(survivors(), killed).expect("they changed their minds");
        assert!(agents.agreed(survivors()).is_some(), "the survivors agree");
        replaced.add((last - killed).as_secs_f64());
        sent.add(kbits((net.traffic().bytes - before.bytes) as f64));
    }
    let recovery = mean("recovery_time");
    println!(
        "16 agents with the settings of {example}, 12 kills: a new leader after {:.3} s (standard error {:.3}), simulated \
         {recovery:.3} s: {:+.1} %; sent {:.1} kbit/s (standard error {:.1}), simulated {simulated:.1}: {:+.1} %",
        replaced.mean(),
        replaced.error(),
        100.0 * (recovery / replaced.mean() - 1.0),
        sent.mean(),
        sent.error(),
        100.0 * (simulated / sent.mean() - 1.0),
    );
    assert!((recovery / replaced.mean() - 1.0).abs() <= 0.15, "fail-over");
    assert!((simulated / sent.mean() - 1.0).abs() <= 0.15, "traffic");
}
