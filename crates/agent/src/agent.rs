//! A whole agent: node, HTTP interface and hooks, started together and stopped together.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, SocketAddr},
};

use bellwether_proto::{
    Seed,
    churn::estimate,
    election::{
        announce, bandit,
        churn_tolerant::{self, Criterion, Form, Multicast},
        leased,
    },
    mechanism::pinged::Patience,
    membership::{
        medley::{self, Attention, Strategy},
        ring,
    },
    stack::{Group, Standing},
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    api::{self, Api, Token},
    clock,
    config::{
        self, Config, Election, Feedback, HIGHEST, Learned, Mode, Neighbours, OnIsolation, Policy,
        Seed as Door, Timing,
    },
    core::{self, Core, Electorate, Protocol, Seat, Settings},
    handle::{Handle, Refused, Request, Stopped},
    hooks::{HookView, Hooks},
    key::{KeyError, KeyRing},
    log::{self, Level, Line},
    neighbours,
    node::{self, Node},
    notify::{Manager, Watchdog},
    profile::About,
    seal::Sealer,
    status::Role,
    store::{Store, StoreError},
    terms,
    transport::{BindError, Transport},
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
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The token file.
    #[error("{0}")]
    Token(String),
    /// A seed's name.
    #[error("join {name:?}: {source}")]
    Seed {
        /// As configured.
        name: String,
        /// Why it has no address.
        source: io::Error,
    },
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
    /// The key file, or a name to look up.
    #[error("{0}; nothing was changed")]
    Start(#[from] StartError),
    /// The agent says no.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// It is too late.
    #[error("{0}")]
    Stopped(#[from] Stopped),
}

impl From<KeyError> for ReloadError {
    fn from(error: KeyError) -> Self {
        Self::Start(error.into())
    }
}

/// A running agent. Dropped, it goes on; ask its [`Handle`] to leave.
#[derive(Debug)]
pub struct Agent {
    handle: Handle,
    address: SocketAddr,
    api: SocketAddr,
    node: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
}

impl Agent {
    /// Starts one, with the key its configuration names.
    ///
    /// # Errors
    ///
    /// [`StartError`]. Nothing is left running.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        Self::start_watched(config, &KeyRing::read(&config.key_file)?, None).await
    }

    /// Starts one with these keys.
    ///
    /// # Errors
    ///
    /// [`StartError`]. Nothing is left running.
    pub async fn start_with(config: &Config, ring: &KeyRing) -> Result<Self, StartError> {
        Self::start_watched(config, ring, None).await
    }

    async fn start_watched(
        config: &Config,
        ring: &KeyRing,
        watchdog: Option<Watchdog>,
    ) -> Result<Self, StartError> {
        let listener = TcpListener::bind(config.api)
            .await
            .map_err(|source| StartError::Api { address: config.api, source })?;
        Self::start_on(config, ring, Some(listener), watchdog).await
    }

    /// Starts one with these keys that answers only through its handle; whoever starts it sees to `config.api`.
    ///
    /// # Errors
    ///
    /// [`StartError`]. Nothing is left running.
    pub async fn start_unserved(config: &Config, ring: &KeyRing) -> Result<Self, StartError> {
        Self::start_on(config, ring, None, None).await
    }

    async fn start_on(
        config: &Config,
        ring: &KeyRing,
        listener: Option<TcpListener>,
        watchdog: Option<Watchdog>,
    ) -> Result<Self, StartError> {
        let api = listener.as_ref().map_or(Ok(config.api), TcpListener::local_addr);
        let api = api.map_err(|source| StartError::Api { address: config.api, source })?;
        let seeds = seeds(&config.join).await?;
        let store = Store::open(config.data_dir.as_deref())?;
        let token = Token::of(config).map_err(StartError::Token)?;
        let sealer = Sealer::new(ring, &config.cluster, store.me());
        let mut transport = Transport::bind(config.bind, sealer).await?;
        if config.is_multicast() {
            transport.join_group(config.multicast, &config.interfaces)?;
        }
        let address = node::own_address(transport.local(), &seeds);
        let settings = settings(config, address)?;
        let now = clock::now();
        let seed = getrandom::u64().unwrap_or_else(|_| now.as_micros());
        let core = Core::new(settings, store, seeds, now, Seed::new(seed));
        let (handle, inbox) = Handle::connect();
        let patience = config.timing.election * 12;
        let node = Node::new(core, transport, inbox, config.timing.guard, patience, watchdog);
        let node = tokio::spawn(node.run());
        let (hooks, view) = if config.hooks.is_empty() {
            (None, HookView::none())
        } else {
            let (hooks, view) = Hooks::new(config.hooks.clone(), &*config.name, handle.clone());
            (Some(hooks), view)
        };
        let watched = view.clone();
        let mut others = vec![tokio::spawn(look_names_up(config.join.clone(), handle.clone()))];
        if let Some(listener) = listener {
            let interface = Api::new(config, api, token, handle.clone(), view);
            others.push(tokio::spawn(api::serve(listener, interface)));
        }
        for election in &config.elections {
            if let Mode::Central(central) = &election.mode
                && let Neighbours::Table(table) = &central.neighbours
            {
                let follow =
                    neighbours::follow(election.name.clone(), table.clone(), handle.clone());
                others.push(tokio::spawn(follow));
            }
        }
        if let Some(hooks) = hooks {
            others.push(tokio::spawn(hooks.run()));
            others.push(tokio::spawn(bar_the_dirty(config.clone(), handle.clone(), watched)));
        }
        Ok(Self { handle, address, api, node, others })
    }

    /// How to ask it.
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
        let seeds = seeds(&newer.join).await?;
        let old = now.tags.keys().map(|key| (key.clone(), None));
        let new = newer.tags.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
        let tags: BTreeMap<_, _> = old.chain(new).collect();
        if now.tags != newer.tags {
            self.handle.request(Request::Tags(tags)).await??;
        }
        if now.join != newer.join {
            self.handle.request(Request::Join(seeds)).await??;
        }
        let worth = newer.elections.iter().map(|one| (one.name.clone(), one.priority));
        self.handle.change(ring, worth).await?;
        Ok(changes.into_iter().map(|change| change.field).collect())
    }

    /// Hands over, says goodbye and waits until all is done.
    pub async fn leave(self) {
        // If it has stopped already there is nobody to ask.
        let _: Result<_, Stopped> = self.handle.request(Request::Leave).await;
        self.stopped().await;
    }

    /// Waits until it has stopped.
    pub async fn stopped(mut self) {
        let _ = (&mut self.node).await;
        for task in self.others.drain(..) {
            task.abort();
        }
    }

    /// Stops it without a word, as if its cable had been cut.
    pub fn kill(self) {
        self.node.abort();
        self.others.iter().for_each(JoinHandle::abort);
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

/// Runs an agent until it has left, or is told to stop by TERM or INT; then it leaves. On HUP it takes over what
/// `reread` finds. What happens is handed to `write`, which must not block. A service manager that asks for it
/// (`NOTIFY_SOCKET`) is told when it is ready, reads its settings again, or stops.
///
/// # Errors
///
/// [`StartError`].
pub async fn run(
    config: &Config,
    reread: impl Fn() -> Result<Config, String>,
    write: impl Fn(Line),
) -> Result<(), StartError> {
    use tokio::signal::unix::{SignalKind, signal};
    // From the first moment on: before there is a handler, HUP would end us.
    let listen = |kind| signal(kind).map_err(|error| StartError::Setting(error.to_string()));
    let [mut terminate, mut interrupt, mut hangup] = [
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
        listen(SignalKind::hangup())?,
    ];
    let manager = Manager::of_environment().map_err(StartError::Setting)?;
    let ring = KeyRing::read(&config.key_file)?;
    let agent = Agent::start_watched(config, &ring, manager.watchdog()).await?;
    let (name, address, api) = (&config.name, agent.address(), agent.api());
    let words = format!("{name} listens on {address}; ask it at http://{api}");
    write(Line::new(Level::Info, "started", &words));
    manager.ready();
    let (handle, mut config) = (agent.handle().clone(), config.clone());
    let lines = log::follow(handle.clone(), &write);
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
                    write(reloaded(taken));
                    manager.ready();
                    continue;
                }
            }
            manager.stopping();
            let _: Result<_, Stopped> = handle.request(Request::Leave).await;
            break;
        }
        agent.stopped().await;
    };
    tokio::join!(life, lines);
    Ok(())
}

