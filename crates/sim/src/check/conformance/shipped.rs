//! The modes as shipped: what [`Settings::plan`] makes of an agent's defaults, with nothing changed.

use bellwether_proto::{
    Duration, Rng, Time,
    election::{central::Criterion, churn_tolerant::Variant, leased::Flavour},
    node::{
        self, AnnouncedSettings, CentralSettings, ElectionSettings, EventualSettings, Keeping,
        LEARNED_MARGIN, LearnedSettings, LeasedSettings, ModeSettings, Policy, Settings, TENURE,
        TimingProfile,
    },
};

use super::{
    Case, MOST_JOINERS, Subject, Trial, WATCHED, network,
    trouble::{aim_at_random, spare_disks, swarm, trouble},
};
use crate::scenario::{
    Delay, DelayLaw, Fault, FaultKind, NodeSettings, Per, Placement, Protocol, Scenario, State,
    Until, Who,
};

/// Every mode an agent offers, and every variant of one that has a promise of its own.
pub(super) fn subjects() -> Vec<Subject> {
    let eventual = |variant| {
        let settings = EventualSettings { variant, ..EventualSettings::default() };
        ModeSettings::Eventual(settings)
    };
    let leased =
        |flavour| ModeSettings::Leased(LeasedSettings { flavour, ..LeasedSettings::of([]) });
    let by_record = LeasedSettings {
        learned: Some(Keeping { tenure: TENURE, margin: LEARNED_MARGIN }),
        ..LeasedSettings::of([])
    };
    let learned =
        |policy| ModeSettings::Learned(LearnedSettings { policy, ..LearnedSettings::of([]) });
    vec![
        subject("eventual", eventual(Variant::Hybrid), EVENTUAL),
        subject("announced", ModeSettings::Announced(AnnouncedSettings::default()), ANNOUNCED),
        subject("leased", leased(Flavour::Quorum), LEASED),
        subject("learned", learned(Policy::default()), LEARNED),
        subject("central", ModeSettings::Central(CentralSettings::default()), CENTRAL),
        subject("eventual-base", eventual(Variant::Base), EVENTUAL),
        subject("eventual-optimistic", eventual(Variant::Optimistic), EVENTUAL),
        subject("eventual-preferred", eventual(Variant::Preferred), EVENTUAL),
        subject("leased-conservative", leased(Flavour::Conservative), LEASED),
        subject("leased-fast", leased(Flavour::Fast), LEASED),
        subject("leased-by-record", ModeSettings::Leased(by_record), LEASED),
        subject("learned-epsilon-greedy", learned(Policy::EpsilonGreedy), LEARNED),
    ]
}

fn subject(name: &'static str, mode: ModeSettings, settles_within: Duration) -> Subject {
    let durable = matches!(mode, ModeSettings::Leased(_) | ModeSettings::Learned(_));
    let fenced = !matches!(mode, ModeSettings::Central(_));
    let elections = vec![ElectionSettings::of("default", mode)];
    Subject {
        name,
        protocol: Protocol::Node(NodeSettings::alike(PROFILE.timing(), elections)),
        settles_within: Some(settles_within),
        cost: 20,
        fenced,
        durable,
        known_to_break: None,
    }
}

