//! The lab: what the papers' analysis says, beside what the simulator measures.
//!
//! [`analysis`] holds closed forms; experiments that compare them with runs will stand beside it.

pub mod analysis;
