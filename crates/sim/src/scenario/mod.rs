//! Scenarios: a world described as data.
//!
//! A scenario is parsed once, completely, into the types below; what they can express is valid, and
//! nothing later re-checks it. The same types are what tests and the lab build in code.
//!
//! A file goes through `tree` (TOML and `--set` overrides, every value with its place), then `read`
//! and `fault` take it apart field by field with the tools of `section`.

mod bandit;
mod digest;
mod fault;
mod field;
mod file;
mod node;
mod protocol;
mod read;

use bellwether_proto::{
    Duration,
    election::{self, announce, central, churn_tolerant, leased},
    keys,
    membership::{medley, ring},
};

use std::{fmt, sync::Arc};

use crate::{
    engine::TraceHash, lists::membership_trace::MembershipTrace, world::environment::Environment,
};

pub use self::node::NodeSettings;
#[cfg(test)]
pub(crate) use self::read::THESIS;
pub use crate::{
    engine::State,
    observe::Until,
    world::{
        Cluster, Delay, DelayLaw, LevyProfile, LinkLoss, Loss, Mobility, MoveLaw, NetworkSettings,
        NodeLoss, Per, Placement, Radio, Routing, SharedMovement, Wifi,
    },
};
pub use bellwether_settings::{Place, SettingsError};

/// A world and what happens in it. A run is a pure function of this and a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What people call it.
    pub name: String,
    /// Simulated length of a run.
    pub duration: Duration,
    /// Whether to end a run early.
    pub until: Until,
    /// Where the nodes are and how messages travel.
    pub network: NetworkSettings,
    /// What the nodes run.
    pub protocol: Protocol,
    /// What goes wrong, in the order of the file.
    pub faults: Vec<Fault>,
}

impl Scenario {
    /// Nodes there are or will be: those of the start and all that join.
    pub fn capacity(&self) -> u32 {
        let joins = |fault: &Fault| match fault.kind {
            FaultKind::Join { count } => fault.times(self.duration).saturating_mul(count.into()),
            _ => 0,
        };
        let joined: u64 = self.faults.iter().map(joins).fold(0, u64::saturating_add);
        u32::try_from(joined.saturating_add(self.network.nodes.into())).unwrap_or(u32::MAX)
    }

    /// From when on nothing new goes wrong, clocks that drift and parts that stay apart aside; `None` if
    /// something goes on to the end, as it does where nodes move.
    pub fn quiet_from(&self) -> Option<Duration> {
        if self.network.mobility != Mobility::Still {
            return None;
        }
        let mut quiet = self.network.start_spread;
        let (mut cut, mut healed) = (None, None);
        for fault in &self.faults {
            if fault.every.is_some() && fault.until.is_none() {
                return None;
            }
            // Nobody knows when the last ghost hears that it is one.
            if let FaultKind::Clone { .. } = fault.kind {
                return None;
            }
            let last = fault.until.unwrap_or(fault.at + fault.spread);
            let lasts = match fault.kind {
                FaultKind::Pause { length, .. }
                | FaultKind::Loss { length, .. }
                | FaultKind::Delay { length, .. }
                | FaultKind::Starve { length, .. }
                | FaultKind::Disk { length, .. }
                | FaultKind::SlowDisk { length, .. }
                | FaultKind::Cut { length: Some(length), .. } => length,
                FaultKind::Duplicate { length, by, .. } | FaultKind::Reorder { length, by, .. } => {
                    length + by
                }
                FaultKind::Cut { length: None, .. } => {
                    cut = cut.max(Some(last));
                    Duration::ZERO
                }
                FaultKind::Heal => {
                    healed = healed.max(Some(fault.at));
                    Duration::ZERO
                }
                FaultKind::Late { until, .. } => until + self.network.start_spread,
                FaultKind::Crash(_)
                | FaultKind::Clone { .. }
                | FaultKind::Elect(_)
                | FaultKind::Resign(_)
                | FaultKind::Recover { .. }
                | FaultKind::Leave(_)
                | FaultKind::Join { .. }
                | FaultKind::Partition(_)
                | FaultKind::Isolate(_)
                | FaultKind::Move { .. }
                | FaultKind::Place { .. }
                | FaultKind::Drift { .. } => Duration::ZERO,
            };
            quiet = quiet.max(last + lasts);
        }
        (cut <= healed).then_some(quiet)
    }
}

