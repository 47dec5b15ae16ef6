//! Taking a tree apart: a table key by key, a value as what it should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use bellwether_proto::Duration;

use super::{
    error::{ScenarioError, quote},
    tree::{Entry, Node, Origin, Source, Value},
};

pub(super) type Result<T> = std::result::Result<T, ScenarioError>;

/// How to read one kind of a table, given what is known about the rest of the scenario.
pub(super) type Reader<'a, C, T> = fn(&mut Section<'a>, &mut C) -> Result<T>;

/// A value and its path.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    source: Source<'a>,
    path: String,
    node: &'a Node,
}

/// A table of which keys are taken; [`Section::end`] refuses those that nobody took.
#[derive(Debug)]
pub(super) struct Section<'a> {
    field: Field<'a>,
    table: &'a BTreeMap<String, Entry>,
    taken: BTreeSet<&'static str>,
}

impl<'a> Field<'a> {
    pub(super) fn root(source: Source<'a>, node: &'a Node) -> Self {
        Self { source, path: String::new(), node }
    }

    /// An error that names and quotes this value.
    pub(super) fn error(&self, problem: impl Into<String>) -> ScenarioError {
        self.source
            .error(self.node.origin, &self.path, problem)
            .with_found(self.source.written(self.node))
    }

    /// An error about this value being there at all, or about what is missing in it.
    pub(super) fn error_unquoted(&self, problem: impl Into<String>) -> ScenarioError {
        self.source.error(self.node.origin, &self.path, problem)
    }

    /// Where it is, for messages about another place.
    pub(super) fn place(&self) -> String {
        self.source.place(self.node.origin).to_string()
    }

    /// The file of this name beside the scenario's, or wherever an absolute name says.
    pub(super) fn near(&self, name: &str) -> std::path::PathBuf {
        let folder = std::path::Path::new(self.source.file).parent();
        folder.map_or_else(|| name.into(), |folder| folder.join(name))
    }

    fn not(&self, wanted: &str) -> ScenarioError {
        self.error(format!("is {}, not {wanted}", self.node.value.what()))
    }

