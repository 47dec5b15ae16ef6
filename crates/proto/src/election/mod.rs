//! Elections: who leads.