/// The world of a case. Delays suit the waits, as an operator's would.
pub(super) fn trial(subject: &Subject, settings: &NodeSettings, case: Case, mut rng: Rng) -> Trial {
    let nodes = 2 + rng.below(8) as u32;
    let high = Duration::from_micros(1_000 + rng.below(LONGEST_DELAY.as_micros() - 1_000));
    let low = Duration::from_millis(1);
    // `ack` is above the longest round trip, which goes by all others at worst.
    let longest = PROFILE.timing().ack.div(2 * u64::from(nodes - 1));
    let high = if case.is_half_broken() { high.min(longest) } else { high };
    let delay = Delay { law: DelayLaw::Uniform { low, high: high.max(low) }, per: Per::Path };
    let mut settings = settings.clone().among(nodes);
    let mode = settings.common.elections[0].mode.clone();
    let (mut faults, mut differs) = (Vec::new(), case == Case::Differing);
    let mut quiet = match case {
        Case::Swarm => {
            differs = rng.chance(0.1);
            swarm(mixed(&mut rng), &mut rng, &mut faults)
        }
        _ => trouble(case, &mut rng, &mut faults),
    };
    if case == Case::Aged {
        // The two halves are apart until it is over, one of them has elected leaders for ages.
        let (old, new): (Vec<u32>, Vec<u32>) = (0..nodes).partition(|node| node % 2 == 0);
        let counter = AGES[rng.below(AGES.len() as u64) as usize];
        settings.aged = old.iter().map(|&node| (node, counter)).collect();
        let add = |at, kind| Fault { at, spread: Duration::ZERO, every: None, until: None, kind };
        let (from, to) = (Some(Who::Nodes(old)), Some(Who::Nodes(new)));
        let cut = FaultKind::Cut { from, to, both: true, length: None };
        faults.extend([add(START_SPREAD, cut), add(quiet, FaultKind::Heal)]);
    }
    if case.is_half_broken() {
        faults.extend(half_broken(case, nodes, quiet, &mut rng));
    }
    if case == Case::Upgrade {
        settings.upgrading = true;
        let add = |at, kind| Fault { at, spread: Duration::ZERO, every: None, until: None, kind };
        for node in (0..nodes).chain((0..nodes).rev()) {
            let back = quiet + Duration::from_millis(200) + rng.up_to(Duration::from_secs(1));
            let recover = FaultKind::Recover { who: Who::All, state: State::Kept };
            faults.push(add(quiet, FaultKind::Crash(Who::Nodes(vec![node]))));
            faults.push(add(back, recover));
            quiet = back + rng.up_to(Duration::from_secs(4));
        }
    }
    if differs {
        let node = rng.below(nodes.into()) as u32;
        let other = other(&settings.common, node, nodes, &mut rng);
        settings.others.insert(node, other);
        // Nobody's leader is the one that differs, or not for long.
        faults.iter_mut().for_each(|fault| aim_at_random(&mut fault.kind));
    }
    if subject.durable {
        // Whoever loses its disk in earnest comes back under another identity, which is not to be had here.
        faults.iter_mut().for_each(|fault| spare_disks(&mut fault.kind));
    }
    let quiet = quiet.max(START_SPREAD);
    let within = subject.settles_within.unwrap_or(Duration::ZERO);
    let settled = quiet + within.max(leased_within(&settings.common));
    let placement = match mode {
        ModeSettings::Central(_) => field(nodes, &mut rng),
        _ => Placement::Mesh,
    };
    let mut network = network(nodes, placement, delay);
    network.start_spread = START_SPREAD;
    let gone = |kind: &FaultKind| matches!(kind, FaultKind::Leave(_));
    let whole = match case {
        Case::Crash | Case::Leave | Case::Partition | Case::JoinElecting => false,
        _ => !faults.iter().any(|fault| gone(&fault.kind)),
    };
    if let (ModeSettings::Learned(_), false) = (&mode, whole) {
        // Whoever comes when a voter has gone never meets all voters, and does not know whose votes count: it names
        // nobody, and so has no part in the election.
        for joiner in nodes..nodes + MOST_JOINERS {
            settings
                .others
                .insert(joiner, Settings { elections: vec![], ..settings.common.clone() });
        }
    }
    let live = match &mode {
        // Once a ring is broken all names must be there to found another.
        ModeSettings::Leased(leased) if leased.flavour != Flavour::Quorum => whole && !differs,
        ModeSettings::Leased(_) | ModeSettings::Learned(_) => true,
        // One leader to a segment: those of a segment hear each other.
        ModeSettings::Announced(_) => !differs && !case.is_half_broken(),
        // Nothing is promised to those that go by different rules.
        ModeSettings::Eventual(_) | ModeSettings::Central(_) => !differs,
    };
    Trial {
        scenario: Scenario {
            name: format!("conformance {} {case}", subject.name),
            duration: settled + WATCHED,
            until: Until::Duration,
            network,
            protocol: Protocol::Node(settings),
            faults,
        },
        quiet_from: Time::ZERO + quiet,
        settled_by: Time::ZERO + settled,
        live,
    }
}

/// Which links are cut, and stay so.
fn half_broken(case: Case, nodes: u32, at: Duration, rng: &mut Rng) -> Vec<Fault> {
    let mut order: Vec<u32> = (0..nodes).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    let cut = |from, to| {
        let kind = FaultKind::Cut { from: Some(from), to, both: true, length: None };
        Fault { at, spread: Duration::ZERO, every: None, until: None, kind }
    };
    let one = |place: usize| Who::Nodes(vec![order[place]]);
    let pairs = (0..order.len()).flat_map(|a| (0..a).map(move |b| (b, a)));
    let mut faults: Vec<Fault> = pairs
        .filter(|&(a, b)| match case {
            Case::QuorumLoss => a != 0,
            // Two, as one of them may be the leader.
            Case::Constrained => a > 1,
            Case::Chained => b > a + 1,
            _ => (a, b) == (1, 2) && nodes > 3,
        })
        .map(|(a, b)| cut(one(a), Some(one(b))))
        .collect();
    match case {
        Case::Constrained => faults.push(cut(Who::Leader, None)),
        Case::Link => faults.push(cut(Who::Leader, Some(one(0)))),
        _ => {}
    }
    faults
}

/// Everybody in range of everybody, or several hops.
fn field(nodes: u32, rng: &mut Rng) -> Placement {
    match rng.below(3) {
        0 => Placement::Mesh,
        1 => Placement::Ring,
        _ => {
            // Wide enough that one draw in a few is connected.
            let crowd = f64::from(nodes + MOST_JOINERS);
            let range = 10.0 * libm::sqrt(3.0 * libm::log(crowd) / crowd);
            Placement::Random { side: 10.0, range, robust: false }
        }
    }
}

