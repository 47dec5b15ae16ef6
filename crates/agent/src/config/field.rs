//! Taking the tree apart: a table key by key, a value as what it should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    ops::RangeInclusive,
};

use bellwether_proto::Duration;

use super::{
    error::{ConfigError, hidden, quote, similar},
    tree::{Entry, Layer, Node, Origin, Tree, Value},
};

pub(super) type Result<T> = std::result::Result<T, ConfigError>;

/// A value and its path.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    tree: &'a Tree,
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
    pub(super) fn root(tree: &'a Tree) -> Self {
        Self { tree, path: String::new(), node: &tree.root }
    }

    /// An error that names and quotes this value.
    pub(super) fn error(&self, problem: impl Into<String>) -> ConfigError {
        self.tree
            .error(self.node.origin, &self.path, problem)
            .with_found(self.tree.written(self.node))
    }

    /// An error about this value being there at all, or about what is missing in it.
    pub(super) fn error_unquoted(&self, problem: impl Into<String>) -> ConfigError {
        self.tree.error(self.node.origin, &self.path, problem)
    }

    /// The file it was written in, if it was.
    pub(super) fn file(&self) -> Option<&'a str> {
        match &self.tree.layers[self.node.origin?.layer] {
            Layer::File { path, .. } => Some(path),
            Layer::Variable { .. } | Layer::Flag { .. } => None,
        }
    }

    fn not(&self, wanted: &str) -> ConfigError {
        self.error(format!("is {}, not {wanted}", self.node.value.what()))
    }

    pub(super) fn section(self) -> Result<Section<'a>> {
        match &self.node.value {
            Value::Table(table) => Ok(Section { field: self, table, taken: BTreeSet::new() }),
            _ => {
                let allowed = format!("a table: [{}]", self.path);
                Err(self.not("a table").with_allowed(allowed))
            }
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
            (name.as_str(), Field { tree: self.tree, path, node: &entry.node })
        };
        Ok(entries.into_iter().map(field).collect())
    }

    /// A list; a single text counts as a list of one.
    pub(super) fn list(&self) -> Result<Vec<Field<'a>>> {
        let items = match &self.node.value {
            Value::List(items) => items,
            Value::Text(_) => return Ok(vec![self.clone()]),
            _ => return Err(self.not("a list").with_allowed("a list in square brackets")),
        };
        let field = |(i, node)| Field { tree: self.tree, path: format!("{}.{i}", self.path), node };
        Ok(items.iter().enumerate().map(field).collect())
    }

    /// A list, and nothing that might pass for one.
    pub(super) fn strict_list(&self, example: &str) -> Result<Vec<Field<'a>>> {
        match &self.node.value {
            Value::List(_) => self.list(),
            _ => Err(self.not("a list").with_allowed(example)),
        }
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
            _ => Err(self.not("true or false").with_allowed("true or false, without quotes")),
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
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        match self.node.value {
            Value::Integer(number) => match u32::try_from(number) {
                Ok(number) if range.contains(&number) => Ok(number),
                Ok(number) if number > *range.end() => {
                    Err(self.error("is too large").with_allowed(allowed))
                }
                Err(_) if number > 0 => Err(self.error("is too large").with_allowed(allowed)),
                _ => Err(self.error("is too small").with_allowed(allowed)),
            },
            _ => Err(self.not("a whole number").with_allowed(allowed)),
        }
    }

    /// A number, whole or not, both bounds included.
    pub(super) fn number(&self, least: f64, most: f64) -> Result<f64> {
        let allowed = format!("a number from {least} to {most}");
        let number = match self.node.value {
            // Beyond 2^53 it is out of every range.
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => return Err(self.not("a number").with_allowed(allowed)),
        };
        let problem = match number {
            _ if (least..=most).contains(&number) => return Ok(number),
            _ if number > most => "is too large",
            _ if number < least => "is too small",
            _ => "is no number",
        };
        Err(self.error(problem).with_allowed(allowed))
    }

    /// A duration above zero and of an hour at most.
    pub(super) fn duration(&self) -> Result<Duration> {
        let allowed = "a number and its unit (ms, s, m, h), such as \"500ms\" or \"5s\"";
        let text = match &self.node.value {
            Value::Text(text) => text,
            Value::Integer(_) | Value::Float(_) => {
                return Err(self.error("is a duration without a unit").with_allowed(allowed));
            }
            _ => return Err(self.not("a duration").with_allowed(allowed)),
        };
        let read = parse_duration(text).map_err(|problem| {
            self.error(format!("is not a duration: {problem}")).with_allowed(allowed)
        })?;
        if read < SHORTEST || read > LONGEST {
            let problem = if read < SHORTEST { "is too short" } else { "is too long" };
            return Err(self.error(problem).with_allowed("a duration from 1ms to 1h"));
        }
        Ok(read)
    }

    /// Something this agent listens on.
    pub(super) fn listen(&self, port: u16) -> Result<SocketAddr> {
        let allowed = format!("IP:PORT, such as 0.0.0.0:{port} or [::1]:{port}");
        let text = self.text()?;
        let address: SocketAddr = text.parse().map_err(|_| {
            let problem = match text.parse::<std::net::IpAddr>() {
                Ok(_) => "has no port",
                Err(_) => "is not an address",
            };
            self.error(problem).with_allowed(allowed.clone())
        })?;
        if address.ip().is_multicast() {
            return Err(self.error("is a multicast address").with_allowed(allowed));
        }
        Ok(address)
    }

    /// A name that is shown to others and used in paths and variables: letters, digits, `-`, `_` and `.`, a
    /// letter or digit first.
    pub(super) fn name(&self) -> Result<&'a str> {
        let text = self.text()?;
        match bellwether_proto::node::check_name(text) {
            Ok(()) => Ok(text),
            Err(problem) => Err(self.error(problem).with_allowed(NAMES)),
        }
    }

    /// Text that is shown to others: no control characters, and not too long.
    pub(super) fn shown(&self, longest: usize) -> Result<&'a str> {
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
        Some(Field { tree: self.field.tree, path: self.path(key), node })
    }

    /// Takes a key that must be there; `example` is what could be written.
    pub(super) fn require(&mut self, key: &'static str, example: &str) -> Result<Field<'a>> {
        if let Some(field) = self.take(key) {
            return Ok(field);
        }
        // Someone who mistyped a required key wants to hear about the typing.
        let untaken = self.table.keys().filter(|name| !self.taken.contains(name.as_str()));
        if let Some(typo) = untaken.into_iter().find(|name| similar(name, [key]).is_some()) {
            // Keys still to be taken are not known yet, so only what this one could be is offered.
            return Err(self.unknown(typo).with_allowed(example));
        }
        let Field { tree, node, .. } = self.field;
        let error = tree.error(node.origin, &self.path(key), "is missing");
        Err(error.with_allowed(example))
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

    /// Refuses keys that nobody took.
    pub(super) fn end(self) -> Result<()> {
        let untaken = self.table.iter().filter(|(name, _)| !self.taken.contains(name.as_str()));
        match untaken.min_by_key(|(_, entry)| entry.key) {
            Some((name, _)) => Err(self.unknown(name)),
            None => Ok(()),
        }
    }

    fn unknown(&self, name: &str) -> ConfigError {
        let problem = match similar(name, self.taken.iter().copied()) {
            Some(key) => format!("is not a key here; did you mean {key}?"),
            None => "is not a key here".to_owned(),
        };
        let origin: Option<Origin> = self.table.get(name).map(|entry| entry.key);
        let allowed: Vec<&str> = self.taken.iter().copied().collect();
        let path = self.path(&quote(name));
        self.field.tree.error(origin, &path, problem).with_allowed(allowed.join(", "))
    }
}

/// As protocols write durations, and `m` for minutes besides.
pub(crate) fn parse_duration(text: &str) -> std::result::Result<Duration, String> {
    let minutes =
        text.strip_suffix('m').filter(|number| number.ends_with(|c: char| c.is_ascii_digit()));
    let whole = minutes.map(|number| format!("{number}min"));
    whole.as_deref().unwrap_or(text).parse::<Duration>().map_err(|error| error.to_string())
}

/// What a name may be, in words.
pub(super) const NAMES: &str =
    "up to 63 letters, digits, '-', '_' and '.', a letter or digit first";
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(3600);
