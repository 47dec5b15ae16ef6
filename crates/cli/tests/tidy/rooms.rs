//! The rooms of a crate, which are its top-level modules, import each other in one direction only.
//!
//! Read are the paths from `crate::`, or from `super::` as far as the root, of all code but tests. What `lib.rs` passes
//! on under a shorter path counts as the room it is from.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{files, line_at, without_comments};

const CRATES: &[&str] = &["agent", "lab", "proto", "settings", "sim"];

/// Crates whose rooms still import each other in circles. The aim is none.
const NOT_YET: &[&str] = &["lab"];

#[test]
fn rooms_do_not_import_each_other_in_circles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all = files(&root);
    let mut faults = Vec::new();
    for name in CRATES {
        let sources = format!("crates/{name}/src/");
        let mut house = House::default();
        for path in all.iter().filter(|path| path.starts_with(&sources)) {
            let text = fs::read_to_string(root.join(path)).expect("a file just listed");
            house.add(path, &path[sources.len()..], &text);
        }
        let cycle = house.cycle();
        match (cycle, NOT_YET.contains(name)) {
            (Some(cycle), false) => faults.push(format!("crates/{name}: {cycle}")),
            (None, true) => {
                faults.push(format!("crates/{name} has no circles: take it off the list"))
            }
            _ => {}
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Which room imports which, and where.
#[derive(Default)]
struct House {
    imports: BTreeMap<String, BTreeMap<String, String>>,
    /// What `lib.rs` passes on, by name, and from which room.
    passed_on: BTreeMap<String, String>,
}

impl House {
    fn add(&mut self, path: &str, below: &str, text: &str) {
        let text = without_comments(text);
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if below == "lib.rs" {
            for (at, _) in code.match_indices("pub use ") {
                for used in leaves(&code[at + 8..]) {
                    let used: Vec<_> = used.iter().filter(|part| *part != "self").collect();
                    if let [room, .., name] = used[..] {
                        self.passed_on.insert(name.clone(), room.clone());
                    }
                }
            }
            return;
        }
        let mut parts: Vec<&str> = below.trim_end_matches(".rs").split('/').collect();
        if parts.contains(&"tests") {
            return;
        }
        parts.retain(|part| *part != "mod");
        let from_here = self.imports.entry(parts[0].to_owned()).or_default();
        let to_root = "super::".repeat(parts.len());
        for prefix in ["crate::", &*to_root] {
            for (at, _) in code.match_indices(prefix) {
                let part_of_more =
                    code[..at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c));
                if part_of_more {
                    continue;
                }
                for used in leaves(&code[at + prefix.len()..]) {
                    let place = || format!("{path}:{}", line_at(code, at));
                    from_here.entry(used[0].clone()).or_insert_with(place);
                }
            }
        }
    }

    /// The shortest of the circles there are, told as a path.
    fn cycle(&self) -> Option<String> {
        let from = self.imports.keys().filter_map(|room| self.back_to(room));
        let way = from.min_by_key(Vec::len)?;
        let mut told = way[0].0.to_owned();
        for (room, place) in &way[1..] {
            told += &format!(" -> {room} ({place})");
        }
        Some(told)
    }

    /// The shortest way from a room back to it.
    fn back_to<'a>(&'a self, start: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        let mut ways = vec![vec![(start, "")]];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let here = way[way.len() - 1].0;
                for (used, place) in self.imports.get(here).into_iter().flatten() {
                    let room = self.room(used);
                    if room == here || !self.imports.contains_key(room) {
                        continue;
                    }
                    let mut way = way.clone();
                    way.push((room, place));
                    if room == start {
                        return Some(way);
                    }
                    if seen.insert(room) {
                        longer.push(way);
                    }
                }
            }
            ways = longer;
        }
        None
    }

    fn room<'a>(&'a self, used: &'a str) -> &'a str {
        match self.imports.contains_key(used) {
            true => used,
            false => self.passed_on.get(used).map_or(used, String::as_str),
        }
    }
}

/// The paths of a tree of imports, or the one path that an expression begins with.
fn leaves(code: &str) -> Vec<Vec<String>> {
    let mut leaves = Vec::new();
    let mut before: Vec<String> = Vec::new();
    let mut outer: Vec<usize> = Vec::new();
    let mut rest = code;
    loop {
        let long = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if long > 0 {
            before.push(rest[..long].to_owned());
        }
        rest = &rest[long..];
        if let Some(on) = rest.strip_prefix("::") {
            rest = on;
            continue;
        }
        if rest.starts_with('{') {
            outer.push(before.len());
            rest = rest[1..].trim_start();
            continue;
        }
        if long > 0 {
            leaves.push(before.clone());
        }
        // What follows the last part, such as `as name`, up to the next path.
        let Some(&depth) = outer.last() else { return leaves };
        before.truncate(depth);
        let next = rest.find([',', '}', ';']).unwrap_or(rest.len());
        match rest[next..].chars().next() {
            Some(',') => {}
            Some('}') => drop(outer.pop()),
            _ => return leaves,
        }
        if outer.is_empty() {
            return leaves;
        }
        rest = rest[next + 1..].trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(sources: &[(&str, &str)]) -> House {
        let mut house = House::default();
        sources.iter().for_each(|(path, text)| house.add(path, path, text));
        house
    }

    #[test]
    fn a_circle_is_told_with_the_places_of_its_imports() {
        let two = house(&[
            ("one.rs", "//! One.\nuse crate::two::Two;\n"),
            ("two/mod.rs", "mod part;\n"),
            ("two/part.rs", "use crate::{\n    one::{One, Other},\n};\n"),
        ]);
        assert_eq!(two.cycle().unwrap(), "one -> two (one.rs:2) -> one (two/part.rs:1)");
        let climbing =
            house(&[("a.rs", "use super::b;"), ("b/c.rs", "fn f() { super::super::a::g() }")]);
        assert!(climbing.cycle().is_some());
        let passed_on = [
            ("lib.rs", "pub mod a;\npub mod b;\npub use self::{a::{A, Other}, b::B};\n"),
            ("a.rs", "use crate::B;"),
            ("b.rs", "impl From<crate::A> for B {}"),
        ];
        assert!(house(&passed_on).cycle().is_some());
    }

    #[test]
    fn tests_comments_strings_and_the_room_itself_do_not_count() {
        let one_way = house(&[
            ("a.rs", "use crate::{a::X, b::Y};\nconst T: &str = \"crate::c\";"),
            ("b.rs", "// crate::a\n#[cfg(test)]\nmod tests;\nuse other_crate::a;"),
            ("b/tests.rs", "use crate::a::X;"),
            ("c.rs", "use crate::a;\n\n#[cfg(test)]\nmod tests {\n    use crate::d;\n}\n"),
            ("d.rs", "use crate::c;"),
        ]);
        assert_eq!(one_way.cycle(), None);
    }

    #[test]
    fn a_tree_of_imports_has_all_its_paths() {
        let tree = leaves("{self, a::{b as c, d::{e, f}}, g};\nuse h;");
        let tree: Vec<_> = tree.iter().map(|path| path.join("::")).collect();
        assert_eq!(tree, ["self", "a::b", "a::d::e", "a::d::f", "g"]);
        assert_eq!(leaves("a::b(c::d)"), [["a", "b"]]);
    }
}
