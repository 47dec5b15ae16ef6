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

use bellwether_proto::{NodeId, Seed};
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

/// An invariant of our own: a node that has stopped leading does not lead again. It is asked whenever a node gives
/// another answer than before.
#[derive(Default)]
pub struct LeadsOnce {
    /// All that have led in this life, and whether they still do.
    led: BTreeMap<NodeId, bool>,
    several: bool,
}

impl Invariant for LeadsOnce {
    fn name(&self) -> &'static str {
        "leads_once"
    }

    fn answer(&mut self, sighting: &Sighting) -> Result<(), String> {
        let Sighting { node, leadership, .. } = *sighting;
        if leadership.leader != Some(node) {
            if let Some(still) = self.led.get_mut(&node) {
                *still = false;
            }
            return Ok(());
        }
        let before = self.led.insert(node, true);
        self.several |= self.led.len() > 1;
        match before {
            Some(false) => Err(format!("node={node} led before")),
            _ => Ok(()),
        }
    }

    fn forgot(&mut self, node: NodeId) {
        self.led.remove(&node);
    }

    fn sometimes(&self) -> (&'static str, bool) {
        ("a second node led", self.several)
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
    let watch = ElectionWatch::new(nodes, scenario.until).holding_to(LeadsOnce::default());
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
            [election]
            kind = "al"
            announce = "1s"
            listen = "4s"
            {faults}"#
        );
        Scenario::parse("own", &text, &[]).unwrap()
    }

    const CRASH: &str = "[[fault]]\nat = \"20s\"\nkind = \"crash\"\ntarget = \"leader\"";
    const SPLITS: &str = r#"
[[fault]]
at = "20s"
every = "20s"
kind = "partition"
groups = [[0, 1, 2], [3, 4, 5]]
[[fault]]
at = "30s"
every = "20s"
kind = "heal""#;

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
    fn on_a_network_that_is_divided_twice_our_own_invariant_fires() {
        let outcome = run(&world_with(SPLITS), 1, Log::none()).unwrap();
        let first = &outcome.violations[0];
        assert_eq!((first.invariant, first.detail.as_str()), ("leads_once", "node=n3 led before"));
        assert!(first.at.as_secs_f64() > 40.0, "{first}");
    }
}
