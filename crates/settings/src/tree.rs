//! All sources as one tree, in which every value knows where it came from.

use std::{collections::BTreeMap, ops::Range};

use toml::de::{DeTable, DeValue};

use crate::error::{Place, SettingsError, locate, quote, unknown_key};

/// Where values come from, the later the stronger.
#[derive(Clone, Debug)]
pub enum Layer {
    /// A file of TOML.
    File {
        /// As it was given.
        path: String,
        /// What is in it.
        text: String,
    },
    /// A variable of the environment.
    Variable {
        /// The variable's name.
        name: String,
        /// The value as text.
        text: String,
    },
    /// A flag of the command line.
    Flag {
        /// As it was given, without its value.
        name: String,
        /// The value as text.
        text: String,
    },
}

/// A part of a layer. Earlier layers sort first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Origin {
    pub(crate) layer: usize,
    start: usize,
    end: usize,
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// `None` only for the root of several sources, which nobody wrote.
    pub origin: Option<Origin>,
}

/// What TOML can say, but for dates.
#[derive(Clone, Debug)]
pub enum Value {
    /// A piece of text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A date, or an integer that does not fit; no field takes either.
    Other,
    /// A list of values.
    List(Vec<Node>),
    /// A table of values by key.
    Table(BTreeMap<String, Entry>),
}

/// A value in a table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where the key was first written.
    pub key: Origin,
    /// The value itself.
    pub node: Node,
}

/// The layers and what they make together.
#[derive(Debug)]
pub struct Tree {
    pub(crate) layers: Vec<Layer>,
    /// The outermost table.
    pub root: Node,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node { value: Value::Table(BTreeMap::new()), origin: None };
        Self { layers: Vec::new(), root }
    }
}

impl Tree {
    /// One file; what is missing is missing in it.
    ///
    /// # Errors
    ///
    /// It is not TOML.
    pub fn of_file(path: String, text: String) -> Result<Self, SettingsError> {
        let mut tree = Self::default();
        tree.add_file(path, text)?;
        tree.root.origin = Some(Origin { layer: 0, start: 0, end: 0 });
        Ok(tree)
    }

    /// Lays a file over what is there, tables key by key.
    ///
    /// # Errors
    ///
    /// It is not TOML.
    pub fn add_file(&mut self, path: String, text: String) -> Result<(), SettingsError> {
        let file = self.parse(path, text)?;
        merge(&mut self.root, file);
        Ok(())
    }

    /// Puts what a second file says of the keys `kept` into a table of this name. What it says of those `left` is left
    /// out.
    ///
    /// # Errors
    ///
    /// It is not TOML, or has other keys.
    pub fn graft(
        &mut self,
        (path, text): (String, String),
        (kept, left): (&[&str], &[&str]),
        table: &str,
    ) -> Result<(), SettingsError> {
        let mut file = self.parse(path, text)?;
        let key = Origin { layer: self.layers.len() - 1, start: 0, end: 0 };
        let known = || kept.iter().chain(left).copied();
        if let Value::Table(entries) = &mut file.value {
            let unknown = entries.iter().filter(|(name, _)| !known().any(|one| one == *name));
            if let Some((name, entry)) = unknown.min_by_key(|(_, entry)| entry.key) {
                let error = self.error(Some(entry.key), &quote(name), unknown_key(name, known()));
                return Err(error.with_allowed(known().collect::<Vec<_>>().join(", ")));
            }
            entries.retain(|name, _| kept.contains(&name.as_str()));
        }
        if let Value::Table(root) = &mut self.root.value {
            root.insert(table.to_owned(), Entry { key, node: file });
        }
        Ok(())
    }

    fn parse(&mut self, path: String, text: String) -> Result<Node, SettingsError> {
        let layer = self.layers.len();
        let grown = DeTable::parse(&text).map(|table| {
            let origin = |Range { start, end }| Origin { layer, start, end };
            grow_table(table.get_ref(), &origin)
        });
        self.layers.push(Layer::File { path, text });
        let value = grown.map_err(|error| self.syntax(layer, &error))?;
        Ok(Node { value, origin: Some(Origin { layer, start: 0, end: 0 }) })
    }

