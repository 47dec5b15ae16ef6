//! Where those to join are. Nothing here is fatal: whoever cannot say it now may be able to later, and is asked for life.
//!
//! Every source answers one question, [`find`]: a name by all of its addresses, a service by those of all hosts that its
//! records name, a program by what it prints. Whoever answers is asked again after [`AGAIN`], as names move; whoever does
//! not after 1 s, 2 s, 4 s … 60 s. What each of them said last is told to the node, which tries the addresses, and says
//! in its status which source fails, why, and when it is asked next.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Semaphore, oneshot, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tracing::debug;

use crate::{
    config::Seed,
    host::{clock, handle::Handle},
};

mod program;
mod service;

use self::{program::ProgramError, service::ServiceError};

/// Why a source names nobody.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    /// The machine's resolver said so.
    #[error("{0}")]
    Name(#[from] io::Error),
    /// The records of a service.
    #[error("{0}")]
    Service(#[from] ServiceError),
    /// The program.
    #[error("{0}")]
    Program(#[from] ProgramError),
    /// What it names cannot be reached from here.
    #[error("stands for IPv6 addresses only, and bind is IPv4")]
    WrongFamily,
    /// It succeeded, and named nobody.
    #[error("stands for no address")]
    Nobody,
}

/// Which addresses this node can send to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Family {
    /// Its socket is of the older version.
    Ipv4,
    /// Its socket is of the newer one, which knows the older one too.
    Any,
}

impl Family {
    pub(crate) fn of(bind: SocketAddr) -> Self {
        if bind.is_ipv4() { Self::Ipv4 } else { Self::Any }
    }
}

/// All addresses that this source names now.
pub(crate) async fn find(seed: &Seed, family: Family) -> Result<Vec<SocketAddr>, FindError> {
    let all = match seed {
        Seed::Address(address) => vec![*address],
        Seed::Name { host, port } => resolve(host, *port).await?,
        Seed::Service(name) => service::find(name).await?,
        Seed::Program(path) => program::find(path).await?,
    };
    if all.is_empty() {
        return Err(FindError::Nobody);
    }
    let mut found = Vec::new();
    for address in all {
        let reachable = family == Family::Any || address.ip().to_canonical().is_ipv4();
        if reachable && !found.contains(&address) && found.len() < MOST {
            found.push(address);
        }
    }
    if found.is_empty() { Err(FindError::WrongFamily) } else { Ok(found) }
}

/// All addresses of this host, by the machine's own resolver, which cannot be interrupted: it has a thread of its own that
/// keeps nobody from stopping.
async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let (reply, answer) = oneshot::channel();
    let host = host.to_owned();
    std::thread::Builder::new().name("resolver".to_owned()).spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        // Whoever asked may have gone.
        let _ = reply.send(found.map(|all| all.take(MOST).collect()));
    })?;
    answer.await.unwrap_or_else(|_| Err(io::Error::other("the resolver panicked")))
}

/// The first address that any of these names within a moment: it is only to know by which way to reach them.
pub(crate) async fn glance(seeds: &[Seed], family: Family) -> Option<SocketAddr> {
    let look = async {
        for seed in seeds {
            if let Ok(found) = find(seed, family).await {
                return found.first().copied();
            }
        }
        None
    };
    timeout(MOMENT, look).await.ok().flatten()
}

/// What a source of addresses said last.
#[derive(Debug)]
pub struct Found {
    /// The source, as configured.
    pub source: String,
    /// What it names, or why nobody.
    pub addresses: Result<Vec<SocketAddr>, String>,
    /// When it is asked next, if ever.
    pub next: Option<bellwether_proto::Time>,
}

/// Those of `seeds` that are to be asked, and `besides`.
pub(crate) fn names(seeds: &[Seed], besides: &[String]) -> Vec<String> {
    let asked = seeds.iter().filter(|seed| is_asked(seed)).map(Seed::to_string);
    asked.chain(besides.iter().cloned()).collect()
}

fn is_asked(seed: &Seed) -> bool {
    !matches!(seed, Seed::Address(_))
}

/// Asks all sources that `seeds` names, for as long as it names them, and tells the node, until it has stopped. `besides`
/// are sources of which somebody else tells.
pub(crate) async fn follow(
    mut seeds: watch::Receiver<Vec<Seed>>,
    besides: Vec<String>,
    family: Family,
    handle: Handle,
) {
    loop {
        let now = seeds.borrow_and_update().clone();
        if handle.set_sources(names(&now, &besides)).await.is_err() {
            return;
        }
        let turns = Arc::new(Semaphore::new(AT_A_TIME));
        let mut asking = JoinSet::new();
        for seed in now.into_iter().filter(is_asked) {
            asking.spawn(ask(seed, family, Arc::clone(&turns), handle.clone()));
        }
        // Whoever is asked now is not asked any more.
        if seeds.changed().await.is_err() {
            asking.join_all().await;
            return;
        }
    }
}

