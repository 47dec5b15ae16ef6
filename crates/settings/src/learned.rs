//! Settings of learned elections.

use bellwether_proto::{
    election::bandit::MAX_MEMBERS,
    node::{LearnedSettings, Policy, Timing},
};

use crate::{
    field::{Field, Result, Section},
    host::{Host, listed},
};

pub(crate) fn read(
    section: &mut Section<'_>,
    timing: &Timing,
    host: Host<'_>,
) -> Result<LearnedSettings> {
    let most = (MAX_MEMBERS, "voters, best an odd number");
    let (field, voters) = listed(section, "voters", most, host)?;
    if let (Host::Agent { name, keeps: false }, Some(field)) = (host, &field)
        && voters.iter().any(|voter| voter == name)
    {
        let error = field.error_unquoted(
            "names this node, which, without a data_dir, would forget how it has voted when it restarts",
        );
        return Err(error.with_allowed("data_dir = \"/var/lib/bellwether\", or --data-dir"));
    }
    let default = LearnedSettings::of(voters);
    let lease = section.take("lease");
    let learned = LearnedSettings {
        policy: section.or("policy", default.policy, |field| field.choice(&Policy::ALL))?,
        lease: lease.as_ref().map(Field::wait).transpose()?,
        sample: section.take("sample").as_ref().map(Field::wait).transpose()?,
        memory: section.or("memory", default.memory, |field| {
            field.integer(1..=1000).map(|samples| u16::try_from(samples).unwrap_or(u16::MAX))
        })?,
        tenure: section.or("tenure", default.tenure, Field::wait)?,
        margin: section.or("margin", default.margin, |field| field.integer(0..=100))?,
        ..default
    };
    let ack = timing.ack;
    if let Some(field) = lease.filter(|_| learned.lease(timing) <= ack * 4) {
        let problem = format!(
            "must be longer than four times the ack of {ack}, or one late answer would depose a leader"
        );
        return Err(field.error(problem).with_allowed("a longer lease, or a shorter timing.ack"));
    }
    Ok(learned)
}
