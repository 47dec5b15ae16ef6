//! The conformance suite: one set of cases for every election mode and every membership, each judged by its
//! own promise.
//!
//! A case brings trouble and then quiet. While trouble lasts, the safety invariants must hold; once it has
//! been quiet for as long as the mode says it needs, all live nodes that can talk to each other must
//! agree, and go on agreeing to the end. The seed draws the size of the network, the delays and who is
//! hit, so that a sweep of seeds is a sweep of worlds.
//!
//! Of a membership the safety invariants are those of [its observer](crate::observe::MembershipWatch), and the promise is that in time
//! everybody live and connected is on everybody's list, and everybody gone on nobody's. It has no leader to hit:
//! somebody at random is hit instead.
//!
//! The first subjects are the modes as shipped (`conformance/shipped.rs`): whole nodes, made from the table of presets that agents are
//! made from, with nothing changed. The rest are the protocols by themselves, and their published forms.

use std::{collections::BTreeMap, fmt, str::FromStr};

use bellwether_proto::{
    Duration, Rng, Seed, Time,
    election::{
        announce::{Bye, Config, ConfigError, Criterion, Entry, Rules, Suppression, Tenure},
        bandit::{self, Policy, Profile},
        central::{self, Detection, LinkState},
        churn_tolerant::{self, Variant},
        leased::{self, Flavour},
    },
    keys,
    mechanism::pinged::Patience,
    membership::{
        medley::{self, Attention, Form, Strategy},
        ring,
    },
};
use rayon::prelude::*;

mod shipped;
mod trouble;

use self::trouble::{aim_at_random, spare_disks, trouble, upheaval};

use crate::{
    engine::TraceHash,
    invariant::{OlderLifeStops, Settles, Violation},
    observe::{Log, Metric},
    run::{promise::promise, run, run_logged},
    scenario::{
        AnnounceSettings, BanditSettings, Delay, DelayLaw, Fault, Loss, NetworkSettings, Per,
        Placement, Protocol, Roles, Routing, Scenario, Until,
    },
};

/// An election mode or a membership, and what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The name in reports and on the command line.
    pub name: &'static str,
    /// What its nodes run.
    pub protocol: Protocol,
    /// Once it has been quiet for this long, all agree. Part of the promise. `None` for a membership, whose
    /// [`promise`] follows from its configuration and the size of the group.
    pub settles_within: Option<Duration>,
    /// About how many runs of an election one of its runs takes as long as; sweeps try so many fewer seeds.
    pub cost: u64,
    /// Whether its answers carry epochs; without, what is said of epochs says nothing.
    pub fenced: bool,
    /// Whether its promise rests on what nodes have persisted: where a case would have them lose it, they keep it.
    pub durable: bool,
    /// `None` if it keeps its promise; otherwise why it is known not to.
    pub known_to_break: Option<&'static str>,
}

