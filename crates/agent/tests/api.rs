//! The HTTP interface over real sockets: what is documented is what is answered.

mod support;

use std::{collections::BTreeSet, time::Duration};

use bellwether_agent::{Request, internal::hooks::HookView, status::EventKind};
use serde_json::{Value, json};
use support::{Fake, TOKEN, get, post, raw, serve_as, server};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Whether `value` is what `schema` says: the part of JSON Schema that the document uses.
fn fits(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let target = document.pointer(name.trim_start_matches('#'));
        return fits(document, target.ok_or(format!("{at}: no {name}"))?, value, at);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|one| fits(document, one, value, at).is_ok()).count();
        return (fitting == 1).then_some(()).ok_or(format!("{at}: {value} fits {fitting} choices"));
    }
    if let Some(choices) = schema["enum"].as_array() {
        choices
            .contains(value)
            .then_some(())
            .ok_or(format!("{at}: {value} is not one of {choices:?}"))?;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    kinds.contains(&kind).then_some(()).ok_or(format!("{at}: {value} is not {kinds:?}"))?;
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(i, item)| fits(document, &schema["items"], item, &format!("{at}.{i}"))),
        Value::Object(fields) => {
            for required in schema["required"].as_array().into_iter().flatten() {
                let name = required.as_str().expect("a name");
                fields.get(name).ok_or(format!("{at}: {name} is missing"))?;
            }
            fields.iter().try_for_each(|(name, field)| {
                let at = format!("{at}.{name}");
                match (&schema["properties"][name], &schema["additionalProperties"]) {
                    (Value::Null, Value::Bool(false)) => Err(format!("{at} is not documented")),
                    (Value::Null, Value::Null | Value::Bool(_)) => Ok(()),
                    (Value::Null, more) => fits(document, more, field, &at),
                    (documented, _) => fits(document, documented, field, &at),
                }
            })
        }
        _ => Ok(()),
    }
}

#[test]
fn the_judge_of_answers_can_say_no() {
    let document = json!({});
    let schema = json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "type": ["integer", "null"] } },
    });
    for (value, right) in [
        (json!({ "a": 1 }), true),
        (json!({ "a": null }), true),
        (json!({ "a": "1" }), false),
        (json!({}), false),
        (json!({ "a": 1, "b": 2 }), false),
        (json!([]), false),
    ] {
        assert_eq!(fits(&document, &schema, &value, "").is_ok(), right, "{value}");
    }
}

/// Requests every route of the document and holds the answer against its schema.
#[tokio::test]
async fn every_documented_route_answers_as_documented() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let (staged, _stage) = support::staged(&fake).await;
    fake.happens(EventKind::BecameLeader);
    let document = get(at, "/openapi.json").await.json();
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let at = if path.starts_with("/v1/dev/") { staged } else { at };
            let path = path.replace("{election}", "web").replace("{member}", "attic");
            let path = path.replace("{node}", "kitchen").replace("{act}", "cut");
            let path = path.replace("{file}", "app.js");
            let path =
                if path.ends_with("/events") { format!("{path}?index=0&wait=5s") } else { path };
            let body = match operation["operationId"].as_str() {
                Some("transfer") => r#"{"to":"attic"}"#,
                Some("report") => r#"{"cost":70,"member":"attic"}"#,
                Some("join") => r#"{"addresses":["192.0.2.1:7738"]}"#,
                Some("forceLeave") => r#"{"member":"cellar"}"#,
                Some("tags") => r#"{"tags":{"floor":"3","old":null}}"#,
                _ => "",
            };
            if !body.is_empty() {
                let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
                let body: Value = serde_json::from_str(body).expect("JSON");
                fits(&document, schema, &body, &path).expect("a documented body");
            }
            let reply = match method.as_str() {
                "get" => get(at, &path).await,
                "post" => post(at, &path, body).await,
                other => {
                    let method = other.to_ascii_uppercase();
                    let request = format!(
                        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"
                    );
                    raw(at, request.as_bytes()).await
                }
            };
            asked += 1;
            let status = reply.status.to_string();
            let response = &operation["responses"][&status];
            assert!(response.is_object(), "{method} {path}: {status} is not documented: {reply:?}");
            let content = response["content"].as_object().expect("content");
            let kind = reply.head.lines().find_map(|line| line.strip_prefix("content-type: "));
            let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
            if method == "head" {
                assert_eq!(reply.body, "");
                continue;
            }
            let schema = content.get(kind).unwrap_or_else(|| panic!("{method} {path}: {kind}"));
            if kind == "application/json" {
                fits(&document, &schema["schema"], &reply.json(), &format!("{method} {path}"))
                    .unwrap_or_else(|problem| panic!("{problem}"));
            }
        }
    }
    assert!(asked >= 30, "{asked}");
    let requests = fake.asked.lock().unwrap().clone();
    assert_eq!(requests.len(), 7, "{requests:?}");
    assert!(requests.contains(&Request::Resign("web".to_owned())));
}

