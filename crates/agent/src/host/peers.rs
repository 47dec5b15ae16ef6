//! Where members were last known to live, on disk: a whole cluster that lost its power finds itself again though none of
//! those it was told to join is there.
//!
//! One file, `peers.json` in `data_dir`, beside the node's identity and of less worth: what is wrong with it is said, and
//! it is ignored. It is replaced as a whole, and only when there is an address that is not in it; never while nothing
//! changes.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use crate::{
    host::{discovery::Found, handle::Handle},
    status::EventKind,
};

/// A member, and where it was last.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct KnownPeer {
    /// For people who read the file.
    pub name: String,
    /// The best first.
    pub addresses: Vec<SocketAddr>,
}

/// Keys that are not here are passed over: a later version may have more to say.
#[derive(Debug, Deserialize, Serialize)]
struct Content {
    format: u64,
    cluster: String,
    peers: Vec<KnownPeer>,
}

/// Why the file is ignored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeersError {
    /// The file system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not ours.
    #[error("has more than {most} bytes", most = LARGEST)]
    TooLarge,
    /// It is not what this program writes.
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
    /// A later version has written it.
    #[error("format {0} is not known here, only {known} is", known = FORMAT)]
    Format(u64),
    /// It is about others.
    #[error("is of the cluster {0:?}")]
    Cluster(String),
}

/// The file, and what is in it.
#[derive(Debug)]
pub(crate) struct Peers {
    path: PathBuf,
    cluster: String,
    kept: Vec<KnownPeer>,
}

impl Peers {
    /// What the last life has left in this directory; nothing, and why, if that is of no use.
    pub(crate) fn open(directory: &Path, cluster: &str) -> (Self, Option<PeersError>) {
        let (path, cluster) = (directory.join("peers.json"), cluster.to_owned());
        let (kept, problem) = match read(&path, &cluster) {
            Ok(kept) => (kept, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        (Self { path, cluster, kept }, problem)
    }

    /// By which it is known among sources of addresses.
    pub(crate) fn source(&self) -> String {
        self.path.display().to_string()
    }

    /// All addresses, those of each peer in its order.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.kept.iter().flat_map(|peer| peer.addresses.iter().copied()).collect()
    }

    /// Takes over where these live, before all others. Whether there was anything new.
    fn learn(&mut self, living: Vec<KnownPeer>) -> bool {
        let known: BTreeSet<SocketAddr> = self.addresses().into_iter().collect();
        let mut living = living;
        living.iter_mut().for_each(|peer| peer.addresses.truncate(ADDRESSES));
        let taken: BTreeSet<SocketAddr> =
            living.iter().flat_map(|peer| peer.addresses.iter().copied()).collect();
        if taken.is_subset(&known) {
            return false;
        }
        let names: BTreeSet<String> = living.iter().map(|peer| peer.name.clone()).collect();
        // Who lives elsewhere now does not live there any more; nor does whoever lived where another does.
        self.kept.retain(|peer| !names.contains(&peer.name));
        self.kept.iter_mut().for_each(|peer| peer.addresses.retain(|one| !taken.contains(one)));
        living.append(&mut self.kept);
        living.retain(|peer| !peer.addresses.is_empty());
        living.truncate(PEERS);
        self.kept = living;
        true
    }

    fn write(&self) -> io::Result<()> {
        let (cluster, peers) = (self.cluster.clone(), self.kept.clone());
        let text = serde_json::to_vec_pretty(&Content { format: FORMAT, cluster, peers })?;
        // Whoever writes here holds the directory's lock.
        let beside = self.path.with_extension("json.new");
        let mut options = File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        match self.path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}

fn read(path: &Path, cluster: &str) -> Result<Vec<KnownPeer>, PeersError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut text = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(PeersError::TooLarge);
    }
    // What a later version calls peers need not be what this one does.
    #[derive(Deserialize)]
    struct Versioned {
        format: u64,
    }
    let Versioned { format } = serde_json::from_slice(&text)?;
    if format != FORMAT {
        return Err(PeersError::Format(format));
    }
    let mut content: Content = serde_json::from_slice(&text)?;
    if content.cluster != cluster {
        return Err(PeersError::Cluster(content.cluster));
    }
    content.peers.truncate(PEERS);
    content.peers.iter_mut().for_each(|peer| peer.addresses.truncate(ADDRESSES));
    Ok(content.peers)
}

