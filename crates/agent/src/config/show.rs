//! What is set, to what, and who said so.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::node::Role;

use bellwether_settings::{
    Place, Tree,
    election::{FLAVOURS, VARIANTS},
    tree::{Node, Value},
};

use super::{Config, Mode, Setting as Shown, hook::event_name, neighbours};
use crate::status::Position;

/// One field as it is in force.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Setting {
    /// Its path, as in a file.
    pub field: String,
    /// Its value, as it would be written in a file.
    pub value: String,
    /// Who said so: a file and line, a variable, a flag, a profile or the default.
    pub source: String,
}

/// A field that differs between two sets of settings.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Change {
    /// Its path, as in a file.
    pub field: String,
    /// Whether a running agent can take it over.
    pub live: bool,
}

impl Config {
    /// What `newer` changes, for an agent that is told to read its settings again: if any change is not
    /// [live](Change::live), nothing is to be applied and the fields are to be named.
    pub fn changes(&self, newer: &Self) -> Vec<Change> {
        let values = |config: &Self| -> BTreeMap<String, String> {
            config.settings().into_iter().map(|one| (one.field, one.value)).collect()
        };
        let (old, new) = (values(self), values(newer));
        let fields: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let changed = fields.into_iter().filter(|field| old.get(*field) != new.get(*field));
        changed.map(|field| Change { field: field.clone(), live: self.is_live(field) }).collect()
    }

    /// Whom to talk to, what others read, and what this node is worth: no machine has to be built anew.
    fn is_live(&self, field: &str) -> bool {
        let worth = field.strip_prefix("election.").and_then(|rest| rest.strip_suffix(".priority"));
        let eventual = |name| {
            let election = self.elections.iter().find(|election| election.name == name);
            election.is_some_and(|election| {
                matches!(&election.mode, Mode::Eventual(_)) && election.has_priority()
            })
        };
        field == "join" || field.starts_with("tags.") || worth.is_some_and(eventual)
    }

