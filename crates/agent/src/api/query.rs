//! Questions.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use bellwether_proto::{Epoch, NodeId, node};
use serde::Serialize;

use super::{Access, Api, Problem, access, page};
use crate::{
    host::hooks::HookStatus,
    status::{
        ElectionStatus, LeaderStatus, MapStatus, MemberState, MemberStatus, Reach, Status, hex,
        hex_if_any, token,
    },
};

/// Who leads, with the leader's name on top.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Leadership {
    /// The leader's name, or null if none is known.
    name: Option<String>,
    /// The leader's identity, or null.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    #[serde(serialize_with = "hex_if_any")]
    id: Option<NodeId>,
    #[serde(flatten)]
    election: ElectionStatus,
}

impl From<ElectionStatus> for Leadership {
    fn from(election: ElectionStatus) -> Self {
        let leader = election.leader.clone();
        let (name, id) = leader.map(|leader| (leader.name, leader.id)).unzip();
        Self { name, id, election }
    }
}

/// What the elector sidecars of Kubernetes answered.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Name {
    /// The leader of the first election, or nothing if none is known.
    name: String,
}

type Named = Result<Path<String>, PathRejection>;

pub(super) fn named(path: Named) -> Result<String, Problem> {
    let wrong = |_| Problem::bad("the path is not text", "percent-encode UTF-8");
    path.map(|Path(name)| name).map_err(wrong)
}

/// The dashboard for browsers; for everybody else what the elector sidecars of Kubernetes answered.
pub(super) async fn root(
    State(api): State<Api>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/html")) {
        return Ok(page::index(&api, &headers));
    }
    access::authorise(&api, Access::Read, &uri, &headers)?;
    let leader = api.elections()?.into_iter().next().and_then(|first| first.leader);
    let name = leader.map_or(String::new(), |leader| leader.name);
    Ok(Json(Name { name }).into_response())
}

pub(super) async fn status(State(api): State<Api>) -> Result<Json<Status>, Problem> {
    api.status().await.map(Json)
}

pub(super) async fn leader(State(api): State<Api>) -> Result<Json<Leadership>, Problem> {
    let first = api.elections()?.into_iter().next();
    let none = || {
        let hint = "configure one: [election.NAME]";
        Problem::new(StatusCode::NOT_FOUND, "this agent takes part in no election", hint)
    };
    first.map(|first| Json(first.into())).ok_or_else(none)
}

pub(super) async fn elections(State(api): State<Api>) -> Result<Json<Vec<Leadership>>, Problem> {
    Ok(Json(api.elections()?.into_iter().map(Into::into).collect()))
}

pub(super) async fn election(
    State(api): State<Api>,
    path: Named,
) -> Result<Json<Leadership>, Problem> {
    Ok(Json(api.election(&named(path)?)?.into()))
}

/// What a central election is decided by.
pub(super) async fn map(State(api): State<Api>, path: Named) -> Result<Json<MapStatus>, Problem> {
    api.map(&named(path)?).await.map(Json)
}

/// What load balancers read, should they read more than the code.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct IsLeader {
    /// As configured.
    election: String,
    /// Whether this node leads, and may act.
    is_leader: bool,
    /// Who leads, if anybody is known to.
    leader: Option<LeaderStatus>,
    /// The fencing token.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    #[serde(serialize_with = "token")]
    epoch: Option<Epoch>,
    /// Whether this node remembers epochs over a restart: it has a data_dir.
    epoch_durable: bool,
    /// Leased elections, on the node that leads: how long it may still act.
    valid_for_ms: Option<u64>,
    /// The same as an instant: microseconds of this machine's `CLOCK_BOOTTIME`.
    valid_until_us: Option<u64>,
}

