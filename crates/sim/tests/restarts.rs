//! Rolling restarts of nodes as shipped: whoever restarts and does not lead changes nothing.
//!
//! Five nodes are restarted one after the other, twice, and each time there is time enough for all to agree again. The
//! leader of an eventual election, and the token it leads on, may be others afterwards only if it was the leader that
//! was restarted.
//!
//! ```sh
//! cargo test --release -p bellwether-sim --test restarts -- --ignored --nocapture
//! ```

use std::fmt::Write as _;

use bellwether_proto::{Duration, Epoch, NodeId, Seed, Time};
use bellwether_sim::{
    observe::{Log, Naming, Namings},
    run::run_logged,
    scenario::Scenario,
};
use rayon::prelude::*;

/// How a node goes, and how it comes back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Way {
    /// It hands over what it leads and says goodbye, as an agent that is told to end.
    leaves: bool,
    /// It remembers what it has promised.
    keeps: bool,
}

const WAYS: [Way; 4] = [
    Way { leaves: true, keeps: true },
    Way { leaves: true, keeps: false },
    Way { leaves: false, keeps: true },
    Way { leaves: false, keeps: false },
];
const VARIANTS: [&str; 4] = ["hybrid", "base", "optimistic", "preferred"];
const NODES: u64 = 5;
const ROUNDS: u64 = 2;
/// When the first is restarted; by then all agree.
const FIRST: Duration = Duration::from_secs(20);
/// From one restart to the next: whoever was killed has been given up, and whoever came back was told.
const APART: Duration = Duration::from_secs(20);

/// As long as it takes to leave.
const GOODBYE: Duration = Duration::from_millis(3_500);

/// What a run is of: all but the seed.
#[derive(Clone, Copy, Debug)]
struct World {
    variant: &'static str,
    way: Way,
    loss: f64,
}

/// Who restarts when, and how long it is away.
fn restarts(seed: u64) -> Vec<(NodeId, Duration, Duration)> {
    let mut rng = Seed::new(seed).named("restarts").rng();
    let mut restarts = vec![];
    for turn in 0..NODES * ROUNDS {
        let at = FIRST + APART * turn + rng.up_to(Duration::from_secs(2));
        let away = Duration::from_millis(50) + rng.up_to(Duration::from_secs(2));
        restarts.push((NodeId::new(turn % NODES), at, away));
    }
    restarts
}

fn text(world: World, seed: u64) -> String {
    let World { variant, way, loss } = world;
    let restarts = restarts(seed);
    let duration = FIRST + APART * (restarts.len() as u64);
    let mut text = format!(
        "name = \"restarts\"\nduration = \"{}s\"\n\
         [network]\nnodes = {NODES}\nstart_spread = \"500ms\"\n\
         delay = {{ kind = \"uniform\", low = \"100us\", high = \"5ms\" }}\n\
         loss = {{ kind = \"independent\", rate = {loss} }}\n\
         [node]\ntiming = {{ profile = \"lan\" }}\n\
         [node.election.backup]\nmode = \"eventual\"\nvariant = \"{variant}\"\n",
        duration.as_secs_f64(),
    );
    let state = if way.keeps { "kept" } else { "lost" };
    for (node, at, away) in restarts {
        let mut fault = |at: Duration, kind: &str| {
            let at = at.as_secs_f64();
            writeln!(text, "[[fault]]\nat = \"{at:.6}s\"\nkind = {kind}").expect("a string");
        };
        // An agent that is told to end hands over what it leads, says goodbye, and is gone after that.
        let (go, gone) = if way.leaves { ("leave", at + GOODBYE) } else { ("crash", at) };
        let node = node.get();
        fault(at, &format!("\"{go}\"\nnodes = [{node}]"));
        fault(gone + away, &format!("\"recover\"\nnodes = [{node}]\nstate = \"{state}\""));
    }
    text
}

type Named = Option<(NodeId, Epoch)>;

/// What all say just before this instant, if it is the same.
fn agreed(namings: &[Naming], before: Time) -> Named {
    let said = (0..NODES).map(NodeId::new).map(|node| {
        let last = namings.iter().rfind(|naming| naming.node == node && naming.at < before);
        last.and_then(|naming| Some((naming.leader?, naming.epoch?)))
    });
    let said: Vec<Named> = said.collect();
    said[0].filter(|_| said.iter().all(|one| *one == said[0]))
}