/// What goes wrong before it gets quiet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Case {
    /// Nothing: a first leader is elected, and kept.
    Elect,
    /// The leader crashes.
    Crash,
    /// The leader leaves in good order.
    Leave,
    /// Nodes join a running group.
    Join,
    /// The group is split, and stays split: each part agrees on its own leader.
    Partition,
    /// The group is split and heals.
    Heal,
    /// The leader hears nobody for a while, though all hear it.
    Deaf,
    /// Nobody hears the leader for a while, though it hears all.
    Mute,
    /// Three messages in ten are lost for a while.
    Loss,
    /// Messages arrive twice for a while, the copy up to two seconds late.
    Duplication,
    /// Messages overtake each other for a while.
    Reordering,
    /// The leader crashes and is back at once, having kept its durable state.
    RestartKept,
    /// The leader crashes and is back at once, having lost everything but its boot number.
    RestartLost,
    /// All nodes crash and are back at once with nothing.
    MassRestart,
    /// The leader freezes for longer than its followers wait, then wakes.
    Pause,
    /// Clocks run up to a thousandth fast and slow.
    Drift,
    /// Disks refuse everything for a while, the leader's or half of all, and meanwhile somebody has to be elected.
    Disk,
    /// Disks take their time or hang for a while, the leader's or half of all, and meanwhile somebody has to be elected.
    SlowDisk,
    /// The leader's disk is copied, and the copy started as a later life of it; the earlier one runs on.
    Clone,
    /// One node was told something else than the others. Whatever that is, nobody is harmed; where a majority decides
    /// the others do without it. Not a list of members or voters that has a majority in that node alone: such a node
    /// is a cluster of its own, and neither it nor the others can know that it was not meant to be.
    Differing,
    /// Nodes join while a leader is being elected, another having crashed.
    JoinElecting,
    /// Some of the nodes are started much later than the others.
    HalfStarted,
    /// Some have elected a great many leaders before; the others elect themselves before they meet them.
    Aged,
    /// Everybody still reaches one node, and nobody anybody else: only that one reaches a majority by itself.
    QuorumLoss,
    /// Everybody still reaches two nodes, and nobody anybody else; and the leader reaches nobody at all.
    Constrained,
    /// Everybody reaches two others, but for the ends of the chain.
    Chained,
    /// The link between the leader and another is cut, and between some others.
    Link,
    /// Half of the nodes speak as a later version might, with more behind every message, and kinds of messages besides that
    /// the others do not know. One after another is restarted as the other half, forth and back.
    Upgrade,
    /// A random mixture of all the above.
    Swarm,
}

impl Case {
    /// Every case, in the order of reports.
    pub const ALL: [Self; 29] = [
        Self::Elect,
        Self::Crash,
        Self::Leave,
        Self::Join,
        Self::Partition,
        Self::Heal,
        Self::Deaf,
        Self::Mute,
        Self::Loss,
        Self::Duplication,
        Self::Reordering,
        Self::RestartKept,
        Self::RestartLost,
        Self::MassRestart,
        Self::Pause,
        Self::Drift,
        Self::Disk,
        Self::SlowDisk,
        Self::Clone,
        Self::Differing,
        Self::JoinElecting,
        Self::HalfStarted,
        Self::Aged,
        Self::QuorumLoss,
        Self::Constrained,
        Self::Chained,
        Self::Link,
        Self::Upgrade,
        Self::Swarm,
    ];

    /// Whether it takes a host: something befalls a machine's disk, identity or settings.
    pub const fn is_of_hosts(self) -> bool {
        matches!(
            self,
            Self::Disk
                | Self::SlowDisk
                | Self::Clone
                | Self::Differing
                | Self::JoinElecting
                | Self::HalfStarted
                | Self::Aged
                | Self::Upgrade
        ) || self.is_half_broken()
    }

    /// Whether some links are cut for good, and others not.
    pub const fn is_half_broken(self) -> bool {
        matches!(self, Self::QuorumLoss | Self::Constrained | Self::Chained | Self::Link)
    }

    /// The name in reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elect => "elect",
            Self::Crash => "crash",
            Self::Leave => "leave",
            Self::Join => "join",
            Self::Partition => "partition",
            Self::Heal => "heal",
            Self::Deaf => "deaf",
            Self::Mute => "mute",
            Self::Loss => "loss",
            Self::Duplication => "duplication",
            Self::Reordering => "reordering",
            Self::RestartKept => "restart-kept",
            Self::RestartLost => "restart-lost",
            Self::MassRestart => "mass-restart",
            Self::Pause => "pause",
            Self::Drift => "drift",
            Self::Disk => "disk",
            Self::SlowDisk => "slow-disk",
            Self::Clone => "clone",
            Self::Differing => "differing",
            Self::JoinElecting => "join-electing",
            Self::HalfStarted => "half-started",
            Self::Aged => "aged",
            Self::QuorumLoss => "quorum-loss",
            Self::Constrained => "constrained",
            Self::Chained => "chained",
            Self::Link => "link",
            Self::Upgrade => "upgrade",
            Self::Swarm => "swarm",
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No case has this name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no case {0:?}; there are {names}", names = Case::ALL.map(Case::name).join(", "))]
pub struct UnknownCase(pub String);

impl FromStr for Case {
    type Err = UnknownCase;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|case| case.name() == name);
        found.ok_or_else(|| UnknownCase(name.to_owned()))
    }
}