/// What is not documented is not there, and the other way round.
#[tokio::test]
async fn every_route_is_documented() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let source = include_str!("../src/api/mod.rs");
    let routed: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("route(\"")?.split('"').next())
        .collect();
    let document = get(at, "/openapi.json").await.json();
    let documented: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(routed, documented);
}

#[tokio::test]
async fn the_leader_is_named_on_top_and_none_is_null() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let leader = get(at, "/v1/leader").await.json();
    assert_eq!(leader["name"], "kitchen");
    assert_eq!(leader["id"], "0000000000000007");
    assert_eq!(leader["epoch"], "7.3.1.0");
    assert_eq!((&leader["mode"], &leader["settled"]), (&json!("eventual"), &json!(true)));
    let lost = get(at, "/v1/elections/lost").await;
    assert_eq!((lost.status, &lost.json()["name"]), (200, &Value::Null));
    assert_eq!(get(at, "/").await.json(), json!({ "name": "kitchen" }));
}

#[tokio::test]
async fn the_role_probe_is_for_load_balancers() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    for (election, expected) in [("web", 200), ("backup", 503), ("lost", 503), ("wep", 404)] {
        for method in ["GET", "HEAD", "OPTIONS"] {
            let request = format!(
                "{method} /v1/elections/{election}/is-leader HTTP/1.1\r\nHost: {at}\r\n\
                 Connection: close\r\n\r\n"
            );
            let reply = raw(at, request.as_bytes()).await;
            assert_eq!(reply.status, expected, "{method} {election}: {reply:?}");
        }
    }
    let hint = get(at, "/v1/elections/wep/is-leader").await.json();
    assert_eq!(hint["hint"], "did you mean \"web\"?");
}

#[tokio::test]
async fn metrics_are_text_that_prometheus_reads() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let page = get(at, "/metrics").await.body;
    for line in [
        "bellwether_build_info{version=\"0.1.0\"} 1",
        "bellwether_leadership_age_seconds{group=\"web\"} 12",
        "bellwether_agreement_ratio{group=\"web\"} 0.8",
        "bellwether_leaderless_seconds_total{group=\"lost\"} 0.75",
        "bellwether_accusations_refuted_total 0",
        "bellwether_dropped_total{reason=\"replay\"} 3",
        "bellwether_leader_changes_total{group=\"backup\"} 2",
        "bellwether_members{state=\"alive\"} 2",
        "bellwether_election_messages_total{group=\"web\",purpose=\"elect\"} 12",
        "bellwether_election_messages_total{group=\"web\",purpose=\"keep\"} 28",
        "bellwether_score{group=\"web\",voter=\"kitchen\"} 0.975",
        "leader_election_master_status{name=\"web\"} 1",
        "leader_election_master_status{name=\"backup\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
    }
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
    }
}

#[tokio::test]
async fn a_long_poll_waits_for_the_next_event_and_no_longer() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let empty = get(at, "/v1/events?index=0").await.json();
    assert_eq!(empty, json!({ "index": 0, "missed": false, "events": [] }));
    let waiting = tokio::spawn(async move { get(at, "/v1/events?index=0&wait=30s").await.json() });
    fake.happens(EventKind::LeaderLost);
    let events = waiting.await.unwrap();
    assert_eq!(events["index"], 1);
    assert_eq!(events["events"][0]["event"], "leader-lost");
    let former_life = get(at, "/v1/events?index=99&wait=30s").await.json();
    assert_eq!((&former_life["index"], &former_life["missed"]), (&json!(1), &json!(true)));
    for wrong in ["index=x", "index=-1", "index=0&wait=-1", "index=0&wait=9h", "indx=0"] {
        let reply = get(at, &format!("/v1/events?{wrong}")).await;
        assert_eq!(reply.status, 400, "{wrong}: {reply:?}");
    }
}

/// Reads a stream until `until` has been seen.
async fn stream(at: std::net::SocketAddr, headers: &str, until: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(at).await.expect("a connection");
    let request = format!("GET /v1/events HTTP/1.1\r\nHost: {at}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("a connection");
    let text = read_until(&mut stream, until).await;
    (stream, text)
}

async fn read_until(stream: &mut TcpStream, until: &str) -> String {
    let (mut text, mut part) = (String::new(), [0; 4096]);
    while !text.contains(until) {
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut part));
        let read =
            read.await.unwrap_or_else(|_| panic!("no {until} in {text}")).expect("a connection");
        assert!(read > 0, "the stream ended before {until}: {text}");
        text.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    text
}

