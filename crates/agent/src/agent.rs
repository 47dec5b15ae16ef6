//! A whole agent: node, HTTP interface and hooks, started together and stopped together.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use bellwether_proto::{
    Boot, ElectionId, Mode, Seed,
    membership::medley::Addresses,
    node::{About, Settings, packet::Dialect},
};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinError, JoinHandle},
};
use tracing::{Instrument as _, info, info_span, warn};

use crate::{
    api::{self, Api, Door, Shut, Token},
    config::{self, Config, Seed as Joined, Socket},
    host::{
        adapter::{self, Adapter},
        clock,
        discovery::{self, Family},
        driver::{self, Driver},
        election::Election,
        handle::{self, Handle, Request},
        hooks::{HookDoor, HookView, Hooks},
        log::{self, EVENTS},
        neighbours,
        notify::{Manager, Watchdog},
        peers::{self, Peers},
        record::{Header, RecordError, Recorder},
        store::{Store, StoreError},
        terms,
    },
    net::{
        key::{KeyError, KeyRing},
        seal::{Sealer, Versions},
        transport::{BindError, Transport},
    },
    status::EventKind,
};

/// Why an agent could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The cluster's key.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// The identity, or the disk it is kept on.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The port for other agents.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// The port for HTTP.
    #[error("cannot answer HTTP on {address}: {source}; choose another with --api")]
    Api {
        /// The address that was refused.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The socket for those on this machine.
    #[error("socket {0}; choose another with --socket, or none")]
    Socket(#[from] Shut),
    /// The token file.
    #[error("{0}")]
    Token(String),
    /// Where its node's inputs are to be written down.
    #[error("record: {0}")]
    Record(#[from] RecordError),
    /// Settings that contradict each other.
    #[error("{0}")]
    Setting(String),
}

/// Why settings were not taken over.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// These cannot change while it runs.
    #[error("{0}: only a restart changes that; nothing was changed")]
    NeedsRestart(String),
    /// The key file.
    #[error("{0}; nothing was changed")]
    Start(#[from] StartError),
    /// The agent says no.
    #[error("{0}")]
    Refused(#[from] handle::Error),
}

impl From<KeyError> for ReloadError {
    fn from(error: KeyError) -> Self {
        Self::Start(error.into())
    }
}

/// A running agent.
///
/// It runs for as long as this is held. Dropped, it leaves as [`leave`](Self::leave) does, and nobody waits for it: it
/// hands over what it leads and says goodbye as a task of the runtime, so that nobody has to find out by its silence. It has
/// no time for that if the runtime ends with it.
#[derive(Debug)]
pub struct Agent {
    handle: Handle,
    address: SocketAddr,
    api: SocketAddr,
    /// Where those on this machine ask it; or why nowhere, if it was to be where they look.
    socket: Result<Option<PathBuf>, Shut>,
    node: JoinHandle<Option<Boot>>,
    others: Vec<JoinHandle<()>>,
    /// Whom to talk to first, for those that ask where they are.
    doors: watch::Sender<Vec<Joined>>,
    /// Answer HTTP until the node has stopped.
    serving: Vec<std::thread::JoinHandle<()>>,
}

impl Agent {
    /// Starts one, with the key its configuration names.
    ///
    /// # Errors
    ///
    /// [`StartError`]. Nothing is left running.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        Self::start_watched(config, &KeyRing::read(&config.key_file)?, None, None).await
    }

    /// Starts one with these keys.
    ///
    /// # Errors
    ///
    /// [`StartError`]. Nothing is left running.
    pub async fn start_with(config: &Config, ring: &KeyRing) -> Result<Self, StartError> {
        Self::start_watched(config, ring, None, None).await
    }

    async fn start_watched(
        config: &Config,
        ring: &KeyRing,
        watchdog: Option<Watchdog>,
        above: Option<Boot>,
    ) -> Result<Self, StartError> {
        let listener = TcpListener::bind(config.api)
            .await
            .map_err(|source| StartError::Api { address: config.api, source })?;
        Self::start_on(config, ring, Some(listener), watchdog, above).await
    }

    /// Starts one with these keys that answers only through its handle; whoever starts it sees to `config.api`.
    ///
    /// # Errors
    ///
    /// [`StartError`]. Nothing is left running.
    pub async fn start_unserved(config: &Config, ring: &KeyRing) -> Result<Self, StartError> {
        Self::start_on(config, ring, None, None, None).await
    }

    async fn start_on(
        config: &Config,
        ring: &KeyRing,
        listener: Option<TcpListener>,
        watchdog: Option<Watchdog>,
        above: Option<Boot>,
    ) -> Result<Self, StartError> {
        if let Some(election) = config.elections.iter().find(|one| one.mode.mode() == Mode::Leased)
            && config.data_dir.is_none()
        {
            let words = format!(
                "{} is a leased election, and this node, without a data_dir, would forget what it has promised when it \
                 restarts; set data_dir",
                election.name
            );
            return Err(StartError::Setting(words));
        }
        let api = listener.as_ref().map_or(Ok(config.api), TcpListener::local_addr);
        let api = api.map_err(|source| StartError::Api { address: config.api, source })?;
        let store = Store::open(config.data_dir.as_deref(), above)?.with_dialect(config.dialect);
        let remembered =
            config.data_dir.as_deref().map(|directory| Peers::open(directory, &config.cluster));
        let token = Token::of(config).map_err(StartError::Token)?;
        let sealer = Sealer::new(ring, &config.cluster, store.me())
            .with_sense(|body| adapter::decode(body).map(drop));
        let sealer = match config.dialect {
            Dialect::Present => sealer,
            Dialect::Next => sealer.speaking(Versions::NEXT),
        };
        let mut transport = Transport::bind(config.bind, sealer).await?;
        if config.is_multicast() {
            transport.join_group(config.multicast, &config.interfaces)?;
        }
        let (local, fixed) = (transport.local(), addresses(&config.join));
        let mut towards = fixed.clone();
        towards.extend(remembered.iter().flat_map(|(peers, _)| peers.addresses()));
        let family = Family::of(local);
        if towards.is_empty() && config.advertise.is_empty() && config.bind.ip().is_unspecified() {
            // Only to know which of its addresses they reach it by.
            towards.extend(discovery::glance(&config.join, family).await);
        }
        let own = driver::own_address(local, &towards);
        let settings = settings(config, own);
        let plan = settings.plan().map_err(|error| StartError::Setting(error.to_string()))?;
        let now = clock::now();
        let seed = getrandom::u64().unwrap_or_else(|_| now.as_micros());
        let header = || Header {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            unix_ms: clock::unix_ms(),
            me: store.me(),
            seed,
            settings,
            durable: store.durable(),
        };
        let limit = u64::from(config.record_limit) << 20;
        let recorder = config.record.as_ref();
        let recorder = recorder.map(|path| Recorder::create(path, limit, &header())).transpose()?;
        let node = Adapter::new(plan, &config.cluster, store, fixed, now, Seed::new(seed))
            .with_recorder(recorder)
            .with_dialect(config.dialect);
        let (door, socket) = match listener.as_ref().map(|_| Door::open(config, api.port())) {
            Some(Ok(door)) => {
                let path = door.as_ref().map(|door| door.path().to_owned());
                (door, Ok(path))
            }
            // What nobody asked for by name may be missing, and is missed aloud.
            Some(Err(shut)) if config.socket == Socket::Usual => (None, Err(shut)),
            Some(Err(shut)) => return Err(shut.into()),
            None => (None, Ok(None)),
        };
        let hook_door = door.as_ref().map(|door| HookDoor {
            path: door.path().to_owned(),
            group: config.socket_group.as_ref().map(|group| group.id),
        });
        let (handle, inbox) =
            Handle::connect(config.elections.iter().map(|one| (one.name.clone(), one.mode.mode())));
        // A process may have several: each says which it is.
        let span = info_span!("agent", name = config.name);
        let node = Driver::new(node, transport, inbox, watchdog).run();
        let node = tokio::spawn(node.instrument(span.clone()));
        let (hooks, view) = if config.hooks.is_empty() {
            (None, HookView::none())
        } else {
            let (hooks, view) = Hooks::new(config.hooks.clone(), &*config.name, handle.clone());
            (Some(hooks.with_door(hook_door)), view)
        };
        let watched = view.clone();
        let (doors, asked) = watch::channel(config.join.clone());
        let besides: Vec<String> = remembered.iter().map(|(peers, _)| peers.source()).collect();
        // Before any of them says anything. A node that has stopped already has others to tell.
        let _: Result<_, handle::Error> =
            handle.set_sources(discovery::names(&config.join, &besides)).await;
        let asking = discovery::follow(asked, besides, family, handle.clone());
        let mut others = vec![
            tokio::spawn(asking.instrument(span.clone())),
            tokio::spawn(log::tell_refusals(handle.clone()).instrument(span.clone())),
        ];
        if own.is_none() && config.advertise.is_empty() {
            others.push(tokio::spawn(driver::find_own_address(local, towards, handle.clone())));
        }
        if let Some((peers, problem)) = remembered {
            others.push(tokio::spawn(peers::keep(peers, problem, handle.clone())));
        }
        let mut serving = Vec::new();
        if let Some(listener) = listener {
            let interface = Api::new(config, api, token, handle.clone(), view);
            let failed = |source| StartError::Api { address: config.api, source };
            if let Some(door) = door {
                serving.push(api::serve_door_apart(door, &interface).map_err(failed)?);
            }
            serving.push(api::serve_apart(listener, interface).map_err(failed)?);
        }
        for (election, table) in &config.tables {
            let follow = neighbours::follow(election.clone(), table.clone(), handle.clone());
            others.push(tokio::spawn(follow));
        }
        if let Some(hooks) = hooks {
            others.push(tokio::spawn(hooks.run().instrument(span)));
            others.push(tokio::spawn(bar_the_dirty(config.clone(), handle.clone(), watched)));
        }
        let address = own.unwrap_or(local);
        Ok(Self { handle, address, api, socket, node, others, doors, serving })
    }

    /// The election of this name.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchElection`](handle::Error::NoSuchElection): its settings name no such election.
    pub fn election(&self, name: &str) -> Result<Election, handle::Error> {
        self.handle.election(name)
    }

    /// How to ask it all else.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Where other agents reach it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it answers HTTP.
    pub fn api(&self) -> SocketAddr {
        self.api
    }

    /// Where those on its machine ask it without a token, if anywhere.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_ref().ok().and_then(Option::as_deref)
    }

    /// Takes over what has changed in the settings, and the keys as the file has them now.
    ///
    /// # Errors
    ///
    /// [`ReloadError`]. Nothing has changed then.
    pub async fn reload(&self, now: &Config, newer: &Config) -> Result<Vec<String>, ReloadError> {
        let changes = now.changes(newer);
        let fixed: Vec<&str> =
            changes.iter().filter(|change| !change.live).map(|change| &*change.field).collect();
        if !fixed.is_empty() {
            return Err(ReloadError::NeedsRestart(fixed.join(", ")));
        }
        let ring = KeyRing::read(&newer.key_file)?;
        let old = now.tags.keys().map(|key| (key.clone(), None));
        let new = newer.tags.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
        let tags: BTreeMap<_, _> = old.chain(new).collect();
        if now.tags != newer.tags {
            self.handle.request(Request::Tags(tags)).await?;
        }
        if now.join != newer.join {
            self.handle.request(Request::Join(addresses(&newer.join))).await?;
            self.doors.send_replace(newer.join.clone());
        }
        let worth = newer.elections.iter().map(|one| (one.name.clone(), one.priority));
        self.handle.change(ring, worth).await?;
        Ok(changes.into_iter().map(|change| change.field).collect())
    }

    /// Hands over, says goodbye and waits until all is done.
    pub async fn leave(self) {
        // If it has stopped already there is nobody to ask.
        let _: Result<_, handle::Error> = self.handle.request(Request::Leave).await;
        let _: Result<_, Panicked> = self.stopped().await;
    }

    /// Waits until it has stopped. If it has because others know a later life of it, and nobody knew this one yet, that
    /// life: its boot number is one of the past, as after a disk was restored, and it is to be started above.
    ///
    /// # Errors
    ///
    /// [`Panicked`]: it did not stop because it was asked to.
    pub async fn stopped(mut self) -> Result<Option<Boot>, Panicked> {
        let ended = (&mut self.node).await;
        for task in self.others.drain(..) {
            task.abort();
        }
        for serving in self.serving.drain(..) {
            // They end by themselves now, and port and socket are free then.
            let _ = tokio::task::spawn_blocking(|| serving.join()).await;
        }
        match ended.map_err(JoinError::try_into_panic) {
            Err(Ok(panic)) => Err(Panicked(words(&*panic))),
            Ok(later) => Ok(later),
            Err(Err(_)) => Ok(None),
        }
    }

    /// Stops it without a word, as if its cable had been cut. Its port and its directory are free afterwards.
    pub async fn kill(mut self) {
        self.node.abort();
        self.others.iter().for_each(JoinHandle::abort);
        let _ = (&mut self.node).await;
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Whoever has stopped needs no telling. One that has so many questions waiting that no other fits hangs.
        if !self.handle.try_leave() {
            self.node.abort();
            self.others.iter().for_each(JoinHandle::abort);
        }
    }
}

/// Who has yet to undo what leading had set up does not lead again.
async fn bar_the_dirty(config: Config, handle: Handle, mut hooks: HookView) {
    let dirty = |hooks: &HookView| -> BTreeSet<String> {
        let names = config.elections.iter().map(|election| election.name.clone());
        names.filter(|name| hooks.is_dirty(name)).collect()
    };
    let mut told = BTreeSet::new();
    while hooks.changed().await {
        let now = dirty(&hooks);
        if now != told && handle.set_dirty(now.clone()).await.is_err() {
            return;
        }
        told = now;
    }
}

/// A fault of this program: what decides who leads has stopped half way.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the node panicked: {0}")]
pub struct Panicked(String);

/// What a panic said, if it was text.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}

/// How an agent's life ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// It left, or was told to stop.
    Left,
    /// A later life of its identity runs elsewhere. To start it again would set the two against each other.
    DuplicateIdentity,
    /// It panicked. Others have taken over from it or will; started again, it is a member like any other.
    Panicked,
}

