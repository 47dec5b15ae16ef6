//! Where nodes are, how they move and fail, and how messages travel between them.

pub mod client;
pub mod environment;
pub mod mobility;
mod network;
pub mod radio;
mod settings;

pub(crate) use self::network::{ATTEMPTS, displace, parts, put, within};
pub use self::{
    network::{Arrival, Disconnected, Network, Placed, Travel, Trouble, place},
    settings::{
        Cluster, Delay, DelayLaw, LevyProfile, LinkLoss, Loss, Mobility, MoveLaw, NetworkSettings,
        NodeLoss, Per, Placement, Radio, Routing, SharedMovement, Wifi,
    },
};
