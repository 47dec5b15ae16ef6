//! Commands to run when something happens.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use bellwether_proto::{Duration, node::check_name};
use bellwether_settings::{Field, Result, error::similar, field::NAMES};
use rustix::process::geteuid;

use super::Election;
use crate::{status::EventKind, trust};

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
    /// As whom it runs; `None` is as the agent.
    pub user: Option<User>,
}

/// A user of this machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct User {
    /// As in `/etc/passwd`.
    pub name: String,
    /// The number of the user.
    pub id: u32,
    /// The number of its first group. Hooks are in no other.
    pub group: u32,
    /// The user's home directory.
    pub home: PathBuf,
}

impl User {
    /// The user of this name in the text of a password file.
    fn find(name: &str, passwords: &str) -> Option<Self> {
        passwords.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [called, _, id, group, _, home, _] = fields[..] else { return None };
            let (id, group) = (id.parse().ok()?, group.parse().ok()?);
            let user = || Self { name: name.to_owned(), id, group, home: PathBuf::from(home) };
            (called == name).then(user)
        })
    }
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
    let command = section.require("command", "[\"/path/to/program\", \"argument\"]")?;
    let events = section.take("events");
    let election = section.take("election");
    let timeout = section.or("timeout", TIMEOUT, Field::wait)?;
    let reconcile = section.take("reconcile");
    let user = section.take("user").map(|field| user(&field)).transpose()?;
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
    let (name, reconcile) = (name.to_owned(), repeated);
    Ok(Hook { name, events, election, command, timeout, reconcile, user })
}

fn user(field: &Field<'_>) -> Result<User> {
    let name = field.text()?;
    let passwords = fs::read_to_string(PASSWORDS).unwrap_or_default();
    let Some(user) = User::find(name, &passwords) else {
        let error = field.error("is no user of this machine");
        return Err(error.with_allowed(format!("a name in {PASSWORDS}")));
    };
    let own = geteuid();
    if !own.is_root() && own.as_raw() != user.id {
        let own = own.as_raw();
        let problem = format!(
            "is somebody else, and only root may run a hook as another: this is user {own}"
        );
        return Err(field
            .error(problem)
            .with_allowed("an agent that runs as root, or no such key"));
    }
    Ok(user)
}

/// Program and arguments, of which the program must be there and not be somebody else's to change.
pub(super) fn program(field: &Field<'_>) -> Result<Vec<String>> {
    let example = "a list: [\"/path/to/program\", \"argument\"]; no shell reads it";
    let items = field.list().map_err(|error| error.with_allowed(example))?;
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
    check_program(first, Path::new(&words[0]))?;
    Ok(words)
}

/// A program must be there and not be somebody else's to change.
pub(super) fn check_program(field: &Field<'_>, path: &Path) -> Result<()> {
    if !path.is_absolute() {
        let error = field.error("is not an absolute path");
        return Err(error.with_allowed("a path that begins with /"));
    }
    let meta = fs::metadata(path).map_err(|error| {
        let problem = match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist".to_owned(),
            _ => format!("cannot be looked at: {error}"),
        };
        field.error(problem).with_allowed("a program on this machine").caused_by(error)
    })?;
    let mode = meta.permissions().mode() & 0o7777;
    if !meta.is_file() || mode & 0o111 == 0 {
        let error = field.error("is not a program: it may not be executed");
        return Err(error.with_allowed("a file with mode 0755 or 0700"));
    }
    trust::walk(path).map_err(|distrust| {
        let error = field.error(format!("cannot be relied on: {distrust}"));
        error.with_allowed("a path of which every part is root's or the agent's own to change")
    })
}

fn kinds(field: &Field<'_>) -> Result<Vec<EventKind>> {
    let items = field.one_or_more()?;
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

pub(crate) const EVENTS: [(&str, EventKind); 23] = [
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
    ("same-name", EventKind::SameName),
    ("versions-differ", EventKind::VersionsDiffer),
    ("table-filling", EventKind::TableFilling),
    ("duplicate-identity", EventKind::DuplicateIdentity),
    ("stalled", EventKind::Stalled),
    ("disk-refused", EventKind::DiskRefused),
    ("disk-recovered", EventKind::DiskRecovered),
    ("record-ended", EventKind::RecordEnded),
    ("join-failed", EventKind::JoinFailed),
    ("join-found", EventKind::JoinFound),
    ("address-differs", EventKind::AddressDiffers),
];
const PASSWORDS: &str = "/etc/passwd";
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most hooks of one agent. Arbitrary: they run one at a time.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let text =
            "root:x:0:0:root:/root:/bin/sh\nbroken:x:1\nweb:x:33:34:,,,:/srv/web:/bin/false\n";
        let web = User { name: "web".to_owned(), id: 33, group: 34, home: "/srv/web".into() };
        assert_eq!(User::find("web", text), Some(web));
        for nobody in ["we", "broken", "", "web:x"] {
            assert_eq!(User::find(nobody, text), None, "{nobody:?}");
        }
    }

    #[test]
    fn events_are_called_here_as_in_answers() {
        for (name, kind) in EVENTS {
            assert_eq!(serde_json::to_value(kind).unwrap(), name);
        }
    }
}