    pub(super) fn section(self) -> Result<Section<'a>> {
        match &self.node.value {
            Value::Table(table) => Ok(Section { field: self, table, taken: BTreeSet::new() }),
            _ => Err(self.not("a table").with_allowed("a table, such as { kind = \"…\" }")),
        }
    }

    /// The tables of a table, in the order in which they were first written; their names are the user's.
    pub(super) fn named(self) -> Result<Vec<(&'a str, Field<'a>)>> {
        let Value::Table(table) = &self.node.value else {
            let allowed = format!("a table for each: [{}.NAME]", self.path);
            return Err(self.not("a table").with_allowed(allowed));
        };
        let mut entries: Vec<(&String, &Entry)> = table.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.key);
        let field = |(name, entry): (&'a String, &'a Entry)| {
            let path = format!("{}.{}", self.path, quote(name));
            (name.as_str(), Field { source: self.source, path, node: &entry.node })
        };
        Ok(entries.into_iter().map(field).collect())
    }

    pub(super) fn list(&self) -> Result<Vec<Field<'a>>> {
        let Value::List(items) = &self.node.value else {
            let allowed = match self.source.written(self.node) {
                Some(_) => "a list in square brackets".to_owned(),
                None => format!("double brackets: [[{}]]", self.path),
            };
            return Err(self.not("a list").with_allowed(allowed));
        };
        let field =
            |(i, node)| Field { source: self.source, path: format!("{}.{i}", self.path), node };
        Ok(items.iter().enumerate().map(field).collect())
    }

    /// A list of exactly two.
    pub(super) fn pair(&self) -> Result<[Field<'a>; 2]> {
        let wrong = |items: Vec<_>| {
            self.error(format!("has {} entries", items.len())).with_allowed("a list of two numbers")
        };
        self.list()?.try_into().map_err(wrong)
    }

    pub(super) fn text(&self) -> Result<&'a str> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.not("text").with_allowed("text in quotes")),
        }
    }

    pub(super) fn flag(&self) -> Result<bool> {
        match self.node.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(self.not("true or false").with_allowed("true")),
        }
    }

    pub(super) fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T> {
        let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
        let allowed = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let Value::Text(text) = &self.node.value else {
            return Err(self.not("text").with_allowed(allowed));
        };
        match choices.iter().find(|(name, _)| name == text) {
            Some(&(_, choice)) => Ok(choice),
            None => {
                let problem = match similar(text, names.iter().copied()) {
                    Some(name) => format!("is not known here; did you mean {name:?}?"),
                    None => "is not known here".to_owned(),
                };
                Err(self.error(problem).with_allowed(allowed))
            }
        }
    }

    pub(super) fn integer(&self, range: RangeInclusive<u32>) -> Result<u32> {
        let signed = i64::from(*range.start())..=i64::from(*range.end());
        let number = self.signed(signed)?;
        // Within the range, hence within its type.
        Ok(u32::try_from(number).unwrap_or(*range.end()))
    }

    pub(super) fn signed(&self, range: RangeInclusive<i64>) -> Result<i64> {
        let allowed = match range.end() {
            end if *end == i64::from(u32::MAX) => format!("a whole number from {}", range.start()),
            end => format!("a whole number from {} to {end}", range.start()),
        };
        match self.node.value {
            Value::Integer(number) if range.contains(&number) => Ok(number),
            Value::Integer(number) if number < *range.start() => {
                Err(self.error("is too small").with_allowed(allowed))
            }
            Value::Integer(_) => Err(self.error("is too large").with_allowed(allowed)),
            _ => Err(self.not("a whole number").with_allowed(allowed)),
        }
    }

    pub(super) fn number(&self) -> Result<f64> {
        let number = match self.node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => return Err(self.not("a number").with_allowed("a number")),
        };
        if !number.is_finite() {
            return Err(self.error("is not finite").with_allowed("a finite number"));
        }
        Ok(number)
    }

    /// A length in the plane.
    pub(super) fn length(&self) -> Result<f64> {
        match self.number() {
            Ok(length) if length > 0.0 => Ok(length),
            _ => Err(self.error("is not a length").with_allowed("a finite number above 0")),
        }
    }

    /// A probability or a fraction.
    pub(super) fn rate(&self) -> Result<f64> {
        let number = match &self.node.value {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Text(text) => text.trim_end_matches('%').parse().ok(),
            _ => None,
        };
        match number {
            Some(rate) if (0.0..=1.0).contains(&rate) && !self.is_text() => Ok(rate),
            // Below two it is more likely a slip than a percentage.
            Some(percent) if (2.0..=100.0).contains(&percent) => {
                let allowed =
                    format!("a number from 0 to 1; for {percent}% write {}", percent / 100.0);
                Err(self.error("is not a probability").with_allowed(allowed))
            }
            _ => Err(self.error("is not a probability").with_allowed("a number from 0 to 1")),
        }
    }

    fn is_text(&self) -> bool {
        matches!(self.node.value, Value::Text(_))
    }

    pub(super) fn duration(&self) -> Result<Duration> {
        let allowed = "a number and its unit (us, ms, s, min, h) in quotes, such as \"300s\"";
        match &self.node.value {
            Value::Text(text) => text.parse().map_err(|error| {
                self.error(format!("is not a duration: {error}")).with_allowed(allowed)
            }),
            Value::Integer(_) | Value::Float(_) => {
                Err(self.error("is a duration without a unit").with_allowed(allowed))
            }
            _ => Err(self.not("a duration").with_allowed(allowed)),
        }
    }

    /// A duration above zero.
    pub(super) fn span(&self) -> Result<Duration> {
        match self.duration()? {
            Duration::ZERO => Err(self.error("is no time at all").with_allowed("at least \"1us\"")),
            span => Ok(span),
        }
    }
}

