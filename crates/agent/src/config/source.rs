//! The sources of settings: a file, a directory, variables, flags.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use bellwether_settings::{
    Place, Result, SettingsError, Tree,
    error::{quote, similar},
    file::read_text,
    tree::{Given, Layer},
};

/// Where to look, weakest first. What is said later wins, field by field.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// One file, which is read first.
    pub file: Option<PathBuf>,
    /// A directory of which every `*.toml` is read, in the order of their names.
    pub directory: Option<PathBuf>,
    /// The environment; what does not begin with `BELLWETHER_` is ignored.
    pub variables: Vec<(OsString, OsString)>,
    /// Flags of the command line in their order.
    pub flags: Vec<Flag>,
}

/// A flag and its value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Flag {
    /// As on the command line, such as `--bind`.
    pub name: &'static str,
    /// The value that follows it.
    pub value: String,
}

impl Inputs {
    pub(super) fn tree(&self) -> Result<Tree> {
        let mut tree = Tree::default();
        if let Some(file) = &self.file {
            tree.add_file(file.display().to_string(), read_text(file, FILE)?)?;
        }
        for file in self.directory.as_deref().map_or(Ok(Vec::new()), files)? {
            tree.add_file(file.display().to_string(), read_text(&file, FILE)?)?;
        }
        self.add_variables(&mut tree)?;
        self.add_flags(&mut tree)?;
        Ok(tree)
    }

    fn add_variables(&self, tree: &mut Tree) -> Result<()> {
        let mut found = Vec::new();
        for (name, value) in &self.variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            if NOT_SETTINGS.contains(&name) {
                continue;
            }
            let place = Place::Variable { name: name.to_owned() };
            let known = SETTINGS.iter().map(|setting| setting.variable);
            let Some(setting) = SETTINGS.iter().find(|setting| setting.variable == name) else {
                // What all have in common makes nobody alike.
                let bare = |name: &'static str| name.trim_start_matches(PREFIX);
                let problem = match similar(&name[PREFIX.len()..], known.clone().map(bare)) {
                    Some(near) => format!("is not known; did you mean {PREFIX}{near}?"),
                    None => "is not known".to_owned(),
                };
                let known: Vec<&str> = known.collect();
                return Err(SettingsError::new(place, "", problem).with_allowed(known.join(", ")));
            };
            let Some(value) = value.to_str() else {
                let error = SettingsError::new(place, setting.field, "is not UTF-8 text");
                return Err(error.with_allowed("text"));
            };
            if value.is_empty() {
                let error = SettingsError::new(place, setting.field, "is empty");
                return Err(error.with_allowed("a value, or no such variable"));
            }
            found.push((setting, name, value));
        }
        // The environment has no order of its own.
        found.sort_by_key(|(setting, ..)| setting.field);
        for (setting, name, value) in found {
            let layer =
                |text: &str| Layer::Variable { name: name.to_owned(), text: text.to_owned() };
            add(tree, setting, &layer, &[value])?;
        }
        Ok(())
    }

    fn add_flags(&self, tree: &mut Tree) -> Result<()> {
        for setting in SETTINGS {
            let said = self.flags.iter().filter(|flag| flag.name == setting.flag);
            let values: Vec<&str> = said.map(|flag| flag.value.as_str()).collect();
            let layer =
                |text: &str| Layer::Flag { name: setting.flag.to_owned(), text: text.to_owned() };
            if !values.is_empty() {
                add(tree, setting, &layer, &values)?;
            }
        }
        for Flag { value, .. } in self.flags.iter().filter(|flag| flag.name == "--set") {
            tree.set(value, "FIELD=VALUE, such as timing.period=200ms or election.web.c=6")?;
        }
        Ok(())
    }
}

/// How the one text of a flag or variable is read.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Text,
    /// As in a file.
    Number,
    /// Separated by commas; a flag may be repeated instead.
    List,
    /// `KEY=VALUE`, separated by commas; the value goes to this key below KEY, or to KEY itself.
    Pairs(Option<&'static str>),
}

struct Setting {
    flag: &'static str,
    variable: &'static str,
    field: &'static str,
    shape: Shape,
}

const fn setting(
    flag: &'static str,
    variable: &'static str,
    field: &'static str,
    shape: Shape,
) -> Setting {
    Setting { flag, variable, field, shape }
}