fn reloaded(taken: Result<Vec<String>, String>) -> Line {
    let (level, words) = match taken {
        Ok(fields) if fields.is_empty() => {
            (Level::Info, "read again: the keys; no setting has changed".to_owned())
        }
        Ok(fields) => (Level::Info, format!("read again: the keys, and {}", fields.join(", "))),
        Err(problem) => {
            // It points at its place over several lines, and a log has one.
            let words: Vec<&str> = problem.split_whitespace().collect();
            (Level::Warning, format!("not read again: {}", words.join(" ")))
        }
    };
    Line::new(level, "reload", &words)
}

/// Where those to join are, as far as names can be looked up now; an error only if that is nowhere.
async fn seeds(join: &[Door]) -> Result<Vec<SocketAddr>, StartError> {
    let (mut seeds, mut failed) = (Vec::new(), None);
    for seed in join {
        match tokio::net::lookup_host((seed.host.as_str(), seed.port)).await {
            Ok(found) => seeds.extend(found),
            Err(source) => {
                let name = format!("{}:{}", seed.host, seed.port);
                failed.get_or_insert(StartError::Seed { name, source });
            }
        }
    }
    match failed {
        Some(error) if seeds.is_empty() => Err(error),
        _ => Ok(seeds),
    }
}

/// Names may be given to other addresses, or be known only later.
async fn look_names_up(mut join: Vec<Door>, handle: Handle) {
    join.retain(|seed| seed.host.parse::<IpAddr>().is_err());
    while !join.is_empty() {
        tokio::time::sleep(LOOK_UP).await;
        if let Ok(addresses) = seeds(&join).await
            && handle.request(Request::Join(addresses)).await.is_err()
        {
            return;
        }
    }
}

