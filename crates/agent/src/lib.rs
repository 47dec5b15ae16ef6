//! The agent: real nodes and real packets around the machines of [`bellwether_proto`].
//!
//! This crate will hold the host that runs on a device: one task that owns the machine, a socket, the
//! boot-time clock, durable state, the HTTP interface, hooks and the dashboard. It keeps the host's side of
//! the contract in [`bellwether_proto::machine`], like the simulator, and knows nothing of the simulator.
