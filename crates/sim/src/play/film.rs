//! A film as text: a line for each thing to see, each a JSON array that a page reads as it comes.
//!
//! | line | says |
//! |---|---|
//! | `["head", {…}]` | what is there before anything happens |
//! | `[t, "#", word]` | the next word is this; words are counted from 0 |
//! | `[t, "+", n]` `"-"` `"z"` `"u"` `"l"` `"k"` | node `n` starts, stops, freezes, thaws, leaves, is not kept by its disk |
//! | `[t, "n", n, leader, epoch, settled, until]` | whom `n` names; `-1` is nobody, and no end |
//! | `[t, "m", from, to, arrives, word]` | a message flies; `-1` if it is lost |
//! | `[t, "x", from, to]` | a message was not let in |
//! | `[t, "s", share]` | of the messages this share is shown from now on |
//! | `[t, "w", n, until, word]` | `n` waits, and for what; `-1` is for others |
//! | `[t, "o", n, of, opinion, by]` | what `n` thinks of another: 0 alive, 1 suspect, 2 failed, 3 left; `-1` is nobody |
//! | `[t, "b", sides, cuts, loss, delay]` | what stands between nodes |
//! | `[t, "p", n, x, y]` | `n` is at another place |
//! | `[t, "v", invariant, detail]` | something did not hold |
//! | `["tail", {…}]` | what the run came to |
//!
//! Instants are microseconds from the start of the run.

use std::collections::BTreeMap;

use bellwether_proto::{Mode, Time, election::bandit, node::ModeSettings};
use serde_json::{Map, Value, json};

use crate::{
    observe::{Opinion, Shot},
    run::{Outcome, world::movement},
    scenario::{Mobility, Placement, Protocol, Scenario},
    world::Disconnected,
};

/// What is there before anything happens.
///
/// # Errors
///
/// [`Disconnected`] if the scenario's world cannot be drawn.
pub(super) fn head(scenario: &Scenario, file: &str, seed: u64) -> Result<String, Disconnected> {
    let network = &scenario.network;
    let (mut places, mut legs) = (Value::Null, Value::Null);
    let end = scenario.duration.as_secs_f64();
    if let Some(movement) = movement(scenario, seed)? {
        let point = |(x, y): (f64, f64)| json!([short(x), short(y)]);
        places = movement.positions(0.0).into_iter().map(point).collect();
        if network.mobility != Mobility::Still {
            let leg = |node| -> Value {
                let points = movement.waypoints(node).iter();
                // One beyond the end: towards it somebody is moving.
                let until = points.clone().position(|point| point.at > end).unwrap_or(usize::MAX);
                let points = points.take(until.saturating_add(1));
                points
                    .map(|point| json!([short(point.at), short(point.x), short(point.y)]))
                    .collect()
            };
            legs = (0..movement.nodes()).map(leg).collect();
        }
    }
    let capacity = scenario.capacity();
    let links: Value = match &network.placement {
        Placement::Edges(edges) => json!(edges),
        Placement::Ring => (0..capacity).map(|node| json!([node, (node + 1) % capacity])).collect(),
        Placement::Star => (1..capacity).map(|node| json!([0, node])).collect(),
        _ => Value::Null,
    };
    let names: Value = match &scenario.protocol {
        Protocol::Node(settings) => (0..capacity).map(|node| settings.name_of(node)).collect(),
        _ => Value::Null,
    };
    let head = json!({
        "name": scenario.name,
        "file": file,
        "seed": seed.to_string(),
        "digest": scenario.digest().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "duration": scenario.duration.as_micros(),
        "nodes": network.nodes,
        "capacity": capacity,
        "places": places,
        "legs": legs,
        "range": network.placement.range(),
        "fixed": network.has_fixed_positions(),
        "links": links,
        "names": names,
        "mode": mode(&scenario.protocol).map(|mode| mode.to_string()),
        "node": matches!(scenario.protocol, Protocol::Node(_)),
        "election": match &scenario.protocol {
            Protocol::Node(settings) => settings.common.elections.first().map(|one| &one.name),
            _ => None,
        },
    });
    Ok(json!(["head", head]).to_string())
}

