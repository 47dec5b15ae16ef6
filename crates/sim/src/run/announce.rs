//! Runs of announced elections and of what they are compared with.

use bellwether_proto::{
    Election, Seed, Time,
    election::announce::{Announce, Criterion},
};

use super::{Outcome, election_outcome, simulate};
use crate::{
    engine::Builder,
    observe::{AnnounceWatch, Announcement, ElectionWatch, Log, Metric},
    scenario::{AnnounceSettings, Scenario},
    world::Disconnected,
};

/// Makes the nodes of an announced election.
pub(super) fn builder(settings: AnnounceSettings) -> Builder<Announce> {
    let AnnounceSettings { config, random_goodness } = settings;
    Box::new(move |me, seed: Seed, durable| {
        let goodness = || Criterion::Goodness(seed.named("goodness").rng().unit());
        let config = match random_goodness {
            true => config.with_criterion(goodness()).expect("a goodness in [0, 1)"),
            false => config,
        };
        Announce::new(me, config, seed, durable)
    })
}

/// Runs the nodes that `build` makes.
pub(super) fn run<M: Election<Message: Announcement>>(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    build: Builder<M>,
) -> Result<Outcome, Disconnected> {
    let watch = ElectionWatch::new(scenario.capacity(), scenario.until).telling(&log);
    let announcements = AnnounceWatch::new(scenario.capacity(), scenario.until);
    let mut sim = simulate(scenario, seed, build, ((watch, announcements), log))?;
    let end = sim.now();
    sim.observer_mut().0.0.finish(end);
    let (watch, announcements) = &sim.observer().0;
    let agreement = watch.agreement();
    let announced = announcements.summary(agreement.leader(), |node| sim.machine(node).is_some());
    let values = [
        (Metric::TMax, announced.converged.map(|converged| converged.sent.as_secs_f64())),
        (Metric::NumMsgs, Some(f64::from(announced.messages))),
        (Metric::Rounds, announced.converged.map(|converged| f64::from(converged.rounds))),
        (Metric::AvgRounds, announced.converged.map(|converged| converged.mean_rounds)),
        (Metric::FirstRoundMsgs, Some(f64::from(announced.announcers))),
        (Metric::TFirst, announced.first.map(Time::as_secs_f64)),
        (Metric::TLastFirst, announced.last_first.map(Time::as_secs_f64)),
        (Metric::TLast, announced.last.map(Time::as_secs_f64)),
    ];
    Ok(election_outcome(&sim, seed, watch, values))
}