    /// Every field, its value, and where that came from.
    pub fn settings(&self) -> Vec<Shown> {
        let mut all = Vec::new();
        let mut add = |field: &str, value: String, otherwise: &str| {
            let source = self.sources.get(field).map_or(otherwise, String::as_str).to_owned();
            all.push(Shown { field: field.to_owned(), value, source });
        };
        add("name", quoted(&self.name), "host name");
        add("cluster", quoted(&self.cluster), DEFAULT);
        add("bind", quoted(&self.bind), DEFAULT);
        add("advertise", list(&self.advertise), DEFAULT);
        add("join", list(&self.join), DEFAULT);
        add("multicast", quoted(&self.multicast), DEFAULT);
        add("interfaces", list(&self.interfaces), DEFAULT);
        add("api", quoted(&self.api), DEFAULT);
        add("api_names", list(&self.api_names), DEFAULT);
        let path = |path: &Option<std::path::PathBuf>| {
            path.as_ref().map_or("(none)".to_owned(), |path| quoted(&path.display()))
        };
        add("api_token_file", path(&self.api_token_file), DEFAULT);
        add("socket", self.socket.shown(), DEFAULT);
        let group = self.socket_group.as_ref();
        add(
            "socket_group",
            group.map_or("(none)".to_owned(), |group| quoted(&group.name)),
            DEFAULT,
        );
        add("data_dir", path(&self.data_dir), DEFAULT);
        add("key_file", quoted(&self.key_file.display()), DEFAULT);
        add("log", quoted(&self.log.name()), DEFAULT);
        add("record", path(&self.record), DEFAULT);
        add("record_limit", self.record_limit.to_string(), DEFAULT);
        let profile = self.timing.profile.name();
        add("timing.profile", quoted(&profile), DEFAULT);
        for (wait, value) in self.timing.waits() {
            add(&format!("timing.{wait}"), quoted(&value), &format!("profile {profile}"));
        }
        let (exponent, feedback) = (self.exponent().to_string(), quoted(&self.feedback().name()));
        add("membership.exponent", exponent, &format!("profile {profile}"));
        add("membership.feedback", feedback, &format!("profile {profile}"));
        let position =
            self.position.map_or("(none)".to_owned(), |Position { x, y }| format!("[{x}, {y}]"));
        add("position", position, DEFAULT);
        for (key, value) in &self.tags {
            add(&format!("tags.{key}"), quoted(value), DEFAULT);
        }
        for election in &self.elections {
            let mut add = |key: &str, value: String| {
                add(&format!("election.{}.{key}", election.name), value, DEFAULT);
            };
            let role = election.role.name();
            add("mode", quoted(&election.mode.name()));
            add("role", quoted(&role));
            if election.role == Role::Candidate && election.has_priority() {
                add("priority", election.priority.to_string());
            }
            match &election.mode {
                Mode::Eventual(eventual) => {
                    add("variant", quoted(&named(&VARIANTS, eventual.variant)));
                    add("c", eventual.c.to_string());
                    add("f", eventual.f.to_string());
                    add("margin", eventual.margin.to_string());
                    add("on_isolation", quoted(&eventual.on_isolation));
                    let criterion = if eventual.learned { "learned" } else { "priority" };
                    add("criterion", quoted(&criterion));
                }
                Mode::Learned(learned) => {
                    add("voters", list(&learned.voters));
                    add("policy", quoted(&learned.policy.name()));
                    add("lease", quoted(&learned.lease(&self.timing)));
                    add("sample", quoted(&learned.sample(&self.timing)));
                    add("memory", learned.memory.to_string());
                    add("tenure", quoted(&learned.tenure));
                    add("margin", learned.margin.to_string());
                }
                Mode::Announced(announced) => {
                    let tenure = if announced.sticky { "sticky" } else { "preemptive" };
                    add("tenure", quoted(&tenure));
                }
                Mode::Leased(leased) => {
                    add("members", list(&leased.members));
                    add("flavour", quoted(&named(&FLAVOURS, leased.flavour)));
                    add("drift", leased.drift.to_string());
                    let criterion = if leased.learned.is_some() { "learned" } else { "hash" };
                    add("criterion", quoted(&criterion));
                    if let Some(keeping) = &leased.learned {
                        add("tenure", quoted(&keeping.tenure));
                        add("margin", keeping.margin.to_string());
                    }
                }
                Mode::Central(central) => {
                    let shown = neighbours::shown(
                        central,
                        self.tables.get(&election.name),
                        self.timing.profile,
                    );
                    shown.into_iter().for_each(|(key, value)| add(key, value));
                }
            }
        }
        for hook in &self.hooks {
            let mut add = |key: &str, value: String| {
                add(&format!("hook.{}.{key}", hook.name), value, DEFAULT);
            };
            let events: Vec<&str> = hook.events.iter().map(|&kind| event_name(kind)).collect();
            add("events", if events.is_empty() { "(all)".to_owned() } else { list(&events) });
            add("election", hook.election.as_ref().map_or("(all)".to_owned(), quoted));
            add("command", list(&hook.command));
            add("timeout", quoted(&hook.timeout));
            add("reconcile", hook.reconcile.to_string());
            let user = hook.user.as_ref();
            add("user", user.map_or("(the agent's)".to_owned(), |user| quoted(&user.name)));
        }
        all
    }
}

fn quoted(value: &impl ToString) -> String {
    format!("{:?}", value.to_string())
}

/// As it is written.
fn named<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, one)| *one == value).map_or("", |one| one.0)
}

fn list<T: ToString>(values: &[T]) -> String {
    format!("[{}]", values.iter().map(quoted).collect::<Vec<_>>().join(", "))
}

/// Who said what, for everything that anybody said.
pub(super) fn sources(tree: &Tree) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    walk(tree, "", &tree.root, &mut found);
    found
}

fn walk(tree: &Tree, path: &str, node: &Node, found: &mut BTreeMap<String, String>) {
    let Value::Table(table) = &node.value else {
        let source = match tree.place(node.origin) {
            // A column helps nobody here.
            Place::Position { file, line, .. } => format!("{file}:{line}"),
            place => place.to_string(),
        };
        found.insert(path.to_owned(), source);
        return;
    };
    for (name, entry) in table {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(tree, &below, &entry.node, found);
    }
}

const DEFAULT: &str = "default";
