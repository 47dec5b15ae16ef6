//! Taking the tree apart: a table key by key, a value as what it should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use bellwether_proto::Duration;

use crate::{
    error::{SettingsError, hidden, quote, similar, unknown_key},
    tree::{Entry, Layer, Node, Tree, Value},
};

/// What reading gives.
pub type Result<T> = std::result::Result<T, SettingsError>;

/// How to read one kind of a table, given what is known besides.
pub type Reader<'a, C, T> = fn(&mut Section<'a>, &mut C) -> Result<T>;

/// A value and its path.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    tree: &'a Tree,
    path: String,
    node: &'a Node,
}

/// A table of which keys are taken; [`Section::end`] refuses those that nobody took.
#[derive(Debug)]
pub struct Section<'a> {
    field: Field<'a>,
    table: &'a BTreeMap<String, Entry>,
    taken: BTreeSet<&'static str>,
    /// Whether a key says what the others are.
    of_kinds: bool,
}

impl<'a> Field<'a> {
    /// All of it.
    pub fn root(tree: &'a Tree) -> Self {
        Self { tree, path: String::new(), node: &tree.root }
    }

    /// An error that names and quotes this value.
    pub fn error(&self, problem: impl Into<String>) -> SettingsError {
        self.tree
            .error(self.node.origin, &self.path, problem)
            .with_found(self.tree.written(self.node))
    }

    /// An error about this value being there at all, or about what is missing in it.
    pub fn error_unquoted(&self, problem: impl Into<String>) -> SettingsError {
        self.tree.error(self.node.origin, &self.path, problem)
    }

    /// Where it is, for messages about another place.
    pub fn place(&self) -> String {
        self.tree.place(self.node.origin).to_string()
    }

    /// The file of this name beside the one that says so, or beside the first; wherever an absolute name says.
    pub fn near(&self, name: &str) -> PathBuf {
        let file = |layer: &Layer| match layer {
            Layer::File { path, .. } => Some(Path::new(path).with_file_name(name)),
            _ => None,
        };
        let own = self.node.origin.and_then(|origin| file(&self.tree.layers[origin.layer]));
        own.or_else(|| self.tree.layers.first().and_then(file)).unwrap_or_else(|| name.into())
    }

