//! Arbitrated membership and the leased leader: the paper's figures, its theorems, and what it does not show.
//!
//! Unless said otherwise: sessions of 1 s, `T_a` = 0.5 s, `k` = 3, delays of 5 to 20 ms, and the order of the ring is
//! that of the nodes. The paper names neither times nor delays, nor how often its simulations were run.

mod beyond;
mod published;
mod theorems;

use bellwether_proto::{Duration, Rng, Seed};
use bellwether_sim::{
    observe::Log,
    run::ring::{self, Study},
    scenario::{Fault, FaultKind, Scenario, Who},
};

use crate::{
    claim::{Claim, list},
    computation::{Computation, Found, Value},
    estimate::{Estimate, short},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    measure::{Measure, measure, measures},
    scenarios::RING,
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    [published::all(), theorems::all(), beyond::all()].into_iter().flatten().collect()
}

measures!(
    /// What runs of a ring are measured by.
    Ring {
        InTime = "in time",
        Literal = "literal",
        Most = "most",
        LeastLag = "least lag",
        LagInTime = "lag in time",
        ExitInTime = "exit in time",
        Violations = "violations",
        BuriedInTime = "buried in time",
        ToldInTime = "told in time",
        States = "states",
        AllLocked = "all locked",
        Mean = "mean",
        Joined = "joined",
        Departed = "departed",
        Forced = "forced",
        Exact = "exact",
        Collapsed = "collapsed",
        Active = "active",
        Least = "least",
        Misfits = "misfits",
        BelowTen = "below ten",
        Upgrades = "upgrades",
        NeverSooner = "never sooner",
        AllJoined = "all joined",
        Quarter = "quarter",
        Median = "median",
        ThreeQuarters = "three quarters",
        First = "first",
        Last = "last",
        Buried = "buried",
        Told = "told",
        Survivors = "survivors",
        LostBesides = "lost besides",
        Within = "within",
        Outside = "outside",
        MajorityWhole = "majority whole",
        BothLost = "both lost",
        OneLost = "one lost",
        Never = "never",
        StalePairs = "stale pairs",
        Stale = "stale",
        UpgradeMessages = "upgrade messages",
        Overlap = "overlap",
        Gap = "gap",
        FailOver = "fail-over",
        GapIsPositive = "gap is positive",
        Followed = "followed",
    }
);

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn fault(at: Duration, kind: FaultKind) -> Fault {
    Fault { at, spread: Duration::ZERO, every: None, until: None, kind }
}

fn crash(at: Duration, nodes: Vec<u32>) -> Fault {
    fault(at, FaultKind::Crash(Who::Nodes(nodes)))
}

/// Nothing passes between two nodes from then on.
fn cut(at: Duration, one: u32, other: u32) -> Fault {
    let (from, to) = (Some(Who::Nodes(vec![one])), Some(Who::Nodes(vec![other])));
    fault(at, FaultKind::Cut { from, to, both: true, length: None })
}

/// Runs a scenario with these faults instead of its own.
fn run(scenario: &Scenario, faults: Vec<Fault>, seed: u64) -> Result<Study, Failure> {
    let scenario = Scenario { faults, ..scenario.clone() };
    let study = ring::study(&scenario, seed, Log::none())?;
    study.ok_or_else(|| "not a ring".into())
}

fn draws(seed: u64) -> Rng {
    Seed::new(seed).named("victims").rng()
}

/// So many of the first `nodes` nodes, each once, ascending.
fn choose(rng: &mut Rng, nodes: u32, count: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..nodes).collect();
    for at in 0..count.min(all.len()) {
        let other = at + rng.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
    all.sort_unstable();
    all
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Delays of up to 50 ms.
const UNSTEADY: &str = "{ kind = \"uniform\", low = \"0ms\", high = \"50ms\" }";

/// The hardened form.
fn hardened(cell: Cell) -> Cell {
    cell.set("membership.form", "hardened").set("membership.rejoin", false)
}

/// Every run of every one of these cells has this value.
fn always(
    data: &Table,
    sentence: impl Into<String>,
    published: &str,
    values: impl IntoIterator<Item = (impl AsRef<str>, impl Measure, f64)>,
) -> Claim {
    let (mut off, mut count) = (Vec::new(), 0);
    for (cell, measure, expected) in values {
        let found = data.estimate(&cell, measure);
        count += 1;
        if !(found.error < 1e-9 && (found.value - expected).abs() < 1e-9) {
            off.push(format!("{}: {} on average, not {expected}", cell.as_ref(), found.value));
        }
    }
    let holds = off.is_empty() && count > 0;
    let measured = if holds { format!("in all runs of {count} cells") } else { off.join("; ") };
    data.claim(sentence, published).holds(measured, holds)
}
