//! For Prometheus. Labels are few and bounded: elections, reasons and states, never members; but for the voters of learned
//! elections, who are configured, and of whom at most [`VOTERS`] are shown.

use std::fmt::Write as _;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};

use super::{Api, Problem, Refusals};
use crate::{
    host::hooks::HookStatus,
    status::{ElectionStatus, MemberState, ScoreStatus, Status},
};

pub(super) async fn metrics(State(api): State<Api>) -> Result<Response, Problem> {
    let status = api.status().await?;
    let text = render(&status, &api.shared.hooks.all(), &api.shared.refusals);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

fn render(status: &Status, hooks: &[HookStatus], refusals: &Refusals) -> String {
    let mut page = Page::default();
    let build = [("version", status.version)];
    page.one("build_info", "gauge", "The version that runs.", &build, 1.0);
    let up = status.uptime_ms as f64 / 1000.0;
    page.one("uptime_seconds", "gauge", "Since the agent started.", &[], up);
    page.one("event_index", "gauge", "The number of the newest event.", &[], status.index as f64);
    members(&mut page, status);
    elections(&mut page, &status.elections);
    counters(&mut page, status);
    page.head("hook_runs_total", "counter", "How often a hook was started.");
    for hook in hooks {
        page.line("hook_runs_total", &[("hook", &hook.name)], hook.runs as f64);
    }
    page.head("hook_failures_total", "counter", "How often a hook failed or was killed.");
    for hook in hooks {
        page.line("hook_failures_total", &[("hook", &hook.name)], hook.failures as f64);
    }
    page.head("hook_dirty", "gauge", "Elections in which a hook has yet to clean up.");
    for hook in hooks {
        page.line("hook_dirty", &[("hook", &hook.name)], hook.dirty.len() as f64);
    }
    page.head(
        "http_refused_total",
        "counter",
        "Connections and streams refused or closed for others.",
    );
    for (at, reason, count) in refusals.all() {
        page.line("http_refused_total", &[("listener", at), ("reason", reason)], count as f64);
    }
    page.text
}

fn members(page: &mut Page, status: &Status) {
    page.head("members", "gauge", "Members by state, this node included.");
    for (name, state) in [
        ("alive", MemberState::Alive),
        ("suspect", MemberState::Suspect),
        ("failed", MemberState::Failed),
        ("left", MemberState::Left),
    ] {
        let count = status.members.iter().filter(|member| member.state == state).count();
        page.line("members", &[("state", name)], count as f64);
    }
}

type Gauge = fn(&ElectionStatus) -> f64;

fn elections(page: &mut Page, elections: &[ElectionStatus]) {
    let seconds = |ms: u64| ms as f64 / 1000.0;
    let all: [(&str, &str, &str, Gauge); 9] = [
        ("is_leader", "gauge", "Whether this node leads and may act.", |e| {
            f64::from(u8::from(e.is_leader))
        }),
        ("has_leader", "gauge", "Whether a leader is known.", |e| {
            f64::from(u8::from(e.leader.is_some()))
        }),
        ("settled", "gauge", "Whether there is no present reason to doubt it.", |e| {
            f64::from(u8::from(e.settled))
        }),
        ("agreement_ratio", "gauge", "Of those that named a leader, who named the same.", |e| {
            f64::from(e.agreement.agree) / f64::from(e.agreement.heard.max(1))
        }),
        ("agreement_heard", "gauge", "Members that have named a leader.", |e| {
            f64::from(e.agreement.heard)
        }),
        ("members_differing", "gauge", "Members with other settings for it.", |e| {
            e.differing.len() as f64
        }),
        ("leader_changes_total", "counter", "How often another leader was named.", |e| {
            e.changes as f64
        }),
        ("epoch_counter", "gauge", "The first number of the fencing token.", |e| {
            e.epoch.map_or(0.0, |epoch| epoch.counter() as f64)
        }),
        ("priority", "gauge", "What this node is worth; more is better.", |e| {
            f64::from(e.priority)
        }),
    ];
    for (name, kind, help, value) in all {
        page.head(name, kind, help);
        for election in elections {
            page.line(name, &[("group", &election.election)], value(election));
        }
    }
    page.head("leadership_age_seconds", "gauge", "For how long the answer has been what it is.");
    for election in elections {
        let group = [("group", election.election.as_str())];
        page.line("leadership_age_seconds", &group, seconds(election.since_ms));
    }
    page.head("leaderless_seconds_total", "counter", "For how long no leader was known.");
    for election in elections {
        let group = [("group", election.election.as_str())];
        page.line("leaderless_seconds_total", &group, seconds(election.leaderless_ms));
    }
    page.head(
        "election_messages_total",
        "counter",
        "Messages sent: to elect, or to keep a leader.",
    );
    for election in elections {
        let (group, electing) = (election.election.as_str(), election.sent_electing);
        for (purpose, sent) in [("elect", electing), ("keep", election.sent - electing)] {
            let labels = [("group", group), ("purpose", purpose)];
            page.line("election_messages_total", &labels, sent as f64);
        }
    }
    if elections.iter().any(|election| !election.scores.is_empty()) {
        page.head(
            "score",
            "gauge",
            "How often a voter is there and does well, as this node has learnt.",
        );
    }
    for election in elections {
        let mut scores: Vec<&ScoreStatus> = election.scores.iter().collect();
        scores.sort_by(|a, b| a.name.cmp(&b.name));
        for score in scores.into_iter().take(VOTERS) {
            let labels = [("group", election.election.as_str()), ("voter", score.name.as_str())];
            page.line("score", &labels, score.score);
        }
    }
    // As controllers of Kubernetes have it, so that alerts on it work.
    page.raw("# HELP leader_election_master_status Whether this node leads.\n");
    page.raw("# TYPE leader_election_master_status gauge\n");
    for election in elections {
        let value = u8::from(election.is_leader);
        let name = escape(&election.election);
        page.raw(&format!("leader_election_master_status{{name=\"{name}\"}} {value}\n"));
    }
}

fn counters(page: &mut Page, status: &Status) {
    let counters = &status.counters;
    for (name, help, value) in [
        ("sent_datagrams_total", "Datagrams sent.", counters.sent),
        ("sent_bytes_total", "Bytes of datagrams sent.", counters.sent_bytes),
        ("received_datagrams_total", "Datagrams received and believed.", counters.received),
        ("received_bytes_total", "Bytes of all datagrams received.", counters.received_bytes),
        ("accusations_total", "Accusations of members heard of.", counters.accusations),
        ("accusations_refuted_total", "Accusations this node contradicted.", counters.refuted),
    ] {
        page.one(name, "counter", help, &[], value as f64);
    }
    page.head("dropped_total", "counter", "Refused or given up, by reason.");
    for (reason, count) in &counters.dropped {
        page.line("dropped_total", &[("reason", reason)], *count as f64);
    }
}

/// Voters of an election whose scores are shown, the first by name. Arbitrary; more is a table, not a gauge.
const VOTERS: usize = 32;

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.raw(&format!("# HELP bellwether_{name} {help}\n# TYPE bellwether_{name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let label = |(key, value): &(&str, &str)| format!("{key}=\"{}\"", escape(value));
        let labels = labels.iter().map(label).collect::<Vec<_>>().join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "bellwether_{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        self.head(name, kind, help);
        self.line(name, labels, value);
    }

    fn raw(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