/// What is mixed. An identity that is cloned and then in both of two parts, or in one whose words do not reach the
/// other, cannot be told apart by anybody: no mode promises anything then. Who has left for good does not tell its
/// earlier life either.
fn mixed(rng: &mut Rng) -> &'static [Case] {
    if rng.chance(0.3) { WITH_CLONES } else { WITHOUT_CLONES }
}

/// What one node is told besides, or instead of, what all are. See [`Case::Differing`].
fn other(common: &Settings, node: u32, nodes: u32, rng: &mut Rng) -> Settings {
    let mut other = common.clone();
    let draw = rng.below(4);
    let stranger = || format!("node-{nodes}-elsewhere");
    let without_one = |names: &mut Vec<String>, rng: &mut Rng| {
        let mine = format!("node-{node}");
        let others: Vec<usize> = (0..names.len()).filter(|&at| names[at] != mine).collect();
        names.remove(others[rng.below(others.len() as u64) as usize]);
    };
    match &mut other.elections[0].mode {
        ModeSettings::Leased(leased) => match draw {
            0 => leased.members.push(stranger()),
            1 => other.timing.lease = common.timing.lease * 2,
            2 if nodes >= 4 => without_one(&mut leased.members, rng),
            _ => {
                leased.flavour = match leased.flavour {
                    Flavour::Quorum => Flavour::Conservative,
                    Flavour::Conservative | Flavour::Fast => Flavour::Quorum,
                };
            }
        },
        ModeSettings::Learned(learned) => match draw {
            0 | 1 if nodes >= 4 => without_one(&mut learned.voters, rng),
            _ => learned.voters.push(stranger()),
        },
        ModeSettings::Eventual(eventual) => match draw {
            0 | 1 => eventual.learned = true,
            _ => {
                eventual.variant = match eventual.variant {
                    Variant::Base => Variant::Hybrid,
                    _ => Variant::Base,
                };
            }
        },
        ModeSettings::Announced(announced) => announced.sticky = !announced.sticky,
        ModeSettings::Central(central) => central.criterion = Criterion::Degree,
    }
    other
}

const WITH_CLONES: &[Case] = &[
    Case::Clone,
    Case::Clone,
    Case::Join,
    Case::Loss,
    Case::Duplication,
    Case::Reordering,
    Case::RestartKept,
    Case::RestartLost,
    Case::MassRestart,
    Case::Pause,
    Case::Drift,
    Case::Disk,
    Case::SlowDisk,
    Case::HalfStarted,
];
const WITHOUT_CLONES: &[Case] = &[
    Case::Crash,
    Case::Leave,
    Case::Join,
    Case::Partition,
    Case::Heal,
    Case::Deaf,
    Case::Mute,
    Case::Loss,
    Case::Duplication,
    Case::Reordering,
    Case::RestartKept,
    Case::RestartLost,
    Case::MassRestart,
    Case::Pause,
    Case::Drift,
    Case::Disk,
    Case::SlowDisk,
    Case::JoinElecting,
    Case::HalfStarted,
];
const AGES: [u64; 4] = [1, 1 << 20, 1 << 40, 1 << 63];
const PROFILE: TimingProfile = TimingProfile::Lan;
const LONGEST_DELAY: Duration = Duration::from_millis(20);
const START_SPREAD: Duration = Duration::from_millis(500);
/// Measured, not derived: 21 s after a partition in 10,120 histories, where a part has to give up the members of the other
/// one by one before it counts itself.
const EVENTUAL: Duration = Duration::from_secs(35);
/// Measured: 1.4 s. P1 of `docs/rules/announce.md` says `listen`, `announce` and two delays, and a token to be repaired.
const ANNOUNCED: Duration = Duration::from_secs(2);
/// Measured: 8 s, with lists to mend, a lease to run out and a few terms that fail.
const LEARNED: Duration = Duration::from_secs(15);
/// Measured: 2.1 s, a silence and a few digests.
const CENTRAL: Duration = Duration::from_secs(5);
/// Of a leased election it depends on how many members there are: see [`leased_within`].
const LEASED: Duration = Duration::ZERO;

/// A ring without a leader is given up after a while, in which all that might lead have had their turn. Members do not
/// notice at the same time: whoever is late may stand in the way of a new ring once more. Then what was promised must be
/// over, and those that are there wait for the rest for ten sessions before they found another, and elect.
fn leased_within(settings: &Settings) -> Duration {
    let plan = settings.plan().expect("the presets make a plan");
    let leased = plan.seats.iter().find_map(|seat| match &seat.protocol {
        node::Protocol::Leased(leased) => Some(leased),
        _ => None,
    });
    leased.map_or(Duration::ZERO, |config| {
        let (session, members) = (config.ring.session(), config.members.len() as u64);
        let patience = session * (6 * (members + 1)) + config.quiet * 2;
        // By record, whoever leads may hand over once its tenure is over, which takes a while without a leader.
        let handover =
            config.learned.map_or(Duration::ZERO, |keeping| keeping.tenure + session * 10);
        patience * 2 + config.quiet + session * 20 + handover
    })
}
