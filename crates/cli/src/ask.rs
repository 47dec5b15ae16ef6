//! Questions to a running agent: who leads, who is there, and why.

use std::io::{self, Write};

use bellwether_agent::config::quote;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::{
    client::{Asked, segment},
    output::{Exit, Failure, plain_table},
};

/// A question without a subject.
#[derive(clap::Args)]
pub(crate) struct Plain {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A question about an election.
#[derive(clap::Args)]
pub(crate) struct About {
    /// The election [default: the first one configured]
    #[arg(value_name = "GROUP")]
    group: Option<String>,
    #[command(flatten)]
    plain: Plain,
}

impl About {
    pub(crate) fn json(&self) -> bool {
        self.plain.json
    }

    /// As of now: an answer may have lain around while we were stopped, and a lease be over.
    fn election(&self) -> Result<Value, Failure> {
        let asked = clock_gettime(ClockId::Boottime);
        let mut election = self.ask()?;
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec - asked.tv_sec).unwrap_or(0);
        let passed = (seconds * 1_000_000_000)
            .saturating_add_signed(now.tv_nsec - asked.tv_nsec)
            .div_ceil(1_000_000);
        if let Some(left) = election["valid_for_ms"].as_u64() {
            match left.checked_sub(passed).filter(|&left| left > 0) {
                Some(left) => election["valid_for_ms"] = left.into(),
                None => {
                    for key in ["name", "id", "leader", "epoch", "valid_for_ms", "valid_until_us"] {
                        election[key] = Value::Null;
                    }
                    election["is_leader"] = false.into();
                    election["settled"] = false.into();
                }
            }
        }
        Ok(election)
    }

    fn ask(&self) -> Result<Value, Failure> {
        let path = match &self.group {
            Some(group) => format!("/v1/elections/{}", segment(group)),
            None => "/v1/leader".to_owned(),
        };
        self.plain.asked.client()?.get(&path)
    }
}

/// A question about a member.
#[derive(clap::Args)]
pub(crate) struct AboutMember {
    /// The member, by name or identity
    #[arg(value_name = "NODE")]
    member: String,
    #[command(flatten)]
    plain: Plain,
}

impl AboutMember {
    pub(crate) fn json(&self) -> bool {
        self.plain.json
    }
}

/// `is-leader`.
#[derive(clap::Args)]
pub(crate) struct IsLeader {
    #[command(flatten)]
    about: About,
    /// Say nothing; the exit code is the answer
    #[arg(long, short)]
    quiet: bool,
}

impl IsLeader {
    pub(crate) fn json(&self) -> bool {
        self.about.json()
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Null => "-".to_owned(),
        other => quote(&other.to_string()),
    }
}