/// The promise that the nodes' answers carry, if they elect.
fn mode(protocol: &Protocol) -> Option<Mode> {
    match protocol {
        Protocol::Node(settings) => {
            let election = settings.common.elections.first()?;
            Some(ModeSettings::mode(&election.mode))
        }
        Protocol::Announce(_)
        | Protocol::Several(_)
        | Protocol::Sup(_)
        | Protocol::Al(_)
        | Protocol::SupAl(_) => Some(Mode::Announced),
        Protocol::Bandit(settings) => {
            (settings.config.profile() == bandit::Profile::Hardened).then_some(Mode::Learned)
        }
        Protocol::Central(_) => Some(Mode::Central),
        Protocol::ChurnTolerant { .. } | Protocol::OnLists { .. } => Some(Mode::Eventual),
        Protocol::Leased { .. } => Some(Mode::Leased),
        Protocol::Ping(_) | Protocol::Medley(_) | Protocol::Ring(_) | Protocol::Keys { .. } => None,
    }
}

/// What a run came to.
pub(super) fn tail(outcome: &Outcome) -> String {
    let violations: Vec<Value> = outcome
        .violations
        .iter()
        .map(|one| json!([one.at.as_micros(), one.invariant, one.detail]))
        .collect();
    let values: Map<String, Value> = outcome
        .values
        .iter()
        .filter_map(|(metric, value)| Some((metric.to_string(), json!((*value)?))))
        .collect();
    let tail = json!({
        "trace": outcome.trace.to_string(),
        "violations": violations,
        "values": values,
    });
    json!(["tail", tail]).to_string()
}

/// A hundredth of a metre is less than a pixel.
fn short(value: f64) -> f64 {
    libm::round(value * 1000.0) / 1000.0
}

/// Writes what is seen, each word only once.
#[derive(Default)]
pub(super) struct Writer {
    words: BTreeMap<String, usize>,
}

impl Writer {
    pub(super) fn write(&mut self, at: Time, shot: &Shot, line: &mut impl FnMut(&str)) {
        let t = at.as_micros();
        let micros = |at: Option<Time>| at.map_or(-1, |at| at.as_micros() as i64);
        let number = |node: Option<u32>| node.map_or(-1, i64::from);
        let text = match shot {
            Shot::Starts(node) => format!(r#"[{t},"+",{node}]"#),
            Shot::Stops(node) => format!(r#"[{t},"-",{node}]"#),
            Shot::Freezes(node) => format!(r#"[{t},"z",{node}]"#),
            Shot::Thaws(node) => format!(r#"[{t},"u",{node}]"#),
            Shot::Leaves(node) => format!(r#"[{t},"l",{node}]"#),
            Shot::NotKept(node) => format!(r#"[{t},"k",{node}]"#),
            Shot::Names { node, leader, epoch, settled, until } => {
                let epoch = epoch.map_or(String::new(), |epoch| epoch.to_string());
                let (leader, settled) = (number(*leader), u8::from(*settled));
                format!(r#"[{t},"n",{node},{leader},"{epoch}",{settled},{}]"#, micros(*until))
            }
            Shot::Flies { from, to, arrives, what } => {
                let word = self.word(t, what, line);
                format!(r#"[{t},"m",{from},{to},{},{word}]"#, micros(*arrives))
            }
            Shot::Missed { from, to } => format!(r#"[{t},"x",{from},{to}]"#),
            Shot::Shown(share) => format!(r#"[{t},"s",{share:.4}]"#),
            Shot::Waits { node, until, why } => {
                let word = self.word(t, why, line);
                format!(r#"[{t},"w",{node},{},{word}]"#, micros(*until))
            }
            Shot::Thinks { node, of, opinion, by } => {
                let opinion = match opinion {
                    Opinion::Alive => 0,
                    Opinion::Suspect => 1,
                    Opinion::Failed => 2,
                    Opinion::Left => 3,
                };
                format!(r#"[{t},"o",{node},{of},{opinion},{}]"#, number(*by))
            }
            Shot::Between { sides, cuts, trouble } => {
                let delay = trouble.delay.as_micros() + trouble.reorder.1.as_micros();
                json!([t, "b", sides, cuts, trouble.loss, delay]).to_string()
            }
            Shot::Moves { node, to: (x, y) } => {
                format!(r#"[{t},"p",{node},{},{}]"#, short(*x), short(*y))
            }
            Shot::Violated(violation) => {
                json!([t, "v", violation.invariant, violation.detail]).to_string()
            }
        };
        line(&text);
    }

    fn word(&mut self, t: u64, word: &str, line: &mut impl FnMut(&str)) -> usize {
        if let Some(&known) = self.words.get(word) {
            return known;
        }
        let next = self.words.len();
        self.words.insert(word.to_owned(), next);
        line(&json!([t, "#", word]).to_string());
        next
    }
}
