//! What an agent writes down while it runs.
//!
//! Readable at a thousand members: what is about leading has a line of its own, at once; who has come and gone is summed
//! up once a second, what was refused once a minute. Who was suspected, and all else, is in the events.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use crate::{
    clock,
    config::event_name,
    handle::Handle,
    status::{Event, EventKind},
};

/// One line.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Line {
    /// Milliseconds of the wall clock since 1970.
    pub unix_ms: u64,
    /// Whether somebody should look at it.
    pub level: Level,
    /// What it is about: an event's name, or `started`, `not-durable`, `no-socket`, `reload`, `members`, `refused`,
    /// `missed`, `panicked`.
    pub about: &'static str,
    /// In which election, if in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub election: Option<String>,
    /// In words, without line breaks.
    pub message: String,
}

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Form {
    /// For people.
    #[default]
    Text,
    /// One object to a line.
    Json,
    /// Not at all.
    Nothing,
}

impl Form {
    /// As they are written in settings.
    pub const NAMED: [(&'static str, Self); 3] =
        [("text", Self::Text), ("json", Self::Json), ("none", Self::Nothing)];

    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Nothing => "none",
        }
    }
}

/// Whether somebody should look at it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Info,
    /// It should not be so.
    Warning,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
        })
    }
}

impl Line {
    /// A line of now. Nothing in it moves a cursor or looks like another line.
    pub fn new(level: Level, about: &'static str, message: &str) -> Self {
        let message = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { unix_ms: clock::unix_ms(), level, about, election: None, message }
    }

    /// Of one event, if it deserves one.
    fn of(event: &Event) -> Option<Self> {
        let who = event.node.as_ref().map_or("somebody", |node| node.name.as_str());
        let epoch = event.epoch.as_ref().map(|epoch| format!(", epoch {epoch}"));
        let epoch = epoch.unwrap_or_default();
        let why = event.detail.as_deref().unwrap_or_default();
        let (level, words) = match event.event {
            EventKind::LeaderElected => (Level::Info, format!("{who} leads{epoch}: {why}")),
            EventKind::LeaderLost => {
                (Level::Info, format!("nobody is known to lead, after {who}{epoch}"))
            }
            EventKind::BecameLeader => (Level::Info, format!("this node may act{epoch}")),
            EventKind::StoppedLeading => (Level::Info, format!("this node stopped leading{epoch}")),
            EventKind::SettingsDiffer => {
                (Level::Warning, format!("{who} has other settings: {why}"))
            }
            EventKind::SameName | EventKind::TableFilling => (Level::Warning, why.to_owned()),
            EventKind::VersionsDiffer => {
                (Level::Warning, format!("{who} cannot be talked to: {why}"))
            }
            EventKind::DuplicateIdentity => {
                (Level::Warning, format!("{who} runs under the identity of this node, which stops"))
            }
            EventKind::DiskRefused => {
                (Level::Warning, format!("the disk refuses what must be kept: {why}"))
            }
            EventKind::DiskRecovered => {
                (Level::Info, "the disk takes what must be kept".to_owned())
            }
            EventKind::RecordEnded => (Level::Warning, format!("nothing more is recorded: {why}")),
            EventKind::JoinFailed => (Level::Warning, format!("cannot join by {why}")),
            EventKind::JoinFound => (Level::Info, why.to_owned()),
            EventKind::AddressDiffers => (Level::Warning, why.to_owned()),
            EventKind::Stalled => (Level::Warning, format!("this process was stopped {why}")),
            EventKind::MemberJoin
            | EventKind::MemberSuspect
            | EventKind::MemberAlive
            | EventKind::MemberFailed
            | EventKind::MemberLeave
            | EventKind::MemberUpdate
            | EventKind::LeaderConfirmed => return None,
        };
        let message = match &event.election {
            Some(election) => format!("{election}: {words}"),
            None => words,
        };
        let line = Self::new(level, event_name(event.event), &message);
        Some(Self { unix_ms: event.unix_ms, election: event.election.clone(), ..line })
    }
}

