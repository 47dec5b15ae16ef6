//! For orchestrators: is it alive, is it ready. Whether it leads is another question.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, Uri},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{Access, Api, Problem, access};

/// The loop that owns the node goes round. A pod is alive without a leader, and while it elects one.
pub(super) async fn alive(State(api): State<Api>) -> Result<Json<Value>, Problem> {
    let status = api.status().await?;
    Ok(Json(json!({ "status": "ok", "uptime_ms": status.uptime_ms })))
}

/// It answers questions about its cluster. A follower is as ready as a leader.
pub(super) async fn ready(State(api): State<Api>) -> Result<Json<Value>, Problem> {
    let status = api.status().await?;
    Ok(Json(json!({ "status": "ok", "members": status.members.len() })))
}

/// Alive, and what is not as it should be.
pub(super) async fn healthy(State(api): State<Api>, uri: Uri, headers: HeaderMap) -> Response {
    match api.status().await {
        // Names are for those who may read.
        Ok(_) if access::authorise(&api, Access::Read, &uri, &headers).is_err() => {
            Json(json!({ "status": "ok" })).into_response()
        }
        Ok(status) => {
            let leaderless = status.elections.iter().filter(|one| one.leader.is_none());
            let leaderless: Vec<&str> = leaderless.map(|one| one.election.as_str()).collect();
            let hooks = api.shared.hooks.all();
            let failing = hooks.iter().filter(|hook| hook.error.is_some());
            let failing: Vec<&str> = failing.map(|hook| hook.name.as_str()).collect();
            let sources = status.sources.iter().filter(|source| source.problem.is_some());
            let sources: Vec<_> = sources.collect();
            let tables =
                [("peers", status.peers.is_filling()), ("addresses", status.to_join.is_filling())];
            let filling = tables.iter().filter(|(_, filling)| *filling).map(|(table, _)| *table);
            let filling: Vec<&str> = filling.collect();
            Json(json!({
                "status": "ok",
                "leaderless": leaderless,
                "failing_hooks": failing,
                "failing_sources": sources,
                "filling": filling,
                "disk": status.disk,
            }))
            .into_response()
        }
        Err(problem) => problem.into_response(),
    }
}
