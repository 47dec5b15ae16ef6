//! The crate keeps its hands off the world: no clock, socket, thread, environment, global generator or
//! standard library, in its sources and in what it depends on. Clippy's disallow-lists say the same; this
//! also holds where nobody runs clippy.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What must not be written in the sources outside comments and tests.
const BANNED: [&str; 16] = [
    "std::",
    "Instant",
    "SystemTime",
    "UNIX_EPOCH",
    "thread",
    "HashMap",
    "HashSet",
    "RandomState",
    "thread_rng",
    "getrandom",
    "OsRng",
    "TcpStream",
    "UdpSocket",
    "tokio",
    "println!",
    "unsafe",
];

/// Dependencies, each no_std and free of side effects. A new one is a decision: see CONTRIBUTING.md.
const DEPENDENCIES: [&str; 4] = ["libm", "rand_core", "rand_xoshiro", "thiserror"];

#[test]
fn no_source_touches_the_world() {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 10, "the sources were not found: {files:?}");
    let mut found = Vec::new();
    for path in files {
        found.extend(breaches(&fs::read_to_string(&path).unwrap(), &path.display().to_string()));
    }
    assert_eq!(found, [] as [String; 0]);
}

/// The search would find what it looks for.
#[test]
fn a_breach_is_found() {
    let source = "fn f() {\n    // std::time in a comment\n    std::time::Instant::now();\n}\n";
    assert_eq!(breaches(source, "f.rs"), ["f.rs:3: std::", "f.rs:3: Instant"]);
}

fn breaches(source: &str, path: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let breach = |(number, line): (usize, &str)| {
        let banned: Vec<&str> = BANNED.into_iter().filter(|word| line.contains(word)).collect();
        banned.into_iter().map(move |word| format!("{path}:{}: {word}", number + 1))
    };
    lines.enumerate().flat_map(breach).collect()
}

#[test]
fn the_crate_declares_no_std_and_only_the_dependencies_it_may_have() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lib = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    assert!(lib.lines().any(|line| line == "#![no_std]"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap();
    let names: Vec<&str> = section
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(names, DEPENDENCIES);
}

/// Every source but the unit tests, which run under std.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a readable folder").path();
        let tests = path.file_stem().is_some_and(|stem| stem == "tests");
        match path.is_dir() {
            _ if tests => {}
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
