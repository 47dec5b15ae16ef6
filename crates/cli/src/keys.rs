//! `bellwether keys`: replacing the cluster's key without stopping the cluster.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use bellwether_agent::{Key, KeyRing, Stage};
use serde_json::{Value, json};

use crate::{
    ask::Plain,
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
    /// Step three: refuse all older keys
    Retire(Common),
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

impl Args {
    pub(crate) fn json(&self) -> bool {
        match &self.verb {
            Verb::List(common) | Verb::Add(common) | Verb::Send(common) | Verb::Retire(common) => {
                common.json
            }
            Verb::Status(plain) => plain.json,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<bool, Failure> {
    let failed = |error: bellwether_agent::KeyError| Failure::Other(error.to_string());
    let common = match &args.verb {
        Verb::List(common) | Verb::Add(common) | Verb::Send(common) | Verb::Retire(common) => {
            common
        }
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
        Verb::Retire(_) => {
            if ring.retire().is_empty() && ring.stage() == Stage::AcceptBoth {
                let text =
                    "nothing is retired while the oldest key is the one sent; `keys send` first";
                return Err(Failure::Other(text.to_owned()));
            }
            ring.write(&file).map_err(failed)?;
        }
    }
    print(&ring, common.json)
}

/// As the agent says it, in the shape of the file's.
fn status(plain: &Plain) -> Result<bool, Failure> {
    let keys = plain.asked.client()?.get("/v1/status")?["keys"].take();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let accepted = keys["accepts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = Shown {
        stage: text(&keys["stage"]),
        sent: text(&keys["sends"]),
        keys: accepted.iter().map(text).collect(),
    };
    shown.print(plain.json)?;
    Ok(true)
}

struct Shown {
    stage: String,
    sent: String,
    keys: Vec<String>,
}

impl Shown {
    fn print(&self, json: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let is_sent = |key: &String| *key == self.sent;
        if json {
            let key = |key| json!({ "fingerprint": key, "sent": is_sent(key) });
            let keys: Vec<Value> = self.keys.iter().map(key).collect();
            return writeln!(out, "{}", json!({ "stage": self.stage, "keys": keys }));
        }
        let mut table = plain_table(["key", "is"]);
        for key in &self.keys {
            let is = if is_sent(key) { "sent" } else { "accepted" };
            table.add_row([key.clone(), is.to_owned()]);
        }
        writeln!(out, "{table}\nstage: {}", self.stage)
    }
}

fn print(ring: &KeyRing, json: bool) -> Result<bool, Failure> {
    let text = |key: &Key| key.fingerprint().to_string();
    let shown = Shown {
        stage: ring.stage().as_str().to_owned(),
        sent: text(ring.sending()),
        keys: ring.keys().iter().map(text).collect(),
    };
    shown.print(json)?;
    let next = match ring.stage() {
        Stage::AcceptBoth if !json => "once every node has this file: `keys send`",
        Stage::SendNew if !json => "once every node sends the new key: `keys retire`",
        _ => return Ok(true),
    };
    println!("next: {next}");
    Ok(true)
}
