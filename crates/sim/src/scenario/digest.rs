//! What a scenario is known by: a digest of its values.
//!
//! Results are kept by it, so it must not change with what things are called: nothing here takes in a name of a type, a
//! field or a variant. Most of a scenario derives `Hash`; below is what cannot, since it holds floating-point numbers or
//! lists of whole ones. Every field is taken apart by name, so that a new one is not forgotten.

use std::{
    hash::{Hash, Hasher},
    mem,
};

use bellwether_proto::{hash::Real, node::Settings};

use super::{
    Cluster, Every, FaultKind, LinkLoss, Loss, Mobility, NodeLoss, NodeSettings, Placement,
    Protocol, Roles, Scenario, SharedMovement, SharedTrace, Who, Wifi,
};
use crate::{
    engine::{Each, TraceHash},
    world::mobility,
};

impl Scenario {
    /// A digest of all that decides a run besides the seed; the name does not.
    pub fn digest(&self) -> TraceHash {
        let mut digest = TraceHash::new();
        let Self { name: _, duration, until, network, protocol, faults } = self;
        digest.fold_value(&(duration, until, network, protocol, faults));
        digest
    }
}

impl Hash for Roles {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { attributes, observers, survey } = self;
        (Each(attributes), Each(observers), survey).hash(state);
    }
}

impl Hash for Protocol {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Ping(config) => config.hash(state),
            Self::Medley(config) => config.hash(state),
            Self::Announce(settings) => settings.hash(state),
            Self::Several(config) => config.hash(state),
            Self::Sup(config) => config.hash(state),
            Self::Al(config) => config.hash(state),
            Self::SupAl(config) => config.hash(state),
            Self::Bandit(settings) => settings.hash(state),
            Self::Central(config) => config.hash(state),
            Self::ChurnTolerant { membership, election, roles } => {
                (membership, election, roles).hash(state);
            }
            Self::Ring(config) => config.hash(state),
            Self::Leased { membership, election, witnesses } => {
                (membership, election, Each(witnesses)).hash(state);
            }
            Self::OnLists { lists, election } => (lists, election).hash(state),
            Self::Node(settings) => settings.hash(state),
            Self::Keys { membership, keys } => (membership, keys).hash(state),
        }
    }
}

impl Hash for NodeSettings {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { common, names, others, aged, upgrading } = self;
        let by_value = |settings: &Settings, state: &mut H| {
            let Settings { about, addresses, timing, exponent, feedback, elections } = settings;
            (about, addresses, timing, exponent.map(Real), feedback, elections).hash(state);
        };
        by_value(common, state);
        // Nodes that nobody names hash as they did before any could be named.
        for (node, name) in names {
            (node, "named", name).hash(state);
        }
        for (node, other) in others {
            node.hash(state);
            by_value(other, state);
        }
        for (node, age) in aged {
            (node, "aged", age).hash(state);
        }
        // What all were before there was more than one version hashes as it did.
        if *upgrading {
            "upgrading".hash(state);
        }
    }
}

impl Hash for SharedTrace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bytes().hash(state);
    }
}

impl Hash for Placement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Mesh | Self::Ring | Self::Star => {}
            Self::Edges(edges) => edges.hash(state),
            Self::Grid { side, range } | Self::Field { side, range } => {
                (Real(*side), Real(*range)).hash(state);
            }
            Self::Random { side, range, robust } => {
                (Real(*side), Real(*range), robust).hash(state);
            }
            Self::Cluster { clusters, range, robust } => {
                (clusters, Real(*range), robust).hash(state);
            }
            Self::Positions { at, range } => {
                at.iter().for_each(|&place| reals(place).hash(state));
                Real(*range).hash(state);
            }
        }
    }
}

impl Hash for Cluster {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let &Self { x, y, nodes } = self;
        ([x.0, x.1, y.0, y.1].map(Real), nodes).hash(state);
    }
}

impl Hash for Loss {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::None => {}
            Self::Independent { rate } | Self::Correlated { rate } => Real(*rate).hash(state),
            Self::BiasedAcks { rate, nodes } => (Real(*rate), nodes).hash(state),
            Self::PerNode { rate, nodes } => (Real(*rate), nodes).hash(state),
            Self::PerLink { rate, links } => (Real(*rate), links).hash(state),
        }
    }
}

impl Hash for NodeLoss {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { node, outbound, inbound } = self;
        (node, Real(*outbound), Real(*inbound)).hash(state);
    }
}

impl Hash for LinkLoss {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { from, to, rate } = self;
        (from, to, Real(*rate)).hash(state);
    }
}

impl Hash for Every {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            // As it did when there was nothing else.
            Self::Regular(every) => every.hash(state),
            Self::Poisson(mean) => ("poisson", mean).hash(state),
        }
    }
}

impl Hash for FaultKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Crash(who)
            | Self::Elect(who)
            | Self::Resign(who)
            | Self::Leave(who)
            | Self::Isolate(who) => {
                who.hash(state);
            }
            Self::Recover { who, state: found } => (who, found).hash(state),
            Self::Join { count } => count.hash(state),
            Self::Pause { who, length, buffer } => (who, length, buffer).hash(state),
            Self::Starve { who, of, blocked, running, length, buffer } => {
                (who, of, blocked, running, length, buffer).hash(state);
            }
            Self::Disk { who, length } => (who, length).hash(state),
            Self::SlowDisk { who, by, length } => (who, by, length).hash(state),
            Self::Clone { who } => who.hash(state),
            Self::Late { who, until } => (who, until).hash(state),
            Self::Partition(groups) => {
                let groups: Vec<_> = groups.iter().map(|group| Each(group)).collect();
                groups.hash(state);
            }
            Self::Cut { from, to, both, length } => (from, to, both, length).hash(state),
            Self::Heal => {}
            Self::Loss { rate, length } => (Real(*rate), length).hash(state),
            Self::Duplicate { rate, by, length } | Self::Reorder { rate, by, length } => {
                (Real(*rate), by, length).hash(state);
            }
            Self::Move { who, distance, law, distances } => {
                (who, Real(*distance), law, distances).hash(state);
            }
            Self::Delay { by, length } => (by, length).hash(state),
            Self::Place { node, at } => (node, reals(*at)).hash(state),
            Self::Drift { who, ppm } => (who, ppm).hash(state),
        }
    }
}

impl Hash for Who {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Nodes(nodes) => Each(nodes).hash(state),
            Self::Count(count) => count.hash(state),
            Self::Fraction(fraction) => Real(*fraction).hash(state),
            Self::Leader | Self::AnyCluster | Self::All => {}
            Self::Cluster(cluster) => cluster.hash(state),
            Self::LeavingConnected(who) => who.hash(state),
        }
    }
}

impl Hash for Mobility {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Still => {}
            Self::RandomWaypoint { speed, pause } => (reals(*speed), pause).hash(state),
            Self::PointOfInterest { speed, pause, spacing } => {
                (reals(*speed), pause, Real(*spacing)).hash(state);
            }
            Self::RandomWalk { speed, pause, leg } => (reals(*speed), pause, leg).hash(state),
            Self::LevyWalk(profile) => profile.hash(state),
            Self::Trace(movement) => movement.hash(state),
        }
    }
}

impl Hash for SharedMovement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mobility::to_text(&self.0).hash(state);
    }
}

impl Hash for Wifi {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { interference, queue } = self;
        (Real(*interference), queue).hash(state);
    }
}

fn reals((low, high): (f64, f64)) -> (Real, Real) {
    (Real(low), Real(high))
}
