//! Commands.

use std::{collections::BTreeMap, net::SocketAddr};

use axum::{
    Json,
    extract::{self, Path, State, rejection::PathRejection},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};

use bellwether_proto::node::check_name;

use super::{Api, Problem, body};
use crate::{
    config::{TAG_BYTES, TAGS, hidden},
    host::handle::Request,
};

type Answer = Result<(StatusCode, Json<Accepted>), Problem>;

/// It is under way.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Accepted {
    accepted: bool,
}
type Named = Result<Path<String>, PathRejection>;

async fn ask(api: &Api, request: Request) -> Answer {
    api.request(request).await?;
    Ok((StatusCode::ACCEPTED, Json(Accepted { accepted: true })))
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
) -> Answer {
    body::nothing(request).await?;
    ask(&api, Request::Resign(named(path)?)).await
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Transfer {
    /// A member, by name or identity.
    to: String,
}

pub(super) async fn transfer(
    State(api): State<Api>,
    path: Named,
    request: extract::Request,
) -> Answer {
    let Transfer { to } = body::json(request).await?;
    ask(&api, Request::Transfer { election: named(path)?, to }).await
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    /// How badly it does, in hundredths: 0 is as it should be.
    #[cfg_attr(test, schema(maximum = 100))]
    cost: u8,
    /// Of whom, by name or identity; of the leader if left out.
    member: Option<String>,
}

pub(super) async fn report(
    State(api): State<Api>,
    path: Named,
    request: extract::Request,
) -> Answer {
    let Report { cost, member: of } = body::json(request).await?;
    if cost > 100 {
        return Err(unfit(format!("a cost of {cost}"), "from 0, all is well, to 100"));
    }
    ask(&api, Request::Report { election: named(path)?, of, cost }).await
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Join {
    /// IP:PORT of other agents.
    #[cfg_attr(test, schema(value_type = Vec<String>, min_items = 1, max_items = 64))]
    addresses: Vec<SocketAddr>,
}

pub(super) async fn join(State(api): State<Api>, request: extract::Request) -> Answer {
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

pub(super) async fn leave(State(api): State<Api>, request: extract::Request) -> Answer {
    body::nothing(request).await?;
    ask(&api, Request::Leave).await
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ForceLeave {
    /// A failed member, by name or identity.
    member: String,
}

pub(super) async fn force_leave(State(api): State<Api>, request: extract::Request) -> Answer {
    let ForceLeave { member } = body::json(request).await?;
    ask(&api, Request::ForceLeave(member)).await
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Tags {
    /// A value, or null to delete it.
    tags: BTreeMap<String, Option<String>>,
}

pub(super) async fn tags(State(api): State<Api>, request: extract::Request) -> Answer {
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