/// Who has come and gone since the last line about it.
#[derive(Debug, Default)]
struct Crowd {
    /// What happened last to each, by identity: its name with it.
    members: BTreeMap<String, (EventKind, String)>,
    due: Option<Instant>,
}

impl Crowd {
    fn add(&mut self, event: &Event) {
        let coming = matches!(
            event.event,
            EventKind::MemberJoin | EventKind::MemberFailed | EventKind::MemberLeave
        );
        // A newcomer's name comes with its introduction.
        let named = event.event == EventKind::MemberUpdate;
        let Some(node) = event.node.as_ref().filter(|_| coming || named) else { return };
        match self.members.get_mut(&node.id) {
            Some((_, name)) if named => name.clone_from(&node.name),
            None if named => {}
            _ => {
                self.members.insert(node.id.clone(), (event.event, node.name.clone()));
                self.due.get_or_insert_with(|| Instant::now() + SUMMED);
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        let members = std::mem::take(self).members;
        let mut words = Vec::new();
        for (kind, what) in [
            (EventKind::MemberJoin, "joined"),
            (EventKind::MemberFailed, "failed"),
            (EventKind::MemberLeave, "left"),
        ] {
            let of = members.values().filter(|(happened, _)| *happened == kind);
            let mut names: Vec<&str> = of.map(|(_, name)| name.as_str()).collect();
            names.sort_unstable();
            let more = names.len().saturating_sub(NAMED);
            names.truncate(NAMED);
            if !names.is_empty() {
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                words.push(format!("{what}: {}{more}", names.join(", ")));
            }
        }
        (!words.is_empty()).then(|| Line::new(Level::Info, "members", &words.join("; ")))
    }
}

/// Writes until the agent has stopped. `write` must not block: it is called where the protocol runs.
pub async fn follow(mut handle: Handle, mut write: impl FnMut(Line)) {
    let (mut index, mut crowd) = (0, Crowd::default());
    let mut refused = BTreeMap::new();
    let mut minute = Instant::now() + MINUTE;
    loop {
        let due = crowd.due.unwrap_or(minute).min(minute);
        let woken = tokio::select! {
            woken = handle.wait_after(index) => woken,
            () = sleep_until(due) => Ok(()),
        };
        let (events, missed) = handle.events_after(index);
        if missed {
            write(Line::new(Level::Warning, "missed", "too much happened to write all of it"));
        }
        for event in &events {
            index = event.index;
            match Line::of(event) {
                Some(line) => write(line),
                None => crowd.add(event),
            }
        }
        let now = Instant::now();
        if crowd.due.is_some_and(|due| due <= now) || woken.is_err() {
            crowd.take().into_iter().for_each(&mut write);
        }
        if woken.is_err() {
            return;
        }
        if minute <= now {
            minute = now + MINUTE;
            if let Ok(status) = handle.status().await {
                let dropped = status.counters.dropped.iter();
                let mut counted: BTreeMap<_, _> =
                    dropped.map(|(&reason, &count)| (reason.to_owned(), count)).collect();
                let refusals = handle.refusals();
                counted.extend(
                    refusals.all().map(|(at, reason, count)| (format!("{at}-{reason}"), count)),
                );
                let newly = newly(&mut refused, counted);
                newly.into_iter().for_each(&mut write);
            }
        }
    }
}

/// What has been refused since it was looked at last.
fn newly(before: &mut BTreeMap<String, u64>, now: BTreeMap<String, u64>) -> Option<Line> {
    // A node that is in its own list of those to join hears itself, which harms nobody.
    let strange = now.iter().filter(|(reason, _)| *reason != "own-packet");
    let more = strange.filter_map(|(reason, &count)| {
        let more = count.saturating_sub(before.get(reason).copied().unwrap_or(0));
        (more > 0).then(|| format!("{more} {reason}"))
    });
    let more: Vec<String> = more.collect();
    *before = now;
    let words = format!("refused within a minute: {}", more.join(", "));
    (!more.is_empty()).then(|| Line::new(Level::Warning, "refused", &words))
}

/// Comings and goings are summed up for so long.
const SUMMED: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// Names of one line that are spelt out.
const NAMED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{handle::Inbox, status::LeaderStatus};

    fn event(inbox: &Inbox, kind: EventKind, election: Option<&str>, node: &str) {
        let node = LeaderStatus {
            id: format!("id of {}", node.trim_end_matches('!')),
            name: node.to_owned(),
        };
        inbox.record(Event {
            index: inbox.next_index(),
            unix_ms: 7,
            event: kind,
            election: election.map(str::to_owned),
            node: Some(node),
            epoch: election.map(|_| "7.3.1.0".to_owned()),
            valid_for_ms: None,
            detail: Some("because".to_owned()),
        });
    }

    /// What is written of all that `happen` tells, until the agent stops.
    async fn written(happen: impl FnOnce(&Inbox)) -> Vec<Line> {
        let (handle, inbox) = Handle::connect();
        happen(&inbox);
        let mut lines = vec![];
        let stop = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(inbox);
        };
        tokio::join!(follow(handle, |line| lines.push(line)), stop);
        lines
    }

