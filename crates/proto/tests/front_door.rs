//! The front door: what the pages of the crate show without the feature `research`, and semver covers. Each of its items
//! has an example that runs, and every public item of the crate is described in more than two words.
//!
//! Sources are read as text. An item is at the front door if `lib.rs` or one of its [`OPEN`] modules declares or
//! re-exports it, and no attribute hides it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The modules that have a page.
const OPEN: [&str; 3] = ["machine", "node", "wire"];
/// How the rest is hidden.
const HIDDEN: &str = "doc(hidden)";

#[test]
fn every_item_of_the_front_door_has_an_example() {
    let door = front_door();
    assert!(door.len() > 60, "the front door was not found: {door:?}");
    let lacking: Vec<String> = door
        .iter()
        .filter(|(module, name)| !has_example(&definition(module, name).1))
        .map(|(module, name)| format!("{}: {name}", path_of(&definition(module, name).0).display()))
        .collect();
    assert!(lacking.is_empty(), "no example that runs:\n{}", lacking.join("\n"));
}

#[test]
fn every_public_item_says_something() {
    let mut files = Vec::new();
    collect(&root(), &mut files);
    let faults: Vec<String> = files.iter().flat_map(|file| curt(&read(file), file)).collect();
    assert!(faults.is_empty(), "{} say next to nothing:\n{}", faults.len(), faults.join("\n"));
}

/// The searches would find what they look for.
#[test]
fn what_is_wrong_is_found() {
    let source = "/// Who.\n#[inline]\npub fn who() {}\n/// What.\nfn what() {}\n/// Who it is.\npub a: u8,\n";
    assert_eq!(curt(source, Path::new("a.rs")), ["a.rs:1: Who."]);
    let trees = uses("#[doc(hidden)]\npub use a::A;\npub use {b::{B, c::{self, C}}, d::D as E};\n");
    let names: Vec<String> = trees.iter().map(|path| path.join("::")).collect();
    assert_eq!(names, ["b::B", "b::c", "b::c::C", "d::D"]);
    assert!(has_example(&["/// ```".to_owned()]));
    assert!(!has_example(&["/// ```text".to_owned()]));
}

/// Modules and names of all items.
fn front_door() -> BTreeSet<(Vec<String>, String)> {
    let mut door = BTreeSet::new();
    for module in [vec![]].into_iter().chain(OPEN.map(|name| vec![name.to_owned()])) {
        let source = read(&path_of(&module));
        for (name, above) in declared(&source) {
            if !above.iter().any(|line| line.contains(HIDDEN)) {
                door.insert((module.clone(), name));
            }
        }
        for path in uses(&source) {
            let (name, path) = path.split_last().expect("a path has a name");
            door.insert((absolute(&module, path), name.clone()));
        }
    }
    door
}

/// Where an item is declared, and the lines above it: a module that only re-exports it leads on.
fn definition(module: &[String], name: &str) -> (Vec<String>, Vec<String>) {
    let source = read(&path_of(module));
    if let Some((_, above)) = declared(&source).into_iter().find(|(found, _)| found == name) {
        return (module.to_vec(), above);
    }
    let path = uses(&source).into_iter().find(|path| path.last().is_some_and(|last| last == name));
    let path = path.unwrap_or_else(|| panic!("{name} is not in {}", module.join("::")));
    definition(&absolute(module, &path[..path.len() - 1]), name)
}

/// A path as written in a module, from the root of the crate.
fn absolute(module: &[String], path: &[String]) -> Vec<String> {
    match path.split_first() {
        Some((first, rest)) if first == "crate" => rest.to_vec(),
        Some((first, rest)) if first == "self" => [module, rest].concat(),
        _ => [module, path].concat(),
    }
}

/// What a file declares to the world, and the comments and attributes above each.
fn declared(source: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut above = Vec::new();
    for line in source.lines() {
        let mut words = line.split([' ', '(', '<', ':', ';', '{']).filter(|word| !word.is_empty());
        if line.starts_with("///") || line.starts_with('#') {
            above.push(line.to_owned());
            continue;
        }
        if line.starts_with("pub ") {
            let kinds = ["struct", "enum", "trait", "fn", "const", "type"];
            if words.nth(1).is_some_and(|word| kinds.contains(&word)) {
                let name = words.find(|word| !kinds.contains(word)).expect("items have names");
                found.push((name.to_owned(), above.clone()));
            }
        }
        above.clear();
    }
    found
}

/// All paths that a file re-exports and does not hide.
fn uses(source: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, _) in
        source.match_indices("\npub use ").chain(source.starts_with("pub use ").then_some((0, "")))
    {
        let hidden = source[..at].lines().last().is_some_and(|line| line.contains(HIDDEN));
        let tree = source[at..].split(';').next().unwrap_or_default();
        if !hidden {
            let tree: String = tree.trim().trim_start_matches("pub use ").split('\n').collect();
            expand(&[], &tree, &mut paths);
        }
    }
    paths
}

fn expand(before: &[String], tree: &str, paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    match tree.split_once('{') {
        None => {
            let path = tree.split(" as ").next().unwrap_or_default();
            let mut path =
                [before, &path.split("::").map(|part| part.trim().to_owned()).collect::<Vec<_>>()]
                    .concat();
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            paths.push(path);
        }
        Some((path, inner)) => {
            let parts =
                path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty());
            let before = [before, &parts.collect::<Vec<_>>()].concat();
            let inner = &inner[..inner.rfind('}').expect("braces are closed")];
            let mut depth = 0;
            let pieces = inner.split(|char| {
                depth += i32::from(char == '{') - i32::from(char == '}');
                char == ',' && depth == 0
            });
            pieces
                .filter(|piece| !piece.trim().is_empty())
                .for_each(|piece| expand(&before, piece, paths));
        }
    }
}

fn has_example(above: &[String]) -> bool {
    above.iter().any(|line| line.trim() == "/// ```")
}

/// Descriptions of one line and at most two words, of what others may see.
fn curt(source: &str, path: &Path) -> Vec<String> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
    let private = ["pub(", "fn ", "struct ", "enum ", "const ", "type ", "mod ", "impl"];
    let found = lines.iter().enumerate().filter(|&(at, line)| {
        let alone = !(is_doc(at + 1) || at > 0 && is_doc(at - 1));
        let below = lines[at..].iter().skip(1).find(|line| !line.starts_with('#')).copied();
        let public =
            !below.is_some_and(|below| private.iter().any(|start| below.starts_with(start)));
        let text = line.strip_prefix("///").unwrap_or("one of three");
        alone && public && text.split_whitespace().count() < 3
    });
    found.map(|(at, line)| format!("{}:{}: {}", path.display(), at + 1, &line[4..])).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The file of a module.
fn path_of(module: &[String]) -> PathBuf {
    let path = module.iter().fold(root(), |path, part| path.join(part));
    match module {
        [] => path.join("lib.rs"),
        _ if path.join("mod.rs").exists() => path.join("mod.rs"),
        _ => path.with_extension("rs"),
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All sources but those of tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the sources") {
        let path = entry.expect("an entry of it").path();
        let tests = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !tests {
            collect(&path, files);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !tests {
            files.push(path);
        }
    }
    files.sort();
}