/// What nodes are in an election, if not all are the same.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Roles {
    /// What each is worth, by number; nothing after the last.
    pub attributes: Vec<u32>,
    /// Who never leads.
    pub observers: Vec<u32>,
    /// Whether they keep `c` current by themselves.
    pub survey: bool,
}

/// What the nodes run.
#[derive(Clone, Debug, PartialEq)]
pub enum Protocol {
    /// `[membership] kind = "ping"`: the engine's common workload.
    Ping(PingConfig),
    /// `[membership] kind = "medley"`: SWIM, Medley and Medley-F.
    Medley(medley::Config),
    /// `[election] kind = "announce"`: LE-A, LE-S and LE-M.
    Announce(AnnounceSettings),
    /// `[election] kind = "announce-several"`: LE-K.
    Several(announce::several::Config),
    /// `[election] kind = "sup"`: suppression alone, a baseline.
    Sup(announce::baseline::SupConfig),
    /// `[election] kind = "al"`: announce-listen alone, a baseline.
    Al(announce::baseline::AlConfig),
    /// `[election] kind = "sup-al"`: one after the other, a negative baseline.
    SupAl(announce::baseline::SupAlConfig),
    /// `[election] kind = "bandit"`: BLE, DLE and RLE.
    Bandit(BanditSettings),
    /// `[election] kind = "central"`: Topology Aware, CEL, and what they are compared with.
    Central(central::Config),
    /// `[election] kind = "churn-tolerant"` on `[membership] kind = "medley"`.
    ChurnTolerant {
        /// What the election stands on.
        membership: medley::Config,
        /// What the election is configured as.
        election: churn_tolerant::Config,
        /// Who is what in it.
        roles: Roles,
    },
    /// `[membership] kind = "ring"`: leases and arbitrators.
    Ring(ring::Config),
    /// `[election] kind = "leased"` on `[membership] kind = "ring"`.
    Leased {
        /// What the election stands on.
        membership: ring::Config,
        /// What the election is configured as.
        election: leased::Config,
        /// Who votes and never leads.
        witnesses: Vec<u32>,
    },
    /// `[election] kind = "churn-tolerant"` on lists that no membership keeps up during the election.
    OnLists {
        /// Where the lists come from.
        lists: Lists,
        /// What the election is configured as.
        election: churn_tolerant::Config,
    },
    /// `[node]`: what an agent runs, with an agent's settings.
    Node(NodeSettings),
    /// `[keys]` on `[membership] kind = "ring"`.
    Keys {
        /// The members that own them.
        membership: ring::Config,
        /// How they are owned.
        keys: keys::Config,
    },
}

/// Lists of members to elect on.
#[derive(Clone, Debug, Hash, PartialEq)]
pub enum Lists {
    /// `[membership] kind = "medley"` with `elections`: a run of the membership alone, with all faults, is recorded;
    /// then elections are tried on its lists.
    Recorded {
        /// What is recorded.
        membership: medley::Config,
        /// What is tried on the recorded lists.
        trials: Trials,
    },
    /// `[membership] kind = "trace"`: lists recorded before.
    Trace {
        /// What was recorded.
        trace: SharedTrace,
        /// The run begins with the lists as of then.
        from: Duration,
    },
    /// `[membership] kind = "lists"`: complete but for these, which stay so.
    Missing(Vec<Missing>),
}

/// Elections on the lists of one recorded run.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct Trials {
    /// How many. The values of a run are their means.
    pub count: u32,
    /// The recording is left alone before this.
    pub from: Duration,
    /// Each election is over after this.
    pub limit: Duration,
    /// How often lists are recorded.
    pub every: Duration,
    /// Who elects, and when.
    pub initiator: Initiator,
}

/// Who elects on recorded lists, and when.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Initiator {
    /// Anybody, at any time.
    #[default]
    Random,
    /// The first node to find out that somebody has crashed, just then.
    Detector,
}

/// A node that is missing from some lists.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Missing {
    /// The number of the node.
    pub node: u32,
    /// From how many other lists, drawn anew for every seed.
    pub from: u32,
}

/// A trace that scenarios share. Shown as its origin, its size and its bytes' digest, and hashed by its bytes.
#[derive(Clone, PartialEq)]
pub struct SharedTrace(pub Arc<MembershipTrace>);

