//! `bellwether dev`: a live cluster on this machine, to see what it does when a node dies.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use bellwether_agent::{
    Agent, Config, Epoch, Handle, KeyRing, StartError,
    config::{Election, Profile, Seed},
    internal::api::{self, Act, Actor, Api, Order, Stage, Token},
    status::Status,
};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

use crate::output::Failure;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// Where the first node answers over HTTP; the others on the next ports
    #[arg(long, value_name = "PORT", default_value_t = 7739)]
    port: u16,
}

pub(crate) fn run(args: &Args) -> Result<bool, Failure> {
    let failed =
        |what: &str, error: &dyn std::fmt::Display| Failure::Other(format!("{what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed("cannot start", &error))?;
    let home =
        tempfile::tempdir().map_err(|error| failed("no place for temporary files", &error))?;
    let keys = Keys::listen();
    runtime.block_on(async {
        let mut cluster = Cluster::start(args, home.path().to_owned())
            .await
            .map_err(|error| Failure::Other(error.to_string()))?;
        let orders = cluster.raise();
        cluster.welcome(keys.raw);
        cluster.watch(keys, orders).await;
        Ok(true)
    })
}

/// The nodes, dead or alive.
struct Cluster {
    began: Instant,
    ring: KeyRing,
    home: PathBuf,
    token: PathBuf,
    nodes: Vec<Node>,
    /// Where one that is alive can be met.
    news: mpsc::Sender<usize>,
    heard: mpsc::Receiver<usize>,
    /// What was narrated last.
    told: Told,
    /// Since when there is something to wait for.
    since: Instant,
    /// What the pages know of who is alive and who is cut off.
    list: Option<watch::Sender<Vec<Actor>>>,
}

struct Node {
    name: String,
    api: SocketAddr,
    bind: SocketAddr,
    /// For HTTP, until somebody answers there.
    listener: Option<TcpListener>,
    agent: Option<Agent>,
    /// Of this life, or the last.
    handle: Option<Handle>,
    cut: bool,
}

/// What all nodes together say.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Told {
    leader: Option<String>,
    epoch: Option<Epoch>,
    agree: usize,
    alive: usize,
    settled: bool,
}

impl Cluster {
    async fn start(args: &Args, home: PathBuf) -> Result<Self, StartError> {
        let token = home.join("token");
        Token::create(&token).map_err(|error| StartError::Token(error.to_string()))?;
        let (news, heard) = mpsc::channel(64);
        let began = Instant::now();
        let mut cluster = Self {
            began,
            ring: KeyRing::generate()?,
            home,
            token,
            nodes: Vec::new(),
            news,
            heard,
            told: Told::default(),
            since: began,
            list: None,
        };
        for number in 1..=args.nodes {
            let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
            let name = format!("node-{number}");
            let wanted = local(args.port.saturating_add(number - 1));
            let listener = match TcpListener::bind(wanted).await {
                // Somebody else has that port: any other will do.
                Err(_) => TcpListener::bind(local(0)).await,
                bound => bound,
            };
            let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
            let (api, listener) =
                bound.map_err(|source| StartError::Api { address: wanted, source })?;
            cluster.nodes.push(Node {
                name,
                api,
                bind: local(0),
                listener: Some(listener),
                agent: None,
                handle: None,
                cut: false,
            });
            cluster.revive(cluster.nodes.len() - 1).await?;
        }
        Ok(cluster)
    }

    /// Puts the nodes on a stage, and somebody on the HTTP port of each who answers for it, dead or alive. What pages
    /// ask for comes out of the other end.
    fn raise(&mut self) -> mpsc::Receiver<Order> {
        let (stage, list, orders) = Stage::new(self.actors());
        for at in 0..self.nodes.len() {
            let Some(listener) = self.nodes[at].listener.take() else { continue };
            let config = self.config(at);
            // It was written a moment ago; without it commands are refused, and all else goes on.
            let token = Token::of(&config).ok().flatten();
            let api = Api::staged(&config, self.nodes[at].api, token, stage.clone(), at);
            tokio::spawn(api::serve(listener, api));
        }
        self.list = Some(list);
        orders
    }

    fn actors(&self) -> Vec<Actor> {
        let actor = |node: &Node| {
            let handle = node.handle.clone()?;
            Some(Actor { name: node.name.clone(), api: node.api, cut: node.cut, handle })
        };
        self.nodes.iter().filter_map(actor).collect()
    }

    fn config(&self, at: usize) -> Config {
        let others = self.nodes.iter().filter_map(|node| node.agent.as_ref());
        let join = others.map(|agent| Seed::Address(agent.address()));
        let mut config = Config::new(&*self.nodes[at].name, "dev", "");
        config.join = join.collect();
        config.bind = self.nodes[at].bind;
        config.api = self.nodes[at].api;
        config.api_token_file = Some(self.token.clone());
        config.data_dir = Some(self.home.join(&self.nodes[at].name));
        config.timing = Profile::Local.timing();
        config.elections = vec![Election { name: "demo".to_owned(), ..Election::default() }];
        config
    }

    /// Starts a node where it was before, or for the first time.
    async fn revive(&mut self, at: usize) -> Result<(), StartError> {
        let agent = Agent::start_unserved(&self.config(at), &self.ring).await?;
        let node = &mut self.nodes[at];
        node.bind.set_port(agent.address().port());
        node.handle = Some(agent.handle().clone());
        tokio::spawn(listen(agent.handle().clone(), at, self.news.clone()));
        node.agent = Some(agent);
        Ok(())
    }

    fn welcome(&self, raw: bool) {
        let enter = if raw { "" } else { ", each with Enter" };
        say(&format!("{} nodes on this machine, one election: demo", self.nodes.len()));
        say(&format!(
            "  http://{}/ shows it, as do the ports after it; token in {}",
            self.nodes[0].api,
            self.token.display()
        ));
        say(&format!(
            "  keys: k kills the leader, r revives the dead, c cuts the leader off, h heals, q quits{enter}\n"
        ));
    }

    async fn watch(&mut self, mut keys: Keys, mut orders: mpsc::Receiver<Order>) {
        loop {
            tokio::select! {
                key = keys.pressed.recv() => match key {
                    Some(b'k') => self.on_leader(Act::Kill).await,
                    Some(b'c') => self.on_leader(Act::Cut).await,
                    Some(b'r') => self.on_all(Act::Revive, |node| node.agent.is_none()).await,
                    Some(b'h') => self.on_all(Act::Heal, |node| node.cut).await,
                    Some(b'q' | 3 | 4) | None => break,
                    Some(_) => {}
                },
                Some(Order { node, act, done }) = orders.recv() => {
                    let at = self.nodes.iter().position(|one| one.name == node);
                    let result = match at {
                        Some(at) => self.act(at, act).await,
                        None => Err(format!("no node is called {node:?}")),
                    };
                    // The page may have gone.
                    let _ = done.send(result);
                }
                Some(_) = self.heard.recv() => {
                    // Others will have heard the same within a moment.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    while self.heard.try_recv().is_ok() {}
                }
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
                _ = tokio::signal::ctrl_c() => break,
            }
            self.narrate().await;
        }
        drop(keys);
        for node in &mut self.nodes {
            if let Some(agent) = node.agent.take() {
                agent.kill().await;
            }
        }
    }

    async fn on_leader(&mut self, act: Act) {
        let leader = self.told.leader.clone();
        let at = self.nodes.iter().position(|node| {
            node.agent.is_some() && leader.as_ref().is_some_and(|name| *name == node.name)
        });
        match at {
            Some(at) => self.act_or_tell(at, act).await,
            None => self.tell("nobody leads: nobody to do that to"),
        }
    }

    async fn on_all(&mut self, act: Act, which: impl Fn(&Node) -> bool) {
        let all: Vec<usize> = (0..self.nodes.len()).filter(|&at| which(&self.nodes[at])).collect();
        if all.is_empty() {
            self.tell(if act == Act::Heal { "nobody is cut off" } else { "all are alive" });
        }
        for at in all {
            self.act_or_tell(at, act).await;
        }
    }

    async fn act_or_tell(&mut self, at: usize, act: Act) {
        if let Err(why) = self.act(at, act).await {
            self.tell(&why);
        }
    }

    /// Does something to a node, whether a key or a button asks for it.
    async fn act(&mut self, at: usize, act: Act) -> Result<(), String> {
        let name = self.nodes[at].name.clone();
        let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let done = match (act, &self.nodes[at].agent) {
            (Act::Revive, Some(_)) => return Err(format!("{name} is alive")),
            (Act::Kill | Act::Cut | Act::Heal, None) => return Err(format!("{name} is dead")),
            (Act::Revive, None) => {
                self.revive(at).await.map_err(|error| failed(&error))?;
                "revived"
            }
            (Act::Kill, Some(_)) => {
                let node = &mut self.nodes[at];
                if let Some(agent) = node.agent.take() {
                    agent.kill().await;
                }
                node.cut = false;
                "killed, without a word to the others"
            }
            (Act::Cut | Act::Heal, Some(agent)) => {
                let cut = act == Act::Cut;
                agent.handle().set_cut(cut).await.map_err(|error| failed(&error))?;
                self.nodes[at].cut = cut;
                if cut { "cut off: it lives, and hears nobody" } else { "healed" }
            }
        };
        if let Some(list) = &self.list {
            list.send_replace(self.actors());
        }
        self.since = Instant::now();
        if matches!(act, Act::Kill | Act::Cut) {
            self.told = Told::default();
        }
        self.tell(&format!("{name} {done}"));
        Ok(())
    }

    /// Says what has changed, if anything has.
    async fn narrate(&mut self) {
        let mut answers: Vec<Arc<Status>> = Vec::new();
        // Those who are cut off have an opinion of their own.
        let heard = self.nodes.iter().filter(|node| !node.cut);
        for agent in heard.filter_map(|node| node.agent.as_ref()) {
            answers.extend(agent.handle().status().await.ok());
        }
        let elections = || answers.iter().filter_map(|status| status.elections.first());
        let leads = elections().find(|election| election.is_leader);
        let leader =
            leads.and_then(|election| election.leader.as_ref()).map(|one| one.name.clone());
        let epoch = leads.and_then(|election| election.epoch);
        let agree = elections()
            .filter(|election| election.epoch == epoch && election.settled && epoch.is_some())
            .count();
        let alive = answers.len();
        let told = Told { leader, epoch, agree, alive, settled: agree == alive };
        if told == self.told || (!told.settled && self.told.leader == told.leader) {
            return;
        }
        let took = self.since.elapsed().as_secs_f64();
        match (&told.leader, &told.epoch) {
            (Some(leader), Some(epoch)) if told.settled => self.tell(&format!(
                "{leader} leads, epoch {epoch}: all {alive} agree, {took:.2} s later"
            )),
            (Some(leader), _) => self.tell(&format!("{leader} leads; {agree} of {alive} know")),
            (None, _) => self.tell("nobody leads"),
        }
        self.told = told;
    }

    fn tell(&self, what: &str) {
        say(&format!("{:8.2} s  {what}", self.began.elapsed().as_secs_f64()));
    }
}

/// Tells whenever something happens at a node, until it stops.
async fn listen(mut handle: Handle, at: usize, news: mpsc::Sender<usize>) {
    let mut index = 0;
    while handle.wait_after(index).await.is_ok() && news.send(at).await.is_ok() {
        index = handle.index();
    }
}

fn say(line: &str) {
    // A closed pipe is the reader's business.
    let _ = writeln!(io::stdout(), "{line}");
}

/// What is typed. On a terminal keys count at once, and the terminal is as it was when this is dropped.
struct Keys {
    pressed: mpsc::Receiver<u8>,
    raw: bool,
    before: Option<Termios>,
}

impl Keys {
    fn listen() -> Self {
        let (sender, pressed) = mpsc::channel(16);
        let before = io::stdin().is_terminal().then(|| tcgetattr(io::stdin()).ok()).flatten();
        if let Some(before) = &before {
            let mut now = before.clone();
            now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &now);
        }
        thread::spawn(move || {
            let mut byte = [0];
            while io::stdin().read_exact(&mut byte).is_ok() && sender.blocking_send(byte[0]).is_ok()
            {
            }
            // At the end of a file the cluster lives on: whoever runs it without input stops it by a signal.
            thread::park();
            drop(sender);
        });
        Self { pressed, raw: before.is_some(), before }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
