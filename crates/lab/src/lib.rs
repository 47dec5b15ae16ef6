//! The lab: the papers' experiments as sweeps of scenarios, their claims with verdicts, their figures.
//!
//! An [`Experiment`](experiment::Experiment) is data: cells (scenarios with overrides, or a
//! [`Computation`](computation::Computation), and a number of runs), claims, figures. [`runner`] runs what is not in the [`store`] yet; [`report`] writes one page about all of
//! it. [`analysis`] holds the closed forms that measurements are compared with.

pub mod analysis;
pub mod claim;
pub mod computation;
pub mod estimate;
pub mod experiment;
pub mod experiments;
pub mod figure;
pub mod measure;
pub mod report;
pub mod runner;
mod scenarios;
pub mod store;
pub mod table;