/// Runs an agent until it has left, or is told to stop by TERM or INT; then it leaves. On HUP it takes over what
/// `reread` finds. A service manager that asks for it (`NOTIFY_SOCKET`) is told when it is ready, reads its settings again,
/// or stops.
///
/// # Errors
///
/// [`StartError`].
pub async fn run(
    config: &Config,
    reread: impl Fn() -> Result<Config, String>,
) -> Result<Ended, StartError> {
    use tokio::signal::unix::{SignalKind, signal};
    // From the first moment on: before there is a handler, HUP would end us.
    let listen = |kind| signal(kind).map_err(|error| StartError::Setting(error.to_string()));
    let [mut terminate, mut interrupt, mut hangup] = [
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
        listen(SignalKind::hangup())?,
    ];
    let manager = Manager::of_environment().map_err(StartError::Setting)?;
    let (mut config, mut above) = (config.clone(), None);
    for _ in 0..MOST_LIVES {
        let ring = KeyRing::read(&config.key_file)?;
        let agent = Agent::start_watched(&config, &ring, manager.watchdog(), above).await?;
        let (name, address, api) = (&config.name, agent.address(), agent.api());
        let socket = agent.socket().map(|path| format!(" or {}", path.display()));
        let socket = socket.unwrap_or_default();
        let words = format!("{name} listens on {address}; ask it at http://{api}{socket}");
        info!(target: EVENTS, about = "started", "{words}");
        if let Err(shut) = &agent.socket {
            let words = format!("{shut}; {NO_SOCKET}");
            warn!(target: EVENTS, about = "no-socket", "{}", words);
        }
        if config.data_dir.is_none() {
            warn!(target: EVENTS, about = "not-durable", "{}", FORGETFUL);
        }
        manager.ready();
        let handle = agent.handle().clone();
        let life = async {
            loop {
                tokio::select! {
                    () = handle.stopped() => break,
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                    _ = hangup.recv() => {
                        manager.reloading();
                        let taken = match reread() {
                            Ok(newer) => {
                                let taken = agent.reload(&config, &newer).await;
                                if taken.is_ok() {
                                    config = newer;
                                }
                                taken.map_err(|error| error.to_string())
                            }
                            Err(error) => Err(error),
                        };
                        tell_reload(taken);
                        manager.ready();
                        continue;
                    }
                }
                manager.stopping();
                let _: Result<_, handle::Error> = handle.request(Request::Leave).await;
                break;
            }
            agent.stopped().await
        };
        match life.await {
            Err(panicked) => {
                let words = format!("{panicked}; this process ends, and is to be started again");
                warn!(target: EVENTS, about = "panicked", "{}", words);
                return Ok(Ended::Panicked);
            }
            Ok(None) => {
                let (events, _) = handle.events_after(0);
                let duplicate =
                    events.iter().any(|event| event.event == EventKind::DuplicateIdentity);
                return Ok(if duplicate { Ended::DuplicateIdentity } else { Ended::Left });
            }
            Ok(later) => {
                warn!(target: EVENTS, about = "boot-behind", "{}", BEHIND);
                above = later;
            }
        }
    }
    Ok(Ended::DuplicateIdentity)
}

