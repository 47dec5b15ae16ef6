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
mod node;
mod protocol;
mod read;

use bellwether_proto::{
    Duration,
    election::{self, announce, central, churn_tolerant, leased},
    membership::{medley, ring},
};

use std::{fmt, sync::Arc};

use crate::{environment::Environment, membership_trace::MembershipTrace, trace::TraceHash};

pub use bellwether_settings::{Place, SettingsError};

pub use self::field::{LevyProfile, Mobility, Radio, SharedMovement, Wifi};
pub use self::node::NodeSettings;
#[cfg(test)]
pub(crate) use self::read::THESIS;

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
    pub network: Network,
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
                | FaultKind::Drift { .. } => Duration::ZERO,
            };
            quiet = quiet.max(last + lasts);
        }
        (cut <= healed).then_some(quiet)
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Until {
    /// When its duration is over.
    #[default]
    Duration,
    /// At the first instant at which all live nodes agree on their leader, or when the duration is
    /// over.
    Agreement,
    /// At the first instant at which all live nodes have heard an announcement of the one among them
    /// with the largest number, or when the duration is over.
    Heard,
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
        /// The election.
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
        /// The election.
        election: leased::Config,
        /// Who votes and never leads.
        witnesses: Vec<u32>,
    },
    /// `[election] kind = "churn-tolerant"` on lists that no membership keeps up during the election.
    OnLists {
        /// Where the lists come from.
        lists: Lists,
        /// The election.
        election: churn_tolerant::Config,
    },
    /// `[node]`: what an agent runs, with an agent's settings.
    Node(NodeSettings),
}

/// Lists of members to elect on.
#[derive(Clone, Debug, Hash, PartialEq)]
pub enum Lists {
    /// `[membership] kind = "medley"` with `elections`: a run of the membership alone, with all faults, is recorded;
    /// then elections are tried on its lists.
    Recorded {
        /// The membership.
        membership: medley::Config,
        /// The elections.
        trials: Trials,
    },
    /// `[membership] kind = "trace"`: lists recorded before.
    Trace {
        /// The lists.
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
    /// The node.
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

/// Where the nodes are and how messages travel.
#[derive(Clone, Debug, Hash, PartialEq)]
pub struct Network {
    /// Nodes present from the start; joiners come on top.
    pub nodes: u32,
    /// Nodes start at a random instant within this span; zero is a cold start of all together.
    pub start_spread: Duration,
    /// Which nodes hear which.
    pub placement: Placement,
    /// How long messages take.
    pub delay: Delay,
    /// Which messages are lost.
    pub loss: Loss,
    /// Which path a message takes where it needs several hops.
    pub routing: Routing,
    /// How the nodes move.
    pub mobility: Mobility,
    /// What the air does to messages.
    pub radio: Radio,
}

impl Network {
    /// Whether its nodes have positions, and keep them unless a fault displaces them.
    pub fn has_fixed_positions(&self) -> bool {
        self.placement.has_positions() && self.mobility == Mobility::Still
    }
}

/// Which nodes hear which.
#[derive(Clone, Debug, PartialEq)]
pub enum Placement {
    /// Everybody hears everybody, in one hop.
    Mesh,
    /// Each node hears its two neighbours.
    Ring,
    /// Everybody hears node 0, and node 0 everybody; nobody else hears each other.
    Star,
    /// Exactly these undirected links.
    Edges(Vec<(u32, u32)>),
    /// Evenly on a square of `side`, as many rows as columns; in range are those within `range`.
    Grid {
        /// Length of the square's side.
        side: f64,
        /// Radio range, in the same unit.
        range: f64,
    },
    /// Uniformly on a square of `side`, drawn anew for every seed until connected.
    Random {
        /// Length of the square's side.
        side: f64,
        /// Radio range, in the same unit.
        range: f64,
        /// Drawn until it stays connected whichever single node is lost.
        robust: bool,
    },
    /// Uniformly within rectangles, drawn anew for every seed until connected.
    Cluster {
        /// The rectangles; their nodes add up to the network's.
        clusters: Vec<Cluster>,
        /// Radio range, in the same unit.
        range: f64,
        /// Drawn until the rest stays connected whichever single cluster is lost.
        robust: bool,
    },
    /// Uniformly on a square of `side`, connected or not; where nodes move, they do so here.
    Field {
        /// Length of the square's side.
        side: f64,
        /// Radio range, in the same unit.
        range: f64,
    },
}

impl Placement {
    /// Whether its nodes have positions.
    pub fn has_positions(&self) -> bool {
        self.range().is_some()
    }

    /// The radio range, where nodes have positions.
    pub fn range(&self) -> Option<f64> {
        match *self {
            Self::Mesh | Self::Ring | Self::Star | Self::Edges(_) => None,
            Self::Grid { range, .. }
            | Self::Random { range, .. }
            | Self::Cluster { range, .. }
            | Self::Field { range, .. } => Some(range),
        }
    }
}

/// One rectangle of a clustered placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// From and to along the first axis.
    pub x: (f64, f64),
    /// From and to along the second axis.
    pub y: (f64, f64),
    /// Nodes inside.
    pub nodes: u32,
}

/// How long messages take.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct Delay {
    /// The law of one draw.
    pub law: DelayLaw,
    /// What one draw is for.
    pub per: Per,
}

