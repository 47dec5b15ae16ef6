//! Settings of learned elections.

use bellwether_proto::{
    election::bandit::MAX_MEMBERS,
    node::{LearnedSettings, Policy, TENURE, check_name},
};

use super::{
    Config,
    field::{Field, NAMES, Result, Section},
};

pub(super) fn read(section: &mut Section<'_>, config: &Config) -> Result<LearnedSettings> {
    for key in ["variant", "c", "f", "on_isolation", "criterion", "priority"] {
        if let Some(field) = section.take(key) {
            let error = field.error("means nothing in a learned election");
            let allowed = "voters, role, policy, lease, sample, memory, tenure and margin";
            return Err(error.with_allowed(allowed));
        }
    }
    let field = section.require("voters", VOTERS)?;
    let voters = voters(&field)?;
    if voters.contains(&config.name) && config.data_dir.is_none() {
        let error = field.error_unquoted(
            "names this node, which, without a data_dir, would forget how it has voted when it restarts",
        );
        return Err(error.with_allowed("data_dir = \"/var/lib/bellwether\", or --data-dir"));
    }
    let lease = section.take("lease");
    let learned = LearnedSettings {
        voters,
        policy: section.or("policy", Policy::default(), |field| field.choice(&Policy::ALL))?,
        lease: lease.as_ref().map(Field::duration).transpose()?,
        sample: section.take("sample").map(|field| field.duration()).transpose()?,
        memory: section.or("memory", MEMORY, |field| {
            field.integer(1..=1000).map(|samples| u16::try_from(samples).unwrap_or(MEMORY))
        })?,
        tenure: section.or("tenure", TENURE, Field::duration)?,
        margin: section.or("margin", MARGIN, |field| field.integer(0..=100))?,
    };
    let ack = config.timing.ack;
    if let Some(field) = lease.filter(|_| learned.lease(&config.timing) <= ack * 4) {
        let problem = format!(
            "must be longer than four times the ack of {ack}, or one late answer would depose a leader"
        );
        return Err(field.error(problem).with_allowed("a longer lease, or a shorter timing.ack"));
    }
    Ok(learned)
}

fn voters(field: &Field<'_>) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let items = field.strict_list(VOTERS)?;
    for item in &items {
        let name = item.text()?;
        if let Err(problem) = check_name(name) {
            return Err(item.error(problem).with_allowed(NAMES));
        }
        if found.iter().any(|known| known == name) {
            let error = item.error("is there twice, and would have two votes");
            return Err(error.with_allowed("each name once"));
        }
        found.push(name.to_owned());
    }
    if found.is_empty() || found.len() > MAX_MEMBERS {
        let error = field.error_unquoted(format!("has {} entries", found.len()));
        return Err(
            error.with_allowed(format!("from 1 to {MAX_MEMBERS} names, best an odd number"))
        );
    }
    found.sort_unstable();
    Ok(found)
}

const VOTERS: &str =
    "voters = [\"cellar\", \"kitchen\", \"roof\"]: names, the same list on every node";
const MEMORY: u16 = 50;
/// A fifth: far above what one sample does to a score that stands on many.
const MARGIN: u32 = 20;