/// Every mode offered, and the forms kept to show what was wrong with them.
pub fn subjects() -> Vec<Subject> {
    let (at_once, uniform) = (Suppression::None, Suppression::Uniform(SUPPRESS));
    let announce = |name, suppression, rules| {
        let config = Config::new(ANNOUNCE, Some(LISTEN), suppression, rules)
            .and_then(|config| config.with_reply(REPLY));
        announced(name, config.expect("the constants below satisfy the constraints"))
    };
    let with = |name, change: fn(Config) -> Result<Config, ConfigError>| {
        let config = Config::new(ANNOUNCE, Some(LISTEN), uniform, Rules::Hardened)
            .and_then(|config| config.with_reply(REPLY))
            .and_then(change);
        announced(name, config.expect("the constants below satisfy the constraints"))
    };
    let deposed = Some("A-1: heartbeats of the current leader are ignored, so that it is deposed");
    let as_published = |name, suppression| {
        let subject = announce(name, suppression, Rules::AsPublished);
        Subject { known_to_break: deposed, ..subject }
    };
    let mut all = shipped::subjects();
    all.extend([
        announce("le-a", at_once, Rules::Hardened),
        announce("le-s", uniform, Rules::Hardened),
        with("le-m", |config| config.with_criterion(Criterion::Wake)),
        with("le-m-sticky", |config| {
            config.with_criterion(Criterion::Wake)?.with_tenure(Tenure::Sticky)
        }),
        with("le-s-bye", |config| config.with_bye(Bye { copies: 3, spacing: LONGEST_DELAY * 2 })),
        with("le-s-query", |config| {
            config.with_entry(Entry::Query { timeout: LONGEST_DELAY * 2 + REPLY })
        }),
        announce("le-a-corrected", at_once, Rules::Corrected),
        announce("le-s-corrected", uniform, Rules::Corrected),
        as_published("le-a-as-published", at_once),
        as_published("le-s-as-published", uniform),
        member("swim", Strategy::Swim, Form::Hardened),
        member("medley", Strategy::Medley, Form::Hardened),
        member("medley-f", Strategy::Both, Form::Hardened),
        // Held to safety alone: it neither compares lists nor heals partitions (M-15 of `docs/rules/medley.md`).
        member("medley-f-as-published", Strategy::Both, Form::AsPublished),
        stacked("churn-base", Variant::Base),
        stacked("churn-optimistic", Variant::Optimistic),
        stacked("churn-preferred", Variant::Preferred),
        stacked("churn-hybrid", Variant::Hybrid),
        arbitrated("ring", None),
        arbitrated("leased-bare", Some(Flavour::Quorum)),
        arbitrated("leased-bare-conservative", Some(Flavour::Conservative)),
        arbitrated("leased-bare-fast", Some(Flavour::Fast)),
        keyed("keys"),
        learned("bandit", Policy::EPSILON_GREEDY),
        learned("bandit-thompson", Policy::Thompson { discount: 0.95 }),
        centred("central-bare", LinkState::at_once(1.0)),
        centred("central-gossip", LinkState::at_once(0.7)),
        centred("central-ticking", LinkState::ticking(LONGEST_DELAY)),
    ]);
    all
}

impl Subject {
    /// The cases it is tried in.
    pub fn cases(&self) -> impl Iterator<Item = Case> {
        let hosted = matches!(self.protocol, Protocol::Node(_));
        Case::ALL.into_iter().filter(move |case| hosted || !case.is_of_hosts())
    }
}

