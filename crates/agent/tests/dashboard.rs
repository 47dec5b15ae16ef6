//! The dashboard's files over real sockets, and the stage that only `bellwether dev` has.

mod support;

use std::collections::BTreeSet;

use bellwether_agent::{
    internal::{api::Act, hooks::HookView},
    status::EventKind,
};
use serde_json::{Value, json};
use support::{Fake, get, raw, serve_as, server};

fn browse(at: std::net::SocketAddr, path: &str, headers: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {at}\r\nAccept: text/html,*/*;q=0.8\r\n{headers}Connection: close\r\n\r\n"
    )
}

/// The value of a header, in lower case.
fn header(reply: &support::Reply, name: &str) -> String {
    let value = reply.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    value.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn browsers_get_the_page_and_everybody_else_the_name() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let page = raw(at, browse(at, "/", "").as_bytes()).await;
    assert_eq!(
        (page.status, header(&page, "content-type").as_str()),
        (200, "text/html; charset=utf-8")
    );
    assert_eq!(header(&page, "vary"), "accept");
    assert!(page.body.contains(r#"data-stage="no""#), "{}", page.body);
    assert_eq!(get(at, "/").await.json(), json!({ "name": "kitchen" }));
}

#[tokio::test]
async fn every_file_the_page_needs_is_there_and_nothing_comes_from_elsewhere() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let mut waiting = vec!["/".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let reply = raw(at, browse(at, &path, "").as_bytes()).await;
        assert_eq!(reply.status, 200, "{path}");
        let kind = match path.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(header(&reply, "content-type"), kind, "{path}");
        let policy = header(&reply, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("data:"), "{path}: {policy}");
        assert_eq!(header(&reply, "x-content-type-options"), "nosniff");
        let text = reply.body.replace("http://www.w3.org/", "");
        for foreign in
            ["https://", "http://", "url(", "@import", " style=", "onclick", "innerHTML", "eval("]
        {
            assert!(!text.contains(foreign), "{path}: {foreign}");
        }
        // What it names, in quotes.
        for word in text.split(['"', '\'']) {
            let file = word.strip_prefix("/dashboard/").or_else(|| word.strip_prefix("./"));
            waiting.extend(file.map(|file| format!("/dashboard/{file}")));
        }
    }
    assert!(seen.len() >= 12, "{seen:?}");
    assert_eq!(get(at, "/dashboard/none.js").await.status, 404);
    assert_eq!(get(at, "/dashboard/..%2fapi%2fopenapi.json").await.status, 404);
}

#[tokio::test]
async fn what_a_browser_has_kept_is_not_sent_again() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    for path in ["/", "/dashboard/app.js"] {
        let first = raw(at, browse(at, path, "").as_bytes()).await;
        let tag = header(&first, "etag");
        assert_eq!(
            (tag.len(), header(&first, "cache-control").as_str()),
            (18, "no-cache"),
            "{path}"
        );
        for (known, expected) in [
            (tag.clone(), 304),
            (format!("\"other\", W/{tag}"), 304),
            ("\"other\"".to_owned(), 200),
        ] {
            let again = browse(at, path, &format!("If-None-Match: {known}\r\n"));
            let again = raw(at, again.as_bytes()).await;
            assert_eq!(again.status, expected, "{path} {known}");
            assert_eq!(again.body.is_empty(), expected == 304);
        }
    }
}

#[tokio::test]
async fn the_page_is_bound_to_our_names_and_says_nothing_by_itself() {
    let fake = Fake::start();
    let at = serve_as(&fake, HookView::none(), Some("192.0.2.7:7739")).await;
    let page = raw(at, browse(at, "/", "").as_bytes()).await;
    assert_eq!(page.status, 200, "a browser cannot send a token before it has the page");
    assert!(!page.body.contains("garden") && !page.body.contains("kitchen"));
    for (headers, expected) in [
        ("Host: evil.example\r\n", 421),
        ("Host: {at}\r\nOrigin: https://evil.example\r\n", 403),
        ("Host: {at}\r\nSec-Fetch-Site: cross-site\r\n", 403),
    ] {
        for path in ["/", "/dashboard/app.js"] {
            let headers = headers.replace("{at}", &at.to_string());
            let request = format!(
                "GET {path} HTTP/1.1\r\nAccept: text/html\r\n{headers}Connection: close\r\n\r\n"
            );
            assert_eq!(raw(at, request.as_bytes()).await.status, expected, "{path} {headers}");
        }
    }
}

fn act(at: std::net::SocketAddr, path: &str, headers: &str) -> String {
    format!(
        "POST /v1/dev/nodes/{path} HTTP/1.1\r\nHost: {at}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[tokio::test]
async fn only_a_stage_can_be_acted_on_and_only_by_its_own_page() {
    let fake = Fake::start();
    let plain = server(&fake, HookView::none()).await;
    let (at, done) = support::staged(&fake).await;
    let page = raw(at, browse(at, "/", "").as_bytes()).await;
    assert!(page.body.contains(r#"data-stage="yes""#));
    let own = format!("Origin: http://{at}\r\n");
    for (to, path, headers, expected) in [
        (at, "kitchen/kill", "", 202),
        (at, "kitchen/cut", own.as_str(), 202),
        (at, "kitchen/heal", "Sec-Fetch-Site: same-origin\r\n", 202),
        (at, "kitchen/revive", "", 409),
        (at, "kitchen/explode", "", 404),
        (at, "chicken/kill", "", 404),
        (at, "kitchen/status", "", 405),
        (at, "kitchen/kill", "Origin: https://evil.example\r\n", 403),
        (at, "kitchen/kill", "Origin: http://127.0.0.1:1\r\n", 403),
        (at, "kitchen/kill", "Sec-Fetch-Site: cross-site\r\n", 403),
        (plain, "kitchen/kill", "", 404),
    ] {
        let reply = raw(to, act(to, path, headers).as_bytes()).await;
        assert_eq!(reply.status, expected, "{path} {headers} {reply:?}");
    }
    let expected =
        [Act::Kill, Act::Cut, Act::Heal, Act::Revive].map(|act| ("kitchen".to_owned(), act));
    assert_eq!(*done.lock().unwrap(), expected);
    for path in ["/v1/dev/nodes", "/v1/dev/nodes/kitchen/status"] {
        assert_eq!(get(plain, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_stage_is_seen_through_the_eyes_of_any_node_and_the_dead_see_nothing() {
    let fake = Fake::start();
    let (at, _) = support::staged(&fake).await;
    let nodes = get(at, "/v1/dev/nodes").await.json();
    assert_eq!(
        nodes[0]["says"],
        json!({ "leader": "kitchen", "epoch": "7.3.1.0", "settled": true, "is_leader": true })
    );
    assert_eq!((&nodes[0]["here"], &nodes[0]["reaches"]), (&json!(true), &json!(["attic"])));
    assert_eq!((&nodes[1]["running"], &nodes[1]["says"]), (&json!(false), &Value::Null));
    let status = get(at, "/v1/dev/nodes/kitchen/status").await.json();
    assert_eq!(status["node"]["name"], "kitchen");
    assert_eq!(get(at, "/v1/dev/nodes/attic/status").await.json(), Value::Null);
    let why = get(at, "/v1/dev/nodes/kitchen/why/cellar").await.json();
    assert!(why["summary"].as_str().unwrap().contains("cellar is suspected"), "{why}");
    fake.happens(EventKind::LeaderLost);
    let events = get(at, "/v1/dev/nodes/kitchen/events?index=0&wait=5s").await.json();
    assert_eq!(events["events"][0]["event"], "leader-lost");
}
