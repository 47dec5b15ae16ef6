//! For whom settings are read, and the lists of names that depend on it.

use crate::field::{Field, Result, Section};

/// For whom settings are read.
#[derive(Clone, Copy, Debug)]
pub enum Host<'h> {
    /// A node of the real world.
    Agent {
        /// What it is called.
        name: &'h str,
        /// Whether it has a disk to keep promises and votes on.
        keeps: bool,
    },
    /// So many nodes of a simulation. They are members and voters of elections that name none.
    Simulator(u32),
}

/// Names of nodes, each once, ascending. `what` they are.
pub(crate) fn names(field: &Field<'_>, most: usize, what: &str) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let example = "a list of names: [\"cellar\", \"kitchen\", \"roof\"]";
    for item in field.list().map_err(|error| error.with_allowed(example))? {
        let name = item.name()?;
        if found.iter().any(|known| known == name) {
            let error = item.error("is there twice");
            return Err(error.with_allowed("each name once: a majority is counted by names"));
        }
        found.push(name.to_owned());
    }
    if found.is_empty() || found.len() > most {
        let error = field.error_unquoted(format!("has {} entries", found.len()));
        return Err(error.with_allowed(format!("from 1 to {most} {what}")));
    }
    found.sort_unstable();
    Ok(found)
}

/// The list that `key` gives: of an agent it is demanded, in a simulation it may stand for all nodes.
pub(crate) fn listed<'a>(
    section: &mut Section<'a>,
    key: &'static str,
    (most, what): (usize, &str),
    host: Host<'_>,
) -> Result<(Option<Field<'a>>, Vec<String>)> {
    let field = match host {
        Host::Agent { .. } => {
            let example = "[\"cellar\", \"kitchen\", \"roof\"]: names, the same list on every node";
            Some(section.require(key, example)?)
        }
        Host::Simulator(nodes) => {
            let field = section.take(key);
            if field.is_none() && nodes as usize > most {
                let problem = format!("is among {nodes} nodes, and names no {key}");
                let error = section.field().error_unquoted(problem);
                return Err(error.with_allowed(format!("{key} = [\"node-0\", …], at most {most}")));
            }
            field
        }
    };
    let found = field.as_ref().map_or(Ok(Vec::new()), |field| names(field, most, what))?;
    Ok((field, found))
}
