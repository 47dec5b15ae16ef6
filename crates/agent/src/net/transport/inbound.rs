//! Streams that others begin: read whole, or given up.

use super::*;

/// What the tasks that serve streams have to say.
#[derive(Debug)]
pub(super) enum StreamEvent {
    /// This claims to be the beginning of a stream. No reply means it is not.
    Begun {
        head: Vec<u8>,
        chunk: Vec<u8>,
        last: bool,
        reply: oneshot::Sender<(OpenStream, Vec<u8>)>,
    },
    /// All of it is here.
    Complete { from: Peer, address: SocketAddr, body: Vec<u8> },
    /// It came to nothing. Refused beginnings are not told again.
    Failed(Refusal),
}

pub(super) async fn accept(
    listener: TcpListener,
    report: mpsc::Sender<StreamEvent>,
    untold: Arc<AtomicU64>,
) {
    let mut readers: JoinSet<IpAddr> = JoinSet::new();
    let mut from_each: BTreeMap<IpAddr, usize> = BTreeMap::new();
    loop {
        tokio::select! {
            Some(done) = readers.join_next() => {
                let Ok(ip) = done else { continue };
                let left = from_each.get(&ip).map_or(0, |count| count - 1);
                if left == 0 { from_each.remove(&ip) } else { from_each.insert(ip, left) };
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let each = from_each.entry(address.ip()).or_default();
                    if readers.len() >= INBOUND || *each >= INBOUND_EACH {
                        if *each == 0 { from_each.remove(&address.ip()); }
                        // The loop must not wait for whoever counts, nor lose count.
                        if report.try_send(StreamEvent::Failed(Refusal::StreamLimit)).is_err() {
                            untold.fetch_add(1, Ordering::Relaxed);
                        }
                        continue;
                    }
                    *each += 1;
                    let report = report.clone();
                    readers.spawn(async move {
                        let read = timeout(STREAM_DEADLINE, read(stream, address, &report)).await;
                        let outcome = match read {
                            Ok(Ok(outcome)) => outcome,
                            Ok(Err(reason)) => Some(StreamEvent::Failed(reason)),
                            Err(_) => Some(StreamEvent::Failed(Refusal::StreamTimeout)),
                        };
                        if let Some(outcome) = outcome {
                            // Nobody is left to tell if the transport is gone.
                            let _ = report.send(outcome).await;
                        }
                        address.ip()
                    });
                }
                // Out of descriptors, most likely: it will not be better at once.
                Err(_) => {
                    let _ = report.try_send(StreamEvent::Failed(Refusal::SocketError));
                    tokio::time::sleep(time::Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Reads one stream; none if its beginning was refused.
async fn read(
    mut stream: TcpStream,
    address: SocketAddr,
    report: &mpsc::Sender<StreamEvent>,
) -> Result<Option<StreamEvent>, Refusal> {
    let begun = timeout(HEAD_DEADLINE, async {
        let length = usize::from(stream.read_u8().await.map_err(|_| Refusal::StreamBroken)?);
        if length > MAX_HEADER {
            return Err(Refusal::NotOurs);
        }
        let mut head = vec![0; length];
        stream.read_exact(&mut head).await.map_err(|_| Refusal::StreamBroken)?;
        let mut chunk = Vec::new();
        let last = read_chunk(&mut stream, &mut chunk).await?;
        Ok((head, chunk, last))
    });
    let (head, chunk, mut last) = begun.await.map_err(|_| Refusal::StreamTimeout)??;
    let (reply, opened) = oneshot::channel();
    let begun = StreamEvent::Begun { head, chunk, last, reply };
    if report.send(begun).await.is_err() {
        return Ok(None);
    }
    let Ok((mut opened, mut chunk)) = opened.await else { return Ok(None) };
    chunk.truncate(chunk.len() - CHUNK_EXTRA);
    let mut body = chunk;
    let mut chunk = Vec::new();
    while !last {
        last = read_chunk(&mut stream, &mut chunk).await?;
        opened.open_next(&mut chunk, last)?;
        let plain = &chunk[..chunk.len() - CHUNK_EXTRA];
        if body.len() + plain.len() > Sealer::STREAM_ROOM {
            return Err(Refusal::TooLarge);
        }
        body.extend_from_slice(plain);
    }
    // One message, and nothing behind it.
    match stream.read_u8().await {
        Ok(_) => Err(Refusal::Malformed),
        Err(_) => Ok(Some(StreamEvent::Complete { from: opened.from, address, body })),
    }
}

async fn read_chunk(stream: &mut TcpStream, chunk: &mut Vec<u8>) -> Result<bool, Refusal> {
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix).await.map_err(|_| Refusal::StreamBroken)?;
    let (length, last) = chunk_prefix(prefix);
    if length > CHUNK + CHUNK_EXTRA {
        return Err(Refusal::TooLarge);
    }
    chunk.resize(length, 0);
    stream.read_exact(chunk).await.map_err(|_| Refusal::StreamBroken)?;
    Ok(last)
}

/// For the first chunk, from somebody who may be a stranger.
pub(super) const HEAD_DEADLINE: time::Duration = time::Duration::from_secs(2);
/// For all of a stream: 70 KB/s at least.
const STREAM_DEADLINE: time::Duration = time::Duration::from_secs(15);
