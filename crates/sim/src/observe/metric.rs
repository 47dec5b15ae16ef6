//! Metrics: each defined once, with its name, its unit and its meaning, for `sim`, the lab and the tests.

use std::fmt;

use crate::engine::LONGEST_WAY;

/// What a run measures. Names are stable: scripts and result files use them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Metric {
    /// From the start of the run to the first instant at which all live nodes agree.
    LeadershipDelay,
    /// Mean length of the spells without agreement that ended in one, the first included.
    ElectionTime,
    /// Spells without agreement that ended in one.
    Elections,
    /// Share of the run in which all live nodes agreed.
    Agreement,
    /// Total time without agreement.
    InconsistentTime,
    /// How often the agreed leader was another than the one agreed on before.
    LeaderChanges,
    /// Most live nodes at one instant that named themselves.
    LeadersAtOnce,
    /// From the last change of who can talk to whom (a crash, leave, join, cut or healing) to the first
    /// agreement after it.
    RecoveryTime,
    /// Share of runs that ended with nobody naming itself: 0 or 1 in one run.
    LeaderlessAtEnd,
    /// When the announcement was sent by which the last live node heard of the leader.
    TMax,
    /// How many announcements were sent.
    NumMsgs,
    /// Which announcement of the leader's it was by which the last live node heard of it, from 1.
    Rounds,
    /// Which announcement of the leader's a node heard first, on average.
    AvgRounds,
    /// Nodes that announced at all.
    FirstRoundMsgs,
    /// When the first announcement was sent.
    TFirst,
    /// When the last node that announced at all did so for the first time.
    TLastFirst,
    /// When the last announcement was sent.
    TLast,
    /// From a crash to the first live node that took the crashed one off its list; the mean over crashes.
    FirstDetection,
    /// The same for the crash that was found soonest.
    EarliestDetection,
    /// The same for the crash that was found latest.
    LatestDetection,
    /// Crashes that nobody found.
    Undetected,
    /// From then to the last live node that did.
    Dissemination,
    /// From then to the median live node.
    MedianDissemination,
    /// From a crash to a live node's removal, on average over those that did.
    MeanDetection,
    /// Share of live nodes that never did.
    Incomplete,
    /// Suspicions of nodes that were up.
    FalseSuspicions,
    /// Removals of nodes that were up.
    FalseRemovals,
    /// Removals of nodes that were up and had never been frozen or cut off from many.
    HealthyRemovals,
    /// Of all pairs of running nodes, the share in which the first does not list the second when the run
    /// ends.
    Unlisted,
    /// Square root of mean detection time, in seconds, times transmissions.
    ProductCost,
    /// Transmissions for each message sent.
    MeanHops,
    /// Share of messages that went this many hops or fewer, of those that had a way to go.
    WithinHops(Hops),
    /// From the call for an election to the last live node that took on the leader all live nodes name in the end.
    CompletionTime,
    /// Share of elections that ended with live nodes naming no leader, several or a dead one.
    Undecided,
    /// Share of elections that ended with no live node named or, where health is no criterion, with most live nodes
    /// naming another than the one of lowest key.
    WrongLeader,
    /// Live nodes with a lower key than the live leader that most name.
    HashRank,
    /// Live nodes that are suspected more often, over all lists, than that leader; all others if it never was.
    UnhealthyRank,
    /// Nodes that told everybody they lead.
    AnnouncedLeaders,
    /// How often a live node changed its mind about who leads, its first leader included, on average.
    ChangesPerNode,
    /// Most attempts of one initiator, the first included.
    Attempts,
    /// Nodes that asked around, to elect or to hand over.
    Initiators,
    /// Questions of initiators.
    Queries,
    /// Questions, answers, notices to leaders and objections.
    Unicasts,
    /// How often somebody told everybody that it leads.
    Multicasts,
    /// Bytes of an election's messages by the sizes of `docs/rules/churn-tolerant.md`, end to end.
    ModelBytes,
    /// The same for every hop.
    ModelHopBytes,
    /// Members of a ring when the run ends.
    ActiveAtEnd,
    /// Members that left because they lost an arbitration.
    ForcedDepartures,
    /// Pairs that both left on each other's account.
    MutualLosses,
    /// From a crash to a monitor's suspicion, on average over monitors.
    MonitorDetection,
    /// From a crash to the last member that buried it.
    LatestBurial,
    /// Lease requests and acknowledgements a member sends in one session.
    LeasesPerSession,
    /// Requests for arbitration, the asker's own copy included.
    ArbitrationRequests,
    /// Most of them addressed to one node.
    MostRequests,
    /// Proposals of arbitrator groups, and answers to them.
    UpgradeMessages,
    /// From a joiner's first question to its membership, on average.
    JoinTime,
    /// Share of monitoring pairs whose arbitrators are not those they should have when the run ends.
    StalePairs,
    /// How long two leased leaders could act at once.
    LeaseOverlap,
    /// From the last instant at which one leased leader could act to the first at which the next could; the least.
    SmallestGap,
    /// From the crash of a leased leader to the first instant at which another could act; the longest.
    FailOver,
    /// How long no leased leader could act, from the first one on.
    LeaderlessTime,
    /// Share of the slots of keys for which nobody could act when the run ended.
    UnownedSlots,
    /// The longest that nobody could act for a slot of keys, from its first owner on.
    LongestUnowned,
    /// How often a slot of keys got another owner than its last.
    MovedSlots,
    /// Messages between owners and keepers of keys.
    KeyMessages,
    /// Rounds of election a client has called for.
    LeRounds,
    /// Those after which the client knew no new leader.
    FailedRounds,
    /// Most failed rounds in a row.
    LongestStreak,
    /// Terms in which some node shared its candidates.
    Terms,
    /// Requests of the client that were answered.
    Answered,
    /// From a request to its answer, on average over those answered.
    ResponseDelay,
    /// From the failure of the leader that the client believes in to the next answer, on average.
    Outage,
    /// Time during which more than one node named itself.
    SeveralLeading,
    /// Candidate lists, votes, confirmations and hints; one to all counts for each of the others.
    ElectionMessages,
    /// Pings and their answers.
    PingMessages,
    /// Share of the time of all nodes in which they named another than the most central node of their component.
    Instability,
    /// Share of it in which they named one outside their component.
    StaleLeaders,
    /// Share of the time of all components of two or more in which their members did not all name the same.
    SplitComponents,
    /// Messages of the protocol sent in a second, beacons apart.
    MessageRate,
    /// The same, per node.
    NodeMessageRate,
    /// Mean payload of those by the sizes of `docs/rules/central.md`.
    MeanModelBytes,
    /// Mean payload of those as sent.
    MeanPayload,
    /// The longest way from a member to whom it names, as a part of its component's diameter; the mean.
    RelativePath,
    /// The median way from a member to whom it names, in hops; the mean over components.
    MedianPath,
    /// Components, on average over time.
    Components,
    /// Diameter of components of two or more, on average.
    Diameter,
    /// From a crash that made the wrong leader of whom others named to the first instant at which all named the right
    /// ones; the mean.
    CrashElectionTime,
    /// How many pings were answered.
    Acked,
    /// Pings unanswered when they were checked.
    Missed,
    /// Invariants that did not hold.
    Violations,
    /// Inputs handled by machines.
    Events,
    /// Messages sent; one to many counts once.
    Messages,
    /// Messages that reached a running machine.
    Deliveries,
    /// Receivers that lost a message on the way.
    Lost,
    /// Receivers that were down, cut off, out of reach or had a full buffer.
    Undeliverable,
    /// Inputs the machines refused.
    Rejected,
    /// Bytes of the datagrams sent, the seal included, counted once each: end to end.
    Bytes,
    /// Times a message went over the air or a wire.
    Transmissions,
    /// Bytes of all those transmissions: per hop.
    HopBytes,
    /// Frames sent over the air.
    Frames,
    /// Receivers in range of a frame that missed it because others were sending, or they themselves.
    Collisions,
    /// Frames that found the queue of their sender full.
    QueueDrops,
    /// Share of the run in which a node's radio sent or received, on average over nodes.
    AirShare,
    /// Energy a radio took, on average over nodes.
    Energy,
    /// The part of it that listening for the whole run would not have taken.
    DynamicEnergy,
}