async fn ask(seed: Seed, family: Family, turns: Arc<Semaphore>, handle: Handle) {
    let mut in_vain = 0;
    loop {
        let found = {
            let _turn = turns.acquire().await;
            find(&seed, family).await
        };
        match &found {
            Ok(addresses) => debug!(source = %seed, ?addresses, "a source of addresses answers"),
            Err(error) => debug!(source = %seed, %error, "a source of addresses names nobody"),
        }
        in_vain = if found.is_ok() { 0 } else { in_vain + 1 };
        let pause = pause(in_vain);
        let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        let next = clock::now() + bellwether_proto::Duration::from_micros(micros);
        let addresses = found.map_err(|error| error.to_string());
        let told = Found { source: seed.to_string(), addresses, next: Some(next) };
        if handle.set_found(told).await.is_err() {
            return;
        }
        sleep(pause).await;
    }
}

/// After so many tries in vain.
fn pause(in_vain: u32) -> Duration {
    match in_vain {
        0 => AGAIN,
        tries => FIRST_PAUSE.saturating_mul(1 << (tries - 1).min(16)).min(AGAIN),
    }
}

/// How often sources are asked again. Arbitrary.
const AGAIN: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Sources asked at a time: a resolver that does not answer takes its time over each.
const AT_A_TIME: usize = 16;
/// Addresses taken of one source.
const MOST: usize = 256;
/// For names at the start, before anything else is done.
const MOMENT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::handle::{Inbox, Requested};

    fn name(host: &str) -> Seed {
        Seed::Name { host: host.to_owned(), port: 7 }
    }

    /// Until it says something of a source.
    async fn told(inbox: &mut Inbox) -> Found {
        loop {
            match inbox.requests.recv().await.expect("it goes on") {
                Requested::Found(found) => return found,
                Requested::Sources(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let seconds: Vec<u64> = (1..9).map(|tries| pause(tries).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX), AGAIN);
        assert_eq!(pause(0), AGAIN);
    }

    #[tokio::test]
    async fn a_name_stands_for_all_addresses_that_can_be_sent_to() {
        let found = find(&name("localhost"), Family::Ipv4).await.unwrap();
        assert_eq!(found, ["127.0.0.1:7".parse().unwrap()]);
        let found = find(&name("localhost"), Family::Any).await.unwrap();
        assert!(found.iter().all(|one| one.ip().is_loopback() && one.port() == 7), "{found:?}");
        let six = Seed::Address("[::1]:7".parse().unwrap());
        let error = find(&six, Family::Ipv4).await.unwrap_err().to_string();
        assert_eq!(error, "stands for IPv6 addresses only, and bind is IPv4");
        let error = find(&name("nowhere.invalid"), Family::Any).await.unwrap_err().to_string();
        assert!(error.contains("lookup address"), "{error}");
    }

    #[tokio::test]
    async fn who_does_not_answer_is_asked_again_and_who_is_no_longer_configured_is_not() {
        let (handle, mut inbox) = Handle::connect([]);
        let (change, seeds) = watch::channel(vec![name("nowhere.invalid")]);
        let following = tokio::spawn(follow(seeds, vec!["peers".to_owned()], Family::Any, handle));
        let Some(Requested::Sources(names)) = inbox.requests.recv().await else { panic!() };
        assert_eq!(names, ["nowhere.invalid:7", "peers"]);
        for tries in 1..=2 {
            let found = told(&mut inbox).await;
            assert_eq!(found.source, "nowhere.invalid:7");
            assert!(found.addresses.is_err());
            let wait = found.next.unwrap().since(clock::now()).as_secs_f64();
            let most = pause(tries).as_secs_f64();
            assert!(wait <= most && wait > most - 0.5, "{wait} after {tries}");
        }
        change
            .send_replace(vec![name("localhost"), Seed::from(SocketAddr::from(([1, 2, 3, 4], 5)))]);
        let Some(Requested::Sources(names)) = inbox.requests.recv().await else { panic!() };
        assert_eq!(names, ["localhost:7", "peers"], "an address need not be asked for");
        let found = told(&mut inbox).await;
        assert_eq!(found.source, "localhost:7");
        assert!(found.addresses.unwrap().contains(&"127.0.0.1:7".parse().unwrap()));
        drop(inbox);
        drop(change);
        following.abort();
    }

    #[tokio::test]
    async fn a_glance_does_not_wait_for_long() {
        let hangs = tempfile::tempdir().unwrap();
        let path = hangs.path().join("hangs");
        program::tests::write(&path, "sleep 60");
        let begun = std::time::Instant::now();
        assert_eq!(glance(&[Seed::Program(path)], Family::Any).await, None);
        assert!(begun.elapsed() < MOMENT * 3);
        let fixed = "192.0.2.1:7".parse().unwrap();
        assert_eq!(
            glance(&[name("nowhere.invalid"), Seed::Address(fixed)], Family::Any).await,
            Some(fixed)
        );
    }
}
