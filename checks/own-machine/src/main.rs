//! A protocol of your own on the simulator's network, under its faults, held to its invariants and to one of your own.
//!
//! ```sh
//! cargo run --manifest-path checks/own-machine/Cargo.toml -- WORLD.toml RUNS
//! cargo run --manifest-path checks/own-machine/Cargo.toml -- WORLD.toml --replay SEED
//! ```
//!
//! The world is a scenario file: its network, its faults, how long it lasts. What it says nodes run is not used.

mod machine;

use std::{collections::BTreeMap, env, path::Path, process::ExitCode};

use bellwether_proto::{Duration, NodeId, Seed, Time};
use bellwether_sim::{
    engine::Sim,
    invariant::{Invariant, Sighting, Violation},
    observe::{ElectionWatch, Entry, Log, Metric, Summary},
    run::{
        each_seed,
        faults::{ExternalInputs, play},
        world::world,
    },
    scenario::Scenario,
};

use crate::machine::Lowest;

/// An invariant of our own: of all nodes that say at the same time that they lead, there are at most so many, but for
/// a while in which they may not have heard of each other.
pub struct AtMost {
    leaders: usize,
    leading: BTreeMap<NodeId, Time>,
    since: Option<Time>,
}

impl AtMost {
    fn new(leaders: usize) -> Self {
        Self { leaders, leading: BTreeMap::new(), since: None }
    }
}

impl Invariant for AtMost {
    fn name(&self) -> &'static str {
        "at_most_so_many_lead"
    }

    fn answer(&mut self, sighting: &Sighting) -> Result<(), String> {
        let Sighting { now, node, leadership } = *sighting;
        match leadership.leader == Some(node) {
            true => drop(self.leading.insert(node, now)),
            false => drop(self.leading.remove(&node)),
        }
        if self.leading.len() <= self.leaders {
            self.since = None;
            return Ok(());
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since) < Duration::from_secs(5) {
            return Ok(());
        }
        Err(format!("leaders={:?} since={since}", self.leading.keys().collect::<Vec<_>>()))
    }

    fn sometimes(&self) -> (&'static str, bool) {
        ("somebody led", !self.leading.is_empty())
    }
}

/// What a run came to.
#[derive(Debug, PartialEq)]
struct Outcome {
    trace: String,
    delay: Option<f64>,
    agreement: Option<f64>,
    violations: Vec<Violation>,
}

