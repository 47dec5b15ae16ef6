//! The world as data: where nodes are, how they move, how messages travel and which are lost.

use std::{fmt, sync::Arc};

use bellwether_proto::Duration;

use super::mobility::Movement;

/// Where the nodes are and how messages travel.
#[derive(Clone, Debug, Hash, PartialEq)]
pub struct NetworkSettings {
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

impl NetworkSettings {
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
    /// Exactly here, connected or not.
    Positions {
        /// Where each node is.
        at: Vec<(f64, f64)>,
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
            | Self::Field { range, .. }
            | Self::Positions { range, .. } => Some(range),
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
    /// How many nodes are inside.
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
        /// The shortest delay there is.
        low: Duration,
        /// The longest delay there is.
        high: Duration,
    },
    /// A Poisson number of milliseconds.
    Poisson {
        /// The mean of the delays.
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
    /// No message is lost.
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
        /// The nodes that have other rates.
        nodes: Vec<NodeLoss>,
    },
    /// A coin for each hop, weighted by the directed link.
    PerLink {
        /// Probability of loss on links not listed.
        rate: f64,
        /// The links that have other rates.
        links: Vec<LinkLoss>,
    },
}

/// How badly one node sends and hears. Both coins are tossed, besides the general one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeLoss {
    /// The number of the node.
    pub node: u32,
    /// Probability that what it sends is lost.
    pub outbound: f64,
    /// Probability that what it should hear is lost.
    pub inbound: f64,
}

/// How badly one direction of one link works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkLoss {
    /// The node that sends.
    pub from: u32,
    /// The node that should hear.
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

/// Where a node that moves by up to some distance ends up. Nobody leaves the field.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum MoveLaw {
    /// In a random direction, uniform up to the distance or the edge.
    #[default]
    Polar,
    /// Anywhere alike in the square of twice the distance around it, as far as that is in the field.
    Box,
}

/// How nodes move on the square of a [field](Placement::Field). Speeds are in its unit of length a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Mobility {
    /// Nobody moves at all.
    #[default]
    Still,
    /// Everybody goes straight to a random point, rests there, and goes on to the next.
    RandomWaypoint {
        /// Slowest and fastest.
        speed: (f64, f64),
        /// How long it rests.
        pause: Duration,
    },
    /// Everybody stands on one of the rings around the middle, goes to a random point, rests, and comes back; when
    /// all are back they rest and go again.
    PointOfInterest {
        /// Slowest and fastest.
        speed: (f64, f64),
        /// How long each rest is.
        pause: Duration,
        /// Between two rings.
        spacing: f64,
    },
    /// Everybody goes in a random direction, thrown back by the walls, and rests.
    RandomWalk {
        /// Slowest and fastest.
        speed: (f64, f64),
        /// How long it rests.
        pause: Duration,
        /// How long it goes in one direction.
        leg: Duration,
    },
    /// Flights and pauses with heavy tails.
    LevyWalk(LevyProfile),
    /// As a file says.
    Trace(SharedMovement),
}

/// What is done with Lévy walkers at the walls, and how often their places are written down.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LevyProfile {
    /// Who leaves on one side returns on the other; places are known once a minute, and gone to straight.
    Published,
    /// Walls throw walkers back, and all of the way counts.
    Clean,
}

/// A movement that scenarios share. Shown as its size, and hashed as it is written to a file.
#[derive(Clone, PartialEq)]
pub struct SharedMovement(pub Arc<Movement>);

impl fmt::Debug for SharedMovement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Movement({} nodes)", self.0.nodes())
    }
}

/// What the air does to messages.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq)]
pub enum Radio {
    /// Nothing but what `delay` and `loss` say.
    #[default]
    Ideal,
    /// One hop of 802.11 without acknowledgements: senders wait for silence, frames collide.
    Wifi(Wifi),
}

/// The settings of a [radio](super::radio).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wifi {
    /// How far a transmission is noticed and disturbs others, in radio ranges.
    pub interference: f64,
    /// Frames that wait in a node at most; more are dropped.
    pub queue: u32,
}

impl Default for Wifi {
    fn default() -> Self {
        Self { interference: 1.0, queue: 100 }
    }
}