/// Milliseconds as people say them.
fn age(value: &Value) -> String {
    let seconds = value.as_u64().unwrap_or(0) / 1000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// For how much longer it holds, in a leased election.
fn lease(election: &Value) -> String {
    let left = election["valid_for_ms"].as_u64();
    left.map_or(String::new(), |left| format!("  valid for {left} ms"))
}

/// That nobody was heard, if so: whoever is cut off cannot know whom the others follow.
fn silence(election: &Value) -> Option<String> {
    let silent = &election["silent_ms"];
    silent.is_u64().then(|| format!("nothing heard from anybody for {}", age(silent)))
}

/// Who made this epoch, and so breaks ties: names are for people, and an epoch holds the identity as a decimal number.
fn origin(epoch: &Value, members: &Value) -> String {
    let node = epoch.as_str().and_then(|epoch| epoch.split('.').nth(1)?.parse::<u64>().ok());
    let id = node.map(|node| format!("{node:016x}"));
    let of = |member: &&Value| id.as_deref().is_some_and(|id| member["id"] == id);
    let maker = items(members).iter().find(of);
    maker.map_or(String::new(), |maker| format!("  (made by {})", text(&maker["name"])))
}

fn known(election: &Value) -> Exit {
    if election["name"].is_null() { Exit::NoLeader } else { Exit::Yes }
}

pub(crate) fn leader(args: &About) -> Result<Exit, Failure> {
    let election = args.election()?;
    let mut out = io::stdout().lock();
    match (args.plain.json, known(&election)) {
        (true, _) => writeln!(out, "{election}")?,
        (false, Exit::NoLeader) => {
            eprintln!("no leader of {} is known", text(&election["election"]))
        }
        (false, _) => {
            let doubt = if election["settled"] == true { "" } else { "  (in doubt)" };
            let (name, epoch) = (text(&election["name"]), text(&election["epoch"]));
            let since = age(&election["since_ms"]);
            let lease = lease(&election);
            let silence =
                silence(&election).map_or(String::new(), |silence| format!("  ({silence})"));
            writeln!(out, "{name}  epoch {epoch}  for {since}{lease}{doubt}{silence}")?;
        }
    }
    Ok(known(&election))
}

pub(crate) fn leaders(args: &Plain) -> Result<Exit, Failure> {
    let elections = args.asked.client()?.get("/v1/elections")?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{elections}")?;
    } else {
        let columns = ["group", "leader", "epoch", "mode", "settled", "agree", "since"];
        let mut table = plain_table(columns);
        for one in items(&elections) {
            let agreement = &one["agreement"];
            table.add_row([
                text(&one["election"]),
                text(&one["name"]),
                text(&one["epoch"]),
                text(&one["mode"]),
                if one["settled"] == true { "yes" } else { "no" }.to_owned(),
                format!("{} of {}", agreement["agree"], agreement["heard"]),
                age(&one["since_ms"]),
            ]);
        }
        writeln!(out, "{table}")?;
    }
    let all = items(&elections).iter().all(|one| matches!(known(one), Exit::Yes));
    Ok(if all { Exit::Yes } else { Exit::NoLeader })
}

pub(crate) fn is_leader(args: &IsLeader) -> Result<Exit, Failure> {
    let election = args.about.election()?;
    let exit = match (election["is_leader"] == true, known(&election)) {
        (true, _) => Exit::Yes,
        (false, Exit::NoLeader) => Exit::NoLeader,
        (false, _) => Exit::No,
    };
    if args.quiet {
        return Ok(exit);
    }
    let mut out = io::stdout().lock();
    let (name, epoch) = (text(&election["name"]), text(&election["epoch"]));
    match (args.json(), &exit) {
        (true, _) => {
            let keys = [
                "election",
                "is_leader",
                "leader",
                "epoch",
                "epoch_durable",
                "settled",
                "valid_for_ms",
                "valid_until_us",
            ];
            let facts: serde_json::Map<String, Value> =
                keys.into_iter().map(|key| (key.to_owned(), election[key].clone())).collect();
            writeln!(out, "{}", Value::Object(facts))?;
        }
        (false, Exit::Yes) => writeln!(out, "yes, under epoch {epoch}{}", lease(&election))?,
        (false, Exit::NoLeader) => writeln!(out, "no leader is known")?,
        (false, _) => writeln!(out, "no, {name} leads")?,
    }
    Ok(exit)
}

pub(crate) fn members(args: &Plain) -> Result<Exit, Failure> {
    let members = args.asked.client()?.get("/v1/members")?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{members}")?;
        return Ok(Exit::Yes);
    }
    let mut table = plain_table(["name", "id", "state", "since", "reach", "address", "tags"]);
    for member in items(&members) {
        let reach = match &member["reach"] {
            Value::Object(through) => format!("through {}", text(&through["through"])),
            reach => text(reach),
        };
        let tags = member["tags"].as_object().into_iter().flatten();
        let tags = tags.map(|(key, value)| format!("{}={}", quote(key), text(value)));
        table.add_row([
            text(&member["name"]),
            text(&member["id"]),
            text(&member["state"]),
            age(&member["since_ms"]),
            reach,
            text(&member["addresses"][0]),
            tags.collect::<Vec<_>>().join(","),
        ]);
    }
    writeln!(out, "{table}")?;
    Ok(Exit::Yes)
}

