//! Commands to a running agent.

use std::net::ToSocketAddrs as _;

use bellwether_agent::config::{PORT, quote};
use serde_json::json;

use crate::{
    client::{Asked, segment},
    output::{Exit, Failure},
};

#[derive(clap::Args)]
pub(crate) struct Join {
    /// Other agents; a port may be left out
    #[arg(value_name = "HOST:PORT", required = true)]
    hosts: Vec<String>,
    #[command(flatten)]
    asked: Asked,
}

#[derive(clap::Args)]
pub(crate) struct Leave {
    #[command(flatten)]
    asked: Asked,
}

#[derive(clap::Args)]
pub(crate) struct ForceLeave {
    /// A failed member, by name or identity
    #[arg(value_name = "NODE")]
    member: String,
    #[command(flatten)]
    asked: Asked,
}

#[derive(clap::Args)]
pub(crate) struct Resign {
    /// The election
    #[arg(value_name = "GROUP")]
    group: String,
    #[command(flatten)]
    asked: Asked,
}

#[derive(clap::Args)]
pub(crate) struct Transfer {
    /// The election
    #[arg(value_name = "GROUP")]
    group: String,
    /// Who is to lead, by name or identity
    #[arg(value_name = "NODE")]
    to: String,
    #[command(flatten)]
    asked: Asked,
}

pub(crate) fn join(args: &Join) -> Result<Exit, Failure> {
    let mut addresses = Vec::new();
    for host in &args.hosts {
        let bare = host.parse::<std::net::IpAddr>().is_ok() || !host.contains(':');
        let found = match bare {
            true => (host.as_str(), PORT).to_socket_addrs(),
            false => host.to_socket_addrs(),
        };
        let found = found.map_err(|error| {
            let host = quote(host);
            Failure::Other(format!("{host}: {error}\n  allowed: HOST or HOST:PORT"))
        })?;
        addresses.extend(found.map(|address| address.to_string()));
    }
    args.asked.client()?.post("/v1/join", &json!({ "addresses": addresses }))?;
    Ok(Exit::Yes)
}

pub(crate) fn leave(args: &Leave) -> Result<Exit, Failure> {
    args.asked.client()?.post("/v1/leave", &json!({}))?;
    Ok(Exit::Yes)
}

pub(crate) fn force_leave(args: &ForceLeave) -> Result<Exit, Failure> {
    args.asked.client()?.post("/v1/force-leave", &json!({ "member": args.member }))?;
    Ok(Exit::Yes)
}

/// `report`.
#[derive(clap::Args)]
pub(crate) struct Report {
    /// The election
    #[arg(value_name = "GROUP")]
    group: String,
    /// How badly it does, in hundredths: 0 is as it should be
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    cost: u8,
    /// Of whom, by name or identity [default: the leader]
    #[arg(long, value_name = "NODE")]
    of: Option<String>,
    #[command(flatten)]
    asked: Asked,
}

pub(crate) fn report(args: &Report) -> Result<Exit, Failure> {
    let path = format!("/v1/elections/{}/report", segment(&args.group));
    let body = json!({ "cost": args.cost, "member": args.of });
    args.asked.client()?.post(&path, &body)?;
    Ok(Exit::Yes)
}

pub(crate) fn resign(args: &Resign) -> Result<Exit, Failure> {
    let path = format!("/v1/elections/{}/resign", segment(&args.group));
    args.asked.client()?.post(&path, &json!({}))?;
    Ok(Exit::Yes)
}

pub(crate) fn transfer(args: &Transfer) -> Result<Exit, Failure> {
    let path = format!("/v1/elections/{}/transfer", segment(&args.group));
    args.asked.client()?.post(&path, &json!({ "to": args.to }))?;
    Ok(Exit::Yes)
}
