//! Requests that must not succeed, over real sockets: each is refused with the right status, and the server still
//! answers afterwards.

mod support;

use std::{net::SocketAddr, time::Duration};

use bellwether_agent::{internal::hooks::HookView, status::EventKind};
use support::{Fake, TOKEN, get, raw, server};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

/// A name, the request with `{at}` for the address, and the statuses that are right; 0 is a connection closed without
/// an answer.
type Case = (&'static str, String, &'static [u16]);

fn read(name: &'static str, headers: &str, right: &'static [u16]) -> Case {
    (name, format!("GET /v1/status HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"), right)
}

/// A command that would be granted but for what the case adds or changes.
fn command(name: &'static str, headers: &str, body: &str, right: &'static [u16]) -> Case {
    let request = format!(
        "POST /v1/force-leave HTTP/1.1\r\nConnection: close\r\nHost: {{at}}\r\n{headers}\r\n{body}"
    );
    (name, request, right)
}

fn with_token(headers: &str) -> String {
    format!("Authorization: Bearer {TOKEN}\r\n{headers}")
}

fn path(name: &'static str, path: &str, right: &'static [u16]) -> Case {
    (name, format!("GET {path} HTTP/1.1\r\nHost: {{at}}\r\nConnection: close\r\n\r\n"), right)
}

/// A command in JSON with its length.
fn body(name: &'static str, body: &str, right: &'static [u16]) -> Case {
    let headers = with_token(&format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    ));
    command(name, &headers, body, right)
}

