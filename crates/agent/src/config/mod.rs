//! The settings of an agent: one file, a directory of files, variables and flags, of which the last wins.
//!
//! Settings are parsed, not validated later: a [`Config`] that exists is one the agent can start with. Every error
//! names the place, the value and what is allowed.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4},
    path::{Path, PathBuf},
};

pub use bellwether_proto::node::{
    AnnouncedSettings as Announced, CentralSettings as Central, ElectionSettings as Election,
    EventualSettings as Eventual, Feedback, Keeping, LearnedSettings as Learned,
    LeasedSettings as Leased, ModeSettings as Mode, Neighbours, OnIsolation, Policy, Spread,
    Timing, TimingProfile as Profile,
};
use bellwether_proto::node::{check_name, packet::Dialect};
use bellwether_settings::{Field, Result, Section, field::NAMES, host::Host, node::node};
pub use bellwether_settings::{Place, SettingsError, error::quote, node::Membership};

pub use self::{
    explain::{Explained, ExplainedElection, explain},
    hook::{Hook, User},
    log::{Detail, Form, Shape},
    seed::Seed,
    show::{Change, Setting},
    socket::{Group, Socket},
    source::{Flag, Inputs},
    table::{Format, Source, Table},
};
pub(crate) use self::{
    hook::{event_name, is_about_leading},
    seed::parse_address,
};
use crate::status::Position;
pub(crate) use bellwether_settings::error::{hidden, similar};

mod explain;
mod hook;
mod log;
mod neighbours;
mod seed;
mod show;
mod socket;
mod source;
mod table;

/// What an agent is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What others call this node.
    pub name: String,
    /// Which cluster it belongs to; packets of others are dropped.
    pub cluster: String,
    /// Where it listens to other agents.
    pub bind: SocketAddr,
    /// Where others reach it, best first; empty means where they hear it from.
    pub advertise: Vec<SocketAddr>,
    /// Whom to talk to first.
    pub join: Vec<Seed>,
    /// The group, and the port there, by which announced elections are held.
    pub multicast: SocketAddrV4,
    /// The network interfaces on which the group is spoken to; empty means that of `bind`.
    pub interfaces: Vec<String>,
    /// Where it answers over HTTP.
    pub api: SocketAddr,
    /// The secret that commands over HTTP must know.
    pub api_token_file: Option<PathBuf>,
    /// Host names, besides loopback and the bound address, under which it answers over HTTP.
    pub api_names: Vec<String>,
    /// Where those on the same machine ask it, without a token.
    pub socket: Socket,
    /// Whose members may, besides its own user and root.
    pub socket_group: Option<Group>,
    /// Where it keeps its boot number; without one, time stands in.
    pub data_dir: Option<PathBuf>,
    /// The cluster's key.
    pub key_file: PathBuf,
    /// How it writes down what happens.
    pub log: Form,
    /// Where it writes down what its node is given, if anywhere.
    pub record: Option<PathBuf>,
    /// How large that may become, in MiB.
    pub record_limit: u32,
    /// How often and how long.
    pub timing: Timing,
    /// Whom it probes.
    pub membership: Membership,
    /// Where it is, if that matters.
    pub position: Option<Position>,
    /// What others may read about this node.
    pub tags: BTreeMap<String, String>,
    /// What it takes part in. The first is the one meant if none is named.
    pub elections: Vec<Election>,
    /// By election: the routing daemon's table that says who is in range, where one does.
    pub tables: BTreeMap<String, Table>,
    /// What it runs when something happens.
    pub hooks: Vec<Hook>,
    /// How it writes packets and files; nobody's to set, but tests'.
    #[doc(hidden)]
    pub dialect: Dialect,
    /// Who said so, by field; what is not here is a default.
    sources: BTreeMap<String, String>,
}

