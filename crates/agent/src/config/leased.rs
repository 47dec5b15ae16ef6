//! Settings of leased elections.

use bellwether_proto::{
    election::leased::Flavour,
    node::{Keeping, LEARNED_MARGIN, LeasedSettings, Role, TENURE, check_name},
};

use super::{
    Config,
    field::{Field, NAMES, Result, Section},
};

/// As it is written.
pub(super) fn flavour_name(flavour: Flavour) -> &'static str {
    FLAVOURS.iter().find(|(_, known)| *known == flavour).map_or("quorum", |one| one.0)
}

pub(super) fn role(field: &Field<'_>) -> Result<Role> {
    if let Ok("observer") = field.text() {
        let error =
            field.error("is for other modes: nobody outside a leased election learns of it");
        return Err(
            error.with_allowed("\"candidate\", or \"witness\", which votes and never leads")
        );
    }
    field.choice(&[("candidate", Role::Candidate), ("witness", Role::Witness)])
}

pub(super) fn read(section: &mut Section<'_>, config: &Config) -> Result<LeasedSettings> {
    for key in ["priority", "variant", "c", "f", "on_isolation"] {
        if let Some(field) = section.take(key) {
            let error = field.error("means nothing in a leased election");
            let allowed = "role, members, flavour, drift and criterion, or mode = \"eventual\"";
            return Err(error.with_allowed(allowed));
        }
    }
    let field = section.require("members", MEMBERS)?;
    let members = members(&field, config)?;
    if config.data_dir.is_none() {
        let error = field.error_unquoted(
            "names members of a leased election, and this node, without a data_dir, would forget \
             what it has promised when it restarts",
        );
        return Err(error.with_allowed("data_dir = \"/var/lib/bellwether\", or --data-dir"));
    }
    let flavour = section.or("flavour", Flavour::Quorum, |field| field.choice(&FLAVOURS))?;
    let drift = section.or("drift", DRIFT, |field| field.integer(1..=MOST_DRIFT))?;
    let learned = learned(section, flavour)?;
    Ok(LeasedSettings { members, flavour, drift, learned })
}

fn learned(section: &mut Section<'_>, flavour: Flavour) -> Result<Option<Keeping>> {
    let criterion = section.take("criterion");
    let choices = [("hash", false), ("learned", true)];
    if !criterion.as_ref().map_or(Ok(false), |field| field.choice(&choices))? {
        for key in ["tenure", "margin"] {
            if let Some(field) = section.take(key) {
                let error = field.error("is about records, and a hash decides who comes first");
                return Err(error.with_allowed("criterion = \"learned\""));
            }
        }
        return Ok(None);
    }
    if let Some(field) = criterion.filter(|_| flavour != Flavour::Quorum) {
        let error = field.error(
            "needs a quorum: by any other flavour two might lead if members differ about records",
        );
        return Err(error.with_allowed("flavour = \"quorum\", or criterion = \"hash\""));
    }
    Ok(Some(Keeping {
        tenure: section.or("tenure", TENURE, Field::duration)?,
        margin: section.or("margin", LEARNED_MARGIN, |field| field.integer(0..=1000))?,
    }))
}

fn members(field: &Field<'_>, config: &Config) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for item in field.strict_list(MEMBERS)? {
        let name = item.text()?;
        if let Err(problem) = check_name(name) {
            return Err(item.error(problem).with_allowed(NAMES));
        }
        if found.iter().any(|other| other == name) {
            let error = item.error("is there twice");
            return Err(error.with_allowed("each member once: a majority is counted by names"));
        }
        found.push(name.to_owned());
    }
    if found.len() > MOST_MEMBERS {
        let error = field.error_unquoted(format!("has {} entries", found.len()));
        let allowed = format!("at most {MOST_MEMBERS} members; each leases from all others");
        return Err(error.with_allowed(allowed));
    }
    if !found.contains(&config.name) {
        let error = field.error_unquoted(format!("does not name this node, {:?}", config.name));
        return Err(error.with_allowed(
            "the names of all members, the same list on every node; or set --name to the name this node has in it",
        ));
    }
    found.sort_unstable();
    Ok(found)
}

const FLAVOURS: [(&str, Flavour); 3] =
    [("quorum", Flavour::Quorum), ("conservative", Flavour::Conservative), ("fast", Flavour::Fast)];
const MEMBERS: &str = "members = [\"a\", \"b\", \"c\"]: the names of all, the same on every node";
/// What the kernel may slew a clock by, on both sides, and a crystal besides.
const DRIFT: u32 = 1_000;
/// A tenth. Beyond that a clock is broken.
const MOST_DRIFT: u32 = 100_000;
/// Lists of all members, old and new, fit a datagram.
const MOST_MEMBERS: usize = 15;