/// Keeps the file, until the node has stopped.
pub(crate) async fn keep(mut peers: Peers, problem: Option<PeersError>, mut handle: Handle) {
    let source = peers.source();
    let told = |addresses| Found { source: source.clone(), addresses, next: None };
    // Those that come later are members already: only what an earlier life has left is tried.
    let left = peers.addresses();
    let first = match problem {
        Some(problem) => Err(format!("{problem}; the file is ignored")),
        None => Ok(left.clone()),
    };
    if handle.set_found(told(first)).await.is_err() {
        return;
    }
    let (mut index, mut unwritten) = (0, false);
    loop {
        let woken = match unwritten {
            // What a disk refuses it may take later, though nobody else comes.
            true => timeout(AGAIN, handle.wait_after(index)).await.unwrap_or(Ok(())),
            false => handle.wait_after(index).await,
        };
        if woken.is_err() {
            return;
        }
        // Members come in crowds, and introduce themselves a little later.
        sleep(CROWD).await;
        let (events, missed) = handle.events_after(index);
        index = events.last().map_or(index, |event| event.index);
        let comes = |kind| matches!(kind, EventKind::MemberJoin | EventKind::MemberUpdate);
        if !missed && !unwritten && !events.iter().any(|event| comes(event.event)) {
            continue;
        }
        let Ok(living) = handle.peers().await else { return };
        if !peers.learn(living) && !unwritten {
            continue;
        }
        let written = tokio::task::spawn_blocking(move || {
            let written = peers.write();
            (peers, written)
        });
        let Ok((same, written)) = written.await else { return };
        (peers, unwritten) = (same, written.is_err());
        let outcome = match written {
            Ok(()) => Ok(left.clone()),
            Err(error) => Err(format!("cannot be written: {error}")),
        };
        if handle.set_found(told(outcome)).await.is_err() {
            return;
        }
        sleep(RARELY).await;
    }
}

