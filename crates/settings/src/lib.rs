//! How settings and scenarios are read, once for the agent and for the simulator.
//!
//! | module | holds |
//! |---|---|
//! | [`tree`] | files, variables and flags laid over each other; every value knows where it came from |
//! | [`field`] | taking the tree apart: a table key by key, a value as what it should be |
//! | [`error`] | what is wrong, where, and what is allowed |
//! | [`mod@file`] | files that somebody else has written |
//! | [`host`] | for whom they are read |
//! | [`node`], [`election`], [`timing`] | what decides who leads: the part of an agent's settings that a scenario takes as `[node]` |

pub use self::{
    error::{Place, SettingsError},
    field::{Field, Reader, Result, Section},
    tree::Tree,
};

mod central;
pub mod election;
pub mod error;
pub mod field;
pub mod file;
pub mod host;
mod learned;
mod leased;
pub mod node;
mod print;
pub mod timing;
pub mod tree;
