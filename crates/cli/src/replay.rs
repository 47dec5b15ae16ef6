//! `bellwether replay`: a recorded node, run again.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::File,
    io::{self, BufReader, BufWriter, Write},
    path::PathBuf,
    time::{Duration, UNIX_EPOCH},
};

use bellwether_agent::{
    config::quote,
    internal::record::{
        Answer, Divergence, End, Entry, Outcome, RecordError, Recording, Replay, Step,
    },
};
use bellwether_proto::{Effect, EffectOf, Epoch, node::Node, node::hex};
use serde_json::{Value, json};

use crate::output::{Failure, progress_of};

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// What `bellwether agent --record` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print every input, its effects, and who leads when that changes
    #[arg(long)]
    step: bool,
    /// Print steps from this second on; what comes before is run all the same
    #[arg(long, value_name = "SECONDS", requires = "step", value_parser = seconds)]
    from: Option<f64>,
    /// Stop after this second
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    until: Option<f64>,
    /// Print one JSON object, and before it one a line for each step
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Ok(seconds),
        _ => Err("a number of seconds since the first input, such as 12.5".to_owned()),
    }
}

/// Who led, from when on.
struct Reign {
    at: f64,
    leader: Option<String>,
    epoch: Option<Epoch>,
}

struct Summary {
    file: PathBuf,
    inputs: u64,
    span: f64,
    reigns: BTreeMap<String, Vec<Reign>>,
    digest: u64,
    divergence: Option<Divergence>,
    end: Option<End>,
}

/// True if all that came of the inputs is what was recorded.
pub(crate) fn run(args: &Args) -> Result<bool, Failure> {
    let mut recording = Recording::open(&args.file).map_err(failed)?;
    let mut replay = Replay::new(&args.file, recording.header()).map_err(failed)?;
    let size = args.file.metadata().map_or(0, |found| found.len());
    // Steps and a bar would be in each other's way.
    let bar = progress_of(if args.step { 0 } else { size }, BAR);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut summary = Summary {
        file: args.file.clone(),
        inputs: 0,
        span: 0.0,
        reigns: BTreeMap::new(),
        digest: 0,
        divergence: None,
        end: None,
    };
    let from = args.from.unwrap_or(0.0);
    let until = args.until.unwrap_or(f64::INFINITY);
    let mut began = None;
    while let Some(entry) = recording.next().transpose().map_err(failed)? {
        let at = entry.now.since(*began.get_or_insert(entry.now)).as_secs_f64();
        if at > until {
            break;
        }
        if entry.outcome.is_none() && !args.json {
            // If it ends us too, this is the last word.
            let number = summary.inputs + 1;
            writeln!(out, "input {number} at {at:.6} s ended its agent: {}", entry.given)?;
            out.flush()?;
        }
        let step = replay.step(&entry);
        let answers: Vec<Answer> = replay.answers(entry.now).collect();
        let changed = note(&mut summary.reigns, at, &answers);
        (summary.inputs, summary.span) = (step.number, at);
        if args.step && at >= from {
            match args.json {
                true => writeln!(out, "{}", step_json(&entry, &step, &answers))?,
                false => print_step(&mut out, &entry, &step, &changed)?,
            }
        }
        if !step.equal {
            summary.divergence = Some(Divergence { entry, step });
            break;
        }
        if step_is_round(summary.inputs) {
            bar.set_position(recording.at());
        }
    }
    bar.finish_and_clear();
    (summary.digest, summary.end) = (replay.digest(), recording.end());
    match args.json {
        true => writeln!(out, "{}", summary.json(&recording))?,
        false => summary.print(&mut out, &recording)?,
    }
    out.flush()?;
    Ok(summary.divergence.is_none())
}

fn failed(error: RecordError) -> Failure {
    Failure::Other(error.to_string())
}

/// Often enough for a bar.
const fn step_is_round(number: u64) -> bool {
    number.is_multiple_of(1024)
}

/// Writes down who leads now, and says of which elections that is new.
fn note<'a>(
    reigns: &mut BTreeMap<String, Vec<Reign>>,
    at: f64,
    answers: &'a [Answer],
) -> Vec<&'a Answer> {
    let mut changed = vec![];
    for answer in answers {
        let all = reigns.entry(answer.election.clone()).or_default();
        let (leader, epoch) = (leader(answer), answer.leadership.epoch);
        let last = all.last().map(|last| (&last.leader, last.epoch));
        // That nobody leads at first is no news.
        if last.is_none() && leader.is_none() || last == Some((&leader, epoch)) {
            continue;
        }
        all.push(Reign { at, leader, epoch });
        changed.push(answer);
    }
    changed
}

