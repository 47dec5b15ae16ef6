//! Runs of a churn-tolerant election on lists that no membership keeps up: recorded, or made up.

use std::{cell::RefCell, rc::Rc};

use bellwether_proto::{Seed, Time, election::churn_tolerant, membership::medley};

use super::{
    Outcome,
    eventual::agreed_outcome,
    faults::{self, ExternalInputs},
    membership::record,
    world::world,
};
use crate::{
    engine::{Sim, TraceHash},
    invariant::OlderLifeStops,
    lists::{
        membership_trace::{MembershipTrace, Suspects},
        snapshot::{ListReplay, MemberLists},
        trials::{self, ListTrials, Trial},
    },
    observe::{ElectionWatch, EventualWatch, Log, Metric},
    scenario::{Initiator, Lists, Missing, Scenario, SharedTrace, Trials},
    world::{Disconnected, Network, place},
};

/// An election on lists that no membership keeps up.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    lists: &Lists,
    election: churn_tolerant::Config,
) -> Result<Outcome, Disconnected> {
    let nodes = scenario.capacity();
    let root = Seed::new(seed);
    let (lists, trace) = match lists {
        Lists::Recorded { membership, trials } => {
            return run_trials(scenario, seed, *membership, trials, election);
        }
        Lists::Missing(missing) => {
            let mut lists = MemberLists::complete(nodes);
            let mut rng = root.named("lists").rng();
            missing.iter().for_each(|&Missing { node, from }| lists.miss(node, from, &mut rng));
            (lists, None)
        }
        Lists::Trace { trace: SharedTrace(trace), from } => {
            let mut lists = MemberLists::empty(nodes);
            let look = (from.as_micros() / trace.interval().as_micros()) as usize;
            ListReplay::new(trace).seek(look + 1, &mut lists);
            (lists, Some((trace, look)))
        }
    };
    // The field on which the lists were recorded, if the scenario describes the same.
    let field = trace.map_or(root, |(trace, _)| Seed::new(trace.origin().1));
    let network = Network::new(
        &scenario.network,
        place(&scenario.network.placement, nodes, &mut field.named("placement").rng())?,
        nodes,
        root.named("network").rng(),
    );
    let lists = Rc::new(RefCell::new(lists));
    let watch = ElectionWatch::new(nodes, scenario.until).telling(&log);
    let observer = ((watch, EventualWatch::new(nodes, election)), log);
    let build = trials::builder(Rc::clone(&lists), election);
    let mut sim = Sim::new(network, nodes, root, build, observer);
    let inputs =
        ExternalInputs { elect: Some(churn_tolerant::Command::Elect), ..ExternalInputs::none() };
    let absent: Vec<u32> = {
        let lists = lists.borrow();
        let running: Vec<u32> = lists.running().collect();
        (0..nodes).filter(|node| running.binary_search(node).is_err()).collect()
    };
    let mut seen = trace.map_or(0, |(_, look)| look + 1);
    faults::play_looking(&mut sim, scenario, root, inputs, trials::REFRESH, |sim| {
        let Some((trace, look)) = trace else { return };
        if sim.now() == Time::ZERO {
            absent.iter().for_each(|&node| sim.crash(node));
        }
        let now = sim.now().since(Time::ZERO);
        while seen < trace.looks() && trace.interval() * (seen - look) as u64 <= now {
            trials::tell(sim, trace.look(seen));
            seen += 1;
        }
    })?;
    let unhealthiness = lists.borrow().unhealthiness().to_vec();
    Ok(agreed_outcome(sim, seed, &unhealthiness))
}

/// Elections on the lists of a membership that has been recorded: the values are their means.
fn run_trials(
    scenario: &Scenario,
    seed: u64,
    membership: medley::Config,
    trials: &Trials,
    election: churn_tolerant::Config,
) -> Result<Outcome, Disconnected> {
    let traces = record(scenario, seed, membership, trials.every, &[Suspects::Listed])?;
    let [trace] = <[MembershipTrace; 1]>::try_from(traces).expect("one reading, one trace");
    let root = Seed::new(seed).named("trials");
    let mut on_trace = ListTrials::on_trace(world(scenario, Seed::new(seed))?.0, &trace, election);
    let mut draws = root.rng();
    let first = trials.from.as_micros().div_ceil(trace.interval().as_micros()) as usize;
    let mut held: Vec<(usize, Option<u32>)> = match trials.initiator {
        Initiator::Random => {
            let span = trace.looks().saturating_sub(first).max(1) as u64;
            let draw = |_| (first + draws.below(span) as usize, None);
            (0..trials.count).map(draw).collect()
        }
        Initiator::Detector => {
            let found = trace.first_detection();
            let found = found.map(|(look, node)| (look, Some(node.get() as u32)));
            found.into_iter().cycle().take(trials.count as usize).collect()
        }
    };
    held.sort_unstable();
    let mut hash = TraceHash::new();
    let mut sums: Vec<(Metric, f64, u32)> = Vec::new();
    for (index, (look, initiator)) in (0..).zip(held) {
        let seed = root.indexed(index).rng().next();
        let trial = Trial { look, initiator, limit: trials.limit, seed };
        let (values, trace) = on_trace.hold(&trial);
        hash.fold(trace.get());
        sums.resize(values.len(), (Metric::Events, 0.0, 0));
        for ((metric, value), sum) in values.into_iter().zip(&mut sums) {
            sum.0 = metric;
            sum.1 += value.unwrap_or(0.0);
            sum.2 += u32::from(value.is_some());
        }
    }
    let mean = |(metric, sum, count)| (metric, (count > 0).then(|| sum / f64::from(count)));
    Ok(Outcome {
        seed,
        trace: hash,
        values: sums.into_iter().map(mean).collect(),
        violations: Vec::new(),
        sometimes: Vec::new(),
        disagreements: Vec::new(),
        ghosts: OlderLifeStops::default(),
    })
}