/// One leader to a component once links stay as they are. Beacons come late by a delay and go missing by the handful;
/// digests are sent more often than by default while nothing happens, or most of a run would be waiting for one.
fn centred(name: &'static str, settings: LinkState) -> Subject {
    let settings = LinkState { quiet: PERIOD * 8, ..settings };
    let detection = Detection::Beacons { period: PERIOD.div(2), timeout: PERIOD * 3 };
    let config = central::Config::new(central::Profile::LinkState(settings), detection);
    Subject {
        name,
        protocol: Protocol::Central(config.expect("these constants satisfy the constraints")),
        settles_within: Some(CENTRED),
        cost: 5,
        fenced: false,
        durable: false,
        known_to_break: None,
    }
}

/// A ring, with or without a leader. Held to safety alone: by design a minority has no leader, and a ring that has lost
/// its majority, or all its members, does not come back by itself.
fn arbitrated(name: &'static str, flavour: Option<Flavour>) -> Subject {
    let membership = ring::Config::hardened()
        .with_drift(1_000)
        .expect("the bound of the drifting case satisfies the constraint");
    let protocol = match flavour {
        None => Protocol::Ring(membership),
        Some(flavour) => {
            let election = leased::Config::new(flavour);
            Protocol::Leased { membership, election, witnesses: Vec::new() }
        }
    };
    Subject {
        name,
        protocol,
        settles_within: Some(PERIOD * 40),
        cost: 20,
        fenced: flavour.is_some(),
        durable: false,
        known_to_break: None,
    }
}

/// A ring whose members own keys. Held to safety alone, as the ring is.
fn keyed(name: &'static str) -> Subject {
    let subject = arbitrated(name, None);
    let Protocol::Ring(membership) = subject.protocol else {
        unreachable!("that is what owns keys")
    };
    let keys = keys::Config::new()
        .with_slots(16)
        .and_then(|config| config.with_keepers(2))
        .expect("these constants satisfy the constraints");
    Subject { protocol: Protocol::Keys { membership, keys }, fenced: true, ..subject }
}

/// At most one leader to a term, and one wherever a majority can talk.
fn learned(name: &'static str, policy: Policy) -> Subject {
    let config = bandit::Config::new(Profile::Hardened, policy);
    let settings = BanditSettings { config, client: None, environment: None };
    Subject {
        name,
        protocol: Protocol::Bandit(settings),
        settles_within: Some(BY_MAJORITY),
        cost: 1,
        fenced: true,
        durable: true,
        known_to_break: None,
    }
}

/// An election on the membership below.
fn stacked(name: &'static str, variant: Variant) -> Subject {
    let subject = member(name, Strategy::Both, Form::Hardened);
    let Protocol::Medley(membership) = subject.protocol else {
        unreachable!("that is what a member runs")
    };
    let election = churn_tolerant::Config::new(variant, churn_tolerant::Form::Hardened)
        .with_bounds(2, 1)
        .expect("these constants satisfy the constraints");
    let protocol = Protocol::ChurnTolerant { membership, election, roles: Roles::default() };
    Subject { protocol, settles_within: Some(ELECTED), cost: 50, fenced: true, ..subject }
}

/// Lists are compared more often and bags are smaller than by default, or most of a run would be waiting.
fn member(name: &'static str, strategy: Strategy, form: Form) -> Subject {
    let suspicion = PERIOD * 8;
    let silence = (form == Form::Hardened).then_some(suspicion);
    let patience = Patience { interval: suspicion.div(2), gain: 0.125, silence };
    let config = medley::Config::new(strategy, form)
        .with_times(PERIOD, PERIOD.div(4), suspicion)
        .and_then(|config| config.with_patience(patience))
        .and_then(|config| config.with_attention(Attention { timeout: PERIOD * 20, chance: 0.1 }))
        .and_then(|config| match form {
            Form::Hardened => config.with_sync(Some(10))?.with_bag_cap(Some(4)),
            Form::AsPublished => Ok(config),
        });
    let config = config.expect("these constants satisfy the constraints");
    Subject {
        name,
        protocol: Protocol::Medley(config),
        settles_within: None,
        cost: 50,
        fenced: false,
        durable: false,
        known_to_break: None,
    }
}