    /// The file it was written in, if it was.
    pub fn file(&self) -> Option<&'a str> {
        match &self.tree.layers[self.node.origin?.layer] {
            Layer::File { path, .. } => Some(path),
            Layer::Variable { .. } | Layer::Flag { .. } => None,
        }
    }

    fn not(&self, wanted: &str) -> SettingsError {
        self.error(format!("is {}, not {wanted}", self.node.value.what()))
    }

    /// A table, to be taken apart.
    pub fn section(self) -> Result<Section<'a>> {
        match &self.node.value {
            Value::Table(table) => {
                Ok(Section { field: self, table, taken: BTreeSet::new(), of_kinds: false })
            }
            _ => {
                let item = self.path.ends_with(|last: char| last.is_ascii_digit());
                let header = format!("a table: [{}]", self.path);
                let allowed =
                    if item { "a table: { KEY = VALUE, … }".to_owned() } else { header };
                Err(self.not("a table").with_allowed(allowed))
            }
        }
    }

    /// The tables of a table, in the order in which they were first written; their names are the user's.
    pub fn named(self) -> Result<Vec<(&'a str, Field<'a>)>> {
        let Value::Table(table) = &self.node.value else {
            let allowed = format!("a table for each: [{}.NAME]", self.path);
            return Err(self.not("a table").with_allowed(allowed));
        };
        let mut entries: Vec<(&String, &Entry)> = table.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.key);
        let field = |(name, entry): (&'a String, &'a Entry)| {
            let path = format!("{}.{}", self.path, quote(name));
            (name.as_str(), Field { tree: self.tree, path, node: &entry.node })
        };
        Ok(entries.into_iter().map(field).collect())
    }

    /// The value as a list.
    pub fn list(&self) -> Result<Vec<Field<'a>>> {
        let Value::List(items) = &self.node.value else {
            let allowed = match self.tree.written(self.node) {
                Some(_) => "a list in square brackets".to_owned(),
                None => format!("double brackets: [[{}]]", self.path),
            };
            return Err(self.not("a list").with_allowed(allowed));
        };
        let field = |(i, node)| Field { tree: self.tree, path: format!("{}.{i}", self.path), node };
        Ok(items.iter().enumerate().map(field).collect())
    }

    /// A list; a single text counts as a list of one.
    pub fn one_or_more(&self) -> Result<Vec<Field<'a>>> {
        match &self.node.value {
            Value::Text(_) => Ok(vec![self.clone()]),
            _ => self.list(),
        }
    }

    /// A list of exactly two.
    pub fn pair(&self) -> Result<[Field<'a>; 2]> {
        let wrong = |items: Vec<_>| {
            self.error(format!("has {} entries", items.len())).with_allowed("a list of two numbers")
        };
        self.list()?.try_into().map_err(wrong)
    }

    /// The value as text.
    pub fn text(&self) -> Result<&'a str> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.not("text").with_allowed("text in quotes")),
        }
    }

    /// True or false.
    pub fn flag(&self) -> Result<bool> {
        match self.node.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(self.not("true or false").with_allowed("true or false, without quotes")),
        }
    }

    /// One of these words.
    pub fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T> {
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

    /// A whole number, both bounds included.
    pub fn integer(&self, range: RangeInclusive<u32>) -> Result<u32> {
        let number = self.signed(i64::from(*range.start())..=i64::from(*range.end()))?;
        // Within the range, hence within its type.
        Ok(u32::try_from(number).unwrap_or(*range.end()))
    }

    /// A whole number that may be below zero.
    pub fn signed(&self, range: RangeInclusive<i64>) -> Result<i64> {
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

    /// A number, whole or not.
    pub fn number(&self) -> Result<f64> {
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

    /// A number, both bounds included.
    pub fn between(&self, least: f64, most: f64) -> Result<f64> {
        let allowed = || format!("a number from {least} to {most}");
        let number = self.number().map_err(|error| error.with_allowed(allowed()))?;
        let problem = match number {
            _ if number > most => "is too large",
            _ if number < least => "is too small",
            _ => return Ok(number),
        };
        Err(self.error(problem).with_allowed(allowed()))
    }

    /// A length in the plane.
    pub fn length(&self) -> Result<f64> {
        match self.number() {
            Ok(length) if length > 0.0 => Ok(length),
            _ => Err(self.error("is not a length").with_allowed("a finite number above 0")),
        }
    }

    /// A probability or a fraction.
    pub fn rate(&self) -> Result<f64> {
        let (number, is_text) = match &self.node.value {
            Value::Integer(number) => (Some(*number as f64), false),
            Value::Float(number) => (Some(*number), false),
            Value::Text(text) => (text.trim_end_matches('%').parse().ok(), true),
            _ => (None, false),
        };
        match number {
            Some(rate) if (0.0..=1.0).contains(&rate) && !is_text => Ok(rate),
            // Below two it is more likely a slip than a percentage.
            Some(percent) if (2.0..=100.0).contains(&percent) => {
                let allowed =
                    format!("a number from 0 to 1; for {percent}% write {}", percent / 100.0);
                Err(self.error("is not a probability").with_allowed(allowed))
            }
            _ => Err(self.error("is not a probability").with_allowed("a number from 0 to 1")),
        }
    }

    /// The value as a duration.
    pub fn duration(&self) -> Result<Duration> {
        let allowed =
            "a number and its unit (us, ms, s, m, h) in quotes, such as \"500ms\" or \"5m\"";
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
    pub fn span(&self) -> Result<Duration> {
        match self.duration()? {
            Duration::ZERO => Err(self.error("is no time at all").with_allowed("at least \"1us\"")),
            span => Ok(span),
        }
    }

    /// How long a node of the real world may wait: a duration from 1ms to 1h.
    pub fn wait(&self) -> Result<Duration> {
        let wait = self.duration()?;
        if wait < SHORTEST || wait > LONGEST {
            let problem = if wait < SHORTEST { "is too short" } else { "is too long" };
            return Err(self.error(problem).with_allowed("a duration from 1ms to 1h"));
        }
        Ok(wait)
    }

    /// A name that is shown to others and used in paths and variables: letters, digits, `-`, `_` and `.`, a
    /// letter or digit first.
    pub fn name(&self) -> Result<&'a str> {
        let text = self.text()?;
        match bellwether_proto::node::check_name(text) {
            Ok(()) => Ok(text),
            Err(problem) => Err(self.error(problem).with_allowed(NAMES)),
        }
    }

    /// Text that is shown to others: no control characters, and not too long.
    pub fn shown(&self, longest: usize) -> Result<&'a str> {
        let text = self.text()?;
        if text.chars().any(hidden) {
            let problem = "has characters that do not show";
            return Err(self.error(problem).with_allowed("text of one line"));
        }
        if text.len() > longest {
            let allowed = format!("at most {longest} bytes");
            return Err(self.error(format!("has {} bytes", text.len())).with_allowed(allowed));
        }
        Ok(text)
    }
}

impl<'a> Section<'a> {
    /// The table itself.
    pub fn field(&self) -> &Field<'a> {
        &self.field
    }

    fn path(&self, key: &str) -> String {
        match self.field.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// The value of a key, if it is there.
    pub fn take(&mut self, key: &'static str) -> Option<Field<'a>> {
        self.taken.insert(key);
        self.peek(key)
    }

    /// The same, without saying that the key is one of this table's.
    pub(crate) fn peek(&self, key: &str) -> Option<Field<'a>> {
        let Entry { node, .. } = self.table.get(key)?;
        Some(Field { tree: self.field.tree, path: self.path(key), node })
    }

    /// Takes a key that must be there; `example` is a value it could have.
    pub fn require(&mut self, key: &'static str, example: &str) -> Result<Field<'a>> {
        if let Some(field) = self.take(key) {
            return Ok(field);
        }
        // Someone who mistyped a required key wants to hear about the typing.
        let untaken = self.table.keys().filter(|name| !self.taken.contains(name.as_str()));
        if let Some(typo) = untaken.into_iter().find(|name| similar(name, [key]).is_some()) {
            // Keys still to be taken are not known yet, so only what this one could be is offered.
            return Err(self.unknown(typo).with_allowed(format!("{key} = {example}")));
        }
        let Field { tree, node, .. } = self.field;
        let error = tree.error(node.origin, &self.path(key), "is missing");
        Err(error.with_allowed(format!("{key} = {example}")))
    }

    /// What `read` makes of the value of `key`, or `default` without one.
    pub fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Field<'a>) -> Result<T>,
    ) -> Result<T> {
        self.take(key).map_or(Ok(default), |field| read(&field))
    }

    /// Reads the rest as the key `kind` says.
    pub fn kind<C, T>(
        &mut self,
        context: &mut C,
        kinds: &[(&'static str, Reader<'a, C, T>)],
    ) -> Result<T> {
        self.of_kinds = true;
        let names: Vec<String> = kinds.iter().map(|(name, _)| format!("{name:?}")).collect();
        let read = self.require("kind", &names.join(" or "))?.choice(kinds)?;
        read(self, context)
    }

    /// Whether this key may stay although it has no meaning here: an override has changed what the
    /// table is, and the file's settings for what it was go with it.
    pub fn is_leftover(&self, key: &str) -> bool {
        let overridden = |key: &str| {
            self.table.get(key).is_some_and(|entry| self.field.tree.is_override(entry.node.origin))
        };
        self.of_kinds && ["kind", "variant"].into_iter().any(overridden) && !overridden(key)
    }

    /// Refuses keys that nobody took.
    pub fn end(self) -> Result<()> {
        let untaken = self
            .table
            .iter()
            .filter(|(name, _)| !self.taken.contains(name.as_str()) && !self.is_leftover(name));
        match untaken.min_by_key(|(_, entry)| entry.key) {
            Some((name, _)) => Err(self.unknown(name)),
            None => Ok(()),
        }
    }

    fn unknown(&self, name: &str) -> SettingsError {
        // An override that gave a known place a value is to blame before the file that named it.
        let blame = |entry: &Entry| match entry.node.origin {
            Some(origin) if origin.layer > entry.key.layer => origin,
            _ => entry.key,
        };
        let origin = self.table.get(name).map(blame).or(self.field.node.origin);
        let problem = unknown_key(name, self.taken.iter().copied());
        let allowed: Vec<&str> = self.taken.iter().copied().collect();
        let error = self.field.tree.error(origin, &self.path(&quote(name)), problem);
        error.with_allowed(allowed.join(", "))
    }
}

/// What a name may be, in words.
pub const NAMES: &str = "up to 63 letters, digits, '-', '_' and '.', a letter or digit first";
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(3600);