/// How often names are looked up again. Arbitrary.
const LOOK_UP: std::time::Duration = std::time::Duration::from_secs(60);

fn settings(config: &Config, address: SocketAddr) -> Result<Settings, StartError> {
    let refused = |error: &dyn std::fmt::Display| StartError::Setting(error.to_string());
    let timing = &config.timing;
    let membership = membership(config).map_err(|error| refused(&error))?;
    let (mut elections, mut alike) = (Vec::new(), BTreeMap::new());
    for election in &config.elections {
        let protocol = protocol(config, election).map_err(|error| {
            StartError::Setting(format!("election {:?}: {error}", election.name))
        })?;
        // Whoever has no vote cannot be elected either.
        let listens = match &election.mode {
            Mode::Learned(learned) => !learned.voters.contains(&config.name),
            _ => false,
        };
        let observer = election.role != Role::Candidate || listens;
        let standing = Standing { observer, attribute: election.priority };
        let on_isolation = match &election.mode {
            Mode::Eventual(eventual) => eventual.on_isolation,
            Mode::Announced(_) | Mode::Leased(_) | Mode::Learned(_) | Mode::Central(_) => {
                OnIsolation::default()
            }
        };
        let learns = match &election.mode {
            Mode::Eventual(eventual) => eventual.learned,
            Mode::Leased(leased) => leased.learned.is_some(),
            Mode::Announced(_) | Mode::Learned(_) | Mode::Central(_) => false,
        };
        let name = election.name.clone();
        alike.insert(Group::named(&name), terms::of(config, &name, protocol.mode()));
        elections.push(Seat { name, protocol, standing, on_isolation, dirty: false, learns });
    }
    let (name, position, tags) = (config.name.clone(), config.position, config.tags.clone());
    let about = About { name, position, tags, terms: alike };
    let advertise =
        if config.advertise.is_empty() { vec![address] } else { config.advertise.clone() };
    let c = config.elections.iter().filter_map(|election| match &election.mode {
        Mode::Eventual(eventual) => Some(u32::from(eventual.c)),
        Mode::Announced(_) | Mode::Leased(_) | Mode::Learned(_) | Mode::Central(_) => None,
    });
    let survey = estimate::Config::of(10).map_err(|error| refused(&error))?;
    let settings = Settings {
        about,
        cluster: config.cluster.clone(),
        advertise,
        membership,
        elections,
        survey: estimate::Config { start: c.max().unwrap_or(0), ..survey },
        timeout: timing.election,
        retry: timing.grace * 2,
        sample: timing.period * 5,
    };
    settings.introduction().map_err(|error| {
        StartError::Setting(format!("name, tags and elections together: {error}"))
    })?;
    Ok(settings)
}

