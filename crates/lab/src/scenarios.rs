//! The scenarios that experiments start from, as files of their own; cells change what they vary.
//!
//! They are part of the crate, so that a binary has them and a package does.

pub(crate) const ANNOUNCE_AL: &str = include_str!("../scenarios/announce-al.toml");
pub(crate) const ANNOUNCE_COLD: &str = include_str!("../scenarios/announce-cold.toml");
pub(crate) const ANNOUNCE_SETTLED: &str = include_str!("../scenarios/announce-settled.toml");
pub(crate) const ANNOUNCE_SEVERAL: &str = include_str!("../scenarios/announce-several.toml");
pub(crate) const ANNOUNCE_SUP: &str = include_str!("../scenarios/announce-sup.toml");
pub(crate) const ANNOUNCE_SUP_AL: &str = include_str!("../scenarios/announce-sup-al.toml");
pub(crate) const BANDIT_BESIDE: &str = include_str!("../scenarios/bandit-beside.toml");
pub(crate) const BANDIT_CRASH: &str = include_str!("../scenarios/bandit-crash.toml");
pub(crate) const BANDIT_REPORT: &str = include_str!("../scenarios/bandit-report.toml");
pub(crate) const CENTRAL_FIELD: &str = include_str!("../scenarios/central-field.toml");
pub(crate) const CENTRAL_WIFI: &str = include_str!("../scenarios/central-wifi.toml");
pub(crate) const CHURN_TOLERANT_FIELD: &str =
    include_str!("../scenarios/churn-tolerant-field.toml");
pub(crate) const CHURN_TOLERANT_LISTS: &str =
    include_str!("../scenarios/churn-tolerant-lists.toml");
pub(crate) const MEDLEY_BAGS: &str = include_str!("../scenarios/medley-bags.toml");
pub(crate) const MEDLEY_FIELD: &str = include_str!("../scenarios/medley-field.toml");
pub(crate) const MEDLEY_SWIM: &str = include_str!("../scenarios/medley-swim.toml");
pub(crate) const MEDLEY_TROUBLE: &str = include_str!("../scenarios/medley-trouble.toml");
pub(crate) const RING: &str = include_str!("../scenarios/ring.toml");
pub(crate) const RING_LEADER: &str = include_str!("../scenarios/ring-leader.toml");