/// A number of hops, of those that are counted one by one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Hops(usize);

impl Hops {
    /// All of them, from one on.
    pub const ALL: [Self; LONGEST_WAY] = {
        let mut all = [Self(0); LONGEST_WAY];
        let mut at = 0;
        while at < LONGEST_WAY {
            all[at] = Self(at + 1);
            at += 1;
        }
        all
    };

    /// The number of hops.
    pub const fn get(self) -> usize {
        self.0
    }

    /// Of messages counted by their hops, the share that went this many or fewer; `None` if none went
    /// anywhere.
    pub fn share(self, counted: &[u64; LONGEST_WAY + 2]) -> Option<f64> {
        let all: u64 = counted[1..].iter().sum();
        let within: u64 = counted[1..=self.0].iter().sum();
        (all > 0).then(|| within as f64 / all as f64)
    }
}

/// What a metric counts in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Seconds of simulated time.
    Seconds,
    /// A share between 0 and 1.
    Ratio,
    /// A number of things.
    Count,
    /// A number of bytes.
    Bytes,
    /// An energy in joules.
    Joules,
}

impl Metric {
    /// What it means, where its name alone has misled people.
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::ElectionTime => Some("mean time from losing agreement to regaining it"),
            Self::CompletionTime => Some(
                "from the first call for an election until the last node took on the leader of the end",
            ),
            _ => None,
        }
    }

    /// The name in output and result files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeadershipDelay => "leadership_delay",
            Self::ElectionTime => "election_time",
            Self::Elections => "elections",
            Self::Agreement => "agreement",
            Self::InconsistentTime => "inconsistent_time",
            Self::LeaderChanges => "leader_changes",
            Self::LeadersAtOnce => "leaders_at_once",
            Self::RecoveryTime => "recovery_time",
            Self::LeaderlessAtEnd => "leaderless_at_end",
            Self::TMax => "t_max",
            Self::NumMsgs => "num_msgs",
            Self::Rounds => "rounds",
            Self::AvgRounds => "avg_rounds",
            Self::FirstRoundMsgs => "first_round_msgs",
            Self::TFirst => "t_first",
            Self::TLastFirst => "t_last_first",
            Self::TLast => "t_last",
            Self::FirstDetection => "first_detection",
            Self::EarliestDetection => "earliest_detection",
            Self::LatestDetection => "latest_detection",
            Self::Undetected => "undetected",
            Self::Dissemination => "dissemination",
            Self::MedianDissemination => "median_dissemination",
            Self::MeanDetection => "mean_detection",
            Self::Incomplete => "incomplete",
            Self::FalseSuspicions => "false_suspicions",
            Self::FalseRemovals => "false_removals",
            Self::HealthyRemovals => "healthy_removals",
            Self::Unlisted => "unlisted",
            Self::ProductCost => "product_cost",
            Self::MeanHops => "mean_hops",
            Self::WithinHops(hops) => WITHIN[hops.0 - 1],
            Self::CompletionTime => "completion_time",
            Self::Undecided => "undecided",
            Self::WrongLeader => "wrong_leader",
            Self::HashRank => "hash_rank",
            Self::UnhealthyRank => "unhealthy_rank",
            Self::AnnouncedLeaders => "announced_leaders",
            Self::ChangesPerNode => "changes_per_node",
            Self::Attempts => "attempts",
            Self::Initiators => "initiators",
            Self::Queries => "queries",
            Self::Unicasts => "unicasts",
            Self::Multicasts => "multicasts",
            Self::ModelBytes => "model_bytes",
            Self::ModelHopBytes => "model_hop_bytes",
            Self::ActiveAtEnd => "active_at_end",
            Self::ForcedDepartures => "forced_departures",
            Self::MutualLosses => "mutual_losses",
            Self::MonitorDetection => "monitor_detection",
            Self::LatestBurial => "latest_burial",
            Self::LeasesPerSession => "leases_per_session",
            Self::ArbitrationRequests => "arbitration_requests",
            Self::MostRequests => "most_requests",
            Self::UpgradeMessages => "upgrade_messages",
            Self::JoinTime => "join_time",
            Self::StalePairs => "stale_pairs",
            Self::LeaseOverlap => "lease_overlap",
            Self::SmallestGap => "smallest_gap",
            Self::FailOver => "fail_over",
            Self::LeaderlessTime => "leaderless_time",
            Self::UnownedSlots => "unowned_slots",
            Self::LongestUnowned => "longest_unowned",
            Self::MovedSlots => "moved_slots",
            Self::KeyMessages => "key_messages",
            Self::LeRounds => "le_rounds",
            Self::FailedRounds => "failed_rounds",
            Self::LongestStreak => "longest_streak",
            Self::Terms => "terms",
            Self::Answered => "answered",
            Self::ResponseDelay => "response_delay",
            Self::Outage => "outage",
            Self::SeveralLeading => "several_leading",
            Self::ElectionMessages => "election_messages",
            Self::PingMessages => "ping_messages",
            Self::Instability => "instability",
            Self::StaleLeaders => "stale_leaders",
            Self::SplitComponents => "split_components",
            Self::MessageRate => "message_rate",
            Self::NodeMessageRate => "node_message_rate",
            Self::MeanModelBytes => "mean_model_bytes",
            Self::MeanPayload => "mean_payload",
            Self::RelativePath => "relative_path",
            Self::MedianPath => "median_path",
            Self::Components => "components",
            Self::Diameter => "diameter",
            Self::CrashElectionTime => "crash_election_time",
            Self::Acked => "acked",
            Self::Missed => "missed",
            Self::Violations => "violations",
            Self::Events => "events",
            Self::Messages => "messages",
            Self::Deliveries => "deliveries",
            Self::Lost => "lost",
            Self::Undeliverable => "undeliverable",
            Self::Rejected => "rejected",
            Self::Bytes => "bytes",
            Self::Transmissions => "transmissions",
            Self::HopBytes => "hop_bytes",
            Self::Frames => "frames",
            Self::Collisions => "collisions",
            Self::QueueDrops => "queue_drops",
            Self::AirShare => "air_share",
            Self::Energy => "energy",
            Self::DynamicEnergy => "dynamic_energy",
        }
    }

    /// What it counts in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::LeadershipDelay
            | Self::ResponseDelay
            | Self::Outage
            | Self::SeveralLeading
            | Self::CompletionTime
            | Self::ElectionTime
            | Self::InconsistentTime
            | Self::RecoveryTime
            | Self::FirstDetection
            | Self::EarliestDetection
            | Self::LatestDetection
            | Self::Dissemination
            | Self::MedianDissemination
            | Self::MeanDetection
            | Self::MonitorDetection
            | Self::LatestBurial
            | Self::JoinTime
            | Self::LeaseOverlap
            | Self::SmallestGap
            | Self::FailOver
            | Self::LeaderlessTime
            | Self::LongestUnowned
            | Self::CrashElectionTime
            | Self::TMax
            | Self::TFirst
            | Self::TLastFirst
            | Self::TLast => Unit::Seconds,
            Self::Agreement
            | Self::LeaderlessAtEnd
            | Self::Undecided
            | Self::WrongLeader
            | Self::Incomplete
            | Self::Unlisted
            | Self::StalePairs
            | Self::UnownedSlots
            | Self::Instability
            | Self::StaleLeaders
            | Self::SplitComponents
            | Self::RelativePath
            | Self::AirShare
            | Self::WithinHops(_) => Unit::Ratio,
            Self::Energy | Self::DynamicEnergy => Unit::Joules,
            Self::Bytes
            | Self::HopBytes
            | Self::ModelBytes
            | Self::ModelHopBytes
            | Self::MeanModelBytes
            | Self::MeanPayload => Unit::Bytes,
            Self::Elections
            | Self::LeaderChanges
            | Self::LeadersAtOnce
            | Self::Undetected
            | Self::FalseSuspicions
            | Self::FalseRemovals
            | Self::HealthyRemovals
            | Self::ProductCost
            | Self::MeanHops
            | Self::NumMsgs
            | Self::Rounds
            | Self::AvgRounds
            | Self::FirstRoundMsgs
            | Self::HashRank
            | Self::UnhealthyRank
            | Self::AnnouncedLeaders
            | Self::ChangesPerNode
            | Self::Attempts
            | Self::Initiators
            | Self::Queries
            | Self::Unicasts
            | Self::Multicasts
            | Self::ActiveAtEnd
            | Self::ForcedDepartures
            | Self::MutualLosses
            | Self::LeasesPerSession
            | Self::ArbitrationRequests
            | Self::MostRequests
            | Self::UpgradeMessages
            | Self::MovedSlots
            | Self::KeyMessages
            | Self::LeRounds
            | Self::FailedRounds
            | Self::LongestStreak
            | Self::Terms
            | Self::Answered
            | Self::ElectionMessages
            | Self::PingMessages
            | Self::MessageRate
            | Self::NodeMessageRate
            | Self::MedianPath
            | Self::Components
            | Self::Diameter
            | Self::Acked
            | Self::Missed
            | Self::Violations
            | Self::Events
            | Self::Messages
            | Self::Deliveries
            | Self::Lost
            | Self::Undeliverable
            | Self::Rejected
            | Self::Frames
            | Self::Collisions
            | Self::QueueDrops
            | Self::Transmissions => Unit::Count,
        }
    }
}

