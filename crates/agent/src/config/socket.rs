//! Where those on the same machine ask, and who they may be.

use std::{fs, path::PathBuf};

use bellwether_settings::{Field, Result};

/// Where those on the same machine ask.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Socket {
    /// Only where everybody does.
    #[default]
    Nowhere,
    /// Where the command line looks for it (`usual_sockets`).
    Usual,
    /// A socket at this path.
    At(PathBuf),
}

/// A group of this machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Group {
    /// As in `/etc/group`.
    pub name: String,
    /// The number of the group.
    pub id: u32,
}

impl Socket {
    pub(super) fn read(field: &Field<'_>) -> Result<Self> {
        match field.text()? {
            "none" => Ok(Self::Nowhere),
            _ => super::path(field).map(Self::At),
        }
    }

    /// As it would be written in a file, but for the default.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Nowhere => "\"none\"".to_owned(),
            Self::Usual => "(the usual place)".to_owned(),
            Self::At(path) => format!("{:?}", path.display().to_string()),
        }
    }
}

impl Group {
    pub(super) fn read(field: &Field<'_>) -> Result<Self> {
        let groups = fs::read_to_string(GROUPS).unwrap_or_default();
        Self::find(field.text()?, &groups).ok_or_else(|| {
            let error = field.error("is no group of this machine");
            error.with_allowed(format!("a name in {GROUPS}"))
        })
    }

    /// The group of this name in the text of a group file.
    fn find(name: &str, groups: &str) -> Option<Self> {
        groups.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (called, _, id) = (fields.next()?, fields.next()?, fields.next()?);
            let id = id.parse().ok()?;
            (called == name).then(|| Self { name: name.to_owned(), id })
        })
    }
}

const GROUPS: &str = "/etc/group";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_their_whole_name() {
        let text = "root:x:0:\nbroken\nops:x:100:anna,bert\n";
        assert_eq!(Group::find("ops", text), Some(Group { name: "ops".to_owned(), id: 100 }));
        for none in ["op", "broken", "", "ops:x", "anna"] {
            assert_eq!(Group::find(none, text), None, "{none:?}");
        }
    }
}
