//! `bellwether agent`: one node. And the settings it would run with.

use std::{env, path::PathBuf};

use bellwether_agent::{
    Config,
    config::{Flag, Inputs},
};
use bellwether_proto::node::packet::Dialect;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::{
    log::Log,
    output::{Exit, Failure},
};

/// Settings, as flags. All of them can be in a file or a variable too.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Settings {
    /// Settings in TOML [env: BELLWETHER_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// More settings: every *.toml there, in the order of their names
    /// [env: BELLWETHER_CONFIG_DIR]
    #[arg(long, value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// What others call this node [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The cluster it belongs to, the same on every node
    #[arg(long, value_name = "ID")]
    cluster: Option<String>,
    /// Where to listen to other agents [default: 0.0.0.0:7738]
    #[arg(long, value_name = "IP:PORT")]
    bind: Option<String>,
    /// Where others reach this node, if not where they hear it from
    #[arg(long, value_name = "IP:PORT")]
    advertise: Vec<String>,
    /// Whom to talk to first; tried for life. Without a port, 7738
    #[arg(long, value_name = "HOST[:PORT]", num_args = 1..)]
    join: Vec<String>,
    /// Where to answer over HTTP [default: 127.0.0.1:7739]
    #[arg(long, value_name = "IP:PORT")]
    api: Option<String>,
    /// A host name under which to answer over HTTP, besides localhost
    #[arg(long, value_name = "NAME")]
    api_name: Vec<String>,
    /// File with the token that commands over HTTP must know
    #[arg(long, value_name = "FILE")]
    api_token_file: Option<String>,
    /// Where those on this machine ask without a token, or none [default: in
    /// /run/bellwether or XDG_RUNTIME_DIR, by the port of --api]
    #[arg(long, value_name = "FILE")]
    socket: Option<String>,
    /// Where to keep the boot number
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The cluster's key, made by `bellwether keygen`
    #[arg(long, value_name = "FILE")]
    key_file: Option<String>,
    /// How to write down what happens: text, json or none; debug, trace,
    /// json-debug or json-trace for more of it [default: text]
    #[arg(long, value_name = "FORM")]
    log: Option<String>,
    /// Write down what the node is given, for `bellwether replay`; past lives
    /// are kept in FILE.1 to FILE.4
    #[arg(long, value_name = "FILE")]
    record: Option<String>,
    /// How large that may get [default: 256]
    #[arg(long, value_name = "MIB")]
    record_limit: Option<String>,
    /// How often and how long: local, lan, wan or mesh [default: lan]
    #[arg(long, value_name = "PROFILE")]
    timing: Option<String>,
    #[arg(long, value_name = "NAME=MODE", num_args = 1.., help = election_help())]
    election: Vec<String>,
    /// Something for others to read about this node
    #[arg(long, value_name = "KEY=VALUE")]
    tag: Vec<String>,
    /// Any field by its path, such as timing.period=200ms
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
}

impl Settings {
    pub(crate) fn load(&self) -> Result<Config, Failure> {
        let path = |given: &Option<PathBuf>, variable| {
            given.clone().or_else(|| env::var_os(variable).map(PathBuf::from))
        };
        let inputs = Inputs {
            file: path(&self.config, "BELLWETHER_CONFIG"),
            directory: path(&self.config_dir, "BELLWETHER_CONFIG_DIR"),
            variables: env::vars_os().collect(),
            flags: self.flags(),
        };
        Config::load(&inputs).map_err(Failure::from)
    }

    fn flags(&self) -> Vec<Flag> {
        let one = [
            ("--name", &self.name),
            ("--cluster", &self.cluster),
            ("--bind", &self.bind),
            ("--api", &self.api),
            ("--api-token-file", &self.api_token_file),
            ("--socket", &self.socket),
            ("--data-dir", &self.data_dir),
            ("--key-file", &self.key_file),
            ("--log", &self.log),
            ("--record", &self.record),
            ("--record-limit", &self.record_limit),
            ("--timing", &self.timing),
        ];
        let many = [
            ("--advertise", &self.advertise),
            ("--join", &self.join),
            ("--api-name", &self.api_name),
            ("--election", &self.election),
            ("--tag", &self.tag),
            ("--set", &self.set),
        ];
        let one = one.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        let many = many
            .into_iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name, value.clone())));
        one.chain(many).map(|(name, value)| Flag { name, value }).collect()
    }
}

#[derive(clap::Args)]
#[command(after_help = modes_help())]
pub(crate) struct Args {
    #[command(flatten)]
    settings: Settings,
    /// Write packets and files as a later version might, for tests of upgrades
    #[arg(long, hide = true)]
    next_format: bool,
}

impl Args {
    fn load(&self) -> Result<Config, Failure> {
        let mut config = self.settings.load()?;
        if self.next_format {
            config.dialect = Dialect::Next;
        }
        Ok(config)
    }
}

/// May it run twice, which mode is for that, and where. README and guides have the same table: a test compares them.
const MODES: [[&str; 3]; 5] = [
    ["never", "leased", "three or more machines, listed by name"],
    ["for seconds", "learned", "three or more, by name; the reliable lead"],
    ["yes", "eventual", "any machines, from two to hundreds"],
    ["yes", "announced", "one network segment, no addresses"],
    ["yes", "central", "a mesh; the leader is near to all"],
];

fn modes_help() -> String {
    let rows = MODES.map(|[twice, mode, place]| format!("\n  {twice:<12}  {mode:<9}  {place}"));
    format!("May it run twice? Then this is the mode:{}", rows.concat())
}

fn election_help() -> String {
    let [first @ .., last] = MODES.map(|[_, mode, _]| mode);
    format!(
        "Take part in this election. MODE is {} or {last}; leased needs `members` and learned `voters` in a file or \
         by --set",
        first.join(", ")
    )
}

/// What is in memory is the cluster's key, so it goes into no core dump, and no other process of our user looks at it.
fn keep_memory_private() -> Result<(), Failure> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let kept = setrlimit(Resource::Core, none)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable));
    kept.map_err(|error| Failure::Other(format!("cannot keep its memory to itself: {error}")))
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    keep_memory_private()?;
    let config = args.load()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("cannot start: {error}")))?;
    let reread = || args.load().map_err(|failure| failure.to_string());
    let log = Log::start(config.log);
    let ended = runtime.block_on(bellwether_agent::internal::run(&config, reread));
    log.end();
    ended.map(Exit::from).map_err(|error| Failure::Other(error.to_string()))
}