impl fmt::Debug for SharedTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digest = TraceHash::new();
        digest.fold_value(&self.0.to_bytes());
        write!(f, "Trace({:?}, {} nodes, {digest})", self.0.origin(), self.0.nodes())
    }
}

/// The settings of [bandit elections](election::bandit). The nodes of the start are the members.
#[derive(Clone, Debug, Hash, PartialEq)]
pub struct BanditSettings {
    /// What all nodes have in common.
    pub config: election::bandit::Config,
    /// What the client does, if there is one. It is the node after the last.
    pub client: Option<election::bandit::client::Config>,
    /// How the machines below fail, if they do.
    pub environment: Option<Environment>,
}

/// The settings of [`announce`].
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct AnnounceSettings {
    /// What all nodes have in common.
    pub config: announce::Config,
    /// Whether every node draws a goodness of its own, uniform from 0 to 1, to be ranked by.
    pub random_goodness: bool,
}

/// The settings of [ping](bellwether_proto::membership::ping); the number of nodes comes from the network.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PingConfig {
    /// How often each node pings.
    pub period: Duration,
    /// How long it waits for the answer.
    pub timeout: Duration,
}

/// Something that goes wrong, or is put right again.
#[derive(Clone, Debug, Hash, PartialEq)]
pub struct Fault {
    /// When, from the start of the run.
    pub at: Duration,
    /// Not exactly then, but at a random instant up to this much later: faults should not always fall
    /// on the same phase of somebody's timer. Zero if it is repeated.
    pub spread: Duration,
    /// Repeated this often from then on, if at all.
    pub every: Option<Every>,
    /// No repetition at or after this instant; `None` for the whole run.
    pub until: Option<Duration>,
    /// What goes wrong.
    pub kind: FaultKind,
}

impl Fault {
    /// How often it happens at most in a run of this length. A run covers `[0, duration)`.
    pub fn times(&self, duration: Duration) -> u64 {
        let end = self.until.map_or(duration, |until| until.min(duration));
        let span = end.saturating_sub(self.at).as_micros();
        match self.every {
            None => 1,
            Some(Every::Regular(every)) => span.div_ceil(every.as_micros().max(1)),
            // Six standard deviations above the mean, and no more are let in.
            Some(Every::Poisson(mean)) => {
                let mean = span as f64 / mean.as_micros().max(1) as f64;
                (mean + 6.0 * libm::sqrt(mean)) as u64 + 10
            }
        }
    }
}

/// How long until a fault is repeated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Every {
    /// Always as long.
    Regular(Duration),
    /// As in a Poisson process with this mean.
    Poisson(Duration),
}

