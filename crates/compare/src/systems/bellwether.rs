//! Bellwether, from this clone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use bellwether_hosts::Net;
use serde_json::Value;

use super::{Client, System, View, name};
use crate::{Failure, client};

/// What is measured.
pub(crate) struct Bellwether {
    /// Where the binary is.
    pub(crate) binary: PathBuf,
    /// Of its one election.
    pub(crate) mode: Mode,
}

/// How its election is decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    Eventual,
    Leased,
    Learned,
}

const API: u16 = 7739;

impl System for Bellwether {
    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Eventual => "Bellwether",
            Mode::Leased => "leased",
            Mode::Learned => "learned",
        }
    }

    fn settings(&self) -> String {
        let mode = match self.mode {
            Mode::Eventual => "eventual",
            Mode::Leased => "leased",
            Mode::Learned => "learned",
        };
        format!("timing=lan, one {mode} election (its defaults), encrypted")
    }

    fn naming(&self) -> &'static str {
        "`/v1/leader` holds the leader's name; the leader itself must say that it leads"
    }

    fn packages(&self) -> &'static [&'static str] {
        &[]
    }

    fn version(&self) -> Result<String, Failure> {
        let output = Command::new(&self.binary).arg("--version").output();
        let output =
            output.map_err(|error| Failure::new(format!("{}: {error}", self.binary.display())))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.trim().trim_start_matches("bellwether ").to_owned())
    }

    fn prepare(&self, folder: &Path, _: usize) -> Result<(), Failure> {
        let fail = |error| Failure::new(format!("{}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(fail)?;
        let made = Command::new(&self.binary).arg("keygen").arg(folder.join("key")).output();
        let made =
            made.map_err(|error| Failure::new(format!("{}: {error}", self.binary.display())))?;
        let why = String::from_utf8_lossy(&made.stderr);
        made.status.success().then_some(()).ok_or_else(|| Failure::new(why.into_owned()))
    }

    fn command(&self, net: &Net, folder: &Path, at: usize, count: usize) -> Command {
        let mut command = net.host(at).command(&self.binary.to_string_lossy());
        let address = |at| format!("{}:7738", Net::address(at));
        command
            .args(["agent", "--name", &name(at), "--cluster", "garden", "--timing", "lan"])
            .args(["--key-file".as_ref(), folder.join("key").as_os_str()])
            .args(["--data-dir".as_ref(), folder.join(name(at)).as_os_str()])
            .args(["--bind", &address(at), "--join"])
            .args((0..count.min(3)).map(address));
        let names: Vec<String> = (0..count).map(|at| format!("\"{}\"", name(at))).collect();
        let (mode, key) = match self.mode {
            Mode::Eventual => return command,
            Mode::Leased => ("leased", "members"),
            Mode::Learned => ("learned", "voters"),
        };
        command.args(["--set", &format!("election.default.mode={mode}")]);
        command.args(["--set", &format!("election.default.{key}=[{}]", names.join(","))]);
        command
    }

    fn client(&self, at: usize) -> Box<dyn Client> {
        Box::new(Asker { own: name(at) })
    }
}

struct Asker {
    own: String,
}

impl Client for Asker {
    fn look(&mut self) -> Option<View> {
        let answer = client::get(API, "/v1/leader")?;
        Some(View { own: self.own.clone(), leader: leader(&self.own, &answer) })
    }

    fn alive(&mut self) -> Option<usize> {
        let status = client::get(API, "/v1/status")?;
        let members = status["members"].as_array()?;
        Some(members.iter().filter(|member| member["state"] == "alive").count())
    }
}

/// A node that names itself must also say that it leads, which it does not before it may.
fn leader(own: &str, answer: &Value) -> Option<String> {
    let named = answer["name"].as_str()?;
    (named != own || answer["is_leader"] == true).then(|| named.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_names_itself_must_say_that_it_leads() {
        let named = |name: Value, is_leader: bool| {
            leader("host-01", &serde_json::json!({"name": name, "is_leader": is_leader}))
        };
        assert_eq!(named("host-02".into(), false).as_deref(), Some("host-02"));
        assert_eq!(named("host-01".into(), true).as_deref(), Some("host-01"));
        assert_eq!(named("host-01".into(), false), None);
        assert_eq!(named(Value::Null, false), None);
    }
}
