//! The command as people and scripts meet it: what it prints, where, and with which exit code.

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn bellwether(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .args(args)
        .output()
        .expect("the binary under test runs")
}

fn scenario(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("scenarios").join(name).display().to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", text(bytes)))
}

#[test]
fn a_run_prints_a_table_with_its_trace() {
    let output = bellwether(&["sim", &scenario("announce-failover.toml"), "--seed", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for expected in ["20 nodes", "leadership_delay", "leader_changes", "hop_bytes", "(seed 1)"] {
        assert!(table.contains(expected), "{expected} is missing in\n{table}");
    }
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_hundred_runs_in_json_are_the_same_twice_and_on_any_number_of_threads() {
    let file = scenario("announce-delay.toml");
    let run = |threads| {
        let output = bellwether(&["sim", &file, "--runs", "100", "--json", "--threads", threads]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let first = run("1");
    assert_eq!(first, run("2"));
    let report = json(first.as_bytes());
    assert_eq!(report["runs"], 100);
    assert_eq!(report["seed"], 1);
    assert_eq!(report["trace_hashes"].as_array().unwrap().len(), 100);
    let delay = &report["metrics"]["leadership_delay"];
    assert_eq!((&delay["unit"], &delay["count"]), (&"s".into(), &100.into()));
    for statistic in ["mean", "sd", "p50", "p95", "p99"] {
        assert!(delay[statistic].as_f64().unwrap() > 0.0, "{statistic}");
    }
    assert_eq!(report["digest"].as_str().unwrap().len(), 16);
}

#[test]
fn a_wrong_scenario_is_an_error_with_its_place_for_people_and_programs() {
    let file = scenario("announce-delay.toml");
    let wrong = ["sim", &file, "--set", "network.loss.rate=1.5"];
    let output = bellwether(&wrong);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    assert_eq!(
        text(&output.stderr),
        "error: --set network.loss.rate=1.5: network.loss.rate = 1.5 is not a probability\n  \
         allowed: a number from 0 to 1\n"
    );
    let output = bellwether(&[&wrong[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let error = &json(&output.stderr)["error"];
    assert_eq!(error["field"], "network.loss.rate");
    assert_eq!(error["found"], "1.5");
    assert_eq!(error["place"]["flag"], "--set network.loss.rate=1.5");

    let output = bellwether(&["sim", "no/such/file.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no/such/file.toml: there is no such file"));
}

#[test]
fn a_field_too_sparse_to_connect_is_an_error_with_advice() {
    let file = scenario("ping-field.toml");
    let output = bellwether(&["sim", &file, "--set", "network.placement.side=900.0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("raise network.placement.range"), "{output:?}");
}

#[test]
fn lists_of_members_are_recorded_the_same_twice_and_only_where_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (field, election) = (scenario("medley-field.toml"), scenario("announce-failover.toml"));
    let record = |file: &str, out: &str| {
        bellwether(&["sim", file, "--seed", "3", "--record-membership", out])
    };
    for out in ["one", "other"] {
        let output = record(&field, &path(out));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let [one, other] = ["one", "other"].map(|name| std::fs::read(path(name)).unwrap());
    assert!(one.starts_with(b"BWMT") && one == other);
    for (file, out, expected) in
        [(&field, "one", "exists already"), (&election, "none", "keep no lists of members")]
    {
        let output = record(file, &path(out));
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
    let several = bellwether(&["sim", &field, "--runs", "2", "--record-membership", "x"]);
    assert_eq!(several.status.code(), Some(2));
}

#[test]
fn a_sweep_runs_every_combination_and_gives_a_row_for_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (csv, plot, file) = (at("runs.csv"), at("delay.svg"), scenario("announce-delay.toml"));
    let sweep = ["--sweep", "network.loss.rate=0,0.2", "--sweep", "network.nodes=5,10,20"];
    let args = ["sim", &file, "--runs", "3", "--seed", "7", "--metric", "leadership_delay"];
    let out = ["--csv", &csv, "--plot", &plot];
    let output = bellwether(&[&args[..], &sweep, &out].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert_eq!(table.lines().count(), 7, "a header and six combinations: {table}");
    assert!(table.lines().next().unwrap().trim_end().ends_with("leadership_delay"), "{table}");
    let rows = std::fs::read_to_string(&csv).unwrap();
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 2 * 3 * 3);
    assert_eq!(rows[0][..4], ["network.loss.rate", "network.nodes", "seed", "trace"]);
    assert_eq!(rows[18][..3], ["0.2", "20", "9"]);
    // One run alone gives the same numbers.
    let alone = [
        "sim",
        &file,
        "--seed",
        "9",
        "--set",
        "network.loss.rate=0.2",
        "--set",
        "network.nodes=20",
    ];
    let report = json(&bellwether(&[&alone[..], &["--json"]].concat()).stdout);
    assert_eq!(report["trace_hashes"][0], rows[18][3]);
    let delay = rows[0].iter().position(|name| *name == "leadership_delay").unwrap();
    let measured = report["metrics"]["leadership_delay"]["mean"].as_f64().unwrap();
    assert_eq!(rows[18][delay].parse::<f64>().unwrap(), measured);
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("network.nodes=20") && svg.contains("leadership_delay [s]"), "{svg}");
    let cells = json(&bellwether(&[&args[..], &sweep, &["--json"]].concat()).stdout);
    assert_eq!(cells["cells"].as_array().unwrap().len(), 6);
    assert_eq!(cells["cells"][5]["set"]["network.nodes"], "20");
    for (args, message) in [
        (&["--sweep", "network.nodes"][..], "write PATH=A,B,C"),
        (&["--sweep", "network.nodes=5,many"], "network.nodes = many is text"),
        (&["--metric", "leadership_dely"], "did you mean leadership_delay?"),
        (&["--plot", "x.svg"], "--sweep"),
    ] {
        let output = bellwether(&[&["sim", &file][..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(message), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_replay_shows_one_node_or_only_who_leads() {
    let file = scenario("announce-failover.toml");
    let replay = |more: &[&str]| {
        let output = bellwether(&[&["sim", &file, "--replay", "1"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let one = replay(&["--node", "3"]);
    let of = |line: &str| line.split_whitespace().nth(1) == Some("n3");
    assert!(
        one.lines().count() > 5 && one.lines().all(|line| of(line) || line.starts_with("trace"))
    );
    let leaders = replay(&["--leaders"]);
    assert!(leaders.lines().count() < replay(&[]).lines().count() / 10, "{leaders}");
    let said = |what: &str| leaders.lines().any(|line| line.contains(what));
    assert!(said(" leads") && said(" follows ") && said(" is down"), "{leaders}");
}

#[test]
fn wrong_numbers_are_told_in_words() {
    let file = scenario("announce-delay.toml");
    for (args, message) in [
        (&["--runs", "0"][..], "it must be a whole number, and at least 1"),
        (&["--runs", "x"], "it must be a whole number, and at least 1"),
        (&["--replay", "abc"], "it must be a whole number from 0"),
        (&["--cvs", "x"], "unexpected argument '--cvs' found"),
    ] {
        let said = text(&bellwether(&[&["sim", &file][..], args].concat()).stderr);
        assert!(said.contains(message) && !said.contains("as a value"), "{args:?}: {said}");
    }
}

#[test]
fn a_trace_is_written_once_and_names_what_it_is_of() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("run.jsonl").display().to_string();
    let file = scenario("announce-failover.toml");
    let args = ["sim", &file, "--seed", "3", "--trace", &trace, "--json"];
    let output = bellwether(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = std::fs::read_to_string(&trace).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| json(line.as_bytes())).collect();
    assert_eq!(lines[0]["seed"], 3);
    let report = json(&output.stdout);
    assert_eq!(lines[0]["digest"], report["digest"]);
    let last = lines.last().unwrap();
    assert_eq!(last["trace_hash"], report["trace_hashes"][0]);
    let steps = &lines[1..lines.len() - 1];
    assert!(steps.is_sorted_by_key(|step| step["us"].as_u64()));
    for what in ["boot", "start", "deliver", "timeout", "multicast", "persist", "wait", "stop"] {
        assert!(steps.iter().any(|step| step["what"] == what), "no {what}");
    }

    let before = std::fs::read(&trace).unwrap();
    let again = bellwether(&args);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("exists already"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read(&trace).unwrap(), before, "nothing was lost");
}

#[test]
fn a_replay_tells_a_run_step_by_step() {
    let file = scenario("announce-failover.toml");
    let output = bellwether(&["sim", &file, "--replay", "3"]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stdout);
    assert!(told.contains("n19 multicast Announce"), "{}", &told[..500]);
    let trace = told.lines().last().unwrap().strip_prefix("trace ").unwrap();
    let report = bellwether(&["sim", &file, "--seed", "3", "--json"]);
    assert_eq!(json(&report.stdout)["trace_hashes"][0], trace);
}

#[test]
fn conformance_is_reported_and_its_failures_replay() {
    let args = ["conform", "--mode", "le-s", "--case", "crash", "--seeds", "20"];
    let output = bellwether(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("0 of 20"));

    let published = ["conform", "--mode", "le-s-as-published", "--case", "elect"];
    let output = bellwether(&[&published[..], &["--seeds", "20", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "it fails, as it is known to");
    let report = json(&output.stdout);
    let failure = &report["modes"][0]["cases"][0]["failures"][0];
    assert_eq!(failure["invariant"], "settles");
    let seed = failure["seed"].to_string();
    let replay = bellwether(&[&published[..], &["--replay", &seed]].concat());
    assert_eq!(replay.status.code(), Some(1), "a broken promise is a no");
    assert!(text(&replay.stderr).contains("violated: settles no agreement"));

    for (args, message) in [
        (&["conform", "--mode", "le-x"][..], "no mode \"le-x\"; did you mean le-a, le-s, le-m?"),
        (&["conform", "--case", "crsh"], "no case \"crsh\"; there are elect, crash"),
        (&["conform", "--replay", "3"], "name one --mode and one --case"),
    ] {
        let output = bellwether(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}

#[test]
fn wrong_usage_is_exit_code_two_and_a_closed_pipe_is_quiet() {
    let file = scenario("announce-delay.toml");
    for args in [
        &[][..],
        &["simulate"],
        &["sim"],
        &["sim", &file, "--runs", "0"],
        &["sim", &file, "--runs", "2", "--trace", "x"],
        &["sim", &file, "--seed", "-1"],
        &["sim", &file, "--frobnicate"],
    ] {
        assert_eq!(bellwether(args).status.code(), Some(2), "{args:?}");
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .args(["sim", &scenario("announce-chaos.toml"), "--replay", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn the_lab_lists_runs_judges_resumes_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let list = json(&bellwether(&["lab", "list", "--json"]).stdout);
    assert!(list.as_array().unwrap().iter().any(|one| one["id"] == "announce-tab-5.1"));

    let run = ["lab", "run", "announce-tab-5.1", "--quick", "--out", &out];
    let output = bellwether(&[&run[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let claims = json(&output.stdout);
    let first = &claims["claims"][0];
    assert_eq!(
        (&first["experiment"], &first["verdict"]),
        (&"announce-tab-5.1".into(), &"reproduced".into())
    );

    let again = bellwether(&run);
    assert!(
        text(&again.stderr).contains("0 cells to run, 0 runs; 2 cells are in"),
        "{}",
        text(&again.stderr)
    );
    assert!(text(&again.stdout).contains("3 claims, 0 not as recorded"));

    let docs = folder.path().join("docs").display().to_string();
    let output = bellwether(&["lab", "report", "--out", &out, "--docs", &docs]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("announce-fig-5.6 is not complete and left out"));
    let page = std::fs::read_to_string(format!("{out}/report.html")).unwrap();
    assert!(page.contains("announce-tab-5.1") && !page.contains("<script"));
    assert!(std::fs::read_to_string(format!("{docs}/claims.md")).unwrap().contains("reproduced"));
}

/// What the lab keeps of a cell is what anybody gets who runs the scenario it shows.
#[test]
fn a_cell_that_is_shown_can_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (out, file, cell) = (at("out"), at("cell.toml"), "le-s uc 0.4 n=10");
    bellwether(&["lab", "run", "announce-tab-5.1", "--quick", "--out", &out]);
    let kept = std::fs::read_to_string(format!("{out}/announce-tab-5.1.csv")).unwrap();
    let kept = kept.lines().filter(|line| line.starts_with(cell)).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[3].to_owned(), fields[6].parse::<f64>().unwrap())
    });
    let cells = text(&bellwether(&["lab", "show", "announce-tab-5.1"]).stdout);
    assert!(cells.contains(cell) && cells.contains("a scenario"), "{cells}");
    let shown = text(&bellwether(&["lab", "show", "announce-tab-5.1", cell, "--quick"]).stdout);
    std::fs::write(&file, &shown).unwrap();
    let command = shown.lines().find_map(|line| line.strip_prefix("# bellwether ")).unwrap();
    let mut args: Vec<&str> = command.split(' ').collect();
    args[1] = &file;
    args.push("--json");
    let found = json(&bellwether(&args).stdout);
    for (metric, mean) in kept {
        let found = found["metrics"][&metric]["mean"].as_f64().unwrap_or(0.0);
        assert_eq!(found, mean, "{metric}");
    }
}

#[test]
fn shards_and_cells_merged_are_the_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let run = |out: &str, shard: &[&str]| {
        let args = ["lab", "run", "announce-sq", "announce-k", "--quick", "--out", out];
        let output = bellwether(&[&args[..], shard].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    run(&at("whole"), &[]);
    run(&at("one"), &["--shard", "1/2"]);
    let cells = bellwether(&["lab", "cells", "announce-sq", "announce-k", "--quick", "--json"]);
    let cells = json(&cells.stdout);
    let costs: Vec<f64> =
        cells.as_array().unwrap().iter().map(|c| c["cost"].as_f64().unwrap()).collect();
    assert!(costs.is_sorted_by(|a, b| a >= b) && costs.iter().all(|cost| *cost > 0.0), "{cells}");
    let id = |index: usize| cells[index]["id"].as_str().unwrap();
    let digest = cells[0]["digest"].as_str().unwrap();
    let whole = std::fs::read_to_string(at("whole") + "/" + cells[0]["file"].as_str().unwrap());
    assert!(whole.unwrap().contains(digest), "what is listed is what is kept");
    // All that the first shard has not, and something that it has.
    let named = ["lab", "run", "--quick", "--out", &at("two"), "--threads", "1"];
    let named: Vec<&str> =
        named.into_iter().chain((0..4).flat_map(|at| ["--cell", id(at)])).collect();
    assert_eq!(bellwether(&named).status.code(), Some(0));
    let output = bellwether(&["lab", "merge", "--out", &at("merged"), &at("one"), &at("two")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for file in ["announce-sq.csv", "announce-k.csv", "manifest.json"] {
        let read = |folder: &str| std::fs::read(format!("{folder}/{file}")).unwrap();
        assert_eq!(read(&at("merged")), read(&at("whole")), "{file}");
    }
}

#[test]
fn mischief_with_the_lab_is_answered_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let blocked = file.join("out").display().to_string();
    for (args, message) in [
        (
            &["lab", "run", "announce-fig-6", "--quick"][..],
            "no experiment \"announce-fig-6\"; did you mean announce-fig-5.",
        ),
        (&["lab", "run", "announce-sq", "--quick", "--out", &blocked], "Not a directory"),
        (&["lab", "run", "announce-sq", "--shard", "3/2"], "write i/n"),
        (&["lab", "run"], "<ID>"),
        (&["lab", "run", "--cell", "announce-k/k=9", "--quick"], "did you mean announce-k/k=1"),
        (&["lab", "run", "--cell", "announce-k/k=1", "--shard", "1/2"], "cannot be used with"),
        (&["lab", "show", "announce-tab-5.1", "le-z"], "no cell \"le-z\"; there are \"le-a uc"),
        (&["lab", "show", "wang-tab-7.1", "sample sizes"], "is no scenario: it computes"),
        (&["lab", "report", "--out", &out], "holds no results"),
        (&["lab", "merge", "--out", &out, &out], "holds no results"),
    ] {
        let output = bellwether(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(message), "{args:?}: {}", text(&output.stderr));
    }
    let run = ["lab", "run", "announce-sq", "--quick", "--out", &out];
    assert_eq!(bellwether(&run).status.code(), Some(0));
    let results = format!("{out}/announce-sq.csv");
    std::fs::write(&results, "cell,what\nrubbish\n").unwrap();
    let output = bellwether(&run);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("announce-sq.csv:1: this is not a results file"));
    assert_eq!(std::fs::read_to_string(&results).unwrap(), "cell,what\nrubbish\n");
}

#[test]
fn a_field_can_be_exported_and_looked_at() {
    let folder = std::env::temp_dir().join(format!("bellwether-cli-field-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let field = scenario("moving-field.toml");
    let (walk, packed, links, frames) =
        (path("walk.movements"), path("walk.movements.gz"), path("links.csv"), path("frames"));
    let run = |args: &[&str]| {
        let output = bellwether(&[&["sim", &field, "--json"], args].concat());
        (output.status.code(), text(&output.stderr), text(&output.stdout))
    };
    let (code, errors, plain) =
        run(&["--movement", &walk, "--links", &links, "--frames", &frames, "--every", "20s"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(run(&["--movement", &packed]).0, Some(0));
    // Read back, the movement gives the same run, but for its name in the digest.
    for file in [&walk, &packed] {
        let mobility = format!("network.mobility={{ kind = \"trace\", file = \"{file}\" }}");
        let (code, errors, again) = run(&["--set", &mobility]);
        assert_eq!(code, Some(0), "{errors}");
        let (plain, again) = (json(plain.as_bytes()), json(again.as_bytes()));
        assert_eq!(plain["trace_hashes"], again["trace_hashes"]);
    }
    let links = std::fs::read_to_string(links).unwrap();
    assert!(links.lines().count() > 100, "{links}");
    assert!(links.starts_with("0.000000,0,"), "{links}");
    for name in ["frame-00000.svg", "frame-00002.svg", "animation.svg", "index.html"] {
        assert!(folder.join("frames").join(name).exists(), "{name}");
    }
    assert!(!folder.join("frames/frame-00003.svg").exists());
    // Nothing is overwritten, and who has no place has no pictures.
    assert!(run(&["--movement", &walk]).1.contains("exists already"));
    let nowhere = bellwether(&["sim", &scenario("announce-delay.toml"), "--links", "x"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(text(&nowhere.stderr).contains("have no positions"), "{}", text(&nowhere.stderr));
    let idle = bellwether(&["sim", &field, "--frames", "x", "--every", "0s"]);
    assert_eq!(idle.status.code(), Some(2));
    std::fs::remove_dir_all(&folder).unwrap();
}
