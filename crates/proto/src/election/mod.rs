//! Elections: who leads.

pub mod announce;
pub mod bandit;
pub mod central;
pub mod churn_tolerant;
pub mod leased;