pub(crate) fn why(args: &AboutMember) -> Result<Exit, Failure> {
    let path = format!("/v1/why/{}", segment(&args.member));
    let why = args.plain.asked.client()?.get(&path)?;
    let mut out = io::stdout().lock();
    if args.plain.json {
        writeln!(out, "{why}")?;
        return Ok(Exit::Yes);
    }
    // Longer than a name, hence not quoted as one.
    let summary = why["summary"].as_str().unwrap_or_default();
    let summary: String = summary.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    writeln!(out, "{summary}")?;
    for verdict in items(&why["verdicts"]) {
        let by = match &verdict["by"] {
            Value::Null => "this node".to_owned(),
            by => text(by),
        };
        writeln!(out, "  {:>5} ago  {}  by {by}", age(&verdict["ago_ms"]), text(&verdict["what"]))?;
    }
    Ok(Exit::Yes)
}

pub(crate) fn explain(args: &About) -> Result<Exit, Failure> {
    let election = args.election()?;
    let mut out = io::stdout().lock();
    if args.json() {
        writeln!(out, "{election}")?;
        return Ok(known(&election));
    }
    let agreement = &election["agreement"];
    let yes = |value: &Value| if *value == true { "yes" } else { "no" };
    let why: String = election["why"].as_str().unwrap_or_default().chars().collect();
    let prefers = matches!(election["mode"].as_str(), Some("eventual" | "announced"));
    let worth = match items(&election["scores"]) {
        [] if prefers => format!("{}, priority {}", text(&election["role"]), election["priority"]),
        _ => text(&election["role"]),
    };
    let members = args.plain.asked.client()?.get("/v1/members")?;
    let epoch = format!("{}{}", text(&election["epoch"]), origin(&election["epoch"], &members));
    for (what, value) in [
        ("group", text(&election["election"])),
        ("mode", text(&election["mode"])),
        ("leader", text(&election["name"])),
        ("epoch", epoch),
        ("since", age(&election["since_ms"])),
        ("settled", yes(&election["settled"]).to_owned()),
        ("this node", worth),
        ("leads", yes(&election["is_leader"]).to_owned()),
        ("agreement", format!("{} of {} heard", agreement["agree"], agreement["heard"])),
        ("changes", text(&election["changes"])),
        ("leaderless", age(&election["leaderless_ms"])),
        ("why", why.replace(char::is_control, "?")),
    ] {
        writeln!(out, "{what:<11} {value}")?;
    }
    if let Some(silence) = silence(&election) {
        writeln!(out, "{:<11} {silence}: this node may be cut off", "problem")?;
    }
    let majority = &election["majority"];
    if majority.is_object() {
        let names = |list: &Value| items(list).iter().map(text).collect::<Vec<_>>().join(", ");
        let (members, heard) = (names(&majority["members"]), names(&majority["heard"]));
        writeln!(out, "{:<11} {members}; {} are needed", "members", majority["needed"])?;
        writeln!(out, "{:<11} {heard}", "heard")?;
        let left = election["valid_for_ms"].as_u64().map(|left| format!("{left} ms left"));
        writeln!(out, "{:<11} {}", "lease", left.as_deref().unwrap_or("none here"))?;
    }
    for member in items(&election["differing"]) {
        let settings: Vec<String> = items(&member["settings"]).iter().map(text).collect();
        let (name, settings) = (text(&member["name"]), settings.join(", "));
        writeln!(out, "{:<11} {name} has other settings: {settings}", "problem")?;
    }
    if election["central"].is_object() {
        explain_map(args, &election, &mut out)?;
        return Ok(known(&election));
    }
    for dissent in items(&agreement["dissent"]) {
        writeln!(out, "{:<11} {} says {}", "", text(&dissent[0]), text(&dissent[1]))?;
    }
    let scores = items(&election["scores"]);
    if !scores.is_empty() {
        let mut table = plain_table(["rank", "voter", "score", "samples", "why"]);
        for score in scores {
            let leads = if score["id"] == election["id"] { " (leads)" } else { "" };
            let why = score["why"].as_str().unwrap_or_default();
            table.add_row([
                text(&score["rank"]),
                format!("{}{leads}", text(&score["name"])),
                format!("{:.3}", score["score"].as_f64().unwrap_or_default()),
                text(&score["samples"]),
                why.replace(char::is_control, "?"),
            ]);
        }
        writeln!(out, "\n{table}")?;
    }
    Ok(known(&election))
}