    /// Puts one value at this path, whatever was there.
    ///
    /// # Errors
    ///
    /// The path leads nowhere, or to a table that a single value would replace.
    pub fn add_value(
        &mut self,
        layer: Layer,
        path: &[&str],
        value: Given,
    ) -> Result<(), SettingsError> {
        let (Layer::File { text, .. } | Layer::Variable { text, .. } | Layer::Flag { text, .. }) =
            &layer;
        let origin = Origin { layer: self.layers.len(), start: 0, end: text.len() };
        self.layers.push(layer);
        let value = value.grow(origin);
        let mut keys = path.to_vec();
        if let (Some(key), Value::Text(_)) = (keys.last(), &value) {
            keys.extend(short_for(key));
        }
        match walk(&mut self.root, &keys, origin) {
            Ok(place) => {
                if let (Value::Table(old), false) = (&place.value, matches!(value, Value::Table(_)))
                    && !old.is_empty()
                {
                    let (path, keys) = (path.join("."), old.keys().map(String::as_str));
                    let one = keys.collect::<Vec<_>>().join(", ");
                    let problem = "is a table and cannot become a single value";
                    let error = self.error(Some(origin), &path, problem);
                    return Err(error.with_allowed(format!("{path}.KEY=value with one of {one}")));
                }
                *place = Node { value, origin: Some(origin) };
                Ok(())
            }
            Err((problem, allowed)) => {
                Err(self.error(Some(origin), &path.join("."), problem).with_allowed(allowed))
            }
        }
    }

    /// Does what `--set PATH=VALUE` says; `example` is one. `PATH=none` takes a table out of the file.
    ///
    /// # Errors
    ///
    /// It is nothing of the kind, or [`add_value`](Self::add_value) refuses it.
    pub fn set(&mut self, set: &str, example: &str) -> Result<(), SettingsError> {
        let name = format!("--set {set}");
        let wrong = |path: &str, problem: &str| {
            let place = Place::Flag { name: name.clone() };
            Err(SettingsError::new(place, path, problem).with_allowed(example))
        };
        let Some((path, text)) = set.split_once('=') else { return wrong("", "has no = in it") };
        let path = path.trim();
        let keys: Vec<&str> = path.split('.').collect();
        if keys.iter().any(|key| key.is_empty()) {
            return wrong(path, "has an empty name in its path");
        }
        if keys.len() > DEEPEST {
            return wrong(path, "leads deeper than any field");
        }
        let text = text.trim().to_owned();
        if text == "none" && remove(&mut self.root, &keys) {
            return Ok(());
        }
        let given = Given::Toml(text.clone());
        self.add_value(Layer::Flag { name, text }, &keys, given)
    }

    fn syntax(&self, layer: usize, error: &toml::de::Error) -> SettingsError {
        let (problem, expected) = match error.message() {
            "duplicate key" => ("duplicate key", "each key once in a table"),
            message => {
                message.split_once(", expected ").unwrap_or((message, "see https://toml.io"))
            }
        };
        // The parser offers a literal string, which few would know to be one in quotes.
        let expected = if problem.contains("must be quoted") { "text in quotes" } else { expected };
        let Range { start, end } = error.span().unwrap_or(0..0);
        let origin = Origin { layer, start, end: end.max(start + 1) };
        self.error(Some(origin), "", format!("not TOML: {problem}")).with_allowed(expected)
    }

    /// An error at `origin`, without a found value.
    pub fn error(
        &self,
        origin: Option<Origin>,
        field: &str,
        problem: impl Into<String>,
    ) -> SettingsError {
        let error = SettingsError::new(self.place(origin), field, problem);
        let Some(Origin { layer, start, end }) = origin else { return error };
        match &self.layers[layer] {
            Layer::File { text, .. } if end > 0 => error.with_snippet(locate(text, start..end).2),
            _ => error,
        }
    }

    /// Where that is.
    pub fn place(&self, origin: Option<Origin>) -> Place {
        let Some(Origin { layer, start, end }) = origin else { return Place::Settings };
        match &self.layers[layer] {
            Layer::File { path, .. } if end == 0 => Place::File { file: path.clone() },
            Layer::File { path, text } => {
                let (line, column, _) = locate(text, start..end);
                Place::Position { file: path.clone(), line, column }
            }
            Layer::Variable { name, .. } => Place::Variable { name: name.clone() },
            Layer::Flag { name, .. } => Place::Flag { name: name.clone() },
        }
    }

    /// Whether that was said on the command line or in the environment, about what a file says.
    pub(crate) fn is_override(&self, origin: Option<Origin>) -> bool {
        origin.is_some_and(|origin| !matches!(self.layers[origin.layer], Layer::File { .. }))
    }

