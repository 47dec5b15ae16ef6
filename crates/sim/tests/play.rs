//! Runs that somebody plays with: the same as the command's, whatever is done to them, and written down as a scenario.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use bellwether_sim::{
    play::{Edit, Session},
    run::{Outcome, run},
    scenario::Scenario,
};
use serde_json::{Value, json};

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

fn session(name: &str, edits: &[Value]) -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    Session {
        file: path.display().to_string(),
        text: fs::read_to_string(path).unwrap(),
        sets: Vec::new(),
        edits: edits.iter().map(|edit| Edit::read(edit).unwrap()).collect(),
        seed: 1,
    }
}

/// The lines of a session's film, and what it came to.
fn film(session: &Session) -> (Vec<Value>, Outcome) {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let taken = Rc::clone(&lines);
    let take = move |line: &str| taken.borrow_mut().push(serde_json::from_str(line).unwrap());
    let outcome = session.film(&Arc::default(), take).unwrap();
    (lines.take(), outcome)
}

/// What a film has before this second, but for its head.
fn before(lines: &[Value], second: u64) -> Vec<&Value> {
    let early = |line: &&Value| line[0].as_u64().is_some_and(|at| at < second * 1_000_000);
    lines.iter().filter(early).collect()
}

#[test]
fn a_session_without_edits_has_the_trace_of_the_command_for_every_shipped_scenario() {
    for path in shipped() {
        let alone = run(&Scenario::load(&path, &[]).unwrap(), 1).unwrap();
        let (lines, outcome) = film(&session(path.to_str().unwrap(), &[]));
        assert_eq!(outcome, alone, "{}", path.display());
        assert_eq!(lines.last().unwrap()[1]["trace"], alone.trace.to_string());
    }
}

#[test]
fn what_came_before_an_edit_stays_as_it_was() {
    let calm = film(&session("node-leased.toml", &[]));
    let edits = [
        json!({ "at": "30s", "kind": "crash", "node": 1 }),
        json!({ "at": "31s", "kind": "cut", "from": [0], "to": [2] }),
    ];
    let edited = film(&session("node-leased.toml", &edits));
    assert_ne!(calm.1.trace, edited.1.trace);
    assert_eq!(before(&calm.0, 30), before(&edited.0, 30));
    assert!(before(&calm.0, 30).len() > 1_000);
    assert_ne!(before(&calm.0, 40), before(&edited.0, 40));
    // Back to before the second edit, and on without it.
    let back = film(&session("node-leased.toml", &edits[..1]));
    assert_eq!(before(&back.0, 31), before(&edited.0, 31));
    assert_eq!(film(&session("node-leased.toml", &edits)), edited, "and once more");
}

#[test]
fn everything_that_can_be_done_is_written_down_as_a_scenario_with_the_same_trace() {
    let edits = [
        json!({ "at": "3141593us", "kind": "crash", "node": 1 }),
        json!({ "at": "9s", "kind": "recover", "node": 1, "state": "kept" }),
        json!({ "at": "11s", "kind": "cut", "from": [0], "to": [2] }),
        json!({ "at": "12s", "kind": "cut", "from": [3], "to": [4], "both": true, "for": "2s" }),
        json!({ "at": "13s", "kind": "heal" }),
        json!({ "at": "14s", "kind": "partition", "groups": [[0, 1]] }),
        json!({ "at": "22s", "kind": "heal" }),
        json!({ "at": "23s", "kind": "loss", "rate": 0.3, "for": "4s" }),
        json!({ "at": "28s", "kind": "delay", "by": "80ms", "for": "4s" }),
        json!({ "at": "33s", "kind": "pause", "node": 2, "for": "3s" }),
        json!({ "at": "37s", "kind": "disk", "node": 3, "for": "5s" }),
        json!({ "at": "43s", "kind": "isolate", "target": "leader" }),
    ];
    let mut played = session("node-default.toml", &edits);
    played.sets = vec!["node.timing.profile=wan".into(), "network.delay.high=9ms".into()];
    let (_, outcome) = film(&played);
    let text = played.written_out().unwrap();
    let alone = Scenario::parse("played.toml", &text, &[]).unwrap();
    assert_eq!(alone, played.scenario().unwrap());
    assert_eq!(run(&alone, 1).unwrap(), outcome);
    // None of them is there in vain.
    for left_out in 0..edits.len() {
        let mut edits = edits.to_vec();
        edits.remove(left_out);
        let without = Session { sets: played.sets.clone(), ..session("node-default.toml", &edits) };
        assert_ne!(without.scenario().unwrap().digest(), alone.digest(), "{left_out}");
    }
}