#[tokio::test]
async fn a_stream_is_resumed_where_it_broke() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let (mut live, _) = stream(at, "", "events follow").await;
    fake.happens(EventKind::LeaderElected);
    fake.happens(EventKind::BecameLeader);
    let text = read_until(&mut live, "became-leader").await;
    assert!(text.contains("id: 1") && text.contains("event: leader-elected"), "{text}");
    drop(live);
    fake.happens(EventKind::StoppedLeading);
    let (_, text) = stream(at, "Last-Event-ID: 2\r\n", "stopped-leading").await;
    assert!(text.contains("id: 3") && !text.contains("id: 2\n"), "{text}");
    for unknown in ["77", "yesterday", "-1"] {
        let (_, text) = stream(at, &format!("Last-Event-ID: {unknown}\r\n"), "event: reset").await;
        assert!(text.contains("id: 3"), "{unknown}: {text}");
    }
}

#[tokio::test]
async fn an_agent_that_has_stopped_is_not_ready() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    assert_eq!(get(at, "/readyz").await.status, 200);
    // A connection from before: a new one may find nobody listening.
    let mut kept = TcpStream::connect(at).await.unwrap();
    kept.write_all(format!("GET /livez HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(support::read(&mut kept).await.status, 200);
    fake.stop();
    fake.handle.stopped().await;
    kept.write_all(format!("GET /livez HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes()).await.unwrap();
    let reply = support::read(&mut kept).await;
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(reply.head.contains("retry-after: 1"));
}

#[tokio::test]
async fn off_loopback_reading_needs_the_token_and_probes_do_not() {
    let fake = Fake::start();
    let at = serve_as(&fake, HookView::none(), Some("192.0.2.7:7739")).await;
    for (path, expected) in [
        ("/v1/status", 401),
        ("/v1/leader", 401),
        ("/v1/events?index=0", 401),
        ("/metrics", 401),
        ("/", 401),
        ("/healthz", 200),
        ("/livez", 200),
        ("/readyz", 200),
        ("/openapi.json", 200),
        ("/v1/elections/web/is-leader", 200),
    ] {
        assert_eq!(get(at, path).await.status, expected, "{path}");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Connection: close\r\n\r\n"
        );
        assert_eq!(raw(at, request.as_bytes()).await.status, 200, "{path} with the token");
    }
}

#[tokio::test]
async fn off_loopback_probes_tell_strangers_no_names() {
    let fake = Fake::start();
    let open = server(&fake, HookView::none()).await;
    let at = serve_as(&fake, HookView::none(), Some("192.0.2.7:7739")).await;
    for path in ["/healthz", "/v1/elections/lots/is-leader", "/v1/elections/nothing/is-leader"] {
        let told = |reply: &support::Reply| {
            ["lost", "web", "backup"].iter().any(|name| reply.body.contains(name))
        };
        let reply = get(at, path).await;
        assert!(!told(&reply), "{path}: {reply:?}");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Connection: close\r\n\r\n"
        );
        for reply in [raw(at, request.as_bytes()).await, get(open, path).await] {
            assert!(told(&reply), "{path}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn health_says_what_the_disk_refuses_and_which_tables_are_filling() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let health = get(at, "/healthz").await.json();
    assert_eq!(health["disk"], "node.json: No space left on device");
    assert_eq!(health["filling"], serde_json::json!(["peers", "addresses"]));
    {
        let mut status = fake.status.lock().unwrap();
        (status.disk, status.to_join.tried, status.peers.remembered) = (None, 3, 3);
    }
    let health = get(at, "/healthz").await.json();
    assert_eq!((&health["disk"], &health["filling"]), (&Value::Null, &serde_json::json!([])));
}

#[tokio::test]
async fn an_agent_that_hangs_leads_nothing() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let (handle, inbox) = bellwether_agent::Handle::connect([]);
    let stuck = Fake { handle, ..fake.clone() };
    let hung = server(&stuck, HookView::none()).await;
    let path = "/v1/elections/web/is-leader";
    assert_eq!(get(at, path).await.status, 200);
    // It is there, but nobody takes questions from the other end.
    let reply = get(hung, path).await;
    assert_eq!((reply.status, &reply.json()["error"]), (503, &"the agent does not answer".into()));
    drop(inbox);
}