    /// The value as it was written, unless that is a `[header]`, which shows only its name.
    pub(crate) fn written(&self, node: &Node) -> Option<&str> {
        let Origin { layer, start, end } = node.origin?;
        let text = match &self.layers[layer] {
            Layer::File { text, .. } => text.get(start..end)?,
            Layer::Variable { text, .. } | Layer::Flag { text, .. } => text,
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

/// A value that was not read from a file.
#[derive(Clone, Debug)]
pub enum Given {
    /// Text, whatever it looks like.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
    /// As TOML if it is, else as text: durations and names need no quotes, which a shell would eat.
    Toml(String),
}

impl Given {
    fn grow(self, origin: Origin) -> Value {
        match self {
            Self::Text(text) => Value::Text(text),
            Self::List(items) => {
                let item = |text| Node { value: Value::Text(text), origin: Some(origin) };
                Value::List(items.into_iter().map(item).collect())
            }
            Self::Toml(text) => match DeValue::parse(&text) {
                Ok(value) => grow(value.get_ref(), &|_| origin),
                Err(_) => Value::Text(text),
            },
        }
    }
}

impl Value {
    /// The type in words.
    pub(crate) fn what(&self) -> &'static str {
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

/// Tables are laid over each other key by key; anything else replaces what was there.
fn merge(below: &mut Node, above: Node) {
    let Node { value, origin } = above;
    match (&mut below.value, value) {
        (Value::Table(old), Value::Table(new)) => {
            for (name, entry) in new {
                match old.get_mut(&name) {
                    Some(known) => merge(&mut known.node, entry.node),
                    None => {
                        old.insert(name, entry);
                    }
                }
            }
        }
        (old, new) => {
            *old = new;
            below.origin = origin;
        }
    }
}

/// What is at this path; tables that lead there are made. Else what is wrong with it, and what is allowed.
fn walk<'n>(
    root: &'n mut Node,
    keys: &[&str],
    origin: Origin,
) -> Result<&'n mut Node, (String, String)> {
    let mut at = root;
    for (depth, &key) in keys.iter().enumerate() {
        let walked = || keys[..depth].join(".");
        at = match &mut at.value {
            Value::Table(table) => {
                let number = |key: &&str| key.parse::<usize>().is_ok();
                if !table.contains_key(key) && keys.get(depth + 1).is_some_and(number) {
                    let allowed = format!("{key}.NUMBER where the file has [[{key}]]");
                    return Err((format!("points into {key}, which has no entries"), allowed));
                }
                let fresh = || {
                    let value = Value::Table(BTreeMap::new());
                    Entry { key: origin, node: Node { value, origin: Some(origin) } }
                };
                &mut table.entry(key.to_owned()).or_insert_with(fresh).node
            }
            Value::List(items) => {
                let length = items.len();
                let item = key.parse::<usize>().ok().and_then(|item| items.get_mut(item));
                item.ok_or_else(|| {
                    let problem = format!("points to no entry of {}: it has {length}", walked());
                    (problem, "the number of an entry, counted from 0".to_owned())
                })?
            }
            other => {
                let (walked, what) = (walked(), other.what());
                let problem = format!("points into {walked}, which is {what}");
                return Err((problem, format!("{walked}=value")));
            }
        };
    }
    Ok(at)
}

/// Takes a table or a list of tables out: `membership=none`. Whether that is what was meant: `none` is a value of some
/// fields too, and what nobody wrote needs no removing.
fn remove(root: &mut Node, keys: &[&str]) -> bool {
    let Some((last, above)) = keys.split_last() else { return false };
    let mut at = root;
    for &key in above {
        let Value::Table(table) = &mut at.value else { return false };
        let Some(entry) = table.get_mut(key) else { return false };
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
        None => above.is_empty() && OPTIONAL.contains(last),
    }
}

/// Tables at the root that may be missing.
const OPTIONAL: [&str; 4] = ["node", "membership", "election", "fault"];

/// `timing = "wan"` is short for `timing = { profile = "wan" }`, so that a flag that names another profile leaves
/// what a file tunes in place.
fn short_for(key: &str) -> Option<&'static str> {
    (key == "timing").then_some("profile")
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
                origin: Some(origin(item.span())),
            };
            Value::List(items.iter().map(item).collect())
        }
        DeValue::Table(table) => grow_table(table, origin),
    }
}

fn grow_table(table: &DeTable<'_>, origin: &dyn Fn(Range<usize>) -> Origin) -> Value {
    let entries = table.iter().map(|(key, value)| {
        let place = origin(value.span());
        let mut node = Node { value: grow(value.get_ref(), origin), origin: Some(place) };
        if let (Some(below), Value::Text(_)) = (short_for(key.get_ref()), &node.value) {
            let entry = Entry { key: place, node: node.clone() };
            node.value = Value::Table(BTreeMap::from([(below.to_owned(), entry)]));
        }
        (key.get_ref().to_string(), Entry { key: origin(key.span()), node })
    });
    Value::Table(entries.collect())
}

/// Deepest path of `--set`. No field lies deeper than six; the limit keeps hostile paths off the stack, as the parser's
/// own limit does for files.
const DEEPEST: usize = 16;