#[test]
fn a_node_that_is_put_elsewhere_has_the_links_of_its_new_place() {
    let text = "name = \"a row\"\nduration = \"10s\"\n[network]\nnodes = 4\n\
                placement = { kind = \"grid\", side = 3.0, range = 3.1 }\nrouting = \"none\"\n\
                [membership]\nkind = \"ping\"\nperiod = \"500ms\"\ntimeout = \"200ms\"\n";
    let moved = |edits: &[Value]| {
        let session = Session { text: text.into(), ..session("ping-mesh.toml", edits) };
        film(&session)
    };
    let (lines, calm) = moved(&[]);
    let (far, lonely) =
        moved(&[json!({ "at": "2s", "kind": "place", "node": 0, "to": [90.0, 90.0] })]);
    assert_eq!(before(&lines, 2), before(&far, 2));
    assert!(
        far.iter().any(|line| line[1] == "p" && line[2] == 0 && line[3] == 90.0),
        "it is shown"
    );
    // From then on nobody flies to it or from it.
    let with_it = |line: &&Value| {
        line[1] == "m" && (line[2] == 0 || line[3] == 0) && line[0].as_u64().unwrap() > 2_000_000
    };
    assert!(lines.iter().any(|line| with_it(&line)));
    assert!(!far.iter().any(|line| with_it(&line)));
    assert_ne!(calm.trace, lonely.trace);
}

#[test]
fn a_delay_is_how_much_longer_every_message_takes() {
    let slow = json!({ "at": "5s", "kind": "delay", "by": "300ms", "for": "2s" });
    let (lines, _) = film(&session("announce-partition.toml", &[slow]));
    let ways = |from: u64, to: u64| -> Vec<u64> {
        let flown = lines.iter().filter(|line| {
            let at = line[0].as_u64().unwrap_or(0);
            line[1] == "m" && line[4] != -1 && at >= from * 1_000_000 && at < to * 1_000_000
        });
        flown.map(|line| line[4].as_u64().unwrap() - line[0].as_u64().unwrap()).collect()
    };
    let (before, during, after) = (ways(3, 5), ways(5, 7), ways(7, 9));
    assert!(before.len() > 10 && during.len() > 10 && after.len() > 10);
    let (longest, shortest) = (before.iter().max().unwrap(), during.iter().min().unwrap());
    assert!(*shortest >= 300_000 && *longest < 300_000, "{longest} before, {shortest} during");
    assert!(*after.iter().max().unwrap() < 300_000);
}

#[test]
fn an_edit_that_is_no_fault_says_what_is_wrong_and_what_would_be_right() {
    let wrong = |value: Value| Edit::read(&value).unwrap_err().to_string();
    assert!(wrong(json!("crash")).contains("is no object; allowed: {\"at\""));
    assert!(wrong(json!({ "at\n[node]": 1 })).contains("is no key of a fault"));
    assert!(wrong(json!({ "at": null })).contains("has no value"));
    let refused =
        |edit: Value| session("node-leased.toml", &[edit]).scenario().unwrap_err().to_string();
    let nobody = refused(json!({ "at": "5s", "kind": "crash", "node": 7 }));
    assert!(nobody.contains("is no node") && nobody.contains("0 to 4"), "{nobody}");
    let late = refused(json!({ "at": "500s", "kind": "heal" }));
    assert!(late.contains("not before the end"), "{late}");
    let nowhere = refused(json!({ "at": "5s", "kind": "place", "node": 1, "to": [1.0, 2.0] }));
    assert!(
        nowhere.contains("moves nobody") && nowhere.contains("place with a placement"),
        "{nowhere}"
    );
}

#[test]
fn faults_in_one_list_are_added_to_like_any_others() {
    let text = "name = \"a list\"\nduration = \"9s\"\nnetwork = { nodes = 3 }\n\
                membership = { kind = \"ping\", period = \"500ms\", timeout = \"200ms\" }\n\
                fault = [{ at = \"2s\", kind = \"crash\", node = 1 }, { at = \"3s\", kind = \"heal\" }]\n";
    let edit = Edit::read(&json!({ "at": "4s", "kind": "crash", "node": 2 })).unwrap();
    let listed = Session { text: text.into(), ..session("ping-mesh.toml", &[]) };
    let edited = Session { edits: vec![edit], ..listed.clone() };
    assert_eq!(edited.scenario().unwrap().faults.len(), 3);
    assert_eq!(edited.scenario().unwrap().faults[..2], listed.scenario().unwrap().faults);
}

#[test]
fn a_film_whose_reader_has_gone_ends_early() {
    let stopped = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let outcome = session("announce-chaos.toml", &[]).film(&stopped, |_: &str| ()).unwrap();
    let whole = session("announce-chaos.toml", &[]).film(&Arc::default(), |_: &str| ()).unwrap();
    let events =
        |outcome: &Outcome| outcome.value(bellwether_sim::observe::Metric::Events).unwrap();
    assert!(events(&outcome) < events(&whole) / 10.0);
}
