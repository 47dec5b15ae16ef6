//! Connections: how many, how slow, how large.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
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
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::{Api, access::Local, deadline::Deadline, router};

/// Answers connections until the agent has stopped.
pub async fn serve(listener: TcpListener, api: Api) {
    let router = router(&api);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let callers = Callers::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = api.over() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(_) => {
                // Out of descriptors, as a rule: trying again at once would only burn the processor.
                sleep(BREATH).await;
                continue;
            }
        };
        let place = Arc::clone(&places).try_acquire_owned();
        let (Ok(place), Some(caller)) = (place, callers.enter(peer.ip())) else {
            tokio::spawn(turn_away(stream));
            continue;
        };
        let router = router.clone();
        tokio::spawn(async move {
            answer(stream, router).await;
            drop((place, caller));
        });
    }
}

/// The same on a thread of its own, so that whoever asks, however often, takes no time from the node.
///
/// # Errors
///
/// Why there is no thread, or the listener cannot be handed over.
pub fn serve_apart(listener: TcpListener, api: Api) -> io::Result<JoinHandle<()>> {
    let listener = listener.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("bellwether-http".to_owned()).spawn(move || {
        runtime.block_on(async {
            // It was listening a moment ago.
            if let Ok(listener) = TcpListener::from_std(listener) {
                serve(listener, api).await;
            }
        });
    })
}

async fn answer(stream: TcpStream, router: Router) {
    let Ok(local) = stream.local_addr() else { return };
    let router = TowerToHyperService::new(router);
    let stream = Deadline::new(stream, WRITE);
    let doubt = stream.doubt();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Local(local));
        request.extensions_mut().insert(doubt.clone());
        let answer = router.call(request);
        async move { answer.await as Result<Response, Infallible> }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    // Whatever went wrong was the peer's doing, and it has been told or is gone.
    let _ = connection.await;
}

async fn turn_away(mut stream: TcpStream) {
    let _ = timeout(BREATH, stream.write_all(FULL)).await;
}

/// How many connections each address has.
#[derive(Clone, Debug, Default)]
struct Callers(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

impl Callers {
    fn enter(&self, address: IpAddr) -> Option<Caller> {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = callers.entry(address).or_default();
        if *count >= EACH {
            return None;
        }
        *count += 1;
        Some(Caller { callers: self.clone(), address })
    }
}

#[derive(Debug)]
struct Caller {
    callers: Callers,
    address: IpAddr,
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut callers = self.callers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = callers.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                callers.remove(&self.address);
            }
        }
    }
}

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 67\r\n\r\n\
    {\"error\":\"too many connections\",\"hint\":\"close some, or try again\"}\n";
/// All connections, and those of one address. Above what people need, below what hurts.
const CONNECTIONS: usize = 256;
const EACH: usize = 128;
/// For the whole head of a request, also of the next one on a connection kept open.
const HEADERS: Duration = Duration::from_secs(5);
const MOST_HEADERS: usize = 64;
const LARGEST_HEAD: usize = 16 << 10;
/// For a peer to take some of what it is sent.
const WRITE: Duration = Duration::from_secs(10);
const BREATH: Duration = Duration::from_millis(100);