fn announced(name: &'static str, config: Config) -> Subject {
    // P1 of `docs/rules/announce.md`: whatever state the nodes are in, the best one has stood up, spoken
    // and been heard by then. In the hardened form a token may have to be replaced on top: a hint
    // after its random wait and its rate limit, and the answer.
    let agreed = LISTEN + ANNOUNCE.max(SUPPRESS) + LONGEST_DELAY * 2;
    let token_repaired = match config.rules() {
        Rules::Hardened => REPLY + ANNOUNCE.div(2) + LONGEST_DELAY * 2,
        Rules::Corrected | Rules::AsPublished => Duration::ZERO,
    };
    Subject {
        name,
        protocol: Protocol::Announce(AnnounceSettings { config, random_goodness: false }),
        settles_within: Some(agreed + token_repaired),
        cost: 1,
        fenced: config.rules() == Rules::Hardened,
        durable: false,
        known_to_break: None,
    }
}

/// A case made concrete: a scenario, and from when on all is quiet.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The world in which it runs.
    pub scenario: Scenario,
    /// Nothing new goes wrong from here on.
    pub quiet_from: Time,
    /// By then all must agree, to the end.
    pub settled_by: Time,
    /// Whether that is promised here.
    pub live: bool,
}

/// What came of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// Which situations could have arisen.
    pub situations: Vec<Situation>,
    /// Of a leased election, the shortest time from the last instant at which one could act to the first at which
    /// another could.
    pub smallest_gap: Option<Duration>,
    /// How long after it had got quiet all agreed for good, where that is promised.
    pub settled_after: Option<Duration>,
}

impl Trial {
    /// The world that `seed` draws for a case.
    pub fn new(subject: &Subject, case: Case, seed: u64) -> Self {
        let mut rng = Seed::new(seed).named("conformance").rng();
        let Some(settles_within) = subject.settles_within else {
            return Self::of_membership(subject, case, rng);
        };
        if let Protocol::Node(settings) = &subject.protocol {
            return shipped::trial(subject, settings, case, rng);
        }
        let nodes = 2 + rng.below(8) as u32;
        let delay = delay(&mut rng);
        let mut faults = Vec::new();
        let quiet = trouble(case, &mut rng, &mut faults).max(START_SPREAD);
        if matches!(subject.protocol, Protocol::Ring(_) | Protocol::Keys { .. }) {
            faults.iter_mut().for_each(|fault| aim_at_random(&mut fault.kind));
        }
        if subject.durable {
            faults.iter_mut().for_each(|fault| spare_disks(&mut fault.kind));
        }
        let settled = quiet + settles_within;
        let network = network(nodes, Placement::Mesh, delay);
        let scenario = scenario(subject, case, settled + WATCHED, network, faults);
        Self {
            scenario,
            quiet_from: Time::ZERO + quiet,
            settled_by: Time::ZERO + settled,
            live: true,
        }
    }

