//! `bellwether init`: everything a first node needs, in one folder. `bellwether keygen`: a key.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use bellwether_agent::{
    Config, Key, KeyRing,
    config::{Flag, Inputs},
    internal::api::Token,
};

use crate::output::{Failure, about};

#[derive(clap::Args)]
pub(crate) struct InitArgs {
    /// Where to write
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// The cluster's name [default: a new one]
    #[arg(long, value_name = "ID")]
    cluster: Option<String>,
    /// The node's name, for the command to start it with; the settings are for
    /// every node [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(crate) fn init(args: &InitArgs) -> Result<bool, Failure> {
    fs::create_dir_all(&args.folder).map_err(about(&args.folder))?;
    let folder = args.folder.canonicalize().map_err(about(&args.folder))?;
    let [settings, key, token] =
        ["bellwether.toml", "cluster.key", "api.token"].map(|name| folder.join(name));
    // All or nothing: what is there is somebody's.
    if let Some(there) = [&settings, &key, &token].into_iter().find(|path| path.exists()) {
        return Err(Failure::Other(format!(
            "{}: is there already; nothing was written\n  hint: name another folder: bellwether init DIR; a further node \
             of the same cluster needs copies of these files, not new ones",
            there.display()
        )));
    }
    let cluster = match &args.cluster {
        Some(cluster) => cluster.clone(),
        None => {
            let random = Key::generate().map_err(|error| Failure::Other(error.to_string()))?;
            format!("cluster-{}", random.fingerprint())
        }
    };
    let mut flags = vec![
        Flag { name: "--cluster", value: cluster.clone() },
        Flag { name: "--key-file", value: key.display().to_string() },
    ];
    flags.extend(args.name.clone().map(|value| Flag { name: "--name", value }));
    let config = Config::load(&Inputs { flags, ..Inputs::default() }).map_err(Failure::from)?;
    let text = format!(
        "# Bellwether: `bellwether agent --config {}`.\n\
         # Copy this file, cluster.key and api.token to every node. Paths here are relative to this file.\n\
         # `bellwether config explain` says what the settings mean. A node has the machine's name, or that of --name or\n\
         # BELLWETHER_NAME; in this file it would be the name of all.\n\n\
         cluster = {cluster:?}\n\
         key_file = \"cluster.key\"\n\
         api_token_file = \"api.token\"\n\
         # Who this node is, how often it has started, and the newest epochs: never copied. The\n\
         # services of the packages have --data-dir instead, in /var/lib or /etc.\n\
         data_dir = \"state\"\n\
         # Some of the other nodes; one that answers suffices. Addresses, names, \"srv:_bellwether._udp.example.org\"\n\
         # for DNS service records, or \"exec:/path\" of a program that prints addresses.\n\
         join = []\n\
         # local, lan, wan or mesh.\n\
         timing = \"lan\"\n\n\
         [election.default]\n\
         mode = \"eventual\"\n",
        settings.display(),
    );
    KeyRing::create(&key).map_err(|error| Failure::Other(error.to_string()))?;
    Token::create(&token).map_err(about(&token))?;
    fs::write(&settings, text).map_err(about(&settings))?;
    let mut out = io::stdout().lock();
    writeln!(out, "wrote {}, {} and {}", settings.display(), key.display(), token.display())?;
    let name = args.name.as_ref().map_or(String::new(), |name| format!(" --name {name}"));
    writeln!(out, "next: bellwether agent --config {}{name}", settings.display())?;
    writeln!(out, "cluster {cluster}, node {}", config.name)?;
    Ok(true)
}

#[derive(clap::Args)]
pub(crate) struct KeygenArgs {
    /// Where to write it, readable by its owner alone [default: standard output]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn keygen(args: &KeygenArgs) -> Result<bool, Failure> {
    let failed = |error: bellwether_agent::KeyError| Failure::Other(error.to_string());
    let mut out = io::stdout().lock();
    match &args.file {
        Some(file) => {
            let ring = KeyRing::create(file).map_err(failed)?;
            let fingerprint = ring.sending().fingerprint();
            writeln!(out, "wrote {}, key {fingerprint}", file.display())?;
        }
        None => write!(out, "{}", KeyRing::generate().map_err(failed)?.to_text())?,
    }
    Ok(true)
}
