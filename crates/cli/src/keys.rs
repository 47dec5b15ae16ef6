//! `bellwether keys`: replacing the cluster's key without stopping the cluster.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use bellwether_agent::{Key, KeyRing, Stage};
use serde_json::json;

use crate::output::{Failure, plain_table};

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
        let (Verb::List(common) | Verb::Add(common) | Verb::Send(common) | Verb::Retire(common)) =
            &self.verb;
        common.json
    }
}

pub(crate) fn run(args: &Args) -> Result<bool, Failure> {
    let failed = |error: bellwether_agent::KeyError| Failure::Other(error.to_string());
    let (Verb::List(common) | Verb::Add(common) | Verb::Send(common) | Verb::Retire(common)) =
        &args.verb;
    let variable = || std::env::var_os("BELLWETHER_KEY_FILE").map(PathBuf::from);
    let file = common.key_file.clone().or_else(variable).ok_or_else(|| {
        Failure::Other("no key file: name one in --key-file or BELLWETHER_KEY_FILE".to_owned())
    })?;
    let mut ring = KeyRing::read(&file).map_err(failed)?;
    match &args.verb {
        Verb::List(_) => {}
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

fn print(ring: &KeyRing, json: bool) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    let sent = ring.sending().fingerprint();
    let keys = ring.keys().iter().map(Key::fingerprint);
    if json {
        let keys: Vec<_> = keys
            .map(|key| json!({ "fingerprint": key.to_string(), "sent": key == sent }))
            .collect();
        writeln!(out, "{}", json!({ "stage": ring.stage().as_str(), "keys": keys }))?;
        return Ok(true);
    }
    let mut table = plain_table(["key", "is"]);
    for key in keys {
        table.add_row([key.to_string(), if key == sent { "sent" } else { "accepted" }.to_owned()]);
    }
    writeln!(out, "{table}\nstage: {}", ring.stage().as_str())?;
    let next = match ring.stage() {
        Stage::Settled => return Ok(true),
        Stage::AcceptBoth => "once every node has this file: `keys send`",
        Stage::SendNew => "once every node sends the new key: `keys retire`",
    };
    writeln!(out, "next: {next}")?;
    Ok(true)
}
