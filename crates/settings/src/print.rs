//! A tree written down again, as one file.

use std::fmt::Write as _;

use crate::tree::{Node, Tree, Value};

impl Tree {
    /// All that is said, as TOML: what was laid over a file is in it, comments are not.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        table(&self.root, "", &mut text);
        text
    }
}

/// A table's values, then the tables in it under headers of their own.
fn table(node: &Node, path: &str, text: &mut String) {
    let Value::Table(entries) = &node.value else { return };
    // In the order in which they were written: `at` before `kind`, the network before what goes wrong in it.
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(_, entry)| entry.key);
    for (key, entry) in &entries {
        if !is_table(&entry.node) && !is_tables(&entry.node) {
            let _ = write!(text, "{} = ", bare(key));
            inline(&entry.node.value, text);
            text.push('\n');
        }
    }
    for (key, entry) in &entries {
        let path = match path {
            "" => bare(key),
            path => format!("{path}.{}", bare(key)),
        };
        if is_table(&entry.node) {
            // What has only tables in it is there with the first of them.
            if !has_only_tables(&entry.node) {
                let _ = write!(text, "\n[{path}]\n");
            }
            table(&entry.node, &path, text);
        } else if let (Value::List(items), true) = (&entry.node.value, is_tables(&entry.node)) {
            for item in items {
                let _ = write!(text, "\n[[{path}]]\n");
                table(item, &path, text);
            }
        }
    }
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

fn has_only_tables(node: &Node) -> bool {
    match &node.value {
        Value::Table(entries) => {
            !entries.is_empty() && entries.values().all(|entry| is_table(&entry.node))
        }
        _ => false,
    }
}

fn is_tables(node: &Node) -> bool {
    matches!(&node.value, Value::List(items) if !items.is_empty() && items.iter().all(is_table))
}

fn inline(value: &Value, text: &mut String) {
    let _ = match value {
        Value::Text(value) => write!(text, "{}", quoted(value)),
        Value::Integer(value) => write!(text, "{value}"),
        Value::Float(value) => write!(text, "{value:?}"),
        Value::Bool(value) => write!(text, "{value}"),
        // No field takes one, so that nobody reads what has one.
        Value::Other => write!(text, "\"\""),
        Value::List(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                inline(&item.value, text);
            }
            write!(text, "]")
        }
        Value::Table(entries) => {
            text.push('{');
            for (index, (key, entry)) in entries.iter().enumerate() {
                let _ = write!(text, "{}{} = ", if index == 0 { " " } else { ", " }, bare(key));
                inline(&entry.node.value, text);
            }
            write!(text, " }}")
        }
    };
}

fn bare(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !key.is_empty() && key.chars().all(plain) {
        true => key.to_owned(),
        false => quoted(key),
    }
}

/// A basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            c if c.is_control() => write!(quoted, "\\u{:04X}", u32::from(c)),
            c => write!(quoted, "{c}"),
        };
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use crate::Tree;

    #[test]
    fn what_is_written_reads_as_what_it_was_written_from() {
        let text = "name = \"a \\\"b\\\"\\n\"\nx = [1, [2.0, 3]]\n[network]\nnodes = 5\nloss = { rate = 0.5 }\n\
                    [[fault]]\nat = \"1s\"\nwho = [{ a = true }, { a = false }]\n[[fault]]\nat = \"2s\"\n\
                    [node.election.\"odd name\"]\nmode = \"leased\"\n";
        let mut tree = Tree::of_file("a".into(), text.into()).unwrap();
        tree.set("network.loss.rate=0.25", "").unwrap();
        let once = tree.to_toml();
        assert!(once.contains("rate = 0.25"), "{once}");
        assert!(once.contains("[node.election.\"odd name\"]"), "{once}");
        let again = Tree::of_file("b".into(), once.clone()).unwrap().to_toml();
        assert_eq!(once, again);
    }
}
