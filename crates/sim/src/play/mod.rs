//! Play: a run that somebody looks at and does things to.
//!
//! A session is a scenario, a seed and a list of edits, nothing else. An edit is a fault like those of the scenario's
//! file, at an instant of the run. Everything before that instant stays as it was, since a fault that is added last
//! draws nothing from what others draw from; so going on after an edit, and going back to an earlier moment, are both
//! the same as running again from the start. A session can be written down as a scenario, which `bellwether sim` runs to
//! the same trace.

mod film;

use std::{
    fmt::Write as _,
    sync::{Arc, atomic::AtomicBool},
};

use bellwether_proto::Time;
use bellwether_settings::Tree;
use serde_json::Value;

use crate::{
    observe::{Camera, Log},
    run::{Outcome, run_logged},
    scenario::{Scenario, SettingsError},
    world::Disconnected,
};

/// A scenario, a seed, and what else is to go wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// What errors call the scenario.
    pub file: String,
    /// The scenario, as TOML.
    pub text: String,
    /// Overrides, each `path=value`.
    pub sets: Vec<String>,
    /// What else goes wrong.
    pub edits: Vec<Edit>,
    /// The seed of the run.
    pub seed: u64,
}

/// A fault that somebody has added, in the words of a scenario's `[[fault]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit(String);

/// Why there is nothing to see.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The scenario, an override or an edit is wrong.
    #[error(transparent)]
    Wrong(#[from] SettingsError),
    /// An edit is no fault at all.
    #[error("{place}: {problem}; allowed: {allowed}")]
    NoFault {
        /// Which edit, or which key of it.
        place: String,
        /// What is wrong with it.
        problem: &'static str,
        /// What would be right.
        allowed: &'static str,
    },
    /// The world of the scenario cannot be drawn.
    #[error(transparent)]
    Disconnected(#[from] Disconnected),
}

impl Edit {
    /// Reads one: an object with the keys of a `[[fault]]`.
    ///
    /// # Errors
    ///
    /// It is something else. Whether the keys and their values are right is for the scenario to say.
    pub fn read(value: &Value) -> Result<Self, PlayError> {
        let Value::Object(keys) = value else {
            return Err(PlayError::NoFault {
                place: format!("edit {value}"),
                problem: "is no object",
                allowed: "{\"at\": \"10s\", \"kind\": \"crash\", \"node\": 3}",
            });
        };
        let mut text = String::new();
        for (key, value) in keys {
            let _ = writeln!(text, "{} = {}", word(key)?, toml(key, value)?);
        }
        Ok(Self(text))
    }
}

impl Session {
    /// The scenario with everything that goes wrong.
    ///
    /// # Errors
    ///
    /// The first thing wrong, and where.
    pub fn scenario(&self) -> Result<Scenario, SettingsError> {
        Scenario::parse(&self.file, &self.edited()?, &self.sets)
    }

    /// The same as a file, which needs neither overrides nor edits.
    ///
    /// # Errors
    ///
    /// As [`scenario`](Self::scenario).
    pub fn written_out(&self) -> Result<String, SettingsError> {
        let text = Scenario::written_out(&self.file, &self.edited()?, &self.sets)?;
        let seed = self.seed;
        Ok(format!(
            "# Played from {}. Run it with --seed {seed} for the same trace.\n{text}",
            self.file
        ))
    }

    /// The text with the edits behind its own faults. Those may stand in one list, to which no table can be added, so that
    /// the text is written anew.
    fn edited(&self) -> Result<String, SettingsError> {
        if self.edits.is_empty() {
            return Ok(self.text.clone());
        }
        let mut text = Tree::of_file(self.file.clone(), self.text.clone())?.to_toml();
        for Edit(fault) in &self.edits {
            let _ = write!(text, "\n[[fault]]\n{fault}");
        }
        Ok(text)
    }

    /// Runs it, and hands its film on line by line, each a JSON array: first the head, then what is seen, in
    /// the order of time, then the tail. The run ends early once `stopped` is set.
    ///
    /// # Errors
    ///
    /// The scenario is wrong, or its world cannot be drawn.
    pub fn film(
        &self,
        stopped: &Arc<AtomicBool>,
        mut line: impl FnMut(&str) + Clone + 'static,
    ) -> Result<Outcome, PlayError> {
        let scenario = self.scenario()?;
        film_of(&scenario, &self.file, self.seed, stopped, &mut line)
    }
}

/// The film of a scenario as it is: see [`Session::film`].
///
/// # Errors
///
/// The scenario's world cannot be drawn.
pub fn film_of(
    scenario: &Scenario,
    file: &str,
    seed: u64,
    stopped: &Arc<AtomicBool>,
    line: &mut (impl FnMut(&str) + Clone + 'static),
) -> Result<Outcome, PlayError> {
    line(&film::head(scenario, file, seed)?);
    let mut writer = film::Writer::default();
    let mut told = line.clone();
    let take = move |at: Time, shot| writer.write(at, &shot, &mut told);
    let camera = Camera::new(scenario.duration, scenario.capacity(), Arc::clone(stopped), take);
    let outcome = run_logged(scenario, seed, Log::filming(camera))?;
    line(&film::tail(&outcome));
    Ok(outcome)
}

/// A key, which is a word.
fn word(key: &str) -> Result<&str, PlayError> {
    match !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
        true => Ok(key),
        false => Err(PlayError::NoFault {
            place: format!("the key {key:?} of an edit"),
            problem: "is no key of a fault",
            allowed: "small letters, such as at, kind, node",
        }),
    }
}

fn toml(key: &str, value: &Value) -> Result<String, PlayError> {
    Ok(match value {
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        // What JSON escapes, TOML reads; but for one character it has no short form for.
        Value::String(text) => Value::String(text.clone()).to_string().replace('\u{7f}', "\\u007F"),
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(|item| toml(key, item)).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| {
                Ok(format!("{} = {}", word(key)?, toml(key, value)?))
            };
            let entries: Result<Vec<_>, PlayError> = entries.iter().map(entry).collect();
            format!("{{ {} }}", entries?.join(", "))
        }
        Value::Null => {
            return Err(PlayError::NoFault {
                place: format!("the key {key:?} of an edit"),
                problem: "has no value",
                allowed: "a value, or no such key",
            });
        }
    })
}
