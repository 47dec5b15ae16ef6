//! Every experiment is well formed: its scenarios can be read, its names are unique, its claims and figures do
//! not fall over results that are missing.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_lab::{claim::Verdict, experiment::Size, experiments, table::Table};

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
                assert!(!cell.name.contains([',', '\n', '"']), "{:?} in a CSV file", cell.name);
                assert!(cell.runs > 0);
                assert!(names.insert(cell.name.clone()), "{} {:?} twice", experiment.id, cell.name);
            }
        }
    }
    // The experiments of the pages of `docs/rules`.
    for id in [
        "announce-tab-5.1",
        "announce-fig-5.6",
        "announce-fig-5.7",
        "announce-fig-5.8",
        "announce-fig-5.9",
        "announce-fig-5.10",
        "announce-fig-5.11",
        "announce-fig-5.12",
        "announce-fig-5.13",
        "announce-5.3-delay",
        "announce-5.3-reest",
        "announce-5.3-join",
        "announce-5.3-msgs",
        "announce-5.3-incons",
        "announce-5.4.4-const",
        "announce-tl-cold",
        "announce-timer-exp",
        "announce-map",
        "announce-bye",
        "announce-query",
        "announce-sq",
        "announce-k",
        "announce-supal",
        "wang-fig-3.1",
        "wang-fig-4.1",
        "wang-fig-4.2",
        "wang-fig-4.3",
        "wang-fig-4.4",
        "wang-fig-4.5",
        "wang-fig-4.6",
        "wang-fig-4.7",
        "wang-fig-6.1",
        "wang-fig-6.2",
        "wang-fig-6.3",
        "wang-fig-6.4",
        "wang-fig-6.5",
        "wang-fig-6.6",
        "wang-fig-6.7",
        "wang-fig-6.8",
        "wang-fig-6.9",
        "bw-election-repair",
        "bw-election-deadold",
        "bw-election-messages",
        "bw-election-wrong",
        "bw-medley-swim",
        "bw-medley-quiet",
        "bw-medley-load",
        "bw-medley-local",
        "bw-medley-bound",
        "bw-star",
        "bw-half-connected",
        "bw-mass-restart",
        "bw-starved",
        "bw-one-way",
        "wang-tab-5.1",
        "wang-tab-5.2",
        "wang-fig-5.1",
        "wang-fig-5.2",
        "wang-tab-7.1",
        "wang-fig-7.1",
        "wang-fig-7.2",
        "wang-fig-7.3",
        "wang-fig-7.4",
        "wang-fig-7.5",
        "bw-feedback-fractional",
        "ahsan-fig-7",
        "ahsan-fig-8",
        "ahsan-fig-9",
        "ahsan-fig-10",
        "ahsan-fig-11",
        "ahsan-eq-2",
        "ahsan-thm-1",
        "ahsan-thm-2",
        "ahsan-thm-3",
        "ahsan-thm-4",
        "ahsan-thm-5",
        "ahsan-thm-6",
        "ahsan-thm-7",
        "ahsan-thm-8",
        "ahsan-x-run",
        "ahsan-x-part",
        "ahsan-x-split",
        "ahsan-x-upgrade",
        "ahsan-x-leader",
        "ble-tab-1",
        "ble-fig-2",
        "ble-fig-3",
        "ble-fig-4",
        "ble-fig-5",
        "ble-fig-6",
        "ble-fig-7",
        "ble-fig-8",
        "ble-lemma-7.1",
        "ble-live-7.2",
        "ble-x-parts",
        "ble-x-c",
        "ble-x-live",
        "ble-x-envtext",
        "ble-x-policies",
        "ble-hardened",
    ] {
        assert!(ids.contains(id), "{id} is missing");
    }
}

/// No claim is kept without evidence.
#[test]
fn without_results_no_claim_is_reproduced() {
    for experiment in experiments::all() {
        let nothing = Table::new(Size::Full, BTreeMap::new());
        (experiment.figures)(&nothing).iter().for_each(|figure| assert!(!figure.svg().is_empty()));
        for claim in (experiment.claims)(&nothing) {
            assert!(
                claim.verdict != Verdict::Reproduced,
                "{}: {:?} holds without a single run: {}",
                experiment.id,
                claim.sentence,
                claim.measured,
            );
        }
    }
}