const FORMAT: u64 = 1;
/// Most that are remembered: to find one of them suffices.
const PEERS: usize = 128;
/// As many as are passed on of each, and where it was heard.
const ADDRESSES: usize = 4;
/// Well above what that many take.
const LARGEST: u64 = 256 << 10;
/// How long those that come together may take.
const CROWD: Duration = Duration::from_secs(2);
/// From one writing to the next, however much changes: memory cards wear out.
const RARELY: Duration = Duration::from_secs(10);
/// How often what the disk refused is written again.
const AGAIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::handle::Requested;

    fn peer(name: &str, addresses: &[&str]) -> KnownPeer {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        KnownPeer { name: name.to_owned(), addresses }
    }

    fn opened(folder: &Path) -> (Vec<KnownPeer>, Option<String>) {
        let (peers, problem) = Peers::open(folder, "garden");
        (peers.kept, problem.map(|problem| problem.to_string()))
    }

    #[test]
    fn what_was_learnt_is_there_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(opened(folder.path()), (vec![], None), "the first time there is no file");
        let (mut peers, _) = Peers::open(folder.path(), "garden");
        let [attic, cellar] =
            [peer("attic", &["192.0.2.1:1", "[2001:db8::1]:1"]), peer("cellar", &["192.0.2.2:2"])];
        assert!(peers.learn(vec![attic.clone(), cellar.clone()]));
        peers.write().unwrap();
        assert!(!peers.learn(vec![cellar.clone()]), "nothing new, whoever is there now");
        assert_eq!(opened(folder.path()), (vec![attic, cellar], None));
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "the draft has become the file");
    }

    #[test]
    fn who_moved_is_looked_for_where_it_is_and_the_oldest_are_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let (mut peers, _) = Peers::open(folder.path(), "garden");
        assert!(
            peers.learn(vec![peer("attic", &["192.0.2.1:1"]), peer("cellar", &["192.0.2.2:2"])])
        );
        assert!(peers.learn(vec![peer("attic", &["192.0.2.3:3"]), peer("shed", &["192.0.2.2:2"])]));
        assert_eq!(peers.kept, [peer("attic", &["192.0.2.3:3"]), peer("shed", &["192.0.2.2:2"])]);
        let crowd = (0..200).map(|at| peer(&format!("n{at}"), &[&format!("198.51.100.{at}:7")]));
        assert!(peers.learn(crowd.collect()));
        assert_eq!((peers.kept.len(), &*peers.kept[0].name), (PEERS, "n0"));
        let many = ["1", "2", "3", "4", "5"].map(|at| format!("203.0.113.{at}:7"));
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(peers.learn(vec![peer("many", &many)]));
        assert_eq!(peers.kept[0].addresses.len(), ADDRESSES);
        assert!(!peers.learn(vec![peer("many", &many)]), "what is not kept is not new each time");
        assert!(!peers.learn(vec![peer("nowhere", &[])]));
    }

    #[test]
    fn a_bad_file_says_what_is_bad_and_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers.json");
        let later = r#"{"format": 2, "peers": {"other": "shape"}}"#;
        let others = r#"{"format": 1, "cluster": "shed", "peers": []}"#;
        let no_address =
            r#"{"format": 1, "cluster": "garden", "peers": [{"name": "a", "addresses": ["x"]}]}"#;
        for (text, problem) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{\"format\": 1", "EOF while parsing an object at line 1 column 12"),
            ("[]", "invalid length 0, expected struct Versioned with 1 element at line 1 column 2"),
            ("{}", "missing field `format` at line 1 column 2"),
            (later, "format 2 is not known here, only 1 is"),
            (others, "is of the cluster \"shed\""),
            (no_address, "invalid socket address syntax at line 1 column 76"),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(opened(folder.path()), (vec![], Some(problem.to_owned())), "{text}");
        }
        fs::write(&path, vec![b' '; LARGEST as usize + 1]).unwrap();
        assert_eq!(opened(folder.path()).1.unwrap(), "has more than 262144 bytes");
        let more = r#"{"format": 1, "new": 7, "cluster": "garden", "peers": [{"name": "a", "addresses": ["192.0.2.1:1"], "seen": 3}]}"#;
        fs::write(&path, more).unwrap();
        assert_eq!(opened(folder.path()), (vec![peer("a", &["192.0.2.1:1"])], None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_or_written_is_told_and_written_once_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let (peers, _) = Peers::open(&gone, "garden");
        let (handle, mut inbox) = Handle::connect([]);
        let keeping = tokio::spawn(keep(peers, Some(PeersError::Format(2)), handle));
        let Some(Requested::Found(found)) = inbox.requests.recv().await else { panic!() };
        assert_eq!(found.source, gone.join("peers.json").display().to_string());
        let words = "format 2 is not known here, only 1 is; the file is ignored";
        assert_eq!(found.addresses, Err(words.to_owned()));
        inbox.record(crate::status::Event {
            index: inbox.next_index(),
            unix_ms: 0,
            event: EventKind::MemberJoin,
            election: None,
            node: None,
            epoch: None,
            valid_for_ms: None,
            detail: None,
        });
        let Some(Requested::Peers(reply)) = inbox.requests.recv().await else { panic!() };
        reply.send(vec![peer("attic", &["192.0.2.1:1"])]).unwrap();
        let Some(Requested::Found(found)) = inbox.requests.recv().await else { panic!() };
        assert!(found.addresses.unwrap_err().starts_with("cannot be written: No such file"));
        fs::create_dir(&gone).unwrap();
        let Some(Requested::Peers(reply)) = inbox.requests.recv().await else { panic!() };
        reply.send(vec![]).unwrap();
        let Some(Requested::Found(found)) = inbox.requests.recv().await else { panic!() };
        assert_eq!(found.addresses, Ok(vec![]), "nobody was left by an earlier life");
        assert_eq!(opened(&gone), (vec![peer("attic", &["192.0.2.1:1"])], None));
        keeping.abort();
    }
}