    #[tokio::test]
    async fn leading_has_lines_of_its_own_and_crowds_are_summed_up() {
        let lines = written(|inbox| {
            for node in 0..1_000 {
                event(inbox, EventKind::MemberJoin, None, &format!("n{node:03}"));
            }
            event(inbox, EventKind::MemberSuspect, None, "n001");
            event(inbox, EventKind::MemberFailed, None, "n002");
            event(inbox, EventKind::MemberUpdate, None, "n000!");
            event(inbox, EventKind::LeaderElected, Some("backup"), "n003");
            event(inbox, EventKind::LeaderConfirmed, Some("backup"), "n003");
            event(inbox, EventKind::SettingsDiffer, Some("backup"), "n004");
        })
        .await;
        let said: Vec<(Level, &str)> =
            lines.iter().map(|line| (line.level, line.message.as_str())).collect();
        assert_eq!(
            said,
            [
                (Level::Info, "backup: n003 leads, epoch 7.3.1.0: because"),
                (Level::Warning, "backup: n004 has other settings: because"),
                (
                    Level::Info,
                    "joined: n000!, n001, n003, n004, n005, n006, n007, n008 and 991 more; failed: n002"
                ),
            ]
        );
        assert_eq!(lines[0].about, "leader-elected");
        assert_eq!(lines[0].election.as_deref(), Some("backup"));
    }

    #[tokio::test]
    async fn a_name_cannot_forge_a_line() {
        let lines = written(|inbox| {
            event(inbox, EventKind::LeaderElected, Some("backup"), "a\n\u{1b}[2Jinfo b leads");
        })
        .await;
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].message.contains(char::is_control), "{:?}", lines[0].message);
    }

    #[tokio::test]
    async fn what_overflowed_is_not_passed_over_in_silence() {
        let lines = written(|inbox| {
            for _ in 0..5_000 {
                event(inbox, EventKind::MemberUpdate, None, "a");
            }
        })
        .await;
        assert_eq!(lines.iter().map(|line| line.about).collect::<Vec<_>>(), ["missed"]);
    }

    #[test]
    fn what_was_refused_is_told_once() {
        let mut before = BTreeMap::new();
        let counts =
            |old, new| BTreeMap::from([("malformed".to_owned(), old), ("old-key".to_owned(), new)]);
        let said = |line: Option<Line>| line.map(|line| line.message);
        assert_eq!(said(newly(&mut before, counts(0, 0))), None);
        let first = said(newly(&mut before, counts(9, 0)));
        assert_eq!(first.as_deref(), Some("refused within a minute: 9 malformed"));
        assert_eq!(said(newly(&mut before, counts(9, 0))), None);
        let second = said(newly(&mut before, counts(12, 1)));
        assert_eq!(second.as_deref(), Some("refused within a minute: 3 malformed, 1 old-key"));
    }
}
