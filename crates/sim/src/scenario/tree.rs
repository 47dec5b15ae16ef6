//! A scenario file as a tree in which every value knows where it came from.

use std::{collections::BTreeMap, ops::Range};

use toml::de::{DeTable, DeValue};

use super::error::{Place, ScenarioError, locate};

/// The texts a scenario is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    /// Overrides, each `path=value`.
    pub(super) sets: &'a [String],
}

/// Where a key or value was written. File positions sort before overrides.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Origin {
    File {
        start: usize,
        end: usize,
    },
    /// The override of this index.
    Set(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A date, or an integer that does not fit; no field takes either.
    Other,
    List(Vec<Node>),
    Table(BTreeMap<String, Entry>),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Where the key is.
    pub(super) key: Origin,
    pub(super) node: Node,
}

/// Deepest path of an override. No field lies deeper than six; the limit keeps hostile paths off
/// the stack, as the parser's own limit does for files.
const DEEPEST: usize = 16;

/// Tables of a scenario that may be missing.
const ROOTS: [&str; 4] = ["node", "membership", "election", "fault"];

impl<'a> Source<'a> {
    /// Parses the file and applies the overrides in their order.
    pub(super) fn tree(self) -> Result<Node, ScenarioError> {
        let table = DeTable::parse(self.text).map_err(|error| self.syntax(&error))?;
        let mut root = Node {
            origin: Origin::File { start: 0, end: 0 },
            value: grow_table(table.get_ref(), &file_origin),
        };
        for (i, set) in self.sets.iter().enumerate() {
            self.apply(&mut root, i, set)?;
        }
        Ok(root)
    }

    fn syntax(self, error: &toml::de::Error) -> ScenarioError {
        let (problem, expected) = match error.message() {
            "duplicate key" => ("duplicate key", "each key once in a table"),
            message => {
                message.split_once(", expected ").unwrap_or((message, "see https://toml.io"))
            }
        };
        // The parser offers a literal string, which few would know to be one in quotes.
        let expected = if problem.contains("must be quoted") { "text in quotes" } else { expected };
        let Range { start, end } = error.span().unwrap_or(0..0);
        self.error(Origin::File { start, end }, "", format!("not TOML: {problem}"))
            .with_allowed(expected)
    }

    fn apply(self, root: &mut Node, index: usize, set: &str) -> Result<(), ScenarioError> {
        let origin = Origin::Set(index);
        let example = "path=value, such as network.nodes=20 or fault.0.at=5s";
        let Some((path, text)) = set.split_once('=') else {
            return Err(self.error(origin, "", "has no = in it").with_allowed(example));
        };
        let path = path.trim();
        let keys: Vec<&str> = path.split('.').collect();
        if keys.iter().any(|key| key.is_empty()) {
            return Err(self
                .error(origin, path, "has an empty name in its path")
                .with_allowed(example));
        }
        if keys.len() > DEEPEST {
            return Err(self
                .error(origin, path, "leads deeper than any field")
                .with_allowed(example));
        }
        if text.trim() == "none" && self.remove(root, &keys) {
            return Ok(());
        }
        let mut at = root;
        for (depth, key) in keys.iter().enumerate() {
            let walked = keys[..depth].join(".");
            at = match &mut at.value {
                Value::Table(table) => {
                    let fresh = || Entry {
                        key: origin,
                        node: Node { value: Value::Table(BTreeMap::new()), origin },
                    };
                    let known = table.contains_key(*key);
                    if !known
                        && keys.get(depth + 1).is_some_and(|next| next.parse::<usize>().is_ok())
                    {
                        let problem = format!("points into {key}, which has no entries");
                        let allowed = format!("{key}.NUMBER where the file has [[{key}]]");
                        return Err(self.error(origin, path, problem).with_allowed(allowed));
                    }
                    &mut table.entry((*key).to_owned()).or_insert_with(fresh).node
                }
                Value::List(items) => {
                    let (length, item) = (items.len(), key.parse::<usize>().ok());
                    let Some(item) = item.and_then(|item| items.get_mut(item)) else {
                        let problem = format!("points to no entry of {walked}: it has {length}");
                        let allowed = "the number of an entry, counted from 0";
                        return Err(self.error(origin, path, problem).with_allowed(allowed));
                    };
                    item
                }
                other => {
                    let problem = format!("points into {walked}, which is {}", other.what());
                    let error = self.error(origin, path, problem);
                    return Err(error.with_allowed(format!("{walked}=value")));
                }
            };
        }
        let text = text.trim();
        let value = match DeValue::parse(text) {
            Ok(value) => grow(value.get_ref(), &|_| origin),
            // Durations and names need no quotes, which a shell would eat.
            Err(_) => Value::Text(text.to_owned()),
        };
        if let (Value::Table(old), false) = (&at.value, matches!(value, Value::Table(_)))
            && !old.is_empty()
        {
            let keys: Vec<&str> = old.keys().map(String::as_str).collect();
            let error = self.error(origin, path, "is a table and cannot become a single value");
            return Err(
                error.with_allowed(format!("{path}.KEY=value with one of {}", keys.join(", ")))
            );
        }
        *at = Node { value, origin };
        Ok(())
    }

