//! What a membership promises in a scenario.

use bellwether_proto::{
    Duration, Time,
    membership::medley::{Config, Form, Phase, Selection},
};

use crate::{
    invariant::TimeBoundedDetection,
    observe::Promise,
    scenario::{DelayLaw, FaultKind, Loss, NetworkSettings, Per, Placement, Radio, Scenario},
};

/// The promise of `config` in `scenario`; how it follows is said in the invariants' headers.
///
/// Nothing is promised of lists while messages are lost, or take longer than a probe, or while something goes
/// wrong again and again; nor, as published, of anything but resurrection and detection times.
pub fn promise(scenario: &Scenario, config: &Config) -> Promise {
    let nodes = scenario.capacity();
    let quiet = scenario.quiet_from();
    let way = longest_way(&scenario.network, nodes);
    let calm =
        is_lossless(&scenario.network.loss) && way.is_some_and(|way| way * 2 < config.period());
    let judged = calm && quiet.is_some() && config.form() == Form::Hardened;
    let slowed = |by: Duration| by.scale(1.0 + slowest_clock(scenario));
    let bag = longest_bag(config, nodes);
    let only_crashes =
        scenario.faults.iter().all(|fault| matches!(fault.kind, FaultKind::Crash(_)));
    let bounded = calm && only_crashes && config.selection() == Selection::Bag;
    let timely = way.filter(|_| bounded).map(|way| {
        let (shortest, longest) = config.suspicion_bounds(nodes as usize);
        let verdict = config.period() + shortest..=config.period() + longest;
        TimeBoundedDetection::new(longest_period(config), verdict, way)
    });
    Promise {
        quiet: Time::ZERO + quiet.unwrap_or(scenario.duration),
        mending: mending(config, nodes).filter(|_| judged).map(slowed),
        forgetting: forgetting(config, bag, nodes).filter(|_| judged).map(slowed),
        way: way.filter(|_| quiet.is_some()),
        timely,
    }
}

fn longest_period(config: &Config) -> Duration {
    match config.phase() {
        Phase::Sync => config.period(),
        Phase::Random => config.period() + config.period().div(10),
    }
}

/// See `live_not_dead_for_long`.
fn mending(config: &Config, nodes: u32) -> Option<Duration> {
    let period = longest_period(config);
    let compare = u64::from(config.sync()?) * pages(nodes);
    let told = u64::from(nodes).max(compare);
    Some(period * 2 + config.suspicion() + period * (SURELY * (told + compare)))
}

/// See `completeness`.
fn forgetting(config: &Config, bag: Option<u64>, nodes: u32) -> Option<Duration> {
    let period = longest_period(config);
    let compare = u64::from(config.sync()?) * pages(nodes);
    let pinged = (bag? * 5).div_ceil(2);
    Some(period * (pinged + 2) + config.suspicion() + period * (SURELY * compare))
}

/// M-9 of `docs/rules/medley.md`: instances a bag holds at most.
fn longest_bag(config: &Config, nodes: u32) -> Option<u64> {
    let cap = config.bag_cap().filter(|_| config.selection() == Selection::Bag)?;
    Some((u64::from(cap) + 1) * u64::from(nodes))
}

/// How many pages a list has.
fn pages(nodes: u32) -> u64 {
    u64::from(nodes.div_ceil(PAGE))
}

/// How long a message takes at most; nobody knows on a field that may fall apart, or over the air.
fn longest_way(network: &NetworkSettings, nodes: u32) -> Option<Duration> {
    let NetworkSettings { delay, placement, radio: Radio::Ideal, .. } = network else {
        return None;
    };
    if matches!(placement, Placement::Field { .. } | Placement::Positions { .. }) {
        return None;
    }
    let one = match delay.law {
        DelayLaw::Fixed(value) => value,
        DelayLaw::Uniform { high, .. } => high,
        DelayLaw::Poisson { .. } => return None,
    };
    let hops = match (delay.per, placement) {
        (Per::Path, _) | (_, Placement::Mesh) => 1,
        (Per::Hop, _) => u64::from(nodes.max(2) - 1),
    };
    Some(one * hops)
}

fn is_lossless(loss: &Loss) -> bool {
    match loss {
        Loss::None => true,
        Loss::Independent { rate } | Loss::Correlated { rate } | Loss::BiasedAcks { rate, .. } => {
            *rate == 0.0
        }
        Loss::PerNode { .. } | Loss::PerLink { .. } => false,
    }
}

/// By how much a clock is slow at most.
fn slowest_clock(scenario: &Scenario) -> f64 {
    let rate = |kind: &FaultKind| match kind {
        FaultKind::Drift { ppm, .. } => f64::from(ppm.unsigned_abs()) / 1e6,
        _ => 0.0,
    };
    // A clock slow by a tenth takes a ninth longer.
    let slow = scenario.faults.iter().map(|fault| rate(&fault.kind)).fold(0.0, f64::max);
    slow / (1.0 - slow)
}

/// So many times the mean, a wait is over but for a chance of one in a thousand million.
const SURELY: u64 = 21;
/// Records that fit one page, whatever their numbers.
const PAGE: u32 = 32;
