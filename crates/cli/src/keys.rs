//! `bellwether keys`: replacing the cluster's key without stopping the cluster.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use bellwether_agent::{
    Key, KeyRing, config,
    key::{Fingerprint, Rotation},
};
use serde_json::{Value, json};

use crate::{
    ask::Plain,
    client::Asked,
    output::{Failure, plain_table},
};

/// A key is replaced in three steps: add, send, retire. Between two of them the file goes to every
/// node and the agents are told to read it again (SIGHUP). `list` shows how far it is.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Show the keys of a file, by fingerprint
    List(Common),
    /// Step one: accept a new key besides
    Add(Common),
    /// Step two: send under the newest key
    Send(Common),
    /// Step three: refuse all older keys, once the agent hears nobody send
    /// under one
    Retire(Retire),
    /// Show the keys a running agent uses, by fingerprint
    Status(Plain),
}

#[derive(clap::Args)]
struct Common {
    /// The key file [env: BELLWETHER_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Retire {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    asked: Asked,
    /// Ask no agent: members that still send under an old key are no longer
    /// heard
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(crate) fn json(&self) -> bool {
        match &self.verb {
            Verb::List(common) | Verb::Add(common) | Verb::Send(common) => common.json,
            Verb::Retire(retire) => retire.common.json,
            Verb::Status(plain) => plain.json,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<bool, Failure> {
    let failed = |error: bellwether_agent::KeyError| Failure::Other(error.to_string());
    let common = match &args.verb {
        Verb::List(common) | Verb::Add(common) | Verb::Send(common) => common,
        Verb::Retire(retire) => &retire.common,
        Verb::Status(plain) => return status(plain),
    };
    let variable = || std::env::var_os("BELLWETHER_KEY_FILE").map(PathBuf::from);
    let file = common.key_file.clone().or_else(variable).ok_or_else(|| {
        Failure::Other("no key file: name one in --key-file or BELLWETHER_KEY_FILE".to_owned())
    })?;
    let mut ring = KeyRing::read(&file).map_err(failed)?;
    match &args.verb {
        Verb::List(_) | Verb::Status(_) => {}
        Verb::Add(_) => {
            ring.add(Key::generate().map_err(failed)?).map_err(failed)?;
            ring.write(&file).map_err(failed)?;
        }
        Verb::Send(_) => {
            ring.send_newest();
            ring.write(&file).map_err(failed)?;
        }
        Verb::Retire(retire) => {
            let retired = ring.retire();
            if retired.is_empty() && ring.stage() == Rotation::AcceptBoth {
                let text =
                    "nothing is retired while the oldest key is the one sent; `keys send` first";
                return Err(Failure::Other(text.to_owned()));
            }
            if !retire.force && !retired.is_empty() {
                unused(&retired, &retire.asked)?;
            }
            ring.write(&file).map_err(failed)?;
        }
    }
    print(&ring, common.json)
}

/// Whether nobody lives that sends under one of these, as far as the agent has heard.
fn unused(retired: &[Fingerprint], asked: &Asked) -> Result<(), Failure> {
    let status = asked.client().and_then(|client| client.get("/v1/status"));
    let status = status.map_err(|failure| match failure {
        Failure::Unreachable(text) => {
            let hint = "nothing was retired: who still sends under an old key is not known";
            Failure::Unreachable(format!("{text}; {hint} (--force does not ask)"))
        }
        other => other,
    })?;
    let retired: Vec<String> = retired.iter().map(Fingerprint::to_string).collect();
    let is_old = |key: &Value| key.as_str().is_some_and(|key| retired.iter().any(|old| old == key));
    let keys = &status["keys"];
    let own = is_old(&keys["sends"]).then_some(&status["node"]["name"]);
    let members = keys["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    let others = members.iter().filter(|member| is_old(&member["key"])).map(|one| &one["name"]);
    let late: Vec<String> =
        own.into_iter().chain(others).filter_map(Value::as_str).map(config::quote).collect();
    if late.is_empty() {
        return Ok(());
    }
    Err(Failure::Other(format!(
        "{} still sent under an old key when last heard; nothing was retired. Give every node this file as it is, tell \
         the agents to read it (SIGHUP) and look at `keys status`; --force retires all the same",
        late.join(", ")
    )))
}

/// As the agent says it, in the shape of the file's, and who sends under what.
fn status(plain: &Plain) -> Result<bool, Failure> {
    let mut keys = plain.asked.client()?.get("/v1/status")?["keys"].take();
    let members = keys["members"].take();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let accepted = keys["accepts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = Shown {
        stage: text(&keys["stage"]),
        sent: text(&keys["sends"]),
        keys: accepted.iter().map(text).collect(),
        members: Some(members),
    };
    shown.print(plain.json)?;
    Ok(true)
}

struct Shown {
    stage: String,
    sent: String,
    keys: Vec<String>,
    /// Who sends under which, as far as an agent said.
    members: Option<Value>,
}

impl Shown {
    fn print(&self, json: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let is_sent = |key: &String| *key == self.sent;
        if json {
            let key = |key| json!({ "fingerprint": key, "sent": is_sent(key) });
            let keys: Vec<Value> = self.keys.iter().map(key).collect();
            let mut facts = json!({ "stage": self.stage, "keys": keys });
            if let Some(members) = &self.members {
                facts["members"] = members.clone();
            }
            return writeln!(out, "{facts}");
        }
        let mut table = plain_table(["key", "is"]);
        for key in &self.keys {
            let is = if is_sent(key) { "sent" } else { "accepted" };
            table.add_row([key.clone(), is.to_owned()]);
        }
        writeln!(out, "{table}\nstage: {}", self.stage)?;
        let members = self.members.as_ref().and_then(Value::as_array);
        let Some(members) = members.filter(|members| !members.is_empty()) else { return Ok(()) };
        let mut table = plain_table(["member", "sends under"]);
        for member in members {
            let name = config::quote(member["name"].as_str().unwrap_or_default());
            table.add_row([name, member["key"].as_str().unwrap_or("(not heard)").to_owned()]);
        }
        writeln!(out, "{table}")
    }
}

fn print(ring: &KeyRing, json: bool) -> Result<bool, Failure> {
    let text = |key: &Key| key.fingerprint().to_string();
    let shown = Shown {
        stage: ring.stage().as_str().to_owned(),
        sent: text(ring.sending()),
        keys: ring.keys().iter().map(text).collect(),
        members: None,
    };
    shown.print(json)?;
    let next = match ring.stage() {
        Rotation::AcceptBoth if !json => "once every node has this file: `keys send`",
        Rotation::SendNew if !json => "once every node sends the new key: `keys retire`",
        _ => return Ok(true),
    };
    println!("next: {next}");
    Ok(true)
}
