//! The dashboard: a few files that are part of the program, and need nothing from anywhere else.

use std::sync::LazyLock;

use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};

use super::{Api, Problem, query};

/// One file as it is served.
struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! file {
    ($name:literal, $kind:expr) => {
        File { name: $name, kind: $kind, text: include_str!(concat!("dashboard/", $name)) }
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const FILES: &[File] = &[
    file!("style.css", "text/css; charset=utf-8"),
    file!("icon.svg", "image/svg+xml"),
    file!("theme.js", SCRIPT),
    file!("app.js", SCRIPT),
    file!("feed.js", SCRIPT),
    file!("graph.js", SCRIPT),
    file!("layout.js", SCRIPT),
    file!("leaders.js", SCRIPT),
    file!("map.js", SCRIPT),
    file!("members.js", SCRIPT),
    file!("stage.js", SCRIPT),
    file!("timeline.js", SCRIPT),
    file!("why.js", SCRIPT),
    file!("words.js", SCRIPT),
];
const INDEX: &str = include_str!("dashboard/index.html");

/// The page, and the one that has a stage to act on.
static PLAIN: LazyLock<String> = LazyLock::new(|| INDEX.replace("{stage}", "no"));
static STAGED: LazyLock<String> = LazyLock::new(|| INDEX.replace("{stage}", "yes"));

/// The text of one of the dashboard's files, for pages that look like it.
pub fn dashboard_file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|file| file.name == name).map(|file| file.text)
}

/// Nothing but what this server serves, nothing inline, and nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page for those who ask for one. It says nothing by itself, so that a browser without a token may have it too: what
/// it shows, it has to ask for.
pub(super) fn index(api: &Api, headers: &HeaderMap) -> Response {
    let page = if api.shared.stage().is_some() { &STAGED } else { &PLAIN };
    let mut response = kept(headers, "text/html; charset=utf-8", page);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

pub(super) async fn file(
    State(_): State<Api>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = query::named(path)?;
    let file = FILES.iter().find(|file| file.name == name);
    let file = file.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "the dashboard has no such file", "it begins at /")
    })?;
    Ok(kept(&headers, file.kind, file.text))
}

/// Browsers may keep it, but ask each time whether it is still the same: the next start may be of another version.
fn kept(headers: &HeaderMap, kind: &'static str, text: &'static str) -> Response {
    let tag = format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..16]);
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known.filter_map(|tags| tags.to_str().ok()).flat_map(|tags| tags.split(','));
    let mut response = match known.any(|one| one.trim().trim_start_matches("W/") == tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, kind)], text).into_response(),
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    for (name, value) in [
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