    fn of_membership(subject: &Subject, case: Case, mut rng: Rng) -> Self {
        let nodes = 3 + rng.below(22) as u32;
        let delay = delay(&mut rng);
        let mut faults = Vec::new();
        let over = match case {
            Case::Swarm => upheaval(&mut rng, &mut faults),
            _ => trouble(case, &mut rng, &mut faults),
        };
        faults.iter_mut().for_each(|fault| aim_at_random(&mut fault.kind));
        let placement = match rng.below(3) {
            0 => Placement::Mesh,
            1 => Placement::Ring,
            _ => {
                // Wide enough that one draw in a few is connected.
                let crowd = f64::from(nodes + MOST_JOINERS);
                let range = 10.0 * libm::sqrt(3.0 * libm::log(crowd) / crowd);
                Placement::Random { side: 10.0, range, robust: false }
            }
        };
        let network = network(nodes, placement, delay);
        let mut scenario = scenario(subject, case, over, network, faults);
        let quiet = scenario.quiet_from().unwrap_or(over);
        let Protocol::Medley(config) = &subject.protocol else {
            unreachable!("every other protocol is an election")
        };
        // Long enough to see all that is to go right, and as published something.
        let promise = promise(&scenario, config);
        let settled = quiet + promise.mending.max(promise.forgetting).unwrap_or(PERIOD * 200);
        scenario.duration = settled + WATCHED;
        Self {
            scenario,
            quiet_from: Time::ZERO + quiet,
            settled_by: Time::ZERO + settled,
            live: true,
        }
    }

    /// Runs it and judges what happened.
    pub fn judge(&self, seed: u64, log: Log<'_>) -> Judgement {
        let outcome = run_logged(&self.scenario, seed, log)
            .expect("everybody hears everybody, or enough that some draw is connected");
        let gap = outcome.value(Metric::SmallestGap);
        let mut judgement = Judgement {
            violations: outcome.violations,
            situations: outcome.sometimes,
            smallest_gap: gap.map(|gap| Duration::from_micros(libm::round(gap * 1e6) as u64)),
            settled_after: None,
        };
        if let Err(detail) = outcome.ghosts.by(self.settled_by) {
            let (invariant, at) = (OlderLifeStops::NAME, self.settled_by);
            judgement.violations.push(Violation { invariant, at, detail });
        }
        let judged_by_lists = matches!(self.scenario.protocol, Protocol::Medley(_));
        if judged_by_lists || is_arbitrated(&self.scenario.protocol) || !self.live {
            return judgement;
        }
        let mut settles = Settles::new(self.settled_by);
        let mut last = self.quiet_from;
        for (from, to) in outcome.disagreements {
            last = last.max(to);
            if let Err(detail) = settles.disagreement(from, to)
                && judgement.violations.iter().all(|other| other.invariant != Settles::NAME)
            {
                let violation = Violation { invariant: Settles::NAME, at: to, detail };
                judgement.violations.push(violation);
            }
        }
        judgement.settled_after = Some(last.since(self.quiet_from));
        let (situation, arose) = settles.sometimes();
        judgement.situations.push((Settles::NAME, situation, arose));
        judgement
    }
}

/// See [`arbitrated`].
fn is_arbitrated(protocol: &Protocol) -> bool {
    matches!(protocol, Protocol::Ring(_) | Protocol::Leased { .. } | Protocol::Keys { .. })
}

/// An invariant, the situation it guards against, and whether that could have arisen.
pub type Situation = (&'static str, &'static str, bool);

/// What a sweep of seeds over one case found.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The case that was tried.
    pub case: Case,
    /// How many seeds were tried.
    pub seeds: u64,
    /// For each seed that failed, what did not hold first.
    pub failures: Vec<(u64, Violation)>,
    /// How many seeds each situation could have arisen in.
    pub situations: BTreeMap<(&'static str, &'static str), u64>,
    /// Of a leased election, the shortest time from the last instant at which one could act to the first at which
    /// another could.
    pub smallest_gap: Option<Duration>,
    /// The longest it took from quiet to agreement for good, where that is promised.
    pub settled_after: Option<Duration>,
}