fn leader(answer: &Answer) -> Option<String> {
    let id = answer.leadership.leader?;
    Some(answer.leader.as_deref().map_or_else(|| hex(id), quote))
}

/// Who leads, in words.
fn reign(leader: Option<&str>, epoch: Option<Epoch>) -> String {
    match (leader, epoch) {
        (Some(leader), Some(epoch)) => format!("{leader} leads, epoch {epoch}"),
        (Some(leader), None) => format!("{leader} leads"),
        (None, _) => "nobody leads".to_owned(),
    }
}

fn print_step(
    out: &mut impl Write,
    entry: &Entry,
    step: &Step,
    changed: &[&Answer],
) -> io::Result<()> {
    let at = step.at.as_secs_f64();
    writeln!(out, "{at:>14.6} {:>8} {}", step.number, entry.given)?;
    if let Some(rejected) = step.rejected {
        writeln!(out, "{:>23} rejected: {rejected}", "")?;
    }
    for effect in &step.effects {
        writeln!(out, "{:>23} {}", "", words(effect))?;
    }
    for answer in changed {
        let words = reign(leader(answer).as_deref(), answer.leadership.epoch);
        writeln!(out, "{:>23} {}: {words}", "", quote(&answer.election))?;
    }
    Ok(())
}

fn words(effect: &EffectOf<Node>) -> String {
    match effect {
        Effect::Send { to, message } => format!("send to {}: {message:?}", hex(*to)),
        Effect::Broadcast(message) => format!("broadcast: {message:?}"),
        Effect::Multicast(message) => format!("multicast: {message:?}"),
        Effect::Persist(durable) => format!("keep: {durable:?}"),
        Effect::Emit(event) => format!("tell: {event:?}"),
    }
}

fn outcome(outcome: &Outcome) -> String {
    let Outcome { rejected, effects, digest } = outcome;
    let taken = if *rejected { "rejected" } else { "accepted" };
    let plural = if *effects == 1 { "" } else { "s" };
    format!("{taken}, {effects} effect{plural}, hash {digest:016x}")
}

fn step_json(entry: &Entry, step: &Step, answers: &[Answer]) -> Value {
    let answer = |answer: &Answer| {
        json!({
            "election": answer.election,
            "leader": answer.leadership.leader.map(hex),
            "name": answer.leader,
            "epoch": answer.leadership.epoch.map(|epoch| epoch.to_string()),
            "settled": answer.leadership.settled,
        })
    };
    json!({
        "input": step.number,
        "seconds": step.at.as_secs_f64(),
        "kind": entry.given.name(),
        "given": entry.given.to_string(),
        "rejected": step.rejected.map(|rejected| rejected.to_string()),
        "effects": step.effects.iter().map(words).collect::<Vec<_>>(),
        "answers": answers.iter().map(answer).collect::<Vec<_>>(),
        "hash": format!("{:016x}", step.outcome.digest),
        "equal": step.equal,
    })
}

impl Summary {
    /// Whether it was recorded by this program, as far as its version says.
    fn verdict(&self, program: &str) -> String {
        let ours = env!("CARGO_PKG_VERSION");
        let Some(Divergence { step, .. }) = &self.divergence else {
            return "effects equal".to_owned();
        };
        let whose = match program == ours {
            true => {
                format!("both call themselves {ours}, so their sources differ or this is a bug")
            }
            false => format!("it was recorded by {}, and this is {ours}", quote(program)),
        };
        format!("this build behaves otherwise from input {} on: {whose}", step.number)
    }