/// Feedback waits in the chapter's proportions to the period, as its times are not ours.
fn membership(config: &Config) -> Result<medley::Config, medley::ConfigError> {
    let timing = &config.timing;
    let strategy = match config.feedback() {
        Feedback::None => Strategy::Medley,
        Feedback::Active => Strategy::Active,
        Feedback::Passive => Strategy::Passive,
        Feedback::Both => Strategy::Both,
    };
    let interval = timing.suspicion.div(2).max(timing.period * 4);
    let patience = Patience { interval, gain: 0.125, silence: Some(interval * 2) };
    let attention = Attention { timeout: timing.period * 20, chance: 0.1 };
    let membership = medley::Config::new(strategy, medley::Form::Hardened)
        .with_exponent(config.exponent())?
        .with_times(timing.period, timing.ack, timing.suspicion)?
        .with_patience(patience)?
        .with_attention(attention)?
        .with_beat(Some(timing.beat))?;
    Ok(membership.with_local_health(true))
}

fn protocol(config: &Config, election: &Election) -> Result<Protocol, String> {
    let timing = &config.timing;
    match &election.mode {
        Mode::Leased(settings) => leased(config, election, settings).map(Protocol::Leased),
        Mode::Central(central) => {
            let machine = central.machine(timing.profile).map_err(|error| error.to_string())?;
            Ok(Protocol::Central(machine))
        }
        Mode::Eventual(eventual) => {
            let gossip = Multicast::Gossip { spread: 2, refresh: timing.refresh };
            churn_tolerant::Config::new(eventual.variant, Form::Hardened)
                .with_bounds(eventual.c, eventual.f)
                .and_then(|machine| machine.with_timeout(timing.election))
                .and_then(|machine| machine.with_criterion(Criterion::Attribute, eventual.margin))
                .and_then(|machine| machine.with_multicast(gossip))
                .map(|machine| Protocol::Eventual(machine.with_grace(Some(timing.grace))))
                .map_err(|error| error.to_string())
        }
        Mode::Announced(announced) => {
            let suppression = announce::Suppression::Uniform(timing.suppress);
            let goodness = f64::from(election.priority) / f64::from(HIGHEST);
            let tenure = match announced.sticky {
                true => announce::Tenure::Sticky,
                false => announce::Tenure::Preemptive,
            };
            let bye = announce::Bye { copies: 2, spacing: timing.announce.div(4) };
            let rules = announce::Rules::Hardened;
            announce::Config::new(timing.announce, Some(timing.listen), suppression, rules)
                .and_then(|machine| machine.with_criterion(announce::Criterion::Goodness(goodness)))
                .and_then(|machine| machine.with_tenure(tenure))
                .and_then(|machine| machine.with_bye(bye))
                .map(Protocol::Announced)
                .map_err(|error| error.to_string())
        }
        Mode::Learned(learned) => bandit_of(timing, learned)
            .map(|config| Protocol::Learned(Electorate { voters: learned.voters.clone(), config }))
            .map_err(|error| error.to_string()),
    }
}