/// What changed though the leader was not restarted; what never came to an agreement again.
fn changes(world: World, seed: u64) -> Vec<String> {
    let text = text(world, seed);
    let scenario = Scenario::parse("restarts.toml", &text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let namings = Namings::default();
    let outcome = run_logged(&scenario, seed, Log::naming(&namings)).expect("a mesh");
    assert!(outcome.violations.is_empty(), "{world:?} seed {seed}: {:?}", outcome.violations);
    let namings = namings.borrow();
    let restarts = restarts(seed);
    let ends = restarts
        .iter()
        .skip(1)
        .map(|&(_, at, _)| at)
        .chain([FIRST + APART * (restarts.len() as u64)]);
    let mut changes = vec![];
    for (&(node, at, _), end) in restarts.iter().zip(ends) {
        let before = agreed(&namings, Time::ZERO + at);
        let after = agreed(&namings, Time::ZERO + end);
        let led = before.is_some_and(|(leader, _)| leader == node);
        if before.is_none() || (before != after && !(led && after.is_some())) {
            changes.push(format!(
                "{world:?} seed {seed}: {before:?}, {node} restarted at {at}: {after:?}"
            ));
        }
    }
    changes
}

fn judge(world: World, seeds: u64) {
    let changes: Vec<String> =
        (0..seeds).into_par_iter().flat_map_iter(|seed| changes(world, seed)).collect();
    println!("{world:?}: {} changes in {} restarts", changes.len(), seeds * NODES * ROUNDS);
    assert!(changes.is_empty(), "{}", changes.join("\n"));
}

fn everywhere(loss: f64, seeds: u64) {
    for variant in VARIANTS {
        for way in WAYS {
            judge(World { variant, way, loss }, seeds);
        }
    }
}

#[test]
fn whoever_restarts_and_does_not_lead_changes_nothing() {
    everywhere(0.0, 10);
    everywhere(0.02, 10);
}

#[test]
#[ignore = "minutes: hundreds of seeds"]
fn nor_in_hundreds_of_histories() {
    for loss in [0.0, 0.02, 0.05] {
        everywhere(loss, 200);
    }
}

/// The leader is to hand over, and its disk hangs for `span`: when it has to write that, or `late`, when it has to write who
/// leads now. Whoever is elected meanwhile is not deposed when that disk is back.
fn hangs(seed: u64, span: Duration, late: bool) -> Option<String> {
    let resigns = if late { 19_999 } else { 20_100 };
    let text = format!(
        "name = \"a hand-over that hangs\"\nduration = \"50s\"\n\
         [network]\nnodes = {NODES}\nstart_spread = \"500ms\"\n\
         delay = {{ kind = \"uniform\", low = \"2ms\", high = \"5ms\" }}\n\
         [node]\ntiming = {{ profile = \"lan\" }}\n\
         [node.election.backup]\nmode = \"eventual\"\n\
         [[fault]]\nat = \"20s\"\nkind = \"slow-disk\"\ntarget = \"leader\"\nby = \"60s\"\nfor = \"{}s\"\n\
         [[fault]]\nat = \"{resigns}ms\"\nkind = \"resign\"\ntarget = \"leader\"\n",
        span.as_secs_f64() + 0.1
    );
    let scenario = Scenario::parse("hangs.toml", &text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let namings = Namings::default();
    let outcome = run_logged(&scenario, seed, Log::naming(&namings)).expect("a mesh");
    assert!(outcome.violations.is_empty(), "seed {seed}: {:?}", outcome.violations);
    let namings = namings.borrow();
    let end = agreed(&namings, Time::ZERO + Duration::from_secs(50));
    // What others named before the disk was back, of the ones that do not lead.
    let mended = Time::from_micros(20_100_000) + span;
    let led = agreed(&namings, Time::from_micros(19_900_000)).map(|(leader, _)| leader);
    let mut others = namings.iter().filter(|naming| naming.at < mended && Some(naming.node) != led);
    let meanwhile = others.next_back().and_then(|naming| Some((naming.leader?, naming.epoch?)));
    (meanwhile.is_none() || meanwhile != end).then(|| {
        format!("seed {seed}, {span}, late {late}: {meanwhile:?} was elected, then {end:?}")
    })
}

#[test]
fn a_leader_whose_disk_hung_while_it_handed_over_deposes_nobody() {
    let spans = [2, 4, 8].map(Duration::from_secs);
    let of = |seed| {
        let each = spans.into_iter().flat_map(|span| [(span, false), (span, true)]);
        each.filter_map(move |(span, late)| hangs(seed, span, late))
    };
    let deposed: Vec<String> = (0..20).into_par_iter().flat_map_iter(of).collect();
    assert!(deposed.is_empty(), "{}", deposed.join("\n"));
}

/// Who was named after whom all but `led` had agreed on, from `since` on, if anybody was.
fn deposed(namings: &[Naming], led: NodeId, since: Time) -> Option<(NodeId, NodeId)> {
    let mut last = [None; NODES as usize];
    let mut elected = None;
    for naming in namings {
        last[naming.node.get() as usize] = naming.leader;
        if naming.at < since || naming.node == led {
            continue;
        }
        match (elected, naming.leader) {
            (Some(elected), Some(now)) if now != elected => return Some((elected, now)),
            (None, Some(now)) if now != led => {
                let others = (0..NODES).filter(|&node| node != led.get());
                let all = others.into_iter().all(|node| last[node as usize] == Some(now));
                elected = all.then_some(now);
            }
            _ => {}
        }
    }
    None
}

/// An announced election in which this happens from 20 s on, and its leader at `since`: whether its successor was deposed.
fn announced(seed: u64, since: Duration, faults: &str) -> Option<String> {
    let text = format!(
        "name = \"announced\"\nduration = \"40s\"\n\
         [network]\nnodes = {NODES}\nstart_spread = \"500ms\"\n\
         delay = {{ kind = \"uniform\", low = \"100us\", high = \"2ms\" }}\n\
         [node]\ntiming = {{ profile = \"lan\" }}\n\
         [node.election.backup]\nmode = \"announced\"\n{faults}"
    );
    let scenario = Scenario::parse("announced.toml", &text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let namings = Namings::default();
    let outcome = run_logged(&scenario, seed, Log::naming(&namings)).expect("a mesh");
    assert!(outcome.violations.is_empty(), "seed {seed}: {:?}", outcome.violations);
    let namings = namings.borrow();
    let since = Time::ZERO + since;
    let led = namings.iter().rfind(|naming| naming.at < since && naming.leader.is_some());
    let led = led.and_then(|naming| naming.leader).expect("somebody leads");
    let (was, is) = deposed(&namings, led, since)?;
    Some(format!("seed {seed}: {led} was replaced by {was}, and that by {is}\n{faults}"))
}

fn fault(at: Duration, kind: &str) -> String {
    format!("[[fault]]\nat = \"{:.6}s\"\nkind = {kind}\n", at.as_secs_f64())
}

/// The leader resigns, and so does its successor: whoever leads then is not deposed when the first may stand again.
fn twice(seed: u64, apart: Duration) -> Option<String> {
    let first = Duration::from_secs(20);
    let resigns = |at| fault(at, "\"resign\"\ntarget = \"leader\"");
    announced(seed, first + apart, &(resigns(first) + &resigns(first + apart)))
}

/// Somebody comes back and claims to lead, which the leader has to write before it contradicts; its disk hangs for a while.
fn claimed_from(seed: u64, span: Duration) -> Option<String> {
    let at = Duration::from_secs(20);
    let newcomer = seed % NODES;
    let faults = fault(Duration::from_secs(15), &format!("\"crash\"\nnodes = [{newcomer}]"))
        + &fault(
            at,
            &format!(
                "\"slow-disk\"\ntarget = \"leader\"\nby = \"60s\"\nfor = \"{}s\"",
                span.as_secs_f64()
            ),
        )
        + &fault(
            at + Duration::from_millis(1),
            &format!("\"recover\"\nnodes = [{newcomer}]\nstate = \"kept\""),
        );
    announced(seed, at, &faults)
}

#[test]
fn whoever_comes_back_to_an_announced_election_deposes_nobody() {
    let each = |seed| {
        let apart = (13..24).map(|tenths| Duration::from_millis(100 * tenths));
        let twice = apart.filter_map(move |apart| twice(seed, apart));
        let spans = (6..30).map(|part| Duration::from_millis(50 * part));
        twice.chain(spans.filter_map(move |span| claimed_from(seed, span)))
    };
    let deposed: Vec<String> = (0..20).into_par_iter().flat_map_iter(each).collect();
    println!("{} successors deposed", deposed.len());
    assert!(deposed.is_empty(), "{}", deposed.join("\n"));
}
