//! A cluster in one process, as `bellwether dev` runs it: every node may be looked through, killed, revived, cut off
//! and healed from the page of any. An ordinary agent has no stage, and none of these routes.

use std::net::SocketAddr;

use axum::{
    Extension, Json,
    extract::{Path, Query, Request, State, rejection::PathRejection, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use bellwether_proto::Epoch;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use super::{Api, Behind, PATIENCE, Place, Problem, Shared, body, events, query};
use crate::{
    config::similar,
    host::handle::Handle,
    status::{MemberState, Reach, Status, token},
};

/// The nodes of a cluster in one process, and a way to do something to them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stage {
    actors: watch::Receiver<Vec<Actor>>,
    orders: mpsc::Sender<Order>,
}

/// One node on a stage, dead or alive.
#[derive(Clone, Debug)]
pub struct Actor {
    /// Its name, as configured.
    pub name: String,
    /// Where it answers HTTP; on a stage somebody does for the dead too.
    pub api: SocketAddr,
    /// Whether its cable is pulled.
    pub cut: bool,
    /// How to ask it, or its last life.
    pub handle: Handle,
}

/// What can be done to a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Act {
    /// Stop it, without a word to the others.
    Kill,
    /// Start it again, where it was.
    Revive,
    /// Pull its cable: it lives, and nothing goes in or out.
    Cut,
    /// Plug the cable in again.
    Heal,
}

/// Something to be done to a node.
#[derive(Debug)]
pub struct Order {
    /// The name of the node.
    pub node: String,
    /// What is to be done to it.
    pub act: Act,
    /// Who waits to hear that it is done, or why not.
    pub done: oneshot::Sender<Result<(), String>>,
}

impl Stage {
    /// A stage of these nodes; whoever holds the other ends keeps the list true and carries out the orders.
    pub fn new(actors: Vec<Actor>) -> (Self, watch::Sender<Vec<Actor>>, mpsc::Receiver<Order>) {
        let (list, actors) = watch::channel(actors);
        let (orders, ordered) = mpsc::channel(ORDERS);
        (Self { actors, orders }, list, ordered)
    }

    /// How to ask the node in this place.
    pub(super) fn handle(&self, at: usize) -> Option<Handle> {
        self.actors.borrow().get(at).map(|actor| actor.handle.clone())
    }

    fn find(&self, name: &str) -> Result<usize, Problem> {
        let actors = self.actors.borrow();
        actors.iter().position(|actor| actor.name == name).ok_or_else(|| {
            let hint = match similar(name, actors.iter().map(|actor| actor.name.as_str())) {
                Some(near) => format!("did you mean {near:?}?"),
                None => "see /v1/dev/nodes".to_owned(),
            };
            let name: String = name.chars().take(63).collect();
            Problem::new(StatusCode::NOT_FOUND, format!("no node is called {name:?}"), hint)
        })
    }
}

impl Act {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "kill" => Self::Kill,
            "revive" => Self::Revive,
            "cut" => Self::Cut,
            "heal" => Self::Heal,
            _ => return None,
        })
    }
}

/// A node as the audience sees it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = DevNode))]
pub(super) struct Seen {
    name: String,
    /// Where it answers HTTP.
    #[cfg_attr(test, schema(value_type = String))]
    api: SocketAddr,
    /// Whether that is here.
    here: bool,
    running: bool,
    /// Whether its cable is pulled.
    cut: bool,
    /// What it answers about the first election, if it answers.
    says: Option<Says>,
    /// Whom it reaches by itself, by name.
    reaches: Vec<String>,
}

/// What a node says about an election.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = DevAnswer))]
struct Says {
    /// By name.
    leader: Option<String>,
    #[cfg_attr(test, schema(value_type = Option<String>))]
    #[serde(serialize_with = "token")]
    epoch: Option<Epoch>,
    settled: bool,
    is_leader: bool,
}

fn stage(api: &Api) -> Result<&Stage, Problem> {
    api.shared.stage().ok_or_else(|| {
        let hint = "only `bellwether dev` has it";
        Problem::new(StatusCode::NOT_FOUND, "there is no stage here", hint)
    })
}

