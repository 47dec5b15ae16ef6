//! Commands.

use std::{collections::BTreeMap, net::SocketAddr};

use axum::{
    Json,
    extract::{self, Path, State, rejection::PathRejection},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};

use bellwether_proto::node::check_name;

use super::{Api, Problem, body};
use crate::{
    config::{TAG_BYTES, TAGS, hidden},
    handle::Request,
};

type Accepted = Result<(StatusCode, Json<Value>), Problem>;
type Named = Result<Path<String>, PathRejection>;

async fn ask(api: &Api, request: Request) -> Accepted {
    api.request(request).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "accepted": true }))))
}

fn unfit(error: impl Into<String>, hint: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error, hint)
}

fn named(path: Named) -> Result<String, Problem> {
    let wrong = |_| Problem::bad("the path is not text", "percent-encode UTF-8");
    path.map(|Path(name)| name).map_err(wrong)
}

pub(super) async fn resign(
    State(api): State<Api>,
    path: Named,
    request: extract::Request,
) -> Accepted {
    body::nothing(request).await?;
    ask(&api, Request::Resign(named(path)?)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transfer {
    to: String,
}

pub(super) async fn transfer(
    State(api): State<Api>,
    path: Named,
    request: extract::Request,
) -> Accepted {
    let Transfer { to } = body::json(request).await?;
    ask(&api, Request::Transfer { election: named(path)?, to }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    cost: u8,
    member: Option<String>,
}

pub(super) async fn report(
    State(api): State<Api>,
    path: Named,
    request: extract::Request,
) -> Accepted {
    let Report { cost, member: of } = body::json(request).await?;
    if cost > 100 {
        return Err(unfit(format!("a cost of {cost}"), "from 0, all is well, to 100"));
    }
    ask(&api, Request::Report { election: named(path)?, of, cost }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Join {
    addresses: Vec<SocketAddr>,
}

pub(super) async fn join(State(api): State<Api>, request: extract::Request) -> Accepted {
    let Join { addresses } = body::json(request).await?;
    if addresses.is_empty() || addresses.len() > ADDRESSES {
        let error = format!("{} addresses", addresses.len());
        return Err(unfit(error, format!("from 1 to {ADDRESSES}")));
    }
    let nobody = |address: &&SocketAddr| {
        address.ip().is_unspecified() || address.ip().is_multicast() || address.port() == 0
    };
    if let Some(nobody) = addresses.iter().find(nobody) {
        return Err(unfit(format!("{nobody} is nobody's address"), "IP:PORT of an agent"));
    }
    ask(&api, Request::Join(addresses)).await
}

pub(super) async fn leave(State(api): State<Api>, request: extract::Request) -> Accepted {
    body::nothing(request).await?;
    ask(&api, Request::Leave).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForceLeave {
    member: String,
}

pub(super) async fn force_leave(State(api): State<Api>, request: extract::Request) -> Accepted {
    let ForceLeave { member } = body::json(request).await?;
    ask(&api, Request::ForceLeave(member)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tags {
    tags: BTreeMap<String, Option<String>>,
}

pub(super) async fn tags(State(api): State<Api>, request: extract::Request) -> Accepted {
    let Tags { tags } = body::json(request).await?;
    if tags.is_empty() || tags.len() > TAGS {
        return Err(unfit(format!("{} tags", tags.len()), format!("from 1 to {TAGS}")));
    }
    for (key, value) in &tags {
        if let Err(problem) = check_name(key) {
            return Err(unfit(format!("tag {key:?} {problem}"), "letters, digits, '-', '_', '.'"));
        }
        let value = value.as_deref().unwrap_or_default();
        if value.len() > TAG_BYTES || value.chars().any(hidden) {
            let hint = format!("one line of at most {TAG_BYTES} bytes");
            return Err(unfit(format!("the value of tag {key:?} cannot be shown"), hint));
        }
    }
    ask(&api, Request::Tags(tags)).await
}

/// Most addresses to join at once. Arbitrary; one suffices.
const ADDRESSES: usize = 64;
