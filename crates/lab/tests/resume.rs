//! Results survive kills, shards and mischief.

use std::{
    fs,
    path::Path,
    sync::LazyLock,
    sync::atomic::{AtomicU64, Ordering},
};

use bellwether_lab::{
    computation::{Computation, Found, Value},
    experiment::{Cell, Experiment, Size},
    runner::{self, LabError, Plan, Shard, Share},
    store::{Manifest, Store, StoreError},
};
use bellwether_proto::Seed;
use bellwether_sim::{observe::Metric, scenario::Scenario};

const BASE: &str = r#"
    name = "small"
    duration = "60s"
    until = "agreement"
    network = { nodes = 4, loss = { kind = "independent", rate = 0.3 } }
    [election]
    kind = "announce"
    variant = "le-s"
    announce = "1s"
    suppress = "1s"
    listen = "3s"
"#;

/// Any will do.
const THROWN: Metric = Metric::Rounds;
const NEVER: Metric = Metric::Outage;
const NODES: Metric = Metric::Components;

fn experiment() -> Experiment {
    Experiment {
        id: "test-sweep",
        title: "a sweep",
        source: "this test",
        cells: |size| {
            let runs = size.runs(60);
            let run = |n: u32| Cell::new(format!("n={n}"), BASE, runs).set("network.nodes", n);
            let throw = |sides| {
                Cell::computed(format!("sides={sides}"), Computation::new("die", sides, die), runs)
            };
            let read = |n: u32| {
                let computation = Computation::over("as written", BASE, "nodes", written);
                Cell::computed(format!("written n={n}"), computation, runs).set("network.nodes", n)
            };
            [run(2), run(3), throw(6), throw(20), read(4), read(5)].into()
        },
        claims: |_| Vec::new(),
        figures: |_| Vec::new(),
    }
}

fn die(sides: &u32, seed: u64) -> Found {
    let thrown = f64::from(Seed::new(seed).rng().below(u64::from(*sides)) as u32 + 1);
    Ok(vec![Value::count(THROWN, thrown), Value::ratio(NEVER, None)])
}

fn written(scenario: &Scenario, _: &&str, _: u64) -> Found {
    Ok(vec![Value::count(NODES, f64::from(scenario.network.nodes))])
}

fn store(folder: &Path) -> Store {
    // What a build does takes a while to find out, and is always the same.
    static MANIFEST: LazyLock<Manifest> = LazyLock::new(|| Manifest::new(Size::Quick, 7));
    Store::create(folder, MANIFEST.clone()).unwrap_or_else(|error| panic!("{error}"))
}

fn run(store: &Store, shard: Shard) -> Result<u64, LabError> {
    let runs = AtomicU64::new(0);
    runner::run(&experiment(), store, &Share::Shard(shard), || {
        runs.fetch_add(1, Ordering::Relaxed);
    })?;
    Ok(runs.into_inner())
}

fn text(folder: &Path) -> String {
    fs::read_to_string(folder.join("test-sweep.csv")).unwrap_or_default()
}

#[test]
fn a_killed_run_goes_on_where_it_was_and_ends_with_the_same_bytes() {
    let whole = tempfile::tempdir().unwrap();
    assert_eq!(run(&store(whole.path()), Shard::WHOLE).unwrap(), 6 * 40);
    let expected = text(whole.path());

    // Killed after each byte that a write could have got to, in steps.
    for kept in (0..expected.len()).step_by(expected.len() / 23) {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        fs::write(folder.path().join("test-sweep.csv"), &expected[..kept]).unwrap();
        let done = store.load("test-sweep").unwrap().len();
        let runs = run(&store, Shard::WHOLE).unwrap();
        assert_eq!(runs, (6 - done as u64) * 40, "no finished cell is run twice ({kept} bytes)");
        assert_eq!(text(folder.path()), expected, "{kept} bytes");
        assert_eq!(run(&store, Shard::WHOLE).unwrap(), 0, "nothing is left to do");
    }
}

#[test]
fn shards_merge_to_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    run(&store(&at("whole")), Shard::WHOLE).unwrap();
    for index in [1, 2] {
        let half = store(&at(&format!("half-{index}")));
        assert_eq!(run(&half, Shard { index, of: 2 }).unwrap(), 3 * 40);
        let error = runner::results(&experiment(), &half).unwrap_err();
        assert_eq!(error.to_string(), "test-sweep: 3 of 6 cells are missing; run it first");
    }
    let merged = store(&at("merged"));
    for index in [2, 1] {
        let half = Store::open(&at(&format!("half-{index}"))).unwrap();
        assert_eq!(merged.merge(&half, &[experiment()]).unwrap(), 3);
    }
    assert_eq!(text(&at("merged")), text(&at("whole")));
    let plan = runner::plan(&experiment(), &merged, &Share::WHOLE).unwrap();
    assert_eq!(plan, Plan { cells: 0, runs: 0, done: 6 });
    assert!(runner::results(&experiment(), &merged).is_ok());
}

