//! Elections: who leads.

pub mod announce;
pub mod churn_tolerant;
