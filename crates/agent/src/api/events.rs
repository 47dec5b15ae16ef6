//! What happens, as it happens: server-sent events that can be resumed, and a long poll for those without.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header},
    response::{
        IntoResponse as _, Response, Sse,
        sse::{self, KeepAlive},
    },
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use super::{Api, Place, Problem, places::Answering};
use crate::{config::event_name, host::handle::Handle, status::Event};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    index: Option<u64>,
    wait: Option<String>,
}

/// With `index` one answer, once there is something after it; otherwise, or if asked for, a stream.
pub(super) async fn events(
    State(api): State<Api>,
    Extension(place): Extension<Place>,
    wanted: Result<Query<Wanted>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(Wanted { index, wait }) = wanted.map_err(|rejection| {
        Problem::bad(rejection.body_text(), "index=NUMBER and wait=DURATION, such as wait=30s")
    })?;
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let streamed = accept.is_some_and(|accept| accept.contains("text/event-stream"));
    match index {
        Some(index) if !streamed => poll(api.handle()?, &place, index, wait.as_deref()).await,
        _ => stream(&api, &place, index, &headers).await,
    }
}

/// What a poll is answered.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Events {
    /// Ask for what comes after this next.
    index: u64,
    /// Whether there were events that are no longer kept.
    missed: bool,
    events: Vec<Event>,
}

async fn poll(
    mut handle: Handle,
    place: &Place,
    index: u64,
    wait: Option<&str>,
) -> Result<Response, Problem> {
    let wait = match wait.map(str::parse::<bellwether_proto::Duration>) {
        None => Duration::ZERO,
        Some(Ok(wait)) if wait.as_micros() <= LONGEST.as_micros() as u64 => {
            Duration::from_micros(wait.as_micros())
        }
        Some(_) => return Err(Problem::bad("wait is not a duration", "such as 30s, at most 10m")),
    };
    // A number from the future is one of a former life: there is nothing to wait for.
    let reset = index > handle.index();
    if !reset && wait > Duration::ZERO {
        let _waiting = place.streaming().ok_or_else(crowded)?;
        // Waiting in vain is an answer too.
        let _ = timeout(wait, handle.wait_after(index)).await;
    }
    let (events, missed) = if reset { (Vec::new(), true) } else { handle.events_after(index) };
    let index = events.last().map_or(handle.index(), |event| event.index);
    Ok(Json(Events { index, missed, events }).into_response())
}

/// Whoever is waited with holds a place, and must leave some to others.
fn crowded() -> Problem {
    let error = "too many streams of events are open";
    let hint = "close some, or poll with ?index= and without wait=";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, error, hint)
}

async fn stream(
    api: &Api,
    place: &Place,
    index: Option<u64>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let place = place.streaming().ok_or_else(crowded)?;
    let handle = api.handle()?;
    let last = headers.get("last-event-id").map(|last| last.to_str().ok()?.parse::<u64>().ok());
    let (from, known) = match (last, index) {
        (Some(last), _) => (last.unwrap_or(0), last.is_some()),
        (None, Some(index)) => (index, true),
        (None, None) => (handle.index(), true),
    };
    let mut first = VecDeque::new();
    let from = if !known || from > handle.index() || handle.events_after(from).1 {
        // Whoever missed something gets the present instead of the gap.
        let status = api.status().await?;
        let data = serde_json::to_string(&status).unwrap_or_default();
        first.push_back(
            sse::Event::default().event("reset").id(status.index.to_string()).data(data),
        );
        status.index
    } else {
        first.push_back(sse::Event::default().retry(RETRY).comment("events follow"));
        from
    };
    let feed = Feed { handle, seen: from, ready: first, ended: false, _place: place };
    let events = stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok::<_, Infallible>(event), feed))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// What one reader has not been sent yet. It holds a number and reads the common history when it can send, so that a
/// reader who is slow costs no memory.
struct Feed {
    handle: Handle,
    seen: u64,
    ready: VecDeque<sse::Event>,
    ended: bool,
    _place: Answering,
}

impl Feed {
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let (events, missed) = self.handle.events_after(self.seen);
            if missed {
                self.ended = true;
                let next = events.first().map_or(0, |event| event.index);
                let lost = next.saturating_sub(self.seen + 1);
                let data = json!({ "lost": lost }).to_string();
                return Some(sse::Event::default().event("lagged").data(data));
            }
            if let Some(last) = events.last() {
                self.seen = last.index;
                // Few at a time: what waits here is memory.
                let some = events.into_iter().take(BATCH);
                for event in some {
                    self.seen = event.index;
                    self.ready.push_back(encode(&event));
                }
            } else if self.handle.wait_after(self.seen).await.is_err() {
                return None;
            }
        }
    }
}

fn encode(event: &Event) -> sse::Event {
    let data = serde_json::to_string(event).unwrap_or_default();
    sse::Event::default().id(event.index.to_string()).event(event_name(event.event)).data(data)
}

/// The longest a poll may wait.
const LONGEST: Duration = Duration::from_secs(600);
/// How often a silent stream says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// When a reader that was cut off may come back.
const RETRY: Duration = Duration::from_secs(1);
const BATCH: usize = 16;
