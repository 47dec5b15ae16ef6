//! All sources of settings as one tree, in which every value knows where it came from.

use std::{collections::BTreeMap, ops::Range};

use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Place, locate};

/// Where settings come from, the later the stronger.
#[derive(Clone, Debug)]
pub(super) enum Layer {
    File { path: String, text: String },
    Variable { name: String, text: String },
    Flag { name: String, text: String },
}

/// A part of a layer. Earlier layers sort first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Origin {
    pub(super) layer: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    /// `None` only for the root, which nobody wrote.
    pub(super) origin: Option<Origin>,
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
    /// Where the key was first written.
    pub(super) key: Origin,
    pub(super) node: Node,
}

/// The layers and what they make together.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) layers: Vec<Layer>,
    pub(super) root: Node,
}

impl Tree {
    pub(super) fn new() -> Self {
        let root = Node { value: Value::Table(BTreeMap::new()), origin: None };
        Self { layers: Vec::new(), root }
    }

    /// Lays a file over what is there.
    pub(super) fn add_file(&mut self, path: String, text: String) -> Result<(), ConfigError> {
        let layer = self.layers.len();
        self.layers.push(Layer::File { path, text });
        let Some(Layer::File { text, .. }) = self.layers.last() else { return Ok(()) };
        let grown = DeTable::parse(text).map(|table| {
            let origin = |Range { start, end }| Origin { layer, start, end };
            grow_table(table.get_ref(), &origin)
        });
        let value = grown.map_err(|error| self.syntax(layer, &error))?;
        let origin = Some(Origin { layer, start: 0, end: 0 });
        merge(&mut self.root, Node { value: shorthand(value), origin });
        Ok(())
    }

    /// Lays one value over what is there. `text` is what was written, for messages.
    pub(super) fn add_value(&mut self, layer: Layer, path: &[&str], value: Given) {
        let (Layer::File { text, .. } | Layer::Variable { text, .. } | Layer::Flag { text, .. }) =
            &layer;
        let origin = Origin { layer: self.layers.len(), start: 0, end: text.len() };
        let mut value = value.grow(origin);
        for key in path.iter().rev() {
            let node = Node { value, origin: Some(origin) };
            let entry = Entry { key: origin, node };
            value = Value::Table(BTreeMap::from([((*key).to_owned(), entry)]));
        }
        self.layers.push(layer);
        merge(&mut self.root, Node { value: shorthand(value), origin: Some(origin) });
    }

    fn syntax(&self, layer: usize, error: &toml::de::Error) -> ConfigError {
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
    pub(super) fn error(
        &self,
        origin: Option<Origin>,
        field: &str,
        problem: impl Into<String>,
    ) -> ConfigError {
        let error = ConfigError::new(self.place(origin), field, problem);
        let Some(Origin { layer, start, end }) = origin else { return error };
        match &self.layers[layer] {
            Layer::File { text, .. } if end > 0 => error.with_snippet(locate(text, start..end).2),
            _ => error,
        }
    }

    pub(super) fn place(&self, origin: Option<Origin>) -> Place {
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

    /// The value as it was written, unless that is a `[header]`, which shows only its name.
    pub(super) fn written(&self, node: &Node) -> Option<&str> {
        let Origin { layer, start, end } = node.origin?;
        let text = match &self.layers[layer] {
            Layer::File { text, .. } => text.get(start..end)?,
            Layer::Variable { text, .. } | Layer::Flag { text, .. } => text,
        };
        match &node.value {
            Value::Table(_) => text.starts_with('{').then_some(text),
            _ => Some(text),
        }
    }
}

/// A value that was not read from a file.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Text(String),
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

/// `timing = "wan"` is short for `timing = { profile = "wan" }`, so that a flag that names another profile leaves
/// what a file tunes in place.
fn shorthand(mut root: Value) -> Value {
    if let Value::Table(table) = &mut root
        && let Some(Entry { node, .. }) = table.get_mut("timing")
        && let (Value::Text(_), Some(key)) = (&node.value, node.origin)
    {
        let profile = Entry { key, node: node.clone() };
        node.value = Value::Table(BTreeMap::from([("profile".to_owned(), profile)]));
    }
    root
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
        let node =
            Node { value: grow(value.get_ref(), origin), origin: Some(origin(value.span())) };
        (key.get_ref().to_string(), Entry { key: origin(key.span()), node })
    });
    Value::Table(entries.collect())
}
