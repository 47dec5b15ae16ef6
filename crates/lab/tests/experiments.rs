//! Every experiment is well formed: its scenarios can be read, its names are unique, its claims and figures do
//! not fall over results that are missing.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_lab::{
    claim::Verdict,
    experiment::{Cell, Measured, Size},
    experiments, runner,
    table::Table,
};
use bellwether_sim::{observe::Summary, run::run_many, scenario::Scenario};

/// Whoever looks at a series looks at all of it: its results are written and put in order by each of them.
#[test]
fn experiments_of_a_series_have_the_same_cells() {
    for size in [Size::Full, Size::Quick] {
        let mut series = BTreeMap::new();
        for experiment in experiments::all() {
            let cells = (experiment.cells)(size);
            let kept_as = experiment.kept_as(size);
            assert!(cells.iter().all(|cell| cell.series.unwrap_or(experiment.id) == kept_as));
            let known = series.entry(kept_as).or_insert_with(|| cells.clone());
            assert_eq!(*known, cells, "{} in {kept_as}", experiment.id);
        }
    }
}

#[test]
fn every_cell_of_every_experiment_can_be_run_and_is_one_of_its_own() {
    let mut ids = BTreeSet::new();
    for experiment in experiments::all() {
        assert!(ids.insert(experiment.id), "{} twice", experiment.id);
        for size in [Size::Full, Size::Quick] {
            let mut names = BTreeSet::new();
            let cells = (experiment.cells)(size);
            assert!(!cells.is_empty(), "{}", experiment.id);
            for cell in cells {
                cell.digest().unwrap_or_else(|error| panic!("{}: {error}", experiment.id));
                assert!(cell.runs > 0);
                assert!(names.insert(cell.name.clone()), "{} {:?} twice", experiment.id, cell.name);
            }
        }
    }
    // The experiments of the pages of `docs/rules`.
    let promised = "
        announce-tab-5.1 announce-fig-5.6 announce-fig-5.7 announce-fig-5.8 announce-fig-5.9
        announce-fig-5.10 announce-fig-5.11 announce-fig-5.12 announce-fig-5.13 announce-5.3-delay
        announce-5.3-reest announce-5.3-join announce-5.3-msgs announce-5.3-incons
        announce-5.4.4-const announce-tl-cold announce-timer-exp announce-map announce-bye
        announce-query announce-sq announce-k announce-supal wang-fig-3.1 wang-fig-4.1
        wang-fig-4.2 wang-fig-4.3 wang-fig-4.4 wang-fig-4.5 wang-fig-4.6 wang-fig-4.7 wang-fig-6.1
        wang-fig-6.2 wang-fig-6.3 wang-fig-6.4 wang-fig-6.5 wang-fig-6.6 wang-fig-6.7 wang-fig-6.8
        wang-fig-6.9 bw-election-repair bw-election-deadold bw-election-messages bw-election-wrong
        bw-medley-swim bw-medley-quiet bw-medley-load bw-medley-local bw-medley-bound bw-star
        bw-half-connected bw-mass-restart bw-starved bw-one-way wang-tab-5.1 wang-tab-5.2
        wang-fig-5.1 wang-fig-5.2 wang-tab-7.1 wang-fig-7.1 wang-fig-7.2 wang-fig-7.3 wang-fig-7.4
        wang-fig-7.5 bw-feedback-fractional ahsan-fig-7 ahsan-fig-8 ahsan-fig-9 ahsan-fig-10
        ahsan-fig-11 ahsan-eq-2 ahsan-thm-1 ahsan-thm-2 ahsan-thm-3 ahsan-thm-4 ahsan-thm-5
        ahsan-thm-6 ahsan-thm-7 ahsan-thm-8 ahsan-x-run ahsan-x-part ahsan-x-split ahsan-x-upgrade
        ahsan-x-leader ble-tab-1 ble-fig-2 ble-fig-3 ble-fig-4 ble-fig-5 ble-fig-6 ble-fig-7
        ble-fig-8 ble-lemma-7.1 ble-live-7.2 ble-x-parts ble-x-c ble-x-live ble-x-envtext
        ble-x-policies ble-hardened
    ";
    for id in promised.split_whitespace() {
        assert!(ids.contains(id), "{id} is missing");
    }
}