impl<'a> Section<'a> {
    pub(super) fn field(&self) -> &Field<'a> {
        &self.field
    }

    fn path(&self, key: &str) -> String {
        match self.field.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Field<'a>> {
        self.taken.insert(key);
        let Entry { node, .. } = self.table.get(key)?;
        Some(Field { source: self.field.source, path: self.path(key), node })
    }

    /// Takes a key that must be there; `example` is a value it could have.
    pub(super) fn require(&mut self, key: &'static str, example: &str) -> Result<Field<'a>> {
        if let Some(field) = self.take(key) {
            return Ok(field);
        }
        // Someone who mistyped a required key wants to hear about the typing.
        let untaken = self.table.keys().filter(|name| !self.taken.contains(name.as_str()));
        if let Some(typo) = untaken.into_iter().find(|name| similar(name, [key]).is_some()) {
            // Keys still to be taken are not known yet, so only what this one could be is offered.
            return Err(self.unknown(typo).with_allowed(format!("{key} = {example}")));
        }
        let Field { source, node, .. } = self.field;
        let error = source.error(node.origin, &self.path(key), "is missing");
        Err(error.with_allowed(format!("{key} = {example}")))
    }

    /// What `read` makes of the value of `key`, or `default` without one.
    pub(super) fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Field<'a>) -> Result<T>,
    ) -> Result<T> {
        self.take(key).map_or(Ok(default), |field| read(&field))
    }

    /// Reads the rest as the key `kind` says.
    pub(super) fn kind<C, T>(
        &mut self,
        context: &mut C,
        kinds: &[(&'static str, Reader<'a, C, T>)],
    ) -> Result<T> {
        let names: Vec<String> = kinds.iter().map(|(name, _)| format!("{name:?}")).collect();
        let read = self.require("kind", &names.join(" or "))?.choice(kinds)?;
        read(self, context)
    }

    /// Whether this key may stay although it has no meaning here: an override has changed what the
    /// table is, and the file's settings for what it was go with it.
    pub(super) fn is_leftover(&self, key: &str) -> bool {
        let overridden = |key: &str| {
            self.table.get(key).is_some_and(|entry| matches!(entry.node.origin, Origin::Set(_)))
        };
        ["kind", "variant"].into_iter().any(overridden) && !overridden(key)
    }

    /// Refuses keys that nobody took.
    pub(super) fn end(self) -> Result<()> {
        let untaken = self
            .table
            .iter()
            .filter(|(name, _)| !self.taken.contains(name.as_str()) && !self.is_leftover(name));
        match untaken.min_by_key(|(_, entry)| entry.key) {
            Some((name, _)) => Err(self.unknown(name)),
            None => Ok(()),
        }
    }

    fn unknown(&self, name: &str) -> ScenarioError {
        let problem = match similar(name, self.taken.iter().copied()) {
            Some(key) => format!("is not a key here; did you mean {key}?"),
            None => "is not a key here".to_owned(),
        };
        // An override that gave a known place a value is to blame before the file that named it.
        let blame = |entry: &Entry| match entry.node.origin {
            Origin::Set(_) => entry.node.origin,
            Origin::File { .. } => entry.key,
        };
        let origin = self.table.get(name).map_or(self.field.node.origin, blame);
        let allowed: Vec<&str> = self.taken.iter().copied().collect();
        let error = self.field.source.error(origin, &self.path(&quote(name)), problem);
        error.with_allowed(allowed.join(", "))
    }
}

/// The candidate that `text` was probably meant to be.
fn similar<'n>(text: &str, candidates: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Longer than any name by far, and comparing takes the product of both lengths.
    if text.len() > 40 {
        return None;
    }
    let close = |name: &&str| strsim::damerau_levenshtein(text, name) <= name.len().div_ceil(4);
    let likeness = |name: &&str| strsim::damerau_levenshtein(text, name);
    candidates.into_iter().filter(close).min_by_key(likeness)
}
