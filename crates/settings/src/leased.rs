//! Settings of leased elections.

use bellwether_proto::{
    election::leased::Flavour,
    node::{Keeping, LEARNED_MARGIN, LeasedSettings, TENURE},
};

use crate::{
    field::{Field, Result, Section},
    host::{Host, listed},
};

pub(crate) fn read(
    section: &mut Section<'_>,
    learned: bool,
    host: Host<'_>,
) -> Result<LeasedSettings> {
    let most = (MOST_MEMBERS, "members; each leases from all others");
    let (field, members) = listed(section, "members", most, host)?;
    if let (Host::Agent { name, keeps }, Some(field)) = (host, &field) {
        if !members.iter().any(|member| member == name) {
            let error = field.error_unquoted(format!("does not name this node, {name:?}"));
            return Err(error.with_allowed(
                "the names of all members, the same list on every node; or set --name to the name this node has in it",
            ));
        }
        if !keeps {
            let error = field.error_unquoted(
                "names members of a leased election, and this node, without a data_dir, would forget \
                 what it has promised when it restarts",
            );
            return Err(error.with_allowed("data_dir = \"/var/lib/bellwether\", or --data-dir"));
        }
    }
    let flavour = section.or("flavour", Flavour::Quorum, |field| field.choice(&FLAVOURS))?;
    let drift = section.or("drift", DRIFT, |field| field.integer(1..=MOST_DRIFT))?;
    if !learned {
        for key in ["tenure", "margin"] {
            if let Some(field) = section.take(key) {
                let error = field.error("is about records, and a hash decides who comes first");
                return Err(error.with_allowed("criterion = \"learned\""));
            }
        }
        return Ok(LeasedSettings { members, flavour, drift, learned: None });
    }
    if let Some(field) = section.take("criterion").filter(|_| flavour != Flavour::Quorum) {
        let error = field.error(
            "needs a quorum: by any other flavour two might lead if members differ about records",
        );
        return Err(error.with_allowed("flavour = \"quorum\", or criterion = \"hash\""));
    }
    let keeping = Keeping {
        tenure: section.or("tenure", TENURE, Field::wait)?,
        margin: section.or("margin", LEARNED_MARGIN, |field| field.integer(0..=1000))?,
    };
    Ok(LeasedSettings { members, flavour, drift, learned: Some(keeping) })
}

/// What the kernel may slew a clock by, on both sides, and a crystal besides.
const DRIFT: u32 = 1_000;
/// A tenth. Beyond that a clock is broken.
const MOST_DRIFT: u32 = 100_000;
/// Lists of all members, old and new, fit a datagram.
const MOST_MEMBERS: usize = 15;

/// Every flavour of a leased election, as it is written.
pub const FLAVOURS: [(&str, Flavour); 3] =
    [("quorum", Flavour::Quorum), ("conservative", Flavour::Conservative), ("fast", Flavour::Fast)];
