//! `bellwether monitor`: what happens, as it happens.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use bellwether_agent::config::quote;
use serde_json::Value;

use crate::{
    client::Asked,
    output::{Exit, Failure},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Begin after the event of this number [default: with what happens next]
    #[arg(long, value_name = "N")]
    after: Option<u64>,
    /// Stop after so many events
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    asked: Asked,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let client = args.asked.client()?;
    let mut index = match args.after {
        Some(index) => index,
        None => client.get("/v1/status")?["index"].as_u64().unwrap_or(0),
    };
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut out = io::stdout().lock();
    let mut heard = Instant::now();
    while left > 0 {
        let path = format!("/v1/events?index={index}&wait={}s", WAIT.as_secs());
        let answer = match client.ask(&path, WAIT + Duration::from_secs(5)) {
            Ok(answer) if answer.status == 200 => answer.body,
            // It may be starting anew; a short while is put up with.
            Ok(_) | Err(_) if heard.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Ok(answer) => {
                let text = format!("the agent answers with status {}", answer.status);
                return Err(Failure::Unreachable(text));
            }
            Err(unanswered) => return Err(unanswered.into()),
        };
        heard = Instant::now();
        if answer["missed"] == true {
            eprintln!("some events were missed: the agent has restarted, or too much happened");
        }
        for event in answer["events"].as_array().into_iter().flatten() {
            if left > 0 {
                print(&mut out, event, args.json)?;
                left -= 1;
            }
        }
        out.flush()?;
        index = answer["index"].as_u64().unwrap_or(index);
    }
    Ok(Exit::Yes)
}

fn print(out: &mut impl Write, event: &Value, json: bool) -> io::Result<()> {
    if json {
        return writeln!(out, "{event}");
    }
    let text = |value: &Value| value.as_str().map(quote).unwrap_or_default();
    let time = clock(event["unix_ms"].as_u64().unwrap_or(0));
    let (kind, group) = (text(&event["event"]), text(&event["election"]));
    let (node, epoch) = (text(&event["node"]["name"]), text(&event["epoch"]));
    let detail = text(&event["detail"]);
    let line =
        format!("{time} {:>6} {kind:<18} {group:<12} {node:<16} {epoch} {detail}", event["index"]);
    writeln!(out, "{}", line.trim_end())
}

/// The time of day, in UTC.
fn clock(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{h:02}:{m:02}:{s:02}.{ms:03}")
}

/// How long one question waits for the next event.
const WAIT: Duration = Duration::from_secs(20);
/// How long an agent may be away.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);
