//! Elections: who leads.

pub mod announce;
pub mod churn_tolerant;
pub mod leased;
