//! A comment on a public item says something: one or two words are none.

use std::{fs, path::Path};

use super::files;

/// Crates with public items that still have such comments. The aim is none.
const NOT_YET: &[&str] = &["lab"];

#[test]
fn public_items_are_explained_in_more_than_two_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut faults = Vec::new();
    let mut unlisted = NOT_YET.to_vec();
    for path in files(&root) {
        let Some((name, below)) =
            path.strip_prefix("crates/").and_then(|rest| rest.split_once('/'))
        else {
            continue;
        };
        if !below.starts_with("src/") || !below.ends_with(".rs") {
            continue;
        }
        let text = fs::read_to_string(root.join(&path)).expect("a file just listed");
        let found = curt(&text);
        if NOT_YET.contains(&name) {
            unlisted.retain(|other| *other != name || found.is_empty());
        } else {
            faults.extend(found.iter().map(|(line, text)| format!("{path}:{line}: {text:?}")));
        }
    }
    faults.extend(
        unlisted.iter().map(|name| format!("crates/{name} has none: take it off the list")),
    );
    assert!(faults.is_empty(), "{} comments say nothing:\n{}", faults.len(), faults.join("\n"));
}

/// Comments of one or two words on public items, with their lines.
fn curt(source: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let first = at;
        while at < lines.len() && lines[at].trim_start().starts_with("///") {
            at += 1;
        }
        if at == first {
            at += 1;
            continue;
        }
        let words = lines[first..at].iter().map(|line| line.trim_start().trim_start_matches('/'));
        let words: Vec<&str> = words.flat_map(str::split_whitespace).collect();
        if words.len() <= 2 && is_public(&lines, at) {
            found.push((first + 1, words.join(" ")));
        }
    }
    found
}

/// Whether the item on this line, or below its attributes, can be seen from outside: it is `pub`, or part of an enum
/// or a trait that is.
fn is_public(lines: &[&str], mut at: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    while lines.get(at).is_some_and(|line| line.trim_start().starts_with("#[")) {
        at += 1;
    }
    let Some(mut item) = lines.get(at).copied() else { return false };
    loop {
        if item.trim_start().starts_with("pub ") {
            return true;
        }
        let own = indent(item);
        let outer = lines[..at].iter().rposition(|line| !line.is_empty() && indent(line) < own);
        let Some(outer) = outer else { return false };
        (at, item) = (outer, lines[outer]);
        let public =
            ["pub enum ", "pub trait "].iter().any(|start| item.trim_start().starts_with(start));
        // A variant with fields stands between a field and the enum.
        let variant = item.trim_start().starts_with(|c: char| c.is_ascii_uppercase());
        if public || !variant {
            return public;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curt_comments_on_public_items_are_found() {
        let source = "/// Who.\n#[derive(Debug)]\npub struct A {\n    /// See above.\n    pub b: u8,\n    /// Own.\n    c: u8,\n}\n";
        assert_eq!(curt(source), [(1, "Who.".into()), (4, "See above.".into())]);
        let source = "pub enum A {\n    /// The latter.\n    B {\n        /// It.\n        c: u8,\n    },\n}\n";
        assert_eq!(curt(source), [(2, "The latter.".into()), (4, "It.".into())]);
        assert_eq!(curt("pub trait A {\n    /// Its name.\n    fn name();\n}\n").len(), 1);
    }

    #[test]
    fn longer_and_private_ones_are_not() {
        let source = "/// What a run\n/// measures.\npub struct A;\n\n/// Who.\nstruct B {\n    /// It.\n    c: u8,\n}\n";
        assert!(curt(source).is_empty());
        assert!(
            curt("enum A {\n    /// It.\n    B {\n        /// Who.\n        c: u8 },\n}\n")
                .is_empty()
        );
        assert!(curt("impl A for B {\n    /// Its name.\n    fn name() {}\n}\n").is_empty());
    }
}
