//! Reading the keys that members of a ring own.

use bellwether_proto::{keys, membership::ring::Config};

use bellwether_settings::{Field, Reader, Result, Section};

use super::{super::Protocol, refused, ring};

/// `[keys]`, and the `[membership] kind = "ring"` that owns them.
pub(super) fn keys<'a>(owned: &Field<'a>, root: &mut Section<'a>, nodes: u32) -> Result<Protocol> {
    let Some(below) = root.take("membership") else {
        let error = owned.error_unquoted("has no ring whose members could own them");
        return Err(error.with_allowed("[membership] with kind = \"ring\" beside it"));
    };
    if let Some(other) = root.take("election") {
        let problem = format!("has no place beside the [keys] at {}", owned.place());
        let allowed = "no [election] (--set election=none), or no [keys] (--set keys=none)";
        return Err(other.error_unquoted(problem).with_allowed(allowed));
    }
    let mut below = below.section()?;
    let read: Reader<'a, u32, Config> = |section, count| ring::ring(section, *count);
    let membership = below.kind(&mut nodes.clone(), &[("ring", read)])?;
    below.end()?;
    let mut section = owned.clone().section()?;
    let mut config = keys::Config::new();
    if let Some(field) = section.take("slots") {
        let slots = field.integer(1..=keys::MOST_SLOTS)?;
        config = config.with_slots(slots).map_err(|error| refused(&section, error))?;
    }
    if let Some(field) = section.take("keepers") {
        let keepers = field.integer(1..=keys::MOST_KEEPERS as u32)? as usize;
        config = config.with_keepers(keepers).map_err(|error| refused(&section, error))?;
    }
    section.end()?;
    Ok(Protocol::Keys { membership, keys: config })
}
