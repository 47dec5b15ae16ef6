//! Closed forms from the papers, corrected where they were wrong.

pub mod announce;
pub mod churn;