impl Config {
    /// The settings of a node of which only these are special.
    pub fn new(
        name: impl Into<String>,
        cluster: impl Into<String>,
        key_file: impl Into<PathBuf>,
    ) -> Self {
        Self {
            name: name.into(),
            cluster: cluster.into(),
            bind: BIND,
            advertise: Vec::new(),
            join: Vec::new(),
            multicast: MULTICAST,
            interfaces: Vec::new(),
            api: API,
            api_token_file: None,
            api_names: Vec::new(),
            socket: Socket::Nowhere,
            socket_group: None,
            data_dir: None,
            key_file: key_file.into(),
            log: Form::default(),
            record: None,
            record_limit: RECORD_LIMIT,
            timing: Profile::default().timing(),
            membership: Membership::default(),
            position: None,
            tags: BTreeMap::new(),
            elections: vec![Election::default()],
            tables: BTreeMap::new(),
            hooks: Vec::new(),
            dialect: Dialect::Present,
            sources: BTreeMap::new(),
        }
    }

    /// Reads all sources.
    ///
    /// # Errors
    ///
    /// [`SettingsError`]: the first thing wrong, and where. Nothing is used then.
    pub fn load(inputs: &Inputs) -> Result<Self> {
        let tree = inputs.tree()?;
        let mut root = Field::root(&tree).section()?;
        let name = root.take("name");
        let cluster = root.require("cluster", CLUSTER)?.name()?.to_owned();
        let name = match name {
            Some(field) => field.name()?.to_owned(),
            None => host_name(&root)?,
        };
        let key_file = root.require("key_file", KEY_FILE)?;
        let mut config = Self::new(name, cluster, path(&key_file)?);
        config.bind = root.or("bind", BIND, |field| listen(field, PORT))?;
        config.advertise = root.or("advertise", Vec::new(), addresses)?;
        config.join = root.or("join", Vec::new(), seed::read)?;
        config.multicast = root.or("multicast", MULTICAST, multicast)?;
        config.interfaces = root.or("interfaces", Vec::new(), interfaces)?;
        config.data_dir = root.take("data_dir").map(|field| path(&field)).transpose()?;
        config.api_token_file =
            root.take("api_token_file").map(|field| path(&field)).transpose()?;
        config.api_names = root.or("api_names", Vec::new(), host_names)?;
        if let Some(field) = root.take("api") {
            config.api = api(&field, &config)?;
        }
        config.socket = root.or("socket", Socket::Usual, Socket::read)?;
        config.socket_group =
            root.take("socket_group").map(|field| Group::read(&field)).transpose()?;
        config.log = root.or("log", Form::default(), |field| field.choice(&Form::NAMED))?;
        config.record = root.take("record").map(|field| path(&field)).transpose()?;
        config.record_limit =
            root.or("record_limit", RECORD_LIMIT, |field| field.integer(1..=RECORD_MOST))?;
        config.position = root.take("position").map(|field| position(&field)).transpose()?;
        config.tags = root.or("tags", BTreeMap::new(), |field| tags(field.clone()))?;
        let host = Host::Agent { name: &config.name, keeps: config.data_dir.is_some() };
        let read = node(&mut root, host)?;
        (config.timing, config.membership) = (read.timing, read.membership);
        config.elections.clear();
        for election in read.elections {
            if let Some(field) = election.neighbours {
                let table = neighbours::table(field.section()?)?;
                config.tables.insert(election.settings.name.clone(), table);
            }
            config.elections.push(election.settings);
        }
        config.check_multicast(&root)?;
        config.hooks = hook::read(root.take("hook"), &config.elections)?;
        root.end()?;
        config.sources = show::sources(&tree);
        Ok(config)
    }
}

impl Config {
    /// How much the near are preferred.
    pub fn exponent(&self) -> f64 {
        self.membership.exponent.unwrap_or(self.timing.profile.probing().0)
    }

    /// Who is probed out of proportion.
    pub fn feedback(&self) -> Feedback {
        self.membership.feedback.unwrap_or(self.timing.profile.probing().1)
    }