    fn print(
        &self,
        out: &mut impl Write,
        recording: &Recording<BufReader<File>>,
    ) -> io::Result<()> {
        let header = recording.header();
        let began = UNIX_EPOCH + Duration::from_millis(header.unix_ms.min(LAST_MS));
        let began = humantime::format_rfc3339_seconds(began);
        let name = quote(&header.settings.about.name);
        let (id, boot) = (hex(header.me.id), header.me.boot);
        writeln!(out, "{:<9} {}", "file", self.file.display())?;
        writeln!(out, "{:<9} {name}, {id} in its life {boot}, from {began}", "node")?;
        writeln!(out, "{:<9} {} over {:.3} s", "inputs", self.inputs, self.span)?;
        for (election, reigns) in &self.reigns {
            let election = quote(election);
            if reigns.is_empty() {
                writeln!(out, "{:<9} {election}: nobody led", "leaders")?;
            }
            // The last are what came of it all.
            let hidden = reigns.len().saturating_sub(SHOWN);
            if hidden > 0 {
                writeln!(out, "{:<9} {election}: {hidden} changes before these", "leaders")?;
            }
            for Reign { at, leader, epoch } in &reigns[hidden..] {
                let words = reign(leader.as_deref(), *epoch);
                writeln!(out, "{:<9} {election}: {at:>12.3} s  {words}", "leaders")?;
            }
        }
        match self.end {
            Some(end) => writeln!(out, "{:<9} {end}", "end")?,
            None => writeln!(out, "{:<9} not read to its end", "end")?,
        }
        writeln!(out, "{:<9} {:016x}", "hash", self.digest)?;
        writeln!(out, "{}", self.verdict(&header.program))?;
        if let Some(divergence) = &self.divergence {
            print_divergence(out, divergence)?;
        }
        Ok(())
    }

    fn json(&self, recording: &Recording<BufReader<File>>) -> Value {
        let header = recording.header();
        let reigns = self.reigns.iter().map(|(election, reigns)| {
            let one = |Reign { at, leader, epoch }: &Reign| {
                let epoch = epoch.map(|epoch| epoch.to_string());
                json!({ "seconds": at, "leader": leader, "epoch": epoch })
            };
            (election.clone(), reigns.iter().map(one).collect::<Value>())
        });
        let end = self.end.map(|end| match end {
            End::Marked(cause) => cause.name(),
            End::Open => "open",
            End::Cut(_) => "cut",
        });
        let divergence = self.divergence.as_ref().map(|Divergence { entry, step }| {
            let recorded = entry.outcome.map(|recorded| {
                json!({
                    "rejected": recorded.rejected,
                    "effects": recorded.effects,
                    "hash": format!("{:016x}", recorded.digest),
                })
            });
            json!({ "recorded": recorded, "now": step_json(entry, step, &[]) })
        });
        json!({
            "file": self.file.display().to_string(),
            "name": header.settings.about.name,
            "id": hex(header.me.id),
            "boot": header.me.boot.get(),
            "program": header.program,
            "unix_ms": header.unix_ms,
            "inputs": self.inputs,
            "seconds": self.span,
            "leaders": reigns.collect::<serde_json::Map<_, _>>(),
            "end": end,
            "hash": format!("{:016x}", self.digest),
            "equal": self.divergence.is_none(),
            "divergence": divergence,
        })
    }
}

fn print_divergence(out: &mut impl Write, divergence: &Divergence) -> io::Result<()> {
    let Divergence { entry, step } = divergence;
    let recorded = entry.outcome.as_ref().map_or_else(String::new, outcome);
    let mut text = String::new();
    let at = step.at.as_secs_f64();
    let _ = writeln!(text, "  input {} at {at:.6} s: {}", step.number, entry.given);
    let _ = writeln!(text, "  recorded  {recorded}");
    let _ = writeln!(text, "  now       {}", outcome(&step.outcome));
    if let Some(rejected) = step.rejected {
        let _ = writeln!(text, "  now       rejected: {rejected}");
    }
    for effect in &step.effects {
        let _ = writeln!(text, "  now       {}", words(effect));
    }
    out.write_all(text.as_bytes())
}

const BAR: &str = "{bar:40} {bytes}/{total_bytes}, {elapsed} gone, about {eta} left";
/// Changes of leaders that are printed of an election.
const SHOWN: usize = 20;
/// The end of the year 9999, the last that can be printed.
const LAST_MS: u64 = 253_402_300_799_000;

const HELP: &str = "\
The node is made of what the file says, and given what it was given: no
network, clock, disk or settings of this machine are used. What comes of each
input is compared with what was recorded. --step output is made for a pager:
bellwether replay FILE --step --from 12.5 | less -S

Exit codes:
  0  the same came of all inputs
  1  this build behaves otherwise
  2  wrong usage, or a file that cannot be read";