/// Others that bear our identity and do the same come to an end with us.
const MOST_LIVES: usize = 8;
/// Said by an agent that starts again by itself.
const BEHIND: &str = "others know a later life of this node than the one it was to begin, so its disk is an old copy; it begins one \
                      above that, and whoever else runs under this identity is told to stop";
/// Said once, by an agent without a socket in a place where it would be looked for.
const NO_SOCKET: &str = "so those on this machine ask over HTTP, where anybody may be in their way; \
                         set socket to a path, or to none";
/// Said once, by an agent without a directory.
const FORGETFUL: &str = "no data_dir is set: this node forgets who it is and which epochs there were when it stops, and \
                         epochs begin anew once all such nodes have stopped; set data_dir, or --data-dir";

fn tell_reload(taken: Result<Vec<String>, String>) {
    match taken {
        Ok(fields) if fields.is_empty() => {
            info!(target: EVENTS, about = "reload", "read again: the keys; no setting has changed");
        }
        Ok(fields) => {
            let fields = fields.join(", ");
            info!(target: EVENTS, about = "reload", "read again: the keys, and {fields}");
        }
        Err(problem) => {
            // It points at its place over several lines, and a log has one.
            let words = problem.split_whitespace().collect::<Vec<_>>().join(" ");
            warn!(target: EVENTS, about = "reload", "not read again: {words}");
        }
    }
}