const WITHIN: [&str; LONGEST_WAY] = [
    "within_1_hop",
    "within_2_hops",
    "within_3_hops",
    "within_4_hops",
    "within_5_hops",
    "within_6_hops",
];

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Seconds => "s",
            Self::Ratio => "",
            Self::Count => "",
            Self::Bytes => "B",
            Self::Joules => "J",
        })
    }
}

/// One metric over many runs. Runs in which it has no value (an election that never ended) are not
/// counted, and the difference to the number of runs says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Runs with a value.
    pub count: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; zero for a single run.
    pub sd: f64,
    /// Half of all are at most this.
    pub p50: f64,
    /// 95% of all are at most this.
    pub p95: f64,
    /// 99% of all are at most this.
    pub p99: f64,
}

impl Summary {
    /// Summarises values; `None` if there are none. Percentiles are by nearest rank.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.is_empty() {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        // Relative to one of them, so that equal values have exactly that mean and no deviation.
        let origin = values[count / 2];
        let mean = origin + values.iter().map(|value| value - origin).sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let sd = if count > 1 { libm::sqrt(squares / (count - 1) as f64) } else { 0.0 };
        let rank = |share: f64| {
            let rank = libm::ceil(share * count as f64) as usize;
            values[rank.clamp(1, count) - 1]
        };
        Some(Self { count, mean, sd, p50: rank(0.5), p95: rank(0.95), p99: rank(0.99) })
    }

    /// Standard error of the mean.
    pub fn standard_error(&self) -> f64 {
        self.sd / libm::sqrt(self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_known_numbers() {
        let summary = Summary::of((1..=100).map(f64::from)).unwrap();
        assert_eq!(summary.count, 100);
        assert_eq!(summary.mean, 50.5);
        assert!((summary.sd - 29.011_491_975_882_016).abs() < 1e-12);
        assert_eq!((summary.p50, summary.p95, summary.p99), (50.0, 95.0, 99.0));
        assert!((summary.standard_error() - 2.901_149_197_588_201_6).abs() < 1e-12);
    }

    #[test]
    fn hops_are_shares_of_what_had_a_way_to_go() {
        let counted = [7, 5, 3, 0, 0, 0, 1, 1];
        let shares = Hops::ALL.map(|hops| hops.share(&counted).unwrap());
        assert_eq!(shares, [0.5, 0.8, 0.8, 0.8, 0.8, 0.9], "unreachable ones apart, 10 went");
        assert_eq!(Hops::ALL[0].share(&[3, 0, 0, 0, 0, 0, 0, 0]), None);
        for (hops, name) in Hops::ALL.into_iter().zip(WITHIN) {
            assert!(name.starts_with(&format!("within_{}_hop", hops.get())), "{name}");
        }
    }

    #[test]
    fn one_value_is_its_own_everything_and_none_has_no_summary() {
        let one = Summary { count: 1, mean: 3.0, sd: 0.0, p50: 3.0, p95: 3.0, p99: 3.0 };
        assert_eq!(Summary::of([3.0]), Some(one));
        let tenths = Summary::of([0.1; 1_000]).unwrap();
        assert_eq!((tenths.mean, tenths.sd), (0.1, 0.0), "no rounding where nothing varies");
        assert_eq!(Summary::of([]), None);
    }
}
