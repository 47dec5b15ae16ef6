//! For orchestrators: is it alive, is it ready. Whether it leads is another question.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, Uri},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use serde_json::json;

use super::{Access, Api, Problem, access};
use crate::status::SourceStatus;

/// The loop that owns the node goes round.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Alive {
    status: Fine,
    uptime_ms: u64,
}

/// It answers questions about its cluster.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Ready {
    status: Fine,
    /// Everybody known.
    members: usize,
}

/// Alive, and for those who may read, what is not as it should be.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Healthy {
    status: Fine,
    /// Elections without a leader.
    leaderless: Vec<String>,
    failing_hooks: Vec<String>,
    /// Of addresses to join: who names nobody, why, and when it is asked again.
    failing_sources: Vec<SourceStatus>,
    /// Tables that are three quarters full: peers, addresses.
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    filling: Vec<&'static str>,
    /// Why the disk does not have what must not be forgotten, if it refuses it or does not answer. Elections that need it
    /// name nobody meanwhile.
    disk: Option<String>,
}

/// Whoever is not says so by the code.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
enum Fine {
    Ok,
}

/// A pod is alive without a leader, and while it elects one.
pub(super) async fn alive(State(api): State<Api>) -> Result<Json<Alive>, Problem> {
    let uptime_ms = api.status().await?.uptime_ms;
    Ok(Json(Alive { status: Fine::Ok, uptime_ms }))
}

/// A follower is as ready as a leader.
pub(super) async fn ready(State(api): State<Api>) -> Result<Json<Ready>, Problem> {
    let members = api.status().await?.members.len();
    Ok(Json(Ready { status: Fine::Ok, members }))
}

pub(super) async fn healthy(
    State(api): State<Api>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let status = api.status().await?;
    if access::authorise(&api, Access::Read, &uri, &headers).is_err() {
        // Names are for those who may read.
        return Ok(Json(json!({ "status": Fine::Ok })).into_response());
    }
    let leaderless = status.elections.iter().filter(|one| one.leader.is_none());
    let leaderless = leaderless.map(|one| one.election.clone()).collect();
    let failing = api.shared.hooks.all().into_iter().filter(|hook| hook.error.is_some());
    let tables = [("peers", status.peers.is_filling()), ("addresses", status.to_join.is_filling())];
    let filling = tables.into_iter().filter(|(_, filling)| *filling).map(|(table, _)| table);
    let sources = status.sources.into_iter().filter(|source| source.problem.is_some());
    Ok(Json(Healthy {
        status: Fine::Ok,
        leaderless,
        failing_hooks: failing.map(|hook| hook.name).collect(),
        failing_sources: sources.collect(),
        filling: filling.collect(),
        disk: status.disk,
    })
    .into_response())
}