fn cases() -> Vec<Case> {
    let good = r#"{"member":"cellar"}"#;
    let length = format!("Content-Length: {}\r\n", good.len());
    let json = format!("Content-Type: application/json\r\n{length}");
    let chunks = format!("{:x}\r\n{good}\r\n0\r\n\r\n", good.len());
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    vec![
        // Names that are not ours.
        read("rebinding", "Host: evil.example:7739\r\n", &[421]),
        read("rebinding to a name that begins like ours", "Host: localhost.evil.example\r\n", &[421]),
        read("rebinding to a name that begins like an address", "Host: 127.0.0.1.evil.example\r\n", &[421]),
        read("no host", "", &[400]),
        read("two hosts", "Host: {at}\r\nHost: evil.example\r\n", &[400]),
        read("the unspecified address", "Host: 0.0.0.0:7739\r\n", &[421]),
        read("an address as one number", "Host: 2130706433\r\n", &[421]),
        read("a trailing dot", "Host: localhost.:7739\r\n", &[421]),
        read("a port that is none", "Host: localhost:port\r\n", &[400]),
        read("a user before the host", "Host: evil@localhost\r\n", &[400]),
        read("an address with a zone", "Host: [fe80::1%25eth0]\r\n", &[400, 421]),
        read("a host of control characters", "Host: local\x01host\r\n", &[400]),
        ("another server's address", "GET http://evil.example/v1/status HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n".to_owned(), &[421]),
        // Pages of other sites.
        read("another site", "Host: {at}\r\nOrigin: https://evil.example\r\n", &[403]),
        read("no site at all", "Host: {at}\r\nOrigin: null\r\n", &[403]),
        read("another port of this host", "Host: {at}\r\nOrigin: http://127.0.0.1:1\r\n", &[403]),
        read("two origins", "Host: {at}\r\nOrigin: http://{at}\r\nOrigin: https://evil.example\r\n", &[400]),
        read("a page of another site says so", "Host: {at}\r\nSec-Fetch-Site: cross-site\r\n", &[403]),
        read("a page of a neighbouring site says so", "Host: {at}\r\nSec-Fetch-Site: same-site\r\n", &[403]),
        ("a preflight", "OPTIONS /v1/leave HTTP/1.1\r\nHost: {at}\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n".to_owned(), &[403]),
        ("an upgrade by a page", "GET /v1/events HTTP/1.1\r\nHost: {at}\r\nOrigin: https://evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n".to_owned(), &[403]),
        command("a command by a page with the token", &with_token(&format!("Origin: https://evil.example\r\n{json}")), good, &[403]),
        // Without the token.
        command("no token", &json, good, &[401]),
        command("a wrong token", &format!("Authorization: Bearer {TOKEN}x\r\n{json}"), good, &[401]),
        command("half a token", &format!("Authorization: Bearer {}\r\n{json}", &TOKEN[..16]), good, &[401]),
        command("another scheme", &format!("Authorization: Basic {TOKEN}\r\n{json}"), good, &[401]),
        command("two tokens", &format!("Authorization: Bearer x\r\nAuthorization: Bearer {TOKEN}\r\n{json}"), good, &[400]),
        ("a token in the address", format!("POST /v1/leave?token={TOKEN} HTTP/1.1\r\nHost: {{at}}\r\nConnection: close\r\n\r\n"), &[400]),
        ("the same, in other letters", format!("POST /v1/leave?x=1&%74oken={TOKEN} HTTP/1.1\r\nHost: {{at}}\r\nConnection: close\r\n\r\n"), &[400]),
        // Bodies.
        command("a form", &with_token(&format!("Content-Type: application/x-www-form-urlencoded\r\n{length}")), good, &[415]),
        command("text", &with_token(&format!("Content-Type: text/plain\r\n{length}")), good, &[415]),
        command("no body", &with_token(""), "", &[400]),
        body("not JSON", "member=cellar", &[400]),
        body("JSON that ends early", r#"{"member":"#, &[400]),
        body("JSON and more", r#"{"member":"cellar"} {}"#, &[400]),
        body("deep JSON", &deep, &[400, 422]),
        body("another type", r#"{"member":7}"#, &[422]),
        body("another field", r#"{"member":"cellar","prune":true}"#, &[422]),
        body("a field twice", r#"{"member":"cellar","member":"attic"}"#, &[422]),
        body("half a character", r#"{"member":"\ud800"}"#, &[400]),
        body("a large body", &format!(r#"{{"member":"{}"}}"#, "x".repeat(70_000)), &[413]),
        command("a body announced larger than allowed", &with_token("Content-Type: application/json\r\nContent-Length: 99999999\r\n"), "", &[0, 400, 408, 413]),
        command("a length that is none", &with_token("Content-Type: application/json\r\nContent-Length: -1\r\n"), good, &[400]),
        command("two lengths", &with_token(&format!("Content-Type: application/json\r\n{length}Content-Length: 5\r\n")), good, &[400]),
        command("a length and chunks", &with_token(&format!("{json}Transfer-Encoding: chunked\r\n")), &chunks, &[400]),
        command("chunks and a length", &with_token(&format!("Transfer-Encoding: chunked\r\n{json}")), &chunks, &[400]),
        command("a chunk that is none", &with_token("Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"), "zz\r\n", &[400]),
        // Paths and methods.
        path("a path that climbs", "/v1/../../etc/passwd", &[404]),
        path("a path that climbs encoded", "/v1/%2e%2e/%2e%2e/etc/passwd", &[404]),
        path("double slashes", "//v1//status", &[404]),
        path("a zero byte", "/v1/elections/%00", &[404]),
        path("broken encoding", "/v1/elections/%zz", &[400, 404]),
        path("bytes that are no text", "/v1/elections/%ff", &[400]),
        path("a trailing slash", "/v1/status/", &[404]),
        path("a script for a name", "/v1/why/%3Cscript%3Ealert(2)%3C%2Fscript%3E", &[404]),
        ("reading by a write", "POST /v1/status HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned(), &[405]),
        ("writing by a read", "GET /v1/leave HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n".to_owned(), &[405]),
        ("deleting", "DELETE /v1/members HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n".to_owned(), &[405]),
        ("a method of our own", "FROBNICATE /v1/status HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n".to_owned(), &[405]),
        ("a tunnel", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n".to_owned(), &[400, 421]),
        // Heads.
        path("a long path", &format!("/{}", "a".repeat(60_000)), &[0, 400, 414, 431]),
        read("a large header", &format!("Host: {{at}}\r\nX: {}\r\n", "x".repeat(40_000)), &[0, 400, 431]),
        read("many headers", &format!("Host: {{at}}\r\n{}", "X: y\r\n".repeat(500)), &[0, 400, 431]),
        read("a header that continues", "Host: {at}\r\nX: y\r\n z\r\n", &[400]),
        ("no HTTP", "EHLO evil.example\r\n\r\n".to_owned(), &[0, 400]),
        ("another protocol", "\x16\x03\x01\x02\x00\x01\x00\x01\u{7c}".to_owned(), &[0, 400]),
        ("a version to come", "GET /v1/status HTTP/9.9\r\nHost: {at}\r\n\r\n".to_owned(), &[0, 400, 505]),
        ("an old version without a host", "GET /v1/status HTTP/1.0\r\n\r\n".to_owned(), &[400]),
    ]
}

async fn still_answers(at: SocketAddr, after: &str) {
    let reply = get(at, "/v1/leader").await;
    assert_eq!(reply.status, 200, "after {after}: {reply:?}");
}

#[tokio::test]
async fn hostile_requests_are_refused_and_the_server_lives_on() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    // What all commands here are made from is granted.
    let granted = support::post(at, "/v1/force-leave", r#"{"member":"cellar"}"#).await;
    assert_eq!(granted.status, 202, "{granted:?}");
    let chunked = format!(
        "POST /v1/force-leave HTTP/1.1\r\nHost: {at}\r\n{}Content-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n13\r\n{{\"member\":\"cellar\"}}\r\n0\r\n\r\n",
        with_token("")
    );
    let granted = raw(at, chunked.as_bytes()).await;
    assert_eq!(granted.status, 202, "{granted:?}");
    let cases = cases();
    assert!(cases.len() >= 30, "{}", cases.len());
    for (name, request, right) in &cases {
        let request = request.replace("{at}", &at.to_string());
        let mut stream = TcpStream::connect(at).await.unwrap();
        let _ = stream.write_all(request.as_bytes()).await;
        // Nothing more will come, as with a client that has gone.
        let _ = stream.shutdown().await;
        let reply = support::read(&mut stream).await;
        assert!(right.contains(&reply.status), "{name}: {reply:?}");
        assert!(!reply.head.contains("access-control-"), "{name}: {reply:?}");
        assert!(!reply.body.contains("garden"), "{name} was told something: {reply:?}");
        if reply.head.contains("content-type: application/json") {
            let told = reply.json();
            assert!(told["error"].is_string() && told["hint"].is_string(), "{name}: {told}");
        }
        if reply.status == 405 {
            assert!(reply.head.contains("\r\nallow: "), "{name}: {reply:?}");
        }
        still_answers(at, name).await;
    }
    assert_eq!(fake.asked.lock().unwrap().len(), 2, "none but the first two were granted");
}

#[tokio::test]
async fn whoever_sends_slowly_is_cut_off() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let begun = Instant::now();
    // A head that trickles, a head that never comes, a body that never comes, chunks that never end.
    let trickle = async {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let mut sent = stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n").await;
        while sent.is_ok() && begun.elapsed() < Duration::from_secs(12) {
            sent = stream.write_all(b"X: y\r\n").await;
            let mut answer = [0; 512];
            let read = timeout(Duration::from_millis(200), stream.read(&mut answer)).await;
            if matches!(read, Ok(Ok(0) | Err(_))) {
                return;
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(12), "trickling is put up with");
    };
    let silent = async {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let mut answer = Vec::new();
        let ended = timeout(Duration::from_secs(12), stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "silence is put up with");
    };
    let idle = async {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request = format!("GET /livez HTTP/1.1\r\nHost: {at}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let ended = timeout(Duration::from_secs(12), stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "a connection kept open is put up with for ever");
    };
    let body = |headers: &'static str| async move {
        let request = format!(
            "POST /v1/force-leave HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\n{headers}\r\n"
        );
        let reply = raw(at, request.as_bytes()).await;
        assert_eq!(reply.status, 408, "{headers}: {reply:?}");
    };
    tokio::join!(
        trickle,
        silent,
        idle,
        body("Content-Length: 100\r\n"),
        body("Transfer-Encoding: chunked\r\n")
    );
    still_answers(at, "slow requests").await;
}

#[tokio::test]
async fn too_many_connections_are_turned_away_and_places_come_free() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let mut held = Vec::new();
    for _ in 0..128 {
        // Connections that ask nothing make way; these are being answered.
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request = format!(
            "POST /v1/leave HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        held.push(stream);
    }
    // All of them have come that far.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let reply = get(at, "/v1/leader").await;
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(reply.head.contains("retry-after"), "{reply:?}");
    assert_eq!(reply.json()["error"], "too many connections");
    drop(held);
    let deadline = Instant::now() + Duration::from_secs(5);
    while get(at, "/v1/leader").await.status != 200 {
        assert!(Instant::now() < deadline, "no place has come free");
    }
}

/// Half a request each, from the same address: whoever asks a whole question gets an answer, and it is all counted.
#[tokio::test]
async fn half_open_connections_make_way() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let mut held = Vec::new();
    for number in 0..400 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let _ = stream.write_all(b"GET /v1/leader HTTP/1.1\r\nHost: loc").await;
        held.push(stream);
        if number % 10 == 0 {
            let reply = get(at, "/v1/leader").await;
            assert_eq!(reply.status, 200, "after {number}: {reply:?}");
        }
    }
    let metrics = get(at, "/metrics").await.body;
    let count = |reason: &str| -> u64 {
        let start =
            format!("bellwether_http_refused_total{{listener=\"http\",reason=\"{reason}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&*start));
        line.unwrap_or_else(|| panic!("no {start}: {metrics}")).parse().unwrap()
    };
    assert!((200..400).contains(&count("idle")), "{}", count("idle"));
    assert_eq!(count("connections"), 0);
}

/// Streams and long polls hold their places, so no caller gets all of those.
#[tokio::test]
async fn nobody_gets_all_streams() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let mut held = Vec::new();
    for number in 0..200 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let path = ["/v1/events", "/v1/events?index=0&wait=10m"][number % 2];
        let request = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        held.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    still_answers(at, "streams").await;
    let metrics = get(at, "/metrics").await.body;
    let refused = "http_refused_total{listener=\"http\",reason=\"streams\"} 136";
    assert!(metrics.contains(refused), "{metrics}");
}

/// Readers who never read cost a place each, not memory, and are given up.
#[tokio::test]
async fn streams_that_nobody_reads_are_bounded() {
    let fake = Fake::start();
    let at = server(&fake, HookView::none()).await;
    let mut lazy = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let request = format!("GET /v1/events HTTP/1.1\r\nHost: {at}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        lazy.push(stream);
    }
    for _ in 0..3000 {
        fake.happens(EventKind::LeaderElected);
    }
    still_answers(at, "readers who do not read").await;
    // The first that reads again is told everything or that something is missing.
    let mut text = String::new();
    let mut part = [0; 8192];
    while !text.contains("id: 3000") && !text.contains("event: lagged") {
        let read = timeout(Duration::from_secs(5), lazy[0].read(&mut part)).await;
        let read = read.expect("something to read").unwrap();
        assert!(read > 0, "ended without a word");
        text.push_str(&String::from_utf8_lossy(&part[..read]));
    }
}

/// The write itself has a deadline: a reader who stops reading is given up although the server has more to say.
#[tokio::test]
async fn a_reader_who_stops_reading_loses_the_connection() {
    let fake = Fake::start();
    // Far more than sockets hold.
    let tag = "x".repeat(1000);
    for member in 0..20_000 {
        let mut status = fake.status.lock().unwrap();
        let mut one = status.members[1].clone();
        one.name = format!("{member}");
        one.tags.insert("note".to_owned(), tag.clone());
        status.members.push(one);
    }
    let at = server(&fake, HookView::none()).await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!("GET /v1/members HTTP/1.1\r\nHost: {at}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(12)).await;
    let mut answer = Vec::new();
    let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "still connected");
    let text = String::from_utf8_lossy(&answer);
    let length = text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let length: usize = length.expect("a length").parse().unwrap();
    assert!(answer.len() < length, "all of {length} bytes were sent: the test proves nothing");
}
