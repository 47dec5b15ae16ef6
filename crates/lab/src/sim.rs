//! What the lab takes from the simulator.

pub(crate) use bellwether_sim::{
    arbitrating, centring, conformance, environment, explore, flips, inconsistency, log,
    membership_trace, metric, network, run, scenario, serving, trace, world,
};
