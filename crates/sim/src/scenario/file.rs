//! What a scenario reads from other files: where nodes are, who hears whom, and when nodes come and go.
//!
//! All of them are lines of numbers, apart by spaces, tabs or commas; `#` begins a comment. A file is named from where the
//! scenario is.

use std::collections::BTreeMap;

use bellwether_proto::Duration;

use bellwether_settings::{Field, Result, Section, SettingsError};

use super::{
    Fault, FaultKind, State, Who,
    fault::Setting,
    read::{Nodes, linked},
};

/// A file and its lines that hold something.
struct Lines<'a> {
    field: Field<'a>,
    name: String,
    text: String,
}

impl<'a> Lines<'a> {
    fn read(section: &mut Section<'a>, example: &str) -> Result<Self> {
        let field = section.require("file", example)?;
        let path = field.near(field.text()?);
        let text = std::fs::read_to_string(&path).map_err(|io| {
            let problem = match io.kind() {
                std::io::ErrorKind::NotFound => "names no file that is there".to_owned(),
                _ => format!("cannot be read: {io}"),
            };
            field.error(problem).with_allowed("a text file, named from where the scenario is")
        })?;
        Ok(Self { field, name: path.display().to_string(), text })
    }

    /// The numbers of every line that holds any, and the line, from 1.
    fn rows<const N: usize>(&self, shape: &str) -> Result<Vec<(usize, [f64; N])>> {
        let mut rows = Vec::new();
        for (line, text) in (1..).zip(self.text.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            let words = text.split([' ', '\t', ',']).filter(|word| !word.trim().is_empty());
            let numbers: Option<Vec<f64>> = words
                .map(|word| word.trim().parse().ok().filter(|number: &f64| number.is_finite()))
                .collect();
            match numbers.map(<[f64; N]>::try_from) {
                Some(Ok(row)) => rows.push((line, row)),
                Some(Err(empty)) if empty.is_empty() => {}
                _ => return Err(self.wrong(line, "is not what it should be").with_allowed(shape)),
            }
        }
        Ok(rows)
    }

    fn wrong(&self, line: usize, problem: &str) -> SettingsError {
        self.field.error(format!("is wrong: {}:{line} {problem}", self.name))
    }

    /// A node of the start.
    fn node(&self, line: usize, number: f64, nodes: u32) -> Result<u32> {
        let fits = number >= 0.0 && number < f64::from(nodes) && number == number.trunc();
        match fits {
            true => Ok(number as u32),
            false => {
                let error = self.wrong(line, &format!("names node {number}, which is none"));
                Err(error.with_allowed(format!("a node number from 0 to {}", nodes - 1)))
            }
        }
    }
}

/// `{ kind = "positions", file }`: a line for each node, `x y`.
pub(super) fn positions(section: &mut Section<'_>, nodes: u32) -> Result<Vec<(f64, f64)>> {
    let lines = Lines::read(section, "\"positions.txt\"")?;
    let rows = lines.rows("a line for each node: x y")?;
    if rows.len() != nodes as usize {
        let problem = format!("places {} nodes, but the network has {nodes}", rows.len());
        let allowed = format!("a line for each node, or network.nodes = {}", rows.len());
        return Err(lines.field.error(problem).with_allowed(allowed));
    }
    Ok(rows.into_iter().map(|(_, [x, y])| (x, y)).collect())
}

/// `{ kind = "edges", file }`: a line for each link, `a b`.
pub(super) fn edges(section: &mut Section<'_>, nodes: &Nodes<'_>) -> Result<Vec<(u32, u32)>> {
    let lines = Lines::read(section, "\"edges.txt\"")?;
    let mut seen = BTreeMap::new();
    let mut edges = Vec::new();
    for (line, [a, b]) in lines.rows("a line for each link: two node numbers")? {
        let [a, b] = [lines.node(line, a, nodes.initial)?, lines.node(line, b, nodes.initial)?];
        if a == b {
            let error = lines.wrong(line, "links a node to itself");
            return Err(error.with_allowed("two different node numbers"));
        }
        if let Some(first) = seen.insert((a.min(b), a.max(b)), line) {
            let error = lines.wrong(line, &format!("is a link that line {first} has listed"));
            return Err(error.with_allowed("each link once, in either direction"));
        }
        edges.push((a, b));
    }
    linked(&lines.field, nodes.initial, edges)
}

/// `[[fault]]` of `kind = "trace"`: a line for each change, `seconds node 0` for a crash and `1` for a start. Who starts
/// first is not there before.
pub(super) fn churn(mut section: Section<'_>, setting: &Setting<'_, '_>) -> Result<Vec<Fault>> {
    section.take("kind");
    let lines = Lines::read(&mut section, "\"churn.txt\"")?;
    let state = section.or("state", State::Lost, |field| {
        field.choice(&[("kept", State::Kept), ("lost", State::Lost)])
    })?;
    section.end()?;
    let mut up = BTreeMap::new();
    let (mut faults, mut last) = (Vec::new(), 0.0);
    for (line, [seconds, node, change]) in
        lines.rows("a line for each change: seconds, node, and 0 for a crash or 1 for a start")?
    {
        let node = lines.node(line, node, setting.network.nodes)?;
        if seconds < last {
            let error = lines.wrong(line, "is earlier than the line before it");
            return Err(error.with_allowed("lines in the order of their times"));
        }
        last = seconds;
        let starts = match change {
            0.0 => false,
            1.0 => true,
            _ => {
                let error = lines.wrong(line, &format!("changes a node to {change}"));
                return Err(error.with_allowed("0 for a crash, 1 for a start"));
            }
        };
        let at = Duration::from_micros((seconds * 1e6) as u64);
        // What comes after the end is somebody else's run.
        if at >= setting.duration {
            break;
        }
        let who = Who::Nodes(vec![node]);
        let kind = match (up.insert(node, starts), starts) {
            (None, true) => FaultKind::Late { who, until: at },
            (None | Some(true), false) => FaultKind::Crash(who),
            (Some(false), true) => FaultKind::Recover { who, state },
            (Some(_), _) => {
                let words =
                    if starts { "starts a node that is up" } else { "crashes a node twice" };
                return Err(lines
                    .wrong(line, words)
                    .with_allowed("0 and 1 by turns for each node"));
            }
        };
        let late = matches!(kind, FaultKind::Late { .. });
        let at = if late { Duration::ZERO } else { at };
        faults.push(Fault { at, spread: Duration::ZERO, every: None, until: None, kind });
    }
    Ok(faults)
}