    /// Whether anything here is decided by multicast.
    pub fn is_multicast(&self) -> bool {
        self.elections.iter().any(|election| election.mode.is_multicast())
    }

    fn check_multicast(&self, root: &Section<'_>) -> Result<()> {
        let multicast = self.elections.iter().find(|election| election.mode.is_multicast());
        let Some(election) = multicast.filter(|_| !self.bind.is_ipv4()) else { return Ok(()) };
        let mode = election.mode.name();
        let text = format!("bind {} is IPv6, and {mode} elections are held over IPv4", self.bind);
        let error = root.field().error_unquoted(text);
        Err(error.with_allowed("an IPv4 address to bind to, or mode = \"eventual\""))
    }
}

/// A path in a file is relative to that file, so that a folder of settings can be copied; any other is relative to where the
/// program was started.
fn path(field: &Field<'_>) -> Result<PathBuf> {
    let text = field.shown(4096)?;
    if text.is_empty() {
        return Err(field.error("is empty").with_allowed("a path"));
    }
    let folder = field.file().and_then(|file| Path::new(file).parent());
    Ok(folder.map_or_else(|| PathBuf::from(text), |folder| folder.join(text)))
}

/// The machine's own name, if it may be one.
fn host_name(root: &Section<'_>) -> Result<String> {
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy();
    match check_name(&host) {
        Ok(()) => Ok(host.into_owned()),
        Err(problem) => {
            let text = format!("name is missing, and the machine's own, {host:?}, {problem}");
            Err(root.field().error_unquoted(text).with_allowed("name = \"kitchen\", or --name"))
        }
    }
}

fn position(field: &Field<'_>) -> Result<Position> {
    const EXAMPLE: &str = "two numbers, in metres: [2.5, 10]";
    let pair = field.pair().map_err(|error| error.with_allowed(EXAMPLE))?;
    let [x, y] = pair.map(|field| field.between(-Position::FARTHEST, Position::FARTHEST));
    Ok(Position { x: x? as f32, y: y? as f32 })
}

/// Something this agent listens on.
fn listen(field: &Field<'_>, port: u16) -> Result<SocketAddr> {
    let allowed = format!("IP:PORT, such as 0.0.0.0:{port} or [::1]:{port}");
    let text = field.text()?;
    let address: SocketAddr = text.parse().map_err(|_| {
        let problem = match text.parse::<IpAddr>() {
            Ok(_) => "has no port",
            Err(_) => "is not an address",
        };
        field.error(problem).with_allowed(allowed.clone())
    })?;
    if address.ip().is_multicast() {
        return Err(field.error("is a multicast address").with_allowed(allowed));
    }
    Ok(address)
}

fn addresses(field: &Field<'_>) -> Result<Vec<SocketAddr>> {
    let mut found = Vec::new();
    for item in field.one_or_more()? {
        let address = listen(&item, PORT)?;
        if address.ip().is_unspecified() || address.port() == 0 {
            let error = item.error("is no place where others could reach this node");
            return Err(error.with_allowed(format!("IP:PORT, such as 192.0.2.7:{PORT}")));
        }
        if found.contains(&address) {
            return Err(item.error("is there twice").with_allowed("each address once"));
        }
        found.push(address);
    }
    if found.len() > ADDRESSES {
        let error = field.error(format!("has {} entries", found.len()));
        return Err(error.with_allowed(format!("at most {ADDRESSES} addresses")));
    }
    Ok(found)
}

fn multicast(field: &Field<'_>) -> Result<SocketAddrV4> {
    match field.text()?.parse() {
        Ok(SocketAddr::V4(group)) if group.ip().is_multicast() && group.port() != 0 => Ok(group),
        _ => {
            let error = field.error("is no multicast group of IPv4");
            Err(error.with_allowed(format!("224.0.0.0 to 239.255.255.255, such as {MULTICAST}")))
        }
    }
}