/// What a node is starved of.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lack {
    /// It is frozen.
    Processor,
    /// It runs and its timers fire, but nothing comes in or goes out: Lifeguard's experiments.
    Network,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// Live nodes stop at once, silently.
    Crash(Who),
    /// Live nodes are asked to elect, whether or not there is a leader.
    Elect(Who),
    /// Crashed nodes start again, in a new life.
    Recover {
        /// Which of the crashed.
        who: Who,
        /// What is left of their durable state.
        state: State,
    },
    /// Live nodes leave in good order.
    Leave(Who),
    /// New nodes start.
    Join {
        /// How many nodes join.
        count: u32,
    },
    /// Live nodes freeze: nothing is handled, datagrams pile up to `buffer` (the oldest are kept),
    /// and all of it is handled at the end.
    Pause {
        /// Which nodes are frozen.
        who: Who,
        /// For how long.
        length: Duration,
        /// Datagrams kept for each.
        buffer: u32,
    },
    /// Live nodes get too little of something: for a while each is held up and runs by turns, the first
    /// time after a random part of a turn; what comes meanwhile waits as in [`Pause`](Self::Pause).
    Starve {
        /// Which nodes are starved.
        who: Who,
        /// What they are starved of.
        of: Lack,
        /// How long each freezes.
        blocked: Duration,
        /// How long it runs in between.
        running: Duration,
        /// For how long in all.
        length: Duration,
        /// Datagrams kept for each while it is frozen.
        buffer: u32,
    },
    /// Nothing passes between these groups; nodes not named form one more.
    Partition(Vec<Vec<u32>>),
    /// Nothing passes between these nodes and the rest.
    Isolate(Who),
    /// Nothing passes from the first nodes to the second.
    Cut {
        /// Senders no longer heard; `None` is everybody.
        from: Option<Who>,
        /// Receivers that no longer hear them, chosen from all but the senders; `None` is everybody.
        to: Option<Who>,
        /// Whether the other direction is cut too.
        both: bool,
        /// For how long; `None` until healed.
        length: Option<Duration>,
    },
    /// Ends every partition, isolation and cut.
    Heal,
    /// For a while, hops lose messages more often.
    Loss {
        /// Probability of loss, besides the network's own.
        rate: f64,
        /// For how long.
        length: Duration,
    },
    /// For a while, messages arrive twice.
    Duplicate {
        /// Probability of a second copy.
        rate: f64,
        /// The copy comes up to this much later.
        by: Duration,
        /// For how long.
        length: Duration,
    },
    /// For a while, messages are held back so that later ones overtake them.
    Reorder {
        /// Probability of being held back.
        rate: f64,
        /// Up to this much longer.
        by: Duration,
        /// For how long.
        length: Duration,
    },
    /// Live nodes change their places at once, and the links with them; all places are drawn anew until the
    /// live nodes hang together as before.
    Move {
        /// Which nodes move.
        who: Who,
        /// How far at most, in the placement's unit.
        distance: f64,
        /// How directions are drawn.
        law: MoveLaw,
        /// What the nodes learn of it.
        distances: Distances,
    },
    /// Clocks of live nodes run fast or slow from now on.
    Drift {
        /// Whose clocks drift.
        who: Who,
        /// Parts per million; negative is slow.
        ppm: i32,
    },
    /// For a while, the disks of live nodes keep nothing new. Whoever persists something meanwhile is told, or
    /// crashes if it cannot be.
    Disk {
        /// Whose disks fail.
        who: Who,
        /// For how long.
        length: Duration,
    },
    /// Copies of the disks of live nodes are started elsewhere, each as the next life of its node, to which all
    /// goes from now on that is sent to it. The earlier lives run on and talk from the same places, until they
    /// hear of the later ones from somebody who has heard those.
    Clone {
        /// Whose identities are cloned.
        who: Who,
    },
    /// Nodes of the start are not there before an instant, and start then as all do at the beginning. From the
    /// start, whatever [`Fault::at`] says.
    Late {
        /// Which nodes start late.
        who: Who,
        /// From the start of the run.
        until: Duration,
    },
    /// For a while, the disks of live nodes take their time over what they are to keep, and are done with it at the end.
    /// Whoever persists something meanwhile is told; who cannot be told has a disk that takes no time. A disk that takes
    /// longer than the fault lasts hangs.
    SlowDisk {
        /// Whose disks are slow.
        who: Who,
        /// Every write takes up to this long.
        by: Duration,
        /// For how long.
        length: Duration,
    },
    /// Live nodes, of those that the agent ships, hand over what they lead.
    Resign(Who),
    /// For a while, every message takes this much longer.
    Delay {
        /// By how much.
        by: Duration,
        /// For how long.
        length: Duration,
    },
    /// A node is put at a place, and the links with it, whoever that cuts off. All learn of the new distances.
    Place {
        /// The node that is moved.
        node: u32,
        /// Where to, in the placement's unit.
        at: (f64, f64),
    },
}

/// What nodes learn when some have moved.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Distances {
    /// Nothing: they go on with what they knew, and so do those that start later.
    Stale,
    /// Every distance and neighbourhood that has changed.
    #[default]
    Fresh,
}

/// Which nodes a fault hits. Random choices come from the run's seed.
#[derive(Clone, Debug, PartialEq)]
pub enum Who {
    /// The nodes of exactly these numbers.
    Nodes(Vec<u32>),
    /// This many of those it could hit, at random.
    Count(u32),
    /// This fraction of those it could hit, rounded to the nearest, at random.
    Fraction(f64),
    /// The live node that most live nodes name as their leader.
    Leader,
    /// All of one cluster of a clustered placement, counted from 0.
    Cluster(u32),
    /// All of one cluster at random, of those with anybody it could hit.
    AnyCluster,
    /// A random choice, drawn anew until the live nodes besides hang together as before.
    LeavingConnected(Box<Who>),
    /// All it could hit.
    All,
}