/// Why a central leader is the leader: where everybody is on the map, the most central first.
fn explain_map(args: &About, election: &Value, out: &mut impl Write) -> Result<(), Failure> {
    let path = format!("/v1/elections/{}/map", segment(&text(&election["election"])));
    let map = args.plain.asked.client()?.get(&path)?;
    let component = format!("{} nodes, {} links", map["members"], items(&map["links"]).len());
    writeln!(out, "{:<11} {component}", "component")?;
    writeln!(out, "{:<11} {}", "map", text(&map["map"]))?;
    writeln!(out, "{:<11} {}", "criterion", text(&map["criterion"]))?;
    if !map["problem"].is_null() {
        writeln!(out, "{:<11} {}", "problem", text(&map["problem"]))?;
    }
    // What is counted in thousandths is shown in whole ones.
    let (heading, part) = match map["criterion"].as_str() {
        Some("degree") => ("score", 1),
        Some("betweenness") => ("betweenness", 1_000),
        Some("tree") => ("in the tree", 1),
        Some("eigenvector") => ("eigenvector", 1_000),
        _ => ("distances", 1),
    };
    let mut table = plain_table(["rank", "name", heading, "degree", "hops", ""]);
    for node in items(&map["nodes"]) {
        let leads = if node["id"] == map["leader"] { "leads" } else { "" };
        let [rank, name, degree, hops] =
            ["rank", "name", "degree", "hops"].map(|it| text(&node[it]));
        let score = match (part, node["score"].as_u64()) {
            (1_000, Some(score)) => format!("{}.{:03}", score / 1_000, score % 1_000),
            _ => text(&node["score"]),
        };
        table.add_row([rank, name, score, degree, hops, leads.to_owned()]);
    }
    writeln!(out, "\n{table}")?;
    Ok(())
}

/// `tags`: without changes it shows them.
#[derive(clap::Args)]
pub(crate) struct Tags {
    /// Set a tag
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Delete a tag
    #[arg(long, value_name = "KEY")]
    delete: Vec<String>,
    #[command(flatten)]
    plain: Plain,
}

impl Tags {
    pub(crate) fn json(&self) -> bool {
        self.plain.json
    }
}

pub(crate) fn tags(args: &Tags) -> Result<Exit, Failure> {
    let client = args.plain.asked.client()?;
    let mut changes = serde_json::Map::new();
    for pair in &args.set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Failure::Other(format!("--set {}: has no = in it", quote(pair))));
        };
        changes.insert(key.to_owned(), json!(value));
    }
    changes.extend(args.delete.iter().map(|key| (key.clone(), Value::Null)));
    if !changes.is_empty() {
        client.post("/v1/tags", &json!({ "tags": changes }))?;
        return Ok(Exit::Yes);
    }
    let status = client.get("/v1/status")?;
    let own = items(&status["members"]).iter().find(|member| member["reach"] == "own");
    let tags = own.map_or(json!({}), |member| member["tags"].clone());
    let mut out = io::stdout().lock();
    if args.json() {
        writeln!(out, "{tags}")?;
    } else {
        for (key, value) in tags.as_object().into_iter().flatten() {
            writeln!(out, "{}={}", quote(key), text(value))?;
        }
    }
    Ok(Exit::Yes)
}