fn interfaces(field: &Field<'_>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for item in field.one_or_more()? {
        let name = item.text()?;
        let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | ':');
        if name.is_empty() || name.len() > 15 || !name.chars().all(fits) {
            let error = item.error("is no name of a network interface");
            return Err(error.with_allowed("as `ip link` lists them, such as wlan0"));
        }
        if found.iter().any(|known| known == name) {
            return Err(item.error("is there twice").with_allowed("each interface once"));
        }
        found.push(name.to_owned());
    }
    if found.len() > INTERFACES {
        let error = field.error_unquoted(format!("has {} entries", found.len()));
        return Err(error.with_allowed(format!("at most {INTERFACES} interfaces")));
    }
    Ok(found)
}

pub(crate) fn is_host_name(text: &str) -> bool {
    let label = |label: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.len() <= 63 && label.chars().all(fits) && !label.starts_with('-')
    };
    // A last label of digits is a mistyped address.
    let numeric = text.rsplit('.').next().is_some_and(|last| last.parse::<u32>().is_ok());
    text.len() <= 253 && text.split('.').all(label) && !numeric
}

fn host_names(field: &Field<'_>) -> Result<Vec<String>> {
    let one = |item: &Field<'_>| match item.text()? {
        name if is_host_name(name) => Ok(name.to_ascii_lowercase()),
        "*" => Err(item.error("would let any web page ask").with_allowed("host names, one by one")),
        _ => Err(item.error("is not a host name").with_allowed("a host name, without port")),
    };
    field.one_or_more()?.iter().map(one).collect()
}

/// Anybody on the network may connect to an address that is not loopback: there must be a secret.
fn api(field: &Field<'_>, config: &Config) -> Result<SocketAddr> {
    let address = listen(field, API_PORT)?;
    if address == config.bind && address.port() != 0 {
        let error = field.error("is where other agents are listened to (bind)");
        return Err(error.with_allowed(format!("another port, such as {API_PORT}")));
    }
    if !address.ip().is_loopback() && config.api_token_file.is_none() {
        let error = field.error("is not loopback, and no api_token_file is set");
        return Err(error.with_allowed(format!("127.0.0.1:{API_PORT}, or a token file")));
    }
    Ok(address)
}

fn tags(field: Field<'_>) -> Result<BTreeMap<String, String>> {
    let named = field.clone().named()?;
    if named.len() > TAGS {
        let error = field.error_unquoted(format!("has {} entries", named.len()));
        return Err(error.with_allowed(format!("at most {TAGS} tags")));
    }
    let one = |(key, field): (&str, Field<'_>)| {
        if let Err(problem) = check_name(key) {
            return Err(field.error_unquoted(problem).with_allowed(NAMES));
        }
        Ok((key.to_owned(), field.shown(TAG_BYTES)?.to_owned()))
    };
    named.into_iter().map(one).collect()
}

/// Where agents hear each other by default.
pub const PORT: u16 = 7738;
/// Where an agent answers over HTTP by default.
pub const API_PORT: u16 = 7739;
const BIND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT);
/// Of those that stay within an organisation.
const MULTICAST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 192, 77, 38), PORT);
const API: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), API_PORT);
const CLUSTER: &str = "\"garden\", or --cluster garden: the same on every node";
const KEY_FILE: &str =
    "\"/etc/bellwether/cluster.key\", or --key-file; `bellwether keygen` makes one";
/// More than a day of one that leads fifteen others; and a tebibyte.
const RECORD_LIMIT: u32 = 256;
const RECORD_MOST: u32 = 1 << 20;
/// Most addresses of one node; they travel in one datagram with everything else.
const ADDRESSES: usize = 8;
/// Most interfaces to speak on: everything said there is sent on each.
const INTERFACES: usize = 8;
/// Most tags, and the longest value: they travel in gossip.
pub(crate) const TAGS: usize = 16;
pub(crate) const TAG_BYTES: usize = 128;
