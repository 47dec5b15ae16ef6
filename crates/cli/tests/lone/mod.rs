//! A real agent, alone in its cluster, which therefore leads.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::command::command;

pub(crate) struct Lone {
    /// Held, never looked at.
    _folder: tempfile::TempDir,
    pub(crate) agent: Child,
    /// Where it answers over HTTP.
    pub(crate) at: SocketAddr,
}

impl Lone {
    /// Takes part in these elections, besides what more settings say.
    pub(crate) fn start(elections: &[&str], settings: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key = folder.path().join("cluster.key").display().to_string();
        assert!(command(&["keygen", &key]).output().expect("a key").status.success());
        let file = folder.path().join("bellwether.toml").display().to_string();
        fs::write(&file, settings).expect("written");
        let state = folder.path().join("state").display().to_string();
        let mut args = vec!["agent", "--config", &file, "--cluster", "garden", "--name", "kitchen"];
        args.extend(["--key-file", &key, "--data-dir", &state, "--timing", "local"]);
        args.extend(["--bind", "127.0.0.1:0", "--api", "127.0.0.1:0", "--election"]);
        args.extend(elections);
        args.extend(flags);
        let mut agent = command(&args).stderr(Stdio::piped()).spawn().expect("an agent");
        let mut lines = BufReader::new(agent.stderr.take().expect("piped")).lines();
        let said = lines.find_map(|line| {
            let line = line.ok()?;
            let address = line.split("http://").nth(1)?.split(' ').next()?.parse().ok()?;
            Some(address)
        });
        thread::spawn(move || lines.for_each(drop));
        let lone = Self { _folder: folder, agent, at: said.expect("an address") };
        let deadline = Instant::now() + Duration::from_secs(20);
        for election in elections.iter().filter_map(|one| one.split('=').next()) {
            while !lone.over_http(&["is-leader", election]).status().expect("it runs").success() {
                assert!(Instant::now() < deadline, "it does not lead {election}");
                thread::sleep(Duration::from_millis(20));
            }
        }
        lone
    }

    pub(crate) fn over_http(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("BELLWETHER_HTTP_ADDR", self.at.to_string()).stdout(Stdio::null());
        command
    }
}

impl Drop for Lone {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}