/// The law of a delay.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub enum DelayLaw {
    /// Always the same.
    Fixed(Duration),
    /// Uniform between two bounds, both included.
    Uniform {
        /// The shortest.
        low: Duration,
        /// The longest.
        high: Duration,
    },
    /// A Poisson number of milliseconds.
    Poisson {
        /// The mean.
        mean: Duration,
    },
}

/// What a random draw is for.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Per {
    /// Each hop of a message's path.
    #[default]
    Hop,
    /// The whole path.
    Path,
}

/// Which messages are lost. Rates are per hop.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// A coin for each hop and receiver.
    Independent {
        /// Probability of loss.
        rate: f64,
    },
    /// One coin for each message: all its receivers get it, or none.
    Correlated {
        /// Probability of loss.
        rate: f64,
    },
    /// A coin for each hop and receiver, and a heavier one for the acknowledgements that the first nodes of a
    /// membership send: those of node `i` are lost on their first hop with `rate * (1 + (nodes - i) / 2)`. Low
    /// numbers become unhealthy, as in the thesis.
    BiasedAcks {
        /// Probability of loss of all else.
        rate: f64,
        /// How many nodes are biased.
        nodes: u32,
    },
    /// A coin for each hop, weighted by who sends and who receives.
    PerNode {
        /// Probability of loss between nodes not listed.
        rate: f64,
        /// The exceptions.
        nodes: Vec<NodeLoss>,
    },
    /// A coin for each hop, weighted by the directed link.
    PerLink {
        /// Probability of loss on links not listed.
        rate: f64,
        /// The exceptions.
        links: Vec<LinkLoss>,
    },
}

/// How badly one node sends and hears. Both coins are tossed, besides the general one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeLoss {
    /// The node.
    pub node: u32,
    /// Probability that what it sends is lost.
    pub outbound: f64,
    /// Probability that what it should hear is lost.
    pub inbound: f64,
}

/// How badly one direction of one link works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkLoss {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Probability of loss in this direction, instead of the general one.
    pub rate: f64,
}

/// Which path a message takes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Routing {
    /// Fewest hops; among equals the one through smaller node numbers.
    #[default]
    Hops,
    /// Least sum of link lengths.
    Length,
    /// None: nobody passes anything on, and only neighbours reach each other.
    None,
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
    pub every: Option<Duration>,
    /// No repetition at or after this instant; `None` for the whole run.
    pub until: Option<Duration>,
    /// What.
    pub kind: FaultKind,
}

impl Fault {
    /// How often it happens in a run of this length. A run covers `[0, duration)`.
    pub fn times(&self, duration: Duration) -> u64 {
        let end = self.until.map_or(duration, |until| until.min(duration));
        let span = end.saturating_sub(self.at).as_micros();
        match self.every {
            None => 1,
            Some(every) => span.div_ceil(every.as_micros().max(1)),
        }
    }
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
        /// How many.
        count: u32,
    },
    /// Live nodes freeze: nothing is handled, datagrams pile up to `buffer` (the oldest are kept),
    /// and all of it is handled at the end.
    Pause {
        /// Which nodes.
        who: Who,
        /// For how long.
        length: Duration,
        /// Datagrams kept for each.
        buffer: u32,
    },
    /// Live nodes get too little of something: for a while each is held up and runs by turns, the first
    /// time after a random part of a turn; what comes meanwhile waits as in [`Pause`](Self::Pause).
    Starve {
        /// Which nodes.
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
        /// Which nodes.
        who: Who,
        /// How far at most, in the placement's unit.
        distance: f64,
        /// Where to.
        law: MoveLaw,
        /// What the nodes learn of it.
        distances: Distances,
    },
    /// Clocks of live nodes run fast or slow from now on.
    Drift {
        /// Whose.
        who: Who,
        /// Parts per million; negative is slow.
        ppm: i32,
    },
    /// For a while, the disks of live nodes keep nothing new. Whoever persists something meanwhile is told, or
    /// crashes if it cannot be.
    Disk {
        /// Which nodes.
        who: Who,
        /// For how long.
        length: Duration,
    },
    /// Copies of the disks of live nodes are started elsewhere, each as the next life of its node, to which all
    /// goes from now on that is sent to it. The earlier lives run on and talk from the same places, until they
    /// hear of the later ones from somebody who has heard those.
    Clone {
        /// Which nodes.
        who: Who,
    },
    /// Nodes of the start are not there before an instant, and start then as all do at the beginning. From the
    /// start, whatever [`Fault::at`] says.
    Late {
        /// Which nodes.
        who: Who,
        /// From the start of the run.
        until: Duration,
    },
    /// For a while, the disks of live nodes take their time over what they are to keep, and are done with it at the end.
    /// Whoever persists something meanwhile is told; who cannot be told has a disk that takes no time. A disk that takes
    /// longer than the fault lasts hangs.
    SlowDisk {
        /// Which nodes.
        who: Who,
        /// Every write takes up to this long.
        by: Duration,
        /// For how long.
        length: Duration,
    },
    /// Live nodes, of those that the agent ships, hand over what they lead.
    Resign(Who),
}

/// Where a node that moves by up to some distance ends up. Nobody leaves the field.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum MoveLaw {
    /// In a random direction, uniform up to the distance or the edge.
    #[default]
    Polar,
    /// Anywhere alike in the square of twice the distance around it, as far as that is in the field.
    Box,
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
    /// Exactly these.
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

/// What a node finds when it starts again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// All it had persisted.
    Kept,
    /// Nothing; only its boot number still grows.
    Lost,
}
