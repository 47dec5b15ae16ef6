//! What went wrong, in one shape: `{"error": …, "hint": …}` and a status that says whose fault it is.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    config::similar,
    host::handle::Error,
    status::{ElectionStatus, Status},
};

/// Why a request was not answered as asked.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Error))]
pub(super) struct Problem {
    #[serde(skip)]
    status: StatusCode,
    /// What went wrong.
    error: String,
    /// What to do about it.
    hint: String,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        error: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { status, error: error.into(), hint: hint.into() }
    }

    /// The same, with another hint if it is about something that is not there.
    pub(super) fn with_hint_if_missing(mut self, hint: &str) -> Self {
        if self.status == StatusCode::NOT_FOUND {
            self.hint = hint.to_owned();
        }
        self
    }

    pub(super) fn bad(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, hint)
    }

    pub(super) fn stopped() -> Self {
        let hint = "ask another node, or start it again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the agent has stopped", hint)
    }

    pub(super) fn busy() -> Self {
        let hint = "it may be starved or stopped; nobody should act on what it last said";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the agent does not answer", hint)
    }

    pub(super) fn no_such_election(name: &str, elections: &[ElectionStatus]) -> Self {
        let known = || elections.iter().map(|election| election.election.as_str());
        Self::unknown("election", name, known)
    }

    pub(super) fn no_such_member(name: &str, status: &Status) -> Self {
        let known = || status.members.iter().map(|member| member.name.as_str());
        Self::unknown("member", name, known)
    }

    fn unknown<'n, I: Iterator<Item = &'n str>>(
        what: &str,
        name: &str,
        known: impl Fn() -> I,
    ) -> Self {
        let hint = match similar(name, known()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => {
                let some = known().take(SHOWN).collect::<Vec<_>>().join(", ");
                let more = if known().count() > SHOWN { ", …" } else { "" };
                format!("known: {some}{more}")
            }
        };
        let name: String = name.chars().take(LONGEST).collect();
        Self::new(StatusCode::NOT_FOUND, format!("no {what} is called {name:?}"), hint)
    }

    pub(super) fn refused(refused: &Error) -> Self {
        let (status, hint) = match refused {
            Error::Stopped => return Self::stopped(),
            Error::NoSuchMember(_) => (StatusCode::NOT_FOUND, "see /v1/members"),
            Error::NoSuchElection(..) => (StatusCode::NOT_FOUND, "see /v1/elections"),
            Error::NotLeader(..) => (StatusCode::CONFLICT, "ask the agent of the leader"),
            Error::Impossible(_) => (StatusCode::CONFLICT, "see /v1/status"),
        };
        Self::new(status, refused.to_string(), hint)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status;
        tracing::debug!(code = status.as_u16(), error = self.error, "a request is refused");
        let mut response = (status, Json(self)).into_response();
        let mut add =
            |name, value| response.headers_mut().insert(name, HeaderValue::from_static(value));
        match status {
            StatusCode::UNAUTHORIZED => {
                add(header::WWW_AUTHENTICATE, "Bearer");
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                add(header::RETRY_AFTER, "1");
            }
            _ => {}
        }
        response
    }
}

/// How many known names are listed.
const SHOWN: usize = 8;
/// Longest name that is repeated.
const LONGEST: usize = 63;