/// For load balancers: 200 on the node that leads and may act, 503 on all others.
pub(super) async fn is_leader(
    State(api): State<Api>,
    path: Named,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = named(path)?;
    let may_read = access::authorise(&api, Access::Read, &uri, &headers).is_ok();
    let election = api.election(&name).map_err(|problem| match may_read {
        true => problem,
        // Names are for those who may read.
        false => problem.with_hint_if_missing("with the token, /v1/elections lists all there are"),
    })?;
    let status = match election.is_leader {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body = IsLeader {
        election: election.election,
        is_leader: election.is_leader,
        leader: election.leader,
        epoch: election.epoch,
        epoch_durable: election.epoch_durable,
        valid_for_ms: election.valid_for_ms,
        valid_until_us: election.valid_until_us,
    };
    Ok((status, Json(body)).into_response())
}

pub(super) async fn members(State(api): State<Api>) -> Result<Json<Vec<MemberStatus>>, Problem> {
    Ok(Json(api.status().await?.members))
}

pub(super) async fn hooks(State(api): State<Api>) -> Json<Vec<HookStatus>> {
    Json(api.shared.hooks.all())
}

/// The network as this node sees it: who is there, and which way leads to them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Topology {
    nodes: Vec<Point>,
    links: Vec<Link>,
}

/// A member.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct Point {
    /// Its identity.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    id: NodeId,
    name: String,
    state: MemberState,
}

/// A way to a member, by names.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct Link {
    from: String,
    to: String,
    /// How long ago a message came straight from `to`.
    heard_ms: Option<u64>,
}

pub(super) async fn topology(State(api): State<Api>) -> Result<Json<Topology>, Problem> {
    let Status { node, members, .. } = api.status().await?;
    let link = |member: &MemberStatus| {
        let from = match &member.reach {
            Reach::Own => return None,
            Reach::Direct => node.name.clone(),
            Reach::Through(name) => name.clone(),
        };
        let there = matches!(member.state, MemberState::Alive | MemberState::Suspect);
        there.then(|| Link { from, to: member.name.clone(), heard_ms: member.heard_ms })
    };
    let links = members.iter().filter_map(link).collect();
    let point = |MemberStatus { id, name, state, .. }| Point { id, name, state };
    Ok(Json(Topology { nodes: members.into_iter().map(point).collect(), links }))
}

/// A member and what is held against it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Why {
    /// In words.
    summary: String,
    #[serde(flatten)]
    member: MemberStatus,
}

pub(super) async fn why(State(api): State<Api>, path: Named) -> Result<Json<Why>, Problem> {
    let (name, status) = (named(path)?, api.status().await?);
    let mut found = status.members.iter().filter(|member| node::hex(member.id) == name);
    let mut called = status.members.iter().filter(|member| member.name == name);
    let member = found.next().or_else(|| called.next());
    let member = member.cloned().ok_or_else(|| Problem::no_such_member(&name, &status))?;
    Ok(Json(Why { summary: summary(&member), member }))
}

fn summary(member: &MemberStatus) -> String {
    let MemberStatus { name, since_ms, accusers, suspicions, .. } = member;
    let since = *since_ms as f64 / 1000.0;
    let by = match accusers.as_slice() {
        [] => "this node".to_owned(),
        accusers => accusers.join(", "),
    };
    let reached = match &member.reach {
        Reach::Own => ", and is this node",
        Reach::Direct => "",
        Reach::Through(_) => ", and answers only through another member",
    };
    match member.state {
        MemberState::Alive => {
            format!(
                "{name} has been alive for {since:.1} s, suspected {suspicions} times lately{reached}"
            )
        }
        MemberState::Suspect => {
            let left = member.convicted_in_ms.unwrap_or(0) as f64 / 1000.0;
            format!(
                "{name} is suspected by {by} for {since:.1} s and has {left:.1} s to contradict"
            )
        }
        MemberState::Failed => format!("{name} failed {since:.1} s ago; it was accused by {by}"),
        MemberState::Left => format!("{name} said goodbye {since:.1} s ago"),
    }
}

/// The description of all of this.
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

pub(super) async fn nothing(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(100).collect();
    let hint = "see /openapi.json for all there is";
    Problem::new(StatusCode::NOT_FOUND, format!("there is no {path}"), hint)
}

pub(super) async fn wrong_method() -> Problem {
    let hint = "see the Allow header, or /openapi.json";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not this method here", hint)
}

/// Made from the types by a test (`document`); another holds it against the answers.
const OPENAPI: &str = include_str!("openapi.json");