/// Every field that has a flag and a variable of its own.
const SETTINGS: &[Setting] = &[
    setting("--name", "BELLWETHER_NAME", "name", Shape::Text),
    setting("--cluster", "BELLWETHER_CLUSTER", "cluster", Shape::Text),
    setting("--bind", "BELLWETHER_BIND", "bind", Shape::Text),
    setting("--advertise", "BELLWETHER_ADVERTISE", "advertise", Shape::List),
    setting("--join", "BELLWETHER_JOIN", "join", Shape::List),
    setting("--api", "BELLWETHER_API", "api", Shape::Text),
    setting("--api-name", "BELLWETHER_API_NAMES", "api_names", Shape::List),
    setting("--api-token-file", "BELLWETHER_API_TOKEN_FILE", "api_token_file", Shape::Text),
    setting("--socket", "BELLWETHER_SOCKET", "socket", Shape::Text),
    setting("--data-dir", "BELLWETHER_DATA_DIR", "data_dir", Shape::Text),
    setting("--key-file", "BELLWETHER_KEY_FILE", "key_file", Shape::Text),
    setting("--log", "BELLWETHER_LOG", "log", Shape::Text),
    setting("--record", "BELLWETHER_RECORD", "record", Shape::Text),
    setting("--record-limit", "BELLWETHER_RECORD_LIMIT", "record_limit", Shape::Number),
    setting("--timing", "BELLWETHER_TIMING", "timing", Shape::Text),
    setting("--tag", "BELLWETHER_TAGS", "tags", Shape::Pairs(None)),
    setting("--election", "BELLWETHER_ELECTIONS", "election", Shape::Pairs(Some("mode"))),
];

const PREFIX: &str = "BELLWETHER_";

/// Variables with our prefix that mean something to somebody else: the command line as a client, where the file
/// is, and what hooks and commands under `run` are told.
const NOT_SETTINGS: &[&str] = &[
    "BELLWETHER_CONFIG",
    "BELLWETHER_CONFIG_DIR",
    "BELLWETHER_HTTP_ADDR",
    "BELLWETHER_TOKEN",
    "BELLWETHER_TOKEN_FILE",
    "BELLWETHER_EVENT",
    "BELLWETHER_GROUP",
    "BELLWETHER_EPOCH",
    "BELLWETHER_SEQ",
    "BELLWETHER_LEADER",
    "BELLWETHER_SELF",
    "BELLWETHER_STATE",
    "BELLWETHER_VALID_UNTIL_US",
];

fn add(
    tree: &mut Tree,
    setting: &Setting,
    layer: &dyn Fn(&str) -> Layer,
    values: &[&str],
) -> Result<()> {
    let split = || values.iter().flat_map(|value| value.split(',')).map(str::trim);
    match setting.shape {
        Shape::Text | Shape::Number => {
            // The last one wins, as everywhere.
            let text = values.last().copied().unwrap_or_default();
            let given = match setting.shape {
                Shape::Number => Given::Toml(text.to_owned()),
                _ => Given::Text(text.to_owned()),
            };
            tree.add_value(layer(text), &[setting.field], given)
        }
        Shape::List => {
            let items: Vec<String> = split().map(str::to_owned).collect();
            let list = Given::List(items);
            tree.add_value(layer(&values.join(",")), &[setting.field], list)
        }
        Shape::Pairs(below) => {
            for pair in split() {
                let Some((key, value)) = pair.split_once('=') else {
                    let place = match layer("") {
                        Layer::File { path, .. } => Place::File { file: path },
                        Layer::Variable { name, .. } => Place::Variable { name },
                        Layer::Flag { name, .. } => Place::Flag { name },
                    };
                    let error = SettingsError::new(place, setting.field, "has no = in it");
                    let example = if below.is_some() { "NAME=MODE" } else { "KEY=VALUE" };
                    return Err(error.with_found(Some(pair)).with_allowed(example));
                };
                let path: Vec<&str> = [setting.field, key].into_iter().chain(below).collect();
                tree.add_value(layer(value), &path, Given::Text(value.to_owned()))?;
            }
            Ok(())
        }
    }
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error| {
        let place = Place::File { file: quote(&directory.display().to_string()) };
        let problem = match error.kind() {
            io::ErrorKind::NotFound => "there is no such directory".to_owned(),
            io::ErrorKind::NotADirectory => "is not a directory".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        SettingsError::new(place, "", problem)
            .with_allowed("a directory of *.toml")
            .caused_by(error)
    };
    let entries = fs::read_dir(directory).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<PathBuf>>>().map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    Ok(paths)
}

const FILE: &str =
    "a TOML file, or --config-dir with a directory of them; `bellwether init` writes one";