/// Tries a case with `seeds` seeds, or fewer of a [costly](Subject::cost) subject, from `first` on, in parallel; `finished` is called after each.
pub fn sweep(
    subject: &Subject,
    case: Case,
    first: u64,
    seeds: u64,
    finished: impl Fn() + Sync,
) -> Verdict {
    let seeds = seeds.div_ceil(subject.cost);
    let results: Vec<_> = (0..seeds)
        .into_par_iter()
        .map(|index| {
            let seed = first.wrapping_add(index);
            let judgement = Trial::new(subject, case, seed).judge(seed, Log::none());
            finished();
            (seed, judgement)
        })
        .collect();
    let mut verdict = Verdict {
        case,
        seeds,
        failures: Vec::new(),
        situations: BTreeMap::new(),
        smallest_gap: None,
        settled_after: None,
    };
    for (seed, judgement) in results {
        let Judgement { violations, situations, smallest_gap, settled_after } = judgement;
        verdict.failures.extend(violations.into_iter().next().map(|first| (seed, first)));
        for (invariant, situation, arose) in situations {
            *verdict.situations.entry((invariant, situation)).or_insert(0) += u64::from(arose);
        }
        let gaps = verdict.smallest_gap.into_iter().chain(smallest_gap);
        verdict.smallest_gap = gaps.min();
        verdict.settled_after = verdict.settled_after.max(settled_after);
    }
    verdict
}

/// A digest of what this build does: one run of every subject in every case. Two builds that share it send
/// the same messages at the same times; a change to a protocol, the engine or the network changes it.
pub fn behaviour() -> TraceHash {
    let mut digest = TraceHash::new();
    for subject in subjects() {
        for case in subject.cases() {
            let scenario = Trial::new(&subject, case, 1).scenario;
            let outcome = run(&scenario, 1);
            let outcome =
                outcome.expect("everybody hears everybody, or enough that some draw is connected");
            digest.fold(outcome.trace.get());
        }
    }
    digest
}

fn delay(rng: &mut Rng) -> Delay {
    let high = Duration::from_micros(1_000 + rng.below(LONGEST_DELAY.as_micros() - 1_000));
    Delay { law: DelayLaw::Uniform { low: Duration::from_millis(1), high }, per: Per::Path }
}

fn network(nodes: u32, placement: Placement, delay: Delay) -> NetworkSettings {
    NetworkSettings {
        nodes,
        start_spread: START_SPREAD,
        placement,
        delay,
        loss: Loss::None,
        routing: Routing::Hops,
        mobility: Default::default(),
        radio: Default::default(),
    }
}

fn scenario(
    subject: &Subject,
    case: Case,
    duration: Duration,
    network: NetworkSettings,
    faults: Vec<Fault>,
) -> Scenario {
    Scenario {
        name: format!("conformance {} {case}", subject.name),
        duration,
        until: Until::Duration,
        network,
        protocol: subject.protocol.clone(),
        faults,
    }
}

/// For the membership to mend its lists, and for an election on top. Measured, not derived: no run of 240 seeds of
/// any case needed more.
const ELECTED: Duration = Duration::from_secs(60);
/// For a majority to elect: leases run out, and a few terms may fail, each waiting longer. Measured, not derived.
const BY_MAJORITY: Duration = Duration::from_secs(15);
/// For links to be noticed or given up, and for two digests, the second of which may be an answer to the first. Measured,
/// not derived.
const CENTRED: Duration = Duration::from_secs(15);
const PERIOD: Duration = Duration::from_millis(500);
/// At most six times three, and one.
const MOST_JOINERS: u32 = 19;
const ANNOUNCE: Duration = Duration::from_secs(1);
/// Four announcements in a row may be lost before a leader is given up.
const LISTEN: Duration = Duration::from_secs(4);
/// With the longest delay still within one announce period (C2 of `docs/rules/announce.md`).
const SUPPRESS: Duration = Duration::from_millis(800);
const REPLY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_millis(100);
const START_SPREAD: Duration = Duration::from_secs(2);
/// How long agreement must last: five times as long as a follower trusts a silent leader, so that a form
/// that deposes healthy leaders is seen to.
const WATCHED: Duration = Duration::from_secs(20);
