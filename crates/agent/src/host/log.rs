//! What an agent tells of itself, through `tracing`: to whatever subscriber the program has, or to nobody, which costs
//! nothing.
//!
//! | level | what |
//! |---|---|
//! | warn | what should not be |
//! | info | what is about leading, and about starting and stopping |
//! | debug | every other event, and each step: who is asked, what the disk has taken, which hook runs, what the HTTP interface refuses |
//! | trace | every packet, refused ones with the reason |
//!
//! Events have the target [`EVENTS`] and the fields `about`, `election`, `member`, `id` and `epoch`, as far as they have any. The
//! others have that of their module.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::sleep;

use crate::{
    config::event_name,
    host::handle::Handle,
    status::{Event, EventKind},
};

/// The target of all that is in the history of events.
pub const EVENTS: &str = "bellwether_agent::events";

macro_rules! tell {
    ($macro:ident, $event:ident) => {
        tracing::$macro!(
            target: EVENTS,
            about = event_name($event.event),
            election = $event.election.as_deref(),
            member = $event.node.as_ref().map(|node| node.name.as_str()),
            id = $event.node.as_ref().map(|node| node.id.get()),
            epoch = $event.epoch.map(tracing::field::display),
            "{}",
            words($event)
        )
    };
}

/// Tells of an event. Nothing is put into words unless somebody listens.
pub(crate) fn tell(event: &Event) {
    match event.event {
        EventKind::LeaderElected
        | EventKind::LeaderLost
        | EventKind::BecameLeader
        | EventKind::StoppedLeading
        | EventKind::DiskRecovered
        | EventKind::JoinFound => tell!(info, event),
        EventKind::SettingsDiffer
        | EventKind::SameName
        | EventKind::TableFilling
        | EventKind::VersionsDiffer
        | EventKind::DuplicateIdentity
        | EventKind::DiskRefused
        | EventKind::RecordEnded
        | EventKind::JoinFailed
        | EventKind::AddressDiffers
        | EventKind::Stalled => tell!(warn, event),
        EventKind::MemberJoin
        | EventKind::MemberSuspect
        | EventKind::MemberAlive
        | EventKind::MemberFailed
        | EventKind::MemberLeave
        | EventKind::MemberUpdate
        | EventKind::LeaderConfirmed => tell!(debug, event),
    }
}

fn words(event: &Event) -> String {
    let who = event.node.as_ref().map_or("somebody", |node| node.name.as_str());
    let epoch = event.epoch.as_ref().map(|epoch| format!(", epoch {epoch}"));
    let epoch = epoch.unwrap_or_default();
    let why = event.detail.as_deref().unwrap_or_default();
    let words = match event.event {
        EventKind::LeaderElected => format!("{who} leads{epoch}: {why}"),
        EventKind::LeaderConfirmed => format!("nobody doubts that {who} leads{epoch}: {why}"),
        EventKind::LeaderLost => format!("nobody is known to lead, after {who}{epoch}"),
        EventKind::BecameLeader => format!("this node may act{epoch}"),
        EventKind::StoppedLeading => format!("this node stopped leading{epoch}"),
        EventKind::SettingsDiffer => format!("{who} has other settings: {why}"),
        EventKind::VersionsDiffer => format!("{who} cannot be talked to: {why}"),
        EventKind::DuplicateIdentity => {
            format!("{who} runs under the identity of this node, which stops")
        }
        EventKind::DiskRefused => format!("the disk refuses what must be kept: {why}"),
        EventKind::DiskRecovered => "the disk takes what must be kept".to_owned(),
        EventKind::RecordEnded => format!("nothing more is recorded: {why}"),
        EventKind::JoinFailed => format!("cannot join by {why}"),
        EventKind::Stalled => format!("this process was stopped {why}"),
        EventKind::SameName
        | EventKind::TableFilling
        | EventKind::JoinFound
        | EventKind::AddressDiffers => why.to_owned(),
        EventKind::MemberJoin => format!("{who} joined"),
        EventKind::MemberSuspect => format!("{who} is suspected: {why}"),
        EventKind::MemberAlive => format!("{who} contradicted those who suspected it"),
        EventKind::MemberFailed => format!("{who} failed: {why}"),
        EventKind::MemberLeave => format!("{who} left"),
        EventKind::MemberUpdate => format!("{who} told about itself"),
    };
    let words = match &event.election {
        Some(election) => format!("{election}: {words}"),
        None => words,
    };
    // Others choose their names: nothing in a line moves a cursor or looks like another line.
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Tells once a minute what was refused, until the agent has stopped.
pub(crate) async fn tell_refusals(handle: Handle) {
    let mut before = BTreeMap::new();
    loop {
        sleep(MINUTE).await;
        let Ok(status) = handle.status().await else { return };
        let dropped = status.counters.dropped.iter();
        let mut counted: BTreeMap<_, _> =
            dropped.map(|(&reason, &count)| (reason.to_owned(), count)).collect();
        let refusals = handle.refusals();
        let by_interface =
            refusals.all().map(|(at, reason, count)| (format!("{at}-{reason}"), count));
        counted.extend(by_interface);
        if let Some(words) = newly(&mut before, counted) {
            tracing::warn!(target: EVENTS, about = "refused", "{words}");
        }
    }
}

/// What has been refused since it was looked at last.
fn newly(before: &mut BTreeMap<String, u64>, now: BTreeMap<String, u64>) -> Option<String> {
    // A node that is in its own list of those to join hears itself, which harms nobody.
    let strange = now.iter().filter(|(reason, _)| *reason != "own-packet");
    let more = strange.filter_map(|(reason, &count)| {
        let more = count.saturating_sub(before.get(reason).copied().unwrap_or(0));
        (more > 0).then(|| format!("{more} {reason}"))
    });
    let more: Vec<String> = more.collect();
    *before = now;
    let words = format!("refused within a minute: {}", more.join(", "));
    (!more.is_empty()).then_some(words)
}

const MINUTE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_told_once() {
        let mut before = BTreeMap::new();
        let counts =
            |old, new| BTreeMap::from([("malformed".to_owned(), old), ("old-key".to_owned(), new)]);
        assert_eq!(newly(&mut before, counts(0, 0)), None);
        let first = newly(&mut before, counts(9, 0));
        assert_eq!(first.as_deref(), Some("refused within a minute: 9 malformed"));
        assert_eq!(newly(&mut before, counts(9, 0)), None);
        let second = newly(&mut before, counts(12, 1));
        assert_eq!(second.as_deref(), Some("refused within a minute: 3 malformed, 1 old-key"));
    }
}
