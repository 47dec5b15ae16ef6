//! What decides who leads belongs to the protocols: the agent implements no wire message, keeps no protocol timer and
//! drives no protocol but the node.
//!
//! Sources are read as text, comments, strings and tests left out. A rule is a word that must not occur, or that may occur
//! in the files named with it only, each with the reason.

use std::{
    fs,
    path::{Path, PathBuf},
};

struct Rule {
    words: &'static [&'static str],
    what: &'static str,
    /// Where it is allowed, and why.
    except: &'static [(&'static str, &'static str)],
}

const RULES: &[Rule] = &[
    Rule {
        words: &["impl Wire for", "impl wire::Wire for"],
        what: "implements a wire message",
        except: &[],
    },
    Rule { words: &["impl Machine for"], what: "implements a protocol", except: &[] },
    Rule {
        words: &["Timers", "TimerKind", "impl Timer"],
        what: "keeps a protocol timer",
        except: &[],
    },
    Rule {
        words: &[
            "Stack::new(",
            "Medley::new(",
            "ChurnTolerant::new(",
            "Announce::new(",
            "Leased::new(",
            "Ring::new(",
            "Bandit::new(",
            "Central::new(",
            "Founding::new(",
            "Voters::new(",
        ],
        what: "drives a protocol besides the node",
        except: &[],
    },
    Rule {
        words: &["Node::new("],
        what: "makes a node",
        except: &[
            ("host/adapter.rs", "the one that runs"),
            ("host/record.rs", "replays"),
            ("host/record/replay.rs", "replays"),
        ],
    },
    Rule {
        words: &["Leadership {", "Leadership::unknown("],
        what: "decides about leadership",
        except: &[
            ("api/query.rs", "an answer's JSON has the same name"),
            ("host/election.rs", "so has what an embedding program is told"),
            ("host/record/digest.rs", "takes an answer apart to hash it"),
        ],
    },
    Rule {
        words: &["while let Some(effect)", "out.pop()"],
        what: "has a drain loop",
        except: &[
            ("host/adapter.rs", "the one there is"),
            ("host/record.rs", "replays"),
            ("host/record/replay.rs", "replays"),
        ],
    },
];

#[test]
fn no_protocol_is_left_in_the_host() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/src");
    let mut found = Vec::new();
    for path in sources(&root) {
        let text = fs::read_to_string(&path).expect("a file just listed");
        let name = path.strip_prefix(&root).expect("below").to_string_lossy().into_owned();
        found.extend(faults(&name, &text));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_check_can_fail() {
    let wrong = "fn f() {}\nimpl Wire for Said {\n";
    assert_eq!(faults("core/leased.rs", wrong).len(), 1);
    assert!(faults("core/leased.rs", "// impl Wire for Said").is_empty(), "a comment");
    assert!(faults("core/leased.rs", "#[cfg(test)]\nmod tests {\nimpl Wire for Said {").is_empty());
    assert!(faults("host/adapter.rs", "while let Some(effect) = self.out.pop() {").is_empty());
    assert_eq!(faults("host/driver.rs", "while let Some(effect) = self.out.pop() {").len(), 2);
}

fn sources(root: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry of it").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => {
                    files.push(path);
                }
                false => {}
            }
        }
    }
    files.retain(|path| !path.ends_with("tests.rs"));
    files.sort();
    files
}

fn faults(name: &str, text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let line = line.split("//").next().unwrap_or_default();
        for rule in RULES {
            let allowed = rule.except.iter().any(|(file, _)| *file == name);
            for word in rule.words.iter().filter(|word| !allowed && line.contains(**word)) {
                found.push(format!("crates/agent/src/{name}:{number}: {}: {word}", rule.what));
            }
        }
    }
    found
}