#[test]
fn cells_run_one_by_one_in_any_order_merge_to_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    run(&store(&at("whole")), Shard::WHOLE).unwrap();
    let merged = store(&at("merged"));
    for (place, cell) in (experiment().cells)(Size::Quick).into_iter().enumerate().rev() {
        let one = store(&at(&format!("cell-{place}")));
        let share = Share::Cells([cell.name].into());
        let plan = runner::plan(&experiment(), &one, &share).unwrap();
        assert_eq!(plan, Plan { cells: 1, runs: 40, done: 0 });
        runner::run(&experiment(), &one, &share, || ()).unwrap();
        assert_eq!(merged.merge(&one, &[experiment()]).unwrap(), 1);
    }
    assert_eq!(text(&at("merged")), text(&at("whole")));
}

#[test]
fn a_computation_is_summed_up_like_runs_and_known_by_what_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    run(&store, Shard::WHOLE).unwrap();
    let table = runner::results(&experiment(), &store).unwrap();
    let thrown = table.summary("sides=20", THROWN).unwrap();
    assert_eq!(thrown.count, 40);
    assert!(thrown.mean > 6.0 && thrown.sd > 1.0, "{thrown:?}");
    assert_eq!(table.summary("sides=20", NEVER), None);
    assert_eq!(table.summary("written n=5", NODES).map(|nodes| nodes.mean), Some(5.0));

    let digest = |cell: Cell| cell.digest().unwrap();
    let throw = |name, sides| Cell::computed("one", Computation::new(name, sides, die), 40);
    let read = |n: u32| {
        let computation = Computation::over("as written", BASE, "nodes", written);
        Cell::computed("one", computation, 40).set("network.nodes", n)
    };
    assert_eq!(digest(throw("die", 6)), digest(throw("die", 6)));
    for other in [throw("die", 20), throw("other die", 6), read(2), read(3)] {
        assert_ne!(digest(throw("die", 6)), digest(other));
    }
    assert_ne!(digest(read(2)), digest(read(3)));
    assert!(read(2).set("network.nodes", "many").digest().is_err());
}

#[test]
fn a_computation_that_fails_says_where() {
    let broken = Experiment {
        cells: |_| {
            let fail = |_: &(), seed: u64| Err(format!("seed {seed} will not do").into());
            vec![Cell::computed("always", Computation::new("fail", (), fail), 1)]
        },
        ..experiment()
    };
    let folder = tempfile::tempdir().unwrap();
    let error = runner::run(&broken, &store(folder.path()), &Share::WHOLE, || ()).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("test-sweep: always: seed "), "{error}");
    assert_eq!(text(folder.path()).lines().count(), 1, "nothing but the header is kept");
}

#[test]
fn a_merge_that_would_change_a_cell_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    run(&store(&one), Shard::WHOLE).unwrap();
    run(&store(&two), Shard::WHOLE).unwrap();
    let before = text(&one);
    let forged = text(&two).replacen(",s,40,", ",s,39,", 1);
    assert_ne!(forged, before);
    fs::write(two.join("test-sweep.csv"), forged).unwrap();
    let error = store(&one).merge(&store(&two), &[experiment()]).unwrap_err();
    assert!(matches!(&error, StoreError::Conflict { cell, .. } if cell == "n=2"), "{error}");
    assert_eq!(text(&one), before);
}

#[test]
fn a_corrupt_file_is_named_with_its_line_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    run(&store, Shard::WHOLE).unwrap();
    let good = text(folder.path());
    let lines: Vec<&str> = good.lines().collect();
    let spoil = |number: usize, line: &str| {
        let mut lines = lines.clone();
        lines[number - 1] = line;
        format!("{}\n", lines.join("\n"))
    };
    for (bad, line, problem) in [
        (spoil(1, "hello"), 1, "this is not a results file"),
        (spoil(3, "n=2,1,2"), 3, "3 fields, not 11"),
        (spoil(3, &lines[2].replace(",s,", ",s,x")), 3, "is not a whole number"),
        (spoil(4, &format!("{}x", lines[3])), 4, "is not a number"),
        (good.replacen(lines[4], "", 1).replace("\n\n", "\n"), 0, "are missing above"),
        (format!("{good}{}\n", lines[1]), lines.len() + 1, "\"n=2\" is here twice"),
    ] {
        fs::write(folder.path().join("test-sweep.csv"), &bad).unwrap();
        let error = run(&store, Shard::WHOLE).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert!(line == 0 || error.contains(&format!("test-sweep.csv:{line}: ")), "{error}");
        assert!(error.contains("move the file away"), "{error}");
        assert_eq!(text(folder.path()), bad, "it was not touched");
    }
}

#[test]
fn results_of_another_kind_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let error = Store::create(folder.path(), Manifest::new(Size::Full, 7)).unwrap_err();
    assert!(error.to_string().contains("holds quick results"), "{error}");
    assert!(Store::create(folder.path(), Manifest::new(Size::Quick, 8)).is_err());
    let other = Manifest { behaviour: "0123456789abcdef".into(), ..Manifest::new(Size::Quick, 7) };
    assert!(Store::create(folder.path(), other).is_err(), "made by a build that behaves otherwise");
    fs::write(folder.path().join("manifest.json"), "{").unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::BadManifest { .. }), "{error}");
    let nothing = Store::open(&folder.path().join("nothing")).unwrap_err();
    assert!(nothing.to_string().contains("holds no results"), "{nothing}");
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let error = Store::create(&file.join("out"), Manifest::new(Size::Quick, 1)).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "in the way");
}