pub(super) async fn nodes(State(api): State<Api>) -> Result<Json<Vec<Seen>>, Problem> {
    let actors = stage(&api)?.actors.borrow().clone();
    let mut seen = Vec::new();
    for (at, Actor { name, api: address, cut, handle }) in actors.into_iter().enumerate() {
        let here = matches!(api.shared.behind, Behind::Stage(_, own) if own == at);
        let status = timeout(PATIENCE, handle.status()).await.ok().and_then(Result::ok);
        let reaches = status.iter().flat_map(|status| reached(status)).collect();
        let says = status.and_then(|status| status.elections.first().cloned());
        let says = says.map(|election| Says {
            leader: election.leader.map(|leader| leader.name),
            epoch: election.epoch,
            settled: election.settled,
            is_leader: election.is_leader,
        });
        let running = !handle.is_stopped();
        seen.push(Seen { name, api: address, here, running, cut, says, reaches });
    }
    Ok(Json(seen))
}

fn reached(status: &Status) -> impl Iterator<Item = String> {
    let there = |state| matches!(state, MemberState::Alive | MemberState::Suspect);
    let members = status.members.iter();
    let direct = members.filter(move |one| one.reach == Reach::Direct && there(one.state));
    direct.map(|one| one.name.clone())
}

type Named<T> = Result<Path<T>, PathRejection>;

fn named<T>(path: Named<T>) -> Result<T, Problem> {
    let wrong = |_| Problem::bad("the path is not text", "percent-encode UTF-8");
    path.map(|Path(name)| name).map_err(wrong)
}

pub(super) async fn act(
    State(api): State<Api>,
    path: Named<(String, String)>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let (name, act) = named(path)?;
    let stage = stage(&api)?;
    stage.find(&name)?;
    let act = Act::named(&act).ok_or_else(|| {
        let hint = "kill, revive, cut or heal";
        Problem::new(StatusCode::NOT_FOUND, "that cannot be done to a node", hint)
    })?;
    body::nothing(request).await?;
    let (done, answer) = oneshot::channel();
    stage
        .orders
        .send(Order { node: name, act, done })
        .await
        .map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the cluster ends", "wait"))?;
    match timeout(PATIENCE, answer).await {
        Ok(Ok(Ok(()))) => Ok((StatusCode::ACCEPTED, Json(json!({ "accepted": true })))),
        Ok(Ok(Err(why))) => Err(Problem::new(StatusCode::CONFLICT, why, "see /v1/dev/nodes")),
        Ok(Err(_)) | Err(_) => Err(Problem::busy()),
    }
}

/// The interface of another node of the same cluster.
fn through(api: &Api, name: &str) -> Result<Api, Problem> {
    let stage = stage(api)?.clone();
    let at = stage.find(name)?;
    let shared = Shared { behind: Behind::Stage(stage, at), ..(*api.shared).clone() };
    Ok(Api { shared: shared.into(), ..api.clone() })
}

/// What a node knows; nothing, if it is dead, which on a stage is no error.
pub(super) async fn status(
    State(api): State<Api>,
    path: Named<String>,
) -> Result<Json<Option<Status>>, Problem> {
    let api = through(&api, &named(path)?)?;
    if api.handle()?.is_stopped() {
        return Ok(Json(None));
    }
    match api.status().await {
        Ok(status) => Ok(Json(Some(status))),
        // It may have died meanwhile.
        Err(_) if api.handle()?.is_stopped() => Ok(Json(None)),
        Err(problem) => Err(problem),
    }
}

pub(super) async fn why(
    State(api): State<Api>,
    path: Named<(String, String)>,
) -> Result<Json<query::Why>, Problem> {
    let (name, member) = named(path)?;
    query::why(State(through(&api, &name)?), Ok(Path(member))).await
}

pub(super) async fn happening(
    State(api): State<Api>,
    path: Named<String>,
    place: Extension<Place>,
    wanted: Result<Query<events::Wanted>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    events::events(State(through(&api, &named(path)?)?), place, wanted, headers).await
}

/// Orders that may wait.
const ORDERS: usize = 16;
