//! Breaks rules of the shipped node one at a time, and sees who notices. See `README.md`.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// One change of one rule.
#[derive(Default)]
struct Mutant {
    name: String,
    rule: String,
    what: String,
    file: String,
    /// What is run, in order, until something notices.
    by: Vec<String>,
    old: String,
    new: String,
}

/// What noticed, and after how much.
struct Caught {
    by: String,
    after: String,
    problem: String,
}

fn main() -> ExitCode {
    let wanted = env::args().nth(1);
    match run(wanted.as_deref()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

fn run(wanted: Option<&str>) -> Result<bool, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).ok_or("no repository around this")?;
    let text = read(&here.join("mutants.txt"))?;
    let mut mutants = parse(&text)?;
    mutants.retain(|mutant| wanted.is_none_or(|wanted| mutant.name.contains(wanted)));
    let scratch = root.join("target/mutants");
    let tree = scratch.join("tree");
    copy(root, &tree)?;
    let binary = scratch.join("build/release/examples/explore_nodes");
    build(&tree, &scratch)?;
    let catchers: BTreeSet<&String> = mutants.iter().flat_map(|mutant| &mutant.by).collect();
    for by in catchers {
        if let Some(caught) = catch(&binary, by)? {
            return Err(format!("nothing is changed, and {by:?} says: {}", caught.problem));
        }
    }
    println!("as it is, nobody finds anything");
    let mut rows = Vec::new();
    let mut survivors = 0;
    for mutant in &mutants {
        let path = tree.join(&mutant.file);
        let before = read(&path)?;
        if before.matches(&mutant.old).count() != 1 {
            return Err(format!("{}: the text must occur once in {}", mutant.name, mutant.file));
        }
        write(&path, &before.replace(&mutant.old, &mutant.new))?;
        let built = build(&tree, &scratch);
        let mut caught = None;
        if built.is_ok() {
            for by in &mutant.by {
                caught = catch(&binary, by)?;
                if caught.is_some() {
                    break;
                }
            }
        }
        write(&path, &before)?;
        built.map_err(|problem| format!("{}: {problem}", mutant.name))?;
        match &caught {
            Some(caught) => println!(
                "{}: {}, after {}: {}",
                mutant.name, caught.by, caught.after, caught.problem
            ),
            None => println!("{}: SURVIVES", mutant.name),
        }
        survivors += usize::from(caught.is_none());
        rows.push((mutant, caught));
    }
    println!("{} mutants, {survivors} survive", rows.len());
    if wanted.is_none() && survivors == 0 {
        write(&root.join("docs/results/mutants.md"), &table(&rows))?;
    }
    Ok(survivors == 0)
}

fn table(rows: &[(&Mutant, Option<Caught>)]) -> String {
    let mut text = String::from(
        "# Rules broken on purpose\n\nEvery row is one rule of the shipped node, changed in one place, and what noticed: a case of the explorer \
         after so many\nstates, or a case of the conformance suite after so many seeds. Written by\n\
         [checks/mutants](../../checks/mutants/README.md).\n\n\
         | mutant | rule | what was changed | caught by | after | what did not hold |\n|---|---|---|---|---|---|\n",
    );
    for (mutant, caught) in rows {
        let Mutant { name, rule, what, .. } = mutant;
        let Some(Caught { by, after, problem }) = caught else { continue };
        let problem = problem.replace('|', "/");
        text += &format!("| {name} | {rule} | {what} | {by} | {after} | {problem} |\n");
    }
    text
}

fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let mut all = Vec::new();
    let mut now = Mutant::default();
    // Outside, in the old text, in the new one.
    let mut part = 0;
    for (number, line) in text.lines().enumerate() {
        match (part, line) {
            (0, "<<<<") => part = 1,
            (1, "====") => part = 2,
            (2, ">>>>") => {
                part = 0;
                now.old.pop();
                now.new.pop();
                all.push(std::mem::take(&mut now));
            }
            (1, _) => now.old += &format!("{line}\n"),
            (2, _) => now.new += &format!("{line}\n"),
            _ if line.is_empty() || line.starts_with('#') => {}
            _ => {
                let pair = line.strip_prefix("@ ").and_then(|line| line.split_once(": "));
                let (key, value) = pair.ok_or(format!("line {}: {line:?}", number + 1))?;
                match key {
                    "name" => now.name = value.to_owned(),
                    "rule" => now.rule = value.to_owned(),
                    "what" => now.what = value.to_owned(),
                    "file" => now.file = value.to_owned(),
                    "by" => now.by.push(value.to_owned()),
                    _ => return Err(format!("line {}: no key {key:?}", number + 1)),
                }
            }
        }
    }
    Ok(all)
}

/// All that is tracked. What is as it was is not written again, lest it is built again.
fn copy(root: &Path, tree: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-co", "--exclude-standard"])
        .output();
    let listed = listed.map_err(|error| format!("git ls-files: {error}"))?;
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(bytes) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        let parent: PathBuf = to.parent().map(Path::to_owned).unwrap_or_default();
        fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", to.display()))?;
        fs::write(&to, bytes).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(())
}

/// Quick to build rather than quick to run: most of the time goes into building.
fn build(tree: &Path, scratch: &Path) -> Result<(), String> {
    let output = Command::new("cargo")
        .current_dir(tree)
        .args([
            "build",
            "--release",
            "--quiet",
            "-p",
            "bellwether-sim",
            "--example",
            "explore_nodes",
        ])
        .env("CARGO_TARGET_DIR", scratch.join("build"))
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "64")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
        .env("RUSTFLAGS", "-Awarnings")
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("does not build\n{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Runs one catcher.
fn catch(binary: &Path, by: &str) -> Result<Option<Caught>, String> {
    let output = Command::new(binary).args(by.split(' ')).output();
    let output = output.map_err(|error| format!("{}: {error}", binary.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(None);
    }
    // What breaks so badly that it does not get that far is caught as well.
    let found = said.lines().find_map(|line| line.split_once(": caught after "));
    let (after, problem) = match found {
        Some((_, rest)) => rest.split_once(": ").unwrap_or((rest, "")),
        None => {
            let died = String::from_utf8_lossy(&output.stderr);
            let line = died.lines().find(|line| !line.is_empty()).unwrap_or("").to_owned();
            return match output.status.code() {
                Some(2) | None => Err(format!("{by:?}: {line}")),
                _ => Ok(Some(Caught { by: by.to_owned(), after: "-".to_owned(), problem: line })),
            };
        }
    };
    let words: Vec<&str> = by.split(' ').collect();
    let by = match words.as_slice() {
        ["conform", subject, case, ..] => format!("`conform --mode {subject} --case {case}`"),
        [case, ..] => format!("explorer, `{case}`"),
        [] => String::new(),
    };
    Ok(Some(Caught { by, after: after.to_owned(), problem: problem.to_owned() }))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