    /// Takes a table or a list of tables out of the file: `membership=none`. Whether that is what was meant: `none` is a
    /// value of some fields too, and what nobody wrote needs no removing.
    fn remove(self, root: &mut Node, keys: &[&str]) -> bool {
        let Some((last, above)) = keys.split_last() else { return false };
        let mut at = root;
        for key in above {
            let Value::Table(table) = &mut at.value else { return false };
            let Some(entry) = table.get_mut(*key) else { return false };
            at = &mut entry.node;
        }
        let Value::Table(table) = &mut at.value else { return false };
        let removable = |entry: &Entry| match &entry.node.value {
            Value::Table(_) => true,
            Value::List(items) => items.iter().all(|item| matches!(item.value, Value::Table(_))),
            _ => false,
        };
        match table.get(*last) {
            Some(entry) if removable(entry) => table.remove(*last).is_some(),
            Some(_) => false,
            None => above.is_empty() && ROOTS.contains(last),
        }
    }

    /// An error at `origin`, without a found value.
    pub(super) fn error(
        self,
        origin: Origin,
        field: &str,
        problem: impl Into<String>,
    ) -> ScenarioError {
        let error = ScenarioError::new(self.place(origin), field, problem);
        match origin {
            // The root: the file as a whole has no line to show.
            Origin::File { start: 0, end: 0 } => error,
            Origin::File { start, end } => error.snippet(Some(locate(self.text, start..end).2)),
            Origin::Set(_) => error,
        }
    }

    pub(super) fn place(self, origin: Origin) -> Place {
        match origin {
            Origin::File { start: 0, end: 0 } => Place::File { file: self.file.to_owned() },
            Origin::File { start, end } => {
                let (line, column, _) = locate(self.text, start..end);
                Place::Position { file: self.file.to_owned(), line, column }
            }
            Origin::Set(i) => Place::Set { text: self.sets[i].clone() },
        }
    }

    /// The value as it was written, unless that is a `[header]`, which shows only its name.
    pub(super) fn written(self, node: &Node) -> Option<&'a str> {
        let text = match node.origin {
            Origin::File { start, end } => self.text.get(start..end)?,
            Origin::Set(i) => self.sets[i].split_once('=')?.1.trim(),
        };
        let inline = match &node.value {
            Value::Table(_) => text.starts_with('{'),
            Value::List(items) => items.first().is_none_or(|first| {
                !matches!(first.value, Value::Table(_)) || self.written(first).is_some()
            }),
            _ => true,
        };
        inline.then_some(text)
    }
}

impl Value {
    /// The type in words.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number with a fraction",
            Self::Bool(_) => "true or false",
            Self::Other => "a date or a number beyond 64 bits",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

fn file_origin(Range { start, end }: Range<usize>) -> Origin {
    Origin::File { start, end }
}

fn grow(value: &DeValue<'_>, origin: &dyn Fn(Range<usize>) -> Origin) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other, Value::Integer),
        DeValue::Float(number) => number.as_str().parse().map_or(Value::Other, Value::Float),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(_) => Value::Other,
        DeValue::Array(items) => {
            let item = |item: &toml::Spanned<DeValue<'_>>| Node {
                value: grow(item.get_ref(), origin),
                origin: origin(item.span()),
            };
            Value::List(items.iter().map(item).collect())
        }
        DeValue::Table(table) => grow_table(table, origin),
    }
}

fn grow_table(table: &DeTable<'_>, origin: &dyn Fn(Range<usize>) -> Origin) -> Value {
    let entries = table.iter().map(|(key, value)| {
        let node = Node { value: grow(value.get_ref(), origin), origin: origin(value.span()) };
        (key.get_ref().to_string(), Entry { key: origin(key.span()), node })
    });
    Value::Table(entries.collect())
}