/// Those to join of which the address is known.
fn addresses(join: &[Joined]) -> Vec<SocketAddr> {
    let address = |seed: &Joined| match seed {
        Joined::Address(address) => Some(*address),
        Joined::Name { .. } | Joined::Service(_) | Joined::Program(_) => None,
    };
    join.iter().filter_map(address).collect()
}

/// What the node of these settings is to be.
fn settings(config: &Config, own: Option<SocketAddr>) -> Settings {
    let advertise = match config.advertise.is_empty() {
        // Without an address yet, it is where others hear it from.
        true => own.into_iter().collect(),
        false => config.advertise.clone(),
    };
    let alike = |election: &config::Election| {
        let terms = terms::of(config, &election.name, election.mode.mode());
        (ElectionId::named(&election.name), terms)
    };
    Settings {
        about: About {
            name: config.name.clone(),
            position: config.position,
            tags: config.tags.clone(),
            terms: config.elections.iter().map(alike).collect(),
        },
        addresses: Addresses::new(advertise),
        timing: config.timing,
        exponent: config.membership.exponent,
        feedback: config.membership.feedback,
        elections: config.elections.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_the_node_is_no_goodbye() {
        let mut config = Config::new("kitchen", "garden", "unused");
        config.bind = "127.0.0.1:0".parse().unwrap();
        config.api = "127.0.0.1:0".parse().unwrap();
        let ring = KeyRing::generate().unwrap();
        let mut agent = Agent::start_with(&config, &ring).await.unwrap();
        agent.node.abort();
        agent.node = tokio::spawn(async { panic!("half {}", "way") });
        let error = agent.stopped().await.unwrap_err();
        assert_eq!(error.to_string(), "the node panicked: half way");
        let agent = Agent::start_with(&config, &ring).await.unwrap();
        agent.node.abort();
        assert_eq!(agent.stopped().await, Ok(None), "it was ended, and did not fail");
    }
}
