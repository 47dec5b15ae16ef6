//! What a command brings along.

use std::time::Duration;

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use tokio::time::timeout;

use super::Problem;

/// The body as JSON.
pub(super) async fn json<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = read(body).await?;
    if bytes.is_empty() {
        return Err(Problem::bad("there is no body", "send JSON; see /openapi.json"));
    }
    is_json(&parts.headers)?;
    parse(&bytes)
}

/// A body that need not be there, and says nothing if it is.
pub(super) async fn nothing(request: Request) -> Result<(), Problem> {
    let (parts, body) = request.into_parts();
    let bytes = read(body).await?;
    if bytes.is_empty() {
        return Ok(());
    }
    is_json(&parts.headers)?;
    parse::<Nothing>(&bytes).map(|_| ())
}

/// No more than `{}`.
#[derive(serde::Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    let whole = timeout(PATIENCE, Limited::new(body, LARGEST).collect()).await;
    let whole = whole.map_err(|_| {
        let error = "the body did not arrive in time";
        Problem::new(StatusCode::REQUEST_TIMEOUT, error, "send it at once")
    })?;
    let whole = whole.map_err(|error| match error.is::<LengthLimitError>() {
        true => {
            let hint = format!("at most {LARGEST} bytes");
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large", hint)
        }
        false => Problem::bad("the body is malformed", "check its length or chunks"),
    })?;
    Ok(whole.to_bytes().to_vec())
}

/// A form of another site can send text, but not this without asking first.
fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    match kind.trim().eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => {
            let hint = "send Content-Type: application/json";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not JSON", hint))
        }
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let hint = "see /openapi.json";
        match error.classify() {
            Category::Data => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string(), hint)
            }
            Category::Io | Category::Syntax | Category::Eof => {
                Problem::bad(format!("the body is not JSON: {error}"), hint)
            }
        }
    })
}

/// Largest body. Commands are small.
const LARGEST: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(5);
