//! Commands to run when something happens.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use bellwether_proto::{Duration, node::check_name};

use super::{
    Election,
    error::similar,
    field::{Field, NAMES, Result},
};
use crate::status::EventKind;

/// A command to run when something happens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hook {
    /// Its name, for people and metrics.
    pub name: String,
    /// On which events; none means on all.
    pub events: Vec<EventKind>,
    /// In which election; `None` is in all of them.
    pub election: Option<String>,
    /// Program and arguments. No shell reads them.
    pub command: Vec<String>,
    /// For how long it may run before its process group is killed.
    pub timeout: Duration,
    /// Whether it is repeated, with the newest state, until it succeeds.
    pub reconcile: bool,
}

/// All `[hook.NAME]`.
pub(super) fn read(field: Option<Field<'_>>, elections: &[Election]) -> Result<Vec<Hook>> {
    let named = field.map_or(Ok(Vec::new()), Field::named)?;
    if named.len() > MOST {
        let (_, surplus) = &named[MOST];
        let error = surplus.error_unquoted(format!("is hook number {}", MOST + 1));
        return Err(error.with_allowed(format!("at most {MOST} hooks")));
    }
    named.into_iter().map(|(name, field)| one(name, field, elections)).collect()
}

fn one(name: &str, field: Field<'_>, elections: &[Election]) -> Result<Hook> {
    if let Err(problem) = check_name(name) {
        return Err(field.error_unquoted(problem).with_allowed(NAMES));
    }
    let mut section = field.section()?;
    let command = section.require("command", "command = [\"/path/to/program\", \"argument\"]")?;
    let events = section.take("events");
    let election = section.take("election");
    let timeout = section.or("timeout", TIMEOUT, Field::duration)?;
    let reconcile = section.take("reconcile");
    let command = program(&command)?;
    let events = events.map_or(Ok(Vec::new()), |field| kinds(&field))?;
    let election = match election {
        Some(field) => {
            let wanted = field.text()?;
            let names = || elections.iter().map(|election| election.name.as_str());
            if !names().any(|name| name == wanted) {
                let problem = match similar(wanted, names()) {
                    Some(near) => format!("is no election here; did you mean {near:?}?"),
                    None => "is no election here".to_owned(),
                };
                let allowed = names().collect::<Vec<_>>().join(", ");
                return Err(field.error(problem).with_allowed(allowed));
            }
            Some(wanted.to_owned())
        }
        None => None,
    };
    let repeated = reconcile.as_ref().map_or(Ok(false), Field::flag)?;
    if let (true, Some(field)) = (repeated, &reconcile)
        && !events.iter().any(|&kind| is_about_leading(kind))
    {
        let error = field.error("repeats what is wanted now, which only leadership events say");
        return Err(error.with_allowed("events = [\"became-leader\", \"stopped-leading\"]"));
    }
    section.end()?;
    Ok(Hook { name: name.to_owned(), events, election, command, timeout, reconcile: repeated })
}

/// Program and arguments, of which the program must be there and not be somebody else's to change.
pub(super) fn program(field: &Field<'_>) -> Result<Vec<String>> {
    let example = "a list: [\"/path/to/program\", \"argument\"]; no shell reads it";
    let items = field.strict_list(example)?;
    let Some(first) = items.first() else {
        return Err(field.error("names no program").with_allowed(example));
    };
    let words = items.iter().map(|item| {
        let word = item.text()?;
        if word.contains('\0') {
            return Err(item.error("has a zero byte in it").with_allowed("text"));
        }
        Ok(word.to_owned())
    });
    let words = words.collect::<Result<Vec<_>>>()?;
    let path = Path::new(&words[0]);
    if !path.is_absolute() {
        let error = first.error("is not an absolute path");
        return Err(error.with_allowed("a path that begins with /"));
    }
    let meta = fs::metadata(path).map_err(|error| {
        let problem = match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist".to_owned(),
            _ => format!("cannot be looked at: {error}"),
        };
        first.error(problem).with_allowed("a program on this machine").caused_by(error)
    })?;
    let mode = meta.permissions().mode() & 0o7777;
    if !meta.is_file() || mode & 0o111 == 0 {
        let error = first.error("is not a program: it may not be executed");
        return Err(error.with_allowed("a file with mode 0755 or 0700"));
    }
    if mode & 0o022 != 0 {
        let error = first.error(format!("may be changed by others: its mode is {mode:04o}"));
        return Err(error.with_allowed("a file that only its owner may write (chmod go-w)"));
    }
    Ok(words)
}

fn kinds(field: &Field<'_>) -> Result<Vec<EventKind>> {
    let items = field.list()?;
    if items.is_empty() {
        return Err(field.error("names no event").with_allowed("events, or no such key for all"));
    }
    items.iter().map(|item| item.choice(&EVENTS)).collect()
}

/// As events are called everywhere.
pub(crate) fn event_name(kind: EventKind) -> &'static str {
    EVENTS.iter().find(|(_, known)| *known == kind).map_or("unknown", |&(name, _)| name)
}

/// Whether it says if this node leads.
pub(crate) fn is_about_leading(kind: EventKind) -> bool {
    matches!(kind, EventKind::BecameLeader | EventKind::StoppedLeading)
}

pub(crate) const EVENTS: [(&str, EventKind); 17] = [
    ("member-join", EventKind::MemberJoin),
    ("member-suspect", EventKind::MemberSuspect),
    ("member-alive", EventKind::MemberAlive),
    ("member-failed", EventKind::MemberFailed),
    ("member-leave", EventKind::MemberLeave),
    ("member-update", EventKind::MemberUpdate),
    ("leader-elected", EventKind::LeaderElected),
    ("leader-confirmed", EventKind::LeaderConfirmed),
    ("leader-lost", EventKind::LeaderLost),
    ("became-leader", EventKind::BecameLeader),
    ("stopped-leading", EventKind::StoppedLeading),
    ("settings-differ", EventKind::SettingsDiffer),
    ("duplicate-identity", EventKind::DuplicateIdentity),
    ("stalled", EventKind::Stalled),
    ("disk-refused", EventKind::DiskRefused),
    ("disk-recovered", EventKind::DiskRecovered),
    ("record-ended", EventKind::RecordEnded),
];
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most hooks of one agent. Arbitrary: they run one at a time.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_called_here_as_in_answers() {
        for (name, kind) in EVENTS {
            assert_eq!(serde_json::to_value(kind).unwrap(), name);
        }
    }
}
