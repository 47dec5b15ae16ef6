//! Verbs that need no agent: settings, keys, help.

mod command;

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

use command::command;
use serde_json::Value;

fn bellwether(args: &[&str]) -> Output {
    command(args).env("COLUMNS", "200").output().expect("the binary under test runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

#[test]
fn init_writes_what_a_first_node_needs_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node");
    let dir = path.display().to_string();
    let output = bellwether(&["init", &dir, "--cluster", "garden", "--name", "kitchen"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for secret in ["cluster.key", "api.token"] {
        let mode = fs::metadata(path.join(secret)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{secret}");
    }
    let config = path.join("bellwether.toml").display().to_string();
    let next = format!("next: bellwether agent --config {config} --name kitchen\n");
    assert!(text(&output.stdout).contains(&next), "{output:?}");
    // It is copied to every node.
    assert!(!fs::read_to_string(&config).unwrap().contains("kitchen"));
    let output = bellwether(&["config", "check", "--config", &config, "--name", "kitchen"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "the settings of kitchen in cluster garden are right\n");
    let output = bellwether(&["config", "show", "--json", "--config", &config]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let data = shown.as_array().unwrap().iter().find(|one| one["field"] == "data_dir").unwrap();
    let state = path.canonicalize().unwrap().join("state").display().to_string();
    assert_eq!(data["value"], format!("{state:?}"));
    // Wherever the folder is copied to; and what is missing there is told before an agent starts.
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for name in ["bellwether.toml", "cluster.key", "api.token"] {
        fs::copy(path.join(name), copy.join(name)).unwrap();
    }
    fs::remove_file(path.join("api.token")).unwrap();
    let copied = copy.join("bellwether.toml").display().to_string();
    let check = |config: &str, more: &[&str]| {
        bellwether(&[&["config", "check", "--config", config, "--name", "kitchen"], more].concat())
    };
    let output = check(&copied, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = check(&config, &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("copy it from the node where"), "{output:?}");
    assert_eq!(check(&config, &["--no-files"]).status.code(), Some(0));
    let before = fs::read(path.join("cluster.key")).unwrap();
    let output = bellwether(&["init", &dir]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("hint: name another folder"), "{output:?}");
    assert_eq!(fs::read(path.join("cluster.key")).unwrap(), before);
    let output = bellwether(&["init", &format!("{dir}2"), "--cluster", "my garden"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!path.with_file_name("node2").join("cluster.key").exists(), "nothing half done");
}

#[test]
fn settings_are_shown_with_their_source_and_explained_in_words() {
    let flags = ["--cluster", "garden", "--key-file", "/k", "--name", "kitchen"];
    let output = bellwether(&[&["config", "show", "--json"], &flags[..]].concat());
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let find = |field: &str| {
        let found = shown.as_array().unwrap().iter().find(|one| one["field"] == field);
        found.unwrap_or_else(|| panic!("no {field}")).clone()
    };
    assert_eq!(find("cluster")["source"], "--cluster");
    assert_eq!(find("bind")["source"], "default");
    let explain = |profile: &str| {
        let more = ["--timing", profile, "--members", "16"];
        let output =
            bellwether(&[&["config", "explain", "--json"], &flags[..], &more[..]].concat());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let worst = |profile: &str| explain(profile)["elections"][0]["worst_s"].as_f64().unwrap();
    assert!(worst("local") < worst("lan") && worst("lan") < worst("wan"));
    let output = bellwether(&[&["config", "explain"], &flags[..]].concat());
    let words = text(&output.stdout);
    assert!(words.contains("nobody leads for") && words.contains("kbit/s"), "{words}");
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
}

#[test]
fn wrong_settings_name_their_flag_for_people_and_programs() {
    let wrong = ["config", "check", "--cluster", "garden", "--key-file", "/k", "--bind", "here"];
    let output = bellwether(&wrong);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: --bind: bind = here is not an address\n  \
         allowed: IP:PORT, such as 0.0.0.0:7738 or [::1]:7738\n"
    );
    let output = bellwether(&[&wrong[..], &["--json"]].concat());
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["place"]["flag"], "--bind");
    assert_eq!(error["error"]["field"], "bind");
    let output = bellwether(&["agent", "--cluster", "garden", "--key-file", "/k", "--timing", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: --timing: timing.profile = x"));
}

#[test]
fn a_key_is_replaced_in_three_steps() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.key").display().to_string();
    assert_eq!(bellwether(&["keygen", &file]).status.code(), Some(0));
    assert_eq!(bellwether(&["keygen", &file]).status.code(), Some(2), "nothing is overwritten");
    let step = |verb| {
        let output = bellwether(&["keys", verb, "--key-file", &file, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{verb}: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let first = step("list")["keys"][0]["fingerprint"].clone();
    let added = step("add");
    assert_eq!((&added["stage"], &added["keys"][0]["sent"]), (&"accept-both".into(), &true.into()));
    let output = bellwether(&["keys", "retire", "--key-file", &file]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let sent = step("send");
    assert_eq!((&sent["stage"], &sent["keys"][1]["sent"]), (&"send-new".into(), &true.into()));
    // Nobody can be asked who still needs the old one.
    let nobody = ["keys", "retire", "--key-file", &file, "--http-addr", "127.0.0.1:1"];
    let output = bellwether(&nobody);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(text(&output.stderr).contains("--force"), "{output:?}");
    assert_eq!(step("list")["stage"], "send-new", "nothing was retired");
    assert_eq!(bellwether(&[&nobody[..], &["--force"]].concat()).status.code(), Some(0));
    let retired = step("list");
    assert_eq!(retired["stage"], "settled");
    assert_ne!(retired["keys"][0]["fingerprint"], first);
    let shown = text(&bellwether(&["keys", "list", "--key-file", &file]).stdout);
    assert!(!shown.contains("bw1-"), "a secret is shown: {shown}");
}

#[test]
fn help_reads_well_in_eighty_columns() {
    let help = text(&bellwether(&["--help"]).stdout);
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty());
    let verbs = verbs.filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<&str> = verbs.filter(|verb| *verb != "help").collect();
    assert!(verbs.len() >= 20, "{verbs:?}");
    let config = ["check", "show", "explain"].map(|verb| vec!["config", verb]);
    let keys = ["list", "add", "send", "retire"].map(|verb| vec!["keys", verb]);
    let all = verbs.iter().map(|verb| vec![*verb]).chain(config).chain(keys);
    for verb in all.chain([vec![]]) {
        let page = text(&bellwether(&[&verb[..], &["--help"]].concat()).stdout);
        assert!(!page.is_empty(), "{verb:?}");
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{verb:?}: {line}");
        }
    }
    for verb in ["leader", "is-leader", "members", "run"] {
        let page = text(&bellwether(&[verb, "--help"]).stdout);
        assert!(page.contains("Exit codes"), "{page}");
    }
}
