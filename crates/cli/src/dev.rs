//! `bellwether dev`: a live cluster on this machine, to see what it does when a node dies.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    net::SocketAddr,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use bellwether_agent::{
    Agent, Config, Handle, KeyRing, StartError, Status,
    api::Token,
    config::{Election, Profile, Seed},
};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

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
        cluster.welcome(keys.raw);
        cluster.watch(keys).await;
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
}

struct Node {
    name: String,
    api: SocketAddr,
    bind: SocketAddr,
    agent: Option<Agent>,
}

/// What all nodes together say.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Told {
    leader: Option<String>,
    epoch: Option<String>,
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
        };
        for number in 1..=args.nodes {
            let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
            let name = format!("node-{number}");
            let api = local(args.port.saturating_add(number - 1));
            cluster.nodes.push(Node { name, api, bind: local(0), agent: None });
            cluster.revive(cluster.nodes.len() - 1).await?;
        }
        Ok(cluster)
    }

    /// Starts a node where it was before, or for the first time.
    async fn revive(&mut self, at: usize) -> Result<(), StartError> {
        let others = self.nodes.iter().filter_map(|node| node.agent.as_ref());
        let join = others.map(|agent| Seed {
            host: agent.address().ip().to_string(),
            port: agent.address().port(),
        });
        let mut config = Config::new(&*self.nodes[at].name, "dev", "");
        config.join = join.collect();
        config.bind = self.nodes[at].bind;
        config.api = self.nodes[at].api;
        config.api_token_file = Some(self.token.clone());
        config.data_dir = Some(self.home.join(&self.nodes[at].name));
        config.timing = Profile::Local.timing();
        config.elections = vec![Election { name: "demo".to_owned(), ..Election::default() }];
        let agent = match Agent::start_with(&config, &self.ring).await {
            // Somebody else has that port: any other will do.
            Err(StartError::Api { .. }) => {
                config.api.set_port(0);
                Agent::start_with(&config, &self.ring).await?
            }
            other => other?,
        };
        self.nodes[at].api = agent.api();
        self.nodes[at].bind.set_port(agent.address().port());
        tokio::spawn(listen(agent.handle().clone(), at, self.news.clone()));
        self.nodes[at].agent = Some(agent);
        Ok(())
    }

    fn welcome(&self, raw: bool) {
        let enter = if raw { "" } else { ", each with Enter" };
        say(&format!("{} nodes on this machine, one election: demo", self.nodes.len()));
        say(&format!(
            "  http://{}/v1/status and the ports after it; token in {}",
            self.nodes[0].api,
            self.token.display()
        ));
        say(&format!("  keys: k kills the leader, r revives the dead, q quits{enter}\n"));
    }

    async fn watch(&mut self, mut keys: Keys) {
        loop {
            tokio::select! {
                key = keys.pressed.recv() => match key {
                    Some(b'k') => self.kill_leader(),
                    Some(b'r') => self.revive_all().await,
                    Some(b'q' | 3 | 4) | None => break,
                    Some(_) => {}
                },
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
                agent.kill();
            }
        }
    }

    fn kill_leader(&mut self) {
        let leader = self.told.leader.clone();
        let victim = self.nodes.iter_mut().find(|node| {
            node.agent.is_some() && leader.as_ref().is_some_and(|name| *name == node.name)
        });
        let Some((name, agent)) =
            victim.and_then(|node| Some((node.name.clone(), node.agent.take()?)))
        else {
            self.tell("nobody leads: nobody to kill");
            return;
        };
        agent.kill();
        self.since = Instant::now();
        self.told = Told::default();
        self.tell(&format!("{name} killed, without a word to the others"));
    }

    async fn revive_all(&mut self) {
        let dead: Vec<usize> =
            (0..self.nodes.len()).filter(|&at| self.nodes[at].agent.is_none()).collect();
        if dead.is_empty() {
            self.tell("all are alive");
        }
        for at in dead {
            self.since = Instant::now();
            match self.revive(at).await {
                Ok(()) => self.tell(&format!("{} revived", self.nodes[at].name)),
                Err(error) => self.tell(&format!("{}: {error}", self.nodes[at].name)),
            }
        }
    }

    /// Says what has changed, if anything has.
    async fn narrate(&mut self) {
        let mut answers: Vec<Status> = Vec::new();
        for agent in self.nodes.iter().filter_map(|node| node.agent.as_ref()) {
            answers.extend(agent.handle().status().await.ok());
        }
        let elections = || answers.iter().filter_map(|status| status.elections.first());
        let leads = elections().find(|election| election.is_leader);
        let leader =
            leads.and_then(|election| election.leader.as_ref()).map(|one| one.name.clone());
        let epoch = leads.and_then(|election| election.epoch.clone());
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