/// One run: the world of the scenario, our machines in it, everything that goes wrong, and who watches.
fn run(scenario: &Scenario, seed: u64, log: Log<'_>) -> Result<Outcome, String> {
    let seed = Seed::new(seed);
    let (network, nodes) = world(scenario, seed).map_err(|error| error.to_string())?;
    // Called for every life of every node, with what its last life persisted: nothing, here.
    let build = Box::new(|me, seed, _| Lowest::new(me, seed));
    let watch = ElectionWatch::new(nodes, scenario.until).holding_to(AtMost::new(1));
    let mut sim = Sim::new(network, nodes, seed, build, (watch, log));
    play(&mut sim, scenario, seed, ExternalInputs::none()).map_err(|error| error.to_string())?;
    let (end, trace) = (sim.now(), sim.trace_hash().to_string());
    let (watch, _) = sim.observer_mut();
    watch.finish(end);
    let value = |metric| {
        watch
            .values(end)
            .into_iter()
            .find(|(other, _)| *other == metric)
            .and_then(|(_, value)| value)
    };
    Ok(Outcome {
        trace,
        delay: value(Metric::LeadershipDelay),
        agreement: value(Metric::Agreement),
        violations: watch.violations().to_vec(),
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [world, "--replay", seed] => load(world).and_then(|world| replay(&world, number(seed)?)),
        [world, runs] => load(world).and_then(|world| many(&world, number(runs)?)),
        _ => Err("usage: own-machine WORLD.toml RUNS | WORLD.toml --replay SEED".to_owned()),
    };
    done.map_or_else(
        |problem| {
            eprintln!("{problem}");
            ExitCode::from(2)
        },
        |held| if held { ExitCode::SUCCESS } else { ExitCode::from(1) },
    )
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
}

fn load(file: &str) -> Result<Scenario, String> {
    Scenario::load(Path::new(file), &[]).map_err(|error| error.to_string())
}

/// Many runs, in parallel; every violation with the seed that shows it again.
fn many(scenario: &Scenario, runs: u64) -> Result<bool, String> {
    let outcomes = each_seed(1, runs, || (), |seed| run(scenario, seed, Log::none()))?;
    let over = |of: fn(&Outcome) -> Option<f64>| Summary::of(outcomes.iter().filter_map(of));
    for (name, summary) in
        [("leadership_delay", over(|one| one.delay)), ("agreement", over(|one| one.agreement))]
    {
        match summary {
            Some(of) => println!("{name}: {:.4} ± {:.4}", of.mean, of.standard_error()),
            None => println!("{name}: –"),
        }
    }
    let broken = || (1..).zip(&outcomes).filter(|(_, outcome)| !outcome.violations.is_empty());
    println!("{} of {runs} runs broke an invariant", broken().count());
    if let Some((seed, outcome)) = broken().next() {
        println!("the first: seed {seed}, {}; see it with --replay {seed}", outcome.violations[0]);
    }
    Ok(broken().next().is_none())
}

/// One run step by step.
fn replay(scenario: &Scenario, seed: u64) -> Result<bool, String> {
    let mut print = |Entry { at, node, what, detail }: Entry| {
        println!("{at:>14} {:>6} {what:<9} {detail}", node.to_string());
    };
    let outcome = run(scenario, seed, Log::to(&mut print))?;
    println!("trace {}", outcome.trace);
    outcome.violations.iter().for_each(|violation| println!("violated: {violation}"));
    Ok(outcome.violations.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world_with(faults: &str) -> Scenario {
        let text = format!(
            r#"
            name = "a world of our own"
            duration = "60s"
            [network]
            nodes = 6
            delay = {{ kind = "uniform", low = "1ms", high = "20ms" }}
            loss = {{ kind = "independent", rate = 0.05 }}
            [membership]
            kind = "ping"
            period = "1s"
            timeout = "500ms"
            {faults}"#
        );
        Scenario::parse("own", &text, &[]).unwrap()
    }

    const CRASH: &str = "[[fault]]\nat = \"20s\"\nkind = \"crash\"\ntarget = \"leader\"";
    const SPLIT: &str =
        "[[fault]]\nat = \"20s\"\nkind = \"partition\"\ngroups = [[0, 1, 2], [3, 4, 5]]";

    #[test]
    fn it_elects_and_replaces_a_leader_that_crashed() {
        let calm = run(&world_with(""), 1, Log::none()).unwrap();
        assert!(calm.delay.unwrap() < 5.0 && calm.violations.is_empty(), "{calm:?}");
        let crash = run(&world_with(CRASH), 1, Log::none()).unwrap();
        assert!(crash.agreement < calm.agreement && crash.violations.is_empty(), "{crash:?}");
        assert!(crash.agreement.unwrap() > 0.7, "another one took over: {crash:?}");
    }

    #[test]
    fn the_same_seed_is_the_same_run_and_its_log_changes_nothing() {
        let world = world_with(CRASH);
        let mut steps = 0;
        let mut count = |_| steps += 1;
        let logged = run(&world, 7, Log::to(&mut count)).unwrap();
        assert_eq!(run(&world, 7, Log::none()).unwrap(), logged);
        assert_ne!(run(&world, 8, Log::none()).unwrap().trace, logged.trace);
        assert!(steps > 1_000, "{steps}");
    }

    #[test]
    fn on_a_divided_network_our_own_invariant_fires() {
        let outcome = run(&world_with(SPLIT), 1, Log::none()).unwrap();
        let first = &outcome.violations[0];
        assert_eq!(first.invariant, "at_most_so_many_lead", "{first}");
        assert!(first.detail.contains("n0, n3") || first.detail.contains("NodeId(3)"), "{first}");
        assert!(first.at > Time::ZERO + Duration::from_secs(20), "{first}");
    }
}
