//! Connections: how many, how slow, how large.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    thread::{self, JoinHandle},
    time::Duration,
};

use axum::{Router, response::Response};
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    time::sleep,
};

use super::{
    Api, Refusals,
    access::Local,
    deadline::Deadline,
    door::Door,
    places::{Caller, Limits, Place, Places},
    router,
};

/// Answers connections until the agent has stopped.
pub async fn serve(listener: TcpListener, api: Api) {
    let router = router(&api);
    let places = Places::new(HTTP, api.refusals(), |refusals: &Refusals| &refusals.http);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = api.over() => return,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors, as a rule: trying again at once would only burn the processor.
            sleep(BREATH).await;
            continue;
        };
        match places.enter(Caller::at(peer.ip())) {
            Some(place) => {
                let local = stream.local_addr().ok();
                tokio::spawn(answer(stream, local, place, router.clone()));
            }
            // It fits into the socket's buffer, or the caller does without: nobody is waited for, and nothing kept.
            None => {
                let _ = stream.try_write(FULL);
            }
        }
    }
}

/// The same at the local door.
async fn serve_door(door: Door, api: Api) {
    let (listener, allowed, _removed_at_the_end) = door.parts();
    // It was listening a moment ago.
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    let router = router(&api);
    let places = Places::new(DOOR, api.refusals(), |refusals: &Refusals| &refusals.socket);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = api.over() => return,
        };
        let Ok((stream, _)) = accepted else {
            sleep(BREATH).await;
            continue;
        };
        let user = match stream.peer_cred() {
            Ok(who) if allowed.is(who.uid()) => who.uid(),
            _ => {
                places.refused().count_user();
                let _ = stream.try_write(NOT_YOU);
                continue;
            }
        };
        match places.enter(Caller::User(user)) {
            Some(place) => {
                tokio::spawn(answer(stream, None, place, router.clone()));
            }
            None => {
                let _ = stream.try_write(FULL);
            }
        }
    }
}

/// [`serve`] on a thread of its own, so that whoever asks, however often, takes no time from the node.
///
/// # Errors
///
/// Why there is no thread, or the listener cannot be handed over.
pub(crate) fn serve_apart(listener: TcpListener, api: Api) -> io::Result<JoinHandle<()>> {
    let listener = listener.into_std()?;
    apart("bellwether-http", async move {
        // It was listening a moment ago.
        if let Ok(listener) = TcpListener::from_std(listener) {
            serve(listener, api).await;
        }
    })
}

/// The local door on a thread of its own, so that no crowd at the other one is in the way.
///
/// # Errors
///
/// Why there is no thread.
pub(crate) fn serve_door_apart(door: Door, api: &Api) -> io::Result<JoinHandle<()>> {
    apart("bellwether-door", serve_door(door, api.at_the_door()))
}

fn apart(
    name: &str,
    work: impl Future<Output = ()> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(work))
}

async fn answer<S>(stream: S, local: Option<SocketAddr>, place: Place, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let router = TowerToHyperService::new(router);
    let stream = Deadline::new(stream, WRITE);
    let (doubt, asker) = (stream.doubt(), place.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let answering = asker.answering();
        if let Some(local) = local {
            request.extensions_mut().insert(Local(local));
        }
        request.extensions_mut().insert(doubt.clone());
        request.extensions_mut().insert(asker.clone());
        let answer = router.call(request);
        async move {
            let answer = answer.await as Result<Response, Infallible>;
            drop(answering);
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // Whatever went wrong was the peer's doing, and it has been told or is gone.
        _ = connection => {}
        // It asks nothing, and others want to.
        () = place.lost() => {}
    }
}

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 67\r\n\r\n\
    {\"error\":\"too many connections\",\"hint\":\"close some, or try again\"}\n";
const NOT_YOU: &[u8] = b"HTTP/1.1 403 Forbidden\r\n\
    Content-Type: application/json\r\nConnection: close\r\nContent-Length: 142\r\n\r\n\
    {\"error\":\"this socket is not for your user\",\"hint\":\"it is for the agent's user, root and socket_group; ask over HTTP, or become one of them\"}\n";
/// Above what people need, below what hurts. A stream is a connection and a place in the history.
const HTTP: Limits = Limits { all: 256, each: 128, streams: 128, streams_each: 64 };
/// Those who get there may do anything; one of them that has gone mad must not be in the others' way.
const DOOR: Limits = Limits { all: 256, each: 128, streams: 128, streams_each: 64 };
/// For the whole head of a request, also of the next one on a connection kept open.
const HEADERS: Duration = Duration::from_secs(5);
const MOST_HEADERS: usize = 64;
const LARGEST_HEAD: usize = 16 << 10;
/// For a peer to take some of what it is sent.
const WRITE: Duration = Duration::from_secs(10);
const BREATH: Duration = Duration::from_millis(100);