/// The membership probes everybody already, so no pings of its own; four heartbeats a lease, so that losing one or two
/// deposes nobody.
fn bandit_of(timing: &Timing, learned: &Learned) -> Result<bandit::Config, bandit::ConfigError> {
    let memory = f64::from(learned.memory);
    // The mean age of what counts is as long as the buffer of those that have one.
    let discount = 1.0 - 1.0 / memory.max(1.0);
    let policy = match learned.policy {
        Policy::EpsilonGreedy => bandit::Policy::EPSILON_GREEDY,
        Policy::Ucb => bandit::Policy::Ucb { weight: OPTIMISM },
        Policy::Discounted => bandit::Policy::DiscountedUcb { weight: OPTIMISM, discount },
        Policy::Sliding => {
            let window =
                u32::from(learned.memory) * u32::try_from(learned.voters.len()).unwrap_or(1);
            bandit::Policy::SlidingUcb { weight: OPTIMISM, window }
        }
        Policy::Thompson => bandit::Policy::Thompson { discount },
    };
    let buffer = matches!(learned.policy, Policy::EpsilonGreedy | Policy::Ucb);
    let config = bandit::Config::new(bandit::Profile::Hardened, policy);
    let waits = bandit::Waits {
        collect: timing.election * 3,
        confirm: timing.election * 4,
        ..config.waits()
    };
    config
        .with_policy(policy)?
        .with_buffer(buffer.then_some(learned.memory))?
        .with_pings(None)?
        .with_waits(waits)?
        .with_heartbeat(learned.lease(timing).div(4))?
        .with_patience(4)?
        .with_sample(learned.sample(timing))?
        .with_tenure(learned.tenure, Some(f64::from(learned.margin) / 100.0))
}

/// `c` of UCB: a fraction of the difference between good and bad, where the program's 2 drowns it. Arbitrary.
const OPTIMISM: f64 = 0.1;

/// Everybody leases from everybody: lists of members are short.
fn leased(
    config: &Config,
    election: &Election,
    settings: &config::Leased,
) -> Result<core::leased::Config, String> {
    let (timing, members) = (&config.timing, settings.members.len());
    let ring = ring::Config::hardened()
        .with_neighbours((members / 2).max(1))
        .and_then(|ring| ring.with_times(timing.lease, timing.arbitration))
        .and_then(|ring| ring.with_drift(settings.drift))
        .map_err(|error| error.to_string())?;
    let ring = core::leased::hosted(ring, settings.flavour);
    let backers = ring::geometry::majority(members);
    let machine = leased::Config::new(settings.flavour)
        .with_key(u64::from(Group::named(&election.name).number()))
        .with_min_members(backers)
        .with_backers(backers)
        .with_aftermath(timing.step_down)
        .with_sticky(true)
        .with_margin(settings.learned.map_or(0, |keeping| keeping.margin));
    Ok(core::leased::Config {
        ring,
        election: machine,
        members: settings.members.clone(),
        witness: election.role == Role::Witness,
        step_down: timing.step_down,
        learned: settings.learned,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;

    /// `config explain` reckons with it; a protocol that makes up its own wait would belie both.
    #[test]
    fn a_suspect_has_as_long_as_is_configured() {
        for profile in [Profile::Local, Profile::Lan, Profile::Wan, Profile::Mesh] {
            let mut config = Config::new("a", "b", "c");
            config.timing = profile.timing();
            let settings = settings(&config, SocketAddr::from(([192, 0, 2, 1], 7738))).unwrap();
            let suspicion = config.timing.suspicion;
            assert_eq!(settings.membership.suspicion_bounds(16), (suspicion, suspicion));
        }
    }
}