/// No claim is kept without evidence.
#[test]
fn without_results_no_claim_is_reproduced() {
    for experiment in experiments::all() {
        for size in [Size::Full, Size::Quick] {
            let nothing = Table::alike(size, &(experiment.cells)(size), None);
            for figure in (experiment.figures)(&nothing) {
                assert!(!figure.svg().is_empty());
            }
            for claim in (experiment.claims)(&nothing) {
                assert!(
                    claim.verdict != Verdict::Reproduced,
                    "{}: {:?} holds without a single value: {}",
                    experiment.id,
                    claim.sentence,
                    claim.measured,
                );
            }
        }
    }
}

/// A cell that is looked up and not there is a panic; results that are all alike lead into every corner.
#[test]
fn claims_and_figures_look_up_nothing_but_cells_that_are_run() {
    for experiment in experiments::all() {
        for size in [Size::Full, Size::Quick] {
            for value in [0.0, 1.0, 1e6] {
                let summary = Summary::of([value * 0.9, value, value * 1.1]);
                let table = Table::alike(size, &(experiment.cells)(size), summary);
                assert!(!(experiment.claims)(&table).is_empty(), "{}", experiment.id);
                (experiment.figures)(&table).iter().for_each(|figure| drop(figure.svg()));
            }
        }
    }
}

/// What `lab show` prints is the scenario that is run.
#[test]
fn every_scenario_can_be_written_down_and_read_again() {
    for experiment in experiments::all() {
        for size in [Size::Full, Size::Quick] {
            for cell in (experiment.cells)(size) {
                let (Some(setup), Ok(Some(scenario))) = (cell.setup(), cell.scenario()) else {
                    continue;
                };
                let text = setup.written(&cell.name).unwrap_or_else(|error| panic!("{error}"));
                let again = Scenario::parse("written", &text, &[]);
                let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(again.digest(), scenario.digest(), "{}: {text}", experiment.id);
                assert_eq!(again.name, cell.name);
            }
        }
    }
}

/// For some cells of each kind, what is shown gives the numbers that a run of the lab keeps.
#[test]
fn a_scenario_that_was_shown_runs_to_the_numbers_that_are_kept() {
    let all = experiments::all();
    for (id, name) in [
        ("announce-tab-5.1", "le-s uc 0.4 n=10"),
        ("announce-5.3-join", "worse le-s corr 0.4 n=5"),
        ("bw-medley-bound", "field n=8 cautious"),
        ("bw-election-messages", "others c=4 f=2"),
        ("ahsan-eq-2", "n=32 k=3"),
        ("favier-fig-4.19", "TA-D 10 s"),
    ] {
        let experiment = all.iter().find(|one| one.id == id).expect("it is an experiment");
        let cells = (experiment.cells)(Size::Quick);
        let cell = cells.into_iter().find(|cell| cell.name == name).expect("it is a cell");
        let cell = Cell { runs: 5, ..cell };
        let seed = cell.seed(experiment.kept_as(Size::Quick), 7);
        let kept =
            runner::measure(id, &cell, seed, || ()).unwrap_or_else(|error| panic!("{error}"));
        let shown =
            experiment.shown(&cell, Size::Quick, 7).unwrap_or_else(|error| panic!("{error}"));
        assert!(shown.contains(&format!("bellwether sim FILE --seed {seed} --runs 5")), "{shown}");
        let scenario =
            Scenario::parse("FILE", &shown, &[]).unwrap_or_else(|error| panic!("{error}"));
        let report = run_many(&scenario, seed, 5, || ()).expect("it could be drawn before");
        let found = report.metrics().into_iter().map(|(metric, summary)| Measured {
            metric: metric.to_string(),
            unit: metric.unit().to_string(),
            summary,
        });
        assert_eq!(found.collect::<Vec<_>>(), kept, "{id} {name}");
        assert!(kept.iter().any(|one| one.summary.is_some_and(|of| of.mean > 0.0)), "{id} {name}");
    }
}

#[test]
fn a_cell_that_is_no_scenario_says_so() {
    let all = experiments::all();
    let shown = |id: &str| {
        let experiment = all.iter().find(|one| one.id == id).expect("it is an experiment");
        experiment.shown(&(experiment.cells)(Size::Full)[0], Size::Full, 1)
    };
    let error = shown("favier-fig-4.11").expect_err("it is a closed form").to_string();
    assert!(error.contains("no scenario: it computes \"central tick\""), "{error}");
    let over = shown("ahsan-fig-7").expect("it has one");
    assert!(over.contains("computes \"ring events\"") && over.contains("[membership]"), "{over}");
}
